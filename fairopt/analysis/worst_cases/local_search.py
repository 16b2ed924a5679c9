"""Search small instances for the worst, in rounds of random draws and local search; any number of workers can run the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fairopt.analysis.worst_cases.objective import Objective
from fairopt.analysis.worst_cases.small_instances import SmallInstances
from fairopt.instance import Instance
from fairopt.instance.tolerances import NOTHING
from fairopt.processes.crew import Crew

__all__ = ["ROUND", "Candidate", "Round", "rounds"]

_Task: TypeAlias = tuple[Objective, SmallInstances, list[int], int, bool, float | None]

ROUND = 250  # instances in a round; a much shorter round ends before local search gets far from its start
DRAWS = 25  # random draws at the start of a round


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An instance and its regret."""

    instance: Instance
    value: float

    @property
    def key(self) -> tuple[float, float]:
        """Sort key: the regret, then how small the numbers of the instance are."""
        return round(self.value / NOTHING), -float(self.instance.capacities.sum() + self.instance.demands.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The result of a round; ``stopped`` says what ended the round early, or is empty."""

    best: Candidate | None
    tries: int
    failed: int
    stopped: str


def rounds(
    objective: Objective,
    size: SmallInstances,
    seed: int,
    tries: int,
    local: bool,
    deadline: float | None,
    crew: Crew,
    done: Callable[[int, float], object] | None,
    halt: Callable[[], None],
) -> Iterator[Round]:
    """Yield the rounds in order; the order does not depend on the number of workers."""

    def watch(best: float) -> None:
        if done is not None:
            done(1, best)
        halt()

    starts = range(0, tries, ROUND)
    tasks = [(objective, size, [seed, start // ROUND], min(ROUND, tries - start), local, deadline) for start in starts]
    if crew.alone:
        yield from (_round(*task, watch) for task in tasks)
        return
    together = crew.size
    for first in range(0, len(tasks), together):  # batches: no task is queued if the caller stops early
        yield from crew.map(_one_round, tasks[first : first + together], _lost_round)


def _one_round(task: _Task) -> Round:
    return _round(*task)


def _lost_round(task: _Task, why: str) -> Round:
    """Return what counts in the place of a round that has ended its worker: nothing was solved."""
    tries = task[3]
    return Round(None, tries, tries, "")


def _round(
    objective: Objective,
    size: SmallInstances,
    seed: list[int],
    tries: int,
    local: bool,
    deadline: float | None,
    watch: Callable[[float], None] = lambda best: None,
) -> Round:
    rng = np.random.default_rng(seed)
    best: Candidate | None = None
    failed = made = 0
    stopped = ""
    try:
        while made < tries and (best is None or best.value < 1 - NOTHING):
            if deadline is not None and time.time() > deadline:
                stopped = "time limit"
                break
            instance = size.draw(rng) if best is None or made < DRAWS or not local else size.change(best.instance, rng)
            value = objective.value(objective.answer(instance))
            made += 1
            if value == -np.inf:
                failed += 1
            elif best is None or value >= best.value - NOTHING:  # equal values too: plateaus are wide
                best = Candidate(instance, value)
            watch(0.0 if best is None else best.value)
    except KeyboardInterrupt:  # Ctrl-C reaches every worker
        stopped = "interrupted"
    return Round(best, made, failed, stopped)
