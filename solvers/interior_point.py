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
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from fairopt.certificate import certify
from fairopt.errors import Unsupported
from fairopt.instance import BoolArray, FloatArray
from fairopt.program import AlphaFair, Equalize, Equilibrium, Feature, Leximin, LimitKind, Program, Solution, Total, Tradeoff
from fairopt.solvers.active_sets import on_sets, poor_at, wish
from fairopt.solvers.alpha_fair import AlphaFairProblem, Newton, State
from fairopt.solvers.array_namespace import Arrays, array_namespace
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solvers.best_response import BestResponse
from fairopt.solvers.market import as_market, is_large
from fairopt.solvers.structured_alpha import fits, solve_alpha_fair
from fairopt.solvers.structured_levels import solve_levels
from fairopt.solvers.structured_pairs import obstacle
from fairopt.solvers.structured_total import solve_total
from fairopt.solvers.tradeoff import find_total_worth
from fairopt.solvers.via_highs import HiGHS

__all__ = ["InteriorPoint", "follow"]

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
# Where a path ends short of full precision: parts of alpha at which to look for the sets, and how fast the targets follow the money, in
# logarithms a step.
_ATTEMPTS = ((1.0, 1.0), (0.9, 1.0), (0.8, 1.0), (0.7, 1.0), (1.0, 0.3))
# From what size on, pairs times limits of servers, the structured path is the faster one. Seconds of a processor, this and HiGHS, demands
# positive and every pair eligible, users x servers x resources. One level: 100 x 20 x 2 0.013, 0.016; 1,000 x 10 x 2 0.023, 0.028;
# 5,000 x 10 x 2 0.14, 0.32; 1,000 x 30 x 3 0.16, 1.2; 1,000 x 100 x 3 0.55, 7.5 (a tenth of the pairs 0.32, 2.2); 20,000 x 5 x 3 1.1, 27.
# Levels of users with one to three servers each: 13 of 1,000 x 10 x 2 0.19, 0.089. Totals: 1,000 x 30 x 3 0.097, 0.11; 300 x 100 x 3 0.094,
# 0.086; 5,000 x 10 x 2 0.19, 0.42; 20,000 x 5 x 3 0.70, 2.2.
# Caps of users with few tasks are levels of their own, of which hundreds cost it less than HiGHS: 1,000 x 10 x 3 0.14, 0.15;
# 1,000 x 30 x 3 0.24, 1.3 to 1.9; 300 x 100 x 3 0.2 to 0.4, 1.3 to 3. Where it gets lost among them, tasks of a Pareto law, it is so soon:
# 1,000 x 30 x 3 5.8, 5.0; and small programs do not ask it (the 900 users of the Google cluster 0.36, 0.055).
_SIZE_OF_LEVELS = 600_000
_PAIRS_OF_TOTALS, _PAIRS_PER_LIMIT = 50_000, 1_000
# From how many pairs on alpha-fair goals go by tables, where these fit. Seconds of a processor, this path and tables, alpha = 1,
# users x servers x resources: 10 x 3 x 2 0.093, 0.006; 100 x 5 x 2 0.16, 0.010; 60 x 30 x 3 0.66, 0.036; 300 x 30 x 3 3.3, 0.068. It ends
# at 1e-12, not at 1e-15 as the path of this file does: that is what small programs get.
_PAIRS_OF_TABLES = 500
_DIGIT = 0.1  # of the tolerance, for levels and totals that HiGHS would solve as fast
_USED = 1e-7  # part of a user's utility from which on a pair counts as used


class InteriorPoint(Backend):
    """Alpha-fair goals and trade-offs by the path of this file; levels and totals by that of ``structured_path``.

    Alpha-fair goals of many users and few limits go by ``structured_alpha``, on tables that may live on another device:
    ``solver="interior-point:torch:cuda"``, or ``":torch"``, ``":cupy"``; ``":numpy"`` is the default.

    A structured path that gets lost, or whose answer fails the certificate, is finished by HiGHS; ``Solution.finished_by`` says so. An
    equilibrium of servers that divide their time is solved as a market, and if that fails by best response.

    >>> import fairopt as fo
    >>> instance = fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]])
    >>> fo.solve(instance, "drfh", solver="interior-point").tasks_per_user.round(6)
    array([10., 10.])
    """

    name = "interior-point"
    title = "Interior point: alpha-fair goals, trade-offs with the total; leximins and totals of many users and servers"
    takes_solver = True  # which arrays: "numpy", "torch", "torch:cuda", "cupy"
    features = frozenset(
        {
            Feature.ALPHA_FAIR,
            Feature.TRADEOFF,
            Feature.LEXIMIN,
            Feature.EQUALIZE,
            Feature.TOTAL,
            Feature.MARKET,
            Feature.SEVERAL_SERVERS,
        }
    )

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Is this a large leximin, total or market? The figures are at ``_SIZE_OF_LEVELS``, and in ``market``."""
        if program.is_market:
            return is_large(program)
        pairs = program.n_pairs
        if isinstance(program.goal, Leximin | Equalize):
            large = pairs * int((program.limits.kinds != LimitKind.TASKS).sum()) >= _SIZE_OF_LEVELS
        else:
            large = isinstance(program.goal, Total) and pairs >= max(_PAIRS_OF_TOTALS, _PAIRS_PER_LIMIT * len(program.limits))
        return large and not obstacle(program)

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Follow the path from half an even slice to the end."""
        goal = program.goal
        if isinstance(goal, Equilibrium):
            return self._solve_market(program, tolerance, deadline)
        arrays = array_namespace(self.within)
        tables = isinstance(goal, AlphaFair) and fits(program)
        if self.within and not tables:
            raise Unsupported(
                f'"{self.name}:{self.within}" is for alpha-fair goals of many users, few limits and no limits on tasks; '
                f'"{program.name}" is another program here: leave ":{self.within}" out'
            )
        if isinstance(goal, AlphaFair | Tradeoff):
            if tables and (self.within or program.n_pairs >= _PAIRS_OF_TABLES):
                found = _on_tables(program, arrays, deadline)
                if found is not None:
                    return found
                log.info("the path on tables got lost; that in logarithms begins anew")
                return replace(_solve_alpha_fair(program, goal, deadline), finished_by="path in logarithms")
            reached = _solve_alpha_fair(program, goal, deadline)
            if tables and not certify(program, reached).worst <= tolerance:
                log.info("the path in logarithms got lost; that on tables begins anew")
                found = _on_tables(program, arrays, deadline)
                return reached if found is None else replace(found, finished_by="path on tables")
            return reached
        assert isinstance(goal, Leximin | Equalize | Total)
        with np.errstate(all="ignore"):  # a path that overflows is lost, and says so
            if isinstance(goal, Total):
                solution = solve_total(program, tolerance, deadline)
            else:
                solution = solve_levels(program, goal, tolerance, deadline)
        # Of 30,000 users each counts for so little that rounding alone is a residual of 2e-9; HiGHS would need minutes to do no better.
        enough = tolerance if self.wins(program) else _DIGIT * tolerance
        if solution is None or not certify(program, solution).worst <= enough:
            log.info("the structured path got lost; HiGHS solves it from the beginning")
            HiGHS.require()
            return replace(HiGHS().solve(program, tolerance=tolerance, deadline=deadline), finished_by=HiGHS.name)
        return solution

    def _solve_market(self, program: Program, tolerance: float, deadline: Deadline) -> Solution:
        """Return the tasks of the market, without its prices, which are not those of the equilibrium."""
        market = self.solve(as_market(program), tolerance=tolerance, deadline=deadline)
        solution = Solution(market.x, iterations=market.iterations, programs_solved=market.programs_solved)
        if certify(program, solution).worst <= _DIGIT * tolerance:
            return solution
        log.info("the market is not exact enough for its equilibrium; best response solves it from the beginning")
        BestResponse.require()
        return replace(BestResponse().solve(program, tolerance=tolerance, deadline=deadline), finished_by=BestResponse.name)


def _on_tables(program: Program, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Follow the path of ``structured_alpha``; None where it got lost: a point that overflows is, and says so."""
    assert isinstance(program.goal, AlphaFair)
    with (
        np.errstate(all="ignore"),
        threadpool_limits(limits=1, user_api="blas"),
    ):  # small products, for which threads cost more than they give
        return solve_alpha_fair(program, program.goal, arrays, deadline)


def _solve_alpha_fair(program: Program, goal: AlphaFair | Tradeoff, deadline: Deadline) -> Solution:
    problem = AlphaFairProblem(program, goal)
    if problem.member.size == 0:
        return problem.solution(np.empty(0), np.zeros(problem.n_rows), 0)
    # Thousands of small products, for which threads cost more than they give: 60 users on 10 servers 3.8 s, by one thread 0.4 s;
    # 200 on 30 26 s and 3.3 s, both on two busy cores.
    with threadpool_limits(limits=1, user_api="blas"):
        if isinstance(goal, Tradeoff):
            return problem.solution(*find_total_worth(problem, goal, deadline, follow)[:3])
        return problem.solution(*follow(problem, deadline))


def follow(problem: AlphaFairProblem, deadline: Deadline) -> tuple[FloatArray, FloatArray, int]:
    """Return tasks, prices (in the problem's units) and the number of steps."""
    goal, unit = problem.alpha, problem.shift
    best, steps = (np.empty(0), np.empty(0), np.nan), 0
    for part, turn in _ATTEMPTS:
        problem.set_alpha(part * goal)
        with np.errstate(all="ignore"):
            x, p, error, number = _Path(problem, turn, deadline).follow()
            problem.set_alpha(goal)
            if part != 1:  # who uses what is often the same
                used = x * problem.v / problem.utility(x)[problem.user] > _USED
                found = on_sets(problem, x, p, used, p > 0, poor_at(problem, p), _PATIENT)
                x, p = found[:2] if found is not None else (x, p)
                error = problem.error(x, p)
        steps += number
        if not best[2] <= error:
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

    def __init__(self, problem: AlphaFairProblem, turn: float, deadline: Deadline) -> None:
        self.problem, self.turn, self.deadline = problem, turn, deadline
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
        """Logarithms of the money of the users of pairs and of limits.

        At alpha < 1 a user's money can fall by a hundred orders of magnitude while prices are still wrong by little. Until they are right,
        it counts with mu times the money where it might spend it.
        """
        problem, logs = self.problem, self.point.logs
        money = logs.y + logs.t
        limit = problem.log_money_of_limits(self.point.at.x, money)
        entries = self.entries
        if self.alpha > 1:  # who could use a limit feels its price, too, and may have the least money of all
            np.minimum.at(limit, entries.row, money[problem.user][entries.col])
        if self.alpha < 1:
            around = np.full(problem.v.size, -np.inf)
            np.maximum.at(around, entries.col, limit[entries.row])
            least = np.full(money.size, np.inf)
            np.minimum.at(least, problem.user, around)
            money = np.maximum(money, self.mu + least)
            limit = problem.log_money_of_limits(self.point.at.x, money)
        return money[problem.user], limit

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
