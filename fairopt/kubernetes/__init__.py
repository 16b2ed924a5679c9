"""Kubernetes and its schedulers of queues: what they write and what they read.

================================================  =================================================================================
``importing``                                     `import_kubernetes`: ``kubectl get nodes -o json``, ``kubectl get pods -A -o json``
``records``, ``placement``                        nodes and pods as records; taints, selectors and affinity
``queues``, ``scheduler_queues``                  queues and quotas of whichever scheduler a file is of, and what all of them share
``kueue_queues``, ``kueue_export``                Kueue: ResourceFlavors, Cohorts, ClusterQueues and LocalQueues
``volcano_queues``, ``volcano_export``            queues of Volcano's capacity plugin
``kai_queues``, ``kai_export``                    queues of KAI
``yunikorn_export``                               ``queues.yaml`` of YuniKorn
``quota_export``                                  a ResourceQuota for each namespace
``cards``                                         parts of GPUs (KAI, HAMi)
``devices``, ``device_claims``                    devices of nodes, and what pods claim of them (DRA)
``device_selectors``                              the expressions that choose among devices
``objects``                                       objects of Kubernetes as YAML, and quantities
``pod_log``                                       a history of pods
================================================  =================================================================================
"""
