"""Names beside the points of the frontier's chart: the same ones, found by the same rule, as in the picture of the frontier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.analysis.frontiers import Frontier, FrontierPoint
from fairopt.plots.frontiers import label_of, limits_of
from fairopt.plots.labels import label_points, together

__all__ = ["FONT", "HEIGHT", "domains", "frontier_labels"]

HEIGHT = 320  # pixels of the chart
FONT = 10  # pixels of the labels
_WIDTH = 670  # pixels of the widest plot, for which the labels find their places: page.css limits a chart to 46rem, its axis included
_LINE = 12.0  # pixels from a line of a label to the next; a chart places the middle of the first one
_POINTS = 72.0  # to the inch: a point of type is a pixel then


def domains(found: Frontier, points: Sequence[FrontierPoint]) -> tuple[list[float], list[float]]:
    """Return the limits of both axes, across and upwards."""
    left, right, top = limits_of(found, _places(points))
    return [left, right], [-0.04 * top, top]


def frontier_labels(found: Frontier, points: Sequence[FrontierPoint]) -> list[tuple[str, float, float]]:
    """Return the label of each point, and the pixels to its middle, right and down; "" where another point's label has the name."""
    from matplotlib.figure import Figure

    labels = [("", 0.0, 0.0)] * len(points)
    if not points:
        return labels
    figure = Figure(figsize=(_WIDTH / _POINTS, HEIGHT / _POINTS), dpi=_POINTS)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    across, up = domains(found, points)
    axes.set_xlim(*across)
    axes.set_ylim(*up)
    places = _places(points)
    groups = together(places, axes)
    texts = [label_of([points[j] for j in group]) for group in groups]
    middles = label_points(
        axes, places[[group[0] for group in groups]], texts, [np.asarray(found.vertices, float)], fontsize=FONT, leaders=False
    )
    for group, text, (right, above) in zip(groups, texts, middles.tolist(), strict=True):
        plain = text.replace("$\\alpha$", "\N{GREEK SMALL LETTER ALPHA}").replace("$\\infty$", "\N{INFINITY}").replace(r"\$", "$")
        labels[group[0]] = (plain, round(right, 1), round(-above - _LINE / 2 * plain.count("\n"), 1))
    return labels


def _places(points: Sequence[FrontierPoint]) -> np.ndarray:
    return np.array([(point.total, point.smallest_share) for point in points]).reshape(-1, 2)
