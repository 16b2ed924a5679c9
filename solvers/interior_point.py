"""Primal-dual interior point for alpha-fair programs: exact, for any alpha > 0, without a solver package.

The conditions of ``alpha_fair`` with their zeros replaced by targets,

    x z = mu m[n],     p s = mu c[j],     y t^alpha = phi,

mu relative, m[n] = y t the money of the user, c[j] the mean money of the users who fill limit j. Each step is Newton's on
these equations, in which only products are not linear, with Mehrotra's prediction (1992) of how far mu can fall and his correction of
second order; it stops short of the boundary. Since a user's money is its own unit, poor and rich converge together, however
many orders of magnitude apart.

There is always a point inside to start from: half an even slice of every limit, and prices at which nothing is worth its cost.
"""

from __future__ import annotations

import logging

import numpy as np

from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Feature, Program, Solution
from fairopt.solvers.alpha_fair import AlphaFairProblem, Newton, State
from fairopt.solvers.backend import Backend, Deadline

__all__ = ["InteriorPoint", "follow"]

log = logging.getLogger(__name__)

_STEPS = 400
_GOAL = 1e-20  # relative products: a degenerate pair is as far off as the root of it
_CLOSE = 1e-11  # residuals of the linear equations, relative
_EXACT = 1e-13  # relative to money: rounding
_STALLED = 12  # steps without progress after which floating point is exhausted
_BOUNDARY = 0.9995  # part of the way to the boundary
_TURN = 2.0  # largest change of log y t^alpha that a step may aim at
_BENT = 0.7  # largest error of a step in it
_NOTHING = 1e-25  # part of what a user could have alone
_LITTLE = 1e-3
_SPREAD = 30.0  # largest factor by which a step may raise a product or keep it from falling


class InteriorPoint(Backend):
    """Alpha-fair goals by a primal-dual interior point of fairopt's own."""

    name = "interior-point"
    title = "Interior point: alpha-fair goals, exact for any alpha"
    features = frozenset({Feature.ALPHA_FAIR, Feature.SEVERAL_SERVERS})

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Follow the path from half an even slice to the end."""
        assert isinstance(program.goal, AlphaFair)
        problem = AlphaFairProblem(program, program.goal)
        if problem.member.size == 0:
            return problem.solution(np.empty(0), np.zeros(problem.n_rows), 0)
        x, p, steps = follow(problem, start(problem), deadline)
        error = problem.error(x, p)
        if error > _EXACT:  # where the sets can be told, Newton on them goes further than the path
            from fairopt.solvers.finish import active_sets

            with np.errstate(all="ignore"):
                found = active_sets(problem, x, p)
            if found is not None and problem.error(*found[:2]) < error:
                x, p, _ = found
        return problem.solution(x, p, steps)


def start(problem: AlphaFairProblem) -> State:
    """Return half an even slice of every limit; equal money for all, and products of about that money."""
    A = problem.A.tocoo()
    sharers = np.diff(problem.A.indptr)
    x = np.full(problem.v.size, np.inf)
    np.minimum.at(x, A.col, 0.5 / (A.data * sharers[A.row]))
    t = problem.utility(x)
    s = 1.0 - problem.use(x)
    own = np.bincount(problem.user)  # a user's money is spread over its pairs
    return State(x, s, 1.0 / s, 1.0 / (x * own[problem.user]), t, 1.0 / t)


def follow(problem: AlphaFairProblem, at: State, deadline: Deadline) -> tuple[FloatArray, FloatArray, int]:
    """Return tasks, prices (in the problem's units) and the number of steps."""
    best, best_error, since = at, np.inf, 0
    # Who is to have next to nothing (a small weight at a small alpha can ask for 1e-60) is let off with a little more, which nobody can
    # feel, and scaled in the end: relief is by how much more log phi than given that answers to.
    relief = best_relief = np.zeros(at.t.size)
    goal = problem.alpha
    if goal != 1.0:
        problem.set_alpha(1.0)
        problem.shift += float(np.median(problem.log_phi))
        problem.set_alpha(1.0)
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        at = _let_go(problem, at)
        money = at.y * at.t
        of_pair, of_limit = money[problem.user], problem.money_of_limits(at.x, money)
        products = np.concatenate([at.x * at.z / of_pair, at.p * at.s / of_limit])
        short, missing, unpaid, bent = problem.residuals(at)
        relief = np.where(at.t < _NOTHING, relief + np.maximum(bent - relief, 0.0), np.where(at.t < 1e5 * _NOTHING, relief, 0.0))
        bent -= relief
        if problem.alpha != goal and np.abs(bent).max() <= _BENT:
            bent = _toward(problem, goal, at, relief)
        linear = max(
            float(np.abs(short).max(initial=0.0)),
            float((np.abs(missing) / at.t).max()),
            float((np.abs(unpaid) / (problem.v * at.y[problem.user] + at.z)).max()),
            float(np.abs(bent).max()),
        )
        worst = float(products.max()) if problem.alpha == goal else np.inf
        error = max(worst, linear * 1e-3)
        log.debug("step %d: worst %.1e, residual %.1e", step, worst, linear)
        since = 0 if error < 0.5 * best_error or np.abs(bent).max() > 1 or problem.alpha != goal else since + 1
        if error < best_error:
            best, best_error, best_relief = at, error, relief
        if (worst <= _GOAL and linear <= _CLOSE) or (since > _STALLED and best_error < 1e-9) or since > 60:
            break
        at = _step(problem, at, products, of_pair, of_limit, (short, missing, unpaid, bent), problem.alpha != goal)
    return best.x * np.exp(-best_relief / problem.alpha)[problem.user], best.p, step


def _let_go(problem: AlphaFairProblem, at: State) -> State:
    """Give users who have little, and want much less at these prices, what they want: steps that are linear in t would take long."""
    cheapest = np.full(at.t.size, np.inf)
    np.minimum.at(cheapest, problem.user, (problem.cost(at.p)) / problem.v)
    with np.errstate(divide="ignore"):
        y = np.maximum(at.y, cheapest / 2)
    wanted = np.maximum((problem.log_phi - np.log(y)) / problem.alpha, np.log(_NOTHING) - 1)
    factor = np.exp(np.minimum(wanted - np.log(at.t), 0.0))
    go = (at.t < _LITTLE) & (factor < 0.3)
    if not go.any():
        return at
    factor, y = np.where(go, factor, 1.0), np.where(go, y, at.y)
    gone = go[problem.user]
    worth = problem.v * y[problem.user]
    z = np.where(gone, np.maximum(problem.cost(at.p) - worth, worth), at.z)
    return State(at.x * factor[problem.user], at.s, at.p, z, at.t * factor, y)


def _toward(problem: AlphaFairProblem, goal: float, at: State, relief: FloatArray) -> FloatArray:
    """Change alpha as far towards the goal as a step can follow; the common unit of money is free, and follows too."""

    def bent(alpha: float) -> FloatArray:
        problem.set_alpha(alpha)
        return np.log(at.y) + alpha * np.log(at.t) - problem.log_phi - relief

    before, now = problem.alpha, bent(problem.alpha)
    slope = (bent(goal) - now) / (goal - before)
    spread = float(np.ptp(slope))
    alpha = goal if abs(goal - before) * spread <= 2 * _TURN else before + np.sign(goal - before) * 2 * _TURN / spread
    after = bent(float(alpha))
    common = float(after.max() + after.min()) / 2
    problem.shift -= common
    problem.set_alpha(float(alpha))
    return after - common


def _step(
    problem: AlphaFairProblem,
    at: State,
    products: FloatArray,
    of_pair: FloatArray,
    of_limit: FloatArray,
    residuals: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    waiting: bool,
) -> State:
    """Predict, choose the target, correct."""
    short, missing, unpaid, bent = residuals
    a = problem.alpha
    system = Newton(problem, at.z / at.x, np.concatenate([at.s / at.p, at.t / (a * at.y)]), Newton.nearly_worth_it(problem, at))
    pairs = at.x.size
    unit = np.concatenate([of_pair, of_limit])

    def direction(change: FloatArray, log_y: FloatArray) -> State:
        """Newton's step to the products x z, p s + change and log y t^alpha - log_y."""
        x_z, p_s = change[:pairs], change[pairs:]
        top = unpaid + x_z / at.x
        bottom = np.concatenate([short - p_s / at.p, -(missing - at.t / a * log_y)])
        dx, dq = system.step(top, bottom)
        dp, dy = dq[: problem.n_rows], dq[problem.n_rows :]
        dz = (x_z - at.z * dx) / at.x
        ds = (p_s - at.s * dp) / at.p
        dt = -at.t / a * (log_y + dy / at.y)
        return State(dx, ds, dp, dz, dt, dy)

    now = products * unit
    mu = float(np.exp(np.log(np.maximum(products, 1e-300)).mean()))
    turn = np.clip(bent, -_TURN, _TURN)
    if waiting or np.abs(bent).max() > 1.0:  # on the way to the right money for everybody: stay in the middle
        target = np.clip(max(mu, 0.1) / 2, products / _SPREAD, products * _SPREAD) * unit
        step = direction(target - now, turn)
        return _move(problem, at, step, bent)
    ahead = direction(-now, turn)
    reach = min(1.0, _room(at, ahead))
    left = np.concatenate([(at.x + reach * ahead.x) * (at.z + reach * ahead.z), (at.p + reach * ahead.p) * (at.s + reach * ahead.s)])
    sigma = float(np.clip((left / unit).sum() / products.sum(), 1e-2, 1.0)) ** 3
    if reach < 0.1:
        sigma = max(sigma, 0.3)
    target = np.clip(sigma * mu, sigma * products / _SPREAD, sigma * products * _SPREAD) * unit
    bend = np.clip(-0.5 * a * (ahead.t / at.t) ** 2, -1.0, 0.0) + np.clip(-0.5 * (ahead.y / at.y) ** 2, -1.0, 0.0)
    second = np.concatenate([ahead.x * ahead.z, ahead.p * ahead.s])
    step = direction(target - now - reach**2 * second, turn + reach**2 * bend)
    if _room(at, step) < 0.1:  # the correction was too much: go for the middle only
        step = direction(np.clip(0.5 * mu, products / _SPREAD, products * _SPREAD) * unit - now, turn)
    return _move(problem, at, step, bent)


def _move(problem: AlphaFairProblem, at: State, step: State, bent: FloatArray) -> State:
    """Go most of the way to the boundary, and not so far that logarithms are no longer about linear."""
    length = min(1.0, _BOUNDARY * _room(at, step))
    size = np.abs(bent)
    allowed = np.maximum(_BENT, size)
    for _ in range(60):
        after = bent + np.log1p(length * step.y / at.y) + problem.alpha * np.log1p(length * step.t / at.t)
        if (np.abs(after) <= allowed).all():
            break
        length *= 0.8
    return State(*(getattr(at, name) + length * getattr(step, name) for name in State.__slots__))


def _room(at: State, step: State) -> float:
    """Return the multiple of the step at which something becomes 0."""
    room = np.inf
    for name in State.__slots__:
        ratio = -getattr(step, name) / getattr(at, name)
        room = min(room, 1.0 / max(float(ratio.max(initial=0.0)), 1e-300))
    return float(room)
