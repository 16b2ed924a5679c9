"""An allocation in fractions: ``fairopt.solve(..., exact=True).exact``.

>>> import fairopt as fo
>>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])
>>> exact = fo.solve(instance, "drfh", exact=True).exact
>>> exact.tasks_per_user
array([Fraction(60, 23), Fraction(72, 23), Fraction(144, 23)],
      dtype=object)
>>> exact.levels
array([Fraction(6, 23)], dtype=object)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fairopt.instance.fractions import ExactArray, text_of
from fairopt.validation import restore_read_only
from fairopt.wording import enclosed

if TYPE_CHECKING:
    from fairopt.allocation.level import Level

__all__ = ["ExactAnswer", "as_text"]


@dataclass(frozen=True, slots=True, eq=False)
class ExactAnswer:
    """Tasks, shares and levels as Fractions.

    Attributes
    ----------
    tasks : array (users, servers)
    shares : array (users,) or (users, servers)
        As in `fairopt.Allocation`.
    levels : array (levels,)
        Their values, ascending; empty where the goal has none.
    radius : Fraction
        0 if the numbers are the optimum. Positive for goals whose optimum is irrational: the tasks are feasible, and the optimal utility
        of each user is within ``radius`` times its utility here. If the worth of a task does not depend on the server, the same bound
        holds for ``tasks_per_user``.
    prices : array (servers, resources) or (servers, 1), or None
    proved_levels : tuple of Level
    queue_prices : dict
        ``prices``, ``levels`` and ``queue_prices`` of `fairopt.Allocation`, with Fractions for all numbers. If several steps of the proof
        settle users at one level, the prices of the level are the mean of the prices of its steps, which also proves the level.
    steps : tuple of Level
        The steps of the proof, each with the users that it settles and its own prices.
    """

    tasks: ExactArray
    shares: ExactArray
    levels: ExactArray
    radius: Fraction = Fraction(0)
    prices: ExactArray | None = None
    proved_levels: tuple[Level, ...] = ()
    queue_prices: dict[str, Any] = field(default_factory=dict)
    steps: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        for array in (self.tasks, self.shares, self.levels, self.prices):
            if array is not None:
                array.setflags(write=False)

    __setstate__ = restore_read_only

    @property
    def tasks_per_user(self) -> ExactArray:
        """x[n] = sum_i x[n,i], (users,)."""
        total: ExactArray = self.tasks.sum(axis=1)
        return total

    def of_user(self, n: int, servers: Sequence[str]) -> dict[str, Any]:
        """Return what a user has as text: its tasks, its share, and its tasks by server; decimals with the digits that are proved."""
        text = as_text if not self.radius else self._decimal
        held = {server: text(tasks) for server, tasks in zip(servers, self.tasks[n], strict=True) if tasks}
        return {"tasks": text(self.tasks_per_user[n]), "share": text(self.shares[n]), "servers": held}

    def _decimal(self, value: Fraction) -> str:
        return enclosed(value, self.radius)


def as_text(values: Any) -> Any:
    """Return fractions as text, "20/3" and "4", in lists of lists as deep as the array.

    >>> import numpy as np
    >>> as_text(np.array([Fraction(20, 3), Fraction(4)]))
    ['20/3', '4']
    """
    if isinstance(values, Fraction):
        return text_of(values)
    plain: Any = values.tolist() if hasattr(values, "tolist") else values
    return [as_text(value) for value in plain] if isinstance(plain, list) else str(plain)
