"""Leximins and totals of programs with rules in rational numbers: one linear program a level, as in `fairopt.solvers.leximin.ruled`.

A user with a positive multiplier is settled; the value of each level enters the next program as a fraction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.errors import NoSolution
from fairopt.instance.fractions import ExactArray, rational
from fairopt.program import Solution, Stage
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.largest import largest
from fairopt.solvers.rational.levels import open_users, stopper

__all__ = ["solve_ruled", "total_ruled"]


def solve_ruled(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the leximin, with prices that prove it.

    Raises
    ------
    NoSolution
        At the deadline, with the levels that are final; where nothing is feasible.
    """
    goal, names = program.goal, program.program
    zero, one = rational(0), rational(1)
    per_level = program.utilities / goal.weights[names.pair_users]
    members = np.flatnonzero(open_users(program)).tolist()
    place = {user: a for a, user in enumerate(members)}
    n, m = program.n_pairs, program.bounds.size
    rising, level = [True] * len(members), [zero] * len(members)
    stages: list[Stage] = []
    check = stopper(program, deadline, stages)
    shares = [
        (m + place[user], pair, -value)
        for pair, (user, value) in enumerate(zip(names.pair_users.tolist(), per_level.tolist(), strict=True))
        if user in place
    ]
    x: ExactArray = np.full(n, zero, dtype=object)
    while any(rising):
        check()
        of_t = [(m + a, n, one) for a, up in enumerate(rising) if up]
        found = largest(
            [*[zero] * n, one], [*_entries(program), *shares, *of_t], [*program.bounds.tolist(), *(-each for each in level)], deadline
        )
        if found is None:
            raise NoSolution("nothing is feasible", {"infeasible": True})
        z, prices = found
        x = z[:n]
        stopped = [a for a, up in enumerate(rising) if up and prices[m + a] > 0]
        for a in stopped:
            rising[a], level[a] = False, z[n]
        stages.append(Stage(z[n], np.array([members[a] for a in stopped], np.int64), prices[:m]))
    return Solution(x, tuple(stages), programs_solved=len(stages))


def total_ruled(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the largest total, with its prices.

    Raises
    ------
    NoSolution
        At the deadline, or where nothing is feasible.
    """
    worth = (program.goal.weights[program.program.pair_users] * program.utilities).tolist()
    found = largest(worth, _entries(program), program.bounds.tolist(), deadline)
    if found is None:
        raise NoSolution("nothing is feasible", {"infeasible": True})
    return Solution(found[0], prices=found[1])


def _entries(program: ExactProgram) -> list[tuple[int, int, Any]]:
    return list(zip(program.rows.tolist(), program.columns.tolist(), program.data.tolist(), strict=True))
