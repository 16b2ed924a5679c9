"""The polish of a leximin: from levels known nearly to the last digit to a solution of their equations that is exact to rounding.

For a user that pays a millionth of what others pay for the same limits, the rounding errors of others are a million times as large, and
with many levels, each level inherits the rounding errors of all levels before. The active sets are right much earlier: the full limits, the
used pairs and the users of each level. With these sets fixed, x and the levels t[k] solve linear equations, of all levels at once,

    A x = b on limits with a price,    U[n]/phi[n] = t[k] for users n of level k,    x = 0 on pairs dearer than others of their user.

Levels of finish times, 1 / (1 / z[n] + delay[n]) with z = U / phi, are linear to second order: a change of 1 / t by -h changes z[n] by
h z[n] in parts of itself, and t is measured by the largest z of the level.

Placements are seldom unique, and the equations may be dependent. The correction dx, dt has the least sum of (dx/x)^2 and (dt/t)^2, so that
small holdings move little (`fairopt.solvers.leximin.least_change`). A few steps of iterative refinement remove the effect of the small
multiple of the identity there. The certificate decides whether the answer is better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import FITS, ROUNDING
from fairopt.program import Program, Solution, Stage
from fairopt.program.own_limits import OwnLimits
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.least_change import LeastChange, change_of_least
from fairopt.solvers.leximin.least_prices import with_least_prices
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["levels_on", "on_levels", "polish", "polishes", "with_other_prices"]


def polishes(program: Program, solution: Solution, delay: FloatArray | None = None) -> Iterator[Solution]:
    """Yield solutions near this one that satisfy the equations of its levels; first levels that differ by rounding are joined, then by
    more. Each of them comes first with the prices of this one, then with exact prices, then on the pairs that are cheapest at these.

    An error of a level within the solver's tolerance is a thousand times as large for a user that pays little of its cost.
    """
    for same in SETTINGS.same:
        near = polish(program, solution, same, delay)
        yield near
        if delay is None and near is not solution:
            exact = _with_exact_prices(program, near)
            yield exact
            cheapest = _on_cheapest(program, exact)
            if cheapest is not None:
                yield polish(program, cheapest, same)


def with_other_prices(program: Program, solution: Solution, deadline: Deadline) -> Iterator[Solution]:
    """Yield polished solutions with the least prices that prove their levels, in the order of `polishes`."""
    for same in SETTINGS.same:
        least = with_least_prices(program, polish(program, solution, same), deadline)
        if least is not None:
            yield least


def polish(program: Program, solution: Solution, same: float = SETTINGS.same[0], delay: FloatArray | None = None) -> Solution:
    """Return the solution near this one that satisfies the equations of its levels; this one if they cannot be solved.

    Levels that differ by less than this part are the ``same``. With a ``delay``, (users,), they are those of finish times, and their
    prices are exact.
    """
    found = _on_levels(program, solution, same, delay)
    if found is None:
        return solution
    x, told = found
    if delay is not None:
        z = program.per_user(x * program.worth)
        told = np.array([(z / (1 + delay * z))[each.users].min() for each in solution.stages])
    stages = tuple(
        replace(each, value=float(value), prices=_priced(program, each)) for each, value in zip(solution.stages, told, strict=True)
    )
    near = replace(solution, x=x, stages=stages)
    return near if delay is None else _with_exact_prices(program, near)


def levels_on(program: Program, solution: Solution, rising: BoolArray) -> FloatArray | None:
    """Return the levels that satisfy these equations, (users,), nan of users who are in no stage; None if they cannot be solved."""
    found = _on_levels(program, solution, SETTINGS.same[0], None, rising)
    if found is None:
        return None
    levels = np.full(len(program.users), np.nan)
    for stage, level in zip(solution.stages, found[1], strict=True):
        levels[stage.users] = level
    return levels


def on_levels(program: Program, solution: Solution, rising: BoolArray, delay: FloatArray | None = None) -> FloatArray | None:
    """Return the x, (pairs,), with which all but the users who rise satisfy the equations of the levels so far, as `polish`.

    None if they cannot be solved. Who rises pays nothing at these levels, keeps what it has on pairs that are not dear, and takes no part.
    """
    found = _on_levels(program, solution, SETTINGS.same[0], delay, rising)
    return None if found is None else found[0]


def _on_levels(
    program: Program, solution: Solution, same: float, delay: FloatArray | None, rising: BoolArray | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Return x, (pairs,), and the levels of the stages; None if the equations cannot be solved."""
    if not solution.stages:
        return None
    per_level = program.worth
    levels = program.per_user(solution.x * per_level)
    used, full = _sets(program, solution, per_level, levels)
    told = np.array([each.value for each in solution.stages])
    order = np.argsort(told, kind="stable")
    level_of = np.zeros(told.size, np.int64)  # of each stage; those that rounding tells apart are one level
    level_of[order] = np.append(0, np.cumsum(np.diff(told[order]) > same * told[order][1:]))
    values = told[order][np.flatnonzero(np.diff(level_of[order], prepend=-1))]
    stage = np.full(levels.size, -1)  # the level of each user; who is in none is at its cap, or keeps what it has
    for k, each in enumerate(solution.stages):
        stage[each.users] = level_of[k]

    at_caps, used = _at_caps(program, levels, stage, used)

    # Every row in parts of its right-hand side: A x / b = 1, then U / (phi t) = t' for users of a level, 1 for the others.
    takes_part = levels > 0 if rising is None else (levels > 0) & ~rising
    pairs, rows, users = np.flatnonzero(used & takes_part[program.pair_users]), np.flatnonzero(full), np.flatnonzero(takes_part)
    aim = (np.where(stage >= 0, values[stage], at_caps) if delay is None else _on_one_level(at_caps, levels, stage, delay))[users]
    limits = program.limits.matrix[rows][:, pairs] / program.limits.bounds[rows][:, None]
    by_user = sp.csr_array((per_level[pairs], (program.pair_users[pairs], np.arange(pairs.size))), (levels.size, pairs.size))
    E = sp.csr_array(sp.vstack([limits, by_user[users] / aim[:, None]]))
    levelled = np.flatnonzero(stage[users] >= 0)
    follows = np.ones(levelled.size)  # how far U moves with t, both in parts of themselves
    if delay is not None:
        longest = np.zeros(values.size)
        np.maximum.at(longest, stage[users[levelled]], aim[levelled])
        follows = aim[levelled] / longest[stage[users[levelled]]]
    B = sp.csr_array((follows, (rows.size + levelled, stage[users[levelled]])), (E.shape[0], values.size))
    fixed = np.ones(E.shape[0])
    fixed[rows.size + levelled] = 1 - follows

    x, t, size = solution.x[pairs], np.ones(values.size), solution.x[pairs]
    system = LeastChange.of(sp.csr_array(E * size), B)
    if system is None:
        return None
    for _ in range(SETTINGS.refinements):
        change, of_levels = system.step(fixed + B @ t - E @ x)
        x, t = np.maximum(x + size * change, 0.0), t + of_levels
    answer = np.where(used, solution.x, 0.0)
    answer[pairs] = x
    return (answer, (t * values)[level_of]) if np.isfinite(answer).all() else None


def _at_caps(program: Program, levels: FloatArray, stage: IntArray, used: BoolArray) -> tuple[FloatArray, BoolArray]:
    """Return the levels of all, (users,), with exactly its cap for each user in no stage who has nearly that; and which pairs remain used.

    Caps are those over the pairs that are used: a limit of its own may stop a user on slow servers, as others have the fast ones. A user at
    its cap has nothing on pairs that take more of it for a unit of level. Its equations contradict each other where a speck that
    a solver left there is too small to change.
    """
    if (stage >= 0).all():
        return levels, used
    own = OwnLimits(program, program.worth)
    cap, which = own.caps(used)
    at_cap = (stage < 0) & np.isfinite(cap) & (levels >= cap * (1 - FITS))
    slower = (which[own.users[own.row]] == own.row) & at_cap[own.users[own.row]]
    slower &= own.bounds[own.row] * own.worth < cap[own.users[own.row]] * (1 - ROUNDING)
    used = used.copy()
    used[own.pair[slower]] = False
    return np.where(at_cap, cap, levels), used


def _on_one_level(at_caps: FloatArray, levels: FloatArray, stage: IntArray, delay: FloatArray) -> FloatArray:
    """Return the z of all, (users,): those of a level come to that of its user with the largest z."""
    aim = at_caps.copy()
    for k in range(int(stage.max(initial=-1)) + 1):
        users = np.flatnonzero(stage == k)
        first = users[levels[users].argmax()]
        left = 1 / levels[first] + (delay[first] - delay[users])
        aim[users] = np.divide(1.0, left, out=levels[users], where=left > 0)
    return aim


def _priced(program: Program, stage: Stage) -> FloatArray:
    """Return the prices of a level without those that are noise: on a limit that is far from full they would count as waste."""
    assert stage.prices is not None
    worth = np.abs(stage.prices) * program.limits.bounds
    return np.where(worth > SETTINGS.priced * worth.sum(), stage.prices, 0.0)


def _with_exact_prices(program: Program, solution: Solution) -> Solution:
    pairs, per_level = np.flatnonzero(solution.x > 0), program.worth
    stages = []
    for each in solution.stages:
        assert each.prices is not None
        stages.append(replace(each, prices=_exact_prices(program, pairs, per_level, each.prices)))
    return replace(solution, stages=tuple(stages))


def _on_cheapest(program: Program, solution: Solution) -> Solution | None:
    """Return a solution without the pairs that cost their user more than its cheapest ones; None if all pairs are as cheap.

    Prices have to be exact: what a user who pays a millionth of what others pay has on a dear pair hardly shows in what all pay.
    """
    per_level, used = program.worth, solution.x > 0
    levels, there = program.per_user(solution.x * per_level), np.flatnonzero(used)
    dear = np.zeros(used.size, bool)
    for each in solution.stages:
        assert each.prices is not None
        cost = np.asarray(program.limits.transposed @ each.prices) / per_level
        q = program.cheapest(cost[there], there)
        pays = (q > 0) & (levels >= each.value * (1 - FITS))
        dear |= used & pays[program.pair_users] & (cost > q[program.pair_users] * (1 + SETTINGS.same_price))
    return replace(solution, x=np.where(dear, 0.0, solution.x)) if dear.any() else None


def _exact_prices(program: Program, pairs: IntArray, per_level: FloatArray, prices: FloatArray) -> FloatArray:
    """Return the prices near these at which all of these pairs of a user that are not dear cost the same for a unit of its level.

    A user that pays 10^-10 of what another pays on the same limits is proved to be stopped only by prices exact to rounding.
    """
    cost = np.asarray(program.limits.transposed @ prices) / per_level
    q = program.cheapest(cost[pairs], pairs)[program.pair_users]
    pairs = pairs[(q[pairs] > 0) & (cost[pairs] <= q[pairs] * (1 + SETTINGS.same_price))]
    rows, users = np.flatnonzero(prices > 0), np.unique(program.pair_users[pairs])
    if not pairs.size:
        return prices
    of_user = np.searchsorted(users, program.pair_users[pairs])
    paid = np.concatenate([prices[rows], q[pairs][np.unique(of_user, return_index=True)[1]]])
    E = sp.hstack(
        [
            sp.csr_array(program.limits.transposed[pairs][:, rows]) / per_level[pairs][:, None],
            -sp.csr_array((np.ones(pairs.size), (np.arange(pairs.size), of_user)), (pairs.size, users.size)),
        ],
        format="csr",
    )
    E = sp.csr_array(E / q[pairs][:, None])
    change = change_of_least(sp.csr_array(E * paid))
    if change is None:
        return prices
    exact = paid.copy()
    for _ in range(SETTINGS.refinements):
        exact += paid * change(-(E @ exact))
    if not (np.isfinite(exact).all() and (exact > 0).all()):
        return prices
    found = prices.copy()
    found[rows] = exact[: rows.size]
    return found


def _sets(program: Program, solution: Solution, per_level: FloatArray, levels: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return which pairs are used, (pairs,), and which limits have a price at some level, (limits,)."""
    full = np.zeros(len(program.limits), bool)
    used = solution.x * per_level > SETTINGS.part_of_level * levels[program.pair_users]
    settled = np.zeros(levels.size, bool)
    for stage in solution.stages:
        assert stage.prices is not None
        prices = np.maximum(stage.prices, 0.0)
        cost = (program.limits.matrix.T @ prices) / per_level
        there = np.flatnonzero(used)  # among these alone: what lower levels have closed may be cheap
        q = program.cheapest(cost[there], there)
        spent = float(prices @ program.limits.bounds)
        level = np.minimum(levels, stage.value)[program.pair_users]
        used &= settled[program.pair_users] | ((cost - q[program.pair_users]) * level <= SETTINGS.dear * spent)
        settled[stage.users] = True
        full |= prices * program.limits.bounds > SETTINGS.priced * spent
    return used, full
