"""The sentences of a report."""

from __future__ import annotations

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.comparison import Row
from fairopt.analysis.measures import takes_part
from fairopt.instance.records import confined
from fairopt.instance.units import bare_amount
from fairopt.reporting.findings import PROMISES, Findings, OfNotion
from fairopt.reporting.tables.phrases import of_the_most, servers_in_rows
from fairopt.wording import figure, joined, percent, plural, residual

__all__ = ["about_instance", "about_notion", "summary"]


def about_instance(findings: Findings) -> list[str]:
    """Describe the users and the servers."""
    instance = findings.instance
    units = instance.units
    totals = [
        f"{bare_amount(total, name, units.get(name, ''), 6)} {name}"
        for total, name in zip(instance.total_capacity, instance.resources, strict=True)
    ]
    how = "divide the resources of each server" if findings.comparison.sharing == "rdm" else "divide the time of each server"
    sentences = [
        f"{plural(instance.n_users, 'user')} share {servers_in_rows(instance)}: {joined(totals, 8)} in all.",
        f"They {how}.",
    ]
    if instance.queues:
        sentences.append(f"They are in {plural(len(instance.queues), 'queue')} of {plural(int(instance.tree.depth.max()), 'level')}.")
    for count, one, many in (
        (
            int(confined(instance).sum()),
            "user may not run on every server that has its resources",
            "users may not run on every server that has their resources",
        ),
        (len(instance.limits), "limit holds beside the capacities", "limits hold beside the capacities"),
        (len(instance.rules), "rule must hold", "rules must hold"),
        (int(np.isfinite(instance.tasks).sum()), "user has a task limit", "users have a task limit"),
        (
            int(instance.limited.sum()),
            "user is limited in how many servers it uses at once",
            "users are limited in how many servers they use at once",
        ),
        (len(instance.unservable), "user can run nowhere and gets nothing", "users can run nowhere and get nothing"),
    ):
        if count:
            sentences.append(f"{plural(count, one, many)}.")
    return sentences


def about_notion(found: OfNotion) -> list[str]:
    """Describe the allocation of one notion."""
    row, allocation = found.row, found.allocation
    if allocation is None:
        return [f"No allocation: {row.message}."]
    what = f"{plural(row.tasks, 'task')} in all{of_the_most(row.efficiency, allocation.instance)}"
    sentences = [
        f"{found.notion.title} (exact): {what}.",
        *(_by_tree(found) if allocation.instance.is_tree else _by_weight(row, allocation)),
    ]
    sentences.append("In use: " + joined([f"{percent(part, 1)} of {thing}" for thing, part in row.use.items()], 8) + ".")
    return sentences


def _by_tree(found: OfNotion) -> list[str]:
    """Return what holds among the children of each queue: users of different queues are not compared."""
    verdicts = found.audit.value
    return [verdicts[name].statement for name in PROMISES if verdicts is not None and name in verdicts and verdicts[name].holds is not None]


def _by_weight(row: Row, allocation: Allocation) -> list[str]:
    """Return the measures of users who are compared with each other by weight."""
    users, sentences = allocation.instance.users, list[str]()
    if not np.isnan(row.smallest_share):
        at = np.flatnonzero(takes_part(allocation.instance) & (row.dominant_shares <= row.smallest_share * (1 + 1e-9)))
        lowest = joined([f'"{users[n]}"' for n in at], 3)
        sentences.append(f"The smallest weighted dominant share is {figure(row.smallest_share, 4)} (of {lowest}).")
        sentences.append(f"Jain's index of the shares is {figure(row.jain, 3)}.")
    if row.envy is not None and row.envy.user is None:
        sentences.append("No user envies another.")
    elif row.envy is not None:
        more = plural(row.envy.tasks, "more task", "more tasks", digits=4)
        sentences.append(f'The largest envy: "{row.envy.user}" could run {more} with the resources of "{row.envy.of}".')
    return sentences


def summary(findings: Findings) -> list[str]:
    """Summarise every notion, every schedule and the frontier in one sentence each."""
    sentences = [_of_notion(found) for found in findings.notions]
    for row in findings.schedules:
        if row.allocation is None:
            sentences.append(f"{row.name}: no schedule ({row.message}).")
        elif row.regret is not None:
            short = f"at worst {percent(row.regret.worst, 1)} short of the exact allocation of {row.regret.notion}"
            how = "given" if row in findings.given else row.kind
            sentences.append(f"{row.name} ({how}): {plural(row.tasks, 'task')}, {short}.")
    trade = findings.frontier.value
    if trade is not None:
        fairest = float(trade.vertices[0, 0])
        price = 1 - fairest / trade.largest_total if trade.largest_total > 0 else 0.0
        what = "tasks" if trade.instance.speeds_given is None else "work"
        sentences.append(
            f"The smallest share can be {figure(trade.largest_share, 4)} at most. That costs {percent(price, 1)} of the {what}: "
            f"{figure(fairest, 6)} instead of {figure(trade.largest_total, 6)}."
        )
    certificates = [found.allocation.certificate for found in findings.solved if found.allocation is not None]
    worst = [certificate.worst for certificate in certificates if not certificate.qualifier]
    if worst:
        sentences.append(
            f"Every exact allocation is certified: the largest relative error is {residual(max(worst))} (see the last section)."
        )
    return sentences


def _of_notion(found: OfNotion) -> str:
    row, verdicts = found.row, found.audit.value
    if found.allocation is None:
        return f"{row.name}: no allocation ({row.message})."
    parts = [
        f"{row.name}: {plural(row.tasks, 'task')}{of_the_most(row.efficiency, found.allocation.instance)}",
    ]
    if not found.allocation.instance.is_tree:
        parts.append(f"smallest weighted dominant share {figure(row.smallest_share, 4, missing='-')}")
        if row.envy is not None:
            parts.append("no envy" if row.envy.user is None else f"envy of up to {plural(row.envy.tasks, 'task', digits=4)}")
    if verdicts is not None:
        parts.append(f"violates {joined(verdicts.violated, 4)}" if verdicts.violated else "no violation found")
    return "; ".join(parts) + "."
