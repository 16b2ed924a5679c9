r"""The tangents of finish times: a leximin of shares with a past, whose levels prove those of the finish times.

The levels f[n](U) = z / (1 + delay z), z = U / weights, are concave, so each lies below its tangent at the answer, and meets it there. If
the answer is the leximin of the tangents, it is the leximin of the f: of any other allocation, what the f say is at most what the tangents
say, and at a level where the prices stop the tangents they stop the f. A tangent is a share with a past (`fairopt.program.past`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fairopt.program.goals import FinishTimes, Leximin
from fairopt.program.past import WithPast
from fairopt.program.program import Program
from fairopt.program.solution import Solution

__all__ = ["Tangents"]


class Tangents(NamedTuple):
    """The program of the tangents at an answer, and the answer to it."""

    both: WithPast
    program: Program
    solution: Solution

    @classmethod
    def at(cls, program: Program, goal: FinishTimes, solution: Solution) -> Tangents:
        """Return the tangents at a solution, whose prices are those of the limits of ``program``."""
        weights, past = goal.tangent(program.per_user(program.utilities * solution.x))
        both = WithPast.of(replace(program, goal=Leximin(goal.weights)))
        stages = tuple(
            stage if stage.prices is None else replace(stage, prices=both.prices(stage.prices, weights, past, stage.value))
            for stage in solution.stages
        )
        tangents = both.at(program.limits.bounds, weights, past)
        return cls(both, tangents, replace(solution, x=both.point(solution.x, past), stages=stages))

    def without_past(self, solution: Solution) -> Solution:
        """Return a solution of the tangents as one of the program without a past."""
        rows = len(self.both.program.limits) - self.both.past.size - self.both.capped.size
        stages = tuple(stage if stage.prices is None else replace(stage, prices=stage.prices[:rows]) for stage in solution.stages)
        return replace(solution, x=solution.x[self.both.now], stages=stages)
