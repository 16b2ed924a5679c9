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
    """An error, and the x and prices of limits that have it."""

    error: float
    x: Any
    p: Any


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
    _, p, _ = pairs.parts(point.dual)
    ends = [error_of(worths, x, p)]
    if ends[0].error < ALPHA_FAIR.sets_show_below:
        used, full = _shown(worths, point, money_of_limits)
        ends.append(error_of(worths, _with_full_limits(worths, point, used, full), p))
        ends.append(error_of(worths, ends[1].x, xp.where(full, p, 0.0)))
        if not ends[2].error <= enough:
            ends.append(error_of(worths, ends[2].x, _with_worths(worths, ends[2], used, full)))
    best: End = min(reversed(ends), key=lambda end: max(end.error, enough))
    return best


def error_of(worths: Worths, x: Any, p: Any) -> End:
    """Return the error of x and prices, with the scaled x."""
    pairs, xp = worths.pairs, worths.pairs.xp
    x = _with_demands(worths, x, p)
    fullest = pairs.eligible(pairs.fullest(x), 1.0)
    if worths.log_cap is not None or pairs.system_of_sets:  # where all users are stopped, a server has room, which is not theirs
        fullest = xp.where(fullest > ALPHA_FAIR.nearly_full, fullest, 1.0)
    x = x / fullest
    if worths.log_cap is not None:
        x = x / pairs.spread(xp.clip(pairs.rows(x) / xp.exp(worths.log_cap), 1.0, None))
    v = pairs.rows(x)
    m, missing, stopped = worths.paid(v, p)
    worth, cost = pairs.along_rows(m), pairs.cost(p)
    beyond = xp.clip(cost - worth, 0.0, None)
    idle = pairs.cost(p * xp.clip(1 - pairs.use(x), 0.0, None))
    wasted = pairs.dot_by_user(beyond + idle, x) / worths.at_stake(v, v * m) + missing
    cheap = pairs.eligible(xp.where(worth > 0, 1 - cost / xp.where(worth > 0, worth, 1.0), 0.0))
    error = max(float(xp.max(wasted)), float(xp.max(cheap)))
    if stopped is not None:  # together they may spend more than all others
        others = float(xp.sum(xp.where(stopped, 0.0, pairs.dot_by_user(cost, x))))
        extra = float(xp.sum(xp.where(stopped, pairs.dot_by_user(beyond, x), 0.0)))
        error = max(error, extra / others if others > 0 else 0.0)
    return End(error if np.isfinite(error) else np.inf, x, p)


def _with_demands(worths: Worths, x: Any, p: Any) -> Any:
    """Return x with the demands of users who are too poor for their share of a limit to matter, each at its cheapest pairs."""
    if worths.alpha >= 1 or worths.log_total is not None:
        return x
    pairs, xp = worths.pairs, worths.pairs.xp
    price = pairs.eligible(pairs.cost(p), np.inf) / pairs.eligible(pairs.W, 1.0)
    least = pairs.least_by_user(price)
    demand = xp.exp(worths.demand(least, 0.0)[0])
    here = xp.astype(price <= pairs.spread(least) * (1 + SAME), xp.float64)
    own = here * pairs.spread(demand / pairs.rows(here))
    return xp.where(pairs.spread(-pairs.least_by_user(-own)) < ALPHA_FAIR.negligible, own, x)


def _shown(worths: Worths, point: Point, money_of_limits: Any) -> tuple[Any, Any]:
    """Return which pairs are used, (pairs,), and which limits full, (slots, servers): of two relative factors, the larger one counts."""
    pairs = worths.pairs
    x, s, v = pairs.parts(point.primal)
    z, p, m = pairs.parts(point.dual)
    W = pairs.eligible(pairs.W, 1.0)
    used = x * W * W * pairs.spread(worths.at_stake(v, v * m)) > z * pairs.spread(v * v)
    return pairs.eligible(used, False), p > money_of_limits * s


def _with_full_limits(worths: Worths, point: Point, used: Any, full: Any) -> Any:
    """Return the x on the active sets."""
    pairs, xp = worths.pairs, worths.pairs.xp
    x, s, _ = pairs.parts(point.primal)
    _, p, _ = pairs.parts(point.dual)
    x, s = xp.where(used, x, 0.0), xp.where(full, 0.0, s)
    v = pairs.rows(x)
    if worths.log_total is None:
        v = xp.exp(worths.demand(pairs.cheapest(p, pairs.arrays.floats([])), 0.0)[0])
    weight = pairs.point(x, s, xp.zeros_like(v)) ** 2
    lacks = Residuals(1 - pairs.use(x) - s, v - pairs.rows(x), xp.zeros_like(x), 0.0)
    try:
        dx, _, _ = pairs.parts(_step(worths, weight, lacks)[0])
    except np.linalg.LinAlgError:
        return x
    x = xp.where(used, xp.maximum(x + dx, 0.0), 0.0)
    return x * pairs.spread(v / pairs.rows(x))


def _with_worths(worths: Worths, end: End, used: Any, full: Any) -> Any:
    """Return the prices of full limits at which used pairs cost what they are worth."""
    pairs, xp = worths.pairs, worths.pairs.xp
    v = pairs.rows(end.x)
    m = worths.paid(v, end.p)[0]
    weight = pairs.point(end.x, xp.where(full, 0.0, xp.ones_like(end.p)), xp.full_like(v, ALPHA_FAIR.held_price)) ** 2
    costs = pairs.eligible(xp.where(used, pairs.along_rows(m) - pairs.cost(end.p), 0.0))
    try:
        _, dp, _ = pairs.parts(_step(worths, weight, Residuals(xp.zeros_like(end.p), xp.zeros_like(v), costs, 0.0))[1])
    except np.linalg.LinAlgError:
        return end.p
    return xp.where(full, xp.clip(end.p + dp, 0.0, None), 0.0)


def _step(worths: Worths, weight: Any, residuals: Residuals) -> tuple[Any, Any, float]:
    """Return a step of the Newton system with these weights of the primal values."""
    pairs, xp = worths.pairs, worths.pairs.xp
    system = (pairs.system_of_sets or NewtonSystem)(pairs, weight, xp.ones_like(weight), pairs.arrays.floats(np.ones(pairs.n_rows)), None)
    step: tuple[Any, Any, float] = system.step(xp.zeros_like(weight), residuals, ALPHA_FAIR.refinements_on_sets)
    return step
