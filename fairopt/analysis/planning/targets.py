"""Whole tasks as a target where no engine finds the best ones: those nearest to the divisible optimum (`fairopt.program.placement`).

Each user has as many tasks as in the optimum of divisible tasks, without the part of one, as far as they fit; and the largest parts are
rounded up where there is room.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.program.kept_parts import without_breaking
from fairopt.program.placement import WholePlacement
from fairopt.program.queue_limits import Row
from fairopt.solvers import place_whole

__all__ = ["nearest"]


def nearest(single: Instance, tasks: FloatArray, time_limit: float | None) -> FloatArray:
    """Return whole tasks by user, (users,), that fit on single servers.

    Parameters
    ----------
    single : Instance
        Of single servers.
    tasks : array (users,)
        Of the divisible optimum.
    time_limit : float or None
        Seconds.

    >>> lab = Instance([[4], [4]], [[1.5], [1]])
    >>> nearest(lab, np.array([2.6, 4.0]), None)  # 2 and 1 tasks of 1.5 on the two servers, or 2 and 2 with room for 2 of the other
    array([2., 4.])
    """

    def placed(rows: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
        program = WholePlacement.of(single, np.where(single.zero_demand, 0.0, tasks), rows)
        table = np.zeros((single.n_users, single.n_servers))
        table[program.pair_users, program.pair_servers] = np.round(place_whole(program, time_limit).x)
        return table.sum(axis=1), table

    return without_breaking(single, placed)
