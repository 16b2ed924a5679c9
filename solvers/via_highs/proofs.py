"""What prices prove of a level of a leximin: no larger t for all, and by how much anybody could rise above it.

With q[n] the cheapest price of a unit of n's level, those who rise and those who are settled can together have no more than all that is
spent: sum of q[n] min(t, cap[n]) over the first <= spent - sum of q[n] level[n] over the others, which bounds t. With gap = bound - t and
sigma the sum of q over those who rise, n itself can rise above t by sigma gap / q[n] at most (see ``fairopt.certificate.levels``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray

__all__ = ["Proof", "proof_of"]

_NOISE = 1e-13  # a smaller part of all spending proves nothing, as in the certificate
_DIGITS = 1e-14  # relative precision to which limits are taken to be known, as in the certificate


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """Prices of all limits, the cheapest price q[n] of a unit of each user's level, all spending, and the bound on t that follows."""

    prices: FloatArray
    q: FloatArray
    spent: float
    bound: float

    def stops(self, rising: BoolArray, t: float) -> BoolArray:
        """Say of each user who rises whether what it pays at t is more than noise in these prices."""
        return np.asarray(self.q[rising] * t > _NOISE * self.spent)

    def rises(self, rising: BoolArray, t: float) -> FloatArray:
        """Return by how much each user who rises could rise above t at most."""
        weight = self.q[rising]
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = weight.sum() * max(self.bound - t, 0.0) / weight
        return np.where(self.stops(rising, t), gap, np.inf)


def proof_of(
    prices: FloatArray, q: FloatArray, spent: float, rising: BoolArray, settled: BoolArray, level: FloatArray, cap: FloatArray
) -> Proof:
    """Return what prices of the limits prove; q, rising, settled, level and cap are (users,)."""
    left = spent * (1 - _DIGITS) - float(q[settled] @ level[settled])
    users = np.flatnonzero(rising)
    users = users[np.argsort(cap[users])]
    price, most = q[users], cap[users]
    sigma = np.cumsum(price[::-1])[::-1]  # of this one and all with larger caps
    paid = np.append(0.0, np.cumsum(price * np.where(np.isfinite(most), most, 0.0)))[:-1]  # for those with smaller caps
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(sigma > 0, (left - paid) / sigma, np.inf)
    stops = np.flatnonzero(t <= most)
    return Proof(prices, q, spent, float(t[stops[0]]) if stops.size else np.inf)
