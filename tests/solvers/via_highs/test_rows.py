"""A model that grows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.identical_servers import Totals
from fairopt.solvers.via_highs.integer_program import IntegerProgram
from fairopt.solvers.via_highs.rows import Rows, by_highs
from fairopt.solvers.via_highs.ruled_whole import solve_whole_ruled
from fairopt.solvers.via_highs.whole_tasks import LevelsOfTotals, solve_whole


def model_of_two() -> Rows:
    """2 a + b <= 5 and b <= 1.5, a whole and at most 3."""
    rows = Rows()
    a, b = rows.column(3.0, whole=True), rows.column(1.5)
    rows.row({a: 2.0, b: 1.0}, upper=5.0)
    return rows


def test_goal() -> None:
    """Whole columns are whole, unless the model is relaxed."""
    rows = model_of_two()
    assert rows.model({0: 1.0, 1: 0.1}).run(60.0).x == pytest.approx([2.0, 1.0])
    assert rows.model({0: 1.0, 1: 0.1}, relaxed=True).run(60.0).x == pytest.approx([2.5, 0.0])


def test_a_copy_grows_alone() -> None:
    """By a block over columns in any order."""
    rows = model_of_two()
    copy = rows.copy()
    more = copy.columns(np.array([1.0, 1.0]))
    copy.block(sp.csr_array(np.array([[1.0, -1.0], [0.0, 1.0]])), np.array([more[1], 0]), np.array([0.0, 2.0]), np.inf)
    assert copy.model({1: 1.0, 0: 0.0}).run(60.0).x.size == 0  # a >= 2, and at most one column above it
    assert rows.model({1: 1.0}).run(60.0).x[1] == pytest.approx(1.5)


class Searched:
    """A model that counts its starts and searches with HiGHS."""

    starts: ClassVar[list[FloatArray]] = []

    def __init__(self, program: IntegerProgram) -> None:
        self.model = by_highs(program)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def guess(self, x: FloatArray) -> None:
        """Keep the start."""
        self.starts.append(x)


@pytest.mark.parametrize(("notion", "rules"), [("drfh", []), ("efficiency", []), ("efficiency", ["x[a] <= x[b] + 1"])], ids=str)
def test_a_start_is_computed_for_a_model_that_begins_with_one(notion: str, rules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS begins with none, and none is computed for it; the tasks are the same."""
    pool = fo.Instance([[9, 18], [3, 7]], [[1, 4], [3, 1]], users=["a", "b"], rules=rules)
    program = fo.formulate(pool, notion, integral=True)
    find = solve_whole_ruled if rules else solve_whole
    Searched.starts.clear()
    guided = find(program, Deadline(None), Searched)
    assert Searched.starts
    monkeypatch.setattr(Totals, "gathered", _needless)
    monkeypatch.setattr(LevelsOfTotals, "_start", _needless)
    alone = find(program, Deadline(None))
    assert alone.gap == guided.gap == 0.0
    assert sorted(np.bincount(program.pair_users, alone.x)) == pytest.approx(sorted(np.bincount(program.pair_users, guided.x)))


def _needless(*_: Any) -> FloatArray:
    raise AssertionError("a start that nobody takes is computed")
