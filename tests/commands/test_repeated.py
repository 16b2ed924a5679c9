"""Options that are given twice: lists add up, and nothing is lost in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from support.command_line import run

from fairopt.cli import app

POOL = """
servers: [{name: pool, capacity: {cpu: 9, memory: 18}}]
users:
- {name: a, demand: {cpu: 1, memory: 4}}
- {name: b, demand: {cpu: 3, memory: 1}}
"""


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Write the pool of the DRF paper."""
    path = tmp_path / "pool.yaml"
    path.write_text(POOL)
    return path


@pytest.mark.parametrize(
    "options",
    [
        ["--notions", "drfh,tsf", "--notions", "proportional"],
        ["--notions=drfh", "--notions", "tsf,proportional"],
        ["--notions", "drfh", "--notions", "tsf", "--notions=proportional"],
    ],
)
def test_lists_add_up(pool: Path, options: list[str]) -> None:
    """Wherever they stand, in their order."""
    found = json.loads(run("compare", pool, *options, "--json").stdout)
    assert [row["name"] for row in found["rows"]] == ["drfh", "tsf", "proportional"]


def test_what_counts_adds_up(pool: Path) -> None:
    """``--only cpu --only memory`` is both; ``--resource-weights`` names each once."""
    both = json.loads(run("solve", pool, "--only", "cpu", "--only", "memory", "--json").stdout)
    assert both["question"]["options"]["only"] == "cpu+memory"
    weighed = json.loads(run("solve", pool, "--resource-weights", "cpu=2", "--resource-weights", "memory=0", "--json").stdout)
    assert weighed["question"]["options"]["resource_weights"] == {"cpu": 2, "memory": 0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "{pool}", "--notion", "drfh", "--notion=tsf"], "error: --notion: it is given twice, drfh and tsf; give it once"),
        (["solve", "{pool}", "-o", "a.json", "-ob.json"], "error: -o: it is given twice, a.json and b.json; give it once"),
        (["solve", "{pool}", "--notion", "drfh", "--notion"], "error: --notion: give a value; see: fairopt solve --help"),
        (["import", "swf", "log.swf", "--at", "1", "--at", "2"], "error: --at: it is given twice, 1 and 2; give it once"),
    ],
)
def test_of_two_values_none_is_lost(pool: Path, arguments: list[str], message: str) -> None:
    """Refused, with both."""
    result = run(*(each.format(pool=pool) for each in arguments), status=2)
    assert message in result.stderr


def test_the_same_value_twice_and_what_can_be_repeated(pool: Path) -> None:
    """They are as before."""
    run("solve", pool, "--notion", "drfh", "--notion", "drfh", "--json", "--json")
    changed = json.loads(run("solve", pool, "--set", "users.a.tasks=1", "--set", "users.b.tasks=1", "--json").stdout)
    assert [user["tasks"] for user in changed["users"]] == pytest.approx([1, 1])
    numbers = json.loads(run("frontier", pool, "--notions", "drfh", "--alphas", "1", "--fds", "2:-1", "--fds=2:-4", "--json").stdout)
    assert sum("fds" in json.dumps(point) for point in numbers["points"]) == 2


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all commands, and those of the groups among them."""
    for name in group.commands:
        command = group.resolve_command(typer.Context(group), [name])[1]
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_no_option_of_any_command_loses_one_of_two_values() -> None:
    """It can be repeated, or is a list (its word in --help has a comma), or is refused with both values."""
    asked = 0
    for name, command in commands(typer.main.get_command(app)):
        for part in command.params:
            if part.param_type_name != "option" or part.is_flag:
                continue
            adds_up = part.multiple or part.nargs != 1 or "," in (part.metavar or "")
            word, asked = part.opts[0], asked + 1
            try:
                command.parse_args(typer.Context(command), [word, "5", word, "7"])
                said = ""
            except Exception as error:  # of the values, or of what else is needed
                said = str(error)
            assert ("it is given twice, 5 and 7; give it once" in said) != adds_up, (name, word, said)
    assert asked > 400
