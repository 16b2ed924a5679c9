"""Levels of many users with limits of their own who share few limits: linear programs over those who are torn between pairs.

At the prices of an optimal level nearly every user knows what to do: run on its cheapest pair, or, where a limit of its own stops that, on
a mixture of two (``responses``). Then what it uses is a linear function of its level, and it needs no variables. Only users who are torn
make a linear program. From prices that follow the crowd, with w[n] = min(guess, cap[n]) and L[n] of those settled:

    maximise theta   subject to   use of torn users + (use of sure users at theta w, L) <= 1
                                  sum_i l[n,i] >= theta w[n], L[n],     own limits, l >= 0            (n torn)

Let all users respond to its prices. By weak duality that bounds the level of the whole program, whoever was left out, and it shows who was
wrongly sure; what they want now is kept for the next LP. The point of the LP is feasible: when the two meet, nothing was missing. The first
guess is already off by 1e-4 to 1e-8 of itself, so that two LPs of some hundred torn users make a level of thousands.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.program import Leximin, LimitKind, Program, Solution
from fairopt.solvers.backend import Deadline, final_levels
from fairopt.solvers.via_highs.levels import Levels
from fairopt.solvers.via_highs.model import HighsModel, Status, solved
from fairopt.solvers.via_highs.proofs import Proof
from fairopt.solvers.via_highs.responses import Response, Users

__all__ = ["solve_sifted", "wins"]

log = logging.getLogger(__name__)

_ROUNDS = 40  # of prices that follow the crowd
_LOOKS = 8  # prices around those at the end, whose choices are kept
_NEAR, _WIDER = 0.01, 4.0  # how far around in logarithms, and how much farther where that was not enough
_MOST_LPS = 60  # for a level; two or three are usual
_ROUNDING = 1e-13  # part of a user's level
_LEAST = 1e-3  # of what is wanted: without it nothing would be chosen
# From how many users on, and users to a shared limit. Seconds of a processor, this and the LPs of all users, jobs that are on one server at
# a time x classes: 60 x 3 0.049, 0.021; 200 x 3 0.041, 0.051; 1,000 x 3 0.052, 0.35; 300 x 6 0.049, 0.097; 1,000 x 10 0.073, 1.3. Where
# no user has a limit of its own but tasks, the LPs are better (13 levels of 1,000 x 10 x 2 0.46, 0.092): prices of twenty limits are
# harder to guess, and nothing but a few servers is to be shared among the users who are left at a level.
_USERS, _USERS_PER_LIMIT = 200, 30


def wins(program: Program) -> bool:
    """Is this the faster way, by measurement, to a leximin of users with limits of their own? The figures are at ``_USERS``."""
    limits = program.limits
    if not isinstance(program.goal, Leximin) or (limits.kinds == LimitKind.SLICE).any():
        return False
    own = limits.keys[limits.kinds == LimitKind.PARALLELISM, 0]
    shared = int(limits.of_servers.sum())
    users = program.members.size
    return bool(shared > 0 and own.size and users >= max(_USERS, _USERS_PER_LIMIT * shared)) and _one_each(program)


def _one_each(program: Program) -> bool:
    """Has everybody one limit of its own at most that is more than a cap on its level?"""
    assert isinstance(program.goal, Leximin)
    own = Levels.own_limits(program, program.goal)
    return bool(np.bincount(own.users[~own.even], minlength=1).max() <= 1)


def solve_sifted(program: Program, goal: Leximin, tolerance: float, deadline: Deadline) -> Solution | None:
    """Return the leximin of a program for which this `wins`, None where an LP failed or the bound and the level did not meet."""
    try:
        with np.errstate(all="ignore"):  # what overflows is lost, and the certificate judges
            return _SiftedLevels(program, goal, tolerance, deadline).solve()
    except _LostError as lost:
        log.info("%s", lost)
        return None


class _LostError(Exception):
    """These LPs lead nowhere."""


class _SiftedLevels(Levels):
    """A leximin whose LPs hold torn users only. Users (members) and pairs are those who can have anything, levels l in units of U / phi."""

    def _caps_matter(self) -> bool:
        return True

    def _prepare(self) -> None:
        program, limits, per_level = self.program, self.program.limits, self.per_level[self.column]
        self.who = np.flatnonzero(self.member)
        self.user = np.unique(program.pair_users[self.column], return_inverse=True)[1]
        self.shared = np.flatnonzero(limits.of_servers & (limits.bounds > 0))
        matrix = limits.matrix[:, self.column]
        self.use: Any = sp.csc_array(matrix[self.shared] / limits.bounds[self.shared][:, None] / per_level)
        self.use_by_column: Any = sp.csr_array(self.use.T)
        uneven = self.own.rows[~self.own.even]
        uneven = uneven[self.member[limits.keys[uneven, 0]]]
        self.own_row = np.full(self.who.size, -1)
        self.own_row[np.searchsorted(self.who, limits.keys[uneven, 0])] = uneven
        self.bounded = np.flatnonzero(self.own_row >= 0)
        bound = np.full(self.who.size, np.inf)
        bound[self.bounded] = limits.bounds[self.own_row[self.bounded]]
        self.users = Users(self.user, np.asarray(matrix[uneven].sum(axis=0)).ravel() / per_level, bound)
        self.t_unit = min(self._guess(), self._most())

    def _restart(self, t_unit: float) -> None:
        self.t_unit = t_unit

    def _wanted(self, t: float) -> FloatArray:
        """Return what everybody shall have when those who rise reach t, (users,)."""
        return np.asarray(np.where(self.rising, np.minimum(self.cap, t), self.level)[self.who])

    # Prices ----------------------------------------------------------------------------------------------------------------------

    def _respond(self, price: FloatArray, wanted: FloatArray) -> tuple[Response, Proof]:
        """Return what users do at prices of whole shared limits, and what that proves."""
        limits, bounded = self.program.limits, self.bounded
        response = self.users.respond(self.use_by_column @ price, wanted)
        full, q = np.zeros(len(limits)), np.zeros(self.cap.size)
        full[self.shared] = price / limits.bounds[self.shared]
        full[self.own_row[bounded]] = response.y[bounded]
        q[self.who] = response.q
        spent = float(price.sum() + response.y[bounded] @ self.users.bound[bounded])
        return response, self._proved(full, q, spent)

    def _guess(self) -> float:
        """Return the lowest bound by prices that rise where the crowd is, and keep what users choose around these prices."""
        best, t = np.inf, self._most()
        self.near = price = np.full(self.shared.size, 1.0 / self.shared.size)
        self.width, self.tries = _NEAR, 0
        for step in range(_ROUNDS):
            response, proof = self._respond(price, self._wanted(t))
            if proof.bound < best:
                best, self.near, self.proof = proof.bound, price, proof
            t = min(t, best)
            load = self.use @ response.level
            price = price * np.exp((load / load.max() - 1) * 2 / np.sqrt(step + 1))
            price /= price.sum()
        self.kept, self.torn = response.level > 0, np.zeros(self.who.size, bool)
        self._look_around(self._wanted(t))
        # What settled users have now is always possible.
        held = np.where(self.rising[self.who][self.user], self.kept, self.x[self.column] > 0)
        self.torn |= self._whose(held != self.kept)
        self.kept |= held
        return best

    def _look_around(self, wanted: FloatArray) -> None:
        """Keep what users choose at prices near those that gave the best bound."""
        rng = np.random.default_rng(0)
        for _ in range(_LOOKS):
            price = self.near * np.exp(self.width * rng.uniform(-1, 1, self.near.size))
            self._keep(self._respond(price, wanted)[0])

    def _keep(self, response: Response) -> bool:
        """Keep the pairs that users choose now; who chooses others than before is torn. Return whether there is anything new."""
        chosen = response.level > 0
        changed = self._whose(chosen != self.kept)
        new = bool((changed & ~self.torn).any() or (chosen & ~self.kept).any())
        self.torn |= changed
        self.kept |= chosen
        return new

    def _whose(self, pairs: BoolArray) -> BoolArray:
        return np.asarray(np.bincount(self.user[pairs], minlength=self.who.size) > 0)

    # Linear programs -------------------------------------------------------------------------------------------------------------

    def _sure(self, wanted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return levels of the pairs of sure users, (pairs,), as a constant and a multiple of theta.

        One pair has all of it. Two, at the limit b of the user's own, solve l + l' = theta w and a l + a' l' = b.
        """
        constant, multiple = np.zeros(self.column.size), np.zeros(self.column.size)
        pairs = np.flatnonzero(self.kept & ~self.torn[self.user])
        first = np.flatnonzero(np.diff(self.user[pairs], prepend=-1))
        number = np.diff(np.append(first, pairs.size))
        one, two, other = pairs[first[number == 1]], pairs[first[number == 2]], pairs[first[number == 2] + 1]
        multiple[one] = wanted[self.user[one]]
        own, bound, both = self.users.own, self.users.bound[self.user[two]], wanted[self.user[two]]
        apart = own[two] - own[other]
        constant[two], constant[other] = bound / apart, -bound / apart
        multiple[two], multiple[other] = -own[other] * both / apart, own[two] * both / apart
        settled = ~self.rising[self.who][self.user]
        return constant + np.where(settled, multiple, 0.0), np.where(settled, 0.0, multiple)

    def _solve_lp(self) -> tuple[float, Proof]:
        wanted, rising = self._wanted(self.t_unit), self.rising[self.who]
        constant, multiple = self._sure(wanted)
        columns = np.flatnonzero(self.kept & self.torn[self.user])
        model = self._model(columns, wanted, constant, multiple)
        while True:
            self.tries += 1
            if self.tries > _MOST_LPS:
                raise _LostError("level and bound did not meet")
            outcome = model.run(self.deadline.left)
            if outcome.status in (Status.OPTIMAL, Status.TIME_LIMIT):
                break
            mixing = ~self.torn & (np.bincount(self.user[self.kept], minlength=self.who.size) > 1)
            if outcome.status is not Status.INFEASIBLE or not mixing.any():
                raise _LostError(f"HiGHS: {outcome.status.value}")
            self.width *= _WIDER  # mixtures of sure users want too much: more of them have to give way
            if self.width < 1:
                self._look_around(wanted)
            else:
                self.torn |= mixing
            constant, multiple = self._sure(wanted)
            columns = np.flatnonzero(self.kept & self.torn[self.user])
            model = self._model(columns, wanted, constant, multiple)
        outcome = model.refine(solved(outcome, self.deadline, final_levels(self.program, self.stages)), self.deadline.left)
        self.iterations += outcome.iterations
        self.programs += 1

        theta = float(outcome.x[-1])
        level = constant + multiple * theta
        level[columns] = outcome.x[:-1] * wanted[self.user[columns]]
        wrong = self._whose(level < -_ROUNDING * wanted[self.user])  # mixtures with less than nothing
        level = np.maximum(level, 0.0)
        level /= max(1.0, float((self.use @ level).max()))
        self.x[self.column] = level / self.per_level[self.column]
        reached = np.bincount(self.user, weights=level, minlength=self.who.size)
        price = np.maximum(outcome.row_duals[: self.shared.size], 0.0)
        self.near = price if price.any() else self.near
        at = np.where(rising, min(max(theta, _LEAST), 1.0), 1.0)
        response, proof = self._respond(self.near, wanted * at)
        self.torn |= wrong
        self.grew = self._keep(response) or bool(wrong.any())
        log.debug("%d torn, %d columns, theta %.12g", int(self.torn.sum()), columns.size, theta)
        return float((reached[rising] / wanted[rising]).min()), proof

    def _model(self, columns: np.ndarray, wanted: FloatArray, constant: FloatArray, multiple: FloatArray) -> HighsModel:
        """Columns: those of torn users, in parts of what they want, then theta. Rows: shared limits, own limits, torn users."""
        user, own = self.user[columns], self.users.own[columns] * wanted[self.user[columns]]
        torn = np.flatnonzero(self.torn)
        rises = self.rising[self.who][torn]
        limited = np.flatnonzero(np.isfinite(self.users.bound[torn]))
        by_user = sp.csr_array((np.ones(columns.size), (np.searchsorted(torn, user), np.arange(columns.size))), (torn.size, columns.size))
        theta = np.concatenate([self.use @ multiple, np.zeros(limited.size), -rises.astype(float)])
        matrix = sp.vstack(
            [
                self.use[:, columns] * wanted[user],
                by_user[limited] * np.where(np.isfinite(self.users.bound[user]), own / self.users.bound[user], 0.0),
                by_user,
            ]
        )
        lowest = np.full(self.shared.size + limited.size, -np.inf)
        return HighsModel(
            np.append(np.zeros(columns.size), 1.0),
            np.zeros(columns.size + 1),
            np.full(columns.size + 1, np.inf),
            sp.csc_array(sp.hstack([matrix, sp.csc_array(theta[:, None])])),
            np.concatenate([lowest, np.where(rises, 0.0, 1.0)]),
            np.concatenate([1 - self.use @ constant, np.ones(limited.size), np.full(torn.size, np.inf)]),
            tolerance=1e-10,
        )
