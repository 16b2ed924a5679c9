"""Which pods stop together, and which must go on: what a plan needs to know of pods that run.

**Gangs.** Pods of one pod group (of Volcano, KAI, Kueue or the coscheduling plug-in) stop together, unless its PodGroup is in the export
and asks for one pod at least (``minMember: 1``), as for the pods of a Deployment.

**Protected** are pods of the classes ``system-node-critical`` and ``system-cluster-critical``, those that no autoscaler may evict
(``cluster-autoscaler.kubernetes.io/safe-to-evict: "false"``), and those that their scheduler may not preempt
(``volcano.sh/preemptable``, ``kai.scheduler/preemptibility``, ``quota.scheduling.koordinator.sh/preemptible``).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.clusters.json_export import Part
from fairopt.clusters.running import Name, of_several
from fairopt.kubernetes.reading import kind_of
from fairopt.kubernetes.records import Pod

__all__ = ["names_of"]

_GROUP = (
    "scheduling.k8s.io/group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "kueue.x-k8s.io/pod-group-name",
    "pod-group-name",
)
_CRITICAL = ("system-node-critical", "system-cluster-critical")
_STAYS = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "volcano.sh/preemptable": "false",
    "kai.scheduler/preemptibility": "non-preemptible",
    "quota.scheduling.koordinator.sh/preemptible": "false",
}


def names_of(pods: Sequence[Pod], objects: Sequence[Part]) -> list[Name]:
    """Return the names of pods that run, with their gangs; ``objects`` may be PodGroups."""
    single = {_key(part) for part in objects if kind_of(part)[0] == "PodGroup" and _least(part) == 1}
    found = []
    for pod in pods:
        marks = _marks(pod)
        group = next((marks[key] for key in _GROUP if marks.get(key)), "")
        gang = f"{pod.space}/{group}" if group and f"{pod.space}/{group}" not in single else ""
        stays = pod.priority in _CRITICAL or any(marks.get(key, "").lower() == value for key, value in _STAYS.items())
        found.append(Name(pod.name, gang, stays))
    return of_several(found)


def _marks(pod: Pod) -> dict[str, str]:
    """Return the labels and annotations of a pod that are text."""
    metadata = pod.part["metadata"]
    given = [each for key in ("labels", "annotations") if isinstance(each := metadata.get(key).value, dict)]
    return {key: value for each in given for key, value in each.items() if isinstance(value, str)}


def _key(part: Part) -> str:
    metadata = part["metadata"]
    return f"{metadata.get('namespace').text('') or 'default'}/{metadata['name'].text()}"


def _least(part: Part) -> float | None:
    value = part.get("spec").get("minMember").value
    return value if isinstance(value, int | float) else None
