"""The picture of a tree: a bar for each queue, marks for guarantees and limits, and what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import fairopt as fo
from fairopt.analysis.rerun import given
from fairopt.plots import plot_queues

QUEUES = [fo.Queue("a", guarantee={"gpu": 4}), fo.Queue("a1", "a", limit={"gpu": 3}), fo.Queue("b")]
LAB = fo.Instance(
    [[10, 100]], [[1, 2], [1, 2], [1, 50]], tasks=[np.inf, np.inf, 1], resources=["gpu", "cpu"], queues=QUEUES, queue_of=["a1", "a", "b"]
)


def lengths(figure: Figure) -> list[float]:
    """Return how long the bars are, in percent."""
    return [round(100 * bar.get_width(), 6) for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]


def test_bars_are_parts_of_the_resource_that_is_guaranteed_and_limited() -> None:
    """a has 2 + 1 of 10 GPUs and lacks one, a1 has 2, b 1; the marks are at 4 and at 3."""
    figure = given(LAB, np.array([[2.0], [1.0], [1.0]]) * 0.999, "rdm").plot(by="queue")
    assert lengths(figure)[:3] == pytest.approx([29.97, 19.98, 9.99])
    assert lengths(figure)[3] == pytest.approx(10.03)
    axes = figure.axes[0]
    marks = {line.get_label(): (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()) for line in axes.lines}
    assert marks == {"guarantee": ([0.4], [0]), "limit": ([0.3], [1])}
    assert [label.get_text().strip() for label in axes.get_yticklabels()] == ["a", "a1", "b"]
    assert axes.get_title(loc="left") == "What each queue holds of gpu"


def test_the_number_stands_beside_its_bar_and_not_beside_a_limit() -> None:
    """a holds 2 of 10 and may hold 9; b holds 2 and may hold 2.2, so that its number stands beyond that mark."""
    queues = [fo.Queue("a", limit={"gpu": 9}), fo.Queue("b", limit={"gpu": 2.2})]
    instance = fo.Instance([[10]], [[1], [1]], resources=["gpu"], queues=queues, queue_of=["a", "b"])
    axes = given(instance, np.array([[2.0], [2.0]]), "rdm").plot(by="queue").axes[0]
    assert [(text.get_text(), round(text.xy[0], 6)) for text in axes.texts] == [("2", 0.2), ("2", 0.22)]  # type: ignore[attr-defined]


def test_a_tree_is_indented_beside_its_bars() -> None:
    """Names end before the axes begin, however long they are, and those below a queue begin further right."""
    queues = [fo.Queue("department-of-natural-language-and-speech"), fo.Queue("team", "department-of-natural-language-and-speech")]
    instance = fo.Instance([[10]], [[1]], resources=["gpu"], queues=queues, queue_of=["team"])
    allocation = fo.solve(instance, "drfh")
    comparison = fo.compare(instance, notions=["drfh"])
    for figure in (allocation.plot(by="queue"), comparison.plot(by="queue")):
        figure.draw_without_rendering()
        axes = figure.axes[0]
        department, team = (label.get_window_extent() for label in axes.get_yticklabels())
        assert max(department.x1, team.x1) < axes.get_window_extent().x0
        assert department.x0 >= 0
        assert axes.get_yticklabels()[0].get_fontweight() == "bold"
        assert [label.get_text() for label in axes.get_yticklabels()] == ["department-of-natural…", "    team"]


def test_another_resource_or_the_dominant_share() -> None:
    """b holds half of the cpu; without guarantees and limits the dominant share of each queue is drawn."""
    allocation = given(LAB, np.array([[2.0], [1.0], [1.0]]), "rdm")
    assert lengths(plot_queues(allocation, "cpu")) == pytest.approx([6, 4, 50])
    plain = LAB.replace(queues=[fo.Queue("a"), fo.Queue("a1", "a"), fo.Queue("b")])
    figure = plot_queues(given(plain, np.array([[2.0], [1.0], [1.0]]), "rdm"))
    assert lengths(figure) == pytest.approx([30, 20, 50])
    assert [text.get_text() for text in figure.axes[0].texts] == ["30 % of gpu", "20 % of gpu", "50 % of cpu"]
    with pytest.raises(fo.InvalidInstance, match=r'there is no resource "gpus" \(did you mean "gpu"\?\)'):
        plot_queues(allocation, "gpus")
    with pytest.raises(fo.Unsupported, match='there is no picture by "server"'):
        allocation.plot(by="server")  # type: ignore[arg-type]


def test_other_resources_with_guarantees_are_named() -> None:
    """Below the axis: the picture is of one resource."""
    queues = [fo.Queue("a", guarantee={"gpu": 2, "cpu": 4}), fo.Queue("b", guarantee={"gpu": 2}, limit={"memory": 9})]
    lab = fo.Instance([[8, 64, 64]], [[1, 1, 1], [1, 1, 1]], resources=["gpu", "cpu", "memory"], queues=queues, queue_of=["a", "b"])
    for width in (None, (3.4, 2.6)):
        label = plot_queues(fo.solve(lab, "drfh"), figsize=width).axes[0].get_xlabel()
        assert " ".join(label.split()) == "part of the gpu of the cluster (without guarantees and limits of cpu and memory)"
    assert plot_queues(fo.solve(lab.replace(queues={"a": None}), "drfh"), "memory").axes[0].get_xlabel().endswith("limits of gpu)")


def test_the_deepest_of_many_queues_are_left_out() -> None:
    """3 queues with 30 each: the 90 are named in the caption. Drawn without a warning."""
    queues = [fo.Queue(f"top-{k}") for k in range(3)] + [fo.Queue(f"q-{k}", f"top-{k % 3}") for k in range(90)]
    instance = fo.Instance([[100]], np.ones((90, 1)), queues=queues, queue_of=[f"q-{k}" for k in range(90)])
    figure = plot_queues(given(instance, np.ones((90, 1)), "rdm"))
    figure.draw_without_rendering()
    assert len(lengths(figure)) == 3
    assert figure.get_supxlabel() == "90 queues below level 1 not shown"


def test_a_comparison_by_queue() -> None:
    """A group of bars for each queue, one bar for each allocation: the dominant shares of what they hold."""
    comparison = fo.compare(LAB, notions=["drfh"], allocations={"mine": np.array([[2.0], [1.0], [1.0]])})
    figure = comparison.plot(by="queue")
    axes = figure.axes[0]
    assert axes.get_title(loc="left") == "Share of each queue"
    assert [label.get_text().strip() for label in axes.get_yticklabels()] == ["a", "a1", "b"]
    held = [each.dominant_share for row in comparison for each in row.allocation.queue_holdings()[1:]]  # type: ignore[union-attr]
    assert lengths(figure) == pytest.approx([100 * part for part in held])
    with pytest.raises(fo.Unsupported, match="no queues to draw"):
        fo.compare(fo.Instance([[1]], [[1]])).plot(by="queue")
    with pytest.raises(fo.Unsupported, match='there is no picture by "server"'):
        comparison.plot(by="server")  # type: ignore[arg-type]


def test_a_comparison_of_many_queues_has_those_in_the_root() -> None:
    """Of 40 below 2 of the root, the 2."""
    queues = [fo.Queue("x"), fo.Queue("y")] + [fo.Queue(f"q{k}", "xy"[k % 2]) for k in range(40)]
    instance = fo.Instance([[100]], np.ones((40, 1)), queues=queues, queue_of=[f"q{k}" for k in range(40)])
    axes = fo.compare(instance, notions=["drfh"]).plot(by="queue").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
