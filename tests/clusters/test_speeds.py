"""Speeds of an administrator, beside the exports of Slurm and of Kubernetes: by type of GPU, feature, flavor or label, and by owner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.slurm_records import import_records, job, node
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app

GPU = "cpu=4,mem=8G,node=1,gres/gpu=1"
NODES = [node("n1", gres="gpu:a100:4"), node("n2", gres="gpu:a100:4"), node("n3", gres="gpu:v100:4", features="ib"), node("n4")]
JOBS = [job(1, GPU), job(2, GPU, account="b"), job(3, account="b")]


def slurm(folder: Path, table: str, jobs: list[dict[str, Any]] = JOBS, **options: Any) -> fo.Import:
    """Import with a table of speeds."""
    (folder / "speeds.csv").write_text(table)
    return import_records(folder, NODES, jobs, speeds=folder / "speeds.csv", **options)


def taken(instance: fo.Instance, user: int, server: str, resource: str = "gpu") -> float:
    """Return what a task of a user takes on a server."""
    pair = np.array([user]), np.array([instance.servers.index(server)])
    return float(instance.demands_of(*pair)[0, instance.resources.index(resource)])


def by_label(instance: fo.Instance) -> dict[str, dict[str, float]]:
    """Return the speeds other than 1, by user and server."""
    pairs = zip(instance.users, instance.speeds.tolist(), strict=True)
    return {user: {name: each for name, each in zip(instance.servers, row, strict=True) if each != 1} for user, row in pairs}


def test_types_and_features_of_slurm(tmp_path: Path) -> None:
    """A row of an owner comes before one of everybody; what no row names has the speed 1; without speeds, nothing changes."""
    found = slurm(tmp_path, "servers,speed,account\nv100,0.5,\ngpu:v100,0.8,b\nib|n4,0.25,c\ngpu = a100,1,\n")
    assert by_label(found.instance) == {"a": {"n3": 0.5}, "b/1 gpu": {"n3": 0.8}, "b/4 cpu 8 memory": {"n3": 0.8}}
    assert [(each.what, each.where.rpartition("/")[2]) for each in found.left_out] == [("speed", "speeds.csv, line 4")]
    assert slurm(tmp_path, "servers,speed\nib,1\n").instance == import_records(tmp_path, NODES, JOBS).instance


def test_nodes_of_one_speed_are_one_row(tmp_path: Path) -> None:
    """Where a speed tells two nodes of one shape apart, they are two rows; else one."""
    together, apart = (slurm(tmp_path, f"servers,speed\n{nodes},0.5\n", JOBS[:1]).instance for nodes in ("n1|n2", "n2"))
    assert (together.servers, together.speeds.tolist()) == (("n1 +1", "n3", "n4"), [[0.5, 1, 1]])
    assert (apart.servers, apart.speeds.tolist()) == (("n1 +1", "n2", "n4"), [[1, 0.5, 1]])


def test_a_speed_of_0_bars(tmp_path: Path) -> None:
    """Who cannot run on V100 may run on A100 alone; who can run nowhere else is left out; what runs there already is a contradiction."""
    assert slurm(tmp_path, "servers,speed\nv100,0\n", JOBS[:1]).instance.eligibility.tolist() == [[True, False, False]]
    nowhere = slurm(tmp_path, "servers,speed,owner\nib,0,b\n", [JOBS[0], job(2, GPU, account="b", features="ib")])
    assert [each.why for each in nowhere.left_out] == ["no server meets its constraints, so it can never start"]
    running = job(4, GPU, job_state=["RUNNING"], tres_alloc_str=GPU, nodes="n3")
    with pytest.raises(fo.InvalidInstance, match=r"the speed of a on n3 is 0, and its tasks run there"):
        slurm(tmp_path, "servers,speed\nv100,0\n", [running])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "servers,speed\nv-100,0.5\n",
            r'speeds.csv, line 2, column "servers": there is no node and no kind of nodes "?v-100"? \(did you mean',
        ),
        ("servers,speed\ngpu = t4,0.5\n", "line 2.*no node meets these conditions"),
        ("servers,speed\nv100,0.5\nn3,0.6\n", 'line 3.*a row above is about "?n3"? and the same owner'),
        ("servers,speed\nv100,-1\n", "line 2.*negative"),
        ("servers,speed\n,1\n", "line 2.*the cell is empty"),
        ("server,sped\nv100,1\n", 'there is no column "servers"'),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, table: str, message: str) -> None:
    """With the line; a lenient import leaves bad rows out."""
    with pytest.raises(fo.InvalidInstance, match=message):
        slurm(tmp_path, table)
    if "sped" not in table:
        assert slurm(tmp_path, table + "n1|n2,0.5\n", lenient=True).left_out


def test_the_mean_of_an_owner_has_its_speed(tmp_path: Path) -> None:
    """With ``demand="mean"`` an owner is one user; speeds are by owner."""
    instance = slurm(tmp_path, "servers,speed,owner\nv100,0.5,b\n", demand="mean").instance
    assert by_label(instance) == {"a": {}, "b": {"n3": 0.5}}


FLAVORS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: big}
spec: {nodeLabels: {gpu.model: a100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: old}
spec: {nodeLabels: {gpu.model: v100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: 9}, {name: memory, nominalQuota: 9Gi}]}]
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - {name: big, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}
    - {name: old, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: default, namespace: lab}
spec: {clusterQueue: q}
"""


def test_flavors_and_labels_of_kubernetes(tmp_path: Path) -> None:
    """A workload may take either flavor of the resource group of GPUs, and does less on the old one."""
    nodes = [
        {
            "metadata": {"name": name, "labels": {"gpu.model": model}},
            "spec": {},
            "status": {"allocatable": {"cpu": "10", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4"}},
        }
        for name, model in (("a1", "a100"), ("v1", "v100"))
    ]
    asked = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}
    pod = {"metadata": {"name": "p", "namespace": "lab"}, "spec": {"containers": [{"resources": asked}]}, "status": {"phase": "Pending"}}
    for name, items in (("nodes", nodes), ("pods", [pod])):
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "items": items}))
    (tmp_path / "queues.yaml").write_text(FLAVORS)
    exports: Any = (tmp_path / "nodes.json", tmp_path / "pods.json")
    (tmp_path / "speeds.csv").write_text("servers,speed,namespace\nold,0.5,\n")
    of_flavor = fo.import_kubernetes(*exports, queues=tmp_path / "queues.yaml", speeds=tmp_path / "speeds.csv").instance
    assert (of_flavor.servers, of_flavor.speeds.tolist()) == (("a1", "v1"), [[1, 0.5]])
    (tmp_path / "speeds.csv").write_text("servers,speed,factor,resource\nold,0.5,2,nvidia.com/gpu\nbig,1,,\n")
    found = fo.import_kubernetes(*exports, queues=tmp_path / "queues.yaml", speeds=tmp_path / "speeds.csv")
    assert [taken(found.instance, 0, server, "nvidia.com/gpu") for server in ("a1", "v1")] == [1, 2]
    assert [note.partition(":")[0] for note in found.notes if "order of the ClusterQueue" in note] == ["q"]
    assert [(quota.name, quota.limit.get("nvidia.com/gpu")) for quota in of_flavor.queues[0].quotas] == [("big", 4), ("old", 2)]
    (tmp_path / "speeds.csv").write_text("servers,speed\ngpu.model = v100,0.5\n")
    command = ["import", "kubernetes", "--nodes", str(exports[0]), "--pods", str(exports[1]), "--speeds", str(tmp_path / "speeds.csv")]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "c.yaml")])
    assert done.exit_code == 0, done.output
    loaded = fo.load(tmp_path / "c.yaml")
    assert loaded == fo.import_kubernetes(*exports, speeds=tmp_path / "speeds.csv").instance
    assert fo.solve(loaded, "cdrf").work.tolist() == pytest.approx([1.0])


def test_a_factor_is_of_what_a_task_takes_there(tmp_path: Path) -> None:
    """1 A100 or 2 V100: who waits asks for A100s; who runs holds V100s; who asks for V100s by their type takes these."""
    waits, typed = job(5, GPU, account="a"), job(6, "cpu=4,mem=8G,node=1,gres/gpu=2", account="c", tres_per_node="gres/gpu:v100:2")
    held = "cpu=4,mem=8G,node=1,gres/gpu=2"
    runs = job(7, held, account="b", job_state=["RUNNING"], tres_alloc_str=held, nodes="n3")
    table = "servers,speed,factor,resource\nv100,0.9,2,gpu\n"
    instance = slurm(tmp_path, table, [waits, runs, typed]).instance
    takes = {user: (taken(instance, n, "n1 +1"), taken(instance, n, "n3")) for n, user in enumerate(instance.users)}
    assert takes == {"a": (1, 2), "b": (1, 2), "c": (1, 2)}
    on = [instance.servers.index("n1 +1"), instance.servers.index("n3")]
    assert instance.eligibility[instance.users.index("c"), on].tolist() == [False, True]
    assert instance.speeds[0, on].tolist() == [1, 0.9]
    own = slurm(tmp_path, "servers,speed,owner,factor,resource\nv100,1,,2,gpu\nv100,1,b,4,gpu|cpu\n", [waits, runs]).instance
    assert [taken(own, n, "n3") for n in range(2)] == [2, 2]
    assert [taken(own, n, "n1 +1") for n in range(2)] == [1, 0.5]
    assert [taken(own, n, "n1 +1", "cpu") for n in range(2)] == [4, 1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("v100,1,2,", "line 2.*factor and resource belong together"),
        ("v100,1,,gpu", "line 2.*factor and resource belong together"),
        ("v100,1,2,gpus", r'line 2, column "resource".*there is no resource gpus \(did you mean'),
        ("v100,1,0,gpu", "line 2.*a factor is finite and > 0; where tasks cannot run, give the speed 0"),
    ],
)
def test_factors_that_are_refused(tmp_path: Path, row: str, message: str) -> None:
    """With the line and what to do."""
    with pytest.raises(fo.InvalidInstance, match=message):
        slurm(tmp_path, f"servers,speed,factor,resource\n{row}\n")
