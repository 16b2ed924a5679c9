"""A log as a plain table of jobs, CSV (also ``.csv.gz``) or Parquet, or as a pandas frame: a row for each stay of a job in the cluster.

==============================  ======================================================================================================
``user``                        who submitted the job
``submit``                      when it was submitted: seconds from any moment, or a date such as ``2026-11-22T15:02:00``
``start``                       when it started; empty: it never did
``end``                         when it ended; empty: it still ran, or waited, when the log was written
``job``, optional               its name; a job that was requeued or resized has several rows of one name; default: 1, 2, ...
``tasks``, optional             how many identical tasks it has; default 1
``queue``, optional             the queue that it was submitted to
``server``, optional            the server on which it ran: one of the hosts of the cluster, or the label of a row of servers
``requires``, optional          conditions on the attributes of its servers, as in instance files: :mod:`fairopt.formats.requirements`
``servers``, optional           the only servers where it may run: ``A|B``, named in the same way
``why``, optional               why its waiting time is excluded: held, a dependency, a limit; empty: it counts
any other column                a resource: the demand of one task, in the units of the cluster; an empty cell is 0
==============================  ======================================================================================================

Rows may be in any order. ``submit_s``, ``start_s`` and ``end_s`` are read as well.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.clusters.clock import Clock
from fairopt.clusters.log_records import Records, Unjudged, distinct, row_places, unknown_server
from fairopt.errors import InvalidInstance
from fairopt.files import read_bytes
from fairopt.formats.parquet import read_frame as read_parquet
from fairopt.formats.quantities import plain
from fairopt.formats.requirements import Attributes
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.limits import check_array, check_table
from fairopt.wording import did_you_mean, joined

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_frame", "read_table"]

TIMES = ("submit", "start", "end")
OWN = ("job", "user", "queue", "tasks", "server", "requires", "servers", "why")


def read_table(path: Path, cluster: Instance, *, timezone: str | None = None, lenient: bool = False) -> Records:
    """Read a file.

    Raises
    ------
    InvalidInstance
        With the file and line: what is wrong, and what to do.
    """
    import pandas as pd

    if path.name.lower().endswith(".parquet"):
        frame = read_parquet(path)
        return read_frame(frame, cluster, str(path), timezone=timezone, lenient=lenient, first=1)
    data = read_bytes(path)
    check_table(str(path), data.count(b"\n"), data.partition(b"\n")[0].count(b",") + 1)
    cut = _cut(data)
    if cut is not None and not lenient:
        raise InvalidInstance(f"{path}, {cut}; write the log again, or leave the line out with lenient=True or --lenient")
    if cut is not None:
        data = data[: data.rindex(b"\n") + 1]
    texts = {name: str for name in (*OWN, *TIMES, *(f"{word}_s" for word in TIMES)) if name != "tasks"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a line with more cells than the first
            options: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "skipinitialspace": True, "index_col": False}
            frame = pd.read_csv(io.BytesIO(data), dtype=texts, **options)
    except pd.errors.EmptyDataError:
        raise InvalidInstance(f"{path}: the file is empty; a log has a row for each job") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning, UnicodeDecodeError, ValueError) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise InvalidInstance(f"{path}: {reason}; each line has one cell for each column of the first line") from None
    records = read_frame(frame, cluster, str(path), timezone=timezone, lenient=lenient, first=2)
    if cut is not None:
        records.unjudged.append(Unjudged("the line is cut", 1, 0.0, f"{path}, {cut.partition(':')[0]}"))
    return records


def _cut(data: bytes) -> str | None:
    """Return which line is cut, if the last one is: it does not end, and has fewer cells than the first.

    >>> _cut(b"user,submit,cpu\\nA,0,1\\nB,5")
    'line 3: the line is cut: it has 2 of 3 cells'
    """
    lines = data.splitlines()
    if len(lines) < 2 or data.endswith((b"\n", b"\r")) or b'"' in lines[-1]:
        return None
    there, all_ = (line.count(b",") + 1 for line in (lines[-1], lines[0]))
    return f"line {len(lines)}: the line is cut: it has {there} of {all_} cells" if there < all_ else None


def read_frame(
    frame: pd.DataFrame,
    cluster: Instance,
    name: str,
    *,
    timezone: str | None = None,
    lenient: bool = False,
    first: int = 1,
) -> Records:
    """Read a frame; ``first`` is the number of its first row in messages about ``name``."""
    word = "line" if first == 2 else "row"
    frame = frame.rename(columns={f"{column}_s": column for column in TIMES if column not in frame}).reset_index(drop=True)
    frame.columns = [str(column).strip() for column in frame.columns]

    def where(row: int) -> str:
        return f"{name}, {word} {row + first}"

    for column in ("user", "submit", "start", "end"):
        if column not in frame:
            hint = did_you_mean(column, frame.columns)
            raise InvalidInstance(f'{name}: there is no column "{column}"{hint}; the columns are {joined(list(frame.columns), 12)}')
    if not len(frame):
        raise InvalidInstance(f"{name}: there is no job; a log has a row for each")
    resources = [column for column in frame.columns if column not in (*OWN, *TIMES)]
    demands, shape = _demands(frame, resources, cluster, name, where)
    times, clock = _times(frame, timezone, where)
    allowed, place = _allowed(frame, cluster, where)
    number = len(frame)
    records = Records(
        job=_texts(frame["job"]) if "job" in frame else np.array([str(row + 1) for row in range(number)], object),
        user=_texts(frame["user"]),
        queue=_texts(frame["queue"]) if "queue" in frame else np.full(number, "", object),
        submit=times[0],
        start=times[1],
        end=clock.later_of_two(times[2], times[2] < times[1]),
        tasks=_numbers(frame["tasks"], where, False) if "tasks" in frame else np.ones(number),
        shape=shape,
        demands=demands,
        row=np.full(number, -1),
        place=place,
        allowed=allowed,
        why=_texts(frame["why"]) if "why" in frame else np.full(number, "", object),
        where=where,
        clock=clock,
        lenient=lenient,
    )
    if "server" in frame:
        _servers(records, _texts(frame["server"]), cluster)
    return records


def _texts(column: pd.Series) -> Any:
    return column.astype(object).where(column.notna(), "").astype(str).str.strip().to_numpy(object)


def _numbers(column: pd.Series, where: Any, of_resource: bool) -> FloatArray:
    """Return a column as numbers, with units."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(float, na_value=np.nan))
    values = np.full(len(column), np.nan)
    for text, rows in column.astype(str).where(column.notna(), "").groupby(column.astype(str).where(column.notna(), "")).indices.items():
        word = str(text).strip()
        try:
            number = float(word) if word else np.nan
        except ValueError:
            found = plain(word, of_resource=of_resource)
            if found is None:
                raise InvalidInstance(f'{where(int(rows[0]))}: {column.name}: expected a number, found the text "{word}"') from None
            number = found
        values[rows] = number
    return values


def _demands(frame: pd.DataFrame, resources: list[str], cluster: Instance, name: str, where: Any) -> tuple[FloatArray, IntArray]:
    """Return the distinct demands, in the order of the resources of the cluster, and the row of each record in them."""
    for resource in resources:
        if resource not in cluster.resources:
            raise InvalidInstance(
                f'{name}: the column "{resource}" is no resource of the cluster{did_you_mean(resource, cluster.resources)}; '
                f"it has {joined(cluster.resources)}"
            )
    if not resources:
        raise InvalidInstance(f"{name}: there is no column for a resource; add one for each, with the demand of a task")
    values = np.zeros((len(frame), cluster.n_resources))
    for resource in resources:
        column = _numbers(frame[resource], where, True)
        values[:, cluster.resources.index(resource)] = np.where(np.isnan(column), 0.0, column)
    return distinct(values)


def _times(frame: pd.DataFrame, timezone: str | None, where: Any) -> tuple[list[FloatArray], Clock]:
    """Return the three columns of times, all of them seconds or all of them dates."""
    import pandas as pd

    numbers = [pd.to_numeric(frame[column], errors="coerce") for column in TIMES]
    missing = [frame[column].isna() for column in TIMES]
    if all((number.notna() | empty).all() for number, empty in zip(numbers, missing, strict=True)):
        dated = any(pd.api.types.is_datetime64_any_dtype(frame[column]) for column in TIMES)
        if not dated:
            return [np.asarray(number, float) for number in numbers], Clock()
    if (numbers[0].notna() & ~missing[0]).any():  # seconds, but for some
        for column, number, empty in zip(TIMES, numbers, missing, strict=True):
            for row in np.flatnonzero(number.isna() & ~empty)[:1]:
                text = str(frame[column].iloc[row])[:40]
                raise InvalidInstance(f'{where(int(row))}: {column}: "{text}" is not a number of seconds, and other times are')
    clock = Clock.dates(timezone)
    found = []
    for column in TIMES:
        texts = frame[column].where(frame[column].notna(), None)
        try:
            found.append(clock.seconds(texts))
        except (ValueError, TypeError):
            for row, text in enumerate(texts):
                try:
                    clock.seconds([text])
                except (ValueError, TypeError):
                    raise InvalidInstance(
                        f'{where(row)}: {column}: "{str(text)[:40]}" is neither a number of seconds nor a date such as 2026-11-22T15:02:00'
                    ) from None
    return found, clock


def _allowed(frame: pd.DataFrame, cluster: Instance, where: Any) -> tuple[BoolArray, IntArray]:
    """Return the places where records may run, and the place of each."""
    import pandas as pd

    columns = [column for column in ("requires", "servers") if column in frame]
    if not columns:
        return np.zeros((0, cluster.n_servers), bool), np.full(len(frame), -1)
    texts = [_texts(frame[column]) for column in columns]
    code, found = pd.factorize(pd.Series(list(zip(*texts, strict=True))))
    ask = Attributes(cluster.attributes)
    check_array(where(0).partition(", ")[0], "kinds of jobs and servers", len(found), cluster.n_servers, of_bytes=1)
    allowed, first = np.ones((len(found), cluster.n_servers), bool), np.unique(code, return_index=True)[1]
    for j, cells in enumerate(found):
        row = int(first[j])
        for column, text in zip(columns, cells, strict=True):
            if text and column == "requires":
                try:
                    allowed[j] &= ask.where(text)
                except InvalidInstance as error:
                    raise InvalidInstance(f"{where(row)}: requires: {error}") from None
            elif text:
                names = [name.strip() for name in text.split("|")]
                known, unknown = row_places(cluster, names, rows=True)
                if unknown:
                    raise InvalidInstance(
                        f'{where(row)}: servers: there is no server "{unknown[0]}"{did_you_mean(unknown[0], cluster.servers)}'
                    )
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
