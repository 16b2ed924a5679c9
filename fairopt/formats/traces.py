"""Traces in files: a table with a row per job and, optionally, one with a row per event: CSV (also ``.csv.gz``), Parquet, .xlsx or .ods.

Jobs, in order of submission:

==============================  ======================================================================================================
``user``                        who submits it
``submit_s``                    when it is submitted, in seconds from any starting point
``run_s``                       how long each of its tasks runs, in seconds; ``inf``: without end
``job``, optional               its name, unique; default: 1, 2, ...
``tasks``, optional             how many identical tasks it has; default 1
``queue``, optional             the queue that the job is submitted to, the same for all jobs of a user; an empty cell is the root
``requires``, optional          conditions on the attributes of its servers, as in instance files: :mod:`fairopt.instance.requirements`
``servers``, optional           the only servers where it may run: ``A|B``
``estimate_s``, optional        how long its user expects a task to run, in seconds > 0; an empty cell is as long as it runs
``gang``, optional              ``yes`` if all its tasks start at one instant, as those of a parallel job, else ``no`` or an empty cell
any other column                a resource: the demand of one task, in the units of the cluster (``4GiB`` is bytes); an empty cell is 0
==============================  ======================================================================================================

Events, in order of time: ``time_s``; ``event``, one of join, leave, add, remove; ``name`` of the user, or of the row of servers; and,
optional, ``number`` of servers (1).

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = Path(folder, "jobs.csv").write_text("job,user,submit_s,tasks,run_s,cpu\\na,A,0,2,60,1\\nb,B,5,1,-3,1\\n")
...     print(read(Path(folder, "jobs.csv"), None, lenient=True).left_out[0].partition(", ")[2])
line 3: run_s is not a number >= 0
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.files.limits import check_array
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.requirements import Attributes
from fairopt.tables import Column, Rows, Schema
from fairopt.tables import read as read_table
from fairopt.tables.schema import spelled
from fairopt.trace import Event, Trace, backwards, problems, two_queues
from fairopt.wording import did_you_mean

__all__ = ["read"]

_MOST_SERVERS = 1e9
_HINTS = 100  # bad rows
_YES, _NO = {"yes", "true", "1"}, {"no", "false", "0", ""}
JOBS = Schema(
    Column("user"),
    Column("submit_s", "number"),
    Column("run_s", "number"),
    Column("job", default=""),
    Column("tasks", "number", default=1.0),
    Column("queue", default=None),
    Column("requires", default=""),
    Column("servers", "names", default=None),
    Column("estimate_s", "number", default=None),
    Column("gang", default="no"),
)
EVENTS = Schema(Column("time_s", "number"), Column("event"), Column("name"), Column("number", "number", default=1.0, empty=1.0))


def read(path: Path, cluster: Instance | None, events: Path | None = None, *, lenient: bool) -> Trace:
    """Read a trace. The servers of the cluster, and their attributes, are what the columns ``servers`` and ``requires`` are about.

    Raises
    ------
    InvalidInstance
        With the file and line.
    """
    table = read_table(path, JOBS)
    rows, number = Rows(table), len(table)
    resources = [column for column in table.columns if column not in JOBS]
    if not resources:
        table.refuse("there is no column for a resource; add one for each, with the demand of a task")
    users = table.cells("user")
    names = table.cells("job") if "job" in table else [str(row + 1) for row in range(number)]
    submit, run = rows.floats("submit_s"), rows.floats("run_s")
    tasks = rows.floats("tasks")
    demands = np.column_stack([rows.floats(resource, of_resource=True) for resource in resources])
    rows.mark([not user for user in users], "the user is empty; every job needs one")
    rows.mark([not name for name in names], "the name of the job is empty; give it one, or leave the column out")
    with np.errstate(invalid="ignore"):
        rows.mark(~(run >= 0), "run_s is not a number >= 0")
    found = problems(submit, tasks, demands)
    clock = next(message for message in found if "clock" in message)
    for message, wrong in found.items():
        if message != clock:
            rows.mark(wrong, message)
    seen: dict[str, int] = {}
    for row, name in enumerate(names):
        if row not in rows.bad and seen.setdefault(name, row) != row:
            first = table.place(seen[name]).rpartition(", ")[2]
            rows.wrong(row, f'there is a job "{name}" already ({first}); give each job a unique name')
    latest = -np.inf
    for row, when in enumerate(submit.tolist()):
        if row not in rows.bad:
            if when < latest:
                rows.wrong(row, clock)
            latest = max(latest, when)
    queues = [name or None for name in table.cells("queue")] if "queue" in table else None
    first_queue: dict[str, str | None] = {}
    for row, queue in enumerate(queues or ()):
        if row not in rows.bad and first_queue.setdefault(users[row], queue) != queue:
            rows.wrong(row, two_queues(users[row], first_queue[users[row]], queue))
    estimates = _estimates(rows, run) if "estimate_s" in table else None
    gangs = _gangs(rows) if "gang" in table else None
    allowed = _allowed(rows, cluster)
    if rows.bad and not lenient:
        raise InvalidInstance(rows.told("--lenient or lenient=True skips bad rows"))
    good = np.array([row for row in range(number) if row not in rows.bad], np.int64)
    if not good.size:
        raise InvalidInstance(f"{path}: no row is a valid job; the first error: {rows.first}")
    return Trace(
        [users[row] for row in good],
        submit[good],
        tasks[good],
        demands[good],
        run[good],
        eligibility=None if allowed is None else allowed[good],
        events=[] if events is None else _events(events, {users[row] for row in good}, cluster),
        jobs=[names[row] for row in good],
        resources=resources if cluster is None else [spelled(each, cluster.resources) for each in resources],
        queues=None if queues is None else [queues[row] for row in good],
        estimates=None if estimates is None else estimates[good],
        gangs=None if gangs is None else gangs[good],
        left_out=[rows.bad[row] for row in sorted(rows.bad)],
    )


def _estimates(rows: Rows, run: FloatArray) -> FloatArray:
    """Return the estimates; an empty cell is the run time, or a second where that is 0."""
    given = rows.floats("estimate_s")
    empty = np.array([not cell for cell in rows.table.cells("estimate_s")])
    with np.errstate(invalid="ignore"):
        rows.mark(~empty & ~(given > 0), "estimate_s is not a number > 0")
    return np.where(empty, np.where(run > 0, run, 1.0), given)


def _gangs(rows: Rows) -> BoolArray:
    """Return which jobs are gangs."""
    cells = [cell.lower() for cell in rows.table.cells("gang")]
    rows.mark([cell not in _YES | _NO for cell in cells], "gang must be yes or no (or true or false, 1 or 0)")
    return np.array([cell in _YES for cell in cells], bool)


def _allowed(rows: Rows, cluster: Instance | None) -> BoolArray | None:
    """Return where each job may run, (jobs, servers)."""
    table = rows.table
    requires = table.cells("requires")
    if not any(requires) and not any(table.cells("servers")):
        return None
    servers = table.names("servers")
    if cluster is None:
        table.refuse(
            "jobs say where they may run, so the servers are needed to read this table; give cluster, an instance or the path of its file"
        )
    ask = Attributes(cluster.attributes)
    position = {name: i for i, name in enumerate(cluster.servers)}
    check_array(table.file, "jobs and servers", len(table), cluster.n_servers, of_bytes=1)
    allowed = np.ones((len(table), cluster.n_servers), bool)
    for row, (conditions, named) in enumerate(zip(requires, servers, strict=True)):
        if conditions:
            try:
                allowed[row] &= ask.where(conditions)
            except InvalidInstance as error:
                rows.wrong(row, str(error), "requires")
        if named:
            unknown = next((name for name in named if name not in position), None)
            if unknown is not None:
                rows.wrong(row, f'there is no server "{unknown}"{_hint(rows, unknown, position)}', "servers")
            else:
                allowed[row] &= np.isin(np.arange(cluster.n_servers), [position[name] for name in named])
    return allowed


def _hint(rows: Rows, word: str, words: Iterable[str]) -> str:
    """Return what may have been meant, for the first bad rows: nobody reads a thousand hints, and each looks at every word."""
    return did_you_mean(word, words) if len(rows.bad) < _HINTS else ""


def _events(path: Path, users: set[str], cluster: Instance | None) -> list[Event]:
    """Return the events of a table, all of which must be about these users and servers."""
    table = read_table(path, EVENTS)
    rows = Rows(table)
    times, number = rows.floats("time_s"), rows.floats("number")
    kinds, names = table.cells("event"), table.cells("name")
    rows.mark(~(np.isfinite(times) & (times >= 0)), "time_s is not a finite number >= 0")
    rows.mark(backwards(times), "it is earlier than the event above it; sort the events by time_s")
    rows.mark(~((number == np.round(number)) & (number >= 1) & (number < _MOST_SERVERS)), "number is not a whole number of servers >= 1")
    rows.mark([kind not in ("join", "leave", "add", "remove") for kind in kinds], "the event must be join, leave, add or remove")
    servers = None if cluster is None else set(cluster.servers)
    for row, (kind, name) in enumerate(zip(kinds, names, strict=True)):
        if kind in ("join", "leave") and name not in users:
            rows.wrong(row, f'user "{name}" submits no job{_hint(rows, name, users)}')
        elif servers is not None and kind in ("add", "remove") and name not in servers:
            rows.wrong(row, f'there are no servers "{name}"{_hint(rows, name, servers)}')
    if rows.bad:
        raise InvalidInstance(rows.told())
    return list(zip(times.tolist(), kinds, names, number.astype(int).tolist(), strict=True))
