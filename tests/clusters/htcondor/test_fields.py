"""What the import of HTCondor declares of attributes is what it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.htcondor_ads import import_ads, job, slot

from fairopt.clusters.htcondor.fields import DECLARED, JOB, SLOT
from fairopt.clusters.json_export import Part


def test_the_reader_reads_what_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attribute that it looks at is declared as read, and it looks at all of them; each name has one use."""
    used: dict[str, set[str]] = {"slot": set(), "job": set()}
    get = Part.get

    def counting(part: Part, key: str) -> Part:
        if isinstance(part.value, dict):
            for kind, mark in (("job", "JobStatus"), ("slot", "SlotType")):
                if mark in part.value:
                    used[kind].add(key)
        return get(part, key)

    monkeypatch.setattr(Part, "get", counting)
    anonymous = job(3)
    del anonymous["Owner"]
    slots = [slot("slot1@w"), slot("slot2@w", kind="?")]
    import_ads(tmp_path, slots, [job(1, status=2), job(2, JobUniverse=11, status=2, JobMaterializeMaxIdle=5), anonymous])
    assert used["slot"] | {"Start"} == set(SLOT.of("read"))
    assert used["job"] | {"Requirements"} == set(JOB.of("read"))
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names))


def test_noted_attributes_are_counted(tmp_path: Path) -> None:
    """Disk, and which jobs a machine prefers."""
    slots = [slot("slot1@a", Rank=0.0), slot("slot1@b", Rank='/Expr(Owner == "ada")/')]
    found = import_ads(tmp_path, slots, [job(1, requestdisk=1024), job(2, RequestDisk=1024, NiceUser=False)])
    assert [note for note in found.notes if "does not count" in note] == [
        "1 slot has Rank (which jobs the machine prefers, and preempts others for), which an instance does not have: it does not count",
        "2 jobs have RequestDisk (disk of a machine), which an instance does not have: it does not count",
    ]
