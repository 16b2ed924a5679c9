"""YARN: a small cluster worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fairopt as fo
from fairopt.clusters.json_export import Part
from fairopt.clusters.yarn.fields import APPLICATION, DECLARED, NODE

EXPORTS = Path(__file__).parents[1] / "exports"
NODES, APPS = EXPORTS / "yarn_nodes.json", EXPORTS / "yarn_apps.json"


def test_nodes_and_applications() -> None:
    """Two nodes of 8 GiB and 8 cores (one has half of it in use, another is unhealthy); containers that run and that are asked for."""
    result = fo.import_yarn(NODES, APPS)
    instance = result.instance
    assert (instance.servers, instance.counts.tolist(), instance.capacities.tolist()) == (("h1:45454 +1",), [2], [[8, 8]])
    assert instance.users == ("adhoc", "etl/2 memory", "etl/1 memory")
    assert instance.demands.tolist() == [[1, 1], [1, 2], [1, 1]]
    assert instance.tasks.tolist() == [3, 6, 4]
    assert result.current is not None
    assert result.current.tasks.tolist() == [[0], [0], [4]]  # one row: where they run is known


def test_users_of_applications_can_be_the_owners() -> None:
    """Instead of queues."""
    assert set(fo.import_yarn(NODES, APPS, users="user").owners) == {"ada", "ben"}


def write(folder: Path, nodes: list[dict[str, Any]], apps: list[dict[str, Any]]) -> tuple[Path, Path]:
    """Write both."""
    (folder / "nodes.json").write_text(json.dumps({"nodes": {"node": nodes}}))
    (folder / "apps.json").write_text(json.dumps({"apps": {"app": apps}}))
    return folder / "nodes.json", folder / "apps.json"


def node(name: str, **more: Any) -> dict[str, Any]:
    """Make a node of 8 GiB and 8 cores."""
    used = {"usedMemoryMB": 0, "availMemoryMB": 8192, "usedVirtualCores": 0, "availableVirtualCores": 8}
    return {"id": name, "state": "RUNNING", **used, **more}


def test_labels_are_constraints_and_unlike_nodes_hide_what_is_held(tmp_path: Path) -> None:
    """With a label: where it is; without: where none is. What runs is then known by number only."""
    request = [{"resourceName": "*", "numContainers": 2, "capability": {"memory": 1024, "vCores": 1}}]
    common = {
        "state": "RUNNING",
        "user": "u",
        "resourceRequests": request,
        "runningContainers": 1,
        "allocatedMB": 1024,
        "allocatedVCores": 1,
    }
    apps = [{"id": "1", "queue": "a", "appNodeLabelExpression": "gpu", **common}, {"id": "2", "queue": "b", **common}]
    result = fo.import_yarn(*write(tmp_path, [node("plain"), node("fast", nodeLabels=["gpu"])], apps))
    assert result.instance.servers == ("fast", "plain")
    assert result.instance.eligibility.tolist() == [[True, False], [False, True]]
    assert result.current is None
    assert result.held.tolist() == [1, 1]


def test_an_application_twice_is_refused_or_counted(tmp_path: Path) -> None:
    """As in the documentation of Hadoop, whose sample has one twice."""
    app = {"id": "1", "queue": "a", "user": "u", "state": "RUNNING", "runningContainers": 1, "allocatedMB": 1024, "allocatedVCores": 1}
    paths = write(tmp_path, [node("h")], [app, app])
    with pytest.raises(
        fo.InvalidInstance, match=r'apps.json: apps.app\[1\]: application "1" is listed twice, first at .*apps.app\[0\]; list'
    ):
        fo.import_yarn(*paths)
    result = fo.import_yarn(*paths, lenient=True)
    assert (result.instance.tasks.tolist(), len(result.left_out)) == ([1], 1)


def test_one_node_may_come_without_its_list(tmp_path: Path) -> None:
    """What is made of XML writes a list of one so."""
    _, apps = write(
        tmp_path,
        [],
        [{"id": "1", "queue": "a", "user": "u", "state": "RUNNING", "runningContainers": 1, "allocatedMB": 512, "allocatedVCores": 1}],
    )
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": {"node": node("h")}}))
    assert fo.import_yarn(tmp_path / "nodes.json", apps).instance.demands.tolist() == [[1, 0.5]]


# Queues --------------------------------------------------------------------------------------------------------------------------


def running(identity: int, queue: str, user: str = "u") -> dict[str, Any]:
    """Make an application with one container of 1 GiB and 1 core."""
    held = {"runningContainers": 1, "allocatedMB": 1024, "allocatedVCores": 1}
    return {"id": str(identity), "queue": queue, "user": user, "state": "RUNNING", **held}


def with_queues(folder: Path, info: dict[str, Any], apps: list[dict[str, Any]], **options: Any) -> fo.Import:
    """Import two nodes of 8 cores and 8 GiB, of which one may have a label, and the queues of a scheduler."""
    label = options.pop("label", [])
    paths = write(folder, [node("h1"), node("h2", nodeLabels=label)], apps)
    (folder / "scheduler.json").write_text(json.dumps({"scheduler": {"schedulerInfo": info}}))
    return fo.import_yarn(*paths, folder / "scheduler.json", **options)


def capacity(name: str, absolute: float, most: float = 100, children: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    """Make a queue of the Capacity Scheduler, as older answers have it; ``most`` is in parts of the cluster."""
    named = {"queueName": name, "absoluteCapacity": absolute, "absoluteMaxCapacity": most, "maxCapacity": most, **more}
    return {**named, **({"queues": {"queue": children}} if children else {})}


def test_queues_of_the_capacity_scheduler(tmp_path: Path) -> None:
    """Of 16 cores and 16 GiB: eng 75 %, of which prod 50 and dev 25, at most 37.5 %; a queue without capacity has hardly any weight."""
    eng = capacity("eng", 75, children=[capacity("prod", 50), capacity("dev", 25, 37.5, userLimitFactor=2.0)])
    info = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": [eng, capacity("adhoc", 25), capacity("spare", 0)]}}
    apps = [running(1, "prod"), running(2, "root.eng.dev"), running(3, "adhoc"), running(4, "gone")]
    result = with_queues(tmp_path, info, apps)
    assert result.instance.queues == (
        fo.Queue("adhoc", None, 25, {"cpu": 4, "memory": 4}),
        fo.Queue("eng", None, 75, {"cpu": 12, "memory": 12}),
        fo.Queue("eng.dev", "eng", 25, {"cpu": 4, "memory": 4}, {"cpu": 6, "memory": 6}),
        fo.Queue("eng.prod", "eng", 50, {"cpu": 8, "memory": 8}),
        fo.Queue("gone"),
        fo.Queue("spare", None, 0.025),
    )
    assert result.instance.users == result.instance.queue_of == result.owners == ("adhoc", "eng.dev", "eng.prod", "gone")
    assert result.options == {"guarantees": "surplus"}
    assert result.to_frame()["weight"].to_dict() == {"adhoc": 25, "eng.dev": 25, "eng.prod": 50, "gone": 1}
    for text in (
        '"gone" is named by applications, and the scheduler has no such queue',
        "one user holds at most user-limit-factor times",
        '"spare" has no capacity of its own',
        "no user is in the queue",
    ):
        assert any(text in note for note in result.notes), text
    with pytest.raises(fo.InvalidInstance, match=r'"eng.prd".*did you mean "eng.prod"'):
        with_queues(tmp_path, info, apps, weights={"eng.prd": 2})


@pytest.mark.parametrize("policy", ["fifo", "FifoOrderingPolicy"])
def test_leaf_queues_of_the_policy_fifo_serve_applications_as_they_were_submitted(tmp_path: Path, policy: str) -> None:
    """By number, whatever their order in the answer is; a queue above others has no order, and one that does not say it is fair."""
    eng = capacity("eng", 50, children=[capacity("prod", 50, orderingPolicyInfo=policy)], orderingPolicyInfo=policy)
    other = capacity("other", 50, orderingPolicyInfo="FairOrderingPolicy with sizeBasedWeight")
    info = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": [eng, other, capacity("old", 0)]}}
    apps = [running(10, "prod", "zoe"), running(9, "prod", "ann"), running(2, "prod", "mia") | {"allocatedMB": 2048}, running(1, "other")]
    result = with_queues(tmp_path, info, apps)
    assert {queue.name: queue.order for queue in result.instance.queues} == {
        **{"eng": "fair", "eng.prod": "listed", "other": "fair", "old": "fair"}
    }
    assert result.instance.demands.tolist() == [[1, 2], [1, 1], [1, 1]]
    assert any("eng.prod: first come, first served (order listed)" in note for note in result.notes)
    by_user = with_queues(tmp_path, info, apps, users="user").instance
    assert [queue.name for queue in by_user.queues if queue.parent == "eng.prod"] == ["eng.prod/mia", "eng.prod/ann", "eng.prod/zoe"]
    children = {"queue": [fair("root.a", 8), fair("root.b", 8) | {"schedulingPolicy": policy}]}
    info = {"type": "fairScheduler", "rootQueue": fair("root", 16, children=children) | {"schedulingPolicy": policy}}
    fair_scheduler = with_queues(tmp_path, info, [running(1, "root.a"), running(2, "root.b")])
    assert [queue.order for queue in fair_scheduler.instance.queues] == ["fair", "listed"]


def test_the_order_of_a_leaf_is_exported() -> None:
    """Both schedulers take the policy fifo in a leaf; of a queue above others the export says that its order is not in the file."""
    queues = [fo.Queue("top", order="listed"), fo.Queue("a", "top", order="listed"), fo.Queue("b", "top")]
    lab = fo.Instance(
        [[8, 32]], [[1, 2], [1, 4], [1, 1]], resources=["cpu", "memory"], queues=queues, queue_of=["a", "a", "b"], tasks=[2, 2, 9]
    )
    allocation = fo.solve(lab, "drfh")
    scheduler: Any
    for scheduler, line in (("capacity", "root.top.a.ordering-policy</name>"), ("fair", "<schedulingPolicy>fifo</schedulingPolicy>")):
        export = fo.export_yarn(allocation, scheduler=scheduler)
        assert export.text.count(line) == 1
        notes = [note for note in export.notes if "is not written: yarn" in note]
        assert [note.partition(",")[0] for note in notes] == ['the order of queue "top"']
    kai = fo.export_kai(allocation)
    priorities = [line.split()[1] for line in kai.text.splitlines() if line.strip().startswith("priority:")]
    assert priorities == ["100", "100", "101", "100"]
    assert sum("the order of queue" in note for note in kai.notes) == 1


def test_partitions_of_the_capacity_scheduler(tmp_path: Path) -> None:
    """Half of the nodes without label, a quarter of those with; absolute amounts are taken as they are."""
    parts = [{"partitionName": "", "absoluteCapacity": 50, "absoluteMaxCapacity": 100, "maxCapacity": 100}]
    parts += [{"partitionName": "gpu", "absoluteCapacity": 25, "absoluteMaxCapacity": 50, "maxCapacity": 50}]
    amounts = {"memory": 2048, "vCores": 3}
    fixed = {
        "partitionName": "",
        "configuredMinResource": amounts,
        "effectiveMinResource": amounts,
        "absoluteCapacity": 0,
        "maxCapacity": 100,
    }
    queues = [{"queueName": "a", "queuePath": "root.a", "capacities": {"queueCapacitiesByPartition": parts}}]
    queues += [{"queueName": "b", "queuePath": "root.b", "capacities": {"queueCapacitiesByPartition": [fixed]}}]
    info = {"type": "capacityScheduler", "queues": {"queue": queues}}
    result = with_queues(tmp_path, info, [running(1, "a"), running(2, "b")], label=["gpu"])
    assert result.instance.servers == ("h1", "h2")
    plain = fo.Quota(["h1"], {"cpu": 4, "memory": 4}, name="partition without label")
    labelled = fo.Quota(["h2"], {"cpu": 2, "memory": 2}, {"cpu": 4, "memory": 4}, name="partition gpu")
    assert result.instance.queues[0] == fo.Queue("a", None, 37.5, quotas=[plain, labelled])  # 6 of 16
    assert result.instance.queues[1] == fo.Queue(
        "b", None, 18.75, quotas=[fo.Quota(["h1"], {"cpu": 3, "memory": 2}, name="partition without label")]
    )


def test_weights_of_the_capacity_scheduler(tmp_path: Path) -> None:
    """Where all queues beside each other have weights, those are the weights."""
    queues = [capacity("a", 75, weight=6), capacity("b", 25, weight=2)]
    result = with_queues(tmp_path, {"type": "capacityScheduler", "queues": {"queue": queues}}, [running(1, "a"), running(2, "b")])
    assert result.instance.queues == (fo.Queue("a", None, 6, {"cpu": 12, "memory": 12}), fo.Queue("b", None, 2, {"cpu": 4, "memory": 4}))


def fair(name: str, steady: float = 0, least: float = 0, most: float = 16, children: Any = None, **more: Any) -> dict[str, Any]:
    """Make a queue of the Fair Scheduler: cores and GiB."""

    def amounts(value: float) -> dict[str, float]:
        return {"memory": value * 1024, "vCores": value}

    given = {"queueName": name, "minResources": amounts(least), "maxResources": amounts(most), "clusterResources": amounts(16)}
    given |= {"steadyFairResources": amounts(steady)} if steady else {}
    return {**given, **({"childQueues": children} if children else {}), **more}


def test_queues_of_the_fair_scheduler(tmp_path: Path) -> None:
    """Minima are guarantees that clamp; weights by steady fair shares. Children with more than their parent are a misconfiguration."""
    children = {"queue": [fair("root.eng.dev", 3, 4, 3), fair("root.eng.prod", 9, 3)]}
    root = fair("root", 16, children={"queue": [fair("root.eng", 12, 4, children=children), fair("root.adhoc", 4, most=8)]})
    result = with_queues(tmp_path, {"type": "fairScheduler", "rootQueue": root}, [running(1, "root.eng.dev"), running(2, "root.adhoc")])
    assert result.instance.queues == (
        fo.Queue("adhoc", None, 25, limit={"cpu": 8, "memory": 8}),
        fo.Queue("eng", None, 75, {"cpu": 4, "memory": 4}),
        fo.Queue("eng.dev", "eng", 18.75, {"cpu": 3, "memory": 3}, {"cpu": 3, "memory": 3}),
        fo.Queue("eng.prod", "eng", 56.25, {"cpu": 3, "memory": 3}),
    )
    assert result.options == {"guarantees": "clamp"}
    texts = [
        "solve with guarantees=clamp",
        "has no weights",
        '"eng.dev" is guaranteed more than its limit',
    ]
    for text in texts:
        assert any(text in note for note in result.notes), text


def test_weights_of_the_fair_scheduler(tmp_path: Path) -> None:
    """Given by the answer, or by the caller; without steady fair shares 1. Users are queues in the queue of their applications."""
    root = fair("root", children=[fair("root.a", weight=3), fair("root.b", weight=1)])  # older answers list children plainly
    apps = [running(1, "root.a", "ada"), running(2, "root.a", "ben"), running(3, "root.b", "ada")]
    result = with_queues(tmp_path, {"type": "fairScheduler", "rootQueue": root}, apps, users="user", weights={"ada": 5, "b": 2})
    assert result.instance.queues == (
        *(fo.Queue("a", None, 3), fo.Queue("a/ada", "a", 5), fo.Queue("a/ben", "a"), fo.Queue("b", None, 2), fo.Queue("b/ada", "b", 5)),
    )
    assert (result.owners, result.options) == (("ada", "ben", "ada"), {})
    root = fair("root", children=[fair("root.a"), fair("root.b")])
    result = with_queues(tmp_path, {"type": "fairScheduler", "rootQueue": root}, apps)
    assert [queue.weight for queue in result.instance.queues] == [1, 1]


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({"type": "fifoScheduler"}, r'schedulerInfo.type: there are no queues of a scheduler "fifoScheduler"'),
        ({}, r"scheduler.json: there is no scheduler.schedulerInfo in this answer; export it again: curl"),
        (
            {"type": "capacityScheduler", "queues": {"queue": [{"queueName": "a"}]}},
            r'queues.queue\[0\] \(queue "a"\): absoluteCapacity: this field is missing',
        ),
        (
            {"type": "capacityScheduler", "queues": {"queue": [capacity("a", -1)]}},
            r'\(queue "a"\): absoluteCapacity: expected a number >= 0',
        ),
    ],
)
def test_schedulers_that_cannot_be_read_are_refused(tmp_path: Path, info: dict[str, Any], message: str) -> None:
    """With the file, the place, and the queue."""
    with pytest.raises(fo.InvalidInstance, match=message):
        with_queues(tmp_path, info, [running(1, "a")])


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (
            {"type": "fairScheduler", "rootQueue": fair("root", children=[fair("a", least=4, weight=1), fair("b", least=4, weight=3)])},
            [4, 12],
        ),
        ({"type": "capacityScheduler", "queues": {"queue": [capacity("a", 25), capacity("b", 25)]}}, [8, 8]),
        ({"type": "capacityScheduler", "queues": {"queue": [capacity("a", 75), capacity("b", 25)]}}, [12, 4]),
        ({"type": "capacityScheduler", "queues": {"queue": [capacity("a", 75, 50), capacity("b", 25)]}}, [8, 8]),
    ],
)
def test_guarantees_as_the_scheduler_means_them(tmp_path: Path, info: dict[str, Any], expected: list[float]) -> None:
    """16 cores. Fair: minima 4 and 4, weights 1 : 3, so max(t, 4) + max(3 t, 4) = 16. Capacity: by guarantees, within limits."""
    asked = [{"resourceName": "*", "numContainers": 30, "capability": {"memory": 1, "vCores": 1}}]
    apps = [{"id": name, "queue": name, "user": "u", "state": "ACCEPTED", "resourceRequests": asked} for name in "ab"]
    result = with_queues(tmp_path, info, apps)
    assert fo.solve(result.instance, "drfh", **result.options).tasks_per_user == pytest.approx(expected)


def amount(memory: float, gpus: float) -> dict[str, Any]:
    """Make an amount as YARN writes it, with one core for each GiB."""
    types = [("memory-mb", "Mi", memory * 1024), ("vcores", "", memory), ("yarn.io/gpu", "", gpus)]
    listed = [{"name": name, "units": unit, "value": value} for name, unit, value in types]
    return {"memory": memory * 1024, "vCores": memory, "resourceInformations": {"resourceInformation": listed}}


def asking(identity: str, number: int, memory: float, gpus: float = 0, label: str = "", **more: Any) -> dict[str, Any]:
    """Make an application of a queue of its name that asks for containers."""
    request = {"resourceName": "*", "numContainers": number, "capability": amount(memory, gpus), "nodeLabelExpression": label}
    return {"id": identity, "queue": identity, "user": "u", "state": "ACCEPTED", "resourceRequests": [request], **more}


def test_all_resource_types_count_and_what_runs_is_in_its_partition(tmp_path: Path) -> None:
    """Two GPUs on one of two nodes; "a" runs 3 containers of 1 GiB in the partition gpu, one in the other, and waits for none."""
    nodes = [
        node("plain", usedResource=amount(4, 0), availableResource=amount(4, 0)),
        node("fast", nodeLabels=["gpu"], totalResource=amount(8, 2)),
    ]
    used = [{"partitionName": "gpu", "used": amount(3, 0)}, {"partitionName": "", "used": amount(1, 0)}]
    runs: dict[str, Any] = {
        "runningContainers": 4,
        "allocatedMB": 4096,
        "allocatedVCores": 4,
        "resourceInfo": {"resourceUsagesByPartition": used},
    }
    apps = [asking("a", 0, 1, **runs), asking("b", 9, 1, 1, "gpu"), asking("c", 1, 1, 3, "gpu")]
    result = fo.import_yarn(*write(tmp_path, nodes, apps))
    instance = result.instance
    assert dict(zip(instance.resources, instance.capacities[list(instance.servers).index("fast")], strict=True))["yarn.io/gpu"] == 2
    held = {name: tasks for name, tasks in zip(instance.users, instance.tasks, strict=True) if name.startswith("a")}
    assert sorted(held.values()) == [1, 3]
    assert fo.solve(instance).tasks.sum(axis=1)[list(instance.users).index("b")] == pytest.approx(2)  # its GPUs
    assert any("larger than every server" in str(each) for each in result.left_out)  # c wants 3 GPUs of 2


def test_partitions_that_are_not_exclusive_take_containers_without_label(tmp_path: Path) -> None:
    """With the answer about labels; a note says that they are exclusive without it."""
    files = write(tmp_path, [node("plain"), node("fast", nodeLabels=["gpu"]), node("own", nodeLabels=["db"])], [asking("a", 99, 1)])
    alone = fo.import_yarn(*files)
    assert fo.solve(alone.instance).tasks.sum() == pytest.approx(8)
    assert any("--labels FILE" in note for note in alone.notes)
    answer = tmp_path / "labels.json"
    answer.write_text(json.dumps({"nodeLabelInfo": [{"name": "gpu", "exclusivity": False}, {"name": "db", "exclusivity": True}]}))
    shared = fo.import_yarn(*files, labels=answer)
    assert fo.solve(shared.instance).tasks.sum() == pytest.approx(16)
    assert any("not exclusive" in note for note in shared.notes)
    answer.write_text("{}")
    with pytest.raises(fo.InvalidInstance, match="get-node-labels"):
        fo.import_yarn(*files, labels=answer)


def test_the_reader_reads_the_fields_that_are_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nodes and applications, each name has one use; fields that are noted or that nobody declared are named with their number."""
    for fields in DECLARED:
        names = [name for field in fields.fields for name in field.names]
        assert len(names) == len(set(names))
    used: dict[str, set[str]] = {"usedMemoryMB": set(), "queue": set()}
    get = Part.get

    def counting(part: Part, key: str) -> Part:
        for mark in used:
            if isinstance(part.value, dict) and mark in part.value:
                used[mark].add(key)
        return get(part, key)

    monkeypatch.setattr(Part, "get", counting)
    apps = [asking("a", 2, 1, priority=5, colour="red"), asking("b", 1, 1, priority=0, name="x"), asking("c", 1, 1)]
    apps[2]["resourceRequests"][0]["relaxLocality"] = False
    apps[2] |= {"runningContainers": 1, "allocatedMB": 1024, "allocatedVCores": 1}
    notes = fo.import_yarn(*write(tmp_path, [node("n", totalResource=amount(8, 0))], apps), users="user").notes
    assert used["usedMemoryMB"] == set(NODE.of("read"))
    assert used["queue"] == set(APPLICATION.of("read"))  # with the owners "user", and something that runs
    assert [note for note in notes if "does not count" in note] == [
        "1 application has priority (its place among the applications of its queue), which an instance does not have: it does not count",
        "1 application has the field colour, which this import does not know: it does not count",
        "1 request has relaxLocality (only nodes or racks that it names), which an instance does not have: it does not count",
    ]
