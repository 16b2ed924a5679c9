"""Any linear program in rational numbers: from a basis in floats, finished by rational pivots.

    maximise  cost z   subject to   A z <= right,   z >= 0

Each row is multiplied by the common denominator of its numbers, as FLINT is fast with whole numbers. In floats each row and each column is
divided by its largest entry; numbers beyond floats do not matter, as only the basis is used.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import fmpq

from fairopt.errors import FairoptError, NoSolution
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.fractions import ExactArray, rational
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import HighsModel
from fairopt.solvers.rational.simplex import InfeasibleError, RationalProgram, UnboundedError
from fairopt.solvers.rational.systems import Column, common_denominator

__all__ = ["largest"]

log = logging.getLogger(__name__)


def largest(
    cost: Sequence[Any], entries: Sequence[tuple[int, int, Any]], right: Sequence[Any], deadline: Deadline
) -> tuple[ExactArray, ExactArray] | None:
    """Return a point of the largest value, (columns,), and prices of the rows, (rows,), which prove it; None where no point is feasible.

    Parameters
    ----------
    cost : sequence of rationals (columns,)
    entries : sequence of (row, column, rational)
        At most one of each row and column.
    right : sequence of rationals (rows,)

    Raises
    ------
    NoSolution
        At the deadline; where the value has no bound.

    >>> point, prices = largest([1, 1], [(0, 0, 2), (0, 1, 3), (1, 0, 1)], [6, 1], Deadline(None))
    >>> point.tolist(), prices.tolist()
    ([1, 4/3], [1/3, 1/3])
    """
    costs, sides = [rational(value) for value in cost], [rational(value) for value in right]
    of_row: list[list[tuple[int, fmpq]]] = [[] for _ in sides]
    for i, j, value in entries:
        if value != 0:
            of_row[i].append((j, rational(value)))
    scales = [common_denominator([*(value for _, value in row), side]) for row, side in zip(of_row, sides, strict=True)]
    columns: list[Column] = [[] for _ in costs]
    for i, (row, scale) in enumerate(zip(of_row, scales, strict=True)):
        for j, value in row:
            columns[j].append((i, (value * scale).p))

    def spend(work: float) -> None:
        deadline.spend(work)
        if deadline.left == 0.0:
            raise deadline.passed({})

    spend(len(entries))
    program = RationalProgram(columns, [side * scale for side, scale in zip(sides, scales, strict=True)], [True] * len(sides), costs)
    try:
        found = program.optimise(_basis(costs, of_row, sides, deadline), spend)
    except InfeasibleError:
        return None
    except UnboundedError:
        raise NoSolution("the value of a linear program has no bound") from None
    prices = [price * scale for price, scale in zip(found.prices, scales, strict=True)]
    return _array(found.z), _array(prices)


def _basis(costs: Sequence[fmpq], rows: Sequence[list[tuple[int, fmpq]]], sides: Sequence[fmpq], deadline: Deadline) -> list[int]:
    """Return an optimal basis of the program in floats; if HiGHS finds none, the basis of the slacks."""
    n, m = len(costs), len(rows)
    slacks = [n + i for i in range(m)]
    with np.errstate(all="ignore"):
        place = np.array([(i, j) for i, row in enumerate(rows) for j, _ in row], np.int64).reshape(-1, 2)
        values = np.array([_as_float(value) for row in rows for _, value in row])
        unit = 1 / _largest_by(place[:, 1], values, n)  # of columns, then of rows
        values = values * unit[place[:, 1]]
        of_row = 1 / _largest_by(place[:, 0], values, m)
        upper = np.array([_as_float(side) for side in sides]) * of_row
        upper = upper / (np.abs(upper).max(initial=0.0) or 1.0)
        cost = np.array([_as_float(value) for value in costs]) * unit
        cost = cost / (np.abs(cost).max(initial=0.0) or 1.0)
        matrix = sp.csr_array((values * of_row[place[:, 0]], (place[:, 0], place[:, 1])), shape=(m, n))
    if not all(np.isfinite(array).all() for array in (matrix.data, upper, cost)):
        return slacks
    try:
        model = HighsModel.within(cost, matrix, upper)
        outcome = model.run(deadline.left)
        chosen, basic = model.basic()
    except FairoptError as error:
        log.info("no basis in floats: %s", error)
        return slacks
    if outcome.status is not Status.OPTIMAL or chosen.size + basic.size != m:
        return slacks
    return [*chosen.tolist(), *(basic + n).tolist()]


def _largest_by(group: IntArray, values: FloatArray, size: int) -> FloatArray:
    """Return the largest absolute value of each group, (size,); 1 for a group without one."""
    most = np.zeros(size)
    np.maximum.at(most, group, np.abs(values))
    most[most == 0] = 1.0
    return most


def _as_float(value: fmpq) -> float:
    """Return the nearest float; inf beyond floats."""
    try:
        return int(value.p) / int(value.q)
    except OverflowError:
        return float("inf")


def _array(values: Sequence[fmpq]) -> ExactArray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
