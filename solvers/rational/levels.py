"""A leximin in rational numbers, level by level; one equal level.

The value of each level enters the next as a fraction, and a user is settled because its multiplier is > 0: no tolerance anywhere. Users at
a level with the multiplier 0 rise further in the next program. They may be unable to: then the next program has the same level again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from fairopt.instance import BoolArray
from fairopt.instance.fractions import ExactArray, from_rational, rational
from fairopt.program import Solution, Stage
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.level_programs import LevelPrograms

__all__ = ["exactly", "open_users", "solve_leximin", "stopper"]

log = logging.getLogger(__name__)


def solve_leximin(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the leximin, or with the goal `Equalize` the largest equal level, with prices that prove it.

    Raises
    ------
    NoSolution
        At the deadline, with the levels that are final.
    """
    goal, names = program.goal, program.program
    stages: list[Stage] = []
    check = stopper(program, deadline, stages)
    per_level = program.utilities / goal.weights[names.pair_users]
    members = np.flatnonzero(open_users(program))
    of_user = [np.flatnonzero(names.pair_users == n) for n in members]
    programs = LevelPrograms(program, [(pairs, per_level[pairs].tolist()) for pairs in of_user], deadline, check)
    zero, one = rational(0), rational(1)
    start, rate = [zero] * members.size, [one] * members.size
    x = np.full(program.n_pairs, zero, dtype=object)
    while any(value != 0 for value in rate):
        check()
        level = programs.solve(start, rate)
        x = level.x
        stopped = [a for a in range(members.size) if rate[a] != 0 and (level.pays[a] > 0 or goal.is_equal)]
        for a in stopped:
            start[a], rate[a] = level.t, zero
        stages.append(Stage(level.t, members[stopped], level.prices))
        log.info("level %d: %d users left, %d pivots so far", len(stages), sum(1 for value in rate if value != 0), programs.pivots)
    shares = np.full(len(names.users), zero, dtype=object)
    shares[members] = start
    return Solution(
        exactly(program, per_level, x, shares),
        tuple(stages),
        iterations=programs.iterations + programs.pivots,
        programs_solved=programs.programs,
    )


def stopper(program: ExactProgram, deadline: Deadline, stages: Sequence[Stage]) -> Callable[..., None]:
    """Return what takes work from the deadline, and raises NoSolution where nothing is left, with the levels that are final by then."""

    def check(work: float = 0.0) -> None:
        deadline.spend(work)
        if deadline.left == 0.0:
            users = [program.program.users[n] for stage in stages for n in stage.users]
            raise deadline.passed({"levels": [float(from_rational(rational(stage.value))) for stage in stages], "users": users})

    return check


def open_users(program: ExactProgram) -> BoolArray:
    """Return which users can have something, (users,): those with a pair that no limit of bound 0 closes."""
    closed = np.array([most == 0 for most in program.largest()], bool)
    open_to = np.zeros(len(program.program.users), bool)
    open_to[program.program.pair_users[~closed]] = True
    return open_to


def exactly(program: ExactProgram, per_level: ExactArray, x: ExactArray, levels: ExactArray) -> ExactArray:
    """Return x with exactly these levels, (users,), where users have more: less of everything that they have, if no rule forbids it."""
    if not program.program.down_closed:
        return x
    users = program.program.pair_users
    has = program.per_user(x * per_level)
    factor = np.full(has.size, rational(1), dtype=object)
    for n in np.flatnonzero(has > levels):
        factor[n] = levels[n] / has[n]
    return np.asarray(x * factor[users])
