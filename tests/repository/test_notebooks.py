"""The notebooks run from top to bottom, and are kept without their outputs."""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PATIENCE = 600  # seconds for a cell, or for what it shows, on however slow a machine
stripped: Callable[[str], str] = runpy.run_path(str(FOLDER / "strip.py"))["stripped"]


def read(path: Path) -> nbformat.NotebookNode:
    """Read a notebook of format 4."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call, no-any-return]


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """One process for all notebooks: what they import takes some of them longer than what they compute."""
    # On a loaded machine threads of linear algebra wait for each other, ten times as long as they work.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(FOLDER), env=environment)
    yield manager
    manager.shutdown_kernel(now=True)
    manager.cleanup_resources()


def run(notebook: Any, kernel: KernelManager) -> None:
    """Run all cells of a notebook, which keep what they show."""
    client = NotebookClient(notebook, km=kernel, timeout=PATIENCE, startup_timeout=PATIENCE, iopub_timeout=PATIENCE)
    try:
        client.execute()
    finally:
        if client.kc is not None:
            client.kc.stop_channels()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_ends_with_a_figure(path: Path, kernel: KernelManager) -> None:
    """The last cell answers the notebook's question with a picture. It finds no name that an earlier notebook has left.

    Nor the seconds of plain Python after which a kernel is compiled: a user would run the notebook in a process of its own. What other
    tests have compiled is loaded at once.
    """
    notebook = read(path)
    afresh = "%reset -f\nfrom fairopt.solvers import compiled\ncompiled._spent.clear()\ncompiled.PATIENCE_IF_KEPT = 0.0\ndel compiled"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(afresh))  # type: ignore[no-untyped-call]
    run(notebook, kernel)
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    assert any("image/png" in output.get("data", {}) for output in last.outputs)


@pytest.mark.parametrize("before", ["", "%matplotlib inline", "import matplotlib.pyplot as plt"], ids=["bare", "inline", "pyplot"])
def test_a_picture_is_displayed_once(before: str, kernel: KernelManager) -> None:
    """As the value of a cell, whether pyplot is there or not; a semicolon hides it."""
    draw = "fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), 'drf').plot()"
    cells = [f"%reset -f\n{before}\nimport fairopt as fo", draw, f"{draw};"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])  # type: ignore[no-untyped-call]
    run(notebook, kernel)
    shown, hidden = ([each for each in cell.outputs if each.output_type != "stream"] for cell in notebook.cells[1:])  # matplotlib may warn
    (output,) = shown
    assert {"image/png", "image/svg+xml"} <= output.data.keys()
    assert hidden == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stripped(path: Path) -> None:
    """Outputs, counts and a machine's own metadata change at every run, and say nothing in a diff."""
    notebook = read(path)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert notebook.metadata.language_info == {"name": "python"}
    for cell in notebook.cells:
        assert cell.metadata == {}
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert path.read_text(encoding="utf-8") == stripped(path.read_text(encoding="utf-8")), f"run: make strip (it strips {path.name})"


def test_stripping_undoes_a_run() -> None:
    """What a run and an editor leave behind is taken out, and nothing else: cells keep their ids and their text."""
    clean = NOTEBOOKS[0].read_text(encoding="utf-8")
    notebook = read(NOTEBOOKS[0])
    notebook.metadata.kernelspec.display_name = "Python 3 (ipykernel)"
    notebook.metadata.language_info.version = "3.11.7"
    for cell in notebook.cells:
        cell.metadata.tags = ["mine"]
        if cell.cell_type == "code":
            cell.execution_count = 7
            cell.outputs = [nbformat.v4.new_output("stream", text="hello")]  # type: ignore[no-untyped-call]
    run = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    assert "hello" in run
    assert stripped(run) == clean


def test_there_are_notebooks() -> None:
    """An empty folder would pass the tests above."""
    assert NOTEBOOKS
