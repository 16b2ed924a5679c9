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

An attempt to follow the path (`_Path`) measures how far an iterate is from its targets, tries the active sets, and takes a step
(`fairopt.solvers.interior_point.logarithmic_steps`). While phi is *settling* the products stay at the first mu; then mu falls.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.active_sets.problem import AlphaFairProblem, Point
from fairopt.solvers.active_sets.sets import ActiveSets, negligible_users, solve_on_sets, with_demands
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point.logarithmic_steps import Iterate, start, take_step
from fairopt.solvers.interior_point.settings import LOGARITHMS

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

    def at(self, problem: AlphaFairProblem, iterate: Iterate, mu: float) -> tuple[FloatArray, FloatArray]:
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

    def followed(self, targets: _Targets, problem: AlphaFairProblem, iterate: Iterate) -> _Targets:
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
            end = _Path(problem.with_alpha(attempt.part * problem.alpha), attempt).followed(deadline)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Distance:
    """How far an iterate is from its targets, in logarithms.

    Attributes
    ----------
    products : array (columns + limits,)
        Of x z and p s, relative to their units.
    worth : array (users,)
        Residual of log y t^alpha = log phi.
    largest, spread : float
        The largest product, and its distance from the smallest.
    off : float
        Largest residual of ``worth``.
    residual : float
        The same of all conditions but the products.
    """

    products: FloatArray
    worth: FloatArray
    largest: float
    spread: float
    off: float
    residual: float

    @classmethod
    def of(cls, iterate: Iterate, targets: _Targets, worth: FloatArray) -> _Distance:
        """Return the distance of an iterate with this residual of ``worth``."""
        logs = iterate.logs
        products = np.concatenate([logs.x + logs.z - targets.columns, logs.p + logs.s - targets.limits])
        largest, off = float(products.max()), float(np.abs(worth).max())
        return cls(products, worth, largest, largest - float(products.min()), off, max(iterate.residual, off))


@dataclass(slots=True)
class _Progress:
    """Counts steps since products or residuals fell: ``stuck`` of them, ``quiet`` of them since the active sets were tried, too."""

    quiet: int = 0
    stuck: int = 0
    lowest: tuple[float, float] = (np.inf, np.inf)  # the largest product, and the residual

    def note(self, now: _Distance) -> None:
        """Count a step."""
        product, residual = self.lowest
        no_fall = now.largest > product + np.log(LOGARITHMS.progress) and now.residual > LOGARITHMS.progress * residual
        self.quiet = self.quiet + 1 if no_fall else 0
        self.stuck = self.stuck + 1 if self.quiet else 0
        if not self.quiet:
            self.lowest = min(now.largest, product), min(now.residual, residual)


@dataclass(slots=True)
class _End:
    """The best point at the end of the path so far, its KKT violation, and how many steps there did not make the residuals smaller."""

    best: tuple[Point, float] | None = None
    least: float = np.inf
    stalled: int = 0

    def note(self, point: Point, violation: float, residual: float) -> bool:
        """Take a point at the end, and return whether the path gains nothing more."""
        if self.best is None or violation < self.best[1]:
            self.best = point, violation
        self.stalled = self.stalled + 1 if residual > LOGARITHMS.progress_at_end * self.least else 0
        self.least = min(self.least, residual)
        return residual < LOGARITHMS.rounding or self.stalled > LOGARITHMS.stalled_at_end


class _Path:
    """An attempt to follow the path.

    Attributes
    ----------
    settling : bool
        Is phi not right yet? The unit of money is free then, too.
    longest : float
        The largest change of a logarithm that the next step may begin with.
    sets : float
        The products below which the active sets are tried next.
    nearest : float
        The least that the largest product was on the way, in logarithms.
    """

    def __init__(self, problem: AlphaFairProblem, attempt: _Attempt) -> None:
        entries = problem.A.tocoo()
        self.money = _Money(attempt, entries.row.astype(np.int64), entries.col.astype(np.int64))
        self.problem, self.iterate = problem, Iterate.of(problem, start(problem))
        self.first_mu = float(np.log(LOGARITHMS.first_mu))
        self.targets = _Targets(self.first_mu, *self.money.at(problem, self.iterate, self.first_mu))
        self.settling, self.longest, self.sets = True, LOGARITHMS.first_change, LOGARITHMS.products_of_sets
        self.progress, self.end, self.nearest = _Progress(), _End(), np.inf

    def followed(self, deadline: Deadline) -> _Outcome:
        """Follow the path to its end, or as far as it leads.

        Raises
        ------
        NoSolution
            At the deadline.
        """
        for step in range(LOGARITHMS.steps_of_attempt):
            if deadline.left == 0.0:
                raise deadline.passed({"steps": step})
            now = self._measured()
            log.debug("step %d: products %.1e, residual %.1e, %.1e", step, np.exp(now.largest), now.residual, now.off)
            self.progress.note(now)
            is_due = not self.settling and now.largest < np.log(self.sets)
            if is_due and (found := self._by_early_sets(now)) is not None:
                return self._outcome(found, self.problem.kkt_violation(found.x, found.p), step)
            if self.progress.stuck >= LOGARITHMS.stuck or self._has_ended(now):
                break
            self._step(now, halt=is_due and now.off < LOGARITHMS.off_when_settled and now.residual >= LOGARITHMS.residuals_of_sets)
        return self._outcome(*self._last(), step)

    def _outcome(self, point: Point, violation: float, step: int) -> _Outcome:
        return _Outcome(self.problem, replace(point, steps=step), violation, float(np.exp(self.nearest)))

    def _measured(self) -> _Distance:
        """Let the targets follow the money, measure the distance from them, and see whether phi is right."""
        problem, logs = self.problem, self.iterate.logs
        targets = self.money.followed(self.targets, problem, self.iterate)
        worth = problem.worth_residual(logs.y, logs.t)
        if self.settling:
            middle = float(worth.max() + worth.min()) / 2
            self.problem = problem.with_shift(problem.shift - middle)
            worth = worth - middle
        now = _Distance.of(self.iterate, targets, worth)
        self.nearest = min(self.nearest, now.largest)
        near = now.off < LOGARITHMS.off_when_settled and now.largest < self.first_mu + LOGARITHMS.above_first_mu
        if near and (problem.alpha > 1 or now.spread < LOGARITHMS.even):
            self.settling = False
        self.targets = replace(targets, mu=min(targets.mu, float(np.median(now.products))))
        return now

    def _money_of_limits(self) -> FloatArray:
        return self.money.at(self.problem, self.iterate, self.targets.mu)[1]

    def _by_early_sets(self, now: _Distance) -> Point | None:
        """Return the solution by the active sets, where these show, or where the path has been quiet for long; None if it is not theirs."""
        show, quiet = now.residual < LOGARITHMS.residuals_of_sets, self.progress.quiet >= LOGARITHMS.quiet
        if not show and not quiet:
            return None
        if show:
            self.sets = np.exp(now.largest) * LOGARITHMS.sets_every
        self.progress.quiet = 0
        patience = LOGARITHMS.steps_on_sets if quiet else LOGARITHMS.steps_on_early_sets
        return _on_active_sets(self.problem, self.iterate, self._money_of_limits(), patience)

    def _has_ended(self, now: _Distance) -> bool:
        """Is this the end of the path, where it gains nothing more? Keep the best point there."""
        if self.settling or not now.largest <= np.log(LOGARITHMS.near_last_mu * LOGARITHMS.last_mu):
            return False
        end = _end(self.problem, self.iterate, self._money_of_limits())
        return self.end.note(end, self.problem.kkt_violation(end.x, end.p), now.residual)

    def _step(self, now: _Distance, *, halt: bool) -> None:
        """Take a step: products of one size come first, then mu falls."""
        aim = self.first_mu if self.settling else np.log(LOGARITHMS.last_mu)
        if not self.settling and now.spread > (LOGARITHMS.spread if self.problem.alpha <= 1 else LOGARITHMS.spread_of_large_alpha):
            aim = (now.largest + float(now.products.min())) / 2
        self.iterate, self.longest = take_step(
            self.problem, self.iterate, now.products, aim - now.products, now.worth, self.longest, settling=self.settling, halt=halt
        )

    def _last(self) -> tuple[Point, float]:
        """Return the answer by the active sets of the last iterate, else the best point at the end; and its KKT violation."""
        limits = self._money_of_limits()
        found = _on_active_sets(self.problem, self.iterate, limits, LOGARITHMS.steps_on_sets)
        if found is None and self.end.best is not None:
            return self.end.best
        point = _end(self.problem, self.iterate, limits) if found is None else found
        return point, self.problem.kkt_violation(point.x, point.p)


# The end -------------------------------------------------------------------------------------------------------------------------


def _full(iterate: Iterate, money_of_limits: FloatArray) -> BoolArray:
    """Return which limits are full: of the two factors of p s, relative, the larger one counts as positive."""
    return np.asarray(iterate.logs.p - money_of_limits > np.log(iterate.at.s / iterate.use))


def _on_active_sets(problem: AlphaFairProblem, iterate: Iterate, money_of_limits: FloatArray, patience: int) -> Point | None:
    """Return the exact solution, where the active sets of an iterate are the right ones."""
    at, full = iterate.at, _full(iterate, money_of_limits)
    p = np.where(full, at.p, 0.0)
    used = at.x * problem.v / at.t[problem.user] > at.z / iterate.cost
    return solve_on_sets(problem, Point(at.x, p), ActiveSets(used, full, negligible_users(problem, p)), patience)


def _end(problem: AlphaFairProblem, iterate: Iterate, money_of_limits: FloatArray) -> Point:
    """Return an iterate as it is, feasible, with the demands of negligible users."""
    x, p = iterate.at.x, np.where(_full(iterate, money_of_limits), iterate.at.p, 0.0)
    negligible = negligible_users(problem, p)
    if negligible.any():
        x = with_demands(problem, x, p, negligible)
    else:
        p = iterate.at.p
    return Point(x / max(1.0, float(problem.use(x).max(initial=0.0))), p)
