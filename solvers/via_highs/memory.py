"""A sequence of leximins with a past (`fairopt.program.past`) on the columns and limits of `RepeatedLevels`.

From moment to moment the numbers of tasks of users, their weights and their past change. All of these are right-hand sides, so the kept
basis of the programs without a past (`fairopt.solvers.via_highs.kept_basis`) serves here too. It gives one level. Users whose past exceeds
the level get nothing, and the prices of the level prove it. Without such a basis, or with more levels, the program with the past is solved
level by level.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import CERTIFIED, SAME
from fairopt.program import Leximin, LimitKind, Program, Solution, Stage
from fairopt.program.past import WithPast
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.levels import solve_levels
from fairopt.solvers.via_highs.warm_start import RepeatedLevels

__all__ = ["RememberedLevels"]


class RememberedLevels:
    """The leximins of a program with a past; numbers of tasks, weights and the past may differ each time.

    Parameters
    ----------
    program : Program
        Without a past. Its goal is a leximin.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.past = program, WithPast.of(program)
        self.repeated = RepeatedLevels(program) if RepeatedLevels.suits(program) else None

    def solve_again(self, tasks: FloatArray, weights: FloatArray, past: FloatArray) -> tuple[Program, Solution]:
        """Return the program with these tasks, finite and not all 0, weights and past, all (users,), and its solution.

        Raises
        ------
        NoSolution
            HiGHS did not find one.
        """
        limits = self.program.limits
        bounds, of_tasks = limits.bounds.copy(), limits.kinds == LimitKind.TASKS
        bounds[of_tasks] = tasks[limits.keys[of_tasks, 0]]
        program = self.past.at(bounds, weights, past)
        found = self._from_kept(tasks, weights, past)
        if found is None and self.repeated is not None:
            self.repeated.solve_again(tasks, weights)  # for a basis near this one
            found = self._from_kept(tasks, weights, past)
        if found is None:
            found = solve_levels(program, program.goal_as(Leximin), CERTIFIED, Deadline(None))
        return program, found

    def _from_kept(self, tasks: FloatArray, weights: FloatArray, past: FloatArray) -> Solution | None:
        """Return the solution that a kept basis gives, if one does."""
        if self.repeated is None:
            return None
        members = self.repeated.system.members
        cap, mine, own = (tasks * self.repeated.task_share)[members], weights[members], past[members]
        kept = self.repeated.kept.get(True)
        t = np.inf if kept is None else kept.level(cap, mine, own)
        if np.isinf(t):
            kept = self.repeated.kept.get(False)
        found = None if kept is None else kept.solve(cap, mine, t, own)
        if found is None:
            return None
        return Solution(self.past.point(found.x, past), self._stages(found.t, found.prices, cap, mine, own, weights, past))

    def _stages(
        self, t: float, prices: FloatArray | None, cap: FloatArray, mine: FloatArray, own: FloatArray, weights: FloatArray, past: FloatArray
    ) -> tuple[Stage, ...]:
        """Return the level, and those of users whose past exceeds it, all at the same prices; users at their caps need no proof."""
        assert self.repeated is not None
        members = self.repeated.system.members
        stages: list[Stage] = []
        if prices is not None:
            waits = mine * t <= own
            level = members[(cap > mine * t - own) & ~waits]
            stages.append(Stage(t, level, self.past.prices(prices, weights, past, t)))
            waiting = members[waits & (cap > 0)]
            for value in np.unique(past[waiting] / weights[waiting]):
                users = waiting[past[waiting] / weights[waiting] == value]
                stages.append(Stage(float(value), users, self.past.prices(prices, weights, past, float(value) * (1 + SAME))))
        return tuple(stages)
