"""What a greedy schedule gives within a box at least: progressive filling by all orders that some instance of the box may take.

Progressive filling gives the next task to the user with the smallest share whose task fits somewhere. In a box, shares and what is free lie
between two ends each. So three questions have up to two answers: whose share is smaller, does a task fit, and (but for "first-fit") which
server is chosen. Every answer that the ends allow is followed. A state is how many tasks of each user are on each server, and who is done;
states that are reached twice are followed once.

All instances of the box end in one of the states that are found, whatever breaks ties between shares that are equal. So a user has at least
the fewest tasks of all ends. As the box shrinks, only ties are left open: the bound is that of the worst instance beside the tie.

The number of states grows fast. If there are more than `MOST_STATES` in a part, nothing is known of it, until it is cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.safe_programs import down
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.models import Notion

__all__ = ["MOST_STATES", "PLACEMENTS", "Filling"]

MOST_STATES = 2_000
PLACEMENTS = ("first-fit", "best-fit", "worst-fit", "fastest", "random")
"""Placements that choose the user by its share, and then a server where the task fits."""

State = tuple[tuple[int, ...], int]  # tasks of each user on each single server, and the users who are done, as bits


@dataclass(slots=True, eq=False)
class Filling:
    """Progressive filling by the shares of a notion.

    Attributes
    ----------
    notion : Notion
        The criterion, of `fairopt.analysis.bounds.enclosures.SHARES`.
    first : bool
        Does a task go to the first server that it fits on? Else to any.
    """

    notion: Notion
    first: bool
    _last: tuple[Ranges, IntArray | None] | None = field(default=None, repr=False)  # ends of the last part: several users ask in turn

    @property
    def scale_free(self) -> bool:
        """Say no: how many whole tasks fit is a matter of scale."""
        return False

    def reads(self, box: Box, user: int) -> BoolArray:
        """Return everybody."""
        return np.ones(box.instance.n_users, bool)

    def share(self, box: Box, ranges: Ranges, found: Enclosure, user: int) -> float:
        """Return the weighted share of the fewest tasks."""
        ends = self._ends(box, ranges)
        return 0.0 if ends is None else float(down(ends[:, user].min() * found.share_low[user] / ranges.high["weights"][user]))

    def total(self, box: Box, ranges: Ranges) -> float:
        """Return the fewest tasks of all users together."""
        ends = self._ends(box, ranges)
        return 0.0 if ends is None else float(ends.sum(axis=1).min())

    def _ends(self, box: Box, ranges: Ranges) -> IntArray | None:
        """Return the tasks of each user in every state in which filling may end, (ends, users); None if there are too many states."""
        if self._last is None or self._last[0] is not ranges:
            self._last = ranges, _Followed(box, ranges, self.notion, self.first).ends()
        return self._last[1]


class _Followed:
    """All orders of filling within some ranges."""

    def __init__(self, box: Box, ranges: Ranges, notion: Notion, first: bool) -> None:
        own, counts = Enclosure.of(box, ranges, notion), box.instance.counts
        rows = np.repeat(np.arange(box.instance.n_servers), counts.astype(int))
        self._least: FloatArray = own.share_low / ranges.high["weights"]
        self._most: FloatArray = own.share_high / ranges.low["weights"]
        self._demands = ranges.low["demands"], ranges.high["demands"]
        self._capacities = tuple((side["capacities"] / counts[:, None])[rows] for side in (ranges.low, ranges.high))
        self._tasks = np.floor(ranges.low["tasks"]), np.floor(ranges.high["tasks"])
        self._some = box.eligible[1][:, rows]
        self._first, self._users, self._servers = first, box.instance.n_users, rows.size

    def ends(self) -> IntArray | None:
        """Return the tasks of each user at every end."""
        start: State = ((0,) * (self._users * self._servers), 0)
        seen, waiting = {start}, [start]
        found: set[tuple[int, ...]] = set()
        everybody = (1 << self._users) - 1
        while waiting:
            state = waiting.pop()
            if state[1] == everybody:
                found.add(tuple(np.reshape(state[0], (self._users, self._servers)).sum(axis=1).tolist()))
                continue
            for after in self._after(state):
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
            if len(seen) > MOST_STATES:
                return None
        return np.array(sorted(found))

    def _after(self, state: State) -> list[State]:
        """Return the states that may come next."""
        placed = np.reshape(state[0], (self._users, self._servers))
        held = placed.sum(axis=1)
        after: list[State] = []
        for user in self._next(held, state[1]):
            done = state[0], state[1] | 1 << user
            if held[user] + 1 > self._tasks[1][user]:
                after.append(done)
                continue
            if held[user] + 1 > self._tasks[0][user]:
                after.append(done)
            surely = False
            for server in np.flatnonzero(self._some[user]).tolist():
                may, must = self._fits(placed[:, server], user, server)
                if may:
                    with_task = list(state[0])
                    with_task[user * self._servers + server] += 1
                    after.append((tuple(with_task), state[1]))
                surely |= must
                if must and self._first:
                    break
            if not surely:
                after.append(done)
        return after

    def _next(self, held: IntArray, done: int) -> list[int]:
        """Return the users who may have the smallest share of those who are not done."""
        active = [user for user in range(self._users) if not done >> user & 1]
        smallest = min(held[user] * self._most[user] for user in active)
        return [user for user in active if held[user] * self._least[user] <= smallest * (1 + FITS)]

    def _fits(self, placed: IntArray, user: int, server: int) -> tuple[bool, bool]:
        """Say whether a task may fit, and whether it must."""
        low, high = (placed @ demands + demands[user] for demands in self._demands)
        small, large = (capacities[server] for capacities in self._capacities)
        return bool((low <= large * (1 + 2 * FITS)).all()), bool((high <= small * (1 - FITS)).all())
