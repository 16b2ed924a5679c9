"""Levels by a Pyomo model, against levels worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Equalize, Leximin
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_pyomo import running
from fairopt.solvers.via_pyomo.levels import solve_levels


@pytest.mark.parametrize("equal", [False, True])
def test_levels(equal: bool) -> None:
    """A and B share a server of 12, C has one of 30 and 20 tasks: 6, 6, 20; as one equal level 6, 6, 6."""
    instance = fo.Instance([[12], [30]], [[1], [1], [1]], eligibility=[[1, 0], [1, 0], [0, 1]], tasks=[np.inf, np.inf, 20])
    program = fo.formulate(instance, "drfh", formulation="equalize" if equal else "leximin")
    assert isinstance(program.goal, Leximin | Equalize)
    found = solve_levels(program, program.goal, running.solver(None), 1e-8, Deadline(None))
    assert program.per_user(found.x) == pytest.approx([6, 6, 6] if equal else [6, 6, 20])
    assert len(found.stages) == found.programs_solved == (1 if equal else 2)
    assert certify(program, found).worst <= 1e-9
