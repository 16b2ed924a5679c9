"""What makes it doubtful whether exports say all is said: states nobody knows, hidden jobs and nodes, missing columns and QOS."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.slurm_records import import_records, job, node

import fairopt as fo


def said(found: fo.Import, words: str) -> list[str]:
    """Return the notes with these words."""
    return [note for note in found.notes if words in note]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (["IDLE", "CLOUD", "POWERED_DOWN"], ""),
        ("mixed", ""),
        ("idle*", ""),
        ("IDLE+PLANNED", ""),
        ("IDLE+STRANGE", "1 node has the state STRANGE, which is not known"),
        ([], "1 node has no state"),
    ],
)
def test_states_of_nodes_that_nobody_knows(tmp_path: Path, state: object, words: str) -> None:
    """Later versions have others: such a node accepts work as far as its other states say nothing else."""
    nodes = [node("n1", state=state), node("n2")]
    found = import_records(tmp_path, nodes, [job(1)])
    assert len(said(found, "counted as accepting work")) == bool(words)
    assert not words or said(found, words)


@pytest.mark.parametrize(("used", "hidden"), [(4, False), (0, False), (64, True)])
def test_jobs_that_are_hidden(tmp_path: Path, used: int, hidden: bool) -> None:
    """Nodes have 64 CPUs in use, and the one job that was exported holds 4: PrivateData."""
    tres = "cpu=4,mem=8G,node=1"
    nodes = [node("n1", alloc_cpus=used), node("n2", alloc_cpus=0)]
    found = import_records(tmp_path, nodes, [job(1, tres, job_state=["RUNNING"], nodes="n1", tres_alloc_str=tres)])
    assert bool(said(found, "64 CPUs are in use, and the jobs hold 4: jobs may be hidden")) == hidden
    assert len(said(found, "PrivateData")) == hidden


def test_nodes_that_are_hidden(tmp_path: Path) -> None:
    """A partition lists three nodes, of which one is there."""
    (tmp_path / "partitions.txt").write_text("PartitionName=batch\n   Nodes=n[1-3]\n   State=UP\n")
    found = import_records(tmp_path, [node("n1")], [job(1)], partitions=tmp_path / "partitions.txt")
    assert said(found, "2 nodes of partitions (n2 and n3) are not among the nodes: they do not count")


def test_columns_that_are_missing(tmp_path: Path) -> None:
    """sacctmgr with a format of one's own, and sshare, have no limits; a table of QOS without them limits nobody."""
    (tmp_path / "tree.txt").write_text("Account|User|RawShares\nroot||\n a||1\n  a|u|1\n")
    (tmp_path / "qos.txt").write_text("Name|Priority|GrpTRES\nnormal|0|\n")
    found = import_records(tmp_path, [node("n1")], [job(1, qos="other")], associations=tmp_path / "tree.txt", qos=tmp_path / "qos.txt")
    assert said(found, "the associations have no columns GrpTRES, GrpJobs and MaxJobs: what these limit does not count")
    assert said(found, "the QOS have no columns GrpJobs, MaxTRESPU, MaxJobsPU")
    assert said(found, "1 job is in the QOS other, which the table of QOS does not have")
