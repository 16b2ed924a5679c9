"""One thread for linear algebra: in thousands of small products, threads only wait for each other (benchmarks/results/choices.md)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra of this process runs in one thread.

    >>> from threadpoolctl import threadpool_info
    >>> with one_thread():
    ...     all(library["num_threads"] == 1 for library in threadpool_info() if library["user_api"] == "blas")
    True
    """
    within: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return within


@cache
def _libraries() -> Any:
    """Find the libraries once; this takes longer than limiting their threads."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
