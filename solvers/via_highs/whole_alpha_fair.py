r"""Whole tasks of an alpha-fair goal, by branch and cut over cutting planes.

With few tasks some users may have nothing, and g(0) is minus infinity for alpha >= 1 (`fairopt.program.AlphaFair`). So first as many users
as possible have something, and of all such allocations that is best which has the largest sum of w[n] g(U[n]) over those who have: for
alpha = 1 the maximum Nash welfare of Caragiannis et al. (2016). For alpha < 1, g(0) = 0, and the sum alone counts.

g is concave, so it is the lowest of lines: with z[n] = 1 for those who have something, least[n] <= U[n] <= most[n], and gains v[n] >= 0,

    maximise    sum of w[n] (v[n] + g(least[n]) z[n])
    subject to  v[n] <= a z[n] + s U[n]                  for lines a + s U >= g(U) - g(least[n])

Where all tasks of a user are worth the same u, U[n] is a multiple of u, and the lines through neighbouring multiples are exact there; else
a line is a tangent. A few lines are there from the start. Those at the utilities of an answer are added.

Far above the smallest utility g is nearly flat, and the gains of all others would be lost in those of the first task. So least[n] rises
with the best sum that is known, V: in an allocation with a larger one, w[n] g(U[n]) is at least V less the most that all others can have.
Gains are in units of V (for alpha = 1 of the sum of weights, as a change of all U in parts of themselves). Rounds end where the bound of
branch and cut is V, or nothing is left to add; the gap is what remains between both.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import FITS, TINY
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import Outcome, Status, solved
from fairopt.solvers.via_highs.rows import Maker, Rows, by_highs
from fairopt.solvers.via_highs.ruled_whole import Pairs
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["solve_whole_alpha_fair"]


def solve_whole_alpha_fair(program: Program, goal: AlphaFair, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Return the best whole tasks.

    Raises
    ------
    NoSolution
        At the deadline; where no whole tasks obey the rules.
    """
    return _Search(program, goal, deadline, branch_and_cut).solve()


class _Search:
    """Rounds of branch and cut, whose lines grow and whose range shrinks."""

    def __init__(self, program: Program, goal: AlphaFair, deadline: Deadline, branch_and_cut: Maker) -> None:
        self.program, self.goal, self.deadline = program, goal, deadline
        self.pairs = Pairs(program, deadline, branch_and_cut)
        self.rows, self.columns = self.pairs.rows()
        users, worth, some = program.pair_users, program.utilities, self.pairs.upper > 0
        size = len(program.users)
        self.most = program.per_user(worth * self.pairs.upper)
        self.unit, largest = np.full(size, np.inf), np.zeros(size)
        np.minimum.at(self.unit, users[some], worth[some])
        np.maximum.at(largest, users[some], worth[some])
        self.even = self.unit == largest
        self.least = self.unit.copy()
        self.best, self.value, self.scale = np.zeros(program.n_pairs), 0.0 if goal.alpha < 1 else -np.inf, 1.0
        self.bound, self.iterations, self.runs = np.inf, 0, 0
        self.has = {int(n): self.rows.column(1.0, whole=True) for n in np.flatnonzero(self.most > 0)}
        self.points: dict[int, set[float]] = {n: set() for n in self.has}
        self.everybody, self.poor = False, set[int]()
        for n, has in self.has.items():
            utility = self._utility(n)
            self.rows.row(utility | {has: -float(self.unit[n])}, lower=0.0)
            self.rows.row(utility | {has: -float(self.most[n])}, upper=0.0)

    def solve(self) -> Solution:
        """Find how many have something, then the best of these."""
        if self.goal.alpha >= 1 and self.has:
            outcome = self._run(self.rows, dict.fromkeys(self.has.values(), 1.0))
            number = int(np.round(outcome.x[[*self.has.values()]]).sum())
            self.rows.row(dict.fromkeys(self.has.values(), 1.0), lower=number)
            self.everybody = number == len(self.has)
            self._keep(outcome)
        self._rescale()
        for _ in range(SETTINGS.rounds_of_lines):
            before = self._unit_of_goal
            added = self._round()
            gap, coarse = self._gap, self._unit_of_goal < before / 2  # then what is left was below the digits of the round
            risen = self._rescale()
            if not coarse and (gap <= SETTINGS.proved_whole or not (risen or added)):
                break
        return Solution(self.best, gap=gap, iterations=self.iterations, programs_solved=self.runs)

    @property
    def _unit_of_goal(self) -> float:
        """Return in what gains and the gap are measured: the sum that is known, or for alpha = 1 that of weights."""
        weights = self.goal.weights[[*self.has]]
        size = float(weights.sum()) if self.goal.alpha == 1 else abs(self.value)
        return size if np.isfinite(size) and size > 0 else max(float(np.abs(weights @ self._of(self.most))), TINY)

    @property
    def _gap(self) -> float:
        return max(self.bound - self.value, 0.0) / self._unit_of_goal if self.has else 0.0

    def _rescale(self) -> bool:
        """Let 1 be the smallest utility of the best tasks, and raise the least utility of users who have something; does it rise?

        In units of its poorest user a sum neither overflows nor vanishes; logarithms need no units, and which users have something may
        depend on them. Less than the least utility is in no allocation that is as good; who cannot have so much has nothing there.
        """
        utilities = self.program.per_user(self.program.utilities * self.best)
        if not (utilities > 0).any():
            return False
        if self.goal.alpha != 1:
            self.scale = float(utilities[utilities > 0].min())
        self.value = self._sum(utilities)
        users = np.array([*self.has], np.int64)
        weights = self.goal.weights[users]
        largest = weights * self._of(self.most)
        if not self.everybody:
            largest = np.maximum(largest, 0.0)
        needs = (self.value - SETTINGS.proved_whole * self._unit_of_goal - (largest.sum() - largest)) / weights
        wanted = self._utility_of(needs)
        self.poor |= set(users[wanted > self.most[users] * (1 + FITS)].tolist())
        risen = np.clip(wanted, self.least[users], self.most[users])
        multiples = np.ceil(risen / self.unit[users] * (1 - FITS)) * self.unit[users]
        risen = np.where(self.even[users], np.clip(multiples, self.least[users], self.most[users]), risen)
        rises = bool((risen > self.least[users] * (1 + SETTINGS.risen)).any())
        self.least[users] = risen
        return rises

    def _round(self) -> bool:
        """Solve the program of these lines, and keep its tasks if they are better; is there a line to add?"""
        rows, weights, unit = self.rows.copy(), self.goal.weights, self._unit_of_goal
        maximise, gains = dict[int, float](), dict[int, int]()
        for n, has in self.has.items():
            if n in self.poor:
                rows.row({has: 1.0}, upper=0.0)
                continue
            least, most, part = float(self.least[n]), float(self.most[n]), float(weights[n]) / unit
            utility = self._utility(n)
            rows.row({column: worth / least for column, worth in utility.items()} | {has: -(1.0 - FITS)}, lower=0.0)
            gains[n] = rows.column(max(part * self._gain(n, most), 0.0))
            maximise |= {gains[n]: 1.0, has: part * self._g(least)}
            for at in sorted({*np.geomspace(least, most, SETTINGS.lines).tolist(), *self.points[n]}):
                for slope, value in self._lines(n, min(max(at, least), most)):
                    entries = {column: -part * slope * worth for column, worth in utility.items()}
                    rows.row(entries | {gains[n]: 1.0, has: -part * value}, upper=0.0)
        outcome = self._run(rows, maximise)
        self.bound = outcome.bound * unit
        utilities = self._keep(outcome)
        added = False
        for n, gain in gains.items():
            at = float(utilities[n])
            if at <= 0 or at in self.points[n]:
                continue
            if outcome.x[gain] > float(weights[n]) / unit * self._gain(n, at) + SETTINGS.proved_whole:
                self.points[n].add(at)
                added = True
        return added

    def _keep(self, outcome: Outcome) -> FloatArray:
        """Keep the tasks if their sum is the largest so far; return their utilities, (users,)."""
        tasks = self.pairs.tasks(outcome)
        utilities = self.program.per_user(self.program.utilities * tasks)
        value = self._sum(utilities)
        if value > self.value:
            self.best, self.value = tasks, value
        return utilities

    def _sum(self, utilities: FloatArray) -> float:
        return sum(float(self.goal.weights[n]) * self._g(float(utilities[n])) for n in self.has if utilities[n] > 0)

    def _run(self, rows: Rows, maximise: dict[int, float]) -> Outcome:
        if self.deadline.left == 0.0:
            raise self.deadline.passed({})
        outcome = rows.model(maximise, SETTINGS.tolerance_of_trees).run(self.deadline.left)
        if outcome.status is Status.INFEASIBLE:
            raise NoSolution("no whole tasks obey the rules", {"infeasible": True})
        outcome = solved(outcome, self.deadline, {})
        self.runs, self.iterations = self.runs + 1, self.iterations + outcome.iterations
        return outcome

    # Lines -----------------------------------------------------------------------------------------------------------------------

    def _g(self, utility: float) -> float:
        alpha, parts = self.goal.alpha, np.float64(utility / self.scale)
        with np.errstate(over="ignore", under="ignore"):
            return float(np.log(parts)) if alpha == 1 else float(parts ** (1 - alpha) / (1 - alpha))

    def _of(self, utilities: FloatArray) -> FloatArray:
        """Return g of the utilities of users who can have something."""
        return np.array([self._g(float(utilities[n])) for n in self.has])

    def _utility_of(self, values: FloatArray) -> FloatArray:
        """Return the utilities with these values of g; 0 where every utility has more."""
        alpha = self.goal.alpha
        if alpha == 1:
            return self.scale * np.exp(np.minimum(values, 700.0))
        base = (1 - alpha) * values
        with np.errstate(over="ignore", divide="ignore"):
            return self.scale * np.where(base > 0, np.abs(base) ** (1 / (1 - alpha)), 0.0 if alpha < 1 else np.inf)

    def _gain(self, n: int, utility: float) -> float:
        """Return what g gains from the least utility of a user."""
        return self._g(utility) - self._g(float(self.least[n]))

    def _utility(self, n: int) -> dict[int, float]:
        mine = np.flatnonzero((self.program.pair_users == n) & (self.pairs.upper > 0))
        return {int(self.columns[p]): float(self.program.utilities[p]) for p in mine}

    def _lines(self, n: int, at: float) -> Iterator[tuple[float, float]]:
        """Yield the slope and the value at 0 of lines that touch the gain at a utility or, of multiples, at its neighbours."""
        if not self.even[n]:
            slope = (at / self.scale) ** -self.goal.alpha / self.scale
            yield slope, self._gain(n, at) - slope * at
            return
        step = float(self.unit[n])
        number = max(int(np.floor(at / step * (1 + FITS) + FITS)), 1)
        for k in (number - 1, number):
            if k >= 1 and k * step >= self.least[n] * (1 - FITS):
                slope = (self._g((k + 1) * step) - self._g(k * step)) / step
                yield slope, self._gain(n, k * step) - slope * k * step
