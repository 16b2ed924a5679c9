"""A log as a plain table of jobs, of any kind of file or a pandas frame: a row for each stay of a job in the cluster.

==============================  ======================================================================================================
``user``                        who submitted the job
``submit``                      when it was submitted: seconds from any moment, or a date such as ``2026-11-22T15:02:00``
``start``                       when it started; empty: it never did
``end``                         when it ended; empty: it still ran, or waited, when the log was written
``job``, optional               its name; a job that was requeued or resized has several rows of one name; default: 1, 2, ...
``tasks``, optional             how many identical tasks it has; default 1
``queue``, optional             the queue that it was submitted to
``server``, optional            the server on which it ran: one of the hosts of the cluster, or the label of a row of servers
``requires``, optional          conditions on the attributes of its servers, as in instance files: :mod:`fairopt.instance.requirements`
``servers``, optional           the only servers where it may run: ``A|B``, named in the same way
``why``, optional               why its waiting time is excluded: held, a dependency, a limit; empty: it counts
any other column                a resource: what one task takes where it ran, in the units of the cluster; an empty cell is 0
==============================  ======================================================================================================

Rows may be in any order. ``submit_s``, ``start_s`` and ``end_s`` are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.clusters.clock import Clock
from fairopt.clusters.log_records import Records, Unjudged, distinct, row_places, unknown_server
from fairopt.errors import InvalidInstance
from fairopt.files.limits import check_array
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.requirements import Attributes
from fairopt.tables import Column, Mistakes, Schema, Table, read
from fairopt.tables.schema import spelled
from fairopt.wording import did_you_mean, joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_frame", "read_table"]

TIMES = ("submit", "start", "end")
_DATE = re.compile(r"\d{4}-?\d\d")
LOG = Schema(
    Column("user"),
    *(Column(word, "time", aliases=(f"{word}_s",)) for word in TIMES),
    Column("job", default=""),
    Column("queue", default=""),
    Column("tasks", "number", default=1.0),
    Column("server", default=""),
    Column("requires", default=""),
    Column("servers", "names", default=None),
    Column("why", default=""),
    grows=True,
    loose=True,
)


def read_table(path: Path, cluster: Instance, *, timezone: str | None = None, lenient: bool = False) -> Records:
    """Read a file.

    Raises
    ------
    InvalidInstance
        With the file and line: what is wrong, and what to do.
    """
    table = read(path, LOG, lenient=lenient, mistakes=Mistakes())
    records = _records(table, cluster, timezone=timezone, lenient=lenient)
    if table.cut:
        records.unjudged.append(Unjudged("the line is cut", 1, 0.0, table.cut))
    return records


def read_frame(frame: pd.DataFrame, cluster: Instance, name: str, *, timezone: str | None = None, lenient: bool = False) -> Records:
    """Read a frame, whose rows messages about ``name`` count from 1."""
    from fairopt.tables.frames import from_frame

    table = from_frame(name, frame, LOG, range(1, len(frame) + 1), Mistakes())
    return _records(table, cluster, timezone=timezone, lenient=lenient)


def _records(table: Table, cluster: Instance, *, timezone: str | None, lenient: bool) -> Records:
    mistakes = Mistakes() if table.mistakes is None else table.mistakes
    if lenient:
        mistakes.refuse()  # of lines that are no rows
    number = len(table)
    demands, shape = _demands(table, cluster)
    times, clock = _times(table, timezone)
    allowed, place = _allowed(table, cluster)
    with np.errstate(invalid="ignore"):
        times[1] = clock.later_of_two(times[1], times[1] < times[0])
    texts = {name: np.array(table.cells(name), object) for name in ("user", "queue", "why", "server")}
    records = Records(
        job=np.array(table.cells("job") if "job" in table else [str(row + 1) for row in range(number)], object),
        user=texts["user"],
        queue=texts["queue"],
        submit=times[0],
        start=times[1],
        end=clock.later_of_two(times[2], times[2] < times[1]),
        tasks=table.floats("tasks"),
        shape=shape,
        demands=demands,
        row=np.full(number, -1),
        place=place,
        allowed=allowed,
        why=texts["why"],
        where=table.place,
        clock=clock,
        lenient=lenient,
    )
    unreadable = np.isin(np.arange(number), list(table.wrong_rows))
    if lenient:
        records.leave_out(unreadable, "a cell cannot be read")
    else:
        records.mistakes = mistakes
    if unreadable.all():
        mistakes.refuse()
    records.keep(~unreadable)
    if "server" in table:
        _servers(records, texts["server"][~unreadable], cluster)
    return records


def _demands(table: Table, cluster: Instance) -> tuple[FloatArray, IntArray]:
    """Return the distinct demands, in the order of the resources of the cluster, and the row of each record in them."""
    resources = {column: spelled(column, cluster.resources) for column in table.columns if column not in LOG}
    if not resources:
        table.refuse("there is no column for a resource; add one for each, with the demand of a task")
    for column, resource in resources.items():
        if list(resources.values()).count(resource) > 1:
            table.wrong(None, f'another column is the resource "{resource}", too; remove one', column)
        elif resource not in cluster.resources:
            table.wrong(
                None,
                f'the column "{resource}" is no resource of the cluster{did_you_mean(resource, cluster.resources)}; '
                f"it has {joined(cluster.resources)}",
            )
    if table.mistakes is not None:
        table.mistakes.refuse()
    values = np.zeros((len(table), cluster.n_resources))
    for column, resource in resources.items():
        values[:, cluster.resources.index(resource)] = table.floats(column, of_resource=True)
    return distinct(values)


def _times(table: Table, timezone: str | None) -> tuple[list[FloatArray], Clock]:
    """Return the three columns of times, all of them seconds or all of them dates."""
    numbers, other = map(list, zip(*(_seconds(table, column) for column in TIMES), strict=True))
    if not any(rows.any() for rows in other):
        return numbers, Clock()
    columns = [table.cells(column) for column in TIMES]  # of the whole table: not once for each row
    texts = [cells[row] for cells, rows in zip(columns, other, strict=True) for row in np.flatnonzero(rows).tolist()]
    any_seconds = not np.isnan(numbers).all()
    if not np.isnan(numbers[0]).all() or (any_seconds and not any(map(_DATE.match, texts))):  # seconds, but for some
        for column, rows in zip(TIMES, other, strict=True):
            for row in np.flatnonzero(rows).tolist():
                table.wrong(row, f'"{table.cells(column)[row][:40]}" is not a number of seconds, and other times are', column)
        return numbers, Clock()
    clock = Clock.dates(timezone)
    return [_dates(table, column, clock) for column in TIMES], clock


def _dates(table: Table, column: str, clock: Clock) -> FloatArray:
    """Return a column of dates as seconds, nan where a cell is empty or no date."""
    dates = [cell or None for cell in table.cells(column)]
    for row in _no_dates(list(dates), clock):
        message = f'"{str(dates[row])[:40]}" is neither a number of seconds nor a date such as 2026-11-22T15:02:00'
        table.wrong(row, message, column)
        dates[row] = None
    try:
        return clock.seconds(dates)
    except (ValueError, TypeError):
        table.refuse("some dates have a time zone and others have none; give one to all of them, or to none", None, column)


def _no_dates(dates: Sequence[str | None], clock: Clock, start: int = 0) -> Iterator[int]:
    """Yield the positions of texts that are no dates: of a part that cannot be read, in its halves."""
    try:
        clock.seconds(dates)
    except (ValueError, TypeError):
        middle = len(dates) // 2
        if not middle:
            yield start
        else:
            yield from _no_dates(dates[:middle], clock, start)
            yield from _no_dates(dates[middle:], clock, start + middle)


def _seconds(table: Table, column: str) -> tuple[FloatArray, BoolArray]:
    """Return the numbers of a column of times, nan where a cell is none, and which rows have a time nevertheless."""
    import pandas as pd

    values = table.values(column)
    numbers = values.astype(float) if isinstance(values, np.ndarray) else table.decimals(column)
    if numbers is not None:
        return numbers, np.zeros(len(table), bool)
    cells = table.plain(column)
    numbers = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").to_numpy(float)
    return numbers, np.isnan(numbers) & np.array([bool(cell) for cell in cells])


def _allowed(table: Table, cluster: Instance) -> tuple[BoolArray, IntArray]:
    """Return the places where records may run, and the place of each."""
    import pandas as pd

    if "requires" not in table and "servers" not in table:
        return np.zeros((0, cluster.n_servers), bool), np.full(len(table), -1)
    code, found = pd.factorize(pd.Series(list(zip(table.cells("requires"), table.cells("servers"), strict=True))))
    ask = Attributes(cluster.attributes)
    check_array(table.file, "kinds of jobs and servers", len(found), cluster.n_servers, of_bytes=1)
    allowed, first = np.ones((len(found), cluster.n_servers), bool), np.unique(code, return_index=True)[1]
    names_of = table.names("servers")
    for j, (conditions, _) in enumerate(found):
        row = int(first[j])
        if conditions:
            try:
                allowed[j] &= ask.where(conditions)
            except InvalidInstance as error:
                table.wrong(row, str(error), "requires")
        if names_of[row]:
            known, unknown = row_places(cluster, names_of[row], rows=True)
            if unknown:
                table.wrong(row, f'there is no server "{unknown[0]}"{did_you_mean(unknown[0], cluster.servers)}', "servers")
            allowed[j] &= np.isin(np.arange(cluster.n_servers), list(known.values()))
    return allowed, np.asarray(code, np.int64)


def _servers(records: Records, names: Any, cluster: Instance) -> None:
    """Read where records ran."""
    import pandas as pd

    code, found = pd.factorize(names)
    known, unknown = row_places(cluster, [str(name) for name in found if name], rows=True)
    row = np.array([known.get(str(name), -1) for name in found], np.int64)
    bad = np.isin(code, [j for j, name in enumerate(found) if str(name) in set(unknown)])
    records.row = row[code]
    records.keep(records.refuse(bad, lambda n: unknown_server(str(names[n]), cluster)))
