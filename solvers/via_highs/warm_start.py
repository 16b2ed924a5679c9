"""One leximin after another on the same columns and limits, as users have more or fewer tasks: each from where the last one ended.

What changes between two moments of a simulation is how many tasks users have, and sometimes weights. In the linear programs of
`fairopt.solvers.via_highs.levels` these are bounds of the users' rows and the coefficients of t, so the model is built once, and

* the first program of a moment starts at the basis at which that of the last moment ended. As only bounds differ, its prices are still
  good, and dual simplex needs few pivots;
* users whose caps lie below the last first level are settled there *before* it. That is a guess. If the level t that it leads to is below
  some of these caps, their users are settled no longer, and it is solved again. Once no cap of theirs lies above t, some allocation gives
  them their caps and all others t, so that t is not above the first level; from there it goes on as always. If the guess leaves no
  allocation at all, nobody is settled.

The answer is a solution of the program as that of any engine is, with prices that its certificate is computed from: no part of the
guess is believed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.program import Leximin, LimitKind, Program, Solution
from fairopt.program.own_limits import OwnLimits
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.levels import Levels
from fairopt.solvers.via_highs.model import HighsModel, Outcome, Status

__all__ = ["RepeatedLevels"]

_TOLERANCE = 1e-8
_ROUNDING = 1e-15
_DUAL = 1  # HiGHS's number for dual simplex


class RepeatedLevels(Levels):
    """The leximins of programs that differ in the tasks of their users, and in weights.

    Parameters
    ----------
    program : Program
        One that `suits`.
    """

    def __init__(self, program: Program) -> None:
        assert isinstance(program.goal, Leximin)
        self.early = np.zeros(len(program.users), bool)  # settled by the guess
        self.first_level, self.first_basis = 0.0, None
        super().__init__(program, program.goal, _TOLERANCE, Deadline(None))
        self.task_share = program.per_user(program.utilities) / np.maximum(program.per_user(np.ones(program.n_pairs)), 1.0)

    @staticmethod
    def suits(program: Program) -> bool:
        """Is the goal a leximin, and has each user in it a limit > 0 on its tasks, worth the same everywhere, and no other of its own?"""
        if not isinstance(program.goal, Leximin) or program.integral or not program.n_pairs:
            return False
        limits, own = program.limits, OwnLimits(program, program.utilities)
        of_tasks = (limits.kinds[own.rows] == LimitKind.TASKS) & own.even
        return bool(of_tasks.all() and np.isin(program.members, own.users[own.bounds > 0]).all())

    def solve_again(self, tasks: FloatArray, weights: FloatArray) -> tuple[Program, Solution]:
        """Return the program with these tasks, finite and >= 0 and not all 0, and these weights, (users,), and its solution.

        Raises
        ------
        NoSolution
            HiGHS did not find one. This model should not be used any more.
        """
        limits = self.program.limits
        bounds, of_tasks = limits.bounds.copy(), limits.kinds == LimitKind.TASKS
        bounds[of_tasks] = tasks[limits.keys[of_tasks, 0]]
        self.program = replace(self.program, limits=replace(limits, bounds=bounds), goal=Leximin(weights))
        lighter = self.weights / weights
        self.weights = weights.copy()
        self.unit = self.unit * lighter  # so that a column adds to its user's level as many units of it as before
        self.per_level = self.per_level * lighter[self.program.pair_users]
        self.cap = np.where(self.member, tasks * self.task_share / weights, 0.0)
        self.early = self.member & (self.cap <= self.first_level)
        if (self.early == self.member).all():
            self.early[self.cap.argmax()] = False  # somebody has to rise
        self.rising = self.member & ~self.early
        self.level = np.where(self.early, self.cap, 0.0)
        self.stages, self.slack = [], 0.0
        self._write(np.flatnonzero(self.member), (self.t_rises != self.rising) | (lighter != 1.0))
        # A level beyond all caps says no more than one that is twice as high as they are.
        self.model.set_column_bounds(self.column.size, 0.0, 2.0 * float(self.cap.max()) / self.t_unit)
        if self.first_basis is not None:
            self.model.basis = self.first_basis
            self.model.set_options(simplex_strategy=_DUAL)
        return self.program, self.solve()

    def _build(self) -> HighsModel:
        self.t_rises = self.rising.copy()  # in whose rows t stands
        return super()._build()

    def _settle_some(self) -> None:
        """Solve an LP, and take back what was guessed wrongly; else settle users whose caps are reached, else go on as always."""
        outcome = self._run()
        t = self._reached() * self.t_unit
        above = self.early & (self.cap > t)
        if above.any():
            self._release(above)
            return
        self.early[:] = False
        if not self.stages:
            self.first_level, self.first_basis = t, self.model.basis
        capped = np.flatnonzero(self.rising & (self.cap <= t * (1 + _ROUNDING)))
        if capped.size:
            self._settle(capped, self.cap[capped])
        else:
            self._settle_at_bottleneck(t, self._proof(outcome))

    def _attempt(self) -> Outcome:
        if self.early.any():
            outcome = self.model.run(self.deadline.left)
            if outcome.status is Status.OPTIMAL:
                self.iterations += outcome.iterations
                return outcome
            self._release(self.early & (self.cap > 0))  # there is no such allocation
        return super()._attempt()

    def _release(self, users: BoolArray) -> None:
        """Let users rise who were settled by the guess."""
        self.early &= ~users
        self.rising |= users
        self.level[users] = 0.0
        self._write(np.flatnonzero(users), users)

    def _settle(self, users: np.ndarray, levels: FloatArray) -> None:
        self.level[users] = levels
        self.rising[users] = False
        if self.rising.any():  # else this model is not run any more
            self._write(users, self.t_rises)

    def _write(self, users: np.ndarray, changed: BoolArray) -> None:
        """Bring the rows of users up to date; t stands in a row, with another coefficient than before, where it changed."""
        rows = self.user_rows
        for n in users[changed[users]]:
            self.model.set_coefficient(rows[n], self.column.size, -self.wanted[n] / self.unit[n] if self.rising[n] else 0.0)
        self.t_rises[users] = self.rising[users]
        self.model.set_row_bounds(rows[users], self.level[users] / self.unit[users], np.full(users.size, np.inf))
