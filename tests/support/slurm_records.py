"""Nodes and jobs of Slurm for tests, in the words of its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import fairopt as fo

__all__ = ["by_user", "import_records", "job", "node"]


def by_user(result: fo.Import) -> dict[str, dict[str, Any]]:
    """Return what there is to know of each user."""
    instance = result.instance
    return {
        name: {
            "demand": dict(zip(instance.resources, instance.demands[n].tolist(), strict=True)),
            "tasks": instance.tasks[n],
            "held": result.held[n],
            "on": {instance.servers[i] for i in np.flatnonzero(instance.eligibility[n])},
        }
        for n, name in enumerate(instance.users)
    }


def import_records(folder: Path, nodes: list[dict[str, Any]], jobs: list[dict[str, Any]], **options: Any) -> fo.Import:
    """Write both and import them."""
    for kind, records in (("nodes", nodes), ("jobs", jobs)):
        (folder / f"{kind}.json").write_text(json.dumps({kind: records}))
    return fo.import_slurm(folder / "nodes.json", folder / "jobs.json", **options)


def node(name: str, cpus: int = 64, **more: Any) -> dict[str, Any]:
    """Make an idle node."""
    return {"name": name, "cpus": cpus, "real_memory": 131072, "state": ["IDLE"], "partitions": ["batch"], **more}


def job(identity: int, tres: str = "cpu=4,mem=8G,node=1", **more: Any) -> dict[str, Any]:
    """Make a job that waits."""
    named = {"job_id": identity, "account": "a", "user_name": "u", "partition": "batch", "job_state": ["PENDING"]}
    return {**named, "tres_req_str": tres, "tres_alloc_str": "", "node_count": 1, "tasks": 1, **more}
