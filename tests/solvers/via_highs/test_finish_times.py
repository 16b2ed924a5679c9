"""Finish times by Newton's method on their levels."""

from __future__ import annotations

import numpy as np

import fairopt as fo
from fairopt.program import FinishTimes
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.finish_times import solve_finish_times


def test_two_users_worked_out_by_hand() -> None:
    """z = U / 4 of 8 cores, so z1 + z2 = 2, and z1 = z2 / (1 + z2) is the same level for who has waited: z2 is the root of 2."""
    cores = fo.Instance([[8]], [[1], [1]], users=["new", "late"])
    program = fo.formulate(cores, "finish-time", left=14400, elapsed=[0, 3600])
    assert isinstance(program.goal, FinishTimes)
    solution = solve_finish_times(program, program.goal, 1e-8, Deadline(None))
    late = 4 * np.sqrt(2)
    np.testing.assert_allclose(program.per_user(solution.x), [8 - late, late], rtol=1e-9)
