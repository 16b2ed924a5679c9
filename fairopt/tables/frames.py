"""A pandas frame, or what can be made one, as a table.

>>> import pandas as pd
>>> from fairopt.tables.schema import Column
>>> frame = pd.DataFrame({"cpu": [0.1, 2.0], "queue": ["lab", None]}, index=["alice", "bob"])
>>> table = from_frame("the frame users", frame, Schema(Column("name")))
>>> table.columns, table.raw("cpu"), table.raw("queue")
(['name', 'cpu', 'queue'], ['0.1', '2'], ['lab', ''])
>>> table.place(1, "cpu")
'the frame users, row "bob", column "cpu"'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.tables.mistakes import Mistakes
from fairopt.tables.schema import Schema
from fairopt.tables.table import Table
from fairopt.tables.values import Values
from fairopt.wording import found

__all__ = ["from_frame"]


def from_frame(file: str, frame: object, schema: Schema, lines: Sequence[Any] | None = None, mistakes: Mistakes | None = None) -> Table:
    """Return a frame as a table; its index is the first column of the schema if there is none.

    Parameters
    ----------
    file : str
        What messages call it: "the frame users".
    frame : pandas.DataFrame, or an object with ``to_pandas``
    schema : Schema
    lines : sequence, optional
        What the rows go by; default: the labels of the index.
    mistakes : Mistakes, optional
        Where mistakes in cells are kept; by default, the first is raised.

    Raises
    ------
    InvalidInstance
        It is no frame, or the schema does not allow its columns.
    """
    if not (hasattr(frame, "columns") and hasattr(frame, "index")):
        if not hasattr(frame, "to_pandas"):
            what = found(frame) if frame is None else type(frame).__name__
            raise InvalidInstance(f"{file.removeprefix('the frame ')} is {what}, not a frame; give a pandas.DataFrame")
        frame = frame.to_pandas()
    data: Any = frame
    for axis in (data.columns, data.index):
        if axis.nlevels > 1:
            raise InvalidInstance(f"{file} has labels of {axis.nlevels} levels; give it one level, for instance with reset_index()")
    columns, labels = list(data.columns), data.index.tolist()
    values: list[Values] = [values_of(data.iloc[:, j]) for j in range(len(columns))]
    if schema.header_lacks([str(name) for name in columns]) and labels != list(range(len(labels))):
        columns, values = [schema.first, *columns], [labels, *values]
    if lines is None:
        lines = [f'"{label}"' if isinstance(label, str) else label for label in labels]
    return Table(file, schema, columns, values, lines, "row", mistakes=mistakes)


def values_of(column: Any) -> Values:
    """Return the values of a column of a frame: an array where all are numbers, else a list with None for missing ones."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return np.asarray(column)
    values, missing = column.tolist(), column.isna()
    return [None if no else value for value, no in zip(values, missing.tolist(), strict=True)] if missing.any() else values
