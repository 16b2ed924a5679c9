r"""How far guarantees are met together: asks, parts and floors.

A *promise* is a guarantee of one resource to a node v, a queue or a user. Its amount is what the users who rise for it hold of the resource
on the guaranteed servers: the sum over the groups of servers that have a guarantee, each group counted up to its guarantee.

*Asks.* a[v,r] is what v holds when it is filled alone up to its guarantee, inner guarantees first, on servers that are large enough. The
*most*, m[v,r], is the same in the cluster as it is, empty.

*Parts.* The unit of a promise is b[v,r] = a[v,r] / f[v], where f[v] is the largest a[v,r] / guarantee over r. With one resource it is the
guarantee. A part p <= m / b of it can be met if a feasible x has an amount of at least p b. The parts are the leximin of p: first of the
guaranteed nodes in no other guaranteed node, then, with their parts kept, of those in one, and so on.

*Floors.* The amounts p b are kept in all parts of the filling: a share rises only as long as some feasible y, the *completion*, has no less
than the shares of all users and meets all floors. The extra limits of a part bind x and not y. So a level has two programs with one t,

    x:  the limits and the extra limits,   s(x) >= S + rate t        y:  the limits and the floors,   s(y) >= S + rate t

and the smaller t counts. In the surplus amounts count on all servers.

*Programs of agents.* In all of these there are *agents*: users, whose shares must be kept or rise; promises, each group of which may lack
u >= 0 of its guarantee; and parts. With columns u and w behind those of tasks,

    use of the group + u >= guarantee,         sum of u + b w <= sum of guarantees          (w is the part, as far as it counts)

so that limits and agents have coefficients >= 0:  maximise t  subject to  A z <= b,  sum of worth z >= start + rate t for each agent.

*Raised limits.* Earlier parts may have given more than an extra limit allows. Such a limit is raised by as little as possible: by
e[k] T[k], T the capacity that it is about, where e is the smallest that leaves every share feasible, in the leximin order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.fractions import rational
from fairopt.instance.tolerances import DIGITS, NOTHING, SAME
from fairopt.program.exact import ExactProgram, exact_rows
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.program import Program, Solution, Stage
from fairopt.program.share_limits import ShareLimits
from fairopt.program.tree_filling import Part, TreeFilling

__all__ = [
    "AgentProgram",
    "Floors",
    "Promise",
    "alone_in",
    "amounts_by_shares",
    "ample",
    "completion",
    "counted",
    "counted_by_shares",
    "guaranteed",
    "in_doubt",
    "most_counted",
    "parts_program",
    "promises_of",
    "raised_limits",
    "raising",
    "units_of",
]

_MET = 1e-11  # of a guarantee, or of the most that is possible: what lacks less is met

Rows = list[tuple[IntArray, Any]]
"""Of each row its columns and its coefficients: floats, or rationals in an array of objects."""


# What is promised ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Promise:
    """A guarantee of a resource to a node; of a user its tasks.

    Attributes
    ----------
    name : str
    owner : int
        The node of a queue, or the number of nodes plus that of a user.
    part : int
        The part of the filling in which it is met.
    above : int
        How many guaranteed queues its owner is in.
    users : bool array (users,)
        Who rises for it.
    rows : tuple of int
        The extra limits of the part that say it, one of each group of servers.
    """

    name: str
    owner: int
    part: int
    above: int
    users: BoolArray
    rows: tuple[int, ...]


def promises_of(goal: TreeFilling) -> tuple[Promise, ...]:
    """Return the promises of a filling."""
    tree, found = goal.tree, list[Promise]()
    guaranteed = np.zeros(tree.n_nodes, bool)
    for part in goal.parts:
        if part.node_rates is not None:
            guaranteed |= np.asarray(part.node_rates > 0, bool)
    inside = np.zeros(tree.n_nodes, np.int64)  # guaranteed queues at a node or above it
    for node in tree.downwards():
        inside[node] = (inside[tree.parent[node]] if node else 0) + guaranteed[node]
    for number, part in enumerate(goal.parts):
        if part.owners is None or part.extra is None:
            continue
        rows_of: dict[tuple[int, int], list[int]] = {}
        for k, owner in enumerate(part.owners.tolist()):
            if part.extra.bounds[k] > 0:
                alike = part.rows[k].resource if owner < tree.n_nodes else -1  # tasks: one of their resources says it
                rows_of.setdefault((owner, alike), []).append(k)
        rising: dict[int, BoolArray] = {}
        for (owner, resource), rows in rows_of.items():
            if owner not in rising:
                mine = [each.of(tree, owner) for each in goal.parts[: number + 1]]
                rising[owner] = np.any([each.users for each in mine if each is not None], axis=0)
            node = tree.parent[owner] if owner < tree.n_nodes else tree.user_node[owner - tree.n_nodes]
            kept = rows if resource >= 0 else rows[:1]
            found.append(Promise(part.names[kept[0]], owner, number, int(inside[max(node, 0)]), rising[owner], tuple(kept)))
    return tuple(found)


def in_doubt(program: Program | ExactProgram, goal: TreeFilling, x: Any) -> set[int]:
    """Return the owners of guarantees of which it must be asked whether they hold as much at x, (pairs,), as they could hold alone.

    The others hold all of it, or all tasks of the users who could hold more.
    """
    exact = isinstance(program, ExactProgram)
    names: Program = program.program if isinstance(program, ExactProgram) else program
    doubtful = set[int]()
    able: BoolArray | None = None
    for part in goal.parts:
        if part.extra is None or part.owners is None:
            continue
        if isinstance(program, ExactProgram):
            rows, bounds = _extra_rows(program, part)
            held = [sum((values * x[columns]).tolist(), rational(0)) for columns, values in rows]
            lacking = np.flatnonzero([used < bound for used, bound in zip(held, bounds, strict=True)])
        else:
            lacking = np.flatnonzero(part.extra.matrix @ x < part.extra.bounds * (1 - _MET))
        if not lacking.size:
            continue
        if able is None:
            risen = np.any([each.users for each in goal.parts if each.guarantees], axis=0)
            free = risen & ~(_at_task_limits(program, x) if isinstance(program, ExactProgram) else _at_own_limits(program, x))
            largest: Any = program.largest()
            room = np.array([most > 0 for most in largest], bool) if exact else largest > 0
            able = free[names.pair_users] & room
        matrix = part.extra.matrix
        for k in lacking.tolist():
            if able[matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]]].any():
                doubtful.add(int(part.owners[k]))
    return doubtful


def _at_own_limits(program: Program, x: FloatArray) -> BoolArray:
    """Return which users have all that limits of their own allow, (users,)."""
    limits = ShareLimits.of(program)
    left = limits.left(program.per_user(x * program.utilities))
    alone = np.diff(limits.uses.indptr) == 1
    return limits.users_of(alone & (left <= _MET * limits.bounds))


def _at_task_limits(program: ExactProgram, x: Any) -> BoolArray:
    """Return which users have all their tasks, (users,)."""
    full, limits = np.zeros(len(program.program.users), bool), program.program.limits
    used = program.usage(x)
    for k in np.flatnonzero(limits.of_kinds(LimitKind.TASKS)).tolist():
        full[limits.keys[k, 0]] |= used[k] == program.bounds[k]
    return full


# Programs of agents --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class AgentProgram:
    """Maximise t subject to A z <= b, and sum of worth z >= start + rate t for each agent; z, t >= 0. All coefficients are >= 0.

    Attributes
    ----------
    limits : list of (columns, coefficients)
    bounds : array (limits,)
    agents : list of (columns, worths)
    n_pairs : int
        Number of columns: those of the tasks come first.
    exact : bool
        In rationals?
    """

    limits: Rows
    bounds: Any
    agents: Rows
    n_pairs: int
    exact: bool
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
            self._matrices.extend(_sparse(rows, self.n_pairs) for rows in (self.limits, self.agents))
        return self._matrices

    def largest(self) -> Any:
        """Return the largest value that each column can take by itself, (columns,); inf without a limit."""
        if not self.exact:
            best, matrix = np.full(self.n_pairs, np.inf), self.matrix
            np.minimum.at(best, matrix.indices, np.repeat(self.bounds, np.diff(matrix.indptr)) / matrix.data)
            return best
        largest: list[Any] = [float("inf")] * self.n_pairs
        for (columns, values), bound in zip(self.limits, self.bounds.tolist(), strict=True):
            for column, value in zip(columns.tolist(), values.tolist(), strict=True):
                room = bound / value
                if isinstance(largest[column], float) or room < largest[column]:
                    largest[column] = room
        return largest


def _sparse(rows: Rows, width: int) -> sp.csr_array:
    indptr = np.append(0, np.cumsum([columns.size for columns, _ in rows]))
    columns = np.concatenate([np.empty(0, np.int64), *(columns for columns, _ in rows)])
    data = np.concatenate([np.empty(0), *(np.asarray(values, float) for _, values in rows)])
    return sp.csr_array((data, columns, indptr), shape=(len(rows), width))


class _Builder:
    """A program of agents, as it grows from the limits of a program."""

    def __init__(self, program: Program | ExactProgram) -> None:
        self.exact = isinstance(program, ExactProgram)
        self.rows, bounds = _limits_of(program)
        self.bounds: list[Any] = list(bounds)
        self.agents: Rows = []
        self.width = program.n_pairs
        self.one: Any = rational(1) if self.exact else 1.0

    def column(self) -> int:
        self.width += 1
        return self.width - 1

    def limit(self, columns: Sequence[int], values: Sequence[Any], bound: Any) -> None:
        self.rows.append((np.array(columns, np.int64), self._numbers(values)))
        self.bounds.append(bound)

    def agent(self, columns: Sequence[int] | IntArray, values: Any) -> None:
        self.agents.append((np.array(columns, np.int64), self._numbers(values)))

    def users(self, program: Any) -> None:
        """Let the users be the first agents."""
        names = program.program if self.exact else program
        first = np.searchsorted(names.pair_users, np.arange(len(names.users) + 1))
        for low, high in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
            self.agent(np.arange(low, high), program.utilities[low:high])

    def done(self) -> AgentProgram:
        return AgentProgram(self.rows, self._numbers(self.bounds), self.agents, self.width, self.exact)

    def _numbers(self, values: Any) -> Any:
        if not self.exact:
            return np.asarray(values, float)
        numbers = np.empty(len(values), object)
        numbers[:] = list(values)
        return numbers


def _limits_of(program: Any) -> tuple[Rows, list[Any]]:
    if isinstance(program, ExactProgram):
        matrix, data = program.program.limits.matrix, program.data
    else:
        matrix, data = program.limits.matrix, program.limits.matrix.data
    bounds = program.bounds if isinstance(program, ExactProgram) else program.limits.bounds
    spans = list(zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True))
    return [(matrix.indices[low:high].astype(np.int64), data[low:high]) for low, high in spans], bounds.tolist()


def _extra_rows(program: Any, part: Part) -> tuple[Rows, list[Any]]:
    """Return the extra limits of a part, in the numbers of a program."""
    extra = part.extra
    assert extra is not None
    if isinstance(program, ExactProgram):
        data, bounds = exact_rows(program.program, extra, program.instance, part.rows)
    else:
        data, bounds = extra.matrix.data, extra.bounds
    spans = list(zip(extra.matrix.indptr[:-1].tolist(), extra.matrix.indptr[1:].tolist(), strict=True))
    return [(extra.matrix.indices[low:high].astype(np.int64), data[low:high]) for low, high in spans], bounds.tolist()


def _groups(program: Any, goal: TreeFilling, promise: Promise, everywhere: bool = False) -> Iterator[tuple[IntArray, Any, Any]]:
    """Yield the columns, the coefficients and the guarantee of each group of a promise; ``everywhere``: on all servers instead."""
    rows, bounds = _extra_rows(program, goal.parts[promise.part])
    users = program.program.pair_users if isinstance(program, ExactProgram) else program.pair_users
    for k in promise.rows:
        columns, values = rows[k]
        keep = promise.users[users[columns]]
        columns, values = columns[keep], values[keep]
        if everywhere:
            need: dict[int, Any] = dict(zip(users[columns].tolist(), values.tolist(), strict=True))
            columns = np.flatnonzero(np.isin(users, list(need)))
            wide = np.empty(columns.size, values.dtype)
            wide[:] = [need[n] for n in users[columns].tolist()]
            values = wide
        yield columns, values, bounds[k]


def counted(program: Any, goal: TreeFilling, promise: Promise, x: Any) -> Any:
    """Return the amount of a promise at x, (pairs,): the sum over its groups, each up to its guarantee."""
    exact = isinstance(program, ExactProgram)
    zero: Any = rational(0) if exact else 0.0
    amount = total = zero
    for columns, values, guarantee in _groups(program, goal, promise):
        amount, total = amount + min(sum((values * x[columns]).tolist(), zero), guarantee), total + guarantee
    return amount if amount > (0 if exact else NOTHING * total) else zero


def counted_by_shares(program: Any, goal: TreeFilling, promise: Promise, x: Any) -> bool:
    """Does the amount of a promise at x not depend on where the tasks of its users are? Else `most_counted` says the largest."""
    exact = isinstance(program, ExactProgram)
    names = program.program if exact else program
    mine = np.flatnonzero(promise.users[names.pair_users])
    groups = list(_groups(program, goal, promise))
    if all(columns.size for columns, _, _ in groups) and len(groups) == 1 and np.isin(mine, groups[0][0]).all():
        return True
    times, most = np.zeros(names.n_pairs, np.int64), False
    zero: Any = rational(0) if exact else 0.0
    for columns, values, guarantee in groups:
        times[columns] += 1
        used = sum((values * x[columns]).tolist(), zero)
        most |= used > guarantee * (1 if exact else 1 + _MET)
    held = np.array([value > 0 for value in x[mine].tolist()], bool)
    needs = np.isin(names.pair_users, names.pair_users[np.flatnonzero(times)])[mine]
    return not most and bool((times[mine] <= 1).all()) and not (held & needs & (times[mine] == 0)).any()


def most_counted(program: Any, goal: TreeFilling, promise: Promise, shares: Any) -> tuple[AgentProgram, list[Any]]:
    """Return the program of the largest amount of a promise at some shares, (users,), and where agents start: the last one rises.

    Its columns are those of the tasks first.
    """
    builder = _Builder(program)
    builder.users(program)
    start = [share if builder.exact else share * (1 - DIGITS) for share in shares]
    for (columns, worths), share in zip(list(builder.agents), shares, strict=True):
        if columns.size:
            builder.limit(columns.tolist(), list(worths), share)
    lacking, total = _shortfalls(builder, program, goal, promise, False)
    start += [amount for _, _, amount in _groups(program, goal, promise)]
    w = builder.column()
    builder.limit([*lacking, w], [builder.one] * (len(lacking) + 1), total)
    builder.agent([w], [builder.one])
    return builder.done(), [*start, builder.one * 0]


def guaranteed(program: Any, goal: TreeFilling, promise: Promise) -> Any:
    """Return the guarantee of a promise, the sum over its groups."""
    zero: Any = rational(0) if isinstance(program, ExactProgram) else 0.0
    return sum((amount for _, _, amount in _groups(program, goal, promise)), zero)


def units_of(program: Any, goal: TreeFilling, promises: Sequence[Promise], asks: Sequence[Any]) -> list[Any]:
    """Return the unit b of each promise from what each asks for; 0 of those that ask for nothing."""
    of_owner: dict[int, Any] = {}
    for promise, ask in zip(promises, asks, strict=True):
        part = ask / guaranteed(program, goal, promise)
        of_owner[promise.owner] = max(of_owner.get(promise.owner, part), part)
    return [ask / of_owner[promise.owner] if ask > 0 else ask for promise, ask in zip(promises, asks, strict=True)]


def _shortfalls(builder: _Builder, program: Any, goal: TreeFilling, promise: Promise, everywhere: bool) -> tuple[list[int], Any]:
    """Add what a promise may lack of its guarantees, as agents; return the columns, and the guarantee."""
    lacking, total = list[int](), builder.one * 0
    for columns, values, guarantee in _groups(program, goal, promise, everywhere):
        u = builder.column()
        builder.limit([u], [builder.one], guarantee)
        builder.agent([*columns.tolist(), u], [*values.tolist(), builder.one])
        lacking.append(u)
        total = total + guarantee
    return lacking, total


def _own_guarantees(goal: TreeFilling, promises: Sequence[Promise]) -> Iterator[Promise]:
    """Yield the guarantees of users who rise for nothing else, because a weight above them is 0: nothing beyond it counts."""
    risen, others = np.zeros(goal.weights.size, np.int64), np.zeros(goal.weights.size, bool)
    for part in goal.parts:
        if part.guarantees:
            risen += part.users
        else:
            others |= part.users
    for promise in promises:
        n = promise.owner - goal.tree.n_nodes
        if n >= 0 and risen[n] == 1 and not others[n]:
            yield promise


def parts_program(program: Any, goal: TreeFilling, promises: Sequence[Promise], units: Sequence[Any]) -> tuple[AgentProgram, list[Any]]:
    """Return the program of the parts, and where its agents start: first the groups of promises, then the parts."""
    builder, start = _Builder(program), list[Any]()
    for promise in _own_guarantees(goal, promises):
        for columns, values, guarantee in _groups(program, goal, promise):
            builder.limit(columns.tolist(), values.tolist(), guarantee)
    parts = []
    for promise, unit in zip(promises, units, strict=True):
        lacking, total = _shortfalls(builder, program, goal, promise, False)
        start += [amount for _, _, amount in _groups(program, goal, promise)]
        w = builder.column()
        builder.limit([*lacking, w], [*[builder.one] * len(lacking), unit if unit > 0 else total], total)
        parts.append(w)
    for w in parts:
        builder.agent([w], [builder.one])
    return builder.done(), start


def completion(
    program: Any, goal: TreeFilling, promises: Sequence[Promise], floors: Sequence[Any], everywhere: bool
) -> tuple[AgentProgram, list[Any]]:
    """Return the program of the completions y, and where the agents behind the users start, the groups of promises."""
    builder, start = _Builder(program), list[Any]()
    builder.users(program)
    for promise in _own_guarantees(goal, promises):
        for columns, values, guarantee in _groups(program, goal, promise):
            builder.limit(columns.tolist(), values.tolist(), guarantee)
    for promise, floor in zip(promises, floors, strict=True):
        if not floor > 0:
            continue
        lacking, total = _shortfalls(builder, program, goal, promise, everywhere)
        start += [amount for _, _, amount in _groups(program, goal, promise)]
        left = total - floor
        builder.limit(lacking, [builder.one] * len(lacking), left if left > (0 if builder.exact else SAME * total) else left * 0)
    return builder.done(), start


def amounts_by_shares(
    program: Program, goal: TreeFilling, promises: Sequence[Promise], floors: Sequence[float], everywhere: bool
) -> tuple[sp.csr_array, FloatArray] | None:
    """Return what a unit of each user's share adds to each floor, (floors, users), and the floors.

    None: it depends on where tasks are.
    """
    rows, least = list[tuple[IntArray, Any]](), list[float]()
    for promise, floor in zip(promises, floors, strict=True):
        if not floor > 0:
            continue
        groups = list(_groups(program, goal, promise, everywhere))
        mine = np.flatnonzero(promise.users[program.pair_users])
        columns, values, _ = groups[0]
        per_share = values / program.utilities[columns]
        users = program.pair_users[columns]
        most, fewest = np.zeros(len(program.users)), np.full(len(program.users), np.inf)
        np.maximum.at(most, users, per_share)
        np.minimum.at(fewest, users, per_share)
        whole = np.isin(mine, columns) | ~np.isin(program.pair_users[mine], users)
        if len(groups) > 1 or not whole.all() or (most > fewest * (1 + SAME)).any():
            return None
        rows.append((np.flatnonzero(most), most[most > 0]))
        least.append(floor)
    return _sparse(rows, len(program.users)), np.array(least)


def raising(program: Any, part: Part, given: Sequence[Any], rows: IntArray) -> AgentProgram:
    """Return the program of how far some extra limits must be raised from their bounds, ``given``.

    Behind the users, the agents are 1 - e of each of these limits.
    """
    builder = _Builder(program)
    builder.users(program)
    capacities = _capacities(program, part)
    extra, _ = _extra_rows(program, part)
    raised = []
    for k, ((columns, values), bound) in enumerate(zip(extra, given, strict=True)):
        if k not in rows:
            builder.limit(columns.tolist(), values.tolist(), bound)
            continue
        w = builder.column()
        builder.limit([w], [builder.one], builder.one)
        builder.limit([*columns.tolist(), w], [*values.tolist(), capacities[k]], bound + capacities[k])
        raised.append(w)
    for w in raised:
        builder.agent([w], [builder.one])
    return builder.done()


def _capacities(program: Any, part: Part) -> list[Any]:
    """Return the most that each extra limit can be used, by what each of its columns can carry alone: T."""
    largest = program.largest()
    extra, _ = _extra_rows(program, part)
    zero: Any = rational(0) if isinstance(program, ExactProgram) else 0.0
    return [sum((value * largest[column] for column, value in zip(c.tolist(), v.tolist(), strict=True)), zero) for c, v in extra]


def raised_limits(program: Any, part: Part, x: Any) -> tuple[list[Any], IntArray, bool]:
    """Return the bounds of the extra limits after parts that ended at x, (pairs,), but for some that may have to be raised further.

    Limits on shares alone are raised to what the shares use. The second value are the other limits. The third says whether x exceeds one
    of these: then a program (`raising`) decides how far they are raised.
    """
    rows, bounds = _extra_rows(program, part)
    extra = part.extra
    assert extra is not None
    exact, zero = isinstance(program, ExactProgram), (rational(0) if isinstance(program, ExactProgram) else 0.0)
    names = program.program if isinstance(program, ExactProgram) else program
    positive, of_shares = extra.bounds > 0, np.zeros(len(extra), bool)
    of_shares[positive] = ShareLimits.of(replace(names, limits=extra.select(positive))).rows
    use = [sum((values * x[columns]).tolist(), zero) for columns, values in rows] if exact else (extra.matrix @ x).tolist()
    given = [
        max(bound, used if exact else used * (1 + SAME)) if shares else bound
        for bound, used, shares in zip(bounds, use, of_shares.tolist(), strict=True)
    ]
    others = np.flatnonzero(~of_shares)
    capacities = _capacities(program, part) if others.size else []
    over = any(use[k] > bounds[k] + (0 if exact else _MET * (bounds[k] or capacities[k])) for k in others.tolist())
    return given, others, over


def ample(program: Any, alone: TreeFilling) -> Any:
    """Return a program with servers that are large enough for all that a filling alone could give, and for what queues keep."""
    names = program.program if isinstance(program, ExactProgram) else program
    zero: Any = rational(0) if isinstance(program, ExactProgram) else 0.0
    most: list[Any] = [zero] * program.n_pairs
    for part in alone.parts:
        for (columns, values), bound in zip(*_extra_rows(program, part), strict=True):
            for column, value in zip(columns.tolist(), values.tolist(), strict=True):
                most[column] = most[column] + bound / value
    rows, bounds = _limits_of(program)
    of_servers = names.limits.of_kinds(LimitKind.CAPACITY, LimitKind.SHARED, LimitKind.TIME) & (names.limits.bounds > 0)
    of_kept = names.limits.of_kinds(LimitKind.QUEUE) & (names.limits.keys[:, 0] >= len(names.queue_limits) - len(names.kept_rows))
    for k in np.flatnonzero(of_servers | of_kept).tolist():
        columns, values = rows[k]
        bounds[k] = max(bounds[k], 2 * sum((v * most[c] for c, v in zip(columns.tolist(), values.tolist(), strict=True)), zero))
    if isinstance(program, ExactProgram):
        numbers = np.empty(len(bounds), object)
        numbers[:] = bounds
        return replace(program, bounds=numbers, kept=None)
    return replace(program, limits=program.limits.with_bounds(np.array(bounds, float)), kept=None, kept_rows=())


# What is decided -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Floors:
    """How far guarantees are met together, and what proves it.

    Attributes
    ----------
    promises : tuple of Promise
        All of them; none where every node holds the most that it could hold alone. Then there are no floors.
    asks, most, units, parts : tuples of numbers (promises,)
    stages : tuple of Stage
        Levels of the parts, from the outermost nodes in. ``agents`` are the promises that each settles; the prices are those of the limits
        and, behind them, what agents pay. None: these promises have their most.
    alone, asked : mappings
        From an owner to the filling of it alone, in the cluster as it is, and on large servers.
    points : tuple of arrays (columns,) or None
        Completions at the end of the guarantees, and at the end of the surplus; None where the allocation itself meets the floors.
    seen : tuple of arrays (pairs,)
        The points of the fillings alone in the cluster as it is, over all pairs: they must leave what queues keep, too.
    """

    promises: tuple[Promise, ...] = ()
    asks: tuple[Any, ...] = ()
    most: tuple[Any, ...] = ()
    units: tuple[Any, ...] = ()
    parts: tuple[Any, ...] = ()
    stages: tuple[Stage, ...] = ()
    alone: dict[int, Solution] = field(default_factory=dict)
    asked: dict[int, Solution] = field(default_factory=dict)
    counted: dict[tuple[int, bool], tuple[Any, Stage]] = field(default_factory=dict)
    points: tuple[Any, ...] = ()
    seen: tuple[Any, ...] = ()

    @property
    def amounts(self) -> list[Any]:
        """The floor of each promise."""
        return [part * unit for part, unit in zip(self.parts, self.units, strict=True)]


def alone_in(program: Program, goal: TreeFilling, owner: int) -> tuple[Program, IntArray]:
    """Return the program of filling one guaranteed node alone, over the columns of its users, and the positions of these columns."""
    alone = goal.alone(owner)
    users = np.any([part.users for part in alone.parts], axis=0)
    columns = np.flatnonzero(users[program.pair_users])
    parts = tuple(replace(part, extra=_of_columns(part.extra, columns, every_row=True)) for part in alone.parts if part.extra is not None)
    return (
        replace(
            program,
            pair_users=program.pair_users[columns],
            pair_servers=program.pair_servers[columns],
            utilities=program.utilities[columns],
            limits=_of_columns(program.limits, columns),
            goal=replace(alone, parts=parts),
        ),
        columns,
    )


def _of_columns(limits: Limits, columns: IntArray, every_row: bool = False) -> Limits:
    """Return limits over some columns; those without one only with ``every_row``."""
    matrix = sp.csr_array(limits.matrix[:, columns])
    some = np.ones(len(limits), bool) if every_row else np.diff(matrix.indptr) > 0
    return Limits(sp.csr_array(matrix[some]), limits.bounds[some], limits.kinds[some], limits.keys[some])
