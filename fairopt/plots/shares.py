"""Share or tasks of each user as bars; for many users, a curve of sorted shares with the levels marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt import wording
from fairopt.plots.colours import edge
from fairopt.plots.sheets import sheet
from fairopt.plots.style import COLOURS, GREY, HATCHES, LOG_FROM, headline, room_beside, short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.allocation import Allocation

__all__ = ["draw_users", "plot_shares", "rows_of_users"]

_BARS = 30  # more users than this are a curve
_CURVE_HEIGHT = 12  # height of a curve, in bars
_LEVELS = 6  # levels that are marked
_APART = 22  # pixels between two of them: their notes stand above their lines


def plot_shares(
    allocation: Allocation, *, ax: Axes | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw the share of each user, U[n] / phi[n] of the notion, with its tasks beside; only tasks if the notion has no such share.

    Up to 30 users are bars, in the order of the instance; more are a curve of sorted shares with the levels at which most users stop.

    Parameters
    ----------
    allocation : Allocation
    ax : matplotlib Axes, optional
        Draw into these axes.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> axes, = plot_shares(fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"]), "drf")).axes
    >>> [text.get_text() for text in axes.texts]
    ['0.6667  (3 tasks)', '0.6667  (2 tasks)']
    """
    rows = rows_of_users(allocation)
    page = sheet(ax, figsize, (7.0, max(1.4 + 0.25 * rows, 2.4)))
    (axes,) = page.axes
    if draw_users(axes, allocation, first="share"):
        axes.set_ylim(rows - 0.5, -0.6)
    page.headline(headline(allocation), title)
    return page.figure


def rows_of_users(allocation: Allocation) -> int:
    """Return the height of the picture of the users, in bars."""
    number = allocation.instance.n_users
    return number if number <= _BARS else _CURVE_HEIGHT


def draw_users(axes: Axes, allocation: Allocation, first: str = "tasks") -> bool:
    """Draw the users as bars, of "tasks" or "share", or as a curve of shares; return whether they are bars."""
    few = allocation.instance.n_users <= _BARS
    if few:
        _user_bars(axes, allocation, first)
        axes.tick_params(axis="y", length=0)
    else:
        _user_curve(axes, allocation)
    axes.spines[["top", "right"]].set_visible(False)
    return few


def _user_bars(axes: Axes, allocation: Allocation, first: str) -> None:
    tasks, shares, users = allocation.work, allocation.shares_to_show, allocation.instance.users
    what = "tasks" if allocation.instance.speeds_given is None else "work"
    called = allocation.share_heading
    lengths = tasks if first == "tasks" or shares is None else shares
    y = np.arange(len(users))
    apart = len(users) <= len(COLOURS)
    colours = COLOURS[: len(users)] if apart else [GREY] * len(users)
    bars = axes.barh(y, lengths, height=0.7, color=colours, edgecolor=[edge(colour) for colour in colours])
    if apart:
        for bar, hatch in zip(bars, HATCHES, strict=False):
            bar.set_hatch(hatch)
    notes = [wording.figure(value, 4) for value in tasks]
    if shares is not None and lengths is tasks:
        notes = [f"{note}  ({called} {wording.figure(share, 4)})" for note, share in zip(notes, shares, strict=True)]
    elif shares is not None:
        notes = [f"{wording.figure(share, 4)}  ({note} {what})" for note, share in zip(notes, shares, strict=True)]
    axes.bar_label(bars, notes, padding=4, fontsize=9)
    axes.set_yticks(y, short_labels(users))
    axes.set_xlim(0, max(float(lengths.max()), 1e-12) * room_beside(axes))
    axes.set_xlabel(what if lengths is tasks else called)
    axes.set_title(f"{(what if lengths is tasks else called).capitalize()} of each user", loc="left")


def _user_curve(axes: Axes, allocation: Allocation) -> None:
    """Draw sorted shares (tasks, if shares are per server), and the levels with most users."""
    shares = allocation.shares_to_show
    of_all = "tasks" if allocation.instance.speeds_given is None else "work"
    what, values = (of_all, allocation.work) if shares is None else (allocation.share_heading, shares)
    ranked = np.sort(values)
    positive = ranked[ranked > 0]
    axes.stairs(ranked, np.arange(ranked.size + 1), baseline=None, color=COLOURS[0], linewidth=1.8)
    if positive.size and positive[-1] / positive[0] > LOG_FROM:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, max(float(ranked[-1]), 1e-12) * 1.1)
    axes.set_xlim(0, ranked.size)
    drawn: list[float] = []
    span = axes.transData
    levels = [level for level in allocation.levels if not level.part]  # of a tree they are times, and no shares
    for level in sorted(levels, key=lambda level: -len(level.users))[:_LEVELS]:
        height = float(span.transform((0.0, level.value))[1])
        if any(abs(height - other) < _APART for other in drawn):
            continue
        drawn.append(height)
        axes.axhline(level.value, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        note = f"level {wording.figure(level.value, 4)}: {wording.plural(len(level.users), 'user')}"
        right = (ranked.size, level.value)  # there the curve is above the line
        axes.annotate(note, right, xytext=(-2, 4), textcoords="offset points", ha="right", fontsize=9, color=GREY)
    axes.set_xlabel("users, from the lowest")
    axes.set_ylabel(what)
    axes.set_title(f"{what.capitalize()} of each user", loc="left")
