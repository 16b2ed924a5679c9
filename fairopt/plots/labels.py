"""Labels beside points: each takes, in order, the best free place around its point, clear of labels, points and lines.

And the names of a tree along an axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray
from fairopt.plots.style import GREY, renderer_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.backend_bases import RendererBase

__all__ = ["label_points", "listed", "together", "tree_ticks"]

_ANGLES = np.deg2rad(np.arange(0, 360, 20))
_DISTANCES = (9.0, 18.0, 32.0, 50.0, 75.0, 105.0, 140.0)  # points (of type) from the mark
_MARK = 5.0  # points from the middle of a mark to its border
_GAP = 2.0  # points around a label
_SAME = 0.016  # parts of the width and height within which points are one mark
_CROWD = 0.06  # parts of the width and height within which other marks leave a label little choice
_LEADER = 14.0  # from this distance on a line leads to the mark
# Penalties, in distances: covering a mark or label, crossing a line, lying nearer to another mark, leaving the axes.
_COVERED, _CROSSED, _MISTAKEN, _OUTSIDE = 60.0, 12.0, 40.0, 400.0


def label_points(
    axes: Axes, points: FloatArray, labels: Sequence[str], lines: Sequence[FloatArray] = (), *, fontsize: float = 8.5, leaders: bool = True
) -> FloatArray:
    """Write a label beside each point, in data coordinates, clear of the other labels, all points and, where it can be, of the lines.

    A line leads from a label that is far from its point; without ``leaders`` no label is nearer to another point than to its own, where
    that can be. The ends of the pieces of lines count as points. The limits and the layout of the axes must be final. Labels given first
    choose first.

    Returns the middle of each label, in points (of type) from its mark to the right and upwards, (labels, 2).
    """
    renderer, scale = _measure(axes)
    own = axes.transData.transform(points) / scale
    marks = np.vstack([own, *(axes.transData.transform(line) / scale for line in lines)])
    frame = axes.get_window_extent(renderer)
    border = np.array([frame.x0, frame.y0, frame.x1, frame.y1]) / scale
    crossed = np.concatenate([_along(axes.transData.transform(line) / scale) for line in lines]) if lines else np.empty((0, 2))
    taken: list[FloatArray] = []
    middles = np.zeros((len(labels), 2))
    for k, (text, point, mark) in enumerate(zip(labels, points, own, strict=True)):
        note = axes.annotate(text, point, xytext=(0, 0), textcoords="offset points", fontsize=fontsize, va="center", ha="center", zorder=6)
        note.set_bbox({"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.8, "linewidth": 0})  # readable across a line
        extent = note.get_window_extent(renderer)
        half = np.array([extent.width, extent.height]) / scale / 2
        best = np.inf
        for distance, angle in itertools.product(_DISTANCES, _ANGLES):
            direction = np.array([np.cos(angle), np.sin(angle)])
            cost = distance + 3.0 * abs(direction[1])
            if cost >= best:  # before any penalty
                continue
            offset = direction * (distance + half)  # the box touches an ellipse around the mark
            box = np.concatenate([mark + offset - half - _GAP, mark + offset + half + _GAP])
            end = mark + np.sign(offset) * np.maximum(np.abs(offset) - half, 0.0)
            leader = _along(np.array([mark, end])) if leaders and distance >= _LEADER else np.empty((0, 2))
            cost += _COVERED * (sum(_overlap(box, other) for other in taken) + float(_inside(_around(box, _MARK - _GAP), marks).sum()))
            cost += _COVERED * sum(bool(_inside(other, leader).any()) for other in taken)
            passed = np.linalg.norm(own[:, None] - leader, axis=2).min(axis=1, initial=np.inf) < _MARK
            cost += _COVERED * float((passed & (own != mark).any(axis=1)).sum())
            cost += _CROSSED * float(np.sqrt(_inside(box, crossed).sum()))
            away = np.linalg.norm(own - np.clip(own, box[:2], box[2:]), axis=1)
            cost += _MISTAKEN * float((away < np.linalg.norm(mark - np.clip(mark, box[:2], box[2:]))).any() and not leader.size)
            cost += _OUTSIDE * float((box[:2] < border[:2]).any() or (box[2:] > border[2:]).any())
            if cost < best:
                best, place, chosen, chosen_leader, tip = cost, offset, box, leader, end - mark
        note.xyann = (float(place[0]), float(place[1]))
        middles[k] = place
        if chosen_leader.size:
            look = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
            axes.annotate("", point, xytext=(float(tip[0]), float(tip[1])), textcoords="offset points", arrowprops=look, zorder=2)
            crossed = np.vstack([crossed, np.repeat(chosen_leader, 4, axis=0)])  # keeps later labels off the leader
        taken.append(chosen)
    return middles


def listed(names: Sequence[str]) -> str:
    """Join the names of one mark; those with commas by semicolons.

    >>> listed(["DRFH", "TSF"]), listed(["DRFH", "DRFH, best-fit"])
    ('DRFH, TSF', 'DRFH; DRFH, best-fit')
    """
    return ("; " if any(", " in name for name in names) else ", ").join(names)


def together(places: FloatArray, axes: Axes) -> list[list[int]]:
    """Group points that would cover each other; groups with most others near them first, then those with most names."""
    size = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    groups: list[list[int]] = []
    for j, place in enumerate(places):
        near = [group for group in groups if (np.abs(place - places[group[0]]) <= _SAME * size).all()]
        if near:
            near[0].append(j)
        else:
            groups.append([j])
    middles = places[[group[0] for group in groups]] / size
    crowd = (np.abs(middles[:, None] - middles) <= _CROWD).all(axis=2).sum(axis=1)
    return [groups[j] for j in sorted(range(len(groups)), key=lambda j: (crowd[j], len(groups[j])), reverse=True)]


def tree_ticks(axes: Axes, places: FloatArray, names: Sequence[str], depths: Sequence[int]) -> None:
    """Name places of the vertical axis as a tree, one below the other: bold at depth 1, indented below."""
    axes.set_yticks(places, [f"{'    ' * (depth - 1)}{name}" for name, depth in zip(names, depths, strict=True)])
    axes.tick_params(axis="y", length=0)
    ticks = axes.get_yticklabels()
    for tick, depth in zip(ticks, depths, strict=True):
        tick.set_horizontalalignment("left")
        tick.set_fontweight("bold" if depth == 1 else "normal")
    renderer, scale = _measure(axes)
    axes.tick_params(axis="y", pad=6 + max((tick.get_window_extent(renderer).width / scale for tick in ticks), default=0.0))


def _measure(axes: Axes) -> tuple[RendererBase, float]:
    """Return what measures texts, and its pixels to a point of type."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return renderer_of(figure), figure.dpi / 72.0


def _along(line: FloatArray) -> FloatArray:
    """Return points every few points of type along a polyline."""
    pieces = [np.linspace(a, b, max(2, int(np.hypot(*(b - a)) / 4))) for a, b in itertools.pairwise(line)]
    return np.concatenate(pieces) if pieces else line


def _around(box: FloatArray, margin: float) -> FloatArray:
    return box + margin * np.array([-1.0, -1.0, 1.0, 1.0])


def _inside(box: FloatArray, points: FloatArray) -> np.ndarray:
    return np.asarray(((points >= box[:2]) & (points <= box[2:])).all(axis=1))


def _overlap(box: FloatArray, other: FloatArray) -> float:
    """Return 1 and the overlapping part of the smaller box, 0 where they do not touch."""
    sides = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
    if (sides <= 0).any():
        return 0.0
    return 1.0 + float(sides.prod() / min((box[2:] - box[:2]).prod(), (other[2:] - other[:2]).prod()))
