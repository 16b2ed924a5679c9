r"""Water-filling of pairs: every pair of a user and a server rises as a user of its own, until a limit of it is full.

Pair p of user n has the part theta[p] of the user's weight. At the level t it has U[p] = theta[p] phi[n] t, so x[p] is
theta[p] phi[n] t / u[p]. The limit that is full first stops its pairs, the others rise on.

>>> import scipy.sparse as sp
>>> filled(sp.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([2.0, 8.0]), np.ones(3))
array([1., 1., 7.])
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import SAME
from fairopt.scheduling.baselines.baseline import Case

__all__ = ["equal_parts", "filled", "filled_pairs", "settled_parts"]

_SETTLED = 1e-9
"""Relative: parts that change the level of no user by more are settled."""


def equal_parts(case: Case) -> FloatArray:
    """Return theta, (pairs,), if each pair of a user on which something fits has the same part of its weight."""
    room = (case.program.largest() > 0).astype(float)
    number = case.program.per_user(room)
    return room / np.maximum(number, 1.0)[case.program.pair_users]


def filled_pairs(case: Case, parts: FloatArray) -> FloatArray:
    """Return the tasks of the pairs, (pairs,), with these parts of the weights."""
    program = case.program
    speed = parts * case.weights[program.pair_users] / program.utilities
    return filled(program.limits.matrix, program.limits.bounds, speed)


def settled_parts(case: Case, most: int) -> tuple[FloatArray, int, bool]:
    """Fill again and again, with the part of its user that each pair got as its part of the weight.

    Returns
    -------
    tasks : array (pairs,)
    rounds : int
        How often was filled, at most ``most``.
    settled : bool
        Whether the last round changed nothing.
    """
    program, parts, before = case.program, equal_parts(case), np.zeros(0)
    for number in range(1, most + 1):
        x = filled_pairs(case, parts)
        utility = program.utilities * x
        total = program.per_user(utility)
        if before.size and (np.abs(total - before) <= _SETTLED * total).all():
            return x, number, True
        before = total
        parts = np.divide(utility, total[program.pair_users], out=np.zeros_like(x), where=total[program.pair_users] > 0)
    return x, most, False


def filled(matrix: sp.csr_array, bounds: FloatArray, speed: FloatArray) -> FloatArray:
    """Return x, (columns,): all columns grow at their speeds, and stop where a row matrix x <= bounds of theirs is full."""
    by_column = sp.csc_array(matrix)
    left, load = bounds.copy(), np.asarray(matrix @ speed)
    least = SAME * load  # of a row whose columns have all stopped, rounding is left
    rising, x = speed > 0, np.zeros(speed.size)
    while rising.any():
        level = np.divide(left, load, out=np.full(left.size, np.inf), where=load > least)
        row = int(level.argmin())
        if not np.isfinite(level[row]):
            break
        own = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        stopped = own[rising[own]]
        x[stopped] = speed[stopped] * max(level[row], 0.0)
        rising[stopped] = False
        columns = by_column[:, stopped]
        left -= columns @ x[stopped]
        load -= columns @ speed[stopped]
        load[row] = 0.0
    return x
