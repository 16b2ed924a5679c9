"""Divisible tasks over time: the exact allocation of a notion, recomputed at every event.

This is a fluid relaxation: tasks are divided and moved at no cost, which no scheduler can do. Between two events

    x = the exact allocation of the notion to the streams that have tasks, with T[n] = the tasks of the unfinished jobs of stream n.

A stream's jobs run in the order of submission. Job j of K[j] tasks runs at the rate min(K[j], the part of x[n] that earlier jobs leave), so
no task runs faster than one task. A job ends when the integral of its rate equals its work, the sum of the durations of its tasks. Where
speeds differ, the tasks of a stream take turns on its servers: each advances at the mean speed, sum over i of speed[n,i] x[n,i] / x[n].
An owner with tasks in several streams divides its weight equally among these streams. If the cluster has queues, such an owner is a queue
instead.

The allocation is kept if an event only changes task limits T[n] that are slack before and after the event: moving a slack limit changes
neither an optimum of a convex program nor an equilibrium. Otherwise the notion is solved again. A leximin starts from the last solution
(`fairopt.solvers.RepeatedLevels`); where all tasks fit where they last ran, nothing is solved. Each allocation has its own certificate.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.analysis.own_schedulers import feasible_tasks
from fairopt.analysis.properties.case import quietly
from fairopt.errors import CertificateError, NoSolution
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import number_distinct, on_rows
from fairopt.instance.queues import Queue
from fairopt.instance.tolerances import CERTIFIED, FITS
from fairopt.instance.tree import apart
from fairopt.models import Notion, Sharing
from fairopt.simulation.flow_samples import Samples
from fairopt.simulation.flow_state import SECTION, FlowKeeper
from fairopt.simulation.keeping import Keeper, State
from fairopt.simulation.repeated import Repeated, divided, in_turn, of_all_moments, still_exact
from fairopt.simulation.situation import Situation
from fairopt.simulation.stream_limits import server_keys
from fairopt.simulation.streams import Streams
from fairopt.solving import solve
from fairopt.specs import OwnScheduler

__all__ = [
    "Flow",
    "Optimum",
    "OwnAllocations",
    "instance_at",
    "run_fluid",
    "stream_weights",
    "tasks_of",
]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Samples of a fluid simulation, and the state of its jobs at the end.

    Attributes
    ----------
    times : array (K,)
    running, waiting : arrays (K, users)
        Running tasks, and waiting tasks of unfinished jobs.
    held : array (K, users, resources)
        Resources that users hold.
    rows : array (K, rows, resources of servers)
        Usage of each row of servers.
    limits : array (K, limits)
        How full each named limit is.
    started, finished : arrays (jobs,)
        Start and end of each job, in seconds; nan: not yet.
    left : array (jobs,)
        Remaining work, in seconds of one task.
    known : float
        Time up to which the simulation ran.
    solved : int
        Number of allocations computed.
    residual : float
        Worst residual of their certificates.
    """

    times: FloatArray
    running: FloatArray
    waiting: FloatArray
    held: FloatArray
    rows: FloatArray
    limits: FloatArray
    started: FloatArray
    finished: FloatArray
    left: FloatArray
    known: float
    solved: int
    residual: float


def run_fluid(
    streams: Streams,
    optimum: Optimum,
    until: float,
    step: float | None,
    done: Callable[[float, int], object],
    stopped: Callable[[], bool],
    keeper: Keeper | None = None,
) -> Flow:
    """Follow an allocation from event to event. Keep a sample every ``step`` seconds, or at each event (thinned if many)."""
    trace, situation = streams.trace, Situation(streams)
    record, keeping = Samples(streams, step), FlowKeeper(keeper or Keeper(), optimum)
    optimum.follow(situation)
    now, ending, again, moments = -np.inf, np.inf, np.inf, 0
    rate, has = np.empty(0), np.zeros(streams.owner.size)
    if keeping.found is None:
        optimum.at(situation.active, situation.counts)
    else:
        now, ending, again, moments, rate, has = keeping.resume(situation, record)
    active = situation.active
    while True:
        keeping.offer(situation, record, (now, ending, again, moments, rate, has))
        then = min(ending, situation.coming, again)
        if np.isinf(then) or then > until or stopped():
            break
        if moments and then > now:
            situation.left[active] -= rate * (then - now)
            record.interval(now, then, has, optimum)
        now = then
        situation.advance(now)
        active = situation.active
        x, _ = optimum.at(active, situation.counts, now)
        rate = _in_turn(x, streams.stream[active], trace.tasks[active])
        if optimum.pace is not None:
            rate *= optimum.pace[streams.stream[active]]
        runs = rate > 0
        running = active[runs]
        situation.started[running[np.isnan(situation.started[running])]] = now
        ending = now + float((situation.left[running] / rate[runs]).min(initial=np.inf))
        if ending == now and not np.isinf(ending):  # the next end rounds to the same floating-point time
            ending = np.nextafter(now, np.inf)
        again = optimum.again(now, bool(np.isfinite(until)) or situation.any_ends(active))
        has = tasks_of(streams, situation.here)
        moments += 1
        if moments % 20 == 0:
            done(now, int(trace.tasks[np.isfinite(situation.finished)].sum()))
    keeping.end(situation, record, (now, ending, again, moments, rate, has))
    known = until if np.isinf(then) or then > until else float(then)
    if moments:
        if known > now and np.isfinite(known):
            situation.left[active] -= rate * (known - now)
        last = np.nextafter(known, np.inf) if np.isfinite(known) else np.nextafter(now, np.inf)
        record.interval(now, last, has, optimum)
    return Flow(
        **record.arrays(),
        started=situation.started,
        finished=situation.finished,
        left=np.maximum(situation.left, 0.0),
        known=known,
        solved=optimum.solved,
        residual=optimum.residual,
    )


def tasks_of(streams: Streams, jobs: IntArray) -> FloatArray:
    """Return the number of tasks of these jobs in each stream."""
    tasks = np.bincount(streams.stream[jobs], weights=streams.trace.tasks[jobs], minlength=streams.owner.size)
    return np.asarray(tasks, float)


def _in_turn(x: FloatArray, stream: IntArray, tasks: IntArray) -> FloatArray:
    """Divide x[n] of each stream n among its jobs in order; ``stream`` must be sorted."""
    total = tasks.cumsum() - tasks
    first = stream.searchsorted(np.arange(x.size))  # the first job of each stream
    before = total - total[first[stream]]
    rate: FloatArray = np.minimum(np.maximum(x[stream] - before, 0.0), tasks)
    rate[rate <= FITS * tasks] = 0.0
    return rate


class Optimum:
    """The exact allocation to the streams that have tasks. It is recomputed unless it is known to be unchanged."""

    def __init__(self, streams: Streams, notion: Notion, sharing: Sharing | None = None) -> None:
        self.notion, self.sharing = of_all_moments(notion, streams.instance.differs_by_server), sharing
        self._begin(streams, notion.utility, apart=not notion.is_symmetric)

    def _begin(self, streams: Streams, utility: FloatArray | None, *, apart: bool = False) -> None:
        self.streams = streams
        self.solved, self.residual = 0, 0.0
        instance = streams.instance
        keys = [instance.capacities, instance.eligibility.T]
        if instance.differs_by_server:
            keys += [instance.kind_of[:, None], instance.speeds.T]
        if streams.owners is not None:
            keys += server_keys(streams.owners)
        if utility is not None and np.shape(utility)[1] > 1:
            keys.append(np.asarray(utility)[streams.owner].T)
        if streams.tree is not None:
            keys += [np.isin(instance.servers, quota.servers)[:, None] for queue in streams.tree.queues for quota in queue.quotas]
        if apart:  # a notion that may tell equal rows apart, such as by their names
            keys.append(np.arange(instance.n_servers)[:, None])
        self.group = number_distinct(keys)  # groups of equal rows of servers, computed once for all events
        self.first = np.unique(self.group, return_index=True)[1]
        self.key: tuple[bytes, bytes] | None = None
        self.limits = np.empty(0)
        self.x = np.zeros(streams.owner.size)
        self.rows = np.zeros(streams.cluster.capacities.shape)
        self.pace: FloatArray | None = None if instance.speeds_given is None else np.ones(streams.owner.size)  # the mean speed of tasks
        self._held: FloatArray | None = (
            None if instance.demands_by_kind.shape[1] == 1 else np.zeros((streams.owner.size, instance.n_resources))
        )
        self.limit_use = np.zeros(len(streams.limits))
        self.repeated: Repeated | None = None
        self.repeats_at: bytes | None = None  # the numbers of servers for which ``repeated`` was built

    def at(self, jobs: IntArray, counts: FloatArray, now: float = -np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the tasks of each stream and the usage of each row of servers when these jobs have tasks.

        ``now`` matters only for schedulers with a memory.
        """
        streams = self.streams
        limits = tasks_of(streams, jobs)
        active = limits > 0
        key = (active.tobytes(), counts.tobytes())
        if key == self.key and self._same_guarantees(limits) and self._still_exact(limits):
            self.limits = limits
            return self.x, self.rows
        self.key, self.limits = key, limits
        self._clear()
        if active.any() and (counts > 0).any():
            self._solve(np.flatnonzero(active), counts)
        return self.x, self.rows

    def follow(self, situation: Situation) -> None:
        """Be told whose jobs are looked at; who needs to know what they have left, keeps it."""

    @property
    def is_afresh(self) -> bool:
        """Does the next solve, if any, start without the basis of the last one?"""
        return self.solved % SECTION == 0 or self.repeats_at is None or self.repeated is None

    def state(self) -> State:
        """Return the state, for `restore`; complete only if the allocation `is_afresh`."""
        counts = np.empty(0) if self.key is None else np.frombuffer(self.key[1])
        return {
            **{"limits": self.limits, "x": self.x, "rows": self.rows, "limit_use": self.limit_use},
            **{"counts": counts, "solved": self.solved, "residual": self.residual},
            **({} if self.pace is None else {"pace": self.pace}),
            **({} if self._held is None else {"held": self._held}),
        }

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.limits, self.x, self.rows, self.limit_use = (state[name] for name in ("limits", "x", "rows", "limit_use"))
        self.pace, self._held = state.get("pace"), state.get("held")
        self.key = ((self.limits > 0).tobytes(), state["counts"].tobytes()) if state["counts"].size else None
        self.solved, self.residual = int(state["solved"]), float(state["residual"])

    def again(self, now: float, unfinished: bool) -> float:
        """Return when the allocation changes though nothing happens; inf: never. ``unfinished``: the simulation has an end."""
        return np.inf

    def _same_guarantees(self, limits: FloatArray) -> bool:
        """Do these limits leave the guarantees as they are? A guarantee of a user is at most its number of tasks."""
        return self.streams.tree is None or bool((self.limits == limits).all())

    def _still_exact(self, limits: FloatArray) -> bool:
        return still_exact(self.x, self.limits, limits)

    def _solve(self, active: IntArray, counts: FloatArray) -> None:
        if self.repeats_at != counts.tobytes() or self.solved % SECTION == 0:
            self.repeats_at = counts.tobytes()
            shared = self.sharing in (None, "rdm")
            self.repeated = self._repeated(counts) if shared else None
        tasks = None if self.repeated is None else self._solve_again(self.repeated, active)
        if tasks is None:
            instance = instance_at(self.streams, active, self.limits[active], counts, self.group, self.first)
            chosen = self.notion.restricted(self.streams.owner[active], self.first)
            with quietly():  # no warning of queues without users at this moment
                allocation = solve(instance, chosen, sharing=self.sharing)
            self.residual = max(self.residual, allocation.certificate.worst)
            tasks = np.zeros((self.x.size, self.first.size))
            tasks[active] = allocation.tasks
        self._take(tasks, counts)

    def _repeated(self, counts: FloatArray) -> Repeated | None:
        """Return what solves again on these servers; None if the notion or the size does not allow it."""
        streams, everybody = self.streams, np.arange(self.streams.owner.size)
        if streams.tree is not None:
            return None
        most = np.maximum(tasks_of(streams, np.arange(streams.trace.n_jobs)), 1.0)
        instance = instance_at(streams, everybody, most, counts, self.group, self.first)
        return Repeated.of(instance, self.notion.restricted(streams.owner, self.first), at_rest=True)

    def _take(self, tasks: FloatArray, counts: FloatArray) -> None:
        """Keep the tasks of each stream on each group of servers."""
        self.solved += 1
        self.x = tasks.sum(axis=1)
        usage = self._usage(tasks)
        of_groups = np.asarray(np.bincount(self.group, weights=counts), float)
        total = of_groups[self.group]
        part = np.divide(counts, total, out=np.zeros(counts.size), where=total > 0)
        self.rows = usage[self.group] * part[:, None]  # a row takes its part of the usage of its group
        if self.limit_use.size:
            self.limit_use = self.streams.limit_use.of_tasks(tasks, self.first, of_groups)

    def _usage(self, tasks: FloatArray) -> FloatArray:
        """Return what tasks of each stream take of each group of servers; keep what streams hold, and their mean speeds."""
        instance = self.streams.instance
        if self.pace is not None:
            work = (tasks * instance.speeds[:, self.first]).sum(axis=1)
            self.pace = np.divide(work, self.x, out=np.ones(self.x.size), where=self.x > 0)
        if self._held is None:
            return tasks.T @ instance.server_demands
        taken = tasks[:, :, None] * instance.demands_by_kind[:, instance.kind_of[self.first]]
        self._held = taken.sum(axis=1)
        return np.asarray(taken.sum(axis=0)[:, : instance.n_server_resources])

    @property
    def held(self) -> FloatArray:
        """What the tasks of each stream take, (streams, resources)."""
        return self.x[:, None] * self.streams.instance.demands if self._held is None else self._held

    def _clear(self) -> None:
        """Nothing runs."""
        if self._held is not None:
            self._held = np.zeros(self._held.shape)
        self.x, self.rows, self.limit_use = np.zeros(self.x.size), np.zeros(self.rows.shape), np.zeros(self.limit_use.size)

    def _solve_again(self, repeated: Repeated, active: IntArray) -> FloatArray | None:
        """Solve from the last solution; return tasks, (streams, groups), or None if the solution or its certificate fails."""
        weights = np.array(self.streams.weights[self.streams.owner])
        weights[weights <= 0] = 1.0  # of streams without tasks, as of owners whose usage leaves them no weight
        weights[active] = stream_weights(self.streams, active)
        try:
            tasks, certificate = repeated.solve(self.limits, weights)
            certificate.require(CERTIFIED, self.notion.name, "highs")
        except (NoSolution, CertificateError) as error:
            log.info("the allocation is computed afresh: %s", error)
            self.repeats_at = None
            return None
        self.residual = max(self.residual, certificate.worst)
        return tasks


class OwnAllocations(Optimum):
    """The allocations that a scheduler of one's own makes, a function of an instance; at every event of which it may know."""

    def __init__(self, streams: Streams, scheduler: OwnScheduler) -> None:
        self.scheduler = scheduler
        self._begin(streams, None)

    def _still_exact(self, limits: FloatArray) -> bool:
        return bool((self.limits == limits).all())  # what the scheduler makes of another number of tasks, only it knows

    def _solve(self, active: IntArray, counts: FloatArray) -> None:
        instance = instance_at(self.streams, active, self.limits[active], counts, self.group, self.first)
        tasks = np.zeros((self.x.size, self.first.size))
        tasks[active] = feasible_tasks(self.scheduler, instance)
        self._take(tasks, counts)


def stream_weights(streams: Streams, active: IntArray) -> FloatArray:
    """Return the weights of these streams: each owner divides its weight equally among its active streams.

    A weight of a resource, (users, resources), is divided among those that need it.
    """
    owner = streams.owner[active]
    if streams.weights.ndim == 1:
        return divided(streams.weights, owner)
    needing = np.zeros(streams.weights.shape)
    np.add.at(needing, owner, streams.instance.demands_by_kind[active].max(axis=1) > 0)
    return np.asarray(streams.weights[owner] / np.maximum(needing[owner], 1.0), float)


def instance_at(streams: Streams, active: IntArray, tasks: FloatArray, counts: FloatArray, group: IntArray, first: IntArray) -> Instance:
    """Return the instance of these streams at one moment; each owner divides its weight equally among its active streams.

    In a tree, an owner with several active streams is a queue, in which its streams have equal weights.
    """
    whole = streams.instance
    if streams.tree is None:
        more: dict[str, Any] = {"weights": stream_weights(streams, active)}
    else:
        more = _tree(streams, streams.tree, active, tasks, group, first)
    return Instance(
        whole.capacities[first],
        whole.demands_on(active, first),
        speeds=whole.speeds_on(active, first),
        eligibility=whole.eligibility[np.ix_(active, first)],
        counts=np.bincount(group, weights=counts),
        tasks=tasks,
        shared=whole.shared,
        limits=streams.limits_at(active, first, group),
        users=[whole.users[n] for n in active],
        servers=[whole.servers[i] for i in first],
        units=whole.units,
        resources=whole.resources,
        **more,
    )


def _tree(streams: Streams, leaves: Instance, active: IntArray, tasks: FloatArray, group: IntArray, first: IntArray) -> dict[str, Any]:
    """Return the weights, queues and guarantees of these streams, as arguments of an instance.

    The guarantee of an owner is a number of tasks. Its streams have it one after the other, each at most for its own tasks.
    """
    owner = streams.owner[active]
    several = apart(np.bincount(owner, minlength=leaves.n_users) > 1, leaves.queue_of, leaves.queues)
    queues = list(on_rows(leaves, first[group].tolist()))
    names = {queue.name for queue in queues}
    queue_of: list[str | None] = list(leaves.queue_of)
    for n in np.flatnonzero(several):
        name = leaves.users[n]
        while name in names:
            name += " (user)"
        names.add(name)
        queues.append(Queue(name, leaves.queue_of[n], float(leaves.weights[n])))
        queue_of[n] = name
    return {
        "weights": np.where(several[owner], 1.0, leaves.weights[owner]),
        "queues": queues,
        "queue_of": [queue_of[n] for n in owner],
        "guarantees": in_turn(leaves.guarantees, owner, tasks),
    }
