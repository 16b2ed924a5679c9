"""Utilization of some server rows over time under several schedulers: a panel for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt.plots.sheets import sheet
from fairopt.plots.style import looks, percent_axis, short_label, wrapped
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation import Simulation

__all__ = ["plot_row_utilization"]


def plot_row_utilization(
    found: Mapping[str, Simulation],
    rows: Sequence[int],
    resource: int,
    *,
    titles: Sequence[str] | None = None,
    caption: str = "",
    ax: Sequence[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the part of a resource in use on these rows of servers, a line for each simulation by its name, the first one broadest.

    Parameters
    ----------
    found : mapping of str to Simulation
        Of the same cluster, with samples of rows.
    rows : sequence of int
        Positions.
    resource : int
        Position.
    titles : sequence of str, optional
        Of the panels; default: the names of resource and servers.
    caption : str
        Is written below.
    ax : sequence of matplotlib Axes, optional
        Draw into these axes, one for each row.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        Above all panels; default: none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> cluster = fo.Instance([[9, 18], [4, 4]], [[1, 1]], resources=["cpu", "memory"])
    >>> trace = fo.Trace(["A", "B"], [0, 5], [4, 4], [[1, 4], [3, 1]], [10, 10], resources=["cpu", "memory"])
    >>> figure = plot_row_utilization({name: fo.simulate(trace, cluster, name) for name in ("psdsf", "tsf")}, [0, 1], 0)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['cpu of server-1', 'cpu of server-2']
    """
    cluster = next(iter(found.values())).cluster
    page = sheet(ax, figsize, (10.0, 2.0 + 2.2 * len(rows)), [cluster.servers[i] for i in rows], down=True, sharex=True)
    panels = page.axes
    for k, (axes, i) in enumerate(zip(panels, rows, strict=True)):
        for j, (name, (colour, style)) in enumerate(looks(found).items()):
            simulation, series = found[name], found[name].series
            used = series.row_utilization
            times = np.append(series.times, simulation.until) if np.isfinite(simulation.until) else series.times
            part = np.zeros(series.times.size) if used is None else used[:, i, resource]
            values = np.append(part, part[-1:]) if times.size > part.size else part
            width = 1.4 + 1.2 * (len(found) - 1 - j)  # all lines show even if they coincide
            axes.step(times, values, where="post", color=colour, linestyle=style, linewidth=width, label=short_label(name, 60))
        heading = f"{cluster.resources[resource]} of {cluster.servers[i]}" if titles is None else titles[k]
        number = cluster.counts[i]
        axes.set_title(wrapped(heading + (f" ({plural(number, 'server')})" if number != 1 else ""), 80), loc="left")
        axes.set_ylim(0, 1.05)
        percent_axis(axes.yaxis)
        axes.margins(x=0.0)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].xaxis.set_major_formatter("{x:,g}")
    panels[-1].set_xlabel("seconds")
    handles, names = panels[0].get_legend_handles_labels()
    page.legend(handles, names, loc="outside upper left", ncols=2, fontsize=9)
    page.headline("", title)
    page.caption(caption)
    return page.figure
