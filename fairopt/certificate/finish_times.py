"""The levels of finish times: those of the leximin of the tangents at the answer (`fairopt.program.tangents`)."""

from __future__ import annotations

from fairopt.certificate.leximin_levels import level_gaps
from fairopt.program import FinishTimes, Leximin, Program, Solution
from fairopt.program.tangents import Tangents

__all__ = ["finish_time_gaps"]


def finish_time_gaps(program: Program, goal: FinishTimes, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels."""
    tangents = Tangents.at(program, goal, solution)
    return level_gaps(tangents.program, tangents.program.goal_as(Leximin), tangents.solution)
