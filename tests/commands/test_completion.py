"""What the shell is offered: identifiers, names in the file, and paths of ``--set``; after a comma it goes on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.command_line import EXAMPLES
from typer.testing import CliRunner

from fairopt.cli import app

LAB, TREE = EXAMPLES / "gpu-lab", EXAMPLES / "research-queues.yaml"


def offered(line: str) -> list[str]:
    """Return what completes the last word of a command line, as zsh is told it."""
    words = f"fairopt {line.format(LAB=LAB, TREE=TREE)}"
    asked = {"_FAIROPT_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    result = CliRunner().invoke(app, [], prog_name="fairopt", env=asked)
    return [entry.partition("\t")[0] for entry in result.stdout.splitlines() if entry]


def test_an_entry_is_one_line() -> None:
    """The help of an option is not broken, whatever the width of the terminal: a shell reads an entry from each line."""
    asked = {"_FAIROPT_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": "fairopt solve --", "COLUMNS": "60"}
    asked["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    command = [sys.executable, "-c", "import sys; sys.argv = ['fairopt']; from fairopt.cli import main; main()"]
    found = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True).stdout.splitlines()
    assert len(found) > 20
    assert all(line.startswith("--") and "\t" in line for line in found)
    assert any("Default: tdm if FILE gives rates, otherwise rdm." in line for line in found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("solve {LAB} --show vi", ["vision"]),
        ("solve {LAB} --show s", ["speech", "serving", "students", "simulation", "statistics"]),
        ("solve nothing.yaml --show s", []),
        ("explain {TREE} --queue inter", ["interns"]),
        ("explain {TREE} --user ines --against bo", ["bob"]),
        ("compare {LAB} --notions drfh,ps", ["drfh,psdsf"]),
        ("compare {LAB} --notions drf,drf", ["drf,drfh"]),
        ("compare {LAB} --schedules tsf:best-fit,drfh:b", ["tsf:best-fit,drfh:best-fit"]),
        ("audit {LAB} --properties pareto,psd", ["pareto,psdsf"]),
        ("arrivals {LAB} --resource g", ["gpu"]),
        (
            "solve {LAB} --set se",
            ["servers.dgx.", "servers.old-dgx.", "servers.rack-v100.", "servers.inference.", "servers.desktop.", "servers.cpu-only."],
        ),
        ("solve {LAB} --set users.vision.w", ["users.vision.weight="]),
        (
            "solve {LAB} --set servers.dgx.capacity.",
            ["servers.dgx.capacity.gpu=", "servers.dgx.capacity.cpu=", "servers.dgx.capacity.memory="],
        ),
        ("what-if {TREE} --set queues.interns.limit.g", ["queues.interns.limit.gpu="]),
        ("compare {TREE} --by ", ["user", "queue", "owner"]),
        ("what-if {TREE} --given queues.interns.limit.g", ["queues.interns.limit.gpu="]),
        ("schedule {LAB} --schedule tsf:b", ["tsf:best-fit"]),
        ("schedule {LAB} --ties la", ["largest-demand"]),
        ("simulate jobs.csv --cluster {LAB} --scheduler fair", ["fairtree:half_life=7d"]),
        ("simulate jobs.csv --cluster {LAB} --by t", ["time"]),
        ("simulate jobs.csv --cluster {LAB} --reference psd", ["psdsf"]),
        ("solve {LAB} --sharing r", ["rdm"]),
        ("audit {LAB} --work", ["--workers"]),
        ("audit {LAB} --job", []),
        ("sched", ["schedule", "schedulers"]),
        ("reproduce psdsf-t", ["psdsf-table-1"]),
        ("generate goo", ["google"]),
    ],
)
def test_what_is_offered(line: str, expected: list[str]) -> None:
    """In the order of the file."""
    assert offered(line) == expected
