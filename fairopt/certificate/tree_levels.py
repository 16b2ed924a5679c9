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
from fairopt.program.undisturbed import Undisturbed, stop_times

__all__ = ["tree_gaps"]

_NEVER = (float("inf"), float("inf"))
_PART_OF_ALONE = 1e-3  # part of what a user could have alone: residuals of users who end with nothing are relative to it


def tree_gaps(program: Program, goal: TreeFilling, solution: Solution) -> tuple[float, float]:
    """Return the worst optimality and fairness residuals over all levels of all parts, and of what the answer says of guarantees."""
    optimality, fairness, undisturbed = _filling_gaps(program, goal, solution)
    return max(optimality, promised_gap(program, goal, solution, undisturbed, _filling_gaps)), fairness


def _filling_gaps(program: Program, goal: TreeFilling, solution: Solution) -> tuple[float, float, Undisturbed]:
    """Return the residuals of a filling that keeps the floors that it has, and which nodes are undisturbed in it."""
    undisturbed = Undisturbed.before(goal.tree)
    refused = (*_NEVER, undisturbed)
    per_level = program.utilities
    most = program.per_user(program.largest() * per_level)
    if len(solution.parts) != len(goal.parts) or len(solution.extra_bounds) not in (0, len(goal.parts)):
        return refused
    optimality = fairness = 0.0
    promised = solution.promised if solution.promised is not None and solution.promised.promises else None
    completions = None if promised is None else [CompletionProofs(program, goal, promised, everywhere) for everywhere in (False, True)]
    final = program.per_user(solution.x * per_level)
    size = np.maximum(final, np.where(final <= NOTHING * most, _PART_OF_ALONE * most, 0.0))
    shares, known, rows, ruled = goal.nothing(), None, len(program.limits), not program.down_closed
    if ruled:  # a share may be 0, and terms cancel: residuals are relative to the largest share
        size = np.full(size.size, float(final.max(initial=0.0)) or float(most.max(initial=0.0)))
    for number, part in enumerate(goal.parts):
        x = solution.parts[number]
        optimality = max(
            optimality, raised_gap(program, part, solution.bounds_of_part(number), solution.raised.get(number, ()), shares.users)
        )
        of_part = during(program, part, solution.bounds_of_part(number))
        on_shares = ShareLimits.of(of_part)
        able = program.per_user(of_part.largest() * per_level) > 0
        way = Course(goal, part, shares, able, on_shares)
        levels = program.per_user(x * per_level)
        proofs = RuledProofs(of_part, per_level) if ruled else LevelProofs(of_part, per_level, x, levels, np.zeros(levels.size))
        if known is not None and isinstance(proofs, LevelProofs):
            proofs.inherit_bounds(known, rows)
        stages = [stage for stage in solution.stages if stage.part == number]
        for stage in stages:
            rising = way.rising[stage.users]
            if (
                stage.users.size and stage.value <= way.t and not rising.all()
            ):  # in fractions a user at a full limit stops at time 0; here it never rises
                if not rising.any():
                    continue
                stage = replace(stage, users=stage.users[rising])
            change = way.change()
            late = NOTHING * max(change, way.t) if np.isfinite(change) else 0.0
            if not way.t <= stage.value * (1 + NOTHING) or stage.value > change + late or not way.rising[stage.users].all():
                return refused
            if stage.floors:
                if completions is None:
                    return refused
                target = way.at(stage.value).users
                missing, rise = completions[not part.guarantees].of(stage, way.rising, target, way.rate, np.maximum(target, size))
                optimality, fairness = max(optimality, missing), max(fairness, rise)
            elif stage.prices is None:
                full = on_shares.left(way.at(stage.value).users) <= FITS * on_shares.bounds
                if stage.value < change - late or not on_shares.users_of(full)[stage.users].all():
                    return refused
            else:
                missing, rise = _level(proofs, way, stage, size)
                optimality, fairness = max(optimality, missing), max(fairness, rise)
            way.stop(stage.value, stage.users)
        if way.rising.any():
            return refused
        shares = way.shares
        if part.guarantees and not ruled:
            undisturbed = undisturbed.after(part, on_shares, shares.users, stop_times(stages, able.size), able, FITS)
        ends_phase = number + 1 == len(goal.parts) or part.guarantees != goal.parts[number + 1].guarantees  # of guarantees, or the surplus
        if promised is not None and completions is not None and ends_phase:
            if len(promised.points) != len(completions):
                return refused
            point = promised.points[not part.guarantees]
            optimality = max(optimality, completions[not part.guarantees].witness(x, point, shares.users, np.maximum(shares.users, size)))
        closed = bool(((of_part.largest() <= 0) & (program.largest() > 0)).any())  # pairs, by an extra limit of 0, without a price
        without = not any(stage.prices is not None and not stage.floors and stage.prices[rows:].any() for stage in stages)
        if isinstance(proofs, LevelProofs) and not closed and without:
            known = proofs
        reached = np.minimum(levels, shares.users) if ruled else levels  # rules may force a user to have more
        optimality = max(optimality, _excess(of_part.limits, x), float(-x.min(initial=0.0)), _distance(reached, shares.users, size))
    if ruled:  # who rises in the surplus has its share on the course at last
        risen = np.any([part.users & (not part.guarantees) for part in goal.parts], axis=0)
        final = np.where(risen, final, np.minimum(final, shares.users))
    return max(optimality, _distance(final, shares.users, size)), fairness, undisturbed


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
