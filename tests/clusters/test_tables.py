"""The tables of openb and of Google's cluster, and logs in the Standard Workload Format, worked out by hand."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo

EXPORTS = Path(__file__).parent / "exports"


# openb ---------------------------------------------------------------------------------------------------------------------------


def test_openb_classes() -> None:
    """Cores, GiB and cards; models are constraints; two pods of one class are two tasks; 8 cards of a T4 node of 2 can never be."""
    result = fo.import_openb(EXPORTS / "openb_nodes.csv", EXPORTS / "openb_pods.csv")
    instance = result.instance
    assert (instance.servers, instance.counts.tolist()) == (("n0", "n1 +1", "n3"), [1, 2, 1])
    assert instance.capacities.tolist() == [[32, 256, 0], [96, 384, 8], [64, 256, 2]]
    demand = dict(zip(instance.users, zip(instance.demands.tolist(), instance.tasks, strict=True), strict=True))
    assert demand == {
        "BE 1 cpu 0 memory 1 gpu G2": ([1, 0, 1], 1),
        "BE 8 cpu 30 memory 2 gpu G2|T4": ([8, 30, 2], 1),  # "T4|G2|T4" names a model twice
        "LS 4 cpu 16 memory": ([4, 16, 0], 1),
        "LS 6 cpu 12 memory 0.46 gpu": ([6, 12, 0.46], 2),
    }
    assert instance.eligibility.tolist() == [[False, True, False], [False, True, True], [True] * 3, [False, True, True]]
    assert instance.weights.tolist() == [1, 1, 1, 1]
    assert result.current is None
    assert any("relaxation" in note for note in result.notes)
    assert [each.where.rpartition(", ")[2] for each in result.left_out] == ["line 6"]


def test_openb_qualities_of_service_divide_their_weight() -> None:
    """One weight each."""
    result = fo.import_openb(EXPORTS / "openb_nodes.csv", EXPORTS / "openb_pods.csv", users="qos", weights={"LS": 3})
    assert result.to_frame()["weight"].to_dict() == pytest.approx({"BE": 1, "LS": 3})


def test_openb_at_a_time() -> None:
    """At 80 s p0, p1 and p3 are there; p2 was deleted at 60, p5 at 70."""
    result = fo.import_openb(EXPORTS / "openb_nodes.csv", EXPORTS / "openb_pods.csv", at=80)
    assert result.instance.tasks.sum() == 3
    assert not any("G2" in user and user.startswith("BE 1 ") for user in result.instance.users)


def test_openb_configurations_are_nodes_with_a_count(tmp_path: Path) -> None:
    """The same cluster, shorter."""
    (tmp_path / "nodes.csv").write_text(
        "cpu_milli,memory_mib,gpu,model,count\n32000,262144,0,,1\n96000,393216,8,G2,2\n64000,262144,2,T4,1\n"
    )
    short, long = (
        fo.import_openb(nodes, EXPORTS / "openb_pods.csv").instance for nodes in (tmp_path / "nodes.csv", EXPORTS / "openb_nodes.csv")
    )
    assert (short.counts.sum(), short.total_capacity.tolist()) == (long.counts.sum(), long.total_capacity.tolist())
    assert fo.solve(short, "drfh").tasks_per_user == pytest.approx(fo.solve(long, "drfh").tasks_per_user)


# Google ----------------------------------------------------------------------------------------------------------------------


def test_google_tasks_of_one_shape_are_one_user() -> None:
    """Two jobs of U1 have one shape; what asks for nothing is left out and counted."""
    result = fo.import_google2011(EXPORTS / "google_machines.csv", EXPORTS / "google_tasks.csv")
    assert result.instance.users == ("U1/0.25 cpu 0.25 memory", "U1/0.0625 cpu 0.03125 memory", "U2")
    assert result.instance.tasks.tolist() == [4, 50, 8]
    assert result.instance.counts.tolist() == [30, 10]
    assert result.why_left_out["task", "asks for nothing"][0] == 3
    assert any("different machines" in note for note in result.notes)


@pytest.mark.parametrize(
    ("at", "machines"),
    [
        (0, {(0.5, 0.25): 2, (1, 1): 1}),
        (6, {(0.5, 0.25): 1, (1, 1): 1}),
        (8, {(0.5, 0.5): 1, (1, 1): 1}),
        (9, {(0.5, 0.25): 1, (0.5, 0.5): 1, (1, 1): 1}),
    ],
)
def test_google_events_are_followed(at: float, machines: dict[tuple[float, float], int]) -> None:
    """Machine 2 goes at 5 s and comes back at 9, machine 1 has more memory from 7 on, machine 4 has no capacity."""
    instance = fo.import_google2011(EXPORTS / "google_machine_events.csv", EXPORTS / "google_tasks.csv", at=at).instance
    assert {(c, m): int(n) for (c, m), n in zip(instance.capacities.tolist(), instance.counts, strict=True)} == machines


def test_tables_may_be_compressed(tmp_path: Path) -> None:
    """By gzip."""
    for name in ("google_machines.csv", "google_tasks.csv"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((EXPORTS / name).read_bytes()))
    packed = fo.import_google2011(tmp_path / "google_machines.csv.gz", tmp_path / "google_tasks.csv.gz")
    assert packed.instance == fo.import_google2011(EXPORTS / "google_machines.csv", EXPORTS / "google_tasks.csv").instance


# Standard Workload Format ------------------------------------------------------------------------------------------------------


def test_swf_at_the_busiest_moment() -> None:
    """At 25 s: 8 processors of job 1 and 8 of job 2 run, 12 of job 3 and 4 of job 4 wait; job 5 never began."""
    result = fo.import_swf(EXPORTS / "log.swf", memory=4)
    instance = result.instance
    assert result.summary["at"] == 25
    assert (instance.counts.tolist(), instance.capacities.tolist()) == ([8], [[2, 4]])
    tasks = dict(zip(instance.users, zip(instance.tasks, result.held, strict=True), strict=True))
    assert tasks == {"user 1": (8, 8), "user 2/0.5 memory": (12, 0), "user 2/1 cpu": (8, 8), "user 3": (4, 0)}
    assert instance.demands[0].tolist() == [1, 2048 / 2**20]  # KiB per processor, as requested
    assert result.current is not None
    assert result.current.certificate.feasibility == 0


def test_swf_at_another_moment() -> None:
    """At 70 s job 1 runs, job 2 has ended, job 3 runs, job 4 waits until 75 and never ran."""
    result = fo.import_swf(EXPORTS / "log.swf", at=70)
    assert dict(zip(result.instance.users, result.held, strict=True)) == {"user 1": 8, "user 2": 12, "user 3": 0}
    assert result.instance.resources == ("cpu",)
    with pytest.raises(fo.InvalidInstance, match=r"no job runs or waits at 900 s; the log goes from 0 to 210 s"):
        fo.import_swf(EXPORTS / "log.swf", at=900)


def test_swf_groups_queues_and_the_cluster_can_be_given() -> None:
    """Instead of the comments."""
    result = fo.import_swf(EXPORTS / "log.swf", users="queue", nodes=4, processors=32, at=25)
    assert set(result.owners) == {"queue 0", "queue 1"}
    assert (result.instance.counts.tolist(), result.instance.capacities.tolist()) == ([4], [[8]])


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_swf_the_busiest_moment_is_the_busiest(seed: int) -> None:
    """By trying every second."""
    from fairopt.clusters.swf import _busiest

    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 30, 8)).astype(float)
    end, processors = submit + rng.integers(0, 20, 8).astype(float), rng.integers(1, 9, 8).astype(float)
    asked = [float(processors[(submit <= t) & (t < end)].sum()) for t in range(60)]
    moment = _busiest(submit, end, processors)
    assert asked[int(moment)] == max(asked)
    assert int(moment) == asked.index(max(asked)) or max(asked) == 0


def test_swf_users_of_many_digits_are_told_apart(tmp_path: Path) -> None:
    """12345678 and 12345679 are two users, in an instance and in a trace."""
    job = "{0}  {0} 0 90 6 -1 -1 6 90 -1 1 {1} 1 -1 1 -1 -1 -1\n"
    log = tmp_path / "log.swf"
    log.write_text("; MaxNodes: 8\n" + job.format(1, 12345678) + job.format(2, 12345679))
    expected = {"user 12345678", "user 12345679"}
    assert set(fo.import_swf(log).instance.users) == expected
    assert set(fo.trace_swf(log).users) == expected


def test_google_machines_that_differ_in_the_fifth_digit(tmp_path: Path) -> None:
    """Two configurations have two names."""
    machines, tasks = tmp_path / "machines.csv", tmp_path / "tasks.csv"
    machines.write_text("platform,cpu,mem,count\nA,0.50001,0.5,3\nA,0.50002,0.5,4\n")
    tasks.write_text("user,cpu,mem,n_tasks\nU1,0.02,0.01,40\n")
    assert fo.import_google2011(machines, tasks).instance.servers == ("A 0.50001 cpu 0.5 memory", "A 0.50002 cpu 0.5 memory")
