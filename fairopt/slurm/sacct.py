"""What ``sacct -P`` prints: a row for each job, or for each run of it, with ``|`` between the columns; or ``sacct --json``.

`COMMAND` makes a table for both uses: the average of a window (`fairopt.slurm.sacct_window`) and a history (`fairopt.slurm.sacct_log`).
With ``-D``, a job that was requeued is listed once for each run.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.clusters.json_export import Part
from fairopt.errors import InvalidInstance
from fairopt.files import read_bytes
from fairopt.files.limits import check_table
from fairopt.instance import IntArray
from fairopt.slurm.sacct_fields import notes_of_columns
from fairopt.slurm.sacct_json import json_columns
from fairopt.slurm.text import NOTHING, Record, value_of
from fairopt.wording import joined, plural

__all__ = ["COMMAND", "EMPTY", "Sacct", "read_sacct"]

COMMAND = (
    "sacct -a -X -P -D -S START -E END "
    "-o JobID,Cluster,Account,User,Partition,State,Submit,Eligible,Start,End,Reason,AllocTRES,ReqTRES,NodeList,Constraints > jobs.txt"
)
EMPTY = ("", *NOTHING)  # cells that say nothing
_FIELDS = {  # the name in the JSON of squeue of each column that a record has
    "cluster": "cluster",
    "account": "account",
    "user": "user_name",
    "partition": "partition",
    "jobid": "job_id",
    "start": "start",
    "end": "end",
    "alloctres": "tres_alloc_str",
    "reqtres": "tres_req_str",
    "nodelist": "nodes",
    "constraints": "features",
    "ntasks": "tasks",
}


@dataclass(frozen=True, slots=True)
class Sacct:
    """A table of sacct.

    Attributes
    ----------
    path : Path
    names : dict
        The name of each column in the file, by its name in small letters.
    columns : dict
        The cells of each column, by its name in small letters: object arrays (rows,) of texts without space around them.
    lines : array (rows,)
        The line of each row.
    places : tuple of str
        The place of each row, of an export in JSON; else empty.
    notes : tuple of str
        What it says that does not count (`fairopt.slurm.sacct_fields`).
    """

    path: Path
    names: dict[str, str]
    columns: dict[str, Any]
    lines: IntArray
    places: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def where(self, row: int) -> str:
        """Return the place of a row."""
        if self.places:
            return self.places[row]
        return f"{self.path}, line {int(self.lines[row])}"

    def records(self) -> list[Part]:
        """Return the rows as records with the names of the JSON of squeue."""
        known = [(_FIELDS[name], self.names[name], cells) for name, cells in self.columns.items() if name in _FIELDS]
        return [
            Record({field: (value_of(field, cells[row]), name) for field, name, cells in known}, str(self.path), int(line))
            for row, line in enumerate(self.lines)
        ]


def read_sacct(path: Path, needed: Sequence[str]) -> Sacct:
    """Read a table, or ``sacct --json``; either may be compressed by gzip.

    Raises
    ------
    InvalidInstance
        The file is empty, lacks a column that is needed, or has a line with more or fewer cells than the first.
    """
    import pandas as pd

    data = read_bytes(path)
    if data[:1000].lstrip()[:1] == b"{":
        return _of_json(data, path)
    check_table(str(path), data.count(b"\n"), data.partition(b"\n")[0].count(b"|") + 1)
    if not data.strip():
        raise InvalidInstance(f"{path}: the file is empty; export it again: {COMMAND}")
    lines = _whole_lines(data, path)
    try:
        frame = pd.read_csv(io.BytesIO(data), sep="|", dtype=str, quoting=3, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, UnicodeDecodeError, ValueError) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise InvalidInstance(f"{path}: {reason}; export it again: {COMMAND}") from None
    names = {str(column).strip().lower(): str(column).strip() for column in frame.columns}
    for column in needed:
        if column.lower() not in names:
            raise InvalidInstance(f'{path}, line 1: there is no column "{column}"; export it again: {COMMAND}')
    if not len(frame):
        raise InvalidInstance(f"{path}: there is no job; export it again: {COMMAND}")
    columns = {str(column).strip().lower(): frame[column].str.strip().to_numpy(object) for column in frame.columns}
    numbers = lines if len(lines) == len(frame) else np.arange(2, len(frame) + 2)
    return Sacct(path, names, columns, numbers, notes=(*notes_of_columns(columns, names), *_note_of_clusters(columns)))


def _note_of_clusters(columns: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note on jobs of several clusters, whose numbers and nodes may have the same names."""
    cells = columns.get("cluster")
    found = [] if cells is None else sorted({str(cell) for cell in cells.tolist()} - {*EMPTY})
    if len(found) < 2:
        return ()
    several = joined(found, 5)
    return (f"the log has jobs of the clusters {several}, which count as those of one; export one of them: sacct -M {found[0]} ...",)


def _of_json(data: bytes, path: Path) -> Sacct:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInstance(f"{path}: {error}; export it again: sacct --json") from None
    cells, places, notes = json_columns(text, path, "sacct --json")
    columns = {name: np.array(column, object) for name, column in cells.items()}
    return Sacct(
        path, {name: name for name in columns}, columns, np.arange(1, len(places) + 1), tuple(places), (*notes, *_note_of_clusters(columns))
    )


def _whole_lines(data: bytes, path: Path) -> IntArray:
    """Return the numbers of the lines below the first that are not empty; refuse those with more or fewer cells than the first."""
    text = np.frombuffer(data.rstrip(b"\r\n") + b"\n", np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    before = np.searchsorted(np.flatnonzero(text == ord("|")), ends)
    cells = np.diff(before, prepend=0) + 1
    filled = np.diff(ends, prepend=-1) > 1
    bad = np.flatnonzero((cells != cells[0]) & filled)
    if bad.size:
        what = "the line is cut off" if cells[bad[0]] < cells[0] else "a cell has the separator | in it"
        raise InvalidInstance(
            f"{path}, line {bad[0] + 1}: {what}: {plural(int(cells[bad[0]]), 'cell')} for {plural(int(cells[0]), 'column')}; "
            f"export it again: {COMMAND}"
        )
    return np.flatnonzero(filled)[1:] + 1
