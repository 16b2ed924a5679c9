"""The shapes of tasks in an export: groups of tasks with the same queue, demand and constraints."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairopt.clusters.account import Account
from fairopt.files.limits import check_array
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.tolerances import FITS

__all__ = ["SOMEWHERE", "Shapes", "Tasks", "labels_of", "means_of", "natural"]

SOMEWHERE = -1  # the node of a task, if the export does not say on which node it runs


@dataclass(slots=True)
class Tasks:
    """Groups of identical tasks.

    Attributes
    ----------
    owner : list of str
        The owner of each group.
    demands : array (groups, resources), or (groups, kinds of node, resources)
        Demand of one task; on each kind of node (`fairopt.clusters.assembly.Nodes.kind`) where it differs.
    number : array (groups,)
        Number of tasks.
    allowed : bool array (places, nodes)
        Where tasks may run, a row for each kind of constraint.
    place : int array (groups,)
        Row of ``allowed`` for each group.
    where : list of str
        Place of each group in the file, for messages.
    running : list of (group, node, number)
        How many tasks run on which node; `SOMEWHERE` if the node is unknown. All other tasks wait.
    placed : bool
        Whether the export says where tasks run at all.
    queue : list of str, optional
        Name of the queue that each group is in; default: a queue for each owner, with its name. All groups of a queue have one owner.
    kind : list of str, optional
        What else tells groups apart, such as the QOS whose limits they count in; default: nothing.
    """

    owner: list[str]
    demands: FloatArray
    number: FloatArray
    allowed: BoolArray
    place: IntArray
    where: list[str]
    running: list[tuple[int, int, float]] = field(default_factory=list)
    placed: bool = True
    queue: list[str] | None = None
    kind: list[str] | None = None


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts node-2 before node-10.

    >>> sorted(["n10", "n2", "login"], key=natural)
    ['login', 'n2', 'n10']
    """
    return [
        (part.isdigit() and part.isascii(), int(part) if part.isdigit() and part.isascii() else 0, part)
        for part in re.split(r"(\d{1,18})", name)
    ]


class Shapes:
    """Groups of tasks, merged if they have the same queue, demand, constraints and kind.

    Their demands are (shapes, kinds of node, resources): most exports have one kind.
    """

    def __init__(self, tasks: Tasks, rank: IntArray, order: IntArray, node_kind: IntArray) -> None:
        demands = tasks.demands if tasks.demands.ndim == 3 else tasks.demands[:, None]
        self.node_kind = node_kind
        allowed = tasks.allowed[:, order]
        same_place = number_distinct([allowed])
        queue = tasks.owner if tasks.queue is None else tasks.queue
        number_of = {name: j for j, name in enumerate(dict.fromkeys(queue))}
        which = np.array([number_of[name] for name in queue], int)
        place = same_place[tasks.place]
        kind = tasks.kind or [""] * len(queue)
        kinds = {name: j for j, name in enumerate(dict.fromkeys(kind))}
        of_kind = np.array([kinds[name] for name in kind], int)[:, None]
        columns = [which[:, None], demands.reshape(len(queue), -1), place[:, None], of_kind]
        group = number_distinct(columns) if queue else np.empty(0, int)
        first = np.unique(group, return_index=True)[1]
        self.queue, self.kind = [queue[j] for j in first], [kind[j] for j in first]
        self.owner_of = dict(zip(queue, tasks.owner, strict=True))
        self.where = [tasks.where[j] for j in first]
        self.demands = demands[first]
        self.number: FloatArray = np.asarray(np.bincount(group, weights=tasks.number, minlength=first.size), float)
        self.eligibility = allowed[tasks.place[first]] if first.size else np.zeros((0, len(order)), bool)
        check_array("the tasks of the export", "kinds of tasks and kinds of nodes", first.size, len(order))
        self.held = np.zeros((first.size, len(order)))
        self.somewhere = np.zeros(first.size)
        if tasks.running:
            task, node, number = (np.array(column) for column in zip(*tasks.running, strict=True))
            known = node >= 0
            np.add.at(self.held, (group[task[known]], rank[node[known]]), number[known])
            self.somewhere += np.bincount(group[task[~known]], weights=number[~known], minlength=first.size)
        self.number = np.maximum(self.number, self.held.sum(axis=1) + self.somewhere)  # what runs is asked for
        self.eligibility = self.eligibility | (self.held > 0)  # a running task may stay where it is

    def drop(self, bad: BoolArray, why: str, what: str, account: Account) -> None:
        """Leave these shapes out, and say why."""
        for n in np.flatnonzero(bad):
            account.leave_out(what, self.where[n], why, float(self.number[n]))
        keep = np.flatnonzero(~bad)
        self.queue, self.kind, self.where = ([each[n] for n in keep] for each in (self.queue, self.kind, self.where))
        for name in ("demands", "number", "eligibility", "held", "somewhere"):
            setattr(self, name, getattr(self, name)[keep])

    def sequence(self, listed: Collection[str] = ()) -> list[int]:
        """Return an order that depends only on the shapes: by queue, then by demand (largest first), then by where they may run.

        In queues that serve one after the other, ``listed``, it is that of their first tasks in the export.
        """
        demands = (-self.demands).tolist()
        where = [tuple(np.flatnonzero(~row)) for row in self.eligibility]
        keys = [([], (), "", n) if queue in listed else (demands[n], where[n], self.kind[n], 0) for n, queue in enumerate(self.queue)]
        return sorted(range(len(self.queue)), key=lambda n: (natural(self.queue[n]), self.queue[n], *keys[n]))

    def fits(self, capacities: FloatArray, shared: FloatArray) -> BoolArray:
        """Return which shapes have a server that is large enough for one task, and a cluster; or run already, (shapes,).

        The last columns of demands are those of resources of the cluster, of which there are ``shared``.
        """
        demands, of_cluster = np.split(self.demands, [capacities.shape[1]], axis=2)
        exists = ((demands == 0) | (capacities > 0).any(axis=0)).all(axis=(1, 2))
        fits = ((self.held > 0).any(axis=1) | (self.somewhere > 0)) & exists
        kinds = number_distinct([capacities, self.node_kind[:, None].astype(float)])
        first = np.unique(kinds, return_index=True)[1]
        of_kind = self.node_kind[first]
        large: BoolArray = np.all(demands[:, of_kind] <= capacities[first] * (1 + FITS), axis=2)  # (shapes, kinds of node)
        large &= np.all(of_cluster[:, of_kind] <= shared * (1 + FITS), axis=2)
        for kind in range(first.size):
            fits |= large[:, kind] & self.eligibility[:, kinds == kind].any(axis=1)
        return np.asarray(fits)


def means_of(shapes: Shapes) -> tuple[list[str], list[str], FloatArray, FloatArray, BoolArray, FloatArray, FloatArray]:
    """Return one user per queue and kind: the mean of its tasks, which may run where any of them may."""
    of_shapes = list(zip(shapes.queue, shapes.kind, strict=True))
    users = sorted(set(of_shapes), key=lambda each: (natural(each[0]), each))
    position = {each: j for j, each in enumerate(users)}
    belongs = np.zeros((len(users), len(shapes.queue)))
    belongs[[position[each] for each in of_shapes], np.arange(len(shapes.queue))] = 1.0
    number = belongs @ shapes.number
    demands = np.tensordot(belongs * shapes.number, shapes.demands, axes=1) / number[:, None, None]
    queues, kinds = [queue for queue, _ in users], [kind for _, kind in users]
    return queues, kinds, demands, number, (belongs @ shapes.eligibility) > 0, belongs @ shapes.held, belongs @ shapes.somewhere


def labels_of(queues: list[str], demands: FloatArray, resources: list[str], kinds: Sequence[str] = ()) -> list[str]:
    """Return ``queue``, or ``queue/shape`` if it has several, with the kind where kinds differ; the same shape under other constraints gets
    a number.
    """
    of_queue: dict[str, list[int]] = {}
    for n, queue in enumerate(queues):
        of_queue.setdefault(queue, []).append(n)
    labels, taken = [""] * len(queues), set(queues)
    last: dict[str, int] = {}  # the number of the last label of each base
    for queue, users in of_queue.items():
        if len(users) == 1:
            labels[users[0]] = queue
            continue
        # A resource that every shape of the queue asks for in the same amount does not distinguish them.
        differs = (demands[users] != demands[users[0]]).any(axis=0)
        for n in users:
            asked = [
                (f"{value:.4g} {name}", tells) for value, name, tells in zip(demands[n].tolist(), resources, differs, strict=True) if value
            ]
            shape = [text for text, tells in asked if tells] or [text for text, _ in asked]
            kind = [kinds[n]] if kinds and kinds[n] and len({kinds[m] for m in users}) > 1 else []
            label = base = f"{queue}/{' '.join([*shape, *kind])}"
            while label in taken:
                last[base] = last.get(base, 1) + 1
                label = f"{base} ({last[base]})"
            taken.add(label)
            labels[n] = label
    return labels
