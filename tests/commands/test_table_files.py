"""Commands that write tables: every kind of file by its ending, and the instances and allocations that they read as such."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from support.command_line import EXAMPLES, PAPER, flat, run

import fairopt as fo

JOBS = EXAMPLES / "gpu-lab" / "jobs.csv"
FINITE = [word for user in fo.load(PAPER).users for word in ("--set", f"users.{user}.tasks=3")]
TABLES: dict[str, tuple[object, ...]] = {
    "solve": ("solve", PAPER),
    "schedule": ("schedule", PAPER),
    "compare": ("compare", PAPER),
    "frontier": ("frontier", PAPER, "--notions", "drfh", "--alphas", "1"),
    "arrivals": ("arrivals", PAPER, *FINITE, "--resource", "cpu", "--seeds", "1", "--workers", "1", "--load-step", "0.5"),
    "simulate": ("simulate", JOBS, "--cluster", EXAMPLES / "gpu-lab", "--until", "600"),
}


@pytest.mark.parametrize("command", TABLES.values(), ids=TABLES)
def test_every_kind_of_table(command: tuple[object, ...], tmp_path: Path) -> None:
    """All have as many rows, but for simulations, whose .parquet has the samples."""
    for kind in ("csv", "parquet", "xlsx", "md", "tex"):
        run(*command, "-o", tmp_path / f"out.{kind}")
    rows = len(pd.read_csv(tmp_path / "out.csv"))
    if command[0] != "simulate":
        assert len(pd.read_parquet(tmp_path / "out.parquet")) == rows
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").worksheets[0]
    assert sheet.max_row == rows + 1
    assert len((tmp_path / "out.md").read_text().splitlines()) == rows + 2
    assert (tmp_path / "out.tex").read_text().count("\\\\\n") == rows + 1
    assert len(list(tmp_path.iterdir())) == 5


def test_the_means_of_a_study(tmp_path: Path) -> None:
    """Beside what is printed."""
    printed = run("study", PAPER, "--workers", "1", "--backend", "threading", "--csv", "--table", tmp_path / "means.tex").stdout
    assert printed.startswith("instance,entry,")
    assert (tmp_path / "means.tex").read_text().startswith("\\begin{tabular}")
    assert "end its name in .csv, .parquet, .xlsx, .md, .tex or .html" in flat(run("study", PAPER, "--table", "means.dat", status=2).stderr)


def test_instances_in_every_kind_of_file(tmp_path: Path) -> None:
    """By every command, as all read them in one way; --set changes them too."""
    expected = run("solve", PAPER, "--csv").stdout
    for name in ("lab.xlsx", "lab.parquet", "lab"):
        fo.save(fo.load(PAPER), tmp_path / name)
        assert run("solve", tmp_path / name, "--csv").stdout == expected
    user = fo.load(PAPER).users[0]
    assert run("solve", tmp_path / "lab.xlsx", "--set", f"users.{user}.weight=1/2", "--csv").stdout != expected
    run("generate", "uniform:users=3:servers=2", "-o", tmp_path / "new.xlsx")
    assert fo.load(tmp_path / "new.xlsx").n_users == 3


def test_held_tasks_in_other_files(tmp_path: Path) -> None:
    """What import --current writes is read by compare --allocation."""
    log = tmp_path / "log.swf"
    log.write_text(
        "; MaxProcs: 8\n; MaxNodes: 2\n" + "".join(f"{j} 0 0 100 2 -1 -1 2 100 -1 1 {j % 2 + 1} 1 -1 1 1 -1 -1\n" for j in range(3))
    )
    for kind in ("csv", "parquet", "xlsx"):
        run("import", "swf", log, "-o", tmp_path / "cluster.yaml", "--current", tmp_path / f"held.{kind}", "--force")
        assert "held" in run("compare", tmp_path / "cluster.yaml", "--allocation", tmp_path / f"held.{kind}").stdout
    assert "end its name in .csv, .parquet" in flat(run("import", "swf", log, "--current", tmp_path / "held.dat", status=2).stderr)


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 2, and nothing is computed."""
    fo.save(fo.load(PAPER), tmp_path / "lab.xlsx")
    monkeypatch.setattr("fairopt.tables.workbooks.find_spec", lambda name: None)
    for command in (
        ("solve", PAPER, "-o", tmp_path / "out.xlsx"),
        ("solve", tmp_path / "lab.xlsx"),
        ("generate", "google", "-o", "a.xlsx"),
    ):
        message = flat(run(*command, status=2).stderr)
        assert "needs the package openpyxl, which is not installed; install it with: pip install openpyxl" in message
