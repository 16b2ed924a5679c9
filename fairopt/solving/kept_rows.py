"""Programs in fractions whose rows of what queues keep are made as answers exceed them (`fairopt.program.kept_parts`)."""

from __future__ import annotations

from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.program.kept_parts import within_kept
from fairopt.solvers import solve_exactly
from fairopt.solvers.backend import Deadline
from fairopt.solving.enclosures import answer_in_floats

__all__ = ["exactly_within_kept"]


def exactly_within_kept(program: ExactProgram, deadline: Deadline) -> tuple[ExactProgram, Solution]:
    """Solve with more and more rows of what queues keep, until the answer exceeds none; return the last program and its answer."""

    def solve(program: ExactProgram) -> tuple[tuple[ExactProgram, Solution], ExactProgram | None]:
        solution = solve_exactly(program, deadline, lambda: answer_in_floats(program, deadline))
        return (program, solution), program.with_broken(*solution.points)

    *before, (last, solution) = within_kept(program, solve)
    return last, solution.counting(*(each for _, each in before))
