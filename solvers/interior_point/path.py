"""The path to one level of a leximin.

`fairopt.solvers.interior_point.steps` states the program and the steps. The path ends by the gap of the certificate, not by the products:
the bound from the prices alone, less the level of all rising users once x is scaled back into the limits. So a path that does not converge
is slow or gives up, but is never wrong. An interior point ends at the strictly complementary solution in the middle of the optimal face,
which has a price for every user who is settled at this level.

The last digits of a step are rounding. So below a small gap, if that proves the level, the exact solution on the active sets of the path
replaces its end (`fairopt.solvers.interior_point.finish`).

The path of the first level starts in the middle of the feasible set, later paths start where the one before ended, on the remaining face
(`fairopt.solvers.interior_point.faces`). A user whose cap lies below what all reach already is settled at its cap on the way, which can
only raise t, as soon as the gap is small. The path then goes on from an earlier point, whose prices without that user's are near the new
path.

Points live in the arrays of `fairopt.solvers.structure.pairs`, possibly on a device. Decisions need values of users or limits only, which
come back to NumPy after every step.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import DIGITS, NOISE, ROUNDING
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.finish import Sets, finish, read_active_sets
from fairopt.solvers.interior_point.settings import LEVELS
from fairopt.solvers.interior_point.steps import Point, advance, part_of_the_way
from fairopt.solvers.leximin.levels import Course, bound_of, rise, settle_below
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["Face", "LevelCertificate", "LevelPath", "LevelResult", "scaled_course", "solve_level"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class LevelCertificate:
    """What a point proves: all who rise can reach ``level``, by ``x`` scaled back into the limits; by its prices not all pass ``bound``.

    The digits of the limits count for ``x``: what passes a limit by less is not scaled back.
    """

    level: float
    bound: float
    relative: float  # by how much levels grow at most, in parts of what they are, where t grows by 1
    noise: float  # part of the level by which the bound is lowered for the digits of the limits
    x: Any  # in the arrays of the pairs; the others are NumPy's
    prices: FloatArray  # of limits, (slots, places)
    task_prices: FloatArray  # of limits on tasks that are rows
    user_prices: FloatArray  # the cheapest price of a unit of each level, (users,)
    spent: float  # sum of all prices
    saturated: BoolArray  # who rises and seems to be stopped here: its price outweighs what it has above the level, (users,)
    close: BoolArray  # these, and who rises and is hardly above the level, (users,)
    missing: float  # largest part of its level that a settled user lacks at x, or by which an equation fails
    point: Point
    sets: Sets | None = None  # of an exact end

    @property
    def gap(self) -> float:
        """Relative gap; inf where nothing is proved."""
        return (self.bound - self.level) * self.relative if 0 < self.relative < np.inf else np.inf

    @property
    def error(self) -> float:
        """The largest error left: the gap (x is infeasible if it is negative), or the missing levels of settled users."""
        return max(self.gap, -self.gap - 2 * self.noise, self.missing if self.missing > LEVELS.held else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Face:
    """The face that the levels so far leave to the next one, and a starting point (`fairopt.solvers.interior_point.faces`).

    Attributes
    ----------
    course : Course
        The users that still rise and their rates, relative to their reach; the others are settled.
    bounds : array (slots, places)
        The limits, less what settled users take.
    tight, full : bool arrays (users,), (slots, places)
        Users whose levels, and limits whose sums, are equations.
    x : array (pairs,)
        The end of the last level.
    t : float
        The last level.
    """

    course: Course
    bounds: FloatArray
    tight: BoolArray
    full: BoolArray
    x: FloatArray
    t: float


@dataclass(frozen=True, slots=True, eq=False)
class LevelPath:
    """The program of one level: who still rises from where, and who is settled at which level.

    Attributes
    ----------
    pairs : Pairs
    course : Course
        Levels are in parts of a user's reach. Who rises at rate 0 counts as settled here.
    face : Face, optional
        What earlier levels leave; None before the first.
    """

    pairs: Pairs
    course: Course
    face: Face | None = None

    @classmethod
    def first(cls, pairs: Pairs, unit: float) -> LevelPath:
        """Return the path to the first level of a leximin, with t in units of ``unit``."""
        return cls(pairs, Course(np.ones(pairs.n_users, bool), np.zeros(pairs.n_users), unit / pairs.scaled.reach))

    @classmethod
    def on(cls, face: Face, pairs: Pairs) -> LevelPath:
        """Return the path to the next level."""
        if face.full.any() or face.tight.any() or (face.bounds != 1).any():
            pairs.set_equalities(face.bounds, face.full, face.tight)
        return cls(pairs, face.course, face)

    @property
    def rising(self) -> BoolArray:
        """Users who rise, (users,)."""
        return self.course.rising

    @property
    def tight(self) -> BoolArray:
        """Users whose levels are equations, (users,)."""
        return np.zeros(self.rising.size, bool) if self.face is None else self.face.tight

    @property
    def side(self) -> Any:
        """The kind of each row of the users: 1 for a level, -1 for a limit on tasks, (rows,)."""
        return self.pairs.arrays.floats(np.append(np.ones(self.pairs.n_users), -np.ones(self.pairs.n_limited)))

    @property
    def _bounds(self) -> FloatArray:
        return np.ones((self.pairs.n_slots, self.pairs.n_places)) if self.face is None else self.face.bounds

    @property
    def _full(self) -> BoolArray:
        return np.zeros((self.pairs.n_slots, self.pairs.n_places), bool) if self.face is None else self.face.full

    def start(self) -> Point:
        """Return where the path starts."""
        if self.face is None:
            return self._start(self.pairs.even_slices())
        return self._start_amid(self.face) or self._start_on(self.face)

    def _start(self, x: Any) -> Point:
        """Return the start at a point whose levels lie above the course, with t half-way up to where they do not."""
        pairs, n, rising = self.pairs, self.pairs.n_users, self.rising
        level, tasks = np.split(pairs.arrays.numpy(pairs.rows(x)), [n])
        t = 0.5 * float(((level - self.course.start)[rising] / self.course.rate[rising]).min())
        left = pairs.arrays.floats(np.append(level - self.course.at(t), 1 - tasks))
        return Point(pairs.point(x, pairs.bounds - pairs.use(x), left), self.even_prices(), t)

    def _start_amid(self, face: Face) -> Point | None:
        """Return the start at even slices where earlier levels leave all limits and even slices lie above what all have; else None.

        That is far from all limits and levels. Half of every limit is divided, or half-way between the least that all need and all of it.
        """
        pairs, n = self.pairs, self.pairs.n_users
        if pairs.holds or pairs.n_limited or (face.bounds != 1).any():
            return None
        x = pairs.even_slices()
        least = float((self.course.start / pairs.arrays.numpy(pairs.rows(x))[:n]).max())
        return self._start((1 + 0.5 * least) * x) if least < LEVELS.least_amid else None

    def _start_on(self, face: Face) -> Point:
        """Where the last level ended; where there are equations, with prices that make all products the same."""
        pairs, xp = self.pairs, self.pairs.xp
        x = pairs.eligible(pairs.lay(face.x), 1.0)
        s, v = pairs.bounds - pairs.use(x), pairs.rows(x) - self._a * face.t - self._rows
        s, v = xp.maximum(s, LEVELS.least_slack * pairs.bounds), xp.maximum(v, LEVELS.least_slack * pairs.rows(x))
        primal = pairs.point(x, s, v)
        if not pairs.holds:
            return Point(primal, self.even_prices(), face.t)
        product = 1 / float(xp.sum(self._a / v))
        return Point(pairs.mask_equalities(primal), pairs.mask_equalities(product / primal), face.t)

    def even_prices(self) -> Any:
        """Return duals (z, p, m): the same price for the same part of a level; levels cost their users half of the cheapest pair."""
        pairs, scaled, xp = self.pairs, self.pairs.scaled, self.pairs.xp
        gives = np.bincount(scaled.server, weights=scaled.W) / np.bincount(scaled.server)
        gives = np.append(gives, np.full(pairs.n_places - pairs.n_servers, gives.mean()))
        p = pairs.arrays.floats(np.broadcast_to(gives, (pairs.n_slots, pairs.n_places)))
        y = pairs.arrays.floats(np.full(pairs.n_limited, gives.mean()))
        q = 0.5 * pairs.cheapest(p, y)
        m = xp.concat([q, y])
        z = pairs.eligible(pairs.cost(p) - pairs.along_rows(self.side * m), 1.0)
        return pairs.point(z, p, m) / float(self.course.rate @ pairs.arrays.numpy(q))

    @property
    def _a(self) -> Any:
        """By how much each row of the users rises with t, (rows,)."""
        return self.pairs.arrays.floats(np.append(self.course.rate, np.zeros(self.pairs.n_limited)))

    @property
    def _rows(self) -> Any:
        """Right-hand sides of the rows of the users, (rows,)."""
        return self.pairs.arrays.floats(np.append(self.course.start, np.ones(self.pairs.n_limited)))

    def capped(self, level: float) -> BoolArray:
        """Say who rises and has its cap below a level that all who rise can reach, (users,)."""
        return np.asarray(self.rising & (self.pairs.scaled.cap <= self.course.at(level) * (1 + ROUNDING)))

    def without(self, capped: BoolArray) -> LevelPath:
        """Return the path on which these users are settled at their caps."""
        users = np.flatnonzero(capped)
        return replace(self, course=self.course.settled(users, self.pairs.scaled.cap[users]))

    def restarts(self, points: list[Point]) -> list[Point]:
        """Return points where the path may start again, the last one a good start for those who rise: it leaves them most of the prices."""
        a = self._a
        left = np.array([float(a @ self.pairs.parts(point.dual)[2]) for point in points])
        good = np.flatnonzero(left >= LEVELS.restart)
        chosen = int(good[-1] if good.size else left.argmax())
        first = max(0, chosen + 1 - LEVELS.most_kept)
        kept = zip(points[first : chosen + 1], left[first:], strict=False)
        return [Point(point.primal, point.dual / float(part), point.t) for point, part in kept if part > 0]

    def newton_step(self, point: Point, now: LevelCertificate) -> Point:
        """Take a step of Newton's method."""
        money = self._money(point)
        products = self.pairs.mean(point.primal * point.dual) * self.pairs.n_products  # where rounding hides how near the end is
        part = part_of_the_way(min(now.error, products / money) if money > 0 else now.error)
        return advance(self.pairs, point, self.side, self._a, self._rows, 0.0, part, money)

    def _money(self, point: Point) -> float:
        """Return what those who rise pay at a point: t, and what they have at t = 0 (the unit of prices is that a m = 1)."""
        m = self.pairs.arrays.numpy(self.pairs.parts(point.dual)[2])[: self.pairs.n_users]
        return point.t + float(self.course.start[self.rising] @ m[self.rising])

    def goes_on_from(self, end: LevelCertificate) -> bool:
        """Is it clear what the next level may use, if there is one?"""
        assert end.sets is not None
        return end.sets.ambiguity < LEVELS.ambiguous or bool((end.saturated == self.rising).all())

    def ended(self, reached: LevelCertificate) -> LevelCertificate:
        """Return the exact end on the sets that a point shows, or the point where its end is worse, with these sets in any case."""
        if reached.sets is not None:
            return reached
        end = self.finished(reached.point)
        if end is not None and end.error <= max(reached.error, LEVELS.exact):
            return end
        return replace(reached, sets=read_active_sets(self.pairs, reached.point.primal, reached.point.dual, self._money(reached.point)))

    def without_dear(self, point: Point, end: LevelCertificate, enough: float) -> LevelCertificate:
        """Return the end without used pairs that its own prices call too dear, where that proves as much.

        They are few and have next to nothing, but what they waste counts in full against a user who gets a millionth of all spending.
        Only where nobody rises any further and nobody was settled before: later levels need all that their faces may use.
        """
        assert end.sets is not None
        pairs, sets = self.pairs, end.sets
        _, p, m = pairs.parts(end.point.dual)
        y = m[pairs.n_users :]
        cost = pairs.priced(p, y)
        cheap = cost - pairs.W * pairs.spread(pairs.cheapest(p, y)) <= LEVELS.dear * cost
        if not self.rising.all() or not end.saturated.all() or not bool(pairs.xp.any(sets.used & ~cheap)):
            return end
        other = self.finished(point, replace(sets, used=sets.used & cheap))
        return other if other is not None and self.proves_all(other, enough) and bool(other.saturated.all()) else end

    def finished(self, point: Point, sets: Sets | None = None) -> LevelCertificate | None:
        """Return what the exact end on the sets of a point, or on given ones, proves."""
        sets = sets or read_active_sets(self.pairs, point.primal, point.dual, self._money(point))
        best: LevelCertificate | None = None
        for smallest in (True, False) if self.pairs.holds else (True,):
            try:
                end = finish(self.pairs, sets, point.primal, point.dual, point.t, self.side, self._a, self._rows, smallest=smallest)
            except np.linalg.LinAlgError:
                continue
            reached = replace(self.proved(Point(*end)), sets=sets)
            if best is None or reached.error < best.error:
                best = reached
            if best.error <= LEVELS.exact:
                break
        return best

    def proves_all(self, reached: LevelCertificate, enough: float) -> bool:
        """Is everybody who seems to be stopped here, or nearly so, proved to be?

        A shortfall at this level is a surplus at higher levels, and can be large relative to a user with a small share. So no user who may
        belong to this level is left to the next.
        """
        return reached.error <= 0.1 * enough and bool(
            reached.saturated.any() and (self.rises(reached)[reached.close] <= 0.5 * enough).all()
        )

    def once_more(self, reached: LevelCertificate, enough: float) -> LevelCertificate:
        """Return the end one step further, if some user pays so little that the digits of the limits hide a rise that is large for it.

        The gap cannot tell any more then, but a step still lowers what used pairs cost beyond the cheapest ones of their users.
        """
        paid = (self.course.size(reached.level) * reached.user_prices)[reached.saturated]
        hidden = reached.gap <= reached.noise and enough * float(paid.min(initial=np.inf)) <= DIGITS * reached.spent
        if reached.sets is not None or not hidden or not self.proves_all(reached, enough):
            return reached
        try:
            further = self.proved(self.newton_step(reached.point, reached))
        except np.linalg.LinAlgError:
            return reached
        return further if self.proves_all(further, enough) else reached

    def rises(self, reached: LevelCertificate) -> FloatArray:
        """Return by how much each user could rise above the level at most, relative to it, (users,); inf where the prices do not tell."""
        course = self.course
        weight = course.rate * reached.user_prices
        # Never with a gap of 0: who is stopped by nothing has a price, too, as small as the products. A gap within the digits of the
        # limits counts by itself, as in the certificate: what the digits add would leave everybody unproved where users are many.
        noise = reached.noise if reached.gap > reached.noise else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):  # of those who do not rise
            could = rise(weight, max(reached.gap + noise, LEVELS.least_gap) / reached.relative) * course.rate / course.size(reached.level)
        return np.where((weight > 0) & reached.saturated, could, np.inf)

    def stopped(self, reached: LevelCertificate, tolerance: float) -> BoolArray:
        """Say who is proved to be stopped where the path ended, (users,)."""
        spent = self.course.size(reached.level) * reached.user_prices
        # Once the gap is rounding, no other prices can prove more: a user with a small share of them is settled by what they do prove.
        enough = settle_below(tolerance)
        settled_by = enough if reached.gap > reached.noise else max(enough, tolerance / 2)
        return np.asarray(self.rising & (self.rises(reached) <= settled_by) & (spent > NOISE * reached.spent))

    def proved(self, point: Point) -> LevelCertificate:
        """Return the level and the bound, of a point that need not fulfil anything."""
        pairs, course, rising, n = self.pairs, self.course, self.rising, self.pairs.n_users
        numpy = pairs.arrays.numpy
        x, _, v = pairs.parts(point.primal)
        _, p, m = pairs.parts(point.dual)
        q = numpy(pairs.cheapest(p, m[n:]))
        v, p, m = numpy(v), numpy(p), numpy(m)
        level, tasks = np.split(numpy(pairs.rows(x)), [n])
        beyond = numpy(pairs.use(x) - pairs.bounds)
        excess = max(float(beyond.max()), float(tasks.max(initial=0.0) - 1))
        # A sum over 100,000 users is as exact as the limit itself is known. To scale that back would leave a user who gets a millionth of
        # all spending unproved: a gap of 1e-14 is a rise by 1e-8 for it.
        level = level / max(1.0, (1 + excess) / (1 + DIGITS))
        settled = ~rising & (course.start > 0)
        lacks = 1 - level[settled] / course.start[settled]
        missing = float(np.where(self.tight[settled], np.abs(lacks), lacks).max(initial=0.0))
        missing = max(missing, float(np.abs(beyond[self._full]).max(initial=0.0)))
        # A NumPy number, like sigma: dividing by 0 is inf.
        reached = np.float64(((level - course.start)[rising] / course.rate[rising]).min())
        y = m[n:]
        sigma = np.float64(course.rate[rising] @ q[rising])
        paid = p * self._bounds
        money, spent = float(paid.sum() + y.sum()), float(np.abs(paid).sum() + y.sum())
        left = money - DIGITS * spent - float(q[~rising] @ course.start[~rising])
        bound = bound_of(course, q, left)
        relative = float((course.rate[rising] / course.size(reached)[rising]).max())
        wanted = course.size(point.t)
        saturated = rising & (m[:n] * wanted > v[:n] / wanted * self._money(point))
        close = saturated | (rising & (level <= (1 + LEVELS.close) * course.at(reached)))
        noise = DIGITS * spent / sigma * relative
        return LevelCertificate(reached, bound, relative, noise, x, p, y, q, spent, saturated, close, missing, point)


def scaled_course(scaled: ScaledProgram, course: Course, unit: float, now: float = 0.0) -> Course:
    """Return the course of the users of a scaled program, in parts of their reach, with t counted from ``now`` in units of ``unit``."""
    mine, reach = course.of(scaled.member), scaled.reach
    return Course(mine.rising, mine.at(now) / reach, mine.rate * unit / reach, mine.least / reach)


@dataclass(frozen=True, slots=True, eq=False)
class LevelResult:
    """Where a path ended: what its last point proves, who was settled at a cap on the way (``path``), and how many steps it took."""

    path: LevelPath
    reached: LevelCertificate
    steps: int


def solve_level(
    path: LevelPath,
    enough: float,
    deadline: Deadline,
    known: Mapping[str, object] = MappingProxyType({}),
    until: float = np.inf,
    start: Point | None = None,
) -> LevelResult:
    """Follow a path until all who seem to be stopped here are proved to be, up to half of ``enough``, or nothing more is gained.

    ``known`` is what is final already, at the deadline. The path stops at a level beyond ``until``, whose prices nobody needs. It starts
    where `LevelPath.start` says, or at another ``start``.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    points, steps = [start or path.start()], 0
    point, best, since, mark, kept, trial = points[-1], None, 0, np.inf, np.inf, LEVELS.sets_below
    for _ in range(LEVELS.steps_of_level):
        if deadline.left == 0.0:
            raise deadline.passed(known)
        now = path.proved(point)
        if now.level > until and now.missing <= LEVELS.held:
            return LevelResult(path, now, steps)
        if now.error < trial and not path.proves_all(now, enough):
            trial = LEVELS.sets_every * now.error
            end = path.finished(point)
            if end is not None and path.proves_all(end, enough) and path.goes_on_from(end):
                log.debug("exact on the sets of step %d: t %.9g, gap %.1e", steps, end.level, end.gap)
                now = path.without_dear(point, end, enough)  # which may pass caps that the point itself has not reached
        if now.gap < LEVELS.caps_below and now.missing <= LEVELS.almost_held and (capped := path.capped(now.level)).any():
            path = path.without(capped)
            if not path.rising.any():
                return LevelResult(path, now, steps)
            points = path.restarts(points)
            point, best, since, mark, kept, trial = points[-1], None, 0, np.inf, np.inf, LEVELS.sets_below
            now = path.proved(point)
        log.debug("step %d: t %.9g, gap %.1e, missing %.1e", steps, now.level, now.gap, now.missing)
        since, mark = (0, now.error) if now.error < 0.5 * mark else (since + 1, mark)
        if best is None or now.error < best.error or path.proves_all(now, enough):
            best = now
        if path.proves_all(best, enough) or (best.error <= 0.1 * enough and since >= LEVELS.stalled):
            break
        if since > LEVELS.failed:
            break
        if LEVELS.kept_above < now.error < LEVELS.kept_every * kept:
            kept = now.error
            points.append(point)
        try:
            point = path.newton_step(point, now)
        except np.linalg.LinAlgError:
            break
        steps += 1
    assert best is not None
    end = path.once_more(best, enough)
    return LevelResult(path, end, steps + (end is not best))
