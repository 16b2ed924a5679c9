"""The fields of Kubernetes' objects: which the import reads, which it notes, which it ignores, and why. Names are those of their ``spec``.

>>> OF_KIND["ClusterQueue", "kueue.x-k8s.io"].of("read")["stopPolicy"]
'whether it starts anything'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairopt.clusters.account import Account
from fairopt.clusters.fields import Fields, Seen, declared
from fairopt.clusters.json_export import Part
from fairopt.kubernetes.devices import CONFIGURATION
from fairopt.kubernetes.reading import kind_of

__all__ = ["DECLARED", "OF_KIND", "note_fields"]

_NODE = declared(
    "node",
    """
    read | unschedulable, taints | whether it accepts work, and whose
    ignored | podCIDR, podCIDRs, providerID, externalID, configSource | addresses, and names
    """,
)
_POD = declared(
    "pod",
    """
    read | containers, initContainers, overhead, resources | what it asks for
    read | nodeName, nodeSelector, affinity, tolerations | where it runs, or may run (affinity: required affinity to nodes)
    read | topologySpreadConstraints | required spread over nodes is counted in a note, and so is required affinity between pods
    read | schedulerName, priorityClassName | its queue, and its class, which may be its owner
    noted | schedulingGates | it is not ready to be scheduled yet
    read | resourceClaims | devices that it claims
    noted | workloadRef, schedulingGroup | the gang that it belongs to
    read | priority | a tier, where the scheduler of Kubernetes itself divides the cluster; else noted where classes differ
    read | preemptionPolicy | whether others are stopped for it: counted in a note, where priorities are tiers
    ignored | volumes | what it mounts; that a volume is on one node or in one zone is not in the export of pods
    ignored | activeDeadlineSeconds, restartPolicy, terminationGracePeriodSeconds | how long it runs, and how it ends
    ignored | ephemeralContainers | containers for debugging, which ask for nothing
    ignored | serviceAccountName, serviceAccount, automountServiceAccountToken, imagePullSecrets, securityContext | rights
    ignored | hostNetwork, hostPID, hostIPC, hostUsers, shareProcessNamespace, runtimeClassName, os | how it runs on its node
    ignored | dnsPolicy, dnsConfig, hostname, hostnameOverride, subdomain, setHostnameAsFQDN, hostAliases, enableServiceLinks | names
    ignored | readinessGates | when it counts as ready
    """,
)
_CONTAINER = declared(
    "container",
    """
    read | resources, restartPolicy | what it asks for; an init container that restarts is a sidecar
    ignored | name, image, imagePullPolicy, command, args, workingDir, env, envFrom, stdin, stdinOnce, tty | what runs
    ignored | ports, volumeMounts, volumeDevices, securityContext, resizePolicy, restartPolicyRules | how it runs on its node
    ignored | lifecycle, livenessProbe, readinessProbe, startupProbe, terminationMessagePath, terminationMessagePolicy | how it is watched
    """,
)
_ANNOTATION = declared(
    "pod in its annotations",
    """
    read | gpu-fraction, gpu-memory, gpu-fraction-num-devices | parts of GPUs, which KAI reads
    noted | nvidia.com/use-gputype, nvidia.com/nouse-gputype, nvidia.com/use-gpuuuid, nvidia.com/nouse-gpuuuid | which GPUs HAMi takes
    noted | nvidia.com/vgpu-mode | how HAMi divides the GPUs that it takes
    noted | kueue.x-k8s.io/podset-required-topology, kueue.x-k8s.io/podset-preferred-topology | its gang is near each other (Kueue)
    noted | kueue.x-k8s.io/podset-slice-required-topology | parts of its gang are near each other (Kueue)
    ignored | gpu-fraction-container-name, gpu-memory.limit, gpu-fraction.limit, mps | how its containers share what it takes of GPUs
    """,
)
_OF_KUEUE = {
    "ClusterQueue": """
    read | resourceGroups, cohort, cohortName | its quotas by flavor, whose order is noted, and its cohort
    read | fairSharing | its weight; 0 borrows last
    read | stopPolicy | whether it starts anything
    read | admissionChecks, admissionChecksStrategy | whether MultiKueue sends its work away; other checks are counted in a note
    ignored | namespaceSelector | which LocalQueues may point to it: Kueue has checked it
    ignored | queueingStrategy, admissionScope | the order of Workloads that wait, which divides nothing in the long run
    ignored | preemption, flavorFungibility, concurrentAdmissionPolicy | how Kueue gets to its quotas, and which flavor it tries first
    """,
    "Cohort": """
    read | resourceGroups, parent, parentName | its quotas by flavor, and the cohort above
    read | fairSharing | its weight; 0 borrows last
    """,
    "LocalQueue": """
    read | clusterQueue, fairSharing, stopPolicy | its ClusterQueue, its weight, and whether it starts anything
    """,
    "ResourceFlavor": """
    read | nodeLabels, tolerations | its nodes, and the taints of theirs that pods in it tolerate
    read | topologyName | its nodes have the labels of the levels of that Topology, where it is given
    ignored | nodeTaints | taints of its nodes, which the nodes have themselves
    """,
    "AdmissionCheck": """
    read | controllerName | whether it sends Workloads to other clusters (MultiKueue)
    ignored | parameters, retryDelayMinutes | how it works
    """,
    "Topology": """
    read | levels | the labels that its nodes have
    """,
    "Workload": """
    read | podSets, queueName, active | its pods, its LocalQueue, and whether it is deactivated
    ignored | priority, priorityClassName, priorityClassSource, priorityClassRef | the order of Workloads that wait
    ignored | maximumExecutionTimeSeconds, preemptionGates | how long it runs, and what it waits for
    """,
}
_POD_SET = declared(
    "pod set of a Workload",
    """
    read | name, count, minCount, template | its pods, and how many of them are enough
    noted | topologyRequest | its pods are near each other
    """,
)
_OF_VOLCANO = {
    "Queue": """
    read | weight, capability, deserved, guarantee, parent, priority | what it gets, and its place in the tree
    read | affinity | the groups of nodes that its pods run on
    noted | dequeueStrategy | whether a gang that does not fit holds up those behind it
    read | reclaimable | whether what runs in it may be stopped is said in a note
    ignored | type, extendClusters | other clusters
    """,
    "Job": """
    read | tasks, queue | its pods, and its queue
    read | minAvailable | gangs are counted in a note
    noted | networkTopology | its pods are near each other
    ignored | schedulerName, plugins, policies, maxRetry, ttlSecondsAfterFinished, volumes | how it runs, and how it ends
    ignored | runningEstimate, priorityClassName, minSuccess | the order of Jobs that wait, and when it has succeeded
    """,
    "PodGroup": """
    read | queue, minMember, minResources | its queue, and what it asks for while it has no pods
    noted | networkTopology, subGroupPolicy | its pods are near each other
    ignored | priorityClassName, minTaskMember, scheduleTimeoutSeconds | its order, and which pods make it a gang
    """,
}
_OF_KAI = {
    "Queue": """
    read | parentQueue, resources, priority | its place in the tree, its quotas, weights and limits, and its tier
    noted | preemptMinRuntime, reclaimMinRuntime | how long what runs is not stopped
    ignored | displayName | its name for people
    """,
    "PodGroup": """
    read | queue | its queue
    read | minMember, subGroups | how many pods start together: gangs are counted in a note
    noted | topologyConstraint | its pods are near each other
    noted | preemptibility | what may not be stopped stays within its quota
    ignored | minSubGroup | how many of its subgroups must start
    ignored | priorityClassName, schedulingBackoff | its order
    ignored | markUnschedulable | what is said about it
    """,
}
_OF_JOBS = {
    "Job": """
    read | suspend, parallelism, completions, template | its pods, while it is suspended
    ignored | activeDeadlineSeconds, backoffLimit, backoffLimitPerIndex, maxFailedIndexes, ttlSecondsAfterFinished | how it ends
    ignored | completionMode, manualSelector, selector, podFailurePolicy, podReplacementPolicy, successPolicy, managedBy | how it runs
    """,
    "JobSet": """
    read | suspend, replicatedJobs | its pods, while it is suspended
    ignored | coordinator, dependsOn, failurePolicy, successPolicy, startupPolicy, network, managedBy | how it runs, and how it ends
    ignored | ttlSecondsAfterFinished, volumeClaimPolicies | how it ends
    """,
}
_OF_QUOTAS = {
    "ElasticQuota": """
    read | min, max | the guarantee and the limit
    """,
    "ResourceQuota": """
    read | hard, scopes, scopeSelector | limits of requests; a quota of some pods only is left out
    """,
}
_OF_DEVICES = {
    "DeviceClass": """
    read | selectors, extendedResourceName | which devices are of it, and the resource that stands for them
    noted | suitableNodes | the nodes that have its devices
    ignored | config | how its devices are set up
    """,
    "ResourceSlice": """
    read | driver, pool, nodeName, devices | the devices of a node
    noted | sharedCounters | what partitions of a device share
    ignored | nodeSelector, allNodes, perDeviceNodeSelection | devices of no single node are counted in a note
    """,
    "ResourceClaim": """
    read | devices | what it asks for
    """,
    "ResourceClaimTemplate": """
    read | spec | what its claims ask for
    ignored | metadata | labels of its claims
    """,
}
_DEVICE = declared(
    "device",
    """
    read | name, attributes, capacity, nodeName, taints, basic | what selectors choose by, its node, and whether it is offered
    noted | consumesCounters | what it shares with other partitions of the same device: each counts as a device of its own
    read | allowMultipleAllocations | whether several claims may share it
    ignored | nodeSelector, allNodes | devices of no single node are counted in a note
    ignored | bindsToNode, bindingConditions, bindingFailureConditions | what must hold before a pod starts
    """,
)
_DEVICE_REQUEST = declared(
    "request for devices",
    """
    read | exactly, firstAvailable, deviceClassName, selectors, allocationMode, count, adminAccess | which devices, and how many
    read | capacity | how much of a device it takes
    noted | tolerations | taints of devices that it tolerates
    ignored | name | its name
    """,
)
_CONFIGURED = declared(
    "configuration of Kueue in its resources",
    """
    read | deviceClassMappings | the resource that devices of a class are
    noted | excludeResourcePrefixes | resources that no quota counts
    noted | transformations | resources that count as others
    ignored | quotaCheckStrategy | what Kueue says of resources without a quota
    """,
)
OF_KIND: dict[tuple[str, str], Fields] = {
    **{(kind, "kueue.x-k8s.io"): declared(kind, text) for kind, text in _OF_KUEUE.items()},
    ("Queue", "scheduling.volcano.sh"): declared("Volcano queue", _OF_VOLCANO["Queue"]),
    ("Job", "batch.volcano.sh"): declared("Volcano job", _OF_VOLCANO["Job"]),
    **{
        ("PodGroup", f"scheduling.{end}"): declared("PodGroup", _OF_VOLCANO["PodGroup"])
        for end in ("volcano.sh", "x-k8s.io", "sigs.k8s.io")
    },
    ("Queue", "scheduling.run.ai"): declared("KAI queue", _OF_KAI["Queue"]),
    ("PodGroup", "scheduling.run.ai"): declared("KAI PodGroup", _OF_KAI["PodGroup"]),
    ("Job", "batch"): declared("Job", _OF_JOBS["Job"]),
    ("JobSet", "jobset.x-k8s.io"): declared("JobSet", _OF_JOBS["JobSet"]),
    **{("ElasticQuota", f"scheduling.{end}"): declared("ElasticQuota", _OF_QUOTAS["ElasticQuota"]) for end in ("sigs.k8s.io", "x-k8s.io")},
    ("ResourceQuota", ""): declared("ResourceQuota", _OF_QUOTAS["ResourceQuota"]),
    **{(kind, "resource.k8s.io"): declared(kind, text) for kind, text in _OF_DEVICES.items()},
}
"""The fields of each kind of object, with the group of its API."""
DECLARED: tuple[Fields, ...] = tuple(
    dict.fromkeys((_NODE, _POD, _CONTAINER, _ANNOTATION, *OF_KIND.values(), _POD_SET, _DEVICE, _DEVICE_REQUEST, _CONFIGURED))
)
"""All of them, in the order in which the documentation shows them."""


_ANNOTATIONS = frozenset(name for field in _ANNOTATION.fields for name in field.names)


def note_fields(nodes: Iterable[Part], pods: Iterable[Part], objects: Sequence[Part], account: Account) -> None:
    """Note the fields of all objects that an instance does not have, and those that are not declared."""
    seen = Seen()
    for part in nodes:
        seen.see(_NODE, _spec(part))
    for part in pods:
        spec = _spec(part)
        seen.see(_POD, spec)
        given = part.get("metadata").get("annotations").value if isinstance(part.value, dict) else None
        if isinstance(given, dict):
            seen.see(_ANNOTATION, {name: text for name, text in given.items() if name in _ANNOTATIONS})
        for kind in ("containers", "initContainers"):
            containers = spec.get(kind)
            for container in containers if isinstance(containers, list) else ():
                seen.see(_CONTAINER, container)
    for part in objects:
        if kind_of(part) in OF_KIND:
            seen.see(OF_KIND[kind_of(part)], _spec(part))
        for each in _listed(_spec(part), "podSets") if kind_of(part)[0] == "Workload" else ():
            seen.see(_POD_SET, each)
        _see_devices(seen, part)
    for note in seen.notes():
        account.note(note)


def _see_devices(seen: Seen, part: Part) -> None:
    """Count the fields of devices, of requests for some, and of Kueue's configuration."""
    kind, spec = kind_of(part)[0], _spec(part)
    if kind == "ResourceSlice":
        for device in _listed(spec, "devices"):
            seen.see(_DEVICE, device)
            seen.see(_DEVICE, device.get("basic") if isinstance(device, dict) else None)
    elif kind in ("ResourceClaim", "ResourceClaimTemplate"):
        inner = spec.get("spec") if kind == "ResourceClaimTemplate" else spec
        devices = inner.get("devices") if isinstance(inner, dict) else None
        for request in _listed(devices, "requests"):
            seen.see(_DEVICE_REQUEST, request)
            seen.see(_DEVICE_REQUEST, request.get("exactly") if isinstance(request, dict) else None)
            for alternative in _listed(request, "firstAvailable"):
                seen.see(_DEVICE_REQUEST, alternative)
    elif kind_of(part) == CONFIGURATION:
        seen.see(_CONFIGURED, part.get("resources").value)


def _listed(value: Any, key: str) -> list[Any]:
    """Return a list under a key; a bad one, which a lenient import leaves out, has nothing."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _spec(part: Part) -> dict[str, Any]:
    """Return the spec of an object; a bad one, which a lenient import leaves out, has no fields."""
    spec = part.get("spec").value if isinstance(part.value, dict) else None
    return spec if isinstance(spec, dict) else {}
