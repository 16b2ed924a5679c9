"""The tree of queues: each queue with its subtotals, then the queues below it, then its users.

A queue and its only user have one row if both have one name, as importers name them. More than 20 users are left out, and of more than 40
queues the deepest ones, unless everything is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairopt.allocation import Allocation, Optimum
from fairopt.allocation.counted import counted_holdings
from fairopt.allocation.holdings import QueueHoldings
from fairopt.allocation.promises import Guaranteed, Limited
from fairopt.models import ShareNotion
from fairopt.reporting.tables.bounds import PRICE
from fairopt.show.blocks import Block
from fairopt.show.table import Column, Style, Table, names, numbers, words
from fairopt.show.terminal import fits
from fairopt.wording import figure, percent, plural

__all__ = ["Tree", "lacking", "promised", "queue_blocks", "tree_of"]

_USERS = 20  # more are left out
_QUEUES = 40

_Row: TypeAlias = tuple[int, QueueHoldings | int]  # how far it is indented; a queue, or the position of a user
_Alone: TypeAlias = dict[int, int]  # by the node of a queue of one user: this user, where both have one row


class Tree(NamedTuple):
    """The rows of a tree that are shown.

    Attributes
    ----------
    table : Table
    holders : list of QueueHoldings or int
        What each row is about: a queue, or the position of a user. The last one is the cluster.
    left_out : str
        What is not shown: "30 users and 5 queues below level 2"; "" for nothing.
    """

    table: Table
    holders: list[QueueHoldings | int]
    left_out: str


def tree_of(allocation: Allocation, *, everything: bool = False) -> Tree:
    """Return the tree as one table, with guarantees and limits, but without the prices of limits."""
    allocation = allocation.as_known
    rows, alone, left_out = _rows(allocation, everything=everything)
    return Tree(_table(allocation, rows, alone, with_prices=False), [each for _, each in rows], left_out)


def queue_blocks(allocation: Allocation, width: int, *, everything: bool = False) -> Iterator[Block]:
    """Yield the table, a line that says what it leaves out, if anything, and what its columns mean.

    Where guarantees and limits do not fit beside the numbers, they are a table of their own. Of an allocation in fractions its numbers are
    fractions; the dominant share is in percent.
    """
    allocation = allocation.as_known
    rows, alone, left_out = _rows(allocation, everything=everything)
    tables = [_table(allocation, rows, alone)]
    if not fits(tables[0], width):
        bounds = _bounds_table(allocation, rows, alone)
        tables = [_table(allocation, rows, alone, with_bounds=False), *([bounds] if len(bounds) else [])]
    yield from tables
    if left_out:
        yield f"Not shown: {left_out}; --all shows everything."
    yield _legend(allocation, tables)


def _rows(allocation: Allocation, *, everything: bool) -> tuple[list[_Row], _Alone, str]:
    """Return the rows of the tree, which of them are a queue with its only user, and what is left out."""
    instance, tree = allocation.instance, allocation.instance.tree
    holdings = {each.node: each for each in allocation.queue_holdings()}
    with_users = everything or instance.n_users <= _USERS
    depth = _deepest(list(holdings.values()), everything=everything)
    rows: list[_Row] = []
    alone = _alone(allocation) if with_users else {}

    def descend(node: int) -> None:
        if node and holdings[node].depth <= depth:
            rows.append((holdings[node].depth - 1, holdings[node]))
        for child in tree.children(node):
            descend(int(child))
        if with_users:
            rows.extend((int(tree.depth[node]), int(n)) for n in tree.users_of(node) if alone.get(node) != n)

    descend(0)
    rows.append((0, holdings[0]))
    left_out = [plural(instance.n_users, "user")] if not with_users else []
    hidden = sum(each.depth > depth for each in holdings.values())
    if hidden:
        left_out.append(plural(hidden, "queue") + f" below level {depth}")
    return rows, alone, " and ".join(left_out)


_COLUMNS = {
    "work": "work: a task counts by its speed, the work that it does where it runs.",
    "order": "order: a listed queue serves what is in it one after the other.",
    "share": "share: of a queue, its users' shares added up.",
    "share / weight": "share / weight: of a queue, its users' added up.",
    "dominant share": "share: of a queue, the dominant share of everything its users hold.",
    "dominant": "dominant: the largest part of the cluster that it holds.",
    "guarantee": "guarantee: met, or used only in part where its users ask for no more.",
    "borrowed": "borrowed: held beyond the guarantee.",
    "state": "+: borrowed, held beyond the guarantee. reached: nothing is left of the limit.",
}
_RULES = {
    "surplus": "the surplus is divided on top of guarantees",
    "clamp": "guarantees count in the division of the surplus",
    "dominant": "queues are compared by their dominant shares",
    "sum": "queues are compared by the sums of their users' shares",
}


def _legend(allocation: Allocation, tables: Sequence[Table]) -> str:
    """Explain the columns that are shown, and say by which rules the tree was filled."""
    shown = {column.title for table in tables for column in table.columns}
    rules = _rules(allocation)
    if rules is not None and rules[1] == "dominant" and "share" in shown:
        shown = shown - {"share"} | {"dominant share"}
    counts = "" if allocation.counting is None else allocation.counting.in_words()
    lines = [" ".join(text for name, text in _COLUMNS.items() if name in shown)]
    if any(bound.price is not None for each in allocation.queue_holdings() for bound in each.limits):
        lines.append(PRICE)
    if rules is not None:
        rule, share = rules
        lines.append(f"Rules: {_RULES[rule]} (--guarantees {rule}); {_RULES[share]} (--queue-share {share}).")
    if counts:
        lines.append(f"In dominant shares, {counts}.")
    return "\n".join(lines)


def _rules(allocation: Allocation) -> tuple[str, str] | None:
    """Return the rules by which the tree was filled: guarantees, and the share of a queue; None where it was not filled."""
    if not (any(level.part for level in allocation.levels) and isinstance(allocation.question, Optimum)):
        return None
    notion = allocation.question.notion
    return (notion.guarantees, notion.queue_share_of(allocation.instance)) if isinstance(notion, ShareNotion) else None


def _deepest(holdings: list[QueueHoldings], *, everything: bool) -> int:
    """Return the largest depth of queues that are shown."""
    depths = np.array([each.depth for each in holdings])
    depth = int(depths.max())
    while not everything and depth > 1 and (depths <= depth).sum() > _QUEUES + 1:
        depth -= 1
    return depth


def _alone(allocation: Allocation) -> _Alone:
    """Return queues whose users are one user of their name, without a guarantee of its own."""
    instance, tree = allocation.instance, allocation.instance.tree
    found = {}
    for node, queue in enumerate(tree.queues, 1):
        users = tree.users_of(node)
        if (
            len(users) == 1
            and not len(tree.children(node))
            and instance.users[users[0]] == queue.name
            and not instance.guarantees[users[0]]
        ):
            found[node] = int(users[0])
    return found


def _named(allocation: Allocation, rows: Iterable[tuple[int, QueueHoldings | int | None]]) -> Column:
    """Return the names of queues, which stand out, and of users, indented by their depth; nothing for None."""
    found, styles, indents = list[str](), list[Style](), list[int]()
    for indent, each in rows:
        if isinstance(each, QueueHoldings):
            found.append(each.name if each.depth else "all")
        else:
            found.append("" if each is None else allocation.instance.users[each])
        styles.append("strong" if isinstance(each, QueueHoldings) else "")
        indents.append(0 if each is None else indent)
    return names("queue, user", found, styles=tuple(styles), indents=tuple(indents))


def _table(allocation: Allocation, rows: Sequence[_Row], alone: _Alone, *, with_bounds: bool = True, with_prices: bool = True) -> Table:
    instance = allocation.instance
    tasks, work = allocation.tasks_per_user, allocation.work
    shares = allocation.shares if allocation.shares.ndim == 1 else np.full(instance.n_users, np.nan)
    weights = instance.weights if instance.weights.ndim == 1 else np.full(instance.n_users, np.nan)
    capacity = instance.total_capacity
    held = instance.held_of(allocation.tasks)
    parts = np.divide(held, capacity, out=np.zeros_like(held), where=capacity > 0).max(axis=1)
    parts = parts if allocation.counting is None else counted_holdings(allocation).max(axis=1)

    def of(queue: Callable[[QueueHoldings], Any], user: Callable[[int], Any]) -> list[Any]:
        return [queue(each) if isinstance(each, QueueHoldings) else user(each) for _, each in rows]

    def limits(each: QueueHoldings) -> tuple[str, ...]:
        own = [_tasks(allocation, alone[each.node])] if each.node in alone else []
        return tuple(filter(None, [*(_limit(limit, with_price=with_prices) for limit in each.limits), *own]))

    def promise(user: int) -> str:
        own = instance.guarantees[user]
        return promised(own, tasks[user]) if own else ""

    def style(is_met: bool) -> Style:
        return "" if is_met else "bad"

    def dominant(part: float, resource: str) -> str:
        return f"{resource} {percent(part, 1)}" if resource else ""

    orders = of(lambda each: "" if each.order == "fair" else each.order, lambda n: "")
    columns = [
        _named(allocation, rows),
        numbers("weight", of(lambda each: each.weight if each.depth else None, lambda n: weights[n]), alike=True),
        *([words("order", orders)] if any(orders) else []),
        numbers("tasks", of(lambda each: each.tasks, lambda n: tasks[n]), alike=True),
        *([] if instance.speeds_given is None else [numbers("work", of(lambda each: each.work, lambda n: work[n]), alike=True)]),
    ]
    if allocation.shares_to_show is not None:
        rules = _rules(allocation)
        dominates = rules is not None and rules[1] == "dominant"
        shared = of(lambda each: each.dominant_share if dominates else each.share, lambda n: shares[n])
        columns.append(numbers(allocation.share_heading, shared, alike=True))
    most = of(
        lambda each: dominant(each.dominant_share, each.dominant_resource),
        lambda n: dominant(parts[n], allocation.dominant_resources[n]),
    )
    columns.append(numbers("dominant", most))
    bounds = [
        words(
            "guarantee",
            of(lambda each: tuple(map(_guarantee, each.guarantees)), promise),
            styles=tuple(
                of(
                    lambda each: style(all(one.met for one in each.guarantees)),
                    lambda n: style(not lacking(instance.guarantees[n], tasks[n])),
                )
            ),
        ),
        words("limit", of(limits, lambda n: _tasks(allocation, n))),
        words("borrowed", of(_borrowed, lambda n: "")),
    ]
    return Table.of(*columns, *(column for column in bounds if with_bounds and not column.is_empty))


def _tasks(allocation: Allocation, user: int) -> str:
    """Return how many tasks a user has, and whether all of them run; nothing for a user without a task limit."""
    instance = allocation.instance
    if not instance.servable[user]:
        return "cannot run"
    if not math.isfinite(instance.tasks[user]):
        return ""
    return plural(instance.tasks[user], "task") + (", all run" if allocation.complete[user] else "")


def _bounds_table(allocation: Allocation, rows: Sequence[_Row], alone: _Alone) -> Table:
    """Return guarantees and limits, a row for each resource of a queue or user."""
    named, bounds = list[tuple[int, QueueHoldings | int | None]](), list[tuple[Any, ...]]()
    for indent, each in rows:
        also = [alone[each.node]] if isinstance(each, QueueHoldings) and each.node in alone else []
        own = [bound for one in (each, *also) for bound in _bounds(allocation, one)]
        named += [(indent, each if j == 0 else None) for j in range(len(own))]
        bounds += own
    of, guarantee, limit, held, price, state = zip(*bounds, strict=True) if bounds else ((),) * 6
    return Table.of(
        _named(allocation, named),
        names("of", of),
        *(numbers(title, values) for title, values in (("guarantee", guarantee), ("limit", limit), ("held", held))),
        *([numbers("price", price)] if allocation.queue_prices else []),
        words("state", state),
        title="Guarantees and limits",
    )


def _bounds(allocation: Allocation, each: QueueHoldings | int) -> Iterator[tuple[str, str, str, str, float | None, str]]:
    """Yield of what there is a guarantee or a limit: its name, both, what is held, the price of the limit, and what follows from it.

    Amounts are texts, with their units.
    """
    if isinstance(each, QueueHoldings):
        guarantees = {promise.where: promise for promise in each.guarantees}
        limits = {bound.where: bound for bound in each.limits}
        for where in dict.fromkeys([*guarantees, *limits]):
            promise, bound = guarantees.get(where), limits.get(where)
            states = [_state(promise)] if promise else []
            if promise and promise.borrowed:
                states.append(f"+{promise.figure(promise.borrowed)}")
            if bound and bound.reached:
                states.append("reached")
            one = promise or bound
            yield (
                where,
                promise.figure(promise.amount, 6) if promise else "",
                bound.figure(bound.amount, 6) if bound else "",
                one.figure(one.held) if one else "",
                bound.price if bound else None,
                ", ".join(states),
            )
        return
    instance = allocation.instance
    own, most, has = instance.guarantees[each], instance.tasks[each], allocation.tasks_per_user[each]
    if own or math.isfinite(most):
        states = [_state_of_user(own, has)] if own else []
        if math.isfinite(most) and allocation.complete[each]:
            states.append("all run")
        yield "tasks", figure(own or None, 6), figure(most, 6) if math.isfinite(most) else "", figure(has), None, ", ".join(states)


def _guarantee(each: Guaranteed) -> str:
    """Return one guarantee: "8 gpu, met"; "8 gpu, 3 missing"; "8 gpu, uses 5"."""
    return f"{each.figure(each.amount, 6)} {each.where}, {_state(each)}"


def _state(each: Guaranteed) -> str:
    if not each.met:
        return f"{each.figure(each.missing)} missing"
    return f"uses {each.figure(each.held)}" if each.unused else "met"


def lacking(guarantee: float, has: float) -> float:
    """Return how much of a guarantee is missing; of floats, no more than rounding is nothing.

    >>> lacking(8, 5), lacking(8, 9), lacking(8.0, 8 - 1e-9), lacking(Fraction(8), Fraction(8) - Fraction(1, 10**9)) > 0
    (3, 0, 0, True)
    """
    missing = guarantee - has
    return missing if missing > (0 if isinstance(missing, Fraction) else 1e-7 * guarantee) else 0


def promised(tasks: float, has: float) -> str:
    """Return the guarantee of a user: "4 tasks, met"; "4 tasks, 1 missing"."""
    return f"{plural(tasks, 'task')}, {_state_of_user(tasks, has)}"


def _state_of_user(guarantee: float, has: float) -> str:
    missing = lacking(guarantee, has)
    return f"{figure(missing)} missing" if missing else "met"


def _limit(each: Limited, *, with_price: bool) -> str:
    price = "" if each.price is None or not with_price else f", price {figure(each.price)}"
    return f"{each.figure(each.amount, 6)} {each.where}, {'reached' if each.reached else f'{each.figure(each.held)} held'}{price}"


def _borrowed(each: QueueHoldings) -> tuple[str, ...]:
    return tuple(f"{promise.figure(promise.borrowed)} {promise.where}" for promise in each.guarantees if promise.borrowed)
