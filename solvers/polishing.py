"""What makes an approximate answer of any engine exact: the equations that its goal has at an optimum."""

from __future__ import annotations

from collections.abc import Iterator

from fairopt.program import Equalize, Equilibrium, Leximin, Program, Solution
from fairopt.solvers.alpha_fair import polish as alpha_fair_polish
from fairopt.solvers.equilibrium import polish as equilibrium_polish
from fairopt.solvers.leximin import polish as leximin_polish

__all__ = ["polishes"]


def polishes(program: Program, solution: Solution) -> Iterator[tuple[str, Solution]]:
    """Yield what may be better than an approximate answer from any engine, with the name of the method: solutions of its own equations.

    Nothing for goals that have no polish, and where the equations do not show. Whether a polished answer is better, the caller certifies.
    """
    if program.integral:
        return
    if isinstance(program.goal, Leximin | Equalize):
        yield from (("level equations", found) for found in leximin_polish.polishes(program, solution))
        return
    of_active_sets = equilibrium_polish.polish if isinstance(program.goal, Equilibrium) else alpha_fair_polish.polish
    found = of_active_sets(program, solution)
    if found is not None:
        yield "active sets", found
