"""What a tree of queues allows but what must be said: guarantees that do not fit, and queues without users.

Guarantees add up from the users to the root. What is guaranteed at a node is the larger of its own guarantee and of what its children are
guaranteed together. A guarantee on a group of servers counts on this group and in the cluster.

>>> from fairopt.instance.queues import Queue
>>> research = Queue("research", guarantee={"gpu": 8})
>>> lab = Instance([[10]], [[1]], resources=["gpu"], queues=[research, Queue("guests", guarantee={"gpu": 4})], queue_of=["research"])
>>> for sentence in remarks(lab):
...     print(sentence)
guarantees of gpu exceed the cluster by 2: research 8 and guests 4, and there are 10; not all of them can be met
no user is in the queue guests or below it; it gets nothing, and what it is guaranteed goes to others
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fairopt.instance.instance import FloatArray, Instance
from fairopt.instance.keeping import Keeping, keepings_of
from fairopt.instance.queues import Queue, Quota
from fairopt.instance.tolerances import FITS
from fairopt.instance.tree import Tree
from fairopt.instance.units import bare_amount
from fairopt.wording import joined, named, plural

__all__ = ["remarks"]

_MOST = 5  # names in a list
_FEW = 3  # queues of which a sentence each is said
_DIGITS = 9  # of a sum, without the error of its last digits


def remarks(instance: Instance) -> tuple[str, ...]:
    """Return what the tree of an instance allows but what its owner should know, a sentence each.

    * guarantees that together exceed the cluster, or a group of servers: by how much, and whose they are;
    * the same of the limit of a queue, its own guarantees and those of its children;
    * children that are guaranteed more than their parent;
    * queues that keep less than their lending limits say, because guarantees do not fit together;
    * queues without users, and what they keep.
    """
    if not instance.is_tree:
        return ()
    tree, row = instance.tree, {name: i for i, name in enumerate(instance.servers)}
    quotas = [
        _OnServers(node, frozenset(row[name] for name in quota.servers), quota)
        for node, queue in enumerate(tree.queues, 1)
        for quota in queue.quotas
    ]
    groups = {frozenset(row.values()): ""}  # with a name, the cluster first: its name is empty
    for each in quotas:
        groups.setdefault(each.rows, each.quota.name)
    found = [sentence for rows, name in groups.items() for sentence in _of_group(instance, tree, quotas, name, rows)]
    keepings = keepings_of(instance)
    found += [sentence for keeping in keepings for sentence in _of_kept(instance, keeping)]
    empty = [node for node in range(1, tree.n_nodes) if not tree.below[node].any()]
    idle = [
        f"{instance.amount(kept, instance.resources[keeping.resource], _DIGITS)}{f' on {keeping.group}' if keeping.group else ''} that "
        f"{named(tree.name(node))} keeps"
        for keeping in keepings
        for node, kept in zip(keeping.nodes, keeping.kept, strict=True)
        if node in empty
    ]
    for promised in (False, True):
        names = [named(tree.name(node)) for node in empty if _is_guaranteed(tree.queues[node - 1]) == promised]
        if names:
            one = len(names) == 1
            goes = f", and what {'it is' if one else 'they are'} guaranteed goes to others"
            goes += f", except {joined(idle, _MOST)}" if idle else ""
            found.append(
                f"no user is in the queue{'' if one else 's'} {joined(names, _MOST)} or below {'it' if one else 'them'}; "
                f"{'it gets' if one else 'they get'} nothing" + (goes if promised else "")
            )
    return tuple(found)


def _is_guaranteed(queue: Queue) -> bool:
    return any(amount > 0 for quota in queue.everywhere_and_on_groups for amount in quota.guarantee.values())


def _of_kept(instance: Instance, keeping: Keeping) -> Iterator[str]:
    """Yield which queues keep less than their lending limits say."""
    tree, resource = instance.tree, instance.resources[keeping.resource]
    unit = instance.units.get(resource, "")
    less = [
        f"{named(tree.name(node))} {bare_amount(kept, resource, unit, _DIGITS)} instead of {bare_amount(said, resource, unit, _DIGITS)}"
        for node, said, kept in zip(keeping.nodes, keeping.said, keeping.kept, strict=True)
        if kept < said
    ]
    if less:
        who = "a queue keeps less of it than its lending limit says"
        who = who if len(less) == 1 else f"{len(less)} queues keep less of it than their lending limits say"
        there = keeping.group or "the cluster"
        yield f"the guarantees of {resource} do not fit together in {there}, so that {who}: {joined(less, _MOST)}"


class _OnServers(NamedTuple):
    """A quota, the node that has it, and the rows of servers that it is on."""

    node: int
    rows: frozenset[int]
    quota: Quota


def _of_group(instance: Instance, tree: Tree, quotas: list[_OnServers], group: str, rows: frozenset[int]) -> Iterator[str]:
    """Yield what is to be said of guarantees in a group of servers, or in the cluster."""
    inside, around = [each for each in quotas if each.rows <= rows], [each for each in quotas if each.rows >= rows]
    there = np.concatenate([instance.row_capacity[sorted(rows)].sum(axis=0), instance.shared_capacity])
    units = instance.units
    on = f" on {group}" if group else ""
    least = instance.demands_by_kind.min(axis=1)
    of_users = np.zeros_like(least) if group else instance.guarantees[:, None] * least
    for r, resource in enumerate(instance.resources):

        def said(amount: float, resource: str = resource) -> str:
            return bare_amount(amount, resource, units.get(resource, ""), _DIGITS)

        own, limit = _guaranteed(inside, resource, tree.n_nodes), np.full(tree.n_nodes, np.inf)
        for each in around:
            limit[each.node] = min(limit[each.node], each.quota.limit.get(resource, np.inf))
        for node, queue in enumerate(tree.queues if not group else (), 1):
            own[node] = max(own[node], queue.guarantee.get(resource, 0.0))
            limit[node] = min(limit[node], queue.limit.get(resource, np.inf))
        if not own.any() and not of_users[:, r].any():
            continue
        below = np.bincount(tree.user_node, of_users[:, r], tree.n_nodes).astype(float)
        for node in tree.upwards():
            if node:
                below[tree.parent[node]] += max(own[node], below[node])
        owed = np.maximum(own, below)
        if _more(below[0], there[r]):
            whose = _whose(instance, tree, 0, own, below, of_users[:, r], said)
            yield (
                f"guarantees of {resource} exceed {group or 'the cluster'} by {said(below[0] - there[r])}: {whose}, "
                f"and there are {said(there[r])}; not all of them can be met"
            )
        beyond, above = dict[str, str](), dict[str, str]()
        for node in tree.downwards():
            if not node:
                continue
            name = named(tree.name(node))
            if _more(owed[node], limit[node]):
                whose = f" ({_whose(instance, tree, node, own, below, of_users[:, r], said)})" if below[node] > own[node] else ""
                beyond[name] = (
                    f"the queue {name}, with what is in it, is guaranteed {said(owed[node])} {resource}{on}{whose}, "
                    f"but its limit is {said(limit[node])}; what is guaranteed beyond the limit will not be met"
                )
            elif own[node] and _more(below[node], own[node]):
                whose = _whose(instance, tree, node, own, below, of_users[:, r], said)
                above[name] = (
                    f"what is in the queue {name} is guaranteed {said(below[node])} {resource}{on} together ({whose}), "
                    f"{said(below[node] - own[node])} more than the queue itself ({said(own[node])}); "
                    "what is guaranteed below a queue adds to its own guarantee"
                )
        yield from _shortened(beyond)
        yield from _shortened(above)


def _shortened(sentences: dict[str, str]) -> list[str]:
    """Return sentences on queues; of many, the first, with the names of the others."""
    if len(sentences) <= _FEW:
        return list(sentences.values())
    first, *others = sentences
    return [f"{sentences[first]}; the same holds of {plural(len(others), 'other queue')}: {joined(others, _MOST)}"]


def _whose(
    instance: Instance, tree: Tree, node: int, own: FloatArray, below: FloatArray, of_users: FloatArray, said: Callable[[float], str]
) -> str:
    """Return whose guarantees the amount below a node consists of, by name: those of children, or of what is in them if that is more."""
    parts, waiting = list[tuple[str, float]](), [node]
    while waiting:
        at = waiting.pop(0)
        for child in map(int, tree.children(at)):
            if own[child] >= below[child] * (1 - FITS):
                parts += [(tree.name(child), own[child])] if own[child] else []
            else:
                waiting.append(child)
        parts += [(instance.users[n], of_users[n]) for n in tree.users_of(at) if of_users[n]]
    return joined([f"{named(name)} {said(amount)}" for name, amount in parts], _MOST)


def _guaranteed(quotas: list[_OnServers], resource: str, nodes: int) -> FloatArray:
    """Return what the quotas guarantee each node: they add up where they are on different servers, else the largest counts."""
    together, largest, size = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    rows: dict[int, set[int]] = {}
    for node, on, quota in quotas:
        amount = quota.guarantee.get(resource)
        if amount is not None:
            together[node] += amount
            largest[node] = max(largest[node], amount)
            size[node] += len(on)
            rows.setdefault(node, set()).update(on)
    apart = np.array([size[node] == len(rows.get(node, ())) for node in range(nodes)])
    return np.where(apart, together, largest)


def _more(amount: float, than: float) -> bool:
    return bool(amount > than * (1 + FITS))
