"""Tables whose cells have types: Parquet files, pandas frames and the sheets of a workbook, as the text that a CSV file would hold.

Every number becomes the shortest text that means it exactly, so nothing is lost. A missing value (None, NaN, NA) is an empty cell, a whole
number has no decimal point, true and false are words, and a list of names is joined by ``|``.

>>> import pandas as pd
>>> table = from_frame("users", pd.DataFrame({"cpu": [0.1, 2.0], "queue": ["lab", None]}, index=["alice", "bob"]), "name")
>>> table.columns, table.rows
(['name', 'cpu', 'queue'], [['alice', '0.1', 'lab'], ['bob', '2', '']])
>>> table.place(1, "cpu")
'the frame users, row "bob", column "cpu"'
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import plain_numbers
from fairopt.tables.parquet import arrow_table, columns_of
from fairopt.tables.table import Table, check_columns
from fairopt.wording import found

__all__ = ["from_frame", "read_parquet", "table_of", "to_parquet"]


def table_of(
    file: str, first: str, columns: Sequence[object], rows: Iterable[Sequence[object]], lines: list[Any], line: str = "row"
) -> Table:
    """Return a table of values as text. It must have the column ``first``, and in a matrix (``user``) at the first place.

    Raises
    ------
    InvalidInstance
        With the place of a value that no cell can hold.
    """
    table = Table(file, [_name(file, column, j) for j, column in enumerate(columns)], [], lines, line)
    for row, values in enumerate(rows):
        table.rows.append([each if type(each) is str else _text(table, each, row, j) for j, each in enumerate(values)])
    check_columns(table, first)
    return table


def from_frame(kind: str, frame: object, first: str) -> Table:
    """Return a pandas frame, or what can be made one, as a table; its index is the column ``first`` if there is none.

    Raises
    ------
    InvalidInstance
        It is no frame, or a cell holds neither text nor a number.
    """
    if not (hasattr(frame, "columns") and hasattr(frame, "index")):
        if not hasattr(frame, "to_pandas"):
            raise InvalidInstance(
                f"{kind} is {found(frame) if frame is None else type(frame).__name__}, not a frame; give a pandas.DataFrame"
            )
        frame = frame.to_pandas()
    data: Any = frame
    file = f"the frame {kind}"
    for axis in (data.columns, data.index):
        if axis.nlevels > 1:
            raise InvalidInstance(f"{file} has labels of {axis.nlevels} levels; give it one level, for instance with reset_index()")
    columns, labels = list(data.columns), data.index.tolist()
    values: list[list[object]] = [_missing(data.iloc[:, j]) for j in range(len(columns))]
    if first not in columns and labels != list(range(len(labels))):
        columns, values = [first, *columns], [labels, *values]
    places = [f'"{label}"' if isinstance(label, str) else label for label in labels]
    return table_of(file, first, columns, zip(*values, strict=True), places)


def read_parquet(path: Path, first: str) -> Table:
    """Read a Parquet file; ``row 1`` is the first.

    Raises
    ------
    InvalidInstance
        With the file and row.
    """
    arrow = arrow_table(path)
    # pandas keeps an index without a name under this one.
    columns = [first if name == "__index_level_0__" and first not in arrow.column_names else name for name in arrow.column_names]
    if columns and first == "user" and first in columns[1:] and columns.count(first) == 1:  # as pandas puts an index, at the end
        order = sorted(range(len(columns)), key=lambda j: columns[j] != first)
        columns, arrow = [columns[j] for j in order], arrow.select(order)
    rows = zip(*columns_of(arrow, path), strict=True)
    return table_of(str(path), first, columns, rows, list(range(1, arrow.num_rows + 1)))


def to_parquet(columns: Sequence[str], values: Sequence[Sequence[object]]) -> bytes:
    """Return columns as a Parquet file: numbers where a column holds nothing else, else text; an empty text is a missing value.

    >>> to_parquet(["name", "weight"], [["a", "b"], [0.1, ""]])[:4]
    b'PAR1'
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = []
    for column in values:
        cells = [None if each == "" else each for each in column]
        kinds = {type(each) for each in cells if each is not None}
        kind = pa.int64() if kinds <= {int} and kinds else pa.float64() if kinds <= {int, float} and kinds else pa.string()
        if kind == pa.string():
            cells = [each if each is None or isinstance(each, str) else str(plain_numbers(each)) for each in cells]
        arrays.append(pa.array(cells, kind))
    page = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=list(columns)), page)
    return page.getvalue()


def _missing(column: Any) -> list[object]:
    """Return the values of a column of a frame, None for missing ones."""
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna().tolist(), strict=True)]


def _name(file: str, column: object, position: int) -> str:
    if column is None or isinstance(column, str):
        return column or ""
    if isinstance(column, int | float) and not isinstance(column, bool):
        return str(plain_numbers(column))
    raise InvalidInstance(f"{file}: the name of column {position + 1} is {found(column)}; names are text")


def _text(table: Table, value: Any, row: int, position: int) -> str:
    """Return a value as the text that means it exactly."""
    if value is None or value != value:
        return ""
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(plain_numbers(value))
    column = table.columns[position]
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        if any("|" in each or each != each.strip() for each in value) or not value:
            table.refuse('names in a list must not hold "|" or spaces around them; use the table eligibility', row, column)
        return "|".join(value)
    if type(value).__name__ in ("Decimal", "Fraction"):
        return str(value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        table.refuse(f"expected text or a number, found the date or time {value}; write it as text", row, column)
    table.refuse(f"expected text or a number, found {found(value)[:60]}", row, column)
