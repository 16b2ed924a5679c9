"""The answer to a question in floats: find it, certify it, and bring it back to the rows that were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairopt.allocation import Optimum
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Equalize, Leximin, Program
from fairopt.solvers import candidates
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solving.answer import every_level, levels_of, prices_of, queue_prices_by_stage, queue_prices_of, shares_of
from fairopt.solving.policy import Found, find, find_by_reduction, other_engines
from fairopt.solving.posing import Posed
from fairopt.wording import SMALLER_RATIOS, figure

__all__ = ["InFloats", "require"]

_FEW = 100  # pairs; of so few, fractions take little time, and what rounding hides is looked for there
_RESOLVED = 1e12  # the largest ratio of weights, or of marginal utilities, that double precision resolves
_FAR_APART = 1e3  # from this ratio on, weights are the likeliest reason


class InFloats:
    """How `fairopt.solve` answers a question in floats: by the engines that can, with residuals within a tolerance.

    Parameters
    ----------
    posed : Posed
    question : Optimum

    Raises
    ------
    Unsupported, SolverUnavailable
        No engine can solve the program.
    """

    def __init__(self, posed: Posed, question: Optimum) -> None:
        if question.integral and (reason := posed.program.goal.no_whole_tasks):  # the order they need is not defined, or has no closed form
            raise Unsupported(f"no engine finds whole tasks in this tree: {reason}, leave integral out, or use a greedy schedule")
        self.posed, self.question = posed, question
        self.engines = candidates(posed.program, question.solver, question.solver_options)

    def find(self, deadline: Deadline) -> Found:
        """Return the best answer of the engines.

        Raises
        ------
        NoSolution
            ``known`` has the whole tasks that were found, on the rows that were given, and the engine. Also at the deadline, where what
            was found until then is not within the tolerance; then ``known`` is empty.
        """
        posed, question = self.posed, self.question
        try:
            if question.integral or posed.asked.is_symmetric or not posed.program.down_closed:
                found = find(posed.program, self.engines, question.tolerance, deadline)
            else:
                found, self.engines = find_by_reduction(
                    posed.program, question.solver, question.tolerance, deadline, question.solver_options
                )
        except NoSolution as error:
            if question.integral and "tasks" in error.known:  # of the pairs of single servers
                error.known["tasks"] = posed.tasks(posed.program.table(error.known["tasks"]))
                error.known["solver"] = self.engines[0].name
            raise
        few = found.program.n_pairs <= _FEW
        if not (found.certificate.unsure if few else found.certificate.worst) <= question.tolerance:
            from fairopt.solving.small_fractions import in_small_fractions

            found = in_small_fractions(found, posed.notion, posed.small, deadline)
        if deadline.left == 0.0 and not found.certificate.qualifier and not found.certificate.worst <= question.tolerance:
            raise deadline.passed({})
        return found

    def certified(self, found: Found) -> tuple[FloatArray, Certificate]:
        """Return the tasks on the rows that were given, and the certificate.

        Raises
        ------
        CertificateError
        """
        posed, question = self.posed, self.question
        tasks = posed.tasks(found.program.table(found.solution.x))
        excess = Certificate(allocation_excess(posed.instance, tasks, posed.sharing), 0.0, 0.0, whole_tasks=question.integral)
        certificate = Certificate.combine([found.certificate, excess, *posed.of_stages])
        require(certificate, found.program, self.engines, question.tolerance)
        return tasks, certificate

    def answer(self, found: Found, tasks: FloatArray) -> dict[str, Any]:
        """Return the attributes of the allocation (`fairopt.Allocation`)."""
        posed, solution, program = self.posed, found.solution, found.program
        merging, sharing = posed.merging, posed.sharing
        shares = posed.asked.shares(posed.instance, tasks)
        shares = shares_of(program, program.table(solution.x), merging) if shares is None else shares
        by_stage = queue_prices_by_stage(program, solution)
        levels = every_level(levels_of(program, solution, merging, sharing, by_stage), program, merging, posed.instance, shares)
        return {
            "solver": found.engine or self.engines[0].name,
            "tasks": tasks,
            "shares": shares,
            "prices": prices_of(program, solution, merging, sharing, levels),
            "queue_prices": queue_prices_of(program, solution, by_stage),
            "levels": levels,
            "seconds": solution.seconds,
            "details": _details(found),
            "trace": solution.trace,
        }


def require(certificate: Certificate, program: Program, engines: Sequence[Backend], tolerance: float) -> None:
    """Raise where the certificate fails, and say which other engine may do."""
    if not certificate.worst <= tolerance:
        from fairopt.solving.small_fractions import is_small

        others = other_engines(program, engines)
        instead = f'solver="{others[0]}"' if others else _easier(program)
        small = is_small(program)  # then fractions were tried, for a number of steps
        certificate.require(
            tolerance,
            program.name,
            *(engine.name for engine in engines),
            tried="fractions took too many steps, or gave users other tasks" if small else "",
            instead=f"{instead}, exact=True" if small and "exact=True" not in instead else instead,
        )


def _easier(program: Program) -> str:
    """Return what to ask instead where double precision does not hold the answer: a steep goal magnifies ratios of weights."""
    goal = program.goal
    if isinstance(goal, AlphaFair) and goal.alpha > 1:
        exact = "exact=True, " if goal.alpha == int(goal.alpha) else ""
        apart = figure(_RESOLVED ** (1 / goal.alpha))
        return (
            f'{exact}a smaller alpha, "max-min" (the limit of large alpha), or data closer together (at alpha = {goal.alpha:g}, double '
            f"precision does not resolve weighted utilities that differ by a factor above {apart})"
        )
    weights = goal.weights[goal.weights > 0] if isinstance(goal, Leximin | Equalize) else np.ones(1)
    apart_by = float(weights.max()) / float(weights.min()) if weights.size else 1.0
    if not _FAR_APART < apart_by < _RESOLVED:
        return SMALLER_RATIOS
    return (
        f"exact=True (in fractions: slow with many users), weights closer together (the largest is {figure(apart_by)} times the "
        "smallest: rounding of what the largest users pay hides what the smallest could gain)"
    )


def _details(found: Found) -> dict[str, Any]:
    solution = found.solution
    details: dict[str, Any] = {"iterations": solution.iterations, "programs_solved": solution.programs_solved, "engines": found.engines}
    for name, value in (("gap", solution.gap), ("bound", solution.bound), ("groups", solution.groups), ("finished_by", found.finished_by)):
        if value is not None:
            details[name] = value
    return details
