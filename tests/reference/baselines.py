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

RULES = {
    "fifo": ("fifo", math.inf, False),
    "backfill": ("backfill", math.inf, True),
    "fairtree:half_life=7": ("fairtree", 7.0, True),
    "fairtree:half_life=inf:backfill=no": ("fairtree", math.inf, False),
    "priority:half_life=9": ("priority", 9.0, False),
    "maui:interval=5:depth=3:decay=0.5": ("maui", math.inf, True),
}


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
        most = most_servers(trace, cluster)
        self.row = [i for i, count in enumerate(most) for _ in range(count)]
        self.there = [k < int(cluster.counts[i]) for i, count in enumerate(most) for k in range(count)]
        none = [Fraction(0)] * len(cluster.shared)
        self.free = [[exact(value) for value in cluster.capacities[i]] + none for i in self.row]
        self.free.append([Fraction(0)] * cluster.n_server_resources + [exact(value) for value in cluster.shared.values()])
        self.empty = [list(free) for free in self.free]
        self.total = [sum((amounts[r] for amounts in self.empty), Fraction(0)) for r in self.m]
        self.owner = [self.users.index(trace.users[n]) for n in trace.user]
        self.d = [[self.on_row(job, i) for i in range(cluster.n_servers)] for job in range(trace.n_jobs)]
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

    def on_row(self, job: int, i: int) -> list[Fraction]:
        """Return what a task takes on a row: what the trace says holds where the speed of its user is 1."""
        demand = [exact(value) for value in self.trace.demands[job]]
        if self.cluster.demands_by_kind.shape[1] == 1:
            return demand
        n = self.owner[job]
        by_row = self.cluster.demands_by_row(n)
        base = next(k for k in range(self.cluster.n_servers) if self.speed(job, k) == 1)
        return [demand[r] * exact(by_row[i, r]) / exact(by_row[base, r]) for r in self.m]

    def speed(self, job: int, i: int) -> Fraction:
        """Return the speed of a task on a row; 0 where its user may not run."""
        n, placement = self.owner[job], self.cluster.placement
        return exact(self.cluster.speeds[n, i]) if placement is None or placement[n, i] else Fraction(0)

    def takes(self, job: int, s: int) -> list[Fraction]:
        """Return what a task takes on a server."""
        return self.d[job][self.row[s]]

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
        return allowed and (placement is None or bool(placement[self.owner[job], i])) and self.speed(job, i) > 0

    def at(self, s: int, r: int) -> int:
        """Return where the resource of a server is free; resources of the cluster are behind all servers."""
        return s if r < self.cluster.n_server_resources else len(self.row)

    def place(
        self, job: int, number: int, free: list[list[Fraction]], closed: bool = False, limits: bool = True,
        late: list[bool] | None = None, spare: list[list[Fraction]] | None = None,
    ) -> list[int] | None:  # fmt: skip
        """Return the first servers on which so many tasks fit, one a task; None if they do not fit.

        On late servers they must fit into what is spare, too.
        """
        free, held, found = [list(amounts) for amounts in free], list(self.held), []
        late, spare = late or [False] * len(self.row), [list(amounts) for amounts in spare or free]
        for _ in range(number):
            s = next(
                (
                    s
                    for s in range(len(self.row))
                    if self._fits(job, s, free, held, closed, limits) and (not late[s] or self._fits(job, s, spare, held, closed, limits))
                ),
                None,
            )
            if s is None:
                return None
            found.append(s)
            for r in self.m:
                free[self.at(s, r)][r] -= self.takes(job, s)[r]
                if late[s]:
                    spare[self.at(s, r)][r] -= self.takes(job, s)[r]
            for k, row in enumerate(self.limits):
                if row.users[self.owner[job]] and row.servers[self.row[s]]:
                    held[k] += self.takes(job, s)[row.resource]
        return found

    def _fits(self, job: int, s: int, free: list[list[Fraction]], held: list[Fraction], closed: bool, limits: bool) -> bool:
        if not (self.able(job, s) and (closed or self.there[s]) and all(self.takes(job, s)[r] <= free[self.at(s, r)][r] for r in self.m)):
            return False
        return not limits or all(
            held[k] + self.takes(job, s)[row.resource] <= exact(row.bound) or not self.takes(job, s)[row.resource]
            for k, row in enumerate(self.limits)
            if row.users[self.owner[job]] and row.servers[self.row[s]]
        )

    def start(self, job: int, servers: list[int], now: Fraction) -> None:
        """Start the next tasks of a job there."""
        for s in servers:
            task = self.next[job]
            self.next[job] += 1
            for r in self.m:
                self.free[self.at(s, r)][r] -= self.takes(job, s)[r]
            for k, row in enumerate(self.limits):
                if row.users[self.owner[job]] and row.servers[self.row[s]]:
                    self.held[k] += self.takes(job, s)[row.resource]
            length = float(self.trace.task_durations[task])
            estimate = float(self.trace.expected_durations[job])
            speed = self.speed(job, self.row[s])
            expected = NEVER if math.isinf(estimate) else now + exact(estimate) / speed
            self.starts[task] = (now, s)
            self.running.append((NEVER if math.isinf(length) else now + exact(length) / speed, task, job, s, expected))
        if not self.left(job):
            self.waits.remove(job)

    def end(self, entry: tuple[Fraction, int, int, int, Fraction]) -> None:
        """End a task."""
        end, task, job, s, _ = entry
        self.running.remove(entry)
        for r in self.m:
            self.free[self.at(s, r)][r] += self.takes(job, s)[r]
        for k, row in enumerate(self.limits):
            if row.users[self.owner[job]] and row.servers[self.row[s]]:
                self.held[k] -= self.takes(job, s)[row.resource]
        self.pieces.append((float(self.starts[task][0]), float(end), self.owner[job], self.worth(job, s)))

    # Who is next -------------------------------------------------------------------------------------------------------------

    def worth(self, job: int, s: int) -> float:
        """Return the part of the cluster that a task takes there; under "priority" and "maui" the amount of the unit."""
        if self.rule in ("priority", "maui"):
            return float(self.takes(job, s)[self.unit])
        return float(max(self.takes(job, s)[r] / self.total[r] for r in self.m if self.total[r]))

    def usage(self, now: Fraction) -> list[float]:
        """Return the integral of what each user held, each moment faded by its age."""
        used = [0.0] * len(self.users)
        pieces = list(self.pieces)
        pieces += [(float(self.starts[task][0]), float(now), self.owner[job], self.worth(job, s)) for _, task, job, s, _ in self.running]
        for begin, end, user, worth in pieces:
            if math.isinf(self.half_life):
                used[user] += worth * (end - begin)
            else:
                rate = math.log(2) / self.half_life
                used[user] += worth / rate * (math.exp(-rate * (float(now) - end)) - math.exp(-rate * (float(now) - begin)))
        return used

    def by_targets(self, now: Fraction, interval: float = 5.0, depth: int = 3, decay: float = 0.5) -> list[float]:
        """Return minus the distance of each user to its target, from the pieces of usage that lie in each window."""
        pieces = list(self.pieces)
        pieces += [(float(self.starts[task][0]), float(now), self.owner[job], self.worth(job, s)) for _, task, job, s, _ in self.running]
        used, last = [0.0] * len(self.users), math.floor(float(now) / interval)
        for k in range(depth):
            begin, end = (last - k) * interval, (last - k + 1) * interval
            for start, stop, user, worth in pieces:
                used[user] += decay**k * worth * max(0.0, min(stop, end) - max(start, begin))
        tree, total = self.cluster.tree, sum(used)
        targets = []
        for n, weight in enumerate(self.cluster.weights.tolist()):
            node, part, own = int(tree.user_node[n]), 1.0, float(weight)
            while True:
                below = [float(self.cluster.weights[int(m)]) for m in tree.users_of(node)] + [
                    float(tree.weights[int(v)]) for v in tree.children(node)
                ]
                part *= own / sum(below) if sum(below) else 0.0
                if not node:
                    break
                node, own = int(tree.parent[node]), float(tree.weights[node])
            targets.append(part)
        return [digits(1 - target + (use / total if total else 0.0)) for target, use in zip(targets, used, strict=True)]

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
        rank = self.fair_tree(now) if self.rule == "fairtree" else self.by_targets(now) if self.rule == "maui" else [0.0] * len(self.users)
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
                        free[self.at(s, r)][r] += self.takes(job, s)[r]
            own = self.place(head, self.wants(head), free, limits=False)
            if own is not None:
                shadow = when
                break
        for s in own or ():
            for r in self.m:
                free[self.at(s, r)][r] -= self.takes(head, s)[r]
        for job in units:
            estimate = float(self.trace.expected_durations[job])
            speeds = [self.speed(job, i) or 1 for i in self.row]
            late = [shadow not in (None, NEVER) and (math.isinf(estimate) or now + exact(estimate) / speed > shadow) for speed in speeds]
            place = self.place(job, self.wants(job), self.free, late=late, spare=free)
            if place is not None:
                self.start(job, place, now)
                for s in (s for s in place if late[s]):
                    for r in self.m:
                        free[self.at(s, r)][r] -= self.takes(job, s)[r]

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
                used = sum((self.takes(job, s)[r] for _, _, job, s, _ in self.running if self.owner[job] in users), Fraction(0))
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
            capacity = [sum((self.empty[s][r] for s in [*there, len(self.row)]), Fraction(0)) for r in self.m]
            pie = float(sum((self.free[s][self.unit] for s in [*there, len(self.row)]), Fraction(0)))
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
                place = self.place(job, self.wants(job), self.free)
                if place is None:
                    break
                worth, asked = sum(self.worth(job, s) for s in place), [sum(self.takes(job, s)[r] for s in place) for r in self.m]
                if group is not None and any(held + asked[r] > quota for r, (held, quota) in self.quota(*group).items() if asked[r]):
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
                    if self._alone(what):
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


def follow(trace: fo.Trace, cluster: fo.Instance, scheduler: str, unit: int = 0) -> None:
    """Compare the time and the server of each task; ``unit`` is the resource in which "priority" and "maui" count."""
    expected = SlowJobs(trace, cluster, *RULES[scheduler], unit=unit).simulate()
    counts = f":unit={cluster.resources[unit]}" if scheduler.startswith(("priority", "maui")) else ""
    found = fo.simulate(trace, cluster, scheduler + counts)
    assert found.task_start is not None
    assert found.task_server is not None
    started = np.flatnonzero(np.isfinite(found.task_start))
    actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in started}
    assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}
