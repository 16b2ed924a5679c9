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

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.fractions import rational
from fairopt.instance.tolerances import DIGITS, NOTHING, SAME
from fairopt.program.agents import AgentProgram, Builder, extra_rows, limits_of, sparse
from fairopt.program.exact import ExactProgram
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.program import Program
from fairopt.program.promises import MET, Promise, groups_of
from fairopt.program.share_limits import ShareLimits
from fairopt.program.solution import Solution, Stage
from fairopt.program.tree_filling import Part, TreeFilling

__all__ = [
    "Floors",
    "alone_in",
    "amounts_by_shares",
    "ample",
    "caps",
    "completion",
    "most_counted",
    "parts_program",
    "raised_limits",
    "raising",
]


# Programs of agents --------------------------------------------------------------------------------------------------------------


def most_counted(program: Any, goal: TreeFilling, promise: Promise, shares: Any) -> tuple[AgentProgram, list[Any]]:
    """Return the program of the largest amount of a promise at some shares, (users,), and where agents start: the last one rises.

    Its columns are those of the tasks first.
    """
    builder = Builder(program)
    builder.users(program)
    start = [share if builder.exact else share * (1 - DIGITS) for share in shares]
    for (columns, worths), share in zip(list(builder.agents), shares, strict=True):
        if columns.size:
            builder.limit(columns.tolist(), list(worths), share)
    lacking, given = _shortfalls(builder, program, goal, promise, False)
    start += given
    w = builder.column()
    builder.limit([*lacking, w], [builder.one] * (len(lacking) + 1), sum(given, builder.one * 0))
    builder.agent([w], [builder.one])
    return builder.done(), [*start, builder.one * 0]


def _shortfalls(builder: Builder, program: Any, goal: TreeFilling, promise: Promise, everywhere: bool) -> tuple[list[int], list[Any]]:
    """Add what a promise may lack of its guarantees, as agents; return the columns, and the guarantees."""
    lacking, given = list[int](), list[Any]()
    for columns, values, guarantee in groups_of(program, goal, promise, everywhere):
        u = builder.column()
        builder.limit([u], [builder.one], guarantee)
        builder.agent([*columns.tolist(), u], [*values.tolist(), builder.one])
        lacking.append(u)
        given.append(guarantee)
    return lacking, given


def caps(program: Any, goal: TreeFilling, promises: Sequence[Promise]) -> Iterator[tuple[IntArray, Any, Any]]:
    """Yield limits on users who rise for no guarantee but one, and not in the surplus, because a weight above them is 0.

    Nothing beyond that guarantee counts: neither more than it, or than inner guarantees gave, nor on other servers than it names.
    Each limit has columns, coefficients and a bound.
    """
    last = np.zeros(goal.weights.size, np.int64)  # the last part in which each user rises
    for number, part in enumerate(goal.parts):
        last[part.users] = number
    users = program.program.pair_users if isinstance(program, ExactProgram) else program.pair_users
    for owner, number in dict.fromkeys((promise.owner, promise.part) for promise in promises):
        mine = goal.parts[number].of(goal.tree, owner)
        if mine is None or mine.owners is None or not (only := mine.users & (last == number)).any():
            continue
        inner = [each for part in goal.parts[:number] if (each := part.of(goal.tree, owner)) is not None]
        before = [(row, bound) for each in inner for row, bound in zip(each.rows, extra_rows(program, each)[1], strict=True)]
        rows, bounds = extra_rows(program, mine)
        for k in np.flatnonzero(mine.owners == owner).tolist():
            columns, values = rows[k]
            keep = only[users[columns]]
            given = sum(
                (bound for row, bound in before if row.resource == mine.rows[k].resource and (row.users & only).any()), bounds[k] * 0
            )
            if keep.any():
                yield columns[keep], values[keep], max(bounds[k], given)


def parts_program(program: Any, goal: TreeFilling, promises: Sequence[Promise], units: Sequence[Any]) -> tuple[AgentProgram, list[Any]]:
    """Return the program of the parts, and where its agents start: first the groups of promises, then the parts."""
    builder, start = Builder(program), list[Any]()
    for columns, values, most in caps(program, goal, promises):
        builder.limit(columns.tolist(), values.tolist(), most)
    parts = []
    for promise, unit in zip(promises, units, strict=True):
        lacking, given = _shortfalls(builder, program, goal, promise, False)
        start += given
        total, w = sum(given, builder.one * 0), builder.column()
        builder.limit([*lacking, w], [*[builder.one] * len(lacking), unit if unit > 0 else total], total)
        parts.append(w)
    for w in parts:
        builder.agent([w], [builder.one])
    return builder.done(), start


def completion(
    program: Any, goal: TreeFilling, promises: Sequence[Promise], floors: Sequence[Any], everywhere: bool
) -> tuple[AgentProgram, list[Any]]:
    """Return the program of the completions y, and where the agents behind the users start, the groups of promises."""
    builder, start = Builder(program), list[Any]()
    builder.users(program)
    for columns, values, most in caps(program, goal, promises):
        builder.limit(columns.tolist(), values.tolist(), most)
    for promise, floor in zip(promises, floors, strict=True):
        if not floor > 0:
            continue
        lacking, given = _shortfalls(builder, program, goal, promise, everywhere)
        start += given
        total = sum(given, builder.one * 0)
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
        groups = list(groups_of(program, goal, promise, everywhere))
        mine = np.flatnonzero(promise.users[program.pair_users])
        columns, values, _ = groups[0]
        per_share = values / program.utilities[columns]
        users = program.pair_users[columns]
        most, fewest = np.zeros(len(program.users)), np.full(len(program.users), np.inf)
        np.maximum.at(most, users, per_share)
        np.minimum.at(fewest, users, per_share)
        in_row, needs = np.zeros(program.n_pairs, bool), np.zeros(len(program.users), bool)
        in_row[columns], needs[users] = True, True
        whole = in_row[mine] | ~needs[program.pair_users[mine]]
        if len(groups) > 1 or not whole.all() or (most > fewest * (1 + SAME)).any():
            return None
        rows.append((np.flatnonzero(most), most[most > 0]))
        least.append(floor)
    return sparse(rows, len(program.users)), np.array(least)


def raising(program: Any, part: Part, given: Sequence[Any], rows: IntArray) -> AgentProgram:
    """Return the program of how far some extra limits must be raised from their bounds, ``given``.

    Behind the users, the agents are 1 - e of each of these limits.
    """
    builder = Builder(program)
    builder.users(program)
    capacities = _capacities(program, part)
    extra, _ = extra_rows(program, part)
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
    """Return the most that each extra limit can be used, T: what its columns could carry, each alone; 1 where that is nothing."""
    largest = program.largest()
    extra, _ = extra_rows(program, part)
    zero: Any = rational(0) if isinstance(program, ExactProgram) else 0.0
    most = [sum((value * largest[column] for column, value in zip(c.tolist(), v.tolist(), strict=True)), zero) for c, v in extra]
    return [each if each > 0 else zero + 1 for each in most]


def raised_limits(program: Any, part: Part, x: Any) -> tuple[list[Any], IntArray, bool]:
    """Return the bounds of the extra limits after parts that ended at x, (pairs,), but for some that may have to be raised further.

    Limits on shares alone are raised to what the shares use. The second value are the other limits. The third says whether x exceeds one
    of these: then a program (`raising`) decides how far they are raised.
    """
    rows, bounds = extra_rows(program, part)
    extra = part.extra
    assert extra is not None
    exact, zero = isinstance(program, ExactProgram), (rational(0) if isinstance(program, ExactProgram) else 0.0)
    names = program.program if isinstance(program, ExactProgram) else program
    of_shares = ShareLimits.of(names, part).rows
    use = [sum((values * x[columns]).tolist(), zero) for columns, values in rows] if exact else (extra.matrix @ x).tolist()
    given = [
        max(bound, used if exact else used * (1 + SAME)) if shares else bound
        for bound, used, shares in zip(bounds, use, of_shares.tolist(), strict=True)
    ]
    if not names.down_closed:  # rules may force a node to hold more than its shares say
        given, of_shares = list(bounds), np.zeros(len(extra), bool)
    others = np.flatnonzero(~of_shares)
    capacities = _capacities(program, part) if others.size else []
    over = any(use[k] > bounds[k] + (0 if exact else MET * (bounds[k] or capacities[k])) for k in others.tolist())
    return given, others, over


def ample(program: Any, alone: TreeFilling) -> Any:
    """Return a program with servers that are large enough for all that a filling alone could give, and for what queues keep."""
    names = program.program if isinstance(program, ExactProgram) else program
    zero: Any = rational(0) if isinstance(program, ExactProgram) else 0.0
    most: list[Any] = [zero] * program.n_pairs
    for part in alone.parts:
        for (columns, values), bound in zip(*extra_rows(program, part), strict=True):
            for column, value in zip(columns.tolist(), values.tolist(), strict=True):
                most[column] = most[column] + bound / value
    rows, bounds = limits_of(program)
    of_servers = names.limits.of_kinds(LimitKind.CAPACITY, LimitKind.SHARED, LimitKind.TIME) & (names.limits.bounds > 0)
    of_kept = names.limits.of_kinds(LimitKind.QUEUE) & (names.limits.keys[:, 0] >= len(names.queue_limits) - len(names.kept_rows))
    for k in np.flatnonzero(of_servers | of_kept).tolist():
        columns, values = rows[k]
        wide = 2 * sum((v * most[c] for c, v in zip(columns.tolist(), values.tolist(), strict=True)), zero)
        bounds[k] = max(bounds[k], wide) if names.down_closed else bounds[k] + wide
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
    together : Solution or None
        The filling of all guarantees on large servers, from which the same is read off (`fairopt.program.filled_together`) where it can be.
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
    together: Solution | None = None
    counted: dict[tuple[int, bool], tuple[Any, Stage]] = field(default_factory=dict)
    points: tuple[Any, ...] = ()
    seen: tuple[Any, ...] = ()

    @property
    def amounts(self) -> list[Any]:
        """The floor of each promise."""
        return [part * unit for part, unit in zip(self.parts, self.units, strict=True)]

    def priced(self, stage: Stage) -> dict[str, Any]:
        """Return the floors that have a price in the proof of a stage, by the name of their guarantee.

        A price is that of a group of servers, and behind those of the limits (`completion`). What is rounding beside the largest is none.
        """
        kept = [(promise.name, floor, len(promise.rows)) for promise, floor in zip(self.promises, self.amounts, strict=True) if floor > 0]
        if not stage.floors or stage.prices is None or not kept:
            return {}
        exact, first, paid = stage.prices.dtype == object, stage.prices.size - sum(groups for *_, groups in kept), list[Any]()
        for _, floor, groups in kept:
            price = sum(stage.prices[first : first + groups].tolist())
            paid.append(price if exact else price * floor)
            first += groups
        least = 0 if exact else NOTHING * max(paid)
        return {name: floor for (name, floor, _), value in zip(kept, paid, strict=True) if value > least}


def alone_in(program: Program, goal: TreeFilling, owner: int) -> tuple[Program, IntArray]:
    """Return the program of filling one guaranteed node alone, over the columns of its users, and the positions of these columns."""
    alone = goal.alone(owner)
    users = np.any([part.users for part in alone.parts], axis=0)
    columns = np.flatnonzero(users[program.pair_users] | (not program.down_closed))  # rules may force others to hold something
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
