"""The tree of queues as a table: each queue with its subtotals, then the queues below it, then its users.

A queue and its only user have one row if both have one name, as importers name them. More than 20 users are left out, and of more than 40
queues the deepest ones, unless everything is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.allocation import Allocation, Optimum
from fairopt.allocation.holdings import QueueHoldings
from fairopt.allocation.promises import Guaranteed, Limited
from fairopt.commands.tables import add_names, add_numbers, add_words, label, simple_table
from fairopt.models import ShareNotion
from fairopt.wording import figure, figures, fractions, percent, plural

__all__ = ["promised", "queue_table"]

_USERS = 20  # more are left out
_QUEUES = 40
_INDENT = "  "
_ENDLESS = 10_000  # columns: a table that is measured at this width is not folded

_Row: TypeAlias = tuple[int, QueueHoldings | int]  # how far it is indented; a queue, or the position of a user
_Alone: TypeAlias = dict[int, int]  # by the node of a queue of one user: this user, where both have one row


def queue_table(allocation: Allocation, console: Console, *, everything: bool = False) -> list[Table | Text]:
    """Return the table, a line that says what it leaves out, if anything, and what its columns mean.

    Where guarantees and limits do not fit beside the numbers, they are a table of their own. Of an allocation in fractions its numbers are
    fractions; the dominant share is in percent.
    """
    allocation = allocation.as_known
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
    note = [Text(f"Not shown: {' and '.join(left_out)}; --all shows everything.")] if left_out else []
    tables = [_table(allocation, rows, alone, with_bounds=True)]
    if console.measure(tables[0], options=console.options.update(width=_ENDLESS)).maximum > console.width:
        tables = [_table(allocation, rows, alone, with_bounds=False), *_bounds_table(allocation, rows, alone)]
    return [*tables, *note, _legend(allocation, tables)]


_COLUMNS = {
    "share": "share: of a queue, its users' shares added up.",
    "share / weight": "share / weight: of a queue, its users' added up.",
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


def _legend(allocation: Allocation, tables: Sequence[Table]) -> Text:
    """Explain the columns that are shown, and say by which rules the tree was filled."""
    shown = {str(column.header) for table in tables for column in table.columns}
    lines = [" ".join(text for name, text in _COLUMNS.items() if name in shown)]
    if allocation.queue_prices:
        lines.append("price: the most that one more unit of the limit could raise the level at which it stops users, or the goal.")
    if any(level.part for level in allocation.levels) and isinstance(allocation.question, Optimum):
        notion = allocation.question.notion
        if isinstance(notion, ShareNotion):
            rule, share = notion.guarantees, notion.queue_share or notion.default_queue_share
            lines.append(f"Rules: {_RULES[rule]} (--guarantees {rule}); {_RULES[share]} (--queue-share {share}).")
    return Text("\n".join(lines))


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


def _table(allocation: Allocation, rows: Sequence[_Row], alone: _Alone, *, with_bounds: bool) -> Table:
    instance = allocation.instance
    per_user = allocation.tasks_per_user
    shares = allocation.shares if allocation.shares.ndim == 1 else np.full(instance.n_users, np.nan)
    weights = instance.weights if instance.weights.ndim == 1 else np.full(instance.n_users, np.nan)
    capacity = instance.total_capacity
    parts = np.divide(instance.demands, capacity, out=np.zeros_like(instance.demands), where=capacity > 0).max(axis=1)
    dominant = allocation.dominant_resources
    names, numbers, texts = list[Text](), list[list[float | Fraction]](), list[tuple[str, str, str, str]]()
    for indent, each in rows:
        if isinstance(each, QueueHoldings):
            numbers.append([each.weight if each.depth else np.nan, each.tasks, each.share])
            limits = [_limits(each), *([_tasks(allocation, alone[each.node])] if each.node in alone else [])]
            dominant_part = _part(each.dominant_share, each.dominant_resource)
            texts.append((dominant_part, _guarantees(each), "\n".join(filter(None, limits)), _borrowed(each)))
        else:
            numbers.append([weights[each], per_user[each], shares[each]])
            own = instance.guarantees[each]
            promise = promised(own, per_user[each]) if own else ""
            texts.append((_part(per_user[each] * parts[each], dominant[each]), promise, _tasks(allocation, each), ""))
        names.append(_name(allocation, indent, each))
    table = simple_table("queue, user")
    add_numbers(table, "weight", "tasks")
    columns: list[list[str]] = [_column([row[0] for row in numbers]), _column([row[1] for row in numbers])]
    if allocation.shares_to_show is not None:
        add_numbers(table, allocation.share_heading)
        columns.append(_column([row[2] for row in numbers]))
    add_numbers(table, "dominant")
    columns.append([row[0] for row in texts])
    for heading, position in (("guarantee", 1), ("limit", 2), ("borrowed", 3)):
        if with_bounds and any(row[position] for row in texts):
            add_words(table, heading)
            columns.append([row[position] for row in texts])
    for name, *cells in zip(names, *columns, strict=True):
        table.add_row(name, *(_lines(cell) for cell in cells))
    return table


def _tasks(allocation: Allocation, user: int) -> str:
    """Return how many tasks a user has, and whether all of them run; nothing for a user without a task limit."""
    instance = allocation.instance
    if not instance.servable[user]:
        return "cannot run"
    if not math.isfinite(instance.tasks[user]):
        return ""
    return plural(instance.tasks[user], "task") + (", all run" if allocation.complete[user] else "")


def _name(allocation: Allocation, indent: int, each: QueueHoldings | int) -> Text:
    """Return the name of a queue or of a user, indented by its depth."""
    if not isinstance(each, QueueHoldings):
        return Text(_INDENT * indent).append(label(allocation.instance.users[each]))
    name = Text(_INDENT * indent).append(label(each.name if each.depth else "all"))
    name.stylize("bold")
    return name


def _bounds_table(allocation: Allocation, rows: Sequence[_Row], alone: _Alone) -> list[Table]:
    """Return guarantees and limits as a table, a row for each resource of a queue or user; nothing where there are none."""
    table = simple_table("queue, user", title="Guarantees and limits")
    add_names(table, "of")
    add_numbers(table, "guarantee", "limit", "held")
    priced = bool(allocation.queue_prices)
    if priced:
        add_numbers(table, "price")
    add_words(table, "state")
    for indent, each in rows:
        name = _name(allocation, indent, each)
        also = [alone[each.node]] if isinstance(each, QueueHoldings) and each.node in alone else []
        for of, guarantee, limit, held, price, state in (bound for one in (each, *also) for bound in _bounds(allocation, one)):
            prices = [figure(price)] if priced else []
            table.add_row(name, label(of), *map(label, (guarantee, limit, held)), *prices, Text(state))
            name = Text()
    return [table] if table.row_count else []


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


def _lines(cell: str) -> Text:
    """Return the lines of a cell, each without markup and control characters."""
    return Text("\n").join(label(line) for line in cell.split("\n")) if cell else Text("")


def _column(values: list[float | Fraction]) -> list[str]:
    """Return numbers as a column has them; nothing for those that are missing."""
    known = [value for value in values if not math.isnan(value)]
    exact = [value for value in known if isinstance(value, Fraction)]
    texts = iter(fractions(exact) if exact else figures(map(float, known)))
    return ["" if math.isnan(value) else next(texts) for value in values]


def _part(part: float, resource: str) -> str:
    return f"{resource} {percent(part, 1)}" if resource else ""


def _guarantees(each: QueueHoldings) -> str:
    return "\n".join(map(_guarantee, each.guarantees))


def _guarantee(each: Guaranteed) -> str:
    """Return one guarantee: "8 gpu, met"; "8 gpu, 3 missing"; "8 gpu, uses 5"."""
    return f"{each.figure(each.amount, 6)} {each.where}, {_state(each)}"


def _state(each: Guaranteed) -> str:
    if not each.met:
        return f"{each.figure(each.missing)} missing"
    return f"uses {each.figure(each.held)}" if each.unused else "met"


def promised(tasks: float, has: float) -> str:
    """Return the guarantee of a user: "4 tasks, met"; "4 tasks, 1 missing"."""
    return f"{plural(tasks, 'task')}, {_state_of_user(tasks, has)}"


def _state_of_user(guarantee: float, has: float) -> str:
    lacking = guarantee - has
    return f"{figure(lacking)} missing" if lacking > (0 if isinstance(lacking, Fraction) else 1e-7 * guarantee) else "met"


def _limits(each: QueueHoldings) -> str:
    return "\n".join(map(_limit, each.limits))


def _limit(each: Limited) -> str:
    price = "" if each.price is None else f", price {figure(each.price)}"
    return f"{each.figure(each.amount, 6)} {each.where}, {'reached' if each.reached else f'{each.figure(each.held)} held'}{price}"


def _borrowed(each: QueueHoldings) -> str:
    return "\n".join(f"{promise.figure(promise.borrowed)} {promise.where}" for promise in each.guarantees if promise.borrowed)
