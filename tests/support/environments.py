"""Run the tests with the newest or the oldest versions of the dependencies, in environments of their own under ``build``.

    python tests/support/environments.py newest                    # no constraints, on every Python from 3.11 to 3.14 that is here
    python tests/support/environments.py newest --one tests/commands   # on the newest of them, these tests
    python tests/support/environments.py oldest                    # the lower bounds of pyproject.toml, on the oldest of them: 3.11

What follows the options goes to pytest. An environment is made anew on each run, because the newest versions change. It has all extras but
``torch``, which is large. What runs the tests has the versions of constraints.txt: another Hypothesis would draw other examples. The exit
status is 1 where a test fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.lower_bounds import constraints, requirements  # noqa: E402

__all__ = ["EXTRAS", "candidates", "pythons"]

MINORS = range(11, 15)
TOOLS = ("hypothesis", "pytest", "pytest-xdist")
EXTRAS = "dev,report,explore,tables,xarray,dask,ray,docs"
PYTEST = ("-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--numprocesses", "logical", "--maxprocesses", "8", "--dist", "worksteal")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}  # as make test


def candidates(minor: int) -> Iterator[str]:
    """Yield where a Python 3.``minor`` may be: this one, on the path, among those of pyenv, whose commands fail unless selected."""
    if sys.version_info.minor == minor:
        yield sys.executable
    for folder in os.get_exec_path():
        if found := shutil.which(f"python3.{minor}", path=folder):
            yield found
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from (str(path) for path in sorted(versions.glob(f"3.{minor}.*/bin/python3.{minor}"), reverse=True))


def pythons(minors: Sequence[int] = MINORS) -> dict[int, str]:
    """Return a Python that can make environments for each minor version that is here."""
    found = {}
    for minor in minors:
        for python in candidates(minor):
            if subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0:
                found[minor] = python
                break
    return found


def passes(which: str, minor: int, python: str, arguments: Sequence[str]) -> bool:
    """Make an environment and run the tests in it; return whether all pass."""
    folder = ROOT / "build" / f"{which}-3.{minor}"
    print(f"{which} versions on Python 3.{minor} ({python}), in {folder}", flush=True)
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    own = str(folder / "bin" / "python")
    install = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", f"{ROOT}[{EXTRAS}]"]
    bounds = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line.partition("==")[0] in TOOLS]
    bounds += constraints(requirements(), minor) if which == "oldest" else []
    (folder / "constraints.txt").write_text("\n".join(bounds) + "\n", encoding="utf-8")
    subprocess.run([*install, "--constraint", str(folder / "constraints.txt")], check=True)
    return subprocess.run([own, *PYTEST, *arguments], cwd=ROOT, env=os.environ | ONE_THREAD).returncode == 0


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="Run the tests with the newest or the oldest versions of the dependencies.")
    parser.add_argument("which", choices=("newest", "oldest"))
    parser.add_argument("--one", action="store_true", help="only on the newest Python; of the oldest versions there is one anyway")
    options, arguments = parser.parse_known_args()
    here = pythons()
    if not here:
        print("there is no Python from 3.11 to 3.14 that can make environments; install one, with venv", file=sys.stderr)
        return 2
    chosen = [min(here)] if options.which == "oldest" else [max(here)] if options.one else list(here)
    if options.which == "newest":
        missing = ", ".join(f"3.{minor}" for minor in MINORS if minor not in here)
        print(f"not on this machine: Python {missing}" if missing else "all versions of Python are here", flush=True)
    passed = [passes(options.which, minor, here[minor], arguments) for minor in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
