"""Restricted LPs of trees: with few pairs at first, the same shares as with all."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.via_highs import tree
from fairopt.solvers.via_highs.settings import SETTINGS


@pytest.fixture(scope="module")
def instance() -> fo.Instance:
    """60 users in 6 queues with limits on 20 distinct servers."""
    rng = np.random.default_rng(7)
    queues = [fo.Queue(f"q{k}", weight=float(1 + k), limit={"cpu": 16.0 + 8 * k}) for k in range(6)]
    return fo.Instance(
        rng.uniform(4, 12, (20, 2)),
        rng.uniform(0.2, 2, (60, 2)),
        weights=10 ** rng.uniform(-1, 1, 60),
        eligibility=rng.random((60, 20)) < 0.6,
        queues=queues,
        queue_of=[f"q{k % 6}" for k in range(60)],
        resources=["cpu", "memory"],
    )


@pytest.mark.parametrize("guarantees", ["surplus", "clamp"])
def test_few_pairs_at_first_give_the_same_shares(instance: fo.Instance, guarantees: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certified over all pairs, whatever the LPs held."""
    whole = fo.solve(instance, "drfh", guarantees=guarantees, solver="highs")
    monkeypatch.setattr(tree, "SETTINGS", SETTINGS._replace(all_pairs=100, random_pairs=1, cheapest_pairs=1))
    few = fo.solve(instance, "drfh", guarantees=guarantees, solver="highs")
    assert few.certificate.worst <= 1e-9
    assert few.shares == pytest.approx(whole.shares, rel=1e-8)


def test_pairs_are_added(instance: fo.Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair a user does not do: the prices ask for more."""
    added: list[int] = []
    monkeypatch.setattr(tree, "SETTINGS", SETTINGS._replace(all_pairs=100, random_pairs=0, cheapest_pairs=1))
    cheaper = tree._Steps._cheaper

    def counted(self: tree._Steps, prices: np.ndarray, pays: np.ndarray) -> np.ndarray:
        found = cheaper(self, prices, pays)
        added.append(found.size)
        return found

    monkeypatch.setattr(tree._Steps, "_cheaper", counted)
    assert fo.solve(instance, "drfh", solver="highs").certificate.worst <= 1e-9
    assert sum(added) > 0
