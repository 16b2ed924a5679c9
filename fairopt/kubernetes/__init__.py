"""Kubernetes and its schedulers of queues: what they write and what they read.

====================  ===================================================================================
``importing``         `import_kubernetes`: ``kubectl get nodes -o json``, ``kubectl get pods -A -o json``
``reading``           the objects in a file or in the standard input, JSON or YAML
``fields``            the fields of objects: read, noted or ignored, and why
``records``           nodes and pods as records: what a node offers, what a pod asks for
``amounts``           amounts as whole numbers of 1e-9, and in the units of an instance
``placement``         where a pod may run: taints, selectors and node affinity
``cards``             parts of GPUs (KAI, HAMi)
``devices``           devices of nodes (DRA)
``device_claims``     the devices that pods claim
``device_selectors``  the expressions that choose among devices
``priorities``        priorities of pods as tiers
``workloads``         objects that ask for pods that do not exist yet
``own_limits``        pods and gangs that are larger than their queue's limit and never start
``stops``             which pods stop together, and which must go on: for a plan
``queues``            the queues in a file, of whichever scheduler it is
``scheduler_queues``  what the queues of all schedulers share
``kueue_queues``      Kueue: Cohorts, ClusterQueues, and the namespaces of LocalQueues
``kueue_checks``      Kueue: what AdmissionChecks and Topologies say of where work runs
``kueue_export``      an allocation as ResourceFlavors, Cohorts, ClusterQueues and LocalQueues
``volcano_queues``    Volcano: queues with weight, capability, deserved and guarantee
``volcano_export``    an allocation as queues of Volcano's capacity plugin
``kai_queues``        KAI: queues with quota, limit and weight over quota
``kai_export``        an allocation as queues of KAI
``yunikorn_queues``   YuniKorn: ``queues.yaml``, alone or in a ConfigMap
``yunikorn_fields``   its fields: read, noted or ignored, and why
``yunikorn_export``   an allocation as ``queues.yaml``
``elastic_quotas``    ElasticQuotas of scheduler-plugins and Koordinator: guarantee and limit
``quota_export``      an allocation as a ResourceQuota for each namespace
``objects``           what these exports share: names, quantities, objects as YAML
``pod_log``           a history of pods
====================  ===================================================================================
"""
