"""Demand without pods: Workloads of Kueue, PodGroups, Jobs of Volcano, suspended Jobs, JobSets; files of many kinds and forms."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.test_queues import FLAVORS, GPU, cluster_queue, imported, local_queue, node, pod, write

import fairopt as fo

KAI = "scheduling.run.ai/v2alpha2"
NAME = "kueue.x-k8s.io/queue-name"
TEMPLATE = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1", GPU: "1"}}}]}}


def thing(kind: str, api: str, name: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Make an object of the namespace lab."""
    metadata = {"name": name, "namespace": "lab", **more.pop("metadata", {})}
    return {"kind": kind, "apiVersion": api, "metadata": metadata, "spec": spec, **more}


def workload(name: str, count: int, *conditions: str, queue: str = "q", **more: Any) -> dict[str, Any]:
    """Make a Workload of Kueue with the conditions that are true."""
    status = {"conditions": [{"type": each, "status": "True"} for each in conditions], **more.pop("status", {})}
    spec = {"queueName": queue, "podSets": [{"name": "main", "count": count, "template": TEMPLATE}], **more.pop("spec", {})}
    return thing("Workload", "kueue.x-k8s.io/v1beta2", name, spec, status=status, **more)


def asked(folder: Path, things: list[dict[str, Any]], pods: list[dict[str, Any]]) -> fo.Import:
    """Import a cluster with a ClusterQueue and a LocalQueue, and with these objects."""
    text = FLAVORS + cluster_queue("cluster", {"any": "20"}) + local_queue("lab", "cluster")
    return imported(folder, text + "".join(f"---\n{yaml.safe_dump(each)}" for each in things), pods)


def test_workloads_that_wait_are_asked_for_and_admitted_ones_are_their_pods(tmp_path: Path) -> None:
    """Of 2 that wait 3 + 2 pods; of an admitted one of 4 pods, 3 are listed; ended and deactivated ones ask for nothing."""
    write(tmp_path, nodes=[node("n", 20)])
    pods = [pod(f"p{i}", "lab", {NAME: "q"} if i else None, gpu="1") for i in range(3)]
    things = [
        workload("a", 3),
        workload("b", 4, status={"reclaimablePods": [{"name": "main", "count": 2}]}),
        workload("c", 4, "Admitted", "QuotaReserved"),
        workload("d", 9, "Finished"),
        workload("e", 9, spec={"active": False}),
        workload("f", 9, metadata={"ownerReferences": [{"kind": "Pod", "name": "p0"}]}),
    ]
    result = asked(tmp_path, things, pods)
    assert result.instance.tasks.tolist() == [3 + 2 + 4]
    assert result.instance.queues[0].name == "cluster"
    assert result.instance.queue_of == ("lab",)
    assert result.summary["pods of waiting work"] == 5
    assert [each.why for each in result.left_out] == [
        "finished: asks for nothing",
        "deactivated: asks for nothing",
        "its pods are listed",
    ]
    assert "1 pod of admitted Workloads are not listed: they are asked for, and hold nothing" in result.notes
    assert "3 gangs start all pods together or none, which is ignored: a relaxation" in result.notes


def test_without_pods_admitted_workloads_run_somewhere(tmp_path: Path) -> None:
    """One file of all kinds: 4 run and 3 wait. An evicted Workload waits again."""
    kinds = list(yaml.safe_load_all(FLAVORS + cluster_queue("cluster", {"any": "20"}) + local_queue("lab", "cluster")))
    things = [workload("a", 2), workload("b", 1, "QuotaReserved", "Evicted"), workload("c", 4, "Admitted")]
    everything = {"kind": "List", "items": [{"kind": "Node", **node("n", 20)}, *kinds, *things]}
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump(everything))
    result = fo.import_kubernetes(path)
    assert (result.summary["tasks running"], result.summary["tasks waiting"]) == (4, 3)
    assert result.instance.queue_of == ("lab",)


def test_jobs_ask_for_pods_while_they_are_suspended(tmp_path: Path) -> None:
    """A Job: 3 at a time, of which 2 are left. A JobSet: 2 x 3. The Job of a Workload, and that of a JobSet, are not counted twice."""
    job = {"suspend": True, "parallelism": 3, "template": TEMPLATE}
    jobs = {"suspend": True, "replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}]}
    things = [
        thing("Job", "batch/v1", "a", {**job, "completions": 5}, status={"succeeded": 3}),
        thing("Job", "batch/v1", "b", {**job, "suspend": False}),
        thing("Job", "batch/v1", "c", job, status={"conditions": [{"type": "Complete", "status": "True"}]}),
        thing("Job", "batch/v1", "d", job),
        workload("e", 1, metadata={"ownerReferences": [{"kind": "Job", "name": "d"}]}),
        thing("JobSet", "jobset.x-k8s.io/v1alpha2", "s", jobs),
        thing("Job", "batch/v1", "s-w-0", job, metadata={"ownerReferences": [{"kind": "JobSet", "name": "s"}]}),
    ]
    write(tmp_path, nodes=[node("n", 20)])
    result = asked(tmp_path, things, [pod("p", "lab", gpu="1")])
    assert result.instance.tasks.tolist() == [1 + 2 + 1 + 6]
    assert [each.why for each in result.left_out] == ["not suspended: its pods stand for it", "finished: asks for nothing"]


def test_jobs_and_groups_of_volcano(tmp_path: Path) -> None:
    """Of a Job, the replicas without pods; of a PodGroup without pods, minMember; pods in a PodGroup are in its queue."""
    api = "scheduling.volcano.sh/v1beta1"
    queues = "".join(f"---\nkind: Queue\napiVersion: {api}\nmetadata: {{name: {name}}}\nspec: {{}}\n" for name in ("x", "y", "z"))
    job = thing("Job", "batch.volcano.sh/v1alpha1", "j", {"queue": "x", "tasks": [{"name": "t", "replicas": 4, "template": TEMPLATE}]})
    things = [
        job,
        {**job, "metadata": {"name": "old", "namespace": "lab"}, "status": {"state": {"phase": "Completed"}}},
        thing("PodGroup", api, "of-job", {"minMember": 4}, metadata={"ownerReferences": [{"kind": "Job", "name": "j"}]}),
        thing("PodGroup", api, "g", {"queue": "y", "minMember": 2, "minResources": {"cpu": "4", GPU: 2, "limits.cpu": 9}}),
        thing("PodGroup", api, "h", {"queue": "z", "minMember": 5, "minResources": {"cpu": 5}}),
    ]
    pods = [pod("p", "lab", {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "t", "volcano.sh/queue-name": "x"}, gpu="1")]
    pods.append(pod("o", "lab", {"scheduling.k8s.io/group-name": "h"}, cpu="3"))
    write(tmp_path, nodes=[node("n", 20)])
    result = imported(tmp_path, queues + "".join(f"---\n{yaml.safe_dump(each)}" for each in things), pods)
    found = dict(
        zip(result.instance.queue_of or (), zip(result.instance.tasks, result.instance.demands.tolist(), strict=True), strict=True)
    )
    resources = result.instance.resources
    amounts = {queue: (number, dict(zip(resources, row, strict=True))) for queue, (number, row) in found.items()}
    assert {queue: (number, row["cpu"], row[GPU]) for queue, (number, row) in amounts.items()} == {
        "x/lab": (4, 1, 1),
        "y/lab": (2, 2, 1),
        "z/lab": (1, 3, 0),
    }


def test_groups_of_kai(tmp_path: Path) -> None:
    """A PodGroup without pods asks for what its status requests, 8 GPUs and 16 cores for 4 pods; pods in a PodGroup are in its queue.

    Gangs are those without pods, and those with pods of which more than one must start together.
    """
    api = "scheduling.run.ai/v2alpha2"
    unlimited = "{gpu: {quota: -1, limit: -1}, cpu: {quota: -1, limit: -1}, memory: {quota: -1, limit: -1}}"
    queue = "---\nkind: Queue\napiVersion: scheduling.run.ai/v2\nmetadata: {{name: {}}}\nspec: {{resources: {}}}\n"
    requests = {"pending": 3, "running": 1, "resourcesStatus": {"requested": {GPU: "8", "cpu": "16"}}}
    members = {"subGroups": [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 2}]}
    things = [
        {**thing("PodGroup", api, "waits", {"queue": "x", "minMember": 4}), "status": requests},
        thing("PodGroup", api, "runs", {"queue": "y", **members}),
        thing("PodGroup", api, "empty", {"queue": "y", "minMember": 2}),
    ]
    listed = pod("p", "lab", gpu="1")
    listed["metadata"]["annotations"] = {"pod-group-name": "runs"}
    write(tmp_path, nodes=[node("n", 20)])
    text = "".join(queue.format(name, unlimited) for name in "xy") + "".join(f"---\n{yaml.safe_dump(each)}" for each in things)
    result = imported(tmp_path, text, [listed])
    gpus = result.instance.demands[:, result.instance.resources.index(GPU)]
    cores = result.instance.demands[:, result.instance.resources.index("cpu")]
    found = dict(zip(result.instance.queue_of or (), zip(result.instance.tasks, gpus, cores, strict=True), strict=True))
    assert {name: found[name][:2] for name in found} == {"x/lab": (4, 2), "y/lab": (1, 1)}
    assert found["x/lab"][2] == 4
    assert any(note.startswith("2 gangs start all pods together") for note in result.notes)
    assert {each.why for each in result.left_out} == {
        "its pods are listed",
        "no pod is in it, and its status does not say what it requests",
    }


@pytest.mark.parametrize("form", ["json", "list", "documents", "stdin"])
def test_nodes_and_pods_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """JSON, a list of YAML, documents of YAML, and the standard input: the same instance."""
    listed = [{"kind": "Node", "apiVersion": "v1", **node("n", 4)}, {"kind": "Pod", "apiVersion": "v1", **pod("p", "lab", gpu="1")}]
    path = tmp_path / "all"
    text = yaml.safe_dump({"kind": "List", "items": listed})
    if form == "documents":
        text = "# all\n" + "".join(f"---\n{yaml.safe_dump(each)}" for each in listed)
    path.write_text(json.dumps({"items": listed}) if form == "json" else text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    source = "-" if form == "stdin" else path
    assert fo.import_kubernetes(source).instance == fo.import_kubernetes(source if form != "stdin" else path, path).instance


def test_the_standard_input_has_the_limit_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never ends is refused, not read."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: List\nitems: []\n" + b"#" * 5000)))
    with fo.reading_limit(max_bytes=4000), pytest.raises(fo.InvalidInstance, match="standard input holds more than"):
        fo.import_kubernetes("-")


def test_pods_that_are_given_as_nodes_are_refused(tmp_path: Path) -> None:
    """And nodes that are given as pods."""
    write(tmp_path, nodes=[{"kind": "Node", **node("n")}], pods=[{"kind": "Pod", **pod("p", "lab")}], none=[])
    with pytest.raises(fo.InvalidInstance, match=r"items\[0\]: expected a Node, found a Pod"):
        fo.import_kubernetes(tmp_path / "pods.json", tmp_path / "pods.json")
    (tmp_path / "other.json").write_text((tmp_path / "nodes.json").read_text())
    with pytest.raises(fo.InvalidInstance, match=r"items\[0\]: expected a Pod, found a Node"):
        fo.import_kubernetes(tmp_path / "nodes.json", tmp_path / "other.json")
    with pytest.raises(fo.InvalidInstance, match="there is no pod; export the pods"):
        fo.import_kubernetes(tmp_path / "nodes.json", tmp_path / "none.json")


def left(found: fo.Import) -> dict[str, float]:
    """Return how many records are left out for each reason."""
    reasons = dict.fromkeys((each.why for each in found.left_out), 0.0)
    for each in found.left_out:
        reasons[each.why] += each.number
    return reasons


def test_a_workload_beyond_all_that_its_queue_may_hold_never_starts(tmp_path: Path) -> None:
    """20 GPUs: 21 pods together do not fit, 20 do, and 40 of which 8 are enough; a pod of 12 GPUs fits, one of 21 does not."""
    write(tmp_path, nodes=[node("n", 32)])
    partial = {"podSets": [{"name": "main", "count": 40, "minCount": 8, "template": TEMPLATE}]}
    work = [workload("wide", 21), workload("full", 20), workload("partial", 40, spec=partial)]
    found = asked(tmp_path, work, [pod("small", "lab", gpu="12"), pod("large", "lab", gpu="21")])
    many = f"for more {GPU} than all that the queue cluster may hold, so it can never start"
    assert left(found) == {f"its pods together ask {many}": 21, f"asks {many}": 1}
    assert found.instance.tasks.sum() == 61


def test_jobs_of_kueue_are_gangs_and_other_jobs_are_not(tmp_path: Path) -> None:
    """20 GPUs: of 30 pods of a suspended Job none starts, unless 8 are enough, or Kueue is not asked."""
    write(tmp_path, nodes=[node("n", 32)])

    def job(name: str, **metadata: Any) -> dict[str, Any]:
        return thing("Job", "batch/v1", name, {"suspend": True, "parallelism": 30, "template": TEMPLATE}, metadata=metadata)

    few = {"kueue.x-k8s.io/job-min-parallelism": "8"}
    found = asked(tmp_path, [job("all", labels={NAME: "q"}), job("some", labels={NAME: "q"}, annotations=few), job("alone")], [])
    assert left(found) == {f"its pods together ask for more {GPU} than all that the queue cluster may hold, so it can never start": 30}
    assert found.instance.tasks.sum() == 60
    assert "2 gangs start all pods together or none, which is ignored: a relaxation" in found.notes


def test_a_pod_takes_one_flavor_and_a_gang_several(tmp_path: Path) -> None:
    """4 GPUs of one flavor and 2 of another: a pod of 5 never starts, a gang of 6 does, one of 7 does not; 0 closes a queue."""
    write(tmp_path, nodes=[node("a", 4, {"gpu.model": "a100"}), node("v", 4, {"gpu.model": "v100"})])
    text = FLAVORS + cluster_queue("cluster", {"a100": "4", "v100": "2"}) + local_queue("lab", "cluster")
    text += cluster_queue("closed", {"a100": "0", "v100": "0"}) + local_queue("shop", "closed")
    work = "".join(f"---\n{yaml.safe_dump(workload(f'w{count}', count))}" for count in (6, 7))
    found = imported(tmp_path, text + work, [pod("p", "lab", gpu="5"), pod("q", "shop", gpu="1")])
    many = f"for more {GPU} than all that the queue cluster may hold, so it can never start"
    assert left(found) == {f"its pods together ask {many}": 7, f"asks {many}": 1}
    tasks = dict(zip(found.owners, fo.solve(found.instance, "drfh").tasks_per_user, strict=True))
    assert tasks == pytest.approx({"lab": 6, "shop": 0})


CHECKS = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: away}
spec: {controllerName: kueue.x-k8s.io/multikueue}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.com/budget}
"""


@pytest.mark.parametrize("more", ["admissionChecks: [away]", "admissionChecksStrategy: {admissionChecks: [{name: away}]}"])
def test_work_that_multikueue_sends_to_other_clusters(tmp_path: Path, more: str) -> None:
    """It holds nothing here; what else must agree is noted, and what was rejected asks for nothing."""
    write(tmp_path, nodes=[node("n", 8)])
    text = FLAVORS + cluster_queue("far", {"any": "8"}, more=more) + local_queue("shop", "far")
    text += cluster_queue("near", {"any": "8"}, more="admissionChecks: [budget]") + local_queue("lab", "near")
    work = [
        workload("sent", 3, metadata={"namespace": "shop"}),
        workload("there", 2, status={"clusterName": "worker1"}),
        workload("refused", 2, status={"admissionChecks": [{"name": "budget", "state": "Rejected"}]}),
        workload("asked", 5, status={"admissionChecks": [{"name": "budget", "state": "Pending"}]}),
    ]
    found = imported(tmp_path, text + CHECKS + "".join(f"---\n{yaml.safe_dump(each)}" for each in work), [])
    assert left(found) == {
        "its queue far sends work to other clusters (MultiKueue): asks for nothing here": 3,
        "runs on the cluster worker1 (MultiKueue): asks for nothing here": 1,
        "an admission check has rejected it: asks for nothing": 1,
    }
    assert found.instance.tasks.tolist() == [5]
    assert any(note.startswith("1 ClusterQueue has admission checks, which must agree") for note in found.notes)


def test_a_flavor_with_a_topology_has_the_nodes_with_its_labels(tmp_path: Path) -> None:
    """Two of three nodes have a rack: 8 GPUs of 12; that pods of a Workload are near each other is noted, of pods as well."""
    labels = {"kubernetes.io/hostname": "x"}
    write(tmp_path, nodes=[node(name, 4, labels | ({"rack": name} if name != "c" else {})) for name in "abc"])
    topology = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "racks"}}
    topology["spec"] = {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}
    near = {"podSets": [{"name": "main", "count": 6, "template": TEMPLATE, "topologyRequest": {"required": "rack"}}]}
    text = FLAVORS + "spec: {topologyName: racks}\n" + cluster_queue("cluster", {"any": "12"}) + local_queue("lab", "cluster")
    text += "".join(f"---\n{yaml.safe_dump(each)}" for each in (topology, workload("near", 6, spec=near), workload("wide", 6)))
    annotated = pod("p", "lab", gpu="1")
    annotated["metadata"]["annotations"] = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    found = imported(tmp_path, text, [annotated])
    assert fo.solve(found.instance, "drfh").tasks_per_user.sum() == pytest.approx(8)
    assert any(note.startswith("1 pod set of a Workload has topologyRequest") for note in found.notes)
    assert any(note.startswith("1 pod in its annotations has kueue.x-k8s.io/podset-required-topology") for note in found.notes)


def test_no_work_is_left_where_all_queues_are_stopped(tmp_path: Path) -> None:
    """The message says why."""
    write(tmp_path, nodes=[node("n", 8)])
    text = FLAVORS + cluster_queue("cluster", {"any": "8"}, more="stopPolicy: Hold") + local_queue("lab", "cluster")
    with pytest.raises(fo.InvalidInstance, match="its queue is stopped"):
        imported(tmp_path, text, [pod("p", "lab", gpu="1")])


@pytest.mark.parametrize(("system", "mark"), [("volcano", "annotations"), ("kai", "labels")])
def test_a_gang_beyond_the_limit_of_its_queue_never_starts(tmp_path: Path, system: str, mark: str) -> None:
    """3 GPUs: 4 pods together do not fit, nor 5 of which 4 must start; 3 do, 4 of which 3 are enough, and 4 of which one runs.

    Of 3 pods of one GPU and one of 9, 3 must start: the large one may be the one that waits, and 3 fit.
    """
    api, key = ("scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/group-name") if system == "volcano" else (KAI, "pod-group-name")
    limit = {"capability": {GPU: 3}} if system == "volcano" else {"resources": {"gpu": {"quota": 0, "limit": 3, "overQuotaWeight": 1}}}
    queue = thing("Queue", api if system == "volcano" else "scheduling.run.ai/v2", "q", limit)
    least = {"all": (4, 4), "most": (5, 4), "three": (3, 3), "some": (4, 3), "runs": (4, 4), "mixed": (4, 3)}
    groups = [thing("PodGroup", api, name, {"minMember": least[name][1], "queue": "q"}) for name in least]
    pods = []
    for name, (count, _) in least.items():
        for k in range(count):
            made = pod(f"{name}-{k}", "lab", gpu="9" if (name, k) == ("mixed", 3) else "1")
            made["metadata"][mark] = {key: name}
            pods.append(made)
            if (name, k) == ("runs", 0):
                made["spec"]["nodeName"] = "n"
    write(tmp_path, nodes=[node("n", 32)])
    found = imported(tmp_path, "---\n".join(map(yaml.safe_dump, [queue, *groups])), pods)
    beyond = f"for more {GPU} than all that the queue q may hold, so it can never start"
    assert left(found) == {"its pods are listed": 6, f"its pods together ask {beyond}": 9, f"asks {beyond}": 1}
    assert found.instance.tasks.sum() == 3 + 4 + 4 + 3
    assert "6 gangs start all pods together or none, which is ignored: a relaxation" in found.notes


@pytest.mark.parametrize(("least", "starts"), [({}, False), ({"minAvailable": 5}, False), ({"minAvailable": 3}, True)], ids=str)
def test_a_job_of_volcano_beyond_the_limit_of_its_queue_never_starts(tmp_path: Path, least: dict[str, int], starts: bool) -> None:
    """3 GPUs and 6 pods of two tasks: all must start, or all but one, 2 of each task at least, or 3, perhaps all of one task."""
    queue = thing("Queue", "scheduling.volcano.sh/v1beta1", "q", {"capability": {GPU: 3}})
    tasks = [{"name": name, "replicas": 3, "template": TEMPLATE} for name in ("a", "b")]
    job = thing("Job", "batch.volcano.sh/v1alpha1", "j", {"queue": "q", "tasks": tasks, **least})
    write(tmp_path, nodes=[node("n", 32)])
    found = imported(tmp_path, "---\n".join(map(yaml.safe_dump, [queue, job])), [pod("p", "lab", gpu="1")])
    assert found.instance.tasks.sum() == (7 if starts else 1)
    assert bool(left(found)) is not starts
