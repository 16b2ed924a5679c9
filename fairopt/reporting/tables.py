"""The tables of a report: text in rows and columns, cut after a number of rows that a page can hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from fairopt import wording
from fairopt.allocation import Allocation
from fairopt.analysis.frontiers import Frontier, FrontierPoint
from fairopt.analysis.owners import owner_holdings
from fairopt.analysis.regrets import Regret
from fairopt.instance import FloatArray, Instance
from fairopt.instance.units import shown_unit
from fairopt.reporting.findings import Findings
from fairopt.wording import figure, plural, residual

__all__ = [
    "MOST_ROWS",
    "Table",
    "certificate_table",
    "frontier_table",
    "glance_table",
    "number",
    "owner_table",
    "percent",
    "queue_table",
    "regret_table",
    "server_table",
    "share_table",
    "task_table",
    "use_table",
    "user_table",
]

MOST_ROWS = 2_000  # further rows are left out
_NONE = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text. The first column and the columns ``words`` hold text, all others numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = ()
    total: int = 0

    @classmethod
    def of(cls, caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = ()) -> Table:
        """Keep the first rows, and count all rows."""
        every = [tuple(row) for row in rows]
        return cls(caption, tuple(columns), tuple(every[:MOST_ROWS]), tuple(words), len(every))

    @property
    def left_out(self) -> str:
        """A note on rows that are not shown; empty if all are."""
        return f"The first {len(self.rows):,} of {self.total:,} rows." if self.total > len(self.rows) else ""


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a reader; a dash where there is none.

    >>> number(12583), number(2 / 3), number(float("inf")), number(None), number(1e-12)
    ('12,583', '0.6667', '∞', '-', '1e-12')
    """
    return figure(value, digits, missing=_NONE).replace("inf", "∞")


def percent(part: float | None) -> str:
    """Return a part of a whole, with a space at which no line breaks.

    >>> percent(0.98765).split(), percent(None)
    (['98.8', '%'], '-')
    """
    return wording.percent(part, 1, missing=_NONE).replace(" ", "\N{NO-BREAK SPACE}")


def server_table(instance: Instance) -> Table:
    """Return the server rows: number of servers, and capacity of one."""
    named, capacities = _in_units(instance, instance.capacities)
    columns = ["server", "number", *(f"{resource} of one{unit}" for resource, unit in named)]
    rows = (
        [name, number(count), *map(number, capacity)]
        for name, count, capacity in zip(instance.servers, instance.counts, capacities, strict=True)
    )
    return Table.of(f"{plural(instance.counts.sum(), 'server')} in {plural(instance.n_servers, 'row')}", columns, rows)


def user_table(instance: Instance) -> Table:
    """Return the users: queue, weight, demand of a task, tasks, servers where they may run, and how many at once if that is limited."""
    limited = bool(np.isfinite(instance.parallelism).any())
    in_queues = bool(instance.queues)
    named, demands = _in_units(instance, instance.demands)
    columns = ["user", *(["queue"] if in_queues else []), "weight", *(f"{resource} of a task{unit}" for resource, unit in named)]
    columns += ["tasks", "servers", *(["at once"] if limited else [])]
    weights = instance.weights if instance.weights.ndim == 2 else instance.weights[:, None]
    eligible = instance.eligibility @ instance.counts
    rows = (
        [
            name,
            *([queue or _NONE] if in_queues else []),
            ", ".join(map(number, weight)),
            *map(number, demand),
            number(tasks),
            number(servers),
            *([number(most)] if limited else []),
        ]
        for name, queue, weight, demand, tasks, servers, most in zip(
            instance.users,
            instance.queue_of,
            weights,
            demands,
            instance.tasks,
            eligible,
            instance.parallelism,
            strict=True,
        )
    )
    return Table.of(plural(instance.n_users, "user"), columns, rows, words=(1,) if in_queues else ())


def _in_units(instance: Instance, amounts: FloatArray) -> tuple[list[tuple[str, str]], FloatArray]:
    """Return the names of the resources, each with its unit in brackets where it is known, and the amounts (rows, resources) in it."""
    units = instance.units
    most = amounts.max(axis=0, initial=0.0)
    shown = [shown_unit(float(largest), name, units.get(name, "")) for largest, name in zip(most, instance.resources, strict=True)]
    names = [(name, f" ({unit})" if unit else "") for name, (_, unit) in zip(instance.resources, shown, strict=True)]
    return names, amounts / np.array([size for size, _ in shown])


def _smallest(instance: Instance) -> str:
    """Return what a table calls the smallest dominant share, which is divided by the weight."""
    return "smallest share / weight" if (instance.weights != 1).any() else "smallest share"


def glance_table(findings: Findings) -> Table:
    """Return the measures of every allocation."""
    things = list(next((row.use for row in findings.comparison if row.allocation is not None), {}))
    rows = (
        [
            row.name,
            row.kind,
            number(row.tasks, 6),
            percent(row.efficiency),
            number(row.smallest_share),
            number(row.jain, 3),
            number(None if row.envy is None else float(row.envy.tasks)),
            *(percent(row.use.get(thing)) for thing in things),
        ]
        for row in findings.comparison
    )
    columns = [
        "allocation",
        "kind",
        "tasks",
        "efficiency",
        _smallest(findings.instance),
        "Jain's index",
        "largest envy",
        *(f"{thing} in use" for thing in things),
    ]
    return Table.of("All allocations", columns, rows, words=(1,))


def task_table(findings: Findings) -> Table:
    """Return the tasks of every user in every allocation."""
    held = [row.allocation.tasks_per_user for row in findings.comparison if row.allocation is not None]
    return _by_user(findings, held, "Tasks of each user")


def share_table(findings: Findings) -> Table:
    """Return the weighted dominant share of every user in every allocation."""
    shares = [row.dominant_shares for row in findings.comparison if row.allocation is not None]
    return _by_user(findings, shares, "Weighted dominant share of each user")


def queue_table(findings: Findings) -> Table:
    """Return the tree: what each queue holds in every allocation, as its dominant share, and what is missing of its guarantees."""
    made = [row for row in findings.comparison if row.allocation is not None]
    held = [row.allocation.queue_holdings()[1:] for row in made if row.allocation is not None]
    rows = []
    for each in zip(*held, strict=True):
        own = each[0]
        queue = findings.instance.queues[own.node - 1]
        promised = [f"{number(bound.amount)} {bound.where}" for bound in own.guarantees]
        limits = [f"{number(bound.amount)} {bound.where}" for bound in own.limits]
        cells = []
        for one in each:
            part = f"{percent(one.dominant_share)} {one.dominant_resource}".strip()
            cells.append(part if one.verdict in ("", "met") else f"{part}, {one.verdict}")
        rows.append([" > ".join(own.path), number(queue.weight), ", ".join(promised) or _NONE, ", ".join(limits) or _NONE, *cells])
    columns = ["queue", "weight", "guarantee", "limit", *(row.name for row in made)]
    return Table.of("The tree of queues: dominant share of what each holds", columns, rows, words=(2, 3))


def owner_table(findings: Findings) -> Table:
    """Return what each owner of tasks holds in every allocation: tasks, and the dominant share."""
    made = [(row.name, owner_holdings(row.allocation)) for row in findings.comparison if row.allocation is not None]
    rows = (
        [
            each[0].name,
            number(each[0].users),
            *(text for own in each for text in (number(own.tasks, 6), f"{percent(own.dominant_share)} {own.dominant_resource}".strip())),
        ]
        for each in zip(*(held for _, held in made), strict=True)
    )
    columns = ["owner", "users", *(text for name, _ in made for text in (f"{name}: tasks", f"{name}: share"))]
    return Table.of("What each owner holds: tasks, and the dominant share of the cluster", columns, rows)


def _by_user(findings: Findings, values: list[FloatArray], caption: str) -> Table:
    names = [row.name for row in findings.comparison if row.allocation is not None]
    rows = ([user, *(number(column[n]) for column in values)] for n, user in enumerate(findings.instance.users))
    return Table.of(caption, ["user", *names], rows)


def use_table(findings: Findings) -> Table:
    """Return the part of each resource of each server row in use, in every allocation."""
    instance, tdm = findings.instance, findings.comparison.sharing == "tdm"
    allocations = [row.allocation for row in findings.comparison if row.allocation is not None]
    parts = [each.time_utilization[:, None] if tdm else each.utilization for each in allocations]
    things = ("time",) if tdm else instance.resources
    exists = np.ones((instance.n_servers, 1), bool) if tdm else instance.row_capacity > 0
    rows = (
        [instance.servers[i], things[r], *(percent(part[i, r]) if exists[i, r] else number(None) for part in parts)]
        for i in range(instance.n_servers)
        for r in range(len(things))
    )
    names = [row.name for row in findings.comparison if row.allocation is not None]
    return Table.of("Use of each server", ["server", "resource", *names], rows, words=(1,))


def frontier_table(found: Frontier, every: Sequence[FrontierPoint]) -> Table:
    """Return the vertices of the frontier and the points on or below it, with the message of each point that failed."""
    vertices = (["vertex", "frontier", number(total, 6), number(share), "", "", ""] for total, share in found.vertices)
    points = (
        [
            point.name,
            point.kind,
            number(point.total, 6),
            number(point.smallest_share),
            percent(point.price_of_fairness),
            percent(point.price_of_efficiency),
            point.message,
        ]
        for point in every
    )
    columns = ["allocation", "kind", "tasks", _smallest(found.instance), "price of fairness", "price of efficiency", "note"]
    return Table.of("Smallest share against tasks", columns, [*vertices, *points], words=(1, 6))


def regret_table(findings: Findings) -> Table:
    """Return the regret of every schedule."""
    rows = []
    names = ["level", "leximin", "largest", "goal", "condition", *(["queue"] if findings.instance.queues else []), "total"]
    for row in findings.schedules:
        own = row.regret
        values = [] if own is None else [percent(getattr(own, name)) for name in names]
        note = "; ".join(filter(None, [row.message or row.note, _tiny(own)]))
        against = "" if own is None else own.notion + (", whole tasks" if own.whole else "")
        rows.append([row.name, number(row.tasks, 6), against, *(values or [number(None)] * len(names)), note])
    columns = ["allocation" if findings.given else "schedule", "tasks", "against", *names, "note"]
    return Table.of(
        "Regret of each schedule and given allocation" if findings.given else "Regret of each schedule",
        columns,
        rows,
        words=(2, len(columns) - 1),
    )


def _tiny(own: Regret | None) -> str:
    """Say what the regret is without users who have less than one task of the optimum, and none here."""
    if own is None or own.others is None:
        return ""
    known = [name for name in ("level", "largest", "goal") if getattr(own.others, name) is not None]
    values = wording.joined([f"{name} {percent(getattr(own.others, name))}" for name in known])
    worst = "" if own.worst_user is None else f"; {own.worst_user} falls short most"
    whose = plural(len(own.tiny), "user", "users")
    return f"{whose} with less than one task in the exact allocation and none here; without: {values}{worst}"


def certificate_table(findings: Findings) -> Table:
    """Return the residuals of every allocation, including those of the frontier."""
    rows = [_residuals(row.name, row.allocation) for row in findings.comparison if row.allocation is not None]
    trade = findings.frontier.value
    if trade is not None:
        rows += [_residuals(f"frontier: {point.name}", point.allocation) for point in trade.points if point.allocation is not None]
        rows.append(["frontier: all vertices", "linear programs", "exact", f"gap {residual(trade.gap)}", number(None), number(None)])
    return Table.of("Certificates", ["allocation", "engine", "claims", "feasibility", "optimality", "fairness"], rows, words=(1, 2))


def _residuals(name: str, allocation: Allocation) -> list[str]:
    certificate = allocation.certificate
    claims = certificate.qualifier or ("exact, whole tasks" if certificate.whole_tasks else "exact")
    proved = [certificate.optimality, certificate.fairness] if not certificate.qualifier else [float("nan")] * 2
    return [
        name,
        allocation.solver,
        claims,
        residual(certificate.feasibility),
        *(number(None) if np.isnan(value) else residual(value) for value in proved),
    ]
