"""ResourceQuotas and objects of Kueue: valid by the official schemas, within the cluster, and read back as they were meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.exported_cluster import GPU, by_server, cluster, held, queues, read_back
from support.kubernetes_schema import check_cluster_queues, documents, validate
from support.real_data import needs

import fairopt as fo
from fairopt.analysis.rerun import given


def quota_on(queue: fo.Queue, instance: fo.Instance, group: str) -> fo.Queue | fo.Quota:
    """Return the quota of a queue on the nodes of a group."""
    (quota,) = [each for each in queue.quotas if any(server.startswith(group) for server in each.servers)]
    return quota


def test_quotas_of_kueue_by_kind_of_server_are_read_back(tmp_path: Path) -> None:
    """Of each flavor: what the whole tasks that are placed there take there."""
    used = 0
    for seed in range(3):
        instance = by_server(cluster(seed, **queues(seed)))
        found = fo.export_kueue(fo.solve(instance, "cdrf"))
        again = read_back(found, tmp_path)
        by_name = {queue.name: queue for queue in again.queues}
        for user in instance.users:
            for g, group in enumerate(found.whole.groups):
                if instance.eligibility[instance.index(user), group.rows[0]]:
                    quota = quota_on(by_name[user], again, group.name.split()[0])
                    for r, resource in enumerate(instance.resources):
                        assert quota.guarantee.get(resource, 0.0) == pytest.approx(held(found, user)[g, r], abs=1e-6)
        used += int(found.whole.on_rows()[2:, 2].sum())
    assert used > 0


# ResourceQuota -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_a_resource_quota_is_read_back_as_a_limit(seed: int, tmp_path: Path) -> None:
    """Of each namespace: what its whole tasks ask for, of every resource, 0 included."""
    found = fo.export_resourcequota(fo.solve(cluster(seed), "drfh"))
    again = read_back(found, tmp_path)
    for queue in again.queues:
        amounts = held(found, queue.name).sum(axis=0)
        assert queue.limit == pytest.approx(dict(zip(found.whole.instance.resources, amounts, strict=True)))


def test_quotas_are_of_the_form_that_kubernetes_has() -> None:
    """Requests of every resource but pods, which are counted themselves; quantities are text; extended resources have no other form."""
    instance = fo.Instance([[4, 8, 10]], [[0.5, 0.25, 1]], users=["My Team"], resources=["cpu", "memory", "pods"])
    found = fo.export_resourcequota(given(instance, np.array([[3.0]]), "rdm"))
    (quota,) = documents(found.text)
    assert quota == {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "fairopt", "namespace": "my-team"},
        "spec": {"hard": {"requests.cpu": "1500m", "requests.memory": "768Mi", "pods": "3"}},
    }
    assert any('"My Team" is my-team' in note for note in found.notes)


def test_headroom_of_quotas() -> None:
    """Half more than 3 of 4 cores is what the server has; never above a limit of the queue."""
    instance = fo.Instance([[4]], [[1]], users=["a"], resources=["cpu"])
    (quota,) = documents(fo.export_resourcequota(given(instance, np.array([[3.0]]), "rdm"), headroom=1.5).text)
    assert quota["spec"]["hard"] == {"requests.cpu": "4"}
    limited = instance.replace(queues=[fo.Queue("q", limit={"cpu": 3.5})], queue_of=["q"])
    (quota,) = documents(fo.export_resourcequota(given(limited, np.array([[3.0]]), "rdm"), headroom=1.5).text)
    assert quota["spec"]["hard"] == {"requests.cpu": "3500m"}


def test_a_namespace_in_several_queues_gets_their_sum() -> None:
    """By the owner of its users; a queue whose users have no owner is a namespace of its own name, whatever that looks like."""
    tree = [fo.Queue("gold"), fo.Queue("gold/a", "gold"), fo.Queue("tin"), fo.Queue("tin/a", "tin")]
    instance = fo.Instance([[8]], [[1], [2]], users=["x", "y"], resources=["cpu"], queues=tree, queue_of=["gold/a", "tin/a"])
    allocation = given(instance, np.array([[2.0], [3.0]]), "rdm")
    assert [each["metadata"]["namespace"] for each in documents(fo.export_resourcequota(allocation).text)] == ["gold-a", "tin-a"]
    instance = instance.replace(owners=["a", "a"])
    (quota,) = documents(fo.export_resourcequota(given(instance, np.array([[2.0], [3.0]]), "rdm")).text)
    assert quota["metadata"]["namespace"] == "a"
    assert quota["spec"]["hard"] == {"requests.cpu": "8"}


def test_resources_that_kubernetes_lacks_are_refused() -> None:
    """A name without a slash that is no resource of its own; "gpu" is nvidia.com/gpu."""
    instance = fo.Instance([[4, 2]], [[1, 1]], users=["a"], resources=["gpu", "bandwidth"])
    allocation = fo.solve(instance, "drfh")
    with pytest.raises(fo.InvalidInstance, match=r"--resource-name bandwidth=example.com/NAME"):
        fo.export_resourcequota(allocation)
    (quota,) = documents(fo.export_resourcequota(allocation, resources={"bandwidth": "lab.org/band"}).text)
    assert set(quota["spec"]["hard"]) == {f"requests.{GPU}", "requests.lab.org/band"}


# Kueue ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "tree", "headroom"), [(0, False, None), (1, True, None), (2, True, None), (0, True, 1.0), (1, False, 1.0), (2, True, 1.25)]
)
def test_kueue_reads_back_as_it_was_meant(tmp_path: Path, seed: int, tree: bool, headroom: float | None) -> None:
    """The guarantee of a queue on a flavor is what it holds there; its limits are kept; weights and parents are the same."""
    instance = cluster(seed, **(queues(seed) if tree else {}))
    found = fo.export_kueue(fo.solve(instance, "drfh"), headroom=headroom)
    check_cluster_queues(documents(found.text))
    again = read_back(found, tmp_path)
    by_name = {queue.name: queue for queue in again.queues}
    for n, user in enumerate(instance.users):
        queue = by_name[user]
        for g, group in enumerate(found.whole.groups):
            if instance.eligibility[n, group.rows[0]]:
                quota = quota_on(queue, again, group.name.split()[0])
                for r, resource in enumerate(instance.resources):
                    own = held(found, user)[g, r]
                    assert quota.guarantee.get(resource, 0.0) == pytest.approx(own, abs=1e-6)
                    if headroom is not None:
                        whole_unit = 1.0 if resource == GPU else 1e-3
                        assert most_on(by_name, user, found, g, r) < own * headroom + whole_unit
        parent = "lab" if tree and user in ("ann", "cyd") else "cluster"
        assert queue.parent == parent
        if tree:
            assert queue.weight == instance.queues[instance.tree.index(user) - 1].weight
    for queue in instance.queues:
        for resource, amount in queue.limit.items():
            r = instance.resources.index(resource)
            most = [most_on(by_name, queue.name, found, g, r) for g in range(len(found.whole.groups))]
            assert sum(most) <= amount + 1e-6, (queue.name, resource)


def most_on(queues: dict[str, fo.Queue], name: str, found: fo.Export, g: int, r: int) -> float:
    """Return what a queue and those above it may hold on a group, at most what its servers have."""
    group, resource = found.whole.groups[g], found.whole.instance.resources[r]
    most, at = float(found.whole.capacity[g, r]), queues.get(name)
    while at is not None:
        quotas = [each for each in at.quotas if any(server.startswith(group.name.split()[0]) for server in each.servers)]
        most = min([most, *(each.limit.get(resource, np.inf) for each in quotas), at.limit.get(resource, np.inf)])
        at = queues.get(at.parent or "")
    return most


@pytest.mark.parametrize("seed", range(2))
def test_nominal_quotas_are_what_the_servers_have(seed: int) -> None:
    """Of queues and of what is left over together, exactly, on every flavor."""
    found = fo.export_kueue(fo.solve(cluster(seed, **queues(seed)), "drfh"))
    totals: dict[tuple[str, str], float] = {}
    for each in documents(found.text):
        for group in each["spec"].get("resourceGroups", []):
            for flavor in group["flavors"]:
                for quota in flavor["resources"]:
                    text = quota["nominalQuota"]
                    amount = float(text.rstrip("mGi")) / (1000 if text.endswith("m") else 1)
                    key = found.names[next(g.name for g in found.whole.groups if found.names[g.name] == flavor["name"])], quota["name"]
                    totals[key] = totals.get(key, 0.0) + amount
    for g, group in enumerate(found.whole.groups):
        for r, resource in enumerate(found.whole.instance.resources):
            assert totals[found.names[group.name], resource] == pytest.approx(found.whole.capacity[g, r])


def test_limits_on_several_flavors_are_divided_and_what_is_kept_is_not_lent() -> None:
    """6 GPUs of 4 + 6: 2 are held, 4 more are divided by capacity, 2 and 2; of the quota of 2, with 1 to lend, 1 is kept."""
    instance = fo.Instance(
        [[4.0], [6.0]],
        [[1.0], [1.0]],
        users=["a", "b"],
        servers=["old", "new"],
        resources=["gpu"],
        queues=[fo.Queue("a", limit={"gpu": 6}, guarantee={"gpu": 2}, lending_limit={"gpu": 1}), fo.Queue("b")],
        queue_of=["a", "b"],
    )
    found = fo.export_kueue(given(instance, np.array([[2.0, 0.0], [0.0, 5.0]]), "rdm"), flavors={"old": {"model": "P100"}})
    objects = documents(found.text)
    (queue,) = [each for each in objects if each["metadata"]["name"] == "a" and each["kind"] == "ClusterQueue"]
    flavors = {each["name"]: each["resources"][0] for each in queue["spec"]["resourceGroups"][0]["flavors"]}
    assert flavors == {
        "model-p100": {"name": GPU, "nominalQuota": "2", "borrowingLimit": "2", "lendingLimit": "1"},
        "new": {"name": GPU, "nominalQuota": "0", "borrowingLimit": "2", "lendingLimit": "0"},
    }
    assert [each["spec"] for each in objects[:2]] == [{"nodeLabels": {"model": "P100"}}, {"nodeLabels": {"fairopt/servers": "new"}}]
    assert any("limits of a on several flavors together are divided" in note for note in found.notes)


def test_rows_with_the_same_labels_are_one_flavor() -> None:
    """Whatever their capacities."""
    labels = {"cpu-1": {"kind": "x"}, "a100-1": {"kind": "x"}}
    found = fo.export_kueue(fo.solve(cluster(), "drfh"), flavors=labels)
    flavors = [each for each in documents(found.text) if each["kind"] == "ResourceFlavor"]
    assert [each["spec"]["nodeLabels"] for each in flavors] == [{"kind": "x"}, {"fairopt/servers": "v100-1"}]
    check_cluster_queues(documents(found.text))


def test_users_beside_queues_have_a_queue_of_their_own() -> None:
    """Kueue admits tasks in leaves only."""
    instance = fo.Instance(
        [[8]], [[1], [1]], users=["x", "y"], resources=["cpu"], queues=[fo.Queue("top"), fo.Queue("sub", "top")], queue_of=["top", "sub"]
    )
    found = fo.export_kueue(fo.solve(instance, "drfh"))
    kinds = {each["metadata"]["name"]: each["kind"] for each in documents(found.text) if each["kind"] != "ResourceFlavor"}
    assert kinds == {"cluster": "Cohort", "top": "Cohort", "sub": "ClusterQueue", "top-own": "ClusterQueue", "default": "LocalQueue"}


@needs("queues")
@pytest.mark.parametrize("seed", range(2))
def test_kueue_is_valid_by_the_official_schema(seed: int) -> None:
    """Every object, with names of users that Kubernetes forbids."""
    instance = cluster(seed, **queues(seed))
    names = {"ann": "Ann's Team", "lab": "lab/1 (GPU)"}
    tree = [
        fo.Queue(names.get(q.name, q.name), names.get(q.parent or "", q.parent), q.weight, q.guarantee, q.limit) for q in instance.queues
    ]
    strange = instance.replace(queues=tree, queue_of=[names.get(q or "", q) for q in instance.queue_of])
    for each in (instance, strange, cluster(seed)):
        found = fo.export_kueue(fo.solve(each, "drfh"), headroom=None if seed else 1.1)
        validate(documents(found.text))


def test_where_a_queue_and_a_flavor_have_one_label_the_queue_is_told() -> None:
    """Both have names of their own in the file."""
    instance = fo.Instance([[4]], [[1]], users=["!"], servers=["!"], resources=["cpu"])
    assert fo.export_kueue(fo.solve(instance, "drfh")).names == {"!": "queue"}


def test_too_many_groups_of_servers_and_empty_labels() -> None:
    """Kueue takes 64 flavors."""
    many = fo.Instance([[float(k + 1)] for k in range(65)], [[1]], users=["a"], resources=["cpu"])
    with pytest.raises(fo.InvalidInstance, match="65 groups of servers, and Kueue takes 64 flavors"):
        fo.export_kueue(fo.solve(many, "drfh"))
    with pytest.raises(fo.InvalidInstance, match="the flavor of cpu-1 has no label"):
        fo.export_kueue(fo.solve(cluster(), "drfh"), flavors={"cpu-1": {}})


def test_weights_per_resource_are_said_to_be_left_out() -> None:
    """A queue of a scheduler has one weight."""
    instance = fo.Instance([[8, 8]], [[1, 2], [2, 1]], weights=[[1, 2], [2, 1]], resources=["cpu", "memory"])
    for export in (fo.export_kueue, fo.export_kai, fo.export_yarn):
        assert any("weights per resource are not in the export" in note for note in export(fo.solve(instance, "drfh")).notes)
