"""Every module of the engines that has mathematics of its own is tested directly, in the folder of tests that mirrors its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTHING_TO_COMPUTE = {  # module: why
    "compiled": "waits for the compiler; tests/solvers/test_compiled.py reads every compiled file",
    "via_highs.engine": "hands programs to the modules beside it; tests/conformance asks every engine",
    "active_sets.settings": "only numbers; the tests of its engine depend on them",
    "filling.settings": "only numbers; the tests of its engine depend on them",
    "interior_point.settings": "only numbers; the tests of its engine depend on them",
    "large.settings": "only numbers; the tests of its engine depend on them",
    "leximin.settings": "only numbers; the tests of its engine depend on them",
    "rational.settings": "only numbers; the tests of its engine depend on them",
    "structure.settings": "only numbers; the tests of its engine depend on them",
    "trajectory.settings": "only numbers; the tests of its engine depend on them",
    "trajectory.engine": "follows trajectory.central_path; tests/conformance asks every engine",
}

if not (ROOT / "pyproject.toml").exists():
    pytest.skip("about the repository, and this is a copy of the tests", allow_module_level=True)


def modules() -> list[str]:
    """Return the modules of ``solvers``, as ``via_highs.pareto``."""
    found = sorted((ROOT / "solvers").rglob("*.py"))
    return [".".join(path.relative_to(ROOT / "solvers").with_suffix("").parts) for path in found if path.name != "__init__.py"]


def imported(source: str) -> set[str]:
    """Return what a test file imports, by full names."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def imported_in(folder: Path) -> set[str]:
    """Return what the tests in a folder of their own import."""
    return set().union(*(imported(path.read_text()) for path in folder.glob("test_*.py")))


def missing() -> set[str]:
    """Return the modules that no test in the folder that mirrors theirs imports."""
    folders = {module: ROOT.joinpath("tests", "solvers", *module.split(".")[:-1]) for module in modules()}
    seen = {folder: imported_in(folder) for folder in set(folders.values())}
    return {module for module, folder in folders.items() if f"fairopt.solvers.{module}" not in seen[folder]}


def test_every_module_of_the_engines_is_tested_directly() -> None:
    """What a module computes is compared there with a plain linear program, fractions, loops or a number worked out by hand."""
    assert missing() - set(NOTHING_TO_COMPUTE) == set()


def test_a_module_without_a_test_is_seen() -> None:
    """The test above is not about nothing."""
    assert len(modules()) > 30
    assert imported("from fairopt.solvers.via_highs import pareto\nimport fairopt.cli") >= {
        "fairopt.solvers.via_highs.pareto",
        "fairopt.cli",
    }
    assert imported_in(ROOT / "tests" / "repository") & {"fairopt.solvers.via_highs.pareto"} == set()


def test_folders_of_tests_are_those_of_the_house() -> None:
    """A folder in tests mirrors one of fairopt, models or solvers, or is one of those that are about the whole."""
    about_the_whole = {"conformance", "reference", "repository", "support", "golden", "exports"}
    for folder in (path for path in (ROOT / "tests").rglob("*") if path.is_dir() and path.name != "__pycache__"):
        parts = folder.relative_to(ROOT / "tests").parts
        mirrored = ROOT.joinpath(*parts) if parts[0] in ("models", "solvers") else ROOT.joinpath("fairopt", *parts)
        assert about_the_whole & set(parts) or mirrored.is_dir(), folder
