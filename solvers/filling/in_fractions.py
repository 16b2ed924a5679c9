"""Progressive filling in fractions: the same steps as `fairopt.solvers.filling.progressive_filling`, in which a tie is a tie.

Whether a task fits, whose share is the smallest, and which server has the best score are decided without rounding and without tolerances.
Scores are rational for all metrics: l2 is compared by its square, and so is the cosine.

Random numbers are drawn exactly where the compiled engine draws them, so that both give the same schedule from the same seed wherever
rounding does not matter.

This is one loop in plain Python, as on paper, for small instances: for every task it looks at every user again. `seconds_expected` says how
long it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

import numpy as np

from fairopt.program.filling import Filling, Measure, Rule
from fairopt.solvers.filling.placements import Chooser, Placement
from fairopt.solvers.filling.progressive_filling import Filled, chosen_server
from fairopt.solvers.filling.servers_in_fractions import Servers
from fairopt.solvers.filling.settings import SETTINGS
from fairopt.solvers.filling.tree_in_fractions import Tree

__all__ = ["draw", "fill_in_fractions", "rounds", "seconds_expected"]


def seconds_expected(filling: Filling, placement: Placement | Chooser) -> float:
    """Return about how many seconds the filling takes."""
    most = np.full(filling.eligibility.shape, np.inf)
    for r in range(filling.capacities.shape[1]):
        wanted, room = filling.demands[:, :, r].astype(float), filling.capacities[:, r].astype(float)
        most = np.minimum(most, np.where(wanted > 0, room / np.where(wanted > 0, wanted, 1.0), np.inf))
    most = np.where(filling.eligibility & np.isfinite(most), most, 0.0)
    tasks = min(float(filling.capacities.shape[1] * (most.max(axis=0, initial=0.0) @ filling.counts)), float(filling.tasks.sum()))
    users, servers = filling.eligibility.shape[0], float(filling.counts.sum())
    compared = isinstance(placement, Placement) and placement.rule == Rule.FIRST and filling.criterion.measure is Measure.OWN
    scored = isinstance(placement, Placement) and placement.rule >= Rule.L1
    by_server = 0.0 if compared else (SETTINGS.seconds_to_score if scored else SETTINGS.seconds_to_look) * servers
    if filling.criterion.measure is not Measure.OWN:
        by_server *= users
    return float(tasks * (SETTINGS.seconds_to_look * users + by_server))


class Turns(Protocol):
    """Whose turn it is: of all users (`_Users`), or by a walk down a tree of queues (`Tree`)."""

    def next(self, fitting: Callable[[int], Iterable[int]], one_of: Callable[[list[int]], int]) -> tuple[int, list[bool]] | None:
        """Return the user of the next task and the rows of servers that may be chosen for it; None if there is none.

        ``fitting(n)`` are the servers that a task of user n fits on, and ``one_of`` breaks a tie.
        """

    def place(self, n: int, i: int) -> None:
        """Place one task."""


def fill_in_fractions(filling: Filling, placement: Placement | Chooser, *, random_ties: bool, seed: int, first_block: bool) -> Filled:
    """Place tasks until no more fit, as `fairopt.solvers.filling.progressive_filling.fill` does.

    Parameters
    ----------
    filling : Filling
        Without tasks that already run. Its numbers, and those of its queues, are Fractions; demands may be 0 for pairs that are not
        eligible.
    placement : Placement or function
        A function gets floats, as from the compiled engine.
    random_ties, seed, first_block : as there
    """
    servers, rng = Servers(filling), np.random.default_rng(seed)
    turns: Turns = _Users(servers, filling.order.tolist()) if filling.queues is None else Tree(servers, filling, filling.queues)

    def one_of(tied: list[int]) -> int:
        return tied[draw(rng, len(tied)) if random_ties else 0]

    if isinstance(placement, Placement) and placement.server_first:
        for i, close in rounds(len(servers.row), placement.rule == Rule.RANDOM, rng):
            turn = turns.next(partial(servers.only, i), one_of)
            if turn is None:
                close()
            else:
                turns.place(turn[0], i)
        return servers.filled()
    while turn := turns.next(servers.wanting if first_block else servers.fitting, one_of):
        n, rows = turn
        i = _chosen(servers, placement, n, (i for i in servers.fitting(n) if rows[servers.row[i]]), rng)
        if i < 0:
            return servers.filled(blocked_by=n)
        turns.place(n, i)
    return servers.filled()


class _Users:
    """All users beside each other: the one with the smallest share, in the eyes of any server that its task fits on."""

    def __init__(self, servers: Servers, order: list[int]) -> None:
        self.servers, self.order = servers, order
        self.everywhere = [True] * (max(servers.row, default=-1) + 1)

    def next(self, fitting: Callable[[int], Iterable[int]], one_of: Callable[[list[int]], int]) -> tuple[int, list[bool]] | None:
        shares = {n: share for n in self.order if (share := self.servers.smallest_share(n, fitting(n))) is not None}
        if not shares:
            return None
        smallest = min(shares.values())
        return one_of([n for n, share in shares.items() if share == smallest]), self.everywhere

    def place(self, n: int, i: int) -> None:
        self.servers.place(n, i)


def _chosen(servers: Servers, placement: Placement | Chooser, n: int, fits: Iterator[int], rng: np.random.Generator) -> int:
    """Return the server of the next task of n, of those that it fits on; -1 if there are none."""
    if isinstance(placement, Placement):
        if placement.rule == Rule.FIRST:
            return next(fits, -1)
        if placement.rule == Rule.SMALLEST_SHARE:
            return min(fits, key=partial(servers.share_at, n), default=-1)
        if placement.rule >= Rule.L1:
            return min(fits, key=partial(servers.score, placement.rule, n), default=-1)
    found = list(fits)
    if not found:
        return -1
    if isinstance(placement, Placement):
        return found[draw(rng, len(found))]
    demand = servers.filling.demands[n].astype(float)
    scored = servers.scored
    free = np.array(servers.free).astype(float)[:, :scored]
    own = demand[0] if len(demand) == 1 else demand[servers.row]
    return chosen_server(placement, n, free, own[..., :scored], np.array(found))


def draw(rng: np.random.Generator, number: int) -> int:
    """Return one of 0, ..., number - 1; nothing is drawn where there is no choice."""
    return min(int(rng.random() * number), number - 1) if number > 1 else 0


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
