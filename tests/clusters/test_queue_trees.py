"""Queues of Volcano, KAI, YuniKorn and YARN: valid by their schemas or validators, and read back as they were meant."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from reference.queue_configurations import as_capacity_scheduler, as_fair_scheduler, capacities, check_yunikorn
from support.exported_cluster import GPU, cluster, held, queues, read_back
from support.kubernetes_schema import documents, validate
from support.real_data import needs

import fairopt as fo
from fairopt.analysis.rerun import given
from fairopt.instance.quantities import NANO, nano

EXPORTS = {"volcano": fo.export_volcano, "kai": fo.export_kai, "yunikorn": fo.export_yunikorn, "yarn": fo.export_yarn}
MARKS = {"volcano": "volcano.sh/queue-name", "kai": "kai.scheduler/queue"}
LABEL = "Ann's team (GPU)/1"


def exported(kind: str, seed: int = 0, *, tree: bool = True, **options: Any) -> fo.Export:
    """Export the small cluster."""
    instance = cluster(seed, **(queues(seed) if tree else {}))
    return EXPORTS[kind](fo.solve(instance, "drfh"), **options)


def in_tree(found: fo.Export, name: str) -> dict[str, float]:
    """Return what a queue holds of each resource, with everything below it."""
    instance = found.whole.instance
    below = instance.tree.below[instance.tree.index(name)]
    amounts = sum(held(found, user).sum(axis=0) for user, inside in zip(instance.users, below, strict=True) if inside)
    return dict(zip(instance.resources, np.asarray(amounts).tolist(), strict=True))


# Volcano and KAI, through the importer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "headroom"), [(0, None), (1, 1.0), (2, 1.5)])
@pytest.mark.parametrize("kind", MARKS)
def test_the_import_has_the_guarantees_and_limits_that_were_meant(kind: str, headroom: float | None, seed: int, tmp_path: Path) -> None:
    """A guarantee is what a queue holds; its limit is kept, and headroom is for leaves; parents are the same."""
    found = exported(kind, seed, headroom=headroom)
    instance = found.whole.instance
    by_name = {queue.name: queue for queue in read_back(found, tmp_path, MARKS[kind]).queues}
    for queue in instance.queues:
        again, amounts = by_name[queue.name], in_tree(found, queue.name)
        assert again.parent == (queue.parent or ("cluster" if kind == "kai" else None))
        for resource, amount in amounts.items():
            assert again.guarantee.get(resource, 0.0) == pytest.approx(amount, abs=1e-6)
            own = [queue.limit.get(resource, np.inf)]
            if headroom is not None and queue.name != "lab":
                own.append(amount * headroom)
            bound = again.limit.get(resource, np.inf)
            if np.isinf(min(own)):
                assert np.isinf(bound)
                continue
            above = instance.queues[0].limit.get(resource, np.inf) if queue.parent else np.inf
            most = min(*own, above, float(instance.total_capacity[instance.resources.index(resource)]))
            whole_unit = 1.0 if resource == GPU else 1e-3
            assert max(most, amount) - 1e-6 <= bound < max(most, amount) + whole_unit
    if kind == "volcano":
        kept = min(1.0, in_tree(found, "cyd")[GPU])
        assert by_name["cyd"].guarantee.get(GPU, 0.0) - by_name["cyd"].lending_limit.get(GPU, np.inf) in (kept, -np.inf)


@needs("queues")
@pytest.mark.parametrize("kind", MARKS)
def test_objects_are_valid_by_the_official_schemas(kind: str) -> None:
    """With and without a tree, and with a label that Kubernetes forbids."""
    for tree in (False, True):
        validate(documents(exported(kind, tree=tree, headroom=1.1).text))
    strange = cluster().replace(users=[LABEL, "ben", "cyd", "dee"], owners={"ann": "Ann's team (GPU)"})
    found = EXPORTS[kind](fo.solve(strange, "drfh"))
    validate(documents(found.text))
    assert found.names["Ann's team (GPU)"] == "ann-s-team-gpu"


def test_volcano_has_capability_over_deserved_over_guarantee() -> None:
    """And whole weights, tiers as priorities >= 0, its own queues untouched."""
    tree = [fo.Queue("root", weight=0.5, tier=-1), fo.Queue("b", guarantee={"cpu": 3}, lending_limit={"cpu": 1}, limit={"cpu": 7})]
    instance = fo.Instance([[10]], [[1], [1]], users=["x", "y"], resources=["cpu"], queues=tree, queue_of=["root", "b"])
    found = fo.export_volcano(given(instance, np.array([[4.0], [5.0]]), "rdm"), headroom=1.2)
    first, second = (each["spec"] for each in documents(found.text))
    assert found.names == {"root": "root-2", "b": "b"}
    assert first == {"parent": "root", "weight": 1, "reclaimable": True, "deserved": {"cpu": "4"}, "capability": {"cpu": "4800m"}}
    assert second == {
        "parent": "root",
        "weight": 2,
        "reclaimable": True,
        "deserved": {"cpu": "5"},
        "capability": {"cpu": "6"},
        "guarantee": {"resource": {"cpu": "2"}},
        "priority": 1,
    }


def test_volcano_reserves_above_what_is_reserved_below_and_limits_to_the_cluster() -> None:
    """Volcano stops scheduling if the guarantees in a queue are more than its own, or its capability is more than the cluster has."""
    tree = [
        fo.Queue("lab", limit={"cpu": 99}),
        fo.Queue("a", "lab", guarantee={"cpu": 4}, lending_limit={"cpu": 1}),
        fo.Queue("b", "lab", guarantee={"cpu": 2}, lending_limit={"cpu": 0}),
        fo.Queue("c", quotas=[fo.Quota(["s"], guarantee={"cpu": 1}, lending_limit={"cpu": 0})]),
    ]
    instance = fo.Instance(
        [[10], [2]], [[1]] * 3, users=["x", "y", "z"], resources=["cpu"], servers=["r", "s"], queues=tree, queue_of=["a", "b", "c"]
    )
    found = fo.export_volcano(given(instance, np.array([[5.0, 0.0], [4.0, 0.0], [0.0, 2.0]]), "rdm"))
    specs = {each["metadata"]["name"]: each["spec"] for each in documents(found.text)}
    assert {name: spec.get("guarantee") for name, spec in specs.items()} == {
        "lab": {"resource": {"cpu": "5"}},  # 3 of a, 2 of b
        "a": {"resource": {"cpu": "3"}},
        "b": {"resource": {"cpu": "2"}},
        "c": None,
    }
    assert specs["lab"]["capability"] == {"cpu": "12"}
    assert any("no lending limits on groups of servers: those of c are not in the export" in note for note in found.notes)


def test_a_name_fits_into_the_label_with_which_pods_name_their_queue() -> None:
    """The value of a label has at most 63 characters."""
    instance = fo.Instance([[10]], [[1]] * 2, users=["x" * 64, "x" * 65], resources=["cpu"])
    for kind in MARKS:
        found = EXPORTS[kind](fo.solve(instance, "drfh"))
        assert list(found.names.values()) == ["x" * 63, "x" * 61 + "-2"]


def test_kai_counts_thousandths_of_cores_and_millions_of_bytes() -> None:
    """-1 is no limit; what KAI does not know is said."""
    instance = fo.Instance([[10, 8, 4, 100]], [[0.5, 1, 1, 1]], users=["a"], resources=["cpu", "memory", "gpu", "pods"])
    found = fo.export_kai(given(instance, np.array([[3.0]]), "rdm"))
    root, queue = documents(found.text)
    assert root["spec"]["resources"]["gpu"] == {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    assert queue["spec"]["parentQueue"] == "cluster"
    assert queue["spec"]["resources"] == {
        "cpu": {"quota": 1500, "limit": -1, "overQuotaWeight": 1},
        "memory": {"quota": 3 * 2**30 / 10**6, "limit": -1, "overQuotaWeight": 1},
        "gpu": {"quota": 3, "limit": -1, "overQuotaWeight": 1},
    }
    assert any("GPU, CPU and memory only: pods are not" in note for note in found.notes)


@pytest.mark.parametrize("name", ["gpu", "nvidia.com/gpu"])
def test_kai_takes_the_name_that_kubernetes_has_for_a_gpu(name: str) -> None:
    """4 accelerators in 4 whole tasks: the quota of KAI's one "gpu", and none is left out."""
    pool = fo.Instance([[64, 4]], [[1, 1]], users=["a"], resources=["cpu", "accelerator"])
    found = fo.export_kai(fo.solve(pool, "drfh"), resources={"accelerator": name})
    _, leaf = documents(found.text)
    assert leaf["spec"]["resources"]["gpu"]["quota"] == 4
    assert not any("not in the export" in note for note in found.notes)


# YuniKorn ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "headroom"), [(0, None), (1, 1.0), (2, 1.3)])
def test_yunikorn_accepts_it_and_guarantees_what_is_held(seed: int, headroom: float | None) -> None:
    """Within the cluster, queue by queue."""
    found = exported("yunikorn", seed, headroom=headroom)
    (partition,) = yaml.safe_load(found.text)["partitions"]
    (root,) = partition["queues"]
    total = check_yunikorn(root, {})
    instance = found.whole.instance
    there = dict(zip(("vcore", "memory", GPU), instance.total_capacity.tolist(), strict=True))
    assert all(value <= there[key] * NANO * (2**30 if key == "memory" else 1) for key, value in total.items())
    listed = {queue["name"]: queue for queue in root["queues"]}
    listed |= {queue["name"]: queue for queue in listed["lab"]["queues"]}
    for queue in instance.queues:
        amounts, again = in_tree(found, queue.name), listed[queue.name]["resources"]
        assert nano(again["guaranteed"]["vcore"]) == round(amounts["cpu"] * NANO)
        assert nano(again["guaranteed"]["memory"]) == round(amounts["memory"] * 2**30 * NANO)
        if GPU in queue.limit:
            assert nano(again["max"][GPU]) <= queue.limit[GPU] * NANO


def test_names_of_yunikorn() -> None:
    """Small letters, at most 64, "root" is taken, and two labels never have one name."""
    users = ["Root", "root", "a.b", "a b", "x" * 70]
    found = fo.export_yunikorn(fo.solve(fo.Instance([[10]], [[1]] * 5, users=users, resources=["cpu"]), "drfh"))
    (partition,) = yaml.safe_load(found.text)["partitions"]
    check_yunikorn(partition["queues"][0], {})
    assert list(found.names.values()) == ["root-2", "root-3", "a-b", "a-b-2", "x" * 64]


# YARN ----------------------------------------------------------------------------------------------------------------------------


def yarn_cluster(folder: Path, found: fo.Export, labels: dict[str, str]) -> dict[str, Path]:
    """Write nodes, and an application of each user that waits, as the ResourceManager lists them."""
    whole = found.whole
    nodes, apps = [], []
    for group in whole.groups:
        for number in range(group.count):
            cores, memory = group.capacity[:2]
            node = {"id": f"{group.rows[0]}-{number}:1", "nodeHostName": f"{group.rows[0]}-{number}", "state": "RUNNING"}
            free = {"usedMemoryMB": 0, "availMemoryMB": memory * 1024, "usedVirtualCores": 0, "availableVirtualCores": cores}
            label = labels.get(whole.instance.servers[group.rows[0]], "")
            nodes.append({**node, **free, **({"nodeLabels": [label]} if label else {})})
    for n, user in enumerate(whole.instance.users):
        capability = {"memory": whole.instance.demands[n, 1] * 1024, "vCores": whole.instance.demands[n, 0]}
        requests = [
            {"resourceName": "*", "numContainers": 99, "capability": capability, "nodeLabelExpression": label}
            for label in dict.fromkeys(["", *labels.values()])
        ]
        app = {"id": f"application_1_{n}", "user": user, "queue": found.names[user], "state": "ACCEPTED", "elapsedTime": 1}
        apps.append({**app, "runningContainers": -1, "allocatedMB": -1, "allocatedVCores": -1, "resourceRequests": requests})
    paths = {name: folder / f"{name}.json" for name in ("nodes", "apps", "scheduler")}
    paths["nodes"].write_text(json.dumps({"nodes": {"node": nodes}}))
    paths["apps"].write_text(json.dumps({"apps": {"app": apps}}))
    return paths


@pytest.mark.parametrize(("seed", "headroom"), [(0, None), (1, 1.5)])
@pytest.mark.parametrize("scheduler", ["capacity", "fair"])
def test_yarn_reads_back_as_it_was_meant(scheduler: Any, headroom: float | None, seed: int, tmp_path: Path) -> None:
    """What a queue holds is its guarantee; limits are kept; the Fair Scheduler has the weights."""
    found = exported("yarn", seed, scheduler=scheduler, headroom=headroom)
    paths = yarn_cluster(tmp_path, found, {})
    answer = as_fair_scheduler(found.text) if scheduler == "fair" else as_capacity_scheduler(found.text)
    paths["scheduler"].write_text(json.dumps(answer))
    by_name = {queue.name: queue for queue in fo.import_yarn(paths["nodes"], paths["apps"], paths["scheduler"]).instance.queues}
    for queue in found.whole.instance.queues:
        again, amounts = by_name[f"{queue.parent}.{queue.name}" if queue.parent else queue.name], in_tree(found, queue.name)
        assert dict(again.guarantee) == pytest.approx({r: amounts[r] for r in ("cpu", "memory")})
        if "cpu" in queue.limit:
            assert again.limit["cpu"] <= queue.limit["cpu"]
        if headroom is not None and queue.name in found.whole.instance.users:
            assert again.limit.get("cpu", amounts["cpu"]) < amounts["cpu"] * headroom + 1
        if scheduler == "fair":
            assert again.weight == queue.weight


def test_node_labels_carry_the_placement(tmp_path: Path) -> None:
    """What each queue holds on the nodes of each label, and of none."""
    labels = {"a100-1": "a100", "v100-1": "v100"}
    found = exported("yarn", tree=False, labels=labels)
    paths = yarn_cluster(tmp_path, found, labels)
    paths["scheduler"].write_text(json.dumps(as_capacity_scheduler(found.text)))
    result = fo.import_yarn(paths["nodes"], paths["apps"], paths["scheduler"])
    by_name = {queue.name: queue for queue in result.instance.queues}
    for user in found.whole.instance.users:
        for g, group in enumerate(found.whole.groups):
            label = labels.get(found.whole.instance.servers[group.rows[0]], "without label")
            on_label = [quota for quota in by_name[user].quotas if quota.name == f"partition {label}"]
            expected = dict(zip(("cpu", "memory"), held(found, user)[g, :2].tolist(), strict=True))
            assert dict(on_label[0].guarantee if on_label else {"cpu": 0.0, "memory": 0.0}) == pytest.approx(expected)
    with pytest.raises(fo.InvalidInstance, match="has no node labels"):
        exported("yarn", scheduler="fair", labels=labels)


def test_a_limit_on_several_labels_is_divided() -> None:
    """Of 16 cores on 30 nodes of two labels, 10 are held; the other 6 are divided by 20 : 10. On part of a label there is no limit."""
    tree = [fo.Queue("lab", limit={"cpu": 16}), fo.Queue("ann", "lab"), fo.Queue("ben", quotas=[fo.Quota(["v"], limit={"cpu": 4})])]
    instance = fo.Instance(
        [[1, 4], [1, 4], [1, 4]],
        [[1, 1]] * 3,
        counts=[20, 5, 5],
        eligibility=np.eye(3, dtype=bool),
        users=["x", "y", "z"],
        servers=["c", "u", "v"],
        resources=["cpu", "memory"],
        queues=tree,
        queue_of=["ann", "ann", "ben"],
    )
    allocation = given(instance, np.diag([6.0, 4.0, 4.0]), "rdm")
    found = fo.export_yarn(allocation, labels={"u": "gpu", "v": "gpu"})
    for queue in ("lab", "lab.ann"):
        assert capacities(found.text, f"{queue}.maximum-capacity")["vCores"] == 10
        assert capacities(found.text, f"{queue}.accessible-node-labels.gpu.maximum-capacity")["vCores"] == 6
    notes = " ".join(found.notes)
    assert "limits of lab on several labels together are divided among them by capacity" in notes
    assert "such limits of ben are not in the export" in notes


def test_a_maximum_of_nothing_is_not_the_maximum_that_yarn_reads_as_none() -> None:
    """Ben holds nothing without a label, and may hold nothing more than that."""
    instance = fo.Instance(
        [[4, 8], [4, 8]],
        [[1, 1], [1, 1]],
        eligibility=np.eye(2, dtype=bool),
        users=["ann", "ben"],
        servers=["c", "g"],
        resources=["cpu", "memory"],
    )
    found = fo.export_yarn(given(instance, np.diag([4.0, 4.0]), "rdm"), headroom=1, labels={"g": "gpu"})
    assert capacities(found.text, "ben.capacity") == {"memory": 0, "vCores": 0}
    assert capacities(found.text, "ben.maximum-capacity") == {"memory": 1, "vCores": 0}


def test_names_of_yarn_are_xml_that_says_what_it_says() -> None:
    """Dots, brackets and ampersands are no part of a name, and the file stays well-formed."""
    users = ["a.b", "a&b", "<x>", "root"]
    instance = fo.Instance([[10, 8]], [[1, 1]] * 4, users=users, resources=["cpu", "a&<b>"])
    for scheduler in ("capacity", "fair"):
        found = fo.export_yarn(fo.solve(instance, "drfh"), scheduler=scheduler)
        ET.fromstring(found.text)
        assert list(found.names.values()) == ["a-b", "a-b-2", "x", "root-2"]
    with pytest.raises(fo.InvalidInstance, match='no scheduler "fifo"'):
        fo.export_yarn(fo.solve(instance, "drfh"), scheduler="fifo")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", EXPORTS)
def test_what_a_scheduler_cannot_express_is_said(kind: str) -> None:
    """The placement, limits on groups of servers, lending limits."""
    notes = " ".join(exported(kind).notes)
    assert "does not say on which servers a queue runs" in notes
    assert ("--node-label ROW=LABEL" in notes) == (kind == "yarn")
    assert "limits on groups of servers: those of dee are not in the export" in notes
    assert ("lending limits of cyd are not in the export" in notes) == (kind != "volcano")
