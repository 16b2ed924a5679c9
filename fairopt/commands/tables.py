"""What the command line prints for a person: an allocation, the notions, the engines, published results.

Up to 20 users (or rows of servers) are shown one by one, more as minimum, quartiles and maximum. Labels come from files: they are never
read as markup, and a character that would act on a terminal is shown as its escape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairopt.allocation import Allocation
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.models import CRITERIA, NOTIONS
from fairopt.solvers import PLACEMENTS, SOLVERS
from fairopt.wording import plural, printable

if TYPE_CHECKING:
    from fairopt.analysis.worst_cases.search import WorstCase
    from fairopt.reproduction.reproducing import Experiment, Row

__all__ = [
    "add_numbers",
    "label",
    "numbers",
    "print_allocation",
    "print_notions",
    "print_placements",
    "print_reproduction",
    "print_solvers",
    "print_worst_case",
    "simple_table",
]

_ROWS = 20  # more users or servers than this are summarised
_FEW = 5  # names listed in a summary
_LEVELS = 6
_VERDICTS = {  # of fairopt.reproduction.reproducing: beside a row, its colour, and in the summary
    "agrees": ("agrees", "green", "as published"),
    "known difference": ("known *", "yellow", "other for a known reason"),
    "not printed": ("not printed", "dim", "not printed"),
    "not run": ("not run *", "yellow", "not run"),
    "differs": ("DIFFERS *", "bold red", "other UNEXPECTEDLY"),
}
_BAR = 20  # longest bar
_SIZES = 100  # numbers that differ by more are not written with the same decimals
_PERCENT = len("100.0 %")
_QUANTILES = {"min": 0.0, "quartile 1": 0.25, "median": 0.5, "quartile 3": 0.75, "max": 1.0}


def print_allocation(console: Console, allocation: Allocation, seconds: dict[str, float], *, everything: bool = False) -> None:
    """Print an allocation: users, servers, levels, certificate and times."""
    instance, notion = allocation.instance, NOTIONS.get(allocation.notion, CRITERIA.get(allocation.notion))
    title = notion.title if notion else allocation.notion
    how = f"{allocation.certificate.reservation} by {allocation.solver}".lstrip()
    facts = f"({allocation.notion}, {how}, sharing {allocation.sharing})"
    users = [_users(allocation, np.arange(instance.n_users))] if everything or instance.n_users <= _ROWS else _summary_of_users(allocation)
    servers = _servers(allocation, console) if everything or instance.n_servers <= _ROWS else None
    for block in (Text.assemble((title, "bold"), " ", facts), *users, servers or _summary_of_servers(allocation, console)):
        console.print(block)
        console.print()
    for line in (_levels_text(allocation), _certificate_text(allocation), _times_text(seconds)):
        if line:
            console.print(Text(line))


def print_notions(console: Console) -> None:
    """Print a table of `NOTIONS`."""
    table = simple_table("notion", "what it is, and its source", "promises", leading=1)
    for name, notion in NOTIONS.items():
        what = Text.assemble(notion.title, "\n", (notion.source, "dim"))
        table.add_row(Text(name, "bold"), what, Text(", ".join(promise.value for promise in notion.satisfies) or "nothing proved"))
    console.print(table)


def print_placements(console: Console) -> None:
    """Print a table of `PLACEMENTS`, and of the criteria that are no notions."""
    for title, registry in (("placement", PLACEMENTS), ("criterion", CRITERIA)):
        table = simple_table(title, "what it is, and its source", leading=1)
        for name, entry in registry.items():
            what = Text.assemble(getattr(entry, "title", "a function"), "\n", (getattr(entry, "source", ""), "dim"))
            table.add_row(Text(name, "bold"), what)
        console.print(table)
        console.print()
    console.print(Text("Every notion that equalises a share is a criterion too; see: fairopt notions."))


def print_solvers(console: Console) -> None:
    """Print a table of `SOLVERS`."""
    table = simple_table("solver", "what it is", "solves programs with", "installed", leading=1)
    for name, engine in SOLVERS.items():
        abilities = "\n".join(sorted(feature.value for feature in engine.features))
        table.add_row(Text(name, "bold"), Text(engine.title), Text(abilities), Text("yes" if engine.available() else engine.requirement))
    console.print(table)


def print_reproduction(console: Console, results: Sequence[tuple[Experiment, list[Row]]], seconds: float) -> None:
    """Print a table for each experiment, published beside ours, the reasons of differences, and a summary."""
    for experiment, rows in results:
        console.print(Text.assemble((experiment.title, "bold"), f" [{experiment.id}]\n", (experiment.source, "dim")))
        table = simple_table("", "published", "ours", "")
        for row in rows:
            published = "" if row.published is None else _nested(row.published)
            ours = f"{_nested(row.ours, 4)}\n± {row.tolerance:.2g}" if row.mean else _nested(row.ours)
            table.add_row(Text(row.what), published, ours, Text(*_VERDICTS[row.verdict.value][:2]))
        console.print(table)
        for note in dict.fromkeys(row.note for row in rows if row.note):
            console.print(Text(f"* {note}"))
        console.print()
    if any(row.mean for _, rows in results for row in rows):
        console.print(Text("± is the 99.9 % interval of the difference from the published mean, of random trials or draws."))
    found = [row.verdict.value for _, rows in results for row in rows]
    parts = [f"{found.count(verdict)} {words}" for verdict, (_, _, words) in _VERDICTS.items() if verdict in found]
    console.print(Text(f"{plural(len(found), 'result')}: {', '.join(parts)}; {seconds:.3g} s"))


def print_worst_case(console: Console, worst: WorstCase, seconds: float) -> None:
    """Print the instance, what both allocations make of it, and what the search was."""
    instance, found = worst.instance, worst.regret
    tasks = "whole" if found.whole else "divisible"
    console.print(Text.assemble((f"{worst.name} against {found.notion}", "bold"), f", {tasks} tasks"))
    console.print()
    console.print(_instance_table("server", instance.servers, _server_columns(instance)))
    console.print()
    columns = _user_columns(instance)
    columns |= {"tasks, greedy": worst.schedule.tasks_per_user, "tasks, exact": worst.exact.tasks_per_user}
    console.print(_instance_table("user", instance.users, columns))
    console.print()
    for title, allocation in (("Greedy", worst.schedule), ("Exact", worst.exact)):
        held = [
            f"{x:.4g} of {instance.users[n]} on {instance.servers[i]}" for (n, i), x in np.ndenumerate(allocation.tasks) if round(x, 9) > 0
        ]
        console.print(Text(f"{title}: {', '.join(held) or 'nothing'}"))
    console.print(Text(str(found)))
    size = f"of {plural(worst.tries, 'instance')} tried, seed {worst.seed}"
    stopped = {"": "", "time limit": ", stopped by the time limit", "interrupted": ", interrupted"}[worst.stopped]
    failed = f", {worst.failed} not solved" if worst.failed else ""
    console.print(Text(f"The largest regret {size}{stopped}{failed}: {worst.found_value:.4g}; of this smaller instance: {worst.value:.4g}"))
    console.print(Text(f"A search: a lower bound of the worst case, not a proof of it. Time: {seconds:.3g} s"))


def _server_columns(instance: Instance) -> dict[str, Any]:
    counts = {"count": instance.counts} if (instance.counts != 1).any() else {}
    return counts | dict(zip(instance.resources, instance.capacities.T, strict=True))


def _user_columns(instance: Instance) -> dict[str, Any]:
    """Return demands, and what is not as it is by default."""
    columns: dict[str, Any] = dict(zip(instance.resources, instance.demands.T, strict=True))
    if (instance.weights != 1).any():
        columns["weight"] = instance.weights
    if np.isfinite(instance.tasks).any():
        columns["has"] = instance.tasks
    if np.isfinite(instance.parallelism).any():
        columns["at once"] = instance.parallelism
    if instance.placement is not None and not instance.placement.all():
        columns["runs on"] = [", ".join(np.array(instance.servers)[row]) for row in instance.placement]
    return columns


def _instance_table(what: str, names: Sequence[str], columns: dict[str, Any]) -> Table:
    table = simple_table(what)
    add_numbers(table, *columns)
    for n, name in enumerate(names):
        table.add_row(label(name), *(value if isinstance(value, str) else f"{value:.4g}" for value in (c[n] for c in columns.values())))
    return table


def _nested(values: list[Any], digits: int = 6) -> str:
    """Write numbers in a line, and rows of them in lines."""
    if values and isinstance(values[0], list):
        return "\n".join(_nested(part, digits) for part in values)
    return ", ".join(f"{value:.{digits}g}" for value in values)


# Numbers and words ---------------------------------------------------------------------------------------------------------------


def numbers(values: FloatArray | Sequence[float]) -> list[str]:
    """Write a column of numbers alike: 6 significant digits of the largest, no needless zeros, each by itself where sizes differ much.

    >>> numbers([2.608695652, 3.130434783, 6.260869565])
    ['2.60870', '3.13043', '6.26087']
    >>> numbers([0.0, 210.0, 12345.5]), numbers([3.0, float("inf")]), numbers([1e-9, 5.0])
    (['0', '210.0', '12,345.5'], ['3', 'inf'], ['1e-09', '5'])
    """
    array = np.asarray(values, float)
    size = np.abs(array[np.isfinite(array) & (array != 0)])
    if not size.size or size.max() / size.min() >= _SIZES or not 1e-4 <= size.max() < 1e9:
        return [f"{value:.6g}" for value in array]
    decimals = max(0, 5 - int(np.floor(np.log10(size.max()))))
    texts = [f"{value:,.{decimals}f}" if value else "0" for value in array]
    fractions = [text.partition(".")[2] for text in texts]
    needless = min((len(digits) - len(digits.rstrip("0")) for digits in fractions if digits), default=0)
    return [text[: len(text) - needless].removesuffix(".") if "." in text else text for text in texts]


def label(name: str) -> Text:
    """Return a label as it is, without markup and without control characters."""
    return Text(printable(name), overflow="fold")


def _some(names: Sequence[str]) -> Text:
    """Return the first few names, and how many more there are."""
    listed = Text(", ").join(label(name) for name in names[:_FEW])
    return listed.append(f" and {len(names) - _FEW:,} more") if len(names) > _FEW else listed


def simple_table(*columns: str, title: str | None = None, leading: int = 0) -> Table:
    """Return a table with these columns of text; ``leading`` is the number of blank lines between rows."""
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), leading=leading, title=title, title_justify="left", title_style="bold"
    )
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    return table


def add_numbers(table: Table, *columns: str) -> None:
    """Add columns of numbers, which are never broken."""
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)


# Users ---------------------------------------------------------------------------------------------------------------------------


def _weighted(instance: Instance) -> bool:
    return instance.weights.ndim == 1 and bool((instance.weights != 1).any())


def _users(allocation: Allocation, chosen: IntArray, title: str | None = None) -> Table:
    """Return a table of these users: weight (where it differs), tasks, share, dominant resource, level."""
    instance = allocation.instance
    table = simple_table("user", title=title)
    columns: list[Iterable[str | Text]] = [[label(instance.users[n]) for n in chosen]]
    if _weighted(instance):
        add_numbers(table, "weight")
        columns.append(numbers(instance.weights[chosen]))
    add_numbers(table, "tasks")
    columns.append(numbers(allocation.tasks_per_user[chosen]))
    if (shares := allocation.shares_to_show) is not None:
        add_numbers(table, "share")
        columns.append(numbers(shares[chosen]))
    table.add_column("dominant", overflow="fold")
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
    """Return quartiles, the users with the lowest shares, and those who run all their tasks."""
    instance = allocation.instance
    table = simple_table("", title=plural(instance.n_users, "user"))
    add_numbers(table, *_QUANTILES)
    rows = {"tasks": allocation.tasks_per_user}
    if (shares := allocation.shares_to_show) is not None:
        rows["share"] = shares
    if _weighted(instance):
        rows["weight"] = instance.weights
    for name, values in rows.items():
        table.add_row(name, *numbers(np.quantile(values, list(_QUANTILES.values()))))
    lowest = "share" if "share" in rows else "tasks"
    complete = [instance.users[n] for n in np.flatnonzero(allocation.complete)]
    wanting = np.flatnonzero(instance.servable & ~allocation.complete)
    ranked = wanting[np.argsort(rows[lowest][wanting], kind="stable")]
    blocks: list[Table | Text] = [table]
    if ranked.size:
        blocks.append(_users(allocation, ranked[:_FEW], title=f"Lowest {lowest} of those who want more"))
    note = Text.assemble(plural(len(complete), "user"), " with all tasks running: ", _some(complete), ". ") if complete else Text()
    return [*blocks, note.append("--all shows every user.")]


# Servers -------------------------------------------------------------------------------------------------------------------------


def _use(allocation: Allocation) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Return what is shared on a server, the part of it in use (rows, things), and the part of the cluster's in use (things,)."""
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
    filled = width if part >= 0.9995 else max(min(round(part * width), width - 1), 0)  # a full bar is what is written as 100.0 %
    text = Text.assemble((full * filled, "cyan"), (empty * (width - filled), "dim"), no_wrap=True)
    return text.append(f"{f'{100 * part:.1f} %':>{_PERCENT + (1 if width else 0)}}")


def _servers(allocation: Allocation, console: Console) -> Table | None:
    """Return a table with a row for each row of servers, or None where its columns do not fit."""
    instance = allocation.instance
    things, used, of_cluster = _use(allocation)
    name_width = min(max(map(len, (*instance.servers, "server"))), 24)
    counts = [f"{count:,.0f}" for count in instance.counts]
    count_width = max(map(len, (*counts, "count"))) + 2
    room = (console.width - name_width - count_width - 2) // len(things) - _PERCENT - 3  # 2 between columns, 1 before the percentage
    if room < 0:
        return None
    width = min(room, _BAR) if room >= 4 else 0
    table = simple_table("server")
    add_numbers(table, "count")
    for thing in things:
        table.add_column(label(thing), overflow="fold")
    for i, name in enumerate(instance.servers):
        table.add_row(
            label(name), counts[i], *(_bar(part, width, console) if _offers(allocation, i, r) else "" for r, part in enumerate(used[i]))
        )
    if instance.n_servers > 1:
        table.add_section()
        table.add_row("all", f"{instance.counts.sum():,.0f}", *(_bar(part, width, console) for part in of_cluster))
    return table


def _offers(allocation: Allocation, server: int, thing: int) -> bool:
    """Does this row of servers have anything of it? Always, of time."""
    return allocation.sharing == "tdm" or bool(allocation.instance.row_capacity[server, thing] > 0)


def _summary_of_servers(allocation: Allocation, console: Console) -> Table:
    instance = allocation.instance
    things, used, of_cluster = _use(allocation)
    servers = plural(instance.counts.sum(), "server")
    rows = "" if (instance.counts == 1).all() else f" in {plural(instance.n_servers, 'row')}"
    table = simple_table("", title=servers + rows)
    table.add_column("in use", no_wrap=True)
    add_numbers(table, *_QUANTILES)
    for r, thing in enumerate(things):
        offering = [used[i, r] for i in range(instance.n_servers) if _offers(allocation, i, r)]
        quantiles = np.quantile(offering, list(_QUANTILES.values())) if offering else []
        table.add_row(label(thing), _bar(of_cluster[r], 8, console), *(f"{100 * value:.1f} %" for value in quantiles))
    return table


# The last lines ------------------------------------------------------------------------------------------------------------------


def _levels_text(allocation: Allocation) -> str:
    levels = allocation.levels
    if not levels:
        return ""
    texts = [f"{level.value:.6g} ({plural(len(level.users), 'user')})" for level in levels]
    if len(texts) > _LEVELS:
        texts = [*texts[: _LEVELS - 1], f"... {len(texts) - _LEVELS:,} more", texts[-1]]
    return f"{'Level' if len(levels) == 1 else 'Levels'}: {', '.join(texts)}"


def _certificate_text(allocation: Allocation) -> str:
    certificate = allocation.certificate
    if certificate.reservation:
        blocked = allocation.details.get("blocked_by")
        stopped = f"; stopped at {label(blocked).plain}, whose task did not fit" if blocked else ""
        return (
            f"{certificate.reservation.capitalize()}, so not an optimum: feasible up to {certificate.feasibility:.1e}, recomputed{stopped}"
        )
    worst = f"{certificate.worst:.1e}" if certificate.worst else "0"
    if certificate.whole_tasks:
        return f"Exact by branch and cut: relative gap {worst} as the engine reports it, limits recomputed"
    if "gap" in allocation.details:  # the best of a set, chosen by branch and cut
        return f"Fair, recomputed; the best of all fair ones by branch and cut: relative error or gap {worst}"
    proof = "answer and prices" if allocation.levels or allocation.prices is not None else "the answer"
    return f"Certified exact: relative error {worst}, recomputed from {proof}"


def _times_text(seconds: dict[str, float]) -> str:
    def duration(value: float) -> str:
        return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"

    return "Time: " + ", ".join(f"{what} {duration(value)}" for what, value in seconds.items())
