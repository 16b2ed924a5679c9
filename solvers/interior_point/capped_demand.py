"""The demand of users with limits on tasks: a demand function with a kink, rounded off.

At the price u of a unit of utility a user demands d = (phi / u)^(1 / alpha), and gets t = min(d, cap). At its cap the marginal worth phi
cap^-alpha exceeds u, and the difference is the price of the user's limit on tasks, which concerns no other user. So nobody's money is more
than what it pays for servers, u t, however many orders of magnitude larger its marginal worth is, and no equation contains the price of the
limit. u may be 0, where servers have room for all the tasks of their users.

Rounded off, with v = log(cap / t) and l = log(d / t), one of which is 0 on either side of the kink: v l = width^2, v - l = log(cap / d).
"""

from __future__ import annotations

from typing import Any

from fairopt.solvers.structure.arrays import Arrays

__all__ = ["rounded_demand"]


def rounded_demand(arrays: Arrays, log_demand: Any, log_cap: Any, width: float) -> tuple[Any, Any]:
    """Return log t and d log t / d log d = v / (v + l), for caps that may be infinite, (users,), or None where no user has one."""
    xp = arrays.xp
    if log_cap is None:
        return log_demand, 1.0
    capped = xp.isfinite(log_cap)
    beyond = log_demand - xp.where(capped, log_cap, log_demand)  # l - v
    root = xp.sqrt(beyond * beyond + 4 * width * width)
    larger = (root + xp.abs(beyond)) / 2  # of v and l; the difference would lose the digits of the smaller one
    smaller = width * width / larger
    nearer = xp.where(capped & (beyond > 0), log_cap, log_demand)
    part = xp.where(beyond > 0, smaller, larger) / root
    return xp.where(capped, nearer - smaller, log_demand), xp.where(capped, part, 1.0)
