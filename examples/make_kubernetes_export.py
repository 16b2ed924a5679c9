"""Writes an export of a Kubernetes cluster, nodes.json and pods.json, in the form of ``kubectl get ... -o json``. Notebook 07 audits it.

    python make_kubernetes_export.py FOLDER

The cluster and all numbers are synthetic, drawn with a fixed seed. There are 40 nodes that take work, in four pools (general, much
memory, A100, T4), a control plane, and a node that is cordoned for maintenance. Eight teams, each a namespace, ask for more than there is.
The scheduler ignores fairness: first come, first served, each pod on the least allocated of the nodes where it may run, and no pod is
evicted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

GPU, POOL = "nvidia.com/gpu", "example.com/pool"
POOLS = {  # nodes, cores, GiB, GPUs
    "general": (20, 16, 64, 0),
    "memory": (10, 16, 256, 0),
    "a100": (6, 48, 384, 4),
    "t4": (4, 32, 128, 4),
}
TEAMS = {  # the hour at which its pods come, and deployments: name, pods, cores, GiB, GPUs, pools (none: wherever tolerated)
    "ci": (7.0, [("build", 70, 4.0, 8, 0, ()), ("lint", 60, 1.0, 2, 0, ())]),
    "analytics": (8.0, [("spark", 50, 2.0, 16, 0, ()), ("report", 16, 4.0, 48, 0, ())]),
    "warehouse": (8.5, [("shard", 44, 1.0, 40, 0, ("memory",)), ("load", 20, 2.0, 6, 0, ())]),
    "vision": (9.0, [("train", 22, 6.0, 32, 1, ()), ("label", 12, 1.0, 4, 0, ())]),
    "web": (10.0, [("front", 90, 0.5, 1, 0, ()), ("api", 60, 1.0, 2, 0, ())]),
    "checkout": (10.5, [("cart", 60, 1.0, 2, 0, ()), ("fraud", 12, 2.0, 12, 0, ())]),
    "language": (11.0, [("finetune", 10, 8.0, 64, 2, ("a100",)), ("serve", 16, 4.0, 24, 1, ())]),
    "students": (12.0, [("notebook", 40, 2.0, 8, 0, ()), ("gpu-notebook", 16, 2.0, 16, 1, ("t4",))]),
}
SPREAD = 0.8  # hours, the standard deviation of when pods come
ENDED = 30  # builds of the night before, which hold nothing


def nodes() -> list[dict[str, Any]]:
    """Return the nodes: what they offer is a little less than what they have."""
    listed = []
    for pool, (number, cores, gibibytes, gpus) in POOLS.items():
        for k in range(1, number + 1):
            listed.append(_node(f"{pool}-{k}", pool, cores, gibibytes, gpus))
    listed[3]["spec"]["unschedulable"] = True
    control = _node("control-1", "control", 8, 32, 0)
    control["spec"]["taints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    return [*listed, control, _node("general-21", "general", 16, 64, 0)]


def _node(name: str, pool: str, cores: int, gibibytes: int, gpus: int) -> dict[str, Any]:
    has = {"cpu": str(cores), "memory": f"{gibibytes}Gi", "pods": "110"} | ({GPU: str(gpus)} if gpus else {})
    offers = has | {"cpu": f"{1000 * cores - 250}m", "memory": f"{gibibytes * 2**20 - 3 * 2**20}Ki"}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, POOL: pool}},
        "spec": {"taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}]} if gpus else {},
        "status": {"capacity": has, "allocatable": offers, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pods(listed: list[dict[str, Any]], seed: int = 7) -> list[dict[str, Any]]:
    """Return the pods, placed or pending, in the order in which they came."""
    rng = np.random.default_rng(seed)
    found = [_pod("kube-system", f"agent-{node['metadata']['name']}", 0.25, 0.5, 0, (), node["metadata"]["name"]) for node in listed]
    for pod in found:
        pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent"}]
    for k in range(ENDED):
        found.append(_pod("ci", f"night-{k}", 4.0, 8, 0, (), "general-1"))
        found[-1]["status"]["phase"] = "Succeeded" if k % 10 else "Failed"
    free = {name: np.array([offers[0] - 0.25, offers[1] - 0.5, offers[2]]) for name, offers in map(_offers, listed)}
    pool = {node["metadata"]["name"]: node["metadata"]["labels"][POOL] for node in listed if not node["spec"].get("unschedulable")}
    whole = {name: offered.copy() for name, offered in free.items()}
    coming = [
        (float(rng.normal(hour, SPREAD)), team, name, k, demand)
        for team, (hour, deployments) in TEAMS.items()
        for name, number, *demand in deployments
        for k in range(number)
    ]
    for _, team, name, k, (cores, gibibytes, gpus, pools) in sorted(coming, key=lambda one: one[0]):
        asked = np.array([cores, gibibytes, gpus], float)
        may = pools or ("general", "memory", *(("a100", "t4") if gpus else ()))
        room = [node for node in pool if pool[node] in may and (free[node] >= asked).all()]
        best = max(room, key=lambda node: float((free[node][:2] / whole[node][:2]).sum()), default=None)
        if best is not None:
            free[best] -= asked
        found.append(_pod(team, f"{name}-{k}", cores, gibibytes, gpus, pools, best))
    return found


def _offers(node: dict[str, Any]) -> tuple[str, tuple[float, float, float]]:
    offers = node["status"]["allocatable"]
    return node["metadata"]["name"], (int(offers["cpu"][:-1]) / 1000, int(offers["memory"][:-2]) / 2**20, float(offers.get(GPU, 0)))


def _pod(team: str, name: str, cores: float, gibibytes: float, gpus: int, pools: tuple[str, ...], node: str | None) -> dict[str, Any]:
    requests = {"cpu": f"{1000 * cores:.0f}m", "memory": f"{1024 * gibibytes:.0f}Mi"} | ({GPU: str(gpus)} if gpus else {})
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if gpus:
        spec["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    if pools:
        spec["nodeSelector"] = {POOL: pools[0]}
    if node is not None:
        spec["nodeName"] = node
    return {"metadata": {"namespace": team, "name": name}, "spec": spec, "status": {"phase": "Pending" if node is None else "Running"}}


def export(folder: Path) -> None:
    """Write both files."""
    listed = nodes()
    for name, items in (("nodes.json", listed), ("pods.json", pods(listed))):
        (folder / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    export(Path(sys.argv[1]))
