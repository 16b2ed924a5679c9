"""What sacct prints is read once, for the average of a window and for a history."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.slurm.sacct import COMMAND, read_sacct

COLUMNS = COMMAND.partition(" -o ")[2].partition(" ")[0]
HEAD = COLUMNS.replace(",", "|")
CELLS = {
    "JobID": "7",
    "Cluster": "emu",
    "Account": "bio",
    "User": "ann",
    "Partition": "batch",
    "State": "RUNNING",
    "Submit": "2026-11-22T11:00:00",
    "Eligible": "2026-11-22T11:00:00",
    "Start": "2026-11-22T12:00:00",
    "End": "Unknown",
    "Reason": "None",
    "AllocTRES": "cpu=4,mem=8G,node=1",
    "ReqTRES": "cpu=4,mem=8G,node=1",
    "NodeList": "n1",
    "Constraints": "",
}
ROW = "|".join(CELLS[name] for name in COLUMNS.split(","))


def test_columns_in_any_case_and_rows_as_records(tmp_path: Path) -> None:
    """Records have the names of squeue's JSON; a cell that says nothing is none; lines are counted with the empty ones."""
    table = tmp_path / "sacct.txt.gz"
    table.write_bytes(gzip.compress(f"{HEAD.upper()}\n\n{ROW}\n".encode()))
    found = read_sacct(table, ("JobID", "AllocTRES"))
    assert found.where(0) == f"{table}, line 3"
    assert found.columns["alloctres"].tolist() == ["cpu=4,mem=8G,node=1"]
    (record,) = found.records()
    assert record["job_id"].text() == "7"
    assert record["tres_alloc_str"].text() == "cpu=4,mem=8G,node=1"
    assert record.get("end").value is None
    assert record["start"].place == f"{table}, line 3: START"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (f"{HEAD}\n", "there is no job"),
        ("JobID|Start\n7|\n", r'line 1: there is no column "Account"'),
        (f"{HEAD}\n{ROW[:-20]}\n", "line 2: the line is cut off"),
        (f"{HEAD}\n\n{ROW}|x\n", "line 3: a cell has the separator"),
    ],
)
def test_one_message_for_both(tmp_path: Path, text: str, message: str) -> None:
    """A history, and the average of a window, say the same, once, and how to export the table again."""
    table, window = tmp_path / "sacct.txt", ("2026-11-22T12:00:00", "2026-11-22T13:00:00")
    table.write_text(text)
    exports = Path(__file__).parents[1] / "clusters" / "exports"
    nodes, jobs = exports / "slurm_nodes.json", exports / "slurm_jobs.json"
    said = []
    for read in (
        lambda: fo.history(table, fo.Instance([[8]], [[1]], resources=["cpu"])),
        lambda: fo.import_slurm(nodes, jobs, sacct=table, window=window),
    ):
        with pytest.raises(fo.InvalidInstance, match=message) as caught:
            read()
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert said[0].endswith(f"export it again: {COMMAND}")
    assert said[0].count(str(table)) == 1
