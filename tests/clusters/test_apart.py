"""Exports of users whose tasks differ by server: whole tasks by kind of server, and the amounts that they take there."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray

import fairopt as fo
from fairopt.analysis.measures import violations
from fairopt.clusters.rounding import whole_tasks

Tasks = NDArray[np.float64]


def drawn(seed: int) -> fo.Instance:
    """Return a random instance of two kinds of servers, with speeds and limits of single users."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    by_kind = rng.integers(1, 4, (n, 2, 2))
    return fo.Instance(
        rng.integers(6, 13, (k, 2)),
        by_kind[:, rng.integers(0, 2, k)],
        speeds=rng.choice([0.5, 1, 2], (n, k)),
        counts=rng.integers(1, 4, k),
        tasks=np.where(rng.random(n) < 0.3, rng.integers(1, 8, n), np.inf),
        parallelism=np.where(rng.random(n) < 0.3, rng.integers(1, 4, n), np.inf),
        limits=[
            fo.Limit("few", 5, each="user"),
            fo.Limit("first", 3, users=["user-1"], servers=["server-1"]),
            fo.Limit("amounts", 9, resource="resource-1", users=["user-2"]),
        ]
        if seed % 2
        else None,
    )


@pytest.mark.parametrize("seed", range(12))
def test_whole_tasks_fit_where_they_are(seed: int) -> None:
    """Counted here, row by row: capacities, tasks, servers at once, limits; rounded up at most once; single servers hold them."""
    instance = drawn(seed)
    allocation = fo.solve(instance, "max-min" if instance.limits else "cdrf")
    whole = whole_tasks(allocation)
    assert (whole.tasks == np.round(whole.tasks)).all()
    back = whole.on_rows()
    assert violations(instance, whole.as_allocation().tasks, "rdm", 1e-9) == []
    assert back.sum(axis=1).tolist() == whole.tasks_per_user.tolist()
    assert (back.sum(axis=1) <= np.ceil(allocation.tasks_per_user - 1e-6)).all()
    assert (back.sum(axis=1) <= instance.tasks).all()
    demands = instance.demands_by_kind[:, instance.kind_of]
    assert (np.einsum("nim,ni->im", demands, back) <= instance.row_capacity + 1e-9).all()
    alone = (instance.capacities / demands).min(axis=2)
    assert ((back / alone).sum(axis=1) <= instance.parallelism + 1e-9).all()
    if instance.limits:
        assert (back.sum(axis=1) <= 5).all()
        assert back[0, 0] <= 3
        assert (demands[1, :, 0] * back[1]).sum() <= 9
    for g, packed in enumerate(whole.packed):
        for kind in packed.kinds:
            used = sum(number * demands[whole.apart.user[part], whole.groups[g].rows[0]] for part, number in kind.tasks.items())
            assert (np.asarray(used) <= whole.groups[g].capacity + 1e-9).all()


LAB = fo.Instance(
    [[8, 64, 512], [8, 64, 512], [0, 64, 256]],
    [
        [[1, 4, 32], [2, 4, 32], [1, 4, 32]],
        [[1, 2, 16], [1, 2, 16], [1, 2, 16]],
        [[0, 8, 16]] * 3,
    ],
    speeds=[[1.0, 0.9, 1.0], [1.0, 0.5, 1.0], [1.0, 1.0, 1.0]],
    counts=[2, 3, 1],
    users=["train", "infer", "web"],
    servers=["a100", "v100", "cpu"],
    resources=["gpu", "cpu", "memory"],
)


def gpus_of(user: str, tasks: Tasks) -> list[float]:
    """Return the GPUs that a user takes on each row of servers, one by one."""
    n = LAB.users.index(user)
    return [float(tasks[n, i] * LAB.demands_by_kind[n, LAB.kind_of[i], 0]) for i in range(3)]


def test_kueue_has_a_quota_of_each_flavor() -> None:
    """Of V100 two GPUs a task for "train", and one for "infer"; the placement is in the quotas."""
    exported = fo.export_kueue(fo.solve(LAB, "cdrf"))
    tasks = exported.whole.on_rows()
    queues = [each for each in yaml.safe_load_all(exported.text) if each and each["kind"] == "ClusterQueue"]
    for queue in queues:
        flavors = {flavor["name"]: flavor["resources"] for flavor in queue["spec"]["resourceGroups"][0]["flavors"]}
        for name, resources in flavors.items():
            gpus = next(int(each["nominalQuota"]) for each in resources if each["name"] == "nvidia.com/gpu")
            assert gpus == gpus_of(queue["metadata"]["name"], tasks)[LAB.servers.index(name)]
    assert sum("kueue does not know that a task takes other amounts" in note for note in exported.notes) == 1
    assert any(re.search(r"the whole tasks do \S+ work together, the divisible ones", note) for note in exported.notes)


@pytest.mark.parametrize("system", ["slurm", "volcano", "kai", "yunikorn", "yarn", "resourcequota"])
def test_totals_are_what_the_tasks_take_where_they_are(system: str) -> None:
    """GPUs of each user, over all kinds, stand in the file."""
    exported = getattr(fo, f"export_{system}")(fo.solve(LAB, "cdrf"), **({"headroom": 1.0} if system != "slurm" else {}))
    tasks = exported.whole.on_rows()
    text = json.dumps(list(yaml.safe_load_all(exported.text))) if system not in ("slurm", "yarn") else exported.text
    for user in ("train", "infer"):
        assert re.search(rf"(?<!\d){sum(gpus_of(user, tasks)):.0f}(?!\d)", text), text
    assert any("takes other amounts, or does other work, on other servers" in note for note in exported.notes)


def test_billing_of_slurm_counts_tasks_where_they_are() -> None:
    """A task of "train" is billed by its two GPUs on V100 and by one on A100."""
    exported = fo.export_slurm(fo.solve(LAB, "cdrf"), as_="billing")
    tasks = exported.whole.on_rows()
    total = LAB.total_capacity
    expected = sum(tasks[0, i] * np.floor((LAB.demands_by_kind[0, LAB.kind_of[i]] / total).max() * 100_000 + 1e-6) for i in range(3))
    found = re.search(r"name=train set GrpTRES=billing=(\d+)", exported.text)
    assert found is not None
    assert int(found[1]) == pytest.approx(expected, rel=1e-3)


def test_queues_hold_what_their_users_take_where_they_are() -> None:
    """A limit of 8 GPUs of a queue counts two of each of its tasks on V100; what is exported is within it."""
    queues = [fo.Queue("lab", limit={"gpu": 8}), fo.Queue("rest", guarantee={"gpu": 6})]
    tree = LAB.replace(queues=queues, queue_of=["lab", "rest", "rest"])
    exported = fo.export_kueue(fo.solve(tree, "cdrf"))
    used = np.einsum("i,i->", exported.whole.on_rows()[0], tree.demands_by_kind[0, tree.kind_of, 0])
    assert 6 <= used <= 8
    objects = {
        each["metadata"]["name"]: each["spec"] for each in yaml.safe_load_all(exported.text) if each and each["kind"] == "ClusterQueue"
    }
    quotas = [resource for flavor in objects["lab"]["resourceGroups"][0]["flavors"] for resource in flavor["resources"]]
    assert sum(int(each["nominalQuota"]) for each in quotas if each["name"] == "nvidia.com/gpu") == used
