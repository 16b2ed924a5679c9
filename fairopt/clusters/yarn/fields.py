"""The fields of YARN's answers about nodes and applications: which the import reads, which it notes, which it ignores, and why.

>>> APPLICATION.of("noted")["reservedMB"]
'memory that waits on a node for a container'
"""

from __future__ import annotations

from fairopt.clusters.fields import Seen, declared
from fairopt.clusters.json_export import Part
from fairopt.clusters.yarn.resources import one_or_more

__all__ = ["APPLICATION", "DECLARED", "NODE", "REQUEST", "see_application"]

NODE = declared(
    "node",
    """
    read | id, state, nodeLabels | its name, whether it accepts work, its partition
    read | usedMemoryMB, availMemoryMB, usedVirtualCores, availableVirtualCores | memory and virtual cores
    read | usedResource, availableResource, totalResource | every resource type
    noted | nodeAttributesInfo | attributes, which placement constraints may ask for
    noted | allocationTags | tags of its containers, which placement constraints may ask for
    noted | numRunningOpportContainers, usedMemoryOpportGB, usedVirtualCoresOpport | opportunistic containers, beyond what nodes guarantee
    ignored | numQueuedContainers | opportunistic containers that wait: they hold nothing
    ignored | numContainers | those of applications are counted
    ignored | rack, nodeHostName, nodeHTTPAddress, version | what it is called elsewhere
    ignored | healthStatus, healthReport, lastHealthUpdate | its state has it
    ignored | resourceUtilization, memUtilization, cpuUtilization | what processes use, not what they are given
    """,
)

APPLICATION = declared(
    "application",
    """
    read | id, user, queue, state | its name, whose it is, whether it has ended
    read | runningContainers, allocatedMB, allocatedVCores, resourceInfo | the containers that run
    read | resourceRequests | the containers that wait
    read | appNodeLabelExpression, elapsedTime | its partition where no request has one
    noted | priority | its place among the applications of its queue
    noted | reservedMB, reservedVCores | memory that waits on a node for a container
    noted | schedulingRequests | requests with placement constraints
    ignored | amNodeLabelExpression | of its first container, which runs or is asked for
    ignored | name, applicationType, applicationTags, clusterId, rmClusterId, appIdNum, appId, unmanagedApplication | what it is
    ignored | progress, finalStatus, diagnostics, startedTime, launchTime, finishedTime, timeouts, containerLogs | its course
    ignored | trackingUI, trackingUrl, trackingUrlPretty, trackingUrlIsNotReady, amContainerLogs | addresses
    ignored | amHostHttpAddress, amRPCAddress, masterNodeId, logAggregationStatus, isWaiting | addresses
    ignored | queueUsagePercentage, clusterUsagePercentage | what the amounts say
    ignored | memorySeconds, vcoreSeconds, resourceSecondsMap | its past
    ignored | preemptedResourceMB, preemptedResourceVCores, numNonAMContainerPreempted, numAMContainerPreempted | its past
    ignored | preemptedMemorySeconds, preemptedVcoreSeconds, preemptedResourceSecondsMap | its past
    """,
)

REQUEST = declared(
    "request",
    """
    read | numContainers, resourceName, capability, nodeLabelExpression | how many, of what size, in which partition
    noted | relaxLocality | only nodes or racks that it names
    noted | executionTypeRequest | guaranteed or opportunistic containers
    ignored | priority | its place among the requests of its application
    ignored | allocationRequestId, enforceExecutionType, profile | its number; the capability has the amounts of a profile
    """,
)

DECLARED = (NODE, APPLICATION, REQUEST)


def see_application(seen: Seen, part: Part) -> None:
    """Count the fields of an application that runs or waits, and of its requests for any node."""
    seen.see(APPLICATION, part.value)
    for request in one_or_more(part.get("resourceRequests")):
        if request.get("numContainers").value and request.get("resourceName").value in (None, "*"):
            kind = request.get("executionTypeRequest").value
            plain = not isinstance(kind, dict) or kind.get("executionType", "GUARANTEED") == "GUARANTEED"
            seen.see(
                REQUEST,
                request.value | {"relaxLocality": request.value.get("relaxLocality") is False, "executionTypeRequest": not plain},
            )
