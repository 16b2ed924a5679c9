"""The proof that a point of a linear program has the largest value, in rationals: weak duality.

Let z satisfy A z <= right, z >= 0, and let the prices y satisfy y >= 0, A' y >= cost. Every z' of the program has
cost z' <= y A z' <= y right. So z is best where cost z = y right.

>>> from fractions import Fraction
>>> prove_largest([1, 1], [(0, 0, 2), (0, 1, 3)], [6], [3, 0], [Fraction(1, 2)])
>>> prove_largest([1, 1], [(0, 0, 2), (0, 1, 3)], [6], [0, 2], [Fraction(1, 2)])
Traceback (most recent call last):
fairopt.errors.CertificateError: the value of a linear program is 2, and its prices prove no more than 3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairopt.errors import CertificateError

__all__ = ["prove_largest"]


def prove_largest(
    cost: Sequence[Any], entries: Sequence[tuple[int, int, Any]], right: Sequence[Any], point: Sequence[Any], prices: Sequence[Any]
) -> None:
    """Prove that a point of maximise cost z, A z <= right, z >= 0 is best.

    Raises
    ------
    CertificateError
    """
    used: list[Any] = [0] * len(right)
    costs: list[Any] = [0] * len(cost)
    for i, j, value in entries:
        used[i] += value * point[j]
        costs[j] += value * prices[i]
    if any(value < 0 for value in point) or any(use > most for use, most in zip(used, right, strict=True)):
        raise CertificateError("the point of a linear program exceeds one of its limits")
    if any(price < 0 for price in prices) or any(price < worth for price, worth in zip(costs, cost, strict=True)):
        raise CertificateError("the prices of a linear program do not pay for one of its columns")
    value, bound = (sum(a * b for a, b in zip(*pair, strict=True)) for pair in ((cost, point), (prices, right)))
    if value != bound:
        raise CertificateError(f"the value of a linear program is {value}, and its prices prove no more than {bound}")
