"""The result of `fairopt.arrivals`: the allocation ratio of a resource as a function of the demand that has arrived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.results import finite, result
from fairopt.show.drawing import draw
from fairopt.show.equality import ComparesItself
from fairopt.wording import did_you_mean, exactly, percent, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Arrivals"]

QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arrivals(ComparesItself):
    """Allocation ratios as tasks arrive. All numbers are fractions of the capacity of the resource.

    Attributes
    ----------
    instance : Instance
    resource : str
    cards : str or None
        The resource that comes in cards. None: fractions of the resource add up on a server.
    points : array (points,)
        Demands at which the ratios are sampled. A sample is the last moment at which the demand that has arrived is at most the point.
    seeds : tuple of int
        One order of arrival for each seed.
    arrived : array (seeds, points)
        Demand that has arrived: at most the point, and below it by less than one task.
    allocated : mapping of str to array (seeds, points)
        Allocation ratio of each placement. Placements are greedy.
    bound : array (seeds, points)
        Largest allocation ratio of any allocation of the tasks that have arrived. It is exact for divisible tasks whose fractions add up,
        and a relaxation for whole tasks.
    residual : float
        The worst residual over the certificates of the bounds.
    seconds : float
    """

    instance: Instance
    resource: str
    cards: str | None
    points: FloatArray
    seeds: tuple[int, ...]
    arrived: FloatArray
    allocated: dict[str, FloatArray]
    bound: FloatArray
    residual: float = 0.0
    seconds: float = float("nan")
    question: Mapping[str, Any] = field(default_factory=dict)

    def at(self, point: float) -> dict[str, FloatArray]:
        """Return the ratio of each placement and of the "bound" at a point, (seeds,) each.

        Raises
        ------
        Unsupported
            The point is not one of ``points``.
        """
        near = np.flatnonzero(np.isclose(self.points, point, rtol=0, atol=1e-9))
        if not near.size:
            raise Unsupported(f"there is no point at {point!r}; there are points from 0 to {exactly(self.points[-1])}")
        return {name: values[:, near[0]] for name, values in self.curves.items()}

    @property
    def curves(self) -> dict[str, FloatArray]:
        """The allocation ratio of each placement, and the "bound", (seeds, points) each."""
        return self.allocated | {"bound": self.bound}

    def leaves(self, placement: str, gap: float = 0.01) -> FloatArray:
        """Return the first point at which a placement is below the bound by more than ``gap`` of the capacity, (seeds,); nan: none.

        Raises
        ------
        Unsupported
            The placement is not one of ``allocated``.
        """
        if placement not in self.allocated:
            hint = did_you_mean(str(placement), self.allocated)
            raise Unsupported(f'there is no placement "{placement}"{hint}; there are {", ".join(self.allocated)}')
        below = self.bound - self.allocated[placement] > gap
        return np.where(below.any(axis=1), self.points[below.argmax(axis=1)], np.nan)

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy table: ``seed``, ``point``, ``arrived``, ``schedule`` (a placement, or "bound"), ``ratio``."""
        import pandas as pd

        number, size = len(self.seeds), self.points.size
        frames = [
            pd.DataFrame(
                {
                    "seed": np.repeat(self.seeds, size),
                    "point": np.tile(self.points, number),
                    "arrived": self.arrived.ravel(),
                    "schedule": name,
                    "ratio": values.ravel(),
                }
            )
            for name, values in self.curves.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: quantiles over the seeds (0.1, 0.5, 0.9) of every curve at every point."""
        found = {
            "resource": self.resource,
            "cards": self.cards,
            "seeds": list(self.seeds),
            "points": self.points.tolist(),
            "curves": [
                {
                    "name": name,
                    "kind": "fluid bound, a relaxation" if name == "bound" else "greedy",
                    "quantiles": {f"{q:g}": np.quantile(values, q, axis=0).tolist() for q in QUANTILES},
                    **({} if name == "bound" else {"leaves_bound": [None if np.isnan(x) else float(x) for x in self.leaves(name)]}),
                }
                for name, values in self.curves.items()
            ],
            "residual": self.residual,
            "time_s": finite(self.seconds),
            "seconds": finite(self.seconds),  # until 1.0
        }
        return result("arrivals", self.question, self.instance.units, found)

    def plot(self, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw the ratios against the demand that has arrived: medians over the seeds, and bands from the first to the last decile.

        ``ax``: axes of yours to draw into (two). ``figsize``: of a new figure, in inches. ``title``: in place of the default ("": none).
        """
        return draw("arrivals", self, ax=ax, figsize=figsize, title=title)

    def __repr__(self) -> str:
        point = 1.0 if self.points[-1] >= 1 and np.isclose(self.points, 1.0).any() else float(self.points[-1])
        ratios = ", ".join(f"{name} {percent(float(np.median(values)))}" for name, values in self.at(point).items())
        what = self.resource + (" in cards" if self.cards == self.resource else f", {self.cards} in cards" if self.cards else "")
        return (
            f"Arrivals({what}, until {percent(self.points[-1])}, {plural(len(self.seeds), 'seed')}: at {percent(point)} arrived, {ratios})"
        )
