"""DRF on each server separately: the naive extension to several servers that the DRFH paper argues against.

Every server i computes DRF among its eligible users as if it were the only server:

    leximin over n of  s[n,i] = (max_r d[n,r] / (counts[i] c[i,r])) x[n,i] / phi[n]        for each server i.

The servers take turns in order. A user with finitely many tasks, or limited parallelism, brings to each server what is left of its limit. A
row that stands for several servers takes one turn. The shares of each server are unique, and so is every x[n,i]: of this notion, unlike
others, placements can be compared. Demands may differ by server; speeds change nothing, as each server compares parts of its resources.

*Properties.* On one server DRF has all the properties; on several, two of them remain.

* Sharing incentive: if s[n,i] phi[n] = phi[n] / sum_m phi[m] for all n, no resource is used beyond its capacity, as these shares sum to 1.
  So no server stops a user below its slice.
* Envy-freeness, server by server: a user that stops at a full resource holds at least as much of it, for its weight, as any other user
  of it.

Pareto optimality is lost, because no server takes into account what a user has elsewhere. In section III-D and figure 2 of Wang, Li and
Liang (2014) each user runs 6 tasks, and 10 under DRFH; utilization can be arbitrarily low. "psdsf" also decides server by server, but takes
the tasks on other servers into account.

>>> import fairopt as fo
>>> instance = fo.Instance([[2, 12], [12, 2]], [[.2, 1], [1, .2]])
>>> fo.solve(instance, "per-server-drf").tasks_per_user.round(9)
array([6., 6.])
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.instance.shared import refuse_shared
from fairopt.instance.task_limits import as_tasks, refuse_across_servers
from fairopt.models.notion import Condition, Property, Sharing
from fairopt.models.share_notion import ShareNotion, alone_on_each
from fairopt.program import Goal, Leximin, Program, Separate
from fairopt.program.exact import ExactProgram

__all__ = ["PerServerDRF"]

_SOURCE = "Ghodsi et al. (2011), section 4, server by server"


class PerServerDRF(ShareNotion):
    """DRF on each server separately: leximin of max_r d[n,r] / c[i,r] * x[n,i] / phi[n] for each i."""

    name = "per-server-drf"
    title = "DRF on each server separately"
    source = "Wang, Li and Liang (2014), section III-D"
    references = ("WangLiLiang2014",)
    symmetric = True
    by_server = True
    satisfies: ClassVar = {Property.SHARING_INCENTIVE: _SOURCE, Property.ENVY_FREENESS: _SOURCE}
    proofs_cover_work = frozenset({Property.SHARING_INCENTIVE, Property.ENVY_FREENESS})  # on each server, so in sum
    share_is_part = True

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation; where tasks do other work on other servers, only if nobody runs out of tasks on the slow ones."""
        if instance.differs_by_server and not Condition.ENDLESS.met(instance, sharing):
            return None
        return super().promise(wanted, instance, sharing)

    def merges(self, instance: Instance) -> bool:
        """Return False if tasks or parallelism are limited: servers take turns in order, and merged servers would take theirs together."""
        return bool(np.isinf(as_tasks(instance).tasks).all() and not instance.limited.any())

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse resources of the cluster, named limits on several servers, and what every notion refuses."""
        super().check(instance, sharing)
        instead = 'use "drfh", "cdrf" or another notion that looks at all servers together'
        refuse_shared(instance, f'"{self.name}" decides server by server', instead)
        refuse_across_servers(instance, self.name)

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program; limits on the tasks of one user are numbers of tasks."""
        return super().formulate(as_tasks(instance), sharing=sharing, integral=integral)

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return the program in fractions."""
        return super().in_fractions(as_tasks(instance), program)

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return 1 / gamma0[n,i] = max_r d[n,i,r] / (counts[i] c[i,r]), (users, servers); where speeds are given that of a unit of work."""
        gamma = instance.unconstrained_rates
        if instance.speeds_given is not None:
            gamma = np.multiply(gamma, instance.speeds, out=np.zeros_like(gamma), where=instance.speeds > 0)
        return np.divide(1, gamma, out=np.full_like(gamma, np.inf), where=gamma > 0)

    def goal(self, weights: FloatArray) -> Goal:
        """Return the leximin of each server, separately."""
        return Separate(Leximin(weights))

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return what it could run alone on each server, as text."""
        return f"what it could run alone on each server, for each server by itself: {alone_on_each(instance, user)}"
