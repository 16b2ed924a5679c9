"""Demands and speeds by server in a history: a slow loop, numbers by hand, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import fairopt as fo

WORDS = ["entitled", "received", "shortfall", "surplus", "received_tasks"]
DEMANDS = np.array([[[1, 4, 1], [2, 4, 1]], [[1, 2, 0], [1, 2, 0]], [[0.5, 8, 0], [1.5, 4, 1]]])
SPEEDS = np.array([[1, 0.5], [1, 1], [1, 2]])
LAB = fo.Instance(
    [[8, 32], [8, 40]],
    DEMANDS,
    speeds=SPEEDS,
    weights=[1, 2, 1],
    resources=["gpu", "cpu"],
    shared={"licences": 9},
    users=["ann", "bob", "cat"],
    servers=["a100", "v100"],
)


def log(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Return a log of rows of user, submit, start, end in hours, tasks, gpu and server."""
    frame = pd.DataFrame(list(rows), columns=["user", "submit", "start", "end", "tasks", "gpu", "server"])
    return frame.assign(**{name: frame[name] * 3600.0 for name in ("submit", "start", "end")})


def jobs_of(seed: int) -> pd.DataFrame:
    """Return random jobs on both servers, some of which never start; each takes what its user takes where it runs."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(12):
        n, i = int(rng.integers(3)), int(rng.integers(2))
        submit, wait, run = rng.integers(0, 60), rng.integers(0, 30), rng.integers(1, 30)
        never = rng.random() < 0.2
        where, start = (0, np.nan) if never else (i, submit + wait)
        demand = DEMANDS[n, where]
        rows.append((LAB.users[n], submit, start, submit + wait + run, rng.integers(1, 4), *demand, "" if never else LAB.servers[i]))
    return pd.DataFrame(rows, columns=["user", "submit", "start", "end", "tasks", "gpu", "cpu", "licences", "server"])


def most_of_pool(cluster: fo.Instance, n: int) -> float:
    """The most work of the cluster as one pool: a server offers no more than its most plentiful resource allows."""
    offered = [max(c / d for c, d in zip(cluster.capacities[i], DEMANDS[n, i], strict=False)) for i in range(2)]
    found: Any = linprog(-SPEEDS[n], A_ub=DEMANDS[n].T, b_ub=cluster.total_capacity, bounds=[(0, each) for each in offered])
    return float(-found.fun)


def slow_loop(frame: pd.DataFrame, cluster: fo.Instance) -> dict[str, np.ndarray]:
    """Return the sums of each owner in share-hours, and the work that it did, change by change, each solved anew."""
    rows = [row | {"start": row["end"] if np.isnan(row["start"]) else row["start"]} for row in frame.to_dict("records")]
    times = sorted({float(row[name]) for row in rows for name in ("submit", "start", "end")})
    found = {name: np.zeros(5) for name in sorted(set(frame["user"]))}
    most = [most_of_pool(cluster, n) for n in range(3)]
    for first, last in itertools.pairwise(times):
        asked, did = np.zeros(3), np.zeros(3)
        for row in rows:
            n = cluster.users.index(row["user"])
            asked[n] += row["tasks"] * (row["submit"] <= first < row["end"])
            if row["start"] <= first < row["end"]:
                did[n] += row["tasks"] * SPEEDS[n, cluster.servers.index(row["server"])]
        if not asked.any():
            continue
        due = fo.solve(cluster.replace(tasks=asked), "drfh").work
        for name, sums in found.items():
            n = cluster.users.index(name)
            gap = (due[n] - did[n]) / most[n]
            sums += np.array([due[n] / most[n], did[n] / most[n], max(gap, 0.0), max(-gap, 0.0), did[n]]) * (last - first) / 3600
    return found


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_a_slow_loop(seed: int) -> None:
    """Every change solved anew, with limits of amounts and of tasks; time in which tasks only run slower than they could is judged, too."""
    frame = jobs_of(seed)
    for limits in ([], [fo.Limit("few", 9, resource="gpu"), fo.Limit("each", 4, each="user", servers=["a100"])]):
        cluster = LAB.replace(limits=limits)
        found = fo.history(frame, cluster, moments="all", lenient=True).to_frame()
        for name, sums in slow_loop(frame, cluster).items():
            assert found.loc[name, WORDS].to_numpy().tolist() == pytest.approx(sums.tolist(), rel=1e-7, abs=1e-11)


def test_a_queue_of_several_shapes_adds_up_the_work_of_each() -> None:
    """ann has tasks of 1 and of 2 GPUs on A100, twice as many on V100 and half as fast there; alone she does 10 and 5.

    8 A100s hold 4 of 1 GPU and 2 of 2 for an hour: 4/10 and 2/5.
    """
    lab = fo.Instance([[8], [8]], [[[1], [2]]], speeds=[[1, 0.5]], users=["ann"], servers=["a100", "v100"], resources=["gpu"])
    found = fo.history(log(("ann", 0, 0, 1, 4, 1, "a100"), ("ann", 0, 0, 1, 2, 2, "a100")), lab, moments="all")
    assert found.setting.labels == ("ann/2 gpu", "ann/1 gpu")
    assert found.to_frame().loc["ann", WORDS].to_numpy().tolist() == pytest.approx([0.8, 0.8, 0, 0, 6])


def test_a_job_counts_where_it_ran_whatever_its_kind_calls_its_cards() -> None:
    """One A100, or two V100s: two resources. The same jobs on either are one stream; that on the V100s could run faster, and is due it."""
    kinds: Any = {"resources": ["a100", "v100"], "servers": ["new", "old"]}
    lab = fo.Instance(
        [[8, 0], [0, 8]], [[[1, 0], [0, 2]], [[1, 0], [0, 1]]], speeds=[[1.0, 0.5], [1.0, 1.0]], users=["ann", "bob"], **kinds
    )
    rows = [("ann", 0, 0, 3600, 2, 1, 0, "new"), ("ann", 0, 0, 3600, 4, 0, 2, "old")]
    frame = pd.DataFrame(rows, columns=["user", "submit", "start", "end", "tasks", "a100", "v100", "server"])
    found = fo.history(frame, lab, "cdrf", moments="all")
    assert found.setting.labels == ("ann",)
    assert found.contended == (3600.0,)
    # of the 8 + 4/2 that it could do alone, 2 + 4/2 and not 6, and it envies nobody
    assert found.to_frame().loc["ann", [*WORDS, "envy"]].to_numpy().tolist() == pytest.approx([0.6, 0.4, 0.2, 0, 4, 0])
    assert found.due.work.tolist() == pytest.approx([6])
    assert found.held.work.tolist() == pytest.approx([4])
    assert found.held.tasks.ravel().tolist() == pytest.approx([2, 4])


def test_ratios_of_ends_count_work() -> None:
    """Both weigh 1, so alone ann has 4 A100s and 4 V100s, where she does 4 + 2/2 an hour.

    She did 4 tasks' work in 2 hours on the V100s, which would have taken 1 hour on the A100s; 8 of bob on the A100s take 1 hour alone.
    """
    lab = fo.Instance([[8], [8]], [[[1], [2]], [[1], [1]]], speeds=[[1.0, 0.5], [1.0, 1.0]], resources=["gpu"], servers=["a100", "v100"])
    named = lab.replace(users=["ann", "bob"])
    found = fo.history(log(("ann", 0, 0, 2, 4, 2, "v100"), ("bob", 0, 1, 2, 8, 1, "a100")), named, moments="all")
    assert found.to_frame("job")["finish_ratio"].tolist() == pytest.approx([2, 2])


def test_a_task_that_fits_nowhere_is_not_judged() -> None:
    """It asks for 5 GPUs on an A100, or 10 on a V100; servers have 4. One that ran counts from its start."""
    lab = fo.Instance([[4], [8]], [[[1], [2]]], users=["ann"], resources=["gpu"], servers=["a100", "v100"])
    jobs = log(("ann", 0, np.nan, 2, 1, 5, ""), ("ann", 0, 1, 2, 1, 1, "a100"), ("ann", 0, np.nan, 2, 1, 4, ""))
    found = fo.history(jobs, lab, moments="all")
    assert [(each.why, each.jobs, each.first) for each in found.setting.log.unjudged] == [
        ("no server is large enough for one of its tasks", 1, 'job "1"')
    ]
    assert found.setting.log.n_jobs == 2


def test_limits_count_what_a_task_takes_where_it_ran() -> None:
    """6 GPUs: 2 on A100, and 4 for 2 tasks on V100."""
    lab = fo.Instance([[8], [8]], [[[1], [2]]], speeds=[[1, 0.5]], users=["ann"], servers=["a100", "v100"], resources=["gpu"])
    limited = lab.replace(limits=[fo.Limit("ten", 10, resource="gpu"), fo.Limit("one kind", 4, resource="gpu", servers=["v100"])])
    found = fo.history(log(("ann", 0, 0, 1, 2, 1, "a100"), ("ann", 0, 0, 1, 2, 2, "v100")), limited, moments="all")
    assert found.to_frame("limit")["most_use"].tolist() == pytest.approx([0.6, 1])
    assert found.to_frame().loc["ann", "entitled_tasks"] == pytest.approx(4)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([("ann", 0, 0, 1, 2, 1, "")], "the log does not say on which servers 1 record ran; give the server of each"),
        ([("eve", 0, 0, 1, 2, 1, "a100")], 'the cluster has no user "eve", so that nothing says how its tasks differ'),
        ([("team", 0, 0, 1, 2, 7, "a100")], "tasks of dan and cat differ from server to server in other ways, both are of team"),
    ],
)
def test_what_nothing_says_is_refused(rows: list[tuple[Any, ...]], said: str) -> None:
    """In a sentence that says what to do."""
    lab = fo.Instance(
        [[8], [8]],
        [[[1], [2]], [[2], [2]], [[1], [1]]],
        users=["ann", "dan", "cat"],
        owners=[None, "team", "team"],
        resources=["gpu"],
        servers=["a100", "v100"],
        speeds=[[1.0, 1.0], [1.0, 0.5], [1.0, 1.0]],
    )
    with pytest.raises((fo.InvalidInstance, fo.Unsupported), match=said):
        fo.history(log(*rows), lab)


def test_the_demand_says_which_user_of_an_owner_it_is() -> None:
    """A task of 2 GPUs of the team is like dan's, of half the speed on V100."""
    lab = fo.Instance([[8], [8]], [[[2], [2]], [[1], [1]]], users=["dan", "cat"], owners=["team", "team"], resources=["gpu"])
    slow = lab.replace(servers=["a100", "v100"], speeds=[[1.0, 0.5], [1.0, 1.0]])
    found = fo.history(log(("team", 0, 0, 1, 2, 2, "v100"), ("team", 0, 0, 1, 2, 1, "v100")), slow, moments="all")
    assert found.to_frame().loc["team", "received_tasks"] == pytest.approx(3)
