"""Best response: the equilibrium of servers, by sweeps (`fairopt.solvers.equilibrium.sweeping`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairopt.instance.tolerances import EXACT
from fairopt.program import Equilibrium, Feature, Program, Solution
from fairopt.solvers.backend import Backend, Deadline, Method

__all__ = ["BestResponse"]


class BestResponse(Backend):
    """Servers in turn, each in closed form, with an exact finish."""

    name = "best-response"
    title = "Best response: servers in turn, each in closed form, with an exact finish"
    features = frozenset({Feature.EQUILIBRIUM, Feature.MARKET, Feature.SEVERAL_SERVERS})
    package = "numba"
    requirement = "pip install numba"

    def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
        """Return the one method; its answer is polished unless it is exact to rounding."""
        (method,) = super().methods(program, tolerance)
        return (replace(method, polish_above=EXACT),)

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Sweep until a point satisfies the condition of the equilibrium."""
        from fairopt.solvers.equilibrium.sweeping import find_equilibrium

        return find_equilibrium(program, program.goal_as(Equilibrium), tolerance, deadline)
