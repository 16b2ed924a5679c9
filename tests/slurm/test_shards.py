"""Shards and MPS: pieces of GPUs, which are one device with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import by_user, import_records, job, node

import fairopt as fo

LAB = [node("g1", 64, gres="gpu:a100:4(S:0-1),shard:a100:40(S:0-1)")]


def pieces(number: int, count: float, name: str = "shard", **more: Any) -> dict[str, Any]:
    """Make a job of 1 CPU that waits for pieces of a GPU."""
    return job(number, f"cpu=1,mem=1G,node=1,gres/{name}={count:g}", **more)


def test_a_gpu_and_its_shards_are_one_device(tmp_path: Path) -> None:
    """Of 4 GPUs of 10 shards whole ones and shards have 2 each, as both have one dominant share: 2 tasks, and 20 of a tenth."""
    train = job(1, "cpu=1,mem=1G,node=1,gres/gpu=1", account="train", array_task_string="1-99")
    result = import_records(tmp_path, LAB, [train, pieces(2, 1, account="notebook", array_task_string="1-99")])
    instance = result.instance
    assert dict(zip(instance.resources, instance.capacities[0], strict=True)) == {"cpu": 64, "memory": 128, "gpu": 4}
    tasks = dict(zip(instance.users, fo.solve(instance, "drfh").tasks_per_user.tolist(), strict=True))
    assert tasks == pytest.approx({"train": 2, "notebook": 20})
    assert [
        note for note in result.notes if "99 jobs have gres/shard: a piece and its GPU are one device" in note and "1 of 10 as 0.1" in note
    ]


def test_the_same_from_text(tmp_path: Path) -> None:
    """As scontrol writes nodes and jobs; the type of a shard is that of its card."""
    (tmp_path / "nodes.txt").write_text(
        "NodeName=g1 CPUTot=64 RealMemory=131072 State=IDLE Partitions=p\n   Gres=gpu:a100:2,gpu:t4:2,shard:a100:16,shard:t4:8\n"
    )
    one = "JobId={} UserId=u(1) Account={} JobState=PENDING Reason=Priority Partition=p NumNodes=1 NumTasks=1 TRES=cpu=1,mem=1G,node=1"
    jobs = [(1, "any", "gres/shard:1"), (2, "fast", "gres/shard:a100:1"), (3, "slow", "gres/shard:t4:3")]
    (tmp_path / "jobs.txt").write_text("\n".join(f"{one.format(n, account)}\n   TresPerNode={asked}\n" for n, account, asked in jobs))
    users = by_user(fo.import_slurm(tmp_path / "nodes.txt", tmp_path / "jobs.txt"))
    assert {name: user["demand"]["gpu"] for name, user in users.items()} == {"any": 1 / 4, "fast": 1 / 8, "slow": 1}


@pytest.mark.parametrize(
    ("gres", "name", "asked", "part"),
    [
        ("gpu:4,shard:40", "shard", 3, 1 / 3),  # three jobs on a card
        ("gpu:4,shard:40", "shard", 6, 1),
        ("gpu:4,mps:400", "mps", 50, 1 / 2),
        ("gpu:4,mps:400", "mps", 33, 1 / 3),
        ("gpu:2,shard:7", "shard", 1, 1 / 3),  # cards of 4 and of 3
        ("gpu:4,shard:40", "shard", 13, 1 + 1 / 3),  # more than a card has
    ],
)
def test_a_part_lies_on_one_card(tmp_path: Path, gres: str, name: str, asked: float, part: float) -> None:
    """Of k pieces, s take 1/floor(k/s) of a card."""
    (user,) = by_user(import_records(tmp_path, [node("g", gres=gres)], [pieces(1, asked, name)])).values()
    assert user["demand"]["gpu"] == pytest.approx(part)


def test_jobs_that_run_have_the_pieces_of_their_cards(tmp_path: Path) -> None:
    """A quarter of a card of n1 and a half of one of n2; the GPU in which the pieces are is not theirs. What waits fits on both."""
    nodes = [node("n1", gres="gpu:1,shard:8"), node("n2", gres="gpu:1,shard:4")]
    ran = {"job_state": ["RUNNING"], "account": "b"}
    asked = "cpu=1,mem=1G,node=1,gres/shard=2"
    jobs = [
        job(1, asked, nodes="n1", tres_alloc_str=asked, **ran),
        job(2, asked, nodes="n2", tres_alloc_str=f"{asked},gres/gpu=1", **ran),
        pieces(3, 2),
    ]
    result = import_records(tmp_path, nodes, jobs)
    assert {name: (user["demand"]["gpu"], user["held"]) for name, user in by_user(result).items()} == {
        "a": (0.5, 0),
        "b/0.5 gpu": (0.5, 1),
        "b/0.25 gpu": (0.25, 1),
    }
    assert any("1 job may run on cards with different numbers of pieces" in note for note in result.notes)


def test_pieces_lie_where_a_card_has_enough(tmp_path: Path) -> None:
    """5 shards fit on a card of 10, not of 4, and n3 has none: 2 GPUs run 2 jobs each. 13 need two cards. --exclusive takes n3, too."""
    nodes = [node("n1", gres="gpu:2,shard:20"), node("n2", gres="gpu:1,shard:4"), node("n3", gres="gpu:4")]
    result = import_records(tmp_path, nodes, [pieces(1, 5, array_task_string="1-9"), pieces(2, 3, account="b")])
    instance = result.instance
    assert {name: user["demand"]["gpu"] for name, user in by_user(result).items()} == {"a": 0.5, "b": 1}
    assert [[instance.servers[i] for i in row.nonzero()[0]] for row in instance.eligibility] == [["n1"], ["n1", "n2"]]
    alone = import_records(tmp_path, nodes, [pieces(1, 5, array_task_string="1-9")]).instance
    assert fo.solve(alone, "drfh").tasks_per_user.tolist() == pytest.approx([4])
    assert not any("more pieces than a card has" in note for note in result.notes)
    large = import_records(tmp_path, [nodes[0], nodes[2]], [pieces(1, 13)])
    assert [large.instance.servers[i] for i in large.instance.eligibility[0].nonzero()[0]] == ["n1"]
    assert any("1 job asks for more pieces than a card has" in note for note in large.notes)
    whole = import_records(tmp_path, nodes, [job(1, "cpu=1,mem=1G,node=1", shared=["none"])])
    assert whole.instance.eligibility.sum() == 3


def test_exclusive_jobs_have_the_cards(tmp_path: Path) -> None:
    """All GPUs of a node, and no pieces beside them."""
    (user,) = by_user(import_records(tmp_path, LAB, [job(1, "cpu=1,mem=1G,node=1", shared=["none"])])).values()
    assert user["demand"] == {"cpu": 64, "memory": 1, "gpu": 4}


def test_limits_of_pieces_are_said(tmp_path: Path) -> None:
    """No limit counts them as Slurm does."""
    (tmp_path / "tree.txt").write_text("Account|User|Share|GrpTRES\nroot||1|\n a||1|gres/gpu=2,gres/shard=8\n  a|u|1|\n")
    result = import_records(tmp_path, LAB, [pieces(1, 1)], associations=tmp_path / "tree.txt")
    assert any("GrpTRES of gres/shard are left out" in note for note in result.notes)
    assert any("limits of gres/gpu count pieces of GPUs, too" in note for note in result.notes)


def test_pieces_over_time(tmp_path: Path) -> None:
    """An hour of 10 shards, a job each, and of a whole GPU: a quarter of 4 GPUs each. A cluster without pieces says what it lacks."""
    (tmp_path / "nodes.txt").write_text(f"NodeName=g1 CPUTot=64 RealMemory=131072 State=IDLE Partitions=p\n   Gres={LAB[0]['gres']}\n")
    head = "JobID|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints"
    start, end = "2026-10-01T00:00:00", "2026-10-01T01:00:00"
    rows = [(n, "lab|ann", "gres/shard=1") for n in range(1, 11)] + [(11, "lab|bob", "gres/gpu=1")]
    lines = [
        f"{n}|{who}|p|COMPLETED|{start}|{start}|{start}|{end}|None|cpu=1,{tres},node=1|cpu=1,{tres},node=1|g1|" for n, who, tres in rows
    ]
    log = tmp_path / "log.txt"
    log.write_text("\n".join([head, *lines]) + "\n")
    found = fo.history(log, nodes=tmp_path / "nodes.txt", moments="all")
    assert found.to_frame()["received"].to_dict() == pytest.approx({"lab/ann": 0.25, "lab/bob": 0.25})
    other = fo.history(log, fo.Instance([[64, 4]], [[1, 1]], resources=["cpu", "gpu"]), moments="all")
    assert "10 jobs have gres/shard, which the cluster does not have: it does not count" in other.notes


def test_pieces_of_unlike_cards_over_time(tmp_path: Path) -> None:
    """2 shards of a card of 8 are a quarter, and of one of 2 the whole card: what a job had is told by its node, or by its type.

    A job that waits may be on either, so that the smallest card counts, which is said.
    """
    nodes = [f"NodeName={name} CPUTot=64 RealMemory=1 State=IDLE Partitions=p\n   Gres={gres}\n" for name, gres in CARDS.items()]
    (tmp_path / "nodes.txt").write_text("\n".join(nodes))
    hour = "2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T01:00:00"
    rows = [("ann", "gres/shard=2", "g8"), ("bob", "gres/shard=2", "g2"), ("cyd", "gres/shard=2,gres/shard:a=2", "mixed")]
    log = tmp_path / "log.txt"
    log.write_text(
        "JobID|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints\n"
        + "".join(f"{n}|lab|{who}|p|COMPLETED|{hour}|None|cpu=1,{tres},node=1||{node}|\n" for n, (who, tres, node) in enumerate(rows, 1))
    )
    found = fo.history(log, nodes=tmp_path / "nodes.txt", moments="all")
    assert found.to_frame()["received"].to_dict() == pytest.approx({"lab/ann": 0.25 / 4, "lab/bob": 1 / 4, "lab/cyd": 0.25 / 4})
    assert not any("different numbers" in note for note in found.notes)
    log.write_text(
        log.read_text() + "9|lab|dan|p|PENDING|2026-10-01T00:00:00|2026-10-01T00:00:00|Unknown|Unknown|None||cpu=1,gres/shard=2||\n"
    )
    notes = fo.history(log, nodes=tmp_path / "nodes.txt", moments="all").notes
    assert any(note.startswith("1 job ran, or may run, on cards with different numbers of pieces") for note in notes)


CARDS = {"g8": "gpu:1,shard:8", "g2": "gpu:1,shard:2", "mixed": "gpu:a:1,gpu:b:1,shard:a:8,shard:b:2"}
