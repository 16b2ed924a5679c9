"""The Pareto frontier of the total and the smallest share: every weighted sum of the two, by a plain linear program."""

from __future__ import annotations

import numpy as np
import pytest
from instances import uniform_instance
from reference.linear import largest

import fairopt as fo
from fairopt.program import Program
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.pareto import pareto_frontier


def best_sum(program: Program, shares: np.ndarray, of_total: float, of_share: float) -> float:
    """Max of_total t + of_share m over all x that fit, with m at most every share."""
    n, pairs = len(program.users), program.n_pairs
    held = np.zeros((n, pairs))
    held[program.pair_users, np.arange(pairs)] = shares
    rows = np.block([[program.limits.matrix.toarray(), np.zeros((len(program.limits), 1))], [-held, np.ones((n, 1))]])
    bounds = np.append(program.limits.bounds, np.zeros(n))
    return largest(np.append(np.full(pairs, of_total), of_share), rows, bounds)


def test_the_ends_and_the_edge_between_by_hand() -> None:
    """One server of 12, tasks of 1 and 3: (3, 3) is fairest, all 12 tasks of user 1 are most; the frontier is the line between."""
    program = fo.formulate(fo.Instance([[12]], [[1], [3]]), "efficiency")
    found = pareto_frontier(program, np.array([1 / 12, 3 / 12]), np.ones(2, bool))
    # Shares x/12 = y/4 with x + 3 y = 12: x = 6, y = 2, share 1/2, total 8.
    np.testing.assert_allclose(found.vertices, np.array([[8, 0.5], [12, 0]]), atol=1e-12)
    assert found.gap <= 1e-8


@pytest.mark.parametrize("seed", range(8))
def test_no_weighted_sum_is_larger(seed: int) -> None:
    """Vertices fall in one goal as they rise in the other, with ever steeper edges; of any weights the best one is the optimum."""
    program = fo.formulate(uniform_instance(5, 3, seed=seed), "efficiency")
    shares = np.random.default_rng(seed).uniform(0.1, 1, program.n_pairs)
    found = pareto_frontier(program, shares, np.ones(5, bool))
    steps = np.diff(found.vertices, axis=0)
    assert (steps[:, 0] > 0).all()
    assert (steps[:, 1] < 0).all()
    assert (np.diff(steps[:, 1] / steps[:, 0]) < 0).all()
    unit = found.vertices[-1, 0], found.vertices[0, 1]
    for weight in np.linspace(0, 1, 11):
        goal = np.array([weight / unit[0], (1 - weight) / unit[1]])
        assert (found.vertices @ goal).max() == pytest.approx(best_sum(program, shares, *goal), rel=1e-7)


def test_only_those_who_count_have_a_smallest_share() -> None:
    """User 2 does not: all goes to user 1, in both goals."""
    program = fo.formulate(fo.Instance([[12]], [[1], [3]]), "efficiency")
    found = pareto_frontier(program, np.array([1 / 12, 3 / 12]), np.array([True, False]))
    np.testing.assert_allclose(found.vertices, np.array([[12.0, 1.0]]))


def test_time_is_up() -> None:
    """No frontier is better than a part of one."""
    program = fo.formulate(uniform_instance(30, 10), "efficiency")
    with pytest.raises(fo.NoSolution, match="time limit"):
        pareto_frontier(program, np.ones(program.n_pairs), np.ones(30, bool), Deadline(0.0))
