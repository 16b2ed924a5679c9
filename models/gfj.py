"""Generalised fairness on jobs (GFJ): a trade-off between fairness and efficiency, both of the numbers of tasks.

    maximise  f[beta, lambda](x),      x[n] the tasks of user n,

with f as in ``fairopt.models.tradeoff``, over the same allocations as every other notion (Joe-Wong, Sen, Lan and Chiang 2013). The size of
tasks does not count: a task of one user is worth the same as a task of another.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 30]], [[1, 4], [3, 1]])
>>> fo.solve(instance, "gfj", beta=2, lam=-0.5).tasks_per_user.round(4)  # alpha-fair, alpha = 2
array([3.2942, 1.9019])
>>> fo.solve(instance, "gfj", beta=2, lam=-1).tasks_per_user.round(4)  # maximises x[0] x[1], as f = -1 / sqrt(x[0] x[1])
array([4.5, 1.5])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.models.tradeoff import TradeoffNotion

__all__ = ["GFJ"]


@dataclass(frozen=True)
class GFJ(TradeoffNotion):
    """Maximum of f[beta, lambda] of the numbers of tasks."""

    name = "gfj"
    title = "Generalised fairness on jobs, against efficiency"
    source = "Joe-Wong, Sen, Lan and Chiang (2013), generalised fairness on jobs (GFJ)"
    references = ("JoeWong2013",)
    symmetric = True
    by_server = True

    def share_per_task(self, instance: Instance) -> FloatArray:
        """Return 1 for every user: tasks are counted."""
        return np.ones(instance.n_users)
