"""Leximins with a past, one after another: the same as each solved anew by linear programs, and as well proved."""

from __future__ import annotations

import numpy as np
import pytest
from instances import demands_with_zeros, few_servers_each
from scipy.optimize import linprog

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Leximin, Program
from fairopt.solvers.via_highs.memory import RememberedLevels
from fairopt.solving import formulate


def leximin(program: Program) -> np.ndarray:
    """Return the levels by one LP a level and one a user: who cannot rise above the level is settled."""
    goal = program.goal
    assert isinstance(goal, Leximin)
    per_level = program.utilities / goal.weights[program.pair_users]
    users, pairs = len(program.users), program.n_pairs
    of_user = np.zeros((users, pairs))
    of_user[program.pair_users, np.arange(pairs)] = per_level
    limits = program.limits.matrix.toarray()
    settled: dict[int, float] = {}
    while len(settled) < users:
        rising = [n for n in range(users) if n not in settled]
        keep = -of_user[list(settled)]
        owed = -np.array([level * (1 - 1e-9) for level in settled.values()])
        rows = np.vstack([limits, keep, -of_user[rising]])
        a = np.column_stack([rows, np.append(np.zeros(len(rows) - len(rising)), np.ones(len(rising)))])
        b = np.concatenate([program.limits.bounds, owed, np.zeros(len(rising))])
        t = float(np.asarray(linprog(np.append(np.zeros(pairs), -1.0), a, b).x)[-1])
        b = np.concatenate([program.limits.bounds, owed, np.full(len(rising), -t * (1 - 1e-9))])
        most = {n: -float(linprog(-of_user[n], rows, b).fun or 0.0) for n in rising}
        for n in rising:
            if most[n] <= t * (1 + 1e-6) + 1e-12:
                settled[n] = t
    return np.array([settled[n] for n in range(users)])


@pytest.mark.parametrize("seed", range(4))
def test_each_is_the_leximin_of_past_and_present(seed: int) -> None:
    """Users on one to three servers each; tasks, weights and pasts change, a few or all at once."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    instance = fo.Instance(
        rng.uniform(1, 10, (servers, 2)), demands_with_zeros(rng, (users, 2), 0.01, 1),
        eligibility=few_servers_each(rng, users, servers), tasks=np.full(users, 10.0),
    )  # fmt: skip
    levels = RememberedLevels(formulate(instance, "drfh"))
    tasks, weights, past = np.full(users, 5.0), np.ones(users), np.zeros(users)
    for _ in range(5):
        some = rng.random(users) < rng.choice([0.3, 1.0])
        tasks[some] = np.floor(10.0 ** rng.uniform(-0.7, 3, users))[some]
        past[some] = rng.exponential(0.5, users)[some]
        weights[some] = rng.uniform(0.5, 4, users)[some]
        if not tasks.any():
            continue
        program, solution = levels.solve_again(tasks, weights, past)
        found = program.per_user(solution.x * program.utilities) / weights
        np.testing.assert_allclose(found, leximin(program), rtol=1e-5, atol=1e-7)
        assert certify(program, solution).worst <= 1e-8


def test_the_kept_basis_serves_pasts_too() -> None:
    """One kind of server, everybody wants more: after the first moment nothing is solved by linear programs."""
    rng = np.random.default_rng(1)
    levels = RememberedLevels(formulate(fo.Instance([[20.0, 20.0]], rng.uniform(0.1, 1, (8, 2)), tasks=np.ones(8)), "drfh"))
    levels.solve_again(np.full(8, 900.0), np.ones(8), np.zeros(8))
    for _ in range(10):
        past = rng.uniform(0, 0.05, 8)
        found = levels._from_kept(np.full(8, 900.0), np.ones(8), past)
        assert found is not None
        program, again = levels.solve_again(np.full(8, 900.0), np.ones(8), past)
        assert certify(program, again).worst <= 1e-12
        np.testing.assert_array_equal(found.x, again.x)
