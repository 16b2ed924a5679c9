"""What each queue holds: tasks, shares, amounts of resources, and how they compare with its guarantees and limits.

A guarantee is *met* as far as its queue asks for it. Where a queue holds less than it is guaranteed, a linear program says how much of the
resource it could hold besides, with the cluster to itself:

    maximise    sum over users n below the queue, servers i in the group, of d[n,r] x[n,i]
    subject to  the limits of servers, of tasks and of queues, over the columns of these users alone
                what they hold of every guaranteed resource <= the larger of the guarantee and of what they hold now
                every user below the queue has at least the tasks that it has now.

What this is more than the queue holds now is *missing*. If it is nothing, the queue asks for no more: its users have all their tasks, or a
limit stops them, or another guarantee of the same queue.

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.queues import Queue, Quota
from fairopt.instance.tree import Tree
from fairopt.program.cluster_limits import eligible_pairs, sharing_limits
from fairopt.program.limits import Limits
from fairopt.program.queue_limits import guarantee_rows, limit_name, queue_limits, stack_rows
from fairopt.wording import figure, joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Guaranteed", "Limited", "Promises", "QueueHoldings", "UserHoldings", "frame_of", "queue_holdings", "tree_order"]

_NONE: Mapping[str, float] = MappingProxyType({})
_SAME = 1e-7  # relative: a guarantee or a limit that is missed by a smaller part is reached


def _beyond(held: float, amount: float) -> float:
    return held - amount if held > amount * (1 + _tolerance(held)) else held * 0


def _tolerance(held: float | Fraction) -> float:
    """Return the part by which an amount may be missed: none where what is held is a Fraction."""
    return 0 if isinstance(held, Fraction) else _SAME


def _number(value: Any) -> Any:
    return value if isinstance(value, Fraction) else float(value)


@dataclass(frozen=True, slots=True)
class Guaranteed:
    """A guarantee of a queue, and what the queue holds of it.

    Attributes
    ----------
    resource : str
    group : str
        Name of the group of servers; "" for the whole cluster.
    amount, held : float
    missing : float
        How much the queue lacks although it asks for it; 0 where the guarantee is met. Of `fairopt.Allocation.in_fractions` all three are
        Fractions.
    """

    resource: str
    group: str
    amount: float
    held: float
    missing: float

    @property
    def met(self) -> bool:
        """Does the queue hold its guarantee as far as it asks for it?"""
        return self.missing == 0

    @property
    def borrowed(self) -> float:
        """What the queue holds beyond its guarantee."""
        return _beyond(self.held, self.amount)

    @property
    def unused(self) -> float:
        """What the queue does not ask for."""
        return self.held * 0 if self.missing else _beyond(self.amount, self.held)

    @property
    def where(self) -> str:
        """The resource, and the group of servers where the guarantee is not for the whole cluster: "gpu on model = A100"."""
        return f"{self.resource} on {self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class Limited:
    """A limit of a queue, and what the queue holds of it; the names are those of `Guaranteed`.

    ``price`` is its dual price, None where the allocation has none: by how much the level at which it stops users, or the goal, rises
    at most with one more unit.
    """

    resource: str
    group: str
    amount: float
    held: float
    price: float | None = None

    @property
    def where(self) -> str:
        """As of `Guaranteed`."""
        return f"{self.resource} on {self.group}" if self.group else self.resource

    @property
    def reached(self) -> bool:
        """Is nothing left of it?"""
        return self.held >= self.amount * (1 - _tolerance(self.held))


@dataclass(frozen=True, slots=True)
class UserHoldings:
    """What a user holds.

    Attributes
    ----------
    name : str
    queue : str or None
        None: the root.
    tasks : float
    share : float or None
        The notion's own, divided by the weight; None where the notion has one share per server.
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
        Sums over these users; the share is not divided by weights, and nan for notions with a share per server.
    dominant_resource : str
    dominant_share : float
        The largest part of the cluster's capacity of a resource that the queue holds, and of which resource.
    used : mapping from resources to amounts
    weight : float
    tier : int
    guarantees, limits : tuples of Guaranteed and of Limited
    """

    name: str
    path: tuple[str, ...]
    node: int
    users: int
    tasks: float
    share: float
    dominant_resource: str
    dominant_share: float
    used: Mapping[str, float]
    weight: float
    tier: int
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
        missing = [f"{figure(each.missing)} {each.where}" for each in self.guarantees if not each.met]
        return f"{joined(missing)} missing" if missing else "met" if self.guarantees else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; None stands for a missing number."""
        return {
            "name": self.name,
            "parent": self.parent,
            "users": self.users,
            "tasks": self.tasks,
            "share": None if np.isnan(self.share) else self.share,
            "dominant_share": self.dominant_share,
            "dominant_resource": self.dominant_resource,
            "weight": self.weight,
            "tier": self.tier,
            "used": dict(self.used),
            "guarantees": [
                _plain(each) | {"held": each.held, "met": each.met, "missing": each.missing, "borrowed": each.borrowed}
                for each in self.guarantees
            ],
            "limits": [_plain(each) | {"held": each.held, "reached": each.reached, "price": each.price} for each in self.limits],
        }


def _plain(each: Guaranteed | Limited) -> dict[str, Any]:
    return {"resource": each.resource, "on": each.group or None, "amount": each.amount}


def frame_of(holdings: Sequence[QueueHoldings]) -> pd.DataFrame:
    """Return one row per queue, the root first: tasks, shares, amounts in use, guarantees and limits.

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
            "share": each.share,
            "dominant_share": each.dominant_share,
            "dominant_resource": each.dominant_resource,
            "weight": each.weight,
            "tier": each.tier,
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
    sharing: str = "rdm",
    *,
    whole: bool = False,
    prices: Mapping[str, float] = _NONE,
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
    """
    tree = instance.tree
    order = tree_order(tree)
    total = tasks.sum(axis=1)
    of_users = np.column_stack([total, shares if shares.ndim == 1 else np.full(instance.n_users, np.nan)])
    sums, used = _sums(tree, of_users), _sums(tree, total[:, None] * instance.demands)
    number = _sums(tree, np.ones((instance.n_users, 1)))[:, 0]
    capacity = instance.total_capacity
    parts = np.divide(used, capacity, out=np.zeros_like(used), where=capacity > 0)
    largest = parts.argmax(axis=1)
    asked = Promises(instance, tasks, sharing, whole=whole, prices=prices)
    found = []
    for node in order:
        queue = tree.queues[node - 1] if node else Queue("the cluster")
        found.append(
            QueueHoldings(
                name=tree.name(node),
                path=tree.path(node),
                node=node,
                users=int(number[node]),
                tasks=_number(sums[node, 0]),
                share=_number(sums[node, 1]),
                dominant_resource=instance.resources[largest[node]] if parts[node, largest[node]] > 0 else "",
                dominant_share=_number(parts[node, largest[node]]),
                used=dict(zip(instance.resources, used[node].tolist(), strict=True)),
                weight=queue.weight,
                tier=int(tree.tiers[node]),
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


class Promises:
    """What queues hold of their guarantees and limits, and could hold with the cluster to themselves."""

    def __init__(
        self, instance: Instance, tasks: FloatArray, sharing: str, *, whole: bool = False, prices: Mapping[str, float] = _NONE
    ) -> None:
        self.prices = prices
        self.instance, self.tree, self.tasks, self.sharing, self.whole = instance, instance.tree, tasks, sharing, whole
        self.pairs = eligible_pairs(instance)
        self._all_limits: Limits | None = None

    def guarantees(self, node: int) -> Iterator[Guaranteed]:
        """Yield the guarantees of a queue."""
        for quota, servers, group in self._quotas(node):
            for resource, amount in quota.guarantee.items():
                r = self.instance.resources.index(resource)
                held = self._held(node, servers, r)
                missing = self._missing(node, servers, r, amount, held) if held < amount * (1 - _tolerance(held)) else held * 0
                yield Guaranteed(resource, group, amount, held, missing)

    def limits(self, node: int) -> Iterator[Limited]:
        """Yield the limits of a queue."""
        for quota, servers, group in self._quotas(node):
            for resource, amount in quota.limit.items():
                held = self._held(node, servers, self.instance.resources.index(resource))
                yield Limited(resource, group, amount, held, self.prices.get(limit_name(resource, self.tree.name(node), group)))

    def _quotas(self, node: int) -> Iterator[tuple[Queue | Quota, BoolArray, str]]:
        queue = self.tree.queues[node - 1]
        yield queue, np.ones(self.instance.n_servers, bool), ""
        for quota in queue.quotas:
            yield quota, np.isin(self.instance.servers, quota.servers), quota.name

    def _held(self, node: int, servers: BoolArray, r: int) -> float:
        users = self.tree.below[node]
        return _number(self.instance.demands[users, r] @ self.tasks[np.ix_(users, servers)].sum(axis=1))  # type: ignore[no-any-return]

    def _claimants(self, node: int) -> BoolArray:
        """Return the users to whom the guarantee of a node goes: those below it with weights > 0 all the way, (users,)."""
        tree, weights = self.tree, self.instance.weights
        inside = np.zeros(tree.n_nodes, bool)
        inside[node] = True
        for v in tree.downwards():
            if v and v != node and inside[tree.parent[v]]:
                inside[v] = tree.weights[v] > 0
        own = weights > 0 if weights.ndim == 1 else np.ones(self.instance.n_users, bool)
        claimants: BoolArray = inside[tree.user_node] & own
        return claimants

    def _missing(self, node: int, servers: BoolArray, r: int, amount: float, held: float) -> float:
        """Return how much more of a resource a queue could hold within its guarantees, 0 for rounding."""
        instance, now = self.instance, self.tasks.sum(axis=1)
        left = instance.tasks > now * (1 + _tolerance(held))
        wanting = self._claimants(node) & (instance.demands[:, r] > 0) & left & instance.eligibility[:, servers].any(axis=1)
        if not wanting.any():
            return held * 0
        if isinstance(held, Fraction):
            from fairopt.allocation.most_held import most_held  # and with it all that computes in fractions

            most: Any = most_held(instance, self.tasks, self.sharing, node, self._claimants(node), servers, r)
        else:
            most = self._most(node, servers, r)
        more = held * 0 if most is None else most - held
        least = instance.demands[wanting, r].min() if self.whole else _tolerance(held) * amount
        return more if more >= least * (1 - _tolerance(held)) else held * 0

    def _most(self, node: int, servers: BoolArray, r: int) -> float:
        """Return the optimum of the linear program above; what the queue holds now where that has no point, as own tasks do not fit."""
        instance, (users, rows) = self.instance, self.pairs
        below = self.tree.below[node]
        columns = np.flatnonzero(below[users])
        bundle = stack_rows(instance, list(guarantee_rows(instance, self.tree, node)), users, rows)
        held = bundle.matrix @ self.tasks[users, rows]
        bundle = Limits(bundle.matrix, np.maximum(bundle.bounds, held), bundle.kinds, bundle.keys)
        if self._all_limits is None:
            self._all_limits = Limits.stack(
                [sharing_limits(instance, users, rows, self.sharing), queue_limits(instance, users, rows)[0]],
            )
        limits = Limits.stack([self._all_limits, bundle])
        matrix = sp.csr_array(limits.matrix[:, columns])
        of_these = np.diff(matrix.indptr) > 0
        now, mine = self.tasks.sum(axis=1), users[columns]
        own = sp.csr_array((np.ones(columns.size), (mine, np.arange(columns.size))), shape=(instance.n_users, columns.size))
        fixed = np.flatnonzero(below & ~self._claimants(node))
        keep = np.unique(mine)
        scale = np.maximum(limits.bounds, 1e-300)[of_these]
        answer = scipy.optimize.linprog(
            -np.where(servers[rows[columns]], instance.demands[mine, r], 0.0),
            A_ub=sp.vstack([matrix[of_these] / scale[:, None], -own[keep], own[np.intersect1d(fixed, keep)]], format="csc"),
            b_ub=np.concatenate(
                [limits.bounds[of_these] / scale, -now[keep] * (1 - 1e-9), now[np.intersect1d(fixed, keep)] * (1 + 1e-9)],
            ),
            method="highs",
        )
        return self._held(node, servers, r) if answer.fun is None else -answer.fun
