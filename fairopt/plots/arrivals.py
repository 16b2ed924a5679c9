"""The allocation ratio of a resource against the demand that has arrived: each placement, and the fluid bound above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt.plots.style import COLOURS, GREY, STYLES, short_label
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairopt.arrival_curves import Arrivals

__all__ = ["plot_arrivals"]

_BAND = (0.1, 0.9)


def plot_arrivals(found: Arrivals) -> Figure:
    """Draw medians over the seeds, with bands from the first to the last decile, and what is beyond the bound in grey.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> cluster = fo.Instance([[4.0], [4.0]], [[0.6], [2.0]], tasks=[8, 2], resources=["gpu"])
    >>> figure = plot_arrivals(fo.arrivals(cluster, "gpu", cards="gpu", seeds=range(2), step=0.1, jobs=1))
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['fluid bound', 'first-fit', 'best-fit']
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    points = found.points
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.subplots()
    bound = np.median(found.bound, axis=0)
    top = max(1.03, 1.03 * float(found.bound.max()))
    axes.fill_between(points, bound, top, color="#EEEEEE", linewidth=0, zorder=0)
    axes.plot(points, bound, color="black", linewidth=1.6, label="fluid bound", zorder=3)
    for j, (name, values) in enumerate(found.allocated.items()):
        colour = COLOURS[j % len(COLOURS)]
        low, high = np.quantile(values, _BAND, axis=0)
        axes.fill_between(points, low, high, color=colour, alpha=0.25, linewidth=0, zorder=1)
        style = STYLES[j % len(STYLES)]
        axes.plot(points, np.median(values, axis=0), color=colour, linestyle=style, linewidth=1.6, label=short_label(name, 40), zorder=4)
    low, high = _BAND
    seeds = len(found.seeds)
    axes.set_xlim(0.0, float(points[-1]))
    axes.set_ylim(0.0, top)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    what = short_label(found.resource)
    axes.set_xlabel(f"{what} asked for by the tasks that have arrived, of all {what}")
    axes.set_ylabel(f"{what} allocated")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="lower right")
    cards = f", {short_label(found.cards)} in cards" if found.cards else ""
    axes.set_title(f"Allocation ratio on {plural(found.instance.counts.sum(), 'server')}{cards}", loc="left", fontweight="bold")
    if seeds > 1:
        axes.annotate(
            f"median and {100 * low:g} to {100 * high:g} % of {seeds:,} orders of arrival",
            (0.01, 0.98),
            xycoords="axes fraction",
            verticalalignment="top",
            fontsize=9,
            color=GREY,
        )
    return figure
