"""Quotients of amounts where a resource may be missing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairopt.instance.fractions import ExactArray, fractions_of
from fairopt.validation import BoolArray, FloatArray, IntArray

__all__ = ["lacking", "lacks", "safe_ratio"]


def safe_ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> FloatArray:
    """Divide with the conventions 0 / 0 = 0 (no demand for a resource that does not exist) and a / 0 = inf.

    >>> safe_ratio([0.0, 1.0, 1.0], [0.0, 0.0, 4.0])
    array([0.  ,  inf, 0.25])

    Of fractions the result is fractions:

    >>> from fractions import Fraction
    >>> safe_ratio([0, 1, 1], [Fraction(0), Fraction(0), Fraction(3)])
    array([Fraction(0, 1), inf, Fraction(1, 3)], dtype=object)
    """
    a, b = np.asarray(numerator), np.asarray(denominator)
    if a.dtype == object or b.dtype == object:
        a, b = np.broadcast_arrays(a, b)
        return _exact_ratio(fractions_of(a), fractions_of(b))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == 0, 0.0, np.divide(a, b, dtype=np.float64))


def _exact_ratio(a: ExactArray, b: ExactArray) -> ExactArray:
    ratio = np.where(a == 0, a, np.inf)
    here = (a != 0) & (b != 0)
    ratio[here] = a[here] / b[here]
    return ratio


def lacking(capacities: FloatArray, demands: FloatArray) -> BoolArray:
    """Return where a server lacks a resource that a user demands, (users, servers)."""
    lacking: BoolArray = (demands > 0).astype(np.float32) @ (capacities == 0).astype(np.float32).T > 0  # how many resources are missing
    return lacking


def lacks(capacities: FloatArray, demands_by_kind: FloatArray, kind_of: IntArray) -> BoolArray:
    """Return where a server lacks a resource that a user demands there, (users, servers), for demands by kind of server."""
    m = capacities.shape[1]
    if demands_by_kind.shape[1] == 1:
        return lacking(capacities, demands_by_kind[:, 0, :m])
    found: BoolArray = np.zeros((len(demands_by_kind), len(capacities)), bool)
    for k in range(demands_by_kind.shape[1]):
        found[:, kind_of == k] = lacking(capacities[kind_of == k], demands_by_kind[:, k, :m])
    return found
