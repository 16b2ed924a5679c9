"""Compiled code that is loaded before it is timed: from numba's cache it takes a second, and half a minute the first time ever."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["load"]


def load(function: Any, *arguments: Any) -> float:
    """Load a compiled function for arguments like these, or compile it, without calling it; return the seconds that took."""
    from numba import typeof

    started = time.perf_counter()
    function.compile(tuple(typeof(argument) for argument in arguments))  # type: ignore[no-untyped-call]
    return time.perf_counter() - started
