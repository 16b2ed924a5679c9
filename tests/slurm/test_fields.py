"""What the import of Slurm declares of fields is what it does: reads, notes and ignores; what nobody declared is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import import_records, job, node

import fairopt as fo
from fairopt.clusters.json_export import Part
from fairopt.slurm.fields import DECLARED, JOB, NODE

TEXT = """\
JobId={number} ArrayJobId=7 JobName=Account=evil Contiguous=1
   UserId=ann(1000) GroupId=g(1000) MCS_label=N/A
   Priority=1 Nice=0 Account=lab QOS=normal{more}
   JobState=PENDING Reason=Priority Dependency=(null)
   NumNodes=1 NumCPUs=2 NumTasks=1 TRES=cpu=2,mem=1G,node=1,billing=2
   Command=/home/ann/job.sh Strange=2
"""


def test_every_name_is_declared_once() -> None:
    """A field has one use."""
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names)), (fields.record, sorted(name for name in names if names.count(name) > 1))
        assert all(field.why for field in fields.fields)


def test_the_reader_reads_what_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of jobs and nodes in JSON: every field that the reader looks at is declared, and it looks at all of them."""
    used: dict[str, set[str]] = {"job": set(), "node": set()}
    get = Part.get

    def counting(part: Part, key: str) -> Part:
        if isinstance(part.value, dict):
            for kind, mark in (("job", "job_state"), ("node", "real_memory")):
                if mark in part.value:
                    used[kind].add(key)
        return get(part, key)

    monkeypatch.setattr(Part, "get", counting)
    running: dict[str, Any] = {"job_state": ["RUNNING"], "nodes": "n[1-2]", "tres_alloc_str": "cpu=2,mem=2G,node=2", "cluster": "c"}
    jobs = [job(1), job(2, **running), job(3, shared="none"), job(4, array_job_id=4, array_task_string="1-9")]
    jobs.append(job(5, "", cpus=2, memory_per_cpu=0, het_job_id=5))
    (tmp_path / "tree").write_text("Account|User|Share\nroot||1\na||1\n a|u|1\n")
    (tmp_path / "sacct").write_text(
        "JobID|Account|User|Partition|Start|End|AllocTRES|NodeList\n2|a|u|batch|2026-01-01T00:00:00|Unknown|cpu=1|n1\n"
    )
    options = {"sacct": tmp_path / "sacct", "window": ("2026-01-02", "2026-01-03"), "associations": tmp_path / "tree"}
    (tmp_path / "licenses").write_text("LicenseName=ansys\n    Total=3\n")
    import_records(tmp_path, [node("n1"), node("n2")], jobs, licenses=tmp_path / "licenses", **options)
    for fields in (JOB, NODE):
        of_json = {name for name in fields.of("read") if name[0].islower()}
        assert used[fields.record] == of_json


def test_fields_that_an_instance_does_not_have_are_named_with_their_number(tmp_path: Path) -> None:
    """Noted ones with what they say, and those that nobody knows; empty and unset ones are none."""
    odd: dict[str, Any] = {
        "contiguous": True,
        "color": "red",
        "comment": "x",
        "network": "",
        "core_spec": {"set": False, "infinite": False, "number": 5},
    }
    found = import_records(tmp_path, [node("n1", owner="ann")], [job(1, **odd), job(2, contiguous=True)])
    assert [note for note in found.notes if "does not count" in note] == [
        "1 node has owner (the only user who may use it now), which an instance does not have: it does not count",
        "2 jobs have contiguous (its nodes are side by side), which an instance does not have: it does not count",
        "1 job has the field color, which this import does not know: it does not count",
    ]


def test_fields_of_text_are_counted_and_texts_of_people_are_not(tmp_path: Path) -> None:
    """The name and the command of a job may look like fields."""
    (tmp_path / "nodes.txt").write_text("NodeName=n1 CPUTot=4 RealMemory=4096 State=IDLE Colour=red\n   Comment=use a=b\n")
    (tmp_path / "jobs.txt").write_text(TEXT.format(number=8, more=" Hue=5") + TEXT.format(number=9, more=" Hue=5"))
    found = fo.import_slurm(tmp_path / "nodes.txt", tmp_path / "jobs.txt")
    assert found.owners == ("lab",)
    assert found.instance.tasks.tolist() == [2]
    assert [note for note in found.notes if "does not count" in note] == [
        "1 node has the field Colour, which this import does not know: it does not count",
        "2 jobs have the field Hue, which this import does not know: it does not count",
    ]


def test_fields_within_fields_are_noted(tmp_path: Path) -> None:
    """CPUs of a socket that a partition allows, in JSON of later versions."""
    limits = {"cpus_per_socket": {"set": True, "infinite": False, "number": 8}, "nodes": {"set": False, "infinite": True, "number": 0}}
    path = tmp_path / "partitions.json"
    path.write_text(json.dumps({"partitions": [{"name": "batch", "nodes": {"configured": "n1"}, "maximums": limits}]}))
    notes = import_records(tmp_path, [node("n1")], [job(1)], partitions=path).notes
    assert len([note for note in notes if note.startswith("1 partition has maximums.cpus_per_socket")]) == 1
