"""Words that messages share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

__all__ = ["did_you_mean", "plural", "some"]


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
    return ", ".join(labels[:most]) + (f" and {rest} more" if rest > 0 else "")
