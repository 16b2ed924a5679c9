"""A moment of a log in the Standard Workload Format (.swf), the format of the Parallel Workloads Archive.

**Nodes**: ``MaxNodes`` of the header comments, each with ``MaxProcs`` / ``MaxNodes`` processors. The format does not say how much
memory a node has; with ``memory``, GiB of one node, it is a resource.

**Jobs**. A log covers a period, an instance one moment: ``at`` seconds after the start of the log, by default the first moment at which
most processors are asked for. Jobs that were submitted and have not ended run if their wait is over, and wait otherwise. A task is one
processor of a job with its memory (as requested, else as used, per processor). The processors of a job need neither be on one node nor
start together, so **the optimum is a relaxation**. All nodes are alike, so the current allocation is known.

Source: Chapin et al., Benchmarks and standards for the evaluation of parallel job schedulers (1999), and the archive's definition of
version 2.2.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.imported import Import
from fairopt.clusters.shapes import SOMEWHERE, Tasks
from fairopt.clusters.swf_fields import notes_of_log
from fairopt.clusters.swf_format import (
    ALLOCATED,
    ESTIMATE,
    JOB,
    MEMORY,
    OWNERS,
    REQUESTED,
    RUN,
    SUBMIT,
    USED_MEMORY,
    WAIT,
    limit,
    read_log,
)  # fmt: skip
from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray
from fairopt.trace import Trace
from fairopt.wording import exactly

__all__ = ["import_swf", "trace_swf"]


@keeps_question
def import_swf(
    log: str | os.PathLike[str],
    *,
    at: float | None = None,
    users: str = "user",
    nodes: int | None = None,
    processors: int | None = None,
    memory: float | None = None,
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of a moment of a log.

    Parameters
    ----------
    log : path
        ``*.swf``, or that compressed by gzip.
    at : float, optional
        Seconds, as the log counts them; default: when most processors are asked for.
    users : {"user", "group", "queue"}
        The owner of a job; called "user 12" and so on.
    nodes, processors : int, optional
        Of the whole cluster, instead of MaxNodes and MaxProcs.
    memory : float, optional
        GiB of one node; without it memory is not a resource.
    weights : mapping, optional
        Weight by owner; default 1.
    demand : {"shapes", "mean"}
        A user for each owner and shape (exact), or one for each owner with the mean of its tasks (approximate).
    lenient : bool
        Leave bad lines out and count them, instead of refusing the log.

    Raises
    ------
    InvalidInstance
        With the file and line: what is wrong, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.swf").write_text(
    ...         "; MaxNodes: 4\\n; MaxProcs: 8\\n"
    ...         "1  0 0 90 6 -1 -1 6 90 -1 1 7 1 -1 1 -1 -1 -1\\n"
    ...         "2 10 80 9 4 -1 -1 4 90 -1 1 8 1 -1 1 -1 -1 -1\\n")
    ...     imported = import_swf(Path(folder, "log.swf"))
    >>> imported
    Import(swf: 2 owners, 2 users, 10 tasks, 6 tasks running, 4 servers in 1 row)
    >>> imported.current.tasks_per_user
    array([6., 0.])
    """
    if users not in OWNERS:
        raise InvalidInstance(f'users is "{users}"; give "user", "group" or "queue"')
    path = Path(log)
    account = Account(lenient)
    header, jobs, lines = read_log(path, account)
    number = limit(path, header, "MaxNodes", nodes, "--node-count")
    total = limit(path, header, "MaxProcs", processors, "--processors")
    if number is None and total is None:
        raise InvalidInstance(f"{path}: the header has neither MaxNodes nor MaxProcs; give both (--node-count, --processors)")
    total = total or number or 1
    number = number or total
    if memory is not None and not (np.isfinite(memory) and memory > 0):
        raise InvalidInstance(f"memory is {memory:g}; give the GiB of one node, > 0")

    processes = np.where(jobs[:, REQUESTED] > 0, jobs[:, REQUESTED], jobs[:, ALLOCATED])
    start = jobs[:, SUBMIT] + jobs[:, WAIT]
    end = start + np.maximum(jobs[:, RUN], 0)
    timed = (jobs[:, WAIT] >= 0) & (processes > 0)
    for row in np.flatnonzero(~timed):
        why = "its wait is unknown" if processes[row] > 0 else "its processors are unknown"
        account.leave_out("job", f"{path}, line {lines[row]}", why)
    if not timed.any():
        raise InvalidInstance(f"{path}: no job has a known wait and number of processors, so no moment can be imported")
    moment = _busiest(jobs[timed, SUBMIT], end[timed], processes[timed]) if at is None else at
    here = np.flatnonzero(timed & (jobs[:, SUBMIT] <= moment) & (moment < end))
    if not here.size:
        last = float(end[timed].max())
        raise InvalidInstance(
            f"{path}: no job runs or waits at {exactly(moment)} s; the log goes from {exactly(jobs[0, SUBMIT])} to {exactly(last)} s"
        )
    runs = (start[here] <= moment) & (jobs[here, RUN] > 0)
    held = np.where(jobs[here, ALLOCATED] > 0, jobs[here, ALLOCATED], processes[here])
    pieces = np.where(runs, held, processes[here])
    kibibytes = np.where(jobs[here, MEMORY] > 0, jobs[here, MEMORY], np.maximum(jobs[here, USED_MEMORY], 0))
    account.summary |= {"jobs": len(jobs), "at": moment, "jobs running": int(runs.sum()), "jobs waiting": int((~runs).sum())}
    if at is None:
        account.note(f"taken at {exactly(moment)} s, when most processors are asked for; --at chooses another moment")
    for note in notes_of_log(header, jobs, memory=memory is not None):
        account.note(note)
    account.note("a task is one processor; the processors of a job need not start together or be on one node: a relaxation")

    units = {"cpu": "processors"} if memory is None else {"cpu": "processors", "memory": "GiB"}
    capacity, demands = [total / number], [np.ones(here.size)]
    if memory is not None:
        capacity.append(memory)
        demands.append(kibibytes / 2**20)
    who = [_owner(users, jobs[j, OWNERS[users]]) for j in here]
    return assemble(
        "swf",
        Nodes(["node"], np.array([capacity]), np.array([float(number)])),
        Tasks(
            owner=who,
            demands=np.column_stack(demands),
            number=pieces,
            allowed=np.ones((1, 1), bool),
            place=np.zeros(here.size, int),
            where=[f"{path}, line {lines[j]} (job {_name(jobs[j, JOB])})" for j in here],
            running=[(n, SOMEWHERE, float(pieces[n])) for n in np.flatnonzero(runs).tolist()],
        ),
        account,
        units=units,
        own_weights=weights,
        demand=demand,
        what="processor",
    )


def trace_swf(
    log: str | os.PathLike[str], *, users: str = "user", memory: bool = False, gangs: bool = False, lenient: bool = False
) -> Trace:
    """Return the jobs of a log as a trace, for `fairopt.simulate`.

    A task is one processor of a job, as requested (else as it had), for as long as the job ran; the waits of the log are what a simulation
    computes anew. Jobs that did not run, or whose processors or time are not known, are left out and counted. The estimate of a job is the
    time that its user requested, else the time that it ran.

    Parameters
    ----------
    log : path
        ``*.swf``, or that compressed by gzip.
    users : {"user", "group", "queue"}
        The owner of a job; called "user 12" and so on.
    memory : bool
        GiB of a processor are a second resource, "memory", beside "cpu": as requested, else as used; 0 where that is not known.
    gangs : bool
        The processors of a job start at one instant, as those of a parallel job do. Otherwise each is a task of its own: a relaxation.
    lenient : bool
        Leave bad lines out and count them, instead of refusing the log.

    Raises
    ------
    InvalidInstance
        With the file and line: what is wrong, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.swf").write_text(
    ...         "; MaxNodes: 4\\n"
    ...         "1  0 0 90 6 -1 -1 6 90 -1 1 7 1 -1 1 -1 -1 -1\\n"
    ...         "2 10 80 -1 4 -1 -1 4 90 -1 1 8 1 -1 1 -1 -1 -1\\n")
    ...     trace = trace_swf(Path(folder, "log.swf"))
    >>> trace
    Trace(1 job of 1 user, 6 tasks, 1 resource, submitted from 0 to 0 s, 1 row left out)
    """
    if users not in OWNERS:
        raise InvalidInstance(f'users is "{users}"; give "user", "group" or "queue"')
    path, account = Path(log), Account(lenient)
    _, jobs, lines = read_log(path, account)
    processes = np.where(jobs[:, REQUESTED] > 0, jobs[:, REQUESTED], jobs[:, ALLOCATED])
    ran = (jobs[:, RUN] >= 0) & (processes > 0)
    for row in np.flatnonzero(~ran):
        account.leave_out("job", f"{path}, line {lines[row]}", "it did not run, or its processors are unknown")
    if not ran.any():
        raise InvalidInstance(f"{path}: no job has a run time and a number of processors")
    here = jobs[ran]
    owner = OWNERS[users]
    kibibytes = np.where(here[:, MEMORY] > 0, here[:, MEMORY], np.maximum(here[:, USED_MEMORY], 0))
    demands = np.column_stack([np.ones(len(here)), *([kibibytes / 2**20] if memory else [])])
    known = np.where(here[:, RUN] > 0, here[:, RUN], 1.0)
    return Trace(
        [_owner(users, number) for number in here[:, owner]],
        here[:, SUBMIT],
        processes[ran],
        demands,
        here[:, RUN],
        jobs=[_name(number) for number in here[:, JOB]],
        resources=["cpu", "memory"] if memory else ["cpu"],
        estimates=np.where(here[:, ESTIMATE] > 0, here[:, ESTIMATE], known),
        gangs=np.full(len(here), gangs),
        left_out=[f"{each.where}: {each.why}" for each in account.left_out],
    )


def _owner(users: str, number: float) -> str:
    return f"{users} {_name(number)}" if number >= 0 else f"{users} unknown"


def _name(number: float) -> str:
    """Return an identifying number with all its digits: two of them may differ only in the last."""
    return str(int(number)) if number == int(number) else repr(float(number))


def _busiest(submit: FloatArray, end: FloatArray, processors: FloatArray) -> float:
    """Return the first moment at which most processors are asked for."""
    times = np.concatenate([submit, end])
    change = np.concatenate([processors, -processors])
    order = np.lexsort((change, times))  # a job that ends at a time is gone then
    asked = np.cumsum(change[order])
    return float(times[order][np.argmax(asked)])
