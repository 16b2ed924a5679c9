"""Fairness on dominant shares (FDS): a trade-off between fairness and efficiency, both of the users' dominant shares.

    maximise  f[beta, lambda](s),      s[n] = mu[n] x[n],   mu[n] = max_r d[n,r] / C[r],   C[r] = sum_i counts[i] c[i,r],

with f as in ``fairopt.models.tradeoff``, over the same allocations as every other notion. Joe-Wong, Sen, Lan and Chiang (2013) define it
for one pool; here C is the capacity of the cluster, as in `drfh`. The larger beta, the more the smallest shares count; the larger |lambda|,
the more their sum counts. Without weights and with lambda = (1 - beta) / beta, the limit of large beta is `drfh`.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 30]], [[1, 4], [3, 1]])
>>> fo.solve(instance, "drfh").shares.round(4)
array([0.5455, 0.5455])
>>> fo.solve(instance, "fds", beta=2, lam=-0.5).shares.round(4)  # alpha-fair, alpha = 2
array([0.5727, 0.5228])
>>> fo.solve(instance, "fds", beta=2, lam=-4).shares.round(4)
array([0.75 , 0.375])
"""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.instance import FloatArray, Instance
from fairopt.models.share_notion import dominant_share, share_of_work
from fairopt.models.tradeoff import TradeoffNotion

__all__ = ["FDS"]


@dataclass(frozen=True)
class FDS(TradeoffNotion):
    """Maximum of f[beta, lambda] of the global dominant shares."""

    name = "fds"
    title = "Fairness on dominant shares, against efficiency"
    source = "Joe-Wong, Sen, Lan and Chiang (2013), fairness on dominant shares (FDS)"
    references = ("JoeWong2013",)
    symmetric = True
    by_server = True

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return max_r d[n,r] / sum_i counts[i] c[i,r]; where demands or speeds differ by server that of a unit of work, as in `drfh`."""
        if instance.differs_by_server:
            return share_of_work(instance, None)
        return dominant_share(instance, instance.total_capacity)
