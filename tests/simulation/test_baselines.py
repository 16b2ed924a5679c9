"""Schedulers of jobs: task by task against a slow loop, and what their definitions say by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.baselines import RULES, follow
from strategies import instances, traces

import fairopt as fo


def gangs_of(trace: fo.Trace, cluster: fo.Instance, rng: np.random.Generator) -> fo.Trace:
    """Return the trace with some gangs, and with estimates of whole seconds, some of them too short."""
    estimates = np.maximum(
        np.where(np.isinf(trace.expected_durations), 20.0, trace.expected_durations) + rng.integers(-2, 6, trace.n_jobs), 1.0
    )
    return fo.Trace(
        [trace.users[n] for n in trace.user], trace.submit, trace.tasks, trace.demands, trace.durations,
        eligibility=trace.eligibility, events=trace.events, resources=cluster.resources,
        gangs=rng.random(trace.n_jobs) < 0.4, estimates=estimates,
    )  # fmt: skip


@pytest.mark.parametrize("scheduler", RULES)
@settings(max_examples=40)
@given(data=st.data(), instance=instances(whole=True, max_servers=3, max_users=3))
def test_task_by_task_as_in_a_slow_loop(scheduler: str, data: st.DataObject, instance: fo.Instance) -> None:
    """Several shapes, constraints, gangs, estimates that are too short, users and servers that come and go."""
    cluster = instance.replace(capacities=instance.capacities / 10, tasks=None)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    unit = int(rng.integers(0, cluster.n_resources))
    follow(gangs_of(data.draw(traces(cluster)), cluster, rng), cluster, scheduler, unit)


@pytest.mark.parametrize("scheduler", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_task_by_task_in_a_tree_with_limits(scheduler: str, seed: int) -> None:
    """Two levels of queues with weights and limits, one of them on some servers; forty jobs that compete."""
    rng = np.random.default_rng(seed)
    queues = [
        fo.Queue("lab", weight=2, limit={"cpu": 1.1}),
        fo.Queue("optics", parent="lab", quotas=[fo.Quota(["big"], limit={"cpu": 0.4})]),
        fo.Queue("club", lending_limit={}),
    ]
    cluster = fo.Instance(
        [[0.6, 0.9], [0.3, 0.5]], np.full((4, 2), 0.1), counts=[2, 3], weights=[1, 2, 1, 3], queues=queues,
        queue_of=["optics", "lab", "club", None], users=["a", "b", "c", "d"], servers=["big", "small"], resources=["cpu", "memory"],
    )  # fmt: skip
    user, tasks = rng.integers(0, 4, 40), rng.integers(1, 5, 40)
    demands = (rng.integers(0, 4, (5, 2)) / 10 + [0.1, 0])[rng.integers(0, 5, 40)]
    durations = rng.integers(1, 12, 40).astype(float)
    trace = fo.Trace(
        [cluster.users[n] for n in user], np.sort(rng.integers(0, 40, 40)), tasks, demands, durations, resources=cluster.resources,
        gangs=rng.random(40) < 0.5, estimates=durations + rng.integers(0, 9, 40),
    )  # fmt: skip
    follow(trace, cluster, scheduler, unit=seed % 2)


# 14: nothing of a resource is left, but for rounding; 143, 199, 239: a job that does not fit is passed over, whatever its slice is
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 14, 143, 199, 239])
@pytest.mark.parametrize("lent", [None, 0.3])
def test_task_by_task_with_group_quotas(seed: int, lent: float | None) -> None:
    """Two groups with quotas of one and two resources, which exceed the cluster while servers are away, a limit, and users without.

    With 0.3, of each resource a group lends so much: of memory 1.2 and 0.6 are kept, of 3.3.
    """
    rng = np.random.default_rng(seed)
    lending = ({}, {}) if lent is None else ({"cpu": lent, "memory": lent}, {"memory": lent})
    queues = [
        fo.Queue("lab", guarantee={"cpu": 1.2, "memory": 1.5}, limit={"cpu": 1.7}, lending_limit=lending[0]),
        fo.Queue("optics", parent="lab"),
        fo.Queue("club", guarantee={"memory": 0.9}, lending_limit=lending[1]),
    ]
    cluster = fo.Instance(
        [[0.6, 0.9], [0.3, 0.5]], np.full((5, 2), 0.1), counts=[2, 3], weights=[1, 2, 1, 3, 1], queues=queues,
        queue_of=["optics", "lab", "club", "club", None], users=["a", "b", "c", "d", "e"], servers=["big", "small"],
        resources=["cpu", "memory"],
    )  # fmt: skip
    user, tasks = rng.integers(0, 5, 40), rng.integers(1, 5, 40)
    demands = (rng.integers(0, 4, (5, 2)) / 10 + [0.1, 0])[rng.integers(0, 5, 40)]
    trace = fo.Trace(
        [cluster.users[n] for n in user], np.sort(rng.integers(0, 40, 40)), tasks, demands, rng.integers(1, 12, 40).astype(float),
        resources=cluster.resources, gangs=rng.random(40) < 0.4, events=[(10.0, "remove", "big", 1), (30.0, "add", "big", 1)],
    )  # fmt: skip
    follow(trace, cluster, "priority:half_life=9", unit=seed % 2)


# Definitions, by hand ------------------------------------------------------------------------------------------------------------


def one_machine(*jobs: tuple[str, float, int, float, float], size: int = 4) -> tuple[fo.Trace, fo.Instance]:
    """Return gangs on one machine: user, submission, processors, run time, estimate."""
    user, submit, tasks, run, estimate = zip(*jobs, strict=True)
    trace = fo.Trace(user, submit, tasks, np.ones((len(jobs), 1)), run, estimates=estimate, gangs=np.ones(len(jobs)), resources=["cpu"])
    return trace, fo.Instance([[size]], [[1]], users=["nobody"], resources=["cpu"])


def test_backfill_does_not_delay_the_first_job() -> None:
    """A holds 3 of 4 until 10. B wants all 4. C (1 for 9 s) ends by 10 if it starts at 1, D (1 for 10 s) at 1 would not."""
    trace, cluster = one_machine(("A", 0, 3, 10, 10), ("B", 1, 4, 5, 5), ("D", 1, 1, 10, 10), ("C", 1, 1, 9, 9))
    assert fo.simulate(trace, cluster, "backfill").started.tolist() == [0, 10, 15, 1]
    assert fo.simulate(trace, cluster, "fifo").started.tolist() == [0, 10, 15, 15]


def test_backfill_uses_what_the_reservation_leaves() -> None:
    """As above, but B wants 3: one processor is left beside it, so that D may run for as long as it likes."""
    trace, cluster = one_machine(("A", 0, 3, 10, 10), ("B", 1, 3, 5, 5), ("D", 1, 1, 99, 99), ("E", 1, 1, 99, 99))
    assert fo.simulate(trace, cluster, "backfill").started.tolist() == [0, 10, 1, 15]


def test_backfill_believes_the_estimates() -> None:
    """A says 20 and runs 10: C, who says 12, starts and delays B by two seconds, which nobody could know."""
    trace, cluster = one_machine(("A", 0, 3, 10, 20), ("B", 1, 4, 5, 5), ("C", 1, 1, 11, 12))
    assert fo.simulate(trace, cluster, "backfill").started.tolist() == [0, 12, 1]


def test_the_fair_tree_prefers_who_has_used_less() -> None:
    """A has used the machine for 10 s. At 10 the job of B, submitted last, goes first; with a short half-life A's use is forgotten."""
    trace, cluster = one_machine(("A", 0, 4, 10, 10), ("A", 1, 4, 5, 5), ("B", 2, 4, 5, 5))
    assert fo.simulate(trace, cluster, "fairtree").started.tolist() == [0, 15, 10]
    assert fo.simulate(trace, cluster, "backfill").started.tolist() == [0, 10, 15]


def test_the_pie_is_divided_by_priorities() -> None:
    """A holds all 8 processors for long, then B and A ask for 8 each: B's priority is better, and its slice larger."""
    trace = fo.Trace(["A", "A", "B"], [0, 50, 50], [8, 8, 8], np.ones((3, 1)), [100, 10, 10], resources=["cpu"])
    cluster = fo.Instance([[1]], [[1]], counts=[8], users=["nobody"], resources=["cpu"])
    found = fo.simulate(trace, cluster, "priority:half_life=100")
    assert found.task_start is not None
    real = [0.5 * 0.5 + 8 * 0.5, 0.5 * 0.5]  # at 100, a half-life after the beginning
    slice_b = 8 * (1 / 0.5) / (1 / 0.5 + 1 / real[0])
    assert int((found.task_start[16:] == 100).sum()) == 8 - 1
    assert 7 < slice_b < 8
    assert int((found.task_start[8:16] == 100).sum()) == 1


def test_a_group_gets_its_quota_first() -> None:
    """As above, but A's group has a quota of 5. Of the other 3 B's slice is 2.7, so that 2 start; A's first task in a spin may start."""
    trace = fo.Trace(["A", "A", "B"], [0, 50, 50], [8, 8, 8], np.ones((3, 1)), [100, 10, 10], resources=["cpu"])
    queues = [fo.Queue("lab", guarantee={"cpu": 5}), fo.Queue("club")]
    cluster = fo.Instance([[1]], np.ones((2, 1)), counts=[8], users=["A", "B"], resources=["cpu"], queues=queues, queue_of=["lab", "club"])
    found = fo.simulate(trace, cluster, "priority:half_life=100")
    assert found.task_start is not None
    assert 2 < 3 * (1 / 0.5) / (1 / 0.5 + 1 / (0.5 * 0.5 + 8 * 0.5)) < 3
    assert int((found.task_start[8:16] == 100).sum()) == 5 + 1
    assert int((found.task_start[16:] == 100).sum()) == 2


def started_at(found: fo.Simulation, when: float, jobs: list[int]) -> list[int]:
    """Return how many tasks of each of these jobs started at a time."""
    assert found.task_start is not None
    ends = np.cumsum(found.trace.tasks)
    return [int((found.task_start[ends[job] - found.trace.tasks[job] : ends[job]] == when).sum()) for job in jobs]


@pytest.mark.parametrize(("cores", "machines"), [(30, 1), (1, 30), (10, 3)])
@pytest.mark.parametrize(("held", "expected"), [(19, [10, 20]), (9, [6, 24])])
def test_priorities_are_in_cores(cores: int, machines: int, held: int, expected: list[int]) -> None:
    """HTCondor divides 30 cores 10 : 20 at real priorities 10 and 5, and 6 : 24 at 10 and 2.5, whatever the machines are.

    Who holds c cores for a half-life from 0 on has c / 2 + 1/4 then: A held 19.5 cores, B 9.5 or 4.5.
    """
    trace = fo.Trace(
        ["A", "B", "A", "B"], [0, 0, 100, 100], [39, held, 30, 30], [[0.5], [0.5], [1.0], [1.0]], [100, 100, 10, 10], resources=["memory"]
    )
    cluster = fo.Instance([[cores]], [[1]], counts=[machines], users=["nobody"], resources=["memory"])
    assert started_at(fo.simulate(trace, cluster, "priority:half_life=100"), 100, [2, 3]) == expected


@pytest.mark.parametrize(("cores", "machines"), [(100, 1), (1, 100), (10, 10)])
def test_after_two_days_one_task_runs(cores: int, machines: int) -> None:
    """A has held 100 cores for two half-lives: 75 + 1/8 against 1/2. Its part is 100 / (1 + 75.125 / 0.5) = 0.66 cores: its first task."""
    day = 86400.0
    trace = fo.Trace(["A", "A", "B"], [0, 2 * day, 2 * day], [100, 100, 100], np.ones((3, 1)), [2 * day, 10, 10], resources=["cpu"])
    cluster = fo.Instance([[cores]], [[1]], counts=[machines], users=["nobody"], resources=["cpu"])
    assert round(100 / (1 + (75 + 0.5**3) / 0.5), 2) == 0.66
    assert started_at(fo.simulate(trace, cluster, "priority"), 2 * day, [1, 2]) == [1, 99]


def test_the_unit_is_the_cores_or_the_resource_that_is_named() -> None:
    """A has held 8 of 9 GPUs and 1 core for a half-life, B 1 GPU and 7 cores: 4.25 and 0.75, counted in cores the other way round."""
    demands = [[1 / 8, 1.0], [7.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    trace = fo.Trace(["A", "B", "A", "B"], [0, 0, 100, 100], [8, 1, 9, 9], demands, [100, 100, 9, 9], resources=["Cores", "gpu"])
    cluster = fo.Instance([[9, 9]], [[1, 1]], users=["nobody"], resources=["Cores", "gpu"])
    slice_of_gpus = 9 * (1 / 0.75) / (1 / 0.75 + 1 / 4.25)  # 7.65: 7, and 1 for the other, whose first task may start; then B's first
    assert 7 < slice_of_gpus < 8
    assert started_at(fo.simulate(trace, cluster, "priority:half_life=100:unit=gpu"), 100, [2, 3]) == [1, 8]
    slice_of_cores = 9 * (1 / 0.75) / (1 / 0.75 + 1 / 3.75)  # 7.5, of A: it held 1 core, B 7
    assert 7 < slice_of_cores < 8
    for scheduler in ("priority:half_life=100", "priority:half_life=100:unit=Cores"):
        assert started_at(fo.simulate(trace, cluster, scheduler), 100, [2, 3]) == [8, 1]


def test_tasks_that_take_none_of_the_unit_need_no_slice() -> None:
    """A holds all cores. B's tasks take memory alone: they start, and leave B's priority as it is."""
    trace = fo.Trace(["A", "B"], [0, 1], [4, 3], [[1, 0], [0, 1]], [9, 9], resources=["cpu", "memory"])
    cluster = fo.Instance([[4, 8]], [[1, 1]], users=["nobody"], resources=["cpu", "memory"])
    assert started_at(fo.simulate(trace, cluster, "priority"), 1, [1]) == [3]


def test_quotas_that_do_not_fit_are_scaled() -> None:
    """20 and 10 of 15 cores: 10 and 5. B's past is better, and counts nothing while both are within their quotas."""
    trace = fo.Trace(["A", "A", "B"], [0, 100, 100], [15, 30, 30], np.ones((3, 1)), [100, 10, 10], resources=["cpu"])
    queues = [fo.Queue("a", guarantee={"cpu": 20}), fo.Queue("b", guarantee={"cpu": 10})]
    cluster = fo.Instance([[15]], np.ones((2, 1)), users=["A", "B"], resources=["cpu"], queues=queues, queue_of=["a", "b"])
    assert started_at(fo.simulate(trace, cluster, "priority:half_life=100"), 100, [1, 2]) == [10, 5]


def test_a_gang_starts_whole_or_not_at_all() -> None:
    """Three of four tasks fit on the two servers at 0: the gang waits until all do, at 5, and then holds both."""
    trace = fo.Trace(["A", "B"], [0, 1], [1, 4], [[1], [1]], [5, 3], gangs=[0, 1], resources=["cpu"])
    cluster = fo.Instance([[2]], [[1]], counts=[2], users=["nobody"], resources=["cpu"])
    for scheduler in RULES:
        found = fo.simulate(trace, cluster, scheduler)
        assert found.task_start is not None
        assert found.task_server is not None
        assert found.task_start.tolist() == [0, 5, 5, 5, 5]
        assert found.task_server.tolist() == [0, 0, 0, 1, 1]


def test_what_is_refused() -> None:
    """Each in a sentence that says what to do."""
    trace, cluster = one_machine(("A", 0, 3, 10, 10))
    guaranteed = fo.Instance([[4]], [[1]], users=["A"], resources=["cpu"], guarantees=[1])
    promised = fo.Queue("lab", guarantee={"cpu": 2})
    nested = guaranteed.replace(guarantees=None, queues=[promised, fo.Queue("x", "lab", guarantee={"cpu": 1})], queue_of=["x"])
    on_some = fo.Queue("lab", quotas=[fo.Quota(guaranteed.servers[:1], guarantee={"cpu": 1})])
    for scheduler, where, words in [
        ("drfh:best-fit", cluster, 'use "fifo", "backfill", "fairtree" or "priority"'),
        ("fifo", guaranteed, "leave the guarantees out"),
        ("fairtree", guaranteed.replace(guarantees=None, queues=[promised], queue_of=["lab"]), "as group quotas"),
        ("priority", guaranteed, "put it in a queue"),
        ("priority", nested, "not inside each other"),
        ("priority", guaranteed.replace(guarantees=None, queues=[on_some], queue_of=["lab"]), "on some servers"),
        ("fifo:best-fit", cluster, "takes no placement"),
        ("fairtree:halflife=3", cluster, 'did you mean "half_life"'),
        ("fairtre:half_life=3", cluster, r'no scheduler "fairtre" \(did you mean "fairtree"'),
        ("proportinal", cluster, 'no scheduler "proportinal" .did you mean "proportional"'),
        ("fairtree:half_life=-3", cluster, "give seconds > 0"),
        ("fairtree:backfill=maybe", cluster, "fairtree:backfill=no"),
        ("priority:half_life=inf", cluster, "finite half_life"),
        ("priority:units=cpu", cluster, 'did you mean "unit"'),
        ("priority:unit=cpus", cluster, 'there is no resource "cpus" \\(did you mean "cpu"'),
        ("fairtree:unit=cpu", cluster, 'takes no option "unit"'),
    ]:
        with pytest.raises(fo.Unsupported, match=words):
            fo.simulate(trace, where, scheduler)


@pytest.mark.parametrize(
    ("resources", "words"),
    [(["memory", "gpu"], 'none of memory and gpu is called cpu, cpus, core or cores; name the resource, as in "priority:unit=memory"'),
     (["cpu", "CORES"], 'several may be meant, cpu and CORES; name the resource, as in "priority:unit=cpu"')],
)  # fmt: skip
def test_without_cores_the_unit_must_be_named(resources: list[str], words: str) -> None:
    """Where there are several resources, and none or two of them are cores."""
    trace = fo.Trace(["A"], [0], [1], [[1, 1]], [5], resources=resources)
    cluster = fo.Instance([[4, 4]], [[1, 1]], users=["nobody"], resources=resources)
    with pytest.raises(fo.Unsupported, match=words):
        fo.simulate(trace, cluster, "priority")
    for unit in resources:
        assert fo.simulate(trace, cluster, f"priority:unit={unit}").ended.tolist() == [1]


def test_a_gang_that_is_too_large_never_starts(caplog: pytest.LogCaptureFixture) -> None:
    """It is counted, and blocks nobody; the warning does not blame its single tasks alone."""
    trace, cluster = one_machine(("A", 0, 5, 10, 10), ("B", 1, 4, 5, 5))
    found = fo.simulate(trace, cluster, "fifo")
    assert (found.fits_nowhere, found.started.tolist()[1]) == (("1",), 1)
    assert "or a gang does not fit as a whole: 5 tasks never started" in caplog.text


def test_ties_of_the_fair_tree() -> None:
    """Slurm's page: tied users share a rank, a user tied with an account has the rank of its first user, tied accounts are merged."""
    from fairopt.simulation.baselines.fair_tree import FairTree

    tree = fo.Instance(
        [[1]], np.ones((6, 1)), queues=[fo.Queue("x"), fo.Queue("y"), fo.Queue("z")], queue_of=["x", "x", "y", "y", None, "z"]
    ).tree
    # x and y have used 4 each and the user 4 as much: one level. Merged: 3 of y (1 of 4), 0 and 1 of x (2 of 4), 2 of y (3 of 4); then z.
    ranks = FairTree(tree, np.ones(6)).ranks(np.array([2.0, 2.0, 3.0, 1.0, 4.0, 9.0]))
    assert ranks.tolist() == [1, 1, 2, 0, 0, 3]


def test_columns_of_a_table(tmp_path: pytest.TempPathFactory) -> None:
    """Estimates and gangs, read and written; an empty estimate is the run time."""
    from pathlib import Path

    file = Path(str(tmp_path), "jobs.csv")
    file.write_text("user,submit_s,run_s,tasks,cpu,estimate_s,gang\nA,0,5,2,1,9,yes\nB,1,7,1,1,,\n")
    trace = fo.load_trace(file)
    assert trace.expected_durations.tolist() == [9, 7]
    assert trace.gangs.tolist() == [True, False]
    again = fo.Trace.from_frame(trace.to_frame())
    assert (again.gangs.tolist(), again.expected_durations.tolist()) == ([True, False], [9, 7])
    file.write_text("user,submit_s,run_s,cpu,estimate_s,gang\nA,0,5,1,-1,no\n")
    with pytest.raises(fo.InvalidInstance, match="line 2: estimate_s is not a number > 0"):
        fo.load_trace(file)
    file.write_text("user,submit_s,run_s,cpu,gang\nA,0,5,1,perhaps\n")
    with pytest.raises(fo.InvalidInstance, match="line 2: gang must be yes or no"):
        fo.load_trace(file)
