"""The Newton step of an alpha-fair goal in relative changes, without elimination: accurate where the money of users lies far apart.

With dx = x xi, dp = p pi and dm = m mu, the conditions of `fairopt.solvers.structure.newton` are, each in its own unit,

    pairs     z/c xi + (A'(p pi) - W'(m mu)) / c  =  (wanted / x + costs) / c             c = A'p
    limits    (A (x xi) - s pi) / u               =  (limits - wanted / p) / u            u = A x + s
    users     (W (x xi) + e v mu) / w             =  (rows + wanted / m) / w              w = W x

so the matrix of pairs, limits and users has entries of at most about 1, and no term drowns another. Eliminating pairs and users, as
`NewtonSystem` does, subtracts terms that agree in as many digits as the money of the users of a limit differs by. One sparse factorisation
takes several times as long, so the path comes here only where that elimination has failed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import TINY
from fairopt.processes.streams import unwarned
from fairopt.solvers.interior_point.settings import SETTINGS
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.newton import Residuals
from fairopt.solvers.structure.pairs import PairLists
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["RelativePairs", "RelativeSystem"]


class RelativePairs(PairLists):
    """The eligible pairs, with sparse matrices of limits, in the order of slots and places, and of users."""

    def __init__(self, scaled: ScaledProgram) -> None:
        super().__init__(scaled, NUMPY)
        slot, pair = np.nonzero(scaled.A)
        places = slot * self.n_places + scaled.server[pair]
        shape = (self.n_slots * self.n_places, self.n_pairs)
        self.of_limits = sp.csr_array((scaled.A[slot, pair], (places, pair)), shape=shape)
        self.of_users = sp.csr_array((scaled.W, (scaled.user, np.arange(self.n_pairs))), shape=(self.n_users, self.n_pairs))
        self.system = RelativeSystem


class RelativeSystem:
    """The system at a point, factorised; ``step`` solves it for any right-hand side."""

    def __init__(self, pairs: RelativePairs, primal: FloatArray, dual: FloatArray, side: FloatArray, a: None) -> None:
        x, s, ev = pairs.parts(primal)
        z, p, m = pairs.parts(dual)
        self.pairs, self.primal, self.dual = pairs, primal, dual
        cost, full, v = pairs.cost(p), (pairs.use(x) + s).ravel(), pairs.rows(x)
        self.unit = 1 / np.maximum(np.concatenate([cost, full, v]), TINY)
        A, W = pairs.of_limits, pairs.of_users
        rows: list[list[Any]] = [
            [sp.diags_array(z), sp.csr_array(A.T * p.ravel()), sp.csr_array(W.T * -m)],
            [sp.csr_array(A * x), sp.diags_array(-s.ravel()), None],
            [sp.csr_array(W * x), None, sp.diags_array(ev)],
        ]
        self.matrix = sp.csc_array(sp.csr_array(sp.block_array(rows, format="csr")) * self.unit[:, None])
        try:
            with unwarned():  # nearly singular: the refinement and the step lengths see to that
                self.factor = sp.linalg.splu(self.matrix, permc_spec="COLAMD")
        except (RuntimeError, ValueError) as error:
            raise np.linalg.LinAlgError(str(error)) from None

    def step(self, products: FloatArray, residuals: Residuals, refinements: int = 2) -> tuple[Any, Any, float]:
        """Return the changes of the primal values, of the dual ones, and 0.0."""
        pairs, n = self.pairs, self.pairs.n_pairs
        (x, _, _), (_, p, m) = pairs.parts(self.primal), pairs.parts(self.dual)
        of_pairs, of_limits, of_users = pairs.parts(products)
        parts = [of_pairs / x + residuals.costs, (residuals.limits - of_limits / p).ravel(), residuals.rows + of_users / m]
        right = np.concatenate(parts) * self.unit
        found = self.factor.solve(right)
        for _ in range(SETTINGS.refinements_of_end):
            found = found + self.factor.solve(right - self.matrix @ found)
        xi, pi, mu = found[:n], found[n : n + p.size].reshape(p.shape), found[n + p.size :]
        relative = pairs.point(xi, pi, mu)  # of x, p and m; the products give the changes of z, s and v
        other = pairs.point(x * xi, p * pi, m * mu)
        d_primal, d_dual = np.array(other), np.array(other)
        d_dual[:n] = (products / self.primal - self.dual * relative)[:n]
        d_primal[n:] = (products / self.dual - self.primal * relative)[n:]
        return d_primal, d_dual, 0.0
