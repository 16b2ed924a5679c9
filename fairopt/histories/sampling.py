"""How many random moments are judged: as many as were asked for, or until the averages are known well enough.

By default every change is judged if all of them together have at most ``FEW`` streams of tasks. Of a longer log 100 moments are judged
first. Each further round doubles them: it divides each part of the time into halves, keeps the moment of the one half, and draws one of the
other (`fairopt.histories.changes.choose_moments`). So no moment is judged in vain. The rounds end when the standard errors of the shortfall
and of the surplus of all owners together are both at most

    ERROR of what was due in the time in which work waited,

or when the next round would have more than ``WORK`` streams of tasks in all its moments, or when every change is judged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fairopt.clusters.clock import nice_step
from fairopt.files.stores import Store
from fairopt.histories.changes import Changes, Moments, choose_moments, streams_at_once
from fairopt.histories.entitlement import Entitlement
from fairopt.histories.judging import Sums, judge, request_of
from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray, IntArray
from fairopt.models import Notion
from fairopt.processes.crew import Crew
from fairopt.wording import percent, plural

__all__ = ["ERROR", "FEW", "LEAST", "WORK", "Judged", "judge_in_rounds"]

ERROR = 0.005  # of what was due: the standard errors at which the rounds end, unless the caller says how many moments
WORK = 80_000  # streams in all moments that are judged, at most
FEW = 8_000  # streams in all changes, up to which every change is judged
LEAST = 100  # moments of the first round
_BINS = 200  # parts of the picture


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The moments of the last round, what they add up to, and the times between which it is added.

    Attributes
    ----------
    moments : Moments
    sums : Sums
        With the allocations of all rounds counted.
    number : int
        Of ``moments``, so many were judged; fewer than all if the work was stopped.
    edges, bin_edges, hour_edges : arrays
        Times at which hours, windows and parts of the picture end; the parts of the picture alone; the hours alone.
    hour_of : int array
        The hour of the day from each of ``hour_edges`` on.
    most : int
        The most moments of the last round; 0: every change.
    note : str
        Why there were no more rounds, in a sentence; empty if the caller said how many moments, or every change is judged.
    """

    moments: Moments
    sums: Sums
    number: int
    edges: FloatArray
    bin_edges: FloatArray
    hour_edges: FloatArray
    hour_of: IntArray
    most: int
    note: str

    @property
    def is_whole(self) -> bool:
        """Were all moments judged?"""
        return self.number == self.moments.change.size


def judge_in_rounds(
    setting: Setting,
    changes: Changes,
    windows: list[tuple[float, float]],
    notion: Notion,
    moments: int | None,
    seed: int,
    *,
    store: Store | None,
    crew: Crew,
    done: Callable[[int, int], object],
    stopped: Callable[[], bool],
) -> Judged:
    """Judge random moments, or all changes.

    Parameters
    ----------
    moments : int, optional
        The most moments; 0: every change; None: as many as the averages need.
    store, crew
        As `fairopt.histories.judging.judge` takes them.
    done, stopped
        As `fairopt.history` takes them.
    """
    exact: list[Entitlement] = []  # of all rounds, which remembers the allocations of earlier ones

    def entitlement() -> Entitlement:
        if not exact:
            exact.append(Entitlement(setting, notion))
        return exact[0]

    def judged(most: int, halvings: int) -> Judged:
        number, contended = most << halvings, int(changes.waits.sum())
        parts = _BINS if number == 0 or number >= contended else min(_BINS, max(number // 4, 1))  # some moments in each
        edges, bin_edges = _edges(setting, windows, parts)
        chosen = choose_moments(changes, windows, edges, most, seed, halvings)
        hour_edges, hour_of = setting.log.clock.hour_edges(edges[0], edges[-1])
        hours = hour_of[np.clip(np.searchsorted(hour_edges, chosen.time, side="right") - 1, 0, None)]
        bins = np.clip(np.searchsorted(bin_edges, chosen.time, side="right") - 1, 0, bin_edges.size - 2)
        request = "" if store is None else request_of(setting, repr(notion), windows, (most, halvings, seed, _BINS))
        with contextlib.nullcontext() if store is None else store.writing(request, "history"):
            sums, so_many = judge(
                setting,
                changes,
                chosen,
                entitlement if crew.alone else lambda: Entitlement(setting, notion),
                bins,
                hours,
                (len(windows), bin_edges.size - 1),
                store=store,
                request=request,
                crew=crew,
                done=lambda k: done(k, chosen.change.size),
                stopped=stopped,
            )
        return Judged(chosen, sums, so_many, edges, bin_edges, hour_edges, hour_of, number, "")

    if moments is not None:
        return judged(moments, 0)
    streams = max(streams_at_once(setting, changes), 1.0)
    if streams * changes.waits.sum() <= FEW:
        return judged(0, 0)
    most = WORK / streams
    halvings, found = 0, judged(LEAST, 0)
    while found.is_whole and not found.moments.exact.all():
        if _is_known(setting, found.sums):
            told = f"{percent(ERROR)} of what was due"
            return replace(found, note=f"moments were added until the standard errors of all shortfall and surplus were at most {told}")
        if 2 * found.most > most:
            return replace(
                found,
                note=f"after {plural(found.number, 'moment')} the standard error of all shortfall or surplus is still above "
                f"{percent(ERROR)} of what was due; more moments make it smaller (moments=, --moments)",
            )
        halvings, before = halvings + 1, found.sums.facts
        found = judged(LEAST, halvings)
        found.sums.facts[1] += before[1]
        found.sums.facts[2] = max(found.sums.facts[2], before[2])
    return found


def _is_known(setting: Setting, sums: Sums) -> bool:
    """Are both standard errors at most ``ERROR`` of what was due while work waited?"""
    errors = np.sqrt(sums.squares[:, -1].sum(axis=0))
    due = float(setting.shares(setting.tasks.work_of(sums.due)).sum())
    return bool((errors <= ERROR * due).all())


def _edges(setting: Setting, windows: list[tuple[float, float]], parts: int) -> tuple[FloatArray, FloatArray]:
    """Return the times at which hours, windows and parts of the picture end, and the latter alone."""
    first, last = windows[0][0], windows[-1][1]
    zero = setting.log.clock.zero or 0.0
    step = nice_step(last - first, parts)
    start = np.floor((first + zero) / step) * step - zero
    bins = np.arange(start, last + step, step)
    bins = bins[: int(np.searchsorted(bins, last)) + 1]
    hours, _ = setting.log.clock.hour_edges(first, last)
    every = np.unique(np.concatenate([bins, hours, *windows]))
    return every, bins
