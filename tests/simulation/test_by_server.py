"""Simulations where tasks take other amounts, and run at other speeds, on other servers."""

from __future__ import annotations

import heapq
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference.baselines import RULES, follow

import fairopt as fo


def lab(seed: int, *, shared: bool = False) -> fo.Instance:
    """Return a cluster of two or three kinds of servers, whose numbers are short decimals."""
    rng = np.random.default_rng(seed)
    n, k, kinds = 3, int(rng.integers(2, 5)), int(rng.integers(2, 4))
    m = 3 if shared else 2
    by_kind = rng.integers(1, 6, (n, kinds, m)) / 2
    speeds = rng.choice([0.25, 0.5, 1.0, 2.0], (n, k))
    speeds[:, int(rng.integers(k))] = 1.0
    if n > 1:
        speeds[1, (np.argmax(speeds[1] == 1) + 1) % k] = 0.0
    return fo.Instance(
        rng.integers(4, 12, (k, 2)).astype(float),
        by_kind[:, rng.integers(0, kinds, k)],
        speeds=speeds,
        weights=[1.0, 2.0, 1.0],
        users=["ann", "bob", "cy"],
        shared={"licence": int(rng.integers(4, 12))} if shared else None,
        resources=["cpu", "memory", "licence"][:m],
    )


def taken(cluster: fo.Instance, n: int, i: int) -> np.ndarray:
    """Return what a task of a user takes on a row."""
    return np.asarray(cluster.demands_by_kind[n, cluster.kind_of[i]])


def jobs(cluster: fo.Instance, seed: int, number: int = 12) -> fo.Trace:
    """Return random jobs, of which some have twice the demand."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, 3, number)
    base = [int(np.flatnonzero(cluster.speeds[n] == 1)[0]) for n in range(3)]
    demands = [taken(cluster, n, base[n]) * int(rng.integers(1, 3)) for n in user]
    return fo.Trace(
        *([cluster.users[n] for n in user], np.sort(rng.integers(0, 30, number)), rng.integers(1, 6, number)),
        *(demands, rng.integers(2, 20, number)),
        resources=cluster.resources,
    )


def on_paper(trace: fo.Trace, cluster: fo.Instance, worth: np.ndarray, fastest: bool) -> dict[int, tuple[float, int]]:
    """Return the start and server of each task: at each moment, whoever does the least work for its weight starts a task where it fits."""
    k, total = cluster.n_servers, cluster.total_capacity
    owner = [cluster.users.index(trace.users[n]) for n in trace.user]
    base = [int(np.flatnonzero(cluster.speeds[n] == 1)[0]) for n in range(3)]

    def demand(j: int, i: int) -> np.ndarray:
        n = owner[j]
        return np.asarray(trace.demands[j] * taken(cluster, n, i) / taken(cluster, n, base[n]))

    free, licences = cluster.capacities.copy(), float(sum(cluster.shared.values()))
    left, first = trace.tasks.tolist(), (np.cumsum(trace.tasks) - trace.tasks).tolist()
    running: list[tuple[Fraction, int, int, int]] = []
    found: dict[int, tuple[float, int]] = {}
    moments = sorted({Fraction(float(each)) for each in trace.submit})
    while moments or running:
        now = min([*moments[:1], *([running[0][0]] if running else [])])
        moments = [each for each in moments if each > now]
        while running and running[0][0] == now:
            _, _, j, i = heapq.heappop(running)
            free[i] += demand(j, i)[:2]
            licences += float(demand(j, i)[2:].sum())
        while True:
            able = {}
            for j in np.flatnonzero(trace.submit <= float(now)).tolist():
                fits = [i for i in range(k) if cluster.speeds[owner[j], i] > 0 and (demand(j, i)[:2] <= free[i] + 1e-9).all()]
                fits = [i for i in fits if demand(j, i)[2:].sum() <= licences + 1e-9]
                if left[j] and fits:
                    able[j] = fits
            if not able:
                break
            share = [sum(cluster.speeds[n, i] * worth[n] for *_, j, i in running if owner[j] == n) / cluster.weights[n] for n in range(3)]
            j = min(able, key=lambda j: (round(share[owner[j]], 9), owner[j], j))
            i = able[j][0]
            if fastest:
                i = min(able[j], key=lambda i: (round(float((demand(j, i) / total).max() / cluster.speeds[owner[j], i]), 9), i))
            task = first[j] + int(trace.tasks[j]) - left[j]
            left[j] -= 1
            found[task] = (float(now), i)
            free[i] -= demand(j, i)[:2]
            licences -= float(demand(j, i)[2:].sum())
            end = now + Fraction(float(trace.durations[j])) / Fraction(float(cluster.speeds[owner[j], i]))
            heapq.heappush(running, (end, task, j, i))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_tasks_run_as_long_as_the_speed_of_their_server_says(seed: int) -> None:
    """Event by event, as on paper: demands by server, durations by speed, the next user by its work."""
    cluster = lab(seed, shared=seed % 2 == 1)
    trace = jobs(cluster, seed)
    placement = "fastest" if seed % 4 > 1 else "first-fit"
    found: Any = fo.simulate(trace, cluster, f"max-min:{placement}")
    started = {int(t): (found.task_start[t], int(found.task_server[t])) for t in np.flatnonzero(np.isfinite(found.task_start))}
    assert started == on_paper(trace, cluster, np.ones(3), placement == "fastest")
    assert (found.series.utilization <= 1 + 1e-9).all()
    owner = found.users.index(trace.users[trace.user[0]])
    assert found.task_start[0] == trace.submit[0]
    speed = cluster.speeds[owner, found.task_server[: int(trace.tasks[0])]]
    assert found.finished[0] == (found.task_start[: int(trace.tasks[0])] + trace.durations[0] / speed).max()


@pytest.mark.parametrize("notion", ["max-min", "drfh", "cdrf", "proportional"])
def test_fluid_jobs_advance_by_their_work(notion: str) -> None:
    """Until the first job ends, nothing changes: it has done the work of the exact allocation of the first moment."""
    for seed in range(3):
        cluster = lab(seed, shared=seed == 2)
        base = [int(np.flatnonzero(cluster.speeds[n] == 1)[0]) for n in range(3)]
        demands = [taken(cluster, n, base[n]) for n in range(3)]
        trace = fo.Trace(cluster.users, [0] * 3, [50] * 3, demands, [30.0, 40.0, 50.0], resources=cluster.resources)
        found = fo.simulate(trace, cluster, notion)
        work = fo.solve(cluster.replace(tasks=[50] * 3), notion).work
        assert np.nanmin(found.finished) == pytest.approx((50 * np.array([30.0, 40.0, 50.0]) / work).min(), rel=1e-6)
        assert (found.series.utilization <= 1 + 1e-7).all()


def test_a_server_twice_as_fast_halves_all_times() -> None:
    """Speeds are those of time: twice all speeds, and jobs that come twice as fast, is the same simulation in half the time."""
    cluster = lab(4)
    trace = jobs(cluster, 4)
    faster = fo.Trace(
        [trace.users[n] for n in trace.user], trace.submit / 2, trace.tasks, trace.demands, trace.durations / 2, resources=trace.resources
    )
    for scheduler in ("max-min", "drfh:fastest"):
        slow, fast = fo.simulate(trace, cluster, scheduler), fo.simulate(faster, cluster, scheduler)
        np.testing.assert_allclose(fast.finished, slow.finished / 2, rtol=1e-9)


def test_equal_demands_and_speeds_of_one_say_nothing() -> None:
    """To the bit, greedily and exactly."""
    cluster = fo.Instance([[8, 9], [5, 7]], [[1, 2], [2, 1], [1, 1]], users=["ann", "bob", "cy"], resources=["cpu", "memory"])
    said = cluster.replace(demands=np.repeat(cluster.demands[:, None], 2, axis=1), speeds=np.ones((3, 2)))
    rng = np.random.default_rng(0)
    trace = fo.Trace(
        [cluster.users[n] for n in rng.integers(0, 3, 9)], np.arange(9), rng.integers(1, 9, 9), rng.integers(1, 3, (9, 2)),
        rng.uniform(1, 9, 9), resources=["cpu", "memory"],
    )  # fmt: skip
    for scheduler in ("drfh", "drfh:fastest"):
        assert (fo.simulate(trace, cluster, scheduler).finished == fo.simulate(trace, said, scheduler).finished).all()


@pytest.mark.parametrize("scheduler", RULES)
def test_schedulers_of_jobs_follow_what_differs(scheduler: str) -> None:
    """Task by task as in a slow loop: gangs over servers of several speeds, estimates, licences, limits of queues, servers that leave."""
    for seed in (0, 1, 2, 3, 4, 109):  # 109: a licence keeps a task off a server that a limit would have counted
        cluster = lab(seed, shared=seed % 2 == 1)
        limited = {"cpu": float(cluster.capacities[:, 0].sum() / 2)}
        queues = [fo.Queue("lab", limit=limited, quotas=[fo.Quota([cluster.servers[0]], limit={"memory": 3.0})])]
        cluster = cluster.replace(counts=[2] + [1] * (cluster.n_servers - 1), queues=queues, queue_of=["lab", "lab", None])
        drawn, rng = jobs(cluster, seed, 30), np.random.default_rng(seed)
        events = [(12.0, "remove", cluster.servers[0], 1), (25.0, "add", cluster.servers[0], 1)]
        follow(
            fo.Trace(
                [drawn.users[n] for n in drawn.user], drawn.submit, drawn.tasks, drawn.demands, drawn.durations, events=events,
                resources=cluster.resources, gangs=rng.random(30) < 0.4, estimates=drawn.durations + rng.integers(0, 9, 30),
            ),
            cluster, scheduler, unit=seed % 2,
        )  # fmt: skip


def test_a_gang_ends_server_by_server_and_leaves_a_gap() -> None:
    """By hand: on the V100 a task takes both GPUs, for twice the time; until then a short job has the A100."""
    cluster = fo.Instance(
        [[2], [2]], [[[1], [2]], [[1], [2]]], speeds=[[1, 0.5], [1, 0.5]], users=["ann", "bob"], servers=["a100", "v100"], resources=["gpu"]
    )
    trace = fo.Trace(["ann"] * 2 + ["bob"], [0, 1, 2], [3, 3, 1], [[1]] * 3, [10, 10, 8], resources=["gpu"], gangs=[True, True, False])
    found: Any = fo.simulate(trace, cluster, "backfill")  # the first gang ends at 10 and at 20; then comes the second; bob could end at 10
    assert found.task_start.tolist() == [0, 0, 0, 20, 20, 20, 10]
    assert found.finished.tolist() == [20, 40, 18]


@pytest.mark.parametrize("slower", [{"speeds": [[1, 0.5], [1, 1]]}, {"demands": [[[1], [2]], [[1], [1]]]}])
def test_a_memory_counts_work(slower: dict[str, Any]) -> None:
    """A could do 6 a second alone, b 8. For 10 s a is alone: it has 1 x 10 s of shares. Then b has all, until it has had as much, at 20 s.

    From then on shares are equal: a has x but for t tasks of it, (4 - t) / 6 = (4 + t) / 8, t = 4/7, and a does 24 in 7 s, b 32.
    """
    pool = fo.Instance([[4], [4]], **({"demands": [[1], [1]]} | slower), users=["a", "b"], servers=["x", "y"], resources=["gpu"])
    trace = fo.Trace(["a", "b"], [0, 10], [60 + 24, 80 + 32], [[1], [1]], [1, 1], resources=["gpu"])
    tree = pool.replace(queues=[fo.Queue("one"), fo.Queue("other")], queue_of=["one", "other"])
    for cluster in (pool, tree):
        np.testing.assert_allclose(fo.simulate(trace, cluster, "drfh:half_life=inf:period=0.5").finished, [27, 27], rtol=1e-7)


def test_who_cannot_follow_it_says_so() -> None:
    """Credits, asynchronous servers, quotas of groups; and a cluster whose users are not those of the trace."""
    cluster = lab(1)
    trace = jobs(cluster, 1)
    promised = cluster.replace(queues=[fo.Queue("lab", guarantee={"cpu": 1})], queue_of=["lab", None, None])
    with pytest.raises(fo.Unsupported, match="group quotas count tasks that are the same everywhere; leave the guarantees out"):
        fo.simulate(trace, promised, "priority:unit=cpu")
    for scheduler in ("karma:alpha=0.5", "psdsf:period=1"):
        with pytest.raises(fo.Unsupported, match=r"differs from server to server.*takes jobs that are the same everywhere"):
            fo.simulate(trace, cluster, scheduler)
    with pytest.raises(fo.InvalidInstance, match="the cluster names no user of the trace"):
        fo.simulate(trace, cluster.replace(users=["x", "y", "z"]), "max-min")
