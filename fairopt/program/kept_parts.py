r"""What queues keep of their guarantees: lending limits add up.

A queue v with a lending limit *keeps* kept[v] = guarantee - lending limit of a resource on a group of servers: nobody else gets this part,
even while the queue does not use it. With

    z[v] = max(kept[v],  use of v's own users + sum of z[c] over the queues c below v)          kept[v] = 0 without a lending limit

the root's z is at most the capacity of the group. Without the columns z, that is a family of rows with coefficients >= 0. For each set S of
queues that keep something, none of them below another,

    sum of kept[v] over S  +  use of all users below none of S   <=   capacity:

a queue that uses less than it keeps counts with what it keeps. The family has up to 2^L rows for L such queues. A program begins with few
of them. An answer that breaks one is solved again with it (`fairopt.solving.policy.find`); an answer that breaks none of the family is the
answer for all of it, since a program with fewer rows allows more. The row that a point breaks most is found by computing z from the
deepest queues up: S are the topmost queues whose kept part is larger than what is counted below them.

Kept parts that together exceed the capacity of their group are scaled down in proportion.

>>> from fairopt.instance.queues import Queue
>>> keep = {"guarantee": {"cpu": 20}, "lending_limit": {"cpu": 0}}
>>> queues = [Queue("A", **keep), Queue("B", **keep), Queue("C")]
>>> pool = Instance([[100]], [[1], [1], [1]], resources=["cpu"], queues=queues, queue_of=["A", "B", "C"])
>>> kept = KeptParts.of(pool)
>>> [(row.name, row.bound) for row in kept.tightest(np.array([[5], [25], [75]]))]
[('cpu beside what A keeps', 80.0)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.fractions import ExactArray
from fairopt.instance.tree import Tree
from fairopt.program.queue_limits import Row, groups_of, limit_rows

__all__ = ["KeptParts", "KeptRow", "Keeping", "counted_rows", "without_breaking"]

_BROKEN = 1e-11  # relative to the bound: a row that is exceeded by less is kept
_NOTHING = 1e-12  # of a capacity: a smaller rest of it is 0

KeptRow: TypeAlias = tuple[int, tuple[int, ...]]
"""A row of the family: which `Keeping`, and which of its queues keep."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Keeping:
    """The queues that keep a part of one resource on one group of servers. Numbers are floats, or Fractions.

    Amounts ``held`` of users are (L + 1,): what the users hold whose nearest queue above that keeps is each of the L queues, and last what
    all others hold.

    Attributes
    ----------
    resource : int
    group : str
        Name of the group of servers; "" for the whole cluster.
    servers : bool array (servers,)
    capacity : number
    nodes : tuple of int
        The nodes of the queues, parents before children.
    quotas : tuple of int
        Of each queue, which of `fairopt.Queue.everywhere_and_on_groups` names the lending limit.
    asked, kept : tuples of numbers
        What each queue keeps, as it says, and scaled to the capacity.
    above : tuple of int
        Of each queue, the nearest one above it, as a position in ``nodes``; -1 if there is none.
    nearest : int array (users,)
        The same of each user.
    """

    resource: int
    group: str
    servers: BoolArray
    capacity: Any
    nodes: tuple[int, ...]
    quotas: tuple[int, ...]
    asked: tuple[Any, ...]
    kept: tuple[Any, ...]
    above: tuple[int, ...]
    nearest: IntArray

    def held(self, of_users: FloatArray | ExactArray) -> list[Any]:
        """Return what users hold, (users,), as (L + 1,)."""
        sums = np.zeros(len(self.nodes) + 1, of_users.dtype)
        np.add.at(sums, self.nearest, of_users)
        return list(sums.tolist())

    def counted(self, held: Sequence[Any]) -> list[Any]:
        """Return what counts below each queue, (L + 1,): z of the queues below and its own users; last the root's z."""
        counted = list(held)
        for k in reversed(range(len(self.nodes))):
            counted[self.above[k]] += max(self.kept[k], counted[k])
        return counted

    def rooms(self, held: Sequence[Any]) -> list[Any]:
        """Return how much more the users right below each queue may hold, (L + 1,); last those below none."""
        counted = self.counted(held)
        room = [self.capacity - counted[-1]] * len(counted)
        for k, above in enumerate(self.above):
            room[k] = room[above] + max(self.kept[k] - counted[k], 0)
        return room

    def keepers(self, held: Sequence[Any], inside: int = -1) -> tuple[int, ...]:
        """Return the topmost queues that hold less than they keep: the set S of the row that leaves the least.

        With ``inside``, of the rows that count the users right below this queue.
        """
        counted = self.counted(held)
        on_the_way = set()
        while inside >= 0:
            on_the_way.add(inside)
            inside = self.above[inside]
        looked_at, found = {-1}, list[int]()
        for k, above in enumerate(self.above):
            if above in looked_at:
                if k in on_the_way or not self.kept[k] > counted[k]:
                    looked_at.add(k)
                else:
                    found.append(k)
        return tuple(found)

    def left(self, keepers: Sequence[int]) -> Any:
        """Return what these queues leave of the capacity."""
        left = self.capacity - sum(self.kept[k] for k in keepers)
        return left * 0 if left <= (_NOTHING * self.capacity if isinstance(left, float) else 0) else left


@dataclass(frozen=True, slots=True, eq=False)
class KeptParts:
    """What the queues of an instance keep, by resource and group of servers.

    Attributes
    ----------
    tree : Tree
    resources : tuple of str
    demands : array (users, resources)
    keepings : tuple of Keeping
    start : tuple of KeptRow
        Rows to begin with: if nobody held anything, and if all held as much as their tasks and limits allow.
    """

    tree: Tree
    resources: tuple[str, ...]
    demands: FloatArray | ExactArray
    keepings: tuple[Keeping, ...]
    start: tuple[KeptRow, ...]

    @classmethod
    def of(cls, instance: Instance) -> KeptParts | None:
        """Return what the queues of an instance keep, None if they keep nothing; in fractions for an instance in fractions."""
        found: dict[tuple[bytes, int], dict[int, tuple[int, Any]]] = {}
        names: dict[bytes, tuple[BoolArray, str]] = {}
        if not any(each.lending_limit for queue in instance.queues for each in queue.everywhere_and_on_groups):
            return None
        for node, queue in enumerate(instance.tree.queues, 1):
            for k, (quota, servers, group) in enumerate(groups_of(instance, queue)):
                for resource, lent in quota.lending_limit.items():
                    kept = quota.guarantee[resource] - lent
                    if kept > 0:
                        names.setdefault(servers.tobytes(), (servers, "" if servers.all() else group))
                        own = found.setdefault((servers.tobytes(), instance.resources.index(resource)), {})
                        if node not in own or own[node][1] < kept:
                            own[node] = k, kept
        keepings = [_keeping(instance, r, *names[servers], own) for (servers, r), own in found.items()]
        some = tuple(keeping for keeping in keepings if keeping.capacity > 0)
        if not some:
            return None
        start = dict.fromkeys(
            (number, keepers)
            for number, keeping in enumerate(some)
            for most in ([0] * (len(keeping.nodes) + 1), _most(instance, keeping))
            if (keepers := keeping.keepers(most))
        )
        return cls(instance.tree, instance.resources, instance.demands, some, tuple(start))

    def row(self, which: KeptRow) -> Row:
        """Return a row of the family as a limit on users."""
        keeping = self.keepings[which[0]]
        nodes = [keeping.nodes[k] for k in which[1]]
        names = " and ".join(self.tree.queues[node - 1].name for node in nodes)
        where = f" on {keeping.group}" if keeping.group else ""
        return Row(
            f"{self.resources[keeping.resource]} beside what {names} keep{'s' if len(nodes) == 1 else ''}{where}",
            ~self.tree.below[nodes].any(axis=0),
            keeping.servers,
            keeping.resource,
            keeping.left(which[1]),
            keepers=tuple((keeping.nodes[k], keeping.quotas[k], keeping.kept[k]) for k in which[1]),
        )

    def broken(self, held_on: Callable[[BoolArray], FloatArray | ExactArray], relative: float = _BROKEN) -> Iterator[KeptRow]:
        """Yield the row that is exceeded most, of each resource and group where one is.

        ``held_on`` returns the tasks of each user, (users,), on some servers, (servers,). In fractions no excess is allowed.
        """
        for number, (keepers, over, left) in enumerate(self._over(held_on)):
            if over > (relative * (left or self.keepings[number].capacity * _NOTHING) if isinstance(over, float) else 0):
                yield number, keepers

    def excess(self, held_on: Callable[[BoolArray], FloatArray | ExactArray]) -> float:
        """Return the largest excess over a row, relative to its bound; the amount itself where the bound is 0."""
        return max((float(over / left if left else over) for _, over, left in self._over(held_on)), default=0.0)

    def _over(self, held_on: Callable[[BoolArray], FloatArray | ExactArray]) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
        for keeping in self.keepings:
            held = keeping.held(held_on(keeping.servers) * self.demands[:, keeping.resource])
            keepers = keeping.keepers(held)
            yield keepers, (keeping.counted(held)[-1] - keeping.capacity if keepers else held[-1] * 0), keeping.left(keepers)

    def tightest(self, tasks: FloatArray | ExactArray, *, for_each: bool = False) -> Iterator[Row]:
        """Yield the row of each resource and group that leaves the least at these tasks, (users, servers); none where it is the capacity.

        With ``for_each``, the row that leaves the least to each user whom kept parts may stop: those that leave more to others are in it.
        """
        for number, keeping in enumerate(self.keepings):
            held = keeping.held(tasks[:, keeping.servers].sum(axis=1) * self.demands[:, keeping.resource])
            inside = sorted(set(keeping.nearest.tolist())) if for_each else [-1]
            for keepers in dict.fromkeys(keeping.keepers(held, k) for k in inside):
                if keepers:
                    yield self.row((number, keepers))


def counted_rows(instance: Instance, tasks: FloatArray | ExactArray, *, for_each: bool = False) -> list[Row]:
    """Return the limits of queues, and of what they keep the rows that leave the least at these tasks: `KeptParts.tightest`."""
    kept = KeptParts.of(instance)
    return [*limit_rows(instance), *(() if kept is None else kept.tightest(tasks, for_each=for_each))]


def without_breaking(instance: Instance, solve: Callable[[list[Row]], tuple[T, FloatArray | ExactArray | None]]) -> T:
    """Solve with the limits of queues and with rows of what they keep, until no row of these is broken; return the last answer.

    ``solve`` takes the rows, and returns its answer and the tasks of it, (users, servers); None if it found none.
    """
    kept = KeptParts.of(instance)
    rows = [*limit_rows(instance)]
    made = [] if kept is None else list(kept.start)
    while True:
        answer, tasks = solve(rows if kept is None else [*rows, *map(kept.row, made)])
        if kept is None or tasks is None:
            return answer
        table = tasks
        more = [each for each in kept.broken(lambda servers: table[:, servers].sum(axis=1)) if each not in made]  # noqa: B023
        if not more:
            return answer
        made += more


def _keeping(instance: Instance, r: int, servers: BoolArray, group: str, own: dict[int, tuple[int, Any]]) -> Keeping:
    tree = instance.tree
    nodes = [node for node in tree.downwards() if node in own]
    place = {node: k for k, node in enumerate(nodes)}
    nearest_of = np.full(tree.n_nodes, -1)
    above = dict[int, int]()
    for node in tree.downwards():
        if node:
            above[node] = int(nearest_of[tree.parent[node]])
            nearest_of[node] = place.get(node, above[node])
    asked = [own[node][1] for node in nodes]
    capacity = instance.row_capacity[servers, r].sum()
    keeping = Keeping(
        resource=r,
        group=group,
        servers=servers,
        capacity=capacity if instance.row_capacity.dtype == object else float(capacity),
        nodes=tuple(nodes),
        quotas=tuple(own[node][0] for node in nodes),
        asked=tuple(asked),
        kept=tuple(asked),
        above=tuple(above[node] for node in nodes),
        nearest=nearest_of[tree.user_node],
    )
    together = keeping.counted([0] * (len(nodes) + 1))[-1]
    if together > keeping.capacity:
        part = keeping.capacity / together
        object.__setattr__(keeping, "kept", tuple(amount * part for amount in asked))
    return keeping


def _most(instance: Instance, keeping: Keeping) -> list[Any]:
    """Return the most that users may hold by their numbers of tasks and the limits of queues, as amounts of `Keeping`."""
    tree, r = instance.tree, keeping.resource
    runs = instance.eligibility[:, keeping.servers].any(axis=1) & (instance.demands[:, r] > 0)
    most = [0] * tree.n_nodes
    for n in np.flatnonzero(runs):
        most[tree.user_node[n]] += instance.demands[n, r] * instance.tasks[n]
    held = [0] * (len(keeping.nodes) + 1)
    place = {node: k for k, node in enumerate(keeping.nodes)}
    for node in tree.upwards():
        if node == 0:
            held[-1] += most[0]
            continue
        for quota, servers, _ in groups_of(instance, tree.queues[node - 1]):
            if servers[keeping.servers].all() and instance.resources[r] in quota.limit:
                most[node] = min(most[node], quota.limit[instance.resources[r]])
        if node in place:
            held[place[node]] += most[node]
        else:
            most[tree.parent[node]] += most[node]
    return held
