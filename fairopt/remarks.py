"""What a tree of queues allows but what must be said: guarantees that do not fit, and queues without users.

Guarantees add up from the users to the root. What is guaranteed at a node is the larger of its own guarantee and of what its children are
guaranteed together. A guarantee on a group of servers counts on this group and in the cluster.

>>> from fairopt.queues import Queue
>>> research = Queue("research", guarantee={"gpu": 8})
>>> lab = Instance([[10]], [[1]], resources=["gpu"], queues=[research, Queue("guests", guarantee={"gpu": 4})], queue_of=["research"])
>>> for sentence in remarks(lab):
...     print(sentence)
guarantees of gpu exceed the cluster by 2: research 8 and guests 4, and there are 10; all of them will be met in part
no user is in the queue guests or below it; it gets nothing, and what it is guaranteed goes to others
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.queues import Queue, Quota, Tree
from fairopt.wording import exactly, joined, named

__all__ = ["remarks"]

_ROUNDING = 1e-9  # guarantees that exceed by a smaller part fit
_MOST = 5  # names in a list


def remarks(instance: Instance) -> tuple[str, ...]:
    """Return what the tree of an instance allows but what its owner should know, a sentence each.

    * guarantees that together exceed the cluster, or a group of servers: by how much, and whose they are;
    * the same of the limit of a queue, its own guarantees and those of its children;
    * children that are guaranteed more than their parent;
    * queues without users.
    """
    if not instance.is_tree:
        return ()
    found: list[str] = []
    for name, rows in _groups(instance):
        found.extend(_of_group(instance, name, rows))
    tree = instance.tree
    empty = [named(tree.name(node)) for node in range(1, tree.n_nodes) if not tree.below[node].any()]
    if empty:
        one = len(empty) == 1
        found.append(
            f"no user is in the queue{'' if one else 's'} {joined(empty, _MOST)} or below {'it' if one else 'them'}; "
            f"{'it gets' if one else 'they get'} nothing, and what {'it is' if one else 'they are'} guaranteed goes to others"
        )
    return tuple(found)


def _groups(instance: Instance) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield the groups of servers that quotas are on, each once, with a name, the cluster first: its name is empty."""
    row = {name: i for i, name in enumerate(instance.servers)}
    whole = frozenset(row.values())
    groups = {whole: ""}
    for queue in instance.queues:
        for quota in queue.quotas:
            groups.setdefault(frozenset(row[name] for name in quota.servers), quota.name)
    for rows, name in groups.items():
        yield name, rows


def _of_group(instance: Instance, group: str, rows: frozenset[int]) -> Iterator[str]:
    """Yield what is to be said of guarantees in a group of servers."""
    tree, row = instance.tree, {name: i for i, name in enumerate(instance.servers)}
    sets = [[(frozenset(row[name] for name in quota.servers), quota) for quota in queue.quotas] for queue in instance.queues]
    there = instance.row_capacity[sorted(rows)].sum(axis=0)
    on = f" on {group}" if group else ""
    of_users = instance.guarantees[:, None] * instance.demands if not group else np.zeros_like(instance.demands)
    for r, resource in enumerate(instance.resources):
        own = np.zeros(tree.n_nodes)
        limit = np.full(tree.n_nodes, np.inf)
        for node, queue in enumerate(instance.queues, 1):
            own[node] = _own(queue, resource, rows, sets[node - 1], whole=not group)
            limit[node] = _limit(queue, resource, rows, sets[node - 1], whole=not group)
        if not own.any() and not of_users[:, r].any():
            continue
        below = np.bincount(tree.user_node, of_users[:, r], tree.n_nodes).astype(float)
        for node in tree.upwards():
            if node:
                below[tree.parent[node]] += max(own[node], below[node])
        owed = np.maximum(own, below)
        if _more(below[0], there[r]):
            whose = _whose(instance, tree, 0, owed, of_users[:, r])
            yield (
                f"guarantees of {resource} exceed {group or 'the cluster'} by {_by(below[0], there[r])}: {whose}, "
                f"and there are {_round(there[r])}; all of them will be met in part"
            )
        for node in tree.downwards():
            if not node:
                continue
            name = named(tree.name(node))
            if _more(owed[node], limit[node]):
                whose = f" ({_whose(instance, tree, node, owed, of_users[:, r])})" if below[node] > own[node] else ""
                yield (
                    f"the queue {name}, with what is in it, is guaranteed {_round(owed[node])} {resource}{on}{whose}, "
                    f"but its limit is {_round(limit[node])}; what is guaranteed beyond the limit will not be met"
                )
            elif own[node] and _more(below[node], own[node]):
                yield (
                    f"what is in the queue {name} is guaranteed {_round(below[node])} {resource}{on} together "
                    f"({_whose(instance, tree, node, owed, of_users[:, r])}), {_by(below[node], own[node])} more than the queue itself "
                    f"({_round(own[node])}); what is guaranteed below a queue adds to its own guarantee"
                )


def _whose(instance: Instance, tree: Tree, node: int, owed: FloatArray, of_users: FloatArray) -> str:
    """Return what the children of a node are guaranteed, by name."""
    parts = [(tree.name(int(child)), owed[child]) for child in tree.children(node) if owed[child]]
    parts += [(instance.users[n], of_users[n]) for n in tree.users_of(node) if of_users[n]]
    return joined([f"{named(name)} {_round(amount)}" for name, amount in parts], _MOST)


def _own(queue: Queue, resource: str, rows: frozenset[int], sets: list[tuple[frozenset[int], Quota]], *, whole: bool) -> float:
    """Return what a queue itself is guaranteed on a group: its quotas there add up where they are on different servers."""
    parts = [(servers, quota.guarantee[resource]) for servers, quota in sets if resource in quota.guarantee and servers <= rows]
    apart = sum(len(servers) for servers, _ in parts) == len(frozenset().union(*(servers for servers, _ in parts)))
    amounts = [amount for _, amount in parts]
    together = sum(amounts) if apart else max(amounts)
    return max(together, queue.guarantee.get(resource, 0.0) if whole else 0.0)


def _limit(queue: Queue, resource: str, rows: frozenset[int], sets: list[tuple[frozenset[int], Quota]], *, whole: bool) -> float:
    """Return the limit of a queue on a group, inf if none is stated for the group or for more."""
    limits = [quota.limit[resource] for servers, quota in sets if resource in quota.limit and rows <= servers]
    return min([*limits, queue.limit.get(resource, np.inf)])


def _more(amount: float, than: float) -> bool:
    return bool(amount > than * (1 + _ROUNDING))


def _by(amount: float, than: float) -> str:
    return _round(amount - than)


def _round(amount: float) -> str:
    """Return a sum without the error of its last digits."""
    return exactly(float(f"{amount:.9g}"))
