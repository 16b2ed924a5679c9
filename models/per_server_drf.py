"""DRF on each server by itself: the naive extension that DRFH argues against.

Every server i runs DRF among its eligible users as if it were the only one:

    leximin over n of  s[n,i] = (max_r d[n,r] / (counts[i] c[i,r])) x[n,i] / phi[n]        for each server i.

A user with finitely many tasks, or limited parallelism, brings to each server, in order, what earlier ones did not take; a row that
stands for several servers takes its turn as one. Each server's shares are unique, and with them every x[n,i]: here placements can be
compared.

*Properties.* On each server for itself DRF has them all. Of the whole two remain. Sharing incentive: at s[n,i] = phi[n] / sum_m phi[m]
no resource is used beyond sum_n s[n,i] <= 1, so no server stops anybody below its slice. Freedom from envy, server by server: who
stops at a full resource holds at least as much of it, for its weight, as anybody else who uses it. Pareto optimality is lost, for no
server looks at what a user has elsewhere: Wang, Li and Liang (2014), section III-D and figure 2, run 6 tasks of each user where DRFH
runs 10, and say that utilization may be arbitrarily low. "psdsf" keeps one decision per server and does look.

>>> import fairopt as fo
>>> instance = fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]])
>>> fo.solve(instance, "per-server-drf").tasks_per_user.round(9)
array([6., 6.])
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.models.notion import Property, ShareNotion, alone_on_each
from fairopt.program import Goal, Leximin, Separate

__all__ = ["PerServerDRF"]

_SOURCE = "Ghodsi et al. (2011), section 4, server by server"


class PerServerDRF(ShareNotion):
    """DRF on each server separately: leximin of max_r d[n,r] / c[i,r] * x[n,i] / phi[n] for each i."""

    name = "per-server-drf"
    title = "DRF on each server separately"
    source = "Wang, Li and Liang (2014), section III-D"
    satisfies: ClassVar = {Property.SHARING_INCENTIVE: _SOURCE, Property.ENVY_FREENESS: _SOURCE}
    share_is_part = True

    def merges(self, instance: Instance) -> bool:
        """Only where no user runs out of tasks or parallelism: servers take them in order, and identical ones would all come first."""
        return bool(np.isinf(instance.tasks).all() and not instance.limited.any())

    def share_per_task(self, instance: Instance) -> FloatArray:
        """1 / gamma0[n,i] = max_r d[n,r] / (counts[i] c[i,r]), (users, servers)."""
        gamma = instance.unconstrained_rates
        return np.divide(1.0, gamma, out=np.full_like(gamma, np.inf), where=gamma > 0)

    def goal(self, weights: FloatArray) -> Goal:
        """Return the leximin of each server by itself."""
        return Separate(Leximin(weights))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """What it could run alone, server by server."""
        return f"what it could run alone on each server, for each server by itself: {alone_on_each(instance, user)}"
