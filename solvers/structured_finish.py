"""The end of a structured path: exact equations of the pairs that are used, the limits that are full and the users who are stopped.

Near its end a path shows which of x and z, s and p, v and m will be 0 (its ends are strictly complementary). With those set to 0, linear
equations are left: of x, s, v and t the conditions of the program, of prices that used pairs cost what they are worth. We take the x
nearest to the present one, by the least sum of (dx/x)^2, (ds/s)^2 and (dv/v)^2, and the prices with the least sum of (x z)^2, (s p)^2 and
(v m)^2, which is 0 where the sets are right. Both are steps of one ``NewtonSystem`` with the squares of x, s, v in place of x/z, s/p, v/m:
it does not span thirty orders of magnitude, as that of the path does by then. Whether anything is gained is for the caller to find out.
"""

from __future__ import annotations

from typing import Any

from fairopt.solvers.structured_newton import NewtonSystem, Residuals
from fairopt.solvers.structured_pairs import Pairs

__all__ = ["finished"]

_REFINEMENTS = 3
_LEAST = 1e-300


def finished(pairs: Pairs, primal: Any, dual: Any, t: float, side: Any, a: Any, rows: Any) -> tuple[Any, Any, float]:
    """Return the values of a point, its duals and t on the sets that they show; arguments are those of ``structured_path.advance``.

    Raises
    ------
    numpy.linalg.LinAlgError
    """
    xp = pairs.xp
    x, s, v = pairs.parts(primal)
    z, p, m = pairs.parts(dual)
    # Of each pair of factors the larger one counts. x and v in parts of a level, s of its limit; prices in parts of the mean that a user
    # or a server gets of t, which is all the money as a m = 1: what the user would waste by having its whole level from this pair, p, m.
    level = xp.clip(pairs.rows(x), _LEAST, None)
    pair_level = pairs.spread(level[: pairs.n_users]) / pairs.eligible(pairs.W, 1.0)
    used = x * t > z * pairs.n_users * pair_level * pair_level
    full = s * t < p * pairs.n_servers
    stopped = v * t < m * level * level
    primal = xp.where(pairs.point(used, ~full, ~stopped), primal, 0.0)
    x, s, v = pairs.parts(primal)
    residuals = Residuals(1 - pairs.use(x) - s, rows + side * v - pairs.rows(x) + a * t, xp.zeros_like(x), 0.0)
    still = Residuals(xp.zeros_like(s), xp.zeros_like(v), residuals.costs, 1 - float(a @ m))
    weight = primal**2
    system = NewtonSystem(pairs, weight, xp.ones_like(weight), side, a)
    d_primal, _, dt = system.step(xp.zeros_like(weight), residuals, _REFINEMENTS)
    _, d_dual, _ = system.step(-weight * dual, still, _REFINEMENTS)
    return xp.clip(primal + d_primal, 0.0, None), xp.clip(dual + d_dual, 0.0, None), t + dt
