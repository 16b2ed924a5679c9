"""Whole tasks of alpha-fair goals: by hand, against enumeration, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.whole_alpha_fair import solve_whole_alpha_fair

ALPHAS = (0.5, 1.0, 2.0, 4.0)


def draw(seed: int) -> tuple[fo.Instance, FloatArray | None]:
    """Return up to four users on up to two servers, some with a limit of two or a rule, and perhaps what tasks are worth by server."""
    rng = np.random.default_rng(seed)
    users, servers = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    demands = rng.integers(0, 4, (users, 2))
    demands[:, 0] = np.maximum(demands[:, 0], 1)
    eligibility = rng.random((users, servers)) < 0.8
    eligibility[~eligibility.any(axis=1), 0] = True
    instance = fo.Instance(
        rng.integers(2, 6, (servers, 2)),
        demands,
        weights=rng.integers(1, 4, users),
        tasks=np.where(rng.random(users) < 0.3, rng.integers(1, 5, users), np.inf),
        eligibility=eligibility,
        users=[f"u{n}" for n in range(users)],
        limits=[fo.Limit("few", int(rng.integers(1, 6)), users=["u0", "u1"])] if rng.random() < 0.4 else [],
        rules=["x[u0] <= x[u1]"] if rng.random() < 0.4 else [],
    )
    return instance, rng.choice([0.5, 1.0, 2.0], (users, servers)) if rng.random() < 0.4 else None


def placements(instance: fo.Instance) -> Iterator[FloatArray]:
    """Yield all whole tasks that fit, obey the limit and the rule."""
    most = np.floor(np.min(instance.capacities[None, :, :] / np.maximum(instance.demands[:, None, :], 1e-9), axis=2)) * instance.eligibility
    for numbers in itertools.product(*(range(int(each) + 1) for each in most.ravel())):
        tasks = np.array(numbers, float).reshape(most.shape)
        own = tasks.sum(axis=1)
        fits = (tasks.T @ instance.demands <= instance.capacities).all() and (own <= instance.tasks).all()
        few = not instance.limits or own[:2].sum() <= instance.limits[0].bound
        if fits and few and (not instance.rules or own[0] <= own[1]):
            yield tasks


def worth(weights: FloatArray, utilities: FloatArray, alpha: float) -> tuple[int, float]:
    """Return how many have something, which counts first where 0 is worth minus infinity, and the sum over them."""
    some = utilities > 0
    each = np.log(utilities[some]) if alpha == 1 else utilities[some] ** (1 - alpha) / (1 - alpha)
    return (int(some.sum()) if alpha >= 1 else 0), float(weights[some] @ each)


@pytest.mark.parametrize("seed", range(24))
def test_nothing_is_better_by_enumeration(seed: int) -> None:
    """Users in equal and in unequal units, with weights; some have nothing."""
    instance, utility = draw(seed)
    alpha = ALPHAS[seed % 4]
    per_task = np.ones(instance.eligibility.shape) if utility is None else utility
    best = max(worth(instance.weights, (tasks * per_task).sum(axis=1), alpha) for tasks in placements(instance))
    options: dict[str, Any] = {} if utility is None else {"utility": utility}
    found = fo.solve(instance, "proportional", alpha=alpha, integral=True, **options)
    assert found.certificate.whole_tasks
    number, value = worth(instance.weights, (found.tasks * per_task).sum(axis=1), alpha)
    assert number == best[0]
    assert value == pytest.approx(best[1], rel=1e-7, abs=1e-9)


def test_as_many_as_possible_have_something() -> None:
    """Three of five users can have a task. Of 7 GPUs and weights 1 and 2: 2 times 5^2 is 50, 3 times 4^2 is 48."""
    crowd = fo.solve(fo.Instance([[3]], [[1]] * 5), "proportional", integral=True).tasks_per_user
    assert sorted(crowd.tolist()) == [0, 0, 1, 1, 1]
    assert fo.solve(fo.Instance([[7]], [[1], [1]], weights=[1, 2]), "proportional", integral=True).tasks_per_user.tolist() == [2, 5]


def test_the_search_says_what_it_reached() -> None:
    """Of 7 GPUs and weights 1 and 2: log 2 + 2 log 5. Without time it has nothing."""
    program = fo.formulate(fo.Instance([[7]], [[1], [1]], weights=[1, 2]), "proportional", integral=True)
    found = solve_whole_alpha_fair(program, program.goal_as(AlphaFair), Deadline(None))
    assert found.x.tolist() == [2, 5]
    assert found.gap == pytest.approx(0, abs=1e-9)
    with pytest.raises(fo.NoSolution, match="time limit"):
        solve_whole_alpha_fair(program, program.goal_as(AlphaFair), Deadline(0.0))


def test_what_divides_tasks_is_refused_with_what_to_use() -> None:
    """Trade-offs have no lines of one user each; bbf and the market of psdsf are conditions of divisible tasks."""
    pool = fo.Instance([[7]], [[1], [1]])
    for notion in ("fds", "gfj", "bbf"):
        with pytest.raises(fo.Unsupported, match="leave integral out, or use proportional"):
            fo.solve(pool, notion, integral=True)
    with pytest.raises(fo.Unsupported, match="no engine can solve"):
        fo.solve(pool, "psdsf", formulation="market", sharing="tdm", integral=True)
    with pytest.raises(fo.Unsupported, match="use highs"):
        fo.solve(pool, "proportional", integral=True, solver="cvxpy")


@pytest.mark.parametrize(
    ("size", "demands", "weights", "alpha"),
    [
        (1000, [2], [1], 5),
        (11, [1], [1], 10),
        (5, [1], [1], 20),
        (1000, [1, 1], [1, 1], 2),
        (200, [4, 3], [10, 2], 5),
        (1000, [3, 1], [1, 3], 3),
        (30, [1, 1], [1, 1], 10),
        (10, [1, 1], [1, 1], 400),
        (20_000, [1, 3], [1, 3], 1),
        (20_000, [1, 3], [1, 3], 0.5),
    ],
)
def test_many_tasks(size: int, demands: list[float], weights: list[float], alpha: float) -> None:
    """Far from the first task g is nearly flat: what others gain there is told all the same, and no server is left idle."""
    found = fo.solve(fo.Instance([[size]], [[demand] for demand in demands], weights=weights), "proportional", alpha=alpha, integral=True)
    first = np.arange(1, size // demands[0] + 1.0)
    rest = np.floor((size - first * demands[0]) / demands[1]) if len(demands) == 2 else np.ones(first.size)
    first, rest = first[rest >= 1], rest[rest >= 1]

    def lost(utilities: FloatArray) -> FloatArray:  # relative to what all would have with the tasks that are found
        parts = utilities / found.tasks_per_user.min()
        return np.asarray(-np.log(parts) if alpha == 1 else parts ** (1 - alpha) / (alpha - 1))

    every = weights[0] * lost(first) + (weights[1] * lost(rest) if len(demands) == 2 else 0.0)
    own = float(np.array(weights) @ lost(found.tasks_per_user))
    assert own <= every.min() + 1e-8 * (sum(weights) if alpha == 1 else abs(own))


def test_which_users_have_something_is_told_in_tasks() -> None:
    """One of two users can have a task of half a unit of work: for alpha = 1 the lighter one loses less."""
    pool = fo.Instance([[5]], [[3], [3]], weights=[2, 1])
    assert fo.solve(pool, "proportional", integral=True, utility=[0.5, 0.5]).tasks_per_user.tolist() == [0, 1]
