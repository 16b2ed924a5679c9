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

__all__ = ["rise_below_caps", "rounded_demand"]

_BISECTIONS = 40
_NEARLY = 0.99  # part of what all users can spend at most that they are asked to spend, where there is too little to spend it on


def rounded_demand(arrays: Arrays, log_demand: Any, log_cap: Any, width: float) -> tuple[Any, Any]:
    """Return t and d log t / d log d = v / (v + l), for caps that may be infinite, (users,), or None where no user has one."""
    xp = arrays.xp
    if log_cap is None:
        return xp.exp(log_demand), 1.0
    capped = xp.isfinite(log_cap)
    beyond = log_demand - xp.where(capped, log_cap, log_demand)  # l - v
    root = xp.sqrt(beyond * beyond + 4 * width * width)
    larger = (root + xp.abs(beyond)) / 2  # of v and l; the difference would lose the digits of the smaller one
    smaller = width * width / larger
    lost = xp.where(beyond > 0, larger, smaller)
    part = xp.where(beyond > 0, smaller, larger) / root
    return xp.exp(xp.where(capped, log_demand - lost, log_demand)), xp.where(capped, part, 1.0)


def rise_below_caps(arrays: Arrays, log_money: Any, log_most: Any, money: float, low: float) -> float:
    """Return r at which all users together have this much money, where user n has exp(min(log_money[n] + r, log_most[n])).

    ``low`` is r without caps, a lower bound. If all users together cannot have that much, r is such that they have nearly all they can.
    """
    xp = arrays.xp

    def total(rise: float) -> float:
        return float(xp.sum(xp.exp(xp.minimum(log_money + rise, log_most))))

    money = min(money, _NEARLY * float(xp.sum(xp.exp(log_most))))
    length = 1.0
    while total(low + length) < money:
        length *= 2
    high = low + length
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) < money else (low, middle)
    return high
