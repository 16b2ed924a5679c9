"""Instance, notion and baseline -> allocation: what no baseline follows is refused, and the limits of its answer are checked."""

from __future__ import annotations

import time

import numpy as np

from fairopt.allocation import Allocation, Approximation
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.instance.packing_rules import as_limits
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models import Notion, Sharing
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.rounding import rounded
from fairopt.solving import checked
from fairopt.solving.answer import shares_of

__all__ = ["approximate"]


def approximate(
    instance: Instance, notion: Notion, baseline: Baseline, *, integral: bool = False, sharing: Sharing | None = None
) -> Allocation:
    """Return what a baseline gives.

    Parameters
    ----------
    integral : bool
        Round the answer to whole tasks (`fairopt.scheduling.baselines.rounding`).

    Returns
    -------
    Allocation
        An **approximation**: its certificate covers feasibility only. ``shares`` are those of the notion, ``details["guarantee"]`` says
        what is proved of the baseline.

    Raises
    ------
    InvalidInstance, Unsupported
        The baseline cannot follow the notion or the instance.
    """
    started = time.perf_counter()
    baseline.check(notion)
    given, instance = instance, as_limits(instance, f'"{baseline.name}"')
    chosen, how = checked(instance, notion, sharing, {})
    if instance.is_tree:
        raise Unsupported(
            f'"{baseline.name}" divides among a flat list of users, and the instance has queues, guarantees or weights of 0; '
            f'use "{chosen.name}" itself or a greedy schedule such as "drfh:best-fit", or leave these out'
        )
    case = Case.of(instance, chosen, how)
    formulated = time.perf_counter()
    tasks, details = baseline.tasks(case)
    if integral and not baseline.whole:
        tasks = rounded(case, tasks)
    solved = time.perf_counter()
    excess = allocation_excess(given, tasks, how)
    certificate = Certificate(excess, np.nan, np.nan, whole_tasks=integral or baseline.whole, approximate=True)
    certificate.require(CERTIFIED, chosen.name, baseline.name)
    shares = chosen.shares(instance, tasks)
    return Allocation.of(
        Approximation(chosen, baseline, integral),
        given,
        solver=baseline.name,
        sharing=how,
        tasks=tasks,
        shares=shares_of(case.program, tasks, None) if shares is None else shares,
        certificate=certificate,
        moments=(started, formulated, solved, time.perf_counter()),
        details={"guarantee": baseline.guarantee, **details},
    )
