r"""Karma: credits for what users lend in some rounds and borrow in others, for one resource.

User u of weight phi[u] has the fair share f[u] = C phi[u] / sum phi of the capacity C, whether it has work or not, and asks for D[u].
The part alpha of the fair share is guaranteed. In a round of P seconds

    alloc[u]    = min(D[u], alpha f[u])                   and then what it borrows, b[u]
    donated[u]  = max(alpha f[u] - D[u], 0)               a credit for each second and unit of it that somebody borrows
    shared      = (1 - alpha) C
    credits[u] += (1 - alpha) f[u] P                      at the beginning

Borrowers want D[u] - alloc[u] more. As long as a borrower wants more and capacity is left, the borrower with the most credits gets the next
piece, at one credit for each unit and second. The piece comes from the donor with the fewest credits; once all donations are used, it comes
from the shared part. Pieces are infinitely small here: the credits of borrowers fall to a common level, and those of donors rise to one. A
unit costs its user in inverse proportion to its weight. A new round starts at every event; credits are counted by the second.

Source: M. Vuppalapati, G. Fikioris, R. Agarwal, A. Cidon, A. Khandelwal and E. Tardos, Karma: resource allocation for dynamic demands
(OSDI 2023), algorithm 1. There a slice is a whole unit, and users begin with so many credits that they never run out, as here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.limits import refuse_limits
from fairopt.instance.shared import refuse_shared
from fairopt.simulation.fluid import OwnAllocations, tasks_of
from fairopt.simulation.keeping import State
from fairopt.simulation.streams import Streams

__all__ = ["Karma", "KarmaRounds", "poured", "round_of"]


@dataclass(frozen=True, slots=True)
class Karma:
    """The guaranteed part of a fair share, and the seconds of a round; None: a thousandth of the time over which jobs are submitted."""

    alpha: float
    period: float | None

    def __post_init__(self) -> None:
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, int | float) or not 0 <= self.alpha <= 1:
            raise Unsupported(f'the guaranteed part alpha of "karma" is {self.alpha!r}; give a number from 0 to 1, as in "karma:alpha=0.5"')


def poured(amount: float, levels: FloatArray, most: FloatArray, width: FloatArray) -> FloatArray:
    """Return how much each vessel gets of an amount poured into all of them (water-filling), (vessels,).

    A vessel has its bottom at ``levels`` and is ``width`` wide; it takes at most ``most``.

    >>> poured(4.0, np.array([0.0, 2.0, 9.0]), np.array([9.0, 9.0, 9.0]), np.ones(3)).tolist()
    [3.0, 1.0, 0.0]
    >>> poured(9.0, np.array([0.0, 2.0]), np.array([1.0, 3.0]), np.ones(2)).tolist()
    [1.0, 3.0]
    """
    amount = min(amount, float(most.sum()))
    if amount <= 0:
        return np.zeros(levels.size)
    heights = np.concatenate([levels, levels + most / width])
    order = np.argsort(heights, kind="stable")
    heights = heights[order]
    wide = np.cumsum(np.concatenate([width, -width])[order])
    filled = np.append(0.0, np.cumsum(wide[:-1] * np.diff(heights)))
    k = max(int(np.searchsorted(filled, amount)) - 1, 0)
    height = heights[k] + ((amount - filled[k]) / wide[k] if wide[k] > 0 else 0.0)
    given = np.clip((height - levels) * width, 0.0, most)
    return np.asarray(given * (amount / given.sum()) if given.sum() > 0 else given)


def round_of(
    demand: FloatArray, fair: FloatArray, credits: FloatArray, alpha: float, period: float, price: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what users get in a round, and by how much their credits grow in a second of it, both (users,).

    Parameters
    ----------
    demand, fair : arrays (users,)
        D and f.
    credits : array (users,)
        Before the round.
    price : array (users,)
        Credits for a unit and second.
    """
    free = (1 - alpha) * fair * price
    before = credits + free * period
    guaranteed = np.minimum(demand, alpha * fair)
    donated, wanted = alpha * fair - guaranteed, demand - guaranteed
    borrowed = poured(float(donated.sum() + (1 - alpha) * fair.sum()), -before, wanted, 1 / (price * period))
    lent = poured(min(float(borrowed.sum()), float(donated.sum())), before, donated, 1 / (price * period))
    return guaranteed + borrowed, free + (lent - borrowed) * price


class KarmaRounds(OwnAllocations):
    """Karma's allocations, at every event and in every round."""

    def __init__(self, streams: Streams, karma: Karma) -> None:
        self._check(streams)
        self.alpha = karma.alpha
        self.period = streams.period() if karma.period is None else karma.period
        self.credits, self.growth, self.time = np.zeros(len(streams.users)), np.zeros(len(streams.users)), -np.inf
        self.price = 1 / (streams.weights * streams.weights.size / streams.weights.sum())
        self._begin(streams, None)

    @staticmethod
    def _check(streams: Streams) -> None:
        instance = streams.instance
        refuse_limits(streams.cluster.limits, '"karma"')
        refuse_shared(instance, '"karma" divides the resource of servers', 'use "drfh:half_life=inf", or leave it out')
        if streams.tree is not None or (streams.weights <= 0).any():
            raise Unsupported(
                '"karma" takes users with weights > 0, and the cluster has queues, guarantees or weights of 0; leave these out'
            )
        if instance.n_resources > 1:
            raise Unsupported(
                f'"karma" is for one resource, and the cluster has {instance.n_resources}; leave all but one out, or use '
                '"drfh:half_life=inf", which remembers several'
            )
        if not instance.eligibility[:, instance.counts > 0].all():
            raise Unsupported('"karma" divides one pool, and some jobs may not run on all servers; use "drfh:half_life=inf"')

    def at(self, jobs: IntArray, counts: FloatArray, now: float = -np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the tasks of each stream and the usage of each row of servers from now on."""
        streams = self.streams
        if np.isfinite(self.time):
            self.credits = self.credits + self.growth * (now - self.time)
        self.time = now
        limits = tasks_of(streams, jobs)
        asked = limits * streams.instance.demands[:, 0]
        demand = np.asarray(np.bincount(streams.owner, weights=asked, minlength=self.credits.size), float)
        capacity = counts * streams.instance.capacities[:, 0]
        total = float(capacity.sum())
        fair = total * streams.weights / streams.weights.sum()
        held, self.growth = round_of(demand, fair, self.credits, self.alpha, self.period, self.price)
        if total <= 0:
            held, self.growth = np.zeros(held.size), np.zeros(held.size)
        part = np.divide(held, demand, out=np.zeros(held.size), where=demand > 0)
        self.x = limits * part[streams.owner]
        in_groups = np.bincount(self.group, weights=capacity, minlength=self.first.size)
        self._take(self.x[:, None] * (in_groups / total if total > 0 else in_groups), counts)
        return self.x, self.rows

    def state(self) -> State:
        """Return the state, for `restore`."""
        return super().state() | {"credits": self.credits, "growth": self.growth, "time": self.time}

    def restore(self, state: State) -> None:
        """Go back to a state."""
        super().restore(state)
        self.credits, self.growth, self.time = state["credits"], state["growth"], float(state["time"])

    def again(self, now: float, unfinished: bool) -> float:
        """Return when the next round begins, if nothing happens before."""
        return now + self.period if unfinished and self.x.any() else np.inf
