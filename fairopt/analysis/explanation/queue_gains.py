"""What a change would give a queue, in tasks of all users below it: each change is made, and the allocation solved again.

The changes are those that an administrator of the queue can ask for: more weight; a larger limit of the queue, or of one above it, that is
reached; more of the guarantee of another queue lent, where that keeps resources from this one; a larger guarantee; and more of a resource,
on a server where it is full and a user below may run. Prices say which of them to try first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import Gain, Number, none_helps
from fairopt.analysis.explanation.changes import Change, limit_changes, raised, shared_changes, step_of
from fairopt.analysis.explanation.gains import change_of_capacity, digits, kinds_of_servers, part_more, solved
from fairopt.analysis.explanation.weights import OF_WEIGHTS, more_weight, weights_of_queue
from fairopt.analysis.measures import takes_part
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.fractions import rounding
from fairopt.instance.tolerances import WRITTEN
from fairopt.program.queue_limits import Row
from fairopt.solvers.backend import Deadline
from fairopt.wording import plural

__all__ = ["gains_of_queue", "what_would_help"]

_NAMED = 3  # gains in a sentence


def gains_of_queue(
    allocation: Allocation, node: int, *, resolves: int = 6, deadline: Deadline | None = None, done: Callable[[str], object] | None = None
) -> tuple[Gain, ...]:
    """Return what the ``resolves`` most promising changes would give the users below a node together, the largest gain first."""
    instance = allocation.instance
    below = instance.tree.below[node]
    wanting = below & takes_part(instance) & ~allocation.as_known.complete
    if allocation.question is None or not resolves or not wanting.any():
        return ()
    changes = [
        *limit_changes(allocation, wanting),
        *shared_changes(allocation, wanting),
        *weights_of_queue(allocation, node),
        *_guarantees(allocation, node),
        *_capacity(allocation, wanting, resolves),
    ]
    found = []
    for change in changes[:resolves]:
        gain, note = solved(allocation, below, change, deadline or Deadline(None))
        if done is not None:
            done(change.words)
        found.append(Gain(change.words, change.kind, None, gain, note))
    return tuple(sorted(found, key=lambda each: -digits(each.best_known)))


def what_would_help(found: tuple[Gain, ...], tasks: Number, of_work: str = "") -> Iterator[str]:
    """Yield the sentences on the gains: the best of them, and what would give nothing; ``of_work``: "the work of " for gains of work."""
    good = [gain for gain in found if gain.best_known > 0]
    if good:
        first, *others = good[:_NAMED]
        yield f"What would help: {first.change} would give it {_gain(first, tasks, of_work)}."
        for gain in others:
            yield f"{gain.change[0].upper()}{gain.change[1:]} would give it {_gain(gain, tasks, of_work)}."
    known = [gain for gain in found if gain.by_solving is not None]
    if known and not good:
        if len(known) > 1:
            yield none_helps(len(known))
        else:
            yield f"{known[0].change[0].upper()}{known[0].change[1:]} would give it nothing."
    else:
        yield from more_weight([gain for gain in found if gain.kind in OF_WEIGHTS])
    late = [gain.note for gain in found if gain.note]
    if late:
        yield f"{plural(len(late), 'change was', 'changes were')} not solved: {late[0]}."


def _gain(gain: Gain, tasks: Number, of_work: str) -> str:
    more = gain.best_known
    text = of_work + plural(more, "task", digits=3)
    return f"{text} more ({part_more(more, tasks)})" if tasks > 0 else text


# Changes -------------------------------------------------------------------------------------------------------------------------


def _guarantees(allocation: Allocation, node: int) -> list[Change]:
    """Return a larger guarantee of each resource of which the queue has one and holds all of it or lacks some."""
    view, instance, changes = allocation.as_known, allocation.instance, list[Change]()
    queue = view.instance.queues[node - 1]
    own = next(each for each in view.queue_holdings() if each.node == node)
    for each in own.guarantees:
        group = next(k for k, quota in enumerate(queue.everywhere_and_on_groups) if (quota.name if k else "") == each.group)
        quota = queue.everywhere_and_on_groups[group]
        after = each.amount + (step_of(each.amount) if each.amount > 0 else 1)
        if each.unused or after > quota.limit.get(each.resource, np.inf):
            continue
        row = Row("", np.empty(0, bool), np.empty(0, bool), 0, 0.0, (node, group))
        words = f"a guarantee of {each.figure(after)} {each.where} instead of {each.figure(each.amount)}"
        changes.append(Change(words, "guarantee", raised(instance, row, "guarantee", each.resource, after)))
    return changes


def _capacity(allocation: Allocation, users: BoolArray, most: int) -> list[Change]:
    """Return more of the resources that are full where some of these users may run, one server of each kind; the largest price first."""
    view = allocation.as_known
    instance = view.instance
    by_time = allocation.sharing == "tdm"
    wanted = np.zeros((instance.n_servers, 1 if by_time else instance.n_server_resources), bool)
    for n in np.flatnonzero(users).tolist():
        demand = instance.demands_by_row(n)[:, : instance.n_server_resources]
        wanted |= instance.eligibility[n][:, None] & (np.ones((1, 1), bool) if by_time else demand > 0)
    used = view.time_utilization[:, None] if by_time else view.utilization
    offered = np.ones(wanted.shape, bool) if by_time else instance.row_capacity > 0
    full = wanted & offered & (used >= 1 - rounding(WRITTEN, used)) & (instance.counts > 0)[:, None]
    value: Any = _prices(view, users, full.shape)
    kind = kinds_of_servers(allocation)
    first = np.unique(kind, return_index=True)[1]
    cells = dict.fromkeys((int(first[kind[i]]), int(r)) for i, r in np.argwhere(full))
    ordered = sorted(cells, key=lambda cell: -value[cell] * change_of_capacity(allocation, *cell)[0])
    return [change_of_capacity(allocation, *cell)[1] for cell in ordered[:most]]


def _prices(allocation: Allocation, users: BoolArray, shape: tuple[int, ...]) -> FloatArray:
    """Return the prices at the levels where these users stop, added up, (servers, resources); without levels those of the goal."""
    value = np.zeros(shape, allocation.tasks.dtype)
    numbers = {number for number, own in zip(allocation.level_of_user, users, strict=True) if own and number is not None}
    tables = [allocation.levels[number - 1].prices for number in numbers] or [allocation.prices]
    for table in tables:
        if table is not None:
            value += np.maximum(table, 0)
    return value
