"""Resources of the cluster and named limits over time: of several servers, and of all that a user runs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from instances import instance_in_queues
from reference.limited import WithinLimits, limited_cluster
from reference.simulation import by_events

import fairopt as fo

SCHEDULERS = (
    "drfh",
    "proportional",
    "tsf",
    "drfh:half_life=100:period=50",
    "drfh:first-fit",
    "fifo",
    "backfill",
    "fairtree:half_life=1h",
    "priority",
)
JOBS = fo.Trace(
    *(["L", "C", "L", "C"], [0, 0, 20, 130], [30, 30, 4, 9], [[1, 1], [1, 0], [2, 2], [2, 0]], [100, 100, 50, 70]),
    resources=["cpu", "licences"],
)
ON_SERVER = fo.Instance([[20, 10]], [[1, 1], [1, 0]], users=["L", "C"], resources=["cpu", "licences"])
SHARED = fo.Instance([[20]], [[1, 1], [1, 0]], users=["L", "C"], resources=["cpu"], shared={"licences": 10})


def same(one: fo.Simulation, other: fo.Simulation) -> bool:
    """Do all jobs start and end at the same times, with the same usage and shares all the time? Whole tasks bit for bit."""
    near = 0.0 if one.kind == "greedy" else 1e-9
    arrays = ("times", "usage", "capacity", "dominant_shares", "running", "waiting")
    pairs = [(getattr(one.series, name), getattr(other.series, name)) for name in arrays]
    pairs += [(one.started, other.started), (one.finished, other.finished)]
    return all(np.allclose(a, b, rtol=near, atol=near, equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_shared_resource_is_like_one_of_the_only_server(scheduler: str) -> None:
    """Licences of the cluster, or of its only server: the same run."""
    assert same(fo.simulate(JOBS, SHARED, scheduler), fo.simulate(JOBS, ON_SERVER, scheduler))


@pytest.mark.parametrize("scheduler", [each for each in SCHEDULERS if each not in ("fifo", "backfill", "fairtree:half_life=1h")])
def test_a_limit_that_repeats_a_capacity_changes_nothing(scheduler: str) -> None:
    """In a cluster without limits, and in one with: of all, of each user, of a server; and one that nobody reaches."""
    limits = [
        fo.Limit("all", 20, resource="cpu"),
        fo.Limit("each", 20, resource="cpu", each="user"),
        fo.Limit("there", 10, resource="licences", servers=["server-1"]),
        fo.Limit("many", 1000),
    ]
    assert same(fo.simulate(JOBS, ON_SERVER.replace(limits=limits), scheduler), fo.simulate(JOBS, ON_SERVER, scheduler))


def test_published_licences_over_time() -> None:
    """20 cpu and 10 licences: L has 20/3, C 40/3; C ends at 30 / (40/3) times 100 s, and then L has 10 licences."""
    trace = fo.Trace(["L", "C"], [0, 0], [30, 30], [[1, 1], [1, 0]], [100, 100], resources=["cpu", "licences"])
    found = fo.simulate(trace, SHARED, "drfh")
    assert found.finished == pytest.approx([225 + (3000 - 225 * 20 / 3) / 10, 225])
    assert found.mean_utilization["licences"] == pytest.approx(0.8)


def test_streams_have_the_names_of_their_users() -> None:
    """A scheduler of one's own sees users by name, with the shape of the task where a user has several."""
    seen: set[tuple[str, ...]] = set()

    def look(instance: fo.Instance) -> np.ndarray:
        seen.add(instance.users)
        return np.zeros((instance.n_users, instance.n_servers))

    trace = fo.Trace(["ann", "ann", "bob"], [0, 0, 0], [1, 1, 1], [[1, 4], [2, 4], [1, 1]], [9, 9, 9], resources=["cpu", "memory"])
    fo.simulate(trace, fo.Instance([[8, 16]], [[1, 1]], users=["x"], resources=["cpu", "memory"]), look, until=1)
    assert seen == {("ann/2 cpu", "ann/1 cpu", "bob")} or seen == {("ann/1 cpu", "ann/2 cpu", "bob")}


def test_a_limit_of_each_user_is_of_all_its_shapes() -> None:
    """At most 3 tasks of each user, of whatever shape: j.doe has two shapes, and a dot in its name."""
    trace = fo.Trace(["j.doe", "j.doe", "bob"], [0, 0, 0], [9, 9, 9], [[1], [2], [1]], [10, 10, 10], resources=["cpu"])
    cluster = fo.Instance([[90]], [[1]], users=["x"], resources=["cpu"], limits=[fo.Limit("three", 3, each="user")])
    for scheduler in ("drfh", "drfh:half_life=inf", "max-min", "drfh:first-fit", "fifo"):
        found = fo.simulate(trace, cluster, scheduler, until=9)
        assert found.series.running[0] == pytest.approx([3, 3])
        assert found.series.limit_use[0] == pytest.approx([1])


def test_who_is_not_in_the_trace_cannot_be_limited() -> None:
    """A limit that names a user of the cluster, none of whose users has a job, is refused: it would do nothing."""
    cluster = SHARED.replace(limits=[fo.Limit("one", 1, users=["C"])])
    trace = fo.Trace(["ann"], [0], [1], [[1, 0]], [9], resources=["cpu", "licences"])
    with pytest.raises(fo.InvalidInstance, match='limit "one": there is no user "C"'):
        fo.simulate(trace, cluster, "drfh")


def jobs_for(cluster: fo.Instance, seed: int) -> fo.Trace:
    """Return random jobs of several shapes of its users, with a server that goes and one that comes."""
    rng = np.random.default_rng(seed)
    number, rows = 10, cluster.n_servers
    demands = np.hstack([rng.integers(0, 4, (number, 2)) + np.array([1, 0]), rng.integers(0, 3, (number, 1))])
    demands[: number // 2] = demands[number // 2 :]  # shapes that come back
    row = cluster.servers[int(rng.integers(rows))]
    return fo.Trace(
        *([str(name) for name in rng.choice(cluster.users, number)], np.sort(rng.integers(0, 30, number)), rng.integers(1, 6, number)),
        *(demands, rng.integers(2, 20, number)),
        resources=cluster.resources,
        events=[(10, "remove", row, 1), (20, "add", row, 2)],
    )


@pytest.mark.parametrize("seed", range(24))
def test_whole_tasks_event_by_event_as_on_paper(seed: int) -> None:
    """Each task starts at the same time on the same server: named limits of all selections, licences, servers that come and go."""
    cluster = limited_cluster(seed)
    trace = jobs_for(cluster, seed)
    placement, metric = (("first-fit", "l1"), ("best-fit", "l1"), ("worst-fit", "l1"), ("best-fit", "l2"))[seed % 4]
    oracle = WithinLimits(trace, cluster, placement, metric)
    expected = oracle.simulate()
    assert oracle.within()
    options = {"metric": metric} if placement == "best-fit" else {}
    found = fo.simulate(trace, cluster, {"criterion": "drfh", "placement": placement} | options)
    assert found.task_start is not None
    assert found.task_server is not None
    actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in np.flatnonzero(np.isfinite(found.task_start))}
    assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}
    assert (found.series.limit_use <= 1 + 1e-9).all() or any(limit.each == "server" for limit in cluster.limits)  # of removed servers


@pytest.mark.parametrize("notion", ["drfh", "proportional"])
@pytest.mark.parametrize("seed", range(3))
def test_each_moment_solved_anew(seed: int, notion: str) -> None:
    """Ends of jobs as in a loop that solves the instance of each moment, one stream a user."""
    cluster = limited_cluster(40 + seed)
    user = np.random.default_rng(seed).integers(0, cluster.n_users, 8)
    trace = fo.Trace(
        *([cluster.users[n] for n in user], np.arange(8) * 3, np.full(8, 3), cluster.demands[user], np.full(8, 7)),
        resources=cluster.resources,
    )
    found = fo.simulate(trace, cluster, notion)
    np.testing.assert_allclose(found.finished, by_events(trace, cluster, notion), rtol=1e-7)
    assert (found.series.limit_use <= 1 + 1e-7).all()


@pytest.mark.parametrize("scheduler", ["fifo", "backfill", "fairtree:half_life=1h", "priority:unit=a"])
@pytest.mark.parametrize("seed", range(4))
def test_no_limit_is_ever_exceeded(seed: int, scheduler: str) -> None:
    """At each start of a task: recounted from the tasks that run, as the limits say."""
    cluster = limited_cluster(60 + seed)
    trace = jobs_for(cluster, seed)
    found = fo.simulate(trace, cluster, scheduler)
    assert found.task_start is not None
    assert found.task_server is not None
    oracle, job = WithinLimits(trace, cluster, "first-fit"), trace.job_of
    end = found.task_start + trace.task_durations
    runs = np.flatnonzero(np.isfinite(found.task_start))
    assert runs.size
    for now in np.unique(found.task_start[runs]):
        here = runs[(found.task_start[runs] <= now) & (end[runs] > now)]
        oracle.running = [(Fraction(0), int(t), int(job[t]), int(found.task_server[t])) for t in here]
        assert oracle.within()


@pytest.mark.parametrize("scheduler", ["max-min:first-fit", "cdrf:best-fit"])
def test_what_queues_keep_is_counted_row_by_row_as_over_all_rows(scheduler: str) -> None:
    """Other amounts where their user may not run change nothing, but that kept parts count row by row; servers leave and come back."""
    compared = 0
    for seed in range(24):
        rng, drawn = np.random.default_rng(seed), instance_in_queues(seed)
        keeping = [
            replace(queue, lending_limit={name: amount // 3 for name, amount in queue.guarantee.items()}, quotas=())
            for queue in drawn.queues
        ]
        plain = drawn.replace(queues=keeping, guarantees=None)
        barred = ~plain.eligibility[:, :, None]
        if not barred.any() or not any(queue.lending_limit for queue in keeping):
            continue
        elsewhere = np.where(barred, 2 * plain.demands[:, None] + 1, plain.demands[:, None])
        trace = fo.Trace(
            [*plain.users] * 2,
            np.repeat([0.0, 7.0], plain.n_users),
            rng.integers(1, 12, 2 * plain.n_users),
            np.vstack([plain.demands] * 2),
            rng.integers(3, 15, 2 * plain.n_users),
            resources=plain.resources,
            events=[(5.0, "remove", plain.servers[0], 1), (11.0, "add", plain.servers[0], 1)],
        )
        clusters = (plain, plain.replace(demands=elsewhere, eligibility=plain.eligibility))
        one, other = (fo.simulate(trace, cluster, scheduler, until=60) for cluster in clusters)
        np.testing.assert_array_equal(one.task_start, other.task_start)
        np.testing.assert_array_equal(one.task_server, other.task_server)
        compared += 1
    assert compared > 5
