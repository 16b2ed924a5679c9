"""What each user and each queue holds: tasks, shares, amounts of resources, and how they compare with guarantees and limits.

`fairopt.allocation.promises` says what is missing of a guarantee.

>>> from fairopt.instance.queues import Queue
>>> lab = Instance(
...     [[10]], [[1], [1]], users=["ann", "ben"], resources=["gpu"], tasks=[5, np.inf],
...     queues=[Queue("research", guarantee={"gpu": 8}, limit={"gpu": 9}), Queue("guests", guarantee={"gpu": 4})],
...     queue_of=["research", "guests"])
>>> cluster, research, guests = queue_holdings(lab, np.array([[5.0], [3.0]]), np.array([0.5, 0.3]))
>>> research.guarantees[0].missing, guests.guarantees[0].missing  # ann has all her tasks, ben has not
(0.0, 1.0)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.allocation.counted import counted_holdings
from fairopt.allocation.promises import Guaranteed, Limited, Promises, number
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import text_of
from fairopt.instance.queues import Queue
from fairopt.instance.tree import Tree
from fairopt.wording import did_you_mean, joined

if TYPE_CHECKING:
    import pandas as pd

    from fairopt.allocation.allocation import Allocation
    from fairopt.models.counting import Counting

__all__ = ["QueueHoldings", "UserHoldings", "frame_of", "holdings_of", "queue_holdings", "tree_order", "with_exact"]

_NONE: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class UserHoldings:
    """What a user holds.

    Attributes
    ----------
    name : str
    queue : str or None
        None: the root.
    tasks, work : floats
        Where no speeds are given, both are equal.
    share : float or None
        The notion's own, divided by the weight where `fairopt.Allocation.shares_by_weight` says so; None where the notion has one share
        per server.
    level : int or None
        Number of the level, from 1.
    dominant_resource : str
    dominant_share : float
        The largest part of the cluster's capacity of a resource that the user holds, not divided by the weight.
    used : mapping from resources to amounts
    weight : float, or list of float per resource
    servers : mapping from servers to tasks
        Where the user has tasks.
    """

    name: str
    queue: str | None
    tasks: float
    work: float
    share: float | None
    level: int | None
    dominant_resource: str
    dominant_share: float
    used: Mapping[str, float]
    weight: float | list[float]
    servers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QueueHoldings:
    """What a queue holds, with everything below it.

    Attributes
    ----------
    name : str
        "the cluster" for the root.
    path : tuple of str
        Names from the first queue below the root down to this one; empty for the root.
    node : int
        Its position in the tree; 0 for the root, k for the k-th queue.
    users : int
        Number of users below.
    tasks, share : float
        Sums over these users; the share is not divided by weights (only by those per resource), and nan for notions with a share per
        server.
    work : float or None
        The work of these users; None where no speeds are given.
    dominant_resource : str
    dominant_share : float
        The largest part of the cluster's capacity of a resource that the queue holds, times what the resource counts, and of which
        resource.
    used : mapping from resources to amounts
    weight : float
    tier : int
    order : {"fair", "listed"}
    guarantees, limits : tuples of Guaranteed and of Limited
    """

    name: str
    path: tuple[str, ...]
    node: int
    users: int
    tasks: float
    work: float | None
    share: float
    dominant_resource: str
    dominant_share: float
    used: Mapping[str, float]
    weight: float
    tier: int
    order: str
    guarantees: tuple[Guaranteed, ...]
    limits: tuple[Limited, ...]

    @property
    def depth(self) -> int:
        """0 of the root, 1 of the queues right below it."""
        return len(self.path)

    @property
    def parent(self) -> str | None:
        """Name of the queue that this one is in; None if that is the root."""
        return self.path[-2] if self.depth > 1 else None

    @property
    def verdict(self) -> str:
        """Are its guarantees met: "met", or what is missing, as "2 gpu missing"; "" where it has none."""
        missing = [f"{each.figure(each.missing)} {each.where}" for each in self.guarantees if not each.met]
        return f"{joined(missing)} missing" if missing else "met" if self.guarantees else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; None stands for a missing number.

        Fractions (from `fairopt.Allocation.in_fractions`) are written as floats, and as text under ``exact``.
        """
        plain = {
            "name": self.name,
            "parent": self.parent,
            "users": self.users,
            "tasks": self.tasks,
            **({} if self.work is None else {"work": self.work}),
            "share": None if math.isnan(self.share) else self.share,
            "dominant_share": self.dominant_share,
            "dominant_resource": self.dominant_resource,
            "weight": self.weight,
            "tier": self.tier,
            "order": self.order,
            "used": dict(self.used),
            "guarantees": [
                with_exact(_plain(each) | {"held": each.held, "met": each.met, "missing": each.missing, "borrowed": each.borrowed})
                for each in self.guarantees
            ],
            "limits": [
                with_exact(_plain(each) | {"held": each.held, "reached": each.reached, "price": each.price}) for each in self.limits
            ],
        }
        return with_exact(plain)


def _plain(each: Guaranteed | Limited) -> dict[str, Any]:
    return {"resource": each.resource, "on": each.group or None, "amount": each.amount}


def with_exact(plain: dict[str, Any]) -> dict[str, Any]:
    """Return plain data with floats for Fractions, and the Fractions as text under "exact".

    >>> with_exact({"tasks": Fraction(1, 2), "used": {"gpu": Fraction(3)}, "users": 1})
    {'tasks': 0.5, 'used': {'gpu': 3.0}, 'users': 1, 'exact': {'tasks': '1/2', 'used': {'gpu': '3'}}}
    """
    floats, exact = _apart(plain)
    return {**floats, **({"exact": exact} if exact else {})}


def _apart(value: Any) -> Any:
    """Return a value with floats for Fractions, and its Fractions as text (None if it has none)."""
    if isinstance(value, dict):
        parts = {name: _apart(each) for name, each in value.items()}
        exact = {name: text for name, (_, text) in parts.items() if text is not None}
        return {name: plain for name, (plain, _) in parts.items()}, exact or None
    return (float(value), text_of(value)) if isinstance(value, Fraction) else (value, None)


def frame_of(holdings: Sequence[QueueHoldings]) -> pd.DataFrame:
    """Return one row per queue, the root first: tasks, with speeds their work, shares, amounts in use, guarantees and limits.

    Amounts have a column each, named after the resource, and after the group of servers: "gpu guarantee @ model = A100". A queue without
    such a guarantee or limit has nan there.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for each in holdings:
        row: dict[str, Any] = {
            "queue": each.name,
            "parent": None if not each.depth else each.parent or holdings[0].name,
            "depth": each.depth,
            "users": each.users,
            "tasks": each.tasks,
            **({} if each.work is None else {"work": each.work}),
            "share": each.share,
            "dominant_share": each.dominant_share,
            "dominant_resource": each.dominant_resource,
            "weight": each.weight,
            "tier": each.tier,
            "order": each.order,
            "guarantee": each.verdict,
        }
        rows.append(row | {f"{resource} used": amount for resource, amount in each.used.items()})
    amounts: list[dict[str, float]] = [{} for _ in holdings]
    for row_of, each in zip(amounts, holdings, strict=True):
        for promise in each.guarantees:
            at = f" @ {promise.group}" if promise.group else ""
            row_of |= {
                f"{promise.resource} guarantee{at}": promise.amount,
                f"{promise.resource} missing{at}": promise.missing,
                f"{promise.resource} borrowed{at}": promise.borrowed,
            }
        row_of |= {f"{bound.resource} limit{f' @ {bound.group}' if bound.group else ''}": bound.amount for bound in each.limits}
    columns = list(dict.fromkeys(name for row_of in amounts for name in row_of))
    frame = pd.DataFrame(rows).set_index("queue")
    more = pd.DataFrame(amounts, index=frame.index, columns=columns, dtype=float)
    return pd.concat([frame, more], axis=1)


def holdings_of(allocation: Allocation, name: str) -> UserHoldings | QueueHoldings:
    """Return what a user holds, or a queue; of a user and a queue of one name the user (`fairopt.Allocation`).

    Raises
    ------
    KeyError
        There is neither.
    """
    instance = allocation.instance
    if name not in instance.users:
        for queue in allocation.queue_holdings()[1:]:
            if queue.name == name:
                return queue
        names = [*instance.users, *(queue.name for queue in instance.queues)]
        what = "user or queue" if instance.queues else "user"
        raise KeyError(f'there is no {what} "{name}"{did_you_mean(str(name), names)}; there are {joined(names, 5)}')
    n = instance.users.index(name)
    tasks = allocation.tasks[n].sum()
    used = instance.held_of(allocation.tasks)[n]
    parts = counted_holdings(allocation)[n]
    held = np.flatnonzero(allocation.tasks[n])
    return UserHoldings(
        name=name,
        queue=instance.queue_of[n],
        tasks=float(tasks),
        work=float(allocation.work[n]),
        share=float(allocation.shares[n]) if allocation.shares.ndim == 1 else None,
        level=allocation.level_of_user[n],
        dominant_resource=allocation.dominant_resources[n],
        dominant_share=float(parts.max()),
        used=dict(zip(instance.resources, used.tolist(), strict=True)),
        weight=instance.weights[n].tolist(),
        servers={instance.servers[i]: float(allocation.tasks[n, i]) for i in held},
    )


def tree_order(tree: Tree) -> list[int]:
    """Return the nodes of a tree as a table lists them: each followed by what is below it, siblings in their order."""
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(int(child) for child in tree.children(node)[::-1])
    return order


def queue_holdings(
    instance: Instance,
    tasks: FloatArray,
    shares: FloatArray,
    *,
    whole: bool = False,
    prices: Mapping[str, float] = _NONE,
    counting: Counting | None = None,
) -> tuple[QueueHoldings, ...]:
    """Return what the root and each queue hold, in the order of `tree_order`.

    Parameters
    ----------
    tasks : array (users, servers)
    shares : array (users,) or (users, servers)
    whole : bool
        Only whole tasks can be added, so less than a task is not missing.
    prices : mapping, optional
        Prices of limits, by their names (`fairopt.program.queue_limits`).
    counting : Counting, optional
        What counts in dominant shares; default: all resources, once.
    """
    tree = instance.tree
    order = tree_order(tree)
    total = tasks.sum(axis=1)
    of_users = np.column_stack([total, shares if shares.ndim == 1 else np.full(instance.n_users, np.nan), instance.work(tasks)])
    sums, used = _sums(tree, of_users), _sums(tree, instance.held_of(tasks))
    users = _sums(tree, np.ones((instance.n_users, 1)))[:, 0]
    capacity = instance.total_capacity
    parts = np.divide(used, capacity, out=np.zeros_like(used), where=capacity > 0)
    parts = parts if counting is None else counting.weigh(parts)
    largest = parts.argmax(axis=1)
    asked = Promises(instance, tasks, whole=whole, prices=prices)
    found = []
    for node in order:
        queue = tree.queues[node - 1] if node else Queue("the cluster")
        found.append(
            QueueHoldings(
                name=tree.name(node),
                path=tree.path(node),
                node=node,
                users=int(users[node]),
                tasks=number(sums[node, 0]),
                work=None if instance.speeds_given is None else number(sums[node, 2]),
                share=number(sums[node, 1]),
                dominant_resource=instance.resources[largest[node]] if parts[node, largest[node]] > 0 else "",
                dominant_share=number(parts[node, largest[node]]),
                used=dict(zip(instance.resources, map(number, used[node]), strict=True)),
                weight=queue.weight,
                tier=int(tree.tiers[node]),
                order=queue.order,
                guarantees=tuple(asked.guarantees(node)) if node else (),
                limits=tuple(asked.limits(node)) if node else (),
            )
        )
    return tuple(found)


def _sums(tree: Tree, of_users: FloatArray) -> FloatArray:
    """Return sums of values of users, (users, values), over everybody below each node, (nodes, values)."""
    sums = np.zeros((tree.n_nodes, of_users.shape[1]), of_users.dtype)
    np.add.at(sums, tree.user_node, of_users)
    for node in tree.order:
        sums[tree.parent[node]] += sums[node]
    return sums
