"""An export, read back: what everybody would get under the queues that it writes.

Servers, users, demands and numbers of tasks stay; weights, tiers, guarantees and limits are those of the export. Limits and rules that the
export does not write are gone. The exact answer of DRFH to that instance is compared with the whole tasks that were exported.

A user has less if its share is below its own by more than the rounding of the export: what rounding to whole tasks changed of all shares
together, and one task of each user in its leaf, since the amounts of a leaf are those of its whole tasks together. What DRFH itself takes
from a user does not count: an export of another notion is compared with the smaller of its own tasks and DRFH's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.clusters.holdings import Holdings
from fairopt.errors import FairoptError, Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import REACHED
from fairopt.solving import solve, without_remarks
from fairopt.wording import figure, joined, named, plural

__all__ = ["Said", "less_than_exported"]

_NOTION = "drfh"
_MOST = 5  # users in a sentence
_MOST_PAIRS = 2_000_000  # of users and rows of servers: above, reading back takes as long as the allocation did


@dataclass(frozen=True, slots=True)
class Said:
    """What an export says of each holder, in the smallest units of the scheduler.

    Attributes
    ----------
    most : sequence of mappings
        By resource; what is not named has no limit.
    promised : bool
        Whether each holder is promised its `fairopt.clusters.holdings.Holdings.quota`.
    weights : {"own", "promises"}
        What is idle is divided by the weights of the holders, or in proportion to what they are promised.
    tiers : bool
    bounds : mapping
        The bounds of named limits, by name, where the export writes another than that of the instance.
    """

    most: Sequence[Mapping[str, int]]
    promised: bool = True
    weights: str = "own"
    tiers: bool = False
    bounds: Mapping[str, float] = field(default_factory=dict)


def less_than_exported(holdings: Holdings, said: Said, written: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return sentences on who would have less, and why the export could not be read back, if so.

    Parameters
    ----------
    written : sequence of str
        The named limits that the export writes or leaves as the scheduler has them; the others are not there when it is read back.
    """
    whole = holdings.whole
    instance = whole.instance
    if instance.differs_by_server:
        return [], ["the export was not read back: tasks take other amounts, or do other work, on other servers"]
    if instance.n_users * instance.n_servers > _MOST_PAIRS:
        return [], ["the export was not read back: the cluster has too many users and rows of servers to be solved twice"]
    try:
        with without_remarks():
            back = solve(_read_back(holdings, said, written), _NOTION).tasks_per_user
            less = _less(holdings, whole.tasks_per_user, back)
            if less.any():  # is it the export, or DRFH?
                less &= _less(holdings, np.minimum(whole.tasks_per_user, solve(instance, _NOTION).tasks_per_user), back)
    except FairoptError as error:
        kind = "cannot be read back" if isinstance(error, Unsupported) else "was not read back"
        return [], [f"the export {kind}: {error}"]
    if not less.any():
        return [], []
    gone = [limit.name for limit in instance.limits if limit.name not in written] + [rule.text for rule in instance.rules]
    why = f"; {joined([named(name) for name in gone], _MOST)} {'is' if len(gone) == 1 else 'are'} not in it" if gone else ""
    some = [
        f"{named(instance.users[n])} {figure(float(back[n]), 4)} of {plural(float(whole.tasks_per_user[n]), 'task')}"
        for n in np.flatnonzero(less).tolist()
    ]
    return [f"read back and solved again, the export gives {joined(some, _MOST)}{why}"], []


def _less(holdings: Holdings, wanted: FloatArray, back: FloatArray) -> Any:
    """Return who has less by more than the rounding, (users,)."""
    instance = holdings.whole.instance
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(instance.total_capacity > 0, instance.demands / instance.total_capacity, 0.0).max(axis=1)
    rounded = np.abs(holdings.whole.tasks_per_user - holdings.whole.allocation.tasks_per_user)
    slack = np.zeros(instance.n_users)
    for holder in holdings.holders:
        if holder.leaf:
            slack[holder.users] = np.maximum(slack[holder.users], shares[holder.users].sum())
    return (wanted - back) * shares > slack + float(rounded @ shares) + REACHED * wanted * shares


def _read_back(holdings: Holdings, said: Said, written: Sequence[str]) -> Instance:
    """Return the instance with the queues of the export."""
    instance, holders = holdings.whole.instance, holdings.holders
    steps = dict(zip(holdings.resources, holdings.steps.tolist(), strict=True))
    there = np.maximum(holdings.capacity.sum(axis=0), 1)
    queues: list[Queue] = []
    queue_of: dict[str, str | None] = {}
    for h, holder in enumerate(holders):
        quota = holdings.quota(h) if said.promised else {}
        weight = holder.weight if holder.queue is not None or instance.weights.ndim > 1 else float(instance.weights[holder.users].sum())
        if said.weights == "promises":
            weight = float((holdings.promised[h].sum(axis=0) / there).max(initial=0.0)) or 1e-9
        limit = {r: max(amount, quota.get(r, 0)) / float(steps[r]) for r, amount in said.most[h].items()}
        queues.append(
            Queue(
                holder.label,
                holders[holder.parent].label if holder.parent >= 0 else None,
                weight,
                guarantee={r: amount / float(steps[r]) for r, amount in quota.items()} if any(quota.values()) else {},
                limit=limit,
                tier=holder.tier if said.tiers else 0,
            )
        )
        if holder.leaf:
            queue_of |= {instance.users[n]: holder.label for n in np.flatnonzero(holder.users).tolist()}
    labels = {holder.label for holder in holders}
    kept = [
        limit.replace(bound=said.bounds.get(limit.name, limit.bound))
        for limit in instance.limits
        if limit.name in written and labels.issuperset(limit.queues or ())
    ]
    return instance.replace(queues=queues, queue_of=queue_of, limits=kept, rules=())
