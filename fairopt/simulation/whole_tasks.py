"""Whole tasks over time, greedily: whenever something ends or comes, progressive filling goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fairopt.aggregation import number_distinct
from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.program.events import Change, Work
from fairopt.scheduling import check_single_servers, filling_of, planned
from fairopt.simulation.streams import Streams
from fairopt.solvers import Placement, run_events
from fairopt.solving import checked

__all__ = ["run_whole_tasks"]

_MOST_TASKS = 100_000_000  # each takes some 200 bytes


def run_whole_tasks(
    streams: Streams,
    plan: Mapping[str, Any],
    until: float,
    done: Callable[[float, int], object],
    stopped: Callable[[], bool],
) -> tuple[FloatArray, IntArray, float, BoolArray]:
    """Return start (nan: never) and single server (-1) of each task, up to when that is known, and which streams fit nowhere.

    ``plan`` are arguments of `fairopt.schedule`.
    """
    placement, name, notion = planned(**plan)
    for word, usual in (("stop", "exhausted"), ("record", False)):
        if plan.get(word, usual) != usual:
            raise Unsupported(f"{word} has no meaning over time; leave it out")
    if not isinstance(placement, Placement):
        raise Unsupported(
            f'"{name}" is a function, and the compiled event loop of a simulation knows placements that are rules; '
            'use one of fairopt, such as "best-fit"'
        )
    if streams.trace.n_tasks > _MOST_TASKS:
        raise Unsupported(
            f"the trace has {streams.trace.n_tasks:,} tasks, and at most {_MOST_TASKS:,} can be followed one by one; "
            "take a part of it, or an exact scheduler, which divides them"
        )
    check_single_servers(streams.instance)
    ties = plan.get("ties", "index")
    prepared = placement.prepare(streams.instance)
    rank = _rank(streams, ties)
    alike, first = _alike(streams, prepared, rank)
    instance = prepared if first.size == prepared.n_users else _part(prepared, first)
    notion = notion.restricted(streams.owner[first])
    chosen, sharing = checked(instance, notion, None, {})
    filling, too_large = filling_of(instance, chosen, sharing, ties)
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
    )
    start, server, known = run_events(
        filling, work, placement, random_ties=ties == "random", seed=int(plan.get("seed", 0)), until=until, done=done, stopped=stopped
    )
    return start, server, known, too_large


def _alike(streams: Streams, prepared: Instance, rank: IntArray) -> tuple[IntArray, IntArray]:
    """Number what are one stream in the eyes of the placement, and return the first of each: slots make many demands the same.

    The jobs of one stream are started in the order of their submission, as those of streams of one owner are, so nothing else changes
    than the time that it takes, which grows with the streams that wait.
    """
    numbers = np.column_stack([streams.owner, rank, prepared.demands, prepared.tasks])
    alike = number_distinct([numbers, np.packbits(prepared.eligibility, axis=1)])
    return alike, np.unique(alike, return_index=True)[1]


def _part(instance: Instance, users: IntArray) -> Instance:
    """Return the instance of some of its users."""
    return Instance(
        instance.capacities,
        instance.demands[users],
        weights=instance.weights[users],
        eligibility=instance.eligibility[users],
        counts=instance.counts,
        tasks=instance.tasks[users],
        users=[instance.users[n] for n in users],
        servers=instance.servers,
        resources=instance.resources,
    )


def _rank(streams: Streams, ties: str) -> IntArray:
    """Return the order in which ties are broken: users as they come, or those whose task takes the largest part first."""
    if ties != "largest-demand":
        return streams.owner
    instance = streams.instance
    largest = safe_ratio(instance.demands, instance.total_capacity).max(axis=1)
    part = np.array([float(f"{value:.12g}") for value in largest])  # as `schedule`: what differs by rounding is the same
    order = np.lexsort((streams.owner, -part))
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return rank
