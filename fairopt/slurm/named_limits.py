"""Limits of Slurm that no queue of an instance can have, as named limits: of a QOS, and of numbers of jobs.

A limit of a QOS is of its jobs, in whichever account; so the tasks of a QOS with limits are users of their own, and the limit is over
these users. A limit of numbers of jobs counts each task as the part of a job that it is. `fairopt.slurm.qos` says which limits there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.clusters.account import Account
from fairopt.instance import Instance
from fairopt.instance.limits import Limit
from fairopt.slurm.jobs import Job
from fairopt.slurm.nodes import Node, Partition
from fairopt.slurm.policies import cpus_of_node
from fairopt.slurm.qos import Qos, QosLimits, limits_of_job
from fairopt.slurm.queues import Associations, SplitLimits, split_limits, tres_of
from fairopt.wording import joined, named, plural

__all__ = ["NamedLimits"]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What tells apart jobs that count in different limits: their QOS, whose they are, how many jobs a task is, and their partition.

    The partition is that which limits the CPUs that its jobs have on each node, with how many these are.
    """

    qos: tuple[tuple[Qos, tuple[QosLimits, ...]], ...]
    user: str
    account: str
    jobs: float
    partition: tuple[str, float]


class NamedLimits:
    """The named limits of a cluster.

    Parameters
    ----------
    qos : mapping
        By name.
    partitions : mapping
        Whose QOS limit all jobs in them.
    tree : Associations or None
        None: the queues do not tell users and accounts apart.
    licenses : mapping
        The resources of licences.
    account : Account
        Gets notes on limits that count for less or for more than Slurm has them.
    """

    def __init__(
        self,
        qos: Mapping[str, Qos],
        partitions: Mapping[str, Partition],
        tree: Associations | None,
        licenses: Mapping[str, str],
        nodes: Sequence[Node],
        account: Account,
    ) -> None:
        self._qos, self._partitions, self._tree = qos, partitions, tree
        self._licenses, self._nodes, self._account = licenses, nodes, account
        self._kinds: dict[str, _Kind] = {}
        self._known: list[_Kind | None] = []

    def kind(self, job: Job, tasks: float) -> str:
        """Return the kind of a job of so many tasks, a word for people; empty: it counts in no limit of its own."""
        found = [(qos, limits) for qos, limits in limits_of_job(job, self._qos, self._partitions) if any(limits)]
        jobs = self._tree is not None and any(self._tree.jobs_of(job))
        jobs |= any(limit.jobs < math.inf for _, limits in found for limit in limits)
        partition = cpus_of_node(job, self._partitions)
        if not found and not (jobs and tasks != 1) and partition[1] == math.inf:
            return ""
        whose = self._tree is None and any(limits[1] or limits[2] for _, limits in found)
        word = " ".join(qos.name for qos, _ in found)
        word += f" of {job.account}/{job.user}" if whose else ""
        word += f" in {plural(tasks, 'task')}" if jobs and tasks != 1 else ""
        word += f" in partition {partition[0]}" if partition[1] < math.inf else ""
        return self._remember(word.strip(), _Kind(tuple(found), job.user, job.account, 1 / tasks, partition))

    def _remember(self, word: str, kind: _Kind) -> str:
        """Return a word that has this kind, as far as the queue of a user does not tell it."""
        self._kinds.setdefault(word, kind)
        return word

    def over(self, instance: Instance, kinds: Sequence[str], job_of: Mapping[str, tuple[str, str]]) -> list[Limit]:
        """Return the limits over an instance.

        Parameters
        ----------
        kinds : sequence of str (users,)
        job_of : mapping
            The account and the user of each queue.
        """
        known = self._known = [self._kinds.get(kind) for kind in kinds]
        found: list[Limit] = []
        left_out: set[str] = set()
        groups: dict[tuple[str, str, str, SplitLimits, float], list[int]] = {}
        for n, kind in enumerate(known):
            if kind is None:
                continue
            account, user = job_of.get(str(instance.queue_of[n]), (kind.account, kind.user))
            for qos, limits in kind.qos:
                for limit, of, whose in zip(limits, ("", "user ", "account "), ("", user, account), strict=True):
                    if limit:
                        key = (qos.name, of, whose, split_limits(limit.tres, self._licenses, left_out), limit.jobs)
                        groups.setdefault(key, []).append(n)
        if left_out:
            self._account.note(f"limits of QOS on {joined(sorted(left_out), 5)} are left out: they limit no resource of the instance")
        for (name, of, whose, split, jobs), users in groups.items():
            title = f"qos/{name}" + (f" of {of}{whose}" if of else "")
            found += self._limits(instance, title, users, split)
            if jobs < math.inf:
                found += self._of_jobs(instance, title, users, jobs, known)
        if self._tree is not None:
            found += self._of_associations(instance, self._tree, known)
        of_nodes: dict[tuple[str, float], list[str]] = {}
        for user, kind in zip(instance.users, known, strict=True):
            if kind is not None and kind.partition[1] < math.inf:
                of_nodes.setdefault(kind.partition, []).append(user)
        for (name, cpus), inside in of_nodes.items():
            found.append(Limit(_title(f"partition/{name} cpu of a node"), cpus, resource="cpu", users=inside, each="server"))
        return found

    def freed(self, instance: Instance) -> Instance:
        """Return the instance without limits of accounts and users that hold none of their jobs, since all have a QOS that comes first.

        Slurm looks at ``GrpTRES`` of the QOS of a partition, then of that of the job, then of its associations, and takes the first that
        has a limit of a TRES. An account that has jobs with such a QOS and jobs without keeps its limit for all of them: Slurm would count
        the former in it, and stop only the latter.
        """
        before = [{name for _, limits in kind.qos for name in limits[0].tres} if kind is not None else set() for kind in self._known]
        left, both = set[str](), set[str]()
        queues = []
        for node, queue in enumerate(instance.tree.queues, 1):
            inside = np.flatnonzero(instance.tree.below[node]).tolist()
            kept = dict(queue.limit)
            for resource in queue.limit:
                first = [bool(before[n] & tres_of(resource, self._licenses)) for n in inside]
                if first and all(first):
                    del kept[resource]
                    left.add(queue.name)
                elif any(first):
                    both.add(queue.name)
            queues.append(replace(queue, limit=kept))
        if left:
            self._account.note(
                f"limits of {joined(sorted(map(named, left)), 5)} that a QOS of all their jobs has, too, are left out: Slurm takes that of "
                "the QOS alone"
            )
        if both:
            self._account.note(
                f"some jobs of {joined(sorted(map(named, both)), 5)} have a QOS with a GrpTRES of its own, to which alone Slurm holds "
                "them; here the limit of the account counts for them, too"
            )
        return instance.replace(queues=queues) if left else instance

    def _of_associations(self, instance: Instance, tree: Associations, known: Sequence[_Kind | None]) -> list[Limit]:
        """Return ``GrpTRES`` of accounts that are no queue, and the limits of numbers of jobs."""
        found: list[Limit] = []
        for account, split in tree.limits_of_merged().items():
            queues = [queue.name for queue in instance.queues if tree.is_in(queue.name, account)]
            users = [n for n, name in enumerate(instance.queue_of) if tree.is_in(str(name), account)]
            found += self._limits(instance, account, users, split, queues)
        for title, inside, jobs in tree.limits_of_jobs():
            users = [n for n, name in enumerate(instance.queue_of) if inside(str(name))]
            found += self._of_jobs(instance, title, users, jobs, known)
        return found

    def _limits(
        self, instance: Instance, title: str, users: Sequence[int], split: SplitLimits, queues: Sequence[str] | None = None
    ) -> list[Limit]:
        of_cluster, by_type = split
        names = [instance.users[n] for n in users]
        found = []
        for resource, bound, kind in [*((r, b, "") for r, b in of_cluster), *((k.partition(":")[0], b, k) for k, b in by_type)]:
            if not users or resource not in instance.resources:
                continue
            if not (instance.demands[list(users), instance.resources.index(resource)] > 0).any():
                continue
            servers = self._rows(instance, kind) if kind else None
            if servers is None or servers:
                by_queue = queues if queues and resource not in instance.shared else None
                own = None if by_queue else names
                title_here = _title(f"{title} {kind or resource}")
                found.append(Limit(title_here, bound, resource=resource, users=own, queues=by_queue, servers=servers))
        return found

    def _of_jobs(self, instance: Instance, title: str, users: Sequence[int], jobs: float, known: Sequence[_Kind | None]) -> list[Limit]:
        amounts = {instance.users[n]: 1.0 if (kind := known[n]) is None else kind.jobs for n in users}
        return [Limit(_title(f"{title} jobs"), jobs, amounts=amounts)] if amounts else []

    def _rows(self, instance: Instance, kind: str) -> list[str]:
        """Return the rows of servers with a type of generic resource."""
        names = {node.name for node in self._nodes if kind in node.types}
        hosts = zip(instance.servers, instance.hosts, strict=True)
        return [server for server, own in hosts if names & set(own or (server.partition(" +")[0],))]


def _title(text: str) -> str:
    return text.replace(".", "_")  # no dots in the name of a limit
