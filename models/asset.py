"""Asset fairness, the classical baseline: equal sums of resource fractions.

    w[n] = sum_r d[n,r] / sum_i counts[i] c[i,r],        leximin of  s[n] = w[n] x[n] / phi[n].

The total capacity of each resource is given the price 1, and users spend amounts in proportion to their weights. As a leximin it is Pareto
optimal and x[n] is unique (`fairopt.models.share_notion`).

*Properties.* Ghodsi et al. (2011), section 4.1, define it in order to reject it. It has no sharing incentive: with 30 units of each of two
resources and demands (1, 3) and (1, 1), both users spend 4/5, and the second holds 12 units of each resource, less than the half of the
cluster that its slice would be. It is not bottleneck fair either. According to their table 2 it is, on one server, envy-free, Pareto
optimal, strategy-proof, single-resource fair and population monotone.

>>> import fairopt as fo
>>> fo.solve(fo.Instance([[30, 30]], [[1, 3], [1, 1]]), "asset").tasks_per_user.round(9)
array([ 6., 12.])
>>> fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "asset").tasks_per_user.round(2)
array([2.52, 2.16])
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fairopt.instance import FloatArray, Instance, safe_ratio
from fairopt.models.counting import dominant_part
from fairopt.models.notion import Condition, Property
from fairopt.models.share_notion import ShareNotion
from fairopt.wording import joined, named, percent

__all__ = ["Asset"]

_SOURCE = "Ghodsi et al. (2011), table 2, for one server"


class Asset(ShareNotion):
    """Asset fairness: leximin of sum_r d[n,r] / C[r] * x[n] / phi[n], C the capacity of the cluster."""

    name = "asset"
    title = "Asset fairness"
    source = "Ghodsi et al. (2011), section 4.1"
    references = ("Ghodsi2011",)
    symmetric = True
    not_by_server = "adds up what a task takes of the cluster, which depends on the server"
    satisfies: ClassVar = {
        Property.ENVY_FREENESS: _SOURCE,
        Property.PARETO: _SOURCE,
        Property.STRATEGY_PROOFNESS: _SOURCE,
        Property.SINGLE_RESOURCE_FAIRNESS: _SOURCE,
        Property.POPULATION_MONOTONICITY: _SOURCE,
    }
    conditions = frozenset({Condition.RESOURCES, Condition.EVERYWHERE, Condition.POSITIVE, Condition.ENDLESS})
    share_is_part = True
    counts_resources: ClassVar = True

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return sum_r m[r] d[n,r] / sum_i counts[i] c[i,r]; of users who demand nothing that counts, their plain dominant share."""
        parts, counting = safe_ratio(instance.demands, instance.total_capacity), self.counting(instance)
        if counting is None:
            return np.asarray(parts.sum(axis=1))
        return np.asarray(np.where(counting.last, parts.max(axis=1), counting.weigh(parts).sum(axis=1)))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the sum of the shares of all resources as text."""
        parts, counting = safe_ratio(instance.demands[user], instance.total_capacity), self.counting(instance)
        if counting is not None and counting.last[user]:
            return dominant_part(instance, user, "the whole cluster", counting)
        weighted, words = (parts, "") if counting is None else (counting.weigh(parts), counting.in_words())
        parts = np.where(weighted > 0, parts, 0)
        listed = [f"{percent(parts[r])} of the {named(instance.resources[r])}" for r in np.argsort(-parts, kind="stable") if parts[r] > 0]
        counts = f"; {words}" if words else ""
        return f"its shares of the whole cluster, added up: a task takes {percent(weighted.sum())}, which is {joined(listed)}{counts}"
