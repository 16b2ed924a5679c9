"""Primal-dual path of an alpha-fair program with few limits or few users, on tables of users and servers.

In utilities, v[i,n] what user n gets from server i, and what a unit of it takes of limit r there, Q[r,i,n]:

    maximise  sum_n phi[n] g(t[n])     subject to   t[n] = sum_i v[i,n],    sum_n Q[r,i,n] v[i,n] + s[r,i] = 1,    v, s >= 0.

At prices p[r,i] a unit of utility costs c[i,n] = sum_r Q[r,i,n] p[r,i]. With y[n] = phi[n] t[n]^-alpha, what a unit is worth to user n, its
money is m = y t; part w[i,n] = v / t of it comes from server i, at a reduced cost z[i,n] = c / y - 1 >= 0, relative as well. The path is

    sum_i w[i,n] = 1,      w z = mu,      p s = mu * money (of the users of the limit),      mu -> 0.

So every user is measured by its own money, however many orders of magnitude lie between them. Unknown are w, y, p and s; c - y is linear
in p and y, so prices stay feasible, and t follows y. A step of Newton's method, with q = dp/p, h = dy/y, beta[r,i,n] = Q p / y,

    dz = sum_r beta q - h,      w dz + z dw = mu - w z,      sum_i dw + h / alpha = 1 - sum_i w,      p s q + p ds = mu - p s,

(dw at the old t) is solved by ``alpha_fair_newton``.

A user of many servers has a small part of its money at each, and while w z = mu prices may be far off where limits are nearly full at
p s = mu * money. A ``balanced`` path keeps them back: p s = mu * money times the servers of a user, a weight that fades with mu.

A limit on tasks caps t: ``capped_demand`` has t(y) and its elasticity e there, from 0 to 1 / alpha, which is a' then.

For alpha < 1 a price that is wrong by little moves money by orders of magnitude. The path then begins at alpha = 1, and alpha falls a
step at a time while the point follows.

Mehrotra's (1992) predictor and corrector choose mu; a step is shortened where the limits would be missed by much. Tables are arrays of the
array API standard, users last; what belongs to limits is small and in NumPy.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.alpha_fair.capped_demand import rise_below_caps, rounded_demand
from fairopt.solvers.alpha_fair.table_newton import newton_system
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["Near", "PathEnd", "walk"]

log = logging.getLogger(__name__)

_STEPS = 120
_END = 1e-13  # mu
_WASTE = 1e-10  # the same over all servers of a user: part of its money that pairs waste
_MISSING = 1e-12  # part of a limit, or of what a user spends, that may be missing
_ENOUGH = 1e-10  # the same of a point that is taken where rounding lets nothing more be gained
_FALL = 0.8  # of alpha in a step on the way from 1
_NEAR = 0.3  # part of the money by which limits may be missed while alpha falls
_FADES = 0.25  # power of mu by which the weight of limits falls to 1
_BOUNDARY = 0.95  # part of the way to the boundary
_LEAST_PART = 0.02  # what is left of a share of a user's money in one step at least
_STALLED = 60  # steps that gain nothing: on capacities over nine orders a path may rest for long
_STALLED_NEAR = 12  # the same of a path that is joined on the way
_CENTRED = 1e-3  # part of the money by which shares may be missed where a path begins
_FREE = 1e-6  # mean money of a limit, of about 1 where a path begins, below which it counts as none
_POOREST = 1e-9  # money, relative to the mean, of the poorest user that the price of a limit is measured by
_SHOWS = 1e-7  # mu from which on it shows which limits are full
_SLOWLY = 0.5  # part of its measure that is left in a step at least
_REGULAR = 1e-14  # of the unit diagonal
_MOST_RAISES = 5


@dataclass(frozen=True, slots=True, eq=False)
class PathEnd:
    """The end of a path: prices of whole limits, (slots, servers), and utilities by server, (servers, users).

    ``log_unit``: of the prices, whose true values are p exp(log_unit). ``error``: the largest of mu and what is missing of a limit.
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


def walk(users: UserTables, deadline: Deadline, near: Near | None = None, enough: float = 0.0, *, balanced: bool = False) -> PathEnd | None:
    """Follow the path, from the beginning or from ``near``, to its end or to where the error is ``enough``; None where it got lost."""
    path = _Path(users, near, balanced)
    best, since, least = None, 0, np.inf
    patience = _STALLED if near is None else _STALLED_NEAR
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        path.measure()
        error = max(path.worst, path.missing) if path.alpha == users.alpha else np.inf
        if error <= enough:
            return path.end(error, step)
        if error < _ENOUGH and (best is None or error < best.error):
            best = path.end(error, step)
        log.debug("step %d: alpha %g, products %.1e, missing %.1e", step, path.alpha, path.worst, path.missing)
        if error < np.inf and path.worst <= 3 * path.last_mu and path.missing <= _MISSING:
            break
        since = 0 if path.worst < 0.7 * least or path.alpha > users.alpha else since + 1
        least = min(least, path.worst)
        if since > patience or not np.isfinite(path.worst + path.missing):
            break
        if path.alpha > users.alpha and path.missed_money < _NEAR:
            path.lower_alpha()
            path.measure()
        try:
            path.step()
        except np.linalg.LinAlgError:
            break
    return best


class _Path:
    """A point on the way, and the step from there."""

    short: FloatArray  # what is missing of each limit
    per_limit: FloatArray  # the money by which its product is measured

    def __init__(self, users: UserTables, near: Near | None = None, balanced: bool = False) -> None:
        self.users, self.xp = users, users.arrays.xp
        self.alpha = max(users.alpha, 1.0)
        self.unit = 0.0  # logarithm by which phi was scaled
        self.mu = self.width = 1.0  # width: by which the kinks of capped demands are rounded off
        self.n_pairs = float(self.xp.sum(self._ones(users.may)))
        self.n_limits = int(users.used.sum())
        self.many = self.n_pairs / users.n_users if balanced else 1.0
        self.weight = self.many  # of the products of limits
        self.last_mu = min(_END, _WASTE / users.may.shape[0])
        self.all_eligible = bool(self.xp.all(users.may))
        if near is None:
            self._start()
        else:
            self._join(near)

    def _eligible(self, values: Any) -> Any:
        return values if self.all_eligible else self.xp.where(self.users.may, values, 0.0)

    def _ones(self, mask: Any) -> Any:
        return self.xp.astype(mask, self.xp.float64)

    def _start(self) -> None:
        """Equal prices of all limits, at which half of them is spent; everybody's money divided as on the path at mu = 1."""
        users = self.users
        self.p = p = np.where(users.used, 1.0, 0.0)
        self._divide(1.0)
        # At mu = 1 a user spends its money once more on every server where it may be; half of what there is.
        self._rescale(0.5 * float(p.sum()) / (1 + self.n_pairs / users.n_users))
        use = users.use(self.w * self.t)
        self.s = np.where(users.used, np.maximum(1 - use, 0.1), 1.0)

    def _join(self, near: Near) -> None:
        """Everybody's money divided as on the path at these prices; limits are missed by as much as the prices are wrong."""
        users, xp = self.users, self.xp
        self.alpha, self.unit, self.p = users.alpha, -near.log_unit, np.where(users.used, near.p, 0.0)
        self._divide(near.mu)
        self.log_phi = users.log_phi + self.unit
        self.t, _ = self._demand(self.y)
        mean = self.weight * float(xp.sum(self.y * self.t)) / self.n_limits
        self.s = np.where(users.used, near.mu * mean / np.where(users.used, self.p, 1.0), 1.0)

    def _divide(self, mu: float) -> None:
        """Set what a unit is worth to everybody, and the shares w of their money, as they are on the path at prices p."""
        xp, may, c = self.xp, self.users.may, self.users.cost(self.p)
        self.y = self._centre(c, mu)
        w = xp.where(may, mu / xp.where(may, c / self.y - 1, 1.0), 0.0)
        self.w = w / xp.sum(w, axis=0)

    def _centre(self, c: Any, mu: float) -> Any:
        """Return y at which sum_i mu / (c / y - 1) = 1, by Newton's method for its logarithm."""
        xp, may = self.xp, self.users.may
        y = xp.min(c, axis=0) / (1 + mu)
        for _ in range(12):
            z = xp.where(may, c / y - 1, 1.0)
            part = xp.where(may, mu / z, 0.0)
            total = xp.sum(part, axis=0)
            off = xp.log(total)
            if float(xp.max(xp.abs(off))) < _CENTRED:
                break
            y = y * xp.exp(-off * total / xp.sum(part * (1 + 1 / z), axis=0))
        return y

    def _rescale(self, money: float) -> None:
        """Choose the unit of phi so that all users together have this much money, and set t."""
        xp, cap = self.xp, self.users.log_cap
        log_y = xp.log(self.y)
        log_money = (self.users.log_phi - log_y) / self.alpha + log_y
        highest = float(xp.max(log_money))
        part = float(np.log(money) - highest - np.log(float(xp.sum(xp.exp(log_money - highest)))))
        if cap is not None:
            part = rise_below_caps(self.users.arrays, log_money, cap + log_y, money, part)
        self.unit = self.alpha * part
        self.log_phi = self.users.log_phi + self.unit
        self.t, _ = self._demand(self.y)

    def _demand(self, y: Any) -> tuple[Any, Any]:
        """Return what users get where a unit costs y, and its elasticity, in parts of 1 / alpha."""
        return rounded_demand(self.users.arrays, (self.log_phi - self.xp.log(y)) / self.alpha, self.users.log_cap, self.width)

    def lower_alpha(self) -> None:
        """Take alpha a step on; shares and the money of all stay."""
        money = float(self.xp.sum(self.y * self.t))
        self.alpha = max(self.users.alpha, _FALL * self.alpha)
        self._rescale(money)

    def measure(self) -> None:
        """Set what the point lacks."""
        users, xp = self.users, self.xp
        self.width = min(self.width, self.mu)
        self.t, give = self._demand(self.y)
        self.give = give / self.alpha
        self.total = xp.sum(self.w, axis=0)
        if users.log_cap is not None:  # who is stopped may pay next to nothing, and rounding makes its shares: they add up all the same
            self.w = self.w / xp.where(give < 0.5, self.total, 1.0)
            self.total = xp.sum(self.w, axis=0)
        w = self.w
        self.money = self.y * self.t
        self.cost = users.of_prices(self.p)
        self.z = xp.where(users.may, self.cost / self.y - 1, 1.0)
        self.product = w * self.z
        self._measure_limits()
        self.of_limits = np.where(users.used, self.p * self.s, 0.0)
        relative = self.of_limits / self.per_limit
        self.mu = max(float(xp.sum(self.product)) / self.n_pairs, float(relative.sum()) / self.n_limits)
        self.weight = max(1.0, self.many * min(1.0, self.mu) ** _FADES)
        self.worst = max(float(xp.max(self.product)), float(relative.max()))
        self.missed_money = float((self.p * np.abs(self.short)).sum() / self.p.sum())
        # p s is small as soon as p is; of a limit with a price, nothing may be missing.
        self.missing = max(float(np.abs(self.short).max()), float(xp.max(xp.abs(self.total - 1))))

    def _measure_limits(self) -> None:
        """Set the money by which each limit's product is measured, (slots, servers): down to that of its poorest users, step by step.

        A price is no small matter while it is not small for the user with the least money for its part of the limit. Harmonic means.
        """
        users, xp = self.users, self.xp
        # Where all have all their tasks, nothing has a price.
        mean = max(self.weight * float(xp.sum(self.money)) / self.n_limits, _FREE)
        v = self.w * self.t
        parts = [users.take[r, :, :] * v for r in range(users.take.shape[0])]
        used = np.stack([users.arrays.numpy(xp.sum(part, axis=1)) for part in parts])
        per_money = np.stack([users.arrays.numpy(xp.sum(part * part / self.money, axis=1)) for part in parts])
        left = 1 - used
        harmonic = np.clip(self.weight * used / np.where(per_money > 0, per_money, 1.0), _POOREST * mean, mean)
        before = getattr(self, "per_limit", np.full(used.shape, mean))
        shows = self.mu < _SHOWS
        full = shows & (self.p > self.s * harmonic)
        harmonic = np.where(full, np.minimum(harmonic, self.p), harmonic)  # or a cheap one would end with room left
        self.per_limit = np.maximum(np.where(used > 0, harmonic, mean), _SLOWLY * before) if self.alpha == users.alpha else mean + 0 * used
        # Who gets all its tasks for next to nothing may have them anywhere: where rounding puts them changes what is left, and no price.
        free = users.used & shows & (self.p < self.s * self.per_limit) & (2 * left > self.s)
        self.s = np.where(free, left, self.s)
        self.short = np.where(users.used, left - self.s, 0.0)

    # A step --------------------------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Predict, correct, and go as far as all stays positive and the limits are not missed by much."""
        users, xp = self.users, self.xp
        self._factorise()
        dp, h, dz, dw, ds = self._solve(-self.product, -self.of_limits)
        length = self._length(dp, h, dz, dw, ds)
        ahead = max(
            float(xp.sum(xp.where(users.may, (self.w + length * dw) * (self.z + length * dz), 0.0))) / self.n_pairs,
            float(((self.p * (1 + length * dp)) * (self.s + length * ds) / self.per_limit)[users.used].sum()) / self.n_limits,
        )
        falls = min(1.0, (ahead / self.mu) ** 2)
        if self.alpha > users.alpha:  # stay away from the boundary until alpha has arrived
            falls = max(falls, 0.5) if self.mu > 0.1 else 1.0
        aim = min(max(falls * self.mu, self.last_mu), 1.0)  # limits that nobody can fill may be far from it: the others need not follow
        bend = xp.where(dw * dz > -10 * aim, dw * dz, -10 * aim)
        limits = np.where(users.used, aim * self.per_limit - self.of_limits - self.p * dp * ds, 0.0)
        dp, h, dz, dw, ds = self._solve(self._eligible(aim - self.product - bend), limits)
        length = self._length(dp, h, dz, dw, ds)
        self._go(_BOUNDARY * length if length < 1 else 1.0, dp, h, dw, ds)

    def _go(self, length: float, dp: FloatArray, h: Any, dw: Any, ds: FloatArray) -> None:
        xp, used = self.xp, self.users.used
        relative = dw + self.w * (h * self.give)  # of the new t
        for _ in range(20):
            y = self.y * (1 + length * h)
            w = self.w + length * relative
            w = xp.where(w > _LEAST_PART * self.w, w, _LEAST_PART * self.w)
            t, _ = self._demand(y)
            p, s = self.p * (1 + length * dp), self.s + length * ds
            short = np.where(used, 1 - self.users.use(w * t) - s, 0.0)
            if float((self.p * np.abs(short)).sum() / self.p.sum()) < max(0.2, (1 - 0.3 * length) * self.missed_money):
                break
            length *= 0.5
        self.y, self.w, self.t, self.p, self.s = y, w, t, p, s

    def _factorise(self) -> None:
        """Factorise the system of prices and of what a unit is worth to users."""
        self.kappa = self._eligible(self.w / self.z)
        self.system = newton_system(self.users, self.p, self.y, self.kappa, self.money, self.total * self.give, self.of_limits)

    def _solve(self, products: Any, of_limits: FloatArray) -> tuple[FloatArray, Any, Any, Any, FloatArray]:
        """Return q = dp/p, h = dy/y, dz, dw and ds for wanted changes of w z and p s."""
        xp = self.xp
        missing, limits = -xp.log(self.total) * self.total, of_limits - self.p * self.short
        dw = self._eligible(products / self.z)
        q, h, dearer = self.system.solve(dw, missing, limits)
        dz = self._eligible(dearer - h)
        dw = dw - self.kappa * dz
        for _ in range(self.system.refinements):  # what the step misses, solved for once more
            more_q, more_h, dearer = self.system.solve(dw, missing - self.total * self.give * h, limits - self.of_limits * q)
            more = self._eligible(dearer - more_h)
            q, h, dz, dw = q + more_q, h + more_h, dz + more, dw - self.kappa * more
        ds = np.where(self.users.used, (of_limits - self.of_limits * q) / np.where(self.users.used, self.p, 1.0), 0.0)
        return q, h, dz, dw, ds

    def _length(self, dp: FloatArray, h: Any, dz: Any, dw: Any, ds: FloatArray) -> float:
        """Return how far one can go, 1 at most, before something becomes 0."""
        xp = self.xp
        steepest = max(
            -float(xp.min(dw / (self.w if self.all_eligible else xp.where(self.w > 0, self.w, 1.0)))),
            -float(xp.min(dz / self.z)),
            -float(xp.min(h)),
            -float(dp.min()),
            -float((ds / self.s).min()),
        )
        return 1.0 if steepest <= 1 else 1.0 / steepest

    def end(self, error: float, steps: int) -> PathEnd:
        """Return the point."""
        if self.users.log_cap is None:
            return PathEnd(self.p, -self.unit, self.w * self.t, error, steps)
        # At the kink itself, with shares that add up; limits that are not full have no price, though one next to 0 was needed on the way.
        xp = self.xp
        log_t = xp.minimum((self.log_phi - xp.log(self.y)) / self.alpha, self.users.log_cap)
        p = np.where(self.p > self.per_limit * self.s, self.p, 0.0)
        return PathEnd(p, -self.unit, self.w / self.total * xp.exp(log_t), error, steps)
