"""Limits in fractions: each coefficient and bound is computed anew from the instance, by the kind of its limit.

Every limit is known by its kind and its keys, and every column by its pair:

=============  ================================================  ===================
kind           coefficient of the pair (n, i)                    bound
=============  ================================================  ===================
capacity       d[n,r]                                            counts[i] c[i,r]
time           1 / gamma[n,i]                                    1
tasks          1                                                 T[n]
parallelism    1 / rho[n,i]                                      P[n]
slice          1, or of a resource of the cluster d[n,r]         given by the notion
queue          d[n,r] of the limit's resource                    the limit, or what a set of queues leaves (`kept_parts`)
limit          d[n,r], the amount given, or 1                    that of the named limit
shared         d[n,r]                                            S[r]
rule           a[n,i] with the sign of its side                  that of the rule
=============  ================================================  ===================

A row that the notion gives itself is taken as it was stated (`fairopt.Program.with_limit`), or each float by its shortest decimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fairopt.errors import Unsupported
from fairopt.instance import Instance, IntArray
from fairopt.instance.by_server import Kinds
from fairopt.instance.fractions import ExactArray, fraction_of, fractions_of, rational, rationals
from fairopt.instance.rule_rows import RuleRow, rule_rows
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.program import Program
from fairopt.program.queue_limits import Row
from fairopt.program.rule_limits import SIGNS, name_of
from fairopt.program.stated_rows import StatedRow

__all__ = ["exact_rows"]

_Numbers: TypeAlias = tuple[Any, Any]
"""The coefficients of a limit, one for each of its pairs or one for all, and its bound."""


def exact_rows(
    program: Program, limits: Limits, instance: Instance, rows_of_queues: Sequence[Row | None], slices: ExactArray | None = None
) -> tuple[ExactArray, ExactArray]:
    """Return the coefficients, (entries,), and the bounds, (limits,), of limits over the pairs of a program, in fractions.

    The first key of a limit of a queue is its position among ``rows_of_queues``; None: a row of the notion's own.

    Raises
    ------
    Unsupported
        Slices whose bounds are not given in fractions.
    """
    sources = _Sources(program, instance, rows_of_queues, None if slices is None else iter(slices.tolist()))
    matrix = limits.matrix
    data, bounds = np.empty(matrix.nnz, dtype=object), np.empty(len(limits), dtype=object)
    for k, (kind, keys) in enumerate(zip(limits.kinds.tolist(), limits.keys.tolist(), strict=True)):
        span = slice(int(matrix.indptr[k]), int(matrix.indptr[k + 1]))
        limit = _Limit(keys, matrix.indices[span])
        numbers = _BY_KIND[kind](sources, limit) if kind in _BY_KIND else None
        data[span], bound = numbers or (rationals(fractions_of(matrix.data[span])), fraction_of(limits.bounds[k]))
        bounds[k] = rational(bound)
    return data, bounds


@dataclass(frozen=True, slots=True, eq=False)
class _Limit:
    """The two keys of a limit (`LimitKind`), and the pairs that it has an entry for."""

    keys: Sequence[int]
    pairs: npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class _Sources:
    """Where the numbers of limits come from. A method for each kind of limit returns its numbers, None where the notion gave them."""

    program: Program
    instance: Instance
    rows_of_queues: Sequence[Row | None]
    slices: Iterator[Any] | None  # the bounds of the slices, in the order of the limits

    @cached_property
    def kinds(self) -> Kinds:
        """Demands by kind of server, as rationals."""
        return Kinds(rationals(self.instance.demands_by_kind), self.instance.kind_of)

    @cached_property
    def capacities(self) -> ExactArray:
        """Capacity of each row of servers, (servers, resources)."""
        return self.instance.row_capacity

    @cached_property
    def rates(self) -> ExactArray:
        """Gamma, (users, servers): the tasks that a user could run alone on a row of servers."""
        return self.instance.rates

    @cached_property
    def rates_of_one(self) -> ExactArray:
        """Rho, (users, servers): the same on one server of the row."""
        return self.instance.rates_of_one

    @cached_property
    def rules(self) -> Mapping[str, tuple[int, RuleRow]]:
        """The rules of the instance by the names of their sides, each with the sign of that side."""
        return {
            name_of(each.rule.text, each.rule.sense, sign): (sign, each)
            for each in rule_rows(self.instance)
            for sign in SIGNS[each.rule.sense]
        }

    @cached_property
    def stated(self) -> Mapping[str, tuple[StatedRow, int]]:
        """The rows that somebody stated, by the names of their sides, each with the sign of that side."""
        return {name: (row, sign) for row in self.program.stated for name, sign in row.sides}

    def users_and_servers(self, limit: _Limit) -> tuple[IntArray, IntArray]:
        """Return the users and servers of the pairs of a limit."""
        return self.program.pair_users[limit.pairs], self.program.pair_servers[limit.pairs]

    def demands(self, limit: _Limit, resource: int) -> Any:
        """Return what a task of each pair takes of a resource."""
        return self.kinds.of_pairs(*self.users_and_servers(limit), resource)

    def of_capacity(self, limit: _Limit) -> _Numbers:
        server, resource = limit.keys
        return self.demands(limit, resource), self.capacities[server, resource]

    def of_time(self, limit: _Limit) -> _Numbers:
        return _inverse(self.rates[self.users_and_servers(limit)]), 1

    def of_tasks(self, limit: _Limit) -> _Numbers:
        return rational(1), self.instance.tasks[limit.keys[0]]

    def of_parallelism(self, limit: _Limit) -> _Numbers:
        return _inverse(self.rates_of_one[self.users_and_servers(limit)]), self.instance.parallelism[limit.keys[0]]

    def of_slice(self, limit: _Limit) -> _Numbers:
        if self.slices is None:
            raise Unsupported(
                f'"{self.program.name}" gives no slices in fractions; leave exact out, or give them as rows of the kind LimitKind.NAMED'
            )
        resource = limit.keys[1] - self.instance.n_servers
        of_cluster = resource >= 0 and self.kinds.demands.shape[1] > 1
        return self.demands(limit, resource) if of_cluster else rational(1), next(self.slices)

    def of_shared(self, limit: _Limit) -> _Numbers:
        resource = limit.keys[0]
        return self.demands(limit, resource), self.instance.shared_capacity[resource - self.instance.n_server_resources]

    def of_queue(self, limit: _Limit) -> _Numbers | None:
        row = self.rows_of_queues[limit.keys[0]]
        return None if row is None else (self.demands(limit, row.resource) if row.resource >= 0 else rational(1), row.bound)

    def of_limit(self, limit: _Limit) -> _Numbers | None:
        row = self.rows_of_queues[limit.keys[0]]
        return None if row is None else (rationals(row.coefficients(self.instance.kinds, *self.users_and_servers(limit))), row.bound)

    def of_named(self, limit: _Limit) -> _Numbers | None:
        stated = self.stated.get(self.program.queue_limits[limit.keys[0]])
        if stated is None:
            return None
        numbers, bound = stated[0].in_fractions(self.program, limit.pairs.tolist(), stated[1])
        return rationals(np.array(numbers, dtype=object)), bound

    def of_rule(self, limit: _Limit) -> _Numbers | None:
        stated = self.of_named(limit)
        known = self.rules.get(self.program.queue_limits[limit.keys[0]])
        if stated is not None or known is None:
            return stated
        sign, row = known
        return rationals(row.coefficients(self.instance, *self.users_and_servers(limit)) * sign), row.rule.bound * sign


def _inverse(values: ExactArray) -> ExactArray:
    return rationals([1 / value for value in values])


_BY_KIND: Mapping[int, Callable[[_Sources, _Limit], _Numbers | None]] = {
    LimitKind.CAPACITY: _Sources.of_capacity,
    LimitKind.TIME: _Sources.of_time,
    LimitKind.TASKS: _Sources.of_tasks,
    LimitKind.PARALLELISM: _Sources.of_parallelism,
    LimitKind.SLICE: _Sources.of_slice,
    LimitKind.SHARED: _Sources.of_shared,
    LimitKind.QUEUE: _Sources.of_queue,
    LimitKind.LIMIT: _Sources.of_limit,
    LimitKind.NAMED: _Sources.of_named,
    LimitKind.RULE: _Sources.of_rule,
}
