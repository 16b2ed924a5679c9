"""A scheduler over time as one would write it on paper: in fractions, and all servers tried each time.

Nothing is remembered but what never changes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import fairopt as fo


@cache
def exact(value: float) -> Fraction:
    """Return the fraction with a small denominator that is meant."""
    return Fraction(float(value)).limit_denominator(10**6)


def most_servers(trace: fo.Trace, cluster: fo.Instance) -> list[int]:
    """Return how many servers of each row there are at most at a time."""
    number = [int(count) for count in cluster.counts]
    most = list(number)
    for _, kind, name, amount in trace.events:
        if kind in ("add", "remove"):
            i = cluster.servers.index(name)
            number[i] += amount if kind == "add" else -amount
            most[i] = max(most[i], number[i])
    return most


class Reference:
    """Jobs, servers and users; ``simulate`` runs them all."""

    def __init__(self, trace: fo.Trace, cluster: fo.Instance, criterion: str, placement: str, metric: str = "l1") -> None:
        self.trace, self.cluster, self.criterion, self.placement, self.metric = trace, cluster, criterion, placement, metric
        self.users = cluster.users if set(trace.users) <= set(cluster.users) else trace.users
        self.phi = [exact(weight) for weight in cluster.weights] if self.users is cluster.users else [Fraction(1)] * len(self.users)
        self.m = range(cluster.n_resources)
        self.d = [[exact(value) for value in row] for row in trace.demands]
        self.c = [[exact(value) for value in row] for row in cluster.capacities]
        most = most_servers(trace, cluster)
        self.row = [i for i, count in enumerate(most) for _ in range(count)]
        self.there = [k < int(cluster.counts[i]) for i, count in enumerate(most) for k in range(count)]
        self.total = [sum((self.c[i][r] for i in self.row), Fraction(0)) for r in self.m]
        self.free = [list(self.c[i]) for i in self.row]
        first: dict[str, str] = {}
        for _, kind, name, _ in trace.events:
            if kind in ("join", "leave"):
                first.setdefault(name, kind)
        self.present = [first.get(name) != "join" for name in self.users]
        self.owner = [self.users.index(trace.users[n]) for n in trace.user]
        self.waits: list[int] = []  # jobs with tasks that wait
        self.left = [int(number) for number in trace.tasks]
        self.running: list[tuple[Fraction, int, int, int]] = []  # end, task, job, server
        self.start: dict[int, tuple[Fraction, int]] = {}
        self.first_task = [int(sum(trace.tasks[:j])) for j in range(trace.n_jobs)]
        self.ever = [[self._able(job, i) for i in range(cluster.n_servers)] for job in range(trace.n_jobs)]
        self.worths: dict[tuple[int, int], Fraction] = {}

    def able(self, job: int, s: int) -> bool:
        """May it ever run there?"""
        return self.ever[job][self.row[s]]

    def _able(self, job: int, i: int) -> bool:
        if self.trace.eligibility is not None and not self.trace.eligibility[job, i]:
            return False
        placement = self.cluster.placement
        if self.users is self.cluster.users and placement is not None and not placement[self.owner[job], i]:
            return False
        return all(self.c[i][r] > 0 for r in self.m if self.d[job][r])

    def fits(self, job: int, s: int) -> bool:
        """Does a task fit there now?"""
        return self.there[s] and self.able(job, s) and all(self.d[job][r] <= self.free[s][r] for r in self.m)

    def worth(self, job: int, s: int) -> Fraction:
        """Return the share of one task, before weights."""
        if self.criterion == "rpsdsf":
            return max(self.d[job][r] / self.free[s][r] for r in self.m if self.d[job][r])
        if (job, s) not in self.worths:
            self.worths[job, s] = self._worth(job, s)
        return self.worths[job, s]

    def _worth(self, job: int, s: int) -> Fraction:
        d = self.d[job]

        def gamma(i: int) -> Fraction:
            return min(self.c[i][r] / d[r] for r in self.m if d[r])

        if self.criterion == "drfh":
            return max(d[r] / self.total[r] for r in self.m if d[r])
        if self.criterion == "asset":
            return sum((d[r] / self.total[r] for r in self.m if d[r]), Fraction(0))
        if self.criterion == "cdrf":
            return 1 / sum((gamma(i) for k, i in enumerate(self.row) if self.able(job, k)), Fraction(0))
        if self.criterion == "tsf":
            return 1 / sum((gamma(i) for i in self.row if all(self.c[i][r] for r in self.m if d[r])), Fraction(0))
        assert self.criterion == "psdsf", self.criterion
        return 1 / gamma(self.row[s])

    def share(self, job: int, s: int) -> Fraction:
        """Return the share of the job's user in the eyes of the server."""
        own = [other for _, _, other, _ in self.running if self.owner[other] == self.owner[job]]
        phi = self.phi[self.owner[job]]
        if self.criterion in ("psdsf", "rpsdsf"):
            return len(own) * self.worth(job, s) / phi if own else Fraction(0)
        return sum((self.worth(other, s) for other in own), Fraction(0)) / phi

    def score(self, job: int, s: int) -> Any:
        """Smaller is better, of servers that fit."""
        number = len(self.row)
        d = [self.d[job][r] * number / self.total[r] if self.total[r] else Fraction(0) for r in self.m]
        f = [self.free[s][r] * number / self.total[r] if self.total[r] else Fraction(0) for r in self.m]
        p = next(r for r in self.m if d[r])
        if self.placement == "best-fit" and self.metric == "l2":
            return sum(((d[r] / d[p] - f[r] / f[p]) ** 2 for r in self.m), Fraction(0))
        if self.placement == "best-fit" and self.metric == "cosine":
            return -(sum((d[r] * f[r] for r in self.m), Fraction(0)) ** 2) / sum((b * b for b in f), Fraction(0))
        if self.placement == "best-fit" and self.metric == "dot":
            c = self.c[self.row[s]]
            return -sum((self.d[job][r] / c[r] * self.free[s][r] / c[r] for r in self.m if c[r]), Fraction(0))
        if self.placement == "best-fit" and self.metric == "tightest":
            return sum(f, Fraction(0))
        if self.placement == "best-fit":
            return sum((abs(d[r] / d[p] - f[r] / f[p]) for r in self.m), Fraction(0))
        if self.placement == "worst-fit":
            return -sum(f, Fraction(0))
        if self.placement == "joint":
            return self.share(job, s)
        return 0

    def fill(self, now: Fraction) -> None:
        """Start tasks until nobody's fits."""
        while True:
            found = []
            for job in self.waits:
                servers = [s for s in range(len(self.row)) if self.fits(job, s)]
                if self.present[self.owner[job]] and servers:
                    found.append((min(self.share(job, s) for s in servers), self.owner[job], job, servers))
            if not found:
                return
            _, _, job, servers = min(found, key=lambda entry: entry[:3])
            s = min(servers, key=lambda s: (self.score(job, s), s))
            self.begin(now, job, s)

    def begin(self, now: Fraction, job: int, s: int) -> None:
        """Start a task of the job on the server."""
        task = self.first_task[job] + int(self.trace.tasks[job]) - self.left[job]
        self.left[job] -= 1
        if not self.left[job]:
            self.waits.remove(job)
        for r in self.m:
            self.free[s][r] -= self.d[job][r]
        self.start[task] = (now, s)
        length = float(self.trace.task_durations[task])
        self.running.append((now + exact(length) if length < float("inf") else Fraction(10**12), task, job, s))

    def simulate(self) -> dict[int, tuple[Fraction, int]]:
        """Return start and server of each task that was started."""
        kinds = ("leave", "join", "remove", "add", "submit")
        events: list[tuple[Fraction, int, Any, int]] = [(exact(t), kinds.index(kind), name, k) for t, kind, name, k in self.trace.events]
        events += [(exact(t), 4, job, 0) for job, t in enumerate(self.trace.submit)]
        events.sort(key=lambda event: event[:2])
        while events or any(end < 10**12 for end, *_ in self.running):
            now = min([event[0] for event in events[:1]] + [end for end, *_ in self.running])
            for entry in [entry for entry in self.running if entry[0] == now]:
                self.running.remove(entry)
                for r in self.m:
                    self.free[entry[3]][r] += self.d[entry[2]][r]
            while events and events[0][0] == now:
                _, kind, what, number = events.pop(0)
                if kinds[kind] == "submit":
                    if any(self.able(what, s) and all(self.d[what][r] <= self.c[i][r] for r in self.m) for s, i in enumerate(self.row)):
                        self.waits.append(what)
                else:
                    change(self, kinds[kind], what, number)
            self.fill(now)
        return self.start


def change(state: Any, kind: str, what: str, number: int) -> None:
    """Let a user join or leave, or add or remove servers of a row: the last ones first."""
    if kind in ("join", "leave"):
        state.present[state.users.index(what)] = kind == "join"
        return
    own = [s for s, i in enumerate(state.row) if i == state.cluster.servers.index(what)]
    for s in own if kind == "add" else own[::-1]:
        if number and state.there[s] != (kind == "add"):
            state.there[s] = not state.there[s]
            number -= 1


def in_slots(trace: fo.Trace, cluster: fo.Instance, slots: int) -> tuple[fo.Trace, fo.Instance]:
    """Cut servers and demands into slots of the largest server, in fractions."""
    m = range(cluster.n_resources)
    capacities = [[exact(value) for value in row] for row in cluster.capacities]
    slot = [max(row[r] for row in capacities) / slots for r in m]
    whole = [[min(math.floor(row[r] / slot[r]) for r in m if row[r])] if any(row) else [0] for row in capacities]
    needed = [[max(math.ceil(exact(row[r]) / slot[r]) for r in m if row[r])] for row in trace.demands]
    lacks = [[any(d > 0 and not c for c, d in zip(server, row, strict=True)) for server in capacities] for row in trace.demands]
    allowed = ~np.array(lacks) & (True if trace.eligibility is None else trace.eligibility)
    cut = fo.Trace(
        [trace.users[n] for n in trace.user], trace.submit, trace.tasks, needed, trace.durations, eligibility=allowed, resources=["slots"],
        events=trace.events,
    )  # fmt: skip
    servers = fo.Instance(
        whole,
        np.ones((cluster.n_users, 1)),
        weights=cluster.weights,
        eligibility=cluster.placement,
        counts=cluster.counts,
        users=cluster.users,
        servers=cluster.servers,
        resources=["slots"],
    )
    return cut, servers


def by_events(trace: fo.Trace, cluster: fo.Instance, notion: str) -> list[float]:
    """Return when each job ends if the notion is solved at each event, whatever that event is; one stream a user."""
    left, end = trace.job_work.copy(), np.full(trace.n_jobs, np.nan)
    now, here = 0.0, np.zeros(trace.n_jobs, bool)
    owner = np.array([cluster.users.index(trace.users[n]) for n in trace.user])
    rate = np.zeros(trace.n_jobs)
    for _ in range(10_000):
        soonest = np.divide(left, rate, out=np.full(left.size, np.inf), where=here & (rate > 0))
        coming = trace.submit[(trace.submit > now) | ((trace.submit == now) & ~here & np.isnan(end))]
        then = min(now + soonest.min(), coming.min(initial=np.inf))
        if np.isinf(then):
            break
        left = np.where(here, left - rate * (then - now), left)
        now = then
        over = here & (left <= 1e-9 * trace.job_work)
        here = (here | (trace.submit <= now)) & np.isnan(end) & ~over
        end[over] = now
        tasks = np.bincount(owner[here], weights=trace.tasks[here], minlength=cluster.n_users)
        demands = np.array(cluster.demands)
        x = fo.solve(cluster.replace(tasks=tasks, demands=demands), notion).tasks_per_user if here.any() else tasks
        rate = np.zeros(trace.n_jobs)
        for j in np.flatnonzero(here):
            rate[j] = min(trace.tasks[j], x[owner[j]])
            x[owner[j]] -= rate[j]
    return [float(value) for value in end]
