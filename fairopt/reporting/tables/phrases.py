"""Phrases that the tables of several results share."""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.allocation import Allocation
from fairopt.analysis.regrets import Regret
from fairopt.instance import Instance
from fairopt.show.table import Format
from fairopt.wording import joined, named, percent, plural

__all__ = ["counted", "guarantees_met", "min_share", "of_the_most", "servers_in_rows", "sharing_note", "size_of", "without_tiny"]

_FEW = 3  # users listed


def sharing_note(sharing: str) -> str:
    """Return the words on sharing for a title; none for resource division, the default.

    >>> sharing_note("rdm"), sharing_note("tdm")
    ('', ', sharing tdm')
    """
    return "" if sharing == "rdm" else f", sharing {sharing}"


def servers_in_rows(instance: Instance) -> str:
    """Return how many servers there are, and in how many rows of servers that are alike.

    >>> servers_in_rows(Instance([[4], [8]], [[1]], counts=[2, 1]))
    '3 servers in 2 rows'
    """
    rows = "" if (instance.counts == 1).all() else f" in {plural(instance.n_servers, 'row')}"
    return f"{plural(instance.counts.sum(), 'server')}{rows}"


def size_of(instance: Instance, sharing: str = "rdm") -> str:
    """Return how many users and servers there are, and how servers are shared."""
    return f"{plural(instance.n_users, 'user')}, {plural(instance.counts.sum(), 'server')}{sharing_note(sharing)}"


def counted(*instances: Instance) -> str:
    """Return what an efficiency counts: tasks (with speeds, work) by the weights of their users, if these differ and compare all users.

    In a tree weights compare siblings only, and a weight for each resource is no weight of a task.

    >>> counted(Instance([[4]], [[1], [1]])), counted(Instance([[4]], [[1], [1]], weights=[1, 2]))
    ('tasks', 'weighted tasks')
    """
    by_weight = (each.weights.ndim == 1 and not each.is_tree and bool((each.weights != 1).any()) for each in instances)
    what = "work" if any(each.speeds_given is not None for each in instances) else "tasks"
    return f"weighted {what}" if any(by_weight) else what


def of_the_most(efficiency: float, instance: Instance) -> str:
    """Return what follows a number of tasks: which part of the most possible it is.

    >>> of_the_most(0.25, Instance([[4]], [[1], [1]])), of_the_most(0.25, Instance([[4]], [[1], [1]], weights=[1, 2]))
    (', 25.0 % of the most possible', '; weighted tasks 25.0 % of the most possible')
    """
    what = counted(instance)
    return f"{', ' if what == 'tasks' else f'; {what} '}{percent(efficiency, 1)} of the most possible"


def min_share(*instances: Instance) -> str:
    """Return what tables call the smallest dominant share of a user, which is divided by the weight where weights differ."""
    return "min share / weight" if any((each.weights != 1).any() for each in instances) else "min share"


def without_tiny(regret: Regret, measures: Sequence[str] = ("level", "largest", "goal", "total")) -> str:
    """Return what the regret is without users who have less than one task of the optimum, and none here."""
    many = len(regret.tiny)
    text = (
        f"{plural(many, 'user has', 'users have')} less than one of the divisible tasks of the exact allocation, and none here "
        f"({joined(regret.tiny, _FEW)}), so that the shortfall is 100 %."
    )
    if regret.others is None:
        return text
    known = [name for name in measures if getattr(regret.others, name) is not None]
    write = Format(percent=True, decimals=1, tiny=True).write
    values = joined([f"{name} {write([getattr(regret.others, name)])[0]}" for name in known])
    worst = "" if regret.worst_user is None else f"; {named(regret.worst_user)} falls short most"
    return f"{text} Regret without {'it' if many == 1 else 'them'}: {values}{worst}."


def guarantees_met(allocation: Allocation | None) -> str:
    """Return how many guarantees are met, of queues and of users: "all 4 met", "1 of 4 missing"."""
    if allocation is None:
        return "-"
    own = allocation.instance.guarantees
    met = [promise.met for each in allocation.queue_holdings()[1:] for promise in each.guarantees]
    met += (own - allocation.tasks_per_user <= 1e-7 * own)[own > 0].tolist()
    missing = met.count(False)
    return f"{missing} of {len(met)} missing" if missing else f"all {len(met)} met" if met else "-"
