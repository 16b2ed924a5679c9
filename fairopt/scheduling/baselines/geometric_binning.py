r"""Geometric binning: fill bins of levels that end at T, ratio T, ratio^2 T, ..., the lowest bin first (Namyar et al. 2024, Soroush).

T is at most the smallest level of the leximin, so that everybody fills the first bin. The programs are in
`fairopt.scheduling.baselines.bins`; the paper has one linear program, in which a unit in a bin is worth less than one in the bin below.
With ``part=0`` the bins are filled one after another, which is what the weights stand for.

*Guarantee.* Everybody has at least T, or all its tasks. The papers say more of flows that take 0 or 1 of each link, with equal weights:
each rate is within the ratio of its max-min fair rate. On most small random networks it is. In `counterexample_of_flows` the
flow "long" takes two links of 7, on each of which are three flows that share a link of 3 with another one each. Fair rates are 1.5, and 2.5
for "long". With a first bin of 1, the second is filled best if the three have 2 each: a unit for "long" would cost one on both its links.
So "long" stays at 1, and 2.5 is more than twice as much. With more than three flows on each link the distance grows without end:

>>> import fairopt as fo
>>> network = counterexample_of_flows()
>>> [round(fo.schedule(network, f"max-min:{name}:ratio=2:first=1")["long"].tasks, 6) for name in ("geometric-binning", "swan")]
[1.0, 1.0]
>>> round(fo.solve(network, "max-min")["long"].tasks, 6)
2.5

With several resources one server is enough. It has 38.5 of resource r0 and 4.5 of each of r1, ..., r20. For each j, user Aj
demands 1 of r0 and 1 of rj, user Bj 2 of rj, and C demands 1 of r0; the weights are the dominant shares, so that a level is a number of
tasks. The leximin is 1.5 for all A and B, and 8.5 for C. Binning with the ratio 2 and a first bin of 1 gives the A nearly all of r0, since
that fills more of the second bin than what it takes from the B:

>>> import fairopt as fo
>>> instance = counterexample()
>>> fo.solve(instance, "drfh").tasks_per_user[[0, 20, 40]].round(6)
array([1.5, 1.5, 8.5])
>>> binned = fo.schedule(instance, "drfh:geometric-binning:ratio=2:first=1").tasks_per_user
>>> binned[40].round(6), (binned[40] / 8.5).round(3)
(np.float64(2.0), np.float64(0.235))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.instance import FloatArray, Instance
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.bins import bins_in_one, bins_in_turn, first_end, geometric_ends

__all__ = ["GeometricBinning", "counterexample", "counterexample_of_flows"]


@dataclass(frozen=True)
class GeometricBinning(Baseline):
    """Geometric binning.

    Parameters
    ----------
    ratio : float
        Of the end of a bin to that of the bin below, > 1.
    first : float
        The level at which the first bin ends, at most the smallest level of the leximin; 0: the smallest level of single-pass
        water-filling.
    part : float
        What a unit in a bin is worth of one in the bin below, in one program; 0: the bins one after another.

    Raises
    ------
    Unsupported
        An option is none of these.
    """

    ratio: float = 2.0
    first: float = 0.0
    part: float = 0.0

    name: ClassVar[str] = "geometric-binning"
    title: ClassVar[str] = "Geometric binning: as much as possible up to a level T, then up to ratio T, ratio^2 T, ..."
    source: ClassVar[str] = "Namyar et al. (2024), Soroush"
    example: ClassVar[str] = "tsf:geometric-binning:ratio=2"
    guarantee: ClassVar[str] = (
        "everybody has at least the end of the first bin, or all its tasks; that flows with equal weights are within the ratio, as was "
        "published, has a counterexample"
    )
    needs_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.require_more("ratio", 1)
        self.require_number("first", 0, 1e300)
        self.require_number("part", 0, 1)

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return the tasks, and the ends of the bins."""
        first = first_end(case, self.first, self.name)
        if not first:  # nobody can have anything
            return case.tasks(np.zeros(case.program.n_pairs)), {"ends": []}
        ends = geometric_ends(case, first, self.ratio, self.name)
        x = bins_in_one(case, ends, self.part) if self.part else bins_in_turn(case, ends)[0]
        return case.tasks(x), {"ends": ends.tolist()}


def counterexample() -> Instance:
    """Return an instance of several resources on which geometric binning is not within its ratio."""
    groups = np.eye(20)
    demands = np.vstack([np.hstack([np.ones((20, 1)), groups]), np.hstack([np.zeros((20, 1)), 2 * groups]), np.eye(21)[:1]])
    capacities = np.array([[38.5, *[4.5] * 20]])
    users = [*(f"A{j}" for j in range(1, 21)), *(f"B{j}" for j in range(1, 21)), "C"]
    return Instance(capacities, demands, weights=(demands / capacities).max(axis=1), users=users, resources=[f"r{j}" for j in range(21)])


def counterexample_of_flows(each: int = 3) -> Instance:
    """Return flows of which geometric binning and SWAN give one 2 / (each + 2) of its fair rate, with the ratio 2 and a first bin of 1."""
    links: dict[str, float] = {}
    flows: dict[str, list[list[str]]] = {"long": [["A", "B"]]}
    for side in ("A", "B"):
        links[side] = 2 * each + 1
        for k in range(1, each + 1):
            shared, last = f"{side}{k}", f"{side}{k} last"
            links |= {shared: 3, last: 3}
            flows |= {f"{side} first {k}": [[side, shared]], f"{side} second {k}": [[shared, last]], f"{side} third {k}": [[last]]}
    return Instance.from_paths(links, flows)
