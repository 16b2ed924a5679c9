r"""Approximate and adaptive water-filling: the pairs of users and servers rise as users of their own (Namyar et al. 2024, Soroush).

*Single pass* (``rounds=1``): each of the k pairs of a user has 1/k of its weight, and all rise together until a limit is full
(`fairopt.scheduling.baselines.filling_pairs`). There is no optimisation. Where each user has one server, it is the exact leximin.

*Fixed point* (``rounds=settled``): filled again with the part of its user that each pair got as its part of the weight, until the levels
stay the same. Then each pair that is used has a full limit on which nobody who takes something of it has a higher level: the allocation
has bottlenecks, as the leximin has, and more than one allocation has them.

One flow over links a and b, and one over a alone: the single pass gives the first too much.

>>> import fairopt as fo
>>> network = fo.Instance.from_paths({"a": 2, "b": 6}, {"f": [["a"], ["b"]], "g": [["a"]]})
>>> fo.schedule(network, "max-min:water-filling").tasks_per_user.round(6)
array([6.666667, 1.333333])
>>> fo.schedule(network, "max-min:water-filling:rounds=settled").tasks_per_user.round(3)
array([6., 2.])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fairopt.instance import FloatArray
from fairopt.scheduling.baselines.baseline import Baseline, Case
from fairopt.scheduling.baselines.filling_pairs import settled_parts

__all__ = ["WaterFilling"]

_MOST_ROUNDS = 10_000
SETTLED = "settled"


@dataclass(frozen=True)
class WaterFilling(Baseline):
    """Approximate water-filling, and adaptive water-filling.

    Parameters
    ----------
    rounds : int or "settled"
        1: the single pass. More: so many rounds at most, or until nothing changes. "settled": the fixed point; ``details`` has the number
        of ``rounds``, and whether they ``settled`` within ten thousand.

    Raises
    ------
    Unsupported
        ``rounds`` is none of these.
    """

    rounds: int | str = 1

    name: ClassVar[str] = "water-filling"
    title: ClassVar[str] = (
        "Water-filling: each pair of a user and a server rises as a user of its own; in a single pass, or to its fixed point"
    )
    source: ClassVar[str] = "Namyar et al. (2024), Soroush"
    example: ClassVar[str] = "tsf:water-filling:rounds=settled"
    guarantee: ClassVar[str] = "exact where each user has one server; none else. At the fixed point each pair in use has a bottleneck"
    needs_levels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.rounds != SETTLED:
            self.require_whole_number("rounds", 1, _MOST_ROUNDS, f', or "{SETTLED}"')

    def tasks(self, case: Case) -> tuple[FloatArray, dict[str, Any]]:
        """Return the tasks, the number of rounds, and whether the last one changed nothing."""
        most = _MOST_ROUNDS if isinstance(self.rounds, str) else self.rounds
        x, rounds, settled = settled_parts(case, most)
        return case.tasks(x), {"rounds": rounds, "settled": settled}
