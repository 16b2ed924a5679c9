"""Limits of a program: named sparse rows <= bound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray

__all__ = ["LimitKind", "Limits"]


class LimitKind(IntEnum):
    """What a limit row bounds, and what its two keys mean."""

    CAPACITY = 0  # (server, resource): use of the resource
    TIME = 1  # (server, -1): sum of x[n,i] / gamma[n,i]
    TASKS = 2  # (user, -1): tasks that the user has
    SLICE = 3  # (user, server): the part of a server that is set aside for a user
    PARALLELISM = 4  # (user, -1): sum of x[n,i] / (tasks of n on one server of i), the servers that the user is on at once


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """Rows ``matrix @ x <= bounds``; row j is of kind ``kinds[j]`` and belongs to ``keys[j]``."""

    matrix: sp.csr_array
    bounds: FloatArray
    kinds: IntArray
    keys: IntArray

    @classmethod
    def of(cls, kind: LimitKind, matrix: sp.csr_array, bounds: npt.ArrayLike, keys: npt.ArrayLike) -> Limits:
        """Build rows of one kind; ``keys`` has one or two columns. Rows without an entry are dropped."""
        matrix = sp.csr_array(matrix)
        pairs = np.full((matrix.shape[0], 2), -1, dtype=np.int64)
        given = np.asarray(keys, dtype=np.int64)
        given = given[:, None] if given.ndim == 1 else given
        pairs[:, : given.shape[1]] = given
        limits = cls(matrix, np.asarray(bounds, float), np.full(matrix.shape[0], int(kind), dtype=np.int64), pairs)
        return limits.select(np.diff(matrix.indptr) > 0)

    @classmethod
    def stack(cls, blocks: Iterable[Limits]) -> Limits:
        """Put blocks of rows over the same columns below each other."""
        blocks = list(blocks)
        parts = [block for block in blocks if len(block)] or blocks[:1]
        if len(parts) == 1:
            return parts[0]
        return cls(
            sp.csr_array(sp.vstack([part.matrix for part in parts], format="csr")),
            np.concatenate([part.bounds for part in parts]),
            np.concatenate([part.kinds for part in parts]),
            np.concatenate([part.keys for part in parts]),
        )

    def select(self, rows: npt.NDArray[np.bool_] | IntArray) -> Limits:
        """Keep some rows."""
        if rows.dtype == bool and rows.all():
            return self
        return Limits(sp.csr_array(self.matrix[rows]), self.bounds[rows], self.kinds[rows], self.keys[rows])

    @property
    def of_servers(self) -> npt.NDArray[np.bool_]:
        """Which rows bound what a server gives, (rows,); the others bound what a user takes wherever it runs."""
        own: npt.NDArray[np.bool_] = (self.kinds != LimitKind.TASKS) & (self.kinds != LimitKind.PARALLELISM)
        return own

    def __len__(self) -> int:
        return int(self.bounds.size)
