"""What partitions do to the jobs in them: small clusters worked out by hand, from text and from JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import import_records, job, node

import fairopt as fo

TEXT = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-2]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=128 TotalNodes=2
"""
NODES = [node("n1"), node("n2")]


def jobs(account: str, first: int, number: int, **more: Any) -> list[dict[str, Any]]:
    """Return jobs of one CPU that wait."""
    return [job(first + n, "cpu=1,mem=1M,node=1", account=account, **more) for n in range(number)]


def imported(folder: Path, partitions: str | list[dict[str, Any]], listed: list[dict[str, Any]], nodes: list[Any] = NODES) -> fo.Import:
    """Import with partitions, as text or in JSON."""
    path = folder / "partitions"
    path.write_text(partitions if isinstance(partitions, str) else json.dumps({"partitions": partitions}))
    return import_records(folder, nodes, listed, partitions=path)


def tasks(found: fo.Import) -> dict[str, float]:
    """Return the tasks of each owner at the optimum."""
    answer = fo.solve(found.instance, found.notion).tasks_per_user
    return {owner: sum(t for t, own in zip(answer, found.owners, strict=True) if own == owner) for owner in dict.fromkeys(found.owners)}


@pytest.mark.parametrize(
    "partitions",
    [
        TEXT.replace("OverSubscribe=NO", "OverSubscribe=EXCLUSIVE"),
        [{"name": "batch", "nodes": {"configured": "n[1-2]"}, "maximums": {"oversubscribe": {"jobs": 0, "flags": []}}}],
    ],
)
def test_a_partition_that_gives_whole_nodes(tmp_path: Path, partitions: Any) -> None:
    """Two nodes run two jobs of one CPU, not 128: one of each account."""
    found = imported(tmp_path, partitions, [*jobs("a", 1, 60), *jobs("b", 100, 60)])
    assert tasks(found) == pytest.approx({"a": 1, "b": 1})
    shared = imported(tmp_path, TEXT, [*jobs("a", 1, 60), *jobs("b", 100, 60)])
    assert tasks(shared) == pytest.approx({"a": 60, "b": 60})


@pytest.mark.parametrize(
    "partitions",
    [
        TEXT.replace("MaxCPUsPerNode=UNLIMITED", "MaxCPUsPerNode=16") + TEXT.replace("=batch", "=gpu"),
        [
            {"name": "batch", "nodes": {"configured": "n[1-2]"}, "maximums": {"cpus_per_node": {"set": True, "number": 16}}},
            {"name": "gpu", "nodes": {"configured": "n[1-2]"}, "maximums": {"cpus_per_node": {"infinite": True}}},
        ],
    ],
)
def test_cpus_of_a_node_that_a_partition_leaves_to_others(tmp_path: Path, partitions: Any) -> None:
    """All jobs of the partition batch have at most 16 CPUs of each node, those of gpu the other 48."""
    nodes = [node(name, partitions=["batch", "gpu"]) for name in ("n1", "n2")]
    listed = [*jobs("a", 1, 60), *jobs("b", 100, 60), *jobs("c", 200, 200, partition="gpu")]
    found = imported(tmp_path, partitions, listed, nodes)
    assert tasks(found) == pytest.approx({"a": 16, "b": 16, "c": 96})
    assert [(limit.name, limit.bound, limit.each) for limit in found.instance.limits] == [("partition/batch cpu of a node", 16, "server")]
    both = imported(tmp_path, partitions, jobs("a", 1, 5, partition="batch,gpu"), nodes)
    assert any(note.startswith("5 jobs in several partitions, of which some have MaxCPUsPerNode") for note in both.notes)


@pytest.mark.parametrize("associations", [None, "Account|User|Share\nroot||1\n a||3\n  a|u|1\n b||1\n  b|u|1\n"])
def test_jobs_in_a_partition_of_a_higher_priority_tier_come_first(tmp_path: Path, associations: str | None) -> None:
    """Of 128 CPUs that two partitions share: b has 100 jobs in the higher one, and all of them run; both have jobs for the other 28.

    These are divided by weight: 14 and 14, and with 3 shares of 4 for a 21 and 7. CPUs of several jobs at once are not in an instance.
    """
    text = TEXT + TEXT.replace("=batch", "=high").replace("Tier=1", "Tier=10")
    nodes = [node(name, partitions=["batch", "high"]) for name in ("n1", "n2")]
    listed = [*jobs("a", 1, 150), *jobs("b", 1000, 100, partition="high"), *jobs("b", 2000, 100)]
    (tmp_path / "partitions").write_text(text.replace("OverSubscribe=NO", "OverSubscribe=FORCE:4", 1))
    (tmp_path / "associations").write_text(associations or "")
    more = {"associations": tmp_path / "associations"} if associations else {}
    found = import_records(tmp_path, nodes, listed, partitions=tmp_path / "partitions", **more)
    user = "/u" if associations else ""
    assert {queue.name: queue.tier for queue in found.instance.queues if queue.tier} == {f"b{user}/partition:high": 1}
    assert tasks(found) == pytest.approx({"a": 21, "b": 107} if associations else {"a": 14, "b": 114})
    assert any(note.startswith("partitions with nodes in common differ in PriorityTier (high 10 and batch 1)") for note in found.notes)
    assert any("OverSubscribe=FORCE, batch 4" in note for note in found.notes)
    assert not any("PriorityTier" in note for note in imported(tmp_path, text, jobs("a", 1, 2), nodes).notes)


def test_the_order_of_partitions_that_share_no_node_decides_nothing(tmp_path: Path) -> None:
    """Of 64 CPUs each; a third that shares nodes with both makes them compete. Jobs in two of them are in the higher tier."""
    text = TEXT.replace("n[1-2]", "n1") + TEXT.replace("=batch", "=high").replace("Tier=1", "Tier=10").replace("n[1-2]", "n2")
    nodes = [node("n1", partitions=["batch"]), node("n2", partitions=["high"])]
    listed = [*jobs("a", 1, 70), *jobs("b", 1000, 70, partition="high")]
    found = imported(tmp_path, text, listed, nodes)
    assert found.instance.queues == ()
    assert tasks(found) == pytest.approx({"a": 64, "b": 64})
    wide = text + TEXT.replace("=batch", "=wide").replace("Tier=1", "Tier=5")
    nodes = [node("n1", partitions=["batch", "wide"]), node("n2", partitions=["high", "wide"])]
    more = [*listed, *jobs("c", 2000, 70, partition="wide"), *jobs("d", 3000, 2, partition="wide,high")]
    found = imported(tmp_path, wide, more, nodes)
    assert {queue.name: queue.tier for queue in found.instance.queues if queue.tier} == {
        "b/partition:high": 2,
        "c/partition:wide": 1,
        "d/partition:high": 2,
    }
    assert tasks(found) == pytest.approx({"a": 0, "b": 64, "c": 62, "d": 2})
    assert "2 jobs in several partitions of different PriorityTier: counted in the highest of these tiers" in found.notes


def test_numbers_that_are_not_set(tmp_path: Path) -> None:
    """Older JSON has -1, later one an object that says so."""
    unset = {"set": False, "infinite": False, "number": 0}
    older = {"name": "batch", "nodes": "n[1-2]", "maximum_cpus_per_node": -1, "priority_tier": 1, "preemption_mode": ["DISABLED"]}
    later = {"name": "batch", "nodes": {"configured": "n[1-2]"}, "maximums": {"cpus_per_node": unset}, "priority": {"tier": 1}}
    for partition in (older, later):
        found = imported(tmp_path, [partition], [*jobs("a", 1, 60), *jobs("b", 100, 60)])
        assert tasks(found) == pytest.approx({"a": 60, "b": 60})
        assert found.instance.limits == ()
