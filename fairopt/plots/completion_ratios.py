"""The part of each user's tasks that ended under two schedulers: a bubble per user, above the diagonal if the second did more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairopt.plots.sheets import sheet
from fairopt.plots.style import GREY, LINES, looks, percent_axis
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_completion_ratios"]

_SAME = 1e-9
_SIZE = 5.0  # radius of a bubble, in points for each power of ten of tasks, from 1 / 2 on


def plot_completion_ratios(
    ratios: Mapping[str, npt.ArrayLike],
    tasks: npt.ArrayLike,
    caption: str = "",
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the ratios of two schedulers against each other; the radius of a bubble is logarithmic in the tasks of the user.

    Parameters
    ----------
    ratios : mapping of two
        Name -> part of each user's tasks that ended, (users,); nan: the user has none to compare, and is left out.
    tasks : array (users,)
        Tasks that users submitted.
    caption : str
        Printed below.
    ax : matplotlib Axes, optional
        Draw into these axes.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> figure = plot_completion_ratios({"slots": [0.5, 1, float("nan")], "best-fit": [1, 0.9, 1]}, [100, 3, 1])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['more, best-fit: 1 user', 'as many: 0 users', 'fewer: 1 user']
    """
    page = sheet(ax, figsize, (6.4, 7.0))
    from matplotlib.colors import to_rgba

    (axes,) = page.axes
    (first, x), (second, y) = ((name, np.asarray(values, float)) for name, values in ratios.items())
    known = np.isfinite(x) & np.isfinite(y)
    x, y, number = x[known], y[known], np.asarray(tasks, float)[known]
    radius = _SIZE * (0.5 + np.log10(np.maximum(number, 1))) / 2
    order = np.argsort(-radius, kind="stable")  # the small ones on top
    signs = np.where(np.abs(y - x) <= _SAME, 0, np.sign(y - x))
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    look = looks(ratios)
    for sign, colour, words in ((1, look[second][0], f"more, {second}"), (0, LINES[7], "as many"), (-1, look[first][0], "fewer")):
        own = order[signs[order] == sign]
        axes.scatter(
            x[own],
            y[own],
            s=(2 * radius[own]) ** 2,
            facecolors=to_rgba(colour, 0.35),
            edgecolors=colour,
            linewidths=0.8,
            clip_on=False,
            label=f"{words}: {plural(own.size, 'user')}",
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    for axis, name in ((axes.xaxis, first), (axes.yaxis, second)):
        percent_axis(axis)
        axis.set_label_text(f"tasks completed, {name}")
    note = "the larger a circle, the more tasks of the user (logarithmic)"
    above: dict[str, Any] = {"xytext": (0, 8), "xycoords": "axes fraction", "textcoords": "offset points"}  # circles reach over the axes
    axes.annotate(note, (0.0, 1.0), fontsize=8.5, color=GREY, **above)
    axes.spines[["top", "right"]].set_visible(False)
    legend = axes.legend(
        frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.05), ncols=3, fontsize=9, handletextpad=0.2, columnspacing=1.0
    )
    for handle in legend.legend_handles:
        handle.set_sizes([60.0])  # type: ignore[union-attr]
    page.headline(f"Task completion of {plural(x.size, 'user')}", title)
    page.caption(caption)
    return page.figure
