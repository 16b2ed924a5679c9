"""Search small instances for the worst, in rounds of random draws and local search.

A round is a plain state: how many instances it has tried, the worst of them, and the state of its random numbers. One step tries one
instance and gives the next state. So a round may go on in another process, or another day, to the same end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairopt.analysis.worst_cases.objective import Objective
from fairopt.analysis.worst_cases.small_instances import SmallInstances
from fairopt.instance import Instance
from fairopt.instance.tolerances import NOTHING

__all__ = ["ROUND", "Candidate", "Round", "Rounds"]

ROUND = 250  # instances in a round; a much shorter round ends before local search gets far from its start
DRAWS = 25  # random draws at the start of a round
_SLICE = 2.0  # seconds after which a worker hands back how far it got


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """An instance and its regret."""

    instance: Instance
    value: float

    @property
    def key(self) -> tuple[float, float]:
        """Sort key: the regret, then how small the numbers of the instance are."""
        return round(self.value / NOTHING), -float(self.instance.capacities.sum() + self.instance.demands_by_kind.sum())

    @property
    def is_worst(self) -> bool:
        """Is the regret the largest that there is?"""
        return self.value >= 1 - NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The state of a round.

    Attributes
    ----------
    number : int
        Rounds are compared in the order of their numbers.
    tries : int
        How many instances it may try.
    made, failed : int
        Instances tried, and those of them that were not solved.
    best : Candidate or None
    random : mapping or None
        The state of the random numbers; None before the first instance.
    stopped : str
        What ended it early, or "".
    """

    number: int
    tries: int
    made: int = 0
    failed: int = 0
    best: Candidate | None = None
    random: Mapping[str, Any] | None = None
    stopped: str = ""

    @property
    def is_over(self) -> bool:
        """Has it tried all its instances, or found one than which none is worse?"""
        return self.made >= self.tries or self.ends_all

    @property
    def ends_all(self) -> bool:
        """Has it found an instance than which none is worse?"""
        return self.best is not None and self.best.is_worst

    def lost(self) -> Round:
        """Return what counts in its place if it has ended its worker: nothing was solved."""
        return Round(self.number, self.tries, self.tries, self.tries)


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """What all rounds of a search have in common.

    Attributes
    ----------
    objective : Objective
    size : SmallInstances
    seed : int
        The random numbers of a round follow from it and from the number of the round.
    local : bool
        Whether instances are changed after the first draws, or drawn anew.
    deadline : float or None
        By `time.time`: all processes share it.
    """

    objective: Objective
    size: SmallInstances
    seed: int
    local: bool
    deadline: float | None

    def steps(self, now: Round) -> Iterator[Round]:
        """Yield the state of a round after each instance until it is over; the last one says if time was up."""
        rng = np.random.default_rng([self.seed, now.number])
        if now.random is not None:
            rng.bit_generator.state = now.random
        while not now.is_over:
            if self.deadline is not None and time.time() > self.deadline:
                yield replace(now, stopped="time limit")
                return
            best = now.best
            instance = self.size.draw(rng) if best is None or now.made < DRAWS or not self.local else self.size.change(best.instance, rng)
            value = self.objective.value(self.objective.answer(instance))
            if value > -np.inf and (best is None or value >= best.value - NOTHING):  # equal values too: plateaus are wide
                best = Candidate(instance, value)
            failed = now.failed + (value == -np.inf)
            now = replace(now, made=now.made + 1, failed=failed, best=best, random=rng.bit_generator.state)
            yield now

    def slice(self, now: Round) -> Round:
        """Return the state of a round a moment later."""
        until, latest = time.monotonic() + _SLICE, now
        try:
            for step in self.steps(now):
                latest = step
                if time.monotonic() > until:
                    break
        except KeyboardInterrupt:  # Ctrl-C reaches every worker
            return replace(latest, stopped="interrupted")
        return latest
