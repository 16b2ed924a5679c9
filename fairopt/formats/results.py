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
import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from fairopt.errors import InvalidInstance
from fairopt.tables.spreadsheets import to_csv
from fairopt.wording import figure, in_latex, printable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KINDS", "Kind", "rendered", "require"]

Kind: TypeAlias = Literal["csv", "parquet", "xlsx", "md", "tex"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~&$]|:(?=//)")


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
    columns = [flat.iloc[:, j] for j in range(len(names))]
    cells = [[None if missing else each for each, missing in zip(column.tolist(), column.isna(), strict=True)] for column in columns]
    if kind == "xlsx":
        from fairopt.tables.workbooks import to_xlsx

        return to_xlsx({"table": (names, zip(*cells, strict=True))}, file)
    shown = [j for j, column in enumerate(cells) if j == 0 or any(each not in (None, "") for each in column)]
    texts = [[_shown(each) for each in cells[j]] for j in shown]
    numeric = [pd.api.types.is_numeric_dtype(columns[j].dtype) and not pd.api.types.is_bool_dtype(columns[j].dtype) for j in shown]
    write = _markdown if kind == "md" else _latex
    return write([names[j] for j in shown], numeric, list(zip(*texts, strict=True)))


def _parquet(frame: pd.DataFrame, file: str) -> bytes:
    page = io.BytesIO()
    try:
        frame.to_parquet(page, index=False)
    except ValueError as error:  # two columns of one name
        raise InvalidInstance(f"{file} cannot be Parquet: {error}; end its name in .csv") from None
    return page.getvalue()


def _shown(value: Any) -> str:
    """Return a cell for people: a number with 6 significant digits, nothing for what is missing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return figure(value, 6).replace(",", "")
    return printable(str(value))


def _markdown(names: list[str], numeric: list[bool], rows: list[tuple[str, ...]]) -> str:
    lines = [[_in_markdown(name) for name in names], ["---:" if each else "---" for each in numeric]]
    lines += [[_in_markdown(cell) for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _in_markdown(text: str) -> str:
    r"""Return a text in which no character has a meaning.

    >>> print(_in_markdown("a_b|*c* http://d"))
    a\_b\|\*c\* http\://d
    """
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))


def _latex(names: list[str], numeric: list[bool], rows: list[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...] | list[str]) -> str:
        return " & ".join(in_latex(cell) for cell in cells) + " \\\\"

    formats = "".join("r" if each else "l" for each in numeric)
    table = [f"\\begin{{tabular}}{{{formats}}}", "\\toprule", line(names), "\\midrule", *map(line, rows), "\\bottomrule", "\\end{tabular}"]
    return "\n".join(table) + "\n"
