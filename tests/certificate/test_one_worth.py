"""The proof of an alpha-fair optimum in blocks of users shows the residuals of the proof by pairs, of right and wrong answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate import one_worth as module
from fairopt.certificate.distance import proved_distance
from fairopt.program import AllPairs, AlphaFair, Solution

INSTANCE = fo.generate("uniform", users=40, servers=6, resources=3, weights=5, seed=1)
ANSWERS: dict[float, fo.Allocation] = {alpha: fo.solve(INSTANCE, "proportional", alpha=alpha) for alpha in (1.0, 2.0)}

Wrong = tuple[np.ndarray, np.ndarray]


def by_pairs(alpha: float, tasks: np.ndarray, prices: np.ndarray) -> fo.Certificate:
    """The same by the conditions of any alpha-fair goal, on the program of all pairs."""
    program = fo.formulate(INSTANCE, "proportional", alpha=alpha)
    of_limits = prices[program.limits.keys[:, 0], program.limits.keys[:, 1]]
    return certify(program, Solution(tasks[program.pair_users, program.pair_servers], prices=of_limits))


def in_tables(goal: AlphaFair, share: np.ndarray, tasks: np.ndarray, prices: np.ndarray) -> fo.Certificate:
    """The proof in blocks of users."""
    program = AllPairs.of(INSTANCE, share, goal, "proportional", "")
    return certify(program, Solution(tasks.ravel(), prices=prices.ravel()))


def moved(tasks: np.ndarray) -> np.ndarray:
    """A user's tasks on the next server, which is not among its cheapest, and too full by them."""
    other = tasks.copy()
    other[3] = np.roll(other[3], 1)
    return other


CHANGES: dict[str, Callable[[np.ndarray, np.ndarray], Wrong]] = {
    "right": lambda x, p: (x, p),
    "prices in another unit": lambda x, p: (x, 17 * p),
    "too few tasks": lambda x, p: (x * (1 - 1e-6), p),
    "too many tasks": lambda x, p: (x * (1 + 1e-6), p),
    "a user has less": lambda x, p: (np.where(np.arange(40)[:, None] == 7, 0.99 * x, x), p),
    "other servers": lambda x, p: (moved(x), p),
    "other prices": lambda x, p: (x, p * np.linspace(1, 1.01, p.size).reshape(p.shape)),
    "the same prices everywhere": lambda x, p: (x, np.ones_like(p)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("alpha", "block"), [(1.0, 1), (1.0, 50), (2.0, 10_000)])
def test_the_residuals_are_those_of_the_proof_by_pairs(change: str, alpha: float, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the answer, and whatever the size of a block; of two bounds on the total the simpler one is taken, which is no smaller."""
    monkeypatch.setattr(module, "_BLOCK", block)
    prices = ANSWERS[alpha].prices
    assert prices is not None
    answer = CHANGES[change](ANSWERS[alpha].tasks, prices)
    here = in_tables(AlphaFair(alpha, INSTANCE.weights), np.ones(40), *answer)
    there = by_pairs(alpha, *answer)
    assert (here.worst > 1e-9) == (change not in ("right", "prices in another unit"))
    assert here.feasibility == pytest.approx(max(there.feasibility, 0.0), abs=1e-13)
    assert here.fairness == pytest.approx(there.fairness, rel=1e-6, abs=1e-12)
    assert here.optimality >= there.optimality - 1e-12
    lacks = here.optimality / (1 - here.optimality) + here.feasibility
    goal, held = AlphaFair(alpha, INSTANCE.weights), answer[0].sum(axis=1)
    assert here.distance == pytest.approx(proved_distance(goal, goal.weights, held, lacks), rel=1e-9)


def test_a_worth_of_tasks_counts() -> None:
    """Tasks that are worth twice as much, and users of another weight for it, are the same goal."""
    share = np.linspace(1, 3, 40)
    prices = ANSWERS[2.0].prices
    assert prices is not None
    goal = AlphaFair(2.0, INSTANCE.weights * share)  # phi U^-2 times the worth of a task
    assert in_tables(goal, share, ANSWERS[2.0].tasks, prices).worst < 1e-9


def test_numbers_that_are_not_finite_prove_nothing() -> None:
    """Nor do no prices, and no tasks."""
    tasks, prices, goal = ANSWERS[1.0].tasks, ANSWERS[1.0].prices, AlphaFair(1.0, INSTANCE.weights)
    assert prices is not None
    for wrong in (
        (np.where(tasks == tasks.max(), np.nan, tasks), prices),
        (tasks, np.full_like(prices, np.inf)),
        (tasks, 0 * prices),
        (0 * tasks, prices),
    ):
        assert in_tables(goal, np.ones(40), *wrong).worst == np.inf


@pytest.mark.parametrize(("ratio", "least", "most"), [(1e3, 1e-13, 1e-7), (1e12, 1.0, 1.0)])
def test_a_doubt_is_a_part(ratio: float, least: float, most: float) -> None:
    """By demands alone: of a user who needs much of one resource, the cost hides a price of the other."""
    assert least <= module._hidden_part(np.array([[ratio, 1.0], [1.0, ratio]])) <= most
