"""Efficiency: the largest weighted number of tasks, whoever runs them.

    maximise  sum_n phi[n] x[n],

over the same allocations as every other notion. This is a linear program: `proportional` with alpha = 0, the opposite of max-min in the
alpha family. Kesidis et al. (2018), equation (18), measure schedulers by this sum.

*Optimality.* x is optimal if and only if there are prices p >= 0, positive only for full capacities, and q >= 0, positive only for users
that run all their tasks, with

    phi[n] <= sum_r p[i,r] d[n,r] + q[n]     for every eligible pair (n, i), with equality where x[n,i] > 0.

With a single resource r, the users with the largest phi[n] / d[n,r] take as much as they can.

*Properties.* It is Pareto optimal, because every x[n] has a positive coefficient. It has no other property. No sharing incentive: a user
may get nothing, as two of three users do in figure 1 of the PS-DSF paper, where the third runs all 12 tasks. Not strategy-proof: with 10
units and demands 1 and 2, the second user gets nothing; if it reports 1/2 instead, it is given all 10 units and runs 5 tasks. Only the sum
is unique. The x[n] need not be: two users with the same demand and weight may divide their tasks in any way.

>>> import fairopt as fo
>>> fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "efficiency").tasks_per_user.round(6)
array([4.090909, 1.636364])
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.models.notion import Property
from fairopt.models.share_notion import ShareNotion
from fairopt.program import Goal, Total
from fairopt.wording import figure

__all__ = ["Efficiency"]


class Efficiency(ShareNotion):
    """Maximum of sum_n phi[n] x[n]."""

    name = "efficiency"
    title = "Largest weighted number of tasks"
    source = "Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari and Lambadaris (2018), equation (18)"
    references = ("Kesidis2018",)
    symmetric = True
    by_server = True
    satisfies: ClassVar = {Property.PARETO: "every x[n] counts: linear programming"}

    @property
    def merge_alpha(self) -> float:
        """Return 0: of identical users the one with the largest weight takes all tasks, so only users of equal weight merge."""
        return 0.0

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return 1 for every user: tasks are counted."""
        return np.ones(instance.n_users, dtype=instance.demands_by_kind.dtype)

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return what one task adds to the total, as text."""
        return f"what it adds to the total, the only thing that counts: {figure(instance.weights[user])} a task"

    def goal(self, weights: FloatArray) -> Goal:
        """Return the total."""
        return Total(weights)
