"""Instance + notion -> certified allocation.

The way: check, merge identical rows, formulate, let an engine solve, certify, and bring the answer back to the rows that were given.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import InvalidInstance, NoSolution, Unsupported
from fairopt.instance import Instance
from fairopt.instance.aggregation import merge, unmerged
from fairopt.instance.remarks import remarks
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion, Sharing
from fairopt.program import AlphaFair, Program
from fairopt.program.checking import check_program
from fairopt.solvers import candidates
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solving.answer import (
    every_level,
    levels_of,
    prices_of,
    queue_prices_by_stage,
    queue_prices_of,
    shares_of,
    unexpanded,
)
from fairopt.solving.contradictions import with_contradiction as why_nothing
from fairopt.solving.formulation import checked, columns, expanded, question_of, with_rules, with_utility
from fairopt.solving.kept_guarantees import refuse_whole, with_guarantees
from fairopt.solving.policy import Found, find, find_by_classes, other_engines
from fairopt.validation import check_time_limit, check_tolerance, check_whole_number, check_yes_or_no
from fairopt.wording import SMALLER_RATIOS

__all__ = ["best_found", "solve", "without_remarks"]

_MOST_DIGITS = 1_001

log = logging.getLogger(__name__)
_SAYS: ContextVar[bool] = ContextVar("fairopt.solving.optimum", default=True)


@contextlib.contextmanager
def without_remarks() -> Iterator[None]:
    """Solve instances that are only tried, inside of a ``with`` statement: what is to be said of them is not true of the given one."""
    before = _SAYS.set(False)
    try:
        yield
    finally:
        _SAYS.reset(before)


def solve(
    instance: Instance | Program,
    notion: str | Notion | type[Notion] = "drfh",
    *,
    solver: str | None = None,
    solver_options: Mapping[str, object] | None = None,
    integral: bool = False,
    sharing: Sharing | None = None,
    tolerance: float = 1e-8,
    time_limit: float | None = None,
    allow_gap: float | None = None,
    exact: bool = False,
    digits: int | None = None,
    **options: Any,
) -> Allocation:
    """Solve for the exact fair allocation, with a certificate.

    Parameters
    ----------
    instance : Instance, or Program
        A program of `fairopt.formulate`, such as one with limits of your own (`fairopt.Program.with_limit`), has its notion, its sharing
        and its options already. The answer is over its users and servers: single servers, where it was formulated for whole tasks.
    notion : str or Notion
        An identifier of ``fairopt.NOTIONS``, or a notion of your own.
    solver : str, optional
        An identifier of ``fairopt.SOLVERS`` ("pyomo:NAME": with that solver inside); the default is the first that can.
    solver_options : mapping, optional
        Options of the solver that is named, by the names that it has for them: ``{"threads": 4}`` of "highs", ``{"Threads": 4}`` of
        "cvxpy:GUROBI". They replace fairopt's own, tolerances too; the certificate judges the answer as ever.
    integral : bool
        Whole tasks on single servers, by branch and cut.
    sharing : {"rdm", "tdm"}, optional
        Divide resources (default) or time (default for instances with rates).
    tolerance : float
        Largest residual of the certificate that is accepted, relative.
    time_limit : float, optional
        Seconds.
    allow_gap : float, optional
        With ``integral`` and a time limit: the best whole tasks that are known at the limit are the answer if their gap is at most this,
        from 0 to 1 (1: whatever is known). The gap is (bound - value) / bound, of the smallest share, or of the total; ``details`` has
        all three. Such an answer is feasible, and not proved to be the best: its certificate says "best found", and a warning is logged.
    exact : bool
        In fractions: ``allocation.exact`` has tasks, shares and levels as `fractions.Fraction`, and the proof has no tolerance
        (``certificate.exact``). An int and a Fraction of the instance are taken as they are, a float by its shortest decimal: 0.1 is
        1/10. For notions whose goal is linear (those that equalise a share, "efficiency", "uniform" and "per-server-drf") and for
        "psdsf", whose active sets are read off the answer in floats, solved in fractions and proved. The optimum of "proportional", "bbf",
        "fds" and "gfj" is irrational in general: there ``allocation.exact`` is a feasible allocation in fractions, and ``.exact.radius``
        the relative distance that the optimal utility of any user is proved to have from it at most (0 where the optimum is rational).
    digits : int, optional
        With ``exact``: the radius is at most 10^-digits; default 30. Answers in fractions have all digits.
    **options
        Of the notion: ``formulation`` (drfh, psdsf), ``utility`` (max-min, proportional), ``alpha`` (proportional), ``beta`` and
        ``lam`` (fds, gfj), ``prefer`` (bbf, psdsf), ``order``, ``seed`` and ``delay`` (psdsf).

    Raises
    ------
    InvalidInstance, Unsupported, SolverUnavailable
        Before anything is solved.
    NoSolution
        At the time limit; ``.known`` holds what is final: of whole tasks also the best allocation so far (``tasks``, which is feasible
        but not proved best), the ``value`` that it reaches (its smallest share; the total) and a ``bound`` on what any can reach.
        (`compare` and `regret` go on with that allocation, and say so; ``allow_gap`` returns it.)
    CertificateError
        If the engine's answer fails the check.

    Examples
    --------
    >>> instance = Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
    >>> solve(instance, "drfh").tasks_per_user.round(3)
    array([2.609, 3.13 , 6.261])
    >>> solve(instance, "drfh", exact=True).exact.tasks_per_user
    array([Fraction(60, 23), Fraction(72, 23), Fraction(144, 23)],
          dtype=object)
    >>> from fractions import Fraction
    >>> exact = solve(Instance([[9]], [[1], [3]]), "proportional", alpha=2, exact=True, digits=20).exact
    >>> float(exact.tasks_per_user[0]), exact.radius < Fraction(1, 10**20)
    (3.294228634059948, True)

    With a limit of your own:

    >>> from fairopt import formulate
    >>> program = formulate(Instance([[4], [4]], [[1], [1]], users=["a", "b"], servers=["s", "t"]), "drfh")
    >>> solve(program.with_limit("a on both", {("a", "s"): 1, ("a", "t"): 1}, 3)).tasks_per_user
    array([3., 5.])
    """
    check_time_limit(time_limit)
    check_tolerance(tolerance)
    check_yes_or_no("exact", exact)
    given_options = _checked_options(solver_options, exact=exact)
    if digits is not None:
        check_whole_number("digits", digits, 1, below=_MOST_DIGITS)
        if not exact:
            raise Unsupported("digits= needs exact=True; floats have about 15")
    started = time.perf_counter()
    deadline = Deadline(time_limit)
    if isinstance(instance, Program):
        if notion != "drfh" or sharing is not None or options:
            raise Unsupported("a program has its notion, its sharing and its options; leave them out, or give them to fairopt.formulate")
        integral = integral or instance.integral
        instance, notion, sharing = question_of(instance)
    _check_gap(allow_gap, integral, time_limit)
    chosen, how = checked(instance, notion, sharing, options)
    question = Optimum(chosen, solver, integral, tolerance, exact, digits, time_limit, given_options)
    if _SAYS.get():
        if instance.unservable:
            log.warning("%s: no tasks there, and no part in the goal", instance.unservable_in_words)
        for remark in remarks(instance):
            log.warning("%s", remark)
    if integral:
        refuse_whole(instance, chosen)
    if exact:
        from fairopt.solving.fractions import solve_in_fractions

        return solve_in_fractions(instance, chosen, how, deadline, question)
    given, (instance, of_stages) = instance, with_guarantees(instance, chosen, how, deadline=deadline)
    alpha = chosen.merge_alpha if chosen.treats_alike(instance) and not instance.rules else None
    if integral:
        small, row = expanded(instance)
        reduced = with_utility(chosen, None if chosen.utility is None else columns(chosen.utility, row))
        merging = None
    else:
        merging = merge(instance, chosen.utility, alpha) if alpha is not None else unmerged(instance)
        small, row = merging.instance, np.empty(0, np.int64)
        reduced = with_utility(chosen, merging.restrict(chosen.utility))
    program = reduced.formulate(small, sharing=how, integral=integral)
    if not chosen.is_symmetric:
        check_program(program)
    program = with_rules(program, chosen, instance, row if integral else None)
    if integral:
        _check_whole(program)
    engines = candidates(program, solver, given_options)
    if deadline.left == 0.0:
        raise deadline.passed({"levels": []})
    formulated = time.perf_counter()

    try:
        if integral or chosen.is_symmetric or not program.down_closed:
            found = find(program, engines, tolerance, deadline)
        else:
            found, engines = find_by_classes(program, solver, tolerance, deadline, given_options)
    except NoSolution as error:
        if integral and "tasks" in error.known:  # of the pairs of single servers
            error.known["tasks"] = unexpanded(instance, program.table(error.known["tasks"]), row, chosen.utility)
            error.known["solver"] = engines[0].name
            best = None if allow_gap is None else best_found(given, chosen, how, error, tolerance)
            if best is not None and allow_gap is not None and best.details["gap"] <= allow_gap:
                log.warning("%s; the answer is the best that was found, with a gap of %.3g, and not proved", error, best.details["gap"])
                return best
        raise why_nothing(program, error, deadline) from None
    if not found.certificate.worst <= tolerance:
        from fairopt.solving.small_fractions import in_small_fractions

        found = in_small_fractions(found, reduced, small, deadline)
    solution, program = found.solution, found.program
    solved = time.perf_counter()

    pairs = program.table(solution.x)
    counted = unexpanded(instance, pairs, row, chosen.utility) if merging is None else merging.spread(pairs, chosen.utility)
    tasks = chosen.in_tasks(instance, counted)
    excess = Certificate(allocation_excess(instance, tasks, how), 0.0, 0.0, whole_tasks=integral)
    certificate = Certificate.combine([found.certificate, excess, *of_stages])
    _require(certificate, program, engines, tolerance)
    certified = time.perf_counter()

    shares = chosen.shares(instance, tasks)
    shares = shares_of(program, pairs, merging) if shares is None else shares
    by_stage = queue_prices_by_stage(program, solution)
    levels = every_level(levels_of(program, solution, merging, how, by_stage), program, merging, instance, shares)
    return Allocation.of(
        question,
        given,
        solver=found.engine or engines[0].name,
        sharing=how,
        tasks=tasks,
        shares=shares,
        prices=prices_of(program, solution, merging, how, levels),
        queue_prices=queue_prices_of(program, solution, by_stage),
        levels=levels,
        certificate=certificate,
        moments=(started, formulated, solved, certified),
        seconds=solution.seconds,
        details=_details(found),
        trace=solution.trace,
    )


def _checked_options(options: Mapping[str, object] | None, *, exact: bool) -> dict[str, object]:
    """Return the options of a solver, after what is wrong with them whatever the solver is."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) and name for name in options):
        raise InvalidInstance(f'solver_options is {str(options)[:60]}; give a mapping of names to values, such as {{"threads": 4}}')
    if options and exact:
        raise Unsupported("exact=True has an engine of its own, which takes no options of a solver; leave them out")
    return dict(options)


def _check_gap(gap: float | None, integral: bool, time_limit: float | None) -> None:
    """Refuse a gap that is none, or that no search could leave."""
    if gap is None:
        return
    if isinstance(gap, bool) or not isinstance(gap, int | float) or not 0 <= gap <= 1:
        raise InvalidInstance(f"allow_gap is {str(gap)[:40]}; give a number from 0 to 1, such as 0.05")
    if not integral or time_limit is None:
        raise Unsupported("allow_gap is about whole tasks at a time limit; give integral=True and time_limit, too, or leave it out")


def _check_whole(program: Program) -> None:
    """Refuse whole tasks in a tree where the order that they need is not defined, or has no closed form."""
    if reason := program.goal.no_whole_tasks:
        raise Unsupported(f"no engine finds whole tasks in this tree: {reason}, leave integral out, or use a greedy schedule")


def _require(certificate: Certificate, program: Program, engines: Sequence[Backend], tolerance: float) -> None:
    """Raise where the certificate fails, and say which other engine may do."""
    if not certificate.worst <= tolerance:
        from fairopt.solving.small_fractions import is_small

        others = other_engines(program, engines)
        instead = f'solver="{others[0]}"' if others else _easier(program)
        small = is_small(program)  # then fractions were tried, within a few seconds
        certificate.require(
            tolerance,
            program.name,
            *(engine.name for engine in engines),
            tried="in fractions it took too long, or users have something else" if small else "",
            instead=f"{instead}, exact=True" if small else instead,
        )


def _easier(program: Program) -> str:
    """Return what to ask instead where double precision does not hold the answer: a steep goal magnifies ratios of weights."""
    goal = program.goal
    if not isinstance(goal, AlphaFair) or goal.alpha <= 1:
        return SMALLER_RATIOS
    exact = "exact=True, " if goal.alpha == int(goal.alpha) else ""
    return f'{exact}a smaller alpha, "max-min" (the limit of large alpha), or {SMALLER_RATIOS}'


def best_found(instance: Instance, notion: Notion, sharing: Sharing, error: NoSolution, tolerance: float = CERTIFIED) -> Allocation | None:
    """Return the whole tasks that were found before a time limit as an allocation, None if there are none.

    It is feasible (checked), and not proved to be the best: its certificate says "best found". ``details`` has the ``value`` that it
    reaches (its smallest share; the total), a ``bound`` on what any can, and the ``gap`` (bound - value) / bound between them. Of a leximin
    that is about the lowest level alone: a gap of 0 proves this level, and none above it. ``tolerance`` is that of `solve`: the largest
    relative excess over a limit that is accepted.

    >>> from fairopt.solving import notion_of
    >>> instance = Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    >>> known = {"tasks": np.array([[2.0], [2.0]]), "value": 4 / 9, "bound": 2 / 3, "solver": "highs"}
    >>> best_found(instance, notion_of("drfh"), "rdm", NoSolution("no answer within 1 s", known))
    Allocation(drfh, sharing rdm, best found by highs: A 2, B 2 tasks; excess 0.0e+00, not an optimum)
    """
    tasks = error.known.get("tasks")
    if tasks is None or not tasks.any():
        return None
    value, bound = float(error.known["value"]), float(error.known["bound"])
    certificate = Certificate(allocation_excess(instance, tasks, sharing), np.nan, np.nan, whole_tasks=True, best_found=True)
    certificate.require(tolerance, notion.name, error.known["solver"])
    shares = notion.shares(instance, tasks)
    return Allocation(
        instance=instance,
        notion=notion.name,
        solver=error.known["solver"],
        sharing=sharing,
        tasks=tasks,
        shares=shares_of(notion.formulate(instance, sharing=sharing, integral=False), tasks, None) if shares is None else shares,
        prices=None,
        levels=(),
        certificate=certificate,
        details={"value": value, "bound": bound, "gap": max(bound - value, 0.0) / bound if bound > 0 else 0.0, "why": str(error)},
        question=Optimum(notion, integral=True, tolerance=tolerance),
    )


def _details(found: Found) -> dict[str, Any]:
    solution = found.solution
    details: dict[str, Any] = {"iterations": solution.iterations, "programs_solved": solution.programs_solved, "engines": found.engines}
    for name, value in (("gap", solution.gap), ("bound", solution.bound), ("groups", solution.groups), ("finished_by", found.finished_by)):
        if value is not None:
            details[name] = value
    return details
