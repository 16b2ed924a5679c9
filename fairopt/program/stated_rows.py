r"""Rows that somebody states for a program: by name, with a coefficient for each pair of user and server, and a bound.

    sum of a[n,i] x[n,i] <= b,        a >= 0, b >= 0

A `StatedRow` holds its coefficients by label, and as they were given: ints and Fractions stay what they are. So the same row can be put on
the program of another instance, where a user has left or a server has been split, and on a program in fractions.

>>> import fairopt as fo
>>> program = fo.formulate(fo.Instance([[4], [4]], [[1], [1]], users=["a", "b"], servers=["s", "t"]), "drfh")
>>> row = StatedRow.of(program, "a on s", {("a", "s"): 2}, 3)
>>> row.over(program)
(array([0]), array([2.]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, IntArray
from fairopt.program.limits import LimitKind, Limits
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
    """

    name: str
    users: tuple[str, ...]
    servers: tuple[str, ...]
    at_users: IntArray
    at_servers: IntArray
    values: npt.NDArray[Any]
    bound: Any

    @classmethod
    def of(cls, program: Program, name: str, coefficients: Mapping[tuple[str, str], Any] | npt.ArrayLike, bound: Any) -> StatedRow:
        """Return the row of these coefficients, by labels or in the order of the pairs of the program.

        Raises
        ------
        InvalidInstance
            The name is empty or taken, a label is unknown, the array has another shape, or a number is negative or not finite.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidInstance(f"the name of a limit is {written(name)}; give a text that says what it limits")
        if _is_taken(program, name):
            raise InvalidInstance(f"the program has a limit {named(name)} already; give this one another name")
        if isinstance(coefficients, Mapping):
            at_users, at_servers, values = _by_label(program, name, coefficients)
        else:
            at_users, at_servers, values = _by_pair(program, name, coefficients)
        for n, i, value in zip(at_users.tolist(), at_servers.tolist(), values.tolist(), strict=True):
            if not _is_amount(value):
                raise InvalidInstance(
                    f"the limit {named(name)}: the coefficient of {named(program.users[n])} on {named(program.servers[i])} is "
                    f"{written(value)}; give finite numbers >= 0"
                )
        if not _is_amount(bound):
            raise InvalidInstance(f"the limit {named(name)}: its bound is {written(bound)}; give a finite number >= 0")
        kept = np.array([value > 0 for value in values.tolist()], bool)
        return cls(name, program.users, program.servers, at_users[kept], at_servers[kept], values[kept], bound)

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
    """Return the program with these rows as limits behind its own."""
    found = [row.over(program) for row in rows]
    ends = np.concatenate([[0], np.cumsum([pairs.size for pairs, _ in found])])
    columns = np.concatenate([np.zeros(0, np.int64), *(pairs for pairs, _ in found)])
    values = np.concatenate([np.zeros(0), *(numbers for _, numbers in found)])
    matrix = sp.csr_array((values, columns, ends), shape=(len(rows), program.n_pairs))
    first = len(program.queue_limits)
    more = Limits.of(LimitKind.NAMED, matrix, [float(row.bound) for row in rows], np.arange(first, first + len(rows)))
    return replace(
        program,
        limits=Limits.stack([program.limits, more]),
        queue_limits=(*program.queue_limits, *(row.name for row in rows)),
        stated=(*program.stated, *rows),
    )


def _positions(names: tuple[str, ...], among: tuple[str, ...]) -> IntArray:
    """Return the position of each name among others, -1 of those that are not there."""
    if names is among or names == among:
        return np.arange(len(names))
    place = {name: k for k, name in enumerate(among)}
    return np.array([place.get(name, -1) for name in names], np.int64)


def _by_label(program: Program, name: str, coefficients: Mapping[Any, Any]) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    places = [{label: k for k, label in enumerate(labels)} for labels in (program.users, program.servers)]
    at = []
    for key in coefficients:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InvalidInstance(f"the limit {named(name)}: {written(key)} is no pair; give coefficients by (user, server)")
        for label, place, word in zip(key, places, ("user", "server"), strict=True):
            if label not in place:
                raise InvalidInstance(f"the limit {named(name)}: there is no {word} {written(label)}{did_you_mean(str(label), place)}")
        at.append((places[0][key[0]], places[1][key[1]]))
    table = np.array(at, np.int64).reshape(-1, 2)
    values = np.empty(len(coefficients), dtype=object)
    values[:] = list(coefficients.values())
    return table[:, 0], table[:, 1], values


def _by_pair(program: Program, name: str, coefficients: npt.ArrayLike) -> tuple[IntArray, IntArray, npt.NDArray[Any]]:
    try:
        values = np.asarray(coefficients)
        shape = values.shape
    except ValueError:
        shape = None
    if shape != (program.n_pairs,):
        found = "no array of numbers" if shape is None else f"of shape {shape}"
        raise InvalidInstance(
            f"the limit {named(name)}: its coefficients are {found}; give one for each eligible pair, shape ({program.n_pairs},), in the "
            "order of program.pair_users and program.pair_servers, or a mapping (user, server) -> coefficient"
        )
    used = np.array([bool(value != 0) for value in values.tolist()], bool) if values.dtype == object else values != 0
    return program.pair_users[used], program.pair_servers[used], values[used]


def _is_amount(value: Any) -> bool:
    number: Any = value
    return isinstance(value, Real) and not isinstance(value, bool) and bool(0 <= number < float("inf"))


def _is_taken(program: Program, name: str) -> bool:
    if name in program.queue_limits:
        return True
    known = any(word in name for word in (" @ ", "tasks of ", "time of ", "servers of ", "slice of ", "past of "))
    return known and any(program.limit_name(row) == name for row in range(len(program.limits)))
