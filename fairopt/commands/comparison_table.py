"""A comparison as text: who gets what, what it is measured by, how far it is from the optimum, and what could not be done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.analysis.comparison import Comparison, Row
from fairopt.commands.tables import add_numbers, label, simple_table
from fairopt.wording import plural

__all__ = ["print_comparison"]

_GAP = 2  # between columns
_QUANTILES = {"lowest": 0.0, "median": 0.5, "highest": 1.0}
_LINES = 3  # violations that are listed of one allocation


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print tasks, measures, regrets, and what there is to say of single rows."""
    instance = comparison.instance
    size = f"{plural(instance.n_users, 'user')}, {plural(instance.counts.sum(), 'server')}, sharing {comparison.sharing}"
    console.print(Text.assemble((plural(len(comparison), "allocation"), "bold"), f" of {size}"))
    done = [row for row in comparison if row.allocation is not None]
    if done:
        for table in (_tasks(comparison, done, console.width), _measures(comparison, done), _regrets(done)):
            if table is not None:
                console.print()
                console.print(table)
        console.print()
        console.print(Text(_legend(done)))
    for row in comparison:
        for line in _remarks(row, comparison):
            console.print(Text.assemble((f"{label(row.name).plain}: ", "bold"), line))


def _short(value: float) -> str:
    """Write a number in 4 digits, all digits before the point.

    >>> [_short(value) for value in (0.123456, 21.66667, 339999.6, 0.0)]
    ['0.1235', '21.67', '340,000', '0']
    """
    if np.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _percent(value: float | None) -> str:
    if value is None or np.isnan(value):
        return ""
    return f"{100 * value:.1f} %" if abs(value) >= 5e-4 or value == 0 else f"{100 * value:.0e} %"


def _tasks(comparison: Comparison, rows: list[Row], width: int) -> Table:
    """Return kind, tasks of each user where there is room, else how they are spread, all tasks, and seconds."""
    users = comparison.instance.users
    held = np.array([row.allocation.tasks_per_user for row in rows if row.allocation is not None])
    cells = [[_short(value) for value in per_user] for per_user in held.tolist()]
    kinds = [row.kind.replace(", whole tasks", "").replace("whole tasks, ", "") for row in rows]  # whole tasks are in the name
    room = width - max(len(row.name) for row in rows) - max(map(len, kinds)) - 2 * (8 + _GAP) - 2 * _GAP
    widths = [max(len(user), *(len(line[n]) for line in cells)) + _GAP for n, user in enumerate(users)]
    columns = [label(user).plain for user in users]
    if sum(widths) > room:
        columns = list(_QUANTILES)
        cells = [[_short(value) for value in np.quantile(per_user, list(_QUANTILES.values()))] for per_user in held]
    table = simple_table("tasks", "kind")
    add_numbers(table, *columns, "all", "seconds")
    for row, kind, line in zip(rows, kinds, cells, strict=True):
        table.add_row(label(row.name), kind, *line, _short(row.tasks), "" if np.isnan(row.seconds) else f"{row.seconds:.3g}")
    return table


def _measures(comparison: Comparison, rows: list[Row]) -> Table:
    """Return the use of each resource, and one number for each measure."""
    table = simple_table("measures")
    things = list(rows[0].use)
    add_numbers(table, *(label(thing).plain for thing in things), "efficiency", "low share", "Jain", "envy")
    for row in rows:
        envy = "" if row.envy is None else _short(row.envy.tasks)
        table.add_row(
            label(row.name),
            *(_percent(row.use[thing]) for thing in things),
            _percent(row.efficiency),
            _short(row.smallest_share),
            f"{row.jain:.3f}",
            envy,
        )
    return table


def _regrets(rows: list[Row]) -> Table | None:
    """Return the shortfalls of the rows that were compared with an exact one; only columns that apply to one of them."""
    compared = [(row, row.regret) for row in rows if row.regret is not None]
    if not compared:
        return None
    table = simple_table("regret", "against")
    columns: dict[str, Callable[..., str]] = {
        name: (lambda regret, name=name: _percent(getattr(regret, name)))
        for name in ("level", "leximin", "largest", "goal", "condition", "total")
        if any(getattr(regret, name) is not None for _, regret in compared)
    }
    if "leximin" in columns:
        columns["leximin"] = lambda regret: _percent(regret.leximin) + (f" ({regret.position})" if regret.position else "")
    if any(regret.best_found for _, regret in compared):
        columns["gap"] = lambda regret: _percent(regret.gap) if regret.best_found else ""
    add_numbers(table, *columns)
    for row, regret in compared:
        against = label(regret.notion).plain + (", best found" if regret.best_found else ", whole" if regret.whole else "")
        table.add_row(label(row.name), against, *(write(regret) for write in columns.values()))
    return table


def _legend(rows: list[Row]) -> str:
    """Explain the columns that are there."""
    regrets = [row.regret for row in rows if row.regret is not None]
    lines = [
        "efficiency: weighted tasks, of the most that divisible tasks allow. low share: smallest weighted dominant share. envy: in tasks.",
    ]
    if regrets:
        lines.append(
            "regret: relative shortfall from the exact allocation, whole: of whole tasks; else of divisible ones, a bound. level: of the "
            "lowest share. leximin: of the first share, from the lowest, that differs (which). largest: over all. total: of all tasks; "
            "negative: more."
        )
    if any(regret.best_found for regret in regrets):
        lines.append(
            "best found: of whole tasks within the time limit, no optimum: a lower bound of the regret. gap: how far the lowest share (the "
            "goal) of what was found lies below a proved bound."
        )
    if any(regret.goal is not None for regret in regrets):
        lines.append("goal: of the power mean that a sum maximises.")
    if any(regret.condition is not None for regret in regrets):
        lines.append("condition: largest violation of the theorem that defines an equilibrium.")
    return " ".join(lines)


def _remarks(row: Row, comparison: Comparison) -> list[str]:
    """Return why a row has no allocation or no regret (unless a row of its own says so), and what it exceeds."""
    lines = [row.message] if row.message else []
    if row.note and not any(other.message and row.note.endswith(other.message) for other in comparison):
        lines.append(row.note)
    if row.violations:
        more = len(row.violations) - _LINES
        listed = "; ".join(str(violation) for violation in row.violations[:_LINES])
        lines.append(f"not feasible: {listed}{f'; and {more:,} more' if more > 0 else ''}")
    return [label(line).plain for line in lines]
