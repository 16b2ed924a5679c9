"""Samples of a fluid simulation: at multiples of a step, or at events, thinned if they are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.simulation.keeping import State
from fairopt.simulation.streams import Streams

if TYPE_CHECKING:
    from fairopt.simulation.fluid import Optimum

__all__ = ["MOST_SAMPLES", "Samples", "check_step", "no_closer", "thinned"]

T = TypeVar("T")

MOST_SAMPLES = 1_000
_MOST_STEPS = 1_000_000
_COLUMNS = 5  # running, waiting, held, rows, limits


def check_step(step: float, length: float) -> None:
    """Refuse a step that makes too many samples in ``length`` seconds."""
    if length / step >= _MOST_STEPS:
        raise Unsupported(
            f"a sample every {step:g} s would make more than {_MOST_STEPS:,} of {length:g} s; give a larger step, or leave it out"
        )


class Samples:
    """Samples at multiples of a step; without a step, at events, thinned if they are many."""

    def __init__(self, streams: Streams, step: float | None) -> None:
        self.step, self.spacing = step, 0.0
        self.times: list[float] = []
        self.kept: list[tuple[FloatArray, ...]] = []
        self.owner, self.users = streams.owner, len(streams.users)
        self.resources = streams.instance.n_resources
        self.shape, self.limits = streams.cluster.capacities.shape, len(streams.limits)
        self.origin: float | None = None

    def state(self) -> State:
        """Return the state, for `restore`."""
        columns = {f"kept{j}": [kept[j] for kept in self.kept] for j in range(_COLUMNS)}
        origin = np.nan if self.origin is None else self.origin
        return columns | {"times": list(self.times), "spacing": self.spacing, "origin": origin}

    def restore(self, state: State) -> None:
        """Go back to a state."""
        self.times, self.spacing, origin = state["times"].tolist(), float(state["spacing"]), float(state["origin"])
        self.kept = list(zip(*(state[f"kept{j}"] for j in range(_COLUMNS)), strict=True))
        self.origin = None if np.isnan(origin) else origin

    def interval(self, now: float, then: float, has: FloatArray, optimum: Optimum) -> None:
        """Take the samples of the interval [now, then), in which nothing changes; ``has`` are the tasks of the unfinished jobs."""
        x = optimum.x
        self.origin = now if self.origin is None else self.origin
        if self.step is None:
            times = [now] if not self.times or now >= self.times[-1] + self.spacing else []
        else:
            check_step(self.step, then - self.origin)
            number = len(self.times)
            times = []
            while self.origin + number * self.step < then:
                times.append(self.origin + number * self.step)
                number += 1
        if not times:
            return
        running, waiting = (
            np.asarray(np.bincount(self.owner, weights=values, minlength=self.users), float) for values in (x, np.maximum(has - x, 0.0))
        )
        columns = [np.bincount(self.owner, weights=taken, minlength=self.users) for taken in optimum.held.T]
        held = np.asarray(np.stack(columns, axis=1), float)
        self.times += times
        self.kept += [(running, waiting, held, optimum.rows, optimum.limit_use)] * len(times)
        if self.step is None and len(self.times) > 2 * MOST_SAMPLES:
            self.spacing, self.times, self.kept = thinned(self.times, self.kept, MOST_SAMPLES)

    def arrays(self) -> dict[str, FloatArray]:
        """Return the samples that were kept."""
        k, m = len(self.times), self.resources
        shapes = {"running": (k, self.users), "waiting": (k, self.users), "held": (k, self.users, m), "rows": (k, *self.shape)}
        shapes["limits"] = (k, self.limits)
        columns = {name: np.array([kept[j] for kept in self.kept]).reshape(shape) for j, (name, shape) in enumerate(shapes.items())}
        return {"times": np.array(self.times), **columns}


def thinned(times: Sequence[float], kept: Sequence[T], most: int) -> tuple[float, list[float], list[T]]:
    """Keep about ``most`` of the samples; return the least time between two of them, their times, and what was kept at these times.

    >>> thinned([0.0, 1.0, 2.0, 3.0, 4.0], "abcde", 2)
    (2.0, [0.0, 2.0, 4.0], ['a', 'c', 'e'])
    """
    spacing = (times[-1] - times[0]) / most
    chosen = no_closer(times, spacing)
    return spacing, [times[j] for j in chosen], [kept[j] for j in chosen]


def no_closer(times: Sequence[float], spacing: float) -> list[int]:
    """Return the positions of the times to keep: the first, then each time at least ``spacing`` after the last one kept.

    >>> no_closer([0, 1, 2, 5, 6, 9], 2)
    [0, 2, 3, 5]
    """
    chosen = [0]
    for j, time in enumerate(times):
        if time >= times[chosen[-1]] + spacing:
            chosen.append(j)
    return chosen
