"""Primal-dual interior point for alpha-fair programs, in logarithms: exact, for any alpha > 0, without a solver package.

The conditions of ``alpha_fair`` with their zeros replaced by targets,

    x z = mu m,     p s = mu c,     y t^alpha = phi,

mu relative, m the money of the pair's user, c that of the users of the limit. For any positive targets, and any phi and alpha, they are the
conditions of a strictly concave program, sum phi g(t) + sum m mu log x + sum c mu log s. So there is one point for each, a
smooth function of the targets' logarithms, and one can walk from anywhere to anywhere: from an even slice of everything, with the
products that it happens to have, first to the right phi and products of the same order, then to mu = 0.

Unknown are the logarithms of x, s, p, z, y and t, in which the products are linear; a step is Newton's on the three linear
conditions, and as long as they stay nearly fulfilled. Logarithms are what lets poor and rich arrive together, however many orders of
magnitude they are apart: at alpha = 0.1 a weight of a thousandth asks for 1e-30, at alpha = 10 a task of who has a third is worth
59,049 times as much. Near the end, where it shows who uses what, ``active_sets`` solves the equations that are left.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.solvers.alpha_fair.active_sets import on_sets, poor_at, wish
from fairopt.solvers.alpha_fair.problem import AlphaFairProblem, Newton, State
from fairopt.solvers.backend import Deadline

__all__ = ["follow"]

log = logging.getLogger(__name__)

_STEPS = 250
_MIDDLE = 0.1  # relative products in the first part of the way
_END = 1e-11  # and at its end: below, rounding moves tasks between equally good servers
_SETS = 1e-4  # relative products from which on the sets of used pairs and full limits may show
_GOOD = 1e-9  # good enough to stop looking
_ALLOWED = 0.3  # largest violation of a linear condition on the way, in logarithms
_SHORTEST, _LONGEST = 0.3, 60.0  # largest change of a logarithm in a step
_PATIENT = 30  # steps of Newton's method on the sets of the end
_STALLED = 15  # steps without progress at the end
# Where a path ends short of full precision: parts of alpha at which to look for the sets, how fast the targets follow the money, in
# logarithms a step, and whether that of a pair is what it can take or all that its user has.
_ATTEMPTS = ((1.0, 1.0, True), (1.0, 1.0, False), (0.9, 1.0, True), (0.8, 1.0, True), (0.7, 1.0, True), (1.0, 0.3, True))
_USED = 1e-7  # part of a user's utility from which on a pair counts as used


def follow(problem: AlphaFairProblem, deadline: Deadline) -> tuple[FloatArray, FloatArray, int]:
    """Return tasks, prices (in the problem's units) and the number of steps."""
    goal, unit = problem.alpha, problem.shift
    best, steps = (np.empty(0), np.empty(0), np.nan), 0
    for part, turn, by_pair in _ATTEMPTS:
        problem.set_alpha(part * goal)
        with np.errstate(all="ignore"):
            x, p, error, number = _Path(problem, turn, by_pair, deadline).follow()
            problem.set_alpha(goal)
            if part != 1:  # who uses what is often the same
                used = x * problem.v / problem.utility(x)[problem.user] > _USED
                found = on_sets(problem, x, p, used, p > 0, poor_at(problem, p), _PATIENT)
                x, p = found[:2] if found is not None else (x, p)
                error = problem.error(x, p)
        steps += number
        if not best[2] <= error:
            with np.errstate(over="ignore"):  # such prices fail their check
                best = x, p * np.exp(problem.shift - unit), error  # back to the unit of money that the problem came in
        problem.shift = unit
        problem.set_alpha(goal)
        if error <= _GOOD:
            break
        log.info("the path at alpha = %g left an error of %.1e; trying another", part * goal, error)
    return best[0], best[1], steps


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """A point, its logarithms, and by how much it violates the conditions, in logarithms."""

    logs: State
    at: State
    use: FloatArray  # A x + s, to be 1
    own: FloatArray  # V'x, to be t
    worth: FloatArray  # V y + z, to be the cost
    cost: FloatArray  # A'p

    @classmethod
    def of(cls, problem: AlphaFairProblem, logs: State) -> _Point:
        at = State(*(np.exp(getattr(logs, name)) for name in State.__slots__))
        worth = problem.v * at.y[problem.user] + at.z
        return cls(logs, at, problem.use(at.x) + at.s, problem.utility(at.x), worth, problem.cost(at.p))

    @property
    def violation(self) -> float:
        """Largest violation of a linear condition."""
        unequal = (np.log(self.use), np.log(self.own / self.at.t), np.log(self.worth / self.cost))
        return max(float(np.abs(part).max(initial=0.0)) for part in unequal)


class _Path:
    """The way from half an even slice to the end."""

    def __init__(self, problem: AlphaFairProblem, turn: float, by_pair: bool, deadline: Deadline) -> None:
        self.problem, self.turn, self.by_pair, self.deadline = problem, turn, by_pair, deadline
        self.alpha = problem.alpha
        self.entries = problem.A.tocoo()
        self.point = _Point.of(problem, _start(problem))
        # Targets' units, in logarithms. They follow the money, but never jump.
        self.mu = float(np.log(_MIDDLE))
        self.of_pair, self.of_limit = self.money()
        self.length = 1.5  # largest change of a logarithm

    def follow(self) -> tuple[FloatArray, FloatArray, float, int]:
        """Return tasks, prices, their error and the number of steps."""
        problem, settling, since, least, sets = self.problem, True, 0, np.inf, _SETS
        best: tuple[FloatArray, FloatArray, float] = (self.point.at.x, self.point.at.p, np.inf)
        for step in range(_STEPS):
            if self.deadline.left == 0.0:
                raise self.deadline.passed({"steps": step})
            logs, violation = self.point.logs, self.point.violation
            pair, limit = self.money()
            self.of_pair = self.of_pair + np.clip(pair - self.of_pair, -self.turn, self.turn)
            self.of_limit = self.of_limit + np.clip(limit - self.of_limit, -self.turn, self.turn)
            products = np.concatenate([logs.x + logs.z - self.of_pair, logs.p + logs.s - self.of_limit])
            bent = self.bent(logs)
            if settling:  # the common unit of money is free
                middle = float(bent.max() + bent.min()) / 2
                problem.shift -= middle
                problem.set_alpha(self.alpha)
                bent = bent - middle
            off, worst = float(np.abs(bent).max()), float(products.max())
            spread = worst - float(products.min())
            if settling and off < 0.1 and worst < np.log(_MIDDLE) + 1 and (self.alpha > 1 or spread < 2):
                settling = False
            self.mu = min(self.mu, float(np.median(products)))
            log.debug("step %d: products %.1e, violation %.1e, %.1e", step, np.exp(worst), violation, off)
            due = not settling and worst < np.log(sets)
            if due and max(violation, off) < 1e-3:
                sets = np.exp(worst) * 1e-2
                found = self.finish()
                if found is not None:
                    return *found, step
            if not settling and worst <= np.log(3 * _END):
                x, p = self.end()
                error = problem.error(x, p)
                if error < best[2]:
                    best = x, p, error
                now = max(violation, off)
                since = since + 1 if now > 0.5 * least else 0
                least = min(least, now)
                if now < 1e-13 or since > _STALLED:
                    break
            aim = np.log(_MIDDLE if settling else _END)
            if not settling and spread > (4.6 if self.alpha <= 1 else 12.0):  # together first
                aim = (worst + float(products.min())) / 2
            self.step(products, aim - products, bent, settling, halt=due and off < 0.1 and max(violation, off) >= 1e-3)
        if best[2] == np.inf:
            x, p = self.end()
            best = x, p, problem.error(x, p)
        found = self.finish(_PATIENT)
        if found is not None:
            return *found, step
        return *best, step

    def bent(self, logs: State) -> FloatArray:
        """By how much log y is more than that of the worth of t: log y t^alpha - log phi."""
        return self.problem.bent(logs.y, logs.t)

    def money(self) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the money of the users of pairs and of limits: as much of it as the pair could take, all of it for itself.

        On servers a billion times smaller than others a user can spend no more than a billionth, and there the products have to be as much
        smaller to tell who uses what. Elsewhere all the money of its user may be the better measure.

        At alpha < 1 a user's money can fall by a hundred orders of magnitude while prices are still wrong by little. Until they are right,
        it counts with mu times the money where it might spend it.
        """
        problem, logs = self.problem, self.point.logs
        own = logs.t[problem.user]
        most = np.log(problem.v) if self.by_pair else own  # utility that a pair gives if it takes all that there is of a limit
        money = logs.y[problem.user] + np.minimum(own, most)
        limit = problem.log_money_of_limits(self.point.at.x, money)
        entries = self.entries
        if self.alpha > 1:  # who could use a limit feels its price, too, and may have the least money of all
            np.minimum.at(limit, entries.row, (logs.y[problem.user] + most)[entries.col])
        if self.alpha < 1:
            around = np.full(problem.v.size, -np.inf)
            np.maximum.at(around, entries.col, limit[entries.row])
            least = np.full(logs.y.size, np.inf)
            np.minimum.at(least, problem.user, around)
            money = np.maximum(money, self.mu + least[problem.user])
            limit = problem.log_money_of_limits(self.point.at.x, money)
        return money, limit

    def step(self, products: FloatArray, wanted_change: FloatArray, bent: FloatArray, settling: bool, halt: bool) -> None:
        """Take a step: all of what mends the linear conditions, and as much of the wanted change as they allow."""
        point, problem = self.point, self.problem
        at, a = point.at, problem.fall(point.logs.t)
        system = Newton(problem, at.z / at.x, np.concatenate([at.s / at.p, at.t / (a * at.y)]), Newton.nearly_worth_it(problem, at))
        pairs = at.x.size

        def direction(change: FloatArray, log_y: FloatArray, short: FloatArray, missing: FloatArray, unpaid: FloatArray) -> State:
            """Newton's step, in logarithms, by which products change, and log y t^alpha falls by log_y."""
            x_z, p_s = change[:pairs], change[pairs:]
            dx, dq = system.step(unpaid + at.z * x_z, np.concatenate([short - at.s * p_s, -(missing - at.t / a * log_y)]))
            x, p, y = dx / at.x, dq[: problem.n_rows] / at.p, dq[problem.n_rows :] / at.y
            return State(x, p_s - p, p, x_z - x, -(log_y + y) / a, y)

        still, none = np.zeros(products.size), np.zeros(bent.size)
        mend_bent, move_bent = (none, bent) if settling else (bent, none)
        mend = direction(
            still,
            mend_bent,
            -point.use * np.log(point.use),
            np.sqrt(point.own * at.t) * np.log(at.t / point.own),
            np.sqrt(point.worth * point.cost) * np.log(point.worth / point.cost),
        )
        move = direction(wanted_change, move_bent, np.zeros(at.s.size), none, np.zeros(pairs))
        before = point.violation if settling else max(point.violation, float(np.abs(bent).max()))
        mend_size, move_size = _largest(mend), max(_largest(move), float(np.abs(move.y + move.t).max()))
        part = 0.0 if halt else min(1.0, self.length / max(move_size, 1e-300))
        if mend_size < 3:
            for _ in range(4):
                after, violation = self.moved(mend, 1.0, move, part, (1 - part) * move_bent)
                ahead = max(float((products + part * wanted_change).max()), np.log(_END))
                allowed = min(_ALLOWED, 100 * np.exp(ahead / 2))  # the nearer the end, the nearer to the path
                if violation < allowed or (part == 0 and violation < 0.5 * before):
                    if violation < 0.4 * allowed:
                        self.length = min(max(self.length, part * move_size) * 2, _LONGEST)
                    elif violation > 0.7 * allowed:
                        self.length *= 0.7
                    self.point = after
                    return
                part *= 0.4
                self.length *= 0.4
        length = min(1.0, 3.0 / mend_size)
        for _ in range(30):
            after, violation = self.moved(mend, length, move, 0.0, move_bent + (1 - length) * mend_bent)
            if violation < (1 - 0.2 * length) * before:
                break
            length /= 2
        self.point, self.length = after, max(self.length, _SHORTEST)

    def moved(self, mend: State, length: float, move: State, part: float, bent: FloatArray) -> tuple[_Point, float]:
        """Return the point after a step and its largest violation; ``bent`` is what log y t^alpha - log phi should be there."""
        problem, logs = self.problem, self.point.logs
        new = {name: getattr(logs, name) + length * getattr(mend, name) + part * getattr(move, name) for name in State.__slots__}
        if self.alpha <= 1:  # the curvature goes where it counts least: into t = V'x, or into y t^alpha = phi
            new["t"] = np.log(problem.utility(np.exp(new["x"])))
        point = _Point.of(problem, State(**new))
        violation = point.violation
        if self.alpha <= 1:
            violation = max(violation, float(np.abs(self.bent(point.logs) - bent).max()))
        return point, violation if np.isfinite(violation) else np.inf

    # The end ----------------------------------------------------------------------------------------------------------------

    def full(self) -> BoolArray:
        """Which limits are full: of the two factors of p s, relative, the larger decides."""
        return np.asarray(self.point.logs.p - self.money()[1] > np.log(self.point.at.s / self.point.use))

    def finish(self, patience: int = 4) -> tuple[FloatArray, FloatArray, float] | None:
        """Return exact tasks, prices and their error, where the sets of used pairs and full limits are the right ones."""
        at, problem = self.point.at, self.problem
        full = self.full()
        p = np.where(full, at.p, 0.0)
        used = at.x * problem.v / at.t[problem.user] > at.z / self.point.cost
        found = on_sets(problem, at.x, p, used, full, poor_at(problem, p), patience)
        return None if found is None else (found[0], found[1], problem.error(*found[:2]))

    def end(self) -> tuple[FloatArray, FloatArray]:
        """Tasks and prices of the point as it is; the poor get what they want."""
        at, problem = self.point.at, self.problem
        x, p = at.x, np.where(self.full(), at.p, 0.0)
        poor = poor_at(problem, p)
        if poor.any():
            x = wish(problem, x, p, poor)
        else:
            p = at.p
        return x / max(1.0, float(problem.use(x).max(initial=0.0))), p


def _largest(step: State) -> float:
    return max(float(np.abs(getattr(step, name)).max(initial=0.0)) for name in State.__slots__)


def _start(problem: AlphaFairProblem) -> State:
    """Return the logarithms of half an even slice of every limit, and of prices at which nothing is worth its cost."""
    entries = problem.A.tocoo()
    sharers = np.diff(problem.A.indptr)
    x = np.full(problem.v.size, np.inf)
    np.minimum.at(x, entries.col, 0.5 / (entries.data * sharers[entries.row]))
    t, s = problem.utility(x), 1.0 - problem.use(x)
    worth = problem.v / t[problem.user]
    p = 1.0 / s
    p *= max(1.0, 2 * float((worth / problem.cost(p)).max()))
    return State(*(np.log(part) for part in (x, s, p, problem.cost(p) - worth, t, 1.0 / t)))
