"""Instances from the exports of real clusters, one module per format.

=====================  ==============================================================================================
`import_kubernetes`    ``kubectl get nodes -o json``, ``kubectl get pods -A -o json``
`import_slurm`         JSON of Slurm and slurmrestd, text of ``scontrol``, ``sacctmgr``, ``sshare``, ``sacct``
`import_ray`           listings of Ray's state API: ``ray list nodes|tasks|actors|placement-groups``
`import_yarn`          the ResourceManager's REST answers
`import_openb`         the tables of the Alibaba GPU cluster (2023)
`import_google2011`    tables of the Google cluster (2011)
`import_gavel`         a table of throughputs of jobs on kinds of accelerators (Gavel, 2020)
`import_swf`           logs in the Standard Workload Format
=====================  ==============================================================================================

`trace_google2011` and `trace_swf` return the jobs over time, as a `fairopt.Trace`. The others return an `Import`: the instance, the tasks
that run now, and an account of what was read and what was left out. :mod:`fairopt.imports.assembly` says how owners, shapes of tasks and
weights become users.
"""

from __future__ import annotations

from fairopt.imports.gavel import import_gavel
from fairopt.imports.google2011 import import_google2011, trace_google2011
from fairopt.imports.kubernetes import import_kubernetes
from fairopt.imports.openb import import_openb
from fairopt.imports.ray import import_ray
from fairopt.imports.result import Import, LeftOut
from fairopt.imports.slurm import import_slurm
from fairopt.imports.swf import import_swf, trace_swf
from fairopt.imports.yarn import import_yarn

__all__ = [
    "Import",
    "LeftOut",
    "import_gavel",
    "import_google2011",
    "import_kubernetes",
    "import_openb",
    "import_ray",
    "import_slurm",
    "import_swf",
    "import_yarn",
    "trace_google2011",
    "trace_swf",
]
