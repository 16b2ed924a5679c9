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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.files.stores import Pace
from fairopt.files.stores import Store as Stored
from fairopt.studies.cell import Key
from fairopt.studies.rows import MEASURES, TEXTS, Row, Rows, is_optional
from fairopt.tables.parquet import arrow_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Store", "Study", "output_file", "read_study", "write_study"]

_NAME = "study.parquet"
_KEY = b"fairopt.study"
_LEAST = 1.0  # least number of seconds between two writes
_PART = 0.02  # a killed run loses at most this fraction of the time so far
_MOST = 8.0  # or this many seconds
_EFFORT = 20  # within these bounds, the time between two writes is at least this multiple of the time of one
_MOST_SEEDS = 100_000_000  # in a file: they are counted one by one
_LARGEST = 1e150  # of a number: its square is a number, too


def output_file(output: Path, *, create: bool = True) -> Path:
    """Return the path of the file: the output itself if it ends in .parquet, else study.parquet in a folder.

    Parameters
    ----------
    output : path
    create : bool
        Whether to create the folder. `write_study` creates one that is not there.

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
    if path.parent == output and create:
        _create(output)
    folder = path.parent if path == output else output.parent  # which must be there
    if not folder.is_dir():
        raise InvalidInstance(f"{path} cannot be written: there is no folder {folder}; make it first")
    return path


def _create(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidInstance(f"the folder {folder} cannot be made: {error.strerror or error}") from error


class Store:
    """Rows by cell, on disk if there is a path. As a context manager, it locks the file against other writers.

    Attributes
    ----------
    request : dict or None
        The request that the file answers; None: there is no file yet.
    rows : Rows
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.request: dict[str, Any] | None = None
        self.rows = Rows()
        self._order: Sequence[str] = ()
        self._read_rows: list[tuple[str, int, str, str]] = []  # that the request has not been compared with
        self._changed = False
        self._pace = Pace(_LEAST, _EFFORT, _PART, _MOST, at_once=True)
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
        there: dict[Key, list[str]] = {}
        for instance, seed, entry, kind in self._read_rows:
            there.setdefault((instance, seed), []).append(entry)
            if kind not in kinds.get(entry, {kind}):
                raise _damaged(self.path, f"{kind!r} is no kind of {entry}")
        for (instance, seed), entries in there.items():
            if instance not in request["instances"] or set(entries) != kinds.keys() or len(entries) != len(kinds):
                raise _damaged(self.path, f"its rows of {instance}, seed {seed}, are not those of its question")
        self._read_rows = []
        self._changed |= request != self.request and len(self.rows) > 0
        self.request = request
        self._order = order

    def add(self, cell: Key, rows: Sequence[Row]) -> None:
        """Take the rows of a cell. Write the file now, or a little later if the last write was a moment ago."""
        with self._guard:
            self.rows.add(cell, rows)
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
        with self._pace.write():
            self._store.write(self.path.name, _packed(self.rows, self.request or {}, self._order))
        self._changed = False

    def _read(self, path: Path) -> None:
        self.request, checked = _read(path)
        self._read_rows = list(zip(*(checked[name].to_pylist() for name in ("instance", "seed", "entry", "kind")), strict=True))
        self.rows.take(checked)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """A file of a study: its request, its rows, and the entries of each of its cells."""

    path: Path
    request: dict[str, Any]
    rows: Rows
    entries: tuple[str, ...]


def read_study(path: Path) -> Study:
    """Read the file of a study, which may be written meanwhile.

    Raises
    ------
    InvalidInstance
        It is none, or damaged; or it was written before parts had their names in it.
    """
    request, table = _read(path)
    if not {"part", "seeds"} <= request.keys():
        raise InvalidInstance(f"{path} was written by an earlier version of fairopt, which cannot be joined; compute it again")
    entries: dict[Key, tuple[str, ...]] = {}
    for instance, seed, entry in zip(*(table[name].to_pylist() for name in ("instance", "seed", "entry")), strict=True):
        entries[instance, seed] = (*entries.get((instance, seed), ()), entry)
    if len(set(entries.values())) > 1 or not {name for name, _ in entries} <= set(request["order"]):
        raise _damaged(path, "its rows are not those of its question")
    rows = Rows()
    rows.take(table)
    return Study(path, request, rows, next(iter(entries.values()), ()))


def write_study(path: Path, rows: Rows, request: Mapping[str, Any], order: Sequence[str]) -> None:
    """Write the file of a study.

    Raises
    ------
    InvalidInstance
        It cannot be written, or a study is writing it.
    """
    _create(path.parent)
    store = Stored(path.parent)
    with store.writing(path.name, "study", "give another output"):
        store.write(path.name, _packed(rows, request, order))


def _packed(rows: Rows, request: Mapping[str, Any], order: Sequence[str]) -> bytes:
    from pyarrow import parquet

    text = json.dumps(request, ensure_ascii=False, sort_keys=True)
    buffer = io.BytesIO()
    parquet.write_table(rows.table(order).replace_schema_metadata({_KEY: text.encode()}), buffer)
    return buffer.getvalue()


def _read(path: Path) -> tuple[dict[str, Any], pa.Table]:
    table = arrow_table(path)
    held: Mapping[bytes, bytes] = table.schema.metadata or {}
    if _KEY not in held:
        raise InvalidInstance(f"{path} is a Parquet file, but not of a study; give another file")
    return _request(held[_KEY], path), _checked(table, path)


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
        and _is_part(request.get("part"))
        and _are_runs(request.get("seeds", []))
    ):
        raise _damaged(path, "its question is of another form")
    return dict(request)


def _is_part(part: Any) -> bool:
    return part is None or (isinstance(part, list) and _are_runs([part]) and part[0] >= 1)


def _are_runs(runs: Any) -> bool:
    """Whether these are pairs of whole numbers, the first not above the second, and not more numbers than a study may have."""
    pairs = isinstance(runs, list) and all(isinstance(run, list) and len(run) == 2 and all(type(end) is int for end in run) for run in runs)
    return (
        pairs and all(0 <= first <= last < 2**63 for first, last in runs) and sum(last - first + 1 for first, last in runs) <= _MOST_SEEDS
    )


def _checked(table: pa.Table, path: Path) -> pa.Table:
    """Return a table whose columns and values are those that a study writes."""
    import pyarrow as pa
    from pyarrow import types

    names = table.column_names
    columns: dict[str, Any] = {}
    for name in dict.fromkeys((*TEXTS, "seed", *MEASURES, *names)):
        if name not in names:
            raise _damaged(path, f"it has no column {name}")
        kind = table.schema.field(name).type
        if name in TEXTS:
            good = types.is_string(kind) or types.is_large_string(kind)
        else:
            good = types.is_integer(kind) if name == "seed" else name in MEASURES or is_optional(name)
            good = good and (types.is_integer(kind) or types.is_floating(kind))
        if not good:
            raise _damaged(path, f"its column {name} holds {kind}")
        if name in (*TEXTS, "seed") and table[name].null_count:
            raise _damaged(path, f"a row has no {name}")
        try:
            columns[name] = table[name].cast(pa.string() if name in TEXTS else pa.int64() if name == "seed" else pa.float64())
        except pa.ArrowInvalid:
            raise _damaged(path, f"its column {name} holds numbers that are too large") from None
        if name not in TEXTS:
            numbers = columns[name].drop_null().to_numpy()
            large = numbers[np.abs(numbers) > _LARGEST]
            if large.size:
                raise _damaged(path, f"a row has the number {large[0]:g} in the column {name}")
    return pa.table({name: columns[name] for name in names})
