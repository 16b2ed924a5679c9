"""A comparison as text: tasks, measures, regrets, and why a row is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.allocation import Allocation, Optimum
from fairopt.analysis.comparison import Comparison, Row
from fairopt.analysis.owners import owner_holdings
from fairopt.analysis.regrets import Regret
from fairopt.commands.allocation_table import Choice
from fairopt.commands.tables import FittingTable, add_numbers, label, print_paragraph, sharing_note, simple_table
from fairopt.instance import Instance
from fairopt.models import ShareNotion
from fairopt.wording import figure, joined, named, percent, plural

__all__ = ["MEASURES", "low_share", "print_comparison", "without_tiny"]

_GAP = 2  # between columns
_INDENT = "  "
_QUANTILES = {"lowest": 0.0, "median": 0.5, "highest": 1.0}
MEASURES = """\
efficiency: weighted tasks, in % of the most possible with divisible tasks.
low share: smallest weighted dominant share.
envy: the largest, in tasks."""
_OF_USERS = {  # in a tree these measures are of single users
    "low share: smallest weighted dominant share.": "low share: smallest dominant share of a user, divided by its own weight alone.",
    "envy: the largest, in tasks.": "envy: the largest between users of one queue, in tasks (fairopt audit compares queues, too).",
}
_IN_FRACTIONS = {
    "efficiency: weighted tasks, in % of the most possible with divisible tasks.": (
        "efficiency: weighted tasks, as a part of the most possible with divisible tasks."
    )
}
_REGRETS = {
    "level": "level: shortfall of the lowest share.",
    "leximin": "leximin: sort both share lists; the gap at the first difference (its position in brackets).",
    "largest": "largest: the largest gap in those lists.",
    "goal": "goal: shortfall of the power mean that the notion maximises.",
    "condition": "condition: largest violation of the theorem that defines the equilibrium.",
    "queue": "queue: the largest gap of a queue's share.",
    "total": "total: shortfall of all tasks together (negative: more tasks than the exact allocation).",
}
_QUEUES = 12  # side by side; --by queue shows all
_LINES = 3  # violations listed for one allocation


def print_comparison(console: Console, comparison: Comparison, by: str = "user", choice: Choice | None = None) -> None:
    """Print tasks, measures and regrets of all rows, then remarks on single rows; by owner or queue, what each holds side by side.

    With a choice, also these users, with their tasks in each allocation side by side, in the order of the first.
    """
    instance = comparison.instance
    size = f"{plural(instance.n_users, 'user')}, {plural(instance.counts.sum(), 'server')}{sharing_note(comparison.sharing)}"
    console.print(Text.assemble((plural(len(comparison), "allocation"), "bold"), f" of {size}"))
    done = [row for row in comparison if row.allocation is not None]
    if done:
        of_queues = _queues(done, console.width) if instance.queues and by == "user" else _tree(done) if by == "queue" else None
        of_owners = _owners(done) if by == "owner" else None
        of_users = _users(done, choice) if choice is not None and choice != Choice() else None
        for table in (_tasks(comparison, done, console.width), of_users, of_owners, of_queues, _measures(comparison, done), _regrets(done)):
            if table is not None:
                console.print()
                console.print(table)
        console.print()
        console.print(Text(_legend(done, by)))
    for row in comparison:
        if row.regret is not None and row.regret.tiny:
            print_paragraph(console, Text.assemble((f"{label(row.name).plain}: ", "bold"), label(without_tiny(row.regret))))
        for line in _remarks(row, comparison):
            console.print(Text.assemble((f"{label(row.name).plain}: ", "bold"), line))


def low_share(*instances: Instance) -> str:
    """Return what a table calls the smallest share: with "/ weight" where one of the instances has weights."""
    return "low share / weight" if any((instance.weights != 1).any() for instance in instances) else "low share"


def _percent(part: float | None) -> str:
    """Write a part with one decimal, and one that this would round to 0 with one digit.

    >>> _percent(0.0312), _percent(0.0), _percent(8e-5), _percent(2e-7), _percent(None)
    ('3.1 %', '0.0 %', '0.008 %', '2e-05 %', '')
    """
    return f"{figure(100 * part, 1)} %" if part and abs(part) < 5e-4 else percent(part, 1)


def _tasks(comparison: Comparison, rows: list[Row], width: int) -> Table:
    """Return kind, tasks of each user (their quantiles if the columns do not fit), total and seconds."""
    users = comparison.instance.users
    held = np.array([row.allocation.tasks_per_user for row in rows if row.allocation is not None])
    cells = [[figure(value, 4) for value in _held(row.allocation)] for row in rows if row.allocation is not None]
    kinds = [row.kind.replace(", whole tasks", "").replace("whole tasks, ", "") for row in rows]  # the name says "whole tasks"
    room = width - max(len(row.name) for row in rows) - max(map(len, kinds)) - 2 * (8 + _GAP) - 2 * _GAP
    widths = [max(len(user), *(len(line[n]) for line in cells)) + _GAP for n, user in enumerate(users)]
    columns = [label(user).plain for user in users]
    if sum(widths) > room:
        columns = list(_QUANTILES)
        cells = [[figure(value, 4) for value in np.quantile(per_user, list(_QUANTILES.values()))] for per_user in held]
    table = simple_table("tasks", "kind")
    add_numbers(table, *columns, "all", "seconds")
    for row, kind, line in zip(rows, kinds, cells, strict=True):
        table.add_row(label(row.name), kind, *line, figure(row.measure("tasks"), 4), figure(row.seconds))
    return table


def _held(allocation: Allocation) -> list[Any]:
    """Return the tasks of each user, in fractions where they are known so."""
    held: list[Any] = allocation.as_known.tasks_per_user.tolist()
    return held


def _users(rows: list[Row], choice: Choice) -> FittingTable:
    """Return a row for each user of a choice, with its tasks in each allocation."""
    made = [row.allocation for row in rows if row.allocation is not None]
    instance, chosen = made[0].instance, choice.positions(made[0])
    table = simple_table("user")
    weighted = instance.weights.ndim == 1 and bool((instance.weights != 1).any())
    add_numbers(table, *(["weight"] if weighted else []), *(label(row.name) for row in rows))
    held = [_held(allocation) for allocation in made]
    for n in chosen:
        weight = [figure(instance.weights[n], 6)] if weighted else []
        table.add_row(label(instance.users[n]), *weight, *(figure(own[n], 4) for own in held))
    more = instance.n_users - chosen.size
    if more:
        table.add_row(f"and {plural(more, 'more user')}")
    return table


def _queues(rows: list[Row], width: int) -> FittingTable:
    """Return the dominant share of what each queue holds; where not all fit, of queues in the root."""
    holdings = [row.allocation.queue_holdings()[1:] for row in rows if row.allocation is not None]
    cells = [[f"{_percent(each.dominant_share)}{_mark(each.verdict)}" for each in own] for own in holdings]
    names = [label(each.name).plain for each in holdings[0]]
    widths = [max(len(name), *(len(line[j]) for line in cells)) + _GAP for j, name in enumerate(names)]
    fits = sum(widths) + max(len(row.name) for row in rows) + _GAP <= width
    chosen = [j for j, each in enumerate(holdings[0]) if fits or each.depth == 1][:_QUEUES]
    table = simple_table("queues")
    add_numbers(table, *(names[j] for j in chosen))
    for row, line in zip(rows, cells, strict=True):
        table.add_row(label(row.name), *(line[j] for j in chosen))
    return table


def _tree(rows: list[Row]) -> Table:
    """Return a row for each queue, in the order of the tree, with what it holds in each allocation side by side."""
    tree, found = rows[0].allocation.instance.tree, []  # type: ignore[union-attr]  # of rows that are done
    held = [{each.node: each for each in row.allocation.as_known.queue_holdings()} for row in rows if row.allocation is not None]
    left = list(reversed(tree.children(0)))
    while left:
        found.append(int(left.pop()))
        left += reversed(tree.children(found[-1]))
    table = simple_table("queues")
    add_numbers(table, *(word for row in rows for word in (label(row.name).plain, "")))
    for node in found:
        each = [own[node] for own in held]
        cells = [text for own in each for text in (figure(own.tasks, 4), f"{_percent(float(own.dominant_share))}{_mark(own.verdict)}")]
        table.add_row(Text(_INDENT * (each[0].depth - 1)).append(label(each[0].name)), *cells)
    return table


def _mark(verdict: str) -> str:
    """Return what stands behind the share of a queue whose guarantee is not met.

    >>> _mark("met"), _mark("lacks 2 gpu")
    ('', ' !')
    """
    return "" if verdict in ("", "met") else " !"


def _owners(rows: list[Row]) -> Table:
    """Return a row for each owner, with what it holds in each allocation side by side."""
    holdings = [owner_holdings(row.allocation) for row in rows if row.allocation is not None]
    table = simple_table("owners")
    add_numbers(table, "users", *(word for row in rows for word in (label(row.name).plain, "")))
    for each in zip(*holdings, strict=True):
        cells = [text for own in each for text in (figure(own.tasks, 4), _percent(own.dominant_share))]
        table.add_row(label(each[0].name), f"{each[0].users:,}", *cells)
    return table


def _measures(comparison: Comparison, rows: list[Row]) -> Table:
    """Return the part of each resource in use, and the measures."""
    table = simple_table("measures")
    things = list(rows[0].use)
    add_numbers(table, *(label(thing).plain for thing in things), "efficiency", low_share(comparison.instance), "Jain", "envy")
    for row in rows:
        envy = "" if row.envy is None else figure(row.measure("envy"), 4)
        table.add_row(
            label(row.name),
            *(_percent(row.use[thing]) for thing in things),
            _percent(row.efficiency) if row.exact is None else figure(row.measure("efficiency"), 4),
            figure(row.measure("smallest_share"), 4),
            f"{row.jain:.3f}",
            envy,
        )
    return table


def _regrets(rows: list[Row]) -> Table | None:
    """Return the regrets; only columns that apply to one of the rows."""
    compared = [(row, row.regret) for row in rows if row.regret is not None]
    if not compared:
        return None
    table = simple_table("regret", "against")
    columns: dict[str, Callable[..., str]] = {
        name: (lambda regret, name=name: _shortfall(regret, name))
        for name in ("level", "leximin", "largest", "goal", "condition", "queue", "total")
        if any(getattr(regret, name) is not None for _, regret in compared)
    }
    if "leximin" in columns:
        columns["leximin"] = lambda regret: _shortfall(regret, "leximin") + (f" ({regret.position})" if regret.position else "")
    if "queue" in columns:
        columns["queue"] = lambda regret: _percent(regret.queue) + (f" ({label(regret.worst_queue).plain})" if regret.worst_queue else "")
    if any(regret.best_found for _, regret in compared):
        columns["gap"] = lambda regret: _percent(regret.gap) if regret.best_found else ""
    add_numbers(table, *columns)
    for row, regret in compared:
        against = label(regret.notion).plain + (", best found" if regret.best_found else ", whole" if regret.whole else "")
        table.add_row(label(row.name), against, *(write(regret) for write in columns.values()))
    return table


def _shortfall(regret: Regret, name: str) -> str:
    """Write a number of a regret: in fractions where it is known so, else in percent."""
    if regret.exact is not None and name in regret.exact:
        return figure(regret.exact[name], 4)
    return _percent(getattr(regret, name))


def without_tiny(regret: Regret) -> str:
    """Return what the regret is without users who have less than one task of the optimum, and none here."""
    many = len(regret.tiny)
    text = (
        f"{plural(many, 'user has', 'users have')} less than one of the divisible tasks of the exact allocation, and none here "
        f"({joined(regret.tiny, _LINES)}), so that the shortfall is 100 %."
    )
    if regret.others is None:
        return text
    known = [name for name in ("level", "largest", "goal", "total") if getattr(regret.others, name) is not None]
    values = joined([f"{name} {_percent(getattr(regret.others, name))}" for name in known])
    worst = "" if regret.worst_user is None else f"; {named(regret.worst_user)} falls short most"
    return f"{text} Regret without {'it' if many == 1 else 'them'}: {values}{worst}."


def _legend(rows: list[Row], by: str) -> str:
    """Explain the columns that are shown."""
    regrets = [row.regret for row in rows if row.regret is not None]
    in_queues = any(row.allocation is not None and row.allocation.instance.queues for row in rows)
    others = (_OF_USERS if in_queues else {}) | (_IN_FRACTIONS if any(row.exact is not None for row in rows) else {})
    lines = [others.get(line, line) for line in MEASURES.splitlines()]
    if by == "owner":
        lines.append("owners: tasks, and the dominant share of what each holds (not divided by weights).")
    elif in_queues:
        tasks = "tasks, and the " if by == "queue" else ""
        lines.append(f"queues: {tasks}dominant share of what each holds; !: it gets less of a guarantee than it asks for.")
    if regrets:
        lines.append(
            "regret: relative shortfall from the exact allocation, of whole tasks if it says so, else of divisible tasks (an upper bound)."
        )
    if regrets and any(row.kind == "greedy" for row in rows) and any(_on_top_of_guarantees(row) for row in rows):
        lines.append("Greedy schedules count guarantees as --guarantees clamp does; add it to measure their regret by the same rule.")
    shown = [name for name in _REGRETS if any(getattr(regret, name) is not None for regret in regrets)]
    in_a_tree = "leximin" not in shown  # there each user is compared with itself
    lines += ["largest: the largest gap of a user's share." if name == "largest" and in_a_tree else _REGRETS[name] for name in shown]
    if any(regret.best_found for regret in regrets):
        lines.append(
            "best found: the best allocation of whole tasks within the time limit, not proved optimal; the regret is a lower bound.\n"
            "gap: how far its lowest share (or goal) lies below a proved bound."
        )
    return "\n".join(lines)


def _on_top_of_guarantees(row: Row) -> bool:
    """Is it an exact allocation that divides the surplus on top of guarantees?"""
    if row.allocation is None or not isinstance(row.allocation.question, Optimum):
        return False
    instance, notion = row.allocation.instance, row.allocation.question.notion
    of_queues = any(queue.guarantee or any(quota.guarantee for quota in queue.quotas) for queue in instance.queues)
    return isinstance(notion, ShareNotion) and notion.guarantees == "surplus" and (of_queues or bool(instance.guarantees.any()))


def _remarks(row: Row, comparison: Comparison) -> list[str]:
    """Return why a row has no allocation or no regret (unless another row says so), and the limits that it exceeds."""
    lines = [row.message] if row.message else []
    if row.note and not any(other.message and row.note.endswith(other.message) for other in comparison):
        lines.append(row.note)
    if row.violations:
        more = len(row.violations) - _LINES
        listed = "; ".join(str(violation) for violation in row.violations[:_LINES])
        lines.append(f"not feasible: {listed}{f'; and {more:,} more' if more > 0 else ''}")
    return [label(line).plain for line in lines]
