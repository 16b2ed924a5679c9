"""What is said of a command line that cannot be understood: one line, in one voice."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from support.command_line import EXAMPLES, flat, run

from fairopt.cli import app
from fairopt.commands.usage import choices_of

LAB = EXAMPLES / "gpu-lab"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["compare", LAB, "--by", "usr"],
            '--by: there is no "usr" (did you mean "user"?); use user, queue or owner; see: fairopt compare --help',
        ),
        (["compare", LAB, "--sharing", "both"], '--sharing: there is no "both"; use rdm or tdm; see: fairopt compare --help'),
        (["solve", LAB, "--top", "0"], "--top: give a whole number >= 1; see: fairopt solve --help"),
        (["solve", LAB, "--top", "many"], "--top: give a whole number; see: fairopt solve --help"),
        (["solve", LAB, "--alpha", "much"], "--alpha: give a number; see: fairopt solve --help"),
        (["arrivals", LAB, "--resource", "gpu", "--seeds", "0"], "--seeds: give a whole number >= 1; see: fairopt arrivals --help"),
        (["explore", LAB, "--port", "70000"], "--port: give a number <= 65535; see: fairopt explore --help"),
        (["explore", LAB, "--port", "-1"], "--port: give a number >= 0; see: fairopt explore --help"),
        (["solve"], "Missing argument 'FILE'; see: fairopt solve --help"),
        (["solve", LAB, "--zzz", "drf"], "No such option: --zzz; see: fairopt solve --help"),
        (["import", "slurm", "--nodes", "x"], "Missing option '--jobs'; see: fairopt import slurm --help"),
    ],
)
def test_it_is_one_line(words: list[object], message: str) -> None:
    """The option, what is wrong, and where the help is."""
    assert flat(run(*words, status=2).stderr) == f"error: {message}"


def _leaves() -> list[tuple[str, Any]]:
    group: Any = typer.main.get_command(app)
    found: list[tuple[str, Any]] = []
    for name in group.commands:
        command = group.resolve_command(typer.Context(group), [name])[1]
        leaves = getattr(command, "commands", None)
        found += [(f"{name} {leaf}", each) for leaf, each in leaves.items()] if leaves else [(name, command)]
    return found


@pytest.mark.parametrize(("name", "command"), _leaves(), ids=[name for name, _ in _leaves()])
def test_one_word_takes_one_kind_of_value(name: str, command: Any) -> None:
    """Files are FILE and folders FOLDER, flags take nothing, and every other option says what it takes."""
    for part in command.get_params(typer.Context(command)):
        if part.hidden or part.param_type_name == "argument":
            continue
        if part.is_flag:
            assert part.metavar == ""
            continue
        assert part.metavar, part.opts
        kind = getattr(part, "type_descriptor", None)  # of newer versions of typer
        is_path = "Path" in str(part.type if kind is None else kind.annotation)
        assert not is_path or part.metavar in ("FILE", "FOLDER"), part.opts
        assert part.metavar not in ("CSV", "JSON", "TABLE", "PATH", "<bool>"), part.opts


def test_a_word_means_the_same_in_every_command() -> None:
    """Options of one name show one kind of value, wherever they are; words to choose from are those of the command."""
    kinds: dict[str, set[str]] = {}
    for _, command in _leaves():
        for part in command.get_params(typer.Context(command)):
            if part.param_type_name == "option" and not part.hidden and not choices_of(part):
                kinds.setdefault(max(part.opts, key=len), set()).add(part.metavar)
    assert {word: kind for word, kind in kinds.items() if len(kind) > 1} == {}
