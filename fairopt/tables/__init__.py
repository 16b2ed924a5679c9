"""The one reader and writer of tables: CSV (also packed, ``.csv.gz``), Parquet, spreadsheets (``.xlsx``, ``.ods``) and pandas frames.

A reader declares the columns of its table as a `Schema`, and `read` returns the `Table`: its cells, each with the place that messages
name. What a column means is the reader's; how a number, an amount, a name or a date is written is the same in every table.

>>> import tempfile
>>> from pathlib import Path
>>> jobs = Schema(Column("user"), Column("submit", "time"), Column("tasks", "number", default=1.0))
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "jobs.csv")
...     _ = path.write_text("user,submit,cpu\\nada,60,1/2\\nbob,90,4GB\\n")
...     table = read(path, jobs)
>>> table.cells("user"), table.floats("submit"), table.amounts("cpu")
(['ada', 'bob'], array([60., 90.]), [0.5, '4GB'])
>>> table.place(1, "cpu").rpartition("/")[2]
'jobs.csv, line 3, column "cpu"'
"""

from fairopt.tables.matrices import aligned
from fairopt.tables.mistakes import Mistakes
from fairopt.tables.reading import BOOKS, read, read_book
from fairopt.tables.rows import Rows
from fairopt.tables.schema import NEEDED, Column, Kind, Schema
from fairopt.tables.sheets import Book
from fairopt.tables.table import Table
from fairopt.tables.values import StandIn

__all__ = ["BOOKS", "NEEDED", "Book", "Column", "Kind", "Mistakes", "Rows", "Schema", "StandIn", "Table", "aligned", "read", "read_book"]
