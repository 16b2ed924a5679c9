"""Results are equal if all that they hold is, part by part; how long they took does not count.

So a copy of a result, and what comes out of a pickle, is equal to it, and so is the same answer to the same question.

>>> same({"a": np.array([1.0, np.nan])}, {"a": np.array([1.0, np.nan])}), same((1, 2.0), (1, 3.0))
(True, False)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["ComparesItself", "same"]

_TIMES = frozenset({"seconds", "trace"})  # parts of a result that say how it was found, not what it is


class ComparesItself:
    """A result that equals another one if both hold the same (`same`)."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other or (same(self, other) if type(self) is type(other) else NotImplemented)

    def __hash__(self) -> int:
        parts: Any = dataclasses.fields(self)  # type: ignore[arg-type]
        values = (getattr(self, part.name) for part in parts)
        return hash((type(self), *(value for value in values if isinstance(value, str))))


def same(one: Any, other: Any) -> bool:
    """Do two values hold the same? Arrays are compared entry by entry, NaN equals NaN, and dataclasses field by field."""
    return _same(one, other, set())


def _same(one: Any, other: Any, begun: set[tuple[int, int]]) -> bool:
    if one is other or (id(one), id(other)) in begun:  # a part may lead back to the whole
        return True
    begun.add((id(one), id(other)))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return _same_arrays(one, other)
    if type(one) is not type(other):
        return _same_numbers(one, other)
    if isinstance(one, float):
        return bool(one == other) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(_same(a, b, begun) for a, b in zip(one, other, strict=True))
    if _has_no_own(one) and (parts := _parts(one)):
        return all(_same(getattr(one, name, None), getattr(other, name, None), begun) for name in parts)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[name], begun) for name, value in one.items())
    if _has_no_own(one) and not callable(one):
        return True
    return bool(np.all(one == other))


def _has_no_own(value: Any) -> bool:
    """Has the class of a value no equality of its own? That of a dataclass takes NaN for something else."""
    if getattr(getattr(type(value), "__dataclass_params__", None), "eq", False):
        return True
    return getattr(type(value), "__eq__", None) in (object.__eq__, ComparesItself.__eq__)


def _parts(value: Any) -> list[str]:
    """Return the names of what a value holds."""
    if dataclasses.is_dataclass(value):
        return [part.name for part in dataclasses.fields(value) if part.name not in _TIMES]
    slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
    return [*getattr(value, "__dict__", ()), *slots]


def _same_arrays(one: Any, other: Any) -> bool:
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)) or one.dtype != other.dtype:
        return False
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def _same_numbers(one: Any, other: Any) -> bool:
    numbers = (int, float, np.number)
    return isinstance(one, numbers) and isinstance(other, numbers) and bool(one == other)
