r"""Tables as text for documents: Markdown and LaTeX, without empty columns; every label is escaped.

>>> from fairopt.show.table import Table, names, numbers
>>> table = Table.of(names("user", ["a|b", "50%_x"]), numbers("tasks", [1 / 3, 12345678.5], 6))
>>> print(to_markdown(table))
| user | tasks |
| --- | ---: |
| a\|b | 0.333333 |
| 50%\_x | 12345678 |
<BLANKLINE>
>>> print(to_latex(table))
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

import re
from collections.abc import Iterable

from fairopt.show.table import Column, Table
from fairopt.wording import in_latex, printable

__all__ = ["to_latex", "to_markdown"]

_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~&$]|:(?=//)")


def to_markdown(table: Table) -> str:
    """Return a table of Markdown."""
    shown = table.without_empty()
    lines = [[_in_markdown(column.heading) for column in shown.columns]]
    lines.append(["---:" if column.kind == "numbers" else "---" for column in shown.columns])
    lines += [[_in_markdown(cell) for cell in row] for row in _rows(shown)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_latex(table: Table) -> str:
    """Return a tabular of LaTeX with the rules of booktabs; ``totals`` stand below a rule of their own."""
    shown = table.without_empty()

    def line(cells: Iterable[str]) -> str:
        return " & ".join(in_latex(cell).replace("±", r"$\pm$") for cell in cells) + " \\\\"

    sides = "".join("r" if column.kind == "numbers" else "l" for column in shown.columns)
    rows = [line(row) for row in _rows(shown)]
    if shown.totals:
        rows.insert(len(rows) - shown.totals, "\\midrule")
    heading = line(column.heading for column in shown.columns)
    return "\n".join([f"\\begin{{tabular}}{{{sides}}}", "\\toprule", heading, "\\midrule", *rows, "\\bottomrule", "\\end{tabular}", ""])


def _rows(table: Table) -> list[tuple[str, ...]]:
    return list(zip(*map(_texts, table.columns), strict=True))


def _texts(column: Column) -> list[str]:
    """Return the cells of a column; numbers without commas between thousands."""
    lines = [" ".join(value) if isinstance(value, tuple) else text for value, text in zip(column.values, column.texts, strict=True)]
    return [text.replace(",", "") for text in lines] if column.kind == "numbers" else lines


def _in_markdown(text: str) -> str:
    r"""Return a text in which no character has a meaning.

    >>> print(_in_markdown("a_b|*c* http://d"))
    a\_b\|\*c\* http\://d
    """
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))
