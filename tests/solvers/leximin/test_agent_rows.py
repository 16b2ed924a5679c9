"""The linear program of one level of agents: the largest t, and what is relaxed where rounding leaves no point."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import solved
from fairopt.solvers.leximin.agent_rows import AgentRows


def two(begin: list[float], rate: list[float]) -> AgentRows:
    """Two agents with a column each, which share a limit of 1."""
    return AgentRows(sp.csr_array([[1.0, 1.0]]), np.ones(1), np.ones(2, bool), sp.csr_array(np.eye(2)), np.array(rate), np.array(begin))


def test_the_largest_level() -> None:
    """y1 >= 0.25, y2 >= 3 t, y1 + y2 <= 1: t = 0.25. A column that is closed stays at 0."""
    rows = two([0.25, 0.0], [0.0, 3.0])
    assert rows.solve(Deadline(None)).x == pytest.approx([0.25, 0.75, 0.25])
    assert rows.runs == 1
    rows.columns = np.array([True, False])
    assert rows.solve(Deadline(None)).x[-1] == pytest.approx(0)


@pytest.mark.parametrize(("beyond", "runs"), [(0.0, 1), (5e-10, 3), (5e-9, 4)])
def test_what_agents_begin_with_is_relaxed_where_there_is_no_point(beyond: float, runs: int) -> None:
    """y1 >= 1 + beyond does not fit into 1: by 1e-10 less, then by 1e-9, then by 1e-8, until it does."""
    rows = two([1.0 + beyond, 0.0], [0.0, 1.0])
    outcome = rows.solve(Deadline(None))
    assert (outcome.status, rows.runs) == (Status.OPTIMAL, runs)
    assert outcome.x == pytest.approx([1, 0, 0], abs=2e-8)


def test_a_program_without_a_solution_has_none() -> None:
    """By far more than rounding; and where nobody begins with anything, nothing can be relaxed."""
    rows = two([1.5, 0.0], [0.0, 1.0])
    outcome = rows.solve(Deadline(None))
    assert (outcome.status, rows.runs) == (Status.INFEASIBLE, 4)
    with pytest.raises(NoSolution, match="the program has no feasible point"):
        solved(outcome, Deadline(None), {})
    rows = two([0.0, 0.0], [1.0, 1.0])
    rows.upper = -np.ones(1)
    assert (rows.solve(Deadline(None)).status, rows.runs) == (Status.INFEASIBLE, 1)


def test_a_run_goes_on_from_a_basis() -> None:
    """The second of two equal programs needs no step."""
    first, second = two([0.25, 0.0], [1.0, 3.0]), two([0.25, 0.0], [1.0, 3.0])
    expected = first.solve(Deadline(None))
    found = second.solve(Deadline(None), first.model.basis)
    assert found.x == pytest.approx(expected.x)
    assert (second.runs, second.iterations) == (1, 0)
