"""Who gets what under one notion, against guarantee and weight: the first table of a report, and the parts that its bars show.

Without queues a bar is the largest part of a resource of the cluster that the user holds. In a tree of queues it is the part of one
resource where all guarantees are of this one, or, without guarantees, all limits: bars of one resource can be compared. Where they are of
several, the bar of a queue is of the resource that it is guaranteed, else of a resource that has a limit; that of all others, and all bars
where there is no bound, is the largest part of any.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.allocation.holdings import QueueHoldings
from fairopt.analysis.comparison import Row
from fairopt.analysis.measures import shares_per_task, takes_part
from fairopt.instance import FloatArray, safe_ratio
from fairopt.reporting.tables.queues import lacking, promised, tree_of
from fairopt.show.table import Column, Format, Style, Table, names, numbers, words
from fairopt.wording import percent, plural

__all__ = ["Answer", "Held", "answer_of", "bars_of_queues", "parts_of_users"]

_ROWS, _LEAST = 30, 12  # of more users than this, so many that hold least for their weight are shown
_OTHERS = 4  # further allocations beside it
_PART = Format(percent=True, decimals=1, tiny=True)
_VISIBLE = 5e-4  # of the cluster


@dataclass(frozen=True, slots=True)
class Held:
    """What one bar shows, in parts of the cluster.

    Attributes
    ----------
    part : float
        What the user or the queue holds.
    by_weight : float or None
        Its weight as a part of all weights, where one weight for each user compares all users.
    guarantee, limit : float or None
    missing : float
        Of the guarantee.
    before : float or None
        What it held before a change.
    """

    part: float
    by_weight: float | None = None
    guarantee: float | None = None
    limit: float | None = None
    missing: float = 0.0
    before: float | None = None

    @property
    def has_changed(self) -> bool:
        """Whether it held more or less before a change, by more than a drawing shows."""
        return self.before is not None and abs(self.before - self.part) > _VISIBLE

    @property
    def largest(self) -> float:
        """The largest of these numbers."""
        return max(self.part + self.missing, self.by_weight or 0.0, self.guarantee or 0.0, self.limit or 0.0, self.before or 0.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """The table, a bar for each of its rows (None: no bar), what bars are parts of, and what the table leaves out."""

    table: Table
    bars: tuple[Held | None, ...]
    measure: str
    left_out: str = ""

    def any(self, mark: str) -> bool:
        """Say whether a bar has such a mark."""
        return any(getattr(bar, mark) for bar in self.bars if bar is not None)


def answer_of(row: Row, others: Sequence[Row] = ()) -> Answer:
    """Return who gets what in a row that has an allocation, and the tasks in other rows beside it."""
    assert row.allocation is not None
    beside = [other for other in others if other.allocation is not None][:_OTHERS]
    return _of_tree(row.allocation, beside) if row.allocation.instance.queues else _of_users(row.allocation, beside)


def _of_users(allocation: Allocation, beside: Sequence[Row]) -> Answer:
    instance = allocation.instance
    parts, own = parts_of_users(allocation)
    by_weight = instance.weights / instance.weights.sum() if instance.weights.ndim == 1 and instance.weights.sum() > 0 else None
    shown, left_out = np.arange(instance.n_users), ""
    if instance.n_users > _ROWS:
        due = instance.weights if instance.weights.ndim == 1 else np.ones(instance.n_users)
        wanting = np.flatnonzero(~allocation.complete | ~instance.servable)
        ranked = wanting[np.argsort(np.divide(parts, due, out=np.zeros_like(parts), where=due > 0)[wanting], kind="stable")]
        shown = ranked[:_LEAST] if ranked.size else shown[:_LEAST]
        least = "that hold least for their weight among those that want more" if ranked.size else "of the file"
        left_out = f"The {'first ' if not ranked.size else ''}{plural(shown.size, 'user')} {least}, of {instance.n_users:,}."
    exact = allocation.as_known
    columns: list[Column] = [
        names("user", (instance.users[n] for n in shown)),
        numbers("tasks", allocation.tasks_per_user[shown], alike=True),
        *([] if instance.speeds_given is None else [numbers("work", allocation.work[shown], alike=True)]),
        *_tasks_beside(beside, lambda other: other.tasks_per_user[shown]),
        numbers("holds", (_named_part(parts[n], allocation.dominant_resources[n], allocation) for n in shown)),
    ]
    if instance.weights.ndim == 1:
        columns.append(numbers("weight", instance.weights[shown], 4))
    if by_weight is not None:
        columns.append(numbers("by weight", (_percent(by_weight[n]) for n in shown)))
    if instance.guarantees[shown].any():
        columns.append(words("guarantee", (_promise(exact, n) for n in shown), styles=tuple(_style(exact, n) for n in shown)))
    if any(states := [_state(allocation, n) for n in shown]):
        columns.append(words("", states))
    guarantees = instance.guarantees * own if own is not None else np.zeros(instance.n_users)
    bars = tuple(
        Held(
            float(parts[n]),
            None if by_weight is None else float(by_weight[n]),
            float(guarantees[n]) or None,
            missing=lacking(float(guarantees[n]), float(parts[n])),
        )
        for n in shown
    )
    what = "time of the cluster" if allocation.sharing == "tdm" else "cluster, of the resource of which the user holds the largest part"
    return Answer(Table.of(*columns), bars, what, left_out)


def parts_of_users(allocation: Allocation) -> tuple[FloatArray, FloatArray | None]:
    """Return the dominant share of each user without its weight, (users,), and that of one task, unless it depends on the server.

    Where demands or speeds differ by server, it is that of all that the user holds, and not of its work.
    """
    instance = allocation.instance
    if instance.differs_by_server and allocation.sharing == "rdm":
        return np.asarray(safe_ratio(instance.held_of(allocation.tasks), instance.total_capacity).max(axis=1, initial=0.0)), None
    per_task = shares_per_task(instance.replace(weights=None))
    held = allocation.tasks_per_user[:, None] if per_task.shape[1] == 1 else allocation.tasks
    parts = (np.where(held > 0, per_task, 0) * held).sum(axis=1)
    finite = per_task[:, 0] if per_task.shape[1] == 1 else None
    return parts, None if finite is None else np.where(np.isfinite(finite), finite, 0)


def _promise(allocation: Allocation, user: int | np.integer[Any]) -> str:
    own = allocation.instance.guarantees[user]
    return promised(own, allocation.tasks_per_user[user]) if own else ""


def _style(allocation: Allocation, user: int | np.integer[Any]) -> Style:
    return "bad" if lacking(allocation.instance.guarantees[user], allocation.tasks_per_user[user]) else ""


def _state(allocation: Allocation, user: int | np.integer[Any]) -> str:
    instance = allocation.instance
    if not instance.servable[user]:
        return "cannot run"
    if not takes_part(instance)[user]:
        return "nothing to run"
    return "all its tasks" if allocation.complete[user] else ""


def _named_part(part: float, resource: str, allocation: Allocation) -> str:
    thing = "time" if allocation.sharing == "tdm" else resource
    return f"{_percent(part)} {thing}" if part > 0 else percent(0.0, 1)


def _percent(part: float) -> str:
    return _PART.write([part])[0]


def _tasks_beside(beside: Sequence[Row], of: Any) -> Iterable[Column]:
    return (numbers(f"tasks, {row.name}", of(row.allocation), alike=True) for row in beside)


# Trees of queues -----------------------------------------------------------------------------------------------------------------


def _of_tree(allocation: Allocation, beside: Sequence[Row]) -> Answer:
    tree = tree_of(allocation)
    resource = _resource(allocation)
    by_title = {column.title: column for column in tree.table.columns}
    drawn = [_bar(allocation, each, resource) for each in tree.holders]
    bars = tuple(held for held, _ in drawn)
    parts = [_percent(held.part) if resource else _named_part(held.part, thing, allocation) for held, thing in drawn]
    measure = f"{resource} of the cluster" if resource else "cluster, of the resource beside it"
    if resource is None:
        measure += ": that of a guarantee, else of a limit, else the largest part" if _bounded(allocation) else ": the largest part"
    columns = [by_title[title] for title in ("queue, user", "tasks", "work") if title in by_title]
    for row in beside:
        assert row.allocation is not None
        held = {each.node: each.tasks for each in row.allocation.queue_holdings()}
        tasks = [held[each.node] if isinstance(each, QueueHoldings) else row.allocation.tasks_per_user[each] for each in tree.holders]
        columns.append(numbers(f"tasks, {row.name}", tasks, alike=True))
    columns += [numbers(f"{resource} held" if resource else "holds", parts), by_title["weight"]]
    columns += [by_title[title] for title in ("guarantee", "limit") if title in by_title]
    left_out = f"Not shown: {tree.left_out}." if tree.left_out else ""
    return Answer(Table.of(*columns, totals=1), (*bars[:-1], None), measure, left_out)


def bars_of_queues(allocation: Allocation) -> tuple[str | None, list[tuple[QueueHoldings, Held, str]]]:
    """Return the resource of which bars show a part (None: each of its own), and each queue shown, its bar and resource."""
    resource = _resource(allocation)
    queues = [each for each in tree_of(allocation).holders[:-1] if isinstance(each, QueueHoldings)]
    return resource, [(each, *_bar(allocation, each, resource)) for each in queues]


def _resource(allocation: Allocation) -> str | None:
    """Return the resource of all guarantees, or, without these, of all limits; None if there are none, or of several resources."""
    queues = allocation.queue_holdings()[1:]
    named = _there(allocation, (one.resource for each in queues for one in each.guarantees)) or _bounded(allocation)
    return named.pop() if len(named) == 1 else None


def _bounded(allocation: Allocation) -> set[str]:
    """Return the resources of guarantees and limits of queues that the cluster has."""
    queues = allocation.queue_holdings()[1:]
    guaranteed, limited = ([one.resource for each in queues for one in getattr(each, what)] for what in ("guarantees", "limits"))
    return _there(allocation, [*guaranteed, *limited])


def _there(allocation: Allocation, named: Iterable[str]) -> set[str]:
    capacity = _capacity(allocation)
    return {resource for resource in named if capacity[resource] > 0}


def _capacity(allocation: Allocation) -> dict[str, float]:
    return dict(zip(allocation.instance.resources, allocation.instance.total_capacity.tolist(), strict=True))


def _bar(allocation: Allocation, each: QueueHoldings | int, resource: str | None) -> tuple[Held, str]:
    """Return the bar of a queue or user, and of which resource it is: of the given one, or of its own."""
    instance = allocation.instance
    if not isinstance(each, QueueHoldings):
        parts = _of_user(allocation, each)
        own = instance.resources[int(parts.argmax())] if resource is None else resource
        return Held(float(parts[instance.resources.index(own)])), own
    capacity = _capacity(allocation)
    own = resource or _own_resource(each, capacity)
    if not own:
        return Held(float(each.dominant_share)), own
    whole = capacity[own]
    guarantees = [one for one in each.guarantees if one.resource == own]
    limits = [float(one.amount) / whole for one in each.limits if one.resource == own and not one.group]
    held = Held(
        float(each.used[own]) / whole,
        guarantee=next((float(one.amount) / whole or None for one in guarantees if not one.group), None),
        limit=min(limits, default=None),
        missing=max((float(one.missing) / whole for one in guarantees), default=0.0),
    )
    return held, own


def _own_resource(each: QueueHoldings, capacity: dict[str, float]) -> str:
    """Return the resource that a queue is guaranteed, else of a limit, else its dominant one; of several what it lacks or holds most of."""

    def part(amount: Any, resource: str) -> float:
        return float(amount) / capacity[resource]

    own = [one for one in each.guarantees if capacity[one.resource] > 0]
    if own:
        return max(own, key=lambda one: (part(one.missing, one.resource), part(one.held, one.resource))).resource
    limits = [one for one in each.limits if capacity[one.resource] > 0]
    return max(limits, key=lambda one: part(one.held, one.resource)).resource if limits else each.dominant_resource


def _of_user(allocation: Allocation, user: int) -> FloatArray:
    """Return the part of each resource of the cluster that a user holds, (resources,)."""
    instance = allocation.instance
    used = instance.held_of(allocation.tasks[[user]], [user])[0]
    parts: FloatArray = np.divide(used, instance.total_capacity, out=np.zeros_like(used), where=instance.total_capacity > 0)
    return parts
