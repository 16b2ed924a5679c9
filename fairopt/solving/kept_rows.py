"""Programs in fractions whose rows of what queues keep are made as answers exceed them (`fairopt.program.kept_parts`)."""

from __future__ import annotations

from dataclasses import replace

from fairopt.program import Solution
from fairopt.program.exact import ExactProgram
from fairopt.solvers import solve_exactly
from fairopt.solvers.backend import Deadline
from fairopt.solving.enclosures import answer_in_floats

__all__ = ["within_kept"]


def within_kept(program: ExactProgram, deadline: Deadline) -> tuple[ExactProgram, Solution]:
    """Solve with more and more rows of what queues keep, until the answer exceeds none; return the last program and its answer."""
    solution = solve_exactly(program, deadline, lambda: answer_in_floats(program, deadline))
    longer = program.with_broken(*solution.points)
    if longer is None:
        return program, solution
    found, last = within_kept(longer, deadline)
    more = {name: getattr(last, name) + getattr(solution, name) for name in ("iterations", "programs_solved")}
    return found, replace(last, **more)
