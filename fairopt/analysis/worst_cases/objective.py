"""The objective of the search for worst cases: the regret of a schedule on an instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from fairopt.allocation import Allocation
from fairopt.analysis.measures import violations
from fairopt.analysis.regrets import Regret, regret
from fairopt.analysis.rerun import given
from fairopt.analysis.worst_cases.small_instances import SmallInstances
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import CertificateError, InvalidInstance, NoSolution, Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import CERTIFIED, NOTHING
from fairopt.models import NOTIONS, Notion, Sharing
from fairopt.registry import words
from fairopt.scheduling import planned
from fairopt.scheduling import schedule as fill_servers
from fairopt.scheduling.baselines import Baseline
from fairopt.solvers import choose
from fairopt.solving import checked, formulate, solve
from fairopt.specs import OwnScheduler, divides_tasks, read_notion, read_schedule

__all__ = ["MEASURES", "Objective", "Schedule", "Subject", "has_whole_optimum", "objective_of", "scheduler"]

Schedule: TypeAlias = str | Mapping[str, Any] | Callable[[Instance], Allocation | npt.ArrayLike]
Answer: TypeAlias = tuple[Allocation, Allocation, Regret]

MEASURES = ("worst", "level", "leximin", "largest", "user", "goal", "condition", "total")
"""Numbers of a `Regret` to search for; "worst" applies to every goal except a choice among alternatives."""

_SAMPLES = 25  # if a schedule refuses that many instances, the search does not start


def scheduler(schedule: Schedule) -> tuple[str, Callable[[Instance], Any], Any]:
    """Return the name of a schedule, the function that computes it, and its criterion (None for a function)."""
    name, plan = read_schedule(schedule)
    if isinstance(plan, OwnScheduler):
        return name, plan, None
    if isinstance(plan, Allocation):
        raise Unsupported('the schedule is an allocation of one instance; give how it was made, such as "drfh:best-fit"')
    return name, _Filler(dict(plan)), plan["criterion"]


@dataclass(frozen=True, slots=True)
class _Filler:
    """`fairopt.schedule` with fixed arguments; unlike a lambda, it can be sent to a worker process."""

    arguments: dict[str, Any]

    def __call__(self, instance: Instance) -> Allocation:
        return fill_servers(instance, **self.arguments)

    def in_fractions(self, instance: Instance) -> Allocation:
        """Return the schedule replayed in fractions."""
        return fill_servers(instance, **self.arguments | {"exact": True})


@dataclass(frozen=True, slots=True)
class _Solver:
    """`fairopt.solve` for one notion."""

    notion: Notion

    def __call__(self, instance: Instance) -> Allocation:
        return solve(instance, self.notion)

    def in_fractions(self, instance: Instance) -> Allocation:
        """Return the answer in fractions."""
        return solve(instance, self.notion, exact=True)


@dataclass(frozen=True, slots=True)
class Subject:
    """A heuristic that is held to a notion.

    Attributes
    ----------
    name : str
    run : function of an Instance
    criterion : any
        What it follows, the default for the notion that it is held to; None if that is not known.
    notion : Notion or None
        The notion that it solves, or that its baseline approximates; None of a greedy schedule or a function.
    baseline : Baseline or None
    schedule : (Notion, text) or None
        Criterion and placement of a greedy schedule with the usual options.
    """

    name: str
    run: Callable[[Instance], Any]
    criterion: Any
    notion: Notion | None = None
    baseline: Baseline | None = None
    schedule: tuple[Notion, str] | None = None

    @classmethod
    def of(cls, spec: Schedule | Notion | type[Notion], *, solves: bool = True) -> Subject:
        """Return what a specification names: a schedule, a baseline or a function; if it ``solves``, also a notion such as "uniform".

        Else the name of a notion is that of a greedy schedule with the usual placement.
        """
        of_notion = isinstance(spec, Notion) or (isinstance(spec, type) and issubclass(spec, Notion))
        if isinstance(spec, str):
            word, *rest = words(spec)
            of_notion = dict.__contains__(NOTIONS, word) and all("=" in part for part in rest)  # a word loads no file
        if of_notion and solves:
            name, notion = read_notion(cast(Any, spec))
            return cls(name, _Solver(notion), None, notion)
        name, run, criterion = scheduler(cast(Schedule, spec))
        if isinstance(run, _Filler):
            how, placement, notion = planned(**run.arguments)
            if isinstance(how, Baseline):
                return cls(name, run, criterion, notion, how)
            usual = run.arguments.get("stop", "exhausted") == "exhausted"
            return cls(name, run, criterion, schedule=(notion, placement) if usual else None)
        return cls(name, run, criterion)

    @property
    def is_divisible(self) -> bool:
        """Does it answer in fractions of tasks?"""
        return divides_tasks(self.run.arguments) if isinstance(self.run, _Filler) else self.notion is not None


def objective_of(run: Callable[[Instance], Any], notion: Notion, measure: str, integral: bool | None, size: SmallInstances) -> Objective:
    """Return the objective. It is evaluated once here, so that an error in the schedule is raised before the search, not in a worker."""
    rng = np.random.default_rng(0)
    refused: InvalidInstance | None = None
    for _ in range(_SAMPLES):
        sample = size.draw(rng)
        try:
            checked(sample, notion, None, {})
            whole = has_whole_optimum(sample, notion) if integral is None else integral
        except InvalidInstance as error:  # another instance may be accepted
            refused = error
            continue
        objective = Objective(run, notion, measure, whole)
        try:
            objective.value(objective.strictly(sample))
        except (NoSolution, CertificateError):
            return objective
        except _Refused as error:
            refused = error
        else:
            return objective
    raise InvalidInstance(f"the schedule or the notion refuses every one of {_SAMPLES} instances that were drawn; the last: {refused}")


def has_whole_optimum(instance: Instance, notion: Notion) -> bool:
    """Say whether an engine finds the best allocation of whole tasks."""
    try:
        choose(formulate(instance, notion, integral=True), None)
    except Unsupported:
        return False
    return True


class _Refused(InvalidInstance):
    """The schedule or the notion refuses the form of the drawn instance."""


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """The regret of a schedule on an instance."""

    run: Callable[[Instance], Any]
    notion: Notion
    measure: str
    whole: bool

    def answer(self, instance: Instance) -> Answer | None:
        """Return the schedule, the exact allocation and the regret; None if no engine solves the instance, or it is refused."""
        try:
            return self.strictly(instance)
        except (NoSolution, CertificateError, _Refused):
            return None

    def strictly(self, instance: Instance) -> Answer:
        """Return the same as `answer`, but raise instead of returning None."""
        try:
            answer = self.run(instance)
            how = checked(instance, self.notion, None, {})[1]
            exact = solve(instance, self.notion, integral=self.whole)
        except InvalidInstance as error:  # the drawn instance is at fault; an invalid result of a schedule is raised as an error below
            raise _Refused(str(error)) from error
        allocation = self._allocation(instance, answer, how)
        return allocation, exact, regret(allocation, self.notion, exact=exact)

    def in_fractions(self, instance: Instance, answer: Answer) -> Answer:
        """Return the same answer in fractions.

        Raises
        ------
        CertificateError
            If the schedule gives other tasks in fractions than in floats.
        """
        schedule = self.run.in_fractions(instance) if isinstance(self.run, _Filler | _Solver) else None
        if schedule is None:
            schedule = given(instance, answer[0].tasks, answer[0].sharing, exact=True)
            exceeded = violations(instance.exact, schedule.in_fractions.tasks, schedule.sharing, 0)
            if exceeded:
                raise CertificateError(f"the schedule exceeds a limit by an amount that floats take for rounding: {exceeded[0]}")
        if np.abs(schedule.tasks - answer[0].tasks).max() > CERTIFIED:
            raise CertificateError("in fractions the schedule gives other tasks than in floats, so nothing is proved")
        exact = answer[1] if self.whole else solve(instance, self.notion, exact=True)
        return schedule, exact, regret(schedule, self.notion, exact=exact)

    def value(self, answer: Answer | None) -> float:
        """Return the measure; -inf if there is no answer."""
        if answer is None:
            return -np.inf
        value = getattr(answer[2], self.measure)
        if value is None:
            raise Unsupported(
                f'the regret against "{self.notion.name}" has no number "{self.measure}"; it has '
                + ", ".join(word for word in MEASURES if getattr(answer[2], word) is not None)
            )
        return float(value)

    def keeps(self, instance: Instance, least: float) -> bool:
        """Say whether the measure is at least ``least``."""
        try:
            return self.value(self.answer(instance)) >= least - NOTHING
        except (InvalidInstance, Unsupported):  # the schedule or the notion refuses the form of the instance
            return False

    def _allocation(self, instance: Instance, answer: Any, how: Sharing) -> Allocation:
        own = answer if isinstance(answer, Allocation) else None
        tasks: FloatArray = np.array(answer, float) if own is None else own.tasks
        shape = (instance.n_users, instance.n_servers)
        if tasks.shape != shape or not np.isfinite(tasks).all():
            raise InvalidInstance(f"the schedule returned tasks of shape {tasks.shape}; return finite numbers, (users, servers) = {shape}")
        excess = allocation_excess(instance, tasks, how)
        if excess > CERTIFIED:
            raise InvalidInstance(f"the schedule exceeds a limit of the instance by a part of {excess:.2g}; return an allocation that fits")
        if self.whole and np.abs(tasks - np.round(tasks)).max() > CERTIFIED:
            raise InvalidInstance("the schedule returned parts of tasks; return whole ones, or use integral=False")
        if own is not None:
            return own
        certificate = Certificate(excess, np.nan, np.nan, whole_tasks=self.whole, greedy=True)
        return Allocation(instance, self.notion.name, "the function", how, tasks, tasks.sum(axis=1), None, (), certificate)
