"""A simulation over time: utilization of each resource, dominant share of each user, and tasks that wait.

Of servers that act by themselves also the exact shares, broad and pale behind their own, and how far they are from what is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.plots.sheets import sheet
from fairopt.plots.style import COLOURS, GREY, STYLES, percent_axis, percent_labels, short_label
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation import Simulation

__all__ = ["plot_simulation"]

_LINES = 7  # users with a line of their own; one line for all others
_ROUNDING = 1e-12  # drawn instead of anything smaller
_UNITS = ((3 * 86_400.0, 86_400.0, "days"), (3 * 3_600.0, 3_600.0, "hours"), (0.0, 1.0, "seconds"))


def plot_simulation(
    simulation: Simulation, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw utilization, dominant shares and waiting tasks over time, one below the other; for many users, those that hold most.

    Of asynchronous servers, the exact shares behind those of the users, and the distance and condition of ``simulation.regret``.

    Parameters
    ----------
    simulation : Simulation
    ax : sequence of matplotlib Axes, optional
        Draw into these axes, one for each panel.
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
    >>> figure = plot_simulation(fo.simulate(trace, cluster, "drf:first-fit"))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Utilization', 'Dominant share of each user', 'Tasks that wait']
    """
    series = simulation.series
    approaches = series.exact_shares is not None
    panels = ("utilization", "dominant shares", *(("distance from the exact",) if approaches else ()), "tasks that wait")
    heights = [3, 4, *([3] if approaches else []), 2]
    page = sheet(ax, figsize, (10.0, 9.5 if approaches else 7.5), panels, down=True, sharex=True, height_ratios=heights)
    top, middle, *others, bottom = page.axes
    length = float(np.ptp(series.times)) if series.times.size else 0.0
    _, unit, word = next(entry for entry in _UNITS if length >= entry[0])
    times = series.times / unit
    _steps(top, times, series.utilization, [short_label(name) for name in simulation.cluster.resources])
    names, columns = _largest(simulation)
    if series.exact_shares is not None:
        for j, values in enumerate(columns(series.exact_shares).T):
            middle.step(times, values, where="post", color=_colour(j, names[j]), linewidth=6.0, alpha=0.25)
        _approach(others[0], times, simulation.regret)
    _steps(middle, times, columns(series.dominant_shares), names)
    waiting = series.waiting.sum(axis=1)
    bottom.fill_between(times, waiting, step="post", color="#DDDDDD", linewidth=0)
    bottom.step(times, waiting, where="post", color=GREY, linewidth=1.2)
    shares = "Dominant share of each user" + (", exact: broad and pale" if approaches else "")
    headings = ["Utilization", shares, *(["How far from the exact allocation"] if approaches else []), "Tasks that wait"]
    for axes, heading in zip((top, middle, *others, bottom), headings, strict=True):
        axes.set_title(heading, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.0)
    top.set_ylim(0, max(1.05, 1.05 * float(series.utilization.max(initial=0.0))))
    percent_axis(top.yaxis)
    from matplotlib.ticker import MaxNLocator

    middle.set_ylim(bottom=0)
    middle.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    percent_labels(middle.yaxis)
    bottom.set_ylim(0, max(1.0, 1.08 * float(waiting.max(initial=0.0))))
    bottom.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    bottom.yaxis.set_major_formatter("{x:,.0f}")
    bottom.xaxis.set_major_formatter("{x:,g}")
    bottom.set_xlabel(word)
    where = f"{plural(len(simulation.users), 'user')} on {plural(simulation.cluster.counts.sum(), 'server')}"
    text = f"{simulation.scheduler} ({simulation.kind}): {where}, {plural(simulation.trace.n_jobs, 'job')}"
    page.headline(text, title)
    return page.figure


def _colour(j: int, name: str) -> str:
    return GREY if name.startswith("the other ") else COLOURS[j % len(COLOURS)]


def _steps(axes: Axes, times: FloatArray, values: FloatArray, names: list[str]) -> None:
    """Draw a line for each column, with a legend on the right of the axes."""
    for j, name in enumerate(names):
        style = ":" if name.startswith("the other ") else STYLES[j % len(STYLES)]
        axes.step(times, values[:, j], where="post", color=_colour(j, name), linestyle=style, linewidth=1.5, label=name)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)


def _approach(axes: Axes, times: FloatArray, regret: Any) -> None:
    """Draw distance and condition on a logarithmic axis that ends where rounding begins."""
    for word, colour, style in (("distance", COLOURS[0], "-"), ("condition", COLOURS[5], "--")):
        values = np.maximum(regret[word].to_numpy(float), _ROUNDING)
        axes.step(times, values, where="post", color=colour, linestyle=style, linewidth=1.5, label=word)
    axes.set_yscale("log")
    axes.set_ylim(_ROUNDING, 2.0)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)


def _largest(simulation: Simulation) -> tuple[list[str], Callable[[FloatArray], FloatArray]]:
    """Return the names of the users that hold most over time, and a function that picks their columns and the mean of the others."""
    shares = simulation.series.dominant_shares
    if shares.shape[1] <= _LINES + 1:
        return [short_label(name) for name in simulation.users], lambda values: values
    chosen = np.sort(np.argsort(-shares.sum(axis=0), kind="stable")[:_LINES])
    rest = np.setdiff1d(np.arange(shares.shape[1]), chosen)
    names = [short_label(simulation.users[n]) for n in chosen]

    def columns(values: FloatArray) -> FloatArray:
        return np.column_stack([values[:, chosen], values[:, rest].mean(axis=1)])

    return [*names, f"the other {rest.size:,}, mean"], columns
