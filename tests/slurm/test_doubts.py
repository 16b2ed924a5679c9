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
    assert said(found, "the associations have no columns GrpTRES, GrpJobs, MaxJobs, MaxTRES and MaxWall: what these say does not count")
    assert said(found, "the QOS have no columns GrpJobs, MaxTRESPU, MaxJobsPU")
    assert said(found, "1 job is in the QOS other, which the table of QOS does not have")


def test_associations_of_several_clusters(tmp_path: Path) -> None:
    """Text of jobs does not say of which cluster they are."""
    (tmp_path / "tree.txt").write_text("Cluster|Account|User|Share|GrpTRES|GrpJobs|MaxJobs\nx|a||1|||\ny|a||2|||\n")
    found = import_records(tmp_path, [node("n1")], [job(1)], associations=tmp_path / "tree.txt")
    assert said(found, "the associations are of the clusters x and y, and the jobs do not say of which they are")
    one = import_records(tmp_path, [node("n1")], [job(1, cluster="x")], associations=tmp_path / "tree.txt")
    assert not said(one, "the associations are of the clusters")


def test_cells_of_a_log_that_say_nothing(tmp_path: Path) -> None:
    """Lengths of time that are none, and partitions that no node has (any more)."""
    (tmp_path / "nodes.txt").write_text("NodeName=n1 CPUTot=16 RealMemory=16384 State=IDLE Partitions=p\n")
    head = "JobID|Account|User|Partition|Submit|Start|End|AllocTRES|NodeList|Suspended|Elapsed"
    time = "2026-10-01T0{}:00:00"
    row = "|".join(("{}", "a", "u", "{}", time.format(0), time.format(0), time.format(1), "cpu=1,node=1", "n1", "{}", "01:00:00"))
    rows = [row.format(n, partition, length) for n, partition, length in ((1, "p", "soon"), (2, "old", "00:00:00"), (3, "p", ""))]
    (tmp_path / "log.txt").write_text("\n".join([head, *rows]) + "\n")
    notes = fo.history(tmp_path / "log.txt", nodes=tmp_path / "nodes.txt").notes
    assert '1 row has "soon" as Suspended, which is no length of time: 0' in notes
    assert any("no node has what 1 record of jobs asked for (partition, constraints, types of GPUs, such as old)" in note for note in notes)
