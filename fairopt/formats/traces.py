"""Traces in files: a table with a row per job and, optionally, one with a row per event; CSV (also ``.csv.gz``) or Parquet.

Jobs, in order of submission:

==============================  ======================================================================================================
``user``                        who submits it
``submit_s``                    when it is submitted, in seconds from any starting point
``run_s``                       how long each of its tasks runs, in seconds; ``inf``: without end
``job``, optional               its name, unique; default: 1, 2, ...
``tasks``, optional             how many identical tasks it has; default 1
``queue``, optional             the queue that the job is submitted to, the same for all jobs of a user; an empty cell is the root
``requires``, optional          conditions on the attributes of its servers, as in instance files: :mod:`fairopt.formats.requirements`
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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.formats.requirements import Attributes
from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.quantities import plain
from fairopt.limits import check_array
from fairopt.tables.parquet import read_frame
from fairopt.tables.table import read_table
from fairopt.trace import Event, Trace, backwards, problems, two_queues
from fairopt.wording import did_you_mean, joined, plural

__all__ = ["read"]

_MOST_SERVERS = 1e9
_HINTS = 100  # bad rows
_YES, _NO = {"yes", "true", "1"}, {"no", "false", "0", ""}
OF_JOBS = ("job", "user", "queue", "submit_s", "tasks", "run_s", "requires", "servers", "estimate_s", "gang")

OF_EVENTS = ("time_s", "event", "name", "number")


@dataclass(slots=True)
class _Rows:
    """A table as text, the place of each row, and which rows are bad and why."""

    file: str
    columns: dict[str, list[str]]
    place: Callable[[int], str]
    number: int
    bad: dict[int, str] = field(default_factory=dict)

    def refuse(self, message: str) -> InvalidInstance:
        return InvalidInstance(f"{self.file}: {message}")

    def mark(self, wrong: Any, message: str) -> None:
        """Remember what is wrong with some rows; the first message for a row stays."""
        for row in np.flatnonzero(wrong).tolist():
            self.bad.setdefault(row, message)

    def numbers(self, column: str, empty: float, *, of_resource: bool = False) -> FloatArray:
        """Return a column as numbers; a cell that is not a number, also with a unit, makes its row bad.

        If one amount of a resource has a byte unit, then all but 0 must have one.
        """
        cells = [cell or str(empty) for cell in self.columns[column]]
        try:
            return np.array(cells, float)
        except ValueError:
            pass
        values, in_bytes, unit = np.full(self.number, np.nan), np.zeros(self.number, bool), ""
        for row, cell in enumerate(cells):
            try:
                values[row] = float(cell)
            except ValueError:
                number = plain(cell, of_resource=of_resource)
                if number is None:
                    self.bad.setdefault(row, f'{column}: expected a number, found the text "{cell}"')
                else:
                    values[row], in_bytes[row] = number, plain(cell, of_resource=False) is None
                    unit = unit or (cell if in_bytes[row] else "")
        for row in np.flatnonzero(~in_bytes & (values > 0)).tolist() if unit else ():
            self.bad.setdefault(row, f"{column}: {cells[row]} has no byte unit, but {unit} in another row has; give all of them one")
        return values


def read(path: Path, cluster: Instance | None, events: Path | None = None, *, lenient: bool) -> Trace:
    """Read a trace. The servers of the cluster, and their attributes, are what the columns ``servers`` and ``requires`` are about.

    Raises
    ------
    InvalidInstance
        With the file and line.
    """
    rows = _rows(path, "user")
    resources = [column for column in rows.columns if column not in OF_JOBS]
    for column in ("user", "submit_s", "run_s"):
        if column not in rows.columns:
            raise rows.refuse(
                f'there is no column "{column}"{did_you_mean(column, rows.columns)}; the columns are {joined(list(rows.columns), 12)}'
            )
    if not resources:
        raise rows.refuse("there is no column for a resource; add one for each, with the demand of a task")
    users = rows.columns["user"]
    names = rows.columns.get("job") or [str(row + 1) for row in range(rows.number)]
    submit, run = rows.numbers("submit_s", np.nan), rows.numbers("run_s", np.nan)
    tasks = rows.numbers("tasks", np.nan) if "tasks" in rows.columns else np.ones(rows.number)
    demands = np.column_stack([rows.numbers(resource, 0.0, of_resource=True) for resource in resources])
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
            rows.bad[row] = f'there is a job "{name}" already ({rows.place(seen[name]).rpartition(", ")[2]}); give each job a unique name'
    latest = -np.inf
    for row, when in enumerate(submit.tolist()):
        if row not in rows.bad:
            if when < latest:
                rows.bad[row] = clock
            latest = max(latest, when)
    queues = [name or None for name in rows.columns["queue"]] if "queue" in rows.columns else None
    first_queue: dict[str, str | None] = {}
    for row, queue in enumerate(queues or ()):
        if row not in rows.bad and first_queue.setdefault(users[row], queue) != queue:
            rows.bad[row] = two_queues(users[row], first_queue[users[row]], queue)
    estimates = _estimates(rows, run) if "estimate_s" in rows.columns else None
    gangs = _gangs(rows) if "gang" in rows.columns else None
    allowed = _allowed(rows, cluster)
    if rows.bad and not lenient:
        first = min(rows.bad)
        more = len(rows.bad) - 1
        also = f" (and {plural(more, 'more bad row')}; --lenient or lenient=True skips them)" if more else ""
        raise InvalidInstance(f"{rows.place(first)}: {rows.bad[first]}{also}")
    good = np.array([row for row in range(rows.number) if row not in rows.bad], np.int64)
    if not good.size:
        first = min(rows.bad)
        raise InvalidInstance(f"{path}: no row is a valid job; the first error: {rows.place(first)}: {rows.bad[first]}")
    return Trace(
        [users[row] for row in good],
        submit[good],
        tasks[good],
        demands[good],
        run[good],
        eligibility=None if allowed is None else allowed[good],
        events=[] if events is None else _events(events, {users[row] for row in good}, cluster),
        jobs=[names[row] for row in good],
        resources=resources,
        queues=None if queues is None else [queues[row] for row in good],
        estimates=None if estimates is None else estimates[good],
        gangs=None if gangs is None else gangs[good],
        left_out=[f"{rows.place(row)}: {rows.bad[row]}" for row in sorted(rows.bad)],
    )


def _estimates(rows: _Rows, run: FloatArray) -> FloatArray:
    """Return the estimates; an empty cell is the run time, or a second where that is 0."""
    given = rows.numbers("estimate_s", np.nan)
    empty = np.array([not cell for cell in rows.columns["estimate_s"]])
    with np.errstate(invalid="ignore"):
        rows.mark(~empty & ~(given > 0), "estimate_s is not a number > 0")
    return np.where(empty, np.where(run > 0, run, 1.0), given)


def _gangs(rows: _Rows) -> BoolArray:
    """Return which jobs are gangs."""
    cells = [cell.lower() for cell in rows.columns["gang"]]
    rows.mark([cell not in _YES | _NO for cell in cells], "gang must be yes or no (or true or false, 1 or 0)")
    return np.array([cell in _YES for cell in cells], bool)


def _rows(path: Path, first: str) -> _Rows:
    if path.suffix.lower() == ".parquet":
        return _parquet(path)
    table = read_table(path, "submit_s" if first == "user" else first)
    columns = {column: table.cells(column) for column in table.columns}
    return _Rows(str(path), columns, table.place, len(table.rows))


def _parquet(path: Path) -> _Rows:
    frame = read_frame(path)
    if not len(frame):
        raise InvalidInstance(f"{path}: there are no rows; there must be at least one")
    columns = {
        str(frame.columns[j]): ["" if missing else _text(value) for value, missing in zip(of.tolist(), of.isna(), strict=True)]
        for j, of in enumerate(frame.iloc[:, j] for j in range(frame.shape[1]))
    }
    return _Rows(str(path), columns, lambda row: f"{path}, row {row + 1}", len(frame))


def _text(value: object) -> str:
    return (value.decode(errors="replace") if isinstance(value, bytes) else str(value)).strip()


def _allowed(rows: _Rows, cluster: Instance | None) -> BoolArray | None:
    """Return where each job may run, (jobs, servers)."""
    requires, servers = (rows.columns.get(column) for column in ("requires", "servers"))
    if not any(requires or []) and not any(servers or []):
        return None
    if cluster is None:
        raise rows.refuse(
            "jobs say where they may run, so the servers are needed to read this table; give cluster, an instance or the path of its file"
        )
    ask = Attributes(cluster.attributes)
    position = {name: i for i, name in enumerate(cluster.servers)}
    check_array(rows.file, "jobs and servers", rows.number, cluster.n_servers, of_bytes=1)
    allowed = np.ones((rows.number, cluster.n_servers), bool)
    for row in range(rows.number):
        if requires and requires[row]:
            try:
                allowed[row] &= ask.where(requires[row])
            except InvalidInstance as error:
                rows.bad.setdefault(row, f"requires: {error}")
        if servers and servers[row]:
            named = [name.strip() for name in servers[row].split("|")]
            unknown = next((name for name in named if name not in position), None)
            if unknown is not None:
                rows.bad.setdefault(row, f'servers: there is no server "{unknown}"{_hint(rows, unknown, position)}')
            else:
                allowed[row] &= np.isin(np.arange(cluster.n_servers), [position[name] for name in named])
    return allowed


def _hint(rows: _Rows, word: str, words: Iterable[str]) -> str:
    """Return what may have been meant, for the first bad rows: nobody reads a thousand hints, and each looks at every word."""
    return did_you_mean(word, words) if len(rows.bad) < _HINTS else ""


def _events(path: Path, users: set[str], cluster: Instance | None) -> list[Event]:
    """Return the events of a table, all of which must be about these users and servers."""
    rows = _rows(path, "time_s")
    for column in OF_EVENTS[:3]:
        if column not in rows.columns:
            raise rows.refuse(f'there is no column "{column}"; the columns of events are {joined(OF_EVENTS)}')
    times = rows.numbers("time_s", np.nan)
    number = rows.numbers("number", 1.0) if "number" in rows.columns else np.ones(rows.number)
    rows.mark(~(np.isfinite(times) & (times >= 0)), "time_s is not a finite number >= 0")
    rows.mark(backwards(times), "it is earlier than the event above it; sort the events by time_s")
    rows.mark(~((number == np.round(number)) & (number >= 1) & (number < _MOST_SERVERS)), "number is not a whole number of servers >= 1")
    rows.mark(
        [kind not in ("join", "leave", "add", "remove") for kind in rows.columns["event"]], "the event must be join, leave, add or remove"
    )
    servers = None if cluster is None else set(cluster.servers)
    for row, (kind, name) in enumerate(zip(rows.columns["event"], rows.columns["name"], strict=True)):
        if kind in ("join", "leave") and name not in users:
            rows.bad.setdefault(row, f'user "{name}" submits no job{_hint(rows, name, users)}')
        elif servers is not None and kind in ("add", "remove") and name not in servers:
            rows.bad.setdefault(row, f'there are no servers "{name}"{_hint(rows, name, servers)}')
    if rows.bad:
        first = min(rows.bad)
        raise InvalidInstance(f"{rows.place(first)}: {rows.bad[first]}")
    columns = zip(times.tolist(), rows.columns["event"], rows.columns["name"], number.astype(int).tolist(), strict=True)
    return list(columns)
