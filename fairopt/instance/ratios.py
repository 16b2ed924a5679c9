"""Quotients of amounts where a resource may be missing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairopt.validation import BoolArray, FloatArray

__all__ = ["lacking", "safe_ratio"]


def safe_ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> FloatArray:
    """Divide with the conventions 0 / 0 = 0 (no demand for a resource that does not exist) and a / 0 = inf.

    >>> safe_ratio([0.0, 1.0, 1.0], [0.0, 0.0, 4.0])
    array([0.  ,  inf, 0.25])
    """
    a, b = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == 0, 0.0, a / b)


def lacking(capacities: FloatArray, demands: FloatArray) -> BoolArray:
    """Return where a server lacks a resource that a user demands, (users, servers)."""
    lacking: BoolArray = (demands > 0).astype(np.float32) @ (capacities == 0).astype(np.float32).T > 0  # how many resources are missing
    return lacking
