"""The proof of one level in blocks of users shows the residuals of the proof by pairs, of right and wrong answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import Certificate, certify
from fairopt.certificate import one_level as module
from fairopt.program import AllPairs, Leximin, Solution, Stage

INSTANCE = fo.generate("uniform", users=40, servers=6, resources=3, weights=5, seed=1)
ANSWER = fo.solve(INSTANCE, "drfh")
SHARE = (INSTANCE.demands / INSTANCE.total_capacity).max(axis=1)
TABLES = AllPairs.of(INSTANCE, SHARE, Leximin(INSTANCE.weights), "drfh", "")
LEVEL = ANSWER.levels[0].value
PRICES = np.asarray(ANSWER.levels[0].prices)

Wrong = tuple[np.ndarray, float, np.ndarray]


def by_pairs(tasks: np.ndarray, value: float, prices: np.ndarray) -> fo.Certificate:
    """The same by the proof of any leximin, on the program of all pairs."""
    program = fo.formulate(INSTANCE, "drfh")
    of_limits = prices[program.limits.keys[:, 0], program.limits.keys[:, 1]]
    x = tasks[program.pair_users, program.pair_servers]
    return certify(program, Solution(x, (Stage(value, np.arange(INSTANCE.n_users), of_limits),)))


def in_tables(tasks: np.ndarray, value: float, prices: np.ndarray) -> Certificate:
    """The proof in blocks of users."""
    return certify(TABLES, Solution(tasks.ravel(), (Stage(value, np.arange(INSTANCE.n_users), prices.ravel()),)))


def moved(tasks: np.ndarray) -> np.ndarray:
    """A user's tasks on the next server, which is not among its cheapest, and too full by them."""
    other = tasks.copy()
    other[3] = np.roll(other[3], 1)
    return other


ANSWERS: dict[str, Callable[[np.ndarray, np.ndarray], Wrong]] = {
    "right": lambda x, p: (x, LEVEL, p),
    "too few tasks": lambda x, p: (x * (1 - 1e-6), LEVEL * (1 - 1e-6), p),
    "too many tasks": lambda x, p: (x * (1 + 1e-6), LEVEL * (1 + 1e-6), p),
    "another level is told": lambda x, p: (x, LEVEL * 1.001, p),
    "a user has less": lambda x, p: (np.where(np.arange(40)[:, None] == 7, 0.99 * x, x), LEVEL, p),
    "other servers": lambda x, p: (moved(x), LEVEL, p),
    "a negative number": lambda x, p: (np.where(x == 0, -1e-9, x), LEVEL, p),
    "other prices": lambda x, p: (x, LEVEL, p * np.linspace(1, 1.01, p.size).reshape(p.shape)),
    "the same prices everywhere": lambda x, p: (x, LEVEL, np.ones_like(p)),
    "no prices": lambda x, p: (x, LEVEL, 0 * p),
}


@pytest.mark.parametrize("wrong", ANSWERS)
@pytest.mark.parametrize("block", [1, 50, 10_000])
def test_the_residuals_are_those_of_the_proof_by_pairs(wrong: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the answer, and whatever the size of a block."""
    monkeypatch.setattr(module, "_BLOCK", block)
    answer = ANSWERS[wrong](ANSWER.tasks, PRICES)
    here, there = in_tables(*answer), by_pairs(*answer)
    assert (here.worst > 1e-9) == (wrong != "right")
    for name in ("feasibility", "optimality", "fairness"):
        assert getattr(here, name) == pytest.approx(getattr(there, name), rel=1e-6, abs=1e-12)


def test_what_is_no_number_proves_nothing() -> None:
    """NaN and inf, in tasks, in the level and in prices."""
    for bad in (np.nan, np.inf):
        tasks, prices = ANSWER.tasks.copy(), PRICES.copy()
        tasks[0, 0], prices[0, 0] = bad, bad
        assert in_tables(tasks, LEVEL, PRICES).worst == np.inf
        assert in_tables(ANSWER.tasks, bad, PRICES).worst == np.inf
        assert in_tables(ANSWER.tasks, LEVEL, prices).worst == np.inf
