"""What the import of PBS declares of fields is what it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pbs_records import import_records, job, vnode

from fairopt.clusters.json_export import Part
from fairopt.clusters.pbs.fields import DECLARED, JOB, NODE, QUEUE

COUNTS = "Queued:3 Running:0 Exiting:0 Expired:0 "


def test_every_name_is_declared_once() -> None:
    """A field has one use."""
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names)), (fields.record, sorted(name for name in names if names.count(name) > 1))


def test_the_reader_reads_what_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field that it looks at is declared as read, and it looks at all of them."""
    used: dict[str, set[str]] = {"job": set(), "vnode": set(), "queue": set()}
    get = Part.get
    marks = (("job", "job_state"), ("vnode", "ntype"), ("queue", "queue_type"))

    def counting(part: Part, key: str) -> Part:
        if isinstance(part.value, dict):
            for kind, mark in marks:
                if mark in part.value:
                    used[kind].add(key)
        return get(part, key)

    monkeypatch.setattr(Part, "get", counting)
    arrays = [job("2[]", state="B", array="True", array_state_count=COUNTS), job("3[]", array="True", array_indices_submitted="1-2")]
    queues = [("workq", {"queue_type": "Execution", "started": "True"})]
    import_records(
        tmp_path,
        [vnode("a", resources={"host": None})],
        [job(1, state="R", schedselect="1:ncpus=1", exec_vnode="(a:ncpus=1)"), *arrays],
        queues,
    )
    of_text = {"Job_Owner", "euser", "egroup", "group_list", "project", "Account_Name", "queue"}  # the owners, in one go
    assert used["job"] | of_text == set(JOB.of("read"))
    assert used["vnode"] == set(NODE.of("read"))
    assert used["queue"] == set(QUEUE.of("read"))


def test_fields_that_an_instance_does_not_have_are_named_with_their_number(tmp_path: Path) -> None:
    """Noted ones with what they say, and those that nobody knows."""
    found = import_records(tmp_path, [vnode("a", reservation="R7")], [job(1, depend="afterok:7", color="red"), job(2, depend="afterok:7")])
    assert [note for note in found.notes if "does not count" in note] == [
        "1 vnode has reservation (a reservation, which keeps it for its jobs), which an instance does not have: it does not count",
        "2 jobs have depend (jobs that it waits for), which an instance does not have: it does not count",
        "1 job has the field color, which this import does not know: it does not count",
    ]
