"""The input of a simulation of whole tasks: jobs, and users and servers that come and go over time (`Work`).

The simulation also reads a `fairopt.program.filling.Filling`, which has the servers, the demands and the criterion. A "user" of that
filling is here a *stream*: the jobs of one user, its *owner*, whose tasks have the same demand. Shares are those of owners: the sum over
all running tasks of an owner, each weighted as its stream says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from fairopt.instance import BoolArray, FloatArray, IntArray

__all__ = ["Change", "Work"]


class Change(IntEnum):
    """What happens at a time besides the ends of tasks. At one time, changes happen in this order. (Numbers, for compiled code.)"""

    LEAVE = 0
    JOIN = 1
    REMOVE = 2
    ADD = 3
    SUBMIT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Jobs, and the other changes over time.

    Attributes
    ----------
    stream : int array (jobs,)
        Stream of each job, in order of submission; -1 for a job that is left out.
    tasks : int array (jobs,)
    durations : array (jobs,) or (tasks,)
        One duration for all tasks of a job, or one for each task; inf for a task that never ends.
    owner : int array (streams,)
    rank : int array (streams,)
        Order in which ties between shares are broken; of equal ranks, the stream whose next job was submitted first.
    present : bool array (owners,)
        Which owners are there at the beginning.
    servers : int array (rows,)
        How many servers of each row are there at the beginning, at most as many as in the filling.
    times, changes, subjects, amounts : arrays (events,)
        The events in order of time, and at one time in order of `Change`. The subject is a job (SUBMIT), an owner (JOIN, LEAVE) or a row
        (ADD, REMOVE); ``amounts`` is the number of servers added or removed.
    speeds : array (streams, rows), optional
        By which the durations of tasks are divided on the servers of each row, > 0; default 1.
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
    speeds: FloatArray | None = None
