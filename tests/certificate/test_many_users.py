"""Among a million users, the rounding of sums proves nothing against the right answer, and 1e-7 of one user's share is found."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.water_filling import WaterFilling

ALLOWED = 1e-8


def one_server(users: int, tasks: str) -> Program:
    """One resource of one server, weights 1 to 8; all or two thirds of the users stop at one level."""
    rng = np.random.default_rng(users)
    limits = {"without limits": None, "limited": rng.uniform(0.001, 0.05, users)}[tasks]
    demands, weights = rng.uniform(0.1, 2, (users, 1)), rng.integers(1, 9, users).astype(float)
    return fo.formulate(fo.Instance([[0.01 * users]], demands, tasks=limits, weights=weights), "max-min")


def closed_form(program: Program) -> Solution:
    """The answer of water-filling, which needs no tolerance."""
    return WaterFilling().solve(program, tolerance=ALLOWED, deadline=Deadline(None))


def with_less(program: Program, answer: Solution, user: int, less: float) -> Solution:
    """The same answer with this part of one user's tasks taken away."""
    x = answer.x.copy()
    x[program.pair_users == user] *= 1 - less
    return dataclasses.replace(answer, x=x)


@pytest.mark.parametrize("tasks", ["without limits", "limited"])
@pytest.mark.parametrize("users", [100_000, 1_000_000])
def test_a_planted_shortfall_of_one_user_is_found(users: int, tasks: str) -> None:
    """And a surplus; of the user at the level that pays least, and is the hardest to find, of the first and the last there, and of one with
    all its tasks."""
    program = one_server(users, tasks)
    answer = closed_form(program)
    assert certify(program, answer).worst <= ALLOWED / 100

    settled = answer.stages[-1].users
    cheapest = settled[np.argmin(program.worth[settled] * answer.x[settled])]
    for user in (cheapest,) if users > 100_000 else (cheapest, settled[0], settled[-1]):
        assert not certify(program, with_less(program, answer, int(user), 1e-7)).worst <= ALLOWED
        assert not certify(program, with_less(program, answer, int(user), -1e-7)).worst <= ALLOWED
    if tasks == "limited":  # a user who has all its tasks, and now has not
        capped = np.setdiff1d(program.members, settled)[0]
        assert not certify(program, with_less(program, answer, int(capped), 1e-7)).worst <= ALLOWED


@pytest.mark.parametrize("notion", ["drfh", "drf", "tsf", "max-min"])
def test_the_default_answers_a_hundred_thousand(notion: str) -> None:
    """By the closed form; shares of users at the level are equal, to rounding, and the others have all their tasks."""
    users = 100_000
    rng = np.random.default_rng(1)
    tasks = rng.integers(1, 50, users).astype(float)
    instance = fo.Instance([[1e4]], rng.uniform(0.1, 2, (users, 1)), tasks=tasks, weights=rng.integers(1, 9, users).astype(float))
    found = fo.solve(instance, notion)
    assert found.solver == "water-filling"
    own = np.asarray(found.tasks_per_user)
    complete = own >= tasks * (1 - 1e-12)
    assert np.ptp(found.shares[~complete]) <= 1e-12 * found.shares.max()
    assert found.shares[complete].max(initial=0.0) <= found.shares.max() * (1 + 1e-12)
    assert own @ instance.demands[:, 0] == pytest.approx(1e4, rel=1e-12)
