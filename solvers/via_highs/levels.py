"""Leximin, and its first step, the equal level, as a sequence of warm-started linear programs.

Level by level. With F the users already settled, at levels L[n], and c[n] the caps of the others, the next level is the largest t with

    A x <= b,   U[n]/phi[n] >= min(t, c[n]) (n not in F),   U[n]/phi[n] >= L[n] (n in F),   x >= 0.

Let p >= 0 be the multipliers of the limits and q[n] = min over the pairs of n of (A'p)[pair] phi[n] / u[pair], the cheapest
price of one unit of n's level. Weak duality bounds t, and with gap = bound - t no solution that reaches t can lift user n
above t + sigma gap / q[n]
(sigma = sum of q over the users who rise; see ``fairopt.certificate.levels``). So the users with sigma gap / q[n] below the
tolerance are settled at t *in every* optimal solution, the others rise on. Settling a user takes t out of its row and
raises the row's bound: the last point stays feasible, and primal simplex goes on from it.

Caps. A limit of a user's own, of its tasks or its parallelism, is a cap on its level (``fairopt.program.own_limits``), and where it takes
the same
for the same level on every pair, it is nothing else and needs no row. Caps make the program above one of t alone that is not linear, but
for a guess g of t it is: the largest theta with U[n]/phi[n] >= theta min(g, c[n]). If theta < 1, g is too much, and the multipliers
give a lower bound on t, from above: the largest t with sum of q min(t, c) <= p.b - sum over F of q L. That is Newton's method on
a concave piecewise-linear function, so a few LPs pass any number of caps. Where all caps are such that need no row, the same from below: an
LP that ignores them gives a t that is too low, and settling those with caps below it raises t.

After a level some limits have prices. A user who could still rise does so on pairs that are free, and its own limits cap what is to be had
there: more would have to be bought from those who are settled. So its cap falls, without an LP. Beyond it, the same prices of the shared
limits, with the price at which a unit of the user's own limit saves what it would have to buy, prove that it can have no more. Each level
puts a price on some shared limit that had none, or settles users at a cap; so programs are as few as shared limits, and levels may be as
many as users.

Columns are scaled to the user's own order of level and limits to a bound of 1, so that a user who can never get more than a
billionth of what others get is still seen by the solver's tolerances.
"""

from __future__ import annotations

import logging

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.program import Equalize, Leximin, Program, Solution, Stage
from fairopt.program.own_limits import OwnLimits
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.via_highs.model import HighsModel, Outcome, Status, solved
from fairopt.solvers.via_highs.proofs import Proof, proof_of
from fairopt.solvers.via_highs.starting_basis import greedy_columns

__all__ = ["Levels"]

log = logging.getLogger(__name__)

# First LP: primal simplex from a greedy basis, unless there are many limits *and* many columns; then the interior point, with crossover.
# Measured, in this order against the simplex that HiGHS chooses: 10,000 columns and 20 limits 0.012 s, 0.22 s; 100,000 and 20 1.3 s, 16 s
# (interior point); 12,000 and 120 0.16 s, 0.32 s; 100,000 and 300 8.4 s, 16 s (interior point 5.1 s).
_MANY_COLUMNS, _MANY_LIMITS = 30_000, 200
_PRIMAL = 4  # HiGHS's number for primal simplex
# Where the solver misses a solution that exists: the next unit of t, as a multiple of the last, and how much to relax the levels of
# the users already settled. First a fresh start, then larger units (a level far above its unit looks unbounded), then back to the old
# unit with the rounding of the levels given way (they can make a program look infeasible by a hair); the certificate judges.
_ATTEMPTS = ((1.0, 0.0), (1e3, 0.0), (1e3, 0.0), (1e-6, 1e-11), (1.0, 1e-10), (1.0, 1e-9))
_SLOPPY = 1e-15  # a point that violates its limits by more is refined: a user who takes little feels it much
_REFINEMENTS = 3  # of a program, at most
_SHARPER = 1e4  # prices that stop nobody are refined, by this factor
_OFF = 100.0  # a level this many times larger or smaller than its unit asks for new units
_ROUNDING = 1e-15
_REACHED = 1e-11  # a guess that all reach but for this part is reached
_SAME_CAP = 1e-14
_FREE = 1e-9  # a pair that costs less, as a part of all spending for as much as it can take, is free
_VANISHING = 1e-6  # part of a user's level


class Levels:
    """The state of one leximin (or of its first step, the equal level)."""

    def __init__(self, program: Program, goal: Leximin | Equalize, tolerance: float, deadline: Deadline) -> None:
        self.program, self.deadline = program, deadline
        self.settle_at = min(tolerance * 0.1, 1e-9)
        self.equal, self.weights = isinstance(goal, Equalize), goal.weights
        n_users = len(program.users)
        limits = program.limits
        self.own = self.own_limits(program, goal)
        self.per_level = self.own.per_level
        self.largest = largest = program.largest()
        reach = program.per_user(largest * self.per_level)  # no user's level can exceed this

        # Limits of a user's own are caps on its level. Where that is all they are, they need no row.
        self.cap, self.capped_by = np.full(n_users, np.inf), np.full(n_users, -1)
        rows = np.ones(len(limits), bool)
        if not self.equal:
            self.cap, self.capped_by = self.own.caps()
            rows[self.own.rows[self.own.even]] = False
        self.prices = np.zeros(len(limits))  # of the last level
        self.free = np.ones(program.n_pairs, bool)  # at these prices
        self.proof: Proof | None = None  # the lowest bound on the next one
        rows &= limits.bounds > 0
        self.rows = np.flatnonzero(rows)

        self.column = np.flatnonzero(largest > 0)
        self.member = reach > 0  # the others stay at level 0: no tasks, or no room at all
        self.rising = self.member.copy()
        self.level = np.zeros(n_users)
        self.reach = reach
        self.stages: list[Stage] = []
        self.iterations = 0
        self.programs = 0
        self.slack = 0.0
        self.x = np.zeros(program.n_pairs)
        self.has = np.zeros(n_users)  # the levels at x
        self.grew = False  # did the last LP show that the next one has to be larger?
        if self.member.any():
            self._prepare()

    @staticmethod
    def own_limits(program: Program, goal: Leximin | Equalize) -> OwnLimits:
        """Return the limits of the users' own, in levels."""
        return OwnLimits(program, program.utilities / goal.weights[program.pair_users])

    def _prepare(self) -> None:
        """Build the first LP."""
        # The first level lies somewhere between everybody's slice by weight and what the least can reach alone.
        weights, reach = self.weights[self.member], self.reach[self.member]
        self.t_unit = float(np.sqrt((reach * weights / weights.sum()).min() * reach.min()))
        if self._caps_matter():
            self.t_unit = self._guess()
        self.model = self._build()
        if self.column.size >= _MANY_COLUMNS and self.rows.size >= _MANY_LIMITS:
            self.model.set_options(solver="ipm")
        else:
            self._start_greedily()

    def _build(self) -> HighsModel:
        """Columns: y, the pairs in units of their own, then t. Rows: limits with bound 1, then a row for each member."""
        program, column = self.program, self.column
        users = program.pair_users[column]
        # A user's unit of level is its order of magnitude: that at which it is settled, else that which t has now.
        self.wanted = np.minimum(self.cap, self.t_unit) if self._caps_matter() else np.full(self.cap.size, self.t_unit)
        self.unit = np.where(self.rising, np.minimum(self.reach, self.wanted), np.where(self.level > 0, self.level, 1.0))
        # Tasks per unit of a column: neither its use of a limit nor its part of the user's level exceeds 1 by that unit.
        self.scale = np.minimum(self.unit[users] / self.per_level[column], self.largest[column])
        self.worth = self.scale * self.per_level[column] / self.unit[users]
        bounds = program.limits.bounds[self.rows]
        self.use = sp.csr_array(sp.csr_array(program.limits.matrix[self.rows][:, column] * self.scale) / bounds[:, None])
        self.use_by_column = sp.csr_array(sp.csc_array(self.use).T)
        member = np.flatnonzero(self.member)
        self.user_rows = np.cumsum(self.member) - 1 + self.rows.size
        by_user = sp.csr_array((self.worth, (self.user_rows[users] - self.rows.size, np.arange(column.size))), (member.size, column.size))
        t = -self.wanted[member] / self.unit[member] * self.rising[member]  # entries of 0 too, which may be changed
        level = sp.csr_array((t, (np.arange(member.size), np.zeros(member.size, int))), (member.size, 1))
        return HighsModel(
            np.append(np.zeros(column.size), 1.0),
            np.zeros(column.size + 1),
            np.full(column.size + 1, np.inf),
            sp.block_array([[self.use, None], [by_user, level]], format="csc"),
            np.concatenate([np.full(self.rows.size, -np.inf), self.level[member] / self.unit[member] * (1 - self.slack)]),
            np.concatenate([np.ones(self.rows.size), np.full(member.size, np.inf)]),
            tolerance=1e-10,
        )

    def _start_greedily(self) -> None:
        """Give primal simplex a first basis."""
        users = self.program.pair_users[self.column]
        per_level = sp.csr_array(self.use_by_column / (self.worth * self.unit[users])[:, None])
        if (np.diff(per_level.indptr) > 0).all():  # a column that uses no limit (of a user with a cap) has no place in it
            self.model.start_from(greedy_columns(per_level, users), self.user_rows[self.member])
            self.model.set_options(simplex_strategy=_PRIMAL)

    def solve(self) -> Solution:
        """Raise levels until every user is settled, then give everybody exactly its level."""
        while self.rising.any():
            self._settle_some()
        x = self.x
        reached = self.program.per_user(x * self.per_level)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(reached > 0, self.level / reached, 0.0)
        return Solution(x * factor[self.program.pair_users], tuple(self.stages), iterations=self.iterations, programs_solved=self.programs)

    def _settle_some(self) -> None:
        """Solve an LP, and settle users by what it shows, or guess better."""
        part, proof = self._solve_lp()
        if self.equal:
            self._equal_level(part * self.t_unit, proof)
        elif self._caps_matter():
            self._next_guess(part, proof)
        else:
            self._settle_lowest(part * self.t_unit, proof)

    def _solve_lp(self) -> tuple[float, Proof]:
        """Return the part of what they want that all who rise can have, and what proves that it is the largest; set ``x``, (pairs,)."""
        outcome = self._run()
        part, proof = self._reached(), self._proof(outcome)
        t = part * self.t_unit
        if proof.rises(self.rising, t).min() > self.settle_at * t and not self._caps_matter() and t < self.cap[self.rising].min():
            # Users who differ by no more than the solver's tolerance of prices: it stops before the optimum.
            outcome = self._take(self.model.refine(outcome, self.deadline.left, of_prices=_SHARPER))
            part, proof = self._reached(), self._proof(outcome)
        return part, proof

    def _run(self) -> Outcome:
        outcome = self._attempt()
        # From here on the last point is feasible (or almost), and primal simplex carries on from it.
        self.model.set_options(solver="simplex", simplex_strategy=_PRIMAL)
        t = float(outcome.x[-1])
        if t > 0 and not 1 / _OFF < t < _OFF and not self._caps_matter():
            self._rescale(self.t_unit * t, self.model.basis)  # the units were wrong by orders of magnitude: go on from the same basis
            outcome = self._attempt()
        error = self._error(outcome)
        for _ in range(_REFINEMENTS):
            if error <= _SLOPPY:
                break
            outcome = self.model.refine(outcome, self.deadline.left)
            error = self._error(outcome)
        self.programs += 1
        return self._take(outcome)

    def _error(self, outcome: Outcome) -> float:
        """Return the largest violation of the LP by its point, in its units."""
        levels = self._levels(np.maximum(outcome.x[:-1], 0.0))
        owed = np.where(self.rising, outcome.x[-1] * self.wanted, self.level)
        missing = float(((owed - levels) / np.where(owed > 0, owed, 1.0)).max())
        return max(missing, -float(outcome.x.min()), float(np.asarray(self.use @ outcome.x[:-1]).max(initial=1.0)) - 1)

    def _levels(self, y: FloatArray) -> FloatArray:
        """Return the levels at a point of the LP, (users,)."""
        gained = y * self.scale * self.per_level[self.column]
        return np.bincount(self.program.pair_users[self.column], weights=gained, minlength=self.unit.size).astype(np.float64)

    def _take(self, outcome: Outcome) -> Outcome:
        """Keep the point of an outcome, scaled back to exact feasibility, and hold those who are settled to what they have there.

        The solver's own t may be a tolerance too high, and then no point would satisfy the rows of the users settled at it. So it
        is with the levels of those settled before, where rounding leaves them less. Levels a hair too high leave the next program
        no solution, and HiGHS one that only its tolerance allows; who rises then may live on a thousandth of what the settled hold,
        and so feel that error a thousandfold, and the next level again.
        """
        y = np.maximum(outcome.x[:-1], 0.0)
        y /= max(1.0, float((self.use @ y).max(initial=0.0)))
        self.x[self.column] = y * self.scale
        self.has = self._levels(y)
        short = np.flatnonzero(self.member & ~self.rising & (self.has < self.level))
        if short.size:
            self.level[short] = self.has[short]
            self.model.set_row_bounds(self.user_rows[short], self.level[short] / self.unit[short], np.full(short.size, np.inf))
        return outcome

    def _reached(self) -> float:
        """Return the part of what they want that all who rise have."""
        return float((self.has[self.rising] / self.wanted[self.rising]).min())

    def _attempt(self) -> Outcome:
        """Run the LP, which always has a solution; where the solver misses it, try larger units and a fresh start."""
        for times, slack in _ATTEMPTS:
            outcome = self.model.run(self.deadline.left)
            self.iterations += outcome.iterations
            if outcome.status in (Status.OPTIMAL, Status.TIME_LIMIT):
                break
            log.info("HiGHS: %s; trying again in other units", outcome.status.value)
            self.slack = slack
            self._rescale(self.t_unit * times, None)
        return solved(outcome, self.deadline, final_levels(self.program, self.stages))

    def _restart(self, t_unit: float) -> None:
        """Guess another level."""
        self._rescale(t_unit, self.model.basis)

    def _rescale(self, t_unit: float, basis: object) -> None:
        self.t_unit = t_unit
        self.model = self._build()
        if basis is not None:
            self.model.basis = basis
            self.model.set_options(solver="simplex", simplex_strategy=_PRIMAL)

    # Caps ------------------------------------------------------------------------------------------------------------------------

    def _caps_matter(self) -> bool:
        """Are there caps that are more than a bound on the level? The LPs can ignore the others."""
        return not self.equal and not bool(self.own.even.all()) and bool(np.isfinite(self.cap[self.rising]).any())

    def _settle_lowest(self, t: float, proof: Proof) -> None:
        """Settle those whose caps lie below t, which can only rise by that; where there are none, those who are stopped at t."""
        capped = np.flatnonzero(self.rising & (self.cap <= t * (1 + _ROUNDING)))
        if capped.size:
            self._settle(capped, self.cap[capped])
        else:
            self._settle_at_bottleneck(t, proof)

    def _next_guess(self, part: float, proof: Proof) -> None:
        """Settle whoever has its cap at a level that all can reach; then settle those who are stopped there, or guess again."""
        guess, caps = self.t_unit, self.cap[self.rising]
        low, within = float(caps.min()), bool((caps >= guess).all())
        if within or part < 1 - _REACHED:  # (elsewhere it may be caps that stop them, and nothing is proved)
            better = self.proof is None or proof.bound < self.proof.bound * (1 - _ROUNDING)
            stalled = not better and not self.grew
            self.proof = proof if better else self.proof
            reached = min(part * guess, low) if within else part * guess if stalled else 0.0
        else:
            stalled, reached = False, guess
        bound = np.inf if self.proof is None else self.proof.bound
        capped = np.flatnonzero(self.rising & (self.cap <= reached * (1 + _ROUNDING)))
        log.debug("guess %.12g, part %.15g, reached %.12g, bound %.12g, %d capped", guess, part, reached, bound, capped.size)
        self._settle_at_caps(capped)
        if capped.size and self.proof is not None and not self.proof.stops(self.rising, reached).any():
            self.proof, bound = None, np.inf  # it was they whom these prices stopped
        if self.rising.any() and self.proof is not None and (stalled or bound <= reached * (1 + _REACHED)):
            self._settle_at_bottleneck(reached, self.proof)
            self.proof = None
            bound = self._guess() if self.rising.any() else 0.0
        if self.rising.any():
            self._restart(min(bound, self._most()))

    def _most(self) -> float:
        """Return the largest level that anyone who rises could have if it were alone."""
        return float(np.minimum(self.cap, self.reach)[self.rising].max(initial=0.0))

    def _guess(self) -> float:
        """Return a level that is not too low."""
        return self._most()

    def _settle_at_caps(self, users: np.ndarray) -> None:
        """Settle users at their caps, and say why: a level for each cap that stands only while the last level's prices do."""
        if not users.size:
            return
        limits = self.program.limits
        shared = np.where(limits.of_servers, self.prices, 0.0)
        order = users[np.argsort(self.cap[users], kind="stable")]
        new = np.flatnonzero(np.diff(self.cap[order], prepend=-1.0) > _SAME_CAP * self.cap[order])
        cost: FloatArray | None = limits.matrix.T @ shared if shared.any() else None
        for together in np.split(order, new[1:]):
            rows, prices = [], []
            for n in together:
                price = np.inf if cost is None else self.own.price_beyond(self.capped_by[n], cost, self.free)
                if np.isfinite(price):
                    rows.append(self.own.rows[self.capped_by[n]])
                    prices.append(price)
            if rows:
                full = self.prices.copy()
                full[rows] = prices
                self.stages.append(Stage(float(self.cap[together].min()), together, full))
        self._settle(users, self.cap[users])

    def _lower_caps(self, t: float) -> None:
        """Take it into account that beyond their free pairs users would have to buy what others have, who are settled."""
        limits = self.program.limits
        cost = limits.matrix.T @ np.where(limits.of_servers, self.prices, 0.0)
        self.free = cost * self.largest <= _FREE * float(self.prices @ limits.bounds)
        cap, by = self.own.caps(self.free)
        lower = self.rising & (cap < self.cap * (1 - _ROUNDING))
        self.cap[lower], self.capped_by[lower] = np.maximum(cap, t)[lower], by[lower]

    # Prices ----------------------------------------------------------------------------------------------------------------------

    def _proof(self, outcome: Outcome) -> Proof:
        """Return what the multipliers of an LP prove."""
        prices = np.maximum(outcome.row_duals[: self.rows.size], 0.0)
        users = self.program.pair_users[self.column]
        cost = (self.use_by_column @ prices) / self.worth
        # A pair that can carry only a vanishing part of its user's level is below the solver's tolerances, and so is the price of what
        # it uses. Raise that price to what the user pays elsewhere: it hardly costs anything, and the pair no longer looks cheap.
        wanted = np.zeros(len(self.program.users))
        wanted[self.member] = np.maximum(-outcome.row_duals[self.user_rows[self.member]], 0.0)
        for p in np.flatnonzero((self.worth < _VANISHING) & (cost < wanted[users])):
            span = slice(self.use_by_column.indptr[p], self.use_by_column.indptr[p + 1])
            limit, use = self.use_by_column.indices[span], self.use_by_column.data[span]
            missing = wanted[users[p]] * self.worth[p] - use @ prices[limit]
            if missing > 0:
                prices[limit[use.argmax()]] += missing / use.max()
        cost = (self.use_by_column @ prices) / self.worth
        q = np.full(len(self.program.users), np.inf)
        np.minimum.at(q, users, cost)
        q[np.isinf(q)] = 0.0
        q /= self.unit
        full = np.zeros(len(self.program.limits))
        full[self.rows] = prices * self.t_unit / self.program.limits.bounds[self.rows]  # what t gains per unit of each limit
        spent = float(prices.sum())
        return self._proved(full, q, spent)

    def _proved(self, prices: FloatArray, q: FloatArray, spent: float) -> Proof:
        return proof_of(prices, q, spent, self.rising, self.member & ~self.rising, self.level, self.cap)

    def _settle_at_bottleneck(self, t: float, proof: Proof) -> None:
        """Settle every user whom the prices prove to be at its level in all optimal solutions."""
        rising = np.flatnonzero(self.rising)
        rise = proof.rises(self.rising, t)
        proved = rise <= self.settle_at * t
        if not proved.any():  # the best proof there is; the certificate will judge it
            proved = rise <= rise.min()
        users = rising[proved]
        self.stages.append(Stage(t, users, proof.prices))
        self.prices = proof.prices
        self._settle(users, np.full(users.size, t))
        if self.own.rows.size and not self.own.even.all():
            self._lower_caps(t)
        log.info("level %d: %.6g, %d users left", len(self.stages), t, int(self.rising.sum()))

    def _equal_level(self, t: float, proof: Proof) -> None:
        rising = np.flatnonzero(self.rising)
        self.stages.append(Stage(t, rising, proof.prices))
        self.level[rising] = t
        self.rising[:] = False

    def _settle(self, users: np.ndarray, levels: FloatArray) -> None:
        """Take t out of the rows of these users and bound them by their levels instead."""
        if not self._caps_matter():  # else the next guess builds a new model
            rows = self.user_rows[users]
            for row in rows:
                self.model.set_coefficient(row, self.column.size, 0.0)
            self.model.set_row_bounds(rows, levels / self.unit[users], np.full(users.size, np.inf))
        self.level[users] = levels
        self.rising[users] = False
