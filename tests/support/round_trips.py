"""Random trees of queues, and the way back: what an export writes, read by the importers with the work of the instance, and solved again.

Servers are alike for all users, amounts are whole, and every user asks for more than it can have or for a few tasks, so that an instance
can be written as nodes and as pods, applications or jobs of its users. Names are those that every scheduler allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from support.sacctmgr import Sacctmgr

import fairopt as fo

__all__ = ["GPU", "KUBERNETES", "WAYS_BACK", "random_tree"]

GPU = "nvidia.com/gpu"


def random_tree(seed: int, gpus: str = GPU) -> fo.Instance:
    """Return a cluster of two to four kinds of servers, and queues of one or two levels with weights, guarantees and limits."""
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(2, 5))
    capacities = np.column_stack([rng.integers(4, 24, kinds), rng.integers(8, 65, kinds), rng.integers(0, 5, kinds)]).astype(float)
    capacities[0, 2] = max(capacities[0, 2], 1)
    counts = rng.integers(1, 4, kinds)
    total = counts @ capacities
    resources = ["cpu", "memory", gpus]
    queues, leaves = [], []
    for top in range(int(rng.integers(1, 4))):
        below = int(rng.integers(0, 4))
        names = [f"q{top}-{child}" for child in range(below)]
        for name, parent in [(f"q{top}", None), *((each, f"q{top}") for each in names)]:
            share = {
                r: float(amount * rng.uniform(0.2, 1.0) // 1) for r, amount in zip(resources, total, strict=True) if rng.random() < 0.3
            }
            limit = {r: amount for r, amount in share.items() if amount >= 1}
            sure = {r: float(int(limit.get(r, amount) * rng.uniform(0, 0.15))) for r, amount in zip(resources, total, strict=True)}
            guarantee = {r: amount for r, amount in sure.items() if amount >= 1 and rng.random() < 0.3}
            queues.append(fo.Queue(name, parent, float(rng.integers(1, 5)), guarantee=guarantee, limit=limit))
        leaves += names or [f"q{top}"]
    of = [leaf for leaf in leaves for _ in range(int(rng.integers(1, 3)))]
    demands = np.column_stack([rng.integers(1, 5, len(of)), rng.integers(1, 9, len(of)), rng.integers(0, 2, len(of))]).astype(float)
    for n in range(1, len(of)):
        demands[n, 1] += (of[n] == of[n - 1]) & (demands[n] == demands[n - 1]).all()  # users of a queue have shapes of their own
    tasks = np.where(rng.random(len(of)) < 0.25, rng.integers(1, 4, len(of)), np.inf)
    return fo.Instance(
        capacities,
        demands,
        counts=counts,
        tasks=tasks,
        queues=queues,
        queue_of=of,
        users=[f"u{n}" for n in range(len(of))],
        servers=[f"s{i}" for i in range(kinds)],
        resources=resources,
    )


def asked(instance: fo.Instance) -> list[int]:
    """Return how many tasks of each user the export of a cluster lists: all, or more than the cluster holds."""
    most = [np.min(instance.capacities[:, d > 0] / d[d > 0], axis=1) @ instance.counts for d in instance.demands]
    return [int(number) for number in np.minimum(instance.tasks, np.floor(most) + 1)]


def each_server(instance: fo.Instance) -> list[tuple[str, dict[str, float]]]:
    """Return the name of each server, and what it has."""
    rows = zip(instance.servers, instance.capacities.tolist(), instance.counts.astype(int).tolist(), strict=True)
    return [(f"{name}-{j}", dict(zip(instance.resources, row, strict=True))) for name, row, count in rows for j in range(count)]


# Kubernetes ----------------------------------------------------------------------------------------------------------------------

KUBERNETES = {
    "kueue": ("", fo.export_kueue),
    "volcano": ("volcano.sh/queue-name", fo.export_volcano),
    "kai": ("kai.scheduler/queue", fo.export_kai),
    "yunikorn": ("yunikorn.apache.org/queue", fo.export_yunikorn),
}


def of_kubernetes(kind: str, found: fo.Export, folder: Path) -> fo.Import:
    """Import nodes, a namespace of each user with its pods, and the queues of the export."""
    mark, instance = KUBERNETES[kind][0], found.whole.instance
    objects = [each for each in yaml.safe_load_all(found.text) if each and "kind" in each]
    labels = {each["metadata"]["name"]: each["spec"].get("nodeLabels", {}) for each in objects if each["kind"] == "ResourceFlavor"}
    of_row = {group.rows[0]: labels.get(found.names.get(group.name, ""), {}) for group in found.whole.groups}
    kind_of = {instance.servers[row]: label for row, label in of_row.items()}
    nodes = [
        {
            "metadata": {"name": name, "labels": kind_of.get(name.rpartition("-")[0], {})},
            "status": {"allocatable": {**quantities(amounts), "pods": "1000000"}},
        }
        for name, amounts in each_server(instance)
    ]
    of_queue = {each["spec"]["clusterQueue"]: each["metadata"]["namespace"] for each in objects if each["kind"] == "LocalQueue"}
    pods = []
    for n, (user, number) in enumerate(zip(instance.users, asked(instance), strict=True)):
        requests = quantities(dict(zip(instance.resources, instance.demands[n].tolist(), strict=True)))
        path = queue_path(instance, instance.queue_of[n], found, kind)
        labels = {mark: path} if mark else {}
        for j in range(number):
            metadata = {"name": f"{user}-{j}", "namespace": of_queue.get(path, user), "labels": labels}
            spec = {"containers": [{"resources": {"requests": requests}}]}
            pods.append({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    for name, items in (("nodes", nodes), ("pods", pods)):
        (folder / f"{name}.json").write_text(json.dumps({"items": items}))
    (folder / "queues.yaml").write_text(found.text)
    return fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=folder / "queues.yaml")


def quantities(amounts: dict[str, float]) -> dict[str, str]:
    """Write amounts as Kubernetes does."""
    return {resource: f"{amount:g}{'Gi' if resource == 'memory' else ''}" for resource, amount in amounts.items() if amount}


def queue_path(instance: fo.Instance, queue: str | None, found: fo.Export, kind: str) -> str:
    """Return the name by which a pod calls its queue."""
    assert queue is not None
    parent = next(each.parent for each in instance.queues if each.name == queue)
    if kind in ("yunikorn", "yarn"):
        return f"{queue_path(instance, parent, found, kind)}.{found.names[queue]}" if parent else f"root.{found.names[queue]}"
    return found.names[queue]


# YARN ----------------------------------------------------------------------------------------------------------------------------


def of_yarn(found: fo.Export, folder: Path) -> fo.Import:
    """Import nodes, an application of each user, and the file of queues."""
    instance = found.whole.instance

    def amounts(row: dict[str, float]) -> dict[str, Any]:
        listed = [{"name": "yarn.io/gpu", "value": row["yarn.io/gpu"]}]
        return {"memory": row["memory"] * 1024, "vCores": row["cpu"], "resourceInformations": {"resourceInformation": listed}}

    nodes = []
    for name, row in each_server(instance):
        plain = {"usedMemoryMB": 0, "availMemoryMB": row["memory"] * 1024, "usedVirtualCores": 0, "availableVirtualCores": row["cpu"]}
        nodes.append({"id": name, "state": "RUNNING", "totalResource": amounts(row), **plain})
    apps = []
    for n, (user, number) in enumerate(zip(instance.users, asked(instance), strict=True)):
        row = dict(zip(instance.resources, instance.demands[n].tolist(), strict=True))
        request = {"resourceName": "*", "numContainers": number, "capability": amounts(row)}
        queue = queue_path(instance, instance.queue_of[n], found, "yarn")
        apps.append({"id": f"application_1_{n}", "user": user, "queue": queue, "state": "ACCEPTED", "resourceRequests": [request]})
    (folder / "nodes.json").write_text(json.dumps({"nodes": {"node": nodes}}))
    (folder / "apps.json").write_text(json.dumps({"apps": {"app": apps}}))
    (folder / "queues.xml").write_text(found.text)
    return fo.import_yarn(folder / "nodes.json", folder / "apps.json", folder / "queues.xml", users="user")


# Slurm ---------------------------------------------------------------------------------------------------------------------------


def of_slurm(found: fo.Export, folder: Path) -> fo.Import:
    """Import nodes, an array of jobs of each user, and the accounts after the script has run."""
    instance = found.whole.instance
    nodes = [
        {
            "name": name, "cpus": int(row["cpu"]), "real_memory": int(row["memory"] * 1024),
            "gres": f"gpu:{row['gpu']:g}" if row["gpu"] else "",
            "state": ["IDLE"], "partitions": ["batch"], "features": [],
        }
        for name, row in each_server(instance)
    ]  # fmt: skip
    jobs = []
    for n, (user, number) in enumerate(zip(instance.users, asked(instance), strict=True)):
        cpu, memory, gpus = instance.demands[n].tolist()
        tres = f"cpu={cpu:g},mem={memory:g}G,node=1" + (f",gres/gpu={gpus:g}" if gpus else "")
        jobs.append(
            {
                "job_id": n + 1, "account": instance.queue_of[n], "user_name": user, "job_state": ["PENDING"], "partition": "batch",
                "tres_req_str": tres, "node_count": {"set": True, "number": 1}, "array_job_id": {"set": True, "number": n + 1},
                "array_task_string": f"1-{number}",
            }
        )  # fmt: skip
    accounts = [("root", "", "", 1), *((each.name, "", each.parent or "root", each.weight) for each in instance.queues)]
    accounts += [(str(queue), user, "", 1) for user, queue in zip(instance.users, instance.queue_of, strict=True)]
    listed = [
        {"account": account, "user": user, "partition": "", "parent_account": parent, "shares_raw": int(shares)}
        for account, user, parent, shares in accounts
    ]
    for name, record in (("nodes", {"nodes": nodes}), ("jobs", {"jobs": jobs}), ("before", {"associations": listed})):
        (folder / f"{name}.json").write_text(json.dumps(record))
    slurm = Sacctmgr(folder / "before.json")
    assert slurm.run(found.text) == 0
    return fo.import_slurm(folder / "nodes.json", folder / "jobs.json", slurm.to_json(folder / "after.json"), users="user")


WAYS_BACK: dict[str, tuple[Callable[[fo.Allocation], fo.Export], Callable[[fo.Export, Path], fo.Import], str]] = {
    **{
        kind: (export, lambda found, folder, kind=kind: of_kubernetes(kind, found, folder), GPU)  # type: ignore[misc]
        for kind, (_, export) in KUBERNETES.items()
    },
    "slurm": (fo.export_slurm, of_slurm, "gpu"),
    "yarn": (fo.export_yarn, of_yarn, "yarn.io/gpu"),
    "yarn-fair": (lambda allocation: fo.export_yarn(allocation, scheduler="fair"), of_yarn, "yarn.io/gpu"),
}
