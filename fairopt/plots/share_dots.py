"""Shares of many users in several allocations: a row for each user with its name, a mark for each allocation.

An outline says what a user asks for, and a line covers what the exact allocations grant it. Users on whom the allocations differ most
come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt import wording
from fairopt.analysis.measures import shares_per_task
from fairopt.instance import FloatArray, IntArray
from fairopt.plots.colours import MARKS, WHOLE, looks
from fairopt.plots.style import LOG_FROM, short_label, short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fairopt.analysis.comparison import Comparison, Row

__all__ = ["MOST", "draw_share_dots", "inches", "marks_of", "row_name"]

MOST = 40  # users that have a row
_NAME = 34  # characters of an allocation's name that are shown
_ROW = 0.27  # inches


def inches(rows: int) -> float:
    """Return the height of the rows of users."""
    return _ROW * rows


def row_name(row: Row) -> str:
    """Return the name of an allocation as it is shown."""
    return short_label(row.name, _NAME) + (" (not feasible)" if row.violations else "")


def draw_share_dots(axes: Axes, comparison: Comparison, rows: Sequence[Row]) -> None:
    """Draw the weighted dominant shares of up to 40 users in every allocation, those first on whom the allocations differ most."""
    from matplotlib.ticker import MaxNLocator

    instance = comparison.instance
    shares = np.array([row.dominant_shares for row in rows])
    chosen = _order(shares)[:MOST]
    shares, y = shares[:, chosen], np.arange(chosen.size, dtype=float)
    per_task, tasks = shares_per_task(instance)[chosen], instance.tasks[chosen]
    if per_task.shape[1] == 1 and np.isfinite(tasks).any():
        asks = np.where(np.isfinite(tasks) & np.isfinite(per_task[:, 0]), tasks * per_task[:, 0], 0.0)
        asks = np.minimum(asks, 1.06 * shares.max(axis=0))  # far beyond what anybody grants, it is as good as endless
        axes.barh(y, asks, height=0.86, facecolor="#F2F2F2", edgecolor="#BBBBBB", linewidth=0.8, label="asks for", zorder=0)
    exact = np.array([row.kind == "exact" for row in rows], bool)
    if exact.sum() > 1:
        low, high = shares[exact].min(axis=0), shares[exact].max(axis=0)
        axes.hlines(y, low, high, color="#777777", linewidth=1.6, label="from the least to the most of the exact", zorder=2)
    look = looks(row.name for row in rows)
    marks = marks_of(rows)
    shift = np.linspace(-0.27, 0.27, len(rows)) if len(rows) > 1 else np.zeros(1)
    for j, (row, own) in enumerate(zip(rows, shares, strict=True)):
        colour = look[row.name].colour
        face: dict[str, Any] = {"markerfacecolor": colour if row.kind == "exact" else "white", "markeredgecolor": colour}
        width = 0.6 if row.kind == "exact" else 1.3
        look_of_mark = {"markersize": 4.6, "markeredgewidth": width, "zorder": 4, "clip_on": False, **face}
        axes.plot(own, y + shift[j], linestyle="none", marker=marks[row.name], label=row_name(row), **look_of_mark)
    axes.hlines(y[1:] - 0.5, 0, 1, transform=axes.get_yaxis_transform(), color="#EEEEEE", linewidth=0.6, zorder=0)
    axes.set_yticks(y, short_labels([instance.users[n] for n in chosen.tolist()]), fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(chosen.size, 1) - 0.5, -0.5)
    positive = shares[shares > 0]
    largest = float(positive.max(initial=0.0)) or 1.0
    if positive.size and largest > LOG_FROM * positive.min():
        low = float(positive.min())
        axes.set_xscale("symlog", linthresh=low, linscale=0.4)
        decades = 10.0 ** np.arange(np.ceil(np.log10(low)), np.floor(np.log10(1.6 * largest)) + 1)
        axes.set_xticks([0.0, *decades], [wording.figure(value) for value in (0.0, *decades)])
        axes.set_xticks([], minor=True)
        axes.set_xlim(0, 1.6 * largest)
    else:
        axes.set_xlim(0, 1.06 * largest)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: wording.figure(value))
    axes.set_xlabel("weighted dominant share")
    axes.grid(axis="x", color="#EEEEEE", linewidth=0.6)
    axes.set_axisbelow(True)
    few = instance.n_users <= MOST
    axes.set_title("Share of each user" if few else f"The {MOST} of {instance.n_users:,} users that differ most", loc="left")


def marks_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return a mark for each allocation: whole tasks of a notion have that of the notion."""
    kinds = {row.name: row.name.replace(WHOLE, "") for row in rows}
    order = list(dict.fromkeys(kinds.values()))
    return {name: MARKS[order.index(kind) % len(MARKS)] for name, kind in kinds.items()}


def _order(shares: FloatArray) -> IntArray:
    """Return users by the standard deviation of their shares, as a part of the largest; the order of the instance among equals."""
    high = shares.max(axis=0, initial=0.0)
    apart = np.divide(shares.std(axis=0), high, out=np.zeros_like(high), where=high > 0)
    return np.argsort(-apart.round(6), kind="stable")
