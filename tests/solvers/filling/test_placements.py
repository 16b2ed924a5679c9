"""Placements: the formula of each score on one task, slots by hand, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fairopt as fo
from fairopt.program.filling import Criterion, Filling
from fairopt.solvers.filling.placements import PLACEMENTS, BestFit, Placement, Slots, WorstFit
from fairopt.solvers.filling.progressive_filling import fill

# Of what is free on a server and a demand, both in parts of an average server, the smaller the better.
SCORES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "l1": lambda f, d: float(np.abs(d / d[0] - f / f[0]).sum()),
    "l2": lambda f, d: float(np.sqrt(((d / d[0] - f / f[0]) ** 2).sum())),
    "cosine": lambda f, d: -float(f @ d) / float(np.sqrt(f @ f) * np.sqrt(d @ d)),
    "tightest": lambda f, d: float(f.sum()),
}


def first_server(capacities: np.ndarray, demand: np.ndarray, placement: Placement) -> int:
    """Return where the first task goes."""
    filling = Filling(
        capacities=capacities,
        counts=np.ones(len(capacities), np.int64),
        demands=demand[None, None, :],
        eligibility=np.ones((1, len(capacities)), bool),
        tasks=np.array([1]),
        criterion=Criterion(np.ones(1)),
        order=np.arange(1),
    )
    return int(fill(filling, placement, random_ties=False, seed=0, first_block=False).servers[0])


@pytest.mark.parametrize("metric", SCORES)
@pytest.mark.parametrize("seed", range(10))
def test_best_fit_has_the_smallest_score(metric: str, seed: int) -> None:
    """Of all servers that the task fits on."""
    rng = np.random.default_rng(seed)
    capacities, demand = rng.uniform(0.5, 2, (6, 3)), rng.uniform(0.1, 0.5, 3)
    scale = 1 / capacities.mean(axis=0)
    expected = min(range(6), key=lambda i: SCORES[metric](capacities[i] * scale, demand * scale))
    assert first_server(capacities, demand, BestFit(metric)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(10))
def test_worst_fit_has_the_most_free(seed: int) -> None:
    """As a sum of parts of the cluster."""
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(0.5, 2, (6, 3))
    expected = int((capacities / capacities.sum(axis=0)).sum(axis=1).argmax())
    assert first_server(capacities, np.full(3, 0.1), WorstFit()) == expected


def test_slots_by_hand() -> None:
    """Four slots of the server of 8 cpus and 16 GB are of 2 and 4; the other, of 4 and 16, has two, and 3 cpus of a task need two."""
    instance = fo.Instance([[8, 16], [4, 16]], [[3, 1], [1, 9], [1, 1]], counts=[1, 2], tasks=[5, np.inf, np.inf])
    slots = Slots(4).prepare(instance)
    assert slots.capacities[:, 0].tolist() == [4, 2]
    assert slots.demands[:, 0].tolist() == [2, 3, 1]
    assert slots.counts.tolist() == [1, 2]
    assert slots.tasks.tolist() == [5, np.inf, np.inf]
    assert slots.resources == ("slots",)


def test_a_resource_that_a_server_lacks_takes_no_slots_from_it() -> None:
    """No GPU: the cpus say how many slots there are."""
    assert Slots(2).prepare(fo.Instance([[4, 2], [2, 0]], [[1, 0]])).capacities[:, 0].tolist() == [2, 1]


def test_what_slots_cannot_be_cut_from_is_refused() -> None:
    """Time, and weights per resource."""
    with pytest.raises(fo.Unsupported, match="slots are cut from resources"):
        Slots().prepare(fo.Instance([[1]], [[1]], rates=[[2]]))
    with pytest.raises(fo.Unsupported, match="weights per resource"):
        Slots().prepare(fo.Instance([[1, 1]], [[1, 1]], weights=[[1, 2]]))


@pytest.mark.parametrize("slots", [0, -1, 2.5, True])
def test_slots_are_a_whole_number(slots: object) -> None:
    """From 1 on."""
    with pytest.raises(fo.Unsupported, match="give a whole number >= 1"):
        Slots(slots)  # type: ignore[arg-type]


def test_metrics_have_names() -> None:
    """With the one that was meant."""
    with pytest.raises(fo.Unsupported, match=r'no metric "cosin" \(did you mean "cosine"\?\)'):
        BestFit("cosin")  # type: ignore[arg-type]


def test_every_placement_says_what_it_is() -> None:
    """Name, title and source; the registry has them by name."""
    for name, placement in PLACEMENTS.items():
        assert isinstance(placement, type)
        assert issubclass(placement, Placement)
        assert (placement.name, bool(placement.title), bool(placement.source)) == (name, True, True)
