"""Schedulers that start from the usage that there is: what files say, whose it is, and what it changes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support.command_line import flat, run

import fairopt as fo
from fairopt.simulation.billing import billed, billing_of
from fairopt.simulation.past_usage import past_usage
from fairopt.simulation.plans import scheduler_of

SSHARE = """Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root||||1000||
 lab||2|0.5|700||
  lab|ada|1|0.5|300|0.4|0.1
  lab|gone|1|0.5|200|0.3|0.2
  optics||1|0.3|150||
   optics|bob|1|1|150|1|0.5
 club||1|0.2|300||
  club|eve|1|1|250|1|0.5
"""
USERPRIO = """Last Priority Update:  9/28  13:51
                                Effective   Priority   Res   Total Usage  Time Since
User Name                        Priority    Factor   In Use (wghted-hrs) Last Usage
------------------------------ ------------ --------- ------ ------------ ----------
ada@example.org                     2000.00    200.00      0       112.50    0+01:00
group_lab.bob@example.org           1000.00   1000.00      0        12.50    0+01:00
------------------------------ ------------ --------- ------ ------------ ----------
Number of users: 2                                         0       125.00
"""


def tree() -> fo.Instance:
    """Return two accounts with a user each, and one inside."""
    queues = [fo.Queue("lab", weight=2), fo.Queue("optics", parent="lab"), fo.Queue("club")]
    users = ["lab/ada", "optics/bob", "club/ann"]
    return fo.Instance([[4]], np.ones((3, 1)), users=users, queues=queues, queue_of=["lab", "optics", "club"], resources=["cpu"])


def test_associations_of_slurm(tmp_path: Path) -> None:
    """A user's usage is its own; that of users who are not in the cluster is their account's, and what is of no line below, too."""
    path = tmp_path / "sshare.txt"
    path.write_text(SSHARE)
    found = past_usage(path, tree())
    assert found.users[:, 0].tolist() == [300, 150, 0]
    assert found.queues[:, 0].tolist() == [250, 0, 300]  # gone 200 and 50 of nobody; eve 250 and 50 of nobody
    assert found.notes == ()
    path.write_text(SSHARE.replace("root||||1000||", "root||||2000||"))
    note = 'the usage of "root" is left out: the cluster has no such owner; it is 50 % of what is stated'
    assert past_usage(path, tree()).notes == (note,)


def test_real_priorities_of_htcondor(tmp_path: Path) -> None:
    """Effective priority over factor is faded usage times ln 2 / half-life."""
    path = tmp_path / "userprio.txt"
    path.write_text(USERPRIO)
    cluster = fo.Instance([[4]], np.ones((2, 1)), users=["ada", "bob"], resources=["cpu"])
    found = past_usage(path, cluster)
    np.testing.assert_allclose(found.faded(math.log(2))[0], [10, 1])
    assert found.notes[0].startswith("the priority factors of condor_userprio are left out")
    assert past_usage(path, cluster.replace(weights=[5, 1])).notes == ()
    path.write_text('Name1 = "ada@example.org"\nPriority1 = 30.0\nPriorityFactor1 = 10.0\n')
    assert past_usage(path, cluster).users.tolist() == [[3.0], [0.0]]
    path.write_text('Name1 = "ada@example.org"\nPriority1 = undefined\nPriorityFactor1 = 10.0\n')
    with pytest.raises(fo.InvalidInstance, match='is "undefined", its factor'):
        past_usage(path, cluster)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("cpu=1,gres/gpu=8", 1 * 4 + 8 * 2),
        ("CPU=1,Mem=0.25G", 4 + 0.25 * 16),
        ("mem=0.001", 0.001 * 1024 * 16),
        ("max:cpu=1,gpu=8", 16),
        ({"memory": 0.5}, 8),
        (None, 4),
    ],
)
def test_what_a_task_is_billed(weights: object, expected: float) -> None:
    """As TRESBillingWeights: memory in MiB where no unit follows."""
    lab = fo.Instance([[64, 256, 8]], [[4, 16, 2]], resources=["cpu", "memory", "gpu"], units={"memory": "GiB"})
    assert billed(billing_of(weights, lab), lab.demands)[0] == pytest.approx(expected)  # type: ignore[arg-type]


def test_weights_of_partitions(tmp_path: Path) -> None:
    """Of a file: the same for all, or a refusal."""
    lab = fo.Instance([[64, 8]], [[4, 2]], resources=["cpu", "gpu"])
    path = tmp_path / "partitions.txt"
    path.write_text("PartitionName=a\n   TRESBillingWeights=CPU=1.0,GRES/gpu=8\nPartitionName=b\n   TRESBillingWeights=(null)\n")
    assert billing_of(path, lab).tolist() == [1.0, 8.0]
    path.write_text(path.read_text() + "PartitionName=c\n   TRESBillingWeights=CPU=2.0\n")
    with pytest.raises(fo.InvalidInstance, match="partitions have different TRESBillingWeights"):
        billing_of(path, lab)


@pytest.mark.parametrize("scheduler", ["fairtree:half_life=1h", "maui:interval=1h", "drfh:half_life=inf:period=1"])
def test_who_has_used_more_waits(scheduler: str) -> None:
    """400 core-seconds of 4 cores are 100 s of the cluster, in which the other one catches up."""
    cluster = fo.Instance([[4]], np.ones((2, 1)), users=["a", "b"], resources=["cpu"])
    trace = fo.Trace(["a", "b"], [0, 0], [40, 40], [[1], [1]], [10, 10], resources=["cpu"])
    np.testing.assert_allclose(fo.simulate(trace, cluster, scheduler, usage={"a": 400}).finished, [200, 100], rtol=1e-9)
    np.testing.assert_allclose(fo.simulate(trace, cluster, scheduler, usage={"b": 400}).finished, [100, 200], rtol=1e-9)


def test_real_priorities_divide_the_cores() -> None:
    """Inverse to 10 and 5: a has 10 of 30 cores."""
    cluster = fo.Instance([[30]], np.ones((2, 1)), users=["a", "b"], resources=["cpu"])
    trace = fo.Trace(["a", "b"], [0, 0], [30, 30], [[1], [1]], [10, 10], resources=["cpu"])
    faded = {name: priority * 100 / math.log(2) for name, priority in (("a", 10), ("b", 5))}
    started = fo.simulate(trace, cluster, "priority:half_life=100", usage=faded).task_start
    assert started is not None
    assert [int((tasks == 0).sum()) for tasks in (started[:30], started[30:])] == [10, 20]


@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_weights_that_follow(strength: float) -> None:
    """Against a slow loop of one resource: weights, a late user, each period its weights."""
    cluster = fo.Instance([[6]], np.ones((2, 1)), users=["a", "b"], resources=["cpu"], weights=[2, 1])
    trace = fo.Trace(["a", "b"], [0, 20], [12, 12], [[1], [1]], [40, 10], resources=["cpu"])
    half_life, period = 30.0, 2.0
    found = fo.simulate(trace, cluster, f"drfh:follow={strength}:half_life={half_life}:period={period}")
    left, used, now, ends = np.array([480.0, 120.0]), np.zeros(2), 0.0, [math.nan, math.nan]
    rate = math.log(2) / half_life
    whole = 0.0
    next_event = 20.0
    while not all(map(math.isfinite, ends)):
        here = np.array([left[0] > 1e-9, left[1] > 1e-9 and now >= 20])
        part = np.array([2, 1]) * here / (np.array([2, 1]) @ here)
        usage = used / whole if whole else np.zeros(2)
        weights = np.where(here, np.maximum(part + strength * (part - usage), 0), 0)
        x = np.minimum(6 * weights / weights.sum(), 12) if weights.sum() else np.zeros(2)
        step = min([period, *([next_event - now] if now < next_event else []), *(left[n] / x[n] for n in range(2) if x[n] > 0)])
        fade = math.exp(-rate * step)
        used, whole = used * fade + x / 6 * (1 - fade) / rate, whole * fade + (1 - fade) / rate
        left, now = left - x * step, now + step
        for n in range(2):
            if left[n] <= 1e-9 and not math.isfinite(ends[n]):
                ends[n] = now
    np.testing.assert_allclose(found.finished, ends, rtol=1e-7)


@pytest.mark.parametrize(("usage", "held"), [("", (2.5, 7.5)), (":usage=resource", (5.0, 5.0))])
def test_weights_follow_the_usage_of_each_resource(tmp_path: Path, usage: str, held: tuple[float, float]) -> None:
    """a has had all CPUs for 10 s and no memory; then both ask for memory alone, of which there are 10.

    With a usage of dominant shares, a has 1/2 + (1/2 - 1)/2 = 1/4 and b 3/4; with one of each resource, both have had no memory. A run that
    is stopped goes on bit for bit.
    """
    cluster = fo.Instance([[10, 10]], np.ones((2, 2)), users=["a", "b"], resources=["cpu", "memory"])
    demands = [[1, 0], [0, 1], [0, 1]]
    trace = fo.Trace(["a", "a", "b"], [0, 10, 10], [10, 50, 50], demands, [10, 50, 50], resources=["cpu", "memory"])
    scheduler = f"drfh:follow=0.5:period=5{usage}"
    found = fo.simulate(trace, cluster, scheduler, step=1)
    at = int(np.searchsorted(found.series.times, 12))
    assert found.series.running[at] == pytest.approx(held)
    asked = iter(range(1000))
    part = fo.simulate(trace, cluster, scheduler, step=1, resume=tmp_path / "state", stopped=lambda: next(asked) > 10)
    assert not part.complete
    again = fo.simulate(trace, cluster, scheduler, step=1, resume=tmp_path / "state")
    np.testing.assert_array_equal(again.finished, found.finished)


def test_a_user_whose_weight_of_a_resource_is_0_gets_nothing_that_needs_it() -> None:
    """With k = 1 a, who has had all CPUs, has the weight 1/2 + (1/2 - 1) = 0 of them, and 1/2 of memory; b has 1 and 1/2.

    So b has all 10 CPUs, and each 5 of memory: b's jobs that need CPUs alone take no part of its weight of memory.
    """
    cluster = fo.Instance([[10, 10]], np.ones((2, 2)), users=["a", "b"], resources=["cpu", "memory"])
    demands = [[1, 0], [1, 0], [0, 1], [1, 0], [0, 1]]
    trace = fo.Trace(["a", "a", "a", "b", "b"], [0, *[10] * 4], [10, *[50] * 4], demands, [10, *[50] * 4], resources=["cpu", "memory"])
    found = fo.simulate(trace, cluster, "drfh:follow=1:period=5:usage=resource", step=1)
    at = int(np.searchsorted(found.series.times, 12))
    assert found.series.running[at] == pytest.approx([5, 15])


def test_weights_follow_where_demands_differ_by_server() -> None:
    """Two servers of 8 CPUs: a task of a takes 1 on the first and 2 on the second, and one of b 1 on each.

    For 10 s a runs alone, 8 tasks on the first and 4 on the second: a usage of (8 + 8) / 16 = 1. Then a, with the weight
    1/2 + (1/2 - 1)/2 = 1/4, and b, with 3/4, have work in this proportion to what each could do with all CPUs, 12 and 16:
    a has 12 u on the first server, which is cheaper for it, and b the rest: 12 u + 3 (16 u) = 16, u = 4/15.
    """
    demands = [[[1], [2]], [[1], [1]]]
    cluster = fo.Instance([[8], [8]], demands, users=["a", "b"], resources=["cpu"])
    trace = fo.Trace(["a", "a", "b"], [0, 10, 10], [12, 50, 50], [[1], [1], [1]], [10, 50, 50], resources=["cpu"])
    found = fo.simulate(trace, cluster, "drfh:follow=0.5:period=5", step=1)
    at = int(np.searchsorted(found.series.times, 12))
    assert found.series.running[at] == pytest.approx([12 * 4 / 15, 48 * 4 / 15])


def test_weights_follow_in_a_tree_and_go_on(tmp_path: Path) -> None:
    """The queue that has had more gets less; a stopped run goes on bit for bit."""
    trace = fo.Trace(["lab/ada", "optics/bob", "club/ann"], [0, 0, 0], [40] * 3, [[1]] * 3, [10] * 3, resources=["cpu"])
    scheduler = "drfh:follow=2:half_life=60:period=3"
    usage = {"club": 200, "optics/bob": 60}
    whole = fo.simulate(trace, tree(), scheduler, usage=usage)
    assert whole.finished.argmin() == 0
    assert whole.details["residual"] <= 1e-8
    asked = iter(range(1000))
    part = fo.simulate(trace, tree(), scheduler, usage=usage, resume=tmp_path / "state", stopped=lambda: next(asked) > 10)
    assert not part.complete
    again = fo.simulate(trace, tree(), scheduler, usage=usage, resume=tmp_path / "state")
    np.testing.assert_array_equal(again.finished, whole.finished)
    with pytest.raises(fo.InvalidInstance, match="with other options"):
        fo.simulate(trace, tree(), scheduler, usage={"club": 1}, resume=tmp_path / "state")


@pytest.mark.parametrize(
    ("usage", "scheduler", "message"),
    [
        ({"a": -1}, "fairtree", 'usage of "a": -1; give a number >= 0'),
        ({"a": math.nan}, "fairtree", 'usage of "a": nan'),
        ({"z": 1}, "fairtree", "none of its owners is in the cluster; it has z"),
        ({"a": [1, 2]}, "fairtree", "the usage is given for several windows"),
        ({"a": 1}, "backfill", '"backfill" has no memory'),
        ({"a": 1}, "karma", '"karma" has no memory'),
        ({"a": 1}, "drfh:follow=1", "need a half-life"),
        ({"a": 1}, "drfh:follow=1:usage=resource", "one number for each owner"),
        ({"a": 1}, "drfh:follow=1:usage=cpu", 'usage is "cpu"'),
    ],
)
def test_refusals(usage: dict[str, float], scheduler: str, message: str) -> None:
    """What, where, and what to do."""
    cluster = fo.Instance([[4]], np.ones((2, 1)), users=["a", "b"], resources=["cpu"])
    trace = fo.Trace(["a", "b"], [0, 0], [4, 4], [[1], [1]], [10, 10], resources=["cpu"])
    with pytest.raises(fo.FairoptError, match=message):
        fo.simulate(trace, cluster, scheduler, usage=usage)


def test_a_queue_has_no_weight_of_each_resource() -> None:
    """Its weight is one number."""
    trace = fo.Trace(["lab/ada"], [0], [4], [[1]], [10], resources=["cpu"])
    with pytest.raises(fo.Unsupported, match="a queue has one weight for all resources"):
        fo.simulate(trace, tree(), "drfh:follow=1:usage=resource")
    kinds = fo.Instance([[4], [4]], [[1]], users=["a"], resources=["cpu"], speeds=[[1, 2]])
    with pytest.raises(fo.Unsupported, match=r":usage=resource gives each resource a weight.*; leave it out"):
        fo.simulate(fo.Trace(["a"], [0], [1], [[1]], [9], resources=["cpu"]), kinds, "drfh:follow=1:usage=resource")


def test_on_the_command_line(tmp_path: Path) -> None:
    """A table; several schedulers, of which those with a memory know it; rows of nobody are named."""
    (tmp_path / "jobs.csv").write_text("user,submit_s,run_s,tasks,cpu\na,0,10,40,1\nb,0,10,40,1\n")
    (tmp_path / "usage.csv").write_text("name,usage\na,400\nc,100\n")
    cluster = fo.Instance([[4]], np.ones((2, 1)), users=["a", "b"], resources=["cpu"])
    fo.save(cluster, tmp_path / "c.yaml")
    line = ("simulate", tmp_path / "jobs.csv", "--cluster", tmp_path / "c.yaml", "--usage", tmp_path / "usage.csv")
    found = run(*line, "--scheduler", "fairtree", "--scheduler", "fifo", "--csv")
    assert 'the usage of "c" is left out: the cluster has no such owner; it is 20 % of what is stated' in flat(found.stderr)
    message = flat(run(*line, "--billing", "gpu=1", "--scheduler", "fairtree", status=2).stderr)
    assert 'billing: the cluster has no resource "gpu"' in message
    message = flat(run(*line, "--scheduler", "fifo", "--scheduler", "drfh:best-fit", status=2).stderr)
    assert "usage and billing are for schedulers with a memory" in message.replace("--usage and --billing", "usage and billing")


@pytest.mark.parametrize(("word", "taken"), [("tsf", False), ("psdsf", False), ("drf", True), ("drfh", True)])
def test_a_weight_for_each_resource_is_refused_where_the_scheduler_is_named(word: str, taken: bool) -> None:
    """Not when the first job comes: before the trace and the cluster are looked at."""
    spec = f"{word}:follow=1:period=5:usage=resource"
    if taken:
        assert scheduler_of(spec)[0] == spec
        return
    with pytest.raises(fo.Unsupported, match=f'^"{word}" takes one weight for each user, .*leave :usage=resource out, or use "drf"'):
        scheduler_of(spec)
