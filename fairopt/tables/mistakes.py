"""All mistakes of a file in one message, so that it is corrected once.

>>> mistakes = Mistakes()
>>> for name in ("A", "B"):
...     with mistakes:
...         raise InvalidInstance(f"lab.csv, line 2: there is no server {name}")
>>> mistakes.refuse()
Traceback (most recent call last):
fairopt.errors.InvalidInstance: 2 mistakes:
lab.csv, line 2: there is no server A
lab.csv, line 2: there is no server B
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import TracebackType

from fairopt.errors import InvalidInstance
from fairopt.wording import brief, plural

__all__ = ["MOST", "Mistakes", "together"]

_SHOWN = 10
MOST = 100
"""As many mistakes are described: nobody reads more, and each may be compared with many names."""
_LONGEST = 800  # characters of one of several
_PLACE = re.compile(r"(?P<file>.*?)(?=, (?:line|row|column) |: )(?:, (?:line|row) (?P<number>\d+))?")


class Mistakes:
    """What is wrong with a file. Inside of a ``with`` statement, an `InvalidInstance` is kept and what follows the statement goes on.

    Attributes
    ----------
    found : list of str
        A message for each mistake, with its place.
    more : int
        Mistakes that were counted and not described.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self.more = 0
        self._raised: InvalidInstance | None = None

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, message: str) -> None:
        """Keep a mistake; after a hundred, refuse the file."""
        if message not in self.found:
            self.found.append(message)
        if len(self.found) > MOST:
            self.refuse(at_least=True)

    def refuse(self, *, at_least: bool = False, closing: str = "") -> None:
        """Raise InvalidInstance with all mistakes, and what to do about them, if there is one; no ``with`` statement keeps it."""
        if self.found:
            self._raised = InvalidInstance(together(self.found, self.more, at_least=at_least, closing=closing))
            raise self._raised from None

    def __enter__(self) -> Mistakes:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, InvalidInstance) or error is self._raised:
            return False
        self.add(str(error))
        return True


def together(messages: Sequence[str], more: int = 0, *, at_least: bool = False, closing: str = "") -> str:
    """Return one message for several mistakes, the first ten of them in the order of their lines; one alone stays as it is.

    Parameters
    ----------
    messages : sequence of str
    more : int
        Further mistakes, without a message.
    at_least : bool
        There may be others.
    closing : str
        What to do about all of them.
    """
    number = len(messages) + more
    if number == 1:
        return f"{messages[0]}{closing and f' ({closing})'}"
    files: dict[str, int] = {}

    def where(message: str) -> tuple[int, int]:
        match = _PLACE.match(message)
        file, number = match.groups() if match else (message, None)
        return files.setdefault(file, len(files)), int(number or 0)

    shown = [brief(each, _LONGEST) for each in sorted(messages, key=where)[:_SHOWN]]
    hidden = number - len(shown)
    rest = [f"and {'at least ' if at_least else ''}{hidden:,} more"] if hidden else []
    return "\n".join([f"{plural(number, 'mistake')}{closing and f' ({closing})'}:", *shown, *rest])
