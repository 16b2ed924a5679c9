r"""Alpha-fair goals by the steps of levels.

    maximise sum_n phi[n] g(v[n])   subject to   A x + s = 1,   W x = v <= c,   x, s >= 0          g'(v) = v^-alpha
                                                 A'p - W'm - z = 0,             p, z >= 0,         v = d(m)

in the units of `fairopt.solvers.structure.scaling`. It is the program of a level without t: a user's utility v replaces its surplus above
the level, and the price m that it pays for a unit of utility replaces the price of its level. The last condition is the user's demand,
d(m) = (phi / m)^(1 / alpha), capped at c by a limit on tasks (`fairopt.solvers.interior_point.alpha_fair_worths`). x is optimal if besides
x z = 0 and s p = 0.

*Elimination.* Let e be the elasticity of the demand. With dx, ds, dz and dv eliminated, a step solves the system of levels, with e v/m in
place of v/m: dense, of the smaller number of users and limits (`fairopt.solvers.structure.newton`). If many rows belong to no server, it is
the sparse system of the polish (`fairopt.solvers.interior_point.rows`).

*Steps.* As for levels, all conditions but the products and the demand are linear. v = d(m) holds in logarithms after the first steps; until
then a step changes prices by a factor e at most, the products stay, and the unit of money is free. Then x z and s p become small together.
Primal and dual steps have lengths of their own, and pairs may be cut (`fairopt.solvers.interior_point.steps`). Each product is relative to
the money of its own user, or of the users of its limit. A path that fails is followed once more, with steps that lose no digits where the
money of users lies far apart (`fairopt.solvers.interior_point.relative`).

*End.* The path ends by the error of the certificate, not by the products: with what the active sets show, as soon as this error is small
(`fairopt.solvers.interior_point.alpha_fair_end`).

Many users whose pairs use one limit each are solved by way of a sample (`fairopt.solvers.interior_point.by_sample`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.active_sets.problem import AlphaFairProblem, too_little
from fairopt.solvers.active_sets.problem import Point as Answer
from fairopt.solvers.backend import Deadline, nothing_to_solve
from fairopt.solvers.interior_point.alpha_fair_end import End, best_end
from fairopt.solvers.interior_point.alpha_fair_worths import Worths
from fairopt.solvers.interior_point.by_sample import Start, fits, solve_by_sample
from fairopt.solvers.interior_point.relative import RelativePairs
from fairopt.solvers.interior_point.rows import RowPairs, ScaledRows
from fairopt.solvers.interior_point.settings import SETTINGS
from fairopt.solvers.interior_point.steps import Demand, Point, advance, part_of_the_way
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.pairs import Pairs, lay_out
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle

__all__ = ["follow_with_total", "solve_alpha_fair"]

log = logging.getLogger(__name__)


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
    if not program.scaled().n_columns:
        return nothing_to_solve(program)

    def follow(part: Program, its_goal: AlphaFair, start: Start | None, rough: float) -> Solution | None:
        return _solution(part, its_goal, lay_out(ScaledProgram.of(part), NUMPY), tolerance, deadline, start, rough)

    found = solve_by_sample(program, goal, follow) if pairs is None and arrays.are_numpy and fits(program) else None
    if found is not None:
        return found
    return _solution(program, goal, _laid_out(program, arrays) if pairs is None else pairs, tolerance, deadline)


def _laid_out(program: Program, arrays: Arrays) -> Pairs:
    """Return the pairs by server, or as rows where servers have many limits, of which most users take few, or the users are few.

    With n limits of a server, the blocks of servers take n^2 steps where users are eliminated, and n^3 where servers are.
    """
    if obstacle(program):
        return RowPairs(ScaledRows.of(program))
    scaled = ScaledProgram.of(program)
    if arrays.are_numpy and scaled.n_slots >= SETTINGS.many_limits:
        eliminates_servers = scaled.n_rows <= scaled.n_slots * scaled.n_servers
        if eliminates_servers or np.count_nonzero(scaled.A) <= SETTINGS.few_entries * scaled.A.size:
            return RowPairs(ScaledRows.of(program))
    return lay_out(scaled, arrays)


def _solution(
    program: Program, goal: AlphaFair, pairs: Pairs, tolerance: float, deadline: Deadline, start: Start | None = None, rough: float = 0.0
) -> Solution | None:
    """Return the end of the path, or its first point with a gap of ``rough``; None if it does not converge."""
    good = max(SETTINGS.good * tolerance, rough)
    path = _Path(Worths(pairs, goal.alpha, goal.weights), start)
    found = _followed(path, SETTINGS.digits * tolerance, deadline, rough)
    if (found is None or found.end.error > good) and _may_be_relative(pairs):
        log.info("once more, in relative changes")
        again = _Path(Worths(RelativePairs(pairs.scaled), goal.alpha, goal.weights), start)
        better = _followed(again, SETTINGS.digits * tolerance, deadline, rough)
        if better is not None and (found is None or better.end.error < found.end.error):
            path, pairs, found = again, again.pairs, better
    if found is None or (found.end.error > max(good, tolerance) and program.n_pairs > SETTINGS.pairs_of_rough_answers):
        return None
    tasks = pairs.tasks(found.end.x)
    nothing = program.per_user(tasks)[pairs.scaled.member] == 0
    if nothing.any():
        raise too_little(program, pairs.scaled.member[nothing][0])
    return Solution(tasks, prices=path.worths.prices(found.end.p, found.end.x), iterations=found.steps)


def _may_be_relative(pairs: Pairs) -> bool:
    """Return whether a path in relative changes is worth its time: elsewhere, its system does not fit, or is large."""
    fits_there = pairs.arrays.are_numpy and pairs.system is None and pairs.across is None
    return fits_there and pairs.scaled.n_pairs <= SETTINGS.pairs_of_relative_steps


def follow_with_total(problem: AlphaFairProblem, goal: Tradeoff, deadline: Deadline) -> Answer | None:
    """Return the optimum of a trade-off at the worth of the total that a problem has; None if the path does not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    pairs = RowPairs(ScaledRows.of(problem.scaled.program, capped=False))
    with np.errstate(all="ignore"):
        path = _Path(Worths(pairs, goal.beta, goal.weights, problem.log_kappa))
        found = _followed(path, SETTINGS.end_of_tradeoff, deadline)
        if found is None or found.end.error > SETTINGS.good_of_tradeoff:
            return None
        return Answer(found.end.x, found.end.p[0] * np.exp(path.worths.log_unit - problem.shift), found.steps)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The best end of a path, and the step at which it was found."""

    end: End
    steps: int


def _followed(path: _Path, enough: float, deadline: Deadline, rough: float = 0.0) -> _Found | None:
    """Follow a path until the error is small enough, or the gap ``rough``, or steps gain nothing; None if it does not converge."""
    point, best = path.start(), None
    mark, since, stalled = np.inf, 0, 0  # a gap, steps since it was halved, and steps that gained nothing near the end
    for step in range(SETTINGS.steps_of_alpha_fair):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        gap = path.measured(point)
        if gap < rough and path.furthest < SETTINGS.near:
            return _Found(path.present(point, gap), step)
        end = best_end(path.worths, point, path.money_of_limits, enough) if gap < SETTINGS.close_to_end else path.present(point, np.inf)
        log.debug("step %d: gap %.1e, error %.1e", step, gap, end.error)
        since, mark = (0, gap) if gap < 0.5 * mark or not path.settled else (since + 1, mark)
        stalled = 0 if best is None or end.error < 0.5 * best.end.error else stalled + 1
        if end.error < (np.inf if best is None else best.end.error):
            best = _Found(end, step)
        if (
            end.error <= enough
            or stalled >= SETTINGS.stalled_of_alpha_fair
            or (since > SETTINGS.lost and best is None)
            or not np.isfinite(gap)
        ):
            break
        try:
            point = path.advanced(point, gap)
        except np.linalg.LinAlgError:
            break
    log.info("%d steps, a user wastes %.1e at most", step, np.inf if best is None else best.end.error)
    return best


class _Path:
    """A path: what stays the same in all of its steps, and the units of its products, which follow the money of the users.

    Attributes
    ----------
    worths : Worths
        In a unit of money in which all users together start with 1.
    furthest : float
        Of demands from utilities before the last step, in logarithms of prices.
    settled : bool
        Has it been small? From then on demands follow prices in each step.
    money_of_limits : array (slots, places)
        Of the users of each limit: the harmonic mean, as a price is not small unless it is small for the user with the least money.
    """

    def __init__(self, worths: Worths, start: Start | None = None) -> None:
        self.worths, self.pairs = worths, worths.pairs
        pairs, xp = self.pairs, self.pairs.xp
        self._even = pairs.even_slices() if start is None else pairs.lay(start.slices)
        if worths.log_cap is not None:
            cap = xp.exp(worths.log_cap)
            self._even = self._even * pairs.spread(xp.clip(cap / pairs.rows(self._even) / 2, None, 1.0))
        log_money = pairs.arrays.numpy(worths.log_phi + (1 - worths.alpha) * xp.log(pairs.rows(self._even)))
        if start is None:
            middle = float(np.median(log_money))
            log_money = np.clip(log_money, middle - SETTINGS.spread_of_money, middle + SETTINGS.spread_of_money)
        unit = float(np.logaddexp.reduce(log_money))
        worths.count_in(unit)
        self._first_money = pairs.arrays.floats(np.exp(log_money - unit))
        self._first_prices = pairs.arrays.floats(self._prices(start))
        self._ones = pairs.arrays.floats(np.ones(pairs.n_rows))
        self._unit: Any = None
        self.money_of_limits: Any = None
        self.furthest, self.settled = np.inf, False

    def _prices(self, start: Start | None) -> FloatArray:
        """Return the first prices, (slots, places), at which all limits together cost more than all money."""
        pairs, scaled = self.pairs, self.pairs.scaled
        prices = np.ones((pairs.n_slots, pairs.n_places))
        if start is not None:
            prices[:] = 0.0
            prices[scaled.row_slot, scaled.row_place] = start.prices[scaled.row]
        return np.asarray(SETTINGS.dear_at_start * prices / prices.sum())

    def start(self) -> Point:
        """Return the first point: half of every limit divided evenly, and one price of all limits, unless the start has others."""
        pairs, x, p = self.pairs, self._even, self._first_prices
        v = pairs.rows(x)
        m = self._first_money / v
        cost = pairs.cost(p)
        z = pairs.eligible(pairs.xp.maximum(cost - pairs.along_rows(m), SETTINGS.least_cost * cost), 1.0)
        return Point(pairs.point(x, 1 - pairs.use(x), v), pairs.point(z, p, m), 0.0)

    def present(self, point: Point, error: float) -> End:
        """Return the point as it is, as an end with this error."""
        return End(error, self.pairs.parts(point.primal)[0], self.pairs.parts(point.dual)[1])

    def advanced(self, point: Point, gap: float) -> Point:
        """Take a step."""
        xp, pairs, worths = self.pairs.xp, self.pairs, self.worths
        _, _, v = pairs.parts(point.primal)
        _, _, m = pairs.parts(point.dual)
        off, elasticity = worths.off(v, m)
        of_one = elasticity if worths.log_total is not None else min(1.0, 1 / worths.alpha)  # how much a factor e of prices changes demands
        self.furthest = float(xp.max(xp.abs(off / of_one)))
        self.settled |= self.furthest < SETTINGS.far
        if not self.settled:
            if worths.log_total is None:  # the unit of money is still free
                moved = elasticity > 0.5 / worths.alpha  # the demand of a stopped user does not depend on the unit
                middle = float(xp.max(xp.where(moved, off, -np.inf)) + xp.min(xp.where(moved, off, np.inf))) / 2 * worths.alpha
                if np.isfinite(middle):
                    worths.count_in(middle)
                    off, _ = worths.off(v, m)
            short = xp.clip(off / of_one, None, SETTINGS.far)
            off = of_one * xp.where(short < 0, xp.expm1(short), short)
        money = worths.mean_money(v, v * m) * pairs.n_users
        least = 0.0 if self.settled else SETTINGS.middle * money / (pairs.n_products - pairs.n_rows)
        stopped = None if worths.log_cap is None else elasticity < 0.5 / worths.alpha
        demand = Demand(elasticity, off, self._unit, least, stopped)
        return advance(pairs, point, self._ones, None, xp.zeros_like(v), 0.0, part_of_the_way(gap), money, demand)

    def measured(self, point: Point) -> float:
        """Return the sum of the products x z and s p, each relative to the money of its users; set the units of the products."""
        pairs, xp, capped = self.pairs, self.pairs.xp, self.worths.log_cap is not None
        x, s, v = pairs.parts(point.primal)
        z, p, m = pairs.parts(point.dual)
        money = v * m
        mean = self.worths.mean_money(v, money)
        own, self.money_of_limits = self._money(x, v, m, money, mean)
        unit = pairs.point(pairs.spread(own), self.money_of_limits, xp.ones_like(v))
        if capped and self.settled:  # a stopped user may pay much less after a step: products follow slowly
            unit = xp.maximum(unit, SETTINGS.slowly * self._unit)
        counted = pairs.eligible(pairs.point(*pairs.parts(unit)[:2], xp.zeros_like(v)))
        self._unit = unit / (float(xp.sum(counted)) / (pairs.n_products - pairs.n_rows))
        products = pairs.eligible(pairs.point(x * z, s * p, xp.zeros_like(v)) / self._unit)
        gap = float(xp.sum(products)) / (mean * pairs.n_users)
        self.worths.width = min(self.worths.width, gap)
        return gap

    def _money(self, x: Any, v: Any, m: Any, money: Any, mean: float) -> tuple[Any, Any]:
        """Return the money of users that their products are relative to, (users,), and that of limits, (slots, places).

        What a stopped user pays may be nothing: in its limits it counts with a part of the mean. Its own products are relative to a part of
        what these limits would cost it then. Larger ones would hold its x above what its limit on tasks allows, at any price.
        """
        pairs, xp, log_cap = self.pairs, self.pairs.xp, self.worths.log_cap
        own = in_limits = xp.maximum(money, SETTINGS.poorest * mean)
        if log_cap is not None:
            stopped, least = self.worths.off(v, m)[1] < 0.5 / self.worths.alpha, SETTINGS.least_of_limit * mean
            in_limits = xp.where(stopped, xp.maximum(own, least), own)
        use, parts = pairs.use(x), pairs.use(x / pairs.spread(in_limits))
        of_limits = xp.where(parts > 0, use / xp.where(parts > 0, parts, 1.0), mean)
        if log_cap is not None:
            of_limits = xp.clip(of_limits, None, mean)
            costs = xp.clip(xp.exp(log_cap), None, 1.0) * pairs.cheapest(of_limits, pairs.arrays.floats([]))
            own = xp.where(stopped, xp.maximum(own, SETTINGS.part_of_costs * xp.clip(costs, None, least)), own)
        return own, of_limits
