"""A picture of a comparison: on the left, what each user gets; on the right, how much of the cluster is in use; by allocation.

Up to 12 users are groups of bars, one bar for each allocation. More users, or more than 80 bars, have a row each, with a mark for each
allocation. Of more than 40 users, only those on whom the allocations differ most have a row, and a curve shows the sorted weighted dominant
shares of all. Queues are always groups of bars; of more than 30 queues, only those in the root, at most the 30 that hold most. On the
right, every resource has a bar for each allocation: the part of the cluster's capacity in use, stacked by server row if there are at most
10 rows. A notion has the same colour in every picture; exact allocations are solid, and hatches mark whole tasks, greedy schedules and
given allocations. Server rows go from dark to light.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt import wording
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.plots.colours import edge, looks
from fairopt.plots.labels import tree_ticks
from fairopt.plots.share_dots import MOST, draw_share_dots, inches, marks_of, row_name
from fairopt.plots.sheets import is_narrow, sheet
from fairopt.plots.style import HATCH_OF_KIND, LOG_FROM, percent_axis, room_beside, short_label, short_labels, size_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.analysis.comparison import Comparison, Row

__all__ = ["plot_comparison"]

_GROUPS = 12  # more users than this have marks
_BARS = 80  # more bars of users than this are marks
_BAR = 0.17  # inches of a bar on the right
_QUEUES = 30
_MARKS = 6  # of a curve
_LAYERS = 10  # more rows of servers than this are one bar
_DARK_TO_LIGHT = ("#08306B", "#2171B5", "#6BAED6", "#C6DBEF")


def plot_comparison(
    comparison: Comparison,
    by: Literal["user", "queue"] = "user",
    *,
    ax: Sequence[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw tasks of each user (shares, of many) and use of the cluster, for every row that has an allocation.

    With ``by="queue"``: the dominant share of what each queue holds, in place of tasks.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    Unsupported
        There are no queues, or no such picture.

    >>> import fairopt as fo
    >>> figure = plot_comparison(fo.compare(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), schedules=["drfh:first-fit"]))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Tasks of each user', 'Use of the cluster']
    """
    instance = comparison.instance
    rows = [row for row in comparison.rows if row.allocation is not None]
    if by not in ("user", "queue"):
        raise Unsupported(f'there is no picture by "{by}"; use by="user" or by="queue"')
    if by == "queue" and not instance.queues:
        raise Unsupported('the instance has no queues to draw; use by="user"')
    queues = _queues(rows) if by == "queue" else []
    groups = len(queues) if by == "queue" else instance.n_users if _are_bars(instance.n_users, len(rows)) else 0
    layers, things = _layers(comparison, rows)
    bars = max(groups, len(things)) * (len(rows) + 1)
    dots = min(instance.n_users, MOST) if by == "user" and not groups else 0
    legend = 0.2 * (-(-(len(rows) + 2 * bool(dots)) // 2) + 1)
    height = min(max(1.6 + 0.17 * bars, 3.4, 1.2 + inches(dots)), 16.0)
    panels = ["users", "use of the cluster", *(["all users"] if dots and instance.n_users > MOST else [])]
    number = len(things) * (len(rows) + 1)
    used = 0.8 + _BAR * number  # inches of the panel on the right
    below = max(height - used, 0.7 * used)
    split = len(panels) > 2 or height > 1.3 * used
    options: dict[str, Any] = {"width_ratios": (1.15, 1)}
    down = is_narrow(figsize) and ax is None
    if down:  # a column of a paper
        heights = (max(groups * (len(rows) + 1), dots, 1), 1.4 * number, *([12] if len(panels) > 2 else []))
        options = {"mosaic": [[panel] for panel in panels], "height_ratios": heights}
    elif split:  # bars on the right are no thicker than they need to be
        rest = panels[2] if len(panels) > 2 else "."
        options |= {"mosaic": [["users", "use of the cluster"], ["users", rest]], "height_ratios": (used, below)}
    page = sheet(ax, figsize, (11.0, height + legend), panels, **options)
    left, right = page.axes[:2]
    if by == "queue":
        _queue_bars(left, rows, queues)
    elif groups:
        _user_bars(left, comparison, rows)
    elif rows:
        draw_share_dots(left, comparison, rows)
    if len(panels) > 2:
        _user_curves(page.axes[2], comparison, rows)
    _use_bars(right, comparison, rows, layers, things)
    right.set_ylim(number - 0.4, -0.6)
    for axes in page.axes:
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = left.get_legend_handles_labels()
    if handles and down:
        page.legend_above(left, 2, handles, labels)
    elif handles:
        page.legend(handles, labels, loc="outside lower left", at=0, ncols=2, fontsize=9)
    handles, labels = right.get_legend_handles_labels()
    if handles:
        page.legend(handles, labels, loc="outside lower right", at=1, ncols=3, fontsize=9, title="server rows")
    page.headline(f"{wording.plural(len(rows), 'allocation')} of {size_of(instance, comparison.sharing)}", title)
    return page.figure


def _layers(comparison: Comparison, rows: list[Row]) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the part of the cluster's capacity in use, (rows, server rows or 1, things), and the things."""
    instance = comparison.instance
    if comparison.sharing == "tdm":
        time = [row.allocation.time_utilization * instance.counts for row in rows if row.allocation is not None]
        parts = np.array(time).reshape(len(rows), -1, 1) / max(float(instance.counts.sum()), 1.0)
        things: tuple[str, ...] = ("time",)
    else:
        usage = np.array([instance.taken_on_rows(row.allocation.tasks) for row in rows if row.allocation is not None])
        capacity = instance.total_capacity
        parts = usage.reshape(len(rows), instance.n_servers, instance.n_resources)
        parts = np.divide(parts, capacity, out=np.zeros_like(parts), where=np.broadcast_to(capacity > 0, parts.shape))
        things = instance.resources
    return (parts if instance.n_servers <= _LAYERS else parts.sum(axis=1, keepdims=True)), things


def _are_bars(users: int, rows: int) -> bool:
    """Return whether users are groups of bars."""
    return users <= _GROUPS and users * rows <= _BARS


def _queues(rows: list[Row]) -> list[int]:
    """Return which queues are drawn, by their position in `Allocation.queue_holdings`."""
    holdings = [row.allocation.queue_holdings() for row in rows if row.allocation is not None]
    if not holdings:
        return []
    chosen = [j for j, each in enumerate(holdings[0]) if each.depth]
    if len(chosen) > _QUEUES:
        chosen = [j for j in chosen if holdings[0][j].depth == 1]
    most = sorted(chosen, key=lambda j: -max(own[j].dominant_share for own in holdings))[:_QUEUES]
    return [j for j in chosen if j in most]


def _queue_bars(axes: Axes, rows: list[Row], queues: list[int]) -> None:
    holdings = [row.allocation.queue_holdings() for row in rows if row.allocation is not None]
    drawn = [holdings[0][j] for j in queues] if holdings else []
    names = short_labels([each.name for each in drawn])
    _bars(axes, rows, names, [np.array([own[j].dominant_share for j in queues]) for own in holdings], parts=True)
    tree_ticks(axes, np.array(axes.get_yticks()), names, [each.depth for each in drawn])
    axes.set_xlabel("dominant share of what it holds")
    axes.set_title("Share of each queue", loc="left")


def _user_bars(axes: Axes, comparison: Comparison, rows: list[Row]) -> None:
    held = [row.allocation.work for row in rows if row.allocation is not None]
    what = "work" if comparison.of_work else "tasks"
    _bars(axes, rows, short_labels(comparison.instance.users), held)
    axes.set_xlabel(what)
    axes.set_title(f"{what.capitalize()} of each user", loc="left")


def _bars(axes: Axes, rows: list[Row], names: list[str], values: list[FloatArray], *, parts: bool = False) -> None:
    """Draw a group of bars for each name, one for each row; ``parts`` are of the cluster."""
    y = np.arange(len(names)) * (len(rows) + 1.0)
    largest = 1e-12
    colours = looks(row.name for row in rows)
    for j, (row, own) in enumerate(zip(rows, values, strict=True)):
        look: dict[str, Any] = {
            "color": colours[row.name].colour,
            "hatch": HATCH_OF_KIND[row.kind],
            "edgecolor": edge(colours[row.name].colour),
            "linewidth": 0.3,
        }
        bars = axes.barh(y + j, own, height=0.85, label=row_name(row), **look)
        written = [wording.percent(value) if parts else wording.figure(value, 4) for value in own]
        axes.bar_label(bars, written, padding=3, fontsize=7)
        largest = max(largest, float(own.max(initial=0.0)))
    axes.set_yticks(y + (len(rows) - 1) / 2, names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) * (len(rows) + 1.0) - 1.2, -0.8)
    axes.set_xlim(0, largest * room_beside(axes))
    if parts:
        percent_axis(axes.xaxis)


def _user_curves(axes: Axes, comparison: Comparison, rows: list[Row]) -> None:
    """Draw the sorted weighted dominant shares of each allocation; the order of the users differs from curve to curve."""
    number = comparison.instance.n_users
    positive: list[float] = []
    marks = marks_of(rows)
    for row, (colour, style) in zip(rows, looks(row.name for row in rows).values(), strict=True):
        assert row.allocation is not None
        ranked = np.sort(row.dominant_shares)
        positive += ranked[ranked > 0].tolist()
        axes.stairs(
            ranked,
            np.arange(number + 1),
            baseline=None,
            color=colour,
            linestyle=style,
            linewidth=1.6,
            label=row_name(row),
        )
        marked = np.unique(np.linspace(0, number - 1, 2 * _MARKS + 1).round()[1::2].astype(int))  # in grey the marks tell the curves apart
        face = colour if row.kind == "exact" else "white"
        look: dict[str, Any] = {"color": colour, "markerfacecolor": face, "linestyle": "none", "markersize": 4.6, "clip_on": True}
        axes.plot(marked + 0.5, ranked[marked], marker=marks[row.name], **look)
    axes.set_xlim(0, number)
    if positive and max(positive) > LOG_FROM * min(positive):
        axes.set_yscale("log")
        axes.set_ylim(bottom=min(positive) / 2)  # shares of 0 are below the axis
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("users, from the lowest")
    axes.set_ylabel("weighted dominant share")
    axes.set_title("Shares of all users, sorted", loc="left")


def _use_bars(axes: Axes, comparison: Comparison, rows: list[Row], layers: FloatArray, things: tuple[str, ...]) -> None:
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    servers = short_labels(comparison.instance.servers)
    several = layers.shape[1] > 1
    ramp = LinearSegmentedColormap.from_list("servers", _DARK_TO_LIGHT)
    names = [row_name(row) for row in rows]
    ticks: list[str] = []
    for r, thing in enumerate(things):
        y = np.arange(len(rows)) + r * (len(rows) + 1.0) + 1
        axes.barh(y, 1.0, height=0.85, color="#EEEEEE")
        start = np.zeros(len(rows))
        for i in range(layers.shape[1]):
            colour = to_hex(ramp(i / (layers.shape[1] - 1))) if several else _DARK_TO_LIGHT[1]
            label = servers[i] if several and r == 0 else None
            axes.barh(y, layers[:, i, r], left=start, height=0.85, color=colour, edgecolor=edge(colour), linewidth=0.5, label=label)
            start += layers[:, i, r]
        for position, part in zip(y, start, strict=True):
            axes.annotate(
                wording.percent(part, 1), (max(1.0, part), position), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
            )
        ticks += [short_label(thing), *names]
    axes.set_yticks(np.arange(len(ticks)), ticks, fontsize=8)
    for header in range(0, len(ticks), len(rows) + 1):
        axes.get_yticklabels()[header].set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, max(1.13, 1.13 * float(layers.sum(axis=1).max(initial=1.0))))
    percent_axis(axes.xaxis)
    axes.set_xlabel("part of the whole cluster in use")
    axes.set_title("Use of the cluster", loc="left")
