"""Whole tasks under rules by branch and cut: the levels of `fairopt.solvers.via_highs.whole_levels`, with a column for each pair.

Identical servers are not taken together, because rules may tell them apart; nothing is filled greedily, because the empty allocation may
break a rule. The search begins with any whole tasks that obey the rules.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS, TINY
from fairopt.program import Feature, LimitKind, Program, Solution
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import Outcome, solved
from fairopt.solvers.via_highs.rows import Maker, Rows, begin, by_highs
from fairopt.solvers.via_highs.whole_levels import Condition, WholeLevels

__all__ = ["Pairs", "fewest_whole_ruled", "solve_whole_ruled"]


def solve_whole_ruled(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Return the integral leximin, or the largest integral total, of a program with rules.

    Raises
    ------
    NoSolution
        At the deadline, with the best tasks so far; where no whole tasks obey the rules.
    """
    pairs = Pairs(program, deadline, branch_and_cut)
    if program.goal.feature is not Feature.TOTAL:
        return _LevelsOfPairs(program, deadline, pairs).solve()
    worth = program.worth
    outcome = pairs.run({})
    best, runs, iterations = pairs.tasks(outcome), 1, outcome.iterations
    outcome = pairs.run(dict(enumerate((worth / (worth.max(initial=0.0) or 1.0)).tolist())), best)
    best, gap = pairs.tasks(outcome), outcome.gap
    value = float(worth @ best)
    bound = value * (1 + gap) if np.isfinite(gap) else value
    return Solution(best, gap=gap, bound=bound, iterations=iterations + outcome.iterations, programs_solved=runs + 1)


def fewest_whole_ruled(program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Return whole tasks that obey the rules and in which nobody has more, in all, than rules force.

    Raises
    ------
    NoSolution
        As `solve_whole_ruled`.
    """
    pairs = Pairs(program, deadline, branch_and_cut)
    unit = float(program.utilities.max(initial=0.0)) or 1.0
    outcome = pairs.run(dict(enumerate((-program.utilities / unit).tolist())))
    return Solution(pairs.tasks(outcome), gap=outcome.gap, bound=0.0, iterations=outcome.iterations, programs_solved=1)


class Pairs:
    """A model with a whole number of tasks on each pair, within all rows."""

    def __init__(self, program: Program, deadline: Deadline, branch_and_cut: Maker = by_highs) -> None:
        self.program, self.deadline, self.branch_and_cut = program, deadline, branch_and_cut
        limits = program.limits
        largest = np.floor(program.largest() * (1 + FITS) + FITS)
        self.upper: FloatArray = np.where(np.isfinite(largest), np.maximum(largest, 0.0), 0.0)
        size = abs(limits.matrix).max(axis=1).toarray().ravel() if len(limits) else np.zeros(0)
        size = np.where(size > TINY, size, 1.0)  # a rule about users who can run nowhere has no entry
        self.matrix = sp.csr_array(limits.matrix / size[:, None])
        room = np.where(limits.kinds == LimitKind.RULE, abs(limits.matrix) @ self.upper, limits.bounds)
        self.right = (limits.bounds + FITS * np.minimum(np.abs(limits.bounds), room)) / size

    def rows(self) -> tuple[Rows, IntArray]:
        """Return a model that can grow, and its columns."""
        rows = Rows(self.branch_and_cut)
        columns = rows.columns(self.upper)
        rows.block(self.matrix, columns, -np.inf, self.right)
        return rows, columns

    def run(self, goal: dict[int, float], best: FloatArray | None = None) -> Outcome:
        """Maximise a goal of the pairs.

        Raises
        ------
        NoSolution
            At the deadline; where nothing is feasible.
        """
        if self.deadline.left == 0.0:
            raise self.deadline.passed({} if best is None else self.known(best))
        model = self.rows()[0].model(goal)
        if best is not None:
            begin(model, best.copy)
        outcome = model.run(self.deadline.left)
        if outcome.status is Status.INFEASIBLE:
            raise NoSolution("no whole tasks obey the rules", {"infeasible": True})
        if outcome.status is Status.TIME_LIMIT and np.isfinite(outcome.gap):
            best = self.tasks(outcome)
        return solved(outcome, self.deadline, {} if best is None else self.known(best))

    def known(self, best: FloatArray) -> dict[str, object]:
        """Return what a time limit leaves: the tasks, what they reach, and a bound."""
        worth = self.program.worth
        return {"tasks": best, "value": float(worth @ best), "bound": float(worth @ self.upper)}

    def tasks(self, outcome: Outcome) -> FloatArray:
        """Return the tasks of an outcome, (pairs,)."""
        return np.asarray(np.round(outcome.x[: self.upper.size]), float)


class _LevelsOfPairs(WholeLevels):
    """The search for levels with the pairs themselves as columns."""

    def __init__(self, program: Program, deadline: Deadline, pairs: Pairs) -> None:
        first = pairs.run({})
        super().__init__(program, deadline, np.arange(program.n_pairs), pairs.upper, pairs.tasks(first))
        self.pairs, self.iterations, self.runs = pairs, first.iterations, 1

    def search(self, condition: Condition) -> tuple[IntArray, Outcome]:
        """Search tasks within all rows, any where no exceptions are minimised."""
        rows, columns = self.pairs.rows()
        below = condition.add_to(rows, columns[self.kept], self.position)
        outcome = rows.model(dict.fromkeys(below.tolist(), -1.0) if condition.minimises else {}).run(self.deadline.left)
        self.runs, self.iterations = self.runs + 1, self.iterations + outcome.iterations
        return below, outcome

    def spread(self, outcome: Outcome) -> FloatArray:
        """Return the tasks, which fit."""
        return self.pairs.tasks(outcome)
