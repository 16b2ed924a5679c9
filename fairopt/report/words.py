"""The summary of a report in sentences, every one of which is a number of the studies."""

from __future__ import annotations

import numpy as np

from fairopt.report.findings import Findings, OfNotion
from fairopt.report.tables import number, percent
from fairopt.wording import plural, some

__all__ = ["about_certificates", "about_instance", "about_notion", "summary"]


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
    what = "the best whole tasks found" if allocation.certificate.best_found else "exact"
    sentences = [f"{found.notion.title} ({what}): {number(row.tasks, 6)} tasks in all, {percent(row.efficiency)} of the most that is possible by weight."]
    if not np.isnan(row.smallest_share):
        shares = row.dominant_shares
        at = np.flatnonzero(shares <= row.smallest_share * (1 + 1e-9))
        lowest = some([f'"{users[n]}"' for n in at], 3)
        sentences.append(f"The smallest weighted dominant share is {number(row.smallest_share)} (of {lowest}); Jain's index is {number(row.jain, 3)}.")
    if row.envy is not None:
        sentences.append(
            "Nobody envies anybody."
            if row.envy.user is None
            else f'The largest envy is of "{row.envy.user}", who could run {number(row.envy.tasks)} tasks more with what "{row.envy.of}" holds.'
        )
    sentences.append("In use: " + some([f"{percent(part)} of {thing}" for thing, part in row.use.items()], 8) + ".")
    return sentences


def summary(findings: Findings) -> list[str]:
    """Say in one sentence each what every notion, schedule and the frontier come to."""
    sentences = []
    for found in findings.notions:
        row = found.row
        if found.allocation is None:
            sentences.append(f"{row.name}: no allocation ({row.message}).")
            continue
        envy = "no envy" if row.envy is None or row.envy.user is None else f"envy of up to {number(row.envy.tasks)} tasks"
        verdicts = found.audit.value
        failed = "" if verdicts is None else f"; violates {some(verdicts.violated, 4)}" if verdicts.violated else "; violates no property that was checked"
        sentences.append(
            f"{row.name}: {number(row.tasks, 6)} tasks, {percent(row.efficiency)} of the most possible; smallest weighted dominant share "
            f"{number(row.smallest_share)}; {envy}{failed}."
        )
    for row in findings.schedules:
        if row.allocation is None:
            sentences.append(f"{row.name}: no schedule ({row.message}).")
        elif row.regret is not None:
            short = f"{percent(row.regret.worst)} short of the exact {row.regret.notion} where it is furthest from it"
            sentences.append(f"{row.name} (greedy): {number(row.tasks, 6)} tasks, {short}.")
    trade = findings.frontier.value
    if trade is not None:
        fairest = trade.vertices[0]
        price = 1 - fairest[0] / trade.largest_total if trade.largest_total > 0 else 0.0
        sentences.append(
            f"Of the most tasks possible, {number(trade.largest_total, 6)}, the largest smallest share ({number(trade.largest_share)}) costs "
            f"{percent(price)}: the frontier goes from {number(fairest[0], 6)} tasks to all of them."
        )
    sentences += about_certificates(findings)
    return sentences


def about_certificates(findings: Findings) -> list[str]:
    """Say how far to believe the numbers."""
    worst = [found.allocation.certificate.worst for found in findings.solved if found.allocation and not found.allocation.certificate.reservation]
    if not worst:
        return []
    return [f"Every allocation called exact is certified: the largest residual is {max(worst):.1e}, relative (the table is in the last section)."]
