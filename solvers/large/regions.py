"""A leximin of many levels, region by region: most levels are about a few servers, and the users who can run nowhere else.

At a level only limits with a price matter. Let B be a region, some of the servers. The users all of whose open pairs (`faces`) lie in B,
and no others, are a small program. Its level is an upper bound on what all of them can have together: more users only take away. If
prices of the level of all lie in B, it is that level, with the same prices: who has a pair elsewhere has it for nothing.

So the next level is the least of these bounds over all regions. A rough answer says which regions to try, and what to expect of each:
those servers where a level of it has prices. We solve the one with the least expectation, together with all that are expected at nearly
the same level. What is higher than expected is a new expectation, as long as another region may be lower. Where a region is a large part
of what is left, all of it is solved.

A step closes pairs of other users on limits that have a price: they have none there, and need none. What they will have elsewhere is left
open. Hence no point has all levels until a last program places everybody (`placing`). It also shows whether a region was overlooked: then
levels were found that nobody can have at once, and this way is lost. Often it shows earlier: a level is lower than one before it. Then all
starts again, with the regions of the levels so far as expectations.

Where many users of a large region may run nearly everywhere, its path is one of groups of them (`level_groups`), if that proves the level.

Caps are expected, too: users whose cap is clearly below the level that is expected are settled there at once, as each cap that a path
passes costs it steps; if the level is lower, it is solved again without. These users are in groups like others who are settled.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.program import Leximin, Program, Solution, Stage
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.interior_point.faces import Faces
from fairopt.solvers.interior_point.levels import caps_on_the_way, proof_of, unit_of_levels
from fairopt.solvers.interior_point.path import Face, LevelPath, LevelResult, scaled_course, solve_level
from fairopt.solvers.large.level_groups import LevelGroups
from fairopt.solvers.large.placing import place
from fairopt.solvers.large.settings import SETTINGS
from fairopt.solvers.leximin.levels import Course, NotConverged, Step, Together, exactly, raise_levels, settle_below
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["Region", "regions_of", "solve_in_regions"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Servers, and the level that users who have no others are expected to reach.

    Attributes
    ----------
    level : float
    servers : bool array (servers,)
    """

    level: float
    servers: BoolArray


def regions_of(scaled: ScaledProgram, rough: Solution) -> list[Region]:
    """Return the regions that the levels of a rough answer show, in ascending order."""
    stages = sorted(rough.stages, key=lambda stage: stage.value)
    return [_region(scaled, stage.value, stage.prices) for stage in stages if stage.prices is not None]


def _region(scaled: ScaledProgram, level: float, prices: FloatArray) -> Region:
    """Return the region of a level with these prices of limits."""
    spent = np.abs(prices[scaled.row]) * scaled.program.limits.bounds[scaled.row]
    priced = (
        np.bincount(scaled.row_place, weights=spent > SETTINGS.priced_in_region * spent.max(initial=0.0), minlength=scaled.n_servers) > 0
    )
    return Region(level, priced)


class _OverlookedError(NotConverged):
    """A level is lower than one before it."""


def solve_in_regions(program: Program, goal: Leximin, rough: Solution, tolerance: float, deadline: Deadline) -> Solution | None:
    """Return the leximin, None where the way got lost.

    Parameters
    ----------
    rough : Solution
        With levels and prices of about the right size: what is wrong with them costs time, or leads nowhere.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        Where the program has no place in the layout of `fairopt.solvers.structure.pairs`.
    """
    scaled = ScaledProgram.of(program)
    members = np.zeros(len(program.users), bool)
    members[scaled.member] = True
    per_level = program.worth
    regions, steps = regions_of(scaled, rough), 0
    for left in reversed(range(SETTINGS.starts)):
        solver = _Regions(scaled, regions, tolerance, deadline, ascending=left > 0)
        try:
            _, course, stages = raise_levels(np.zeros(program.n_pairs), solver, Together(members), settle_below(tolerance), ())
            x = exactly(program, per_level, solver.placed(course, len(stages)), course.start)
        except _OverlookedError as overlooked:
            log.info("%s", overlooked)
            regions, steps = solver.known, steps + solver.steps
        except NotConverged as failure:
            log.info("%s", failure)
            return None
        else:
            in_order = tuple(sorted(stages, key=lambda stage: stage.value))
            return Solution(x, in_order, iterations=steps + solver.steps, programs_solved=max(len(stages), 1))
    return None


class _Regions:
    """A path to one level after another, each on a region of the face that those before leave."""

    def __init__(self, scaled: ScaledProgram, regions: list[Region], tolerance: float, deadline: Deadline, *, ascending: bool) -> None:
        self.scaled, self.regions, self.ascending = scaled, list(regions), ascending
        self.found: list[Region] = []
        self.enough, self.tolerance, self.deadline = settle_below(tolerance), tolerance, deadline
        self.unit = unit_of_levels(scaled)
        self.faces = Faces(scaled, NUMPY)
        self.last: LevelResult | None = None
        self.level = 0.0  # the highest so far
        self.of_level = np.full(scaled.n_users, -1)  # at which each user was on a path last
        self.groups: LevelGroups | None = None  # of the present path
        self.group = np.full(scaled.n_users, -1)  # of each user on its last path; -1 by itself
        self.expects_caps = True
        self.steps = self.window = 0
        self._count()

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Rise to the next level."""
        now = self._settled(course, len(stages))
        climbed: tuple[BoolArray, LevelPath, LevelResult] | None = None
        while True:
            together, most = self._next(now)
            if climbed is None or (together != climbed[0]).any():  # another expectation of the same users changes nothing
                climbed = (together, *self._climbed(now, together))
            _, whole, end = climbed
            t = float(end.reached.level) * self.unit
            log.info("%d users, %d servers: %.6g, expected up to %.6g", whole.rising.size, whole.pairs.n_servers, t, most)
            if not end.path.rising.any() or t <= most:
                break
            self.regions[: self.window] = [Region(t, region.servers) for region in self.regions[: self.window]]
            self.regions.sort(key=lambda region: region.level)
        path, reached, part = end.path, end.reached, whole.pairs.scaled
        at_cap, caps = caps_on_the_way(whole, end)
        x = np.zeros(self.scaled.program.n_pairs)  # none is needed before all are placed
        if not path.rising.any():
            return Step(x, None, t, at_cap=at_cap, caps=caps)
        proved = path.stopped(reached, self.tolerance)
        if reached.error > self.enough or not proved.any():
            raise NotConverged(f"no convergence at level {len(stages) + 1} of a region, with an error of {reached.error:.1e}")
        self.last = LevelResult(path, path.ended(reached), end.steps)
        self.group[self.faces.user] = -1 if self.groups is None else np.where(self.groups.is_together, self.groups.group, -1)
        t = float(self.last.reached.level) * self.unit
        proof = proof_of(part, self.last.reached, self.unit, course.start.size)
        region = _region(self.scaled, t, proof.prices)
        above = [other for other in self.found if other.level * (1 - SETTINGS.lower) > t]
        self.found.append(region)
        if above and self.ascending:
            highest = max(other.level for other in above)
            self.found.append(Region(t, np.logical_or.reduce([region.servers, *(other.servers for other in above)])))
            raise _OverlookedError(f"level {len(stages) + 1}, {t:.6g}, is lower than {highest:.6g} before it: a region was overlooked")
        return Step(x, None, t, proof, part.member[proved], at_cap=at_cap, caps=caps)

    def placed(self, course: Course, level: int) -> FloatArray:
        """Return tasks at which everybody has its level at the end of a course, after so many levels.

        Raises
        ------
        NotConverged
            There are none.
        """
        now = self._settled(course, level)
        kept = self.faces.open & (now.start > 0)[self.scaled.user]
        x, kept = self._placed_by_last(now, kept)
        if kept.any():
            pairs, face = self.faces.next(now, 0.0, kept)
            point = place(pairs.scaled, face.bounds, face.course.start, self.deadline)
            self.steps += point.steps
            log.info("levels that can be had at once, but for %.1e", 1 - point.t)
            if not abs(point.t - 1) <= SETTINGS.together:
                raise NotConverged(f"the levels of the regions cannot be had at once, but for {1 - point.t:.1e}")
            x[kept] = point.x
        return self.scaled.tasks(x)

    def _placed_by_last(self, now: Course, kept: BoolArray) -> tuple[FloatArray, BoolArray]:
        """Return the tasks that are placed already, and which of the ``kept`` pairs are left to place, (pairs,).

        If the last path was about all that was left, its end gives its users their levels. They need no other place if they share no
        server with the users who are left to place.
        """
        scaled, faces = self.scaled, self.faces
        x, mine = np.where(faces.open, 0.0, faces.x), np.zeros(kept.size, bool)
        mine[faces.pair] = kept[faces.pair]
        others = kept & ~mine
        apart = not any(np.isin(of[others], of[mine]).any() for of in (scaled.user, scaled.server))
        if not mine.any() or not apart or scaled.across.shape[0]:
            return x, kept
        there = np.where(mine, faces.x, x)
        users, servers = np.unique(scaled.user[mine]), np.unique(scaled.server[mine])
        lacks = np.abs(scaled.sum_by_user(scaled.W * there)[users] / now.start[users] - 1).max()
        over = scaled.use(there)[:, servers].max() - 1
        log.info("levels of %d users that the last path leaves, but for %.1e", users.size, max(lacks, over))
        return (there, others) if max(lacks, over) <= SETTINGS.exact_placing else (x, kept)

    @property
    def known(self) -> list[Region]:
        """The regions of the levels so far and those that are left, in ascending order."""
        return sorted([*self.found, *self.regions], key=lambda region: region.level)

    def _settled(self, course: Course, level: int) -> Course:
        """Settle whom the last level stopped; return the course in parts of the users' reach."""
        now, faces = scaled_course(self.scaled, course, self.unit), self.faces
        if self.last is not None:
            path, reached = self.last.path, self.last.reached
            faces.settle(path, reached, path.rising & ~now.rising[faces.user], now)
            self.of_level[faces.user], self.level, self.last = level, max(self.level, float(reached.level)), None
            if faces.leave_out_some(now):
                raise NotConverged(f"stopped after level {level}: no open pair is left for a rising user")
            self._count()
        return now

    def _count(self) -> None:
        """Count the open pairs of each user, and list the users and servers of those whose users have equations for levels."""
        faces, user, server = self.faces, self.scaled.user, self.scaled.server
        self.open_of = np.bincount(user[faces.open], minlength=self.scaled.n_users)
        tight = np.flatnonzero(faces.open & faces.tight[user])
        self.tight_pairs = user[tight], server[tight]

    def _next(self, course: Course) -> tuple[BoolArray, float]:
        """Return the users of the regions to solve next, (users,), and the highest level to expect; forget regions where nobody rises."""
        user, server, pairs = self.scaled.user, self.scaled.server, self.open_of
        while self.regions:
            least = self.regions[0].level
            self.window = sum(region.level <= least * (1 + SETTINGS.same_level) ** 2 for region in self.regions)
            region = self._whole(np.logical_or.reduce([region.servers for region in self.regions[: self.window]]))
            here = np.bincount(user[self.faces.open & region[server]], minlength=pairs.size)
            inside = (pairs > 0) & (here == pairs)
            if not (inside & course.rising).any():
                del self.regions[0]
            elif pairs[inside].sum() > SETTINGS.large * pairs.sum():
                break
            else:
                return inside, least * (1 + SETTINGS.same_level)
        return pairs > 0, np.inf

    def _whole(self, region: BoolArray) -> BoolArray:
        """Return a region with all servers of users with equations for levels: full limits are equations, too, about all their users."""
        user, server = self.tight_pairs
        while True:
            here = np.bincount(user[region[server]], minlength=self.scaled.n_users) > 0
            wider = region | (np.bincount(server[here[user]], minlength=region.size) > 0)
            if (wider == region).all():
                return region
            region = wider

    def _climbed(self, course: Course, together: BoolArray) -> tuple[LevelPath, LevelResult]:
        """Return the path of these users, and where it ends, some of them settled at their caps; tried twice where that is not exact."""
        faces = self.faces
        pairs, face = faces.next(course, self.level, faces.near(course, together))
        from_last = bool(self.of_level[faces.user[0]] >= 0 and (self.of_level[faces.user] == self.of_level[faces.user[0]]).all())
        found = self._climbed_by_groups(pairs, face, from_last)
        if found is not None:
            return found
        whole = self._path(pairs, face, from_last)
        end = self._end(whole)
        if from_last and end.path.rising.any() and end.reached.error > SETTINGS.good:
            again = self._path(pairs, face, False)
            other = self._end(again)
            if not other.path.rising.any() or other.reached.error < end.reached.error:
                return again, other
        return whole, end

    def _climbed_by_groups(self, pairs: Pairs, face: Face, from_last: bool) -> tuple[LevelPath, LevelResult] | None:
        """Return the path of these users, and the end that a path of groups of them proves; None where it proves none."""
        whole = LevelPath.on(face, pairs)
        path = self._without_low_caps(whole)
        groups = LevelGroups.of(pairs.scaled, replace(face, course=path.course), self.group[self.faces.user])
        self.groups = None
        if groups is None:
            return None
        few = self._path(lay_out(groups.program, NUMPY), groups.face_of_groups, from_last)
        end = groups.spread(few, self._climb(few), path)
        if not self._had_low_caps(whole, path, end):
            return self._climbed_by_groups(pairs, face, from_last)
        proves = not end.path.rising.any() or end.path.proves_all(end.reached, self.enough)
        log.info(
            "%d groups of %d users: error %.1e%s", few.rising.size, whole.rising.size, end.reached.error, "" if proves else ", no proof"
        )
        if not proves:
            return None
        self.groups = groups
        return whole, end

    def _end(self, whole: LevelPath) -> LevelResult:
        """Follow a path, without those whose caps are expected to be lower."""
        path = self._without_low_caps(whole)
        end = self._climb(path)
        return end if self._had_low_caps(whole, path, end) else self._climb(whole)

    def _without_low_caps(self, whole: LevelPath) -> LevelPath:
        """Return a path without users whose caps are expected to be below its level; a path that starts at even slices stays as it is."""
        expected = max(self.level, self.regions[0].level / self.unit) if self.regions else self.level
        if whole.face is None or not self.expects_caps or self.level <= 0:
            return whole
        path = whole.without(whole.capped(SETTINGS.below * expected))
        return path if path.rising.any() else whole

    def _had_low_caps(self, whole: LevelPath, path: LevelPath, end: LevelResult) -> bool:
        """Were the caps of the users whom ``path`` leaves out as low as expected? If not, no low caps are expected from now on."""
        early = whole.rising & ~path.rising
        low = bool((path.course.start[early] <= whole.course.at(end.reached.level)[early]).all())
        self.expects_caps &= low
        return low

    def _climb(self, path: LevelPath) -> LevelResult:
        end = solve_level(path, self.enough, self.deadline, final_levels(self.scaled.program, ()))  # none is before all are placed
        self.steps += end.steps
        return end

    def _path(self, pairs: Pairs, face: Face, from_last: bool) -> LevelPath:
        """Return the path to the level of these users, which starts where their last one ended if that was the same for all of them."""
        if face.course.rising.all() and not face.full.any() and (face.bounds == 1).all():
            return LevelPath.first(pairs, self.unit)
        part, x = pairs.scaled, face.x
        if not from_last:
            begin = np.where(face.course.rising, face.course.rate * SETTINGS.begin * self.level, face.course.start)
            point = place(part, face.bounds, begin, self.deadline, SETTINGS.nearly)
            self.steps += point.steps
            x = np.maximum(point.x, SETTINGS.least_of_slice / np.bincount(part.server)[part.server])
        return LevelPath.on(_from(face, x, part), pairs)


def _from(face: Face, x: FloatArray, part: ScaledProgram) -> Face:
    """Return a face on which a path starts at x."""
    rising = face.course.rising
    t = (part.sum_by_user(part.W * x)[rising] / face.course.rate[rising]).min()
    return replace(face, x=x, t=float(t))
