"""The largest weighted total by a structured interior point.

    maximise c x   subject to   A x + s = 1,   T x + w = 1,   x, s, w >= 0           A'p + T'y - z = c,   z, p, y >= 0

in the units of ``structured_pairs``: the program of a level without t and with a constant worth c of every pair, so the same steps. The
gap is that of the certificate, c x of x scaled back into the limits against what the prices allow, where a pair that is too cheap counts
in full.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.program import Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structured_pairs import Pairs
from fairopt.solvers.structured_path import Point, advance, part_of_the_way

__all__ = ["solve_total"]

log = logging.getLogger(__name__)

_STEPS = 100
_DIGIT = 0.01  # the path aims two digits below what is asked for
_END = 1e-14
_STALLED = 12  # steps that do not halve the gap


def solve_total(program: Program, tolerance: float, deadline: Deadline) -> Solution | None:
    """Return the largest total, None where the path got lost on the way.

    Raises
    ------
    Unsupported
        Where the program has no place in the layout of ``structured_pairs``.
    """
    pairs = Pairs(program)
    if not pairs.n_pairs:
        return Solution(np.zeros(program.n_pairs), prices=np.zeros(len(program.limits)), programs_solved=0)
    worth = pairs.W * pairs.spread(pairs.reach)
    unit = float(worth.sum())
    worth = worth / unit
    side, rows = -np.ones(pairs.n_rows), np.ones(pairs.n_rows)
    point = _start(pairs, worth)
    gap, mark, since, best = np.inf, np.inf, 0, None
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        x, _, _ = pairs.parts(point.primal)
        _, p, y = pairs.parts(point.dual)
        scale = max(1.0, float(pairs.use(x).max()), float(pairs.rows(x).max(initial=0.0)))
        reached = float(worth @ x) / scale
        bound = float(p.sum() + y.sum() + np.maximum(worth - pairs.cost(p, y), 0.0).sum())
        now = (bound - reached) / bound
        log.debug("step %d: total %.9g, gap %.1e", step, reached * unit, now)
        since, mark = (0, now) if now < 0.5 * mark else (since + 1, mark)
        if now < gap:
            gap, best = now, (x / scale, p, y)
        if gap <= _END or since > _STALLED or (gap <= _DIGIT * tolerance and since > 2):
            break
        try:
            point = advance(pairs, point, side, None, rows, worth, part_of_the_way(now))
        except np.linalg.LinAlgError:
            break
    if best is None or gap > tolerance:
        log.info("lost on the way to the total, with a gap of %.1e", gap)
        return None
    x, p, y = best
    return Solution(pairs.tasks(x), prices=pairs.prices(p, y) * unit, iterations=step)


def _start(pairs: Pairs, worth: np.ndarray) -> Point:
    """Half of every limit, divided evenly among those who can use the server; prices at which everything costs twice its worth."""
    x = 0.5 / np.bincount(pairs.server, minlength=pairs.n_servers)[pairs.server]
    x /= pairs.spread(pairs.placed(np.maximum(2 * pairs.rows(x), 1.0), 1.0))
    dearest = np.zeros(pairs.n_servers)
    np.maximum.at(dearest, pairs.server, worth / pairs.A.max(axis=0))
    p = np.broadcast_to(2 * dearest, (pairs.n_slots, pairs.n_servers))
    y = np.full(pairs.n_rows, float(dearest.mean()))
    z = pairs.cost(p, y) - worth
    return Point(np.concatenate([x, (1 - pairs.use(x)).ravel(), 1 - pairs.rows(x)]), np.concatenate([z, p.ravel(), y]), 0.0)
