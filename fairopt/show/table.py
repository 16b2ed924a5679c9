r"""A table: titled columns of values, each with the way in which its numbers are written.

A result describes its tables once. They are rendered to a terminal (`fairopt.show.terminal`), to pages and notebooks
(`fairopt.show.html`), to Markdown and LaTeX (`fairopt.show.text`), and to a pandas frame. A value is text, a number (also a Fraction), or
None where there is none; a number may have an error.

>>> from fairopt.show.text import to_latex, to_markdown
>>> table = Table.of(names("user", ["A", "B"]), numbers("tasks", [399.2, 20.0], errors=[12.4, 0.0]), percents("in use", [0.5, None]))
>>> print(to_markdown(table))
| user | tasks | in use |
| --- | ---: | ---: |
| A | 399 ± 12 | 50 % |
| B | 20 |  |
<BLANKLINE>
>>> print(to_latex(table.chosen("user", "tasks").with_digits(4)))
\begin{tabular}{lr}
\toprule
user & tasks \\
\midrule
A & $399 \pm 12$ \\
B & 20 \\
\bottomrule
\end{tabular}
<BLANKLINE>
>>> table.to_frame()["in use"].tolist()
[0.5, nan]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fairopt.wording import enclosed, figure, figures, fractions, percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Column", "Format", "Kind", "Style", "Table", "ids", "names", "numbers", "parts", "percents", "words"]

Kind: TypeAlias = Literal["ids", "names", "words", "numbers"]
Style: TypeAlias = Literal["", "strong", "soft", "good", "bad", "warn"]

_ROUNDED = 1e-12  # relative: smaller standard errors are rounding errors
_MOST_DIGITS = 30  # of a number in a column, however many are proved


@dataclass(frozen=True, slots=True)
class Format:
    """How the numbers of a column are written.

    Attributes
    ----------
    digits : int
        Significant digits.
    alike : bool
        All numbers of the column with the same decimals.
    percent : bool
        A part of a whole, in percent.
    decimals : int or None
        Of a percentage; None: three digits.
    unit : str
        Behind each number.
    signed : bool
        A change: with its sign, also if it is positive.
    missing : str
        In the place of a number that there is not.
    tiny : bool
        A part that would be rounded to 0 % has one significant digit instead.
    radius : Fraction
        Relative radius to which fractions are known; 0: they are exact.
    of_mean : bool
        Of a number with an error, the digits are those of the number. Otherwise, they are as many as leave two digits of the error.
    """

    digits: int = 3
    alike: bool = False
    percent: bool = False
    decimals: int | None = None
    unit: str = ""
    signed: bool = False
    missing: str = ""
    tiny: bool = False
    radius: Fraction = Fraction(0)
    of_mean: bool = False

    def write(self, values: Sequence[Any], errors: Sequence[float] | None = None) -> list[str]:
        """Return values as text; text stays as it is.

        >>> Format(alike=True).write([2.5, None, 3.0]), Format(unit="s", missing="-").write([2.5, None, "never"])
        (['2.5', '', '3.0'], ['2.5 s', '-', 'never'])
        >>> Format(signed=True).write([1.5, 0, -2]), Format(percent=True).write([0.1234], [0.0123])
        (['+1.5', '0', '-2'], ['12.3 ± 1.2 %'])
        >>> Format(percent=True, decimals=1, tiny=True).write([0.0312, 0.0, 8e-5, 2e-7, None])
        ['3.1 %', '0.0 %', '0.008 %', '2e-05 %', '']
        """
        if errors is not None:
            return [self._with_error(value, error) for value, error in zip(values, errors, strict=True)]
        if not self.alike:
            return [self._one(value) for value in values]
        known = [value for value in values if not _missing(value) and not isinstance(value, str)]
        exact = [value for value in known if isinstance(value, Fraction)]
        column = fractions(exact) if exact else figures(map(float, known))
        if exact and self.radius:
            column = [enclosed(value, self.radius, _MOST_DIGITS) for value in exact]
        texts = iter(column)
        return [value if isinstance(value, str) else self.missing if _missing(value) else next(texts) for value in values]

    def _one(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool | np.bool_):
            return "yes" if value else "no"
        if _missing(value):
            return self.missing
        if self.signed and not value:
            return "0"
        size = abs(value) if self.signed else value
        if self.tiny and value and abs(value) < 5e-4:
            return f"{figure(100 * value, 1)} %"
        text = percent(size, self.decimals) if self.percent else figure(size, self.digits)
        sign = ("-" if value < 0 else "+") if self.signed else ""
        return f"{sign}{text}{f' {self.unit}' if self.unit else ''}"

    def _with_error(self, value: Any, error: float) -> str:
        """Write a mean and its error, to two digits of the error unless the digits are those of the mean; only rounding is no error.

        >>> Format(signed=True).write([20.0, -0.004, 1234567.0], [0.0996, 0.12, 2345.0])
        ['+20.00 ± 0.10', '0.00 ± 0.12', '+1,234,600 ± 2,300']
        >>> Format(2, of_mean=True).write([399.2, 399.2, 0.5, 0.0], [12.4, 0.31, 0.012, 0.012])
        ['400 ± 10', '399.2 ± 0.3', '0.50 ± 0.01', '0.000 ± 0.012']
        """
        if isinstance(value, str) or _missing(value) or not error > _ROUNDED * abs(value):
            return self._one(value)
        unit, scale = ("%", 100.0) if self.percent else (self.unit, 1.0)
        mean, error = scale * float(value), scale * error
        if not math.isfinite(error):
            return self._one(value)
        decimals = _decimals(error, 2)
        if self.of_mean and mean:
            decimals = max(_decimals(mean, self.digits), _decimals(error, 1))
        shown = max(decimals, 0)
        text = f"{round(mean, decimals) + 0.0:,.{shown}f}"
        sign = "+" if self.signed and round(mean, decimals) > 0 else ""
        return f"{sign}{text} ± {round(error, decimals):,.{shown}f}{f' {unit}' if unit else ''}"


def _decimals(value: float, digits: int) -> int:
    """Return the decimals of a number of so many significant digits; below 0: zeros before the point."""
    return digits - 1 - int(f"{value:.{digits - 1}e}".partition("e")[2])


def _missing(value: Any) -> bool:
    return value is None or (not isinstance(value, str | bool | np.bool_ | Fraction) and math.isnan(value))


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, its values and how they are written.

    Attributes
    ----------
    title : str
    values : tuple
        In the order of the rows. In a column of words, a tuple of texts is a cell of several lines.
    kind : {"ids", "names", "words", "numbers"}
        Names may be shortened where there is no room, ids never; words may break into lines, numbers never.
    format : Format
    errors : tuple of float, optional
        Standard errors of the numbers; nan or 0: none.
    styles : tuple of str
        How cells stand out: "strong", "soft", "good", "bad", "warn" or "". Empty: none does.
    indents : tuple of int
        Levels by which cells are moved to the right, as in a tree. Empty: none is.
    above : str
        A title that the column shares with those beside it.
    bars : int
        Its numbers are parts of a whole, which a terminal also draws as bars of at most so many characters.
    """

    title: str
    values: tuple[Any, ...]
    kind: Kind = "numbers"
    format: Format = Format()
    errors: tuple[float, ...] | None = None
    styles: tuple[Style, ...] = ()
    indents: tuple[int, ...] = ()
    above: str = ""
    bars: int = 0

    @property
    def texts(self) -> list[str]:
        """The cells as text; the lines of a cell are separated by line breaks."""
        flat = ["\n".join(value) if isinstance(value, tuple) else value for value in self.values]
        return self.format.write(flat, self.errors)

    @property
    def heading(self) -> str:
        """The title, below that which it shares."""
        return f"{self.above} {self.title}".strip()

    @property
    def is_empty(self) -> bool:
        """Whether no cell holds anything."""
        return not any(self.texts)

    def rows(self, first: int, end: int) -> Column:
        """Return the column of some rows only."""
        errors = None if self.errors is None else self.errors[first:end]
        return replace(self, values=self.values[first:end], errors=errors, styles=self.styles[first:end], indents=self.indents[first:end])


def names(title: str, values: Iterable[str], **options: Any) -> Column:
    """Return a column of names, each on one line, shortened in the middle where it is too long."""
    return Column(title, tuple(values), "names", **options)


def ids(title: str, values: Iterable[str], **options: Any) -> Column:
    """Return a column of words that are never shortened."""
    return Column(title, tuple(values), "ids", **options)


def words(title: str, values: Iterable[str | tuple[str, ...]], **options: Any) -> Column:
    """Return a column of text, which breaks between words."""
    return Column(title, tuple(values), "words", **options)


def numbers(
    title: str,
    values: Iterable[Any],
    digits: int = 3,
    *,
    errors: Iterable[float] | None = None,
    styles: Iterable[Style] = (),
    above: str = "",
    **form: Any,
) -> Column:
    """Return a column of numbers; ``form`` are further attributes of its `Format`."""
    given = None if errors is None else tuple(errors)
    return Column(title, tuple(values), "numbers", Format(digits, **form), given, tuple(styles), above=above)


def percents(title: str, values: Iterable[Any], decimals: int | None = None, **options: Any) -> Column:
    """Return a column of parts of a whole, in percent."""
    return numbers(title, values, percent=True, decimals=decimals, **options)


def parts(title: str, values: Iterable[Any], bars: int = 20) -> Column:
    """Return a column of parts of a whole, in percent and as bars of at most so many characters."""
    return replace(percents(title, values, 1), bars=bars)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of the same length.

    Attributes
    ----------
    columns : tuple of Column
    title : str
    totals : int
        So many rows at the end sum up those above, and stand below a line.
    spaced : bool
        Rows have several lines, so a terminal puts an empty one between them.
    breaks : tuple of int
        Rows that begin a new group, and stand below a line.
    """

    columns: tuple[Column, ...]
    title: str = ""
    totals: int = field(default=0, kw_only=True)
    spaced: bool = field(default=False, kw_only=True)
    breaks: tuple[int, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(cls, *columns: Column, title: str = "", **options: Any) -> Table:
        """Return the table of these columns."""
        return cls(columns, title, **options)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame, digits: int = 6, *, alike: bool = False) -> Table:
        """Return a frame as a table; its index is the first columns, unless it only counts the rows."""
        import pandas as pd

        counts = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
        flat = frame if counts else frame.reset_index(allow_duplicates=True)
        columns = []
        for j, name in enumerate(flat.columns):
            column = flat.iloc[:, j]
            cells = tuple(None if gone else each for each, gone in zip(column.tolist(), column.isna(), strict=True))
            if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype):
                columns.append(numbers(str(name), cells, digits, alike=alike))
            else:
                texts = ("" if each is None else Format(digits).write([each])[0] if _is_number(each) else str(each) for each in cells)
                columns.append(words(str(name), texts))
        return cls(tuple(columns))

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells as text, row by row."""
        return list(zip(*(column.texts for column in self.columns), strict=True))

    def chosen(self, *titles: str) -> Table:
        """Return the table of the columns with these titles, in this order.

        Raises
        ------
        KeyError
        """
        by_title = {column.heading: column for column in self.columns}
        return replace(self, columns=tuple(by_title[title] for title in titles))

    def with_digits(self, digits: int) -> Table:
        """Return the table with numbers of so many digits."""
        return replace(self, columns=tuple(replace(each, format=replace(each.format, digits=digits)) for each in self.columns))

    def without_empty(self) -> Table:
        """Return the table of its first column and of those in which a cell holds something."""
        return replace(self, columns=tuple(column for j, column in enumerate(self.columns) if j == 0 or not column.is_empty))

    def part(self, first: int, end: int) -> Table:
        """Return the table of some rows only."""
        return replace(self, columns=tuple(column.rows(first, end) for column in self.columns), totals=0, breaks=())

    def to_frame(self) -> pd.DataFrame:
        """Return the values as a pandas frame, without a format; an error is a column of its own."""
        import pandas as pd

        columns: list[pd.Series] = []
        for column in self.columns:
            values = pd.Series([" ".join(value) if isinstance(value, tuple) else value for value in column.values], name=column.heading)
            columns.append(values.astype(float) if _is_float(column.values) else values)
            if column.errors is not None:
                columns.append(pd.Series(column.errors, name=f"{column.heading} error", dtype=float))
        return pd.concat(columns, axis=1) if columns else pd.DataFrame()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Fraction | np.number | np.bool_)


def _is_float(values: Iterable[Any]) -> bool:
    return all(value is None or (isinstance(value, float | int) and not isinstance(value, bool)) for value in values)
