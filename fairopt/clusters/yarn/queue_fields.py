"""What YARN says of queues: in its answers, in ``capacity-scheduler.xml`` and in the allocation file of the Fair Scheduler.

>>> SETTING.of("noted")["maximum-applications"]
'how many applications it takes'
"""

from __future__ import annotations

from fairopt.clusters.fields import declared

__all__ = ["ALLOCATION", "CAPACITY_QUEUE", "DECLARED", "FAIR_ANSWER", "FAIR_QUEUE", "SETTING", "SETTING_OF_ALL"]

CAPACITY_QUEUE = declared(
    "Capacity Scheduler queue",
    """
    read | queueName, queuePath, queues, state | its name, its place in the tree, and whether it takes applications
    read | capacities, absoluteCapacity, absoluteMaxCapacity, maxCapacity, weight | its guarantee, its maximum, its weight
    read | userLimitFactor, userLimit | what one user may hold in it
    read | orderingPolicyInfo, queuePriority | the order of its applications, or of the queues in it
    noted | defaultNodeLabelExpression | the partition of containers that name none, which the answer about applications has
    noted | defaultPriority | the priority of applications that state none
    noted | maxParallelApps | how many applications run at once
    ignored | type, mode, queueType, creationMethod, capacityVector, capacity, isAbsoluteResource | the capacities have it
    ignored | normalizedWeight, minEffectiveCapacity, maxEffectiveCapacity, autoCreationEligibility | the capacities have it
    ignored | usedCapacity, absoluteUsedCapacity, usedResources, resourcesUsed, resources | what applications hold
    ignored | numApplications, numActiveApplications, numPendingApplications, numContainers, users | what applications hold
    ignored | allocatedContainers, pendingContainers, reservedContainers | what applications hold
    ignored | nodeLabels | the labels that it may use: requests for others are refused when they are made
    ignored | maxApplications, maxApplicationsPerUser | applications that exist have been taken
    ignored | AMResourceLimit, usedAMResource, userAMResourceLimit, userAMResourceUsage | how many applications run at once
    read | maximumAllocation | the largest container
    ignored | maximumAllocationVCores, maximumAllocationMB | maximumAllocation has it
    ignored | hideReservationQueues, reservationQueue, queueAcls, preemptionDisabled, intraQueuePreemptionDisabled | how it gets there
    ignored | maxApplicationLifetime, defaultApplicationLifetime, expirationTime | how long applications run
    ignored | autoCreateChildQueueEnabled, leafQueueTemplate, autoQueueTemplateProperties, autoQueueParentTemplateProperties | new queues
    ignored | autoQueueLeafTemplateProperties, isAutoCreatedLeafQueue, dynamicQueue | new queues
    """,
)

FAIR_ANSWER = declared(
    "Fair Scheduler queue",
    """
    read | queueName, childQueues, weight, steadyFairResources | its name, its place in the tree, its weight
    read | minResources, maxResources, clusterResources | its guarantee and its maximum
    read | schedulingPolicy | the order of its applications
    noted | maxApps | how many applications run at once
    read | maxContainerAllocation | the largest container
    ignored | type, fairResources, demandResources, usedResources, amUsedResources, amMaxResources | what applications hold
    ignored | allocatedContainers, pendingContainers, reservedContainers, numPendingApps, numActiveApps | what applications hold
    ignored | reservedResources, maxResourcesForChildren | what applications hold, and maxima of new queues
    ignored | preemptable, maxAMShare | how it gets there
    """,
)

SETTING = declared(
    "configured Capacity Scheduler queue",
    """
    read | queues, capacity, maximum-capacity, state | the tree, guarantees and maxima, whether it takes applications
    read | accessible-node-labels | the labels that it may use
    read | accessible-node-labels.LABEL.capacity, accessible-node-labels.LABEL.maximum-capacity | guarantees and maxima on their nodes
    read | user-limit-factor, minimum-user-limit-percent | what one user may hold in it
    read | ordering-policy, priority | the order of its applications, or of the queues in it
    noted | maximum-applications | how many applications it takes
    noted | max-parallel-apps | how many applications run at once
    noted | maximum-am-resource-percent | how much of it the first containers of applications may use
    noted | accessible-node-labels.LABEL.maximum-am-resource-percent | how much of it the first containers of applications may use
    read | maximum-allocation-mb, maximum-allocation-vcores, maximum-allocation | the largest container
    noted | default-node-label-expression | the partition of containers that name none
    noted | user-settings.NAME.weight | a user who may have more than others in it
    noted | ordering-policy.fair.enable-size-based-weight | larger applications have more
    noted | auto-create-child-queue, leaf-queue-template, auto-queue-creation-v2 | queues that it makes for new users
    noted | multi-node-sorting | which nodes it takes first
    noted | reservable | whether a part of it can be reserved
    ignored | acl_submit_applications, acl_administer_queue, acl_administer_reservations, acl_list_reservations | rights
    ignored | acl_submit_reservations, acl_application_max_priority | rights
    ignored | disable_preemption, intra-queue-preemption.disable_preemption | how YARN gets to its capacities
    ignored | maximum-application-lifetime, default-application-lifetime, default-application-priority | how long applications run
    ignored | allow-zero-capacity-sum | whether YARN refuses sums of 0
    """,
)

SETTING_OF_ALL = declared(
    "Capacity Scheduler file",
    """
    read | resource-calculator | whether resources other than memory count
    read | user-limit-factor, minimum-user-limit-percent | what one user may hold in a queue
    noted | maximum-applications | how many applications there are at most
    noted | max-parallel-apps, user.max-parallel-apps, user.NAME.max-parallel-apps | how many applications run at once
    noted | maximum-am-resource-percent | how much the first containers of applications may use
    ignored | queue-mappings, queue-mappings-override.enable, app-name-queue-mappings, override-with-queue-mappings | the queue of new work
    ignored | mapping-rule-json, mapping-rule-file, mapping-rule-format | the queue of new work
    ignored | workflow-priority-mappings, workflow-priority-mappings-override.enable | the priority of new work
    ignored | node-locality-delay, rack-locality-additional-delay, rack-locality-full-reset | which node first
    ignored | offswitch-per-heartbeat-limit, multi-node-placement-enabled, multi-node-sorting | which node first
    ignored | per-node-heartbeat.multiple-assignments-enabled, per-node-heartbeat.maximum-container-assignments | how fast it works
    ignored | per-node-heartbeat.maximum-offswitch-assignments, schedule-asynchronously.enable, schedule-asynchronously | how fast it works
    ignored | application.fail-fast, legacy-queue-mode.enabled, lazy-preemption-enabled, user-metrics.enable | how it works
    ignored | skip-allocate-on-nodes-with-reserved-containers, reservations-continue-look-all-nodes | how it works
    ignored | configuration.store.class | how it works
    """,
)

FAIR_QUEUE = declared(
    "configured Fair Scheduler queue",
    """
    read | minResources, maxResources, weight | its guarantee, its maximum, its weight
    read | schedulingPolicy, schedulingMode | how what it has is divided
    noted | root.minResources, root.maxResources | limits of the whole cluster
    noted | maxRunningApps | how many applications run at once
    noted | maxAMShare | how much of it the first containers of applications may use
    read | maxContainerAllocation | the largest container
    noted | maxChildResources | the maximum of queues that it makes for new users
    noted | reservation | whether a part of it can be reserved
    ignored | aclSubmitApps, aclAdministerApps, aclAdministerReservations, aclListReservations, aclSubmitReservations | rights
    ignored | minSharePreemptionTimeout, fairSharePreemptionTimeout, fairSharePreemptionThreshold, allowPreemptionFrom | how it gets there
    """,
)

ALLOCATION = declared(
    "allocation file",
    """
    read | queueMaxResourcesDefault | the maximum of a queue without one
    read | defaultQueueSchedulingPolicy, defaultQueueSchedulingMode | how what a queue has is divided
    noted | user.maxRunningApps, userMaxAppsDefault | how many applications of a user run at once
    noted | queueMaxAppsDefault | how many applications run at once
    noted | queueMaxAMShareDefault | how much of a queue the first containers of applications may use
    ignored | user | is counted by its maxRunningApps
    ignored | queuePlacementPolicy | the queue of new applications
    ignored | defaultMinSharePreemptionTimeout, defaultFairSharePreemptionTimeout, defaultFairSharePreemptionThreshold | how it gets there
    ignored | fairSharePreemptionTimeout, reservation-agent, reservation-policy, reservation-planner | how it works
    """,
)

DECLARED = (CAPACITY_QUEUE, SETTING, SETTING_OF_ALL, FAIR_ANSWER, FAIR_QUEUE, ALLOCATION)
