"""The table of shared resources, named limits and rules below an allocation."""

from __future__ import annotations

from pathlib import Path

from support.command_line import run

FILE = """\
resources: [cpu]
servers:
- {name: pool, capacity: {cpu: 12}}
shared: {ansys: 3}
users:
- {name: ann, demand: {cpu: 1, ansys: 1}}
- {name: ben, demand: {cpu: 1}}
limits:
- {name: most, bound: 5, users: [ben]}
rules: ["x[ben] >= x[ann]"]
"""


def test_use_bound_price_and_state(tmp_path: Path) -> None:
    """ann stops at the licences (price 1/3: a share is a part of 3), ben at his limit (price 1/12)."""
    file = tmp_path / "pool.yaml"
    file.write_text(FILE)
    text = run("solve", file).stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["ansys", "shared", "3", "at", "most", "3", "0.333", "reached"] in rows
    assert ["most", "limit", "5", "tasks", "at", "most", "5", "tasks", "0.0833", "reached"] in rows
    assert ["x[ben]", ">=", "x[ann]", "rule", "5", "at", "least", "3"] in rows
    assert "reached: all of the bound is used; the two sides of a rule are equal." in text
    assert "used, bound: of a rule its two sides, without terms below 0." in text
    assert "price (dual)" in text


def test_of_many_those_that_are_reached_are_shown(tmp_path: Path) -> None:
    """30 users with a limit each: the 12 cpu reach those of the three with the smallest."""
    file = tmp_path / "many.yaml"
    users = "".join(f"- {{name: u{n}, demand: {{cpu: 1}}}}\n" for n in range(30))
    limits = "".join(f"- {{name: of{n}, bound: {0.1 if n > 26 else 9}, users: [u{n}]}}\n" for n in range(30))
    file.write_text(f"resources: [cpu]\nservers:\n- {{name: pool, capacity: {{cpu: 12}}}}\nusers:\n{users}limits:\n{limits}")
    text = run("solve", file).stdout
    assert "Not shown: 10 bounds, none of them reached; --all shows everything." in text
    shown = [line.split()[0] for line in text.splitlines() if " limit " in line and "at most" in line]
    assert len(shown) == 20
    assert shown[:3] == ["of27", "of28", "of29"]
    assert "Not shown" not in run("solve", file, "--all").stdout
