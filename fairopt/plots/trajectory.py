"""The path of an allocation: tasks of each pair, and the use of each limit that fills up, over t."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt.plots.sheets import sheet
from fairopt.plots.style import LABEL, LINES, STYLES, percent_axis, short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.solvers.trajectory.engine import Path as Trace

__all__ = ["plot_trajectory"]


def plot_trajectory(
    trace: Trace, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw the path of ``allocation.trace``: tasks of each pair, and use of each limit, over t.

    Parameters
    ----------
    trace : Path
        Of the engine "trajectory".
    ax : sequence of two matplotlib Axes, optional
        Draw into these axes: the tasks, and the limits.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    >>> import fairopt as fo
    >>> pool = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[.5, .3, .2])
    >>> figure = plot_trajectory(fo.solve(pool, "bbf", solver="trajectory").trace)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Tasks along the trajectory', 'Use of the limits that fill up']
    """
    page = sheet(ax, figsize, (10.0, 4.0), ("tasks", "use of the limits"))
    left, right = page.axes
    full = np.flatnonzero(trace.bottlenecks)
    several = len({server for _, server in trace.pairs}) > 1
    for axes, values, names in (
        (left, trace.x, [f"{user} on {server}" if several else user for user, server in trace.pairs]),
        (right, trace.utilization[:, full], [trace.limits[j] for j in full]),
    ):
        for j, name in enumerate(short_labels(names, 2 * LABEL)):
            label = name if len(names) <= len(LINES) else None
            axes.plot(trace.t, values[:, j], color=LINES[j % len(LINES)], linestyle=STYLES[j % 4], label=label)
        if 0 < len(names) <= len(LINES):  # flat paths leave no corner free
            page.legend_below(axes, 2)
        axes.set_xlabel("t")
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("tasks")
    left.set_title("Tasks along the trajectory", loc="left")
    right.set_title("Use of the limits that fill up", loc="left")
    right.set_ylim(0, 1.05)
    percent_axis(right.yaxis)
    page.headline("", title)
    return page.figure
