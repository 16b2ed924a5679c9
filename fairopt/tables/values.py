"""The values of cells: what is empty, and what text means the same.

>>> text_of(2.0), text_of(None), text_of(True), text_of(["A", "B"])
('2', '', 'true', 'A|B')
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import plain_numbers
from fairopt.wording import found

__all__ = [
    "STAND_IN",
    "Percentage",
    "StandIn",
    "Unreadable",
    "Values",
    "is_blank",
    "name_of",
    "part",
    "rows_with_content",
    "stripped",
    "text_of",
]

Values: TypeAlias = Sequence[Any] | np.ndarray[Any, Any]
"""The cells of a column: texts, values, or an array of numbers."""


class StandIn(float):
    """A number in the place of a cell that holds none: a mistake is kept of that cell, and nothing more is said of it."""


STAND_IN = StandIn(1.0)


class Percentage(float):
    """A number that its spreadsheet shows as a percentage."""

    @property
    def text(self) -> str:
        """The percentage, as people write it.

        >>> Percentage(0.07).text
        '7 %'
        """
        return f"{plain_numbers(float(100 * Fraction(repr(float(self)))))} %"


class Unreadable:
    """What a cell holds whose value is unknown.

    Parameters
    ----------
    why : str
        The message about it.
    """

    def __init__(self, why: str) -> None:
        self.why = why

    def __str__(self) -> str:
        return "?"


def text_of(value: Any, *, dates: bool = False) -> str:
    """Return a value as the text that means it exactly; a date only if that is asked for.

    Raises
    ------
    ValueError
        No text means it; the message says what to do.
    """
    if isinstance(value, Unreadable):
        raise ValueError(value.why)
    if value is None or value != value:
        return ""
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(plain_numbers(value))
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        if any("|" in each or each != each.strip() for each in value) or not value:
            raise ValueError('names in a list must not hold "|" or spaces around them; use the table eligibility')
        return "|".join(value)
    if type(value).__name__ in ("Decimal", "Fraction"):
        return str(value)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        if dates and isinstance(value, datetime.date):
            return value.isoformat()
        raise ValueError(
            f"expected text or a number, found the date or time {str(value).removesuffix(' 00:00:00')}; spreadsheets make a date of 1-4 or "
            "1/4: format the cell as text, then write it again"
        )
    raise ValueError(f"expected text or a number, found {found(value)[:60]}")


def stripped(cells: list[str]) -> list[str]:
    """Return texts without the spaces around them."""
    return [cell.strip() for cell in cells] if _has_spaces(cells) else cells


def _has_spaces(cells: Iterable[str]) -> bool:
    """Return whether there is a space in texts, which are looked at as a whole: that is faster, and nearly no table has one."""
    text = "".join(cells)
    return text.split(maxsplit=1) not in ([], [text])


def is_blank(value: Any) -> bool:
    """Return whether a cell has no content."""
    return not value.strip() if isinstance(value, str) else value is None or (isinstance(value, float) and value != value)


def rows_with_content(columns: Sequence[Values], *, texts: bool = False) -> list[int] | None:
    """Return the rows of which a cell has content; None for all of them. With ``texts``, all cells are texts."""
    if not columns:
        return None
    first = columns[0]
    if isinstance(first, np.ndarray):
        blank = np.flatnonzero(first != first).tolist()
    elif all(first) and (texts or set(map(type, first)) == {str}) and not _has_spaces(first):
        return None
    else:
        blank = [row for row, value in enumerate(first) if is_blank(value)]
    blank = [row for row in blank if all(is_blank(column[row]) for column in columns[1:])]
    return sorted(set(range(len(first))) - set(blank)) if blank else None


def part(values: Values, rows: Sequence[int]) -> Values:
    """Return some rows of a column."""
    return values[np.asarray(rows, int)] if isinstance(values, np.ndarray) else [values[row] for row in rows]


def name_of(file: str, column: object, position: int) -> str:
    """Return the name of a column as text; "" for none."""
    if column is None or isinstance(column, str):
        return column or ""
    if isinstance(column, int | float) and not isinstance(column, bool):
        return str(plain_numbers(column))
    raise InvalidInstance(f"{file}: the name of column {position + 1} is {found(column)}; names are text")
