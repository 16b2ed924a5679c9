"""A picture of efficiency against fairness: the exact Pareto frontier, what lies beyond it, and the points on or below.

Alpha-fair allocations and members of a family are joined by lines, in the order in which they were asked for; notions and schedules are
marks. Points that would lie on top of each other share one label. Kinds differ in shape; each notion and schedule has its own
colour.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt import wording
from fairopt.instance import FloatArray
from fairopt.plots.colours import NOTIONS, looks
from fairopt.plots.labels import label_points, listed, together
from fairopt.plots.sheets import is_narrow, sheet
from fairopt.plots.style import COLOURS, GREY, short_label, size_of
from fairopt.studies.titles import entry_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.analysis.frontiers import Frontier, FrontierPoint

__all__ = ["label_of", "limits_of", "plot_frontier"]

_LOOK = {  # kind: mark, colour, line, what it is called
    "notion": ("o", COLOURS[0], "none", "notions"),
    "alpha": ("D", NOTIONS["proportional"], "--", "alpha-fair"),
    "fds": ("^", NOTIONS["fds"], "-.", "FDS ($\\beta$, $\\lambda$)"),
    "gfj": ("v", NOTIONS["gfj"], ":", "GFJ ($\\beta$, $\\lambda$)"),
    "greedy": ("X", COLOURS[1], "none", "schedules (greedy)"),
    "approximate": ("P", COLOURS[3], "none", "baselines (approximate)"),
    "given": ("s", COLOURS[7], "none", "your own schedulers"),
}
_FAMILIES = ("fds", "gfj")
_WRAP = 34  # characters of a line of a label


def plot_frontier(
    frontier: Frontier, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw total against smallest share: the frontier, the side that cannot be reached in grey, and every point.

    Parameters
    ----------
    frontier : Frontier
    ax : matplotlib Axes, optional
        Draw into these axes. Labels find their places for the size that the axes have then: draw last.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> figure = plot_frontier(fo.frontier(fo.Instance([[9, 18]], [[1, 4], [6, 1]]), notions=["drf"]))
    >>> figure.axes[0].get_xlabel()
    'tasks in all'
    """
    points = [point for point in frontier.points if point.allocation is not None]
    page, narrow = sheet(ax, figsize, (9.0, 6.0)), is_narrow(figsize)
    (axes,) = page.axes
    size = 0.75 if narrow else 1.0
    places = np.array([(point.total, point.smallest_share) for point in points]).reshape(-1, 2)
    left, right, top = limits_of(frontier, places)
    axes.set_xlim(left, right)
    axes.set_ylim(-0.04 * top, top)
    outline = np.vstack([(min(left, 0.0), frontier.largest_share), frontier.vertices, (frontier.largest_total, 0.0)])
    beyond = np.vstack([outline, (frontier.largest_total, -top), (2 * right, -top), (2 * right, 2 * top), (min(left, 0.0), 2 * top)])
    axes.fill(*beyond.T, facecolor="#E4E4E4", linewidth=0, zorder=0)
    axes.plot(
        *outline.T, color=GREY, linewidth=0.8, linestyle=(0, (2, 3)), zorder=1
    )  # at its ends one goal worsens and the other gains nothing
    ring = {
        "linestyle": "none",
        "marker": "o",
        "markersize": 13,
        "markerfacecolor": "none",
        "markeredgewidth": 1.8,
    }  # of one vertex, seen around any mark
    vertex: dict[str, Any] = {"linewidth": 1.8, "marker": ".", "markersize": 7} if len(frontier.vertices) > 1 else ring
    axes.plot(*frontier.vertices.T, color="black", label="exact frontier", zorder=3, **vertex)
    lines = [outline]
    for kind, (mark, colour, style, name) in _LOOK.items():
        own = np.array([point.kind == kind for point in points], bool)
        if own.any():
            if style != "none" and own.sum() > 1:
                lines.append(places[own])
            axes.plot(
                *places[own].T,
                color=colour if style != "none" else GREY,  # of the legend: each notion and schedule has its own, drawn above
                marker=mark,
                markersize=(6.5 if style == "none" else 8.5) * size,  # both marks show where points coincide
                markeredgecolor="white",
                markeredgewidth=0.6,
                linestyle=style,
                linewidth=1.1,
                label=name + (f" in {frontier.alpha_fair_in}" if kind == "alpha" else ""),
                zorder=5 if style == "none" else 4,
            )
    look = looks(point.name for point in points)
    for point, place in zip(points, places, strict=True):
        mark, _, style, _ = _LOOK[point.kind]
        if style == "none":
            edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
            axes.plot(*place, color=look[point.name].colour, marker=mark, markersize=6.5 * size, linestyle="none", zorder=6, **edge)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"{frontier.total_of} in all")
    axes.set_ylabel("smallest weighted\ndominant share" if narrow else "smallest weighted dominant share")
    if narrow:
        axes.tick_params(labelsize=8)
        axes.xaxis.label.set_fontsize(8)
        axes.yaxis.label.set_fontsize(8)
    axes.xaxis.set_major_formatter(lambda value, _: wording.figure(value, 6))
    axes.yaxis.set_major_formatter(lambda value, _: wording.figure(value))  # no common factor above the axis: the prices are there
    page.headline(f"Efficiency against fairness: {size_of(frontier.instance, frontier.sharing)}", title)
    if not narrow:  # both prices are parts of what the axes show
        _price_axes(axes, frontier)
    page.legend(loc="outside lower center", ncols=6, fontsize=7 if narrow else 9)
    page.figure.draw_without_rendering()  # settles the layout
    if page.own:
        page.figure.set_layout_engine("none")
    groups = together(places, axes)
    label_points(
        axes,
        np.array([places[group].mean(axis=0) for group in groups]).reshape(-1, 2),
        [label_of([points[j] for j in group], 18 if narrow else _WRAP, _title) for group in groups],
        lines,
        fontsize=7 if narrow else 8.5,
    )
    return page.figure


def limits_of(frontier: Frontier, places: FloatArray) -> tuple[float, float, float]:
    """Return the limits of the axes: left, right, top."""
    low = float(min([*places[:, 0], frontier.vertices[0, 0]]))
    width = max(frontier.largest_total - low, 0.05 * frontier.largest_total)
    highest = float(max([*places[:, 1], frontier.largest_share]))
    return max(low - 0.12 * width, -0.02 * width), frontier.largest_total + 0.14 * width, 1.16 * highest


def _price_axes(axes: Axes, frontier: Frontier) -> None:
    """Mark the prices at the top and on the right."""
    from matplotlib.ticker import PercentFormatter

    def price(best: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        return lambda value: 1 - value / best, lambda missing: (1 - missing) * best

    across = axes.secondary_xaxis("top", functions=price(frontier.largest_total))
    up = axes.secondary_yaxis("right", functions=price(frontier.largest_share))
    across.set_xlabel("price of fairness")
    up.set_ylabel("price of efficiency")
    for axis in (across.xaxis, up.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        axis.set_ticks(np.linspace(0, 1, 6))
    for side in (across, up):
        side.tick_params(colors=GREY, labelsize=8)
        side.spines[:].set_visible(False)


def label_of(points: Sequence[FrontierPoint], wrap: int = _WRAP, title: Callable[[str], str] = str) -> str:
    """Return the names of the points of one mark, those of a path as one list, in lines of ``wrap`` characters.

    ``title`` returns what a notion or schedule is called.
    """
    names = [short_label(title(point.name), 30) for point in points if point.kind not in ("alpha", *_FAMILIES)]
    paths = {kind: [point.name for point in points if point.kind == kind] for kind in ("alpha", *_FAMILIES)}
    for kind, members in paths.items():
        if members and kind == "alpha":
            values = [name.removeprefix("alpha=").replace("inf", "$\\infty$") for name in members]
            names.append(f"$\\alpha$\u00a0=\u00a0{', '.join(values)}")
        elif members:
            pairs = [f"({beta},\u00a0{lam})" for beta, lam in map(_member, members)]
            alone = len(members) == len(points)  # then the shape of the mark shows the family
            names.append(("" if alone else f"{kind.upper()}\u00a0") + ", ".join(pairs))
    return "\n".join(textwrap.wrap(listed(names), wrap, break_on_hyphens=False))


def _title(name: str) -> str:
    """Return what the tables and pictures of a study call a notion or schedule, which may be one of several of a name.

    >>> _title("drf (2)"), _title("drfh:best-fit")
    ('DRF (2)', 'DRFH, best-fit')
    """
    entry, _, number = name.partition(" (")
    return entry_title(entry) + (f" ({number}" if number else "")


def _member(name: str) -> tuple[str, str]:
    """Return beta and lambda of "fds:beta=2:lam=-1 (2)"."""
    _, beta, lam = name.split(" ")[0].split(":")
    return beta.partition("=")[2], lam.partition("=")[2]
