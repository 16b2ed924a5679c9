r"""Jobs of a log where servers differ: what a task of a stream takes on each row of servers, and the work that it does there.

A log says what a task took where it ran. With D[u,i,r] the demand of a task of user u of the cluster on row i, b the row where the task
ran, and d[r] what the log says, it would take on row i

    d[r] D[u,i,r] / D[u,b,r]                  (d[r] + D[u,i,r] where D[u,b,r] = 0),

and do speed[u,i] of the work in the same time. A job that never ran asked for d on the first row on which the user may run at speed 1, or
on the first on which it may run if there is none, as in `fairopt.simulation.by_server`.

The user of the cluster is the owner; of an owner with several users those whose demand on that row is d, and all of them if none is.

>>> import pandas as pd
>>> import fairopt as fo
>>> lab = fo.Instance([[8], [8]], [[[1], [2]]], speeds=[[1, 0.5]], users=["ann"], servers=["a100", "v100"], resources=["gpu"])
>>> jobs = pd.DataFrame({"user": "ann", "submit": [0, 0], "start": 0, "end": 3600, "tasks": [8, 4], "gpu": [1, 2], "server": lab.servers})
>>> found = fo.history(jobs, lab)  # of 10 that it could do alone: 8, and 4 at half the speed
>>> found.setting.labels, found.to_frame()[["received", "received_tasks"]].to_numpy().tolist()
(('ann',), [[1.0, 10.0]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairopt.clusters.log_records import Unjudged
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.histories.job_log import NO_SERVER, JobLog
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.by_server import Kinds, as_given, differences
from fairopt.instance.tolerances import FITS, NOTHING
from fairopt.program.most_work import work_of_pool
from fairopt.simulation.by_server import amounts_elsewhere, base_rows
from fairopt.wording import named, plural

__all__ = ["StreamTasks", "check_placed", "like_user", "stream_tasks", "without_servers"]


class StreamTasks(NamedTuple):
    """What tasks of streams take and do.

    Attributes
    ----------
    kinds : Kinds
        Demands, (streams, kinds, resources).
    speeds : array (streams, rows) or None
        None: a task does the same work everywhere.
    base : int array (streams,)
        The row that stands for tasks whose row is unknown.
    """

    kinds: Kinds
    speeds: FloatArray | None
    base: IntArray

    @property
    def usual(self) -> FloatArray:
        """What a task takes on the base row, (streams, resources)."""
        return np.asarray(self.kinds.demands[np.arange(self.base.size), self.kinds.kind_of[self.base]])

    @property
    def differ(self) -> bool:
        """Does any task take other amounts, or do other work, on some row?"""
        return self.speeds is not None or bool((self.kinds.demands != self.kinds.demands[:, :1]).any())

    def taken(self, stream: IntArray, row: IntArray) -> FloatArray:
        """Return what a task of each of these streams takes on these rows, (records, resources); row -1: unknown."""
        return np.asarray(self.kinds.demands[stream, self.kinds.kind_of[np.where(row < 0, self.base[stream], row)]])

    def work(self, stream: IntArray, row: IntArray) -> FloatArray:
        """Return the work of a task of each of these streams on these rows, (records,); row -1: unknown."""
        if self.speeds is None:
            return np.ones(stream.size)
        return np.asarray(self.speeds[stream, np.where(row < 0, self.base[stream], row)])

    def work_of(self, tasks: FloatArray) -> FloatArray:
        """Return the work of tasks on each row, (streams, rows), or with a last column of those on unknown rows, (streams,)."""
        if self.speeds is None:
            return np.asarray(tasks.sum(axis=1))
        rows = self.speeds.shape[1]
        known = (tasks[:, :rows] * self.speeds).sum(axis=1)
        return np.asarray(known + tasks[:, rows:].sum(axis=1) * self.speeds[np.arange(self.base.size), self.base])

    def fastest(self, eligibility: BoolArray) -> FloatArray:
        """Return the most work that a task of each stream does where it may run, (streams,)."""
        if self.speeds is None:
            return np.ones(self.base.size)
        return np.asarray(np.where(eligibility, self.speeds, 0.0).max(axis=1, initial=0.0))

    def slower(self, stream: IntArray, row: IntArray, eligibility: BoolArray) -> BoolArray:
        """Return which tasks of these streams would do more work on another row, (records,)."""
        return np.asarray(self.work(stream, row) < self.fastest(eligibility)[stream] * (1 - NOTHING))

    def arguments(self, active: IntArray) -> dict[str, Any]:
        """Return demands and speeds of some streams, as an instance takes them."""
        found = {"demands": as_given(self.kinds.demands[active], self.kinds.kind_of)}
        return found if self.speeds is None else {**found, "speeds": self.speeds[active]}

    def share_of_work(self, cluster: Instance, labels: Sequence[str]) -> FloatArray:
        """Return the dominant share of a unit of work, 1 / W of `fairopt.program.most_work`, (streams,)."""
        every = self.arguments(np.arange(self.base.size))
        instance = Instance(cluster.capacities, **every, counts=cluster.counts, shared=cluster.shared, users=labels)
        most = work_of_pool(instance)
        return np.asarray(np.divide(1.0, most, out=np.zeros(most.size), where=most > 0))


def check_placed(cluster: Instance, row: IntArray, ran: BoolArray) -> None:
    """Refuse a log that does not say where jobs ran, (records,), if demands or speeds differ by server.

    Raises
    ------
    InvalidInstance
    """
    unknown = int((row[ran] < 0).sum())
    if cluster.differs_by_server and unknown:
        raise InvalidInstance(
            f"{differences(cluster)}, and the log does not say on which servers {plural(unknown, 'record')} ran; give the server of each, "
            "or leave demands and speeds by server out"
        )


def without_servers(
    log: JobLog, cluster: Instance, tasks: StreamTasks, stream: IntArray, eligibility: BoolArray
) -> tuple[JobLog, BoolArray]:
    """Judge no wait of a task that fits on no server, as `JobLog` does where tasks are the same everywhere.

    Parameters
    ----------
    stream : int array (records,)
    eligibility : bool array (streams, rows)

    Returns
    -------
    log : JobLog
        Without the records that never ran; the others count from their start.
    keep : bool array (records,)
    """
    fits = eligibility & (cluster.counts > 0)
    every = np.arange(len(fits))
    most = np.concatenate([cluster.capacities, np.tile(cluster.shared_capacity, (cluster.n_servers, 1))], axis=1)
    for i in range(cluster.n_servers):
        fits[:, i] &= (tasks.taken(every, np.full(every.size, i)) <= most[i] * (1 + FITS)).all(axis=1)
    nowhere = ~np.asarray(fits.any(axis=1))
    waited = nowhere[stream] & (log.submit < log.start)
    if not waited.any():
        return log, np.ones(stream.size, bool)
    first = int(np.argmax(waited))
    waits = np.where(np.isfinite(log.start), log.start - log.submit, 0.0)
    hours = float((waits * log.tasks)[waited].sum()) / 3600
    lost = Unjudged(NO_SERVER, int(waited.sum()), hours, f'job "{log.jobs[first]}"')
    keep = ~waited | (np.isfinite(log.start) & (log.start < log.end))
    counted = replace(log, submit=np.where(waited, log.start, log.submit), unjudged=(*log.unjudged, lost))
    return counted.part(keep), keep


def like_user(cluster: Instance, base: IntArray, users: Sequence[int], owner: str, demand: FloatArray, row: int) -> int:
    """Return the user of the cluster whose tasks differ by server as those of a record.

    Parameters
    ----------
    base : int array (users,)
        The base row of each user of the cluster.
    users : sequence of int
        Of the owner.
    demand : array (resources,)
        What the log says.
    row : int
        Where the record ran; -1: it never did.

    Raises
    ------
    InvalidInstance, Unsupported
        The cluster has no user of the owner, or several whose tasks differ in other ways.
    """
    if not len(users):
        raise InvalidInstance(
            f'{differences(cluster)}, but the cluster has no user "{owner}", so that nothing says how its tasks differ; name it there, or '
            "leave demands and speeds by server out"
        )
    own = np.array(users, np.int64)
    kind = cluster.kind_of[base[own] if row < 0 else np.full(own.size, row)]
    there = cluster.demands_by_kind[own, kind]
    same = np.asarray((np.abs(there - demand) <= NOTHING * demand).all(axis=1))
    if same.any():
        own, kind = own[same], kind[same]
    chosen = own.tolist()
    amounts = amounts_elsewhere(np.tile(demand, (own.size, 1)), cluster.demands_by_kind[own], kind)
    for k, u in enumerate(chosen[1:], 1):
        alike = np.allclose(amounts[k], amounts[0], rtol=NOTHING, atol=0.0)
        if not (alike and (cluster.speeds[u] == cluster.speeds[chosen[0]]).all()):
            one, other = (named(cluster.users[each]) for each in (chosen[0], u))
            raise Unsupported(
                f"tasks of {one} and {other} differ from server to server in other ways, both are of {named(owner)}, and a job of the log "
                "may be of either; give each an owner of its own"
            )
    return int(chosen[0])


def stream_tasks(cluster: Instance, by_kind: FloatArray, like: IntArray) -> StreamTasks:
    """Return what tasks of streams take and do; ``by_kind`` are demands, (streams, kinds, resources), ``like`` users of the cluster."""
    base = np.zeros(like.size, np.int64)
    if cluster.differs_by_server:
        base = base_rows(cluster, cluster.placement)[like]
    speeds = None if cluster.speeds_given is None else cluster.speeds_given[like]
    if speeds is not None and (speeds == 1).all():
        speeds = None
    return StreamTasks(Kinds(by_kind, cluster.kind_of), speeds, base)
