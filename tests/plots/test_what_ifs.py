"""The picture of two instances: bars are the changes, and marks what one difference does alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import fairopt as fo

LAB = fo.Instance([[8], [8]], [[1], [2]], users=["vision", "language"], servers=["new", "old"], resources=["gpu"])
FOUND = fo.what_if(LAB, LAB.replace(counts={"old": 0}, weights={"vision": 2}), notions=["drfh", "efficiency"])


def widths(axes: Axes) -> list[float]:
    """Return how long the bars are, from the top."""
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    return [round(bar.get_width(), 6) for bar in sorted(bars, key=lambda bar: bar.get_y())]


def test_bars_are_the_changes_and_marks_those_by_one_difference() -> None:
    """By hand: vision and language share 16 gpu, 8 and 4 tasks; 8 gpu with weights 2 and 1 are 16/3 and 4/3 tasks.

    Without the old server alone everybody has half; with the weight alone vision has 2/3 of 16 gpu.
    """
    figure = FOUND.plot()
    left, right = figure.axes
    assert widths(left) == pytest.approx([16 / 3 - 8, 4 / 3 - 4], abs=1e-6)
    assert [text.get_text() for text in left.texts] == ["8 → 5.333", "4 → 1.333"]
    assert left.get_title(loc="left") == "drfh\n2 users lose"
    marks = {str(line.get_label()): np.asarray(line.get_xdata(), float) for line in left.lines}
    np.testing.assert_allclose(marks["servers.old.count"], [-4, -2], rtol=1e-6)
    np.testing.assert_allclose(marks["users.vision.weight"], [32 / 3 - 8, 8 / 3 - 4], rtol=1e-6)
    assert widths(right) == pytest.approx([-8])  # language has nothing before and after
    assert [text.get_text() for text in right.texts] == ["16 → 8", "0 as before"]
    assert figure.get_suptitle() == "after against before: 2 differences"


def test_a_narrow_figure_has_its_panels_below_each_other() -> None:
    """Each with the names of the users."""
    found = fo.what_if(LAB, LAB.replace(weights={"vision": 2}), schedules=["drfh:best-fit"])
    figure = found.plot(figsize=(3.4, 5))
    figure.draw_without_rendering()
    upper, lower = figure.axes
    assert lower.get_position().y1 < upper.get_position().y0
    assert [text.get_text() for text in lower.get_yticklabels()] == [text.get_text() for text in upper.get_yticklabels()] != []


def test_losses_are_on_the_left_and_have_another_colour() -> None:
    """So that a grey print tells them from gains, too."""
    axes = fo.what_if(LAB, LAB.replace(weights={"vision": 2})).plot().axes[0]
    bars = sorted((bar for bar in axes.patches if isinstance(bar, Rectangle)), key=lambda bar: bar.get_width())
    assert bars[0].get_width() < 0 < bars[1].get_width()
    assert bars[0].get_facecolor() != bars[1].get_facecolor()


def test_of_many_users_those_that_change_most_are_shown() -> None:
    """One of 60 gains by its weight, and the others lose: it is at the top, and the 39 that lose most are below."""
    many = fo.Instance([[600.0]], np.linspace(1, 2, 60)[:, None], users=[f"a-user-with-a-long-name-{n}" for n in range(60)])
    figure = fo.what_if(many, many.replace(weights={"a-user-with-a-long-name-7": 5})).plot()
    figure.draw_without_rendering()
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(set(names)) == 40
    assert names[0].endswith("-7")
    assert widths(axes) == sorted(widths(axes), reverse=True)
    assert figure.get_suptitle().replace("\n", " ").endswith("(the 40 of 60 users whose tasks change most)")


def test_a_user_that_is_new_or_gone_says_so() -> None:
    """With its tasks there; it has no change in the table, and a bar of all its tasks here."""
    other = fo.Instance([[8]], [[1], [2]], users=["vision", "speech"], servers=["new"], resources=["gpu"])
    axes = fo.what_if(LAB, other).plot().axes[0]
    assert [text.get_text() for text in axes.texts] == ["8 → 4", "gone: 4 tasks", "new: 2 tasks"]


def test_nothing_to_draw_is_refused() -> None:
    """With the reason."""
    found = fo.what_if(LAB, LAB.replace(weights={"vision": 2}), notions=["drf"])
    with pytest.raises(fo.Unsupported, match="there is nothing to draw: no allocation of before"):
        found.plot()


def test_given_axes() -> None:
    """One for each notion."""
    figure = Figure()
    panels: Any = figure.subplots(1, 2)
    assert FOUND.plot(ax=panels, title="A title") is figure
    assert panels[0].get_title(loc="left") == "A title"
    assert [label.get_text() for label in panels[1].get_yticklabels()] == ["vision", "language"]
