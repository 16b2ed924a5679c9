"""Where labels beside points go: clear of lines, of other points and labels, inside the axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.instance import FloatArray
from fairopt.plots.labels import label_points, together


def axes_of(limit: float = 1.0) -> Axes:
    """Axes of 400 x 300 points of type, which are pixels."""
    axes = Figure(figsize=(400 / 72, 300 / 72), dpi=72).add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, limit)
    axes.set_ylim(0, limit)
    return axes


def boxes(axes: Axes, points: FloatArray, labels: Sequence[str], lines: Sequence[FloatArray] = (), *, leaders: bool = True) -> FloatArray:
    """Return the boxes of the labels in pixels: left, bottom, right, top."""
    label_points(axes, points, labels, lines, leaders=leaders)
    texts = [text for text in axes.texts if text.get_text()]
    extents = [text.get_window_extent() for text in texts]
    return np.array([[each.x0, each.y0, each.x1, each.y1] for each in extents])


def test_the_first_choice_is_to_the_right() -> None:
    """Where nothing is in the way, at the same height."""
    ((left, bottom, _, top),) = boxes(axes_of(), np.array([[0.5, 0.5]]), ["label"])
    assert left > 200
    assert bottom < 150 < top


@pytest.mark.parametrize("at", [0.53, 0.56, 0.6])
def test_a_label_keeps_off_a_line(at: float) -> None:
    """A line from the bottom to the top, just right of the point: the label goes to its left."""
    line = np.array([[at, -0.5], [at, 1.5]])
    ((left, _, right, _),) = boxes(axes_of(), np.array([[0.5, 0.5]]), ["label"], [line])
    assert not left <= 400 * at <= right


def test_a_label_keeps_off_the_leader_of_another() -> None:
    """Lines that lead to labels are lines, too: no label lies on the middle of one."""
    points = np.array([[0.5 + 0.01 * j, 0.5] for j in range(8)])
    axes = axes_of()
    found = boxes(axes, points, [f"label {j}" for j in range(8)])
    leaders = [note for note in axes.texts if not note.get_text()]
    assert leaders
    for note in leaders:
        start = axes.transData.transform(note.xy)  # type: ignore[attr-defined]
        middle = start + np.array(note.xyann) / 2  # type: ignore[attr-defined]
        assert not ((found[:, :2] <= middle) & (middle <= found[:, 2:])).all(axis=1).any()


def test_labels_cover_neither_points_nor_each_other() -> None:
    """Twelve points close together."""
    rng = np.random.default_rng(1)
    points = 0.4 + 0.2 * rng.random((12, 2))
    axes = axes_of()
    found = boxes(axes, points, [f"name {j}" for j in range(12)])
    marks = axes.transData.transform(points)
    for j, box in enumerate(found):
        assert not ((marks >= box[:2]) & (marks <= box[2:])).all(axis=1).any()
        for other in found[j + 1 :]:
            assert (np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])).min() <= 0


@pytest.mark.parametrize("point", [(0.99, 0.5), (0.01, 0.99), (0.99, 0.01)])
def test_labels_stay_inside(point: tuple[float, float]) -> None:
    """Of points at the border."""
    ((left, bottom, right, top),) = boxes(axes_of(), np.array([point]), ["a long label"])
    assert (left >= 0, bottom >= 0, right <= 400, top <= 300) == (True,) * 4


def test_a_label_keeps_off_the_borders_of_marks() -> None:
    """They are 5 points from the middles; three marks are so close that a label beside its own is 4 points from another."""
    points = np.array([[0.51, 0.5], [0.51, 0.52], [0.5, 0.51]])
    axes = axes_of()
    found = boxes(axes, points, ["first", "second", "third"], leaders=False)
    marks = axes.transData.transform(points)
    for box in found:
        assert (np.abs(marks - np.clip(marks, box[:2], box[2:])).max(axis=1) >= 5).all()


def test_without_a_leader_a_label_is_nearest_to_its_own_point() -> None:
    """The place to the right of the first point is nearer to the second."""
    points = np.array([[0.5, 0.5], [0.5 + 50 / 400, 0.5]])
    axes = axes_of()
    found = boxes(axes, points, ["first", "second"], leaders=False)
    marks = axes.transData.transform(points)
    for j, box in enumerate(found):
        away = np.linalg.norm(marks - np.clip(marks, box[:2], box[2:]), axis=1)
        assert away.argmin() == j


def test_points_in_one_place_are_one() -> None:
    """Within 1.6 % of both axes, whatever their limits; first come those among others, and of these the one with most names."""
    axes = axes_of(limit=10.0)
    places = np.array([[1.0, 1.0], [5.0, 5.0], [5.15, 5.15], [5.0, 5.3], [5.17, 5.0]])
    assert together(places, axes) == [[1, 2], [3], [4], [0]]
