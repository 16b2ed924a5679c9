"""What is said of a command line that cannot be understood: one line, in one voice."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
import typer
from support.command_line import EXAMPLES, flat, run

from fairopt.cli import app
from fairopt.commands.usage import choices_of

LAB = EXAMPLES / "gpu-lab"
QUEUES = EXAMPLES / "research-queues.yaml"


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
        (["solve", LAB, "--notion"], "--notion: give a value; see: fairopt solve --help"),
        (["solve", LAB, "-o"], "-o: give a value; see: fairopt solve --help"),
        (
            ["solve", LAB, "--notion", "proportional:alpha=2", "--alpha", "3"],
            "--alpha: --notion proportional:alpha=2 has options of its own; write this one there, too; see: fairopt solve --help",
        ),
        (
            ["solve", LAB, "--integral", "--allow-gap", "0.1"],
            "--allow-gap is about whole tasks at a time limit; give --integral and --time-limit, too, or leave it out",
        ),
        (
            ["solve", LAB, "--resource-weights", "gpu=0,cpu=0,memory=0"],
            "--resource-weights is 0 for all resources, so nothing counts; give one a weight > 0",
        ),
        (["solve", LAB, "--json=yes"], "--json: it takes no value; leave the value out; see: fairopt solve --help"),
        (["worst-case", "drfh:best-fit", "--demands", "3"], "--demands: give 2 values; see: fairopt worst-case --help"),
        (["solve", LAB, "--zzz", "drf"], "No such option: --zzz; see: fairopt solve --help"),
        (["compare", LAB, "--schedule", "x"], 'No such option: --schedule (did you mean "--schedules"?); see: fairopt compare --help'),
        (["slove", LAB], "No such command 'slove' (did you mean \"solve\"?); see: fairopt --help"),
        (["import", "slrum"], "No such command 'slrum' (did you mean \"slurm\"?); see: fairopt import --help"),
        (["explain", LAB], "--user: name what to explain, as in --user vision; --queue names a queue; see: fairopt explain --help"),
        (["import", "slurm", "--nodes", "x"], "Missing option '--jobs'; see: fairopt import slurm --help"),
        (["frontier", LAB, "--workres", "2"], 'No such option: --workres (did you mean "--workers"?); see: fairopt frontier --help'),
        (["solve", LAB, "--workres", "2"], "No such option: --workres; see: fairopt solve --help"),
        (
            ["schema", "results"],
            'result: there is no "results" (did you mean "result"?); use instance or result; see: fairopt schema --help',
        ),
        (
            ["solve", LAB, "my", "lab"],
            "there is no argument for my lab; leave it out, or put quotes around a value that has spaces; see: fairopt solve --help",
        ),
    ],
)
def test_it_is_one_line(words: list[object], message: str) -> None:
    """The option, what is wrong, and where the help is."""
    assert flat(run(*words, status=2).stderr) == f"error: {message}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["explain", LAB, "--user", "vision", "--schedule", "drfh:best-fit", "--guarantees", "clamp"], "--guarantees: it is a rule of"),
        (["audit", LAB, "--schedule", "drfh:best-fit", "--queue-share", "sum"], "--queue-share: it is a rule of a notion, and a schedule"),
        (
            ["audit", LAB, "--allocation", "held.csv", "--guarantees", "clamp"],
            "name the notion that measures your allocation with --notion",
        ),
        (["compare", LAB, "--notions", "", "--schedules", "drfh", "--guarantees", "clamp"], "it is a rule of a notion; give --notions"),
        (["export", "kueue", LAB, "--allocation", "held.csv", "--notion", "drfh"], "--notion: it is about an allocation that is computed"),
        (["simulate", LAB / "jobs.csv", "--cluster", LAB, "--reference", "zzz"], "--reference: it measures several schedulers"),
        (["history", LAB / "log.csv", "--cluster", LAB, "--sharing", "tdm"], "--sharing: a log says what jobs held"),
        (["export", "slurm", LAB, "--sharing", "tdm"], "solve with --sharing rdm, which divides resources"),
    ],
)
def test_what_a_command_would_not_use_is_refused(words: list[object], message: str) -> None:
    """An option without an effect is a mistake of whoever gives it."""
    assert message in flat(run(*words, status=2).stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["solve", LAB, "--exact", "--integral"], "--exact divides tasks, and --integral does not; leave one of them out"),
        (["solve", LAB, "--digits", 3], "--digits needs --exact; floats have about 15"),
        (["solve", LAB, "--notion", "psdsf", "--delay", 3], "only asynchronous servers have a delay; use --order asynchronous"),
        (["schedule", QUEUES, "--stop", "first-block"], "--stop first-block is an algorithm for a flat list of users"),
        (["solve", LAB, "--notion", "psdsf:delay=3"], "use --order asynchronous"),
        (["audit", LAB, "--notion", "psdsf:delay=3"], "use order=asynchronous"),
        (["explain", QUEUES, "--queue", "research", "--against", "bob"], "leave --against out, or name a user"),
        (["worst-case", "rpsdsf:best-fit"], "such as --notion drfh"),
        (["audit", LAB, "--workers", 0], "error: --workers is 0; give"),
        (["export", "slurm", LAB, "--headroom", "nan"], "error: --headroom is nan; give a factor >= 1"),
        (["simulate", LAB / "jobs.csv", "--cluster", LAB, "--until", "nan"], "error: --until is nan; give"),
        (["history", LAB / "log.csv", "--cluster", LAB, "--owners", "group"], 'error: --owners is "group"; leave it out'),
        (["arrivals", LAB, "--resource", "gpu", "--load", "nan"], "error: --load is nan; give"),
    ],
)
def test_a_message_names_options(words: list[object], message: str) -> None:
    """Not the arguments of Python that stand behind them; of notions, options as the command line writes them."""
    said = flat(run(*words, status=2).stderr)
    assert message in said
    assert not re.search("=True|=False|=['\"]", said)


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


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("solve", "solve [OPTIONS] FILE"),
        ("study", "study [OPTIONS] [FILE]..."),
        ("history", "history [OPTIONS] FILE..."),
        ("study-merge", "study-merge [OPTIONS] PART..."),
        ("generate", "generate [OPTIONS] [SPEC]"),
        ("schema", "schema [OPTIONS] [result]"),
    ],
)
def test_the_usage_shows_arguments_as_manuals_do(command: str, usage: str) -> None:
    """Whatever brackets a version of typer puts around them."""
    assert f"Usage: fairopt {usage}\n" in re.sub(" +\n", "\n", run(command, "--help").stdout)


def test_a_word_means_the_same_in_every_command() -> None:
    """Options of one name show one kind of value, wherever they are; words to choose from are those of the command."""
    kinds: dict[str, set[str]] = {}
    for _, command in _leaves():
        for part in command.get_params(typer.Context(command)):
            if part.param_type_name == "option" and not part.hidden and not choices_of(part):
                kinds.setdefault(max(part.opts, key=len), set()).add(part.metavar)
    assert {word: kind for word, kind in kinds.items() if len(kind) > 1} == {}


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize(("name", "command"), _leaves(), ids=[name for name, _ in _leaves()])
def test_help_flows(name: str, command: Any, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a paragraph ends where the next word has no room, no word is cut, and options leave half of the line to sentences."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run(*name.split(), "--help").stdout.splitlines()
    text = lines[: next((j for j, line in enumerate(lines) if "╭" in line or "+-" in line), len(lines))]
    for line, following in pairwise([line.strip() for line in text]):
        if line and following:
            assert len(line) + 1 + len(following.split()[0]) > width - 8, (line, following)
    assert width < 100 or "…" not in "".join(lines)
    help_of = {part.opts[0]: part for part in command.get_params(typer.Context(command)) if part.param_type_name == "option"}
    assert all(len(part.metavar or "") <= 28 for part in help_of.values())


@pytest.mark.parametrize(("name", "command"), _leaves(), ids=[name for name, _ in _leaves()])
def test_long_help_has_panels_by_purpose(name: str, command: Any) -> None:
    """No list of options is longer than a screen, and what many commands have stands in the same panel in each of them."""
    options = [part for part in command.get_params(typer.Context(command)) if part.param_type_name == "option" and not part.hidden]
    panels: dict[str | None, list[str]] = {}
    for part in options:
        panels.setdefault(part.rich_help_panel, []).append(max(part.opts, key=len))
    assert max(map(len, panels.values())) <= 16, panels
    if len(options) > 15:
        assert "--json" not in panels[None]
        assert "--time-limit" not in panels[None]
