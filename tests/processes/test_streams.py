"""stdout and stderr of a command hold what fairopt says, and nothing else: in processes of their own, at the level of descriptors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.command_line import EXAMPLES, PAPER

import fairopt as fo
from fairopt.processes.streams import unwarned

# A HiGHS that prints on descriptor 1 whenever an object is made, as 1.16 does the first time, and whenever one is run.
NOISY = """
import os
import highspy

class Noisy(highspy.Highs):
    def __init__(self):
        os.write(1, b"Running HiGHS\\n")
        super().__init__()

    def run(self):
        os.write(1, b"run\\n")
        return super().run()

highspy.Highs = Noisy
"""
BANNER = """
import os
import highspy

class First(highspy.Highs):
    before = False

    def __init__(self):
        if not First.before:
            os.write(1, b"Running HiGHS\\n")
        First.before = True
        super().__init__()

highspy.Highs = First
"""
MAIN = "from fairopt.cli import main; main()"
ANSWER = [2.6087, 3.1304, 6.2609]  # of DRFH on PAPER, as published


def done(*arguments: object, code: str = MAIN, status: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python, with these arguments."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, **options)
    assert found.returncode == status, found.stderr
    return found


# Engines -------------------------------------------------------------------------------------------------------------------------

DRFH: tuple[str, ...] = (
    "highs",
    "interior-point",
    "cvxpy",
    "cvxpy:HIGHS",
    "cvxpy:CLARABEL",
    "cvxpy:SCS",
    "cvxpy:OSQP",
    "pyomo",
    "pyomo:highs",
)
IF_INSTALLED = {  # solvers that no one need have, by the package that brings them; some print their licence
    "gurobipy": ("cvxpy:GUROBI", "pyomo:gurobi_direct"),
    "coptpy": ("cvxpy:COPT",),
    "xpress": ("cvxpy:XPRESS", "pyomo:xpress_direct"),
    "cplex": ("cvxpy:CPLEX", "pyomo:cplex_direct"),
    "pyscipopt": ("cvxpy:SCIP",),
}
DRFH += tuple(solver for package, solvers in IF_INSTALLED.items() if find_spec(package) for solver in solvers)
OTHERS = (
    *(("solve", PAPER, "--notion", notion) for notion in ("psdsf", "proportional", "efficiency", "uniform")),
    ("solve", PAPER, "--notion", "proportional", "--solver", "cvxpy"),
    ("solve", PAPER, "--notion", "proportional", "--solver", "trajectory"),
    ("solve", PAPER, "--notion", "drfh", "--integral"),
    ("solve", PAPER, "--notion", "drfh", "--exact"),
    ("solve", EXAMPLES / "drf.yaml", "--notion", "drf", "--solver", "water-filling"),
    ("solve", EXAMPLES / "bbf-section-3.yaml", "--notion", "bbf"),
    ("solve", EXAMPLES / "gpu-lab", "--notion", "drfh"),
    ("audit", PAPER, "--notion", "tsf", "--effort", "4"),
    ("compare", PAPER, "--notions", "drfh,psdsf", "--schedules", "drfh:best-fit", "--integral"),
    ("study", PAPER, "--notions", "drfh", "--seeds", "2", "--workers", "2"),
    ("worst-case", "drfh:first-fit", "--servers", "2", "--users", "2", "--tries", "10", "--workers", "2"),
)

# Imports once what all need, and then runs each command in a process of its own, which has made no HiGHS object before: in a folder, with
# code that is run before it, and with a file or a pipe as its stdout. It reads a command a line, and answers each by a line.
FORKS = """
import json, os, sys, tempfile
import cvxpy, highspy, pyomo.environ, scipy.optimize
import fairopt as fo
from fairopt.cli import main

def solve():
    fo.solve(fo.load(sys.argv[1]), "drfh", solver=sys.argv[2])

def run(folder, prelude, piped, arguments):
    files = [tempfile.TemporaryFile("w+") for _ in range(2)]
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.dup2(writer if piped else files[0].fileno(), 1)
        os.dup2(files[1].fileno(), 2)
        os.close(reader)
        os.close(writer)
        os.chdir(folder)
        sys.argv = ["fairopt", *arguments]
        status = 1
        try:
            exec(prelude, {})
            main() if len(arguments) > 2 else solve()
            status = 0
        except SystemExit as leaving:
            status = leaving.code or 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(writer)
    with open(reader) as pipe:
        heard = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in files:
        file.seek(0)
    return status, heard or files[0].read(), files[1].read()

for line in sys.stdin:
    print(json.dumps(run(*json.loads(line))), flush=True)
"""
Each = Callable[..., list[str]]


@pytest.fixture(scope="module")
def each() -> Iterator[Each]:
    """Return a function that returns what each command prints; its status is 0, and its stderr is empty."""
    with subprocess.Popen([sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def ask(*commands: tuple[object, ...], prelude: str = "", piped: bool = False, folder: Path = EXAMPLES) -> list[str]:
            printed = []
            for command in commands:
                print(json.dumps([str(folder), prelude, piped, [str(part) for part in command]]), file=asked, flush=True)
                status, output, errors = json.loads(answers.readline())
                assert (status, errors) == (0, ""), command
                printed.append(output)
            return printed

        yield ask
        process.kill()


def test_every_engine_is_run_here() -> None:
    """A new engine is noticed."""
    others = {"trajectory", "water-filling", "best-response", "large"}  # best-response by psdsf; large runs methods of other engines
    assert {*(solver.partition(":")[0] for solver in DRFH), *others} == set(fo.SOLVERS)


def test_a_command_prints_one_document_of_json(each: Each) -> None:
    """Whatever solves, compiles or starts workers."""
    for answer in each(*((*command, "--json") for command in OTHERS)):
        json.loads(answer)


@pytest.mark.parametrize("prelude", ["", NOISY], ids=["HiGHS as it is", "HiGHS that prints whenever it can"])
def test_an_engine_prints_nothing_in_a_command(prelude: str, each: Each) -> None:
    """Also with a HiGHS that prints, because not every version does."""
    for answer in each(*(("solve", PAPER, "--notion", "drfh", "--json", "--solver", solver) for solver in DRFH), prelude=prelude):
        assert [user["tasks"] for user in json.loads(answer)["users"]] == pytest.approx(ANSWER, abs=1e-4)


def test_no_engine_prints_in_a_program(each: Each) -> None:
    """No command has claimed stdout there."""
    assert each(*((PAPER, solver) for solver in DRFH)) == [""] * len(DRFH)


def test_a_banner_is_not_heard_in_a_program(each: Each) -> None:
    """The first object of HiGHS has one, as in 1.16; whichever engine makes it."""
    assert each(*((PAPER, solver) for solver in DRFH), prelude=BANNER) == [""] * len(DRFH)


def test_a_script_that_exports_is_a_script() -> None:
    """As ``fairopt export slurm ... > limits.sh``: the first line tells the shell what to do with it."""
    assert done("export", "slurm", EXAMPLES / "gpu-lab", "--notion", "drfh", code=NOISY + MAIN).stdout.startswith("#!/bin/sh\n")


def test_the_banner_alone_costs_no_print_of_the_program() -> None:
    """What the program prints before and after stays in order, through a buffer, too."""
    code = "import sys, fairopt as fo; print('before'); fo.solve(fo.load(sys.argv[1]), 'drfh'); print('after')"
    assert done(PAPER, code=code).stdout == "before\nafter\n"


def test_a_program_that_has_closed_its_stdout_goes_on() -> None:
    """As a daemon does."""
    code = "import os, sys, fairopt as fo; os.close(1); fo.solve(fo.load(sys.argv[1]), 'drfh'); print('solved', file=sys.stderr)"
    command = [sys.executable, "-c", code, str(PAPER)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stderr.startswith("solved\n")


# stdout --------------------------------------------------------------------------------------------------------------------------

CLAIM = "import os, subprocess, sys; from fairopt.processes.streams import claim_stdout, unheard; "


def test_a_log_that_is_asked_for_goes_to_stderr() -> None:
    """CVXPY prints one by ``print``, and its solvers by descriptor."""
    found = done("solve", PAPER, "--solver", "cvxpy:CLARABEL", "--solver-option", "verbose=true", "--json")
    assert json.loads(found.stdout)
    assert "CVXPY" in found.stderr
    assert "Clarabel" in found.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_claimed_stdout(unbuffered: str) -> None:
    """Before and after, in order; neither native code nor a child is heard, and escapes stay as they were set."""
    code = CLAIM + (
        "sys.stdout.reconfigure(errors='backslashreplace'); print('one'); claim_stdout(); claim_stdout(); os.write(1, b'native'); "
        "print('two \\u20ac'); subprocess.run([sys.executable, '-c', 'print(3)'], check=True); sys.__stdout__.write('four\\n')"
    )
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUNBUFFERED": unbuffered}
    assert done(code=code, env=environment).stdout == "one\ntwo \\u20ac\nfour\n"


def test_a_stream_that_a_caller_has_put_there_stays() -> None:
    """As in a notebook."""
    code = CLAIM + "import io; sys.stdout = io.StringIO(); claim_stdout(); os.write(1, sys.stdout.getvalue().encode() + b'native')"
    assert done(code=code).stdout == "native"


def test_stdout_by_name_is_the_stdout_of_the_command(each: Each) -> None:
    """``-o /dev/stdout``, into a pipe and into a file."""
    command = ("solve", PAPER, "--notion", "drfh", "--json")
    for piped in (True, False):
        (printed,) = each((*command, "-o", "/dev/stdout"), piped=piped)
        assert [user["tasks"] for user in json.loads(printed)["users"]] == pytest.approx(ANSWER, abs=1e-4)


def test_a_link_to_stdout_is_stdout(tmp_path: Path, each: Each) -> None:
    """By any name, and whatever stdout is: a pipe or a file."""
    (tmp_path / "link.json").symlink_to("/dev/stdout")
    for name in ("link.json", "/proc/thread-self/fd/1", "/dev/../dev/stdout"):
        command = ("solve", PAPER, "--notion", "drfh", "--json", "-o", name)
        assert all("user-1" in printed for printed in each(command, piped=True, folder=tmp_path))
        assert all("user-1" in printed for printed in each((*command, "--force"), folder=tmp_path))


def test_a_command_without_stdout_writes_nothing(tmp_path: Path) -> None:
    """``>&-``: it is refused, before a file is opened that would get descriptor 1 and, with it, what libraries print."""
    script = f'exec "{sys.executable}" -c "$0" "$@" >&-'
    output = tmp_path / "answer.json"
    arguments = ("solve", str(PAPER), "--notion", "drfh", "-o", str(output))
    found = subprocess.run(["sh", "-c", script, NOISY + MAIN, *arguments], check=False, capture_output=True, text=True)
    assert (found.returncode, found.stdout, output.exists()) == (2, "", False)
    assert found.stderr.startswith("error: stdout is closed")


# stderr --------------------------------------------------------------------------------------------------------------------------

QUIET = (
    "import logging, warnings; from fairopt.processes.streams import quiet_libraries; quiet_libraries(own='.*_[0-9a-f]{8}'); "
    "warnings.warn_explicit('of a library', UserWarning, 'library.py', 1, module='library'); "
    "warnings.warn_explicit('of a notion', RuntimeWarning, 'mine.py', 2, module='mine_0123abcd'); "
    "logging.getLogger('matplotlib').warning('of matplotlib'); logging.getLogger('fairopt.solving').warning('of fairopt')"
)


def test_libraries_are_quiet() -> None:
    """A warning in the user's own file is shown, and what fairopt says."""
    assert done(code=QUIET).stderr == "mine.py:2: RuntimeWarning: of a notion\nof fairopt\n"


def test_warnings_that_are_asked_for_are_shown() -> None:
    """By ``python -W``."""
    found = subprocess.run([sys.executable, "-W", "default", "-c", QUIET], capture_output=True, text=True, check=True)
    assert "library.py:1: UserWarning: of a library\n" in found.stderr


def test_a_picture_where_no_folder_can_be_written_is_drawn_without_a_word(tmp_path: Path) -> None:
    """matplotlib would warn that it has nowhere to keep its fonts."""
    environment = os.environ | {"HOME": "/proc/none", "XDG_CONFIG_HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "MPLCONFIGDIR": ""}
    found = done("solve", PAPER, "--notion", "drfh", "--json", "--plot", tmp_path / "a.svg", env=environment)
    assert (json.loads(found.stdout)["notion"], found.stderr) == ("drfh", "")
    assert (tmp_path / "a.svg").exists()


def test_a_warning_in_a_file_of_the_user_is_shown(tmp_path: Path) -> None:
    """It is about the user's own code."""
    (tmp_path / "mine.py").write_text(
        "import warnings\nimport fairopt as fo\n\n\nclass Mine(fo.NOTIONS['drfh']):\n    name = 'mine'\n\n"
        "    def formulate(self, instance, **options):\n        warnings.warn('look here', RuntimeWarning)\n"
        "        return super().formulate(instance, **options)\n"
    )
    found = done("solve", PAPER, "--notion", "mine.py:Mine", "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["users"]
    assert found.stderr == "warning: look here (RuntimeWarning, mine.py, line 9)\n"


def test_threads_leave_the_filters_of_warnings_as_they_were() -> None:
    """Two calls overlap, and the one that came first leaves first: no warning until both have left, and then as before."""
    before = list(warnings.filters)
    first, second = unwarned(), unwarned()
    with ExitStack() as stack:
        first.__enter__()
        stack.enter_context(second)
        first.__exit__(None, None, None)
        with warnings.catch_warnings(record=True) as heard:
            warnings.warn("of a library", RuntimeWarning, stacklevel=1)
        assert not heard
    assert list(warnings.filters) == before
