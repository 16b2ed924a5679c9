"""Changes of an instance that `fairopt.explain` tries, and those of limits of queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import Number, number
from fairopt.analysis.explanation.of_cluster import full_of_cluster
from fairopt.analysis.explanation.queues import amount_of, reached_limits
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.fractions import fraction_of
from fairopt.instance.queues import Queue, Quota
from fairopt.instance.rule_sides import Side, sides
from fairopt.instance.rules import Rule
from fairopt.instance.shared import limit_name
from fairopt.instance.units import bare_amount
from fairopt.models import Notion, Stated
from fairopt.program.queue_limits import Row
from fairopt.wording import brief, figure, named

__all__ = [
    "Change",
    "limit_changes",
    "of_rules",
    "raised",
    "row_changes",
    "rule_changes",
    "shared_changes",
    "step",
    "step_of",
    "stopped_by_rule",
    "with_queue",
]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A changed instance; ``servers`` has, for each of its rows, the position of the same row in the present instance.

    Or the same instance under another ``notion``, whose row has a larger bound.
    """

    words: str
    kind: str
    instance: Callable[[], Instance]
    servers: IntArray | None = None
    hint: Number = 0.0  # ranks changes without a price
    notion: Notion | None = None


def step_of(amount: Any) -> Any:
    """Return the size of a change of one amount."""
    return number(step(np.array([amount]))[0])


def step(amounts: FloatArray) -> FloatArray:
    """Return the size of a change: one unit, or a tenth of the amount if the amount is below one unit."""
    one: Any = Fraction(1) if amounts.dtype == object else 1.0
    return np.where(amounts >= 1, one, amounts / 10)


def limit_changes(allocation: Allocation, users: BoolArray) -> list[Change]:
    """Return a larger limit for each reached limit of some of these users, and more that is lent by queues that keep some.

    The largest price comes first.
    """
    instance, view, found = allocation.instance, allocation.as_known, list[tuple[float, Change]]()
    for stop in reached_limits(view):
        row = stop.row
        if not np.isin(np.flatnonzero(users), row.members(instance.kinds)).any():
            continue
        if row.selection is not None:
            found.append((view.queue_prices.get(row.name, 0), _larger_bound(instance, row)))
            continue
        resource = instance.resources[row.resource]
        for node, group in [each[:2] for each in row.keepers] or [row.of]:
            queue = view.instance.queues[node - 1]
            quota = queue.everywhere_and_on_groups[group]
            which = "lending_limit" if row.keepers else "limit"
            before = getattr(quota, which)[resource]
            after = before + (step_of(before) if before > 0 else 1)
            now = bare_amount(before, resource, instance.units.get(resource, ""))
            if row.keepers:
                after = min(after, quota.guarantee[resource])
                words = f"{instance.amount(after, resource)} lent instead of {now} by {named(queue.name)}"
            else:
                words = f"a limit of {instance.amount(after, resource)} instead of {now} for {named(queue.name)}"
            words += f" on {quota.name}" if group else ""
            make = raised(instance, replace(row, of=(node, group)), which, resource, after)
            found.append((view.queue_prices.get(row.name, 0), Change(words, "limit", make)))
    return [change for _, change in sorted(found, key=lambda each: -each[0])]


def rule_changes(allocation: Allocation, user: int) -> list[Change]:
    """Return the instance without each rule that more of the user would break: of whole tasks, one task more."""
    instance, view, whole = allocation.instance, allocation.as_known, allocation.certificate.whole_tasks
    rules = [side for side in sides(view.instance, view.tasks) if side.stops[user]]
    full = [side.rule for side in rules if side.is_full() or (whole and side.allows_no_task(user))]
    return [Change(f'leaving out the rule "{brief(rule.text)}"', "rule", partial(_without, instance, rule)) for rule in full]


def _without(instance: Instance, rule: Rule) -> Instance:
    return instance.replace(rules=[each for each in instance.rules if each.text != rule.text])


def stopped_by_rule(allocation: Allocation, user: int) -> bool:
    """Say whether a rule stops the user on all servers: with more of its tasks, wherever they run, the rule would be broken."""
    return any(_stops(allocation, side, user) and side.least[user] > 0 for side in sides(allocation.instance, allocation.tasks))


def _stops(allocation: Allocation, side: Side, user: int) -> bool:
    no_room = side.is_full() or (allocation.certificate.whole_tasks and side.allows_no_task(user))
    return bool(side.stops[user] and not side.raises[user] and no_room)


def of_rules(allocation: Allocation, user: int) -> list[str]:
    """Return sentences on the rules that stop the user or give it more: with equality, or with no room for a whole task."""
    found = []
    for side in sides(allocation.instance, allocation.tasks):
        stops = _stops(allocation, side, user)
        if not (side.is_full() or stops):
            continue
        if stops:
            found.append(f'Bottleneck: the rule "{brief(side.rule.text)}" would be broken if it had more.')
        elif side.raises[user] and not side.stops[user]:
            found.append(f'The rule "{brief(side.rule.text)}" gives it as much as it has: with less, the rule would be broken.')
        elif side.stops[user]:
            found.append(f'The rule "{brief(side.rule.text)}" holds with equality, and decides on which servers it runs.')
    return found


def _larger_bound(instance: Instance, row: Row) -> Change:
    """Return a larger bound of a named limit; one of each of several is larger for all of them."""
    assert row.selection is not None
    limit = next(each for each in instance.limits if each.name == row.selection.limit.name)
    before = number(fraction_of(limit.bound)) if isinstance(row.bound, Fraction) else float(limit.bound)
    after = before + (step_of(before) if before > 0 else 1)
    words = f"a bound of {amount_of(row, after, instance, 3)} instead of {figure(before)} for limit {named(limit.name)}"
    return Change(words, "limit", lambda: instance.replace(limits={limit.name: {"bound": after}}))


def row_changes(allocation: Allocation, users: BoolArray) -> list[Change]:
    """Return a larger bound of each row that was stated (`fairopt.Program.with_limit`), has a price and limits one of these users."""
    question, instance = allocation.question, allocation.instance
    notion = None if question is None else question.notion
    if not isinstance(notion, Stated):
        return []
    found = []
    for row in notion.rows_for(instance):
        if row.name in allocation.queue_prices and users[row.at_users].any():
            after = row.bound + (step_of(row.bound) if row.bound > 0 else 1)
            words = f'a bound of {figure(number(after))} instead of {figure(number(row.bound))} for "{row.name}"'
            raised_row = notion.with_bound(row.name, after)
            found.append((allocation.queue_prices[row.name], Change(words, "limit", lambda: instance, notion=raised_row)))
    return [change for _, change in sorted(found, key=lambda each: -each[0])]


def shared_changes(allocation: Allocation, users: BoolArray) -> list[Change]:
    """Return more of each resource of the cluster that leaves some of these users no room; the largest price comes first."""
    instance, view = allocation.instance, allocation.as_known
    full = dict.fromkeys(each.resource for n in np.flatnonzero(users).tolist() for each in full_of_cluster(view, n))
    found = []
    for r in full:
        name = instance.resources[r]
        before = number(view.instance.total_capacity[r])
        more = step_of(before) if before > 0 else before + 1
        words = f"+{instance.amount(more, name)} in the cluster"
        price = number(view.queue_prices.get(limit_name(name), 0))
        make = _with_shared(instance, name, before + more)
        found.append(Change(words, "capacity", make, hint=price * more))
    return sorted(found, key=lambda change: -change.hint)


def _with_shared(instance: Instance, name: str, amount: Number) -> Callable[[], Instance]:
    return lambda: instance.replace(shared={name: amount})


def raised(instance: Instance, row: Row, which: str, resource: str, amount: Number) -> Callable[[], Instance]:
    """Return a change of one amount of a row's quota; ``which`` names its guarantee, limit or lending limit."""
    node, group = row.of
    queue = instance.queues[node - 1].given

    def changed() -> Instance:
        quota = queue.everywhere_and_on_groups[group]
        amounts = {name: dict(getattr(quota, name)) for name in ("guarantee", "limit", "lending_limit")}
        amounts[which][resource] = amount
        if not group:
            return with_queue(instance, node, queue, **amounts)
        quotas = list(queue.quotas)
        quotas[group - 1] = Quota(queue.quotas[group - 1].servers, name=queue.quotas[group - 1].name, **amounts)
        return with_queue(instance, node, queue, quotas=quotas)

    return changed


def with_queue(instance: Instance, node: int, queue: Queue, **changes: object) -> Instance:
    """Return the instance with another queue at a node."""
    given = queue.given
    values = {name: getattr(given, name) for name in given.__dataclass_fields__} | changes
    queues = list(instance.queues)
    queues[node - 1] = Queue(**values)
    return instance.replace(queues=queues)
