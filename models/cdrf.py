"""Containerised dominant resource fairness (CDRF).

gamma[n,i] is what user n could run with row i to itself. Alone in the whole cluster, *within its placement constraints*, it would run
sum_i gamma[n,i] tasks (with limited parallelism, as many as run on its P[n] fastest servers: `fairopt.program.parallelism`); CDRF is the
leximin of the fraction of that which each user receives,

    s[n] = x[n] / (phi[n] sum_i gamma[n,i]).

Friedman, Ghodsi and Psomas (2014), as restated by Khamse-Ashari et al. (2017), section II-B. On one server 1 / gamma[n] is the
dominant share of a task, and CDRF is DRF. It is a leximin of `fairopt.models.notion`: x[n] is unique, and Pareto optimal.

*Properties.* Sharing incentive, with placement constraints too: the slice of every server gives everybody exactly s[n] = 1 / sum_m
phi[m], so the smallest share is no less. Freedom from envy and strategy-proofness without such constraints only (Friedman et al.): a
user who declares fewer eligible servers has a smaller denominator, and somebody with few servers holds, for its weight, less than
others who could run anywhere. "tsf" mends that.

Figure 1 of the PS-DSF paper, where rates of 6, 6 and 12 make two tasks, two and eight:

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
>>> fo.solve(instance, "cdrf").tasks_per_user.round(9)
array([2., 2., 8.])
"""

from __future__ import annotations

from typing import ClassVar

from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.models.notion import Condition, Property, ShareNotion
from fairopt.program.parallelism import tasks_within
from fairopt.wording import figure, percent

__all__ = ["CDRF"]

_SOURCE = "Friedman, Ghodsi and Psomas (2014), without placement constraints"
_SLICE = "Friedman, Ghodsi and Psomas (2014); with placement constraints too, as the slices give all the same share"


class CDRF(ShareNotion):
    """CDRF: leximin of x[n] / (phi[n] sum_i gamma[n,i]), gamma within the placement constraints."""

    name = "cdrf"
    title = "Containerised dominant resource fairness"
    source = "Friedman, Ghodsi and Psomas (2014); Khamse-Ashari et al. (2017), section II-B"
    satisfies: ClassVar = {
        Property.SHARING_INCENTIVE: _SLICE,
        Property.ENVY_FREENESS: _SOURCE,
        Property.PARETO: _SOURCE,
        Property.STRATEGY_PROOFNESS: _SOURCE,
    }
    conditions = frozenset({Condition.RESOURCES, Condition.EVERYWHERE, Condition.POSITIVE, Condition.ENDLESS})
    share_is_part = True

    def merges(self, instance: Instance) -> bool:
        """Not where parallelism is limited: on two servers at once one runs less than twice what the faster of them gives."""
        return not instance.limited.any()

    def share_per_task(self, instance: Instance) -> FloatArray:
        """1 / sum_i gamma[n,i], within its parallelism; inf for a user who cannot run anywhere, who has no column."""
        return safe_ratio(1.0, tasks_within(instance, instance.rates))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """The tasks that it could run alone, within its constraints."""
        alone = float(tasks_within(instance, instance.rates)[user])
        part = percent(float(safe_ratio(1.0, alone)))
        return f"the {figure(alone)} tasks that it could run alone, on the servers where it may run: each counts {part}"
