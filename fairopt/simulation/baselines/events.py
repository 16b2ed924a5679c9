"""The loop over events of a scheduler of jobs.

    at each moment   tasks end; users leave and join; servers are removed and added; jobs are submitted
                     the scheduler starts waiting jobs (`fairopt.simulation.baselines.passes`)

No task is stopped. Tasks start on the first servers where they fit. The tasks of a gang start at one instant, on one or several servers, or
not at all. Each task of a job that is no gang is a job of its own, in the order of the tasks. Where demands and speeds differ by server, a
task takes what its server asks, and its duration and its estimate are divided by the speed there.

Usage of a user fades with the half-life. Under "fairtree" it is what its running tasks take of the cluster, each in its dominant resource:
Slurm's MAX_TRES with billing weights of 1 / capacity. Under "priority" and "maui" it is what they hold of one resource, the unit:
HTCondor's resources in use, which count a slot by its cores (SLOT_WEIGHT), and Maui's dedicated processor-seconds. With a billing it is
what their tasks are billed (`fairopt.simulation.billing`). Usage from before is there at the first event (`fairopt.simulation.past_usage`).

    real priority = ln 2 / half-life * faded usage, in units, at least 1/2:  d/dt = ln 2 / half-life * (units in use - real priority)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray, safe_ratio
from fairopt.instance.aggregation import number_distinct
from fairopt.program.events import Change
from fairopt.simulation.baselines import job_kernel
from fairopt.simulation.baselines.backfill_kernel import ENDS, JOB, SERVER, STREAM, Jobs
from fairopt.simulation.baselines.fair_tree import FairTree
from fairopt.simulation.baselines.job_kernel import Events, Moment
from fairopt.simulation.baselines.options import Baseline, unit_of
from fairopt.simulation.baselines.passes import spin_the_pie, start_in_order
from fairopt.simulation.baselines.pool import Place, Pool, part
from fairopt.simulation.baselines.quotas import Group, Quotas, check_guarantees
from fairopt.simulation.baselines.running import Running
from fairopt.simulation.baselines.usage import FadingUsage, same_digits
from fairopt.simulation.baselines.windows import WindowUsage, by_distance, targets
from fairopt.simulation.billing import Billing, billed
from fairopt.simulation.keeping import Keeper, State, part_of, prefixed
from fairopt.simulation.streams import Streams
from fairopt.solvers.compiled import Steps

__all__ = ["JobRun", "run_baseline"]

_BATCH = 500  # moments between two calls of ``done`` and ``stopped``
_LEAST_PRIORITY = 0.5  # HTCondor's smallest real user priority, half a core, which users begin with


def run_baseline(
    streams: Streams, baseline: Baseline, until: float, done: Callable[[float, int], object], stopped: Callable[[], bool], keeper: Keeper
) -> tuple[FloatArray, IntArray, float, BoolArray]:
    """Return four results of a scheduler of jobs.

    They are the start of each task (nan: never started), its single server (-1: none), the time up to which the simulation ran, and whether
    each job can start at all.

    Raises
    ------
    Unsupported
        The cluster guarantees something that the scheduler does not know, or none of its resources is the unit of usage.
    """
    check_guarantees(streams.cluster, baseline.order)
    unit = unit_of(baseline.unit, streams.instance.resources, baseline.order) if baseline.order in ("priority", "maui") else None
    run = JobRun(streams, unit, baseline.known.billing)
    scheduler = _Scheduler(run, streams, baseline)
    if keeper.found is not None:
        scheduler.restore(keeper.found)
    moments = 0
    while True:
        now = run.next_moment()
        if now > until or np.isinf(now):
            keeper.offer(scheduler.state, at_once=True)
            return run.started, run.server, until, run.takes_part
        if run.is_plain and scheduler.usage is None:
            now = run.follow(until, baseline.backfill)
            moments = 0
        else:
            scheduler.move_to(now)
            if run.advance(now):
                scheduler.start(now)
            moments += 1
        if moments % _BATCH == 0:
            done(now, run.n_started)
            stops = stopped()
            keeper.offer(scheduler.state, at_once=stops)
            if stops:
                return run.started, run.server, now, run.takes_part


class _Scheduler:
    """The rule by which jobs start, and the usage that it remembers."""

    def __init__(self, run: JobRun, streams: Streams, baseline: Baseline) -> None:
        self.run, self.baseline = run, baseline
        tree, weights = streams.weighted_tree
        past = baseline.known.past
        self.usage: FadingUsage | WindowUsage | None = None
        if baseline.order == "fairtree":
            self.fair_tree = FairTree(tree, weights)
            self.usage = FadingUsage(weights.size, baseline.half_life)
            self.of_queues = FadingUsage(tree.n_nodes - 1, baseline.half_life)  # of users who are not in the cluster: it only fades
            if past is not None:
                of_users, of_queues = past.faded(baseline.half_life)
                self.usage.begin(of_users)
                self.of_queues.begin(of_queues)
        elif baseline.windows is not None:
            windows = baseline.windows
            self.targets = targets(tree, weights)
            self.usage = WindowUsage(weights.size, windows.interval, windows.depth, windows.decay)
            if past is not None:
                self.usage.begin(past.of_windows(tree, self.targets))
        elif baseline.order == "priority":
            self.usage = FadingUsage(weights.size, baseline.half_life)
            self._fading = np.log(2) / baseline.half_life
            self.quotas = Quotas(streams)
            least = _LEAST_PRIORITY / self._fading
            self.usage.begin(np.full(weights.size, least) if past is None else np.maximum(past.faded(baseline.half_life)[0], least))
            self.factor = np.divide(1.0, weights, out=np.full(weights.size, np.inf), where=weights > 0)
        if self.usage is not None:
            self.usage.rate = run.held  # the same array: usage moves on before anything starts or ends

    def state(self) -> State:
        """Return the state, for `restore`."""
        usage = {} if self.usage is None else prefixed("usage", self.usage.state())
        more = prefixed("queues", self.of_queues.state()) if self.baseline.order == "fairtree" else {}
        return self.run.state() | usage | more

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.run.restore(state)
        if self.usage is not None:
            self.usage.restore(part_of(state, "usage"))
        if self.baseline.order == "fairtree":
            self.of_queues.restore(part_of(state, "queues"))

    def move_to(self, now: float) -> None:
        """Let usage grow and fade until now."""
        if self.usage is not None:
            self.usage.at(now)

    def start(self, now: float) -> None:
        """Start what may start now."""
        run, usage = self.run, self.usage
        if usage is None:
            start_in_order(run, None, self.baseline.backfill, now)
        elif isinstance(usage, WindowUsage):
            start_in_order(run, lambda: by_distance(self.targets, usage.effective(now)), self.baseline.backfill, now)
        elif self.baseline.order == "fairtree":
            start_in_order(run, lambda: self.fair_tree.ranks(usage.at(now), self.of_queues.at(now)), self.baseline.backfill, now)
        else:
            real = np.maximum(usage.at(now) * self._fading, _LEAST_PRIORITY)
            priority = same_digits(real * self.factor)
            for k in self.quotas.by_starvation(run.tasks, run.pool.open_capacity):
                spin_the_pie(run, priority, now, partial(self._group, k))
            spin_the_pie(run, priority, now)

    def _group(self, k: int) -> Group:
        """Return a group with what is left of its quota now."""
        return self.quotas.group(k, self.run.tasks, self.run.pool.open_capacity)


class JobRun:
    """Jobs that wait and tasks that run, at a time that only moves on.

    Attributes
    ----------
    pool : Pool
    stream, owner : int arrays (jobs,)
        The stream of each job, and its user.
    gang : bool array (jobs,)
    shape : int array (jobs,)
        The same number for jobs whose tasks fit wherever those of another one fit: they take the same, may run on the same servers, and no
        limit counts them. A stream that a limit counts has a number of its own.
    expected : array (jobs,)
        The duration of a task by the estimate, at speed 1.
    soonest : array (jobs,)
        The same on the fastest server where it may run.
    is_plain : bool
        Nothing but servers limits tasks, and each task is the same on every server: `backfill_kernel` knows such runs.
    unit : int or None
        The resource in which usage counts; None: the dominant one of each task.
    worth : array (streams, kinds of servers)
        What a task is billed there; without a billing the amount of the unit; without a unit, the part of the cluster, in its dominant
        resource.
    held : array (users,)
        The sum of these amounts over the running tasks of each user.
    tasks : int array (streams,)
        The running tasks of each stream.
    takes_part : bool array (jobs,)
        Whether the job, or a task of it, fits on the first servers if nothing else runs.
    started, server : arrays (tasks,)
        Start of each task (nan: not yet), and its server (-1: none).
    running : Running
        The running tasks.
    """

    def __init__(self, streams: Streams, unit: int | None = None, billing: Billing | None = None) -> None:
        trace, instance = streams.trace, streams.instance
        self.streams, self.pool = streams, Pool(streams)
        self.stream, self.owner, self.gang = streams.stream, streams.job_owner, trace.gangs
        limited = np.array([self.pool.is_limited(stream) for stream in range(streams.owner.size)], bool)
        own = np.where(limited, np.arange(limited.size), -1)[:, None]
        self.shape = number_distinct([instance.demands_by_kind.reshape(limited.size, -1), instance.eligibility, own])[self.stream]
        self.expected = self.soonest = trace.expected_durations
        self._speeds = None
        if instance.speeds_given is not None:
            self._speeds = np.where(instance.speeds_given > 0, instance.speeds_given, 1.0)  # at speed 0 nothing may run
            fastest = np.where(instance.eligibility, self._speeds, 0.0).max(axis=1)
            self.soonest = self.expected / np.where(fastest > 0, fastest, 1.0)[self.stream]
        self.is_plain = self._speeds is None and self.pool.only_servers_limit
        self._steps = Steps(job_kernel)
        self.unit = unit
        demands = instance.demands_by_kind
        if billing is not None:
            self.worth = billed(billing, demands)
        else:
            self.worth = safe_ratio(demands, instance.total_capacity).max(axis=2) if unit is None else demands[:, :, unit]
        self.held = np.zeros(len(streams.users))
        self._running = np.zeros(len(streams.users), np.int64)
        self.tasks = np.zeros(streams.owner.size, np.int64)
        self.takes_part = self.pool.most_ever[self.stream] >= np.where(self.gang, trace.tasks, 1)
        self.started, self.server = np.full(trace.n_tasks, np.nan), np.full(trace.n_tasks, -1)
        self.n_started = 0
        self.running = Running()
        self._end_task = np.cumsum(trace.tasks)
        self._next_task = self._end_task - trace.tasks
        self._durations, self._each_task = trace.durations, trace.durations.size != trace.n_jobs
        of_jobs = self.gang.copy(), self.stream.copy(), self.shape.copy(), self.expected.copy(), self._durations.copy()
        self.jobs = Jobs(self._next_task, self._end_task, *of_jobs)
        self._queue, self._length = np.empty(trace.n_jobs, np.int64), 0
        self._needs = list((self.pool.demands[self.stream] * np.where(self.gang, trace.tasks, 1)[:, None]).T.copy())
        self._least = np.array([needs.min(initial=np.inf) for needs in self._needs])  # of each resource, by any job
        self._ends: list[tuple[float, int, int, Place, float]] = []
        self._present, self._all_present = streams.present.copy(), bool(streams.present.all())
        self._event = 0
        self._follows = False  # a kernel goes from moment to moment
        changes, subjects, amounts = streams.changes.copy(), streams.subjects.copy(), streams.amounts.copy()
        self._events = Events(streams.times.copy(), changes, subjects, amounts, self.owner.copy(), self.takes_part)
        self._number = 0

    def state(self) -> State:
        """Return the state, for `restore`."""
        changing = ("held", "_running", "tasks", "started", "server", "_next_task", "_queue", "_present")
        return {
            **{name: getattr(self, name) for name in changing},
            **prefixed("pool", self.pool.state()),
            "counters": [self._length, self._event, self._number, self.n_started],
            "running": self.running.table,
        }

    def restore(self, state: State) -> None:
        """Go back to a state."""
        for name in ("held", "_running", "tasks", "started", "server", "_next_task", "_queue", "_present"):
            getattr(self, name)[...] = state[name]
        self.pool.restore(part_of(state, "pool"))
        self._length, self._event, self._number, self.n_started = state["counters"].tolist()
        self._all_present = bool(self._present.all())
        self.running.table = np.array(state["running"], float)
        self._check_restored()
        self._ends = [group for group in self.running.groups() if np.isfinite(group[0])]
        heapq.heapify(self._ends)

    def _check_restored(self) -> None:
        """Refuse a state in which a compiled step would look outside of its arrays."""
        table, n_jobs, n_events = self.running.table, self.stream.size, self.streams.times.size
        begins, coming = self._end_task - self.streams.trace.tasks, self.streams.changes[self._event :] == Change.SUBMIT
        bounded = (
            *((table[:, SERVER], self.pool.row.size), (table[:, STREAM], self.tasks.size), (table[:, JOB], n_jobs)),
            *((self._queue[: self._length], n_jobs), (self._next_task - begins, self.streams.trace.tasks + 1)),
        )
        if not (
            0 <= self._event <= n_events
            and 0 <= self._length <= n_jobs - int(coming.sum())
            and all(((values >= 0) & (values < bound)).all() for values, bound in bounded)
        ):
            raise ValueError("jobs, servers or tasks that are not there")

    def next_moment(self) -> float:
        """Return the time of the next event or end of a task; inf if there is none."""
        times = self.streams.times
        coming = float(times[self._event]) if self._event < times.size else np.inf
        if self._follows:
            return min(coming, float(self.running.table[:, ENDS].min(initial=np.inf)))
        return min(coming, self._ends[0][0]) if self._ends else coming

    def follow(self, until: float, backfill: bool) -> float:
        """Go through some moments up to this time, in the order of submission; return the last (`job_kernel`)."""
        self._follows = True
        table = self.running.table.copy()
        counters = np.array([self._length, self._event, self._number, self.n_started, len(table)], np.int64)
        moment = Moment(self._queue, self._present, counters, self.started, self.server)
        how = until, self._steps.size("follow", _BATCH), backfill, self._events, self.jobs, self.pool.of_kernel
        now, table = self._steps.run("follow", *how, moment, table)
        self._length, self._event, self._number, self.n_started, rows = counters.tolist()
        self.running.table = table[:rows]
        return float(now)

    def advance(self, now: float) -> bool:
        """End tasks and apply the events of this time; say whether something may start that could not before."""
        something = bool(self._ends) and self._ends[0][0] == now
        while self._ends and self._ends[0][0] == now:
            _, number, job, place, expected = heapq.heappop(self._ends)
            stream = int(self.stream[job])
            self.pool.give_back(stream, place)
            user = int(self.owner[job])
            self._running[user] -= place.total
            self.tasks[stream] -= place.total
            self.held[user] = self.held[user] - self.worth_of(stream, place) if self._running[user] else 0.0
            self.running.remove(expected, number)
        streams = self.streams
        while self._event < streams.times.size and streams.times[self._event] == now:
            kind, subject = int(streams.changes[self._event]), int(streams.subjects[self._event])
            if kind == Change.SUBMIT:
                if self.takes_part[subject]:
                    self._queue[self._length] = subject
                    self._length += 1
            elif kind in (Change.JOIN, Change.LEAVE):
                self._present[subject] = kind == Change.JOIN
                self._all_present = bool(self._present.all())
            else:
                self.pool.change_servers(subject, int(streams.amounts[self._event]), add=kind == Change.ADD)
            self._event += 1
            something = True
        return something and self._length > 0

    def waiting(self) -> IntArray:
        """Return the waiting jobs of users who are present, in the order of submission."""
        jobs = self._queue[: self._length]
        return jobs.copy() if self._all_present else jobs[self._present[self.owner[jobs]]]

    def first_waiting(self) -> int | None:
        """Return the waiting job of a user who is present that was submitted first; None where there is none."""
        jobs = self._queue[:1] if self._all_present and self._length else self.waiting()
        return int(jobs[0]) if jobs.size else None

    @property
    def is_anything_free(self) -> bool:
        """Is there as much of each resource as the smallest job or task takes?"""
        total = (self.pool.total_free + self.pool.slack).tolist()
        return all(least <= amount for least, amount in zip(self._least.tolist(), total, strict=True))

    def this_may_fit(self, job: int) -> bool:
        """Return what `may_fit` returns of one job."""
        total = (self.pool.total_free + self.pool.slack).tolist()
        return all(needs[job] <= amount for needs, amount in zip(self._needs, total, strict=True))

    def may_fit(self, jobs: IntArray, total: FloatArray | None = None) -> BoolArray:
        """Return which of these jobs, or of those that are no gangs a task, would fit if all servers were one with so much free."""
        total = self.pool.total_free + self.pool.slack if total is None else total
        if not jobs.size or (total < self._least).any():
            return np.zeros(jobs.size, bool)
        fits = self._needs[0][jobs] <= total[0]
        for needs, amount in zip(self._needs[1:], total[1:], strict=True):
            fits &= needs[jobs] <= amount
        return np.asarray(fits)

    def tasks_left(self, job: int) -> int:
        """Return how many tasks of a job wait."""
        return int(self._end_task[job] - self._next_task[job])

    def is_held_back(self, job: int) -> bool:
        """Would limits of queues keep the job, or its next task, from starting even on an empty cluster?"""
        stream, pool = int(self.stream[job]), self.pool
        return pool.is_limited(stream) and pool.most(stream) < (self.tasks_left(job) if self.gang[job] else 1)

    def worth_of(self, stream: int, place: Place) -> float:
        """Return what tasks of a stream are worth at a place."""
        if self.worth.shape[1] == 1:
            return float(place.total * self.worth[stream, 0])
        return float(place.tasks @ self.worth[stream, self.pool.kind[place.servers]])

    def expected_on(self, job: int) -> FloatArray:
        """Return the duration of a task by the estimate: one number, or that on each server, (servers,), where speeds are given."""
        expected = np.asarray(self.expected[job])
        return expected if self._speeds is None else np.asarray(expected / self._speeds[self.stream[job], self.pool.row])

    def beside(self, head: int, jobs: IntArray, now: float) -> Iterator[tuple[int, Place]]:
        """Yield which of these jobs start tasks now beside the first one that does not fit, and where (`backfill_kernel`)."""
        found = self._steps.run("start_beside", now, head, jobs, self.jobs, self.pool.of_kernel, self.running.table)
        at = 0
        for job, size in found[0].tolist():
            servers, tasks = found[1][at : at + size].T.copy()
            yield job, Place(servers, tasks, int(tasks.sum()))
            at += size

    def start(self, job: int, place: Place, now: float) -> None:
        """Start tasks of a job there."""
        stream, number = int(self.stream[job]), place.total
        self.pool.take(stream, place)
        self._running[self.owner[job]] += number
        self.tasks[stream] += number
        self.held[self.owner[job]] += self.worth_of(stream, place)
        begin = int(self._next_task[job])
        tasks = slice(begin, begin + number)
        self.started[tasks] = now
        self.server[tasks] = np.repeat(place.servers, place.tasks) if number > 1 else place.servers[0]
        self._next_task[job] += number
        self.n_started += number
        if self._each_task:
            for task in range(begin, begin + number):
                self._run(job, Place(self.server[task : task + 1].copy(), np.ones(1, np.int64), 1), now, float(self._durations[task]))
        else:
            self._run(job, place, now, float(self._durations[job]))
        if self._next_task[job] == self._end_task[job]:
            at = int(np.searchsorted(self._queue[: self._length], job))  # jobs are numbered in the order of submission
            self._queue[at : self._length - 1] = self._queue[at + 1 : self._length].copy()
            self._length -= 1

    def _run(self, job: int, place: Place, now: float, duration: float) -> None:
        if self._speeds is None:
            self._run_at(job, place, now, duration, 1.0)
            return
        speeds = self._speeds[self.stream[job], self.pool.row[place.servers]]
        for speed in dict.fromkeys(speeds.tolist()):  # tasks on servers of one speed end at one time
            self._run_at(job, part(place, speeds == speed), now, duration, speed)

    def _run_at(self, job: int, place: Place, now: float, duration: float, speed: float) -> None:
        self._number += 1
        expected, duration = now + float(self.expected[job]) / speed, duration / speed
        stream = int(self.stream[job])
        self.running.add(expected, self._number, stream, place, now + duration, job)
        if np.isfinite(duration):
            heapq.heappush(self._ends, (now + duration, self._number, job, place, expected))
