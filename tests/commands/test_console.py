"""What all commands have in common: names of files, labels that a terminal or a spreadsheet would obey, pictures."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.table import Table
from rich.text import Text
from support.command_line import EXAMPLES, PAPER, flat, run

import fairopt as fo
from fairopt.commands.console import Console
from fairopt.commands.delivering import as_text
from fairopt.commands.working import work
from fairopt.formats import allocations
from fairopt.show.blocks import Note
from fairopt.show.terminal import print_blocks
from fairopt.tables import spreadsheets

FORMULAS = [
    '=HYPERLINK("http://example.com")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'quoted",
    "\uff1d1",
    "plain",
    "\x1b[31mred\x9b2J",
    "\u202egnirts\u2066\u200f\u2028",
]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Every label is a formula, or drives a terminal."""
    servers = [f"{name} s" for name in FORMULAS[:3]] + ["\x1b]0;title\x07"]
    resources = ["=cpu", "memory\x1b[2J"]
    rng = np.random.default_rng(3)
    tasks = np.full(len(FORMULAS), 4.0)
    instance = fo.Instance(
        rng.uniform(4, 9, (4, 2)),
        rng.uniform(0.5, 2, (len(FORMULAS), 2)),
        tasks=tasks,
        users=FORMULAS,
        servers=servers,
        resources=resources,
    )
    fo.save(instance, tmp_path / "hostile\x1b[2J.json")
    return tmp_path / "hostile\x1b[2J.json"


COMMANDS = {
    "solve": ["solve", "FILE"],
    "tsf": ["solve", "FILE", "--notion", "tsf", "--all"],
    "schedule": ["schedule", "FILE", "--schedule", "drfh:first-fit"],
    "compare": ["compare", "FILE", "--notions", "drfh,tsf", "--schedules", "drfh:first-fit"],
    "audit": ["audit", "FILE", "--effort", "4"],
    "explain": ["explain", "FILE", "--user", FORMULAS[0]],
    "frontier": ["frontier", "FILE", "--notions", "drfh", "--alphas", "1"],
    "arrivals": ["arrivals", "FILE", "--resource", "=cpu", "--load-step", "0.5", "--seeds", "1"],
    "study": ["study", "FILE", "--notions", "drfh", "--workers", "1"],
}
WITH_CSV = ("solve", "schedule", "compare", "frontier", "arrivals", "study")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_label_drives_the_terminal(hostile: Path, command: str) -> None:
    """Neither on the pages for people nor in messages nor in JSON: control characters are shown as escapes."""
    arguments = [str(hostile) if each == "FILE" else each for each in COMMANDS[command]]
    for more in [[], *([] if command == "explain" else [["--json"]])]:
        result = run(*arguments, *more)
        for text in (result.stdout, result.stderr):
            assert not [c for c in text if c not in "\n\N{NO-BREAK SPACE}" and not c.isprintable()]


@pytest.mark.parametrize("command", WITH_CSV)
def test_no_cell_of_csv_is_a_formula(hostile: Path, command: str) -> None:
    """Not in the header, not in the rows; numbers may begin with a minus."""
    arguments = [str(hostile) if each == "FILE" else each for each in COMMANDS[command]]
    rows = list(csv.reader(io.StringIO(run(*arguments, "--csv").stdout)))
    assert len(rows) > 1
    for cell in (cell for row in rows for cell in row):
        assert not [c for c in cell if unicodedata.category(c) == "Cc"]
        assert not cell.startswith(("=", "+", "@", "\uff1d"))
        assert not cell.startswith("-") or float(cell) <= 0


def test_an_allocation_in_csv_comes_back(hostile: Path, tmp_path: Path) -> None:
    """What solve --csv writes is read by compare --allocation, though its labels are not those of the instance; so is held.csv."""
    instance = fo.load(hostile)
    allocation = fo.solve(instance, "drfh")
    run("solve", hostile, "-o", tmp_path / "safe.csv")
    held = fo.Import("kubernetes", instance, allocation, instance.users, allocation.tasks_per_user).current_csv()
    assert held is not None
    assert "\n=" not in held
    (tmp_path / "held.csv").write_text(held)
    for name in ("safe.csv", "held.csv"):
        np.testing.assert_allclose(allocations.read(tmp_path / name, instance), allocation.tasks, rtol=1e-12)


@pytest.mark.parametrize("write", [lambda frame: str(frame.to_csv()), spreadsheets.to_csv])
def test_an_allocation_from_python_comes_back(tmp_path: Path, write: Callable[[Any], str]) -> None:
    """As pandas writes it, and as fairopt does, also where the one label is what the other becomes."""
    instance = fo.Instance([[9.0, 2.0]], [[1.0, 0.1], [2.0, 0.2], [0.5, 0.3]], users=["=a", "'=a", "''=a"], servers=["=s"])
    allocation = fo.solve(instance, "drfh")
    (tmp_path / "a.csv").write_text(write(allocation.to_frame()))
    np.testing.assert_allclose(allocations.read(tmp_path / "a.csv", instance), allocation.tasks, rtol=1e-12)


def test_messages_show_escapes() -> None:
    """Also where no command line is in between: in a notebook, and in a traceback."""
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.Instance([[1.0]], [[-1.0]], users=["eve\x1b[31m"])
    assert str(caught.value).startswith(r'the demand of "eve\x1b[31m" for')


ESCAPES = "\x1b]0;x\x07\u202e[red]x"


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", PAPER, "-o", f"{ESCAPES}.bad"),
        ("solve", PAPER, "-o", f"{ESCAPES}/a.json"),
        ("solve", PAPER, "--plot", f"{ESCAPES}.bad"),
        ("solve", PAPER, "--sort", ESCAPES),
        ("solve", PAPER, "--top", ESCAPES),
        ("solve", PAPER, ESCAPES),
        ("solve", PAPER, f"--{ESCAPES}"),
        ("solve", PAPER, "--max-bytes", ESCAPES),
        ("solve", PAPER, "--notion", ESCAPES),
        ("solve", ESCAPES),
        ("report", PAPER, "-o", f"{ESCAPES}.bad"),
        ("generate", "uniform", "-o", f"{ESCAPES}.bad"),
        ("import", ESCAPES),
        ("import", "kubernetes", "--nodes", ESCAPES),
        ("study", PAPER, "--backend", ESCAPES),
        (ESCAPES,),
    ],
    ids=lambda arguments: " ".join(str(each) for each in arguments if ESCAPES not in str(each) and each != PAPER) or "a command",
)
def test_what_was_typed_drives_no_terminal(arguments: tuple[object, ...]) -> None:
    """In messages of fairopt and in those of typer and rich, which draw a box around them."""
    result = run(*arguments, status=2)
    assert not [c for c in result.output if c not in "\n\N{NO-BREAK SPACE}" and not c.isprintable()]
    quotes = "--top" not in arguments  # whose message says only that it is no number
    assert not quotes or r"\x1b]0;x\x07\u202e[red]x" in "".join(flat(result.stderr).split())


def test_whatever_is_printed_drives_no_terminal() -> None:
    """Every console of a command escapes what it is given, whoever forgot to, and keeps the styles that rich makes."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, color_system="standard", width=60)
    table = Table("a\x9b2J")
    table.add_row(Text(f"{ESCAPES}", style="red"))
    console.print(table, f"b{ESCAPES}", end="\x1b[2J\n", markup=False)
    text = re.sub("\x1b\\[[0-9;]*m", "", file.getvalue())  # of rich
    assert "\x1b[31m" in file.getvalue()
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    assert text.count(r"\x1b]0;x\u202e[red]x") == 2  # rich itself leaves the bell out


def test_no_command_has_a_console_of_its_own() -> None:
    """All of them use the one that escapes."""
    folder = Path(str(import_module("fairopt.commands").__file__)).parent
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.name == "console.py" or "Console(" not in text or "from rich.console import Console" not in text, path


def test_json_holds_no_character_that_is_not_seen() -> None:
    """Arabic letter mark, soft and invisible characters, and one beyond 16 bits, as a pair of surrogates."""
    hidden = "a\u061c\u200b\ufeff\u00ad\U000e0041\x7f\u00a0\u00e9"
    text = as_text({hidden: 1})
    assert json.loads(text) == {hidden: 1}
    assert "\\u061c\\u200b\\ufeff\\u00ad\\udb40\\udc41\\u007f\u00a0\u00e9" in text


def test_warnings_and_logs_of_others_drive_no_terminal(tmp_path: Path) -> None:
    """Those of Python and of other packages are not shown (matplotlib, for one, quotes what it cannot draw), or printable with ``-W``."""
    code = (
        "import logging, warnings, fairopt.commands.solving as solving; "
        f"found = solving.read_instance; text = {ESCAPES!r}; "
        "solving.read_instance = lambda *a: (warnings.warn(text), logging.getLogger('other').warning('%s', text), found(*a))[2]; "
        "from fairopt.cli import main; main()"
    )
    run = partial(subprocess.run, capture_output=True, text=True, cwd=tmp_path)
    done = run([sys.executable, "-c", code, "solve", str(PAPER)])
    assert (done.returncode, done.stderr) == (0, "")
    done = run([sys.executable, "-W", "default::UserWarning", "-c", code, "solve", str(PAPER)])
    assert (done.returncode, done.stderr) == (0, "warning: \\x1b]0;x\\x07\\u202e[red]x (UserWarning, <string>, line 1)\n")


JOBS = EXAMPLES / "gpu-lab" / "jobs.csv"
TO_A_FILE = (
    ("solve", PAPER),
    ("schedule", PAPER),
    ("compare", PAPER),
    ("frontier", PAPER),
    ("audit", PAPER),
    ("explain", PAPER, "--user", "user-1"),
    ("arrivals", PAPER, "--resource", "cpu"),
    ("simulate", JOBS, "--cluster", EXAMPLES / "gpu-lab"),
    ("report", PAPER),
    ("study", PAPER),
    ("generate", "google"),
    ("worst-case", "drfh:first-fit"),
    ("import", "swf", JOBS),
)


@pytest.mark.parametrize("command", TO_A_FILE, ids=lambda command: command[0])
def test_a_file_of_an_unknown_kind_is_refused_by_every_command(command: tuple[object, ...], tmp_path: Path) -> None:
    """Before anything is read or computed, with the endings that there are."""
    text = flat(run(*command, "-o", tmp_path / "out.dat", status=2).stderr)
    assert "out.dat" in text.replace(" ", "")  # a frame may break the path anywhere
    assert re.search(r"end its name in \.|ends in \.", text)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("command", TO_A_FILE[:8], ids=lambda command: command[0])
def test_an_option_and_a_name_that_disagree_are_refused(command: tuple[object, ...], tmp_path: Path) -> None:
    """JSON would be called text."""
    text = flat(run(*command, "--json", "-o", tmp_path / "out.txt", status=2).stderr)
    assert "ends in .txt; leave --json out, or end the name in .json" in text


@pytest.mark.parametrize("command", ["solve", "schedule"])
def test_envy_is_drawn(command: str, three: Path, tmp_path: Path) -> None:
    """Of an exact allocation and of a schedule."""
    run(command, three, "--plot-envy", tmp_path / "envy.png")
    assert (tmp_path / "envy.png").read_bytes().startswith(b"\x89PNG")
    assert "end its name in" in flat(run(command, three, "--plot-envy", "envy.bmp", status=2).stderr)


@pytest.mark.parametrize("terminal", [False, True])
def test_notes_break_between_words_on_a_terminal_alone(terminal: bool) -> None:
    """What a program reads is one line."""
    written = io.StringIO()
    note = "Note: limits are hard: what an account does not use stays idle"
    print_blocks(Console(file=written, width=30, force_terminal=terminal, color_system=None), [Note(note, whole=True)])
    lines = written.getvalue().splitlines()
    assert " ".join(map(str.strip, lines)) == note
    assert (max(map(len, lines)) <= 30) is (len(lines) > 1) is terminal


def test_two_signals_at_one_instant_are_one_request_to_end() -> None:
    """The task returns what it has; no exception escapes, and afterwards both signals mean what they did."""
    ended = threading.Event()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    def task() -> bool:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM):
            os.kill(os.getpid(), number)
        return ended.wait(60)

    assert work("simulating", task, None, ended)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_second_ctrl_c_counts_as_soon_as_the_sentence_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may answer the sentence before the program notes that the user was told."""
    ended = threading.Event()
    monkeypatch.setattr("fairopt.commands.working.say", lambda *_: os.kill(os.getpid(), signal.SIGINT))

    def task() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return threading.Event().wait(20)

    with pytest.raises(KeyboardInterrupt):
        work("simulating", task, None, ended)


@pytest.mark.parametrize("form", ["json", "csv", "txt"])
def test_what_takes_time_is_done_where_progress_is_shown(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are drawn, and tables and JSON made, in the thread of `work`: the one that waits shows that it waits."""
    threads: dict[str, threading.Thread] = {}

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            threads[name] = threading.current_thread()
            return function(*arguments, **options)

        return call

    plots = import_module("fairopt.plots")
    monkeypatch.setattr(plots, "save_figure", watched("picture", plots.save_figure))
    tables = import_module("fairopt.reporting.tables")
    monkeypatch.setattr(tables, "comparison_blocks", watched("txt", tables.comparison_blocks))
    monkeypatch.setattr(fo.Comparison, "to_dict", watched("json", fo.Comparison.to_dict))
    monkeypatch.setattr(fo.Comparison, "to_frame", watched("csv", fo.Comparison.to_frame))
    run("compare", PAPER, "--plot", tmp_path / "picture.svg", "-o", tmp_path / f"table.{form}")
    assert set(threads) == {"picture", form}
    assert threading.main_thread() not in threads.values()


def test_ctrl_c_names_what_was_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A picture that is there already is not said to be missing."""

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    working = import_module("fairopt.commands.working")
    monkeypatch.setattr(working, "WRITTEN", {str(tmp_path / "picture.svg")})
    monkeypatch.setattr(working, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        work("writing the table", lambda: None)
    assert f"written so far: {tmp_path / 'picture.svg'}" in flat(capsys.readouterr().err).replace(" ", "").replace(
        "writtensofar:", "written so far: "
    )
