"""The analyses of a report. If one fails, its message takes its place, and the others go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy.typing as npt

from fairopt.allocation import Allocation
from fairopt.analysis.auditing import Audit, audit
from fairopt.analysis.comparing import compare
from fairopt.analysis.comparison import Comparison, Row
from fairopt.analysis.explaining import explain
from fairopt.analysis.explanation import Explanation
from fairopt.analysis.frontiers import ALPHAS, Frontier, FrontierPoint, frontier
from fairopt.errors import FairoptError, Unsupported
from fairopt.instance import Instance
from fairopt.models import NOTIONS, Notion, Sharing
from fairopt.solving import formulate
from fairopt.specs import NotionSpec, ScheduleSpec, read_notion
from fairopt.validation import check_whole_number

__all__ = ["PROMISES", "Findings", "OfNotion", "Outcome", "number_of_steps", "study"]

T = TypeVar("T")

PROMISES = ("guarantees", "sharing-incentive", "envy-freeness")
"""The properties whose violation is a complaint of a user."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What an analysis found, or why it failed."""

    value: T | None = None
    message: str = ""

    @classmethod
    def of(cls, task: Callable[[], T]) -> Outcome[T]:
        """Return what the task returns, or the message of its error."""
        try:
            return cls(task())
        except FairoptError as error:
            return cls(message=str(error))


@dataclass(frozen=True, slots=True, eq=False)
class OfNotion:
    """One notion: its row of the comparison, its program, and the audit and explanations of its allocation."""

    row: Row
    notion: Notion
    program: Outcome[str]
    audit: Outcome[Audit]
    explanations: dict[str, Outcome[Explanation]]

    @property
    def name(self) -> str:
        """The name of its row."""
        return self.row.name

    @property
    def allocation(self) -> Allocation | None:
        """The exact allocation; None if it could not be computed."""
        return self.row.allocation


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """An instance and every analysis of it."""

    instance: Instance
    comparison: Comparison
    notions: tuple[OfNotion, ...]
    frontier: Outcome[Frontier]
    audits: dict[str, Outcome[Audit]] = field(default_factory=dict)  # of given allocations, by the name of their row
    promises: dict[str, Outcome[Audit]] = field(default_factory=dict)  # of schedules in a tree of queues, by the name of their row

    @property
    def solved(self) -> tuple[OfNotion, ...]:
        """The notions that have an allocation."""
        return tuple(each for each in self.notions if each.allocation is not None)

    @property
    def made(self) -> list[Row]:
        """The rows that have an allocation."""
        return [row for row in self.comparison if row.allocation is not None]

    def audit_of(self, row: Row) -> Audit | None:
        """Return the audit of a row, of all properties or of the promises alone; None if there is none."""
        of_notions = {each.name: each.audit for each in self.notions}
        outcome = of_notions.get(row.name) or self.audits.get(row.name) or self.promises.get(row.name)
        return None if outcome is None else outcome.value

    @property
    def points(self) -> tuple[FrontierPoint, ...]:
        """All allocations as points on or below the frontier: notions and schedules, then the alpha-fair ones."""
        trade = self.frontier.value
        if trade is None:
            return ()
        rows = [
            FrontierPoint(
                row.name,
                "notion" if row.kind == "exact" else row.kind,
                total=row.tasks,
                smallest_share=row.smallest_share,
                price_of_fairness=1 - row.tasks / trade.largest_total,
                price_of_efficiency=1 - row.smallest_share / trade.largest_share,
                allocation=row.allocation,
            )
            for row in self.comparison
            if row.allocation is not None
        ]
        return (*rows, *trade.points)

    @property
    def schedules(self) -> tuple[Row, ...]:
        """The rows of the schedules, and of given allocations."""
        return self.comparison.rows[len(self.notions) :]

    @property
    def given(self) -> tuple[Row, ...]:
        """The rows of given allocations."""
        return tuple(row for row in self.schedules if row.name in self.audits)


def number_of_steps(
    notions: Sequence[NotionSpec],
    schedules: Sequence[ScheduleSpec],
    explain_users: Sequence[str],
    allocations: int = 0,
    *,
    one_page: bool = False,
) -> int:
    """Return how often `study` calls ``done``."""
    if one_page:
        return len(notions) + 1 + len(explain_users) + len(schedules) + allocations
    return len(notions) * (2 + len(explain_users)) + len(schedules) + 2 * allocations + len(ALPHAS) + 1


def study(
    instance: Instance,
    notions: Sequence[NotionSpec],
    schedules: Sequence[ScheduleSpec],
    explain_users: Sequence[str],
    *,
    allocations: Mapping[str, npt.ArrayLike | Allocation | str | os.PathLike[str]],
    sharing: Sharing | None,
    effort: int,
    seed: int,
    time_limit: float | None,
    done: Callable[[str], object],
    one_page: bool = False,
) -> Findings:
    """Compute everything, one analysis after the other; for one page only what it shows: of the first notion the promises.

    Raises
    ------
    InvalidInstance, Unsupported
        A notion, placement or user does not exist. Every other error becomes a message in its place.
    """
    if not notions:
        raise Unsupported(f"a report needs at least one notion; choose from {', '.join(NOTIONS)}")
    check_whole_number("effort", effort, 1)
    check_whole_number("seed", seed, 0)
    for user in explain_users:
        if all(queue.name != user for queue in instance.queues):
            instance.index(user)
    comparison = compare(
        instance, notions=notions, schedules=schedules, allocations=allocations, sharing=sharing, time_limit=time_limit, done=done
    )
    rows = list(zip(comparison.rows, notions, strict=False))
    if one_page:
        first = next((row for row, _ in rows if row.allocation is not None), rows[0][0])
        brief = tuple(
            _of_notion(comparison, row, read_notion(spec)[1], explain_users, effort, seed, time_limit, done, PROMISES)
            if row is first
            else OfNotion(row, read_notion(spec)[1], Outcome(), Outcome(), {})
            for row, spec in rows
        )
        return Findings(instance, comparison, brief, Outcome())
    found = tuple(_of_notion(comparison, row, read_notion(spec)[1], explain_users, effort, seed, time_limit, done) for row, spec in rows)
    trade = Outcome.of(lambda: frontier(instance, notions=[], sharing=sharing, time_limit=time_limit, done=done))
    if trade.value is None:
        done("frontier")
    audits: dict[str, Outcome[Audit]] = {}
    for row in comparison.rows[len(comparison.rows) - len(allocations) :]:
        held = row.allocation
        assert held is not None
        audits[row.name] = Outcome.of(lambda held=held: audit(held, effort=effort, seed=seed, time_limit=time_limit))  # type: ignore[misc]
        done(f"audit, {row.name}")
    promises = {
        row.name: Outcome.of(lambda held=row.allocation: audit(held, PROMISES, effort=1, time_limit=time_limit))  # type: ignore[misc]
        for row in comparison.rows[len(found) :]
        if instance.is_tree and row.allocation is not None and row.name not in audits
    }
    return Findings(instance, comparison, found, trade, audits, promises)


def _of_notion(
    comparison: Comparison,
    row: Row,
    notion: Notion,
    explain_users: Sequence[str],
    effort: int,
    seed: int,
    time_limit: float | None,
    done: Callable[[str], object],
    properties: Sequence[str] | None = None,
) -> OfNotion:
    sharing: Sharing = comparison.sharing  # type: ignore[assignment]
    program = Outcome.of(lambda: str(formulate(comparison.instance, notion, sharing=sharing)))
    allocation = row.allocation
    if allocation is None:
        nothing: Outcome[Audit] = Outcome(message=row.message)
        for what in ("audit", *explain_users):
            done(f"{what}, {row.name}")
        return OfNotion(row, notion, program, nothing, {})
    judged = Outcome.of(lambda: audit(allocation, properties, effort=effort, seed=seed, time_limit=time_limit))
    done(f"audit, {row.name}")
    explanations: dict[str, Outcome[Explanation]] = {}
    for user in explain_users:
        explanations[user] = Outcome.of(lambda user=user: explain(allocation, user, time_limit=time_limit))  # type: ignore[misc]
        done(f"{user}, {row.name}")
    return OfNotion(row, notion, program, judged, explanations)
