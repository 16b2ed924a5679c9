"""Accounts of a log that a cluster does not list.

The file of a cluster may be a moment of it: an import has the accounts that had jobs at that moment, and a log of Slurm has others, too.
Such an account is a queue in the root, with weight 1, and its users are in it (in Slurm, users of an account with FairShare=parent are
beside it: so is one that is not listed); where the associations are given, accounts and users are
where these say, with the shares that they have there (`fairopt.slurm.past.with_associations`).

In a cluster without queues whose users are accounts, as an import without associations has them, each account of the log is a queue with
the weight of that user.

A log none of whose owners the cluster knows is of another cluster: nothing is added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fairopt.histories.job_log import JobLog
from fairopt.instance import Instance
from fairopt.instance.queues import Queue
from fairopt.wording import joined, named, plural

__all__ = ["with_accounts"]

_MOST = 3  # names in a note


def with_accounts(log: JobLog, cluster: Instance) -> tuple[JobLog, Instance]:
    """Return a cluster that has a queue for each account of the log, where it has some of them, and the log with notes on them.

    Of a log whose queues are no accounts (`JobLog.accounts`), both are returned as they are.
    """
    if not log.accounts:
        return log, cluster
    pairs = np.unique(np.column_stack([log.owner, log.queue]), axis=0)
    account_of = [(log.owners[n], log.queues[q]) for n, q in pairs.tolist() if q >= 0]
    listed = {*cluster.users, *(queue.name for queue in cluster.queues), *(owner for owner in cluster.owners if owner)}
    if listed.isdisjoint(name for pair in account_of for name in pair):
        return log, cluster
    if not cluster.queues and any(owner not in listed and account in listed for owner, account in account_of):
        cluster = _as_queues(cluster, dict.fromkeys(account for _, account in account_of))
        note = "the users of the cluster are accounts: each has its weight, and the users of the log in it count alike"
        log = replace(log, notes=(*log.notes, note))
    strange = {owner: account for owner, account in account_of if owner not in listed}
    of_users = {
        queue.name.partition("/")[0]: queue.parent for queue in cluster.queues if "/" in queue.name and "/" not in (queue.parent or "")
    }
    lacking = [account for account in dict.fromkeys(strange.values()) if account not in listed and account not in of_users]
    new = [Queue(account) for account in lacking]
    new += [Queue(owner, of_users[account]) for owner, account in strange.items() if account in of_users and owner != account]
    notes = []
    if len(new) > len(lacking):
        some = plural(len(new) - len(lacking), "user of the log is", "users of the log are")
        notes.append(f"{some} not in the cluster, such as {named(new[-1].name)}: weight 1 in its account (--associations has the shares)")
    if lacking:
        some = plural(len(lacking), "account of the log is", "accounts of the log are")
        names = joined([named(name) for name in lacking], _MOST)
        notes.append(f"{some} not in the cluster ({names}): weight 1 beside the others (--associations has the shares)")
    there = {queue.name for queue in cluster.queues}
    new = [queue for queue in new if queue.name not in there]
    return replace(log, notes=(*log.notes, *notes)), cluster.replace(queues=[*cluster.queues, *new]) if new else cluster


def _as_queues(cluster: Instance, accounts: Iterable[str]) -> Instance:
    """Return a cluster whose users are accounts as one of queues, with their weights."""
    weights = dict(zip(cluster.users, cluster.weights.tolist(), strict=True))
    queue_of: dict[str, str | None] = {user: user for user in cluster.users if user in set(accounts)}
    return cluster.replace(
        queues=[Queue(account, weight=weights.get(account, 1.0)) for account in accounts],
        queue_of=queue_of,
        weights=dict.fromkeys(queue_of, 1.0),
    )
