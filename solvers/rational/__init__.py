"""Programs in rational numbers: linear ones are solved in floats, lifted to fractions, and finished by rational pivots.

==================  ====================================================================================================
``systems``         square systems of equations: what is triangular by hand, the rest by FLINT
``simplex``         a linear program from any basis to an optimal one
``level_programs``  the program of one level: in floats for a basis, then in fractions
``levels``          leximins and equal levels
``totals``          totals, and the leximins of servers one after another
==================  ====================================================================================================

The answer is proved by `fairopt.certificate.exact`, which knows nothing of these modules.
"""

# FLINT is imported when a program is solved, so that ``import fairopt`` stays light.

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from fairopt.program import Equalize, Goal, Leximin, Separate, Solution, Total
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline

__all__ = ["EXACT_GOALS", "solve_exactly"]

EXACT_GOALS: dict[type[Goal], tuple[str, str]] = {
    Leximin: ("levels", "solve_leximin"),
    Equalize: ("levels", "solve_leximin"),
    Total: ("totals", "solve_total"),
    Separate: ("totals", "solve_separately"),
}
"""Of each kind of goal, the module and the function that solve it: (program, deadline) -> Solution, in rationals of FLINT."""


def solve_exactly(program: ExactProgram, deadline: Deadline) -> Solution:
    """Return the answer of a program in rationals; its goal is one of `EXACT_GOALS`.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    module, name = EXACT_GOALS[type(program.goal)]
    solve: Callable[[ExactProgram, Deadline], Solution] = getattr(import_module(f"fairopt.solvers.rational.{module}"), name)
    return solve(program, deadline)
