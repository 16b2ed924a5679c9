"""A log from Kubernetes: the pods that ``kubectl get pods -A -o json`` lists, those that have ended too.

A pod is submitted when it is created. It starts when it is bound to a node (its condition ``PodScheduled``, else its ``startTime``), and
ends when its last container ends, else when it is deleted. A pod with scheduling gates is not ready before they are lifted, which the
export does not say: its waiting time is excluded. Pods of DaemonSets and static pods are left out, as they do not queue. Kubernetes forgets
pods that are deleted: export them often, into several files; a pod in several files counts once, as in the last of them. Parts of GPUs
count as in :mod:`fairopt.kubernetes.cards`; the memory of cards is not in a log, so there a pod that asks for memory takes a whole card.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairopt.clusters.account import Account
from fairopt.clusters.clock import Clock
from fairopt.clusters.json_export import Part
from fairopt.clusters.log_records import Records, distinct, nowhere, row_places, unknown_server
from fairopt.errors import InvalidInstance
from fairopt.instance import Instance
from fairopt.kubernetes.amounts import in_units
from fairopt.kubernetes.cards import Deck, gpu_of, holds_shared_card, taken_on
from fairopt.kubernetes.reading import read_objects
from fairopt.kubernetes.records import Pod, owner_of, read_pod
from fairopt.wording import plural

__all__ = ["read_pod_log"]

_PODS = "kubectl get pods -A -o json > pods.json"


def read_pod_log(
    paths: Sequence[str | os.PathLike[str]],
    cluster: Instance,
    *,
    users: str = "namespace",
    timezone: str | None = None,
    lenient: bool = False,
) -> Records:
    """Read the pods of one or several files.

    Parameters
    ----------
    users : str
        The owner of a pod, as for `fairopt.import_kubernetes`. Its queue is its namespace.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.
    """
    account, owner = Account(lenient), owner_of(users)
    clock = Clock(0.0, Clock.dates(timezone or "UTC").zone)
    listed: dict[str, Pod] = {}
    for path in paths:
        for pod in account.read(read_objects(Path(path), "Pod", _PODS), lambda part: read_pod(part, owner), "pod"):
            listed[str(pod.part["metadata"].get("uid").value or pod.name)] = pod
    every = list(listed.values())
    pods = [pod for pod in every if not (pod.pinned or holds_shared_card(pod))]
    if not pods:
        raise InvalidInstance(f"{', '.join(map(str, paths))}: there is no pod that queues; export the pods of all namespaces: {_PODS}")
    times = np.array([_times(pod, clock) for pod in pods], float)
    asked = np.array([[in_units(r, pod.request.get(r, 0)) for r in cluster.resources] for pod in pods], float)
    if (gpu := gpu_of(cluster.resources)) in cluster.resources:
        asked[:, cluster.resources.index(gpu)] += [float(taken_on(Deck(1), pod.cards)) for pod in pods]
    table, shape = distinct(asked)
    known, unknown = row_places(cluster, sorted({pod.node for pod in pods if pod.node}))
    gated = [bool(pod.part["spec"].get("schedulingGates").value) for pod in pods]
    records = Records(
        job=np.array([pod.name for pod in pods], object),
        user=np.array([pod.owner for pod in pods], object),
        queue=np.array([pod.name.partition("/")[0] for pod in pods], object),
        submit=times[:, 0],
        start=times[:, 1],
        end=times[:, 2],
        tasks=np.ones(len(pods)),
        shape=shape,
        demands=table,
        row=np.array([known.get(pod.node, -1) for pod in pods], np.int64),
        place=np.full(len(pods), -1),
        allowed=np.zeros((0, cluster.n_servers), bool),
        why=np.where(gated, "not ready: it has scheduling gates", "").astype(object),
        where=lambda n: pods[n].part.place,
        clock=clock,
        lenient=lenient,
    )
    pinned = sum(bool(pod.pinned) for pod in every)
    if pinned:
        records.notes.append(f"{pinned:,} pods of DaemonSets and static pods are left out, as they do not queue")
    if len(every) > len(pods) + pinned:
        records.notes.append(
            f"{len(every) - len(pods) - pinned:,} pods of KAI's own, for GPUs that pods share, are left out: the parts count"
        )
    claiming = sum(bool(pod.claims) for pod in pods)
    if claiming:
        records.notes.append(f"{plural(claiming, 'pod claims', 'pods claim')} devices, which a log of pods does not count")
    by_memory = sum(any(each.memory for each in pod.cards) for pod in pods)
    if by_memory:
        records.notes.append(f"{plural(by_memory, 'pod asks', 'pods ask')} for memory of a GPU, and count with a whole one")
    if known and unknown:
        bad = np.isin([pod.node for pod in pods], unknown)
        records.keep(records.refuse(bad, lambda n: unknown_server(pods[n].node, cluster)))
    elif unknown:
        records.notes.append(nowhere(unknown[0], cluster, "pods"))
    return records


def _times(pod: Pod, clock: Clock) -> tuple[float, float, float]:
    """Return when a pod was created, bound and ended; nan: not."""
    metadata, status = pod.part["metadata"], pod.part.get("status")
    bound: Any = next(
        (
            each.get("lastTransitionTime")
            for each in status.get("conditions").items()
            if each.get("type").value == "PodScheduled" and each.get("status").value == "True"
        ),
        status.get("startTime"),
    )
    created, start = _time(metadata["creationTimestamp"], clock), _time(bound, clock)
    ends = [_time(each.get("state").get("terminated").get("finishedAt"), clock) for each in status.get("containerStatuses").items()]
    end = np.nan
    if pod.finished:
        end = max([time for time in ends if np.isfinite(time)], default=np.nan)
        end = start if np.isnan(end) else end
    elif metadata.get("deletionTimestamp").value:
        end = _time(metadata["deletionTimestamp"], clock)
    return created, start, max(end, start) if np.isfinite(start) and np.isfinite(end) else end


def _time(part: Part, clock: Clock) -> float:
    if not part.value:
        return float("nan")
    try:
        return float(clock.seconds([part.text()])[0])
    except (ValueError, TypeError):
        part.refuse("expected a time such as 2026-11-22T15:02:00Z")
