"""Schedulers side by side, user by user: bounded slowdown, wait and shortfall, a dot for each scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt.plots.colours import MARKS, looks
from fairopt.plots.sheets import sheet
from fairopt.plots.style import LOG_FROM, short_labels
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.simulation.side_by_side import SideBySide

__all__ = ["plot_side_by_side_users"]

_USERS = 25
_UNITS = ((2 * 86_400.0, 86_400.0, "days"), (2 * 3600.0, 3600.0, "hours"), (0.0, 1.0, "seconds"))


def plot_side_by_side_users(
    found: SideBySide, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw bounded slowdown, mean wait and shortfall of each user, a dot for each scheduler; of many users, those who lack most.

    Parameters
    ----------
    found : SideBySide
    ax : sequence of matplotlib Axes, optional
        Draw into these axes, one for each of the three panels.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
    >>> trace = fo.Trace(["A", "B"], [0, 5], [4, 4], [[1], [1]], [10, 10], resources=["cpu"])
    >>> figure = plot_side_by_side_users(fo.compare_over_time(trace, cluster, ["fifo", "drfh"]))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Bounded slowdown', 'Mean wait, seconds', 'Shortfall, share-hours']
    """
    frame = found.users_frame()
    users = found.users_by_shortfall()[:_USERS]
    page = sheet(ax, figsize, (10.0, 1.9 + 0.3 * len(users)), ("slowdown", "wait", "shortfall"))
    longest = float(np.nanmax(frame["wait_s"].to_numpy(float), initial=0.0))
    _, unit, word = next(entry for entry in _UNITS if longest >= entry[0])
    look = looks(course.name for course in found.courses)
    names = short_labels([course.name for course in found.courses])
    place = {user: k for k, user in enumerate(users)}
    columns = (("bounded_slowdown", 1.0), ("wait_s", unit), ("shortfall_h", 1.0))
    for k, (course, name) in enumerate(zip(found.courses, names, strict=True)):
        own = frame[(frame["scheduler"] == course.name) & frame["user"].isin(place)]
        rows = own["user"].map(place).to_numpy(float)
        for axes, (column, part) in zip(page.axes, columns, strict=True):
            values = own[column].to_numpy(float) / part
            mark = MARKS[k % len(MARKS)]
            axes.scatter(values, rows, color=look[course.name].colour, marker=mark, s=36, alpha=0.9, linewidths=0, label=name, zorder=3)
    for k, (axes, text) in enumerate(zip(page.axes, ("Bounded slowdown", f"Mean wait, {word}", "Shortfall, share-hours"), strict=True)):
        axes.set_title(text, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_yticks(range(len(users)), short_labels(users) if k == 0 or not page.own else [""] * len(users))
        axes.set_ylim(len(users) - 0.4, -0.6)
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        axes.tick_params(axis="y", length=0)
        axes.set_axisbelow(True)
    slow = frame["bounded_slowdown"].to_numpy(float)
    if np.isfinite(slow).any() and np.nanmax(slow) > LOG_FROM * max(np.nanmin(slow), 1.0):
        page.axes[0].set_xscale("log")
    for axes in page.axes[1:]:
        axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    handles, labels = page.axes[0].get_legend_handles_labels()
    page.legend(handles, labels, loc="outside lower left", at=0, ncols=5, fontsize=9)
    number = len(found.users_by_shortfall())
    some = "" if number == len(users) else f"the {len(users)} of "
    lack = "" if number == len(users) else " who lack most"
    page.headline(f"{some}{plural(number, 'user')}{lack} under each scheduler", title)
    return page.figure
