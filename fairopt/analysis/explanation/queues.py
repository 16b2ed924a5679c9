"""Queues in an explanation: the limits of queues that stop a user, and the explanation of a queue.

A limit of a queue that is reached stops everybody below it who demands the resource, on the servers that the limit is about: one more task
takes away a task of somebody else below the queue. What queues *keep* of their guarantees, by lending limits, does the same to everybody
outside these queues, and to those of a queue that uses all that it keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.allocation.counted import counted_holdings
from fairopt.allocation.holdings import QueueHoldings
from fairopt.allocation.promises import Guaranteed
from fairopt.analysis.explanation import Number, number
from fairopt.analysis.explanation.of_cluster import FullOfCluster, full_of_cluster
from fairopt.analysis.measures import takes_part
from fairopt.analysis.properties.guarantees import could_hold_alone, held_beyond
from fairopt.instance import BoolArray, Instance
from fairopt.instance.fractions import rounding
from fairopt.instance.keeping import keepings_of
from fairopt.instance.selections import Selection
from fairopt.instance.tolerances import FITS, WRITTEN
from fairopt.instance.units import bare_amount
from fairopt.program.kept_parts import counted_rows
from fairopt.program.queue_limits import Row
from fairopt.wording import figure, joined, named, percent, plural

__all__ = ["Stop", "about_queue", "amount_of", "in_words", "of_weight_0", "path_of", "queue_in_short", "reached_limits", "stops_of"]

_NAMES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Stop:
    """A reached limit of a queue, or a reached named limit.

    Attributes
    ----------
    queue : str
        Its name; the names of all queues that keep something, if that is what is reached; the name of the row of a named limit.
    row : Row
    """

    queue: str
    row: Row

    @property
    def keeps(self) -> bool:
        """Is it what queues keep of their guarantees, a limit on everybody else?"""
        return bool(self.row.keepers)

    def words(self, instance: Instance) -> str:
        """Return the limit as the subject of a sentence: "the limit of interns, 4 gpu, is reached"."""
        if self.row.selection is not None:
            return self._named_limit(self.row.selection, instance)
        resource = instance.resources[self.row.resource]
        node, k = self.row.keepers[0][:2] if self.keeps else self.row.of
        quota = instance.tree.queues[node - 1].everywhere_and_on_groups[k]
        on = f" on {quota.name}" if k and not self.row.servers.all() else ""
        amount = instance.amount(self.row.bound, resource, 6)
        if not self.keeps:
            return f"the limit of {self.queue}, {amount}{on}, is reached"
        unit = instance.units.get(resource, "")
        kept = f"{joined([bare_amount(each, resource, unit, 6) for *_, each in self.row.keepers], _NAMES)} {named(resource)}"
        one = len(self.row.keepers) == 1
        keep = f"keeps {kept} of its guarantee to itself" if one else f"keep {kept} of their guarantees to themselves"
        if not self.row.bound:
            return f"{self.queue} {keep} and leave{'s' if one else ''} nothing{on} to others"
        return f"{self.queue} {keep}, and the others hold all {amount}{on} that {'it leaves' if one else 'they leave'}"

    def _named_limit(self, selection: Selection, instance: Instance) -> str:
        """Return a named limit that is reached: "all 8 gpu of limit long-gpu are in use"."""
        amount, name = amount_of(self.row, self.row.bound, instance), named(self.row.name)
        if not self.row.bound:
            return f"limit {name} allows nothing"
        return f"all {amount} of limit {name} {'is' if self.row.bound == 1 else 'are'} in use"


def amount_of(row: Row, value: Number, instance: Instance, digits: int = 6) -> str:
    """Return an amount of what a row is about: "8 gpu", "3 tasks"; of what has other amounts, the number alone."""
    if row.resource >= 0:
        return instance.amount(value, instance.resources[row.resource], digits)
    if row.selection is not None and row.selection.limit.counts_tasks:
        return plural(value, "task", digits=digits)
    return figure(value, digits)


def reached_limits(allocation: Allocation) -> list[Stop]:
    """Return the limits that are reached, of queues and named ones, and what queues keep; for whole tasks, those without room for one."""
    instance, found = allocation.instance, []
    queues = instance.tree.queues
    for row in counted_rows(instance, allocation.tasks, for_each=True):
        held = number(row.used(instance.kinds, allocation.tasks))
        demands = row.per_task(instance.kinds)
        demands = demands[demands > 0]
        if not demands.size:
            continue
        left, same = row.bound - held, rounding(WRITTEN, allocation.tasks)
        if left < demands.min() * (1 - same) if allocation.certificate.whole_tasks else left <= same * row.bound:
            if row.selection is not None:
                found.append(Stop(row.name, row))
                continue
            nodes = [node for node, *_ in row.keepers] or [row.of[0]]
            found.append(Stop(joined([named(queues[node - 1].name) for node in nodes], _NAMES), row))
    return found


def stops_of(allocation: Allocation, user: int, reached: list[Stop] | None = None) -> tuple[list[Stop | FullOfCluster], BoolArray]:
    """Return the reached limits that stop a user, full resources of the cluster among them, and on which servers, (servers,).

    Of what queues keep, only the row that leaves the least, for each resource and group: the others say less of the same.
    """
    instance = allocation.instance
    there = np.zeros(instance.n_servers, bool)
    found: list[Any] = []
    least: dict[tuple[int, bytes], int] = {}  # of what queues keep: where in the list
    for stop in reached_limits(allocation) if reached is None else reached:
        row = stop.row
        if not row.users[user]:
            continue
        counts = row.servers & (row.per_task(instance.kinds)[user] > 0)
        if not (counts & instance.eligibility[user]).any():
            continue
        there |= counts
        at = least.setdefault((row.resource, row.servers.tobytes()), len(found)) if stop.keeps else len(found)
        if at == len(found):
            found.append(stop)
        elif row.bound < found[at].row.bound:
            found[at] = stop
    of_cluster = [each for each in full_of_cluster(allocation, user) if each.stops]
    for each in of_cluster:
        there |= instance.demands_by_row(user)[:, each.resource] > 0
    return [*found, *of_cluster], there


def in_words(stops: Sequence[Stop | FullOfCluster], instance: Instance) -> str:
    """Return reached limits as one clause; each is one itself, so that a semicolon is between them."""
    more = [f"{len(stops) - _NAMES:,} more"] if len(stops) > _NAMES else []
    return "; ".join([*(stop.words(instance) for stop in stops[:_NAMES]), *more])


def path_of(instance: Instance, user: int) -> str:
    """Return where a user is in the tree, as a sentence; "" for a user in the root."""
    tree = instance.tree
    path = tree.path(int(tree.user_node[user]))
    if not path:
        return ""
    node = int(tree.user_node[user])
    beside = [named(instance.users[n]) for n in tree.users_of(node) if n != user]
    beside += [f"the queue {named(tree.name(int(child)))}" for child in tree.children(node)]
    tier = int(tree.tiers[tree.user_node[user]])
    first = tree.tiers[tree.user_node] > tier
    before = f"{plural(first.sum(), 'user')} of higher tiers {'is' if first.sum() == 1 else 'are'} served first"
    served = f" Its tier is {tier}: {before}." if first.any() else ""
    others = f", beside {joined(beside, _NAMES)}" if beside else ", alone"
    waits = "".join(f" It waits for {who}." for who in _first_served(instance, user))
    return f"It is in the queue {' > '.join(map(named, path))}{others}.{served}{waits}"


def _first_served(instance: Instance, user: int) -> Iterator[str]:
    """Yield who is served before a user in listed queues: "alice, who comes before it in the queue A"."""
    tree = instance.tree
    node = int(tree.user_node[user])
    before = [named(instance.users[n]) for n in tree.users_of(node) if n < user] if tree.listed[node] else []
    if before:
        come = "comes" if len(before) == 1 else "come"
        yield f"{joined(before, _NAMES)}, who {come} before it in the queue {named(tree.name(node))}"
    while node:
        yield from _queues_before(instance, node)
        node = int(tree.parent[node])


def _queues_before(instance: Instance, node: int) -> Iterator[str]:
    """Yield which queues are served before a queue in the listed queue around it, if it is in one and others come before."""
    tree = instance.tree
    above = int(tree.parent[node])
    before = [named(tree.name(int(child))) for child in tree.children(above) if child < node] if tree.listed[above] else []
    if before:
        come = "comes" if len(before) == 1 else "come"
        those = f"the queue{'s' * (len(before) > 1)} {joined(before, _NAMES)}"
        yield f"{those}, which {come} before {named(tree.name(node))} in the queue {named(tree.name(above))}"


def of_weight_0(instance: Instance, user: int) -> str:
    """Return whose weight is 0, the user's or that of the nearest queue around it: who gets nothing beyond guarantees; "" for none."""
    tree = instance.tree
    if not np.any(instance.weights[user]):
        return "its weight is 0"
    node = int(tree.user_node[user])
    while node:
        if tree.weights[node] == 0:
            return f"the weight of the queue {named(tree.name(node))} is 0"
        node = int(tree.parent[node])
    return ""


# A queue -------------------------------------------------------------------------------------------------------------------------


def about_queue(allocation: Allocation, node: int) -> tuple[str, ...]:
    """Return the sentences that explain a queue: what it holds, what it is guaranteed, what stops its users, its siblings."""
    holdings = {each.node: each for each in allocation.queue_holdings()}
    own = holdings[node]
    return (
        *_standing(allocation, own),
        *_guarantees(allocation, own),
        *_limits(allocation, own),
        *_stops(allocation, node),
        *_siblings(allocation, own, holdings),
    )


def queue_in_short(allocation: Allocation, node: int) -> tuple[str, str]:
    """Return two sentences: what a queue holds, and what is missing of a guarantee, or else what stops its users."""
    own = next(each for each in allocation.queue_holdings() if each.node == node)
    missing = (_guarantee(allocation, own, each) for each in own.guarantees if not each.met)
    return next(_standing(allocation, own)), next(missing, None) or next(_stops(allocation, node), "Nobody is in it.")


def _standing(allocation: Allocation, own: QueueHoldings) -> Iterator[str]:
    instance = allocation.instance
    total = dict(zip(instance.resources, instance.total_capacity, strict=True))
    parts = [
        f"{instance.amount(used, name)} ({percent(used / total[name])})" for name, used in own.used.items() if used > 0 and total[name] > 0
    ]
    held = f"holds {joined(parts)} of the cluster" if parts else "holds nothing"
    inside = f", in {' > '.join(map(named, own.path[:-1]))}," if own.depth > 1 else ""
    yield f"The queue {named(own.name)}{inside} {held}: {plural(own.tasks, 'task', digits=3)} of {plural(own.users, 'user')}."
    tree = instance.tree
    if tree.listed[own.node]:
        children = [named(instance.users[n]) for n in tree.users_of(own.node)]
        children += [f"the queue {named(tree.name(int(child)))}" for child in tree.children(own.node)]
        yield f"It serves one after the other: {joined(children, _NAMES)}." if len(children) > 1 else "It serves one after the other."
    yield from (f"It waits for {who}." for who in _queues_before(instance, own.node))


def _guarantees(allocation: Allocation, own: QueueHoldings) -> Iterator[str]:
    if not own.guarantees:
        yield "It has no guarantee of its own."
    for each in own.guarantees:
        alone = "" if each.met else could_hold_alone(allocation, own.node, each)
        yield f"{_guarantee(allocation, own, each)}{f' {alone.strip()}' if alone else ''}"


def _guarantee(allocation: Allocation, own: QueueHoldings, each: Guaranteed) -> str:
    amount = f"It is guaranteed {each.figure(each.amount, 6)} {each.where}"
    if not each.met:
        lacks = f"{amount}, and {each.figure(each.missing)} are missing although its users ask for them."
        return f"{lacks} {held_beyond(allocation, own.node, each)}"
    if each.borrowed:
        return f"{amount}, which it has; it borrows {each.figure(each.borrowed)} beyond that."
    if each.unused:
        return f"{amount} and uses {each.figure(each.held)}, all that its users ask for; {_rest(allocation, own, each)}."
    return f"{amount}, which it has, and no more."


def _rest(allocation: Allocation, own: QueueHoldings, each: Guaranteed) -> str:
    """Return who may use the part of a guarantee that a queue does not use, as the end of a sentence."""
    instance = allocation.instance
    quotas = instance.queues[own.node - 1].everywhere_and_on_groups
    idle: Number = 0
    for keeping in keepings_of(instance):
        if instance.resources[keeping.resource] == each.resource and own.node in keeping.nodes:
            k = keeping.nodes.index(own.node)
            if (quotas[keeping.quotas[k]].name if keeping.quotas[k] else "") == each.group:
                idle = max(number(keeping.kept[k]) - each.held, 0)
    if not idle > rounding(WRITTEN, allocation.tasks) * each.amount:
        return "others may use the rest"
    lent = each.amount - each.held - idle
    others = f", and others may use the other {each.figure(lent)}" if lent > rounding(WRITTEN, allocation.tasks) * each.amount else ""
    return f"it keeps {each.figure(idle)} of the rest to itself{others}"


def _limits(allocation: Allocation, own: QueueHoldings) -> Iterator[str]:
    gains = "the level at which it stops users" if allocation.levels else "the goal"
    for each in own.limits:
        state = "is reached" if each.reached else f"is not reached: it holds {each.figure(each.held)}"
        price = "" if each.price is None else f" One more unit of it raises {gains} by at most {figure(each.price)}, its price."
        yield f"Its limit of {each.figure(each.amount, 6)} {each.where} {state}.{price}"


def _stops(allocation: Allocation, node: int) -> Iterator[str]:
    """Yield why its users have no more, the users with the same reason together."""
    instance, tree = allocation.instance, allocation.instance.tree
    reached, part = reached_limits(allocation), takes_part(instance)
    least = 1 - rounding(WRITTEN, allocation.tasks)
    full = allocation.utilization >= least if allocation.sharing == "rdm" else allocation.time_utilization[:, None] >= least
    names = instance.server_resources if allocation.sharing == "rdm" else ("time",)
    counts_whole = allocation.certificate.whole_tasks and allocation.sharing == "rdm"
    left = instance.row_capacity - allocation.usage
    because: dict[str, list[str]] = {}
    in_tree = allocation.equalizes
    for n in np.flatnonzero(tree.below[node]):
        demand = instance.demands_by_row(int(n))[:, : instance.n_server_resources]
        asks = demand > 0 if allocation.sharing == "rdm" else np.ones((instance.n_servers, 1), bool)
        stops = stops_of(allocation, int(n), reached)[0]
        if not part[n]:
            reason = "cannot run anywhere, or has nothing to run"
        elif allocation.complete[n]:
            reason = "has all its tasks"
        elif stops:
            reason = f"is stopped: {in_words(stops, instance)}"
        else:
            there = instance.eligibility[n] & (instance.counts > 0)
            blocked = asks[there] & (left[there] < demand[there] * (1 - rounding(FITS, left)) if counts_whole else full[there])
            free = ~blocked.any(axis=1) & counts_whole & (not isinstance(allocation.question, Optimum))
            what = joined([named(names[r]) for r in np.flatnonzero(blocked.any(axis=0))], _NAMES)
            if free.any():
                rows = np.flatnonzero(there)[free]
                together = ", the servers of a row taken together" if (instance.counts[rows] > 1).any() else ""
                reason = (
                    f"could run more: there is room for a task on {joined([named(instance.servers[i]) for i in rows], _NAMES)}{together}"
                )
            elif not what and in_tree and (without := of_weight_0(instance, int(n))):
                reason = f"is stopped: nothing is due to it beyond guarantees, because {without}"
            elif not what:
                reason = "is stopped"
            elif counts_whole:
                reason = f"is stopped: {what} has no room for another task where it may run"
            else:
                reason = f"is stopped: {what} {'are' if ' and ' in what else 'is'} full where it may run"
        because.setdefault(reason, []).append(named(instance.users[n]))
    for reason, users in because.items():
        if len(users) > 1:
            reason = reason.replace("is stopped", "are stopped", 1).replace("has ", "have ", 1).replace("its tasks", "their tasks", 1)
            reason = reason.replace("where it may run", "where they may run")
        yield f"{joined(users, _NAMES)} {reason}."


def _siblings(allocation: Allocation, own: QueueHoldings, holdings: dict[int, QueueHoldings]) -> Iterator[str]:
    instance, tree = allocation.instance, allocation.instance.tree
    above = int(tree.parent[own.node])
    beside = [
        _Sibling(named(each.name), each.dominant_share, each.dominant_resource, each.weight, each.tier)
        for each in (holdings[int(v)] for v in tree.children(above) if v != own.node)
    ]
    parts = counted_holdings(allocation)
    for n in tree.users_of(above):
        weight = instance.weights[n] if instance.weights.ndim == 1 else None
        tier = int(tree.tiers[above])
        beside.append(_Sibling(named(instance.users[n]), parts[n].max(), allocation.dominant_resources[n], weight, tier))
    if not beside:
        yield "It has no sibling."
        return
    tiers = any(each.tier != own.tier for each in beside)
    told = [f"{each.name} {each.held(own.tier)}" for each in beside[:_NAMES]]
    more = [f"{len(beside) - _NAMES:,} more"] if len(beside) > _NAMES else []
    mine = _Sibling("", own.dominant_share, own.dominant_resource, own.weight, own.tier).held(None if tiers else own.tier)
    yield f"Beside its siblings{', served one after the other,' if tree.listed[above] else ''} it holds {mine}; {joined([*told, *more])}."


class _Sibling(NamedTuple):
    """A queue or a user among the children of a node: its dominant share, and its weight (None: weights per resource)."""

    name: str
    share: Number
    resource: str
    weight: Number | None
    tier: int

    def held(self, tier: int | None) -> str:
        """Return what it holds, its weight, and its tier where that is not the one given."""
        held = f"{percent(self.share)} of the {named(self.resource)}" if self.share else "nothing"
        facts = [] if self.weight is None else [f"weight {figure(self.weight)}"]
        facts += [f"in tier {self.tier}"] if self.tier != tier else []
        return f"{held} ({', '.join(facts)})" if facts else held
