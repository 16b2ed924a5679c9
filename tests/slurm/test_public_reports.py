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
        f"   RealMemory=512000 AllocMem=0 FreeMem=1000 Sockets={cpus} Boards=1\n   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1\n"
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
    options: dict[str, Any] = {name: folder / name for name in files}
    return fo.import_slurm(folder / "nodes", folder / "jobs", users=users, **options)


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


def test_a_job_beyond_what_all_may_hold_together(tmp_path: Path) -> None:
    """Partitions with a QOS of 2 CPUs and 10 GiB a user: an interactive job of 11 CPUs and 120 GiB has no part of these.

    On 32 CPUs ann has 2 small ones of 5 GiB (10), ben 2, and ann's large ones of 110 GiB on the other node are 500 / 110.
    """
    partitions = "".join(
        f"PartitionName={p}\n   AllowQos={p}\n   QoS={p}\n   Nodes={n}\n   State=UP\n\n" for p, n in (("cpu2", "n1"), ("gpu1", "n2"))
    )
    qos = "Name|Priority|Flags|MaxTRESPU\nnormal|0||\ncpu2|2||cpu=2,mem=10G\ngpu1|3||cpu=8,mem=500G\n"
    jobs = job(1, "ann", "cpu=1,mem=5G,node=1", partition="cpu2") + job(2, "ben", "cpu=1,mem=5G,node=1", partition="cpu2")
    jobs += job(3, "cat", "cpu=1,mem=110G,node=1", partition="gpu1") + job(4, "ann", "cpu=11,mem=120G,node=1", "", partition="cpu2")
    found = imported(tmp_path, nodes("n1", 32, "cpu2") + nodes("n2", 32, "gpu1"), jobs, qos=qos, partitions=partitions)
    assert [each.why for each in found.left_out] == ["breaks MaxTRESPU of the QOS cpu2, so it can never start"]
    assert tasks(found) == pytest.approx({"ann": 2, "ben": 2, "cat": 500 / 110})


@pytest.mark.parametrize("limit", ["GrpTRES", "MaxTRESPU", "MaxTRESPA"])
def test_jobs_of_two_cpus_under_limits(tmp_path: Path, limit: str) -> None:
    """They break a limit of one CPU, and one of them fits a limit of two; a limit of none closes them out, and they stay, with nothing."""
    jobs = job(1, "a", "cpu=2,mem=1M,node=1", qos="x") + job(2, "b")
    for bound, held in ((0, {"a": 0, "b": 99}), (1, {"b": 99}), (2, {"a": 1, "b": 98})):
        found = imported(tmp_path, nodes("n1"), jobs, qos=f"Name|{limit}\nnormal|\nx|cpu={bound}\n")
        assert tasks(found) == pytest.approx(held)
        assert [each.why for each in found.left_out] == ([f"breaks {limit} of the QOS x, so it can never start"] if bound == 1 else [])


def test_qos_of_a_large_site(tmp_path: Path) -> None:
    """16 GPUs: two users of an account with 4 in one QOS, 2 each; 2 of all in another, whose jobs have 1; the rest to the third.

    A job of 2 GPUs breaks MaxTRES of its QOS.
    """
    qos = (
        "Name|Priority|GraceTime|Preempt|PreemptExemptTime|PreemptMode|Flags|UsageThres|UsageFactor|GrpTRES|GrpTRESMins|GrpTRESRunMins|"
        "GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESPerNode|MaxTRESMins|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxJobsPA|"
        "MaxSubmitPA|MinTRES\n"
        "gpu-dev|80|00:00:00|||cluster|||1.000000|cpu=80,gres/gpu=8|||||||||02:00:00|cpu=40,gres/gpu=3||10|cpu=60,gres/gpu=4|||\n"
        "gpu-t3|50|00:00:00|||cluster|||1.000000|||||||cpu=10240,gres/gpu=2|||20:00:00|cpu=96000||10000|cpu=96000|||\n"
        "gpu-t4|50|00:00:00|||cluster|||1.000000|gres/gpu=2||||||gres/gpu=1|||4-04:00:00|||10000||||\n"
    )
    asked = "cpu=10,mem=10G,node=1,billing=10,gres/gpu=1"
    jobs = job(1, "u1", asked, qos="gpu-dev", account="p") + job(2, "u2", asked, qos="gpu-dev", account="p")
    jobs += job(3, "u3", asked, qos="gpu-t3") + job(4, "u4", asked, qos="gpu-t4")
    jobs += job(5, "u4", "cpu=20,mem=20G,node=1,gres/gpu=2", "", qos="gpu-t4")
    found = imported(tmp_path, nodes("n1 n2 n3 n4", 40, gres="gpu:4"), jobs, qos=qos)
    assert tasks(found) == pytest.approx({"u1": 2, "u2": 2, "u3": 10, "u4": 2})
    assert [each.why for each in found.left_out] == ["breaks MaxTRES of the QOS gpu-t4, so it can never start"]


def test_a_qos_whose_users_may_run_no_job(tmp_path: Path) -> None:
    """MaxJobsPU=0 is a limit of none, not one that is not set."""
    qos = "Name|MaxJobsPU|MaxSubmitPU|MaxTRESPU\nnormal||10|\nstat||30|cpu=30\nhold|0|10|\n"
    jobs = job(1, "a", qos="stat") + job(2, "b", qos="hold") + job(3, "c")
    assert tasks(imported(tmp_path, nodes("n1"), jobs, qos=qos)) == pytest.approx({"a": 30, "b": 0, "c": 70})


def test_licences_of_a_server_that_others_use_too(tmp_path: Path) -> None:
    """Of 50 remote licences 17 are taken outside of Slurm: 33. a takes 2 ansys, c 1 and 2 remote ones: both 10/3; b has 33 - 20/3."""
    licenses = (
        "LicenseName=ansys\n    Total=10 Used=2 Free=8 Reserved=0 Remote=no\nLicenseName=nastran@slurmdb\n"
        "    Total=50 Used=3 Free=30 Reserved=0 Remote=yes\n    LastConsumed=20 LastDeficit=17 LastUpdate=2023-02-28T16:36:55\n"
    )
    jobs = job(1, "a", licenses="ansys:2") + job(2, "b", licenses="nastran@slurmdb")
    jobs += job(3, "c", licenses="ansys:1,nastran@slurmdb:2")
    found = imported(tmp_path, nodes("n1", 64), jobs, licenses=licenses)
    assert tasks(found) == pytest.approx({"a": 10 / 3, "b": 33 - 20 / 3, "c": 10 / 3})


def test_gpus_that_accounting_does_not_track(tmp_path: Path) -> None:
    """CfgTRES and ReqTRES have none; Gres and TresPerNode do: 4 GPUs each, of 1 and of 2 a job."""
    asked = "cpu=8,mem=8G,node=1,billing=8"
    jobs = job(1, "a", asked, more="   TresPerNode=gres/gpu:h100:1\n") + job(2, "b", asked, more="   TresPerNode=gres/gpu:2\n")
    found = imported(tmp_path, nodes("n1", 192, gres="gpu:h100:8", configured="cpu=192,mem=800G,billing=192"), jobs)
    assert tasks(found) == pytest.approx({"a": 4, "b": 2})


def test_shares_of_a_grid_site(tmp_path: Path) -> None:
    """Monitoring has most shares and 3 jobs at most; the other 97 CPUs are 80,000 : 20,000."""
    rows = [("root", "", 1, ""), (" local", "", 80000, ""), ("  local", "a", 1, ""), (" fgi", "", 20000, ""), ("  fgi", "b", 1, "")]
    rows += [(" ops", "", 100000, "3"), ("  ops", "c", 1, "")]
    associations = "Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|MaxJobs|MaxTRES|QOS|Def QOS\n"
    associations += "".join(f"io|{account}|{user}||{share}||{jobs}|||||normal\n" for account, user, share, jobs in rows)
    jobs = job(1, "a", account="local") + job(2, "b", account="fgi") + job(3, "c", account="ops")
    found = imported(tmp_path, nodes("n1"), jobs, "account", associations=associations)
    assert tasks(found) == pytest.approx({"local": 77.6, "fgi": 19.4, "ops": 3})
