"""The program of some users apart, and of one user for each choice of the others (`fairopt.solvers.interior_point.by_sample`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.program import Solution
from fairopt.solvers.active_sets.problem import LARGEST_LOG
from fairopt.solvers.interior_point.sample_choices import Choices
from fairopt.solvers.interior_point.sample_columns import Columns
from fairopt.solvers.interior_point.sample_users import Bought, Users
from fairopt.solvers.interior_point.settings import SAMPLES

__all__ = ["Reduced", "Start"]


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where a path begins: the values of the pairs of a program, (pairs,), and prices of its limits, (limits,), in any unit of money."""

    x: FloatArray
    prices: FloatArray


@dataclass(frozen=True, eq=False)
class Reduced:
    """The users apart, and one user for all others with the same choice.

    Attributes
    ----------
    users : Users
    bought : Bought
        What tells the choices.
    apart : bool array (users,)
    kept : bool array (pairs,)
        The pairs that users apart keep.
    is_rough : bool
        Do the prices only tell who is apart?
    """

    users: Users
    bought: Bought
    apart: BoolArray
    kept: BoolArray
    is_rough: bool

    @cached_property
    def pairs(self) -> IntArray:
        """Those of the users apart."""
        return np.flatnonzero(self.kept)

    @cached_property
    def choices(self) -> Choices:
        """The users who are not apart."""
        return Choices.of(self.users, self.bought, np.flatnonzero(~self.apart))

    @cached_property
    def columns(self) -> Columns:
        """The columns of the users apart, then those of the others."""
        users, pairs, choices = self.users, self.pairs, self.choices
        number = (np.cumsum(self.apart) - 1)[users.user[pairs]]
        after = int(self.apart.sum())
        return Columns(
            np.append(number, after + choices.columns.number),
            np.append(users.limit[pairs], choices.columns.limit),
            np.append(1 / users.q[pairs], choices.columns.utilities),
            np.append(users.h[pairs] / users.q[pairs], choices.columns.own),
            np.append(users.log_phi[self.apart], choices.columns.log_weights),
        )

    def start(self, prices: FloatArray) -> Start:
        """Return where the path begins: half of what users buy at prices of limits of servers, with a part of an even share.

        No price is next to nothing there, and own limits have room.
        """
        users, bought, columns = self.users, self.bought, self.columns
        shift = 0.0 if users.have_own else float(bought.log_t.max())
        z, t, (first, second) = np.zeros(users.q.size), np.exp(bought.log_t - shift), users.parts(bought)
        z[bought.first] = first * t * users.q[bought.first]
        if users.have_own:
            split = bought.second >= 0
            z[bought.second[split]] = (second * t)[split] * users.q[bought.second[split]]
        size = np.append(np.ones(int(self.apart.sum())), self.choices.size)
        number = (size / np.bincount(columns.number))[columns.number]
        x: FloatArray = np.append(z[self.pairs], self.choices.together_of(z))
        use, each = np.bincount(columns.limit, weights=x), np.bincount(columns.limit, weights=number)
        x = x / np.maximum(use, 1.0 if users.have_own else use.max())[columns.limit]
        x = np.asarray(0.5 * ((1 - SAMPLES.even) * x + SAMPLES.even * number / each[columns.limit]))
        own = np.bincount(columns.number, weights=columns.own * x)
        x = np.asarray(x / np.maximum(1.0, 2 * own)[columns.number])
        if not users.have_own:
            return Start(x, prices)
        money = np.exp(bought.log_least + bought.log_t)
        of_own = np.where(users.own_row >= 0, np.maximum(bought.own, SAMPLES.dear * money), 0.0)
        of_own = np.append(of_own[self.apart], np.bincount(self.choices.choice, weights=of_own[~self.apart]))
        of_own = of_own[np.bincount(columns.number, weights=columns.own) > 0]
        least = SAMPLES.dear * max(float(prices.max()), float(money.sum()) / prices.size)
        return Start(x, np.append(np.maximum(prices, least), of_own))

    def missing(self, bought: Bought) -> BoolArray:
        """Return the pairs to keep besides at other prices, at which users have other choices or are about to move, (pairs,)."""
        users = self.users
        if not users.have_own:  # a choice changes only where a pair that the user does not have is near
            missing: BoolArray = bought.excess < SAMPLES.clear
            missing[self.bought.first[~self.apart]] = False
            missing &= ~self.kept
            moved = users.user[missing]
            missing[self.bought.first[moved[~self.apart[moved]]]] = True
            return missing
        changed = ~self.apart & ~(self.bought.same_as(bought) & (users.jumps(bought) >= SAMPLES.clear))
        near = (self.apart | changed)[users.user] & (bought.excess < SAMPLES.clear)
        near[self.bought.pairs_of(changed)] = near[bought.pairs_of(changed)] = True
        return np.asarray(near & ~self.kept)

    def answer(self, found: Solution, bought: Bought, steps: int) -> Solution:
        """Return the answer of all users; ``bought`` is what they buy at the prices that were found."""
        assert found.prices is not None
        users, program = self.users, self.users.program
        z = np.zeros(users.q.size)
        z[self.pairs] = found.x[: self.pairs.size]
        self.choices.share(z, found.x[self.pairs.size :])
        prices, bounds = np.full(len(program.limits), -np.inf), program.limits.bounds
        prices[users.shared] = np.log(found.prices[: users.shared.size])
        if users.have_own:
            have_own = users.own_row >= 0
            own = np.where(have_own, bought.own, 0.0)
            apart = np.flatnonzero(self.apart & have_own)
            own[apart] = found.prices[users.shared.size :][: apart.size]
            prices[users.own_row[have_own]] = np.log(own[have_own])
        prices += bought.log_unit - np.log(bounds)
        prices = np.exp(prices - max(0.0, float(prices.max()) - LARGEST_LOG))  # in parts of the largest where floating point ends
        some = np.flatnonzero(z)
        z[some] /= users.q[some] * program.utilities[some]
        return replace(found, x=z, prices=prices, iterations=steps)
