"""What lies in the current folder: nothing of it is opened, imported or run unless the command line names it.

Each command runs in a folder of traps: modules of the names that Python and libraries import, and the settings files of libraries. A hook
in every process that is started writes down which files of the folder are opened, and which folders are searched for modules.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import EXAMPLES

import fairopt as fo
from fairopt.processes.surroundings import refuse_settings

HOOK = """
import os, sys
here, seen = os.environ["TRAPS"], os.environ["SEEN"]
def hook(event, arguments, busy=[]):
    if event in ("open", "os.listdir", "os.scandir") and arguments and isinstance(arguments[0], (str, bytes)) and not busy:
        busy.append(True)
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if (path + os.sep).startswith(here + os.sep) and os.path.lexists(path):
            with open(seen, "a") as file:
                file.write(path + "\\n")
        busy.clear()
sys.addaudithook(hook)
"""
SCRIPT = """
import sys
from fairopt.cli import main
if __name__ == "__main__":
    for words in " ".join(sys.argv[1:]).split(" && "):
        sys.argv[1:] = words.split()
        try:
            main()
        except SystemExit as leaving:
            if leaving.code:
                raise
"""
MODULES = (
    *("joblib", "types", "typing", "pickle", "signal", "json", "numpy", "pandas", "yaml", "numba", "queue", "dask", "glob", "ctypes"),
    *("sitecustomize", "usercustomize", "gurobipy"),
)
SETTINGS = {
    "matplotlibrc": "text.usetex: True\n",
    ".numba_config.yaml": "cache_dir: kept\n",
    "dask.yaml": "distributed: {worker: {preload: trap.py}}\n",
    "bokeh.yaml": "log_level: trace\n",
    "pyproject.toml": "[tool",
    "setup.cfg": "[",
    ".env": "PYTHONSTARTUP=trap.py\n",
    "HiGHS.opt": "solver = trap\n",
    "trap.pth": "import trap\n",
}
NAMED = ("cluster.yaml", "tasks.yaml", "lab", "mine.py")
TASKS = """
servers: [{name: s, capacity: {gpu: 4}}]
users: [{name: a, demand: {gpu: 1}, tasks: 3}, {name: b, demand: {gpu: 2}, tasks: 2}]
"""
MINE = """
import fairopt as fo

class Mine(fo.ShareNotion):
    name, title, source = "mine", "DRF again", "nobody"

    def share_per_task(self, instance):
        return fo.NOTIONS["drfh"]().share_per_task(instance)
"""
ALONE = (  # start no worker and load no plug-in: one process runs them one after the other, and imports what all need once
    "solve cluster.yaml --plot /OUT/a.svg --plot-envy /OUT/b.png -o /OUT/a.json",
    "solve cluster.yaml --solver pyomo",
    "solve cluster.yaml --notion proportional --solver cvxpy",
    "frontier cluster.yaml --csv",
    "simulate lab/jobs.csv --cluster lab --plot /OUT/day.svg -o /OUT/a.parquet",
    "history lab/log.csv --cluster lab --plot /OUT/log.svg --resume /OUT/kept",
    "report cluster.yaml --effort 4 -o /OUT/a.html",
    "generate google:users=20:servers=30 -o /OUT/cluster.yaml",
    "reproduce bbf",
)
COMMANDS = {
    "one after the other": " && ".join(ALONE),
    "a notion of a file": "compare cluster.yaml --notions mine.py:Mine,drfh --plot /OUT/a.pdf && "
    "study cluster.yaml --notions drfh,mine.py:Mine --schedules drfh:random --seeds 4 --workers 2 --resume /OUT/s.parquet",
    "workers": "audit cluster.yaml --workers 2 --effort 4 && worst-case drfh:first-fit --users 2 --resources 1 --tries 40 --workers 2 && "
    "arrivals tasks.yaml --resource gpu --seeds 4 --workers 2 -o /OUT/a.xlsx",
    "dask": "study cluster.yaml --schedules drfh:random --seeds 4 --workers 2 --backend dask",
    "ray": "study cluster.yaml --schedules drfh:random --seeds 4 --workers 2 --backend ray",
}


@pytest.fixture
def traps(tmp_path: Path) -> Path:
    """Return a folder of traps, and of the files that commands name."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    (tmp_path / "hook" / "script.py").write_text(SCRIPT)
    for name in MODULES:
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'RAN')!r}, 'a').write({name!r} + ' ')\n")
    for name, text in SETTINGS.items():
        (here / name).write_text(text)
    fo.save(fo.load(EXAMPLES / "gpu-lab"), here / "cluster.yaml")
    shutil.copytree(EXAMPLES / "gpu-lab", here / "lab")
    (here / "tasks.yaml").write_text(TASKS)
    (here / "mine.py").write_text(MINE)
    return here


def environment(traps: Path) -> dict[str, str]:
    """Return the variables with which every Python that is started writes down what it opens in the folder."""
    return {**os.environ, "PYTHONPATH": str(traps.parent / "hook"), "TRAPS": str(traps), "SEEN": str(traps.parent / "SEEN")}


def script(traps: Path, words: str) -> list[str]:
    """Return the command line of a script that lies elsewhere, as the console script does; ``&&`` stands between commands."""
    return [sys.executable, str(traps.parent / "hook" / "script.py"), *words.replace("/OUT", str(traps.parent)).split()]


def trapped(traps: Path) -> set[str]:
    """Return the files of the folder that were opened though nobody named them, and the modules that ran."""
    seen, ran = traps.parent / "SEEN", traps.parent / "RAN"
    opened = {
        Path(line).relative_to(traps).parts[0] if Path(line) != traps else "."
        for line in (seen.read_text().splitlines() if seen.exists() else ())
    }
    return (opened - {*NAMED}) | set(ran.read_text().split() if ran.exists() else ())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_opens_nothing_that_it_is_not_given(traps: Path, command: str) -> None:
    """In no process, workers included; a file that a plug-in is in may be searched for what stands beside it."""
    backend = {"dask": "distributed", "ray": "ray"}.get(command)
    if backend is not None and importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    done = subprocess.run(script(traps, COMMANDS[command]), cwd=traps, env=environment(traps), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert trapped(traps) - ({"."} if "mine.py" in COMMANDS[command] else set()) == set()


def test_the_traps_work(traps: Path) -> None:
    """A Python that does start in the folder runs them."""
    subprocess.run([sys.executable, "-c", "import joblib; open('.env')"], cwd=traps, env=environment(traps), check=True)
    assert {"joblib", ".env", "."} <= trapped(traps)


def test_python_runs_the_package_without_the_folder(traps: Path) -> None:
    """``python -m fairopt`` has the folder on its path until fairopt itself is found: what Python imports for ``-m`` is beyond us."""
    modules = "import runpy, contextlib, pkgutil, json, sys; print(json.dumps([*sys.modules]))"
    for name in json.loads(subprocess.run([sys.executable, "-S", "-c", modules], capture_output=True, text=True, check=True).stdout):
        (traps / f"{name}.py").unlink(missing_ok=True)
    assert {"joblib", "numpy", "pandas", "yaml"} <= {path.stem for path in traps.glob("*.py")}
    command = [sys.executable, "-m", "fairopt", "solve", "cluster.yaml", "--plot", str(traps.parent / "a.svg")]
    done = subprocess.run(command, cwd=traps, env=environment(traps), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert trapped(traps) - {"."} == set()


def test_the_page_that_explores_opens_nothing(traps: Path) -> None:
    """From its start to Ctrl-C."""
    words = script(traps, "explore cluster.yaml --no-browser")
    with subprocess.Popen(words, cwd=traps, env=environment(traps), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
    assert trapped(traps) == set()


def test_a_solver_is_not_started_beside_settings_that_it_would_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a file of Ipopt names a library that is loaded."""
    monkeypatch.chdir(tmp_path)
    refuse_settings("Ipopt")
    (tmp_path / "ipopt.opt").write_text("hsllib trap.so\n")
    with pytest.raises(fo.Unsupported, match=r"settings from ipopt\.opt in the current folder; run fairopt in another folder"):
        refuse_settings("Ipopt")
    if importlib.util.find_spec("pyomo"):
        with pytest.raises(fo.Unsupported, match=r"ipopt\.opt"):
            fo.solve(fo.Instance([[1]], [[1]]), solver="pyomo:ipopt")


@pytest.mark.skipif(os.name != "posix", reason="a program is a script here")
def test_pyomo_runs_no_program_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself it looks there before it looks in PATH."""
    pytest.importorskip("pyomo")
    script = tmp_path / "glpsol"
    script.write_text(f"#!/bin/sh\n: > {tmp_path}/RAN\necho GLPSOL: GLPK LP/MIP Solver, v4.65\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(fo.FairoptError):
        fo.solve(fo.Instance([[1]], [[1]]), solver="pyomo:glpk")
    assert not (tmp_path / "RAN").exists()
