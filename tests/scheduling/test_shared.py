"""Greedy schedules check resources of the whole cluster at each task."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import Unsupported

PLACEMENTS = ("first-fit", "best-fit", "worst-fit", "random")


def drawn(seed: int, servers: int) -> fo.Instance:
    """A random cluster with two shared resources."""
    rng = np.random.default_rng(seed)
    demands = rng.integers(0, 4, (4, 4)).astype(float)
    demands[:, 0] = np.maximum(demands[:, 0], 1)
    return fo.Instance(
        rng.integers(8, 30, (servers, 2)),
        demands,
        weights=rng.integers(1, 4, 4),
        shared={"ansys": float(rng.integers(5, 20)), "uplink": float(rng.integers(5, 20))},
    )


@pytest.mark.parametrize("criterion", ["drfh", "cdrf", "max-min"])
@pytest.mark.parametrize("seed", range(4))
def test_on_the_only_server(seed: int, criterion: str) -> None:
    """As if the server had the resource: the same tasks, in the same order, in floats and in fractions."""
    pool = drawn(seed, 1)
    capacities = np.concatenate([pool.capacities, pool.shared_capacity[None]], axis=1)
    other = pool.replace(capacities=capacities, shared=None, resources=pool.resources)
    for exact in (False, True):
        mine, theirs = (fo.schedule(each, criterion, record=True, exact=exact) for each in (pool, other))
        assert mine.tasks.tolist() == theirs.tasks.tolist()
        assert mine.trace.users.tolist() == theirs.trace.users.tolist()


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("seed", range(4))
def test_no_task_more_fits(seed: int, placement: str) -> None:
    """Within all limits, and maximal: of whoever has a server with room, a shared resource is used up."""
    instance = drawn(10 + seed, 3)
    found = fo.schedule(instance, "drfh", placement=placement)
    assert (found.shared_usage <= instance.shared_capacity).all()
    free, left = instance.capacities - found.usage, instance.shared_capacity - found.shared_usage
    for n in range(instance.n_users):
        room = (free >= instance.server_demands[n]).all(axis=1).any()
        assert not (room and (left >= instance.shared_demands[n]).all())


def test_who_needs_no_server() -> None:
    """Its tasks are placed somewhere, and end with what there is of the uplink."""
    instance = fo.Instance([[4], [4]], [[0, 1], [1, 2]], shared={"uplink": 7}, users=["U", "B"])
    found = fo.schedule(instance, "drfh")
    assert found.tasks_per_user @ instance.shared_demands[:, 0] <= 7
    assert found.tasks_per_user.tolist() == [3, 2]


def test_guarantees_and_limits_of_queues() -> None:
    """Of a shared resource, as of any."""
    instance = drawn(2, 2).replace(
        demands=[[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 0, 1]],
        shared={"ansys": 6, "uplink": 9},
        queues=[fo.Queue("lab", guarantee={"ansys": 4}, limit={"uplink": 3})],
        queue_of=["lab", None, None, "lab"],
        weights=None,
    )
    found = fo.schedule(instance, "drfh")
    assert found["lab"].used["ansys"] >= 4
    assert found["lab"].used["uplink"] == 3
    assert found.shared_usage.tolist() == [6, 3]


@pytest.mark.parametrize("seed", range(4))
def test_lending_limits(seed: int) -> None:
    """A queue keeps a part of a shared resource, as it would of the only server."""
    queues = [fo.Queue("lab", guarantee={"ansys": 4}, lending_limit={"ansys": 1})]
    pool = drawn(seed, 1).replace(queues=queues, queue_of=["lab", None, None, None], tasks=[1, np.inf, np.inf, np.inf])
    capacities = np.concatenate([pool.capacities, pool.shared_capacity[None]], axis=1)
    other = pool.replace(capacities=capacities, shared=None, resources=pool.resources)
    assert fo.schedule(pool, "drfh").tasks.tolist() == fo.schedule(other, "drfh").tasks.tolist()


def test_what_is_refused() -> None:
    """Shares of each server."""
    with pytest.raises(Unsupported, match="whole cluster"):
        fo.schedule(drawn(0, 2), "psdsf")


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_slots_are_of_servers(seed: int, exact: bool) -> None:
    """Slots are cut from servers alone, and count alone in shares; a shared resource is a limit of amounts on tasks in slots."""
    instance = drawn(20 + seed, 3)
    slots = 6
    cut = instance.replace(demands=instance.server_demands, shared={"ansys": None, "uplink": None})
    within = [
        fo.Limit(name, amount, amounts=demand)
        for name, amount, demand in zip(instance.shared, instance.shared_capacity, instance.shared_demands.T, strict=True)
    ]
    found = fo.schedule(instance, "drfh", placement="slots", slots=slots, exact=exact, record=True)
    expected = fo.schedule(cut.replace(limits=within), "drfh", placement="slots", slots=slots, exact=exact, record=True)
    assert found.tasks.tolist() == expected.tasks.tolist()
    assert found.trace.users.tolist() == expected.trace.users.tolist()
    assert (found.shared_usage <= instance.shared_capacity).all()
    plenty = instance.replace(shared={"ansys": 1e6, "uplink": 1e6})
    free = fo.schedule(cut, "drfh", placement="slots", slots=slots, exact=exact)
    assert fo.schedule(plenty, "drfh", placement="slots", slots=slots, exact=exact).tasks.tolist() == free.tasks.tolist()
