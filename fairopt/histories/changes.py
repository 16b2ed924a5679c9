"""The changes of a log, and the moments at which it is judged.

Between two changes everything stays as it is. While no work waits, everybody has what it asks for, and nothing more is due. So only the
*contended* time, in which work waits, or runs slower than it could elsewhere, needs exact allocations. It is judged at every change if
these are few. Else it is divided into parts of equal length, and a random moment of each part stands for it: an unbiased estimate, with a
standard error from pairs of neighbours (W. G. Cochran, Sampling Techniques, 3rd edition, 1977, section 5A.12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.histories.setting import Setting
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import FITS, WRITTEN
from fairopt.wording import contrast

__all__ = ["Changes", "Moments", "changes_of", "check_capacity", "choose_moments", "integrate", "refuse_excess", "streams_at_once"]

_SOME = 20  # moments at which streams are counted


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """All changes, in order.

    Attributes
    ----------
    times : array (changes,)
        When something changes; each time once.
    record, at : int arrays (events,)
        Records, and the position in ``times`` of each event, in order.
    wanted, held : int8 arrays (events,)
        1, 0 or -1: whether the tasks of the record come to, or leave, what is asked for and what is held.
    waits : bool array (changes,)
        Whether work waits, or runs slower than it could on other servers, from this change to the next.
    """

    times: FloatArray
    record: IntArray
    at: IntArray
    wanted: IntArray
    held: IntArray
    waits: BoolArray


def changes_of(setting: Setting) -> Changes:
    """Return the changes of a log."""
    log = setting.log
    waits, ran = log.submit < log.start, np.isfinite(log.start) & (log.start < log.end)
    number = np.arange(log.submit.size)
    # events: asked for; started; ended, or cancelled
    over = (waits | ran) & np.isfinite(log.end)
    record = np.concatenate([number[waits | ran], number[ran], number[over]])
    time = np.concatenate([log.submit[waits | ran], log.start[ran], log.end[over]])
    wanted = np.concatenate(
        [np.ones(int((waits | ran).sum()), np.int8), np.zeros(int(ran.sum()), np.int8), -np.ones(int(over.sum()), np.int8)]
    )
    held = np.concatenate([np.zeros(int((waits | ran).sum()), np.int8), np.ones(int(ran.sum()), np.int8), -ran[over].astype(np.int8)])
    order = np.lexsort((record, time))
    record, time, wanted, held = record[order], time[order], wanted[order], held[order]
    times, at = np.unique(time, return_inverse=True)
    slower = setting.tasks.slower(setting.stream, log.row, setting.eligibility)[record]
    more = np.where(slower, wanted, wanted.astype(float) - held)
    waiting = np.cumsum(np.bincount(at, weights=more, minlength=times.size))
    return Changes(times, record, np.asarray(at, np.int64), wanted, held, waiting > 0.5)


def check_capacity(setting: Setting, changes: Changes, windows: list[tuple[float, float]]) -> str | None:
    """Return a sentence on the moment at which jobs exceed the capacity of the cluster most; None if they never do.

    By rows of servers where the log says on which servers jobs ran, else in all.
    """
    log, cluster = setting.log, setting.cluster
    if not changes.times.size:
        return None
    inside = np.zeros(changes.times.size, bool)
    after = np.append(changes.times[1:], np.inf)
    for first, last in windows:
        inside |= (changes.times < last) & (after > first)
    event = changes.held != 0
    record, at = changes.record[event], changes.at[event]
    tasks = changes.held[event] * log.tasks[record]
    demands = setting.tasks.taken(setting.stream[record], log.row[record])
    places: list[tuple[str, BoolArray, FloatArray]] = [("the cluster", np.ones(record.size, bool), cluster.total_capacity)]
    if log.placed and cluster.n_servers > 1:
        places += [(f'"{name}"', log.row[record] == i, cluster.row_capacity[i]) for i, name in enumerate(cluster.servers)]
    for name, here, capacity in places:
        for r, resource in enumerate(cluster.resources[: capacity.size]):
            amounts = np.cumsum(np.bincount(at[here], weights=tasks[here] * demands[here, r], minlength=changes.times.size))
            held = np.where(inside, amounts, 0.0)
            worst = int(np.argmax(held))
            if held[worst] > capacity[r] * (1 + WRITTEN) + WRITTEN * demands[:, r].max(initial=0.0):
                used, allowed = contrast(float(held[worst]), float(capacity[r]))
                return f"at {log.clock.shown(changes.times[worst])} jobs hold {used} {resource} of {name}, which has {allowed}"
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """The moments at which contended time is judged, in order.

    Attributes
    ----------
    change : int array (moments,)
        The change after which each moment lies.
    moment, time, length, window : arrays (pieces,)
        Pieces of contended time: the moment that stands for each, a time in it, its length in seconds, its window.
    exact : bool array (windows,)
        Whether every change of the window is judged.
    states : int
        Changes in contended time, of which the moments are all or some.
    """

    change: IntArray
    moment: IntArray
    time: FloatArray
    length: FloatArray
    window: IntArray
    exact: BoolArray
    states: int


def choose_moments(
    changes: Changes, windows: list[tuple[float, float]], edges: FloatArray, moments: int, seed: int, halvings: int = 0
) -> Moments:
    """Choose the moments of windows.

    Parameters
    ----------
    edges : array
        Times at which pieces are cut.
    moments : int
        The most moments; 0 for all changes.
    halvings : int
        How often the parts of the time are halved after that. One half keeps the moment of its part, and the other one has a new one, so
        that each half has a moment at a random time.
    """
    after = np.append(changes.times[1:], np.inf)
    contended = np.flatnonzero(changes.waits)
    pieces = []
    for first, last in windows:
        here = contended[(changes.times[contended] < last) & (after[contended] > first)]
        pieces.append((here, np.maximum(changes.times[here], first), np.minimum(after[here], last)))
    states = np.unique(np.concatenate([np.empty(0, np.int64), *(here for here, _, _ in pieces)])).size
    every = sum(here.size for here, _, _ in pieces)  # a change may reach into the next window, and is judged in both
    most = (moments << halvings) or every
    parts_of = _shared(moments or every, np.array([float((right - left).sum()) for _, left, right in pieces]))
    draws = np.random.default_rng(seed).spawn(len(windows))  # of each window, so that more moments of one change no other
    number, parts, exact = 0, [], []
    chosen: list[IntArray] = []
    for w, (here, left, right) in enumerate(pieces):
        length = right - left
        first_part = max(2, int(parts_of[w])) if here.size else 0
        part = first_part << halvings
        if most >= every or here.size <= part:
            exact.append(True)
            cuts = edges[(edges > left.min(initial=np.inf)) & (edges < right.max(initial=-np.inf))]
            at = np.searchsorted(left, cuts, side="right") - 1
            inside = cuts < right[at] if cuts.size else np.zeros(0, bool)
            begin = np.concatenate([left, cuts[inside]])
            own = np.concatenate([np.arange(here.size), at[inside]])
            order = np.lexsort((begin, own))
            begin, own = begin[order], own[order]
            end = np.where(np.append(own[1:] == own[:-1], False), np.append(begin[1:], 0.0), right[own]) if own.size else begin
            parts.append((own + number, begin, end - begin, np.full(own.size, w)))
            chosen.append(here)
            number += here.size
            continue
        exact.append(False)
        before = np.concatenate([[0.0], np.cumsum(length)])
        within = _random_times(first_part, halvings, draws[w]) * before[-1]
        own = np.clip(np.searchsorted(before, within, side="right") - 1, 0, here.size - 1)
        time = left[own] + (within - before[own])
        parts.append((np.arange(part) + number, time, np.full(part, before[-1] / part), np.full(part, w)))
        chosen.append(here[own])
        number += part
    joined = [np.concatenate([part[k] for part in parts]) if parts else np.empty(0) for k in range(4)]
    return Moments(
        change=np.concatenate(chosen).astype(np.int64) if chosen else np.empty(0, np.int64),
        moment=joined[0].astype(np.int64),
        time=joined[1],
        length=joined[2],
        window=joined[3].astype(np.int64),
        exact=np.array(exact, bool),
        states=states,
    )


def _random_times(parts: int, halvings: int, rng: np.random.Generator) -> FloatArray:
    """Return a random time of each of so many equal parts of the time from 0 to 1, after these were halved so often.

    Each halving keeps all times: a time is in one of the halves of its part, at random, and the other half has a new one.

    >>> three, six = (_random_times(3, halvings, np.random.default_rng(0)) for halvings in (0, 1))
    >>> np.floor(6 * six).tolist(), np.isin(three, six).tolist()
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [True, True, True])
    """
    times = (np.arange(parts) + rng.random(parts)) / parts
    for _ in range(halvings):
        parts *= 2
        taken = np.floor(times * parts)
        taken = np.clip(taken, np.arange(0, parts, 2), np.arange(1, parts, 2))  # on the border: rounding
        other = 4 * np.arange(parts // 2) + 1 - taken
        times = np.sort(np.concatenate([times, (other + rng.random(parts // 2)) / parts]))
    return times


def _shared(number: int, lengths: FloatArray) -> IntArray:
    """Return how many of so many moments each window has, by its contended time; of equal rests, the first ones have one more.

    >>> _shared(10, np.array([1.0, 1.0, 2.0])).tolist()
    [3, 2, 5]
    """
    exact = number * lengths / (lengths.sum() or 1.0)
    whole = np.floor(exact + FITS).astype(np.int64)
    left = round(float(exact.sum())) - int(whole.sum())
    whole[np.argsort(-(exact - whole), kind="stable")[:left]] += 1
    return whole


def streams_at_once(setting: Setting, changes: Changes) -> float:
    """Return how many streams have tasks at once, on average over some moments at which work waits."""
    log, contended = setting.log, changes.times[changes.waits]
    if not contended.size:
        return 0.0
    some = contended[np.linspace(0, contended.size - 1, min(contended.size, _SOME)).astype(int)]
    return float(np.mean([np.unique(setting.stream[(log.submit <= time) & (time < log.end)]).size for time in some]))


def integrate(
    group: IntArray,
    number: int,
    start: FloatArray,
    end: FloatArray,
    amount: FloatArray,
    edges: FloatArray,
    places: Sequence[IntArray],
    sizes: Sequence[int],
) -> list[FloatArray]:
    """Return the integrals over time of what each group has, one array (size, groups) for each of ``places``.

    A record adds its amount from its start to its end. What lies between two edges is added at the place of that period; -1: nowhere.

    >>> integrate(np.array([0, 0]), 1, np.array([0.0, 2.0]), np.array([4.0, 6.0]), np.array([1.0, 3.0]), np.array([0.0, 3.0, 10.0]),
    ...           [np.array([0, 1]), np.array([0, 0])], [2, 1])
    [array([[ 6.],
           [10.]]), array([[16.]])]
    """
    zero = edges[0]
    first, last, at = np.clip(start, zero, edges[-1]) - zero, np.clip(end, zero, edges[-1]) - zero, edges - zero
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(number + 1))
    found = [np.zeros((size, number)) for size in sizes]
    for n in range(number):
        until = np.zeros(edges.size)
        mine = order[bounds[n] : bounds[n + 1]]
        for times, sign in ((first[mine], 1.0), (last[mine], -1.0)):
            sequence = np.argsort(times, kind="stable")
            amounts, begins = amount[mine][sequence], times[sequence]
            count = np.searchsorted(begins, at, side="right")
            sums = np.concatenate([[0.0], np.cumsum(amounts)])
            moments = np.concatenate([[0.0], np.cumsum(amounts * begins)])
            until += sign * (at * sums[count] - moments[count])
        between = np.diff(until)
        for place, into in zip(places, found, strict=True):
            some = place >= 0
            into[:, n] = np.bincount(place[some], weights=between[some], minlength=len(into))
    return found


def refuse_excess(wrong: str | None, lenient: bool, name: str) -> str | None:
    """Refuse a log that holds more than the cluster has, or return a note if that is let through."""
    if wrong is not None and not lenient:
        raise InvalidInstance(
            f"{name}: {wrong}; describe the servers that there were then, or count what is held as it is with lenient=True or --lenient"
        )
    return None if wrong is None else f"{wrong}: more than the exact allocation can give"
