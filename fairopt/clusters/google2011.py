"""The Google cluster of 2011, from tables of machines and of tasks.

**Machines**: either configurations (``platform, cpu, mem, count``) or events (``time_us, machine_id, event, platform, cpu, mem``), of
which ADD, UPDATE and REMOVE are followed up to ``at`` seconds.

**Tasks**: rows of identical ones, with ``user``, ``cpu``, ``mem`` and ``n_tasks``: the groups of jobs, or the shapes of users at a time
with ``n_running`` among them. CPU and memory are parts of the largest machine, as published. Some rows have no request or one of 0:
these ask for nothing and are left out.

The rule that tasks of a job run on different machines (``different_machine``) is ignored, so the optimum is a relaxation; disk is not a
resource, as no table says what machines have. The tables do not say where a task runs.

Source: Reiss, Wilkes and Hellerstein, Google cluster-usage traces: format + schema (2011).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.asked import keeps_question
from fairopt.clusters.assembly import Demand, Nodes, assemble
from fairopt.clusters.imported import Import
from fairopt.clusters.shapes import SOMEWHERE, Tasks, natural
from fairopt.clusters.table_rows import TableRows
from fairopt.errors import InvalidInstance
from fairopt.instance.aggregation import number_distinct
from fairopt.tables import Column, Schema
from fairopt.trace import Trace
from fairopt.wording import exactly, plural

__all__ = ["import_google2011", "trace_google2011"]

_EVENTS = ("ADD", "UPDATE", "REMOVE")

_AMOUNTS = (Column("cpu", "number", empty=0.0), Column("mem", "number", empty=0.0))
MACHINES = Schema(
    Column("platform"),
    *_AMOUNTS,
    Column("event", default=""),
    Column("time_us", "number", default=0.0),
    Column("machine_id", default=""),
    Column("count", "number", default=1.0),
)
TASKS = Schema(
    *(Column("n_tasks", "number"), Column("user"), *_AMOUNTS),
    Column("n_running", "number", default=0.0),
    Column("first_submit_s", "number", default=0.0),
    Column("last_submit_s", "number", default=0.0),
    Column("median_run_s", "number", default=0.0, empty=0.0),
    Column("different_machine", "number", default=0.0, empty=0.0),
)
JOBS = Schema(
    *(Column("n_tasks", "number"), Column("user"), Column("job"), *_AMOUNTS),
    *(Column("first_submit_s", "number"), Column("median_run_s", "number", empty=0.0)),
)


@keeps_question
def import_google2011(
    machines: str | os.PathLike[str],
    tasks: str | os.PathLike[str],
    *,
    at: float = 0.0,
    weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    lenient: bool = False,
) -> Import:
    """Make an instance of the Google cluster of 2011.

    Parameters
    ----------
    machines, tasks : path
        CSV, or CSV compressed by gzip.
    at : float
        Seconds: for a table of events, the machines that existed at this time.
    weights : mapping, optional
        Weight by user of the trace; default 1.
    demand : {"shapes", "mean"}
        A user for each user of the trace and shape (exact), or one for each user of the trace with the mean of its tasks (approximate).
    lenient : bool
        Leave bad rows out and count them, instead of refusing the tables.

    Raises
    ------
    InvalidInstance
        With the file, line and column: what is wrong, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "machines.csv").write_text("platform,cpu,mem,count\\nP0,0.5,0.25,3835\\nP1,1,1,788\\n")
    ...     _ = Path(folder, "tasks.csv").write_text("user,cpu,mem,n_tasks\\nU1,0.02,0.01,40\\nU1,0.1,0.2,2\\nU2,0.05,0.05,9\\n")
    ...     imported = import_google2011(Path(folder, "machines.csv"), Path(folder, "tasks.csv"))
    >>> imported.instance.users, imported.instance.tasks
    (('U1/0.1 cpu 0.2 memory', 'U1/0.02 cpu 0.01 memory', 'U2'), array([ 2., 40.,  9.]))
    """
    account = Account(lenient)
    nodes = _machines(TableRows(machines, MACHINES, "machine", account), at, account)
    rows = TableRows(tasks, TASKS, "row", account)
    demands = np.column_stack([rows.numbers("cpu"), rows.numbers("mem")])
    number = rows.numbers("n_tasks")
    running = rows.numbers("n_running")
    rows.check(running <= number, "more tasks run than there are", "n_running")
    if "first_submit_s" in rows and "last_submit_s" in rows:
        forwards = rows.numbers("last_submit_s") >= rows.numbers("first_submit_s")
        rows.check(forwards, "the last is earlier than the first", "last_submit_s")
    rows.numbers("median_run_s")
    if (apart := rows.numbers("different_machine") > 0).any():
        account.note(f"{plural(number[apart].sum(), 'task')} must run on different machines, which is ignored: a relaxation")
    users = rows.filled("user", "task needs a user")
    kept = np.flatnonzero(rows.good() & (number > 0))
    account.summary |= {"rows": len(rows), "tasks": float(number[kept].sum())}
    return assemble(
        "google2011",
        nodes,
        Tasks(
            owner=[users[j] for j in kept],
            demands=demands[kept],
            number=number[kept],
            allowed=np.ones((1, len(nodes.names)), bool),
            place=np.zeros(kept.size, int),
            where=[rows.place(j) for j in kept.tolist()],
            running=[(n, SOMEWHERE, float(running[j])) for n, j in enumerate(kept) if running[j]],
            placed="n_running" in rows,
        ),
        account,
        units={"cpu": "of the largest machine", "memory": "of the largest machine"},
        own_weights=weights,
        demand=demand,
    )


def trace_google2011(tasks: str | os.PathLike[str], *, until: float = np.inf, lenient: bool = False) -> Trace:
    """Return the groups of tasks of the Google cluster as a trace, for `fairopt.simulate`.

    A row (of ``job, user, cpu, mem, n_tasks, first_submit_s, median_run_s``) is a job: its tasks are submitted at once, when the first was,
    and each runs as long as the median did; where that is not known, as they still ran, until ``until``. Rows without a request are left
    out and counted. In order of their submission, whatever the order of the table.

    Parameters
    ----------
    tasks : path
        CSV, or CSV compressed by gzip.
    until : float
        Seconds: the end of what the table is about. Where a run time is not known, it lasts until then.
    lenient : bool
        Leave bad rows out and count them, instead of refusing the table.

    Raises
    ------
    InvalidInstance
        With the file, line and column: what is wrong, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "tasks.csv").write_text(
    ...         "job,user,cpu,mem,n_tasks,first_submit_s,median_run_s\\n7,U1,0.02,0.01,40,0,300\\n8,U2,0.1,0.2,2,60,\\n9,U2,,,5,70,9\\n")
    ...     trace = trace_google2011(Path(folder, "tasks.csv"), until=3600)
    >>> trace.durations, trace.left_out[0].rpartition(": ")[2]
    (array([ 300., 3540.]), 'it asks for nothing')
    """
    account = Account(lenient)
    rows = TableRows(tasks, JOBS, "row", account)
    demands = np.column_stack([rows.numbers("cpu"), rows.numbers("mem")])
    number, submit = rows.numbers("n_tasks"), rows.numbers("first_submit_s")
    known = np.array([bool(cell) for cell in rows.text("median_run_s")], bool)
    run = np.where(known, rows.numbers("median_run_s"), np.maximum(until - submit, 0.0))
    users, jobs = rows.filled("user", "task needs a user"), rows.text("job")
    rows.check(number == np.round(number), "the number of tasks is not a whole number", "n_tasks")
    asks = (demands > 0).any(axis=1) & (number > 0)
    good = rows.good()
    for row in np.flatnonzero(good & ~asks).tolist():
        account.leave_out("row", rows.place(row), "it asks for nothing")
    kept = np.flatnonzero(good & asks)
    if not kept.size:
        raise InvalidInstance(f"{tasks}: no row has tasks that ask for resources")
    kept = kept[np.argsort(submit[kept], kind="stable")]
    seen: dict[str, int] = {}
    names = []
    for row in kept.tolist():  # a job has a row for each shape of its tasks
        seen[jobs[row]] = seen.get(jobs[row], 0) + 1
        names.append(jobs[row] if seen[jobs[row]] == 1 else f"{jobs[row]} ({seen[jobs[row]]})")
    return Trace(
        [users[row] for row in kept],
        submit[kept],
        number[kept],
        demands[kept],
        run[kept],
        jobs=names,
        resources=["cpu", "memory"],
        left_out=[f"{each.where}: {each.why}" for each in account.left_out],
    )


def _machines(table: TableRows, at: float, account: Account) -> Nodes:
    """Return the machines by configuration."""
    capacities = np.column_stack([table.numbers("cpu"), table.numbers("mem")])
    platforms = table.text("platform")
    table.require(*(("time_us", "machine_id") if "event" in table else ("count",)))
    if "event" in table:
        last = _last_events(table, at)
        counts = np.ones(len(last))
    else:
        counts = table.numbers("count")
        table.check(counts == np.round(counts), "the count is not a whole number", "count")
        last = np.flatnonzero(table.good())
        counts = counts[last]
    known = (capacities[last] > 0).any(axis=1)
    for row in last[~known].tolist():
        account.leave_out("machine", table.place(row), "has no capacity")
    last, counts = last[known], counts[known]
    account.summary["machines"] = float(counts.sum())
    codes = {platform: j for j, platform in enumerate(dict.fromkeys(platforms))}
    kind = np.array([codes[platforms[row]] for row in last], int)
    same = number_distinct([kind[:, None], capacities[last]]) if last.size else np.empty(0, int)
    first = np.unique(same, return_index=True)[1]
    names = [f"{platforms[row]} {capacities[row, 0]:.4g} cpu {capacities[row, 1]:.4g} memory" for row in last[first]]
    if len(set(names)) < len(names):  # four digits do not tell them apart
        names = [f"{platforms[row]} {float(capacities[row, 0])} cpu {float(capacities[row, 1])} memory" for row in last[first]]
    hosts = None
    if "event" in table:
        machines = table.text("machine_id")
        ids = [[machines[row] for row in last[same == kind].tolist()] for kind in range(first.size)]
        hosts = [sorted(each, key=natural) for each in ids]
    return Nodes(names, capacities[last[first]], np.asarray(np.bincount(same, weights=counts), float), hosts)


def _last_events(table: TableRows, at: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return, of every machine that there is at a time, the row of its last event that says what it has."""
    seconds, events, machines = table.numbers("time_us") / 1e6, table.text("event"), table.text("machine_id")
    ahead = np.concatenate([[True], seconds[1:] >= np.maximum.accumulate(seconds)[:-1]])
    table.check(ahead, "the time is earlier than that of the row above; sort the table by time", "time_us")
    table.check(np.isin(events, _EVENTS), f"the event must be one of {', '.join(_EVENTS)}", "event")
    present: dict[str, int] = {}
    for row in np.flatnonzero(table.good() & (seconds <= at)).tolist():
        if events[row] == "REMOVE":
            present.pop(machines[row], None)
        else:
            present[machines[row]] = row
    if not present:
        first, last = exactly(seconds[0]), exactly(seconds[-1])
        raise InvalidInstance(f"{table.place(0)}: there is no machine at {exactly(at)} s; the events go from {first} to {last} s")
    return np.array(sorted(present.values()), np.int64)
