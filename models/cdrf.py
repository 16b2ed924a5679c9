"""Containerised dominant resource fairness (CDRF).

gamma[n,i] is the number of tasks that user n could run alone on row i. Alone in the cluster, *within its placement constraints*, it would
run sum_i gamma[n,i] tasks. (With limited parallelism: the tasks on its P[n] fastest servers, see `fairopt.program.parallelism`.) CDRF is
the leximin of the fraction of this number that each user receives,

    s[n] = x[n] / (phi[n] sum_i gamma[n,i]).

With resources of the cluster, of which there are S[r], it could run min(sum_i gamma[n,i], min over r of S[r] / d[n,r]) tasks alone: on
other servers its tasks would take as much of them.

*Source.* Friedman, Ghodsi and Psomas (2014), as restated by Khamse-Ashari et al. (2017), section II-B. On one server 1 / gamma[n] is the
dominant share of a task, and CDRF is DRF. As a leximin it is Pareto optimal and x[n] is unique (`fairopt.models.share_notion`).

*Properties.* It has the sharing incentive, also with placement constraints: the slices of all servers together give each user exactly
s[n] = 1 / sum_m phi[m], so the smallest share is at least that. It is envy-free and strategy-proof only without placement constraints
(Friedman et al.). With them, a user that declares fewer eligible servers has a smaller denominator, and a user with few servers holds less
for its weight than users who can run anywhere. "tsf" repairs strategy-proofness.

Figure 1 of the PS-DSF paper, where the users could run 6, 6 and 12 tasks alone:

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
>>> fo.solve(instance, "cdrf").tasks_per_user.round(9)
array([2., 2., 8.])
"""

from __future__ import annotations

from typing import ClassVar

from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.instance.by_server import work_in_words
from fairopt.instance.shared import within_shared
from fairopt.models.notion import Condition, Property
from fairopt.models.share_notion import ShareNotion
from fairopt.program.most_work import work_alone
from fairopt.program.parallelism import tasks_within
from fairopt.wording import percent

__all__ = ["CDRF"]

_SOURCE = "Friedman, Ghodsi and Psomas (2014), without placement constraints"
_SLICE = "Friedman, Ghodsi and Psomas (2014); with placement constraints too, as the slices give all the same share"


def _alone(instance: Instance) -> FloatArray:
    """Return what each user could run alone in the cluster, (users,): its work, where demands or speeds differ by server."""
    if instance.differs_by_server:
        return work_alone(instance, instance.rates)
    return within_shared(instance, tasks_within(instance, instance.rates))


class CDRF(ShareNotion):
    """CDRF: leximin of x[n] / (phi[n] sum_i gamma[n,i]), gamma within the placement constraints."""

    name = "cdrf"
    title = "Containerised dominant resource fairness"
    source = "Friedman, Ghodsi and Psomas (2014); Khamse-Ashari et al. (2017), section II-B"
    references = ("FriedmanGhodsiPsomas2014", "KhamseAshari2017")
    symmetric = True
    by_server = True
    satisfies: ClassVar = {
        Property.SHARING_INCENTIVE: _SLICE,
        Property.ENVY_FREENESS: _SOURCE,
        Property.PARETO: _SOURCE,
        Property.STRATEGY_PROOFNESS: _SOURCE,
    }
    conditions = frozenset({Condition.RESOURCES, Condition.EVERYWHERE, Condition.POSITIVE, Condition.ENDLESS})
    proofs_cover_work = frozenset({Property.SHARING_INCENTIVE})  # a slice of all servers does this part of the work alone
    share_is_part = True

    def merges(self, instance: Instance) -> bool:
        """Return False if parallelism is limited: two users with P = 1 each count the fastest server, one with P = 2 the two fastest."""
        return not instance.limited.any()

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return 1 / sum_i gamma[n,i], within the parallelism of n; inf for a user that cannot run anywhere, and so has no column."""
        return safe_ratio(1, _alone(instance))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the tasks that it could run alone within its constraints, as text."""
        alone = _alone(instance)[user]
        part = percent(safe_ratio(1, alone).item())
        tasks = work_in_words(instance, alone, 3).removeprefix("the ")
        return f"the {tasks} that it could run alone, on the servers where it may run: each counts {part}"
