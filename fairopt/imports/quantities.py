"""Quantities of Kubernetes: ``3500m``, ``30770604Ki``, ``1e3``, ``2Gi``.

A decimal number with a suffix, which is a power of ten (n, u, m, k, M, G, T, P, E), a power of 1024 (Ki, Mi, Gi, Ti, Pi, Ei) or an
exponent (e3, E3). Kubernetes keeps no more than nine decimals and rounds up, and so does this: amounts are whole numbers of 1e-9, exact
however many are added.

Source: Kubernetes API reference, Quantity (apimachinery/pkg/api/resource).

>>> nano("3500m"), nano("1e3") == nano("1k"), nano("0.5Ki") == nano(512)
(3500000000, True, True)
"""

from __future__ import annotations

import re

__all__ = ["NANO", "nano"]

NANO = 10**9
_LARGEST = NANO << 63
_LONGEST = 1000  # characters
_POWERS = {"": 9, "n": 0, "u": 3, "m": 6, "k": 12, "M": 15, "G": 18, "T": 21, "P": 24, "E": 27}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"\+?(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([-+]?\d{1,3}))?", re.ASCII)


def nano(quantity: str | int | float) -> int:
    """Return a quantity in units of 1e-9, rounded up.

    Raises
    ------
    ValueError
        It is not a quantity, or negative.
    """
    text = quantity.strip() if isinstance(quantity, str) else repr(quantity)
    shown = text[:40]
    if len(text) > _LONGEST:
        raise ValueError(f'"{shown}" and so on, {len(text):,} characters, is not a quantity such as 500m, 2 or 1.5Gi')
    match = _QUANTITY.fullmatch(text)
    if match is None:
        if re.fullmatch(r"-\s*[\d.].*", text):
            raise ValueError(f'"{shown}" is negative; an amount is >= 0')
        if re.match(r"\+?[\d.]+[A-Za-z]+$", text):
            raise ValueError(f'"{shown}" has an unknown unit; the units are n u m k M G T P E, Ki Mi Gi Ti Pi Ei and exponents such as e3')
        raise ValueError(f'"{shown}" is not a quantity such as 500m, 2 or 1.5Gi')
    digits, suffix, exponent = match[1], match[2] or "", match[3]
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
