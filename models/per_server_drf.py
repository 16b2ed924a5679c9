"""DRF on each server by itself: the naive extension that DRFH argues against.

Every server i runs DRF among its eligible users as if it were the only one:

    leximin over n of  s[n,i] = (max_r d[n,r] / (counts[i] c[i,r])) x[n,i] / phi[n]        for each server i.

A user with finitely many tasks brings to each server, in order, those that earlier servers did not take; a row that stands for several
servers takes its turn as one. Wang, Li and Liang (2014), section
III-D and figure 2: the result can be far from Pareto optimal. In their example it runs 6 tasks of each user where DRFH runs 10.

>>> import fairopt as fo
>>> instance = fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]])
>>> fo.solve(instance, "per-server-drf").tasks_per_user.round(9)
array([6., 6.])
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.models.notion import ShareNotion
from fairopt.program import Goal, Leximin, Separate

__all__ = ["PerServerDRF"]


class PerServerDRF(ShareNotion):
    """DRF on each server separately: leximin of max_r d[n,r] / c[i,r] * x[n,i] / phi[n] for each i."""

    name = "per-server-drf"
    title = "DRF on each server separately"
    source = "Wang, Li and Liang (2014), section III-D"

    def merges(self, instance: Instance) -> bool:
        """Only where no user runs out of tasks: servers take them in order, and identical ones would all come first."""
        return bool(np.isinf(instance.tasks).all())

    def share_per_task(self, instance: Instance) -> FloatArray:
        """1 / gamma0[n,i] = max_r d[n,r] / (counts[i] c[i,r]), (users, servers)."""
        gamma = instance.unconstrained_rates
        return np.divide(1.0, gamma, out=np.full_like(gamma, np.inf), where=gamma > 0)

    def goal(self, weights: FloatArray) -> Goal:
        """Return the leximin of each server by itself."""
        return Separate(Leximin(weights))
