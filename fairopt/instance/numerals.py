"""Numbers as people write them: with a decimal point or a decimal comma, and with thousands apart.

Most numbers have one reading, whatever country they are from:

======================================  ===============================================================================================
``0,5`` and ``12,25``                   a comma with other than three digits after it, or with 0 before it, is a decimal comma
``1 024``, ``1'024``, ``1_024``         a space, an apostrophe or an underscore between groups of three digits means nothing
``1.024,5`` and ``1,024.5``             the last sign is the decimal sign
``1,024,000`` and ``1.024.000``         a sign that occurs twice groups thousands
``1,024`` and ``1.024``                 either 1024 or 1.024: the other numbers of the table decide
======================================  ===============================================================================================

>>> [numeral(text).plain for text in ("0,5", "1 024", "1.024,5 GB", "1,024,000", "2.5e3")]
['0.5', '1024', '1024.5 GB', '1024000', '2.5e3']
>>> numeral("1,024"), numeral("0,5").decimal, numeral("1,024,000").decimal, numeral("2026-11-22")
(Numeral(plain='1.024', decimal=',', grouped='1024'), ',', '.', None)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Numeral", "numeral"]

_NUMERAL = re.compile(r"(?P<sign>[-+]?)(?P<digits>\d[\d.,'\u2019_\s]*|[.,]\d+)(?P<rest>(?:[eE][-+]?\d{1,3})?\s*(?:[^\W\d_]*|%))")
_APART = re.compile(r"\d{1,3}(?P<apart>['\u2019_\s])\d{3}(?:(?P=apart)\d{3})*(?:[.,]\d+)?")
_BOTH = re.compile(r"\d{1,3}(?:,\d{3})+\.\d*|\d{1,3}(?:\.\d{3})+,\d*")
_GROUPS = re.compile(r"\d{1,3}(?:(?:,\d{3}){2,}|(?:\.\d{3}){2,})")
_ONE = re.compile(r"(?P<whole>\d*)(?P<sign>[.,])(?P<part>\d*)")
_GROUP = 3  # digits
_LONGEST = 100  # characters


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number as it is written.

    Attributes
    ----------
    plain : str
        With a decimal point and nothing between digits; its unit follows as it was.
    decimal : str
        The decimal sign that it shows to be in use, "." or ","; "" if it shows none.
    grouped : str
        Where the sign may group thousands as well: the number that is meant then. "" if there is one reading.
    """

    plain: str
    decimal: str = ""
    grouped: str = ""


def numeral(text: str) -> Numeral | None:
    """Return the number that a text begins with, alone or with a unit; None if the text is no number."""
    match = _NUMERAL.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        return None
    sign, digits, rest = match["sign"], match["digits"], match["rest"]
    number = digits.strip()
    rest = f"{' ' if number != digits and rest else ''}{rest}"
    if number.isdigit():
        return Numeral(f"{sign}{number}{rest}")
    apart = _APART.fullmatch(number)
    if apart is not None:
        number = number.replace(apart["apart"], "")
    elif _BOTH.fullmatch(number):
        number = number.replace("," if number.find(",") < number.find(".") else ".", "")
    elif _GROUPS.fullmatch(number):
        separator = "," if "," in number else "."
        return Numeral(f"{sign}{number.replace(separator, '')}{rest}", "." if separator == "," else ",")
    if number.isdigit():
        return Numeral(f"{sign}{number}{rest}")
    one = _ONE.fullmatch(number)
    if one is None:
        return None
    plain, whole = f"{sign}{one['whole']}.{one['part']}{rest}", one["whole"]
    may_group = len(one["part"]) == _GROUP and 0 < len(whole) <= _GROUP and whole[0] != "0"
    if may_group and number == digits.strip() and rest[:1] not in ("e", "E"):
        return Numeral(plain, one["sign"], f"{sign}{whole}{one['part']}{rest}")
    return Numeral(plain, one["sign"])
