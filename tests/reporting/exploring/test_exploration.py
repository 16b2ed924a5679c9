"""What follows from changes: the answer of the same command line, in parts, with sentences in the place of errors."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.command_line import EXAMPLES, PAPER, run

import fairopt as fo
from fairopt.reporting.exploring import exploration as module
from fairopt.reporting.exploring.exploration import PLACES, Asked, Exploration

LAB, TREE = EXAMPLES / "gpu-lab", EXAMPLES / "research-queues.yaml"
BAD = "<img src=x onerror=alert(1)>\x1b[31m"
WEIGHT = "users.vision.weight=4"


@pytest.fixture
def lab() -> Exploration:
    """A lab of eight users."""
    return Exploration(LAB)


def parts(explored: Exploration, changes: tuple[str, ...] = (), notion: str = "drfh", name: str = "vision") -> dict[str, module.Part]:
    """Return the parts of an answer by their places."""
    return {part.place: part for part in explored.answer(Asked(changes, (notion,), name))}


def users(explored: Exploration, changes: tuple[str, ...], *notions: str) -> str:
    """Return the table of users."""
    return next(part.text for part in explored.answer(Asked(changes, notions or ("drfh",), "vision")) if part.place == "users")


def cells(table: str) -> list[list[str]]:
    """Return the cells of the first table of a page."""
    rows = re.findall(r"<tr>(.*?)</tr>", table.partition("</table>")[0], re.DOTALL)
    texts = [re.findall(r"<t[dh](?! class=.drawn| scope=.col. class=.drawn)[^>]*>(.*?)</t[dh]>", row) for row in rows]
    return [[html.unescape(re.sub("<.*?>", " ", cell)).strip() for cell in row] for row in texts]


def test_the_parts_come_in_their_order() -> None:
    """What listeners are told and the table first, the frontier last: a picture that is an image, and says what it shows."""
    found = parts(Exploration(PAPER), ("users.user-1.weight=2",), name="user-1")
    assert list(found) == [place for place in PLACES if place in found]
    assert set(PLACES) - set(found) == {"error", "remarks", "queues", "bounds"}
    assert {place for place, part in found.items() if part.form == "svg"} == {"frontier"}
    assert "drfh: " in found["frontier"].says
    assert "smallest share" in found["frontier"].says
    assert found["summary"].text.startswith("1 change. drfh: ")
    assert found["proof"].text.startswith("drfh: Certified exact")
    assert "user-1 runs " in found["explanation"].text
    assert parts(Exploration(PAPER), name="user-1")["summary"].text == "As in the file."


@pytest.mark.parametrize("notion", ["drfh", "proportional:alpha=2"])
def test_the_command_gives_the_same_answer(lab: Exploration, notion: str) -> None:
    """The command line that the page shows, run as it stands."""
    asked = Asked((WEIGHT, "servers.dgx.count=4"), (notion,), "vision")
    program, *words = shlex.split(lab.command(asked))
    assert program == "fairopt"
    solved = json.loads(run(*words, "--json").output)
    heads, *rows = cells(users(lab, asked.changes, notion))
    now = {row[0]: float(row[heads.index("now")]) for row in rows}
    assert now == pytest.approx({user["name"]: user["tasks"] for user in solved["users"]}, rel=1e-3)


def test_notions_stand_side_by_side(lab: Exploration) -> None:
    """Columns and bars of each, on one scale, with frames as before; the command compares them."""
    asked = Asked((WEIGHT,), ("drfh", "tsf", "psdsf"), "vision")
    table = users(lab, asked.changes, *asked.notions)
    heads = cells(table)[0]
    assert [head.split() for head in heads if head.endswith("before")] == [[name, "before"] for name in asked.notions]
    assert heads.count("now") == heads.count("change") == 3
    assert table.count('class="axis"') == 3
    assert table.count('class="bar"') == 3 * 8
    assert 'class="before"' in table
    assert 'class="before"' not in users(lab, (), *asked.notions)
    assert shlex.split(lab.command(asked))[:5] == ["fairopt", "compare", str(LAB), "--notions", "drfh,tsf,psdsf"]


def test_a_notion_that_fails_leaves_the_others(lab: Exploration) -> None:
    """Its message is a remark."""
    found = {part.place: part for part in lab.answer(Asked((), ("drfh", "bbf"), "vision"))}
    assert "error" not in found
    assert "bbf: " in found["remarks"].text
    assert "bbf" not in found["users"].text


def test_capacities_and_demands_change_too() -> None:
    """And bars never exceed the scale."""
    explored = Exploration(LAB)
    found = parts(explored, ("servers.dgx.capacity.gpu=16", "users.vision.demand.gpu=2"))
    widths = [float(width) for place in ("users", "servers") for width in re.findall(r'width="([0-9.]+)%"', found[place].text)]
    assert widths
    assert max(widths) <= 100


def test_changes_of_the_command_line_come_first() -> None:
    """They are what the page begins with, and what "before" means."""
    explored = Exploration(LAB, [WEIGHT], sharing="rdm")
    assert explored.instance == fo.load(LAB, changes=[WEIGHT])
    command = explored.command(Asked(("users.vision.weight=5",), ("tsf",), "vision"))
    assert command == f"fairopt solve {LAB} --notion tsf --sharing rdm --set users.vision.weight=4 --set users.vision.weight=5"
    asked = Asked(("users.vision.weight=5",), ("drfh",), "vision")
    before = fo.solve(fo.load(LAB, changes=[WEIGHT]), "drfh")["vision"].tasks
    row = next(row for row in cells(users(explored, asked.changes)) if row[0] == "vision")
    assert float(row[1]) == pytest.approx(before, rel=1e-3)
    assert {knob.path: knob.value for knob in explored.knobs}["users.vision.weight"] == 4


def test_the_file_is_solved_once_for_each_notion(lab: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drag costs one allocation; without a change, none."""
    users(lab, ())
    asked: list[fo.Instance] = []

    def counted(instance: fo.Instance, **options: Any) -> fo.Comparison:
        asked.append(instance)
        return fo.compare(instance, **options)

    monkeypatch.setattr(module, "compare", counted)
    users(lab, ())
    assert asked == []
    users(lab, (WEIGHT,))
    assert asked == [fo.load(LAB, changes=[WEIGHT])]


@pytest.mark.parametrize(
    ("changes", "notion", "sentence"),
    [
        (("users.vision.weight=-1",), "drfh", 'user "vision", weight: expected a number >= 0, found -1'),
        (("servers.dgx.count=1.5",), "drfh", "count"),
        (("servers.nwe.count=1",), "drfh", 'there is no server "nwe"'),
        ((), "drf", "server"),
    ],
)
def test_an_error_is_a_sentence(lab: Exploration, changes: tuple[str, ...], notion: str, sentence: str) -> None:
    """And nothing else is shown with it."""
    (only,) = parts(lab, changes, notion).values()
    assert (only.place, only.form) == ("error", "sentence")
    assert sentence in only.text


def test_guarantees_beyond_the_cluster_are_said() -> None:
    """They are no error, and the queues have a picture; a tree with guarantees has no frontier, and the page says why."""
    found = parts(Exploration(TREE), ("queues.research.guarantee.gpu=60",), name="research")
    assert found["remarks"].text.startswith("guarantees of gpu exceed the cluster by 12")
    assert 'class="missing"' in found["queues"].text
    assert found["frontier"].form == "sentence"
    assert "guarantee" in found["frontier"].text
    assert "research" in found["explanation"].text


def test_labels_stay_text(tmp_path: Path) -> None:
    """No tag and no control character of a label is in the HTML."""
    path = tmp_path / "bad.yaml"
    fo.save(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=[BAD, "b"], servers=[f"{BAD}s"]), path)
    answer = Exploration(path).answer(Asked((f"users.{BAD}.weight=2",), ("drfh",), BAD))
    found = {part.place: part.text for part in answer if part.form == "html"}
    assert set(found) == {"users", "servers", "measures", "explanation"}
    for place, text in found.items():
        assert "<img" not in text
        assert "\x1b" not in text
        assert (html.escape("<img src=x onerror=alert(1)>") in text) == (place != "measures")


def test_the_file_is_read_once_and_stays_as_it_is(tmp_path: Path) -> None:
    """Saving writes another file, never over one unless it is told to."""
    path = tmp_path / "lab.yaml"
    fo.save(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["a", "b"]), path)
    explored, asked, before = Exploration(path), Asked(("users.a.weight=2",), ("drfh",), "a"), path.read_bytes()
    assert next(explored.answer(asked)).place == "summary"
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["lab.yaml"]
    written = explored.save_as(asked, str(tmp_path / "changed.yaml"))
    assert fo.load(written) == explored.changed(asked.changes) == fo.load(path, changes=asked.changes)
    for taken in (written, path):
        kept = taken.read_bytes()
        with pytest.raises(fo.InvalidInstance, match="exists"):
            explored.save_as(asked, str(taken))
        assert taken.read_bytes() == kept
    path.write_text("unreadable: [")
    assert explored.save_as(Asked((), ("drfh",), "a"), str(written), replace=True) == written
    assert fo.load(written) == explored.instance
    with pytest.raises(fo.InvalidInstance, match="folder"):
        explored.save_as(asked, str(tmp_path))


BOUNDED = """
resources: [gpu]
servers: [{name: s, capacity: {gpu: 12}}]
users:
- {name: ann, demand: {gpu: 1}}
- {name: ben, demand: {gpu: 1}}
- {name: cid, demand: {gpu: 1}}
limits: [{name: few, bound: 2, users: [cid]}]
rules: ["x[ann] >= 6"]
"""


@pytest.fixture
def bounded(tmp_path: Path) -> Exploration:
    """Three users, a limit, and a rule of the file and one of the command line."""
    path = tmp_path / "bounded.yaml"
    path.write_text(BOUNDED)
    return Exploration(path, rules=["x[ben] <= 3"])


def test_every_answer_obeys_the_rules(bounded: Exploration) -> None:
    """By hand: ann is left 7 by the 3 and the 2 of the others; with a limit of 4 she is left 6 and ben, who is lowest, has 3."""
    now = {row[0]: row for row in cells(users(bounded, ("limits.few.bound=4",)))[1:]}
    assert {name: row[1:3] for name, row in now.items()} == {"ann": ["7", "6"], "ben": ["3", "3"], "cid": ["2", "3"]}
    found = parts(bounded, ("limits.few.bound=4",), name="ben")
    assert cells(found["bounds"].text)[1:] == [
        ["few", "2 tasks, at most 2 tasks: reached", "3 tasks, at most 4 tasks"],
        ["x[ann] >= 6", "7, at least 6", "6, at least 6: reached"],
        ["x[ben] <= 3", "3, at most 3: reached", "3, at most 3: reached"],
    ]
    assert "x[ben] &lt;= 3" in found["explanation"].text
    assert found["frontier"].form == "svg"


def test_rules_are_in_the_command_and_in_what_is_saved(bounded: Exploration, tmp_path: Path) -> None:
    """Of the file and of the command line; the command solves the same."""
    asked = Asked(("users.ann.weight=3",), ("drfh",), "ann")
    words = shlex.split(bounded.command(asked))
    assert words[-2:] == ["--rule", "x[ben] <= 3"]
    solved = {user["name"]: user["tasks"] for user in json.loads(run(*words[1:], "--json").output)["users"]}
    saved = fo.load(bounded.save_as(asked, str(tmp_path / "saved.yaml")))
    assert [str(rule) for rule in saved.rules] == ["x[ann] >= 6", "x[ben] <= 3"]
    assert solved == pytest.approx(dict(zip(saved.users, fo.solve(saved).tasks_per_user.tolist(), strict=True)))


def test_what_cannot_obey_rules_says_so(bounded: Exploration) -> None:
    """A notion that refuses them, and rules that a change makes infeasible."""
    assert "psdsf" in parts(bounded, notion="psdsf", name="ann")["error"].text
    assert "x[ann] >= 6" in parts(bounded, notion="psdsf", name="ann")["error"].text
    beside = {part.place: part for part in bounded.answer(Asked((), ("drfh", "psdsf"), "ann"))}
    assert 'psdsf: the instance has the rule "x[ann] >= 6"' in beside["remarks"].text
    assert "cannot be met together" in parts(bounded, ("servers.s.capacity.gpu=5",), name="ann")["error"].text
