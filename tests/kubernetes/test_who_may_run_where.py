"""What decides who runs and where, beside quotas: weights of 0, LocalQueues, stopped queues, node groups, ElasticQuotas, failed devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes.test_queues import FLAVORS, GPU, by_name, cluster_queue, imported, local_queue, node, pod, write

import fairopt as fo

NAME = "kueue.x-k8s.io/queue-name"


def solved(result: fo.Import) -> dict[str, float]:
    """Return the tasks of each owner."""
    allocation = fo.solve(result.instance, "drfh", **result.options)
    owners = dict.fromkeys(result.owners, 0.0)
    for owner, tasks in zip(result.owners, allocation.tasks_per_user, strict=True):
        owners[owner] += float(tasks)
    return owners


def test_weight_0_of_kueue_borrows_what_the_others_leave_over(tmp_path: Path) -> None:
    """4 GPUs, quotas 1 and 3. Prod asks for 1: low borrows 2 of its 3. Prod asks for 9: low has its quota."""
    write(tmp_path, nodes=[node("n", 4)])
    text = FLAVORS + cluster_queue("low", {"any": "1"}, "all", "fairSharing: {weight: 0}") + cluster_queue("prod", {"any": "3"}, "all")
    text += local_queue("a", "low") + local_queue("b", "prod")
    low = [pod(f"p{i}", "a", gpu="1") for i in range(4)]
    result = imported(tmp_path, text, [*low, pod("p", "b", gpu="1")])
    assert solved(result) == pytest.approx({"a": 3, "b": 1})
    assert any(note.startswith("weight 0 of low: it borrows last") for note in result.notes)
    assert solved(imported(tmp_path, text, [*low, *(pod(f"p{i}", "b", gpu="1") for i in range(9))])) == pytest.approx({"a": 1, "b": 3})
    alone = imported(tmp_path, text.replace("cohortName: all", ""), [*low, pod("p", "b", gpu="1")])
    assert (by_name(alone)["low"].weight, by_name(alone)["prod"].tier) == (1, 0)  # without a cohort there is nothing to borrow


def test_local_queues_of_a_namespace_share_by_their_weights(tmp_path: Path) -> None:
    """9 GPUs, weights 1 and 2: 3 and 6; the name is with its namespace where another namespace has one of the same name."""
    write(tmp_path, nodes=[node("n", 9)])
    text = FLAVORS + cluster_queue("q", {"any": "9"}) + local_queue("lab", "q", "x", ", fairSharing: {weight: 1}")
    text += local_queue("lab", "q", "y", ", fairSharing: {weight: 2}")
    pods = [pod(f"{name}{i}", "lab", {NAME: name}, gpu="1") for name in "xy" for i in range(9)]
    assert solved(imported(tmp_path, text, pods)) == pytest.approx({"x": 3, "y": 6})
    assert set(imported(tmp_path, text + local_queue("shop", "q", "x"), pods).owners) == {"lab/x", "y"}


def test_a_stopped_queue_starts_nothing(tmp_path: Path) -> None:
    """Hold: what runs goes on; HoldAndDrain: nothing. Of a LocalQueue and of a ClusterQueue."""
    write(tmp_path, nodes=[node("n", 9)])
    running: dict[str, Any] = pod("r", "a", gpu="1")
    running["spec"]["nodeName"], running["status"]["phase"] = "n", "Running"
    pods = [running, pod("w", "a", gpu="1"), pod("o", "b", gpu="1")]
    plain = FLAVORS + cluster_queue("q", {"any": "9"})
    other = local_queue("b", "q")
    held = imported(tmp_path, plain + local_queue("a", "q", more=", stopPolicy: Hold") + other, pods)
    assert solved(held) == pytest.approx({"a": 1, "b": 1})
    assert [each.why for each in held.left_out] == ["its queue is stopped (stopPolicy Hold): nothing starts"]
    assert set(imported(tmp_path, plain + local_queue("a", "q", more=", stopPolicy: HoldAndDrain") + other, pods).owners) == {"b"}
    second = cluster_queue("stopped", {"any": "0"}, more="stopPolicy: HoldAndDrain") + local_queue("a", "stopped")
    assert set(imported(tmp_path, plain + second + other, pods).owners) == {"b"}
    with pytest.raises(fo.InvalidInstance, match=r'there is no policy "Stop"; the policies are None, Hold and HoldAndDrain'):
        imported(tmp_path, plain + local_queue("a", "q", more=", stopPolicy: Stop"), pods)


@pytest.mark.parametrize(
    ("affinity", "groups"),
    [
        ("nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [x]}", "x"),
        ("nodeGroupAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [x, y]}", "xy"),
        (
            "nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [x, y]}, "
            "nodeGroupAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [y]}",
            "x",
        ),
        ("nodeGroupAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [z]}", "z"),
    ],
)
def test_volcano_queues_run_on_their_groups_of_nodes(tmp_path: Path, affinity: str, groups: str) -> None:
    """A queue below runs where the nearest one above does; one that states none runs nowhere, while others do."""
    write(tmp_path, nodes=[*(node(name, 1, {"volcano.sh/nodegroup-name": name}) for name in "xyz"), node("bare", 1)])
    head = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n"
    text = f"{head}metadata: {{name: top}}\nspec: {{affinity: {{{affinity}}}}}\n"
    text += f"{head}metadata: {{name: sub}}\nspec: {{parent: top}}\n{head}metadata: {{name: none}}\nspec: {{}}\n"
    mark = "volcano.sh/queue-name"
    result = imported(tmp_path, text, [pod("p", "a", {mark: "sub"}), pod("q", "b", {mark: "none"})])
    on = "".join(
        sorted(name for row, may in zip(result.instance.hosts, result.instance.eligibility[0], strict=True) if may for name in row)
    )
    assert on == groups
    assert [each.why for each in result.left_out] == ["no server meets its constraints, so it can never start"]
    assert any(note.startswith("none: without a node group") for note in result.notes)


def test_elastic_quotas_guarantee_min_and_limit_max(tmp_path: Path) -> None:
    """Scheduler-plugins: by namespace. Koordinator: a tree by labels, weights, and quotas that do not lend."""
    write(tmp_path, nodes=[node("n", 10)])
    head = "---\napiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\n"
    text = "".join(f"{head}metadata: {{name: q, namespace: {space}}}\nspec: {{min: {{{GPU}: {m}}}}}\n" for space, m in (("a", 4), ("b", 1)))
    pods = [pod(f"p{i}", "a", gpu="1") for i in range(9)] + [pod(f"q{i}", "b", gpu="1") for i in range(9)]
    queues = by_name(imported(tmp_path, text, pods))
    assert queues["a/q"] == fo.Queue("a/q", guarantee={GPU: 4})
    assert queues["b"].parent == "b/q"
    key = "quota.scheduling.koordinator.sh/"
    text = f'{head}metadata: {{name: top, labels: {{{key}is-parent: "true"}}}}\nspec: {{min: {{{GPU}: 6}}, max: {{{GPU}: 8}}}}\n'
    text += f'{head}metadata: {{name: a, labels: {{{key}parent: top, {key}allow-lent-resource: "false"}}}}\n'
    text += f"spec: {{min: {{{GPU}: 2}}, max: {{{GPU}: 5}}}}\n"
    weight = f"""annotations: {{{key}shared-weight: '{{"{GPU}": 1}}'}}"""
    text += f"{head}metadata: {{name: b, labels: {{{key}parent: top}}, {weight}}}\nspec: {{min: {{{GPU}: 1}}}}\n"
    result = imported(tmp_path, text, [*pods, pod("o", "a", {f"{key}name": "b"}, gpu="1")])
    queues = by_name(result)
    assert queues["top"] == fo.Queue("top", None, 0.8, {GPU: 6}, {GPU: 8})
    assert queues["a"] == fo.Queue("a", "top", 0.5, {GPU: 2}, {GPU: 5}, {GPU: 0})
    assert queues["b"] == fo.Queue("b", "top", 0.1, {GPU: 1})
    with pytest.raises(fo.InvalidInstance, match="expected JSON"):
        imported(tmp_path, text.replace(f'{{"{GPU}": 1}}', "1"), pods)
    with pytest.raises(fo.InvalidInstance, match='"a" has another ElasticQuota'):
        imported(tmp_path, 2 * f"{head}metadata: {{name: q, namespace: a}}\nspec: {{}}\n", pods)


def test_a_pod_that_runs_stays_whatever_its_node_lists(tmp_path: Path) -> None:
    """The device plugin of n failed: its pod holds its cores. The others have the rest: 10 of the 12 cores that they ask for."""
    running = pod("r", "ml", gpu="4", cpu="8")
    running["spec"]["nodeName"], running["status"]["phase"] = "n", "Running"
    write(tmp_path, nodes=[node("n"), node("m")], pods=[running, *(pod(f"w{i}", "web", cpu="2") for i in range(8))])
    result = fo.import_kubernetes(tmp_path / "nodes.json", tmp_path / "pods.json")
    assert not result.left_out
    assert result.summary["tasks running"] == 1
    assert solved(result) == pytest.approx({"ml": 1, "web": 6})
    assert f"1 pod runs on a node with less {GPU} than requested: it stays, and holds what its node lists" in result.notes
