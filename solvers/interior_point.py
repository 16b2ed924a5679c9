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
_GOAL = 1e-17  # relative products: a degenerate pair is as far off as the root of it
_CLOSE = 1e-11  # residuals of the linear equations, relative
_STALLED = 12  # steps without progress after which floating point is exhausted
_BOUNDARY = 0.9995  # part of the way to the boundary
_FAR = 4.0  # largest factor of a step in t or y while the conditions in logarithms are not linear yet


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
        return problem.solution(x, p, steps)


def start(problem: AlphaFairProblem) -> State:
    """Return half an even slice of every limit, and prices at which every pair costs at least twice its worth."""
    A = problem.A.tocoo()
    sharers = np.diff(problem.A.indptr)
    x = np.full(problem.v.size, np.inf)
    np.minimum.at(x, A.col, 0.5 / (A.data * sharers[A.row]))
    t = problem.utility(x)
    y = problem.worth(t)
    p = np.full(problem.n_rows, 0.0)
    # In every column some limit has a coefficient of 1 (the pair's largest number of tasks fills it): that one pays.
    np.maximum.at(p, A.row, np.where(A.data > 1 - 1e-9, 2 * (problem.v * y[problem.user])[A.col], 0.0))
    floor = 1e-3 * problem.money_of_limits(x, y * t)
    p = np.maximum(p, floor)
    z = problem.At @ p - problem.v * y[problem.user]
    return State(x, 1.0 - problem.A @ x, p, np.maximum(z, 0.5 * problem.v * y[problem.user]), t, y)


def follow(problem: AlphaFairProblem, at: State, deadline: Deadline) -> tuple[FloatArray, FloatArray, int]:
    """Return tasks, prices (in the problem's units) and the number of steps."""
    best, best_error, since = at, np.inf, 0
    for step in range(_STEPS):
        if deadline.left == 0.0:
            raise deadline.passed({"steps": step})
        money = at.y * at.t
        of_pair, of_limit = money[problem.user], problem.money_of_limits(at.x, money)
        mu_pair, mu_limit = at.x * at.z / of_pair, at.p * at.s / of_limit
        short, missing, unpaid, bent = problem.residuals(at)
        linear = max(
            float(np.abs(short).max(initial=0.0)),
            float((np.abs(missing) / at.t).max()),
            float((np.abs(unpaid) / (problem.v * at.y[problem.user] + at.z)).max()),
            float(np.abs(bent).max()),
        )
        mu = float((mu_pair.sum() + mu_limit.sum()) / (mu_pair.size + mu_limit.size))
        worst = max(float(mu_pair.max()), float(mu_limit.max()))
        error = max(worst, linear * 1e-3)
        log.debug("step %d: mu %.1e, worst %.1e, residual %.1e", step, mu, worst, linear)
        if error < 0.5 * best_error:
            since = 0
        else:
            since += 1
        if error < best_error:
            best, best_error = at, error
        if (worst <= _GOAL and linear <= _CLOSE) or (since > _STALLED and best_error < 1e-9) or since > 60:
            break
        at = _step(problem, at, mu, of_pair, of_limit, (short, missing, unpaid, bent))
    return best.x, best.p, step


def _step(
    problem: AlphaFairProblem,
    at: State,
    mu: float,
    of_pair: FloatArray,
    of_limit: FloatArray,
    residuals: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> State:
    """Predict, choose the target, correct."""
    short, missing, unpaid, bent = residuals
    a = problem.alpha
    system = Newton(problem, at.z / at.x, np.concatenate([at.s / at.p, at.t / (a * at.y)]), Newton.nearly_worth_it(problem, at))

    def direction(x_z: FloatArray, p_s: FloatArray, log_y: FloatArray) -> State:
        """Newton's step to the products x z + x_z, p s + p_s and log y t^alpha - log_y."""
        top = unpaid + x_z / at.x
        bottom = np.concatenate([short - p_s / at.p, -(missing - at.t / a * log_y)])
        dx, dq = system.step(top, bottom)
        dp, dy = dq[: problem.n_rows], dq[problem.n_rows :]
        dz = (x_z - at.z * dx) / at.x
        ds = (p_s - at.s * dp) / at.p
        dt = -at.t / a * (log_y + dy / at.y)
        return State(dx, ds, dp, dz, dt, dy)

    ahead = direction(-at.x * at.z, -at.p * at.s, bent)
    reach = min(1.0, _room(at, ahead))
    mu_ahead = float(
        (
            ((at.x + reach * ahead.x) * (at.z + reach * ahead.z) / of_pair).sum()
            + ((at.p + reach * ahead.p) * (at.s + reach * ahead.s) / of_limit).sum()
        )
        / (of_pair.size + of_limit.size)
    )
    sigma = float(np.clip((mu_ahead / mu) ** 3, 1e-6, 1.0))
    if reach < 0.1:
        sigma = max(sigma, 0.3)
    target = sigma * mu
    # Products far below the target are not raised all the way: that would cost more than it gains.
    pair, limit = at.x * at.z, at.p * at.s
    weight = reach**2
    bend = np.zeros_like(bent)
    for product in (
        -0.5 * a * (ahead.t / at.t) ** 2,
        -0.5 * (ahead.y / at.y) ** 2,
    ):
        bend += np.clip(product, -1.0, 1.0)
    step = direction(
        target * of_pair - pair - weight * ahead.x * ahead.z,
        target * of_limit - limit - weight * ahead.p * ahead.s,
        bent + weight * bend,
    )
    length = min(1.0, _BOUNDARY * _room(at, step))
    if length < 0.1:  # the correction was too much: go for the center only
        step = direction(0.5 * mu * of_pair - pair, 0.5 * mu * of_limit - limit, bent)
        length = min(1.0, _BOUNDARY * _room(at, step))
    grown = max(float((step.t / at.t).max()), float((step.y / at.y).max()))
    if grown * length > _FAR:
        length = _FAR / grown
    return State(*(getattr(at, name) + length * getattr(step, name) for name in State.__slots__))


def _room(at: State, step: State) -> float:
    """Return the multiple of the step at which something becomes 0."""
    room = np.inf
    for name in State.__slots__:
        ratio = -getattr(step, name) / getattr(at, name)
        room = min(room, 1.0 / max(float(ratio.max(initial=0.0)), 1e-300))
    return float(room)
