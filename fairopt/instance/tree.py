"""The tree of queues and users: its root is the cluster, its inner nodes are the queues, and its leaves are the users.

>>> from fairopt.instance.queues import Queue
>>> tree = Tree.of([Queue("research", weight=2), Queue("vision", parent="research")], ["vision", None])
>>> tree.path(2), tree.user_node
(('research', 'vision'), array([2, 0]))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.queues import Queue
from fairopt.validation import BoolArray, FloatArray, IntArray
from fairopt.wording import brief, did_you_mean, joined

__all__ = ["MOST_LEVELS", "Tree", "apart", "circle", "circular", "deepest", "mixed", "too_deep"]

MOST_LEVELS = 100  # of queues below the root; the trees of real clusters have a dozen


@dataclass(frozen=True, eq=False)
class Tree:
    """Queues and users as a tree of arrays. Node 0 is the root, nodes 1 ... Q are the queues in their order.

    Attributes
    ----------
    queues : tuple of Queue
    parent : int array (nodes,)
        -1 for the root.
    depth : int array (nodes,)
        0 for the root.
    user_node : int array (users,)
        The node of each user.
    """

    queues: tuple[Queue, ...]
    parent: IntArray
    depth: IntArray
    user_node: IntArray

    @classmethod
    def of(cls, queues: Sequence[Queue], queue_of: Sequence[str | None], users: Sequence[str] | None = None) -> Tree:
        """Return the tree of queues, and the queue of each user by name (None: the root).

        Raises
        ------
        InvalidInstance
            Two queues have one name, a parent or a queue does not exist, or the parents form a cycle.
        """
        for queue in queues:
            if not isinstance(queue, Queue):
                raise InvalidInstance(f"queues must be a list of fairopt.Queue, got {queue!r}")
        names = [queue.name for queue in queues]
        twice = [name for name, number in Counter(names).items() if number > 1]
        if twice:
            raise InvalidInstance(
                f"{joined([f'{chr(34)}{name}{chr(34)}' for name in twice], 3)}: two queues have this name; give each its own"
            )
        place = {name: number for number, name in enumerate(names, 1)}
        parent = np.full(len(names) + 1, -1, dtype=np.int64)
        for queue in queues:
            if queue.parent is not None and queue.parent not in place:
                raise InvalidInstance(
                    f'queue "{queue.name}": its parent "{queue.parent}" is not a queue{did_you_mean(queue.parent, names)}; '
                    "add the parent to the queues, or leave parent out for the root"
                )
            parent[place[queue.name]] = 0 if queue.parent is None else place[queue.parent]
        way = circle({queue.name: queue.parent for queue in queues})
        if way:
            raise InvalidInstance(f"the parents of queues {circular(way)}")
        depth = _depths(parent)
        if depth.max(initial=0) > MOST_LEVELS:
            raise InvalidInstance(too_deep(names[int(depth.argmax()) - 1], int(depth.max())))
        node = np.zeros(len(queue_of), dtype=np.int64)
        for n, name in enumerate(queue_of):
            if name is None:
                continue
            if name not in place:
                user = f'user "{users[n]}"' if users is not None else f"user {n + 1}"
                hint = did_you_mean(name, names) if isinstance(name, str) else ""
                there = f"there are {joined(names, 5)}" if names else "there are no queues"
                raise InvalidInstance(f'{user}: there is no queue "{name}"{hint}; {there}')
            node[n] = place[name]
        for k, queue in enumerate(queues, 1):
            if queue.order != "listed":
                continue
            inside, children = np.flatnonzero(node == k), np.flatnonzero(parent == k)
            if inside.size and children.size:
                user = str(inside[0] + 1) if users is None else users[inside[0]]
                raise InvalidInstance(f'queue "{queue.name}": {mixed(user, names[children[0] - 1])}')
        return cls(tuple(queues), parent, depth, node)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, the root included."""
        return int(self.parent.size)

    def name(self, node: int) -> str:
        """Return the name of a node; that of the root is "the cluster"."""
        return self.queues[node - 1].name if node else "the cluster"

    def path(self, node: int) -> tuple[str, ...]:
        """Return the names from the root down to a node, the root left out."""
        names: list[str] = []
        while node > 0:
            names.append(self.queues[node - 1].name)
            node = int(self.parent[node])
        return tuple(reversed(names))

    def index(self, name: str) -> int:
        """Return the node of a queue by its name."""
        if name not in self._places:
            names = [queue.name for queue in self.queues]
            hint = did_you_mean(name, names) if isinstance(name, str) else ""
            raise InvalidInstance(f'there is no queue "{name}"{hint}; there are {joined(names, 5) if names else "none"}')
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {queue.name: node for node, queue in enumerate(self.queues, 1)}

    @cached_property
    def order(self) -> list[int]:
        """The nodes without the root, children before parents."""
        return [v for v in self.upwards() if v]

    @cached_property
    def layers(self) -> list[IntArray]:
        """The nodes without the root, grouped by depth, the deepest first."""
        return [np.flatnonzero(self.depth == depth) for depth in range(int(self.depth.max()), 0, -1)]

    @cached_property
    def weights(self) -> FloatArray:
        """Weight of each node among its siblings, (nodes,); 1 for the root."""
        weights = np.array([1, *(queue.weight for queue in self.queues)])
        return weights if weights.dtype == object else weights.astype(np.float64)

    @cached_property
    def tiers(self) -> IntArray:
        """Tier of each node, (nodes,): its own, or if that is 0, the tier of the nearest node above that has one."""
        tiers = np.array([0, *(queue.tier for queue in self.queues)], dtype=np.int64)
        for node in self.downwards():
            if node and tiers[node] == 0:
                tiers[node] = tiers[self.parent[node]]
        return tiers

    @cached_property
    def listed(self) -> BoolArray:
        """Which nodes have the order "listed", (nodes,)."""
        return np.array([False, *(queue.order == "listed" for queue in self.queues)])

    def in_turn(self, users: BoolArray, nodes: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return whose turn it is among these users, (users,), and nodes, (nodes,): in a listed queue that of the first child alone.

        >>> fifo = Tree.of([Queue("fifo", order="listed")], ["fifo", "fifo", None])
        >>> fifo.in_turn(np.array([True, True, True]), np.array([False, True]))[0]
        array([ True, False,  True])
        """
        if not self.listed.any():
            return users, nodes
        turns = []
        for children, above in ((users, self.user_node), (nodes, self.parent)):
            waits = np.flatnonzero(children & self.listed[above] & (above >= 0))
            turn = children.copy()
            turn[waits] = False
            turn[waits[np.unique(above[waits], return_index=True)[1]]] = True
            turns.append(turn)
        return turns[0], turns[1]

    @cached_property
    def places(self) -> IntArray:
        """The place of each user in a listed queue, (users,): users of one place are alike as far as the tree says; 0 in other queues."""
        return np.where(self.listed[self.user_node], np.arange(self.user_node.size) + 1, 0)

    def before(self, user: int) -> IntArray:
        """Return the users who come before a user in a listed queue at or above it, the nearest queue first."""
        found: list[IntArray] = []
        if self.listed[self.user_node[user]]:
            found.append(np.flatnonzero((self.user_node == self.user_node[user]) & (np.arange(self.user_node.size) < user)))
        child = int(self.user_node[user])
        while child > 0:
            above = int(self.parent[child])
            if self.listed[above]:
                earlier = np.flatnonzero((self.parent == above) & (np.arange(self.n_nodes) < child))
                found.append(np.flatnonzero(self.below[earlier].any(axis=0)))
            child = above
        return np.concatenate([*found, np.empty(0, np.int64)])

    @cached_property
    def below(self) -> BoolArray:
        """Which users are below each node, at any depth, (nodes, users)."""
        below = np.zeros((self.n_nodes, self.user_node.size), bool)
        below[self.user_node, np.arange(self.user_node.size)] = True
        for node in self.upwards():
            if node:
                below[self.parent[node]] |= below[node]
        return below

    def downwards(self) -> Iterator[int]:
        """Yield the nodes, parents before children."""
        yield from (int(node) for node in np.argsort(self.depth, kind="stable"))

    def upwards(self) -> Iterator[int]:
        """Yield the nodes, children before parents."""
        yield from (int(node) for node in np.argsort(-self.depth, kind="stable"))

    def open_below(self, node: int) -> BoolArray:
        """Return the users below a node with no weight of 0 between the node and them, (users,)."""
        inside = np.zeros(self.n_nodes, bool)
        inside[node] = True
        for v in self.downwards():
            if v and v != node and inside[self.parent[v]]:
                inside[v] = self.weights[v] > 0
        return np.asarray(inside[self.user_node])

    def children(self, node: int) -> IntArray:
        """Return the queues right below a node."""
        return np.flatnonzero(self.parent == node)

    def users_of(self, node: int) -> IntArray:
        """Return the users right below a node."""
        return np.flatnonzero(self.user_node == node)


def apart(several: BoolArray, queue_of: Sequence[str | None], queues: Sequence[Queue]) -> BoolArray:
    """Return which users become queues of their own, (users,): those who stand for ``several``, and who is with one in a listed queue.

    A listed queue holds users or queues, not both.

    >>> apart(np.array([True, False, False]), ["fifo", "fifo", None], [Queue("fifo", order="listed")])
    array([ True,  True, False])
    """
    mixed = {queue_of[n] for n in np.flatnonzero(several).tolist()} | {queue.parent for queue in queues}
    mixed &= {queue.name for queue in queues if queue.order == "listed"}
    return np.asarray(several | np.array([home in mixed for home in queue_of], bool)) if mixed else several


def circle(parents: Mapping[str, str | None]) -> list[str]:
    """Return the queues on a cycle of parents, starting at the first in the given order; an empty list if there is no cycle.

    >>> circle({"a": "b", "b": "c", "c": "b"}), circle({"a": "b", "b": None})
    (['b', 'c'], [])
    """
    done: set[str] = set()
    for start in parents:
        way: dict[str, None] = {}
        name: str | None = start
        while name is not None and name not in done and name not in way:
            way[name] = None
            name = parents[name]
        if name is not None and name in way:
            names = list(way)
            return names[names.index(name) :]
        done.update(way)
    return []


def circular(way: Sequence[str]) -> str:
    """Return the message on a cycle of parents."""
    return f"go round in a circle: {' -> '.join([*way, way[0]])}; one must be in the root"


def deepest(parents: Mapping[str, str | None]) -> tuple[str, int]:
    """Return the queue that is the most levels below the root, and how many; the parents make a tree.

    >>> deepest({"a": "b", "b": None, "c": "a"})
    ('c', 3)
    """
    place = {name: number for number, name in enumerate(parents, 1)}
    depth = _depths(np.array([-1, *(0 if parent is None else place[parent] for parent in parents.values())], dtype=np.int64))
    lowest = int(depth.argmax())
    return [*parents, ""][lowest - 1], int(depth[lowest])


def mixed(user: str, queue: str) -> str:
    """Return the message on a listed queue that holds a user and a queue."""
    return (
        f'its order is "listed", but it holds both user "{brief(user)}" and queue "{brief(queue)}", and which comes first is not known; '
        "put the users into a queue of their own"
    )


def too_deep(name: str, levels: int) -> str:
    """Return the message on a tree with too many levels."""
    return (
        f'the queue "{brief(name)}" is {levels:,} levels below the root, and a tree has {MOST_LEVELS} levels at most; '
        "put what is in the deepest queues into those above"
    )


def _depths(parent: IntArray) -> IntArray:
    """Return the depth of each node below the root."""
    depth = np.full(parent.size, -1, dtype=np.int64)
    depth[0] = 0
    for start in range(1, parent.size):
        way: list[int] = []
        node = start
        while depth[node] < 0:
            way.append(node)
            node = int(parent[node])
        for step, above in enumerate(reversed(way), 1):
            depth[above] = depth[node] + step
    return depth
