"""What is shipped: the packages, what importing them costs, and the layout that the project promises."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version
from support.environments import EXTRAS
from support.lower_bounds import constraints, requirements

import fairopt as fo

ROOT = Path(__file__).parents[2]
PUBLIC = {
    "BASELINES",
    "CRITERIA",
    "GENERATORS",
    "NOTIONS",
    "PLACEMENTS",
    "SOLVERS",
    "Allocation",
    "Arrivals",
    "Audit",
    "Certificate",
    "CertificateError",
    "Comparison",
    "Explanation",
    "FairoptError",
    "Import",
    "Frontier",
    "History",
    "Instance",
    "InvalidInstance",
    "JobLog",
    "Level",
    "Limit",
    "NoSolution",
    "Notion",
    "Plan",
    "PriorityExplanation",
    "Program",
    "Property",
    "Queue",
    "Quota",
    "Regret",
    "Report",
    "Rule",
    "ShareNotion",
    "SideBySide",
    "Simulation",
    "SolverUnavailable",
    "StudyTable",
    "Trace",
    "Unsupported",
    "worst_case",
    "WhatIf",
    "what_if",
    "WorstCase",
    "WorstCaseInBox",
    "arrivals",
    "audit",
    "compare",
    "compare_over_time",
    "edrf_rounds",
    "Export",
    "explain",
    "explain_priority",
    "export_kai",
    "export_kueue",
    "export_resourcequota",
    "export_slurm",
    "export_volcano",
    "export_yarn",
    "export_yunikorn",
    "formulate",
    "import_gavel",
    "import_google2011",
    "import_htcondor",
    "import_kubernetes",
    "import_openb",
    "import_pbs",
    "import_ray",
    "import_slurm",
    "import_swf",
    "import_yarn",
    "generate",
    "generate_trace",
    "frontier",
    "history",
    "load",
    "load_trace",
    "merge_studies",
    "period_bound",
    "plan",
    "precomputed_drf",
    "reading_limit",
    "regret",
    "report",
    "save",
    "schedule",
    "simulate",
    "solve",
    "study",
    "study_over_time",
    "study_table",
    "tasks",
    "to_cvxpy",
    "to_pyomo",
    "trace_gavel",
    "trace_google2011",
    "trace_swf",
}

in_repository = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="about the repository, and this is a copy of the tests")


def project() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def python(code: str, folder: Path) -> str:
    """Run code in a fresh interpreter, in a folder of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder).stdout.strip()


# Import --------------------------------------------------------------------------------------------------------------------------


def test_public_names_are_exactly_those_that_are_meant() -> None:
    """A name that becomes public by accident becomes a promise."""
    assert set(fo.__all__) == PUBLIC
    assert list(fo.__all__) == sorted(fo.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_names_are_documented(name: str) -> None:
    """Each is there; each class and function has a docstring of its own."""
    value = getattr(fo, name)
    assert isinstance(value, dict) or value.__doc__


def test_import_loads_no_solver_and_nothing_that_only_some_need(tmp_path: Path) -> None:
    """``import fairopt`` is what every script pays for."""
    heavy = [
        "highspy",
        "cvxpy",
        "pyomo",
        "numba",
        "joblib",
        "matplotlib",
        "pandas",
        "pydantic",
        "yaml",
        "typer",
        "pyarrow",
        "filelock",
        "distributed",
    ]
    assert python(f"import sys, fairopt; print(sorted(set({heavy}) & set(sys.modules)))", tmp_path) == "[]"


def test_only_fairopt_is_importable(tmp_path: Path) -> None:
    """The folders ``models`` and ``solvers`` are ``fairopt.models`` and ``fairopt.solvers``, and nothing else."""
    code = "from importlib.util import find_spec; print([find_spec(name) is not None for name in ('fairopt.models', 'models', 'solvers')])"
    assert python(code, tmp_path) == "[True, False, False]"


def test_version_is_that_of_the_package() -> None:
    """Said twice, so compared."""
    assert fo.__version__ == importlib.metadata.version("fairopt")


def test_types_are_shipped() -> None:
    """py.typed tells type checkers so."""
    assert fo.__file__ is not None
    assert (Path(fo.__file__).parent / "py.typed").is_file()


# Repository ----------------------------------------------------------------------------------------------------------------------


@in_repository
def test_packages_are_the_folders_on_disk() -> None:
    """The list in pyproject.toml is explicit."""
    setuptools = project()["tool"]["setuptools"]
    folders = [
        path.parent.relative_to(ROOT).parts for top in ("fairopt", "models", "solvers") for path in (ROOT / top).rglob("__init__.py")
    ]
    names = {".".join(parts if parts[0] == "fairopt" else ("fairopt", *parts)) for parts in folders}
    assert setuptools["packages"] == sorted(names)
    assert setuptools["package-dir"] == {"fairopt": "fairopt", "fairopt.models": "models", "fairopt.solvers": "solvers"}


@in_repository
@pytest.mark.parametrize("name", ["models", "solvers"])
def test_links_are_relative(name: str) -> None:
    """So that they hold wherever the repository is cloned."""
    link = ROOT / "fairopt" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"


@in_repository
def test_top_level_is_what_was_asked_for() -> None:
    """The folders of the architecture, the two commands, and what a newcomer looks for."""
    for folder in ("fairopt", "models", "solvers", "notebooks", "tests", "benchmarks", "examples"):
        assert (ROOT / folder).is_dir()
    for file in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "constraints.txt", ".ci/run"):
        assert (ROOT / file).is_file()
    assert os.access(ROOT / ".ci/run", os.X_OK)


@in_repository
def test_constraints_hold_versions_only_of_all_that_is_needed() -> None:
    """Name and version, no address; every requirement has one, so that two installations are the same."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!+]+", line) for line in lines)
    fixed = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines}
    data = project()["project"]
    for requirement in (*data["dependencies"], *data["optional-dependencies"]["dev"]):
        name = re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0]
        assert re.sub(r"[-_.]+", "-", name).lower() in fixed, requirement


@in_repository
@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_lower_bounds_are_exact_and_below_the_constraints(minor: int) -> None:
    """So that ``make test-oldest`` installs each as it is written, and users of constraints.txt have what pyproject.toml asks for."""
    bounds = dict(line.split("==") for line in constraints(requirements(), minor))
    names = [re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0] for requirement in project()["project"]["dependencies"]]
    assert set(names) <= bounds.keys()
    fixed = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert {name: bound for name, bound in bounds.items() if name in fixed and Version(fixed[name]) < Version(bound)} == {}


def test_lower_bounds_are_read_by_hand() -> None:
    """Extras and markers; whatever is not understood is refused, not left out."""
    some = ["a>=1.2", "a>=2.0.1; python_version>='3.13'", "b", "c[x]>=3"]
    assert constraints(some, minor=12) == ["a==1.2", "c==3"]
    assert constraints(some, minor=13) == ["a==2.0.1", "c==3"]
    for other in ("a<2", "a>=1,<2", "a==1", "a>=1; sys_platform=='linux'", "a>=1; python_version<'3.13'"):
        with pytest.raises(ValueError, match=r"NAME>=BOUND"):
            constraints([other])


@in_repository
def test_environments_have_all_extras_but_torch() -> None:
    """A new extra is tested with the newest and the oldest versions, too; ``cvxpy`` and ``pyomo`` are empty."""
    assert set(EXTRAS.split(",")) == project()["project"]["optional-dependencies"].keys() - {"torch", "cvxpy", "pyomo"}
