"""Programs in rational numbers: linear ones are solved in floats, lifted to fractions, and finished by rational pivots.

==================  ====================================================================================================
``effort``          how long a program takes, before it is solved
``systems``         square systems of equations: what is triangular by hand, the rest by FLINT
``simplex``         a linear program from any basis to an optimal one
``level_programs``  the program of one level: in floats for a basis, then in fractions
``levels``          leximins and equal levels
``ruled``           leximins and totals of programs with rules
``totals``          totals, and the leximins of servers one after another
``equilibrium``     equilibria of servers, from the active sets of one in floats
``alpha_fair``      alpha-fair goals and trade-offs to any number of digits, from the active sets of an answer in floats
``central_end``     the active sets of an alpha-fair optimum by a path in many digits, where floats do not show them
``enclosing``       the data of alpha-fair goals and trade-offs in rationals
``reduced_kkt``     their KKT conditions on active sets, reduced to a few equations, and Newton's method
``placing``         tasks on servers that have the utilities of an alpha-fair answer
``largest``         any linear program
``near``            solutions of underdetermined equations near floats, and the way to a vertex
``servers``         the data of an equilibrium of servers in rationals
``trees``           trees of queues, filled part by part
``nested``          trees of queues that are fair among queues first
``settings``        which sets are guessed from floats, how many digits are computed, when to give up
==================  ====================================================================================================

The answer is proved by `fairopt.certificate.exact`, which knows nothing of these modules.
"""

# FLINT is imported when a program is solved, so that ``import fairopt`` stays light.

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from fairopt.instance.fractions import ExactArray
from fairopt.program import Equalize, Equilibrium, Leximin, Nested, Separate, Solution, Total, TreeFilling
from fairopt.program.exact import ExactProgram
from fairopt.solvers.backend import Deadline

__all__ = ["EXACT_GOALS", "largest_exactly", "points_near", "seconds_of_a_level", "solve_exactly"]

EXACT_GOALS: dict[type[Any], tuple[str, str]] = {
    Leximin: ("levels", "solve_leximin"),
    Equalize: ("levels", "solve_leximin"),
    Total: ("totals", "solve_total"),
    Separate: ("totals", "solve_separately"),
    Equilibrium: ("equilibrium", "solve_equilibrium"),
    TreeFilling: ("trees", "solve_filling"),
    Nested: ("nested", "solve_nested"),
}
"""Of each kind of goal, the module and the function that solve it: (program, deadline) -> Solution, in rationals of FLINT.

That for an equilibrium starts from one in floats: (program, solution in floats, deadline).
"""


def seconds_of_a_level(program: ExactProgram) -> float:
    """Return about how many seconds a level takes in fractions."""
    found: float = import_module("fairopt.solvers.rational.effort").seconds_of_a_level(program)
    return found


def solve_exactly(program: ExactProgram, deadline: Deadline, in_floats: Callable[[], Solution] | None = None) -> Solution:
    """Return the answer of a program in rationals; its goal is one of `EXACT_GOALS`.

    ``in_floats`` returns the answer in floats, which only an equilibrium needs.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    module, name = EXACT_GOALS[type(program.goal)]
    solve: Callable[..., Solution] = getattr(import_module(f"fairopt.solvers.rational.{module}"), name)
    if not program.program.down_closed and isinstance(program.goal, Leximin | Total):
        ruled: Any = import_module("fairopt.solvers.rational.ruled")
        solve = ruled.solve_ruled if program.goal.has_levels else ruled.total_ruled
        return solve(program, deadline)
    if not program.goal.is_equilibrium:
        return solve(program, deadline)
    assert in_floats is not None
    return solve(program, in_floats(), deadline)


def largest_exactly(
    cost: Sequence[Any], entries: Sequence[tuple[int, int, Any]], right: Sequence[Any], deadline: Deadline
) -> tuple[ExactArray, ExactArray] | None:
    """Return the z >= 0 of the largest cost z within A z <= right, and prices, both in rationals; None where there is none (`.largest`)."""
    find: Callable[..., tuple[ExactArray, ExactArray] | None] = import_module("fairopt.solvers.rational.largest").largest
    return find(cost, entries, right, deadline)


def points_near(program: ExactProgram, near: Solution, digits: int, deadline: Deadline) -> list[Solution]:
    """Return points with prices, in rationals, near the optimum of an alpha-fair goal or a trade-off (`.alpha_fair.points_near`)."""
    find: Callable[..., list[Solution]] = import_module("fairopt.solvers.rational.alpha_fair").points_near
    return find(program, near, digits, deadline)
