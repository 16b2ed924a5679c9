r"""Finish times: the leximin of z / (1 + delay z), z = U / weights, by Newton's method on its levels.

Each step solves the leximin of tangents, shares with a past (`fairopt.program.tangents`). The next tangents touch at the utilities that
reach its levels. What a user needs for a level is convex in the level, so a step overestimates a level, and the next ones come down to it,
quadratically in the end; a level above follows once those below it are right. Far from the answer a level may need far more than there is:
so tangents stay near what users have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.program import FinishTimes, Leximin, Program, Solution
from fairopt.program.past import WithPast
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.levels import solve_levels

__all__ = ["solve_finish_times"]

_MOST_STEPS = 60
_FURTHER, _NEARER = 2.0, 1000.0  # times: a tangent touches no further beyond the answer, and no nearer than this part of where it touched
_NEAR = 1e-12  # relative: tangents that touch so near to the answer are those at the answer
_LEVELS = 1e-10  # the tolerance of each leximin


def solve_finish_times(program: Program, goal: FinishTimes, deadline: Deadline) -> Solution:
    """Return the answer with its levels; prices are those of the limits of the program."""
    both = WithPast.of(replace(program, goal=Leximin(goal.weights)))
    most = program.per_user(program.utilities * program.largest())
    touching = most / program.members.size
    iterations = programs = 0
    apart, best = np.inf, None
    for _ in range(_MOST_STEPS):
        weights, past = goal.tangent(touching)
        tangents = both.at(program.limits.bounds, weights, past)
        found = solve_levels(tangents, tangents.goal_as(Leximin), _LEVELS, deadline)
        iterations, programs = iterations + found.iterations, programs + found.programs_solved
        x = found.x[both.now]
        utilities = program.per_user(program.utilities * x)
        moved = np.abs(utilities - touching) / np.where(touching > 0, np.maximum(utilities, touching), 1.0)
        before, apart = apart, float(moved.max(initial=0.0))
        if best is None or apart < best[0]:
            best = apart, found, x
        if apart <= _NEAR or (before < 1e-6 and apart >= before):
            break
        near = np.maximum(_FURTHER * utilities, touching / _NEARER)
        touching = np.minimum(np.minimum(goal.needed((past + utilities) / weights), near), most)
    assert best is not None
    _, found, x = best
    stages = tuple(stage if stage.prices is None else replace(stage, prices=stage.prices[: len(program.limits)]) for stage in found.stages)
    return Solution(x, stages, iterations=iterations, programs_solved=programs)
