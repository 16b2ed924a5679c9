"""Budgets of stops and protected tasks in trees with guarantees, limits, tiers and orders: against all chains of whole tasks."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from reference.placements import placements
from reference.whole_tree import Tasks, best_ends, feasible

import fairopt as fo
from fairopt.analysis.planning import HeldRow
from fairopt.analysis.planning.planning import plan


def drawn(seed: int) -> tuple[fo.Instance, np.ndarray]:
    """Draw one resource with guarantees, tiers and weights of 0, or two with limits, and what runs: a placement that fits."""
    rng = np.random.default_rng(seed)
    two = seed % 3 == 0
    queues = []
    for q in range(2):
        parent = "q0" if q and rng.random() < 0.4 else None
        guarantee = {"r0": int(rng.integers(1, 4))} if not two and rng.random() < 0.7 else {}
        limit = {"r0": int(rng.integers(3, 7))} if rng.random() < 0.2 else {}
        tier = int(rng.integers(0, 2)) if parent is None and rng.random() < 0.4 else 0
        order: Literal["fair", "listed"] = "listed" if q and rng.random() < 0.3 else "fair"
        queues.append(fo.Queue(f"q{q}", parent, weight=int(rng.integers(1, 3)), guarantee=guarantee, limit=limit, tier=tier, order=order))
    users, servers = 3, int(rng.integers(1, 3))
    instance = fo.Instance(
        rng.integers(2, 5, (servers, 2 if two else 1)),
        rng.integers(1, 3, (users, 2 if two else 1)),
        weights=rng.integers(1, 3, users),
        tasks=np.where(rng.random(users) < 0.3, rng.integers(1, 4, users), np.inf),
        queues=queues,
        queue_of=[None if rng.random() < 0.2 else f"q{int(rng.integers(0, 2))}" for _ in range(users)],
        resources=["r0", "r1"][: 2 if two else 1],
    )
    fits = ends_of(instance)
    some = [table for table in placements(instance) if tuple(table.sum(axis=1).tolist()) in fits]
    return instance, some[int(rng.integers(len(some)))]


def ends_of(instance: fo.Instance) -> set[Tasks]:
    """Return the numbers of tasks within capacities and limits."""
    return {tuple(int(t) for t in tasks) for tasks in feasible(instance)}


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_the_best_within_a_budget_or_beside_protected_tasks(first: int) -> None:
    """Of all chains whose end some placement reaches with so few stops, and with the protected tasks, none has larger stop times."""
    for seed in range(first, first + 6):
        instance, held = drawn(seed)
        rng = np.random.default_rng(5000 + seed)
        stays = np.minimum(held, rng.integers(0, 2, held.shape)) if seed % 2 else np.zeros_like(held)
        rows = [
            HeldRow(instance.users[n], instance.servers[i], int(tasks[n, i]), protected=flag)
            for tasks, flag in ((held - stays, False), (stays, True))
            for n, i in np.argwhere(tasks).tolist()
        ]
        for budget in (0, 1, None):
            most = held.sum() if budget is None else budget
            reached = {
                tuple(int(t) for t in table.sum(axis=1))
                for table in placements(instance)
                if np.maximum(held - table, 0).sum() <= most and (table >= stays).all()
            }
            best = best_ends(instance, reached)
            found = plan(instance, rows or np.zeros(held.shape), "drfh", budget=budget, queue_share="sum")
            assert budget is None or found.n_stops <= budget
            assert tuple(found.target.values()) in best, (seed, budget, held.tolist())
            assert found.n_stops <= found.bound


@pytest.mark.parametrize("options", [{}, {"guarantees": "clamp"}, {"tree": "nested"}])
def test_trees_whose_best_whole_tasks_no_engine_finds(options: dict[str, Any]) -> None:
    """The whole parts of the divisible optimum as far as they fit, and the largest remainders: of all placements the best."""
    for seed in range(8):
        rng = np.random.default_rng(7000 + seed)
        guarantee = {"r0": 2} if options.get("guarantees") else {}
        instance = fo.Instance(
            rng.integers(2, 5, (2, 2)),
            [[1, 2], [2, 1], [1, 1]],
            queues=[fo.Queue("q0", guarantee=guarantee), fo.Queue("q1", weight=2)],
            queue_of=["q0", "q0", "q1"],
            resources=["r0", "r1"],
        )
        fluid = fo.solve(instance, "drfh", **options).tasks_per_user
        floors = np.floor(fluid + 1e-6)
        parts = np.where(fluid - floors > 1e-6, fluid - floors, 0.0)

        def worth(tasks: np.ndarray, floors: np.ndarray = floors, parts: np.ndarray = parts) -> float:
            kept = np.minimum(tasks, floors + (parts > 0))
            return float(parts @ (kept > floors) - 4 * np.maximum(floors - kept, 0).sum())

        found = plan(instance, {(instance.users[0], instance.servers[0]): 1}, "drfh", **options)
        reached = np.array(list(found.target.values()))
        assert worth(reached) == pytest.approx(max(worth(table.sum(axis=1)) for table in placements(instance)), abs=1e-9)
        assert any("The target is the whole tasks nearest to the divisible optimum" in note for note in found.notes)
