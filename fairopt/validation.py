"""Checks of what callers give: arrays, labels and arguments. A message says what is wrong, where, and what to do.

Arrays and labels that are wrong raise `InvalidInstance`, arguments `Unsupported`.

>>> check(numbers([[1.0, -2.0]], "demands"), np.array([[True, False]]), "demand", ">= 0", ("alice",), ("cpu", "memory"))
Traceback (most recent call last):
    ...
fairopt.errors.InvalidInstance: the demand of "alice" for "memory" is -2; it must be >= 0
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.wording import exactly, written

__all__ = [
    "RANGE",
    "RANGE_OF_WEIGHTS",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "booleans",
    "check",
    "check_number_of_workers",
    "check_seconds",
    "check_time_limit",
    "check_tolerance",
    "check_whole_number",
    "check_yes_or_no",
    "frame_labels",
    "in_range",
    "is_number",
    "is_whole_number",
    "matrix",
    "numbers",
    "require_labels",
    "restore_read_only",
    "unique_labels",
]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

_FAINTEST = 1e-300  # a smaller Fraction would be 0 as a float
_SMALLEST, _LARGEST = 1e-60, 1e60  # products and ratios of a few such numbers neither overflow nor underflow
RANGE = f"between {_SMALLEST:g} and {_LARGEST:g}: measure in another unit"
RANGE_OF_WEIGHTS = f"between {_SMALLEST:g} and {_LARGEST:g}: multiply all weights by one number"


# Arrays and their labels ---------------------------------------------------------------------------------------------------------


def numbers(values: npt.ArrayLike, what: str, shape: tuple[int, ...] | None = None, meaning: str = "") -> FloatArray:
    """Return a new float array. Strings, booleans in objects and other things that only look like numbers are refused.

    A Fraction and a Decimal become the nearest float.
    """
    array = _rectangular(values, what)
    if array.dtype.kind not in "iuf":
        array = _numbers_from_objects(array, what)
    if shape is not None and array.shape != shape:
        raise InvalidInstance(f"the shape of {what} is {array.shape}, expected {shape}: {meaning}")
    fresh = np.array(array, dtype=np.float64, order="C")
    fresh += 0.0  # no negative zeros
    return fresh


def _rectangular(values: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    if np.ma.isMaskedArray(values):
        raise InvalidInstance(f"the {what} are a masked array, whose gaps have no meaning here; fill them")
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise InvalidInstance(f"the {what} are not a rectangular array; give rows of equal length") from None


def _numbers_from_objects(array: npt.NDArray[Any], what: str) -> FloatArray:
    """Convert an object array, such as a pandas column, of real numbers; refuse anything else."""
    value: Any
    for position, value in np.ndenumerate(array):
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating, Rational, Decimal)):
            plain = value.item() if isinstance(value, np.generic) else value
            raise InvalidInstance(f"the {what} hold {plain!r}{_in_row(position)}, which is not a real number; give numbers only")
        if isinstance(value, Decimal) and value.is_nan():
            raise InvalidInstance(f"the {what} hold {value}{_in_row(position)}, which is no number; give numbers only")
        size: Any = abs(value)
        if isinstance(value, Fraction | Decimal) and 0 < size < _FAINTEST:
            raise InvalidInstance(f"the {what} hold a number below 1e-300; measure in a smaller unit")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise InvalidInstance(f"the {what} hold a number beyond 1e308; measure in a larger unit") from None


def _in_row(position: tuple[int, ...]) -> str:
    return f" in row {position[0] + 1}" if position else ""


def matrix(values: npt.ArrayLike, what: str, meaning: str, *, may_be_narrow: bool = False) -> FloatArray:
    """Return a new float array with two dimensions, neither of length 0; with ``may_be_narrow``, it may have no column."""
    array = numbers(values, what)
    if array.ndim != 2:
        raise InvalidInstance(f"the shape of {what} is {array.shape}, expected two dimensions: {meaning}")
    if 0 in array.shape and not (may_be_narrow and array.shape[0]):
        raise InvalidInstance(f"the shape of {what} is {array.shape}; there must be at least one row and one column, {meaning}")
    return array


def booleans(values: npt.ArrayLike, shape: tuple[int, int]) -> BoolArray:
    """Return eligibility as booleans, from booleans or from ones and zeros."""
    array = _rectangular(values, "eligibility")
    if array.shape != shape:
        raise InvalidInstance(f"the shape of eligibility is {array.shape}, expected {shape}: (users, servers)")
    if array.dtype.kind != "b" and not (array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all()):
        raise InvalidInstance(
            "eligibility must be true or false (or 1 or 0) for every user and server; found another value; "
            "for how fast a user runs on a server use rates"
        )
    return array.astype(bool)


def unique_labels(labels: Sequence[str] | None, number: int, kind: str) -> tuple[str, ...]:
    """Return the labels as a tuple of unique non-empty strings; default: ``kind-1``, ``kind-2``, ..."""
    if labels is None:
        return tuple(f"{kind}-{j + 1}" for j in range(number))
    if isinstance(labels, set | frozenset) or not isinstance(labels, Iterable):
        raise InvalidInstance(f"the {kind} labels are {labels!r}; give a list of {number} strings, in order")
    if isinstance(labels, str):
        raise InvalidInstance(f'the {kind} labels are one string, "{labels}"; give a list of {number} strings')
    names = tuple(labels)
    if len(names) != number:
        raise InvalidInstance(f"the number of {kind} labels is {len(names)}, expected {number}: one for each {kind}")
    try:
        if len(set(names)) == number and all(map(str.strip, names)):
            return names
    except TypeError:  # not all are strings: the loop below names the first that is not
        pass
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidInstance(f"{kind} label {position + 1} is {name!r}, not a string; labels are strings")
        if not name.strip():
            raise InvalidInstance(f"{kind} label {position + 1} is empty; give every {kind} a name")
        if name in seen:
            raise InvalidInstance(f'the {kind} label "{name}" occurs twice; labels must be unique')
        seen.add(name)
    return names


def frame_labels(
    values: object,
    what: str,
    rows: Sequence[str] | None,
    row_kind: str,
    columns: Sequence[str] | None,
    column_kind: str,
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Return the labels of a pandas frame. Labels that are also given as arguments must be equal to them."""
    if not (hasattr(values, "columns") and hasattr(values, "index")):
        return rows, columns
    result: list[Sequence[str]] = []
    for given, own, kind in ((rows, values.index, row_kind), (columns, values.columns, column_kind)):
        labels = list(own)
        if kind == row_kind and labels == list(range(len(labels))):  # pandas' default index is not a label
            result.append(given)  # type: ignore[arg-type]
            continue
        if given is not None and list(given) != labels:
            raise InvalidInstance(
                f"the {kind} of {what}, {labels}, are not those given elsewhere, {list(given)}; "
                "make both equal and in the same order: nothing is aligned by guess"
            )
        result.append(labels)
    return result[0], result[1]


def require_labels(values: object, what: str, rows: tuple[str, ...], columns: tuple[str, ...] = ()) -> None:
    """Refuse a pandas series or frame whose labels are not exactly those of the instance, in order. Other values have no labels."""
    for attribute, wanted in (("index", rows), ("columns", columns)):
        own = getattr(values, attribute, None)
        if own is None or callable(own):  # a list has a method called index
            continue
        labels = list(own)
        if labels not in (list(wanted), list(range(len(wanted)))):
            raise InvalidInstance(
                f"the {attribute} of the {what} is {labels}, expected {list(wanted)}; put it in that order: nothing is aligned by guess"
            )


def check(values: FloatArray, good: BoolArray, what: str, rule: str, rows: tuple[str, ...], columns: tuple[str, ...] = ()) -> None:
    """Refuse the first value that is not good, or that is extremely large or small; the message has its labels."""
    if good.all():
        size = np.abs(values)
        if size.size and size.min() > _SMALLEST and size.max() < _LARGEST:
            return
        good = (size == 0) | np.isinf(size) | ((size > _SMALLEST) & (size < _LARGEST))
        rule = f"0 or {RANGE_OF_WEIGHTS if what == 'weight' else RANGE}"
    if good.all():
        return
    position = np.argwhere(~good)[0]
    where = f'of "{rows[position[0]]}"'
    if len(position) > 1:
        where += f' for "{columns[position[1]]}"'
    others = int((~good).sum()) - 1
    also = f" ({others} more like it)" if others else ""
    raise InvalidInstance(f"the {what} {where} is {exactly(values[tuple(position)])}; it must be {rule}{also}")


def in_range(value: float) -> bool:
    """Is a number >= 0 neither extremely large nor extremely small? 0 and inf are in the range too."""
    return value in (0, np.inf) or _SMALLEST < value < _LARGEST


def restore_read_only(self: Any, state: Sequence[Any]) -> None:
    """Restore a frozen dataclass with slots from a pickle or a deep copy, as its ``__setstate__``, with read-only arrays.

    Arrays that numpy restores are writeable.
    """
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(self, field.name, value)


# Arguments -----------------------------------------------------------------------------------------------------------------------


def is_whole_number(value: object) -> bool:
    """Is it an integer of Python or numpy? A boolean is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Is it a finite real number of Python or numpy, no larger than a float can be? A boolean is not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def check_whole_number(name: str, value: object, least: int, *, below: int | None = None, meaning: str = "") -> None:
    """Refuse an argument that is not a whole number >= ``least`` (and < ``below``); ``meaning`` ends the message.

    >>> check_whole_number("seed", -1, 0)
    Traceback (most recent call last):
    fairopt.errors.Unsupported: seed is -1; give a whole number >= 0
    """
    if is_whole_number(value) and least <= value and (below is None or value < below):  # type: ignore[operator]
        return
    limit = "" if below is None else f" and < {below:,}"
    raise Unsupported(f"{name} is {written(value)}; give a whole number >= {least}{limit}{meaning}")


def check_seconds(name: str, value: object) -> None:
    """Refuse an argument that is not a finite number of seconds > 0."""
    if not (is_number(value) and value > 0):  # type: ignore[operator]
        raise Unsupported(f"{name} is {written(value)}; give a number of seconds > 0")


def check_time_limit(value: object) -> None:
    """Refuse a time limit that is neither a number of seconds > 0 nor None (no limit)."""
    if value is not None and value != np.inf:
        check_seconds("time_limit", value)


def check_number_of_workers(value: object) -> None:
    """Refuse a number of worker processes that is neither >= 1 nor -1."""
    if not is_whole_number(value) or not (value == -1 or value >= 1):  # type: ignore[operator]
        raise Unsupported(f"workers is {written(value)}; give a number of workers, or -1 for one on each core")


def check_yes_or_no(word: str, value: object) -> None:
    """Refuse what is neither True nor False, such as the text "no", which counts as true in Python."""
    if not isinstance(value, bool | np.bool_):
        raise Unsupported(f"{word} is {written(value)}; give True or False")


def check_tolerance(value: object) -> None:
    """Refuse a tolerance that is not between 0 and 1."""
    if not (is_number(value) and 0 < value < 1):  # type: ignore[operator]
        raise Unsupported(f"tolerance is {written(value)}; give a number > 0 and < 1, such as 1e-8")
