"""The allocation ratio of a resource against the demand that has arrived: each placement, and the fluid bound above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt.plots.sheets import sheet
from fairopt.plots.style import GREY, looks, percent_labels, short_label
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation.arrival_curves import Arrivals

__all__ = ["plot_arrivals"]

_BAND = (0.1, 0.9)


def plot_arrivals(
    found: Arrivals, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw the allocated part of the capacity and, below, its distance to the bound.

    Medians over the seeds, with bands from the first to the last decile; what is beyond the bound is grey.

    Parameters
    ----------
    found : Arrivals
    ax : sequence of two matplotlib Axes, optional
        Draw into these axes: the curves, and the distance to the bound.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> cluster = fo.Instance([[4.0], [4.0]], [[0.6], [2.0]], tasks=[8, 2], resources=["gpu"])
    >>> figure = plot_arrivals(fo.arrivals(cluster, "gpu", cards="gpu", seeds=range(2), step=0.1, workers=1))
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['fluid bound', 'first-fit', 'best-fit']
    """
    from matplotlib.ticker import MaxNLocator

    page = sheet(ax, figsize, (8.0, 7.0), ("allocated", "below the bound"), down=True, sharex=True, height_ratios=[3, 2])
    upper, lower = page.axes
    points, bound = found.points, np.median(found.bound, axis=0)
    upper.fill_between(points, bound, 2.0, color="#EEEEEE", linewidth=0, zorder=0)
    upper.plot(points, bound, color="black", linewidth=1.6, label="fluid bound", zorder=3)
    lower.axhline(0.0, color="black", linewidth=1.6, zorder=3)
    for name, (colour, style) in looks(found.allocated).items():
        values = found.allocated[name]
        for axes, curve in ((upper, values), (lower, found.bound - values)):
            axes.fill_between(points, *np.quantile(curve, _BAND, axis=0), color=colour, alpha=0.25, linewidth=0, zorder=1)
            middle = np.median(curve, axis=0)
            axes.plot(points, middle, color=colour, linestyle=style, linewidth=1.6, label=short_label(name, 40), zorder=4)
    upper.set_ylim(0.0, max(1.0, float(bound.max())) + 0.03)
    lower.set_ylim(top=max(0.05, 1.1 * max(float((found.bound - values).max()) for values in found.allocated.values())), bottom=0.0)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
    for axis, marks in ((upper.yaxis, 6), (lower.yaxis, 4), (lower.xaxis, 8)):
        axis.set_major_locator(MaxNLocator(marks, steps=[1, 2, 5, 10]))
        percent_labels(axis)
    lower.set_xlim(0.0, float(points[-1]))
    name = short_label(found.resource)
    upper.set_ylabel(f"{name} allocated")
    lower.set_ylabel("below the bound")
    lower.set_xlabel(f"demand for {name} that has arrived")
    upper.legend(frameon=False, loc="lower right")
    cards = f", {found.cards} in cards" if found.cards else ""
    page.headline(f"Allocation ratio on {plural(found.instance.counts.sum(), 'server')}{cards}", title)
    if len(found.seeds) > 1:
        low, high = _BAND
        text = f"median and {100 * low:g} to {100 * high:g} % of {len(found.seeds):,} orders of arrival"
        upper.annotate(text, (0.01, 0.97), xycoords="axes fraction", verticalalignment="top", fontsize=9, color=GREY)
    return page.figure
