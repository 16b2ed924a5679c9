"""The queues of an import: from the queues that an export gives to the tree of an instance.

An importer names the queue of each task, and hands over the queues above: plain `fairopt.Queue`, whose quotas name *nodes*. Here the
queues in which tasks are join them (in the root, unless the importer gives them), quotas name the rows of servers instead of nodes, and
amounts of resources that nobody has are left out.

If no queue is given and every owner has one shape of task, the tree is left out: each owner is a user in the root, with its weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.shapes import natural
from fairopt.errors import InvalidInstance
from fairopt.instance import BoolArray, Instance
from fairopt.instance.queues import Queue, Quota
from fairopt.instance.remarks import remarks
from fairopt.instance.tolerances import FITS, WRITTEN
from fairopt.wording import did_you_mean, joined, named

__all__ = ["Forest", "fitted", "groups_of", "note_guarantees", "on_rows", "plant", "weighted", "with_weights"]

_MEANINGS = {
    "surplus": "each queue gets its guarantee first, and what is left is divided by weights",
    "clamp": "shares rise by weights, and a queue whose guarantee is more than its share waits until the others have caught up",
}


@dataclass(frozen=True, slots=True)
class Forest:
    """The queues that an export gives.

    Attributes
    ----------
    queues : tuple of Queue
        The servers of their quotas are nodes.
    meaning : str
        What a guarantee means: "surplus" or "clamp", an option of `fairopt.solve`.
    system : str
        Whose queues they are, for notes.
    of_owner : mapping
        The queues whose weight is the weight of an owner; default: the queues that its tasks are in.
    excess : str
        What the system does where the guarantees in a queue add up to more than its own; empty: it grants them.
    counted : tuple of str
        The resources that alone count in shares; empty: all count.
    counted_why : str
        Why others do not.
    kinds : mapping
        The nodes of each kind that the system knows, such as the flavors of Kueue.
    """

    queues: tuple[Queue, ...] = ()
    meaning: str = "surplus"
    system: str = ""
    of_owner: Mapping[str, tuple[str, ...]] | None = None
    excess: str = ""
    counted: tuple[str, ...] = ()
    counted_why: str = "the quotas of other resources are unlimited"
    kinds: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def resources(self) -> set[str]:
        """The resources that a queue is guaranteed, or limited to."""
        parts: list[Queue | Quota] = [*self.queues, *(quota for queue in self.queues for quota in queue.quotas)]
        return {resource for each in parts for resource in (*each.guarantee, *each.limit)}


def plant(forest: Forest, owner_of: Mapping[str, str], several: bool) -> tuple[list[Queue], dict[str, tuple[str, ...]]]:
    """Return the queues, with those in which tasks are, and the queues of each owner.

    Parameters
    ----------
    owner_of : mapping
        The owner of each queue in which tasks are.
    several : bool
        Whether a queue has several users. If not, and if the forest is empty, the tree is left out.
    """
    if not (several or forest.queues):
        return [], {}
    given = {queue.name for queue in forest.queues}
    queues = _sorted([*forest.queues, *(Queue(name) for name in owner_of if name not in given)])
    of_owner: dict[str, tuple[str, ...]] = {}
    for name, owner in owner_of.items():
        of_owner[owner] = (*of_owner.get(owner, ()), name)
    return queues, of_owner | {owner: names for owner, names in (forest.of_owner or {}).items() if owner in of_owner}


def _sorted(queues: Sequence[Queue]) -> list[Queue]:
    """Return the queues in an order that depends only on the tree: each before those in it, siblings by name, or as they are listed."""
    names = {queue.name for queue in queues}
    if len(names) < len(queues):
        return list(queues)  # two of one name are refused
    children: dict[str | None, list[Queue]] = {}
    for queue in sorted(queues, key=lambda queue: (natural(queue.name), queue.name), reverse=True):
        children.setdefault(queue.parent if queue.parent in names else None, []).append(queue)
    for parent in queues:
        if parent.order == "listed":
            children[parent.name] = [queue for queue in reversed(queues) if queue.parent == parent.name]
    result, waiting = [], list(children.get(None, ()))
    while waiting:
        result.append(waiting.pop())
        waiting += children.get(result[-1].name, ())
    reached = {queue.name for queue in result}
    return [*result, *(queue for queue in queues if queue.name not in reached)]  # the rest goes round in a circle, which is refused


def weighted(weights: Mapping[str, float], of_owner: Mapping[str, tuple[str, ...]], names: Iterable[str]) -> dict[str, float]:
    """Return weights by queue from weights by owner (or by queue).

    Raises
    ------
    InvalidInstance
        A weight of an unknown owner, and one that is not finite and > 0.
    """
    known = dict.fromkeys([*of_owner, *names])
    result: dict[str, float] = {}
    for name, weight in weights.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"; the owners are {joined(sorted(of_owner), 8)}"
            raise InvalidInstance(f'a weight is given for "{name}", but there is no such owner{hint}')
        if not (np.isfinite(weight) and weight > 0):
            raise InvalidInstance(f'the weight of "{name}" is {weight:g}; it must be finite and > 0')
        result |= dict.fromkeys(of_owner.get(name, (name,)), float(weight))
    return result


def with_weights(queues: Iterable[Queue], weights: Mapping[str, float]) -> list[Queue]:
    """Return the queues with these weights."""
    return [replace(queue, weight=weights.get(queue.name, queue.weight)) for queue in queues]


# Groups of servers ---------------------------------------------------------------------------------------------------------------


def groups_of(queues: Iterable[Queue], nodes: Sequence[str]) -> BoolArray:
    """Return which nodes are in the groups of quotas, (groups, nodes): nodes of one row must be in the same groups."""
    groups = dict.fromkeys(frozenset(quota.servers) for queue in queues for quota in queue.quotas)
    return np.array([[node in group for node in nodes] for group in groups], bool).reshape(len(groups), len(nodes))


def on_rows(queue: Queue, row_of: Mapping[str, str], resources: Sequence[str]) -> Queue:
    """Return a queue whose quotas name rows of servers, without resources that the instance does not have.

    A quota on nodes that accept no work says nothing, and is left out.
    """

    def known(amounts: Mapping[str, float]) -> dict[str, float]:
        return {resource: amount for resource, amount in amounts.items() if resource in resources}

    quotas = []
    for quota in queue.quotas:
        rows = list(dict.fromkeys(row_of[node] for node in quota.servers if node in row_of))
        guarantee, limit, lending = (known(each) for each in (quota.guarantee, quota.limit, quota.lending_limit))
        if rows and (guarantee or limit):
            quotas.append(Quota(rows, guarantee, limit, lending, quota.name))
    return replace(
        queue,
        guarantee=known(queue.guarantee),
        limit=known(queue.limit),
        lending_limit=known(queue.lending_limit),
        quotas=tuple(quotas),
    )


def fitted(name: str, guarantee: Mapping[str, float], limit: Mapping[str, float], account: Account) -> dict[str, float]:
    """Return a guarantee that is within its limit, nothing where nothing is guaranteed; a note says if it was more."""
    within = {resource: min(amount, limit.get(resource, amount)) for resource, amount in guarantee.items()}
    if any(guarantee[resource] > amount * (1 + WRITTEN) for resource, amount in within.items()):
        account.note_of("queue", name, "is guaranteed more than its limit: here its guarantee is its limit")
    return within if any(within.values()) else {}


# Guarantees ----------------------------------------------------------------------------------------------------------------------


def note_guarantees(instance: Instance, forest: Forest, account: Account) -> None:
    """Add notes: what a guarantee means, which guarantees do not fit together, and which the system would treat differently."""
    tree = instance.tree
    guaranteed = [_guaranteed(queue) for queue in instance.queues]
    counted = [resource for resource in forest.counted if resource in instance.resources]
    only = ""
    if counted:
        account.summary["only"] = "+".join(counted)
        only = f"only {joined(counted)} {'counts' if len(counted) == 1 else 'count'}, as {forest.counted_why}"
    if any(guaranteed):
        account.summary["guarantees"] = forest.meaning
        options = [f"guarantees={forest.meaning}", *([f"only={account.summary['only']}"] if counted else [])]
        account.note(
            f"what a guarantee means in {forest.system}: {_MEANINGS[forest.meaning]}{only and '; '}{only}; "
            f"solve with {' and '.join(options)}, such as drfh:{':'.join(options)}"
        )
    elif counted:
        account.note(f"{only}; solve with only={account.summary['only']}, such as drfh:only={account.summary['only']}")
    for remark in remarks(instance):
        account.note(remark)
    below: dict[int, dict[tuple[tuple[str, ...], str], float]] = {}
    for node, own in enumerate(guaranteed, 1):
        for key, amount in own.items():
            sums = below.setdefault(int(tree.parent[node]), {})
            sums[key] = sums.get(key, 0.0) + amount
    less = [
        tree.name(node)
        for node, sums in below.items()
        if node and any(amount > guaranteed[node - 1].get(key, 0.0) * (1 + FITS) for key, amount in sums.items())
    ]
    if less and forest.excess:
        account.note(
            f"{joined([named(name) for name in less], 3)}: children's guarantees exceed the parent's. {forest.excess}; "
            "fairopt raises the parent's guarantee"
        )


def _guaranteed(queue: Queue) -> dict[tuple[tuple[str, ...], str], float]:
    """Return the guarantees of a queue by group of servers and resource."""
    each = [((), queue.guarantee), *((quota.servers, quota.guarantee) for quota in queue.quotas)]
    return {(servers, resource): amount for servers, amounts in each for resource, amount in amounts.items() if amount}
