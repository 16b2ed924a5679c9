"""The owners of a log on a cluster: their weights and queues, and the *streams* of their tasks.

A stream has the tasks of one owner with the same demand that may run on the same servers. At a moment, the streams that have tasks are the
users of an instance. Where the notion fills trees of queues, an owner with several streams is a queue, so that its share is that of all it
holds; for the other notions its weight is divided equally among its streams that have tasks.

An owner is found in the cluster by its name: as a user, with weight, queue and placement; else as a queue; else as the owner of users that
are in one queue, with the sum of their weights; else by the queue that the log names. If none is found, and the cluster has no queues, all
weights are 1. Owners of a log that are numbers of it (in the Standard Workload Format) have weight 1 where the
cluster, without queues in queues, does not list them: it may be a moment of the log. So have accounts of Slurm
(:mod:`fairopt.histories.accounts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.clusters.log_records import Unjudged
from fairopt.clusters.shapes import labels_of
from fairopt.errors import FairoptError, InvalidInstance, Unsupported
from fairopt.histories.accounts import with_accounts
from fairopt.histories.by_server import StreamTasks, check_placed, like_user, stream_tasks, without_servers
from fairopt.histories.job_log import JobLog
from fairopt.histories.limits import StreamLimits
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import NOTHING
from fairopt.instance.tree import apart
from fairopt.models import Notion
from fairopt.simulation.by_server import amounts_elsewhere, base_rows
from fairopt.simulation.repeated import divided, in_turn
from fairopt.wording import did_you_mean, joined, plural

__all__ = ["Setting", "setting_of"]

_UNKNOWN = "its owner is not in the cluster"


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Owners and streams.

    Attributes
    ----------
    log : JobLog
        Without the jobs of unknown owners.
    cluster : Instance
    owners : tuple of str
    queue_of : tuple of str or None (owners,)
        The queue of each owner, for reports.
    weights : array (owners,)
        Among the siblings of an owner.
    siblings : int array (owners,)
        Owners of one number compare with each other: they are in the same queue.
    groups : tuple of str
        Queues that have owners.
    members : bool array (groups, owners)
    stream : int array (records,)
    owner : int array (streams,)
    labels : tuple of str (streams,)
    tasks : StreamTasks
        What a task of each stream takes and does on each row of servers.
    eligibility : bool array (streams, rows)
    task_share : array (streams,)
        Dominant share of one task in the cluster; where demands or speeds differ by server, of a unit of work.
    tree : bool
        Whether the owners are in a tree of queues; else a flat list.
    queues : tuple of Queue
    home : tuple of str or None (streams,)
        The queue of each stream.
    stream_weights : array (streams,)
        In a tree.
    guarantees : array (owners,)
    limits : StreamLimits
    """

    log: JobLog
    cluster: Instance
    owners: tuple[str, ...]
    queue_of: tuple[str | None, ...]
    weights: FloatArray
    siblings: IntArray
    groups: tuple[str, ...]
    members: BoolArray
    stream: IntArray
    owner: IntArray
    labels: tuple[str, ...]
    tasks: StreamTasks
    eligibility: BoolArray
    task_share: FloatArray
    tree: bool
    queues: tuple[Queue, ...]
    home: tuple[str | None, ...]
    stream_weights: FloatArray
    guarantees: FloatArray
    limits: StreamLimits

    @property
    def n_streams(self) -> int:
        """The number of streams."""
        return self.owner.size

    @property
    def task_shares(self) -> FloatArray:
        """What part of the cluster a task takes of each resource, (streams, resources); of tasks that do not differ by server."""
        return np.asarray(safe_ratio(self.tasks.usual, self.cluster.total_capacity))

    @property
    def mixed(self) -> BoolArray:
        """Which owners have several streams, so that their dominant share is that of what these hold together, (owners,).

        Where demands or speeds differ by server the shares of streams add up, as those of users in a queue do.
        """
        several = np.bincount(self.owner, minlength=len(self.owners)) > 1
        return np.asarray(several & (not self.tasks.differ))

    def shares(self, work: FloatArray) -> FloatArray:
        """Return the dominant share of each owner, (owners,), whose streams do so much work, (streams,)."""
        number = len(self.owners)
        found = np.bincount(self.owner, weights=work * self.task_share, minlength=number)
        mixed = self.mixed
        if mixed.any():
            together = np.zeros((number, self.cluster.n_resources))
            np.add.at(together, self.owner, work[:, None] * self.task_shares)
            found[mixed] = together[mixed].max(axis=1)
        return np.asarray(found)

    def instance(self, tasks: FloatArray) -> tuple[Instance, IntArray]:
        """Return the instance of the streams that have tasks, and which streams its users are; ``tasks``, (streams,)."""
        active = np.flatnonzero(tasks > 0)
        owner = self.owner[active]
        options: dict[str, Any] = {}
        if self.tree:
            guarantees = in_turn(self.guarantees, owner, tasks[active])
            options = {"queues": self.queues, "queue_of": [self.home[s] for s in active], "guarantees": guarantees}
            weights = self.stream_weights[active]
        else:
            weights = divided(self.weights, owner)
        cluster = self.cluster
        return (
            Instance(
                cluster.capacities,
                **self.tasks.arguments(active),
                weights=weights,
                eligibility=self.eligibility[active],
                counts=cluster.counts,
                tasks=tasks[active],
                shared=cluster.shared,
                limits=self.limits.at(active),
                users=[self.labels[s] for s in active],
                servers=cluster.servers,
                units=cluster.units,
                resources=cluster.resources,
                **options,
            ),
            active,
        )


@dataclass(slots=True)
class _Owner:
    """Where an owner is in the cluster."""

    home: str | None
    weight: float
    siblings: str | None  # the queue whose children compare with it
    users: tuple[int, ...]  # of the cluster; empty: it is a queue, or only the log names it
    is_queue: bool


def setting_of(log: JobLog, cluster: Instance, notion: Notion, *, lenient: bool = False) -> Setting:
    """Find the owners of a log in a cluster, and group their records into streams.

    Raises
    ------
    InvalidInstance, Unsupported
        Some owners are not in the cluster, and others are. The cluster has rates, or weights per resource.
    """
    if cluster.rates_per_server is not None:
        raise Unsupported("the cluster gives rates, so its servers are shared by time; a history divides resources: leave the rates out")
    if cluster.weights.ndim == 2:
        raise Unsupported("the cluster gives a weight per resource; a history takes one per user, shape (users,)")
    log, cluster = with_accounts(log, cluster)
    log, owner_of, names, found = _owners(log, cluster, lenient)
    if cluster.tree.listed.any():
        owner_of, names, found = _in_order(cluster, owner_of, names, found)
    check_placed(cluster, log.row, np.isfinite(log.start) & (log.start < log.end))
    eligibility, stream, owner, stream_of = _streams(log, cluster, owner_of, names, found)
    if cluster.differs_by_server:
        log, keep = without_servers(log, cluster, stream_of, stream, eligibility)
        owner_of, stream = owner_of[keep], stream[keep]
    several = np.bincount(owner, minlength=len(names)) > 1
    queues, home = list(cluster.queues), [each.home for each in found]
    are_queues = np.array([each.is_queue for each in found], bool)
    several |= apart(several & ~are_queues, home, queues) & ~are_queues
    taken = {queue.name for queue in queues}
    inner: list[str | None] = list(home)
    for n in np.flatnonzero(several):
        if not found[n].is_queue:
            name = names[n]
            while name in taken:
                name += " (owner)"
            taken.add(name)
            queues.append(Queue(name, home[n], found[n].weight))
            inner[n] = name
    weights = np.array([each.weight for each in found])
    alone = np.array([not several[n] and not found[n].is_queue for n in owner], bool)
    groups, members, queue_of = _groups(log, cluster, owner_of, home)
    of_siblings = {name: j for j, name in enumerate(dict.fromkeys(each.siblings for each in found))}
    guarantees = np.array([cluster.guarantees[list(each.users)].sum() for each in found])
    labels = tuple(labels_of([names[n] for n in owner], stream_of.usual, list(cluster.resources)))
    users_of = [_users_of(cluster, each) for each in found]
    setting = Setting(
        log=log,
        cluster=cluster,
        owners=tuple(names),
        queue_of=queue_of,
        weights=weights,
        siblings=np.array([of_siblings[each.siblings] for each in found], np.int64),
        groups=groups,
        members=members,
        stream=stream,
        owner=owner,
        labels=labels,
        tasks=stream_of,
        eligibility=eligibility,
        task_share=_task_share(cluster, stream_of, labels),
        tree=bool(queues) or bool(guarantees.any()) or bool((weights == 0).any()),
        queues=tuple(queues),
        home=tuple(inner[n] for n in owner),
        stream_weights=np.where(alone, weights[owner], 1.0),
        guarantees=guarantees,
        limits=StreamLimits.of(cluster, users_of, names, owner, labels, stream_of.kinds.demands),
    )
    if setting.tree and not cluster.is_tree and not _takes_trees(setting, notion):
        setting = replace(setting, tree=False, queues=())
    return setting


def _task_share(cluster: Instance, tasks: StreamTasks, labels: tuple[str, ...]) -> FloatArray:
    """Return the dominant share of one task of each stream, or of a unit of its work, (streams,)."""
    if tasks.differ:
        return tasks.share_of_work(cluster, labels)
    return np.asarray(safe_ratio(tasks.usual, cluster.total_capacity).max(axis=1))


def _in_order(cluster: Instance, owner_of: IntArray, names: list[str], found: list[_Owner]) -> tuple[IntArray, list[str], list[_Owner]]:
    """Return the owners in the order of the cluster, which listed queues follow; who is not in it comes last, in the order of the log."""
    position = {queue.name: q for q, queue in enumerate(cluster.queues)}
    last = cluster.n_users + len(position)
    keys = [each.users[0] if each.users else position[each.home] if each.is_queue and each.home else last for each in found]
    order = np.argsort(keys, kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return place[owner_of], [names[n] for n in order.tolist()], [found[n] for n in order.tolist()]


def _takes_trees(setting: Setting, notion: Notion) -> bool:
    try:
        instance, _ = setting.instance(np.ones(setting.n_streams))
        notion.check(instance, "rdm")
        notion.formulate(instance, sharing="rdm", integral=False)
    except FairoptError:
        return False
    return True


def _owners(log: JobLog, cluster: Instance, lenient: bool) -> tuple[JobLog, IntArray, list[str], list[_Owner]]:
    """Return the log without unknown owners, the owner of each record, their names, and where they are in the cluster."""
    users = {name: n for n, name in enumerate(cluster.users)}
    queues = {queue.name: queue for queue in cluster.queues}
    owned: dict[str, list[int]] = {}
    for u, owner in enumerate(cluster.owners):
        if owner is not None:
            owned.setdefault(owner, []).append(u)
    pair = log.owner * (len(log.queues) + 1) + log.queue + 1
    codes, inverse = np.unique(pair, return_inverse=True)
    in_queues = np.bincount((codes // (len(log.queues) + 1)).astype(int))
    names: list[str] = []
    owners: list[int] = []  # of the log
    found: list[_Owner | None] = []
    index: dict[tuple[int, int], int] = {}
    of_code = np.zeros(codes.size, np.int64)
    for k, code in enumerate(codes.tolist()):
        n, q = divmod(code, len(log.queues) + 1)
        name, queue = log.owners[n], log.queues[q - 1] if q else None
        place: _Owner | None = None
        if name in users:
            place = _of_users(cluster, [users[name]])
        elif name in queues:
            place = _Owner(name, float(queues[name].weight), queues[name].parent, (), True)
        elif len({cluster.queue_of[u] for u in owned.get(name, ())}) == 1:
            place = _of_users(cluster, owned[name])
        elif queue in queues:
            place = _Owner(queue, 1.0, queue, (), False)
        by_queue = place is not None and not place.is_queue and not place.users and in_queues[n] > 1
        key = (n, q) if by_queue else (n, -1)
        if key not in index:
            index[key] = len(names)
            names.append(f"{name} in {queue}" if by_queue else name)
            owners.append(n)
            found.append(place)
        of_code[k] = index[key]
    owner_of = of_code[inverse]
    missing = [name for name, place in zip(names, found, strict=True) if place is None]
    first = next((f"{log.places[n]}: " for n, place in zip(owners, found, strict=True) if place is None), "")
    if len(missing) == len(names) and not cluster.queues:
        return log, owner_of, names, [_Owner(None, 1.0, None, (), False) for _ in names]
    if missing and log.numbered and not any(queue.parent for queue in cluster.queues):
        some = plural(len(missing), "owner of the log is", "owners of the log are")
        note = f"{some} not in the cluster: weight 1 beside the others"
        log, missing = replace(log, notes=(*log.notes, note)), []
        found = [_Owner(None, 1.0, None, (), False) if place is None else place for place in found]
    if not missing:
        return log, owner_of, names, [place for place in found if place is not None]
    if not lenient or len(missing) == len(names):
        hint = did_you_mean(missing[0], [*users, *queues])
        known = f"there are {joined([*queues, *users], 5)}"
        more = f", and {plural(len(missing) - 1, 'other owner')}, such as {joined([_quoted(name) for name in missing[1:]], 2)}"
        raise InvalidInstance(
            f"{first}the cluster does not know the owner {_quoted(missing[0])}{hint}{more if len(missing) > 1 else ''}; {known}: name "
            f"{'it' if len(missing) == 1 else 'them'} there as users or queues, or name the queue of each job in the log"
            + (", or give nodes and associations instead of the cluster (--nodes, --associations)" if log.inferred else "")
            + ("" if len(missing) == len(names) else ", or leave their jobs out with lenient=True or --lenient")
        )
    good = np.array([place is not None for place in found], bool)
    keep = good[owner_of]
    lost = Unjudged(_UNKNOWN, int((~keep).sum()), 0.0, f"{first}owner {_quoted(missing[0])}")
    new = np.cumsum(good) - 1
    return (
        replace(log, unjudged=(*log.unjudged, lost)).part(keep),
        new[owner_of[keep]],
        [name for name, place in zip(names, found, strict=True) if place is not None],
        [place for place in found if place is not None],
    )


def _of_users(cluster: Instance, users: list[int]) -> _Owner:
    """Return the place of an owner of some users of one queue."""
    home = cluster.queue_of[users[0]]
    return _Owner(home, float(cluster.weights[users].sum()), home, tuple(users), False)


def _streams(
    log: JobLog, cluster: Instance, owner_of: IntArray, names: list[str], found: list[_Owner]
) -> tuple[BoolArray, IntArray, IntArray, StreamTasks]:
    """Return where streams may run, the stream of each record, and the owners and the tasks of streams."""
    width = (len(log.demands), len(log.allowed) + 1, cluster.n_servers + 1 if cluster.differs_by_server else 1)
    code = (owner_of * width[0] + log.shape) * width[1] + log.place + 1
    code = code * width[2] + (log.row + 1 if cluster.differs_by_server else 0)
    kinds, inverse = np.unique(code, return_inverse=True)
    at, of_owners = kinds % width[2] - 1, kinds // width[2]
    owner, shape, place = of_owners // (width[0] * width[1]), of_owners // width[1] % width[0], of_owners % width[1] - 1
    demands, like = log.demands[shape][:, None], np.zeros(kinds.size, np.int64)
    if cluster.differs_by_server:
        base = base_rows(cluster, cluster.placement)
        users_of = [_users_of(cluster, each) for each in found]
        like = np.array(
            [like_user(cluster, base, users_of[n], names[n], demands[k, 0], int(at[k])) for k, n in enumerate(owner.tolist())], np.int64
        )
        here = cluster.kind_of[np.where(at < 0, base[like], at)]
        demands = amounts_elsewhere(demands[:, 0], cluster.demands_by_kind[like], here)
    allowed = np.ones((kinds.size, cluster.n_servers), bool)
    for k in range(kinds.size):
        said = _placement(cluster, found[owner[k]], demands[k])
        if said is not None:
            allowed[k] = said
        if place[k] >= 0 and not (said is not None and log.inferred):
            allowed[k] &= log.allowed[place[k]]
    ran = log.row >= 0
    allowed[inverse[ran], log.row[ran]] = True
    speeds = stream_tasks(cluster, demands, like).speeds
    for kind in range(demands.shape[1]):
        rows = slice(None) if demands.shape[1] == 1 else cluster.kind_of == kind
        lacks = (demands[:, kind, None, : cluster.n_server_resources] > 0) & (cluster.capacities[None, rows] == 0)
        allowed[:, rows] &= ~lacks.any(axis=2)
    allowed &= cluster.counts > 0
    flat = demands.reshape(kinds.size, -1)
    order = np.lexsort((*(-flat.T[::-1]), owner))
    keys = [owner[order, None], flat[order], np.packbits(allowed[order], axis=1).astype(float)]
    merged = number_distinct(keys if speeds is None else [*keys, speeds[order]])
    first = np.unique(merged, return_index=True)[1]
    rank = np.argsort(np.argsort(first))  # streams in the order of owners
    stream = np.empty(kinds.size, np.int64)
    stream[order] = rank[merged]
    chosen = order[np.sort(first)]
    return allowed[chosen], stream[inverse], owner[chosen], stream_tasks(cluster, demands[chosen], like[chosen])


def _users_of(cluster: Instance, owner: _Owner) -> list[int]:
    """Return the users of the cluster that an owner has; of a queue, those below it."""
    if owner.is_queue:
        return [int(n) for n in np.flatnonzero(cluster.tree.below[cluster.tree.index(str(owner.home))])]
    return list(owner.users)


def _placement(cluster: Instance, owner: _Owner, demand: FloatArray) -> BoolArray | None:
    """Return where the cluster lets tasks of an owner run, which demand (kinds, resources); None: it does not say."""
    if cluster.placement is None:
        return None
    if len(owner.users) == 1:
        return np.asarray(cluster.placement[owner.users[0]])
    inside = _users_of(cluster, owner)
    same = [n for n in inside if np.allclose(cluster.demands_by_kind[n], demand, rtol=NOTHING, atol=0.0)]
    return np.asarray(cluster.placement[same].any(axis=0)) if same else None


def _groups(
    log: JobLog, cluster: Instance, owner_of: IntArray, home: list[str | None]
) -> tuple[tuple[str, ...], BoolArray, tuple[str | None, ...]]:
    """Return the queues that have owners, which owners are in them, and the queue of each owner."""
    number = len(home)
    if cluster.queues:
        parent = {queue.name: queue.parent for queue in cluster.queues}
        inside: dict[str, list[int]] = {queue.name: [] for queue in cluster.queues}
        for n, name in enumerate(home):
            while name is not None:
                inside[name].append(n)
                name = parent[name]
        groups = tuple(name for name, owners in inside.items() if owners)
        members = np.array([np.isin(np.arange(number), inside[name]) for name in groups], bool).reshape(len(groups), number)
        return groups, members, tuple(home)
    pairs = np.unique(np.column_stack([owner_of, log.queue]), axis=0)
    if not log.queues or (log.queue < 0).any() or len(pairs) > number:  # an owner in several queues has one entitlement
        return (), np.zeros((0, number), bool), (None,) * number
    groups = log.queues
    members = np.zeros((len(groups), number), bool)
    members[pairs[:, 1], pairs[:, 0]] = True
    some = np.asarray(members.any(axis=1))
    queue_of = tuple(groups[int(np.argmax(members[:, n]))] for n in range(number))
    return tuple(name for name, used in zip(groups, some, strict=True) if used), members[some], queue_of


def _quoted(name: str) -> str:
    return f'"{name}"'
