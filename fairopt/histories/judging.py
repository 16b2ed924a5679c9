"""Sums over time of what was due and not given, and of what was given beyond what was due.

With e[n](t) the dominant share that the exact allocation gives owner n, and r[n](t) that which it holds,

    shortfall[n] = integral of max(e[n] - r[n], 0) dt,    surplus[n] = integral of max(r[n] - e[n], 0) dt,

so that received = entitled - shortfall + surplus. The exact allocation gives no more than an owner asks for, so work of an owner with a
shortfall waits. What is received is integrated at every change.

The moments are judged in parts. The sums of a part are written as one file, atomically, so that a run that is stopped goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairopt.files.stores import Arrays, Store, packed
from fairopt.histories.changes import Changes, Moments
from fairopt.histories.entitlement import Entitlement
from fairopt.histories.envy import envy_at
from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import NOTHING
from fairopt.processes.crew import Crew

__all__ = ["Sums", "judge", "request_of"]

PART = 200  # moments; even, as neighbours estimate the error
_NAMES = ("owners", "queues", "hours", "bins", "squares", "due", "facts")


@dataclass(slots=True)
class Sums:
    """Sums over contended time, in seconds.

    Attributes
    ----------
    owners : array (windows, owners, 5)
        Shortfall and surplus in shares, in tasks (in work, where speeds differ), and envy.
    queues : array (windows, groups, 2)
        Shortfall and surplus of queues in shares: of what their owners have together.
    hours : array (24, owners, 2)
    bins : array (bins, owners, 2)
    squares : array (windows, owners + 1, 2)
        Squared errors of shortfall and surplus, of each owner and of their total.
    due : array (streams, rows)
        The exact allocation.
    facts : array (3,)
        Moments, allocations that were computed, and the worst residual of a certificate.
    """

    owners: FloatArray
    queues: FloatArray
    hours: FloatArray
    bins: FloatArray
    squares: FloatArray
    due: FloatArray
    facts: FloatArray

    @classmethod
    def empty(cls, setting: Setting, windows: int, bins: int) -> Sums:
        """Return sums of nothing."""
        number = len(setting.owners)
        return cls(
            owners=np.zeros((windows, number, 5)),
            queues=np.zeros((windows, len(setting.groups), 2)),
            hours=np.zeros((24, number, 2)),
            bins=np.zeros((bins, number, 2)),
            squares=np.zeros((windows, number + 1, 2)),
            due=np.zeros((setting.n_streams, setting.cluster.n_servers)),
            facts=np.zeros(3),
        )

    def add(self, other: Sums) -> None:
        """Add the sums of a part."""
        for name in _NAMES[:-1]:
            getattr(self, name).__iadd__(getattr(other, name))
        self.facts[:2] += other.facts[:2]
        self.facts[2] = max(self.facts[2], other.facts[2])

    def to_bytes(self) -> bytes:
        """Return the sums as a file."""
        return packed({name: getattr(self, name) for name in _NAMES}, compressed=True)

    @classmethod
    def read(cls, store: Store, part: str, like: Sums) -> Sums | None:
        """Return the sums of a part of a store; None if there is none, or it is damaged."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            held: Arrays = store.arrays(part) or {}
            arrays = {name: held[name].astype(float, casting="safe") for name in _NAMES}
            if all(each.shape == getattr(like, name).shape and np.isfinite(each).all() for name, each in arrays.items()):
                return cls(**arrays)
        return None


def request_of(setting: Setting, notion: str, windows: list[tuple[float, float]], settings: tuple[object, ...]) -> str:
    """Return a digest of everything that the sums depend on."""
    log = setting.log
    mark = hashlib.sha256(repr((notion, windows, settings, setting.labels, setting.owners, setting.home, setting.queues)).encode())
    mark.update(repr((setting.cluster.shared, [limit.to_dict() for limit in setting.limits.limits])).encode())
    for array in (
        log.tasks,
        log.submit,
        log.start,
        log.end,
        log.row,
        setting.stream,
        setting.tasks.kinds.demands,
        setting.tasks.kinds.kind_of,
        np.ones(0) if setting.tasks.speeds is None else setting.tasks.speeds,
        setting.eligibility,
        setting.weights,
    ):
        mark.update(np.ascontiguousarray(array).tobytes())
    for array in (setting.cluster.capacities, setting.cluster.counts, setting.stream_weights, setting.guarantees):
        mark.update(np.ascontiguousarray(array).tobytes())
    return mark.hexdigest()[:16]


class _Situation:
    """What streams ask for and hold, from one moment to the next."""

    def __init__(self, setting: Setting, changes: Changes) -> None:
        self.setting, self.changes = setting, changes
        rows = setting.cluster.n_servers
        self.wanted = np.zeros(setting.n_streams)
        self.held = np.zeros((setting.n_streams, rows + 1))  # the last column: on an unknown row
        self._row = np.where(setting.log.row < 0, rows, setting.log.row)
        self._event = 0

    def at(self, change: int) -> tuple[FloatArray, FloatArray]:
        """Return what is asked for, (streams,), and held, (streams, rows + 1), after a change; changes only go on."""
        changes, log = self.changes, self.setting.log
        until = int(np.searchsorted(changes.at, change, side="right"))
        if until > self._event:
            here = slice(self._event, until)
            record = changes.record[here]
            stream, tasks = self.setting.stream[record], log.tasks[record]
            np.add.at(self.wanted, stream, changes.wanted[here] * tasks)
            np.add.at(self.held, (stream, self._row[record]), changes.held[here] * tasks)
            self._event = until
        self.wanted[np.abs(self.wanted) < NOTHING] = 0.0
        self.held[np.abs(self.held) < NOTHING] = 0.0
        return self.wanted, self.held


def judge(
    setting: Setting,
    changes: Changes,
    moments: Moments,
    entitlement: Callable[[], Entitlement],
    bins: IntArray,
    hours: IntArray,
    sizes: tuple[int, int],
    *,
    store: Store | None,
    request: str,
    crew: Crew,
    done: Callable[[int], object],
    stopped: Callable[[], bool],
) -> tuple[Sums, int]:
    """Judge all moments; return the sums, and how many moments they are of.

    Parameters
    ----------
    entitlement : function
        Makes what computes allocations, when the first is needed.
    bins, hours : int arrays (pieces,)
        The part of the picture and the hour of the day of each piece.
    sizes : (int, int)
        Windows, and parts of the picture.
    store : Store, optional
        Where the sums of parts are kept.
    crew : Crew
        Who judges the parts. Several workers compute the allocations of each part afresh, which is the same to rounding.
    done, stopped : functions
        Called with the number of judged moments; asked between moments, True ends the work after the last whole part.
    """
    total = Sums.empty(setting, *sizes)
    situation, exact = _Situation(setting, changes), None
    # A part ends where a window ends, or after so many moments.
    first_piece = np.searchsorted(moments.moment, np.arange(moments.change.size + 1))
    window = moments.window[first_piece[:-1]]
    begins = np.flatnonzero(np.concatenate([[True], window[1:] != window[:-1]])) if window.size else np.empty(0, int)
    ends = np.append(begins[1:], window.size)[: begins.size]
    parts = [(a, min(a + PART, b)) for start, b in zip(begins.tolist(), ends.tolist(), strict=True) for a in range(start, b, PART)]
    names = [f"{request}-{number:05d}.npz" for number in range(len(parts))]
    ahead: dict[int, Sums] = {}
    if not crew.alone:
        ahead = _ahead(setting, changes, moments, entitlement, parts, names, first_piece, bins, hours, sizes, store, crew, done, stopped)
    for number, (first, last) in enumerate(parts):
        part = names[number]
        kept = ahead.pop(number, None)
        if kept is None and store is not None:
            kept = Sums.read(store, part, total)
        if kept is None:
            exact = entitlement() if exact is None else exact
            kept = _judge_part(setting, situation, moments, exact, (first, last), first_piece, bins, hours, sizes, done, stopped)
            if kept is None:
                return total, first
            if store is not None:
                store.write(part, kept.to_bytes())
        total.add(kept)
        done(last)
    return total, moments.change.size


def _ahead(
    setting: Setting,
    changes: Changes,
    moments: Moments,
    entitlement: Callable[[], Entitlement],
    parts: list[tuple[int, int]],
    names: list[str],
    first_piece: IntArray,
    bins: IntArray,
    hours: IntArray,
    sizes: tuple[int, int],
    store: Store | None,
    crew: Crew,
    done: Callable[[int], object],
    stopped: Callable[[], bool],
) -> dict[int, Sums]:
    """Judge parts on workers, those that the store lacks; return their sums, but for those that were not done when all was stopped."""

    def judged(part: tuple[int, int]) -> Sums:
        situation = _Situation(setting, changes)
        exact = entitlement()
        found = _judge_part(setting, situation, moments, exact, part, first_piece, bins, hours, sizes, lambda moment: None, lambda: False)
        assert found is not None  # nothing stops it
        return found

    like = Sums.empty(setting, *sizes)
    todo = [number for number in range(len(parts)) if store is None or Sums.read(store, names[number], like) is None]
    count = sum(last - first for first, last in parts) - sum(parts[number][1] - parts[number][0] for number in todo)
    sums: dict[int, Sums] = {}
    with contextlib.closing(crew.each(judged, [parts[number] for number in todo])) as results:
        for position, found in results:
            number = todo[position]
            if store is None:
                sums[number] = found
            else:
                store.write(names[number], found.to_bytes())
            count += parts[number][1] - parts[number][0]
            done(count)
            if stopped():
                break
    return sums


def _judge_part(
    setting: Setting,
    situation: _Situation,
    moments: Moments,
    exact: Entitlement,
    part: tuple[int, int],
    first_piece: IntArray,
    bins: IntArray,
    hours: IntArray,
    sizes: tuple[int, int],
    done: Callable[[int], object],
    stopped: Callable[[], bool],
) -> Sums | None:
    first, last = part
    number, owner = len(setting.owners), setting.owner
    rows = setting.cluster.n_servers
    values, of_queues = np.zeros((last - first, number, 5)), np.zeros((last - first, len(setting.groups), 2))
    sums = Sums.empty(setting, *sizes)
    pieces = slice(int(first_piece[first]), int(first_piece[last]))
    seconds = np.bincount(moments.moment[pieces] - first, weights=moments.length[pieces], minlength=last - first)
    solved = exact.solved
    placed = setting.log.placed
    for k in range(first, last):
        if stopped():
            return None
        wanted, held = situation.at(int(moments.change[k]))
        x = exact.at(wanted)
        sums.due += seconds[k - first] * x
        given, has = setting.tasks.work_of(x), setting.tasks.work_of(held)
        share, own, scale = setting.shares(given), setting.shares(has), setting.shares(wanted)
        tasks = np.bincount(owner, weights=given - has, minlength=number)
        asked = np.bincount(owner, weights=wanted, minlength=number)
        gap = share - own
        gap[np.abs(gap) <= NOTHING * scale] = 0.0
        tasks[np.abs(tasks) <= NOTHING * asked] = 0.0
        value = values[k - first]
        value[:, 0], value[:, 1] = np.maximum(gap, 0.0), np.maximum(-gap, 0.0)
        value[:, 2], value[:, 3] = np.maximum(tasks, 0.0), np.maximum(-tasks, 0.0)
        if placed:
            value[:, 4] = envy_at(setting, wanted, held[:, :rows])
        together = setting.members @ gap
        of_queues[k - first, :, 0], of_queues[k - first, :, 1] = np.maximum(together, 0.0), np.maximum(-together, 0.0)
        if (k - first) % 10 == 9:
            done(k)
    moment, length, window = moments.moment[pieces] - first, moments.length[pieces], int(moments.window[pieces][0])
    sums.owners[window] = np.tensordot(seconds, values, 1)
    sums.queues[window] = np.tensordot(seconds, of_queues, 1)
    weighted = length[:, None, None] * values[moment][:, :, :2]
    np.add.at(sums.hours, hours[pieces], weighted)
    np.add.at(sums.bins, bins[pieces], weighted)
    if not moments.exact[window]:
        two = values[:, :, :2]
        every = seconds[:, None, None] * np.concatenate([two, two.sum(axis=1, keepdims=True)], axis=1)
        even = len(every) // 2 * 2
        sums.squares[window] = ((every[0:even:2] - every[1:even:2]) ** 2).sum(axis=0)
        if even < len(every) and len(every) > 1:
            sums.squares[window] += (every[-1] - every[-2]) ** 2 / 2
    sums.facts[:] = last - first, exact.solved - solved, exact.residual
    return sums
