"""Named limits where a user is several streams: those of an instance of streams, and how full they are.

A limit counts the tasks of users; an instance of one moment has streams for users (`fairopt.simulation.streams`). A limit of each user is
then one of all streams of this user together. Everything else that a limit selects stays: its queues, its servers, what a task counts.

>>> limits = [Limit("two each", 2, each="user"), Limit("long", 8, resource="gpu", users=["bob"])]
>>> by_streams(limits, {"ann": ["ann"], "bob": ["bob/1 gpu", "bob/4 gpu"]})
[Limit('two each', 2, users=['ann'], each='user'), Limit('two each of bob', 2, users=['bob/1 gpu', 'bob/4 gpu']), \
Limit('long', 8, resource='gpu', users=['bob/1 gpu', 'bob/4 gpu'])]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.limit_merging import by_name, moved
from fairopt.instance.limits import Limit
from fairopt.instance.selections import Selection

__all__ = ["LimitUse", "by_streams", "explicit", "server_keys", "without_queues"]


def explicit(instance: Instance) -> list[Limit]:
    """Return the named limits of an instance, with the names of servers and, for each queue, of queues."""
    names = [queue.name for queue in instance.queues]
    return [limit.replace(queues=names) if limit.each == "queue" and limit.queues is None else limit for limit in by_name(instance)]


def by_streams(
    limits: Sequence[Limit],
    labels: Mapping[str, Sequence[str]],
    owners: Sequence[tuple[str, Sequence[str]]] | None = None,
    servers: Mapping[str, Sequence[str]] | None = None,
) -> list[Limit]:
    """Return `explicit` limits for streams.

    Parameters
    ----------
    limits : sequence of Limit
    labels : mapping
        From users whom limits may name to their streams.
    owners : sequence of (str, sequence of str), optional
        Each owner with its streams, who counts as one user; default: ``labels``.
    servers : mapping, optional
        From rows of servers to the rows that stand for them.
    """
    whose = list(labels.items()) if owners is None else owners
    found = []
    for limit in limits:
        if limit.each != "user" or all(len(streams) <= 1 for _, streams in whose):
            found += moved([limit], labels, servers)
            continue
        for selected in moved([limit], labels, servers):
            named = None if selected.users is None else set(selected.users)
            parts = [(name, [each for each in streams if named is None or each in named]) for name, streams in whose]
            alone = [streams[0] for _, streams in parts if len(streams) == 1]
            groups = [(name, streams) for name, streams in parts if len(streams) > 1]
            if alone:
                found += moved([selected.replace(users=alone)], {name: [name] for name in alone})
            for k, (name, streams) in enumerate(groups):
                title = f"{limit.name} of {name}" if "." not in name else f"{limit.name} of user {k + 1}"  # names of limits have no dots
                found += moved([selected.replace(name=title, users=streams, each=None)], {each: [each] for each in streams})
    return found


def without_queues(instance: Instance, users: IntArray) -> list[Limit]:
    """Return `explicit` limits over these users alone, by their names, in the place of queues; what selects none of them is left out."""
    found = []
    for limit, selection in zip(explicit(instance), instance.selections, strict=True):
        groups = [("", selection.users)]
        if limit.each == "queue":
            groups = [(f" of queue {k + 1}", below & selection.users) for k, (_, below) in enumerate(selection.queues)]
        for title, selected in groups:
            names = [instance.users[n] for n in users.tolist() if selected[n]]
            if names:
                each = None if limit.each == "queue" else limit.each
                own = limit.replace(name=f"{limit.name}{title}", users=names, queues=None, each=each)
                found += moved([own], {name: [name] for name in names})
    return found


def server_keys(instance: Instance) -> list[Any]:
    """Return in what rows of servers must agree, so that each limit counts tasks on them alike: arrays with a row for each."""
    keys: list[Any] = []
    for selection in instance.selections:
        if not selection.servers.all():
            keys.append(selection.servers[:, None])
        if isinstance(selection.amounts, tuple):  # rows that it names stay apart
            own = np.zeros(instance.n_servers, np.int64)
            named = np.unique(selection.amounts[1])
            own[named] = named + 1
            keys.append(own[:, None])
    return keys


class LimitUse:
    """How full named limits are: what counts in them over their bounds.

    Of a limit with a row for each user or queue it is that of the fullest row, and of one of each server that of the fullest row of
    servers. A bound of 0 is not in use.

    Attributes
    ----------
    names : tuple of str (limits,)
    """

    def __init__(self, selections: Sequence[Selection], owner: IntArray, streams: Instance) -> None:
        self.selections, self.owner, self.streams = tuple(selections), owner, streams
        self.names = tuple(selection.limit.name for selection in self.selections)

    def of_tasks(self, tasks: FloatArray, rows: IntArray, counts: FloatArray) -> FloatArray:
        """Return how full each limit is, (limits,).

        Parameters
        ----------
        tasks : array (streams, groups)
        rows : int array (groups,)
            A row of servers of each group, which stands for all of it.
        counts : array (groups,)
            Numbers of servers.
        """
        found = np.zeros(len(self.names))
        stream, group = np.nonzero(tasks) if self.names else (np.empty(0, np.int64), np.empty(0, np.int64))
        for k, selection in enumerate(self.selections):
            counted = self._per_task(selection, stream, rows[group]) * tasks[stream, group]
            groups = list(self._groups(selection, stream, group, counts.size))
            most = max((float(np.bincount(at, weights=counted[own], minlength=1).max()) for own, at, _ in groups), default=0.0)
            if selection.limit.each == "server":
                used = np.bincount(group, weights=counted, minlength=counts.size)
                most = float(np.divide(used, counts, out=np.zeros(counts.size), where=counts > 0).max(initial=0.0))
            found[k] = most / float(selection.limit.bound) if selection.limit.bound > 0 else 0.0
        return found

    def over_time(self, stream: IntArray, row: IntArray, tasks: Any, begin: IntArray, stop: IntArray, counts: FloatArray) -> FloatArray:
        """Return how full each limit is at samples, (samples, limits).

        Parameters
        ----------
        stream, row : int arrays (records,)
            Of tasks that run; the row of servers may be unknown, -1. Only limits of all servers count it then.
        tasks : array (records,) or 1
            How many.
        begin, stop : int arrays (records,)
            They run from one sample until before the other; the number of samples stands for never.
        counts : array (samples, rows)
            Servers at each sample.
        """
        k, rows = counts.shape
        found = np.zeros((k, len(self.names)))
        for j, selection in enumerate(self.selections):
            counted = self._per_task(selection, stream, row) * tasks
            most = np.zeros(k)
            for own, at, number in self._groups(selection, stream, row, rows):
                table = np.bincount(begin[own] * number + at, counted[own], (k + 1) * number)
                table -= np.bincount(stop[own] * number + at, counted[own], (k + 1) * number)
                sums = table.reshape(k + 1, number).cumsum(axis=0)[:k]
                if selection.limit.each == "server":
                    sums = np.divide(sums, counts, out=np.zeros(sums.shape), where=counts > 0)
                most = np.maximum(most, sums.max(axis=1, initial=0.0))
            found[:, j] = most / float(selection.limit.bound) if selection.limit.bound > 0 else 0.0
        return found

    def _per_task(self, selection: Selection, stream: IntArray, row: IntArray) -> FloatArray:
        """Return what a task of each of these streams counts on these rows."""
        owner, known = self.owner[stream], row >= 0
        inside = selection.users[owner] & (selection.servers[row] & known if not selection.servers.all() else np.ones(row.size, bool))
        if selection.resource >= 0:
            each = self.streams.demands_of(stream, np.maximum(row, 0))[:, selection.resource]
        else:
            each = selection.coefficients(owner, np.maximum(row, 0))
            if isinstance(selection.amounts, tuple):
                inside &= known
        return np.asarray(np.where(inside, each, 0.0), float)

    def _groups(self, selection: Selection, stream: IntArray, row: IntArray, rows: int) -> Iterator[tuple[Any, IntArray, int]]:
        """Yield which records count together, as groups: the records, the group of each, and how many groups there are."""
        every = np.ones(stream.size, bool)
        if selection.limit.each == "user":
            yield every, self.owner[stream], selection.users.size
        elif selection.limit.each == "server":
            known = row >= 0
            yield known, row[known], rows
        elif selection.limit.each == "queue":
            for _, below in selection.queues:
                own = below[self.owner[stream]]
                yield own, np.zeros(int(own.sum()), np.int64), 1
        else:
            yield every, np.zeros(stream.size, np.int64), 1
