"""What every check reads: the allocation, what its tasks are worth to each user, and which differences are rounding.

*Worth.* v[n,i], what a task of user n counts on server i: 1, unless the notion brings utilities of its own that differ from server to
server (``utility=``); then u[n,i] / max_j u[n,j], so that all is counted in tasks on the user's best server. V[n] = sum_i v[n,i] x[n,i].

*Rounding.* User n lacks something if it lacks more than

    slack[n] = t V[n] + max(t / 100, 10 e) R[n],     t = max(1e-6, 10 times the worst residual of the certificate),

R[n] what it could run alone and e the relative excess of the allocation over its limits, where that is itself rounding (below 1e-6). So an
exact allocation whose certificate leaves 1e-9 violates nothing.

*Parallelism.* What a user could run it runs on its fastest servers first, as many as it may be on at once. Where a task is worth more on
one server than on another, too, that is no longer a matter of order, and what would need it does not apply (`Case.tangled`).

*Tasks.* T[n] is what the notion counts: under "bbf" a user without a limit asks for one task.

*Who counts.* Users who may run somewhere, demand something and have tasks. The others are left out.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairopt.allocation import Allocation, Exact
from fairopt.analysis.measures import takes_part
from fairopt.certificate import allocation_excess
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.models import NOTIONS, Notion
from fairopt.program import Equalize, Leximin, LimitKind, Program
from fairopt.program.parallelism import tasks_within

__all__ = ["PATIENCE", "ROUNDED", "TANGLED", "Case", "as_asked", "capped", "quietly"]

TANGLED = (
    "Does not apply: users are limited in servers, and their tasks are worth more on one than on another: what they could run is a choice."
)
ROUNDED = 1e-6  # relative: numbers in files are rounded
PATIENCE = 60.0  # seconds for each search, where no time limit is given


@dataclass(frozen=True, eq=False)
class Case:
    """An allocation to be audited, and how much may be spent on it."""

    allocation: Allocation
    effort: int
    seed: int
    jobs: int
    time_limit: float | None

    @property
    def instance(self) -> Instance:
        """The instance of the allocation."""
        return self.allocation.instance

    @property
    def sharing(self) -> Any:
        """Division of resources or of time."""
        return self.allocation.sharing

    @cached_property
    def notion(self) -> Notion | None:
        """The notion with its options (of a schedule, its criterion); None for allocations that somebody else made."""
        if self.allocation.question is not None:
            return self.allocation.question.notion
        return NOTIONS[self.allocation.notion]() if self.allocation.notion in NOTIONS else None

    @cached_property
    def exact(self) -> bool:
        """Is it an exact allocation of divisible tasks?"""
        certificate = self.allocation.certificate
        return isinstance(self.allocation.question, Exact) and not certificate.reservation and not certificate.whole_tasks

    @property
    def whole(self) -> bool:
        """Is it an allocation of whole tasks, to be judged among those?"""
        return self.allocation.certificate.whole_tasks

    @cached_property
    def program(self) -> Program | None:
        """The program of the notion, of divisible tasks, if its goal is a leximin (or one level) of shares; else None."""
        if self.notion is None or (self.notion.name not in NOTIONS and not self.exact):
            return None
        program = self.notion.formulate(self.instance, sharing=self.sharing, integral=False)
        return program if isinstance(program.goal, Leximin | Equalize) else None

    @cached_property
    def part(self) -> BoolArray:
        """Who takes part, (users,)."""
        return takes_part(self.instance)

    @cached_property
    def members(self) -> IntArray:
        """Positions of those who take part."""
        return np.flatnonzero(self.part)

    @cached_property
    def worth(self) -> FloatArray | None:
        """v[n,i], (users, servers); None where it is 1."""
        utility = None if self.notion is None else self.notion.utility
        if utility is None or utility.shape[1] == 1:
            return None
        own = np.where(self.instance.eligibility, utility, 0.0)
        best = own.max(axis=1, keepdims=True)
        worth: FloatArray = np.divide(own, best, out=np.zeros_like(own), where=best > 0)
        return worth

    def values(self, tasks: FloatArray) -> FloatArray:
        """V[n] of (users, servers) tasks, (users,)."""
        value: FloatArray = tasks.sum(axis=1) if self.worth is None else (self.worth * tasks).sum(axis=1)
        return value

    @cached_property
    def value(self) -> FloatArray:
        """V[n], (users,)."""
        return self.values(self.allocation.tasks)

    @cached_property
    def rates(self) -> FloatArray:
        """Gamma of those who take part, (users, servers); 0 for the others."""
        rates: FloatArray = np.where(self.part[:, None], self.instance.rates, 0.0)
        return rates

    @cached_property
    def reach(self) -> FloatArray:
        """R[n]: what each user could run alone, (users,); 0 for those who take no part."""
        return self.at_most(self.rates)

    def at_most(self, possible: FloatArray) -> FloatArray:
        """Return the worth of what every user makes of so many possible tasks, (users, servers), with the tasks that it has, (users,)."""
        limits = self.instance.tasks
        if self.worth is None:
            return np.asarray(np.minimum(tasks_within(self.instance, possible), limits))
        return np.array([capped(row, worth, limit) for row, worth, limit in zip(possible, self.worth, limits, strict=True)])

    @property
    def tangled(self) -> bool:
        """Is what users could run, `at_most`, only a bound, since both worth and speed differ from server to server?"""
        return self.worth is not None and bool(self.instance.limited.any())

    @cached_property
    def excess(self) -> float:
        """Largest relative excess over a limit."""
        return allocation_excess(self.instance, self.allocation.tasks, self.sharing)

    @property
    def feasible(self) -> bool:
        """Does the allocation keep to its limits, up to rounding?"""
        return self.excess <= ROUNDED

    @cached_property
    def tolerance(self) -> float:
        """t, relative."""
        return max(ROUNDED, 10 * self.allocation.certificate.worst) if self.exact else ROUNDED

    @cached_property
    def slack(self) -> FloatArray:
        """Tasks of each user that are rounding, (users,)."""
        small = max(self.tolerance / 100, 10 * self.excess if self.feasible else 0.0)
        slack: FloatArray = self.tolerance * self.value + small * self.reach
        return slack

    @cached_property
    def complete(self) -> BoolArray:
        """Who has all its tasks, each where it is worth most, and cannot gain, (users,)."""
        complete: BoolArray = self.value >= self.instance.tasks * (1 - 1e-9)
        return complete

    def deadline(self) -> float:
        """When a search that begins now has to end, by the monotonic clock."""
        return time.monotonic() + (PATIENCE if self.time_limit is None else self.time_limit)

    def name(self, n: int) -> str:
        """Label of a user."""
        return f'"{self.instance.users[n]}"'


def as_asked(allocation: Allocation) -> Allocation:
    """Return the allocation with the tasks that its notion counts in the instance: what an exact program limits that the instance does not.

    >>> import fairopt as fo
    >>> as_asked(fo.solve(fo.Instance([[3]], [[2], [1]]), "bbf")).instance.tasks
    array([1., 1.])
    """
    instance, question = allocation.instance, allocation.question
    if not isinstance(question, Exact) or np.isfinite(instance.tasks).all():
        return allocation
    sharing: Any = allocation.sharing
    limits = question.notion.formulate(instance, sharing=sharing, integral=False).limits
    rows = limits.kinds == LimitKind.TASKS
    tasks = instance.tasks.copy()
    tasks[limits.keys[rows, 0]] = limits.bounds[rows]
    return allocation if np.array_equal(tasks, instance.tasks) else dataclasses.replace(allocation, instance=instance.replace(tasks=tasks))


def capped(possible: FloatArray, worth: FloatArray, limit: float) -> FloatArray:
    """Return what a user makes of ``possible`` tasks on each server, (..., servers), with so many tasks in all: the best servers first.

    >>> float(capped(np.array([2.0, 3.0]), np.array([0.5, 1.0]), 4.0))
    3.5
    """
    order = np.argsort(-worth, kind="stable")
    ran: FloatArray = np.diff(np.minimum(np.cumsum(possible[..., order], axis=-1), limit), prepend=0.0, axis=-1)
    return np.asarray(ran @ worth[order])


@contextmanager
def quietly() -> Iterator[None]:
    """Say nothing of users whom no server suits: that was said when the allocation was made, and a search asks hundreds of times."""
    loggers = [logging.getLogger(name) for name in ("fairopt.solve", "fairopt.schedule")]

    def only_errors(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    for logger in loggers:
        logger.addFilter(only_errors)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(only_errors)
