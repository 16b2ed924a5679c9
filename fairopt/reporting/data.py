"""The data of the charts: sets of rows with named columns. Every number occurs once.

==========  ================================================================================================================
data        a row for
==========  ================================================================================================================
users       notion and user: tasks, weighted dominant share, rank by each of them; an even sample if there are many users
use         notion, server row, resource and, for few users, user: the part of the capacity in use
queues      notion and queue: path, place in the tree, part held, guarantee, limit, and the part with what is missing of the guarantee
curves      notion, resource and server row: the part in use, and how many servers are used no more; if there are many rows
points      allocation on or below the frontier: total, smallest share, kind, colour, and its label with the place of its middle
vertices    vertex of the frontier
units       resource whose unit is known: the unit
regrets     schedule and measure of regret
==========  ================================================================================================================
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.comparison import Row
from fairopt.analysis.measures import dominant_shares
from fairopt.instance import IntArray
from fairopt.plots.colours import NOTIONS, looks
from fairopt.plots.utilization import layers_of, layers_of_cluster
from fairopt.reporting.findings import Findings
from fairopt.reporting.frontier_labels import frontier_labels
from fairopt.reporting.tables.answers import bars_of_queues
from fairopt.wording import figure

__all__ = ["MEASURES", "MOST_ROWS", "bars_of", "data", "few_bars", "regret_of"]

MEASURES = ("level", "largest", "goal", "condition", "queue", "total")  # of a regret
MOST_ROWS = 2_000  # of a table or a data set; further rows are left out
_MANY_BARS = 60  # if there are more, use is drawn as curves

Rows: TypeAlias = dict[str, Any]  # {"columns": names, "rows": lists}


def data(findings: Findings) -> dict[str, Rows]:
    """Return all data sets, by columns and rows."""
    sets = {
        "users": _rows(["notion", "user", "tasks", "share", "by_tasks", "by_share"]),
        "use": _rows(["notion", "place", "server", "resource", "user", "part", "order"]),
        "queues": _rows(["notion", "queue", "place", "part", "guarantee", "limit", "upto"]),
        "curves": _rows(["notion", "server", "resource", "part", "servers"]),
        "regrets": _rows(["schedule", "against", "measure", "regret"]),
        "points": _rows(["name", "kind", "total", "smallest_share", "price", "colour", "label", "dx", "dy"]),
        "vertices": _rows(["total", "smallest_share"]),
        "units": _rows(["resource", "unit"]),
    }
    sets["units"]["rows"] += [[resource, unit] for resource, unit in findings.instance.units.items()]
    for each in findings.solved:
        assert each.allocation is not None
        sets["users"]["rows"] += _users(each.name, each.allocation)
        if findings.instance.queues:
            sets["queues"]["rows"] += _queues(each.name, each.allocation)
        if few_bars(findings):
            sets["use"]["rows"] += _use(each.name, each.allocation)
        else:
            sets["curves"]["rows"] += _curves(each.name, each.allocation)
    for row in findings.schedules:
        if row.regret is not None:
            for measure in MEASURES:
                if (value := regret_of(row, measure)) is not None:
                    sets["regrets"]["rows"].append([row.name, row.regret.notion, measure, value])
    trade = findings.frontier.value
    if trade is not None:
        sets["vertices"]["rows"] += [[_float(total), _float(share)] for total, share in trade.vertices]
        drawn = [point for point in findings.points if point.allocation is not None]
        drawn.sort(key=lambda point: point.kind != "alpha")  # others are drawn on top of them
        look = looks(point.name for point in drawn)
        sets["points"]["rows"] += [
            [
                *(point.name, point.kind, *map(_float, (point.total, point.smallest_share, point.price_of_fairness))),
                *(NOTIONS["proportional"] if point.kind == "alpha" else look[point.name].colour, *label),
            ]
            for point, label in zip(drawn, frontier_labels(trade, drawn), strict=True)
        ]
    return sets


def bars_of(findings: Findings) -> int:
    """Return how many bars show the use of the servers: one for each server row and resource that it has, and for each shared resource."""
    instance = findings.instance
    of_servers = instance.n_servers if findings.comparison.sharing == "tdm" else int((instance.row_capacity > 0).sum())
    return of_servers + int((instance.shared_capacity > 0).sum())


def few_bars(findings: Findings) -> bool:
    """Return whether every server row and resource can have its own bar."""
    return 0 < bars_of(findings) <= _MANY_BARS


def regret_of(row: Row, measure: str) -> float | None:
    """Return one measure of the regret of a schedule; None if it does not apply."""
    value = None if row.regret is None else getattr(row.regret, measure)
    return None if value is None or not np.isfinite(value) else float(value)


def _rows(columns: list[str]) -> Rows:
    return {"columns": columns, "rows": []}


def _users(name: str, allocation: Allocation) -> list[list[Any]]:
    tasks, shares = allocation.work, dominant_shares(allocation)
    by_tasks, by_share = (np.argsort(np.argsort(values, kind="stable"), kind="stable") + 1 for values in (tasks, shares))
    users = allocation.instance.users
    kept = np.arange(len(users)) if len(users) <= MOST_ROWS else np.argsort(by_share)[_some_of(len(users))]
    return [[name, users[n], _float(tasks[n]), _float(shares[n]), int(by_tasks[n]), int(by_share[n])] for n in kept]


def _queues(name: str, allocation: Allocation) -> list[list[Any]]:
    rows = []
    resource, bars = bars_of_queues(allocation)
    for each, held, own in bars:
        place = "> " * (each.depth - 1) + each.name + (f" ({own})" if resource is None and own else "")
        ends = (None if end is None else _float(end) for end in (held.guarantee, held.limit))
        rows.append([name, " > ".join(each.path), place, _float(held.part), *ends, _float(held.part + held.missing)])
    return rows


def _use(name: str, allocation: Allocation) -> list[list[Any]]:
    instance = allocation.instance
    things, parts = layers_of(allocation)
    users: tuple[str | None, ...] = instance.users if len(parts) > 1 or instance.n_users == 1 else (None,)
    exists = np.ones(parts.shape[1:], bool) if allocation.sharing == "tdm" else instance.row_capacity > 0
    rows = []
    for i, r in np.argwhere(exists):
        server, thing = instance.servers[i], things[r]
        several = f" x {figure(instance.counts[i])}" if instance.counts[i] != 1 else ""
        place = f"{server}{several} · {thing}" if len(things) > 1 else f"{server}{several}"
        rows += [[name, place, server, thing, users[n], _float(part), n] for n, part in enumerate(parts[:, i, r])]
    for r, thing in enumerate(instance.shared):
        own = layers_of_cluster(allocation)[:, r] if instance.shared[thing] > 0 else ()
        rows += [[name, f"the cluster · {thing}", "the cluster", thing, users[n], _float(part), n] for n, part in enumerate(own)]
    return rows


def _curves(name: str, allocation: Allocation) -> list[list[Any]]:
    instance = allocation.instance
    things, parts = layers_of(allocation)
    used = parts.sum(axis=0)
    rows = []
    for r, thing in enumerate(things):
        exists = np.ones(instance.n_servers, bool) if allocation.sharing == "tdm" else instance.row_capacity[:, r] > 0
        order = np.flatnonzero(exists)[np.argsort(used[exists, r], kind="stable")]
        upto = np.cumsum(instance.counts[order])
        if order.size:  # the step of the least used begins at 0
            rows.append([name, instance.servers[order[0]], thing, _float(used[order[0], r]), 0.0])
        rows += [[name, instance.servers[order[k]], thing, _float(used[order[k], r]), float(upto[k])] for k in _some_of(order.size)]
    for thing, part in zip(instance.shared, allocation.shared_utilization, strict=True):
        rows += [[name, "the cluster", thing, _float(part), end] for end in (0.0, float(instance.counts.sum()))]
    return rows


def _some_of(number: int) -> IntArray:
    """Return positions from the first to the last: all of them, or an even sample if there are very many."""
    return np.unique(np.linspace(0, max(number - 1, 0), min(number, MOST_ROWS)).round().astype(np.int64))


def _float(value: float) -> float:
    """Round to six digits, enough for a chart and its tooltips."""
    return float(f"{value:.6g}")
