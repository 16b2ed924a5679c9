"""Proof of the filling of a tree of queues: the course is recomputed from the answer, and each level proved by its prices.

The rates of the tree are part of the definition, and recomputed here (`fairopt.certificate.tree_course`) for the stopped users that the
answer names. Each level is proved by the inequality of `fairopt.certificate.levels` with the shares of the course in place of t: for prices
p >= 0, with S + rate t the shares of users who rise and S those of the others,

    p.b - sum over all users of q S  -  t sum over users who rise of q rate  >=  0,

and the left side bounds how much t, and the stopped users, could rise. Each part is proved with its own extra limits, at the point that the
answer reports for the end of the part; this point shows that the shares can be reached.

The consequences of a level for pairs, limits and users (`fairopt.certificate.levels`) hold in later parts, too, if no extra limit had a
price or closed a pair, because shares never fall.

Prices with floors are those of completions. They, and how far guarantees are met, are proved in `fairopt.certificate.floors`.

Without prices, users may stop only where a limit on shares (`fairopt.program.share_limits`) is full, and rates change only there and where
somebody under a clamp has caught up.

Residuals of a user in an early part are relative to what it has in the end, if that is more. For a user who ends with nothing, because
others have all that it could use, they are relative to what it could have alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.certificate.floors import CompletionProofs, promised_gap, raised_gap
from fairopt.certificate.levels import LevelProofs
from fairopt.certificate.ruled_levels import RuledProofs
from fairopt.certificate.tree_course import Course
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import FITS, NOTHING
from fairopt.program import LimitKind, Limits, Program, Solution, Stage, TreeFilling
from fairopt.program.share_limits import ShareLimits, during
from fairopt.program.tree_filling import Part
from fairopt.program.undisturbed import Undisturbed, stop_times

__all__ = ["tree_gaps"]

_NEVER = (float("inf"), float("inf"))
_PART_OF_ALONE = 1e-3  # part of what a user could have alone: residuals of users who end with nothing are relative to it


def tree_gaps(program: Program, goal: TreeFilling, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels of all parts, and of what the answer says of guarantees."""
    optimality, fairness, undisturbed = _gaps_within_floors(program, goal, solution)
    return max(optimality, promised_gap(program, goal, solution, undisturbed, _gaps_within_floors)), fairness


def _gaps_within_floors(program: Program, goal: TreeFilling, solution: Solution) -> tuple[float, float, Undisturbed]:
    """Return the residuals of a filling that keeps the floors that it has, and which nodes are undisturbed in it."""
    parts = len(goal.parts)
    if len(solution.parts) == parts and len(solution.extra_bounds) in (0, parts):
        proof = _Filling(program, goal, solution)
        try:
            return proof.gaps()
        except _NoFilling:
            pass
    return *_NEVER, Undisturbed.before(goal.tree)


class _NoFilling(Exception):
    """The stages of an answer are not those of a filling: no residual measures that."""


class _Filling:
    """The proof of a filling, part after part.

    Attributes
    ----------
    size : array (users,)
        Residuals of a user are relative to it, or to its share where that is more.
    completions : list of CompletionProofs, or None
        Proofs of levels with floors: where guarantees are met, and in the surplus. None without floors.
    shares : Shares
        Of the course, at the end of the last part.
    undisturbed : Undisturbed
    known : LevelProofs or None
        Of the last part, where their consequences hold in later parts.
    optimality, fairness : float
        The worst residuals so far.
    """

    def __init__(self, program: Program, goal: TreeFilling, solution: Solution) -> None:
        self.program, self.goal, self.solution = program, goal, solution
        self.ruled = not program.down_closed
        self.most = program.per_user(program.largest() * program.utilities)
        self.final = program.per_user(solution.x * program.utilities)
        self.size = np.maximum(self.final, np.where(self.final <= NOTHING * self.most, _PART_OF_ALONE * self.most, 0.0))
        if self.ruled:  # a share may be 0, and terms cancel: residuals are relative to the largest share
            self.size = np.full(self.size.size, float(self.final.max(initial=0.0)) or float(self.most.max(initial=0.0)))
        self.floors = solution.promised if solution.promised is not None and solution.promised.promises else None
        self.completions = None if self.floors is None else [CompletionProofs(program, goal, self.floors, each) for each in (False, True)]
        self.shares, self.undisturbed = goal.nothing(), Undisturbed.before(goal.tree)
        self.known: LevelProofs | None = None
        self.optimality = self.fairness = 0.0

    def gaps(self) -> tuple[float, float, Undisturbed]:
        """Return the worst residuals, and which nodes are undisturbed.

        Raises
        ------
        _NoFilling
        """
        for number in range(len(self.goal.parts)):
            self._part(number)
        final = self.final
        if self.ruled:  # who rises in the surplus has its share on the course at last
            risen = np.any([part.users & (not part.guarantees) for part in self.goal.parts], axis=0)
            final = np.where(risen, final, np.minimum(final, self.shares.users))
        self._note(_distance(final, self.shares.users, self.size))
        return self.optimality, self.fairness, self.undisturbed

    def _note(self, optimality: float, fairness: float = 0.0) -> None:
        self.optimality, self.fairness = max(self.optimality, optimality), max(self.fairness, fairness)

    def _part(self, number: int) -> None:
        """Prove the levels of a part, and that its point is feasible and has the shares of the course."""
        program, part, x = self.program, self.goal.parts[number], self.solution.parts[number]
        bounds = self.solution.bounds_of_part(number)
        self._note(raised_gap(program, part, bounds, self.solution.raised.get(number, ()), self.shares.users))
        of_part = during(program, part, bounds)
        on_shares = ShareLimits.of(of_part)
        able = program.per_user(of_part.largest() * program.utilities) > 0
        way = Course(self.goal, part, self.shares, able, on_shares)
        levels = program.per_user(x * program.utilities)
        proofs = self._proofs(of_part, x, levels)
        stages = [stage for stage in self.solution.stages if stage.part == number]
        for stage in stages:
            self._stage(stage, part, way, proofs, on_shares)
        if way.rising.any():
            raise _NoFilling
        self.shares = way.shares
        if part.guarantees and not self.ruled:
            times = stop_times(stages, able.size)
            self.undisturbed = self.undisturbed.after(part, on_shares, self.shares.users, times, able, FITS)
        self._completion(number, x)
        self._know(of_part, proofs, stages)
        reached = np.minimum(levels, self.shares.users) if self.ruled else levels  # rules may force a user to have more
        for gap in (_excess(of_part.limits, x), float(-x.min(initial=0.0)), _distance(reached, self.shares.users, self.size)):
            self._note(gap)

    def _proofs(self, of_part: Program, x: FloatArray, levels: FloatArray) -> LevelProofs | RuledProofs:
        """Return the proofs of the levels of a part, which ends at x."""
        if self.ruled:
            return RuledProofs(of_part, self.program.utilities)
        proofs = LevelProofs(of_part, self.program.utilities, x, levels, np.zeros(levels.size))
        if self.known is not None:
            proofs.inherit_bounds(self.known, len(self.program.limits))
        return proofs

    def _stage(self, stage: Stage, part: Part, way: Course, proofs: LevelProofs | RuledProofs, on_shares: ShareLimits) -> None:
        """Prove a stage, by prices of completions, by prices, or by limits on shares that are full; then go on to it."""
        rising = way.rising[stage.users]
        # Answers in fractions have users at full limits stop at time 0; here such users never rise.
        if stage.users.size and stage.value <= way.t and not rising.all():
            if not rising.any():
                return
            stage = replace(stage, users=stage.users[rising])
        change = way.change()
        late = NOTHING * max(change, way.t) if np.isfinite(change) else 0.0
        if not way.t <= stage.value * (1 + NOTHING) or stage.value > change + late or not way.rising[stage.users].all():
            raise _NoFilling
        if stage.floors:
            if self.completions is None:
                raise _NoFilling
            target = way.at(stage.value).users
            self._note(*self.completions[not part.guarantees].of(stage, way.rising, target, way.rate, np.maximum(target, self.size)))
        elif stage.prices is not None:
            self._note(*_level(proofs, way, stage, self.size))
        else:
            full = on_shares.left(way.at(stage.value).users) <= FITS * on_shares.bounds
            if stage.value < change - late or not on_shares.users_of(full)[stage.users].all():
                raise _NoFilling
        way.stop(stage.value, stage.users)

    def _completion(self, number: int, x: FloatArray) -> None:
        """Check the completion at the end of the last part in which guarantees are met, and at the end of the surplus."""
        parts = self.goal.parts
        goes_on = number + 1 < len(parts) and parts[number].guarantees == parts[number + 1].guarantees
        if self.floors is None or self.completions is None or goes_on:
            return
        if len(self.floors.points) != len(self.completions):
            raise _NoFilling
        which = not parts[number].guarantees
        size = np.maximum(self.shares.users, self.size)
        self._note(self.completions[which].witness(x, self.floors.points[which], self.shares.users, size))

    def _know(self, of_part: Program, proofs: LevelProofs | RuledProofs, stages: list[Stage]) -> None:
        """Keep the proofs for later parts, if no extra limit had a price or closed a pair."""
        rows = len(self.program.limits)
        closed = ((of_part.largest() <= 0) & (self.program.largest() > 0)).any()  # by an extra limit of 0, without a price
        priced = any(stage.prices is not None and not stage.floors and stage.prices[rows:].any() for stage in stages)
        if isinstance(proofs, LevelProofs) and not closed and not priced:
            self.known = proofs


def _level(proofs: LevelProofs | RuledProofs, way: Course, stage: Stage, least: FloatArray) -> tuple[float, float]:
    """Return the residuals of a level. Shares below ``least``, (users,), are judged as if they were this."""
    assert stage.prices is not None
    target = way.at(stage.value).users
    if isinstance(proofs, RuledProofs):
        t, rise = proofs.of(np.maximum(stage.prices, 0.0), stage.users, way.rising & (way.rate > 0), target, way.rate)
        size = float(np.max(least))
        return (t * float(way.rate[way.rising].max()) / size, rise / size) if np.isfinite([t, rise]).all() else _NEVER
    with np.errstate(over="ignore", invalid="ignore"):
        missing, rise = proofs.of(stage.prices, stage.users, way.rising, target, way.rate, np.maximum(target, least))
    return _NEVER if np.isnan(missing) or np.isnan(rise) else (missing, rise)


def _distance(levels: FloatArray, claimed: FloatArray, least: FloatArray) -> float:
    """Return by what part levels differ from those claimed; claims below ``least`` are judged as if they were this."""
    size = np.maximum(claimed, least)
    return float(np.divide(np.abs(levels - claimed), size, out=np.zeros(size.size), where=size > 0).max(initial=0.0))


def _excess(limits: Limits, x: FloatArray) -> float:
    """Return the largest excess of x, (pairs,), over a limit, as a part of the bound, or in its own unit over a bound of 0.

    Bounds of rules may be 0 or less, and their sides cancel: the excess over a rule is a part of |a| x + |b|.
    """
    over, scale, ruled = limits.used(x) - limits.bounds, limits.bounds, limits.kinds == LimitKind.RULE
    if ruled.any():
        scale = np.where(ruled, abs(limits.matrix) @ x + np.abs(limits.bounds), limits.bounds)
    return float(np.divide(over, scale, out=over.copy(), where=scale > 0).max(initial=0.0))
