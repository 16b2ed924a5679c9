"""Branch and bound over the data: the part with the largest bound on the regret is bounded again, and cut in two.

A part's bound is that of `Regrets.bound`: the least that the heuristic gives over the most that the optimum gives. Both are linear programs
or sums, at the ends of the part's ranges (`fairopt.analysis.bounds.enclosures`), and meet as a part shrinks to a point. The instances tried
are points of the parts; the worst of them is solved by fairopt, and its regret is the lower end.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.analysis.bounds.boxes import Box, Ranges
from fairopt.analysis.bounds.cells import Part
from fairopt.analysis.bounds.data_rules import Data
from fairopt.analysis.bounds.enclosures import Enclosure
from fairopt.analysis.bounds.heuristics import Heuristic
from fairopt.analysis.bounds.kept import arrays_of_data, arrays_of_parts, data_of, parts_of_arrays
from fairopt.analysis.bounds.optima import largest_level, largest_share, largest_total
from fairopt.errors import NoSolution
from fairopt.files.stores import Arrays
from fairopt.models import Notion

__all__ = ["BOUNDED", "Course", "Regrets"]

BOUNDED = ("level", "user", "total")
"""Measures of regret that have a bound."""

_NARROW = 1e-9  # relative width of a range, below which a part is not cut again
_OF_A_QUOTIENT = 1e-15  # relative error of a quotient of two numbers
_DRAWS = 10  # random instances that are tried before the first part
_GAIN = 1e-7  # regret by which an instance must be worse than the worst so far, before fairopt solves it


@dataclass(frozen=True, slots=True, eq=False)
class Regrets:
    """The regret of a heuristic against a notion over the parts of a box."""

    box: Box
    heuristic: Heuristic
    notion: Notion
    measure: str

    def bound(self, part: Part) -> float:
        """Return an upper bound on the regret of every instance of a part; -inf if it has none."""
        box, ranges = self.box, part.ranges
        if part.is_empty(box):
            return float("-inf")
        found = Enclosure.of(box, ranges, self.notion)
        try:
            if part.user is None:
                own, best = self.heuristic.total(box, ranges), largest_total(box, ranges, found, self.notion)
            else:
                own = self.heuristic.share(box, ranges, found, part.user)
                level = self.measure == "level"
                best = largest_level(box, ranges, found) if level else largest_share(box, ranges, found, part.user)
        except NoSolution:  # the solver's word within its tolerances is no proof that the part is empty
            return 1.0
        return min(1.0, self._regret(own, best))

    def _regret(self, own: float, best: float) -> float:
        """Return 1 - own / best, rounded up; where own is larger, a level or a total falls short by 1 - best / own with the other sign."""
        if best <= 0:
            return 0.0
        if own <= best or self.measure == "user":
            return 1 - own / best * (1 - _OF_A_QUOTIENT)
        return best / own * (1 + _OF_A_QUOTIENT) - 1


@dataclass(slots=True, eq=False)
class Course:
    """The state of a branch and bound: open parts, both ends of the gap, and counts.

    Attributes
    ----------
    value_of : function
        The regret of an instance of the box, given its data, as fairopt solves it.
    worst : mapping or None
        The data of the worst instance found, with regret ``value``.
    closed : float
        The largest bound of a part that was not cut again.
    """

    regrets: Regrets
    value_of: Callable[[Data], float]
    gap: float
    value: float = float("-inf")
    worst: Data | None = None
    closed: float = float("-inf")
    nodes: int = 0
    stopped: str = ""
    _open: list[tuple[float, int, Part]] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=itertools.count)

    @property
    def bound(self) -> float:
        """The upper end: no instance of the box has a larger regret."""
        return max(self.closed, self.value, -self._open[0][0] if self._open else float("-inf"))

    @property
    def parts(self) -> Iterator[Part]:
        """The parts that are open."""
        return (part for *_, part in self._open)

    @property
    def open_parts(self) -> int:
        """How many parts are open."""
        return len(self._open)

    def state(self) -> dict[str, Any]:
        """Return the state as arrays."""
        return arrays_of_data(self.worst) | arrays_of_parts(list(self.parts)) | {"closed": self.closed, "nodes": self.nodes}

    def restore(self, arrays: Arrays) -> None:
        """Go on from a state. The regret of the worst instance is computed again."""
        worst, parts = data_of(arrays, self.regrets.box), list(parts_of_arrays(arrays, self.regrets.box))
        self.closed, self.nodes = float(arrays["closed"]), int(arrays["nodes"])
        self.add(parts)
        if worst is not None:
            self.take(worst)

    def add(self, parts: Iterable[Part]) -> None:
        """Add parts whose regrets are to be bounded."""
        for part in parts:
            heapq.heappush(self._open, (-part.bound, next(self._number), part))

    def take(self, data: Data) -> None:
        """Take an instance for the worst, if it is."""
        value = self.value_of(data)
        if value > self.value:
            self.value, self.worst = value, data

    def run(self, deadline: float | None, watch: Callable[[], None]) -> None:
        """Bound and cut until both ends meet within the gap, time is up, or ``watch`` raises KeyboardInterrupt; one part at least."""
        rng, before = np.random.default_rng(0), self.nodes

        def is_late() -> bool:
            return deadline is not None and time.monotonic() > deadline

        try:
            for _ in range(_DRAWS if self.nodes == 0 else 0):  # a first lower end
                self.take(self.regrets.box.draw(rng))
                if is_late():
                    break
            while self._open and self.bound > self.value + self.gap:
                if self.nodes > before and is_late():
                    self.stopped = "time limit"
                    return
                self._step()
                watch()
        except KeyboardInterrupt:
            self.stopped = "interrupted"

    def _step(self) -> None:
        whole = self._open[0][2]  # it stays open until its bound is known
        if self.nodes == 0:
            self._try(whole, 0.0)
        part = whole.within(self.regrets.box)
        bound = float("-inf") if part is None else min(part.bound, self.regrets.bound(part))
        self.nodes += 1
        if part is not None and bound > self.value + self.gap:
            for where in (0.5, 0.0, 1.0) if part.bound >= 1.0 else (0.5,):  # of a cell its corners, too
                self._try(part, where)
        heapq.heappop(self._open)
        if part is None or bound <= self.value + self.gap or part.ranges.widest()[0] <= _NARROW:
            self.closed = max(self.closed, bound)
        else:
            self.add(part.halves(bound))

    def _try(self, part: Part, where: float) -> None:
        """Take a point of a part for the worst instance, if its bound says that it may be."""
        box = self.regrets.box
        data = box.kept(part.instance_data(box, where))
        if data is not None and self.regrets.bound(Part(Ranges(data, data), part.user, np.zeros_like(part.scaled))) > self.value + _GAIN:
            self.take(data)
