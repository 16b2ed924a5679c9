"""Whole tasks by branch and cut: which search a program takes. The solver of its programs may be another than HiGHS."""

from __future__ import annotations

from fairopt.program import AlphaFair, Program, Solution, TreeFilling
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.rows import Maker, by_highs
from fairopt.solvers.via_highs.ruled_whole import fewest_whole_ruled, solve_whole_ruled
from fairopt.solvers.via_highs.whole_alpha_fair import solve_whole_alpha_fair
from fairopt.solvers.via_highs.whole_floors import solve_whole_guarantees
from fairopt.solvers.via_highs.whole_promises import solve_whole_promises
from fairopt.solvers.via_highs.whole_tasks import solve_whole
from fairopt.solvers.via_highs.whole_tree import solve_whole_tree

__all__ = ["solve_whole_program"]


def solve_whole_program(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Return the leximin, the largest total or the best alpha-fair sum of whole tasks, with rules and in a tree of queues, too.

    Parameters
    ----------
    branch_and_cut : callable
        Makes the models of programs with whole numbers. Relaxations, bounds and packings are those of HiGHS.

    Raises
    ------
    NoSolution
        At the deadline, with the best tasks found.
    """
    if isinstance(program.goal, TreeFilling):
        if not program.down_closed and not program.goal.parts:  # nobody rises, and the rules hold all the same
            return fewest_whole_ruled(program, deadline, branch_and_cut)
        if not program.down_closed and not program.goal.rules_at_end and any(part.guarantees for part in program.goal.parts):
            return solve_whole_promises(program, program.goal, deadline, branch_and_cut)
        if program.down_closed and any(part.guarantees for part in program.goal.parts):
            return solve_whole_guarantees(program, program.goal, deadline, branch_and_cut)
        return solve_whole_tree(program, program.goal, deadline, branch_and_cut)
    if isinstance(program.goal, AlphaFair):
        return solve_whole_alpha_fair(program, program.goal, deadline, branch_and_cut)
    if not program.down_closed:
        return solve_whole_ruled(program, deadline, branch_and_cut)
    return solve_whole(program, deadline, branch_and_cut)
