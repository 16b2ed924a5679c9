"""Who stops at each level, and by what."""

from __future__ import annotations

import fairopt as fo


def test_own_tasks_parallelism_and_full_servers() -> None:
    """10 GPUs: a has its 1 task, b its one server of 4; c and d have what is left."""
    instance = fo.Instance(
        [[4], [4], [2]],
        [[1], [1], [1], [1]],
        tasks=[1, 20, 20, 20],
        parallelism={"b": 0.5},
        users=["a", "b", "c", "d"],
        servers=["i", "j", "k"],
        resources=["gpu"],
    )
    allocation = fo.solve(instance, "drfh")
    by = {user: names for stops in allocation.stopped_by for user, names in stops.items()}
    assert by["a"] == ("tasks of a",)
    assert by["b"] == ("servers of b",)
    assert by["c"] == by["d"] == ("gpu @ i", "gpu @ j", "gpu @ k")
    assert [tuple(stops) for stops in allocation.stopped_by] == [level.users for level in allocation.levels]


def test_limits_and_guarantees_of_queues() -> None:
    """8 GPUs: the lab is guaranteed 2 and limited to 3."""
    queues = [fo.Queue("lab", guarantee={"gpu": 2}, limit={"gpu": 3}), fo.Queue("course")]
    instance = fo.Instance(
        [[8]], [[1], [1]], queues=queues, queue_of=["lab", "course"], users=["x", "y"], servers=["pool"], resources=["gpu"]
    )
    allocation = fo.solve(instance, "drfh")
    stops = {
        (level.part, user): names for level, by in zip(allocation.levels, allocation.stopped_by, strict=True) for user, names in by.items()
    }
    assert "guaranteed gpu of lab" in stops["the guarantees", "x"]
    assert stops["the surplus", "x"] == ("gpu of lab",)
    assert stops["the surplus", "y"] == ("gpu @ pool",)


def test_a_guarantee_that_is_kept() -> None:
    """b's 4 GPUs are all there are on server i; a guarantees 4 as well, and finds them on j (see docs/explanation/trees.md)."""
    instance = fo.Instance(
        [[4], [4]],
        [[1], [1], [1]],
        eligibility=[[1, 0], [0, 1], [1, 0]],
        queues=[fo.Queue("a", guarantee={"gpu": 4}), fo.Queue("b", guarantee={"gpu": 4})],
        queue_of=["a", "a", "b"],
        users=["x", "y", "z"],
        servers=["i", "j"],
        resources=["gpu"],
    )
    for exact in (False, True):
        allocation = fo.solve(instance, "drfh", exact=exact)
        assert allocation.levels[0].users == ("x",)
        assert allocation.levels[0].floors == {"guaranteed gpu of b": 4}
        assert "guaranteed gpu of b" in allocation.stopped_by[0]["x"]
        assert allocation.to_dict()["levels"][0]["floors"] == {"guaranteed gpu of b": 4}
        said = str(fo.explain(allocation, "x", resolves=0))
        assert "In the guarantees it rises no further, so that what guarantees give together is kept: guaranteed gpu of b (4)." in said


def test_time_of_servers() -> None:
    """Under time division a server's time is full."""
    instance = fo.Instance([[1]], [[1], [1]], rates=[[2], [3]], users=["x", "y"], servers=["s"])
    assert fo.solve(instance, "drfh").stopped_by == ({"x": ("time of s",), "y": ("time of s",)},)


def test_resources_of_the_cluster_and_limits() -> None:
    """A level names of them what its user needs: 8 licences stop a, the server b; limit l stops c of the lower tier, who never rose."""
    pool = fo.Instance([[20]], [[1, 1], [1, 0]], resources=["cpu"], shared={"licence": 8}, users=["a", "b"], servers=["s"])
    assert fo.solve(pool, "max-min").stopped_by == ({"a": ("licence of the cluster",)}, {"b": ("cpu @ s",)})
    late = fo.Instance(
        [[20]],
        [[1], [1]],
        resources=["cpu"],
        users=["c", "d"],
        servers=["s"],
        limits=[fo.Limit("l", 4)],
        queues=[fo.Queue("q"), fo.Queue("r", tier=1)],
        queue_of=["q", "r"],
    )
    assert fo.solve(late, "max-min").stopped_by == ({"d": ("l",)}, {"c": ("l",)})
