"""Schedulers side by side, over time: utilization, tasks that wait, shortfall, regret, envy, and Jain's index by windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.plots.colours import looks
from fairopt.plots.sheets import is_narrow, sheet
from fairopt.plots.simulation import UNITS
from fairopt.plots.style import percent_axis, short_labels
from fairopt.wording import figure, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation.side_by_side import SideBySide

__all__ = ["plot_side_by_side"]

_PANELS = ("utilization", "tasks that wait", "shortfall", "regret", "envy", "Jain's index")
_LOW = 0.01  # the least height of an axis: less than a hundredth is drawn as nothing
_PARTS = ("utilization", "shortfall", "envy")  # panels in per cent


def plot_side_by_side(
    found: SideBySide, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw utilization, waiting tasks, shortfall, regret, envy and Jain's index over time, a line for each scheduler.

    Parameters
    ----------
    found : SideBySide
    ax : sequence of matplotlib Axes, optional
        Draw into these axes, one for each of the six panels.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
    >>> trace = fo.Trace(["A", "B"], [0, 5], [4, 4], [[1], [1]], [10, 10], resources=["cpu"])
    >>> figure = plot_side_by_side(fo.compare_over_time(trace, cluster, ["fifo", "drfh"]))
    >>> [axes.get_title(loc="left") for axes in figure.axes]  # doctest: +NORMALIZE_WHITESPACE
    ['Utilization of the resource that is used most', 'Tasks that wait', 'Shortfall of users who wait, against exact drfh',
     'Regret: the shortfall so far, in hours of the cluster', 'Envy of users who wait', "Jain's index of shares by weight"]
    """
    options: dict[str, Any] = {"mosaic": [[name] for name in _PANELS], "height_ratios": [1.0] * len(_PANELS), "sharex": True}
    page = sheet(ax, figsize, (10.0, 12.0), list(_PANELS), down=True, **options)
    panels = dict(zip(_PANELS, page.axes, strict=True))
    length = max((float(np.ptp(course.times)) for course in found.courses if course.times.size), default=0.0)
    _, unit, word = next(entry for entry in UNITS if length >= entry[0])
    look = looks(course.name for course in found.courses)
    for course, name in zip(found.courses, short_labels([c.name for c in found.courses]), strict=True):
        shortfall = found.shortfall(course).sum(axis=1)
        curves = {
            "utilization": found.mean_by_window(course, course.most_used()),
            "tasks that wait": (course.times, course.waiting.sum(axis=1)),
            "shortfall": found.mean_by_window(course, shortfall),
            "envy": found.mean_by_window(course, found.envy(course).sum(axis=1)),
            "Jain's index": found.jain(course),
        }
        lines: dict[str, Any] = {"color": look[course.name].colour, "linestyle": look[course.name].line, "linewidth": 1.6, "label": name}
        for panel, (times, values) in curves.items():
            panels[panel].step(times / unit, values, where="post", **lines)
        so_far = np.cumsum(shortfall * course.lengths()) / 3600
        panels["regret"].plot(course.times / unit, np.append(0.0, so_far[:-1])[: course.times.size], **lines)
    titles = (
        "Utilization of the resource that is used most",
        "Tasks that wait",
        f"Shortfall of users who wait, against exact {found.exact.name}",
        "Regret: the shortfall so far, in hours of the cluster",
        "Envy of users who wait",
        "Jain's index of shares by weight",
    )
    narrow = is_narrow(figsize)
    for axes, text in zip(page.axes, titles, strict=True):
        axes.set_title(text, loc="left", fontsize=8 if narrow else None)
        if narrow:
            axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.0)
        axes.set_ylim(0.0, max(axes.get_ylim()[1], _LOW))
    panels["tasks that wait"].set_ylim(0.0, max(panels["tasks that wait"].get_ylim()[1], 1.0))  # not parts of tasks that are rounding
    panels["tasks that wait"].yaxis.set_major_formatter("{x:,.0f}")
    panels["utilization"].set_ylim(0.0, 1.05)
    panels["Jain's index"].set_ylim(0.0, 1.05)
    for panel in _PARTS:
        percent_axis(panels[panel].yaxis)
    page.axes[-1].set_xlabel(word)
    page.legend_above(page.axes[0], 5)
    page.headline(f"{plural(found.trace.n_jobs, 'job')} of {plural(len(found.users), 'user')} under each scheduler", title)
    page.caption(f"Means over windows of {figure(found.window / unit)} {word}, but tasks that wait and regret.")
    return page.figure
