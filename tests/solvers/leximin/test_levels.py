"""The bound of a level and whom it stops, against plain linear programs; and the loop, with those programs as its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from instances import instance_of_everything, uniform_instance
from reference.linear import largest
from scipy.optimize import linprog

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program import Leximin, Program, Stage
from fairopt.solvers.leximin.levels import Course, Proof, Step, Together, bound_of, could_rise, settle_below, solve_levels


def per_level_of(program: Program) -> FloatArray:
    """What a task on each pair adds to the level of its user."""
    assert isinstance(program.goal, Leximin)
    return program.utilities / program.goal.weights[program.pair_users]


def rows_of(program: Program, course: Course) -> tuple[FloatArray, FloatArray]:
    """Columns x and t: limits, and s[n] >= S[n] + rate[n] t."""
    own = np.zeros((len(program.users), program.n_pairs))
    own[program.pair_users, np.arange(program.n_pairs)] = per_level_of(program)
    rows = np.block([[program.limits.matrix.toarray(), np.zeros((len(program.limits), 1))], [-own, course.rate[:, None]]])
    return rows, np.append(program.limits.bounds, -course.start * (1 - 1e-11))


def proof_of(program: Program, course: Course, prices: FloatArray) -> Proof:
    """What prices of the limits prove: the cheapest price of a unit of level of each user, and all that is spent."""
    q = np.full(len(program.users), np.inf)
    np.minimum.at(q, program.pair_users, program.limits.matrix.T @ prices / per_level_of(program))
    return Proof.of(course, prices, np.where(np.isfinite(q), q, 0.0), float(prices @ program.limits.bounds))


def test_prices_of_0_prove_nothing() -> None:
    """They bound no level, and say of nobody how far it could rise."""
    program = fo.formulate(uniform_instance(4, 3, seed=0), "drfh")
    course = Course.together(np.arange(4) < 3)
    proof = proof_of(program, course, np.zeros(len(program.limits)))
    assert proof.bound == np.inf
    assert could_rise(course, np.float64(1.0), proof).tolist() == [np.inf] * 3


@pytest.mark.parametrize("seed", range(8))
def test_no_prices_prove_less_than_what_can_be_had(seed: int) -> None:
    """Any prices bound the level from above, also where some are settled; nobody rises further above it than they say."""
    rng = np.random.default_rng(seed)
    program = fo.formulate(uniform_instance(4, 3, seed=seed), "drfh")
    course, t = Course.together(np.ones(4, bool)), 0.0
    for settled in (0, 1):
        if settled:
            course = course.settled(np.array([0]), np.array([0.3 * t]))
        rows, bounds = rows_of(program, course)
        t = largest(np.append(np.zeros(program.n_pairs), 1.0), rows, bounds)
        proof = proof_of(program, course, rng.uniform(0.1, 1, len(program.limits)))
        assert proof.bound >= t * (1 - 1e-9)
        rises = could_rise(course, t, proof) * t
        for user, rise in zip(np.flatnonzero(course.rising), rises, strict=True):
            at_t = np.vstack([rows, np.append(np.zeros(program.n_pairs), -1.0)])
            level = largest(
                -rows[len(program.limits) + user] * np.append(np.ones(program.n_pairs), 0.0), at_t, np.append(bounds, -t * (1 - 1e-11))
            )
            assert level - t <= rise * (1 + 1e-6) + 1e-9


def test_caps_leave_more_to_the_others_by_hand() -> None:
    """Prices 1, 1 and 2 with caps 1, 3 and none, and 10 to spend: at t > 3 the others pay 4, so t = 3; with 20 it is 8."""
    course = Course.together(np.ones(3, bool))
    caps = np.array([1.0, 3.0, np.inf])
    assert bound_of(course, np.array([1.0, 1.0, 2.0]), 10.0, caps) == pytest.approx(3)
    assert bound_of(course, np.array([1.0, 1.0, 2.0]), 20.0, caps) == pytest.approx(8)
    assert bound_of(course, np.array([1.0, 1.0, 0.0]), 20.0, caps) == np.inf
    assert bound_of(course, np.array([1.0, 1.0, 2.0]), 12.0) == pytest.approx(3)


def test_a_course_says_who_has_what() -> None:
    """Settled users keep their levels, or what a point gives them where that is less."""
    course = Course(np.ones(3, bool), np.zeros(3), np.array([1.0, 2.0, 3.0])).settled(np.array([1]), np.array([5.0]))
    assert course.at(4.0).tolist() == [4, 5, 12]
    assert course.lowered(np.array([0.0, 4.5, 0.0])).at(4.0).tolist() == [4, 4.5, 12]
    assert course.lowered(np.array([9.0, 6.0, 9.0])) is course


class ByScipy:
    """An engine of plain linear programs, with SciPy's multipliers as prices."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """One program."""
        rows, bounds = rows_of(self.program, course)
        found: Any = linprog(np.append(np.zeros(self.program.n_pairs), -1.0), A_ub=rows, b_ub=bounds, method="highs")
        prices = -found.ineqlin.marginals[: len(self.program.limits)]
        x = np.asarray(found.x[:-1])
        return Step(x, None, float(found.x[-1]), proof_of(self.program, course, np.maximum(prices, 0.0)))


@pytest.mark.parametrize("seed", range(8))
def test_the_loop_finds_the_leximin(seed: int) -> None:
    """Level by level, with any engine."""
    program = fo.formulate(instance_of_everything(seed).replace(tasks=None), "drfh")
    if not program.n_pairs:
        return
    members = program.per_user(program.largest()) > 0
    solution = solve_levels(program, per_level_of(program), ByScipy(program), Together(members), settle_below(1e-6))
    expected = fo.solve(instance_of_everything(seed).replace(tasks=None), "drfh").tasks_per_user
    np.testing.assert_allclose(program.per_user(solution.x), expected, rtol=1e-5, atol=1e-9)
    assert sorted(n for stage in solution.stages for n in stage.users.tolist()) == np.flatnonzero(members).tolist()
