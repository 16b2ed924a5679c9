"""The least change of numbers that solves linear equations which they satisfy nearly.

Each unknown changes relative to its size: with the sizes D = diag(d), the correction D z of the least |z| that solves E D z = r is
z = D E'l, where l solves the symmetric system E D^2 E' l = r. A small multiple of the identity makes it regular where equations are
dependent; the caller computes the residual again and repeats, which removes its effect (iterative refinement).

Equations may have unknowns t of their own, E D z - B t = r, C t = c. Then |z|^2 + |t|^2 is the least, and the system is bordered.

>>> LeastChange.of(sp.csr_array([[1.0, 1.0]])).step(np.array([0.5]))[0]
array([0.25, 0.25])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["LeastChange", "change_of_least"]


@dataclass(frozen=True, slots=True, eq=False)
class LeastChange:
    """The factors of such a system.

    Attributes
    ----------
    matrix : sparse array (equations, unknowns)
        E D.
    factors : SuperLU
    """

    matrix: sp.csr_array
    factors: Any

    @classmethod
    def of(
        cls,
        matrix: sp.csr_array,
        shared: sp.csr_array | None = None,
        rows: sp.csr_array | None = None,
        singular: float = SETTINGS.singular,
    ) -> LeastChange | None:
        """Factor the system of E D, B and C; None where it is singular, or an equation has no entry."""
        square: Any = sp.csr_array(matrix @ matrix.T)
        diagonal = square.diagonal()
        if not (diagonal > 0).all():  # SuperLU would say so to standard output, and not to us
            return None
        system = square + sp.diags_array(singular * diagonal)
        if shared is not None:
            blocks: list[list[Any]] = [[system, shared], [shared.T, -sp.eye_array(shared.shape[1])]]
            if rows is not None and rows.nnz:
                small = SETTINGS.singular * float((rows.power(2)).sum(axis=1).max())
                blocks = [[*blocks[0], None], [*blocks[1], -rows.T], [None, -rows, -small * sp.eye_array(rows.shape[0])]]
            system = sp.block_array(blocks)
        try:
            return cls(matrix, sp.linalg.splu(sp.csc_array(system)))
        except RuntimeError:  # singular
            return None

    def step(self, right: FloatArray, sides: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return z and t for the right-hand sides r, (equations,), and c; not finite where they are out of reach."""
        wanted = np.zeros(self.factors.shape[0])
        wanted[: right.size] = right
        if sides is not None:
            wanted[wanted.size - sides.size :] = sides
        found = self.factors.solve(wanted)
        end = wanted.size - (0 if sides is None else sides.size)
        return np.asarray(self.matrix.T @ found[: right.size]), -found[right.size : end]


def change_of_least(matrix: sp.csr_array) -> Callable[[FloatArray], FloatArray] | None:
    """Return the map from right-hand sides r to a small z with E D z = r; None where it is singular.

    z has the least |z|. If there are more equations than unknowns, so that most of them follow from others, it has the least sum of
    c z^2 instead, with c the sum of the squares of a column of E D: D E'E D, of the size of the unknowns, takes the place of E D^2 E'.

    >>> change_of_least(sp.csr_array([[1.0], [1.0], [1.0]]))(np.full(3, 0.5)).round(9)
    array([0.5])
    """
    if matrix.shape[0] <= matrix.shape[1]:
        system = LeastChange.of(matrix)
        return None if system is None else (lambda right: system.step(right)[0])
    transposed = sp.csr_array(matrix.T)
    inverse = LeastChange.of(transposed, singular=SETTINGS.singular_of_many)
    return None if inverse is None else (lambda right: np.asarray(inverse.factors.solve(transposed @ right)))
