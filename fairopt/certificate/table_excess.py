"""What tasks of a program of all pairs exceed its limits by, without a column or a row."""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray
from fairopt.program import AllPairs

__all__ = ["table_excess"]


def table_excess(program: AllPairs, tasks: FloatArray) -> float:
    """Return the largest relative excess of tasks, (users, servers), over a capacity; or the most negative number of tasks.

    >>> import fairopt as fo
    >>> from fairopt.program import Leximin
    >>> program = AllPairs.of(fo.Instance([[2.0]], [[1.0], [1.0]]), np.ones(2), Leximin(np.ones(2)), "", "")
    >>> table_excess(program, np.array([[1.0], [1.5]]))
    0.25
    """
    excess = tasks.T @ program.demands - program.capacities
    relative = np.divide(excess, program.capacities, out=excess, where=program.capacities > 0)
    return max(float(relative.max(initial=0.0)), float(-tasks.min(initial=0.0)))
