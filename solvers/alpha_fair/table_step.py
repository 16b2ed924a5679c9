"""A step along the path of `fairopt.solvers.alpha_fair.table_path`: Newton's direction, a predictor and correctors, and a length.

A Newton step, with q = dp/p, h = dy/y and beta[r,i,n] = Q p / y,

    dz = sum_r beta q - h,      w dz + z dw = mu - w z,      sum_i dw + h / alpha = 1 - sum_i w,      p s q + p ds = mu - p s,

(dw at the old t) is solved by `fairopt.solvers.alpha_fair.table_kkt`.

Mehrotra's (1992) predictor and corrector choose mu (centring); a step is shortened if the residuals of limits would become large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.alpha_fair.table_iterate import Iterate, Setting, Variables, demand
from fairopt.solvers.alpha_fair.table_kkt import Coefficients, KKTSystem, factorise

__all__ = ["Direction", "direction", "newton_system", "step_ahead"]

_BOUNDARY = 0.95  # part of the way to the boundary
_CORRECTORS, _LONG_ENOUGH = 3, 0.9  # corrections of products off their target (Gondzio), for steps shorter than this
_AHEAD, _SPREAD = 0.3, 0.1  # corrections look this much further than the step, and correct products off by more than this factor
_GAIN = 0.02  # length that a correction must add
_LEAST_PART = 0.02  # a step leaves at least this part of each w
_SHORTENINGS = 20  # halvings of a step at most


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """A step: q = dp/p, h = dy/y, and the changes of z, w and s."""

    q: FloatArray
    h: Any
    dz: Any
    dw: Any
    ds: FloatArray


def step_ahead(setting: Setting, now: Iterate, kkt: tuple[Any, KKTSystem]) -> Variables:
    """Predict, correct, and step as far as all values stay positive and residuals of limits stay small."""
    users, xp, at = setting.users, setting.users.arrays.xp, now.at
    kappa, system = kkt
    affine = direction(setting, now, kappa, system, -now.pair_products, -now.limit_products)
    length = _step_length(setting, now, affine)
    # Centring.
    pairs_ahead = xp.where(users.may, (at.w + length * affine.dw) * (now.z + length * affine.dz), 0.0)
    limits_ahead = at.p * (1 + length * affine.q) * (at.s + length * affine.ds) / now.scaling.money
    ahead = max(float(xp.sum(pairs_ahead)) / setting.n_pairs, float(limits_ahead[users.used].sum()) / setting.n_limits)
    falls = min(1.0, (ahead / now.scaling.mu) ** 2)
    if at.alpha > users.alpha:  # stay away from the boundary until alpha has arrived
        falls = max(falls, 0.5) if now.scaling.mu > 0.1 else 1.0
    # At most 1: limits that cannot fill may be far from it, and the others need not follow.
    aim = min(max(falls * now.scaling.mu, setting.last_mu), 1.0)
    bend = xp.where(affine.dw * affine.dz > -10 * aim, affine.dw * affine.dz, -10 * aim)
    limits = np.where(users.used, aim * now.scaling.money - now.limit_products - at.p * affine.q * affine.ds, 0.0)
    pairs = setting.eligible(aim - now.pair_products - bend)
    step = direction(setting, now, kappa, system, pairs, limits)
    length = _step_length(setting, now, step)
    for _ in range(_CORRECTORS):
        if length >= _LONG_ENOUGH:
            break
        far = min(1.0, length + _AHEAD)
        ahead_of_pairs = (at.w + far * step.dw) * (now.z + far * step.dz)
        ahead_of_limits = at.p * (1 + far * step.q) * (at.s + far * step.ds) / now.scaling.money
        low, high = _SPREAD * aim, aim / _SPREAD
        pairs = pairs + setting.eligible(xp.clip(ahead_of_pairs, low, high) - xp.clip(ahead_of_pairs, None, 2 * high))
        off = np.clip(ahead_of_limits, low, high) - np.clip(ahead_of_limits, None, 2 * high)
        limits = limits + np.where(users.used, off * now.scaling.money, 0.0)
        other = direction(setting, now, kappa, system, pairs, limits)
        longer = _step_length(setting, now, other)
        if longer < length + _GAIN:
            break
        step, length = other, longer
    return _moved(setting, now, step, _BOUNDARY * length if length < 1 else 1.0)


def newton_system(setting: Setting, now: Iterate) -> tuple[Any, KKTSystem]:
    """Return kappa = w / z, and the factorised system of prices and marginal worth."""
    at = now.at
    kappa = setting.eligible(at.w / now.z)
    own = now.total * now.elasticity
    return kappa, factorise(Coefficients.of(setting.users, at.p, at.y, kappa, now.money, own, now.limit_products))


def direction(setting: Setting, now: Iterate, kappa: Any, system: KKTSystem, products: Any, of_limits: FloatArray) -> Direction:
    """Return the step for wanted changes of w z and p s."""
    users, xp, at = setting.users, setting.users.arrays.xp, now.at
    own = now.total * now.elasticity
    missing, limits = -xp.log(now.total) * now.total, of_limits - at.p * now.r_limits
    dw = setting.eligible(products / now.z)
    q, h, costs = system.solve(dw, missing, limits)
    dz = setting.eligible(costs - h)
    dw = dw - kappa * dz
    for _ in range(system.refinements):
        more_q, more_h, costs = system.solve(dw, missing - own * h, limits - now.limit_products * q)
        more = setting.eligible(costs - more_h)
        q, h, dz, dw = q + more_q, h + more_h, dz + more, dw - kappa * more
    ds = np.where(users.used, (of_limits - now.limit_products * q) / np.where(users.used, at.p, 1.0), 0.0)
    return Direction(q, h, dz, dw, ds)


def _step_length(setting: Setting, now: Iterate, step: Direction) -> float:
    """Return the largest length, at most 1, before a variable or a reduced cost becomes 0."""
    xp, at = setting.users.arrays.xp, now.at
    steepest = max(
        -float(xp.min(step.dw / (at.w if setting.all_eligible else xp.where(at.w > 0, at.w, 1.0)))),
        -float(xp.min(step.dz / now.z)),
        -float(xp.min(step.h)),
        -float(step.q.min()),
        -float((step.ds / at.s).min()),
    )
    return 1.0 if steepest <= 1 else 1.0 / steepest


def _moved(setting: Setting, now: Iterate, step: Direction, length: float) -> Variables:
    """Return the point after a step, shortened until the residuals of limits, at their prices, decrease or are small."""
    users, xp, at = setting.users, setting.users.arrays.xp, now.at
    relative = step.dw + at.w * (step.h * now.elasticity)  # of the new t
    for _ in range(_SHORTENINGS):
        y = at.y * (1 + length * step.h)
        w = at.w + length * relative
        w = xp.where(w > _LEAST_PART * at.w, w, _LEAST_PART * at.w)
        t, _ = demand(setting, at, y, now.scaling.width)
        p, s = at.p * (1 + length * step.q), at.s + length * step.ds
        r_limits = np.where(users.used, 1 - users.use(w * t) - s, 0.0)
        if float((at.p * np.abs(r_limits)).sum() / at.p.sum()) < max(0.2, (1 - 0.3 * length) * now.missed_money):
            break
        length *= 0.5
    return replace(at, w=w, y=y, p=p, s=s)
