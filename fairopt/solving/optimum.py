"""Instance + notion -> certified allocation.

The way: check, merge identical rows, formulate, let an engine solve, certify, and bring the answer back to the rows that were given.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.allocation.proof import hidden_by_rounding
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import CertificateError, InvalidInstance, NoSolution, Unsupported
from fairopt.instance import Instance
from fairopt.instance.remarks import remarks
from fairopt.models import Notion, Sharing
from fairopt.program import Program
from fairopt.solvers.backend import Deadline
from fairopt.solving.answer import shares_of
from fairopt.solving.contradictions import with_contradiction
from fairopt.solving.floats import InFloats
from fairopt.solving.formulation import checked, question_of
from fairopt.solving.kept_guarantees import refuse_whole
from fairopt.solving.likeness import likeness_of
from fairopt.solving.posing import Posed, pose
from fairopt.validation import check_time_limit, check_tolerance, check_whole_number, check_yes_or_no

__all__ = ["best_found", "solve", "solve_again", "without_remarks"]

_MOST_DIGITS = 1_001

log = logging.getLogger(__name__)
_SAYS: ContextVar[bool] = ContextVar("fairopt.solving.optimum says", default=True)


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
            log.warning("%s; users without a server get no tasks and are left out of the goal", instance.unservable_in_words)
        for remark in remarks(instance):
            log.warning("%s", remark)
    if exact and integral:
        raise Unsupported("exact=True divides tasks, and integral=True does not; leave one of them out")
    if exact and solver is not None:
        raise Unsupported(f'exact=True has an engine of its own, so there is no choice of solver; leave "{solver}" out')
    return _answered(instance, question, how, started, deadline, allow_gap=allow_gap)


def solve_again(like: Allocation, question: Optimum, instance: Instance, time_limit: float | None) -> Allocation:
    """Answer the question of an allocation for an instance that differs little from its own: engines know its levels and prices.

    Parameters
    ----------
    like : Allocation
    question : Optimum
        That of the allocation, with its notion for the users and servers of the instance.
    instance : Instance
        Nothing is said of it, as in `without_remarks`.
    time_limit : float, optional
        Seconds.

    Raises
    ------
    FairoptError
        As `solve`.
    """
    check_time_limit(time_limit)
    started, deadline = time.perf_counter(), Deadline(time_limit)
    given: Any = like.sharing
    notion, how = checked(instance, question.notion, given, {})
    return _answered(instance, replace(question, notion=notion, time_limit=time_limit), how, started, deadline, like=like)


def _answered(
    instance: Instance,
    question: Optimum,
    how: Sharing,
    started: float,
    deadline: Deadline,
    *,
    allow_gap: float | None = None,
    like: Allocation | None = None,
) -> Allocation:
    """Answer a question that has been checked; ``like`` is an allocation of an instance that differs little."""
    if question.integral:
        refuse_whole(instance, question.notion)
    posed = pose(instance, question, how, deadline)
    if like is not None:
        known = likeness_of(like, posed.program, posed.merging)
        posed = replace(posed, program=posed.program.with_likeness(known))
    way = _way(posed, question)
    if deadline.left == 0.0:
        raise deadline.passed({"levels": []})
    formulated = time.perf_counter()
    try:
        found = way.find(deadline)
    except NoSolution as error:
        best = None if allow_gap is None or "tasks" not in error.known else best_found(instance, question, how, error)
        if best is not None and allow_gap is not None and best.details["gap"] <= allow_gap:
            log.warning("%s; the answer is the best that was found, with a gap of %.3g, and not proved", error, best.details["gap"])
            return best
        raise with_contradiction(posed.program, error, deadline) from None
    solved = time.perf_counter()
    try:
        tasks, certificate = way.certified(found)
    except CertificateError as error:
        raise with_contradiction(posed.program, error, deadline) from None
    if _SAYS.get() and (hidden := hidden_by_rounding(certificate)):
        log.warning("%s", hidden)
    moments = started, formulated, solved, time.perf_counter()
    return Allocation.of(question, instance, sharing=how, certificate=certificate, moments=moments, **way.answer(found, tasks))


class _Way(Protocol):
    """How a question is answered."""

    def find(self, deadline: Deadline) -> Any:
        """Return the answer of an engine to the program."""

    def certified(self, found: Any) -> tuple[Any, Certificate]:
        """Return the tasks on the rows that were given, and the certificate."""

    def answer(self, found: Any, tasks: Any) -> dict[str, Any]:
        """Return the other attributes of the allocation."""


def _way(posed: Posed, question: Optimum) -> _Way:
    """Return the way in floats, or that in fractions."""
    if not question.exact:
        return InFloats(posed, question)
    from fairopt.solving.fractions import InFractions

    return InFractions(posed, question)


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
        raise Unsupported("allow_gap is about whole tasks at a time limit; give integral=True and time_limit=, too, or leave it out")


def best_found(instance: Instance, question: Optimum, sharing: Sharing, error: NoSolution) -> Allocation | None:
    """Return the whole tasks that were found before a time limit as an allocation, the answer to ``question``; None if there are none.

    Tasks that are divided are no such answer: where a proof of them fails, nothing bounds the optimum.

    It is feasible (checked), and not proved to be the best: its certificate says "best found". ``details`` has the ``value`` that it
    reaches (its smallest share; the total), a ``bound`` on what any can, and the ``gap`` (bound - value) / bound between them. Of a leximin
    the gap is that of the lowest level: a gap of 0 proves this level, and none above it. The tolerance of the question is the largest
    relative excess over a limit that is accepted.

    >>> from fairopt.solving import notion_of
    >>> instance = Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    >>> known = {"tasks": np.array([[2.0], [2.0]]), "value": 4 / 9, "bound": 2 / 3, "solver": "highs"}
    >>> best_found(instance, Optimum(notion_of("drfh"), integral=True), "rdm", NoSolution("no answer within 1 s", known))
    Allocation(drfh, sharing rdm, best found by highs: A 2, B 2 tasks; excess 0.0e+00, not an optimum)
    """
    tasks = error.known.get("tasks")
    if not question.integral or tasks is None or not tasks.any():
        return None
    notion = question.notion
    value, bound = float(error.known["value"]), float(error.known["bound"])
    certificate = Certificate(allocation_excess(instance, tasks, sharing), np.nan, np.nan, whole_tasks=True, best_found=True)
    certificate.require(question.tolerance, notion.name, error.known["solver"])
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
        question=question,
    )
