"""The properties of allocations, one module each; if a property fails, its check returns a witness.

`CHECKS` maps the identifier of each property to a function that judges a `Case`. `fairopt.audit` runs the checks in this order.
"""

from __future__ import annotations

from collections.abc import Callable

from fairopt.analysis.properties import (
    bottleneck_fairness,
    ef1,
    efx,
    envy_freeness,
    guarantees,
    max_min,
    maximin_share,
    no_justified_complaints,
    pareto,
    population_monotonicity,
    psdsf,
    sharing_incentive,
    single_resource_fairness,
    strategy_proofness,
)
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness

__all__ = [
    "BY_WEIGHTS_ALONE",
    "CHECKS",
    "OF_EQUAL_TASKS",
    "OF_FLAT_LISTS",
    "OF_SERVERS_ALONE",
    "OF_TREES",
    "OF_WHOLE_TASKS",
    "OF_WHOLE_TASKS_ALONE",
    "Case",
    "Verdict",
    "Witness",
]

CHECKS: dict[str, Callable[[Case], Verdict]] = {
    check.NAME: check.check
    for check in (
        *(sharing_incentive, envy_freeness, pareto, bottleneck_fairness, single_resource_fairness),
        *(population_monotonicity, strategy_proofness, no_justified_complaints, psdsf, max_min, guarantees),
        *(ef1, efx, maximin_share),
    )
}

OF_TREES = (guarantees.NAME,)
"""Tested by default only if the instance has a tree of queues, or a guarantee."""

OF_WHOLE_TASKS = (pareto.NAME, max_min.NAME, bottleneck_fairness.NAME, single_resource_fairness.NAME)
"""Properties that compare an allocation of whole tasks with whole tasks; in floats if that takes branch and cut."""

OF_WHOLE_TASKS_ALONE = (ef1.NAME, efx.NAME, maximin_share.NAME)
"""Mean nothing of divisible tasks; tested by default only of whole ones."""

OF_FLAT_LISTS = (
    *(check.NAME for check in (bottleneck_fairness, single_resource_fairness, no_justified_complaints, psdsf, max_min)),
    *OF_WHOLE_TASKS_ALONE,
)
"""Compare every user with every other, and mean nothing where users are in queues or have guarantees."""

BY_WEIGHTS_ALONE = tuple(
    check.NAME
    for check in (
        *(sharing_incentive, envy_freeness, bottleneck_fairness, single_resource_fairness, no_justified_complaints, psdsf),
        *(ef1, efx, maximin_share),
    )
)
"""Compare users by weights, or look at servers, and mean nothing where named limits allow users different amounts."""

OF_EQUAL_TASKS = tuple(check.NAME for check in (bottleneck_fairness, single_resource_fairness, no_justified_complaints))
"""Are about tasks that take and do the same on all servers."""

OF_SERVERS_ALONE = tuple(check.NAME for check in (no_justified_complaints, psdsf))
"""Are conditions on each server, and mean nothing where a user is stopped by a row of a notion's own."""
