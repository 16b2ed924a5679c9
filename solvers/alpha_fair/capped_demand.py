"""What users buy at a price, where limits on tasks stop them: a demand function with a kink, rounded off.

At the price u of a unit of utility a user wants d = (phi / u)^(1 / alpha), and gets t = min(d, cap). Beyond its cap a unit would be worth
phi cap^-alpha > u: the difference is the price of its limit on tasks, which is its own and no matter of the others. So nobody's money is
more than what it pays for servers, u t, however many orders of magnitude what it would pay for another task is above it, and no
equation has that price in it. u may be 0, where the servers have room for all the tasks of their users.

Rounded off, with v = log(cap / t) and l = log(d / t), one of which is 0 at the kink's two sides: v l = width^2, v - l = log(cap / d).
"""

from __future__ import annotations

from typing import Any

from fairopt.solvers.structure.arrays import Arrays

__all__ = ["rise_below_caps", "rounded_demand"]

_BISECTIONS = 40
_NEARLY = 0.99


def rounded_demand(arrays: Arrays, log_wanted: Any, log_cap: Any, width: float) -> tuple[Any, Any]:
    """Return t and d log t / d log wanted, v / (v + l), for caps that may be infinite, (users,); None where nobody has one."""
    xp = arrays.xp
    if log_cap is None:
        return xp.exp(log_wanted), 1.0
    capped = xp.isfinite(log_cap)
    beyond = log_wanted - xp.where(capped, log_cap, log_wanted)  # l - v
    root = xp.sqrt(beyond * beyond + 4 * width * width)
    larger = (root + xp.abs(beyond)) / 2  # of v and l; the difference would drown the smaller one
    smaller = width * width / larger
    lost = xp.where(beyond > 0, larger, smaller)
    part = xp.where(beyond > 0, smaller, larger) / root
    return xp.exp(xp.where(capped, log_wanted - lost, log_wanted)), xp.where(capped, part, 1.0)


def rise_below_caps(arrays: Arrays, log_money: Any, log_most: Any, money: float, low: float) -> float:
    """Return by how much the logarithm of everybody's money rises, but not beyond ``log_most``, until all together have this much.

    It is more than ``low``, that without caps. Where there is too little to spend it on, they spend nearly all that they could.
    """
    xp = arrays.xp

    def spent(part: float) -> float:
        return float(xp.sum(xp.exp(xp.minimum(log_money + part, log_most))))

    money = min(money, _NEARLY * float(xp.sum(xp.exp(log_most))))
    length = 1.0
    while spent(low + length) < money:
        length *= 2
    high = low + length
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) < money else (low, middle)
    return high
