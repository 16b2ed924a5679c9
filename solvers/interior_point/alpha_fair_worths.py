"""Marginal utilities, demands and money of the users of an alpha-fair goal, on the path of `fairopt.solvers.interior_point.alpha_fair`.

In the units of `fairopt.solvers.structure.scaling`, a user with the utility v has the marginal utility phi v^-alpha. In a trade-off it is
phi v^-alpha + kappa. At a price m of a unit of utility, a user demands d(m): the utility at which its marginal utility is m. A limit on
tasks caps d at c, and a rule may ask for at least f (`fairopt.solvers.interior_point.capped_demand`). The money of a user is what it pays
servers, m v. A user who is stopped by its limit pays less than its marginal utility: m is then the least cost of a unit, and the difference
is the price of the limit.

kappa is given, or follows from all utilities: then the path has a value of its own for it, and the utilities imply another, until both are
the same.

Marginal utilities of different users lie many orders of magnitude apart, so phi and kappa are logarithms. They are in a unit of money that
the path may change.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import SAME, TINY
from fairopt.program import AlphaFair, Tradeoff
from fairopt.solvers.active_sets.problem import LARGEST_LOG
from fairopt.solvers.interior_point.capped_demand import rounded_demand
from fairopt.solvers.interior_point.settings import ALPHA_FAIR
from fairopt.solvers.structure.pairs import Pairs

__all__ = ["Worths", "log_odds_of"]


def log_odds_of(goal: AlphaFair | Tradeoff) -> float | None:
    """Return the logarithm of e / (1 - e), where e, the part of the total, is more than 0; else None."""
    return float(np.log(goal.efficiency) - np.log1p(-goal.efficiency)) if goal.efficiency else None


class Worths:
    """The users of a goal.

    Attributes
    ----------
    pairs : Pairs
    alpha : float
    log_phi : array (users,)
        Logarithms of phi, in the unit of money.
    log_unit : float
        Logarithm of the unit of money.
    log_cap : array (users,), or None
        Logarithms of the utility at which a limit on tasks stops a user, inf for users without one; None if nobody has one.
    log_floor : array (users,), or None
        Logarithms of least utilities, -inf for users without one; None if nobody has one.
    log_kappa : float
        In the unit of money; -inf: the total has no worth.
    log_odds : float, or None
        Where kappa follows from the utilities, the logarithm of e / (1 - e); else None.
    width : float
        Of the rounded kinks of the demands.
    """

    def __init__(self, pairs: Pairs, alpha: float, weights: FloatArray, log_kappa: float = -np.inf, log_odds: float | None = None) -> None:
        scaled, floats = pairs.scaled, pairs.arrays.floats
        self.pairs, self.alpha, self.log_unit, self.width = pairs, alpha, 0.0, 1.0
        log_cap = np.where(scaled.cap <= 1 + SAME, np.log(scaled.cap), np.inf)  # a cap beyond the reach, 1, is none
        self.log_cap: Any = floats(log_cap) if np.isfinite(log_cap).any() else None
        log_floor = np.log(scaled.floor, out=np.full(scaled.n_users, -np.inf), where=scaled.floor > 0)
        self.log_floor: Any = floats(log_floor) if scaled.floor.any() else None
        self.log_phi: Any = floats(np.log(weights[scaled.member]) + (1 - alpha) * np.log(scaled.reach))
        self.log_kappa, self.log_odds, self._reach = log_kappa, log_odds, scaled.reach

    def count_in(self, log_unit: float) -> None:
        """Count money in units of exp(log_unit) present ones."""
        self.log_phi, self.log_unit, self.log_kappa = self.log_phi - log_unit, self.log_unit + log_unit, self.log_kappa - log_unit

    def at_alpha(self, alpha: float, weights: FloatArray, v: Any, m: Any, moved: Any) -> Worths:
        """Return the same users at another alpha, in the unit of money in which marginal utilities are nearest to the prices m.

        ``moved``, (users,), are the users to whom the unit matters.
        """
        xp, other = self.pairs.xp, Worths(self.pairs, alpha, weights, log_odds=self.log_odds).following(v)
        beyond = other.log_worth(v) - xp.log(m)
        middle = float(xp.max(xp.where(moved, beyond, -np.inf)) + xp.min(xp.where(moved, beyond, np.inf))) / 2
        other.count_in(middle if np.isfinite(middle) else self.log_unit)
        other.width = self.width
        return other

    def with_alpha(self, v: Any) -> Any:
        """Return -d log(marginal utility) / d alpha, but for the unit of money, at fixed utilities, (users,)."""
        xp = self.pairs.xp
        log_v = xp.log(v) + self.pairs.arrays.floats(np.log(self._reach))
        if not self.has_total:
            return log_v
        own = self.log_phi - self.alpha * np.log(v)
        part, powers = np.exp(own - self.log_worth(v)), own + np.log(v)
        return part * log_v + (1 - part) * float(np.exp(powers - np.logaddexp.reduce(powers)) @ log_v)

    @property
    def has_total(self) -> bool:
        """Has a unit of the total a worth of its own?"""
        return self.log_kappa > -np.inf

    @property
    def log_total(self) -> Any:
        """Logarithms of kappa in the units of the users, (users,)."""
        return self.log_kappa + np.log(self._reach)

    def following(self, v: Any) -> Worths:
        """Return the same users at the kappa that their utilities imply, e / (1 - e) times sum phi v^(1 - alpha) / sum v."""
        if self.log_odds is None:
            return self
        other = copy(self)
        powers = np.logaddexp.reduce(self.log_phi + (1 - self.alpha) * np.log(v))
        other.log_kappa = float(self.log_odds + powers - np.log(self._reach @ v))
        return other

    def of_total(self, v: Any) -> tuple[Any, Any]:
        """Return d log d / d log kappa at a given price, (users,), and d log kappa / dv, (users,), of the kappa that v implies."""
        own = self.log_phi - self.alpha * np.log(v)
        log_worth = np.logaddexp(own, self.log_total)
        elasticity = 1 / np.clip(self.alpha * np.exp(own - log_worth), ALPHA_FAIR.least_elasticity, None)
        powers = own + np.log(v)
        of_powers = (1 - self.alpha) * np.exp(powers - np.logaddexp.reduce(powers)) / v
        return elasticity * -np.expm1(own - log_worth), of_powers - self._reach / (self._reach @ v)

    def log_worth(self, v: Any) -> Any:
        """Return logarithms of marginal utilities, (users,)."""
        own = self.log_phi - self.alpha * self.pairs.xp.log(v)
        return np.logaddexp(own, self.log_total) if self.has_total else own

    def worth(self, v: Any) -> Any:
        """Return marginal utilities, (users,)."""
        return self.pairs.xp.exp(self.log_worth(v))

    def demand(self, m: Any, width: float | None = None) -> tuple[Any, Any]:
        """Return logarithms of d(m) without kappa, and -alpha d log d / d log m, (users,)."""
        log_demand = (self.log_phi - self.pairs.xp.log(self.pairs.xp.clip(m, TINY, None))) / self.alpha
        return rounded_demand(self.pairs.arrays, log_demand, self.log_cap, self.width if width is None else width, self.log_floor)

    def off(self, v: Any, m: Any) -> tuple[Any, Any]:
        """Return log d(m) - log v, in a trade-off to the first order, and the elasticity -d log d / d log m, (users,)."""
        xp = self.pairs.xp
        if not self.has_total:
            log_demand, part = self.demand(m)
            return log_demand - xp.log(v), part / self.alpha + xp.zeros_like(m)
        log_worth = self.log_worth(v)
        elasticity = 1 / xp.clip(self.alpha * xp.exp(self.log_phi - self.alpha * xp.log(v) - log_worth), ALPHA_FAIR.least_elasticity, None)
        return (log_worth - xp.log(m)) * elasticity, elasticity

    def paid(self, v: Any, p: Any, q: Any = ()) -> tuple[Any, Any, Any | None]:
        """Return what each user pays servers for a unit of utility, the part by which it misses its cap or floor, and who is stopped.

        All are (users,). A user pays its marginal utility, or less if its marginal utility at its cap exceeds the least cost: then a limit
        on tasks stops it. Nobody is stopped (None) if nobody has such a limit. It pays more if its marginal utility at its floor is below
        the least cost: then it has its floor, not more.
        """
        paid, missing, stopped = self.worth(v), 0.0, None
        if self.log_cap is None and self.log_floor is None:
            return paid, missing, stopped
        pairs, xp = self.pairs, self.pairs.xp
        cheapest = pairs.cheapest(p, q)
        if self.log_cap is not None:
            cap = xp.where(xp.isfinite(self.log_cap), xp.exp(self.log_cap), 1.0)
            stopped = xp.isfinite(self.log_cap) & (self.worth(cap) > cheapest)
            paid, missing = xp.where(stopped, cheapest, paid), xp.where(stopped, 1 - v / cap, 0.0)
        if self.log_floor is not None:
            floor = xp.where(xp.isfinite(self.log_floor), xp.exp(self.log_floor), v)
            held = xp.isfinite(self.log_floor) & (self.worth(floor) < cheapest)
            off = 1 - v / floor
            paid, missing = xp.where(held, cheapest, paid), xp.maximum(missing, xp.where(held, xp.abs(off), off))
        return paid, missing, stopped

    def stopped(self, v: Any, elasticity: Any) -> Any | None:
        """Return which users a limit on tasks stops, (users,); None if nobody has such a limit.

        The elasticity of the demand of a user is low at its cap and at its floor: v is nearer the cap.
        """
        if self.log_cap is None:
            return None
        xp = self.pairs.xp
        stopped = xp.isfinite(self.log_cap) & (elasticity < 0.5 / self.alpha)
        return stopped if self.log_floor is None else stopped & (xp.log(v) - self.log_floor >= self.log_cap - xp.log(v))

    def mean_money(self, v: Any, money: Any) -> float:
        """Return the mean of what users pay servers; more than 0 even if all of them are stopped, and nothing has a price."""
        xp = self.pairs.xp
        mean = float(xp.sum(money)) / self.pairs.n_users
        return mean if self.log_cap is None else max(mean, ALPHA_FAIR.free * float(xp.min(v * self.worth(v))))

    def at_stake(self, v: Any, money: Any) -> Any:
        """Return the money that errors of each user are relative to, (users,).

        If a limit on tasks stops a user, what it pays servers may be next to nothing. Its errors matter to others: they are relative to
        the mean money, or to all that its tasks are worth to it if that is less.
        """
        if self.log_cap is None:
            return money
        xp = self.pairs.xp
        most = xp.clip(v * self.worth(v), None, self.mean_money(v, money))
        return xp.where(xp.isfinite(self.log_cap), xp.maximum(money, most), money)

    def prices(self, p: Any, x: Any, q: Any = ()) -> FloatArray:
        """Return the prices of the limits of the program, (limits,), in parts of the largest where they are beyond floating point."""
        pairs, scaled = self.pairs, self.pairs.scaled
        v = pairs.level(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_rows = pairs.arrays.numpy(q) if pairs.n_limited else np.empty(0)
            log_price, log_second = (np.log(np.maximum(each, 0.0)) + self.log_unit for each in (pairs.arrays.numpy(p), of_rows))
            of_users = []
            if self.log_cap is not None or self.log_floor is not None:
                log_worth, log_paid = (pairs.arrays.numpy(each) for each in (self.log_worth(v), pairs.xp.log(self.paid(v, p, q)[0])))
            if self.log_cap is not None:  # what a stopped user would pay for more tasks than it has
                of_users.append((_log_difference(log_worth, log_paid) + pairs.arrays.numpy(self.log_cap), scaled.task_row))
            if self.log_floor is not None:  # what a user would gain by fewer tasks than it has to have
                of_users.append((_log_difference(log_paid, log_worth) + pairs.arrays.numpy(self.log_floor), scaled.floor_row))
            logs = [(np.where(np.isfinite(each), each + self.log_unit, -np.inf), row) for each, row in of_users]
        top = max(float(each.max(initial=-np.inf)) for each in (log_price, log_second, *(log for log, _ in logs)))
        unit = top if -np.inf < top < -LARGEST_LOG / 2 else max(0.0, top - LARGEST_LOG)
        prices = scaled.prices(np.exp(log_price - unit), np.exp(log_second - unit))
        for log, row in logs:
            some = np.flatnonzero(log > -np.inf)
            prices[row[some]] = np.exp(log[some] - unit) / np.abs(scaled.program.limits.bounds[row[some]])
        return prices


def _log_difference(log_larger: FloatArray, log_smaller: FloatArray) -> FloatArray:
    """Return the logarithm of a difference, -inf or nan where it is not > 0."""
    return np.asarray(log_larger + np.log(-np.expm1(log_smaller - log_larger)))
