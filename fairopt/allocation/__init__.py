"""The answer: tasks, shares, prices and levels, and what each queue holds.

================  ==========================================================================
``allocation``    `Allocation`
``level``         `Level` of a leximin, with its prices
``question``      the arguments that led to an allocation
``proof``         what its certificate says, in words
``stops``         what stops the users of each level
``exact_answer``  tasks, shares, levels and prices as Fractions
``holdings``      what each user and queue holds
``bounds``        what is used of shared resources and limits, and both sides of rules
``counted``       the parts of the cluster that count: as the notion was asked to weigh them
``promises``      guarantees and limits of queues: amounts held and missing
``most_held``     the linear program of a missing guarantee, in fractions
``records``       an allocation as plain data, a table, labelled arrays
================  ==========================================================================
"""

from __future__ import annotations

from fairopt.allocation.allocation import GIVEN, Allocation
from fairopt.allocation.exact_answer import ExactAnswer
from fairopt.allocation.level import Level
from fairopt.allocation.question import Approximation, Greedy, Optimum

__all__ = ["GIVEN", "Allocation", "Approximation", "ExactAnswer", "Greedy", "Level", "Optimum"]
