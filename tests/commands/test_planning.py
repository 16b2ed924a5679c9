"""From the exports of a cluster to the lines that stop what a plan stops: import, plan, commands; what they say is checked by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from support import htcondor_ads as condor
from support import pbs_records as pbs
from support.command_line import run

GPU = "nvidia.com/gpu"


def pod(name: str, namespace: str, node: str = "", **metadata: Any) -> dict[str, Any]:
    """Return a pod that asks for GPUs; without a node it waits."""
    where = {"nodeName": node} if node else {}
    resources = {"requests": {"cpu": "1", GPU: "1"}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace} | metadata,
        "spec": where | {"containers": [{"resources": resources}]},
        "status": {"phase": "Running" if node else "Pending"},
    }


def cluster(folder: Path, pods: list[dict[str, Any]], *more: dict[str, Any]) -> list[object]:
    """Write two nodes with four GPUs each, and pods; return the options of the import."""
    has = {"cpu": "32", "memory": "64Gi", "pods": "110", GPU: "4"}
    nodes = [{"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": has}} for name in ("n1", "n2")]
    (folder / "all.json").write_text(json.dumps({"kind": "List", "items": [*nodes, *pods, *more]}))
    return ["import", "kubernetes", "--nodes", folder / "all.json", "-o", folder / "c.yaml", "--current", folder / "held.csv", "--force"]


def plan(folder: Path, *more: object) -> str:
    """Return what plan prints."""
    return run("plan", folder / "c.yaml", "--allocation", folder / "held.csv", *more).stdout


def test_the_lines_that_make_room_for_a_second_namespace(tmp_path: Path) -> None:
    """Of eight GPUs "a" holds all and "b" none: four pods of "a" stop, each by its name; a pod that is protected does not."""
    stays = {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}
    pods = [pod(f"p{i}", "a", "n1" if i < 4 else "n2", **(stays if i < 3 else {})) for i in range(8)]
    run(*cluster(tmp_path, [*pods, *(pod(f"q{i}", "b") for i in range(6))]))
    with (tmp_path / "held.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["server"], row["tasks"], row["protected"], row["name"]) for row in rows] == [
        ("n1", "1", "", "a/p3"),
        ("n1", "3", "yes", "a/p0|a/p1|a/p2"),
        ("n2", "4", "", "a/p4|a/p5|a/p6|a/p7"),
    ]
    lines = plan(tmp_path, "--commands", "kubectl").splitlines()
    assert len(set(lines)) == len(lines) == 4
    assert set(lines) <= {f"kubectl delete pod p{i} --namespace a" for i in range(3, 8)}
    compared = json.loads(run("compare", tmp_path / "c.yaml", "--allocation", tmp_path / "held.csv", "--json").stdout)
    assert compared["rows"][1]["tasks"] == 8


@pytest.mark.parametrize("least", [2, 1])
def test_a_pod_group_stops_as_a_whole(tmp_path: Path, least: int) -> None:
    """Three pods of a gang on both nodes: three must stop of seven, and the gang is all of these or none; with minMember 1 it is none."""
    mark = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    api = "scheduling.volcano.sh/v1beta1"
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": "g", "namespace": "a"}, "spec": {"minMember": least}}
    gang = [pod("g0", "a", "n1", **mark), pod("g1", "a", "n2", **mark), pod("g2", "a", "n2", **mark)]
    alone = [pod(f"p{i}", "a", "n1") for i in range(3)] + [pod("q0", "b", "n2")]
    run(*cluster(tmp_path, [*gang, *alone, *(pod(f"w{i}", "b") for i in range(5))], group))
    held = (tmp_path / "held.csv").read_text()
    assert ("a/g" in [row["gang"] for row in csv.DictReader(held.splitlines())]) == (least > 1)
    stopped = {line.split()[3] for line in plan(tmp_path, "--commands", "kubectl").splitlines()}
    assert len(stopped & {"g0", "g1", "g2"}) in ((0, 3) if least > 1 else (0, 1, 2, 3))
    assert 2 <= len(stopped) <= 3


def test_the_lines_of_slurm(tmp_path: Path) -> None:
    """Of 16 CPUs "a" holds 12 in an array of three and "b" 4: one job of "a" makes room. A job of two nodes stops as a whole."""
    nodes = [{"name": name, "cpus": 8, "real_memory": 8192, "state": ["IDLE"], "partitions": ["batch"]} for name in ("n1", "n2")]

    def job(number: int, account: str, hosts: str, cpus: int, **more: Any) -> dict[str, Any]:
        of_nodes = 2 if "," in hosts else 1
        tres = f"cpu={cpus},mem={cpus}G,node={of_nodes}"
        state = {"job_state": ["RUNNING"], "nodes": hosts, "tres_alloc_str": tres} if hosts else {"job_state": ["PENDING"]}
        named = {"job_id": number, "account": account, "user_name": account, "partition": "batch", "tres_req_str": tres}
        return named | {"node_count": {"set": True, "number": of_nodes}, "tasks": {"set": True, "number": of_nodes}} | state | more

    def lines(jobs: list[dict[str, Any]]) -> list[str]:
        for name, data in (("nodes", nodes), ("jobs", jobs)):
            (tmp_path / f"{name}.json").write_text(json.dumps({name: data}))
        command = ["import", "slurm", "--nodes", tmp_path / "nodes.json", "--jobs", tmp_path / "jobs.json", "-o", tmp_path / "c.yaml"]
        run(*command, "--current", tmp_path / "held.csv", "--force")
        return plan(tmp_path, "--commands", "scancel").splitlines()

    waits = [job(21, "b", "", 4), job(22, "b", "", 4)]
    found = lines([job(11, "a", "n1", 4), job(12, "a", "n1", 4), job(13, "a", "n2", 4), job(20, "b", "n2", 4), *waits])
    assert len(found) == 1
    assert found[0] in ("scancel 11", "scancel 12", "scancel 13")
    found = lines([job(11, "a", "n1,n2", 8), job(12, "a", "n1", 4), job(13, "a", "n2", 4), *waits])
    assert found == ["scancel 12", "scancel 13"] or found == ["scancel 11"]


def test_the_lines_of_pbs(tmp_path: Path) -> None:
    """Eight CPUs on two vnodes: a holds all, b asks for four; a job of two chunks stops as a whole, subjobs by their own numbers."""
    held = {"job_state": "R"}
    jobs = [
        pbs.job(1, "2:ncpus=2", "a", **held, exec_vnode="(n1:ncpus=2)+(n2:ncpus=2)"),
        *(pbs.job(k, "1:ncpus=2", "a", **held, exec_vnode=f"(n{n}:ncpus=2)") for k, n in ((2, 1), ("3[7]", 2))),
        *(pbs.job(10 + k, "1:ncpus=2", "b") for k in range(2)),
    ]
    for name, key, records in (("nodes", "nodes", [pbs.vnode("n1", 4), pbs.vnode("n2", 4)]), ("jobs", "Jobs", jobs)):
        (tmp_path / f"{name}.json").write_text(json.dumps(pbs.HEAD | {key: dict(records)}))
    imported(tmp_path, "pbs", "nodes.json", "jobs.json", "--owners", "user")
    lines = plan(tmp_path, "--commands", "qdel").splitlines()
    assert lines == ["qdel 1.head"] or sorted(lines) == ["qdel '3[7].head'", "qdel 2.head"]


def test_the_lines_of_htcondor(tmp_path: Path) -> None:
    """Of four CPUs ada holds all: two of her jobs stop, each at its access point."""
    runs = [condor.job(n, "ada", 2, RemoteHost=f"slot1_{n}@w", GlobalJobId=f"ap{n % 2}#{n}.0#17") for n in range(1, 5)]
    (tmp_path / "slots.json").write_text(json.dumps([condor.slot("slot1@w", 4)]))
    (tmp_path / "jobs.json").write_text(json.dumps([*runs, *(condor.job(10 + n, "ben") for n in range(4))]))
    imported(tmp_path, "htcondor", "slots.json", "jobs.json")
    lines = plan(tmp_path, "--commands", "condor_rm").splitlines()
    assert len(set(lines)) == 2
    assert set(lines) <= {f"condor_rm -name ap{n % 2} {n}.0" for n in range(1, 5)}


def test_the_lines_of_yarn(tmp_path: Path) -> None:
    """On nodes that are alike it is known what runs: an application stops as a whole."""
    used = {"usedMemoryMB": 4096, "availMemoryMB": 0, "usedVirtualCores": 4, "availableVirtualCores": 0}
    nodes = [{"id": name, "state": "RUNNING", **used} for name in ("h1", "h2")]
    held = {"state": "RUNNING", "runningContainers": 4, "allocatedMB": 4096, "allocatedVCores": 4, "queue": "a", "user": "u"}
    request = [{"resourceName": "*", "numContainers": 4, "capability": {"memory": 1024, "vCores": 1}}]
    waits = {"id": "application_1_3", "state": "ACCEPTED", "queue": "b", "user": "v", "resourceRequests": request}
    apps = [{"id": f"application_1_{n}"} | held for n in (1, 2)]
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": {"node": nodes}}))
    (tmp_path / "apps.json").write_text(json.dumps({"apps": {"app": [*apps, waits]}}))
    run(
        "import",
        "yarn",
        "--nodes",
        tmp_path / "nodes.json",
        "--apps",
        tmp_path / "apps.json",
        "-o",
        tmp_path / "c.yaml",
        *current(tmp_path),
    )
    assert plan(tmp_path, "--commands", "yarn") in ("yarn application -kill application_1_1\n", "yarn application -kill application_1_2\n")


def imported(folder: Path, kind: str, nodes: str, jobs: str, *more: object) -> None:
    """Import a cluster, and what runs."""
    run("import", kind, "--nodes", folder / nodes, "--jobs", folder / jobs, "-o", folder / "c.yaml", *current(folder), *more)


def current(folder: Path) -> list[object]:
    """Return the option that writes what runs."""
    return ["--current", folder / "held.csv"]
