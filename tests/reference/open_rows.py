"""Allocations of the open model from rows and nothing else: A x <= b with coefficients of any sign, filled level by level.

The rows are written down one by one from the data of an instance. Numbers are floats, with SciPy's linear programs, or fractions, with
`reference.simplex`. Nothing is taken from fairopt but data.

*A level.* Maximise tau such that some x within the rows has U[n] >= S[n] + rate[n] tau for everybody who rises and U[n] >= S[n] for all
others. A user who rises stops if no x gives it more while all others have theirs: one more LP for each user, each alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from reference.linear import TIGHT, optimum
from reference.named_limits import rows_of_limits
from reference.simplex import maximise

import fairopt as fo

__all__ = [
    "DrawnRule",
    "Polytope",
    "come_last",
    "decimal",
    "filled",
    "polytope_of",
    "rates_of_tree",
    "rows_of_rules",
    "tasks_alone",
    "worth_of",
]

Number = Any
Rates = Callable[[Collection[int]], Mapping[int, Number]]

_MAGNIFIED = 2.0**14  # rows, so that users of small weights are within the tolerance of the LPs
_PLAIN: dict[str, Any] = {"presolve": "off"}
_ATTEMPTS: tuple[dict[str, Any], ...] = (TIGHT, TIGHT | _PLAIN, {}, _PLAIN)  # the rows are magnified anyway
_NOTHING = 1e-10  # a rise of a smaller part of the largest that anybody alone could have
_STOPPED = 1e-7  # a user stops if it could rise by a smaller part of what it has


def decimal(value: Any) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth."""
    return Fraction(str(float(value)))


class DrawnRule(NamedTuple):
    """The sum of coefficients times terms (measure, name, servers, resource) is at least 0, or at most, plus the number."""

    terms: tuple[tuple[float, str, str, str, str], ...]
    sense: str
    number: float

    @property
    def text(self) -> str:
        """The rule as a user writes it."""
        parts = []
        for factor, measure, name, servers, resource in self.terms:
            keys = [*([resource] if measure == "amount" else []), name, *([servers] if servers else [])]
            parts.append(f"{'-' if factor < 0 else '+'} {abs(factor)!r} * {measure}[{', '.join(map(repr, keys))}]")
        return f"{' '.join(parts).removeprefix('+ ')} {self.sense} {self.number!r}"


@dataclass
class Polytope:
    """Rows over columns, one for each eligible pair.

    Attributes
    ----------
    users, servers : arrays (columns,)
    matrix, bounds : arrays (rows, columns), (rows,)
    speeds : array (columns,)
        The work that a task does.
    """

    users: Any
    servers: Any
    matrix: Any
    bounds: Any
    speeds: Any


# Rows ----------------------------------------------------------------------------------------------------------------------------


def _queues_above(instance: fo.Instance) -> list[set[str]]:
    above = {queue.name: queue.parent for queue in instance.queues}
    found = []
    for name in instance.queue_of:
        way = set[str]()
        while name is not None:
            way.add(name)
            name = above[name]
        found.append(way)
    return found


def _totals(instance: fo.Instance, number: Callable[[Any], Number]) -> list[Number]:
    rows = list(zip(instance.counts, instance.capacities, strict=True))
    own = [sum((number(count) * number(row[r]) for count, row in rows), number(0)) for r in range(instance.capacities.shape[1])]
    return [*own, *map(number, instance.shared.values())]


def _demand(instance: fo.Instance, n: int, i: int) -> Any:
    return instance.demands_by_kind[n, instance.kind_of[i]]


def _alone_on(instance: fo.Instance, n: int, i: int, number: Callable[[Any], Number]) -> Number | None:
    """Return how many tasks of a user one server of a row runs alone; None without end."""
    ratios = [number(c) / number(d) for c, d in zip(instance.capacities[i], _demand(instance, n, i), strict=False) if d > 0]
    return min(ratios, default=None)


def _rows(instance: fo.Instance, rules: Sequence[DrawnRule], number: Callable[[Any], Number]) -> Iterator[tuple[Any, Number]]:
    users, servers, zero = range(instance.n_users), range(instance.n_servers), number(0)

    def row(amount: Callable[[int, int], Number]) -> Any:
        return [[amount(n, i) for i in servers] for n in users]

    demands = [[[number(d) for d in _demand(instance, n, i)] for i in servers] for n in users]
    columns = instance.capacities.shape[1]
    for i, r in np.ndindex(instance.n_servers, columns):
        size = number(instance.counts[i]) * number(instance.capacities[i, r])
        yield row(lambda n, k, i=i, r=r: demands[n][k][r] if k == i else zero), size  # type: ignore[misc]
    for r, size in enumerate(instance.shared.values(), columns):
        yield row(lambda n, k, r=r: demands[n][k][r]), number(size)  # type: ignore[misc]
    for m in users:
        if np.isfinite(instance.tasks[m]):
            yield row(lambda n, k, m=m: number(int(n == m))), number(instance.tasks[m])  # type: ignore[misc]
        if np.isfinite(instance.parallelism[m]):
            one = [_alone_on(instance, m, i, number) for i in servers]
            yield row(lambda n, k, m=m, one=one: 1 / one[k] if n == m and one[k] else zero), number(instance.parallelism[m])  # type: ignore[misc]
    above = _queues_above(instance)
    for queue in instance.queues:
        quotas: list[tuple[Any, Sequence[str]]] = [(queue, instance.servers), *((quota, quota.servers) for quota in queue.quotas)]
        for quota, there in quotas:
            for name, amount in quota.limit.items():
                r = instance.resources.index(name)
                inside = [queue.name in above[n] for n in users]
                on = [server in there for server in instance.servers]
                yield row(lambda n, k, r=r, inside=inside, on=on: demands[n][k][r] if inside[n] and on[k] else zero), number(amount)  # type: ignore[misc]
    for limit in rows_of_limits(instance, number):
        yield limit.use.tolist(), limit.bound
    yield from rows_of_rules(instance, rules, number)


def rows_of_rules(
    instance: fo.Instance, rules: Sequence[DrawnRule], number: Callable[[Any], Number] = float
) -> Iterator[tuple[list[list[Number]], Number]]:
    """Yield coefficients of any sign, (users, servers), and a bound: two rows of an equation, one of any other rule."""
    above, zero = _queues_above(instance), number(0)
    for rule in rules:
        sign = number(1 if rule.sense == "<=" else -1)
        total = [[zero for _ in instance.servers] for _ in instance.users]
        for factor, measure, name, where, resource in rule.terms:
            for n, i in np.ndindex(instance.n_users, instance.n_servers):
                if name not in (instance.users[n], *above[n]):
                    continue
                if where and where != instance.servers[i] and where != f"zone = {dict(instance.attributes[i]).get('zone')}":
                    continue
                unit = number(instance.speeds[n, i]) if measure == "work" else number(1)
                unit = number(_demand(instance, n, i)[instance.resources.index(resource)]) if measure == "amount" else unit
                total[n][i] += sign * number(factor) * unit
        yield total, sign * number(rule.number)
        if rule.sense == "==":
            yield [[-value for value in own] for own in total], -sign * number(rule.number)


def polytope_of(instance: fo.Instance, rules: Sequence[DrawnRule] = (), number: Callable[[Any], Number] = float) -> Polytope:
    """Return the rows of an instance over its eligible pairs."""
    users, servers = np.nonzero(instance.eligibility)
    rows = list(_rows(instance, rules, number))
    kind = float if number is float else object
    matrix = np.array([np.array(row, kind)[users, servers] for row, _ in rows], kind).reshape(len(rows), users.size)
    speeds = np.array([number(speed) for speed in instance.speeds[users, servers]], kind)
    return Polytope(users, servers, matrix, np.array([bound for _, bound in rows], kind), speeds)


# Worth ---------------------------------------------------------------------------------------------------------------------------


def tasks_alone(instance: fo.Instance, n: int, number: Callable[[Any], Number], *, everywhere: bool, at_once: bool) -> Number:
    """Return how much work a user could do alone, within its parallelism or not; tasks, limits and queues do not count."""
    servers = [i for i in range(instance.n_servers) if everywhere or instance.eligibility[n, i]]
    one = [_alone_on(instance, n, i, number) for i in servers]
    columns = instance.capacities.shape[1]
    rows: list[list[Number]] = [[number(int(k == j)) for k in range(len(servers))] for j, most in enumerate(one) if most is not None]
    bounds = [number(instance.counts[i]) * most for i, most in zip(servers, one, strict=True) if most is not None]
    for r, amount in enumerate(instance.shared.values(), columns):
        use = [number(_demand(instance, n, i)[r]) for i in servers]
        if any(use):
            rows.append([each / number(amount) if amount else each for each in use])
            bounds.append(number(1 if amount else 0))
    if at_once and np.isfinite(instance.parallelism[n]):
        rows.append([1 / most if most else number(0) for most in one])
        bounds.append(number(instance.parallelism[n]))
    if not servers:
        return number(0)
    return _largest([number(instance.speeds[n, i]) for i in servers], rows, bounds, number)


def work_of_pool(
    instance: fo.Instance, n: int, number: Callable[[Any], Number], counts: Mapping[str, float] = MappingProxyType({})
) -> Number:
    """Return the most work of a user with the capacity of the cluster as one pool, no server offering more than its most plentiful part.

    Only what counts is plentiful; where a task takes nothing that counts, everything is.
    """
    last = come_last(instance, counts)[n]
    times = [number(1 if last else counts.get(name, 1)) for name in instance.resources]
    servers = range(instance.n_servers)
    rows = [[times[r] * number(_demand(instance, n, i)[r]) for i in servers] for r in range(instance.n_resources)]
    bounds = _totals(instance, number)
    for i in servers:
        takes = [times[r] * number(d) for r, d in enumerate(_demand(instance, n, i))]
        takes = takes if any(takes) else [number(d) for d in _demand(instance, n, i)]
        there = zip(instance.capacities[i], takes, strict=False)
        offers = [number(instance.counts[i]) * number(c) / d for c, d in there if d > 0]
        if offers:
            rows.append([number(int(k == i)) for k in servers])
            bounds.append(max(offers))
    return _largest([number(instance.speeds[n, i]) for i in servers], rows, bounds, number)


def come_last(instance: fo.Instance, counts: Mapping[str, float]) -> list[bool]:
    """Return who demands nothing that counts; what is not named counts once."""
    weight = [counts.get(name, 1.0) for name in instance.resources]
    most = instance.demands_by_kind.max(axis=1)
    return [not any(d > 0 and m > 0 for d, m in zip(demand, weight, strict=True)) for demand in most]


def _parts(instance: fo.Instance, counts: Mapping[str, float], number: Callable[[Any], Number]) -> list[list[Number | None]]:
    """Return the parts of the cluster that a task of each user takes, times what they count (for who comes last once); None: endless."""
    total, found = _totals(instance, number), []
    for demand, last in zip(instance.demands, come_last(instance, counts), strict=True):
        times = [number(1 if last else counts.get(name, 1)) for name in instance.resources]
        found.append(
            [(m * number(d) / c if c else None) if d > 0 and m > 0 else number(0) for d, c, m in zip(demand, total, times, strict=True)]
        )
    return found


def worth_of(
    instance: fo.Instance, notion: str, number: Callable[[Any], Number] = float, counts: Mapping[str, float] = MappingProxyType({})
) -> list[Number]:
    """Return the share of a unit of work of each user, not divided by its weight, from the definition of the notion."""
    found: list[Number] = []
    if instance.differs_by_server and notion == "drfh":
        most = [work_of_pool(instance, n, number, counts) for n in range(instance.n_users)]
        return [1 / work if work else number(1) for work in most]
    no_parts: list[list[Number | None]] = [[] for _ in range(instance.n_users)]
    for n, parts in enumerate(no_parts if instance.differs_by_server else _parts(instance, counts, number)):
        if notion in ("cdrf", "tsf"):
            alone = tasks_alone(instance, n, number, everywhere=notion == "tsf", at_once=notion == "cdrf")
            found.append(1 / alone if alone else number(1))
        elif notion == "max-min":
            found.append(number(1))
        elif None in parts:
            found.append(number(1))  # it can hold nothing
        else:
            found.append(sum(parts, number(0)) if notion == "asset" else max(parts))  # type: ignore[arg-type, type-var]
    return found


# Levels --------------------------------------------------------------------------------------------------------------------------


def _largest(
    cost: Sequence[Number], matrix: Sequence[Sequence[Number]], bounds: Sequence[Number], number: Callable[[Any], Number]
) -> Number:
    """Return the largest cost z, matrix z <= bounds, z >= 0."""
    if number is not float:
        return maximise(cost, matrix, bounds)[0]
    right = np.array(bounds, float)
    for settings in _ATTEMPTS:
        found = optimum(cost, matrix, right, **settings)
        if found.x is not None:
            return found.value
    raise ArithmeticError(found.status)


class _Levels:
    """The LPs of levels; columns are U of pairs in units of what their user has."""

    def __init__(self, polytope: Polytope, worth: Sequence[Number], number: Callable[[Any], Number]) -> None:
        self.polytope, self.number = polytope, number
        self.worth = np.array([worth[n] for n in polytope.users], float if number is float else object) * polytope.speeds
        self.count = len(worth)
        self.exact = number is not float

    def _lines(self, unit: Sequence[Number]) -> tuple[list[Any], list[Number], list[Any]]:
        """Return the rows, their bounds, and U of each user, over columns in these units."""
        one = self.number(1)
        units = np.array([unit[n] for n in self.polytope.users], self.worth.dtype)
        matrix, bounds = self.polytope.matrix * (units / self.worth), self.polytope.bounds
        lines, right = [], []
        for line, bound in zip(matrix, bounds, strict=True):
            by = one if self.exact else max(float(np.abs(line).max(initial=0.0)) if bound == 0 else abs(bound), 1e-300) / _MAGNIFIED
            if line.any():
                lines.append(line / by)
                right.append(bound / by)
            elif bound < 0:
                raise ArithmeticError("no point is feasible")
        own = [np.where(self.polytope.users == n, one, one * 0) for n in range(self.count)]
        return lines, right, own

    def alone(self, n: int) -> Number:
        """Return the largest U of a user."""
        zero, most = self.number(0), self.number(1)
        for _ in range(1 if self.exact else 3):  # at last in units of itself
            lines, right, own = self._lines([most if m == n else self.number(1) for m in range(self.count)])
            most = most * _largest(own[n].tolist(), lines, right, self.number) or zero
            if not most:
                break
        return most

    def rise(self, share: Sequence[Number], rates: Mapping[int, Number], scale: Number) -> Number:
        """Return the largest tau; ``scale`` is about as large."""
        zero, times = self.number(0), 1 if self.exact else _MAGNIFIED
        unit = [share[n] + rates.get(n, zero) * scale or self.number(1) for n in range(self.count)]
        lines, right, own = self._lines(unit)
        matrix = [[*line, zero] for line in lines]
        for n in range(self.count):
            if share[n] or n in rates:
                matrix.append([*(-own[n] * times), rates.get(n, zero) * scale / unit[n] * times])
                right.append(-share[n] / unit[n] * times * (1 if self.exact else 1 - 1e-13))
        return _largest([*[zero] * self.worth.size, self.number(1)], matrix, right, self.number) * scale

    def stopped(self, share: Sequence[Number], rates: Collection[int]) -> list[int]:
        """Return who can have no more than its share while all others have theirs."""
        times, near = (1, 1) if self.exact else (_MAGNIFIED, 1 - 1e-13)
        unit = [value or self.number(1) for value in share]
        lines, right, own = self._lines(unit)
        gains: dict[int, Number] = {}
        for n in rates:
            others = [m for m in range(self.count) if m != n and share[m]]
            value = _largest(
                own[n].tolist(),
                [*lines, *(-own[m] * times for m in others)],
                [*right, *[-self.number(1) * times * near] * len(others)],
                self.number,
            )
            gains[n] = value - (1 if share[n] else 0)
        least = 0 if self.exact else _STOPPED
        return [n for n, gain in gains.items() if gain <= least] or [min(gains, key=gains.__getitem__)]


def filled(
    polytope: Polytope, worth: Sequence[Number], classes: Sequence[Collection[int]], rates: Rates, number: Callable[[Any], Number] = float
) -> list[Number]:
    """Return U of each user.

    Parameters
    ----------
    worth : sequence of (users,)
        U of a unit of work of each user.
    classes : sequence of collections of users
        Who rises after whom: users of the first until all of them have stopped, and so on.
    rates : callable
        How fast each of those rises who have not stopped.
    """
    levels, share = _Levels(polytope, worth, number), [number(0)] * len(worth)
    alone = [levels.alone(n) for n in range(len(worth))]
    for users in classes:
        active = {n for n in users if alone[n] > (0 if levels.exact else 1e-12)}
        while active:
            now = rates(active)
            most = tau = min(alone[n] / rate for n, rate in now.items())
            for _ in range(1 if levels.exact else 4):
                before, tau = tau, levels.rise(share, now, tau)
                if not levels.exact and tau <= _NOTHING * most:
                    tau = 0.0
                if tau == 0 or 0.5 <= tau / before <= 2:
                    break
            for n, rate in now.items():
                share[n] += rate * tau
            active -= set(levels.stopped(share, now))
    return share


def rates_of_tree(
    instance: fo.Instance,
    worth: Sequence[Number],
    *,
    dominant: bool,
    number: Callable[[Any], Number] = float,
    counts: Mapping[str, float] = MappingProxyType({}),
) -> Rates:
    """Return how fast users rise in a tree without guarantees: a node with rate R hands R w[c] / m to each child c that rises.

    Of the children of a listed queue only the first rises that has not stopped.
    """
    of_cluster = _parts(instance, counts, number) if dominant else [[] for _ in worth]
    parts = [[(part or number(0)) / worth[n] for part in own] for n, own in enumerate(of_cluster)]
    order = {queue.name: queue.order for queue in instance.queues}

    def rates(active: Collection[int]) -> Mapping[int, Number]:
        found: dict[int, Number] = {}

        def children(name: str | None) -> list[tuple[Number, Any]]:
            below: list[tuple[Number, Any]] = [
                (number(queue.weight), queue.name) for queue in instance.queues if queue.parent == name and is_active(queue.name)
            ]
            below += [(number(instance.weights[n]), n) for n in sorted(active) if instance.queue_of[n] == name]
            return below[:1] if name is not None and order[name] == "listed" else below

        def is_active(name: str) -> bool:
            return any(name == instance.queue_of[n] for n in active) or any(
                queue.parent == name and is_active(queue.name) for queue in instance.queues
            )

        def measured(node: Any) -> tuple[list[Number], Number]:
            """Return e and m of a node."""
            if isinstance(node, int):
                return parts[node], number(1)
            below = [(weight, measured(child)[0]) for weight, child in children(node)]
            used = [sum((weight * own[r] for weight, own in below), number(0)) for r in range(instance.n_resources if dominant else 0)]
            size = max(used) if dominant else sum((weight for weight, _ in below), number(0))
            return [value / size for value in used], size

        def hand_down(node: Any, rate: Number) -> None:
            if isinstance(node, int):
                found[node] = rate
                return
            size = measured(node)[1]
            for weight, child in children(node):
                hand_down(child, rate * weight / size)

        for weight, child in children(None):
            hand_down(child, weight)
        return found

    return rates
