"""`allocation.levels` are the distinct final levels of the leximin, the same for every engine.

Shares are unique. Expected are therefore the distinct shares of all users, read off the answer in fractions, which is proved without a
tolerance, and not from what any engine settles.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from instances import instance_in_queues

import fairopt as fo
from fairopt.errors import Unsupported

ENGINES = (None, "water-filling", "highs", "cvxpy", "pyomo", "interior-point")


def instance_with_ends(seed: int) -> fo.Instance:
    """Whole numbers: users with few tasks or none, without demand, with a parallelism, without a server; every third one divides time."""
    rng = np.random.default_rng(seed)
    users, servers, resources = int(rng.integers(3, 8)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    demands = rng.integers(0, 4, (users, resources))
    tasks = np.where(rng.random(users) < 0.5, rng.integers(0, 5, users), np.inf)
    by_time = seed % 3 == 0
    demands[(by_time | np.isinf(tasks)) & (demands.sum(axis=1) == 0), 0] = 1  # who demands nothing has an end
    return fo.Instance(
        rng.integers(4, 13, (servers, resources)),
        demands,
        counts=rng.integers(1, 4, servers),
        weights=rng.choice([1, 1, 2, 5], users),
        tasks=tasks,
        parallelism=np.where(rng.random(users) < 0.3, rng.integers(1, 3, users), np.inf) if by_time or seed % 3 == 1 else None,
        rates=rng.integers(1, 4, (users, servers)) if by_time else None,
        eligibility=rng.random((users, servers)) < 0.8,
    )


def expected(instance: fo.Instance, exact: fo.Allocation) -> list[tuple[Fraction, tuple[str, ...]]]:
    """Return the distinct positive shares, ascending, each with the users who have it."""
    assert exact.exact is not None
    shares = exact.exact.shares.tolist()
    return [
        (value, tuple(name for name, share in zip(instance.users, shares, strict=True) if share == value))
        for value in sorted(set(shares) - {0})
    ]


def told(allocation: fo.Allocation) -> list[Any]:
    """Return the values of the levels and their users."""
    return [(level.value, level.users) for level in allocation.levels]


@pytest.mark.parametrize("engine", [*ENGINES, "exact"])
def test_by_hand(engine: str | None) -> None:
    """20 GPUs: a runs its only task, b its 3 and d its 4; c has 4, and e of weight 2 has 8: 4/20 for each unit of weight, as d has.

    The levels are 1/20, 3/20 and 4/20. Only c and e are stopped by others.
    """
    instance = fo.Instance(
        [[20]],
        np.ones((5, 1)),
        users=["a", "b", "c", "d", "e"],
        weights=[1, 1, 1, 1, 2],
        tasks=[1, 3, np.inf, 4, np.inf],
        resources=["gpu"],
    )
    allocation = fo.solve(instance, "drfh", exact=True) if engine == "exact" else fo.solve(instance, "drfh", solver=engine)
    assert [users for _, users in told(allocation)] == [("a",), ("b",), ("c", "d", "e")]
    assert [value for value, _ in told(allocation)] == pytest.approx([0.05, 0.15, 0.2])
    assert allocation.level_of_user == (1, 2, 3, 3, 3)
    assert allocation.proof.endswith("answer and prices" if engine != "exact" else "from the answer in fractions and its prices")


def test_all_tasks_run() -> None:
    """Then nobody is stopped by others, and there is a level all the same; no price proves anything."""
    allocation = fo.solve(fo.Instance([[10]], [[1], [1]], users=["a", "b"], tasks=[1, 3]), "drfh", solver="highs")
    assert told(allocation) == [(pytest.approx(0.1), ("a",)), (pytest.approx(0.3), ("b",))]
    assert allocation.certificate.worst <= 1e-12


@pytest.mark.parametrize("seed", range(24))
def test_random_instances(seed: int) -> None:
    """Values to a relative 1e-8, users by name."""
    instance = instance_with_ends(seed)
    exact = fo.solve(instance, "drfh", exact=True)
    levels = expected(instance, exact)
    assert exact.exact is not None
    assert list(exact.exact.levels) == [value for value, _ in levels]
    proved: list[Any] = [(level.value, level.users) for level in exact.exact.proved_levels]
    assert proved == levels
    answers = 0
    for engine in ENGINES:
        try:
            found = told(fo.solve(instance, "drfh", solver=engine))
        except Unsupported:
            continue
        answers += 1
        assert [users for _, users in found] == [users for _, users in levels], engine
        assert [value for value, _ in found] == pytest.approx([float(value) for value, _ in levels], rel=1e-8), engine
    assert answers >= 3


@pytest.mark.parametrize(
    ("options", "seed"),
    [
        *(({}, seed) for seed in range(16)),
        *(({"guarantees": "clamp"}, seed) for seed in range(16, 22)),
        *(({"queue_share": "sum"}, seed) for seed in (22, 23, 24, 25, 27, 33)),  # 26: "interior-point" alone finds no answer with floors
        *(({"tree": "nested"}, seed) for seed in (28, 30, 31, 32)),
    ],
)
def test_random_trees(options: dict[str, Any], seed: int) -> None:
    """Levels of a tree are times of its parts: the same parts, times and users. Every user of a part is at one of its levels."""
    instance = instance_in_queues(seed, guarantees="tree" not in options)
    if "tree" in options:
        instance = instance.replace(queues=[dataclasses.replace(queue, tier=0) for queue in instance.queues])
    exact = fo.solve(instance, "drfh", exact=True, **options)
    levels = [(level.part, level.users) for level in exact.levels]
    for engine in ("highs", "cvxpy", "pyomo", "interior-point"):
        try:
            found = fo.solve(instance, "drfh", solver=engine, **options)
        except Unsupported:
            continue
        assert [(level.part, tuple(sorted(level.users))) for level in found.levels] == [
            (part, tuple(sorted(users))) for part, users in levels
        ], engine
        np.testing.assert_allclose([level.value for level in found.levels], [level.value for level in exact.levels], rtol=1e-7, atol=1e-9)
