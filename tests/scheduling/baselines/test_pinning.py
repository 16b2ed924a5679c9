"""Demand pinning: small demands on their first path, the others exactly on the rest."""

from __future__ import annotations

import numpy as np
import pytest
from reference import approximations

import fairopt as fo

LINKS = {"a-b": 10, "a-c": 10, "b-d": 10, "c-d": 10}
FLOWS = {
    "a to d": [["a-b", "b-d"], ["a-c", "c-d"]],
    "a to b": [["a-b"]],
    "b to d": [["b-d"]],
    "a to c": [["a-c"]],
    "c to d": [["c-d"]],
}


@pytest.mark.parametrize("notion", ["max-min", "efficiency"])
@pytest.mark.parametrize("seed", range(6))
def test_against_fractions(seed: int, notion: str) -> None:
    """On the diamond, with random demands around the threshold."""
    demands = [int(each) for each in np.random.default_rng(seed).integers(1, 12, len(FLOWS))]
    network = fo.Instance.from_paths(LINKS, FLOWS).replace(tasks=demands)
    expected = approximations.pinned(approximations.of_flows(LINKS, FLOWS, demands), 5, demands, first=notion == "max-min")
    found = fo.schedule(network, f"{notion}:pinning:threshold=5").tasks_per_user
    if notion == "max-min":
        assert found == pytest.approx([float(each) for each in expected])
    assert found.sum() == pytest.approx(float(sum(expected)))


def test_who_does_not_fit_beside_the_others_is_not_pinned() -> None:
    """Two flows of 6 on one link of 10: the second is not pinned, and takes the 4 that are left."""
    network = fo.Instance.from_paths({"l": 10}, {"f": [["l"]], "g": [["l"]]}).replace(tasks=[6, 6])
    found = fo.schedule(network, "max-min:pinning:threshold=6")
    assert found.tasks_per_user.tolist() == [6.0, 4.0]
    assert found.details["pinned"] == ["f"]


def test_a_threshold_below_all_demands_is_the_exact_answer() -> None:
    """Nobody is pinned."""
    network = fo.Instance.from_paths(LINKS, FLOWS)
    assert fo.schedule(network, "max-min:pinning:threshold=1").tasks_per_user == pytest.approx(fo.solve(network, "max-min").tasks_per_user)


def test_the_threshold_is_checked() -> None:
    """It is a number above 0."""
    with pytest.raises(fo.Unsupported, match='the option threshold of "pinning" is 0; give a number above 0'):
        fo.schedule(fo.Instance([[1]], [[1]]), "drfh:pinning:threshold=0")
