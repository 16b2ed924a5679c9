r"""Alpha-fair goals by the steps of levels.

    maximise sum_n phi[n] g(v[n])   subject to   A x + s = 1,   W x = v <= c,   x, s >= 0          g'(v) = v^-alpha
                                                 A'p - W'm - z = 0,             p, z >= 0,         v = d(m)

in the units of `fairopt.solvers.structure.scaling`. It is the program of a level without t: a user's utility v replaces its surplus above
the level, and the price m that it pays for a unit of utility replaces the price of its level. As for levels, all conditions but the
products are linear: x z and s p become small together, while v is the user's demand at m, d(m) = (phi / m)^(1 / alpha), from the first step
on. So primal and dual steps have lengths of their own, and pairs may be cut (`fairopt.solvers.interior_point.steps`).

A limit on tasks is a cap c of the demand, whose kink is rounded off while the path is far from its end
(`fairopt.solvers.interior_point.capped_demand`); no row is needed.

The path ends by the measure of the certificate, not by the products: the largest part of its money that a user wastes, at x scaled such
that the fullest limit of every server is full.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.active_sets.problem import AlphaFairProblem, too_little
from fairopt.solvers.active_sets.problem import Point as Sets
from fairopt.solvers.backend import Deadline, nothing_to_solve
from fairopt.solvers.interior_point.capped_demand import rounded_demand
from fairopt.solvers.interior_point.finish import read_active_sets
from fairopt.solvers.interior_point.rows import RowPairs, ScaledRows
from fairopt.solvers.interior_point.steps import Demand, Point, advance, part_of_the_way
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.newton import NewtonSystem, Residuals
from fairopt.solvers.structure.pairs import Pairs, lay_out
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle

__all__ = ["follow_with_total", "solve_alpha_fair"]

log = logging.getLogger(__name__)

_STEPS = 200
_DIGITS = 3e-4  # times the tolerance: error at which the path ends
_GOOD = 0.03  # times the tolerance: largest error of an answer
_PAIRS_TO_POLISH = 20_000  # up to which an answer with a larger error counts: its active sets may be right
_STALLED = 3  # steps without gain near the end, after which the path ends
_LOST = 15  # steps that do not halve the products, after which the path fails
_DEAR = 2.0  # cost of all limits at the start, relative to all money
_LEAST_COST = 0.1  # least reduced cost at the start, relative to the cost
_SHOWS, _REFINEMENTS = 1e-6, 3  # error below which the active sets are known; refinements of a step on these sets
_CLOSE = 1e-8  # relative gap below which the error is computed
_STOPPED = 1e-12  # relative: a user with so little less than its cap is stopped by it
_SPREAD = 3.0  # largest distance of the money of a user from the median at the start, in logarithms
_FAR = 1.0  # distance of demands from utilities, in logarithms, from which on a step goes only so far, and the products stay
_MIDDLE = 0.1  # to which the products fall by then, relative to all money
_FREE = 1e-6  # least mean money, relative to all that its tasks are worth to the user with the least
_LEAST_OF_LIMIT = 1e-9  # least unit of the product of a limit where users are stopped, relative to the mean money
_SLOWLY = 0.1  # a unit falls by this factor at most in a step
_LEAST_ELASTICITY = 1e-12  # of the marginal worth
_OF_A_TRADEOFF, _GOOD_OF_A_TRADEOFF = 3e-12, 1e-9  # error at which the path of a trade-off ends, and the largest of an answer
_POOREST = 1e-24  # least unit of a product, relative to the mean
_NEARLY_FULL = 1 - 1e-4
_NEGLIGIBLE = 1e-11  # part of all limits
_LARGEST_LOG = 690.0  # exp of more overflows


def solve_alpha_fair(
    program: Program, goal: AlphaFair, tolerance: float, deadline: Deadline, arrays: Arrays = NUMPY, pairs: Pairs | None = None
) -> Solution | None:
    """Return the alpha-fair allocation, if possible four digits below the tolerance; None if the path does not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        The program does not fit into the layout of `fairopt.solvers.structure.pairs` in these arrays.
    """
    enough = _DIGITS * tolerance
    if not program.scaled().n_columns:
        return nothing_to_solve(program)
    if pairs is None:
        pairs = RowPairs(ScaledRows.of(program)) if obstacle(program) else lay_out(ScaledProgram.of(program), arrays)
    path = _Path(pairs, goal.alpha, goal.weights)
    end = _followed(path, enough, deadline)
    if end is None or (end.error > _GOOD * tolerance and program.n_pairs > _PAIRS_TO_POLISH):
        return None
    tasks = pairs.tasks(end.x)
    nothing = program.per_user(tasks)[pairs.scaled.member] == 0
    if nothing.any():
        raise too_little(program, pairs.scaled.member[nothing][0])
    return Solution(tasks, prices=path.prices(end.point, end.x), iterations=end.step)


def follow_with_total(problem: AlphaFairProblem, goal: Tradeoff, deadline: Deadline) -> Sets | None:
    """Return the optimum of a trade-off at the worth of the total that a problem has; None if the path does not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    path = _Path(RowPairs(ScaledRows.of(problem.scaled.program, capped=False)), goal.beta, goal.weights, problem.log_kappa)
    with np.errstate(all="ignore"):
        end = _followed(path, _OF_A_TRADEOFF, deadline)
        if end is None or end.error > _GOOD_OF_A_TRADEOFF:
            return None
        _, p, _ = path.pairs.parts(end.point.dual)
        return Sets(end.x, p[0] * np.exp(path.log_unit - problem.shift), end.step)


@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """The best point of a path, its x and error, and the last step."""

    x: Any
    point: Point
    error: float
    step: int


def _followed(path: _Path, enough: float, deadline: Deadline) -> _End | None:
    """Follow a path until the error is small enough, or steps gain nothing; None if it does not converge."""
    point, best, marks = path.start(), None, (np.inf, 0, 0)
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        gap = path.measured(point)
        error, x = path.best(point, enough) if gap < _CLOSE else (np.inf, None)
        log.debug("step %d: gap %.1e, error %.1e", step, gap, error)
        mark, since, stalled = marks
        since, mark = (0, gap) if gap < 0.5 * mark or not path.settled else (since + 1, mark)
        stalled = 0 if best is None or error < 0.5 * best.error else stalled + 1
        marks = mark, since, stalled
        if error < (np.inf if best is None else best.error):
            best = _End(x, point, error, step)
        found = best is not None
        if error <= enough or stalled >= _STALLED or (since > _LOST and not found) or not np.isfinite(gap):
            break
        try:
            point = path.advanced(point, gap)
        except np.linalg.LinAlgError:
            break
    log.info("%d steps, a user wastes %.1e at most", step, np.inf if best is None else best.error)
    return best


class _Path:
    """The constants of a path: pairs, and phi in units in which all users together start with the money 1."""

    def __init__(self, pairs: Pairs, alpha: float, weights: FloatArray, log_kappa: float = -np.inf) -> None:
        scaled, self.pairs, self.alpha = pairs.scaled, pairs, alpha
        log_cap = np.where(scaled.cap <= 1 + _STOPPED, np.log(scaled.cap), np.inf)  # a cap beyond the reach, 1, is none
        self._log_cap = pairs.arrays.floats(log_cap) if np.isfinite(log_cap).any() else None
        self._least_unit = pairs.arrays.floats(np.where(np.isfinite(log_cap), 0.1 * _LEAST_OF_LIMIT * np.exp(log_cap), _POOREST))
        self._even = pairs.even_slices()
        if self._log_cap is not None:
            part = pairs.xp.exp(self._log_cap) / pairs.rows(self._even)
            self._even = self._even * pairs.spread(pairs.xp.clip(part / 2, None, 1.0))
        log_phi = np.log(weights[scaled.member]) + (1 - alpha) * np.log(scaled.reach)
        log_money = log_phi + (1 - alpha) * np.log(pairs.arrays.numpy(pairs.rows(self._even)))
        middle = float(np.median(log_money))
        log_money = np.clip(log_money, middle - _SPREAD, middle + _SPREAD)  # of the start
        self.log_unit = float(np.logaddexp.reduce(log_money))
        self._first_money = pairs.arrays.floats(np.exp(log_money - self.log_unit))
        self._log_phi = pairs.arrays.floats(log_phi - self.log_unit)
        self._log_total = pairs.arrays.floats(log_kappa + np.log(scaled.reach) - self.log_unit) if log_kappa > -np.inf else None
        self._ones = pairs.arrays.floats(np.ones(pairs.n_rows))
        self._unit: Any = None
        self._width, self._stiff, self.settled = 1.0, min(1.0, 1 / alpha), False

    def start(self) -> Point:
        """Divide half of every limit evenly; give all limits one price, at which together they cost more than all money."""
        pairs, x = self.pairs, self._even
        v = pairs.rows(x)
        m = self._first_money / v
        even = np.full((pairs.n_slots, pairs.n_servers), _DEAR / (pairs.n_slots * pairs.n_servers))
        p = pairs.arrays.floats(even)
        cost = pairs.cost(p)
        z = pairs.eligible(pairs.xp.maximum(cost - pairs.along_rows(m), _LEAST_COST * cost), 1.0)
        return Point(pairs.point(x, 1 - pairs.use(x), v), pairs.point(z, p, m), 0.0)

    def advanced(self, point: Point, gap: float) -> Point:
        """Take a step."""
        xp, pairs = self.pairs.xp, self.pairs
        _, _, v = pairs.parts(point.primal)
        _, _, m = pairs.parts(point.dual)
        off, elasticity = self._off(v, m)
        stiff = self._stiff if self._log_total is None else elasticity
        furthest = float(xp.max(xp.abs(off / stiff)))
        self.settled |= furthest < _FAR
        if not self.settled:
            if self._log_total is None:  # the unit of money is still free
                moved = elasticity > 0.5 / self.alpha  # the demand of a stopped user does not depend on the unit
                middle = float(xp.max(xp.where(moved, off, -np.inf)) + xp.min(xp.where(moved, off, np.inf))) / 2 * self.alpha
                if np.isfinite(middle):
                    self._log_phi, self.log_unit = self._log_phi - middle, self.log_unit + middle
                    off, _ = self._off(v, m)
            short = xp.clip(off / stiff, None, _FAR)
            off = stiff * xp.where(short < 0, xp.expm1(short), short)
        money = self._mean_money(v, v * m) * pairs.n_users
        least = 0.0 if self.settled else _MIDDLE * money / (pairs.n_products - pairs.n_rows)
        stopped = None if self._log_cap is None else elasticity < 0.5 / self.alpha
        demand = Demand(elasticity, off, self._unit, least, stopped)
        nothing = xp.zeros_like(v)
        return advance(pairs, point, self._ones, None, nothing, 0.0, part_of_the_way(gap), money, demand)

    def _off(self, v: Any, m: Any) -> tuple[Any, Any]:
        """Return logarithms of the demand of each user over its utility, and the elasticity of the demand, (users,)."""
        xp = self.pairs.xp
        if self._log_total is None:
            log_demand, part = self._demand(m)
            return log_demand - xp.log(v), part / self.alpha + xp.zeros_like(m)
        worth = self._log_worth(v)
        elasticity = 1 / xp.clip(self.alpha * xp.exp(self._log_phi - self.alpha * xp.log(v) - worth), _LEAST_ELASTICITY, None)
        return (worth - xp.log(m)) * elasticity, elasticity

    def _mean_money(self, v: Any, money: Any) -> float:
        """Return the mean of what users pay servers; more than 0 even if all of them hold all their tasks, and nothing has a price."""
        xp = self.pairs.xp
        mean = float(xp.sum(money)) / self.pairs.n_users
        return mean if self._log_cap is None else max(mean, _FREE * float(xp.min(v * self._worth(v))))

    def _at_stake(self, v: Any, money: Any) -> Any:
        """Return the money that errors of each user are relative to, (users,).

        Where a limit on tasks stops a user, what it pays servers may be next to nothing. Its errors matter to others: they are relative to
        the mean money, or to all that its tasks are worth to it if that is less.
        """
        if self._log_cap is None:
            return money
        xp = self.pairs.xp
        most = xp.clip(v * self._worth(v), None, self._mean_money(v, money))
        return xp.where(xp.isfinite(self._log_cap), xp.maximum(money, most), money)

    def measured(self, point: Point) -> float:
        """Return the sum of the products x z and s p, each relative to the money of its users; set the units of the products."""
        pairs, xp = self.pairs, self.pairs.xp
        x, s, v = pairs.parts(point.primal)
        z, p, m = pairs.parts(point.dual)
        money = v * m
        mean = self._mean_money(v, money)
        own = pairs.spread(xp.maximum(money, self._least_unit * mean))
        use, parts = pairs.use(x), pairs.use(x / own)
        of_limits = xp.where(parts > 0, use / xp.where(parts > 0, parts, 1.0), mean)
        if self._log_cap is not None:
            of_limits = xp.clip(of_limits, _LEAST_OF_LIMIT * mean, mean)
        unit = pairs.point(own, of_limits, xp.ones_like(v))
        if self._log_cap is not None and self.settled:  # a stopped user may pay much less after a step: products follow slowly
            unit = xp.maximum(unit, _SLOWLY * self._unit)
        counted = pairs.eligible(pairs.point(*pairs.parts(unit)[:2], xp.zeros_like(v)))
        self._unit = unit / (float(xp.sum(counted)) / (pairs.n_products - pairs.n_rows))
        products = pairs.eligible(pairs.point(x * z, s * p, xp.zeros_like(v)) / self._unit)
        gap = float(xp.sum(products)) / (mean * pairs.n_users)
        self._width = min(self._width, gap)
        return gap

    def best(self, point: Point, enough: float) -> tuple[float, Any]:
        """Return the smaller of two errors, with its x: of the point, or of the nearest x that fills every priced limit."""
        x, _, _ = self.pairs.parts(point.primal)
        first = self.error(point, x)
        second = self.error(point, self._filled(point)) if enough < first[0] < _SHOWS else first
        return min(first, second, key=lambda each: each[0])

    def _filled(self, point: Point) -> Any:
        """Return the x with the least sum of (dx/x)^2 that fills limits with a price and gives users what they pay for.

        Near the end, a step of the path has only rounding errors in small values. Here unused pairs are 0 and no small values remain
        (`fairopt.solvers.interior_point.finish`).
        """
        pairs, xp = self.pairs, self.pairs.xp
        x, s, v = pairs.parts(point.primal)
        _, p, m = pairs.parts(point.dual)
        sets = read_active_sets(pairs, point.primal, point.dual, float(v @ m))
        x, s = xp.where(sets.used, x, 0.0), xp.where(sets.full, 0.0, s)
        v = pairs.rows(x)
        if self._log_total is None:
            v = xp.exp(self._demand(pairs.cheapest(p, pairs.arrays.floats([])), 0.0)[0])
        weight = pairs.point(x, s, xp.zeros_like(v)) ** 2
        lacks = Residuals(1 - pairs.use(x) - s, v - pairs.rows(x), xp.zeros_like(x), 0.0)
        try:
            system = (pairs.system or NewtonSystem)(pairs, weight, xp.ones_like(weight), self._ones, None)
        except np.linalg.LinAlgError:
            return x
        dx, _, _ = pairs.parts(system.step(xp.zeros_like(weight), lacks, _REFINEMENTS)[0])
        return xp.maximum(x + dx, 0.0)

    def _with_demands(self, x: Any, p: Any) -> Any:
        """Return x with the demands of users who are too poor for their share of a limit to matter, each at its cheapest pairs."""
        if self.alpha >= 1 or self._log_total is not None:
            return x
        pairs, xp = self.pairs, self.pairs.xp
        price = pairs.eligible(pairs.cost(p), np.inf) / pairs.eligible(pairs.W, 1.0)
        least = pairs.least_by_user(price)
        demand = xp.exp(self._demand(least, 0.0)[0])
        here = xp.astype(price <= pairs.spread(least) * (1 + _STOPPED), xp.float64)
        own = here * pairs.spread(demand / pairs.rows(here))
        return xp.where(pairs.spread(-pairs.least_by_user(-own)) < _NEGLIGIBLE, own, x)

    def error(self, point: Point, x: Any) -> tuple[float, Any]:
        """Return the largest part of its money that a user wastes, or by which a pair is worth more than it costs, and the scaled x."""
        pairs, xp = self.pairs, self.pairs.xp
        _, p, _ = pairs.parts(point.dual)
        x = self._with_demands(x, p)
        fullest = pairs.eligible(pairs.fullest(x), 1.0)
        if self._log_cap is not None or pairs.system:  # where all users are stopped, a server has room, which is not theirs
            fullest = xp.where(fullest > _NEARLY_FULL, fullest, 1.0)
        x = x / fullest
        if self._log_cap is not None:
            x = x / pairs.spread(xp.clip(pairs.rows(x) / xp.exp(self._log_cap), 1.0, None))
        v = pairs.rows(x)
        m, missing = self._paid(v, p)
        worth, cost = pairs.along_rows(m), pairs.cost(p)
        beyond = xp.clip(cost - worth, 0.0, None)
        idle = pairs.cost(p * xp.clip(1 - pairs.use(x), 0.0, None))
        wasted = pairs.dot_by_user(beyond + idle, x) / self._at_stake(v, v * m) + missing
        cheap = pairs.eligible(1 - cost / pairs.eligible(worth, 1.0))
        return max(float(xp.max(wasted)), float(xp.max(cheap))), x

    def prices(self, point: Point, x: Any) -> FloatArray:
        """Return the prices of the limits of the program, (limits,), in parts of the largest where they are beyond floating point."""
        pairs, scaled = self.pairs, self.pairs.scaled
        _, p, _ = pairs.parts(point.dual)
        v = pairs.rows(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_price = np.log(np.maximum(pairs.arrays.numpy(p), 0.0)) + self.log_unit
            of_tasks = np.full(pairs.n_users, -np.inf)
            if self._log_cap is not None:  # what a stopped user would pay for more tasks than it has
                log_worth, log_paid = (pairs.arrays.numpy(each) for each in (self._log_worth(v), pairs.xp.log(self._paid(v, p)[0])))
                beyond = log_worth + np.log(-np.expm1(log_paid - log_worth)) + pairs.arrays.numpy(self._log_cap) + self.log_unit
                of_tasks = np.where((log_paid < log_worth) & (beyond < np.inf), beyond, -np.inf)
        unit = max(0.0, max(float(log_price.max()), float(of_tasks.max())) - _LARGEST_LOG)
        prices = scaled.prices(np.exp(log_price - unit), np.empty(0))
        stopped = np.flatnonzero(of_tasks > -np.inf)
        rows = scaled.task_row[stopped]
        prices[rows] = np.exp(of_tasks[stopped] - unit) / scaled.program.limits.bounds[rows]
        return prices

    def _demand(self, m: Any, width: float | None = None) -> tuple[Any, Any]:
        """Return the logarithm of the demand of each user at a price of a unit of utility, and its elasticity times alpha, (users,)."""
        log_demand = (self._log_phi - self.pairs.xp.log(m)) / self.alpha
        return rounded_demand(self.pairs.arrays, log_demand, self._log_cap, self._width if width is None else width)

    def _paid(self, v: Any, p: Any) -> tuple[Any, Any]:
        """Return what each user pays servers for a unit of utility, and the part of its tasks that a stopped user lacks, (users,).

        A user pays its marginal worth, or less if a limit on tasks stops it: if its worth at this limit exceeds the cheapest price.
        """
        worth = self._worth(v)
        if self._log_cap is None:
            return worth, 0.0
        pairs, xp = self.pairs, self.pairs.xp
        cap = xp.where(xp.isfinite(self._log_cap), xp.exp(self._log_cap), 1.0)
        cheapest = pairs.cheapest(p, pairs.arrays.floats([]))
        stopped = xp.isfinite(self._log_cap) & (self._worth(cap) > cheapest)
        return xp.where(stopped, cheapest, worth), xp.where(stopped, 1 - v / cap, 0.0)

    def _log_worth(self, v: Any) -> Any:
        """Return the logarithm of the marginal worth; in a trade-off with that of the total."""
        own = self._log_phi - self.alpha * self.pairs.xp.log(v)
        return own if self._log_total is None else np.logaddexp(own, self._log_total)

    def _worth(self, v: Any) -> Any:
        return self.pairs.xp.exp(self._log_worth(v))
