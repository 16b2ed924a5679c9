"""What numba compiled is kept on disk until its own file changes, so a compiled file must read nothing from other files of ours."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from fairopt import solvers
from fairopt.program import events, filling
from fairopt.solvers.filling import event_state, queue_state
from fairopt.solvers.filling import state as filling_state

FOLDER = Path(solvers.__file__).parent
COMPILED = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.py") if "@njit" in path.read_text())
ORIGINALS = {  # by name, as compiled files write them once more
    **{name: getattr(filling, name) for name in ("FITS", "TIE")},
    **{member.name: int(member) for enum in (filling.Kind, filling.Measure, filling.Rule, events.Change) for member in enum},
    **{name: getattr(filling_state, name) for name in ("ROUND_AT", "ROUND_LENGTH", "BLOCKED_BY")},
    **{name: getattr(queue_state, name) for name in ("CHANGED", "LEVEL")},
    **{name: getattr(event_state, name) for name in ("EVENT", "RUNNING", "STARTED", "IN_LINE", "IN_POOL", "FREED")},
}


def foreign(source: str) -> set[str]:
    """Return the names that the functions of a file read and that it imports from fairopt."""
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairopt")
        for alias in node.names
    }
    values = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.Assign)]
    return imported & {node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name)}


def test_they_are_found() -> None:
    """The two tests below are not about nothing."""
    assert {"filling/arrival_kernel", "filling/kernel", "equilibrium/kernel"} <= set(COMPILED)
    assert foreign("from fairopt.program.filling import FITS\ndef f():\n    return FITS") == {"FITS"}
    assert foreign("from fairopt.program.filling import Rule\nFIRST = int(Rule.FIRST)") == {"Rule"}


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_file_stands_alone(name: str) -> None:
    """Neither functions nor numbers of others: a change there would not be seen, and the results would be wrong."""
    assert foreign((FOLDER / f"{name}.py").read_text()) == set()


@pytest.mark.parametrize("name", COMPILED)
def test_numbers_written_once_more_are_those_of_their_files(name: str) -> None:
    """Of limits of rounding, rules, measures, changes, and places in arrays."""
    module = vars(importlib.import_module(f"fairopt.solvers.{name.replace('/', '.')}"))
    own = {key: value for key, value in module.items() if key.isupper() and not key.startswith("_")}
    assert own == {key: ORIGINALS[key] for key in own}
