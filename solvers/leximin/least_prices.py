"""The least prices that prove the levels of a leximin: a linear program for each level, at an answer that is known.

Prices of a level are seldom unique. What lower levels imply, prices of later ones need not prove again (`fairopt.certificate.levels`):
pairs that are closed may be too cheap, and limits that are always full, and users who have their levels exactly, may have prices below 0. A
simplex method finds some vertex with all prices above 0. For jobs that run on one GPU at a time, its prices spend up to 10^6 times what the
users of the level pay. The proof of the level multiplies the rounding of the answer by this factor, and the proofs of the levels above
multiply the rounding of this one. The least prices spend at most 20 times what is paid on most levels, and prove the same answer.

Let x be the answer, and t the level. In parts of what the users of the level pay,

    minimise    sum over limits of |p| b
    subject to  A'p = q u / phi on used pairs,    A'p >= q u / phi on other open pairs,
                sum over the users of the level of q t = 1,    q[n] t >= a part of what n pays now,    q[n] = 0 for users who rise above t,
                p = 0 on limits that are not full,    p >= 0 but on those that a lower level fills,    q >= 0 but for users settled below.

Levels are taken from the lowest: the new prices say what is closed, full and settled for those above. Pairs that are closed have no row.
The certificate charges a level for what its closed pairs cost too little. Rows for them would raise the prices by far more than that.
They would also leave other pairs worth exactly what they cost; these stay open, and levels above then need prices of 10^11 times what is
paid, or have none. A program without a solution says that the levels are wrong. The certificate decides whether the answer is better.

*Own limits.* Users who are stopped by limits of their own alone need no program: no prices spend less than what is paid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import EXACT, FITS, ROUNDING, SAME
from fairopt.program import Program, Solution, Stage
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import FINEST, HighsModel
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["with_least_prices"]


def with_least_prices(program: Program, solution: Solution, deadline: Deadline) -> Solution | None:
    """Return the solution with the least prices of its levels.

    None at the deadline, where a level has no such prices, and where a stage is one of floors, of a part of a tree, or of agents.
    """
    stages = list(solution.stages)
    if any(each.prices is None or each.floors or each.part or each.agents is not None for each in stages):
        return None
    answer, implied = _Answer.of(program, solution), _Implied.nothing(program)
    rising = answer.levels > 0
    in_no_stage = rising.copy()
    for each in stages:
        in_no_stage[each.users] = False
    for k in sorted(range(len(stages)), key=lambda k: stages[k].value):
        rising &= ~(in_no_stage & (answer.levels <= stages[k].value * (1 + ROUNDING)))  # who has come to a cap of its own
        if deadline.left == 0.0:
            return None
        prices = _least(answer, implied, rising, stages[k], deadline)
        if prices is None:
            return None
        stages[k] = replace(stages[k], prices=prices)
        rising[stages[k].users] = False
        implied = implied.with_level(answer, stages[k], rising)
    return replace(solution, stages=tuple(stages))


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """An answer: its levels, the pairs that could be used, the full limits, and what these pairs take of them.

    Attributes
    ----------
    program : Program
    levels : array (users,)
    pairs : int array (columns,)
        Pairs of users who have something, on which they could have something.
    used : bool array (columns,)
    full : int array (rows,)
        Limits of which nothing is left.
    use : array (columns, rows)
        Sparse: the part of each limit that a user would take if it had all its level on the pair.
    """

    program: Program
    levels: FloatArray
    pairs: IntArray
    used: BoolArray
    full: IntArray
    use: sp.csr_array

    @classmethod
    def of(cls, program: Program, solution: Solution) -> _Answer:
        """Return the data of a solution."""
        limits, users, worth = program.limits, program.pair_users, program.worth
        levels = program.per_user(solution.x * worth)
        pairs = np.flatnonzero((levels[users] > 0) & (program.largest() > 0))
        full = np.flatnonzero((limits.bounds - limits.used(solution.x) <= FITS * limits.bounds) & (limits.bounds > 0))
        part = limits.matrix[full][:, pairs] / limits.bounds[full][:, None]
        use = sp.csr_array(sp.csr_array(part.T) * (levels[users] / worth)[pairs][:, None])
        return cls(program, levels, pairs, solution.x[pairs] > 0, full, use)

    @property
    def users(self) -> IntArray:
        """The user of each column, (columns,)."""
        return np.asarray(self.program.pair_users[self.pairs])

    def cost(self, prices: FloatArray) -> FloatArray:
        """Return what each column would cost its user who had all its level there, (columns,), at prices of whole full limits, (rows,)."""
        return np.asarray(self.use @ prices)


@dataclass(frozen=True, slots=True, eq=False)
class _Implied:
    """What levels below imply.

    Attributes
    ----------
    closed : bool array (pairs,)
        Nobody uses them.
    full : bool array (limits,)
        They are always full.
    pinned : bool array (users,)
        They have exactly their levels.
    """

    closed: BoolArray
    full: BoolArray
    pinned: BoolArray

    @classmethod
    def nothing(cls, program: Program) -> _Implied:
        """Return what is known before the first level."""
        return cls(*(np.zeros(size, bool) for size in (program.n_pairs, len(program.limits), len(program.users))))

    def cheapest(self, answer: _Answer, paid: FloatArray) -> FloatArray:
        """Return the least that each user would pay for its level on one open pair, (users,); at least 0 unless the user is pinned."""
        q = np.full(self.pinned.size, np.inf)
        opened = ~self.closed[answer.pairs]
        np.minimum.at(q, answer.users[opened], paid[opened])
        q[np.isinf(q)] = 0.0
        return np.where(self.pinned, q, np.maximum(q, 0.0))

    def with_level(self, answer: _Answer, stage: Stage, rising: BoolArray) -> _Implied:
        """Return what this level and those below imply."""
        assert stage.prices is not None
        price = (stage.prices * answer.program.limits.bounds)[answer.full]
        paid, spent = answer.cost(price), float(np.abs(price).sum())
        q = self.cheapest(answer, paid)
        closed, full = self.closed.copy(), self.full.copy()
        closed[answer.pairs] |= (paid - q[answer.users] > SETTINGS.clearly * spent) & ~answer.used
        full[answer.full] |= price > SETTINGS.clearly * spent
        return _Implied(closed, full, self.pinned | ((q > SETTINGS.clearly * spent) & ~rising))


def _least(answer: _Answer, implied: _Implied, rising: BoolArray, stage: Stage, deadline: Deadline) -> FloatArray | None:
    """Return the least prices of a level, (limits,); None where there are none."""
    bounds, assigned = answer.program.limits.bounds, np.zeros(len(answer.program.users), bool)
    assigned[stage.users] = True
    assert stage.prices is not None
    price = np.maximum((stage.prices * bounds)[answer.full], 0.0)
    pays = np.where(assigned, implied.cheapest(answer, answer.cost(price)), 0.0)
    if not pays.sum() > 0:
        return None
    found = _of_own_limits(answer, implied, assigned)
    if found is None:
        above = rising & ~assigned & (answer.levels > stage.value * (1 + SAME))
        found = _by_program(answer, implied, above, assigned, pays / pays.sum(), deadline)
    if found is None:
        return None
    prices = np.zeros(bounds.size)
    prices[answer.full] = found / bounds[answer.full]
    return prices


def _of_own_limits(answer: _Answer, implied: _Implied, assigned: BoolArray) -> FloatArray | None:
    """Return prices of whole full limits, (rows,), of one limit of its own for each user of a level; None where these do not stop all."""
    limits = answer.program.limits
    own = np.flatnonzero(~limits.of_servers[answer.full])
    own, number = own[assigned[limits.keys[answer.full[own], 0]]], np.count_nonzero(assigned)
    if own.size != number or np.unique(limits.keys[answer.full[own], 0]).size != number:
        return None
    prices = np.zeros(answer.full.size)
    prices[own] = 1.0
    theirs, cost = assigned[answer.users], answer.cost(prices)
    others = theirs & ~answer.used & ~implied.closed[answer.pairs]
    stops = (np.abs(cost[theirs & answer.used] - 1) <= EXACT).all() and (cost[others] >= 1 - EXACT).all()
    return prices / number if stops else None


def _by_program(
    answer: _Answer, implied: _Implied, above: BoolArray, assigned: BoolArray, pays: FloatArray, deadline: Deadline
) -> FloatArray | None:
    """Return the least prices of whole full limits, (rows,), at which users ``above`` the level pay nothing, (users,).

    ``pays``, (users,), is what each user of the level pays now, as a part.
    """
    opened = np.flatnonzero(~implied.closed[answer.pairs])
    users, of_pair = np.unique(answer.users[opened], return_inverse=True)
    use, used, number = answer.use[opened], answer.used[opened], answer.full.size

    # Columns: prices of full limits, what is below 0 of the prices of those that are always full, what users pay.
    below = np.flatnonzero(implied.full[answer.full])
    of_user = sp.csr_array((np.ones(opened.size), (np.arange(opened.size), of_pair)))
    of_level = sp.csr_array(assigned[users].astype(np.float64)[None])
    priced = number + below.size
    matrix = sp.vstack([sp.hstack([use, -use[:, below], -of_user]), sp.hstack([sp.csr_array((1, priced)), of_level])])
    least, most = np.where(implied.pinned, -np.inf, 0.0), np.where(above, 0.0, np.inf)
    least = np.where(assigned, SETTINGS.still_paid * pays, least)
    model = HighsModel(
        -np.concatenate([np.ones(priced), np.zeros(users.size)]),
        np.concatenate([np.zeros(priced), least[users]]),
        np.concatenate([np.full(priced, np.inf), most[users]]),
        sp.csc_array(matrix),
        np.append(np.zeros(opened.size), 1.0),
        np.append(np.where(used, 0.0, np.inf), 1.0),
        tolerance=FINEST,
    )
    model.set_options(simplex_iteration_limit=SETTINGS.pivots_for_least)
    outcome = model.run(deadline.left)
    if outcome.status is not Status.OPTIMAL:
        return None
    found = outcome.x[:number].copy()
    found[below] -= outcome.x[number:priced]
    found[np.abs(found) <= SETTINGS.priced * np.abs(found).sum()] = 0.0
    return found
