"""Tables for people, as CSV that a spreadsheet may open.

A label is text that somebody else may have chosen: the name of a job, of a namespace, of a user. In a spreadsheet a cell that begins with
``=``, ``+``, ``-`` or ``@`` is a formula, and may fetch a page or run a program; in a terminal control characters move the cursor or
write what was never there. So in these tables a text that could be a formula has an apostrophe before it, which says "text" to a
spreadsheet, and control characters are written as their escapes. Numbers stay numbers.

These tables are results: ``--csv`` and ``-o *.csv`` of every command, a simulation that is saved as .csv, and the work that runs now, of
``fairopt import --current``. :mod:`fairopt.formats.results` has the other kinds of files. ``fairopt compare
--allocation`` reads such labels as what they stand for.

*Data* has every label exactly as it is: the folder of ``servers.csv`` and ``users.csv`` that `fairopt.save` writes and `fairopt.load`
reads, JSON, YAML, Parquet, and pandas frames in Python. Look at a folder from somebody else with ``fairopt solve`` before a spreadsheet
opens it, or import it there as text.

>>> cell('=HYPERLINK("http://example.com")'), cell("alice"), cell("team\\x1b[31m")
('\\'=HYPERLINK("http://example.com")', 'alice', 'team\\\\x1b[31m')
>>> import pandas as pd
>>> to_csv(pd.DataFrame({"tasks": [-1.5]}, index=pd.Index(["-2+3"], name="user")))
"user,tasks\\n'-2+3,-1.5\\n"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fairopt.wording import printable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cell", "labels_of", "to_csv"]

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are wide


def cell(text: str) -> str:
    """Return a text as a spreadsheet may have it; different texts stay different."""
    shown = printable(text)
    # An apostrophe that was there already gets another one, so that it is not taken for this one.
    return f"'{shown}" if shown.startswith((*_FORMULA, "'")) else shown


def labels_of(cells: Iterable[str], labels: Iterable[str], prefix: str = "") -> list[str]:
    """Return the labels that cells stand for, be they as they are or as `cell` writes them, with a prefix; others as they are.

    >>> labels_of(["'=a", "b"], ["=a", "b"]), labels_of(["'a"], ["'a"])
    (['=a', 'b'], ["'a"])
    """
    cells = list(cells)
    known = {prefix + label: label for label in labels}
    if not all(each in known for each in cells):
        written = {cell(each): label for each, label in known.items()}
        known |= written
    return [known.get(each, each.removeprefix(prefix)) for each in cells]


def to_csv(frame: pd.DataFrame, *, index: bool = True) -> str:
    """Return a table as CSV text in which no label is a formula or moves the cursor of a terminal."""
    import pandas as pd

    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    safe = pd.DataFrame(
        {j: column if _plain(column.dtype) else column.map(_safe) for j, column in enumerate(columns)}, index=frame.index, copy=False
    )
    safe.columns = pd.Index([_safe(name) for name in frame.columns])
    if index and isinstance(frame.index, pd.MultiIndex):
        safe.index = pd.MultiIndex.from_tuples([tuple(map(_safe, key)) for key in frame.index], names=frame.index.names)
    elif index and not _plain(frame.index.dtype):
        safe.index = pd.Index([_safe(key) for key in frame.index], name=frame.index.name, dtype=object)
    return str(safe.to_csv(index=index))


def _plain(dtype: Any) -> bool:
    """Return whether a column holds numbers or truth values only."""
    from pandas.api import types

    return bool(types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype))


def _safe(value: Any) -> Any:
    return cell(value) if isinstance(value, str) else value
