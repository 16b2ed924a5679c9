"""Where in a JSON text the part stands that a path of keys and positions leads to.

What is before the part is read and forgotten, by the parser of the json module: no tree of the whole text is made for one message.

>>> text = '{"users": [{"name": "a"}, {"name": "b", "tasks": 7.0}]}'
>>> key, start, end = list(steps(text, ("users", 1, "tasks")))[-1]
>>> text[key:start], text[start:end]
('"tasks": ', '7.0')
>>> len(list(steps(text, ("users", 1, "wieght"))))  # as far as it leads: the whole, its users, the second of them
3
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

__all__ = ["HALF_CHARACTER", "half_character", "steps"]

_SPACE = re.compile(r"[ \t\n\r]*")
# Escapes in the order of the text: those of two halves are one character, and an escaped backslash escapes nothing.
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL)
HALF_CHARACTER = "{} is half of a character (of a surrogate pair); write the character itself"
_SCAN = json.JSONDecoder().raw_decode


def half_character(text: str) -> int | None:
    """Return where an escape stands that is half of a surrogate pair: such text is in no file and on no screen.

    >>> half_character(r'["\\ud83d\\ude00", "\\\\ud800", "\\ud800"]'), half_character(r'["\\u00e9"]')
    (29, None)
    """
    if "\\u" not in text:
        return None
    return next((match.start() for match in _ESCAPE.finditer(text) if match["half"]), None)


def steps(text: str, path: tuple[object, ...]) -> Iterator[tuple[int | None, int, int]]:
    """Yield, for the whole and for every step of the path that exists, where its key starts, where its value starts, and where that ends.

    There is no key of the whole and of the items of a list. Of a key that occurs twice, it is the first.
    """
    try:
        start = _skip(text, 0)
        yield None, start, len(text.rstrip())
        for step in path:
            found = _entry(text, start, str(step)) if text[start] == "{" else _item(text, start, step) if text[start] == "[" else None
            if found is None:
                return
            yield found
            start = found[1]
    except (ValueError, IndexError, RecursionError):  # it is no JSON from there on, or holds what Python does not read
        return


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _entry(text: str, start: int, key: str) -> tuple[int, int, int] | None:
    """Return the places of an entry of the mapping that starts here."""
    at = _skip(text, start + 1)
    while text[at] == '"':
        of_key = at
        name, at = _SCAN(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            return None
        at = _skip(text, at + 1)
        _, end = _SCAN(text, at)
        if name == key:
            return of_key, at, end
        at = _skip(text, end)
        if text[at] != ",":
            return None
        at = _skip(text, at + 1)
    return None


def _item(text: str, start: int, position: object) -> tuple[None, int, int] | None:
    """Return the place of an item of the list that starts here."""
    if not isinstance(position, int):
        return None
    at = _skip(text, start + 1)
    for passed in range(position + 1):
        _, end = _SCAN(text, at)
        if passed == position:
            return None, at, end
        at = _skip(text, end)
        if text[at] != ",":
            return None
        at = _skip(text, at + 1)
    return None
