"""The page of schedulers side by side: its numbers are those of the frames, each scheduler has one colour, and nothing is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.plots.colours import looks
from fairopt.reporting.side_by_side import write_side_by_side_page

NAMES = ["fifo", "fairtree:half_life=7d", "drfh", "drfh:half_life=60"]


@pytest.fixture(scope="module")
def found() -> fo.SideBySide:
    """Two users, one with a name that is a tag, under four schedulers, one of which had not begun."""
    from dataclasses import replace

    trace = fo.Trace(["<A>", "B"], [0, 50], [4, 4], [[1], [1]], [100, 5], gangs=[1, 1], resources=["cpu"])
    cluster = fo.Instance([[4]], [[1]], users=["nobody"], resources=["cpu"])
    return replace(fo.compare_over_time(trace, cluster, NAMES, step=1.0, until=95), not_begun=("backfill",))


@pytest.fixture(scope="module")
def page(found: fo.SideBySide, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page."""
    path = tmp_path_factory.mktemp("page") / "week.html"
    write_side_by_side_page(found, path)
    return path.read_text()


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, without tags."""
    table = page[page.index(heading) :].partition("<tbody>")[2].partition("</tbody>")[0]
    return [[re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in table.split("</tr>")[:-1]]


def test_numbers_are_those_of_the_frames(found: fo.SideBySide, page: str) -> None:
    """B waits for fifo to the end of the simulation at 95 s; that is said."""
    table = rows(page, "Every scheduler")
    assert [row[0] for row in table] == NAMES
    assert table[0][1:3] == ["0 of 2", "0 s"]
    shortfall = [f"{value:.3g} h" for value in found.to_frame()["shortfall_h"]]
    assert [row[6] for row in table] == shortfall
    assert "fifo: 1 job never started" in page
    assert "Not begun when the simulation was stopped: backfill" in page
    users = rows(page, "<summary>Shortfall, in share-hours")
    assert [row[0] for row in users] == ["B", "&lt;A&gt;"]
    assert users[0][2] == shortfall[0].removesuffix(" h")


def test_each_scheduler_has_one_colour_everywhere(found: fo.SideBySide, page: str) -> None:
    """In the legend, in every table and in the lines and dots of both pictures; no two have the same look."""
    look = looks(NAMES)
    assert len({*look.values()}) == len(NAMES)
    for name in NAMES:
        marks = re.findall(rf'<svg class="mark"[^>]*><line [^>]*stroke="(#\w+)"[^>]*></svg>(?:<bdi>)?{re.escape(name)}[< ]', page)
        assert len(marks) == 10  # the legend, the table of schedulers, that of windows, seven of users
        assert {*marks} == {look[name].colour}
    for figure in (found.plot(), found.plot("user")):
        for axes in figure.axes:
            lines = {str(line.get_label()): line.get_color() for line in axes.get_lines()}
            assert lines == {} or lines == {name: look[name].colour for name in lines}


def test_nothing_is_loaded_and_names_are_no_tags(page: str) -> None:
    """Neither scripts nor files; a policy forbids them."""
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link[^>]+href=\"(?!data:)|src=|@import|url\((?!#)", page)
    assert "<A>" not in page


def test_the_name_of_a_page_ends_in_html(found: fo.SideBySide, tmp_path: Path) -> None:
    """Refused before anything is drawn."""
    with pytest.raises(fo.Unsupported, match=r"end its name in \.html"):
        write_side_by_side_page(found, tmp_path / "week.pdf")


def test_a_picture_by_anything_else_is_refused(found: fo.SideBySide) -> None:
    """Time or user."""
    with pytest.raises(fo.Unsupported, match='not by "queue"'):
        found.plot("queue")  # type: ignore[arg-type]
