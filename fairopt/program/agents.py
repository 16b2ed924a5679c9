"""Programs of agents: users, promises and parts, whose levels rise together within limits whose coefficients are >= 0.

`fairopt.program.guarantees` says what they are for, and makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import IntArray
from fairopt.instance.fractions import rational
from fairopt.program.exact import ExactProgram
from fairopt.program.exact_limits import exact_rows
from fairopt.program.limits import LimitKind
from fairopt.program.program import Program
from fairopt.program.tree_filling import Part

__all__ = ["AgentProgram", "Builder", "Rows", "extra_rows", "limits_of", "sparse"]

Rows = list[tuple[IntArray, Any]]
"""Of each row its columns and its coefficients: floats, or rationals in an array of objects."""


@dataclass(frozen=True, slots=True, eq=False)
class AgentProgram:
    """Maximise t subject to A z <= b, and sum of worth z >= start + rate t for each agent; z, t >= 0. All coefficients but rules' are >= 0.

    Attributes
    ----------
    limits : list of (columns, coefficients)
    bounds : array (limits,)
    agents : list of (columns, worths)
    n_pairs : int
        Number of columns: those of the tasks come first.
    exact : bool
        In rationals?
    rules : frozenset of int
        Limits of any sign, whose coefficients and bounds may be below 0.
    """

    limits: Rows
    bounds: Any
    agents: Rows
    n_pairs: int
    exact: bool
    rules: frozenset[int] = frozenset()
    _matrices: list[sp.csr_array] = field(default_factory=list, init=False, repr=False)

    @property
    def indptr(self) -> IntArray:
        """Where the entries of each limit begin, (limits + 1,)."""
        return np.append(0, np.cumsum([columns.size for columns, _ in self.limits])).astype(np.int64)

    @property
    def columns(self) -> IntArray:
        """The column of each entry of the limits."""
        return np.concatenate([np.empty(0, np.int64), *(columns for columns, _ in self.limits)])

    @property
    def data(self) -> Any:
        """The coefficient of each entry of the limits."""
        return np.concatenate([np.empty(0, object if self.exact else float), *(values for _, values in self.limits)])

    @property
    def matrix(self) -> sp.csr_array:
        """A, in floats."""
        return self._both()[0]

    @property
    def worth(self) -> sp.csr_array:
        """The worths of columns to agents, in floats."""
        return self._both()[1]

    def _both(self) -> list[sp.csr_array]:
        if not self._matrices:
            self._matrices.extend(sparse(rows, self.n_pairs) for rows in (self.limits, self.agents))
        return self._matrices

    def largest(self) -> Any:
        """Return the largest value that each column can take by itself, (columns,); inf without a limit."""
        if not self.exact:
            best, matrix = np.full(self.n_pairs, np.inf), self.matrix
            room = np.repeat(self.bounds, np.diff(matrix.indptr)) / matrix.data
            others = np.repeat(~np.isin(np.arange(len(self.limits)), list(self.rules)), np.diff(matrix.indptr))
            np.minimum.at(best, matrix.indices[others], room[others])
            return best
        largest: list[Any] = [float("inf")] * self.n_pairs
        for k, ((columns, values), bound) in enumerate(zip(self.limits, self.bounds.tolist(), strict=True)):
            for column, value in () if k in self.rules else zip(columns.tolist(), values.tolist(), strict=True):
                room = bound / value
                if isinstance(largest[column], float) or room < largest[column]:
                    largest[column] = room
        return largest


def sparse(rows: Rows, width: int) -> sp.csr_array:
    """Return rows as a matrix of floats, (rows, width)."""
    indptr = np.append(0, np.cumsum([columns.size for columns, _ in rows]))
    columns = np.concatenate([np.empty(0, np.int64), *(columns for columns, _ in rows)])
    data = np.concatenate([np.empty(0), *(np.asarray(values, float) for _, values in rows)])
    return sp.csr_array((data, columns, indptr), shape=(len(rows), width))


class Builder:
    """A program of agents, as it grows from the limits of a program."""

    def __init__(self, program: Program | ExactProgram) -> None:
        self.exact = isinstance(program, ExactProgram)
        self.rows, bounds = limits_of(program)
        self.bounds: list[Any] = list(bounds)
        self.agents: Rows = []
        self.width = program.n_pairs
        self.one: Any = rational(1) if self.exact else 1.0
        names = program.program if isinstance(program, ExactProgram) else program
        self.rules = frozenset(np.flatnonzero(names.limits.kinds == LimitKind.RULE).tolist())

    def column(self) -> int:
        """Add a column, and return its number."""
        self.width += 1
        return self.width - 1

    def limit(self, columns: Sequence[int], values: Sequence[Any], bound: Any) -> None:
        """Add a limit: the sum of values times columns is at most the bound."""
        self.rows.append((np.array(columns, np.int64), self._numbers(values)))
        self.bounds.append(bound)

    def agent(self, columns: Sequence[int] | IntArray, values: Any) -> None:
        """Add an agent, to whom a unit of each column has this worth."""
        self.agents.append((np.array(columns, np.int64), self._numbers(values)))

    def users(self, program: Any) -> None:
        """Let the users be the first agents."""
        names = program.program if self.exact else program
        first = np.searchsorted(names.pair_users, np.arange(len(names.users) + 1))
        for low, high in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
            self.agent(np.arange(low, high), program.utilities[low:high])

    def done(self) -> AgentProgram:
        """Return the program."""
        return AgentProgram(self.rows, self._numbers(self.bounds), self.agents, self.width, self.exact, self.rules)

    def _numbers(self, values: Any) -> Any:
        if not self.exact:
            return np.asarray(values, float)
        numbers = np.empty(len(values), object)
        numbers[:] = list(values)
        return numbers


def limits_of(program: Any) -> tuple[Rows, list[Any]]:
    """Return the limits of a program and their bounds, in its numbers."""
    if isinstance(program, ExactProgram):
        matrix, data = program.program.limits.matrix, program.data
    else:
        matrix, data = program.limits.matrix, program.limits.matrix.data
    bounds = program.bounds if isinstance(program, ExactProgram) else program.limits.bounds
    spans = list(zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True))
    return [(matrix.indices[low:high].astype(np.int64), data[low:high]) for low, high in spans], bounds.tolist()


def extra_rows(program: Any, part: Part, which: Sequence[int] | None = None) -> tuple[Rows, list[Any]]:
    """Return the extra limits of a part, or ``which`` of them, in the numbers of a program."""
    extra = part.extra
    assert extra is not None
    if isinstance(program, ExactProgram):
        data, bounds = exact_rows(program.program, extra, program.instance, part.rows)
    else:
        data, bounds = extra.matrix.data, extra.bounds
    indices, ends, bounds = extra.matrix.indices, extra.matrix.indptr.tolist(), bounds.tolist()
    which = range(len(extra)) if which is None else which
    return [(indices[ends[k] : ends[k + 1]].astype(np.int64), data[ends[k] : ends[k + 1]]) for k in which], [bounds[k] for k in which]
