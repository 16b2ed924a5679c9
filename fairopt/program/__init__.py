"""The optimisation model that a notion declares and an engine solves, as plain data.

================  ===========================================================================
``program``       `Program`, `Solution` and `Stage`
``goals``         what is maximised
``limits``        what every allocation must respect
``scaling``       a program in units of its own, and the way back
``text``          a program as mathematics
``own_limits``    caps on a user's level that follow from limits of that user alone
``parallelism``   how many servers a user runs on at once
``filling``       progressive filling: the criterion, and the arrays that are filled
``events``        the arrays of a simulation
================  ===========================================================================
"""

from __future__ import annotations

from fairopt.program.goals import AlphaFair, Alternative, Disjunctive, Equalize, Equilibrium, Goal, Leximin, Separate, Total, Tradeoff
from fairopt.program.limits import LimitKind, Limits
from fairopt.program.program import Feature, Program, Solution, Stage
from fairopt.program.scaling import ScaledColumns

__all__ = [
    "AlphaFair",
    "Alternative",
    "Disjunctive",
    "Equalize",
    "Equilibrium",
    "Feature",
    "Goal",
    "Leximin",
    "LimitKind",
    "Limits",
    "Program",
    "ScaledColumns",
    "Separate",
    "Solution",
    "Stage",
    "Total",
    "Tradeoff",
]
