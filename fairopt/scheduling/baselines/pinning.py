r"""Demand pinning: small demands take their first path whole, the others share what is left exactly (Namyar, Arzani et al. 2022).

Users with at most ``threshold`` tasks run all of them on their first eligible server: of flows (`fairopt.Instance.from_paths`) that is the
first path. They are pinned in the order of the instance. A user whose tasks do not fit there beside those pinned before it is not pinned.
The others have the program of the notion within what is left.

Nothing is proved of it: a pinned demand may block two others.

>>> import fairopt as fo
>>> links = {"a-b": 10, "b-d": 10, "a-c": 10, "c-d": 10}
>>> flows = {"a to d": [["a-b", "b-d"], ["a-c", "c-d"]], "a to b": [["a-b"]], "b to d": [["b-d"]]}
>>> network = fo.Instance.from_paths(links, flows).replace(tasks=[5, 10, 10])
>>> fo.solve(network, "efficiency").tasks_per_user
array([ 5., 10., 10.])
>>> fo.schedule(network, "efficiency:pinning:threshold=5").tasks_per_user
array([5., 5., 5.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import FITS
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.parts import goal_of, solved_part

__all__ = ["Pinning"]


@dataclass(frozen=True)
class Pinning(Baseline):
    """Demand pinning.

    Parameters
    ----------
    threshold : float
        Users with at most so many tasks are pinned.

    Raises
    ------
    Unsupported
        The threshold is no number > 0.
    """

    threshold: float = 1.0

    name: ClassVar[str] = "pinning"
    title: ClassVar[str] = "Demand pinning: users with few tasks run them on their first server, the others share the rest exactly"
    source: ClassVar[str] = "Namyar et al. (2022)"
    example: ClassVar[str] = "efficiency:pinning:threshold=5"
    guarantee: ClassVar[str] = "none; no limit is exceeded"

    def __post_init__(self) -> None:
        self.require_more("threshold", 0)

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return the pinned tasks, and what the others share."""
        program, goal, instance = case.program, goal_of(case, self.name), case.instance
        matrix = program.limits.transposed.tocsr()
        left, x = program.limits.bounds.copy(), np.zeros(program.n_pairs)
        pinned = np.zeros(instance.n_users, bool)
        first = np.searchsorted(program.pair_users, np.arange(instance.n_users))
        for n in program.members[instance.tasks[program.members] <= self.threshold]:
            column = first[n]
            rows = matrix.indices[matrix.indptr[column] : matrix.indptr[column + 1]]
            takes = matrix.data[matrix.indptr[column] : matrix.indptr[column + 1]] * instance.tasks[n]
            if (takes <= left[rows] + FITS * program.limits.bounds[rows]).all():
                left[rows] = np.maximum(left[rows] - takes, 0.0)
                x[column], pinned[n] = instance.tasks[n], True
        x += solved_part(case, ~pinned[program.pair_users], left, goal, self.name)
        return case.tasks(x), {"pinned": [instance.users[n] for n in np.flatnonzero(pinned)]}
