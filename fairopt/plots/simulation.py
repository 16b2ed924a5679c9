"""A simulation over time: utilization of each resource, dominant share of each user in a small panel, and tasks that wait.

Of servers that act by themselves also the exact shares, broad and pale behind their own, and how far they are from what is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.plots.sheets import sheet
from fairopt.plots.style import GREY, LINES, STYLES, percent_axis, percent_labels, short_labels
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation import Simulation

__all__ = ["UNITS", "plot_simulation"]

_LINES = 7  # users with a panel of their own; one panel for all others
_LIMITS = 4  # named limits that are drawn, the fullest
_ACROSS = 4  # panels of users beside each other
_ROUNDING = 1e-12  # drawn instead of anything smaller
UNITS = ((3 * 86_400.0, 86_400.0, "days"), (3 * 3_600.0, 3_600.0, "hours"), (0.0, 1.0, "seconds"))


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
    ['Utilization', 'A', 'B', 'Tasks that wait']
    """
    series = simulation.series
    approaches = series.exact_shares is not None
    names, columns = _largest(simulation)
    across = min(len(names), _ACROSS)
    users = [f"user {j + 1}" for j in range(len(names))]
    wide = ["utilization", *(["distance from the exact"] if approaches else []), "tasks that wait"]
    grid = [users[k : k + across] for k in range(0, len(users), across)]
    grid[-1] += ["."] * (across - len(grid[-1]))
    mosaic = [[wide[0]] * across, *grid, *([name] * across for name in wide[1:])]
    heights = [3.0, *[2.2] * len(grid), *([3.0] if approaches else []), 2.0]
    panels = [wide[0], *users, *wide[1:]]
    options: dict[str, Any] = {"mosaic": mosaic, "height_ratios": heights, "sharex": True}
    page = sheet(ax, figsize, (10.0, 0.72 * sum(heights) + 1.2), panels, down=True, **options)
    top, bottom, middle = page.axes[0], page.axes[-1], page.axes[1 : 1 + len(names)]
    length = float(np.ptp(series.times)) if series.times.size else 0.0
    _, unit, word = next(entry for entry in UNITS if length >= entry[0])
    times = series.times / unit
    _steps(top, times, *_used(simulation))
    exact = None if series.exact_shares is None else columns(series.exact_shares)
    _users(middle, times, columns(series.dominant_shares), names, exact, across)
    middle[0].annotate(
        "dominant share" + (", exact: broad and pale" if approaches else "") + ("; the others grey" if len(names) > 1 else ""),
        (0.0, 1.0),
        xytext=(0, 20),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=9,
        color=GREY,
    )
    if approaches:
        _approach(page.axes[-2], times, simulation.regret)
        page.axes[-2].set_title("How far from the exact allocation", loc="left")
    waiting = series.waiting.sum(axis=1)
    bottom.fill_between(times, waiting, step="post", color="#DDDDDD", linewidth=0)
    bottom.step(times, waiting, where="post", color=GREY, linewidth=1.2)
    top.set_title("Utilization", loc="left")
    bottom.set_title("Tasks that wait", loc="left")
    for axes in page.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.0)
    top.set_ylim(0, max(1.05, 1.05 * float(series.utilization.max(initial=0.0))))
    percent_axis(top.yaxis)
    from matplotlib.ticker import MaxNLocator

    bottom.set_ylim(0, max(1.0, 1.08 * float(waiting.max(initial=0.0))))
    bottom.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    bottom.yaxis.set_major_formatter("{x:,.0f}")
    bottom.xaxis.set_major_formatter("{x:,g}")
    bottom.set_xlabel(word)
    where = f"{plural(len(simulation.users), 'user')} on {plural(simulation.cluster.counts.sum(), 'server')}"
    text = f"{simulation.scheduler} ({simulation.kind}): {where}, {plural(simulation.trace.n_jobs, 'job')}"
    page.headline(text, title)
    return page.figure


def _used(simulation: Simulation) -> tuple[FloatArray, list[str]]:
    """Return the parts in use of resources and of the fullest named limits, (K, columns), and their names."""
    series, limits = simulation.series, simulation.cluster.limits
    fullest = np.sort(np.argsort(-series.limit_use.mean(axis=0), kind="stable")[:_LIMITS]) if series.times.size else np.arange(0)
    names = [*simulation.cluster.resources, *(f"limit {limits[k].name}" for k in fullest)]
    return np.hstack([series.utilization, series.limit_use[:, fullest]]), short_labels(names)


def _steps(axes: Axes, times: FloatArray, values: FloatArray, names: list[str]) -> None:
    """Draw a line for each column, with a legend above the axes."""
    for j, name in enumerate(names):
        colour, style = LINES[j % len(LINES)], STYLES[j % len(STYLES)]
        axes.step(times, values[:, j], where="post", color=colour, linestyle=style, linewidth=1.5, label=name)
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=9, borderaxespad=0.2)


def _users(panels: Sequence[Axes], times: FloatArray, values: FloatArray, names: list[str], exact: FloatArray | None, across: int) -> None:
    """Draw each user in a panel of its own, before all others in grey; all panels have the same limits."""
    from matplotlib.ticker import MaxNLocator

    largest = max([float(part.max(initial=0.0)) for part in (values, exact) if part is not None]) or 1.0
    for j, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for other in range(len(names)):
            if other != j:
                axes.step(times, values[:, other], where="post", color="#DDDDDD", linewidth=0.6, zorder=1)
        if exact is not None:
            axes.step(times, exact[:, j], where="post", color=LINES[1], linewidth=4.5, zorder=2)
        axes.step(times, values[:, j], where="post", color="black", linewidth=1.2, label=name, zorder=3)
        axes.set_title(name, loc="left", fontsize=9, color="black")
        axes.set_ylim(0, 1.06 * largest)
        axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        percent_labels(axes.yaxis)
        axes.tick_params(labelsize=8, labelleft=j % across == 0)


def _approach(axes: Axes, times: FloatArray, regret: Any) -> None:
    """Draw distance and condition on a logarithmic axis that ends where rounding begins."""
    for word, colour, style in (("distance", LINES[0], "-"), ("condition", LINES[5], "--")):
        values = np.maximum(regret[word].to_numpy(float), _ROUNDING)
        axes.step(times, values, where="post", color=colour, linestyle=style, linewidth=1.5, label=word)
    axes.set_yscale("log")
    axes.set_ylim(_ROUNDING, 2.0)
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, fontsize=9, borderaxespad=0.2)


def _largest(simulation: Simulation) -> tuple[list[str], Callable[[FloatArray], FloatArray]]:
    """Return the names of the users that hold most over time, and a function that picks their columns and the mean of the others."""
    shares = simulation.series.dominant_shares
    if shares.shape[1] <= _LINES + 1:
        return short_labels(simulation.users), lambda values: values
    chosen = np.sort(np.argsort(-shares.sum(axis=0), kind="stable")[:_LINES])
    rest = np.setdiff1d(np.arange(shares.shape[1]), chosen)
    names = short_labels([simulation.users[n] for n in chosen])

    def columns(values: FloatArray) -> FloatArray:
        return np.column_stack([values[:, chosen], values[:, rest].mean(axis=1)])

    return [*names, f"the other {rest.size:,}, mean"], columns
