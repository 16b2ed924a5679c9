"""The tiers of jobs of Slurm: of a QOS that preempts others, and of a partition whose ``PriorityTier`` is higher.

Slurm looks at all jobs of a higher ``PriorityTier`` before those of a lower one, whatever their shares are, and whether it preempts or not;
and first of all at those of a QOS that preempts the other. So these jobs are in a queue of a higher tier, within that of their user:
``account/user/partition:urgent``, ``account/user/qos:high``. (The priority of a QOS, or ``PriorityJobFactor``, is one part of a sum, and no
tier.) Partitions compete where they share nodes, directly or by way of others: elsewhere their ``PriorityTier`` decides nothing.

>>> tiers = Tiers({"high": 1}, {"urgent": 1})
>>> tiers.name("a/ann", "high", ["urgent"]), tiers.of("high", ["urgent"]), tiers.of("", ["urgent"]), tiers.of("", ["batch"])
('a/ann/partition:urgent/qos:high', 3, 1, 0)
>>> whose("a/ann/partition:urgent/qos:high"), qos_in("a/ann/partition:urgent/qos:high")
('a/ann', 'high')
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fairopt.clusters.account import Account
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Partition
from fairopt.wording import figure, joined, named, plural

__all__ = ["Tiers", "in_tier", "partition_tiers", "qos_in", "whose"]

_QOS, _PARTITION = "/qos:", "/partition:"
_MOST = 5  # names in a note


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers of QOS and of partitions, by name; what is not named is in the lowest.

    A job that may run in several partitions is in the highest tier of these.
    """

    qos: Mapping[str, int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)

    def of(self, qos: str, partitions: Iterable[str]) -> int:
        """Return the tier of a job: the QOS comes before the partition."""
        ranks = 1 + max(self.partitions.values(), default=0)
        return ranks * self.qos.get(qos, 0) + max((self.partitions.get(name, 0) for name in partitions), default=0)

    def name(self, queue: str, qos: str, partitions: Sequence[str]) -> str:
        """Return the queue of a job within that of its user; that of its user if it is in no tier above."""
        highest = max(partitions, key=lambda name: self.partitions.get(name, 0), default="")
        queue += f"{_PARTITION}{highest}" if self.partitions.get(highest) else ""
        return queue + (f"{_QOS}{qos}" if self.qos.get(qos) else "")

    def queue_of(self, queue: str, job: Job) -> tuple[str, int]:
        """Return the queue of a job within that of its user, and its tier."""
        partitions = [job.partition] if job.holds else job.partitions
        return self.name(queue, job.qos, partitions), self.of(job.qos, partitions)


def in_tier(queue: str) -> bool:
    """Return whether a queue is one of a tier, within that of its user."""
    return _QOS in queue or _PARTITION in queue


def whose(queue: str) -> str:
    """Return the queue that holds the queue of a tier; any other queue as it is."""
    return queue.partition(_PARTITION)[0].partition(_QOS)[0]


def qos_in(queue: str) -> str:
    """Return the QOS for which a queue is one of a tier; empty: none."""
    return queue.partition(_QOS)[2]


def partition_tiers(jobs: Sequence[Job], partitions: Mapping[str, Partition], account: Account) -> dict[str, int]:
    """Return the tiers of partitions with jobs that share nodes with one of a lower ``PriorityTier``, and note them."""
    inside = {name: partitions[name] for job in jobs for name in job.partitions if name in partitions}
    tiers: dict[str, int] = {}
    for group in _sharing(inside):
        ranks = sorted({inside[name].tier for name in group})
        tiers |= {name: rank for name in group if (rank := ranks.index(inside[name].tier))}
        if len(ranks) > 1:
            order = sorted(group, key=lambda name: -inside[name].tier)
            listed = joined([f"{named(name)} {figure(inside[name].tier)}" for name in order], _MOST)
            account.note(f"partitions with nodes in common differ in PriorityTier ({listed}): jobs in a higher one are in a higher tier")
    several = sum(job.copies for job in jobs if not job.holds and len({tiers.get(name, 0) for name in job.partitions}) > 1)
    if several:
        account.note(f"{plural(several, 'job')} in several partitions of different PriorityTier: counted in the highest of these tiers")
    return tiers


def _sharing(partitions: Mapping[str, Partition]) -> list[list[str]]:
    """Return the partitions in groups that share nodes, directly or by way of others."""
    groups: list[tuple[set[str], list[str]]] = []
    for name, each in partitions.items():
        nodes, names = set(each.nodes), [name]
        apart = []
        for own, others in groups:
            if own & nodes:
                nodes, names = nodes | own, [*others, *names]
            else:
                apart.append((own, others))
        groups = [*apart, (nodes, names)]
    return [names for _, names in groups]
