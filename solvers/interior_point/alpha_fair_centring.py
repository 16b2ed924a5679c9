"""The last part of a path of `fairopt.solvers.interior_point.alpha_fair` once more, in steps that stay near the central path.

The path aims far ahead: a step may ask for products a million times as small. Where the money of users lies many orders of magnitude apart,
such a step ends far from the central path, and later steps do not come back. What poor users pay decides where rich users run: of two
servers whose prices for a rich user agree in ten digits, the other digits are the prices of poor users. As the products become smaller than
these digits, much of what the rich user has moves from one server to the other.

So these steps take turns. At a central point the products fall by one factor. Then steps with unchanged products come first, until the
point is central again, that is, products are equal and demands are utilities; Newton's method converges quadratically to it. Where it does
not, the last central point is the start of a smaller step.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.alpha_fair_end import End, best_end
from fairopt.solvers.interior_point.alpha_fair_path import Path
from fairopt.solvers.interior_point.settings import CENTRING
from fairopt.solvers.interior_point.steps import Point

__all__ = ["follow_centrally"]

log = logging.getLogger(__name__)


def follow_centrally(path: Path, starts: Sequence[Point], enough: float, deadline: Deadline) -> tuple[End, int]:
    """Follow a path until the error is small enough, or until smaller and smaller steps lead to no central point.

    Return the end with the least error on the way, and the number of steps. ``starts`` are points of the path in order: it starts at the
    last one, or if that does not lead to a central point, at the one before.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    earlier = list(starts)
    point = earlier.pop()
    best = path.present(point, np.inf)
    central: Point | None = None
    part, since = CENTRING.part_of_centring, 0
    for step in range(CENTRING.steps_of_centring):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        gap = path.measured(point)
        best = min(best, best_end(path.worths, point, path.money_of_limits, enough), key=lambda end: end.error)
        if best.error <= enough:
            break
        is_central = path.uneven < CENTRING.uneven_of_centre and path.missed(point) < CENTRING.missed_of_centre
        log.debug("step %d: gap %.1e, uneven %.1e, error %.1e", step, gap, path.uneven, best.error)
        if is_central:
            central, since = point, 0
        elif since >= CENTRING.patience_of_centring:
            since = 0
            if central is None:
                if not earlier:
                    break
                point = earlier.pop()
            else:
                part = part**0.5
                if part > CENTRING.largest_part_of_centring:
                    break
                point, is_central = central, True
            gap = path.measured_anew(point)
        since += 1
        try:
            point = path.advanced(point, gap, gap * (part if is_central else 1.0))
        except np.linalg.LinAlgError:
            since = CENTRING.patience_of_centring
    return best, step
