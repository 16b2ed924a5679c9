"""Primal-dual interior point for an alpha-fair program with few limits or few users, on tables of users and servers.

In utilities, v[i,n] what user n gets from server i, and what a unit of it takes of limit r there, Q[r,i,n]:

    maximise  sum_n phi[n] g(t[n])     subject to   t[n] = sum_i v[i,n],    sum_n Q[r,i,n] v[i,n] + s[r,i] = 1,    v, s >= 0.

At prices p[r,i] a unit of utility costs c[i,n] = sum_r Q[r,i,n] p[r,i]. With the marginal worth y[n] = phi[n] t[n]^-alpha of user n, its
money is m = y t; the part w[i,n] = v / t of it comes from server i, at a relative reduced cost z[i,n] = c / y - 1 >= 0. The central path is

    sum_i w[i,n] = 1,      w z = mu,      p s = mu * money (of the users of the limit),      mu -> 0.

So residuals of every user are relative to its own money, however many orders of magnitude lie between users. The variables are w, y, p and
s; c - y is linear in p and y, so prices stay feasible, and t follows y. A step of Newton's method, with q = dp/p, h = dy/y and
beta[r,i,n] = Q p / y,

    dz = sum_r beta q - h,      w dz + z dw = mu - w z,      sum_i dw + h / alpha = 1 - sum_i w,      p s q + p ds = mu - p s,

(dw at the old t) is solved by `fairopt.solvers.alpha_fair.table_kkt`.

A user of many servers spends a small part of its money at each; while w z = mu, prices may be far off where limits are nearly full at
p s = mu * money. A ``balanced`` path keeps them back: p s = mu * money times the servers of a user, a weight that falls to 1 with mu.

A limit on tasks caps t: `fairopt.solvers.alpha_fair.capped_demand` has t(y) and its elasticity there, from 0 to 1 / alpha, in place of
1 / alpha.

For alpha < 1 a price that is wrong by little moves money by orders of magnitude. The path then begins at alpha = 1, and alpha falls step by
step while the iterate follows.

Mehrotra's (1992) predictor and corrector choose mu (centring); a step is shortened where the residuals of limits would become large. Tables
are arrays of the array API standard, users last; what belongs to limits is small and in NumPy.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.alpha_fair.capped_demand import rise_below_caps, rounded_demand
from fairopt.solvers.alpha_fair.table_kkt import Coefficients, KKTSystem, factorise
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["Near", "PathEnd", "walk"]

log = logging.getLogger(__name__)

_STEPS = 120
_END = 1e-13  # mu
_WASTE = 1e-10  # the same over all servers of a user: part of its money that pairs waste
_MISSING = 1e-12  # residual of a limit, or of what a user spends, at the end
_ENOUGH = 1e-10  # error of a point that is taken where rounding lets nothing more be gained
_FALL = 0.8  # factor on alpha in a step on the way from 1
_NEAR = 0.3  # part of the money by which limits may be missed while alpha falls
_FADES = 0.25  # power of mu by which the weight of limits falls to 1
_BOUNDARY = 0.95  # part of the way to the boundary
_CORRECTORS, _LONG_ENOUGH = 3, 0.9  # corrections of products that went astray (Gondzio), of steps that are shorter than this
_AHEAD, _SPREAD = 0.3, 0.1  # how much further than the step goes; a product further off its target than this factor is corrected
_GAIN = 0.02  # what a correction has to add to the length
_LEAST_PART = 0.02  # of a part of a user's money that is left by a step
_SHORTENINGS = 20  # of a step by half
_STALLED = 60  # steps that gain nothing: where capacities span nine orders of magnitude a path may pause for long
_STALLED_NEAR = 12  # the same of a path that is joined on the way
_CENTRINGS, _CENTRED = 12, 1e-3  # of y for given prices: steps, and the part of the money by which parts may be missed where a path begins
_FREE = 1e-6  # mean money of a limit, of about 1 where a path begins, below which it counts as none
_POOREST = 1e-9  # money, relative to the mean, of the poorest user that the price of a limit is measured by
_SHOWS = 1e-7  # mu from which on it shows which limits are full
_SLOWLY = 0.5  # factor by which the measure of a limit may fall in a step


@dataclass(frozen=True, slots=True, eq=False)
class PathEnd:
    """The end of a path: prices of whole limits, (slots, servers), and utilities by server, (servers, users).

    ``log_unit``: of the prices, whose true values are p exp(log_unit). ``error``: the largest of mu and the residual of a limit.
    """

    p: FloatArray
    log_unit: float
    v: Any
    error: float
    steps: int


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Prices near those of the path at ``mu``, in the unit of `PathEnd`: a place to join it."""

    p: FloatArray
    log_unit: float
    mu: float


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What is fixed along a path: the users, numbers of pairs and limits, the weight of limits at mu = 1, and mu at the end."""

    users: UserTables
    n_pairs: float
    n_limits: int
    first_weight: float
    last_mu: float
    all_eligible: bool

    @classmethod
    def of(cls, users: UserTables, balanced: bool) -> _Setting:
        xp = users.arrays.xp
        n_pairs = float(xp.sum(xp.astype(users.may, xp.float64)))
        last_mu = min(_END, _WASTE / users.may.shape[0])
        weight = n_pairs / users.n_users if balanced else 1.0
        return cls(users, n_pairs, int(users.used.sum()), weight, last_mu, bool(xp.all(users.may)))

    def eligible(self, values: Any) -> Any:
        """Return values of pairs, 0 for those that are not eligible."""
        return values if self.all_eligible else self.users.arrays.xp.where(self.users.may, values, 0.0)

    def mean_money(self, weight: float, money: Any) -> float:
        """Return the mean money of a limit; not 0 where all users hold all their tasks, and nothing has a price."""
        return max(weight * float(self.users.arrays.xp.sum(money)) / self.n_limits, _FREE)


@dataclass(frozen=True, slots=True, eq=False)
class _Variables:
    """A point: parts w of the users' money (servers, users), their marginal worth y (users,), prices p and slacks s (slots, servers).

    It belongs to an alpha on the way, and to a unit of money: phi is exp(log_phi), the users' own times exp(log_unit).
    """

    alpha: float
    log_unit: float
    log_phi: Any
    w: Any
    y: Any
    p: FloatArray
    s: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Scaling:
    """Of the products: mu; the width by which kinks of capped demands are rounded; the weight of limits, and the money of each of them."""

    mu: float
    width: float
    weight: float
    money: FloatArray

    @classmethod
    def first(cls, setting: _Setting, money: Any) -> _Scaling:
        """Return that of a point where a path begins, and users have this much money."""
        shape, weight = setting.users.used.shape, setting.first_weight
        return cls(1.0, 1.0, weight, np.full(shape, setting.mean_money(weight, money)))


@dataclass(frozen=True, slots=True, eq=False)
class _Iterate:
    """A point with its products and residuals.

    Attributes
    ----------
    at : _Variables
    scaling : _Scaling
    t, money, elasticity, total : arrays (users,)
        Utilities, money y t, -d log t / d log y, and sum_i w.
    z, pair_products : arrays (servers, users)
        Reduced costs, and w z.
    limit_products, r_limits : arrays (slots, servers)
        p s, and 1 - Q v - s.
    largest_product, largest_residual : float
        Relative.
    missed_money : float
        Part of all spending that residuals of limits are worth.
    """

    at: _Variables
    scaling: _Scaling
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


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """A step: q = dp/p, h = dy/y, and the changes of z, w and s."""

    q: FloatArray
    h: Any
    dz: Any
    dw: Any
    ds: FloatArray


def walk(users: UserTables, deadline: Deadline, near: Near | None = None, enough: float = 0.0, *, balanced: bool = False) -> PathEnd | None:
    """Follow the path, from the beginning or from ``near``, to its end or to where the error is ``enough``; None where it got lost."""
    setting = _Setting.of(users, balanced)
    variables, scaling = _start(setting) if near is None else _join(setting, near)
    best, stalled, least = None, 0, np.inf
    patience = _STALLED if near is None else _STALLED_NEAR
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        now = _measured(setting, variables, scaling)
        arrived = now.at.alpha == users.alpha
        error = max(now.largest_product, now.largest_residual) if arrived else np.inf
        if error <= enough:
            return _end(setting, now, error, step)
        if error < _ENOUGH and (best is None or error < best.error):
            best = _end(setting, now, error, step)
        log.debug("step %d: alpha %g, products %.1e, residuals %.1e", step, now.at.alpha, now.largest_product, now.largest_residual)
        if arrived and now.largest_product <= 3 * setting.last_mu and now.largest_residual <= _MISSING:
            break
        stalled = 0 if now.largest_product < 0.7 * least or not arrived else stalled + 1
        least = min(least, now.largest_product)
        if stalled > patience or not np.isfinite(now.largest_product + now.largest_residual):
            break
        if not arrived and now.missed_money < _NEAR:
            now = _measured(setting, _with_lower_alpha(setting, now), now.scaling)
        try:
            kkt = _kkt(setting, now)  # kept until the next one is there: memory that was given back would have to be fetched again
            variables, scaling = _step(setting, now, kkt), now.scaling
        except np.linalg.LinAlgError:
            break
    return best


# Where a path begins -------------------------------------------------------------------------------------------------------------


def _start(setting: _Setting) -> tuple[_Variables, _Scaling]:
    """Return equal prices of all limits, at which half of them is spent, and everybody's money divided as on the path at mu = 1."""
    users = setting.users
    p = np.where(users.used, 1.0, 0.0)
    w, y = _divided(users, p, 1.0)
    # At mu = 1 a user spends its money once more on every server where it is eligible; half of what there is.
    variables = _Variables(max(users.alpha, 1.0), 0.0, users.log_phi, w, y, p, np.ones(p.shape))
    variables = _in_money(setting, variables, 0.5 * float(p.sum()) / (1 + setting.n_pairs / users.n_users))
    t, _ = _demand(setting, variables, y, 1.0)
    s = np.where(users.used, np.maximum(1 - users.use(w * t), 0.1), 1.0)
    return replace(variables, s=s), _Scaling.first(setting, y * t)


def _join(setting: _Setting, near: Near) -> tuple[_Variables, _Scaling]:
    """Return everybody's money divided as on the path at given prices; residuals of limits are as large as the prices are wrong."""
    users = setting.users
    p, unit = np.where(users.used, near.p, 0.0), -near.log_unit
    w, y = _divided(users, p, near.mu)
    variables = _Variables(users.alpha, unit, users.log_phi + unit, w, y, p, np.ones(p.shape))
    t, _ = _demand(setting, variables, y, 1.0)
    mean = setting.first_weight * float(users.arrays.xp.sum(y * t)) / setting.n_limits
    s = np.where(users.used, near.mu * mean / np.where(users.used, p, 1.0), 1.0)
    return replace(variables, s=s), _Scaling.first(setting, y * t)


def _divided(users: UserTables, p: FloatArray, mu: float) -> tuple[Any, Any]:
    """Return the parts w of everybody's money, and y, as they are on the path at prices p."""
    xp, may, c = users.arrays.xp, users.may, users.cost(p)
    y = _centred(users, c, mu)
    w = xp.where(may, mu / xp.where(may, c / y - 1, 1.0), 0.0)
    return w / xp.sum(w, axis=0), y


def _centred(users: UserTables, c: Any, mu: float) -> Any:
    """Return y at which sum_i mu / (c / y - 1) = 1, by Newton's method for its logarithm."""
    xp, may = users.arrays.xp, users.may
    y = xp.min(c, axis=0) / (1 + mu)
    for _ in range(_CENTRINGS):
        z = xp.where(may, c / y - 1, 1.0)
        part = xp.where(may, mu / z, 0.0)
        total = xp.sum(part, axis=0)
        off = xp.log(total)
        if float(xp.max(xp.abs(off))) < _CENTRED:
            break
        y = y * xp.exp(-off * total / xp.sum(part * (1 + 1 / z), axis=0))
    return y


def _in_money(setting: _Setting, at: _Variables, money: float) -> _Variables:
    """Return a point in the unit of phi in which all users together have this much money."""
    users, xp = setting.users, setting.users.arrays.xp
    log_y = xp.log(at.y)
    log_money = (users.log_phi - log_y) / at.alpha + log_y
    highest = float(xp.max(log_money))
    part = float(np.log(money) - highest - np.log(float(xp.sum(xp.exp(log_money - highest)))))
    if users.log_cap is not None:
        part = rise_below_caps(users.arrays, log_money, users.log_cap + log_y, money, part)
    unit = at.alpha * part
    return replace(at, log_unit=unit, log_phi=users.log_phi + unit)


def _demand(setting: _Setting, at: _Variables, y: Any, width: float) -> tuple[Any, Any]:
    """Return what users get where a unit costs y, and its elasticity, in parts of 1 / alpha."""
    users = setting.users
    return rounded_demand(users.arrays, (at.log_phi - users.arrays.xp.log(y)) / at.alpha, users.log_cap, width)


def _with_lower_alpha(setting: _Setting, now: _Iterate) -> _Variables:
    """Return a point with alpha a step further on its way; parts and the money of all stay."""
    users = setting.users
    alpha = max(users.alpha, _FALL * now.at.alpha)
    return _in_money(setting, replace(now.at, alpha=alpha), float(users.arrays.xp.sum(now.money)))


# Residuals -----------------------------------------------------------------------------------------------------------------------


def _measured(setting: _Setting, at: _Variables, scaling: _Scaling) -> _Iterate:
    """Return a point with its products and residuals; ``scaling`` is that of the iterate before."""
    users, xp = setting.users, setting.users.arrays.xp
    width = min(scaling.width, scaling.mu)
    t, part = _demand(setting, at, at.y, width)
    w, total = at.w, xp.sum(at.w, axis=0)
    if users.log_cap is not None:  # a user at its cap may pay next to nothing, and its parts are rounding: they add up all the same
        w = w / xp.where(part < 0.5, total, 1.0)
        total = xp.sum(w, axis=0)
    money = at.y * t
    z = xp.where(users.may, users.of_prices(at.p) / at.y - 1, 1.0)
    products = w * z
    s, money_of_limits, r_limits = _measured_limits(setting, replace(at, w=w), scaling, t, money)
    limit_products = np.where(users.used, at.p * s, 0.0)
    relative = limit_products / money_of_limits
    mu = max(float(xp.sum(products)) / setting.n_pairs, float(relative.sum()) / setting.n_limits)
    return _Iterate(
        at=replace(at, w=w, s=s),
        scaling=_Scaling(mu, width, max(1.0, setting.first_weight * min(1.0, mu) ** _FADES), money_of_limits),
        t=t,
        money=money,
        elasticity=part / at.alpha,
        total=total,
        z=z,
        pair_products=products,
        limit_products=limit_products,
        r_limits=r_limits,
        largest_product=max(float(xp.max(products)), float(relative.max())),
        # p s is small as soon as p is; of a limit with a price, nothing may be missing.
        largest_residual=max(float(np.abs(r_limits).max()), float(xp.max(xp.abs(total - 1)))),
        missed_money=float((at.p * np.abs(r_limits)).sum() / at.p.sum()),
    )


def _measured_limits(setting: _Setting, at: _Variables, scaling: _Scaling, t: Any, money: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slack, the money by which its product is measured, and the residual of each limit, (slots, servers).

    A price is not small unless it is small for the user with the least money, in proportion to its part of the limit: the measure falls to
    that of the poorest users, step by step. Harmonic means.
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
    harmonic = np.where(full, np.minimum(harmonic, at.p), harmonic)  # or a limit with a low price would end with room left
    arrived = at.alpha == users.alpha
    measure = np.maximum(np.where(used > 0, harmonic, mean), _SLOWLY * scaling.money) if arrived else np.full(used.shape, mean)
    # Users who get all their tasks for next to nothing may have them anywhere: where rounding puts them changes slacks, and no price.
    free = users.used & shows & (at.p < at.s * measure) & (2 * left > at.s)
    s = np.where(free, left, at.s)
    return s, measure, np.where(users.used, left - s, 0.0)


# A step --------------------------------------------------------------------------------------------------------------------------


def _step(setting: _Setting, now: _Iterate, kkt: tuple[Any, KKTSystem]) -> _Variables:
    """Predict, correct, and go as far as all stays positive and residuals of limits stay small."""
    users, xp, at = setting.users, setting.users.arrays.xp, now.at
    kappa, system = kkt
    affine = _direction(setting, now, kappa, system, -now.pair_products, -now.limit_products)
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
    step = _direction(setting, now, kappa, system, pairs, limits)
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
        other = _direction(setting, now, kappa, system, pairs, limits)
        longer = _step_length(setting, now, other)
        if longer < length + _GAIN:
            break
        step, length = other, longer
    return _moved(setting, now, step, _BOUNDARY * length if length < 1 else 1.0)


def _kkt(setting: _Setting, now: _Iterate) -> tuple[Any, KKTSystem]:
    """Return kappa = w / z, and the factorised system of prices and marginal worth."""
    at = now.at
    kappa = setting.eligible(at.w / now.z)
    own = now.total * now.elasticity
    return kappa, factorise(Coefficients.of(setting.users, at.p, at.y, kappa, now.money, own, now.limit_products))


def _direction(setting: _Setting, now: _Iterate, kappa: Any, system: KKTSystem, products: Any, of_limits: FloatArray) -> _Direction:
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
    return _Direction(q, h, dz, dw, ds)


def _step_length(setting: _Setting, now: _Iterate, step: _Direction) -> float:
    """Return how far one can go, 1 at most, before a variable or a reduced cost becomes 0."""
    xp, at = setting.users.arrays.xp, now.at
    steepest = max(
        -float(xp.min(step.dw / (at.w if setting.all_eligible else xp.where(at.w > 0, at.w, 1.0)))),
        -float(xp.min(step.dz / now.z)),
        -float(xp.min(step.h)),
        -float(step.q.min()),
        -float((step.ds / at.s).min()),
    )
    return 1.0 if steepest <= 1 else 1.0 / steepest


def _moved(setting: _Setting, now: _Iterate, step: _Direction, length: float) -> _Variables:
    """Return the point after a step, shortened until what residuals of limits are worth falls, or is little."""
    users, xp, at = setting.users, setting.users.arrays.xp, now.at
    relative = step.dw + at.w * (step.h * now.elasticity)  # of the new t
    for _ in range(_SHORTENINGS):
        y = at.y * (1 + length * step.h)
        w = at.w + length * relative
        w = xp.where(w > _LEAST_PART * at.w, w, _LEAST_PART * at.w)
        t, _ = _demand(setting, at, y, now.scaling.width)
        p, s = at.p * (1 + length * step.q), at.s + length * step.ds
        r_limits = np.where(users.used, 1 - users.use(w * t) - s, 0.0)
        if float((at.p * np.abs(r_limits)).sum() / at.p.sum()) < max(0.2, (1 - 0.3 * length) * now.missed_money):
            break
        length *= 0.5
    return replace(at, w=w, y=y, p=p, s=s)


# The end -------------------------------------------------------------------------------------------------------------------------


def _end(setting: _Setting, now: _Iterate, error: float, steps: int) -> PathEnd:
    """Return an iterate as an end."""
    users, xp, at = setting.users, setting.users.arrays.xp, now.at
    if users.log_cap is None:
        return PathEnd(at.p, -at.log_unit, at.w * now.t, error, steps)
    # At the kink itself, with parts that add up; limits that are not full have no price, though one next to 0 was needed on the way.
    log_t = xp.minimum((at.log_phi - xp.log(at.y)) / at.alpha, users.log_cap)
    p = np.where(at.p > now.scaling.money * at.s, at.p, 0.0)
    return PathEnd(p, -at.log_unit, at.w / now.total * xp.exp(log_t), error, steps)
