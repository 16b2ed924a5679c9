"""What is declared of the columns of sacct and of its JSON is what the readers do; what nobody declared is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import import_records, job, node

import fairopt as fo
from fairopt.clusters.json_export import Part
from fairopt.slurm import sacct
from fairopt.slurm.sacct_fields import DECLARED, JSON, TABLE

HEAD = (
    "JobID|Cluster|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints|Suspended|Elapsed"
)
ROW = "7|c|a|u|batch|COMPLETED|{0}0|{0}0|{0}1|{0}2|None|cpu=4,node=1|cpu=4,node=1|n1||00:00:00|01:00:00".replace("{0}", "2026-10-01T0")
ROW = ROW.replace("T00|", "T00:00:00|").replace("T01|", "T01:00:00|").replace("T02|", "T02:00:00|")
CLUSTER = fo.Instance([[8]], [[1]], resources=["cpu"], servers=["n1"], users=["a/u"])
JOB: dict[str, Any] = {
    "job_id": 7,
    "account": "a",
    "user": "u",
    "partition": "batch",
    "nodes": "n1",
    "state": {"current": ["COMPLETED"], "reason": "None"},
    "time": {"submission": 1_790_000_000, "eligible": 1_790_000_000, "start": 1_790_000_000, "end": 1_790_003_600},
    "tres": {"allocated": [{"type": "cpu", "count": 4}], "requested": []},
}


class Seen(dict[str, Any]):
    """Columns that remember which of them were looked at."""

    def __init__(self, columns: dict[str, Any], used: set[str]) -> None:
        super().__init__(columns)
        self.used = used

    def __getitem__(self, name: str) -> Any:
        self.used.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dict."""
        self.used.add(name)
        return super().get(name, default)


def test_every_name_is_declared_once() -> None:
    """A field has one use; the command that messages name has columns that are read."""
    for fields in DECLARED:
        names = [name.lower() for field in fields.fields for name in field.names]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
        assert all(field.why for field in fields.fields)
    assert set(sacct.COMMAND.partition(" -o ")[2].partition(" ")[0].split(",")) <= set(TABLE.of("read"))


def test_the_readers_look_at_what_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history and the average of a window together look at all columns that are declared as read, and at no other."""
    used: set[str] = set()
    read = sacct.read_sacct
    monkeypatch.setattr("fairopt.slurm.sacct_log.read_sacct", lambda *a: replace(found := read(*a), columns=Seen(found.columns, used)))
    log = tmp_path / "log.txt"
    log.write_text(f"{HEAD}\n{ROW}\n")
    fo.history(log, CLUSTER)
    assert used | set(sacct._FIELDS) == {name.lower() for name in TABLE.of("read")}

    of_job: set[str] = set()
    get = Part.get

    def counting(part: Part, key: str) -> Part:
        if isinstance(part.value, dict) and "tres" in part.value:
            of_job.add(key)
        return get(part, key)

    monkeypatch.setattr(Part, "get", counting)
    (tmp_path / "log.json").write_text(
        json.dumps({"jobs": [JOB, JOB | {"job_id": 8, "account": "", "user": ""}], "errors": [], "slurm": {}})
    )
    fo.history(tmp_path / "log.json", CLUSTER.replace(tasks=None))
    assert of_job == set(JSON.of("read"))


def test_what_does_not_count_is_named(tmp_path: Path) -> None:
    """Columns in any case; empty cells say nothing."""
    log = tmp_path / "log.txt"
    rows = [
        ROW.replace("7|", f"{n}|", 1).replace("cpu=4", "cpu=1") + f"|{qos}||red|1-00:00:00"
        for n, qos in ((1, "long"), (2, ""), (3, "short"))
    ]
    log.write_text("\n".join([f"{HEAD}|QOS|RESERVATION|Colour|timelimit", *rows]) + "\n")
    expected = [
        "2 sacct rows have QOS (its QOS, whose limits count in an import alone), which an instance does not have: it does not count",
        "3 sacct rows have the field Colour, which this import does not know: it does not count",
    ]
    assert [note for note in fo.history(log, CLUSTER).notes if "does not count" in note] == expected
    running = job(9, job_state=["RUNNING"], nodes="n1", tres_alloc_str="cpu=4,mem=8G,node=1")
    window = ("2026-10-01T00:00:00", "2026-10-01T03:00:00")
    notes = import_records(tmp_path, [node("n1")], [running], sacct=log, window=window).notes
    assert [note for note in notes if "does not count" in note] == expected
    (tmp_path / "log.json").write_text(json.dumps({"jobs": [JOB | {"qos": "long", "hue": 5, "priority": {"set": True, "number": 3}}]}))
    assert [note for note in fo.history(tmp_path / "log.json", CLUSTER).notes if "does not count" in note] == [
        "1 sacct --json job has qos (its QOS, whose limits count in an import alone), which an instance does not have: it does not count",
        "1 sacct --json job has the field hue, which this import does not know: it does not count",
    ]
