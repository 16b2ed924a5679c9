"""Greedy schedules and simulations within named limits and resources of the cluster, as one would write them on paper: in fractions.

Limits are read from what `fairopt.Limit` says (`reference.named_limits`), and looked at anew for every task and single server.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from reference import schedule as greedy
from reference import simulation
from reference.named_limits import counted, with_limits

import fairopt as fo

__all__ = ["WithinLimits", "limited_cluster", "schedule_within"]

exact = simulation.exact


def bare(cluster: fo.Instance) -> fo.Instance:
    """Return a cluster without resources of the cluster and named limits."""
    return cluster.replace(limits=[]).replace(shared=dict.fromkeys(cluster.shared))


class _Greedy(greedy.Reference):
    """Users with what they have, within limits; the share is DRFH's."""

    def __init__(self, instance: fo.Instance) -> None:
        super().__init__(bare(instance), "drfh")
        self.whole, self.held = instance, dict[Any, Fraction]()
        self.every = [[exact(value) for value in row] for row in instance.demands]
        totals = [exact(value) for value in instance.total_capacity]
        self.parts = [max((d / t for d, t in zip(row, totals, strict=True) if t), default=Fraction(0)) for row in self.every]

    def share(self, user: int, i: int) -> Fraction:
        """Return s[n], resources of the cluster included."""
        return sum(self.x[user]) * self.parts[user] / self.phi[user]

    def rows(self, user: int, i: int) -> list[Any]:
        """Return what a task of the user on the server counts."""
        return counted(self.whole, self.whole.users[user], self.whole.queue_of[user], self.row[i], i, self.every[user], exact)

    def fits(self, user: int, i: int) -> bool:
        """Is there room, and in every limit?"""
        return super().fits(user, i) and all(self.held.get(key, 0) + amount <= bound for key, amount, bound in self.rows(user, i))

    def place(self, user: int, i: int) -> None:
        """Give one task."""
        super().place(user, i)
        for key, amount, _ in self.rows(user, i):
            self.held[key] = self.held.get(key, Fraction(0)) + amount


def schedule_within(instance: fo.Instance, placement: str = "first-fit", metric: str = "l1") -> list[tuple[int, int]]:
    """Return user and single server of each task, in the order in which they are placed."""
    state = _Greedy(instance)
    while True:
        servers = {user: [i for i in state.servers if state.fits(user, i)] for user in range(state.n)}
        able = [user for user, found in servers.items() if found]
        if not able:
            return state.placed
        user = min(able, key=lambda user: (state.share(user, 0), user))
        found = servers[user]
        score = {"best-fit": metric, "worst-fit": "loosest"}.get(placement)
        i = found[0] if score is None else min(found, key=lambda i: (state.score(score, user, i), i))
        state.place(user, i)


class WithinLimits(simulation.Reference):
    """Jobs, servers and users over time, within limits; the criterion is DRFH."""

    def __init__(self, trace: fo.Trace, cluster: fo.Instance, placement: str, metric: str = "l1") -> None:
        servers = cluster.n_server_resources
        jobs = fo.Trace(
            [trace.users[n] for n in trace.user], trace.submit, trace.tasks, trace.demands[:, :servers], trace.durations,
            eligibility=trace.eligibility, resources=cluster.server_resources, events=trace.events,
        )  # fmt: skip
        super().__init__(jobs, bare(cluster), "drfh", placement, metric)
        self.whole, self.every = cluster, [[exact(value) for value in row] for row in trace.demands]
        self.amounts = [*self.total, *(exact(amount) for amount in cluster.shared_capacity)]

    def rows(self, job: int, s: int) -> list[Any]:
        """Return what a task of a job on a server counts."""
        user, queue = self.users[self.owner[job]], None
        return counted(self.whole, user, queue, self.row[s], s, self.every[job], exact)

    def fits(self, job: int, s: int) -> bool:
        """Is there room, and in every limit?"""
        if not super().fits(job, s):
            return False
        held: dict[Any, Fraction] = {}
        for _, _, other, there in self.running:
            for key, amount, _ in self.rows(other, there):
                held[key] = held.get(key, Fraction(0)) + amount
        return all(held.get(key, 0) + amount <= bound for key, amount, bound in self.rows(job, s))

    def _worth(self, job: int, s: int) -> Fraction:
        return max(d / t for d, t in zip(self.every[job], self.amounts, strict=True) if d)

    def within(self) -> bool:
        """Is every limit kept by what runs?"""
        held: dict[Any, tuple[Fraction, Fraction]] = {}
        for _, _, other, there in self.running:
            for key, amount, bound in self.rows(other, there):
                held[key] = (held.get(key, (Fraction(0), bound))[0] + amount, bound)
        return all(amount <= bound for amount, bound in held.values())


def limited_cluster(seed: int, *, number: int = 4) -> fo.Instance:
    """Return small servers, some several times, two licences, and limits of all selections, in whole numbers."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    demands = np.hstack([rng.integers(0, 4, (users, 2)) + np.array([1, 0]), rng.integers(0, 3, (users, 1))])
    pool = fo.Instance(
        rng.integers(4, 15, (servers, 2)),
        demands,
        counts=rng.integers(1, 4, servers),
        weights=rng.choice([1.0, 2.0, 3.0], users),
        resources=["a", "b", "licence"],
        shared={"licence": int(rng.integers(3, 15))},
    )
    return with_limits(pool, seed, round_to=1, number=number)
