"""Take out of a notebook what changes at every run: outputs, counts, and the metadata of a machine.

``python notebooks/strip.py`` does all notebooks of this folder, ``python notebooks/strip.py FILE ...`` those that are named.
Cells keep their ids.
"""

import sys
from pathlib import Path

import nbformat

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def stripped(text: str) -> str:
    """Return the text of a notebook without what changes at every run."""
    notebook = nbformat.reads(text, as_version=4)
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nbformat.writes(notebook) + "\n"


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or sorted(Path(__file__).parent.glob("*.ipynb"))):
        before = path.read_text(encoding="utf-8")
        if (after := stripped(before)) != before:
            path.write_text(after, encoding="utf-8")
            print(f"stripped {path.name}")
