"""The leximins of the depths of a tree, one after another, in rational numbers (`fairopt.program.nested` has the goal and its agents).

For each depth, with unit[a] = w[a] S[parent of a], level by level:

    maximise t   subject to   A x <= b,   S[a] >= unit[a] t  for agents who rise,   S[a] >= owed[a]  for settled ones,   x, t >= 0.

An agent with a positive price is settled with owed[a] = unit[a] t: in fractions such a price proves that it cannot have more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import fmpq

from fairopt.instance.fractions import ExactArray, rational
from fairopt.program import Nested, Solution, Stage
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.level_programs import LevelPrograms
from fairopt.solvers.rational.levels import exactly, open_users, stopper

__all__ = ["solve_nested"]


def solve_nested(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the leximins of the depths of a tree, one after another. Behind the prices of limits are those of the agents.

    Raises
    ------
    NoSolution
        At the deadline, with the levels that are final.
    """
    depths = _Depths(program, deadline)
    for depth in range(1, int(depths.goal.depth.max(initial=0)) + 1):
        depths.settle(depth)
    return depths.solution()


class _Depths:
    """What settled agents have, ``owed``, and the levels that are final."""

    def __init__(self, program: ExactProgram, deadline: Deadline) -> None:
        self.program, self.goal = program, program.goal_as(Nested)
        self.stages: list[Stage] = []
        self.check = stopper(program, deadline, self.stages)
        self.below = self.goal.below.toarray() > 0  # the users below each agent
        pairs_of = [np.flatnonzero(users[program.program.pair_users]) for users in self.below]
        agents = [(pairs, program.utilities[pairs].tolist()) for pairs in pairs_of]
        self.programs = LevelPrograms(program, agents, deadline, self.check)
        self.reachable = self.below @ open_users(program)
        self.owed = [rational(0)] * self.goal.depth.size
        self.x: ExactArray = np.full(program.n_pairs, rational(0), dtype=object)

    def settle(self, depth: int) -> None:
        """Raise the levels of a depth until every agent of it is settled."""
        zero = rational(0)
        rate = [unit if self.reachable[a] else zero for a, unit in enumerate(_units(self.goal, depth, self.owed))]
        while any(rate):
            self.check()
            level = self.programs.solve([zero if speed else owed for speed, owed in zip(rate, self.owed, strict=True)], rate)
            self.x = level.x
            agents = np.array([a for a, speed in enumerate(rate) if speed and level.pays[a] > 0], np.int64)
            prices = np.concatenate([level.prices, np.array(level.pays, dtype=object)])
            self.stages.append(Stage(level.t, np.flatnonzero(self.below[agents].any(axis=0)), prices, depth, agents))
            for a in agents:
                self.owed[a], rate[a] = rate[a] * level.t, zero

    def solution(self) -> Solution:
        """Return the answer once all depths are settled."""
        shares: ExactArray = np.full(len(self.program.program.users), rational(0), dtype=object)
        shares[self.goal.users] = self.owed[self.goal.depth.size - self.goal.users.size :]
        return Solution(
            exactly(self.program, self.program.utilities, self.x, shares),
            tuple(self.stages),
            iterations=self.programs.iterations + self.programs.pivots,
            programs_solved=self.programs.programs,
        )


def _units(goal: Nested, depth: int, sums: Sequence[fmpq]) -> list[fmpq]:
    """Return what each agent of a depth has at a level of 1, its weight times what its parent has; 0 of other depths."""
    units = [rational(0)] * goal.depth.size
    for a in np.flatnonzero(goal.depth == depth):
        above = sums[goal.parent[a]] if goal.parent[a] >= 0 else rational(1)
        units[a] = rational(goal.weight[a]) * above
    return units
