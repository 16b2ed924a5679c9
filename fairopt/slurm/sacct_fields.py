"""The columns of ``sacct -P`` and the fields of ``sacct --json``: which a history and an average read, note and ignore, and why.

>>> TABLE.of("noted")["QOS"]
'its QOS, whose limits count in an import alone'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairopt.clusters.fields import Fields, Seen, declared, says_something
from fairopt.clusters.json_export import Part

__all__ = ["DECLARED", "JSON", "TABLE", "notes_of_columns", "notes_of_jobs"]

TABLE = declared(
    "sacct row",
    """
    read | JobID, Cluster, Account, User | its number, and whose it is
    read | State, Submit, Eligible, Start, End, Elapsed, Suspended, Reason | when it waited, and why; when it ran, or was suspended
    read | AllocTRES, ReqTRES, NTasks | what it was given, and what it asked for
    read | Partition, Constraints, NodeList | where it ran, and might have run
    noted | QOS, QOSREQ | its QOS, whose limits count in an import alone
    noted | Reservation | its reservation, which may have kept nodes for it
    noted | Licenses | its licences: those count that AllocTRES has
    noted | McsLabel | a label of users who share nodes
    ignored | JobIDRaw, DBIndex, SLUID, AssocID, GID, Group, UID, WCKey, WCKeyID, QOSRAW, ReservationId | the same by other numbers
    ignored | JobName, Comment, AdminComment, SystemComment, Extra, Container, WorkDir, SubmitLine | names, and remarks
    ignored | StdErr, StdIn, StdOut | its files
    ignored | AllocCPUS, AllocNodes, NCPUS, NNodes, ReqCPUS, ReqMem, ReqNodes | AllocTRES and ReqTRES have it
    ignored | ElapsedRaw, CPUTime, CPUTimeRAW, Planned, PlannedCPU, PlannedCPURAW, Reserved, ResvCPU | the times have it
    ignored | ResvCPURAW, Timelimit, TimelimitRaw | the times have it, or the most that it could have been
    ignored | Priority, Flags, Restarts | the order of jobs that wait, and how it was started
    ignored | ExitCode, DerivedExitCode, FailedNode | results
    ignored | AveCPU, AveCPUFreq, AveDiskRead, AveDiskWrite, AvePages, AveRSS, AveVMSize, MinCPU, MinCPUNode | what its processes used
    ignored | MinCPUTask, MaxDiskRead, MaxDiskReadNode, MaxDiskReadTask, MaxDiskWrite, MaxDiskWriteNode | what its processes used
    ignored | MaxDiskWriteTask, MaxPages, MaxPagesNode, MaxPagesTask, MaxRSS, MaxRSSNode, MaxRSSTask | what its processes used
    ignored | MaxVMSize, MaxVMSizeNode, MaxVMSizeTask, SystemCPU, UserCPU, TotalCPU | what its processes used
    ignored | ConsumedEnergy, ConsumedEnergyRaw, ReqCPUFreq, ReqCPUFreqGov, ReqCPUFreqMax, ReqCPUFreqMin | energy, and clock rates
    ignored | TRESUsageInAve, TRESUsageInMax, TRESUsageInMaxNode, TRESUsageInMaxTask, TRESUsageInMin | what its processes used
    ignored | TRESUsageInMinNode, TRESUsageInMinTask, TRESUsageInTot, TRESUsageOutAve, TRESUsageOutMax | what its processes used
    ignored | TRESUsageOutMaxNode, TRESUsageOutMaxTask, TRESUsageOutMin, TRESUsageOutMinNode | what its processes used
    ignored | TRESUsageOutMinTask, TRESUsageOutTot | what its processes used
    ignored | Layout, BlockID | how its tasks lay on nodes
    """,
)

JSON = declared(
    "sacct --json job",
    """
    read | job_id, array, het | its number, and what it is a part of
    read | cluster, account, user, association | whose it is
    read | state, time | when it waited, and why; when it ran, or was suspended
    read | tres | what it was given, and what it asked for
    read | partition, constraints, nodes | where it ran, and might have run
    noted | qos, qosreq | its QOS, whose limits count in an import alone
    noted | reservation | its reservation, which may have kept nodes for it
    noted | licenses | its licences: those count that are in tres
    noted | mcs | a label of users who share nodes
    noted | segment_size | nodes of one switch
    ignored | name, comment, extra, container, group, wckey, sluid, script, submit_line, working_directory | names, and remarks
    ignored | stdin, stdout, stderr, stdin_expanded, stdout_expanded, stderr_expanded | its files
    ignored | allocation_nodes, required, used_gres | tres has it
    ignored | priority, flags, hold, restart_cnt, block | the order of jobs that wait, and how it was started
    ignored | exit_code, derived_exit_code, failed_node, kill_request_user | results
    ignored | steps | what its processes did
    """,
)

DECLARED: tuple[Fields, ...] = (TABLE, JSON)


def notes_of_columns(columns: Mapping[str, Any], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each column that says something and does not count.

    Parameters
    ----------
    columns : mapping
        The cells of each column, by its name in small letters.
    names : mapping
        The name of each column in the file, by its name in small letters.
    """
    import pandas as pd

    seen = Seen()
    known = {name.lower(): name for field in TABLE.fields for name in field.names}
    for name, cells in columns.items():
        own = known.get(name, names[name])
        if seen.counts(TABLE, own):
            code, found = pd.factorize(cells)
            some = [says_something(str(text)) for text in found]
            seen.add(TABLE, own, int(sum(map(bool, (some[k] for k in code.tolist())))))
    return tuple(seen.notes())


def notes_of_jobs(jobs: list[Part]) -> tuple[str, ...]:
    """Return a sentence for each field of jobs that says something and does not count."""
    seen = Seen()
    for job in jobs:
        seen.see(JSON, job.value)
    return tuple(seen.notes())
