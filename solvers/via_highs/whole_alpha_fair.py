r"""Whole tasks of an alpha-fair goal, by branch and cut over cutting planes.

With few tasks some users may have nothing, and g(0) is minus infinity for alpha >= 1 (`fairopt.program.AlphaFair`). So first as many users
as possible have something, and of all such allocations that is best which has the largest sum of w[n] g(U[n]) over those who have: for
alpha = 1 the maximum Nash welfare of Caragiannis et al. (2016). For alpha < 1, g(0) = 0, and the sum alone counts.

g is concave, so it is the lowest of lines: with z[n] = 1 for those who have something, least[n] <= U[n] <= most[n], and gains v[n] >= 0,

    maximise    sum of w[n] (v[n] + g(least[n]) z[n])
    subject to  v[n] <= a z[n] + s U[n]                  for lines a + s U >= g(U) - g(least[n])

Where all tasks of a user are worth the same u, U[n] is a multiple of u, and the lines through neighbouring multiples are exact there; else
a line is a tangent. A few lines are there from the start. Those at the utilities of an answer are added until none of its gains is larger
than g says: then no whole tasks have a larger sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.errors import NoSolution
from fairopt.instance.tolerances import FITS
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status, solved
from fairopt.solvers.via_highs.rows import Maker
from fairopt.solvers.via_highs.ruled_whole import Pairs
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["solve_whole_alpha_fair"]

_LINES = 8  # of each user at the start


def solve_whole_alpha_fair(program: Program, goal: AlphaFair, deadline: Deadline, branch_and_cut: Maker = HighsModel) -> Solution:
    """Return the best whole tasks.

    Raises
    ------
    NoSolution
        At the deadline, with the best tasks so far; where no whole tasks obey the rules.
    """
    return _Search(program, goal, deadline, branch_and_cut).solve()


class _Search:
    """The model, which grows by lines."""

    def __init__(self, program: Program, goal: AlphaFair, deadline: Deadline, branch_and_cut: Maker) -> None:
        self.program, self.goal, self.deadline = program, goal, deadline
        self.pairs = Pairs(program, deadline, branch_and_cut)
        self.rows, self.columns = self.pairs.rows()
        users, worth, some = program.pair_users, program.utilities, self.pairs.upper > 0
        size = len(program.users)
        self.most = program.per_user(worth * self.pairs.upper)
        self.least, largest = np.full(size, np.inf), np.zeros(size)
        np.minimum.at(self.least, users[some], worth[some])
        np.maximum.at(largest, users[some], worth[some])
        self.even = self.least == largest
        self.members = np.flatnonzero(self.most > 0)
        self.best = np.zeros(program.n_pairs)
        self.gap, self.iterations, self.runs = 0.0, 0, 0
        self.has = {int(n): self.rows.column(1.0, whole=True) for n in self.members}
        self.gains: dict[int, int] = {}
        for n, has in self.has.items():
            utility = self._utility(n)
            self.rows.row(utility | {has: -float(self.least[n])}, lower=0.0)
            self.rows.row(utility | {has: -float(self.most[n])}, upper=0.0)

    def solve(self) -> Solution:
        """Find how many have something, then the best of these."""
        goal, weights = self.goal, self.goal.weights
        if goal.alpha >= 1:
            outcome = self._run(dict.fromkeys(self.has.values(), 1.0))
            self.rows.row(dict.fromkeys(self.has.values(), 1.0), lower=float(np.round(outcome.x[[*self.has.values()]]).sum()))
        for n in self.has:
            self.gains[n] = self.rows.column(max(self._gain(n, self.most[n]), 0.0))
            for at in np.geomspace(self.least[n], self.most[n], _LINES).tolist():
                self._add_lines(n, at)
        maximise = {gain: float(weights[n]) for n, gain in self.gains.items()}
        maximise |= {has: float(weights[n]) * self._g(self.least[n]) for n, has in self.has.items()}
        size = max(map(abs, maximise.values()), default=1.0) or 1.0
        seen = set[tuple[int, float]]()
        while True:
            outcome = self._run({column: value / size for column, value in maximise.items()})
            utilities = self.program.per_user(self.program.utilities * self.best)
            above = {(n, float(utilities[n])) for n, gain in self.gains.items() if self._is_above(n, outcome.x[gain], utilities[n])} - seen
            if not above:
                break
            seen |= above
            for n, at in sorted(above):
                self._add_lines(n, at)
        value = sum(float(weights[n]) * self._g(utilities[n]) for n in self.has if utilities[n] > 0)
        return Solution(self.best, gap=self.gap, bound=value, iterations=self.iterations, programs_solved=self.runs)

    def _is_above(self, n: int, gain: float, utility: float) -> bool:
        """Is the gain of a user larger than its utility brings?"""
        most = max(1.0, self._gain(n, self.most[n]))
        return bool(utility > 0 and gain > self._gain(n, utility) + SETTINGS.level_kept * most)

    def _run(self, maximise: dict[int, float]) -> Outcome:
        """Solve the program and keep its tasks."""
        if self.deadline.left == 0.0:
            raise self.deadline.passed({})
        outcome = self.rows.model(maximise, SETTINGS.tolerance_of_trees).run(self.deadline.left)
        if outcome.status is Status.INFEASIBLE:
            raise NoSolution("no whole tasks obey the rules", {"infeasible": True})
        outcome = solved(outcome, self.deadline, {})
        self.best = self.pairs.tasks(outcome)
        self.runs, self.iterations = self.runs + 1, self.iterations + outcome.iterations
        self.gap = max(self.gap, outcome.gap if np.isfinite(outcome.gap) else 0.0)
        return outcome

    # Lines -----------------------------------------------------------------------------------------------------------------------

    def _g(self, utility: float) -> float:
        alpha = self.goal.alpha
        return float(np.log(utility)) if alpha == 1 else float(utility ** (1 - alpha) / (1 - alpha))

    def _gain(self, n: int, utility: float) -> float:
        """Return what g gains from the smallest utility of a user beyond 0."""
        return self._g(utility) - self._g(float(self.least[n]))

    def _utility(self, n: int) -> dict[int, float]:
        mine = np.flatnonzero((self.program.pair_users == n) & (self.pairs.upper > 0))
        return {int(self.columns[p]): float(self.program.utilities[p]) for p in mine}

    def _add_lines(self, n: int, at: float) -> None:
        for slope, value in self._lines(n, at):
            offset = value - slope * at
            entries = {column: -slope * worth for column, worth in self._utility(n).items()}
            self.rows.row(entries | {self.gains[n]: 1.0, self.has[n]: -offset}, upper=0.0)

    def _lines(self, n: int, at: float) -> Iterator[tuple[float, float]]:
        """Yield the slope and the value, at a utility, of lines that touch g there or, of multiples, at its neighbours."""
        if not self.even[n]:
            yield at**-self.goal.alpha, self._gain(n, at)
            return
        step = float(self.least[n])
        number = max(int(np.floor(at / step * (1 + FITS) + FITS)), 1)
        for k in (number - 1, number):
            if k >= 1:
                slope = (self._g((k + 1) * step) - self._g(k * step)) / step
                yield slope, self._gain(n, k * step) + slope * (at - k * step)
