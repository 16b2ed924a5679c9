"""Tasks as they arrive: how much of a resource each placement allocates, and where it leaves the bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.show.blocks import GAP, Block, Note
from fairopt.show.table import Table, names, numbers, percents
from fairopt.simulation.arrival_curves import Arrivals
from fairopt.wording import percent, plural

__all__ = ["arrival_blocks"]

_POINTS = (0.6, 0.8, 1.0)  # columns of the table, and the last point


def arrival_blocks(found: Arrivals) -> Iterator[Block]:
    """Yield ratios at a few points, and the demand at which each placement leaves the bound."""
    size = f"{plural(found.instance.counts.sum(), 'server')}, {plural(len(found.seeds), 'order')} of arrival"
    cards = f"; {found.cards} in cards" if found.cards else ""
    yield f"Allocation ratio of {found.resource} on {size}{cards}"
    yield GAP
    wanted = dict.fromkeys([*_POINTS, float(found.points[-1])])
    shown = [point for point in wanted if np.isclose(found.points, point, rtol=0, atol=1e-9).any()]
    ratios = {point: found.at(point) for point in shown}
    yield Table.of(
        names("arrived", ("fluid bound" if name == "bound" else name for name in found.curves)),
        *(percents(percent(point), (float(np.median(at[name])) for name in found.curves)) for point, at in ratios.items()),
        numbers("leaves at", ("" if name == "bound" else _median(found.leaves(name)) for name in found.curves)),
    )
    adding = " (parts of different cards add up)" if found.cards else ""
    yield GAP
    yield Note(
        "Medians over the orders of arrival. Placements are greedy.\n"
        f"fluid bound: a relaxation, exact for divisible tasks{adding}; no scheduler can exceed it.\n"
        "leaves at: the demand from which a placement is over 1 % of the capacity below the bound.",
        style="soft",
    )


def _median(points: np.ndarray) -> str:
    """Return the median; "nowhere" if more than half of the seeds have no point."""
    middle = float(np.median(np.where(np.isnan(points), np.inf, points)))
    return percent(middle) if np.isfinite(middle) else "nowhere"
