"""Steps of the path in logarithms (`fairopt.solvers.interior_point.logarithmic_path` has the conditions and the path).

The unknowns are the logarithms of x, s, p, z, t and y. The conditions

    A x + s = 1,     V'x = t,     V y + z = A'p,     y = phi t^-alpha

have residuals, which a step makes smaller. The products x z and p s are what it is asked to change, and while phi is not right yet the
last condition, too. With the changes d of the logarithms, Newton's step is linear in x dx, p dp and y dy: a KKT system (`KKTSystem`).

Two directions are taken together: *mend*, which removes the residuals, and a part of *move*, which makes the wanted change. The part is as
large as the residuals that it leaves allow; where they allow none, as much of *mend* as makes them smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import TINY
from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.active_sets.problem import AlphaFairProblem
from fairopt.solvers.interior_point.settings import LOGARITHMS, ROWS

__all__ = ["Iterate", "Variables", "start", "take_step"]


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """Tasks x, slack s, prices p, reduced costs z, utilities t and marginal worths y; or their logarithms; or changes of these."""

    x: FloatArray
    s: FloatArray
    p: FloatArray
    z: FloatArray
    t: FloatArray
    y: FloatArray

    def each(self) -> tuple[FloatArray, ...]:
        """Return them in order."""
        return self.x, self.s, self.p, self.z, self.t, self.y

    @property
    def largest(self) -> float:
        """Largest absolute value."""
        return float(np.abs(np.concatenate(self.each())).max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Iterate:
    """A point on the way: logarithms of the variables, the variables, and both sides of the linear conditions."""

    logs: Variables
    at: Variables
    use: FloatArray  # A x + s, to be 1
    utility: FloatArray  # V'x, to be t
    worth: FloatArray  # V y + z, to be the cost
    cost: FloatArray  # A'p

    @classmethod
    def of(cls, problem: AlphaFairProblem, logs: Variables) -> Iterate:
        """Return the iterate at these logarithms."""
        at = Variables(*(np.exp(part) for part in logs.each()))
        worth = problem.v * at.y[problem.user] + at.z
        return cls(logs, at, problem.use(at.x) + at.s, problem.utility(at.x), worth, problem.cost(at.p))

    @property
    def residual(self) -> float:
        """Largest residual of a linear condition, in logarithms."""
        unequal = np.concatenate([self.use, self.utility / self.at.t, self.worth / self.cost])
        return float(np.abs(np.log(unequal)).max(initial=0.0))


def start(problem: AlphaFairProblem) -> Variables:
    """Return the logarithms of half an even slice of every limit, and of prices at which nothing is worth its cost."""
    entries = problem.A.tocoo()
    sharers = np.diff(problem.A.indptr)
    x = np.full(problem.v.size, np.inf)
    np.minimum.at(x, entries.col, LOGARITHMS.part_at_start / (entries.data * sharers[entries.row]))
    t, s = problem.utility(x), 1.0 - problem.use(x)
    worth = problem.v / t[problem.user]
    p = 1.0 / s
    p *= max(1.0, LOGARITHMS.dear_at_start * float((worth / problem.cost(p)).max()))
    return Variables(*(np.log(part) for part in (x, s, p, problem.cost(p) - worth, t, 1.0 / t)))


def take_step(
    problem: AlphaFairProblem,
    iterate: Iterate,
    products: FloatArray,
    wanted: FloatArray,
    r_worth: FloatArray,
    longest: float,
    *,
    settling: bool,
    halt: bool,
) -> tuple[Iterate, float]:
    """Return the next iterate, and the largest change of a logarithm that the step after it may begin with.

    Parameters
    ----------
    problem : AlphaFairProblem
    iterate : Iterate
    products, wanted : arrays (columns + limits,)
        Logarithms of x z and of p s, relative to their units, and by how much they should change.
    r_worth : array (users,)
        Residual of log y t^alpha = log phi.
    longest : float
        The largest change of a logarithm to begin with.
    settling : bool
        Is phi not right yet? Then that residual is changed with the products, else removed with the others.
    halt : bool
        Are residuals removed alone?
    """
    directions = _Directions(problem, iterate, wanted, r_worth, settling)
    if directions.mend.largest < LOGARITHMS.largest_mend:
        after, longest = directions.changed(products, 0.0 if halt else 1.0, longest)
        if after is not None:
            return after, longest
    return directions.mended(), max(longest, LOGARITHMS.shortest_change)


class _Directions:
    """What removes the residuals at an iterate, ``mend``, and what makes a wanted change of its products, ``move``."""

    def __init__(self, problem: AlphaFairProblem, iterate: Iterate, wanted: FloatArray, r_worth: FloatArray, settling: bool) -> None:
        self.problem, self.iterate, self.wanted = problem, iterate, wanted
        at, self.elasticity = iterate.at, problem.elasticity(iterate.logs.t)
        F = np.concatenate([at.s / at.p, at.t / (self.elasticity * at.y)])
        self.system = KKTSystem.factorised(problem.rows, at.z / at.x, F, at.z < ROWS.kept_pairs * problem.v * at.y[problem.user])
        none: FloatArray = np.zeros(r_worth.size)
        self.mended_worth, self.moved_worth = (none, r_worth) if settling else (r_worth, none)
        self.mend = self._newton(
            np.zeros(wanted.size),
            self.mended_worth,
            -iterate.use * np.log(iterate.use),
            np.sqrt(iterate.utility * at.t) * np.log(at.t / iterate.utility),
            np.sqrt(iterate.worth * iterate.cost) * np.log(iterate.worth / iterate.cost),
        )
        self.move = self._newton(wanted, self.moved_worth, np.zeros(at.s.size), none, np.zeros(at.x.size))
        self.before = iterate.residual if settling else max(iterate.residual, float(np.abs(r_worth).max()))

    def _newton(self, change: FloatArray, log_y: FloatArray, limits: FloatArray, utility: FloatArray, cost: FloatArray) -> Variables:
        """Return the step by which log products change, log y t^alpha falls by ``log_y``, and the other conditions by their residuals."""
        at, n_rows = self.iterate.at, self.problem.n_rows
        x_z, p_s = change[: at.x.size], change[at.x.size :]
        dx, dq = self.system.step(cost + at.z * x_z, np.concatenate([limits - at.s * p_s, -(utility - at.t / self.elasticity * log_y)]))
        x, p, y = dx / at.x, dq[:n_rows] / at.p, dq[n_rows:] / at.y
        return Variables(x, p_s - p, p, x_z - x, -(log_y + y) / self.elasticity, y)

    def changed(self, products: FloatArray, part: float, longest: float) -> tuple[Iterate | None, float]:
        """Mend the iterate and make a ``part`` of the wanted change, no larger than ``longest``, and smaller where residuals ask for it.

        Return the new iterate, None if they allow none, and the largest change for the next step.
        """
        size = max(self.move.largest, float(np.abs(self.move.y + self.move.t).max()))
        part *= min(1.0, longest / max(size, TINY))
        for _ in range(LOGARITHMS.parts_tried):
            after, residual = self._moved(1.0, part, (1 - part) * self.moved_worth)
            ahead = max(float((products + part * self.wanted).max()), np.log(LOGARITHMS.last_mu))
            near_path = LOGARITHMS.residual_of_root * np.exp(ahead / 2)  # the nearer the end, the nearer to the path
            allowed = min(LOGARITHMS.allowed_residual, near_path)
            if residual < allowed or (part == 0 and residual < LOGARITHMS.progress_at_halt * self.before):
                if residual < LOGARITHMS.small_residual * allowed:
                    longest = min(max(longest, part * size) * LOGARITHMS.longer, LOGARITHMS.longest_change)
                elif residual > LOGARITHMS.large_residual * allowed:
                    longest *= LOGARITHMS.shorter
                return after, longest
            part *= LOGARITHMS.much_shorter
            longest *= LOGARITHMS.much_shorter
        return None, longest

    def mended(self) -> Iterate:
        """Return the iterate after as much of ``mend`` as makes the residuals smaller."""
        length = min(1.0, LOGARITHMS.largest_mend / self.mend.largest)
        for _ in range(LOGARITHMS.halvings):
            after, residual = self._moved(length, 0.0, self.moved_worth + (1 - length) * self.mended_worth)
            if residual < (1 - LOGARITHMS.least_gain * length) * self.before:
                break
            length /= 2
        return after

    def _moved(self, length: float, part: float, r_worth: FloatArray) -> tuple[Iterate, float]:
        """Return the iterate after a length of ``mend`` and a part of ``move``, and its largest residual.

        ``r_worth`` is the residual of log y t^alpha = log phi that is wanted there.
        """
        problem, logs = self.problem, self.iterate.logs
        steps = zip(logs.each(), self.mend.each(), self.move.each(), strict=True)
        x, s, p, z, t, y = (now + length * own + part * more for now, own, more in steps)
        if problem.alpha <= 1:  # the curvature goes where it counts least: into t = V'x, or into y t^alpha = phi
            t = np.log(problem.utility(np.exp(x)))
        after = Iterate.of(problem, Variables(x, s, p, z, t, y))
        residual = after.residual
        if problem.alpha <= 1:
            residual = max(residual, float(np.abs(problem.worth_residual(after.logs.y, after.logs.t) - r_worth).max()))
        return after, residual if np.isfinite(residual) else np.inf
