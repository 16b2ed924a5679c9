"""Numbers of tasks and of users, and short lists of names, as parts of the sentences of `fairopt.explain`.

>>> either([0, 1], "has", "less", "more"), some(["a", "b", "c", "d"])
('nobody has less and 1 user has more', 'a, b, c and 1 more')
"""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.analysis.explanation import Number
from fairopt.wording import joined, plural

__all__ = ["NAMES", "either", "how_many", "number_of_tasks", "some"]

NAMES = 3  # the most names in a list


def number_of_tasks(number: Number) -> str:
    """Return "1 task", "2.5 tasks"."""
    return plural(number, "task", digits=3)


def how_many(number: int, verb: str) -> str:
    """Return "nobody has", "1 user has", "3 users have"."""
    return plural(number, f"user {verb}", f"users {'have' if verb == 'has' else verb.removesuffix('s')}") if number else f"nobody {verb}"


def either(numbers: Sequence[int], verb: str, *what: str) -> str:
    """Return "nobody has less and 1 user has more", "nobody has less or more"."""
    if not any(numbers):
        return f"nobody {verb} {' or '.join(what)}"
    return joined([f"{how_many(number, verb)} {word}" for number, word in zip(numbers, what, strict=True)])


def some(names: Sequence[str]) -> str:
    """Return a list of at most NAMES names, and how many more there are."""
    return joined(names, NAMES)
