"""What leaves a user no room for another task, server row by server row, and who holds it.

A resource *leaves no room* where nothing is left of it; for whole tasks, where less is left in the whole row than a task demands. Not all
of that stops a user: where those who hold some of a resource have larger shares, they are there because the user cannot use it. On every
server where it may run, a user whom a leximin or an equilibrium of servers stops has a *bottleneck*, a resource that leaves no room and
that nobody with a larger share holds: else it could be given more, at the expense of users above it (Khamse-Ashari et al. 2017, theorem 1;
for a leximin, the same exchange on one server). Where the goal is a sum, prices say what stops it.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], servers=["pool"], resources=["cpu", "memory"])
>>> Room(fo.solve(instance, "drf"), 0).blockers()
(Blocker(server='pool', resource='cpu', capacity=9.0, used=9.0, own=3.0, bottleneck=True, holders=(('B', 6.0),)),)
"""

from __future__ import annotations

import numpy as np

from fairopt.allocation import Allocation, Exact
from fairopt.analysis.explanation import Blocker
from fairopt.instance import FloatArray
from fairopt.program.parallelism import servers_at_once

__all__ = ["Room"]

_NOTHING = 1e-6  # relative: with less left, nothing is
_SAME = 1e-6  # relative: shares that differ by less are the same
_FITS = 1e-9  # relative: of a task, for rounding
_CHEAPEST = 1e-4  # relative: prices are known to fewer digits than tasks
_HOLDERS = 3
_MOST = 1000


class Room:
    """What is in use where one user may run; under time division the one resource is "time", in parts of the row's.

    Attributes
    ----------
    resources : tuple of str
    capacity, used : arrays (servers, resources)
    demand : array (servers, resources)
        Of one task of the user.
    at_once : float
        How many servers the user is on.
    at_its_limit : bool
        Is that all that its parallelism allows? Then only servers that are faster for it than one it is on would give it more.
    helps : bool array (servers,)
        Where another task would be one more for the user.
    cells : list of (server, resource)
        What leaves no room there, the servers where the user runs most first.
    prices : array (servers, resources) or None
        Of a goal that is a sum, if everybody runs where tasks are cheapest, which is what prices of capacity alone prove.
    """

    def __init__(self, allocation: Allocation, user: int) -> None:
        instance = allocation.instance
        self.allocation, self.user = allocation, user
        if allocation.sharing == "tdm":
            self.resources: tuple[str, ...] = ("time",)
            self.capacity = np.ones((instance.n_servers, 1))
            self.used = allocation.time_utilization[:, None]
            self.demand = _parts(np.ones(instance.n_servers), instance.rates[user])[:, None]
        else:
            self.resources, self.capacity, self.used = instance.resources, instance.row_capacity, allocation.usage
            self.demand = np.broadcast_to(instance.demands[user], self.capacity.shape)
        self.at_once = float(servers_at_once(instance, allocation.tasks)[user])
        self.helps = instance.eligibility[user] & (instance.counts > 0)
        self.at_its_limit = bool(instance.limited[user]) and self._fills_up()
        if self.at_its_limit:
            speed = instance.rates_of_one[user]
            used = allocation.tasks[user] > _NOTHING * instance.rates[user]
            self.helps &= speed > speed[used].min(initial=np.inf) * (1 + _SAME)
        asks = (self.demand > 0) & self.helps[:, None]
        needs = self.demand * (1 - _FITS) if allocation.certificate.whole_tasks else self.capacity * _NOTHING
        blocked = asks & (self.capacity - self.used < needs)
        rows = np.lexsort((-instance.rates[user], -allocation.tasks[user]))
        self.cells = [(int(i), int(r)) for i in rows for r in np.flatnonzero(blocked[i])]

        self.prices = _prices_of_a_sum(allocation)

    def _fills_up(self) -> bool:
        """Is less left of its parallelism than a whole task takes on its fastest server, or nothing?"""
        instance, user = self.allocation.instance, self.user
        parallelism, speed = float(instance.parallelism[user]), float(instance.rates_of_one[user][self.helps].max(initial=0.0))
        needs = (1 - _FITS) / speed if self.allocation.certificate.whole_tasks and speed > 0 else parallelism * _NOTHING
        return parallelism - self.at_once < needs

    @property
    def open_rows(self) -> list[int]:
        """The server rows where the user may run more and everything leaves room."""
        return sorted(set(np.flatnonzero(self.helps).tolist()) - {i for i, _ in self.cells})

    def held(self, i: int, r: int) -> FloatArray:
        """Return what everybody holds of a resource of a row, (users,)."""
        tasks = self.allocation.tasks[:, i]
        if self.allocation.sharing == "tdm":
            return _parts(tasks, self.allocation.instance.rates[:, i])
        return np.asarray(tasks * self.allocation.instance.demands[:, r], float)

    def largest_holders(self, held: FloatArray) -> list[int]:
        """Return the other users who hold most, the largest first."""
        return [int(m) for m in np.argsort(-held, kind="stable")[: _HOLDERS + 1] if held[m] > 0 and m != self.user][:_HOLDERS]

    def nobody_is_ahead(self, i: int, r: int) -> bool:
        """Has nobody who holds some of it a larger share (there)?"""
        shares = self.allocation.shares
        here = shares if shares.ndim == 1 else shares[:, i]
        return bool((here[self.held(i, r) > 0] <= here[self.user] * (1 + _SAME)).all())

    def bottleneck(self, i: int, r: int) -> bool:
        """Is it this that stops the user there, as far as anything tells? Schedules and whole tasks do not."""
        allocation = self.allocation
        if not isinstance(allocation.question, Exact) or allocation.certificate.whole_tasks:
            return True
        if allocation.levels or allocation.shares.ndim == 2:
            return self.nobody_is_ahead(i, r)
        return self.prices is None or bool(self.prices[i, r] > _SAME * self.prices[i].max())

    def blockers(self) -> tuple[Blocker, ...]:
        """Return what leaves no room, bottlenecks first; of more than 1,000, those where the user runs most."""
        found = []
        for i, r in self.cells[:_MOST]:
            held = self.held(i, r)
            found.append(
                Blocker(
                    server=self.allocation.instance.servers[i],
                    resource=self.resources[r],
                    capacity=float(self.capacity[i, r]),
                    used=float(self.used[i, r]),
                    own=float(held[self.user]),
                    bottleneck=self.bottleneck(i, r),
                    holders=tuple((self.allocation.instance.users[m], float(held[m])) for m in self.largest_holders(held)),
                )
            )
        return tuple(sorted(found, key=lambda each: not each.bottleneck))


def _prices_of_a_sum(allocation: Allocation) -> FloatArray | None:
    if allocation.prices is None or allocation.levels or not isinstance(allocation.question, Exact):
        return None
    instance, prices = allocation.instance, np.maximum(allocation.prices, 0.0)
    if allocation.sharing == "tdm":
        cost = _parts(np.broadcast_to(prices[:, 0], instance.rates.shape), instance.rates)
    else:
        cost = instance.demands @ prices.T
    worth = allocation.question.notion.utility
    cost = np.where(instance.eligibility, cost if worth is None else cost / worth, np.inf)
    runs = (allocation.tasks > _SAME * allocation.tasks_per_user[:, None]) & ~allocation.complete[:, None]
    cheapest = np.broadcast_to(cost.min(axis=1, initial=np.inf)[:, None], cost.shape)
    return prices if (cost[runs] <= cheapest[runs] * (1 + _CHEAPEST)).all() else None


def _parts(tasks: FloatArray, rates: FloatArray) -> FloatArray:
    """x / gamma, 0 where the user may not run."""
    return np.divide(tasks, rates, out=np.zeros_like(rates), where=(rates > 0) & np.isfinite(rates))
