r"""Alpha-fair goals of many users and servers by the steps of levels.

    maximise sum_n phi[n] g(v[n])   subject to   A x + s = 1,   W x = v,   x, s >= 0            g'(v) = v^-alpha
                                                 A'p - W'm - z = 0,        p, z >= 0,           v^alpha m = phi

in the units of `fairopt.solvers.structure.scaling`. It is the program of a level without t: a user's utility v replaces its surplus above
the level, and its marginal worth m replaces its price. As for levels, all conditions but the products are linear: x z and s p become small
together, while v^alpha m = phi is the target from the first step on. So primal and dual steps have lengths of their own, and pairs may be
cut (`fairopt.solvers.interior_point.steps`). This takes a third of the steps of `fairopt.solvers.alpha_fair.table_path`, which works in
parts of money and keeps the residuals of each user relative to its money; that path serves limits on tasks, an alpha far from 1, and
servers of one limit.

The path ends by the measure of the certificate, not by the products: the largest part of its money that a user wastes, at x scaled such
that the fullest limit of every server is full.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.program import AlphaFair, LimitKind, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.finish import shown
from fairopt.solvers.interior_point.steps import Given, Point, advance, part_of_the_way
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.newton import NewtonSystem, Residuals
from fairopt.solvers.structure.pairs import Pairs, lay_out
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle

__all__ = ["fits_worths", "solve_worths"]

log = logging.getLogger(__name__)

_LEAST_ALPHA, _MOST_ALPHA = 0.7, 2.5  # beyond, the path may not converge if demands or capacities differ by orders of magnitude
_LEAST_PAIRS = 5_000
_STEPS = 80
_DIGITS = 1e-4  # times the tolerance: error at which the path ends
_GOOD = 0.03  # times the tolerance: largest error of an answer
_STALLED = 3  # steps without gain near the end, after which the path ends
_LOST = 15  # steps that do not halve the products, after which the path fails
_DEAR = 2.0  # cost of all limits at the start, relative to all money
_LEAST_COST = 0.1  # least reduced cost at the start, relative to the cost
_SHOWS, _REFINEMENTS = 1e-6, 3  # error below which the active sets are known; refinements of a step on these sets
_CLOSE = 1e-8  # relative gap below which the error is computed


def fits_worths(program: Program) -> bool:
    """Is this an alpha-fair goal, alpha not far from 1, of many pairs on servers of several limits, without limits on tasks?"""
    goal, limits = program.goal, program.limits
    if not isinstance(goal, AlphaFair) or not _LEAST_ALPHA <= goal.alpha <= _MOST_ALPHA or program.n_pairs < _LEAST_PAIRS:
        return False
    one_each = int(limits.of_servers.sum()) <= len(program.servers)
    return not (one_each or (limits.kinds == LimitKind.TASKS).any() or obstacle(program))


def solve_worths(program: Program, goal: AlphaFair, tolerance: float, deadline: Deadline, arrays: Arrays = NUMPY) -> Solution | None:
    """Return the alpha-fair allocation, if possible four digits below the tolerance; None if the path does not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        The program does not fit into the layout of `fairopt.solvers.structure.pairs` in these arrays.
    """
    scaled, enough = replace(ScaledProgram.of(program), has_levels=True), _DIGITS * tolerance
    path = _Path(lay_out(scaled, arrays), goal)
    point, best, least, marks = path.start(), None, np.inf, (np.inf, 0, 0)
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        gap = path.gap(point)
        error, x = path.best(point, enough) if gap < _CLOSE else (np.inf, None)
        log.debug("step %d: gap %.1e, error %.1e", step, gap, error)
        mark, since, stalled = marks
        since, mark = (0, gap) if gap < 0.5 * mark else (since + 1, mark)
        stalled = 0 if error < 0.5 * least else stalled + 1 if best is not None else 0
        marks = mark, since, stalled
        if error < least:
            least, best = error, (x, point, step)
        if least <= enough or stalled >= _STALLED or (since > _LOST and best is None) or not np.isfinite(gap):
            break
        try:
            point = path.advanced(point, gap)
        except np.linalg.LinAlgError:
            break
    log.info("%d steps, a user wastes %.1e at most", step, least)
    if best is None or least > _GOOD * tolerance:
        return None
    x, point, _ = best
    _, p, _ = path.pairs.parts(point.dual)
    prices = scaled.prices(np.maximum(arrays.numpy(p), 0.0), np.empty(0)) * np.exp(path.log_unit)
    return Solution(path.pairs.tasks(x), prices=prices, iterations=step)


class _Path:
    """The constants of a path: pairs, and phi in units in which all users together start with the money 1."""

    def __init__(self, pairs: Pairs, goal: AlphaFair) -> None:
        scaled, self.pairs, self.alpha = pairs.scaled, pairs, goal.alpha
        self._even = pairs.even_slices()
        log_phi = np.log(goal.weights[scaled.member]) + (1 - goal.alpha) * np.log(scaled.reach)
        log_money = log_phi + (1 - goal.alpha) * np.log(pairs.arrays.numpy(pairs.rows(self._even)))
        highest = float(log_money.max())
        self.log_unit = highest + float(np.log(np.exp(log_money - highest).sum()))
        self._log_phi = pairs.arrays.floats(log_phi - self.log_unit)
        self._ones = pairs.arrays.floats(np.ones(pairs.n_rows))

    def start(self) -> Point:
        """Divide half of every limit evenly; give all limits one price, at which together they cost more than all money."""
        pairs, x = self.pairs, self._even
        v = pairs.rows(x)
        m = self._worth(v)
        even = np.full((pairs.n_slots, pairs.n_servers), _DEAR / (pairs.n_slots * pairs.n_servers))
        p = pairs.arrays.floats(even)
        cost = pairs.cost(p)
        z = pairs.eligible(pairs.xp.maximum(cost - pairs.along_rows(m), _LEAST_COST * cost), 1.0)
        return Point(pairs.point(x, 1 - pairs.use(x), v), pairs.point(z, p, m), 0.0)

    def advanced(self, point: Point, gap: float) -> Point:
        """Take a step."""
        xp, pairs = self.pairs.xp, self.pairs
        _, _, v = pairs.parts(point.primal)
        _, _, m = pairs.parts(point.dual)
        given = Given(self.alpha, self._log_phi - xp.log(m) - self.alpha * xp.log(v))
        nothing = xp.zeros_like(v)
        return advance(pairs, point, self._ones, None, nothing, 0.0, part_of_the_way(gap), float(v @ m), given)

    def gap(self, point: Point) -> float:
        """Return the sum of the products x z and s p, relative to all money."""
        pairs = self.pairs
        x, s, v = pairs.parts(point.primal)
        z, p, m = pairs.parts(point.dual)
        pairs_waste = float(pairs.xp.sum(pairs.eligible(x * z)))
        return (pairs_waste + float(pairs.xp.sum(s * p))) / float(v @ m)

    def best(self, point: Point, enough: float) -> tuple[float, Any]:
        """Return the smaller of two errors, with its x: of the point, or of the nearest x that fills every priced limit."""
        x, _, _ = self.pairs.parts(point.primal)
        first = self.error(point, x)
        second = self.error(point, self._filled(point)) if enough < first[0] < _SHOWS else first
        return min(first, second, key=lambda each: each[0])

    def _filled(self, point: Point) -> Any:
        """Return the x with the least sum of (dx/x)^2 that fills limits with a price and gives users what they pay for.

        Near the end, a step of the path has only rounding errors in small values. Here unused pairs are 0 and no small values remain
        (`fairopt.solvers.interior_point.finish`).
        """
        pairs, xp = self.pairs, self.pairs.xp
        x, s, v = pairs.parts(point.primal)
        _, p, m = pairs.parts(point.dual)
        sets = shown(pairs, point.primal, point.dual, float(v @ m))
        x, s = xp.where(sets.used, x, 0.0), xp.where(sets.full, 0.0, s)
        v = xp.exp((self._log_phi - xp.log(pairs.cheapest(p, pairs.arrays.floats([])))) / self.alpha)
        weight = pairs.point(x, s, xp.zeros_like(v)) ** 2
        lacks = Residuals(1 - pairs.use(x) - s, v - pairs.rows(x), xp.zeros_like(x), 0.0)
        try:
            system = NewtonSystem(pairs, weight, xp.ones_like(weight), self._ones, None)
        except np.linalg.LinAlgError:
            return x
        dx, _, _ = pairs.parts(system.step(xp.zeros_like(weight), lacks, _REFINEMENTS)[0])
        return xp.maximum(x + dx, 0.0)

    def error(self, point: Point, x: Any) -> tuple[float, Any]:
        """Return the largest part of its money that a user wastes, or by which a pair is worth more than it costs, and the scaled x."""
        pairs, xp = self.pairs, self.pairs.xp
        _, p, _ = pairs.parts(point.dual)
        fullest = xp.max(pairs.use(x), axis=0)
        x = xp.reshape(pairs.view(xp.reshape(x, (1, -1))) / pairs.at_servers(fullest), (-1,))
        v = pairs.rows(x)
        worth, cost = pairs.along_rows(self._worth(v)), pairs.cost(p)
        money = v * self._worth(v)
        beyond = xp.clip(cost - worth, 0.0, None)
        idle = pairs.cost(p * xp.clip(1 - pairs.use(x), 0.0, None))
        wasted = pairs.dot_by_user(beyond + idle, x) / money
        cheap = pairs.eligible(1 - cost / pairs.eligible(worth, 1.0))
        return max(float(xp.max(wasted)), float(xp.max(cheap))), x

    def _worth(self, v: Any) -> Any:
        return self.pairs.xp.exp(self._log_phi - self.alpha * self.pairs.xp.log(v))
