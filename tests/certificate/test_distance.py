"""How far what users have can be from the optimum at most: never less than it is, and small where the answer is good."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from instances import degenerate_instance, instance_of_everything

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate.distance import proved_distance
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.backend import Deadline

solve: Any = fo.solve  # options by name, and answers in fractions
POOL: Any = fo.Instance([[4, 6]], [[1, 1], [1, 3]])
GOALS: list[tuple[str, dict[str, Any]]] = [
    ("proportional", {}),
    ("proportional", {"alpha": 0.3}),
    ("proportional", {"alpha": 5.0}),
    ("fds", {"beta": 0.5}),
    ("gfj", {"beta": 2.0, "lam": -3.0}),
]


def solved(instance: fo.Instance, notion: str, **options: Any) -> tuple[Program, Solution]:
    """A program and the engine's solution."""
    program = fo.formulate(instance, notion, **options)
    return program, fo.SOLVERS["interior-point"]().solve(program, tolerance=1e-8, deadline=Deadline(None))


def test_by_hand() -> None:
    """Two users with half of the worth each; r - log(1 + r) and -r - log(1 - r) are above the gap over a half."""
    for alpha in (0.5, 1.0, 3.0):
        goal = AlphaFair(alpha, np.ones(2))
        for gap in (1e-12, 1e-6, 1e-3):
            r = proved_distance(goal, goal.weights, np.ones(2), gap)
            for rho in (1 + r, 1 - r):
                d = rho - 1 - (np.log(rho) if alpha == 1 else (rho ** (1 - alpha) - 1) / (1 - alpha))
                assert 2 * gap <= d * (1 + 1e-6) + 1e-15
                assert d <= 2 * gap * (1 + 30 * r) + 1e-14  # and no more than needed
    goal = AlphaFair(1.0, np.ones(2))
    assert proved_distance(goal, goal.weights, np.array([1.0, 0.0]), 0.0) == np.inf
    assert proved_distance(goal, goal.weights, np.ones(2), 1.0) == np.inf
    assert proved_distance(goal, goal.weights, np.ones(2), np.inf) == np.inf
    assert proved_distance(goal, np.empty(0), np.empty(0), 0.0) == 0


@pytest.mark.parametrize(("notion", "options"), GOALS)
def test_it_is_never_less_than_it_is(notion: str, options: dict[str, Any]) -> None:
    """Any feasible allocation and any prices: the optimum is not farther than proved."""
    proved = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        instance = instance_of_everything(seed) if seed % 2 else degenerate_instance(seed)[1]
        program, optimum = solved(instance, notion, **options)
        best = program.per_user(program.utilities * optimum.x)
        assert optimum.prices is not None
        for size in (1e-8, 1e-5, 1e-2):
            x = optimum.x * (1 - size * rng.random(optimum.x.size))
            near = replace(optimum, x=x, prices=optimum.prices * (1 + size * rng.normal(size=optimum.prices.size)).clip(0))
            distance = certify(program, near).distance
            assert distance is not None
            level = program.per_user(program.utilities * x)
            some = level > 0
            assert (np.abs(best[some] / level[some] - 1) <= distance + 1e-9).all(), (seed, size)
            proved += distance < 0.1
    assert proved >= 2


def test_through_the_door() -> None:
    """A good answer proves nearly all that floats can; fractions prove what they are asked for; other goals say nothing."""
    allocation = solve(POOL, "proportional")
    assert 0 < allocation.certificate.distance <= 1e-6
    assert allocation.to_dict()["certificate"]["distance"] == allocation.certificate.distance
    assert "distance" in allocation.certificate.to_frame().index
    assert "each user" not in allocation.proof
    assert solve(POOL, "proportional", exact=True).certificate.distance == 0
    enclosed = solve(POOL, "proportional", alpha=3, exact=True, digits=20).certificate
    assert 0 < enclosed.distance == enclosed.fairness <= 1e-20
    for certificate in (solve(POOL, "drfh").certificate, solve(POOL, "drfh", exact=True).certificate):
        assert certificate.distance is None
        assert "distance" not in certificate.to_frame().index
    assert "distance" not in solve(POOL, "drfh").to_dict()["certificate"]


def test_what_is_not_proved_is_said() -> None:
    """At alpha = 10 a user with 1000 times the tasks of another has 1e-27 of all worth: no sum of floats shows what it has."""
    far = solve(fo.Instance([[1.0], [1000.0]], [[1.0], [1.0]], eligibility=[[True, False], [False, True]]), "proportional", alpha=10)
    assert far.certificate.worst <= 1e-12
    assert far.certificate.distance == np.inf
    assert far.to_dict()["certificate"]["distance"] is None
    assert far.proof.endswith("it does not prove the tasks of users with little of the total worth")
    some = solve(fo.Instance([[1.0], [10.0]], [[1.0], [1.0]], eligibility=[[True, False], [False, True]]), "proportional", alpha=10)
    assert 1e-4 < some.certificate.distance < 1
    assert f"the tasks of each user are proved to a relative {some.certificate.distance:.1e}" in some.proof
