r"""How far what users have moves if the conditions of an alpha-fair optimum hold only up to doubts: linear equations near an answer.

The unknowns are y[p], the change of the part u[p] x[p] / U[n] of what a user n has on its pair p, and the relative changes q[j] of prices
and m[n] of marginal worths. Near an answer the conditions of optimality are, with a small rho,

    sum_j a[j,p] q[j] - m[n] + rho y[p]  =  e[p]       for pairs p in use,     a[j,p] = A[j,p] price[j] / c[p]
    sum_p h[j,p] y[p] - rho q[j]         =  f[j]       for full limits j,      h[j,p] = A[j,p] U[n] / (u[p] b[j])
    sum_p y[p] + m[n] / alpha            =  0          for users n, in a trade-off with the elasticity in place of 1 / alpha.

e[p] is the doubt of the cost c[p], relative to it. f[j] is the part of limit j that is left, or that pairs take which should not be in use.
Each of them is at least a unit of rounding. A pair is in use if it costs its user as little as the pairs that this user has, up to doubts,
even if it holds nothing. For a user who is stopped by its own limit on tasks, 1 / alpha is replaced by 0, and c lacks the price of this
limit.

If a price is only a part a = 10^-20 of each cost, the other equations do not determine it. With rho it moves by up to e / rho, so it
counts as unknown. Placements that are not unique move as well, but no utility moves with them.

*Solution.* y[p] is counted in a unit s[p] <= 1 that fills a limit at most. For each user, bar a, bar h and bar e are means over its pairs,
with the weights s^2. Without y and m, a system of the limits is left,

    sum_p s^2 h (a - bar a)' q  +  rho (sum_n bar h bar a' / alpha + rho) q
        =  sum_p s^2 (h - bar h) e  +  rho (sum_n bar h bar e / alpha - f).

*Elasticities without bound.* In a trade-off, utilities of some users may follow prices without bound. The system of the limits is then
nearly singular. Of all q that solve the system up to rounding, the one with the least sum of squares is taken: a larger q would say how
several prices make up one cost, not what rounding hides.

The signs of doubts are not known. The figure is a multiple of the largest change m / alpha for some random signs. It estimates the distance
from the optimum, and proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fairopt.certificate.price_parts import EPSILON
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import TINY
from fairopt.program import AlphaFair, LimitKind, Program, Tradeoff

__all__ = ["FREE", "Doubts", "elasticity", "response"]

FREE = 1e6  # elasticity of a utility: rounding of marginal worths then changes it by `NOTHING`

_RHO = 1e-13  # the entries of the equations are 1 at most
_HARDLY = 1e-6  # part of what a user has, or of a cost, that hardly counts
_DOUBTS = 10.0  # a pair is in use up to so many times the largest doubt of the pairs that its user has
_SINGULAR = 1e-11  # part of the largest: a smaller number of the factorisation is rounding, where utilities follow prices without bound
_ROUNDED = 8.0  # units of rounding by which a worth from logarithms may be off
_MOST_LIMITS = 1_500  # the system of the limits is dense
_DENSE = 10_000_000  # numbers of a matrix of users and limits that may be dense
_SIGNS = 16  # random choices of the signs of all doubts
_MULTIPLE = 4.0  # of the largest change that these show: the figure


@dataclass(frozen=True, slots=True, eq=False)
class Doubts:
    """What pairs cost at an answer, and how well that is known.

    Attributes
    ----------
    prices : array (limits,)
    cost, chosen_by : arrays (pairs,)
        With and without the prices of limits on the tasks of users to whom a task is worth the same everywhere.
    beyond : array (pairs,)
        What a pair costs beyond the cheapest way to be worth as much.
    doubt : array (pairs,)
        The same, with a unit of rounding where a user may choose.
    near : bool array (pairs,)
        Which pairs hold something, and are nearly the cheapest or hold a part of what their user has that counts.
    full : bool array (limits,)
        Which limits are full, without those whose prices ``chosen_by`` lacks.
    stopping : bool array (limits,)
        Which limits with a price ``chosen_by`` lacks.
    """

    prices: FloatArray
    cost: FloatArray
    chosen_by: FloatArray
    beyond: FloatArray
    doubt: FloatArray
    near: BoolArray
    full: BoolArray
    stopping: BoolArray


def response(program: Program, goal: AlphaFair | Tradeoff, x: FloatArray, doubts: Doubts, most: float = FREE) -> float:
    """Return the largest relative change of what a user has; 1 if there are too many limits, or if the equations are singular.

    Elasticities count as ``most`` at most. Beyond `FREE`, the changes of prices with the least sum of squares count: others change no cost.
    """
    limits, users, worth = program.limits, program.pair_users, program.utilities
    level = program.per_user(worth * x)
    in_use = _in_use(program, worth * x > _HARDLY * level[users], doubts)
    pairs, rows = np.flatnonzero(in_use), np.flatnonzero(doubts.full & (doubts.prices > 0))
    if not pairs.size or not rows.size:
        return 0.0
    if rows.size > _MOST_LIMITS:
        return 1.0
    flexible = np.minimum(elasticity(goal, level), most)
    flexible[limits.keys[doubts.stopping & (limits.kinds == LimitKind.TASKS), 0]] = 0.0
    number, owner = np.unique(users[pairs], return_inverse=True)
    flexible, n_pairs = flexible[number], pairs.size
    A, bounds, cost = limits.matrix[rows], limits.bounds[rows], doubts.chosen_by[pairs]
    one_over = np.divide(1.0, cost, out=np.zeros(n_pairs), where=cost > 0)
    of_limits = sp.csr_array(sp.diags_array(1 / bounds) @ A)
    h = sp.csr_array((of_limits[:, pairs] @ sp.diags_array(level[users[pairs]] / worth[pairs])).T)
    a = sp.csr_array((sp.diags_array(doubts.prices[rows]) @ A[:, pairs] @ sp.diags_array(one_over)).T)
    noise = doubts.beyond[pairs] * one_over + EPSILON
    left = np.abs(limits.used(x)[rows] / bounds - 1) + of_limits @ np.where(in_use, 0.0, x) + EPSILON
    square = 1 / np.maximum(np.asarray(h.max(axis=1).todense()).ravel(), 1.0) ** 2  # s^2
    weight = square / np.bincount(owner, weights=square)[owner]
    mean = sp.csr_array((weight, (owner, np.arange(n_pairs))), shape=(number.size, n_pairs))
    bar_a, bar_h = mean @ a, mean @ h
    moves = sp.csr_array((sp.diags_array(square) @ h).T)
    elastic = sp.csr_array((sp.diags_array(flexible) @ bar_h).T)
    first = np.unique(owner, return_index=True)[1]
    apart = sp.csr_array(a - a[first[owner]])  # from the first pair of the user: few numbers, and 0 to the last bit where pairs agree
    of_users = sp.csr_array(moves @ sp.csr_array((np.ones(n_pairs), (np.arange(n_pairs), owner)), shape=(n_pairs, number.size)))
    K = (moves @ apart).toarray() - _product(of_users, mean @ apart) + _RHO * _product(elastic, bar_a)
    K[np.diag_indices_from(K)] += _RHO**2
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_SIGNS, n_pairs + rows.size))
    signs[0] = 1.0
    e, f = (signs[:, :n_pairs] * noise).T, (signs[:, n_pairs:] * left).T
    bar_e = mean @ e
    right = moves @ (e - bar_e[owner]) - _RHO * f
    if most > FREE:
        bar_e = bar_e + np.sign(bar_e) * _missed(program, goal, level, doubts, x)[number, None]
    right += _RHO * (elastic @ bar_e)
    size = np.maximum(np.abs(K).max(axis=1), TINY)
    try:
        if most <= FREE:
            change = np.linalg.solve(K / size[:, None], right / size[:, None])
        else:
            from scipy.linalg import lstsq  # only here: small commands load no more than they need

            change = lstsq(K / size[:, None], right / size[:, None], cond=_SINGULAR, lapack_driver="gelsy")[0]
    except np.linalg.LinAlgError:
        return 1.0
    moved = _MULTIPLE * flexible[:, None] * np.abs(bar_a @ change - bar_e)
    return min(float(moved.max(initial=0.0)), 1.0) if np.isfinite(moved).all() else 1.0


def _missed(program: Program, goal: AlphaFair | Tradeoff, level: FloatArray, doubts: Doubts, x: FloatArray) -> FloatArray:
    """Return by what part the least cost of a unit of utility and its worth differ for each user, beyond rounding, (users,)."""
    has = level > 0
    least, held = np.full(level.size, np.inf), x > 0
    np.minimum.at(least, program.pair_users[held], doubts.cost[held] / program.utilities[held])
    log_worth = goal.log_worth(level)
    worth = np.where(has, np.exp(log_worth - log_worth[has].max()), 1.0)
    unit = float(least[has] @ level[has]) / float(worth[has] @ level[has])
    missed = np.abs(least / np.maximum(worth * unit, TINY) - 1)
    return np.where(has & np.isfinite(missed), np.maximum(missed - _ROUNDED * EPSILON, 0.0), 0.0)


def _product(left: sp.csr_array, right: sp.csr_array) -> FloatArray:
    """Return the product of limits by users and users by limits, which are mostly full where users are on many servers."""
    dense = left.shape[0] * left.shape[1] <= _DENSE
    return np.asarray(left.toarray() @ right.toarray() if dense else (left @ right).toarray())


def _in_use(program: Program, held: BoolArray, doubts: Doubts) -> BoolArray:
    """Return which pairs are as cheap for their users as those that are ``held``, up to the doubts of these, (pairs,)."""
    part = np.divide(doubts.beyond, doubts.chosen_by, out=np.zeros(held.size), where=doubts.chosen_by > 0)
    cheap = held & (part <= _HARDLY)
    noise = np.zeros(len(program.users))
    np.maximum.at(noise, program.pair_users[cheap], part[cheap])
    return (program.largest() > 0) & (part <= np.minimum(_DOUBTS * (noise + EPSILON), _HARDLY)[program.pair_users])


def elasticity(goal: AlphaFair | Tradeoff, level: FloatArray) -> FloatArray:
    """Return the relative change of each utility for one of its marginal worth, (users,); 0 for users who have nothing.

    At a given worth of the total in a trade-off. It is 1 / `EPSILON` at most: then a unit of rounding may be all that a user has.
    """
    own = np.log(goal.weights) - goal.power * np.log(np.where(level > 0, level, 1.0))
    fall = goal.power * np.exp(own - goal.log_worth(level))
    return np.where(level > 0, 1 / np.maximum(fall, EPSILON), 0.0)
