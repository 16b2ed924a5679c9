"""How much reading a file may cost: one limit on its bytes after they are unpacked, and limits on what these expand to.

A small file can stand for very much: compressed zeros, a workbook with one row far below, an alias that is used a thousand times, a pipe
that never ends. So every reader counts what it unpacks, and refuses the file as soon as that is more than ``max_bytes``. All other limits
are parts of this one: as many bytes of memory hold about so many rows, columns and values.

The limit holds for what is read inside of a ``with`` statement, in this thread; ``fairopt --max-bytes`` is the same.

>>> limits().max_bytes, limits().rows, limits().columns, limits().values, limits().copies
(2000000000, 8000000, 100000, 50000000, 1000000)
>>> with reading_limit(max_bytes=10**10):
...     limits().rows
40000000
>>> check_bytes("cluster.json.gz", 3 * 10**9)  # doctest: +ELLIPSIS
Traceback (most recent call last):
fairopt.errors.InvalidInstance: cluster.json.gz holds more than 2 GB, the limit of what is read; raise it with --max-bytes ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NoReturn

from fairopt.errors import InvalidInstance

__all__ = [
    "Limits",
    "check_array",
    "check_bytes",
    "check_json",
    "check_table",
    "check_values",
    "limits",
    "reading_limit",
    "refuse_size",
    "size",
]

MAX_BYTES = 2_000_000_000
_FEWEST = 1_000  # rows, columns, values, copies: a low limit on bytes leaves room for a small instance
_RAISE = "raise it with --max-bytes or fairopt.reading_limit(...)"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may hold at most.

    Attributes
    ----------
    max_bytes : int
        Bytes after unpacking, of a file, a pipe or a device; and of an array that a file makes necessary.
    """

    max_bytes: int = MAX_BYTES

    @property
    def rows(self) -> int:
        """Rows of a table."""
        return max(self.max_bytes // 250, _FEWEST)

    @property
    def columns(self) -> int:
        """Columns of a table."""
        return max(self.max_bytes // 20_000, _FEWEST)

    @property
    def values(self) -> int:
        """Cells of a table, and keys and values of JSON."""
        return max(self.max_bytes // 40, _FEWEST)

    @property
    def copies(self) -> int:
        """Values that the aliases of a YAML file stand for, beyond those that are written in it."""
        return max(self.max_bytes // 2_000, _FEWEST)


_LIMITS: ContextVar[Limits] = ContextVar("fairopt.files.limits", default=Limits())  # noqa: B039  # it is frozen


def limits() -> Limits:
    """Return the limits that hold here."""
    return _LIMITS.get()


@contextlib.contextmanager
def reading_limit(*, max_bytes: int) -> Iterator[None]:
    """Set how many bytes a file may hold after it is unpacked, for what is read inside of the ``with`` statement.

    Parameters
    ----------
    max_bytes : int
        At least 1; the default elsewhere is 2 GB, 2,000,000,000.

    Raises
    ------
    InvalidInstance
        The number is no whole number >= 1.
    """
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise InvalidInstance(f"max_bytes is {str(max_bytes)[:40]}; give a whole number of bytes >= 1")
    before = _LIMITS.set(Limits(max_bytes))
    try:
        yield
    finally:
        _LIMITS.reset(before)


def size(number: float) -> str:
    """Return a number of bytes in words.

    >>> size(2_000_000_000), size(1_500_000), size(10)
    ('2 GB', '1.5 MB', '10 bytes')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB")):
        if number >= unit:
            return f"{number / unit:,.4g} {name}"
    return f"{number:,.0f} bytes"


def refuse_size(where: str) -> NoReturn:
    """Refuse a file because of its bytes."""
    raise InvalidInstance(f"{where} holds more than {size(limits().max_bytes)}, the limit of what is read; {_RAISE}") from None


def check_bytes(where: str, number: int) -> None:
    """Refuse a file with too many bytes.

    Raises
    ------
    InvalidInstance
    """
    if number > limits().max_bytes:
        refuse_size(where)


def check_table(where: str, rows: int, columns: int) -> None:
    """Refuse a table that is too large.

    Raises
    ------
    InvalidInstance
    """
    for number, most, what in ((columns, limits().columns, "columns"), (rows, limits().rows, "rows")):
        if number > most:
            raise InvalidInstance(f"{where} has {number:,} {what}, more than {most:,}, the limit of what is read; {_RAISE}")
    check_values(where, rows * columns)


def check_values(where: str, number: int) -> None:
    """Refuse a file with too many values: cells of a table, keys and values of JSON.

    Raises
    ------
    InvalidInstance
    """
    if number > limits().values:
        raise InvalidInstance(f"{where} holds more than {limits().values:,} values, the limit of what is read; {_RAISE}")


def check_json(where: str, text: str) -> None:
    """Refuse JSON text with too many values, before any of them is made.

    Raises
    ------
    InvalidInstance
    """
    if len(text) > limits().values:  # a value takes a character, and a comma, a colon or a bracket
        check_values(where, sum(text.count(each) for each in ",:[{"))


def check_array(where: str, what: str, *shape: int, of_bytes: int = 8) -> None:
    """Refuse a file that makes an array necessary which is too large: a row for each user and a column for each resource, say.

    Raises
    ------
    InvalidInstance

    >>> check_array("a.json", "users and resources", 10**5, 10**5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fairopt.errors.InvalidInstance: a.json: 100,000 x 100,000 users and resources need 80 GB, the limit is 2 GB; raise it with ...
    """
    number = of_bytes
    for each in shape:
        number *= each
    if number > limits().max_bytes:
        sizes = " x ".join(f"{each:,}" for each in shape)
        raise InvalidInstance(f"{where}: {sizes} {what} need {size(number)}, the limit is {size(limits().max_bytes)}; {_RAISE}")
