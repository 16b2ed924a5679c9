"""Whole tasks by branch and cut, in stages: the exact integral leximin and the exact integral total.

With x[p] whole, the users at the lowest level are no longer the same in every optimal solution, so levels cannot be settled
user by user. What *is* unique is the sorted vector of levels, and with it how many users lie at or below each level. The
stages fix that (the lexicographic maximisation of sorted outcomes with distinct values; Ogryczak and Sliwinski 2006): with
b[n] = 1 for the users who may stay at earlier levels, at most k of them,

    A   maximise t          subject to  U[n]/phi[n] >= t for all n with b[n] = 0,  sum b <= k             -> next level t
    B   minimise sum b'     subject to  U[n]/phi[n] > t for all n with b'[n] = 0                          -> how many stay at or below t

and so on until all users are counted. "Greater than t" means the next multiple of the user's own share of one task. Two
MILPs a level, one more binary per user and level: meant for instances that a person would draw, with a time limit for the others.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fairopt.errors import FairoptError
from fairopt.instance import FloatArray, IntArray
from fairopt.program import Equalize, Leximin, Program, Solution, Stage, Total
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status

__all__ = ["solve_whole"]

_EXACT = 1e-9  # relative: whole multiples of a share are compared up to rounding


def solve_whole(program: Program, deadline: Deadline) -> Solution:
    """Solve Total, Leximin or Equalize over whole tasks."""
    upper = np.floor(program.largest() * (1 + _EXACT) + _EXACT)
    positive = program.limits.bounds > 0
    bounds = program.limits.bounds[positive]
    matrix = sp.csr_array(program.limits.matrix[np.flatnonzero(positive)] / bounds[:, None])
    goal = program.goal
    if isinstance(goal, Total):
        worth = goal.weights[program.pair_users] * program.utilities
        unit = float(worth.max())
        model = _model(worth / unit, upper, matrix)
        outcome = _solved(model.run(deadline.left), deadline, {})
        x = np.round(outcome.x)
        gap = outcome.gap
        return Solution(x, gap=gap, bound=float(worth @ x) * (1 + gap), iterations=outcome.iterations)
    assert isinstance(goal, Leximin | Equalize)
    return _leximin(program, program.utilities / goal.weights[program.pair_users], upper, matrix, deadline, isinstance(goal, Equalize))


def _leximin(program: Program, per_level: FloatArray, upper: FloatArray, matrix: sp.csr_array, deadline: Deadline, equal: bool) -> Solution:
    users = program.pair_users
    reach = program.per_user(upper * per_level)
    members = np.flatnonzero(reach > 0)  # the others stay at 0 in every solution
    if equal:
        raise FairoptError("an equal level of whole tasks seldom exists; use the leximin formulation with integral=True")
    if not members.size:
        return Solution(np.zeros(users.size), gap=0.0, programs_solved=0)
    unit = float(np.median(reach[members]))
    step = np.zeros(len(program.users))  # a user's share of one task, where it is the same on every server
    step[users] = per_level
    uneven = np.zeros(len(program.users), bool)
    uneven[users[step[users] != per_level]] = True

    n_pairs, n = users.size, members.size
    model = _model(np.zeros(n_pairs), upper, matrix)
    t = int(model.add_columns(np.zeros(1), np.full(1, reach.max() / unit))[0])
    position = np.full(len(program.users), -1)
    position[members] = np.arange(n)
    own = np.flatnonzero(position[users] >= 0)
    levels = sp.csr_array((per_level[own] / unit, (position[users[own]], own)), (n, n_pairs))
    rest = sp.csr_array((n, t - n_pairs))

    def rows(binaries: IntArray, on_t: float, on_binary: FloatArray, at_least: FloatArray) -> None:
        """U[n]/phi[n] + on_t t + on_binary[n] b[n] >= at_least[n], with b the last columns added."""
        width = int(binaries[-1]) + 1 if binaries.size else t + 1
        parts = [levels, rest, sp.csr_array(np.full((n, 1), on_t))]
        if binaries.size:
            between = width - n - (t + 1)
            parts += [sp.csr_array((n, between)), sp.diags_array(on_binary, format="csr")]
        model.add_rows(sp.csr_array(sp.hstack(parts, format="csr")), at_least, np.full(n, np.inf))

    def above(value: float) -> FloatArray:
        """The smallest level of each member that is greater than ``value``."""
        own_step = step[members] / unit
        whole = (np.floor(value / own_step * (1 + _EXACT) + _EXACT) + 1) * own_step
        return np.where(uneven[members], value + 1e-6 * max(value, own_step.min()), whole)

    values: list[float] = []
    gap, iterations, runs = 0.0, 0, 0
    binaries = np.empty(0, np.int64)
    first = 0.0
    counted = 0
    best = np.zeros(n_pairs)
    while counted < n:
        known: dict[str, object] = {"levels": [value * unit for value in values], "tasks": best.copy()}
        # A: the next level, for all but the users counted at earlier ones.
        rows(binaries, -1.0, np.full(n, reach.max() / unit), np.zeros(n))
        last_row = np.arange(model.n_rows - n, model.n_rows)
        model.set_costs(np.array([t]), np.ones(1))
        outcome = _solved(model.run(deadline.left), deadline, known)
        gap, iterations, runs = max(gap, outcome.gap), iterations + outcome.iterations, runs + 1
        best = np.round(outcome.x[:n_pairs])
        reached = np.sort(np.asarray(levels @ best))
        value = float(reached[counted])
        first = values[0] if values else value
        model.set_row_bounds(last_row, np.full(n, -np.inf), np.full(n, np.inf))
        floor = value * (1 - _EXACT)
        low = first * (1 - _EXACT)
        rows(binaries, 0.0, np.full(n, floor - low), np.full(n, floor))
        # B: as few users as possible at or below it.
        higher = above(value)
        staying = model.add_columns(np.zeros(n), np.ones(n), whole=True)
        rows(staying, 0.0, higher - low, higher * (1 - _EXACT))
        if binaries.size:  # who stayed at an earlier level stays
            model.add_rows(_difference(staying, binaries), np.zeros(n), np.full(n, np.inf))
        model.set_costs(np.array([t]), np.zeros(1))
        model.set_costs(staying, np.full(n, -1.0))
        outcome = _solved(model.run(deadline.left), deadline, known)
        gap, iterations, runs = max(gap, outcome.gap), iterations + outcome.iterations, runs + 1
        best = np.round(outcome.x[:n_pairs])
        counted = round(float(outcome.x[staying].sum()))
        model.set_costs(staying, np.zeros(n))
        model.add_rows(_sum_row(staying), np.zeros(1), np.full(1, float(counted)))
        values.append(value)
        binaries = staying
    reached = program.per_user(best * per_level)
    stages = tuple(
        Stage(value * unit, np.flatnonzero((np.abs(reached - value * unit) <= 1e-7 * max(value * unit, 1e-300)) & (reach > 0)), None)
        for value in values
    )
    return Solution(best, stages, gap=gap, bound=values[0] * unit * (1 + gap), iterations=iterations, programs_solved=runs)


def _model(cost: FloatArray, upper: FloatArray, matrix: sp.csr_array) -> HighsModel:
    rows = matrix.shape[0]
    return HighsModel(
        cost,
        np.zeros(cost.size),
        upper,
        sp.csc_array(matrix),
        np.full(rows, -np.inf),
        np.ones(rows),
        whole=np.arange(cost.size),
        tolerance=1e-9,
    )


def _sum_row(columns: IntArray) -> sp.csr_array:
    return sp.csr_array((np.ones(columns.size), (np.zeros(columns.size, int), columns)), (1, int(columns[-1]) + 1))


def _difference(plus: IntArray, minus: IntArray) -> sp.csr_array:
    each = np.arange(plus.size)
    entries = (np.r_[np.ones(plus.size), -np.ones(minus.size)], (np.r_[each, each], np.r_[plus, minus]))
    return sp.csr_array(entries, (plus.size, int(plus[-1]) + 1))


def _solved(outcome: Outcome, deadline: Deadline, known: dict[str, object]) -> Outcome:
    if outcome.status is Status.TIME_LIMIT:
        raise deadline.passed(known)
    if outcome.status is not Status.OPTIMAL:
        raise FairoptError(f"HiGHS did not solve a program that always has a solution: {outcome.status.value}; please report the instance")
    return outcome
