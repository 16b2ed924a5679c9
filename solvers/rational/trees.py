"""Trees of queues in rational numbers: filling, part by part (`fairopt.solvers.leximin.parts`).

The course of a filling, who rises how fast, is that of `fairopt.program.tree_filling` in fractions. Every limit is one of the programs: a
limit on shares stops users by its price like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from flint import fmpq

from fairopt.errors import NoSolution
from fairopt.instance.fractions import ExactArray, from_rational, rational
from fairopt.program import Solution, Stage, TreeFilling
from fairopt.program.agents import AgentProgram
from fairopt.program.exact import ExactProgram
from fairopt.program.guarantees import Floors, ample, completion
from fairopt.program.tree_filling import Shares, TreeCourse
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.floors import AgentLevel
from fairopt.solvers.leximin.parts import Filled, Filling
from fairopt.solvers.rational.largest import largest
from fairopt.solvers.rational.level_programs import LevelPrograms
from fairopt.solvers.rational.levels import exactly, open_users, stopper

__all__ = ["solve_filling"]

log = logging.getLogger(__name__)


def solve_filling(program: ExactProgram, deadline: Deadline) -> Solution:
    """Fill a tree of queues.

    Raises
    ------
    NoSolution
        At the deadline, with the levels that are final.
    """
    return _Tree(program, program.goal_as(TreeFilling), deadline).solve(compare=True)


class _Tree(Filling):
    """A filling in rationals."""

    def __init__(self, program: ExactProgram, goal: TreeFilling, deadline: Deadline) -> None:
        self.deadline, self.known = deadline, list[Stage]()
        self.check = stopper(program, deadline, self.known)
        nothing: ExactArray = np.full(program.n_pairs, rational(0), dtype=object)
        super().__init__(program, goal, nothing, self._agents, down_closed=program.program.down_closed)
        self.iterations = self.programs = 0

    def solve(self, *, compare: bool) -> Solution:
        """Return the filling, with the numbers of iterations and programs."""
        return replace(super().solve(compare=compare), iterations=self.iterations, programs_solved=self.programs)

    def _agents(self, program: AgentProgram) -> _Agents:
        return _Agents(program, self.deadline, self.check)

    def keeping(self, promised: Floors, *, everywhere: bool, after: _Keeping | None) -> _Keeping:
        """Return floors to keep."""
        agents, start = completion(self.program, self.goal, promised.promises, promised.amounts, everywhere)
        keeping = _Keeping(self._agents(agents), start)
        if after is not None:
            keeping.point = after.point
        return keeping

    def users(self, shares: Shares) -> ExactArray:
        """Return the shares of users as rationals."""
        return _rationals(shares)

    def exactly(self, x: ExactArray, users: ExactArray) -> ExactArray:
        """Return the point of a program with these shares."""
        return exactly(self.program, self.program.utilities, x, users)

    def least(self, x: ExactArray, shares: Shares) -> ExactArray:
        """Return x; with rules the point of a program."""
        program, names = self.program, self.program.program
        if names.down_closed:
            return x
        worth, bounds = program.utilities.tolist(), program.bounds.tolist()
        entries = list(zip(program.rows.tolist(), program.columns.tolist(), program.data.tolist(), strict=True))
        entries += [(len(bounds) + n, pair, -worth[pair]) for pair, n in enumerate(names.pair_users.tolist())]
        most: list[Any] = program.largest()
        reach = program.per_user(np.array([each * value for each, value in zip(most, worth, strict=True)], dtype=object))
        cost = [-worth[p] / reach[n] if reach[n] > 0 else rational(0) for p, n in enumerate(names.pair_users.tolist())]
        found = largest(cost, entries, [*bounds, *(-share for share in _rationals(shares).tolist())], self.deadline)
        if found is None:
            raise NoSolution("nothing is feasible", {"infeasible": True})
        return found[0]

    def alone(self, program: ExactProgram, goal: TreeFilling, owner: int, large: bool) -> tuple[Solution, ExactArray]:
        """Fill one guaranteed node alone, on all pairs."""
        alone = goal.alone(owner)
        found = _Tree(replace(ample(program, alone) if large else program, goal=alone), alone, self.deadline).solve(compare=False)
        self.iterations, self.programs = self.iterations + found.iterations, self.programs + found.programs_solved
        return found, found.x

    def climbed(self, number: int, bounds: ExactArray | None, before: Filled, keeping: _Keeping | None) -> Filled:
        """Raise the levels of a part, one program each."""
        part, so_far, x = self.goal.parts[number], list(before.stages), before.x
        of_part = self.program.during(part, bounds)
        way = TreeCourse(self.goal, part, before.shares, part.users & open_users(of_part), np.zeros(0), None)
        if way.rising.any():
            solver = _levels(of_part, self.deadline, self.check)
            x = self._climb(solver, way, so_far, number, x, keeping)
            self.iterations, self.programs = self.iterations + solver.iterations + solver.pivots, self.programs + solver.programs
            x = self.exactly(x, _rationals(way.shares))
        log.info("%s: %d levels of %d users so far", part.title, len(so_far), len(self.program.program.users))
        return replace(before, x=x, shares=way.shares, stages=tuple(so_far))

    def _climb(
        self, solver: LevelPrograms, way: TreeCourse, stages: list[Stage], number: int, x: ExactArray, keeping: _Keeping | None
    ) -> ExactArray:
        """Go through a part, and return the last point."""
        while way.rising.any():
            self.check()
            start, rate = ([rational(value) for value in values.tolist()] for values in (way.shares.users, way.rate))
            level, above, change = solver.solve(start, rate), None, way.event()[0]
            t, pays, prices = way.t + from_rational(level.t), level.pays, level.prices
            if keeping is not None:
                above = keeping.solve(start, rate)
                if way.t + from_rational(above.t) < min(t, change):
                    t, pays, prices = way.t + from_rational(above.t), above.pays, np.concatenate([above.prices, above.pays[len(start) :]])
                else:
                    above = None
            if change < t:
                stages.append(Stage(change, np.empty(0, np.int64), None, number))
                way.advance(change)
                way.stop(np.empty(0, np.int64))
                continue
            x = level.x
            stopped = np.flatnonzero(way.rising & (way.rate > 0) & np.array([pay > 0 for pay in pays[: len(start)]], bool))
            stages.append(Stage(t, stopped, prices, number, floors=above is not None))
            self.known.append(stages[-1])
            way.advance(t)
            way.stop(stopped)
        return x


class _Agents:
    """The programs of one set of limits and agents."""

    def __init__(self, program: AgentProgram, deadline: Deadline, check: Callable[..., None]) -> None:
        self.program = program
        self.programs = LevelPrograms(program, [(columns, list(worths)) for columns, worths in program.agents], deadline, check)

    def solve(self, start: Sequence[fmpq], rate: Sequence[fmpq]) -> AgentLevel:
        """Return the largest t, with its proof."""
        level = self.programs.solve(start, rate)
        pays: ExactArray = np.empty(len(level.pays), dtype=object)
        pays[:] = level.pays
        stopped = np.array([pay > 0 and speed > 0 for pay, speed in zip(level.pays, rate, strict=True)], bool)
        return AgentLevel(level.t, level.x, level.prices, pays, stopped)


class _Keeping:
    """Floors that are kept in some parts, and the last completion that was found: ``point``, (columns,)."""

    def __init__(self, agents: _Agents, start: Sequence[fmpq]) -> None:
        self.agents, self.start = agents, list(start)
        self.point: ExactArray = np.full(agents.program.n_pairs, rational(0), dtype=object)

    def solve(self, start: Sequence[fmpq], rate: Sequence[fmpq]) -> AgentLevel:
        """Return how far completions go on a course."""
        level = self.agents.solve([*start, *self.start], [*rate, *[rational(0)] * len(self.start)])
        self.point = level.z
        return level


def _levels(program: ExactProgram, deadline: Deadline, check: Callable[..., None]) -> LevelPrograms:
    """Return the programs of the levels of all users."""
    first = np.searchsorted(program.program.pair_users, np.arange(len(program.program.users) + 1))
    spans = [np.arange(first[n], first[n + 1]) for n in range(len(program.program.users))]
    return LevelPrograms(program, [(pairs, program.utilities[pairs].tolist()) for pairs in spans], deadline, check)


def _rationals(shares: Shares) -> ExactArray:
    users: ExactArray = np.empty(shares.users.size, dtype=object)
    users[:] = [rational(value) for value in shares.users.tolist()]
    return users
