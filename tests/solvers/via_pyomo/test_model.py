"""The Pyomo model of a program: each row under a name of its own."""

import pytest

import fairopt as fo

pytest.importorskip("pyomo")


def test_rows_whose_names_begin_as_those_of_other_kinds_are_kept_apart() -> None:
    """A row called "time of b" is no limit of time, and another called "b" stands beside it."""
    pool = fo.Instance([[4.0]], [[1.0], [1.0]], users=["a", "b"], servers=["s"])
    program = fo.formulate(pool, "drfh").with_limit("time of b", {("b", "s"): 1.0}, 1.0).with_limit("b", {("b", "s"): 1.0}, 0.5)
    assert set(fo.to_pyomo(program).rows) == {"time of b", "b"}
    assert fo.solve(program, solver="pyomo").tasks_per_user == pytest.approx([3.5, 0.5], abs=1e-9)
