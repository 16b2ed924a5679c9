"""The answer to a question in fractions, proved without a tolerance: ``solve(..., exact=True)``.

The float program gives the structure, and the notion its numbers (`fairopt.models.Notion.in_fractions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.allocation import ExactAnswer, Level, Optimum
from fairopt.certificate import Certificate, allocation_excess
from fairopt.certificate.exact import prove
from fairopt.errors import CertificateError, Unsupported
from fairopt.instance.aggregation import Merging
from fairopt.instance.fractions import ExactArray, from_rational, from_rationals, rational, rationals
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import AlphaFair, Equilibrium, Feature, Solution, Stage, Tradeoff
from fairopt.program.exact import ExactProgram
from fairopt.program.exact_reduction import ExactReduction
from fairopt.solvers import EXACT_GOALS, seconds_of_a_level
from fairopt.solvers.backend import Deadline
from fairopt.solving.alternatives import best_alternative
from fairopt.solving.answer import every_level, levels_of, prices_of, queue_prices_by_stage, queue_prices_of
from fairopt.solving.enclosures import DIGITS, answer_in_floats, enclose, in_floats_above, is_enclosed
from fairopt.solving.kept_rows import exactly_within_kept
from fairopt.solving.posing import Posed
from fairopt.wording import duration, plural

__all__ = ["ENGINE", "InFractions", "fraction"]

ENGINES: dict[type[Any], str] = {Equilibrium: "rational-equations", AlphaFair: "rational-newton", Tradeoff: "rational-newton"}
MOST_SECONDS = 1800.0  # that a level may take, by benchmarks/in_fractions.py
ENGINE = "rational-simplex"  # of all other goals


@dataclass(frozen=True, slots=True, eq=False)
class ExactFound:
    """The answer to a program in fractions.

    Attributes
    ----------
    program : ExactProgram
        With all rows of what queues keep that were needed.
    solution : Solution
        In rationals.
    radius : Fraction
        The relative distance that any user is proved to have at most from the optimum; 0 but of goals whose optimum is irrational.
    """

    program: ExactProgram
    solution: Solution
    radius: Fraction = Fraction(0)


class InFractions:
    """How `fairopt.solve` answers a question in fractions.

    Parameters
    ----------
    posed : Posed
    question : Optimum

    Raises
    ------
    Unsupported
        For goals that have no answer in fractions, and for programs so large that a level would take more than `MOST_SECONDS`; the
        message says how long.
    """

    def __init__(self, posed: Posed, question: Optimum) -> None:
        self.posed, self.question = posed, question
        self.program = posed.notion.in_fractions(posed.small.exact, posed.program)
        self.chooses = self.program.goal.feature is Feature.DISJUNCTIVE
        if type(self.program.goal) not in EXACT_GOALS and not is_enclosed(self.program) and not self.chooses:
            raise Unsupported(f'"{posed.asked.name}" has no answer in fractions with these options; leave exact out')
        self.reduction = None if posed.asked.is_symmetric else ExactReduction.of(self.program)
        _refuse_too_large(self.program if self.reduction is None else self.reduction.program)

    def find(self, deadline: Deadline) -> ExactFound:
        """Return the answer of an engine.

        Raises
        ------
        NoSolution
            At the deadline; where no answer in fractions was found near that in floats; where fewer digits than asked for could be proved.
        """
        program, digits = self.program, self.question.digits
        if self.chooses:
            return ExactFound(program, best_alternative(program, answer_in_floats(program, deadline), deadline))
        if is_enclosed(program):
            return ExactFound(program, *enclose(program, DIGITS if digits is None else digits, deadline))
        if self.reduction is None:
            return ExactFound(*exactly_within_kept(program, deadline))
        return ExactFound(program, self.reduction.spread(exactly_within_kept(self.reduction.program, deadline)[1]))

    def certified(self, found: ExactFound) -> tuple[ExactArray, Certificate]:
        """Return the tasks on the rows that were given, and a certificate: that of a proof, of a distance, or of a gap that is not proved.

        Raises
        ------
        CertificateError
        """
        program, solution, radius = found.program, found.solution, found.radius
        if not (self.chooses or is_enclosed(program)):
            prove(program, solution)
        tasks = self.posed.tasks(program.table(solution.x))
        excess = allocation_excess(self.posed.instance, np.asarray(tasks, float), self.posed.sharing)
        if excess > CERTIFIED:  # the proof is that of the merged program; this is what its users share
            name = self.posed.asked.name
            raise CertificateError(
                f'the answer in fractions for "{name}" exceeds a limit of the instance by {excess:.2g} of it; leave exact out'
            )
        if solution.gap is not None:
            return tasks, Certificate(0.0, solution.gap, 0.0, reported_gap=True)
        distance = 0.0 if radius == 0 else in_floats_above(radius)
        return tasks, Certificate(0.0, 0.0, distance, exact=radius == 0, distance=distance if is_enclosed(program) else None)

    def answer(self, found: ExactFound, tasks: ExactArray) -> dict[str, Any]:
        """Return the attributes of the allocation (`fairopt.Allocation`)."""
        posed, program, solution, merging = self.posed, found.program, found.solution, self.posed.merging
        assert merging is not None  # tasks are divided
        stages = () if program.goal.inner is not program.goal else _joined(solution.stages)
        shares = posed.asked.shares(posed.instance.exact, tasks)
        shares = np.asarray(_shares(program, program.table(solution.x), merging) if shares is None else shares)
        prices, levels, of_queues, steps = _priced(program, solution, stages, merging, posed.sharing, shares)
        values = np.array([level.value for level in levels], dtype=object)
        details = {"iterations": solution.iterations, "programs_solved": solution.programs_solved}
        return {
            "solver": ENGINES.get(type(program.goal), ENGINE),
            "exact": ExactAnswer(tasks, shares, values, found.radius, prices, levels, of_queues, steps),
            "details": details if solution.gap is None else details | {"gap": solution.gap},
        }


def _refuse_too_large(program: ExactProgram) -> None:
    """Refuse a program of which one level would take longer than anybody waits."""
    seconds = seconds_of_a_level(program)
    if seconds > MOST_SECONDS:
        users, limits = program.program.members.size, len(program.program.limits)
        raise Unsupported(
            f"{plural(users, 'user')} that differ and {plural(limits, 'limit')} would take about {duration(seconds)} a level in fractions, "
            f"more than {duration(MOST_SECONDS)}; leave exact out, write numbers with fewer digits, or ask about a part of the cluster"
        )


def _shares(program: ExactProgram, pairs: ExactArray, merging: Merging) -> ExactArray:
    """Return U[n] / phi[n] of goals with levels, U[n] of the others, as `fairopt.solving.answer.shares_of` does in floats."""
    names, goal = program.program, program.goal
    users, servers = names.pair_users, names.pair_servers
    counted = rationals(pairs[users, servers]) * program.utilities
    if goal.inner is not goal:
        table = np.full(pairs.shape, Fraction(0), dtype=object)
        table[users, servers] = from_rationals(counted / goal.inner.weights[users])
        return np.asarray(table[np.ix_(merging.user_group, merging.server_group)])
    if goal.has_levels:
        return from_rationals(program.per_user(counted / goal.weights[users]))[merging.user_group]
    return np.asarray(from_rationals(program.per_user(counted))[merging.user_group] * merging.user_part)


def _joined(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages that settle users, with stages of equal value joined, except levels of separate servers.

    A stage that is proved with floors has other prices, those of a completion, and stays by itself.
    """
    joined: list[list[Stage]] = []
    for stage in stages:
        if not stage.users.size:
            continue
        if joined and (joined[-1][0].value, joined[-1][0].part, joined[-1][0].floors) == (stage.value, stage.part, stage.floors):
            joined[-1].append(stage)
        else:
            joined.append([stage])
    return tuple(steps[0] if len(steps) == 1 else _together(steps) for steps in joined)


def _together(steps: Sequence[Stage]) -> Stage:
    """Return the steps of one level as one. The mean of their prices proves every step, since each proof is linear in its prices."""
    users = np.concatenate([step.users for step in steps])
    proofs = [step.prices for step in steps if step.prices is not None]
    return replace(steps[0], users=users, prices=np.asarray(sum(proofs[1:], proofs[0]) / len(proofs)) if proofs else None)


def _priced(
    program: ExactProgram, solution: Solution, stages: Sequence[Stage], merging: Merging, sharing: str, shares: ExactArray
) -> tuple[ExactArray | None, tuple[Level, ...], dict[str, Any], tuple[Level, ...]]:
    """Return the prices of the goal, the levels with their prices, the prices of queues, and the steps of the proof, in Fractions."""

    def fractions(prices: ExactArray | None) -> ExactArray | None:
        return None if prices is None else from_rationals(prices)

    names: Any = program.program

    def proved(stages: Sequence[Stage]) -> tuple[Solution, tuple[Level, ...], Any]:
        numbers = (replace(stage, value=fraction(stage.value), prices=fractions(stage.prices)) for stage in stages)
        exact = Solution(from_rationals(solution.x), tuple(numbers), prices=fractions(solution.prices), promised=solution.promised)
        by_stage: Any = queue_prices_by_stage(names, exact)
        return exact, levels_of(names, exact, merging, sharing, by_stage, same=None), by_stage

    exact, levels, by_stage = proved(stages)
    levels = every_level(levels, names, merging, merging.original, shares, same=0.0)
    steps = proved([stage for stage in solution.stages if stage.users.size])[1] if stages else ()
    prices: Any = prices_of(names, exact, merging, sharing, levels)
    return prices, levels, queue_prices_of(names, exact, by_stage), steps


def fraction(value: Any) -> Any:
    """Return a number of a solution in rationals as a Fraction."""
    return from_rational(rational(value))
