"""The one direction of the house: a file imports only from floors below its own.

What is under ``if TYPE_CHECKING`` is for readers and type checkers and does not count; imports inside functions do.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = {  # a name a line: branches merge
    8: (
        "__main__",
        "cli",
        "commands",
    ),
    7: (
        "arrivals",
        "grid",
        "report",
        "reporting",
        "reproduce",
        "study",
        "worst_case",
    ),
    6: (
        "audit",
        "compare",
        "explain",
        "explanation",
        "frontier",
        "imports",
        "local_search",
        "precomputed",
        "properties",
        "schedule_question",
        "schedule_trials",
        "simulate",
        "simulation",
        "simulation_trials",
        "trace_trials",
    ),
    5: (
        "arrival_curves",
        "comparison",
        "formats",
        "measures",
        "question",
        "regret",
        "schedule",
        "solve",
        "specs",
    ),
    4: (
        "allocation",
        "generators",
        "merging",
        "models",
        "solvers",
        "trace_generator",
    ),
    3: (
        "certificate",
        "completion",
        "conditions",
        "events",
        "level_proof",
        "papers",
        "plots",
        "small_instances",
        "trace",
        "trials",
    ),
    2: (
        "files",
        "filling",
        "goals",
        "instance",
        "limits",
        "own_limits",
        "parallelism",
        "program",
        "program_text",
        "validation",
    ),
    1: (
        "errors",
        "wording",
    ),
}
FLOOR = {room: floor for floor, rooms in FLOORS.items() for room in rooms}
NEIGHBOURS = {
    ("program", "instance"),
    ("program", "goals"),
    ("program", "limits"),
    ("program", "program_text"),
    ("program_text", "instance"),
    ("program_text", "goals"),
    ("program_text", "limits"),
    ("goals", "instance"),
    ("limits", "instance"),
    ("own_limits", "instance"),
    ("own_limits", "program"),
    ("parallelism", "instance"),
    ("filling", "instance"),
    ("schedule", "solve"),
    ("question", "measures"),
    ("question", "schedule"),
    ("question", "solve"),
    ("regret", "solve"),
    ("specs", "schedule"),
    ("specs", "solve"),
    ("arrivals", "grid"),
    ("audit", "properties"),
    ("comparison", "measures"),
    ("comparison", "regret"),
    ("explain", "explanation"),
    ("local_search", "schedule_question"),
    ("report", "reporting"),
    ("simulate", "simulation"),
    ("simulation_trials", "simulate"),
    ("completion", "trace"),
    ("plots", "completion"),
    ("study", "grid"),
    ("trace_trials", "imports"),
    ("trace_trials", "simulate"),
    ("trace_trials", "simulation"),
    ("instance", "validation"),
    ("certificate", "conditions"),
    ("certificate", "level_proof"),
    ("__main__", "cli"),
    ("cli", "commands"),
}  # on one floor, in this direction only
DOOR = "fairopt"  # the public door: it opens to every room, and only the top floor goes through it
PACKAGES = {"models", "solvers"}
REGISTRIES = {"fairopt.models", "fairopt.models.notion", "fairopt.solvers", "fairopt.solvers.backend"}
ENGINE_PACKAGES = {"highspy", "cvxpy", "pyomo", "clarabel"}
FILES = sorted(path for folder in ("fairopt", "models", "solvers") for path in (ROOT / folder).glob("**/*.py"))

if not (ROOT / "pyproject.toml").exists():
    pytest.skip("about the repository, and this is a copy of the tests", allow_module_level=True)


def room(module: str) -> str:
    """Return the room of a module: fairopt.models.drf -> models, fairopt -> fairopt."""
    return module.split(".")[1] if "." in module else module


def module_of(path: Path) -> str:
    """Return the name by which a file is imported."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] != "fairopt":
        parts.insert(0, "fairopt")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield every module that is imported at run time, inside functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            yield from (f"fairopt.{alias.name}" if source == DOOR and alias.name in FLOOR else source for alias in node.names)
        yield from imports(node)


def complaints(module: str, source: str) -> list[str]:
    """Return what is wrong with the imports of a module."""
    own = room(module)
    if module == DOOR:
        return []
    if own not in FLOOR:
        return [f"{module} has no floor: give it one in FLOORS"]
    wrong = []
    for target in sorted(set(imports(ast.parse(source)))):
        top, there = target.split(".")[0], room(target)
        if target.startswith("."):
            wrong.append(f"{module} imports {target}: imports are absolute")
        elif top in PACKAGES:
            wrong.append(f"{module} imports {target}: it is called fairopt.{target}")
        elif own != "solvers" and top in ENGINE_PACKAGES:
            wrong.append(f"{module} imports {target}: only engines talk to solver packages")
        elif own == "models" and target.startswith("scipy.optimize"):
            wrong.append(f"{module} imports {target}: models declare, they do not solve")
        elif target == DOOR and FLOOR[own] < max(FLOORS):
            wrong.append(f"{module} imports {target}: only the top floor uses the public door")
        elif top != "fairopt" or target == DOOR or there == own:
            continue
        elif there not in FLOOR:
            wrong.append(f"{module} imports {target}, which has no floor")
        elif FLOOR[there] >= FLOOR[own] and (own, there) not in NEIGHBOURS:
            wrong.append(f"{module} (floor {FLOOR[own]}) imports {target} (floor {FLOOR[there]})")
        elif there in PACKAGES and target not in REGISTRIES:
            wrong.append(f"{module} imports {target}: notions and engines are reached through their registries")
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    """Every file, every import."""
    assert complaints(module_of(path), path.read_text()) == []


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("fairopt.instance", "from fairopt.solve import solve", "fairopt.instance (floor 2) imports fairopt.solve (floor 5)"),
        ("fairopt.instance", "from fairopt import program", "fairopt.instance (floor 2) imports fairopt.program (floor 2)"),
        ("fairopt.models.drf", "def f():\n    import fairopt.solvers", "fairopt.models.drf (floor 4) imports fairopt.solvers (floor 4)"),
        ("fairopt.solvers.x", "from fairopt.models import NOTIONS", "fairopt.solvers.x (floor 4) imports fairopt.models (floor 4)"),
        ("fairopt.models.drf", "import highspy", "fairopt.models.drf imports highspy: only engines talk to solver packages"),
        ("fairopt.models.drf", "import scipy.optimize", "fairopt.models.drf imports scipy.optimize: models declare, they do not solve"),
        ("fairopt.solve", "import models", "fairopt.solve imports models: it is called fairopt.models"),
        ("fairopt.solve", "import fairopt", "fairopt.solve imports fairopt: only the top floor uses the public door"),
        (
            "fairopt.solve",
            "from fairopt.models.drf import DRF",
            "fairopt.solve imports fairopt.models.drf: notions and engines are reached through their registries",
        ),
        ("fairopt.plots", "from .instance import Instance", "fairopt.plots imports .instance: imports are absolute"),
        ("fairopt.cellar", "", "fairopt.cellar has no floor: give it one in FLOORS"),
    ],
)
def test_a_wrong_arrow_is_seen(module: str, source: str, complaint: str) -> None:
    """The test above would not pass for want of eyes."""
    found = complaints(module, source)
    assert len(found) == 1
    assert found[0].startswith(complaint)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("fairopt.plots", "if TYPE_CHECKING:\n    from fairopt.allocation import Allocation"),
        ("fairopt.program", "from fairopt.instance import Instance"),
        ("fairopt.solve", "from fairopt.models import NOTIONS\nfrom fairopt.solvers.backend import Backend"),
        ("fairopt.models.drfh", "from fairopt.models.notion import ShareNotion"),
        ("fairopt.cli", "import fairopt as fo\nfrom fairopt.commands import tables"),
    ],
)
def test_a_right_arrow_is_let_through(module: str, source: str) -> None:
    """Down, within a package, or for type checkers only."""
    assert complaints(module, source) == []
