r"""A bound in floats on the distance of each user's utility from an alpha-fair optimum, derived from the gap of the total.

In the symbols of `fairopt.certificate.enclosure`, with the gradient z of the goal at U and the gap of z . U, every user n satisfies

    phi[n] U[n]^(1-alpha) d(U*[n] / U[n])  <=  gap,     d(rho) = rho - 1 - (rho^(1-alpha) - 1) / (1-alpha),

so |U*[n] - U[n]| <= r U[n] for each r with d(1 + r) >= limit and d(1 - r) >= limit, where limit is the gap divided by the user's part of
the total worth. As d'' = alpha rho^(-alpha-1), both hold if alpha r^2 / 2 >= limit (1 + r)^(alpha+1).

The gap is a difference of sums: rounding adds 1e-15 to it, and an excess over a limit adds its size. So r is at least about 1e-7, and grows
as a user's part of the total worth shrinks, even if all digits of the allocation are right. `fairopt.solve(..., exact=True)` proves as many
digits as asked for.

For a trade-off the bound has two factors, as in `fairopt.certificate.enclosure`.
"""

from __future__ import annotations

import math

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import ROUNDING, SAME
from fairopt.program import AlphaFair, Tradeoff

__all__ = ["proved_distance"]

_ROUNDS = 60


def proved_distance(goal: AlphaFair | Tradeoff, weights: FloatArray, utilities: FloatArray, gap: float) -> float:
    """Return r such that the optimal utility of every user is within r U[n] of U[n]; inf where no r < 1 is proved.

    Parameters
    ----------
    goal : AlphaFair or Tradeoff
    weights, utilities : arrays (users,)
        phi[n] and U[n] of the users that can have something.
    gap : float
        Relative bound on how much larger z . U can be in a feasible allocation, plus the excess of the allocation over its limits.

    >>> goal = AlphaFair(1.0, np.ones(2))
    >>> proved_distance(goal, goal.weights, np.ones(2), 1e-6)  # each has half of the worth: r^2 / 2 = 2e-6 (1 + r)^2
    0.002004...
    """
    if not utilities.size:
        return 0.0
    if not utilities.min() > 0:
        return math.inf
    power, efficiency = goal.power, goal.efficiency
    with np.errstate(divide="ignore"):
        log_money = np.log(weights) + (1 - power) * np.log(utilities)
    log_part = float(log_money.min() - np.logaddexp.reduce(log_money))
    limit = (gap + ROUNDING) / (1 - efficiency)
    if efficiency == 0.0:
        return _radius(limit, log_part, power)
    scale = _radius(limit, 0.0, 1.0)
    rest = math.expm1((power - 1) * limit) / (power - 1) if limit < 1 else math.inf
    return (1 + _radius(rest, log_part, power)) * (1 + scale) - 1


def _radius(limit: float, log_part: float, alpha: float) -> float:
    """Return the least r with alpha r^2 / 2 >= limit / part (1 + r)^(alpha+1); inf if it is not below 1."""
    if not 0 < limit < math.inf or not math.isfinite(log_part):
        return math.inf
    first = 0.5 * (math.log(2 * limit / alpha) - log_part)
    r = 0.0
    for _ in range(_ROUNDS):  # increases to r from below
        after = math.exp(min(first + 0.5 * (alpha + 1) * math.log1p(r), 1.0))
        if after >= 1:
            return math.inf
        if after <= r * (1 + SAME):
            return after * (1 + 1e-9)
        r = after
    return math.inf
