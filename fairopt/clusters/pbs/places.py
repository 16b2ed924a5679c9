"""Where tasks of PBS may run, and what those take that have their hosts for themselves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.pbs.jobs import Job, Task
from fairopt.clusters.pbs.nodes import RESERVATION, Host
from fairopt.clusters.pbs.queues import Holder
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import FITS
from fairopt.wording import plural

__all__ = ["Places"]

_EXCLUSIVE = ("excl", "exclhost")
_ALWAYS, _BY_DEFAULT, _NEVER = ("force_excl", "force_exclhost"), ("default_excl", "default_exclhost"), ("ignore_excl", "force_shared")


class Places:
    """The hosts on which tasks may run, a row for each kind of constraint.

    Attributes
    ----------
    capacities : array (hosts, resources)
    allowed : list of bool arrays (hosts,)
    host_of : dict
        The host of each vnode that accepts work.
    """

    def __init__(self, hosts: Sequence[Host], queues: Mapping[str, Holder], resources: Sequence[str]) -> None:
        self._hosts, self._queues, self._resources = hosts, queues, resources
        self.capacities: FloatArray = np.array([[host.offers.get(name, 0.0) for name in resources] for host in hosts], float)
        self.capacities = self.capacities.reshape(len(hosts), len(resources))
        parts = [1 if host.sharing.endswith("exclhost") else host.parts for host in hosts]
        self._of_host, self._of_vnode = self.capacities, self.capacities / np.array(parts, float).reshape(-1, 1)
        self.allowed: list[BoolArray] = []
        self.host_of = {name: i for i, host in enumerate(hosts) for name in host.vnodes}
        self._row: dict[tuple[object, ...], int] = {}
        self._worded = {resource for host in hosts for resource in host.words} | {"vnode"}
        self._owned = {host.queue for host in hosts}
        self._partitions = {host.partition for host in hosts}
        self._reserved = frozenset[str]().union(*(host.reservations for host in hosts))
        self._unnamed = any(host.exclusive and not host.reservations for host in hosts)
        self._unknown: Counter[str] = Counter()
        self._takes_whole: dict[tuple[int, bool, bool], bool] = {}
        self._mixed = self._whole = 0

    def on(self, task: Task) -> Counter[int]:
        """Return how many of these tasks run on which host; those on hosts that offer nothing are left out."""
        return Counter(self.host_of[name] for name in task.on if name in self.host_of)

    def demand(self, task: Task) -> FloatArray:
        """Return what a task demands, (resources,)."""
        return np.array([task.amounts.get(name, 0.0) for name in self._resources])

    def of(self, task: Task, job: Job) -> int:
        """Return the row of ``allowed`` of these tasks."""
        words = {name: word for name, word in task.words.items() if name in self._worded or word == "true"}
        self._unknown.update(name for name in task.words if name not in words and task.words[name] != "false")
        numbers = {name: f"{task.amounts[name]:.15g}" for name in task.amounts if name in self._worded and name not in self._resources}
        key = (tuple(sorted((words | numbers).items())), job.whose["queue"])
        if key not in self._row:
            self._row[key] = len(self.allowed)
            self.allowed.append(np.array([self._opens(host, words | numbers, job.whose["queue"]) for host in self._hosts], bool))
        return self._row[key]

    def _opens(self, host: Host, words: Mapping[str, str], queue: str) -> bool:
        if not (self._in_reservation(host, queue) if RESERVATION.fullmatch(queue) else not host.exclusive):
            return False
        own = queue if queue in self._owned else ""
        partition = self._queues[queue].partition if queue in self._queues else host.partition
        return (
            host.queue == own
            and (host.partition == partition or self._partitions == {""})
            and all(host.has(name, word) for name, word in words.items())
        )

    def _in_reservation(self, host: Host, queue: str) -> bool:
        """Return whether a host is one of a reservation: it lists it; or is reserved for whichever, where no host lists it."""
        if queue in self._reserved:
            return queue in host.reservations
        return (host.exclusive and not host.reservations) or not self._unnamed

    def takes_whole(self, job: Job, row: int) -> bool:
        """Return whether the tasks of a job have their hosts for themselves."""
        place = job.place.split(":")
        exclusive, shared = bool(set(place) & set(_EXCLUSIVE)), "shared" in place
        key = (row, exclusive, shared)
        if key not in self._takes_whole:
            found = [
                host.sharing in _ALWAYS or (host.sharing not in _NEVER and (exclusive or (host.sharing in _BY_DEFAULT and not shared)))
                for host, open_ in zip(self._hosts, self.allowed[row], strict=True)
                if open_
            ]
            self._mixed += any(found) and not all(found)
            self._takes_whole[key] = bool(found) and all(found)
        self._whole += self._takes_whole[key]
        return self._takes_whole[key]

    def _units(self, job: Job) -> FloatArray:
        """Return what a job has for itself at least, (hosts, resources): the host, or a vnode, which has the mean of those of its host."""
        return self._of_host if "exclhost" in job.place.split(":") else self._of_vnode

    def whole_hosts(self, demand: FloatArray, number: int, row: int, job: Job) -> tuple[FloatArray, int]:
        """Return what the smallest host, or vnodes of a host, have on which a task fits, and how many such these tasks need."""
        scattered = "scatter" in job.place
        fits = self.allowed[row] & np.asarray((demand <= self.capacities * (1 + FITS)).all(axis=1))
        if not fits.any():
            return demand, number
        smallest = min(_times(self._units(job)[fits], demand).tolist())
        together = min(
            (math.floor(has / asked * (1 + FITS)) for has, asked in zip(smallest, demand.tolist(), strict=True) if asked), default=number
        )
        return np.array(smallest), number if scattered else math.ceil(number / max(together, 1))

    def on_whole_host(self, demand: FloatArray, host: int, task: Task, job: Job) -> FloatArray:
        """Return what tasks take that have this host, or their vnodes of it, for themselves."""
        unit = self._units(job)[host]
        vnodes = {name for name in task.on if self.host_of.get(name) == host}
        if np.array_equal(unit, self.capacities[host]):
            return np.asarray(np.maximum(demand, unit))
        together = demand * sum(self.host_of.get(name) == host for name in task.on)
        return np.asarray(np.minimum(np.maximum(_times(unit[None], together)[0], len(vnodes) * unit), self.capacities[host]))

    def note(self, account: Account) -> None:
        """Say what is approximate."""
        if self._whole:
            several = len(np.unique(self.capacities, axis=0)) > 1
            smallest = ": each demands as much as the smallest host on which it fits" if several else ""
            whole = "whole hosts" if all(host.parts == 1 for host in self._hosts) else "whole hosts or vnodes"
            account.note(f"{plural(self._whole, 'chunk takes', 'chunks take')} {whole}{smallest}")
        if self._mixed:
            account.note(
                f"{plural(self._mixed, 'kind of task', 'kinds of tasks')} may run on hosts that jobs have for themselves and on hosts that "
                "they share: counted as if all were shared"
            )
        for name, number in self._unknown.items():
            account.note(
                f"{plural(number, 'kind of task asks', 'kinds of tasks ask')} for {name}, a word that no vnode has: it does not count"
            )


def _times(units: FloatArray, demand: FloatArray) -> FloatArray:
    """Return the fewest units that have what is demanded, at least one, for each of several units (units, resources).

    >>> _times(np.array([[8.0, 16.0], [64.0, 64.0]]), np.array([4.0, 20.0]))
    array([[16., 32.],
           [64., 64.]])
    """
    needed = demand > 0
    ratio = np.divide(demand[needed], units[:, needed], out=np.ones_like(units[:, needed]), where=units[:, needed] > 0)
    number = np.ceil(ratio.max(axis=1, initial=1.0) * (1 - FITS))
    return np.asarray(np.maximum(units * number[:, None], demand))
