"""What commands write: an output that is an input, an output that exists, and what each command marks as an output."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer
from support.command_line import EXAMPLES, PAPER, flat, run
from typer.main import get_command

import fairopt as fo
from fairopt.cli import app
from fairopt.commands.outputs import Written

LAB = EXAMPLES / "gpu-lab"
TASKS = {"servers": [{"name": "s", "capacity": {"gpu": 4}}], "users": [{"name": "a", "demand": {"gpu": 1}, "tasks": 3}]}
SWF = "; MaxProcs: 8\n; MaxNodes: 2\n1 0 0 100 2 -1 -1 2 100 -1 1 1 1 -1 1 1 -1 -1\n"
MINE = "def in_turn(user, free, demand, fits):\n    return int(fits[0])\n"

OUTPUTS = {  # a command, and what it writes
    "solve": ("solve cluster.yaml -o OUT --plot-envy OUT2", "a.json", "b.svg"),
    "solve, a picture": ("solve cluster.yaml --plot OUT", "a.svg"),
    "schedule": ("schedule cluster.yaml -o OUT --plot OUT2", "a.csv", "a.png"),
    "compare": ("compare cluster.yaml -o OUT --plot OUT2", "a.md", "a.pdf"),
    "audit": ("audit cluster.yaml --effort 2 -o OUT", "a.json"),
    "explain": ("explain cluster.yaml --user user-1 -o OUT", "a.txt"),
    "frontier": ("frontier cluster.yaml --notions drfh -o OUT --plot OUT2", "a.tex", "a.svg"),
    "report": ("report cluster.yaml --notions drfh --effort 2 -o OUT", "a.html"),
    "history": (
        "history lab/log.csv --cluster lab --instance OUT --held OUT2 --due OUT3 --report OUT4",
        "a.yaml",
        "h.csv",
        "d.csv",
        "r.html",
    ),
    "simulate": ("simulate lab/jobs.csv --cluster lab --until 9000 -o OUT --plot OUT2", "a.json", "a.svg"),
    "arrivals": ("arrivals tasks.json --resource gpu --workers 1 --seeds 1 -o OUT --plot OUT2", "a.csv", "a.svg"),
    "study": ("study tasks.json --workers 1 --table OUT --plot OUT2", "a.csv", "a.svg"),
    "worst-case": ("worst-case drfh:first-fit --users 2 --tries 5 --instance OUT", "a.yaml"),
    "generate": ("generate google:users=4:servers=3 -o OUT", "a.yaml"),
    "import": ("import swf log.swf -o OUT --current OUT2", "a.yaml", "a.csv"),
    "plan": ("plan tasks.json --allocation held.csv -o OUT", "a.csv"),
    "export": ("export slurm cluster.yaml -o OUT --undo OUT2", "a.sh", "b.sh"),
    "reproduce": ("reproduce psdsf-figure-6 --quick --plots .", "psdsf-figure-6.png"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with the inputs of all commands."""
    monkeypatch.chdir(tmp_path)
    fo.save(fo.load(PAPER), "cluster.yaml")
    Path("tasks.json").write_text(fo.formats.syntax.to_json(TASKS))
    Path("log.swf").write_text(SWF)
    Path("mine.py").write_text(MINE)
    Path("held.csv").write_text("user,server,tasks\na,s,1\n")
    shutil.copytree(LAB, "lab")
    return tmp_path


def words(command: str) -> list[str]:
    """Return the words of a command, with the names of its outputs."""
    text, *names = OUTPUTS[command]
    for number, name in reversed(list(enumerate(names, start=1))):
        text = text.replace(f"OUT{number}" if number > 1 else "OUT", name)
    return text.split()


@pytest.mark.parametrize("command", OUTPUTS)
def test_what_exists_is_replaced_by_force_only(here: Path, command: str) -> None:
    """Each of the outputs by itself, before anything is computed: the name of a missing input is not even read."""
    for name in OUTPUTS[command][1:]:
        (here / name).write_text("mine")
        message = flat(run(*words(command), status=2).stderr)
        assert message == f"error: {name} exists; give another name, or replace it with --force"
        assert (here / name).read_text() == "mine"
        (here / name).unlink()
    for name in OUTPUTS[command][1:]:
        (here / name).write_text("mine")
    run(*words(command), "--force")
    assert all((here / name).read_bytes() != b"mine" for name in OUTPUTS[command][1:])


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("solve cluster.yaml -o link.json", "cluster.yaml"),
        ("solve cluster.yaml --json -o cluster.yaml", "cluster.yaml"),
        ("solve ./lab/../cluster.yaml --plot link.svg", "cluster.yaml"),
        ("solve cluster.yaml --plot hard.svg", "cluster.yaml"),
        ("generate google -o lab", "lab/servers.csv"),
        ("schedule cluster.yaml --csv -o cluster.yaml", "cluster.yaml"),
        ("history lab/log.csv --cluster lab --held lab/log.csv", "lab/log.csv"),
        ("history lab/log.csv --cluster lab --instance lab", "lab/servers.csv"),
        ("simulate lab/jobs.csv --cluster lab -o lab/users.csv", "lab/users.csv"),
        ("import swf log.swf --current log.csv", "log.swf"),
        ("import swf log.swf -o log.yaml", "log.swf"),
        ("export kueue cluster.yaml -o cluster.yaml", "cluster.yaml"),
        ("export slurm lab --allocation held.csv -o held.csv", "held.csv"),
        ("export slurm lab --notion mine.py:Share -o mine.py", "mine.py"),
        ("compare cluster.yaml --schedules drfh:mine.py:in_turn --json -o mine.py", "mine.py"),
        ("solve cluster.yaml --prefer held.csv --notion bbf --csv -o held.csv", "held.csv"),
        ("study cluster.yaml --resume store.parquet", "cluster.yaml"),
    ],
)
def test_what_is_read_is_not_written(here: Path, command: str, name: str) -> None:
    """By its own name, another path, or a link of either kind; with --force, too, where a command that reads it replaces it."""
    Path("held.csv").write_text("user,server,tasks\n")
    for link in ("link.json", "link.svg", "store.parquet"):
        os.symlink("cluster.yaml", link)
    os.link("cluster.yaml", "hard.svg")
    os.link("log.swf", "log.csv")
    os.symlink("log.swf", "log.yaml")
    before = (here / name).read_bytes()
    run(*command.split(), status=2)
    if "generate" not in command:  # it reads nothing
        message = flat(run(*command.split(), "--force", status=2).stderr)
        assert "is read here, and would be replaced; give another name for what is written" in message
    assert (here / name).read_bytes() == before


@pytest.mark.parametrize("command", ["solve cluster.yaml --json -o", "generate google -o", "study tasks.json --resume"])
def test_a_dash_is_refused(here: Path, command: str) -> None:
    """It would be a file or a folder of that name, where other programs print; with --force, too."""
    message = 'error: "-" does not stand for stdout; leave the option out to print the result, or give the name of a file'
    assert flat(run(*command.split(), "-", "--force", status=2).stderr) == message
    assert not Path("-").exists()


def test_a_store_is_continued_and_stays_a_store(here: Path) -> None:
    """The same study goes on without --force; another one is refused with it."""
    study = ["study", "tasks.json", "--workers", "1", "--resume", "s.parquet"]
    run(*study)
    run(*study)
    assert "another" in flat(run(*study, "--notions", "tsf", "--integral", "--force", status=2).stderr)
    simulate = ["simulate", "lab/jobs.csv", "--cluster", "lab", "--until", "9000", "--resume", "kept"]
    run(*simulate)
    run(*simulate)


def test_a_folder_of_tables_is_written_into_where_it_holds_none(here: Path) -> None:
    """Other files of it stay, and no table goes without --force."""
    (here / "new").mkdir()
    (here / "new" / "notes.txt").write_text("mine")
    generate = ["generate", "google:users=4:servers=3", "-o", "new"]
    run(*generate)
    assert "servers.csv exists" in flat(run(*generate, status=2).stderr)
    run(*generate, "--force")
    assert (here / "new" / "notes.txt").read_text() == "mine"


def test_links_in_a_circle(here: Path) -> None:
    """As an output, as a folder of one, as an input and as a plug-in: a sentence."""
    for one, other in (("l.json", "m.json"), ("m.json", "l.json"), ("l.py", "l.py"), ("l", "l"), ("s.parquet", "s.parquet")):
        os.symlink(other, one)
    assert "l.json is a link that leads in a circle" in flat(run("solve", "cluster.yaml", "-o", "l.json", status=2).stderr)
    assert "s.parquet is a link that leads in a circle" in flat(run("study", "cluster.yaml", "--resume", "s.parquet", status=2).stderr)
    assert "there is no folder l" in flat(run("solve", "cluster.yaml", "-o", "l/a.json", status=2).stderr)
    assert "l.json" in run("solve", "l.json", status=2).stderr
    assert "there is no file l.py" in run("solve", "cluster.yaml", "--notion", "l.py:Share", status=2).stderr
    assert "l" in run("simulate", "lab/jobs.csv", "--cluster", "lab", "--resume", "l", status=2).stderr
    assert (here / "l.json").is_symlink()


def commands(group: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Yield every command with its name, those inside others too."""
    for name in group.commands:
        command = group.resolve_command(typer.Context(group), [name])[1]
        yield from commands(command, *names, name) if hasattr(command, "commands") else [(" ".join([*names, name]), command)]


def test_every_path_is_an_input_or_marked_as_an_output() -> None:
    """What is not in the list of inputs has the mark, and its command has --force."""
    inputs = {
        *("file", "files", "other", "utility", "allocation", "trace", "cluster", "events", "log", "data"),
        *("associations", "nodes", "pods", "queues", "jobs", "partitions", "sacct", "apps", "actors", "placement_groups"),
        *("machines", "tasks", "throughputs", "licenses", "qos", "reservations", "speeds", "usage", "labels"),
        *("server", "config", "priorities", "shares", "parts", "simulate"),
    }
    found: dict[str, set[str]] = {"unmarked": set(), "without --force": set()}
    for name, command in commands(get_command(app)):
        function = command.callback
        hints = get_type_hints(getattr(function, "__wrapped__", function), include_extras=True)
        marked = {each for each, hint in hints.items() if any(isinstance(m, Written) for m in getattr(hint, "__metadata__", ()))}
        paths = {each for each, hint in hints.items() if "Path" in str(getattr(hint, "__origin__", hint))}
        assert marked <= paths
        found["unmarked"] |= paths - marked
        forced = "--force" in {option for parameter in command.params for option in parameter.opts}
        assert forced == bool(marked), name
    assert found["unmarked"] == inputs
