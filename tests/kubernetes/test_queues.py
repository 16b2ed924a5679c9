"""Queues of Kueue, Volcano and KAI, and ResourceQuotas: small clusters worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.real_data import DATA, needs

import fairopt as fo

GPU = "nvidia.com/gpu"
SAMPLES = DATA / "queues"


def node(name: str, gpus: int = 0, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Make a node of 10 cores and 16 GiB."""
    allocatable = {"cpu": "10", "memory": "16Gi", "pods": "110", **({GPU: str(gpus)} if gpus else {})}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {}, "status": {"allocatable": allocatable}}


def pod(name: str, namespace: str, mark: dict[str, str] | None = None, scheduler: str = "", **requests: str) -> dict[str, Any]:
    """Make a pod that waits, of one core; ``mark`` is a label."""
    asked = {"cpu": "1", **{key.replace("gpu", GPU): value for key, value in requests.items()}}
    spec = {"schedulerName": scheduler, "containers": [{"resources": {"requests": asked}}]}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": mark or {}},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with two nodes of 4 a100, one with 2 v100, and one without GPU."""
    a100 = {"gpu.model": "a100"}
    return write(tmp_path, nodes=[node("a1", 4, a100), node("a2", 4, a100), node("v1", 2, {"gpu.model": "v100"}), node("c1")])


def write(folder: Path, **lists: list[dict[str, Any]]) -> Path:
    """Write lists as kubectl does."""
    for name, records in lists.items():
        (folder / f"{name}.json").write_text(json.dumps({"kind": "List", "items": records}))
    return folder


def imported(folder: Path, text: str, pods: list[dict[str, Any]], **options: Any) -> fo.Import:
    """Import with queues in YAML."""
    write(folder, pods=pods)
    (folder / "queues.yaml").write_text(text)
    return fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=folder / "queues.yaml", **options)


def by_name(result: fo.Import) -> dict[str, fo.Queue]:
    """Return the queues by name."""
    return {queue.name: queue for queue in result.instance.queues}


# ResourceQuotas ------------------------------------------------------------------------------------------------------------------

QUOTAS = """
apiVersion: v1
kind: List
items:
- kind: ResourceQuota
  apiVersion: v1
  metadata: {name: q, namespace: shop}
  spec: {hard: {requests.cpu: 4500m, memory: 8Gi, limits.cpu: 9}}
- {kind: ResourceQuota, apiVersion: v1, metadata: {name: r, namespace: shop}, spec: {hard: {cpu: 5, requests.nvidia.com/gpu: 2, pods: "7"}}}
- {kind: ResourceQuota, apiVersion: v1, metadata: {name: s, namespace: shop}, spec: {hard: {cpu: 1}, scopes: [BestEffort]}}
- {kind: ResourceQuota, apiVersion: v1, metadata: {name: t, namespace: empty}, spec: {hard: {cpu: 1}}}
"""


def test_resource_quotas_limit_the_queue_of_their_namespace(folder: Path) -> None:
    """The least of several; one for some pods only is left out, and so are limits of what an instance does not hold."""
    result = imported(folder, QUOTAS, [pod("p", "shop", gpu="1"), pod("q", "ml")])
    assert by_name(result) == {"ml": fo.Queue("ml"), "shop": fo.Queue("shop", limit={"cpu": 4.5, "memory": 8, GPU: 2, "pods": 7})}
    assert result.options == {}
    assert {(each.what, each.why) for each in result.left_out} == {
        ("ResourceQuota", "it counts some pods only (scopes)"),
        ("ResourceQuota", "its namespace has no pod here"),
    }
    assert any("what ResourceQuotas say of limits.cpu is left out" in note for note in result.notes)


def test_resource_quotas_do_not_limit_owners_by_label(folder: Path) -> None:
    """A label may be in several namespaces."""
    result = imported(folder, QUOTAS, [pod("p", "shop", {"team": "blue"})], users="label:team")
    assert by_name(result) == {"blue": fo.Queue("blue")}
    assert any("ResourceQuotas limit namespaces" in note for note in result.notes)


# Kueue ---------------------------------------------------------------------------------------------------------------------------

FLAVORS = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: a100}
spec: {nodeLabels: {gpu.model: a100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: v100}
spec: {nodeLabels: {gpu.model: v100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
"""


def cluster_queue(name: str, quotas: dict[str, str], cohort: str = "", more: str = "", kind: str = "ClusterQueue") -> str:
    """Make a ClusterQueue (or a Cohort) with quotas of GPUs: flavor -> nominalQuota and further fields."""
    above = f"{'cohortName' if kind == 'ClusterQueue' else 'parentName'}: {cohort}" if cohort else ""
    flavors = ", ".join(f'{{name: {flavor}, resources: [{{name: "{GPU}", nominalQuota: {text}}}]}}' for flavor, text in quotas.items())
    groups = f'[{{coveredResources: ["{GPU}"], flavors: [{flavors}]}}]' if quotas else "[]"
    head = f"---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: {kind}\nmetadata: {{name: {name}}}\n"
    return head + "spec:\n" + "".join(f"  {line}\n" for line in (above, more, f"resourceGroups: {groups}") if line)


def local_queue(namespace: str, queue: str, name: str = "q", more: str = "") -> str:
    """Make a LocalQueue."""
    head = f"---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
    return f"{head}spec: {{clusterQueue: {queue}{more}}}\n"


def test_quotas_of_flavors_are_quotas_on_their_nodes(folder: Path) -> None:
    """Without a cohort there is nothing to borrow: 3 a100 and 1 v100 are guarantee and limit; c1 has no GPU at all."""
    text = FLAVORS + cluster_queue("team", {"a100": "3", "v100": "1"}) + local_queue("shop", "team", more=", fairSharing: {weight: 500m}")
    result = imported(folder, text, [pod("p", "shop", gpu="1"), pod("q", "shop", gpu="2"), pod("o", "other")])
    assert result.instance.servers == ("a1 +1", "c1", "v1")
    quotas = [fo.Quota(["a1 +1"], {GPU: 3}, {GPU: 3}, name="a100"), fo.Quota(["v1"], {GPU: 1}, {GPU: 1}, name="v100")]
    assert by_name(result) == {
        "team": fo.Queue("team", quotas=quotas),
        "shop": fo.Queue("shop", "team", 0.5),
        "other": fo.Queue("other"),
    }
    assert result.instance.queue_of == ("other", "shop", "shop")
    assert result.instance.users == ("other", f"shop/2 {GPU}", f"shop/1 {GPU}")
    assert result.options == {"guarantees": "surplus"}
    assert "1 pod in no queue of Kueue: in the root, beside its queues" in result.notes
    assert any("what a guarantee means in Kueue: each queue gets its guarantee first" in note for note in result.notes)


def test_a_flavor_that_is_not_listed_is_closed_to_the_queue(folder: Path) -> None:
    """Nothing on v100; a flavor on all nodes with GPUs is an amount of the whole cluster."""
    text = FLAVORS + cluster_queue("team", {"a100": "3"}) + cluster_queue("all", {"any": "10"}) + local_queue("shop", "team")
    queues = by_name(imported(folder, text, [pod("p", "shop", gpu="1")]))
    closed = fo.Quota(["v1"], limit={GPU: 0}, name=f"nodes without a flavor of {GPU}")
    assert queues["team"] == fo.Queue("team", quotas=[fo.Quota(["a1 +1"], {GPU: 3}, {GPU: 3}, name="a100"), closed])
    assert queues["all"] == fo.Queue("all", guarantee={GPU: 10}, limit={GPU: 10})


def test_flavors_on_the_same_nodes_add_up(folder: Path) -> None:
    """Nodes of any alone: 2 of v1; with a100 as well: all nodes, 2 + 3."""
    text = FLAVORS + cluster_queue("team", {"a100": "3", "any": "2"}) + local_queue("shop", "team")
    queue = by_name(imported(folder, text, [pod("p", "shop", gpu="1")]))["team"]
    assert queue == fo.Queue("team", guarantee={GPU: 5}, limit={GPU: 5}, quotas=[fo.Quota(["v1"], {GPU: 2}, {GPU: 2}, name="any")])


def test_cohorts_share_what_their_queues_do_not_use(folder: Path) -> None:
    """a 2 and b 3 in lab, c 1 in the cohort above, which has 1 of its own: 7 in all; a may borrow 1 and keeps 1 of its 2.

    a may have 2 + 1. b may have what lab can lend and borrow: 3 + 1 of a (lending limit) + 1 (borrowing limit). c may have all but what a
    keeps. All of lab: its 5 + 1.
    """
    text = FLAVORS
    text += cluster_queue("top", {"any": "1"}, kind="Cohort")
    text += cluster_queue("lab", {"any": "0, borrowingLimit: 1"}, "top", "fairSharing: {weight: 2}", "Cohort")
    text += cluster_queue("a", {"any": "2, borrowingLimit: 1, lendingLimit: 1"}, "lab")
    text += cluster_queue("b", {"any": "3"}, "lab", 'fairSharing: {weight: "1500m"}')
    text += cluster_queue("c", {"any": "1"}, "top")
    text += local_queue("shop", "a") + local_queue("ml", "b") + local_queue("web", "c")
    result = imported(folder, text, [pod("p", "shop", gpu="1"), pod("q", "ml", gpu="1"), pod("r", "web", gpu="1")])
    queues = by_name(result)
    assert queues["top"] == fo.Queue("top", guarantee={GPU: 7}, limit={GPU: 7})
    assert queues["lab"] == fo.Queue("lab", "top", 2, {GPU: 5}, {GPU: 6})
    assert queues["a"] == fo.Queue("a", "lab", guarantee={GPU: 2}, limit={GPU: 3}, lending_limit={GPU: 1})
    assert queues["b"] == fo.Queue("b", "lab", 1.5, {GPU: 3}, {GPU: 5})
    assert queues["c"] == fo.Queue("c", "top", guarantee={GPU: 1}, limit={GPU: 6})
    assert [queue.name for queue in result.instance.queues] == ["top", "c", "web", "lab", "a", "shop", "b", "ml"]
    assert any("what queues of lab and top keep by lending limits counts in the capacity of the nodes" in note for note in result.notes)


def test_lending_limits_of_a_cohort_add_up(folder: Path) -> None:
    """Of 10 GPUs a keeps 3 and b 2, and each asks for 1: c and d, with quotas of 1, have the other 5 together. Nothing is relaxed."""
    text = FLAVORS + cluster_queue("a", {"any": "5, lendingLimit: 2"}, "lab") + cluster_queue("b", {"any": "3, lendingLimit: 1"}, "lab")
    text += cluster_queue("c", {"any": "1"}, "lab") + cluster_queue("d", {"any": "1"}, "lab")
    text += "".join(local_queue(f"in-{name}", name) for name in "abcd")
    pods = [pod(f"{name}{k}", f"in-{name}", gpu="1") for name, number in zip("abcd", (1, 1, 9, 9), strict=True) for k in range(number)]
    result = imported(folder, text, pods)
    assert not any("lending limits" in note for note in result.notes)
    held = fo.solve(result.instance, "drfh").tasks_per_user
    assert dict(zip(result.instance.users, held.round(9).tolist(), strict=True)) == {"in-a": 1, "in-b": 1, "in-c": 2.5, "in-d": 2.5}


def test_a_cohort_that_nobody_describes_exists(folder: Path) -> None:
    """As in Kueue; v1beta1 says cohort. Its name may be that of a ClusterQueue, or of a namespace."""
    text = (
        FLAVORS
        + cluster_queue("lab", {"any": "2"}, more="cohort: lab")
        + cluster_queue("b", {"any": "3"}, "lab")
        + local_queue("lab", "lab")
    )
    queues = by_name(imported(folder, text, [pod("p", "lab", gpu="1")]))
    assert queues == {
        "lab (cohort)": fo.Queue("lab (cohort)", guarantee={GPU: 5}, limit={GPU: 5}),
        "lab": fo.Queue("lab", "lab (cohort)", guarantee={GPU: 2}),
        "b": fo.Queue("b", "lab (cohort)", guarantee={GPU: 3}),
        "lab/lab": fo.Queue("lab/lab", "lab"),
    }


def test_pods_name_their_local_queue(folder: Path) -> None:
    """A namespace with two LocalQueues is a queue in both ClusterQueues; without a label: the one called default, or nowhere."""
    text = FLAVORS + cluster_queue("x", {"any": "2"}) + cluster_queue("y", {"any": "3"})
    text += (
        local_queue("shop", "x", "fast") + local_queue("shop", "y", "default") + local_queue("ml", "x", "r") + local_queue("ml", "y", "s")
    )
    mark = {"kueue.x-k8s.io/queue-name": "fast"}
    result = imported(folder, text, [pod("p", "shop", mark, gpu="1"), pod("q", "shop", gpu="2"), pod("r", "ml", gpu="1")])
    assert dict(zip(result.instance.users, result.instance.queue_of, strict=True)) == {"x/shop": "x/shop", "y/shop": "y/shop", "ml": "ml"}
    assert by_name(result)["ml"].parent is None
    assert result.queues == {"ml": ("ml",), "shop": ("x/shop", "y/shop")}
    assert result.owners == ("ml", "shop", "shop")
    assert any("name none of its LocalQueues" in note for note in result.notes)


# Volcano -------------------------------------------------------------------------------------------------------------------------


def volcano(name: str, spec: str, metadata: str = "") -> str:
    """Make a queue of Volcano."""
    return f"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {name}{metadata}}}\nspec: {spec}\n"


MARK = "scheduling.volcano.sh/queue-name"


def test_pods_that_ask_for_what_no_quota_covers(folder: Path) -> None:
    """Kueue admits none of them, unless it is configured to: a note names the resource; what runs has been admitted."""
    text = FLAVORS + cluster_queue("team", {"any": "3"}) + local_queue("shop", "team")
    pods = [pod("p", "shop", gpu="1"), pod("q", "shop", gpu="1", memory="1Gi"), pod("r", "shop", memory="1Gi")]
    pods[2]["spec"]["nodeName"] = "a1"
    pods[2]["status"]["phase"] = "Running"
    told = [note.partition(", of which there is no quota: Kueue admits none")[0] for note in imported(folder, text, pods).notes]
    assert "2 pods wait in team and ask for cpu" in told
    assert "1 pod waits in team and asks for memory" in told
    assert not any("ask for pods" in note or "nvidia" in note for note in told)


def test_guarantees_above_limits_are_cut(folder: Path) -> None:
    """Volcano cuts what is deserved to the capability, and no quota of ElasticQuotas is exceeded: of 40 cores 4 and no more."""
    pods = [pod(f"{name}{n}", name, {MARK: name}) for name in ("a", "b") for n in range(40)]
    text = volcano("a", "{deserved: {cpu: 8}, capability: {cpu: 4}}") + volcano("b", "{deserved: {cpu: 4}}")
    quota = "---\napiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {name: q, namespace: a}\n"
    for queues in (text, quota + "spec: {min: {cpu: 8}, max: {cpu: 4}}\n"):
        found = imported(folder, queues, pods)
        tasks = dict(zip(found.owners, fo.solve(found.instance, found.notion).tasks_per_user, strict=True))
        assert tasks == pytest.approx({"a": 4, "b": 36})
        assert any("is guaranteed more than its limit: here its guarantee is its limit" in note for note in found.notes)


def test_pods_of_volcano_in_queues_above_others(folder: Path) -> None:
    """The capacity plugin starts pods only in queues without queues in them."""
    text = volcano("p", "{deserved: {cpu: 4}}") + volcano("a", "{parent: p, deserved: {cpu: 3}}")
    notes = imported(folder, text, [pod("x", "lab", {MARK: "p"}), pod("y", "lab", {MARK: "a"})]).notes
    assert any(note.startswith("1 pod waits in p, with queues in it") for note in notes)


def test_volcano_queues_with_weights(folder: Path) -> None:
    """The proportion plugin: a reservation is the least that a queue gets, and is not lent."""
    text = volcano("root", "{weight: 1}") + volcano("a", "{weight: 3, capability: {cpu: 8}, guarantee: {resource: {cpu: 2, memory: 4Gi}}}")
    text += volcano("b", "{parent: a, priority: 5}") + volcano("default", "{parent: root}")
    result = imported(folder, text, [pod("p", "shop", {MARK: "b"}), pod("q", "ml", scheduler="volcano"), pod("r", "web")])
    reserved = {"cpu": 2, "memory": 4}
    assert by_name(result) == {
        "a": fo.Queue("a", None, 3, reserved, {"cpu": 8}, dict.fromkeys(reserved, 0.0)),
        "b": fo.Queue("b", "a", tier=5),
        "shop": fo.Queue("shop", "b"),
        "default": fo.Queue("default"),
        "ml": fo.Queue("ml", "default"),
        "web": fo.Queue("web"),
    }
    assert result.options == {"guarantees": "clamp"}


def test_what_volcano_reserves_adds_up(folder: Path) -> None:
    """Of 40 cores 10 and 15 are reserved, and each of the two queues uses one: the third has the other 15."""
    text = volcano("a", "{weight: 1, guarantee: {resource: {cpu: 10}}}") + volcano("b", "{weight: 1, guarantee: {resource: {cpu: 15}}}")
    text += volcano("c", "{weight: 1}")
    pods = [pod(f"{name}{k}", f"in-{name}", {MARK: name}) for name, number in zip("abc", (1, 1, 50), strict=True) for k in range(number)]
    result = imported(folder, text, pods)
    assert result.instance.total_capacity[result.instance.resources.index("cpu")] == 40
    held = fo.solve(result.instance, "drfh", **result.options).tasks_per_user
    assert dict(zip(result.instance.users, held.round(9).tolist(), strict=True)) == {"in-a": 1, "in-b": 1, "in-c": 15}


SCHEDULER = """---
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate, backfill"
    tiers:
    - plugins: [{name: priority}, {name: gang}]
    - plugins: [{name: drf}, {name: PLUGIN}]
"""


@pytest.mark.parametrize(("plugin", "cores"), [("proportion", [10, 30]), ("capacity", [28, 12]), ("", [28, 12])])
def test_which_plugin_of_volcano_divides_the_cluster(folder: Path, plugin: str, cores: list[float]) -> None:
    """Of 40 cores a deserves 28 and b 12, with weights 1 and 3: the configuration says what counts, and a note what was taken."""
    text = volcano("a", "{weight: 1, deserved: {cpu: 28}}") + volcano("b", "{weight: 3, deserved: {cpu: 12}}")
    text += SCHEDULER.replace("PLUGIN", plugin) if plugin else ""
    pods = [pod(f"{name}{n}", name, {MARK: name}) for name in "ab" for n in range(40)]
    found = imported(folder, text, pods)
    assert fo.solve(found.instance, found.notion).tasks_per_user == pytest.approx(cores)
    said = {
        "proportion": "states what it deserves, which Volcano's proportion plugin ignores",
        "capacity": "queues have different weights, which Volcano's capacity plugin ignores",
        "": "its proportion plugin, the default, ignores that",
    }[plugin]
    assert any(said.replace("states what it deserves", "") in note for note in found.notes)
    assert not any(each.what == "object" for each in found.left_out)


def test_queues_of_volcano_that_start_nothing_or_stop_nothing(folder: Path) -> None:
    """A closed queue starts nothing; weight 0 deserves nothing; 0 CPUs of capability are no limit; reclaimable: false is said."""
    text = volcano("shut", "{weight: 1}").replace("spec:", "status: {state: Closed}\nspec:") + volcano("none", "{weight: 0}")
    text += volcano("open", '{reclaimable: false, capability: {cpu: "0", memory: 4Gi}}')
    pods = [pod(f"{name}{n}", name, {MARK: name}) for name in ("shut", "none", "open") for n in range(9)]
    found = imported(folder, text, pods)
    assert dict(zip(found.owners, fo.solve(found.instance, "drfh").tasks_per_user, strict=True)) == pytest.approx({"none": 0, "open": 9})
    assert {each.why: each.number for each in found.left_out} == {"its queue is not open (state Closed): nothing starts": 1}
    assert sum(each.number for each in found.left_out) == 9
    assert dict(by_name(found)["open"].limit) == {"memory": 4}
    assert any(note.startswith('"none" has the weight 0') for note in found.notes)
    assert any(note.startswith('"open" is not reclaimable') for note in found.notes)


def test_volcano_starts_nothing_where_children_deserve_more(folder: Path) -> None:
    """Its capacity plugin refuses such a tree as a whole, which the note says."""
    text = volcano("p", "{deserved: {cpu: 4}}") + "".join(volcano(name, "{parent: p, deserved: {cpu: 3}}") for name in "ab")
    notes = imported(folder, text, [pod("x", "lab", {MARK: "a"})]).notes
    assert any("p: children's guarantees exceed the parent's. Volcano's capacity plugin starts nothing" in note for note in notes)


def test_volcano_queues_with_what_they_deserve(folder: Path) -> None:
    """The capacity plugin: of 40 cores a deserves 8, b 4, of which 1 is reserved; c, with nothing, has hardly any weight."""
    text = volcano("a", "{weight: 1, deserved: {cpu: 8}}") + volcano("b", "{deserved: {cpu: 4}, guarantee: {resource: {cpu: 1}}}")
    text += volcano("c", "{}")
    result = imported(folder, text, [pod(name, f"in-{name}", {MARK: name}) for name in "abc"])
    queues = by_name(result)
    assert queues["a"] == fo.Queue("a", None, 0.2, {"cpu": 8})
    assert queues["b"] == fo.Queue("b", None, 0.1, {"cpu": 4}, lending_limit={"cpu": 3})
    assert queues["c"] == fo.Queue("c", None, 0.0001)
    assert result.options == {"guarantees": "surplus"}
    assert any("Volcano's capacity plugin" in note for note in result.notes)


def test_a_parent_that_says_nothing_deserves_what_its_children_do(folder: Path) -> None:
    """4 + 8 of 40 cores."""
    text = volcano("top", "{}") + volcano("a", "{parent: top, deserved: {cpu: 4}}") + volcano("b", "{parent: top, deserved: {cpu: 8}}")
    assert by_name(imported(folder, text, [pod("p", "shop", {MARK: "a"})]))["top"].weight == pytest.approx(0.3)


@pytest.mark.parametrize(("cores", "options"), [(9999, {"guarantees": "surplus", "only": GPU}), (40, {"guarantees": "surplus"})])
def test_of_what_every_quota_exceeds_nobody_borrows(folder: Path, cores: int, options: dict[str, str]) -> None:
    """40 cores and 10 GPUs: quotas of 9999 cores are no limit, so only GPUs count; quotas of all 40 are quotas."""
    head = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {{name: {}}}\n"
    amounts = f'[{{name: cpu, nominalQuota: {cores}}}, {{name: "{GPU}", nominalQuota: 3}}]'
    group = f'{{coveredResources: [cpu, "{GPU}"], flavors: [{{name: any, resources: {amounts}}}]}}'
    spec = f"spec: {{cohortName: c, resourceGroups: [{group}]}}\n"
    text = FLAVORS + "".join(head.format(name) + spec + local_queue(f"of-{name}", name) for name in "ab")
    result = imported(folder, text, [pod("p", "of-a", gpu="1"), pod("q", "of-b", gpu="1")])
    assert result.options == options


# KAI -----------------------------------------------------------------------------------------------------------------------------


def kai(name: str, resources: str, more: str = "") -> str:
    """Make a queue of KAI."""
    return f"---\napiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{{more}resources: {{{resources}}}}}\n"


def test_kai_queues(folder: Path) -> None:
    """Thousandths of cores, 10^6 bytes; -1 is no limit, and an unset limit is 0. 10 GPUs, 40 cores, 64 GiB.

    A quota of -1 that nobody stands beside guarantees nothing; what is lent of a quota is at most the guarantee.
    """
    text = kai("top", "gpu: {quota: -1, limit: -1, overQuotaWeight: 1}, cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}")
    a = "gpu: {quota: 2.5, limit: 4, overQuotaWeight: 3, lendingLimit: 1}, cpu: {quota: 1500, limit: 3000, overQuotaWeight: 3}, "
    text += kai("a", a + "memory: {quota: 2000, limit: -1, overQuotaWeight: 3}", "parentQueue: top, priority: 120, ")
    text += kai("b", "gpu: {quota: 9, limit: 8, overQuotaWeight: 1}, cpu: {quota: 0, limit: -1}", "parentQueue: top, ")
    pods = [pod("p", "shop", {"kai.scheduler/queue": "a"}, gpu="1"), pod("q", "ml", {"runai/queue": "b"}, gpu="1")]
    result = imported(folder, text, pods)
    megabytes = 2000e6 / 2**30
    assert by_name(result) == {
        "top": fo.Queue("top", order="listed"),
        "a": fo.Queue("a", "top", 3, {GPU: 2.5, "cpu": 1.5, "memory": megabytes}, {GPU: 4, "cpu": 3}, {GPU: 1}),
        "shop": fo.Queue("shop", "a"),
        "b": fo.Queue("b", "top", 1, {GPU: 8, "cpu": 0, "memory": 0}, {GPU: 8, "memory": 0}),
        "ml": fo.Queue("ml", "b"),
    }
    assert result.options == {"guarantees": "surplus"}
    assert result.notion == "drfh:guarantees=surplus"
    texts = [
        '"b" has a limit that is less than its quota of nvidia.com/gpu',
        "has different weights over quota for its resources: here it has that of GPUs",
        "the limit of memory is 0 or unset in 1 queue (b): KAI starts nothing there that asks for it; -1 is no limit",
    ]
    for text in texts:
        assert any(text in note for note in result.notes), text


_OPEN = "cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}"


def of_gpus(name: str, quota: float, parent: str = "", limit: str = ", limit: -1") -> str:
    """Make a queue of KAI that divides GPUs alone."""
    above = f"parentQueue: {parent}, " if parent else ""
    return kai(name, f"gpu: {{quota: {quota:g}{limit}, overQuotaWeight: 1}}, {_OPEN}", above)


def test_a_quota_of_kai_holds_within_what_the_queue_above_gets(tmp_path: Path) -> None:
    """8 GPUs. Of the 8 of "top" a is guaranteed a million, and "rest" nothing, so b and c in it are guaranteed nothing: a gets all.

    With quotas of 4 and 8 in a queue of 6: 4 and 6 within it, 10 together, so 2.4 and 3.6.
    """
    write(tmp_path, nodes=[node("n", 8)])
    pods = [pod(f"{queue}{number}", f"in-{queue}", {"kai.scheduler/queue": queue}, gpu="1") for queue in "abc" for number in range(9)]
    text = of_gpus("top", 8) + of_gpus("a", 1e6, "top") + of_gpus("rest", 0, "top") + of_gpus("b", 2, "rest") + of_gpus("c", 2, "rest")
    result = imported(tmp_path, text, pods)
    assert {name: queue.guarantee.get(GPU, 0) for name, queue in by_name(result).items() if queue.parent != name and "in-" not in name} == {
        "top": 8,
        "a": 8,
        "rest": 0,
        "b": 0,
        "c": 0,
    }
    solved = fo.solve(result.instance, result.notion)
    assert dict(zip(result.owners, solved.tasks_per_user, strict=True)) == pytest.approx({"in-a": 8, "in-b": 0, "in-c": 0})
    assert sum("are cut: a 1,000,000 to 8, b 2 to 0 and c 2 to 0" in note for note in result.notes) == 1

    text = of_gpus("top", 6) + of_gpus("a", 4, "top") + of_gpus("b", 8, "top") + of_gpus("c", 0)
    result = imported(tmp_path, text, pods)
    assert {name: by_name(result)[name].guarantee.get(GPU) for name in ("a", "b")} == pytest.approx({"a": 2.4, "b": 3.6})

    text = of_gpus("top", 6, limit=", limit: 4") + of_gpus("a", 3, "top") + of_gpus("b", 3, "top") + of_gpus("c", 0)
    result = imported(tmp_path, text, pods)  # no more than the limit of the queue above: 2 and 2
    assert {name: by_name(result)[name].guarantee.get(GPU) for name in ("top", "a", "b")} == {"top": 4, "a": 2, "b": 2}
    assert dict(zip(result.owners, fo.solve(result.instance, result.notion).tasks_per_user, strict=True)) == pytest.approx(
        {"in-a": 2, "in-b": 2, "in-c": 4}
    )


def test_of_what_kai_limits_to_0_nothing_starts(tmp_path: Path) -> None:
    """8 GPUs, quotas of 2 and 2; a says no limit: 0, and 8 for b."""
    write(tmp_path, nodes=[node("n", 8)])
    pods = [pod(f"{queue}{number}", f"in-{queue}", {"kai.scheduler/queue": queue}, gpu="1") for queue in "ab" for number in range(9)]
    result = imported(tmp_path, of_gpus("a", 2, limit="") + of_gpus("b", 2), pods)
    assert fo.solve(result.instance, result.notion).tasks_per_user == pytest.approx([0, 8])


def test_where_quotas_of_other_resources_are_unlimited_gpus_count_alone(tmp_path: Path) -> None:
    """8 GPUs and 10 cores. Pods of a take 2 cores and a GPU, those of b half a core: KAI gives 4 and 4, where cores count a has less."""
    write(tmp_path, nodes=[node("n", 8)])
    pods = [pod(f"{queue}{number}", f"in-{queue}", {"kai.scheduler/queue": queue}, gpu="1") for queue in "ab" for number in range(9)]
    for each in pods:
        cores = "2" if each["metadata"]["namespace"] == "in-a" else "500m"
        each["spec"]["containers"] = [{"resources": {"requests": {GPU: "1", "cpu": cores}}}]
    result = imported(tmp_path, of_gpus("a", 1) + of_gpus("b", 1), pods)
    assert result.options == {"guarantees": "surplus", "only": GPU}
    assert result.notion == f"drfh:guarantees=surplus:only={GPU}"
    assert result.to_dict()["notion"] == result.notion
    assert fo.solve(result.instance, result.notion).tasks_per_user == pytest.approx([4, 4])
    assert fo.solve(result.instance, "drfh:guarantees=surplus").tasks_per_user[0] < 3.9
    assert sum("only nvidia.com/gpu counts, as the quotas of other resources are unlimited" in note for note in result.notes) == 1


@pytest.mark.parametrize(
    ("weights", "tasks"),  # 8 GPUs for 9 pods each; a asks for 3 only
    [
        ((1, 1, 0), (3, 5, 0)),  # c is last: 3 for a, 5 for b
        ((1, 0, 0), (3, 2.5, 2.5)),  # b and c divide what a leaves
        ((0, 0, 0), (8 / 3, 8 / 3, 8 / 3)),  # nobody has a weight
    ],
)
def test_weight_0_of_kai_is_last(tmp_path: Path, weights: tuple[int, ...], tasks: tuple[float, ...]) -> None:
    """It has no share of its own, and starts what there is room for after the queues beside it."""
    write(tmp_path, nodes=[node("n", 8)])
    text = "".join(
        kai(name, f"gpu: {{quota: 0, limit: -1, overQuotaWeight: {weight}}}, {_OPEN}") for name, weight in zip("abc", weights, strict=True)
    )
    pods = [
        pod(f"{queue}{k}", f"in-{queue}", {"kai.scheduler/queue": queue}, gpu="1")
        for queue in "abc"
        for k in range(3 if queue == "a" else 9)
    ]
    result = imported(tmp_path, text, pods)
    found = fo.solve(result.instance, "drfh", **{**result.options, "only": GPU})
    assert result.owners == ("in-a", "in-b", "in-c")
    assert found.tasks_per_user == pytest.approx(tasks)


def test_a_queue_that_asks_for_no_gpu_has_its_weight_of_cpus(folder: Path) -> None:
    """KAI divides each resource by itself: of 40 cores, 3 to 1; c has the GPUs. Pods in a queue with queues in it do not start."""
    text = kai(
        "top",
        "gpu: {quota: 0, limit: -1, overQuotaWeight: 1}, cpu: {quota: 0, limit: -1, overQuotaWeight: 1}, memory: {quota: -1, limit: -1}",
    )
    for name, weight in (("a", 3), ("b", 1), ("c", 1)):
        share = f"gpu: {{quota: 0, limit: -1, overQuotaWeight: 1}}, cpu: {{quota: 0, limit: -1, overQuotaWeight: {weight}}}"
        text += kai(name, f"{share}, memory: {{quota: -1, limit: -1}}", "parentQueue: top, ")
    pods = [pod(f"{name}{n}", f"in-{name}", {"kai.scheduler/queue": name}) for name in "ab" for n in range(40)]
    pods += [pod(f"c{n}", "in-c", {"kai.scheduler/queue": "c"}, gpu="1", cpu="0") for n in range(20)]
    result = imported(folder, text, [*pods, pod("t", "above", {"kai.scheduler/queue": "top"}, cpu="0", gpu="9")])
    found = dict(zip(result.owners, fo.solve(result.instance, result.notion).tasks_per_user, strict=True))
    assert (found["in-a"], found["in-b"]) == pytest.approx((30, 10))
    assert '"a" has different weights over quota for its resources: here it has that of CPUs' in result.notes
    assert "1 pod waits in top, with queues in it: KAI starts pods only in queues without any" in result.notes


def test_what_holds_of_many_queues_is_said_once(folder: Path) -> None:
    """Ten queues with weights that differ by resource, an unset limit and a quota of -1: a sentence each, with how many, and no more."""
    unlike = "gpu: {quota: 1, limit: -1, overQuotaWeight: 2}, cpu: {quota: 0, limit: -1}, memory: {quota: -1}"
    text = "".join(kai(f"q{k}", unlike) for k in range(10))
    result = imported(folder, text, [pod("p", "shop", {"kai.scheduler/queue": "q1"}, gpu="1")])
    assert [note.partition(" (")[0] for note in result.notes if "q1" in note or "q0" in note][:2] == [
        "the limit of memory is 0 or unset in 10 queues",
        "each of 10 queues",
    ]
    assert sum("different weights" in note for note in result.notes) == 1
    assert not any("guarantees of cpu" in note or "guarantees of memory" in note for note in result.notes)


def test_priorities_of_kai_are_compared_among_siblings(folder: Path) -> None:
    """Siblings of different priorities stand in this order, and their queue serves one after the other: it says nothing about others.

    In the root, and where siblings have the same priority and others do not, priorities are tiers; the note names the parent.
    """
    text = kai("a", "", "priority: 150, ") + kai("b", "") + kai("a1", "", "parentQueue: a, priority: 50, ")
    text += kai("b1", "", "parentQueue: b, priority: 70, ") + kai("b2", "", "parentQueue: b, priority: 90, ")
    text += kai("c", "", "priority: 80, ") + "".join(kai(f"c{p}", "", f"parentQueue: c, priority: {p}, ") for p in (90, 100, 120))
    text += kai("d", "") + "".join(kai(f"d{p}", "", f"parentQueue: d, priority: {p // 2}, ") for p in (180, 240, 241))
    result = imported(folder, text, [pod("p", "shop", {"kai.scheduler/queue": "a1"}, gpu="1")])
    tiers = {queue.name: queue.tier for queue in result.instance.queues if queue.name != "shop"}
    assert {name: tier for name, tier in tiers.items() if tier} == {"a": 50, "c": -20, "d180": -10, "d240": 20, "d241": 20}
    tree = result.instance.tree
    assert [int(tree.tiers[tree.index(name)]) for name in ("a1", "c90", "d180")] == [50, -20, -10]
    assert {queue.name for queue in result.instance.queues if queue.order == "listed"} == {"b", "c"}
    assert [queue.name for queue in result.instance.queues if queue.parent in ("b", "c")] == ["b2", "b1", "c120", "c100", "c90"]
    assert any("so the children of d also come before or after queues elsewhere" in note for note in result.notes)


def test_a_kai_queue_without_resources_gets_nothing(folder: Path) -> None:
    """All is 0, limits, too. Pods of the scheduler that name no queue are in the default queue."""
    result = imported(folder, kai("default-queue", ""), [pod("p", "shop", scheduler="kai-scheduler", gpu="1")])
    assert by_name(result)["default-queue"] == fo.Queue("default-queue", limit={GPU: 0, "cpu": 0, "memory": 0})
    assert by_name(result)["shop"].parent == "default-queue"


# Whatever the scheduler ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (kai("a", "gpu: {quota: x}"), r'queues.yaml, line 2, Queue "a": spec.resources.gpu.quota: expected a number'),
        (kai("a", "gpu: {quota: -2}"), r"spec.resources.gpu.quota: expected a number >= 0"),
        (kai("a", "", "parentQueue: b, ") + kai("c", ""), r'Queue "a": its parent "b" is not there; there are a and c; export all queues'),
        (
            kai("a", "", "parentQueue: b, ") + kai("b", "", "parentQueue: a, "),
            r'Queue "a": the parents of queues go round in a circle: a -> b',
        ),
        (kai("a", "") + kai("a", ""), r'line 7, Queue "a": "a" is listed twice, first at .*line 2, Queue "a"; list it once'),
        (kai("a", "") + volcano("b", "{}"), r'Queue "a": this is a queue of KAI, and there are queues of Volcano; .* of one scheduler'),
        (volcano("a", "{capability: {cpu: 1x}}"), r'spec.capability.cpu: "1x" has an unknown unit'),
        (
            volcano("a", "{}", ", annotations: {volcano.sh/hierarchy: root/x/a, volcano.sh/hierarchy-weights: 1/2}"),
            r"a weight > 0 for each part",
        ),
        (
            volcano("a", "{}", ", annotations: {volcano.sh/hierarchy: root/x/a}") + volcano("x", "{}"),
            r'Queue "a": its hierarchy goes through "x", which is the name of a queue itself; rename one',
        ),
        (cluster_queue("a", {"spot": "1"}), r'ClusterQueue "a": the queue "a" has quotas of the ResourceFlavor "spot", which is not there'),
        (local_queue("shop", "a"), r'LocalQueue "shop/q": there is no ClusterQueue "a"; export the ClusterQueues too'),
        (cluster_queue("a", {"spot": "-1"}), r'nominalQuota: "-1" is negative'),
        ("kind: Job\nmetadata: {name: x}\n", r"there is no queue and no ResourceQuota, but Job; export them: kubectl get"),
        ("metadata: {name: x}\n", r"queues.yaml, line 1: kind: this field is missing"),
        ("- a\n- b\n", r"queues.yaml, line 1: expected an object of Kubernetes"),
        ("kind: Queue\nmetadata: {name: a\n", r"queues.yaml, line 3: not valid YAML"),
        ("# nothing\n---\n", r"there is no queue and no ResourceQuota, but nothing"),
        ("# x\npartitions: [{name: default}]\n", r"queues.yaml, line 2: partitions\[0\].queues: this field is missing"),
        ("", r"queues.yaml: the file is empty"),
    ],
)
def test_what_cannot_be_read_is_refused(folder: Path, text: str, message: str) -> None:
    """With the file, the line, the queue, and what to do."""
    with pytest.raises(fo.InvalidInstance, match=message):
        imported(folder, text, [pod("p", "shop")])


def test_documents_that_are_no_queues_are_counted(folder: Path) -> None:
    """A file of all that an administrator applies; lines count from its start."""
    text = volcano("a", "{}") + "---\n# a service\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: y}\n"
    result = imported(folder, text, [pod("p", "shop")])
    assert [(each.what, each.where.rpartition("/")[2]) for each in result.left_out] == [("object", 'x"')]
    assert "line 8, Deployment" in result.left_out[0].where


def test_json_lists_as_kubectl_writes_them(folder: Path) -> None:
    """The same queues as from YAML."""
    write(folder, pods=[pod("p", "shop", {MARK: "a"})])
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "a"}, "spec": {"weight": 4}}
    write(folder, queues=[queue])
    result = fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=[folder / "queues.json"])
    assert by_name(result) == {"a": fo.Queue("a", None, 4), "shop": fo.Queue("shop", "a")}


def test_the_order_of_the_queues_does_not_matter(folder: Path) -> None:
    """Documents backwards."""
    documents = [
        FLAVORS,
        cluster_queue("x", {"any": "2", "a100": "1"}, "lab"),
        cluster_queue("y", {"v100": "1"}, "lab"),
        local_queue("s", "x"),
    ]
    pods = [pod("p", "s", gpu="1"), pod("q", "t")]
    one = imported(folder, "\n---\n".join(documents), pods)
    other = imported(folder, "\n---\n".join(documents[::-1]), pods[::-1])
    assert one.instance == other.instance


# Samples of the projects ---------------------------------------------------------------------------------------------------------


@needs("queues")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "kueue/example_single-clusterqueue-setup.yaml",
            [fo.Queue("cluster-queue", guarantee={"cpu": 9, "memory": 36}, limit={"cpu": 9, "memory": 36})],
        ),
        (
            "kueue/example_concurrent-admission-setup.yaml",  # three flavors without labels: 4 + 8 + 16 cores, 16 + 32 + 64 GiB
            [fo.Queue("team-cluster-queue", guarantee={"cpu": 28, "memory": 112}, limit={"cpu": 28, "memory": 112})],
        ),
        ("kueue/example_minimal-cq.yaml", [fo.Queue("cluster-queue-2")]),
        (
            "kai/example_limited-queue.yaml",  # -1 of all: nobody comes before the others
            [
                fo.Queue("default"),
                fo.Queue("test", "default", guarantee={GPU: 1}, limit={GPU: 1}),
            ],
        ),
        ("kai/example_default-queues.yaml", [fo.Queue("default-parent-queue"), fo.Queue("default-queue", "default-parent-queue")]),
        (
            "kai/example_two-queue-oscillation-queues.yaml",
            [fo.Queue("training-department"), fo.Queue("team-a", "training-department"), fo.Queue("team-b", "training-department")],
        ),
        (
            "volcano/example_hierarchical-queues.yaml",
            [
                *(fo.Queue("eng", weight=2), fo.Queue("root-eng-dev", "eng", 2), fo.Queue("root-eng-prod", "eng", 8)),
                *(fo.Queue("sci", weight=8), fo.Queue("root-sci-dev", "sci", 2), fo.Queue("root-sci-prod", "sci", 8)),
            ],
        ),
    ],
)
def test_samples(folder: Path, name: str, expected: list[fo.Queue]) -> None:
    """What the projects ship, beside a pod that is in none of it."""
    write(folder, pods=[pod("p", "elsewhere", gpu="1")])
    result = fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=SAMPLES / name)
    assert [queue for queue in result.instance.queues if queue.name != "elsewhere"] == expected


@needs("queues")
def test_the_sample_with_credits(folder: Path) -> None:
    """On nodes with its labels: 9 cores of each kind, nothing elsewhere; credits are no resource of the nodes."""
    write(folder, nodes=[node("o1", labels={"node-type": "on-demand"}), node("s1", labels={"node-type": "spot"}), node("c1")])
    write(folder, pods=[pod("p", "default")])
    path = SAMPLES / "kueue" / "example_shared-quota-setup.yaml"
    result = fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=path)
    quotas = [fo.Quota(["o1"], {"cpu": 9}, {"cpu": 9}, name="on-demand"), fo.Quota(["s1"], {"cpu": 9}, {"cpu": 9}, name="spot")]
    closed = fo.Quota(["c1"], limit={"cpu": 0}, name="nodes without a flavor of cpu")
    assert result.instance.queues == (fo.Queue("team-cluster-queue", quotas=[*quotas, closed]), fo.Queue("default", "team-cluster-queue"))
    assert "quotas of cpu_credits are left out: no node has it" in result.notes


@needs("queues")
@pytest.mark.parametrize("folder_name", ["kueue", "volcano", "kai"])
def test_schemas_are_no_queues(folder: Path, folder_name: str) -> None:
    """A CRD says what a queue may say."""
    write(folder, pods=[pod("p", "shop")])
    for path in sorted((SAMPLES / folder_name).glob("crd_*.yaml")):
        with pytest.raises(fo.InvalidInstance, match="there is no queue and no ResourceQuota, but CustomResourceDefinition"):
            fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=path)


# What comes out ------------------------------------------------------------------------------------------------------------------


def test_an_owner_has_as_much_as_another_whatever_its_kinds_of_task(tmp_path: Path) -> None:
    """x has 2 GPUs, y 20. A has pods for both, B for y, C for x.

    By hand: per unit of time A rises by 1/2 on x and 1/2 on y, B by 1, C by 1. x is full at 3/2 t = 2, so t = 4/3: C ends with 4/3, A has
    2/3 on x. Then A rises on y alone, as fast as B, and y has 20 - 2/3 - 4/3 = 18 left, 9 for each: A and B have 4/3 + 9 = 10.33.
    """
    write(tmp_path, nodes=[node("x", 2, {"at": "x"}), node("y", 20, {"at": "y"})])
    pods = []
    for owner, places in (("a", "xy"), ("b", "y"), ("c", "x")):
        for place in places:
            for number in range(30):
                each = pod(f"{owner}-{place}-{number}", owner, gpu="1")
                each["spec"] |= {"nodeSelector": {"at": place}, "containers": [{"resources": {"requests": {GPU: "1"}}}]}
                pods.append(each)
    write(tmp_path, pods=pods)
    result = fo.import_kubernetes(tmp_path / "nodes.json", tmp_path / "pods.json")
    allocation = fo.solve(result.instance, "drfh")
    got = dict.fromkeys("abc", 0.0)
    for owner, tasks in zip(result.owners, allocation.tasks_per_user, strict=True):
        got[owner] += tasks
    assert got == pytest.approx({"a": 31 / 3, "b": 31 / 3, "c": 4 / 3})


def test_kai_divides_the_surplus_by_weights(tmp_path: Path) -> None:
    """8 GPUs, quotas 2 and 2, weights 1 : 3: 2 + 1 and 2 + 3."""
    write(tmp_path, nodes=[node("n", 8)])
    pods = [pod(f"{queue}{number}", f"in-{queue}", {"kai.scheduler/queue": queue}, gpu="1") for queue in "ab" for number in range(9)]
    for each in pods:
        each["spec"]["containers"] = [{"resources": {"requests": {GPU: "1"}}}]
    unlimited = "cpu: {quota: 0, limit: -1}, memory: {quota: 0, limit: -1}"
    text = kai("a", f"gpu: {{quota: 2, limit: -1, overQuotaWeight: 1}}, {unlimited}")
    text += kai("b", f"gpu: {{quota: 2, limit: -1, overQuotaWeight: 3}}, {unlimited}")
    result = imported(tmp_path, text, pods)
    assert fo.solve(result.instance, "drfh", **result.options).tasks_per_user == pytest.approx([3, 5])


def test_pods_get_the_tolerations_of_the_flavors_of_their_queue(tmp_path: Path) -> None:
    """On nodes of that flavor alone, and only in queues that have it; of two flavors of a resource group a pod may take either."""
    tainted = node("t1", 4, {"gpu.model": "t4"}) | {"spec": {"taints": [{"key": "gpu", "value": "t4", "effect": "NoSchedule"}]}}
    other = node("o1", 4) | {"spec": {"taints": [{"key": "gpu", "value": "t4", "effect": "NoSchedule"}]}}
    write(tmp_path, nodes=[node("a1", 4, {"gpu.model": "a100"}), tainted, other])
    text = """
kind: ResourceFlavor
apiVersion: kueue.x-k8s.io/v1beta2
metadata: {name: a100}
spec: {nodeLabels: {gpu.model: a100}}
---
kind: ResourceFlavor
apiVersion: kueue.x-k8s.io/v1beta2
metadata: {name: t4}
spec: {nodeLabels: {gpu.model: t4}, tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]}
"""
    for name, flavors in (("both", ("a100", "t4")), ("big", ("a100",))):
        listed = ", ".join(f"{{name: {flavor}, resources: [{{name: {GPU}, nominalQuota: 4}}]}}" for flavor in flavors)
        text += f"""---
kind: ClusterQueue
apiVersion: kueue.x-k8s.io/v1beta2
metadata: {{name: {name}}}
spec: {{resourceGroups: [{{coveredResources: [{GPU}], flavors: [{listed}]}}]}}
---
kind: LocalQueue
apiVersion: kueue.x-k8s.io/v1beta2
metadata: {{name: default, namespace: in-{name}}}
spec: {{clusterQueue: {name}}}
"""
    instance = imported(tmp_path, text, [pod("p", "in-both", gpu="1"), pod("q", "in-big", gpu="1")]).instance
    where = {
        user: [name for name, may in zip(instance.servers, row, strict=True) if may]
        for user, row in zip(instance.users, instance.eligibility.tolist(), strict=True)
    }
    assert where == {"in-both": ["a1", "t1"], "in-big": ["a1"]}
