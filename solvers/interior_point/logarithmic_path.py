"""Primal-dual interior point for alpha-fair programs, in logarithms: exact, for any alpha > 0, without a solver package.

The KKT conditions of `fairopt.solvers.active_sets.problem`, with targets in place of the zeros,

    x z = mu m,     p s = mu c,     y t^alpha = phi,

where mu is relative, m is the money of the column's user and c that of the users of the limit. For any positive targets, and any phi and
alpha, these are the conditions of a strictly concave program, sum phi g(t) + sum m mu log x + sum c mu log s. So each choice of targets has
exactly one solution, a smooth function of their logarithms, and the path may lead from any targets to any others: from an even slice of
everything, with the products that it happens to have, first to the right phi and to products of one size, then to mu = 0.

The unknowns are the logarithms of x, s, p, z, y and t, in which the products are linear; a step is Newton's on the three linear conditions,
as long as their residuals stay small. In logarithms, users with little and with much converge together, however many orders of magnitude
lie between them: at alpha = 0.1 a thousandth of the weight asks for 1e-30 of the tasks, at alpha = 10 a third of the tasks has 59,049 times
the marginal worth. Near the end, where the active sets show, their equations are solved (`fairopt.solvers.active_sets.sets`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import TINY
from fairopt.solvers.active_sets.kkt import KKTSystem
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.sets import ActiveSets, negligible_users, solve_on_sets, with_demands
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.settings import LOGARITHMS, ROWS

__all__ = ["follow"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """How to follow the path: to which part of alpha; how fast the targets follow the money, in logarithms a step; and whether the money of
    a column is what it can take, or all that its user has."""

    part: float = 1.0
    turn: float = 1.0
    by_column: bool = True


_ATTEMPTS = (_Attempt(), _Attempt(by_column=False), _Attempt(0.9), _Attempt(0.8), _Attempt(0.7), _Attempt(turn=0.3))


@dataclass(frozen=True, slots=True, eq=False)
class _Variables:
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
class _Iterate:
    """A point on the way: logarithms of the variables, the variables, and both sides of the linear conditions."""

    logs: _Variables
    at: _Variables
    use: FloatArray  # A x + s, to be 1
    utility: FloatArray  # V'x, to be t
    worth: FloatArray  # V y + z, to be the cost
    cost: FloatArray  # A'p

    @classmethod
    def of(cls, problem: AlphaFairProblem, logs: _Variables) -> _Iterate:
        at = _Variables(*(np.exp(part) for part in logs.each()))
        worth = problem.v * at.y[problem.user] + at.z
        return cls(logs, at, problem.use(at.x) + at.s, problem.utility(at.x), worth, problem.cost(at.p))

    @property
    def residual(self) -> float:
        """Largest residual of a linear condition, in logarithms."""
        unequal = np.concatenate([self.use, self.utility / self.at.t, self.worth / self.cost])
        return float(np.abs(np.log(unequal)).max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Targets:
    """Logarithms of mu and of the units of the products: of columns, and of limits."""

    mu: float
    columns: FloatArray
    limits: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Money:
    """The measure of money of an attempt, with the entries of A (limit, column)."""

    attempt: _Attempt
    rows: IntArray
    columns: IntArray

    def at(self, problem: AlphaFairProblem, iterate: _Iterate, mu: float) -> tuple[FloatArray, FloatArray]:
        """Return logarithms of the money of the user of each column, as much of it as the column can take, and of the users of each limit.

        On a server a billion times smaller than others, a user can spend at most a billionth; its products must be as much smaller to show
        which columns are used. Otherwise all the money of the user may be the better measure.

        At alpha < 1, a small error of prices can change a user's money by a hundred orders of magnitude. So the money is at least mu times
        the money of the limits on which the user might spend it.
        """
        logs, x = iterate.logs, iterate.at.x
        own = logs.t[problem.user]
        most = np.log(problem.v) if self.attempt.by_column else own  # utility of a column that takes all of its limit
        money = logs.y[problem.user] + np.minimum(own, most)
        limits = problem.log_money_of_limits(x, money)
        if problem.alpha > 1:  # the user with the least money may be one who could use a limit, but does not
            np.minimum.at(limits, self.rows, (logs.y[problem.user] + most)[self.columns])
        if problem.alpha < 1:
            around = np.full(problem.v.size, -np.inf)
            np.maximum.at(around, self.columns, limits[self.rows])
            least = np.full(logs.y.size, np.inf)
            np.minimum.at(least, problem.user, around)
            money = np.maximum(money, mu + least[problem.user])
            limits = problem.log_money_of_limits(x, money)
        return money, limits

    def followed(self, targets: _Targets, problem: AlphaFairProblem, iterate: _Iterate) -> _Targets:
        """Return targets whose units are those of an iterate, but change by no more than the attempt allows: they never jump."""
        turn = self.attempt.turn
        columns, limits = self.at(problem, iterate, targets.mu)
        return _Targets(
            targets.mu,
            targets.columns + np.clip(columns - targets.columns, -turn, turn),
            targets.limits + np.clip(limits - targets.limits, -turn, turn),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """What an attempt led to: its problem in the unit of money that it ended in, the point and its KKT violation.

    ``products`` is the least that the largest product was on the way.
    """

    problem: AlphaFairProblem
    point: Point
    violation: float
    products: float


def follow(problem: AlphaFairProblem, deadline: Deadline) -> Point:
    """Return the solution of a problem, by the best of several attempts if the first one ends below full precision.

    If the first two attempts get stuck long before their ends, there is no third: weights, or what users have to the power of alpha, are
    then beyond double precision, and no attempt gets there (benchmarks/results/choices.md).

    Raises
    ------
    NoSolution
        At the deadline.
    """
    best, least, steps, nearest = Point(np.empty(0), np.empty(0)), np.nan, 0, np.inf
    for attempt in _ATTEMPTS:
        with np.errstate(all="ignore"):
            end = _follow(problem.with_alpha(attempt.part * problem.alpha), attempt, deadline)
            there, point, violation = end.problem, end.point, end.violation
            steps += point.steps
            here = there.with_alpha(problem.alpha)
            if attempt.part != 1:  # the active sets are often the same
                x, p = point.x, point.p
                used = x * here.v / here.utility(x)[here.user] > LOGARITHMS.used
                point = solve_on_sets(here, point, ActiveSets(used, p > 0, negligible_users(here, p)), LOGARITHMS.steps_on_sets) or point
                violation = here.kkt_violation(point.x, point.p)
        if not least <= violation:
            with np.errstate(over="ignore"):  # infinite prices fail the certificate
                best, least = Point(point.x, point.p * np.exp(here.shift - problem.shift)), violation  # in the given unit of money
        if violation <= LOGARITHMS.good_attempt or steps > LOGARITHMS.steps_of_attempts:
            break
        nearest = min(nearest, end.products)
        if attempt is _ATTEMPTS[1] and nearest > LOGARITHMS.hopeless_products:
            log.info("the path got stuck at products of %.1e: alpha or weights are beyond double precision", nearest)
            break
        log.info("the path at alpha = %g left a KKT violation of %.1e; trying another", there.alpha, violation)
    return replace(best, steps=steps)


def _follow(problem: AlphaFairProblem, attempt: _Attempt, deadline: Deadline) -> _Outcome:
    """Follow the path once."""
    entries = problem.A.tocoo()
    rule = _Money(attempt, entries.row.astype(np.int64), entries.col.astype(np.int64))
    iterate = _Iterate.of(problem, _start(problem))
    start = float(np.log(LOGARITHMS.first_mu))
    targets = _Targets(start, *rule.at(problem, iterate, start))
    longest, settling, sets = LOGARITHMS.first_change, True, LOGARITHMS.products_of_sets
    stalled, least = 0, np.inf
    quiet, stuck, lowest = 0, 0, (np.inf, np.inf)
    best: tuple[Point, float] | None = None
    nearest = np.inf
    for step in range(LOGARITHMS.steps_of_attempt):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        # Residuals. While phi is not right yet (settling), the unit of money is free, too.
        logs, residual = iterate.logs, iterate.residual
        targets = rule.followed(targets, problem, iterate)
        products = np.concatenate([logs.x + logs.z - targets.columns, logs.p + logs.s - targets.limits])
        r_worth = problem.worth_residual(logs.y, logs.t)
        if settling:
            middle = float(r_worth.max() + r_worth.min()) / 2
            problem = problem.with_shift(problem.shift - middle)
            r_worth = r_worth - middle
        off, worst = float(np.abs(r_worth).max()), float(products.max())
        spread, nearest = worst - float(products.min()), min(nearest, worst)
        if (
            settling
            and off < LOGARITHMS.off_when_settled
            and worst < start + LOGARITHMS.above_first_mu
            and (problem.alpha > 1 or spread < LOGARITHMS.even)
        ):
            settling = False
        targets = replace(targets, mu=min(targets.mu, float(np.median(products))))
        log.debug("step %d: products %.1e, residual %.1e, %.1e", step, np.exp(worst), residual, off)
        # The end: by active sets as soon as these show, else where the path gains nothing more.
        now = max(residual, off)
        due = not settling and worst < np.log(sets)
        quiet = quiet + 1 if worst > lowest[0] + np.log(LOGARITHMS.progress) and now > LOGARITHMS.progress * lowest[1] else 0
        stuck = stuck + 1 if quiet else 0
        lowest = lowest if quiet else (min(worst, lowest[0]), min(now, lowest[1]))
        if due and (now < LOGARITHMS.residuals_of_sets or quiet >= LOGARITHMS.quiet):
            sets = sets if now >= LOGARITHMS.residuals_of_sets else np.exp(worst) * LOGARITHMS.sets_every
            found = _on_active_sets(
                problem,
                iterate,
                rule.at(problem, iterate, targets.mu)[1],
                LOGARITHMS.steps_on_sets if quiet >= LOGARITHMS.quiet else LOGARITHMS.steps_on_early_sets,
            )
            quiet = 0
            if found is not None:
                return _Outcome(problem, replace(found, steps=step), problem.kkt_violation(found.x, found.p), float(np.exp(nearest)))
        if stuck >= LOGARITHMS.stuck:
            break
        if not settling and worst <= np.log(LOGARITHMS.near_last_mu * LOGARITHMS.last_mu):
            end = _end(problem, iterate, rule.at(problem, iterate, targets.mu)[1])
            violation = problem.kkt_violation(end.x, end.p)
            if best is None or violation < best[1]:
                best = end, violation
            stalled = stalled + 1 if now > LOGARITHMS.progress_at_end * least else 0
            least = min(least, now)
            if now < LOGARITHMS.rounding or stalled > LOGARITHMS.stalled_at_end:
                break
        # Centring: products of one size come first, then mu falls.
        aim = start if settling else np.log(LOGARITHMS.last_mu)
        if not settling and spread > (LOGARITHMS.spread if problem.alpha <= 1 else LOGARITHMS.spread_of_large_alpha):
            aim = (worst + float(products.min())) / 2
        halt = due and off < LOGARITHMS.off_when_settled and now >= LOGARITHMS.residuals_of_sets
        iterate, longest = _step(problem, iterate, products, aim - products, r_worth, longest, settling=settling, halt=halt)
    limits = rule.at(problem, iterate, targets.mu)[1]
    if best is None:
        end = _end(problem, iterate, limits)
        best = end, problem.kkt_violation(end.x, end.p)
    found = _on_active_sets(problem, iterate, limits, LOGARITHMS.steps_on_sets)
    if found is not None:
        best = found, problem.kkt_violation(found.x, found.p)
    return _Outcome(problem, replace(best[0], steps=step), best[1], float(np.exp(nearest)))


def _start(problem: AlphaFairProblem) -> _Variables:
    """Return the logarithms of half an even slice of every limit, and of prices at which nothing is worth its cost."""
    entries = problem.A.tocoo()
    sharers = np.diff(problem.A.indptr)
    x = np.full(problem.v.size, np.inf)
    np.minimum.at(x, entries.col, LOGARITHMS.part_at_start / (entries.data * sharers[entries.row]))
    t, s = problem.utility(x), 1.0 - problem.use(x)
    worth = problem.v / t[problem.user]
    p = 1.0 / s
    p *= max(1.0, LOGARITHMS.dear_at_start * float((worth / problem.cost(p)).max()))
    return _Variables(*(np.log(part) for part in (x, s, p, problem.cost(p) - worth, t, 1.0 / t)))


# A step --------------------------------------------------------------------------------------------------------------------------


def _step(
    problem: AlphaFairProblem,
    iterate: _Iterate,
    products: FloatArray,
    wanted_change: FloatArray,
    r_worth: FloatArray,
    longest: float,
    *,
    settling: bool,
    halt: bool,
) -> tuple[_Iterate, float]:
    """Take a step: all of what removes the residuals of the linear conditions, and as much of the wanted change as these allow.

    Return the new iterate and the largest change of a logarithm that the next step may begin with.
    """
    at, a = iterate.at, problem.elasticity(iterate.logs.t)
    F = np.concatenate([at.s / at.p, at.t / (a * at.y)])
    system = KKTSystem.factorised(problem.rows, at.z / at.x, F, at.z < ROWS.kept_pairs * problem.v * at.y[problem.user])
    columns = at.x.size

    def direction(change: FloatArray, log_y: FloatArray, r_limits: FloatArray, r_utility: FloatArray, r_cost: FloatArray) -> _Variables:
        """Return Newton's step, in logarithms, by which products change, and log y t^alpha falls by log_y."""
        x_z, p_s = change[:columns], change[columns:]
        dx, dq = system.step(r_cost + at.z * x_z, np.concatenate([r_limits - at.s * p_s, -(r_utility - at.t / a * log_y)]))
        x, p, y = dx / at.x, dq[: problem.n_rows] / at.p, dq[problem.n_rows :] / at.y
        return _Variables(x, p_s - p, p, x_z - x, -(log_y + y) / a, y)

    none = np.zeros(r_worth.size)
    mended_worth, moved_worth = (none, r_worth) if settling else (r_worth, none)
    mend = direction(
        np.zeros(products.size),
        mended_worth,
        -iterate.use * np.log(iterate.use),
        np.sqrt(iterate.utility * at.t) * np.log(at.t / iterate.utility),
        np.sqrt(iterate.worth * iterate.cost) * np.log(iterate.worth / iterate.cost),
    )
    move = direction(wanted_change, moved_worth, np.zeros(at.s.size), none, np.zeros(columns))
    before = iterate.residual if settling else max(iterate.residual, float(np.abs(r_worth).max()))
    mend_size, move_size = mend.largest, max(move.largest, float(np.abs(move.y + move.t).max()))
    part = 0.0 if halt else min(1.0, longest / max(move_size, TINY))
    if mend_size < LOGARITHMS.largest_mend:
        for _ in range(LOGARITHMS.parts_tried):
            after, residual = _moved(problem, iterate.logs, mend, 1.0, move, part, (1 - part) * moved_worth)
            ahead = max(float((products + part * wanted_change).max()), np.log(LOGARITHMS.last_mu))
            near_path = LOGARITHMS.residual_of_root * np.exp(ahead / 2)  # the nearer the end, the nearer to the path
            allowed = min(LOGARITHMS.allowed_residual, near_path)
            if residual < allowed or (part == 0 and residual < LOGARITHMS.progress_at_halt * before):
                if residual < LOGARITHMS.small_residual * allowed:
                    longest = min(max(longest, part * move_size) * LOGARITHMS.longer, LOGARITHMS.longest_change)
                elif residual > LOGARITHMS.large_residual * allowed:
                    longest *= LOGARITHMS.shorter
                return after, longest
            part *= LOGARITHMS.much_shorter
            longest *= LOGARITHMS.much_shorter
    length = min(1.0, LOGARITHMS.largest_mend / mend_size)
    for _ in range(LOGARITHMS.halvings):
        after, residual = _moved(problem, iterate.logs, mend, length, move, 0.0, moved_worth + (1 - length) * mended_worth)
        if residual < (1 - LOGARITHMS.least_gain * length) * before:
            break
        length /= 2
    return after, max(longest, LOGARITHMS.shortest_change)


def _moved(
    problem: AlphaFairProblem, logs: _Variables, mend: _Variables, length: float, move: _Variables, part: float, r_worth: FloatArray
) -> tuple[_Iterate, float]:
    """Return the iterate after a step and its largest residual; ``r_worth`` is the wanted residual of log y t^alpha = log phi there."""
    x, s, p, z, t, y = (now + length * own + part * more for now, own, more in zip(logs.each(), mend.each(), move.each(), strict=True))
    if problem.alpha <= 1:  # the curvature goes where it counts least: into t = V'x, or into y t^alpha = phi
        t = np.log(problem.utility(np.exp(x)))
    after = _Iterate.of(problem, _Variables(x, s, p, z, t, y))
    residual = after.residual
    if problem.alpha <= 1:
        residual = max(residual, float(np.abs(problem.worth_residual(after.logs.y, after.logs.t) - r_worth).max()))
    return after, residual if np.isfinite(residual) else np.inf


# The end -------------------------------------------------------------------------------------------------------------------------


def _full(iterate: _Iterate, money_of_limits: FloatArray) -> BoolArray:
    """Return which limits are full: of the two factors of p s, relative, the larger one counts as positive."""
    return np.asarray(iterate.logs.p - money_of_limits > np.log(iterate.at.s / iterate.use))


def _on_active_sets(problem: AlphaFairProblem, iterate: _Iterate, money_of_limits: FloatArray, patience: int = 4) -> Point | None:
    """Return the exact solution, where the active sets of an iterate are the right ones."""
    at, full = iterate.at, _full(iterate, money_of_limits)
    p = np.where(full, at.p, 0.0)
    used = at.x * problem.v / at.t[problem.user] > at.z / iterate.cost
    return solve_on_sets(problem, Point(at.x, p), ActiveSets(used, full, negligible_users(problem, p)), patience)


def _end(problem: AlphaFairProblem, iterate: _Iterate, money_of_limits: FloatArray) -> Point:
    """Return an iterate as it is, feasible, with the demands of negligible users."""
    x, p = iterate.at.x, np.where(_full(iterate, money_of_limits), iterate.at.p, 0.0)
    negligible = negligible_users(problem, p)
    if negligible.any():
        x = with_demands(problem, x, p, negligible)
    else:
        p = iterate.at.p
    return Point(x / max(1.0, float(problem.use(x).max(initial=0.0))), p)
