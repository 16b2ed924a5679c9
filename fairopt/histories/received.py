"""What owners received, integrated at every change, whatever moments are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fairopt.histories.changes import Changes, integrate
from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import NOTHING

__all__ = ["Received", "received"]


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """What was received, integrated at every change, in seconds.

    Attributes
    ----------
    shares, tasks : array (windows, owners)
        Dominant share times seconds; tasks, or their work where speeds differ, times seconds.
    waiting : array (windows, owners)
        Of work that waited, as a dominant share.
    hours : array (24, owners)
    hour_seconds : array (24,)
    bins : array (bins, owners)
    bin_seconds : array (bins,)
    held, held_contended : array (streams, rows + 1)
        Tasks; the last column: on an unknown row. While work waited.
    wanted : array (streams,)
    """

    shares: FloatArray
    tasks: FloatArray
    waiting: FloatArray
    hours: FloatArray
    hour_seconds: FloatArray
    bins: FloatArray
    bin_seconds: FloatArray
    held: FloatArray
    held_contended: FloatArray
    wanted: FloatArray


def received(
    setting: Setting,
    changes: Changes,
    windows: list[tuple[float, float]],
    edges: FloatArray,
    hour_edges: FloatArray,
    hour_of: Any,
    bin_edges: FloatArray,
) -> Received:
    """Integrate at every change what was received."""
    log, number = setting.log, len(setting.owners)
    owner = setting.owner[setting.stream]
    work = log.tasks * setting.tasks.work(setting.stream, log.row)
    share = work * setting.task_share[setting.stream]
    ran = np.isfinite(log.start) & (log.start < log.end)
    middle = (edges[:-1] + edges[1:]) / 2
    window = np.searchsorted([a for a, _ in windows], middle, side="right") - 1
    inside = (window >= 0) & (middle < np.array([b for _, b in windows])[window])
    window_of = np.where(inside, window, -1)
    hour = hour_of[np.clip(np.searchsorted(hour_edges, middle, side="right") - 1, 0, None)]
    part = np.clip(np.searchsorted(bin_edges, middle, side="right") - 1, 0, bin_edges.size - 2)

    places = [np.where(inside, into, -1) for into in (window_of, hour, part)]
    sizes = (len(windows), 24, bin_edges.size - 1)

    def summed(which: Any, start: FloatArray, end: FloatArray, amount: FloatArray) -> list[FloatArray]:
        return integrate(owner[which], number, start[which], end[which], amount[which], edges, places, sizes)

    def shares(which: Any, start: FloatArray, end: FloatArray) -> list[FloatArray]:
        mixed = setting.mixed[owner] & which
        alone = which & ~mixed
        columns = [(owner[alone], start[alone], end[alone], share[alone])]
        if mixed.any():
            begin, stop = np.clip(start[mixed], edges[0], edges[-1]), np.clip(end[mixed], edges[0], edges[-1])
            amounts = log.tasks[mixed, None] * setting.task_shares[setting.stream[mixed]]
            columns.append(_largest(owner[mixed], begin, stop, amounts))
        return integrate(*_joined(columns, number), edges, places, sizes)

    waits = log.submit < log.start
    by_share, by_tasks = shares(ran, log.start, log.end), summed(ran, log.start, log.end, work)
    waited = shares(waits, log.submit, log.start)
    lengths = np.diff(edges)
    clock = _contended_clock(changes, windows)
    rows = setting.cluster.n_servers
    place = setting.stream * (rows + 1) + np.where(log.row < 0, rows, log.row)
    held, held_contended = (np.zeros(setting.n_streams * (rows + 1)) for _ in range(2))
    wanted = np.zeros(setting.n_streams)
    for a, b in windows:
        begin, end = np.clip(log.start, a, b), np.clip(log.end, a, b)
        held += np.bincount(place, weights=log.tasks * (end - begin), minlength=held.size)
        held_contended += np.bincount(place, weights=log.tasks * (clock(end) - clock(begin)), minlength=held.size)
        wanted += np.bincount(setting.stream, weights=log.tasks * (end - np.clip(log.submit, a, b)), minlength=wanted.size)
    return Received(
        shares=by_share[0],
        tasks=by_tasks[0],
        waiting=waited[0],
        hours=by_share[1],
        hour_seconds=np.asarray(np.bincount(hour[inside], weights=lengths[inside], minlength=24), float),
        bins=by_share[2],
        bin_seconds=np.asarray(np.bincount(part[inside], weights=lengths[inside], minlength=bin_edges.size - 1), float),
        held=held.reshape(setting.n_streams, rows + 1),
        held_contended=held_contended.reshape(setting.n_streams, rows + 1),
        wanted=wanted,
    )


_Amounts: TypeAlias = tuple[IntArray, FloatArray, FloatArray, FloatArray]  # whose, from when, until when, how much


def _joined(parts: list[_Amounts], number: int) -> tuple[IntArray, int, FloatArray, FloatArray, FloatArray]:
    whose, start, end, amount = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return whose, number, start, end, amount


def _largest(owner: IntArray, start: FloatArray, end: FloatArray, amounts: FloatArray) -> _Amounts:
    """Return the largest column of what owners have together, from change to change; ``amounts``, (records, resources), are of records.

    >>> _largest(np.array([0, 0]), np.array([0.0, 2.0]), np.array([4.0, 4.0]), np.array([[0.3, 0.1], [0.1, 0.5]]))
    (array([0, 0]), array([0., 2.]), array([2., 4.]), array([0.3, 0.6]))
    """
    time = np.concatenate([start, end])
    whose = np.concatenate([owner, owner])
    order = np.lexsort((time, whose))
    together = np.concatenate([amounts, -amounts])[order].cumsum(axis=0)
    time, whose = time[order], whose[order]
    largest = together.max(axis=1)
    some = np.append((whose[1:] == whose[:-1]) & (time[1:] > time[:-1]), False) & (largest > NOTHING)
    after = np.flatnonzero(some) + 1
    return whose[some], time[some], time[after], largest[some]


def _contended_clock(changes: Changes, windows: list[tuple[float, float]]) -> Callable[[FloatArray], FloatArray]:
    """Return a function that gives the contended time until a time."""
    times = changes.times
    length = np.diff(times, append=times[-1] if times.size else 0.0)
    length[-1:] = windows[-1][1] - times[-1:]
    total = np.concatenate([[0.0], np.cumsum(np.where(changes.waits, np.maximum(length, 0.0), 0.0))])
    ends = np.append(times, max(windows[-1][1], times[-1] if times.size else 0.0) + 1.0)
    return lambda at: np.asarray(np.interp(at, ends, total))
