"""The page without a browser: what it gives its script, what it understands of a request, and that the last of several is answered."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.browser import PATIENCE
from support.command_line import EXAMPLES, PAPER

import fairopt as fo
from fairopt.reporting.exploring import exploration as module
from fairopt.reporting.exploring.exploration import PLACES, Asked, Exploration, Part
from fairopt.reporting.exploring.page import Page

BAD = "</script><b>$x$</b>"


def page(path: Path, notion: str = "drfh") -> Page:
    """Return the page of a file."""
    return Page(Exploration(path), notion)


def data(made: Page) -> Any:
    """Return what its script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', made.site().page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def request(made: Page, number: int = 1, **values: Any) -> dict[str, Any]:
    """Return a request as the script sends it."""
    own = {"tab": "one", "number": number, "values": {}, "alpha": 1.0, "notions": ["drfh"], "explained": "user-1"}
    return own | values


class Answers:
    """Answers of one part each, which are counted, and held back if asked for."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.let, self.begun = threading.Event(), threading.Event()
        self.let.set()

    def __call__(self, explored: Exploration, asked: Asked) -> Iterator[Part]:
        """Stand for `Exploration.answer`."""
        self.asked.append(asked)
        self.begun.set()
        assert self.let.wait(PATIENCE)
        yield Part("proof", "sentence", "1 < 2\nproved")
        yield Part("users", "html", "<i>shown</i>")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Nothing is computed."""
    made = Answers()
    monkeypatch.setattr(module.Exploration, "answer", lambda *arguments: made(*arguments))
    return made


def test_a_request_asks() -> None:
    """Nothing but what is changed, in the words of the command line; alpha where there is one; each notion once, three at most."""
    made = page(PAPER)
    values = {"users.user-2.weight": 2 + 0.1 + 0.2, "servers.server-1.count": 4, "users.user-1.weight": 1}
    asked = made.asked(request(made, values=values, notions=["proportional", "drfh", "drfh", "tsf", "psdsf"], alpha=2.5))
    assert asked == Asked(("users.user-2.weight=2.3", "servers.server-1.count=4"), ("proportional:alpha=2.5", "drfh", "tsf"), "user-1")
    assert made.asked(request(made, notions=["proportional"])).notions == ("proportional",)


def test_the_page_has_what_the_command_line_chose() -> None:
    """Alpha moves the slider; other options stay as they are given, in the list of notions."""
    found = data(page(PAPER, "proportional:alpha=3"))
    assert (found["notion"], found["alpha"]) == ("proportional", 3.0)
    found = data(page(PAPER, "fds:beta=3"))
    assert found["notion"] == "fds:beta=3"
    assert found["notions"][0] == ["fds:beta=3", "fds:beta=3"]
    assert {name for name, _ in found["notions"]} >= set(fo.NOTIONS)


def test_sliders_for_each_kind_of_number() -> None:
    """Weights, counts, capacities and demands; of many, eight are shown at once."""
    sections = {section["title"]: section for section in data(page(EXAMPLES / "gpu-lab"))["sections"]}
    assert list(sections) == ["Weights", "Servers of each row", "Capacity of one server", "Demand of a task", "Guarantees"]
    assert sum(knob["shown"] for knob in sections["Demand of a task"]["knobs"]) == 8
    assert len(sections["Demand of a task"]["knobs"]) == 22
    assert {knob["high"] for knob in sections["Weights"]["knobs"]} == {15.0}


def test_of_many_users_eight_have_sliders(tmp_path: Path) -> None:
    """The others can be added by name."""
    path = tmp_path / "many.yaml"
    fo.save(fo.Instance([[9.0]], np.ones((500, 1)), users=[f"u{n}" for n in range(500)], servers=["s"]), path)
    weights = data(page(path))["sections"][0]["knobs"]
    assert len(weights) == 500
    assert [knob["path"] for knob in weights if knob["shown"]] == [f"users.u{n}.weight" for n in range(8)]


def test_the_answer_is_a_part_a_line(answers: Answers) -> None:
    """The command first; sentences as text, tables as they are, and a last line that says that it is all."""
    made = page(PAPER)
    found = list(made.answer(request(made, values={"users.user-2.weight": 4})))
    assert [each["place"] for each in found] == ["command", "proof", "users", "done"]
    assert found[0]["html"].endswith("--set users.user-2.weight=4</pre>")
    assert found[1]["html"] == "<p>1 &lt; 2</p><p>proved</p>"
    assert found[2]["html"] == "<i>shown</i>"


def test_only_the_last_request_of_a_tab_is_answered(answers: Answers) -> None:
    """A later one ends an earlier one between two parts; another tab is not concerned."""
    made = page(PAPER)
    first, other = made.answer(request(made)), made.answer(request(made, tab="two"))
    assert [next(first)["place"], next(first)["place"]] == ["command", "proof"]
    assert [next(other)["place"], next(other)["place"]] == ["command", "proof"]
    later = made.answer(request(made, 2))
    assert next(later)["place"] == "command"
    assert list(first) == []
    assert [each["place"] for each in other] == ["users", "done"]
    assert [each["place"] for each in later] == ["proof", "users", "done"]
    assert [each["place"] for each in made.answer(request(made, 1))] == ["command"]  # it comes late


def test_tabs_take_turns(answers: Answers) -> None:
    """While one computes, the other waits; the lock is held."""
    made = page(PAPER)
    answers.let.clear()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(made.answer(request(made))))
    thread.start()
    assert answers.begun.wait(PATIENCE)
    assert made.turn.locked()
    answers.let.set()
    thread.join(PATIENCE)
    assert [each["place"] for each in found] == ["command", "proof", "users", "done"]
    assert not made.turn.locked()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"servers.server-1.count": 1.5}, 'server "server-1", count: expected a whole number >= 0, found 1.5'),
        ({"users.nobody.weight": 1}, "nothing on this page changes users.nobody.weight"),
    ],
)
def test_an_error_is_a_sentence(values: dict[str, float], sentence: str) -> None:
    """Not its trace, and nothing else comes."""
    made = page(PAPER)
    *_, error, done = made.answer(request(made, values=values))
    assert (error["place"], done["place"]) == ("error", "done")
    assert sentence in html.unescape(error["html"])


def test_a_defect_is_a_sentence(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The trace is for the terminal."""
    monkeypatch.setattr(module, "compare", lambda *arguments, **options: 1 / 0)
    made = page(PAPER)
    *_, error, _ = made.answer(request(made))
    assert error == {"place": "error", "html": "<p>This could not be computed; the terminal says more.</p>"}
    assert "ZeroDivisionError" in caplog.text


def test_names_stay_text(tmp_path: Path) -> None:
    """In the heading, and in the block of data, in which no tag begins; the policy names the hash of the script and of the style."""
    path = tmp_path / "[[script]]<b>.yaml"
    fo.save(fo.Instance([[9.0]], [[1.0]], users=[BAD], servers=["s"]), path)
    made = page(path)
    site = made.site()
    assert data(made)["explainable"] == [[BAD, BAD]]
    assert "<b>" not in site.page
    assert site.page.count("</script>") == 2
    assert site.page.count('"use strict"') == 1
    assert "unsafe" not in site.policy
    assert site.policy.startswith("default-src 'none'; script-src 'sha256-")


def test_saving_says_what_happened(tmp_path: Path) -> None:
    """Where it is written, or why not; an existing file is replaced only with the box ticked."""
    made, path = page(EXAMPLES / "drf.yaml"), tmp_path / "new.yaml"
    for name, replace, place, sentence in (
        ("", False, "saved", "give the name of a file"),
        (str(path), False, "written", "written: "),
        (str(path), False, "saved", "exists; give another name, or tick the box"),
        (str(path), True, "written", "written: "),
    ):
        (said,) = made.save(request(made, name=name, replace=replace, explained="alice"))
        assert said["place"] == place
        assert sentence in said["html"]
    assert fo.load(path) == fo.load(EXAMPLES / "drf.yaml")


def test_every_part_has_a_place_and_every_control_a_name() -> None:
    """By id; the status is announced, and every control of the page has a label."""
    text = page(PAPER).site().page
    assert all(f'id="{place}"' in text for place in (*PLACES, "command", "saved") if place != "summary")
    assert '<p id="status" role="status" aria-live="polite">' in text
    for control in ("explained", "name"):
        assert f'<label for="{control}">' in text
    assert not re.search(r"(src|href)=(?!\"(data:|#))[\"'](?!data:)", text)
