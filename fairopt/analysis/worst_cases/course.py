"""The course of a search for the worst instance: its rounds, on any number of workers, then the shrinking of the worst instance.

The course is a state that can be written to a file at any moment, and from which the search goes on to the same answer. *Rounds*: those at
the beginning that are over are summed up; the others that were begun are kept as they are. Rounds are compared in order, so neither the
number of workers nor a stop changes the answer. *Shrinking*: the candidates of a step come in a fixed order, so the state is the position
of each candidate that was taken, and how many were refused since.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairopt.analysis.worst_cases.local_search import ROUND, Candidate, Round, Rounds
from fairopt.analysis.worst_cases.small_instances import shrink, simpler
from fairopt.errors import InvalidInstance, NoSolution
from fairopt.files.progress import of_text, text_of
from fairopt.files.stores import Arrays
from fairopt.instance import Instance
from fairopt.processes.crew import Crew
from fairopt.wording import plural

__all__ = ["Course"]

_STATE = "state"


@dataclass(slots=True, eq=False)
class Course:
    """The state of a search.

    Attributes
    ----------
    rounds : Rounds
    tries : int
        How many instances the search may try.
    stopped : str
        What ended it early, or "".
    """

    rounds: Rounds
    tries: int
    stopped: str = ""
    _summed: int = 0  # so many rounds, the first ones, are over and not kept
    _tried: int = 0  # of these rounds, as the next two
    _failed: int = 0
    _best: Candidate | None = None
    _begun: dict[int, Round] = field(default_factory=dict)
    _kept_part: float = 0.0  # of the regret, which shrinking keeps
    _taken: list[int] = field(default_factory=list)
    _refused: int = 0

    # Rounds ----------------------------------------------------------------------------------------------------------------------

    @property
    def counted(self) -> list[Round]:
        """The rounds that count beside those that are summed up; none of them, once an instance is found than which none is worse."""
        return [] if self._best is not None and self._best.is_worst else [self._begun[number] for number in sorted(self._begun)]

    @property
    def tried(self) -> int:
        """How many instances were tried."""
        return self._tried + sum(each.made for each in self.counted)

    @property
    def needed(self) -> int:
        """The smallest ``tries`` that includes every try so far: with several workers, a round may begin before an earlier one ends."""
        return max([self.tried, *(each.number * ROUND + each.made for each in self.counted if each.made)])

    @property
    def failed(self) -> int:
        """How many of them were not solved."""
        return self._failed + sum(each.failed for each in self.counted)

    @property
    def best(self) -> Candidate | None:
        """The worst instance so far; the first one, if several are as bad and as small."""
        found = [each for each in (self._best, *(round_.best for round_ in self.counted)) if each is not None]
        return max(found, key=lambda each: each.key, default=None)

    @property
    def value(self) -> float:
        """The largest regret so far, for messages."""
        return 0.0 if self.best is None else self.best.value

    def _next(self, most: int) -> list[Round]:
        """Return the first rounds that are not over, as they are."""
        if self._best is not None and self._best.is_worst:
            return []

        def rounds() -> Iterator[Round]:
            for number in range(self._summed, -(-self.tries // ROUND)):
                tries = min(ROUND, self.tries - number * ROUND)
                yield replace(self._begun.get(number, Round(number, tries)), tries=tries)

        return list(itertools.islice((each for each in rounds() if not each.is_over), most))

    def _take(self, round_: Round) -> None:
        """Take a later state of a round."""
        self.stopped = self.stopped or round_.stopped
        self._begun[round_.number] = replace(round_, stopped="")
        while (first := self._begun.get(self._summed)) is not None and first.is_over and (first.tries == ROUND or first.ends_all):
            self._tried, self._failed = self._tried + first.made, self._failed + first.failed
            if first.best is not None and (self._best is None or first.best.key > self._best.key):
                self._best = first.best
            del self._begun[self._summed]
            self._summed += 1
            if self._best is not None and self._best.is_worst:
                return

    def run(self, crew: Crew, watch: Callable[[], None]) -> None:
        """Try the instances, or until time is up, or ``watch``, which is called after each instance or slice, raises KeyboardInterrupt."""
        if self._next(1):  # the worst instance may be another one at the end
            self._taken, self._refused = [], 0
        try:
            while not self.stopped and (ahead := self._next(crew.size)):
                if crew.alone:
                    for now in self.rounds.steps(ahead[0]):
                        self._take(now)
                        watch()
                else:
                    for now in crew.map(self.rounds.slice, ahead, lambda round_, why: round_.lost()):
                        self._take(now)
                    watch()
        except KeyboardInterrupt:
            self.stopped = "interrupted"

    # Shrinking -------------------------------------------------------------------------------------------------------------------

    def shrink(self, part: float, keeps: Callable[[Instance], bool], watch: Callable[[], None]) -> Instance:
        """Return the worst instance, shrunk as long as ``keeps`` is true, or until ``watch`` raises KeyboardInterrupt.

        Parameters
        ----------
        part : float
            Of the regret, which ``keeps`` asks for; what was shrunk with another part does not count.
        keeps, watch : functions
        """
        best = self.best
        assert best is not None
        if part != self._kept_part:
            self._kept_part, self._taken, self._refused = part, [], 0
        small = best.instance
        for position in self._taken:
            small = next(itertools.islice(simpler(small), position, None))

        def keeps_it(candidate: Instance) -> bool:
            nonlocal small
            if kept := keeps(candidate):
                small = candidate
                self._taken.append(self._refused)
                self._refused = 0
            else:
                self._refused += 1
            watch()
            return kept

        try:
            for _ in shrink(small, keeps_it, self._refused):
                pass
        except KeyboardInterrupt:
            self.stopped = "interrupted"
        return small

    # The state in a file ---------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state as arrays."""
        size, begun = self.rounds.size, list(self._begun.values())
        said = {
            "summed": self._summed, "tried": self._tried, "failed": self._failed,
            "rounds": [[each.number, each.tries, each.made, each.failed, each.random] for each in begun],
            "shrinking": [self._kept_part, self._taken, self._refused],
        }  # fmt: skip
        found = {"best": self._best, **{f"round{each.number}": each.best for each in begun}}
        return {_STATE: of_text(json.dumps(said))} | {
            f"{name}_{word}": values
            for name, candidate in found.items()
            if candidate is not None
            for word, values in size.arrays(candidate.instance).items()
        }

    def restore(self, arrays: Arrays) -> None:
        """Go on from a state. The regret of each instance in it is computed again.

        Raises
        ------
        KeyError, TypeError, ValueError
            It is no such state.
        NoSolution
            More instances were tried than are asked for.
        """
        said: Mapping[str, Any] = json.loads(text_of(arrays[_STATE]))
        self._summed, self._tried, self._failed = (_count(said[word]) for word in ("summed", "tried", "failed"))
        self._best = self._candidate(arrays, "best")
        for number, tries, made, failures, random in said["rounds"]:
            if random is not None:
                np.random.default_rng(0).bit_generator.state = random
            where, most, tried, failed = (_count(each) for each in (number, tries, made, failures))
            self._begun[where] = Round(where, most, tried, failed, self._candidate(arrays, f"round{where}"), random)
        part, taken, refused = said["shrinking"]
        self._kept_part, self._taken, self._refused = float(part), [_count(each) for each in taken], _count(refused)
        if self._taken and self.best is not None:
            small: Instance | None = self.best.instance
            for position in self._taken:
                small = None if small is None else next(itertools.islice(simpler(small), position, None), None)
            if small is None:
                raise ValueError("it says of a step of shrinking what there is not")
        if self.needed > self.tries:
            in_rounds = "" if self.needed == self.tried else f", in rounds of {ROUND:,} that begin before others are over"
            raise NoSolution(
                f"has tried {plural(self.tried, 'instance')} already{in_rounds}, and tries is {self.tries:,}; give at least {self.needed:,}"
            )

    def _candidate(self, arrays: Arrays, name: str) -> Candidate | None:
        shapes = self.rounds.size.shapes
        if not any(f"{name}_{word}" in arrays for word in shapes):
            return None
        given: dict[str, Any] = {word: arrays[f"{name}_{word}"] for word in shapes}
        for word, values in given.items():
            if values.shape != shapes[word] or values.dtype.kind not in "fb":
                raise ValueError(f"{word} of an instance has the shape {values.shape}")
        try:
            instance = Instance(**given)
        except InvalidInstance as error:
            raise ValueError(str(error)) from error
        objective = self.rounds.objective
        value = objective.value(objective.answer(instance))
        if value == -np.inf:
            raise ValueError("an instance of it has no regret")
        return Candidate(instance, value)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{value!r} is no count")
    return value
