"""Samples of the running and waiting tasks over time: step functions, where a value holds from its time to the next sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray, safe_ratio
from fairopt.instance.limits import Limit
from fairopt.instance.tolerances import SAME
from fairopt.simulation.flow_samples import MOST_SAMPLES, check_step
from fairopt.simulation.fluid import Flow
from fairopt.simulation.streams import Streams

__all__ = ["Series", "by_name", "mean_over_time", "sample_flow", "sample_times", "sample_whole_tasks"]

_MOST_NUMBERS = 5_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Samples at K times, for U users, R rows of servers, L named limits and M resources, those of servers and then the shared ones.

    Attributes
    ----------
    times : array (K,)
    usage, capacity : array (K, M)
        Totals of the cluster.
    row_usage, row_capacity : array (K, R, resources of servers) or None
        Totals of each row of servers; None if these are too many numbers.
    dominant_shares : array (K, U)
        Dominant share of each user, a fraction of the cluster, not divided by the weight.
    running, waiting : array (K, U)
        Tasks.
    limit_use : array (K, L)
        How full each named limit is, in parts of its bound: of one with a row for each user, queue or server the fullest row.
    exact_shares : array (K, U) or None
        Asynchronous servers only: the dominant shares of the exact allocation of each moment.
    """

    times: FloatArray
    usage: FloatArray
    capacity: FloatArray
    row_usage: FloatArray | None
    row_capacity: FloatArray | None
    dominant_shares: FloatArray
    running: FloatArray
    waiting: FloatArray
    limit_use: FloatArray
    exact_shares: FloatArray | None = None

    @property
    def utilization(self) -> FloatArray:
        """Fraction of each resource of the cluster in use, (K, M)."""
        return safe_ratio(self.usage, self.capacity)

    def mean_limit_use(self, limits: Sequence[Limit]) -> dict[str, float]:
        """Return the mean over time of how full each named limit is, by name; 0 with fewer than two samples."""
        return by_name(limits, mean_over_time(self.times, self.limit_use))

    def most_limit_use(self, limits: Sequence[Limit]) -> dict[str, float]:
        """Return how full each named limit is at most, by name."""
        return by_name(limits, self.limit_use.max(axis=0, initial=0.0))

    @property
    def row_utilization(self) -> FloatArray | None:
        """Fraction of each resource in use on each row of servers, (K, R, M)."""
        return None if self.row_usage is None or self.row_capacity is None else safe_ratio(self.row_usage, self.row_capacity)


def mean_over_time(times: FloatArray, values: FloatArray) -> FloatArray:
    """Return the mean of each column of step functions, (K, columns), until the last sample; 0 with fewer than two."""
    length = np.diff(times)
    return np.asarray(length @ values[:-1] / length.sum() if length.sum() > 0 else np.zeros(values.shape[1]))


def by_name(limits: Sequence[Limit], values: FloatArray) -> dict[str, float]:
    """Return values by the names of limits; limits of one name, of different users, are one: the fullest."""
    found: dict[str, float] = {}
    for limit, value in zip(limits, values.tolist(), strict=True):
        found[limit.name] = max(found.get(limit.name, 0.0), value)
    return found


def sample_times(changes: FloatArray, until: float, step: float | None) -> FloatArray:
    """Return the sample times: every ``step`` seconds; without a step, each change, or equally spaced times if there are many changes.

    Raises
    ------
    Unsupported
        The step makes too many samples.
    """
    distinct = np.unique(changes[np.isfinite(changes) & (changes <= until)])
    if not distinct.size:
        return distinct
    first, last = float(distinct[0]), float(until if np.isfinite(until) else distinct[-1])
    if step is not None:
        check_step(step, last - first)
        return np.asarray(first + step * np.arange(int((last - first) / step * (1 + SAME)) + 1), float)
    if distinct.size <= MOST_SAMPLES:
        return distinct if last == distinct[-1] else np.append(distinct, last)
    return np.asarray(np.linspace(first, last, MOST_SAMPLES + 1), float)


def _capacity(streams: Streams, times: FloatArray) -> FloatArray:
    """Return the number of servers of each row at each time, (K, R)."""
    changed, counts = streams.counts_over_time()
    return counts[np.searchsorted(changed, times, side="right") - 1]


def _totals(streams: Streams, counts: FloatArray) -> FloatArray:
    """Return the capacity of the cluster with these numbers of servers, (K, M)."""
    shared = streams.instance.shared_capacity
    return np.hstack([counts @ streams.instance.capacities, np.broadcast_to(shared, (counts.shape[0], shared.size))])


def sample_whole_tasks(
    streams: Streams, times: FloatArray, start: FloatArray, end: FloatArray, server: IntArray, takes_part: BoolArray
) -> Series:
    """Sample whole tasks, given the start, end and single server of each; jobs without ``takes_part`` do not wait."""
    trace, instance = streams.trace, streams.instance
    k, users = times.size, len(streams.users)
    job = trace.job_of
    runs = np.isfinite(start)
    stream, owner = streams.stream[job], streams.job_owner[job]
    row = np.repeat(np.arange(instance.n_servers), instance.counts.astype(int))[server]
    first = np.searchsorted(times, np.where(runs, start, np.inf))
    last = np.searchsorted(times, np.where(runs, end, np.inf))
    come = np.searchsorted(times, trace.submit)[job]
    waits = takes_part[job]

    def counted(begin: IntArray, stop: IntArray, group: IntArray, groups: int, weights: FloatArray | None = None) -> FloatArray:
        """Return the sum over tasks between their ``begin`` and ``stop`` samples, by group, (K, groups)."""
        table = np.bincount(begin * groups + group, weights, (k + 1) * groups).astype(float)
        table -= np.bincount(stop * groups + group, weights, (k + 1) * groups)
        return table.reshape(k + 1, groups).cumsum(axis=0)[:k]

    some = np.flatnonzero(runs)
    parts = (first[some], last[some])
    by_user = np.stack([counted(*parts, owner[some], users, each) for each in streams.taken(stream[some], row[some])], axis=2)
    counts = _capacity(streams, times)
    capacity = _totals(streams, counts)
    by_row = None
    if k * instance.n_servers * instance.n_server_resources <= _MOST_NUMBERS:
        of_servers = islice(streams.taken(stream[some], row[some]), instance.n_server_resources)
        tables = [counted(*parts, row[some], instance.n_servers, each) for each in of_servers]
        by_row = np.stack(tables, axis=2) if tables else np.zeros((k, instance.n_servers, 0))
    by_user = np.maximum(by_user, 0.0)  # rounding
    return Series(
        times=times,
        usage=by_user.sum(axis=1),
        capacity=capacity,
        row_usage=None if by_row is None else np.maximum(by_row, 0.0),
        row_capacity=None if by_row is None else counts[:, :, None] * instance.capacities,
        dominant_shares=safe_ratio(by_user, capacity[:, None, :]).max(axis=2, initial=0.0),
        running=counted(*parts, owner[some], users),
        waiting=counted(come[waits], np.minimum(first, k)[waits], owner[waits], users),
        limit_use=streams.limit_use.over_time(stream[some], row[some], 1.0, *parts, counts),
    )


def sample_flow(streams: Streams, flow: Flow, exact: FloatArray | None = None) -> Series:
    """Return the samples of a flow; ``exact`` is the usage of users in the exact allocation, (K, U, M), if the flow is not exact."""
    counts = _capacity(streams, flow.times)
    capacity = _totals(streams, counts)
    few = flow.rows.size <= _MOST_NUMBERS
    return Series(
        times=flow.times,
        usage=np.hstack([flow.rows.sum(axis=1), flow.held[:, :, streams.instance.n_server_resources :].sum(axis=1)]),
        capacity=capacity,
        row_usage=flow.rows if few else None,
        row_capacity=counts[:, :, None] * streams.instance.capacities if few else None,
        dominant_shares=safe_ratio(flow.held, capacity[:, None, :]).max(axis=2, initial=0.0),
        running=flow.running,
        waiting=flow.waiting,
        limit_use=flow.limits,
        exact_shares=None if exact is None else safe_ratio(exact, capacity[:, None, :]).max(axis=2, initial=0.0),
    )
