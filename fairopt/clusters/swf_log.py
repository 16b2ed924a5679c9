"""A log in the Standard Workload Format (.swf): a job waits from its submission for its wait, and then runs.

A task is one processor, as the job had it, else as it asked for; with "memory" among the resources of the cluster it has its GiB too, as
requested, else as used. The processors of a job need not start together, which is a relaxation. Jobs that follow another job (field 17)
have waiting times that are excluded. A job that ran in several parts (status 2 to 4) waits for each from the end of the one before. A job
that was cancelled before it ran waits until then.

Where the header has ``UnixStartTime``, times have dates; ``TimeZoneString`` is their time zone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.clock import Clock
from fairopt.clusters.log_records import Records, Unjudged, distinct
from fairopt.clusters.swf_fields import notes_of_log
from fairopt.clusters.swf_format import (
    ALLOCATED,
    JOB,
    MEMORY,
    OWNERS,
    REQUESTED,
    RUN,
    STATUS,
    SUBMIT,
    USED_MEMORY,
    WAIT,
    limit,
    read_log,
)  # fmt: skip
from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, Instance

__all__ = ["cluster_of_swf", "read_swf_log"]

_AFTER, _CANCELLED = 16, 5


def read_swf_log(path: Path, cluster: Instance, *, users: str = "user", timezone: str | None = None, lenient: bool = False) -> Records:
    """Read a log, or that compressed by gzip.

    Parameters
    ----------
    users : {"user", "group", "queue"}
        The owner of a job, called "user 12" and so on. Its queue is "queue 3".

    Raises
    ------
    InvalidInstance
        With the file and line: what is wrong, and what to do.
    """
    for resource in cluster.resources:
        if resource not in ("cpu", "memory"):
            raise InvalidInstance(
                f'{path}: a log in this format says nothing of "{resource}"; the resources of the cluster may be cpu and memory'
            )
    if "cpu" not in cluster.resources:
        raise InvalidInstance(f'{path}: the cluster has no resource "cpu", the processors of this log; it may have cpu and memory')
    account = Account(lenient)
    header, jobs, lines = read_log(path, account, parts=True)
    zone = header.get("TimeZoneString") if timezone is None else timezone
    start_text = header.get("UnixStartTime", "").split(" ")[0]
    clock = Clock(float(start_text), Clock.dates(zone).zone) if start_text.isdigit() and int(start_text) else Clock()
    wait, run = jobs[:, WAIT], jobs[:, RUN]
    processors = np.where(jobs[:, ALLOCATED] > 0, jobs[:, ALLOCATED], jobs[:, REQUESTED])
    demands = np.zeros((len(jobs), cluster.n_resources))
    demands[:, cluster.resources.index("cpu")] = 1.0
    if "memory" in cluster.resources:
        kibibytes = np.where(jobs[:, MEMORY] > 0, jobs[:, MEMORY], np.maximum(jobs[:, USED_MEMORY], 0))
        demands[:, cluster.resources.index("memory")] = kibibytes / 2**20
    began = jobs[:, SUBMIT] + wait
    never = (run <= 0) & ((jobs[:, STATUS] == _CANCELLED) | (run < 0))
    table, shape = distinct(demands)
    why = np.full(len(jobs), "", object)
    why[jobs[:, _AFTER] > 0] = "waited for another job"
    records = Records(
        job=_names(jobs[:, JOB]),
        user=np.char.add(f"{users} ", _names(jobs[:, OWNERS[users]]).astype(str)).astype(object),
        queue=np.char.add("queue ", _names(jobs[:, OWNERS["queue"]]).astype(str)).astype(object),
        submit=jobs[:, SUBMIT].copy(),
        start=np.where(never, np.nan, began),
        end=np.where(never, began, began + np.maximum(run, 0)),
        tasks=np.where(processors > 0, processors, 1.0),
        shape=shape,
        demands=table,
        row=np.full(len(jobs), -1),
        place=np.full(len(jobs), -1),
        allowed=np.zeros((0, cluster.n_servers), bool),
        why=why,
        where=lambda n: f"{path}, line {int(lines[n])}",
        clock=clock,
        lenient=lenient,
        numbered=True,
    )
    records.notes += notes_of_log(header, jobs, memory="memory" in cluster.resources)
    records.unjudged += [Unjudged(each.why, 1, 0.0, each.where) for each in account.left_out]
    unknown = (wait < 0) | (processors <= 0)
    records.leave_out(wait < 0, "its wait is unknown")
    records.leave_out((wait >= 0) & (processors <= 0), "its processors are unknown")
    records.keep(~unknown)
    return records


def cluster_of_swf(path: Path, *, lenient: bool = False) -> Instance:
    """Return the cluster that the header of a log describes: ``MaxProcs`` processors on ``MaxNodes`` nodes, and no user but one.

    Raises
    ------
    InvalidInstance
        The header has neither.
    """
    header, _, _ = read_log(path, Account(lenient))
    number, total = limit(path, header, "MaxNodes", None, "--cluster"), limit(path, header, "MaxProcs", None, "--cluster")
    if number is None and total is None:
        raise InvalidInstance(f"{path}: the header has neither MaxNodes nor MaxProcs; give an instance (--cluster)")
    total = total or number or 1
    number = number or total
    return Instance([[total / number]], [[1]], counts=[number], users=["nobody"], servers=["node"], resources=["cpu"])


def _names(numbers: FloatArray) -> Any:
    """Return identifying numbers as texts; a negative one is unknown."""
    import pandas as pd

    code, found = pd.factorize(numbers)
    texts = ["unknown" if number < 0 else str(int(number)) if number == int(number) else repr(float(number)) for number in found]
    return np.array(texts, object)[code]
