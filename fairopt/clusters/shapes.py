"""The shapes of tasks in an export: groups of tasks with the same queue, demand and constraints."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fairopt.clusters.account import Account
from fairopt.clusters.running import Name
from fairopt.files.limits import check_array
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.tolerances import FITS

__all__ = ["APART", "SOMEWHERE", "Shapes", "Tasks", "labels_of", "means_of", "natural"]

APART = "\0"  # in a kind, before what tells it from others of the same word
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
    names : list of Name, optional
        What the scheduler calls them, one for each entry of ``running``.
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
    names: Sequence[Name] | None = None


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
    """Groups of tasks, merged if they have the same queue, demand, constraints and kind; and nodes, merged if no group tells them apart.

    Parameters
    ----------
    tasks : Tasks
    order : int array (nodes,)
        The order of the nodes.
    node_kind : int array (nodes,)
        The kind of each, in that order.
    keys : sequence of arrays (nodes, ...)
        What else tells nodes apart, in that order.

    Attributes
    ----------
    queue, kind, where : lists of str
        Of each group.
    demands, number : arrays (groups, kinds of node, resources), (groups,)
        Most exports have one kind.
    eligibility : bool array (groups, classes of nodes)
    held : sparse array (groups, nodes)
        How many tasks run on each node.
    somewhere : array (groups,)
        How many tasks run on nodes that are not known.
    node_class : int array (nodes,)
        The class of each node, numbered by their first nodes; ``kind_of_class``: the kind of each class.
    group : int array (groups,)
        Their numbers before any was dropped, and ``group_of_run``, ``node_of_run``: that and the node of each entry of `Tasks.running`.
    """

    def __init__(self, tasks: Tasks, order: IntArray, node_kind: IntArray, keys: Sequence[npt.NDArray[np.generic]]) -> None:
        nodes = len(order)
        demands = tasks.demands if tasks.demands.ndim == 3 else tasks.demands[:, None]
        allowed = tasks.allowed[:, order]
        same_place = number_distinct([allowed])
        allowed = allowed[_first(same_place)]
        place = same_place[tasks.place]
        queue = tasks.owner if tasks.queue is None else tasks.queue
        number_of = {name: j for j, name in enumerate(dict.fromkeys(queue))}
        which = np.array([number_of[name] for name in queue], int)
        kind = tasks.kind or [""] * len(queue)
        kinds = {name: j for j, name in enumerate(dict.fromkeys(kind))}
        of_kind = np.array([kinds[name] for name in kind], int)[:, None]
        columns = [which[:, None], demands.reshape(len(queue), demands.shape[1] * demands.shape[2]), place[:, None], of_kind]
        group = number_distinct(columns) if queue else np.empty(0, int)
        first = _first(group)
        self.queue, self.kind = [queue[j] for j in first], [kind[j] for j in first]
        self.owner_of = dict(zip(queue, tasks.owner, strict=True))
        self.where = [tasks.where[j] for j in first]
        self.demands = demands[first]
        self.number: FloatArray = np.asarray(np.bincount(group, weights=tasks.number, minlength=first.size), float)
        self.held = sp.csr_array((first.size, nodes))
        self.somewhere = np.zeros(first.size)
        self.group = np.arange(first.size)
        self.group_of_run, self.node_of_run = np.empty(0, int), np.empty(0, int)
        if tasks.running:
            task, node, number = (np.array(column) for column in zip(*tasks.running, strict=True))
            known = node >= 0
            self.group_of_run, self.node_of_run = group[task], np.where(known, np.argsort(order)[node], SOMEWHERE)
            places = self.group_of_run[known], self.node_of_run[known]
            self.held = sp.csr_array((number[known].astype(float), places), (first.size, nodes))
            self.held.eliminate_zeros()
            self.somewhere += np.bincount(group[task[~known]], weights=number[~known], minlength=first.size)
        self.number = np.maximum(self.number, self.held.sum(axis=1) + self.somewhere)  # what runs is asked for

        place = place[first]
        there = self.held.tocoo()
        forbidden = ~allowed[place[there.row], there.col]
        stays = np.asarray(there.row[forbidden], int), np.asarray(there.col[forbidden], int)  # a running task may stay where it is
        self.node_class = number_distinct([allowed.T, _sets(*stays, nodes)[:, None], node_kind[:, None], *keys])
        alike = _first(self.node_class)
        self.kind_of_class = node_kind[alike]
        check_array("the tasks of the export", "kinds of tasks and kinds of nodes", first.size, alike.size)
        self.eligibility: BoolArray = allowed[:, alike][place]
        self.eligibility[stays[0], self.node_class[stays[1]]] = True

    @property
    def runs(self) -> BoolArray:
        """Whether a task of a group runs, (groups,)."""
        return np.asarray((self.held.sum(axis=1) > 0) | (self.somewhere > 0))

    def drop(self, bad: BoolArray, why: str, what: str, account: Account) -> None:
        """Leave these shapes out, and say why."""
        if not bad.any():
            return
        for n in np.flatnonzero(bad):
            account.leave_out(what, self.where[n], why, float(self.number[n]))
        keep = np.flatnonzero(~bad)
        self.queue, self.kind, self.where = ([each[n] for n in keep] for each in (self.queue, self.kind, self.where))
        for name in ("demands", "number", "eligibility", "held", "somewhere", "group"):
            setattr(self, name, getattr(self, name)[keep])

    def sequence(self, listed: Collection[str] = ()) -> list[int]:
        """Return an order that depends only on the shapes: by queue, then by demand (largest first), then by where they may run.

        In queues that serve one after the other, ``listed``, it is that of their first tasks in the export.
        """
        demands = (-self.demands).tolist()
        where = self._excluded()
        keys = [([], b"", "", n) if queue in listed else (demands[n], where[n], self.kind[n], 0) for n, queue in enumerate(self.queue)]
        names = {queue: natural(queue) for queue in self.queue}
        return sorted(range(len(self.queue)), key=lambda n: (names[self.queue[n]], self.queue[n], *keys[n]))

    def _excluded(self) -> list[bytes]:
        """Return a key for each group that sorts like the tuple of the nodes on which it may not run."""
        found: dict[bytes, bytes] = {}
        keys = []
        for row in self.eligibility:
            own = row.tobytes()
            if own not in found:
                found[own] = row[self.node_class].tobytes().rstrip(b"\x01")  # up to the last node that is excluded
            keys.append(found[own])
        return keys

    def fits(self, capacities: FloatArray, shared: FloatArray) -> BoolArray:
        """Return which shapes have a server that is large enough for one task, and a cluster; or run already, (shapes,).

        ``capacities`` are those of the classes of nodes. The last columns of demands are those of resources of the cluster, of which there
        are ``shared``.
        """
        demands, of_cluster = np.split(self.demands, [capacities.shape[1]], axis=2)
        runs: BoolArray = self.runs & ((demands == 0) | (capacities > 0).any(axis=0)).all(axis=(1, 2))
        waits = np.flatnonzero(~runs)
        in_cluster = np.all(of_cluster <= shared * (1 + FITS), axis=2)  # (shapes, kinds of node)
        large = self.eligibility[waits] & in_cluster[waits][:, self.kind_of_class]
        for r in range(capacities.shape[1]):
            large &= demands[waits, :, r][:, self.kind_of_class] <= capacities[:, r] * (1 + FITS)
        fits: BoolArray = runs.copy()
        fits[waits] = large.any(axis=1)
        return fits


def _first(numbers: IntArray) -> IntArray:
    """Return the first position of each number, 0, 1, ..."""
    return np.unique(numbers, return_index=True)[1]


def _sets(members: IntArray, sets: IntArray, size: int) -> IntArray:
    """Number the distinct ones of ``size`` sets, given as pairs of a member and its set; the empty set is 0."""
    of_set: dict[int, list[int]] = {}
    for member, j in sorted(zip(members.tolist(), sets.tolist(), strict=True)):
        of_set.setdefault(j, []).append(member)
    known: dict[tuple[int, ...], int] = {(): 0}
    found = np.zeros(size, int)
    for j, own in of_set.items():
        found[j] = known.setdefault(tuple(own), len(known))
    return found


def means_of(shapes: Shapes) -> tuple[list[str], list[str], FloatArray, FloatArray, BoolArray, sp.csr_array, FloatArray]:
    """Return one user per queue and kind: the mean of its tasks, which may run where any of them may."""
    of_shapes = list(zip(shapes.queue, shapes.kind, strict=True))
    users = sorted(set(of_shapes), key=lambda each: (natural(each[0]), each))
    position = {each: j for j, each in enumerate(users)}
    of_user = [position[each] for each in of_shapes]
    belongs = sp.csr_array((np.ones(len(of_user)), (of_user, np.arange(len(of_user)))), (len(users), len(of_user)))
    number = np.asarray(belongs @ shapes.number)
    asked = (shapes.number[:, None, None] * shapes.demands).reshape(len(of_user), -1)
    demands = np.asarray(belongs @ asked).reshape(len(users), *shapes.demands.shape[1:]) / number[:, None, None]
    queues, kinds = [queue for queue, _ in users], [kind for _, kind in users]
    eligibility, somewhere = np.asarray(belongs @ shapes.eligibility) > 0, np.asarray(belongs @ shapes.somewhere)
    return queues, kinds, demands, number, eligibility, belongs @ shapes.held, somewhere


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
            kind = [kinds[n].partition(APART)[0]] if kinds and kinds[n] and len({kinds[m] for m in users}) > 1 else []
            label = base = f"{queue}/{' '.join([*shape, *kind])}"
            while label in taken:
                last[base] = last.get(base, 1) + 1
                label = f"{base} ({last[base]})"
            taken.add(label)
            labels[n] = label
    return labels
