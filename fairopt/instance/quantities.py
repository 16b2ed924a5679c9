"""Numbers with a unit: ``256GiB``, ``500m``, ``1/3``, and the quantities of Kubernetes.

======================  ========================================================================
``500m``                a part: n, u, m are 10^-9, 10^-6, 10^-3
``2k``                  a multiple: k, M, G, T, P, E are 10^3, 10^6, ..., 10^18
``64Gi``                a multiple: Ki, Mi, Gi, Ti, Pi, Ei are 2^10, 2^20, ..., 2^60
``1/3``, ``1/2Gi``      a fraction, also with a unit
``64GiB``, ``512B``     a trailing B says bytes; so do Ki to Ei and M to E without it
======================  ========================================================================

A quantity is a fraction, and in floating point the nearest number. Spaces may stand before the unit: ``64 GiB``. Upper and lower case
matter: ``m`` is a thousandth, ``M`` a million.
Kubernetes knows neither fractions nor the trailing B, keeps no more than nine decimals and rounds up, and so does `nano`: amounts are whole
numbers of 1e-9, exact however many are added.

Source: Kubernetes API reference, Quantity (apimachinery/pkg/api/resource).

>>> float(read("500m").value), float(read("1/3").value), read("256GiB").value == 256 * 2**30
(0.5, 0.3333333333333333, True)
>>> nano("3500m"), nano("1e3") == nano("1k"), nano("0.5Ki") == nano(512)
(3500000000, True, True)
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from fractions import Fraction

from fairopt.instance.fractions import written
from fairopt.instance.numerals import numeral

__all__ = ["BYTES_PATTERN", "NANO", "PATTERN", "SHARE_PATTERN", "Quantity", "advice", "nano", "percentage", "plain", "read"]

NANO = 10**9
_LARGEST = NANO << 63
_LONGEST = 1000  # characters
_POWERS = {"": 9, "n": 0, "u": 3, "m": 6, "k": 12, "M": 15, "G": 18, "T": 21, "P": 24, "E": 27}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(
    r"\+?(?:(?P<over>\d+)/(?P<under>\d+)|(?P<digits>\d+\.?\d*|\.\d+)(?:[eE](?P<exponent>[-+]?\d{1,3}))?)"
    r"[\s\u00a0\u202f]*(?P<unit>[numkMGTPE]|[KMGTPE]i)?(?P<bytes>B)?",
    re.ASCII,
)
_PARTS = ("n", "u", "m")
_OF_BYTES = ("M", "G", "T", "P", "E")  # as Kubernetes writes bytes; k is a thousand of anything
_UNITS = "n u m k M G T P E, Ki Mi Gi Ti Pi Ei"
_SUCH = "a quantity such as 500m, 1/3 or 256GiB"

# For the JSON Schema of files: text that is a quantity, and not a number that only stands in quotes.
_DIGITS, _FRACTION, _MULTIPLE = r"([0-9]+\.?[0-9]*|\.[0-9]+)", r"[0-9]+/0*[1-9][0-9]*", r"(k|[MGTPE]i?|Ki)"
_EXPONENT = r"([eE][-+]?[0-9]{1,3})?"
PATTERN = rf"^\+?({_FRACTION}( *[numk])?|{_DIGITS} *[numk])$"
BYTES_PATTERN = rf"^\+?({_FRACTION} *([num]|{_MULTIPLE}?B?)|{_DIGITS} *([num]|{_MULTIPLE}B?)|{_DIGITS}{_EXPONENT} *B)$"
SHARE_PATTERN = rf"^\+?({_FRACTION}( *[numk])?|{_DIGITS} *[numk%])$"
_PERCENTAGE = re.compile(rf"\+?(?P<number>{_DIGITS})[\s\u00a0\u202f]*%")
_BYTE_UNITS = {f"{unit}{b}".lower(): f"{unit}{b}" for unit in ("k", *_OF_BYTES, *_BINARY) for b in ("B", "") if unit + b not in ("k", "M")}
_NOTHING = {"-", "--", "\u2013", "\u2014", "n/a", "na", "none", "null", "nil"}
_NO_END = {"unlimited", "infinite", "infinity", "\u221e", "no limit", "nolimit"}
_DATE = re.compile(r"\d{1,4}([-./])(\d{1,2}|[A-Za-z]{3,9})(\1\d{1,4})?|[A-Za-z]{3}-\d{2,4}")
_ERROR = re.compile(r"#(REF|DIV/0|VALUE|NAME|NUM|NULL|N/A|SPILL|CALC)[!?]?|Err:\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit.

    Attributes
    ----------
    value : Fraction
        Exact, and in bytes if it has a byte unit.
    in_bytes : bool
        The unit is one of bytes.
    unit : str
        As it is written: "GiB".
    """

    value: Fraction
    in_bytes: bool
    unit: str


def read(text: str) -> Quantity:
    """Return the quantity that a text is; a number without a unit is none.

    Raises
    ------
    ValueError
        It is none, it is negative, or no floating point number is near it.
    """
    text = text.strip()
    match = _matched(text, _SUCH, f"the units are {_UNITS} and B for bytes")
    unit, has_b = match["unit"] or "", match["bytes"] is not None
    if match["over"]:
        if not int(match["under"]):
            raise ValueError(f'"{text[:40]}" divides by 0; write a fraction such as 1/3')
        value = Fraction(int(match["over"]), int(match["under"]))
    else:
        value = Fraction(f"{match['digits']}e{match['exponent'] or 0}")
    if not (match["over"] or unit or has_b) or (match["exponent"] and unit) or (has_b and unit in _PARTS):
        raise ValueError(f'"{text[:40]}" is not {_SUCH}')
    value *= 2 ** _BINARY[unit] if unit in _BINARY else Fraction(10) ** (_POWERS[unit] - _POWERS[""])
    try:
        float(value)
    except OverflowError:
        raise ValueError(f'"{text[:40]}" is beyond 1e308; give a smaller number') from None
    return Quantity(value, has_b or unit in _BINARY or unit in _OF_BYTES, unit + "B" * has_b)


def plain(text: str, *, of_resource: bool) -> float | None:
    """Return the number that a quantity means; None for no quantity, and for bytes of anything but a resource. It keeps its fraction.

    >>> plain("500m", of_resource=False), plain("1Gi", of_resource=False), plain("1Gi", of_resource=True), plain("2", of_resource=True)
    (0.5, None, 1073741824.0, None)
    """
    try:
        quantity = read(text)
    except ValueError:
        return None
    return written(quantity.value) if of_resource or not quantity.in_bytes else None


def percentage(text: str) -> Fraction | None:
    """Return the part of a whole that a percentage is; None of any other text.

    >>> percentage("50 %"), percentage("12.5%"), percentage("50")
    (Fraction(1, 2), Fraction(1, 8), None)
    """
    match = _PERCENTAGE.fullmatch(text.strip()) if len(text) < _LONGEST else None
    return None if match is None else Fraction(match["number"]) / 100


def advice(text: str, *, of_resource: bool) -> str:
    """Return what to write instead of a text that is no quantity.

    >>> advice("0,5", of_resource=True), advice("-500m", of_resource=False), advice("256gb", of_resource=True)
    ('write 0.5', 'it must be >= 0', 'gb is no unit; write 256GB')
    >>> advice("16 gpu", of_resource=True)
    'gpu is no unit; the units are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, each from k on also with B for bytes'
    >>> advice("two", of_resource=True), advice("two", of_resource=False)
    ('write digits, or a quantity such as 500m, 1/3 or 256GiB', 'write digits, or a quantity such as 500m or 1/3')
    >>> advice("1/0", of_resource=False), advice("1,024", of_resource=False), advice("n/a", of_resource=False)
    ('nothing can be divided by 0', 'it may be 1024 or 1.024; write one of them', 'leave it empty, or write 0 if you mean 0')
    """
    text = text.strip()[:_LONGEST]
    such = _SUCH if of_resource else "a quantity such as 500m or 1/3"
    with contextlib.suppress(ValueError):
        if read(text).in_bytes and not of_resource:
            return f"bytes are for amounts of resources; write digits, or {such}"
    if re.fullmatch(r"[-+]?\d+/0+", text):
        return "nothing can be divided by 0"
    if re.match(r"-\s*[\d.]", text):
        return "it must be >= 0"
    if percentage(text) is not None:
        return "write how much or how many that is"
    told = _advice_on_words(text)
    number = numeral(text) if told is None else None
    if number is None:
        return told or f"write digits, or {such}"
    if number.grouped and "," in text:
        return f"it may be {number.grouped} or {number.plain}; write one of them"
    digits, unit = re.fullmatch(r"(.*?)\s*([^\W\d_]*)", number.plain).groups()  # type: ignore[union-attr]  # which matches every text
    if unit and number.plain[-1] not in ".0123456789" and unit not in ("e", "E"):
        meant = _BYTE_UNITS.get(unit.lower(), "") if of_resource else ""
        with contextlib.suppress(ValueError):
            read(number.plain)
            return f"write {number.plain}"
        if meant:
            return f"{unit[:20]} is no unit; write {digits}{meant}"
        return f"{unit[:20]} is no unit; the units are {_UNITS}, each from k on also with B for bytes"
    return f"write {number.plain}" if number.plain != text else f"write digits, or {such}"


def _advice_on_words(text: str) -> str | None:
    """Return what to write instead of what people and spreadsheets write where there is no number."""
    word = text.lower()
    if word in _NOTHING:
        return "leave it empty, or write 0 if you mean 0"
    if word in _NO_END:
        return "leave it empty for no limit"
    if word in ("true", "false", "yes", "no"):
        return "write 1 or 0, or another number"
    if text.startswith("="):
        return "it is a formula; write its value"
    if _ERROR.fullmatch(text):
        return "it is an error of a formula; correct it"
    if _DATE.fullmatch(text):
        return "it looks like a date, which a spreadsheet makes of 1-4 or 1/4: format the cell as text, then write the number again"
    return None


def nano(quantity: str | int | float) -> int:
    """Return a quantity of Kubernetes in units of 1e-9, rounded up.

    Raises
    ------
    ValueError
        It is not a quantity, or negative.
    """
    text = quantity.strip() if isinstance(quantity, str) else repr(quantity)
    shown = text[:40]
    such = "a quantity such as 500m, 2 or 1.5Gi"
    match = _matched(text, such, f"the units are {_UNITS} and exponents such as e3")
    if any(map(str.isspace, text)):
        raise ValueError(f'"{shown}" is not {such}')
    if match["bytes"]:
        raise ValueError(f'"{shown}" has an unknown unit; the units are {_UNITS} and exponents such as e3')
    digits, suffix, exponent = match["digits"], match["unit"] or "", match["exponent"]
    if digits is None or (suffix and exponent):
        raise ValueError(f'"{shown}" is not {such}')
    integer, _, decimals = digits.partition(".")
    number = int((integer + decimals) or "0")
    if suffix in _BINARY:
        number, power = number << _BINARY[suffix], 9
    else:
        power = 9 + int(exponent) if exponent else _POWERS[suffix]
    power -= len(decimals)
    scale: int = 10 ** abs(power)
    amount = number * scale if power >= 0 else -(-number // scale)
    if amount >= _LARGEST:
        raise ValueError(f'"{shown}" is more than Kubernetes can hold, 2^63')
    return amount


def _matched(text: str, such: str, units: str) -> re.Match[str]:
    """Return the parts of a quantity.

    Raises
    ------
    ValueError
        It is none, or negative.
    """
    shown = text[:40]
    if len(text) > _LONGEST:
        raise ValueError(f'"{shown}" and so on, {len(text):,} characters, is not {such}')
    match = _QUANTITY.fullmatch(text)
    if match is None:
        if re.fullmatch(r"-\s*[\d.].*", text):
            raise ValueError(f'"{shown}" is negative; an amount is >= 0')
        if re.match(r"\+?[\d.]+[A-Za-z]+$", text):
            raise ValueError(f'"{shown}" has an unknown unit; {units}')
        raise ValueError(f'"{shown}" is not {such}')
    return match
