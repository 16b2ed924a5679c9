"""Which users the table of an allocation shows, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import EXAMPLES, flat, run

import fairopt as fo

LAB = EXAMPLES / "gpu-lab"
USERS = fo.load(LAB).users


def shown(*options: Any, command: str = "solve", file: Path = LAB) -> list[str]:
    """Return the users of the table, in order."""
    lines = run(command, file, *options).stdout.splitlines()
    first = next(j for j, line in enumerate(lines) if line.startswith("user "))
    return [line.split()[0] for line in lines[first + 2 : lines.index("", first)] if not line.startswith("and ")]


def test_all_users_as_in_the_file() -> None:
    """Without an option."""
    assert shown() == list(USERS)


@pytest.mark.parametrize("sort", ["tasks", "share", "weight", "-tasks", "-share", "-weight"])
def test_sorted_by_a_number(sort: str) -> None:
    """The largest first, or the smallest; ties stay in the order of the file."""
    allocation = fo.solve(fo.load(LAB), "drfh")
    numbers = {"tasks": allocation.tasks_per_user, "share": allocation.shares, "weight": allocation.instance.weights}[
        sort.removeprefix("-")
    ]
    numbers = numbers.round(9)
    keys = numbers if sort.startswith("-") else -numbers
    assert shown(f"--sort={sort}") == [USERS[n] for n in np.argsort(keys, kind="stable")]


def test_some_users() -> None:
    """By name, by number, by the alphabet; what is left out is counted."""
    assert shown("--show", "vision", "--show", "language") == ["vision", "language"]
    assert shown("--sort", "name", "--top", "3") == sorted(USERS)[:3]
    assert shown("--top", "2", command="schedule") == list(USERS[:2])
    assert "and 6 more users" in run("solve", LAB, "--top", "2").stdout
    assert shown("--show", "bob", file=EXAMPLES / "research-queues.yaml") == ["bob"]


def test_users_that_are_not_there() -> None:
    """Before anything is solved."""
    message = flat(run("solve", LAB, "--show", "visoin", status=2).stderr)
    assert message.startswith('error: there is no user "visoin" (did you mean "vision"?)')
    assert "users have no single share here" in flat(run("solve", LAB, "--notion", "psdsf", "--sort", "share", status=2).stderr)


def test_users_side_by_side() -> None:
    """compare has a row for each user that is chosen, with its tasks in each allocation; what-if its changes."""
    line = ("--schedules", "drfh:best-fit", "--sort", "tasks", "--top", 2)
    assert shown(*line, command="compare") == ["simulation", "statistics"]
    assert "and 6 more users" in run("compare", LAB, *line).stdout
    assert shown("--show", "vision", command="compare") == ["vision"]
    text = run("what-if", LAB, "--set", "users.vision.weight=3", "--show", "language", "--show", "vision").stdout
    assert [line.split()[0] for line in text.split("drfh ")[1].splitlines()[2:4]] == ["language", "vision"]
    assert "and 6 more users\n" in text
    assert "there is no user" in run("compare", LAB, "--show", "visoin", status=2).stderr


@pytest.mark.parametrize(
    ("tasks", "percent", "full"),
    [
        (10_000, "100.0", 20),
        (9_996, "100.0", 20),  # rounded as the text is
        (9_990, "99.9", 19),  # not full, although 19.98 of 20 is nearer to 20
        (9_900, "99.0", 19),
        (5_000, "50.0", 10),
        (5_240, "52.4", 10),
        (5_260, "52.6", 11),
        (240, "2.4", 0),
        (0.5, "0.0", 0),
    ],
)
def test_a_bar_is_full_where_the_text_says_so(tmp_path: Path, tasks: float, percent: str, full: int) -> None:
    """A bar of 20 blocks for one server of 10,000 GPUs, of which so many are used."""
    path = tmp_path / "lab.yaml"
    path.write_text(f"servers: [{{name: s, capacity: {{gpu: 10000}}}}]\nusers: [{{name: a, demand: {{gpu: 1}}, tasks: {tasks}}}]\n")
    (line,) = [line for line in run("solve", path).stdout.splitlines() if line.startswith("s ")]
    bar = "█" * full + "░" * (20 - full)
    assert line.split() == ["s", "1", bar, percent, "%"]


def test_bars_of_all_servers_and_of_resources_that_are_lacking(tmp_path: Path) -> None:
    """Half of 4 servers of 8 GPUs and of the cpu; one row has no GPU, and no bar; the last row is the cluster, 16 of 32 and 24 of 48."""
    path = tmp_path / "lab.yaml"
    path.write_text(
        "servers: [{name: big, capacity: {gpu: 8, cpu: 8}, count: 4}, {name: small, capacity: {cpu: 16}}]\n"
        "users: [{name: a, demand: {gpu: 1, cpu: 1}, tasks: 16}, {name: b, demand: {cpu: 1}, tasks: 8}]\n"
    )
    lines = [line.split() for line in run("solve", path).stdout.splitlines()]
    rows = {line[0]: line for line in lines if line and line[0] in ("big", "small", "all")}
    assert rows["big"][:2] == ["big", "4"]
    assert rows["big"][3:5] == ["50.0", "%"]
    assert rows["small"].count("%") == 1
    assert rows["all"][1] == "5"
    assert rows["all"][3:5] == ["50.0", "%"]
    assert rows["all"][-2:] == ["50.0", "%"]


def test_levels_are_those_of_all_users() -> None:
    """statistics stops at the second of three levels, because it has all its tasks; the column says so, and the line counts it."""
    printed = run("solve", LAB).stdout
    levels = {
        line.split()[0]: line.split("  ")[-1].strip() for line in printed.splitlines() if line.split()[:1] and line.split()[0] in USERS
    }
    assert levels == {**dict.fromkeys(USERS, "1"), "simulation": "3", "statistics": "all tasks"}
    assert "Levels: 0.1 (6 users), 0.173611 (1 user), 0.357986 (1 user)" in printed


@pytest.mark.parametrize("option", [("--show", "vision"), ("--sort", "name"), ("--top", 1)], ids=lambda option: option[0])
def test_tables_and_json_have_all_users(option: tuple[object, ...]) -> None:
    """A choice is refused there; it had no effect."""
    message = flat(run("solve", LAB, *option, "--csv", status=2).stderr)
    assert f"{option[0]}: it chooses which users are shown as text, and .csv has all users; leave it out" in message
    assert ".json has all users" in flat(run("compare", LAB, *option, "--json", status=2).stderr)
