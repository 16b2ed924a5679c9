"""The end of the path of `fairopt.solvers.interior_point.alpha_fair`: the error of a point, and the answer that its active sets show.

The error is the certificate's: with x scaled such that the fullest limit of every server is full, the largest part of its money that a user
wastes, on pairs that cost more than they are worth to it or on limits that are not full, or by which a pair is worth more than it costs.

Of the factors of each product, x z and s p, one will be 0, and near the end it shows which one. In place of a few more steps, in which only
rounding errors of small values are left, these are set to 0, and two linear systems give the rest: the x with the least sum of (dx/x)^2
that fills full limits and gives each user its demand; then the prices of full limits at which used pairs cost what they are worth, by
least squares with the weights x^2. Both are steps of the path's own Newton system (`fairopt.solvers.structure.newton`) with x^2 and s^2 in
place of x/z and s/p, and in place of v/m 0 where utilities are given, a large number where marginal utilities are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fairopt.instance.tolerances import SAME
from fairopt.solvers.interior_point.alpha_fair_worths import Worths
from fairopt.solvers.interior_point.settings import ALPHA_FAIR
from fairopt.solvers.interior_point.steps import Point
from fairopt.solvers.structure.newton import NewtonSystem, Residuals

__all__ = ["End", "best_end", "error_of"]


class End(NamedTuple):
    """An error, and the x, the prices of limits, and those of second rows that have it."""

    error: float
    x: Any
    p: Any
    q: Any = ()


def best_end(worths: Worths, point: Point, money_of_limits: Any, enough: float) -> End:
    """Return the end with the least error of those of a point, of the x on its active sets, and of the prices there.

    Parameters
    ----------
    money_of_limits : array (slots, servers)
        Money that prices of limits are relative to.
    enough : float
        Of ends whose errors are no larger, the last one is the best; prices are not solved for after such an end.
    """
    pairs, xp = worths.pairs, worths.pairs.xp
    x, _, _ = pairs.parts(point.primal)
    _, p, of_rows = pairs.parts(point.dual)
    q = pairs.rows_of(of_rows)[1]
    ends = [error_of(worths, x, p, q)]
    if ends[0].error < ALPHA_FAIR.sets_show_below:
        sets = _shown(worths, point, money_of_limits)
        ends.append(error_of(worths, _with_full_limits(worths, point, sets), p, q))
        ends.append(error_of(worths, ends[1].x, xp.where(sets.full, p, 0.0), xp.where(sets.stopped, q, 0.0)))
        if not ends[2].error <= enough:
            ends.append(error_of(worths, ends[2].x, *_with_worths(worths, ends[2], sets)))
    best: End = min(reversed(ends), key=lambda end: max(end.error, enough))
    return best


class _Sets(NamedTuple):
    """Which pairs are used, (pairs,), which limits full, (slots, servers), and which second rows, (rows,)."""

    used: Any
    full: Any
    stopped: Any


def error_of(worths: Worths, x: Any, p: Any, q: Any = ()) -> End:
    """Return the error of x and prices, with the scaled x."""
    pairs, xp = worths.pairs, worths.pairs.xp
    x = _with_demands(worths, x, p, q)
    fullest = pairs.eligible(pairs.fullest(x), 1.0)
    # Where all users are stopped, a server has room, which is not theirs.
    if worths.log_cap is not None or pairs.n_limited or pairs.system_of_sets:
        fullest = xp.where(fullest > ALPHA_FAIR.nearly_full, fullest, 1.0)
    x = x / fullest
    if worths.log_cap is not None:
        x = x / pairs.spread(xp.clip(pairs.level(x) / xp.exp(worths.log_cap), 1.0, None))
    second = pairs.second_rows(x)
    if pairs.n_limited:
        x, second = x / pairs.spread(pairs.scatter(xp.clip(second, 1.0, None), 1.0)), xp.clip(second, None, 1.0)
    v = pairs.level(x)
    worths = worths.following(v)
    m, missing, stopped = worths.paid(v, p, q)
    worth, cost = pairs.along_levels(m), pairs.priced(p, q)
    beyond = xp.clip(cost - worth, 0.0, None)
    idle = pairs.priced(p * xp.clip(1 - pairs.use(x), 0.0, None), q * (1 - second) if pairs.n_limited else q)
    wasted = pairs.dot_by_user(beyond + idle, x) / worths.at_stake(v, v * m) + missing
    cheap = pairs.eligible(xp.where(worth > 0, 1 - cost / xp.where(worth > 0, worth, 1.0), 0.0))
    error = max(float(xp.max(wasted)), float(xp.max(cheap)))
    if stopped is not None:  # together they may spend more than all others
        others = float(xp.sum(xp.where(stopped, 0.0, pairs.dot_by_user(cost, x))))
        extra = float(xp.sum(xp.where(stopped, pairs.dot_by_user(beyond, x), 0.0)))
        error = max(error, extra / others if others > 0 else 0.0)
    return End(error if np.isfinite(error) else np.inf, x, p, q)


def _with_demands(worths: Worths, x: Any, p: Any, q: Any) -> Any:
    """Return x with the demands of users who are too poor for their share of a limit to matter, each at its cheapest pairs."""
    if worths.alpha >= 1 or worths.has_total:
        return x
    pairs, xp = worths.pairs, worths.pairs.xp
    price = pairs.eligible(pairs.priced(p, q), np.inf) / pairs.eligible(pairs.W, 1.0)
    least = pairs.least_by_user(price)
    demand = xp.exp(worths.demand(least, 0.0)[0])
    here = xp.astype(price <= pairs.spread(least) * (1 + SAME), xp.float64)
    own = here * pairs.spread(demand / pairs.level(here))
    return xp.where(pairs.spread(-pairs.least_by_user(-own)) < ALPHA_FAIR.negligible, own, x)


def _shown(worths: Worths, point: Point, money_of_limits: Any) -> _Sets:
    """Return the active sets: of two relative factors, the larger one counts."""
    pairs = worths.pairs
    x, s, of_rows = pairs.parts(point.primal)
    z, p, prices = pairs.parts(point.dual)
    (v, w), (m, q) = pairs.rows_of(of_rows), pairs.rows_of(prices)
    W, money = pairs.eligible(pairs.W, 1.0), worths.at_stake(v, v * m)
    used = x * W * W * pairs.spread(money) > z * pairs.spread(v * v)
    return _Sets(pairs.eligible(used, False), p > money_of_limits * s, q > pairs.of_limited(money) * w)


def _with_full_limits(worths: Worths, point: Point, sets: _Sets) -> Any:
    """Return the x on the active sets."""
    pairs, xp, used = worths.pairs, worths.pairs.xp, sets.used
    x, s, of_rows = pairs.parts(point.primal)
    _, p, prices = pairs.parts(point.dual)
    x, s, w = xp.where(used, x, 0.0), xp.where(sets.full, 0.0, s), xp.where(sets.stopped, 0.0, pairs.rows_of(of_rows)[1])
    v = pairs.level(x)
    if not worths.has_total:
        v = xp.exp(worths.demand(pairs.cheapest(p, pairs.rows_of(prices)[1]), 0.0)[0])
    weight = pairs.point(x, s, xp.concat([xp.zeros_like(v), w])) ** 2
    missed = xp.concat([v - pairs.level(x), 1 - w - pairs.second_rows(x)])
    lacks = Residuals(1 - pairs.use(x) - s, missed, xp.zeros_like(x), 0.0)
    try:
        dx, _, _ = pairs.parts(_step(worths, weight, lacks)[0])
    except np.linalg.LinAlgError:
        return x
    x = xp.where(used, xp.maximum(x + dx, 0.0), 0.0)
    return x * pairs.spread(v / pairs.level(x))


def _with_worths(worths: Worths, end: End, sets: _Sets) -> tuple[Any, Any]:
    """Return the prices of full limits, and of full second rows, at which used pairs cost what they are worth."""
    pairs, xp = worths.pairs, worths.pairs.xp
    v = pairs.level(end.x)
    m = worths.following(v).paid(v, end.p, end.q)[0]
    of_limits, of_second = (xp.where(full, 0.0, xp.ones_like(price)) for full, price in ((sets.full, end.p), (sets.stopped, end.q)))
    weight = pairs.point(end.x, of_limits, xp.concat([xp.full_like(v, ALPHA_FAIR.held_price), of_second])) ** 2
    costs = pairs.eligible(xp.where(sets.used, pairs.along_levels(m) - pairs.priced(end.p, end.q), 0.0))
    no_row = pairs.arrays.floats(np.zeros(pairs.n_rows))
    try:
        _, dp, of_rows = pairs.parts(_step(worths, weight, Residuals(xp.zeros_like(end.p), no_row, costs, 0.0))[1])
    except np.linalg.LinAlgError:
        return end.p, end.q
    changed = (sets.full, end.p, dp), (sets.stopped, end.q, pairs.rows_of(of_rows)[1])
    p, q = (xp.where(full, xp.clip(price + change, 0.0, None), 0.0) for full, price, change in changed)
    return p, q


def _step(worths: Worths, weight: Any, residuals: Residuals) -> tuple[Any, Any, float]:
    """Return a step of the Newton system with these weights of the primal values."""
    pairs, xp = worths.pairs, worths.pairs.xp
    side = pairs.arrays.floats(np.repeat([1.0, -1.0], [pairs.n_levels, pairs.n_limited]))
    system = (pairs.system_of_sets or NewtonSystem)(pairs, weight, xp.ones_like(weight), side, None)
    step: tuple[Any, Any, float] = system.step(xp.zeros_like(weight), residuals, ALPHA_FAIR.refinements_on_sets)
    return step
