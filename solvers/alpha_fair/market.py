"""An equilibrium of servers that divide their time, as the market that it is: a convex program, solved without taking turns.

Where tasks have no end the two have the same x[n] (`fairopt.models.psdsf` has the proof), and the prices of the market prove nothing of the
equilibrium: what the engine returns is checked by the condition of the equilibrium itself, as every answer is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.program import AlphaFair, Equilibrium, Program

__all__ = ["as_market", "is_large"]

# From how many pairs, and pairs per server, on the market is the faster way. Seconds of a processor, this and best response, users x
# servers: 1,000 x 10 0.03, 0.07; 20,000 x 10 0.16, 4.0; 1,000 x 30 0.04, 0.23; 300 x 100 0.04, 0.13; a tenth of the pairs of 1,000 x 100
# 0.10, 0.07; 100 x 300 0.08, 0.12; 30 x 1,000 0.57, 0.42.
_PAIRS, _PAIRS_PER_SERVER = 10_000, 200


def is_large(program: Program) -> bool:
    """Is it a market that is large enough?"""
    return program.is_market and program.n_pairs >= max(_PAIRS, _PAIRS_PER_SERVER * len(program.servers))


def as_market(program: Program) -> Program:
    """Return the program of Eisenberg and Gale: max sum of weights[n] log x[n]."""
    assert isinstance(program.goal, Equilibrium)
    return replace(program, goal=AlphaFair(1.0, program.goal.weights), utilities=np.ones(program.n_pairs))
