"""An iterate of the path of `fairopt.solvers.alpha_fair.table_path`: its variables, its products, and its residuals.

The symbols and the central path are defined there.

A user of many servers spends a small part of its money at each. With w z = mu, limits with p s = mu * money may then be nearly full at
prices that are far off. A ``balanced`` path keeps more slack: p s = mu * money * weight, where the weight falls from the mean number of
servers of a user to 1 as mu falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.alpha_fair.capped_demand import rounded_demand
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["Iterate", "Scaling", "Setting", "Variables", "demand", "measured"]

_END = 1e-13  # mu at the end
_WASTE = 1e-10  # the same for all servers of a user together: part of its money that pairs waste
_FADES = 0.25  # power of mu by which the weight of limits falls to 1
_FREE = 1e-6  # least mean money of a limit (about 1 at the start of a path)
_POOREST = 1e-9  # least measure of the price of a limit, relative to the mean money of a limit
_SHOWS = 1e-7  # mu below which the full limits are known
_SLOWLY = 0.5  # the measure of a limit falls by this factor at most in a step


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """The constants of a path: the users, numbers of pairs and limits, the weight of limits at mu = 1, and mu at the end."""

    users: UserTables
    n_pairs: float
    n_limits: int
    first_weight: float
    last_mu: float
    all_eligible: bool

    @classmethod
    def of(cls, users: UserTables, balanced: bool) -> Setting:
        """Return the constants of the path of these users."""
        xp = users.arrays.xp
        n_pairs = float(xp.sum(xp.astype(users.may, xp.float64)))
        last_mu = min(_END, _WASTE / users.may.shape[0])
        weight = n_pairs / users.n_columns if balanced else 1.0
        return cls(users, n_pairs, int(users.used.sum()), weight, last_mu, bool(xp.all(users.may)))

    def eligible(self, values: Any) -> Any:
        """Return values of pairs, 0 for those that are not eligible."""
        return values if self.all_eligible else self.users.arrays.xp.where(self.users.may, values, 0.0)

    def mean_money(self, weight: float, money: Any) -> float:
        """Return the mean money of a limit; positive even if all users hold all their tasks and nothing has a price."""
        return max(weight * float(self.users.arrays.xp.sum(money)) / self.n_limits, _FREE)


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """A point: parts w of the users' money (servers, users), their marginal worth y (users,), prices p and slacks s (slots, servers).

    ``alpha`` may be one on the way to the goal's. phi is exp(log_phi), the users' weights times the unit of money exp(log_unit).
    """

    alpha: float
    log_unit: float
    log_phi: Any
    w: Any
    y: Any
    p: FloatArray
    s: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Scales of the products: mu; the width that smooths kinks of capped demands; the weight of limits, and the money of each limit."""

    mu: float
    width: float
    weight: float
    money: FloatArray

    @classmethod
    def first(cls, setting: Setting, money: Any) -> Scaling:
        """Return the scaling at the start of a path, where users have this much money."""
        shape, weight = setting.users.used.shape, setting.first_weight
        return cls(1.0, 1.0, weight, np.full(shape, setting.mean_money(weight, money)))


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """A point with its products and residuals.

    Attributes
    ----------
    at : Variables
    scaling : Scaling
    t, money, elasticity, total : arrays (users,)
        Utilities, money y t, -d log t / d log y, and sum_i w.
    z, pair_products : arrays (servers, users)
        Reduced costs, and w z.
    limit_products, r_limits : arrays (slots, servers)
        p s, and 1 - Q v - s.
    largest_product, largest_residual : float
        Relative.
    missed_money : float
        Residuals of limits at their prices, relative to all spending.
    """

    at: Variables
    scaling: Scaling
    t: Any
    money: Any
    elasticity: Any
    total: Any
    z: Any
    pair_products: Any
    limit_products: FloatArray
    r_limits: FloatArray
    largest_product: float
    largest_residual: float
    missed_money: float


def demand(setting: Setting, at: Variables, y: Any, width: float) -> tuple[Any, Any]:
    """Return the demands of the users of each column if a unit costs y, (columns,), and their elasticity, relative to 1 / alpha."""
    users = setting.users
    t, part = rounded_demand(users.arrays, (at.log_phi - users.of_users(users.arrays.xp.log(y))) / at.alpha, users.log_cap, width)
    if users.column is None:
        return t, part
    total = users.by_column(t)
    return total, np.divide(users.by_column(t * part), total, out=np.ones_like(total), where=total > 0)


def measured(setting: Setting, at: Variables, scaling: Scaling) -> Iterate:
    """Return a point with its products and residuals; ``scaling`` is that of the iterate before."""
    users, xp = setting.users, setting.users.arrays.xp
    width = min(scaling.width, scaling.mu)
    t, part = demand(setting, at, at.y, width)
    w, total = at.w, xp.sum(at.w, axis=0)
    if users.log_cap is not None:  # a user at its cap may pay next to nothing, so that its parts are rounding errors: make them add up to 1
        w = w / xp.where(part < 0.5, total, 1.0)
        total = xp.sum(w, axis=0)
    money = at.y * t
    z = xp.where(users.may, users.of_prices(at.p) / at.y - 1, 1.0)
    products = w * z
    s, money_of_limits, r_limits = _measured_limits(setting, replace(at, w=w), scaling, t, money)
    limit_products = np.where(users.used, at.p * s, 0.0)
    relative = limit_products / money_of_limits
    mu = max(float(xp.sum(products)) / setting.n_pairs, float(relative.sum()) / setting.n_limits)
    return Iterate(
        at=replace(at, w=w, s=s),
        scaling=Scaling(mu, width, max(1.0, setting.first_weight * min(1.0, mu) ** _FADES), money_of_limits),
        t=t,
        money=money,
        elasticity=part / at.alpha,
        total=total,
        z=z,
        pair_products=products,
        limit_products=limit_products,
        r_limits=r_limits,
        largest_product=max(float(xp.max(products)), float(relative.max())),
        # p s is small as soon as p is; a limit with a price must be full.
        largest_residual=max(float(np.abs(r_limits).max()), float(xp.max(xp.abs(total - 1)))),
        missed_money=float((at.p * np.abs(r_limits)).sum() / at.p.sum()),
    )


def _measured_limits(setting: Setting, at: Variables, scaling: Scaling, t: Any, money: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slack of each limit, the money that its product p s is relative to, and its residual, (slots, servers).

    A price must be small even for the user with the least money, in proportion to the user's part of the limit. So the money is a harmonic
    mean over the users of the limit; it falls to that mean step by step.
    """
    users, xp = setting.users, setting.users.arrays.xp
    mean = setting.mean_money(scaling.weight, money)
    v = at.w * t
    parts = [users.take[r, :, :] * v for r in range(users.take.shape[0])]
    used = np.stack([users.arrays.numpy(xp.sum(part, axis=1)) for part in parts])
    per_money = np.stack([users.arrays.numpy(xp.sum(part * part / money, axis=1)) for part in parts])
    left = 1 - used
    harmonic = np.clip(scaling.weight * used / np.where(per_money > 0, per_money, 1.0), _POOREST * mean, mean)
    shows = scaling.mu < _SHOWS
    full = shows & (at.p > at.s * harmonic)
    harmonic = np.where(full, np.minimum(harmonic, at.p), harmonic)  # otherwise a limit with a low price would keep some slack
    arrived = at.alpha == users.alpha
    measure = np.maximum(np.where(used > 0, harmonic, mean), _SLOWLY * scaling.money) if arrived else np.full(used.shape, mean)
    # Users who get all their tasks for next to nothing may have them on any server: rounding there changes slacks, and no price.
    free = users.used & shows & (at.p < at.s * measure) & (2 * left > at.s)
    s = np.where(free, left, at.s)
    return s, measure, np.where(users.used, left - s, 0.0)
