"""Schedulers side by side over time: tasks that wait, shortfall against the exact fluid, envy, and Jain's index by windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.plots.sheets import sheet
from fairopt.plots.simulation import UNITS
from fairopt.plots.style import COLOURS, STYLES, percent_axis, short_labels
from fairopt.wording import figure, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation.side_by_side import SideBySide

__all__ = ["plot_side_by_side"]

_PANELS = ("tasks that wait", "shortfall", "envy", "Jain's index")


def plot_side_by_side(
    found: SideBySide, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw waiting tasks, shortfall, envy and Jain's index over time, one below the other, a line for each scheduler.

    Parameters
    ----------
    found : SideBySide
    ax : sequence of matplotlib Axes, optional
        Draw into these axes, one for each of the four panels.
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
    ['Tasks that wait', 'Shortfall of users who wait, against exact drfh', 'Envy of users who wait',
     "Jain's index of shares by weight; as the two above by windows of 0.208 seconds"]
    """
    options: dict[str, Any] = {"mosaic": [[name] for name in _PANELS], "height_ratios": [1.0] * len(_PANELS), "sharex": True}
    page = sheet(ax, figsize, (10.0, 9.0), list(_PANELS), down=True, **options)
    length = max((float(np.ptp(course.times)) for course in found.courses if course.times.size), default=0.0)
    _, unit, word = next(entry for entry in UNITS if length >= entry[0])
    for k, (course, name) in enumerate(zip(found.courses, short_labels([c.name for c in found.courses]), strict=True)):
        begins, index = found.jain(course)
        curves = (
            (course.times, course.waiting.sum(axis=1)),
            found.mean_by_window(course, found.shortfall(course).sum(axis=1)),
            found.mean_by_window(course, found.envy(course).sum(axis=1)),
            (begins, index),
        )
        look: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "linestyle": STYLES[k % len(STYLES)], "linewidth": 1.4}
        for axes, (times, values) in zip(page.axes, curves, strict=True):
            axes.step(times / unit, values, where="post", label=name, **look)
    titles = (
        "Tasks that wait",
        f"Shortfall of users who wait, against exact {found.exact.name}",
        "Envy of users who wait",
        f"Jain's index of shares by weight; as the two above by windows of {figure(found.window / unit)} {word}",
    )
    for axes, text in zip(page.axes, titles, strict=True):
        axes.set_title(text, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.0)
        axes.set_ylim(bottom=0.0)
    page.axes[0].yaxis.set_major_formatter("{x:,.0f}")
    page.axes[3].set_ylim(0.0, 1.05)
    for axes in page.axes[1:3]:
        percent_axis(axes.yaxis)
    page.axes[0].legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=9, borderaxespad=0.2)
    page.axes[-1].set_xlabel(word)
    page.headline(f"{plural(found.trace.n_jobs, 'job')} of {plural(len(found.users), 'user')} under each scheduler", title)
    return page.figure
