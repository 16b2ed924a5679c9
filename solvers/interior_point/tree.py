"""Filling a tree of queues by a structured interior point: a path to each level, on what the levels before leave.

The loop over parts and levels is `fairopt.solvers.leximin.tree`. A limit on shares alone needs no row: the course knows when it is full.
What is left are the limits of servers, which the paths are made for. Each path climbs from the shares S that users have now,

    maximise t   subject to   A x <= b,   x >= 0,   s[n] >= S[n] + rate[n] t  for users who rise,   s[n] >= S[n]  for the others,

where t counts from now. It ends at the level, or at the first point beyond the next change of rates: nobody asks for prices there.

*What levels leave* (``faces``) holds as long as nobody has less than before, so in later parts, too: pairs that are not used stay unused,
limits with a price stay full, and a user with a price keeps its share. Where such a user is to rise, again or after it has waited for
others, the prices of the earlier level prove that it cannot, and no path is needed. Users who have nothing and do not rise are on no path:
their rows s >= 0 hold by themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import NOISE
from fairopt.program import Program, Solution, Stage, TreeFilling
from fairopt.program.share_limits import ShareLimits
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.interior_point.faces import Faces
from fairopt.solvers.interior_point.path import LevelCertificate, LevelPath, scaled_course, solve_level
from fairopt.solvers.interior_point.settings import LEVELS, TOTALS
from fairopt.solvers.leximin.levels import Course, NotConverged, Proof, Step, settle_below
from fairopt.solvers.leximin.tree import TreeGoal, solve_tree, unit_of_part
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle

__all__ = ["obstacle_of_tree", "solve_filling"]

log = logging.getLogger(__name__)


def obstacle_of_tree(program: Program, goal: TreeFilling) -> str:
    """Return why a tree does not fit into the layout of ``structure``, as the end of a sentence that begins "the program has"."""
    guarantees = (part for part in goal.parts if part.extra is not None and len(part.extra))
    if not all(ShareLimits.of(program, part).rows.all() for part in guarantees):
        return "guarantees of queues that are not limits on shares, but on some servers alone"
    return obstacle(_of_servers(program))


def solve_filling(program: Program, goal: TreeFilling, tolerance: float, deadline: Deadline, arrays: Arrays = NUMPY) -> Solution | None:
    """Fill a tree, None if a path did not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        Where it has an `obstacle_of_tree`, or no place in a layout of ``structure.layouts`` in these arrays.
    """
    blocked = obstacle_of_tree(program, goal)
    if blocked:
        raise Unsupported(f'"interior-point" cannot solve "{program.name}" here: the program has {blocked}; use highs')
    fillings: list[_Filling] = []

    def begin(of: Program) -> Callable[[Program, TreeGoal], _Part]:
        fillings.append(_Filling(of, tolerance, deadline, arrays))
        mine = fillings[-1]
        return lambda of_part, level_goal: _Part(mine, of_part, level_goal)

    try:
        found = solve_tree(program, goal, begin, settle_below(tolerance), deadline)
    except NotConverged as failure:
        log.info("%s", failure)
        return None
    return replace(
        found,
        iterations=found.iterations + sum(each.steps for each in fillings),
        programs_solved=found.programs_solved + sum(each.paths for each in fillings),
    )


def _of_servers(program: Program) -> Program:
    """Return the program without limits on shares."""
    return replace(program, limits=ShareLimits.of(program).others)


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """What a level has proved, of the limits of the whole program.

    Attributes
    ----------
    prices : array (limits,)
    q : array (users,)
        The cheapest price of a unit of each user's share.
    spent : float
    """

    prices: FloatArray
    q: FloatArray
    spent: float


class _Filling:
    """How far a filling is: what the levels of all parts leave, and what they have proved."""

    def __init__(self, program: Program, tolerance: float, deadline: Deadline, arrays: Arrays) -> None:
        self.program, self.tolerance, self.deadline = program, tolerance, deadline
        self.rows = ~ShareLimits.of(program).rows
        self.scaled = ScaledProgram.of(_of_servers(program))
        self.faces = Faces(self.scaled, arrays)
        self.levels: list[_Level] = []
        self.steps = self.paths = 0

    @cached_property
    def by_pair(self) -> sp.csr_array:
        """What each pair takes of each limit, (pairs, limits)."""
        return sp.csr_array(self.program.limits.matrix.T)

    def learn(self, path: LevelPath, reached: LevelCertificate, unit: float) -> _Level:
        """Keep what the end of a path proves; q is that of pairs which are still open, 0 for users without any."""
        part, prices, scaled = path.pairs.scaled, np.zeros(self.rows.size), self.scaled
        prices[self.rows] = part.prices(reached.prices, reached.task_prices) * unit
        if part is scaled:  # which the path knows of all of them
            q = np.zeros(len(self.program.users))
            q[scaled.member] = reached.user_prices * unit / scaled.reach
        else:
            pair = scaled.column[self.faces.open]
            q = self.program.cheapest((self.by_pair @ prices)[pair] / self.program.utilities[pair], pair)
        self.levels.append(_Level(prices, q, reached.spent * unit))
        return self.levels[-1]


class _Part:
    """The paths of one part. Its own limits are on shares."""

    def __init__(self, filling: _Filling, program: Program, goal: TreeGoal) -> None:
        self.filling, self.program, self.goal = filling, program, goal

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Stop users by what is known, or climb to the next level, or beyond the next change of rates."""
        now, change = self.goal.now, self.goal.event(course)[0]
        for level in self.filling.levels:
            stopped = course.rising & (course.rate > 0) & (level.q * course.size(now) > NOISE * level.spent)
            if stopped.any():
                return Step(self.goal.x, None, now, self._proof(level, now), np.flatnonzero(stopped))

        filling, scaled, faces = self.filling, self.filling.scaled, self.filling.faces
        unit = unit_of_part(self.filling.scaled.reach, course.rate[self.filling.scaled.member])
        until = (change - now) / unit
        mine = scaled_course(scaled, course, unit, now)
        climbing = replace(mine, rising=mine.rising & (mine.rate > 0))  # who waits keeps what it has
        if faces.leave_out_some(climbing):
            raise NotConverged(f"stopped after level {len(stages)}: no open pair is left for a rising user")
        faces.x = self._start(climbing)
        pairs, face = faces.next(climbing, 0.0)
        enough = settle_below(filling.tolerance)
        end = solve_level(LevelPath.on(face, pairs), enough, filling.deadline, final_levels(self.program, stages), until)
        filling.steps, filling.paths = filling.steps + end.steps, filling.paths + 1
        path, reached = end.path, end.reached
        if reached.level <= until:
            reached = path.ended(reached)
        x, levels = self._point(path, reached, course)
        t = now + unit * reached.level
        if reached.level > until:
            return Step(x, levels, max(t, float(np.nextafter(change, np.inf))))
        proved = path.stopped(reached, filling.tolerance)
        if reached.error > enough or not proved.any():
            raise NotConverged(f"no convergence at level {len(stages) + 1}, with an error of {reached.error:.1e}")

        part, proof = path.pairs.scaled, self._proof(filling.learn(path, reached, unit), now + unit * reached.bound)
        users = np.flatnonzero(np.isin(scaled.member, part.member[proved]))
        faces.settle(path, reached, proved, mine.settled(users, mine.at(reached.level)[users]))
        return Step(x, levels, min(t, change), proof, part.member[proved])

    def _proof(self, level: _Level, bound: float) -> Proof:
        """Return the proof of a level, among the limits of this part."""
        return Proof(np.append(level.prices, np.zeros(len(self.program.limits) - level.prices.size)), level.q, level.spent, bound)

    def _start(self, course: Course) -> FloatArray:
        """Return the last point, with half of what it leaves of every limit divided evenly, and something of every pair that is open."""
        scaled, faces = self.filling.scaled, self.filling.faces
        if not self.filling.levels and not self.goal.x.any():
            return faces.x  # the path starts at even slices
        last = np.where(faces.open, self.goal.x[scaled.column] / scaled.scale, faces.x)
        last[(~course.rising & (course.start == 0))[scaled.user]] = 0.0
        every = np.clip(1 - scaled.use(last), 0.0, None)
        left = every[:, scaled.server]
        room = np.min(np.divide(left, scaled.A, out=np.full(left.shape, np.inf), where=scaled.A > 0), axis=0)
        even = 1 / np.bincount(scaled.server)[scaled.server]
        more = 0.5 * even * room
        if scaled.across.shape[0]:
            taken = scaled.across @ more
            part = np.divide(every[:, scaled.n_servers :].ravel(), 2 * taken, out=np.ones(taken.size), where=taken > 0)
            np.minimum.at(
                more, scaled.across.indices, np.repeat(np.minimum(part, 1.0), np.diff(scaled.across.indptr)) * more[scaled.across.indices]
            )
        return np.where(faces.near(course), np.maximum(last + more, TOTALS.part_at_start * even), last)

    def _point(self, path: LevelPath, reached: LevelCertificate, course: Course) -> tuple[FloatArray, FloatArray]:
        """Return where a path ends, scaled back into the limits, and its levels; who misses what is rounding has its share."""
        scaled = self.filling.scaled
        x = scaled.tasks(self.filling.faces.point(path, reached))
        limits = scaled.program.limits
        use = np.divide(limits.matrix @ x, limits.bounds, out=np.zeros(len(limits)), where=limits.bounds > 0)
        x /= max(1.0, float(use.max(initial=0.0)))
        levels = self.program.per_user(x * self.program.utilities)
        held = ~course.rising & (levels < course.start) & (levels >= course.start * (1 - LEVELS.held))
        return x, np.where(held, course.start, levels)
