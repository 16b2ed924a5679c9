"""The allocations whose totals and smallest shares a frontier compares: alpha-fair ones, schedules, members of the families fds and gfj."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.measures import shares_per_task
from fairopt.analysis.own_schedulers import made
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import Instance
from fairopt.models import Notion, Sharing
from fairopt.solving import notion_of, solve, without_remarks
from fairopt.specs import OwnScheduler
from fairopt.wording import did_you_mean, written

__all__ = ["FAMILIES", "alpha_fair_point", "checked_alpha", "members_of", "scheduled_point"]

FAMILIES = ("fds", "gfj")


def checked_alpha(alpha: Any) -> float:
    """Return an alpha as a number >= 0."""
    try:
        value = float(alpha)
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if not value >= 0:
        raise InvalidInstance(f"alpha is {written(alpha)}; give numbers >= 0, inf for max-min")
    return value


def alpha_fair_point(instance: Instance, alpha: float, of: str, sharing: Sharing, time_limit: float | None) -> Allocation:
    """Return the alpha-fair allocation of tasks, or of shares, per unit of weight."""
    one = instance if instance.weights.ndim == 1 else instance.replace(weights=None)  # the shares contain the weights
    utility = shares_per_task(instance) if of == "shares" else 1.0 / one.weights[:, None]
    if of == "shares" and instance.speeds_given is not None:  # of a unit of work
        utility = np.divide(utility, instance.speeds, out=np.ones(instance.speeds.shape), where=instance.speeds > 0)
    utility = np.where(np.isfinite(utility), utility, 1.0)  # never read where a user may not run
    notion: Notion
    if np.isinf(alpha):  # max-min divides by the weights itself
        notion = notion_of("max-min", utility=utility * one.weights[:, None])
    else:
        notion = notion_of("proportional", alpha=alpha, utility=None if (utility == 1).all() else utility)
    with without_remarks():
        return solve(one, notion, sharing=sharing, time_limit=time_limit)


def scheduled_point(instance: Instance, plan: Mapping[str, Any] | Allocation | OwnScheduler, sharing: Sharing) -> Allocation:
    """Return the allocation of a schedule, or one that was given for the same instance and sharing."""
    if not isinstance(plan, Allocation):
        return made(instance, plan, sharing)
    if plan.instance != instance or plan.sharing != sharing:
        raise InvalidInstance(f"the allocation is of another instance or sharing ({plan.sharing}, here {sharing}); stay within one")
    return plan


def members_of(families: Mapping[str, Sequence[tuple[float, float]]]) -> Iterator[tuple[str, float, float]]:
    """Yield the family, beta and lambda of each member."""
    for family, members in families.items():
        if family not in FAMILIES:
            raise Unsupported(f'there is no family "{family}"{did_you_mean(family, FAMILIES)}; there are {", ".join(FAMILIES)}')
        for member in members:
            if not isinstance(member, Sequence) or isinstance(member, str) or len(member) != 2:
                raise Unsupported(f"a member of {family} is {member!r}; give pairs (beta, lambda), such as (2, -1)")
            yield family, member[0], member[1]
