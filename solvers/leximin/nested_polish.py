r"""The polish of a nested leximin: from a point that satisfies the equations of its levels nearly to one that does to rounding.

What queues of one depth keep binds at the next depth, where it can cost a hundred thousand times what those who rise there pay: an error in
the last digits of x is a large one of the level. As in `fairopt.solvers.leximin.polish`, the active sets are right much earlier. With them
fixed, x and the values t of the stages solve equations,

    A x = b on limits with a price,    S[a] = w[a] S[parent of a] t of its stage for each agent a,    x = 0 on dear pairs,

where S[a] is what the users below a have together; of a child of the root, S[parent] is 1. In logarithms they are linear to first order: a
change of every x[j] by the part z[j] of itself changes log S[a] by the sum of x[j] u[j] z[j] / S[a] below a. Limits without a price that
the new point exceeds are full, too, and join the equations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import DIGITS, NOTHING, SAME
from fairopt.program import Nested, Program, Solution
from fairopt.solvers.leximin.least_change import LeastChange
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["polish_nested"]


def polish_nested(program: Program, goal: Nested, solution: Solution) -> Solution | None:
    """Return the solution near this one that satisfies the equations of its levels; None where they cannot be solved."""
    below = sp.csr_array(goal.below[:, program.pair_users] * program.utilities)
    sums = np.asarray(below @ solution.x)
    reach = goal.sums(program.per_user(program.largest() * program.utilities))
    stage_of = np.full(sums.size, -1)
    for k, stage in enumerate(solution.stages):
        assert stage.agents is not None
        stage_of[stage.agents] = k
    above = np.where(goal.parent >= 0, sums[goal.parent], np.inf)  # who has all of its parent's has no equation: t is 1 / w
    agents = np.flatnonzero((stage_of >= 0) & (sums > NOTHING * reach) & (sums < above * (1 - SAME)))
    used, full = _sets(program, goal, solution)
    x, values = solution.x, np.array([stage.value for stage in solution.stages])
    if not agents.size or not used.any() or not (values[stage_of[agents]] > 0).all():
        return None
    found: tuple[FloatArray, FloatArray] | None = None
    for _ in range(SETTINGS.rounds_of_full):
        found = _solved(program, goal, below, x, values, agents, stage_of[agents], np.flatnonzero(used), np.flatnonzero(full))
        if found is None:
            return None
        exceeded = (program.limits.matrix @ found[0] > program.limits.bounds * (1 + DIGITS)) & ~full & (program.limits.bounds > 0)
        if not exceeded.any():
            break
        full |= exceeded
    assert found is not None
    stages = tuple(replace(stage, value=value) for stage, value in zip(solution.stages, found[1].tolist(), strict=True))
    return replace(solution, x=found[0], stages=stages)


def _solved(
    program: Program,
    goal: Nested,
    below: sp.csr_array,
    x: FloatArray,
    values: FloatArray,
    agents: IntArray,
    stage_of: IntArray,
    pairs: IntArray,
    rows: IntArray,
) -> tuple[FloatArray, FloatArray] | None:
    """Return x, (pairs,), and the values of the stages, that solve the equations of these active sets."""
    limits, bounds = sp.csr_array(program.limits.matrix[rows][:, pairs]), program.limits.bounds[rows]
    of_agents, parents = sp.csr_array(below[:, pairs]), goal.parent[agents]

    def missing(held: FloatArray, told: FloatArray) -> FloatArray:
        sums = np.asarray(of_agents @ held)
        above = np.where(parents >= 0, sums[parents], 1.0)
        return np.concatenate([1 - (limits @ held) / bounds, np.log(goal.weight[agents] * above * told[stage_of] / sums[agents])])

    y, t = x[pairs], values
    sums, inner = np.asarray(of_agents @ y), np.flatnonzero(parents >= 0)
    parts = sp.csr_array(of_agents * y / np.where(sums > 0, sums, 1.0)[:, None])  # of what each agent has
    to_parents = sp.csr_array((np.ones(inner.size), (inner, parents[inner])), shape=(agents.size, goal.depth.size))
    equations = sp.csr_array(sp.vstack([sp.csr_array(limits * y) / bounds[:, None], sp.csr_array(parts[agents] - to_parents @ parts)]))
    of_stages = sp.csr_array((np.ones(agents.size), (rows.size + np.arange(agents.size), stage_of)), (equations.shape[0], values.size))
    system = LeastChange.of(equations, of_stages)
    if system is None:
        return None
    for _ in range(SETTINGS.refinements):
        with np.errstate(divide="ignore", invalid="ignore"):
            change, of_values = system.step(missing(y, t))
        y, t = np.maximum(y + x[pairs] * change, 0.0), t * (1 + of_values)
        if not (np.isfinite(y).all() and np.isfinite(t).all()):
            return None
    answer = np.zeros(x.size)
    answer[pairs] = y
    return answer, t


def _sets(program: Program, goal: Nested, solution: Solution) -> tuple[BoolArray, BoolArray]:
    """Return which pairs are used, (pairs,), and which limits have a price at some level, (limits,)."""
    limits, users = program.limits, program.pair_users
    shares = program.per_user(solution.x * program.utilities)
    used, priced = solution.x > 0, np.zeros(len(limits), bool)
    for stage in solution.stages:
        assert stage.prices is not None
        prices, pays = np.maximum(stage.prices[: len(limits)], 0.0), np.maximum(stage.prices[len(limits) :], 0.0)
        waste = (limits.transposed @ prices) / program.utilities - (goal.below.T @ pays)[users]
        spent = float(prices @ limits.bounds)
        used &= waste * shares[users] <= SETTINGS.dear * spent
        priced |= prices * limits.bounds > SETTINGS.priced * spent
    return used, priced & (limits.bounds > 0)
