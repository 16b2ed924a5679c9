"""Devices of dynamic resource allocation: claims, templates, classes and slices of all versions, counted by hand and by trying."""

from __future__ import annotations

import copy
import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.test_importing import node, pod

import fairopt as fo

CLASS, RESOURCE, DRIVER = "gpu.example.com", "example.com/gpu", "gpu.example.com"
API = "resource.k8s.io/v1"


def imported(nodes: Sequence[Any], pods: Sequence[Any], objects: Sequence[Any], **options: Any) -> fo.Import:
    """Write nodes, pods and objects, and import them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, items in (("nodes", nodes), ("pods", pods)):
            folder.joinpath(f"{kind}.json").write_text(json.dumps({"kind": "List", "items": items}))
        folder.joinpath("dra.yaml").write_text(yaml.safe_dump_all(objects))
        return fo.import_kubernetes(folder / "nodes.json", folder / "pods.json", queues=folder / "dra.yaml", **options)


def thing(kind: str, name: str, spec: dict[str, Any], space: str = "", api: str = API) -> dict[str, Any]:
    """Make an object."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **({"namespace": space} if space else {})}, "spec": spec}


def device_class(name: str = CLASS, *selectors: str, **spec: Any) -> dict[str, Any]:
    """Make a DeviceClass; without selectors, it has the devices of the driver."""
    expressions = selectors or (f'device.driver == "{DRIVER}"',)
    return thing("DeviceClass", name, {"selectors": [{"cel": {"expression": each}} for each in expressions], **spec})


def devices(on: str, *models: str, generation: int = 1, **spec: Any) -> dict[str, Any]:
    """Make a ResourceSlice with a device of each model."""
    listed = [{"name": f"d{j}", "attributes": {"model": {"string": each}}} for j, each in enumerate(models)]
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    return thing("ResourceSlice", f"{on}-{generation}", {"driver": DRIVER, "nodeName": on, "pool": pool, "devices": listed, **spec})


def model(name: str) -> str:
    """Write the selector of a model."""
    return f'device.attributes["{DRIVER}"].model == "{name}"'


def template(name: str = "one", space: str = "shop", class_name: str = CLASS, *selectors: str, **request: Any) -> dict[str, Any]:
    """Make a ResourceClaimTemplate with one request."""
    exactly = {"deviceClassName": class_name, **({"selectors": [{"cel": {"expression": each}} for each in selectors]} if selectors else {})}
    return thing("ResourceClaimTemplate", name, {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly | request}]}}}, space)


def claiming(name: str, by: str = "one", on: str = "", space: str = "shop", key: str = "resourceClaimTemplateName") -> dict[str, Any]:
    """Make a pod that claims devices."""
    made = pod(name, on=on, resourceClaims=[{"name": "gpu", key: by}])
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    made["metadata"]["namespace"] = space
    return made


def links(*bandwidths: str, shared: bool = True) -> dict[str, Any]:
    """Make a ResourceSlice with a device of each bandwidth, which claims may share."""
    made = devices("n", *bandwidths)
    for device, bandwidth in zip(made["spec"]["devices"], bandwidths, strict=True):
        device |= {"capacity": {"bandwidth": {"value": bandwidth}}} | ({"allowMultipleAllocations": True} if shared else {})
    return made


def configuration(**resources: Sequence[str]) -> dict[str, Any]:
    """Make a configuration of Kueue, which has no metadata."""
    mapping = [{"name": name.replace("_", "/"), "deviceClassNames": list(classes)} for name, classes in resources.items()]
    return {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", "resources": {"deviceClassMappings": mapping}}


def demands(found: fo.Import) -> dict[str, dict[str, float]]:
    """Return what each user asks for of devices."""
    names = [name for name in found.instance.resources if name not in ("cpu", "memory", "pods")]
    columns = [found.instance.resources.index(name) for name in names]
    return {
        user: dict(zip(names, row[columns].tolist(), strict=True))
        for user, row in zip(found.instance.users, found.instance.demands, strict=True)
    }


def capacity(found: fo.Import) -> dict[str, float]:
    """Return the devices of the cluster."""
    total = dict(zip(found.instance.resources, found.instance.total_capacity.tolist(), strict=True))
    return {name: amount for name, amount in total.items() if name not in ("cpu", "memory", "pods")}


def tasks(found: fo.Import) -> float:
    """Return how many pods run in all, whole ones."""
    return float(fo.solve(found.instance, "drfh", integral=True, **found.options).tasks_per_user.sum())


NODES = [node("n", "64", "64Gi")]


# Claims --------------------------------------------------------------------------------------------------------------------------


def test_each_pod_of_a_template_takes_its_devices() -> None:
    """Of 3 devices 2 + 1 are taken; the resource is the class; a template is that of the namespace."""
    objects = [device_class(), devices("n", "a", "a", "a"), template(count=2), template("one", "lab")]
    found = imported(NODES, [claiming("p", on="n"), claiming("q", space="lab", on="n"), claiming("r", space="lab")], objects)
    assert demands(found) == {"shop": {CLASS: 2}, "lab": {CLASS: 1}}
    assert capacity(found) == {CLASS: 3}
    assert found.notes == ()


def test_what_kueue_maps_a_class_to_is_the_resource() -> None:
    """In a file of its own, without metadata; a class that it does not map is named."""
    objects = [device_class(), device_class("other"), devices("n", "a", "a"), template(), template("odd", class_name="other")]
    found = imported(NODES, [claiming("p")], [*objects, configuration(**{"example.com_gpu": [CLASS]})])
    assert demands(found) == {"shop": {RESOURCE: 1}}
    assert capacity(found) == {RESOURCE: 2}
    unmapped = imported(NODES, [claiming("p", "odd")], [*objects, configuration(**{"example.com_gpu": [CLASS]})])
    assert any(
        note == "Kueue's configuration maps no resource to the DeviceClass other: no quota counts its devices" for note in unmapped.notes
    )


def test_kai_counts_classes_of_gpus_as_gpus() -> None:
    """Any class with "gpu" in its name, in the quotas of its queues."""
    quota = {"gpu": {"quota": 2, "limit": 3, "overQuotaWeight": 1}}
    queue = thing("Queue", "shop", {"resources": quota}, api="scheduling.run.ai/v2")
    objects = [device_class(), device_class("nic"), devices("n", *"aaaa"), template(), template("n", class_name="nic")]
    found = imported(NODES, [claiming("p"), claiming("q", "n")], [*objects, queue])
    assert set(capacity(found)) == {"nvidia.com/gpu", "nic"}
    assert found.instance.queues[0].limit["nvidia.com/gpu"] == 3


@pytest.mark.parametrize("key", ["controller_manager_config.yaml", "config.yaml"])
def test_the_configuration_of_kueue_may_be_in_its_config_map(key: str) -> None:
    """As the cluster has it."""
    held = {key: yaml.safe_dump(configuration(**{"example.com_gpu": [CLASS]})), "other.txt": "deviceClassMappings: ["}
    kept = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": held,
    }
    found = imported(NODES, [claiming("p")], [device_class(), devices("n", "a"), template(), kept])
    assert capacity(found) == {RESOURCE: 1}


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1", "v1alpha3"])
def test_all_versions_of_the_api(version: str) -> None:
    """Beta 1 writes devices in "basic" and requests without "exactly"; before 1.31 a pod named its template in "source"."""
    objects = [device_class(), devices("n", "a", "b", "b"), template("one", "shop", CLASS, model("b"))]
    made = claiming("p")
    if version in ("v1beta1", "v1alpha3"):
        objects[1]["spec"]["devices"] = [{"name": each.pop("name"), "basic": each} for each in objects[1]["spec"]["devices"]]
        requests = objects[2]["spec"]["spec"]["devices"]["requests"]
        requests[0] = {"name": "r", **requests[0]["exactly"]}
        made["spec"]["resourceClaims"] = [{"name": "gpu", "source": {"resourceClaimTemplateName": "one"}}]
    for each in objects:
        each["apiVersion"] = f"resource.k8s.io/{version}"
    found = imported(NODES, [made], objects)
    assert capacity(found) == {CLASS: 3, f"{CLASS} [1]": 2}
    assert demands(found) == {"shop": {CLASS: 1, f"{CLASS} [1]": 1}}


def test_pods_share_a_claim_that_they_name() -> None:
    """Two pods take a half of one device each; one that has ended takes none; a claim made for a pod is that of its template."""
    claim = thing("ResourceClaim", "shared", template()["spec"]["spec"], "shop")
    ended = claiming("z", "shared", key="resourceClaimName")
    ended["status"]["phase"] = "Succeeded"
    pods = [claiming("p", "shared", key="resourceClaimName"), claiming("q", "shared", key="resourceClaimName"), ended]
    found = imported(NODES, pods, [device_class(), devices("n", "a"), claim])
    assert demands(found) == {"shop": {CLASS: 0.5}}
    assert any(note.startswith("2 pods share a ResourceClaim: each takes its part") for note in found.notes)
    spec = {"podSets": [{"count": 0.5, "template": {"spec": claiming("w", "shared", key="resourceClaimName")["spec"]}}]}
    waiting = thing("Workload", "w", spec, "shop", "kueue.x-k8s.io/v1beta1")
    assert demands(imported(NODES, pods, [device_class(), devices("n", "a"), claim, waiting])) == {"shop": {CLASS: 0.4}}  # 2.5 users
    assert imported(NODES, [], [device_class(), devices("n", "a"), claim, waiting]).instance.n_users == 1
    made = claiming("m", "lost")
    made["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "shared"}]
    assert demands(imported(NODES, [made], [device_class(), devices("n", "a"), claim])) == {"shop": {CLASS: 1}}


@pytest.mark.parametrize(
    ("made", "objects", "note"),
    [
        (claiming("p", "lost"), [], "1 pod claims devices of a ResourceClaimTemplate that is not given, lost, which do not count"),
        (claiming("p", space="lab"), [], "1 pod claims devices of a ResourceClaimTemplate that is not given, one"),
        (claiming("p", "lost", key="resourceClaimName"), [], "1 pod claims devices of a ResourceClaim that is not given, lost"),
        (claiming("p", "odd"), [template("odd", class_name="lost")], "1 pod claims devices of the DeviceClass lost, which is not given"),
        (
            claiming("p", "odd"),
            [template("odd", adminAccess=True)],
            "1 pod claims devices with administrative access, which takes no device",
        ),
    ],
)
def test_claims_that_do_not_count_are_named(made: dict[str, Any], objects: list[dict[str, Any]], note: str) -> None:
    """With the number of pods."""
    found = imported(NODES, [made], [device_class(), devices("n", "a"), template(), *objects])
    assert capacity(found) == {}
    assert any(each.startswith(note) for each in found.notes), found.notes


def test_claims_without_any_object_of_dra_are_named(tmp_path: Path) -> None:
    """Where only nodes and pods are given."""
    for kind, items in (("nodes", NODES), ("pods", [claiming("p"), claiming("q")])):
        (tmp_path / f"{kind}.json").write_text(json.dumps({"kind": "List", "items": items}))
    found = fo.import_kubernetes(tmp_path / "nodes.json", tmp_path / "pods.json")
    assert any(each.startswith("2 pods claim devices of a ResourceClaimTemplate that is not given") for each in found.notes)


def test_waiting_work_claims_devices_too() -> None:
    """Each pod of a Workload that waits."""
    spec = {"queueName": "q", "podSets": [{"name": "main", "count": 3, "template": {"spec": claiming("p")["spec"]}}]}
    waiting = thing("Workload", "w", spec, "shop", "kueue.x-k8s.io/v1beta2")
    found = imported(NODES, [pod("x", on="n")], [waiting, device_class(), devices("n", "a"), template()])
    assert [(row[CLASS], number) for row, number in zip(demands(found).values(), found.instance.tasks, strict=True) if row[CLASS]] == [
        (1, 3)
    ]


@pytest.mark.parametrize("resource", [RESOURCE, f"deviceclass.resource.kubernetes.io/{CLASS}"])
def test_a_container_asks_for_the_extended_resource_of_a_class(resource: str) -> None:
    """Under the name that the class gives, or under the one that every class has."""
    made = pod("p", containers=[{"resources": {"limits": {resource: "2"}}}])
    found = imported(NODES, [made], [device_class(extendedResourceName=RESOURCE), devices("n", "a", "a", "a")])
    assert demands(found) == {"shop": {RESOURCE: 2}}
    assert capacity(found) == {RESOURCE: 3}


def test_a_request_for_all_devices_of_a_node() -> None:
    """Takes as many as a node has; where nodes differ, as many as the one with the fewest, and a note says so."""
    objects = [device_class(), template(allocationMode="All"), devices("n", "a", "a")]
    assert demands(imported(NODES, [claiming("p")], objects)) == {"shop": {CLASS: 2}}
    found = imported([*NODES, node("m")], [claiming("p")], [*objects, devices("m", "a", "a", "a")])
    assert demands(found) == {"shop": {CLASS: 2}}
    assert any(note.startswith("nodes have 2 to 3 devices of") for note in found.notes)


def test_alternatives_and_constraints_are_named() -> None:
    """The first alternative that a node can offer counts."""
    spec = template("either")
    alternatives: list[dict[str, Any]] = [
        {"name": "big", "deviceClassName": CLASS, "selectors": [{"cel": {"expression": model("h100")}}]},
        {"name": "small", "deviceClassName": CLASS, "count": 2},
    ]
    spec["spec"]["spec"]["devices"] = {
        "requests": [{"name": "r", "firstAvailable": alternatives}],
        "constraints": [{"matchAttribute": f"{DRIVER}/numa"}],
    }
    found = imported(NODES, [claiming("p", "either")], [device_class(), devices("n", "a", "a"), spec])
    assert demands(found) == {"shop": {CLASS: 2}}
    assert any("with alternatives, of which the first counts" in note for note in found.notes)
    assert any("with constraints between their devices" in note for note in found.notes)
    for each in alternatives:
        each["deviceClassName"] = "lost"
    lost = imported(NODES, [claiming("p", "either")], [device_class(), devices("n", "a"), spec])
    assert capacity(lost) == {}
    assert any("of the DeviceClass lost, which is not given" in note for note in lost.notes)


# Devices -------------------------------------------------------------------------------------------------------------------------


def test_devices_that_offer_nothing_are_counted() -> None:
    """Those of an old generation, with a taint, of no single node, of a node that is not listed."""
    old, tainted = devices("n", *"aaaa", generation=1), devices("n", "a", "a", "a", generation=2)
    tainted["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    tainted["spec"]["devices"][1]["taints"] = [{"key": "watched", "effect": "None"}]
    network = devices("net", "a", allNodes=True)
    del network["spec"]["nodeName"]
    found = imported(NODES, [claiming("p")], [device_class(), old, tainted, network, devices("gone", "a", "a"), template()])
    assert capacity(found) == {CLASS: 2}
    assert {
        "1 ResourceSlice left out: of an older generation of its pool",
        "1 device left out: with a taint",
        "1 device left out: of no single node",
        "2 devices left out: of a node that is not listed",
    } <= set(found.notes)


def test_devices_that_nobody_lists_are_named() -> None:
    """A claim of a class without devices can never start."""
    with pytest.raises(fo.InvalidInstance, match="so it can never start"):
        imported(NODES, [claiming("p")], [device_class(), template()])
    found = imported(NODES, [claiming("p"), pod("q")], [device_class(), template()])
    assert f"no ResourceSlice of a node lists a device that claims of the DeviceClass {CLASS} ask for" in found.notes


def test_a_class_of_some_nodes_says_where_its_pods_run() -> None:
    """Two classes are one resource; every node has devices of one of them, so no other resource is needed."""
    classes = [device_class("old", model("v100")), device_class("new", model("h100"))]
    objects = [*classes, configuration(gpus=["old", "new"]), devices("a", "v100", "v100"), devices("b", *["h100"] * 4)]
    objects += [template("o", class_name="old"), template("n", class_name="new", count=4)]
    pods = [*(claiming(f"o{j}", "o") for j in range(5)), claiming("n", "n", space="lab"), template("n", "lab", "new", count=4)]
    found = imported([node("a", "64"), node("b", "64")], pods[:-1], [*objects, pods[-1]])
    assert capacity(found) == {"gpus": 6}
    where = {
        user: [server for server, may in zip(found.instance.servers, row, strict=True) if may]
        for user, row in zip(found.instance.users, found.instance.eligibility, strict=True)
    }
    assert where == {"shop": ["a"], "lab": ["b"]}
    assert tasks(found) == 3


def test_chosen_devices_beside_others_are_a_resource_of_their_own() -> None:
    """A node with 2 small and 1 large GPU: of 3 pods that want the large one, one runs, beside two others."""
    objects = [device_class(), template(), template("big", "shop", CLASS, model("h100")), devices("n", "v100", "v100", "h100")]
    found = imported(NODES, [claiming(f"b{j}", "big") for j in range(3)], objects)
    assert tasks(found) == 1
    both = imported(NODES, [*(claiming(f"b{j}", "big") for j in range(3)), *(claiming(f"s{j}") for j in range(3))], objects)
    assert capacity(both) == {CLASS: 3, f"{CLASS} [1]": 1}
    assert round(fo.solve(both.instance, "efficiency").tasks_per_user.sum(), 6) == 3
    assert any(note.startswith("devices of gpu.example.com with ") and "a resource of their own" in note for note in both.notes)


def test_a_selector_that_is_not_read_is_named() -> None:
    """And what is read of it holds."""
    odd = device_class("odd", f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model.matches("h.*")')
    found = imported(NODES, [claiming("p")], [odd, devices("n", "v100", "h100"), template("one", "shop", "odd")])
    assert capacity(found) == {"odd": 2}
    assert any('model.matches("h.*")' in note and "is not read: a relaxation" in note for note in found.notes)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["v100", "h100", "h200"]), max_size=3), min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(["any", "h", "h200"]), st.integers(1, 3), min_size=1),
)
def test_as_many_pods_run_as_devices_can_be_handed_out(nodes: list[list[str]], wanted: Mapping[str, int]) -> None:
    """Classes that contain each other (any, h100 and h200, h200 alone): the most whole pods are those of trying all ways."""
    classes = {"any": f'device.driver == "{DRIVER}"', "h": f"{model('h100')} || {model('h200')}", "h200": model("h200")}
    objects: list[Any] = [device_class(name, text) for name, text in classes.items()]
    objects += [template(name, "shop", name) for name in classes]
    objects += [devices(f"n{j}", *models) for j, models in enumerate(nodes)] + [configuration(gpus=list(classes))]
    pods = [*(claiming(f"{name}-{j}", name) for name, number in wanted.items() for j in range(number)), pod("plain")]
    found = imported([node(f"n{j}", "64") for j in range(len(nodes))], pods, objects)
    answer = fo.solve(found.instance, "efficiency", integral=True)
    takes = [name for name, number in wanted.items() for _ in range(number)]
    assert round(answer.tasks_per_user.sum()) == handed_out(takes, [each for models in nodes for each in models]) + 1


def handed_out(takes: Sequence[str], there: Sequence[str]) -> int:
    """Return the most devices that can be handed out, by trying all ways."""
    good = {"any": ("v100", "h100", "h200"), "h": ("h100", "h200"), "h200": ("h200",)}
    padded = [*there, *[""] * len(takes)]
    return max(
        sum(device in good[take] for take, device in zip(takes, order, strict=False))
        for order in set(itertools.permutations(padded[: max(len(there), len(takes))], len(takes)))
    )


# Bad objects ---------------------------------------------------------------------------------------------------------------------

MADE = claiming("p")
MADE["spec"]["resourceClaims"].append({"name": "other", "source": {"resourceClaimTemplateName": "one"}})
MADE["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
WHOLE = [
    device_class(extendedResourceName=RESOURCE),
    devices("n", "a", "b"),
    template("one", "shop", CLASS, model("a"), count=1),
    thing("ResourceClaim", "shared", template()["spec"]["spec"], "shop"),
    configuration(**{"example.com_gpu": [CLASS]}),
]


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value of an object."""
    if isinstance(value, dict):
        return [way, *(each for key, inner in value.items() for each in places(inner, (*way, key)))]
    if isinstance(value, list):
        return [way, *(each for j, inner in enumerate(value) for each in places(inner, (*way, j)))]
    return [way]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([(n, way) for n, each in enumerate(WHOLE) for way in places(each) if way]),
    st.sampled_from([None, "", "x", -1, 1.5, True, [], ["x"], {}, {"x": 1}, [{}], [None]]),
)
def test_damaged_objects_are_refused_in_words_or_left_out(at: tuple[int, tuple[Any, ...]], value: Any) -> None:
    """One value of one object is another: an instance with a word on it, or a message with a place; a lenient import always goes on."""
    objects = copy.deepcopy(WHOLE)
    inner: Any = objects[at[0]]
    for key in at[1][:-1]:
        inner = inner[key]
    inner[at[1][-1]] = value
    pods = [claiming("p"), claiming("q", "shared", key="resourceClaimName"), pod("r")]
    if at[1][0] in ("spec", "resources"):
        assert imported(NODES, pods, objects, lenient=True).instance.n_users
    try:
        imported(NODES, pods, objects)
    except fo.InvalidInstance as error:
        message = str(error)
    else:
        return
    assert "dra.yaml" in message


CLAIMED = [way for way in places(MADE) if way and way[-1] != "claims" and any("laim" in str(key) for key in way)]


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(CLAIMED), st.sampled_from([None, "", "x", -1, True, [], ["x"], {}, {"x": 1}, [{}]]))
def test_damaged_claims_of_pods_are_refused_in_words_or_left_out(way: tuple[Any, ...], value: Any) -> None:
    """As above, for what a pod claims."""
    made = copy.deepcopy(MADE)
    inner: Any = made
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = value
    assert imported(NODES, [made, pod("r")], WHOLE, lenient=True).instance.n_users
    try:
        imported(NODES, [made, pod("r")], WHOLE)
    except fo.InvalidInstance as error:
        message = str(error)
    else:
        return
    assert "pods.json" in message


@pytest.mark.parametrize(
    ("slices", "request_", "held", "note"),
    [
        (links("10Gi"), {"capacity": {"requests": {"bandwidth": "2Gi"}}}, 5, ""),
        (links("10Gi", "10Gi"), {"capacity": {"requests": {"bandwidth": "3Gi"}}}, 6, ""),  # three on each
        (
            links("10Gi", "4Gi"),
            {"capacity": {"requests": {"bandwidth": "2Gi"}}},
            4,
            "have room for 2 to 5 claims of one size",
        ),
        (
            links("10Gi", "1Gi"),
            {"capacity": {"requests": {"bandwidth": "2Gi"}}},
            9,
            "with less capacity than one claim asks for: counted as if",
        ),
        (
            links("1Gi", shared=False),
            {"capacity": {"requests": {"bandwidth": "2Gi"}}},
            1,
            "with less capacity than one claim asks for: counted as if",
        ),
        (links("10Gi"), {}, 1, "that claims share, without saying how much they need: each takes a whole one"),
        (links("10Gi", shared=False), {"capacity": {"requests": {"bandwidth": "2Gi"}}}, 1, "that no other claim may share"),
    ],
)
def test_parts_of_the_capacity_of_a_device(slices: dict[str, Any], request_: dict[str, Any], held: int, note: str) -> None:
    """A part lies on one device: three of 3 Gi on one of 10 Gi. A claim that does not say how much takes all of it."""
    pods = [claiming(f"p{k}") for k in range(9)]
    found = imported(NODES, pods, [device_class(), slices, template(**request_)])
    assert tasks(found) == held
    assert any(note in each for each in found.notes) or not note
