"""An oracle of trees of queues: shares by the definition, one LP of SciPy a level, and nothing of fairopt but the data of an instance.

``python tests/queue_oracle.py --instances 200`` compares `fairopt.solve` with it; tests/solving/test_queues.py runs a fixed sample.

*Rates.* A node v with rate R hands R w[c] / m[v] to each child c that rises. m[v] is the sum of their weights ("sum"), or the largest entry
of V = sum of w[c] e[c] over them ("dominant"). e[v] = V / m[v], and e[n] is the part of the cluster that one unit of the share of user n
takes. In the surplus the root's children rise at w. In the stage of a guarantee the guaranteed nodes rise at the dominant share of it.
Of the children of a listed queue only the first that has not stopped rises.

*A level.* Maximise tau such that some allocation has s[n] >= S[n] + rate[n] tau for everybody (rate[n] = 0 for users who do not rise). A
user who rises stops at this level if no allocation gives it more while all others keep theirs: one more LP for each user.

*What queues keep.* A queue with a lending limit keeps kept[v] = guarantee - lending limit. The LPs have a column z for each node, resource
and group of servers where somebody keeps something: z[v] >= kept[v], z[v] >= use of v's own users + sum of z[c] over the queues c right
below it, and the root's z is at most the capacity there. In fractions all rows of the family are written down (`reference.kept`).

*Stages.* The guarantees from the inside out (the stage of a node is the longest chain of guaranteed nodes below it), with extra limits that
are dropped afterwards; then the surplus, tier by tier.

*Rules* of any sign are rows like all others. What users hold follows from their shares no more: they may hold more. An extra limit is
raised to the least that nodes can hold with the shares that they have, an LP; where two such limits cannot be least together, there is
no answer.

*Floors.* First, how far guarantees are met together: what each node asks for and could hold alone are stages for it alone; the parts are a
leximin by LPs. A level has a second allocation y, without the extra limits, that has all shares and meets every floor. Floors are always
there, also where they change nothing.

`shares` uses floats, and `exact_shares` fractions: the same LPs by `reference.simplex`. On one server where floors change nothing it needs
none (`OneServer`): every limit is then a row over the tasks of the users, all others keep their shares by standing still, and a level is
the smallest ratio of what a limit has left to what rises within it. As a program, this module asks in floats; fractions judge where the
floats differ from fairopt or have no answer.

`nested` is the other reading of a tree. `by_yarn`, `by_kai` and `by_htcondor` divide one resource of one server from the top down or from
the bottom up, as these systems describe it; they share no code with the rest.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from instances import demands_with_zeros, with_lenders
from reference.kept import all_rows, kept_of
from reference.linear import TIGHT, optimum
from reference.named_limits import rows_of_limits
from reference.open_rows import DrawnRule, rows_of_rules
from reference.simplex import maximise

import fairopt as fo

__all__ = [
    "Oracle",
    "ask",
    "by_htcondor",
    "by_kai",
    "by_yarn",
    "constructor",
    "difference",
    "exact_shares",
    "gap",
    "leximin",
    "nested",
    "random_pool",
    "random_tree",
    "share_per_task",
    "shares",
    "smaller",
    "tasks_alone",
    "with_orders",
]

Number = Any  # float, or Fraction where an answer is exact
Guarantees = Literal["surplus", "clamp"]
QueueShare = Literal["dominant", "sum"]

_BLOCKED = 1e-8  # a user stops if it could rise by a smaller part of what it could have alone
_CAUGHT_UP = 1e-9  # two shares over weights that differ by a smaller part are equal


# The tree as plain lists ---------------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """The root, a queue or a user."""

    weight: Number
    parent: int
    depth: int
    tier: int = 0
    queue: fo.Queue | None = None
    user: int | None = None
    children: list[int] = field(default_factory=list)
    users: list[int] = field(default_factory=list)  # all below, at any depth
    stage: int = 0  # of its guarantee, from 1


def nodes_of(instance: fo.Instance, number: Callable[[Any], Number] = float) -> list[Node]:
    """Return the root, the queues in their order and the users in theirs."""
    names: list[str | None] = [None, *(queue.name for queue in instance.queues)]
    nodes = [Node(number(1), -1, 0)]
    nodes += [Node(number(queue.weight), names.index(queue.parent), -1, queue.tier, queue) for queue in instance.queues]
    for n, (weight, name) in enumerate(zip(instance.weights, instance.queue_of, strict=True)):
        nodes.append(Node(number(weight), names.index(name), -1, user=n))
    order = [0]
    for v in order:  # grows: the children of each node after the node
        nodes[v].children = [c for c, node in enumerate(nodes) if node.parent == v]
        for c in nodes[v].children:
            nodes[c].depth = nodes[v].depth + 1
            nodes[c].tier = nodes[c].tier or nodes[v].tier
        order += nodes[v].children
    for v in reversed(order):
        user, queue = nodes[v].user, nodes[v].queue
        inner = max((nodes[c].stage for c in below(nodes, v)), default=0)
        promised = instance.guarantees[user] > 0 if user is not None else queue is not None and bool(guaranteed(queue, instance))
        nodes[v].stage = inner + 1 if promised else 0
        nodes[v].users = sorted(n for c in nodes[v].children for n in nodes[c].users) if user is None else [user]
    return nodes


def below(nodes: Sequence[Node], v: int) -> list[int]:
    """Return the nodes below a node."""
    return [d for c in nodes[v].children for d in (c, *below(nodes, c))]


def guaranteed(queue: fo.Queue, instance: fo.Instance) -> dict[int, list[tuple[Any, list[int]]]]:
    """Return what a queue is guaranteed: by resource the amounts, each with its servers."""
    named: dict[int, list[tuple[Number, list[int]]]] = {}
    for quota, servers in quotas_of(queue, instance):
        for name, amount in quota.guarantee.items():
            if amount > 0:
                named.setdefault(instance.resources.index(name), []).append((amount, servers))
    return named


# What is allowed -----------------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """The sum of use[n, i] x[n, i] is at most the bound."""

    use: Any  # (users, servers)
    bound: Number


def quotas_of(queue: fo.Queue, instance: fo.Instance) -> Iterator[tuple[Any, list[int]]]:
    """Yield the quota of a queue on the whole cluster and those on groups, each with the positions of its servers."""
    yield queue, list(range(instance.n_servers))
    for quota in queue.quotas:
        yield quota, [instance.servers.index(name) for name in quota.servers]


class Cluster:
    """Demands, capacities and the rows of what is allowed at every moment, as floats or fractions."""

    def __init__(
        self,
        instance: fo.Instance,
        nodes: Sequence[Node],
        share: Any,
        number: Callable[[Any], Number],
        large: bool = False,
        rules: Sequence[DrawnRule] = (),
    ) -> None:
        self.instance = instance
        self.nodes = nodes
        self.number = number
        kind = object if number is Fraction else float
        self.demands = np.array([[number(v) for v in row] for row in instance.demands], kind)
        rows = zip(instance.counts, instance.capacities, strict=True)
        self.capacity = np.array([[number(count) * number(v) for v in row] for count, row in rows], kind)
        of_cluster = np.array([number(amount) for amount in instance.shared.values()], kind)
        self.total = np.concatenate([self.capacity.sum(axis=0), of_cluster])
        share = np.asarray(share)
        self.same_everywhere = share.ndim == 1
        wide = np.broadcast_to(share[:, None] if share.ndim == 1 else share, (instance.n_users, instance.n_servers))
        self.share = np.array([[number(v) for v in row] for row in np.where(instance.eligibility, wide, 0.0)], kind)
        self.able = [n for n in range(instance.n_users) if instance.eligibility[n].any()]
        everybody, everywhere = range(instance.n_users), range(instance.n_servers)
        columns = self.capacity.shape[1]
        pairs = [([i], r, self.capacity[i, r]) for i in everywhere for r in range(columns)]
        pairs += [(list(everywhere), columns + r, amount) for r, amount in enumerate(of_cluster)]
        self.rows = [self.row(everybody, r, there, amount) for there, r, amount in pairs if not large or amount == 0]
        for n in self.able:
            own = np.zeros_like(self.share)
            own[n] = number(1)
            if np.isfinite(instance.tasks[n]):
                self.rows.append(Row(own, number(instance.tasks[n])))
            if np.isfinite(instance.parallelism[n]):
                busy = np.zeros_like(self.share)
                for i in np.flatnonzero(instance.eligibility[n]):
                    pairs_of = zip(self.demands[n], instance.capacities[i], strict=False)
                    busy[n, i] = max((d / number(c) for d, c in pairs_of if d > 0 and c > 0), default=number(0))
                self.rows.append(Row(busy, number(instance.parallelism[n])))
        for node in nodes:
            if node.queue is None:
                continue
            for quota, servers in quotas_of(node.queue, instance):
                for name, amount in quota.limit.items():
                    self.rows.append(self.row(node.users, instance.resources.index(name), servers, number(amount)))
        self.rows += [Row(row.use, row.bound) for row in rows_of_limits(instance, number)]
        self.ruled = bool(rules)
        self.rows += [Row(np.array(use, kind), bound) for use, bound in rows_of_rules(instance, rules, number)]
        self.kept = [] if large else kept_of(instance, number)

    def row(self, users: Sequence[int], resource: int, servers: Sequence[int], bound: Number) -> Row:
        """Return the row that limits the usage of a resource by some users on some servers."""
        use = np.zeros_like(self.share)
        for n in users:
            use[n, servers] = self.demands[n, resource]
        return Row(use, bound)

    def held(self, share: Sequence[Number], users: Sequence[int], resource: int, servers: Sequence[int]) -> Number:
        """Return how much of a resource some users hold on some servers, where that follows from their shares."""
        amount = self.number(0)
        for n in users:
            if share[n] == 0 or self.demands[n, resource] == 0:
                continue
            own = np.flatnonzero(self.instance.eligibility[n])
            inside = set(own) <= set(servers)
            worth = set(self.share[n, own])
            if len(worth) > 1 or (not inside and set(own) & set(servers)):
                raise ValueError("a later stage would depend on where the tasks of an earlier one are")
            if inside:
                amount += self.demands[n, resource] * share[n] / worth.pop()
        return amount


# One level -----------------------------------------------------------------------------------------------------------------------


@lru_cache(20_000)
def _best(lines: bytes, bounds: bytes) -> tuple[float, Any]:
    """Return the optimum and the point of an LP: its goal, which is maximised, and then its rows, as bytes of an array.

    How a surplus is divided changes nothing in the LPs of guarantees, so that two questions about one tree have most LPs in common.
    """
    right = np.frombuffer(bounds)
    table = np.frombuffer(lines).reshape(right.size + 1, -1)
    attempts: tuple[dict[str, Any], ...] = (TIGHT, TIGHT | {"presolve": "off"}, {})
    for settings in attempts:
        found = optimum(table[0], table[1:], right, **settings)
        if found.x is not None:
            return found.value, found.x
    raise ArithmeticError(found.status)


class LinearPrograms:
    """Levels by LPs. Columns: tasks of each eligible pair, as parts of what the user could run alone there; then tau.

    Behind them are those of z, and behind these the tasks of y and its z. In fractions columns are tasks.
    """

    def __init__(self, cluster: Cluster) -> None:
        instance, self.exact = cluster.instance, cluster.number is Fraction
        self.cluster = cluster
        alone = np.minimum(instance.rates, np.minimum(instance.tasks, within_shared(instance))[:, None])
        self.users, self.servers = np.nonzero(instance.eligibility & (alone > 0))
        self.unit = np.array([Fraction(1)] * self.users.size, object) if self.exact else alone[self.users, self.servers]
        worth = cluster.share[self.users, self.servers] * self.unit
        self.scale = np.array([cluster.number(1)] * instance.n_users)
        for n in cluster.able if not self.exact else ():
            self.scale[n] = worth[self.users == n].max(initial=0.0) or 1.0
        self.worth = worth / self.scale[self.users]
        self.block = self.users.size + len(cluster.kept) * len(cluster.nodes)
        self.width = 2 * self.block + 1  # x and z, tau, y and its z
        self.caps: list[Row] = []  # of users who rise for one guarantee alone: beyond it they complete no other

    def _line(self, pairs: Any, *, completion: bool = False, tau: Number = 0) -> Any:
        """Return a row of these coefficients of the tasks of x, or of y, and of tau."""
        line = np.full(self.width, self.cluster.number(0))
        line[self.users.size] = tau
        first = self.block + 1 if completion else 0
        line[first : first + self.users.size] = pairs
        return line

    def _own(self, n: int) -> Any:
        """Return the level of a user as coefficients of its tasks."""
        return np.where(self.users == n, self.worth, self.cluster.number(0))

    def _kept(self, completion: bool) -> Iterator[tuple[Any, float]]:
        """Yield the rows of the columns z, in parts of the capacity."""
        nodes = self.cluster.nodes
        for number, kept in enumerate(self.cluster.kept):
            unit = kept.capacity or self.cluster.number(1)
            first = self.users.size + 1 + number * len(nodes) + (self.block if completion else 0)
            for v, node in enumerate(nodes):
                own = self._line(0)
                own[first + v] = -1
                if v - 1 in kept.amounts:
                    yield own.copy(), -kept.amounts[v - 1] / unit
                if node.user is None:
                    own[[first + c for c in node.children]] = 1
                else:
                    mine = (self.users == node.user) & np.isin(self.servers, kept.servers)
                    own += self._line(mine * self.unit * self.cluster.demands[node.user, kept.resource] / unit, completion=completion)
                yield own, self.cluster.number(0)
            root = self._line(0)
            root[first] = 1
            yield root, kept.capacity / unit

    def _limits(self, extra: Sequence[Row], completion: bool = False) -> tuple[Any, Any]:
        matrix, bounds = [], []
        for row in (*self.cluster.rows, *extra):
            use = row.use[self.users, self.servers] * self.unit
            if use.any():
                by = abs(row.bound) or np.abs(use).max()
                matrix.append(self._line(use / by, completion=completion))
                bounds.append(row.bound / by)
        for line, bound in self._kept(completion):
            matrix.append(line)
            bounds.append(bound)
        return matrix, bounds

    def _is_met(self, floor: Row, share: Sequence[Number]) -> bool:
        """Do shares alone meet a floor? They only rise."""
        worth, held = self.cluster.share, self.cluster.number(0)
        for n in np.flatnonzero(floor.use.any(axis=1)).tolist():
            own = worth[n] > 0
            if len(set(worth[n, own])) > 1 or not (floor.use[n, own] > 0).all():
                return False
            held += floor.use[n].max() * share[n] / worth[n].max()
        return bool(held >= floor.bound * (1 - (0 if self.exact else 1e-13)))

    def _completion(self, floors: Sequence[Row], share: Sequence[Number]) -> tuple[list[Any], list[Number]]:
        """Return the rows of y: its limits, the floors, and that nobody has less than in x."""
        floors = [floor for floor in floors if not self._is_met(floor, share)]
        if not floors:
            return [], []
        matrix, bounds = self._limits((), completion=True)
        for floor in floors:
            if floor.bound > 0:
                matrix.append(self._line(-floor.use[self.users, self.servers] * self.unit / floor.bound, completion=True))
                bounds.append(self.cluster.number(-1) if self.exact else -1 + 1e-12)
        for cap in self.caps:
            matrix.append(self._line(cap.use[self.users, self.servers] * self.unit, completion=True))
            bounds.append(cap.bound)
        for n in self.cluster.able:
            matrix.append(self._line(self._own(n)) - self._line(self._own(n), completion=True))
            bounds.append(self.cluster.number(0) if self.exact else 1e-13)
        return matrix, bounds

    def least(self, share: Sequence[Number], rows: Sequence[Row], extra: Sequence[Row]) -> Number:
        """Return the smallest sum of what some rows count, beyond their bounds, where users have their shares and rows hold."""
        matrix, bounds = self._limits(extra)
        for n in self.cluster.able:
            matrix.append(-self._line(self._own(n)))
            bounds.append(-share[n] / self.scale[n] * (1 if self.exact else 1 - 1e-13))
        use = sum(row.use[self.users, self.servers] * self.unit for row in rows)
        return -self._maximise(-self._line(use), matrix, bounds)[0]

    def _maximise(self, goal: Any, matrix: Any, bounds: Any) -> Any:
        lines = [goal, *matrix]
        used = np.flatnonzero(np.any([np.asarray(line) != 0 for line in lines], axis=0))
        if self.exact:
            value, point = maximise(goal[used], [line[used] for line in matrix], bounds)
            x = np.full(self.width, Fraction(0))
            x[used] = point
            return value, x
        best, there = _best(np.array(lines, float)[:, used].tobytes(), np.array(bounds, float).tobytes())
        x = np.zeros(self.width)
        x[used] = there
        return best, x

    def largest_part(self, rising: Sequence[tuple[Row, Number]], kept: Sequence[Row], extra: Sequence[Row]) -> tuple[Number, list[int]]:
        """Return the largest part that all of some promises, (use, unit), can have, and those that cannot have more."""
        matrix, bounds = self._limits(extra)
        one = self.cluster.number(1)

        def at_least(use: Any, unit: Number, tau: Number) -> Any:
            return self._line(-use[self.users, self.servers] * self.unit / unit, tau=tau)

        near = 0 if self.exact else 1e-12
        for floor in kept:
            if floor.bound > 0:
                matrix.append(at_least(floor.use, floor.bound, 0))
                bounds.append(-one * (1 - near))
        rows = [at_least(row.use, unit, one) for row, unit in rising]
        goal = self._line(0, tau=one)
        tau, _ = self._maximise(goal, [*matrix, *rows], [*bounds, *[one * 0] * len(rows)])
        gains = []
        for k, (row, unit) in enumerate(rising):
            others = [at_least(other.use, size, 0) for j, (other, size) in enumerate(rising) if j != k]
            value, _ = self._maximise(-at_least(row.use, unit, 0), [*matrix, *others], [*bounds, *[-tau * (1 - near)] * len(others)])
            gains.append(value - tau)
        stopped = [k for k, gain in enumerate(gains) if gain <= (0 if self.exact else _BLOCKED)]
        return tau, stopped or [gains.index(min(gains))]

    def rise(
        self, share: Sequence[Number], rates: dict[int, Number], extra: Sequence[Row], most: Number, floors: Sequence[Row] = ()
    ) -> tuple[Number, dict[int, Number], set[int]]:
        """Return tau, at most ``most``, the shares of the users who rise, and those of them who stop there."""
        one = self.cluster.number(1)
        limits, bounds = self._limits(extra)
        more, more_bounds = self._completion(floors, share)
        limits, bounds = [*limits, *more], [*bounds, *more_bounds]
        fastest = max(rate / self.scale[n] for n, rate in rates.items())
        rows, least = [], []
        for n in self.cluster.able:
            rows.append(self._line(-self._own(n), tau=rates.get(n, 0 * one) / self.scale[n] / fastest))
            least.append(-share[n] / self.scale[n])
        goal = self._line(0, tau=one)
        if most is not None:
            limits.append(goal.copy())
            bounds.append(most * fastest)
        near = 0 if self.exact else 1e-13
        value, _ = self._maximise(goal, [*limits, *rows], [*bounds, *(bound * (1 - near) for bound in least)])
        tau = max(value, one * 0) / fastest
        if most is not None and tau >= most * (1 - (0 if self.exact else 1e-12)):
            return most, {n: share[n] + rate * most for n, rate in rates.items()}, set()
        reached: Any = {n: share[n] + rate * tau for n, rate in rates.items()}
        levels = np.array([-reached.get(n, share[n]) / self.scale[n] for n in self.cluster.able])
        still = [np.where(np.arange(self.width) == self.users.size, one * 0, row) for row in rows]
        gains: dict[int, Any] = {}
        for n in rates:
            others = [k for k, m in enumerate(self.cluster.able) if m != n]
            goal = self._line(self._own(n))
            if not goal.any():
                gains[n] = one * 0
                continue
            # The others keep their levels but for 1e-12 of them, which is what rounding leaves open.
            matrix = [*limits, *(still[k] for k in others)]
            value, _ = self._maximise(goal, matrix, [*bounds, *(levels[others] * (1 - (0 if self.exact else 1e-12)))])
            gains[n] = value - reached[n] / self.scale[n]
        stopped = {n for n, gain in gains.items() if gain <= (0 if self.exact else _BLOCKED)}
        return tau, reached, stopped or {min(gains, key=gains.__getitem__)}


class OneServer:
    """Levels on one server, exactly: limits are rows over the tasks of the users, and those who do not rise stand still."""

    def __init__(self, cluster: Cluster) -> None:
        if cluster.instance.n_servers != 1:
            raise ValueError("exact shares need one server")
        self.cluster = cluster
        kept = all_rows(cluster.instance, Fraction)
        self.rows = [*cluster.rows, *(cluster.row(row.users, row.resource, row.servers, row.bound) for row in kept)]

    def rise(
        self, share: Sequence[Number], rates: dict[int, Number], extra: Sequence[Row], most: Number, floors: Sequence[Row] = ()
    ) -> tuple[Number, dict[int, Number], set[int]]:
        """Return tau, at most ``most``, the shares of the users who rise, and those of them who stop there. No floor binds."""
        worth, able = self.cluster.share[:, 0], self.cluster.able
        ratios = []
        for row in (*self.rows, *extra):
            use = row.use[:, 0]
            rise = sum((use[n] * rate / worth[n] for n, rate in rates.items()), Fraction(0))
            if rise > 0:
                left = row.bound - sum((use[n] * share[n] / worth[n] for n in able), Fraction(0))
                assert left >= 0
                ratios.append((left / rise, use))
        tau = min(ratio for ratio, _ in ratios)
        full = [use for ratio, use in ratios if ratio == tau]
        if most is not None and most < tau:
            tau, full = most, []
        return tau, {n: share[n] + rate * tau for n, rate in rates.items()}, {n for n in rates if any(use[n] > 0 for use in full)}


# Stages --------------------------------------------------------------------------------------------------------------------------


class Oracle:
    """Shares of a tree, stage by stage and level by level.

    ``history`` has an entry for each level: the stage, tau, the rates of the users who rose, and the users who stopped.
    """

    def __init__(
        self,
        instance: fo.Instance,
        share: Any,
        *,
        guarantees: Guarantees = "surplus",
        queue_share: QueueShare = "dominant",
        number: Callable[[Any], Number] = float,
        only: int | None = None,
        large: bool = False,
        counts: Sequence[float] | None = None,
        rules: Sequence[DrawnRule] = (),
    ) -> None:
        self.instance, self.number, self.only = instance, number, only
        self.given = (instance, share, guarantees, queue_share, number, counts, rules)
        self.counts = [number(1)] * instance.n_resources if counts is None else [number(each) for each in counts]
        counted = [r for r, each in enumerate(self.counts) if each > 0]
        self.last = {n for n in range(instance.n_users) if not (instance.demands[n, counted] > 0).any()}
        self.clamp, self.dominant = guarantees == "clamp", queue_share == "dominant"
        self.nodes = nodes_of(instance, number)
        self.first_user = len(instance.queues) + 1
        self.cluster = Cluster(instance, self.nodes, share, number, large, rules)
        promised = any(node.stage for node in self.nodes)
        self.promised = promised
        self.engine: OneServer | LinearPrograms = (
            OneServer(self.cluster) if number is Fraction and instance.n_servers == 1 and not rules else LinearPrograms(self.cluster)
        )
        self.share = [number(0)] * instance.n_users
        self.node_share = [number(0)] * len(self.nodes)
        self.history: list[tuple[str, Number, dict[int, Number], set[int]]] = []
        self.floors: list[Row] = []
        self.rose: list[tuple[int, set[int]]] = []
        if self.dominant and not self.cluster.same_everywhere:
            raise ValueError("the dominant share of a queue needs users whose tasks have the same share on every server")
        kind = object if number is Fraction else float
        self.part = np.zeros((instance.n_users, instance.n_resources), kind)
        for n in self.cluster.able:
            worth = max(self.cluster.share[n])
            for r in range(instance.n_resources):
                if self.cluster.demands[n, r] > 0:
                    times = self.number(1) if n in self.last else self.counts[r]
                    self.part[n, r] = times * self.cluster.demands[n, r] / self.cluster.total[r] / worth

    def solve(self) -> list[Number]:
        """Return the shares of the users; with ``only`` what the guarantees of a node and of those below it give them."""
        if self.only is None and self.promised and isinstance(self.engine, LinearPrograms):
            self.floors = self.find_floors()
        self._guarantees()
        if self.only is not None:
            return self.share
        if self.promised and isinstance(self.engine, OneServer) and not self._all_have_their_most():
            self.engine = LinearPrograms(self.cluster)
            self.floors = self.find_floors()
            self.share, self.node_share, self.history = [self.number(0)] * len(self.share), [self.number(0)] * len(self.nodes), []
            self._guarantees()
        everywhere = [Row(np.repeat(floor.use.max(axis=1)[:, None], floor.use.shape[1], axis=1), floor.bound) for floor in self.floors]
        self.floors = everywhere  # in the surplus, amounts count on all servers
        tiers = sorted({node.tier for node in self.nodes}, reverse=True)
        for last, tier in ((last, tier) for last in (False, True) for tier in tiers):
            tops = {c: self.nodes[c].weight for c in self.nodes[0].children}
            active = {
                node.user
                for node in self.nodes
                if node.user in self.cluster.able and node.tier == tier and (node.user in self.last) == last and self._weighed(node.user, 0)
            }
            self._fill(f"surplus of tier {tier}", tops, active, [], top_waits=True)
        return self.share

    def _guarantees(self) -> None:
        for stage in range(1, max(node.stage for node in self.nodes) + 1):
            self._guarantee(stage)

    def _all_have_their_most(self) -> bool:
        """Do all guaranteed nodes hold what they could hold alone? Then floors change nothing."""
        for v in (v for v, node in enumerate(self.nodes) if node.stage):
            alone = self._alone(v, large=False)
            for r in self._of(v):
                use, most = self._use(v, r, alone)
                held = sum(
                    (use[n].max() * self.share[n] / self.cluster.share[n].max() for n in np.flatnonzero(use.any(axis=1))), self.number(0)
                )
                if held < most:
                    return False
        return True

    def find_floors(self) -> list[Row]:
        """Return, of each guaranteed node and resource, the amount that is kept: how far the guarantees are met together."""
        promises: dict[tuple[int, int], tuple[Row, Number, Number]] = {}  # the use that counts, its unit, the largest part
        for v in (v for v, node in enumerate(self.nodes) if node.stage):
            alone, asked = self._alone(v, large=False), self._alone(v, large=True)
            most = {r: self._use(v, r, alone) for r in self._of(v)}
            asks = {r: self._use(v, r, asked) for r in self._of(v)}
            some = max((asks[r][1] / amount for r, (amount, _) in self._of(v).items()), default=self.number(0))
            for r, (use, ask) in asks.items():
                if ask > 0 and most[r][1] > 0:
                    unit = ask / some
                    promises[v, r] = (Row(use, unit), unit, most[r][1] / unit)
        floors: list[Row] = []
        caps = [row for v, node in enumerate(self.nodes) if node.stage for row in self._caps(v)]
        assert isinstance(self.engine, LinearPrograms)
        self.engine.caps = caps
        for outer in range(len(self.nodes)):
            open_ = [key for key in promises if self._outer(key[0]) == outer]
            while open_:
                part, stopped = self.engine.largest_part([promises[key][:2] for key in open_], floors, caps)
                full = [key for key in open_ if promises[key][2] <= part]
                done = full or [open_[k] for k in stopped]
                floors += [Row(promises[key][0].use, promises[key][1] * (promises[key][2] if full else part)) for key in done]
                open_ = [key for key in open_ if key not in done]
        return floors

    def _alone(self, v: int, large: bool) -> Oracle:
        instance, share, guarantees, queue_share, number, counts, rules = self.given
        how: Any = {"guarantees": guarantees, "queue_share": queue_share, "number": number, "counts": counts, "rules": rules}
        oracle = Oracle(instance, share, only=v, large=large, **how)
        oracle.solve()
        return oracle

    def _of(self, v: int) -> dict[int, tuple[Number, list[int]]]:
        """Return what a node is guaranteed: by resource an amount and its servers; of a user tasks, as resource -1."""
        node = self.nodes[v]
        if node.user is not None:
            return {-1: (self.number(self.instance.guarantees[node.user]), list(range(self.instance.n_servers)))}
        named = self._named(node.queue)  # type: ignore[arg-type]
        if any(len(groups) > 1 for groups in named.values()):
            raise ValueError("amounts would depend on where tasks are")
        return {r: groups[0] for r, groups in named.items()}

    def _use(self, v: int, r: int, alone: Oracle) -> tuple[Any, Number]:
        """Return what counts of the tasks of each pair for a guarantee, and how much it is in a filling alone, at most the guarantee."""
        promised, servers = self._of(v)[r]
        use = np.zeros_like(self.cluster.share)
        amount = self.number(0)
        for n in self.nodes[v].users:
            need = self.number(1) if r < 0 else self.cluster.demands[n, r]
            if alone.share[n] > 0 or n in alone.counted:
                use[n, servers] = need
            if alone.share[n] > 0:
                amount += need * alone.share[n] / max(self.cluster.share[n])
        return use, min(amount, promised)

    def _outer(self, v: int) -> int:
        """Return how many guaranteed nodes a node is in."""
        above = self.nodes[v].parent
        return 0 if above < 0 else self._outer(above) + (self.nodes[above].stage > 0)

    def _rises(self, n: int, v: int) -> bool:
        """Does a user rise for more than its own guarantee?"""
        above = self.nodes[v].parent
        while above >= 0:
            if (above == 0 or self.nodes[above].stage) and self._weighed(n, above):
                return True
            above = self.nodes[above].parent
        return False

    def _caps(self, v: int) -> list[Row]:
        """Return the extra limits of a node on the users who rise for it and for no node above; inner guarantees may have given more."""
        node = self.nodes[v]
        if node.user is not None:
            use = np.zeros_like(self.cluster.share)
            use[node.user] = self.number(1)
            return [] if self._rises(node.user, v) else [Row(use, self._of(v)[-1][0])]
        named = self._named(node.queue)  # type: ignore[arg-type]
        active = [n for n in node.users if self._weighed(n, v) and any(self.cluster.demands[n, r] > 0 for r in named)]
        only = [n for n in active if not self._rises(n, v)]
        rows = []
        for r, groups in named.items():
            inner = self.number(0)
            for w in below(self.nodes, v):
                n = self.nodes[w].user
                if w != v and self.nodes[w].stage and set(only) & set(self.nodes[w].users):
                    inner += (
                        self._of(w)[-1][0] * self.cluster.demands[n, r] if n is not None else self._of(w).get(r, (self.number(0), []))[0]
                    )
            outside = [i for i in range(self.instance.n_servers) if not any(i in servers for _, servers in groups)]
            rows += [self.cluster.row(only, r, servers, max(amount, inner)) for amount, servers in [*groups, (self.number(0), outside)]]
        return rows

    def _weighed(self, n: int, top: int) -> bool:
        """Are the weights of a user and of the queues on its way > 0, up to a node, whose own weight is not asked?"""
        v = self.first_user + n
        while v != top:
            if self.nodes[v].weight == 0:
                return False
            v = self.nodes[v].parent
        return True

    @property
    def counted(self) -> set[int]:
        """The users who rise at some stage."""
        return set().union(*(active for _, active in self.rose))

    def _guarantee(self, stage: int) -> None:
        """Fill the guaranteed nodes of one stage up to their guarantees."""
        tops: dict[int, Number] = {}
        active: set[int] = set()
        extra: list[Row] = []
        for v, node in enumerate(self.nodes):
            if node.stage != stage or (self.only is not None and v != self.only and v not in below(self.nodes, self.only)):
                continue
            if node.user is not None:
                n = node.user
                promised = self.number(self.instance.guarantees[n])
                if promised > 0 and n in self.cluster.able:
                    own = np.zeros_like(self.cluster.share)
                    own[n] = self.number(1)
                    extra.append(Row(own, promised))
                    demands = enumerate(zip(self.cluster.demands[n], self.cluster.total, strict=True))
                    tops[v] = self._largest({r: promised * d / c for r, (d, c) in demands if d > 0})
                    active.add(n)
            elif node.queue is not None:
                named = self._named(node.queue)
                if named:
                    tops[v] = self._largest({r: sum(amount for amount, _ in groups) / self.cluster.total[r] for r, groups in named.items()})
                    extra += self._extra_limits(node, named)
                    active |= {
                        n
                        for n in node.users
                        if n in self.cluster.able and self._weighed(n, v) and any(self.cluster.demands[n, r] > 0 for r in named)
                    }
        if self.cluster.ruled:
            extra = self._raised(extra)
        self.rose.append((stage, set(active)))
        self._fill(f"guarantees of stage {stage}", tops, active, extra, top_waits=False)

    def _raised(self, extra: Sequence[Row]) -> list[Row]:
        """Return extra limits, raised to the least that rules and shares force nodes to hold."""
        assert isinstance(self.engine, LinearPrograms)
        near = 0 if self.engine.exact else 1e-9
        least = [self.engine.least(self.share, [row], ()) for row in extra]
        raised = [Row(row.use, max(row.bound, amount)) for row, amount in zip(extra, least, strict=True)]
        over = [k for k, row in enumerate(raised) if row.bound > extra[k].bound]
        if over:
            others = [row for k, row in enumerate(raised) if k not in over]
            together = self.engine.least(self.share, [raised[k] for k in over], others)
            alone = sum(raised[k].bound for k in over)
            if together > alone + near * alone:
                raise ValueError("which extra limit is raised is a choice")
            if near:
                raised = [Row(row.use, row.bound * (1 + near * (k in over))) for k, row in enumerate(raised)]
        return raised

    def _largest(self, parts: dict[int, Number]) -> Number:
        """Return the largest of parts of the cluster as they count; where nothing that counts is among them, as they are."""
        return max(self.counts[r] * part for r, part in parts.items()) or max(parts.values())

    def _named(self, queue: fo.Queue) -> dict[int, list[tuple[Number, list[int]]]]:
        """Return what a queue is guaranteed, in the numbers of the oracle."""
        named = guaranteed(queue, self.instance)
        return {r: [(self.number(amount), servers) for amount, servers in groups] for r, groups in named.items()}

    def _extra_limits(self, node: Node, named: dict[int, list[tuple[Number, list[int]]]]) -> list[Row]:
        """Return the rows that hold while the guarantee of a queue is met."""
        everywhere = list(range(self.instance.n_servers))
        rows = []
        held = (lambda *_: self.number(0)) if self.cluster.ruled else self.cluster.held  # under rules: `_raised`
        for r, groups in named.items():
            for amount, servers in groups:
                rows.append(self.cluster.row(node.users, r, servers, max(amount, held(self.share, node.users, r, servers))))
            outside = [i for i in everywhere if not any(i in servers for _, servers in groups)]
            if outside:
                rows.append(self.cluster.row(node.users, r, outside, held(self.share, node.users, r, outside)))
        return rows

    def _fill(self, stage: str, tops: dict[int, Number], active: set[int], extra: list[Row], *, top_waits: bool) -> None:
        """Raise shares until nobody is active: ``tops`` are the nodes whose rates are given."""
        while active:
            risers, most = self._risers(tops, active, top_waits)
            of_nodes = self._rates(tops, risers)
            rates = {n: of_nodes[self.first_user + n] for n in active if self.first_user + n in of_nodes}
            catch_up = [gap / (of_nodes[c] / self.nodes[c].weight) for c, gap in most.items() if c in of_nodes]
            tau, reached, stopped = self.engine.rise(self.share, rates, extra, min(catch_up, default=None), self.floors)
            self.history.append((stage, tau, rates, stopped))
            for n, share in reached.items():
                self.share[n] = share
            for v, rate in of_nodes.items():
                self.node_share[v] += rate * tau
            active -= stopped

    def _risers(self, tops: dict[int, Number], active: set[int], top_waits: bool) -> tuple[dict[int, list[int]], dict[int, Number]]:
        """Return the children of each node that rise (-1: the tops), and for some a gap: share over weight after which siblings join it."""
        risers: dict[int, list[int]] = {}
        gaps: dict[int, Number] = {}
        near = 0 if self.number is Fraction else _CAUGHT_UP
        look = [-1]
        for v in look:  # grows: what is below the tops
            candidates = list(tops) if v == -1 else [c for c in self.nodes[v].children if self.nodes[c].weight > 0]
            there = [c for c in candidates if active.intersection(self.nodes[c].users)]
            if v > 0 and self.nodes[v].queue.order == "listed":  # type: ignore[union-attr]
                there = there[:1]
            elif self.clamp and (v >= 0 or top_waits):
                ratio = {c: self.node_share[c] / self.nodes[c].weight for c in there if self.nodes[c].weight > 0}
                least = min(ratio.values())
                there = [c for c in ratio if ratio[c] <= least * (1 + near)]
                later = [ratio[c] for c in ratio if c not in there]
                if later:
                    gaps[there[0]] = min(later) - least
            risers[v] = there
            look += [c for c in there if self.nodes[c].user is None]
        return risers, gaps

    def _rates(self, tops: dict[int, Number], risers: dict[int, list[int]]) -> dict[int, Number]:
        """Return the rate of every node that rises, those above the tops too."""
        measure: dict[int, Number] = {}
        part: dict[int, Any] = {}

        def look(v: int) -> None:
            """Set m[v] and e[v]."""
            node = self.nodes[v]
            if node.user is not None:
                part[v] = self.part[node.user]
                return
            for c in risers[v]:
                look(c)
            usage = sum(self.nodes[c].weight * part[c] for c in risers[v])
            measure[v] = max(usage) if self.dominant else sum(self.nodes[c].weight for c in risers[v])
            part[v] = usage / measure[v]

        rates: dict[int, Number] = {}

        def hand_down(v: int, rate: Number) -> None:
            rates[v] = rate
            if self.nodes[v].user is None:
                for c in risers[v]:
                    hand_down(c, rate * self.nodes[c].weight / measure[v])

        for v in risers[-1]:
            look(v)
            hand_down(v, tops[v])
        for v in sorted(range(self.first_user), key=lambda v: -self.nodes[v].depth):  # above the tops
            below = [c for c in self.nodes[v].children if c in rates]
            if v not in rates and below:
                usage = sum(rates[c] * part[c] for c in below)
                rates[v] = max(usage) if self.dominant else sum(rates[c] for c in below)
                part[v] = usage / rates[v]
        return rates


def shares(
    instance: fo.Instance,
    notion_share_per_task: Any,
    *,
    guarantees: Guarantees = "surplus",
    queue_share: QueueShare = "dominant",
) -> np.ndarray:
    """Return the shares of the users, sum_i share[n, i] x[n, i], of a tree that is filled.

    ``notion_share_per_task`` is the share of one task, not divided by a weight, (users,) or (users, servers).
    """
    return np.array(Oracle(instance, notion_share_per_task, guarantees=guarantees, queue_share=queue_share).solve(), float)


def exact_shares(
    instance: fo.Instance,
    notion_share_per_task: Any,
    *,
    guarantees: Guarantees = "surplus",
    queue_share: QueueShare = "dominant",
) -> list[Fraction]:
    """Return the shares in fractions: at once on one server, within a minute on a few (there the LPs are in fractions, too)."""
    return Oracle(instance, notion_share_per_task, guarantees=guarantees, queue_share=queue_share, number=Fraction).solve()


def share_per_task(instance: fo.Instance, notion: str) -> np.ndarray:
    """Return the share of one task of each user, not divided by its weight: drfh, drf, asset, tsf, cdrf, or max-min (1)."""
    of_cluster = np.array(list(instance.shared.values()), float)
    total = np.concatenate([instance.counts @ instance.capacities, of_cluster])
    demanded = instance.demands > 0
    parts: np.ndarray = np.divide(instance.demands, total, out=np.zeros_like(instance.demands), where=demanded & (total > 0))
    if notion in ("drf", "drfh"):
        return np.asarray(parts.max(axis=1))
    if notion == "asset":
        return np.asarray(parts.sum(axis=1))
    if notion == "max-min":
        return np.ones(instance.n_users)
    alone = np.zeros(instance.n_users)
    for n in range(instance.n_users):
        for i in range(instance.n_servers):
            if notion == "tsf" or instance.eligibility[n, i]:
                here = zip(instance.demands[n], instance.capacities[i], strict=False)
                alone[n] += instance.counts[i] * min((c / d for d, c in here if d > 0), default=np.inf)
    alone = np.minimum(alone, within_shared(instance))
    return np.asarray(np.divide(1.0, alone, out=np.ones_like(alone), where=alone > 0))


# Fairness among queues first -----------------------------------------------------------------------------------------------------


def leximin(instance: fo.Instance, share: Any, groups: Sequence[Sequence[int]], weights: Sequence[float], kept: Sequence[Any] = ()) -> Any:
    """Return the leximin of the sums of shares of some groups of users, divided by weights > 0.

    ``kept`` is pairs of a group and the sum that it keeps at least. The result is the sums.
    """
    programs = LinearPrograms(Cluster(instance, nodes_of(instance), share, float))
    limits, bounds = programs._limits(())
    columns = programs.worth * programs.scale[programs.users]
    scale = float(max(columns.max(initial=0.0), 1e-300))

    def sums(users: Sequence[int], tau: float) -> Any:
        return programs._line(np.where(np.isin(programs.users, list(users)), -columns / scale, 0.0), tau=tau)

    floors = [(sums(users, 0.0), -amount / scale * (1 - 1e-12)) for users, amount in kept]
    largest = max(weights)
    level: dict[int, float] = {}
    active = list(range(len(groups)))
    while active:
        held = [(sums(groups[g], 0.0), -level[g] / scale * (1 - 1e-12)) for g in level]
        rising = [(sums(groups[g], weights[g] / largest), 0.0) for g in active]
        rows = [*floors, *held, *rising]
        found, _ = programs._maximise(
            programs._line(0.0, tau=1.0), [*limits, *(row for row, _ in rows)], [*bounds, *(bound for _, bound in rows)]
        )
        reached = {g: max(found, 0.0) * weights[g] / largest for g in active}
        gains = {}
        for g in active:
            rows = [*floors, *held, *((sums(groups[h], 0.0), -reached[h] * (1 - 1e-12)) for h in active if h != g)]
            asked, _ = programs._maximise(
                -sums(groups[g], 0.0), [*limits, *(row for row, _ in rows)], [*bounds, *(bound for _, bound in rows)]
            )
            gains[g] = asked - reached[g]
        stopped = [g for g, gain in gains.items() if gain <= _BLOCKED] or [min(gains, key=gains.__getitem__)]
        level |= {g: reached[g] * scale for g in stopped}
        active = [g for g in active if g not in stopped]
    return np.array([level[g] for g in range(len(groups))])


def nested(instance: fo.Instance, notion_share_per_task: Any) -> np.ndarray:
    """Return the shares that are fair among the root's children first, then, with these sums kept, among all nodes of the next depth.

    All weights must be > 0, and there are no guarantees and tiers.
    """
    nodes = nodes_of(instance)
    able = {n for n in range(instance.n_users) if instance.eligibility[n].any()}
    total: dict[int, float] = {0: 1.0}
    kept: list[tuple[list[int], float]] = []
    for depth in range(1, max(node.depth for node in nodes) + 1):
        level = [v for v, node in enumerate(nodes) if node.depth == depth and able.intersection(node.users)]
        rich = [v for v in level if total[nodes[v].parent] > 1e-12]
        weights = [nodes[v].weight * total[nodes[v].parent] for v in rich]
        if not rich:
            break
        found = leximin(instance, notion_share_per_task, [nodes[v].users for v in rich], weights, kept)
        total |= dict.fromkeys(level, 0.0) | dict(zip(rich, found, strict=True))
        kept += [(nodes[v].users, total[v]) for v in rich]
    users = len(instance.queues) + 1
    return np.array([total.get(users + n, 0.0) for n in range(instance.n_users)])


# One resource of one server: what the systems do ---------------------------------------------------------------------------------


@dataclass
class Group:
    """A node with amounts of the one resource. ``accepts`` is HTCondor's accept_surplus."""

    weight: float
    guarantee: float
    limit: float
    tier: int
    children: list[Group]
    user: int | None = None

    @property
    def absorbs(self) -> float:
        """What the group can use if its parent hands it without end."""
        if self.user is not None:
            return self.limit
        return min(self.limit, sum(child.absorbs if child.weight > 0 else child.floor for child in self.children))

    @property
    def floor(self) -> float:
        """What the group gets of its guarantee."""
        return min(self.guarantee, self.absorbs)


def group_of(instance: fo.Instance) -> Group:
    """Return the tree of an instance with one server and one resource."""
    (capacity,), (resource,) = instance.counts @ instance.capacities, instance.resources
    demands = instance.demands[:, 0]

    def users(name: str | None) -> list[Group]:
        return [
            Group(float(weight), float(promised * d), min(float(tasks * d), float(capacity)), 0, [], n)
            for n, (weight, promised, tasks, d) in enumerate(
                zip(instance.weights, instance.guarantees, instance.tasks, demands, strict=True)
            )
            if instance.queue_of[n] == name
        ]

    def group(queue: fo.Queue) -> Group:
        inside = [group(child) for child in instance.queues if child.parent == queue.name] + users(queue.name)
        limit = queue.limit.get(resource, float(capacity))
        return Group(queue.weight, queue.guarantee.get(resource, 0.0), limit, queue.tier, inside)

    return Group(1.0, 0.0, float(capacity), 0, [group(queue) for queue in instance.queues if queue.parent is None] + users(None))


def _bisect(total: Callable[[float], float], amount: float) -> float:
    """Return the water level at which a rising function gives an amount."""
    low, high = 0.0, 1.0
    while total(high) < amount and high < 1e300:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) < amount else (low, middle)
    return high


def by_yarn(instance: fo.Instance) -> np.ndarray:
    """YARN's fair scheduler: each node divides what it has so that a child has clamp(w t, minimum, maximum), from the top down."""
    given = np.zeros(instance.n_users)

    def divide(group: Group, amount: float) -> None:
        if group.user is not None:
            given[group.user] = amount
            return

        def part(child: Group, t: float) -> float:
            return min(max(child.weight * t, child.floor), child.absorbs if child.weight > 0 else child.floor)

        amount = min(amount, group.absorbs)
        t = _bisect(lambda t: sum(part(child, t) for child in group.children), amount)
        for child in group.children:
            divide(child, part(child, t))

    root = group_of(instance)
    divide(root, root.limit)
    return given


def by_kai(instance: fo.Instance) -> np.ndarray:
    """KAI: each node hands its children their guarantees, then the rest by weights, the highest tier first, from the top down."""
    given = np.zeros(instance.n_users)

    def divide(group: Group, amount: float) -> None:
        if group.user is not None:
            given[group.user] = amount
            return
        have = {k: child.floor for k, child in enumerate(group.children)}
        left = amount - sum(have.values())
        for tier in sorted({child.tier for child in group.children}, reverse=True):
            hungry = [k for k, child in enumerate(group.children) if child.tier == tier and child.weight > 0]
            while left > 0 and hungry:
                weights = sum(group.children[k].weight for k in hungry)
                t = min((group.children[k].absorbs - have[k]) / group.children[k].weight for k in hungry)
                t = min(t, left / weights)
                for k in hungry:
                    have[k] += t * group.children[k].weight
                left -= t * weights
                if t >= left / weights and t * weights == 0:
                    break
                hungry = [k for k in hungry if group.children[k].absorbs - have[k] > 1e-13 * group.children[k].absorbs]
                left = left if left > 1e-13 * amount else 0.0
        for k, child in enumerate(group.children):
            divide(child, have[k])

    root = group_of(instance)
    divide(root, root.absorbs)
    return given


def by_htcondor(instance: fo.Instance) -> np.ndarray:
    """HTCondor's hierarchical quotas: each group meets its subgroups' quotas, shares what they leave of its own, and returns the rest.

    The weight of a group is its quota, which is its guarantee. A group that does not accept surplus has its quota as its limit.
    """
    given = np.zeros(instance.n_users)

    def wants(group: Group) -> float:
        if group.user is not None:
            return float(group.limit - given[group.user])
        held = float(sum(given[n] for n in _users(group)))
        return min(group.limit - held, sum(wants(child) for child in group.children))

    def add(group: Group, amount: float) -> None:
        """Hand out an amount that the group wants: by weights, until subgroups want no more."""
        if group.user is not None:
            given[group.user] += amount
            return
        need = {k: wants(child) for k, child in enumerate(group.children) if child.weight > 0}
        t = _bisect(lambda t: sum(min(group.children[k].weight * t, most) for k, most in need.items()), amount)
        for k, most in need.items():
            add(group.children[k], min(group.children[k].weight * t, most))

    def meet(group: Group, quota: float) -> None:
        for child in group.children:
            meet(child, child.guarantee)
        add(group, max(min(quota - sum(given[n] for n in _users(group)), wants(group)), 0.0))

    root = group_of(instance)
    meet(root, root.limit)
    return given


def _users(group: Group) -> list[int]:
    return [group.user] if group.user is not None else [n for child in group.children for n in _users(child)]


# Random trees --------------------------------------------------------------------------------------------------------------------


def _rounded(values: Any, digits: int = 3) -> Any:
    """Few digits: a failing instance is to be read, and fractions are to stay short."""
    return np.vectorize(lambda v: float(f"{v:.{digits}g}"))(values)


def _spread(rng: np.random.Generator, size: int, orders: float) -> Any:
    return _rounded(10 ** rng.uniform(-orders / 2, orders / 2, size))


def random_tree(seed: int, servers: int | None = None) -> fo.Instance:
    """A tree of at most three levels of queues with guarantees, limits, tiers, weights over six orders, constraints, finite tasks."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 10)), int(rng.integers(1, 4))
    k = int(rng.integers(1, 5)) if servers is None else servers
    capacities = _rounded(rng.uniform(1, 10, (k, m)) * (rng.random((k, m)) > 0.1))
    demands = _rounded(demands_with_zeros(rng, (n, m), 0.05, 1))
    counts = rng.integers(1, 4, k) if rng.random() < 0.3 else np.ones(k, int)
    total = counts @ capacities
    eligibility = rng.random((n, k)) < 0.6 if rng.random() < (0.5 if k > 1 else 0.1) else np.ones((n, k), bool)
    orders = float(rng.choice([0.0, 1.0, 6.0]))
    inner = float(rng.choice([0.0, 1.0, 6.0 - orders]))
    nobody = rng.random() < 0.3  # weights of 0
    several_tiers = rng.random() < 0.3
    promises = float(rng.choice([0.0, 0.3, 0.6]))

    names: list[str] = []
    parents: list[str | None] = []
    for top in range(int(rng.integers(1, 4))):
        names.append(f"q{top}")
        parents.append(None)
        for middle in range(int(rng.integers(0, 3))):
            names.append(f"q{top}{middle}")
            parents.append(f"q{top}")
            for low in range(int(rng.integers(0, 3))):
                names.append(f"q{top}{middle}{low}")
                parents.append(f"q{top}{middle}")
    queue_of: list[str | None] = [None if rng.random() < 0.1 else names[int(rng.integers(len(names)))] for _ in range(n)]
    above = {name: {q for q in names if name.startswith(q) and q != name} for name in names}
    user_guarantees = np.zeros(n)
    tasks = _rounded(np.where(rng.random(n) < 0.4, rng.uniform(0.1, 8, n), np.inf)) if rng.random() < 0.5 else np.full(n, np.inf)
    if rng.random() < 0.4:
        user_guarantees = _rounded(np.minimum(np.where(rng.random(n) < 0.3, rng.uniform(0.1, 4, n), 0), tasks))

    weights = _spread(rng, len(names), orders)
    guaranteed = {queue_of[u] for u in range(n) if user_guarantees[u] > 0}
    guaranteed |= {q for name in guaranteed if name is not None for q in above[name]}
    queues: list[fo.Queue] = []
    for name, parent, weight in reversed(list(zip(names, parents, weights, strict=True))):
        guarantee: dict[str, float] = {}
        limit: dict[str, float] = {}
        lending: dict[str, float] = {}
        quotas: list[fo.Quota] = []
        for r in range(m):
            if total[r] == 0:
                continue
            amount = float(_rounded(rng.uniform(0.05, 0.5) * total[r]))
            if rng.random() < promises:
                guarantee[f"r{r}"] = amount
                if rng.random() < 0.15:
                    lending[f"r{r}"] = float(_rounded(rng.uniform(0, 1) * amount))
            if rng.random() < 0.25:
                limit[f"r{r}"] = float(_rounded(amount * rng.uniform(1.1, 3)))
        if k > 1 and name not in guaranteed and rng.random() < 0.2:  # no guarantee below: else the stage would depend on placements
            group = [f"s{i}" for i in np.flatnonzero(rng.random(k) < 0.5)]
            free = [r for r in range(m) if f"r{r}" not in guarantee and total[r] > 0]
            if group and free:
                r = int(rng.choice(free))
                there = sum(float(counts[i] * capacities[i, r]) for i in range(k) if f"s{i}" in group)
                amount = float(_rounded(rng.uniform(0.1, 0.7) * there))
                own = {f"r{r}": amount} if rng.random() < 0.6 and promises and amount else {}
                most = {f"r{r}": float(_rounded(amount * rng.uniform(1.1, 2)))} if not own or rng.random() < 0.4 else {}
                quotas.append(fo.Quota(group, own, most))
        if guarantee or any(quota.guarantee for quota in quotas):
            guaranteed |= above[name]
        tier = int(rng.integers(-1, 3)) if several_tiers and rng.random() < 0.4 else 0
        zero = nobody and rng.random() < 0.15
        queues.insert(0, fo.Queue(name, parent, 0.0 if zero else float(weight), guarantee, limit, lending, tier, quotas))
    user_weights = _spread(rng, n, inner)
    if nobody:
        user_weights[rng.random(n) < 0.1] = 0.0
    instance = fo.Instance(
        capacities,
        demands,
        weights=user_weights,
        eligibility=None if eligibility.all() else eligibility,
        counts=counts,
        tasks=tasks,
        guarantees=user_guarantees,
        queues=queues,
        queue_of=queue_of,
        users=[f"u{u}" for u in range(n)],
        servers=[f"s{i}" for i in range(k)],
        resources=[f"r{r}" for r in range(m)],
    )
    return with_lenders(instance, seed) if seed % 2 else instance


def with_orders(instance: fo.Instance, seed: int) -> fo.Instance:
    """Return a tree in which about two thirds of the queues that hold users or queues, not both, are listed."""
    rng = np.random.default_rng(seed)
    parents = {queue.parent for queue in instance.queues}
    listed = [rng.random() < 0.65 and not (queue.name in parents and queue.name in instance.queue_of) for queue in instance.queues]
    changed = {queue.name: {"order": "listed"} for queue, yes in zip(instance.queues, listed, strict=True) if yes}
    return instance.replace(queues=changed) if changed else instance


def random_pool(seed: int, quotas: bool = False) -> fo.Instance:
    """One resource of one server. No node guarantees less than its children together, and all guarantees fit.

    With ``quotas`` weights are guarantees, as in HTCondor, and some groups have their quota as their limit.
    """
    rng = np.random.default_rng(seed)
    capacity = 100.0
    queues: list[fo.Queue] = []
    users: list[tuple[str | None, float, float, float]] = []  # queue, weight, guarantee, most

    def fill(name: str | None, promised: float, depth: int) -> None:
        children = int(rng.integers(0, 4)) if depth < 3 else 0
        leaves = int(rng.integers(1, 3)) if not children or rng.random() < 0.5 else 0
        cut = rng.dirichlet(np.ones(children + leaves + 1))[:-1] * promised
        for child in range(children):
            amount = float(cut[child]) if quotas or rng.random() < 0.7 else 0.0
            below = "" if name is None else name
            weight = amount if quotas else float(10 ** rng.uniform(-1, 1)) if rng.random() < 0.9 else 0.0
            chance = rng.random()
            most = amount if quotas and chance < 0.3 else amount + float(rng.uniform(1, 40)) if chance < 0.3 else np.inf
            tier = int(rng.integers(0, 3)) if name is None and not quotas and seed % 3 == 0 else 0
            queues.append(
                fo.Queue(f"{below}q{child}", name, weight, {"cpu": amount}, {"cpu": most} if np.isfinite(most) else {}, tier=tier)
            )
            fill(f"{below}q{child}", amount, depth + 1)
        for leaf in range(leaves):
            amount = float(cut[children + leaf]) if quotas or rng.random() < 0.5 else 0.0
            weight = amount if quotas else float(10 ** rng.uniform(-1, 1)) if rng.random() < 0.9 else 0.0
            users.append((name, weight, amount, amount + float(rng.uniform(0, 30)) if rng.random() < 0.6 else np.inf))

    fill(None, capacity if quotas else float(rng.uniform(0.3, 1)) * capacity, 0)
    users = users or [(None, 1.0, 0.0, np.inf)]
    demands = rng.uniform(0.5, 2, len(users))
    return fo.Instance(
        [[capacity]],
        demands[:, None],
        weights=[weight for _, weight, _, _ in users],
        tasks=[most / d for (_, _, _, most), d in zip(users, demands, strict=True)],
        guarantees=[amount / d for (_, _, amount, _), d in zip(users, demands, strict=True)],
        queues=queues,
        queue_of=[name for name, _, _, _ in users],
        resources=["cpu"],
    )


# Comparing -----------------------------------------------------------------------------------------------------------------------


def difference(mine: Any, theirs: Any) -> float:
    """Return the largest difference of shares, relative to the larger; absolute for those that are next to nothing."""
    mine, theirs = np.asarray(mine, float), np.asarray(theirs, float)
    scale = np.maximum(np.abs(mine), np.abs(theirs))
    return float((np.abs(mine - theirs) / np.where(scale > 1e-12, scale, 1.0)).max(initial=0.0))


def gap(mine: Any, theirs: Any, alone: Any = 1.0) -> float:
    """Return the largest difference of tasks, relative to the larger, or to a thousandth of what a user could run alone."""
    mine, theirs = np.asarray(mine, float) / alone, np.asarray(theirs, float) / alone
    return float((np.abs(mine - theirs) / np.maximum(np.maximum(mine, theirs), 1e-3)).max(initial=0.0))


def within_shared(instance: fo.Instance) -> np.ndarray:
    """Return how many tasks of each user the resources of the cluster alone would allow."""
    amounts, demands = np.array(list(instance.shared.values()), float), instance.demands[:, instance.capacities.shape[1] :]
    most: np.ndarray = np.divide(amounts, demands, out=np.full(demands.shape, np.inf), where=demands > 0)
    return np.asarray(most.min(axis=1, initial=np.inf))


def tasks_alone(instance: fo.Instance) -> np.ndarray:
    """Return what each user could run alone; 1 for users who cannot run."""
    alone = np.minimum(np.minimum(instance.rates.sum(axis=1), within_shared(instance)), instance.tasks)
    return np.where(alone > 0, alone, 1.0)


def constructor(instance: fo.Instance) -> str:
    """Return Python text that builds the instance."""
    lists = {
        "weights": instance.weights if (instance.weights != 1).any() else None,
        "eligibility": instance.placement,
        "counts": instance.counts if (instance.counts != 1).any() else None,
        "tasks": instance.tasks if np.isfinite(instance.tasks).any() else None,
        "guarantees": instance.guarantees if instance.guarantees.any() else None,
    }
    lines = [f"    {instance.capacities.tolist()},", f"    {instance.demands.tolist()},"]
    lines += [f"    {name}={values.tolist()},".replace("inf", "np.inf") for name, values in lists.items() if values is not None]
    if instance.queues:
        lines.append("    queues=[")
        for queue in instance.queues:
            given = [repr(queue.name)]
            given += [f"parent={queue.parent!r}"] * (queue.parent is not None) + [f"weight={queue.weight:g}"] * (queue.weight != 1)
            given += [f"{what}={dict(value)}" for what in ("guarantee", "limit", "lending_limit") if (value := getattr(queue, what))]
            given += [f"tier={queue.tier}"] * (queue.tier != 0) + [f"order={queue.order!r}"] * (queue.order != "fair")
            if queue.quotas:
                groups = [
                    f"fo.Quota({list(q.servers)}, {dict(q.guarantee)}, {dict(q.limit)}, {dict(q.lending_limit)})" for q in queue.quotas
                ]
                given.append(f"quotas=[{', '.join(groups)}]")
            lines.append(f"        fo.Queue({', '.join(given)}),")
        lines += ["    ],", f"    queue_of={list(instance.queue_of)},"]
    lines += [f"    users={list(instance.users)}, servers={list(instance.servers)}, resources={list(instance.resources)},"]
    return "\n".join(["fo.Instance(", *lines, ")"])


def _without_user(instance: fo.Instance, n: int) -> fo.Instance:
    keep = [m for m in range(instance.n_users) if m != n]
    placement = None if instance.placement is None else instance.placement[keep]
    names = {name: [getattr(instance, name)[m] for m in keep] for name in ("queue_of", "users")}
    arrays = {name: getattr(instance, name)[keep] for name in ("demands", "weights", "tasks", "parallelism", "guarantees")}
    return instance.replace(**names, **arrays, eligibility=placement)


def _steps(instance: fo.Instance) -> Iterator[Callable[[], fo.Instance]]:
    """Yield ways to make an instance simpler."""
    if instance.n_users > 1:
        for n in range(instance.n_users):
            yield lambda n=n: _without_user(instance, n)  # type: ignore[misc]
    used = {queue.parent for queue in instance.queues} | set(instance.queue_of)
    for k, queue in enumerate(instance.queues):
        rest = [*instance.queues[:k], *instance.queues[k + 1 :]]
        if queue.name not in used:
            yield lambda rest=rest: instance.replace(queues=rest)  # type: ignore[misc]
        plain: dict[str, Any] = {name: getattr(queue, name) for name in queue.__dataclass_fields__}
        changes: list[dict[str, Any]] = [{"quotas": ()}, {"order": "fair"}, {"tier": 0}, {"weight": 1.0}, {"lending_limit": {}}]
        changes += [{"guarantee": {}, "lending_limit": {}}, {"limit": {}}]
        changes += [{"limit": {r: v for r, v in queue.limit.items() if r != name}} for name in queue.limit]
        for change in changes:
            if any(dict(plain[key]) != value if isinstance(value, dict) else plain[key] != value for key, value in change.items()):
                other = fo.Queue(**(plain | change))
                yield lambda k=k, other=other: instance.replace(queues=[*instance.queues[:k], other, *instance.queues[k + 1 :]])  # type: ignore[misc]
    users = instance.n_users
    whole: list[tuple[str, Any]] = [
        *(("weights", np.ones(users)), ("tasks", np.full(users, np.inf)), ("eligibility", None)),
        *(("guarantees", np.zeros(users)), ("counts", np.ones(instance.n_servers))),
    ]
    for name, value in whole:
        if value is None or not np.array_equal(getattr(instance, name), value):
            yield lambda name=name, value=value: instance.replace(**{name: value})  # type: ignore[misc]


def smaller(instance: fo.Instance, fails: Callable[[fo.Instance], bool]) -> fo.Instance:
    """Return a small instance that still fails: users, queues and data are left out one by one."""
    again = True
    while again:
        again = False
        for step in _steps(instance):
            try:
                candidate = step()
                if candidate != instance and fails(candidate):
                    instance, again = candidate, True
                    break
            except (fo.FairoptError, ValueError, ArithmeticError):
                continue
    return instance


def ask(
    instance: fo.Instance, notion: str, guarantees: Guarantees, queue_share: QueueShare | None, solve: Callable[..., Any] = shares
) -> tuple[np.ndarray, np.ndarray]:
    """Return the tasks of the users by fairopt and by the oracle, `shares` or `exact_shares`, as parts of what each could run alone."""
    allocation = fo.solve(instance, notion, guarantees=guarantees, queue_share=queue_share)
    chosen = queue_share or ("dominant" if notion in ("drf", "drfh") else "sum")
    per_task = share_per_task(instance, notion)
    alone = tasks_alone(instance)
    held = np.array(solve(instance, per_task, guarantees=guarantees, queue_share=chosen), float)
    tasks = held / np.where(per_task > 0, per_task, 1.0)
    return allocation.tasks_per_user / alone, tasks / alone


def main() -> int:
    """Compare as many random trees as the command line asks for, and print the smallest instance of each failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first instance")
    parser.add_argument("--notion", default="drfh")
    parser.add_argument("--bound", type=float, default=1e-8, help="the largest relative difference of shares")
    parser.add_argument("--orders", action="store_true", help="most queues serve their children one after the other")
    parser.add_argument("--failures", type=int, default=3, help="stop after so many")
    parser.add_argument("--guarantees", choices=("surplus", "clamp"), help="default: they take turns")
    parser.add_argument("--queue-share", choices=("dominant", "sum"), help="default: that of the notion, and in every fourth tree the sum")
    arguments = parser.parse_args()
    logging.getLogger("fairopt").setLevel(logging.ERROR)
    worst, failures, started, judged = 0.0, 0, time.perf_counter(), set[int]()
    for seed in range(arguments.seed, arguments.seed + arguments.instances):
        guarantees: Guarantees = arguments.guarantees or ("clamp" if seed % 3 == 1 else "surplus")
        queue_share: QueueShare | None = arguments.queue_share or ("sum" if seed % 4 == 3 else None)
        instance = with_orders(random_tree(seed), seed) if arguments.orders else random_tree(seed)
        asked: tuple[str, Guarantees, QueueShare | None] = (arguments.notion, guarantees, queue_share)

        def miss(candidate: fo.Instance, options: tuple[str, Guarantees, QueueShare | None] = asked, seed: int = seed) -> float:
            try:
                try:
                    found = gap(*ask(candidate, *options))
                except ArithmeticError:  # of a linear program in floats of the oracle
                    found = float("inf")
                if found > arguments.bound:  # the oracle's floats round as well: fractions judge
                    judged.add(seed)
                    found = gap(*ask(candidate, *options, solve=exact_shares))
                return found
            except fo.FairoptError as error:
                print(f"    {type(error).__name__}: {str(error)[:150]}", file=sys.stderr)
                return float("inf")

        found = miss(instance)
        worst = max(worst, found)
        if found > arguments.bound:
            failures += 1
            small = smaller(instance, lambda candidate, miss=miss: miss(candidate) > arguments.bound)  # type: ignore[misc]
            print(f"seed {seed}, {arguments.notion}, guarantees={guarantees!r}, queue_share={queue_share!r}: {found:.1e}")
            print(constructor(small))
            try:
                mine, theirs = ask(small, arguments.notion, guarantees, queue_share, solve=exact_shares)
                print(f"fairopt {mine.tolist()}\noracle  {theirs.tolist()}\n", flush=True)
            except fo.FairoptError as error:
                print(f"{type(error).__name__}: {error}\n", flush=True)
            if failures >= arguments.failures:
                break
    again = f", {len(judged)} judged in fractions" if judged else ""
    print(f"{failures} failures{again}, largest difference {worst:.1e}, {time.perf_counter() - started:.0f} s")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
