"""The end of a structured path: exact equations of the pairs that are used, the limits that are full and the users who are stopped.

Near its end a path shows which of x and z, s and p, v and m will be 0 (its ends are strictly complementary). With those set to 0, linear
equations are left: of x, s, v and t the conditions of the program, of prices that used pairs cost what they are worth. We take the x
nearest to the present one, by the least sum of (dx/x)^2, (ds/s)^2 and (dv/v)^2, and the prices with the least sum of (x z)^2, (s p)^2 and
(v m)^2, which is 0 where the sets are right. Both are steps of one ``NewtonSystem`` with the squares of x, s, v in place of x/z, s/p, v/m:
it does not span thirty orders of magnitude, as that of the path does by then. Whether anything is gained is for the caller to find out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairopt.instance.tolerances import TINY
from fairopt.solvers.interior_point.settings import LEVELS, STEPS
from fairopt.solvers.structure.newton import NewtonSystem, Residuals
from fairopt.solvers.structure.pairs import Pairs

__all__ = ["Sets", "finish", "read_active_sets"]


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """Which pairs are used, (pairs,), which limits full, (slots, servers), which rows of users stopped, (rows,)."""

    used: Any
    full: Any
    stopped: Any
    ambiguity: float  # largest ratio of the smaller to the larger factor of a product: what is 0 is clear if it is small


def read_active_sets(pairs: Pairs, primal: Any, dual: Any, money: float) -> Sets:
    """Return the active sets at a point near its end, given what all rising users pay; equations are full, or stopped."""
    xp = pairs.xp
    x, s, _ = pairs.parts(primal)
    # Of each pair of factors the larger one counts. x in parts of what its user, or its server, could have of this pair at most, v of a
    # level, s of its limit; prices in parts of the mean that a user or a server gets of the money: what the user
    # would waste by having that much of this pair, p, m.
    level = xp.clip(pairs.rows(x), TINY, None)
    most = xp.minimum(pairs.spread(level[: pairs.n_users]) / pairs.eligible(pairs.W, 1.0), pairs.room())
    mean = pairs.point(most * most * pairs.n_users, xp.zeros_like(s) + pairs.bounds**2 * pairs.n_servers, level * level)
    values, prices = primal * money, dual * mean
    there = pairs.mask_equalities(values > prices, False)
    ambiguity = xp.minimum(values, prices) / xp.clip(xp.maximum(values, prices), TINY, None)
    used, slack, free = pairs.parts(there)
    return Sets(used, ~slack, ~free, float(xp.max(pairs.mask_equalities(pairs.eligible(ambiguity)))))


def finish(
    pairs: Pairs, sets: Sets, primal: Any, dual: Any, t: float, side: Any, a: Any, rows: Any, *, smallest: bool = True
) -> tuple[Any, Any, float]:
    """Return the values of a point, its duals and t on these sets; the other arguments are those of `advance` in ``steps``.

    Prices of redundant equations are not unique. With ``smallest``, return the smallest prices that satisfy the conditions on the sets:
    they lose the least to rounding, but unused pairs may have negative reduced costs. Otherwise return those nearest to the point's prices,
    which keep the reduced costs of unused pairs >= 0.

    Raises
    ------
    numpy.linalg.LinAlgError
    """
    xp = pairs.xp
    primal = xp.where(pairs.point(sets.used, ~sets.full, ~sets.stopped), primal, 0.0)
    if smallest:
        dual = pairs.mask_equalities(dual)
    x, s, v = pairs.parts(primal)
    z, p, m = pairs.parts(dual)
    residuals = Residuals(pairs.bounds - pairs.use(x) - s, rows + side * v - pairs.rows(x) + a * t, xp.zeros_like(x), 0.0)
    costs = pairs.eligible(z - pairs.cost(p) + pairs.along_rows(side * m))
    still = Residuals(xp.zeros_like(s), xp.zeros_like(v), costs, 1 - float(a @ m))
    weight = primal**2
    system = NewtonSystem(pairs, weight, xp.ones_like(weight), side, a)
    d_primal, _, dt = system.step(xp.zeros_like(weight), residuals, LEVELS.refinements_of_end)
    _, d_dual, _ = system.step(-weight * dual, still, LEVELS.refinements_of_end)
    dual = xp.where(weight > 0, 0.0, dual + d_dual)  # what is left of the others is rounding
    return xp.maximum(primal + d_primal, STEPS.least_part * primal), pairs.mask_equalities(xp.clip(dual, 0.0, None), dual), t + dt
