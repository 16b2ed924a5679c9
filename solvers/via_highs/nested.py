"""The leximins of the depths of a tree, one after another: LPs with a row for each agent.

An agent a is a queue or a user (`fairopt.program.nested`). S[a] is the sum of the shares of the users below it, and
unit[a] = w[a] S[parent] what it has at a level of 1 of its depth. Level by level, and depth by depth,

    maximise t   subject to   A x <= b,   S[a] >= unit[a] t  for agents who rise,   S[a] >= owed[a]  for settled ones,   x, t >= 0.

All rows of earlier depths stay. *Settled agents.* With the prices p of limits and q of agents, gap = p.b - q.(levels at t) is 0 at the
optimum, and gap / (q[a] unit[a] t) is by which part agent a could rise above its level. Those who could rise by nothing are settled, with
owed[a] = unit[a] t.

*Units.* A column is in units of what its user could have on the pair alone, or of what it has; an agent in units of what it has at the
level, or could have alone.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program import LimitKind, Nested, Program, Solution, Stage
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import REFINED, Outcome, solved
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
    depths = _Depths(program, goal, deadline, small)
    for depth in range(1, int(goal.depth.max(initial=0)) + 1):
        depths.settle(depth)
    return depths.solution()


class _Depths:
    """What agents have, and the levels that are final.

    Attributes
    ----------
    reach : array (agents,)
        What each could have alone.
    of_agents : sparse array (agents, pairs)
        S = of_agents @ x.
    owed, sums : arrays (agents,)
        What settled agents keep, and what all have.
    """

    def __init__(self, program: Program, goal: Nested, deadline: Deadline, small: bool) -> None:
        self.program, self.goal, self.deadline, self.small = program, goal, deadline, small
        self.largest = program.largest()
        self.reach = goal.sums(program.per_user(self.largest * program.utilities))
        self.of_agents = sp.csr_array(goal.below[:, program.pair_users] * program.utilities)
        self.first_user = goal.depth.size - goal.users.size  # the agents from here on are users
        agent_of = np.full(len(program.users), -1)
        agent_of[goal.users] = np.arange(self.first_user, goal.depth.size)
        self.own = agent_of[program.pair_users]  # the agent that each pair's user is
        self.ruled = program.limits.kinds == LimitKind.RULE
        self.bounds = self._units_of_limits()
        self.upper = np.where(self.ruled, program.limits.bounds / self.bounds, 1.0)
        self.owed, self.sums = np.zeros(self.reach.size), np.zeros(self.reach.size)
        self.x, self.stages, self.programs, self.iterations = np.zeros(self.largest.size), list[Stage](), 0, 0

    def _units_of_limits(self) -> FloatArray:
        """Return the unit of each limit: its bound; of a rule, whose bound has any sign, the size of its terms."""
        limits = self.program.limits
        bounds = np.where(limits.bounds > 0, limits.bounds, 1.0)
        if not self.ruled.any():
            return bounds
        size = np.maximum(np.abs(limits.bounds), abs(sp.csr_array(limits.matrix * self.largest)).max(axis=1).toarray().ravel())
        return np.where(self.ruled & (size > 0), size, bounds)

    def settle(self, depth: int) -> None:
        """Raise the levels of a depth until every agent of it is settled."""
        goal = self.goal
        units = goal.units(depth, self.sums, self.reach)
        rising = (units > 0) & (self.reach > 0)
        while rising.any():
            t, stopped, prices = self._level(depth, units, rising)
            agents = np.flatnonzero(stopped)
            self.stages.append(Stage(t, np.flatnonzero(goal.below[agents].sum(axis=0) > 0), prices, depth, agents))
            self.owed[agents], rising[agents] = units[agents] * t, False
            log.info("depth %d, level %.6g: %d agents settled", depth, t, agents.size)
        self.sums = np.where(goal.depth == depth, self.owed, self.sums)

    def _level(self, depth: int, units: FloatArray, rising: BoolArray) -> tuple[float, BoolArray, FloatArray]:
        """Solve the LP of the next level: return its t, who stops at it, and the prices of limits and of agents."""
        wanted, size = self._units_of_agents(depth, units, rising)
        scale = np.where(self.largest > 0, self._units_of_columns(size), 1.0)
        use = sp.csr_array(self.program.limits.matrix * scale) / self.bounds[:, None]
        rows = sp.csr_array(sp.csr_array(self.of_agents * scale) / size[:, None])
        outcome = self._solved(AgentRows(use, self.upper, self.largest > 0, rows, wanted / size, self.owed / size))
        self.x = self._feasible(outcome, use) * scale * (self.largest > 0)
        self.sums = np.asarray(self.of_agents @ self.x)
        t = float((self.sums[rising] / units[rising]).min())
        prices = np.maximum(outcome.row_duals[: self.bounds.size], 0.0) / self.bounds
        pays = np.maximum(-outcome.row_duals[self.bounds.size :], 0.0) / size
        return t, self._stopped(np.where(rising, units * t, self.owed), rising, prices, pays), np.append(prices, pays)

    def _units_of_agents(self, depth: int, units: FloatArray, rising: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return what those who rise have where t is 1 in the LP, near the level, and the unit of each agent's row; both (agents,)."""
        t_unit = float((self.reach[rising] / units[rising]).min()) / max(1, int(rising.sum())) ** 0.5
        wanted = np.where(rising, units * t_unit, 0.0)
        settled = (self.goal.depth <= depth) & ~rising
        size = np.where(settled, self.goal.sizes(self.owed, self.reach), self.reach)
        size = np.where(rising, np.minimum(wanted, self.reach), size)
        size[size <= 0] = 1.0
        return wanted, size

    def _units_of_columns(self, size: FloatArray) -> FloatArray:
        """Return the unit of each column, where agents are in units of ``size``."""
        return np.minimum(size[self.own] / self.program.utilities, self.largest) if self.small else self.largest

    def _solved(self, lp: AgentRows) -> Outcome:
        """Return the refined solution of an LP."""
        outcome = lp.solve(self.deadline)
        if outcome.status is Status.INFEASIBLE and self.ruled.any() and not self.stages:
            raise NoSolution("nothing is feasible", {"infeasible": True})
        first = solved(outcome, self.deadline, self._final())
        outcome = lp.model.refine(first, self.deadline.left)
        if outcome.x is first.x:  # all that settled agents keep is out of reach by rounding: refine the prices alone
            outcome = lp.model.refine(first, self.deadline.left, factor=1.0, of_prices=REFINED)
        self.programs, self.iterations = self.programs + 1, self.iterations + outcome.iterations
        return outcome

    def _feasible(self, outcome: Outcome, use: Any) -> FloatArray:
        """Return the point of an outcome in its own units, scaled down to within the limits."""
        y = np.maximum(outcome.x[:-1], 0.0)
        return y if self.ruled.any() else y / max(1.0, float((use @ y).max(initial=0.0)))  # with rules less of y may be infeasible

    def _stopped(self, level: FloatArray, rising: BoolArray, prices: FloatArray, pays: FloatArray) -> BoolArray:
        """Return which agents cannot rise above their levels, or could rise least, (agents,)."""
        paid = pays * self.goal.sizes(level, self.reach)
        spent = float(prices @ np.where(self.ruled, self.program.limits.bounds, self.bounds))
        gap = max(spent - float(pays @ level), ROUNDING * float(paid.sum()))
        with np.errstate(divide="ignore"):
            could = gap / paid  # by which part an agent could rise
        return np.asarray(rising & (could <= max(SETTINGS.settled_agent, float(could[rising].min()))))

    def solution(self) -> Solution:
        """Return the answer once all depths are settled."""
        program, shares = self.program, np.zeros(len(self.program.users))
        shares[self.goal.users] = self.owed[self.first_user :]
        x = self.x if self.ruled.any() else exactly(program, program.utilities, self.x, shares)
        return Solution(x, tuple(self.stages), iterations=self.iterations, programs_solved=self.programs)

    def _final(self) -> dict[str, object]:
        """Return the final levels of all depths, and the users who are settled themselves, for the error at a time limit."""
        agents = (agent for stage in self.stages if stage.agents is not None for agent in stage.agents if agent >= self.first_user)
        settled = [self.goal.users[agent - self.first_user] for agent in agents]
        return {"levels": [stage.value for stage in self.stages], "users": [self.program.users[n] for n in settled]}
