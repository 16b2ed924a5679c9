"""What guaranteed nodes hold when each is filled alone, one after the other, with nothing read off a filling of several."""

from __future__ import annotations

from typing import Any

from fairopt.program import Program, Solution, TreeFilling
from fairopt.program.agents import AgentProgram
from fairopt.program.promises import Promise
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.agents import AgentPrograms
from fairopt.solvers.leximin.floors import asked_alone
from fairopt.solvers.leximin.tree import _Tree
from fairopt.solvers.via_highs.tree import _beginning

NEVER = Deadline(None)


class OneByOne(_Tree):
    """A filling by HiGHS that fills no guarantees together."""

    def together(self) -> tuple[Solution, Any] | None:
        """Ask nodes one by one."""
        return None


def held_alone(program: Program, goal: TreeFilling) -> tuple[tuple[Promise, ...], list[float], list[float]]:
    """Return all promises of a filling, their units, and the most that each could hold alone."""

    def agents_of(program: AgentProgram) -> AgentPrograms:
        return AgentPrograms(program, NEVER)

    filling = OneByOne(program, goal, _beginning(1e-8, NEVER, []), 1e-9, agents_of)
    return asked_alone(program, goal, filling, agents_of)
