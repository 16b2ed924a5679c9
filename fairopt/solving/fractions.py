"""Instance + notion -> an allocation in fractions, proved without a tolerance: ``solve(..., exact=True)``.

The steps are those of `fairopt.solving.optimum`: merge rows that are identical in fractions, formulate, solve, prove, spread the answer
over the given rows. The float program gives the structure, and the notion its numbers (`fairopt.models.Notion.in_fractions`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.allocation import Allocation, ExactAnswer, Level, Optimum
from fairopt.certificate import Certificate
from fairopt.certificate.exact import prove
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import Instance
from fairopt.instance.aggregation import Merging
from fairopt.instance.exact_merging import merge_exactly, unmerged_exactly
from fairopt.instance.fractions import ExactArray, from_rational, from_rationals, rational, rationals
from fairopt.models import Notion, Sharing
from fairopt.program import AlphaFair, Equilibrium, Feature, Solution, Stage, Tradeoff
from fairopt.program.checking import check_program
from fairopt.program.exact import ExactProgram
from fairopt.program.exact_reduction import ExactReduction
from fairopt.solvers import EXACT_GOALS, seconds_of_a_level
from fairopt.solvers.backend import Deadline
from fairopt.solving.alternatives import best_alternative
from fairopt.solving.answer import every_level, levels_of, prices_of, queue_prices_by_stage, queue_prices_of
from fairopt.solving.contradictions import with_contradiction
from fairopt.solving.enclosures import DIGITS, answer_in_floats, enclose, in_floats_above, is_enclosed
from fairopt.solving.formulation import with_rules
from fairopt.solving.kept_guarantees import with_guarantees
from fairopt.solving.kept_rows import within_kept
from fairopt.wording import duration, plural

__all__ = ["ENGINE", "fraction", "solve_in_fractions"]

ENGINES: dict[type[Any], str] = {Equilibrium: "rational-equations", AlphaFair: "rational-newton", Tradeoff: "rational-newton"}
MOST_SECONDS = 1800.0  # that a level may take, by benchmarks/in_fractions.py
ENGINE = "rational-simplex"  # of all other goals


def solve_in_fractions(instance: Instance, notion: Notion, sharing: Sharing, deadline: Deadline, question: Optimum) -> Allocation:
    """Return the allocation of a notion in fractions.

    Raises
    ------
    Unsupported
        For whole tasks, for an engine of the caller's choice, for goals that have no answer in fractions, and for programs so large that
        a level would take more than `MOST_SECONDS`; the message says how long.
    NoSolution
        At the deadline; where no answer in fractions was found near that in floats; where fewer digits than asked for could be proved.
    CertificateError
        If the answer fails its proof.
    """
    if question.integral:
        raise Unsupported("exact=True divides tasks, and integral=True does not; leave one of them out")
    if question.solver is not None:
        raise Unsupported(f'exact=True has an engine of its own, so there is no choice of solver; leave "{question.solver}" out')
    started = time.perf_counter()
    given, (instance, _) = instance, with_guarantees(instance, notion, sharing, exact=True, deadline=deadline)
    utility = notion.exact_utility
    merging = _merged(instance, notion, utility)
    small = merging.instance
    reduced = notion if utility is None else notion.changed(utility=merging.restrict(utility))
    floats = notion if utility is None else notion.changed(utility=merging.restrict(utility.astype(np.float64)))
    structure = floats.formulate(small, sharing=sharing, integral=False)
    if not notion.is_symmetric:
        check_program(structure)
    structure = with_rules(structure, notion, instance)
    program = reduced.in_fractions(small.exact, structure)
    choice = program.goal.feature is Feature.DISJUNCTIVE
    if type(program.goal) not in EXACT_GOALS and not is_enclosed(program) and not choice:
        raise Unsupported(f'"{notion.name}" has no answer in fractions with these options; leave exact out')
    reduction = None if notion.is_symmetric else ExactReduction.of(program)
    _refuse_too_large(program if reduction is None else reduction.program)
    if deadline.left == 0.0:
        raise deadline.passed({"levels": []})
    formulated = time.perf_counter()
    radius = Fraction(0)
    if choice:
        solution = best_alternative(program, answer_in_floats(program, deadline), deadline)
        solved = time.perf_counter()
    elif is_enclosed(program):
        solution, radius = enclose(program, DIGITS if question.digits is None else question.digits, deadline)
        solved = time.perf_counter()
    else:
        try:
            if reduction is None:
                program, solution = within_kept(program, deadline)
            else:
                solution = reduction.spread(within_kept(reduction.program, deadline)[1])
        except NoSolution as error:
            raise with_contradiction(program.program, error, deadline) from None
        solved = time.perf_counter()
        prove(program, solution)
    pairs = _table(program, solution.x)
    tasks = notion.in_tasks(instance.exact, merging.spread(pairs, utility))
    certified = time.perf_counter()

    stages = () if program.goal.inner is not program.goal else _joined(solution.stages)
    shares = notion.shares(instance.exact, tasks)
    shares = np.asarray(_shares(program, pairs, merging) if shares is None else shares)
    prices, levels, of_queues, steps = _priced(program, solution, stages, merging, sharing, shares)
    values = np.array([level.value for level in levels], dtype=object)
    exact = ExactAnswer(tasks, shares, values, radius, prices, levels, of_queues, steps)
    return Allocation.of(
        question,
        given,
        solver=ENGINES.get(type(program.goal), ENGINE),
        sharing=sharing,
        certificate=_certificate(program, radius, solution.gap),
        moments=(started, formulated, solved, certified),
        details={"iterations": solution.iterations, "programs_solved": solution.programs_solved}
        | ({} if solution.gap is None else {"gap": solution.gap}),
        exact=exact,
    )


def _certificate(program: ExactProgram, radius: Fraction, gap: float | None) -> Certificate:
    """Return a certificate without residuals, with the relative distance of users from the optimum, or with a gap that is not proved."""
    if gap is not None:
        return Certificate(0.0, gap, 0.0, reported_gap=True)
    distance = 0.0 if radius == 0 else in_floats_above(radius)
    return Certificate(0.0, 0.0, distance, exact=radius == 0, distance=distance if is_enclosed(program) else None)


def _refuse_too_large(program: ExactProgram) -> None:
    """Refuse a program of which one level would take longer than anybody waits."""
    seconds = seconds_of_a_level(program)
    if seconds > MOST_SECONDS:
        users, limits = program.program.members.size, len(program.program.limits)
        raise Unsupported(
            f"{plural(users, 'user')} that differ and {plural(limits, 'limit')} would take about {duration(seconds)} a level in fractions, "
            f"more than {duration(MOST_SECONDS)}; leave exact out, write numbers with fewer digits, or ask about a part of the cluster"
        )


def _merged(instance: Instance, notion: Notion, utility: ExactArray | None) -> Merging:
    """Return the instance with identical rows merged where the notion allows it, and the way back in fractions."""
    alpha = None if instance.rules else notion.merge_alpha if notion.treats_alike(instance) else None
    return merge_exactly(instance, utility, by_weight=alpha == 1.0) if alpha in (0.0, 1.0) else unmerged_exactly(instance)


def _table(program: ExactProgram, x: ExactArray) -> ExactArray:
    """Return a value per pair as a table of Fractions, (users, servers)."""
    names = program.program
    table = np.full((len(names.users), len(names.servers)), Fraction(0), dtype=object)
    table[names.pair_users, names.pair_servers] = from_rationals(x)
    return table


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
