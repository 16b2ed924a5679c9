"""Search among small instances for the worst: rounds of random draws and local search, which any number of workers can run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fairopt.analysis.worst_cases.objective import EQUAL, Objective
from fairopt.analysis.worst_cases.small_instances import SmallInstances
from fairopt.instance import Instance
from fairopt.processes import workers

__all__ = ["ROUND", "Candidate", "Round", "rounds"]

ROUND = 250  # instances in a round; rounds of 50 are over before they are far from where they began
DRAWS = 25  # of them at random, at its start


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An instance and its regret."""

    instance: Instance
    value: float

    @property
    def key(self) -> tuple[float, float]:
        """What is compared: the regret, then how small the numbers are."""
        return round(self.value / EQUAL), -float(self.instance.capacities.sum() + self.instance.demands.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """What a round found, and whether it was ended before its time."""

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
    jobs: int,
    done: Callable[[int, float], object] | None,
    halt: Callable[[], None],
) -> Iterator[Round]:
    """Yield the rounds in order, whoever runs them."""
    from joblib import delayed, effective_n_jobs

    def watch(best: float) -> None:
        if done is not None:
            done(1, best)
        halt()

    starts = range(0, tries, ROUND)
    tasks = [(objective, size, [seed, start // ROUND], min(ROUND, tries - start), local, deadline) for start in starts]
    if jobs == 1:
        yield from (_round(*task, watch) for task in tasks)
        return
    with workers(jobs) as parallel:  # processes: most of the time is the interpreter's
        together = effective_n_jobs(jobs)
        for first in range(0, len(tasks), together):  # none is waiting when it ends early
            yield from parallel(delayed(_round)(*task) for task in tasks[first : first + together])


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
        while made < tries and (best is None or best.value < 1 - EQUAL):
            if deadline is not None and time.time() > deadline:
                stopped = "time limit"
                break
            instance = size.draw(rng) if best is None or made < DRAWS or not local else size.change(best.instance, rng)
            value = objective.value(objective.answer(instance))
            made += 1
            if value == -np.inf:
                failed += 1
            elif best is None or value >= best.value - EQUAL:  # sideways too: plateaus are wide
                best = Candidate(instance, value)
            watch(0.0 if best is None else best.value)
    except KeyboardInterrupt:  # in a worker as well: Ctrl-C reaches them all
        stopped = "interrupted"
    return Round(best, made, failed, stopped)
