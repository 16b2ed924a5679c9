"""ElasticQuotas (``scheduling.sigs.k8s.io``): ``min`` is the guarantee and ``max`` the limit, of scheduler-plugins and of Koordinator.

In scheduler-plugins a quota is that of its namespace, and what no quota uses of its ``min`` may be borrowed up to ``max``: first come,
first served, for which an instance has equal weights. In Koordinator quotas are a tree by labels,
``quota.scheduling.koordinator.sh/parent``; the weight is the dominant share of the annotation ``shared-weight``, else of ``max``; a quota
that does not lend says ``allow-lent-resource: "false"``; a pod names its quota in a label, else it is in the one that has the name of its
namespace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.clusters.nested_guarantees import scaled
from fairopt.clusters.queue_tree import fitted
from fairopt.kubernetes.scheduler_queues import Cluster, SchedulerQueues, by_name, check_parents, in_cluster_units, made

__all__ = ["ElasticQuotas"]

_KEY = "quota.scheduling.koordinator.sh/"
_ROOT = "koordinator-root-quota"


class ElasticQuotas(SchedulerQueues):
    """Queues of ElasticQuotas: each is a queue, in which its namespace is."""

    name = "ElasticQuota"

    def __init__(self, parts: Sequence[Part], cluster: Cluster, account: Account) -> None:
        koordinator = any(
            key.startswith(_KEY) for part in parts for at in ("labels", "annotations") for key in part["metadata"].get(at).entries()
        )
        spaces = [part["metadata"].get("namespace").text("") or "default" for part in parts]
        self._names: dict[str, str] = {}
        if koordinator:
            self.name = "Koordinator's ElasticQuota"
            listed = {name: part for name, part in by_name(parts, account).items() if name != _ROOT}
            labels = {name: part["metadata"].get("labels") for name, part in listed.items()}
            above = {name: labels[name].get(f"{_KEY}parent").text("") for name in listed}
            parents: dict[str, str | None] = {name: None if parent in ("", _ROOT) else parent for name, parent in above.items()}
        else:
            several = {part["metadata"]["name"].text() for part in parts}
            once = len(several) == len(parts)
            listed = {}
            for part, space in zip(parts, spaces, strict=True):
                name = part["metadata"]["name"].text()
                if space in self._names:
                    account.bad("ElasticQuota", part.place, f'"{space}" has another ElasticQuota, "{self._names[space]}"; give one of them')
                    continue
                self._names[space] = name if once else f"{space}/{name}"
                listed[self._names[space]] = part
            parents = dict.fromkeys(listed)
        check_parents(parents, listed)
        self._koordinator = koordinator
        self.queues = []
        for name, part in listed.items():
            spec, metadata = part.get("spec"), part["metadata"]
            limit = in_cluster_units(spec.get("max"))
            guarantee = fitted(name, in_cluster_units(spec.get("min")), limit, account)
            weight = 1.0
            if koordinator:
                given = metadata.get("annotations").get(f"{_KEY}shared-weight")
                weight = _share(_decoded(given) if given.value else limit, cluster)
            keeps = metadata.get("labels").get(f"{_KEY}allow-lent-resource").text("") == "false"
            lending = dict.fromkeys(guarantee, 0.0) if koordinator and keeps else {}
            self.queues.append(made(part, name, parents[name], weight, guarantee, limit, lending))
        if koordinator:
            self.queues = scaled(self.queues, cluster.total, self.meaning, "Koordinator", account)
        else:
            account.note("ElasticQuotas are borrowed first come, first served: here those who borrow have equal weights")

    @staticmethod
    def reads(kind: str, group: str) -> bool:
        """Return whether objects of a kind are ElasticQuotas."""
        return kind == "ElasticQuota" and group in ("scheduling.sigs.k8s.io", "scheduling.x-k8s.io")

    def queue_of(self, pod: Part, namespace: str) -> str | None:
        """Return the quota of the namespace of a pod; in Koordinator the one that the pod names."""
        if not self._koordinator:
            return self._names.get(namespace)
        names = {queue.name for queue in self.queues}
        name = pod.get("metadata").get("labels").get(f"{_KEY}name").text("") or namespace
        return name if name in names else None


def _decoded(part: Part) -> dict[str, float]:
    """Read amounts of resources that an annotation writes as JSON."""
    try:
        value: Any = json.loads(part.text())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        part.refuse('expected JSON, such as {"cpu": 40, "memory": "100Gi"}')
    return in_cluster_units(Part(value, part.file, part.above, part.key))


def _share(amounts: Mapping[str, float], cluster: Cluster) -> float:
    """Return the dominant share of amounts in the cluster; 1 where no amount is given."""
    return max((amount / cluster.total[resource] for resource, amount in amounts.items() if cluster.total.get(resource)), default=1.0)
