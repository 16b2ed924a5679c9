"""What a simulation of whole tasks is told: jobs of tasks that come and end, users who come and go, servers that come and go (`Work`).

Beside a `fairopt.program.filling.Filling`, which says who fits where and whose turn it is. Each "user" of that filling is here a
*stream*: the
jobs of one user (its owner) whose tasks are alike. A share is the owner's: the sum over its running tasks, each counted as its stream says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from fairopt.instance import BoolArray, FloatArray, IntArray

__all__ = ["Change", "Work"]


class Change(IntEnum):
    """What happens at a time besides the ends of tasks, in the order in which it does (numbers, because compiled code reads them)."""

    LEAVE = 0
    JOIN = 1
    REMOVE = 2
    ADD = 3
    SUBMIT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Jobs, and what else changes over time.

    Attributes
    ----------
    stream : int array (jobs,)
        Jobs in the order of their submission; -1 for one that takes no part.
    tasks : int array (jobs,)
    durations : array (jobs,) or (tasks,)
        Of each task of a job, or of all tasks one by one; inf for one that never ends.
    owner : int array (streams,)
    rank : int array (streams,)
        Order in which ties between shares are broken; within a rank the stream whose next job was submitted first.
    present : bool array (owners,)
        Who is there at the beginning.
    servers : int array (rows,)
        Servers of each row that are there at the beginning, of those that the filling counts.
    times, changes, subjects, amounts : arrays (events,)
        In order of time, and at one time in order of `Change`: of a job (SUBMIT), an owner (JOIN, LEAVE) or a row (ADD, REMOVE), of which
        ``amounts`` servers are concerned.
    """

    stream: IntArray
    tasks: IntArray
    durations: FloatArray
    owner: IntArray
    rank: IntArray
    present: BoolArray
    servers: IntArray
    times: FloatArray
    changes: IntArray
    subjects: IntArray
    amounts: IntArray
