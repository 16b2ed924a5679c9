"""Licences of Slurm: named limits, or resources of the cluster; and back as GrpTRES."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.sacctmgr import Sacctmgr
from support.slurm_records import by_user, import_records, job, node

import fairopt as fo

TEXT = """LicenseName=ansys
    Total=12 Used=10 Free=0 Reserved=1 Remote=no
    LastConsumed=11 LastDeficit=1 LastUpdate=2026-11-25T17:24:10
LicenseName=flex@host.org Total=4 Used=0 Free=4 Reserved=0 Remote=yes
"""
NODES = [node("n1", 20)]
JOBS = [
    job(1, "cpu=1,mem=1G,node=1", account="l", licenses="ansys:1", array_task_string="1-99", array_job_id=1),
    job(2, "cpu=1,mem=1G,node=1", account="c", array_task_string="1-99", array_job_id=2),
]


def imported(folder: Path, jobs: list[dict[str, Any]] = JOBS, licenses: str = TEXT, **options: Any) -> fo.Import:
    """Import the node and these jobs."""
    path = folder / "licenses.txt"
    path.write_text(licenses)
    return import_records(folder, NODES, jobs, licenses=path, **options)


def test_licences_stop_those_who_need_them_and_count_in_shares_if_asked(tmp_path: Path) -> None:
    """12 licences, 1 reserved and 1 used elsewhere, 20 CPUs.

    As limits: both have half of the CPUs, 10 and 10, and that is all licences. As resources: l's share is tasks / 10 and c's tasks / 20,
    so 20/3 and 40/3.
    """
    limited = imported(tmp_path).instance
    assert limited.limits == (fo.Limit("license/ansys", 10, amounts={"l": 1}),)
    assert limited.resources == ("cpu", "memory")
    assert dict(zip(limited.users, fo.solve(limited, "drfh").tasks_per_user, strict=True)) == pytest.approx({"l": 10, "c": 10})
    counted = imported(tmp_path, count_licenses=True).instance
    assert dict(counted.shared) == {"ansys": 10, "flex@host.org": 4}
    assert dict(zip(counted.users, fo.solve(counted, "drfh").tasks_per_user, strict=True)) == pytest.approx({"l": 20 / 3, "c": 40 / 3})


def test_the_json_says_the_same(tmp_path: Path) -> None:
    """As slurmrestd answers."""
    listed = [{"LicenseName": "ansys", "Total": 12, "Used": 10, "Free": 1, "Reserved": 1, "LastDeficit": 1, "Remote": False}]
    assert imported(tmp_path, licenses=json.dumps({"licenses": listed})).instance == imported(tmp_path).instance


def test_a_job_holds_its_licences_once(tmp_path: Path) -> None:
    """Of a job on two nodes each task takes half; what runs takes what it was given; tracked ones stand in TRES strings."""
    on_two = job(1, "cpu=8,mem=8G,node=2", node_count=2, licenses="ansys:3")
    running = {"job_state": ["RUNNING"], "nodes": "n1", "tres_alloc_str": "cpu=2,mem=1G,node=1,license/ansys=2"}
    either = job(2, "cpu=2,mem=1G,node=1", licenses="ansys|flex@host.org", licenses_allocated="flex@host.org:1", **running)
    tracked = job(3, "cpu=3,mem=1G,node=1", **{**running, "tres_alloc_str": "cpu=3,mem=1G,node=1,license/ansys=2"})
    users = by_user(imported(tmp_path, [on_two, either, tracked], count_licenses=True)).values()
    taken = {user["demand"]["cpu"]: (user["demand"]["ansys"], user["demand"]["flex@host.org"], user["tasks"]) for user in users}
    assert taken == {4: (1.5, 0, 2), 2: (0, 1, 1), 3: (2, 0, 1)}


@pytest.mark.parametrize(
    ("licenses", "note"),
    [
        ("matlab:2", "jobs ask for the licences matlab, which .*licenses.txt does not list"),
        ("ansys|flex@host.org", "1 job takes one of several licences, whichever is free: counted with none of them, a relaxation"),
    ],
)
def test_what_does_not_count_is_said(tmp_path: Path, licenses: str, note: str) -> None:
    """Licences that are not known, and alternatives of a job that waits."""
    found = imported(tmp_path, [job(1, licenses=licenses)])
    assert found.instance.limits == ()
    assert any(re.match(note, each) for each in found.notes)


def test_without_the_export_a_note_says_how_to_get_it(tmp_path: Path) -> None:
    """As before there was one."""
    assert "1 job asks for licences, which do not count: how many there are is in scontrol show licenses (--licenses)" in (
        import_records(tmp_path, NODES, JOBS).notes
    )


@pytest.mark.parametrize(
    ("jobs", "licenses", "message"),
    [
        (JOBS, "PartitionName=batch Nodes=n1\n", "these are partitions, and licenses are expected"),
        (JOBS, "LicenseName=ansys Total=many\n", "line 1: Total: expected a number"),
        (JOBS, TEXT + "LicenseName=ansys Total=1\n", 'licence "ansys" is listed twice'),
        ([job(1, licenses="ansys:x")], TEXT, '"ansys:x" is not a licence such as ansys:4'),
    ],
)
def test_bad_exports_are_refused(tmp_path: Path, jobs: list[dict[str, Any]], licenses: str, message: str) -> None:
    """With the place."""
    with pytest.raises(fo.InvalidInstance, match=message):
        imported(tmp_path, jobs, licenses)


@pytest.mark.parametrize("count", [False, True])
def test_limits_of_accounts_come_and_go(tmp_path: Path, count: bool) -> None:
    """GrpTRES=license/ansys=6 stops the account at 6 tasks. The export limits it to what it holds, and its undo puts 6 back."""
    tree = [
        ("root", "", None, {}),
        ("l", "", "root", {"license/ansys": 6}),
        ("l", "u", None, {}),
        ("c", "", "root", {}),
        ("c", "u", None, {}),
    ]
    path = tmp_path / "associations.json"
    listed = [
        {"account": account, "user": user, "partition": "", "parent_account": parent, "shares_raw": 1}
        | {"max": {"tres": {"total": [{"type": "license", "name": "ansys", "count": 6}] if limits else []}}}
        for account, user, parent, limits in tree
    ]
    path.write_text(json.dumps({"associations": listed}))
    instance = imported(tmp_path, associations=path, count_licenses=count).instance
    found = fo.solve(instance, "drfh")
    assert dict(zip(instance.users, found.tasks_per_user, strict=True)) == pytest.approx({"l/u": 6, "c/u": 14})
    export = fo.export_slurm(found, level="account-user")
    assert not any("ansys" in note for note in export.notes)
    slurm = Sacctmgr(path)
    slurm.limits["l", "", ""] = {"license/ansys": 6.0}
    slurm.run(export.files["limits"])
    assert {key[:2]: limits["license/ansys"] for key, limits in slurm.limits.items() if limits} == {
        ("l", ""): 6, ("l", "u"): 6, ("c", ""): 0, ("c", "u"): 0
    }  # fmt: skip
    slurm.run(export.files["undo"])
    assert {key[:2]: limits["license/ansys"] for key, limits in slurm.limits.items() if "license/ansys" in limits} == {("l", ""): 6}


def test_a_log_of_jobs_says_what_they_took(tmp_path: Path) -> None:
    """Two jobs of one hour, 5 of 10 licences each: with the licences as resources they are due and given all of them."""
    cluster = imported(tmp_path, count_licenses=True).instance
    head = "JobID|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints\n"
    hour = "batch|COMPLETED|2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T01:00:00|None"
    amounts = "cpu=1,mem=1G,node=1,license/ansys=5"
    log = tmp_path / "log.txt"
    log.write_text(head + "".join(f"{n}|l|u|{hour}|{amounts}|{amounts}|n1|\n" for n in (1, 2)))
    use = fo.history(log, cluster).to_frame("limit")
    assert dict(zip(use["name"], use["mean_use"], strict=True)) == {"ansys": 1.0, "flex@host.org": 0.0}
