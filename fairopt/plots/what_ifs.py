"""Two instances side by side: how many tasks each user gains or loses, and what each difference would do alone.

A panel for each notion or schedule. A bar to the right is a gain, one to the left a loss; tasks before and after stand beside
it. A mark is the change by one difference alone. Of many users, those whose tasks change most are shown, from the largest gain to the
largest loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt import wording
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import WRITTEN
from fairopt.plots.sheets import is_narrow, sheet
from fairopt.plots.style import GREY, room_beside, short_label, short_labels, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.analysis.what_ifs import Effect, UserChange, WhatIf

__all__ = ["plot_what_if"]

_MOST = 40  # users with a bar
_ORDERED = 12  # more users than this are ordered by their change
_PANELS = 4  # notions and schedules that have a panel
_EFFECTS = 4  # differences that have a mark
_GAIN, _LOSS = "#0072B2", "#D55E00"
_MARKS = ("D", "s", "^", "o")
_TITLE = 46  # characters of a line of a title


def plot_what_if(
    found: WhatIf, *, ax: Axes | Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None
) -> Figure:
    """Draw the change of the tasks of each user, in up to four notions and schedules.

    Parameters
    ----------
    found : WhatIf
    ax : matplotlib Axes, or a sequence of them, optional
        Draw into these axes, one for each notion or schedule.
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
        No notion and no schedule has an allocation of both instances.

    >>> import fairopt as fo
    >>> lab = fo.Instance([[8]], [[1], [2]], users=["vision", "language"], servers=["new"], resources=["gpu"])
    >>> axes, = plot_what_if(fo.what_if(lab, lab.replace(weights={"vision": 2}))).axes
    >>> [text.get_text() for text in axes.texts]
    ['4 → 5.333', '2 → 1.333']
    """
    changes = {row: found.changes(row) for row in found.rows}
    rows = [row for row, own in changes.items() if own]
    if not rows:
        raise Unsupported(f"there is nothing to draw: {found.summary(found.rows[0])}" if found.rows else "there is nothing to draw")
    drawn = rows[:_PANELS]
    chosen = _chosen([changes[row] for row in drawn])
    effects = {row: found.effects.get(row, ()) for row in drawn}
    marked = 0 < max(len(own) for own in effects.values()) <= _EFFECTS
    width = 2.6 + (4.6 if len(drawn) == 1 else 3.6 * len(drawn))
    down = is_narrow(figsize) and ax is None
    page = sheet(ax, figsize, (width, max(1.9 + 0.27 * len(chosen) + 0.25 * marked, 2.8)), drawn, down=down)
    names = short_labels([changes[drawn[0]][n].name for n in chosen])
    for k, (axes, row) in enumerate(zip(page.axes, drawn, strict=True)):
        _panel(axes, [changes[row][n] for n in chosen], effects[row] if marked else ())
        axes.set_yticks(range(len(chosen)), names if not k or down or not page.own else [])
        axes.set_title(_heading(row, found.summary(row)), loc="left", fontsize=10)
    handles, labels = page.axes[0].get_legend_handles_labels()
    if handles:
        page.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=2 if len(drawn) == 1 else 4,
            fontsize=9,
            title="change by one difference alone",
        )
    users = len(found.users)
    most = " most" if len(chosen) == _MOST else ""
    shown = f" (the {len(chosen)} of {users:,} users whose tasks change{most})" if len(chosen) < users else ""
    before, after = found.names
    what = str(found.differences[0]) if len(found.differences) == 1 else wording.plural(len(found.differences), "difference")
    if len(found.groups) == 1 < len(found.differences):
        what = found.groups[0][0]
    page.headline(f"{after} against {before}: {what.replace('->', '→')}{shown}", title)
    left_out = len(rows) - len(drawn)
    page.caption(f"{wording.plural(left_out, 'more allocation')} not shown" if left_out else "")
    return page.figure


def _chosen(columns: Sequence[Sequence[UserChange]]) -> list[int]:
    """Return which users are shown, by position, from top to bottom."""
    moved = np.array([[change.moved for change in own] for own in columns])
    most = np.abs(moved).max(axis=1, keepdims=True, initial=0.0)
    weight = np.divide(np.abs(moved), most, out=np.zeros_like(moved), where=most > 0).max(axis=0)
    chosen = np.sort(np.argsort(-weight, kind="stable")[:_MOST])
    if moved.shape[1] > _ORDERED:
        chosen = chosen[weight[chosen] > 0] if weight.any() else chosen
        chosen = chosen[np.argsort(-moved[0, chosen], kind="stable")]
    return [int(n) for n in chosen]


def _panel(axes: Axes, changes: Sequence[UserChange], effects: Sequence[Effect]) -> None:
    from matplotlib.ticker import MaxNLocator

    y = np.arange(len(changes))
    moved = np.array([change.moved for change in changes])
    for side, colour in ((moved > 0, _GAIN), (moved < 0, _LOSS)):
        axes.barh(y[side], moved[side], height=0.66, color=colour, edgecolor="white", linewidth=0.3, zorder=2)
    ends = np.maximum(moved, 0.0)
    every: list[FloatArray] = [moved]
    for mark, effect in zip(_MARKS, effects, strict=False):
        alone = np.array([effect.changes.get(change.name, np.nan) for change in changes])
        alone[np.abs(alone) <= WRITTEN * np.abs(alone, where=np.isfinite(alone), out=np.zeros_like(alone)).max(initial=0.0)] = np.nan
        look = {"markerfacecolor": "white", "markeredgecolor": "black", "markeredgewidth": 1.0, "zorder": 4, "clip_on": False}
        axes.plot(alone, y, linestyle="none", marker=mark, markersize=5, label=short_label(effect.what, 40), **look)  # type: ignore[arg-type]
        ends = np.fmax(ends, alone)
        every.append(alone[np.isfinite(alone)])
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=3)
    values = np.concatenate(every)
    low, high = min(float(values.min(initial=0.0)), 0.0), max(float(values.max(initial=0.0)), 0.0)
    span = (high - low) or 1.0
    axes.set_xlim(low - 0.03 * span if low else -0.02 * span, (high or 0.02 * span) * room_beside(axes))
    for place, (change, end) in enumerate(zip(changes, ends, strict=True)):
        text = axes.annotate(_note(change), (end, place), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8)
        text.set_color(GREY if change.verdict == "as before" else "black")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(changes) - 0.4, -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{'+' if value > 0 else ''}{wording.figure(value)}".replace("-", "\N{MINUS SIGN}"))
    axes.set_xlabel("tasks more or fewer")
    axes.spines[["top", "right", "left"]].set_visible(False)


def _note(change: UserChange) -> str:
    """Return the tasks before and after: "4 → 16"."""
    if change.before is None or change.after is None:
        return f"{change.verdict}: {wording.plural((change.before or 0.0) + (change.after or 0.0), 'task')}"
    if change.verdict == "as before":
        return f"{wording.figure(change.before, 4)} as before"
    return f"{wording.figure(change.before, 4)} → {wording.figure(change.after, 4)}"


def _heading(row: str, summary: str) -> str:
    """Return the name of an allocation and who gains and loses, on lines of their own."""
    return f"{wrapped(row, _TITLE)}\n{wrapped(summary, _TITLE)}"
