"""What became of the tasks of a trace by some time: the part of each user's that ended, and how much sooner jobs of each size did.

A task that could not have ended by then, however early it was started, says nothing of a scheduler and is not counted.

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
    """Return, of each job, its tasks that would have ended by then, started when they were submitted, (jobs,)."""
    can = np.repeat(trace.submit, trace.tasks) + trace.task_durations <= until
    return np.asarray(np.bincount(trace.job_of, weights=can, minlength=trace.n_jobs), float)


def completion_ratios(trace: Trace, ended: npt.ArrayLike, until: float) -> FloatArray:
    """Return the part of each user's tasks that ended, of those that can have, (users,) as in ``trace.users``; nan for no such task.

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
    """Return by how much the mean completion time of jobs is reduced, in parts of what it was, and how many jobs that is, by size.

    Only jobs that ended both times count. Classes are up to ``bounds[0]`` tasks, more than that and up to ``bounds[1]``, and so on.

    Parameters
    ----------
    before, after : arrays (jobs,)
        Seconds from submission to the end of a job; nan where it did not end.
    tasks : array (jobs,)
    bounds : array (classes - 1,)
        Ascending.

    Returns
    -------
    reduction : array (classes,)
        nan where there is no job.
    jobs : int array (classes,)
    """
    first, second = np.asarray(before, float), np.asarray(after, float)
    both = np.isfinite(first) & np.isfinite(second)
    size = np.searchsorted(np.asarray(bounds, float), np.asarray(tasks)[both])  # the bound itself is below
    classes = np.size(bounds) + 1
    was, is_now = (np.bincount(size, weights=values[both], minlength=classes) for values in (first, second))
    return 1 - np.divide(is_now, was, out=np.full(classes, np.nan), where=was > 0), np.bincount(size, minlength=classes)
