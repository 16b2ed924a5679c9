"""A history over time: the shortfall of all owners, and what the owners concerned most received beside what they were due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.instance import FloatArray
from fairopt.plots.sheets import sheet
from fairopt.plots.style import COLOURS, percent_axis, percent_labels, short_labels
from fairopt.wording import figure, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.histories.result import History

__all__ = ["plot_history"]

_LINES = 8  # owners with a panel of their own
_ACROSS = 4
_CAPTION = "Dominant shares of the cluster; their sum over owners may exceed 100 %."
_OF_WORK = "Parts of the work that each owner could do with all capacity in one pool; their sum over owners may exceed 100 %."
_LACKED, _BEYOND = COLOURS[5], COLOURS[0]


def plot_history(
    history: History, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw the shortfall of all owners over time, and below it, for those concerned most, what they received and what they were due.

    Parameters
    ----------
    history : History
    ax : sequence of matplotlib Axes, optional
        Draw into these axes, one for each panel.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import pandas as pd
    >>> from fairopt.histories.running import history
    >>> from fairopt.instance import Instance
    >>> jobs = pd.DataFrame({"user": ["A", "B"], "submit": [0, 1], "start": [0, 2], "end": [2, 3], "tasks": [8, 8], "cpu": [1, 1]})
    >>> figure = plot_history(history(jobs, Instance([[8]], [[1]], resources=["cpu"])))
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Shortfall of all owners', 'B', 'A']
    """
    seconds = np.where(history.received.bin_seconds > 0, history.received.bin_seconds, np.nan)
    received = history.received.bins / seconds[:, None]
    lacked, beyond = (history.sums.bins[:, :, k] / seconds[:, None] for k in (0, 1))
    due = received + lacked - beyond
    concerned = np.argsort(-history.sums.bins.sum(axis=(0, 2)), kind="stable")[:_LINES]
    concerned = concerned[np.argsort(-history.sums.bins[:, concerned, 0].sum(axis=0), kind="stable")]  # who lacks most comes first
    names = short_labels([history.owners[n] for n in concerned])
    across = min(len(names), _ACROSS)
    panels = ["all", *(f"owner {k}" for k in range(len(names)))]
    grid = [panels[1 + k : 1 + k + across] for k in range(0, len(names), across)]
    grid[-1] += ["."] * (across - len(grid[-1]))
    heights = [2.6, *[2.2] * len(grid)]
    options: dict[str, Any] = {"mosaic": [["all"] * across, *grid], "height_ratios": heights, "sharex": True}
    page = sheet(ax, figsize, (10.0, 0.95 * sum(heights) + 1.6), panels, down=True, **options)
    times = _times(history)
    top = page.axes[0]
    _steps(top, times, lacked.sum(axis=1), _LACKED, fill=True)
    top.set_title("Shortfall of all owners", loc="left")
    top.set_ylim(0, max(0.05, 1.08 * float(np.nanmax(lacked.sum(axis=1), initial=0.0))))
    percent_axis(top.yaxis)
    largest = max(float(np.nanmax(values[:, concerned], initial=0.0)) for values in (received, due)) or 1.0
    for k, n in enumerate(concerned):
        axes = page.axes[1 + k]
        _owner(axes, times, received[:, n], due[:, n])
        axes.set_title(names[k], loc="left", fontsize=9)
        axes.set_ylim(0, 1.06 * largest)
        percent_labels(axes.yaxis)
        axes.tick_params(labelsize=8, labelleft=k % across == 0)
    for axes in page.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.0)
    _label(page.axes, history)
    total = history.to_frame()[["shortfall", "entitled"]].sum()
    error = "" if history.is_exact else f" ± {figure(float(np.sqrt(history.sums.squares[:, -1, 0].sum())) / 3600)}"
    page.headline(
        f"{history.notion}: {plural(len(history.owners), 'owner')} lacked {figure(float(total['shortfall']))}{error} of "
        f"{figure(float(total['entitled']))} share-hours",
        title,
    )
    some = f" Shown are {len(names)} of {len(history.owners):,} owners, for whom received and due differ most."
    caption = _OF_WORK if history.instance.differs_by_server else _CAPTION
    page.caption(caption + (some if len(names) < len(history.owners) else ""))
    page.legend_above(top, 4, *_legend())
    return page.figure


def _legend() -> tuple[list[Any], list[str]]:
    """Return what the lines and areas mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], color=_BEYOND, linewidth=1.3),
        Line2D([], [], color="black", linewidth=0.9),
        Patch(color=_LACKED, alpha=0.45, linewidth=0),
        Patch(color=_BEYOND, alpha=0.2, linewidth=0),
    ]
    return handles, ["due", "received", "lacked while work waited", "held beyond its due"]


def _times(history: History) -> Any:
    """Return the edges of the parts, as dates if the log has dates, else in the largest unit that suits."""
    edges = np.clip(history.bin_edges, history.windows[0][0], history.windows[-1][1])
    clock = history.setting.log.clock
    if clock.zero is None:
        return edges / _unit(history)[0]
    from datetime import datetime

    shown = [datetime.fromisoformat(str(clock.iso(edge))).replace(tzinfo=None) for edge in edges]
    return np.array(shown, "datetime64[us]")


def _unit(history: History) -> tuple[float, str]:
    length = history.windows[-1][1] - history.windows[0][0]
    return (86_400.0, "days") if length >= 3 * 86_400 else (3600.0, "hours") if length >= 3 * 3600 else (1.0, "seconds")


def _steps(axes: Axes, times: Any, values: FloatArray, colour: str, *, fill: bool = False) -> None:
    """Draw a step function whose values hold between two times."""
    ends = np.append(values, values[-1:])
    if fill:
        axes.fill_between(times, ends, step="post", color=colour, alpha=0.35, linewidth=0)
    axes.step(times, ends, where="post", color=colour, linewidth=1.1)


def _owner(axes: Axes, times: Any, received: FloatArray, due: FloatArray) -> None:
    own, right = np.append(received, received[-1:]), np.append(due, due[-1:])
    axes.fill_between(times, own, right, where=right > own, step="post", color=_LACKED, alpha=0.45, linewidth=0)
    axes.fill_between(times, own, right, where=right < own, step="post", color=_BEYOND, alpha=0.2, linewidth=0)
    axes.step(times, right, where="post", color=_BEYOND, linewidth=1.3)
    axes.step(times, own, where="post", color="black", linewidth=0.9)


def _label(axes: Sequence[Axes], history: History) -> None:
    """Label the common axis of time."""
    if history.setting.log.clock.zero is None:
        axes[0].set_xlabel(_unit(history)[1])
        axes[0].tick_params(labelbottom=True)
        return
    from matplotlib import dates

    locator_of: Any = dates.AutoDateLocator  # not typed in matplotlib
    formatter_of: Any = dates.ConciseDateFormatter

    for k, each in enumerate(axes):
        locator = locator_of(minticks=5 if k == 0 else 2, maxticks=12 if k == 0 else 5)
        each.xaxis.set_major_locator(locator)
        each.xaxis.set_major_formatter(formatter_of(locator, show_offset=k == 0))
    axes[0].tick_params(labelbottom=True)
