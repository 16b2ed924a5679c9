"""Approximate and adaptive water-filling."""

from __future__ import annotations

import numpy as np
import pytest
from reference import approximations
from support.baseline_cases import odd_cluster, random_flows

import fairopt as fo


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("notion", ["drfh", "tsf"])
@pytest.mark.parametrize("seed", range(5))
def test_against_fractions(seed: int, notion: str, rounds: int) -> None:
    """Pair by pair, row by row."""
    instance = odd_cluster(seed)
    expected = approximations.water_filling(approximations.of_cluster(instance, notion), rounds)
    found = fo.schedule(instance, f"{notion}:water-filling:rounds={rounds}")
    assert found.shares == pytest.approx([float(level) for level in expected], rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_one_server_each_is_the_leximin(seed: int) -> None:
    """With several resources and weights, too."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 3, 6)
    instance = fo.Instance(
        rng.integers(4, 20, (3, 2)), rng.integers(1, 5, (6, 2)), weights=rng.integers(1, 4, 6), eligibility=own[:, None] == np.arange(3)
    )
    exact = fo.solve(instance, "drfh").tasks_per_user
    assert fo.schedule(instance, "drfh:water-filling").tasks_per_user == pytest.approx(exact)


@pytest.mark.parametrize("seed", range(8))
def test_the_fixed_point_has_bottlenecks(seed: int) -> None:
    """Each pair in use has a full limit on which nobody who takes something of it has a higher level."""
    network = random_flows(seed)
    found = fo.schedule(network, "max-min:water-filling:rounds=settled")
    assert found.details["settled"]
    program = fo.formulate(network, "max-min")
    x = found.tasks[program.pair_users, program.pair_servers]
    level, matrix = found.tasks_per_user, program.limits.matrix.toarray()
    full = matrix @ x >= program.limits.bounds * (1 - 1e-6)
    used = x > 1e-5 * level[program.pair_users]
    for pair in np.flatnonzero(used):
        highest = [level[program.pair_users[used & (row > 0)]].max() for row in matrix[full & (matrix[:, pair] > 0)]]
        assert highest
        assert min(highest) <= level[program.pair_users[pair]] * (1 + 1e-4)


def test_rounds_are_checked() -> None:
    """A number, or until it is settled."""
    with pytest.raises(
        fo.Unsupported, match='the option rounds of "water-filling" is \'ever\'; give a whole number from 1 to 10000, or "settled"'
    ):
        fo.schedule(fo.Instance([[1]], [[1]]), "drfh:water-filling:rounds=ever")
