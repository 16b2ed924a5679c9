"""Pictures: one figure for a few users and for many, written whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instances import uniform_instance
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import fairopt as fo
from fairopt.plots import plot_allocation, save_figure
from fairopt.plots.style import PLACEMENTS, looks


def allocate(users: int, servers: int, notion: str = "drfh", sharing: str = "rdm") -> fo.Allocation:
    """Solve a random instance, the same each time; every second user has few tasks."""
    rng = np.random.default_rng(users)
    tasks = np.where(np.arange(users) % 2, np.inf, 0.5)
    instance = fo.Instance(rng.uniform(1, 9, (servers, 2)), rng.uniform(0.1, 1, (users, 2)), tasks=tasks, resources=["cpu", "memory"])
    return fo.solve(instance, notion, sharing=sharing)  # type: ignore[arg-type]


def bars(axes: Axes) -> list[Rectangle]:
    """Return the bars of one side."""
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def texts(figure: Figure) -> list[str]:
    """Return all that is written in a figure."""
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(match=lambda artist: hasattr(artist, "get_text")) if text.get_text()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("users", "servers", "notion", "sharing"),
    [
        (1, 1, "drfh", "rdm"),
        (3, 2, "drfh", "rdm"),
        (3, 2, "per-server-drf", "rdm"),
        (8, 3, "drfh", "tdm"),
        (9, 3, "drfh", "tdm"),
        (30, 4, "uniform", "rdm"),
        (31, 50, "drfh", "rdm"),
        (40, 50, "per-server-drf", "rdm"),
        (60, 60, "tsf", "tdm"),
    ],
)
def test_two_sides_for_every_size(users: int, servers: int, notion: str, sharing: str) -> None:
    """Users left, servers right, drawn without a warning."""
    figure = plot_allocation(allocate(users, servers, notion, sharing))
    assert [axes.get_title(loc="left") for axes in figure.axes][1] == "Use of each server"
    figure.draw_without_rendering()


def test_few_users_are_stacked_on_the_servers() -> None:
    """The parts of the users on a server add up to its utilization."""
    allocation = allocate(4, 2)
    left, right = plot_allocation(allocation).axes
    assert [bar.get_width() for bar in bars(left)] == pytest.approx(allocation.tasks_per_user.tolist())
    background = [bar for bar in bars(right) if bar.get_facecolor()[:3] == (238 / 255,) * 3]
    stacked = sum(bar.get_width() for bar in bars(right) if bar not in background)
    assert len(background) == 4
    assert stacked == pytest.approx(allocation.utilization.sum())


def test_many_users_are_a_curve_with_levels() -> None:
    """Sorted shares, and the level at which most of the users stop."""
    allocation = allocate(200, 3)
    figure = plot_allocation(allocation)
    curve = figure.axes[0].patches[0].get_data().values  # type: ignore[attr-defined]
    assert curve.tolist() == sorted(allocation.shares.tolist())
    largest = max(allocation.levels, key=lambda level: len(level.users))
    assert f"level {largest.value:.4g}: {len(largest.users)} users" in texts(figure)


def test_levels_of_a_tree_are_no_shares() -> None:
    """They are times of the filling, so that no line is drawn at them; shares divided by weights are called so."""
    rng = np.random.default_rng(3)
    flat = fo.Instance(rng.uniform(10, 40, (3, 2)), rng.uniform(0.5, 4, (40, 2)), weights=rng.choice([1.0, 2.0], 40))
    tree = flat.replace(queues=[fo.Queue("a", weight=2), fo.Queue("b")], queue_of=["a", "b"] * 20)
    for instance, lines, heading in ((flat, True, "share / weight"), (tree, False, "share")):
        left = fo.solve(instance, "drfh").plot().axes[0]
        assert bool(left.texts) == lines
        assert left.get_ylabel() == heading
        assert left.get_title(loc="left") == f"{heading.capitalize()} of each user"
    few = fo.Instance([[10]], [[1], [1]], weights=[4, 1], users=["a", "b"])
    assert [text.get_text() for text in fo.solve(few, "drfh").plot().axes[0].texts] == [
        "8  (share / weight 0.2)",
        "2  (share / weight 0.2)",
    ]
    queued = few.replace(queues=[fo.Queue("q")], queue_of=["q", "q"])
    assert [text.get_text() for text in fo.solve(queued, "drfh").plot().axes[0].texts] == ["8  (share 0.8)", "2  (share 0.2)"]


def test_labels_are_text_and_not_mathematics() -> None:
    """A label may hold dollars, markup, control characters and be long."""
    names = ["$x^$", "a$\\frac$b", "bell\a", "a name that is far too long to be shown"]
    allocation = fo.solve(fo.Instance([[9.0, 9.0]], np.ones((4, 2)), users=names, resources=["$cpu$", "memory"]), "drf")
    shown = texts(plot_allocation(allocation))
    assert r"\$x^\$" in shown  # how matplotlib is told that a dollar is a dollar
    assert "bell?" in shown
    assert "a name that is far to…" in shown


def test_allocation_plots_itself_without_pyplot() -> None:
    """Nothing global is touched."""
    before = "matplotlib.pyplot" in sys.modules
    assert isinstance(allocate(3, 2).plot(), Figure)
    assert ("matplotlib.pyplot" in sys.modules) == before


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".PDF", b"%PDF")])
def test_saving_the_same_picture_twice_gives_the_same_bytes(tmp_path: Path, suffix: str, start: bytes) -> None:
    """So that a picture in a repository changes only when its numbers do."""
    paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for path in paths:
        save_figure(plot_allocation(allocate(3, 2)), path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert first.startswith(start)
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize("name", ["picture", "picture.bmp", "picture.svg.gz"])
def test_an_unknown_suffix_is_refused(tmp_path: Path, name: str) -> None:
    """With those that are known."""
    with pytest.raises(fo.Unsupported, match=r"end its name in \.svg, \.png or \.pdf"):
        save_figure(Figure(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_picture_that_cannot_be_drawn_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole or not at all."""
    target = tmp_path / "picture.png"
    target.write_bytes(b"old")

    def fail(*arguments: object, **options: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(fo.InvalidInstance, match="cannot be written: no space"):
        save_figure(plot_allocation(allocate(3, 2)), target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


@pytest.mark.parametrize("users", [2, 3])
def test_trajectory_of_few_users(users: int) -> None:
    """A line for each pair and each limit that fills up, from start to end, with a legend that no line runs through."""
    instance = uniform_instance(users, 2, seed=users, capacities=(1, 5), demands=(0.2, 2))
    allocation = fo.solve(instance, "proportional", solver="trajectory")
    figure = allocation.trace.plot()
    figure.draw_without_rendering()
    left, right = figure.axes
    assert [len(left.lines), len(right.lines)] == [2 * users, int(allocation.trace.bottlenecks.sum())]
    ends = np.array([np.asarray(line.get_ydata(), float)[-1] for line in left.lines])
    np.testing.assert_allclose(ends, allocation.trace.x[-1])
    for axes in (left, right):
        legend = axes.get_legend()
        assert legend is not None
        assert legend.get_window_extent().ymax <= axes.get_window_extent().ymin


@pytest.mark.parametrize(("users", "servers"), [(2, 1), (3, 1), (1, 3)])
def test_long_labels_stay_inside_the_picture_of_a_polytope(users: int, servers: int) -> None:
    """Axes, titles and legend: nothing is cut off, and no title runs into the next."""
    rng = np.random.default_rng(1)
    names: dict[str, Any] = {"users": [f"{n}" + "B" * 60 for n in range(users)], "servers": [f"{i}" + "S" * 60 for i in range(servers)]}
    instance = fo.Instance(rng.uniform(1, 2, (servers, 2)), rng.uniform(0.5, 1, (users, 2)), resources=["R" * 60, "cpu"], **names)
    figure = fo.solve(instance, "proportional", solver="trajectory").trace.plot_polytope()
    figure.draw_without_rendering()
    whole = figure.bbox
    for axes in figure.axes:
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title):
            box = text.get_window_extent()
            assert box.x0 >= whole.x0
            assert box.x1 <= whole.x1
            assert box.y0 >= whole.y0
            assert box.y1 <= whole.y1
        assert axes._left_title.get_window_extent().x1 <= axes.get_window_extent().x1
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= whole.x0
    assert legend.x1 <= whole.x1


def test_a_share_that_is_the_number_of_tasks_is_not_noted() -> None:
    """Efficiency counts tasks; a max-min notion has shares beside."""
    assert not [text for text in texts(plot_allocation(allocate(3, 2, "efficiency"))) if "(share" in text]
    assert len([text for text in texts(plot_allocation(allocate(3, 2, "tsf"))) if "(share" in text]) == 3


def test_a_sign_that_the_font_lacks_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In words, and the picture is there."""
    save_figure(plot_allocation(fo.solve(fo.Instance([[1]], [[1]], users=["学生"]), "drf")), tmp_path / "a.png")
    (message,) = [record.getMessage() for record in caplog.records]
    assert "the font lacks some characters" in message
    assert (tmp_path / "a.png").exists()


def test_a_placement_has_one_colour_in_every_picture() -> None:
    """Whatever else is drawn, and in whatever order; no two lines of one picture share theirs."""
    alone = looks(["best-fit"])["best-fit"]
    for names in (["14 slots", "best-fit"], ["drfh:first-fit", "drfh:best-fit:metric=l2", "mine"], ["drfh", "tsf", "tsf:best-fit"]):
        found = looks(names)
        assert list(found) == names
        assert next(look for name, look in found.items() if "best-fit" in name) == alone
        assert len(set(found.values())) == len(names)
    assert looks(["drfh:best-fit", "tsf:best-fit"])["drfh:best-fit"] == alone
    assert len(set(looks(["drfh:best-fit", "tsf:best-fit"]).values())) == 2
    assert set(PLACEMENTS) == set(fo.PLACEMENTS)
    assert len(looks(map(str, range(20)))) == 20
