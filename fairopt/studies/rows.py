"""The rows of a study in columns: a hundred thousand cells take tens of megabytes, not gigabytes.

A row is an entry of a cell. New rows are kept as they come, and become columns of Arrow once there are many, or the table is asked for.

>>> rows = Rows()
>>> rows.add(("b", 0), [{"instance": "b", "seed": 0, "entry": "drfh", "tasks": 3.0, "seconds": 0.1, "message": ""}])
>>> rows.add(("a", 0), [{"instance": "a", "seed": 0, "entry": "drfh", "tasks": None, "seconds": 0.2, "message": "failed"}])
>>> rows.frame(["a", "b"], [0], ["drfh"])[["instance", "tasks", "message"]].to_dict("list")
{'instance': ['a', 'b'], 'tasks': [nan, 3.0], 'message': ['failed', '']}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairopt.studies.cell import Key

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["MEASURES", "TEXTS", "Row", "Rows", "is_optional"]

MEASURES = ("tasks", "efficiency", "price of fairness", "smallest_share", "jain", "envy", "regret level", "regret worst", "seconds")
"""The columns of numbers of every study; a study also has a column for the use of each resource."""
TEXTS = ("instance", "entry", "kind", "against", "message")

Row: TypeAlias = dict[str, Any]

_LAST = ("seconds", "message")
_MANY = 5_000  # rows that become columns


def is_optional(column: str) -> bool:
    """Whether some instances have a column and others do not: the use of their resources, and work, where speeds differ."""
    return column == "work" or column.startswith("use of ")


class Rows:
    """The rows of cells, by key."""

    def __init__(self) -> None:
        self._columns: dict[Key, tuple[str, ...]] = {}  # that the rows of a cell have
        self._forms: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._recent: list[Row] = []
        self._tables: list[pa.Table] = []

    def __contains__(self, key: Key) -> bool:
        return key in self._columns

    def __iter__(self) -> Iterator[Key]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self._columns)

    def add(self, key: Key, rows: Sequence[Row]) -> None:
        """Take the rows of a cell."""
        self._note(key, (column for row in rows for column in row))
        self._recent.extend(rows)
        if len(self._recent) >= _MANY:
            self._settle()

    def take(self, table: pa.Table) -> None:
        """Take a table of rows; a cell has the optional columns in which one of its rows has a value."""
        names = table.column_names
        there = {name: table[name].is_valid().to_numpy() for name in names if is_optional(name)}
        keys = list(zip(table["instance"].to_pylist(), table["seed"].to_pylist(), strict=True))
        for k, key in enumerate(keys):
            columns = (name for name in names if name not in there or there[name][k])
            self._note(key, (*self._columns.get(key, ()), *columns))
        self._tables.append(table)

    def _note(self, key: Key, columns: Iterable[str]) -> None:
        form = tuple(dict.fromkeys(columns))
        self._columns[key] = self._forms.setdefault(form, form)

    def _settle(self) -> None:
        """Make columns of the rows that have come since the last time."""
        import pyarrow as pa

        rows, self._recent = self._recent, []
        arrays = {name: pa.array([row.get(name) for row in rows], _kind(name), from_pandas=True) for name in _union(map(tuple, rows))}
        self._tables.append(pa.table(arrays))

    def table(self, order: Sequence[str]) -> pa.Table:
        """Return all rows, sorted by instance, in this order, and by seed."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._recent:
            self._settle()
        table = pa.concat_tables(self._tables, promote_options="default").select(_union(dict.fromkeys(self._columns.values())))
        rank = pc.index_in(table["instance"], value_set=pa.array(list(order), pa.string()))
        by = pa.table({"rank": rank, "seed": table["seed"]})
        table = table.take(pc.sort_indices(by, [("rank", "ascending"), ("seed", "ascending")])).combine_chunks()
        self._tables = [table]
        return table

    def frame(self, names: Sequence[str], seeds: Sequence[int], entries: Iterable[str]) -> pd.DataFrame:
        """Return the rows of some instances and seeds, in the order of the names, seeds and entries; missing values are NaN."""
        frame: pd.DataFrame = self.table(names).to_pandas()
        places = [
            frame[column].map({value: j for j, value in enumerate(values)}).to_numpy(float)
            for column, values in (("entry", entries), ("seed", seeds), ("instance", names))
        ]
        order = np.lexsort(places)
        order = order[~np.isnan(np.array(places)).any(axis=0)[order]]
        forms = dict.fromkeys(form for name in names for seed in seeds if (form := self._columns.get((name, seed))) is not None)
        frame = frame.iloc[order][_union(forms)].reset_index(drop=True)
        kinds = {column: "str" if column in TEXTS else "int64" if column == "seed" else "float64" for column in frame}
        return frame.astype(kinds)


def _kind(column: str) -> pa.DataType:
    import pyarrow as pa

    return pa.string() if column in TEXTS else pa.int64() if column == "seed" else pa.float64()


def _union(forms: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the columns of all forms, in the order in which they are first there, and last what stands last in every table."""
    columns = dict.fromkeys(column for form in forms for column in form)
    return [*(column for column in columns if column not in _LAST), *(column for column in _LAST if column in columns)]
