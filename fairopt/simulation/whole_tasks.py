"""Whole tasks over time, greedily: progressive filling continues at every event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.aggregation import number_distinct
from fairopt.instance.by_server import as_given
from fairopt.models import ShareNotion
from fairopt.program.events import Change, Work
from fairopt.scheduling import Baseline, check_single_servers, filling_of, planned, queues_of, server_limits
from fairopt.simulation.keeping import Keeper
from fairopt.simulation.streams import Streams
from fairopt.solvers import Placement, run_events
from fairopt.solving import checked

__all__ = ["run_whole_tasks"]

_MOST_TASKS = 100_000_000  # a bound on memory


def run_whole_tasks(
    streams: Streams,
    plan: Mapping[str, Any],
    until: float,
    done: Callable[[float, int], object],
    stopped: Callable[[], bool],
    keeper: Keeper,
) -> tuple[FloatArray, IntArray, float, BoolArray]:
    """Return four results of a greedy simulation; ``plan`` holds arguments of `fairopt.schedule`.

    They are the start of each task (nan: never started), its single server (-1: none), the time up to which the simulation ran, and whether
    the tasks of each stream fit on no server.
    """
    placement, _, notion = planned(**plan)
    assert not isinstance(placement, Baseline)  # it is fluid, and asked at every event
    for word, usual in (("stop", "exhausted"), ("record", False)):
        if plan.get(word, usual) != usual:
            raise Unsupported(f"{word} has no meaning over time; leave it out")
    if streams.trace.n_tasks > _MOST_TASKS:
        raise Unsupported(
            f"the trace has {streams.trace.n_tasks:,} tasks, and at most {_MOST_TASKS:,} can be followed one by one; "
            "take a part of it, or an exact scheduler, which divides them"
        )
    if streams.trace.gangs.any():
        raise Unsupported(
            f'job "{streams.trace.jobs[int(np.argmax(streams.trace.gangs))]}" is a gang, all of whose tasks start at one instant, and '
            'progressive filling gives one task at a time; use "fifo", "backfill", "fairtree" or "priority", or say of no job that it is '
            "a gang"
        )
    check_single_servers(streams.instance)
    ties = plan.get("ties", "index")
    prepared = placement.prepare(streams.instance) if isinstance(placement, Placement) else streams.instance
    rank = _rank(streams, ties)
    alike, first = _alike(streams, prepared, rank)
    instance = prepared if first.size == prepared.n_users else _part(prepared, first)
    notion = notion.restricted(streams.owner[first])
    chosen, sharing = checked(instance, notion, None, {})
    owners, held = streams.owners, streams.instance if first.size == streams.instance.n_users else _part(streams.instance, first)
    if owners is None and isinstance(chosen, ShareNotion) and chosen.last(instance).any():
        owners = _flat(streams)
    queues = None if owners is None else queues_of(owners, instance, chosen, streams.owner[first], held)
    each_server = None if owners is None else server_limits(owners, streams.owner[first], held)
    filling, too_large = filling_of(instance, chosen, sharing, ties, queues=queues, each_server=each_server)
    too_large = (too_large | ~instance.servable)[alike]
    takes_part = ~too_large[streams.stream]
    events = (streams.changes != Change.SUBMIT) | takes_part[np.where(streams.changes == Change.SUBMIT, streams.subjects, 0)]
    work = Work(
        stream=np.where(takes_part, alike[streams.stream], -1),
        tasks=streams.trace.tasks,
        durations=streams.trace.durations,
        owner=streams.owner[first],
        rank=rank[first],
        present=streams.present,
        servers=streams.cluster.counts.astype(np.int64),
        times=streams.times[events],
        changes=streams.changes[events],
        subjects=streams.subjects[events],
        amounts=streams.amounts[events],
        speeds=_speeds(streams.instance, first),
    )
    start, server, known = run_events(
        *(filling, work, placement),
        random_ties=ties == "random",
        seed=int(plan.get("seed", 0)),
        until=until,
        done=done,
        stopped=stopped,
        begun=keeper.found,
        keep=None if keeper.path is None else keeper.offer,
    )
    return start, server, known, too_large


def _speeds(instance: Instance, streams: IntArray) -> FloatArray | None:
    """Return the speeds of streams on rows of servers, 1 where no task runs; None where nothing is said."""
    given = instance.speeds_given
    return None if given is None else np.where(given[streams] > 0, given[streams], 1.0)


def _flat(streams: Streams) -> Instance:
    """Return the instance of the owners where they are a flat list; of each the demands of its first stream."""
    instance = streams.instance
    by_kind = instance.demands_by_kind
    demands = np.zeros((len(streams.users), *by_kind.shape[1:]))
    owners, first = np.unique(streams.owner, return_index=True)
    demands[owners] = by_kind[first]
    return Instance(
        instance.capacities,
        as_given(demands, instance.kind_of),
        counts=instance.counts,
        weights=streams.weights,
        users=streams.users,
        servers=instance.servers,
        resources=instance.resources,
    )


def _alike(streams: Streams, prepared: Instance, rank: IntArray) -> tuple[IntArray, IntArray]:
    """Number the groups of streams that the placement cannot tell apart, and return the first stream of each group.

    A placement with slots makes many demands equal. Merging such streams saves time, which grows with the number of waiting streams. The
    schedule is the same: jobs of one stream start in the order of submission, and so do jobs of equal streams of one owner.
    """
    numbers = np.column_stack([streams.owner, rank, _flattened(prepared.demands_by_kind), prepared.tasks])
    if streams.owners is not None:  # amounts of queues, of limits and of the cluster are of the resources
        numbers = np.column_stack([numbers, _flattened(streams.instance.demands_by_kind)])
    if streams.instance.speeds_given is not None:
        numbers = np.column_stack([numbers, streams.instance.speeds_given])
    alike = number_distinct([numbers, np.packbits(prepared.eligibility, axis=1)])
    return alike, np.unique(alike, return_index=True)[1]


def _flattened(by_kind: FloatArray) -> FloatArray:
    return by_kind.reshape(by_kind.shape[0], -1)


def _part(instance: Instance, users: IntArray) -> Instance:
    """Return the instance restricted to some of its users."""
    return Instance(
        instance.capacities,
        instance.demands_on(users),
        speeds=instance.speeds_on(users),
        weights=instance.weights[users],
        eligibility=instance.eligibility[users],
        counts=instance.counts,
        shared=instance.shared,
        tasks=instance.tasks[users],
        users=[instance.users[n] for n in users],
        servers=instance.servers,
        units=instance.units,
        resources=instance.resources,
    )


def _rank(streams: Streams, ties: str) -> IntArray:
    """Return the rank of each stream in ties: the order of users, or the largest demand of a task first."""
    if ties != "largest-demand":
        return streams.owner
    instance = streams.instance
    largest = safe_ratio(instance.demands_by_kind.max(axis=1), instance.total_capacity).max(axis=1)
    part = np.array([float(f"{value:.12g}") for value in largest])  # as in `schedule`: values that differ by rounding are equal
    order = np.lexsort((streams.owner, -part))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return rank
