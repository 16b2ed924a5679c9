"""The largest total, and the leximins of servers one after another, in rational numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.instance.fractions import ExactArray, rational
from fairopt.program import Solution, Stage, Total
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.rational.level_programs import LevelPrograms
from fairopt.solvers.rational.levels import solve_leximin, stopper

__all__ = ["solve_separately", "solve_total"]


def solve_total(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the largest total: the level of a single agent, with the coefficients of the goal as worths of tasks.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    goal = program.goal_as(Total)

    worth = goal.weights[program.program.pair_users] * program.utilities
    programs = LevelPrograms(program, [(np.arange(program.n_pairs), worth.tolist())], deadline, stopper(program, deadline, ()))
    level = programs.solve([rational(0)], [rational(1)])
    return Solution(level.x, prices=level.prices, iterations=programs.iterations + programs.pivots, programs_solved=programs.programs)


def solve_separately(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the leximin of each server in turn; the ``part`` of a stage is its server.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    x: ExactArray = np.full(program.n_pairs, rational(0), dtype=object)
    stages: list[Stage] = []
    iterations = programs = 0
    for server in np.unique(program.program.pair_servers).tolist():
        part, columns, limits = program.part(server, x)
        found = solve_leximin(part, deadline)
        x[columns] = found.x
        for stage in found.stages:
            prices = np.full(program.bounds.size, rational(0), dtype=object)
            prices[limits] = stage.prices
            stages.append(replace(stage, prices=prices, part=server))
        iterations, programs = iterations + found.iterations, programs + found.programs_solved
    return Solution(x, tuple(stages), iterations=iterations, programs_solved=programs)
