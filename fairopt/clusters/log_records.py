"""The records of a log as a reader finds them, before they are checked; what is left out, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.clusters.clock import Clock
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.tables.mistakes import MOST, Mistakes
from fairopt.wording import did_you_mean, joined, named

__all__ = ["Records", "Unjudged", "distinct", "nowhere", "row_places", "unknown_server"]


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Why some jobs, or their waiting times, are excluded; how many they are, the hours that their tasks waited, and the first of them."""

    why: str
    jobs: int
    task_hours: float
    first: str


@dataclass(slots=True)
class Records:
    """What a reader found, before it is checked.

    Attributes
    ----------
    job, user, queue : object arrays (records,)
        Names; an empty queue: none is named.
    submit, start, end : float arrays (records,)
        Seconds; nan: unknown, not started, not ended.
    tasks : float array (records,)
    shape : int array (records,)
        Row of ``demands``.
    demands : array (shapes, resources)
        Demand of one task, in the order of the resources of the cluster.
    row : int array (records,)
        The row of servers on which the record ran; -1: the log does not say.
    place : int array (records,)
        Row of ``allowed``; -1: everywhere.
    allowed : bool array (places, rows)
    why : object array (records,)
        Why the waiting time of the record is excluded; empty: it counts.
    where : function
        The place of a record in the file.
    clock : Clock
    lenient : bool
    inferred : bool
        Whether ``allowed`` is what was seen, which the cluster knows better where it says anything.
    numbered : bool
        Whether owners are numbers of the log: one that the cluster does not list is beside the others, with weight 1.
    accounts : bool
        Whether queues are accounts: one that the cluster does not list is beside the others (`fairopt.histories.accounts`).
    notes : list of str
    unjudged : list of Unjudged
        What the reader has left out.
    mistakes : Mistakes
        What is wrong, if the reader is not lenient; the records are dropped already.
    """

    job: Any
    user: Any
    queue: Any
    submit: FloatArray
    start: FloatArray
    end: FloatArray
    tasks: FloatArray
    shape: IntArray
    demands: FloatArray
    row: IntArray
    place: IntArray
    allowed: BoolArray
    why: Any
    where: Callable[[int], str]
    clock: Clock
    lenient: bool = False
    inferred: bool = False
    numbered: bool = False
    accounts: bool = False
    notes: list[str] = field(default_factory=list)
    unjudged: list[Unjudged] = field(default_factory=list)
    mistakes: Mistakes = field(default_factory=Mistakes)

    def leave_out(self, bad: BoolArray, why: str, jobs: int | None = None) -> None:
        """Count records that are left out."""
        if bad.any():
            first = int(np.argmax(bad))
            self.unjudged.append(Unjudged(why, int(bad.sum()) if jobs is None else jobs, 0.0, self.where(first)))

    def keep(self, good: BoolArray) -> None:
        """Drop the other records."""
        if good.all():
            return
        index = np.flatnonzero(good)
        where = self.where
        self.where = lambda n: where(int(index[n]))
        for name in ("job", "user", "queue", "submit", "start", "end", "tasks", "shape", "row", "place", "why"):
            setattr(self, name, getattr(self, name)[index])

    def refuse(self, bad: BoolArray, message: Callable[[int], str] | str) -> BoolArray:
        """Keep a mistake for each bad record, or count them if the reader is lenient, and return which records remain."""
        say = (lambda _: message) if isinstance(message, str) else message
        rows = np.flatnonzero(bad).tolist()
        if rows and self.lenient:
            self.leave_out(bad, say(rows[0]).partition(":")[0].partition(";")[0])
        elif rows:
            described = rows[: max(0, MOST - len(self.mistakes.found))]
            for row in described:
                self.mistakes.add(f'{self.where(row)}: job "{self.job[row]}": {say(row)}')
            self.mistakes.more += len(rows) - len(described)
            if len(rows) == len(bad):
                self.settle()
        return ~bad

    def settle(self) -> None:
        """Raise InvalidInstance with all mistakes, if there are any."""
        self.mistakes.refuse(closing="lenient=True or --lenient leaves such records out")


def distinct(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows, and which of them each row is."""
    import pandas as pd

    code = np.zeros(len(values), np.int64)
    for column in values.T:
        own, found = pd.factorize(column, use_na_sentinel=False)
        code = pd.factorize(code * len(found) + own)[0]
    first = np.unique(code, return_index=True)[1]
    return values[first], np.asarray(code, np.int64)


def row_places(cluster: Instance, names: Sequence[str], *, rows: bool = False) -> tuple[dict[str, int], list[str]]:
    """Return the row of servers of each name of a host, and the names that no row has.

    A row has the hosts that it names; a row of one server that names none is the host of its label. Nothing is read from other labels.
    With ``rows`` a name may also be the label of any row, and is then that row, as in a table of jobs.

    >>> cluster = Instance([[1], [2], [3]], [[1]], counts=[2, 1, 9], servers=["cn01 +1", "login", "old"], hosts={"cn01 +1": "cn[01,07]"})
    >>> row_places(cluster, ["cn07", "login", "cn02", "old"])
    ({'cn07': 0, 'login': 1}, ['cn02', 'old'])
    """
    known = {host: i for i, own in enumerate(cluster.hosts) for host in own}
    for i, name in enumerate(cluster.servers):
        if rows:
            known[name] = i
        elif cluster.counts[i] == 1 and not cluster.hosts[i]:
            known.setdefault(name, i)
    return {name: known[name] for name in names if name in known}, [name for name in names if name not in known]


def unknown_server(name: str, cluster: Instance) -> str:
    """Say that a server is not in the cluster."""
    known = [each for label, own in zip(cluster.servers, cluster.hosts, strict=True) for each in own or (label,)]
    there = without_hosts(cluster) or f"there are {joined(known, 5)}"
    return f'it ran on "{name}", which the cluster does not have{did_you_mean(name, known)}; {there}'


def nowhere(name: str, cluster: Instance, what: str) -> str:
    """Say that no server of the cluster is in the log, so that nobody knows where its jobs ran.

    >>> nowhere("cn1", Instance([[1]], [[1]], servers=["a"]), "jobs")
    'no server of the cluster has the name of a node of the log, such as cn1: where jobs ran is not known'
    """
    hint = without_hosts(cluster)
    return f"no server of the cluster has the name of a node of the log, such as {name}: where {what} ran is not known" + (
        f"; {hint}" if hint else ""
    )


def without_hosts(cluster: Instance) -> str:
    """Return what to do about rows of several servers that do not name them; empty if there are none.

    >>> without_hosts(Instance([[1]], [[1]], counts=[20], servers=["cn01 +19"]))
    'the row "cn01 +19" does not name its servers: import the cluster again, or add hosts: to it in the file'
    """
    unnamed = [name for name, own, count in zip(cluster.servers, cluster.hosts, cluster.counts, strict=True) if not own and count > 1]
    if not unnamed:
        return ""
    one = len(unnamed) == 1
    return (
        f"the row{'' if one else 's'} {joined([named(name) for name in unnamed], 3)} {'does' if one else 'do'} not name "
        f"{'its' if one else 'their'} servers: import the cluster again, or add hosts: to {'it' if one else 'them'} in the file"
    )
