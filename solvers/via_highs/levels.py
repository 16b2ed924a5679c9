"""Leximin, and its first step, the equal level, as a sequence of warm-started linear programs.

The loop is that of `fairopt.solvers.leximin.levels`, the programs are those of ``level_programs``. This module handles *caps*: bounds on
the level of a user by its own limits, on tasks or parallelism (``fairopt.program.own_limits``).

*Caps that need no row.* A limit of which a unit of level takes the same on every pair is equivalent to a cap. If all own limits are such,
an LP that ignores them gives a t that is too low or right: users whose caps lie below it are settled there, and the next t is higher.

*Newton's method.* With other caps, the next level is the largest t with

    A x <= b,   s[n] >= min(t, cap[n]) (n rises),   s[n] >= level of n (n settled),   x >= 0,

which is not linear in t. For a guess g of t an LP gives the largest theta with s[n] >= theta min(g, cap[n]). If theta < 1, g is too high,
and the prices give a smaller upper bound on t: the largest t with sum of q min(t, cap) <= p.b - sum of q times the settled levels. That is
Newton's method on a concave piecewise-linear function, so a few LPs pass any number of caps.

*Prices lower caps.* After a level some limits have prices. A user who can still rise does so on pairs of price 0, where its own limits cap
its level: on any other pair it would take from settled users. So its cap falls without an LP. The prices of the shared limits, and the
price of the user's own limit (what a unit of it saves on the other pairs), prove that it can have no more. Each level puts a price on a
shared limit that had none, or settles users at a cap. So there are about as many LPs as shared limits, though perhaps as many levels as
users.

*Pairs that are closed.* A pair that the prices of a level have closed is in no later program (``faces``). With it, later prices would have
to keep it closed too, on top of those that stop who rises: after a few levels, prices paid by settled users are millions of times what the
others pay, whose level drowns in their rounding.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import Equalize, Leximin, Program, Solution, Stage
from fairopt.program.own_limits import OwnLimits
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.levels import Course, Proof, Step, Together, could_rise, settle_below, stopped_at, stopped_of
from fairopt.solvers.leximin.levels import solve_levels as by_levels
from fairopt.solvers.leximin.polish import levels_on
from fairopt.solvers.via_highs.level_points import Point
from fairopt.solvers.via_highs.level_problem import LevelProblem
from fairopt.solvers.via_highs.level_programs import LevelPrograms
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["CappedLevels", "CappedPrograms", "Caps", "reached_caps", "settled_by_prices", "solve_levels"]

log = logging.getLogger(__name__)


def solve_levels(
    program: Program, goal: Leximin | Equalize, tolerance: float, deadline: Deadline, narrows: bool = False, decides: bool = False
) -> Solution:
    """Return the leximin, or the equal level, by the LPs of all users; with ``narrows``, or where caps need rows, of what is left to them.

    With ``decides``, users are left out whom limits of their own decide. Then HiGHS finds some levels on which it gives up otherwise, and
    the prices of levels prove them only once they are completed.

    Raises
    ------
    NoSolution
        At the deadline, or where HiGHS finds no solution of a program that has one.
    """
    problem = LevelProblem.of(program, goal)
    programs = LevelPrograms(problem, deadline, decides=decides)
    solver = _Levels(programs, goal, settle_below(tolerance), narrows)
    found = by_levels(program, problem.per_level, solver, Together(problem.members, problem.equal), settle_below(tolerance))
    return replace(found, iterations=programs.iterations, programs_solved=programs.programs)


# Caps ----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Caps:
    """The highest level that each user can have by its own limits, and by prices of earlier levels.

    Attributes
    ----------
    own : OwnLimits
    level : array (users,)
        inf without a cap.
    limit : int array (users,)
        The own limit that gives the cap, -1 for none: also where prices that lowered the cap stop the user by themselves.
    lowered_by : int array (users,)
        The position in ``proofs`` of the prices that gave the cap, -1 for none.
    proofs : tuple of (prices, cost, free)
        Of each level that lowered caps: its prices, (limits,), what its shared limits cost a pair, inf where an earlier level has closed
        it, and which pairs were free then, (pairs,).
    free : bool array (pairs,)
        Pairs that are free at the prices of all levels so far: who rises uses no other.
    """

    own: OwnLimits
    level: FloatArray
    limit: IntArray
    lowered_by: IntArray
    proofs: tuple[tuple[FloatArray, FloatArray, BoolArray], ...]
    free: BoolArray

    @classmethod
    def of(cls, problem: LevelProblem) -> Caps:
        """Return the caps before the first level; of an equal level none."""
        free = np.ones(problem.program.n_pairs, bool)
        number = len(problem.program.users)
        nobody = np.full(number, -1)
        if problem.equal or not problem.own.rows.size:
            return cls(problem.own, np.full(number, np.inf), nobody, nobody, (), free)
        return cls(problem.own, *problem.own.caps(), nobody, (), free)

    def lowered(self, program: Program, rising: BoolArray, prices: FloatArray, t: float) -> Caps:
        """Return the caps at the prices of a level t: beyond their free pairs users would have to buy what others have, who are settled."""
        limits = program.limits
        cost = limits.matrix.T @ np.where(limits.of_servers, prices, 0.0)
        free = self.free & (cost * program.largest() <= SETTINGS.free_pair * float(prices @ limits.bounds))
        level, limit = self.own.caps(free)
        lower = rising & (level < self.level * (1 - ROUNDING))
        limit = np.where(level < t * (1 - SETTINGS.reached), -1, limit)  # who has more buys it: these prices stop it without any limit
        level, limit = np.where(lower, np.maximum(level, t), self.level), np.where(lower, limit, self.limit)
        proofs, by = self.proofs, self.lowered_by
        if lower.any():
            by = np.where(lower, len(proofs), by)
            proofs = (*proofs, (prices, np.where(self.free, cost, np.inf), free))
        return replace(self, level=level, limit=limit, lowered_by=by, proofs=proofs, free=free)

    def stages(self, users: IntArray) -> tuple[Stage, ...]:
        """Return the proofs of users at their caps: a stage for those who have the same cap by the prices of the same level."""
        stages = []
        users = users[self.lowered_by[users] >= 0]
        order = users[np.lexsort((self.level[users], self.lowered_by[users]))]
        level, by = self.level[order], self.lowered_by[order]
        new = np.flatnonzero((np.diff(level, prepend=-1.0) > SETTINGS.same_cap * level) | (np.diff(by, prepend=-1) != 0))
        for together in np.split(order, new[1:]) if order.size else ():
            prices, cost, free = self.proofs[self.lowered_by[together[0]]]
            limit = self.limit[together]
            beyond = np.array([self.own.price_beyond(k, cost, free) if k >= 0 else 0.0 for k in limit])
            if np.isfinite(beyond).any():
                full, bought = prices.copy(), np.isfinite(beyond) & (limit >= 0)
                full[self.own.rows[limit[bought]]] = beyond[bought]
                stages.append(Stage(float(self.level[together].min()), together, full))
        return tuple(stages)


def reached_caps(course: Course, cap: FloatArray, t: float) -> IntArray:
    """Return the users who rise and have their caps at t."""
    return np.flatnonzero(course.rising & (cap <= t * (1 + ROUNDING)))


# Steps ---------------------------------------------------------------------------------------------------------------------------


class _Levels:
    """Steps of a leximin of all users: by Newton's method as long as caps matter, and then without caps."""

    def __init__(self, programs: LevelPrograms, goal: Leximin | Equalize, settle_at: float, narrows: bool) -> None:
        problem = programs.problem
        self.programs, self.settle_at = programs, settle_at
        self.first_unit = problem.first_unit() if problem.members.any() else 0.0
        # Where all caps are such that need no row, the LPs ignore them.
        ignored = problem.equal or bool(problem.own.even.all())
        cap = Caps.of(problem).level if ignored else np.empty(0)
        self.cap = cap if np.isfinite(cap).any() else None
        self.capped = None if ignored else CappedLevels(_Guessed(programs), problem)
        self.narrows = narrows and self.capped is None
        self.proof: Proof | None = None  # of the level just settled

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve one LP."""
        if self.capped is not None:
            return self._with_caps(course, stages)
        return self._at(self.first_unit, course, stages)

    def _with_caps(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Go on by Newton's method as long as somebody who rises has a cap."""
        capped = self.capped
        assert capped is not None
        course = capped.consistent(course, stages)
        guess = capped.next_guess(course)
        some = bool(np.isfinite(capped.caps.level[course.rising]).any())
        step = capped.step_at(guess, course, stages) if some else self._at(guess, course, stages)
        return replace(step, held=course.start)

    def _at(self, unit: float, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve an LP without caps."""
        if self.narrows and self.proof is not None:
            self.programs.narrow(course, self.proof)
        self.programs.prepare(course, unit)
        step = self._without_caps(course, stages)
        self.proof = step.proof
        if self.capped is not None and step.proof is not None:
            self.capped.settled_at(step.t, step.proof)
        return step

    def _without_caps(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve the LP; settle users whose caps lie below t, which can only rise by that, and where there are none those stopped at t."""
        programs = self.programs
        point = programs.solve(course, None, stages)
        if self.cap is not None:
            at_cap = reached_caps(course, self.cap, point.t)
            if at_cap.size:
                return Step(point.x, point.levels, point.t, at_cap=at_cap, caps=self.cap[at_cap])
        lowered, point, proof, stopped = settled_by_prices(programs, course, point, self.cap, self.settle_at)
        return Step(point.x, None if lowered is course else point.levels, point.t, proof, stopped)


def settled_by_prices(
    programs: LevelPrograms, course: Course, point: Point, cap: FloatArray | None, settle_at: float
) -> tuple[Course, Point, Proof, IntArray]:
    """Return whom the prices of a point stop there, with their proof, after the course, with settled users held to no more than they have.

    Where users differ by no more than the solver's tolerance of prices, it has stopped before the optimum. A level of its own for those who
    are nearly proved to be stopped takes longer than prices of more digits.
    """
    lowered = course.lowered(point.levels)
    proof = programs.proof(lowered, point, cap)
    could = could_rise(lowered, point.t, proof)
    stopped, proved = stopped_of(lowered, could, settle_at)
    in_doubt = np.count_nonzero(could <= SETTINGS.in_doubt * settle_at) > stopped.size
    if not proved or in_doubt:
        point = programs.sharper(lowered, point)
        lowered = lowered.lowered(point.levels)
        proof = programs.proof(lowered, point, cap)
        stopped, _ = stopped_at(lowered, point.t, proof, settle_at)
    return lowered, point, proof, stopped


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """What came of a guess: a point, its levels (see `Step`), the part of what is wanted that all who rise have, what the prices prove.

    ``wanted`` is the guess, which may have changed; ``grew`` says that the next program has to be a larger one, whatever the prices say.
    """

    x: FloatArray
    levels: FloatArray | None
    part: float
    wanted: float
    proof: Proof
    grew: bool = False


class CappedPrograms(Protocol):
    """Linear programs of guesses of a level."""

    def narrow(self, course: Course, proof: Proof, t: float) -> None:
        """Leave out the pairs that the level t, just settled, has closed at these prices."""

    def first_guess(self, course: Course, caps: FloatArray) -> tuple[float, Proof | None]:
        """Return a level that is not too low, or inf, and what proves that."""

    def attempt(self, guess: float, course: Course, caps: FloatArray, stages: Sequence[Stage]) -> Tried:
        """Find the largest part of min(guess, cap) that all who rise can have."""


class _Guessed:
    """Guesses by the LPs of all users, each on a model of its own that starts from the last basis."""

    def __init__(self, programs: LevelPrograms) -> None:
        self.programs = programs

    def narrow(self, course: Course, proof: Proof, t: float) -> None:
        """Go on with a smaller program."""
        self.programs.narrow(course, proof, always=True)

    def first_guess(self, course: Course, caps: FloatArray) -> tuple[float, Proof | None]:
        """Nothing is known. LPs hold settled users to all that they have again, until one fails."""
        self.programs.slack, self.programs.magnified = 0.0, SETTINGS.magnified
        return np.inf, None

    def attempt(self, guess: float, course: Course, caps: FloatArray, stages: Sequence[Stage]) -> Tried:
        """Solve the LP. Settled users are held to all that they had.

        Rounding takes 1e-15 of that at every level: much of what a user gains who pays a millionth of their prices.
        """
        programs = self.programs
        programs.prepare(course, guess, caps)
        point = programs.solve(course, caps, stages)
        return Tried(point.x, None, point.part, point.t_unit, programs.proof(course, point, caps))


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Where Newton's method is: the next guess is at most ``bound``, and ``best`` is the lowest proof of it, if there is one."""

    bound: float
    best: Proof | None
    is_new: bool  # was a level just settled? Then nothing is known of the next one


class CappedLevels:
    """Steps by Newton's method; the programs say what comes of a guess."""

    def __init__(self, programs: CappedPrograms, problem: LevelProblem) -> None:
        self.programs, self.problem = programs, problem
        self.caps = Caps.of(problem)
        self.search = _Search(np.inf, None, is_new=True)
        self.level: tuple[float, Proof] | None = None  # the level just settled
        self.x: FloatArray | None = None  # of the last step
        self.further = np.inf  # no guess is higher, for the time being: the next level is seldom far from the last one

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Solve one LP."""
        course = self.consistent(course, stages)
        return replace(self.step_at(self.next_guess(course), course, stages), held=course.start)

    def consistent(self, course: Course, stages: Sequence[Stage]) -> Course:
        """Return the course on which settled users have what the equations of all levels so far say, not what rounding left of it.

        Prices of a level may be 10^4 times what its users pay: so much larger is then the error of a lower level in this one, and so on.
        """
        if self.level is None or self.x is None:
            return course
        program = self.problem.program
        levels = levels_on(program, Solution(self.x, tuple(stages)), course.rising)
        if levels is None:
            return course
        near = np.abs(levels - course.start) <= SETTINGS.consistent * course.start
        return replace(course, start=np.where(near & ~course.rising, levels, course.start))

    def next_guess(self, course: Course) -> float:
        """Return the next guess; after a level, caps are lower first."""
        if self.level is not None:
            t, proof = self.level
            self.caps, self.level = self.caps.lowered(self.problem.program, course.rising, proof.prices, t), None
            self.programs.narrow(course, proof, t)
        if self.search.is_new:
            self.search = _Search(*self.programs.first_guess(course, self.caps.level), is_new=False)
            self.further = np.inf if self.search.best is not None else self.further
        known = self.further if self.search.best is None else self.search.bound
        return min(known, self._most(course))

    def _most(self, course: Course) -> float:
        """Return the largest level that anyone who rises could have if it were alone."""
        return float(np.minimum(self.caps.level, self.problem.reach)[course.rising].max(initial=0.0))

    def step_at(self, guess: float, course: Course, stages: Sequence[Stage]) -> Step:
        """Settle the users with their caps at a level that all can reach; then the users stopped there, or guess again."""
        cap = self.caps.level
        tried = self.programs.attempt(guess, course, cap, stages)
        self.x = tried.x
        guess, best, caps = tried.wanted, self.search.best, cap[course.rising]
        low, within = float(caps.min()), bool((caps >= guess).all())
        if within or tried.part < 1 - SETTINGS.reached:  # (elsewhere it may be caps that stop them, and nothing is proved)
            is_level = within and tried.proof.bound <= tried.part * guess * (1 + SETTINGS.reached)  # its own prices prove it best
            better = is_level or best is None or tried.proof.bound < best.bound * (1 - ROUNDING)
            stalled = not better and not tried.grew and not (within and tried.part * guess >= low)
            best = tried.proof if better else best
            reached = min(tried.part * guess, low) if within else 0.0
        else:
            stalled, reached = False, guess
        if tried.part >= 1 - SETTINGS.reached:
            self.further *= SETTINGS.further_guess
        if stalled and not within:  # prices say no more, and users have a part of their caps alone: the least cap tells what they can have
            self.search = _Search(low, best, is_new=False)
            return Step(tried.x, tried.levels, 0.0)
        bound = np.inf if best is None else best.bound
        if within and bound < reached * (1 - SETTINGS.proved_gap):
            reached = bound  # settled users lack a little by rounding, which lets others rise beyond the bound
        at_cap = reached_caps(course, cap, reached)
        log.debug("guess %.12g, part %.15g, reached %.12g, bound %.12g, %d capped", guess, tried.part, reached, bound, at_cap.size)
        left = course.settled(at_cap, cap[at_cap])
        if at_cap.size and best is not None and not best.stops(left, reached).any():
            best, bound = None, np.inf  # these prices belong to the users who are settled now
        step = Step(tried.x, tried.levels, reached, at_cap=at_cap, caps=cap[at_cap], cap_stages=self.caps.stages(at_cap))
        self.search = _Search(bound, best, is_new=False)
        if not within:
            return step  # prices may bound t too low, by their rounding: an LP of those without caps below it says what the level is
        if best is None or not left.rising.any() or not (stalled or bound <= reached * (1 + SETTINGS.reached)):
            return step
        self.settled_at(reached, best)
        return replace(step, proof=best)

    def settled_at(self, t: float, proof: Proof) -> None:
        """Take note that a level is settled by these prices: caps are lower then, and nothing is known of the next level."""
        self.level, self.search, self.further = (t, proof), _Search(np.inf, None, is_new=True), t * SETTINGS.further_guess
