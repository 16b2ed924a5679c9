"""The guarantees and limits of queues: what each queue holds, and what is missing of a guarantee.

A guarantee is *met* if its queue holds all of it that its users ask for. If a queue holds less than its guarantee, a linear program
computes how much of the resource its users ask for, on their servers as if these were large enough:

    maximise    sum over users n below the queue, servers i in the group, of d[n,r] x[n,i]         by server: `counted_amounts`
    subject to  the limits of tasks, of parallelism and of queues, over the columns of these users alone
                these users' use of each guaranteed resource <= max(guarantee, present use)
                every user below the queue has at least its present tasks.

The optimum less the present use is *missing*: of 16 guaranteed GPUs a queue that holds 8 of the 10 there are misses 8, if it has tasks for
16. If it is 0, the queue asks for no more: its users have all their tasks, or a limit or another guarantee of the same queue stops them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.by_server import counted_amounts
from fairopt.instance.queues import Queue, Quota
from fairopt.instance.tolerances import FITS, REACHED, TINY
from fairopt.instance.units import bare_amount
from fairopt.program.cluster_limits import eligible_pairs, user_limits
from fairopt.program.limits import Limits
from fairopt.program.queue_limits import Row, guarantee_rows, limit_name, queue_limits, stack_rows

__all__ = ["Guaranteed", "Limited", "Promises", "number"]

_NONE: Mapping[str, float] = MappingProxyType({})


def number(value: Any) -> Any:
    """Return a Fraction, or the integer 0 (an empty sum of Fractions), as a Fraction, and a NumPy number as a float."""
    return Fraction(value) if isinstance(value, Fraction | int) else float(value)


def _place(resource: str, group: str) -> str:
    return f"{resource} on {group}" if group else resource


def _beyond(held: float, amount: float) -> float:
    return held - amount if held > amount * (1 + _tolerance(held)) else held * 0


def _tolerance(held: float | Fraction) -> float:
    """Return the relative tolerance of an amount: 0 for a Fraction."""
    return 0 if isinstance(held, Fraction) else REACHED


@dataclass(frozen=True, slots=True)
class Guaranteed:
    """A guarantee of a queue, and how much the queue holds.

    Attributes
    ----------
    resource : str
    group : str
        Name of the group of servers; "" for the whole cluster.
    amount, held : float
    missing : float
        How much the queue asks for and lacks; 0 if the guarantee is met. All three are Fractions for `fairopt.Allocation.in_fractions`.
    unit : str
        That of the amounts; "" if it is not known.
    """

    resource: str
    group: str
    amount: float
    held: float
    missing: float
    unit: str = ""

    @property
    def met(self) -> bool:
        """Does the queue hold all of its guarantee that it asks for?"""
        return self.missing == 0

    @property
    def borrowed(self) -> float:
        """The amount that the queue holds beyond its guarantee."""
        return _beyond(self.held, self.amount)

    @property
    def unused(self) -> float:
        """The part of the guarantee that the queue does not ask for."""
        return self.held * 0 if self.missing else _beyond(self.amount, self.held)

    @property
    def where(self) -> str:
        """The resource, and the group of servers unless it is the whole cluster: "gpu on model = A100"."""
        return _place(self.resource, self.group)

    def figure(self, value: Any, digits: int = 3) -> str:
        """Return an amount of the resource with its unit, without its name: "64 GiB"."""
        return bare_amount(value, self.resource, self.unit, digits)


@dataclass(frozen=True, slots=True)
class Limited:
    """A limit of a queue, and how much the queue holds; the attributes are those of `Guaranteed`.

    ``price`` is the dual price of the limit, None if the allocation has no prices: the most that one more unit could raise the level at
    which the limit stops users, or the goal.
    """

    resource: str
    group: str
    amount: float
    held: float
    price: float | None = None
    unit: str = ""

    @property
    def where(self) -> str:
        """The resource and the group of servers, as for `Guaranteed`."""
        return _place(self.resource, self.group)

    def figure(self, value: Any, digits: int = 3) -> str:
        """Return an amount of the resource with its unit, as for `Guaranteed`."""
        return bare_amount(value, self.resource, self.unit, digits)

    @property
    def reached(self) -> bool:
        """Is nothing left of the limit?"""
        return self.held >= self.amount * (1 - _tolerance(self.held))


class Promises:
    """The guarantees and limits of the queues of an allocation, with the amounts held and missing."""

    def __init__(self, instance: Instance, tasks: FloatArray, *, whole: bool = False, prices: Mapping[str, float] = _NONE) -> None:
        self.prices, self.units = prices, instance.units
        self.instance, self.tree, self.tasks, self.whole = instance, instance.tree, tasks, whole
        self.pairs = eligible_pairs(instance)
        self._all_limits: Limits | None = None

    def guarantees(self, node: int) -> Iterator[Guaranteed]:
        """Yield the guarantees of a queue."""
        for quota, servers, group in self._quotas(node):
            for resource, amount in quota.guarantee.items():
                r = self.instance.resources.index(resource)
                held = self._held(node, servers, r)
                missing = self._missing(node, servers, r, amount, held) if held < amount * (1 - _tolerance(held)) else held * 0
                yield Guaranteed(resource, group, amount, held, missing, self.units.get(resource, ""))

    def limits(self, node: int) -> Iterator[Limited]:
        """Yield the limits of a queue."""
        for quota, servers, group in self._quotas(node):
            for resource, amount in quota.limit.items():
                held = self._held(node, servers, self.instance.resources.index(resource))
                price = self.prices.get(limit_name(resource, self.tree.name(node), group))
                yield Limited(resource, group, amount, held, price, self.units.get(resource, ""))

    def _quotas(self, node: int) -> Iterator[tuple[Queue | Quota, BoolArray, str]]:
        queue = self.tree.queues[node - 1]
        yield queue, np.ones(self.instance.n_servers, bool), ""
        for quota in queue.quotas:
            yield quota, np.isin(self.instance.servers, quota.servers), quota.name

    def _held(self, node: int, servers: BoolArray, r: int) -> float:
        return number(Row("", self.tree.below[node], servers, r, 0).used(self.instance.kinds, self.tasks))  # type: ignore[no-any-return]

    def _claimants(self, node: int) -> BoolArray:
        """Return the users that the guarantee of a node serves: weights are > 0 on the whole path down to them, (users,)."""
        tree, weights = self.tree, self.instance.weights
        own = weights > 0 if weights.ndim == 1 else np.ones(self.instance.n_users, bool)
        return tree.open_below(node) & own

    def _missing(self, node: int, servers: BoolArray, r: int, amount: float, held: float) -> float:
        """Return how much more of a resource a queue asks for within its guarantees, 0 for rounding."""
        instance, now = self.instance, self.tasks.sum(axis=1)
        left = instance.tasks > now * (1 + _tolerance(held))
        wanting = self._claimants(node) & instance.kinds.demand(r) & left & instance.eligibility[:, servers].any(axis=1)
        if not wanting.any():
            return held * 0
        counts = counted_amounts(instance, self.tree.below[node], servers, r)
        if isinstance(held, Fraction):
            from fairopt.allocation.most_held import most_held  # imports everything that computes in fractions

            most: Any = most_held(instance, self.tasks, node, self._claimants(node), servers, counts)
        else:
            most = self._most(node, counts)
        if most is None:
            more = held * 0
        elif instance.differs_by_server:
            more = min(most - number((counts * self.tasks).sum()), amount - held)
        else:
            more = most - held
        least = instance.demands_by_kind[wanting, :, r].min() if self.whole else _tolerance(held) * amount
        return more if more >= least * (1 - _tolerance(held)) else held * 0

    def _most(self, node: int, counts: FloatArray) -> float:
        """Return the optimum of the linear program; the present use if it is infeasible because present tasks exceed limits."""
        instance, (users, rows) = self.instance, self.pairs
        below = self.tree.below[node]
        columns = np.flatnonzero(below[users])
        bundle = stack_rows(instance.kinds, list(guarantee_rows(instance, self.tree, node)), users, rows)
        held = bundle.matrix @ self.tasks[users, rows]
        bundle = Limits(bundle.matrix, np.maximum(bundle.bounds, held), bundle.kinds, bundle.keys)
        if self._all_limits is None:
            # What other queues keep of their guarantees does not lessen what a queue asks for.
            self._all_limits = Limits.stack([user_limits(instance, users, rows), queue_limits(instance, users, rows)[0]])
        limits = Limits.stack([self._all_limits, bundle])
        matrix = sp.csr_array(limits.matrix[:, columns])
        of_these = np.diff(matrix.indptr) > 0
        now, mine = self.tasks.sum(axis=1), users[columns]
        own = sp.csr_array((np.ones(columns.size), (mine, np.arange(columns.size))), shape=(instance.n_users, columns.size))
        fixed = np.flatnonzero(below & ~self._claimants(node))
        keep = np.unique(mine)
        scale = np.maximum(limits.bounds, TINY)[of_these]
        answer = scipy.optimize.linprog(
            -counts[mine, rows[columns]],
            A_ub=sp.vstack([matrix[of_these] / scale[:, None], -own[keep], own[np.intersect1d(fixed, keep)]], format="csc"),
            b_ub=np.concatenate(
                [limits.bounds[of_these] / scale, -now[keep] * (1 - FITS), now[np.intersect1d(fixed, keep)] * (1 + FITS)],
            ),
            method="highs",
        )
        return float((counts * self.tasks).sum()) if answer.fun is None else -answer.fun
