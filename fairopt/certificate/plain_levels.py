r"""The plain proofs of all levels of a leximin at once, as tables of levels.

The inequality and its symbols are those of `fairopt.certificate.plain_level`: the prices of level k alone prove it. A user n settled below
may have d[n] = (g + excess) / q[n] too little at its own level, or its distance from its cap. At the prices of level k that costs at most
d[n] times the cost of a unit of level on the dearest pair of n that no level below has closed: g / (A'p - q u / phi) bounds what a level
leaves of a pair. All users of a level share its g, so

    fairness   max((g + excess) / (q[n] t),  shortfalls / (sigma t)),      shortfalls = sum over the levels below of the largest of each.

`fairopt.certificate.levels` proves more, level by level: closed pairs need no price there, only at a charge. Answers of a simplex method
need no such charges, and a table takes a fraction of the time of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.certificate.levels import CLEAR, CLOSED, PROVED
from fairopt.certificate.price_parts import EPSILON, PriceParts
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import DIGITS, NOISE, TINY
from fairopt.program import Program, Stage

__all__ = ["plain_gaps"]

_MOST_NUMBERS = 1_000_000  # of a table of levels and pairs: the memory of larger ones costs more than a loop over levels


def plain_gaps(
    program: Program,
    x: FloatArray,
    levels: FloatArray,
    value: FloatArray,
    uncertainty: FloatArray,
    stages: Sequence[Stage],
) -> tuple[float, float] | None:
    """Return the worst residuals of optimality and fairness of all levels; None where their own prices leave more than `PROVED`.

    Parameters
    ----------
    program : Program
    x : array (pairs,)
    levels, value : arrays (users,)
        What users have, and at which level each is settled.
    uncertainty : array (users,)
        How far a user at its cap is from it.
    stages : sequence of Stage
        In ascending order; every user of them is in one.
    """
    limits, users = program.limits, program.pair_users
    if len(stages) * x.size > _MOST_NUMBERS or (np.diff(users) < 0).any() or any(stage.prices is None for stage in stages):
        return None
    prices = np.column_stack([stage.prices for stage in stages if stage.prices is not None])
    parts = PriceParts(limits, users, x, levels.size)
    prices[:, :-1] = parts.without_noise(prices[:, :-1])  # noise of the last level matters to none above it
    prices = prices / np.maximum(prices.max(axis=0), TINY)
    if prices.min(initial=0.0) < 0:
        return None
    settled, stage_of = _settled(stages)

    worth, has_room = program.worth, program.largest() > 0
    cost = np.asarray(limits.transposed @ prices)  # (pairs, levels)
    of_unit = cost / worth[:, None]
    q = _by_user(np.minimum, of_unit, users, has_room, levels.size)
    rising = value[:, None] >= np.array([stage.value for stage in stages])  # (users, levels)
    reached = np.where(rising, levels[:, None], np.inf).min(axis=0)
    if not (reached > 0).all():  # a user at level 0 with room left
        return None
    target = np.where(rising, reached, levels[:, None])
    held, spent = (np.where(rising, q, 0.0) * reached).sum(axis=0), limits.bounds @ prices
    paid = q[settled, stage_of] * reached[stage_of]
    if not (held > 0).all() or not (paid > NOISE * spent[stage_of]).all():
        return None

    # g, which is summed directly too; and g with the excess of the answer over its limits.
    left, digits = limits.bounds - limits.used(x), limits.bounds * DIGITS
    free, over = np.maximum(left - digits, 0.0), np.maximum(-left - digits, 0.0)
    dear = np.maximum(cost * (1 - DIGITS) - q[users] * worth[:, None], 0.0)
    above = np.where(rising, np.maximum(levels[:, None] - target * (1 + DIGITS), 0.0), 0.0)
    beyond = spent * (1 - DIGITS) - (q * target).sum(axis=0)
    gap = np.maximum(beyond, free @ prices + (q * above).sum(axis=0) + np.maximum(x, 0.0) @ dear)
    gained = gap + over @ prices + np.maximum(-x, 0.0) @ dear

    # Shortfalls of users settled below, on pairs that are not closed.
    most = np.maximum(gained, EPSILON * spent) / np.where(dear > CLEAR * cost, dear, TINY)
    most = np.minimum.accumulate(most, axis=1)[:, :-1]
    size = np.maximum(levels[:, None], target)[users, 1:]
    of_unit[:, 1:][most * worth[:, None] <= CLOSED * size] = 0.0
    dearest = np.maximum(_by_user(np.maximum, of_unit, users, has_room, levels.size), q)
    lacks = uncertainty.copy()
    lacks[settled] = gained[stage_of] / q[settled, stage_of]
    costs = np.where(rising, 0.0, dearest * lacks[:, None])
    of_levels = np.maximum.reduceat(costs[settled], np.flatnonzero(np.diff(stage_of, prepend=-1)), axis=0).sum(axis=0)
    costs[settled] = 0.0  # the others are at caps

    told = np.abs(np.array([stage.value for stage in stages])[stage_of] / levels[settled] - 1)
    optimality = float(np.concatenate([gap / held, told]).max())  # nan if one of them is
    fairness = float(np.concatenate([gained[stage_of] / paid, (of_levels + costs.sum(axis=0)) / held]).max())
    return (optimality, fairness) if optimality <= PROVED and fairness <= PROVED else None


def _settled(stages: Sequence[Stage]) -> tuple[IntArray, IntArray]:
    """Return the users who are settled by some stage, one stage after another, and the stage of each."""
    sizes = [stage.users.size for stage in stages]
    return np.concatenate([stage.users for stage in stages]), np.repeat(np.arange(len(stages)), sizes)


def _by_user(extreme: np.ufunc, of_unit: FloatArray, users: IntArray, has_room: BoolArray, n_users: int) -> FloatArray:
    """Return the least or the largest cost of a unit over the pairs with room of each user, (users, levels); 0 if it has none."""
    of_unit, users = of_unit[has_room], users[has_room]
    found = np.zeros((n_users, of_unit.shape[1]))
    first = np.flatnonzero(np.diff(users, prepend=-1))
    if first.size:
        found[users[first]] = extreme.reduceat(of_unit, first)
    return found
