"""Parquet files as Arrow tables, at a cost in proportion to what they hold.

A Parquet file of a few kilobytes can stand for millions of rows, or for millions of copies of one long text. So the number of rows is
looked at before anything is read, texts stay in the file's dictionaries until it is known how long they are in all, and what is
read is counted batch by batch: :mod:`fairopt.limits` says how much is too much.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairopt.errors import InvalidInstance
from fairopt.files import missing_file
from fairopt.limits import check_bytes, check_table

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["arrow_table", "columns_of", "read_frame"]

_BATCH = 4096  # rows


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


def columns_of(table: pa.Table, path: Path) -> list[list[object]]:
    """Return the columns of a table that was read, as lists of Python.

    Raises
    ------
    InvalidInstance
        Python has no such value, such as a date of the year 300,000.
    """
    import pyarrow as pa

    try:
        return [column.to_pylist() for column in table.columns]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInstance(f"{path} holds a value that cannot be read: {reason}; write it as text or as a number") from None


def read_frame(path: Path) -> pd.DataFrame:
    """Read a Parquet file as pandas has written it, its index too.

    Raises
    ------
    InvalidInstance
        As `arrow_table`.
    """
    table = arrow_table(path)
    try:
        frame: pd.DataFrame = table.to_pandas()
        return frame
    except Exception as error:  # what the file says of its index and its types may be anything
        reason = str(error).partition("\n")[0]
        raise InvalidInstance(f"{path} does not say well what its columns are: {reason}; write it again") from None


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
