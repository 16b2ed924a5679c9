r"""Proof of a leximin, level by level, recomputed from the answer and the prices of its levels.

The plain proof of a level is in `fairopt.certificate.plain_level`, with the inequality, its symbols and what counts as rounding. This
module has what is left where levels lie far apart: charges for what lower levels have closed, and sums of prices.

*Own limits.* A user at its cap, the largest level that its own limits allow (``fairopt.program.own_limits``), is settled without prices.
Its distance from the cap counts as a possible shortfall or surplus.

*Shortfalls and surpluses.* A shortfall at one level is a surplus at the levels above, and what is tiny at one level may be large for a user
that lives on a millionth of it. A user n of a level may have d[n] = sigma (bound - t) / q[n] too little or too much. At the prices of level
k,

    fairness     sum over the levels below of the largest q[n] d[n] of each / (sigma t[k])         level k is not raised at their expense

where q[n] is here the cost on the most expensive pair that is open to n. Also, p.(Ax - b) where it is positive, the excess of the answer
over its limits, is added to sigma (bound - t): 1e-8 of a server is 1 % of what a user with a millionth of it has.

*Noise.* A level is first proved without the prices that may be a solver's noise, and with them only if that fails. Where g is only the
rounding of the bound, its terms are summed directly, and dear pairs that cost no more than the rounding of the same prices do not count
for the levels above (`fairopt.certificate.price_parts`).

*What lower levels imply.* That inequality holds for every feasible x with these levels, s >= L on F and s >= t[k] on R. So g bounds each of
its terms: no such x has more than g / (A'p - q u / phi) of a pair, leaves more than g / p of a limit free, or raises a settled user by more
than g / q above its level. If such a bound is negligible, the levels above need no price for it: q is then the lowest cost over the other
pairs, and full limits and settled users may have prices below 0. What this adds to the bound is charged to it: the difference by which a
pair is worth more than it costs, or by which a price is below 0, times the largest possible amount. All amounts that level k bounds share
one g, so only the largest of their charges counts. A pair that is not negligible and costs less than 0 is charged for the most that it
could ever be used. What is charged to a level is part of its own g for the levels above.

*Rounding.* A level whose g is 0 to rounding has g = 2.2e-16 p.b in the charges that count as optimality of a level above. In fairness,
charges for dear pairs count only beyond rounding: else a user who pays a millionth of its level would be refused for the last digit of a
capacity that it does not use. If capacities differ in that digit, the level moves, and all who pay there move with it.

*Sums of prices.* p + M p' with the prices p' of a level below and a large M proves the same at once, without charges: p' makes the pairs
dear that p would have to charge for. But the factors grow with every level, and soon the sum is all rounding. So sums are only the second
proof of a level, for users with a small part of all spending, to whom the charges matter: each level below has the factor that p would be
charged for. If the sum is charged for levels below, too, their prices are added to it once more. Every price vector is a proof, and the
smaller residuals count. What the level implies for those above comes from p alone.

*What is not proved.* If residuals are not 0, they are bounds to first order only, when shares of very different size meet:

- The rounding of g is charged to the levels above once, but in the worst case it doubles with every level.
- A possible surplus of users of F at a level is not passed on to the levels above.
- It is compared with the level as a whole, though a single user with a low price might gain all of it.
- A user with a shortfall may take it from other users of F, which then need more expensive pairs; only its own pairs are considered.

A leximin of many levels in which each level is a millionth of the one below is not determined by 14 digits of its data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.certificate.plain_level import plain_gap
from fairopt.certificate.price_parts import EPSILON, PriceParts
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import DIGITS, NOISE, TINY
from fairopt.program import Program

__all__ = ["CLEAR", "CLOSED", "PROVED", "LevelProofs"]

CLOSED = 0.01  # fraction of a level, or of a limit, below which an amount that lower levels allow is negligible
PROVED = 1e-9  # a residual that needs no other prices
_SUMS = 4  # at most: with the prices of one level, pairs that another one has closed can be worth more than they cost
CLEAR = 1e-9  # fraction of a pair's cost that is more than rounding


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """What a level is about.

    Attributes
    ----------
    settled : int array
        Who is settled by it.
    rising : bool array (users,)
        R, who rises to it.
    target, rate, size : arrays (users,)
        Shares at this level, the rates at which they rise, and what residuals are relative to.
    climbs : bool array (users,)
        Who rises at a rate > 0. Who waits is kept at its target by limits that may have prices of either sign.
    closed : bool array (pairs,)
        What levels below leave nothing of.
    pinned : bool array (users,)
        Who cannot have more than its level, because of levels below.
    """

    settled: IntArray
    rising: BoolArray
    target: FloatArray
    rate: FloatArray
    size: FloatArray
    climbs: BoolArray
    closed: BoolArray
    pinned: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class _Evaluation:
    """What prices prove of a level, in units of the prices.

    Attributes
    ----------
    prices, positive : arrays (limits,)
        Those that count, and their part above 0.
    spent : float
        Price of all limits.
    q : array (users,)
        Cheapest price of a unit of each user's level.
    dear, paid : arrays (pairs,)
        By how much a pair costs more than it is worth, and its cost with all prices above 0.
    own, charged : float
        The level's own g, and what it is charged for levels below.
    plain, passed_on : float
        What g has beside dear pairs, summed directly; and what is more than rounding of the charges, with the excess of the answer.
    optimality, fairness : float
        The residuals of optimality and fairness.
    """

    prices: FloatArray
    spent: float
    q: FloatArray
    dear: FloatArray
    paid: FloatArray
    positive: FloatArray
    own: float
    charged: float
    plain: float
    passed_on: float
    optimality: float
    fairness: float


class LevelProofs:
    """The proofs of the levels in ascending order, and the bounds that they imply on each pair, free limit and surplus of a user."""

    def __init__(self, program: Program, per_level: FloatArray, x: FloatArray, levels: FloatArray, uncertainty: FloatArray) -> None:
        self.users, self.limits = program.pair_users, program.limits
        self.per_level, self.x, self.levels = per_level, x, levels
        self.by_column = self.limits.transposed
        self.largest = program.largest()
        left, digits = self.limits.bounds - self.limits.used(x), self.limits.bounds * DIGITS
        self.free, self.over = np.maximum(left - digits, 0.0), np.maximum(-left - digits, 0.0)  # per limit, beyond rounding
        self.used, self.short = np.maximum(x, 0.0), np.maximum(-x, 0.0)
        self.parts = PriceParts(self.limits, self.users, x, levels.size)
        # Upper bounds for pairs, free limits and surpluses of users, and the level that each comes from.
        self.most = [np.full(size, np.inf) for size in (x.size, left.size, levels.size)]
        self.most[0][self.largest <= 0] = 0.0
        self.by = [np.full(most.size, -1) for most in self.most]
        self.totals: list[float] = []  # g of each level, at least its rounding
        self.real: list[float] = []  # g of each level, 0 if it is only rounding
        self.uncertainty = uncertainty  # d: possible shortfall or surplus of each settled user
        self.prices: list[tuple[FloatArray, float]] = []  # of each level, and their unit
        self.settled_at = np.full(levels.size, -1)  # number of the level that settled each user; -1: none, or a cap

    def inherit_bounds(self, earlier: LevelProofs, rows: int) -> None:
        """Take over what earlier levels imply, all of whose prices are those of the first ``rows`` limits, which both have.

        Nobody has less than these levels gave, so that their bounds still hold.
        """
        for mine, theirs in ((self.most, earlier.most), (self.by, earlier.by)):
            mine[0][:], mine[1][:rows], mine[2][:] = theirs[0], theirs[1][:rows], theirs[2]
        no_room = self.by[0] < 0  # nothing but the limits that it had closed the pair
        self.most[0][no_room] = np.where(self.largest[no_room] > 0, np.inf, 0.0)
        self.totals, self.real, self.prices = (
            list(earlier.totals),
            list(earlier.real),
            [(prices[:rows], unit) for prices, unit in earlier.prices],
        )
        self.uncertainty, self.settled_at = earlier.uncertainty.copy(), earlier.settled_at.copy()

    def of(
        self,
        proof: FloatArray,
        settled: IntArray,
        rising: BoolArray,
        target: FloatArray,
        rate: FloatArray,
        size: FloatArray,
        *,
        is_last: bool = False,
    ) -> tuple[float, float]:
        """Return the residuals of optimality and fairness of a level.

        Parameters
        ----------
        proof : array (limits,)
            Its prices.
        settled : int array
            Users settled at this level.
        rising : bool array (users,)
            R, the users that rise to this level.
        target, rate : arrays (users,)
            Their shares at this level, and the rates at which the shares rise.
        size : array (users,)
            Residuals are relative to it; ``target``, unless that is 0.
        is_last : bool
            There are no levels above it, so its implications for them are not computed.
        """
        scale = np.maximum(self.levels, size)
        closed = self.most[0] * self.per_level <= CLOSED * scale[self.users]
        level = _Level(settled, rising, target, rate, size, rising & (rate > 0), closed, self.most[2] <= CLOSED * scale)
        unit = max(float(np.abs(proof).max(initial=0.0)), TINY)  # it does not matter
        given = proof / unit
        prices = given if is_last else self.parts.without_noise(given)  # noise of the last level matters to none above it
        found = self._evaluate_prices(prices, level)
        if found is None or found.fairness > PROVED:
            second = self.parts.without_noise(given) if is_last else given
            other = self._evaluate_prices(second, level) if second is not prices else None
            if other is not None and (found is None or other.fairness < found.fairness):
                found = other
        if found is None:
            return float("inf"), float("inf")
        optimality, fairness, best = found.optimality, found.fairness, found
        last: _Evaluation | None = found
        for _ in range(_SUMS):
            if last is None or not (fairness > PROVED and last.charged > last.own):
                break
            last = self._evaluate_prices(self._with_lower_levels(last.prices, level), level)
            if last is not None and last.fairness < fairness:
                optimality, fairness, best = min(optimality, last.optimality), last.fairness, last
        if not is_last:
            real = self._real(found)
            uncertain = real if best is found else self._real(best)  # of the proof that counts: the others may be about more
            self.uncertainty[settled] = uncertain / np.maximum(best.q[settled], TINY)
            self.settled_at[settled] = len(self.totals)
            stay = ~level.climbs
            stay[settled] = True
            dear = np.where(found.dear <= CLEAR * found.paid, 0.0, found.dear)
            self._update_bounds(real, EPSILON * found.spent, [dear, found.positive, np.maximum(found.q, 0.0) * stay])
            self.prices.append((proof, unit) if best.prices is given else (best.prices, 1.0))
        return optimality, fairness

    def _evaluate_prices(self, prices: FloatArray, level: _Level) -> _Evaluation | None:
        """Return what prices prove of a level; None: nothing."""
        bounds, levels, users = self.limits.bounds, self.levels, self.users
        rising, target, size, closed, climbs = level.rising, level.target, level.size, level.closed, level.climbs
        below_0 = bool(prices.min(initial=0.0) < 0)  # rare; much of the code below serves only prices below 0
        if below_0:
            prices = np.where(self.most[1] > CLOSED * bounds, np.maximum(prices, 0.0), prices)
        cost = np.asarray(self.by_column @ prices)
        paid = np.asarray(self.by_column @ np.abs(prices)) if below_0 else cost
        below_0 = below_0 or bool(cost.min(initial=0.0) < 0)
        q = self._cheapest(cost, level)
        sigma, held = float(q[climbs] @ level.rate[climbs]), float(q[climbs] @ size[climbs])
        if not 0 < sigma < np.inf or not held > 0:
            return None
        worth = q[users] * self.per_level
        positive = np.maximum(prices, 0.0) if below_0 else prices
        spent, dear, plain, own = plain_gap(
            bounds, prices, positive, cost, paid, worth, q, levels, target, rising, free=self.free, used=self.used
        )
        opened, shortfalls = ~closed, 0.0
        if self.uncertainty.any():  # no shortfall costs nothing
            dearest = np.abs(q)  # cost of a shortfall on the most expensive open pair
            np.maximum.at(dearest, users[opened], (cost / self.per_level)[opened])
            dearest[rising] = 0.0
            shortfalls = self._cost_of_shortfalls(dearest)
        # The excess of the answer over limits, and pairs below 0.
        excess = float(positive @ self.over + dear @ self.short)
        charged = unbounded = charged_real = beyond_rounding = 0.0
        if self.totals and (below_0 or closed.any()):
            below_price = [np.maximum(worth - cost, 0.0) * closed, np.maximum(-prices, 0.0), np.maximum(-q, 0.0)]
            charges = self._charges(below_price)
            charged, charged_real = float(charges @ self.totals), float(charges @ self.real)
            beside_pairs = self._charges([np.zeros_like(cost), *below_price[1:]])
            beyond_rounding = float(np.maximum(charges * self.real, beside_pairs * self.totals).sum())
        if below_0:  # the level of its user does not bound a pair with a cost below 0: charge its largest possible use
            unbounded = float((np.maximum(-cost, 0.0) * (opened & (q[users] >= 0))) @ self.largest)
        gap = own + charged + unbounded
        to_one = own + beyond_rounding + unbounded + excess
        paid_by = q[level.settled] * size[level.settled]
        fairness = to_one / float(paid_by.min()) if (paid_by > NOISE * spent).all() else float("inf")
        passed_on = charged_real + unbounded + excess
        fairness = max(fairness, shortfalls / held)
        return _Evaluation(prices, spent, q, dear, paid, positive, own, charged, plain, passed_on, gap / held, fairness)

    def _real(self, found: _Evaluation) -> float:
        """Return g without what is only rounding."""
        if found.own > EPSILON * found.spent:
            return found.own + found.passed_on
        return found.plain + self.parts.beyond_rounding(found.prices, found.dear * self.used) + found.passed_on

    def _cheapest(self, cost: FloatArray, level: _Level) -> FloatArray:
        """Return q, (users,), for the costs of pairs: below 0 only where levels below do not let a user have more than its level."""
        opened, q = ~level.closed, np.full(self.levels.size, np.inf)
        np.minimum.at(q, self.users[opened], (cost / self.per_level)[opened])
        q[np.isinf(q)] = 0.0
        return np.where(level.pinned & ~level.climbs, q, np.maximum(q, 0.0))

    def _with_lower_levels(self, prices: FloatArray, level: _Level) -> FloatArray:
        """Return prices of a level with those of the levels below, as many times as these would be charged for."""
        total = prices.copy()
        for lower in reversed(range(len(self.prices))):
            cost = np.asarray(self.by_column @ total)
            q = self._cheapest(cost, level)
            lacking = np.maximum(q[self.users] * self.per_level - cost, 0.0) * level.closed
            times = self._charges([lacking, np.maximum(-total, 0.0), np.maximum(-q, 0.0)])[lower]
            lower_prices, unit = self.prices[lower]
            total[: lower_prices.size] += times / unit * lower_prices
        return total

    def _cost_of_shortfalls(self, price: FloatArray) -> float:
        """Return the cost, at these prices, of the possible shortfalls of users settled before.

        The shortfalls of one level cost at most the largest of them, or less if a level bounds the matching surplus: a higher level may
        have a smaller bound.
        """
        alone = self.settled_at < 0
        worth = np.where(price > 0, price, 0.0) * np.where(price > 0, self.uncertainty, 0.0)
        at_caps = float(worth[alone].sum())
        if not self.totals:
            return at_caps
        of_level, surplus = np.zeros(len(self.totals)), np.zeros(len(self.totals))
        np.maximum.at(of_level, self.settled_at[~alone], worth[~alone])
        self._charge(surplus, np.array(self.totals), self.by[2], self.most[2], price)
        return at_caps + min(float(of_level.sum()), float(surplus @ self.real))

    def _charges(self, below_price: list[FloatArray]) -> FloatArray:
        """Return how many times g of each level is charged for pairs, limits and users priced too low by the amounts ``below_price``."""
        times = np.zeros(len(self.totals))
        if self.totals:
            totals = np.array(self.totals)
            for by, most, amount in zip(self.by, self.most, below_price, strict=True):
                self._charge(times, totals, by, most, amount)
        return times

    @staticmethod
    def _charge(times: FloatArray, totals: FloatArray, by: IntArray, most: FloatArray, amount: FloatArray) -> None:
        some = np.flatnonzero((amount > 0) & (by >= 0))
        if some.size:
            np.maximum.at(times, by[some], amount[some] * most[some] / totals[by[some]])

    def _update_bounds(self, real: float, rounding: float, prices: list[FloatArray]) -> None:
        """Bound everything that has a price at this level: together it costs at most g."""
        total = max(real, rounding)
        with np.errstate(divide="ignore"):
            for by, most, price in zip(self.by, self.most, prices, strict=True):
                now = total / price
                better = np.flatnonzero(now < most)
                most[better], by[better] = now[better], len(self.totals)
        self.totals.append(total)
        self.real.append(real)
