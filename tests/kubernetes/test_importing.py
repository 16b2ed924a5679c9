"""Kubernetes: a small export worked out by hand, constraints against the rules as written, and random clusters."""

from __future__ import annotations

import json
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo

EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
NODES, PODS = EXPORTS / "kubernetes_nodes.json", EXPORTS / "kubernetes_pods.json"


def items(path: Path) -> list[dict[str, Any]]:
    """Read the items of an export."""
    return list(json.loads(path.read_text())["items"])


def imported(nodes: list[dict[str, Any]], pods: list[dict[str, Any]], **options: Any) -> fo.Import:
    """Write both and import them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, records in (("nodes.json", nodes), ("pods.json", pods)):
            Path(folder, name).write_text(json.dumps({"kind": "List", "items": records}))
        return fo.import_kubernetes(Path(folder, "nodes.json"), Path(folder, "pods.json"), **options)


def node(name: str, cpu: str = "8", memory: str = "16Gi", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Make a node."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(name: str, cpu: str = "1", on: str = "", **spec: Any) -> dict[str, Any]:
    """Make a pod of the namespace "shop"."""
    containers = spec.pop("containers", [{"resources": {"requests": {"cpu": cpu}}}])
    where = {"nodeName": on} if on else {}
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": containers, **where, **spec},
        "status": {"phase": "Running" if on else "Pending"},
    }


# By hand -------------------------------------------------------------------------------------------------------------------------


def test_capacity_is_allocatable_less_what_belongs_to_the_node() -> None:
    """An agent of 100m and 100Mi on each node, 250m of a static pod on the control plane; cordoned and lost nodes offer nothing."""
    instance = fo.import_kubernetes(NODES, PODS).instance
    assert instance.servers == ("control-1", "gpu-1", "worker-2", "worker-10")
    assert instance.resources == ("cpu", "memory", "pods", "nvidia.com/gpu")
    agent = 100 / 1024
    expected = [[3.65, 8 - agent, 108, 0], [31.9, 128 - agent, 109, 4], [3.4, 16 - agent, 109, 0], [3.4, 16 - agent, 109, 0]]
    assert instance.capacities == pytest.approx(np.array(expected), rel=1e-15)
    taken = fo.import_kubernetes(NODES, PODS).summary["taken off nodes"]
    assert taken == {"cpu": 0.65, "memory": 4 * agent, "pods": 5}


def test_daemonsets_can_be_tasks() -> None:
    """Then the nodes offer all that is allocatable, and the pods of a DaemonSet are tasks of their namespace."""
    whole = fo.import_kubernetes(NODES, PODS, daemonsets="tasks")
    assert whole.instance.total_capacity.tolist() == [4 + 32 + 3.5 + 3.5, 8 + 128 + 16 + 16, 440, 4]
    system = [n for n, owner in enumerate(whole.owners) if owner == "kube-system"]
    assert whole.instance.tasks[system].sum() == 6  # one of them runs on the cordoned node
    assert whole.held[system].sum() == 5


def test_requests_of_each_kind() -> None:
    """Limits where there is no request, the largest init container beside the sidecars before it, overhead, and nothing."""
    instance = fo.import_kubernetes(NODES, PODS).instance
    demand = {
        user: dict(zip(instance.resources, row, strict=True)) for user, row in zip(instance.users, instance.demands.tolist(), strict=True)
    }
    assert demand["ml"] == {"cpu": 4, "memory": 16e9 / 2**30, "pods": 1, "nvidia.com/gpu": 1}
    assert demand["shop/2.1 cpu 1 memory"] == {"cpu": 2.1, "memory": 1, "pods": 1, "nvidia.com/gpu": 0}  # max(0.5 + 0.1, 0.1 + 2)
    assert demand["shop/0.25 cpu 0.5 memory"] == {"cpu": 0.25, "memory": 0.5, "pods": 1, "nvidia.com/gpu": 0}
    assert demand["sandbox/0.25 cpu 0.1172 memory"] == {"cpu": 0.25, "memory": 120 / 1024, "pods": 1, "nvidia.com/gpu": 0}
    assert demand["sandbox/1 pods"] == {"cpu": 0, "memory": 0, "pods": 1, "nvidia.com/gpu": 0}


def test_tasks_that_run_wait_and_are_over() -> None:
    """Four of the shop's web pods, one pending and one on the lost node; Succeeded and Failed ones are nowhere."""
    result = fo.import_kubernetes(NODES, PODS)
    tasks = dict(zip(result.instance.users, zip(result.instance.tasks, result.held, strict=True), strict=True))
    assert tasks["shop/0.25 cpu 0.5 memory"] == (4, 2)
    assert tasks["ml"] == (2, 1)
    assert sum(number for number, _ in tasks.values()) == 9
    left_out = {why: number for (what, why), (number, _) in result.why_left_out.items() if what == "pod"}
    assert left_out["finished (Failed): holds nothing and asks for nothing"] == 1
    assert left_out["larger than every server on which it may run, so it can never start"] == 1  # 8 GPUs
    assert result.summary["priority classes"] == {"high": 2}


def test_weights_are_those_of_the_namespace() -> None:
    """A namespace is a queue, and its shapes of pods are users of weight 1 in it."""
    result = fo.import_kubernetes(NODES, PODS, weights={"shop": 3})
    assert {queue.name: queue.weight for queue in result.instance.queues} == {"ml": 1, "sandbox": 1, "shop": 3}
    assert result.instance.queue_of == result.owners
    assert (result.instance.weights == 1).all()


@pytest.mark.parametrize(
    ("users", "owners"),
    [
        ("namespace", {"ml", "sandbox", "shop"}),
        ("label:team", {"blue", "green", "(no team)"}),
        ("priority", {"high", "(no class)"}),
    ],
)
def test_who_owns_a_pod(users: str, owners: set[str]) -> None:
    """Namespace, a label, or a priority class."""
    assert set(fo.import_kubernetes(NODES, PODS, users=users).owners) == owners


def test_without_pods_an_example_stands_for_them() -> None:
    """With every resource of the nodes, so that users can be put in its place."""
    result = fo.import_kubernetes(NODES)
    assert result.instance.users == ("example",)
    assert result.instance.resources == ("cpu", "memory", "pods", "nvidia.com/gpu")
    assert np.isinf(result.instance.tasks).all()
    assert result.current is None
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_single_object_and_several_files() -> None:
    """``kubectl get node a -o json`` is no list; pods may come namespace by namespace, and some of those are empty."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "node.json").write_text(json.dumps(node("a")))
        for name, records in (("one", [pod("x")]), ("none", []), ("two", [pod("y")])):
            Path(folder, name).write_text(json.dumps({"items": records}))
        result = fo.import_kubernetes(Path(folder, "node.json"), [Path(folder, name) for name in ("one", "none", "two")])
    assert result.instance.tasks.tolist() == [2]


def test_resources_of_the_whole_pod_win() -> None:
    """Where a pod gives them beside those of its containers."""
    whole, containers = {"requests": {"cpu": "3"}}, [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    assert imported([node("a")], [pod("x", resources=whole, containers=containers)]).instance.demands.tolist() == [[3, 1, 1]]


# Constraints ---------------------------------------------------------------------------------------------------------------------

LABELLED = [
    node("a", labels={"zone": "x", "cores": "8"}),
    node("b", labels={"zone": "y", "cores": "64"}),
    node("c", labels={"cores": "many"}),
]


def where(nodes: list[dict[str, Any]], **spec: Any) -> set[str]:
    """Return the nodes on which a pod may run: a second pod makes each of them a row of its own."""
    pins = [
        pod(f"pin-{each['metadata']['name']}", "2", tolerations=[{"operator": "Exists"}], **_on(each["metadata"]["name"])) for each in nodes
    ]
    result = imported(nodes, [*pins, pod("it", "1", **spec)])
    its = np.flatnonzero(result.instance.demands[:, 0] == 1)  # none: no node would take it
    return {result.instance.servers[i] for n in its for i in np.flatnonzero(result.instance.eligibility[n])}


def _on(name: str) -> dict[str, Any]:
    return required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]})


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """Make required node affinity."""
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}}


def expressions(*conditions: tuple[str, str, list[str]]) -> dict[str, Any]:
    """Make a term: all conditions must hold."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in conditions]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"a", "b", "c"}),
        ({"nodeSelector": {"zone": "x"}}, {"a"}),
        ({"nodeSelector": {"zone": "z"}}, set()),
        (required(expressions(("zone", "In", ["x", "y"]))), {"a", "b"}),
        (required(expressions(("zone", "NotIn", ["x"]))), {"b", "c"}),  # also where there is no such label
        (required(expressions(("zone", "Exists", []))), {"a", "b"}),
        (required(expressions(("zone", "DoesNotExist", []))), {"c"}),
        (required(expressions(("cores", "Gt", ["8"]))), {"b"}),
        (required(expressions(("cores", "Lt", ["64"]))), {"a"}),
        (required(expressions(("zone", "In", ["x"]), ("cores", "Gt", ["8"]))), set()),  # all of a term
        (required(expressions(("zone", "In", ["x"])), expressions(("cores", "Gt", ["8"]))), {"a", "b"}),  # one term
        (required({}), set()),  # an empty term matches nothing
        (_on("c"), {"c"}),
        ({"nodeSelector": {"zone": "y"}, **required(expressions(("cores", "Exists", [])))}, {"b"}),
    ],
)
def test_selectors_and_affinity(spec: dict[str, Any], expected: set[str]) -> None:
    """As the Kubernetes documentation says, case by case."""
    assert where(LABELLED, **spec) == expected


TAINTED = [
    node("plain"),
    node("gpu", taints=[{"key": "gpu", "value": "a100", "effect": "NoSchedule"}]),
    node("evicts", taints=[{"key": "gpu", "value": "a100", "effect": "NoExecute"}]),
    node("prefers", taints=[{"key": "gpu", "value": "a100", "effect": "PreferNoSchedule"}]),
]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([], {"plain", "prefers"}),
        ([{"key": "gpu", "operator": "Exists"}], {"plain", "prefers", "gpu", "evicts"}),
        ([{"key": "gpu", "value": "a100"}], {"plain", "prefers", "gpu", "evicts"}),
        ([{"key": "gpu", "operator": "Equal", "value": "t4"}], {"plain", "prefers"}),
        ([{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}], {"plain", "prefers", "gpu"}),
        ([{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}], {"plain", "prefers", "evicts"}),
        ([{"operator": "Exists"}], {"plain", "prefers", "gpu", "evicts"}),
        ([{"key": "other", "operator": "Exists"}], {"plain", "prefers"}),
    ],
)
def test_taints_and_tolerations(tolerations: list[dict[str, Any]], expected: set[str]) -> None:
    """Effects NoSchedule and NoExecute keep pods away, PreferNoSchedule does not."""
    assert where(TAINTED, tolerations=tolerations) == expected


# Properties ----------------------------------------------------------------------------------------------------------------------

SIZES = ["100m", "250m", "1", "1500m", "2"]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw nodes of a few kinds, and pods that first-fit places where selector and room allow; the others wait."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = [
        node(f"n{i}", str(rng.choice(["4", "8"])), "16Gi", {"zone": str(rng.choice(["x", "y"]))}) for i in range(int(rng.integers(1, 6)))
    ]
    free = {each["metadata"]["name"]: Fraction(each["status"]["allocatable"]["cpu"]) for each in nodes}
    zone = {each["metadata"]["name"]: each["metadata"]["labels"]["zone"] for each in nodes}
    pods = []
    for j in range(int(rng.integers(1, 15))):
        size, chosen = str(rng.choice(SIZES)), str(rng.choice(["", "x", "y"]))
        need = Fraction(size[:-1]) / 1000 if size.endswith("m") else Fraction(size)
        on = next((name for name in free if free[name] >= need and chosen in ("", zone[name])), "")
        if on:
            free[on] -= need
        each = pod(f"p{j}", size, on, **({"nodeSelector": {"zone": chosen}} if chosen else {}))
        each["metadata"]["namespace"] = str(rng.choice(["red", "blue"]))
        if rng.random() < 0.2:
            each["metadata"]["ownerReferences"] = [{"kind": "DaemonSet"}]
        pods.append(each)
    return nodes, pods


def attempt(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> fo.Import | None:
    """Import, or None where nothing is left to import."""
    try:
        return imported(nodes, pods)
    except fo.InvalidInstance as error:
        if "is left" not in str(error):
            raise
        return None


@settings(max_examples=60)
@given(clusters())
def test_what_fits_is_feasible(cluster: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    """The running pods fitted on their nodes, so they fit on the rows, to rounding; and their sums are those of the export."""
    result = attempt(*cluster)
    if result is None:
        return
    assert result.current is not None
    assert result.current.certificate.feasibility <= 1e-12
    mine = [each for each in cluster[1] if "ownerReferences" not in each["metadata"]]
    running = [each for each in mine if "nodeName" in each["spec"]]
    cpu = [each["spec"]["containers"][0]["resources"]["requests"]["cpu"] for each in running]
    expected = sum(float(text[:-1]) / 1000 if text.endswith("m") else float(text) for text in cpu)
    assert result.current.usage[:, 0].sum() == pytest.approx(expected)
    assert result.held.sum() == len(running)


@settings(max_examples=40)
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_the_export_does_not_matter(cluster: tuple[list[dict[str, Any]], list[dict[str, Any]]], random: Any) -> None:
    """Nodes and pods in any order: the same instance, and the same current allocation."""
    nodes, pods = cluster
    first = attempt(nodes, pods)
    shuffled = random.sample(nodes, len(nodes)), random.sample(pods, len(pods))
    second = attempt(*shuffled)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert first.instance == second.instance
        assert first.current_csv() == second.current_csv()


def test_priorities_are_said() -> None:
    """Priorities that are not known; those of the system are no matter. Owners that are classes say it, too."""
    pods = [pod("a", priorityClassName="high"), pod("b"), pod("c"), pod("d", priorityClassName="system-node-critical")]
    for users in ("namespace", "priority"):
        said = [note for note in imported([node("n")], pods, users=users).notes if "priority classes" in note]
        assert [note.partition(":")[0] for note in said] == ["pods have different priority classes (no class 2 and high 1)"]
    alone = imported([node("n")], pods[1:])
    assert not any("priority" in note for note in alone.notes)
    assert not any(queue.tier for queue in alone.instance.queues)


CLASSES = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: -10
"""


@pytest.mark.parametrize("by_pods", [True, False])
def test_waiting_pods_that_stop_no_others_are_counted(tmp_path: Path, by_pods: bool) -> None:
    """The pod or its class says so; one that runs needs nobody to stop."""
    more: dict[str, Any] = {"priorityClassName": "high"} | ({"priority": 1000, "preemptionPolicy": "Never"} if by_pods else {})
    usual: dict[str, Any] = {"priority": 0} if by_pods else {}
    pods = [pod("a", on="n", **more), pod("b", **more), pod("c", **more), pod("d", on="n", **usual)]
    manifests = tmp_path / "classes.yaml"
    manifests.write_text(CLASSES.replace("value: 1000", "value: 1000\npreemptionPolicy: Never"))
    found = imported([node("n", "10")], pods, queues=() if by_pods else manifests)
    assert sum(note.startswith("2 waiting pods have preemptionPolicy Never:") for note in found.notes) == 1


@pytest.mark.parametrize("by_pods", [True, False])
def test_priorities_of_pods_are_tiers(tmp_path: Path, by_pods: bool) -> None:
    """10 CPUs: 6 pods of high, of shop, run; the other 4 CPUs are 2 for shop and 2 for lab, and none for those of low, of lab.

    The pods say their priority, or the manifests of their classes do. Beside queues of Kueue, which orders work inside them, it is noted.
    """
    number = {"high": 1000, "": 0, "low": -10}
    listed = [("shop", "high", 6), ("shop", "", 10), ("lab", "", 10), ("lab", "low", 10)]
    pods = []
    for space, name, several in listed:
        more: dict[str, Any] = ({"priorityClassName": name} if name else {}) | ({"priority": number[name]} if by_pods else {})
        made = [pod(f"{name or 'none'}-{k}", on="n" if name == "high" else "", **more) for k in range(several)]
        pods += [each | {"metadata": {"name": each["metadata"]["name"], "namespace": space}} for each in made]
    manifests = tmp_path / "classes.yaml"
    manifests.write_text(CLASSES)
    found = imported([node("n", "10")], pods, queues=() if by_pods else manifests)
    assert {queue.name: queue.tier for queue in found.instance.queues if queue.tier} == {"lab/priority:low": -1, "shop/priority:high": 1}
    answer = fo.solve(found.instance, "drfh").tasks_per_user
    assert dict(zip(found.instance.queue_of, answer, strict=True)) == pytest.approx(
        {"shop/priority:high": 6, "shop": 2, "lab": 2, "lab/priority:low": 0}, abs=1e-6
    )
    assert found.left_out == ()
    assert any(note.startswith("pods differ in priority (high 1,000, no class 0 and low -10)") for note in found.notes)
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {"resourceGroups": []}}
    manifests.write_text(f"{CLASSES}---\n{json.dumps(kueue)}\n")
    beside = imported([node("n", "10")], pods, queues=manifests)
    assert not any(queue.tier for queue in beside.instance.queues)
    assert any("inside a queue; an instance treats them alike" in note for note in beside.notes)


def test_owners_that_are_priority_classes_are_in_tiers(tmp_path: Path) -> None:
    """10 CPUs: 6 for the pods of high, 4 for those without a class, none for low. A class that got another value has a tier for each."""
    manifests = tmp_path / "classes.yaml"
    manifests.write_text(CLASSES)
    pods = [
        pod(f"{name}-{k}", **({"priorityClassName": name} if name else {}))
        for name, n in [("high", 6), ("", 9), ("low", 9)]
        for k in range(n)
    ]
    found = imported([node("n", "10")], pods, users="priority", queues=manifests)
    assert {queue.name: queue.tier for queue in found.instance.queues} == {"high": 1, "(no class)": 0, "low": -1}
    answer = fo.solve(found.instance, "drfh").tasks_per_user
    assert dict(zip(found.instance.queue_of, answer, strict=True)) == pytest.approx({"high": 6, "(no class)": 4, "low": 0}, abs=1e-6)
    assert any(note.startswith("pods differ in priority (high 1,000, no class 0 and low -10)") for note in found.notes)
    pods[0]["spec"]["priority"] = 2000
    changed = imported([node("n", "10")], pods, users="priority", queues=manifests)
    assert {queue.name: (queue.parent, queue.tier) for queue in changed.instance.queues if "high" in queue.name} == {
        "high": (None, 1),
        "high/priority:2,000": ("high", 1),
    }
