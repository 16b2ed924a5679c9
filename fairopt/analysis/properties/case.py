"""The data that every check reads: the allocation, the worth of its tasks to each user, and the tolerance for rounding.

*Worth.* v[n,i] is the worth of a task of user n on server i. It is the speed of n on i, the work that the task does there, 1 where no
speeds are given. If the notion has utilities that differ between servers (``utility=``), it is u[n,i] / max_j u[n,j] times as much, so that
tasks on the user's best server are the unit. V[n] = sum_i v[n,i] x[n,i].

*Rounding.* A difference counts for user n only if it is larger than

    slack[n] = t V[n] + max(t / 100, 10 e) R[n],     t = max(1e-6, 10 times the worst residual of the certificate).

R[n] is what n could run alone. e is the relative excess of the allocation over its limits if this is rounding (below 1e-6), else 0. So an
exact allocation with a certificate residual of 1e-9 violates nothing.

*Fractions.* Of an allocation in fractions (``allocation.exact``) the case has the instance, the tasks and the shares in fractions, and all
that follows from them: `Case.same` and slack are 0, and ties are ties. Where the optimum is irrational, they are 10 times the radius.
`Case.in_floats` is the same case in floats, for what is no question of arithmetic.

*Parallelism.* A user with limited parallelism fills its fastest servers first, as many as it may be on at once. If its tasks are also worth
more on some servers than on others, the best choice is a linear program (`fairopt.analysis.bundles`).

*Tasks.* T[n] is the number of tasks that the notion counts: under "bbf", a user without a task limit asks for one task.

*Who takes part.* Users who may run somewhere, demand something and have tasks. The other users are left out.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.analysis.bundles import Row, by_bundle, most_of, rows_of_user
from fairopt.analysis.measures import Violation, takes_part, violations
from fairopt.analysis.properties.own_rows import rows_about, rows_of
from fairopt.analysis.rerun import notion_of_allocation
from fairopt.certificate import allocation_excess
from fairopt.errors import FairoptError, NoSolution
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.by_server import work_in_words
from fairopt.instance.fractions import from_rationals
from fairopt.instance.shared import within_shared
from fairopt.instance.tolerances import CERTIFIED, FITS, WRITTEN
from fairopt.models import NOTIONS, Notion
from fairopt.processes.crew import Crew
from fairopt.program import LimitKind, Program
from fairopt.program.parallelism import tasks_within
from fairopt.program.stated_rows import StatedRow
from fairopt.solvers.backend import Deadline, Work, limited_work

__all__ = ["PATIENCE", "Answered", "Case", "as_asked", "quietly", "unanswered"]

PATIENCE = 6e7  # steps of work for each search, if no time limit is given
_COUNTING = (None, "highs")  # solvers that count the steps of branch and cut
_MINUTE = 60.0  # seconds for a search by another solver
_OF_A_SOLVE = 3_000.0  # steps of a solve, beside those that engines count
_OF_A_CELL = 2.0  # steps of each pair of user and server in a solve, beside those that engines count

Answered: TypeAlias = tuple[FloatArray | FairoptError, float]
"""The tasks of an allocation that was made again, or its error, and the work that it took."""


@dataclass(frozen=True, eq=False)
class Case:
    """An allocation to be audited, and the effort of the audit."""

    allocation: Allocation
    effort: int
    seed: int
    crew: Crew
    time_limit: float | None
    radius: Fraction | None = None
    """Of an allocation in fractions, its radius; None for floats."""

    @classmethod
    def of(cls, allocation: Allocation, effort: int, seed: int, crew: Crew, time_limit: float | None) -> Case:
        """Return the case of an allocation, in fractions if it is."""
        asked = as_asked(allocation)
        if asked.exact is None:
            return cls(asked, effort, seed, crew, time_limit)
        case = cls(asked.in_fractions, effort, seed, crew, time_limit, asked.exact.radius)
        vars(case)["in_floats"] = cls(asked, effort, seed, crew, time_limit)
        return case

    @cached_property
    def in_floats(self) -> Case:
        """The same case in floats."""
        return self

    def same(self, relative: float) -> Any:
        """Return the relative difference that counts as none: the given one of floats, 0 of fractions."""
        return relative if self.radius is None else 10 * self.radius

    def first_largest(self, users: IntArray, values: Any) -> int:
        """Return the first of some users, positions, whose value is the largest; values that differ by rounding are equal."""
        most = values[users].max()
        return int(users[values[users] >= most - self.same(CERTIFIED) * abs(most)][0])

    def zeros(self, *shape: int) -> Any:
        """Return an array of zeros to be filled."""
        return np.zeros(shape, self.allocation.tasks.dtype)

    def tasks_of(self, answer: Allocation) -> Any:
        """Return the tasks of another allocation, in fractions where this one is."""
        return answer.tasks if self.radius is None or answer.exact is None else answer.exact.tasks

    @property
    def instance(self) -> Instance:
        """The instance of the allocation."""
        return self.allocation.instance

    @property
    def sharing(self) -> Any:
        """How servers are shared: "rdm" (resources are divided) or "tdm" (time is divided)."""
        return self.allocation.sharing

    @cached_property
    def notion(self) -> Notion | None:
        """The notion with its options (of a schedule, its criterion); None for given allocations of no notion."""
        found = notion_of_allocation(self.allocation)
        return found if self.allocation.question is not None or self.allocation.notion in NOTIONS else None

    @cached_property
    def exact(self) -> bool:
        """Whether it is an exact allocation of divisible tasks."""
        certificate = self.allocation.certificate
        return isinstance(self.allocation.question, Optimum) and not certificate.qualifier and not certificate.whole_tasks

    @property
    def whole(self) -> bool:
        """Whether it is an allocation of whole tasks, and so judged among allocations of whole tasks."""
        return self.allocation.certificate.whole_tasks

    @property
    def last(self) -> BoolArray:
        """Who demands nothing that counts under the notion, and so comes after all others, (users,)."""
        asked = getattr(self.notion, "last", None)
        return np.zeros(self.instance.n_users, bool) if asked is None else np.asarray(asked(self.instance))

    @cached_property
    def program(self) -> Program | None:
        """The program of the notion for divisible tasks, if its goal is a leximin (or one level) of shares; else None."""
        if self.notion is None or (self.notion.name not in NOTIONS and not self.exact):
            return None
        program = self.notion.formulate(self.in_floats.instance, sharing=self.sharing, integral=False)
        return program if program.goal.has_levels else None

    @cached_property
    def share(self) -> Any:
        """What one task adds to the share that the notion levels, by weight, (users, servers), if `program` is not None; 0 elsewhere."""
        program, notion = self.program, self.notion
        assert program is not None
        assert notion is not None
        users, servers = program.pair_users, program.pair_servers
        share = self.zeros(*self.instance.eligibility.shape)
        if self.radius is None:
            share[users, servers] = program.utilities
            return share / program.goal.weights[:, None]
        exact = notion.exactly.in_fractions(self.instance, program)
        share[users, servers] = from_rationals(exact.utilities)
        return share / from_rationals(exact.goal.weights)[:, None]

    @cached_property
    def part(self) -> BoolArray:
        """Which users take part, (users,)."""
        return takes_part(self.instance)

    @cached_property
    def members(self) -> IntArray:
        """Positions of the users who take part."""
        return np.flatnonzero(self.part)

    @cached_property
    def worth(self) -> FloatArray | None:
        """v[n,i], (users, servers); None if all are 1."""
        utility: Any = None
        if self.notion is not None:
            utility = self.notion.utility if self.radius is None else self.notion.exact_utility
        if utility is None or utility.shape[1] == 1:
            return self.instance.speeds_given
        own = np.where(self.instance.eligibility, utility, 0)
        best = own.max(axis=1, keepdims=True)
        worth: FloatArray = np.divide(own, best, out=np.zeros_like(own), where=best > 0)
        return worth * self.instance.speeds

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
        """gamma[n,i] of the users who take part, (users, servers); 0 for the others."""
        rates: FloatArray = np.where(self.part[:, None], self.instance.rates, 0)
        return rates

    @cached_property
    def reach(self) -> FloatArray:
        """R[n]: what each user could run alone, (users,); 0 for users who do not take part."""
        return self.at_most(self.rates)

    @cached_property
    def own_rows(self) -> tuple[StatedRow, ...]:
        """The rows of the notion's own that the allocation was made within, in the arithmetic of the case."""
        if self.notion is None or self.notion.is_symmetric or not isinstance(self.allocation.question, Optimum):
            return ()
        return rows_of(self.notion, self.in_floats.instance, self.sharing, exactly=self.radius is not None)

    def at_most(self, possible: FloatArray, part: Any = 1) -> FloatArray:
        """Return the largest worth for each user, (users,), of at most ``possible`` tasks, (users, servers), and at most T[n] in all.

        Of each resource of the cluster, a user has this ``part``: a number, or an array (users,) or (users, resources).
        """
        instance = self.instance
        if self.worth is None and not self.own_rows and not by_bundle(instance):
            return np.asarray(np.minimum(tasks_within(instance, possible), within_shared(instance, instance.tasks, part)))
        parts = np.broadcast_to(np.reshape(part, (-1, 1)) if np.ndim(part) < 2 else part, (instance.n_users, instance.n_resources))
        amounts = parts[:, instance.n_server_resources :] * instance.shared_capacity
        most = self.zeros(instance.n_users)
        for n in np.flatnonzero((possible > 0).any(axis=1)):
            most[n] = self.most_of(int(n), possible[n], rows_of_user(instance, int(n), amounts[n]))
        return np.asarray(most)

    def most_of(self, n: int, possible: FloatArray, rows: list[Row]) -> Any:
        """Return the largest worth for a user of at most ``possible`` tasks, (servers,), within these rows and its `own_rows`."""
        return most_of(possible, self.worth_to(n), [*rows, *self.rows_about(n)], self.time_limit)

    def worth_to(self, n: int) -> FloatArray:
        """v[n,i] of a user, (servers,)."""
        return np.asarray(self.zeros(self.instance.n_servers) + 1 if self.worth is None else self.worth[n])

    def rows_about(self, n: int) -> list[Row]:
        """Return the `own_rows` as limits on the tasks of a user, as if it were alone in them."""
        return rows_about(self.instance, self.own_rows, n)

    @cached_property
    def limits_exceeded(self) -> list[Violation]:
        """Limits that the allocation exceeds by more than rounding."""
        return violations(self.instance, self.allocation.tasks, self.sharing, WRITTEN if self.radius is None else 0)

    @cached_property
    def excess(self) -> Any:
        """Largest relative excess over a limit; of fractions 0, as `limits_exceeded` has what exceeds one."""
        if self.radius is not None:
            return 0
        return allocation_excess(self.instance, self.allocation.tasks, self.sharing)

    @property
    def feasible(self) -> bool:
        """Whether the allocation keeps its limits, up to rounding."""
        return self.excess <= WRITTEN if self.radius is None else not self.limits_exceeded

    @cached_property
    def tolerance(self) -> Any:
        """t, relative."""
        if self.radius is not None:
            return self.same(0.0)
        return max(WRITTEN, 10 * self.allocation.certificate.worst) if self.exact else WRITTEN

    @cached_property
    def slack(self) -> FloatArray:
        """slack[n], the tasks of each user that count as rounding, (users,)."""
        small = max(self.tolerance / 100, 10 * self.excess if self.feasible else 0.0)
        slack: FloatArray = self.tolerance * self.value + small * self.reach
        return slack

    @cached_property
    def complete(self) -> BoolArray:
        """Which users have all their tasks where they are worth most, and so cannot gain, (users,)."""
        most = self.instance.tasks
        if self.worth is not None:
            best = np.where(self.instance.eligibility, self.worth, 0).max(axis=1)
            most = np.where(best > 0, most * np.where(best > 0, best, 1), 0)
        complete: BoolArray = self.value >= most * (1 - self.same(FITS))
        return complete

    def deadline(self, *, again: bool = False) -> Deadline:
        """Return the limit of a search that starts now: the time limit, or without one a number of steps.

        ``again``: does the search ask the question of the allocation again? Then it also has a minute at most, if the question is about
        whole tasks and names a solver that counts no steps.
        """
        if self.time_limit is not None:
            return Deadline(self.time_limit)
        question = self.allocation.question
        counts = not (again and self.whole and isinstance(question, Optimum) and question.solver not in _COUNTING)
        return Deadline(None if counts else _MINUTE).within(PATIENCE)

    @contextmanager
    def counted(self) -> Iterator[Work]:
        """Limit the work of the solves inside a ``with`` statement to that of one search; count it alone where there is a time limit."""
        with limited_work(PATIENCE if self.time_limit is None else np.inf) as work:
            yield work

    def answered(self, ask: Callable[[], FloatArray]) -> Answered:
        """Return what ``ask`` returns, or its error, and the work that it took."""
        found: FloatArray | FairoptError
        with self.counted() as work:
            try:
                found = ask()
            except FairoptError as error:
                found = error
        return found, work.spent + _OF_A_SOLVE + _OF_A_CELL * self.instance.n_users * self.instance.n_servers

    @property
    def ended(self) -> str:
        """What ends a search, in words."""
        return "its usual number of steps (a time limit searches longer)" if self.time_limit is None else "its time limit"

    def name(self, n: int) -> str:
        """Return the name of a user, in quotes."""
        return f'"{self.instance.users[n]}"'

    def amount(self, value: Any) -> str:
        """Return an amount of worth in words: "3 tasks", or with speeds "the work of 3 tasks"."""
        return work_in_words(self.instance, value)


def as_asked(allocation: Allocation) -> Allocation:
    """Return the allocation with an instance whose task limits are those that the notion counts (the limits of the exact program).

    >>> import fairopt as fo
    >>> as_asked(fo.solve(fo.Instance([[3]], [[2], [1]]), "bbf")).instance.tasks
    array([1., 1.])
    """
    instance, question = allocation.instance, allocation.question
    if not isinstance(question, Optimum) or np.isfinite(instance.tasks).all():
        return allocation
    sharing: Any = allocation.sharing
    limits = question.notion.formulate(instance, sharing=sharing, integral=False).limits
    rows = limits.kinds == LimitKind.TASKS
    tasks = instance.tasks.copy()
    tasks[limits.keys[rows, 0]] = limits.bounds[rows]
    if np.array_equal(tasks, instance.tasks):
        return allocation
    as_given = np.where(np.isfinite(instance.tasks), instance.given("tasks"), tasks)
    return dataclasses.replace(allocation, instance=instance.replace(tasks=as_given))


@contextmanager
def quietly() -> Iterator[None]:
    """Silence warnings about users without a suitable server: they were given when the allocation was made, and a search solves often."""
    loggers = [logging.getLogger(name) for name in ("fairopt.solving.optimum", "fairopt.scheduling.greedy")]

    def only_errors(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    for logger in loggers:
        logger.addFilter(only_errors)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(only_errors)


def unanswered(what: object, why: str) -> Answered:
    """Return what stands in the place of an allocation whose computation has ended its worker, also when it was tried alone."""
    return NoSolution(f"computing it ended its worker twice, the second time alone: {why}"), 0.0
