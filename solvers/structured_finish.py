"""The end of a structured path: exact equations of the pairs that are used, the limits that are full and the users who are stopped.

Near its end a path shows which of x and z, s and p, v and m will be 0 (its ends are strictly complementary). With those set to 0, linear
equations are left: of x, s, v and t the conditions of the program, of prices that used pairs cost what they are worth. We take the x
nearest to the present one, by the least sum of (dx/x)^2, (ds/s)^2 and (dv/v)^2, and the prices with the least sum of (x z)^2, (s p)^2 and
(v m)^2, which is 0 where the sets are right. Both are steps of one ``NewtonSystem`` with the squares of x, s, v in place of x/z, s/p, v/m:
it does not span thirty orders of magnitude, as that of the path does by then. Whether anything is gained is for the caller to find out.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.structured_newton import NewtonSystem, Residuals
from fairopt.solvers.structured_pairs import Pairs

__all__ = ["finished"]

_REFINEMENTS = 3
_LEAST = 1e-300


def finished(
    pairs: Pairs, primal: FloatArray, dual: FloatArray, t: float, side: FloatArray, a: FloatArray, rows: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the values of a point, its duals and t on the sets that they show; arguments are those of ``structured_path.advance``.

    Raises
    ------
    numpy.linalg.LinAlgError
    """
    x, s, v = pairs.parts(primal)
    z, p, m = pairs.parts(dual)
    # Of each pair of factors the larger one counts. x and v in parts of a level, s of its limit; prices in parts of the mean that a user
    # or a server gets of t, which is all the money as a m = 1: what the user would waste by having its whole level from this pair, p, m.
    level = np.maximum(pairs.rows(x), _LEAST)
    pair_level = pairs.spread(level[: pairs.n_users]) / pairs.W
    used = x * t > z * pairs.n_users * pair_level * pair_level
    full = s * t < p * pairs.n_servers
    stopped = v * t < m * level * level
    primal = primal * np.concatenate([used, ~full.ravel(), ~stopped])
    x, s, v = pairs.parts(primal)
    residuals = Residuals(1 - pairs.use(x) - s, rows + side * v - pairs.rows(x) + a * t, np.zeros(pairs.n_pairs), 0.0)
    still = Residuals(np.zeros_like(s), np.zeros_like(v), residuals.costs, 1 - float(a @ m))
    weight = primal**2
    system = NewtonSystem(pairs, weight, np.ones_like(weight), side, a)
    d_primal, _, dt = system.step(np.zeros_like(weight), residuals, _REFINEMENTS)
    _, d_dual, _ = system.step(-weight * dual, still, _REFINEMENTS)
    return np.maximum(primal + d_primal, 0.0), np.maximum(dual + d_dual, 0.0), t + dt
