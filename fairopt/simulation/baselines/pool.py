"""The free amounts of every server, the limits of queues, and first-fit placement of several tasks at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.keeping import Keeping
from fairopt.instance.tolerances import FITS
from fairopt.program.kept_parts import KeptParts
from fairopt.program.queue_limits import limit_rows
from fairopt.simulation.keeping import State
from fairopt.simulation.streams import Streams

__all__ = ["Place", "Pool", "first"]

_FEW = 4  # servers that are changed one by one


class Place(NamedTuple):
    """Servers, the number of tasks on each, and of all of them."""

    servers: IntArray
    tasks: IntArray
    total: int


class Pool:
    """Servers, one by one, and the limits of queues.

    Attributes
    ----------
    room : array (servers, resources)
        What is free, and a rounding error more: a task fits if its demand is not larger.
    closed : bool array (servers,)
        Removed or not yet there.
    total_free : array (resources,)
        The free amounts of all servers that are not closed: a bound on what fits.
    most_ever : int array (streams,)
        How many tasks of each stream fit on the empty cluster with all servers that ever exist.
    """

    def __init__(self, streams: Streams) -> None:
        instance = streams.instance
        self.demands = instance.demands
        self.row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(np.int64))
        self._rows, self._counts = instance.capacities, instance.counts
        self._capacity = instance.capacities[self.row]
        self.room = np.asfortranarray(self._capacity * (1 + FITS))
        self._columns = list(self.room.T)
        self.slack = FITS * self._capacity.sum(axis=0)
        first = np.concatenate([[0], np.cumsum(instance.counts)])[self.row].astype(np.int64)
        self.closed = np.arange(self.row.size) - first >= streams.cluster.counts[self.row]
        self._allowed = instance.eligibility
        self._tell_total()
        self._used = [np.flatnonzero(demand > 0) for demand in self.demands]
        self._takes = [[(r, float(demand[r])) for r in used.tolist()] for demand, used in zip(self.demands, self._used, strict=True)]
        self._everywhere = [bool(allowed.all()) for allowed in self._allowed]
        self._limits(streams)

    def _limits(self, streams: Streams) -> None:
        """Set the limits of queues; behind them those of what queues keep: what the users right below each keeping queue may hold."""
        rows = [] if streams.tree is None else list(limit_rows(streams.tree))
        kept = None if streams.tree is None else KeptParts.of(streams.tree)
        self._keepings: list[tuple[int, Keeping]] = []  # with the first of its limits
        counted = [(row.users, row.servers, row.resource, row.bound) for row in rows]
        for keeping in () if kept is None else kept.keepings:
            self._keepings.append((len(counted), keeping))
            rooms = keeping.rooms([0.0] * (len(keeping.nodes) + 1))
            for k, room in enumerate(rooms):
                users = keeping.nearest == (k if k < len(keeping.nodes) else -1)
                counted.append((users, keeping.servers, keeping.resource, room))
        self._left = np.array([bound for *_, bound in counted], float)
        self._held = np.zeros(len(counted))
        self._most = FITS * self._left
        self._on_rows = [servers for _, servers, _, _ in counted]
        self._on = [servers[self.row] for servers in self._on_rows]
        amount = np.array([users[streams.owner] * self.demands[:, r] for users, _, r, _ in counted], float)
        self._amount = amount.reshape(len(counted), self.demands.shape[0])
        self._rows_of = [np.flatnonzero(column > 0) for column in self._amount.T]
        self.most_ever = np.array([self.most(stream) for stream in range(self.demands.shape[0])], np.int64)
        self._tell_keepings()

    def _tell_keepings(self) -> None:
        """Scale what queues keep to the servers that are not closed."""
        if self._keepings:
            there = np.bincount(self.row[~self.closed], minlength=self._counts.size)[:, None] * self._rows
            self._keepings = [
                (first, keeping.with_capacity(float(there[keeping.servers, keeping.resource].sum()))) for first, keeping in self._keepings
            ]
            self._tell_rooms()

    def _tell_rooms(self) -> None:
        """Set what the users right below each keeping queue may hold more; negative where servers of running tasks were removed."""
        for first, keeping in self._keepings:
            end = first + len(keeping.nodes) + 1
            self._left[first:end] = keeping.rooms(self._held[first:end].tolist())

    def state(self) -> State:
        """Return the state, for `restore`."""
        return {"room": self.room, "closed": self.closed, "total_free": self.total_free, "left": self._left, "held": self._held}

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.room[...], self.closed[...] = state["room"], state["closed"]
        self.total_free, self._left, self._held = state["total_free"], state["left"], state["held"]
        self._some_closed = bool(self.closed.any())
        self._tell_keepings()

    def fitting(self, stream: int, room: FloatArray | None = None) -> IntArray:
        """Return how many tasks of a stream fit on each server, (servers,), by default into what is free; limits are not looked at."""
        room, demand, used = self.room if room is None else room, self.demands[stream], self._used[stream]
        most = room[:, used[0]] / demand[used[0]]
        for r in used[1:]:
            np.minimum(most, room[:, r] / demand[r], out=most)
        number = most.astype(np.int64)
        if self._some_closed:
            number[self.closed] = 0
        if not self._everywhere[stream]:
            number[~self._allowed[stream, self.row]] = 0
        return np.asarray(np.maximum(number, 0))

    def within_limits(self, stream: int, number: IntArray) -> IntArray:
        """Return how many of these tasks, (servers,), the limits of queues allow, on the first servers."""
        return self._limited(stream, number, self._on) if self._rows_of[stream].size else number

    def _limited(self, stream: int, number: IntArray, on: list[BoolArray]) -> IntArray:
        rows = self._rows_of[stream].tolist()
        most = {k: int((self._left[k] + self._most[k]) / self._amount[k, stream]) for k in rows}
        on_some = [k for k in rows if not on[k].all()]
        if len(on_some) > 1:  # groups of servers may overlap: server by server
            number = number.copy()
            for i in np.flatnonzero(number).tolist():
                counted = [k for k in rows if on[k][i]]
                number[i] = max(min([int(number[i]), *(most[k] for k in counted)]), 0)
                for k in counted:
                    most[k] -= int(number[i])
            return number
        for k in sorted(rows, key=lambda k: k not in on_some):  # a limit of all servers counts what the other one leaves
            counts = np.where(on[k], number, 0)
            before = np.cumsum(counts) - counts
            number = np.where(on[k], np.clip(most[k] - before, 0, counts), number)
        return number

    def is_limited(self, stream: int) -> bool:
        """Do limits of queues count this stream?"""
        return bool(self._rows_of[stream].size)

    def take(self, stream: int, place: Place) -> None:
        """Let tasks start there."""
        self._change(stream, place, -1.0)

    def give_back(self, stream: int, place: Place) -> None:
        """Let tasks end there."""
        self._change(stream, place, 1.0)

    def _change(self, stream: int, place: Place, sign: float) -> None:
        open_tasks = place.total if not self._some_closed else int(place.tasks[~self.closed[place.servers]].sum())
        few = list(zip(place.servers.tolist(), place.tasks.tolist(), strict=True)) if place.servers.size <= _FEW else None
        for r, demand in self._takes[stream]:
            amount, column = sign * demand, self._columns[r]
            if few is None:
                column[place.servers] += place.tasks * amount
            else:
                for server, tasks in few:
                    column[server] += tasks * amount
            self.total_free[r] += open_tasks * amount
        for k in self._rows_of[stream]:
            amount = sign * self._amount[k, stream] * int(place.tasks[self._on[k][place.servers]].sum())
            self._left[k] += amount
            self._held[k] -= amount
        self._tell_rooms()

    def change_servers(self, row: int, number: int, add: bool) -> None:
        """Open the first closed servers of a row, or close the last open ones."""
        own = np.flatnonzero((self.row == row) & (self.closed == add))
        self.closed[own[:number] if add else own[own.size - number :]] = not add
        self._tell_total()
        self._tell_keepings()

    def _tell_total(self) -> None:
        self._some_closed = bool(self.closed.any())
        self.total_free = self.open_total(self.room - FITS * self._capacity)

    def open_total(self, amounts: FloatArray) -> FloatArray:
        """Return the sum of amounts, (servers, resources), over the servers that are not closed."""
        return np.asarray((amounts[~self.closed] if self._some_closed else amounts).sum(axis=0))

    def released(self, room: FloatArray, streams: list[int], places: list[Place]) -> None:
        """Add what tasks of these streams hold at these places to room."""
        servers = np.concatenate([place.servers for place in places])
        tasks = np.concatenate([place.tasks for place in places])
        each = np.repeat(self.demands[streams], [place.servers.size for place in places], axis=0)
        for r in range(room.shape[1]):
            room[:, r] += np.bincount(servers, weights=tasks * each[:, r], minlength=room.shape[0])

    @property
    def open_capacity(self) -> FloatArray:
        """The capacity of the servers that are not closed, (resources,)."""
        return np.asarray(self._capacity[~self.closed].sum(axis=0))

    def free_amount(self, resource: int) -> float:
        """Return the free amount of a resource, over all servers that are not closed."""
        amount = float(self.total_free[resource])
        return amount if amount > self.slack[resource] else 0.0  # less is rounding

    def most(self, stream: int) -> int:
        """Return how many tasks of a stream fit on the empty cluster with all servers that ever exist, as far as limits allow more now."""
        used = self._used[stream]
        on_one = np.floor((self._rows * (1 + FITS))[:, used] / self.demands[stream, used]).min(axis=1)
        number = np.where(self._allowed[stream], on_one * self._counts, 0.0)
        return int(self._limited(stream, number.astype(np.int64), self._on_rows).sum())


def first(number: IntArray, tasks: int) -> Place:
    """Return the first servers that hold so many tasks, of which ``number`` (servers,) fit on each; fewer where fewer fit."""
    sums = number.cumsum()
    total = int(sums[-1])
    if total <= tasks:
        there = number.nonzero()[0]
        return Place(there, number[there], total)
    last = int(sums.searchsorted(tasks))
    there = number[: last + 1].nonzero()[0]
    counts = number[there]
    counts[-1] -= int(sums[last]) - tasks
    return Place(there, counts, tasks)
