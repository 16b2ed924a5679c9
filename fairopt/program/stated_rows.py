r"""Rows that somebody states for a program: by name, with a coefficient for each pair of user and server, and a bound.

    sum of a[n,i] x[n,i] <= b,        a >= 0, b >= 0         a limit
    sum of a[n,i] x[n,i] <=, ==, >= b                        a rule, of any sign

A `StatedRow` holds its coefficients by label, and as they were given: ints and Fractions stay what they are. So the same row can be put on
the program of another instance, where a user has left or a server has been split, and on a program in fractions.

>>> import fairopt as fo
>>> program = fo.formulate(fo.Instance([[4], [4]], [[1], [1]], users=["a", "b"], servers=["s", "t"]), "drfh")
>>> row = StatedRow.of(program, "a on s", {("a", "s"): 2}, 3)
>>> row.over(program)
(array([0]), array([2.]))
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.fractions import fraction_of
from fairopt.instance.rules import Sense
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.rule_limits import SIGNS, name_of
from fairopt.wording import did_you_mean, named, written

if TYPE_CHECKING:
    from fairopt.program.program import Program

__all__ = ["StatedRow", "with_rows"]


@dataclass(frozen=True, slots=True, eq=False)
class StatedRow:
    """A row by its labels.

    Attributes
    ----------
    name : str
    users, servers : tuple of str
        Labels of the program that it was stated for.
    at_users, at_servers : int arrays (entries,)
        The user and the server of each coefficient, as positions among these labels.
    values : array (entries,)
        Numbers as they were given.
    bound : number
    sense : {"<=", "==", ">="}, optional
        Of a rule; None of a limit.
    """

    name: str
    users: tuple[str, ...]
    servers: tuple[str, ...]
    at_users: IntArray
    at_servers: IntArray
    values: npt.NDArray[Any]
    bound: Any
    sense: Sense | None = None

    @classmethod
    def of(
        cls,
        program: Program,
        name: str,
        coefficients: Mapping[tuple[str, str], Any] | npt.ArrayLike,
        bound: Any,
        sense: Sense | None = None,
    ) -> StatedRow:
        """Return the row of these coefficients, by labels or in the order of the pairs of the program.

        Raises
        ------
        InvalidInstance
            The name is empty or taken, a label is unknown, the array has another shape, a number is not finite, or, of a limit, negative;
            the sense is another one.
        """
        word = "limit" if sense is None else "rule"
        if not isinstance(name, str) or not name.strip():
            raise InvalidInstance(f"the name of a {word} is {written(name)}; give a text that says what it is about")
        where = f"the {word} {named(name)}"
        if sense is not None and not (isinstance(sense, str) and sense in SIGNS):
            raise InvalidInstance(f"{where}: its sense is {written(sense)}; give <=, == or >=")
        if any(_is_taken(program, each) for each, _ in _sides(name, sense)):
            raise InvalidInstance(f"the program has a limit {named(name)} already; give this one another name")
        if isinstance(coefficients, Mapping):
            at_users, at_servers, values = _by_label(program, where, coefficients)
        else:
            at_users, at_servers, values = _by_pair(program, where, coefficients)
        right, at_least = (_is_amount, " >= 0") if sense is None else (_is_finite, "")
        for n, i, value in zip(at_users.tolist(), at_servers.tolist(), values.tolist(), strict=True):
            if not right(value):
                raise InvalidInstance(
                    f"{where}: the coefficient of {named(program.users[n])} on {named(program.servers[i])} is {written(value)}; "
                    f"give finite numbers{at_least}"
                )
        if not right(bound):
            raise InvalidInstance(f"{where}: its bound is {written(bound)}; give a finite number{at_least}")
        kept = np.array([value != 0 for value in values.tolist()], bool)
        return cls(name, program.users, program.servers, at_users[kept], at_servers[kept], values[kept], bound, sense)

    @property
    def sides(self) -> list[tuple[str, int]]:
        """Its rows of the form <=: of each the name, and the sign of its numbers."""
        return _sides(self.name, self.sense)

    def in_fractions(self, program: Program, pairs: Sequence[int], sign: int) -> tuple[list[Fraction], Fraction]:
        """Return the coefficients of columns of a program, and the bound, as they were given, with a sign."""
        columns, entries = self.entries(program)
        place = dict(zip(columns.tolist(), entries.tolist(), strict=True))
        return [fraction_of(self.values[place[p]]) * sign for p in pairs], fraction_of(self.bound) * sign

    def on(self, users: IntArray | None, servers: IntArray | None, labels: tuple[tuple[str, ...], tuple[str, ...]]) -> StatedRow:
        """Return the row over users and servers that are these of its own, by position; None keeps all. ``labels`` are theirs."""
        table: Any = sp.csr_array(
            (np.arange(1, self.values.size + 1), (self.at_users, self.at_servers)), shape=(len(self.users), len(self.servers))
        )
        table = table if users is None else table[users]
        table = (table if servers is None else table[:, servers]).tocoo()
        return replace(
            self, users=labels[0], servers=labels[1], at_users=table.row, at_servers=table.col, values=self.values[table.data - 1]
        )

    def over(self, program: Program) -> tuple[IntArray, FloatArray]:
        """Return the columns of a program that have a coefficient, ascending, and the coefficients; labels that it lacks are left out."""
        pairs, entries = self.entries(program)
        return pairs, self.values[entries].astype(np.float64)

    def entries(self, program: Program) -> tuple[IntArray, IntArray]:
        """Return the columns of a program that have a coefficient, ascending, and which of the coefficients each has."""
        users, servers = _positions(self.users, program.users)[self.at_users], _positions(self.servers, program.servers)[self.at_servers]
        known = np.flatnonzero((users >= 0) & (servers >= 0))
        width = max(len(program.servers), 1)
        columns, wanted = program.pair_users * width + program.pair_servers, users[known] * width + servers[known]
        place = np.searchsorted(columns, wanted)  # columns are sorted by user, then by server
        there = place < columns.size
        there[there] = columns[place[there]] == wanted[there]
        order = np.argsort(place[there], kind="stable")
        return place[there][order], known[there][order]


def with_rows(program: Program, rows: Sequence[StatedRow]) -> Program:
    """Return the program with these rows as limits behind its own. A rule with users who are not there does not apply."""
    rows = [row for row in rows if row.sense is None or (_positions(row.users, program.users)[row.at_users] >= 0).all()]
    sides = [(row, name, sign) for row in rows for name, sign in row.sides]
    found = [(pairs, numbers * sign) for row, _, sign in sides for pairs, numbers in [row.over(program)]]
    ends = np.concatenate([[0], np.cumsum([pairs.size for pairs, _ in found])])
    columns = np.concatenate([np.zeros(0, np.int64), *(pairs for pairs, _ in found)])
    values = np.concatenate([np.zeros(0), *(numbers for _, numbers in found)])
    matrix = sp.csr_array((values, columns, ends), shape=(len(sides), program.n_pairs))
    limits = Limits(
        matrix,
        np.array([float(row.bound) * sign for row, _, sign in sides]) + 0.0,
        np.array([int(LimitKind.NAMED if row.sense is None else LimitKind.RULE) for row, _, _ in sides], np.int64),
        np.column_stack([len(program.queue_limits) + np.arange(len(sides)), np.full(len(sides), -1)]),
    )
    return replace(
        program,
        limits=Limits.stack([program.limits, limits.select((np.diff(ends) > 0) | (limits.kinds == LimitKind.RULE))]),
        queue_limits=(*program.queue_limits, *(name for _, name, _ in sides)),
        stated=(*program.stated, *rows),
    )


def _sides(name: str, sense: Sense | None) -> list[tuple[str, int]]:
    return [(name, 1)] if sense is None else [(name_of(name, sense, sign), sign) for sign in SIGNS[sense]]


def _positions(names: tuple[str, ...], among: tuple[str, ...]) -> IntArray:
    """Return the position of each name among others, -1 of those that are not there."""
    if names is among or names == among:
        return np.arange(len(names))
    place = {name: k for k, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], np.int64)


def _by_label(program: Program, where: str, coefficients: Mapping[Any, Any]) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    places = [{label: k for k, label in enumerate(labels)} for labels in (program.users, program.servers)]
    at = []
    for key in coefficients:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InvalidInstance(f"{where}: {written(key)} is no pair; give coefficients by (user, server)")
        for label, place, word in zip(key, places, ("user", "server"), strict=True):
            if label not in place:
                raise InvalidInstance(f"{where}: there is no {word} {written(label)}{did_you_mean(str(label), place)}")
        at.append((places[0][key[0]], places[1][key[1]]))
    table = np.array(at, np.int64).reshape(-1, 2)
    values = np.empty(len(coefficients), dtype=object)
    values[:] = list(coefficients.values())
    return table[:, 0], table[:, 1], values


def _by_pair(program: Program, where: str, coefficients: npt.ArrayLike) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    try:
        values = np.asarray(coefficients)
        shape = values.shape
    except ValueError:
        shape = None
    if shape != (program.n_pairs,):
        found = "no array of numbers" if shape is None else f"of shape {shape}"
        raise InvalidInstance(
            f"{where}: its coefficients are {found}; give one for each eligible pair, shape ({program.n_pairs},), in the "
            "order of program.pair_users and program.pair_servers, or a mapping (user, server) -> coefficient"
        )
    used = np.array([bool(value != 0) for value in values.tolist()], bool) if values.dtype == object else values != 0
    return program.pair_users[used], program.pair_servers[used], values[used]


def _is_finite(value: Any) -> bool:
    number: Any = value
    return isinstance(value, Real) and not isinstance(value, bool) and bool(abs(number) <= sys.float_info.max)


def _is_amount(value: Any) -> bool:
    return _is_finite(value) and bool(value >= 0)


def _is_taken(program: Program, name: str) -> bool:
    if name in program.queue_limits:
        return True
    known = any(word in name for word in (" @ ", "tasks of ", "time of ", "servers of ", "slice of ", "past of "))
    return known and any(program.limit_name(row) == name for row in range(len(program.limits)))
