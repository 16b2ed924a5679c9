"""Square systems of equations in rational numbers: what is triangular is eliminated, and FLINT solves the rest.

The bases of linear programs are nearly triangular: a slack is alone in its column, and a user who runs on one server is in few rows. Rows
and columns with one entry are taken out, one after the other; what is left, the *kernel*, is dense and small. FLINT solves it by Dixon's
p-adic lifting, in whole numbers: one inverse modulo a prime, and as many products as the digits of the answer ask for.

>>> from flint import fmpq, fmpz
>>> system = System([[(0, fmpz(2)), (1, fmpz(1))], [(1, fmpz(3))]])
>>> system.solve([fmpq(1), fmpq(1)])
[1/2, 1/6]
>>> system.solve_transposed([fmpq(1), fmpq(1)])
[1/3, 1/3]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flint import fmpq, fmpz, fmpz_mat, nmod_mat

from fairopt.solvers.rational.settings import SETTINGS

__all__ = ["Column", "SingularError", "System", "common_denominator"]

Column = list[tuple[int, fmpz]]
"""The entries of a column that are not 0: row and value."""

_PRIME = 2305843009213693951  # 2^61 - 1: a matrix of smaller rank modulo it is almost never of full rank


class SingularError(Exception):
    """The columns are not independent."""


def common_denominator(values: Sequence[fmpq]) -> fmpz:
    """Return the least common multiple of denominators."""
    common = fmpz(1)
    for value in values:
        common = common.lcm(value.q)
    return common


class System:
    """A square matrix of whole numbers, by its columns, ready to solve systems with it and with its transpose.

    Parameters
    ----------
    columns : sequence of Column
    spend : callable
        Takes the steps of all that is done here (`fairopt.solvers.rational.settings`).

    Raises
    ------
    SingularError
        When a system is solved, or already here.
    """

    def __init__(self, columns: Sequence[Column], spend: Callable[[float], None] = lambda _: None) -> None:
        self.columns, self._spend = columns, spend
        size = len(columns)
        self.rows: list[list[tuple[int, fmpz]]] = [[] for _ in range(size)]
        for j, column in enumerate(columns):
            for i, value in column:
                self.rows[i].append((j, value))
        self._peel(size)
        kernel_columns = [j for j, there in enumerate(self._column_there) if there]
        kernel_rows = [i for i, there in enumerate(self._row_there) if there]
        self._kernel_rows, self._kernel_columns = kernel_rows, kernel_columns
        place = {i: k for k, i in enumerate(kernel_rows)}
        table: list[list[int | fmpz]] = [[0] * len(kernel_columns) for _ in kernel_rows]
        for k, j in enumerate(kernel_columns):
            for i, value in columns[j]:
                if i in place:
                    table[place[i]][k] = value
        self._table = table
        self._matrices: dict[bool, fmpz_mat] = {}
        self._entries = sum(map(len, columns))
        spend(SETTINGS.steps_of_a_copy * self._entries)

    def _peel(self, size: int) -> None:
        """Take out rows and columns with one entry among those that are left: pairs (row, column), in order."""
        in_row, in_column = [len(row) for row in self.rows], [len(column) for column in self.columns]
        self._row_there, self._column_there = [True] * size, [True] * size
        self.by_row: list[tuple[int, int]] = []  # the row has this column alone
        self.by_column: list[tuple[int, int]] = []  # the column has this row alone
        waiting = [(0, j) for j in range(size) if in_column[j] <= 1] + [(1, i) for i in range(size) if in_row[i] <= 1]
        while waiting:
            is_row, k = waiting.pop()
            if not (self._row_there if is_row else self._column_there)[k]:
                continue
            if is_row:
                alone = [j for j, _ in self.rows[k] if self._column_there[j]]
                if not alone:
                    raise SingularError
                i, j = k, alone[0]
                self.by_row.append((i, j))
            else:
                alone = [i for i, _ in self.columns[k] if self._row_there[i]]
                if not alone:
                    raise SingularError
                i, j = alone[0], k
                self.by_column.append((i, j))
            self._row_there[i] = self._column_there[j] = False
            for other, _ in self.rows[i]:
                in_column[other] -= 1
                if self._column_there[other] and in_column[other] <= 1:
                    waiting.append((0, other))
            for other, _ in self.columns[j]:
                in_row[other] -= 1
                if self._row_there[other] and in_row[other] <= 1:
                    waiting.append((1, other))

    def solve(self, right: Sequence[fmpq]) -> list[fmpq]:
        """Return z with sum_j column[j] z[j] = right."""
        return self._counted(
            _solved(self.rows, self.by_row, self._kernel_rows, self._kernel_columns, self.by_column, right, self._kernel(transposed=False))
        )

    def solve_transposed(self, right: Sequence[fmpq]) -> list[fmpq]:
        """Return y with column[j] . y = right[j] for each column."""
        return self._counted(
            _solved(
                self.columns,
                [(j, i) for i, j in self.by_column],
                self._kernel_columns,
                self._kernel_rows,
                [(j, i) for i, j in self.by_row],
                right,
                self._kernel(transposed=True),
            )
        )

    def _counted(self, found: list[fmpq]) -> list[fmpq]:
        """Return a solution; count the steps that it took."""
        bits = sum(value.q.bit_length() for value in found) / max(len(found), 1)
        lifted = len(self._table) ** 2 * bits / SETTINGS.lifted_of_a_step
        self._spend(self._entries * (1 + bits / SETTINGS.bits_of_a_step) + self._steps_of_inverse() + lifted)
        return found

    def _steps_of_inverse(self) -> float:
        """Return how many steps it takes to write down the kernel, and to invert it modulo a prime."""
        size = len(self._table)
        return size**2 / SETTINGS.cells_of_a_step + size**3 / SETTINGS.products_of_a_step

    def _kernel(self, *, transposed: bool) -> fmpz_mat | None:
        if not self._table:
            return None
        if transposed not in self._matrices:
            matrix = fmpz_mat(self._table)
            self._matrices[transposed] = matrix.transpose() if transposed else matrix
        return self._matrices[transposed]

    def dependent(self) -> tuple[list[int], list[int]]:
        """Return columns to leave out, and as many rows to put in their place, so that what is left is independent; none, if it is.

        Of the kernel alone: what is triangular is independent.
        """
        if not self._table:
            return [], []
        size = len(self._table)
        self._spend(2 * self._steps_of_inverse())
        residues = [[int(value) % _PRIME for value in row] for row in self._table]
        forms = []
        for table in (residues, [list(column) for column in zip(*residues, strict=True)]):
            reduced, rank = nmod_mat(table, _PRIME).rref()
            pivots, row = set[int](), 0
            for j in range(size):
                if row < rank and int(reduced[row, j]):
                    pivots.add(j)
                    row += 1
            forms.append(pivots)
        columns, rows = forms
        return (
            [self._kernel_columns[j] for j in range(size) if j not in columns],
            [self._kernel_rows[i] for i in range(size) if i not in rows],
        )


def _solved(
    equations: Sequence[Sequence[tuple[int, fmpz]]],
    first: Sequence[tuple[int, int]],
    kernel_equations: Sequence[int],
    kernel_unknowns: Sequence[int],
    last: Sequence[tuple[int, int]],
    right: Sequence[fmpq],
    kernel: fmpz_mat | None,
) -> list[fmpq]:
    """Solve equations of which those of ``first`` and, backwards, of ``last`` have one unknown each, next to those known by then."""
    zero = fmpq(0)
    known: list[fmpq | None] = [None] * len(right)

    def rest(equation: int, unknown: int) -> tuple[fmpq, fmpz]:
        left, own = right[equation], None
        for k, value in equations[equation]:
            if k == unknown:
                own = value
            elif (there := known[k]) is not None and there != 0:
                left = left - there * value
        assert own is not None
        return left, own

    for equation, unknown in first:
        left, own = rest(equation, unknown)
        known[unknown] = left / own if left != 0 else zero
    if kernel is not None:
        lefts = [rest_of(equations[equation], right[equation], known) for equation in kernel_equations]
        if any(left != 0 for left in lefts):
            common = common_denominator(lefts)
            column = fmpz_mat([[(left * common).p] for left in lefts])
            try:
                found = kernel.solve(column)
            except ZeroDivisionError:
                raise SingularError from None
            for k, unknown in enumerate(kernel_unknowns):
                known[unknown] = found[k, 0] / common
        else:
            for unknown in kernel_unknowns:
                known[unknown] = zero
    for equation, unknown in reversed(last):
        left, own = rest(equation, unknown)
        known[unknown] = left / own if left != 0 else zero
    return [zero if value is None else value for value in known]


def rest_of(equation: Sequence[tuple[int, fmpz]], right: fmpq, known: Sequence[fmpq | None]) -> fmpq:
    """Return what is left of the right side without the unknowns that are known."""
    for k, value in equation:
        there = known[k]
        if there is not None and there != 0:
            right = right - there * value
    return right
