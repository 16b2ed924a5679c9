"""A study: fairness against efficiency, the mean over the seeds and its interval for each notion and schedule.

A panel for each instance. The name of each notion or schedule stands beside its mark, which has its colour: filled for an exact
allocation, else white inside. Marks in one place share one label.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairopt import wording
from fairopt.errors import Unsupported
from fairopt.plots.colours import MARKS, WHOLE, looks
from fairopt.plots.labels import label_points, listed, together
from fairopt.plots.sheets import sheet
from fairopt.plots.style import percent_labels, short_label, wrapped
from fairopt.studies.means import SUFFIXES, Interval, Means
from fairopt.studies.titles import entry_title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_study"]

_MOST = 9  # instances that have a panel
_ACROSS = 3
_NAME, _WRAP = 30, 34  # characters of a name, and of a line of a label
_FAIRNESS = {"smallest_share": "smallest weighted dominant share", "jain": "Jain's index of the weighted dominant shares"}
_SPREADS: dict[Interval, str] = {"se": "standard error", "sd": "standard deviation", "ci95": "95 % confidence interval"}
_DUE = 0.06  # parts of the width and height around the marks


def plot_study(
    frame: pd.DataFrame,
    fairness: Literal["smallest_share", "jain"] = "smallest_share",
    *,
    interval: Interval = "se",
    titles: Mapping[str, str] | None = None,
    ax: Axes | Sequence[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the means of a study over its seeds, with their intervals as bars: fairness against efficiency.

    Parameters
    ----------
    frame : DataFrame
        Of `fairopt.study`.
    fairness : "smallest_share" or "jain"
        What is drawn upwards.
    interval : "se", "sd" or "ci95"
        What the bars are, on both sides of the mean: the standard error, the standard deviation, or the 95 % confidence interval, as in
        `fairopt.study_table`.
    titles : mapping, optional
        Other names of entries and instances; by default entries are called as in `fairopt.study_table`.
    ax : matplotlib Axes, or a sequence of them, optional
        Draw into these axes, one for each instance.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    Unsupported
        There is no such measure or interval, or no row has an allocation.

    >>> import fairopt as fo
    >>> frame = fo.study({"small": fo.Instance([[9, 18]], [[1, 4], [3, 1]])}, notions=["drf", "efficiency"], workers=1)
    >>> axes, = plot_study(frame).axes
    >>> sorted(text.get_text() for text in axes.texts if text.get_text())
    ['DRF', 'Efficiency']
    """
    if fairness not in _FAIRNESS:
        raise Unsupported(f'there is no picture of "{fairness}"; choose from {", ".join(_FAIRNESS)}')
    if interval not in _SPREADS:
        raise Unsupported(f'interval is {interval!r}; give "se", "sd" or "ci95"')
    called = {str(name): entry_title(str(name)) for name in frame["entry"].unique()} | dict(titles or {})
    columns = ["efficiency", fairness]
    spreads = [f"{name} {SUFFIXES[interval]}" for name in columns]
    means = Means(frame, interval, None).frame(columns).dropna(subset=columns)
    names = list(dict.fromkeys(means.index.get_level_values("instance")))[:_MOST]
    if not names:
        raise Unsupported("no row of the study has an allocation to draw")
    across = min(len(names), _ACROSS)
    rows = [names[k : k + across] for k in range(0, len(names), across)]
    rows[-1] = [*rows[-1], *["."] * (across - len(rows[-1]))]
    page = sheet(ax, figsize, (max(6.4, 4.4 * across), 0.6 + 4.2 * len(rows)), [str(name) for name in names], mosaic=rows)
    look, marks = looks(means.index.get_level_values("entry")), _marks(means.index.get_level_values("entry"))
    for axes, name in zip(page.axes, names, strict=True):
        part = means.xs(name, level="instance")
        places = part[columns].to_numpy(float)
        errors = np.nan_to_num(part[spreads].to_numpy(float))
        for entry, kind, place, error in zip(part.index, part["kind"], places, errors, strict=True):
            colour = look[entry].colour
            style: dict[str, Any] = {"markerfacecolor": colour if kind == "exact" else "white", "markeredgewidth": 1.3, "capsize": 2}
            axes.errorbar(
                place[0], place[1], yerr=error[1], xerr=error[0], color=colour, marker=marks[entry], markersize=6, linewidth=1.0, **style
            )
        _limits(axes, places, errors)
        axes.set_title(wrapped(called.get(str(name), str(name)), 44), loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        percent_labels(axes.xaxis)
        axes.set_xlabel("efficiency")
        axes.set_ylabel(_FAIRNESS[fairness])
    seeds = int(frame["seed"].nunique())
    left_out = len(frame["instance"].unique()) - len(names)
    spread = f", mean and {_SPREADS[interval]} of {wording.plural(seeds, 'seed')}" if seeds > 1 else ""
    page.headline(f"Fairness against efficiency{spread}", title)
    page.caption(f"{wording.plural(left_out, 'more instance')} not shown" if left_out else "")
    page.figure.draw_without_rendering()  # settles the layout
    if page.own:
        page.figure.set_layout_engine("none")
    for axes, name in zip(page.axes, names, strict=True):
        part = means.xs(name, level="instance")
        places = part[columns].to_numpy(float)
        groups = together(places, axes)
        texts = [listed([short_label(called.get(str(part.index[j]), str(part.index[j])), _NAME) for j in group]) for group in groups]
        errors = np.nan_to_num(part[spreads].to_numpy(float))
        sides = np.eye(2)[None] * errors[:, None]  # each error along its axis
        lines = [np.array([place - side, place + side]) for place, own in zip(places, sides, strict=True) for side in own if side.any()]
        label_points(
            axes,
            np.array([places[group].mean(axis=0) for group in groups]).reshape(-1, 2),
            ["\n".join(textwrap.wrap(text, _WRAP, break_on_hyphens=False)) for text in texts],
            lines,
        )
    return page.figure


def _marks(entries: Iterable[str]) -> dict[str, str]:
    """Return a mark for each entry: whole tasks of a notion have that of the notion."""
    kinds = list(dict.fromkeys(str(entry).replace(WHOLE, "") for entry in entries))
    return {entry: MARKS[kinds.index(str(entry).replace(WHOLE, "")) % len(MARKS)] for entry in entries}


def _limits(axes: Axes, places: np.ndarray, errors: np.ndarray) -> None:
    """Leave room around the marks for their names."""
    low, high = (places - errors).min(axis=0), (places + errors).max(axis=0)
    room = np.maximum((high - low) * 0.25, _DUE * np.maximum(high, 1e-12))
    for axis, least, most in zip((axes.xaxis, axes.yaxis), low - room, high + room, strict=True):
        axis.set_view_interval(least, most, ignore=True)
        marks = axis.get_major_locator().tick_values(least, most)
        axis.set_ticks([mark for mark in marks if max(least, 0.0) <= mark <= min(most, 1.0)])  # no measure is below 0 or above 1
