"""Pictures of comparisons: one colour a notion, and names that do not touch each other, for a few users and for many."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from instances import uniform_instance
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

import fairopt as fo
from fairopt.plots.colours import NOTIONS, PLACEMENTS, looks, notion_colour


def written(figure: Figure) -> list[Text]:
    """Return what can be read: no marks of axes beyond the limits."""
    figure.draw_without_rendering()
    found = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    hidden: set[Text] = set()
    for axes in figure.axes:
        both: Any = (axes.xaxis, axes.yaxis)
        for axis in both:
            drawn = {id(tick.label1) for tick in axis._update_ticks()} | {id(tick.label2) for tick in axis._update_ticks()}
            every = [label for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()) for label in (tick.label1, tick.label2)]
            hidden |= {label for label in every if id(label) not in drawn}
    return [text for text in found if text not in hidden]


def touching(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of texts whose boxes overlap by more than a pixel each way."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in written(figure)]
    pairs = []
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1:
            pairs.append((one, other))
    return pairs


def compared(users: int) -> fo.Comparison:
    """Return a comparison of users with long names."""
    instance = uniform_instance(users, 4, seed=users, capacities=(3, 9))
    named = instance.replace(users=[f"a-user-with-a-long-name-{n}" for n in range(users)])
    return fo.compare(named, notions=["drfh", "tsf", "efficiency"], schedules=["drfh:best-fit"])


def colours(axes: Axes) -> dict[str, str]:
    """Return the colour of each allocation in the legend of a panel."""
    handles, labels = axes.get_legend_handles_labels()
    found = {}
    for handle, label in zip(handles, labels, strict=True):
        colour = handle.patches[0].get_facecolor() if hasattr(handle, "patches") else handle.get_color()  # type: ignore[attr-defined]
        found[label] = to_hex(handle.get_markeredgecolor() if hasattr(handle, "get_markeredgecolor") else colour).upper()
    return found


@pytest.mark.parametrize("users", [3, 8, 40, 120])
def test_no_two_texts_touch(users: int) -> None:
    """In pictures of comparisons and of allocations, however long the names are."""
    comparison = compared(users)
    assert touching(comparison.plot()) == []
    allocation = comparison["drfh"].allocation
    assert allocation is not None
    assert touching(allocation.plot()) == []


def test_texts_that_touch_are_found() -> None:
    """The check itself: two texts at one place."""
    figure = Figure()
    figure.text(0.5, 0.5, "one")
    figure.text(0.5, 0.5, "other")
    assert touching(figure) == [("one", "other")]


def test_of_many_users_those_are_shown_that_differ_most() -> None:
    """Of 60, 40 have a row, and all are in the curves; the two whose shares differ are the first."""
    instance = fo.Instance([[100.0]], np.ones((60, 1)))
    equal = np.ones((60, 1))
    other = equal.copy()
    other[[50, 7], 0] = 0.25, 0.5
    figure = fo.compare(instance, notions=[], allocations={"one": equal, "other": other}).plot()
    left, _, below = figure.axes
    rows = [label.get_text() for label in left.get_yticklabels()]
    assert len(rows) == 40
    assert rows[:2] == ["user-51", "user-8"]
    assert left.get_title(loc="left") == "The 40 of 60 users that differ most"
    assert [patch.get_data().values.size for patch in below.patches] == [60, 60]  # type: ignore[attr-defined]


def test_whole_tasks_have_the_colour_of_their_notion_and_a_hatch() -> None:
    """In bars; in marks, the shape of the notion, and no filling."""
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    comparison = fo.compare(instance, notions=["drf", "efficiency"], integral=True)
    left = comparison.plot().axes[0]
    found = colours(left)
    for name in ("drf", "efficiency"):
        assert found[name] == found[f"{name}, whole tasks"] == NOTIONS[name]
    hatches = {container.get_label(): container.patches[0].get_hatch() for container in left.containers if container.get_label() in found}  # type: ignore[attr-defined]
    assert not hatches["drf"]
    assert hatches["drf, whole tasks"] == hatches["efficiency, whole tasks"]
    assert hatches["drf, whole tasks"]


def test_a_notion_has_one_colour_whatever_else_is_drawn() -> None:
    """In bars and in marks, alone and with others."""
    few, many = (colours(compared(users).plot().axes[0]) for users in (3, 40))
    for name in ("drfh", "tsf", "efficiency"):
        assert few[name] == many[name] == NOTIONS[name] == looks([name])[name].colour
    assert few["drfh:best-fit"] == many["drfh:best-fit"] == PLACEMENTS["best-fit"]


def test_every_notion_and_placement_has_a_colour_that_can_be_told_from_the_others() -> None:
    """Also one's own, the same each time."""
    assert set(NOTIONS) == set(fo.NOTIONS)
    assert set(PLACEMENTS) == set(fo.PLACEMENTS)
    every = [np.array(to_rgb(colour)) for colour in (*NOTIONS.values(), *PLACEMENTS.values())]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(every, 2)) > 0.13
    assert notion_colour("power-share") == notion_colour("power-share:cap=3")
