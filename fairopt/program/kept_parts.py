r"""What queues keep of their guarantees: lending limits add up.

A queue v with a lending limit *keeps* kept[v] = guarantee - lending limit of a resource on a group of servers: nobody else gets this part,
even while the queue does not use it. With

    z[v] = max(kept[v],  use of v's own users + sum of z[c] over the queues c below v)          kept[v] = 0 without a lending limit

the root's z is at most the capacity of the group. Without the columns z, that is a family of rows with coefficients >= 0. For each set S of
queues that keep something, none of them below another,

    sum of kept[v] over S  +  use of all users below none of S   <=   capacity:

a queue that uses less than it keeps counts with what it keeps. The family has up to 2^L rows for L such queues. A program begins with few
of them. If an answer breaks one, the program is solved again with it (`within_kept`); an answer that breaks none of the family is the
answer for all of it, since a program with fewer rows allows more. The row that a point breaks most is found by computing z from the
deepest queues up (`fairopt.instance.keeping`).

>>> from fairopt.instance.queues import Queue
>>> keep = {"guarantee": {"cpu": 20}, "lending_limit": {"cpu": 0}}
>>> queues = [Queue("A", **keep), Queue("B", **keep), Queue("C")]
>>> pool = Instance([[100]], [[1], [1], [1]], resources=["cpu"], queues=queues, queue_of=["A", "B", "C"])
>>> kept = KeptParts.of(pool)
>>> [(row.name, row.bound) for row in kept.tightest(np.array([[5], [25], [75]]))]
[('cpu beside what A keeps', 80.0)]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fairopt.instance import BoolArray, FloatArray, Instance
from fairopt.instance.by_server import Kinds
from fairopt.instance.fractions import ExactArray
from fairopt.instance.keeping import Keeping, keepings_of, most_of
from fairopt.instance.tolerances import SAME
from fairopt.instance.tree import Tree
from fairopt.program.queue_limits import Row, limit_rows

__all__ = ["KeptParts", "KeptRow", "counted_rows", "within_kept", "without_breaking"]

_BROKEN = 1e-11  # relative to the bound: a row that is exceeded by less is not broken

log = logging.getLogger(__name__)

KeptRow: TypeAlias = tuple[int, tuple[int, ...]]
"""A row of the family: which `Keeping`, and which of its queues keep."""

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class KeptParts:
    """What the queues of an instance keep, by resource and group of servers.

    Attributes
    ----------
    tree : Tree
    resources : tuple of str
    kinds : Kinds
    keepings : tuple of Keeping
    start : tuple of KeptRow
        Rows to begin with: if nobody held anything, and if all held as much as their tasks and limits allow.
    """

    tree: Tree
    resources: tuple[str, ...]
    kinds: Kinds
    keepings: tuple[Keeping, ...]
    start: tuple[KeptRow, ...]

    @classmethod
    def of(cls, instance: Instance) -> KeptParts | None:
        """Return what the queues of an instance keep, None if they keep nothing; in fractions for an instance in fractions."""
        some = keepings_of(instance)
        if not some:
            return None
        start = dict.fromkeys(
            (number, keepers)
            for number, keeping in enumerate(some)
            for most in ([0] * (len(keeping.nodes) + 1), most_of(instance, keeping))
            if (keepers := keeping.keepers(most))
        )
        return cls(instance.tree, instance.resources, instance.kinds, some, tuple(start))

    def row(self, which: KeptRow) -> Row:
        """Return a row of the family as a limit on users."""
        keeping = self.keepings[which[0]]
        nodes = [keeping.nodes[k] for k in which[1]]
        names = " and ".join(self.tree.queues[node - 1].name for node in nodes)
        where = f" on {keeping.group}" if keeping.group else ""
        return Row(
            f"{self.resources[keeping.resource]} beside what {names} keep{'s' if len(nodes) == 1 else ''}{where}",
            np.logical_not(self.tree.below[nodes].any(axis=0)),
            keeping.servers,
            keeping.resource,
            keeping.left(which[1]),
            keepers=tuple((keeping.nodes[k], keeping.quotas[k], keeping.kept[k]) for k in which[1]),
        )

    def broken(self, tasks_on: Callable[[BoolArray], FloatArray | ExactArray]) -> Iterator[KeptRow]:
        """Yield the row that is exceeded most, of each resource and group where one is.

        ``tasks_on`` returns the tasks of each user, (users,), on some servers, (servers,). In fractions no excess is allowed.
        """
        for number, (keepers, over, left) in enumerate(self._over(tasks_on)):
            if over > (_BROKEN * (left or self.keepings[number].capacity * SAME) if isinstance(over, float) else 0):
                yield number, keepers

    def excess(self, tasks_on: Callable[[BoolArray], FloatArray | ExactArray]) -> float:
        """Return the largest excess over a row, relative to its bound; the amount itself where the bound is 0."""
        return max((float(over / left if left else over) for _, over, left in self._over(tasks_on)), default=0.0)

    def _over(self, tasks_on: Callable[[BoolArray], FloatArray | ExactArray]) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
        for keeping in self.keepings:
            held = keeping.held(self.kinds.of_sums(tasks_on, keeping.servers, keeping.resource))
            keepers = keeping.keepers(held)
            yield keepers, (keeping.counted(held)[-1] - keeping.capacity if keepers else held[-1] * 0), keeping.left(keepers)

    def tightest(self, tasks: FloatArray | ExactArray, *, for_each: bool = False) -> Iterator[Row]:
        """Yield the row of each resource and group that leaves the least at these tasks, (users, servers); none where it is the capacity.

        With ``for_each``, the row that leaves the least to each user whom kept parts may stop: those that leave more to others are in it.
        """
        for number, keeping in enumerate(self.keepings):
            held = keeping.held(self.kinds.held(tasks, keeping.servers, keeping.resource))
            inside = sorted(set(keeping.nearest.tolist())) if for_each else [-1]
            for keepers in dict.fromkeys(keeping.keepers(held, k) for k in inside):
                if keepers:
                    yield self.row((number, keepers))


def counted_rows(instance: Instance, tasks: FloatArray | ExactArray, *, for_each: bool = False) -> list[Row]:
    """Return the limits of queues, and of what they keep the rows that leave the least at these tasks: `KeptParts.tightest`."""
    kept = KeptParts.of(instance)
    return [*limit_rows(instance), *(() if kept is None else kept.tightest(tasks, for_each=for_each))]


def within_kept(program: P, solve: Callable[[P], tuple[T, P | None]]) -> list[T]:
    """Solve with more and more rows of what queues keep, until the answer exceeds none; return all answers, that one last.

    ``solve`` takes a program, and returns its answer and the program with the rows that this exceeds, too; None if it exceeds none.
    """
    answers: list[T] = []
    longer: P | None = program
    while longer is not None:
        if answers:
            log.info("the answer exceeds what queues keep: solving again with more rows")
        answer, longer = solve(longer)
        answers.append(answer)
    return answers


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Limits of queues, and some rows of what they keep, as rows on users."""

    kept: KeptParts | None
    rows: tuple[Row, ...]
    made: tuple[KeptRow, ...]

    def with_broken(self, tasks: FloatArray | ExactArray) -> _Rows | None:
        """Return these rows and those that tasks, (users, servers), exceed; None if they exceed none."""
        if self.kept is None:
            return None
        kept = self.kept
        more = [each for each in kept.broken(lambda servers: tasks[:, servers].sum(axis=1)) if each not in self.made]
        return _Rows(kept, (*self.rows, *map(kept.row, more)), (*self.made, *more)) if more else None


def without_breaking(instance: Instance, solve: Callable[[list[Row]], tuple[T, FloatArray | ExactArray | None]]) -> T:
    """Solve with the limits of queues and with rows of what they keep, until no row of these is broken; return the last answer.

    ``solve`` takes the rows, and returns its answer and the tasks of it, (users, servers); None if it found none.
    """
    kept = KeptParts.of(instance)
    start = () if kept is None else kept.start

    def solved(rows: _Rows) -> tuple[T, _Rows | None]:
        answer, tasks = solve([*rows.rows])
        return answer, None if tasks is None else rows.with_broken(tasks)

    return within_kept(_Rows(kept, (*limit_rows(instance), *(() if kept is None else map(kept.row, start))), start), solved)[-1]
