"""Simulations with queues: event by event as on paper in fractions, and what a schedule and an exact solution know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from instances import decimal_tree, instance_in_queues, trace_in_queues, with_lenders
from queue_oracle import with_orders
from reference.tree_simulation import TreeSimulation

import fairopt as fo
from fairopt.solvers import compiled

SEEDS = (*range(20), 100)  # 100: a limit on some servers is released, and the task fits on another of them


@pytest.mark.parametrize("lenders", [False, True])
@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit"])
def test_event_by_event_as_in_fractions(placement: str, lenders: bool) -> None:
    """Each task starts at the same time on the same server: limits are given back when tasks end, guarantees are needed again."""
    for seed in SEEDS[::2] if lenders else SEEDS:
        whole = instance_in_queues(seed)
        cluster = decimal_tree(with_lenders(whole, seed) if lenders else whole).replace(tasks=None)
        trace = trace_in_queues(cluster, seed)
        criterion, share = (("drfh", "dominant"), ("drfh", "sum"), ("tsf", "sum"))[seed % 3]
        expected = TreeSimulation(trace, cluster, criterion, placement, queue_share=share).simulate()
        found = fo.simulate(trace, cluster, {"criterion": criterion, "placement": placement, "queue_share": share})
        assert found.task_start is not None
        assert found.task_server is not None
        started = np.flatnonzero(np.isfinite(found.task_start))
        actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in started}
        assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}, seed


def test_listed_queues_event_by_event_as_in_fractions() -> None:
    """Whose turn it is in a listed queue is asked anew for each task, so the first user comes again when a task of it ends."""
    for seed in range(6):
        cluster = with_orders(decimal_tree(instance_in_queues(seed)), seed).replace(tasks=None)
        trace = trace_in_queues(cluster, seed)
        criterion, share = (("drfh", "dominant"), ("drfh", "sum"), ("tsf", "sum"))[seed % 3]
        expected = TreeSimulation(trace, cluster, criterion, "first-fit", queue_share=share).simulate()
        found = fo.simulate(trace, cluster, {"criterion": criterion, "placement": "first-fit", "queue_share": share})
        assert found.task_start is not None
        assert found.task_server is not None
        started = np.flatnonzero(np.isfinite(found.task_start))
        actual = {int(t): (found.task_start[t], int(found.task_server[t])) for t in started}
        assert actual == {task: (float(when), server) for task, (when, server) in expected.items()}, seed


@pytest.mark.parametrize("scheduler", ["drfh", "drfh:first-fit", "drfh:half_life=1h"])
def test_a_listed_queue_follows_the_cluster_and_not_the_log(scheduler: str) -> None:
    """ben has tasks of two shapes and submits first; ann comes before ben in the cluster, and has all that the queue can get."""
    cluster = fo.Instance(
        [[8.0]],
        np.ones((3, 1)),
        resources=["gpu"],
        users=["ann", "ben", "cleo"],
        queues=[fo.Queue("A", order="listed"), fo.Queue("B")],
        queue_of=["A", "A", "B"],
    )
    trace = fo.Trace(["ben", "ben", "ann", "cleo"], [0] * 4, [6] * 4, [[1], [2], [1], [1]], [10.0] * 4, resources=["gpu"])
    found = fo.simulate(trace, cluster, scheduler, until=5)
    assert (8 * found.series.dominant_shares[0]).tolist() == pytest.approx([4, 0, 4])
    assert found.users == ("ann", "ben", "cleo")


def jobs_of(*names: str, demands: list[list[float]]) -> fo.Trace:
    """One job each of 30 tasks, all at once, that run for 10 s."""
    number = len(names)
    return fo.Trace(names, np.zeros(number), np.full(number, 30), demands, np.full(number, 10.0), resources=["gpu"])


def two_owners(**more: Any) -> fo.Instance:
    """12 GPUs; A and B are users of two queues of equal weight."""
    return fo.Instance(
        [[12.0]],
        [[1.0], [1.0]],
        resources=["gpu"],
        users=["A", "B"],
        queues=[fo.Queue("a", **more), fo.Queue("b")],
        queue_of=["a", "b"],
    )


def running(found: fo.Simulation) -> dict[str, float]:
    """GPUs that each user holds at the beginning."""
    return dict(zip(found.users, (12 * found.series.dominant_shares[0]).round(9).tolist(), strict=True))


@pytest.mark.parametrize("placement", ["first-fit", "random-round-robin", "random-server", "random"])
def test_a_limit_holds_at_any_time(placement: str) -> None:
    """A may hold 4 of 12 GPUs, with tasks of 1 and of 3 GPUs; in the end all have run."""
    cluster = two_owners(limit={"gpu": 4})
    found = fo.simulate(jobs_of("A", "A", "B", demands=[[1], [3], [1]]), cluster, {"criterion": "drfh", "placement": placement})
    assert running(found) == {"A": 4, "B": 8}
    assert found.series.dominant_shares[:, 0].max() == pytest.approx(4 / 12)
    assert found.ended.tolist() == [30, 30, 30]


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "random-round-robin", "random-server"])
def test_guarantees_that_do_not_fit_are_met_to_the_same_part_at_any_time(placement: str) -> None:
    """20 and 10 of 12 GPUs: 8 and 4, also of GPUs that are given back: an earlier owner leaves them at 5, when A holds 4."""
    queues = [fo.Queue("a", guarantee={"gpu": 20}), fo.Queue("b", weight=7, guarantee={"gpu": 10}), fo.Queue("c")]
    cluster = fo.Instance([[12.0]], np.ones((3, 1)), resources=["gpu"], users=["A", "B", "C"], queues=queues, queue_of=["a", "b", "c"])
    scheduler = {"criterion": "drfh", "placement": placement}
    assert running(fo.simulate(jobs_of("A", "B", "C", demands=[[1]] * 3), cluster, scheduler, until=1)) == {"A": 8, "B": 4, "C": 0}
    trace = fo.Trace(["A", "C", "B", "A"], [0, 0, 1, 1], [4, 8, 9, 9], [[1]] * 4, [99.0, 5.0, 99.0, 99.0], resources=["gpu"])
    found = fo.simulate(trace, cluster, scheduler, until=6)
    assert found.task_start is not None
    assert [int((found.task_start[first:last] == 5).sum()) for first, last in ((12, 21), (21, 30))] == [4, 4]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("scheduler", ["drfh", "drfh:first-fit", "drfh:best-fit", "drfh:random-server", "last", "priority"])
def test_what_queues_keep_follows_the_servers_that_are_there(scheduler: str, plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A and B keep 20 each; C has tasks without end. Before 12 s there are 50 servers: 10 are left for C. Of 20 servers A has its half."""
    monkeypatch.setattr(compiled, "_loaded", set())
    monkeypatch.setattr(compiled, "is_being_compiled", lambda *step: False)  # wait for another process that compiles
    monkeypatch.setattr(compiled, "PATIENCE", np.inf if plain else -1.0)
    monkeypatch.setattr(compiled, "PATIENCE_IN_ALL", np.inf)
    monkeypatch.setattr(compiled, "PATIENCE_IF_KEPT", np.inf)

    def last(user: int, free: fo.FloatArray, demand: fo.FloatArray, fits: fo.IntArray) -> int:
        return int(fits[-1])

    chosen: Any = {"criterion": "drfh", "placement": last} if scheduler == "last" else scheduler
    keep: Any = {"guarantee": {"cpu": 20}, "lending_limit": {"cpu": 0}}
    cluster = fo.Instance(
        *([[1]], np.ones((3, 1))), counts=[100], resources=["cpu"], servers=["m"], users=["a", "b", "c"], queue_of=["A", "B", "C"],
        queues=[fo.Queue("A", **keep), fo.Queue("B", **keep), fo.Queue("C")],
    )  # fmt: skip

    def run(cluster: fo.Instance, events: list[fo.Event], jobs: dict[str, int]) -> list[list[float]]:
        number = len(jobs)
        trace = fo.Trace(
            *(list(jobs), np.zeros(number), list(jobs.values()), np.ones((number, 1)), [10.0] * number), resources=["cpu"], events=events
        )
        found: list[list[float]] = fo.simulate(trace, cluster, chosen, until=30, step=5).series.running.round(6).tolist()
        return found

    gone, back = (0.0, "remove", "m", 50), (12.0, "add", "m", 50)
    assert run(cluster, [gone], {"c": 400}) == [[0, 0, 10]] * 7
    expected = [[0, 0, 10]] * 3 + [[0, 0, 60]] * 4
    assert run(cluster, [gone, back], {"c": 400}) == expected
    assert run(cluster.replace(counts=[50]), [back], {"c": 400}) == expected
    assert run(cluster, [(0.0, "remove", "m", 80)], {"c": 200, "a": 50})[0] == [10, 0, 0]
    assert run(cluster, [(12.0, "remove", "m", 50)], {"c": 400})[4:] == [[0, 0, 10]] * 3


def test_a_queue_without_jobs_at_a_moment_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    """An exact scheduler solves at every event, and b has come only at the second one."""
    cluster = fo.Instance(
        [[4]],
        [[1], [1]],
        resources=["gpu"],
        users=["x", "y"],
        queues=[fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 1})],
        queue_of=["a", "b"],
    )
    trace = fo.Trace(["x", "y"], [0.0, 5.0], [4, 4], [[1.0], [1.0]], [10.0, 10.0], resources=["gpu"])
    assert fo.simulate(trace, cluster, "drfh").ended.round(6).tolist() == [4, 4]
    assert caplog.text == ""


def test_an_owner_of_two_shapes_is_one_leaf() -> None:
    """Greedy and exact: A and B have half each, whatever the shapes of A."""
    trace = jobs_of("A", "A", "B", demands=[[1], [2], [1]])
    assert running(fo.simulate(trace, two_owners(), "drfh:first-fit", until=1)) == {"A": 6, "B": 6}
    assert running(fo.simulate(trace, two_owners(), "drfh", until=1)) == pytest.approx({"A": 6, "B": 6})


def test_the_exact_scheduler_follows_the_tree() -> None:
    """Guarantees, limits and users' own guarantees of two shapes, at each event."""
    trace = jobs_of("A", "A", "B", demands=[[1], [2], [1]])
    assert running(fo.simulate(trace, two_owners(limit={"gpu": 3}), "drfh", until=1)) == pytest.approx({"A": 3, "B": 9})
    alone = two_owners(weight=0).replace(guarantees=[2, 0])
    assert running(fo.simulate(trace, alone, "drfh", until=1)) == pytest.approx({"A": 2, "B": 10})
    assert running(fo.simulate(trace, alone, "drfh:first-fit", until=1)) == {"A": 2, "B": 10}


@pytest.mark.parametrize("scheduler", ["drfh:best-fit", "drfh:random-round-robin", "drfh"])
def test_a_trace_names_the_queues_of_its_users(scheduler: str) -> None:
    """As if the cluster named the users in these queues; one of them is in the root."""
    number = 12
    rng = np.random.default_rng(3)
    names = rng.choice(["A", "B", "C", "D"], number).tolist()
    queue = {"A": "a", "B": "a", "C": "b", "D": None}
    jobs = (names, np.arange(number), rng.integers(1, 9, number), rng.integers(1, 3, (number, 1)), rng.integers(5, 30, number))
    trace = fo.Trace(*jobs, resources=["gpu"], queues=[queue[name] for name in names])
    queues = [fo.Queue("a", weight=2, limit={"gpu": 7}), fo.Queue("b", guarantee={"gpu": 3})]
    users = list(trace.users)
    known = fo.Instance(
        *([[12.0]], np.ones((len(users), 1))), resources=["gpu"], users=users, queues=queues, queue_of=[queue[name] for name in users]
    )
    bare = fo.Instance([[12.0]], [[1.0]], resources=["gpu"], users=["somebody"], queues=queues, queue_of=["b"])
    expected, found = (fo.simulate(trace, cluster, scheduler) for cluster in (known, bare))
    np.testing.assert_allclose(found.completion, expected.completion, rtol=1e-9)
    np.testing.assert_allclose(found.series.dominant_shares, expected.series.dominant_shares, rtol=1e-9, atol=1e-12)
    assert trace.to_frame()["queue"].fillna("").tolist() == [queue[name] or "" for name in names]
    assert fo.Trace.from_frame(trace.to_frame()).queue_of == trace.queue_of


def test_results_by_queue(tmp_path: Path) -> None:
    """Sums over the users below; the whole cluster first. In tables, files and JSON, where there are queues."""
    queues = [fo.Queue("top"), fo.Queue("a", "top"), fo.Queue("b")]
    cluster = fo.Instance([[12.0]], np.ones((3, 1)), resources=["gpu"], users=["A", "B", "C"], queues=queues, queue_of=["a", "top", "b"])
    found = fo.simulate(jobs_of("A", "B", "B", "C", demands=[[1]] * 4), cluster, "drfh:first-fit")
    frame, users = found.queues_frame, found.users_frame
    assert frame.index.tolist() == ["the cluster", "top", "a", "b"]
    assert frame["jobs"].tolist() == [4, 3, 1, 1]
    assert frame["tasks"].tolist() == [120, 90, 30, 30]
    assert frame["parent"].fillna("").tolist() == ["", "the cluster", "top", "the cluster"]
    assert users["queue"].tolist() == ["a", "top", "b"]
    assert float(frame["mean_completion_s"]["a"]) == float(users["mean_completion_s"]["A"])
    assert frame.loc["the cluster", "mean_completion_s"] == pytest.approx(found.completion.mean())
    assert [each["queue"] for each in found.to_dict()["queues"]] == frame.index.tolist()
    found.save(tmp_path / "queues.csv", "queues")
    assert (tmp_path / "queues.csv").read_text().startswith("queue,parent,jobs")
    flat = fo.simulate(jobs_of("A", demands=[[1]]), fo.Instance([[12.0]], [[1.0]], resources=["gpu"]), "drfh:first-fit")
    assert not flat.to_dict().get("queues")
    with pytest.raises(fo.Unsupported, match='there is no table "queues"'):
        flat.save(tmp_path / "no.csv", "queues")


def test_a_table_of_jobs_names_queues(tmp_path: Path) -> None:
    """A column; a user in two queues is a bad row, with its line."""
    file = tmp_path / "jobs.csv"
    file.write_text("user,queue,submit_s,run_s,gpu\nA,a,0,5,1\nB,,1,5,1\nA,a,2,5,2\n")
    assert fo.load_trace(file).queue_of == ("a", None)
    file.write_text("user,queue,submit_s,run_s,gpu\nA,a,0,5,1\nA,b,1,5,1\n")
    with pytest.raises(fo.InvalidInstance, match='line 3: user "A" submits to queue "a" and to queue "b"'):
        fo.load_trace(file)
    assert fo.load_trace(file, lenient=True).n_jobs == 1


def test_queues_of_a_trace_that_do_not_fit_are_refused() -> None:
    """A queue that the cluster lacks, or that is not the user's there; two queues of one user."""

    def trace(*queues: str | None) -> fo.Trace:
        return fo.Trace(["A", "B"], [0, 0], [1, 1], [[1], [1]], [1, 1], resources=["gpu"], queues=queues)

    for queues, message in (
        (("a", "bb"), r'user "B": the cluster has no queue "bb" \(did you mean "b"\?\); it has a and b'),
        (("a", None), 'user "B" submits to the root, and is in queue "b" of the cluster'),
    ):
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.simulate(trace(*queues), two_owners(), "drfh:first-fit")
    with pytest.raises(fo.InvalidInstance, match='has no queue "a"; it has none; add them there'):
        fo.simulate(trace("a", "b"), fo.Instance([[2]], [[1]], resources=["gpu"]), "drfh:first-fit")
    with pytest.raises(fo.InvalidInstance, match='job "2": user "A" submits to queue "a" and to the root, but a user is in one queue'):
        fo.Trace(["A", "A"], [0, 0], [1, 1], [[1], [1]], [1, 1], queues=["a", None])
    with pytest.raises(fo.InvalidInstance, match="there are 1 queues for 2 jobs"):
        trace("a")
    with pytest.raises(fo.InvalidInstance, match="the queue of job \"1\" is ''"):
        trace("", "b")


def test_regret_compares_with_the_tree() -> None:
    """A tree that both divide alike: nothing is lost."""
    found = fo.simulate(jobs_of("A", "B", demands=[[1], [1]]), two_owners(weight=3), "drfh:first-fit", until=9, regret=1)
    assert found.regret is not None
    assert found.regret["largest"].max() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("scheduler", ["drfh:best-fit", "drfh:random-round-robin"])
def test_one_queue_of_everybody_changes_nothing(scheduler: str) -> None:
    """The walk down a tree of one queue chooses as a flat list does."""
    for seed in range(10):
        bare = decimal_tree(instance_in_queues(seed)).replace(tasks=None, queues=None, queue_of=None, guarantees=None, weights=None)
        trace = trace_in_queues(bare, seed)
        tree = bare.replace(queues=[fo.Queue("all")], queue_of=["all"] * bare.n_users)
        flat, queued = fo.simulate(trace, bare, scheduler), fo.simulate(trace, tree, scheduler)
        np.testing.assert_array_equal(flat.task_start, queued.task_start)
        np.testing.assert_array_equal(flat.task_server, queued.task_server)


def test_what_cannot_follow_a_tree_says_so() -> None:
    """Servers that act alone, criteria without one share, and users who are in no queue that is known."""
    trace = jobs_of("A", "B", demands=[[1], [1]])
    with pytest.raises(fo.Unsupported, match="do not support queues"):
        fo.simulate(trace, two_owners(), "psdsf:period=1")
    with pytest.raises(fo.Unsupported, match="queues"):
        fo.simulate(trace, two_owners(), "psdsf:first-fit")
    with pytest.raises(fo.InvalidInstance, match="the cluster has 2 queues but knows no user of the trace, such as carol"):
        fo.simulate(jobs_of("carol", demands=[[1]]), two_owners(), "drfh:first-fit")
