"""The answer: tasks, shares, prices and levels, and what each queue holds.

==============  ====================================================================
``allocation``  `Allocation`, its levels, and how it was found
``exact_answer``  tasks, shares, levels and prices as Fractions
``holdings``    what each user and queue holds, and what is missing of its guarantees
``most_held``   the linear program behind that, in fractions
==============  ====================================================================
"""

from __future__ import annotations

from fairopt.allocation.allocation import GIVEN, Allocation, Exact, Greedy, Level
from fairopt.allocation.exact_answer import ExactAnswer

__all__ = ["GIVEN", "Allocation", "Exact", "ExactAnswer", "Greedy", "Level"]
