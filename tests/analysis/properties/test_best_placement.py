"""Where a liar's tasks are worth most to it, over all optimal placements: by hand, and against other optimal placements."""

from __future__ import annotations

import numpy as np
import pytest
from reference.witnesses import feasible, limits, pairs_of
from scipy.optimize import linprog

import fairopt as fo
from fairopt.analysis.properties.best_placement import best_placement
from fairopt.solvers.via_highs import engine

CLAIM = np.array([1.0, 0.0])


def test_tasks_that_may_run_anywhere_run_where_they_are_worth_something() -> None:
    """Both servers have room for 2 tasks: both tasks of the liar may be on server a, and both on server b, which it only claims."""
    told, tasks = fo.Instance([[2], [2]], [[1], [1]]), np.ones((2, 2))
    for sign, there in ((1, [2.0, 0.0]), (-1, [0.0, 2.0])):
        best = best_placement(fo.NOTIONS["drfh"](), told, "rdm", tasks, 0, sign * CLAIM)
        assert best == pytest.approx(np.array([there, there[::-1]]), abs=1e-8)


def test_tasks_that_have_no_room_elsewhere_stay() -> None:
    """Server a has room for 1 of the 2 tasks of the liar, also in fractions."""
    told = fo.Instance([[1], [3]], [[1], [1]])
    best = best_placement(fo.NOTIONS["drfh"](), told, "rdm", np.array([[0.0, 2.0], [1.0, 1.0]]), 0, CLAIM)
    assert best == pytest.approx(np.array([[1.0, 1.0], [0.0, 2.0]]), abs=1e-8)
    answer = fo.solve(told, "drfh", exact=True).exact
    assert answer is not None
    exact = best_placement(fo.NOTIONS["drfh"](), told, "rdm", answer.tasks, 0, CLAIM)
    assert exact.tolist() == [[1, 1], [0, 2]]


@pytest.mark.parametrize("notion", ["drfh", "cdrf", "proportional"])
@pytest.mark.parametrize("seed", range(6))
def test_no_other_optimal_placement_is_worth_more(notion: str, seed: int) -> None:
    """Optimal placements are those with the tasks of the answer; of 20 random vertices, none is worth more."""
    rng = np.random.default_rng(seed)
    eligible = (rng.random((4, 4)) < 0.5) | np.eye(4, dtype=bool)
    told = fo.Instance(rng.uniform(4, 9, (4, 2)), rng.uniform(0.5, 2, (4, 2)), eligibility=eligible)
    answer = fo.solve(told, notion)
    worth = rng.integers(0, 3, 4).astype(float)
    best = best_placement(fo.NOTIONS[notion](), told, "rdm", answer.tasks, 0, worth)
    assert feasible(told, best)
    assert best.sum(axis=1) == pytest.approx(answer.tasks_per_user, rel=1e-6)
    pairs = pairs_of(told)
    matrix, bounds = limits(told)
    own = np.array([[float(n == m) for n, _ in pairs] for m in range(4)])
    for _ in range(20):
        other = linprog(rng.normal(size=len(pairs)), A_ub=matrix, b_ub=bounds + 1e-7, A_eq=own, b_eq=answer.tasks_per_user)
        assert other.x is not None
        held = sum(worth[i] * x for (n, i), x in zip(pairs, other.x.tolist(), strict=True) if n == 0)
        assert best[0] @ worth >= held - 1e-5


@pytest.mark.parametrize("seed", [1, 8, 12, 17])
def test_what_a_lie_gains_is_no_accident_of_the_engine(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is the same with the prices of the first answer and without, where these give other placements."""
    rng = np.random.default_rng(seed)
    capacities, demands = rng.uniform(4, 9, (3, 2)), rng.uniform(0.5, 2, (5, 2))
    pool = fo.Instance(capacities, demands, eligibility=(rng.random((5, 3)) < 0.5) | (np.arange(3) == 0))
    allocation = fo.solve(pool, "cdrf")
    known = fo.audit(allocation, "strategy-proofness", effort=40)["strategy-proofness"]
    monkeypatch.setattr(engine, "_has_known_prices", lambda program: False)
    unknown = fo.audit(allocation, "strategy-proofness", effort=40)["strategy-proofness"]
    assert known.holds == unknown.holds
    assert known.violation == pytest.approx(unknown.violation, rel=1e-6, abs=1e-9)
