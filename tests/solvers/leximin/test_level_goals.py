"""The loop over levels with other goals than the leximin, and what prices prove, with plain linear programs of SciPy's as its engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from reference.leximin import OneLevel

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Leximin, Program
from fairopt.solvers.leximin.levels import Course, Together, bound_of, exactly, rise, solve_levels


def plain_of(program: Program) -> OneLevel:
    """The engine: one linear program a step."""
    assert isinstance(program.goal, Leximin)
    return OneLevel(program, program.utilities / program.goal.weights[program.pair_users])


def pools() -> fo.Instance:
    """A and B share one server of 12, C has one of 30: each task takes 1."""
    return fo.Instance([[12], [30]], [[1], [1], [1]], eligibility=[[1, 0], [1, 0], [0, 1]], users=["A", "B", "C"])


def test_a_leximin() -> None:
    """A and B 6 each, C 30; the loop's prices are a proof."""
    program = fo.formulate(pools(), "max-min", utility=[[1, 1]] * 3)
    plain = plain_of(program)
    found = solve_levels(program, plain.per_level, plain, Together(np.ones(3, bool)), 1e-9)
    assert program.per_user(found.x) == pytest.approx([6, 6, 30])
    assert [stage.users.tolist() for stage in found.stages] == [[0, 1], [2]]
    assert certify(program, found).worst <= 1e-12


@dataclass(frozen=True)
class Rates:
    """Users rise at rates of their own, at others after the first level."""

    first: tuple[float, ...]
    later: tuple[float, ...]
    equal: bool = False
    now: float = 0.0  # t starts anew with each course

    def event(self, course: Course) -> tuple[float, np.ndarray]:
        """Never."""
        return np.inf, np.empty(0, np.int64)

    def begin(self) -> Course:
        """From 0."""
        return Course(np.ones(3, bool), np.zeros(3), np.array(self.first))

    def renew(self, course: Course, t: float) -> Course:
        """From where they are."""
        start = course.at(t)
        return Course(course.rising, start, np.where(course.rising, self.later, 0.0))


def test_rates_are_renewed_after_each_level() -> None:
    """A and B rise as 1 : 2 until their server is full, C at a rate of 0.5; then C goes on from where it is, at 7."""
    instance = fo.Instance([[12], [30]], [[1], [1], [1]], eligibility=[[1, 0], [1, 0], [0, 1]])
    program = fo.formulate(instance, "max-min", utility=[[1, 1]] * 3)
    plain = plain_of(program)
    found = solve_levels(program, plain.per_level, plain, Rates((1.0, 2.0, 0.5), (1.0, 1.0, 7.0)), 1e-9)
    # t = 4: A 4, B 8, C 2. Then C rises from 2 by 7 t: 28 = 7 t.
    assert program.per_user(found.x) == pytest.approx([4, 8, 30])
    assert [stage.value for stage in found.stages] == pytest.approx([4, 4])


def test_one_equal_level() -> None:
    """Everybody stops at the first level."""
    program = fo.formulate(pools(), "max-min", utility=[[1, 1]] * 3)
    plain = plain_of(program)
    found = solve_levels(program, plain.per_level, plain, Together(np.ones(3, bool), equal=True), 1e-9)
    assert program.per_user(found.x) == pytest.approx([6, 6, 6])
    assert [stage.users.tolist() for stage in found.stages] == [[0, 1, 2]]


def test_what_prices_allow() -> None:
    """q = (1, 2, 4), 20 spent: 20/7; with start (1, 0, 0) and rates (1, 2, 0) 19/5; with a cap of 1 on the last 16/3."""
    q, everybody = np.array([1.0, 2.0, 4.0]), np.ones(3, bool)
    together = Course.together(everybody)
    assert bound_of(together, q, 20.0) == pytest.approx(20 / 7)
    uneven = Course(np.array([True, True, False]), np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0, 0.0]))
    assert bound_of(uneven, q, 20.0) == pytest.approx(19 / 5)
    assert bound_of(together, q, 20.0, np.array([np.inf, np.inf, 1.0])) == pytest.approx(16 / 3)
    assert bound_of(together, q, 20.0, np.array([1.0, 1.0, 1.0])) == np.inf
    assert bound_of(together, np.zeros(3), 20.0) == np.inf


def test_how_far_one_can_rise() -> None:
    """sigma gap / weight, with sigma = 7 and a gap of 0.1; who pays nothing may rise for ever."""
    assert rise(np.array([1.0, 2.0, 4.0]), 0.1) == pytest.approx([0.7, 0.35, 0.175])
    assert rise(np.array([0.0, 1.0]), 0.1)[0] == np.inf


def test_settled_users_owe_what_they_have() -> None:
    """Of users at 1 and 2 who have 0.9 and 2.1 the first owes 0.9; who rises owes what it did."""
    course = Course.together(np.ones(3, bool)).settled(np.array([0, 1]), np.array([1.0, 2.0]))
    lowered = course.lowered(np.array([0.9, 2.1, 0.0]))
    assert lowered.start.tolist() == [0.9, 2.0, 0.0]
    assert lowered.rate.tolist() == [0.0, 0.0, 1.0]
    assert course.lowered(np.array([1.0, 2.0, 0.0])) is course


def test_everybody_has_exactly_its_level() -> None:
    """Tasks are scaled user by user."""
    program = fo.formulate(pools(), "max-min", utility=[[1, 1]] * 3)
    x = exactly(program, program.utilities, np.array([3.0, 4.0, 0.0]), np.array([6.0, 6.0, 0.0]))
    assert x.tolist() == [6.0, 6.0, 0.0]
