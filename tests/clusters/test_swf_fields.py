"""What is declared of the Standard Workload Format is what the readers do: a field that is read changes an answer, and no other does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.clusters.swf_fields import COLUMNS, DECLARED, HEADER, JOB

FIRST = "; MaxNodes: 4\n; MaxProcs: 16\n; UnixStartTime: 1790000000\n; TimeZoneString: Europe/Berlin\n"
LINES = (
    "1 0 0 90 6 50 1048576 8 120 -1 1 7 2 3 1 1 -1 -1",
    "2 10 80 60 4 40 2097152 4 100 3145728 1 8 3 4 2 1 -1 -1",
    "3 20 90 -1 -1 30 -1 2 90 1048576 5 9 3 5 1 1 -1 -1",
    "4 30 70 0 2 30 -1 2 90 1048576 1 7 2 5 1 1 -1 -1",
)
CHANGED = {  # what a field becomes; others: one more
    "Job Number": "9",
    "Status": "5",
    "Run Time": "-1",
    "Requested Memory": "4194304",
    "Wait Time": "85",
}


def answers(folder: Path, text: str) -> list[Any]:
    """Return what an import, a history and a trace make of a log, for each kind of owner."""
    log = folder / "log.swf"
    log.write_text(text)
    found: list[Any] = []
    for users in ("user", "group", "queue"):
        imported = fo.import_swf(log, users=users, memory=64)
        trace = fo.trace_swf(log, users=users, memory=True)
        log_of = fo.history(log, imported.instance, users=users, moments="all")
        found.append(
            (imported.instance.users, imported.instance.demands.tolist(), imported.held.tolist(), imported.instance.tasks.tolist())
        )
        found.append((trace.to_frame().astype(str).to_numpy().tolist(), np.asarray(trace.estimates).tolist()))
        found.append(
            (log_of.owners, log_of.to_frame().astype(str).to_numpy().tolist(), log_of.setting.log.unjudged, str(log_of.setting.log.clock))
        )
        of_log = log_of.setting.log
        found.append((of_log.jobs.tolist(), of_log.submit.tolist(), of_log.start.tolist(), of_log.row.tolist()))
    return found


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return the answers to the log as it stands."""
    return answers(tmp_path_factory.mktemp("before"), FIRST + "\n".join(LINES) + "\n")


def test_every_field_is_declared_once() -> None:
    """The 18 of a job, and those of the header."""
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names))
    assert sorted(name for field in JOB.fields for name in field.names) == sorted(COLUMNS)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_field_that_is_read_changes_an_answer(tmp_path: Path, before: list[Any], name: str) -> None:
    """And one that is noted or ignored changes none."""
    lines = list(LINES)
    line = {"Used Memory": 0, "Status": 3}.get(name, 1)  # a job that requested no memory, and one that ran for no time
    words = lines[line].split()
    column = COLUMNS.index(name)
    words[column] = CHANGED.get(name, "1" if name == "Preceding Job Number" else str(int(words[column]) + 1))
    lines[line] = " ".join(words)
    after = answers(tmp_path, FIRST + "\n".join(lines) + "\n")
    assert (before != after) == (name in JOB.of("read"))


@pytest.mark.parametrize("name", [name for field in HEADER.fields for name in field.names])
def test_a_comment_of_the_header_that_is_read_changes_an_answer(tmp_path: Path, before: list[Any], name: str) -> None:
    """Version 3 is refused."""
    value = {"TimeZoneString": "UTC", "Version": "3"}.get(name, "32")
    text = f"; {name}: {value}\n" + FIRST + "\n".join(LINES) + "\n"
    try:
        changed = answers(tmp_path, text) != before
    except fo.InvalidInstance:
        changed = True
    assert changed == (name in HEADER.of("read"))


def test_what_does_not_count_is_named(tmp_path: Path) -> None:
    """Several partitions, the memory of the header where memory is no resource, and comments that nobody knows."""
    log = tmp_path / "log.swf"
    log.write_text(
        "; MaxMemory: 1024\n; Colour: red\n" + FIRST + "\n".join((LINES[0], LINES[1].replace("4 2 1 -1", "4 2 2 -1"), *LINES[2:])) + "\n"
    )
    expected = [
        "1 SWF header has MaxMemory (how much memory there is: --memory gives it, in GiB of a node), which an instance does not have: it "
        "does not count",
        "1 SWF header has the field Colour, which this import does not know: it does not count",
        "4 SWF jobs have Partition Number (the partition in which it ran, where there are several: processors are all alike), which an "
        "instance does not have: it does not count",
    ]
    assert [note for note in fo.import_swf(log).notes if "does not count" in note] == expected
    assert [note for note in fo.history(log).notes if "does not count" in note] == expected
    assert [note for note in fo.import_swf(log, memory=8).notes if "does not count" in note] == expected[1:]
