"""Queues of YuniKorn as queues of an import, worked out by hand: two nodes of 10 cores and 16 GiB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.test_queues import by_name, imported, node, pod, write

import fairopt as fo
from fairopt.clusters.json_export import Part
from fairopt.kubernetes.yunikorn_fields import DECLARED

TREE = """
partitions:
- name: default
  queues:
  - name: root
    queues:
    - name: lab
      resources: {guaranteed: {vcore: 12, memory: 12Gi}, max: {vcore: 16}}
      queues:
      - name: ann
        resources: {guaranteed: {vcore: 8000m}, max: {memory: 4G, nvidia.com/gpu: 0}}
        properties: {application.sort.policy: fair}
      - {name: ben}
    - {name: ops, resources: {guaranteed: {memory: 8Gi}, max: {vcore: 0, memory: 0}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with the nodes."""
    return write(tmp_path, nodes=[node("n1", 2), node("n2", 2)])


def in_queue(name: str, queue: str, namespace: str = "", **metadata: Any) -> dict[str, Any]:
    """Make a pod of one core that names its queue by a label."""
    made = pod(name, namespace or name, {"queue": queue} if queue else {})
    made["metadata"] |= metadata
    return made


def tasks(result: fo.Import) -> dict[str, float]:
    """Return the pods that owners get."""
    found = fo.solve(result.instance, "drfh", **result.options).tasks_per_user
    return {owner: round(number, 6) for owner, number in zip(result.owners, found.tolist(), strict=True)}


def replicas(number: int, queue: str, namespace: str, **metadata: Any) -> list[dict[str, Any]]:
    """Make pods that are alike."""
    return [in_queue(f"{namespace}-{n}", queue, namespace, **metadata) for n in range(number)]


@pytest.mark.parametrize("form", ["file", "without root", "ConfigMap", "list", "JSON"])
def test_guarantees_limits_and_weights(folder: Path, form: str) -> None:
    """Weights are the parts of the cluster that are guaranteed (12 of 20 cores, 8 of 20); of ben its maximum, 16 cores of 20."""
    text = TREE
    if form == "without root":
        (partition,) = yaml.safe_load(TREE)["partitions"]
        text = yaml.safe_dump({"partitions": [partition | {"queues": partition["queues"][0]["queues"]}]})
    elif form in ("ConfigMap", "list"):
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "yunikorn-configs"},
            "data": {"queues.yaml": TREE, "a.b": "c"},
        }
        text = yaml.safe_dump({"kind": "List", "items": [config]} if form == "list" else config)
    elif form == "JSON":
        text = json.dumps(yaml.safe_load(TREE))
    result = imported(folder, text, [in_queue("x", "root.lab.ann"), in_queue("y", "lab.ben"), in_queue("z", "root.nowhere")])
    queues = by_name(result)
    assert dict(queues["lab"].guarantee) == {"cpu": 12, "memory": 12}
    assert dict(queues["lab"].limit) == {"cpu": 16}
    assert dict(queues["lab.ann"].limit) == pytest.approx({"memory": 4e9 / 2**30, "nvidia.com/gpu": 0})
    assert [queues[name].weight for name in ("lab", "lab.ann", "lab.ben", "ops")] == pytest.approx([0.6, 0.4, 1, 0.25])
    assert dict(queues["ops"].limit) == {}  # a maximum of nothing is none
    assert [queues[name].order for name in ("lab", "lab.ann", "lab.ben", "x", "y")] == ["fair", "fair", "listed", "fair", "listed"]
    assert (queues["x"].parent, queues["y"].parent, queues["z"].parent) == ("lab.ann", "lab.ben", None)
    assert result.options == {"guarantees": "clamp"}
    assert any("1 pod in no queue of YuniKorn" in note for note in result.notes)


def test_what_is_idle_goes_in_proportion_to_guarantees(folder: Path) -> None:
    """Guarantees of 6 and 2 of 20 cores: 15 and 5. A label of YuniKorn comes before an annotation, and that before the old label."""
    queues = ", ".join(f"{{name: {name}, resources: {{guaranteed: {{vcore: {cores}}}}}}}" for name, cores in (("a", 6), ("b", 2)))
    text = f"partitions: [{{name: default, queues: [{queues}]}}]"
    pods = [*replicas(30, "b", "one"), *replicas(30, "a", "two", annotations={"yunikorn.apache.org/queue": "root.b"})]
    for each in pods[:30]:
        each["metadata"]["labels"]["yunikorn.apache.org/queue"] = "root.a"
    assert tasks(imported(folder, text, pods)) == {"one": 15, "two": 5}


def test_a_queue_without_a_guarantee_counts_by_its_maximum(folder: Path) -> None:
    """Of 20 cores a keeps the 10 that it is guaranteed, and b, of which 20 are the maximum, has the rest; with a maximum of 5 it has 5."""
    text = (
        "partitions: [{name: default, queues: [{name: a, resources: {guaranteed: {vcore: 10}}}, {name: b, resources: {max: {vcore: %d}}}]}]"
    )
    pods = [*replicas(30, "a", "one"), *replicas(30, "b", "two")]
    assert tasks(imported(folder, text % 20, pods)) == {"one": 10, "two": 10}
    assert tasks(imported(folder, text % 5, pods)) == {"one": 15, "two": 5}


def test_a_leaf_queue_is_fifo_by_the_creation_of_applications(folder: Path) -> None:
    """The application of "late" was created first; its second pod, later, belongs to it. With the policy fair both are equal."""
    text = "partitions: [{name: default, queues: [{name: a, properties: {application.sort.policy: %s}}]}]"
    pods = [
        *replicas(30, "a", "early", creationTimestamp="2026-01-02T00:00:00Z"),
        *replicas(29, "a", "late", creationTimestamp="2026-01-03T00:00:00Z"),
        in_queue("first", "a", "late", creationTimestamp="2026-01-01T00:00:00Z"),
    ]
    for each in pods:
        each["metadata"]["labels"]["applicationId"] = each["metadata"]["namespace"]
    assert tasks(imported(folder, text % "fifo", pods)) == {"early": 0, "late": 20}
    assert tasks(imported(folder, text % "stateaware", pods)) == {"early": 0, "late": 20}
    assert tasks(imported(folder, text % "fair", pods)) == {"early": 10, "late": 10}


def test_offsets_of_priority_are_tiers_within_fences(folder: Path) -> None:
    """The documentation's tree: system-high, then system-normal; tenant-a before tenant-b, whatever their queues say; system-low last."""
    text = """
partitions:
- name: default
  queues:
  - name: system
    queues:
    - {name: normal}
    - {name: high, properties: {priority.offset: "1000"}}
    - {name: low, properties: {priority.offset: -1000}}
  - name: tenants
    properties: {priority.policy: fence}
    queues:
    - {name: a, parent: true, properties: {priority.policy: fence, priority.offset: "10"}, queues: [{name: x}, {name: y}]}
    - {name: b, properties: {priority.policy: fence, priority.offset: "0"}, queues: [{name: z, properties: {priority.offset: "9"}}]}
"""
    result = imported(folder, text, [in_queue("p", "system.high")])
    tiers = {name: queue.tier for name, queue in by_name(result).items()}
    order = ["system.high", "tenants.a.x", "tenants.b.z", "system.normal", "system.low"]
    assert [tiers[name] for name in order] == sorted((tiers[name] for name in order), reverse=True)
    assert tiers["tenants.a.x"] == tiers["tenants.a.y"] > 0 == tiers["system.normal"]
    assert any("priority.offset of YuniKorn is a tier" in note for note in result.notes)
    disabled = """
partitions:
- name: default
  queues:
  - {name: root, properties: {application.sort.priority: disabled}, queues: [{name: q, properties: {priority.offset: 5}}]}
"""
    assert by_name(imported(folder, disabled, [in_queue("p", "q")]))["q"].tier == 0


def test_placement_rules_make_queues_from_templates(folder: Path) -> None:
    """A namespace is a queue in "spaces", with the maximum of its template; who names a queue that exists is there."""
    text = """
partitions:
- name: default
  placementrules:
  - {name: provided, create: false}
  - {name: tag, value: namespace, create: true, parent: {name: fixed, value: root.spaces}}
  queues:
  - name: root
    queues:
    - {name: fixed}
    - name: spaces
      parent: true
      childtemplate: {maxapplications: 3, properties: {application.sort.policy: fair}, resources: {max: {vcore: 3}, guaranteed: {vcore: 1}}}
"""
    result = imported(folder, text, [in_queue("p", "", "bio"), in_queue("q", "fixed", "chem"), in_queue("r", "root.gone", "bio")])
    queue = by_name(result)["spaces.bio"]
    assert (queue.parent, dict(queue.limit), dict(queue.guarantee), queue.order) == ("spaces", {"cpu": 3}, {"cpu": 1}, "fair")
    assert by_name(result)["chem"].parent == "fixed"
    assert any("1 YuniKorn childtemplate has maxapplications" in note for note in result.notes)


def test_a_path_from_the_root_has_no_other_queue_above(folder: Path) -> None:
    """The parent of the rule counts for the plain name "x" alone."""
    text = """
partitions:
- name: default
  placementrules:
  - {name: provided, create: true, parent: {name: fixed, value: root.spaces}}
  queues: [{name: spaces, parent: true}, {name: lab}]
"""
    queues = by_name(imported(folder, text, [in_queue("p", "root.lab", "bio"), in_queue("q", "x", "chem")]))
    assert (queues["bio"].parent, queues["spaces.x"].parent) == ("lab", "spaces")


def test_no_queue_is_made_below_a_leaf(folder: Path) -> None:
    """YuniKorn refuses "lab.x" below the leaf "lab": its pod is in no queue, and a note says so."""
    text = "partitions: [{name: default, placementrules: [{name: provided, create: true}], queues: [{name: lab}]}]"
    result = imported(folder, text, [in_queue("p", "root.lab.x", "bio"), in_queue("q", "root.lab", "chem")])
    assert sorted(by_name(result)) == ["bio", "chem", "lab"]
    assert "1 pod in no queue of YuniKorn: in the root, beside its queues" in result.notes


def test_queues_of_users(folder: Path) -> None:
    """The queue of "ada.l" is "users.ada_dot_l"; who names no user is where the next rule says. Filters are not read, and named."""
    text = """
partitions:
- name: default
  placementrules:
  - {name: user, create: true, filter: {type: deny, users: [root]}, parent: {name: fixed, value: users}}
  - {name: fixed, value: rest}
  queues: [{name: users, parent: true}, {name: rest}]
"""
    info = '{"user": "ada.l", "groups": []}'
    pods = [in_queue("p", "", "bio", annotations={"yunikorn.apache.org/user.info": info}), in_queue("q", "", "chem")]
    pods.append(in_queue("r", "", "math", annotations={"yunikorn.apache.org/user.info": "[" * 100_000}))
    result = imported(folder, text, pods)
    queues = by_name(result)
    assert (queues["bio"].parent, queues["chem"].parent, queues["math"].parent) == ("users.ada_dot_l", "rest", "rest")
    assert 'the placement rule "user" does not count for pods that name no user' in result.notes
    assert 'the filter of the placement rule "user" is not read: the rule counts for all users' in result.notes


def test_limits_of_users(folder: Path) -> None:
    """ada has at most 4 cores in the whole cluster, everyone else 2; a note counts ben, whose pods are in two queues, and groups."""
    text = """
partitions:
- name: default
  limits:
  - {limit: all, users: ["*"], maxresources: {vcore: 2}, maxapplications: 5}
  - {users: [ada], groups: [], maxresources: {vcore: 4}}
  - {groups: [dev], maxresources: {vcore: 1}}
  queues: [{name: a}, {name: b}]
"""
    users = {"one": "ada", "two": "ben", "three": "cyd"}
    pods = [*replicas(9, "a", "one"), *replicas(9, "a", "two"), in_queue("t", "b", "two"), *replicas(9, "b", "three")]
    for each in pods:
        each["metadata"]["annotations"] = {
            "yunikorn.apache.org/user.info": f'{{"user": "{users[each["metadata"]["namespace"]]}", "groups": []}}'
        }
    result = imported(folder, text, pods)
    assert {name: dict(queue.limit) for name, queue in by_name(result).items() if queue.limit} == {"one": {"cpu": 4}, "three": {"cpu": 2}}
    for expected in ("1 limit of single users left out", "limits of groups in root are left out", "1 YuniKorn limit has maxapplications"):
        assert sum(expected in note for note in result.notes) == 1, result.notes


def test_what_a_configuration_says_beyond_that_is_named_once(folder: Path) -> None:
    """Fields that an instance does not have, and those that nobody knows; other partitions."""
    text = """
partitions:
- {name: gpu, queues: [{name: x}]}
- name: default
  nodesortpolicy: {type: binpacking, resourceweights: {vcore: 4.0}}
  preemption: {enabled: true}
  queues:
  - name: root
    submitacl: "*"
    resources: {max: {vcore: 1}}
    queues: [{name: a, maxapplications: 4, colour: red, properties: {x: y, preemption.policy: fence}}, {name: b, maxapplications: 4}]
"""
    result = imported(folder, text, [in_queue("p", "a")])
    for expected in (
        "1 YuniKorn partition has nodesortpolicy (which node it takes first; its resourceweights compare nodes, and no queues)",
        "2 YuniKorn queues have maxapplications (how many applications run at once)",
        "1 YuniKorn queue has the field colour",
        "the field x, which this import does not know",
        "the root queue has resources, which YuniKorn refuses",
    ):
        assert sum(expected in note for note in result.notes) == 1, result.notes
    assert [each.what for each in result.left_out] == ["partition"]
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names)), fields.record


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("partitions: []", "there is no partition"),
        ("partitions: [{name: default}]", r"partitions\[0\].queues: this field is missing"),
        ("partitions: [{name: default, queues: [{name: a.b}]}]", 'the name of this queue is "a.b"'),
        ("partitions: [{name: default, queues: [{name: a}, {name: A}]}]", 'the queue "A" is listed twice'),
        ("partitions: [{name: default, queues: [{name: a, resources: {max: {vcore: x}}}]}]", r"resources.max.vcore: "),
        ("partitions: [{name: default, queues: [{name: a, properties: {priority.offset: high}}]}]", 'is "high"; give a whole number'),
        (
            "partitions: [{name: default, queues: [{name: a, properties: {application.sort.policy: random}}]}]",
            'there is no policy "random"',
        ),
        (
            "partitions: [{name: default, queues: [{name: a, childtemplate: {properties: {application.sort.policy: random}}}]}]",
            r'childtemplate.properties\["application.sort.policy"\]: there is no policy "random"',
        ),
        (
            "partitions: [{name: default, queues: [{name: a, resources: {max: {vcore: 2, cpu: 4}}}]}]",
            "resources.max.cpu: vcore and cpu are the same resource",
        ),
        (
            "partitions: [{name: default, queues: [{name: a, resources: {guaranteed: {vcore: 2}, max: {vcore: 1}}}]}]",
            "less than its guarantee",
        ),
        (
            "partitions: [{name: default, queues: [{name: a, resources: {max: {1: 2}}}]}]",
            "resources.max: the name 1 is no text; write it in quotes",
        ),
        ("partitions: [{name: default, queues: [3]}]", r"queues\[0\]: expected a mapping"),
        (TREE + "---" + TREE, "there are queues of YuniKorn in .* too; give one configuration"),
    ],
)
def test_configurations_that_cannot_be_read_are_refused(folder: Path, text: str, message: str) -> None:
    """With the file and the place."""
    with pytest.raises(fo.InvalidInstance, match=message):
        imported(folder, text, [in_queue("p", "a")])


def test_the_reader_reads_what_is_declared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind of record, which has a mark here: the fields that the reader looks at are those that are declared as read."""
    text = """
partitions:
- mark: YuniKorn partition
  name: default
  placementrules: [{name: tag, value: namespace, create: true}]
  queues:
  - name: root
    childtemplate: {mark: YuniKorn childtemplate, resources: {max: {vcore: 3}}}
    queues: [{mark: YuniKorn queue, name: a, properties: {mark: YuniKorn queue with properties}}]
  limits: [{mark: YuniKorn limit, users: ["*"], maxresources: {vcore: 2}}]
"""
    used: dict[str, set[str]] = {}
    get = Part.get

    def counting(part: Part, key: str) -> Part:
        if isinstance(part.value, dict) and "mark" in part.value:
            used.setdefault(part.value["mark"], set()).add(key)
        return get(part, key)

    monkeypatch.setattr(Part, "get", counting)
    result = imported(folder, text, [in_queue("p", "", "bio")])
    assert dict(by_name(result)["bio"].limit) == {"cpu": 3}
    assert used == {fields.record: set(fields.of("read")) for fields in DECLARED}
