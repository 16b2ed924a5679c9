"""Programs of agents by HiGHS: maximise t subject to A z <= b and sum of worth z >= start + rate t for each agent.

`fairopt.program.guarantees` says what they are for. Every engine that fills trees uses these. Columns, limits and agents are scaled so that
each is about 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance.tolerances import ROUNDING
from fairopt.program.agents import AgentProgram
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import REFINED, solved
from fairopt.solvers.leximin.agent_rows import AgentRows
from fairopt.solvers.leximin.floors import AgentLevel
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["AgentPrograms"]


class AgentPrograms:
    """The programs of one set of limits and agents; each starts from the basis of the last."""

    def __init__(self, program: AgentProgram, deadline: Deadline) -> None:
        self.program, self.deadline = program, deadline
        largest = program.largest()
        self.room = largest > 0
        self.scale = np.where(self.room, largest, 1.0)
        use = sp.csr_array(program.matrix * self.scale)
        self.rules = np.isin(np.arange(program.bounds.size), list(program.rules))
        size = np.maximum(np.abs(program.bounds), abs(use).max(axis=1).toarray().ravel()) if self.rules.any() else program.bounds
        self.bounds = np.where(self.rules & (size > 0), size, np.where(program.bounds > 0, program.bounds, 1.0))
        self.upper = np.where(self.rules, program.bounds / self.bounds, np.where(program.bounds > 0, 1.0, 0.0))
        self.use = use / self.bounds[:, None]
        self.worth = sp.csr_array(program.worth * self.scale)
        self.reach = np.asarray(self.worth @ self.room.astype(float))
        self.basis: Any = None
        self.programs = self.iterations = 0

    def solve(self, start: Sequence[float], rate: Sequence[float]) -> AgentLevel:
        """Return the largest t, with its proof.

        Raises
        ------
        NoSolution
            At the deadline, or where HiGHS finds no solution of a program that has one.
        """
        begin, speed = np.array(start, float), np.array(rate, float)
        rising = speed > 0
        left = np.maximum(self.reach - begin, SETTINGS.least_left * self.reach)
        t_unit = float((left[rising] / speed[rising]).min()) / max(1, int(rising.sum())) ** 0.5
        wanted = np.where(rising, speed * t_unit, 0.0)
        size = np.where(rising, np.maximum(wanted, begin), np.where(begin > 0, begin, self.reach))
        size = np.maximum(size, SETTINGS.least_of_reach * self.reach)
        size[~(size > 0)] = 1.0
        rows = sp.csr_array(self.worth / size[:, None])
        lp = AgentRows(self.use, self.upper, self.room, rows, wanted / size, begin / size)
        found = solved(lp.solve(self.deadline, self.basis), self.deadline, {"levels": []})
        outcome = lp.model.refine(found, self.deadline.left, of_prices=REFINED)
        self.basis = lp.model.basis
        self.programs, self.iterations = self.programs + lp.runs, self.iterations + lp.iterations + outcome.iterations - found.iterations
        y = np.maximum(outcome.x[:-1], 0.0) * self.room
        if not self.rules.any():  # else less of y may be infeasible
            y /= max(1.0, float((self.use @ y)[self.program.bounds > 0].max(initial=0.0)))
        has = np.asarray(self.worth @ y)
        gained = (has - begin)[rising] / speed[rising]
        t = float(outcome.x[-1]) * t_unit
        t = min(max(float(gained.min()), t), float((gained + ROUNDING * np.abs(begin[rising]) / speed[rising]).min()))
        prices = np.maximum(outcome.row_duals[: self.bounds.size], 0.0) / self.bounds
        pays = np.maximum(-outcome.row_duals[self.bounds.size :], 0.0) / size
        level = begin + speed * t
        paid = pays * np.maximum(level, SETTINGS.least_paid * self.reach)
        gap = max(float(prices @ self.program.bounds - pays @ level), ROUNDING * float(paid.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            could = np.where(rising & (paid > 0), gap / paid, np.inf)
        stopped = rising & (could <= max(SETTINGS.settled_agent, float(could[rising].min())))
        return AgentLevel(t, y * self.scale, prices, pays, stopped)
