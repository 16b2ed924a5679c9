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
from fairopt.solvers.highs_model import HighsModel, Status, solved
from fairopt.solvers.responses import Response, Users

__all__ = ["SiftedLevels"]

log = logging.getLogger(__name__)

_ROUNDS = 40  # of prices that follow the crowd
_LOOKS = 8  # prices around those at the end, whose choices are kept
_NEAR, _WIDER = 0.01, 4.0  # how far around in logarithms, and how much farther where that was not enough
_TORN = 1e-13
_LEAST = 1e-3  # of what is wanted: without it nothing would be chosen
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
        self.kept, self.torn = np.zeros(self.column.size, bool), np.zeros(self.who.size, bool)
        self.near, self.width = np.full(self.shared.size, 1.0 / self.shared.size), _NEAR
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
            if proof.bound < best:
                best, self.near, self.proof = proof.bound, price, proof
            t = min(t, best)
            load = self.use @ response.level
            price = price * np.exp((load / load.max() - 1) * 2 / np.sqrt(step + 1))
            price /= price.sum()
        self.kept, self.torn = response.level > 0, np.zeros(self.who.size, bool)
        self._look_around(self._wanted(t), _NEAR)
        # What settled users have now is always possible.
        held = np.where(self.rising[self.who][self.user], self.kept, self.x[self.column] > 0)
        self.torn |= np.bincount(self.user[held != self.kept], minlength=self.who.size) > 0
        self.kept |= held
        return best

    def _look_around(self, wanted: FloatArray, width: float) -> None:
        """Keep what users choose at prices that are off by a factor of up to 1 + width."""
        rng = np.random.default_rng(0)
        for _ in range(_LOOKS):
            price = self.near * np.exp(width * rng.uniform(-1, 1, self.near.size))
            self._keep(self._respond(price, wanted)[0])

    def _keep(self, response: Response) -> int:
        """Keep the pairs that users choose now; who chooses others than before is torn. Return how many users have changed."""
        chosen = response.level > 0
        changed = np.bincount(self.user[chosen != self.kept], minlength=self.who.size) > 0
        new = np.bincount(self.user[chosen & ~self.kept], minlength=self.who.size) > 0
        number = int((new | (changed & ~self.torn)).sum())
        self.torn |= changed
        self.kept |= chosen
        return number

    def _sure(self, wanted: FloatArray, rising: np.ndarray) -> tuple[FloatArray, FloatArray]:
        """Return levels of the pairs of sure users, (pairs,), as a constant and a multiple of theta: of one pair, or of two at the limit."""
        constant, multiple = np.zeros(self.column.size), np.zeros(self.column.size)
        pairs = np.flatnonzero(self.kept & ~self.torn[self.user])
        user = self.user[pairs]
        first = np.flatnonzero(np.diff(user, prepend=-1))
        number = np.diff(np.append(first, pairs.size))
        one, two = pairs[first[number == 1]], pairs[first[number == 2]]
        other = pairs[first[number == 2] + 1]
        multiple[one] = wanted[self.user[one]]
        own, bound = self.users.own, self.users.bound[self.user[two]]
        apart = own[two] - own[other]  # l[two] + l[other] = wanted theta, own[two] l[two] + own[other] l[other] = bound
        constant[two], constant[other] = bound / apart, -bound / apart
        multiple[two], multiple[other] = (
            -own[other] * wanted[self.user[two]] / apart,
            own[two] * wanted[self.user[two]] / apart,
        )
        settled = ~rising[self.user]
        constant[settled] += multiple[settled]
        multiple[settled] = 0.0
        return constant, multiple

    def _solve_lp(self) -> tuple[float, Proof]:
        """Solve the LP of the torn users; return the part of what is wanted that all reach, and what its prices prove."""
        wanted, n, m = self._wanted(self.t_unit), self.who.size, self.shared.size
        rising = self.rising[self.who]
        torn = self.torn
        fixed, rise = self._sure(wanted, rising)  # levels of the pairs of sure users: fixed + rise theta
        with_t = self.use @ rise

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
            np.concatenate([1 - self.use @ fixed, np.ones(own.size), np.full(k, np.inf)]),
            tolerance=1e-10,
        )
        outcome = model.run(self.deadline.left)
        mixing = ~torn & (np.bincount(self.user[self.kept], minlength=n) > 1)
        if outcome.status is Status.INFEASIBLE and mixing.any():  # the mixtures of others may want too much
            self.width *= _WIDER
            if self.width < 1:
                self._look_around(wanted, self.width)
            else:
                self.torn |= mixing
            return self._solve_lp()
        outcome = solved(outcome, self.deadline, {})
        outcome = model.refine(outcome, self.deadline.left)
        self.iterations += outcome.iterations
        self.programs += 1
        theta = float(outcome.x[-1])
        amount = fixed + rise * theta
        wrong = np.unique(self.user[amount < -_TORN * wanted[self.user]])
        amount = np.maximum(amount, 0.0)
        amount[columns] = np.maximum(outcome.x[:-1], 0.0) * scaled
        used = max(1.0, float((self.use @ amount).max()))
        amount /= used
        levels = np.bincount(self.user, weights=amount, minlength=n)
        self.x = np.zeros(self.program.n_pairs)
        self.x[self.column] = amount / self.per_level[self.column]
        part = float((levels[rising] / wanted[rising]).min())
        price = np.maximum(outcome.row_duals[:m], 0.0)
        if not price.any():
            price = self.near
        self.near = price
        response, proof = self._respond(price, wanted * np.where(rising, min(max(theta, _LEAST), 1.0), 1.0))
        self.torn[wrong] = True
        new = self._keep(response) + wrong.size
        self.grew = new > 0
        log.debug("%d torn, %d columns, theta %.12g, %d new", k, columns.size, theta, new)
        return part, proof
