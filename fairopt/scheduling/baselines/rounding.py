"""Whole tasks from fractions: round down on every single server, then fill up by progressive filling.

On each of the ``counts[i]`` servers of row i, user n has floor(x[n,i] / counts[i]) tasks. What is free is filled as `fairopt.schedule`
fills it, by the smallest share first and on the first server that fits, up to ceil(sum of x[n,i] over i) tasks of each user. So nobody has
more than the fractions rounded up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import REACHED
from fairopt.models import NOTIONS, Notion
from fairopt.scheduling.arrays import filling_of
from fairopt.scheduling.baselines.baseline import Case
from fairopt.scheduling.queues import queues_of, server_limits
from fairopt.solvers import PLACEMENTS, Placement, fill

__all__ = ["filled_up_to", "rounded"]


def rounded(case: Case, tasks: FloatArray) -> FloatArray:
    """Return whole tasks, (users, servers), near these.

    Raises
    ------
    Unsupported
        The instance limits parallelism, which tells single servers apart.
    """
    instance = case.instance
    counts = np.maximum(instance.counts, 1.0)
    each = np.floor(tasks / counts * (1 + REACHED)).astype(np.int64)
    row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(np.int64))
    return filled_up_to(case, np.ceil(tasks.sum(axis=1) * (1 - REACHED)), each[:, row])


def filled_up_to(case: Case, most: FloatArray, held: IntArray | None = None) -> FloatArray:
    """Return whole tasks, (users, servers): those held on single servers, and then up to so many of each user, the smallest share first."""
    instance = case.instance
    if instance.limited.any():
        raise Unsupported("whole tasks of a baseline cannot limit parallelism; leave integral or parallelism out")
    chosen = _criterion(case.notion, case)
    filling, _ = filling_of(instance, chosen, case.sharing, "index", False, queues_of(instance, instance, chosen), server_limits(instance))
    wanted = np.minimum(filling.tasks, np.minimum(most, float(np.iinfo(np.int64).max // 8)).astype(np.int64))
    first_fit = PLACEMENTS["first-fit"]()  # type: ignore[call-arg]
    assert isinstance(first_fit, Placement)
    filled = fill(replace(filling, tasks=wanted, held=held), first_fit, random_ties=False, seed=0, first_block=False)
    tasks = filled.tasks.astype(float)
    for n in np.flatnonzero(instance.zero_demand & instance.servable):
        tasks[n, np.flatnonzero(instance.eligibility[n])[0]] = np.floor(instance.tasks[n] * (1 + REACHED))
    return tasks


def _criterion(notion: Notion, case: Case) -> Notion:
    """Return the notion, or drfh where it has no share that users can be ordered by."""
    try:
        notion.criterion(case.instance)
    except Unsupported:
        return NOTIONS["drfh"]()
    return notion
