"""What is promised: each guarantee of a resource to a node, what of it is held, and whether it must be asked how far it is met.

`fairopt.program.guarantees` defines promises, asks and units, and says how far they are met together. Where demands or speeds differ by
server, a promise counts the work of users, times the least amount that a unit of it takes on the guaranteed servers: what it counts follows
from their shares, and is never more than what they hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.fractions import rational
from fairopt.instance.tolerances import NOTHING
from fairopt.program.agents import extra_rows
from fairopt.program.exact import ExactProgram
from fairopt.program.limits import LimitKind
from fairopt.program.program import Program
from fairopt.program.share_limits import ShareLimits
from fairopt.program.tree_filling import TreeFilling

__all__ = [
    "MET",
    "Promise",
    "amounts_asked",
    "counted",
    "counted_by_shares",
    "groups_of",
    "guaranteed",
    "in_doubt",
    "promises_of",
    "units_of",
]

MET = 1e-11  # of a guarantee, or of the most that is possible: what lacks less is met


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
    risen = np.zeros(goal.weights.size, bool)
    for number, part in enumerate(goal.parts):
        if part.owners is None or part.extra is None:
            continue
        rows_of: dict[tuple[int, int], list[int]] = {}
        for k, owner in enumerate(part.owners.tolist()):
            if part.extra.bounds[k] > 0:
                alike = part.rows[k].resource if owner < tree.n_nodes else -1  # tasks: one of their resources says it
                rows_of.setdefault((owner, alike), []).append(k)
        risen |= part.users & np.any([row.users for row in part.rows], axis=0)  # for a guarantee of which something can be held
        rising: dict[int, BoolArray] = {}
        for (owner, resource), rows in rows_of.items():
            if owner not in rising:
                rising[owner] = risen & (tree.below[owner] if owner < tree.n_nodes else np.arange(risen.size) == owner - tree.n_nodes)
            if not rising[owner].any():  # nobody there can have more than nothing
                continue
            node = tree.parent[owner] if owner < tree.n_nodes else tree.user_node[owner - tree.n_nodes]
            kept = rows if resource >= 0 else rows[:1]
            found.append(Promise(part.names[kept[0]], owner, number, int(inside[max(node, 0)]), rising[owner], tuple(kept)))
    return tuple(found)


def amounts_asked(
    program: Program | ExactProgram, goal: TreeFilling, promises: Sequence[Promise], amount: Callable[[int, bool], Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return what promises ask for, the most that they could hold, and their units.

    ``amount`` returns what a promise, by its number, holds in the filling of its owner alone, on servers as they are or large ones.
    """
    of_owner = Counter(promise.owner for promise in promises)
    most = [amount(k, False) for k in range(len(promises))]
    asks = [amount(k, True) if of_owner[promise.owner] > 1 else guaranteed(program, goal, promise) for k, promise in enumerate(promises)]
    return asks, most, units_of(program, goal, promises, asks)


def in_doubt(program: Program | ExactProgram, goal: TreeFilling, x: Any, undisturbed: Collection[int] = ()) -> set[int]:
    """Return the owners of guarantees of which it must be asked whether they hold as much at x, (pairs,), as they could hold alone.

    The others hold all of it, or all tasks of the users who could hold more, or are ``undisturbed`` (`fairopt.program.undisturbed`).
    """
    exact = isinstance(program, ExactProgram)
    names: Program = program.program if isinstance(program, ExactProgram) else program
    doubtful = set[int]()
    able: BoolArray | None = None
    for part in goal.parts:
        if part.extra is None or part.owners is None:
            continue
        if isinstance(program, ExactProgram):
            rows, bounds = extra_rows(program, part)
            held = [sum((values * x[columns]).tolist(), rational(0)) for columns, values in rows]
            lacking = np.flatnonzero([used < bound for used, bound in zip(held, bounds, strict=True)])
        else:
            lacking = np.flatnonzero(part.extra.matrix @ x < part.extra.bounds * (1 - MET))
        lacking = np.array([k for k in lacking.tolist() if part.owners[k] not in undisturbed], np.int64)
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
    return limits.users_of(alone & (left <= MET * limits.bounds))


def _at_task_limits(program: ExactProgram, x: Any) -> BoolArray:
    """Return which users have all their tasks, (users,)."""
    full, limits = np.zeros(len(program.program.users), bool), program.program.limits
    used = program.usage(x)
    for k in np.flatnonzero(limits.of_kinds(LimitKind.TASKS)).tolist():
        full[limits.keys[k, 0]] |= used[k] == program.bounds[k]
    return full


def groups_of(program: Any, goal: TreeFilling, promise: Promise, everywhere: bool = False) -> Iterator[tuple[IntArray, Any, Any]]:
    """Yield the columns, the coefficients and the guarantee of each group of a promise; ``everywhere``: on all servers instead."""
    part = goal.parts[promise.part]
    users = program.program.pair_users if isinstance(program, ExactProgram) else program.pair_users
    for (columns, values), bound in zip(*extra_rows(program, part, promise.rows), strict=True):
        keep = promise.users[users[columns]]
        columns, values = columns[keep], values[keep]
        if columns.size and (everywhere or part.by_work):
            each = values / program.utilities[columns] if part.by_work else values
            order = np.argsort(users[columns], kind="stable")
            there, first = np.unique(users[columns][order], return_index=True)
            need = np.minimum.reduceat(each[order], first)  # of each of these users
            if everywhere:
                columns = np.flatnonzero(_marked(there, promise.users.size)[users])
            values = need[np.searchsorted(there, users[columns])]
            values = values * program.utilities[columns] if part.by_work else values
        yield columns, values, bound


def counted(program: Any, goal: TreeFilling, promise: Promise, x: Any) -> Any:
    """Return the amount of a promise at x, (pairs,): the sum over its groups, each up to its guarantee."""
    exact = isinstance(program, ExactProgram)
    zero: Any = rational(0) if exact else 0.0
    amount = total = zero
    for columns, values, guarantee in groups_of(program, goal, promise):
        amount, total = amount + min((values * x[columns]).sum(initial=zero), guarantee), total + guarantee
    return amount if amount > (0 if exact else NOTHING * total) else zero


def counted_by_shares(program: Any, goal: TreeFilling, promise: Promise, x: Any) -> bool:
    """Does the amount of a promise at x not depend on where the tasks of its users are? Else `most_counted` says the largest."""
    exact = isinstance(program, ExactProgram)
    names = program.program if exact else program
    mine = np.flatnonzero(promise.users[names.pair_users])
    groups = list(groups_of(program, goal, promise))
    if all(columns.size for columns, _, _ in groups) and len(groups) == 1 and _marked(groups[0][0], names.n_pairs)[mine].all():
        return True
    times, most = np.zeros(names.n_pairs, np.int64), False
    zero: Any = rational(0) if exact else 0.0
    for columns, values, guarantee in groups:
        times[columns] += 1
        used = (values * x[columns]).sum(initial=zero)
        most |= bool(used > guarantee * (1 if exact else 1 + MET))
    held = np.asarray(x[mine] > 0, bool)
    needs = _marked(names.pair_users[times > 0], promise.users.size)[names.pair_users[mine]]
    return not most and bool((times[mine] <= 1).all()) and not (held & needs & (times[mine] == 0)).any()


def _marked(positions: IntArray, size: int) -> BoolArray:
    """Return which of so many positions are among these, (size,)."""
    marked = np.zeros(size, bool)
    marked[positions] = True
    return marked


def guaranteed(program: Any, goal: TreeFilling, promise: Promise) -> Any:
    """Return the guarantee of a promise, the sum over its groups."""
    zero: Any = rational(0) if isinstance(program, ExactProgram) else 0.0
    return sum(extra_rows(program, goal.parts[promise.part], promise.rows)[1], zero)


def units_of(program: Any, goal: TreeFilling, promises: Sequence[Promise], asks: Sequence[Any]) -> list[Any]:
    """Return the unit b of each promise from what each asks for; 0 of those that ask for nothing."""
    of_owner: dict[int, Any] = {}
    for promise, ask in zip(promises, asks, strict=True):
        part = ask / guaranteed(program, goal, promise)
        of_owner[promise.owner] = max(of_owner.get(promise.owner, part), part)
    return [ask / of_owner[promise.owner] if ask > 0 else ask for promise, ask in zip(promises, asks, strict=True)]
