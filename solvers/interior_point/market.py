"""An equilibrium of servers that divide their time, as a market: a convex program, without sweeps over the servers.

Where tasks are not limited, the equilibrium and the market have the same x[n] (`fairopt.models.psdsf` has the proof). The prices of the
market prove nothing about the equilibrium: the answer is certified by the condition of the equilibrium itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.program import AlphaFair, Equilibrium, Program
from fairopt.solvers.interior_point.settings import ENGINE

__all__ = ["as_market", "is_large"]


def is_large(program: Program) -> bool:
    """Is the program a market that is large enough to be solved as one?"""
    return program.is_market and program.n_pairs >= ENGINE.pairs_of_market


def as_market(program: Program) -> Program:
    """Return the program of Eisenberg and Gale: maximise the sum of weights[n] log x[n]."""
    assert isinstance(program.goal, Equilibrium)
    return replace(program, goal=AlphaFair(1.0, program.goal.weights), utilities=np.ones(program.n_pairs))
