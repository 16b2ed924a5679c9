"""The results of a study in one Parquet file. A killed run leaves a complete file, and the next run continues from it.

A row is an entry of a cell. A cell is computed at once and named by an instance and a seed. Each write replaces the whole file, so the file
is a sorted table at any moment, and every Parquet reader understands it. Writes are rare enough to take a small part of the time. The
metadata of the file hold the *request* (plain data), so results of another request are never added.

Nothing of a file is believed before it is checked (`_request`, `_rows`): it may come from somebody else. A file with anything that no study
writes is refused as a whole.

Only one process writes: `fairopt.files.stores` has the lock, and when to write.
"""

from __future__ import annotations

import contextlib
import io
import json
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.files.stores import Pace
from fairopt.files.stores import Store as Stored
from fairopt.tables.parquet import arrow_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEASURES", "Key", "Store", "frame_of", "output_file"]

MEASURES = ("tasks", "efficiency", "price of fairness", "smallest_share", "jain", "envy", "regret level", "regret worst", "seconds")
"""The columns of numbers of every study; a study also has a column for the use of each resource."""

Key: TypeAlias = tuple[str, int]  # instance and seed of a cell
Row: TypeAlias = dict[str, Any]

_NAME = "study.parquet"
_KEY = b"fairopt.study"
_LEAST = 1.0  # least number of seconds between two writes
_PART = 0.02  # a killed run loses at most this fraction of the time so far
_EFFORT = 20  # the time between two writes is at least this multiple of the time of one
_TEXTS = ("instance", "entry", "kind", "against", "message")
_LARGEST = 1e150  # of a number: its square is a number, too
_LAST = ("seconds", "message")


def output_file(output: Path) -> Path:
    """Return the path of the file: the output itself if it ends in .parquet, else study.parquet in a folder, which is created.

    Raises
    ------
    InvalidInstance
        The path is a file of another kind, or its folder does not exist.
    """
    if output.is_dir() or (output.suffix == "" and not output.exists()):
        path = output / _NAME
    elif output.suffix.lower() == ".parquet":
        path = output
    else:
        raise InvalidInstance(f"{output}: a study writes Parquet; give a name that ends in .parquet, or a folder")
    if path.is_dir():
        raise InvalidInstance(f"{path} is a folder, where the file should be; give another output")
    try:
        if path.parent == output:
            output.mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidInstance(f"the folder {output} cannot be made: {error.strerror or error}") from error
    if not path.parent.is_dir():
        raise InvalidInstance(f"{path} cannot be written: there is no folder {path.parent}; make it first")
    return path


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as a table with columns of texts, whole seeds and numbers; missing values are NaN.

    >>> frame_of([{"instance": "a", "seed": 0, "entry": "drfh", "seconds": 0.1, "jain": None}]).to_dict("records")
    [{'instance': 'a', 'seed': 0, 'entry': 'drfh', 'jain': nan, 'seconds': 0.1}]
    """
    import pandas as pd

    rows = list(rows)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    columns = [*(column for column in columns if column not in _LAST), *(column for column in _LAST if column in columns)]
    frame = pd.DataFrame(rows, columns=columns)
    kinds = {column: "str" if column in _TEXTS else "int64" if column == "seed" else "float64" for column in columns}
    return frame.astype(kinds)


class Store:
    """Rows by cell, on disk if there is a path. As a context manager, it locks the file against other writers.

    Attributes
    ----------
    request : dict or None
        The request that the file answers; None: there is no file yet.
    rows : dict
        The rows of each cell.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.request: dict[str, Any] | None = None
        self.rows: dict[Key, list[Row]] = {}
        self._order: dict[str, int] = {}
        self._changed = False
        self._pace = Pace(_LEAST, _EFFORT, _PART, at_once=True)
        self._guard = threading.RLock()
        self._timer: threading.Timer | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Store:
        if self.path is None:
            return self
        self._store = Stored(self.path.parent)
        with contextlib.ExitStack() as stack:  # releases the lock if the file is refused
            stack.enter_context(self._store.writing(self.path.name, "study", "give another output"))
            if self.path.exists():
                self._read(self.path)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with self._stack, self._guard:
            if self._timer is not None:
                self._timer.cancel()
            self.write()

    def ask(self, request: dict[str, Any], order: Sequence[str], kinds: Mapping[str, Collection[str]]) -> None:
        """Set the request that the rows answer, the order of the instances, and the entries of each cell with what each may be.

        Raises
        ------
        InvalidInstance
            The rows are not of such a study.
        """
        for (instance, seed), rows in self.rows.items():
            if instance not in request["instances"] or {row["entry"] for row in rows} != kinds.keys() or len(rows) != len(kinds):
                raise _damaged(self.path, f"its rows of {instance}, seed {seed}, are not those of its question")
            for row in rows:
                if row["kind"] not in kinds[row["entry"]]:
                    raise _damaged(self.path, f"{row['kind']!r} is no kind of {row['entry']}")
        self._changed |= request != self.request and bool(self.rows)
        self.request = request
        self._order = {name: j for j, name in enumerate(order)}

    def add(self, cell: Key, rows: list[Row]) -> None:
        """Take the rows of a cell. Write the file now, or a little later if the last write was a moment ago."""
        with self._guard:
            self.rows[cell] = rows
            self._changed = True
            now, due = time.monotonic(), self._pace.due
            if now >= due:
                self.write()
            elif self.path is not None and self._timer is None:  # the next cell may take an hour
                self._timer = threading.Timer(due - now, self._write_late)
                self._timer.daemon = True
                self._timer.start()

    def _write_late(self) -> None:
        with self._guard, contextlib.suppress(InvalidInstance):  # the next write raises it again
            self._timer = None
            self.write()

    def write(self) -> None:
        """Replace the file if there are new rows or a new request."""
        if self.path is None or not self._changed:
            return
        import pyarrow
        from pyarrow import parquet

        with self._pace.write():
            cells = sorted(self.rows, key=lambda cell: (self._order.get(cell[0], len(self._order)), cell))
            table = pyarrow.Table.from_pandas(frame_of(row for cell in cells for row in self.rows[cell]), preserve_index=False)
            text = json.dumps(self.request, ensure_ascii=False, sort_keys=True)
            buffer = io.BytesIO()
            parquet.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), _KEY: text.encode()}), buffer)
            self._store.write(self.path.name, buffer.getvalue())
        self._changed = False

    def _read(self, path: Path) -> None:
        table = arrow_table(path)
        held: Mapping[bytes, bytes] = table.schema.metadata or {}
        if _KEY not in held:
            raise InvalidInstance(f"{path} is a Parquet file, but not of a study; give another output")
        self.request = _request(held[_KEY], path)
        for row in _rows(table, path):
            self.rows.setdefault((row["instance"], row["seed"]), []).append(row)


def _damaged(path: Path | None, why: str) -> InvalidInstance:
    return InvalidInstance(f"{path} is a Parquet file, but not of a study: {why}; delete it, or give another output")


def _request(text: bytes, path: Path) -> dict[str, Any]:
    """Return the request that a file answers, of the form that `fairopt.studies.grid` gives it."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged(path, "its question is no JSON") from None
    instances = request.get("instances") if isinstance(request, dict) else None
    if not (
        isinstance(instances, dict)
        and all(isinstance(each, dict) and each.keys() == {"drawn", "fingerprint"} for each in instances.values())
        and all(each["drawn"] is None or (type(each["drawn"]) is int and 0 <= each["drawn"] < 2**63) for each in instances.values())
        and all(isinstance(each["fingerprint"], str) for each in instances.values())
        and isinstance(request.get("order"), list)
        and all(isinstance(name, str) for name in request["order"])
        and isinstance(request.get("entries"), dict)
    ):
        raise _damaged(path, "its question is of another form")
    return dict(request)


def _rows(table: Any, path: Path) -> Iterator[Row]:
    """Yield the rows of a table whose columns and values are those that a study writes."""
    from pyarrow import types

    names = table.column_names
    for name in dict.fromkeys((*_TEXTS, "seed", *MEASURES, *names)):
        if name not in names:
            raise _damaged(path, f"it has no column {name}")
        kind = table.schema.field(name).type
        if name in _TEXTS:
            good = types.is_string(kind) or types.is_large_string(kind)
        else:
            good = types.is_integer(kind) if name == "seed" else name in MEASURES or name.startswith("use of ")
            good = good and (types.is_integer(kind) or types.is_floating(kind))
        if not good:
            raise _damaged(path, f"its column {name} holds {kind}")
    for read in table.to_pylist():
        # A row has no value in the columns of resources of other instances.
        row = {name: value for name, value in read.items() if value is not None or not name.startswith("use of ")}
        for name, value in row.items():
            if value is None and name in (*_TEXTS, "seed"):
                raise _damaged(path, f"a row has no {name}")
            if isinstance(value, int | float) and abs(value) > _LARGEST:
                raise _damaged(path, f"a row has the number {value:g} in the column {name}")
        yield row
