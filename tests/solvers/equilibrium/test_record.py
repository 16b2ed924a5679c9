"""The record of the sweeps: a row for each, and one for the way to the answer."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Equilibrium
from fairopt.solvers.equilibrium import record as module
from fairopt.solvers.equilibrium.layout import Layout
from fairopt.solvers.equilibrium.record import Record
from fairopt.solvers.equilibrium.settings import SETTINGS


def layout() -> Layout:
    """Two users on one server."""
    program = fo.formulate(fo.Instance([[4.0, 4.0]], [[1.0, 0.5], [0.5, 1.0]]), "psdsf")
    assert isinstance(program.goal, Equilibrium)
    return Layout.of(program, program.goal)


def swept(record: Record, *points: list[float]) -> Record:
    """Add a sweep to each point; the change is the number of the sweep."""
    state = record.layout.empty()
    for number, x in enumerate(points, 1):
        state.go_to(record.layout, np.array(x))
        record.add(float(number), state)
    return record


def test_a_row_for_each_sweep_and_one_for_the_answer() -> None:
    """The last change is relative to the larger number of tasks of the user, before and after: (3 - 2) / 3."""
    record = swept(Record(layout()), [1.0, 1.0], [2.0, 2.0])
    state = record.layout.empty()
    state.go_to(record.layout, np.array([2.0, 2.0]))
    sweeps = record.finished(state, np.array([3.0, 2.0]), 1e-12)
    np.testing.assert_allclose(sweeps.changes, [1, 2, 1 / 3])
    np.testing.assert_array_equal(sweeps.violations, [np.nan, np.nan, 1e-12])
    np.testing.assert_array_equal(sweeps.tasks, [[1, 1], [2, 2], [3, 2]])
    assert sweeps.users == record.layout.program.users


def test_the_last_points_are_kept_and_forgotten() -> None:
    """Three before the present one, and none after the servers were moved."""
    record = swept(Record(layout()), *([float(k), 0.0] for k in range(1, 7)))
    assert [x[0] for x in record.recent] == [3, 4, 5, 6]
    state = record.layout.empty()
    record.forget_changes(state)
    assert [x.tolist() for x in record.recent] == [[0, 0]]


def test_a_long_record_keeps_the_first_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes of all sweeps; tasks as long as there is room."""
    monkeypatch.setattr(module, "SETTINGS", SETTINGS._replace(most_numbers=4))
    record = swept(Record(layout()), [1.0, 1.0], [2.0, 2.0], [3.0, 3.0])
    assert len(record.changes) == 3
    assert [row.tolist() for row in record.tasks] == [[1, 1], [2, 2]]
