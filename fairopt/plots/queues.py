"""What each queue holds of a resource, as a bar, with marks for its guarantee and its limit; or its dominant share.

A queue is followed by those below it, indented. What is missing of a guarantee is a dashed outline at the end of the bar.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from fairopt import wording
from fairopt.errors import InvalidInstance
from fairopt.instance.units import bare_amount
from fairopt.plots.colours import edge
from fairopt.plots.labels import tree_ticks
from fairopt.plots.sheets import sheet
from fairopt.plots.style import COLOURS, headline, percent_axis, room_beside, short_label, short_labels, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.allocation import Allocation

__all__ = ["plot_queues"]

_MOST = 60  # queues; with more, the deepest are left out
_MISSING = "#D55E00"
_TITLE = 70  # characters of a line
_SHORT_TITLE, _COLUMN = 34, 4.0  # of a line in a figure of less than so many inches
_CHARACTER, _GAP = 0.015, 0.03  # a character of a note, and what is before it, as parts of the width of the axes


def plot_queues(
    allocation: Allocation,
    resource: str | None = None,
    *,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw what each queue holds of a resource, and its guarantee and limit of it, as parts of the cluster.

    Of more than 60 queues the deepest are left out, and the caption says so. Guarantees and limits on groups of servers have no mark. Other
    resources with guarantees or limits are named below the axis.

    Parameters
    ----------
    resource : str, optional
        Default: the resource of most guarantees and limits. If there are none, the dominant share of each queue is drawn.
    ax : matplotlib Axes, optional
        Draw into these axes.
    figsize : (float, float), optional
        Width and height of a new figure, in inches.
    title : str, optional
        In place of the default; "" for none.

    Raises
    ------
    InvalidInstance
        If there is no such resource.

    >>> import fairopt as fo
    >>> lab = fo.Instance([[10]], [[1], [1]], resources=["gpu"], queues=[fo.Queue("a", weight=4), fo.Queue("b")], queue_of=["a", "b"])
    >>> [text.get_text() for text in plot_queues(fo.solve(lab, "drfh")).axes[0].texts]
    ['80 % of gpu', '20 % of gpu']
    """
    every = allocation.queue_holdings()[1:]
    depth = max((each.depth for each in every), default=1)
    while depth > 1 and sum(each.depth <= depth for each in every) > _MOST:
        depth -= 1
    shown = [each for each in every if each.depth <= depth]
    capacity = dict(zip(allocation.instance.resources, allocation.instance.total_capacity.tolist(), strict=True))
    bounds = [bound.resource for each in every for bound in each.guarantees]
    bounds += [bound.resource for each in every for bound in each.limits]
    named = Counter(name for name in bounds if capacity[name] > 0)
    if resource is None:
        resource = named.most_common(1)[0][0] if named else None
    elif not capacity.get(resource):
        known = ", ".join(allocation.instance.resources)
        raise InvalidInstance(f'there is no resource "{resource}"{wording.did_you_mean(resource, capacity)}; there are {known}')
    page = sheet(ax, figsize, (8.0, max(1.7 + 0.28 * len(shown), 2.6)))
    (axes,) = page.axes
    y = np.arange(len(shown))
    held = np.array([each.dominant_share if resource is None else each.used[resource] / capacity[resource] for each in shown])
    colours = [COLOURS[(each.depth - 1) % len(COLOURS)] for each in shown]
    axes.barh(y, held, height=0.62, color=colours, edgecolor=[edge(colour) for colour in colours])
    marks: dict[str, list[tuple[float, int]]] = {"guarantee": [], "limit": []}
    missing = np.zeros(len(shown))
    for row, each in enumerate(shown):
        for promise in each.guarantees:
            if promise.resource == resource:
                missing[row] = max(missing[row], promise.missing / capacity[resource])
                marks["guarantee"] += [] if promise.group else [(promise.amount / capacity[resource], row)]
        for bound in each.limits:
            if bound.resource == resource and not bound.group:
                marks["limit"].append((bound.amount / capacity[resource], row))
    if missing.any():
        axes.barh(y, missing, left=held, height=0.62, color="white", edgecolor=_MISSING, linestyle="--", label="missing of a guarantee")
    for (name, points), shape in zip(marks.items(), (">", "|"), strict=True):
        if points:
            axes.plot(*zip(*points, strict=True), shape, color="black", markersize=9 if shape == "|" else 6, label=name, linestyle="")
    largest = max([float((held + missing).max(initial=0.0)), *(part for points in marks.values() for part, _ in points)], default=1.0)
    if resource is None:
        notes = [
            f"{wording.percent(part)} of {each.dominant_resource}" if part else "nothing" for part, each in zip(held, shown, strict=True)
        ]
    else:
        unit = allocation.instance.units.get(resource, "")
        notes = [bare_amount(each.used[resource], resource, unit, 4) for each in shown]
    for row, note in enumerate(notes):
        text = short_label(note, 40)
        end, width = held[row] + missing[row], largest * (_GAP + _CHARACTER * len(text))
        for mark in sorted(part for points in marks.values() for part, at in points if at == row):
            end = max(end, mark) if mark <= end + width else end  # beyond the marks that the note would cover
        axes.annotate(text, (end, row), xytext=(7, 0), textcoords="offset points", va="center", fontsize=9)
    small = 8 if page.own and page.figure.get_figwidth() < _COLUMN else None
    if small:
        axes.tick_params(labelsize=small)
    tree_ticks(axes, y.astype(float), short_labels([each.name for each in shown]), [each.depth for each in shown])
    axes.set_ylim(max(len(shown), 1) - 0.5, -0.6)
    axes.set_xlim(0, max(largest, 1e-12) * room_beside(axes))
    percent_axis(axes.xaxis)
    line = _TITLE if small is None else _SHORT_TITLE
    others = [name for name in named if resource not in (name, None)]
    below = ["dominant share" if resource is None else f"part of the {resource} of the cluster"]
    below += [f"(without guarantees and limits of {wording.joined(others, 3)})"] if others else []
    axes.set_xlabel("\n".join(wrapped(text, line) for text in below), fontsize=small)
    what = "What each queue holds" if resource is None else f"What each queue holds of {resource}"
    axes.set_title(wrapped(what, line), loc="left", fontsize=small and small + 1)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        page.legend(handles, labels, loc="outside lower right", ncols=3, fontsize=9)
    page.headline(headline(allocation), title)
    page.caption(f"{wording.plural(len(every) - len(shown), 'queue')} below level {depth} not shown" if len(shown) < len(every) else "")
    return page.figure
