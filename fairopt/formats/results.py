r"""Tables of results as files: CSV, Parquet, workbooks, Markdown and LaTeX, by the ending of their name.

==============  ===============================================================================================================
``.csv``        for spreadsheets: :mod:`fairopt.tables.spreadsheets` says what becomes of labels that could be formulas
``.parquet``    for programs: every label and number as it is
``.xlsx``       a workbook of one sheet; labels are text, whatever they begin with (needs openpyxl: the extra ``tables``)
``.md``         a table of Markdown with 6 significant digits and without empty columns; labels are escaped
``.tex``        a tabular of LaTeX with the rules of booktabs, as brief as that; labels are escaped
==============  ===============================================================================================================

>>> import pandas as pd
>>> frame = pd.DataFrame({"tasks": [1 / 3, 12345678.5]}, index=pd.Index(["a|b", "50%_x"], name="user"))
>>> print(rendered(frame, "md"))
| user | tasks |
| --- | ---: |
| a\|b | 0.333333 |
| 50%\_x | 12345678 |
<BLANKLINE>
>>> print(rendered(frame, "tex"))
\begin{tabular}{lr}
\toprule
user & tasks \\
\midrule
a\textbar{}b & 0.333333 \\
50\%\_x & 12345678 \\
\bottomrule
\end{tabular}
<BLANKLINE>
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from fairopt.errors import InvalidInstance
from fairopt.show.html import table_html
from fairopt.show.table import Table
from fairopt.show.text import to_latex, to_markdown
from fairopt.tables.spreadsheets import to_csv

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KINDS", "Kind", "rendered", "require"]

Common: TypeAlias = Literal["csv", "parquet", "xlsx", "md", "tex"]
Kind: TypeAlias = Common | Literal["html"]
KINDS: tuple[Common, ...] = get_args(Common)
"""What every command writes; HTML is written by a command whose table has notes."""


def require(kind: str, file: str) -> None:
    """Check, before anything is computed, that the packages for this kind of file are installed.

    Raises
    ------
    SolverUnavailable
    """
    if kind == "xlsx":
        from fairopt.tables.workbooks import require_openpyxl

        require_openpyxl(f"writing {file}")


def rendered(frame: pd.DataFrame, kind: Kind, file: str = "the table") -> str | bytes:
    """Return a table as the content of a file; its index is the first columns, unless it only counts the rows.

    Raises
    ------
    SolverUnavailable, InvalidInstance
        A package is missing. The kind of file cannot hold the table.
    """
    import pandas as pd

    counts = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
    if kind == "csv":
        return to_csv(frame, index=not counts)
    flat = frame if counts else frame.reset_index(allow_duplicates=True)
    names = [str(name) for name in flat.columns]
    if kind == "parquet":
        return _parquet(flat.set_axis(names, axis=1), file)
    if kind == "xlsx":
        from fairopt.tables.workbooks import to_xlsx

        columns = [flat.iloc[:, j] for j in range(len(names))]
        cells = [[None if missing else each for each, missing in zip(column.tolist(), column.isna(), strict=True)] for column in columns]
        return to_xlsx({"table": (names, zip(*cells, strict=True))}, file)
    table = Table.of_frame(frame)
    return {"md": to_markdown, "tex": to_latex, "html": table_html}[kind](table)


def _parquet(frame: pd.DataFrame, file: str) -> bytes:
    page = io.BytesIO()
    try:
        frame.to_parquet(page, index=False)
    except ValueError as error:  # two columns of one name
        raise InvalidInstance(f"{file} cannot be Parquet: {error}; end its name in .csv") from None
    return page.getvalue()
