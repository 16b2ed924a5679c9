"""The tables of a report, which are about all of its allocations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.comparison import Row
from fairopt.analysis.owners import owner_holdings
from fairopt.analysis.regrets import Regret
from fairopt.reporting.findings import Findings
from fairopt.reporting.tables.bounds import bounds_beside
from fairopt.reporting.tables.comparison import regret_columns, user_table
from fairopt.reporting.tables.phrases import counted, guarantees_met, min_share, without_tiny
from fairopt.show.table import Column, Table, names, numbers, percents, words
from fairopt.wording import figure, percent, residual

__all__ = [
    "bound_table",
    "certificate_table",
    "glance_table",
    "owner_table",
    "price_table",
    "queue_table",
    "regret_table",
    "share_table",
    "task_table",
    "use_table",
]


def glance_table(findings: Findings) -> Table:
    """Return the measures of every allocation."""
    rows = list(findings.comparison)
    things = list(next((row.use for row in rows if row.allocation is not None), {}))
    return Table.of(
        names("allocation", (row.name for row in rows)),
        words("kind", (row.kind for row in rows)),
        numbers("tasks", (row.tasks for row in rows), 6),
        percents("efficiency", (row.efficiency for row in rows), 1),
        *(_of_tree(findings, rows) if findings.instance.is_tree else _of_users(findings, rows)),
        *(percents(f"{thing} in use", (row.use.get(thing) for row in rows), 1) for thing in things),
        title="All allocations",
    )


def _of_users(findings: Findings, rows: Sequence[Row]) -> list[Column]:
    """Return the measures of users who are compared with each other by weight."""
    return [
        numbers(min_share(findings.instance), (row.smallest_share for row in rows), 4),
        numbers("Jain's index", (row.jain for row in rows)),
        numbers("largest envy", (None if row.envy is None else float(row.envy.tasks) for row in rows), 4),
    ]


def _of_tree(findings: Findings, rows: Sequence[Row]) -> list[Column]:
    """Return what is missing by the rules of the tree, in tasks, and how many queues and users miss some of a guarantee."""
    audits = [findings.audit_of(row) for row in rows]

    def violation(name: str) -> list[float | None]:
        return [None if audit is None or name not in audit else float(audit[name].amount) for audit in audits]

    return [
        words("guarantees", (guarantees_met(row.allocation) for row in rows)),
        numbers("short of its slice", violation("sharing-incentive"), 4),
        numbers("envy of a sibling", violation("envy-freeness"), 4),
    ]


def task_table(findings: Findings) -> Table:
    """Return the tasks of every user in every allocation; with speeds their work."""
    made = findings.made
    what = "Work" if any(row.allocation is not None and row.allocation.instance.speeds_given is not None for row in made) else "Tasks"
    return user_table(made, [row.allocation.work for row in made if row.allocation is not None], f"{what} of each user")


def share_table(findings: Findings) -> Table:
    """Return the weighted dominant share of every user in every allocation."""
    made = findings.made
    return user_table(made, [row.dominant_shares for row in made], "Weighted dominant share of each user")


def queue_table(findings: Findings) -> Table:
    """Return the tree: what each queue holds in every allocation, as its dominant share, and what is missing of its guarantees."""
    held = [row.allocation.queue_holdings()[1:] for row in findings.made if row.allocation is not None]
    queues = [findings.instance.queues[own.node - 1] for own in held[0]]
    columns: list[Column] = [
        names("queue", (" > ".join(own.path) for own in held[0])),
        numbers("weight", (queue.weight for queue in queues), 4),
        words("guarantee", (_bounds(own.guarantees) for own in held[0])),
        words("limit", (_bounds(own.limits) for own in held[0])),
    ]
    for row, own in zip(findings.made, held, strict=True):
        parts = [f"{percent(each.dominant_share, 1)} {each.dominant_resource}".strip() for each in own]
        texts = [part if one.verdict in ("", "met") else f"{part}, {one.verdict}" for part, one in zip(parts, own, strict=True)]
        columns.append(numbers(row.name, texts))
    return Table.of(*columns, title="The tree of queues: dominant share of what each holds")


def _bounds(bounds: object) -> str:
    return ", ".join(f"{figure(bound.amount, 4)} {bound.where}" for bound in bounds) or "-"  # type: ignore[attr-defined]


def price_table(findings: Findings) -> Table:
    """Return the tasks, weighted as an efficiency counts them, of every allocation beside the most possible, where no frontier shows it."""
    rows, most, what = findings.made, findings.comparison.largest_total, counted(findings.instance)
    return Table.of(
        names("allocation", (row.name for row in rows)),
        numbers(what, (row.efficiency * most for row in rows), 6),
        numbers("most possible", (most for _ in rows), 6),
        percents("price of fairness", (1 - row.efficiency for row in rows), 1),
        title=f"Price of fairness: {what} lost, in % of the most possible",
    )


def owner_table(findings: Findings) -> Table:
    """Return what each owner of tasks holds in every allocation: tasks, with speeds their work too, and the dominant share."""
    made = [(row.name, owner_holdings(row.allocation)) for row in findings.made if row.allocation is not None]
    first = made[0][1]
    columns: list[Column] = [names("owner", (each.name for each in first)), numbers("users", (each.users for each in first), 4)]
    for name, own in made:
        shares = (f"{percent(each.dominant_share, 1)} {each.dominant_resource}".strip() for each in own)
        columns.append(numbers("tasks", (each.tasks for each in own), 6, above=name))
        if any(each.work is not None for each in own):
            columns.append(numbers("work", (each.work for each in own), 6, above=name))
        columns.append(numbers("share", shares, above=name))
    return Table.of(*columns, title="What each owner holds: tasks, and the dominant share of the cluster")


def use_table(findings: Findings) -> Table:
    """Return the part of each resource of each server row in use, in every allocation."""
    instance, tdm = findings.instance, findings.comparison.sharing == "tdm"
    things = ("time",) if tdm else instance.server_resources
    exists = np.ones((instance.n_servers, 1), bool) if tdm else instance.row_capacity > 0
    places = [(i, r) for i in range(instance.n_servers) for r in range(len(things))]
    columns = []
    for row in findings.made:
        if row.allocation is not None:
            part = row.allocation.time_utilization[:, None] if tdm else row.allocation.utilization
            of_servers = [part[i, r] if exists[i, r] else None for i, r in places]
            shared = zip(instance.shared_capacity, row.allocation.shared_utilization, strict=True)
            of_cluster = [used if amount > 0 else None for amount, used in shared]
            columns.append(percents(row.name, [*of_servers, *of_cluster], 1))
    servers = names("server", [*(instance.servers[i] for i, _ in places), *("the cluster" for _ in instance.shared)])
    title = "Use of each server and of the cluster" if instance.shared else "Use of each server"
    return Table.of(servers, words("resource", [*(things[r] for _, r in places), *instance.shared]), *columns, title=title)


def bound_table(findings: Findings) -> Table | None:
    """Return what every allocation uses of each named limit, and both sides of each rule; None where there are none."""
    return bounds_beside([(row.name, row.allocation) for row in findings.made if row.allocation is not None])


def regret_table(findings: Findings) -> Table:
    """Return the regret of every schedule."""
    rows = list(findings.schedules)
    regrets = [row.regret for row in rows]
    against = ["" if own is None else own.notion + (", whole tasks" if own.whole else "") for own in regrets]
    notes = ["; ".join(filter(None, [row.message or row.note, _tiny(row.regret)])) for row in rows]
    return Table.of(
        names("allocation" if findings.given else "schedule", (row.name for row in rows)),
        numbers("tasks", (row.tasks for row in rows), 6),
        words("against", against),
        *regret_columns(regrets),
        words("note", notes),
        title="Regret of each schedule and given allocation" if findings.given else "Regret of each schedule",
    )


def _tiny(own: Regret | None) -> str:
    return "" if own is None or own.others is None else without_tiny(own)


def certificate_table(findings: Findings) -> Table:
    """Return the residuals of every allocation, including those of the frontier."""
    rows = [_residuals(row.name, row.allocation) for row in findings.made if row.allocation is not None]
    trade = findings.frontier.value
    if trade is not None:
        rows += [_residuals(f"frontier: {point.name}", point.allocation) for point in trade.points if point.allocation is not None]
        rows.append(("frontier: all vertices", "linear programs", "exact", f"gap {residual(trade.gap)}", None, None))
    allocation, engine, claims, *proved = zip(*rows, strict=True) if rows else ((),) * 6
    residuals = (numbers(title, own) for title, own in zip(("feasibility", "optimality", "fairness"), proved, strict=True))
    return Table.of(names("allocation", allocation), words("engine", engine), words("claims", claims), *residuals, title="Certificates")


def _residuals(name: str, allocation: Allocation) -> tuple[str | None, ...]:
    certificate = allocation.certificate
    claims = certificate.qualifier or ("exact, whole tasks" if certificate.whole_tasks else "exact")
    proved = [certificate.optimality, certificate.fairness] if not certificate.qualifier else [float("nan")] * 2
    own = [None if np.isnan(value) else residual(value) for value in proved]
    return (name, allocation.solver, claims, residual(certificate.feasibility), *own)
