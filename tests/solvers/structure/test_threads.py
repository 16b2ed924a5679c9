"""Linear algebra in one thread, as long as it is asked for."""

from __future__ import annotations

from threadpoolctl import threadpool_info

from fairopt.solvers.structure.threads import one_thread


def threads() -> list[int]:
    """Return the threads of each library of linear algebra."""
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_one_thread_and_then_as_many_as_before() -> None:
    """Also within itself."""
    before = threads()
    with one_thread():
        assert set(threads()) <= {1}
        with one_thread():
            assert set(threads()) <= {1}
        assert set(threads()) <= {1}
    assert threads() == before
