"""How full resources of the cluster and named limits were, over the time of a log.

What jobs held of each, over its amount or bound: the mean over the windows, and the most at a moment. Of a limit with a row for each owner,
queue or server it is that of the fullest row. More may be held than a limit of the cluster allows: the log may be older than the limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray, safe_ratio

__all__ = ["Across", "across"]

_MOST_NUMBERS = 20_000_000
_SAMPLES = 1000  # where every change would be too many numbers


class Across(NamedTuple):
    """A resource of the cluster, or a named limit: its amount or bound, and which part of it was in use, on average and at most."""

    kind: str
    name: str
    bound: float
    mean_use: float
    most_use: float


def across(setting: Setting, windows: tuple[tuple[float, float], ...]) -> list[Across]:
    """Return the resources of the cluster, then the named limits."""
    log, cluster, limits = setting.log, setting.cluster, setting.limits
    if not (limits.limits or cluster.shared_capacity.size):
        return []
    first, last = windows[0][0], windows[-1][1]
    ran = np.flatnonzero(np.isfinite(log.start) & (log.start < log.end) & (log.start < last) & (log.end > first))
    times = np.unique(np.clip(np.concatenate([log.start[ran], log.end[ran], *windows]), first, last))
    if times.size * max(len(setting.owners), cluster.n_servers) > _MOST_NUMBERS:
        times = np.linspace(first, last, _SAMPLES + 1)
    middle, lengths = (times[:-1] + times[1:]) / 2, np.diff(times)
    lengths = np.where(np.logical_or.reduce([(middle >= a) & (middle < b) for a, b in windows]), lengths, 0.0)
    stream, tasks = setting.stream[ran], np.asarray(log.tasks[ran], float)
    begin, stop = np.searchsorted(middle, log.start[ran]), np.searchsorted(middle, log.end[ran])
    columns, taken = [], setting.tasks.taken(stream, log.row[ran])
    for r in range(cluster.n_server_resources, cluster.n_resources):
        held = np.zeros(middle.size + 1)
        np.add.at(held, begin, tasks * taken[:, r])
        np.add.at(held, stop, -tasks * taken[:, r])
        columns.append(safe_ratio(held.cumsum()[:-1], cluster.total_capacity[r]))
    use = limits.use(setting.instance(np.ones(setting.n_streams))[0], stream, log.row[ran], tasks, begin, stop, middle.size)
    values = np.column_stack([*columns, use]) if columns else use
    names = [("shared", name, amount) for name, amount in cluster.shared.items()]
    names += [("limit", limit.name, float(limit.bound)) for limit in limits.limits]
    most, mean = _most_and_mean(values, lengths)
    return [Across(*name, float(a), float(b)) for name, a, b in zip(names, mean, most, strict=True)]


def _most_and_mean(values: FloatArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest and the mean value over time of each column; row k holds for ``lengths[k]`` seconds."""
    some = lengths > 0
    if not some.any():
        return np.zeros(values.shape[1]), np.zeros(values.shape[1])
    return np.asarray(np.maximum(values[some].max(axis=0), 0.0)), np.asarray(lengths @ values / lengths.sum())
