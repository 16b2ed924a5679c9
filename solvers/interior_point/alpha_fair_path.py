"""The path of `fairopt.solvers.interior_point.alpha_fair`: its points, and the units of its products."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.interior_point.alpha_fair_end import End
from fairopt.solvers.interior_point.alpha_fair_worths import Worths
from fairopt.solvers.interior_point.sample_reduced import Start
from fairopt.solvers.interior_point.settings import ALPHA_FAIR, STEPS
from fairopt.solvers.interior_point.steps import Demand, OfTotal, Point, advance, part_of_the_way

__all__ = ["Path"]


class Path:
    """A path: what stays the same in all of its steps, and the units of its products, which follow the money of the users.

    Attributes
    ----------
    worths : Worths
        In a unit of money in which all users together start with 1.
    furthest : float
        Distance of demands from utilities before the last step, in logarithms of prices.
    settled : bool
        Has this distance been small? From then on demands follow prices in each step.
    uneven : float
        The largest product, in parts of their mean.
    near : list of Point
        Points on the way to the end, in order.
    to_the_poorest : bool
        Are the units of limits, at alpha > 1, as small as the money of users who could use them, but do not?
    money_of_limits : array (slots, places)
        Of the users of each limit: the harmonic mean, as a price is not small unless it is small for the user with the least money.
    kappa_of_point : float
        What log kappa exceeds the t of points by: the unit of money in which points have it.
    """

    def __init__(self, worths: Worths, start: Start | None = None, *, to_the_poorest: bool = True) -> None:
        self.worths, self.pairs, self.to_the_poorest = worths, worths.pairs, to_the_poorest
        pairs, xp = self.pairs, self.pairs.xp
        self._even = pairs.even_slices() if start is None else pairs.lay(start.x[pairs.scaled.column] / pairs.scaled.scale)
        if worths.log_cap is not None:
            cap = xp.exp(worths.log_cap)
            self._even = self._even * pairs.spread(xp.clip(cap / pairs.level(self._even) / 2, None, 1.0))
        self._first_money = pairs.arrays.floats(self._money_at_start(start is not None))
        self._first_prices, self._first_second = (pairs.arrays.floats(each) for each in self._prices(start))
        self._side = pairs.arrays.floats(np.repeat([1.0, -1.0], [pairs.n_levels, pairs.n_limited]))
        self._right = pairs.arrays.floats(np.repeat([0.0, 1.0], [pairs.n_levels, pairs.n_limited]))
        self._unit: Any = None
        self.money_of_limits: Any = None
        self.furthest, self.settled, self.uneven = np.inf, False, np.inf
        self.near: list[Point] = []
        self.kappa_of_point = 0.0

    def _money_at_start(self, is_near: bool) -> FloatArray:
        """Return the first money of the users, and count in all of it; in a trade-off also set kappa: its part of this money is e."""
        pairs, worths = self.pairs, self.worths
        level = pairs.level(self._even)
        log_money = pairs.arrays.numpy(worths.log_phi + (1 - worths.alpha) * pairs.xp.log(level))
        if not is_near:
            middle = float(np.median(log_money))
            log_money = np.clip(log_money, middle - ALPHA_FAIR.spread_of_money, middle + ALPHA_FAIR.spread_of_money)
        unit = float(np.logaddexp.reduce(log_money))
        if worths.log_odds is None:
            worths.count_in(unit)
            return np.asarray(np.exp(log_money - unit))
        unit += float(np.logaddexp(0.0, worths.log_odds))
        worths.count_in(unit)
        own = np.exp(log_money - unit)
        worths.log_kappa = float(worths.log_odds + np.log(own.sum()) - np.log(pairs.scaled.reach @ level))
        return np.asarray(own + level * np.exp(worths.log_total))

    def _prices(self, start: Start | None) -> tuple[FloatArray, FloatArray]:
        """Return the first prices of limits and of second rows; all together cost more than all money."""
        pairs, scaled = self.pairs, self.pairs.scaled
        prices, second = np.ones((pairs.n_slots, pairs.n_places)), np.ones(pairs.n_limited)
        if start is not None:
            prices[:] = 0.0
            prices[scaled.row_slot, scaled.row_place] = start.prices[scaled.row]
            second[:] = start.prices[scaled.second_row]
        unit = ALPHA_FAIR.dear_at_start / (prices.sum() + second.sum())
        return unit * prices, unit * second

    def start(self) -> Point:
        """Return the first point: half of every limit divided evenly, and one price of all limits, unless the start has others."""
        pairs, xp, x, p, q = self.pairs, self.pairs.xp, self._even, self._first_prices, self._first_second
        v = pairs.level(x)
        m = self._first_money / v
        cost = pairs.priced(p, q)
        z = pairs.eligible(xp.maximum(cost - pairs.along_levels(m), ALPHA_FAIR.least_cost * cost), 1.0)
        primal = pairs.point(x, 1 - pairs.use(x), xp.concat([v, 1 - pairs.second_rows(x)]))
        log_kappa = 0.0 if self.worths.log_odds is None else self.worths.log_kappa
        return Point(primal, pairs.point(z, p, xp.concat([m, q])), log_kappa)

    def present(self, point: Point, error: float) -> End:
        """Return the point as it is, as an end with this error."""
        _, p, of_rows = self.pairs.parts(point.dual)
        return End(error, self.pairs.parts(point.primal)[0], p, self.pairs.rows_of(of_rows)[1])

    def advanced(self, point: Point, gap: float, least_gap: float | None = None) -> Point:
        """Take a step to a gap of at least ``least_gap``; the default is where rounding begins."""
        xp, pairs, worths = self.pairs.xp, self.pairs, self.worths
        v, m = self._demanded(point)
        off, elasticity = worths.off(v, m)
        of_one = elasticity if worths.has_total else min(1.0, 1 / worths.alpha)  # how much a factor e of prices changes demands
        off_total = self._off_total(v)
        self.furthest = max(float(xp.max(xp.abs(off / of_one))), abs(off_total))
        self.settled |= self.furthest < ALPHA_FAIR.far
        if not self.settled:
            if not worths.has_total:  # the unit of money is still free
                moved = elasticity > 0.5 / worths.alpha  # the demand of a stopped user does not depend on the unit
                middle = float(xp.max(xp.where(moved, off, -np.inf)) + xp.min(xp.where(moved, off, np.inf))) / 2 * worths.alpha
                if np.isfinite(middle):
                    worths.count_in(middle)
                    off, _ = worths.off(v, m)
            short = xp.clip(off / of_one, None, ALPHA_FAIR.far)
            off = of_one * xp.where(short < 0, xp.expm1(short), short)
        money = worths.mean_money(v, v * m) * pairs.n_users
        if least_gap is None:
            least_gap = ALPHA_FAIR.middle if not self.settled else STEPS.end_of_demand if pairs.across is None else STEPS.end_across
        limited = worths.log_odds is not None and worths.alpha >= ALPHA_FAIR.large_beta
        if limited and gap > ALPHA_FAIR.near_of_tradeoff:
            least_gap = max(least_gap, ALPHA_FAIR.aim_of_tradeoff * gap)
        least = least_gap * money / (pairs.n_products - pairs.n_levels)
        of_total = None if worths.log_odds is None else OfTotal(*worths.of_total(v), off_total)
        demand = Demand(elasticity, off, self._unit, least, worths.stopped(v, elasticity), of_total)
        after = advance(pairs, point, self._side, None, self._right, 0.0, part_of_the_way(gap), money, demand)
        return self._nearer(point, after) if limited else after

    def _nearer(self, point: Point, after: Point) -> Point:
        """Return the first of the points after 1, 1/2, 1/4, ... of the step at which demands have not left utilities.

        After ``halvings`` the last one is returned, unchecked. Each is measured at its own kappa: half of a utility means 2^beta times the
        marginal utility, and kappa follows.
        """
        worths, before = self.worths, self.worths.log_kappa
        most = max(ALPHA_FAIR.off_after_step, ALPHA_FAIR.farther_after_step * self.missed(point))
        for _ in range(ALPHA_FAIR.halvings):
            worths.log_kappa = after.t + self.kappa_of_point
            if self.missed(after) <= most:
                break
            after = Point((point.primal + after.primal) / 2, (point.dual + after.dual) / 2, (point.t + after.t) / 2)
        worths.log_kappa = before
        return after

    def measured(self, point: Point) -> float:
        """Return the sum of the products x z and s p, each relative to the money of its users; set the units of the products."""
        pairs, xp, capped = self.pairs, self.pairs.xp, self.worths.log_cap is not None
        v, m = self._demanded(point)
        x, _, _ = pairs.parts(point.primal)
        if self.worths.log_odds is not None:
            self.worths.log_kappa = point.t + self.kappa_of_point
        money = v * m
        mean = self.worths.mean_money(v, money)
        own, self.money_of_limits = self._money(x, v, m, money, mean)
        unit = pairs.point(pairs.spread(own), self.money_of_limits, xp.concat([xp.ones_like(v), pairs.of_limited(own)]))
        if capped and self.settled and self._unit is not None:  # a stopped user may pay much less after a step: products follow slowly
            unit = xp.maximum(unit, ALPHA_FAIR.slowly * self._unit)
        self._unit = unit / (float(xp.sum(self._products(unit))) / (pairs.n_products - pairs.n_levels))
        products = self._products(point.primal * point.dual / self._unit)
        gap = float(xp.sum(products)) / (mean * pairs.n_users)
        self.worths.width = min(self.worths.width, gap)
        self.uneven = float(xp.max(products)) * (pairs.n_products - pairs.n_levels) / float(xp.sum(products))
        return gap

    def measured_anew(self, point: Point) -> float:
        """Do the same at an earlier point, to which the path goes back: its units do not follow those of the last one."""
        self._unit = None
        return self.measured(point)

    @property
    def difference(self) -> str:
        """What sets the path apart from the one that is followed first."""
        return "in the units of the users of a limit alone"

    @property
    def distance(self) -> float:
        """How far the path is from demands that are utilities, at the alpha of its goal."""
        return self.furthest

    def missed(self, point: Point) -> float:
        """Return the largest distance of a demand from the utility of its user, in logarithms; in a trade-off, of prices."""
        v, m = self._demanded(point)
        off, elasticity = self.worths.off(v, m)
        if self.worths.has_total:  # whose utility is worth much the same to the user, whatever it is, may be far from its demand
            off = off / elasticity
        return max(float(self.pairs.xp.max(self.pairs.xp.abs(off))), abs(self._off_total(v)))

    def _off_total(self, v: Any) -> float:
        """Return the logarithm of the kappa that utilities imply, in parts of the kappa of the point; 0 where kappa is given."""
        return 0.0 if self.worths.log_odds is None else self.worths.following(v).log_kappa - self.worths.log_kappa

    def _demanded(self, point: Point) -> tuple[Any, Any]:
        """Return the utilities v and what users pay for a unit, m, (users,)."""
        pairs = self.pairs
        return pairs.rows_of(pairs.parts(point.primal)[2])[0], pairs.rows_of(pairs.parts(point.dual)[2])[0]

    def _products(self, values: Any) -> Any:
        """Return values of a point without those of pairs that are not eligible, and of demands."""
        pairs = self.pairs
        of_pairs, of_limits, of_rows = pairs.parts(values)
        v, of_second = pairs.rows_of(of_rows)
        return pairs.eligible(pairs.point(of_pairs, of_limits, pairs.xp.concat([pairs.xp.zeros_like(v), of_second])))

    def _money(self, x: Any, v: Any, m: Any, money: Any, mean: float) -> tuple[Any, Any]:
        """Return the money of users that their products are relative to, (users,), and that of limits, (slots, places).

        At alpha > 1, the user with the least money may be one who could use a limit, but does not. The price of the limit is not small
        unless it is small for this user, too: so the money of a limit is at most what each user would pay for all of it.

        What a stopped user pays may be nothing: in its limits it counts with a part of the mean. Its own products are relative to a part of
        what these limits would cost it then. Larger ones would hold its x above what its limit on tasks allows, at any price.
        """
        pairs, xp, log_cap = self.pairs, self.pairs.xp, self.worths.log_cap
        own = in_limits = xp.maximum(money, ALPHA_FAIR.poorest * mean)
        if log_cap is not None:
            stopped, least = self.worths.stopped(v, self.worths.off(v, m)[1]), ALPHA_FAIR.least_of_limit * mean
            in_limits = xp.where(stopped, xp.maximum(own, least), own)
        use, parts = pairs.use(x), pairs.use(x / pairs.spread(in_limits))
        of_limits = xp.where(parts > 0, use / xp.where(parts > 0, parts, 1.0), mean)
        if self.to_the_poorest and self.worths.alpha > 1 and not self.worths.has_total:
            wanted = pairs.along_levels(in_limits / v)
            per_money = pairs.largest_use(pairs.eligible(1 / xp.where(wanted > 0, wanted, 1.0)))
            of_limits = xp.where(per_money > 0, xp.minimum(of_limits, 1 / xp.where(per_money > 0, per_money, 1.0)), of_limits)
        if log_cap is not None:
            of_limits = xp.clip(of_limits, None, mean)
            costs = xp.clip(xp.exp(log_cap), None, 1.0) * pairs.cheapest(of_limits, pairs.arrays.floats(np.zeros(pairs.n_limited)))
            own = xp.where(stopped, xp.maximum(own, ALPHA_FAIR.part_of_costs * xp.clip(costs, None, least)), own)
        return own, of_limits
