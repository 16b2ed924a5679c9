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
    assert shown("--user", "vision", "--user", "language") == ["vision", "language"]
    assert shown("--sort", "name", "--top", "3") == sorted(USERS)[:3]
    assert shown("--top", "2", command="schedule") == list(USERS[:2])
    assert "and 6 more users" in run("solve", LAB, "--top", "2").stdout
    assert shown("--user", "bob", file=EXAMPLES / "research-queues.yaml") == ["bob"]


def test_users_that_are_not_there() -> None:
    """Before anything is solved."""
    message = flat(run("solve", LAB, "--user", "visoin", status=2).stderr)
    assert message.startswith('error: there is no user "visoin" (did you mean "vision"?)')
    assert "users have no single share here" in flat(run("solve", LAB, "--notion", "psdsf", "--sort", "share", status=2).stderr)


def test_users_side_by_side() -> None:
    """compare has a row for each user that is chosen, with its tasks in each allocation; with --what-if its changes."""
    line = ("--schedules", "drfh:best-fit", "--sort", "tasks", "--top", 2)
    assert shown(*line, command="compare") == ["simulation", "statistics"]
    assert "and 6 more users" in run("compare", LAB, *line).stdout
    assert shown("--user", "vision", command="compare") == ["vision"]
    text = run("compare", LAB, "--what-if", "users.vision.weight=3", "--user", "language", "--user", "vision").stdout
    assert [line.split()[0] for line in text.split("drfh ")[1].splitlines()[2:4]] == ["language", "vision"]
    assert "and 6 more users\n" in text
    assert "there is no user" in run("compare", LAB, "--user", "visoin", status=2).stderr
