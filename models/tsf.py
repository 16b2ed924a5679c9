"""Task share fairness (TSF).

Like CDRF, but a user is compared with what it could run alone *without placement constraints*:

    s[n] = x[n] / (phi[n] sum_i gamma0[n,i]),    gamma0[n,i] = counts[i] * min over r with d[n,r] > 0 of c[i,r] / d[n,r].

With resources of the cluster, of which there are S[r], it is compared with what it could run alone within these, too:
min(sum_i gamma0[n,i], min over r of S[r] / d[n,r]).

gamma0 depends on demands and capacities only. So a user cannot raise its share by declaring fewer eligible servers or less parallelism.

*Source.* Wang, Li, Liang and Li (2016), as restated by Khamse-Ashari et al. (2017), section II-B. Without placement constraints it is CDRF,
and on one server DRF. As a leximin it is Pareto optimal and x[n] is unique (`fairopt.models.share_notion`).

*Properties.* Wang et al. prove Pareto optimality, envy-freeness, strategy-proofness (in demands and in declared servers) and a sharing
incentive. With the slice of *every server* (`uniform`) as the reference, the sharing incentive holds only without placement constraints. A
counterexample: capacities (1, 2) and (5, 2), two users with demands (2, 2) and (4, 2), both eligible on the first server only. Then gamma0
sums to 1.5 and 1.25. The cpu of the first server stops both users at s = 1/8, x = (0.1875, 0.15625), but half of that server would run 0.25
tasks of the first user. TSF is not bottleneck fair either (Khamse-Ashari et al.): in the example below memory is the bottleneck of all
three users, and weights 1, 1, 2 would give them 3, 3 and 6 tasks.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
>>> fo.solve(instance, "tsf").tasks_per_user.round(9)
array([2., 2., 8.])
"""

from __future__ import annotations

from typing import ClassVar

from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.instance.by_server import work_in_words
from fairopt.instance.shared import within_shared
from fairopt.models.notion import Condition, Property, Sharing
from fairopt.models.share_notion import ShareNotion
from fairopt.program.most_work import work_alone
from fairopt.wording import percent

__all__ = ["TSF"]

_SOURCE = "Wang, Li, Liang and Li (2016)"


def _alone(instance: Instance) -> FloatArray:
    """Return what each user could run alone without placement constraints, (users,), within the resources of the cluster.

    It is work, where demands or speeds differ by server.
    """
    if instance.differs_by_server:
        return work_alone(instance, instance.unconstrained_rates, at_once=False)
    return within_shared(instance, instance.unconstrained_rates.sum(axis=1))


class TSF(ShareNotion):
    """TSF: leximin of x[n] / (phi[n] sum_i gamma0[n,i]), gamma0 as if there were no placement constraints."""

    name = "tsf"
    title = "Task share fairness"
    source = "Wang, Li, Liang and Li (2016); Khamse-Ashari et al. (2017), section II-B"
    references = ("WangLiLiangLi2016", "KhamseAshari2017")
    symmetric = True
    by_server = True
    satisfies: ClassVar = {
        Property.SHARING_INCENTIVE: f"{_SOURCE}; against the slice of every server without placement constraints",
        Property.ENVY_FREENESS: _SOURCE,
        Property.PARETO: _SOURCE,
        Property.STRATEGY_PROOFNESS: _SOURCE,
    }
    conditions = frozenset({Condition.RESOURCES, Condition.ENDLESS})
    proofs_cover_work = frozenset({Property.SHARING_INCENTIVE})  # as that of "cdrf"
    share_is_part = True

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation; for the sharing incentive only without placement constraints."""
        if wanted is Property.SHARING_INCENTIVE and not Condition.EVERYWHERE.met(instance, sharing):
            return None
        return super().promise(wanted, instance, sharing)

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return 1 / sum_i gamma0[n,i]."""
        return safe_ratio(1, _alone(instance))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the tasks that it could run alone without constraints, as text."""
        alone = _alone(instance)[user]
        part = percent(safe_ratio(1, alone).item())
        tasks = work_in_words(instance, alone, 3).removeprefix("the ")
        return f"the {tasks} that it could run alone, if it were free to use every server: each counts {part}"
