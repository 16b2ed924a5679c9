"""A model of whole numbers that grows by columns and rows before it is solved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.highs_model import HighsModel

__all__ = ["Rows"]


class Rows:
    """Columns from 0 to an upper bound, and rows."""

    def __init__(self) -> None:
        self.upper: list[float] = []
        self.whole: list[bool] = []
        self.entries: list[tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]] = []  # rows, columns, values
        self.lower_rows: list[float] = []
        self.upper_rows: list[float] = []

    def column(self, upper: float = np.inf, *, whole: bool = False) -> int:
        """Add a column from 0 to ``upper``."""
        return int(self.columns(np.array([upper]), whole=whole)[0])

    def columns(self, upper: FloatArray, *, whole: bool = True) -> IntArray:
        """Add columns from 0 to ``upper``."""
        self.upper += upper.tolist()
        self.whole += [whole] * upper.size
        return np.arange(len(self.upper) - upper.size, len(self.upper))

    def row(self, entries: Mapping[int, float], lower: float = -np.inf, upper: float = np.inf) -> None:
        """Add a row."""
        self.block(np.array([*entries.values()])[None], np.array([*entries], np.int64), np.array([lower]), np.array([upper]))

    def block(self, matrix: Any, columns: IntArray, lower: FloatArray | float, upper: FloatArray | float) -> None:
        """Add rows ``lower <= matrix @ x[columns] <= upper``; the matrix is sparse or dense."""
        part = sp.coo_array(matrix)
        number = part.shape[0]
        self.entries.append((part.row + len(self.lower_rows), columns[part.col], part.data))
        self.lower_rows += np.broadcast_to(np.asarray(lower, float), number).tolist()
        self.upper_rows += np.broadcast_to(np.asarray(upper, float), number).tolist()

    def copy(self) -> Rows:
        """Return a copy that can grow by itself."""
        other = Rows()
        for name, values in vars(self).items():
            setattr(other, name, list(values))
        return other

    def model(self, maximise: Mapping[int, float], tolerance: float = 1e-9, *, relaxed: bool = False) -> HighsModel:
        """Return the model with this goal; ``relaxed``, where every column is divisible."""
        cost = np.zeros(len(self.upper))
        cost[[*maximise]] = [*maximise.values()]
        rows, columns, values = (np.concatenate(each) for each in zip(*self.entries, strict=True))
        return HighsModel(
            cost,
            np.zeros(cost.size),
            np.array(self.upper),
            sp.csc_array((values, (rows, columns)), shape=(len(self.lower_rows), cost.size)),
            np.array(self.lower_rows),
            np.array(self.upper_rows),
            integral=None if relaxed else np.flatnonzero(self.whole),
            tolerance=tolerance,
        )
