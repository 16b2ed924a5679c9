"""Convergence of the servers to an equilibrium: change in each sweep, violation of the condition, and tasks of each user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.plots.sheets import sheet
from fairopt.plots.style import COLOURS, GREY, STYLES, short_label
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.solvers.equilibrium.engine import Sweeps

__all__ = ["plot_convergence"]

_FLOOR = 1e-17  # drawn instead of 0 on the logarithmic axis
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
    page.headline("", title)
    return page.figure


def _residuals(axes: Axes, trace: Sweeps) -> None:
    sweeps = np.arange(1, trace.changes.size + 1)
    mark = "o" if sweeps.size <= _MARKED else ""
    change = np.maximum(trace.changes, _FLOOR)
    known = np.isfinite(trace.violations)
    axes.plot(sweeps[:-1], change[:-1], color=COLOURS[0], marker=mark, markersize=4, label="largest change of a sweep")
    axes.plot(
        sweeps[-1:], change[-1:], color=COLOURS[0], marker="D", markerfacecolor="white", linestyle="", label="change of the exact finish"
    )
    violation = np.maximum(trace.violations[known], _FLOOR)
    axes.plot(
        sweeps[known], violation, color=COLOURS[5], linestyle="--", marker="s", markersize=4, label="largest violation of the condition"
    )
    axes.set_yscale("log")
    axes.set_ylabel("relative")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1, fontsize=9)
    axes.set_title("Distance to the equilibrium", loc="left")


def _tasks(axes: Axes, trace: Sweeps) -> None:
    """Draw every user: up to eight in a colour each, more in grey."""
    sweeps = np.arange(1, len(trace.tasks) + 1)
    few = trace.tasks.shape[1] <= len(COLOURS)
    mark = "o" if sweeps.size <= _MARKED and few else ""
    for n, tasks in enumerate(trace.tasks.T):
        look: dict[str, Any] = {"color": COLOURS[n], "linestyle": STYLES[n % 4]} if few else {"color": GREY, "linewidth": 0.6, "alpha": 0.6}
        axes.plot(sweeps, tasks, marker=mark, markersize=3, label=short_label(trace.users[n]) if few else None, **look)
    if few and trace.tasks.size:
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=9)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("tasks" if few else f"tasks of {plural(trace.tasks.shape[1], 'user')}")
    cut = len(trace.tasks) < trace.changes.size
    axes.set_title("Tasks of each user" + (f", first {plural(len(trace.tasks), 'sweep')}" if cut else ""), loc="left")
