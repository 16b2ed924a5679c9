"""What asks for pods that do not exist yet: Workloads of Kueue, PodGroups, Jobs of Volcano, suspended Jobs, and JobSets.

A **Workload** asks for ``count`` pods of each of its podSets. While it waits, its pods do not exist: all are asked for. Once it is
admitted (condition Admitted or QuotaReserved), the pods of its LocalQueue stand for it; those that are not listed are asked for, and
where the export has no pods at all they run, on nodes that are not known. A **Job of Volcano** asks for the ``replicas`` of its tasks,
and a **PodGroup** without pods for ``minMember`` pods of ``minResources`` together; pods in a PodGroup are in its queue. A PodGroup of
KAI states no resources: it asks for the pods and the resources of its status. A **Job** that is suspended asks for ``parallelism`` pods, a
**JobSet** that is suspended for those of its Jobs; with a queue of Kueue, they are a gang. What has ended asks for nothing, and what
something else in the export stands for (the Job of a Workload) is not counted twice.

All pods of a gang start together or not at all, which an instance does not have: gangs are counted in a note. How many of the pods of one
request start with their gang at least follows from its minimum: all but those that the gang can do without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.kubernetes.amounts import add, amounts_of
from fairopt.kubernetes.reading import kind_of
from fairopt.kubernetes.records import Pod, read_pod
from fairopt.wording import plural

__all__ = ["is_work", "with_work"]

_WORKLOAD, _JOB_SET = ("Workload", "kueue.x-k8s.io"), ("JobSet", "jobset.x-k8s.io")
_JOB, _VOLCANO_JOB = ("Job", "batch"), ("Job", "batch.volcano.sh")
_KAI_GROUP = ("PodGroup", "scheduling.run.ai")
_QUEUE_NAME, _VOLCANO_QUEUE, _KAI_QUEUE = "kueue.x-k8s.io/queue-name", "volcano.sh/queue-name", "kai.scheduler/queue"
_LEAST = "kueue.x-k8s.io/job-min-parallelism"
_MARKS = {("PodGroup", "scheduling.volcano.sh"): _VOLCANO_QUEUE, _KAI_GROUP: _KAI_QUEUE}
"""PodGroups that say their queue, and the label of pods that says the same."""
_GROUPS = (*_MARKS, ("PodGroup", "scheduling.x-k8s.io"), ("PodGroup", "scheduling.sigs.k8s.io"))
_IN_GROUP = ("scheduling.k8s.io/group-name", "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "pod-group-name")
_ENDED = ("Completed", "Failed", "Terminated", "Aborted")
_Owner = Callable[[Part], str]


def is_work(part: Part) -> bool:
    """Return whether an object asks for pods."""
    return kind_of(part) in (_WORKLOAD, _JOB_SET, _JOB, _VOLCANO_JOB, *_GROUPS)


@dataclass(frozen=True, slots=True)
class _Wish:
    """Pods of one template that an object asks for."""

    pod: Pod
    admitted: bool = False


@dataclass(frozen=True, slots=True)
class _Listed:
    """The pods that exist: their names, their PodGroups, and how many each task of a Job of Volcano has."""

    names: frozenset[str]
    groups: frozenset[tuple[str, str]]
    tasks: Counter[tuple[str, str, str]]

    @classmethod
    def of(cls, pods: Sequence[Pod]) -> _Listed:
        tasks: Counter[tuple[str, str, str]] = Counter()
        for pod in pods:
            labels = pod.part["metadata"].get("labels")
            job = labels.get("volcano.sh/job-name").text("")
            if job:
                tasks[pod.space, job, labels.get("volcano.sh/task-spec").text("")] += 1
        return cls(frozenset(pod.name for pod in pods), frozenset((pod.space, _group_of(pod)) for pod in pods), tasks)


def with_work(parts: Sequence[Part], pods: Sequence[Pod], owner: _Owner, account: Account) -> list[Pod]:
    """Return the pods, in the queues of their PodGroups, and those that objects ask for and that are not listed."""
    if not parts:
        return list(pods)
    pods = _in_gangs(parts, _in_queues_of_groups(parts, pods))
    known = {_name(part) for part in parts}
    covered = {key for part in parts if kind_of(part) == _WORKLOAD for key in _owners(part)}
    wishes: list[_Wish] = []
    gangs = 0
    listed = _Listed.of(pods)
    named: set[tuple[str, str, str]] = set()  # what is counted as a gang
    for part in parts:
        kind = kind_of(part)
        if kind in _GROUPS and (_space(part), part["metadata"]["name"].text()) in listed.groups and _members(part) > 1:
            gangs += not any(key in named for key in _owners(part))
        if kind != _WORKLOAD and (_name(part) in covered or any(key in known for key in _owners(part))):
            continue
        asked = account.read([part], lambda each: _wishes(each, listed, owner), kind[0])
        for why, more in asked:
            if why:
                account.leave_out(kind[0], part.place, why)
            wishes += more
            if more and (kind != _JOB or more[0].pod.gang) and sum(each.pod.number for each in more) > 1:
                gangs += 1
                named.add(_name(part))
    waiting = [each.pod for each in wishes if not each.admitted]
    admitted, missing = _not_listed([each.pod for each in wishes if each.admitted], pods)
    if waiting:
        account.summary["pods of waiting work"] = sum(pod.number for pod in waiting)
    if missing and pods:
        account.note(f"{plural(missing, 'pod')} of admitted Workloads are not listed: they are asked for, and hold nothing")
    if not pods:
        admitted = [replace(pod, started=True) for pod in admitted]
    if gangs:
        account.note(f"{plural(gangs, 'gang starts', 'gangs start')} all pods together or none, which is ignored: a relaxation")
    return [*pods, *waiting, *admitted]


def _wishes(part: Part, listed: _Listed, owner: _Owner) -> tuple[str, list[_Wish]]:
    """Return why an object asks for nothing, if so, and the pods that it asks for."""
    kind = kind_of(part)
    if kind == _WORKLOAD:
        return _of_workload(part, listed, owner)
    if kind == _VOLCANO_JOB:
        return _of_volcano_job(part, listed, owner)
    if kind in _GROUPS:
        return _of_group(part, listed, owner)
    return _of_jobs(part, owner)


def _of_workload(part: Part, listed: _Listed, owner: _Owner) -> tuple[str, list[_Wish]]:
    spec, status = part["spec"], part.get("status")
    true = {each["type"].text() for each in status.get("conditions").items() if each.get("status").value == "True"}
    if "Finished" in true:
        return "finished: asks for nothing", []
    if spec.get("active").value is False:
        return "deactivated: asks for nothing", []
    if elsewhere := status.get("clusterName").text(""):
        return f"runs on the cluster {elsewhere} (MultiKueue): asks for nothing here", []
    if any(each.get("state").value == "Rejected" for each in status.get("admissionChecks").items()):
        return "an admission check has rejected it: asks for nothing", []
    if any(kind == "Pod" and f"{space}/{name}" in listed.names for kind, space, name in _owners(part)):
        return "its pods are listed", []
    admitted = bool(true & {"Admitted", "QuotaReserved"}) and "Evicted" not in true
    given = {each["name"].text(): each for each in status.get("admission").get("podSetAssignments").items()} if admitted else {}
    ended = {each["name"].text(): each["count"].number() for each in status.get("reclaimablePods").items()}
    wishes = []
    for each in spec["podSets"].items():
        name = each.get("name").text("main")
        count = (given[name].get("count") if name in given and "count" in given[name] else each.get("count")).number(1.0)
        number = count - ended.get(name, 0.0)
        if number > 0:
            pod = _made(part, each["template"], name, {_QUEUE_NAME: spec.get("queueName").text("")}, number, owner)
            if not admitted:
                pod = replace(pod, gang="/".join(_name(part)), least=min(each.get("minCount").number(number), number))
            wishes.append(_Wish(pod, admitted))
    return "", wishes


def _of_jobs(part: Part, owner: _Owner) -> tuple[str, list[_Wish]]:
    spec, status = part["spec"], part.get("status")
    true = {each["type"].text() for each in status.get("conditions").items() if each.get("status").value == "True"}
    if true & {"Complete", "Completed", "Failed"}:
        return "finished: asks for nothing", []
    if spec.get("suspend").value is not True:
        return "not suspended: its pods stand for it", []
    if kind_of(part) == _JOB:
        return "", _of_job(part, spec, "", 1.0, status.get("succeeded").number(0.0), owner)
    wishes = []
    for each in spec["replicatedJobs"].items():
        wishes += _of_job(part, each["template"]["spec"], each.get("name").text(""), each.get("replicas").number(1.0), 0.0, owner)
    return "", wishes


def _of_job(part: Part, spec: Part, name: str, replicas: float, succeeded: float, owner: _Owner) -> list[_Wish]:
    parallelism = spec.get("parallelism").number(1.0)
    number = min(parallelism, spec.get("completions").number(parallelism + succeeded) - succeeded) * replicas
    queue = part["metadata"].get("labels").get(_QUEUE_NAME).text("")
    if number <= 0:
        return []
    pod = _made(part, spec["template"], name, {_QUEUE_NAME: queue}, number, owner)
    if queue:  # Kueue admits all pods of a Job together, or at least so many
        least = part["metadata"].get("annotations").get(_LEAST).text("")
        pod = replace(pod, gang="/".join(_name(part)), least=min(float(least), number) if least.isdecimal() else number)
    return [_Wish(pod)]


def _of_volcano_job(part: Part, listed: _Listed, owner: _Owner) -> tuple[str, list[_Wish]]:
    spec = part["spec"]
    phase = part.get("status").get("state").get("phase").text("")
    if phase in _ENDED:
        return f"ended ({phase}): asks for nothing", []
    wishes = []
    replicas = [each.get("replicas").number(1.0) for each in spec["tasks"].items()]
    optional = sum(replicas) - spec.get("minAvailable").number(sum(replicas))
    waits = not any(space == _space(part) and job == part["metadata"]["name"].text() for space, job, _ in listed.tasks)
    for each, several in zip(spec["tasks"].items(), replicas, strict=True):
        name = each.get("name").text("")
        number = several - listed.tasks[_space(part), part["metadata"]["name"].text(), name]
        if number > 0:
            pod = _made(part, each["template"], name, {_VOLCANO_QUEUE: spec.get("queue").text("") or "default"}, number, owner)
            wishes.append(_Wish(_with_gang(pod, part, optional) if waits else pod))
    return ("" if wishes else "its pods are listed"), wishes


def _of_group(part: Part, listed: _Listed, owner: _Owner) -> tuple[str, list[_Wish]]:
    spec, name = part["spec"], part["metadata"]["name"].text()
    phase = part.get("status").get("phase").text("")
    if phase in ("Completed", "Finished", "Failed"):
        return f"ended ({phase}): asks for nothing", []
    if (_space(part), name) in listed.groups:
        return "its pods are listed", []
    if kind_of(part) == _KAI_GROUP:
        return _of_kai_group(part, listed, owner)
    number, least = _members(part), amounts_of(spec.get("minResources"))
    least = {
        resource: amount for resource, amount in least.items() if resource != "pods" and not resource.startswith(("limits.", "count/"))
    }
    least = {resource.removeprefix("requests."): amount for resource, amount in least.items()}
    if number < 1 or not least:
        return "it says neither minMember nor minResources, and no pod is in it", []
    pod = _made(part, Part({"spec": {"containers": []}}, part.place), "", {_VOLCANO_QUEUE: spec.get("queue").text("")}, number, owner)
    pod = replace(pod, request=add([pod.request, {resource: int(amount / number) for resource, amount in least.items()}]))
    return "", [_Wish(_with_gang(pod, part, 0.0))]


def _of_kai_group(part: Part, listed: _Listed, owner: _Owner) -> tuple[str, list[_Wish]]:
    spec, status = part["spec"], part.get("status")
    running, pending = (status.get(phase).number(0.0) for phase in ("running", "pending"))
    number, requested = running + pending or _members(part), amounts_of(status.get("resourcesStatus").get("requested"))
    if number < 1 or not requested:
        return "no pod is in it, and its status does not say what it requests", []
    pod = _made(part, Part({"spec": {"containers": []}}, part.place), "", {_KAI_QUEUE: spec.get("queue").text("")}, number, owner)
    pod = replace(pod, request=add([pod.request, {resource: int(amount / number) for resource, amount in requested.items()}]))
    pod = pod if running else _with_gang(pod, part, number - _members(part))
    runs = 0.0 if listed.names else running
    return "", [_Wish(replace(pod, number=own), admitted) for own, admitted in ((number - runs, False), (runs, True)) if own > 0]


def _members(part: Part) -> float:
    """Return how many pods of a PodGroup start together: ``minMember``, or those of its subgroups."""
    spec = part["spec"]
    return spec.get("minMember").number(0.0) or sum(each.get("minMember").number(0.0) for each in spec.get("subGroups").items())


def _made(part: Part, template: Part, name: str, marks: dict[str, str], number: float, owner: _Owner) -> Pod:
    """Return pods of a template, in the namespace of an object, with these labels where they are not empty."""
    given: dict[str, Any] = dict(template.get("metadata").entries())
    labels = {key: each.value for key, each in template.get("metadata").get("labels").entries().items()}
    metadata = {key: each.value for key, each in given.items()} | {
        "name": "/".join(filter(None, (part["metadata"]["name"].text(), name))),
        "namespace": _space(part),
        "labels": labels | {key: mark for key, mark in marks.items() if mark},
        "ownerReferences": [],
    }
    value = {"metadata": metadata, "spec": template["spec"].value, "status": {"phase": "Pending"}}
    return replace(read_pod(Part(value, part.place), owner), number=number)


def _not_listed(wishes: Sequence[Pod], pods: Sequence[Pod]) -> tuple[list[Pod], float]:
    """Return what is left of admitted pods beside those that are listed: of the same request first; and how many that are."""
    there: dict[str, Counter[tuple[tuple[str, int], ...]]] = {}
    for pod in pods:
        if not (pod.finished or pod.pinned):
            there.setdefault(_place(pod), Counter())[tuple(sorted(pod.request.items()))] += 1
    left = {n: wish.number for n, wish in enumerate(wishes)}
    for alike in (True, False):
        for n, wish in enumerate(wishes):
            for place in dict.fromkeys((_place(wish), f"{wish.space}:")):  # a pod that names no LocalQueue is in that of its namespace
                listed = there.get(place, Counter())
                for request in [tuple(sorted(wish.request.items()))] if alike else list(listed):
                    used = min(left[n], listed[request])
                    listed[request] -= int(used)
                    left[n] -= used
    return [replace(wish, number=left[n]) for n, wish in enumerate(wishes) if left[n] > 0], sum(left.values())


def _place(pod: Pod) -> str:
    """Return the namespace of a pod and the LocalQueue that it names."""
    labels = pod.part["metadata"].get("labels")
    name = labels.get(_QUEUE_NAME).text("") or labels.get("kueue.x-k8s.io/local-queue-name").text("")
    return f"{pod.space}:{name}"


def _in_queues_of_groups(parts: Sequence[Part], pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods; those in a PodGroup of Volcano or KAI have its queue as a label."""
    queues = {
        (_space(part), part["metadata"]["name"].text()): {_MARKS[kind_of(part)]: queue}
        for part in parts
        if kind_of(part) in _MARKS and (queue := part["spec"].get("queue").text(""))
    }
    if not queues:
        return list(pods)
    result = []
    for pod in pods:
        above = queues.get((pod.space, _group_of(pod)))
        if above is not None:
            metadata = pod.part.value["metadata"]
            labels = (metadata.get("labels") or {}) | above
            value = pod.part.value | {"metadata": metadata | {"labels": labels}}
            pod = replace(pod, part=Part(value, pod.part.file, pod.part.above, pod.part.key))
        result.append(pod)
    return result


def _with_gang(pod: Pod, part: Part, optional: float) -> Pod:
    """Return pods of one request as a part of the gang of an object, which starts without so many ``optional`` pods of any request."""
    return replace(pod, gang="/".join(_name(part)), least=min(max(pod.number - optional, 0.0), pod.number))


def _in_gangs(parts: Sequence[Part], pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods; those of a PodGroup of which none runs yet are its gang."""
    groups = {(_space(part), part["metadata"]["name"].text()): part for part in parts if kind_of(part) in _GROUPS and _members(part) > 1}
    members: dict[tuple[str, str], list[int]] = {}
    for n, pod in enumerate(pods):
        if not pod.finished and (key := (pod.space, _group_of(pod))) in groups:
            members.setdefault(key, []).append(n)
    result = list(pods)
    for key, own in members.items():
        if any(pods[n].node or pods[n].started for n in own):
            continue
        optional = sum(pods[n].number for n in own) - _members(groups[key])
        alike = Counter[tuple[tuple[str, int], ...]]()
        for n in own:
            alike[tuple(sorted(pods[n].request.items()))] += int(pods[n].number)
        for n in own:
            several = alike[tuple(sorted(pods[n].request.items()))]
            found = _with_gang(replace(pods[n], number=several), groups[key], optional)
            result[n] = replace(found, number=pods[n].number, least=found.least * pods[n].number / several)
    return result


def _group_of(pod: Pod) -> str:
    metadata = pod.part["metadata"]
    return next((text for key in _IN_GROUP for at in ("annotations", "labels") if (text := metadata.get(at).get(key).text(""))), "")


def _space(part: Part) -> str:
    return part["metadata"].get("namespace").text("") or "default"


def _name(part: Part) -> tuple[str, str, str]:
    return kind_of(part)[0], _space(part), part["metadata"]["name"].text()


def _owners(part: Part) -> list[tuple[str, str, str]]:
    """Return kind, namespace and name of what an object belongs to."""
    return [(each["kind"].text(), _space(part), each.get("name").text("")) for each in part["metadata"].get("ownerReferences").items()]
