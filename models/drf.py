"""Dominant resource fairness on one server.

The dominant share of one task of user n is w[n] = max_r d[n,r] / c[r], the largest fraction that the task takes of any resource.
DRF is the leximin of the weighted dominant shares

    s[n] = w[n] x[n] / phi[n]       subject to   sum_n d[n,r] x[n] <= c[r],   x[n] <= T[n].

*Weights per resource.* With phi of shape (users, resources), w[n] = max_r d[n,r] / (c[r] phi[n,r]) and s[n] = w[n] x[n]. If all shares
are s, at most the part s sum_n phi[n,r] of resource r is in use. So all that is certain is s sum_n phi[n,r] >= 1 for some r, that of the
full resource. The sharing incentive, with slices phi[n,r] / sum_m phi[m,r], is therefore proved if these sums are the same for every
resource, and fails otherwise.

*Source.* Ghodsi, Zaharia, Hindman, Konwinski, Shenker and Stoica (2011). Their proofs are for one pool of resources. For several servers
use "drfh"; on one server drfh, cdrf and tsf are all the same as DRF.

>>> import fairopt as fo
>>> fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf").tasks_per_user
array([3., 2.])
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.tolerances import NOTHING
from fairopt.models.counting import dominant_part
from fairopt.models.notion import Condition, Property, Sharing
from fairopt.models.share_notion import ShareNotion, dominant_share, share_of_work

__all__ = ["DRF"]

_SOURCE = "Ghodsi et al. (2011), section 4"


class DRF(ShareNotion):
    """Dominant resource fairness: leximin of max_r d[n,r] / c[r] * x[n] / phi[n], one server only."""

    name = "drf"
    title = "Dominant resource fairness"
    source = "Ghodsi, Zaharia, Hindman, Konwinski, Shenker and Stoica (2011)"
    references = ("Ghodsi2011",)
    symmetric = True
    by_server = True
    satisfies: ClassVar = {
        Property.SHARING_INCENTIVE: _SOURCE,
        Property.ENVY_FREENESS: _SOURCE,
        Property.PARETO: _SOURCE,
        Property.STRATEGY_PROOFNESS: _SOURCE,
        Property.SINGLE_RESOURCE_FAIRNESS: _SOURCE,
        Property.BOTTLENECK_FAIRNESS: _SOURCE,
        Property.POPULATION_MONOTONICITY: _SOURCE,
    }
    conditions = frozenset({Condition.RESOURCES, Condition.POSITIVE, Condition.ENDLESS})
    weights_per_resource = True
    share_is_part = True
    default_queue_share: ClassVar = "dominant"
    counts_resources: ClassVar = True

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation; for the sharing incentive only if the weights have the same sum for every resource."""
        total = instance.weights.sum(axis=0)
        if wanted is Property.SHARING_INCENTIVE and not np.allclose(total, total.max(), rtol=NOTHING, atol=0.0):
            return None
        return super().promise(wanted, instance, sharing)

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse instances with several servers, and those that every notion refuses."""
        super().check(instance, sharing)
        if instance.counts.sum() != 1:
            raise Unsupported(
                f'"drf" is defined on one server and the instance has {instance.counts.sum():.0f}; '
                'use "drfh", its extension to several servers'
            )

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return max_r m[r] d[n,r] / c[r]."""
        if instance.differs_by_server:
            return share_of_work(instance, self.counting(instance))
        return dominant_share(instance, instance.total_capacity, self.counting(instance))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the dominant share of the server as text."""
        return dominant_part(instance, user, "the server", self.counting(instance))
