r"""Fairness on the pooled cluster, rounded greedily: what a scheduler does that takes its cluster for one large server.

The notion is solved on one server that has all capacity of the cluster and where everybody may run (`fairopt.Instance.pooled`); with "drfh"
that is dominant resource fairness (Ghodsi et al. 2011). Its numbers of tasks, rounded up, are what each user is entitled to. Whole tasks
are placed one by one, of the user with the smallest share first, on the first server on which its task fits, until it has these.

The pool has room that no server has, so nothing is proved: here two servers run 12 tasks of the 20 that the pool would run.

>>> import fairopt as fo
>>> instance = fo.load("examples/drfh-figure-1.yaml")
>>> fo.schedule(instance, "drfh:pooled").tasks_per_user, fo.solve(instance, "drfh").tasks_per_user
(array([6., 6.]), array([10., 10.]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import REACHED
from fairopt.models import Notion
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.rounding import filled_up_to
from fairopt.solving import solve, without_remarks

__all__ = ["Pooled"]


@dataclass(frozen=True)
class Pooled(Baseline):
    """The pooled cluster with greedy rounding. It has no options."""

    name: ClassVar[str] = "pooled"
    title: ClassVar[str] = (
        "The pooled cluster: the notion on one server with all capacity, and whole tasks placed greedily up to its numbers"
    )
    source: ClassVar[str] = "Ghodsi et al. (2011) on the pool"
    example: ClassVar[str] = "drfh:pooled"
    guarantee: ClassVar[str] = "none; nobody has more tasks than on the pool, rounded up"
    whole: ClassVar[bool] = True
    needs_levels: ClassVar[bool] = True

    def check(self, notion: Notion) -> None:
        """Refuse a utility that differs between servers, which one pool does not have."""
        super().check(notion)
        if notion.utility is not None and notion.utility.shape[1] > 1:
            raise Unsupported('"pooled" takes the cluster for one server, and the utility differs between servers; leave utility out')

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return whole tasks, and what each user is entitled to."""
        with without_remarks():
            entitled = solve(case.instance.pooled(), case.notion).tasks_per_user
        most = np.ceil(entitled * (1 - REACHED))
        return filled_up_to(case, most), {"entitled": dict(zip(case.instance.users, entitled.tolist(), strict=True))}
