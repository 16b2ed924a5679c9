"""The attributes of HTCondor's ads: which the import reads, which it notes, which it ignores, and why.

An ad has some hundred attributes, and a site may add any; so only those are listed that could divide a pool. Every other attribute is
ignored: it is no request, and what a request or a requirement names is read from the ads.

>>> JOB.of("noted")["RequestDisk"]
'disk of a machine'
"""

from __future__ import annotations

from fairopt.clusters.fields import Fields, Seen, declared
from fairopt.clusters.htcondor.ads import Ad

__all__ = ["DECLARED", "JOB", "SLOT", "see"]

SLOT = declared(
    "slot",
    """
    read | Name, Machine, SlotType, PartitionableSlot, DynamicSlot | which slot it is, and of which machine
    read | Cpus, Memory, GPUs, TotalSlotCpus, TotalSlotMemory, TotalSlotGPUs, MachineResources | what it has, in use or not
    read | State, Offline | whether it accepts work
    read | Start | which jobs the machine takes
    noted | Rank | which jobs the machine prefers, and preempts others for
    noted | ConsumptionCpus, ConsumptionMemory | a policy of consumption, by which jobs take other amounts than they ask for
    ignored | SlotWeight | what a slot counts in quotas: cores are taken
    ignored | Activity, RemoteOwner, RemoteUser, JobId, ChildCpus, ChildMemory, NumDynamicSlots, Disk, TotalSlotDisk | jobs say it
    """,
)

JOB = declared(
    "job",
    """
    read | ClusterId, ProcId, GlobalJobId, JobStatus, JobUniverse, MaxHosts | its number, what it does, and how many nodes it has
    read | Owner, User, AccountingGroup, AcctGroup, AcctGroupUser | whose it is
    read | RequestCpus, RequestMemory, RequestGPUs | what it asks for
    read | RemoteHost, RemoteHosts | where it runs
    read | Requirements | where it may run
    read | ConcurrencyLimits | licences and the like
    read | JobMaterializeNextProcId, JobMaterializeLimit, JobMaterializeMaxIdle, TotalSubmitProcs | jobs still to be queued: a note
    noted | RequestDisk | disk of a machine
    noted | NiceUser | it runs after all others
    noted | DeferralTime | when it may start
    ignored | JobPrio, Rank, QDate, HoldReason, LastRejMatchReason | the order of jobs that wait, wishes, and remarks
    ignored | RequireGPUs | is part of Requirements
    """,
)

DECLARED: tuple[Fields, ...] = (SLOT, JOB)
"""All of them, in the order in which the documentation shows them."""


def see(seen: Seen, fields: Fields, ads: list[Ad]) -> list[Ad]:
    """Count the attributes of ads that are noted; a name is compared without case."""
    noted = {name.lower(): name for name in fields.of("noted")}
    for ad in ads:
        seen.see(fields, {noted[name]: value for name, value in ad.values.items() if name in noted})
    return ads
