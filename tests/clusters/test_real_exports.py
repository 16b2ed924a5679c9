"""Real exports, where they are: sums by a few lines of other code, and the whole way to a comparison."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.real_data import DATA, needs

import fairopt as fo

pytestmark = needs()

KUBERNETES, SLURM = DATA / "kubernetes", DATA / "slurm"
OPENB, GOOGLE = DATA / "openb", DATA / "google2011"


def table(path: Path) -> list[dict[str, str]]:
    """Read a table."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return list(csv.DictReader(file))


def cpus(text: str) -> float:
    """Return cores."""
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def gibibytes(text: str) -> float:
    """Return GiB."""
    unit = {"Ki": 2**-20, "Mi": 2**-10, "Gi": 1.0}.get(text[-2:])
    return float(text) / 2**30 if unit is None else float(text[:-2]) * unit


def requests(pod: dict[str, Any]) -> tuple[float, float]:
    """Return cores and GiB of a pod, whose init containers ask for less than the others, or for nothing, in these exports."""
    listed = [each.get("resources", {}).get("requests", {}) for each in pod["spec"]["containers"]]
    return sum(cpus(each.get("cpu", "0")) for each in listed), sum(gibibytes(each.get("memory", "0")) for each in listed)


def test_kubernetes_sums() -> None:
    """Three nodes and nine namespaces: allocatable less pods of DaemonSets and of nodes; requests of those that run."""
    nodes = json.loads((KUBERNETES / "sbctl_nodes.json").read_text())["items"]
    paths = sorted((KUBERNETES / "sbctl_pods").glob("*.json"))
    pods = [pod for path in paths for pod in json.loads(path.read_text())["items"] if pod["status"]["phase"] == "Running"]
    pinned = [any(owner["kind"] in ("DaemonSet", "Node") for owner in pod["metadata"]["ownerReferences"]) for pod in pods]
    reserved = [sum(requests(pod)[r] for pod, pin in zip(pods, pinned, strict=True) if pin) for r in range(2)]
    held = [sum(requests(pod)[r] for pod, pin in zip(pods, pinned, strict=True) if not pin) for r in range(2)]
    result = fo.import_kubernetes(KUBERNETES / "sbctl_nodes.json", paths)
    total = dict(zip(result.instance.resources, result.instance.total_capacity, strict=True))
    assert total["cpu"] == pytest.approx(sum(cpus(node["status"]["allocatable"]["cpu"]) for node in nodes) - reserved[0])
    assert total["memory"] == pytest.approx(sum(gibibytes(node["status"]["allocatable"]["memory"]) for node in nodes) - reserved[1])
    assert total["pods"] == 3 * 110 - sum(pinned)
    assert (result.held @ result.instance.demands)[:2] == pytest.approx(held)
    comparison = fo.compare(result.instance, allocations={"held": result.current})  # type: ignore[dict-item]
    assert comparison["held"].violations == ()
    assert comparison["held"].efficiency == pytest.approx(1)  # it all fits


def test_kubernetes_pods_that_wait_for_what_there_is_not() -> None:
    """Five GPUs in a cluster without any: left out. A node selector that the cluster meets: demand."""
    pods = [KUBERNETES / name for name in ("message-pending-pod-resources.json", "message-pending-node-affinity.json")]
    result = fo.import_kubernetes(KUBERNETES / "sbctl_nodes.json", pods)
    assert result.instance.users == ("message-pending-node-affinity",)
    assert result.instance.demands.tolist() == [[0.1, 100 / 1024, 1]]  # the largest init container asks for as much
    assert [each.why.partition(",")[0] for each in result.left_out] == ["larger than every server on which it may run"]


@pytest.mark.parametrize(("name", "nodes", "gpus"), [("insights_nodes.json", 6, 0), ("troubleshoot_nodes.json", 7, 1)])
def test_kubernetes_nodes_alone(name: str, nodes: int, gpus: float) -> None:
    """Every resource that the nodes have."""
    items = json.loads((KUBERNETES / name).read_text())["items"]
    instance = fo.import_kubernetes(KUBERNETES / name).instance
    assert instance.counts.sum() == len(items) == nodes
    total = dict(zip(instance.resources, instance.total_capacity, strict=True))
    assert total["cpu"] == pytest.approx(sum(cpus(item["status"]["allocatable"]["cpu"]) for item in items))
    assert total["memory"] == pytest.approx(sum(gibibytes(item["status"]["allocatable"]["memory"]) for item in items))
    assert total.get("nvidia.com/gpu", 0) == gpus


@pytest.mark.parametrize(("version", "running"), [("24.05_0.0.41", 3), ("25.11_0.0.44", 4)])
def test_slurm_sums(version: str, running: int) -> None:
    """Nodes that are neither down nor draining; CPUs of the jobs that run on those."""
    folder = SLURM / f"slurmrestd_{version}"
    nodes = json.loads((folder / "slurm-nodes.json").read_text())["nodes"]
    jobs = json.loads((folder / "slurm-jobs.json").read_text())["jobs"]
    offered = [node for node in nodes if not {"DOWN", "DRAIN"} & set(node["state"])]
    closed = {node["name"] for node in nodes} - {node["name"] for node in offered}
    active = [job for job in jobs if job["job_state"] == ["RUNNING"]]
    assert len(active) == running
    held = sum(int(job["tres_alloc_str"].split(",")[0].removeprefix("cpu=")) for job in active if job["nodes"] not in closed)
    result = fo.import_slurm(
        folder / "slurm-nodes.json", folder / "slurm-jobs.json", folder / "slurmdb-associations.json", folder / "slurm-partitions.json"
    )
    assert result.instance.total_capacity[0] == sum(node["cpus"] for node in offered)
    assert result.instance.total_capacity[1] == sum(node["real_memory"] for node in offered) / 1024
    assert result.held @ result.instance.demands[:, 0] == held
    assert result.current is not None
    assert fo.compare(result.instance, allocations={"held": result.current})["held"].violations == ()


@needs("slurm-lab")
def test_slurm_limits(tmp_path: Path) -> None:
    """GrpTRES and shares of a saturated cluster, as sacctmgr prints them; what runs and the optimum are within the limits."""
    folder = DATA / "slurm-lab" / "limits"
    with gzip.open(folder / "jobs.json.gz") as file:
        (tmp_path / "jobs.json").write_bytes(file.read())
    result = fo.import_slurm(folder / "nodes.json", tmp_path / "jobs.json", folder / "associations.json", folder / "partitions.json")
    queues = {queue.name: queue for queue in result.instance.queues}
    head, *lines = [line.split("|") for line in (folder / "sacctmgr-assoc.txt").read_text().splitlines()]
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    limited = 0
    for row in rows:
        name = f"{row['Account']}/{row['User']}" if row["User"] else row["Account"]
        if row["Account"] == "root":
            continue
        amounts = dict(text.split("=") for text in row["GrpTRES"].split(",") if text)
        units = {"cpu": "cpu", "mem": "memory", "gres/gpu": "gpu"}
        limit = {units[key]: float(value.rstrip("GM")) / (1024 if value.endswith("M") else 1) for key, value in amounts.items()}
        assert queues[name].weight == float(row["Share"])
        assert dict(queues[name].limit) == pytest.approx(limit)
        assert queues[name].parent == (row["Account"] if row["User"] else None)
        limited += bool(limit)
    assert (len(queues), limited) == (13, 8)
    fair = fo.solve(result.instance, "drfh")
    for tasks in (result.held, fair.tasks_per_user):
        for name, queue in queues.items():
            below = [n for n, each in enumerate(result.instance.queue_of) if each is not None and f"{each}/".startswith(f"{name}/")]
            used = dict(zip(result.instance.resources, tasks[below] @ result.instance.demands[below], strict=True))
            assert all(used[resource] <= amount * (1 + 1e-9) for resource, amount in queue.limit.items()), name


def test_slurm_exports_of_two_clusters_are_refused() -> None:
    """The samples of 21.08 are of different clusters: no node is in the partition of the first job."""
    with pytest.raises(fo.InvalidInstance, match=r'jobs\[0\]\.partition: no node is in the partition "hw-l"'):
        fo.import_slurm(SLURM / "sinfo_out.json", SLURM / "squeue_out.json")


def test_yarn_samples_hold_nothing() -> None:
    """The documentation's sample has an application twice; without it, nothing asks for anything."""
    paths = DATA / "yarn" / "nodes.json", DATA / "yarn" / "apps.json"
    with pytest.raises(fo.InvalidInstance, match="is listed twice"):
        fo.import_yarn(*paths)
    with pytest.raises(fo.InvalidInstance, match="no container of the yarn export is left"):
        fo.import_yarn(*paths, lenient=True)


@pytest.mark.parametrize("pods", ["openb_pods_default_gpuspec33.csv.gz", "openb_classes_qos_shape_gpuspec33.csv"])
def test_openb_sums(pods: str) -> None:
    """125,514 cores, 597,684 GiB and 6,212 cards, as published; of 467 classes one is too large for the nodes of its model."""
    result = fo.import_openb(OPENB / "openb_nodes.csv.gz", OPENB / pods)
    assert result.instance.total_capacity == pytest.approx([125_514, 597_684, 6_212], abs=0.5)
    rows = table(OPENB / pods)
    asked = [
        sum(float(row[key]) * float(row.get("n_tasks", 1)) for row in rows) / scale
        for key, scale in (("cpu_milli", 1e3), ("memory_mib", 1024))
    ]
    cards = sum(int(row["num_gpu"]) * int(row["gpu_milli"] or 0) * float(row.get("n_tasks", 1)) for row in rows) / 1000
    large = [120, 720, 8]  # openb-pod-1639: 720 GiB on a node with G2, which has 384
    assert result.instance.tasks @ result.instance.demands == pytest.approx([asked[0] - large[0], asked[1] - large[1], cards - large[2]])
    assert (result.instance.n_users, result.instance.tasks.sum(), len(result.left_out)) == (466, 8151, 1)


def test_openb_is_solved() -> None:
    """The optimum of four owners: a relaxation, certified."""
    result = fo.import_openb(OPENB / "openb_node_configs.csv", OPENB / "openb_pods_default_gpuspec33.csv.gz", users="qos")
    allocation = fo.solve(result.instance, "drfh")
    frame = result.to_frame({"drfh": allocation})
    assert (frame["drfh"] <= frame["asks"] + 1e-9).all()
    assert allocation.certificate.worst <= 1e-8


@pytest.mark.parametrize("machines", ["google2011_machine_configs_t0.csv", "google2011_machine_events.csv.gz"])
def test_google_sums(machines: str) -> None:
    """12,477 machines of ten kinds; tasks by user, shape by shape."""
    result = fo.import_google2011(GOOGLE / machines, GOOGLE / "google2011_task_groups_0-19.6h.csv.gz")
    configurations = table(GOOGLE / "google2011_machine_configs_t0.csv")
    assert (result.instance.counts.sum(), result.instance.n_servers) == (12_477, 10)
    assert result.instance.total_capacity[0] == pytest.approx(sum(float(row["cpu"]) * int(row["count"]) for row in configurations))
    expected: Counter[str] = Counter()
    for row in table(GOOGLE / "google2011_task_groups_0-19.6h.csv.gz"):
        if float(row["cpu"] or 0) > 0 or float(row["mem"] or 0) > 0:
            expected[row["user"]] += int(row["n_tasks"])
    assert {owner: tasks for owner, tasks in result.to_frame()["tasks"].items() if tasks} == dict(expected)
