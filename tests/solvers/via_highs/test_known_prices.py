"""Levels by the prices of another answer: right where its certificate says so, and no answer elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from support.reruns import check_reruns, small_cluster

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program.likeness import Likeness
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.known_prices import solve_by_known_prices


def test_a_level_that_moves_while_its_prices_stay() -> None:
    """12 cpu, a task takes one, c has 2 tasks: A = B = 5. Without B the price of a cpu pays for 12 = A + 2, so A = 10."""
    program = fo.formulate(fo.Instance([[12]], [[1], [1]], tasks=[np.inf, 2], users=["A", "C"]), "max-min")
    prices = np.where(program.limits.of_servers, 0.5, 0.0)
    found = solve_by_known_prices(program, Likeness(False, prices[None], np.array([5.0, 2.0])), Deadline(None))
    assert found is not None
    np.testing.assert_allclose(found.x, [10, 2], rtol=1e-14)
    assert [(stage.value, stage.users.tolist()) for stage in found.stages] == [(10, [0])]
    assert certify(program, found).worst <= 1e-14


def test_prices_of_another_cluster_are_no_answer() -> None:
    """A may run on the first server of 4 cpu, B on both. With 10 cpu on the second, A has 4 and B 10; with 2, both have 3."""
    there = [[True, False], [True, True]]
    large, small = (fo.formulate(fo.Instance([[4], [cpu]], [[1], [1]], eligibility=there), "max-min") for cpu in (10, 2))
    prices, tasks = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([4.0, 0.0, 10.0])
    found = solve_by_known_prices(large, Likeness(True, prices, tasks), Deadline(None))
    assert found is not None
    np.testing.assert_allclose(found.x, tasks, rtol=1e-14)
    assert solve_by_known_prices(small, Likeness(True, prices, tasks), Deadline(None)) is None
    assert solve_by_known_prices(small, Likeness(True, prices[:1], tasks), Deadline(None)) is None  # nothing stops B
    assert solve_by_known_prices(small, Likeness(False), Deadline(None)) is None


@pytest.mark.parametrize(("servers", "there", "has_room"), [(2, "1 12 12", True), (2, "1 1 2", False), (3, "12 12 12 3", False)])
def test_levels_for_which_there_is_no_room(servers: int, there: str, has_room: bool) -> None:
    """Servers of 4 cpu, each with a price of 1, so that all users have the same part of all cpu; where each user may run.

    On two servers the second and the third user fill what the first leaves. Where two users may run on the first server alone, it would
    need 16 / 3 cpu. On three servers three users have 9 cpu, and may use 8: nobody is decided before the linear program.
    """
    allowed = [[str(i + 1) in of_user for i in range(servers)] for of_user in there.split()]
    pool = fo.formulate(fo.Instance(np.full((servers, 1), 4.0), np.ones((len(allowed), 1)), eligibility=allowed), "max-min")
    found = solve_by_known_prices(pool, Likeness(False, np.ones((1, servers)), np.ones(pool.n_pairs)), Deadline(None))
    assert (found is not None) == has_room
    if found is not None:
        np.testing.assert_allclose(pool.per_user(found.x), 8 / 3, rtol=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_reruns_agree_with_fractions(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Leximins of three notions."""
    notion = ("drfh", "tsf", "max-min")[seed % 3]
    allocation = fo.solve(small_cluster(seed), notion, solver="highs")
    check_reruns(monkeypatch, solve_by_known_prices, allocation, seed, 1e-8, notion=notion)
