r"""Equal binning: bins of levels to each of which as many users belong (equi-depth binning; Namyar et al. 2024, Soroush).

The bins end at quantiles of the levels of adaptive water-filling, the first one at its smallest level, which is at most that of the
leximin; the last bin has no end. They are filled as by `fairopt.scheduling.baselines.geometric_binning`: the lowest first, or all in one
program.

Everybody has at least the end of the first bin. Nothing else is proved.

>>> import fairopt as fo
>>> network = fo.Instance.from_paths({"a": 2, "b": 6}, {"f": [["a"], ["b"]], "g": [["a"]]})
>>> fo.schedule(network, "max-min:equal-binning").tasks_per_user.round(3)
array([6., 2.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import REACHED
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.bins import bins_in_one, bins_in_turn
from fairopt.scheduling.baselines.filling_pairs import settled_parts
from fairopt.scheduling.baselines.level_programs import LevelProgram

__all__ = ["EqualBinning"]

_MOST_BINS = 1_000
_MOST_ROUNDS = 10_000


@dataclass(frozen=True)
class EqualBinning(Baseline):
    """Equal binning.

    Parameters
    ----------
    bins : int
        The number of bins, at least 2; fewer where users have the same level.
    rounds : int
        Of adaptive water-filling, whose levels the bins divide.
    part : float
        What a unit in a bin is worth of one in the bin below, in one program; 0: the bins one after another.

    Raises
    ------
    Unsupported
        An option is none of these.
    """

    bins: int = 8
    rounds: int = 10
    part: float = 0.0

    name: ClassVar[str] = "equal-binning"
    title: ClassVar[str] = "Equal binning: as geometric binning, with bins to each of which as many users belong by adaptive water-filling"
    source: ClassVar[str] = "Namyar et al. (2024), Soroush"
    example: ClassVar[str] = "tsf:equal-binning:bins=8"
    guarantee: ClassVar[str] = "everybody has at least the smallest level of adaptive water-filling; nothing else is proved"
    needs_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.require_whole_number("bins", 2, _MOST_BINS)
        self.require_whole_number("rounds", 1, _MOST_ROUNDS)
        self.require_number("part", 0, 1)

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return the tasks, and the ends of the bins but for the last, which has none."""
        guess = case.levels(settled_parts(case, self.rounds)[0])
        some = guess[guess > 0]
        if not some.size:
            return case.tasks(np.zeros(case.program.n_pairs)), {"ends": []}
        ends = np.quantile(some, np.linspace(0, 1, self.bins)[:-1])
        ends = ends[np.append(True, ends[1:] > ends[:-1] * (1 + REACHED))]
        highest = float(LevelProgram.of(case, 1.0).alone.max())
        whole = np.append(ends[ends < highest], highest)
        x = bins_in_one(case, whole, self.part) if self.part else bins_in_turn(case, whole)[0]
        return case.tasks(x), {"ends": ends.tolist()}
