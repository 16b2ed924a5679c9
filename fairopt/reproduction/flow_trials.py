"""Trials of flows: are binning and SWAN within their published ratio of the max-min fair rates (Namyar et al. 2024, Hong et al. 2013)?

The settings are data, in `fairopt.papers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import WRITTEN
from fairopt.papers import read
from fairopt.reproduction.trials import Row, Run, compared, sample
from fairopt.scheduling import schedule
from fairopt.solving import solve

__all__ = ["soroush_ratio"]


def soroush_ratio(run: Run) -> Iterator[Row]:
    """Yield for each approximation the number of random networks in which a rate is further from its fair rate than the ratio."""
    trials = read("soroush").more["trials"]
    repetitions = trials["quick" if run.quick else "repetitions"]
    for setting in trials["setting"]:
        off = sample(partial(_is_off, setting, trials["ratio"]), setting["id"], repetitions, run)
        number = int(off.sum())
        yield compared(
            id=setting["id"],
            what=f"{setting['what']}, of {repetitions:,}",
            citation=trials["citation"],
            published=[trials["published"]],
            ours=[number],
            tolerance=0.0,
            holds=number == trials["published"],
            as_known=number <= trials["known"] * repetitions,
            differs=trials["differs"],
            kind="approximate",
        )


def _is_off(setting: dict[str, Any], ratio: float, rng: np.random.Generator) -> FloatArray:
    """Return 1 if a rate of a random network is off by more than the ratio, else 0."""
    network = _network(rng)
    fair = solve(network, "max-min").tasks_per_user
    found = schedule(network, setting["schedule"]).tasks_per_user
    return np.array([float(np.maximum(found / fair, fair / found).max() > ratio * (1 + WRITTEN))])


def _network(rng: np.random.Generator) -> Instance:
    """Return a small random network, as the file of the paper describes it."""
    links, flows = int(rng.integers(2, 8)), int(rng.integers(2, 9))
    capacity = {f"link-{k}": int(rng.integers(1, 30)) for k in range(links)}
    paths = {}
    for n in range(flows):
        lengths = rng.integers(1, min(links, 3) + 1, int(rng.integers(1, 4)))
        drawn = {tuple(sorted(rng.choice(links, int(length), replace=False).tolist())) for length in lengths}
        paths[f"flow-{n}"] = [[f"link-{k}" for k in path] for path in sorted(drawn)]
    network = Instance.from_paths(capacity, paths)
    if rng.random() < 1 / 2:
        return network
    return network.replace(tasks=np.where(rng.random(flows) < 1 / 2, rng.integers(1, 20, flows), np.inf))
