"""The program of each notion, as mathematics, on one instance. The text is the test: read the change before you accept it.

After a deliberate change: ``python tests/models/test_golden.py`` writes the texts anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fairopt as fo

HERE = Path(__file__).parent / "golden"
INSTANCE = fo.Instance(
    [[9, 12, 100], [12, 12, 0]],
    [[1, 2, 10], [1, 2, 1], [1, 2, 0]],
    weights=[1, 1, 2],
    tasks=[np.inf, 4, np.inf],
    counts=[1, 2],
    users=["alice", "bob", "carol"],
    servers=["A", "B"],
    resources=["cpu", "memory", "bandwidth"],
)
PROGRAMS: dict[str, tuple[str, dict[str, object]]] = {
    "drfh": ("drfh", {}),
    "drfh-equalize": ("drfh", {"formulation": "equalize"}),
    "drfh-tdm": ("drfh", {"sharing": "tdm"}),
    "drfh-integral": ("drfh", {"integral": True}),
    "cdrf": ("cdrf", {}),
    "tsf": ("tsf", {}),
    "asset": ("asset", {}),
    "max-min": ("max-min", {"utility": [[1, 1], [2, 1], [3, 1]]}),
    "per-server-drf": ("per-server-drf", {}),
    "uniform": ("uniform", {}),
    "fds": ("fds", {"beta": 2, "lam": -1}),
    "gfj": ("gfj", {"beta": 0.5, "lam": 1}),
}


def text(name: str) -> str:
    """The program as it prints."""
    notion, options = PROGRAMS[name]
    return str(fo.formulate(INSTANCE, notion, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_program_prints_as_stored(name: str) -> None:
    """Same text as in golden/."""
    assert text(name) == (HERE / f"{name}.txt").read_text(encoding="utf-8")


def test_large_programs_are_cut_and_say_so() -> None:
    """Thirty lines a block, eight terms a sum; to_text() without arguments has them all."""
    program = fo.formulate(fo.Instance(np.ones((50, 1)), np.ones((40, 1))), "drfh")
    assert "... (42 more terms)" in str(program)
    assert "... and 10 more utilities" in str(program)
    assert "more" not in program.to_text()


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name in PROGRAMS:
        (HERE / f"{name}.txt").write_text(text(name), encoding="utf-8")
