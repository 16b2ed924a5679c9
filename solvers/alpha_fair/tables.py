"""Alpha-fair goals of few limits or few users. Most of many users are assigned to one server; the path is for users split across servers.

In the units of `fairopt.solvers.structure.scaling` and the symbols of `fairopt.solvers.alpha_fair.table_path`: a user has
t = (phi / y)^(1 / alpha) at its lowest cost, y = min_i c[i,n], and buys where it costs that. So the prices determine everything except
where users buy to whom several servers cost the same, and near the right prices nearly every user's server is known.

Where each server has one limit (its time, or one resource), all users who buy at server i alone are, together, one user:

    sum_n Q[i,n] t[n] = p^(-1 / alpha) sum_n (phi[n] Q[i,n]^(alpha - 1))^(1 / alpha).

So a large program is solved for a sample of its users first. At the sample's prices, every user is assigned to its cheapest server, except
users for whom another server is nearly as cheap: these stay as they are, and the others become one user a server. How many users stay
follows from the spending that the prices misplace: if every user bought at its cheapest server, some limits would sell too much and some
too little. The relative cost of the second server of the last of these users tells how accurate the prices are, and so where to join the
path. The first paths end early, since at better prices fewer users stay. At the last prices all users are asked again: users who prefer
another server than theirs join those who stay, until there are none. What assigned users have is exact, at any accuracy of the prices.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import AlphaFair, LimitKind, Program, Solution
from fairopt.solvers.alpha_fair.problem import LARGEST_LOG
from fairopt.solvers.alpha_fair.table_path import PathEnd, walk
from fairopt.solvers.alpha_fair.table_start import Near
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structure.arrays import Arrays
from fairopt.solvers.structure.scaling import ScaledProgram, obstacle
from fairopt.solvers.structure.user_tables import UserTables

__all__ = ["fits", "solve_alpha_fair"]

log = logging.getLogger(__name__)

_DENSE_SIDE = 1000  # users or limits, whichever are fewer, at most: the size of the dense system
_DENSE = 0.05  # part of the pairs that is eligible at least
_SAMPLE = 10_000  # users at most, and a tenth of all
_MANY = 8_000  # users from which on a sample comes first
_ROUGH = 1e-3  # error of the first prices, of the sample and of the first aggregated program
_MORE = 3.0  # times the part of the money that prices misplace: part of the users who stay as they are
_FEWEST = 500  # users who stay: fewer are not faster
_CLEAR = 1e-6  # part of the cost by which another server must cost more for assigned users, at the end
_FAR = 0.3  # relative error of prices from which on they are no place to join the path
_ROUNDS = 8
_STOPPED = 1e-12  # relative: a user with so little less than its cap is stopped by it
_NO_ROOM = 1e-10  # part of a limit
_GOOD = 1e-9


def fits(program: Program) -> bool:
    """Does the program fit into tables: no slices, limits on tasks that cap utilities, few limits or few users, many eligible pairs?"""
    limits, users = program.limits, len(program.users)
    shorter = int(limits.of_servers.sum())
    if not (limits.kinds == LimitKind.TASKS).any():  # capped users are always eliminated
        shorter = min(shorter, users)
    few = shorter <= _DENSE_SIDE and program.n_pairs >= _DENSE * users * len(program.servers)
    return few and not obstacle(program)


def solve_alpha_fair(program: Program, goal: AlphaFair, arrays: Arrays, deadline: Deadline) -> Solution | None:
    """Return the alpha-fair allocation; None where the path got lost.

    Raises
    ------
    NoSolution
        At the deadline.
    Unsupported
        Where the program does not fit into the layout of `ScaledProgram`.
    """
    scaled = ScaledProgram.of(program)
    if not scaled.n_pairs:
        return Solution(np.zeros(program.n_pairs), prices=np.zeros(len(program.limits)), programs_solved=0)
    users = _tables(scaled, goal, arrays)
    # Where users are few, or resources several, users divide their money among many servers: the balanced path takes half the steps.
    scattered, capped = users.n_columns < users.used.sum() or users.take.shape[0] > 1, users.log_cap is not None
    for balanced in (False,) if capped else (scattered, not scattered):  # where one way gets lost, the other one may not
        samples = not balanced and users.n_columns >= _MANY and users.take.shape[0] == 1 and not capped
        found = _by_sample(users, deadline) if samples else None
        if found is None:
            joined, unit = users.joined()
            found = walk(joined, deadline, balanced=balanced)
            found = None if found is None else replace(found, v=found.v / unit)
        solution = None if found is None else _solution(scaled, users, _with_room_used(users, found))
        if solution is not None:
            return solution
    return None


def _solution(scaled: ScaledProgram, users: UserTables, found: PathEnd) -> Solution | None:
    """Return the end of a path in the units of the program, None where it is not exact."""
    error = _kkt_violation(users, found)
    log.info("%d steps, KKT violation %.1e", found.steps, error)
    v = users.arrays.numpy(found.v)
    x = (v[scaled.server, scaled.user] if not scaled.all_eligible else v.T.ravel()) / scaled.W
    if not error <= _GOOD or not (scaled.sum_by_user(x * scaled.W) > 0).all():
        return None
    with np.errstate(divide="ignore"):
        log_price, log_of_tasks = np.log(found.p) + found.log_unit, _log_task_prices(users, found)
    highest = max(float(log_price.max(initial=0.0)), float(log_of_tasks.max(initial=0.0)))
    unit = max(0.0, highest - LARGEST_LOG)  # true multipliers, unless they are beyond floating point: then in parts of the largest
    prices = scaled.prices(np.exp(log_price - unit), np.empty(0))
    of_tasks = np.exp(log_of_tasks - unit)
    capped = np.flatnonzero(of_tasks)
    prices[scaled.task_row[capped]] = of_tasks[capped] / scaled.program.limits.bounds[scaled.task_row[capped]]
    return Solution(scaled.tasks(x), prices=prices, iterations=found.steps)


def _tables(scaled: ScaledProgram, goal: AlphaFair, arrays: Arrays) -> UserTables:
    """Lay out the pairs as tables, users last."""
    n, k, m = scaled.n_users, scaled.n_servers, scaled.n_slots
    values = scaled.A / scaled.W
    if scaled.all_eligible:
        take, may = values.reshape(m, n, k).transpose(0, 2, 1), np.ones((k, n), bool)
    else:
        take, may = np.zeros((m, k, n)), np.zeros((k, n), bool)
        take[:, scaled.server, scaled.user] = values
        may[scaled.server, scaled.user] = True
    log_phi = np.log(goal.weights[scaled.member]) + (1 - goal.alpha) * np.log(scaled.reach)
    used = np.zeros((m, k), bool)
    used[scaled.row_slot, scaled.row_server] = True
    # A user whose cap is beyond its reach, 1, has none.
    log_cap = np.where(scaled.cap <= 1 + _STOPPED, np.log(scaled.cap), np.inf)
    caps = arrays.floats(log_cap) if np.isfinite(log_cap).any() else None
    return UserTables(arrays, arrays.floats(take), arrays.booleans(may), arrays.floats(log_phi), goal.alpha, used, caps)


def _with_room_used(users: UserTables, found: PathEnd) -> PathEnd:
    """Return the point with its room used: every pair grows by as much as the fullest limit that it uses allows.

    A limit that takes a small part of its users' money ends with a slack s = mu m / p, which is little money, but may be much room. Pairs
    that cannot grow leave it to the others.
    """
    xp = users.arrays.xp
    fullest = users.fullest(users.use(found.v))
    v = found.v / xp.where(fullest > 1, fullest, 1.0)  # rounding
    for _ in range(_ROUNDS):
        use, tasks = users.use(v), users.tasks(v)
        room = 1 - xp.where(users.may, xp.maximum(users.fullest(use), tasks), 1.0)
        if float(xp.max(room)) <= _NO_ROOM:
            break
        growing = xp.where(room > _STOPPED, v, 0.0)
        more, own = users.use(growing), users.tasks(growing)
        left = np.divide(more, 1 - use + more, out=np.zeros_like(more), where=more > 0)
        part = xp.maximum(users.fullest(left), own / (1 - tasks + xp.where(own > 0, own, 1.0)))
        v = v / xp.where((room > _STOPPED) & (part > 0), part, 1.0)
    return replace(found, v=v)


def _log_worth(users: UserTables, found: PathEnd) -> tuple[Any, Any]:
    """Return the logarithms of the marginal worth of each user, and of what it pays servers for a unit of utility, (users,).

    They differ where a limit on tasks stops the user.
    """
    xp = users.arrays.xp
    log_worth = users.log_phi - found.log_unit - users.alpha * xp.log(xp.sum(found.v, axis=0))
    if users.log_cap is None:
        return log_worth, log_worth
    log_price = xp.log(xp.min(users.cost(found.p), axis=0))
    return log_worth, xp.where(users.tasks(found.v) > 1 - _STOPPED, xp.minimum(log_price, log_worth), log_worth)


def _log_task_prices(users: UserTables, found: PathEnd) -> FloatArray:
    """Return logarithms of the prices of whole limits on tasks, (users,); -inf where there is no price."""
    if users.log_cap is None:
        return np.full(users.n_columns, -np.inf)
    log_worth, log_paid = (users.arrays.numpy(values) for values in _log_worth(users, found))
    with np.errstate(invalid="ignore"):
        beyond: FloatArray = log_worth + np.log(-np.expm1(log_paid - log_worth)) + users.arrays.numpy(users.log_cap) + found.log_unit
    return np.where(log_paid < log_worth, beyond, -np.inf)


def _kkt_violation(users: UserTables, found: PathEnd) -> float:
    """Return the largest violation of the KKT conditions: use beyond a limit, worth of a pair beyond its cost, wasted money of a user.

    Room that a pair has left, in all limits that it uses, counts as well, however little it is worth.
    """
    xp = users.arrays.xp
    use = users.use(found.v)
    idle = found.p * np.maximum(1 - use, 0.0)
    t = xp.sum(found.v, axis=0)
    log_worth, log_paid = _log_worth(users, found)
    worth = xp.exp(log_worth)
    excess = users.cost(found.p) / worth - xp.exp(log_paid - log_worth)
    overspent = xp.sum(found.v * xp.where(users.may & (excess > 0), excess, 0.0), axis=0) / t
    idle_part = xp.sum(found.v * users.of_prices(idle), axis=0) / (t * worth)
    room = 1 - float(xp.min(xp.where(users.may, xp.maximum(users.fullest(use), users.tasks(found.v)), 1.0)))
    return max(float((use - 1).max()), room, -float(xp.min(excess)), float(xp.max(overspent)), float(xp.max(idle_part)))


# A sample of users, then users assigned to servers --------------------------------------------------------------------------------


def _by_sample(users: UserTables, deadline: Deadline) -> PathEnd | None:
    """Return the solution for many users with one limit a server, by way of a sample of them; None where a path got lost."""
    n = users.n_columns
    every = max(10, n // _SAMPLE)
    sample = _subset(users, np.arange(every // 2, n, every))
    # The same limits for fewer users: at the same prices, each of them demands as much as the users that it stands for.
    sample = replace(sample, log_phi=sample.log_phi + users.alpha * float(np.log(n / sample.n_columns)))
    found = walk(sample, deadline, enough=_ROUGH)
    stays, assigned, steps, last = np.zeros(n, bool), np.zeros(n, np.int64), 0, False
    for number in range(_ROUNDS):
        if found is None:
            return None
        steps += found.steps
        cheapest, second = _cheapest_servers(users, found.p)
        if last:  # these prices are exact, unless a user was assigned to the wrong server
            joining = ~stays & ((second < 1 + _CLEAR) | (cheapest != assigned))
            if not joining.any():
                return _of_all_users(users, found, stays, assigned, steps)
            stays |= joining
        assigned, error = cheapest, _error_of_prices(users, found, cheapest, second)
        stays = (stays & last) | (second < 1 + error)
        last = number > 0 or bool(stays.all())
        log.info("%d of %d users are not assigned to a server, at prices known to %.1e", int(stays.sum()), n, error)
        found = _walk_on(_aggregated(users, stays, assigned), found, error, deadline, enough=0.0 if last else _ROUGH)
    return None


def _error_of_prices(users: UserTables, found: PathEnd, cheapest: IntArray, second: FloatArray) -> float:
    """Return how accurate prices are: the relative cost of the second server for the last user whom better prices may send there."""
    _, spent = _demands(users, found, np.arange(users.n_columns), cheapest)
    misplaced = np.abs(np.bincount(cheapest, weights=spent, minlength=found.p.shape[1]) - found.p[0])
    part = max(_MORE * float(misplaced.sum() / found.p.sum()), _FEWEST / second.size)
    return float(np.partition(second, int(part * second.size))[int(part * second.size)]) - 1 if part < 1 else np.inf


def _walk_on(users: UserTables, found: PathEnd, error: float, deadline: Deadline, enough: float) -> PathEnd | None:
    """Follow the path from prices with this error; from the beginning, where it is too large, or the path got lost."""
    on = walk(users, deadline, Near(found.p, found.log_unit, error), enough) if error < _FAR else None
    return walk(users, deadline, enough=enough) if on is None else on


def _cheapest_servers(users: UserTables, p: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the cheapest server of every user, and the cost of the second one relative to it."""
    xp = users.arrays.xp
    cost = users.cost(p)
    cheapest = xp.argmin(cost, axis=0)
    least = xp.min(cost, axis=0)
    here = xp.arange(cost.shape[0], device=users.arrays.device)[:, None] == cheapest
    others = xp.where(here, xp.asarray(xp.inf, dtype=xp.float64, device=users.arrays.device), cost)
    return users.arrays.numpy(cheapest), users.arrays.numpy(xp.min(others, axis=0) / least)


def _subset(users: UserTables, which: IntArray) -> UserTables:
    """Return the tables of some of the users."""
    arrays, xp = users.arrays, users.arrays.xp
    index = xp.asarray(which, device=arrays.device)
    take, may = xp.take(users.take, index, axis=2), xp.take(users.may, index, axis=1)
    used = arrays.numpy(xp.any(take > 0, axis=2))
    return replace(users, take=take, may=may, log_phi=xp.take(users.log_phi, index, axis=0), used=used)


def _aggregated(users: UserTables, stays: BoolArray, server: IntArray) -> UserTables:
    """Return the users who stay as they are, and one user for all others of each server."""
    arrays, xp = users.arrays, users.arrays.xp
    kept, assigned, a = _subset(users, np.flatnonzero(stays)), np.flatnonzero(~stays), users.alpha
    there = server[assigned]
    take, log_phi = arrays.numpy(users.take)[0][there, assigned], arrays.numpy(users.log_phi)[assigned]
    log_part = (log_phi + (a - 1) * np.log(take)) / a
    servers = np.unique(there)
    highest = np.full(users.used.shape[1], -np.inf)
    np.maximum.at(highest, there, log_part)
    total = np.bincount(there, weights=np.exp(log_part - highest[there]), minlength=highest.size)
    of_server = a * (np.log(total[servers]) + highest[servers])
    own = np.arange(users.used.shape[1])[:, None] == servers
    return replace(
        users,
        take=xp.concat([kept.take, arrays.floats(own[None])], axis=2),
        may=xp.concat([kept.may, arrays.booleans(own)], axis=1),
        log_phi=xp.concat([kept.log_phi, arrays.floats(of_server)], axis=0),
    )


def _of_all_users(users: UserTables, found: PathEnd, stays: BoolArray, server: IntArray, steps: int) -> PathEnd:
    """Return the end for all users: those who stay have what the path found, the others their demand at their server."""
    arrays = users.arrays
    v = np.zeros((users.used.shape[1], users.n_columns))
    v[:, stays] = arrays.numpy(found.v)[:, : int(stays.sum())]
    assigned = np.flatnonzero(~stays)
    v[server[assigned], assigned], _ = _demands(users, found, assigned, server[assigned])
    use = users.use(arrays.floats(v))
    v /= max(1.0, float(use.max()))  # rounding
    return replace(found, v=arrays.floats(v), steps=steps)


def _demands(users: UserTables, found: PathEnd, who: IntArray, server: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the demands of users who buy at one server each, and what they spend."""
    price = users.arrays.numpy(users.take)[0][server, who] * found.p[0, server]
    t: FloatArray = np.exp((users.arrays.numpy(users.log_phi)[who] - found.log_unit - np.log(price)) / users.alpha)
    return t, t * price
