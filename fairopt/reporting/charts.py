"""The charts of a report, as Vega-Lite: views of one set of data that share two parameters.

``notion`` is the notion that is shown, ``picked`` the highlighted user (null: nobody); the page sets both in every view. Colours are CSS
variables, so that the page decides about dark, light and print. Labels are data, never part of an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import altair as alt

from fairopt.analysis.frontiers import Frontier, FrontierPoint
from fairopt.plots.style import COLOURS
from fairopt.reporting.data import MEASURES, bars_of, few_bars, regret_of
from fairopt.reporting.findings import Findings
from fairopt.reporting.frontier_labels import FONT, HEIGHT, domains
from fairopt.reporting.tables.answers import bars_of_queues

__all__ = ["COLOURED", "charts"]

COLOURED = len(COLOURS)  # users up to which each has a colour
_MANY_USERS = 30  # users from which a bar each is too much
_OF_MEASURE = dict(zip(MEASURES, ("var(--c0)", "var(--c4)", "var(--c2)", "var(--c3)", "var(--c5)", "var(--c1)"), strict=True))

_SAYS = {
    "chart-tasks": "Tasks of each user",
    "chart-shares": "Weighted dominant share of each user",
    "chart-queues": "What each queue holds",
    "chart-use": "Part of each server in use",
    "chart-frontier": "Smallest share against tasks: the frontier, and what lies on or below it",
    "chart-regret": "Regret of each schedule",
}

View: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart


def charts(findings: Findings) -> dict[str, dict[str, Any]]:
    """Return the specification of every chart, by the name of its place in the page."""
    users = findings.instance.users
    found: dict[str, View] = {}
    if findings.solved:
        kind = _user_bars if len(users) <= _MANY_USERS else _user_curve
        colour = _colour(users)
        found["chart-tasks"] = kind("tasks", "tasks", colour, len(users))
        if findings.instance.queues:
            found["chart-queues"] = _queue_bars(findings)
        else:
            found["chart-shares"] = kind("share", "weighted dominant share", colour, len(users))
        found["chart-use"] = _use_bars(findings) if few_bars(findings) else _use_curves(findings)
    if findings.frontier.value is not None:
        found["chart-frontier"] = _frontier(findings.frontier.value, findings.points)
    if any(row.regret is not None for row in findings.schedules):
        found["chart-regret"] = _regret(findings)
    first = findings.solved[0].name if findings.solved else None
    return {name: _plain(chart, first, _SAYS[name]) for name, chart in found.items()}


def _picked(dim: float = 0.2) -> Any:
    """Return full opacity for the highlighted user, or for all if nobody is highlighted."""
    return alt.condition("picked === null || datum.user === picked", alt.value(1.0), alt.value(dim))


def _colour(users: tuple[str, ...]) -> Any:
    """Return a colour for each of up to eight users; one colour for all if there are more."""
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


def _queue_bars(findings: Findings) -> View:
    """Draw what each queue holds, a triangle at its guarantee, a line at its limit, and pale what is missing of the guarantee."""
    allocation = findings.solved[0].allocation
    assert allocation is not None
    resource, queues = bars_of_queues(allocation)
    title = "part of a resource of the cluster" if resource is None else f"part of the {resource} of the cluster"
    tooltip = [alt.Tooltip("queue:N"), *(alt.Tooltip(f"{name}:Q", format=".1%") for name in ("part", "guarantee", "limit"))]
    base = (
        alt.Chart(alt.NamedData("queues"))
        .transform_filter("datum.notion === notion")
        .encode(y=alt.Y("place:N", sort=None, title=None, axis=alt.Axis(labelLimit=190)), tooltip=tooltip)
    )
    drawn = [found.allocation for found in findings.solved if found.allocation is not None]
    end = max(held.largest for each in drawn for _, held, _ in bars_of_queues(each)[1])
    across = alt.X("part:Q", title=title, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1.02 * end or 1]))
    bars = base.mark_bar(height={"band": 0.7}, color="var(--c4)", stroke="var(--ink)", strokeWidth=0.8).encode(x=across)
    lack = base.transform_filter("datum.upto > datum.part").mark_bar(height={"band": 0.7}, color="var(--paper)", stroke="var(--bad)")
    limits = base.transform_filter("datum.limit !== null").mark_tick(color="var(--ink)", thickness=3, height={"band": 0.95})
    marks = base.transform_filter("datum.guarantee !== null").mark_point(
        filled=True, size=60, shape="triangle-down", color="var(--ink)", opacity=1, stroke="var(--paper)"
    )
    layers = bars, lack.encode(x="part:Q", x2="upto:Q"), limits.encode(x="limit:Q"), marks.encode(x="guarantee:Q")
    layer: View = alt.layer(*layers).properties(height=26 * len(queues))
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
    instance = findings.instance
    things = ["time", *instance.shared] if findings.comparison.sharing == "tdm" else list(instance.resources)
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


def _frontier(trade: Frontier, found: Sequence[FrontierPoint]) -> View:
    """Draw the frontier and the points, each with its name: the shape is the kind, the colour the notion or the placement."""
    drawn = [point for point in found if point.allocation is not None]
    across, up = domains(trade, drawn)
    axes = {
        "x": alt.X("total:Q", title="tasks of all users", scale=alt.Scale(domain=across, nice=False), axis=alt.Axis(tickCount=6)),
        "y": alt.Y(
            "smallest_share:Q",
            title="smallest weighted dominant share",
            scale=alt.Scale(domain=up, nice=False),
            axis=alt.Axis(format=".3~g"),
        ),
    }
    line = alt.Chart(alt.NamedData("vertices")).mark_line(color="var(--ink)", point=alt.OverlayMarkDef(color="var(--ink)", size=30))
    kinds = [kind for kind in ("notion", "alpha", "greedy", "approximate", "given") if any(point.kind == kind for point in found)]
    base = alt.Chart(alt.NamedData("points"))
    points = base.mark_point(filled=True, opacity=0.95, stroke="var(--ink)", strokeWidth=0.7).encode(
        **axes,
        color=alt.Color("colour:N", scale=None),
        size=alt.condition("datum.kind === 'alpha'", alt.value(130), alt.value(60)),  # both show where points coincide
        shape=alt.Shape(
            "kind:N",
            legend=alt.Legend(orient="bottom", title=None, columns=3, symbolFillColor="var(--soft)"),
            scale=alt.Scale(domain=kinds),
        ),
        tooltip=[
            alt.Tooltip("name:N"),
            alt.Tooltip("kind:N"),
            alt.Tooltip("total:Q", title="tasks", format=",.5~g"),
            alt.Tooltip("smallest_share:Q", title="smallest share", format=".4~g"),
            alt.Tooltip("price:Q", title="price of fairness", format=".1%"),
        ],
    )
    names = base.transform_filter("datum.label !== ''").mark_text(
        fill="var(--ink)", fontSize=FONT, lineBreak="\n", baseline="middle", dx=alt.expr("datum.dx"), dy=alt.expr("datum.dy")
    )
    texts = names.encode(**axes, text=alt.Text("label:N"))
    layer: View = alt.layer(line.encode(**axes, order=alt.Order("total:Q")), points, texts).properties(height=HEIGHT)
    return layer


def _regret(findings: Findings) -> View:
    measures = [measure for measure in MEASURES if any(regret_of(row, measure) is not None for row in findings.schedules)]
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
                scale=alt.Scale(domain=measures, range=[_OF_MEASURE[measure] for measure in measures]),
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


def _plain(chart: View, notion: str | None, says: str) -> dict[str, Any]:
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
    specification["description"] = f"{says}; the table below holds the same numbers"
    specification["width"] = "container"
    specification["autosize"] = {"type": "fit-x", "contains": "padding"}
    specification["params"] = [{"name": "notion", "value": notion}, {"name": "picked", "value": None}]
    return specification
