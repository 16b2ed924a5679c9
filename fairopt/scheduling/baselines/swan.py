r"""SWAN's iterations: the largest total with levels up to T, then up to ratio T, ...; who misses a bound stays there (Hong et al. 2013).

    for b = 0, 1, ...:
        max sum of level[n]
        subject to  A x <= b,  ratio^(b-1) T <= level[n] <= ratio^b T of users who rise,  level[n] = what it was of the others
        users below ratio^b T rise no more

T is at most the smallest level of the leximin, and the first lower bound is 0. One linear program an iteration.

*Guarantee.* Everybody has at least T, or all its tasks. The paper says that each rate is within the ratio of its max-min fair
rate, for flows with equal weights; `fairopt.scheduling.baselines.geometric_binning` has a network of 19 flows where one is not.

>>> import fairopt as fo
>>> network = fo.Instance.from_paths({"a": 2, "b": 6}, {"f": [["a"], ["b"]], "g": [["a"]]})
>>> fo.schedule(network, "max-min:swan:ratio=2").tasks_per_user.round(3)
array([6., 2.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import NOTHING, REACHED
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.bins import first_end, geometric_ends
from fairopt.scheduling.baselines.level_programs import LevelProgram

__all__ = ["SWAN"]


@dataclass(frozen=True)
class SWAN(Baseline):
    """SWAN's iterations.

    Parameters
    ----------
    ratio : float
        Of a bound to the one before, > 1; alpha in the paper.
    first : float
        The first bound, U in the paper; 0: the smallest level of single-pass water-filling. At most the smallest level of the leximin.

    Raises
    ------
    Unsupported
        An option is none of these.
    """

    ratio: float = 2.0
    first: float = 0.0

    name: ClassVar[str] = "swan"
    title: ClassVar[str] = (
        "SWAN: the largest total with levels up to T, then up to ratio T, ...; a user that misses a bound keeps its level"
    )
    source: ClassVar[str] = "Hong et al. (2013)"
    example: ClassVar[str] = "tsf:swan:ratio=2"
    guarantee: ClassVar[str] = (
        "everybody has at least the first bound, or all its tasks; that flows with equal weights are within the ratio, as was "
        "published, has a counterexample"
    )
    needs_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.require_more("ratio", 1)
        self.require_number("first", 0, 1e300)

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return the tasks, and the number of iterations."""
        first = first_end(case, self.first, self.name)
        if not first:  # nobody can have anything
            return case.tasks(np.zeros(case.program.n_pairs)), {"iterations": 0}
        program = LevelProgram.of(case, first)
        own = program.levels[program.members]
        level, rising = np.zeros(program.members.size), np.ones(program.members.size, bool)
        y, iterations = np.zeros(0), 0
        for bound in geometric_ends(case, first, self.ratio, self.name) / first:
            low = level * (1 - np.where(rising, NOTHING, REACHED))  # the last digits of a linear program
            high = np.where(rising, bound, level)
            goal: FloatArray = np.asarray(own.sum(axis=0), float).ravel()
            point = program.largest(goal, sp.vstack([own, -own]), np.concatenate([high, -low]), np.ones(goal.size))
            y = program.feasible(point)
            level, iterations = np.asarray(own @ y), iterations + 1
            rising &= level >= bound * (1 - REACHED)
            if not rising.any():
                break
        return case.tasks(program.tasks(y)), {"iterations": iterations}
