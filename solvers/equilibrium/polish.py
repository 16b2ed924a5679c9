"""The polish of equilibria of servers: from approximate tasks, of any engine, to the exact ones nearby.

Approximate tasks show their active sets: which pairs hold something, and which limit is the bottleneck of each, the fullest one at which no
holder has a larger share. With these sets fixed, an equilibrium solves linear equations (`fairopt.solvers.equilibrium.equations`).

Polishing does not certify: the caller decides whether the polished answer is better.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.certificate.conditions import bottleneck_violation
from fairopt.instance import BoolArray, FloatArray, IntArray, safe_ratio
from fairopt.program import Equilibrium, LimitKind, Program, Solution
from fairopt.solvers.backend import NO_LIMIT, Deadline
from fairopt.solvers.equilibrium.equations import Structure
from fairopt.solvers.equilibrium.settings import SETTINGS

__all__ = ["polish"]


def polish(program: Program, solution: Solution, deadline: Deadline = NO_LIMIT) -> Solution | None:
    """Return the solution of the equations of a solution's active sets; None if there is none, or no time to factorise them.

    If the tasks of a pair may be rounding errors, several sets are tried, and the solution nearest to an equilibrium is returned.

    Parameters
    ----------
    program : Program
        With a goal `Equilibrium` and limits of servers and on users' tasks only; for other programs the result is None.
    solution : Solution
        Near an equilibrium. Its prices are ignored, and the result has none.
    deadline : Deadline

    Examples
    --------
    >>> import fairopt as fo
    >>> program = fo.formulate(fo.Instance([[1.0]], [[1.0], [2.0]]), "psdsf")
    >>> polished = polish(program, Solution(np.array([0.501, 0.249])))
    >>> polished.x
    array([0.5 , 0.25])
    """
    goal, limits = program.goal, program.limits
    owned = limits.kinds == LimitKind.TASKS
    if not isinstance(goal, Equilibrium) or not (limits.of_servers | owned).all():
        return None
    rows = np.flatnonzero(limits.of_servers)
    use, bounds = sp.csr_array(limits.matrix[rows]), limits.bounds[rows]
    tasks = np.full(len(program.users), np.inf)
    tasks[limits.keys[owned, 0]] = limits.bounds[owned]
    g = goal.weights[program.pair_users] / program.utilities
    x, largest = np.maximum(solution.x, 0.0), program.largest()
    best, least, seen = None, np.inf, set[bytes]()
    for nothing in SETTINGS.empty[:3]:
        holds = x > nothing * largest
        if holds.tobytes() in seen:
            continue
        seen.add(holds.tobytes())
        stop = _bottlenecks(program, use, bounds, tasks, g, x, holds)
        answer = Structure(program.pair_users, g, tasks, use, bounds, x, stop).solve(holds, deadline)
        if answer is None:
            continue
        violation = bottleneck_violation(program, goal, answer)
        if violation < least:
            best, least = answer, violation
    return None if best is None else replace(solution, x=best, prices=None)


def _bottlenecks(
    program: Program, use: sp.csr_array, bounds: FloatArray, tasks: FloatArray, g: FloatArray, x: FloatArray, holds: BoolArray
) -> IntArray:
    """Return which limit (row of ``use``) is nearest to being the bottleneck of each pair; -1 where its user is nearer to all its tasks."""
    user = program.pair_users
    total = program.per_user(x)
    share = total[user] / g
    free = np.maximum(1 - safe_ratio(use @ x, bounds), 0.0)
    entries = use.tocoo()
    highest = np.zeros(bounds.size)
    np.maximum.at(highest, entries.row, np.where(holds[entries.col], share[entries.col], 0.0))
    behind = safe_ratio(np.maximum(highest[entries.row] - share[entries.col], 0.0), highest[entries.row])
    violation = np.maximum(free[entries.row], behind)
    order = np.lexsort((violation, entries.col))
    first = order[np.flatnonzero(np.diff(entries.col[order], prepend=-1))]  # the nearest limit of each pair that uses one
    stop, off = np.full(x.size, -1), np.full(x.size, np.inf)
    stop[entries.col[first]], off[entries.col[first]] = entries.row[first], violation[first]
    furthest = np.zeros(tasks.size)
    np.maximum.at(furthest, user[holds], off[holds])
    missing = np.where(np.isfinite(tasks), np.maximum(1 - safe_ratio(total, tasks), 0.0), np.inf)
    return np.where((missing < furthest)[user], -1, stop)
