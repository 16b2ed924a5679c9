"""Proposed points that may end the sweeps of a best response early, or move them ahead. The condition of the equilibrium judges each.

* The equations of the active sets that the sweeps have found (which pairs hold something, and which limit stopped each), solved by
  `fairopt.solvers.equilibrium.equations`.
* An interior point (`fairopt.solvers.equilibrium.smoothing`), which finds which pairs hold something, given the limit that stops each pair.
* One long step, if each sweep makes nearly the same small change, until some pair is empty.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import NOTHING
from fairopt.solvers.equilibrium.equations import Structure
from fairopt.solvers.equilibrium.layout import Layout, State
from fairopt.solvers.equilibrium.settings import SETTINGS
from fairopt.solvers.equilibrium.smoothing import approach

__all__ = ["drifted", "smoothed", "solved_equations"]


def solved_equations(layout: Layout, state: State, change: float) -> list[FloatArray]:
    """Return the solutions of the equations of the present active sets, one for each choice of empty pairs, by pair of the program."""
    some = int((state.x > NOTHING * layout.largest).sum())
    if some > max(SETTINGS.few_pairs, np.count_nonzero(state.total) + np.isfinite(state.level).sum()) and change > SETTINGS.creep:
        return []  # more pairs than equations can determine: too early, and expensive
    structure = Structure(layout.user, layout.g, layout.tasks, layout.matrix, layout.row_bounds, state.x, layout.stops(state))
    answers: list[FloatArray] = []
    seen: set[bytes] = set()
    for nothing in SETTINGS.empty if some <= SETTINGS.few_pairs or change < SETTINGS.close else SETTINGS.empty[:1]:
        positive = state.x > nothing * layout.largest
        if positive.tobytes() in seen:
            continue
        seen.add(positive.tobytes())
        x = structure.solve(positive)
        if x is not None:
            answers.append(layout.by_pair(x))
    return answers


def smoothed(layout: Layout, state: State, change: float) -> FloatArray | None:
    """Return an approximate equilibrium in which the present limits stop each pair; None if none is found."""
    return approach(layout.user, layout.g, layout.largest, layout.matrix, layout.row_bounds, state.x, layout.stops(state), min(SETTINGS.slack, change))


def drifted(layout: Layout, state: State, recent: list[FloatArray]) -> FloatArray | None:
    """Return the point that many more sweeps would reach if they went on as the last ones, until a pair is empty.

    Around a cycle of users and servers whose rates nearly match, each sweep makes the same small change until some pair is empty. One step
    here replaces a thousand sweeps. Pairs whose changes shrink by a ratio get the rest of their geometric series.
    """
    if len(recent) < 4:
        return None
    last = state.x - recent[-2]
    previous = recent[-2] - recent[-3]
    ratio = np.divide(last, previous, out=np.zeros_like(last), where=previous != 0)
    empties = (last < 0) & (ratio > SETTINGS.same_way) & (state.x > NOTHING * layout.largest)
    if not empties.any():
        return None
    times = float((state.x[empties] / -last[empties]).min())
    left = np.divide(ratio, 1 - ratio, out=np.full_like(ratio, times), where=ratio < 1)
    return np.asarray(np.maximum(state.x + np.clip(left, 0.0, times) * last, 0.0))
