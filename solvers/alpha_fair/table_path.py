"""Primal-dual interior point for an alpha-fair program with few limits or few users, on tables of users and servers.

In utilities, v[i,n] what user n gets from server i, and what a unit of it takes of limit r there, Q[r,i,n]:

    maximise  sum_n phi[n] g(t[n])     subject to   t[n] = sum_i v[i,n],    sum_n Q[r,i,n] v[i,n] + s[r,i] = 1,    v, s >= 0.

At prices p[r,i] a unit of utility costs c[i,n] = sum_r Q[r,i,n] p[r,i]. With the marginal worth y[n] = phi[n] t[n]^-alpha of user n, its
money is m = y t; the part w[i,n] = v / t of it comes from server i, at a relative reduced cost z[i,n] = c / y - 1 >= 0. The central path is

    sum_i w[i,n] = 1,      w z = mu,      p s = mu * money (of the users of the limit),      mu -> 0.

So residuals of every user are relative to its own money, however many orders of magnitude lie between users. The variables are w, y, p and
s; c - y is linear in p and y, so prices stay feasible, and t follows y.

A limit on tasks caps t: `fairopt.solvers.alpha_fair.capped_demand` has t(y) and its elasticity there, from 0 to 1 / alpha, in place of
1 / alpha.

Tables are arrays of the array API standard, with users on the last axis; arrays of limits are small, and in NumPy.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.alpha_fair.table_iterate import Iterate, Setting, measured
from fairopt.solvers.alpha_fair.table_start import Near, join, start, with_lower_alpha
from fairopt.solvers.alpha_fair.table_step import newton_system, step_ahead
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["PathEnd", "walk"]

log = logging.getLogger(__name__)

_STEPS = 120
_MISSING = 1e-12  # residual of a limit, or of what a user spends, at the end
_ENOUGH = 1e-10  # error of a point that is taken where rounding lets nothing more be gained
_NEAR = 0.3  # part of the money by which limits may be missed while alpha falls
_STALLED = 60  # steps that gain nothing: where capacities span nine orders of magnitude a path may pause for long
_STALLED_NEAR = 12  # the same of a path that is joined on the way


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


def walk(users: UserTables, deadline: Deadline, near: Near | None = None, enough: float = 0.0, *, balanced: bool = False) -> PathEnd | None:
    """Follow the path, from the beginning or from ``near``, to its end or to where the error is ``enough``; None where it got lost."""
    setting = Setting.of(users, balanced)
    variables, scaling = start(setting) if near is None else join(setting, near)
    best, stalled, least = None, 0, np.inf
    patience = _STALLED if near is None else _STALLED_NEAR
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        now = measured(setting, variables, scaling)
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
            now = measured(setting, with_lower_alpha(setting, now), now.scaling)
        try:
            kkt = newton_system(setting, now)  # kept until the next one exists, so that its memory can be reused
            variables, scaling = step_ahead(setting, now, kkt), now.scaling
        except np.linalg.LinAlgError:
            break
    return best


def _end(setting: Setting, now: Iterate, error: float, steps: int) -> PathEnd:
    """Return an iterate as an end."""
    users, xp, at = setting.users, setting.users.arrays.xp, now.at
    log_t = (at.log_phi - users.of_users(xp.log(at.y))) / at.alpha
    if users.log_cap is None:
        return PathEnd(at.p, -at.log_unit, users.of_users(at.w) * xp.exp(log_t), error, steps)
    # At the kink itself, with parts that add up; limits that are not full have no price, though one next to 0 was needed on the way.
    p = np.where(at.p > now.scaling.money * at.s, at.p, 0.0)
    return PathEnd(p, -at.log_unit, users.of_users(at.w / now.total) * xp.exp(xp.minimum(log_t, users.log_cap)), error, steps)
