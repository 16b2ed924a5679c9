"""Schedulers of jobs as one would write them on paper: one task and one server at a time, in fractions, nothing remembered but usage."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from reference.kept import all_rows
from reference.simulation import change, exact, most_servers

import fairopt as fo
from fairopt.program.queue_limits import Row, limit_rows

NEVER = Fraction(10**15)


def digits(value: float) -> float:
    """Return a value with eleven digits, in which rounding is lost."""
    return float(f"{value:.10e}") if math.isfinite(value) else value


class SlowJobs:
    """All of a trace under one scheduler: ``simulate`` returns the time and server of each task that started."""

    def __init__(
        self, trace: fo.Trace, cluster: fo.Instance, rule: str, half_life: float = math.inf, backfill: bool = False, unit: int = 0
    ) -> None:
        self.trace, self.cluster, self.rule, self.half_life, self.backfill, self.unit = trace, cluster, rule, half_life, backfill, unit
        self.users = cluster.users
        self.m = range(cluster.n_resources)
        self.d = [[exact(value) for value in row] for row in trace.demands]
        most = most_servers(trace, cluster)
        self.row = [i for i, count in enumerate(most) for _ in range(count)]
        self.there = [k < int(cluster.counts[i]) for i, count in enumerate(most) for k in range(count)]
        self.free = [[exact(cluster.capacities[i, r]) for r in self.m] for i in self.row]
        self.empty = [list(free) for free in self.free]
        self.total = [sum((self.empty[s][r] for s in range(len(self.row))), Fraction(0)) for r in self.m]
        self.owner = [self.users.index(trace.users[n]) for n in trace.user]
        whole = cluster.replace(counts=most)
        self.whole = whole
        self.limits = self.limits_of(self.row.count)
        self.held = [Fraction(0) for _ in self.limits]
        first: dict[str, str] = {}
        for _, kind, name, _ in trace.events:
            if kind in ("join", "leave"):
                first.setdefault(name, kind)
        self.present = [first.get(name) != "join" for name in self.users]
        self.origin = 0.0
        self.first_task = [int(sum(trace.tasks[:j])) for j in range(trace.n_jobs)]
        self.next = list(self.first_task)
        self.waits: list[int] = []
        self.running: list[tuple[Fraction, int, int, int, Fraction]] = []  # end, task, job, server, expected end
        self.starts: dict[int, tuple[Fraction, int]] = {}
        self.pieces: list[tuple[float, float, int, float]] = []  # begin, end, user, worth

    def limits_of(self, number: Callable[[int], int]) -> list[Row]:
        """Return the limits of queues, and all rows of what they keep of so many servers of each row."""
        whole = self.whole
        limits = list(limit_rows(whole))
        for kept in all_rows(whole, exact, [number(i) for i in range(whole.n_servers)], 0):
            users, servers = (np.isin(np.arange(size), own) for size, own in ((whole.n_users, kept.users), (whole.n_servers, kept.servers)))
            limits.append(Row("", users, servers, kept.resource, kept.bound))
        return limits

    def open_servers(self, i: int) -> int:
        """Return how many servers of a row are there."""
        return sum(there for there, row in zip(self.there, self.row, strict=True) if row == i)

    # What fits ---------------------------------------------------------------------------------------------------------------

    def wants(self, job: int) -> int:
        """Return how many tasks must start together."""
        return int(self.trace.tasks[job]) if self.trace.gangs[job] else 1

    def left(self, job: int) -> int:
        """Return how many tasks wait."""
        return self.first_task[job] + int(self.trace.tasks[job]) - self.next[job]

    def able(self, job: int, s: int) -> bool:
        """May a task ever run there?"""
        placement, i = self.cluster.placement, self.row[s]
        allowed = self.trace.eligibility is None or bool(self.trace.eligibility[job, i])
        return allowed and (placement is None or bool(placement[self.owner[job], i]))

    def place(self, job: int, number: int, free: list[list[Fraction]], closed: bool = False, limits: bool = True) -> list[int] | None:
        """Return the first servers on which so many tasks fit, one a task; None if they do not fit."""
        free, held, found = [list(amounts) for amounts in free], list(self.held), []
        for _ in range(number):
            s = next((s for s in range(len(self.row)) if self._fits(job, s, free, held, closed, limits)), None)
            if s is None:
                return None
            found.append(s)
            for r in self.m:
                free[s][r] -= self.d[job][r]
            for k, row in enumerate(self.limits):
                if row.users[self.owner[job]] and row.servers[self.row[s]]:
                    held[k] += self.d[job][row.resource]
        return found

    def _fits(self, job: int, s: int, free: list[list[Fraction]], held: list[Fraction], closed: bool, limits: bool) -> bool:
        if not (self.able(job, s) and (closed or self.there[s]) and all(self.d[job][r] <= free[s][r] for r in self.m)):
            return False
        return not limits or all(
            held[k] + self.d[job][row.resource] <= exact(row.bound) or not self.d[job][row.resource]
            for k, row in enumerate(self.limits)
            if row.users[self.owner[job]] and row.servers[self.row[s]]
        )

    def start(self, job: int, servers: list[int], now: Fraction) -> None:
        """Start the next tasks of a job there."""
        for s in servers:
            task = self.next[job]
            self.next[job] += 1
            for r in self.m:
                self.free[s][r] -= self.d[job][r]
            for k, row in enumerate(self.limits):
                if row.users[self.owner[job]] and row.servers[self.row[s]]:
                    self.held[k] += self.d[job][row.resource]
            length = float(self.trace.task_durations[task])
            estimate = float(self.trace.expected_durations[job])
            expected = NEVER if math.isinf(estimate) else now + exact(estimate)
            self.starts[task] = (now, s)
            self.running.append((NEVER if math.isinf(length) else now + exact(length), task, job, s, expected))
        if not self.left(job):
            self.waits.remove(job)

    def end(self, entry: tuple[Fraction, int, int, int, Fraction]) -> None:
        """End a task."""
        end, task, job, s, _ = entry
        self.running.remove(entry)
        for r in self.m:
            self.free[s][r] += self.d[job][r]
        for k, row in enumerate(self.limits):
            if row.users[self.owner[job]] and row.servers[self.row[s]]:
                self.held[k] -= self.d[job][row.resource]
        self.pieces.append((float(self.starts[task][0]), float(end), self.owner[job], self.worth(job)))

    # Who is next -------------------------------------------------------------------------------------------------------------

    def worth(self, job: int) -> float:
        """Return the part of the cluster that a task takes; under "priority" the amount of the unit."""
        if self.rule == "priority":
            return float(self.d[job][self.unit])
        return float(max(self.d[job][r] / self.total[r] for r in self.m if self.total[r]))

    def usage(self, now: Fraction) -> list[float]:
        """Return the integral of what each user held, each moment faded by its age."""
        used = [0.0] * len(self.users)
        pieces = list(self.pieces)
        pieces += [(float(self.starts[task][0]), float(now), self.owner[job], self.worth(job)) for _, task, job, _, _ in self.running]
        for begin, end, user, worth in pieces:
            if math.isinf(self.half_life):
                used[user] += worth * (end - begin)
            else:
                rate = math.log(2) / self.half_life
                used[user] += worth / rate * (math.exp(-rate * (float(now) - end)) - math.exp(-rate * (float(now) - begin)))
        return used

    def fair_tree(self, now: Fraction) -> list[float]:
        """Return the rank of each user, by the recursion of Slurm's documentation."""
        used = self.usage(now)
        tree = self.cluster.tree
        ranks, counter = {}, [0]

        def children(node: int) -> list[tuple[str, int, float]]:
            below = [("user", int(n)) for n in tree.users_of(node)] + [("account", int(v)) for v in tree.children(node)]
            shares = [float(self.cluster.weights[k]) if kind == "user" else float(tree.weights[k]) for kind, k in below]
            uses = [used[k] if kind == "user" else sum(used[n] for n in np.flatnonzero(tree.below[k])) for kind, k in below]
            found = []
            for (kind, k), share, use in zip(below, shares, uses, strict=True):
                level = 0.0 if share == 0 else math.inf if use == 0 else (share / sum(shares)) / (use / sum(uses))
                found.append((kind, k, digits(level)))
            return found

        def visit(associations: list[tuple[str, int, float]]) -> None:
            for level in sorted({value for *_, value in associations}, reverse=True):
                group = [(kind, k) for kind, k, value in associations if value == level]
                for kind, k in group:
                    if kind == "user":
                        ranks[k] = counter[0]
                accounts = [k for kind, k in group if kind == "account"]
                merged = [child for account in accounts for child in children(account)]
                if merged:
                    visit(merged)
                else:
                    counter[0] += 1

        visit(children(0))
        return [ranks[n] for n in range(len(self.users))]

    # A moment ----------------------------------------------------------------------------------------------------------------

    def schedule(self, now: Fraction) -> None:
        """Start what may start now."""
        if self.rule == "priority":
            self.spin(now)
            return
        rank = self.fair_tree(now) if self.rule == "fairtree" else [0] * len(self.users)
        order = sorted((job for job in self.waits if self.present[self.owner[job]]), key=lambda job: (rank[self.owner[job]], job))
        units = [job for job in order for _ in range(1 if self.trace.gangs[job] else self.left(job))]
        while units:
            job = units[0]
            place = self.place(job, self.wants(job), self.free)
            if place is not None:
                self.start(job, place, now)
            elif self.place(job, self.wants(job), self.empty, closed=True) is not None:  # not its limit holds it back
                if self.backfill:
                    self.fill_gaps(job, units[1:], now)
                return
            units.pop(0)

    def fill_gaps(self, head: int, units: list[int], now: Fraction) -> None:
        """Start what does not delay the first job."""
        free, shadow, own = [list(amounts) for amounts in self.free], None, None
        ends = sorted({max(entry[4], now) for entry in self.running})
        for when in ends:
            for _, _, job, s, expected in self.running:
                if max(expected, now) == when:
                    for r in self.m:
                        free[s][r] += self.d[job][r]
            own = self.place(head, self.wants(head), free, limits=False)
            if own is not None:
                shadow = when
                break
        for s in own or ():
            for r in self.m:
                free[s][r] -= self.d[head][r]
        for job in units:
            estimate = float(self.trace.expected_durations[job])
            in_time = shadow in (None, NEVER) or (math.isfinite(estimate) and now + exact(estimate) <= shadow)
            both = self.free if in_time else [[min(a, b) for a, b in zip(*pair, strict=True)] for pair in zip(self.free, free, strict=True)]
            place = self.place(job, self.wants(job), both)
            if place is not None:
                self.start(job, place, now)
                for s in place if not in_time else ():
                    for r in self.m:
                        free[s][r] -= self.d[job][r]

    def spin(self, now: Fraction) -> None:
        """Divide the pie among the users of each group, within its quota, and then among all users."""
        groups = {q: [n for n in range(len(self.users)) if self.is_below(n, queue.name)] for q, queue in enumerate(self.cluster.queues)}
        groups = {q: users for q, users in groups.items() if any(self.cluster.queues[q].guarantee.values())}
        fractions = {q: max([0.0, *(float(used / quota) for used, quota in self.quota(q, users).values())]) for q, users in groups.items()}
        for q in sorted(groups, key=lambda q: (digits(fractions[q]), q)):
            self.spin_among(groups[q], q, now)
        self.spin_among(list(range(len(self.users))), None, now)

    def is_below(self, user: int, queue: str) -> bool:
        """Is the user in this queue, or in one below it?"""
        parents = {each.name: each.parent for each in self.cluster.queues}
        place = self.cluster.queue_of[user]
        while place is not None and place != queue:
            place = parents[place]
        return place == queue

    def quota(self, q: int, users: list[int]) -> dict[int, tuple[Fraction, Fraction]]:
        """Return what these users hold of each guaranteed resource, and the quota, scaled to what is there."""
        found = {}
        for r, name in enumerate(self.cluster.resources):
            amount = exact(self.cluster.queues[q].guarantee.get(name, 0))
            if amount:
                capacity = sum((self.empty[s][r] for s in range(len(self.row)) if self.there[s]), Fraction(0))
                promised = sum((exact(queue.guarantee.get(name, 0)) for queue in self.cluster.queues), Fraction(0))
                used = sum((self.d[job][r] for _, _, job, _, _ in self.running if self.owner[job] in users), Fraction(0))
                found[r] = used, amount * min(Fraction(1), capacity / promised)
        return found

    def spin_among(self, users: list[int], q: int | None, now: Fraction) -> None:
        """Divide the pie until nothing starts."""
        used, rate = self.usage(now), math.log(2) / self.half_life
        weights = self.cluster.weights
        real = [max(u * rate + 0.5 * math.exp(-rate * (float(now) - self.origin)), 0.5) for u in used]
        priority = [digits(p / w) if w else math.inf for p, w in zip(real, weights, strict=True)]
        while True:
            jobs = [job for job in self.waits if self.present[self.owner[job]] and self.owner[job] in users]
            asking = sorted({self.owner[job] for job in jobs})
            there = [s for s in range(len(self.row)) if self.there[s]]
            capacity = [sum((self.empty[s][r] for s in there), Fraction(0)) for r in self.m]
            pie = float(sum((self.free[s][self.unit] for s in there), Fraction(0)))
            if q is not None:
                for r, (held, quota) in self.quota(q, users).items():
                    if capacity[r]:
                        pie = min(pie, max(float((quota - held) / capacity[r] * capacity[self.unit]), 0.0))
            claims = {n: 0.0 if math.isinf(priority[n]) else 1 / priority[n] for n in asking}
            started = False
            for n in sorted(asking, key=lambda n: (priority[n], n)):
                if sum(claims.values()) and not claims[n]:
                    continue
                mine = pie * claims[n] / sum(claims.values()) if sum(claims.values()) else pie
                within = None if q is None else (q, users)
                started |= self.serve([job for job in jobs if self.owner[job] == n], mine, now, within)
            if not started:
                return

    def serve(self, jobs: list[int], mine: float, now: Fraction, group: tuple[int, list[int]] | None) -> bool:
        """Start jobs of one user within its slice, and within the quota of its group."""
        given, started = 0.0, False
        for job in jobs:
            while job in self.waits:
                worth = self.worth(job) * self.wants(job)
                if group is not None and any(
                    held + self.d[job][r] * self.wants(job) > quota for r, (held, quota) in self.quota(*group).items() if self.d[job][r]
                ):
                    break
                place = self.place(job, self.wants(job), self.free)
                if place is None:
                    break
                if worth and given + worth > mine * (1 + 1e-9) and (given or not mine):
                    return started
                self.start(job, place, now)
                given += worth
                started = True
        return started

    def simulate(self) -> dict[int, tuple[Fraction, int]]:
        """Return the time and the server of each task that started."""
        kinds = ("leave", "join", "remove", "add", "submit")
        events: list[tuple[Fraction, int, Any, int]] = []
        events += [(exact(t), kinds.index(kind), name, k) for t, kind, name, k in self.trace.events]
        events += [(exact(t), 4, job, 0) for job, t in enumerate(self.trace.submit)]
        events.sort(key=lambda event: event[:2])
        self.origin = float(events[0][0])
        while events or any(entry[0] < NEVER for entry in self.running):
            now = min([event[0] for event in events[:1]] + [entry[0] for entry in self.running])
            for entry in [entry for entry in self.running if entry[0] == now]:
                self.end(entry)
            while events and events[0][0] == now:
                _, kind, what, number = events.pop(0)
                if kinds[kind] == "submit":
                    if self.place(what, self.wants(what), self.empty, closed=True) is not None or self._alone(what):
                        self.waits.append(what)
                else:
                    change(self, kinds[kind], what, number)
            self.limits = self.limits_of(self.open_servers)
            self.schedule(now)
        return self.starts

    def _alone(self, job: int) -> bool:
        """Would it fit if nothing else ran, and all servers that ever exist were there?"""
        held, self.held = self.held, [Fraction(0)] * len(self.limits)
        limits, self.limits = self.limits, self.limits_of(self.row.count)
        fits = self.place(job, self.wants(job), self.empty, closed=True) is not None
        self.held, self.limits = held, limits
        return fits
