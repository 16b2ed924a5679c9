"""Servers that act by themselves, as one would follow them on paper: in fractions, with loops, all that happens in one sorted order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from reference.simulation import exact, most_servers

import fairopt as fo


def respond(y: list[Fraction], g: list[Fraction], most: list[Any], use: list[list[Fraction]], bounds: list[Fraction]) -> list[Fraction]:
    """Return x: raise the level S of all, x[n] = S g[n] - y[n] where that is positive, until nobody can rise; a limit stops its users."""
    users, limits = range(len(y)), range(len(bounds))
    x = [Fraction(0) for _ in users]
    stopped = [g[n] == 0 or (most[n] is not None and most[n] <= y[n]) for n in users]
    level = Fraction(0)
    while not all(stopped):
        rises = [not stopped[n] and y[n] <= level * g[n] for n in users]
        stops: list[Fraction] = [y[n] / g[n] for n in users if not stopped[n] and not rises[n]]
        stops += [most[n] / g[n] for n in users if rises[n] and most[n] is not None]
        for r in limits:
            slope = sum((g[n] * use[n][r] for n in users if rises[n]), Fraction(0))
            if slope:
                stops.append(level + (bounds[r] - sum((x[n] * use[n][r] for n in users), Fraction(0))) / slope)
        level = min(stops)
        for n in users:
            if rises[n]:
                x[n] = level * g[n] - y[n]
        for r in limits:
            if sum((x[n] * use[n][r] for n in users), Fraction(0)) == bounds[r]:
                for n in users:
                    stopped[n] = stopped[n] or use[n][r] > 0
        for n in users:
            if rises[n] and most[n] is not None and x[n] + y[n] == most[n]:
                stopped[n] = True
    return x


class Reference:
    """Jobs, streams of alike jobs, single servers; ``follow`` runs them until a time."""

    def __init__(self, trace: fo.Trace, cluster: fo.Instance, period: float, phases: str, seed: int, sharing: str) -> None:
        self.trace, self.cluster, self.at_once = trace, cluster, phases == "at-once"
        self.m = range(cluster.n_resources)
        self.c = [[exact(value) for value in row] for row in cluster.capacities]
        owner = [cluster.users.index(trace.users[n]) for n in trace.user]
        keys = []
        for j in range(trace.n_jobs):
            allowed = () if trace.eligibility is None else tuple(trace.eligibility[j])
            keys.append((owner[j], tuple(exact(value) for value in trace.demands[j]), allowed))
        streams = sorted(set(keys), key=keys.index)
        self.stream = [streams.index(key) for key in keys]
        self.owner, self.d = [key[0] for key in streams], [key[1] for key in streams]
        most = most_servers(trace, cluster)
        self.row = [i for i, count in enumerate(most) for _ in range(count)]
        self.place = [k for count in most for k in range(count)]
        self.counts = [int(count) for count in cluster.counts]
        self.gamma = [[self.alone(keys.index(key), i) for i in range(cluster.n_servers)] for key in streams]
        first: dict[str, str] = {}
        for _, kind, name, _ in trace.events:
            if kind in ("join", "leave"):
                first.setdefault(name, kind)
        self.present = [first.get(name) != "join" for name in cluster.users]
        self.x = [[Fraction(0) for _ in self.row] for _ in streams]
        self.here: list[int] = []
        self.left = [Fraction(0) if work == 0 else None if np.isinf(work) else exact(work) for work in trace.job_work]
        self.finished: list[Fraction | None] = [None] * trace.n_jobs
        self.time = sharing == "tdm"
        drawn = np.random.default_rng(seed).random(len(self.row)) if phases == "random" else np.zeros(len(self.row))
        self.phase = [Fraction(float(period * part)) for part in drawn]
        self.period = exact(period)

    def alone(self, job: int, i: int) -> Fraction:
        """Tasks of a job that one server of row i runs by itself."""
        placement, allowed = self.cluster.placement, self.trace.eligibility
        owner = self.owner[self.stream[job]]
        if (allowed is not None and not allowed[job, i]) or (placement is not None and not placement[owner, i]):
            return Fraction(0)
        d = self.d[self.stream[job]]
        return min(self.c[i][r] / d[r] for r in self.m if d[r])

    def active(self) -> list[int]:
        """Unfinished jobs whose owner is there."""
        return [j for j in self.here if self.present[self.owner[self.stream[j]]]]

    def most(self) -> list[int]:
        """Tasks of each stream."""
        return [sum(int(self.trace.tasks[j]) for j in self.active() if self.stream[j] == n) for n in range(len(self.d))]

    def act(self, servers: list[int]) -> None:
        """Let these servers divide what they have, on what they know at this moment."""
        most = self.most()
        weights = [exact(weight) for weight in self.cluster.weights]
        here = [sum(1 for n, tasks in enumerate(most) if tasks and self.owner[n] == owner) for owner in range(len(weights))]
        new: dict[int, list[Fraction]] = {}
        for s in servers:
            i = self.row[s]
            if self.place[s] >= self.counts[i]:
                continue
            users = [n for n in range(len(self.d)) if most[n] and self.gamma[n][i]]
            y = [sum(self.x[n], Fraction(0)) - self.x[n][s] for n in users]
            g = [weights[self.owner[n]] / here[self.owner[n]] * self.gamma[n][i] for n in users]
            use = [[1 / self.gamma[n][i]] if self.time else list(self.d[n]) for n in users]
            given = respond(y, g, [Fraction(most[n]) for n in users], use, [Fraction(1)] if self.time else self.c[i])
            new[s] = [Fraction(0)] * len(self.d)
            for n, value in zip(users, given, strict=True):
                new[s][n] = value
        for s, divided in new.items():
            for n, value in enumerate(divided):
                self.x[n][s] = value

    def free(self) -> None:
        """Whoever has fewer tasks than it is given leaves the same part free everywhere; servers that are not there give nothing."""
        for n, tasks in enumerate(self.most()):
            for s, i in enumerate(self.row):
                if self.place[s] >= self.counts[i]:
                    self.x[n][s] = Fraction(0)
            total = sum(self.x[n], Fraction(0))
            if total > tasks:
                self.x[n] = [value * tasks / total for value in self.x[n]]

    def rates(self) -> dict[int, Fraction]:
        """Tasks that run of each job: of a stream the first job first."""
        rates: dict[int, Fraction] = {}
        for n, row in enumerate(self.x):
            free = sum(row, Fraction(0))
            for j in self.active():
                if self.stream[j] == n:
                    rates[j] = min(free, Fraction(int(self.trace.tasks[j])))
                    free -= rates[j]
        return rates

    def follow(self, until: Fraction, looks: list[Fraction]) -> list[list[Fraction]]:
        """Go on until then; return the tasks of each owner at these times."""
        kinds = ("leave", "join", "remove", "add", "submit")
        coming: list[tuple[Fraction, int, Any, int]] = [(exact(t), kinds.index(kind), name, k) for t, kind, name, k in self.trace.events]
        coming += [(exact(t), 4, job, 0) for job, t in enumerate(self.trace.submit)]
        coming.sort(key=lambda event: event[:2])
        origin = coming[0][0]
        order = sorted(range(len(self.row)), key=lambda s: self.phase[s])
        rounds = int((until - origin) / self.period) + 2
        if self.at_once:
            actions = [(origin + k * self.period, order) for k in range(rounds)]
        else:
            actions = [(origin + self.phase[s] + k * self.period, [s]) for k in range(rounds) for s in order]
        now = origin
        seen: list[list[Fraction]] = []
        while True:
            rates = self.rates()
            ends = {j: now + left / rates[j] for j in rates if (left := self.left[j]) is not None and rates[j]}
            then = min([until, *ends.values(), *(t for t, *_ in coming[:1]), *(t for t, _ in actions[:1])])
            while len(seen) < len(looks) and looks[len(seen)] < then:
                seen.append(self.by_owner())
            for j in self.active():
                if (left := self.left[j]) is not None:
                    self.left[j] = left - rates[j] * (then - now)
            now = then
            if now == until:
                return seen + [self.by_owner()] * (len(looks) - len(seen))
            for j in [j for j in ends if ends[j] == now]:
                self.finished[j] = now
                self.here.remove(j)
            while coming and coming[0][0] == now:
                _, kind, what, number = coming.pop(0)
                if kinds[kind] == "submit":
                    if self.left[what] == 0 and any(self.gamma[self.stream[what]]):
                        self.finished[what] = now
                    elif any(self.gamma[self.stream[what]]):
                        self.here.append(what)
                elif kinds[kind] in ("join", "leave"):
                    self.present[self.cluster.users.index(what)] = kinds[kind] == "join"
                else:
                    self.counts[self.cluster.servers.index(what)] += number if kinds[kind] == "add" else -number
            self.free()
            while actions and actions[0][0] == now:
                self.act(actions.pop(0)[1])
            self.free()

    def by_owner(self) -> list[Fraction]:
        """Tasks that run of each owner."""
        return [
            sum((sum(row, Fraction(0)) for n, row in enumerate(self.x) if self.owner[n] == owner), Fraction(0))
            for owner in range(self.cluster.n_users)
        ]
