"""The demand of users with limits on tasks, or with least tasks: a demand function with kinks, rounded off.

At the price u of a unit of utility a user demands d = (phi / u)^(1 / alpha), and gets t = min(d, cap). At its cap the marginal worth phi
cap^-alpha exceeds u, and the difference is the price of the user's limit on tasks, which concerns no other user. So nobody's money is more
than what it pays for servers, u t, however many orders of magnitude larger its marginal worth is, and no equation contains the price of the
limit. u may be 0, where servers have room for all the tasks of their users.

A user whose least utility is f gets t = max(d, f). At f the price u exceeds the marginal worth phi f^-alpha, and the difference is the
price of the rule that asks for f, which concerns no other user either. For 1 / d and 1 / t it is the kink of a cap, 1 / f.

Rounded off, with v = log(cap / t) and l = log(d / t), one of which is 0 on either side of the kink: v l = width^2, v - l = log(cap / d).
"""

from __future__ import annotations

from typing import Any

from fairopt.solvers.structure.arrays import Arrays

__all__ = ["rounded_demand"]


def rounded_demand(arrays: Arrays, log_demand: Any, log_cap: Any, width: float, log_floor: Any = None) -> tuple[Any, Any]:
    """Return log t and d log t / d log d = v / (v + l), (users,).

    Caps may be infinite, and floors 0: their logarithms are inf and -inf; None where no user has one.
    """
    log_t, part = (log_demand, 1.0) if log_cap is None else _below(arrays, log_demand, log_cap, width)
    if log_floor is None:
        return log_t, part
    negative, of_floor = _below(arrays, -log_t, -log_floor, width)
    return -negative, part * of_floor


def _below(arrays: Arrays, log_demand: Any, log_cap: Any, width: float) -> tuple[Any, Any]:
    """Return the logarithm of what is demanded of at most a cap, and its derivative."""
    xp = arrays.xp
    capped = xp.isfinite(log_cap)
    beyond = log_demand - xp.where(capped, log_cap, log_demand)  # l - v
    root = xp.sqrt(beyond * beyond + 4 * width * width)
    larger = (root + xp.abs(beyond)) / 2  # of v and l; the difference would lose the digits of the smaller one
    smaller = width * width / xp.where(larger > 0, larger, 1.0)
    nearer = xp.where(capped & (beyond > 0), log_cap, log_demand)
    part = xp.where(beyond > 0, smaller, larger) / xp.where(root > 0, root, 1.0)
    return xp.where(capped, nearer - smaller, log_demand), xp.where(capped, part, 1.0)
