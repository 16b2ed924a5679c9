"""Trees of queues in rational numbers: filling, part by part and level by level, and leximins of one depth after another.

The course of a filling, who rises how fast, is that of `fairopt.program.tree_filling` in fractions. Every limit is one of the programs: a
limit on shares stops users by its price like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
from flint import fmpq

from fairopt.instance import BoolArray, IntArray
from fairopt.instance.fractions import ExactArray, from_rational, rational
from fairopt.program import Nested, Solution, Stage, TreeFilling
from fairopt.program.exact import ExactProgram
from fairopt.program.tree_filling import Shares, TreeCourse
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.level_programs import LevelPrograms
from fairopt.solvers.rational.levels import exactly, open_users, stopper

__all__ = ["solve_filling", "solve_nested"]

log = logging.getLogger(__name__)


def solve_filling(program: ExactProgram, deadline: Deadline) -> Solution:
    """Fill a tree of queues.

    Raises
    ------
    NoSolution
        At the deadline, with the levels that are final.
    """
    goal, names = program.goal_as(TreeFilling), program.program
    stages: list[Stage] = []
    check = stopper(program, deadline, stages)
    shares, before, ends = goal.nothing(), None, list[ExactArray]()
    x = np.full(program.n_pairs, rational(0), dtype=object)
    iterations = programs = 0
    for number, part in enumerate(goal.parts):
        of_part = program.during(part, before)
        way = TreeCourse(goal, part, shares, part.users & open_users(of_part), np.zeros(0), None)
        if way.rising.any():
            solver = _levels(of_part, deadline, check)
            x = _fill(solver, way, stages, number, x)
            iterations, programs = iterations + solver.iterations + solver.pivots, programs + solver.programs
            x = exactly(program, program.utilities, x, _rationals(way.shares))
        shares, before = way.shares, x
        ends.append(x)
        log.info("%s: %d levels of %d users so far", part.title, len(stages), len(names.users))
    return Solution(x, tuple(stages), iterations=iterations, programs_solved=programs, parts=tuple(ends))


def _levels(program: ExactProgram, deadline: Deadline, check: Callable[[], None]) -> LevelPrograms:
    """Return the programs of the levels of all users."""
    first = np.searchsorted(program.program.pair_users, np.arange(len(program.program.users) + 1))
    spans = [np.arange(first[n], first[n + 1]) for n in range(len(program.program.users))]
    return LevelPrograms(program, [(pairs, program.utilities[pairs].tolist()) for pairs in spans], deadline, check)


def _fill(solver: LevelPrograms, way: TreeCourse, stages: list[Stage], number: int, x: ExactArray) -> ExactArray:
    """Go through a part, and return the last point."""
    while way.rising.any():
        solver.check()
        level = solver.solve(*([rational(value) for value in values.tolist()] for values in (way.shares.users, way.rate)))
        change, _ = way.event()
        t = way.t + from_rational(level.t)
        if change < t:
            stages.append(Stage(change, np.empty(0, np.int64), None, number))
            way.advance(change)
            way.stop(np.empty(0, np.int64))
            continue
        x = level.x
        stopped = np.flatnonzero(way.rising & (way.rate > 0) & np.array([pays > 0 for pays in level.pays], bool))
        prices: ExactArray = level.prices
        stages.append(Stage(t, stopped, prices, number))
        way.advance(t)
        way.stop(stopped)
    return x


def _rationals(shares: Shares) -> ExactArray:
    users: ExactArray = np.empty(shares.users.size, dtype=object)
    users[:] = [rational(value) for value in shares.users.tolist()]
    return users


def solve_nested(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the leximins of the depths of a tree, one after another. Behind the prices of limits are those of the agents.

    Raises
    ------
    NoSolution
        At the deadline, with the levels that are final.
    """
    goal, names = program.goal_as(Nested), program.program
    stages: list[Stage] = []
    check = stopper(program, deadline, stages)
    below = goal.below.toarray() > 0
    pairs_of: list[IntArray] = [np.flatnonzero(users[names.pair_users]) for users in below]
    programs = LevelPrograms(program, [(pairs, program.utilities[pairs].tolist()) for pairs in pairs_of], deadline, check)
    zero = rational(0)
    reachable: BoolArray = below @ open_users(program)
    owed = [zero] * goal.depth.size
    x: ExactArray = np.full(program.n_pairs, zero, dtype=object)
    for depth in range(1, int(goal.depth.max(initial=0)) + 1):
        units = nested_units(goal, depth, owed)
        rate = [unit if reachable[a] else zero for a, unit in enumerate(units)]
        while any(value != 0 for value in rate):
            check()
            level = programs.solve([zero if rate[a] != 0 else owed[a] for a in range(len(owed))], rate)
            x = level.x
            agents = np.array([a for a, value in enumerate(rate) if value != 0 and level.pays[a] > 0], np.int64)
            users = np.flatnonzero(below[agents].any(axis=0))
            pays: ExactArray = np.array(level.pays, dtype=object)
            stages.append(Stage(level.t, users, np.concatenate([level.prices, pays]), depth, agents))
            for a in agents:
                owed[a], rate[a] = rate[a] * level.t, zero
    shares: ExactArray = np.full(len(names.users), zero, dtype=object)
    shares[goal.users] = owed[goal.depth.size - goal.users.size :]
    return Solution(
        exactly(program, program.utilities, x, shares),
        tuple(stages),
        iterations=programs.iterations + programs.pivots,
        programs_solved=programs.programs,
    )


def nested_units(goal: Nested, depth: int, sums: Sequence[fmpq]) -> list[fmpq]:
    """Return what each agent of a depth has at a level of 1, its weight times what its parent has; 0 of other depths."""
    units = [rational(0)] * goal.depth.size
    for a in np.flatnonzero(goal.depth == depth):
        above = sums[goal.parent[a]] if goal.parent[a] >= 0 else rational(1)
        units[a] = rational(goal.weight[a]) * above
    return units
