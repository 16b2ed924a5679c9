"""Use of each row of servers: a bar for each resource, stacked by user; for many servers, a curve for each resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt import wording
from fairopt.instance import FloatArray
from fairopt.plots.colours import edge
from fairopt.plots.sheets import Sheet, sheet
from fairopt.plots.style import COLOURS, HATCHES, LINES, STYLES, headline, percent_axis, short_label, short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.allocation import Allocation

__all__ = ["draw_servers", "layers_of", "layers_of_cluster", "plot_utilization", "rows_of_servers"]

_ROWS = 40  # more bars of servers than this are curves
_CURVE_HEIGHT = 12  # height of a curve, in bars
_LIMITS = 4  # named limits that are drawn, the fullest


def plot_utilization(
    allocation: Allocation, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw the part of each resource (under time division: of the time) that is in use on each row of servers.

    Behind them are resources of the whole cluster and named limits, the four fullest.
    Up to 40 bars are stacked by user (up to 8 users), else coloured by resource; more are curves over the servers, from the least used.

    Parameters
    ----------
    allocation : Allocation
    ax : matplotlib Axes, optional
        Draw into these axes.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> axes, = plot_utilization(fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"]), "drf")).axes
    >>> [text.get_text() for text in axes.texts]
    ['100.0 %', '77.8 %']
    """
    rows = rows_of_servers(allocation)
    page = sheet(ax, figsize, (7.0, max(1.4 + 0.25 * rows, 2.4)))
    (axes,) = page.axes
    if draw_servers(page, axes, allocation, legend=True):
        axes.set_ylim(rows - 0.5, -0.6)
    page.headline(headline(allocation), title)
    return page.figure


def rows_of_servers(allocation: Allocation) -> int:
    """Return the height of the picture of the servers, in bars."""
    bars = _bars(allocation)
    return bars if bars <= _ROWS else _CURVE_HEIGHT


def draw_servers(page: Sheet, axes: Axes, allocation: Allocation, *, legend: bool = False) -> bool:
    """Draw the servers as bars or as curves, with a legend of the users or without; return whether they are bars."""
    things, layers = layers_of(allocation)
    few = _bars(allocation) <= _ROWS
    if few:
        _server_bars(page, axes, allocation, things, layers, legend)
        axes.tick_params(axis="y", length=0)
    else:
        _server_curves(page, axes, allocation, things, layers.sum(axis=0))
    axes.spines[["top", "right"]].set_visible(False)
    return few


def _bars(allocation: Allocation) -> int:
    """Return the number of bars, plus one for the name of each server with several bars."""
    instance, shared, limits = allocation.instance, len(allocation.instance.shared), len(layers_of_limits(allocation)[0])
    things = 1 if allocation.sharing == "tdm" else instance.n_server_resources
    return instance.n_servers * (things + (things > 1)) + shared + (shared > 0) + limits + (limits > 0)


def layers_of(allocation: Allocation) -> tuple[tuple[str, ...], FloatArray]:
    """Return what servers share out (resources or time) and the part in use, (users, servers, things), or (1, servers, things) in all."""
    instance = allocation.instance
    apart = instance.n_users <= len(COLOURS)
    if allocation.sharing == "tdm":
        rates = instance.rates
        time = np.divide(allocation.tasks, rates, out=np.zeros_like(rates), where=(rates > 0) & np.isfinite(rates))
        return ("time",), (time if apart else time.sum(axis=0, keepdims=True))[:, :, None]
    if not apart:
        return instance.server_resources, allocation.utilization[None]
    usage = np.stack([instance.usage(np.where(own, allocation.tasks, 0)) for own in np.eye(instance.n_users, dtype=bool)[:, :, None]])
    return instance.server_resources, np.divide(usage, instance.row_capacity, out=np.zeros_like(usage), where=instance.row_capacity > 0)


def layers_of_cluster(allocation: Allocation) -> FloatArray:
    """Return the part in use of each resource of the whole cluster, (users, shared), or (1, shared) in all."""
    instance = allocation.instance
    if instance.n_users > len(COLOURS):
        return allocation.shared_utilization[None]
    usage = instance.held_of(allocation.tasks)[:, instance.n_server_resources :]
    return np.divide(usage, instance.shared_capacity, out=np.zeros_like(usage), where=instance.shared_capacity > 0)


def layers_of_limits(allocation: Allocation) -> tuple[tuple[str, ...], FloatArray]:
    """Return the fullest rows of named limits, and the part in use of each, (users, rows), or (1, rows) in all."""
    instance, names, parts = allocation.instance, list[str](), list[FloatArray]()
    for selection in instance.selections:
        per_task = selection.per_task(instance.kinds)
        counted = allocation.tasks * (per_task if per_task.ndim > 1 else per_task[:, None])
        for row in selection.rows():
            if row.bound > 0:
                names.append(row.name)
                parts.append(np.where(row.users, counted[:, row.servers].sum(axis=1), 0.0) / row.bound)
    fullest = sorted(sorted(range(len(parts)), key=lambda k: -parts[k].sum())[:_LIMITS])
    own = np.array([parts[k] for k in fullest]).reshape(len(fullest), instance.n_users).T
    layers = own if instance.n_users <= len(COLOURS) else own.sum(axis=0, keepdims=True)
    return tuple(names[k] for k in fullest), layers


def _server_bars(page: Sheet, axes: Axes, allocation: Allocation, things: tuple[str, ...], layers: FloatArray, legend: bool) -> None:
    """Draw a bar for each server and thing, stacked by user or coloured by thing; a server's name stands above its bars."""
    instance = allocation.instance
    ticks: list[str] = []
    positions: list[int] = []  # of the bars, server by server
    headers: list[int] = []
    for name, count in zip(short_labels(instance.servers), instance.counts, strict=True):
        title = name if count == 1 else f"{name}  x {wording.figure(count, 6)}"
        if len(things) > 1:
            headers.append(len(ticks))
            ticks.append(title)
        positions.extend(range(len(ticks), len(ticks) + len(things)))
        ticks.extend(short_labels(things) if len(things) > 1 else [title])
    if instance.shared:
        headers.append(len(ticks))
        ticks.append("the whole cluster")
        positions.extend(range(len(ticks), len(ticks) + len(instance.shared)))
        ticks.extend(short_labels(tuple(instance.shared)))
    limits, of_limits = layers_of_limits(allocation)
    if limits:
        headers.append(len(ticks))
        ticks.append("limits")
        positions.extend(range(len(ticks), len(ticks) + len(limits)))
        ticks.extend(short_labels(limits))
    y = np.array(positions)
    exists = np.ones(layers[0].size, bool) if allocation.sharing == "tdm" else (instance.row_capacity > 0).ravel()
    exists = np.concatenate([exists, instance.shared_capacity > 0, np.ones(len(limits), bool)])
    parts = np.column_stack([layers.reshape(len(layers), -1), layers_of_cluster(allocation), of_limits])
    axes.barh(y[exists], 1.0, height=0.8, color="#EEEEEE")
    users = short_labels(instance.users)
    start = np.zeros(y.size)
    for n, layer in enumerate(parts):
        if len(layers) > 1:
            axes.barh(y, layer, left=start, height=0.8, color=COLOURS[n], hatch=HATCHES[n], edgecolor=edge(COLOURS[n]), label=users[n])
        else:
            colours = [COLOURS[r % len(COLOURS)] for _ in instance.servers for r in range(len(things))]
            colours += [COLOURS[(len(things) + r) % len(COLOURS)] for r in range(len(instance.shared) + len(limits))]
            axes.barh(y, layer, height=0.8, color=colours, edgecolor=[edge(colour) for colour in colours])
        start += layer
    for position, part, there in zip(y, start, exists, strict=True):
        note = wording.percent(part, 1) if there else "none here"
        axes.annotate(note, (1.0 if there else 0.0, position), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(np.arange(len(ticks)), ticks)
    for header in headers:
        axes.get_yticklabels()[header].set_fontweight("bold")
    axes.set_xlim(0, 1.13)
    percent_axis(axes.xaxis)
    axes.set_xlabel(_in_use(allocation) + (", by the users on the left" if len(layers) > 1 and not legend else ""))
    if legend and len(layers) > 1:
        page.legend(loc="outside lower center", ncols=4)
    axes.set_title(_title(allocation), loc="left")


def _server_curves(page: Sheet, axes: Axes, allocation: Allocation, things: tuple[str, ...], used: FloatArray) -> None:
    """Draw a curve for each resource: the sorted utilization of all servers that have it."""
    from matplotlib.ticker import MaxNLocator

    instance = allocation.instance
    for r, thing in enumerate(things):
        exists = np.ones(instance.n_servers, bool) if allocation.sharing == "tdm" else instance.row_capacity[:, r] > 0
        order = np.flatnonzero(exists)[np.argsort(used[exists, r])]
        edges = np.concatenate([[0.0], np.cumsum(instance.counts[order])])
        style = STYLES[r % 4]
        axes.stairs(
            used[order, r], edges, baseline=None, color=LINES[r % len(LINES)], linestyle=style, linewidth=1.8, label=short_label(thing)
        )
    for r, (name, part) in enumerate(zip(short_labels(tuple(instance.shared)), allocation.shared_utilization, strict=True), len(things)):
        axes.axhline(part, color=LINES[r % len(LINES)], linestyle=STYLES[r % 4], linewidth=1.8, label=f"{name} of the cluster")
    limits, of_limits = layers_of_limits(allocation)
    for r, (name, part) in enumerate(zip(short_labels(limits), of_limits.sum(axis=0), strict=True), len(things) + len(instance.shared)):
        axes.axhline(part, color=LINES[r % len(LINES)], linestyle=STYLES[r % 4], linewidth=1.8, label=f"limit {name}")
    axes.set_ylim(0, 1.05)
    axes.set_xlim(left=0)
    percent_axis(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("servers, from the least used")
    axes.set_ylabel(_in_use(allocation))
    page.legend(loc="outside lower right", ncols=4)
    axes.set_title(_title(allocation), loc="left")


def _title(allocation: Allocation) -> str:
    whole = "Use of each server and of the cluster" if allocation.instance.shared else "Use of each server"
    return f"{whole.replace(' and', ',')} and of limits" if layers_of_limits(allocation)[0] else whole


def _in_use(allocation: Allocation) -> str:
    return "time in use" if allocation.sharing == "tdm" else "in use"
