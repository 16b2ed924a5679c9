"""Records of PBS for tests, as pbsnodes and qstat write them with -F json, without what the import ignores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairopt as fo

__all__ = ["import_records", "job", "vnode"]

HEAD = {"timestamp": 1_780_000_000, "pbs_version": "23.06.06", "pbs_server": "head"}


def vnode(name: str, ncpus: int = 8, mem: str = "16gb", /, state: str = "free", resources: Any = None, **fields: Any) -> tuple[str, Any]:
    """Return the name of a vnode and its record."""
    available = {"arch": "linux", "host": name, "mem": mem, "ncpus": ncpus, "vnode": name} | (resources or {})
    return name, {"Mom": f"{name}.example", "ntype": "PBS", "state": state, "resources_available": available} | fields


def job(number: object, select: str = "1:ncpus=1", /, user: str = "ann", state: str = "Q", **fields: Any) -> tuple[str, Any]:
    """Return the name of a job and its record."""
    asked = {"select": select, "place": "free", "walltime": "01:00:00"} | fields.pop("asked", {})
    record = {"Job_Name": "x", "Job_Owner": f"{user}@login", "job_state": state, "queue": "workq", "Resource_List": asked}
    return f"{number}.head", record | {"project": "_pbs_project_default"} | fields


def import_records(
    folder: Path, vnodes: list[Any], jobs: list[Any], /, queues: Any = None, server: Any = None, **options: Any
) -> fo.Import:
    """Import these records."""
    for name, key, records in (
        ("nodes", "nodes", vnodes),
        ("jobs", "Jobs", jobs),
        ("queues", "Queue", queues),
        ("server", "Server", server),
    ):
        if records is not None:
            (folder / f"{name}.json").write_text(json.dumps(HEAD | {key: dict(records)}))
            if name in ("queues", "server"):
                options[name] = folder / f"{name}.json"
    return fo.import_pbs(folder / "nodes.json", folder / "jobs.json", **options)
