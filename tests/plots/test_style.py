"""What all pictures share: their files, the axes that they are drawn into, and the settings of the session, which stay as they are."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import fairopt as fo
from fairopt import plots
from fairopt.plots import save_figure

ALLOCATION = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["vision", "speech"]), "drf")
POOL = fo.Instance([[1, 1]], [[1, 0.2], [0.4, 0.8]], users=["A", "B"])
PATH = fo.solve(POOL, "bbf", solver="trajectory").trace
LAB = fo.Instance([[10]], [[1], [1]], queues=[fo.Queue("a", weight=4), fo.Queue("b")], queue_of=["a", "b"])
CLUSTER = fo.Instance([[9, 18], [4, 4]], [[1, 1]], resources=["cpu", "memory"])
TRACE = fo.Trace(["A", "B"], [0, 5], [4, 4], [[1, 4], [3, 1]], [10, 10], resources=["cpu", "memory"])
RUN = fo.simulate(TRACE, CLUSTER, "psdsf")
ARRIVALS = fo.arrivals(fo.Instance([[4.0]], [[0.6], [2.0]], tasks=[8, 2], resources=["gpu"]), "gpu", seeds=range(2), step=0.5, workers=1)
TWO = {"slots": [0.5, 1.0], "best-fit": [1.0, 0.9]}

ONE_PANEL: dict[str, Callable[..., Figure]] = {
    "shares": lambda **options: plots.plot_shares(ALLOCATION, **options),
    "utilization": lambda **options: plots.plot_utilization(ALLOCATION, **options),
    "queues": lambda **options: fo.solve(LAB, "drfh").plot(by="queue", **options),
    "polytope": lambda **options: PATH.plot_polytope(**options),
    "frontier": lambda **options: fo.frontier(POOL, notions=["drf"], alphas=[0]).plot(**options),
    "completion ratios": lambda **options: plots.plot_completion_ratios(TWO, [3, 4], **options),
}
PANELS: dict[str, Callable[..., Figure]] = {
    "allocation": ALLOCATION.plot,
    "comparison": fo.compare(POOL, notions=["drf"]).plot,
    "trajectory": PATH.plot,
    "convergence": fo.solve(POOL, "psdsf", solver="best-response").trace.plot,
    "simulation": RUN.plot,
    "arrivals": ARRIVALS.plot,
    "completion times": lambda **options: plots.plot_completion_times(TWO, [1, 5], [4], **options),
    "row utilization": lambda **options: plots.plot_row_utilization({"psdsf": RUN}, [0, 1], 0, **options),
    "utilization over time": lambda **options: plots.plot_utilization_over_time({"psdsf": RUN}, **options),
}


@pytest.mark.parametrize("picture", ONE_PANEL)
def test_a_picture_of_one_panel_is_drawn_into_given_axes(picture: str) -> None:
    """In their figure, beside what is there already, with the title that is given; the other axes stay empty."""
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    assert ONE_PANEL[picture](ax=left, title="A title") is figure
    figure.draw_without_rendering()
    assert left.has_data()
    assert left.get_title(loc="left") == "A title"
    assert not right.has_data()
    assert figure.get_suptitle() == ""
    assert not figure.legends


def test_envy_is_drawn_into_given_axes() -> None:
    """Its title is the name of the allocation."""
    figure = Figure()
    axes = figure.subplots()
    assert plots.plot_envy(np.array([[0.0, 1.0], [0.0, 0.0]]), ["A", "B"], "drfh", ax=axes) is figure
    assert axes.images


@pytest.mark.parametrize("picture", PANELS)
def test_a_picture_of_panels_takes_as_many_axes_and_refuses_one(picture: str) -> None:
    """The refusal names the panels and says what to give."""
    draw = PANELS[picture]
    number = len(draw().axes)
    figure = Figure()
    panels = figure.subplots(number, 1)
    assert draw(ax=panels) is figure
    assert all(axes.has_data() for axes in panels)
    with pytest.raises(fo.Unsupported, match=rf"has {number} panels \(.*\), and ax= has 1; leave ax= out, or give figure.subplots"):
        draw(ax=Figure().subplots())


@pytest.mark.parametrize("picture", [*ONE_PANEL, *PANELS])
def test_size_and_title_of_a_new_figure(picture: str) -> None:
    """In inches; "" is no title, and a size has no meaning for given axes."""
    draw = {**ONE_PANEL, **PANELS}[picture]
    figure = draw(figsize=(5, 3), title="A title")
    assert figure.get_size_inches().tolist() == [5, 3]
    assert figure.get_suptitle() == "A title"
    assert draw(title="").get_suptitle() == ""
    with pytest.raises(fo.Unsupported, match="give one of the two"):
        draw(ax=Figure().subplots(), figsize=(5, 3))


@pytest.mark.parametrize("picture", ["allocation", "comparison"])
def test_a_figure_as_wide_as_a_column_has_its_panels_below_each_other(picture: str) -> None:
    """Side by side they would have no room left; in a wide figure they stay side by side."""
    draw = PANELS[picture]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        narrow, wide = draw(figsize=(3.4, 4.2)), draw(figsize=(9, 4))
        for figure in (narrow, wide):
            figure.draw_without_rendering()
    upper, lower = (axes.get_position() for axes in narrow.axes[:2])
    assert lower.y1 < upper.y0
    left, right = (axes.get_position() for axes in wide.axes[:2])
    assert left.x1 < right.x0


def test_no_title_says_how_resources_are_shared_where_they_are_divided() -> None:
    """Time division is said."""
    assert ALLOCATION.plot().get_suptitle() == "drf: 2 users on 1 server"
    assert fo.solve(POOL, "drf", sharing="tdm").plot().get_suptitle() == "drf: 2 users on 1 server, by time division"


def test_fonts_are_embedded_as_truetype(tmp_path: Path) -> None:
    """Whoever writes them; Type 3, which journals refuse, is what matplotlib writes by itself."""
    figure = plots.plot_envy(np.zeros((1, 1)), ["A"])
    save_figure(figure, tmp_path / "a.pdf")
    page = (tmp_path / "a.pdf").read_bytes()
    assert b"/Subtype /CIDFontType2" in page or b"/Subtype /TrueType" in page
    assert b"/Subtype /Type3" not in page
    written = io.BytesIO()
    figure.savefig(written, format="ps")
    assert b"/FontType 42" in written.getvalue()


@pytest.mark.parametrize("picture", ["allocation", "frontier"])
def test_text_of_an_svg_is_text(tmp_path: Path, picture: str) -> None:
    """The labels of points too, so that it can be searched and edited."""
    save_figure({**ONE_PANEL, **PANELS}[picture](), tmp_path / "a.svg")
    page = (tmp_path / "a.svg").read_text()
    for word in {"allocation": ["vision", "Tasks of each user", "in use"], "frontier": ["DRF", "tasks in all"]}[picture]:
        assert f"{word}" in "".join(part.split("</text>")[0] for part in page.split("<text")[1:])


def test_the_settings_of_the_session_stay_as_they_are(tmp_path: Path) -> None:
    """Also while a picture is drawn and written."""
    settings: Any = matplotlib.rcParams
    before = dict(settings)
    for draw in (*ONE_PANEL.values(), *PANELS.values()):
        draw()
    save_figure(ALLOCATION.plot(), tmp_path / "a.svg")
    ALLOCATION.plot().savefig(tmp_path / "b.svg")
    assert dict(settings) == before


@pytest.mark.parametrize("length", [12, 22])
def test_short_names_differ_where_the_names_do(length: int) -> None:
    """Those that begin alike and those that also end alike; names of a few characters stay as they are, and no name is longer."""
    names = [f"{name}{end}" for name in ("u", "department-of-language-") for end in range(120)]
    names += [f"department-of-speech-{n}-in-the-north" for n in range(50)]
    short = plots.style.short_labels(names, length)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) == length
    assert short[:120] == names[:120]
    assert plots.style.short_labels([]) == []
    assert plots.style.short_labels(["x" * 40] * 2) == ["x" * 21 + "…"] * 2


def test_many_users_with_long_names_have_a_panel_each() -> None:
    """Names that are alike at the start are no reason to take two users for one."""
    users = [f"department-of-language-and-speech-{n}" for n in range(60)]
    trace = fo.Trace(users, np.arange(60.0), [4] * 60, [[1, 4]] * 60, [10] * 60, resources=["cpu", "memory"])
    figure = fo.simulate(trace, CLUSTER, "drfh:best-fit").plot()
    assert len(figure.axes) == 2 + 8
    assert len({axes.get_title(loc="left") for axes in figure.axes}) == 10


@pytest.mark.parametrize("picture", [plots.plot_utilization, fo.Allocation.plot], ids=["utilization", "allocation"])
def test_long_names_leave_legends_and_notes_inside_the_picture(picture: Callable[[fo.Allocation], Figure]) -> None:
    """Eight users: the legend has fewer columns, and the axes make room for the notes."""
    users = [f"department-of-language-and-speech-{n}" for n in range(8)]
    figure = picture(fo.solve(fo.Instance([[9, 18]], np.linspace([1, 4], [3, 1], 8), users=users), "drfh"))
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for axes in figure.axes for text in (*axes.texts, *axes.get_yticklabels())]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    assert min(box.x0 for box in boxes) >= 0
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    for left, right in zip(figure.axes, figure.axes[1:], strict=False):
        assert max(text.get_window_extent().x1 for text in left.texts) < min(t.get_window_extent().x0 for t in right.get_yticklabels())
