"""Clusters of public reports, where fair sharing surprised somebody: from their manifests to the right numbers, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import fairopt as fo

GPU = "nvidia.com/gpu"
KUEUE, VOLCANO = "kueue.x-k8s.io/v1beta1", "scheduling.volcano.sh/v1beta1"
Objects = list[dict[str, Any]]


def node(name: str, labels: dict[str, str] | None = None, **offers: Any) -> dict[str, Any]:
    """Return a node; ``gpu`` are GPUs."""
    allocatable = {"cpu": "1000", "memory": "1000Gi", "pods": "1000"} | {_resource(r): str(amount) for r, amount in offers.items()}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "status": {"allocatable": allocatable}}


def pods(queue: str, number: int, kind: str = "", **asks: Any) -> Objects:
    """Return pods of a namespace, and of a queue of that name, that wait; ``kind`` is the type of node on which they may run."""
    spec = {"containers": [{"resources": {"requests": {_resource(r): str(amount) for r, amount in asks.items()}}}]}
    marks = {"kueue.x-k8s.io/queue-name": queue, "scheduling.volcano.sh/queue-name": queue}
    return [
        {
            "kind": "Pod",
            "metadata": {"name": f"{kind}{n}-{'-'.join(map(str, asks.values()))}", "namespace": queue, "labels": marks},
            "spec": spec | ({"nodeSelector": {"type": kind}} if kind else {}),
            "status": {"phase": "Pending"},
        }
        for n in range(number)
    ]


def _resource(word: str) -> str:
    return GPU if word == "gpu" else word


def made(kind: str, name: str, spec: dict[str, Any], api: str = KUEUE) -> dict[str, Any]:
    """Return an object."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


def kueue(
    name: str, cohort: str = "", weight: int | None = None, kind: str = "ClusterQueue", quotas: dict[str, dict[str, Any]] | None = None
) -> Objects:
    """Return a ClusterQueue, with a LocalQueue of its name, or a Cohort; quotas by flavor and resource."""
    quotas = quotas or {}
    words = sorted({_resource(r) for each in quotas.values() for r in each})
    flavors = [
        {
            "name": flavor,
            "resources": [{"name": _resource(r), **(q if isinstance(q, dict) else {"nominalQuota": q})} for r, q in each.items()],
        }
        for flavor, each in quotas.items()
    ]
    spec: dict[str, Any] = {"resourceGroups": [{"coveredResources": words, "flavors": flavors}]} if quotas else {}
    spec |= {"parentName" if kind == "Cohort" else "cohort": cohort} if cohort else {}
    spec |= {"fairSharing": {"weight": weight}} if weight is not None else {}
    local = made("LocalQueue", name, {"clusterQueue": name})
    local["metadata"]["namespace"] = name
    return [made(kind, name, spec), *([local] if kind == "ClusterQueue" else [])]


def flavors(*names: str) -> Objects:
    """Return flavors, each of the nodes of its type; "any" of all."""
    return [made("ResourceFlavor", name, {} if name == "any" else {"nodeLabels": {"type": name}}) for name in names]


def volcano(name: str, **spec: Any) -> dict[str, Any]:
    """Return a queue of Volcano."""
    return made("Queue", name, spec, VOLCANO)


H100_AND_A10 = [node("h", {"type": "h100"}, gpu=15), node("a", {"type": "a10"}, gpu=50)]
BOTH: dict[str, dict[str, Any]] = {"h100": {"gpu": 5}, "a10": {"gpu": 0}}
THREE_OF_EACH: dict[str, dict[str, Any]] = {"f1": {"cpu": 3}, "f2": {"cpu": 3}}
NOTHING: dict[str, dict[str, Any]] = {"h100": {"gpu": 0}, "a10": {"gpu": 0}}
CASES: dict[str, tuple[Objects, Objects, Objects, dict[str, float]]] = {
    "kueue 1714: teams of weights 1, 1 and 3 in one half of 300 GPUs": (
        [node("n", gpu=300)],
        [pod for name in ("a1", "b1", "c1", "a2") for pod in pods(name, 300, gpu=1)],
        [
            *flavors("any"),
            *kueue("root", kind="Cohort", quotas={"any": {"gpu": 300}}),
            *kueue("one", "root", kind="Cohort"),
            *kueue("two", "root", kind="Cohort"),
            *(
                each
                for name, weight in (("a1", 1), ("b1", 1), ("c1", 3))
                for each in kueue(name, "one", weight, quotas={"any": {"gpu": 0}})
            ),
            *kueue("a2", "two", quotas={"any": {"gpu": 0}}),
        ],
        {"a1": 30, "b1": 30, "c1": 90, "a2": 150},
    ),
    "kueue 9406: what is borrowed of one flavor takes nothing of the quota of another": (
        H100_AND_A10,
        [*(p for q in ("ta", "tb") for p in (*pods(q, 20, "h100", gpu=1), *pods(q, 60, "a10", gpu=1))), *pods("tc", 9, "h100", gpu=1)],
        [
            *flavors("h100", "a10"),
            *kueue("all", kind="Cohort", quotas={"a10": {"gpu": 50}}),
            *(each for name in ("ta", "tb") for each in kueue(name, "all", quotas=BOTH)),
            *kueue("tc", "all", quotas={"h100": {"gpu": 5}}),
        ],
        {"ta": 30, "tb": 30, "tc": 5},
    ),
    "kueue 9466: the same of the quotas of cohorts": (
        [node("h", {"type": "h100"}, gpu=10), H100_AND_A10[1]],
        [pod for q in ("xa", "ya", "yb") for pod in (*pods(q, 20, "h100", gpu=1), *pods(q, 60, "a10", gpu=1))],
        [
            *flavors("h100", "a10"),
            *kueue("root", kind="Cohort", quotas={"a10": {"gpu": 50}}),
            *(each for name in "XY" for each in kueue(name, "root", kind="Cohort", quotas={"h100": {"gpu": 5}})),
            *(each for name, cohort in (("xa", "X"), ("ya", "Y"), ("yb", "Y")) for each in kueue(name, cohort, quotas=NOTHING)),
        ],
        {"xa": 30, "ya": 15, "yb": 15},
    ),
    "kueue 7015: guarantees of two flavors in nested cohorts": (
        [node("m1", {"type": "f1"}, cpu=9), node("m2", {"type": "f2"}, cpu=9)],
        [pod for name in "abc" for pod in pods(name, 40, cpu="500m")],
        [
            *flavors("f1", "f2"),
            *kueue("root", kind="Cohort"),
            *(each for name in ("L", "R") for each in kueue(name, "root", kind="Cohort")),
            *(each for name, cohort in zip("abc", "LLR", strict=True) for each in kueue(name, cohort, quotas=THREE_OF_EACH)),
        ],
        {"a": 12, "b": 12, "c": 12},
    ),
    "kueue, cohorts of its manual: 21 CPUs where the other team is idle, 10 where it lends one": (
        [node("n", cpu=30)],
        pods("team-a", 30, cpu=1, memory="1Gi"),
        [
            *flavors("any"),
            *kueue("team-a", "ab", quotas={"any": {"cpu": 9, "memory": "36Gi"}}),
            *kueue("team-b", "ab", quotas={"any": {"cpu": {"nominalQuota": 12, "lendingLimit": 1}, "memory": "48Gi"}}),
        ],
        {"team-a": 10},
    ),
    "volcano 1486: capabilities that bind in different resources leave nothing idle": (
        [node("n", cpu=100, memory="100Gi")],
        [*pods("a", 50, cpu=2, memory="1Gi"), *pods("b", 50, cpu=1, memory="3Gi")],
        [
            volcano("a", weight=1, capability={"cpu": 80, "memory": "40Gi"}),
            volcano("b", weight=1, capability={"cpu": 20, "memory": "60Gi"}),
        ],
        {"a": 40, "b": 20},
    ),
    "volcano 1850: jobs of two queues that fit beside each other": (
        [node("small", cpu=1, memory="3237024Ki"), node("large", cpu=20, memory="108459168Ki")],
        [p for q, cpu, gib in (("a", 11, 1), ("a", 1, 1), ("b", 1, 60), ("b", 1, 1)) for p in pods(q, 1, cpu=cpu, memory=f"{gib}Gi")],
        [volcano("a", weight=1, capability={"cpu": 15, "memory": "30Gi"}), volcano("b", weight=1, capability={"cpu": 5, "memory": "70Gi"})],
        {"a": 2, "b": 2},
    ),
    "volcano 1619: a queue that asks for less than its half leaves the rest": (
        [node("n", cpu=11)],
        [*pods("a", 12, cpu=1), *pods("b", 1, cpu=2)],
        [volcano("a", weight=5), volcano("b", weight=5), volcano("default", weight=1)],
        {"a": 9, "b": 1},
    ),
    "volcano 6016: a reservation without what is deserved": (
        [node("n", cpu=1, memory="8Gi")],
        [*pods("a", 9, cpu="100m", memory="100Mi"), *pods("b", 50, cpu="100m", memory="100Mi")],
        [
            volcano("a", guarantee={"resource": {"cpu": "100m", "memory": "1Gi"}}, capability={"cpu": "200m", "memory": "2Gi"}),
            volcano("b", weight=1),
        ],
        {"a": 2, "b": 8},
    ),
}


@pytest.mark.parametrize("report", CASES)
def test_a_report(tmp_path: Path, report: str) -> None:
    """The tasks of each owner at the optimum, by the notion that the import recommends."""
    nodes, work, queues, tasks = CASES[report]
    for name, objects in (("nodes", nodes), ("pods", work)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "items": objects}))
    (tmp_path / "queues.yaml").write_text("---\n".join(yaml.safe_dump(each) for each in queues))
    found = fo.import_kubernetes(tmp_path / "nodes.json", tmp_path / "pods.json", queues=tmp_path / "queues.yaml")
    answer = fo.solve(found.instance, found.notion).tasks_per_user
    assert {owner: sum(t for t, own in zip(answer, found.owners, strict=True) if own == owner) for owner in found.owners} == pytest.approx(
        tasks
    )
