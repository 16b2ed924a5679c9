"""Levels with caps: what Newton's method makes of programs that answer with little accuracy, by numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import Leximin, Program, Solution, Stage
from fairopt.solvers.leximin.levels import Course, Proof
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.levels import CappedLevels, Caps, Tried


class OneServer:
    """Programs of users of one server of size 1, whose level is what they have of it. What their prices prove is not exact."""

    def __init__(self, bound: float) -> None:
        self.proof = Proof(np.ones(1), np.ones(2), 1.0, bound)

    def narrow(self, course: Course, proof: Proof, t: float) -> None:
        """Stay as it is."""

    def first_guess(self, course: Course, caps: FloatArray) -> tuple[float, Proof | None]:
        """Guess what the prices say."""
        return self.proof.bound, self.proof

    def attempt(self, guess: float, course: Course, caps: FloatArray, stages: Sequence[Stage]) -> Tried:
        """Give all who rise the same part of what they want."""
        wanted = np.where(course.rising, np.minimum(guess, caps), 0.0)
        part = (1 - course.start.sum()) / wanted.sum()
        return Tried(course.start + part * wanted, None, part, guess, self.proof)


def of_two(bound: float, cap: float) -> CappedLevels:
    """Return the levels of two users on a server, of whom the first has a cap."""
    program = fo.formulate(fo.Instance([[1]], [[1], [1]]), "drfh")
    found = CappedLevels(OneServer(bound), LevelProblem.of(program, program.goal_as(Leximin)))
    found.caps = replace(found.caps, level=np.array([cap, np.inf]))
    return found


def test_a_user_is_settled_at_its_cap_only_where_it_has_it() -> None:
    """A guess of 1 with a cap of 0.1: both can have 10/11 of that, and prices of 2 do not say what is left to the second one."""
    levels, course = of_two(bound=2.0, cap=0.1), Course.together(np.ones(2, bool))
    for _ in range(4):
        step = levels.step(course, ())
        assert (step.x[step.at_cap] >= step.caps * (1 - 1e-15)).all()
        course = course.settled(step.at_cap, step.caps)
        if step.proof is not None:
            break
    assert course.start[0] == 0.1
    assert step.t == pytest.approx(0.9)


def test_nobody_is_settled_at_a_cap_above_the_level() -> None:
    """Prices allow a level of 0.4 where the users have 0.5, the cap of the first one: the level counts, and stops both."""
    levels = of_two(bound=0.4, cap=0.5)
    step = levels.step(Course.together(np.ones(2, bool)), ())
    assert step.proof is not None
    assert (step.t, step.at_cap.size) == (0.4, 0)


def stage_at_cap(instance: fo.Instance, x: list[float], prices: list[float]) -> tuple[Program, Solution, Stage, Stage]:
    """Return a program, its answer and the prices that stop the second of two users, and the stage that the caps give to the first."""
    program, answer = fo.formulate(instance, "drfh"), Solution(np.array(x))
    levels, number = program.per_user(answer.x * program.worth), len(program.limits)
    second = Stage(float(levels[1]), np.array([1]), np.pad(np.array(prices, float), (0, number - len(prices))))
    assert second.prices is not None
    caps = Caps.of(LevelProblem.of(program, program.goal_as(Leximin))).lowered(
        program, np.array([True, False]), second.prices, second.value
    )
    (first,) = caps.stages(np.array([0]))
    assert first.value == pytest.approx(levels[0], rel=1e-12)
    return program, answer, first, second


def worst(program: Program, answer: Solution, *stages: Stage) -> float:
    """Return the largest residual of an answer with these stages."""
    return certify(program, replace(answer, stages=stages)).worst


def test_prices_of_a_level_stop_a_user_who_has_more_than_its_free_pairs_give() -> None:
    """One job at a time on servers of rates 4, 2 and 1, of which the other user has no use for the last: both have 2.8 tasks.

    The prices 4, 1 and 0, and 2 of the limit on parallelism, stop both. A price of 1 of that limit would make the last server the cheapest.
    """
    instance = fo.Instance(
        [[1], [1], [4]], [[1], [1]], rates=[[4, 2, 1], [4, 1, 1]], eligibility=[[1, 1, 1], [1, 1, 0]], parallelism=[1, np.inf]
    )
    program, answer, first, second = stage_at_cap(instance, [1.6, 1.2, 0.0, 2.4, 0.4], [4, 1, 0, 2])
    assert program.limit_name(3) == "servers of user-1"
    assert first.prices is not None
    np.testing.assert_array_equal(first.prices, [4, 1, 0, 2])
    assert worst(program, answer, second, first) <= 1e-12
    assert worst(program, answer, second, replace(first, prices=np.array([4.0, 1.0, 0.0, 1.0]))) > 0.1


def test_a_price_of_its_own_limit_stops_a_user_who_has_what_its_free_pairs_give() -> None:
    """One job at a time on a server of rate 2, which the other user has as a whole at half the level, and on one of rate 1: one task."""
    instance = fo.Instance(
        [[1], [1]], [[1], [1]], rates=[[2, 1], [1, 1]], eligibility=[[1, 1], [1, 0]], parallelism=[1, np.inf], weights=[1, 2]
    )
    program, answer, first, second = stage_at_cap(instance, [0.0, 1.0, 1.0], [1, 0, 0])
    assert program.limit_name(2) == "servers of user-1"
    assert first.prices is not None
    np.testing.assert_array_equal(first.prices, [1, 0, 1])
    assert worst(program, answer, second, first) <= 1e-12
    assert worst(program, answer, second, replace(first, prices=second.prices)) > 0.1
