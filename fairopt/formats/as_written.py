"""The numbers of a document that floats would round, as they are written: 1/3, and decimals of more digits than a float has.

The schema of a document converts its numbers to floats. Here they are taken from the data before that conversion.

>>> from fairopt.instance.fractions import written
>>> numbers = AsWritten({"users": [{"tasks": 2}, {"tasks": written("0.12345678901234567890")}]})
>>> numbers.of_users("tasks", "tasks", [2.0, 0.12345678901234568])[1]
Fraction(1234567890123456789, 10000000000000000000)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.formats.messages import Path
from fairopt.instance.fractions import ExactArray, Written, fractions_of, is_exact
from fairopt.validation import FloatArray

__all__ = ["AsWritten"]


class AsWritten:
    """The numbers of a document that floats would round.

    Parameters
    ----------
    data : plain data
        That the schema has accepted, with numbers in the place of quantities.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self._kept: dict[str, list[tuple[tuple[int, ...], Fraction]]] = {}

    def keep(self, array: str, place: tuple[int, ...], *path: str | int) -> None:
        """Keep the number at a path of the document for a place of an array, if its float is rounded."""
        number = self.at(*path, given=None)
        if number is not None:
            self._kept.setdefault(array, []).append((place, number))

    def at(self, *path: str | int, given: Any) -> Any:
        """Return the number at a path of the document as a fraction if its float is rounded; else ``given``."""
        value = self._data
        for step in path:
            if isinstance(value, dict) and step not in value:
                return given
            value = value[step]
        if type(value) is Written:
            return value.fraction
        return Fraction(value) if type(value) is int and is_exact(value) else given

    def amounts(self, path: Path, given: dict[str, dict[str, float]]) -> dict[str, dict[str, Any]]:
        """Return the amounts of an entry by word and resource; those that floats would round are fractions."""
        return {
            word: {resource: self.at(*path, word, resource, given=amount) for resource, amount in amounts.items()}
            for word, amounts in given.items()
        }

    def exact(self, array: str, floats: FloatArray) -> FloatArray | ExactArray:
        """Return an array with the numbers that were kept for it."""
        if array not in self._kept:
            return floats
        exact = fractions_of(floats)
        for place, number in self._kept[array]:
            exact[place] = number
        return exact

    def of_users(self, array: str, key: str, floats: Sequence[float]) -> FloatArray | ExactArray:
        """Return a number of each user as an array, (users,)."""
        for n in range(len(floats)):
            self.keep(array, (n,), "users", n, key)
        return self.exact(array, np.array(floats, float))
