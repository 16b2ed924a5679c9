"""The loop over the levels of a leximin. An engine solves one level at a time and returns its dual prices.

Let s[n] = U[n] / phi[n] be the level of user n. Some users rise together; the others are settled, and keep their levels:

    maximise t   subject to   A x <= b,   x >= 0,   s[n] >= S[n] + rate[n] t  for users who rise,   s[n] >= S[n]  for settled users.

(S, rate) is the *course*. In a leximin S[n] = 0 and rate[n] = 1 for all who rise; a goal may set other rates, and renew them after each
level (`LevelGoal`).

*The bound.* Take any prices p >= 0 of the limits, and let q[n] be the cheapest price of a unit of level of user n, the minimum of
(A'p)[pair] phi[n] / u[pair] over its pairs. For every feasible x, p.b >= p.Ax >= sum of q s, so

    t <= bound = (p.b - sum of q S) / sigma,        sigma = sum of q rate over users who rise.

*Settled users.* With gap = bound - t, a solution that reaches t lifts user n above its course at t by at most sigma gap / q[n]. If that is
below the tolerance, user n has this level in every optimal solution: it is settled, and the others rise on. Settled users keep their
levels, so one level is one stage of the leximin (Ogryczak and Sliwinski 2006; Nace and Orlin 2007).

*Caps.* A limit of a user's own, on its tasks or its parallelism, may cap its level. A user that reaches its cap is settled there, whatever
the prices are. With caps, the bound is the largest t with  sum of q min(t, cap) over users who rise  <=  p.b - sum of q S over the others.

*In the end* every user gets exactly its level (`exactly`). `fairopt.certificate.levels` proves an answer by code of its own, independent of
this module.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import DIGITS, NOISE, ROUNDING
from fairopt.program import Program, Solution, Stage
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = [
    "Course",
    "LevelGoal",
    "LevelSolver",
    "NotConverged",
    "Proof",
    "Step",
    "Together",
    "bound_of",
    "could_rise",
    "exactly",
    "rise",
    "settle_below",
    "solve_levels",
    "stopped_at",
    "stopped_of",
]

log = logging.getLogger(__name__)


_NOBODY, _NOTHING = np.empty(0, np.int64), np.empty(0)


class NotConverged(Exception):
    """A solver of levels did not reach the next level. An engine catches this: the method has no answer."""


# The course ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The required levels of all users at t, start + rate t, (users,).

    Attributes
    ----------
    rising : bool array (users,)
        Users who still rise. The others are settled: their rate is 0.
    start, rate : arrays (users,)
        A user who rises at rate 0 waits: it has not been stopped.
    least : array (users,) or 0
        Errors of lower levels are relative to this value: a level of 0 gives no measure.
    """

    rising: BoolArray
    start: FloatArray
    rate: FloatArray
    least: FloatArray | float = 0.0

    @classmethod
    def together(cls, rising: BoolArray) -> Course:
        """All of these users rise from 0, at the same rate."""
        return cls(rising, np.zeros(rising.size), rising.astype(np.float64))

    def at(self, t: float) -> FloatArray:
        """Return the levels at t, (users,)."""
        return np.asarray(self.start + self.rate * t)

    def size(self, t: float) -> FloatArray:
        """Return the levels at t that errors are relative to, (users,)."""
        return np.maximum(self.at(t), self.least)

    def of(self, users: IntArray) -> Course:
        """Return the course of these users alone."""
        least = self.least if isinstance(self.least, float) else self.least[users]
        return Course(self.rising[users], self.start[users], self.rate[users], least)

    def reached(self, levels: FloatArray, t: float) -> float:
        """Return the t that all rising users reach at ``levels``, (users,), of a point whose solver reports ``t``.

        The solver's t may be too high by a tolerance, so the smallest (levels - start) / rate counts. But the level of a user that has
        risen by a billionth of its start determines only seven digits of t. For such users the solver's t counts, up to the rounding of the
        start.
        """
        up = (self.rate > 0).nonzero()[0]
        levels, start, rate = levels[up], self.start[up], self.rate[up]
        if not start.any():
            return float((levels / rate).min())
        gained = levels - start
        lowest = float((gained / rate).min())
        return min(max(lowest, t), float(((gained + ROUNDING * np.abs(start)) / rate).min()))

    def settled(self, users: IntArray, levels: FloatArray) -> Course:
        """Return the course on which these users keep these levels."""
        rising, start, rate = self.rising.copy(), self.start.copy(), self.rate.copy()
        rising[users], start[users], rate[users] = False, levels, 0.0
        return Course(rising, start, rate, self.least)

    def lowered(self, levels: FloatArray) -> Course:
        """Return the course on which no settled user must have more than its level at a point.

        Rounding may leave settled users slightly below their levels. Then the next program is infeasible, or feasible only within the
        solver's tolerance, and a rising user that holds a thousandth of what they hold has an error a thousand times as large.
        """
        short = (levels < self.start) & ~self.rising
        if not np.count_nonzero(short):
            return self
        return Course(self.rising, np.where(short, levels, self.start), self.rate, self.least)


class LevelGoal(Protocol):
    """The course of a goal: starts and rates of the users, and how they change after a level."""

    @property
    def equal(self) -> bool:
        """Does everybody stop at the first level?"""

    @property
    def now(self) -> float:
        """The t of the last level."""

    def begin(self) -> Course:
        """Return the course to the first level."""

    def event(self, course: Course) -> tuple[float, IntArray]:
        """Return the next t at which rates change without a limit, and the users settled there; inf if there is none."""

    def renew(self, course: Course, t: float) -> Course:
        """Return the course to the next level; some users have just been settled at t, and the others are at ``course.at(t)``.

        It is not asked where an engine settles users at caps of their own: a goal whose rates depend on who rises knows these as events.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """A leximin, or with ``equal`` the first of its levels for everybody: all ``members`` (bool, (users,)) rise at the same rate."""

    members: BoolArray
    equal: bool = False
    now: float = 0.0

    def begin(self) -> Course:
        """From 0."""
        return Course.together(self.members)

    def event(self, course: Course) -> tuple[float, IntArray]:
        """Never."""
        return np.inf, _NOBODY

    def renew(self, course: Course, t: float) -> Course:
        """The others rise on as before."""
        return course


# The proof of a level ------------------------------------------------------------------------------------------------------------


def rise(weight: FloatArray, gap: float) -> FloatArray:
    """Return by how much each user could rise above a level at most: sigma gap / weight, sigma the sum of the weights (q rate)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(weight.sum() * gap / weight)


def bound_of(course: Course, q: FloatArray, left: float, cap: FloatArray | None = None) -> float:
    """Return the largest t that prices allow; inf where they allow any.

    Parameters
    ----------
    course : Course
        With ``cap``: one on which users rise from 0 at rate 1.
    q : array (users,)
        Cheapest price of a unit of level.
    left : float
        All that is spent, without what settled users pay.
    cap : array (users,), optional
    """
    if cap is None or not np.isfinite(cap[course.rising]).any():
        total = float(q @ course.rate)
        return (left - float(q @ np.where(course.rising, course.start, 0.0))) / total if total > 0 else np.inf
    users = np.flatnonzero(course.rising)
    users = users[np.argsort(cap[users])]
    price, most = q[users], cap[users]
    sigma = np.cumsum(price[::-1])[::-1]  # of this one and all with larger caps
    paid = np.append(0.0, np.cumsum(price * np.where(np.isfinite(most), most, 0.0)))[:-1]  # for those with smaller caps
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(sigma > 0, (left - paid) / sigma, np.inf)
    stops = np.flatnonzero(bound <= most)
    return float(bound[stops[0]]) if stops.size else np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What prices prove of a level.

    Attributes
    ----------
    prices : array (limits,)
    q : array (users,)
        Cheapest price of a unit of each user's level; 0 where there is none.
    spent : float
        Price of all limits.
    bound : float
        No larger t can be reached by all who rise.
    floors : bool
        Are they prices of a completion (`fairopt.program.guarantees`)?
    """

    prices: FloatArray
    q: FloatArray
    spent: float
    bound: float
    floors: bool = False

    @classmethod
    def of(cls, course: Course, prices: FloatArray, q: FloatArray, spent: float, cap: FloatArray | None = None) -> Proof:
        """Return what these prices prove on a course."""
        paid = float(q @ np.where(course.rising, 0.0, course.start))
        return cls(prices, q, spent, bound_of(course, q, spent * (1 - DIGITS) - paid, cap))

    def stops(self, course: Course, t: float) -> BoolArray:
        """Say of each user who rises whether what it pays at t is more than noise in these prices."""
        return np.asarray(self.q[course.rising] * course.size(t)[course.rising] > NOISE * self.spent)


# The loop ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What one program of an engine shows. Where nobody is settled by it, the engine knows better now and solves another one.

    Attributes
    ----------
    x : array (pairs,)
        A feasible point.
    levels : array (users,), or None
        The levels at x, to which settled users are held where rounding leaves them less than they had; None: they keep what they had.
    t : float
        What all who rise can have.
    proof : Proof, optional
        Prices that stop some of them at t.
    stopped : int array, optional
        Who is stopped, where the engine has found that out; the default is found by the ``proof``.
    at_cap : int array
        Users who have reached a cap of their own by now, which ``caps`` says, of each.
    cap_stages : tuple of Stage
        Proofs of caps that hold only at the prices of an earlier level.
    held : array (users,), or None
        What settled users have, where the engine knows it better by now.
    """

    x: FloatArray
    levels: FloatArray | None
    t: float
    proof: Proof | None = None
    stopped: IntArray | None = None
    at_cap: IntArray = field(default_factory=lambda: _NOBODY)
    caps: FloatArray = field(default_factory=lambda: _NOTHING)
    cap_stages: tuple[Stage, ...] = ()
    held: FloatArray | None = None


class LevelSolver(Protocol):
    """An engine's part of the loop."""

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve one program on a course.

        Raises
        ------
        NoSolution
            At the deadline, with the ``stages`` that are final.
        NotConverged
        """


def solve_levels(program: Program, per_level: FloatArray, solver: LevelSolver, goal: LevelGoal, settle_at: float) -> Solution:
    """Raise levels until every user is settled, and give everybody exactly its level.

    Parameters
    ----------
    program : Program
    per_level : array (pairs,)
        What a task on the pair adds to the level of its user.
    solver : LevelSolver
    goal : LevelGoal
    settle_at : float
        Who can rise by less, relative to t, is settled.
    """
    x, course, stages = raise_levels(np.zeros(program.n_pairs), solver, goal, settle_at, ())
    return Solution(exactly(program, per_level, x, course.start), stages)


def raise_levels(
    x: FloatArray,
    solver: LevelSolver,
    goal: LevelGoal,
    settle_at: float,
    known: tuple[Stage, ...],
    part: int = 0,
) -> tuple[FloatArray, Course, tuple[Stage, ...]]:
    """Raise levels until every user is settled; return the last point, the course, and the ``known`` stages with those of this ``part``."""
    course, stages = goal.begin(), list(known)
    while np.count_nonzero(course.rising):
        step = solver.step(course, stages)
        x, (change, users) = step.x, goal.event(course)
        if change < step.t:
            stages.append(Stage(change, users, None, part))
            course = goal.renew(course.settled(users, course.at(change)[users]), change)
            continue
        course = course if step.held is None else replace(course, start=step.held)
        course = course if step.levels is None else course.lowered(step.levels)
        if step.at_cap.size:
            stages.extend(step.cap_stages)
            course = course.settled(step.at_cap, step.caps)
        if step.proof is None or (step.at_cap.size and not np.count_nonzero(course.rising)):
            continue
        proof = step.proof
        t = _not_noise(course, step.t, goal.now)
        stopped = np.flatnonzero(course.rising) if goal.equal else step.stopped
        users = stopped_at(course, t, proof, settle_at)[0] if stopped is None else stopped
        stages.append(Stage(t, users, proof.prices, part, floors=proof.floors))
        course = course.settled(users, course.at(t)[users])
        log.info("level %d: %.6g, %d users left", len(stages), t, np.count_nonzero(course.rising))
        course = goal.renew(course, t)
    return x, course, tuple(stages)


def settle_below(tolerance: float) -> float:
    """Return by how much, relative to its level, a user can rise and still be settled: a digit less than the certificate allows."""
    return min(0.1 * tolerance, 1e-9)


def _not_noise(course: Course, t: float, now: float) -> float:
    """Return the t of a level, or that of the last one where nobody has gained more since than rounding: nobody falls."""
    gained = course.rate * (t - now)
    return t if (gained > np.maximum(SETTINGS.gain * course.at(max(t, now)), SETTINGS.gain_of_least * course.least)).any() else now


def could_rise(course: Course, t: float, proof: Proof) -> FloatArray:
    """Return by how much each user who rises could rise above its level at t at most, relative to it; inf where the prices do not tell."""
    paid, could = proof.q * course.size(t), np.full(course.rate.size, np.inf)
    tells = (paid > NOISE * proof.spent) & (course.rate > 0)  # of who waits they tell nothing
    gap = float(max(proof.bound - t, 0.0))  # inf of prices of 0
    np.divide(float(proof.q @ course.rate) * gap, paid, out=could, where=tells)
    return np.asarray(could[course.rising])


def stopped_at(course: Course, t: float, proof: Proof, settle_at: float) -> tuple[IntArray, bool]:
    """Return the users who stop at t, and whether prices prove it. If they prove it for nobody, return the users who could rise least."""
    return stopped_of(course, could_rise(course, t, proof), settle_at)


def stopped_of(course: Course, could: FloatArray, settle_at: float) -> tuple[IntArray, bool]:
    """Return what `stopped_at` returns, given how much each user who rises ``could`` rise (`could_rise`)."""
    rising, stopped = course.rising, could <= settle_at
    proved = bool(stopped.any())
    if not proved:  # the best proof there is; the certificate will judge it
        stopped = (could <= could.min()) & (course.rate[rising] > 0)
    return rising.nonzero()[0][stopped], proved


def exactly(program: Program, per_level: FloatArray, x: FloatArray, levels: FloatArray) -> FloatArray:
    """Return x with the tasks of each user scaled so that it has exactly its level; ``per_level`` (pairs,) is that of a task.

    A pair that gives its user less than rounding of what it has gives it nothing: who looks at a server must not find a user there who is
    not.
    """
    worth, users = x * per_level, program.pair_users
    worth = np.where(worth > ROUNDING * program.per_user(worth)[users], worth, 0.0)
    reached = program.per_user(worth)
    factor = np.divide(levels, reached, out=np.zeros(levels.size), where=reached > 0)
    return np.asarray(np.where(worth > 0, x, 0.0) * factor[users])
