"""The command line as a whole: its help, its version, and the process that it runs in."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.text import Text
from support.command_line import PAPER, flat, program, run
from support.processes import process
from support.registries import registries_restored

import fairopt as fo
from fairopt.cli import app
from fairopt.formats import schema


def test_schema_and_version() -> None:
    """The schema is that of fairopt.formats."""
    assert json.loads(run("schema").stdout) == schema()
    assert run("--version").stdout == f"fairopt {fo.__version__}\n"


@pytest.mark.parametrize(
    "command", ["solve", "schedule", "compare", "notions", "solvers", "placements", "schedulers", "what-if", "reproduce", "schema"]
)
def test_help_shows_an_example(command: str) -> None:
    """Of the command itself."""
    assert f"Example: fairopt {command}" in flat(run(command, "--help").stdout)


def test_the_commands_are_listed_in_groups() -> None:
    """All of them: none is left in the panel that typer puts the others into."""
    text = run("--help").stdout
    assert "─ Commands ─" not in text
    for panel in ("Allocate", "Understand", "Over time", "Research", "Data", "Choices"):
        assert f"─ {panel} ─" in text


def test_the_list_says_of_each_command_what_its_own_help_says() -> None:
    """The list is written beforehand, so that it needs no command."""
    group: Any = typer.main.get_command(app)
    listed = {name: command.help for name, command in group.commands.items()}
    own = {name: group.resolve_command(typer.Context(group), [name])[1].help for name in listed}
    assert listed == {name: text.partition("\n\n")[0].replace("\n", " ") for name, text in own.items()}
    assert len(listed) == 26


def test_help_shows_what_is_in_brackets() -> None:
    """Rich takes a word in brackets for a style, and leaves it out: help that shows a rule escapes them."""
    for command, example in (
        ("solve", "x['lab/alice'] >= 2 * x[course]"),
        ("simulate", "x[alice] + 2 * x[bob] <= 8"),
        ("history", "x[alice] + 2 * x[bob] <= 8"),
        ("worst-case", "tasks[a] + tasks[b] <= 12"),
    ):
        assert example in flat(run(command, "--help").stdout), command


def test_no_help_has_brackets_that_rich_leaves_out() -> None:
    """Of all commands and options, what is shown is what is written."""
    group: Any = typer.main.get_command(app)
    for name in group.commands:
        command = group.resolve_command(typer.Context(group), [name])[1]
        for part in command.params:
            text = getattr(part, "help", None) or ""
            assert Text.from_markup(text).plain == text.replace("\\[", "["), f"{name}: {part.name}"


def test_the_console_script_runs(tmp_path: Path) -> None:
    """Plain text without colour when nobody looks, whatever the encoding."""
    done = subprocess.run(program("solve", PAPER), capture_output=True, env={"PYTHONIOENCODING": "ascii"}, cwd=tmp_path, check=True)
    assert b"\x1b" not in done.stdout
    assert b"#########" in done.stdout


def test_python_runs_the_package() -> None:
    """``python -m fairopt`` is the console script, and calls itself so."""
    command = [sys.executable, "-m", "fairopt"]
    done = subprocess.run([*command, "solve", str(PAPER), "--json"], capture_output=True, text=True, check=True)
    assert [user["tasks"] for user in json.loads(done.stdout)["users"]] == pytest.approx([2.6087, 3.1304, 6.2609], abs=1e-4)
    assert "python -m fairopt" in subprocess.run([*command, "--help"], capture_output=True, text=True, check=True).stdout
    assert subprocess.run([*command, "solve", "nowhere.yaml"], capture_output=True).returncode == 2


@pytest.mark.parametrize("group", [[], ["import"], ["export"]])
def test_without_a_command_the_help_is_an_error_message(group: list[str], tmp_path: Path) -> None:
    """On stderr, with status 2; on stdout are results alone, and what --help was asked for."""
    done = subprocess.run(program(*group), capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: " in done.stderr


def test_errors_leave_no_traceback(tmp_path: Path) -> None:
    """Status 2 and one line."""
    done = subprocess.run(program("solve", tmp_path / "none.yaml"), capture_output=True, text=True)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_a_reader_may_close_the_pipe(many: Path) -> None:
    """As ``fairopt solve ... --all | head`` does."""
    with subprocess.Popen(program("solve", many, "--all"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()


@pytest.mark.skipif(os.name != "posix", reason="pipes of a shell")
@pytest.mark.parametrize("words", [["schema"], ["notions"], ["solve", str(PAPER)], ["--help"], ["study", "--help"], ["--version"]])
def test_a_closed_pipe_is_status_141(words: list[str]) -> None:
    """As of a program that SIGPIPE ends; 1 is the status of a failed check. Nothing is said."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(program(*words), stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(os.name != "posix", reason="a shell closes a stream")
def test_a_closed_stdout_is_an_error(tmp_path: Path) -> None:
    """So is one that takes nothing; a closed stderr or stdin is not, and no file gets their number."""
    shell = " ".join(f"'{word}'" for word in program("solve", PAPER, "--json"))
    run = partial(subprocess.run, shell=True, capture_output=True, text=True, cwd=tmp_path)
    done = run(f"{shell} >&-")
    assert (done.returncode, flat(done.stderr)) == (2, "error: stdout is closed; to have no output, redirect it to /dev/null")
    if Path("/dev/full").exists():
        done = run(f"{shell} > /dev/full")
        assert (done.returncode, flat(done.stderr)) == (2, "error: stdout: No space left on device")
        for option in ("--help", "--version"):
            done = run(" ".join(f"'{word}'" for word in program(option)) + " > /dev/full")
            assert (done.returncode, flat(done.stderr)) == (2, "error: stdout: No space left on device"), option
        missing = " ".join(f"'{word}'" for word in program("solve", tmp_path / "missing.json"))
        assert run(f"{missing} 2> /dev/full").returncode == 2
    for closed in ("2>&-", "<&-", "<&- 2>&-"):
        done = run(f"{shell} {closed}")
        assert done.returncode == 0
        assert json.loads(done.stdout)["users"][-1]["name"] == "user-3"


@pytest.fixture
def registries() -> Iterator[None]:
    """What a test plugs in is gone afterwards."""
    with registries_restored():
        yield


@pytest.mark.parametrize("left", ["3", "'text'"])
@pytest.mark.usefixtures("registries")
def test_a_file_of_ones_own_that_leaves_is_refused(left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is read, and when it is called: no closed pipe, and not without a word."""
    monkeypatch.chdir(tmp_path)
    for name, code, line in (
        ("called", f"import sys\ndef last(*_):\n    sys.exit({left})\n", 3),
        ("read", f"import sys\nsys.exit({left})\n", 2),
    ):
        (tmp_path / f"{name}.py").write_text(code)
        done = run("schedule", PAPER, "--schedule", f"drfh:{name}.py:last", status=2)
        assert done.stdout == ""
        assert f"error: {name}.py, line {line}" in flat(done.stderr)
        assert left.strip("'") in done.stderr


@pytest.mark.usefixtures("registries")
def test_a_function_of_ones_own_with_other_arguments_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own line is named: none of its lines has run."""
    (tmp_path / "mine.py").write_text("\ndef in_turn(instance):\n    return instance\n")
    monkeypatch.chdir(tmp_path)
    done = run("schedule", PAPER, "--schedule", "drfh:mine.py:in_turn", status=2)
    assert done.stdout == ""
    assert "error: mine.py, line 2, in in_turn: TypeError: in_turn() takes 1 positional argument but 4 were" in flat(done.stderr)


def test_an_error_of_fairopt_itself_is_status_70() -> None:
    """One line that says what to report, and the traceback where it is wanted."""
    broken = "import fairopt; fairopt.solve = lambda *_, **__: {}['ta\\nsks']; "
    command = [sys.executable, "-c", broken + "from fairopt.cli import main; main()", "solve", str(PAPER)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (70, "", 1)
    assert re.search(r"error: fairopt \S+ failed: KeyError: 'ta\\nsks' \(solving\.py, line \d+\); this is not the fault of", done.stderr)
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "FAIROPT_TRACEBACK": "1"})
    assert (done.returncode, done.stderr.count("Traceback"), done.stderr.splitlines()[-2]) == (70, 1, "KeyError: 'ta\\nsks'")


def test_no_exception_leaves_as_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised, in whatever thread of the command."""
    for error, status in ((RuntimeError("x"), 70), (AssertionError(), 70), (RecursionError("deep"), 70), (OverflowError(), 70)):

        def fail(*_: object, raised: Exception = error, **__: object) -> None:
            raise raised

        monkeypatch.setattr(fo, "solve", fail)
        assert "failed: " + type(error).__name__ in run("solve", PAPER, status=status).stderr


def test_interrupt_is_status_130(many: Path) -> None:
    """Ctrl-C is heard at once, though an engine never looks up."""
    stuck = "import time, fairopt; fairopt.solve = lambda *_, **__: (print('solving', flush=True), time.sleep(60)); "
    with process(sys.executable, "-c", stuck + "from fairopt.cli import main; main()", "solve", str(many)) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "solving\n"
        killer = threading.Timer(60, running.kill)
        killer.start()
        while running.poll() is None:  # a signal that comes while Python cleans up something is lost
            running.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(5)
        assert running.returncode == 130
        killer.cancel()


def test_importing_the_command_line_is_light() -> None:
    """What computes, solves, draws or makes frames is imported when it is needed: not for a version, the list of commands, a completion.

    Nor is what solves for an error, for the help of a command that may solve nothing, or to complete its options.
    """
    heavy = {"numpy", "scipy", "matplotlib", "pandas", "highspy", "pydantic", "yaml"}
    code = (
        f"import sys, fairopt.cli; print(sorted({heavy} & set(sys.modules))); "
        "import fairopt.commands.delivering, fairopt.commands.options; "
        "[fairopt.cli._load(name) for name in ('import', 'history', 'simulate', 'study')]; "
        f"print(sorted({heavy - {'numpy', 'yaml'}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n[]\n"


def test_a_small_solve_imports_what_it_needs() -> None:
    """Neither other engines nor what draws, computes in fractions, fills servers or reads tables."""
    code = (
        "import sys, scipy.sparse; sparse = set(sys.modules); "  # which loads scipy.linalg itself before SciPy 1.17
        "from fairopt.cli import app; app(['solve', sys.argv[1]], standalone_mode=False); "
        "print(*sorted(sys.modules.keys() - sparse))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(PAPER)], capture_output=True, text=True, check=True)
    there = run.stdout.splitlines()[-1].split()
    assert "fairopt.solvers.via_highs.levels" in there
    heavy = (
        *("fairopt.solvers.active_sets.problem", "fairopt.solvers.equilibrium.sweeping", "fairopt.solvers.interior_point.paths"),
        *("fairopt.solvers.filling", "fairopt.solvers.rational", "fairopt.solvers.via_highs.whole", "fairopt.solvers.via_highs.sifting"),
        *("fairopt.certificate.exact", "fairopt.generators", "fairopt.scheduling", "fairopt.formats.tables", "fairopt.plots"),
        *("scipy.linalg", "scipy.optimize", "matplotlib", "pandas", "cvxpy", "pyomo", "numba"),
    )
    assert [module for module in there if module.startswith(heavy)] == []
