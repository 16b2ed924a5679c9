"""A scheduler with queues over time as one would write it on paper: in fractions, all tasks and servers tried each time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from reference.simulation import Reference, most_servers
from reference.tree import Place, TreeReference

import fairopt as fo


class TreeSimulation(Reference):
    """Jobs, servers and users, and above the users the queues."""

    def __init__(
        self, trace: fo.Trace, cluster: fo.Instance, criterion: str, placement: str, metric: str = "l1", queue_share: str = "dominant"
    ) -> None:
        super().__init__(trace, cluster, criterion, placement, metric)
        self.queue_share = queue_share
        self.whole = cluster.replace(counts=most_servers(trace, cluster))
        self.walk = _Walk(self)

    def fill(self, now: Fraction) -> None:
        """Start tasks until none can be placed."""
        while True:
            jobs = [job for job in self.waits if self.present[self.owner[job]]]
            pairs = [(job, s) for job in jobs for s in range(len(self.row)) if self.fits(job, s) and self.walk.within_limits(job, s)]
            turn = self.walk.turn(pairs, list(range(len(self.users))), "index", np.random.default_rng(0))
            if turn is None:
                return
            job, servers = turn
            self.begin(now, job, min(servers, key=lambda s: (self.score(job, s), s)))


class _Walk(TreeReference):
    """The walk down the tree; its "users" are owners, and what they have is what runs."""

    def __init__(self, simulation: TreeSimulation) -> None:
        super().__init__(simulation.whole, simulation.criterion, simulation.queue_share)
        self.simulation = simulation

    def running(self, users: list[int]) -> list[tuple[int, int]]:
        """Return the job and the server of each running task of these users."""
        return [(job, s) for _, _, job, s in self.simulation.running if self.simulation.owner[job] in users]

    def usage(self, users: list[int], r: int, servers: Sequence[int]) -> Fraction:
        """Return what these users have of a resource on these servers."""
        return sum((self.simulation.d[job][r] for job, s in self.running(users) if s in servers), Fraction(0))

    def capacity(self, servers: list[int], r: int) -> Fraction:
        """Return how much of a resource there is on those of these servers that are there."""
        return super().capacity([s for s in servers if self.simulation.there[s]], r)

    def task_of(self, job: int) -> tuple[int, list[Fraction]]:
        """Return the owner of a job, and the demand of its tasks."""
        return self.simulation.owner[job], self.simulation.d[job]

    def demand_any(self, users: list[int], r: int) -> bool:
        """Do tasks of these users take anything of a resource?"""
        return any(self.simulation.d[job][r] for job, owner in enumerate(self.simulation.owner) if owner in users)

    def number(self, user: int) -> int:
        """Return how many tasks of a user run."""
        return len(self.running([user]))

    def share_of(self, place: Place) -> Fraction:
        """Return the share of a user or a queue, before weights."""
        users = [place[1]] if place[0] == "user" else self.below(place)
        if place[0] == "user" or self.queue_share == "sum":
            return sum((self.simulation.worth(job, s) for job, s in self.running(users)), Fraction(0))
        totals = [sum((self.simulation.d[job][r] for job, _ in self.running(users)), Fraction(0)) for r in range(self.m)]
        return max((totals[r] / self.total[r] for r in range(self.m) if self.total[r]), default=Fraction(0))
