"""Clusters of public reports about Slurm: from the text of its tools to the right numbers, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fairopt as fo

ONE = "cpu=1,mem=1M,node=1"


def nodes(names: str, cpus: int = 100, partition: str = "all", gres: str = "(null)", configured: str = "") -> str:
    """Return what ``scontrol show nodes`` says of some nodes."""
    return "".join(
        f"NodeName={name} Arch=x86_64 CoresPerSocket=1 \n   CPUAlloc=0 CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.01\n   Gres={gres}\n"
        f"   RealMemory=512000 AllocMem=0 FreeMem=1000 Sockets={cpus} Boards=1\n   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A\n"
        f"   Partitions={partition} \n   CfgTRES={configured or f'cpu={cpus},mem=500G,billing={cpus}'}\n   AllocTRES=\n\n"
        for name in names.split()
    )


def job(number: int, user: str, tres: str = ONE, array: str = "1-99", **fields: Any) -> str:
    """Return what ``scontrol show jobs`` of 23.11 says of an array that waits, or (array "") of a job."""
    said = {"qos": "normal", "partition": "all", "licenses": "(null)", "more": "", "account": user, "time": "01:00:00"} | fields
    task = f" ArrayJobId={number} ArrayTaskId={array}" if array else ""
    return (
        f"JobId={number}{task} JobName=x\n   UserId={user}(1001) GroupId={user}(1001) MCS_label=N/A\n"
        f"   Priority=1 Nice=0 Account={said['account']} QOS={said['qos']}\n   JobState=PENDING Reason=Priority Dependency=(null)\n"
        f"   RunTime=00:00:00 TimeLimit={said['time']} TimeMin=N/A\n   Partition={said['partition']} AllocNode:Sid=login:1\n"
        f"   ReqNodeList=(null) ExcNodeList=(null)\n   NodeList=(null)\n   NumNodes=1-1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n"
        f"   ReqTRES={tres}\n   AllocTRES=(null)\n   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*\n"
        f"   OverSubscribe=OK Contiguous=0 Licenses={said['licenses']} Network=(null)\n{said['more']}\n"
    )


def imported(folder: Path, cluster: str, jobs: str, users: str = "user", **files: str) -> fo.Import:
    """Write the files and import them."""
    for name, text in {"nodes": cluster, "jobs": jobs, **files}.items():
        (folder / name).write_text(text)
    return fo.import_slurm(folder / "nodes", folder / "jobs", users=users, **{name: folder / name for name in files})


def tasks(found: fo.Import) -> dict[str, float]:
    """Return the exact number of tasks of each owner."""
    held = dict.fromkeys(found.owners, 0.0)
    for owner, number in zip(found.owners, fo.solve(found.instance, "drfh").tasks_per_user, strict=True):
        held[owner] += number
    return held


def test_what_a_job_does_not_set_is_not_noted(tmp_path: Path) -> None:
    """Every job of 23.11 has Socks/Node=* and CoreSpec=*; one that keeps two cores for the system is counted."""
    found = imported(tmp_path, nodes("n1"), job(1, "a") + job(2, "b").replace("CoreSpec=*", "CoreSpec=2"))
    assert [note for note in found.notes if "does not count" in note] == [
        "1 job has CoreSpec (cores that are kept for the system), which an instance does not have: it does not count"
    ]
