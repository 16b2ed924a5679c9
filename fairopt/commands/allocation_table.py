"""An allocation as text: users, servers, levels, certificate and times.

Up to 20 users (or rows of servers) are shown one by one; more are summarised by minimum, quartiles and maximum.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.allocation import Allocation, ExactAnswer
from fairopt.analysis.measures import takes_part
from fairopt.commands.queue_table import promised, queue_table
from fairopt.commands.tables import FittingTable, add_names, add_numbers, add_words, label, sharing_note, simple_table
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.models import CRITERIA, NOTIONS
from fairopt.wording import ROUNDED, duration, enclosed, figure, figures, fractions, joined, percent, plural

__all__ = ["Choice", "print_allocation"]

_ROWS = 20  # more users or servers than this are summarised
_FEW = 5  # names listed in a summary
_LEVELS = 6  # listed
_MOST_DIGITS = 30  # of a number in a column, however many are proved
_BAR = 20  # characters of the longest bar
_PERCENT = len("100.0 %")
_QUANTILES = {"min": 0.0, "quartile 1": 0.25, "median": 0.5, "quartile 3": 0.75, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which users are shown, and in which order.

    Attributes
    ----------
    users : tuple of str
        Only these; empty: all.
    sort : str
        "tasks", "share" or "weight", the largest first; "-tasks" and the like, the smallest first; "name"; empty: as in the file.
    top : int or None
        At most so many.
    """

    users: tuple[str, ...] = ()
    sort: str = ""
    top: int | None = None

    def require(self, instance: Instance) -> None:
        """Refuse the name of a user that is not there."""
        for name in self.users:
            instance.index(name)

    def positions(self, allocation: Allocation) -> IntArray:
        """Return the positions of the users.

        Raises
        ------
        Unsupported
            If the users have no numbers of this kind.
        """
        instance = allocation.instance
        chosen = np.array([instance.index(name) for name in self.users] if self.users else range(instance.n_users), np.int64)
        word = self.sort.removeprefix("-")
        if word == "name":
            chosen = np.array(sorted(chosen, key=lambda n: instance.users[n]), np.int64)
        elif word:
            numbers = {"tasks": allocation.tasks_per_user, "share": allocation.shares_to_show, "weight": instance.weights}[word]
            if numbers is None or numbers.ndim > 1:
                raise Unsupported(f"users have no single {word} here; sort them by tasks or by name")
            keys = np.array([float(f"{number:.9g}") for number in numbers[chosen]])  # what differs by rounding stays in order
            chosen = chosen[np.argsort(keys if self.sort != word else -keys, kind="stable")]
        return chosen[: self.top]

    def in_order(self, allocation: Allocation) -> list[str]:
        """Return the chosen names that the instance has, in order, without a limit on their number."""
        users = allocation.instance.users
        known = tuple(name for name in self.users if name in users)
        return [] if self.users and not known else [users[n] for n in Choice(known, self.sort).positions(allocation)]


def print_allocation(
    console: Console, allocation: Allocation, seconds: dict[str, float], *, everything: bool = False, choice: Choice | None = None
) -> None:
    """Print an allocation: users, servers, levels, certificate and times. With a choice, of the users only these."""
    instance, notion = allocation.instance, NOTIONS.get(allocation.notion, CRITERIA.get(allocation.notion))
    title = notion.title if notion else allocation.notion
    how = f"{allocation.certificate.qualifier} by {allocation.solver}".lstrip()
    facts = f"({allocation.notion}, {how}{sharing_note(allocation.sharing)})"
    if choice is not None and choice != Choice():
        chosen = choice.positions(allocation)
        more = instance.n_users - chosen.size
        left_out = [Text(f"and {plural(more, 'more user')}")] if more else []
        users: list[Table | Text] = [_users(allocation, chosen), *left_out]
    elif instance.queues:
        users = queue_table(allocation, console, everything=everything)
    elif everything or instance.n_users <= _ROWS:
        users = [_users(allocation, np.arange(instance.n_users))]
    else:
        users = _summary_of_users(allocation)
    servers = _servers(allocation, console) if everything or instance.n_servers <= _ROWS else None
    for block in (Text.assemble((title, "bold"), " ", facts), *users, servers or _summary_of_servers(allocation, console)):
        console.print(block)
        console.print()
    levels = _levels_text(allocation)
    rounded = _rounded([*users, levels]) if allocation.exact is not None else ""
    for line in (_without_tasks(allocation), levels, allocation.proof, rounded, _times_text(seconds)):
        if line:
            console.print(Text(line))


# Users ---------------------------------------------------------------------------------------------------------------------------


def _weighted(instance: Instance) -> bool:
    return instance.weights.ndim == 1 and bool((instance.weights != 1).any())


def _users(allocation: Allocation, chosen: IntArray, title: str | None = None) -> Table:
    """Return a table of these users: weight (where it differs), tasks, share, dominant resource, level."""
    instance, exact = allocation.instance, allocation.exact
    table = simple_table("user", title=title)
    columns: list[Iterable[str | Text]] = [[label(instance.users[n]) for n in chosen]]
    if _weighted(instance):
        add_numbers(table, "weight")
        columns.append(figures(instance.weights[chosen]) if exact is None else fractions(instance.exact.weights[chosen]))
    add_numbers(table, "tasks")
    columns.append(figures(allocation.tasks_per_user[chosen]) if exact is None else _exact(exact, exact.tasks_per_user[chosen]))
    if (shares := allocation.shares_to_show) is not None:
        add_numbers(table, allocation.share_heading)
        columns.append(figures(shares[chosen]) if exact is None else _exact(exact, exact.shares[chosen]))
    if instance.guarantees.any():
        add_words(table, "guarantee")
        known = allocation.as_known
        own, has = known.instance.guarantees, known.tasks_per_user
        columns.append([promised(own[n], has[n]) if own[n] else "" for n in chosen])
    add_names(table, "dominant")
    columns.append([label(allocation.dominant_resources[n]) for n in chosen])
    complete, levels = allocation.complete, allocation.level_of_user
    stops = ["cannot run" if not instance.servable[n] else "all tasks" if complete[n] else str(levels[n] or "") for n in chosen]
    if any(stops):
        add_numbers(table, "level")
        columns.append(stops)
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    return table


def _summary_of_users(allocation: Allocation) -> list[Table | Text]:
    """Return quartiles, the users with the lowest shares, and the users who run all their tasks."""
    instance = allocation.instance
    table = simple_table("", title=plural(instance.n_users, "user"))
    add_numbers(table, *_QUANTILES)
    rows = {"tasks": allocation.tasks_per_user}
    if (shares := allocation.shares_to_show) is not None:
        rows[allocation.share_heading] = shares
    if _weighted(instance):
        rows["weight"] = instance.weights
    for name, values in rows.items():
        table.add_row(name, *figures(np.quantile(values, list(_QUANTILES.values()))))
    lowest = next((name for name in rows if name.startswith("share")), "tasks")
    complete = [instance.users[n] for n in np.flatnonzero(allocation.complete)]
    wanting = np.flatnonzero(instance.servable & ~allocation.complete)
    ranked = wanting[np.argsort(rows[lowest][wanting], kind="stable")]
    blocks: list[Table | Text] = [table]
    if ranked.size:
        blocks.append(_users(allocation, ranked[:_FEW], title=f"Lowest {lowest} among users who want more"))
    running = plural(len(complete), "user runs all its tasks", "users run all their tasks")
    note = Text.assemble(running, ": ", label(joined(complete, _FEW)), ". ") if complete else Text()
    return [*blocks, note.append("--all shows every user.")]


# Servers -------------------------------------------------------------------------------------------------------------------------


def _use(allocation: Allocation) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Return what a server shares out (resources or time), the part in use on each row (rows, things) and in the cluster (things,)."""
    instance = allocation.instance
    if allocation.sharing == "tdm":
        time = allocation.time_utilization
        of_cluster = (time @ instance.counts) / max(instance.counts.sum(), 1.0)
        return ("time",), time[:, None], np.array([of_cluster])
    capacity = instance.total_capacity
    of_cluster = np.divide(allocation.usage.sum(axis=0), capacity, out=np.zeros_like(capacity), where=capacity > 0)
    return instance.resources, allocation.utilization, of_cluster


def _bar(part: float, width: int, console: Console) -> Text:
    """Return a bar and its percentage."""
    full, empty = ("█", "░") if console.encoding.lower().startswith("utf") else ("#", "-")
    filled = width if part >= 0.9995 else max(min(round(part * width), width - 1), 0)  # full exactly where the text says 100.0 %
    text = Text.assemble((full * filled, "cyan"), (empty * (width - filled), "dim"), no_wrap=True)
    return text.append(f"{percent(part, 1):>{_PERCENT + (1 if width else 0)}}")


def _servers(allocation: Allocation, console: Console) -> Table | None:
    """Return a table with a row for each row of servers, or None where its columns do not fit."""
    instance = allocation.instance
    things, used, of_cluster = _use(allocation)
    name_width = min(max(map(len, (*instance.servers, "server"))), 24)
    counts = [figure(count, 6) for count in instance.counts]
    count_width = max(map(len, (*counts, "count"))) + 2
    room = (console.width - name_width - count_width - 2) // len(things) - _PERCENT - 3  # 2 between columns, 1 before the percentage
    if room < 0:
        return None
    width = min(room, _BAR) if room >= 4 else 0
    table = simple_table("server")
    add_numbers(table, "count")
    for thing in things:
        add_numbers(table, label(thing))
    for i, name in enumerate(instance.servers):
        table.add_row(
            label(name), counts[i], *(_bar(part, width, console) if _offers(allocation, i, r) else "" for r, part in enumerate(used[i]))
        )
    if instance.n_servers > 1:
        table.add_section()
        table.add_row("all", figure(instance.counts.sum(), 6), *(_bar(part, width, console) for part in of_cluster))
    return table


def _offers(allocation: Allocation, server: int, thing: int) -> bool:
    """Return whether this row of servers has any of this resource; every row has time."""
    return allocation.sharing == "tdm" or bool(allocation.instance.row_capacity[server, thing] > 0)


def _summary_of_servers(allocation: Allocation, console: Console) -> Table:
    instance = allocation.instance
    things, used, of_cluster = _use(allocation)
    servers = plural(instance.counts.sum(), "server")
    rows = "" if (instance.counts == 1).all() else f" in {plural(instance.n_servers, 'row')}"
    table = simple_table("", title=servers + rows)
    add_numbers(table, "in use")
    add_numbers(table, *_QUANTILES)
    for r, thing in enumerate(things):
        offering = [used[i, r] for i in range(instance.n_servers) if _offers(allocation, i, r)]
        quantiles = np.quantile(offering, list(_QUANTILES.values())) if offering else []
        table.add_row(label(thing), _bar(of_cluster[r], 8, console), *(percent(value, 1) for value in quantiles))
    return table


# Levels, certificate and times -------------------------------------------------------------------------------------------------------


def _without_tasks(allocation: Allocation) -> str:
    """Return which users that could run a task run none of the whole tasks."""
    if not allocation.certificate.whole_tasks:
        return ""
    instance = allocation.instance
    names = [instance.users[n] for n in np.flatnonzero(takes_part(instance) & (allocation.tasks_per_user <= 0))]
    return f"{plural(len(names), 'user runs', 'users run')} no task: {joined(names, _FEW)}." if names else ""


def _levels_text(allocation: Allocation) -> str:
    levels = allocation.levels
    if not levels:
        return ""
    lines = []
    exact = allocation.exact
    numbers = [figure(level.value, 6) for level in levels] if exact is None else fractions(exact.levels)
    for part, of_part in itertools.groupby(zip(numbers, levels, strict=True), key=lambda each: each[1].part):
        texts = [f"{number} ({plural(len(level.users), 'user')})" for number, level in of_part]
        one = len(texts) == 1
        if len(texts) > _LEVELS:
            texts = [*texts[: _LEVELS - 1], f"... {len(texts) - _LEVELS:,} more", texts[-1]]
        lines.append(f"{'Level' if one else 'Levels'}{f' of {part}' if part else ''}: {', '.join(texts)}")
    return "\n".join(lines)


def _exact(answer: ExactAnswer, values: Iterable[Fraction]) -> list[str]:
    """Return fractions, or decimals with the digits that are proved."""
    return [enclosed(value, answer.radius, _MOST_DIGITS) for value in values] if answer.radius else fractions(values)


def _rounded(blocks: Iterable[Table | Text | str]) -> str:
    """Return the legend of the sign of rounded fractions if the table shows it; else "". Names may have the sign, too."""
    texts = [block for block in blocks if isinstance(block, str)]
    for table in blocks:
        if isinstance(table, FittingTable):
            shown = [column for kind, column in zip(table.kinds, table.columns, strict=True) if kind != "names"]
            texts += [str(cell) for column in shown for cell in column.cells]
    return f"{ROUNDED} a decimal in place of a long fraction; --json has the fraction" if any(ROUNDED in text for text in texts) else ""


def _times_text(seconds: dict[str, float]) -> str:
    return "Time: " + ", ".join(f"{what} {duration(value)}" for what, value in seconds.items())
