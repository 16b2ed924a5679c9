"""Labels beside points that do not cover each other, the points or the lines: each takes the best free place around its point, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray
from fairopt.plots.style import GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["label_points"]

_ANGLES = np.deg2rad(np.arange(0, 360, 20))
_DISTANCES = (9.0, 18.0, 32.0, 50.0, 75.0, 105.0, 140.0)  # points (of type) from the mark
_GAP = 2.0  # points around a label
_LEADER = 14.0  # from this distance on a line leads to the mark
_COVERED, _CROSSED, _OUTSIDE = 40.0, 4.0, 200.0  # what a covered mark or label, a crossed line, and the border cost, in distances


def label_points(axes: Axes, points: FloatArray, labels: Sequence[str], lines: Sequence[FloatArray] = (), size: float = 8.5) -> None:
    """Write a label beside each point, in data coordinates, clear of the other labels, all points and, where it can be, of the lines.

    The limits and the layout of the axes must be final. Labels that are given first choose first.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = axes.get_figure(root=True)
    assert figure is not None
    renderer = FigureCanvasAgg(figure).get_renderer()
    scale = figure.dpi / 72.0
    marks = axes.transData.transform(points) / scale
    frame = axes.get_window_extent(renderer)
    border = np.array([frame.x0, frame.y0, frame.x1, frame.y1]) / scale
    crossed = np.concatenate([_along(axes.transData.transform(line) / scale) for line in lines]) if lines else np.empty((0, 2))
    taken: list[FloatArray] = []
    for j, (text, (x, y)) in enumerate(zip(labels, marks, strict=True)):
        note = axes.annotate(text, points[j], xytext=(0, 0), textcoords="offset points", fontsize=size, va="center", ha="center", zorder=6)
        extent = note.get_window_extent(renderer)
        width, height = extent.width / scale, extent.height / scale
        best, place, leads = np.inf, (0.0, 0.0), 0.0
        for distance in _DISTANCES:
            for angle in _ANGLES:
                # The box touches a circle around the mark.
                dx = np.cos(angle) * (distance + width / 2)
                dy = np.sin(angle) * (distance + height / 2)
                box = np.array([x + dx - width / 2, y + dy - height / 2, x + dx + width / 2, y + dy + height / 2])
                box += np.array([-_GAP, -_GAP, _GAP, _GAP])
                cost = distance + 3.0 * abs(np.sin(angle))
                cost += _COVERED * sum(_overlap(box, other) for other in taken) + _COVERED * float(_inside(box, marks).sum())
                cost += _CROSSED * float(np.sqrt(_inside(box, crossed).sum()))
                cost += _OUTSIDE * float(np.maximum(np.concatenate([border[:2] - box[:2], box[2:] - border[2:]]), 0.0).sum() > 0)
                if cost < best:
                    best, place, leads = cost, (dx, dy), distance
                    chosen = box
        note.xyann = place
        if leads >= _LEADER:
            axes.annotate(
                "",
                points[j],
                xytext=(
                    place[0] - np.sign(place[0]) * min(width / 2, abs(place[0])),
                    place[1] - np.sign(place[1]) * min(height / 2, abs(place[1])),
                ),
                textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2},
                zorder=2,
            )
        taken.append(chosen)


def _along(line: FloatArray) -> FloatArray:
    """Return points every few points of type along a polyline."""
    pieces = [np.linspace(a, b, max(2, int(np.hypot(*(b - a)) / 4))) for a, b in zip(line[:-1], line[1:], strict=True)]
    return np.concatenate(pieces) if pieces else line


def _inside(box: FloatArray, points: FloatArray) -> np.ndarray:
    return np.asarray(((points >= box[:2]) & (points <= box[2:])).all(axis=1))


def _overlap(box: FloatArray, other: FloatArray) -> float:
    """Return 1 and the overlapping part of the smaller box, 0 where they do not touch."""
    sides = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
    if (sides <= 0).any():
        return 0.0
    return 1.0 + float(sides.prod() / min((box[2:] - box[:2]).prod(), (other[2:] - other[:2]).prod()))
