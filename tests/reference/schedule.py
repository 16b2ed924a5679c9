"""Progressive filling as one would write it on paper: in fractions, one server at a time, without any of the shortcuts of the engine."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import ceil, floor, isinf

import numpy as np

import fairopt as fo


@cache
def _exact(value: float) -> Fraction:
    return Fraction(float(value)).limit_denominator(10**6)


class Reference:
    """Servers with what is free on them, users with what they have."""

    def __init__(self, instance: fo.Instance, criterion: str, slots: int | None = None) -> None:
        n, m = instance.demands.shape
        self.row = [i for i, count in enumerate(instance.counts) for _ in range(int(count))]
        c = [[_exact(value) for value in instance.capacities[i]] for i in self.row]
        d = [[_exact(value) for value in row] for row in instance.demands]
        self.allowed = [[bool(instance.eligibility[u, i]) for i in self.row] for u in range(n)]
        self.bare = [[all(not d[u][r] or c[i][r] for r in range(m)) for i in range(len(c))] for u in range(n)]
        totals = [sum((row[r] for row in c), Fraction(0)) for r in range(m)]
        self.parts = [
            max((row[r] / totals[r] for r in range(m) if totals[r]), default=Fraction(0)) for row in d
        ]  # of the cluster, never of slots
        if slots is not None:
            largest = [max((_exact(value) for value in instance.capacities[:, r]), default=Fraction(0)) for r in range(m)]
            whole = [min((floor(row[r] * slots / largest[r]) for r in range(m) if row[r]), default=0) for row in c]
            d = [[Fraction(max(ceil(row[r] * slots / largest[r]) if row[r] and largest[r] else 0 for r in range(m)))] for row in d]
            c = [[Fraction(number)] for number in whole]
            self.allowed = [[ok and whole[i] > 0 for i, ok in enumerate(row)] for row in self.allowed]
            self.bare = [[whole[i] > 0 for i in range(len(c))] for _ in range(n)]
            m = 1
        self.c, self.d, self.m, self.n = c, d, m, n
        self.free = [list(row) for row in c]
        self.phi = [_exact(value) for value in instance.weights]
        self.left: list[float] = [value if isinf(value) else floor(value) for value in instance.tasks]
        self.x = [[0] * len(c) for _ in range(n)]
        self.total = [sum((row[r] for row in c), Fraction(0)) for r in range(m)]
        self.criterion = criterion
        self.servers = range(len(c))
        self.placed: list[tuple[int, int]] = []

    def gamma(self, user: int, i: int) -> Fraction:
        """Tasks that the user runs alone on the server."""
        return min(self.c[i][r] / self.d[user][r] for r in range(self.m) if self.d[user][r])

    def share(self, user: int, i: int) -> Fraction:
        """s[n,i], or s[n] whatever i is."""
        x, d, servers = sum(self.x[user]), self.d[user], self.servers
        if x == 0:
            return Fraction(0)
        if self.criterion == "drfh":
            one = max(d[r] / self.total[r] for r in range(self.m) if d[r])
        elif self.criterion == "asset":
            one = sum((d[r] / self.total[r] for r in range(self.m) if d[r]), Fraction(0))
        elif self.criterion == "cdrf":
            one = 1 / sum((self.gamma(user, j) for j in servers if self.allowed[user][j]), Fraction(0))
        elif self.criterion == "tsf":
            one = 1 / sum((self.gamma(user, j) for j in servers if self.bare[user][j]), Fraction(0))
        elif self.criterion == "max-min":
            one = Fraction(1)
        elif self.criterion == "psdsf":
            one = 1 / self.gamma(user, i)
        else:
            one = max(d[r] / self.free[i][r] for r in range(self.m) if d[r])
        return x * one / self.phi[user]

    def fits(self, user: int, i: int) -> bool:
        """Has the user a task left, and is there room for it?"""
        return self.left[user] >= 1 and self.allowed[user][i] and all(self.d[user][r] <= self.free[i][r] for r in range(self.m))

    def score(self, metric: str, user: int, i: int) -> Fraction:
        """Smaller is better; each resource in parts of what an average server has."""
        number = len(self.c)
        d = [self.d[user][r] * number / self.total[r] if self.total[r] else Fraction(0) for r in range(self.m)]
        f = [self.free[i][r] * number / self.total[r] if self.total[r] else Fraction(0) for r in range(self.m)]
        p = next(r for r in range(self.m) if d[r])
        if metric == "l1":
            return sum((abs(d[r] / d[p] - f[r] / f[p]) for r in range(self.m)), Fraction(0))
        if metric == "l2":
            return sum(((d[r] / d[p] - f[r] / f[p]) ** 2 for r in range(self.m)), Fraction(0))
        if metric == "cosine":
            return -(sum(a * b for a, b in zip(d, f, strict=True)) ** 2) / sum((b * b for b in f), Fraction(0))
        if metric == "dot":
            cap = self.c[i]
            return -sum((self.d[user][r] / cap[r] * self.free[i][r] / cap[r] for r in range(self.m) if cap[r]), Fraction(0))
        return sum(f, Fraction(0)) * (1 if metric == "tightest" else -1)

    def place(self, user: int, i: int) -> None:
        """Give one task."""
        self.x[user][i] += 1
        self.left[user] -= 1
        for r in range(self.m):
            self.free[i][r] -= self.d[user][r]
        self.placed.append((user, i))


def draw(rng: np.random.Generator, number: int) -> int:
    """Nothing is drawn where there is no choice."""
    return int(rng.random() * number) if number > 1 else 0


def first(tied: list[int], order: list[int], ties: str, rng: np.random.Generator) -> int:
    """Break a tie."""
    ranked = sorted(tied, key=order.index)
    return ranked[draw(rng, len(ranked))] if ties == "random" else ranked[0]


def order_of(state: Reference, ties: str) -> list[int]:
    """The users from the first."""
    return sorted(range(state.n), key=lambda user: (-state.parts[user] if ties == "largest-demand" else 0, user))


def able(state: Reference, user: int, i: int) -> bool:
    """May the user run there, and does the server have something of all that it demands?"""
    return bool(state.allowed[user][i]) and all(state.c[i][r] > 0 for r in range(state.m) if state.d[user][r])


def schedule(
    instance: fo.Instance,
    criterion: str,
    placement: str,
    *,
    ties: str = "index",
    seed: int = 0,
    metric: str = "l1",
    slots: int = 3,
    first_block: bool = False,
) -> list[tuple[int, int]]:
    """Return (user, single server) of each task in the order of placement."""
    rng = np.random.default_rng(seed)
    state = Reference(instance, criterion, slots if placement == "slots" else None)
    order = order_of(state, ties)
    if placement in ("random-round-robin", "random-server"):
        _by_server(state, order, ties, rng, in_rounds=placement == "random-round-robin")
        return state.placed
    # Who takes part: whose task fits on some empty server; where the first block ends it, anybody with an eligible server.
    takes_part = [
        user for user in range(state.n) if any(state.fits(user, i) or (first_block and able(state, user, i)) for i in state.servers)
    ]
    while True:
        servers = {user: [i for i in state.servers if state.fits(user, i)] for user in takes_part if state.left[user] >= 1}
        if not first_block:
            servers = {user: found for user, found in servers.items() if found}
        if not servers:
            return state.placed
        share = {user: min(state.share(user, i) for i in (found or state.servers)) for user, found in servers.items()}
        user = first([user for user in share if share[user] == min(share.values())], order, ties, rng)
        found = servers[user]
        if not found:
            return state.placed
        if placement == "random":
            i = found[draw(rng, len(found))]
        elif placement == "joint":
            i = min(found, key=lambda i: (state.share(user, i), i))
        elif placement in ("best-fit", "worst-fit"):
            how = metric if placement == "best-fit" else "loosest"
            i = min(found, key=lambda i: (state.score(how, user, i), i))
        else:
            i = found[0]
        state.place(user, i)


def _by_server(state: Reference, order: list[int], ties: str, rng: np.random.Generator, in_rounds: bool) -> None:
    def serve(i: int) -> bool:
        users = [user for user in range(state.n) if state.fits(user, i)]
        if users:
            share = {user: state.share(user, i) for user in users}
            state.place(first([user for user in users if share[user] == min(share.values())], order, ties, rng), i)
        return bool(users)

    take_turns(list(state.servers), rng, in_rounds, serve)


def take_turns(servers: list[int], rng: np.random.Generator, in_rounds: bool, serve: Callable[[int], bool]) -> None:
    """Let servers give one task each in rounds of a random order, or one random server each time, until none can."""
    while servers:
        for k in range(len(servers) - 1, 0, -1):  # Fisher and Yates
            other = draw(rng, k + 1)
            servers[k], servers[other] = servers[other], servers[k]
            if not in_rounds:
                break
        closed = [i for i in (servers if in_rounds else servers[-1:]) if not serve(i)]
        servers = [i for i in servers if i not in closed]
