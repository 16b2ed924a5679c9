"""Numbers as they are written: fractions beside floating point.

An int, a `Fraction` and a `Decimal` are what they are. A float stands for its shortest decimal, the one that Python prints: 0.1 is 1/10.
Infinity, for no limit, stays the float ``inf``.

>>> fraction_of(0.1), fraction_of(Fraction(1, 3)), fraction_of(float("inf"))
(Fraction(1, 10), Fraction(1, 3), inf)

An array that was given in numbers which its floats do not mean keeps them beside the floats:

>>> import numpy as np
>>> kept([Fraction(1, 3), 0.5], np.array([1 / 3, 0.5]))
array([Fraction(1, 3), Fraction(1, 2)], dtype=object)
>>> kept([Fraction(1, 4), 0.5], np.array([0.25, 0.5])) is None
True
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from flint import fmpq

__all__ = [
    "ExactArray",
    "Written",
    "as_written",
    "fraction_of",
    "fractions_of",
    "from_rational",
    "from_rationals",
    "is_exact",
    "kept",
    "nearest",
    "objects",
    "plain",
    "plain_numbers",
    "rational",
    "rationals",
    "rounding",
    "text_of",
    "written",
]

ExactArray: TypeAlias = npt.NDArray[Any]
"""An array of Fractions, and of ``inf`` where there is no limit."""

_EXACT = 2.0**53  # whole floats below are the integers that they print as
_SHORT = 16  # a decimal of fewer characters is the shortest of its float
_DIGITS = frozenset("123456789")  # every number but 0 has one of these
_FAINTEST = math.ulp(0.0)  # the smallest float
_POWERS = 400  # a larger power of ten is beyond every float


class Written(float):
    """A float that stands for a fraction which it is not equal to, as it was written in a file."""

    fraction: Fraction

    def __new__(cls, fraction: Fraction) -> Written:
        """Return the nearest float."""
        number = super().__new__(cls, fraction)
        number.fraction = fraction
        return number

    def __reduce__(self) -> tuple[Any, ...]:
        return Written, (self.fraction,)


def written(value: Fraction | str) -> float:
    """Return the float of a fraction, or of a decimal that is text; it keeps the fraction where its shortest decimal is another number.

    >>> written(Fraction(1, 4)), written(Fraction(1, 3)).fraction, written("0.1000000000000000000001").fraction - Fraction(1, 10)
    (0.25, Fraction(1, 3), Fraction(1, 10000000000000000000000))

    A positive number smaller than every float becomes the smallest float, as in `nearest`, so that no check takes it for 0.

    >>> written("1e-400") > 0, written("0e-400"), written("-0.0")
    (True, 0.0, -0.0)
    """
    if isinstance(value, str):
        number = float(value)
        if number == 0:
            is_zero = not set(value.lower().partition("e")[0]) & _DIGITS
            return number if is_zero else math.copysign(_FAINTEST, number)
        if len(value) < _SHORT or not math.isfinite(number):
            return number
        with contextlib.suppress(ValueError):
            if abs(int(value.lower().partition("e")[2] or 0)) <= _POWERS:
                return written(Fraction(value))
        return number
    number = nearest(value)
    return number if number == _FAINTEST or fraction_of(number) == value else Written(value)


def as_written(rows: Sequence[Sequence[float]]) -> npt.NDArray[Any]:
    """Return numbers of a file as an array: of floats, or of fractions where one of them is `Written`.

    >>> as_written([[0.5, 2.0]]), as_written([[0.5, written(Fraction(1, 3))]])
    (array([[0.5, 2. ]]), array([[Fraction(1, 2), Fraction(1, 3)]], dtype=object))
    """
    if any(isinstance(value, Written) for row in rows for value in row):
        return fractions_of(np.array(rows, dtype=object))
    return np.array(rows, dtype=np.float64)


def nearest(value: Any) -> float:
    """Return the nearest float of a number; the smallest float of one that is not 0, but smaller, which no check takes for 0.

    >>> nearest(Fraction(1, 4)), nearest(Fraction(1, 10**400)) > 0
    (0.25, True)
    """
    number = float(value)
    return number if number or value == 0 else _FAINTEST


def fraction_of(value: Any) -> Any:
    """Return a number as a fraction; ``inf`` as it is."""
    if isinstance(value, Written):
        return value.fraction
    if isinstance(value, float | np.floating):
        number = float(value)
        if not math.isfinite(number):
            return number
        return Fraction(int(number)) if number.is_integer() and abs(number) < _EXACT else Fraction(repr(number))
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, Decimal) and value.is_infinite():
        return float(value)
    return Fraction(value)


def fractions_of(values: npt.ArrayLike) -> ExactArray:
    """Return an array of numbers as fractions.

    >>> fractions_of([[0.1, 2]])
    array([[Fraction(1, 10), Fraction(2, 1)]], dtype=object)
    """
    array = np.asarray(values)
    if array.dtype == bool:
        array = array.astype(np.int64)
    if array.dtype == object:
        return objects([fraction_of(value) for value in array.ravel().tolist()], array.shape)
    distinct, place = np.unique(array.ravel(), return_inverse=True)
    return objects([fraction_of(value) for value in distinct.tolist()], distinct.shape)[place].reshape(array.shape)


def kept(values: object, floats: npt.NDArray[np.float64]) -> ExactArray | None:
    """Return values as fractions where their ``floats`` do not say the same; None where they do, as they nearly always do."""
    if values is None or (isinstance(values, np.ndarray) and values.dtype.kind == "f"):
        return None
    array = np.asarray(values)
    if array.dtype.kind == "f" or (array.dtype.kind in "iub" and (array.size == 0 or float(np.abs(floats).max()) < _EXACT)):
        return None
    exact = fractions_of(array)
    same = all(a == b for a, b in zip(exact.ravel().tolist(), fractions_of(floats).ravel().tolist(), strict=True))
    if same:
        return None
    exact.setflags(write=False)
    return exact


def plain(value: Any) -> float | str:
    """Return a number as plain data: a float, or the text of a fraction that is not the shortest decimal of its float.

    >>> plain(Fraction(1, 4)), plain(Fraction(20, 3)), plain(0.1)
    (0.25, '20/3', 0.1)
    """
    number = float(value)
    if isinstance(value, float) or fraction_of(number) == value:
        return number
    return f"{value.numerator}/{value.denominator}"


def plain_numbers(value: Any) -> Any:
    """Return the same data with 9 for 9.0 wherever nothing is lost (the sign of -0.0 would be).

    >>> plain_numbers({"cpu": [9.0, 0.5, -0.0, 1e300]})
    {'cpu': [9, 0.5, -0.0, 1e+300]}
    """
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0":
        return int(value)
    return value


def is_exact(value: object) -> bool:
    """Is it a number that need not be a float: a Fraction, a Decimal, a very large int?"""
    if isinstance(value, Integral):
        return not isinstance(value, bool) and abs(int(value)) >= _EXACT
    return isinstance(value, Rational | Decimal)


def rounding(relative: float, values: npt.NDArray[Any]) -> float | int:
    """Return a relative tolerance for numbers like those of an array: 0 for fractions, which have no rounding.

    >>> rounding(1e-9, np.zeros(2)), rounding(1e-9, fractions_of([1, 2]))
    (1e-09, 0)
    """
    return 0 if values.dtype == object else relative


def objects(values: Sequence[Any], shape: tuple[int, ...] | None = None) -> ExactArray:
    """Return an array of these objects as they are, of this shape or flat.

    >>> objects([Fraction(1, 3), 2])
    array([Fraction(1, 3), 2], dtype=object)
    """
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array if shape is None else array.reshape(shape)


# In FLINT, whose rationals are several times as fast ---------------------------------------------------------------------------------


def rational(value: Any) -> fmpq:
    """Return a finite number as a rational of FLINT.

    >>> rational(Fraction(2, 6))
    1/3
    """
    from flint import fmpq

    if isinstance(value, fmpq):
        return value
    if not isinstance(value, Fraction):
        value = fraction_of(value)
    return fmpq(value.numerator, value.denominator)


def text_of(value: Fraction) -> str:
    """Return a fraction as text, with all of its digits. (Python itself writes no whole number of more than 4,300 digits.)

    >>> text_of(Fraction(2, 6)), text_of(Fraction(4)), len(text_of(Fraction(1, 10**5000)))
    ('1/3', '4', 5003)
    """
    return str(rational(value))


def rationals(values: npt.ArrayLike) -> ExactArray:
    """Return an array of numbers as rationals of FLINT; ``inf`` stays as it is."""
    array = np.asarray(values)
    array = array if array.dtype == object else fractions_of(array)
    return objects([value if isinstance(value, float) else rational(value) for value in array.ravel().tolist()], array.shape)


def from_rational(value: Any) -> Fraction:
    """Return a rational of FLINT as a Fraction.

    >>> from_rational(rational(0.75))
    Fraction(3, 4)
    """
    return Fraction(int(value.p), int(value.q))


def from_rationals(values: ExactArray) -> ExactArray:
    """Return an array of rationals of FLINT as Fractions."""
    known: dict[Any, Fraction] = {}
    flat = []
    for value in values.ravel().tolist():
        if value not in known:
            known[value] = from_rational(rational(value))
        flat.append(known[value])
    return objects(flat, values.shape)
