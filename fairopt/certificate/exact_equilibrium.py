r"""The proof of an equilibrium of servers in rationals: the theorem's condition, pair by pair, without a tolerance.

x is PS-DSF (theorems 1 and 2 of Khamse-Ashari et al. 2017) if and only if it exceeds no limit, and for every pair p = (n, i) either user n
has all its tasks, or p has a *bottleneck*: a limit of server i that p uses, that is full, A x = b, and where

    u[p] x[n] / weights[n]  >=  u[q] x[m] / weights[m]     for each pair q = (m, i) that uses the limit and holds something, x[q] > 0.

That is all that is checked, with numbers that are computed from the answer alone.
"""

from __future__ import annotations

import numpy as np

from fairopt.errors import CertificateError
from fairopt.program import Equilibrium, LimitKind, Solution
from fairopt.program.exact import ExactProgram

__all__ = ["prove_equilibrium"]


def prove_equilibrium(program: ExactProgram, solution: Solution) -> None:
    """Prove that an answer is an equilibrium.

    Raises
    ------
    CertificateError
        The answer exceeds a limit, or a pair has no bottleneck although its user has tasks left.
    """
    goal, names, x = program.goal_as(Equilibrium), program.program, solution.x
    for p in [p for p, value in enumerate(x.tolist()) if value < 0]:
        raise CertificateError(f"{_pair(program, p)} holds a negative number of tasks")
    usage = program.usage(x)
    for j, (used, bound) in enumerate(zip(usage.tolist(), program.bounds.tolist(), strict=True)):
        if used > bound:
            raise CertificateError(f"the limit {names.limit_name(j)} is exceeded")
    users = names.pair_users
    share = program.utilities * program.per_user(x)[users] / goal.weights[users]
    kinds, keys = names.limits.kinds, names.limits.keys
    full = [used == bound for used, bound in zip(usage.tolist(), program.bounds.tolist(), strict=True)]
    satisfied = {int(keys[j, 0]) for j in np.flatnonzero(kinds == LimitKind.TASKS) if full[j]}
    highest: dict[int, object] = {}
    of_server = names.limits.of_servers
    entries = [(j, p) for j, p in zip(program.rows.tolist(), program.columns.tolist(), strict=True) if of_server[j]]
    for j, p in entries:
        if x[p] > 0 and (j not in highest or share[p] > highest[j]):
            highest[j] = share[p]
    stopped = {p for j, p in entries if full[j] and (j not in highest or share[p] >= highest[j])}
    for p, n in enumerate(users.tolist()):
        if n not in satisfied and p not in stopped:
            raise CertificateError(f"{_pair(program, p)} has no bottleneck, though its user has tasks left: this is no equilibrium")


def _pair(program: ExactProgram, p: int) -> str:
    names = program.program
    return f'user "{names.users[names.pair_users[p]]}" on "{names.servers[names.pair_servers[p]]}"'
