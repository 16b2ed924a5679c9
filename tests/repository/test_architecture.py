"""The direction of the house: a module imports only from rooms below its own, and no imports run in a circle.

What stands under ``if TYPE_CHECKING`` is for readers and type checkers, and does not count; imports inside functions do, and so do the
names behind a door that opens late (`fairopt.doors`).
"""

from __future__ import annotations

import ast
import graphlib
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import fairopt as fo
from fairopt import solvers

ROOT = Path(__file__).parents[2]
ROOMS = (  # of fairopt, from the lowest floor to the highest; each has a floor of its own
    *("doors", "wording", "errors", "validation", "registry", "processes", "files", "show", "results"),
    *("instance", "trace", "papers", "program", "tables", "formats", "certificate"),
    *("models", "solvers", "allocation", "solving", "scheduling", "generators", "specs"),
    *("analysis", "studies", "clusters", "slurm", "kubernetes", "simulation", "histories"),
    *("plots", "reproduction", "reporting", "commands", "cli", "__main__"),
)
SHARED = (
    "backend",
    "compiled",
    "licence_texts",
    "highs_options",
    "highs_model",
    "structure",
    "leximin",
    "active_sets",
)  # of fairopt.solvers, from the lowest floor
ENGINES = (
    "water_filling",
    "via_highs",
    "interior_point",
    "large",
    "via_cvxpy",
    "via_pyomo",
    "equilibrium",
    "trajectory",
    "filling",
    "rational",
)
ABOVE_THE_ENGINES = (
    "polishing",
    "choosing",
    "__init__",
)  # of fairopt.solvers, from the lowest floor: what knows every engine, and the door
MAY_USE_ACTIVE_SETS = {"interior_point"}
BUILDS_ON = {  # on their methods, not on the engines
    ("large", "interior_point"),
    *(("via_cvxpy", "via_highs"), ("via_pyomo", "via_highs")),  # the search of whole tasks
}
DOOR = "fairopt"  # the public door: it opens to every room, and only commands go through it
THROUGH_THE_DOOR = {"commands", "cli", "__main__"}
PACKAGES = {"models", "solvers"}
REGISTRIES = {
    *("fairopt.models", "fairopt.models.notion", "fairopt.models.share_notion", "fairopt.solvers", "fairopt.solvers.backend"),
    "fairopt.solvers.highs_model",  # no engine: arrays in, arrays out
    "fairopt.solvers.compiled",  # no engine: it runs steps, those of a simulation, too
}
ENGINE_PACKAGES = {"highspy", "cvxpy", "pyomo", "clarabel"}

if not (ROOT / "pyproject.toml").exists():
    pytest.skip("about the repository, and this is a copy of the tests", allow_module_level=True)


def module_of(path: Path) -> str:
    """Return the name by which a file is imported."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] != "fairopt":
        parts.insert(0, "fairopt")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    module_of(path): path
    for folder in ("fairopt", "models", "solvers")
    for path in sorted((ROOT / folder).glob("**/*.py"))
    if path.relative_to(ROOT).parts[:2] not in (("fairopt", "models"), ("fairopt", "solvers"))
}


def room(module: str) -> str:
    """Return the room of a module: fairopt.models.drf -> models, fairopt -> fairopt."""
    return module.split(".")[1] if "." in module else module


def part(module: str) -> str:
    """Return the part of ``solvers`` in which a module is: an engine, what engines share, or ``__init__``."""
    return [*module.split("."), "__init__"][2]


def is_door(tree: ast.AST) -> bool:
    """Say whether a module imports its names when they are asked for; it has them under ``if TYPE_CHECKING``, too."""
    return any(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__getattr__" for node in ast.iter_child_nodes(tree))


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield every module that is imported at run time, inside functions too."""
    door = is_door(tree)
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING") and not door:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            names = (f"{source}.{alias.name}" for alias in node.names)
            yield from (name if name in FILES or name[len(DOOR) + 1 :] in ROOMS else source for name in names)
        yield from imports(node)


@cache
def imported(source: str) -> frozenset[str]:
    """Return every module that a file imports at run time."""
    return frozenset(imports(ast.parse(source)))


def complaints(module: str, source: str) -> list[str]:
    """Return what is wrong with the imports of a module."""
    own = room(module)
    if module == DOOR:
        return []
    if own not in ROOMS:
        return [f"{module} has no floor: name its room in ROOMS"]
    return [f"{module} imports {target}: {why}" for target in sorted(imported(source)) if (why := complaint(module, target))]


def complaint(module: str, target: str) -> str:
    """Return what is wrong with one import, nothing if it is right."""
    own, there, top = room(module), room(target), target.split(".")[0]
    if target.startswith("."):
        return "imports are absolute"
    if top in PACKAGES:
        return f"it is called fairopt.{target}"
    if own != "solvers" and top in ENGINE_PACKAGES:
        return "only engines talk to solver packages"
    if own == "models" and target.startswith("scipy.optimize"):
        return "models declare, they do not solve"
    if target == DOOR:
        return "" if own in THROUGH_THE_DOOR else "only commands use the public door"
    if top != DOOR:
        return ""
    if there not in ROOMS:
        return "it has no floor"
    if there == own:
        return within_solvers(module, target) if own == "solvers" else ""
    if ROOMS.index(there) > ROOMS.index(own):
        return f"{there} is above {own}"
    if own == "solvers" and there == "models":
        return "engines know no notion"
    if there in PACKAGES and target not in REGISTRIES:
        return "notions and engines are reached through their registries"
    return ""


def within_solvers(module: str, target: str) -> str:
    """Return what is wrong with an import from one part of ``solvers`` to another."""
    own, there = part(module), part(target)
    if own in ABOVE_THE_ENGINES and there in ABOVE_THE_ENGINES:
        return "" if ABOVE_THE_ENGINES.index(there) <= ABOVE_THE_ENGINES.index(own) else f"{there} is above {own}"
    if own == there or own in ABOVE_THE_ENGINES:
        return ""
    if there in ABOVE_THE_ENGINES:
        return "the registry is above every engine"
    if there in ENGINES and ((own, there) not in BUILDS_ON or target.endswith(".engine")):
        return "an engine calls no engine"
    if there in ENGINES:
        return ""
    if own in SHARED and SHARED.index(there) > SHARED.index(own):
        return f"{there} is above {own}"
    if there == "active_sets" and own not in MAY_USE_ACTIVE_SETS:
        return "only interior_point builds on active_sets"
    return ""


def test_imports_point_down() -> None:
    """Every file, every import."""
    assert [wrong for module, path in FILES.items() for wrong in complaints(module, path.read_text())] == []


def test_no_imports_run_in_a_circle() -> None:
    """Module by module, inside rooms too; an import inside a function does not mend a circle."""
    graph = {module: imported(path.read_text()) & FILES.keys() - {module, DOOR} for module, path in FILES.items()}
    del graph[DOOR]
    list(graphlib.TopologicalSorter(graph).static_order())  # raises, and names the circle


def test_every_part_of_the_solvers_has_a_floor() -> None:
    """One folder or file an engine; what several engines share has a name of its own."""
    assert {part(module) for module in FILES if room(module) == "solvers"} == {*SHARED, *ENGINES, *ABOVE_THE_ENGINES}


def test_the_plan_names_every_room() -> None:
    """And no room that is not there."""
    assert {room(module) for module in FILES} - {DOOR} == set(ROOMS)


def test_no_module_has_the_name_of_a_public_function() -> None:
    """``fairopt.solve`` is a function; a module of that name would hide it, or be hidden."""
    functions = {name for name in fo.__all__ if inspect.isfunction(getattr(fo, name))}
    assert len(functions) > 20
    assert [module for module in FILES if module.rpartition(".")[2] in functions] == []
    assert [name for name in fo.__all__ if find_spec(f"fairopt.{name}")] == []


@pytest.mark.parametrize("package", [fo, solvers])
def test_all_that_a_door_names_is_behind_it(package: ModuleType) -> None:
    """What type checkers are told, what is public, and what is found when it is asked for."""
    tree = ast.parse(Path(str(package.__file__)).read_text())
    told = {alias.name: f"{node.module}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert is_door(tree)
    for name in package.__all__:
        assert getattr(package, name) is getattr(import_module(told[name]), name)


def test_what_is_shown_is_what_is_public() -> None:
    """``dir(fairopt)``, after every room has been imported."""
    assert dir(fo) == sorted([*fo.__all__, "__version__"])


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("fairopt.instance", "from fairopt.solving import solve", "fairopt.instance imports fairopt.solving: solving is above instance"),
        ("fairopt.instance", "from fairopt import program", "fairopt.instance imports fairopt.program: program is above instance"),
        ("fairopt.plots.style", "if True:\n    import fairopt.cli", "fairopt.plots.style imports fairopt.cli: cli is above plots"),
        (
            "fairopt.models.drf",
            "def f():\n    import fairopt.solvers",
            "fairopt.models.drf imports fairopt.solvers: solvers is above models",
        ),
        ("fairopt.program.x", "from fairopt.models import NOTIONS", "fairopt.program.x imports fairopt.models: models is above program"),
        ("fairopt.models.drf", "import highspy", "fairopt.models.drf imports highspy: only engines talk to solver packages"),
        ("fairopt.models.drf", "import scipy.optimize", "fairopt.models.drf imports scipy.optimize: models declare, they do not solve"),
        ("fairopt.solving", "import models", "fairopt.solving imports models: it is called fairopt.models"),
        ("fairopt.solving", "import fairopt", "fairopt.solving imports fairopt: only commands use the public door"),
        (
            "fairopt.solving",
            "from fairopt.models.drf import DRF",
            "fairopt.solving imports fairopt.models.drf: notions and engines are reached through their registries",
        ),
        (
            "fairopt.solvers.via_cvxpy",
            "from fairopt.solvers.via_highs.engine import HiGHS",
            "fairopt.solvers.via_cvxpy imports fairopt.solvers.via_highs.engine: an engine calls no engine",
        ),
        (
            "fairopt.solvers.large.groups",
            "from fairopt.solvers.interior_point.engine import InteriorPoint",
            "fairopt.solvers.large.groups imports fairopt.solvers.interior_point.engine: an engine calls no engine",
        ),
        (
            "fairopt.solvers.structure.pairs",
            "from fairopt.solvers.active_sets import problem",
            "fairopt.solvers.structure.pairs imports fairopt.solvers.active_sets.problem: active_sets is above structure",
        ),
        (
            "fairopt.solvers.trajectory.engine",
            "from fairopt.solvers.active_sets.polish import polish",
            "fairopt.solvers.trajectory.engine imports fairopt.solvers.active_sets.polish: only interior_point builds on active_sets",
        ),
        (
            "fairopt.solvers.equilibrium.engine",
            "def solve():\n    from fairopt.solvers.polishing import polishes",
            "fairopt.solvers.equilibrium.engine imports fairopt.solvers.polishing: the registry is above every engine",
        ),
        (
            "fairopt.generators",
            'if TYPE_CHECKING:\n    from fairopt.cli import main\n__getattr__ = door(__name__, {"cli": ["main"]})',
            "fairopt.generators imports fairopt.cli: cli is above generators",
        ),
        ("fairopt.plots", "from .instance import Instance", "fairopt.plots imports .instance: imports are absolute"),
        ("fairopt.cellar", "", "fairopt.cellar has no floor: name its room in ROOMS"),
    ],
)
def test_a_wrong_arrow_is_seen(module: str, source: str, expected: str) -> None:
    """The test above would not pass for want of eyes."""
    assert complaints(module, source) == [expected]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("fairopt.plots", "if TYPE_CHECKING:\n    from fairopt.reporting.page import Page"),
        ("fairopt.program.text", "from fairopt.instance import Instance"),
        ("fairopt.solving", "from fairopt.models import NOTIONS\nfrom fairopt.solvers.backend import Backend"),
        ("fairopt.models.drfh", "from fairopt.models.share_notion import ShareNotion"),
        ("fairopt.cli", "import fairopt as fo\nfrom fairopt.commands import options"),
        ("fairopt.solvers.interior_point.engine", "from fairopt.solvers.active_sets import problem"),
        ("fairopt.solvers.large.groups", "from fairopt.solvers.interior_point.levels import solve_levels"),
    ],
)
def test_a_right_arrow_is_let_through(module: str, source: str) -> None:
    """Down, within a package, or for type checkers only."""
    assert complaints(module, source) == []
