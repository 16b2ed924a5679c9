r"""The polish of a tree that is filled: from a point and times that are known nearly to the last digit to those that are exact to rounding.

The course of a part is linear in the times t[1] <= t[2] <= ... at which somebody stops: the rates depend on who rises, and not on when.
With R[k] the rates before t[k], and S the shares at the beginning, the share of user n in the end is

    s[n] = S[n] + sum over k of R[k,n] (t[k] - t[k-1]).

As in `fairopt.solvers.leximin.polish`, the active sets are right much earlier than the digits. With them fixed, x and t solve equations,

    A x = b on limits with a price,    U[n] = s[n],    s = b on limits on shares that stop somebody,    x = 0 on dear pairs.

Limits without a price that this point exceeds are full, too, and join the equations. The parts are polished one after another, each from
the shares of the one before. Under a clamp rates also change where somebody has caught up, which is another equation; such trees are left
as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import DIGITS, SAME
from fairopt.program import Program, Solution, Stage, TreeFilling
from fairopt.program.share_limits import ShareLimits, during
from fairopt.program.tree_filling import Part, Shares, TreeCourse
from fairopt.solvers.leximin.least_change import LeastChange
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["polish_tree"]


def polish_tree(program: Program, goal: TreeFilling, solution: Solution) -> Solution | None:
    """Return the solution near this one that satisfies the equations of its levels; None where they cannot be solved.

    Parameters
    ----------
    program : Program
    goal : TreeFilling
        Its goal.
    solution : Solution
        With a point for the end of each part.
    """
    if goal.clamp or len(solution.parts) != len(goal.parts) or not goal.parts:
        return None
    if solution.raised or any(stage.floors for stage in solution.stages):  # these have programs of their own
        return None
    if len(program.users) * len(solution.stages) > SETTINGS.numbers_of_tree:
        return None
    shares, stages, ends = goal.nothing(), list[Stage](), list[FloatArray]()
    for number, part in enumerate(goal.parts):
        of_part = during(program, part, solution.bounds_of_part(number))
        own = [stage for stage in solution.stages if stage.part == number]
        found = _Part.of(of_part, goal, part, shares, own).polished(solution.parts[number])
        if found is None:
            return None
        end, times = found
        course = _course(of_part, goal, part, shares)
        for stage, t in zip(own, times.tolist(), strict=True):
            course.advance(t)
            course.stop(stage.users)
            stages.append(replace(stage, value=t))
        shares = course.shares
        ends.append(end)
    return replace(solution, x=ends[-1], parts=tuple(ends), stages=tuple(stages))


def _course(program: Program, goal: TreeFilling, part: Part, shares: Shares) -> TreeCourse:
    most = program.per_user(program.largest() * program.utilities)
    return goal.course(part, shares, most > 0, most, ShareLimits.of(program))


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A part of a filling as equations.

    Attributes
    ----------
    program : Program
        With the extra limits of the part.
    stages : sequence of Stage
        Those of the part.
    times : array (stages,)
        When they end.
    start : array (users,)
        Shares at the beginning.
    gains : sparse array (users, stages)
        What the share of a user in the end owes to each time; in parts of that time.
    on_shares : ShareLimits
    stops : bool array (share limits,)
        Which of these stop somebody.
    """

    program: Program
    stages: Sequence[Stage]
    times: FloatArray
    start: FloatArray
    gains: sp.csr_array
    on_shares: ShareLimits
    stops: BoolArray

    @classmethod
    def of(cls, program: Program, goal: TreeFilling, part: Part, shares: Shares, stages: Sequence[Stage]) -> _Part:
        """Follow the course through a part that begins with these shares."""
        course = _course(program, goal, part, shares)
        on_shares = ShareLimits.of(program)
        times, stops = np.array([stage.value for stage in stages]), np.zeros(on_shares.bounds.size, bool)
        rates = np.zeros((times.size + 1, shares.users.size))  # and none after the last
        for k, stage in enumerate(stages):
            rates[k] = np.where(course.rising, course.rate, 0.0)
            course.advance(stage.value)
            if stage.prices is None:
                stops |= (on_shares.left(course.shares.users) <= 2 * SAME * on_shares.bounds) & (on_shares.uses @ rates[k] > 0)
            course.stop(stage.users)
        gains = sp.csr_array(((rates[:-1] - rates[1:]) * _size(times)[:, None]).T)
        return cls(program, stages, times, shares.users, gains, on_shares, stops)

    def polished(self, x: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the point and the times that satisfy the equations, near x; None where nothing does."""
        limits = self.program.limits
        claimed = self.start + self.gains @ (self.times / _size(self.times))
        used, full = self._sets(x, claimed)
        if not used.any():
            return x, self.times
        for _ in range(SETTINGS.rounds_of_full):
            found = self._solved(x, claimed, used, full)
            if found is None:
                return None
            exceeded = (limits.matrix @ found[0] > limits.bounds * (1 + DIGITS)) & ~full
            if not exceeded.any():
                break
            full |= exceeded
        return found

    def _solved(self, x: FloatArray, claimed: FloatArray, used: BoolArray, full: BoolArray) -> tuple[FloatArray, FloatArray] | None:
        """Solve the equations of these active sets, each in parts of its right-hand side."""
        program, limits, start = self.program, self.program.limits, self.start
        pairs, rows, users = np.flatnonzero(used), np.flatnonzero(full), np.flatnonzero(claimed > 0)
        entries = program.utilities[pairs], (program.pair_users[pairs], np.arange(pairs.size))
        by_user = sp.csr_array(entries, shape=(start.size, pairs.size))
        of_limits = limits.matrix[rows][:, pairs] / limits.bounds[rows][:, None]
        equations = sp.csr_array(sp.vstack([of_limits, by_user[users] / claimed[users, None]]))
        shared = sp.csr_array(sp.vstack([sp.csr_array((rows.size, self.times.size)), self.gains[users] / claimed[users, None]]))
        fixed = np.concatenate([np.ones(rows.size), start[users] / claimed[users]])
        uses = sp.csr_array(self.on_shares.uses[np.flatnonzero(self.stops)] / self.on_shares.bounds[self.stops][:, None])
        of_stops, left = sp.csr_array(uses @ self.gains), 1.0 - np.asarray(uses @ start)
        y, t = x[pairs], self.times / _size(self.times)
        system = LeastChange.of(sp.csr_array(equations * x[pairs]), shared, of_stops)
        if system is None:
            return None
        for _ in range(SETTINGS.refinements):
            change, of_times = system.step(fixed + shared @ t - equations @ y, left - of_stops @ t if of_stops.nnz else None)
            y, t = np.maximum(y + x[pairs] * change, 0.0), t + of_times
        answer = np.zeros(x.size)
        answer[pairs] = y
        return (answer, t * _size(self.times)) if np.isfinite(answer).all() and np.isfinite(t).all() else None

    def _sets(self, x: FloatArray, shares: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Return which pairs are used, (pairs,), and which limits have a price at some level, (limits,)."""
        program, limits, users = self.program, self.program.limits, self.program.pair_users
        used, priced = x > 0, np.zeros(len(limits), bool)
        for stage in self.stages:
            if stage.prices is None:
                continue
            prices = np.maximum(stage.prices, 0.0)
            cost = (limits.transposed @ prices) / program.utilities
            spent = float(prices @ limits.bounds)
            used &= (cost - program.cheapest(cost)[users]) * shares[users] <= SETTINGS.dear * spent
            priced |= prices * limits.bounds > SETTINGS.priced * spent
        return used, priced


def _size(times: FloatArray) -> FloatArray:
    """Return the units of times."""
    return np.where(times > 0, times, 1.0)
