"""The largest weighted total by a structured interior point.

    maximise c x   subject to   A x + s = 1,   T x + w = 1,   x, s, w >= 0           A'p + T'y - z = c,   z, p, y >= 0

in the units of `fairopt.solvers.structure.scaling`. It is the program of a level without t and with a constant worth c of every pair, so it
takes the same steps. The gap is that of the certificate: the bound by the prices, where a pair that is too cheap counts in full, less c x
for x scaled back into the limits.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from fairopt.instance.tolerances import EXACT, NOTHING
from fairopt.program import Program, Solution
from fairopt.solvers.backend import Deadline, nothing_to_solve
from fairopt.solvers.interior_point.settings import STEPS, TOTALS
from fairopt.solvers.interior_point.steps import Point, advance, part_of_the_way
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["solve_total"]

log = logging.getLogger(__name__)


def solve_total(program: Program, tolerance: float, deadline: Deadline, arrays: Arrays = NUMPY) -> Solution | None:
    """Return the largest total, None if the path did not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        The program does not fit into a layout of `fairopt.solvers.structure.layouts` in these arrays.
    """
    scaled = ScaledProgram.of(program)
    if not scaled.n_pairs:
        return nothing_to_solve(program)
    pairs, xp = lay_out(scaled, arrays), arrays.xp
    worth = pairs.W * pairs.spread(arrays.floats(scaled.reach))
    unit = float(xp.sum(worth))
    worth = worth / unit
    rows = arrays.floats(np.ones(pairs.n_rows))
    point = _start(pairs, worth)
    gap, mark, since, best = np.inf, np.inf, 0, None
    for step in range(TOTALS.steps_of_total):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        x, _, _ = pairs.parts(point.primal)
        _, p, y = pairs.parts(point.dual)
        scale = max(1.0, float(xp.max(pairs.use(x))), float(arrays.numpy(pairs.rows(x)).max(initial=0.0)))
        reached = float(worth @ x) / scale
        bound = float(xp.sum(p) + xp.sum(y) + xp.sum(xp.clip(worth - pairs.priced(p, y), 0.0, None)))
        now = (bound - reached) / bound
        log.debug("step %d: total %.9g, gap %.1e", step, reached * unit, now)
        since, mark = (0, now) if now < 0.5 * mark else (since + 1, mark)
        if now < gap:
            gap, best = now, (x / scale, p, y)
        if gap <= STEPS.end or since > TOTALS.stalled_of_total or (gap <= TOTALS.digit_of_total * tolerance and since > 2):
            break
        try:
            point = advance(pairs, point, -rows, None, rows, worth, part_of_the_way(now))
        except np.linalg.LinAlgError:
            break
    if best is None or gap > tolerance:
        log.info("no convergence on the way to the total, with a gap of %.1e", gap)
        return None
    x, p, y = best
    x = _without_remnants(pairs, x, worth, pairs.priced(p, y))
    return Solution(pairs.tasks(x), prices=scaled.prices(arrays.numpy(p), arrays.numpy(y)) * unit, iterations=step)


def _without_remnants(pairs: Pairs, x: Any, worth: Any, paid: Any) -> Any:
    """Return x without what the path leaves of pairs that cost more than they are worth, if the total is the same to rounding.

    A pair has x = 0 in every optimum if it costs more than it is worth; on the path it has a little, the less the more it costs.
    """
    used = pairs.xp.where(x * worth > NOTHING * (paid - worth), x, 0.0)
    total = float(worth @ x)
    return used if total - float(worth @ used) <= EXACT * total else x


def _start(pairs: Pairs, worth: Any) -> Point:
    """Half of every limit, divided evenly among those who can use the server; prices at which everything costs twice its worth."""
    arrays, x = pairs.arrays, pairs.even_slices()
    dearest = pairs.dearest(worth)
    p = 2 * dearest
    y = arrays.floats(np.full(pairs.n_rows, float(pairs.xp.mean(dearest[0, : pairs.n_servers]))))
    z = pairs.eligible(pairs.priced(p, y) - worth, 1.0)
    return Point(pairs.point(x, 1 - pairs.use(x), 1 - pairs.rows(x)), pairs.point(z, p, y), 0.0)
