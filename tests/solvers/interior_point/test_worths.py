"""The path of worths gives the answers of the path on tables, which goes by other variables, and of the KKT conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import AlphaFair, Program
from fairopt.solvers.alpha_fair.tables import solve_alpha_fair
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.worths import fits_worths, solve_worths
from fairopt.solvers.structure.arrays import NUMPY


def program_of(alpha: float, **changes: int) -> Program:
    """Some hundred users, servers of several resources."""
    options: dict[str, Any] = {"users": 150, "servers": 40, "resources": 3, "weights": 5} | changes
    instance = fo.generate("uniform", **options)
    return fo.formulate(instance, "proportional", alpha=alpha)


@pytest.mark.parametrize(("alpha", "seed"), [(0.7, 0), (1.0, 1), (1.0, 2), (2.0, 3), (2.5, 4)])
def test_both_paths_give_the_same_answer(alpha: float, seed: int) -> None:
    """Everybody's tasks are unique; the certificate is that of the program."""
    program = program_of(alpha, seed=seed)
    goal = program.goal
    assert isinstance(goal, AlphaFair)
    assert fits_worths(program)
    ours = solve_worths(program, goal, 1e-8, Deadline(None))
    theirs = solve_alpha_fair(program, goal, NUMPY, Deadline(None))
    assert ours is not None
    assert theirs is not None
    assert certify(program, ours).worst < 1e-9
    tasks, expected = (program.per_user(solution.x) for solution in (ours, theirs))
    np.testing.assert_allclose(tasks, expected, rtol=1e-7)


def test_pairs_need_not_all_be_eligible() -> None:
    """Half of them, as a table with a mask and as lists."""
    rng = np.random.default_rng(0)
    instance = fo.generate("uniform", users=200, servers=60, resources=2, seed=0)
    eligibility = rng.random((200, 60)) < 0.9
    eligibility[:20] &= rng.random((20, 60)) < 0.3
    for some in (eligibility, eligibility & (rng.random((200, 60)) < 0.5)):
        program = fo.formulate(instance.replace(eligibility=some), "proportional")
        assert isinstance(program.goal, AlphaFair)
        ours = solve_worths(program, program.goal, 1e-8, Deadline(None))
        assert ours is not None
        assert certify(program, ours).worst < 1e-9


def test_the_time_limit_holds() -> None:
    """No step without time."""
    program = program_of(1.0)
    assert isinstance(program.goal, AlphaFair)
    with pytest.raises(fo.NoSolution):
        solve_worths(program, program.goal, 1e-8, Deadline(1e-9))


def test_what_fits() -> None:
    """Many pairs, several limits a server, no limits on tasks, and an alpha not far from 1."""
    assert fits_worths(program_of(1.0))
    assert not fits_worths(program_of(10.0))
    assert not fits_worths(program_of(1.0, users=20))
    assert not fits_worths(program_of(1.0, resources=1))
    assert not fits_worths(fo.formulate(fo.generate("uniform", users=150, servers=40, resources=3), "drfh"))
    capped = fo.generate("uniform", users=150, servers=40, resources=3).replace(tasks=np.full(150, 10.0))
    assert not fits_worths(fo.formulate(capped, "proportional"))
