"""The charts of a report, as Vega-Lite: the data once, and views of it that share two parameters.

``notion`` is the one that the reader looks at, ``picked`` the user who is highlighted (null: nobody); the page sets both in every view.
Colours are variables of the page, so that dark, light and print are the page's business; labels are data, never part of an expression.

==========  ================================================================================================================
data        a row for
==========  ================================================================================================================
users       notion, user: tasks, weighted dominant share, position by each of them; of many users, every so many-th
use         notion, server row, resource, and user where there are few: the part of the capacity in use
curves      notion, resource, server row (of many): the part in use, and the servers up to this one, from the least used
points      of the frontier: total, smallest share, kind
vertices    of the frontier
regrets     schedule and measure
==========  ================================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import altair as alt
import numpy as np

from fairopt.allocation import Allocation
from fairopt.comparison import Row
from fairopt.frontier import FrontierPoint
from fairopt.measures import dominant_shares
from fairopt.plots.style import COLOURS
from fairopt.plots.utilization import layers_of
from fairopt.report.findings import Findings

__all__ = ["COLOURED", "MANY_USERS", "charts", "data"]

COLOURED = len(COLOURS)  # users up to which each has a colour
MANY_USERS = 30  # users from which a bar each is too much
_MANY_BARS = 60  # the same of servers and resources
_MOST = 1_000  # users or servers of a curve

_MEASURES = {"level": "var(--c0)", "largest": "var(--c4)", "goal": "var(--c2)", "condition": "var(--c3)", "total": "var(--c1)"}

View: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
Rows: TypeAlias = dict[str, Any]  # {"columns": names, "rows": lists}


def data(findings: Findings) -> dict[str, Rows]:
    """Return all data sets, by columns and rows."""
    sets = {
        "users": _rows(["notion", "user", "tasks", "share", "by_tasks", "by_share"]),
        "use": _rows(["notion", "place", "server", "resource", "user", "part", "order"]),
        "curves": _rows(["notion", "server", "resource", "part", "servers"]),
        "regrets": _rows(["schedule", "against", "measure", "regret"]),
        "points": _rows(["name", "kind", "total", "smallest_share", "price"]),
        "vertices": _rows(["total", "smallest_share"]),
    }
    for each in findings.solved:
        assert each.allocation is not None
        sets["users"]["rows"] += _users(each.name, each.allocation)
        if few_bars(findings):
            sets["use"]["rows"] += _use(each.name, each.allocation)
        else:
            sets["curves"]["rows"] += _curves(each.name, each.allocation)
    for row in findings.schedules:
        if row.regret is not None:
            for measure in _MEASURES:
                if (value := _regret_of(row, measure)) is not None:
                    sets["regrets"]["rows"].append([row.name, row.regret.notion, measure, value])
    trade = findings.frontier.value
    if trade is not None:
        sets["vertices"]["rows"] += [[_float(total), _float(share)] for total, share in trade.vertices]
        sets["points"]["rows"] += [
            [point.name, point.kind, *map(_float, (point.total, point.smallest_share, point.price_of_fairness))]
            for point in findings.points
            if point.allocation is not None
        ]
    return sets


def bars_of(findings: Findings) -> int:
    """Return how many bars show the use of the servers, one for each and what it has."""
    instance = findings.instance
    return instance.n_servers if findings.comparison.sharing == "tdm" else int((instance.row_capacity > 0).sum())


def few_bars(findings: Findings) -> bool:
    """Can every server and resource have a bar of its own?"""
    return 0 < bars_of(findings) <= _MANY_BARS


def charts(findings: Findings) -> dict[str, dict[str, Any]]:
    """Return the specification of every chart, by the name of its place in the page."""
    users = findings.instance.users
    found: dict[str, View] = {}
    if findings.solved:
        kind = _user_bars if len(users) <= MANY_USERS else _user_curve
        colour = _colour(users)
        found["chart-tasks"] = kind("tasks", "tasks", colour, len(users))
        found["chart-shares"] = kind("share", "weighted dominant share", colour, len(users))
        found["chart-use"] = _use_bars(findings) if few_bars(findings) else _use_curves(findings)
    if findings.frontier.value is not None:
        found["chart-frontier"] = _frontier(findings.points)
    if any(row.regret is not None for row in findings.schedules):
        found["chart-regret"] = _regret(findings)
    first = findings.solved[0].name if findings.solved else None
    return {name: _plain(chart, first) for name, chart in found.items()}


def _regret_of(row: Row, measure: str) -> float | None:
    """Return a measure of the regret of a schedule, if it has it."""
    value = None if row.regret is None else getattr(row.regret, measure)
    return None if value is None or not np.isfinite(value) else float(value)


# Data ----------------------------------------------------------------------------------------------------------------------------


def _rows(columns: list[str]) -> Rows:
    return {"columns": columns, "rows": []}


def _users(name: str, allocation: Allocation) -> list[list[Any]]:
    tasks, shares = allocation.tasks_per_user, dominant_shares(allocation)
    by_tasks, by_share = (np.argsort(np.argsort(values, kind="stable"), kind="stable") + 1 for values in (tasks, shares))
    users = allocation.instance.users
    shown = np.arange(len(users)) if len(users) <= _MOST else np.unique(np.linspace(0, len(users) - 1, _MOST).round().astype(int))
    kept = np.argsort(by_share)[shown] if len(users) > _MOST else shown
    return [[name, users[n], _float(tasks[n]), _float(shares[n]), int(by_tasks[n]), int(by_share[n])] for n in kept]


def _use(name: str, allocation: Allocation) -> list[list[Any]]:
    instance = allocation.instance
    things, parts = layers_of(allocation)
    users: tuple[str | None, ...] = instance.users if len(parts) > 1 or instance.n_users == 1 else (None,)
    exists = np.ones(parts.shape[1:], bool) if allocation.sharing == "tdm" else instance.row_capacity > 0
    rows = []
    for i, r in np.argwhere(exists):
        server, thing = instance.servers[i], things[r]
        several = f" x {instance.counts[i]:,.0f}" if instance.counts[i] != 1 else ""
        place = f"{server}{several} · {thing}" if len(things) > 1 else f"{server}{several}"
        rows += [[name, place, server, thing, users[n], _float(part), n] for n, part in enumerate(parts[:, i, r])]
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
        shown = np.unique(np.linspace(0, max(order.size - 1, 0), min(order.size, _MOST)).round().astype(int))
        if order.size:  # the step of the least used begins at 0
            rows.append([name, instance.servers[order[0]], thing, _float(used[order[0], r]), 0.0])
        rows += [[name, instance.servers[order[k]], thing, _float(used[order[k], r]), float(upto[k])] for k in shown]
    return rows


def _float(value: float) -> float:
    """Six digits are enough for a picture and its tooltips."""
    return float(f"{value:.6g}")


# Views ---------------------------------------------------------------------------------------------------------------------------


def _picked(dim: float = 0.2) -> Any:
    """Full strength for the user who is highlighted, or for all."""
    return alt.condition("picked === null || datum.user === picked", alt.value(1.0), alt.value(dim))


def _colour(users: tuple[str, ...]) -> Any:
    """A colour each, up to eight users; else one for all."""
    if len(users) > COLOURED:
        return alt.value("var(--accent)")
    return alt.Color("user:N", legend=None, scale=alt.Scale(domain=list(users), range=[f"var(--c{k})" for k in range(len(users))]))


def _user_bars(field: str, title: str, colour: Any, number: int) -> View:
    tooltip = [
        alt.Tooltip("user:N"),
        alt.Tooltip("notion:N"),
        alt.Tooltip("tasks:Q", format=",.5~g"),
        alt.Tooltip("share:Q", format=".5~g"),
    ]
    base = alt.Chart(alt.NamedData("users")).encode(
        x=alt.X(f"{field}:Q", title=title, axis=alt.Axis(tickCount=5)),
        y=alt.Y("user:N", sort=None, title=None),
        tooltip=tooltip,
    )
    bars = base.transform_filter("datum.notion === notion").mark_bar(height={"band": 0.7}, stroke="var(--ink)", strokeWidth=0.5)
    others = base.transform_filter("datum.notion !== notion").mark_tick(
        color="var(--ink)", thickness=1.5, opacity=0.55, height={"band": 0.85}
    )
    layer: View = alt.layer(bars.encode(color=colour, opacity=_picked()), others).properties(height=26 * number)
    return layer


def _user_curve(field: str, title: str, colour: Any, number: int) -> View:
    position = f"by_{field}"
    tooltip = [alt.Tooltip("user:N"), alt.Tooltip("tasks:Q", format=",.5~g"), alt.Tooltip("share:Q", format=".5~g")]
    base = (
        alt.Chart(alt.NamedData("users"))
        .transform_filter("datum.notion === notion")
        .encode(x=alt.X(f"{position}:Q", title="users, from the lowest", scale=alt.Scale(nice=False)), y=alt.Y(f"{field}:Q", title=title))
    )
    area = base.mark_area(interpolate="step", color="var(--accent)", opacity=0.35, line={"color": "var(--accent)"})
    points = base.mark_point(filled=True, size=110, color="var(--c5)", stroke="var(--ink)").encode(
        opacity=alt.condition("datum.user === picked", alt.value(1.0), alt.value(0.0)), tooltip=tooltip
    )
    layer: View = alt.layer(area, points).properties(height=220)
    return layer


def _use_bars(findings: Findings) -> View:
    instance = findings.instance
    apart = instance.n_users <= COLOURED
    base = (
        alt.Chart(alt.NamedData("use"))
        .transform_filter("datum.notion === notion")
        .encode(y=alt.Y("place:N", sort=None, title=None, axis=alt.Axis(labelLimit=190)))
    )
    empty = base.mark_bar(color="var(--empty)", height={"band": 0.8}).encode(x=alt.X("whole:Q", stack=None)).transform_calculate(whole="1")
    tooltip = [
        alt.Tooltip("server:N"),
        alt.Tooltip("resource:N"),
        *([alt.Tooltip("user:N")] if apart else []),
        alt.Tooltip("part:Q", format=".1%", title="in use"),
    ]
    colour = _colour(instance.users) if apart else _by_thing(findings)
    bars = base.mark_bar(height={"band": 0.8}, stroke="var(--ink)", strokeWidth=0.5).encode(
        x=alt.X("part:Q", title="in use", axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]), scale=alt.Scale(domain=[0, 1])),
        color=colour,
        opacity=_picked() if apart else alt.value(1.0),
        tooltip=tooltip,
        **({"order": alt.Order("order:Q")} if apart else {}),
    )
    layer: View = alt.layer(empty, bars).properties(height=20 * bars_of(findings))
    return layer


def _by_thing(findings: Findings) -> Any:
    things = ["time"] if findings.comparison.sharing == "tdm" else list(findings.instance.resources)
    colours = [f"var(--c{k % COLOURED})" for k in range(len(things))]
    return alt.Color("resource:N", legend=alt.Legend(orient="bottom", title=None, columns=3), scale=alt.Scale(domain=things, range=colours))


def _use_curves(findings: Findings) -> View:
    base = alt.Chart(alt.NamedData("curves")).transform_filter("datum.notion === notion")
    chart: View = base.mark_line(interpolate="step-before", point=alt.OverlayMarkDef(opacity=0, size=60)).encode(
        x=alt.X("servers:Q", title="servers, from the least used", scale=alt.Scale(nice=False)),
        y=alt.Y("part:Q", title="in use", axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1]), scale=alt.Scale(domain=[0, 1])),
        color=_by_thing(findings),
        strokeDash=alt.StrokeDash("resource:N", legend=None),
        tooltip=[alt.Tooltip("server:N"), alt.Tooltip("resource:N"), alt.Tooltip("part:Q", format=".1%", title="in use")],
    )
    return chart.properties(height=240)


def _frontier(found: Sequence[FrontierPoint]) -> View:
    axes = {
        "x": alt.X("total:Q", title="tasks of all users", scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(tickCount=6)),
        "y": alt.Y("smallest_share:Q", title="smallest weighted dominant share", axis=alt.Axis(format=".3~g")),
    }
    line = alt.Chart(alt.NamedData("vertices")).mark_line(color="var(--ink)", point=alt.OverlayMarkDef(color="var(--ink)", size=30))
    kinds = [kind for kind in ("notion", "alpha", "greedy", "approximate", "given") if any(point.kind == kind for point in found)]
    points = (
        alt.Chart(alt.NamedData("points"))
        .mark_point(filled=True, size=90, opacity=0.95, stroke="var(--ink)", strokeWidth=0.7)
        .encode(
            **axes,
            color=alt.Color(
                "kind:N",
                legend=alt.Legend(orient="bottom", title=None, columns=3),
                scale=alt.Scale(domain=kinds, range=[f"var(--c{k})" for k in range(len(kinds))]),
            ),
            shape=alt.Shape("kind:N", legend=alt.Legend(orient="bottom", title=None, columns=3), scale=alt.Scale(domain=kinds)),
            tooltip=[
                alt.Tooltip("name:N"),
                alt.Tooltip("kind:N"),
                alt.Tooltip("total:Q", title="tasks", format=",.5~g"),
                alt.Tooltip("smallest_share:Q", title="smallest share", format=".4~g"),
                alt.Tooltip("price:Q", title="price of fairness", format=".1%"),
            ],
        )
    )
    layer: View = alt.layer(line.encode(**axes, order=alt.Order("total:Q")), points).properties(height=320)
    return layer


def _regret(findings: Findings) -> View:
    measures = [measure for measure in _MEASURES if any(_regret_of(row, measure) is not None for row in findings.schedules)]
    chart: View = (
        alt.Chart(alt.NamedData("regrets"))
        .mark_bar(stroke="var(--ink)", strokeWidth=0.5)
        .encode(
            x=alt.X("regret:Q", title="relative shortfall", axis=alt.Axis(format="%", tickCount=5)),
            y=alt.Y("schedule:N", sort=None, title=None, axis=alt.Axis(labelLimit=190)),
            yOffset=alt.YOffset("measure:N", sort=measures),
            color=alt.Color(
                "measure:N",
                legend=alt.Legend(orient="bottom", title=None, columns=3),
                scale=alt.Scale(domain=measures, range=[_MEASURES[measure] for measure in measures]),
            ),
            tooltip=[
                alt.Tooltip("schedule:N"),
                alt.Tooltip("against:N"),
                alt.Tooltip("measure:N"),
                alt.Tooltip("regret:Q", format=".2%"),
            ],
        )
    )
    return chart.properties(height=(14 * len(measures) + 10) * sum(row.regret is not None for row in findings.schedules))


def _plain(chart: View, notion: str | None) -> dict[str, Any]:
    """Return the specification, as wide as its place and with the two parameters."""
    look = {
        "background": "transparent",
        "view": {"stroke": None},
        "axis": {
            "labelColor": "var(--ink)",
            "titleColor": "var(--ink)",
            "domainColor": "var(--line)",
            "tickColor": "var(--line)",
            "gridColor": "var(--grid)",
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelLimit": 130,
        },
        "legend": {"labelColor": "var(--ink)", "titleColor": "var(--ink)", "labelFontSize": 12, "symbolStrokeColor": "var(--ink)"},
        "font": "system-ui, sans-serif",
    }
    specification: dict[str, Any] = chart.to_dict(validate=True)
    specification["config"] = look
    specification["width"] = "container"
    specification["autosize"] = {"type": "fit-x", "contains": "padding"}
    specification["params"] = [{"name": "notion", "value": notion}, {"name": "picked", "value": None}]
    return specification
