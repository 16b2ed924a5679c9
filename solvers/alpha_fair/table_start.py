"""The start of the path of `fairopt.solvers.alpha_fair.table_path`: equal prices, or prices near those of a later point.

For alpha < 1, a small error of a price moves money by orders of magnitude. The path then begins at alpha = 1, and alpha falls step by step
while the iterate follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.alpha_fair.capped_demand import rise_below_caps
from fairopt.solvers.alpha_fair.table_iterate import Iterate, Scaling, Setting, Variables, demand
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["Near", "join", "start", "with_lower_alpha"]

_FALL = 0.8  # factor on alpha in each step on the way from 1
_CENTRINGS, _CENTRED = 12, 1e-3  # steps for y at given prices, and the relative error of y at which they end


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Prices near those of the path at ``mu``, from which to join it; their unit is that of the prices at the end of a path."""

    p: FloatArray
    log_unit: float
    mu: float


def start(setting: Setting) -> tuple[Variables, Scaling]:
    """Return equal prices of all limits, at which half of all limits is bought, with money divided as on the path at mu = 1."""
    users = setting.users
    p = np.where(users.used, 1.0, 0.0)
    w, y = _divided(users, p, 1.0)
    # At mu = 1, a user pays its money once, and once more for every server where it is eligible: together half of all limits.
    variables = Variables(max(users.alpha, 1.0), 0.0, users.log_phi, w, y, p, np.ones(p.shape))
    variables = in_money(setting, variables, 0.5 * float(p.sum()) / (1 + setting.n_pairs / users.n_columns))
    t, _ = demand(setting, variables, y, 1.0)
    s = np.where(users.used, np.maximum(1 - users.use(w * t), 0.1), 1.0)
    return replace(variables, s=s), Scaling.first(setting, y * t)


def join(setting: Setting, near: Near) -> tuple[Variables, Scaling]:
    """Return the given prices, with money divided as on the path at these prices; limits then have residuals."""
    users = setting.users
    p, unit = np.where(users.used, near.p, 0.0), -near.log_unit
    w, y = _divided(users, p, near.mu)
    variables = Variables(users.alpha, unit, users.log_phi + unit, w, y, p, np.ones(p.shape))
    t, _ = demand(setting, variables, y, 1.0)
    mean = setting.first_weight * float(users.arrays.xp.sum(y * t)) / setting.n_limits
    s = np.where(users.used, near.mu * mean / np.where(users.used, p, 1.0), 1.0)
    return replace(variables, s=s), Scaling.first(setting, y * t)


def _divided(users: UserTables, p: FloatArray, mu: float) -> tuple[Any, Any]:
    """Return the parts w of each user's money, and y, on the path at prices p."""
    xp, may, c = users.arrays.xp, users.may, users.cost(p)
    y = _centred(users, c, mu)
    w = xp.where(may, mu / xp.where(may, c / y - 1, 1.0), 0.0)
    return w / xp.sum(w, axis=0), y


def _centred(users: UserTables, c: Any, mu: float) -> Any:
    """Return y such that sum_i mu / (c / y - 1) = 1, by Newton's method in log y."""
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


def in_money(setting: Setting, at: Variables, money: float) -> Variables:
    """Return a point with phi scaled such that all users together have this much money."""
    users, xp = setting.users, setting.users.arrays.xp
    log_y = users.of_users(xp.log(at.y))
    log_money = (users.log_phi - log_y) / at.alpha + log_y
    highest = float(xp.max(log_money))
    part = float(np.log(money) - highest - np.log(float(xp.sum(xp.exp(log_money - highest)))))
    if users.log_cap is not None:
        part = rise_below_caps(users.arrays, log_money, users.log_cap + log_y, money, part)
    unit = at.alpha * part
    return replace(at, log_unit=unit, log_phi=users.log_phi + unit)


def with_lower_alpha(setting: Setting, now: Iterate) -> Variables:
    """Return the point with the next alpha on the way; w and the money of all users together stay."""
    users = setting.users
    alpha = max(users.alpha, _FALL * now.at.alpha)
    return in_money(setting, replace(now.at, alpha=alpha), float(users.arrays.xp.sum(now.money)))
