"""Completed tasks of a trace: the fraction of each user's tasks that ended, and the reduction of completion times by job size.

A task that cannot end by the given time, even if it starts when it is submitted, says nothing about a scheduler. It is not counted.

>>> from fairopt.trace import Trace
>>> trace = Trace(["A", "A", "B"], submit=[0, 0, 5], tasks=[4, 1, 2], demands=[[1], [2], [3]], durations=[10, 100, 10])
>>> completion_ratios(trace, ended=[3, 0, 2], until=50)
array([0.75, 1.  ])
>>> reduction, jobs = reduction_by_size(before=[10, 30, 100], after=[10, 10, 40], tasks=[1, 5, 60], bounds=[4])
>>> reduction.round(3).tolist(), jobs.tolist()
([0.0, 0.615], [1, 2])
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairopt.trace import Trace
from fairopt.validation import FloatArray, IntArray

__all__ = ["completion_ratios", "reduction_by_size", "tasks_that_can_end"]


def tasks_that_can_end(trace: Trace, until: float) -> FloatArray:
    """Return the number of tasks of each job that end by ``until`` if they start when they are submitted, (jobs,)."""
    can = np.repeat(trace.submit, trace.tasks) + trace.task_durations <= until
    return np.asarray(np.bincount(trace.job_of, weights=can, minlength=trace.n_jobs), float)


def completion_ratios(trace: Trace, ended: npt.ArrayLike, until: float) -> FloatArray:
    """Return the ended fraction of the tasks of each user that can end, (users,) as in ``trace.users``; nan: the user has no such task.

    Parameters
    ----------
    trace : Trace
    ended : array (jobs,)
        Tasks that ended by ``until``.
    until : float
        Seconds.
    """
    n = len(trace.users)
    can = np.bincount(trace.user, weights=tasks_that_can_end(trace, until), minlength=n)
    did = np.bincount(trace.user, weights=np.asarray(ended, float), minlength=n)
    ratios: FloatArray = np.divide(did, can, out=np.full(n, np.nan), where=can > 0)
    return ratios


def reduction_by_size(
    before: npt.ArrayLike, after: npt.ArrayLike, tasks: npt.ArrayLike, bounds: npt.ArrayLike
) -> tuple[FloatArray, IntArray]:
    """Return the relative reduction of the mean completion time of jobs, and the number of jobs, for each class of job sizes.

    Only jobs that ended in both cases count. The first class has jobs of at most ``bounds[0]`` tasks, the second of at most ``bounds[1]``,
    and so on.

    Parameters
    ----------
    before, after : arrays (jobs,)
        Seconds from the submission to the end of a job; nan: the job did not end.
    tasks : array (jobs,)
    bounds : array (classes - 1,)
        Ascending.

    Returns
    -------
    reduction : array (classes,)
        nan: the class has no job.
    jobs : int array (classes,)
    """
    first, second = np.asarray(before, float), np.asarray(after, float)
    both = np.isfinite(first) & np.isfinite(second)
    size = np.searchsorted(np.asarray(bounds, float), np.asarray(tasks)[both])  # a job of exactly bounds[k] tasks is in class k
    classes = np.size(bounds) + 1
    was, is_now = (np.bincount(size, weights=values[both], minlength=classes) for values in (first, second))
    return 1 - np.divide(is_now, was, out=np.full(classes, np.nan), where=was > 0), np.bincount(size, minlength=classes)
