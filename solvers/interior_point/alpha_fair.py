r"""Alpha-fair goals by the steps of levels.

    maximise sum_n phi[n] g(v[n])   subject to   A x + s = 1,   W x = v <= c,   x, s >= 0          g'(v) = v^-alpha
                                                 A'p - W'm - z = 0,             p, z >= 0,         v = d(m)

in the units of `fairopt.solvers.structure.scaling`. It is the program of a level without t: a user's utility v replaces its surplus above
the level, and the price m that it pays for a unit of utility replaces the price of its level. The last condition is the user's demand,
d(m) = (phi / m)^(1 / alpha), capped at c by a limit on tasks (`fairopt.solvers.interior_point.alpha_fair_worths`). x is optimal if besides
x z = 0 and s p = 0.

*Elimination.* Let e be the elasticity of the demand. With dx, ds, dz and dv eliminated, a step solves the system of levels, with e v/m in
place of v/m: dense, of the smaller number of users and limits (`fairopt.solvers.structure.newton`). If many rows belong to no server, it is
the sparse system of the polish (`fairopt.solvers.interior_point.rows`).

*Second rows.* A limit of a user on servers at once, and in a trade-off one on tasks, is a second row of its user, T x + w = 1 with a price
q, whose product w q is relative to the user's money. It is eliminated with the user's demand, as blocks of two rows. A user with both in a
trade-off, or with other rows of its own, has rows of the sparse system.

*Least tasks.* Where rules ask for least tasks of users and for nothing else, the demand is at least that (`Worths.log_floor`): a user who
has no more pays more than its marginal utility, and the difference is the price of the rule.

*Trade-offs.* The marginal utility is phi v^-beta + kappa, where kappa = e / (1 - e) T / S follows from all utilities
(`fairopt.solvers.active_sets.tradeoff`). log kappa is a variable of the path: its equation, in logarithms and to the first order, adds one
to the Newton system, and so one more solution with the same factors for each step. It changes by a factor e at most in a step. At a large
beta the products may not fall far in a step either, and demands may not leave utilities; a path on which beta rises comes first. Where beta
is smaller, it is the second one. If neither converges, `follow_with_total` follows one for each kappa that is tried.

*Steps.* As for levels, all conditions but the products and the demand are linear. v = d(m) holds in logarithms after the first steps; until
then a step changes prices by a factor e at most, the products stay, and the unit of money is free. Then x z and s p become small together.
Primal and dual steps have lengths of their own, and pairs may be cut (`fairopt.solvers.interior_point.steps`). Each product is relative to
the money of its own user, or of the users of its limit (`fairopt.solvers.interior_point.alpha_fair_path`).

*Large alpha.* The money of users then lies many orders of magnitude apart. A path that gets lost near its end goes on from a point before
that, in steps that stay near the central path (`fairopt.solvers.interior_point.alpha_fair_centring`). One that never comes near its end is
followed once more, with an alpha that rises on the way (`fairopt.solvers.interior_point.alpha_fair_rising`). Where users have limits on
tasks, both are followed once more in other units of limits: a user who is stopped may pay nothing, and the units then follow its money. Of
these only good ends count.

*End.* The path ends by the error of the certificate, not by the products: with what the active sets show, as soon as this error is small
(`fairopt.solvers.interior_point.alpha_fair_end`).

Many users whose pairs use one limit each are solved by way of a sample (`fairopt.solvers.interior_point.by_sample`), also where they may
be on some servers at once only. The few users that are left have a path then. Where users have such limits of their own, the polish makes
its end exact, because the tasks of all others follow from its prices. The answer of all users is left as it is: the policy decides whether
it needs a polish.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fairopt.program import AlphaFair, Program, Solution, Tradeoff
from fairopt.solvers.active_sets.polish import polish
from fairopt.solvers.active_sets.problem import AlphaFairProblem
from fairopt.solvers.active_sets.problem import Point as Answer
from fairopt.solvers.backend import Deadline, nothing_to_solve
from fairopt.solvers.interior_point.alpha_fair_centring import follow_centrally
from fairopt.solvers.interior_point.alpha_fair_end import End, best_end
from fairopt.solvers.interior_point.alpha_fair_path import Path
from fairopt.solvers.interior_point.alpha_fair_rising import RisingPath
from fairopt.solvers.interior_point.alpha_fair_worths import Worths, log_odds_of
from fairopt.solvers.interior_point.by_sample import solve_by_sample
from fairopt.solvers.interior_point.rows import RowPairs, ScaledRows
from fairopt.solvers.interior_point.sample_reduced import Start
from fairopt.solvers.interior_point.sample_users import fits
from fairopt.solvers.interior_point.settings import ALPHA_FAIR, RISING
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle

__all__ = ["follow_with_total", "solve_alpha_fair", "solve_tradeoff"]

log = logging.getLogger(__name__)


def solve_alpha_fair(
    program: Program, goal: AlphaFair, tolerance: float, deadline: Deadline, arrays: Arrays = NUMPY, pairs: Pairs | None = None
) -> Solution | None:
    """Return the alpha-fair allocation, if possible four digits below the tolerance; None if the path does not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        The program does not fit into a layout of `fairopt.solvers.structure.layouts` in these arrays.
    """
    if not program.scaled().n_columns:
        return nothing_to_solve(program)

    def follow(part: Program, its_goal: AlphaFair, start: Start | None, rough: float) -> Solution | None:
        near = _solution(part, its_goal, _laid_out(part, NUMPY), tolerance, deadline, start, rough)
        return near if near is None or rough or part.limits.of_servers.all() else polish(part, near) or near

    found = solve_by_sample(program, goal, follow) if pairs is None and arrays.are_numpy and program.down_closed and fits(program) else None
    if found is not None:
        return found
    return _solution(program, goal, _laid_out(program, arrays) if pairs is None else pairs, tolerance, deadline)


def _laid_out(program: Program, arrays: Arrays, capped: bool = True) -> Pairs:
    """Return the pairs by server, or as rows where servers have many limits, of which most users take few, or the users are few.

    With n limits of a server, the blocks of servers take n^2 steps where users are eliminated, and n^3 where servers are.
    """
    if obstacle(program, at_once=True):
        return RowPairs(ScaledRows.of(program, capped))
    scaled = ScaledProgram.of(program, at_once=True)
    if arrays.are_numpy and scaled.n_slots >= ALPHA_FAIR.many_limits:
        eliminates_servers = scaled.n_rows <= scaled.n_slots * scaled.n_servers
        if eliminates_servers or np.count_nonzero(scaled.A) <= ALPHA_FAIR.few_entries * scaled.A.size:
            return RowPairs(ScaledRows.of(program, capped))
    return lay_out(scaled, arrays)


def _solution(
    program: Program, goal: AlphaFair, pairs: Pairs, tolerance: float, deadline: Deadline, start: Start | None = None, rough: float = 0.0
) -> Solution | None:
    """Return the end of the path, or its first point with a gap of ``rough``; None if it does not converge."""
    good = max(ALPHA_FAIR.good * tolerance, rough)
    path = Path(Worths(pairs, goal.alpha, goal.weights), start)
    found = _found(path, good, ALPHA_FAIR.digits * tolerance, deadline, rough)
    fair = ALPHA_FAIR.fair * tolerance
    for again in _others(path, goal) if start is None else ():
        if found is not None and found.end.error <= fair:
            break
        log.info("once more, %s", again.difference)
        better, least = _found(again, good, ALPHA_FAIR.digits * tolerance, deadline), np.inf if found is None else found.end.error
        if better is not None and better.end.error < (least if again.to_the_poorest else fair):
            path, found = again, better
    if found is None or (start is not None and found.end.error > good):
        return None
    if found.end.error > max(good, tolerance) and program.n_pairs > ALPHA_FAIR.pairs_of_rough_answers:
        return None
    return _answer(program, path, found)


def _answer(program: Program, path: Path, found: _Found) -> Solution | None:
    """Return the end of a path in the units of the program; None if somebody has less there than floating point holds.

    Another path may show that this is the answer, and raise, or that it is not.
    """
    tasks, member = path.pairs.tasks(found.end.x), path.pairs.scaled.member
    if (program.per_user(tasks)[member] == 0).any():
        return None
    return Solution(tasks, prices=path.worths.prices(found.end.p, found.end.x, found.end.q), iterations=found.steps)


def _others(path: Path, goal: AlphaFair) -> Iterator[Path]:
    """Yield the paths to follow if one does not lead to a good end, until another does."""
    capped, may_rise = path.worths.log_cap is not None, RISING.first_alpha < goal.alpha <= RISING.last_alpha
    if may_rise:
        yield RisingPath(path.pairs, goal)
    if capped and goal.alpha > 1:
        yield Path(Worths(path.pairs, goal.alpha, goal.weights), to_the_poorest=False)
    if capped and may_rise:
        yield RisingPath(path.pairs, goal, to_the_poorest=False)


def _found(path: Path, good: float, enough: float, deadline: Deadline, rough: float = 0.0) -> _Found | None:
    """Follow a path; if its end is not good, go on from points near its end in steps near the central path."""
    found = _followed(path, enough, deadline, rough)
    if not path.near or (found is not None and found.end.error <= good):
        return found
    log.info("once more from near the end, centrally")
    central, steps = follow_centrally(path, path.near, good, deadline)
    before, error = (0, np.inf) if found is None else (found.steps, found.end.error)
    return _Found(central, before + steps) if central.error < error else found


def solve_tradeoff(program: Program, goal: Tradeoff, tolerance: float, deadline: Deadline) -> Solution | None:
    """Return the optimum of a trade-off, the end of a path on which kappa follows; None if no such path converges.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    if not program.scaled().n_columns:
        return nothing_to_solve(program)
    if not goal.efficiency:
        fair = AlphaFair(goal.beta, goal.weights)
        return solve_alpha_fair(replace(program, goal=fair), fair, tolerance, deadline)
    good = ALPHA_FAIR.good * tolerance
    for path in _paths_of_tradeoff(_laid_out(program, NUMPY, capped=False), goal):
        found = _found(path, good, ALPHA_FAIR.digits * tolerance, deadline)
        if found is not None and found.end.error <= good:
            return _answer(program, path, found)
    return None


def _paths_of_tradeoff(pairs: Pairs, goal: Tradeoff) -> Iterator[Path]:
    """Yield the paths to follow until one leads to a good end: the one that takes fewer steps first."""
    if RISING.first_from <= goal.beta <= RISING.last_beta:
        yield RisingPath(pairs, goal)
    yield Path(Worths(pairs, goal.beta, goal.weights, log_odds=log_odds_of(goal)))
    if RISING.first_alpha < goal.beta < RISING.first_from:
        yield RisingPath(pairs, goal)


def follow_with_total(problem: AlphaFairProblem, goal: Tradeoff, deadline: Deadline) -> Answer | None:
    """Return the optimum of a trade-off at the worth of the total that a problem has; None if the path does not converge.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    program = problem.scaled.program
    with np.errstate(all="ignore"):
        path = Path(Worths(_laid_out(program, NUMPY, capped=False), goal.beta, goal.weights, problem.log_kappa))
        found = _followed(path, ALPHA_FAIR.end_of_tradeoff, deadline)
        if found is None or found.end.error > ALPHA_FAIR.good_of_tradeoff:
            return None
        answer = _answer(program, path, found)
        if answer is None:
            return None
        near = problem.point(answer)
        return replace(near, p=near.p * np.exp(-problem.shift), steps=found.steps)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The best end of a path, and the step at which it was found."""

    end: End
    steps: int


def _followed(path: Path, enough: float, deadline: Deadline, rough: float = 0.0) -> _Found | None:
    """Follow a path until the error is small enough, or the gap ``rough``, or steps gain nothing; None if it does not converge."""
    point, best = path.start(), None
    mark, since, stalled = np.inf, 0, 0  # a gap, steps since it was halved, and steps near the end that halved neither it nor the error
    nearest, away, kept = np.inf, 0, np.inf  # a distance, steps since it was reached, and the gap of the last point that was kept
    for step in range(ALPHA_FAIR.steps_of_alpha_fair):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        gap = path.measured(point)
        if gap < rough and path.furthest < ALPHA_FAIR.near:
            return _Found(path.present(point, gap), step)
        end = best_end(path.worths, point, path.money_of_limits, enough) if gap < ALPHA_FAIR.close_to_end else path.present(point, np.inf)
        log.debug("step %d: gap %.1e, error %.1e", step, gap, end.error)
        if path.settled and ALPHA_FAIR.close_to_end * ALPHA_FAIR.kept_on_way < gap < ALPHA_FAIR.kept_on_way * kept:
            path.near.append(point)
            kept = gap
        nearest, away = (path.distance, 0) if path.settled or path.distance < nearest else (nearest, away + 1)
        since, mark = (0, gap) if gap < 0.5 * mark or not path.settled else (since + 1, mark)
        stalled = 0 if best is None or since == 0 or end.error < 0.5 * best.end.error else stalled + 1
        if end.error < (np.inf if best is None else best.end.error):
            best = _Found(end, step)
        if (
            end.error <= enough
            or stalled >= ALPHA_FAIR.stalled_of_alpha_fair
            or (since > ALPHA_FAIR.lost and best is None)
            or away > ALPHA_FAIR.steps_away
            or (step > ALPHA_FAIR.steps_of_start and path.furthest > ALPHA_FAIR.far * (ALPHA_FAIR.steps_of_alpha_fair - step))
            or not np.isfinite(gap)
        ):
            break
        try:
            point = path.advanced(point, gap)
        except np.linalg.LinAlgError:
            break
    log.info("%d steps, a user wastes %.1e at most", step, np.inf if best is None else best.end.error)
    return best
