"""Which resources leave a user no room for another task on each server row, and who holds them.

A resource *leaves no room* on a row if nothing of it is left; for whole tasks, if less is left on the whole row than a task demands. Such a
resource need not be what stops the user: users with larger shares may hold it because the user cannot use what they leave. In a leximin or
an equilibrium of servers, a user who is stopped has a *bottleneck* on every server where it may run: a resource that leaves no room, and of
which no user with a larger share holds any. Otherwise the user could get more at the expense of users above it (Khamse-Ashari et al. 2017,
theorem 1; for a leximin, by the same exchange on one server). If the goal is a sum, the prices show what stops the user.

For `fairopt.Allocation.in_fractions` all numbers are Fractions, and there is no tolerance.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], servers=["pool"], resources=["cpu", "memory"])
>>> Room(fo.solve(instance, "drf"), 0).blockers()
(Blocker(server='pool', resource='cpu', capacity=9.0, used=9.0, own=3.0, bottleneck=True, holders=(('B', 6.0),), price=None),)
"""

from __future__ import annotations

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.analysis.explanation import Blocker, number
from fairopt.instance import FloatArray
from fairopt.instance.fractions import rounding
from fairopt.instance.shared import shared_prices
from fairopt.instance.tolerances import FITS, WRITTEN
from fairopt.program.parallelism import servers_at_once

__all__ = ["Room"]

_CHEAPEST = 1e-4  # relative: prices have fewer exact digits than tasks
_HOLDERS = 3
_MOST = 1000


class Room:
    """What is in use of servers where one user may run; under time division the only resource is "time", as a part of the time of the row.

    Attributes
    ----------
    resources : tuple of str
    capacity, used : arrays (servers, resources)
    demand : array (servers, resources)
        What one task of the user takes.
    at_once : float, or Fraction
        How many servers the user fills.
    at_its_limit : bool
        Whether the user fills as many servers as its parallelism allows. Then only a server that is faster for the user than one of these
        would give it more. So it is if all its tasks run, and do more on some servers than on others.
    helps : bool array (servers,)
        The rows where another task would increase the total of the user.
    cells : list of (server, resource)
        The resources that leave no room on these rows; rows where the user runs most come first.
    prices : array (servers, resources) or None
        The prices of capacity, if the goal is a sum and every user runs where its tasks are cheapest at these prices.
    """

    def __init__(self, allocation: Allocation, user: int) -> None:
        instance = allocation.instance
        self.allocation, self.user = allocation, user
        if allocation.sharing == "tdm":
            self.resources: tuple[str, ...] = ("time",)
            self.used = allocation.time_utilization[:, None]
            self.capacity = self.used * 0 + 1
            self.demand = _parts(self.capacity[:, 0], instance.rates[user])[:, None]
        else:
            self.resources, self.capacity, self.used = instance.server_resources, instance.row_capacity, allocation.usage
            self.demand = instance.demands_by_row(user)[:, : instance.n_server_resources]
        self.at_once = servers_at_once(instance, allocation.tasks)[user]
        self.helps = instance.eligibility[user] & (instance.counts > 0)
        self.at_its_limit = bool(instance.limited[user]) and self._fills_up()
        if self.at_its_limit:
            speed = instance.rates_of_one[user]
            used = allocation.tasks[user] > self.rounding(WRITTEN) * instance.rates[user]
            speed = speed * instance.speeds[user]
            self.helps &= speed > speed[used].min(initial=np.inf) * (1 + self.rounding(WRITTEN))
        if allocation.complete[user] and instance.speeds_given is not None:  # its tasks could only move
            speed = instance.speeds[user]
            used = allocation.tasks[user] > self.rounding(WRITTEN) * instance.tasks[user]
            self.helps &= speed > speed[used].min(initial=np.inf) * (1 + self.rounding(WRITTEN))
        asks = (self.demand > 0) & self.helps[:, None]
        left = self.capacity - self.used
        whole = allocation.certificate.whole_tasks
        full = left < self.demand * (1 - self.rounding(FITS)) if whole else left <= self.capacity * self.rounding(WRITTEN)
        blocked = asks & full
        rows = np.lexsort((-instance.rates[user].astype(float), -allocation.tasks[user].astype(float)))
        self.cells = [(int(i), int(r)) for i in rows for r in np.flatnonzero(blocked[i])]

        self.prices = _prices_of_a_sum(allocation)

    def rounding(self, relative: float) -> float | int:
        """Return a relative tolerance; 0 for an allocation in fractions."""
        return rounding(relative, self.allocation.tasks)

    def _fills_up(self) -> bool:
        """Say whether the rest of the user's parallelism is nothing, or for whole tasks less than a task takes on its fastest server."""
        instance, user = self.allocation.instance, self.user
        parallelism, speed = instance.parallelism[user], instance.rates_of_one[user][self.helps].max(initial=0)
        if self.allocation.certificate.whole_tasks and speed > 0:
            return bool(parallelism - self.at_once < (1 - self.rounding(FITS)) / speed)
        return bool(parallelism - self.at_once <= parallelism * self.rounding(WRITTEN))

    @property
    def has_all(self) -> bool:
        """Whether all tasks of the user run, where they do most work: nothing could give it more."""
        return bool(self.allocation.complete[self.user]) and not (self.allocation.instance.speeds_given is not None and self.helps.any())

    @property
    def open_rows(self) -> list[int]:
        """The server rows where another task would help the user, and every resource leaves room."""
        return sorted(set(np.flatnonzero(self.helps).tolist()) - {i for i, _ in self.cells})

    def held(self, i: int, r: int) -> FloatArray:
        """Return what every user holds of resource r on row i, (users,)."""
        tasks = self.allocation.tasks[:, i]
        if self.allocation.sharing == "tdm":
            return _parts(tasks, self.allocation.instance.rates[:, i])
        instance = self.allocation.instance
        return np.asarray(tasks * instance.demands_by_kind[:, instance.kind_of[i], r])

    def largest_holders(self, held: FloatArray) -> list[int]:
        """Return the other users who hold most, the largest holder first."""
        return [int(m) for m in np.argsort(-held, kind="stable")[: _HOLDERS + 1] if held[m] > 0 and m != self.user][:_HOLDERS]

    def nobody_is_ahead(self, i: int, r: int) -> bool:
        """Say whether no user who holds some of resource r on row i has a larger share (on that row, if shares are per server)."""
        shares = self.allocation.shares
        here = shares if shares.ndim == 1 else shares[:, i]
        return bool((here[self.held(i, r) > 0] <= here[self.user] * (1 + self.rounding(WRITTEN))).all())

    def bottleneck(self, i: int, r: int) -> bool:
        """Say whether resource r stops the user on row i; True for schedules and whole tasks, where it cannot be decided."""
        allocation = self.allocation
        if not isinstance(allocation.question, Optimum) or allocation.certificate.whole_tasks:
            return True
        if allocation.instance.is_tree and allocation.levels:  # shares of users in different queues say nothing
            number = allocation.level_of_user[self.user]
            prices = None if number is None else allocation.levels[number - 1].prices
            return prices is None or not prices[i].any() or bool(prices[i, r] > self.rounding(WRITTEN) * prices[i].max())
        if allocation.levels or allocation.shares.ndim == 2:
            return self.nobody_is_ahead(i, r)
        return self.prices is None or bool(self.prices[i, r] > self.rounding(WRITTEN) * self.prices[i].max())

    def blockers(self, prices: FloatArray | None = None) -> tuple[Blocker, ...]:
        """Return the resources that leave no room, bottlenecks first; at most 1,000, on the rows where the user runs most.

        ``prices``, (servers, resources), are the prices of the user's level, if known.
        """
        found, table = [], self.prices if prices is None else prices
        for i, r in self.cells[:_MOST]:
            held = self.held(i, r)
            found.append(
                Blocker(
                    server=self.allocation.instance.servers[i],
                    resource=self.resources[r],
                    capacity=number(self.capacity[i, r]),
                    used=number(self.used[i, r]),
                    own=number(held[self.user]),
                    bottleneck=self.bottleneck(i, r),
                    holders=tuple((self.allocation.instance.users[m], number(held[m])) for m in self.largest_holders(held)),
                    price=None if table is None else number(table[i, r]),
                )
            )
        return tuple(sorted(found, key=lambda each: not each.bottleneck))


def _prices_of_a_sum(allocation: Allocation) -> FloatArray | None:
    if allocation.prices is None or allocation.levels or not isinstance(allocation.question, Optimum):
        return None
    instance, prices = allocation.instance, np.maximum(allocation.prices, 0)
    same, exactly = rounding(WRITTEN, allocation.tasks), allocation.tasks.dtype == object
    if allocation.sharing == "tdm":
        cost = _parts(np.broadcast_to(prices[:, 0], instance.rates.shape), instance.rates)
    else:
        cost = instance.cost_of_tasks(prices)
    of_cluster = np.maximum(shared_prices(instance, allocation.queue_prices), 0)
    if of_cluster.any():
        cost = cost + (instance.demands_by_kind[:, :, instance.n_server_resources :] @ of_cluster)[:, instance.kind_of]
    worth = allocation.question.notion.utility if not exactly else allocation.question.notion.exact_utility
    if instance.speeds_given is not None:
        worth = instance.speeds if worth is None else worth * instance.speeds
        worth = np.where(worth > 0, worth, 1)
    cost = np.where(instance.eligibility, cost if worth is None else cost / worth, np.inf)
    runs = (allocation.tasks > same * allocation.tasks_per_user[:, None]) & ~allocation.complete[:, None]
    cheapest = np.broadcast_to(cost.min(axis=1, initial=np.inf)[:, None], cost.shape)
    return prices if (cost[runs] <= cheapest[runs] * (1 + rounding(_CHEAPEST, allocation.tasks))).all() else None


def _parts(tasks: FloatArray, rates: FloatArray) -> FloatArray:
    """Return x / gamma; 0 where the user may not run."""
    return np.divide(tasks, rates, out=np.zeros_like(rates), where=(rates > 0) & (rates < np.inf))
