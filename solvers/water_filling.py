"""Water-filling: the exact closed form of a leximin in which every user has one column (one server).

Let U[n]/phi[n] = v[n] x[n]. Raise one level S for all users together: x[n](S) = min(T[n], S / v[n]). The use of each limit is a concave
piecewise-linear function of S with a breakpoint at each cap v[n] T[n]. The first limit that fills up is a bottleneck. Its users are settled
at that level, and the other users continue to rise. Each round settles at least one user, and a limit is a bottleneck at most once. So
there are at most as many rounds as limits. A round sorts breakpoints and does not iterate. (These are the rounds of Ghodsi et al. 2011, and
EDRF in Metin's precomputed DRF.)

In each round only the bottleneck has a nonzero dual price, so the certificate needs no linear program either.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Feature, LimitKind, Program, Solution, Stage
from fairopt.solvers.backend import Backend, Deadline

__all__ = ["WaterFilling"]


class WaterFilling(Backend):
    """Closed form for one server, in rounds."""

    name = "water-filling"
    title = "Water-filling: closed form for one server"
    features = frozenset({Feature.LEXIMIN})

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Return True: the closed form is always faster."""
        return True

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Fill in rounds, with a few array operations for each bottleneck."""
        limits = program.limits
        users = program.pair_users
        per_level = program.worth
        caps = limits.kinds == LimitKind.TASKS
        tasks = np.full(len(program.users), np.inf)
        tasks[limits.keys[caps, 0]] = limits.bounds[caps]
        cap = tasks[users] * per_level
        rows = np.flatnonzero(~caps)
        use = limits.matrix[rows]
        per_unit = use.copy()
        per_unit.data *= (1 / per_level)[use.indices]  # use of each limit per unit of the user's level
        by_column = use.tocsc()
        bounds = limits.bounds[rows]

        level = np.zeros(users.size)
        rising = program.largest() > 0  # the others stay at 0: some limit allows them no task
        fills_at = np.array([_fills_at(per_unit, bounds, j, level, cap, rising) for j in range(rows.size)])
        stages: list[Stage] = []
        while rising.any():
            if deadline.left == 0.0:
                raise deadline.passed({"levels": [stage.value for stage in stages]})
            filled = int(np.argmin(fills_at)) if rows.size else -1
            if filled < 0 or np.isinf(fills_at[filled]):  # only caps stop the remaining users
                level[rising] = cap[rising]
                break
            value = float(fills_at[filled])
            satisfied = rising & (cap <= value)
            level[satisfied] = cap[satisfied]
            rising &= ~satisfied
            held, slope = _row(per_unit, filled)
            up = rising[held]
            settled = held[up]
            level[settled] = value
            rising[settled] = False
            fills_at[filled] = np.inf
            if settled.size:
                prices = np.zeros(len(limits))
                prices[rows[filled]] = 1.0 / slope[up].sum()  # gain of the level per unit of the limit
                stages.append(Stage(value, users[settled], prices))
                # The settled users slow down the limits that they use, so these fill up later. Caps are already taken into account.
                for j in np.unique(_rows_of(by_column, settled)):
                    if np.isfinite(fills_at[j]):
                        fills_at[j] = _fills_at(per_unit, bounds, int(j), level, cap, rising)
        return Solution(level / per_level, tuple(stages), iterations=len(stages), programs_solved=0)


def _row(matrix: sp.csr_array, j: int) -> tuple[IntArray, FloatArray]:
    """Return the columns and values of one row."""
    span = slice(matrix.indptr[j], matrix.indptr[j + 1])
    return matrix.indices[span].astype(np.int64), matrix.data[span]


def _rows_of(matrix: sp.csc_array, columns: IntArray) -> IntArray:
    """Return the row of each entry of these columns, without the matrix that SciPy would make of them."""
    first, number = matrix.indptr[columns], matrix.indptr[columns + 1] - matrix.indptr[columns]
    rows: IntArray = matrix.indices[np.repeat(first - number.cumsum() + number, number) + np.arange(number.sum())]
    return rows


def _fills_at(per_unit: sp.csr_array, bounds: FloatArray, j: int, level: FloatArray, cap: FloatArray, rising: BoolArray) -> float:
    """Return the common level of the rising users at which limit j fills up; inf if it never does."""
    columns, slope = _row(per_unit, j)
    up = rising[columns]
    if not up.any():
        return float("inf")
    left = bounds[j] - slope[~up] @ level[columns[~up]]
    return _level_at(slope[up], cap[columns[up]], max(float(left), 0.0))


def _level_at(slope: FloatArray, cap: FloatArray, bound: float) -> float:
    """Solve sum_n slope[n] min(S, cap[n]) = bound for S; inf if the caps are reached first."""
    order = np.argsort(cap)
    slope, cap = slope[order], cap[order]
    below = np.concatenate([[0.0], np.cumsum(slope * np.where(np.isfinite(cap), cap, 0.0))])  # use of the first j users at their caps
    above = np.cumsum(slope[::-1])[::-1]  # slope of the users from j on
    levels = (bound - below[:-1]) / above  # the level if exactly the first j users are capped
    fits = np.flatnonzero(levels <= cap)
    if not fits.size:
        return np.inf
    capped = int(fits[0])  # once more, with sums in pairs: running sums of a million users are exact to ten digits of one user's share
    return float((bound - (slope[:capped] * cap[:capped]).sum()) / slope[capped:].sum())
