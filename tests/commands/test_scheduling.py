"""``fairopt schedule``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command_line import EXAMPLES, PAPER, flat, run


def test_schedule_prints_what_python_gives() -> None:
    """As JSON, as CSV and for people; and it says that it is greedy."""
    kesidis = EXAMPLES / "kesidis.yaml"
    arguments = ("schedule", kesidis, "--schedule", "psdsf:joint")
    data = json.loads(run(*arguments, "--json").stdout)
    assert (data["notion"], data["solver"]) == ("psdsf", "progressive-filling:joint")
    assert [user["servers"] for user in data["users"]] == [{"server-1": 19.0}, {"server-1": 2.0, "server-2": 20.0}]
    assert data["certificate"]["greedy"] is True
    assert data["certificate"]["worst"] is None
    assert "Greedy, so not an optimum" in run(*arguments).stdout
    assert run(*arguments, "--csv").stdout.splitlines()[1].startswith("framework-1,19.0")


def test_schedule_in_fractions(tmp_path: Path) -> None:
    """--exact: three thirds fit, with a hair more only two."""
    path = tmp_path / "c.yaml"
    for demand, tasks in (("1/3", "3"), ("0.333333333333333333333333333334", "2")):
        path.write_text(f"servers:\n- {{name: A, capacity: {{cpu: 1}}}}\nusers:\n- {{name: a, demand: {{cpu: {demand}}}}}\n")
        data = json.loads(run("schedule", path, "--exact", "--json").stdout)
        assert data["users"][0]["exact"]["tasks"] == tasks


def test_schedule_options_reach_the_schedule(tmp_path: Path) -> None:
    """Metric, slots, ties, seed, stop, picture and file."""
    drf = EXAMPLES / "drf.yaml"
    run(
        "schedule",
        drf,
        "--schedule",
        "drfh:best-fit",
        "--metric",
        "cosine",
        "--ties",
        "random",
        "--seed",
        "3",
        "--plot",
        tmp_path / "a.svg",
    )
    assert (tmp_path / "a.svg").exists()
    run("schedule", drf, "--schedule", "drfh:slots", "--slots", "3", "--json", "-o", tmp_path / "a.json")
    assert sum(user["tasks"] for user in json.loads((tmp_path / "a.json").read_text())["users"]) == 3
    assert "stopped at" in flat(run("schedule", drf, "--stop", "first-block").stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schedule", "drfh:bestfit"], 'there is no placement "bestfit" (did you mean "best-fit"?)'),
        (["--schedule", "uniform:first-fit"], '"uniform" equalises no share'),
        (["--metric", "l2"], '"metric" is an option of the placement "best-fit"; use that placement, or leave --metric out'),
        (["--ties", "none"], '--ties: there is no "none"; use index, largest-demand or random'),
        (["--seed", "-1"], "seed is -1"),
    ],
)
def test_bad_schedules_are_status_2(arguments: list[str], message: str) -> None:
    """One message each."""
    assert message in flat(run("schedule", PAPER, *arguments, status=2).stderr)
