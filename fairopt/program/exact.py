"""A program in fractions: the float program gives the structure, the instance in fractions gives the numbers.

`fairopt.program.exact_limits` says how each coefficient and bound of a limit is computed.
Numbers are rationals of FLINT in arrays of objects.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
>>> notion = fo.NOTIONS["drf"]()
>>> program = notion.in_fractions(instance.exact, notion.formulate(instance, sharing="rdm", integral=False))
>>> program.utilities
array([2/9, 1/3], dtype=object)
>>> program.usage(rationals([3, 2]))
array([9, 14], dtype=object)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairopt.instance import BoolArray, Instance, IntArray
from fairopt.instance.fractions import ExactArray, fraction_of, from_rationals, rational, rationals
from fairopt.program.exact_limits import exact_rows
from fairopt.program.goals import AlphaFair, ExactDisjunctive, Goal, Separate, Tradeoff
from fairopt.program.kept_parts import KeptParts, KeptRow
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.program import Program
from fairopt.program.queue_limits import limit_rows, stack_rows
from fairopt.program.tree_filling import Part

if TYPE_CHECKING:
    from flint import fmpq

__all__ = ["ExactProgram", "exact_powers"]

G = TypeVar("G")


@dataclass(frozen=True, slots=True, eq=False)
class ExactProgram:
    """A program in fractions.

    Attributes
    ----------
    program : Program
        The same in floats. Only its structure counts: pairs, the kinds and keys of limits and where their entries are, names.
    instance : Instance
        In fractions (`fairopt.Instance.exact`).
    utilities : array (pairs,)
        u[p] > 0.
    data : array (entries,)
        Coefficients of the limits, in the order of ``program.limits.matrix``.
    bounds : array (limits,)
    goal : Goal
        In fractions.
    kept : KeptParts or None
        What queues keep, in fractions.
    """

    program: Program
    instance: Instance
    utilities: ExactArray
    data: ExactArray
    bounds: ExactArray
    goal: Goal | ExactDisjunctive
    kept: KeptParts | None = None

    @classmethod
    def of(cls, program: Program, instance: Instance, utilities: ExactArray, goal: Goal, slices: ExactArray | None = None) -> ExactProgram:
        """Return a program in fractions.

        Parameters
        ----------
        program : Program
        instance : Instance
            In fractions.
        utilities : array (pairs,)
        goal : Goal
            In fractions.
        slices : array (slices,), optional
            Bounds of the limits of kind "slice", in their order.
        """
        kept = KeptParts.of(instance) if program.kept is not None else None
        known = {row.name: row for row in (*limit_rows(instance), *(() if kept is None else map(kept.row, program.kept_rows)))}
        data, bounds = exact_rows(program, program.limits, instance, [known.get(name) for name in program.queue_limits], slices)
        return cls(program, instance, rationals(utilities), data, bounds, goal, kept)

    def broken_rows(self, *points: ExactArray) -> tuple[KeptRow, ...]:
        """Return the rows of what queues keep that points, (pairs,), exceed; as `Program.broken_rows`, and those that are limits, too."""
        if self.kept is None:
            return ()
        return tuple(dict.fromkeys(each for x in points for each in self.kept.broken(lambda servers: self._tasks_on(x, servers))))  # noqa: B023

    def _tasks_on(self, x: ExactArray, servers: BoolArray) -> ExactArray:
        """Return the tasks of each user on some servers as Fractions."""
        there = x.copy()
        there[~servers[self.program.pair_servers]] = rational(0)
        return from_rationals(self.per_user(there))

    def with_broken(self, *points: ExactArray) -> ExactProgram | None:
        """Return the program with the rows of what queues keep that points exceed and that are no limits yet; None if there are none."""
        more = [each for each in self.broken_rows(*points) if each not in self.program.kept_rows]
        if not more:
            return None
        assert self.kept is not None
        longer, rows = self.program.with_kept_rows(more), [self.kept.row(each) for each in more]
        added = stack_rows(self.kept.kinds, rows, self.program.pair_users, self.program.pair_servers)
        data, bounds = exact_rows(self.program, added, self.instance, rows)
        return replace(self, program=longer, data=np.concatenate([self.data, data]), bounds=np.concatenate([self.bounds, bounds]))

    def goal_as(self, kind: type[G]) -> G:
        """Return the goal of a program whose goal is known to be of this kind, as `Program.goal_as`."""
        if not isinstance(self.goal, kind):
            raise TypeError(f"the goal of {self.program.name} is {type(self.goal).__name__}, not {kind.__name__}")
        return self.goal

    @property
    def n_pairs(self) -> int:
        """Number of columns."""
        return self.program.n_pairs

    @property
    def rows(self) -> IntArray:
        """The limit of each entry of ``data``, (entries,)."""
        limits = self.program.limits
        return np.repeat(np.arange(len(limits)), np.diff(limits.matrix.indptr))

    @property
    def columns(self) -> IntArray:
        """The pair of each entry of ``data``, (entries,)."""
        return np.asarray(self.program.limits.matrix.indices, np.int64)

    def per_user(self, values: ExactArray) -> ExactArray:
        """Return the sum of values, (pairs,), over the pairs of each user, (users,)."""
        return _sums(values, self.program.pair_users, len(self.program.users))

    def table(self, x: ExactArray) -> ExactArray:
        """Return a value per pair as a table of Fractions, (users, servers)."""
        names = self.program
        table = np.full((len(names.users), len(names.servers)), Fraction(0), dtype=object)
        table[names.pair_users, names.pair_servers] = from_rationals(x)
        return table

    def usage(self, x: ExactArray) -> ExactArray:
        """Return A x, (limits,)."""
        return _sums(self.data * x[self.columns], self.rows, self.bounds.size)

    def cost(self, prices: ExactArray) -> ExactArray:
        """Return A' p, (pairs,)."""
        return _sums(self.data * prices[self.rows], self.columns, self.n_pairs)

    def largest(self) -> list[fmpq | float]:
        """Return the largest value that each column can take by itself, min over limits of b / a, (pairs,); inf without a limit."""
        largest: list[fmpq | float] = [float("inf")] * self.n_pairs
        ruled = (self.program.limits.kinds == LimitKind.RULE).tolist()
        for row, column, value in zip(self.rows.tolist(), self.columns.tolist(), self.data.tolist(), strict=True):
            if ruled[row]:
                continue
            room = self.bounds[row] / value
            if isinstance(largest[column], float) or room < largest[column]:
                largest[column] = room
        return largest

    def part(self, server: int, x: ExactArray) -> tuple[ExactProgram, IntArray, IntArray]:
        """Return the program over one server's columns, with x fixed elsewhere, the positions of these columns, and those of its limits."""
        assert isinstance(self.goal, Separate)
        columns = np.flatnonzero(self.program.pair_servers == server)
        rest = x.copy()
        rest[columns] = rational(0)
        here = np.isin(self.columns, columns)
        kept = np.unique(self.rows[here])
        part = self.program.part(server, np.zeros(self.n_pairs))[0]
        assert len(part.limits) == kept.size
        return (
            replace(
                self,
                program=part,
                utilities=self.utilities[columns],
                data=self.data[here],
                bounds=(self.bounds - self.usage(rest))[kept],
                goal=self.goal.goal,
            ),
            columns,
            kept,
        )

    @property
    def rules(self) -> frozenset[int]:
        """The limits of any sign, by position."""
        return frozenset(np.flatnonzero(self.program.limits.kinds == LimitKind.RULE).tolist())

    @property
    def indptr(self) -> IntArray:
        """Where the entries of each limit begin, (limits + 1,)."""
        return np.asarray(self.program.limits.matrix.indptr, np.int64)

    def during(self, part: Part, given: ExactArray | None) -> ExactProgram:
        """Return the program with the extra limits of a part of a filling behind its own; None: with their own bounds."""
        if part.extra is None or not len(part.extra):
            return self
        data, bounds = exact_rows(self.program, part.extra, self.instance, part.rows)
        keys = part.extra.keys.copy()
        keys[:, 0] += len(self.program.queue_limits)
        names = self.program.queue_limits + part.names
        limits = Limits.stack([self.program.limits, replace(part.extra, keys=keys)])
        return replace(
            self,
            program=replace(self.program, limits=limits, queue_limits=names),
            data=np.concatenate([self.data, data]),
            bounds=np.concatenate([self.bounds, bounds if given is None else given]),
        )


def exact_powers(goal: AlphaFair | Tradeoff) -> tuple[fmpq, fmpq]:
    """Return alpha and 0, or beta of a trade-off and its e = 1 - (1 - beta) / (beta lam), as the decimals that they were given as.

    The default of lam is 2 (1 - beta) / beta, for which e is 1/2 exactly, also where that is no decimal.
    """
    if isinstance(goal, AlphaFair):
        return rational(fraction_of(goal.alpha)), rational(0)
    beta = fraction_of(goal.beta)
    least = (1 - beta) / beta
    in_floats = (1 - goal.beta) / goal.beta
    times = next((k for k in (1, 2) if goal.lam == k * in_floats), None)
    lam = fraction_of(goal.lam) if times is None else times * least
    return rational(beta), rational(1 - least / lam)


def _sums(values: ExactArray, place: IntArray, size: int) -> ExactArray:
    """Return the sums of values by place, (size,)."""
    sums = [rational(0)] * size
    for k, value in zip(place.tolist(), values.tolist(), strict=True):
        if value != 0:
            sums[k] = sums[k] + value
    result = np.empty(size, dtype=object)
    result[:] = sums
    return result
