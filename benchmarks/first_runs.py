"""What a person waits for: small commands in fresh processes, and a report of 500 users: ``python benchmarks/first_runs.py``.

A command is run several times, each in a process of its own; the least processor time counts. Bytecode is kept between the runs, as after
an installation, whatever the environment says. Beside it stands what the same interpreter takes to import the packages that the command
cannot do without. The report is that of `instances.lab_of_many`, with every part that
`fairopt report` has by default: four notions, each audited with 50 lies and 50 users who leave. It is written twice, because the first one
in an installation also compiles code and draws the script of its charts, and the second one counts.

Writes benchmarks/results/first_runs.md and .json.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import instances
from measuring import Row, commit, in_own_process, machine, write

import fairopt as fo

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
_REPEATS, _USERS, _LIMIT = 15, 500, 300.0
_PYTHON = [sys.executable, "-c"]
_COMMANDS = {
    "`import fairopt`": [*_PYTHON, "import fairopt"],
    "`fairopt --version`": [sys.executable, "-m", "fairopt", "--version"],
    "`fairopt --help`": [sys.executable, "-m", "fairopt", "--help"],
    "`fairopt solve examples/kesidis.yaml`": [sys.executable, "-m", "fairopt", "solve", "examples/kesidis.yaml"],
    "its packages: NumPy, SciPy's sparse arrays, HiGHS, Typer, Rich, pydantic, PyYAML": [
        *_PYTHON,
        "import numpy, scipy.sparse, highspy, typer.main, typer._adapters, rich.table, rich.progress, pydantic, yaml; pydantic.BaseModel",
    ],
}


def processor_seconds(command: list[str], bytecode: str) -> float:
    """Return the least processor time of several runs, user and system, which keep their bytecode in the folder ``bytecode``."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables["PYTHONPYCACHEPREFIX"] = bytecode
    spent = []
    for _ in range(_REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True, env=variables)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def measure_report() -> Row:
    """Write the report twice; return the processor seconds of each part of the second."""
    instance = instances.lab_of_many(_USERS)
    with tempfile.TemporaryDirectory() as folder:
        fo.report(instance, Path(folder, "first.html"))
        parts: Row = {}
        began = last = time.process_time()

        def done(name: str) -> None:
            nonlocal last
            now = time.process_time()
            parts[name], last = now - last, now

        fo.report(instance, Path(folder, "second.html"), done=done)
        done("the page")
    return {"total": last - began, "parts": parts}


def main() -> None:
    """Measure, and write the tables."""
    if sys.argv[1:] == ["--report"]:
        print(json.dumps(measure_report()))
        return
    with tempfile.TemporaryDirectory() as bytecode:
        commands = {name: processor_seconds(command, bytecode) for name, command in _COMMANDS.items()}
    report = in_own_process(__file__, ["--report"], _LIMIT)
    lines = [
        "# First runs",
        "",
        f"{machine()}; one run of `benchmarks/first_runs.py`{commit()}, {time.strftime('%Y-%m-%d')}. Processor seconds; of a command the "
        f"least of {_REPEATS} fresh processes, which find bytecode as after an installation.",
        "",
        "| command | processor |",
        "|---|---|",
        *(f"| {name} | {seconds:.2f} |" for name, seconds in commands.items()),
        "",
        f"## A report of {_USERS} users",
        "",
        "| part | processor |",
        "|---|---|",
        *(f"| {name} | {seconds:.2f} |" for name, seconds in report.get("parts", {}).items()),
        f"| all | {report['total']:.2f} |" if "total" in report else f"| failed: {report['failed']} | |",
        "",
    ]
    print("\n".join(lines))
    write(RESULTS / "first_runs.md", "\n".join(lines))
    write(RESULTS / "first_runs.json", json.dumps({"commands": commands, "report": report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
