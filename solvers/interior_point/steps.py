"""Steps of a structured interior point.

In the units of `fairopt.solvers.structure.scaling`, with a[n] = 1 / reach for the users who rise and 0 for those settled at b[n],

    maximise t   subject to   A x + s = 1,   W x - v = a t + b,     x, s, v >= 0
                              A'p - W'm - z = 0,   a m = 1,         z, p, m >= 0        (users with limits on tasks: a row more)

and on the path all products x z, s p, v m are equal. Steps are Mehrotra's predictor and corrector, with further corrections for products
off their target (Gondzio) and separate primal and dual lengths. Totals have no t, but a worth of each pair. Limits and users' rows that
are equations have s = 0 and v = 0, and prices of either sign.

If each limit has many users, a small change of prices makes many of them leave a server, a few of them before the step ends. A pair that
would become negative does not shorten the step, as long as all such cuts together are worth only a part of the gap: the pair keeps a small
value, and the next step removes the residual. No price is cut like this: raising the reduced cost of one pair changes what its user pays
everywhere, and the path does not recover.

Alpha-fair goals have no t either. There v = W x is the utility of a user, m what it pays for a unit of it, and v is the user's demand at
that price, v = d(m), which takes the place of v m -> 0. `Demand` has its elasticity e and its residual. In logarithms the step is
dv/v + e dm/m = log d(m) - log v; it satisfies the condition to the second order if half of (dv/v)^2 + e (dm/m)^2 is added.

Second rows of users have products, as in totals. In a trade-off one more unknown, log kappa, is a part of the marginal utilities and
follows from all utilities (`OfTotal`).

Users of alpha-fair goals may be orders of magnitude richer than others. Each product is then relative to the money of its own user: the
products on the path are mu times a ``unit``. Where servers are many and much alike, the best ones of a user change while mu falls by a few
percent. The predictor goes to mu = 0, where its second order is wrong by far. So steps with corrections take the second order of the part
of the predictor that leads to their target, and aim further.

Points live in the arrays of `fairopt.solvers.structure.pairs`, possibly on a device.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fairopt.solvers.interior_point.settings import STEPS
from fairopt.solvers.structure import boundary
from fairopt.solvers.structure.newton import NewtonSystem, Residuals
from fairopt.solvers.structure.pairs import Pairs

__all__ = ["Demand", "OfTotal", "Point", "advance", "length_with_cuts", "part_of_the_way"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Values x, s, v in one vector, their duals z, p, m in another, and the level; of a trade-off, the logarithm of kappa."""

    primal: Any
    dual: Any
    t: float


class OfTotal(NamedTuple):
    """How demands depend on kappa, and kappa on utilities: log kappa is t of a point.

    Attributes
    ----------
    push : array (users,)
        d log demand / d log kappa at a given price.
    pull : array (users,)
        d log kappa / dv, of the kappa that v implies.
    off : float
        Logarithm of that kappa / kappa.
    """

    push: Any
    pull: Any
    off: float


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The demands of the users of an alpha-fair goal at the prices of a point.

    Attributes
    ----------
    elasticity : array (rows,)
        -d log v / d log m; 0 where a limit on tasks stops the user.
    off : array (rows,)
        Logarithm of demand / present utility.
    unit : array
        Of each product of the point: mu times it is the target. Its mean is about 1.
    least : float
        Least mu of the step.
    stopped : bool array (rows,), or None
        Which users a limit on tasks stops.
    of_total : OfTotal or None
        In a trade-off whose kappa follows.
    """

    elasticity: Any
    off: Any
    unit: Any
    least: float
    stopped: Any = None
    of_total: OfTotal | None = None


def part_of_the_way(gap: float) -> float:
    """Return what part of the way to the boundary a step goes at least: careful until the relative gap is small."""
    return 0.8 if gap > 1e-6 else STEPS.longest_part


def length_with_cuts(pairs: Pairs, primal: Any, change: Any, cost: Any, allowed: float) -> float:
    """Return how far one can go, 1 at most, before a limit or a row of a user becomes 0, or pairs lack more than is allowed.

    Parameters
    ----------
    primal, change : arrays
        Of a point.
    cost : array (pairs,)
    allowed : float
        Of sum_p cost[p] max(0, -x[p]) after the step.
    """
    xp, n = pairs.xp, pairs.n_pairs
    length = boundary.length(xp, primal[n:], change[n:])
    short = change[:n] / primal[:n] < -1 / length
    had = (primal[:n] * cost)[short]
    falls = (-change[:n] * cost)[short]
    # What they lack is convex in the length: Newton's method goes down to where it is allowed, from above.
    for _ in range(STEPS.cut_rounds):
        lack = xp.clip(length * falls - had, 0.0, None)
        excess = float(xp.sum(lack)) - allowed
        if excess <= STEPS.cut_digits * allowed:
            break
        length -= excess / float(xp.sum(xp.where(lack > 0, falls, 0.0)))
    return length


def advance(
    pairs: Pairs,
    point: Point,
    side: Any,
    a: Any | None,
    rows: Any,
    worth: Any | float,
    part: float,
    money: float | None = None,
    demand: Demand | None = None,
) -> Point:
    """Take a step. Arrays are those of the pairs.

    Parameters
    ----------
    side, a, rows : arrays (rows,)
        Of the rows of users: kind, rise with t (None: there is no t), and right-hand side.
    worth : array (pairs,), or 0
        Of the pairs in the goal.
    part : float
        See `part_of_the_way`.
    money : float, optional
        All that is spent, where that is not t.
    demand : Demand, optional
        For alpha-fair goals.

    Raises
    ------
    numpy.linalg.LinAlgError
    """
    xp, primal, dual = pairs.xp, point.primal, point.dual
    x, s, v = pairs.parts(primal)
    z, p, m = pairs.parts(dual)
    cost = pairs.cost(p)
    residuals = Residuals(
        pairs.bounds - pairs.use(x) - s,
        rows + side * v - pairs.rows(x) + (0.0 if a is None else a * point.t),
        pairs.eligible(z - cost + pairs.along_rows(side * m) + worth),
        0.0 if a is None else 1 - float(a @ m),
    )
    products = _Products(pairs, primal, dual, demand)
    system: Any = (pairs.system or NewtonSystem)(pairs, products.primal, dual, side, a)
    if demand is not None and demand.of_total is not None:
        system = _WithTotal(system, pairs, pairs.rows_of(v * m)[0], demand.of_total)
    care = STEPS.refinements if part == STEPS.longest_part else 0
    mu = products.mean(primal * dual)
    # Among equations prices may be negative: what pairs are worth does not tell.
    for_each_limit = pairs.n_users / (pairs.n_slots * pairs.n_servers)
    cuts = for_each_limit >= STEPS.many_users and not pairs.holds
    allowed = STEPS.cut * mu * products.number

    def lengths_of(step: tuple[Any, Any, float]) -> tuple[float, float]:
        along = length_with_cuts(pairs, primal, step[0], cost, allowed) if cuts else pairs.length(primal, step[0])
        return along, pairs.length(dual, products.shortening(step[1]))

    step = system.step(products.wanted(0.0), residuals, care // 2)
    lengths = lengths_of(step)
    ahead = products.mean((primal + lengths[0] * step[0]) * (dual + lengths[1] * step[1]))
    value = money if money is not None else float(xp.sum(p) + xp.sum(m)) if a is None else point.t
    corrects = demand is None or for_each_limit < STEPS.users_of_uncorrected or pairs.holds
    aim = min((ahead / mu) ** (STEPS.aim if demand is None or not corrects else STEPS.aim_of_demand), 1.0) * mu
    floor = STEPS.end * abs(value) / products.number if demand is None else demand.least
    ends_before = demand is not None and (corrects or aim < floor)  # the predictor would go to 0
    aim = max(aim, floor)
    along_step = max(1 - aim / mu, 0.0) if ends_before else 1.0
    wanted = products.wanted(aim, step, along_step)
    step = system.step(wanted, residuals, care)
    lengths = lengths_of(step)
    for _ in range(STEPS.correctors if corrects else 0):
        far = [min(1.0, length + STEPS.ahead) for length in lengths]
        there = (primal + far[0] * step[0]) * (dual + far[1] * step[1]) / products.unit
        off = xp.clip(there, STEPS.spread * aim, aim / STEPS.spread) - xp.clip(there, None, 2 * aim / STEPS.spread)
        wanted = wanted + products.free(off * products.unit)
        other = system.step(wanted, residuals, care)
        longer = lengths_of(other)
        if sum(longer) < sum(lengths) + STEPS.gain:
            break
        step, lengths = other, longer
    along, across = (max(part, min(length**2, STEPS.longest_part)) * length if length < 1 else 1.0 for length in lengths)
    log.debug("  products %.1e, aim %.1e, lengths %.2f %.2f", mu, aim, *lengths)
    values, duals = primal + along * step[0], dual + across * step[1]
    duals = pairs.mask_equalities(xp.maximum(duals, products.least_parts() * dual), duals)
    least = STEPS.least_part * primal
    left = least
    if cuts:
        left = xp.maximum(xp.minimum(STEPS.target_of_cut * aim * products.unit / duals, STEPS.value_of_cut * primal), least)
    after = Point(xp.where(values > least, values, left), duals, point.t + along * step[2])
    if not np.isfinite(float(after.primal @ after.dual) + after.t):
        raise np.linalg.LinAlgError("the step is not a number")
    return after


class _WithTotal:
    """The system of a trade-off, in which kappa follows from all utilities: one more equation, and one more solution.

    Raises
    ------
    numpy.linalg.LinAlgError
        It is singular.
    """

    def __init__(self, system: Any, pairs: Pairs, money: Any, of_total: OfTotal) -> None:
        xp = pairs.xp
        self._system, self._pairs, self._of_total = system, pairs, of_total
        no_limit, no_row, no_pair = xp.zeros((pairs.n_slots, pairs.n_places)), xp.zeros(pairs.n_rows), xp.zeros(pairs.n_pairs)
        pushed = pairs.point(no_pair, no_limit, xp.concat([of_total.push * money, no_row[pairs.n_levels :]]))
        self._along = system.step(pushed, Residuals(no_limit, no_row, no_pair, 0.0), STEPS.refinements)
        self._pivot = 1 - self._pulled(self._along[0])
        if self._pivot == 0:
            raise np.linalg.LinAlgError(
                "the equation of kappa is singular: kappa and the value that utilities imply for it change by the same amount"
            )

    def step(self, products: Any, residuals: Residuals, refinements: int = 2) -> tuple[Any, Any, float]:
        """Return the changes of the primal values, of the dual ones, and of log kappa, by ``longest_of_kappa`` at most."""
        primal, dual, _ = self._system.step(products, residuals, refinements)
        change = (self._of_total.off + self._pulled(primal)) / self._pivot
        change = min(max(change, -STEPS.longest_of_kappa), STEPS.longest_of_kappa)
        return primal + change * self._along[0], dual + change * self._along[1], change

    def _pulled(self, primal: Any) -> float:
        """Return the change of log kappa that goes with changes of the utilities."""
        return float(self._of_total.pull @ self._pairs.rows_of(self._pairs.parts(primal)[2])[0])


class _Products:
    """The products of a point, those that become equal in their units and then small, and in the place of those of users their demands."""

    def __init__(self, pairs: Pairs, primal: Any, dual: Any, demand: Demand | None) -> None:
        self._pairs, self._dual, self._demand = pairs, dual, demand
        self._now = pairs.mask_equalities(primal * dual)
        self.primal = primal  # for the Newton system
        self.number = pairs.n_products
        self.unit: Any = 1.0
        if demand is not None:
            x, s, v = pairs.parts(primal)
            self._v, of_second = pairs.rows_of(v)
            self.unit = demand.unit
            self.primal = pairs.point(x, s, pairs.xp.concat([self._v * demand.elasticity, of_second]))
            self.number -= pairs.n_levels
        self._first = primal.shape[0] - pairs.n_rows
        self._end = self._first + pairs.n_levels  # of the demands, before the products of second rows

    def free(self, values: Any) -> Any:
        """Return values of a point, with 0 for demands and for equations."""
        if self._demand is None:
            return self._pairs.mask_equalities(values)
        return self._with_demands(values, self._pairs.xp.zeros_like(self._v))

    def _with_demands(self, values: Any, of_demands: Any) -> Any:
        """Return values of a point, with others in the place of demands."""
        return self._pairs.xp.concat([values[: self._first], of_demands, values[self._end :]])

    def shortening(self, change: Any) -> Any:
        """Return the part of a change of the duals that may shorten the step.

        The price that a stopped user pays may not: it keeps a part of its value (`least_parts`), and the next step removes the residual.
        """
        if self._demand is None or self._demand.stopped is None:
            return change
        xp, own = self._pairs.xp, change[self._first : self._end]
        return self._with_demands(change, xp.where(self._demand.stopped, xp.clip(own, 0.0, None), own))

    def least_parts(self) -> Any:
        """Return what part of each dual a step leaves at least.

        Far from the end, the price that a stopped user pays would fall by orders of magnitude step by step, down to where no user is left
        to pay for a server that others need.
        """
        if self._demand is None or self._demand.stopped is None:
            return STEPS.least_part
        xp, least = self._pairs.xp, self._pairs.xp.full_like(self._dual, STEPS.least_part)
        own = least[self._first : self._end]
        return self._with_demands(least, xp.where(self._demand.stopped, STEPS.least_part_of_stopped, own))

    def mean(self, products: Any) -> float:
        """Return the mean of the products that become small, in their units."""
        if self._demand is None:
            return self._pairs.mean(products)
        return float(self._pairs.xp.sum(self._pairs.eligible(self.free(products / self.unit)))) / self.number

    def wanted(self, aim: float, step: tuple[Any, Any, float] | None = None, part: float = 1.0) -> Any:
        """Return the wanted changes of the products, to the second order of a part of a known step."""
        across = 0.0 if step is None else part**2 * step[0] * step[1]
        changes = aim * self.unit - self._now - across
        if self._demand is None:
            return self._pairs.mask_equalities(changes)
        xp, m, e, off = self._pairs.xp, self._dual[self._first : self._end], self._demand.elasticity, self._demand.off
        if step is not None:
            dv, dm = (change[self._first : self._end] for change in step[:2])
            dv, dm = dv / self._v, dm / m
            off = off + part**2 * (xp.clip(dv * dv, None, 1.0) + e * xp.clip(dm * dm, None, 1.0)) / 2
        return self._with_demands(changes, off * self._v * m)
