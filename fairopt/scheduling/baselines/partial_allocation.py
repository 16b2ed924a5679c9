r"""Partial allocation: proportional fairness, of which each user gets the part that makes lies useless (Cole, Gkatzelis and Goel 2013).

With U* of proportional fairness, and U^-n of the others where user n is not there, user n gets the part

    f[n] = (prod over m != n of (U*[m] / U^-n[m])^phi[m])^(1 / phi[n])

of all that it has under proportional fairness. What is left over is not used.

*Guarantee.* 1/e <= f[n] <= 1: everybody has at least 1/e = 0.368 of what it has under proportional fairness. Where no user has a task
limit, nobody gains by a lie about its demands.

Two users of one pool would have half of it each. Alone, each would have twice as much, so each gets half of its half:

>>> import fairopt as fo
>>> pool = fo.Instance([[16]], [[1], [1]])
>>> fo.schedule(pool, "proportional:partial-allocation").tasks_per_user.round(6)
array([4., 4.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.instance.aggregation import merge
from fairopt.models import NOTIONS, Notion
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.solving import solve, without_remarks

__all__ = ["PartialAllocation"]


@dataclass(frozen=True)
class PartialAllocation(Baseline):
    """The partial allocation mechanism. It has no options."""

    name: ClassVar[str] = "partial-allocation"
    title: ClassVar[str] = "Partial allocation: of proportional fairness, each user gets the part that makes lies useless"
    source: ClassVar[str] = "Cole, Gkatzelis and Goel (2013)"
    example: ClassVar[str] = "proportional:partial-allocation"
    guarantee: ClassVar[str] = "each user has at least 1/e of what it has under proportional fairness, and no more"

    def check(self, notion: Notion) -> None:
        """Refuse all but proportional fairness."""
        if not (isinstance(notion, NOTIONS["proportional"]) and notion.options["alpha"] == 1):
            raise Unsupported(
                f'"{self.name}" gives parts of what users have under proportional fairness with alpha = 1, not of "{notion.name}" as it is '
                'asked for; write "proportional:partial-allocation"'
            )

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return the parts of what users have, and these parts by user."""
        instance, notion = case.instance, case.notion
        fair = solve(instance, notion, sharing=case.sharing)
        weights, part = case.weights, np.ones(instance.n_users)
        alike = np.column_stack([merge(instance, notion.utility, 1.0).user_group, weights])
        group = np.unique(alike, axis=0, return_inverse=True)[1].ravel()  # users who are merged, of one weight, have the same part
        for first in np.unique(group, return_index=True)[1].tolist():
            if fair.shares[first] <= 0 or instance.zero_demand[first]:
                continue
            tasks = instance.tasks.copy()
            tasks[first] = 0
            with without_remarks():
                others = solve(instance.replace(tasks=tasks), notion, sharing=case.sharing).shares
            counted = (fair.shares > 0) & (np.arange(instance.n_users) != first) & ~instance.zero_demand
            lost = weights[counted] @ (np.log(others[counted]) - np.log(fair.shares[counted]))
            part[group == group[first]] = np.exp(-max(float(lost), 0.0) / weights[first])
        return fair.tasks * part[:, None], {"parts": dict(zip(instance.users, part.tolist(), strict=True))}
