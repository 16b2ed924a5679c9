"""Of all allocations that answer a question equally well, one in which the tasks of a user are worth most to it.

A leximin, or an alpha-fair optimum, decides the utility U[m] of each user m, but not where its tasks run. That matters to a liar n whose
tasks are worth other numbers, by server, than it declares: nothing on a server that it only claims. Which placement an engine returns is an
accident. The most that the liar may have is none,

    maximise  sum_i worth[i] x[n,i]    within the limits of the program,    sum_i u[m,i] x[m,i] >= U[m]  for all users m.

These are the optimal allocations: with more than U[m] for one user and no less for the others, U would not be optimal.

The first of two users asks for server b, too, where it may not run. Its 3 of 6 tasks may all be on server a; with a negative worth, they
are where they are worth least:

>>> import fairopt as fo
>>> told = fo.Instance([[3], [3]], [[1], [1]], servers=["a", "b"])
>>> tasks, worth = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 0.0])
>>> best_placement(fo.NOTIONS["drfh"](), told, "rdm", tasks, 0, worth).round(6)[0] + 0.0
array([3., 0.])
>>> best_placement(fo.NOTIONS["drfh"](), told, "rdm", tasks, 0, -worth).round(6)[0] + 0.0
array([0., 3.])
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import rational, rationals
from fairopt.instance.tolerances import FITS, SAME
from fairopt.models import Notion
from fairopt.program import AlphaFair, Leximin, Program
from fairopt.solvers.backend import Deadline

__all__ = ["best_placement"]

_TOLERANCE = 1e-10  # of HiGHS, for rows and columns near 1


def best_placement(
    notion: Notion, instance: Instance, sharing: Any, tasks: Any, user: int, worth: Any, time_limit: float | None = None
) -> Any:
    """Return the optimal tasks, (users, servers), that are worth most to a user; ``tasks`` where all are worth the same to it.

    Parameters
    ----------
    notion : Notion
    instance : Instance
    sharing : str
    tasks : array (users, servers)
        An optimal allocation; if its numbers are Fractions, so are those of the result. It is returned, too, where the goal is none
        whose optimal allocations are all those with its utilities, or the linear program is not solved.
    user : int
    worth : array (servers,)
        Of a task of the user; a negative one is a cost.
    time_limit : float, optional
        Seconds.
    """
    program = notion.formulate(instance, sharing=sharing, integral=False)
    unique = isinstance(program.goal, Leximin) or (isinstance(program.goal, AlphaFair) and program.goal.alpha > 0)
    own = program.pair_users == user
    if not unique or program.kept is not None or not (abs(worth) < np.inf).all():
        return tasks
    per_unit = worth[program.pair_servers[own]] / program.utilities[own]
    if not own.any() or per_unit.max() - per_unit.min() <= SAME * abs(per_unit).max():
        return tasks
    found = (_in_fractions if tasks.dtype == object else _in_floats)(notion, instance, program, tasks, own, worth, time_limit)
    if found is None:
        return tasks
    table = np.zeros_like(tasks)
    table[program.pair_users, program.pair_servers] = found
    return table


def _in_floats(
    notion: Notion, instance: Instance, program: Program, tasks: FloatArray, own: Any, worth: FloatArray, time_limit: float | None
) -> FloatArray | None:
    users, servers, limits, unit = program.pair_users, program.pair_servers, program.limits, program.largest()
    utility = program.per_user(program.utilities * tasks[users, servers])
    held = np.flatnonzero(utility > 0)
    one = np.divide(program.utilities * unit, utility[users], out=np.zeros(users.size), where=utility[users] > 0)
    floors = sp.csr_array((one, (users, np.arange(users.size))), shape=(len(program.users), users.size))[held]
    matrix = sp.csr_array(limits.matrix * unit)
    size = np.maximum(np.abs(limits.bounds), abs(matrix).max(axis=1).toarray().ravel())
    size = np.where(size > 0, size, 1.0)
    cost = np.where(own, -worth[servers] * unit, 0.0)
    answer: Any = scipy.optimize.linprog(
        cost / np.abs(cost).max(),
        A_ub=sp.vstack([sp.diags_array(1 / size) @ matrix, -floors], format="csc"),
        b_ub=np.concatenate([limits.bounds / size, np.full(held.size, FITS - 1)]),
        bounds=(0.0, 1.0),
        method="highs",
        options={
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
            "time_limit": float("inf") if time_limit is None else time_limit,
        },
    )
    return np.maximum(answer.x, 0) * unit if answer.status == 0 else None


def _in_fractions(notion: Notion, instance: Instance, program: Program, tasks: Any, own: Any, worth: Any, time_limit: float | None) -> Any:
    from fairopt.analysis.in_fractions import largest  # imports everything that computes in fractions

    users, servers = program.pair_users.tolist(), program.pair_servers
    exact = notion.exactly.in_fractions(instance.exact, program)
    held = exact.per_user(exact.utilities * rationals(tasks[program.pair_users, servers])).tolist()
    entries = list(zip(exact.rows.tolist(), exact.columns.tolist(), exact.data.tolist(), strict=True))
    entries += [(len(exact.bounds) + n, p, -u) for p, (n, u) in enumerate(zip(users, exact.utilities.tolist(), strict=True))]
    cost = [rational(worth[i]) if mine else 0 for i, mine in zip(servers.tolist(), own.tolist(), strict=True)]
    return largest(cost, entries, [*exact.bounds.tolist(), *(-each for each in held)], Deadline(time_limit))
