"""A picture of efficiency against fairness: the exact Pareto frontier, what lies beyond it, and the points on or below.

Alpha-fair allocations and members of a family are joined by lines, in the order in which they were asked for; notions and schedules are marks.
Points that would lie on top of each other are one mark with all their names. Kinds differ in shape as well as in colour.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray
from fairopt.plots.labels import label_points
from fairopt.plots.style import COLOURS, GREY, short_label
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.frontier import Frontier, FrontierPoint

__all__ = ["plot_frontier"]

_LOOK = {  # kind: mark, colour, line, what it is called
    "notion": ("o", COLOURS[0], "none", "notions"),
    "alpha": ("D", COLOURS[5], "--", "alpha-fair"),
    "fds": ("^", COLOURS[2], "-.", "FDS"),
    "gfj": ("v", COLOURS[3], ":", "GFJ"),
    "greedy": ("X", COLOURS[1], "none", "schedules (greedy)"),
}
_SAME = 0.012  # parts of the width and height within which points are one mark
_WRAP = 34  # characters of a line of a label


def plot_frontier(frontier: Frontier) -> Figure:
    """Draw total against smallest share: the frontier, the side that cannot be reached in grey, and every point.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> figure = plot_frontier(fo.frontier(fo.Instance([[9, 18]], [[1, 4], [6, 1]]), notions=["drf"]))
    >>> figure.axes[0].get_xlabel()
    'tasks in all'
    """
    from matplotlib.figure import Figure

    points = [point for point in frontier.points if point.allocation is not None]
    figure = Figure(figsize=(9.0, 6.0), layout="constrained")
    axes = figure.subplots()
    places = np.array([(point.total, point.smallest_share) for point in points]).reshape(-1, 2)
    left, right, top = _limits(frontier, places)
    axes.set_xlim(left, right)
    axes.set_ylim(-0.04 * top, top)
    outline = np.vstack([(min(left, 0.0), frontier.largest_share), frontier.vertices, (frontier.largest_total, 0.0)])
    beyond = np.vstack([outline, (frontier.largest_total, -top), (2 * right, -top), (2 * right, 2 * top), (min(left, 0.0), 2 * top)])
    axes.fill(*beyond.T, facecolor="#EEEEEE", edgecolor="#D5D5D5", hatch="//", linewidth=0, zorder=0)
    axes.plot(*outline.T, color=GREY, linewidth=0.8, linestyle=(0, (2, 3)), zorder=1)  # on its ends one goal is lost for nothing
    axes.plot(*frontier.vertices.T, color="black", linewidth=1.8, marker=".", markersize=7, label="exact frontier", zorder=3)
    lines = [outline]
    for kind, (mark, colour, style, name) in _LOOK.items():
        own = np.array([point.kind == kind for point in points], bool)
        if own.any():
            if style != "none" and own.sum() > 1:
                lines.append(places[own])
            axes.plot(
                *places[own].T,
                color=colour,
                marker=mark,
                markersize=7,
                markeredgecolor="white",
                markeredgewidth=0.6,
                linestyle=style,
                linewidth=1.1,
                label=name + (f" in {frontier.of}" if kind == "alpha" else ""),
                zorder=5 if style == "none" else 4,
            )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("tasks in all")
    axes.set_ylabel("smallest weighted dominant share")
    axes.xaxis.set_major_formatter("{x:,.6g}")
    instance = frontier.instance
    whole = f"{plural(instance.n_users, 'user')} on {plural(instance.counts.sum(), 'server')}, sharing {frontier.sharing}"
    axes.set_title(f"Efficiency against fairness: {whole}", loc="left", fontweight="bold")
    _price_axes(axes, frontier)
    figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    figure.draw_without_rendering()  # settles the layout
    figure.set_layout_engine("none")
    groups = _groups(places, axes)
    label_points(
        axes,
        np.array([places[group].mean(axis=0) for group in groups]).reshape(-1, 2),
        [_label([points[j] for j in group]) for group in groups],
        lines,
    )
    return figure


def _limits(frontier: Frontier, places: FloatArray) -> tuple[float, float, float]:
    """Return where the axes begin and end: left, right, top."""
    low = float(min([*places[:, 0], frontier.vertices[0, 0]]))
    width = max(frontier.largest_total - low, 0.05 * frontier.largest_total)
    highest = float(max([*places[:, 1], frontier.largest_share]))
    return max(low - 0.12 * width, -0.02 * width), frontier.largest_total + 0.14 * width, 1.16 * highest


def _price_axes(axes: Axes, frontier: Frontier) -> None:
    """Mark the prices at the top and on the right."""
    from matplotlib.ticker import PercentFormatter

    total, share = frontier.largest_total, frontier.largest_share
    across = axes.secondary_xaxis("top", functions=(lambda value: 1 - value / total, lambda price: (1 - price) * total))
    up = axes.secondary_yaxis("right", functions=(lambda value: 1 - value / share, lambda price: (1 - price) * share))
    across.set_xlabel("price of fairness")
    up.set_ylabel("price of efficiency")
    for axis in (across.xaxis, up.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        axis.set_ticks([mark for mark in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)])
    for side in (across, up):
        side.tick_params(colors=GREY, labelsize=8)
        side.spines[:].set_visible(False)


def _groups(places: FloatArray, axes: Axes) -> list[list[int]]:
    """Put points that would cover each other together, those with the most names first."""
    size = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    groups: list[list[int]] = []
    for j, place in enumerate(places):
        near = [group for group in groups if (np.abs(place - places[group[0]]) <= _SAME * size).all()]
        if near:
            near[0].append(j)
        else:
            groups.append([j])
    return sorted(groups, key=len, reverse=True)


def _label(points: list[FrontierPoint]) -> str:
    """Return the names of the points of one mark, the alpha-fair ones as one list."""
    alphas = [point.name.removeprefix("alpha=").replace("inf", "∞") for point in points if point.kind == "alpha"]
    names = [_short(point) for point in points if point.kind != "alpha"]
    if alphas:
        names.append(f"α = {', '.join(alphas)}")
    return "\n".join(textwrap.wrap(", ".join(names), _WRAP, break_on_hyphens=False))


def _short(point: FrontierPoint) -> str:
    if point.kind in ("fds", "gfj"):  # the shape says which
        return short_label(point.name.partition(":")[2].replace("beta=", "β ").replace(":lam=", ", λ "))
    return short_label(point.name, 30)
