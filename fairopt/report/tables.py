"""The tables of a report: plain text in rows and columns, cut where a page cannot hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.instance import Instance
from fairopt.wording import plural

__all__ = ["MOST_ROWS", "Table", "number", "percent", "server_table", "user_table"]

MOST_ROWS = 2_000  # more than these are left to the file
_NONE = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text; the first column names its row, ``words`` are columns of text, all others hold numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = ()) -> Table:
        """Keep the first rows, and count them all."""
        every = [tuple(row) for row in rows]
        return cls(caption, tuple(columns), tuple(every[:MOST_ROWS]), tuple(words), len(every))

    @property
    def left_out(self) -> str:
        """What is said of rows that are not shown."""
        return f"The first {len(self.rows):,} of {self.total:,} rows; the others are in the instance below." if self.total > len(self.rows) else ""


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a reader; a dash where there is none.

    >>> number(12583), number(2 / 3), number(float("inf")), number(None), number(1e-12)
    ('12,583', '0.6667', '∞', '–', '1e-12')
    """
    if value is None or np.isnan(value):
        return _NONE
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(part: float | None) -> str:
    """Return a part of a whole.

    >>> percent(0.98765), percent(None)
    ('98.8 %', '–')
    """
    return _NONE if part is None or np.isnan(part) else f"{100 * part:.1f} %"


def server_table(instance: Instance) -> Table:
    """Return the server rows: how many there are of each, and the capacity of one."""
    columns = ["server", "number", *(f"{resource} of one" for resource in instance.resources)]
    rows = (
        [name, number(count), *map(number, capacity)]
        for name, count, capacity in zip(instance.servers, instance.counts, instance.capacities, strict=True)
    )
    return Table.of(f"{plural(instance.counts.sum(), 'server')} in {plural(instance.n_servers, 'row')}", columns, rows)


def user_table(instance: Instance) -> Table:
    """Return the users: weight, demand of a task, tasks, and the number of servers on which they may run."""
    columns = ["user", "weight", *(f"{resource} of a task" for resource in instance.resources), "tasks", "servers"]
    weights = instance.weights if instance.weights.ndim == 2 else instance.weights[:, None]
    eligible = instance.eligibility @ instance.counts
    rows = (
        [name, ", ".join(map(number, weight)), *map(number, demand), number(tasks), number(servers)]
        for name, weight, demand, tasks, servers in zip(
            instance.users, weights, instance.demands, instance.tasks, eligible, strict=True
        )
    )
    return Table.of(plural(instance.n_users, "user"), columns, rows)
