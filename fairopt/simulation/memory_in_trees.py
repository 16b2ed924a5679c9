r"""The exact allocation with a memory in a tree of queues: at each node, children with the smallest cumulative share by weight come first.

    C[n]                           cumulative share of stream n, which fades with the half-life h       (`fairopt.simulation.memory`)
    O[n] = C[n] 2^(-P / h) / a     the offset that it gives in a period P

A stream starts at the share O[n], and a queue at the share of all streams below it at these offsets, present or not. Then the tree is
filled under a *clamp* (`fairopt.program.tree_filling`): of the children of a node only those rise whose share / weight is the smallest, and
the others wait until these have caught up. So each node has the leximin of its children's shares, past and present together. Guarantees
and limits hold at each moment, whatever the past was: guarantees are met first, and what a queue gets by them counts in its share.

The past is an additional first part of the filling. It raises each stream to O[n] on a server of its own (`fairopt.program.past`), so that
certificates prove the answer as they prove any tree. An owner with tasks of several shapes is a queue of its streams, with equal weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.analysis.properties.case import quietly
from fairopt.certificate import Certificate, allocation_excess
from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import CERTIFIED
from fairopt.models.share_notion import ShareNotion
from fairopt.program import LimitKind, Limits, Program
from fairopt.program.past import WithPast
from fairopt.program.tree_filling import Part, TreeFilling
from fairopt.simulation.baselines.usage import FadingUsage, fading
from fairopt.simulation.fluid import Optimum, instance_at, tasks_of
from fairopt.simulation.keeping import State, part_of, prefixed
from fairopt.simulation.memory import Memory, worth_everywhere
from fairopt.simulation.streams import Streams
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find

__all__ = ["RememberedTree", "with_past"]


def with_past(remembered: WithPast, bounds: FloatArray, past: FloatArray) -> Program:
    """Return the program of a tree whose users begin at the shares of their past.

    Parameters
    ----------
    remembered : WithPast
        Of a program whose goal is a tree to fill.
    bounds : array (limits,)
        Bounds of the limits at this moment.
    past : array (users,)
        0 for users without a pair.
    """
    program = remembered.at(bounds, None, past)
    goal = program.goal_as(TreeFilling)
    parts = [part if part.extra is None else replace(part, extra=_widened(remembered, part.extra)) for part in goal.parts]
    users = np.flatnonzero(past > 0)
    if users.size:
        place = np.full(past.size, -1)
        place[users] = np.arange(users.size)
        pairs = np.flatnonzero(place[program.pair_users] >= 0)
        rows = place[program.pair_users[pairs]]
        values = np.append(program.utilities[pairs], np.ones(remembered.now.size))
        places = (np.append(rows, np.full(remembered.now.size, users.size)), np.append(pairs, remembered.now))
        matrix = sp.csr_array((values, places), shape=(users.size + 1, program.n_pairs))
        keys = np.column_stack([np.arange(users.size + 1), np.full(users.size + 1, -1)])
        extra = Limits.of(LimitKind.QUEUE, matrix, np.append(past[users], 0.0), keys)  # the last: nothing of now, as guarantees look at it
        names = (*(f"the past of {program.users[n]}" for n in users), "now")
        parts.insert(0, Part("the past", past > 0, np.zeros(goal.tree.n_nodes), past, extra, names))
    return replace(program, goal=replace(goal, clamp=True, parts=tuple(parts)))


def _widened(remembered: WithPast, limits: Limits) -> Limits:
    """Return limits of the pairs of now as limits of all pairs."""
    old = limits.matrix.tocoo()
    matrix = sp.csr_array((old.data, (old.row, remembered.now[old.col])), shape=(len(limits), remembered.program.n_pairs))
    return replace(limits, matrix=matrix)


class RememberedTree(Optimum):
    """The allocation of a tree of queues that remembers, recomputed at every event and after each period."""

    def __init__(self, streams: Streams, memory: Memory) -> None:
        if memory.notion.tree == "nested":
            raise Unsupported('tree="nested" divides by the shares of queues, which are not those of one moment here; leave tree out')
        super().__init__(streams, memory.notion)
        self.memory, self.period = memory, memory.period_of(streams)
        self.usage = FadingUsage(streams.owner.size, memory.half_life)
        several = np.bincount(streams.owner, minlength=len(streams.users))
        self.usage.begin((memory.past_of(streams) / np.maximum(several, 1))[streams.owner])  # an owner's streams have had the same
        self.kept, self.gain = fading(self.period, memory.half_life)

    def at(self, jobs: IntArray, counts: FloatArray, now: float = -np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the tasks of each stream and the usage of each row of servers from now on."""
        past = self.usage.at(now)
        self.limits = tasks_of(self.streams, jobs)
        self._clear()
        self.usage.rate = np.zeros(self.x.size)
        if self.limits.any() and (counts > 0).any():
            self._remember(counts, past * self.kept / self.gain)
        return self.x, self.rows

    def again(self, now: float, unfinished: bool) -> float:
        """Return when the allocation is to be computed again though nothing happens; inf: not before the next event."""
        return now + self.period if unfinished and self.x.any() else np.inf

    @property
    def is_afresh(self) -> bool:
        """True: every solve starts without the basis of the last one."""
        return True

    def state(self) -> State:
        """Return the state, for `restore`."""
        return super().state() | prefixed("usage", self.usage.state())

    def restore(self, state: State) -> None:
        """Go back to a state."""
        super().restore(state)
        self.usage.restore(part_of(state, "usage"))

    def _remember(self, counts: FloatArray, past: FloatArray) -> None:
        streams = self.streams
        everybody = np.arange(streams.owner.size)
        with quietly():  # no warning of queues without users at this moment
            instance = instance_at(streams, everybody, self.limits, counts, self.group, self.first)
            instance = instance.replace(tasks=np.maximum(self.limits, 1.0))  # streams without tasks have a past
            chosen = self.notion.restricted(streams.owner, self.first)
            chosen.check(instance, "rdm")
            assert isinstance(chosen, ShareNotion)
            chosen.refuse_last(instance, "a memory compares what all users had; give every resource a weight > 0 in resource_weights")
            now = chosen.formulate(instance, sharing="rdm", integral=False)
        worth = worth_everywhere(chosen, instance)
        bounds, of_tasks = now.limits.bounds.copy(), now.limits.kinds == LimitKind.TASKS
        bounds[of_tasks] = self.limits[now.limits.keys[of_tasks, 0]]
        able = np.zeros(past.size, bool)
        able[now.members] = True
        past = np.where(able, past, 0.0)
        program = with_past(WithPast.of(now), bounds, past)
        found = find(program, candidates(program, None), CERTIFIED, Deadline(None))
        tasks = np.zeros((streams.owner.size, self.first.size + 1))
        tasks[program.pair_users, program.pair_servers] = found.solution.x
        excess = Certificate(allocation_excess(instance.replace(tasks=None), tasks[:, :-1], "rdm"), 0.0, 0.0)
        certificate = Certificate.combine([found.certificate, excess])
        certificate.require(CERTIFIED, self.notion.name, "highs")
        self.residual = max(self.residual, certificate.worst)
        self._take(tasks[:, :-1], counts)
        self.usage.rate = (self.x if self.pace is None else self.x * self.pace) * worth
