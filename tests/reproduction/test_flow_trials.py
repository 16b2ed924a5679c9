"""Soroush's and SWAN's guarantee on random networks: what counts as beyond the ratio, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.papers import read
from fairopt.reproduction import flow_trials
from fairopt.reproduction.reproducing import EXPERIMENTS
from fairopt.scheduling.baselines.geometric_binning import counterexample_of_flows


def test_networks_are_as_the_file_says() -> None:
    """2 to 7 links, 2 to 8 flows, up to three paths; about half of the networks with demands."""
    networks = [flow_trials._network(np.random.default_rng(seed)) for seed in range(200)]
    assert {network.n_users for network in networks} == set(range(2, 9))
    limits = [len(network.limits) for network in networks]
    assert min(limits) >= 1
    assert max(limits) <= 7
    assert 0.35 < np.mean([np.isfinite(network.tasks).any() for network in networks]) < 0.65


@pytest.mark.parametrize("name", ["geometric-binning", "swan"])
def test_the_counterexample_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One flow has 1 where it should have 2.5: beyond a ratio of 2, and within one of 3. Where both agree, nothing is beyond."""
    monkeypatch.setattr(flow_trials, "_network", lambda rng: counterexample_of_flows())
    setting = {"schedule": f"max-min:{name}:ratio=2:first=1"}
    rng = np.random.default_rng(0)
    assert flow_trials._is_off(setting, 2, rng) == [1.0]
    assert flow_trials._is_off(setting, 3, rng) == [0.0]
    single = fo.Instance.from_paths({"a": 2}, {"f": [["a"]], "g": [["a"]]})
    monkeypatch.setattr(flow_trials, "_network", lambda rng: single)
    assert flow_trials._is_off({"schedule": f"max-min:{name}"}, 1.001, rng) == [0.0]


def test_the_experiment() -> None:
    """Two settings of a thousand networks each."""
    assert EXPERIMENTS["soroush-ratio"].trials(False) == 2000
    assert [setting["id"] for setting in read("soroush").more["trials"]["setting"]] == ["soroush-geometric-binning", "soroush-swan"]
