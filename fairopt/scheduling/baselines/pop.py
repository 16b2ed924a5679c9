r"""POP: deal the users at random into parts, give each part the same part of everything, solve each part exactly (Narayanan et al. 2021).

With K parts and the set S[k] of users in part k, part k has the program of the notion over the columns of S[k], within

    A x <= b / K        of servers, resources of the cluster and named limits of several users
    A x <= b            of what bounds a single user

*Client splitting.* A user with a large load is hard to place in a part. While there are fewer than (1 + split) N clients, the client of the
largest load is cut into two, each with half of its load, its tasks and its weight. The clients are dealt; a user has what its clients have.
The load of a user is the share that it could have alone, at most that of all its tasks. Users without a task limit on one cluster all have
a load of the same order.

The paper proves no bound for a single instance: that of users and servers which are many and alike is small in expectation.

Two flows of 10 on a link of 10 each, dealt into two parts: each part has half of every link.

>>> import fairopt as fo
>>> network = fo.Instance.from_paths({"a-b": 10, "c-d": 10}, {"f": [["a-b"]], "g": [["c-d"]]})
>>> fo.solve(network, "max-min").tasks_per_user, fo.schedule(network, "max-min:pop:parts=2").tasks_per_user
(array([10., 10.]), array([5., 5.]))
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.models import Notion, ShareNotion
from fairopt.program import Goal, Separate
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.parts import goal_of, rows_of_one_user, solved_part

__all__ = ["POP"]

_MOST_PARTS = 100_000
_MOST_CLIENTS = 100.0  # per user


@dataclass(frozen=True)
class POP(Baseline):
    """POP, partitioned optimisation problems.

    Parameters
    ----------
    parts : int
        K, the number of parts.
    seed : int
        Of the deal.
    split : float
        Client splitting: there are (1 + split) times as many clients as users; 0: none is split.

    Raises
    ------
    Unsupported
        An option is none of these.
    """

    parts: int = 2
    seed: int = 0
    split: float = 0.0

    name: ClassVar[str] = "pop"
    title: ClassVar[str] = "POP: users dealt at random into parts, each of which is solved exactly on its part of every capacity"
    source: ClassVar[str] = "Narayanan et al. (2021)"
    example: ClassVar[str] = "drfh:pop:parts=4"
    guarantee: ClassVar[str] = "none for a single instance; each part is exact, and no limit is exceeded"

    def __post_init__(self) -> None:
        self.require_whole_number("parts", 1, _MOST_PARTS)
        self.require_whole_number("seed", 0, 2**63 - 1)
        self.require_number("split", 0, _MOST_CLIENTS)

    def check(self, notion: Notion) -> None:
        """Refuse to split users of a notion that does not say what two halves of a user have."""
        halves = isinstance(notion, ShareNotion) and notion.merge_alpha is not None and not isinstance(notion.goal(np.ones(1)), Separate)
        if self.split and not halves:
            raise Unsupported(f'"{notion.name}" does not say what two halves of a user have; leave split out')

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return what the parts give together."""
        program, goal = case.program, goal_of(case, self.name)
        part_of = self.dealt(case)
        own, users = rows_of_one_user(case), program.pair_users
        owner = users[program.limits.matrix.indices[program.limits.matrix.indptr[:-1]]]  # of a row of one user
        x = np.zeros(program.n_pairs)
        for k in range(self.parts):
            held = part_of[:, k]
            bounds = np.where(own, program.limits.bounds * held[owner], program.limits.bounds / self.parts)
            x += solved_part(case, held[users] > 0, bounds, self._weighted(case, goal, held), self.name)
        return case.tasks(x), {"parts": self.parts, "clients": int(self._clients(case)[0].size)}

    def dealt(self, case: Case) -> FloatArray:
        """Return which part of each user is in which part of the cluster, (users, parts); of a user with a column their sum is 1."""
        user, size = self._clients(case)
        part = np.random.default_rng(self.seed).permutation(user.size) % self.parts
        found = np.zeros((case.instance.n_users, self.parts))
        np.add.at(found, (user, part), size)
        return found

    def _clients(self, case: Case) -> tuple[IntArray, FloatArray]:
        """Return the user of each client, and the part of the user that it is."""
        members = case.program.members
        heap = [(-load, int(n), 1.0) for n, load in zip(members, _loads(case)[members], strict=True)]
        heapq.heapify(heap)
        while heap and len(heap) < (1 + self.split) * members.size:
            load, n, size = heap[0]
            heapq.heapreplace(heap, (load / 2, n, size / 2))
            heapq.heappush(heap, (load / 2, n, size / 2))
        clients = sorted((n, size) for _, n, size in heap)
        return np.array([n for n, _ in clients], np.int64), np.array([size for _, size in clients])

    def _weighted(self, case: Case, goal: Goal, held: FloatArray) -> Goal:
        """Return the goal with the weights of the clients, so that a user in several parts counts as often as before."""
        if ((held == 0) | (held == 1)).all():
            return goal
        weights: Any = goal.weights * np.where(held > 0, held, 1.0) ** case.notion.merge_alpha
        return replace(goal, weights=weights)


def _loads(case: Case) -> FloatArray:
    """Return the share that each user could have alone, (users,), at most that of all its tasks."""
    alone = case.program.per_user(case.program.utilities * case.program.largest())
    return np.minimum(alone, case.level_of_all_tasks * case.weights)
