"""Allocations as the configuration of real schedulers, one module per scheduler. Nothing is ever run.

=======================  =========================================================================================
`export_slurm`           scripts of ``sacctmgr`` that set and take back ``GrpTRES``
`export_kueue`           ResourceFlavors, Cohorts, ClusterQueues and LocalQueues
`export_volcano`         queues of Volcano's capacity plugin
`export_kai`             queues of KAI
`export_yunikorn`        ``queues.yaml`` of YuniKorn
`export_yarn`            ``capacity-scheduler.xml``, or the allocation file of the Fair Scheduler
`export_resourcequota`   a ResourceQuota for each namespace
=======================  =========================================================================================

Each returns an `Export`: the texts, the whole tasks in them (:mod:`fairopt.exports.rounding`), and an account of what was rounded, renamed,
or cannot be expressed.
"""

from __future__ import annotations

from fairopt.exports.kai import export_kai
from fairopt.exports.kueue import export_kueue
from fairopt.exports.resource_quota import export_resourcequota
from fairopt.exports.result import Export
from fairopt.exports.slurm import export_slurm
from fairopt.exports.volcano import export_volcano
from fairopt.exports.yarn import export_yarn
from fairopt.exports.yunikorn import export_yunikorn

__all__ = [
    "Export",
    "export_kai",
    "export_kueue",
    "export_resourcequota",
    "export_slurm",
    "export_volcano",
    "export_yarn",
    "export_yunikorn",
]
