"""Exact allocations of streams at one moment after another: what simulations and histories share.

A stream has the tasks of one owner with the same demand that may run on the same servers. At a moment, stream s has T[s] tasks, and the
exact allocation gives it x[s] of them.

**The slack rule.** If only task limits change that are slack before and after, T[s] > x[s] and T'[s] > x[s], then the last allocation is
still exact: moving a slack limit changes neither an optimum of a convex program nor an equilibrium.

>>> x = np.array([2.0, 3.0])
>>> still_exact(x, np.array([5.0, 3.0]), np.array([4.0, 3.0])), still_exact(x, np.array([5.0, 3.0]), np.array([5.0, 4.0]))
(True, False)

**Queues.** Where demands or speeds of some streams differ by server, the share of a queue is the sum of its users' shares at all moments:
at those, too, at which only other streams have tasks.

**Weights.** In a flat list, an owner divides its weight equally among its streams that have tasks. In a tree, such an owner is a queue.

>>> divided(np.array([1.0, 4.0]), np.array([0, 1, 1]))
array([1., 2., 2.])

A leximin starts from the last solution (`fairopt.solvers.RepeatedLevels`), or its closed form is computed anew. Each allocation has its
own certificate.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from fairopt.certificate import Certificate, allocation_excess, certify
from fairopt.errors import FairoptError
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.tolerances import CERTIFIED, FITS, ROUNDING
from fairopt.models import Notion
from fairopt.models.share_notion import ShareNotion
from fairopt.program import LimitKind, Program, Solution
from fairopt.solvers import RepeatedLevels, choose
from fairopt.solvers.backend import Backend, Deadline

__all__ = ["Repeated", "divided", "in_turn", "of_all_moments", "still_exact"]

_MOST_PAIRS = 20_000  # of streams and rows of servers, in a model of all of them


def still_exact(x: FloatArray, before: FloatArray, after: FloatArray) -> bool:
    """Say whether the allocation x for some task limits is exact for others, (streams,), of the same streams."""

    def slack(limits: FloatArray) -> BoolArray:
        return np.asarray(x < limits * (1 - FITS))

    return bool((slack(before) & slack(after) | (before == after)).all())


def divided(weights: FloatArray, owner: IntArray) -> FloatArray:
    """Return the weights of streams, of which ``owner`` has the owners; ``weights`` are those of the owners."""
    return np.asarray(weights[owner] / np.bincount(owner)[owner], float)


def of_all_moments(notion: Notion, differs_by_server: bool) -> Notion:
    """Return the notion with one meaning of the share of a queue at all moments; the second argument says whether any stream differs."""
    if differs_by_server and isinstance(notion, ShareNotion) and notion.queue_share is None and notion.default_queue_share != "sum":
        return dataclasses.replace(notion, queue_share="sum")
    return notion


def in_turn(guarantees: FloatArray, owner: IntArray, tasks: FloatArray) -> FloatArray:
    """Return the guarantees of streams: those of an owner one after the other, each at most for its own tasks.

    >>> in_turn(np.array([5.0]), np.array([0, 0, 0]), np.array([3.0, 4.0, 1.0]))
    array([3., 2., 0.])
    """
    left, given = np.array(guarantees, float), np.zeros(owner.size)
    for k, n in enumerate(owner if left.any() else ()):
        given[k] = min(left[n], tasks[k])
        left[n] -= given[k]
    return given


class Repeated:
    """Allocations to all streams by one program, whose numbers change. Streams without tasks have the task limit 0."""

    def __init__(self, instance: Instance, program: Program, levels: RepeatedLevels | _ClosedForm, at_rest: bool) -> None:
        self.instance, self.program, self.levels = instance, program, levels
        self.only_capacity = (
            at_rest and not instance.differs_by_server and bool(np.isin(program.limits.kinds, (LimitKind.CAPACITY, LimitKind.TASKS)).all())
        )
        self.part = instance.eligibility / np.maximum(instance.eligibility.sum(axis=1, keepdims=True), 1)  # where streams last ran

    @classmethod
    def of(cls, instance: Instance, notion: Notion, *, at_rest: bool = False) -> Repeated | None:
        """Return the repeated program of a notion; None if the notion or the size does not allow one.

        ``at_rest``: where all tasks fit where they last ran, they stay there, and nothing is solved.
        """
        if instance.n_users * instance.n_servers > _MOST_PAIRS or not isinstance(notion, ShareNotion):
            return None
        try:
            notion.check(instance, "rdm")
            program = notion.formulate(instance, sharing="rdm", integral=False)
            engine = choose(program, None)
            if not RepeatedLevels.suits(program) or engine.name not in ("highs", "water-filling"):
                return None
        except FairoptError:  # which solving the first moment says
            return None
        levels = RepeatedLevels(program) if engine.name == "highs" else _ClosedForm(program, engine)
        return cls(instance.replace(tasks=None), program, levels, at_rest)

    def solve(self, limits: FloatArray, weights: FloatArray) -> tuple[FloatArray, Certificate]:
        """Return tasks, (streams, rows), and their certificate, as `fairopt.solve` computes it."""
        if self.only_capacity and (limits @ self.instance.demands <= self.instance.total_capacity).all():
            tasks, certificate = self._all_tasks(limits)
            if certificate.worst <= ROUNDING:
                return tasks, certificate
        program, solution = self.levels.solve_again(limits, weights)
        tasks = np.zeros((self.instance.n_users, self.instance.n_servers))
        tasks[program.pair_users, program.pair_servers] = solution.x
        total = tasks.sum(axis=1, keepdims=True)
        np.divide(tasks, total, out=self.part, where=total > 0)
        excess = Certificate(allocation_excess(self.instance, tasks, "rdm"), 0.0, 0.0)
        return tasks, Certificate.combine([certify(program, solution), excess])

    def _all_tasks(self, limits: FloatArray) -> tuple[FloatArray, Certificate]:
        """Return all tasks of all streams, where they last ran, and their certificate: if they fit there, nobody can have more."""
        tasks = limits[:, None] * self.part
        missed = np.divide(np.abs(tasks.sum(axis=1) - limits), limits, out=np.zeros(limits.size), where=limits > 0)
        return tasks, Certificate(allocation_excess(self.instance, tasks, "rdm"), float(missed.max()), 0.0)


class _ClosedForm:
    """Leximins that need no start, by the engine that has their closed form."""

    def __init__(self, program: Program, engine: Backend) -> None:
        self._program, self._engine = program, engine

    def solve_again(self, tasks: FloatArray, weights: FloatArray) -> tuple[Program, Solution]:
        """Return the program with these tasks and weights, (users,), and its solution."""
        program = self._program.with_tasks(tasks, weights)
        return program, self._engine.solve(program, tolerance=CERTIFIED, deadline=Deadline(None))
