"""The worst case of a schedule: the instance, both allocations, the regret, and a summary of the search."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.analysis.bounds.worst_in_box import WorstCaseInBox
from fairopt.analysis.shortfalls import tasks_in_fractions
from fairopt.analysis.worst_cases.search import WorstCase
from fairopt.instance import FloatArray, Instance
from fairopt.reporting.tables.comparison import regret_columns
from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Column, Table, names, numbers
from fairopt.wording import duration, figure, plural

__all__ = ["worst_case_blocks", "worst_in_box_blocks"]


def worst_case_blocks(worst: WorstCase, seconds: float | None = None, *, exact: bool = False) -> Iterator[Block]:
    """Yield the instance, both allocations, the regret, and a summary of the search; ``exact``: a proof in fractions was asked for."""
    instance, found = worst.instance, worst.regret
    yield Note(f", {'whole' if found.whole else 'divisible'} tasks", f"{worst.name} against {found.notion}")
    yield GAP
    own, best = worst.in_fractions or (worst.schedule.tasks, worst.exact.tasks)
    yield from _allocations(instance, own, best, worst.schedule.certificate.qualifier or "given")
    yield GAP
    yield Table.of(names("regret", [worst.name]), *regret_columns([found]))
    yield GAP
    size = f"{plural(worst.tries, 'instance')} tried, seed {worst.seed}"
    stopped = {"": "", "time limit": ", stopped by the time limit", "interrupted": ", interrupted"}[worst.stopped]
    failed = f", {worst.failed:,} not solved" if worst.failed else ""
    largest, here = figure(worst.found_value, 4), figure(worst.value if worst.proved is None else worst.proved, 4)
    yield f"Largest regret found: {largest} ({size}{stopped}{failed}). Regret of this smaller instance: {here}"
    if worst.proved is not None:
        yield "Proved in fractions: both allocations keep every limit, and the regret is this number."
    elif exact:
        kept = "" if worst.in_fractions is None else " In fractions, both allocations keep every limit."
        yield f"Not proved in fractions: the regret is computed in floating point.{kept}"
    time = "" if seconds is None else f" Time: {duration(seconds)}"
    yield f"A search gives a lower bound: the true worst case may be larger.{time}"


def worst_in_box_blocks(worst: WorstCaseInBox, seconds: float | None = None) -> Iterator[Block]:
    """Yield the worst instance of a box, both allocations, the regret, and both ends of the gap."""
    instance, found = worst.instance, worst.regret
    yield Note(f", {'whole' if found.whole else 'divisible'} tasks", f"{worst.name} against {found.notion}")
    yield GAP
    own: Any = worst.own.tasks
    best: Any = worst.exact.tasks
    if worst.proved is not None:
        own, best = tasks_in_fractions(worst.own), tasks_in_fractions(worst.exact)
    yield from _allocations(instance, own, best, "own")
    yield GAP
    yield Table.of(names("regret", [worst.name]), *regret_columns([found]))
    yield GAP
    value = figure(worst.value if worst.proved is None else worst.proved, 4)
    time = "" if seconds is None else f" Time: {duration(seconds)}"
    stopped = {"": "", "time limit": " The time limit ended the search.", "interrupted": " The search was interrupted."}[worst.stopped]
    number = "regret" if worst.measure == "worst" else f"regret ({worst.measure})"
    if worst.bound is None:
        yield f"Largest {number} found: {value}, in {plural(worst.nodes, 'instance')} tried."
        yield f"A search gives a lower bound: the true worst case may be larger.{stopped}{time}"
        return
    yield f"Largest {number} found: {value}. No instance within the ranges has more than {figure(worst.bound, 4)}."
    waiting = f", {worst.open_parts:,} not yet" if worst.open_parts and worst.stopped else ""
    parts = f" {plural(worst.nodes, 'part')} bounded{waiting}." if worst.nodes else ""
    yield f"{worst.proof}{parts}{stopped}{time}"


def _allocations(instance: Instance, own: Any, best: Any, word: str) -> Iterator[Block]:
    """Yield an instance, and two allocations of it: ``word`` and exact."""
    yield Table.of(names("server", instance.servers), *_of_servers(instance))
    yield GAP
    tasks = (numbers(f"tasks, {name}", placed.sum(axis=1), 4) for name, placed in ((word, own), ("exact", best)))
    yield Table.of(names("user", instance.users), *_of_users(instance), *tasks)
    if instance.differs_by_server:
        yield f"Several numbers in a cell: on {', '.join(instance.servers)}, in this order."
    yield GAP
    for title, placed in ((word.capitalize(), own), ("Exact", best)):
        held = [
            f"{figure(x, 4)} of {instance.users[n]} on {instance.servers[i]}"
            for (n, i), x in np.ndenumerate(placed)
            if (x if isinstance(x, Fraction) else round(x, 9)) > 0
        ]
        yield f"{title}: {', '.join(held) or 'nothing'}"


def _of_servers(instance: Instance) -> list[Column]:
    counts = [numbers("count", instance.counts, 4)] if (instance.counts != 1).any() else []
    return counts + [numbers(name, amounts, 4) for name, amounts in zip(instance.resources, instance.capacities.T, strict=True)]


def _of_users(instance: Instance) -> list[Column]:
    """Return demands, and every field that differs from its default."""
    demands = instance.demands_by_kind[:, instance.kind_of]
    columns = [numbers(name, map(_on_servers, demands[..., r])) for r, name in enumerate(instance.resources)]
    if instance.speeds_given is not None:
        columns.append(numbers("speed", map(_on_servers, instance.speeds)))
    if (instance.weights != 1).any():
        columns.append(numbers("weight", instance.weights, 4))
    if np.isfinite(instance.tasks).any():
        columns.append(numbers("has", instance.tasks, 4))
    if np.isfinite(instance.parallelism).any():
        columns.append(numbers("at once", instance.parallelism, 4))
    if instance.placement is not None and not instance.placement.all():
        columns.append(numbers("runs on", (", ".join(np.array(instance.servers)[row]) for row in instance.placement)))
    return columns


def _on_servers(values: FloatArray) -> str:
    """Return what is the same on every server once, else what it is on each.

    >>> _on_servers(np.array([2.0, 2.0])), _on_servers(np.array([2.0, 1.0]))
    ('2', '2, 1')
    """
    return ", ".join(figure(value, 4) for value in (values[:1] if (values == values[0]).all() else values).tolist())
