"""Words that messages share."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Sequence

__all__ = ["contrast", "did_you_mean", "exactly", "figure", "found", "joined", "named", "percent", "plural", "printable", "some"]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return `` (did you mean "...")`` for the closest of ``words``, or the empty string.

    >>> did_you_mean("wieght", ["weight", "tasks"])
    ' (did you mean "weight"?)'
    >>> did_you_mean("zzz", ["weight", "tasks"])
    ''
    """
    close = difflib.get_close_matches(word, list(words), n=1)
    return f' (did you mean "{close[0]}"?)' if close else ""


def plural(number: float, word: str) -> str:
    """Return a number with its noun.

    >>> plural(1, "user"), plural(12583, "server")
    ('1 user', '12,583 servers')
    """
    return f"{number:,.0f} {word}{'' if number == 1 else 's'}"


def some(labels: Sequence[str], most: int = 5) -> str:
    """Return a list of labels that is never too long.

    >>> some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    rest = len(labels) - most
    return ", ".join(map(printable, labels[:most])) + (f" and {rest} more" if rest > 0 else "")


def printable(text: str, keep: str = "") -> str:
    """Return text with control characters (but those to keep) as their escapes, so that it cannot drive a terminal.

    >>> printable("\\x1b[31mred"), printable("two\\nlines", keep="\\n") == "two\\nlines"
    ('\\\\x1b[31mred', True)
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def found(value: object) -> str:
    """Return what stands where something else was expected.

    >>> found(None), found(True), found("4 cores"), found([1, 2]), found(-1)
    ('nothing', 'true', 'the text "4 cores"', 'a list', '-1')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'the text "{value if len(value) <= 60 else value[:57] + "..."}"'
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'mapping'}"
    return reprlib.repr(value)


def joined(words: Sequence[str]) -> str:
    """Return words as a sentence lists them.

    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def named(label: str) -> str:
    """Return a label as a sentence can hold it: in quotes where it is not one plain word, control characters as escapes.

    >>> named("node-1.rack"), named("the red team")
    ('node-1.rack', '"the red team"')
    """
    shown = printable(label)
    plain = all(c.isalnum() or c in "-_./:@#" for c in shown) and shown[-1] not in ".:/"
    return shown if plain else f'"{shown}"'


def figure(value: float) -> str:
    """Return a number in three digits, all of them before the point.

    >>> [figure(value) for value in (12583.4, 21.6667, 0.0123456, 3.0)]
    ['12,583', '21.7', '0.0123', '3']
    """
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def exactly(value: float) -> str:
    """Return a number in six digits, or in as many as it takes to tell it from every other: what is wrong with it must be seen.

    >>> [exactly(value) for value in (2.0, 0.1, 0.99999999, 1e60, 1.0000001e60, 16777217.0)]
    ['2', '0.1', '0.99999999', '1e+60', '1.0000001e+60', '16777217']
    """
    short = f"{value:g}"
    return short if float(short) == value or value != value else repr(float(value)).removesuffix(".0")


def contrast(value: float, limit: float, form: str = "g", digits: int = 6) -> tuple[str, str]:
    """Return a value and the limit that it breaks, in as many digits as it takes to tell them apart.

    >>> contrast(13.0, 9.0), contrast(9.00000004, 9.0), contrast(1.04e-6, 1e-6, "e", 1)
    (('13', '9'), ('9.00000004', '9'), ('1.04e-06', '1.00e-06'))
    """
    while True:
        shown = f"{value:.{digits}{form}}", f"{limit:.{digits}{form}}"
        if shown[0] != shown[1] or digits >= 17:
            return shown
        digits += 1


def percent(part: float) -> str:
    """Return a part in percent, in three digits.

    >>> percent(5 / 7), percent(1.0)
    ('71.4 %', '100 %')
    """
    return f"{figure(100 * part)} %"
