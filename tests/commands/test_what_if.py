"""`fairopt what-if`: two instances side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from support.command_line import EXAMPLES, flat, run

import fairopt as fo
from fairopt.formats import schema as of_instances
from fairopt.results.schema import schema as of_results

LAB = EXAMPLES / "gpu-lab"
WHAT_IF = ("--set", "servers.dgx.count+=2", "--set", "users.vision.weight=4")
LIMITED = (
    "servers: [{name: s, capacity: {gpu: 8}}, {name: t, capacity: {gpu: 8}}]\nusers: [{name: ann, demand: {gpu: 1}}, "
    "{name: bob, demand: {gpu: 2}}]\nlimits: [{name: most, bound: 6, resource: gpu, users: [ann, bob]}]\n"
)


def test_a_file_and_the_same_changed(tmp_path: Path) -> None:
    """What differs, who gains, and through which difference; the same as with the other file."""
    text = run("what-if", LAB, *WHAT_IF).stdout
    assert "1  servers.dgx.count    2       4" in text
    assert "vision         4.8  9.333   +4.533  +94.4 %    +0.8    +3.2" in text
    assert "drfh: 2 users gain, 5 lose, 1 is as before" in text
    other = tmp_path / "more.yaml"
    fo.save(fo.load(LAB).replace(counts={"dgx": 4}, weights={"vision": 4}), other)
    both = [json.loads(run("what-if", *words, "--json").stdout)["rows"] for words in ((LAB, *WHAT_IF), (LAB, other))]
    assert both[0] == both[1]


def test_given_changes_both() -> None:
    """So that nothing differs."""
    text = run("what-if", LAB, LAB, "--given", "users.vision.weight=4").stdout
    assert text.startswith("The two instances are the same.")
    assert "drfh: 8 users are as before" in text
    held = json.loads(run("what-if", LAB, LAB, "--given", "users.vision.weight=4", "--json").stdout)["rows"][0]["users"]
    assert held[1]["before"] == held[1]["after"] == pytest.approx(8)


def test_the_question_keeps_the_sides_apart() -> None:
    """What changed both sides, and what changed the second one alone; under the former name of the command, too."""
    given, changed, rule = "users.vision.weight=4", "servers.dgx.count+=2", "x[vision] <= 6"
    found = json.loads(run("what-if", LAB, "--given", given, "--set", changed, "--rule", rule, "--json").stdout)
    assert [found["question"][key] for key in ("given", "changes", "rules")] == [[given], [changed], [rule]]
    assert not {"changes", "rules"} & found["before"]["question"].keys()
    assert Draft202012Validator(of_results(of_instances())).is_valid(found)
    former = json.loads(run("compare", LAB, "--set", given, "--what-if", changed, "--json").stdout)
    assert [former["question"][key] for key in ("given", "changes", "rules")] == [[given], [changed], []]
    assert [each["path"] for each in former["differences"]] == ["servers.dgx.count"]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_word_of_the_tables_is_broken(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit beside stands below."""
    monkeypatch.setenv("COLUMNS", str(width))
    changes = [word for user in ("vision", "speech", "robotics", "language") for word in ("--set", f"users.{user}.weight*=2")]
    text = run("what-if", LAB, *WHAT_IF, *changes, "--notions", "drfh,tsf", "--schedules", "drfh:best-fit").stdout
    lines = text.splitlines()
    for user in fo.load(LAB).users:
        assert any(line.startswith(f"{user} ") for line in lines)
    assert all(f"only {j}" in text for j in range(1, 6))
    assert "…" not in text
    assert max(map(len, lines)) <= width


def test_csv_has_a_row_for_each_user(tmp_path: Path) -> None:
    """And a column for each difference."""
    table = tmp_path / "changes.csv"
    run("what-if", LAB, *WHAT_IF, "-o", table)
    header, *rows = table.read_text().splitlines()
    assert ",only servers.dgx.count,only users.vision.weight" in header
    assert len(rows) == 8


def test_without_a_change_nothing_can_be_compared() -> None:
    """Neither --set nor OTHER."""
    assert "--set: say what changes" in flat(run("what-if", LAB, status=2).stderr)


def test_instances_without_a_common_user() -> None:
    """There is nobody to gain or lose."""
    message = flat(run("what-if", LAB, EXAMPLES / "drf.yaml", status=2).stderr)
    assert "no user is in both instances: there are language, vision" in message


def test_a_table_without_an_allocation_says_so_beside(tmp_path: Path) -> None:
    """CSV has no rows of it; a line on stderr says why."""
    path = tmp_path / "lab.yaml"
    path.write_text(LIMITED)
    found = run("what-if", path, "--set", "users.ann.weight=2", "--notions", "drfh,psdsf", "--csv")
    assert 'warning: psdsf: no allocation of before: "psdsf" decides server by server' in flat(found.stderr)
    assert "psdsf" not in found.stdout
    assert run("what-if", path, "--set", "users.ann.weight=2", "--csv").stderr == ""
