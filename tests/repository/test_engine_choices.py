"""Which engine is taken follows what `benchmarks/choices.py` has measured; and what that benchmark concludes from its rows."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import pytest

import fairopt as fo

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="about the repository, and this is a copy of the tests")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The scripts, which import each other from their own folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return {name: importlib.import_module(name) for name in ("choices", "choice_cells", "choice_rows", "choice_pages")}


def test_the_default_takes_at_most_half_again_as_long_as_the_fastest_engine(modules: dict[str, Any]) -> None:
    """On every cell of the grid, by the times of the file: nothing is timed here, but each program is formulated and its engines chosen."""
    rows = modules["choice_rows"]
    cells = rows.by_cell(rows.read(FOLDER / "results" / "choices.csv"))
    assert set(cells) == set(modules["choice_cells"].grid())
    times = {cell.title: rows.times_the_best(found, cell.engines()) for cell, found in cells.items()}
    assert {title: ratio for title, ratio in times.items() if ratio is not None and ratio > modules["choice_pages"].LIMIT} == {}


def test_what_the_default_takes_is_a_sum_up_to_the_first_answer(modules: dict[str, Any]) -> None:
    """A refused answer costs its time; one that was stopped, or never measured, never ends."""
    rows = modules["choice_rows"]
    cell = modules["choice_cells"].Cell("leximin", 3, 2, 1)

    def of(*outcomes: tuple[str, str, float]) -> dict[str, Any]:
        return {engine: rows.Measured(cell, engine, outcome, seconds) for engine, outcome, seconds in outcomes}

    found = of(("a", "refused", 1.0), ("b", "answered", 2.0), ("c", "answered", 0.5), ("d", "stopped", 9.0))
    assert rows.fastest(found).engine == "c"
    assert rows.default_seconds(found, ["a", "b", "c"]) == 3.0
    assert rows.times_the_best(found, ["a", "b", "c"]) == 6.0
    assert rows.times_the_best(found, ["c", "d"]) == 1.0
    for order in (["d", "c"], ["a"], ["e", "c"]):
        assert math.isinf(rows.default_seconds(found, order))
    assert rows.times_the_best(of(("a", "refused", 1.0)), ["a"]) is None
    assert rows.times_the_best(of(("a", "answered", 0.05), ("cvxpy", "answered", 0.01)), ["a"]) == 1.0  # its import takes longer
    assert rows.times_the_best(of(("a", "answered", 1.0), ("cvxpy", "answered", 0.2)), ["a"]) == 5.0
    assert rows.times_the_best(of(("cvxpy", "answered", 0.01), ("a", "answered", 0.05)), ["cvxpy"]) == 1.0


def test_rows_are_read_as_they_were_written(modules: dict[str, Any], tmp_path: Path) -> None:
    """In the order of the grid."""
    rows, grid = modules["choice_rows"], modules["choice_cells"].grid()
    written = [rows.Measured(grid[k], "highs", "answered", 0.125) for k in (5, 0, 3)]
    rows.save(tmp_path / "rows.csv", written)
    assert rows.read(tmp_path / "rows.csv") == [written[1], written[2], written[0]]
    assert rows.read(tmp_path / "none.csv") == []


def test_who_was_stopped_on_three_cells_sits_out_larger_ones(modules: dict[str, Any]) -> None:
    """Unless it was the fastest somewhere; cells of other goals, and larger ones, say nothing."""
    Cell, Measured = modules["choice_cells"].Cell, modules["choice_rows"].Measured
    small = [Cell("total", users, 2, 1) for users in (3, 4, 5)]
    stopped = [Measured(cell, "cvxpy", "stopped", 1.0) for cell in small]
    out = modules["choices"].too_slow
    assert out(stopped, Cell("total", 9, 2, 1)) == {"cvxpy"}
    assert (
        out(stopped, Cell("leximin", 9, 2, 1)) == out(stopped, Cell("total", 4, 2, 1)) == out(stopped[:2], Cell("total", 9, 2, 1)) == set()
    )
    assert out([*stopped, Measured(Cell("total", 2, 2, 1), "cvxpy", "answered", 0.1)], Cell("total", 9, 2, 1)) == set()


def test_a_cell_is_drawn_again_from_its_numbers(modules: dict[str, Any]) -> None:
    """Each number does what it says."""
    Cell = modules["choice_cells"].Cell
    cell = Cell("leximin", 40, 6, 5, places=3, takes=0.4, caps="tasks", spread=6.0)
    drawn = cell.instance()
    assert drawn == cell.instance()
    assert set(drawn.eligibility.sum(axis=1)) == {1, 2, 3}
    assert 0.2 < (drawn.demands > 0).mean() < 0.7
    assert 0 < (drawn.tasks < float("inf")).sum() < 40
    assert 1e3 < drawn.weights.max() / drawn.weights.min() < 1e6
    assert Cell("leximin", 40, 6, 5, caps="parallelism").instance().parallelism.max() == 1
    assert set(modules["choice_cells"].GOALS) == {cell.goal for cell in modules["choice_cells"].grid()}


def test_an_engine_answers_refuses_or_cannot(modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process sends: that it starts, then the outcome."""
    choices, Cell = modules["choices"], modules["choice_cells"].Cell
    cell = Cell("leximin", 6, 3, 2)

    class Sender:
        def __init__(self) -> None:
            self.sent: list[tuple[str, float]] = []

        def send(self, what: tuple[str, float]) -> None:
            self.sent.append(what)

    def outcome(engine: str) -> str:
        sender = Sender()
        choices._solve(cell, engine, sender)
        (started, _), (said, seconds) = sender.sent
        assert started == choices.STARTED
        assert seconds >= 0
        return str(said)

    assert [outcome(engine) for engine in ("highs", "large")] == ["answered", "cannot"]

    def fails(*_: Any, **__: Any) -> None:
        raise fo.NoSolution("none", {})

    monkeypatch.setattr(choices.fo, "solve", fails)
    assert outcome("highs") == "refused"


def test_the_page_counts_cells_and_names_those_that_are_slow(modules: dict[str, Any], tmp_path: Path) -> None:
    """With a picture beside it."""
    Cell, Measured = modules["choice_cells"].Cell, modules["choice_rows"].Measured
    small, large = Cell("leximin", 10, 3, 2), Cell("leximin", 20, 3, 2)
    rows = [Measured(small, "highs", "answered", 0.01), Measured(small, "cvxpy", "stopped", 0.1)]
    rows += [Measured(large, "highs", "answered", 0.04), Measured(large, "interior-point", "answered", 0.02)]
    rows += [Measured(Cell("total", 10, 3, 2), "highs", "refused", 0.01)]
    modules["choice_pages"].render(rows, "This machine", tmp_path)
    page = (tmp_path / "engine_choices.md").read_text()
    assert "on 1 of 2 cells; the worst is 2.00. No engine has a certified answer to: total, 10 x 3 x 2." in page
    assert "| leximin | 2 | highs 1, interior-point 1 |  | 1.50 | 2.00 |" in page
    assert "| leximin, 20 x 3 x 2 | 2.00 | highs 0.04, interior-point 0.02 |" in page
    assert "</svg>" in (tmp_path / "engine_choices.svg").read_text()
