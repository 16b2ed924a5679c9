"""What the import of Kubernetes declares of fields is what it does: reads, notes and ignores; what nobody declared is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.test_devices import WHOLE
from kubernetes.test_queues import FLAVORS, cluster_queue, imported, local_queue, node, pod, write
from kubernetes.test_workloads import TEMPLATE, thing, workload

from fairopt.clusters.json_export import Part
from fairopt.kubernetes.fields import DECLARED, OF_KIND


def test_every_name_is_declared_once() -> None:
    """A field has one use, and a reason."""
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names)), fields.record
        assert all(field.why for field in fields.fields)


def test_fields_that_an_instance_does_not_have_are_named_with_their_number(tmp_path: Path) -> None:
    """Noted ones with what they say, and those that nobody knows; empty ones are none."""
    odd: dict[str, Any] = pod("a", "lab")
    odd["spec"] |= {"schedulingGates": [{"name": "x"}], "colour": "red", "priority": 5, "volumes": []}
    odd["spec"]["containers"][0]["shade"] = "dark"
    write(tmp_path, nodes=[node("n", 4) | {"spec": {"pool": "p", "podCIDR": "10.0.0.0/24"}}])
    text = FLAVORS + cluster_queue("q", {"any": "4"}, more="admissionChecks: [x]") + local_queue("lab", "q", more=", tint: 3, extra: ''")
    odd_work = workload("w", 1, spec={"hue": "blue"})
    found = imported(tmp_path, f"{text}---\n{yaml.safe_dump(odd_work)}", [odd, pod("b", "lab")])
    assert any(note.startswith("1 ClusterQueue has admission checks, which must agree before") for note in found.notes)
    assert [note for note in found.notes if "does not count" in note] == [
        "1 node has the field pool, which this import does not know: it does not count",
        "1 pod has schedulingGates (it is not ready to be scheduled yet), which an instance does not have: it does not count",
        "1 pod has the field colour, which this import does not know: it does not count",
        "1 container has the field shade, which this import does not know: it does not count",
        "1 LocalQueue has the field tint, which this import does not know: it does not count",
        "1 Workload has the field hue, which this import does not know: it does not count",
    ]


def test_a_spec_that_is_no_mapping_is_left_out_where_the_import_is_lenient(tmp_path: Path) -> None:
    """It has no fields to count."""
    write(tmp_path, nodes=[node("n", 4), node("m") | {"spec": ["x"]}])
    found = imported(tmp_path, FLAVORS + cluster_queue("q", {"any": "4"}) + local_queue("lab", "q"), [pod("b", "lab")], lenient=True)
    assert [each.what for each in found.left_out] == ["node"]


def test_the_readers_read_what_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind: each field of a spec that the readers look at is declared as read."""
    used: dict[tuple[str, str], set[str]] = {}
    get = Part.get
    kinds: dict[int, tuple[Any, tuple[str, str]]] = {}  # keeps what has this id

    def counting(part: Part, key: str) -> Part:
        found = get(part, key)
        if key == "spec" and isinstance(part.value, dict) and "kind" in part.value and found.value is not None:
            kinds[id(found.value)] = found.value, (part.value["kind"], part.value.get("apiVersion", "").rpartition("/")[0])
        if id(part.value) in kinds and isinstance(part.value, dict):
            used.setdefault(kinds[id(part.value)][1], set()).add(key)
        return found

    monkeypatch.setattr(Part, "get", counting)
    job = {"suspend": True, "template": TEMPLATE}
    volcano = "scheduling.volcano.sh/v1beta1"
    work = [
        thing("Job", "batch/v1", "a", job),
        thing("JobSet", "jobset.x-k8s.io/v1", "b", {"suspend": True, "replicatedJobs": [{"template": {"spec": job}}]}),
        thing("Job", "batch.volcano.sh/v1alpha1", "c", {"tasks": [{"name": "t", "template": TEMPLATE}]}),
        thing("PodGroup", volcano, "d", {"minMember": 1, "minResources": {"cpu": 1}}),
        thing("PodGroup", "scheduling.run.ai/v2alpha2", "k", {"subGroups": [{"name": "s", "minMember": 1}]}),
        thing("ResourceQuota", "v1", "e", {"hard": {"cpu": 5}}),
        workload("f", 1),
        *WHOLE,
    ]
    kueue = FLAVORS + cluster_queue("x", {"any": "4"}, "c") + cluster_queue("c", {}, kind="Cohort") + local_queue("lab", "x")
    systems = [
        list(yaml.safe_load_all(kueue)),
        [thing("Queue", volcano, "q", {"weight": 1})],
        [thing("Queue", "scheduling.run.ai/v2", "q", {"resources": {"gpu": {"quota": 1}}})],
        [thing("ElasticQuota", "scheduling.sigs.k8s.io/v1alpha1", "q", {"min": {"cpu": 1}})],
    ]
    write(tmp_path, nodes=[{"kind": "Node", **node("n", 9)}])
    for objects in systems:
        text = "".join(f"---\n{yaml.safe_dump(each)}" for each in [*filter(None, objects), *work])
        imported(tmp_path, text, [{"kind": "Pod", **pod("p", "lab")}])
    named = {**OF_KIND, ("Node", ""): DECLARED[0], ("Pod", ""): DECLARED[1]}
    assert len(used) >= 18  # not the two other groups of the API that have PodGroups
    for kind, names in used.items():
        assert names <= set(named[kind].of("read")), kind
