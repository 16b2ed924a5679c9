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
from collections.abc import Iterable, Mapping

from fairopt.show.table import Column, Table
from fairopt.wording import in_latex, printable

__all__ = ["text_in_latex", "text_in_markdown", "to_latex", "to_markdown"]

_VALUE = re.compile(r"(?P<sign>[+-]?)(?P<size>[0-9.]+(?:e-?[0-9]+)?)(?: ± (?P<error>[0-9.]+))?(?P<unit>(?: .*)?)")
_SIGNS = str.maketrans(
    {
        "±": r"$\pm$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "∞": r"$\infty$",
        "Δ": r"$\Delta$",
        "→": r"$\to$",
        "…": r"\ldots{}",
        "\N{MINUS SIGN}": "$-$",
    }
)
_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~&$]|:(?=//)")


def to_markdown(table: Table) -> str:
    """Return a table of Markdown."""
    shown = table.without_empty()
    lines = [[text_in_markdown(column.heading) for column in shown.columns]]
    lines.append(["---:" if column.kind == "numbers" else "---" for column in shown.columns])
    lines += [[text_in_markdown(cell) for cell in row] for row in _rows(shown)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_latex(table: Table, heads: Mapping[int, str] | None = None) -> str:
    """Return a tabular of LaTeX with the rules of booktabs; ``totals`` and ``breaks`` stand below rules of their own.

    ``heads`` are titles above some rows, as wide as the table.
    """
    shown = table.without_empty()

    def line(cells: Iterable[str]) -> str:
        return " & ".join(cells) + " \\\\"

    are_numbers = [column.kind == "numbers" for column in shown.columns]
    sides = "".join("r" if numbers else "l" for numbers in are_numbers)
    rows = [
        line(_number(cell) if numbers else text_in_latex(cell) for cell, numbers in zip(row, are_numbers, strict=True))
        for row in _rows(shown)
    ]
    for place, head in (heads or {}).items():
        rows[place] = f"\\multicolumn{{{len(shown.columns)}}}{{l}}{{\\textit{{{text_in_latex(head)}}}}} \\\\\n{rows[place]}"
    for place in sorted({*shown.breaks, *([len(rows) - shown.totals] if shown.totals else [])}, reverse=True):
        rows.insert(place, "\\midrule")
    heading = line(text_in_latex(column.heading) for column in shown.columns)
    return "\n".join([f"\\begin{{tabular}}{{{sides}}}", "\\toprule", heading, "\\midrule", *rows, "\\bottomrule", "\\end{tabular}", ""])


def text_in_latex(text: str) -> str:
    r"""Return a text in which no character has a meaning, and which pdfLaTeX can set where it knows the characters.

    >>> print(text_in_latex("50% ± $x ≥ 0 … Δ"))
    50\% $\pm$ \$x $\geq$ 0 \ldots{} $\Delta$
    """
    return in_latex(text).translate(_SIGNS)


def _number(text: str) -> str:
    r"""Return a number, with its error and unit, as a formula where it has a sign.

    >>> print(_number("399 ± 12"), _number("-1.5 ± 0.2 %"), _number("+2"), _number("20"))
    $399 \pm 12$ $-1.5 \pm 0.2$ \% $+2$ 20
    """
    match = _VALUE.fullmatch(text)
    if match is None or not (match["sign"] or match["error"]):
        return text_in_latex(text)
    error = f" \\pm {match['error']}" if match["error"] else ""
    return f"${match['sign']}{match['size']}{error}${text_in_latex(match['unit'])}"


def _rows(table: Table) -> list[tuple[str, ...]]:
    return list(zip(*map(_texts, table.columns), strict=True))


def _texts(column: Column) -> list[str]:
    """Return the cells of a column; numbers without commas between thousands."""
    lines = [" ".join(value) if isinstance(value, tuple) else text for value, text in zip(column.values, column.texts, strict=True)]
    return [text.replace(",", "") for text in lines] if column.kind == "numbers" else lines


def text_in_markdown(text: str) -> str:
    r"""Return a text in which no character has a meaning.

    >>> print(text_in_markdown("a_b|*c* http://d"))
    a\_b\|\*c\* http\://d
    """
    return _MARKDOWN.sub(r"\\\g<0>", printable(text))
