"""Levels of many users who share few limits: linear programs over those who are torn between pairs.

At the prices of an optimal level nearly every user has one cheapest pair. Only the few who have two make a linear program; what the others
use grows with the level and is known. So, from prices that follow the crowd, keep for each user the pairs that it chose at some prices,
solve the LP of those with more than one, let all users respond to its prices (``responses``), and keep what they choose now:

    maximise theta   subject to   sum over torn pairs of A l + (use of all others) theta <= 1,   sum_i l[n,i] >= theta w[n],   own limits

with w = min(guess, cap). Its prices bound the level of the whole program, whoever was left out, and its point is feasible: when they meet,
nothing was missing.
"""

from __future__ import annotations

import logging

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.program import Leximin, Program
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_levels import Levels, Proof
from fairopt.solvers.highs_model import HighsModel, solved
from fairopt.solvers.responses import Response, Users

__all__ = ["SiftedLevels"]

log = logging.getLogger(__name__)

_ROUNDS = 40  # of prices that follow the crowd
_KEPT_ROUNDS = 12  # the last of them, whose choices are kept
_TORN = 1e-13
_DIGITS = 1e-14


class SiftedLevels(Levels):
    """A leximin whose LPs hold torn users only."""

    @classmethod
    def wins(cls, program: Program) -> bool:
        """Is this faster than the LPs of all users, by measurement?"""
        import os
        return isinstance(program.goal, Leximin) and os.environ.get("SIFT", "1") == "1"

    def _caps_matter(self) -> bool:
        return True

    def _prepare(self) -> None:
        program, limits = self.program, self.program.limits
        self.user = np.unique(program.pair_users[self.column], return_inverse=True)[1]
        self.who = np.flatnonzero(self.member)
        self.shared = np.flatnonzero(limits.of_servers & (limits.bounds > 0))
        per_level = self.per_level[self.column]
        matrix = limits.matrix[:, self.column]
        self.use = sp.csc_array(matrix[self.shared] / limits.bounds[self.shared][:, None] / per_level)  # per unit of level
        self.use_by_column = sp.csr_array(self.use.T)
        self.own_row = np.full(self.who.size, -1)
        place = np.cumsum(self.member) - 1
        uneven = self.own.rows[~self.own.even]
        uneven = uneven[self.member[limits.keys[uneven, 0]]]
        self.own_row[place[limits.keys[uneven, 0]]] = uneven
        bounded = self.own_row >= 0
        bound = np.full(self.who.size, np.inf)
        bound[bounded] = limits.bounds[self.own_row[bounded]]
        own = np.asarray(matrix[uneven].sum(axis=0)).ravel() / per_level
        self.users = Users(self.user, own, bound)
        self.kept = np.zeros(self.column.size, bool)
        self.kept_prices = np.full(self.shared.size, 1.0 / self.shared.size)
        self.t_unit = min(self._guess(), self._most())

    def _restart(self, t_unit: float) -> None:
        self.t_unit = t_unit

    def _wanted(self, t: float) -> FloatArray:
        """Return what everybody shall have when those who rise reach t, (members,)."""
        return np.where(self.rising, np.minimum(self.cap, t), self.level)[self.who]

    def _respond(self, price: FloatArray, wanted: FloatArray) -> tuple[Response, Proof]:
        """Return what users do at prices of the shared limits, and what that proves."""
        limits = self.program.limits
        response = self.users.respond(self.use_by_column @ price, wanted)
        bounded = self.own_row >= 0
        full = np.zeros(len(limits))
        full[self.shared] = price / limits.bounds[self.shared]
        full[self.own_row[bounded]] = response.y[bounded]
        q = np.zeros(self.cap.size)
        q[self.who] = response.q
        spent = float(price.sum() + response.y[bounded] @ self.users.bound[bounded])
        return response, Proof(full, q, spent, self._bound(spent * (1 - _DIGITS), q))

    def _guess(self) -> float:
        """Return the lowest bound by prices that rise where the crowd is."""
        best, t = np.inf, self._most()
        price = np.full(self.shared.size, 1.0 / self.shared.size)
        for step in range(_ROUNDS):
            response, proof = self._respond(price, self._wanted(t))
            if step >= _ROUNDS - _KEPT_ROUNDS:
                self.kept |= response.level > 0
            best = min(best, proof.bound)
            t = min(t, best)
            load = self.use @ response.level
            price = price * np.exp((load / load.max() - 1) * 2 / np.sqrt(step + 1))
            price /= price.sum()
        return best

    def _solve_lp(self) -> tuple[float, Proof]:
        """Solve the LP of the torn users; return the part of what is wanted that all reach, and what its prices prove."""
        wanted, n, m = self._wanted(self.t_unit), self.who.size, self.shared.size
        rising = self.rising[self.who]
        torn = np.bincount(self.user[self.kept], minlength=n) != 1
        single = np.flatnonzero(self.kept & ~torn[self.user])
        of_single = self.user[single]
        amount = np.zeros(self.column.size)
        amount[single] = wanted[of_single]
        up = np.append(np.where(rising[of_single], wanted[of_single], 0.0), 0.0)[:-1]
        with_t = self.use[:, single] @ up
        fixed = self.use[:, single] @ (wanted[of_single] - up)

        columns = np.flatnonzero(self.kept & torn[self.user])
        user = self.user[columns]
        number = np.cumsum(torn) - 1
        rows = number[user]
        k = int(torn.sum())
        scaled = wanted[user]
        own = np.flatnonzero(torn & (self.own_row >= 0))
        own_number = np.full(n, -1)
        own_number[own] = np.arange(own.size)
        has_own = own_number[user] >= 0
        blocks = [
            [self.use[:, columns] * scaled, with_t[:, None]],
            [
                sp.csr_array(
                    (
                        (self.users.own[columns] * scaled / self.users.bound[user])[has_own],
                        (own_number[user[has_own]], np.flatnonzero(has_own)),
                    ),
                    shape=(own.size, columns.size),
                ),
                None,
            ],
            [
                sp.csr_array((np.ones(columns.size), (rows, np.arange(columns.size))), shape=(k, columns.size)),
                -rising[torn].astype(float)[:, None],
            ],
        ]
        kinds = [block for block, size in zip(blocks, (m, own.size, k), strict=True) if size]
        matrix = sp.block_array([[a, b if b is None else sp.csr_array(b)] for a, b in kinds], format="csc")
        model = HighsModel(
            np.append(np.zeros(columns.size), 1.0),
            np.zeros(columns.size + 1),
            np.full(columns.size + 1, np.inf),
            matrix,
            np.concatenate([np.full(m + own.size, -np.inf), np.where(rising[torn], 0.0, 1.0)]),
            np.concatenate([1 - fixed, np.ones(own.size), np.full(k, np.inf)]),
            tolerance=1e-10,
        )
        outcome = solved(model.run(self.deadline.left), self.deadline, {})
        outcome = model.refine(outcome, self.deadline.left)
        self.iterations += outcome.iterations
        self.programs += 1
        theta = float(outcome.x[-1])
        amount[single] = np.where(rising[of_single], theta, 1.0) * wanted[of_single]
        amount[columns] = np.maximum(outcome.x[:-1], 0.0) * scaled
        used = max(1.0, float((self.use @ amount).max()))
        amount /= used
        levels = np.bincount(self.user, weights=amount, minlength=n)
        self.x = np.zeros(self.program.n_pairs)
        self.x[self.column] = amount / self.per_level[self.column]
        part = float((levels[rising] / wanted[rising]).min())
        price = np.maximum(outcome.row_duals[:m], 0.0)
        if not price.any():
            price = self.kept_prices
        self.kept_prices = price
        response, proof = self._respond(price, wanted * np.where(rising, min(theta, 1.0), 1.0))
        before = int(self.kept.sum())
        self.kept |= response.level > 0
        self.grew = int(self.kept.sum()) > before
        log.debug("%d torn, %d columns, theta %.12g, %d new", k, columns.size, theta, self.kept.sum() - before)
        return part, proof
