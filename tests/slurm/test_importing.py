"""Slurm: a small cluster worked out by hand, in the words of 21.08 and of 25.11."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.slurm_records import by_user, import_records, job, node

import fairopt as fo

EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
NODES, JOBS = EXPORTS / "slurm_nodes.json", EXPORTS / "slurm_jobs.json"
ASSOCIATIONS, PARTITIONS = EXPORTS / "slurm_associations.json", EXPORTS / "slurm_partitions.json"


def test_nodes_offer_what_is_not_kept_for_the_system_and_nothing_if_drained_or_down() -> None:
    """131072 MiB is 128 GiB; gn1 keeps 1 GiB of 513 for itself; cn3 drains, cn4 is down."""
    instance = fo.import_slurm(NODES, JOBS).instance
    assert instance.servers == ("cn1 +1", "gn1", "gn2")
    assert instance.resources == ("cpu", "memory", "gpu")
    assert instance.counts.tolist() == [2, 1, 1]
    assert instance.capacities.tolist() == [[64, 128, 0], [32, 512, 4], [32, 512, 4]]


def test_jobs_become_tasks() -> None:
    """Arrays, jobs on several nodes, generic resources in TRES strings and in requests, features, partitions, excluded nodes."""
    users = by_user(fo.import_slurm(NODES, JOBS))
    batch = {"cn1 +1", "gn1"}
    assert users["optics/16 cpu 32 memory"] == {
        "demand": {"cpu": 16, "memory": 32, "gpu": 0}, "tasks": 1 + 4, "held": 1, "on": batch
    }  # fmt: skip
    assert users["optics/8 cpu 64 memory 2 gpu"] == {"demand": {"cpu": 8, "memory": 64, "gpu": 2}, "tasks": 1, "held": 1, "on": {"gn1"}}
    assert users["biology/1 cpu 1 memory"] == {"demand": {"cpu": 1, "memory": 1, "gpu": 0}, "tasks": 96, "held": 96, "on": batch}
    assert users["biology/4 cpu 8 memory 1 gpu"] == {
        "demand": {"cpu": 4, "memory": 8, "gpu": 1},
        "tasks": 1,
        "held": 0,
        "on": {"gn1", "gn2"},
    }
    assert users["biology/2 cpu 2 memory 1 gpu"] == {"demand": {"cpu": 2, "memory": 2, "gpu": 1}, "tasks": 1, "held": 0, "on": {"gn2"}}
    assert users["biology/2 cpu 2 memory"]["held"] == 0  # it runs on the node that drains
    assert len(users) == 6


def test_what_runs_is_where_its_cpus_are() -> None:
    """Job 104 has 32 CPUs on cn1 and 64 on cn2, one row; so job 101, 16 on cn1, fits beside it."""
    current = fo.import_slurm(NODES, JOBS).current
    assert current is not None
    assert current.usage[0].tolist() == [96 + 16, 96 + 32, 0]
    assert current.certificate.feasibility == 0


def test_what_is_no_demand_is_counted() -> None:
    """Ended, waiting for another job, beyond ``--array=1-10%4``, larger than any node with one task."""
    why = {why.partition(":")[0]: number for (what, why), (number, _) in fo.import_slurm(NODES, JOBS).why_left_out.items() if what == "job"}
    assert why == {
        "not ready (Dependency)": 1,
        "ended (completed)": 1,
        "beyond the limit of its array, %4": 6,
        "larger than every server on which it may run, so it can never start": 1,
    }


TREE = {"biology": (None, 2), "biology/cyd": ("biology", 1), "biology/dee": ("biology", 1), "physics": (None, 6)}
TREE |= {"optics": ("physics", 2), "optics/ada": ("optics", 3), "optics/ben": ("optics", 1)}


@pytest.mark.parametrize(
    ("users", "weights"), [("account", {"biology": 2, "optics": 2}), ("user", {"ada": 3, "ben": 1, "cyd": 1, "dee": 1})]
)
def test_accounts_and_their_users_are_a_tree(users: str, weights: dict[str, float]) -> None:
    """Shares count among siblings; acoustics has no jobs. Owners are accounts or users, the tree is the same."""
    result = fo.import_slurm(NODES, JOBS, ASSOCIATIONS, users=users)
    assert {queue.name: (queue.parent, queue.weight) for queue in result.instance.queues} == TREE
    assert result.to_frame()["weight"].to_dict() == weights
    assert set(result.instance.queue_of) == {"optics/ada", "optics/ben", "biology/cyd", "biology/dee"}
    assert all(user.startswith(f"{queue}") for user, queue in zip(result.instance.users, result.instance.queue_of, strict=True))
    assert result.options == {}  # Slurm guarantees nothing


def test_own_weights_of_accounts_and_users() -> None:
    """An account has one queue. A user may have one in each account: all get the weight."""
    by_account = fo.import_slurm(NODES, JOBS, ASSOCIATIONS, weights={"optics": 9}).instance.queues
    assert {queue.name: queue.weight for queue in by_account if queue.weight == 9} == {"optics": 9}
    by_user = fo.import_slurm(NODES, JOBS, ASSOCIATIONS, users="user", weights={"ada": 9}).instance.queues
    assert {queue.name for queue in by_user if queue.weight == 9} == {"optics/ada"}


def association(account: str, user: str = "", tres: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    """Make an association."""
    return {"account": account, "user": user, "shares_raw": 1, "max": {"tres": {"total": tres or []}}, **more}


def test_limits_of_associations(tmp_path: Path) -> None:
    """GrpTRES: 100 CPUs, 64 GiB, 4 GPUs and 2 of the a100 on their nodes; licences and nodes are said to be left out; -1 is no limit.

    Of a user with an association for one partition, the jobs in it count there.
    """
    a100 = [
        {"type": "gres", "name": "gpu:a100", "count": 2},
        {"type": "license", "name": "abaqus", "count": 3},
        {"type": "node", "count": 1},
    ]
    limits = [{"type": "cpu", "count": 100}, {"type": "mem", "count": 65536}, {"type": "gres", "name": "gpu", "count": 4}, *a100]
    path = tmp_path / "associations.json"
    listed = [association("a", tres=limits), association("a", "u", [{"type": "cpu", "count": {"set": True, "number": 7}}])]
    listed += [association("b", tres=[{"type": "cpu", "count": -1}], shares_raw=0, parent_account="a")]
    listed += [association("b", "u", [{"type": "cpu", "count": 5}], partition="batch", shares_raw=3)]
    path.write_text(json.dumps({"associations": listed}))
    nodes = [node("n1", gres="gpu:a100:4"), node("n2", gres="gpu:v100:4"), node("n3")]
    jobs = [job(1, "cpu=4,mem=8G,node=1,gres/gpu=1"), job(2, account="b")]
    result = import_records(tmp_path, nodes, jobs, associations=path)
    assert result.instance.servers == ("n1", "n2", "n3")
    assert result.instance.queues == (
        fo.Queue("a", limit={"cpu": 100, "memory": 64, "gpu": 4}, quotas=[fo.Quota(["n1"], limit={"gpu": 2}, name="gpu:a100")]),
        fo.Queue("a/u", "a", limit={"cpu": 7}),
        fo.Queue("b", "a", 0.001),
        fo.Queue("b/u/batch", "b", 3, limit={"cpu": 5}),
    )
    assert result.instance.queue_of == ("a/u", "b/u/batch")
    assert len(result.notes) == 2  # one of them on the account without shares
    assert any("GrpTRES of license/abaqus and node are left out" in note for note in result.notes)


def test_partitions_may_come_from_a_file_of_their_own(tmp_path: Path) -> None:
    """Nodes that do not list theirs."""
    whole = json.loads(NODES.read_text())
    bare = [{key: value for key, value in each.items() if key != "partitions"} for each in whole["nodes"]]
    expected = by_user(fo.import_slurm(NODES, JOBS))
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": bare}))
    assert by_user(fo.import_slurm(tmp_path / "nodes.json", JOBS, partitions=PARTITIONS)) == expected


def test_the_words_of_21_08() -> None:
    """Plain numbers, one state as text with flags beside it, memory per CPU."""
    result = fo.import_slurm(EXPORTS / "slurm_nodes_21.08.json", EXPORTS / "slurm_jobs_21.08.json")
    assert result.instance.capacities.tolist() == [[64, 500000 / 1024]]
    assert result.instance.demands.tolist() == [[1, 62.5], [2, 2]]
    assert result.held.tolist() == [1, 0]


def test_a_job_too_large_for_any_node_is_its_tasks(tmp_path: Path) -> None:
    """128 CPUs for 128 tasks on nodes of 64; with one task, or one node at most, it can never start."""
    large = {"tres": "cpu=128,mem=64G,node=1"}
    result = import_records(tmp_path, [node("n1"), node("n2")], [job(1, **large, tasks=128), job(2)])
    assert by_user(result)["a/1 cpu 0.5 memory"]["tasks"] == 128
    for more in ({"tasks": 1}, {"tasks": 128, "max_nodes": {"set": True, "infinite": False, "number": 1}}):
        result = import_records(tmp_path, [node("n1"), node("n2")], [job(1, **large, **more), job(2)])
        assert result.instance.tasks.tolist() == [1]


def test_a_job_on_several_nodes_whose_gpus_do_not_divide_is_its_nodes(tmp_path: Path) -> None:
    """8 GPUs and 3 tasks on 2 nodes: two pieces of 4."""
    nodes = [node("n1", gres="gpu:4"), node("n2", gres="gpu:4")]
    running = job(1, "cpu=24,mem=48G,node=2,gres/gpu=8", job_state=["RUNNING"], nodes="n[1-2]", node_count=2, tasks=3)
    result = import_records(tmp_path, nodes, [running])
    assert (result.instance.demands.tolist(), result.instance.tasks.tolist(), result.held.tolist()) == ([[12, 24, 4]], [2], [2])
    assert any("start together" in note for note in result.notes)


def test_order_does_not_matter(tmp_path: Path) -> None:
    """Nodes and jobs backwards."""
    nodes, jobs = json.loads(NODES.read_text())["nodes"], json.loads(JOBS.read_text())["jobs"]
    one, other = import_records(tmp_path, nodes, jobs), import_records(tmp_path, nodes[::-1], jobs[::-1])
    assert one.instance == other.instance
    assert one.current_csv() == other.current_csv()


@pytest.mark.parametrize("tree", [{"a": "a"}, {"a": "b", "b": "c", "c": "a"}])
def test_accounts_above_themselves_are_refused(tmp_path: Path, tree: dict[str, str]) -> None:
    """There is no root to divide shares from."""
    associations = tmp_path / "associations.json"
    associations.write_text(json.dumps({"associations": [{"account": a, "parent_account": b, "shares_raw": 1} for a, b in tree.items()]}))
    with pytest.raises(fo.InvalidInstance, match=r'the account "a" is among its own parents'):
        import_records(tmp_path, [node("n1")], [job(1, account="a")], associations=associations)


@pytest.mark.parametrize(("accounts", "levels"), [(98, 100), (99, 101), (3000, 3002)])  # and the last parent, and the user
def test_a_deep_tree_of_accounts(tmp_path: Path, accounts: int, levels: int) -> None:
    """Up to 100 levels, which take a second to solve; deeper trees are refused, also those deeper than Python's stack."""
    tree = [{"account": f"x{j}", "parent_account": f"x{j + 1}", "shares_raw": 1 + j} for j in range(accounts)]
    associations = tmp_path / "associations.json"
    associations.write_text(json.dumps({"associations": tree}))
    if levels > 100:
        message = f'the queue "x0/u" is {levels:,} levels below the root, and a tree has 100 levels at most'
        with pytest.raises(fo.InvalidInstance, match=message):
            import_records(tmp_path, [node("n1")], [job(1, account="x0")], associations=associations)
        return
    result = import_records(tmp_path, [node("n1")], [job(1, account="x0")], associations=associations)
    parents = {queue.name: queue.parent for queue in result.instance.queues}
    assert len(parents) == levels  # with the last parent, which the associations lack
    assert (parents[f"x{accounts}"], parents["x0"], parents["x0/u"]) == (None, "x1", "x0")
    assert result.instance.queue_of == ("x0/u",)
