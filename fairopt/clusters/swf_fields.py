"""The fields of the Standard Workload Format, of a job and of the header: which are read, noted and ignored, and why.

>>> JOB.of("ignored")["Think Time from Preceding Job"]
'the time of a person, which the submission has'
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairopt.clusters.fields import Fields, Seen, declared
from fairopt.instance import FloatArray

__all__ = ["COLUMNS", "DECLARED", "HEADER", "JOB", "notes_of_log"]

COLUMNS = (
    "Job Number",
    "Submit Time",
    "Wait Time",
    "Run Time",
    "Number of Allocated Processors",
    "Average CPU Time Used",
    "Used Memory",
    "Requested Number of Processors",
    "Requested Time",
    "Requested Memory",
    "Status",
    "User ID",
    "Group ID",
    "Executable (Application) Number",
    "Queue Number",
    "Partition Number",
    "Preceding Job Number",
    "Think Time from Preceding Job",
)
"""The 18 numbers of a job, in their order."""

JOB = declared(
    "SWF job",
    """
    read | Job Number, Status | its number; whether it was cancelled, or is a part of an execution
    read | Submit Time, Wait Time, Run Time | when it waited, and ran
    read | Requested Time | the estimate of its user, in a simulation
    read | Number of Allocated Processors, Requested Number of Processors | its processors
    read | Used Memory, Requested Memory | its memory, where memory is a resource
    read | User ID, Group ID, Queue Number | its owner: --users says which
    read | Preceding Job Number | in a history: it waited for another job
    noted | Partition Number | the partition in which it ran, where there are several: processors are all alike
    ignored | Average CPU Time Used | what its processes used
    ignored | Executable (Application) Number | what it ran
    ignored | Think Time from Preceding Job | the time of a person, which the submission has
    """,
)

HEADER = declared(
    "SWF header",
    """
    read | Version | versions 1 and 2 are known
    read | MaxNodes, MaxProcs | the nodes, and their processors
    read | UnixStartTime, TimeZoneString | the dates of a history
    noted | MaxMemory | how much memory there is: --memory gives it, in GiB of a node
    ignored | TimeZone, StartTime, EndTime | UnixStartTime and TimeZoneString have it
    ignored | Preemption, AllowOveruse, MaxRuntime | how jobs ran: their lines have it
    ignored | MaxJobs, MaxRecords | the lines are counted
    ignored | MaxQueues, Queues, Queue, MaxPartitions, Partitions, Partition | names of numbers that jobs have
    ignored | Computer, Installation, Acknowledge, Information, Conversion, Note, Notes | where the log is from
    """,
)

DECLARED: tuple[Fields, ...] = (JOB, HEADER)


def notes_of_log(header: Mapping[str, str], jobs: FloatArray, *, memory: bool) -> tuple[str, ...]:
    """Return a sentence for each field that says something and does not count; ``jobs`` are (jobs, 18), -1: not known.

    ``memory``: memory is a resource, so that the header need not say how much there is.
    """
    seen = Seen()
    seen.see(HEADER, {key: value for key, value in header.items() if not (memory and key == "MaxMemory")})
    partitions = jobs[:, COLUMNS.index("Partition Number")]
    if np.unique(partitions[partitions >= 0]).size > 1:
        seen.add(JOB, "Partition Number", int((partitions >= 0).sum()))
    return tuple(seen.notes())
