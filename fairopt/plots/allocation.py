"""An allocation: left, what each user gets; right, what it takes of each server.

Up to 30 users are bars, more are a curve of sorted shares with the levels marked; up to 8 users keep one colour on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray
from fairopt.plots.style import COLOURS, GREY, HATCHES, LOG_FROM, STYLES, percent_axis, short_label
from fairopt.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.allocation import Allocation

__all__ = ["plot_allocation"]

_BARS = 30  # more users than this are a curve
_ROWS = 40  # more bars of servers than this are curves
_CURVE_HEIGHT = 12  # as high as so many bars
_LEVELS = 6  # levels that are marked


def plot_allocation(allocation: Allocation) -> Figure:
    """Draw tasks (or sorted shares) per user and utilization per server.

    Parameters
    ----------
    allocation : Allocation

    Returns
    -------
    matplotlib.figure.Figure

    >>> import fairopt as fo
    >>> allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"]), "drf")
    >>> [axes.get_title(loc="left") for axes in plot_allocation(allocation).axes]
    ['Tasks of each user', 'Use of each server']
    """
    from matplotlib.figure import Figure

    instance = allocation.instance
    things, layers = _layers(allocation)
    left = instance.n_users if instance.n_users <= _BARS else _CURVE_HEIGHT
    rows = instance.n_servers * (len(things) + (len(things) > 1))
    right = rows if rows <= _ROWS else _CURVE_HEIGHT
    figure = Figure(figsize=(10.0, max(1.5 + 0.25 * max(left, right), 2.8)), layout="constrained")
    users, servers = figure.subplots(1, 2, width_ratios=(1, 1.1))
    if instance.n_users <= _BARS:
        _user_bars(users, allocation)
    else:
        _user_curve(users, allocation)
    if rows <= _ROWS:
        _server_bars(servers, allocation, things, layers)
    else:
        _server_curves(servers, allocation, things, layers.sum(axis=0))
    for axes, number, drawn in ((users, left, instance.n_users <= _BARS), (servers, right, rows <= _ROWS)):
        axes.spines[["top", "right"]].set_visible(False)
        if drawn:  # bars as thick as on the other side, or twice
            axes.set_ylim(max(number, left / 2, right / 2) - 0.5, -0.6)
            axes.tick_params(axis="y", length=0)
    whole = f"{plural(instance.n_users, 'user')} on {plural(instance.counts.sum(), 'server')}"
    how = f" ({allocation.solver}, {reservation})" if (reservation := allocation.certificate.reservation) else ""
    title = f"{allocation.notion}{how}: {whole}, sharing {allocation.sharing}"
    figure.suptitle(short_label(title, len(title)), fontweight="bold", x=0.01, horizontalalignment="left")
    return figure


def _layers(allocation: Allocation) -> tuple[tuple[str, ...], FloatArray]:
    """Return what is shared on a server and the part of it in use, (users, servers, things), or (1, servers, things) of all users."""
    instance = allocation.instance
    apart = instance.n_users <= len(COLOURS)
    if allocation.sharing == "tdm":
        rates = instance.rates
        time = np.divide(allocation.tasks, rates, out=np.zeros_like(rates), where=(rates > 0) & np.isfinite(rates))
        return ("time",), (time if apart else time.sum(axis=0, keepdims=True))[:, :, None]
    if not apart:
        return instance.resources, allocation.utilization[None]
    usage = allocation.tasks[:, :, None] * instance.demands[:, None, :]
    return instance.resources, np.divide(usage, instance.row_capacity, out=np.zeros_like(usage), where=instance.row_capacity > 0)


def _user_bars(axes: Axes, allocation: Allocation) -> None:
    tasks, users = allocation.tasks_per_user, allocation.instance.users
    y = np.arange(len(users))
    apart = len(users) <= len(COLOURS)
    bars = axes.barh(y, tasks, height=0.7, color=COLOURS[: len(users)] if apart else GREY, edgecolor="white")
    if apart:
        for bar, hatch in zip(bars, HATCHES, strict=False):
            bar.set_hatch(hatch)
    notes = [f"{value:.4g}" for value in tasks]
    shares = allocation.shares_to_show
    if shares is not None:
        notes = [f"{note}  (share {share:.4g})" for note, share in zip(notes, shares, strict=True)]
    axes.bar_label(bars, notes, padding=4, fontsize=9)
    axes.set_yticks(y, [short_label(user) for user in users])
    axes.set_xlim(0, max(float(tasks.max()), 1e-12) * 1.45)  # room for the notes
    axes.set_xlabel("tasks")
    axes.set_title("Tasks of each user", loc="left")


def _user_curve(axes: Axes, allocation: Allocation) -> None:
    """Draw sorted shares (tasks, where shares are per server), and the levels at which most users stop."""
    shares = allocation.shares_to_show
    what, values = ("tasks", allocation.tasks_per_user) if shares is None else ("share", shares)
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
    for level in sorted(allocation.levels, key=lambda level: -len(level.users))[:_LEVELS]:
        height = float(span.transform((0.0, level.value))[1])
        if any(abs(height - other) < 14 for other in drawn):  # pixels: the texts would touch
            continue
        drawn.append(height)
        axes.axhline(level.value, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        note = f"level {level.value:.4g}: {plural(len(level.users), 'user')}"
        right = (ranked.size, level.value)  # where the curve has long been above it
        axes.annotate(note, right, xytext=(-2, 2), textcoords="offset points", ha="right", fontsize=9, color=GREY)
    axes.set_xlabel("users, from the lowest")
    axes.set_ylabel(what)
    axes.set_title("Share of each user" if what == "share" else "Tasks of each user", loc="left")


def _server_bars(axes: Axes, allocation: Allocation, things: tuple[str, ...], layers: FloatArray) -> None:
    """Draw a bar for each server and thing, stacked by user or coloured by thing; a server's name stands above its bars."""
    instance = allocation.instance
    ticks: list[str] = []
    positions: list[int] = []  # of the bars, server by server
    headers: list[int] = []
    for name, count in zip(instance.servers, instance.counts, strict=True):
        title = short_label(name) if count == 1 else f"{short_label(name)}  x {count:,.0f}"
        if len(things) > 1:
            headers.append(len(ticks))
            ticks.append(title)
        positions.extend(range(len(ticks), len(ticks) + len(things)))
        ticks.extend([short_label(thing) for thing in things] if len(things) > 1 else [title])
    y = np.array(positions)
    exists = np.ones(y.size, bool) if allocation.sharing == "tdm" else (instance.row_capacity > 0).ravel()
    axes.barh(y[exists], 1.0, height=0.8, color="#EEEEEE")
    start = np.zeros(y.size)
    for n, layer in enumerate(layers.reshape(len(layers), -1)):
        if len(layers) > 1:
            axes.barh(y, layer, left=start, height=0.8, color=COLOURS[n], hatch=HATCHES[n], edgecolor="white")
        else:
            colours = [COLOURS[r % len(COLOURS)] for _ in instance.servers for r in range(len(things))]
            axes.barh(y, layer, height=0.8, color=colours)
        start += layer
    for position, part, there in zip(y, start, exists, strict=True):
        note = f"{100 * part:.1f} %" if there else "none here"
        axes.annotate(note, (1.0 if there else 0.0, position), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(np.arange(len(ticks)), ticks)
    for header in headers:
        axes.get_yticklabels()[header].set_fontweight("bold")
    axes.set_xlim(0, 1.13)
    percent_axis(axes.xaxis)
    axes.set_xlabel(_in_use(allocation) + (", by the users on the left" if len(layers) > 1 else ""))
    axes.set_title("Use of each server", loc="left")


def _server_curves(axes: Axes, allocation: Allocation, things: tuple[str, ...], used: FloatArray) -> None:
    """Draw the sorted utilization of all servers that have a thing, one curve each."""
    instance = allocation.instance
    for r, thing in enumerate(things):
        exists = np.ones(instance.n_servers, bool) if allocation.sharing == "tdm" else instance.row_capacity[:, r] > 0
        order = np.flatnonzero(exists)[np.argsort(used[exists, r])]
        edges = np.concatenate([[0.0], np.cumsum(instance.counts[order])])
        style = STYLES[r % 4]
        axes.stairs(
            used[order, r], edges, baseline=None, color=COLOURS[r % len(COLOURS)], linestyle=style, linewidth=1.8, label=short_label(thing)
        )
    axes.set_ylim(0, 1.05)
    axes.set_xlim(left=0)
    percent_axis(axes.yaxis)
    axes.set_xlabel("servers, from the least used")
    axes.set_ylabel(_in_use(allocation))
    axes.figure.legend(loc="outside lower right", ncols=4, frameon=False)
    axes.set_title("Use of each server", loc="left")


def _in_use(allocation: Allocation) -> str:
    return "time in use" if allocation.sharing == "tdm" else "in use"
