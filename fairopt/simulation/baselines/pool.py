"""The free amounts of every server and of the cluster, the limits, and first-fit placement of several tasks at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.simulation.baselines.backfill_kernel import SERVER, STREAM, TASKS, Servers
from fairopt.simulation.baselines.bounds import Bounds
from fairopt.simulation.keeping import State, part_of, prefixed
from fairopt.simulation.streams import Streams

__all__ = ["Place", "Pool", "cut", "part"]

_FEW = 4  # servers that are changed one by one


class Place(NamedTuple):
    """Servers, the number of tasks on each, and of all of them."""

    servers: IntArray
    tasks: IntArray
    total: int


class Pool:
    """Servers, one by one, the resources of the cluster, and the limits.

    Attributes
    ----------
    demands : array (streams, resources)
        What a task takes; where that differs from server to server, the least that it takes of each resource where it may run.
    kind : int array (servers,)
        The kind of each server, for `fairopt.Instance.demands_by_kind`.
    room : array (servers, resources of servers)
        What is free, and a rounding error more: a task fits if its demand is not larger.
    shared_room : array (shared,)
        The same of the resources of the cluster.
    closed : bool array (servers,)
        Removed or not yet there.
    total_free : array (resources,)
        The free amounts of all servers that are not closed, and of the cluster: a bound on what fits.
    most_ever : int array (streams,)
        How many tasks of each stream fit on the empty cluster with all servers that ever exist.
    """

    def __init__(self, streams: Streams) -> None:
        instance = streams.instance
        self._by_kind = instance.demands_by_kind
        self._differ = self._by_kind.shape[1] > 1
        self._by_resource = self._by_kind[:, 0].T.copy()
        self.demands = _least(instance)
        self.row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(np.int64))
        self.kind = instance.kind_of[self.row]
        self._rows, self._counts, self._kind_of = instance.capacities, instance.counts, instance.kind_of
        self._capacity = instance.capacities[self.row]
        self.room = np.asfortranarray(self._capacity * (1 + FITS))
        self._columns = list(self.room.T)
        self.shared = instance.shared_capacity
        self.shared_room = self.shared * (1 + FITS)
        self.slack = FITS * np.concatenate([self._capacity.sum(axis=0), self.shared])
        self._many = max(streams.trace.n_tasks, 1)  # no server and no resource holds more tasks
        first = np.concatenate([[0], np.cumsum(instance.counts)])[self.row].astype(np.int64)
        self.closed = np.arange(self.row.size) - first >= streams.cluster.counts[self.row]
        self._allowed = instance.eligibility.copy()
        self._tell_total()
        demanded, m = np.asarray((self._by_kind > 0).any(axis=1)), instance.n_server_resources
        self._used = [np.flatnonzero(each) for each in demanded[:, :m]]
        self._takes = [[(r, float(demand[r])) for r in used.tolist()] for demand, used in zip(self.demands, self._used, strict=True)]
        self._takes_shared = [np.flatnonzero(each) for each in demanded[:, m:]]
        self._everywhere = [bool(allowed.all()) for allowed in self._allowed]
        self.bounds = Bounds(streams, self.row)
        self.most_ever = np.array([self.most(stream) for stream in range(self.demands.shape[0])], np.int64)
        self.bounds.tell_keepings(self.closed)

    @property
    def only_servers_limit(self) -> bool:
        """Does nothing but servers limit tasks, and does each task take the same of every server?"""
        return not (self._differ or self.shared.size or any(map(self.is_limited, range(self.demands.shape[0]))))

    @property
    def of_kernel(self) -> Servers:
        """The servers as `backfill_kernel` reads them, and changes them."""
        return Servers(self.room.T, self.row, self.closed, self._allowed, self._by_resource, self.slack)

    def state(self) -> State:
        """Return the state, for `restore`."""
        own = {"room": self.room, "shared_room": self.shared_room, "closed": self.closed, "total_free": self.total_free}
        return own | prefixed("bounds", self.bounds.state())

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.room[...], self.shared_room[...], self.closed[...] = state["room"], state["shared_room"], state["closed"]
        self.total_free = state["total_free"]
        self.bounds.restore(part_of(state, "bounds"))
        self._some_closed = bool(self.closed.any())
        self.bounds.tell_keepings(self.closed)

    def fitting(self, stream: int, room: FloatArray | None = None) -> IntArray:
        """Return how many tasks of a stream fit on each server, (servers,), by default into what is free.

        Neither limits nor the resources of the cluster are looked at.
        """
        room, demand, used = self.room if room is None else room, self.demands[stream], self._used[stream]
        if self._differ:
            number = _whole(room, self._by_kind[stream, self.kind, : room.shape[1]], self._many)
        elif used.size:
            most = room[:, used[0]] / demand[used[0]]
            for r in used[1:]:
                np.minimum(most, room[:, r] / demand[r], out=most)
            number = most.astype(np.int64)
        else:
            number = np.full(self.row.size, self._many)
        if self._some_closed:
            number[self.closed] = 0
        if not self._everywhere[stream]:
            number[~self._allowed[stream, self.row]] = 0
        return np.asarray(np.maximum(number, 0))

    def of_cluster(self, stream: int, tasks: int, room: FloatArray | None = None) -> int:
        """Return how many of these tasks the resources of the cluster allow, by default what is free of them."""
        for r in self._takes_shared[stream].tolist():
            left = float((self.shared_room if room is None else room)[r])
            tasks = min(tasks, max(int(left / float(self.demands[stream, self.room.shape[1] + r])), 0))
        return tasks

    def place(
        self,
        stream: int,
        wanted: int,
        room: FloatArray | None = None,
        shared: FloatArray | None = None,
        *,
        limits: bool = True,
        late: BoolArray | None = None,
        beside: FloatArray | None = None,
    ) -> Place:
        """Return the first servers where so many tasks of a stream fit, by default into what is free; fewer tasks where fewer fit.

        ``room`` and ``shared`` are what is free of servers and of the cluster. On servers that are ``late``, (servers,), tasks take of the
        cluster only what is ``beside`` a reservation, too.
        """
        number = self.fitting(stream, room)
        if self._takes_shared[stream].size and (self._differ or late is not None):
            each = self._by_kind[stream, self.kind, self.room.shape[1] :]
            also = _OfCluster(wanted, each, self.shared_room if shared is None else shared, late, beside)
            return _first(self.bounds.within(stream, number, also) if limits else also.within(number), wanted)
        number = self.bounds.within(stream, number) if limits else number
        return _first(number, self.of_cluster(stream, wanted, shared))

    def of_servers(self, stream: int, place: Place) -> FloatArray:
        """Return what tasks of a stream take of each server of a place, (servers, resources of servers)."""
        return np.asarray(place.tasks[:, None] * self._by_kind[stream, self.kind[place.servers], : self.room.shape[1]])

    def of_shared(self, stream: int, place: Place) -> FloatArray:
        """Return what tasks of a stream at a place take of the cluster, (shared,)."""
        m = self.room.shape[1]
        if self._differ:
            return np.asarray(place.tasks @ self._by_kind[stream, self.kind[place.servers], m:])
        return np.asarray(place.total * self.demands[stream, m:])

    def held(self, running: FloatArray) -> FloatArray:
        """Return what running tasks hold, (rows, resources), from the table of them."""
        each = self._by_kind[running[:, STREAM].astype(np.int64), self.kind[running[:, SERVER].astype(np.int64)]]
        return np.asarray(running[:, TASKS, None] * each)

    def is_limited(self, stream: int) -> bool:
        """Do limits count this stream?"""
        return self.bounds.counts(stream)

    def take(self, stream: int, place: Place) -> None:
        """Let tasks start there."""
        self._change(stream, place, -1.0)

    def give_back(self, stream: int, place: Place) -> None:
        """Let tasks end there."""
        self._change(stream, place, 1.0)

    def _change(self, stream: int, place: Place, sign: float) -> None:
        if self._differ:
            m, there = self.room.shape[1], ~self.closed[place.servers]
            of_servers, of_shared = sign * self.of_servers(stream, place), sign * self.of_shared(stream, place)
            self.room[place.servers] += of_servers
            self.shared_room += of_shared
            self.total_free[:m] += of_servers[there].sum(axis=0)
            self.total_free[m:] += of_shared
            self.bounds.change(stream, place.servers, place.tasks, sign)
            return
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
        for r in self._takes_shared[stream].tolist():
            amount = sign * place.total * float(self.demands[stream, self.room.shape[1] + r])
            self.shared_room[r] += amount
            self.total_free[self.room.shape[1] + r] += amount
        self.bounds.change(stream, place.servers, place.tasks, sign)

    def change_servers(self, row: int, number: int, add: bool) -> None:
        """Open the first closed servers of a row, or close the last open ones."""
        own = np.flatnonzero((self.row == row) & (self.closed == add))
        self.closed[own[:number] if add else own[own.size - number :]] = not add
        self._tell_total()
        self.bounds.tell_keepings(self.closed)

    def _tell_total(self) -> None:
        self._some_closed = bool(self.closed.any())
        self.total_free = self.open_total(self.room - FITS * self._capacity, self.shared_room - FITS * self.shared)

    def open_total(self, amounts: FloatArray, shared: FloatArray) -> FloatArray:
        """Return the sum of amounts, (servers, resources), over the servers that are not closed, and the shared ones behind it."""
        of_servers = np.asarray((amounts[~self.closed] if self._some_closed else amounts).sum(axis=0))
        return np.concatenate([of_servers, shared]) if shared.size else of_servers

    def released(self, room: FloatArray, running: FloatArray, held: FloatArray) -> None:
        """Add to room what running tasks hold, (rows, resources), on the servers that the table of them names."""
        servers = running[:, SERVER].astype(np.int64)
        for r in range(room.shape[1]):
            room[:, r] += np.bincount(servers, weights=held[:, r], minlength=room.shape[0])

    @property
    def open_capacity(self) -> FloatArray:
        """The capacity of the servers that are not closed, and of the cluster, (resources,)."""
        return np.concatenate([self._capacity[~self.closed].sum(axis=0), self.shared])

    def free_amount(self, resource: int) -> float:
        """Return the free amount of a resource, over all servers that are not closed."""
        amount = float(self.total_free[resource])
        return amount if amount > self.slack[resource] else 0.0  # less is rounding

    def most(self, stream: int) -> int:
        """Return how many tasks of a stream fit on the empty cluster with all servers that ever exist, as far as limits allow more now."""
        m, shared = self._rows.shape[1], self.shared * (1 + FITS)
        each = self._by_kind[stream, self._kind_of]
        on_one = _whole(self._rows * (1 + FITS), each[:, :m], self._many)
        number = np.where(self._allowed[stream], on_one * self._counts, 0.0).astype(np.int64)
        if self._differ and self._takes_shared[stream].size:
            return self.bounds.most(stream, number, _OfCluster(int(number.sum()), each[:, m:], shared))
        return self.of_cluster(stream, self.bounds.most(stream, number), shared)


def _least(instance: Instance) -> FloatArray:
    """Return the least that a task takes of each resource where it may run, (streams, resources)."""
    if instance.demands_by_kind.shape[1] == 1:
        return np.asarray(instance.demands)
    kinds = np.arange(instance.demands_by_kind.shape[1])
    runs = instance.eligibility @ (instance.kind_of[:, None] == kinds)  # on rows of each kind
    runs[~runs.any(axis=1)] = True
    return np.asarray(instance.demands_by_kind.min(axis=1, where=runs[:, :, None], initial=np.inf))


def _whole(room: FloatArray, demands: FloatArray, most: int) -> IntArray:
    """Return how many tasks of these demands fit into each room, (rooms,); both are (rooms, resources)."""
    each = np.divide(room, demands, out=np.full(room.shape, float(most)), where=demands > 0)
    return np.asarray(each.min(axis=1, initial=most).astype(np.int64))


class _OfCluster:
    """How many tasks the resources of the cluster allow, server by server, until so many are placed.

    ``each`` is what a task takes of them on each server, (servers, shared). On ``late`` servers it takes it of ``beside``, too.
    """

    def __init__(
        self, wanted: int, each: FloatArray, shared: FloatArray, late: BoolArray | None = None, beside: FloatArray | None = None
    ) -> None:
        self._wanted, self._each, self._left, self._late = wanted, each, shared.copy(), late
        self._beside = None if late is None or beside is None else beside.copy()

    def __call__(self, s: int, number: int) -> int:
        """Take what this many tasks, or fewer, take on a server; return how many."""
        late = self._late is not None and bool(self._late[s])
        room = self._left if self._beside is None or not late else np.minimum(self._left, self._beside)
        each = self._each[s]
        takes = each > 0
        number = min(number, self._wanted, max(int((room[takes] / each[takes]).min(initial=self._wanted)), 0))
        self._left -= number * each
        if self._beside is not None and late:
            self._beside -= number * each
        self._wanted -= number
        return number

    def within(self, number: IntArray) -> IntArray:
        """Return how many of these tasks, (servers,), they allow, on the first servers."""
        found = np.zeros_like(number)
        for s in np.flatnonzero(number).tolist():
            found[s] = self(s, int(number[s]))
        return found


def part(place: Place, chosen: BoolArray) -> Place:
    """Return the tasks of a place on the chosen ones of its servers, (servers of the place,)."""
    tasks = place.tasks[chosen]
    return Place(place.servers[chosen], tasks, int(tasks.sum()))


def cut(place: Place, tasks: int) -> Place:
    """Return the first tasks of a place."""
    found = _first(place.tasks, tasks)
    return Place(place.servers[found.servers], found.tasks, found.total)


def _first(number: IntArray, tasks: int) -> Place:
    """Return the first servers that hold so many tasks, of which ``number`` (servers,) fit on each; fewer where fewer fit."""
    if tasks <= 0:
        return Place(np.empty(0, np.int64), np.empty(0, np.int64), 0)
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
