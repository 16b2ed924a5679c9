"""Convergence of the servers to an equilibrium: change in each sweep, violation of the condition, and tasks of each user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.plots.sheets import sheet
from fairopt.plots.style import GREY, LINES, LOG_FROM, STYLES, short_labels
from fairopt.wording import figure, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.solvers.equilibrium.record import Sweeps

__all__ = ["plot_convergence"]

_ROUNDING = 1e-14  # relative: less is a rounding error
_FEW = 3  # up to so many sweeps have numbers
_LOG_SWEEPS = 50  # more sweeps than this are on a logarithmic axis
_MARKED = 60  # up to so many sweeps have a mark each


def plot_convergence(
    trace: Sweeps, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw ``allocation.trace`` of the engine "best-response": change and violation of each sweep, and tasks of each user.

    Parameters
    ----------
    trace : Sweeps
    ax : sequence of two matplotlib Axes, optional
        Draw into these axes: the distance, and the tasks.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    >>> import fairopt as fo
    >>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [.5, 1, 0], [1, .5, 0]])
    >>> figure = plot_convergence(fo.solve(instance, "psdsf").trace)
    >>> [(axes.get_title(loc="left"), axes.get_yscale()) for axes in figure.axes]
    [('Distance to the equilibrium', 'log'), ('Tasks of each user', 'linear')]
    """
    from matplotlib.ticker import MaxNLocator

    page = sheet(ax, figsize, (10.0, 4.0), ("distance to the equilibrium", "tasks of each user"))
    left, right = page.axes
    _residuals(left, trace)
    _tasks(right, trace)
    for axes in (left, right):
        axes.set_xlabel("sweeps of all servers")
        axes.spines[["top", "right"]].set_visible(False)
        if trace.changes.size > _LOG_SWEEPS:
            axes.set_xscale("log")
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if axes.get_legend_handles_labels()[0]:
            page.legend_below(axes, 1 if axes is left else 3)
    page.headline("", title)
    return page.figure


def _residuals(axes: Axes, trace: Sweeps) -> None:
    sweeps = np.arange(1, trace.changes.size + 1)
    mark = "o" if sweeps.size <= _MARKED else ""
    floor = _floor(trace)
    change = np.maximum(trace.changes, floor)
    known = np.isfinite(trace.violations)
    violation = np.maximum(trace.violations[known], floor)
    axes.plot(
        sweeps[known], violation, color=LINES[5], linestyle="--", marker="s", markersize=7, label="largest violation of the condition"
    )
    axes.plot(sweeps[:-1], change[:-1], color=LINES[0], marker=mark, markersize=4, label="largest change of a sweep")
    axes.plot(
        sweeps[-1:], change[-1:], color=LINES[0], marker="D", markerfacecolor="white", linestyle="", label="change of the exact finish"
    )
    axes.set_yscale("log")
    shown = np.concatenate([change, violation])
    axes.set_ylim(floor / 3, 10 * float(shown.max(initial=1.0)))
    if sweeps.size <= _FEW:  # then each mark has its number
        for places, values, side, align in ((sweeps, change, 7, "left"), (sweeps[known], violation, -7, "right")):
            for place, value in zip(places, values, strict=True):
                axes.annotate(
                    "0" if value <= floor else figure(value, 2),
                    (place, value),
                    xytext=(side, 0),
                    textcoords="offset points",
                    ha=align,
                    va="center",
                    fontsize=8,
                    color=GREY,
                )
        axes.set_xlim(0.5, sweeps.size + 0.5)
    if (shown <= floor).any():
        axes.axhline(floor, color=GREY, linewidth=0.6, linestyle=(0, (2, 3)), zorder=0)
        axes.annotate(
            "0 to rounding",
            (0.5, floor),
            (0, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=GREY,
        )
    axes.set_ylabel("relative")
    axes.set_title("Distance to the equilibrium", loc="left")


def _floor(trace: Sweeps) -> float:
    """Return what is drawn instead of 0 and of rounding errors: far enough below the least of all others to be seen."""
    values = np.concatenate([trace.changes, trace.violations[np.isfinite(trace.violations)]])
    above = values[values > _ROUNDING]
    return float(10.0 ** (np.floor(np.log10(above.min())) - 1)) if above.size else _ROUNDING


def _tasks(axes: Axes, trace: Sweeps) -> None:
    """Draw every user: up to eight in a colour each, more in grey."""
    sweeps = np.arange(1, len(trace.tasks) + 1)
    few = trace.tasks.shape[1] <= len(LINES)
    mark = "o" if sweeps.size <= _MARKED and few else ""
    names = short_labels(trace.users) if few else []
    for n, tasks in enumerate(trace.tasks.T):
        look: dict[str, Any] = {"color": LINES[n], "linestyle": STYLES[n % 4]} if few else {"color": GREY, "linewidth": 0.6, "alpha": 0.6}
        axes.plot(sweeps, tasks, marker=mark, markersize=3, label=names[n] if few else None, **look)
    if sweeps.size <= _FEW:
        axes.set_xlim(0.5, sweeps.size + 0.5)
    largest, others = float(trace.tasks.max(initial=0.0)), float(np.median(trace.tasks)) if trace.tasks.size else 0.0
    if not few and others > 0 and largest > LOG_FROM * others:
        axes.set_yscale("symlog", linthresh=others / 10)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("tasks" if few else f"tasks of {plural(trace.tasks.shape[1], 'user')}")
    cut = len(trace.tasks) < trace.changes.size
    axes.set_title("Tasks of each user" + (f", first {plural(len(trace.tasks), 'sweep')}" if cut else ""), loc="left")
