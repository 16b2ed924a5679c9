"""Slurm: what jobs ask for is not what they were given, and what waiting jobs will be given is worked out from both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import by_user, import_records, job, node

import fairopt as fo

GPUS = [node("g1", 32, gres="gpu:a100:4"), node("g2", 32, gres="gpu:v100:4")]
NO_MEMORY = {"memory_per_node": None, "memory_per_cpu": None}  # null in 22.05
UNSET = {name: {"set": False, "infinite": False, "number": 0} for name in NO_MEMORY}  # and later


def running(identity: int, on: str, given: str, asked: str = "", **more: Any) -> dict[str, Any]:
    """Make a job that runs."""
    return job(identity, asked or given, job_state=["RUNNING"], nodes=on, tres_alloc_str=given, **more)


def only(result: fo.Import) -> dict[str, Any]:
    """Return what there is to know of the only user."""
    users = by_user(result)
    assert len(users) == 1
    return next(iter(users.values()))


def test_the_type_of_gpu_that_a_job_was_given_does_not_bind_it(tmp_path: Path) -> None:
    """``--gres=gpu:1``, given an a100, a v100, and waiting: one shape, which may run on both."""
    asked = "cpu=4,mem=24G,node=1,gres/gpu=1"
    jobs = [running(n, f"g{n}", f"{asked},gres/gpu:{kind}=1", asked) for n, kind in ((1, "a100"), (2, "v100"))]
    result = import_records(tmp_path, GPUS, [*jobs, job(3, asked)])
    assert only(result) == {"demand": {"cpu": 4, "memory": 24, "gpu": 1}, "tasks": 3, "held": 2, "on": {"g1 +1"}}


@pytest.mark.parametrize(
    "asked",
    [
        {"tres": "cpu=4,mem=24G,node=1,gres/gpu=1,gres/gpu:v100=1"},
        {"tres": "cpu=4,mem=24G,node=1,gres/gpu=1", "tres_per_node": "gres:gpu:v100:1"},  # accounting does not track types
        {"tres": "cpu=4,mem=24G,node=1", "tres_per_task": "gres/gpu:v100:1"},  # nor GPUs
        {"tres": "cpu=4,mem=24G,node=1", "tres_per_job": "gres/gpu:v100"},
    ],
)
def test_the_type_of_gpu_that_a_job_asks_for_binds_it(tmp_path: Path, asked: dict[str, Any]) -> None:
    """In any field, and whether it runs or waits; the GPUs count where accounting does not."""
    tres = asked.pop("tres")
    jobs = [running(1, "g2", "cpu=4,mem=24G,node=1", tres, **asked), job(2, tres, **asked)]
    assert only(import_records(tmp_path, GPUS, jobs)) == {
        "demand": {"cpu": 4, "memory": 24, "gpu": 1},
        "tasks": 2,
        "held": 1,
        "on": {"g2"},
    }


def test_several_types_that_no_node_has_together(tmp_path: Path) -> None:
    """A job on two nodes, with a GPU of each: a task on each of them. Where one node has both, it may run there alone."""
    asked = "cpu=4,mem=24G,node=2,gres/gpu=2,gres/gpu:a100=1,gres/gpu:v100=1"
    both = job(1, asked, node_count=2, tres_per_job="gres:gpu:a100:1,gres:gpu:v100:1")
    result = import_records(tmp_path, GPUS, [both])
    assert only(result) == {"demand": {"cpu": 2, "memory": 12, "gpu": 1}, "tasks": 2, "held": 0, "on": {"g1 +1"}}
    assert any("1 job asks for several types of a generic resource that no node has together" in note for note in result.notes)
    result = import_records(tmp_path, [*GPUS, node("g3", 32, gres="gpu:a100:2,gpu:v100:2")], [both])
    assert only(result)["on"] == {"g3"}


def test_several_types_on_a_node_count_together_which_is_said(tmp_path: Path) -> None:
    """One whole GPU and seven parts of another: a job of two whole ones would never start."""
    typed = job(1, "cpu=4,mem=24G,node=1,gres/gpu=2,gres/gpu:a100=2")
    result = import_records(tmp_path, [node("m", 32, gres="gpu:a100:1,gpu:1g.5gb:7")], [typed])
    assert only(result)["on"] == {"m"}
    assert any("1 node with several types of one generic resource, which count together" in note for note in result.notes)
    assert not any("several types" in note for note in import_records(tmp_path, GPUS, [typed]).notes)


def test_a_job_that_no_node_may_run_is_not_called_large(tmp_path: Path) -> None:
    """Nothing has the feature that it asks for."""
    jobs = [job(1, "cpu=4,mem=24G,node=1"), job(2, "cpu=4,mem=24G,node=1", features="nosuch")]
    (left,) = import_records(tmp_path, GPUS, jobs).left_out
    assert left.why == "no server meets its constraints, so it can never start"


def test_waiting_jobs_demand_what_others_with_the_same_request_were_given(tmp_path: Path) -> None:
    """One CPU asked for, two given, as cores have two threads: one shape, of whatever owner."""
    asked = "cpu=1,mem=2G,node=1"
    jobs = [running(1, "n1", "cpu=2,mem=2G,node=1", asked), job(2, asked), job(3, asked, account="b"), job(4, "cpu=3,mem=2G,node=1")]
    users = by_user(import_records(tmp_path, [node("n1")], jobs))
    assert {name: (user["demand"]["cpu"], user["tasks"]) for name, user in users.items()} == {
        "a/3 cpu": (3, 1),
        "a/2 cpu": (2, 2),
        "b": (2, 1),
    }


@pytest.mark.parametrize(("given", "cpus"), [((2, 4), 4), ((2, 3), 3), ((1, 3), 3)])
def test_waiting_jobs_get_whole_cores_where_running_ones_do(tmp_path: Path, given: tuple[int, int], cpus: int) -> None:
    """Cores have two threads. Jobs for 1 and 3 CPUs that were given 2 and 4: whole cores. If one has 3, cores are divided."""
    jobs = [
        running(n, "n1", f"cpu={got},mem=1G,node=1", f"cpu={cpu},mem=1G,node=1") for n, got, cpu in ((1, given[0], 1), (2, given[1], 3))
    ]
    users = by_user(import_records(tmp_path, [node("n1", threads=2)], [*jobs, job(3, "cpu=3,mem=2G,node=1", account="b")]))
    assert users["b"]["demand"] == {"cpu": cpus, "memory": 2}


def test_what_most_were_given_counts(tmp_path: Path) -> None:
    """Two with 2 CPUs, one with 1."""
    asked = "cpu=1,mem=2G,node=1"
    jobs = [running(n, "n1", f"cpu={cpus},mem=2G,node=1", asked) for n, cpus in ((1, 2), (2, 2), (3, 1))]
    users = by_user(import_records(tmp_path, [node("n1")], [*jobs, job(4, asked)]))
    assert {name: user["tasks"] for name, user in users.items()} == {"a/2 cpu": 3, "a/1 cpu": 1}


@pytest.mark.parametrize("none", [NO_MEMORY, UNSET])
@pytest.mark.parametrize(
    ("flag", "words"), [([], "names no memory"), (["JOB_MEM_SET "], "--mem=0"), (["EXACT_MEMORY_REQUESTED"], "--mem=0")]
)
def test_no_memory_is_that_of_the_smallest_node(tmp_path: Path, none: dict[str, Any], flag: list[str], words: str) -> None:
    """``tres_req_str`` has the memory of the largest node. n0 is too small for 8 CPUs, n1 has 64 GiB."""
    nodes = [node("n0", 4, real_memory=1024), node("n1", real_memory=65536), node("n2", real_memory=262144)]
    result = import_records(tmp_path, nodes, [job(1, "cpu=8,mem=256G,node=1", flags=flag, **none)])
    assert only(result)["demand"] == {"cpu": 8, "memory": 64}
    assert [note for note in result.notes if words in note]


def test_no_memory_is_that_of_the_partition(tmp_path: Path) -> None:
    """DefMemPerCPU in b, DefMemPerNode in c; ``--mem=0`` means all memory all the same; a job of b and c has the first of both."""
    partitions = tmp_path / "partitions.txt"
    partitions.write_text(
        "PartitionName=batch\n   Nodes=n1\n   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED\n\n"
        "PartitionName=b\n   Nodes=n1\n   DefMemPerCPU=512 MaxMemPerNode=UNLIMITED\n\n"
        "PartitionName=c\n   Nodes=n1\n   DefMemPerNode=3072\n"
    )
    tres = "cpu=4,mem=128G,node=1"
    jobs = [job(n, tres, account=each, partition=each, **NO_MEMORY) for n, each in enumerate(("batch", "b", "c", "c,b"))]
    jobs += [job(9, tres, account="all", partition="b", flags=["JOB_MEM_SET"], **NO_MEMORY)]
    result = import_records(tmp_path, [node("n1")], jobs, partitions=partitions)
    memory = {name: user["demand"]["memory"] for name, user in by_user(result).items()}
    assert memory == {"batch": 128, "b": 2, "c": 3, "c,b": 3, "all": 128}
    assert [note.partition(":")[0] for note in result.notes] == [
        "1 waiting job asks for all memory of a node (--mem=0)",
        "1 waiting job names no memory, and DefMemPerCPU or DefMemPerNode of the partition is not known",
    ]


def test_defaults_of_partitions_in_json(tmp_path: Path) -> None:
    """As slurmrestd answers since 23.02, and before."""
    later = {"partition_memory_per_cpu": {"set": True, "infinite": False, "number": 512}}
    for fields in ({"defaults": later}, {"default_memory_per_cpu": 512, "default_memory_per_node": None}):
        (tmp_path / "partitions.json").write_text(json.dumps({"partitions": [{"name": "batch", "nodes": "n1", **fields}]}))
        result = import_records(tmp_path, [node("n1")], [job(1, "cpu=4,mem=128G,node=1", **UNSET)], partitions=tmp_path / "partitions.json")
        assert only(result)["demand"]["memory"] == 2


def test_memory_that_nobody_holds_is_not_shared_out(tmp_path: Path) -> None:
    """``SelectTypeParameters=CR_Core``: running jobs hold no memory, so waiting ones demand none."""
    jobs = [running(1, "n1", "cpu=4,node=1", "cpu=4,mem=128G,node=1", **NO_MEMORY), job(2, "cpu=8,mem=128G,node=1", **NO_MEMORY)]
    result = import_records(tmp_path, [node("n1")], jobs)
    assert {user["demand"]["memory"] for user in by_user(result).values()} == {0}
    assert any("no running job holds memory" in note for note in result.notes)


@pytest.mark.parametrize("word", [{"shared": "none"}, {"shared": ["none"]}, {"exclusive": ["true"]}])
def test_exclusive_is_whole_nodes(tmp_path: Path, word: dict[str, Any]) -> None:
    """All CPUs and GPUs that every node has that could run it, and the memory that it asks for. n0 is too small for 8 CPUs."""
    nodes = [node("n0", 4), node("n1", 32), node("n2", 48, gres="gpu:4")]
    result = import_records(tmp_path, nodes, [job(1, "cpu=8,mem=8G,node=1", **word), job(2, "cpu=1,mem=1G,node=1,gres/gpu=1", account="b")])
    assert by_user(result)["a"]["demand"] == {"cpu": 32, "memory": 8, "gpu": 0}
    gpu = import_records(tmp_path, nodes, [job(1, "cpu=8,mem=8G,node=1,gres/gpu=1", **word)])
    assert only(gpu)["demand"] == {"cpu": 48, "memory": 8, "gpu": 4}


def test_an_array_counts_as_far_as_its_limit_lets_it_run(tmp_path: Path) -> None:
    """``--array=1-20%3`` with one task that runs: two more could run now. Without a limit all 18."""
    limited: dict[str, Any] = {"array_job_id": 7, "array_task_string": "2-19%3", "array_max_tasks": 3}
    one = running(8, "n1", "cpu=4,mem=8G,node=1", array_job_id=7, array_task_id=1, array_max_tasks=3)
    result = import_records(tmp_path, [node("n1")], [one, job(7, **limited)])
    assert (only(result)["tasks"], only(result)["held"]) == (3, 1)
    assert [(each.number, each.why) for each in result.left_out] == [
        (16, "beyond the limit of its array, %3: waits for other tasks of the array")
    ]
    assert only(import_records(tmp_path, [node("n1")], [job(7, array_job_id=7, array_task_string="2-19")]))["tasks"] == 18


def test_an_array_that_is_listed_task_by_task(tmp_path: Path) -> None:
    """``squeue --array``: four tasks wait, and two may run at once."""
    tasks = [job(n, array_job_id=7, array_task_id=n, array_max_tasks=2) for n in range(4)]
    result = import_records(tmp_path, [node("n1")], tasks)
    assert only(result)["tasks"] == 2
    assert sum(each.number for each in result.left_out) == 2


def test_tasks_of_an_array_are_one_shape_in_whatever_partition_they_run(tmp_path: Path) -> None:
    """``-p x,y``: what runs names the partition that it got, what waits names both."""
    nodes = [node("n1", partitions=["x"]), node("n2", partitions=["y"]), node("n3", partitions=["z"])]
    jobs = [running(8, "n1", "cpu=4,mem=8G,node=1", array_job_id=7, array_task_id=1, partition="x")]
    jobs += [job(7, array_job_id=7, array_task_string="2-9", partition="x,y")]
    user = only(import_records(tmp_path, nodes, jobs))
    assert (user["tasks"], user["held"]) == (9, 1)
    assert user["on"] == {"n1 +1"}
    assert len(import_records(tmp_path, nodes, jobs).instance.servers) == 2


def test_tasks_per_node_with_memory_per_node(tmp_path: Path) -> None:
    """``-n4 --ntasks-per-node=2 --mem=3G``: two nodes with 3 GiB each, though ``tres_req_str`` says one. The same once it runs."""
    asked: dict[str, Any] = {"tasks": 4, "tasks_per_node": 2, "memory_per_node": 3072}
    jobs = [job(1, "cpu=4,mem=3G,node=1", **asked)]
    expected = {"cpu": 2, "memory": 3}
    result = import_records(tmp_path, [node("n1"), node("n2")], jobs)
    assert (only(result)["demand"], only(result)["tasks"]) == (expected, 2)
    jobs += [running(2, "n[1-2]", "cpu=4,mem=6G,node=2", "cpu=4,mem=3G,node=1", **asked)]
    user = only(import_records(tmp_path, [node("n1"), node("n2")], jobs))
    assert (user["demand"], user["tasks"], user["held"]) == (expected, 4, 2)


def test_memory_per_cpu_and_per_gpu(tmp_path: Path) -> None:
    """``--mem-per-cpu=2G``, ``--mem-per-gpu=4G``: times the CPUs, times the GPUs."""
    tres = "cpu=4,mem=1G,node=1,gres/gpu=2"
    per_cpu = import_records(tmp_path, GPUS, [job(1, tres, memory_per_cpu=2048, memory_per_node=None)])
    per_gpu = import_records(tmp_path, GPUS, [job(1, tres, memory_per_tres="gres:gpu:4096", **NO_MEMORY)])
    assert (only(per_cpu)["demand"]["memory"], only(per_gpu)["demand"]["memory"]) == (8, 8)


def test_parts_of_a_job_in_the_words_of_22_05(tmp_path: Path) -> None:
    """14 cores on n1 and 2 on n2: of 8 tasks 7 and 1."""
    cores = {"n1": 14, "n2": 2}
    sockets = {name: {str(n): {"cores": {"0": "allocated", "1": "unassigned"}} for n in range(most)} for name, most in cores.items()}
    resources = {"nodes": "n[1-2]", "allocated_nodes": [{"nodename": name, "sockets": each} for name, each in sockets.items()]}
    one = running(1, "n[1-2]", "cpu=16,mem=16G,node=2", tasks=8, node_count=2, job_resources=resources)
    result = import_records(tmp_path, [node("n1", 32), node("n2", 48)], [one])
    assert result.current is not None
    assert dict(zip(result.instance.servers, result.current.tasks[0].tolist(), strict=True)) == {"n1": 7, "n2": 1}


def test_heterogeneous_jobs_are_named(tmp_path: Path) -> None:
    """Two components of one job, in two partitions."""
    nodes = [node("n1"), node("n2", partitions=["gpu"])]
    jobs = [job(1, het_job_id=1, het_job_id_set="1-2"), job(2, het_job_id=1, het_job_offset=1, partition="gpu"), job(3, het_job_id=0)]
    result = import_records(tmp_path, nodes, jobs)
    assert sorted(result.instance.tasks.tolist()) == [1, 2]
    assert [note for note in result.notes if note.startswith("1 heterogeneous job, whose components")]


@pytest.mark.parametrize(
    ("features", "on"),
    [("ib&avx", {"n1"}), ("a100|v100", {"n2", "n3"}), ("[ib|v100]", {"n1", "n3"}), ("(a100|v100)&avx", {"n2"}), ("", {"n1", "n2", "n3"})],
)
def test_features(tmp_path: Path, features: str, on: set[str]) -> None:
    """AND, OR, parentheses and brackets."""
    nodes = [node("n1", 8, features="avx,ib"), node("n2", 9, features="avx,a100"), node("n3", 10, features="v100", active_features="v100")]
    assert only(import_records(tmp_path, nodes, [job(1, features=features)]))["on"] == on


def test_partitions_can_be_left_out(tmp_path: Path) -> None:
    """Then a job may run wherever its features and GPUs are, and a partition without nodes is no error."""
    nodes = [node("n1", 8, partitions=["x"]), node("n2", 9, partitions=["y"], features="ib")]
    jobs = [job(1, partition="x"), job(2, partition="x", account="b", features="ib")]
    assert {name: user["on"] for name, user in by_user(import_records(tmp_path, nodes, jobs[:1])).items()} == {"a": {"n1"}}
    users = by_user(import_records(tmp_path, nodes, jobs, ignore_partitions=True))
    assert {name: user["on"] for name, user in users.items()} == {"a": {"n1", "n2"}, "b": {"n2"}}


# Sizes ---------------------------------------------------------------------------------------------------------------------------


def demand_of_b(folder: Path, nodes: list[dict[str, Any]], *jobs: dict[str, Any]) -> dict[str, float]:
    """Return what a task of account b demands."""
    found = by_user(import_records(folder, nodes, list(jobs)))["b"]["demand"]
    assert isinstance(found, dict)
    return found


def test_whole_cores_that_were_asked_for_say_nothing(tmp_path: Path) -> None:
    """Cores have two threads. 2 CPUs were asked for and given: nobody asked for a part of a core, so that 1 CPU stays 1."""
    asked = running(1, "n1", "cpu=2,mem=1G,node=1")
    assert demand_of_b(tmp_path, [node("n1", threads=2)], asked, job(2, "cpu=1,mem=2G,node=1", account="b"))["cpu"] == 1


def test_jobs_on_several_nodes_do_not_say_whether_cores_are_whole(tmp_path: Path) -> None:
    """7 CPUs on two nodes may be 3 and 4; 2 instead of 1 on one node is a whole core, so that 3 become 4."""
    jobs = [running(1, "n[1-2]", "cpu=7,mem=2G,node=2", node_count=2), running(2, "n1", "cpu=2,mem=1G,node=1", "cpu=1,mem=1G,node=1")]
    nodes = [node("n1", threads=2), node("n2", threads=2)]
    assert demand_of_b(tmp_path, nodes, *jobs, job(3, "cpu=3,mem=2G,node=1", account="b"))["cpu"] == 4


def test_whole_cores_are_those_of_the_node_with_the_fewest_threads(tmp_path: Path) -> None:
    """1 CPU may run on cores of two threads and of four: it takes two."""
    given = running(1, "n1", "cpu=2,mem=1G,node=1", "cpu=1,mem=1G,node=1")
    nodes = [node("n1", threads=2), node("n2", 48, threads=4)]
    assert demand_of_b(tmp_path, nodes, given, job(2, "cpu=1,mem=2G,node=1", account="b"))["cpu"] == 2


def test_an_exclusive_job_is_not_measured_by_another_one(tmp_path: Path) -> None:
    """One like it was given all 48 CPUs of n2; on n1 it has 32."""
    given = running(1, "n2", "cpu=48,mem=8G,node=1", "cpu=8,mem=8G,node=1", shared="none")
    nodes = [node("n1", 32), node("n2", 48)]
    assert demand_of_b(tmp_path, nodes, given, job(2, "cpu=8,mem=8G,node=1", account="b", shared="none"))["cpu"] == 32


@pytest.mark.parametrize(("tasks", "expected"), [(2, (50, 2)), (3, None)])
def test_a_job_that_fits_on_no_node_is_divided_if_its_cpus_are(tmp_path: Path, tasks: int, expected: tuple[int, int] | None) -> None:
    """100 CPUs on nodes of 64: two tasks of 50; three would have a fraction of a CPU, so that it can never start."""
    result = import_records(tmp_path, [node("n1"), node("n2")], [job(1, "cpu=100,mem=2G,node=1", tasks=tasks), job(2, account="b")])
    users = by_user(result)
    if expected is None:
        assert set(users) == {"b"}
        assert len(result.left_out) == 1
    else:
        assert (users["a"]["demand"]["cpu"], users["a"]["tasks"]) == expected


def test_memory_per_cpu_of_a_partition_is_by_node(tmp_path: Path) -> None:
    """8 CPUs on two nodes, 512 MiB each: 2 GiB on each node."""
    (tmp_path / "partitions.json").write_text(
        json.dumps({"partitions": [{"name": "batch", "nodes": "n[1-2]", "default_memory_per_cpu": 512, "default_memory_per_node": None}]})
    )
    waiting = job(1, "cpu=8,mem=128G,node=2", tasks=2, node_count=2, **NO_MEMORY)
    result = import_records(tmp_path, [node("n1"), node("n2")], [waiting], partitions=tmp_path / "partitions.json")
    assert (only(result)["demand"], only(result)["tasks"]) == ({"cpu": 4, "memory": 2}, 2)


def test_every_task_of_an_array_counts_in_the_note(tmp_path: Path) -> None:
    """18 tasks ask for whole nodes."""
    result = import_records(tmp_path, [node("n1")], [job(7, array_job_id=7, array_task_string="2-19", shared="none")])
    assert [note for note in result.notes if note.startswith("18 waiting jobs ask for whole nodes (--exclusive)")]


def test_gpus_that_accounting_tracks_are_those_that_were_given(tmp_path: Path) -> None:
    """One was asked for, and two were given."""
    given = running(1, "g1", "cpu=4,mem=24G,node=1,gres/gpu=2", "cpu=4,mem=24G,node=1,gres/gpu=1")
    assert only(import_records(tmp_path, GPUS, [given]))["demand"]["gpu"] == 2


def test_cpus_by_gpu_and_threads_of_cores(tmp_path: Path) -> None:
    """8 CPUs a GPU and 20 GiB a GPU; 8 cores of two threads, of which the job uses one each, are 16 CPUs, and 32 of them fit on no node."""
    by_gpu = job(1, "cpu=1,mem=40G,node=1,gres/gpu=2", account="a", cpus_per_tres="gres:gpu:8", memory_per_tres="gres:gpu:20480")
    cores = job(2, "cpu=8,mem=1G,node=1", account="b", threads_per_core=1, memory_per_node=1024)
    many = job(3, "cpu=32,mem=1G,node=1", account="c", threads_per_core={"set": True, "infinite": False, "number": 1})
    found = import_records(tmp_path, [node("n1", 32, threads=2, gres="gpu:a100:4")], [by_gpu, cores, many])
    demands = {name: each["demand"] for name, each in by_user(found).items()}
    assert demands == {"a": {"cpu": 16, "memory": 40, "gpu": 2}, "b": {"cpu": 16, "memory": 1, "gpu": 0}}
    assert [each.why for each in found.left_out] == ["larger than every server on which it may run, so it can never start"]


@pytest.mark.parametrize(
    ("reason", "starts"),
    [
        ("Priority", True), ("Resources", True), ("QOSMaxCpuPerUserLimit", True), ("AssocGrpCpuLimit", True), ("Licenses", True),
        ("AssocGrpCPURunMinutesLimit", True), ("AssocMaxJobsLimit", True), ("JobArrayTaskLimit", True), ("QOSMaxJobsPerUserLimit", True),
        ("PartitionTimeLimit", False), ("PartitionNodeLimit", False), ("QOSMaxCpuPerJobLimit", False), ("AssocGrpCPUMinutesLimit", False),
        ("QOSMaxWallDurationPerJobLimit", False), ("BadConstraints", False), ("InvalidQOS", False), ("QOSMaxGRESPerNode", False),
        ("QOSMinCpuNotSatisfied", False), ("AssocMaxWallDurationPerJobLimit", False), ("QOSGrpWallLimit", False), ("PartitionDown", False),
        ("Reservation", False), ("JobHeldAdmin", False), ("ReservationDeleted", False), ("AccountNotAllowed", False),
    ],
)  # fmt: skip
def test_reasons_why_a_job_cannot_start(tmp_path: Path, reason: str, starts: bool) -> None:
    """A limit on what others hold ends when they do; one on the job itself, or a budget that is used up, does not."""
    jobs = [job(1, account="a"), job(2, account="b", state_reason=reason)]
    assert import_records(tmp_path, [node("n1")], jobs).instance.users == (("a", "b") if starts else ("a",))
