"""Progressive filling in fractions: the same steps as `fairopt.solvers.filling.progressive_filling`, in which a tie is a tie.

Whether a task fits, whose share is the smallest, and which server has the best score are decided without rounding and without tolerances.
The amounts of a resource are whole numbers in the largest unit that divides all of them, so that most of the work is additions and
comparisons of integers. Scores are rational for all metrics: l2 is compared by its square, and so is the cosine.

Random numbers are drawn exactly where the compiled engine draws them, so that both give the same schedule from the same seed wherever
rounding does not matter.

This is plain Python, about a hundred times slower than the compiled engine. `seconds_expected` says how slow.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import lcm

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.program.filling import Filling, Measure, Rule
from fairopt.solvers.filling.placements import Chooser, Placement
from fairopt.solvers.filling.progressive_filling import Filled, chosen_server

__all__ = ["Servers", "fill_in_fractions", "rounds", "seconds_expected"]

_LOOK = 2e-6  # seconds to look at one user, or at one server that is only compared
_SCORE = 6e-6  # seconds to score a server


def seconds_expected(filling: Filling, placement: Placement | Chooser) -> float:
    """Return about how many seconds the filling takes."""
    most = np.full(filling.eligibility.shape, np.inf)
    for r in range(filling.capacities.shape[1]):
        wanted, room = filling.demands[:, :, r].astype(float), filling.capacities[:, r].astype(float)
        most = np.minimum(most, np.where(wanted > 0, room / np.where(wanted > 0, wanted, 1.0), np.inf))
    most = np.where(filling.eligibility & np.isfinite(most), most, 0.0)
    tasks = min(float(filling.capacities.shape[1] * (most.max(axis=0, initial=0.0) @ filling.counts)), float(filling.tasks.sum()))
    users, servers = filling.eligibility.shape[0], float(filling.counts.sum())
    scored = isinstance(placement, Placement) and (placement.rule >= Rule.L1 or filling.criterion.measure is Measure.RESIDUAL)
    once = (_SCORE if scored else _LOOK if not isinstance(placement, Placement) or placement.rule == Rule.RANDOM else 0.0) * servers
    by_user = _LOOK * users if filling.queues is not None or (isinstance(placement, Placement) and placement.server_first) else 0.0
    return tasks * (10 * _LOOK + once + by_user)


class Servers:
    """What is free on each single server, what each user has, and where its next task fits. All amounts are whole numbers."""

    def __init__(self, filling: Filling, rule: int) -> None:
        self.filling, self.rule = filling, rule
        rows = filling.counts.size
        self.n_users = filling.tasks.size
        self.row: list[int] = np.repeat(np.arange(rows), filling.counts).tolist()
        self.start: list[int] = np.concatenate([[0], np.cumsum(filling.counts)]).tolist()
        self.columns = filling.demands.shape[1]
        n_resources = filling.capacities.shape[1]
        unit = [[1] * n_resources for _ in range(rows)]  # amounts are multiples of 1 / unit
        for r in range(n_resources):
            if self.columns == 1:
                common = lcm(*_denominators(filling.capacities[:, r]), *_denominators(filling.demands[:, 0, r]))
                for k in range(rows):
                    unit[k][r] = common
            else:
                for k in range(rows):
                    unit[k][r] = lcm(*_denominators(filling.capacities[k : k + 1, r]), *_denominators(filling.demands[:, k, r]))
        self.unit = unit
        self.capacity = [[int(filling.capacities[k, r] * unit[k][r]) for r in range(n_resources)] for k in range(rows)]
        self.demand = [
            [[int(filling.demands[n, k, r] * unit[k][r]) for r in range(n_resources)] for k in range(self.columns)]
            for n in range(self.n_users)
        ]
        self.free = [list(self.capacity[k]) for k in self.row]
        self.eligible: list[list[bool]] = filling.eligibility.tolist()
        self.wanted: list[int] = filling.tasks.tolist()
        self.total = [0] * self.n_users
        self.tasks = np.zeros((self.n_users, rows), np.int64)
        table = filling.criterion.per_task
        self.worth = [list(row) for row in (table[:, None] if table.ndim == 1 else table)]
        self.measure = filling.criterion.measure
        self.first = [0] * self.n_users
        self.begun = self.start[:-1].copy()
        average = [sum((int(c) * filling.capacities[k, r] for k, c in enumerate(filling.counts)), Fraction(0)) for r in range(n_resources)]
        number = len(self.row)
        self.scale = [[number / (average[r] * unit[k][r]) if average[r] else Fraction(0) for r in range(n_resources)] for k in range(rows)]
        self.rows_by_worth = [self._by_worth(n) for n in range(self.n_users)] if self.measure is Measure.SERVER else []
        self.placed: list[tuple[int, int]] = []

    def _by_worth(self, n: int) -> list[int]:
        rows = [k for k in range(len(self.start) - 1) if self.eligible[n][k]]
        return sorted(rows, key=lambda k: self.worth[n][k if len(self.worth[n]) > 1 else 0])

    # Where a task fits ---------------------------------------------------------------------------------------------------------

    def demand_on(self, n: int, i: int) -> list[int]:
        """Return the demand of a task in the units of the server's row."""
        return self.demand[n][self.row[i] if self.columns > 1 else 0]

    def fits(self, n: int, i: int) -> bool:
        """Is there room on the server? Whether the user is eligible is another question."""
        return all(d <= f for d, f in zip(self.demand_on(n, i), self.free[i], strict=True))

    def first_fit(self, n: int) -> int:
        """Return the first server that a task of n fits on, -1 if there is none."""
        i, eligible = self.first[n], self.eligible[n]
        while i < len(self.row):
            if not eligible[self.row[i]]:
                i = self.start[self.row[i] + 1]
            elif self.fits(n, i):
                break
            else:
                i += 1
        self.first[n] = i
        return i if i < len(self.row) else -1

    def fitting(self, n: int) -> list[int]:
        """Return all servers that a task of n fits on, ascending."""
        return [i for i in range(max(self.first_fit(n), 0), len(self.row)) if self.eligible[n][self.row[i]] and self.fits(n, i)]

    def different(self, n: int) -> Iterator[int]:
        """Yield the servers that a task of n fits on; of the empty ones of a row only the first."""
        for k, ok in enumerate(self.eligible[n]):
            if ok:
                for i in range(self.start[k], min(self.begun[k] + 1, self.start[k + 1])):
                    if self.fits(n, i):
                        yield i

    # Shares --------------------------------------------------------------------------------------------------------------------

    def own_share(self, n: int) -> Fraction:
        """Return the share of a user where it is one for all servers."""
        if len(self.worth[n]) == 1:
            return self.total[n] * self.worth[n][0] if self.total[n] else Fraction(0)
        return sum((int(self.tasks[n, k]) * self.worth[n][k] for k in np.flatnonzero(self.tasks[n])), Fraction(0))

    def share_at(self, n: int, i: int) -> Fraction:
        """Return the share of a user in the eyes of a server that its next task fits on."""
        if self.measure is Measure.OWN:
            return self.own_share(n)
        if self.total[n] == 0:
            return Fraction(0)
        worth: Fraction = self.worth[n][self.row[i] if len(self.worth[n]) > 1 else 0]
        return self.total[n] * worth / (self.room(n, i) if self.measure is Measure.RESIDUAL else 1)

    def room(self, n: int, i: int) -> Fraction:
        """Return how many tasks of n would fit on what is left of the server."""
        return min(Fraction(f, d) for d, f in zip(self.demand_on(n, i), self.free[i], strict=True) if d)

    def closest(self, n: int) -> int:
        """Return the server, of those that a task of n fits on, where the user's share is the smallest; -1 if there is none."""
        if self.measure is Measure.OWN or self.total[n] == 0:
            return self.first_fit(n)
        if self.measure is Measure.RESIDUAL:
            return self._best(n, lambda i: -self.room(n, i))
        rows = self.rows_by_worth[n]
        while rows:
            k = rows[0]
            for i in range(self.start[k], self.start[k + 1]):
                if self.fits(n, i):
                    return i
            rows.pop(0)
        return -1

    # Servers -------------------------------------------------------------------------------------------------------------------

    def choose(self, n: int, rng: np.random.Generator) -> int:
        """Return the server of the next task of n by the rule of the placement; -1 if none fits."""
        if self.rule == Rule.FIRST:
            return self.first_fit(n)
        if self.rule == Rule.RANDOM:
            found = self.fitting(n)
            return found[draw(rng, len(found))] if found else -1
        if self.rule == Rule.SMALLEST_SHARE:
            return self.closest(n)
        return self._best(n, self._score(n))

    def _best(self, n: int, score: Callable[[int], Fraction]) -> int:
        return min(((score(i), i) for i in self.different(n)), default=(Fraction(0), -1))[1]

    def _score(self, n: int) -> Callable[[int], Fraction]:
        """Return the score of a server for a task of n; the smallest is the best."""
        zero = Fraction(0)

        def l_norm(i: int, square: bool) -> Fraction:
            scale, d, f = self.scale[self.row[i]], self.demand_on(n, i), self.free[i]
            p = next(r for r in range(len(d)) if d[r])
            apart = (scale[r] * (Fraction(d[r], d[p]) - Fraction(f[r], f[p])) / scale[p] for r in range(len(d)) if scale[r])
            return sum((each * each if square else abs(each) for each in apart), zero)

        def cosine(i: int) -> Fraction:
            scale, d, f = self.scale[self.row[i]], self.demand_on(n, i), self.free[i]
            dot = sum((s * s * a * b for s, a, b in zip(scale, d, f, strict=True)), zero)
            room = sum(((s * b) ** 2 for s, b in zip(scale, f, strict=True)), zero)
            length = sum(((s * a) ** 2 for s, a in zip(scale, d, strict=True)), zero)
            return -dot * dot / (room * length) if room else zero

        def dot(i: int) -> Fraction:
            c, d, f = self.capacity[self.row[i]], self.demand_on(n, i), self.free[i]
            return -sum((Fraction(a * b, whole * whole) for whole, a, b in zip(c, d, f, strict=True) if whole), zero)

        def free(i: int, sign: int) -> Fraction:
            return sign * sum((s * f for s, f in zip(self.scale[self.row[i]], self.free[i], strict=True)), zero)

        return {
            Rule.L1: lambda i: l_norm(i, False),
            Rule.L2: lambda i: l_norm(i, True),
            Rule.COSINE: cosine,
            Rule.DOT: dot,
            Rule.TIGHTEST: lambda i: free(i, 1),
            Rule.LOOSEST: lambda i: free(i, -1),
        }[Rule(self.rule)]

    def place(self, n: int, i: int) -> None:
        """Place one task."""
        row = self.row[i]
        self.free[i] = [f - d for d, f in zip(self.demand_on(n, i), self.free[i], strict=True)]
        self.begun[row] = max(self.begun[row], i + 1)
        self.total[n] += 1
        self.tasks[n, row] += 1
        self.wanted[n] -= 1
        self.placed.append((n, i))

    def filled(self, blocked_by: int | None = None) -> Filled:
        """Return the result."""
        users, servers = (np.array([pair[side] for pair in self.placed], np.int64) for side in (0, 1))
        return Filled(self.tasks, users, servers, blocked_by)


def draw(rng: np.random.Generator, number: int) -> int:
    """Return one of 0, ..., number - 1; nothing is drawn where there is no choice."""
    return min(int(rng.random() * number), number - 1) if number > 1 else 0


def _denominators(values: IntArray | FloatArray) -> list[int]:
    return [Fraction(value).denominator for value in values]


def fill_in_fractions(filling: Filling, placement: Placement | Chooser, *, random_ties: bool, seed: int, first_block: bool) -> Filled:
    """Place tasks until no more fit, as `fairopt.solvers.filling.progressive_filling.fill` does.

    Parameters
    ----------
    filling : Filling
        Without queues and tasks that already run. Its capacities, demands and shares are Fractions; demands may be 0 for pairs that are not
        eligible.
    placement : Placement or function
        A function gets floats, as from the compiled engine.
    random_ties, seed, first_block : as there
    """
    state = Servers(filling, int(placement.rule) if isinstance(placement, Placement) else int(Rule.FIRST))
    rng = np.random.default_rng(seed)
    if isinstance(placement, Placement) and placement.server_first:
        return _by_server(state, filling, random_ties, rng)
    turns = _Turns(state, filling.order.tolist(), random_ties, first_block)
    while True:
        n = turns.next_user(rng)
        if n < 0:
            return state.filled()
        i = state.choose(n, rng) if isinstance(placement, Placement) else chosen_by(placement, state, n, state.fitting(n))
        if i < 0:
            return state.filled(blocked_by=n)
        state.place(n, i)
        turns.placed(n)


def chosen_by(choose: Chooser, state: Servers, n: int, fits: list[int]) -> int:
    """Return the server that a function chooses, which sees floats in the units of the instance; -1 if none fits."""
    if not fits:
        return -1
    unit = state.unit
    free = np.array([[f / u for f, u in zip(row, unit[k], strict=True)] for k, row in zip(state.row, state.free, strict=True)])
    demands = state.filling.demands[n].astype(float)
    demand = demands[0] if state.columns == 1 else demands[state.row]
    return chosen_server(choose, n, free, demand, np.array(fits))


class _Turns:
    """Whose turn it is: a heap of lower bounds of shares, of which the smallest is computed anew."""

    def __init__(self, state: Servers, order: list[int], random_ties: bool, first_block: bool) -> None:
        self.state, self.random_ties, self.first_block = state, random_ties, first_block
        self.rank = {n: k for k, n in enumerate(order)}
        self.heap = [(Fraction(0), self.rank[n], n) for n in order if state.wanted[n] > 0]
        heapq.heapify(self.heap)
        self.waiting: list[tuple[Fraction, int, int]] = []

    def next_user(self, rng: np.random.Generator) -> int:
        """Return the user with the smallest share whose task fits (of the first block: whether it fits or not); -1 if there is none."""
        tied: list[tuple[Fraction, int, int]] = []
        while self.heap and (not tied or (self.random_ties and self.heap[0][0] <= tied[0][0])):
            bound, rank, n = heapq.heappop(self.heap)
            share = self._share(n)
            if share is None:
                continue
            if share > bound:
                heapq.heappush(self.heap, (share, rank, n))
            else:
                tied.append((share, rank, n))
        if not tied:
            return -1
        chosen = tied.pop(draw(rng, len(tied)))
        for entry in tied:
            heapq.heappush(self.heap, entry)
        self.turn = chosen
        return chosen[2]

    def _share(self, n: int) -> Fraction | None:
        if self.first_block:
            return self.state.own_share(n)
        i = self.state.closest(n)
        return None if i < 0 else self.state.share_at(n, i)

    def placed(self, n: int) -> None:
        """The user whose turn it was has one task more."""
        if self.state.wanted[n] > 0:
            heapq.heappush(self.heap, (self.turn[0], self.rank[n], n))


def _by_server(state: Servers, filling: Filling, random_ties: bool, rng: np.random.Generator) -> Filled:
    order = filling.order.tolist()
    for i, closed in rounds(len(state.row), state.rule == Rule.RANDOM, rng):
        able = [n for n in order if state.wanted[n] > 0 and state.eligible[n][state.row[i]] and state.fits(n, i)]
        if not able:
            closed()
            continue
        shares = [state.share_at(n, i) for n in able]
        smallest = min(shares)
        tied = [n for n, share in zip(able, shares, strict=True) if share == smallest]
        state.place(tied[draw(rng, len(tied)) if random_ties else 0], i)
    return state.filled()


def rounds(number: int, single: bool, rng: np.random.Generator) -> Iterator[tuple[int, Callable[[], None]]]:
    """Yield servers in rounds of a random order (``single``: one random server each time), each with the function that closes it."""
    open_ = list(range(number))
    while open_:
        for k in range(len(open_) - 1, 0, -1):
            other = draw(rng, k + 1)
            open_[k], open_[other] = open_[other], open_[k]
            if single:
                break
        gone: set[int] = set()
        for i in open_[-1:] if single else list(open_):
            yield i, partial(gone.add, i)
        open_ = [i for i in open_ if i not in gone]
