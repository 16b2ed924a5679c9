"""Utilization of each resource over time under several schedulers: a panel for each resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairopt.plots.sheets import sheet
from fairopt.plots.style import looks, percent_axis, short_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation import Simulation

__all__ = ["plot_utilization_over_time"]


def plot_utilization_over_time(
    found: Mapping[str, Simulation],
    caption: str = "",
    *,
    ax: Sequence[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw a line for each simulation, named as in ``found``, all of one cluster.

    Parameters
    ----------
    found : mapping of str to Simulation
    caption : str
        Is written below.
    ax : sequence of matplotlib Axes, optional
        Draw into these axes, one for each resource.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> cluster = fo.Instance([[9, 18]], [[1, 1]], resources=["cpu", "memory"])
    >>> trace = fo.Trace(["A", "B"], [0, 5], [4, 4], [[1, 4], [3, 1]], [10, 10], resources=["cpu", "memory"])
    >>> figure = plot_utilization_over_time({name: fo.simulate(trace, cluster, f"drf:{name}") for name in ("first-fit", "slots")})
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['cpu', 'memory']
    """
    from matplotlib.ticker import MaxNLocator

    resources = next(iter(found.values())).cluster.resources
    page = sheet(ax, figsize, (9.0, 1.2 + 2.6 * len(resources)), resources, down=True, sharex=True)
    panels = page.axes
    for r, (axes, resource) in enumerate(zip(panels, resources, strict=True)):
        for name, (colour, style) in looks(found).items():
            series = found[name].series
            axes.step(series.times / 3600, series.utilization[:, r], style, where="post", color=colour, linewidth=1.4, label=name)
        axes.set_title(short_label(resource), loc="left")
        axes.set_ylim(0, 1.04)
        percent_axis(axes.yaxis)
        axes.margins(x=0.0)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 3, 4, 5, 6, 10]))
    panels[-1].xaxis.set_major_formatter("{x:,g}")
    panels[-1].set_xlabel("hours")
    panels[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0.3, 1.0), ncols=len(found), fontsize=9, borderaxespad=0.2)
    page.headline("Utilization over time", title)
    page.caption(caption)
    return page.figure
