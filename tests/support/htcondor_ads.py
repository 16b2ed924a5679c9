"""Ads of HTCondor for tests, as condor_status and condor_q write them with -json, without what the import ignores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairopt as fo

__all__ = ["import_ads", "job", "slot"]


def slot(name: str, cpus: float = 8, memory: float = 16384, /, kind: str = "Partitionable", **attributes: Any) -> dict[str, Any]:
    """Return a slot with all that it has; ``name`` is slot1@machine."""
    ad = {"Name": name, "Machine": name.partition("@")[2], "SlotType": kind, "State": "Unclaimed", "Cpus": cpus, "Memory": memory}
    return ad | {"TotalSlotCpus": cpus, "TotalSlotMemory": memory} | attributes


def job(number: int, owner: str = "ada", /, status: int = 1, cpus: Any = 1, memory: Any = 1024, **attributes: Any) -> dict[str, Any]:
    """Return a job, of a group if it has one: ``group="group_physics"``."""
    ad = {"ClusterId": number, "ProcId": 0, "JobStatus": status, "JobUniverse": 5, "Owner": owner, "RequestCpus": cpus}
    group = attributes.pop("group", "")
    if group:
        ad |= {"AccountingGroup": f"{group}.{owner}", "AcctGroup": group, "AcctGroupUser": owner}
    return ad | {"RequestMemory": memory} | attributes


def import_ads(folder: Path, slots: list[Any], jobs: list[Any], config: str = "", priorities: Any = None, **options: Any) -> fo.Import:
    """Import these ads; a configuration is text, priorities are text or ads."""
    (folder / "slots.json").write_text(json.dumps(slots))
    (folder / "jobs.json").write_text(json.dumps(jobs))
    if config:
        (folder / "config").write_text(config)
        options["config"] = folder / "config"
    if priorities is not None:
        (folder / "priorities").write_text(priorities if isinstance(priorities, str) else json.dumps(priorities))
        options["priorities"] = folder / "priorities"
    return fo.import_htcondor(folder / "slots.json", folder / "jobs.json", **options)
