"""Which waiting jobs start now.

*In order* (`start_in_order`): the first job starts if it fits; one that does not fit blocks all behind it. A job that only a limit of its
queue holds back blocks nobody.

*EASY backfill*: the first job that does not fit has a reservation. By the estimates, the *shadow time* is when it can start at the
earliest, as running tasks end; then it takes the first servers where it fits. A later job starts now, in order, if it

    fits into what is free and ends by the shadow time, by its estimate, or
    fits into what is free and what the reservation leaves free at the shadow time.

A task that has run for longer than its estimate is expected to end now.

Sources: D. Lifka, The ANL/IBM SP scheduling system (JSSPP 1995); A. Mu'alem and D. Feitelson, Utilization, predictability, workloads, and
user runtime estimates in scheduling the IBM SP2 with backfilling (IEEE TPDS 2001).

*The pie* (`spin_the_pie`): users in the order of their effective priority, the lowest first. In a spin, what is free of the unit
(HTCondor's cores) is divided among users with waiting tasks in inverse proportion to these priorities; each user's jobs, in order of
submission, start while they are within the user's slice, and the first task or gang of a user in a spin always may. Tasks that take none of
the unit use up no slice. Spins go on until one starts nothing. A job that does not fit is passed over. Users of a queue with a guarantee do
so among themselves first (`fairopt.simulation.baselines.quotas`).

Source: HTCondor manual, User Priorities and Negotiation (the pie spin and the pie slice).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.simulation.baselines.backfill_kernel import END
from fairopt.simulation.baselines.pool import Place, cut, part

if TYPE_CHECKING:
    from fairopt.simulation.baselines.events import JobRun
    from fairopt.simulation.baselines.quotas import Group

__all__ = ["spin_the_pie", "start_in_order"]


def start_in_order(run: JobRun, ranks: Callable[[], IntArray] | None, backfill: bool, now: float) -> None:
    """Start waiting jobs in the order of the ranks of their users, (users,), and of submission; None: of submission alone."""
    if ranks is None and not _start_first(run, backfill, now):
        return
    left = run.waiting()
    fits = run.may_fit(left)
    if ranks is not None and fits.any():
        order = np.argsort(ranks()[run.owner[left]], kind="stable")
        left, fits = left[order], fits[order]
    while fits.any():
        ahead = int(np.argmax(fits))
        if ahead:
            blocked = _first_blocked(run, left[:ahead])
            if blocked is not None:
                if backfill:
                    _backfill(run, int(left[blocked]), left[blocked:][fits[blocked:]], now)
                return
        job = int(left[ahead])
        if not _start_what_fits(run, job, now):
            if backfill:
                _backfill(run, job, left[ahead:][fits[ahead:]], now)
            return
        left = left[ahead + 1 :]
        fits = run.may_fit(left)


def _start_first(run: JobRun, backfill: bool, now: float) -> bool:
    """Start the jobs that were submitted first, as long as they fit; say whether anything else may start."""
    while (job := run.first_waiting()) is not None:
        if not run.this_may_fit(job):
            return run.is_anything_free
        if not _start_what_fits(run, job, now):
            if backfill and run.is_anything_free:
                _backfill(run, job, run.waiting(), now)
            return False
        if run.first_waiting() == job:  # a limit of its queue holds the rest of it back
            return True
    return False


def _first_blocked(run: JobRun, jobs: IntArray) -> int | None:
    """Return the position of the first of these jobs, none of which fits, that no limit of a queue holds back."""
    for position, job in enumerate(jobs.tolist()):
        if not run.is_held_back(job):
            return position
    return None


def _start_what_fits(run: JobRun, job: int, now: float) -> bool:
    """Start the tasks of a job that fit; say whether the jobs behind it may start, too."""
    stream, wanted = int(run.stream[job]), run.tasks_left(job)
    place = run.pool.place(stream, wanted)
    if place.total and (not run.gang[job] or place.total == wanted):
        run.start(job, place, now)
    return place.total == wanted or run.is_held_back(job)


def _backfill(run: JobRun, head: int, jobs: IntArray, now: float) -> None:
    """Let later tasks start that do not delay the first job that does not fit, or its first task."""
    if run.is_plain:
        for job, place in run.beside(head, jobs, now):
            run.start(job, place, now)
        return
    pool = run.pool
    jobs = jobs[jobs != head]
    jobs = jobs[run.may_fit(jobs)]
    if not jobs.size:  # no reservation is needed
        return
    shadow, spare, spare_shared = _reservation(run, head, now)
    both, both_shared = np.minimum(pool.room, spare), np.minimum(pool.shared_room, spare_shared)
    jobs = _candidates(run, jobs, pool.open_total(both, both_shared), shadow, now)
    while jobs.size:
        job, rest = int(jobs[0]), jobs[1:]
        stream, wanted = int(run.stream[job]), run.tasks_left(job)
        late = now + run.expected_on(job) > shadow
        if late.ndim:
            room = np.where(late[:, None], both, pool.room)
            place = pool.place(stream, wanted, room, late=late, beside=spare_shared)
        else:
            place = pool.place(stream, wanted, both, both_shared) if late else pool.place(stream, wanted)
        if not place.total:  # nor does a task of a job that is alike, until room is given back, which is after this pass
            alike = run.shape[rest] == run.shape[job]
            rest = rest[~(alike & (now + run.soonest[rest] > shadow) if late.any() else alike)]
        jobs = rest
        if place.total and (not run.gang[job] or place.total == wanted):
            run.start(job, place, now)
            if late.any():
                beside = part(place, late[place.servers]) if late.ndim else place
                spare[beside.servers] -= pool.of_servers(stream, beside)
                spare_shared -= pool.of_shared(stream, beside)
            both, both_shared = np.minimum(pool.room, spare), np.minimum(pool.shared_room, spare_shared)
            jobs = _candidates(run, jobs, pool.open_total(both, both_shared), shadow, now)


def _candidates(run: JobRun, jobs: IntArray, beside: FloatArray, shadow: float, now: float) -> IntArray:
    """Return the jobs that would start now if all servers were one: those that end in time, and those for which there is room beside."""
    return jobs[run.may_fit(jobs) & ((now + run.soonest[jobs] <= shadow) | run.may_fit(jobs, beside))]


def _reservation(run: JobRun, head: int, now: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the shadow time of a job, inf if by the estimates it never fits, and the room beside it then, of servers and of the cluster.

    The rooms are (servers, resources) and (shared,).
    """
    pool, stream = run.pool, int(run.stream[head])
    wanted = run.tasks_left(head) if run.gang[head] else 1
    room, shared = pool.room.copy(order="F"), pool.shared_room.copy()
    table = run.running.table
    times, held = np.maximum(table[:, END], now), pool.held(table)
    amounts = held.cumsum(axis=0)
    last = np.append(times[1:] > times[:-1], True)[: times.size]  # of the tasks that end at one time
    needed = wanted * pool.demands[stream] - pool.slack - pool.total_free
    done = 0
    for position in np.flatnonzero(last & (amounts >= needed).all(axis=1)).tolist():
        pool.released(room, table[done : position + 1], held[done : position + 1])
        done = position + 1
        free = shared + amounts[position, room.shape[1] :]
        own = pool.place(stream, wanted, room, free, limits=False)
        if own.total >= wanted:
            room[own.servers] -= pool.of_servers(stream, own)
            return float(times[position]), room, free - pool.of_shared(stream, own)
    return np.inf, room, shared


def spin_the_pie(run: JobRun, priority: FloatArray, now: float, group: Callable[[], Group] | None = None) -> None:
    """Start tasks in spins; ``priority`` is the effective priority of each user, (users,).

    With a ``group``, a function that returns the group as it is now, only its users take part, and only within its quota.
    """
    assert run.unit is not None
    pool, order = run.pool, np.argsort(priority, kind="stable")
    while True:
        own = None if group is None else group()
        jobs = run.waiting()
        jobs = jobs if own is None else jobs[own.users[run.owner[jobs]]]
        asking = np.unique(run.owner[jobs])
        jobs = jobs[run.may_fit(jobs)]
        if not jobs.size:
            return
        claims = np.zeros(priority.size)
        with np.errstate(divide="ignore"):
            claims[asking] = np.where(np.isinf(priority[asking]), 0.0, 1.0 / priority[asking])
        pie = pool.free_amount(run.unit)
        if own is not None:
            pie = min(pie, own.part * float(pool.open_capacity[run.unit]))
        slices = pie * claims / claims.sum() if claims.any() else np.full(priority.size, pie)
        served = asking[claims[asking] > 0] if claims.any() else asking
        started = False
        for user in order[np.isin(order, served)].tolist():
            started |= _serve(run, jobs[run.owner[jobs] == user], float(slices[user]), now, group)
        if not started:
            return


def _serve(run: JobRun, jobs: IntArray, slice_: float, now: float, group: Callable[[], Group] | None) -> bool:
    """Start jobs of one user within its slice; say whether any task started."""
    given, started, pool = 0.0, False, run.pool
    for job in jobs.tolist():
        stream, wanted = int(run.stream[job]), run.tasks_left(job)
        least = wanted if run.gang[job] else 1
        allowed = wanted if group is None else min(wanted, group().most(pool.demands[stream]))
        if allowed < least:
            continue
        place = pool.place(stream, allowed)
        if place.total < least:
            continue
        within = _within(run.worth[stream, pool.kind[place.servers]], place, slice_ - given)
        if not given and slice_ > 0:
            within = max(within, least)
        if within < least:
            return started
        more_fit = within < place.total
        if more_fit:
            place = cut(place, within)
        run.start(job, place, now)
        given += run.worth_of(stream, place)
        started = True
        if more_fit:
            return True
    return started


def _within(worth: FloatArray, place: Place, left: float) -> int:
    """Return how many tasks of a place, the first ones, are worth at most what is left; ``worth`` of a task on each of its servers."""
    if (worth == worth[0]).all():
        return int(left / worth[0] * (1 + FITS)) if worth[0] > 0 else place.total
    sums = np.repeat(worth, place.tasks).cumsum()
    return int(np.searchsorted(sums, max(left, 0.0) * (1 + FITS), side="right"))
