"""Limits across servers while jobs run: those of queues, what queues keep, and named limits.

A limit of each server is looked at server by server; every other limit is a row, of which so much is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.by_server import Kinds
from fairopt.instance.keeping import Keeping
from fairopt.instance.selections import Selection
from fairopt.instance.tolerances import FITS
from fairopt.program.kept_parts import KeptParts
from fairopt.program.queue_limits import Row, limit_rows
from fairopt.simulation.keeping import State
from fairopt.simulation.streams import Streams

__all__ = ["Bounds"]

Also: TypeAlias = Callable[[int, int], int]
"""Takes the room of so many tasks on a server, or on a row, or of fewer; returns of how many."""


class Bounds:
    """What limits leave. ``row`` is the row of each single server, (servers,)."""

    def __init__(self, streams: Streams, row: IntArray) -> None:
        self._row, self._rows, self._counts = row, streams.instance.capacities, streams.instance.counts
        self._owner, self._kinds = streams.owner, streams.instance.kinds
        owners = streams.owners
        rows = [] if owners is None else [row for row in limit_rows(owners) if not _is_of_each_server(row.selection)]
        kept = None if owners is None else KeptParts.of(owners)
        self._keepings: list[tuple[int, Keeping]] = []  # with the first of its limits
        users, self._on_rows, bounds = [row.users for row in rows], [row.servers for row in rows], [float(row.bound) for row in rows]
        resources = [row.resource for row in rows]
        for keeping in () if kept is None else kept.keepings:
            self._keepings.append((len(bounds), keeping))
            for k, room in enumerate(keeping.rooms([0.0] * (len(keeping.nodes) + 1))):
                users.append(keeping.nearest == (k if k < len(keeping.nodes) else -1))
                self._on_rows.append(keeping.servers)
                resources.append(keeping.resource)
                bounds.append(float(room))
        self._left, self._held = np.array(bounds, float), np.zeros(len(bounds))
        self._most = FITS * self._left
        self._on = [servers[row] for servers in self._on_rows]
        self._by_server: dict[int, FloatArray] = {}  # of limits whose amounts differ between servers: (streams, rows)
        amount = np.zeros((len(bounds), self._owner.size))
        for k, (mine, resource) in enumerate(zip(users, resources, strict=True)):
            each = self._counted(mine, resource) if resource >= 0 else _amounts(rows[k], self._owner)
            if each.ndim == 2:
                self._by_server[k], each = each, each.max(axis=1, initial=0.0)
            amount[k] = each
        self._amount = amount
        self._rows_of = [np.flatnonzero(column > 0) for column in amount.T]
        self._of_each = [] if owners is None else [_OfEachServer(self, each) for each in owners.selections if _is_of_each_server(each)]

    def _counted(self, users: BoolArray, resource: int) -> FloatArray:
        """Return what a task of a stream of these users takes of a resource, (streams,); (streams, rows) where that differs by server."""
        each, mine = self._kinds.per_task(resource), users[self._owner]
        return np.asarray((mine if each.ndim == 1 else mine[:, None]) * each)

    def tell_keepings(self, closed: BoolArray) -> None:
        """Scale what queues keep to the servers that are not closed."""
        if self._keepings:
            there = np.bincount(self._row[~closed], minlength=self._counts.size)[:, None] * self._rows
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
        return {"left": self._left, "held": self._held} | {f"each{k}": each.left for k, each in enumerate(self._of_each)}

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self._left, self._held = state["left"], state["held"]
        for k, each in enumerate(self._of_each):
            each.left = state[f"each{k}"]

    def counts(self, stream: int) -> bool:
        """Does any limit count this stream?"""
        return bool(self._rows_of[stream].size) or any(each.amount[stream].any() for each in self._of_each)

    def within(self, stream: int, number: IntArray, also: Also | None = None) -> IntArray:
        """Return how many of these tasks, (servers,), the limits allow, on the first servers; ``also`` says what else they must allow."""
        for each in self._of_each:
            number = np.minimum(number, each.most(stream))
        return self._limited(stream, number, self._row, also) if self._rows_of[stream].size or also is not None else number

    def most(self, stream: int, number: IntArray, also: Also | None = None) -> int:
        """Return how many tasks limits allow, of ``number`` (rows,) that fit on all servers of each row."""
        for each in self._of_each:
            number = np.minimum(number, each.on_empty_rows(stream))
        return int(self._limited(stream, number, np.arange(number.size), also).sum())

    def _limited(self, stream: int, number: IntArray, row: IntArray, also: Also | None) -> IntArray:
        rows = self._rows_of[stream].tolist()
        on = self._on if row is self._row else self._on_rows
        most = {k: int((self._left[k] + self._most[k]) / self._amount[k, stream]) for k in rows}
        on_some = [k for k in rows if not on[k].all()]
        differ = [k for k in rows if k in self._by_server]
        if differ or len(on_some) > 1 or also is not None:  # groups of servers may overlap: server by server
            number = number.copy()
            left = {k: float(self._left[k] + self._most[k]) for k in differ}
            for i in np.flatnonzero(number).tolist():
                counted = [k for k in rows if on[k][i] and k not in left]
                own = [(k, a) for k in differ if on[k][i] and (a := float(self._by_server[k][stream, row[i]])) > 0]
                number[i] = max(min([int(number[i]), *(most[k] for k in counted), *(int(left[k] / a) for k, a in own)]), 0)
                number[i] = number[i] if also is None else also(i, int(number[i]))
                for k in counted:
                    most[k] -= int(number[i])
                for k, a in own:
                    left[k] -= int(number[i]) * a
            return number
        for k in sorted(rows, key=lambda k: k not in on_some):  # a limit of all servers counts what the other one leaves
            counts = np.where(on[k], number, 0)
            before = np.cumsum(counts) - counts
            number = np.where(on[k], np.clip(most[k] - before, 0, counts), number)
        return number

    def change(self, stream: int, servers: IntArray, tasks: IntArray, sign: float) -> None:
        """Let tasks start (-1) or end (1) there."""
        for k in self._rows_of[stream].tolist():
            counted = tasks * self._on[k][servers]
            if k in self._by_server:
                amount = sign * float(self._by_server[k][stream, self._row[servers]] @ counted)
            else:
                amount = sign * self._amount[k, stream] * int(counted.sum())
            self._left[k] += amount
            self._held[k] -= amount
        for each in self._of_each:
            each.left[servers] += sign * tasks * each.amount[stream, self._row[servers]]
        self._tell_rooms()


class _OfEachServer:
    """A limit of each server: what is left on each of them, and what a task counts there, (streams, rows)."""

    def __init__(self, bounds: Bounds, selection: Selection) -> None:
        if selection.resource >= 0:
            each = bounds._counted(selection.users, selection.resource)
        else:
            each = np.asarray(selection.per_task(_no_demands(selection)), np.float64)[bounds._owner]
        each = each if each.ndim == 2 else np.repeat(each[:, None], selection.servers.size, axis=1)
        self.amount = np.where(selection.servers, each, 0.0)
        self.bound, self._counts = float(selection.limit.bound), bounds._counts
        self.left = np.full(bounds._row.size, self.bound)
        self._row = bounds._row

    def most(self, stream: int) -> IntArray:
        """Return how many tasks it allows on each server, (servers,)."""
        return self._number(self.left + FITS * self.bound, self.amount[stream, self._row])

    def on_empty_rows(self, stream: int) -> IntArray:
        """Return how many tasks it allows on all servers of each row, (rows,)."""
        each = self._number(np.full(self._counts.size, self.bound * (1 + FITS)), self.amount[stream])
        return np.asarray(np.minimum(each, _MANY) * self._counts.astype(np.int64))

    def _number(self, left: FloatArray, amount: FloatArray) -> IntArray:
        most = np.divide(np.maximum(left, 0.0), amount, out=np.full(left.size, float(_MANY)), where=amount > 0)
        return np.asarray(np.minimum(most, _MANY).astype(np.int64))


_MANY = 2**31  # tasks on a server: no limit


def _is_of_each_server(selection: Selection | None) -> bool:
    return selection is not None and selection.limit.each == "server"


def _amounts(row: Row, owner: IntArray) -> FloatArray:
    """Return what a task of each stream counts in a row of a named limit that is about no resource: (streams,) or (streams, rows)."""
    selection = row.selection
    assert selection is not None
    if selection.amounts is None:
        return np.asarray(row.users[owner], float)
    return np.asarray(row.per_task(_no_demands(selection))[owner], np.float64)


def _no_demands(selection: Selection) -> Kinds:
    """Return demands of nothing, for a limit that counts no demand."""
    return Kinds(np.zeros((selection.users.size, 1, 1)), np.zeros(selection.servers.size, np.int64))
