"""Instances that a search draws, changes and shrinks: always sound, and shrinking ends where no step is left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import instances

import fairopt as fo
from fairopt.analysis.worst_cases.small_instances import VARIED, SmallInstances, shrink, simpler, tasks_fit

ALL = SmallInstances(3, 2, 2, (2, 9), (0, 4), VARIED[:4])
BY_SERVER = SmallInstances(3, 2, 2, (2, 9), (0, 4), ("demands-by-server", "speeds"))


def fits_by_hand(instance: fo.Instance) -> bool:
    """Somewhere, one task of each user by itself."""
    return all(
        any(
            instance.eligibility[n, i] and all(instance.demands[n, r] <= instance.capacities[i, r] for r in range(instance.n_resources))
            for i in range(instance.n_servers)
        )
        for n in range(instance.n_users)
    )


def size(instance: fo.Instance) -> tuple[float, ...]:
    """What every step makes smaller, in this order."""
    unlimited = np.isinf(instance.tasks)
    return (
        instance.n_users + instance.n_servers + instance.n_resources,
        0 if instance.placement is None else 1 + int((~instance.placement).sum()),
        int((~unlimited).sum()) + int((instance.weights != 1).sum()) + int((instance.counts != 1).sum()),
        float(
            instance.capacities.sum()
            + instance.demands.sum()
            + instance.weights.sum()
            + instance.counts.sum()
            + instance.tasks[~unlimited].sum()
        ),
    )


@given(st.integers(0, 2**32 - 1))
def test_what_is_drawn_and_changed_is_in_range(seed: int) -> None:
    """Whole numbers between the two given, of the size asked for, in which everybody's task fits."""
    rng = np.random.default_rng(seed)
    instance = ALL.draw(rng)
    for _ in range(5):
        assert instance.capacities.shape == (2, 2)
        assert instance.demands.shape == (3, 2)
        for values, low, high in (
            (instance.capacities, 2, 9),
            (instance.demands, 0, 4),
            (instance.weights, 1, 5),
            (instance.counts, 1, 3),
            (instance.tasks, 1, 5),
        ):
            assert ((values >= low) & (values <= high) & (values == np.round(values))).all()
        assert fits_by_hand(instance)
        changed = ALL.change(instance, rng)
        instance = changed


def test_a_change_is_small() -> None:
    """Half of them touch one number or swap one pair; every array is reached."""
    rng = np.random.default_rng(0)
    instance = ALL.draw(rng)
    touched = {"capacities": 0, "demands": 0, "weights": 0, "counts": 0, "tasks": 0, "placement": 0}
    few = 0
    for _ in range(200):
        changed = ALL.change(instance, rng)
        numbers = {name: int((getattr(changed, name) != getattr(instance, name)).sum()) for name in touched}
        few += sum(numbers.values()) <= 2
        for name in touched:
            touched[name] += numbers[name] > 0
    assert few > 80
    assert min(touched.values()) > 5


def test_no_such_instance() -> None:
    """A demand that no server can hold, said with what to do."""
    with pytest.raises(fo.InvalidInstance, match="allow larger capacities, or smaller demands"):
        SmallInstances(1, 1, 1, (1, 2), (3, 4)).draw(np.random.default_rng(0))


@given(instances(whole=True))
def test_tasks_fit_as_by_hand(instance: fo.Instance) -> None:
    """On an empty server, where the user may run."""
    assert tasks_fit(instance) == fits_by_hand(instance)


@given(instances(whole=True))
def test_every_step_is_smaller_and_sound(instance: fo.Instance) -> None:
    """So shrinking ends."""
    for candidate in simpler(instance):
        assert size(candidate) < size(instance)
        assert fits_by_hand(candidate)


CLAIMS: dict[str, Callable[[fo.Instance], bool]] = {
    "anything": lambda instance: True,
    "two users": lambda instance: instance.n_users >= 2,
    "heavy": lambda instance: bool(instance.weights.max() >= 3),
    "full": lambda instance: bool(instance.capacities.sum() >= 2 * instance.demands.sum()),
    "apart": lambda instance: not instance.eligibility.all(),
    "few": lambda instance: bool(np.isfinite(instance.tasks).any()),
}


@pytest.mark.parametrize("claim", CLAIMS)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_shrinking_ends_where_no_step_keeps_what_is_shown(claim: str, seed: int) -> None:
    """Minimal in the stated sense, and what is shown is still there."""
    instance = ALL.draw(np.random.default_rng(seed))
    shows = CLAIMS[claim]
    if not shows(instance):
        return
    *_, least = shrink(instance, shows)
    assert shows(least)
    assert not any(shows(candidate) for candidate in simpler(least))


def test_to_almost_nothing() -> None:
    """Where anything will do: one user on one server, and no more than the defaults."""
    *_, least = shrink(ALL.draw(np.random.default_rng(3)), lambda instance: True)
    assert least.to_dict()["users"] == [{"name": least.users[0], "demand": {least.resources[0]: 1.0}}]
    assert least.to_dict()["servers"] == [{"name": least.servers[0], "capacity": {least.resources[0]: 1.0}}]


def test_units_labels_and_rates() -> None:
    """A resource in units of 1,000 is one in units of 1; labels stay with their rows, rates too."""
    instance = fo.Instance([[6000], [4000]], [[2000], [2000]], rates=[[3, 2], [5, 1]], users=["a", "b"], servers=["x", "y"])
    *_, least = shrink(instance, lambda smaller: "b" in smaller.users and bool((smaller.capacities >= 2 * smaller.demands).all()))
    assert (least.users, least.servers, least.demands.tolist()) == (("b",), ("y",), [[0.0]])
    assert least.rates.tolist() == [[1.0]]


def test_users_with_guarantees_and_queues_can_be_left_out() -> None:
    """Of two users who both have a guarantee, and of whom one sits in a queue, either can go."""
    instance = fo.Instance(
        [[4.0, 4.0]], [[1.0, 1.0], [1.0, 2.0]], queues=[fo.Queue("research")], queue_of=["research", None], guarantees=[1, 1]
    )
    alone = [(candidate.queue_of, candidate.guarantees.tolist()) for candidate in simpler(instance) if candidate.n_users == 1]
    assert alone == [((None,), [1.0]), (("research",), [1.0])]


def size_by_server(instance: fo.Instance) -> tuple[float, ...]:
    """What every step makes smaller where demands and speeds differ, in this order."""
    demands = instance.demands_by_kind[:, instance.kind_of]
    return (
        instance.n_users + instance.n_servers + instance.n_resources,
        float(instance.speeds.sum()) + int((demands != demands[:, :1]).any(axis=(1, 2)).sum()) * 1000,
        float(instance.capacities.sum() + demands.sum()),
    )


def test_instances_that_differ_by_server() -> None:
    """They are drawn, changed and shrunk in range, every step is smaller, and a task of each user fits somewhere."""
    rng = np.random.default_rng(1)
    instance = BY_SERVER.draw(rng)
    assert instance.demands_by_kind.shape == (3, 2, 2)
    assert instance.speeds.max() > 1
    for _ in range(20):
        instance = BY_SERVER.change(instance, rng)
        demands = instance.demands_by_kind[:, instance.kind_of]
        assert ((instance.speeds >= 1) & (instance.speeds <= 4)).all()
        assert ((demands >= 0) & (demands <= 4) & (demands == np.round(demands))).all()
        fits = instance.eligibility & (demands <= instance.capacities).all(axis=2)
        assert fits.any(axis=1).all() == tasks_fit(instance)
        assert tasks_fit(instance)
    for candidate in simpler(instance):
        assert size_by_server(candidate) < size_by_server(instance)
    claims: list[Callable[[fo.Instance], bool]] = [
        lambda smaller: True,
        lambda smaller: bool((smaller.speeds != smaller.speeds[:, :1]).any()),
        lambda smaller: smaller.demands_by_kind.shape[1] > 1,
    ]
    for shows in claims:
        *_, least = shrink(BY_SERVER.draw(np.random.default_rng(3)), shows)
        assert shows(least)
        assert not any(shows(candidate) for candidate in simpler(least))
        assert least.n_users == 1
        assert least.n_servers == (1 if shows is claims[0] else 2)
