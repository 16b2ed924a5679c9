"""From records to an instance: nodes become servers, tasks become users.

**Servers.** Nodes with the same capacity on which the same users may run are one row, labelled by the first node and the number of the
others: ``cn001 +79``. The row has the names of all its nodes as ``hosts``. Running tasks are summed by row. The sum may hide a node that
holds more than its capacity; a note names such nodes.

**Users.** An owner (a namespace, an account) often runs tasks of several shapes, but a user has one shape. So an owner is a queue, and
each (queue, shape, constraints) is a user of weight 1 in it, labelled ``queue/shape``, with its ``owner``; its tasks T[n] are those that
run and those that wait. The weight of the owner is the weight of its queue. Where every owner has one shape and the export gives no queues,
there is no tree: each owner is a user. :mod:`fairopt.clusters.queue_tree` joins the queues that the export gives.

With ``demand="mean"`` a queue has one user whose task is the mean of its tasks; it may run wherever any of them may. That is an
approximation: no such task exists, and it needs every resource that any of them needs.

Tasks that ask for nothing, and tasks that are too large for every server, are left out and counted. If a task runs where its constraints
no longer allow it, it may stay, so its shape may run there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from fairopt.analysis.rerun import given
from fairopt.clusters.account import Account
from fairopt.clusters.imported import Import
from fairopt.clusters.queue_tree import Forest, groups_of, note_guarantees, on_rows, plant, weighted, with_weights
from fairopt.clusters.running import Running, rows_of
from fairopt.clusters.shapes import Shapes, Tasks, labels_of, means_of, natural
from fairopt.clusters.speeds import Speeds, demands_by_kind
from fairopt.errors import InvalidInstance
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.hosts import is_host
from fairopt.instance.limits import Limit
from fairopt.instance.tolerances import FITS
from fairopt.instance.units import BYTES, unit_in_name
from fairopt.wording import did_you_mean, joined, named, plural

__all__ = ["Demand", "Nodes", "assemble"]

Demand: TypeAlias = Literal["shapes", "mean"]


@dataclass(slots=True)
class Nodes:
    """The nodes that accept work.

    Attributes
    ----------
    names : list of str
    capacities : array (nodes, resources)
    counts : array (nodes,), optional
        How many each stands for; default: one, which has its name.
    hosts : list of sequences of str, optional
        The names of those that each stands for; empty where they are not known.
    kind : int array (nodes,), optional
        The kind of each, where the demands of tasks differ by kind of node.
    """

    names: list[str]
    capacities: FloatArray
    counts: FloatArray | None = None
    hosts: Sequence[Sequence[str]] | None = None
    kind: IntArray | None = None

    @property
    def known(self) -> Sequence[Sequence[str]]:
        """The names of the hosts that each node stands for; empty where they are not known, or cannot be names of hosts."""
        hosts = self.hosts
        if hosts is None:
            hosts = [(name,) for name in self.names] if self.counts is None else [()] * len(self.names)
        return [each if all(map(is_host, each)) else () for each in hosts]


def assemble(
    kind: str,
    nodes: Nodes,
    tasks: Tasks,
    account: Account,
    *,
    units: Mapping[str, str],
    shared: Mapping[str, float] | None = None,
    forest: Forest | None = None,
    own_weights: Mapping[str, float] | None = None,
    demand: Demand = "shapes",
    what: str = "task",
    speeds: Speeds | None = None,
    limits: Callable[[Instance, Sequence[str]], Sequence[Limit]] | None = None,
) -> Import:
    """Make the instance.

    Parameters
    ----------
    units : mapping
        The resources, in the order of the columns, and their units.
    shared : mapping, optional
        The amounts of resources of the cluster, which no node has; their columns are the last ones.
    forest : Forest, optional
        The queues that the export gives; the servers of their quotas are nodes.
    own_weights : mapping, optional
        Weights by owner that the caller gives, instead of those of the export; every owner in it must exist.
    what : str
        What a task is called in the account: "pod", "job".
    speeds : Speeds, optional
        The work of a task by owner and node, and how many times as much it takes there.
    limits : function, optional
        Gives the named limits, from the instance without them and the kind of each user (`Tasks.kind`).
    """
    if demand not in ("shapes", "mean"):
        raise InvalidInstance(f'demand is "{demand}"{did_you_mean(str(demand), ["shapes", "mean"])}; give "shapes" or "mean"')
    if not nodes.names:
        raise InvalidInstance(f"no node of the {kind} export accepts work, so there is nothing to share; {account.reasons()}")
    resources = list(units)
    if speeds is not None:
        demands_of_kinds, kind_of_nodes = demands_by_kind(speeds, tasks, nodes.kind, resources)
        tasks, nodes = replace(tasks, demands=demands_of_kinds), replace(nodes, kind=kind_of_nodes)
    order = np.array(sorted(range(len(nodes.names)), key=lambda i: natural(nodes.names[i])), int)
    names = [nodes.names[i] for i in order]
    capacities = nodes.capacities[order]
    counts: FloatArray = np.ones(len(names)) if nodes.counts is None else nodes.counts[order]

    node_kind = np.zeros(order.size, int) if nodes.kind is None else nodes.kind[order]
    forest = forest or Forest()
    speed_of = {owner: speeds.of(owner)[order] for owner in set(tasks.owner)} if speeds is not None else {}
    told = [speed[:, None] for speed in speed_of.values()]
    shapes = Shapes(tasks, order, node_kind, [capacities, groups_of(forest.queues, names).T, *told])
    alike = np.unique(shapes.node_class, return_index=True)[1]  # the first node of each class
    if speeds is not None:
        _bar(shapes, names, speed_of)
    shapes.drop((shapes.demands == 0).all(axis=(1, 2)), "asks for nothing", what, account)
    nowhere = ~shapes.eligibility.any(axis=1) & (shapes.somewhere == 0)
    shapes.drop(nowhere, "no server meets its constraints, so it can never start", what, account)
    amounts = dict(shared or {})
    fits = shapes.fits(capacities[alike], np.array(list(amounts.values())))
    shapes.drop(~fits, "larger than every server on which it may run, so it can never start", what, account)
    if not shapes.queue:
        raise InvalidInstance(f"no {what} of the {kind} export is left, so nothing asks for resources; {account.reasons()}")
    some_use = (shapes.demands > 0).any(axis=(0, 1))
    some_use |= np.append((capacities > 0).any(axis=0), np.ones(len(amounts), bool))
    capacities, shapes.demands = capacities[:, some_use[: capacities.shape[1]]], shapes.demands[..., some_use]
    resources = [name for name, used in zip(resources, some_use, strict=True) if used]
    owner_of = {queue: shapes.owner_of[queue] for queue in shapes.queue}

    if demand == "mean":
        lowest, kinds, demands, number, eligibility, held, somewhere = means_of(shapes)
        labels = lowest if len(set(lowest)) == len(lowest) else labels_of(lowest, demands[:, 0], resources, kinds)
        account.note("each owner is one user with the mean of its tasks: an approximation, as no such task exists")
        position = {each: n for n, each in enumerate(zip(lowest, kinds, strict=True))}
        user_of = {
            group: position[each] for group, each in zip(shapes.group.tolist(), zip(shapes.queue, shapes.kind, strict=True), strict=True)
        }
    else:
        sequence = shapes.sequence({queue.name for queue in forest.queues if queue.order == "listed"})
        lowest = [shapes.queue[n] for n in sequence]
        demands, number, eligibility = shapes.demands[sequence], shapes.number[sequence], shapes.eligibility[sequence]
        held, somewhere = shapes.held[sequence], shapes.somewhere[sequence]
        kinds = [shapes.kind[n] for n in sequence]
        labels = labels_of(lowest, demands[:, 0], resources, kinds)
        user_of = {group: n for n, group in enumerate(shapes.group[sequence].tolist())}
    queues, of_owner = plant(forest, owner_of, len(set(lowest)) < len(lowest))
    parents = {queue.parent for queue in queues}
    mixed = [queue.name for queue in queues if queue.order == "listed" and queue.name in owner_of and queue.name in parents]
    if mixed:
        queues = [replace(queue, order="fair") if queue.name in mixed else queue for queue in queues]
        account.note(
            f"{joined([named(name) for name in mixed], 3)}: the order of what is in it is left out, because tasks and queues are in it, "
            "and which of these come first is not known"
        )
    owned = of_owner or {owner: (queue,) for queue, owner in owner_of.items()}
    given_weights = weighted(own_weights or {}, owned, [queue.name for queue in queues])

    groups = groups_of(queues, [names[i] for i in alike])
    speed = np.array([speed_of[owner_of[queue]][alike] for queue in lowest]) if speeds is not None else np.ones((len(lowest), 1))
    own_kind = node_kind[alike, None].astype(float)
    row_of_class = number_distinct([capacities[alike], eligibility.T, groups.T, own_kind, *([speed.T] if speeds is not None else [])])
    row = row_of_class[shapes.node_class]
    first = np.unique(row, return_index=True)[1]
    members, rows = np.bincount(row), first.size
    row_counts = np.bincount(row, weights=counts)
    of_nodes = nodes.known
    of_rows: list[list[Sequence[str]]] = [[] for _ in range(rows)]
    for i, j in zip(order.tolist(), row.tolist(), strict=True):
        of_rows[j].append(of_nodes[i])
    servers = [names[i] if members[j] == 1 else f"{names[i]} +{members[j] - 1}" for j, i in enumerate(first)]
    row_of = {name: servers[j] for name, j in zip(names, row.tolist(), strict=True)}
    instance = Instance(
        capacities[first],
        demands[:, 0] if nodes.kind is None else demands[:, node_kind[first]],
        weights=None if queues else [given_weights.get(queue, 1.0) for queue in lowest],
        eligibility=None if eligibility.all() else eligibility[:, shapes.node_class[first]],
        counts=row_counts,
        tasks=number,
        speeds=None if speeds is None else speed[:, shapes.node_class[first]],
        queues=[on_rows(queue, row_of, resources) for queue in with_weights(queues, given_weights)],
        queue_of=lowest if queues else None,
        hosts=[tuple(chain.from_iterable(each)) if all(each) else () for each in of_rows],
        owners=[owner_of[queue] for queue in lowest],
        shared=amounts,
        users=labels,
        units={resource: units[resource] for resource in resources if units[resource] in BYTES and not unit_in_name(resource)},
        servers=servers,
        resources=resources,
    )
    if limits is not None:
        instance = instance.replace(limits=limits(instance, kinds))
    note_guarantees(instance, forest, account)
    unused = ~instance.eligibility.any(axis=0)
    if unused.any():
        idle = plural(row_counts[unused].sum(), "server that no task may use counts", "servers that no task may use count")
        account.note(f"{idle} in the capacity of the cluster")
    over = (
        np.flatnonzero(
            (_used(held, demands[..., : capacities.shape[1]], node_kind) > counts[:, None] * capacities * (1 + FITS)).any(axis=1)
        )
        if demand == "shapes"
        else row[:0]
    )
    if over.size:
        account.note(f"running tasks ask for more than the capacity of {plural(over.size, 'node')}, such as {names[over[0]]}")
    placed = (held @ sp.csr_array((np.ones(row.size), (np.arange(row.size), row)), (row.size, rows))).toarray()
    running = placed.sum(axis=1) + somewhere
    current = None
    if rows == 1:
        placed[:, 0] = running
    if tasks.placed and (rows == 1 or not somewhere.any()):
        current = given(instance, placed, "rdm")
    elif running.any():
        account.note("the exports do not say on which node a task runs, so there is no current allocation")
    named_runs: tuple[Running, ...] = ()
    if current is not None and tasks.names is not None:
        hosts = [nodes.names[i] if of_nodes[i] else servers[j] for i, j in zip(order.tolist(), row.tolist(), strict=True)]
        named_runs = _by_name(shapes, tasks, user_of, labels, hosts, servers[0])
    account.summary |= {"owners": len(set(owner_of.values()))} | ({"queues": len(queues)} if queues else {})
    account.summary["tasks running"] = float(running.sum())
    if np.isfinite(number).all():
        account.summary["tasks waiting"] = float(np.maximum(number - running, 0.0).sum())
    return Import(
        kind,
        instance,
        current,
        tuple(owner_of[queue] for queue in lowest),
        running,
        {name: units[name] for name in resources},
        dict(account.summary),
        tuple(account.left_out),
        tuple(account.notes),
        of_owner,
        running=named_runs,
    )


def _by_name(
    shapes: Shapes, tasks: Tasks, user_of: Mapping[int, int], labels: Sequence[str], hosts: Sequence[str], row: str
) -> tuple[Running, ...]:
    """Return what runs, by name: the users in their order, and the hosts in theirs; what runs somewhere, on the only row of servers."""
    of_run = zip(shapes.group_of_run.tolist(), shapes.node_of_run.tolist(), tasks.running, tasks.names or (), strict=True)
    runs = [(user_of[group], node, number, name) for group, node, (_, _, number), name in of_run if group in user_of and number]
    runs.sort(key=lambda run: (run[0], run[1], run[3].gang, run[3].protected, natural(run[3].name)))
    return rows_of((labels[n], hosts[node] if node >= 0 else row, number, name) for n, node, number, name in runs)


def _used(held: sp.csr_array, demands: FloatArray, node_kind: IntArray) -> FloatArray:
    """Return what tasks use of each node, (nodes, resources); demands are (users, kinds of node, resources)."""
    used = np.zeros((held.shape[1], demands.shape[2]))
    for kind in range(demands.shape[1]):
        there = np.flatnonzero(node_kind == kind)
        used[there] = held[:, there].T @ demands[:, kind]
    return used


def _bar(shapes: Shapes, names: Sequence[str], speed_of: Mapping[str, FloatArray]) -> None:
    """Let no task run where its speed is 0.

    Raises
    ------
    InvalidInstance
        One runs there.
    """
    alike = np.unique(shapes.node_class, return_index=True)[1]
    barred = np.array([speed_of[shapes.owner_of[queue]][alike] == 0 for queue in shapes.queue]).reshape(shapes.eligibility.shape)
    there = shapes.held.tocoo()
    bad = barred[there.row, shapes.node_class[there.col]]
    for n, i in sorted(zip(there.row[bad].tolist(), there.col[bad].tolist(), strict=True))[:1]:
        raise InvalidInstance(f"the speed of {named(shapes.owner_of[shapes.queue[n]])} on {named(names[i])} is 0, and its tasks run there")
    shapes.eligibility = shapes.eligibility & ~barred
