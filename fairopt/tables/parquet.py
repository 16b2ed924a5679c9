"""Parquet files as tables and back, at a cost in proportion to what they hold.

A Parquet file of a few kilobytes can stand for millions of rows, or for millions of copies of one long text. So the number of rows is
looked at before anything is read, texts stay in the file's dictionaries until it is known how long they are in all, and what is
read is counted batch by batch: :mod:`fairopt.files.limits` says how much is too much.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairopt.errors import InvalidInstance
from fairopt.files import missing_file
from fairopt.files.limits import check_bytes, check_table
from fairopt.instance.fractions import plain_numbers
from fairopt.tables.mistakes import Mistakes
from fairopt.tables.schema import Schema
from fairopt.tables.table import Table
from fairopt.tables.values import Values

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["arrow_table", "read_parquet", "to_parquet"]

_BATCH = 4096  # rows
_UNNAMED = "__index_level_0__"  # of an index without a name, as pandas writes it


def arrow_table(path: Path) -> pa.Table:
    """Read a Parquet file as it is.

    Raises
    ------
    InvalidInstance
        There is no such file, it is not Parquet, or it holds too much.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.is_dir():
        raise InvalidInstance(f"{path} is a folder, not a file; give the path of a file in it")
    if path.exists() and not path.is_file():
        raise InvalidInstance(f"{path} is a pipe or a device, and Parquet is read from files only; copy it to a file first")
    try:
        with path.open("rb") as file:
            with pq.ParquetFile(file) as parquet:
                facts, schema = parquet.metadata, parquet.schema_arrow
                names = [facts.schema.column(j).path for j in range(facts.num_columns)]
            check_table(str(path), facts.num_rows, max(len(schema), len(names)))
            check_bytes(str(path), sum(facts.row_group(j).total_byte_size for j in range(facts.num_row_groups)))
            file.seek(0)
            with pq.ParquetFile(file, read_dictionary=names) as parquet:  # which only columns of texts have
                return _read(parquet, schema, str(path))
    except FileNotFoundError:
        raise missing_file(path) from None
    except InvalidInstance:
        raise
    except (pa.ArrowMemoryError, MemoryError):
        raise InvalidInstance(f"{path} does not fit into memory; write fewer rows or columns") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInstance(f"{path} is not a Parquet file, or is damaged: {reason}; write it again") from None


def read_parquet(path: Path, schema: Schema, mistakes: Mistakes | None = None) -> Table:
    """Read a Parquet file as a table; ``row 1`` is the first.

    An index that pandas has written counts where the schema has a column of its name; one without a name is the first column if there is
    none.

    Raises
    ------
    InvalidInstance
        With the file and row.
    """
    arrow = arrow_table(path)
    index = _index_of(arrow)
    unnamed = None if not schema.header_lacks(arrow.column_names) else schema.first
    names = [unnamed if name == _UNNAMED else name for name in arrow.column_names]
    kept = [j for j, name in enumerate(names) if name is not None and (name not in index or name in schema)]
    if schema.matrix and schema.first in names:  # pandas puts an index at the end
        kept.sort(key=lambda j: names[j] != schema.first)
    values = _values(arrow.select(kept), path)
    return Table(str(path), schema, [names[j] for j in kept], values, range(1, arrow.num_rows + 1), "row", mistakes=mistakes)


def _index_of(table: pa.Table) -> set[str]:
    """Return the columns that pandas has written as an index, as far as the file says so well."""
    try:
        held = json.loads((table.schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in held if isinstance(name, str)}
    except (KeyError, TypeError, ValueError, RecursionError):
        return set()


def _values(table: pa.Table, path: Path) -> list[Values]:
    """Return the columns of a table: an array where all cells are numbers, else a list.

    Raises
    ------
    InvalidInstance
        Python has no such value, such as a date of the year 300,000.
    """
    import pyarrow as pa

    try:
        return [column.to_numpy() if _is_number(column.type) and not column.null_count else column.to_pylist() for column in table.columns]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInstance(f"{path} holds a value that cannot be read: {reason}; write it as text or as a number") from None


def _is_number(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind))


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


def _read(parquet: pq.ParquetFile, schema: pa.Schema, file: str) -> pa.Table:
    """Return all rows of an open file, whose columns have the types of the schema."""
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    held = rows = 0
    for batch in parquet.iter_batches(batch_size=_BATCH):
        batch.validate(full=True)  # that texts are UTF-8, and in the dictionary
        held += batch.nbytes + sum(_spelled_out(column) for column in batch.columns)
        check_bytes(file, held)
        rows += batch.num_rows
        check_table(file, rows, batch.num_columns)
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=parquet.schema_arrow).cast(schema)


def _spelled_out(column: pa.Array) -> int:
    """Return how many bytes the texts of a dictionary are if each is written where it stands; 0 of another column."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type) or not (
        pa.types.is_string(column.type.value_type) or pa.types.is_binary(column.type.value_type)
    ):
        return 0
    lengths = pc.binary_length(column.dictionary).fill_null(0).to_numpy(zero_copy_only=False)
    return int(lengths[column.indices.drop_null().to_numpy(zero_copy_only=False)].sum(dtype=np.int64))
