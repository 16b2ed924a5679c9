"""A model of whole numbers that grows by columns and rows before it is solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome
from fairopt.solvers.via_highs.integer_program import IntegerProgram
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["Maker", "Model", "Rows", "begin", "by_highs"]


class Model(Protocol):
    """A model that is solved, and perhaps once more: that of HiGHS, or of a solver that another engine reaches."""

    def run(self, time_limit: float) -> Outcome:
        """Solve."""

    def set_options(self, **options: object) -> None:
        """Set options of HiGHS, which another solver leaves out."""

    def forget(self) -> None:
        """Drop the last answer."""


@runtime_checkable
class Guided(Model, Protocol):
    """A model whose search may start from a whole point. HiGHS mostly finds better points sooner without one, so its model is none."""

    def guess(self, x: FloatArray) -> None:
        """Give the point; a solver that takes none leaves it out."""


def begin(model: Model, start: Callable[[], FloatArray]) -> None:
    """Give a whole point to a model that begins with one; it is computed for such a model alone."""
    if isinstance(model, Guided):
        model.guess(start())


Maker: TypeAlias = Callable[[IntegerProgram], Model]
"""From a program with whole numbers to the model of it that one solver takes."""


def by_highs(program: IntegerProgram, *, relaxed: bool = False, deadline: Deadline | None = None) -> HighsModel:
    """Return the model of HiGHS; ``relaxed``, where every column is divisible. Branch and cut spends the work of a ``deadline``."""
    model = HighsModel(
        program.cost,
        program.lower,
        program.upper,
        program.matrix,
        program.row_lower,
        program.row_upper,
        integral=None if relaxed else program.integral,
        tolerance=program.tolerance,
    )
    if deadline is not None and deadline.limits_work:
        model.end_with(deadline, SETTINGS.steps_of_a_check + SETTINGS.steps_of_an_entry * program.matrix.nnz)
    return model


class Rows:
    """Columns from 0 to an upper bound, and rows. ``branch_and_cut`` makes the model of those of whole numbers, HiGHS the others."""

    def __init__(self, branch_and_cut: Maker = by_highs) -> None:
        self.branch_and_cut = branch_and_cut
        self.upper: list[float] = []
        self.whole: list[bool] = []
        self.entries: list[tuple[IntArray, IntArray, FloatArray]] = []  # rows, columns, values
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

    def rows(self, number: int, lower: FloatArray | float = -np.inf, upper: FloatArray | float = np.inf) -> IntArray:
        """Add rows without entries."""
        self.lower_rows += np.broadcast_to(np.asarray(lower, float), number).tolist()
        self.upper_rows += np.broadcast_to(np.asarray(upper, float), number).tolist()
        return np.arange(len(self.lower_rows) - number, len(self.lower_rows))

    def put(self, rows: IntArray, columns: IntArray, values: FloatArray) -> None:
        """Add entries to rows."""
        self.entries.append((rows, columns, values))

    def row(self, entries: Mapping[int, float], lower: float = -np.inf, upper: float = np.inf) -> None:
        """Add a row."""
        here = self.rows(1, lower, upper)
        self.put(here.repeat(len(entries)), np.array([*entries], np.int64), np.array([*entries.values()], float))

    def block(self, matrix: sp.csr_array, columns: IntArray, lower: FloatArray | float, upper: FloatArray | float) -> None:
        """Add rows ``lower <= matrix @ x[columns] <= upper``."""
        rows = self.rows(matrix.shape[0], lower, upper)
        self.put(rows.repeat(np.diff(matrix.indptr)), columns[matrix.indices], matrix.data)

    def copy(self) -> Rows:
        """Return a copy that can grow by itself."""
        other = Rows(self.branch_and_cut)
        for name in ("upper", "whole", "entries", "lower_rows", "upper_rows"):
            setattr(other, name, list(getattr(self, name)))
        return other

    def model(self, maximise: Mapping[int, float], tolerance: float = 1e-9, *, relaxed: bool = False) -> Model:
        """Return the model with this goal; ``relaxed``, where every column is divisible."""
        cost = np.zeros(len(self.upper))
        cost[[*maximise]] = [*maximise.values()]
        rows, columns, values = (np.concatenate(each) for each in zip(*self.entries, strict=True))
        program = IntegerProgram(
            cost,
            np.zeros(cost.size),
            np.array(self.upper),
            sp.csr_array((values, (rows, columns)), shape=(len(self.lower_rows), cost.size)),
            np.array(self.lower_rows),
            np.array(self.upper_rows),
            np.flatnonzero(self.whole),
            tolerance,
        )
        return by_highs(program, relaxed=True) if relaxed else self.branch_and_cut(program)
