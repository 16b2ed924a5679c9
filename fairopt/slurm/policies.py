"""What partitions do to the jobs in them, beside giving them nodes: whole nodes, at most some CPUs of a node, shared CPUs.

A partition with ``OverSubscribe=EXCLUSIVE`` gives each job its nodes alone, as ``--exclusive`` does. ``MaxCPUsPerNode`` limits what its
jobs have together on each node. CPUs that several jobs may have at once (``FORCE:4``) are not in an instance. The order by
``PriorityTier`` is in :mod:`fairopt.slurm.tiers`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairopt.clusters.account import Account
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Partition
from fairopt.wording import figure, joined, named, plural

__all__ = ["cpus_of_node", "note_policies", "with_whole_nodes"]

_MOST = 5  # names in a note


def with_whole_nodes(jobs: Sequence[Job], partitions: Mapping[str, Partition]) -> list[Job]:
    """Return the jobs; those that wait in partitions that give whole nodes ask for whole nodes."""
    found = []
    for job in jobs:
        inside = [partitions[name] for name in job.partitions if name in partitions]
        whole = bool(inside) and all(each.exclusive for each in inside) and not job.holds
        found.append(replace(job, request=replace(job.request, exclusive=True)) if whole else job)
    return found


def cpus_of_node(job: Job, partitions: Mapping[str, Partition]) -> tuple[str, float]:
    """Return the partition that limits what its jobs have of each node, and how many CPUs that is; infinite: none does.

    A job that may run in several partitions is limited only where it runs.
    """
    name = job.partition if job.holds or len(job.partitions) < 2 else ""
    return name, partitions[name].cpus_of_node if name in partitions else math.inf


def note_policies(jobs: Sequence[Job], partitions: Mapping[str, Partition], account: Account) -> None:
    """Note the policies of partitions with jobs that an instance does not have."""
    inside = {name: partitions[name] for job in jobs for name in job.partitions if name in partitions}
    shared = [f"{named(name)} {figure(each.shared_by)}" for name, each in inside.items() if each.shared_by > 1]
    if shared:
        account.note(f"partitions let several jobs have a CPU at once (OverSubscribe=FORCE, {joined(shared, _MOST)}): here one has it")
    several = sum(
        job.copies for job in jobs if len(job.partitions) > 1 and not job.holds and _limited(job.partitions, partitions) < math.inf
    )
    if several:
        account.note(f"{plural(several, 'job')} in several partitions, of which some have MaxCPUsPerNode: it does not count for them")


def _limited(names: Sequence[str], partitions: Mapping[str, Partition]) -> float:
    return min((partitions[name].cpus_of_node for name in names if name in partitions), default=math.inf)
