"""The leximins of the depths of a tree, one after another: LPs with a row for each agent.

    maximise t   subject to   A x <= b,   S[a] >= unit[a] t  for agents who rise,   S[a] >= L[a]  for those settled before,   x, t >= 0

An agent with a positive multiplier is settled. All rows of earlier depths stay.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import LimitKind, Nested, Program, Solution, Stage
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import REFINED, solved
from fairopt.solvers.leximin.agent_rows import AgentRows
from fairopt.solvers.leximin.levels import exactly
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["solve_nested"]

log = logging.getLogger(__name__)


def solve_nested(program: Program, goal: Nested, deadline: Deadline, small: bool = False) -> Solution:
    """Return the nested leximin, with prices of limits and of agents for each level.

    Columns are scaled by what their users could have alone, or with ``small`` by what their users have, which is better for shares of very
    different sizes.

    Raises
    ------
    NoSolution
        At the deadline, or where HiGHS finds no solution of a program that has one.
    """
    largest = program.largest()
    reach = goal.sums(program.per_user(largest * program.utilities))
    of_agents = sp.csr_array(goal.below[:, program.pair_users] * program.utilities)
    last = np.full(len(program.users), -1)
    last[goal.users] = np.arange(goal.depth.size - goal.users.size, goal.depth.size)
    own = last[program.pair_users]  # the agent that each pair's user is
    limits, ruled = program.limits, program.limits.kinds == LimitKind.RULE
    bounds = np.where(limits.bounds > 0, limits.bounds, 1.0)
    if ruled.any():  # any sign
        size = np.maximum(np.abs(limits.bounds), abs(sp.csr_array(limits.matrix * largest)).max(axis=1).toarray().ravel())
        bounds = np.where(ruled & (size > 0), size, bounds)
    upper = np.where(ruled, limits.bounds / bounds, 1.0)
    owed, sums = np.zeros(reach.size), np.zeros(reach.size)  # what settled agents keep; what all have
    x, stages, programs, iterations = np.zeros(largest.size), list[Stage](), 0, 0
    for depth in range(1, int(goal.depth.max(initial=0)) + 1):
        units = goal.units(depth, sums, reach)
        rising = (units > 0) & (reach > 0)
        settled = (goal.depth <= depth) & ~rising
        while rising.any():
            t_unit = float((reach[rising] / units[rising]).min()) / max(1, int(rising.sum())) ** 0.5
            wanted = np.where(rising, units * t_unit, 0.0)
            size = np.where(rising, np.minimum(wanted, reach), np.where(settled, goal.sizes(owed, reach), reach))
            size[size <= 0] = 1.0
            scale = np.where(largest > 0, np.minimum(size[own] / program.utilities, largest) if small else largest, 1.0)
            use = sp.csr_array(program.limits.matrix * scale) / bounds[:, None]
            rows = sp.csr_array(sp.csr_array(of_agents * scale) / size[:, None])
            lp = AgentRows(use, upper, largest > 0, rows, wanted / size, owed / size)
            outcome = lp.solve(deadline)
            if outcome.status is Status.INFEASIBLE and ruled.any() and not stages:
                raise NoSolution("nothing is feasible", {"infeasible": True})
            first = solved(outcome, deadline, _final(program, goal, stages))
            outcome = lp.model.refine(first, deadline.left)
            if outcome.x is first.x:  # all that settled agents keep is out of reach by rounding: refine the prices alone
                outcome = lp.model.refine(first, deadline.left, factor=1.0, of_prices=REFINED)
            programs, iterations = programs + 1, iterations + outcome.iterations
            y = np.maximum(outcome.x[:-1], 0.0)
            if not ruled.any():  # else less of y may be infeasible
                y /= max(1.0, float((use @ y).max(initial=0.0)))
            x = y * scale * (largest > 0)
            sums = np.asarray(of_agents @ x)
            t = float((sums[rising] / units[rising]).min())
            prices = np.maximum(outcome.row_duals[: bounds.size], 0.0) / bounds
            pays = np.maximum(-outcome.row_duals[bounds.size :], 0.0) / size
            level = np.where(rising, units * t, owed)
            paid = pays * goal.sizes(level, reach)
            gap = max(float(prices @ np.where(ruled, limits.bounds, bounds) - pays @ level), ROUNDING * float(paid.sum()))
            with np.errstate(divide="ignore"):
                could = gap / paid  # by which part an agent could rise
            stopped = rising & (could <= max(SETTINGS.settled_agent, float(could[rising].min())))
            agents = np.flatnonzero(stopped)
            stages.append(Stage(t, np.flatnonzero(goal.below[agents].sum(axis=0) > 0), np.append(prices, pays), depth, agents))
            owed[agents] = units[agents] * t
            rising[agents], settled[agents] = False, True
            log.info("depth %d, level %.6g: %d agents settled", depth, t, agents.size)
        sums = np.where(goal.depth == depth, owed, sums)
    shares = np.zeros(len(program.users))
    shares[goal.users] = owed[goal.depth.size - goal.users.size :]
    x = x if ruled.any() else exactly(program, program.utilities, x, shares)
    return Solution(x, tuple(stages), iterations=iterations, programs_solved=programs)


def _final(program: Program, goal: Nested, stages: Sequence[Stage]) -> dict[str, object]:
    """Return the final levels of all depths, and the users who are settled themselves, for the error at a time limit."""
    first = goal.depth.size - goal.users.size  # the agents from here on are users
    settled = [goal.users[agent - first] for stage in stages if stage.agents is not None for agent in stage.agents if agent >= first]
    return {"levels": [stage.value for stage in stages], "users": [program.users[n] for n in settled]}
