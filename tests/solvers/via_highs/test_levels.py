"""Levels with caps: what Newton's method makes of programs that answer with little accuracy, by numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program import Leximin, Stage
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


def test_prices_alone_stop_a_user_who_has_more_than_its_free_pairs_give() -> None:
    """One job at a time on a fast server that has a price, and on a slow one that has none: half of each is more than the slow one gives.

    With just what the slow one gives, its limit on parallelism has a price too.
    """
    program = fo.formulate(fo.Instance([[1], [1]], [[1]], rates=[[2, 1]], parallelism=[1]), "drfh")
    problem = LevelProblem.of(program, program.goal_as(Leximin))
    fast = program.pair_servers == 0
    slow, most = (float(problem.own.caps(free)[0][0]) for free in (~fast, fast))
    prices = np.where(program.limits.of_servers & (program.limits.matrix @ fast > 0), 1.0, 0.0)
    for t, priced in (((slow + most) / 2, 1), (slow, 2)):
        caps = Caps.of(problem).lowered(program, np.ones(1, bool), prices, t)
        (stage,) = caps.stages(np.array([0]))
        assert stage.value == caps.level[0] == t
        assert stage.prices is not None
        assert np.count_nonzero(stage.prices) == priced
