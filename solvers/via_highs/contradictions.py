"""Why nothing is feasible: an irreducible set of rows that contradict each other.

With an excess e >= 0 of each row, minimise the sum of e subject to A x - e <= b, x >= 0. Where the minimum is above 0, the prices p of the
rows are a Farkas ray, A'p >= 0 and p.b < 0: the rows with a price cannot hold together. Of these, one after another is left out if the
others still cannot (a deletion filter); what remains is irreducible: without any one of them, the others can hold.

Where no engine said that nothing is feasible, the prices must prove it beyond the rounding of their products: with x <= the largest x,

    p.b + sum over pairs of max(0, -A'p) * largest x < 0.

>>> import fairopt as fo
>>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], resources=["gpu"], rules=["x[a] >= 2 * x[b]", "x[b] >= 4"])
>>> contradiction(fo.formulate(pool, "max-min"), Deadline(None))
['x[a] >= 2 * x[b]', 'x[b] >= 4', 'gpu @ s']
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.program import LimitKind, Program
from fairopt.program.rule_limits import rule_of
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, solved
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["contradiction"]


def contradiction(program: Program, deadline: Deadline, *, proved: bool = False) -> list[str]:
    """Return the names of an irreducible set of rows that cannot hold together, rules first; [] where all can.

    Parameters
    ----------
    program : Program
    deadline : Deadline
    proved : bool
        Only a set that is proved; [] where none is.

    Raises
    ------
    NoSolution
        At the deadline, or where HiGHS fails.
    """
    limits, largest = program.limits, program.largest()
    scale = np.where(np.isfinite(largest) & (largest > 0), largest, 1.0)
    matrix = sp.csr_array(limits.matrix * scale)
    size = np.abs(limits.bounds)
    np.maximum.at(size, np.repeat(np.arange(len(limits)), np.diff(matrix.indptr)), np.abs(matrix.data))
    size = np.where(size > 0, size, 1.0)
    matrix, right = sp.csr_array(matrix / size[:, None]), limits.bounds / size
    excess, prices = _excess(matrix, right, np.arange(right.size), deadline)
    if excess <= SETTINGS.feasible:
        return []
    rows = np.flatnonzero(prices > SETTINGS.feasible * prices.max())
    excess, at = _excess(matrix, right, rows, deadline)
    if excess > SETTINGS.feasible:
        prices = at
    else:  # prices of more digits would be needed
        rows = np.arange(right.size)
    for row in sorted(rows.tolist(), key=lambda k: limits.kinds[k] == LimitKind.RULE):  # what is no rule is left out first
        fewer = rows[rows != row]
        excess, at = _excess(matrix, right, fewer, deadline)
        if excess > SETTINGS.feasible:
            rows, prices = fewer, at
    if proved and not _prove(matrix[rows], right[rows], prices, np.where(np.isfinite(largest), largest > 0, np.inf)):
        return []
    rules = limits.kinds[rows] == LimitKind.RULE
    ordered = [*rows[rules].tolist(), *rows[~rules].tolist()]
    return list(dict.fromkeys(rule_of(program.limit_name(row)) for row in ordered))


def _excess(matrix: sp.csr_array, right: FloatArray, rows: IntArray, deadline: Deadline) -> tuple[float, FloatArray]:
    """Return the smallest sum of excesses of some rows, and their prices."""
    if not rows.size:
        return 0.0, np.zeros(0)
    columns = matrix.shape[1]
    whole = sp.csr_array(sp.hstack([matrix[rows], -sp.eye_array(rows.size)]))
    cost = np.concatenate([np.zeros(columns), -np.ones(rows.size)])
    outcome = solved(HighsModel.within(cost, whole, right[rows]).run(deadline.left), deadline, {})
    return float(np.maximum(outcome.x[columns:], 0.0).sum()), np.maximum(outcome.row_duals, 0.0)


def _prove(matrix: sp.csr_array, right: FloatArray, prices: FloatArray, largest: FloatArray) -> bool:
    """Do prices prove, whatever the rounding of their products, that no x from 0 to the largest obeys the rows?"""
    cost, rounding = matrix.T @ prices, SETTINGS.rounding_of_proof * (abs(matrix).T @ prices)
    cheap = cost < -rounding  # a cost of rounding is 0 where x has no largest value
    counted = cheap | np.isfinite(largest)
    gain = (np.maximum(rounding - cost, 0.0)[counted] * largest[counted]).sum()
    return bool(prices @ right + SETTINGS.rounding_of_proof * (prices @ np.abs(right)) + gain < 0)
