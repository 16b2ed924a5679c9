"""A small cluster with queues, and the way back from an export to Kubernetes to an instance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from support.kubernetes_schema import documents

import fairopt as fo
from fairopt.instance import FloatArray

__all__ = ["GPU", "by_server", "cluster", "held", "queues", "read_back"]

GPU = "nvidia.com/gpu"


def cluster(seed: int = 0, **options: Any) -> fo.Instance:
    """Four namespaces on three groups of servers, in whole GiB and cores."""
    rng = np.random.default_rng(seed)
    capacities = np.column_stack([rng.integers(8, 40, 3), rng.integers(16, 90, 3), [0, 4, 8]]).astype(float)
    demands = np.column_stack([rng.integers(1, 5, 4), rng.integers(1, 9, 4), [0, 0, 1, 2]]).astype(float)
    return fo.Instance(
        capacities,
        demands,
        users=["ann", "ben", "cyd", "dee"],
        servers=["cpu-1", "a100-1", "v100-1"],
        resources=["cpu", "memory", GPU],
        counts=[3, 2, 1],
        **options,
    )


def queues(seed: int) -> dict[str, Any]:
    """Two queues in one, one beside it, with weights, limits and a guarantee that is not lent."""
    rng = np.random.default_rng(seed)
    tree = [
        fo.Queue("lab", weight=float(rng.integers(1, 4)), limit={GPU: float(rng.integers(4, 12))}),
        fo.Queue("ann", "lab", limit={"cpu": float(rng.integers(10, 60))}),
        fo.Queue("cyd", "lab", weight=2, guarantee={GPU: 2}, lending_limit={GPU: 1}),
        fo.Queue("ben", weight=0.5),
        fo.Queue("dee", quotas=[fo.Quota(["a100-1"], limit={GPU: 4})]),
    ]
    return {"queues": tree, "queue_of": ["ann", "ben", "cyd", "dee"]}


def by_server(instance: fo.Instance) -> fo.Instance:
    """On V100 a task of "cyd" takes two GPUs, and one of "dee" does half of the work."""
    demands, speeds = np.repeat(instance.demands[:, None], 3, axis=1), np.ones((4, 3))
    demands[2, 2, 2], speeds[3, 2] = 2.0, 0.5
    return instance.replace(demands=demands, speeds=speeds)


def read_back(found: fo.Export, folder: Path, mark: str = "") -> fo.Instance:
    """Import the cluster again with the objects: nodes with the labels of the flavors, and a pod of each user.

    ``mark`` is the label with which a pod names its queue.
    """
    whole = found.whole
    instance = whole.instance
    flavors = {each["metadata"]["name"]: each["spec"]["nodeLabels"] for each in documents(found.text) if each["kind"] == "ResourceFlavor"}
    nodes = []
    for group in whole.groups:
        for number in range(group.count):
            amounts = dict(zip(instance.resources, group.capacity.tolist(), strict=True))
            allocatable = {r: f"{amount:g}{'Gi' if r == 'memory' else ''}" for r, amount in amounts.items()}
            allocatable["pods"] = "110"
            metadata = {"name": f"{group.name.split()[0]}-{number}", "labels": flavors.get(found.names.get(group.name, ""), {})}
            nodes.append({"metadata": metadata, "spec": {}, "status": {"allocatable": allocatable}})
    pods = []
    for n, user in enumerate(instance.users):
        amounts = dict(zip(instance.resources, instance.demands_by_kind[n, 0].tolist(), strict=True))
        requests = {r: f"{amount:g}{'Gi' if r == 'memory' else ''}" for r, amount in amounts.items()}
        spec = {"containers": [{"resources": {"requests": requests}}]}
        labels = {mark: found.names[user]} if mark else {}
        pods.append({"metadata": {"name": f"p{n}", "namespace": user, "labels": labels}, "spec": spec, "status": {"phase": "Pending"}})
    for name, items in (("nodes", nodes), ("pods", pods)):
        (folder / f"{name}.json").write_text(json.dumps({"items": items}))
    (folder / "queues.yaml").write_text(found.text)
    return fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=folder / "queues.yaml").instance


def held(found: fo.Export, user: str) -> FloatArray:
    """Return what a user holds of each resource on each group of servers, (groups, resources)."""
    n = found.whole.instance.index(user)
    return np.array([found.whole.tasks[n, g] * found.whole.demands(g)[n] for g in range(len(found.whole.groups))])
