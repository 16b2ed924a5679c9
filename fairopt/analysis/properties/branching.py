"""Whole tasks in fractions by branch and bound: does a better integer point exist? Every bound is proved.

The program of whole tasks has a column for each user and single server. Its relaxation is solved in rationals, and its optimum proved by
prices (`fairopt.analysis.in_fractions`). A node is closed if its optimum does not beat the given value, or if it is infeasible.
Otherwise a fractional column is at most its floor in one child node, and at least its ceiling in the other.

*Pareto optimality.* The largest sum of V'[n] with V' >= V must beat the sum of V[n].

*Max-min.* Let u be the values of the shares of the allocation, and v one of them. Sorted shares y are larger in lexicographic order, with
the first difference at a share of v, only if for every u <= v at least as many users have y >= u as in the allocation, and more users have
y > v; if that holds for some v, they are larger. With whole tasks, y >= u means a least number of tasks. So the program of v has a 0/1
column for each user and number, and the largest number of users above v must beat the present one.

>>> better_point([1, 1], [(0, 0, 2), (0, 1, 2)], [3], 1, Deadline(None)) is None  # one of two halves: 3/2 in fractions, 1 in whole numbers
True
>>> better_point([1, 1], [(0, 0, 2), (0, 1, 2)], [3], 0, Deadline(None))
[1, 0]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.analysis.in_fractions import largest
from fairopt.analysis.properties.case import Case
from fairopt.errors import NoSolution
from fairopt.instance.fractions import ExactArray
from fairopt.program.kept_parts import without_breaking
from fairopt.program.queue_limits import Row
from fairopt.solvers.backend import Deadline

__all__ = ["better_for_all", "better_point", "better_sorted", "single_servers_known"]

_NODES = 300  # nodes of the search tree of one program
_COLUMNS = 400  # of a program; larger ones are not tried
_MOST_WORK = 2e7  # steps for all programs of one property, unless a time limit is given
Entry = tuple[int, int, Any]


def better_point(
    cost: Sequence[Any], entries: Sequence[Entry], right: Sequence[Any], beat: Any, deadline: Deadline, step: int = 0
) -> list[int] | None:
    """Return integers z >= 0 with A z <= right and cost z > beat, or None. With ``step`` > 0, cost z is a multiple of it.

    Raises
    ------
    NoSolution
        It takes too many nodes, too much work, or too long.
    """
    open_nodes: list[tuple[tuple[int, int, int], ...]] = [()]  # a node is a list of (column, sign, bound): sign * z <= bound
    nodes = 0
    while open_nodes:
        node = open_nodes.pop()
        nodes += 1
        if nodes > _NODES or deadline.left == 0.0:
            raise NoSolution(f"branch and bound in fractions takes more than {nodes - 1} nodes")
        own = [(len(right) + k, column, sign) for k, (column, sign, _) in enumerate(node)]
        point = largest(cost, [*entries, *own], [*right, *(bound for *_, bound in node)], deadline)
        if point is None:
            continue
        value = sum((c * z for c, z in zip(cost, point.tolist(), strict=True)), Fraction(0))
        if value <= beat or (step and value < beat + step):
            continue
        fractional = [j for j, z in enumerate(point.tolist()) if z.denominator > 1]
        if not fractional:
            return [int(z) for z in point]
        j = max(fractional, key=lambda j: min(point[j] % 1, 1 - point[j] % 1))
        down = math.floor(point[j])
        open_nodes += [(*node, (j, 1, down)), (*node, (j, -1, -down - 1))]
    return None


def single_servers_known(case: Case) -> bool:
    """Say whether the tasks are known to fit single servers: no row has several servers, or a schedule placed the tasks."""
    return case.feasible and (case.allocation.question is not None or bool((case.instance.counts <= 1).all()))


def better_for_all(case: Case) -> ExactArray | None:
    """Return whole tasks in which nobody has less and somebody has more, (users, servers); None if it is proved that there are none.

    Raises
    ------
    NoSolution
        The search did not decide it.
    """
    return without_breaking(case.instance, lambda rows: _twice(_better_for_all(case, _Program(case, rows))))


def _twice(tasks: ExactArray | None) -> tuple[ExactArray | None, ExactArray | None]:
    return tasks, tasks


def _better_for_all(case: Case, program: _Program) -> ExactArray | None:
    value = [1 if case.worth is None else case.worth[n, i] for n, i in program.columns]
    entries, right = list(program.entries), list(program.right)
    for n in case.members:
        entries += [(len(right), j, -value[j]) for j, (m, _) in enumerate(program.columns) if m == n]
        right.append(-case.value[n])
    beat = sum(case.value[case.members].tolist(), Fraction(0))
    point = better_point(value, entries, right, beat, program.deadline, step=int(case.worth is None))
    return None if point is None else program.tasks(point)


def better_sorted(case: Case, per_task: ExactArray) -> ExactArray | None:
    """Return whole tasks with larger sorted shares, (users, servers); ``per_task``, (users,), is the share of a task. None: there are none.

    Raises
    ------
    NoSolution
        The search did not decide it.
    """
    return without_breaking(case.instance, lambda rows: _twice(_better_sorted(case, per_task, _Program(case, rows))))


def _better_sorted(case: Case, per_task: ExactArray, program: _Program) -> ExactArray | None:
    shares = {int(n): per_task[n] * case.allocation.tasks_per_user[n] for n in case.members}
    values = sorted(set(shares.values()))
    for k, v in enumerate(values):
        below = values[: k + 1]
        steps = {n: [*(math.ceil(u / per_task[n]) for u in below), math.floor(v / per_task[n]) + 1] for n in shares}
        counts = [sum(share >= u for share in shares.values()) for u in below]
        point = better_point(*_with_steps(program, steps, counts), sum(share > v for share in shares.values()), program.deadline, step=1)
        if point is not None:
            return program.tasks(point)
    return None


def _with_steps(program: _Program, steps: dict[int, list[int]], counts: list[int]) -> tuple[list[int], list[Entry], list[Any]]:
    """Return the program with a column z for each user and each of its ``steps`` of tasks: z is 1 only if the user has that many.

    At least ``counts[k]`` users reach step k; the goal is the number of users that reach the last step.
    """
    entries, right = list(program.entries), list(program.right)
    first = len(program.columns)
    many = len(counts) + 1
    place = {n: first + many * k for k, n in enumerate(steps)}
    for n, numbers in steps.items():
        own = len(right)
        entries += [(own, j, -1) for j, (m, _) in enumerate(program.columns) if m == n]
        entries += [(own, place[n] + k, more) for k, more in enumerate(np.diff(numbers, prepend=0).tolist()) if more]
        right.append(0)
        for k in range(many):  # 1 >= z[0] >= z[1] >= ...
            entries += [(len(right), place[n] + k, 1), *([(len(right), place[n] + k - 1, -1)] if k else [])]
            right.append(0 if k else 1)
    for k, count in enumerate(counts):
        entries += [(len(right), start + k, -1) for start in place.values()]
        right.append(-count)
    last = {start + many - 1 for start in place.values()}
    return [int(j in last) for j in range(first + many * len(place))], entries, right


class _Program:
    """The limits of whole tasks on single servers, and these of queues, in fractions."""

    def __init__(self, case: Case, of_queues: Sequence[Row]) -> None:
        self.case = case
        self.deadline = Deadline(None).within(_MOST_WORK) if case.time_limit is None else Deadline(case.time_limit)
        instance = case.instance
        copies = [(int(i), copy) for i in np.flatnonzero(instance.counts > 0) for copy in range(int(instance.counts[i]))]
        pairs = [(int(n), i, copy) for n in case.members for i, copy in copies if instance.eligibility[n, i]]
        if len(pairs) > _COLUMNS:
            raise NoSolution(f"the program has {len(pairs)} columns, too many for branch and bound in fractions")
        self.columns = [(n, i) for n, i, _ in pairs]
        self.entries: list[Entry] = []
        self.right: list[Any] = []
        of_servers = [*self._of_servers(copies, pairs), *self._of_cluster()]
        for line, bound in [*of_servers, *self._of_users(), *self._of_queues(of_queues)]:
            self.entries += [(len(self.right), j, value) for j, value in line.items() if value]
            self.right.append(bound)

    def tasks(self, point: Sequence[int]) -> ExactArray:
        """Return a point as tasks, (users, servers), in which users who do not take part keep their tasks."""
        table = np.full(self.case.allocation.tasks.shape, Fraction(0), dtype=object)
        for (n, i), tasks in zip(self.columns, point[: len(self.columns)], strict=True):
            table[n, i] += tasks
        table[~self.case.part] = self.case.allocation.tasks[~self.case.part]
        return table

    def _of_servers(self, copies: list[tuple[int, int]], pairs: list[tuple[int, int, int]]) -> Iterator[tuple[dict[int, Any], Any]]:
        instance = self.case.instance
        here: dict[tuple[int, int], list[int]] = {each: [] for each in copies}
        for j, (_, i, copy) in enumerate(pairs):
            here[i, copy].append(j)
        speed = instance.rates_of_one
        for (i, _), columns in here.items():
            if self.case.sharing == "tdm":
                yield {j: 1 / speed[pairs[j][0], i] for j in columns}, 1
                continue
            for r in range(instance.n_server_resources):
                yield {j: instance.demands_by_kind[pairs[j][0], instance.kind_of[i], r] for j in columns}, instance.capacities[i, r]

    def _of_cluster(self) -> Iterator[tuple[dict[int, Any], Any]]:
        instance = self.case.instance
        for r, amount in enumerate(instance.shared_capacity, instance.n_server_resources):
            yield {j: instance.demands_by_kind[n, instance.kind_of[i], r] for j, (n, i) in enumerate(self.columns)}, amount

    def _of_users(self) -> Iterator[tuple[dict[int, Any], Any]]:
        instance, speed = self.case.instance, self.case.instance.rates_of_one
        for n in self.case.members:
            own = [j for j, (m, _) in enumerate(self.columns) if m == n]
            if instance.tasks[n] < np.inf:
                yield dict.fromkeys(own, 1), math.floor(instance.tasks[n])
            if instance.limited[n]:
                yield {j: 1 / speed[n, self.columns[j][1]] for j in own}, instance.parallelism[n]

    def _of_queues(self, of_queues: Sequence[Row]) -> Iterator[tuple[dict[int, Any], Any]]:
        for row in of_queues:
            each = row.per_task(self.case.instance.kinds)
            here = [(j, n, i) for j, (n, i) in enumerate(self.columns) if row.users[n] and row.servers[i]]
            yield {j: each[n] if each.ndim == 1 else each[n, i] for j, n, i in here}, row.bound
