"""The tolerances that rooms share: in order, and each meaning has one definition."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fairopt.instance import tolerances

ROOT = Path(__file__).parents[2]
NAMES = set(tolerances.__all__)


def definitions(source: str) -> set[str]:
    """Return the constants of a module that are floats below 1, without the underscore."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    small = [
        node for node in nodes if isinstance(node.value, ast.Constant) and isinstance(node.value.value, float) and node.value.value < 1
    ]
    targets = [target for node in small for target in (node.targets if isinstance(node, ast.Assign) else [node.target])]
    return {target.id.lstrip("_") for target in targets if isinstance(target, ast.Name)}


def uses(source: str) -> set[str]:
    """Return the tolerances that a module imports."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports if node.module == "fairopt.instance.tolerances" for alias in node.names}


def sources() -> dict[str, str]:
    """Return every module of the core by its path."""
    rooms = ("instance", "program", "certificate", "solving", "allocation", "scheduling", "analysis", "simulation", "histories")
    folders = ("solvers", "models", *(f"fairopt/{room}" for room in rooms))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))}


@pytest.mark.skipif(not (ROOT / "solvers").is_dir(), reason="about the repository, and this is a copy of the tests")
def test_a_shared_tolerance_is_defined_once() -> None:
    """A room that needs another value gives it a name that says what it means there. Engines have settings of their own."""
    rooms = {path: source for path, source in sources().items() if path.startswith(("fairopt/", "models/"))}
    twice = {path: definitions(source) & NAMES for path, source in rooms.items()}
    assert {path: names for path, names in twice.items() if names and path != "fairopt/instance/tolerances.py"} == {}


@pytest.mark.skipif(not (ROOT / "solvers").is_dir(), reason="about the repository, and this is a copy of the tests")
def test_each_is_shared() -> None:
    """By three modules at least; what one or two need is theirs."""
    used = [name for source in sources().values() for name in uses(source)]
    assert {name for name in NAMES if used.count(name) < 3} == set()


def test_definitions_are_seen() -> None:
    """The first test is not about nothing."""
    assert definitions("_SAME = 1e-3\nA = 2.0\nC: float = 1e-9\nD = 'd'") == {"SAME", "C"}
    assert uses("from fairopt.instance.tolerances import FITS, SAME") == {"FITS", "SAME"}


def test_what_is_read_off_an_answer_is_coarser_than_the_answer() -> None:
    """A residual of 1e-8 must not make a whole number or a limit look missed, nor rounding make an answer look wrong."""
    t = tolerances
    assert t.ROUNDING < t.DIGITS < t.NOISE <= t.EXACT < t.SAME < t.FITS < t.CERTIFIED < t.REACHED < t.WRITTEN
    assert 1 + t.ROUNDING > 1 > 1 - t.ROUNDING  # larger than the rounding of one operation
    assert 0 < t.TINY**0.5 < t.ROUNDING  # a square root of it is a number, too
