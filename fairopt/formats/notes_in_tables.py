"""Rows of a table that are meant for people: a total at the end, and rows that have nothing but a name. Each is a mistake, named once.

>>> is_total("Total"), is_total("total-recall")
(True, False)
"""

from __future__ import annotations

import re

import numpy as np

from fairopt.tables import Table
from fairopt.wording import brief, named

__all__ = ["is_total", "without_sentences", "without_totals"]

_TOTAL = re.compile(
    r"\W*((grand|sub|gesamt|zwischen)[\s-]*)?"
    r"(totals?|sums?|summen?|gesamt|insgesamt|averages?|avg|means?|mittelwert|durchschnitt|somme|suma|totale|moyenne)\W*",
    re.IGNORECASE,
)


def is_total(name: str) -> bool:
    """Return whether a name says that its row sums up those above it.

    >>> [is_total(name) for name in ("Total:", "GESAMT", "Average", "total-recall", "all")]
    [True, True, True, False, False]
    """
    return _TOTAL.fullmatch(name) is not None


def without_totals(table: Table, kind: str) -> None:
    """Leave out the last rows whose names say that they sum up those above them, and keep a mistake of each: nothing else counts there."""
    names = table.cells("name")
    end = len(names)
    while end > 1 and is_total(names[end - 1]):
        end -= 1
        one = kind.removesuffix("s")
        table.wrong(
            end, f"the last of the {kind} is called {named(names[end])}: is it a total? Delete the row, or rename the {one}", "name"
        )
    table.leave_out(range(end, len(names)))


def without_sentences(table: Table) -> None:
    """Leave out the rows that have nothing but a name, and keep a mistake of each: a footnote, a heading, or a row to be filled in."""
    filled = np.zeros(len(table), bool)
    for column in table.columns:
        if column != "name":
            filled |= np.array([bool(cell) for cell in table.cells(column)], bool)
    for row in np.flatnonzero(~filled).tolist():
        what = f'the row has only the name "{brief(table.cells("name")[row], 40)}"'
        table.wrong(row, f"{what}; delete the row if it is a note, or fill in its other cells (0 if you mean 0)", "name")
    table.leave_out(np.flatnonzero(~filled).tolist())
