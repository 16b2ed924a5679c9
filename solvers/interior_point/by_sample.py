r"""Alpha-fair goals of many users whose pairs use one limit each: a path for the few users whose choice prices do not tell.

The prices of limits determine what each user buys (`fairopt.solvers.interior_point.sample_users`), except how much a user buys where
several pairs cost it the same. Near the right prices nearly every user has a choice of pairs that does not change: one pair, or, where it
may be on some servers at once only, also two. All users with the same choice are, together, one user
(`fairopt.solvers.interior_point.sample_choices`). So we

    solve for a sample of the users;  set those apart whose choice may change;  solve for the users apart, and one user for each choice of
    the others;  at its prices, set others apart whose choice is another one, and keep pairs that cost no more than those that are kept

until there are none. Where users may be on some servers at once, once more with those alone apart whose choice these prices do not tell:
of all others, the last digits are then those of the prices.

Each user of a sample demands as much as the users that it stands for: its weight is multiplied by (their number)^alpha, and its own limit
by their number.

How near other choices a user has to be follows from the part of a limit that prices misplace: if every user bought what is best for it,
some limits would sell too much and some too little. In proportion to this part, where it is largest, users are set apart: with too few of
them, that limit would have to find its users by its price alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.active_sets.problem import LARGEST_LOG
from fairopt.solvers.interior_point.sample_columns import sampled
from fairopt.solvers.interior_point.sample_reduced import Reduced, Start
from fairopt.solvers.interior_point.sample_users import Users
from fairopt.solvers.interior_point.settings import SAMPLES

__all__ = ["solve_by_sample"]

log = logging.getLogger(__name__)


Follow = Callable[[Program, AlphaFair, Start | None, float], Solution | None]


def solve_by_sample(program: Program, goal: AlphaFair, follow: Follow) -> Solution | None:
    """Return the optimum of a program that fits (`fairopt.solvers.interior_point.sample_users`); None if a path does not converge.

    Parameters
    ----------
    follow : callable
        The path: it takes a program, its goal, where to begin, and the gap at which to end (0: the end of the path).
    """
    users = Users.of(program, goal)
    asked = sampled(users, max(1, users.n // min(max(SAMPLES.sample, users.n // SAMPLES.one_in), SAMPLES.largest_sample)))
    start, gap, steps = None, SAMPLES.rough, 0
    reduced: Reduced | None = None
    answer: Solution | None = None
    for number in range(SAMPLES.rounds_of_samples):
        found = follow(*asked.program(users), start, gap)
        if found is None or found.prices is None or not np.isfinite(found.prices).all():
            break
        steps += found.iterations
        prices = found.prices[: users.shared.size]
        bought = users.bought(prices, asked.log_unit)
        in_no_unit = float(np.log(prices.max())) > LARGEST_LOG - 1  # where floating point ends, they are parts of the largest one
        if not np.isfinite(bought.excess.max()) or (users.have_own and in_no_unit):
            break
        is_rough = False
        if reduced is None or reduced.is_rough:
            margins, misplaced = users.margins(bought), users.misplaced(bought, prices)
            besides = int(max(SAMPLES.more * misplaced * users.n, SAMPLES.fewest)) if misplaced < 1 else users.n
            apart, kept = users.apart(bought, margins, users.threshold(bought, margins, besides))
            is_rough = number == 0 and besides > SAMPLES.few
        elif not (missing := reduced.missing(bought)).any():
            is_last, answer = answer is not None, reduced.answer(found, bought, steps)
            if is_last or not users.have_own:
                break
            apart, kept = users.apart(bought, users.jumps(bought), SAMPLES.clear)
            if (apart >= reduced.apart).all():
                break
        else:
            kept = reduced.kept | missing
            apart = reduced.apart | np.logical_or.reduceat(missing, users.first)
        reduced = Reduced(users, bought, apart, kept, is_rough)
        asked = reduced.columns
        log.info("%d of %d users are apart, with %d pairs", int(apart.sum()), users.n, reduced.pairs.size)
        start, gap = reduced.start(prices), SAMPLES.rough if is_rough else 0.0
    return answer
