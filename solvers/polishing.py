"""What makes an approximate answer of any engine exact: the equations that its goal has at an optimum."""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.program import FinishTimes, Nested, Program, Solution, TreeFilling
from fairopt.solvers.backend import NO_LIMIT, Deadline

__all__ = ["polishes"]


def polishes(program: Program, solution: Solution, deadline: Deadline = NO_LIMIT) -> Iterator[tuple[str, Solution]]:
    """Yield what may be better than an approximate answer from any engine, with the name of the method: solutions of its own equations.

    Nothing for goals that have no polish, where the equations do not show, and after the deadline; at the deadline a polish by steps ends
    with what it has. Whether a polished answer is better, the caller certifies.
    """
    if program.integral or deadline.left == 0.0:
        return
    if not program.down_closed:
        from fairopt.solvers.active_sets.floored import polish_floored
        from fairopt.solvers.active_sets.ruled import polish_along_powers, polish_ruled

        floored = polish_floored(program, solution)
        if floored is not None:
            yield "active sets", floored
        for steps in (polish_ruled, polish_along_powers) if floored is None else (polish_ruled,):
            near = steps(program, solution, deadline) if deadline.left > 0.0 else None
            if near is not None:
                yield "primal-dual steps", near
        return
    if program.goal.has_levels or isinstance(program.goal, FinishTimes):
        from fairopt.solvers.leximin.polish import polishes as of_levels

        delay = program.goal.delay if isinstance(program.goal, FinishTimes) else None
        yield from (("level equations", found) for found in of_levels(program, solution, delay))
        return
    if isinstance(program.goal, TreeFilling):
        from fairopt.solvers.leximin.tree_polish import polish_tree

        filled = polish_tree(program, program.goal, solution)
        if filled is not None:
            yield "level equations", filled
        return
    if isinstance(program.goal, Nested):
        from fairopt.solvers.leximin.nested_polish import polish_nested

        nested = polish_nested(program, program.goal, solution)
        if nested is not None:
            yield "level equations", nested
        return
    if program.goal.is_equilibrium:
        from fairopt.solvers.equilibrium.polish import polish as of_equilibria

        found = of_equilibria(program, solution, deadline)
    else:
        from fairopt.solvers.active_sets.polish import polish

        found = polish(program, solution)
    if found is not None:
        yield "active sets", found


def long_polishes(program: Program, solution: Solution, deadline: Deadline) -> Iterator[tuple[str, Solution]]:
    """Yield what may be better still, and takes about as long as the answer took."""
    if program.goal.has_levels and program.down_closed and not program.integral and deadline.left > 0.0:
        from fairopt.solvers.leximin.polish import with_other_prices

        yield from (("least prices", found) for found in with_other_prices(program, solution, deadline))
