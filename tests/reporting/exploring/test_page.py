"""The page without a browser: widgets ask, places show, and only the last of several changes counts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import pytest
from support.browser import PATIENCE
from support.command_line import EXAMPLES, PAPER

import fairopt as fo
from fairopt.reporting.exploring import exploration as module
from fairopt.reporting.exploring.exploration import PLACES, Asked, Exploration, Part

pytest.importorskip("panel", reason="there is no panel here")

from fairopt.reporting.exploring import page as pages  # needs panel

BAD = "<b>$x$</b>"
COMPUTING = '<p class="computing">computing …</p>'
P = ParamSpec("P")


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in an event loop, as the server runs a page."""

    @wraps(test)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        asyncio.run(test(*arguments, **options))

    return run


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sliders need not rest."""
    monkeypatch.setattr(pages, "_PAUSE", 0.0)


def page(path: Path, notion: str = "drfh") -> pages.Page:
    """Return the page of a file with all its sliders."""
    made = pages.Page(Exploration(path), notion, asyncio.Lock())
    made.template("nonce")
    return made


def slider(made: pages.Page, path: str) -> Any:
    """Return the slider of a path."""
    return next(widget for knob, widget in made._sliders.items() if knob.path == path)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the page does not get there"
        await asyncio.sleep(0.001)


async def settled(made: pages.Page) -> None:
    """Wait until a page computes no more."""
    await until(lambda: made.status.object not in ("", COMPUTING))


class Answers:
    """Answers of one part each, which are counted, and held back if asked for."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.let = threading.Event()
        self.let.set()

    def __call__(self, explored: Exploration, asked: Asked) -> Iterator[Part]:
        """Stand for `Exploration.answer`."""
        self.asked.append(asked)
        self.let.wait(PATIENCE)
        yield Part("table", "html", f"answer {len(self.asked)}")
        yield Part("proof", "sentence", "1 < 2\nproved")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Nothing is computed."""
    made = Answers()
    monkeypatch.setattr(module.Exploration, "answer", lambda *arguments: made(*arguments))
    return made


@in_a_loop
async def test_widgets_ask(answers: Answers) -> None:
    """Nothing but what is changed, in the words of the command line; alpha where there is one."""
    made = page(PAPER)
    assert made.asked() == Asked((), "drfh", "user-1")
    slider(made, "users.user-2.weight").value = 2 + 0.1 + 0.2
    slider(made, "servers.server-1.count").value = 4
    made.explained.value = "user-2"
    assert made.asked() == Asked(("users.user-2.weight=2.3", "servers.server-1.count=4"), "drfh", "user-2")
    made.notion.value, made.alpha.value = "proportional", 2.5
    assert made.asked().notion == "proportional:alpha=2.5"
    made.alpha.value = 1.0
    assert made.asked().notion == "proportional"
    made.reset.clicks += 1
    assert made.asked().changes == ()
    await settled(made)
    assert answers.asked == [Asked((), "proportional", "user-2")]
    assert made.alpha.visible


@in_a_loop
async def test_a_notion_of_the_command_line_is_chosen(answers: Answers) -> None:
    """Alpha moves the slider; other options stay as they are given."""
    lab = PAPER
    made = page(lab, "proportional:alpha=3")
    assert (made.notion.value, made.alpha.value, made.alpha.visible) == ("proportional", 3.0, True)
    made = page(lab, "fds:beta=3")
    assert (made.asked().notion, made.alpha.visible) == ("fds:beta=3", False)


@in_a_loop
async def test_the_answer_is_shown(answers: Answers) -> None:
    """Sentences as text, what does not come is empty, and nothing is pale any more."""
    made = page(PAPER)
    slider(made, "users.user-2.weight").value = 4
    await settled(made)
    assert made.shown["table"].object == "answer 1"
    assert made.shown["proof"].object == "<p>1 &lt; 2</p><p>proved</p>"
    assert made.shown["frontier"].object == ""
    assert {place.styles["opacity"] for place in made.shown.values()} == {"1"}
    assert made.status.object == "<p>1 change</p>"
    assert made.command.object.endswith("--set users.user-2.weight=4</pre>")


@in_a_loop
async def test_only_the_last_change_is_answered(answers: Answers) -> None:
    """While one answer is computed, later changes wait; of these, the last is answered, and the first answer is not shown."""
    answers.let.clear()
    made = page(PAPER)
    await until(lambda: answers.asked)
    for value in (3, 4, 5):
        slider(made, "users.user-2.weight").value = value
        await asyncio.sleep(0.001)
        assert (made.status.object, made.shown["table"].styles) == (COMPUTING, {"opacity": "0.45"})
    answers.let.set()
    await settled(made)
    assert [asked.changes for asked in answers.asked] == [(), ("users.user-2.weight=5",)]
    assert made.shown["table"].object == "answer 2"


@in_a_loop
async def test_an_error_stands_beside_what_was_before() -> None:
    """The sentence of the error, not its trace; the last answer stays, pale."""
    made = page(PAPER)
    made.shown["table"].object = "before"
    slider(made, "servers.server-1.count").value = 1.5
    await settled(made)
    assert "server &quot;server-1&quot;, count: expected a whole number &gt;= 0, found 1.5" in made.shown["error"].object
    assert (made.shown["table"].object, made.shown["table"].styles) == ("before", {"opacity": "0.45"})


@in_a_loop
async def test_a_defect_is_a_sentence(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The trace is for the terminal."""
    monkeypatch.setattr(module, "compare", lambda *arguments, **options: 1 / 0)
    made = page(PAPER)
    await settled(made)
    assert made.shown["error"].object == "<p>This could not be computed; the terminal says more.</p>"
    assert "ZeroDivisionError" in caplog.text


@in_a_loop
async def test_many_users_are_chosen_from_a_list(answers: Answers, tmp_path: Path) -> None:
    """Eight sliders, and a list of the others; one that is chosen gets a slider."""
    path = tmp_path / "many.yaml"
    fo.save(fo.Instance([[9.0]], np.ones((500, 1)), users=[f"u{n}" for n in range(500)], servers=["s"]), path)
    made = pages.Page(Exploration(path), "drfh", asyncio.Lock())
    _, column, choice = made._section("weights")
    assert len(made._sliders) == len(column) == 8
    assert len(choice.options) == 1 + 492
    choice.value = "users.u123.weight"
    assert [knob.name for knob in made._sliders][8:] == ["u123"]
    assert (len(column), choice.value) == (9, "")
    slider(made, "users.u123.weight").value = 3
    assert made.asked().changes == ("users.u123.weight=3",)
    await settled(made)


@in_a_loop
async def test_names_of_sliders_stay_text(answers: Answers, tmp_path: Path) -> None:
    """Panel takes them for HTML with formulas."""
    path = tmp_path / "bad.yaml"
    fo.save(fo.Instance([[9.0]], [[1.0]], users=[BAD], servers=["s"]), path)
    labels = [widget.label for widget in page(path)._sliders.values()]
    assert labels == ["&lt;b&gt;<span>$</span>x<span>$</span>&lt;/b&gt;", "s"]


@in_a_loop
async def test_saving_says_what_happened(answers: Answers, tmp_path: Path) -> None:
    """Where it is written, or why not; an existing file is replaced only with the box ticked, which then is empty again."""
    made, path = page(EXAMPLES / "drf.yaml"), tmp_path / "new.yaml"
    for name, replace, sentence in (
        ("", False, "give the name of a file"),
        (str(path), False, "written: "),
        (str(path), False, "exists; give another name, or tick the box"),
        (str(path), True, "written: "),
    ):
        made.name.value, made.replace.value = name, replace
        await made._save(None)
        assert sentence in made.saved.object
        assert not made.replace.value
    assert fo.load(path) == fo.load(EXAMPLES / "drf.yaml")


def test_every_part_has_a_place() -> None:
    """On the page, by name."""
    text = Path(pages.__file__).with_name("page.html").read_text(encoding="utf-8")
    assert all(f"embed(roots.{place})" in text for place in (*PLACES, "controls", "status", "command", "explained", "saving"))


@in_a_loop
async def test_no_slider_sends_a_script(answers: Answers, tmp_path: Path) -> None:
    """The policy of the page forbids to run a text; the server moves the end of a slider when a number beyond it is typed."""
    from bokeh.models import CustomJS

    path = tmp_path / "lab.yaml"
    fo.save(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["a", "b"]), path)
    made = page(path)
    weight = slider(made, "users.a.weight")
    beyond = 3 * weight.end
    weight._value_edit.value = beyond
    assert (weight.value, weight.end, weight._slider.value, weight._slider.end) == (beyond,) * 4
    assert list(made.template("nonce")._init_doc().select({"type": CustomJS})) == []
