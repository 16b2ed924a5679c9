"""The summary of a report in sentences, every one of which is a number of the studies."""

from __future__ import annotations

import numpy as np

from fairopt.analysis.measures import takes_part
from fairopt.reporting.findings import Findings, OfNotion
from fairopt.reporting.tables import number, percent
from fairopt.wording import plural, some

__all__ = ["about_instance", "about_notion", "summary"]


def about_instance(findings: Findings) -> list[str]:
    """Say who shares what."""
    instance = findings.instance
    rows = "" if instance.n_servers == instance.counts.sum() else f" in {plural(instance.n_servers, 'row')} of identical ones"
    totals = [f"{number(total, 6)} {name}" for total, name in zip(instance.total_capacity, instance.resources, strict=True)]
    how = "divide the resources of each server" if findings.comparison.sharing == "rdm" else "divide the time of each server"
    sentences = [
        f"{plural(instance.n_users, 'user')} share {plural(instance.counts.sum(), 'server')}{rows}: {some(totals, 8)} in all.",
        f"They {how}.",
    ]
    confined = int((~instance.eligibility[:, instance.counts > 0]).any(axis=1).sum())
    for count, what in (
        (confined, "may not run on every server"),
        (int(np.isfinite(instance.tasks).sum()), "have finitely many tasks"),
        (int(instance.limited.sum()), "can be on some of their servers at once only"),
        (len(instance.unservable), "can run nowhere and get nothing"),
    ):
        if count:
            sentences.append(f"{count:,} of the users {what}.")
    return sentences


def about_notion(found: OfNotion) -> list[str]:
    """Say what one notion gives."""
    row, allocation = found.row, found.allocation
    if allocation is None:
        return [f"There is no allocation: {row.message}."]
    users = allocation.instance.users
    what = f"{number(row.tasks, 6)} tasks in all, {percent(row.efficiency)} of the most that is possible by weight"
    sentences = [f"{found.notion.title} (exact): {what}."]
    if not np.isnan(row.smallest_share):
        at = np.flatnonzero(takes_part(allocation.instance) & (row.dominant_shares <= row.smallest_share * (1 + 1e-9)))
        lowest = some([f'"{users[n]}"' for n in at], 3)
        sentences.append(f"The smallest weighted dominant share is {number(row.smallest_share)} (of {lowest}).")
        sentences.append(f"Jain's index of the shares is {number(row.jain, 3)}.")
    if row.envy is not None and row.envy.user is None:
        sentences.append("Nobody envies anybody.")
    elif row.envy is not None:
        more = f"{number(row.envy.tasks)} tasks more"
        sentences.append(f'The largest envy is of "{row.envy.user}", who could run {more} with what "{row.envy.of}" holds.')
    sentences.append("In use: " + some([f"{percent(part)} of {thing}" for thing, part in row.use.items()], 8) + ".")
    return sentences


def summary(findings: Findings) -> list[str]:
    """Say in one sentence each what every notion, schedule and the frontier come to."""
    sentences = [_of_notion(found) for found in findings.notions]
    for row in findings.schedules:
        if row.allocation is None:
            sentences.append(f"{row.name}: no schedule ({row.message}).")
        elif row.regret is not None:
            short = f"{percent(row.regret.worst)} short of the exact {row.regret.notion} where it is furthest from it"
            sentences.append(f"{row.name} (greedy): {number(row.tasks, 6)} tasks, {short}.")
    trade = findings.frontier.value
    if trade is not None:
        fairest = float(trade.vertices[0, 0])
        price = 1 - fairest / trade.largest_total if trade.largest_total > 0 else 0.0
        sentences.append(
            f"The largest possible smallest share, {number(trade.largest_share)}, costs {percent(price)} of the most tasks: with it "
            f"at most {number(fairest, 6)} run, without it {number(trade.largest_total, 6)}."
        )
    certificates = [found.allocation.certificate for found in findings.solved if found.allocation is not None]
    worst = [certificate.worst for certificate in certificates if not certificate.reservation]
    if worst:
        sentences.append(f"Every allocation called exact is certified: the largest residual is {max(worst):.1e}, relative (last section).")
    return sentences


def _of_notion(found: OfNotion) -> str:
    row, verdicts = found.row, found.audit.value
    if found.allocation is None:
        return f"{row.name}: no allocation ({row.message})."
    parts = [
        f"{row.name}: {number(row.tasks, 6)} tasks, {percent(row.efficiency)} of the most possible by weight",
        f"smallest weighted dominant share {number(row.smallest_share)}",
    ]
    if row.envy is not None:
        parts.append("no envy" if row.envy.user is None else f"envy of up to {number(row.envy.tasks)} tasks")
    if verdicts is not None:
        parts.append(f"violates {some(verdicts.violated, 4)}" if verdicts.violated else "violates nothing that was checked")
    return "; ".join(parts) + "."
