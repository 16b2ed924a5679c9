"""A trace on a cluster, as arrays: its jobs, grouped into *streams*, and its events.

A stream holds the jobs of one user whose tasks have the same demand and may run on the same servers. Each stream is a "user" of the
instance that is solved or filled. The owner of a stream is the user of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairopt.clusters.shapes import labels_of
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.limits import Limit
from fairopt.instance.tree import Tree
from fairopt.program.events import Change
from fairopt.simulation.by_server import of_streams
from fairopt.simulation.stream_limits import LimitUse, by_streams, explicit
from fairopt.trace import Trace
from fairopt.wording import did_you_mean, joined, plural

__all__ = ["Streams", "streams_of"]

_PERIODS = 100  # of an allocation with a memory, in a half-life
_MOMENTS = 1000  # of them in the time over which jobs are submitted, where nothing fades
_KIND = {"leave": Change.LEAVE, "join": Change.JOIN, "remove": Change.REMOVE, "add": Change.ADD}


@dataclass(frozen=True, eq=False)
class Streams:
    """A trace on a cluster, with its jobs grouped into streams.

    Attributes
    ----------
    trace : Trace
    cluster : Instance
        The cluster at the beginning.
    users : tuple of str
        In the order of the cluster, if the cluster names them; otherwise in the order of the trace.
    weights : array (users,)
    instance : Instance
        Its users are the streams, without task limits. Its counts are the largest number of servers that each row ever has.
    owner : int array (streams,)
        The user of each stream, by position in ``users``.
    stream : int array (jobs,)
        The stream of each job.
    present : bool array (users,)
        Whether the user is present at the beginning.
    owners : Instance or None
        The cluster with all servers that ever exist, whose users are the owners; None if they are a flat list with weights, and nothing but
        servers limits them.
    times, changes, subjects, amounts : arrays (events,)
        As in `fairopt.program.events.Work`, for all jobs.
    """

    trace: Trace
    cluster: Instance
    users: tuple[str, ...]
    weights: FloatArray
    instance: Instance
    owner: IntArray
    stream: IntArray
    present: BoolArray
    owners: Instance | None
    times: FloatArray
    changes: IntArray
    subjects: IntArray
    amounts: IntArray

    @property
    def job_owner(self) -> IntArray:
        """The user of each job, by position in ``users``."""
        return self.owner[self.stream]

    @property
    def tree(self) -> Instance | None:
        """The instance of the owners if they are a tree, None if they are a flat list with weights."""
        return self.owners if self.owners is not None and self.owners.is_tree else None

    @property
    def weighted_tree(self) -> tuple[Tree, FloatArray]:
        """The tree of the owners, and the weights of the owners in it; a flat list is a tree without queues."""
        return (Tree.of((), [None] * len(self.users)), self.weights) if self.tree is None else (self.tree.tree, self.tree.weights)

    def period(self, half_life: float = np.inf) -> float:
        """Return how long an allocation with a memory lasts by default, in seconds.

        It is a hundredth of a half-life; of an infinite one, a thousandth of the time over which jobs are submitted.
        """
        if np.isfinite(half_life):
            return half_life / _PERIODS
        length = float(self.trace.submit[-1] - self.trace.submit[0])
        return length / _MOMENTS if length > 0 else 1.0

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The named limits."""
        return () if self.owners is None else self.owners.limits

    @cached_property
    def limit_use(self) -> LimitUse:
        """How full the named limits are."""
        selections = () if self.owners is None else self.owners.selections
        return LimitUse(selections, self.owner, self.instance)

    def limits_at(self, active: IntArray, first: IntArray, group: IntArray) -> list[Limit]:
        """Return the named limits over these streams and groups of rows of servers, of which ``first`` has a row of each."""
        if self.owners is None or not self.owners.limits:
            return []
        names, servers = self.instance.users, self.instance.servers
        streams: dict[str, list[str]] = {name: [] for name in self.users}
        for n in active.tolist():
            streams[self.users[self.owner[n]]].append(names[n])
        of_rows = {server: [servers[i]] if first[group[i]] == i else [] for i, server in enumerate(servers)}
        return by_streams(self._explicit, streams, servers=of_rows)

    @cached_property
    def _explicit(self) -> list[Limit]:
        return [] if self.owners is None else explicit(self.owners)

    def taken(self, stream: IntArray, row: IntArray) -> Iterator[FloatArray]:
        """Yield for each resource what tasks of these streams on these rows take, (tasks,)."""
        by_kind, kind = self.instance.demands_by_kind, self.instance.kind_of[row]
        for r in range(self.instance.n_resources):
            yield by_kind[stream, 0, r] if by_kind.shape[1] == 1 else by_kind[stream, kind, r]

    def seconds(self, server: IntArray) -> FloatArray:
        """Return how long each task runs on its single server, (tasks,); where that is -1, at speed 1."""
        durations = self.trace.task_durations
        if self.instance.speeds_given is None:
            return durations
        row = np.repeat(np.arange(self.instance.n_servers), self.instance.counts.astype(int))[server]
        speed = self.instance.speeds_given[self.stream[self.trace.job_of], row]
        return np.asarray(durations / np.where((server >= 0) & (speed > 0), speed, 1.0))

    def counts_over_time(self) -> tuple[FloatArray, FloatArray]:
        """Return times, starting with -inf, and the number of servers of each row from each time on, (times, rows)."""
        return _counts(self.cluster, self.times, self.changes, self.subjects, self.amounts)


def streams_of(trace: Trace, cluster: Instance) -> Streams:
    """Group the jobs of a trace into streams on a cluster.

    Weights, queues, guarantees and placement constraints come from the cluster's users of the same names. If the cluster names no user of
    the trace, weights are 1, and the trace may name the queue of each user.

    Raises
    ------
    InvalidInstance, Unsupported
        The labels do not match. The cluster has rates, or weights per resource, or queues in which no user of the trace is. Events remove
        more servers than there are.
    """
    if cluster.rates_per_server is not None:
        raise Unsupported("the cluster gives rates, so its servers are shared by time; a simulation divides resources: leave the rates out")
    if cluster.weights.ndim == 2:
        raise Unsupported("the cluster gives a weight per resource; a simulation takes one per user, shape (users,)")
    demands = trace.demands[:, _columns(trace, cluster)]
    users, weights, placement = _users(trace, cluster)
    position = {name: n for n, name in enumerate(users)}
    owner_of_job = np.array([position[name] for name in trace.users], np.int64)[trace.user]
    keys = [owner_of_job[:, None], demands]
    if trace.eligibility is not None:
        if trace.eligibility.shape[1] != cluster.n_servers:
            raise InvalidInstance(
                f"the eligibility of the trace has {trace.eligibility.shape[1]} columns, and the cluster {cluster.n_servers} rows"
            )
        keys.append(np.packbits(trace.eligibility, axis=1).astype(float))
    distinct = number_distinct(keys)
    first = np.unique(distinct, return_index=True)[1]
    order = np.argsort(owner_of_job[first], kind="stable")
    renumbered = np.empty(order.size, np.int64)
    renumbered[order] = np.arange(order.size)
    stream, first = renumbered[distinct], first[order]
    owner = owner_of_job[first]
    allowed = np.ones((first.size, cluster.n_servers), bool) if placement is None else placement[owner]
    if trace.eligibility is not None:
        allowed = allowed & trace.eligibility[first]
    times, changes, subjects, amounts, present = _changes(trace, cluster, users)
    _, counts = _counts(cluster, times, changes, subjects, amounts)
    if (counts < 0).any():
        row = int(np.argwhere(counts < 0)[0, 1])
        raise InvalidInstance(f'the events remove more servers of "{cluster.servers[row]}" than there are; correct their numbers')
    owners = _owners(trace, cluster, users, counts.max(axis=0), demands)
    names = labels_of([users[n] for n in owner], demands[first], list(cluster.resources))
    of_rows = of_streams(cluster, users, owner, demands[first], placement)
    instance = Instance(
        cluster.capacities,
        of_rows.demands,
        weights=weights[owner],
        eligibility=allowed,
        speeds=of_rows.speeds,
        counts=counts.max(axis=0),
        shared=cluster.shared,
        users=names,
        servers=cluster.servers,
        units=cluster.units,
        resources=cluster.resources,
    )
    return Streams(
        trace=trace,
        cluster=cluster,
        users=users,
        weights=weights,
        instance=instance,
        owner=owner,
        stream=stream,
        present=present,
        owners=owners,
        times=times,
        changes=changes,
        subjects=subjects,
        amounts=amounts,
    )


def _owners(trace: Trace, cluster: Instance, users: tuple[str, ...], counts: FloatArray, demands: FloatArray) -> Instance | None:
    """Return the instance whose users are those of a simulation, None for a flat list; ``demands`` are those of the jobs."""
    across = bool(cluster.limits) or bool(cluster.shared_capacity.size)
    if users == cluster.users:
        return cluster.replace(counts=counts) if cluster.is_tree or across else None
    if not cluster.queues and not across:
        return None
    first = np.unique(trace.user, return_index=True)[1]
    return Instance(
        cluster.capacities,
        demands[first],
        counts=counts,
        queues=cluster.queues,
        queue_of=trace.queue_of,
        shared=cluster.shared,
        limits=cluster.limits,
        attributes=cluster.attributes,
        users=users,
        servers=cluster.servers,
        units=cluster.units,
        resources=cluster.resources,
    )


def _check_queues(trace: Trace, cluster: Instance) -> None:
    """Refuse queues of a trace that the cluster does not have, or that are not those of its users."""
    names = [queue.name for queue in cluster.queues]
    own = dict(zip(cluster.users, cluster.queue_of, strict=True))
    for user, queue in zip(trace.users, trace.queue_of or (), strict=False):
        if queue is not None and queue not in names:
            there = f"it has {joined(names, 5)}" if names else "it has none; add them there, or leave the column queue out"
            raise InvalidInstance(f'user "{user}": the cluster has no queue "{queue}"{did_you_mean(queue, names)}; {there}')
        if user in own and own[user] != queue:
            here, elsewhere = (f'queue "{name}"' if name else "the root" for name in (queue, own[user]))
            raise InvalidInstance(f'user "{user}" submits to {here}, and is in {elsewhere} of the cluster; correct one of them')


def _counts(
    cluster: Instance, times: FloatArray, changes: IntArray, subjects: IntArray, amounts: IntArray
) -> tuple[FloatArray, FloatArray]:
    own = np.isin(changes, (Change.REMOVE, Change.ADD))
    step = np.zeros((int(own.sum()) + 1, cluster.n_servers))
    step[0] = cluster.counts
    sign = np.where(changes[own] == Change.ADD, 1, -1)
    step[np.arange(1, len(step)), subjects[own]] = sign * amounts[own]
    return np.concatenate([[-np.inf], times[own]]), step.cumsum(axis=0)


def _columns(trace: Trace, cluster: Instance) -> list[int]:
    for name in trace.resources:
        if name not in cluster.resources:
            raise InvalidInstance(
                f'the trace demands "{name}", which the cluster does not have{did_you_mean(name, cluster.resources)}; '
                f"it has {', '.join(cluster.resources)}"
            )
    for name in cluster.resources:
        if name not in trace.resources:
            raise InvalidInstance(f'the trace has no column for the resource "{name}"; add one, with 0 for jobs that need none')
    return [trace.resources.index(name) for name in cluster.resources]


def _users(trace: Trace, cluster: Instance) -> tuple[tuple[str, ...], FloatArray, BoolArray | None]:
    _check_queues(trace, cluster)
    known = set(cluster.users)
    missing = [name for name in trace.users if name not in known]
    if len(missing) == len(trace.users):
        if cluster.queues and trace.queue_of is None:
            raise InvalidInstance(
                f"the cluster has {plural(len(cluster.queues), 'queue')} but knows no user of the trace, such as {joined(missing, 2)}; "
                "name the users there, each with its queue, give the jobs a column queue, or leave the queues out"
            )
        return trace.users, np.ones(len(trace.users)), None
    if missing:
        raise InvalidInstance(
            f"the cluster knows some users of the trace, but not {joined(missing, 5)}{did_you_mean(missing[0], cluster.users)}; "
            "name all of them there, for their weights, or none"
        )
    return cluster.users, np.array(cluster.weights), cluster.placement


def _changes(trace: Trace, cluster: Instance, users: tuple[str, ...]) -> tuple[FloatArray, IntArray, IntArray, IntArray, BoolArray]:
    """Return the times, kinds, subjects and amounts of all events in order, and the users present at the beginning."""
    present = np.ones(len(users), bool)
    seen: set[str] = set()
    user, row = ({name: j for j, name in enumerate(names)} for names in (users, cluster.servers))
    rows: list[tuple[float, int, int, int]] = []
    for time, kind, name, amount in trace.events:
        of_user = kind in ("join", "leave")
        if not of_user and name not in row:
            raise InvalidInstance(f'an event at {time:g} s is about servers "{name}", which the cluster lacks{did_you_mean(name, row)}')
        if of_user and name not in seen:
            seen.add(name)
            present[user[name]] = kind == "leave"
        rows.append((time, int(_KIND[kind]), (user if of_user else row)[name], 0 if of_user else amount))
    table = np.array(rows, float).reshape(-1, 4)
    jobs = np.arange(trace.n_jobs)
    times = np.concatenate([table[:, 0], trace.submit])
    changes = np.concatenate([table[:, 1], np.full(jobs.size, float(Change.SUBMIT))]).astype(np.int64)
    subjects = np.concatenate([table[:, 2], jobs]).astype(np.int64)
    amounts = np.concatenate([table[:, 3], np.zeros(jobs.size)]).astype(np.int64)
    order = np.lexsort((changes, times))  # stable: jobs keep their order
    return times[order], changes[order], subjects[order], amounts[order], present
