"""The rows across servers in a Newton system: the border of its Schur complement (`fairopt.solvers.structure.newton`).

With the rows C across servers the reduced system is

    [  H    J'  -E  ] [dp]        J = C theta A'
    [  J    K   -L  ] [dc]        K = C theta C' + s/p
    [ -E'  -L'   F  ] [dq]        L = C theta U'

H and F are scaled as without them, K to a unit diagonal. Whichever of H and F is eliminated, dc stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.solvers.structure.across import Across
from fairopt.solvers.structure.settings import SETTINGS

__all__ = ["Border"]


@dataclass(frozen=True, slots=True, eq=False)
class Border:
    """The parts of the rows across servers, scaled.

    Attributes
    ----------
    units : array (rows across,)
        Square roots of the diagonal of K.
    J, L : arrays (rows across, limits of servers), (rows across, rows of users)
    K : array (rows across, rows across)
    """

    units: FloatArray
    J: FloatArray
    L: FloatArray
    K: FloatArray

    @classmethod
    def of(
        cls, across: Across, theta: FloatArray, s_p: FloatArray, plain_J: FloatArray, H: FloatArray, J: FloatArray, L: FloatArray
    ) -> Border:
        """Return the border.

        Parameters
        ----------
        theta, s_p : arrays (pairs,), (rows across,)
        plain_J, H : arrays (slots, rows across, servers), (slots, slots, servers)
            J as it is, and A theta A'.
        J, L : arrays
            In the units of H and F.
        """
        K = across.with_each_other(theta, H, plain_J)
        diagonal = np.einsum("ii->i", K)
        diagonal += np.where(s_p > 0, s_p, SETTINGS.tight * diagonal + SETTINGS.tiny)
        units = np.sqrt(diagonal)
        return cls(units, J / units[:, None], L / units[:, None], K / (units * units[:, None]))

    def around_users(self, schur: FloatArray, E: Any) -> FloatArray:
        """Return the Schur complement of rows of users and rows across, given that of users; E is that of servers, scaled."""
        return _bordered(schur, (E @ self.J.T).T - self.L, self.K - self.J @ self.J.T)

    def around_servers(self, schur: FloatArray, E: Any) -> FloatArray:
        """Return the Schur complement of limits of servers and rows across, given that of servers."""
        return _bordered(schur, self.J - (E.T @ self.L.T).T, self.K - self.L @ self.L.T)


def _bordered(matrix: FloatArray, beside: FloatArray, corner: FloatArray) -> FloatArray:
    n, size = matrix.shape[0], matrix.shape[0] + corner.shape[0]
    whole = np.empty((size, size))
    whole[:n, :n], whole[n:, :n], whole[:n, n:], whole[n:, n:] = matrix, beside, beside.T, corner
    return whole
