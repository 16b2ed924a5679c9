"""Completion times of jobs under two schedulers: their distribution, and by how much the second reduces the mean, by size of the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairopt.instance import FloatArray
from fairopt.plots.sheets import sheet
from fairopt.plots.style import GREY, looks, percent_axis, percent_labels, short_label
from fairopt.simulation.completion import reduction_by_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_completion_times"]

_NAME, _TITLE = 24, 44  # characters of a name, and of a line of a title
_DECADES = 3  # from so many powers of ten on, only these are marked
_LEAST = 1.0  # seconds; shorter times are drawn here on the logarithmic axis


def plot_completion_times(
    times: Mapping[str, npt.ArrayLike],
    tasks: npt.ArrayLike,
    bounds: Sequence[int],
    caption: str = "",
    *,
    ax: Sequence[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the distributions on the left, and the reductions of `fairopt.simulation.completion.reduction_by_size` on the right.

    Parameters
    ----------
    times : mapping of two
        Name -> seconds from the submission of each job to its end, (jobs,); nan: it has not ended. The first is what the second is
        compared with. Only jobs that ended under both are shown.
    tasks : array (jobs,)
    bounds : sequence of int
        Of the classes by number of tasks, ascending.
    caption : str
        Printed below.
    ax : sequence of two matplotlib Axes, optional
        Draw into these axes: the distributions, and the reductions.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> figure = plot_completion_times({"slots": [10, 30, 100], "best-fit": [10, 10, 40]}, [1, 5, 60], [4, 50])
    >>> [label.get_text() for label in figure.axes[1].get_xticklabels()]
    ['1 to 4', '5 to 50', '> 50']
    """
    page = sheet(ax, figsize, (10.0, 4.6), ("completion times", "reduction of the mean"))
    left, right = page.axes
    values = {name: np.asarray(seconds, float) for name, seconds in times.items()}
    both = np.all([np.isfinite(seconds) for seconds in values.values()], axis=0)
    _distributions(left, {name: seconds[both] for name, seconds in values.items()})
    first, second = values
    reduction, jobs = reduction_by_size(values[first], values[second], tasks, bounds)
    _reductions(right, reduction, jobs.tolist(), bounds, looks(values)[second][0])
    left.set_title("Completion times of jobs", loc="left")
    names = [short_label(name, _NAME) for name in (second, first)]
    heading = f"Reduction of the mean, {' against '.join(names)}"
    right.set_title(heading if len(heading) <= _TITLE else heading.replace(", ", ",\n", 1), loc="left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    page.headline(f"{both.sum():,} jobs that ended under both", title)
    page.caption(caption)
    return page.figure


def _distributions(axes: Axes, times: Mapping[str, FloatArray]) -> None:
    """Draw the part of the jobs that took no longer than x."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for name, (colour, style) in looks(times).items():
        seconds = times[name]
        x = np.sort(np.maximum(seconds, _LEAST))
        part = np.arange(1, x.size + 1) / max(x.size, 1)
        axes.step(x, part, style, where="post", color=colour, linewidth=1.6, label=name)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if _decades(times) < _DECADES else (1.0,)))
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("seconds")
    axes.set_ylim(0, 1.02)
    percent_axis(axes.yaxis)
    axes.legend(frameon=False, loc="lower right")


def _decades(times: Mapping[str, FloatArray]) -> float:
    """Return over how many powers of ten the times go."""
    every = np.concatenate([np.maximum(seconds, _LEAST) for seconds in times.values()])
    return float(np.log10(every.max() / every.min())) if every.size else 0.0


def _reductions(axes: Axes, reduction: FloatArray, jobs: list[int], bounds: Sequence[int], colour: str) -> None:
    """Draw a bar for each class, with the reduction and the number of its jobs."""
    place = np.arange(reduction.size)
    low = [1, *(bound + 1 for bound in bounds)]
    names = [f"{a:,} to {b:,}" if a < b else f"{a:,}" for a, b in zip(low, bounds, strict=False)] + [f"> {bounds[-1]:,}"]
    shown = np.nan_to_num(reduction)
    axes.bar(place, shown, width=0.7, color=colour)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_ylim(min(1.3 * float(shown.min()), 0.0) - 0.02, max(1.15 * float(shown.max()), 0.1))
    for j, value in enumerate(reduction):
        text = f"{100 * value:.0f} %\n{jobs[j]:,}".replace("-", "\N{MINUS SIGN}") if np.isfinite(value) else "no job"
        axes.annotate(text, (j, max(shown[j], 0.0)), (0, 3), textcoords="offset points", ha="center", va="bottom", fontsize=8.5, color=GREY)
    axes.set_xticks(place, names, fontsize=8)
    axes.set_xlabel("tasks of a job (in each class: reduction, number of jobs)")
    percent_labels(axes.yaxis)
