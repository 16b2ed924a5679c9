"""Proposed points that may end the sweeps of a best response early, or move them ahead. The condition of the equilibrium judges each.

* The equations of the active sets that the sweeps have found (which pairs hold something, and which limit stopped each), solved by
  `fairopt.solvers.equilibrium.equations`.
* An interior point (`fairopt.solvers.equilibrium.smoothing`), which finds which pairs hold something, given the limit that stops each pair.
* One long step, if each sweep makes nearly the same small change, until some pairs are empty. Where thousands hold something, the first
  of them is empty after a sweep or two: the longest step that does not violate the condition by much more replaces dozens of sweeps.

Sweeps alone converge on almost every instance, if slowly, and so help must not undo what they have done: they go on from a point only if
its violation of the condition is not much above theirs, and from solutions of the equations only if each is better than the one before.
(Else the sweeps go round in circles: they leave a point, and are sent back to it.) Equations and interior points take as long as many
sweeps. So the next attempt at the equations waits for a part of the sweeps so far, and after each interior point that is no better than
the sweeps the next one waits longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import NOTHING, ROUNDING
from fairopt.solvers.backend import NO_LIMIT, Deadline
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium.equations import Structure
from fairopt.solvers.equilibrium.layout import Layout, State
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.solvers.equilibrium.smoothing import approach

__all__ = ["Help", "drifted", "smoothed", "solved_equations"]


@dataclass(slots=True, eq=False)
class Help:
    """When each method is tried, and which of its points the sweeps go on from.

    Attributes
    ----------
    layout : Layout
    checks : Steps
        The compiled check of the condition.
    deadline : Deadline
        Of the equations.
    begins : float
        The sweep with which help begins.
    equations, interior : int
        The sweep from which on the equations, or an interior point, are tried again.
    wait : float
        For an interior point, in units of its usual wait: it grows with each one that is no better than the sweeps.
    least : float
        The violation of the last solution of the equations that the sweeps went on from.
    """

    layout: Layout
    checks: Steps
    deadline: Deadline = NO_LIMIT
    begins: float = field(init=False)
    equations: int = 0
    interior: int = 2 * SETTINGS.every
    wait: float = 1.0
    least: float = np.inf

    def __post_init__(self) -> None:
        self.begins = min(SETTINGS.help_after, SETTINGS.help_after_pairs / max(1, self.layout.user.size))

    def answers(self, state: State, sweep: int, change: float, reached: float) -> Iterator[FloatArray]:
        """Yield points that may be the equilibrium, by pair of the program; ``reached`` is the violation of the sweeps."""
        ended = change <= ROUNDING
        if reached <= SETTINGS.aim or not (ended or sweep >= max(self.begins, self.equations)):
            return
        small = np.count_nonzero(state.x) <= SETTINGS.few_pairs
        self.equations = sweep + sweep // (SETTINGS.rest_if_few if small else SETTINGS.rest)
        yield from solved_equations(self.layout, state, change, self.deadline)

    def ahead(
        self,
        state: State,
        recent: list[FloatArray],
        sweep: int,
        change: float,
        reached: float,
        near: FloatArray,
        nearest: float,
        alone: bool,
    ) -> FloatArray | None:
        """Return a point, by server, from which the sweeps should go on; None: from where they are.

        ``near`` is the best of the points that were checked now, with violation ``nearest``. ``alone``: the sweeps converge by themselves.
        """
        helps = sweep >= self.begins or change <= ROUNDING
        if helps and not alone and sweep >= self.interior and SETTINGS.creep < change < SETTINGS.near:
            return self._kept(self._interior(state, sweep, change, reached), SETTINGS.worse_interior * reached)
        if nearest < SETTINGS.better * min(reached, self.least):
            self.least = nearest
            return np.asarray(near[self.layout.order])
        if helps and not alone:
            steps = (self._kept(x, SETTINGS.worse_drift * reached) for x in drifted(self.layout, state, recent))
            *_, longest = None, *takewhile(lambda x: x is not None, steps)
            return longest
        return None

    def _interior(self, state: State, sweep: int, change: float, reached: float) -> FloatArray | None:
        x = smoothed(self.layout, state, change)
        if self._kept(x, reached) is None:
            self.wait *= SETTINGS.longer
        else:
            self.wait, self.equations = 1.0, 0
        unit = SETTINGS.every * (1 if state.x.size <= SETTINGS.few_pairs else 2)
        self.interior = sweep + round(self.wait * unit)
        return x

    def _kept(self, x: FloatArray | None, most: float) -> FloatArray | None:
        """Return x, by server, unless it violates the condition by more than that."""
        return None if x is None or self.layout.violation(self.layout.by_pair(x), self.checks) > most else x


def solved_equations(layout: Layout, state: State, change: float, deadline: Deadline = NO_LIMIT) -> Iterator[FloatArray]:
    """Yield the solutions of the equations of the present active sets, one for each choice of empty pairs, by pair of the program."""
    some = int((state.x > NOTHING * layout.largest).sum())
    if some > max(SETTINGS.few_pairs, np.count_nonzero(state.total) + np.isfinite(state.level).sum()) and change > SETTINGS.close:
        return  # more pairs than equations can determine: too early, and expensive
    structure = Structure(layout.user, layout.g, layout.tasks, layout.matrix, layout.row_bounds, state.x, layout.stops(state))
    seen: set[bytes] = set()
    for nothing in SETTINGS.empty if some <= SETTINGS.few_pairs or change < SETTINGS.close else SETTINGS.empty[:1]:
        positive = state.x > nothing * layout.largest
        if positive.tobytes() in seen:
            continue
        seen.add(positive.tobytes())
        x = structure.solve(positive, deadline)
        if x is not None:
            yield layout.by_pair(x)


def smoothed(layout: Layout, state: State, change: float) -> FloatArray | None:
    """Return an approximate equilibrium in which the present limits stop each pair; None if none is found."""
    arrays = (layout.user, layout.g, layout.largest, layout.matrix, layout.row_bounds, state.x, layout.stops(state))
    return approach(*arrays, min(SETTINGS.slack, change))


def drifted(layout: Layout, state: State, recent: list[FloatArray]) -> Iterator[FloatArray]:
    """Yield the points that ever more sweeps would reach if they went on as the last ones: until one pair is empty, two, four, and so on.

    Around a cycle of users and servers whose rates nearly match, each sweep makes the same small change until some pair is empty. One step
    here replaces a thousand sweeps. Pairs whose changes shrink by a ratio get the rest of their geometric series.
    """
    if len(recent) < 4:
        return
    last = state.x - recent[-2]
    previous = recent[-2] - recent[-3]
    ratio = np.divide(last, previous, out=np.zeros_like(last), where=previous != 0)
    empties = (last < 0) & (ratio > SETTINGS.same_way) & (state.x > NOTHING * layout.largest)
    left = np.divide(ratio, 1 - ratio, out=np.full_like(ratio, np.inf), where=ratio < 1)
    times = np.sort(state.x[empties] / -last[empties])
    for emptied in (2 ** np.arange(times.size.bit_length())).tolist():
        yield np.asarray(np.maximum(state.x + np.clip(left, 0.0, times[emptied - 1]) * last, 0.0))
