"""The trajectory inside the feasible polytope of two or three users: the polytope, its limits, and the path to its end.

Two pairs of user and server have one picture, the polygon of all feasible x. Three have a picture for each two of them, onto which
everything is projected: light, what these two can run while the third has nothing; darker, what they can run while the third has what
it has at the end of the path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairopt import wording
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.plots.sheets import sheet
from fairopt.plots.style import LINES, STYLES, short_label, short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairopt.solvers.trajectory.engine import Path as Trace

__all__ = ["plot_polytope"]

_ON = 1e-9  # relative: a corner this close to a line lies on it
_LABEL = 24  # characters, so that two columns of the legend and the titles of three panels fit
_MARKERS = ("s", "^", "v", "P", "X")


def plot_polytope(
    trace: Trace,
    points: Mapping[str, npt.ArrayLike] | None = None,
    *,
    ax: Axes | Sequence[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the path of ``allocation.trace`` inside the polytope { x >= 0 : A x <= 1 } of two or three pairs of user and server.

    Parameters
    ----------
    trace : Path
        Of the engine "trajectory".
    points : mapping of str to array (pairs,), optional
        Other allocations to mark, by name, in tasks of each pair of ``trace.pairs``.
    ax : matplotlib Axes, or a sequence of three, optional
        Draw into these axes: one for two pairs, three for three pairs.
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
        Where the number of pairs that can hold anything is not two or three.

    >>> import fairopt as fo
    >>> pool = fo.Instance([[1, 1]], [[1, .2], [.4, .8]], users=["A", "B"], resources=["cpu", "memory"], servers=["pool"])
    >>> figure = plot_polytope(fo.solve(pool, "bbf", solver="trajectory").trace, {"equal": [.5, .5]})
    >>> [text.get_text() for text in figure.legends[0].texts]
    ['feasible', 'path', 'its end', 'equal', 'cpu @ pool (full)', 'tasks of B (full)']
    """
    pairs = np.flatnonzero(trace.x[-1] > 0)
    if pairs.size not in (2, 3):
        raise Unsupported(
            f"a picture of the polytope shows two or three pairs of user and server, and this path moves {pairs.size}; "
            "trace.plot() draws any number of them over t, fairopt solve --plot-path too"
        )
    planes = list(combinations(pairs, 2))
    panels = [" and ".join(trace.pairs[pair][0] for pair in plane) for plane in planes]
    page = sheet(ax, figsize, (5.6 if len(planes) == 1 else 4.0 * len(planes), 5.4), panels)
    several = len({server for _, server in trace.pairs}) > 1
    names = short_labels([f"{user} on {server}" if several else user for user, server in trace.pairs], _LABEL)
    marked = {name: np.asarray(x, float) for name, x in (points or {}).items()}
    for axes, plane in zip(page.axes, planes, strict=True):
        third = [int(pair) for pair in pairs if pair not in plane]
        _plane(axes, trace, list(map(int, plane)), third, marked)
        axes.set_xlabel(f"tasks of {names[plane[0]]}")
        axes.set_ylabel(f"tasks of {names[plane[1]]}")
        if third:
            axes.set_title(f"{names[third[0]]} has {wording.figure(trace.x[-1, third[0]], 4)}", loc="left", fontsize=10)
    handles = {label: handle for axes in page.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    page.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2 if len(planes) == 1 else 4, fontsize=9)
    users = len({user for user, _ in trace.pairs})
    page.headline(f"Trajectory of {wording.plural(users, 'user')}", title)
    return page.figure


def _plane(axes: Axes, trace: Trace, plane: list[int], third: list[int], points: Mapping[str, FloatArray]) -> None:
    """Draw the feasible polygon of two pairs, its limits, the path and the points."""
    normals = trace.parts[:, plane]
    box = 1 / normals.max(axis=0)
    if third:
        axes.fill(*_polygon(normals, np.ones(len(normals)), box).T, color="#EEEEEE", zorder=0, label="feasible if the third has none")
    room = np.maximum(1 - trace.parts[:, third] @ trace.x[-1, third], 0.0)
    corners = _polygon(normals, room, box)
    axes.fill(*corners.T, color="#C9DDF0", zorder=1, label="feasible with the tasks of the third" if third else "feasible")
    axes.plot(*trace.x[:, plane].T, color="black", linewidth=1.8, zorder=4, label="path")
    axes.plot(*trace.x[-1, plane], color="black", marker="o", markersize=8, linestyle="", zorder=6, label="its end", clip_on=False)
    for (name, x), marker in zip(points.items(), _MARKERS, strict=False):
        look: dict[str, Any] = {
            "markerfacecolor": "white",
            "markeredgecolor": "black",
            "markeredgewidth": 1.4,
            "linestyle": "",
            "markersize": 8,
        }
        axes.plot(*x[plane], marker=marker, label=short_label(name), zorder=5, clip_on=False, **look)
    for j, (normal, bound) in enumerate(zip(normals, room, strict=True)):
        edge = corners[np.abs(corners @ normal - bound) <= _ON * max(bound, 1.0)] if normal.any() else corners[:0]
        if len(edge) < 2 or np.ptp(edge, axis=0).max() <= _ON * box.max():
            continue
        ends = edge[[int(np.argmin(edge @ [-1, 1])), int(np.argmax(edge @ [-1, 1]))]]
        full = bool(trace.bottlenecks[j])
        name = short_label(trace.limits[j], _LABEL) + (" (full)" if full else "")
        axes.plot(*ends.T, color=LINES[j % len(LINES)], linestyle=STYLES[j % 4], linewidth=3.2 if full else 1.4, zorder=3, label=name)
    axes.set_xlim(0, 1.04 * box[0])
    axes.set_ylim(0, 1.04 * box[1])
    axes.spines[["top", "right"]].set_visible(False)


def _polygon(normals: FloatArray, bounds: FloatArray, box: FloatArray) -> FloatArray:
    """Return the corners of { 0 <= x <= box : normals x <= bounds }, in order: the box, cut by one line after the other."""
    corners = np.array([[0.0, 0.0], [box[0], 0.0], [box[0], box[1]], [0.0, box[1]]])
    for normal, bound in zip(normals, bounds, strict=True):
        left = bound - corners @ normal
        kept = []
        for k in range(len(corners)):
            after = (k + 1) % len(corners)
            if left[k] >= 0:
                kept.append(corners[k])
            if (left[k] >= 0) != (left[after] >= 0):
                kept.append(corners[k] + (corners[after] - corners[k]) * left[k] / (left[k] - left[after]))
        corners = np.array(kept)
    return corners
