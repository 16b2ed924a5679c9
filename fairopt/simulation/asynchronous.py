"""PS-DSF's distributed procedure over time, compared with the exact allocation of each moment.

Each single server acts every T seconds (`fairopt.solvers.equilibrium.asynchronous`). It divides its own resources, given the tasks that its
users run on other servers at that moment. The other servers keep their allocations. The procedure is not exact. It is fluid, as
`fairopt.simulation.fluid` is: tasks are divided and moved at no cost, a stream's jobs run in the order of submission, and an owner divides
its weight equally among its streams.

Resources become free at once, on all servers, when a user runs out of tasks, when a user leaves, and when a server is removed. Other users
get free resources of a server when that server acts. Rates are constant between two actions, so the end of a job is computed exactly.

At each sample, the running tasks x are compared with the exact PS-DSF allocation x* of that moment, by two numbers:

    distance    max over streams n of |x[n] - x*[n]| / max(x[n], x*[n])
    condition   largest violation, over single servers, of the condition that characterizes PS-DSF allocations (`fairopt.regret`)

Under resource division, several allocations may be PS-DSF, and the servers may settle on one other than x*. Then the condition is 0 and the
distance is not. After each change of x*, the simulation reports how many periods pass until each number is below a tolerance and stays
below it until the next change. The distance is checked after every action, the condition after every round of all servers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairopt.errors import CertificateError, NoSolution, Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.limits import refuse_limits
from fairopt.models import Sharing
from fairopt.simulation.flow_samples import MOST_SAMPLES, thinned
from fairopt.simulation.fluid import Flow, Optimum, tasks_of
from fairopt.simulation.keeping import Keeper, State, part_of, prefixed
from fairopt.simulation.situation import Situation
from fairopt.simulation.streams import Streams
from fairopt.solvers import AsynchronousServers, Turns
from fairopt.solving import notion_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TOLERANCES", "Followed", "run_asynchronous"]

TOLERANCES = (1e-3, 1e-6)
_MOST_NUMBERS = 100_000_000  # single servers times streams
_MOST_ACTIONS = 1_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """The result of a simulation with asynchronous servers.

    Attributes
    ----------
    flow : Flow
        Its ``solved`` and ``residual`` describe the exact allocations that the flow is compared with.
    exact : array (K, users, resources)
        What users hold in the exact allocation of each sample; nan where no engine found this allocation.
    regret : pandas.DataFrame
        At each sample: time_s, distance, condition.
    settling : pandas.DataFrame
        For each change of the exact allocation: time_s, until_s (the next change), the distance at time_s, and the number of periods until
        distance and condition are within each of `TOLERANCES`; nan: not before the next change.
    actions : int
        Number of actions of all servers together.
    """

    flow: Flow
    exact: FloatArray
    regret: pd.DataFrame
    settling: pd.DataFrame
    actions: int


def run_asynchronous(
    streams: Streams,
    turns: Turns,
    sharing: Sharing,
    until: float,
    step: float | None,
    done: Callable[[float, int], object],
    stopped: Callable[[], bool],
    keeper: Keeper,
) -> Followed:
    """Follow the servers from action to action. Keep a sample every ``step`` seconds, or at each period and change (thinned if many)."""
    if streams.tree is not None:
        raise Unsupported(
            "servers that act alone do not support queues, guarantees or weights of 0, and the cluster has some; use a schedule such as "
            '"drfh:best-fit", or leave them out'
        )
    refuse_limits(streams.limits, "a simulation of servers that act alone, which know only what is free on themselves,")
    run = _Run(streams, turns, sharing, until, step)
    known = run.follow(done, stopped, keeper)
    return run.followed(known)


class _Run:
    """The servers during a trace, and the exact allocation of each moment."""

    def __init__(self, streams: Streams, turns: Turns, sharing: Sharing, until: float, step: float | None) -> None:
        self.streams, self.turns, self.until = streams, turns, until
        self.situation = Situation(streams)
        whole = streams.instance
        endless = np.isinf(streams.trace.job_work) & self.situation.takes_part
        if np.isinf(until) and endless.any():
            job = streams.trace.jobs[int(np.argmax(endless))]
            raise Unsupported(f'the tasks of job "{job}" never end, and servers act periodically; give until, the end of the simulation')
        single = whole.counts.astype(np.int64)
        row = np.repeat(np.arange(single.size), single)
        if row.size * streams.owner.size > _MOST_NUMBERS:
            raise Unsupported(
                f"{row.size:,} servers times {streams.owner.size:,} kinds of tasks are more numbers than fit into memory; "
                "take a part of the trace, or simulate the exact allocation (leave the period out)"
            )
        span = float(np.ptp(np.minimum(streams.times, until))) if streams.times.size else 0.0
        if span / turns.period * row.size > _MOST_ACTIONS:
            raise Unsupported(
                f"{row.size:,} servers that act every {turns.period:g} s would act more than {_MOST_ACTIONS:,} times in {span:g} s; "
                "give a longer period, or an earlier end (until)"
            )
        self.within = np.arange(row.size) - np.repeat(np.cumsum(single) - single, single)  # position of the server in its row
        self.origin = float(streams.times[0]) if streams.times.size else 0.0
        self.servers = AsynchronousServers(
            row,
            np.divide(whole.rates, whole.counts, out=np.zeros_like(whole.rates), where=whole.counts > 0),
            whole.demands,
            whole.capacities,
            sharing == "tdm",
            turns,
            self.origin,
            TOLERANCES,
        )
        self.row = row
        self.optimum = Optimum(streams, notion_of("psdsf"), sharing)
        self.exact = np.zeros(streams.owner.size)
        self.has = np.zeros(streams.owner.size)
        self.samples = _Samples(step, self.origin, turns.period)
        self.changes: list[dict[str, float]] = []

    def follow(self, done: Callable[[float, int], object], stopped: Callable[[], bool], keeper: Keeper) -> float:
        """Go from change to change; return the time up to which the simulation ran."""
        situation, samples = self.situation, self.samples
        now, resumes = situation.coming, keeper.found is not None
        if keeper.found is not None:
            now = self.restore(keeper.found)
        while resumes or (now <= self.until and np.isfinite(now)):
            if not resumes:
                situation.advance(now)
                self._changed(now)
                samples.wanted(now)
            active, resumes = situation.active, False
            if not self._goes_on(active):
                now = self._idle(now)
                continue
            user = np.searchsorted(self.servers.members, self.streams.stream[active])
            tasks = self.streams.trace.tasks[active].astype(float)
            left, started = situation.left[active], situation.started[active]
            coming = situation.coming
            while True:
                look = min(samples.next, self.until)
                # Actions at the very time of a sample belong to it, so the servers run to the next larger floating-point number.
                now = self.servers.follow(now, min(coming, np.nextafter(look, np.inf)), user, tasks, left, started)
                situation.left[active], situation.started[active] = left, started
                if now <= look:
                    break
                now = look
                self._keep(now)
                done(now, int(self.streams.trace.tasks[np.isfinite(situation.finished)].sum()))
                stops = now == self.until or stopped()
                keeper.offer(partial(self.state, now), at_once=stops)
                if stops:
                    return now
        return self.until

    def state(self, now: float) -> State:
        """Return the state after a sample between two changes, for `restore`."""
        samples = self.samples
        kept = {name: [values[name] for values in samples.kept] for name in (samples.kept[0] if samples.kept else {})}
        return {
            **prefixed("situation", self.situation.state()),
            **prefixed("optimum", self.optimum.state()),
            **prefixed("servers", self.servers.state()),
            **prefixed("kept", kept),
            "times": list(samples.times),
            "counters": [now, samples.spacing, samples.next, float(samples.number)],
            "exact": self.exact,
            "has": self.has,
            "changes": json.dumps(self.changes),
        }

    def restore(self, state: State) -> float:
        """Go back to a state; return its time."""
        samples = self.samples
        self.situation.restore(part_of(state, "situation"))
        self.optimum.restore(part_of(state, "optimum"))
        self.servers.restore(part_of(state, "servers"))
        kept = part_of(state, "kept")
        samples.times = state["times"].tolist()
        samples.kept = [{name: values[k] for name, values in kept.items()} for k in range(len(samples.times))]
        now, samples.spacing, samples.next, number = state["counters"].tolist()
        samples.number, self.exact, self.has = int(number), state["exact"], state["has"]
        self.changes = json.loads(str(state["changes"]))
        return float(now)

    def _goes_on(self, active: IntArray) -> bool:
        """Return whether anything can still happen, by the trace or by the servers."""
        if not np.isinf(self.until) or np.isfinite(self.situation.coming):
            return bool(active.size)
        return bool((self.streams.instance.rates[self.streams.stream[active]] * (self.situation.counts > 0) > 0).any())

    def _idle(self, now: float) -> float:
        """Go to the next change, while no user has a task."""
        coming = self.situation.coming
        self._keep(now)
        if self.samples.step is not None and np.isfinite(min(coming, self.until)):
            while self.samples.next < coming and self.samples.next <= self.until:
                self._keep(self.samples.next)
        if np.isfinite(coming):
            self.servers.skip(coming)
        return coming

    def _changed(self, now: float) -> None:
        """Tell the servers which users, tasks and servers are present, and compute the exact allocation."""
        situation, streams = self.situation, self.streams
        active = situation.active
        limits = tasks_of(streams, active)
        members = np.flatnonzero(limits)
        owner = streams.owner[members]
        weights = streams.weights[owner] / np.bincount(owner)[owner] if owner.size else np.empty(0)
        before = self.exact
        try:
            self.exact, _ = self.optimum.at(active, situation.counts)
        except (NoSolution, CertificateError):  # no exact allocation to compare with at this moment
            self.exact, self.optimum.key = np.where(limits > 0, np.nan, 0.0), None
        self.has = tasks_of(streams, situation.here)
        self.servers.change(self.within < situation.counts[self.row], members, weights, limits[members], self.exact[members])
        if not np.array_equal(self.exact, before, equal_nan=True):
            self._settled(now)
            self.servers.watch_afresh(now)
            if members.size:
                self.changes.append({"time_s": now, "until_s": np.inf, "distance": self.servers.distance})

    def _settled(self, now: float) -> None:
        """Record how soon the servers came near the exact allocation that ends now."""
        if self.changes and np.isinf(self.changes[-1]["until_s"]):
            last = self.changes[-1]
            last["until_s"] = now
            for word, since in (("distance", self.servers.watch.near), ("condition", self.servers.watch.fair)):
                for tolerance, time in zip(TOLERANCES, since, strict=True):
                    last[f"{word}_{tolerance:g}"] = (time - last["time_s"]) / self.turns.period if np.isfinite(time) else np.nan

    def _keep(self, now: float) -> None:
        """Keep a sample."""
        streams, servers = self.streams, self.servers
        users, demands = len(streams.users), streams.instance.demands
        x = np.zeros(streams.owner.size)
        x[servers.members] = servers.users.total

        def of_users(values: FloatArray) -> FloatArray:
            return np.bincount(streams.owner, values, users).astype(float)

        def held(tasks: FloatArray) -> FloatArray:
            return np.stack([of_users(tasks * demand) for demand in demands.T], axis=1)

        self.samples.keep(
            now,
            {
                "running": of_users(x),
                "waiting": of_users(np.maximum(self.has - x, 0.0)),
                "held": held(x),
                "rows": servers.rows @ demands[servers.members],
                "exact": held(self.exact),
                "regret": np.array([servers.distance, servers.violation]),
            },
        )

    def followed(self, known: float) -> Followed:
        """Return the result, which is known up to time ``known``."""
        import pandas as pd

        self._settled(known)
        kept = self.samples.arrays()
        users, (rows, m) = len(self.streams.users), self.streams.cluster.capacities.shape
        k = kept["times"].size
        shapes = {"running": (users,), "waiting": (users,), "held": (users, m), "rows": (rows, m), "exact": (users, m), "regret": (2,)}
        values = {name: kept.get(name, np.empty(0)).reshape(k, *shape) for name, shape in shapes.items()}
        exact, regret = values.pop("exact"), values.pop("regret")
        flow = Flow(
            times=kept["times"],
            **values,
            limits=np.zeros((k, 0)),
            started=self.situation.started,
            finished=self.situation.finished,
            left=np.maximum(self.situation.left, 0.0),
            known=known,
            solved=self.optimum.solved,
            residual=self.optimum.residual,
        )
        words = [f"{word}_{tolerance:g}" for word in ("distance", "condition") for tolerance in TOLERANCES]
        return Followed(
            flow,
            exact,
            pd.DataFrame({"time_s": kept["times"], "distance": regret[:, 0], "condition": regret[:, 1]}),
            pd.DataFrame(self.changes, columns=["time_s", "until_s", "distance", *words]),
            self.servers.acted,
        )


class _Samples:
    """Samples at multiples of a step; without a step, once a period and at changes, thinned if they are many."""

    def __init__(self, step: float | None, origin: float, period: float) -> None:
        self.step, self.origin, self.period, self.spacing = step, origin, period, 0.0
        self.next = origin  # time of the next sample
        self.number = 0
        self.times: list[float] = []
        self.kept: list[dict[str, FloatArray]] = []

    def wanted(self, now: float) -> None:
        """Schedule a sample after a change."""
        if self.step is None:
            self.next = max(now, self.times[-1] + self.spacing) if self.times else now

    def keep(self, now: float, values: dict[str, FloatArray]) -> None:
        """Keep a sample if one is due, and schedule the next one."""
        if self.step is not None:
            if now == self.next:
                self.number += 1
                self.next = self.origin + self.number * self.step
                self.times.append(now)
                self.kept.append(values)
            return
        if not self.times or now > self.times[-1]:
            self.times.append(now)
            self.kept.append(values)
        if len(self.times) > 2 * MOST_SAMPLES:
            self.spacing, self.times, self.kept = thinned(self.times, self.kept, MOST_SAMPLES)
        rounds = np.floor((max(now, self.times[-1] + self.spacing - self.period) - self.origin) / self.period) + 1
        while self.origin + rounds * self.period <= now:  # rounding
            rounds += 1
        self.next = self.origin + rounds * self.period

    def arrays(self) -> dict[str, FloatArray]:
        """Return the samples that were kept."""
        names = self.kept[0] if self.kept else {}
        return {"times": np.array(self.times)} | {name: np.array([values[name] for values in self.kept]) for name in names}
