"""Lower bounds of single users: rules that say no more than the least utility of a user.

A rule sum_i a[n,i] x[n,i] >= b with a > 0 on all servers of user n, and a in one ratio to what a task is worth, says that the utility of n
is at least b u / a. What a guarantee of tasks gives is such a rule (`fairopt.solving.kept_guarantees`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import ROUNDING
from fairopt.program.limits import LimitKind

if TYPE_CHECKING:
    from fairopt.program.program import Program

__all__ = ["OwnFloors"]


@dataclass(frozen=True, slots=True, eq=False)
class OwnFloors:
    """The least utilities of users, where a program has no rules but these.

    Attributes
    ----------
    row : int array (users,)
        Position among the limits of the rule that asks most of each user, -1 for users without one.
    least : array (users,)
        The least utility, 0 for users without one.
    """

    row: IntArray
    least: FloatArray

    @classmethod
    def of(cls, program: Program) -> OwnFloors | None:
        """Return the least utilities of users; None if the program has other rules as well.

        >>> import fairopt as fo
        >>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] >= 2"])
        >>> floors = OwnFloors.of(fo.formulate(pool, "proportional"))
        >>> floors.row.tolist(), floors.least.tolist()
        ([1, -1], [2.0, 0.0])
        >>> OwnFloors.of(fo.formulate(pool.replace(rules=["x[a] >= 2 * x[b]"]), "proportional")) is None
        True
        """
        limits, users = program.limits, len(program.users)
        row, least = np.full(users, -1), np.zeros(users)
        open_to = program.largest() > 0
        columns = np.bincount(program.pair_users[open_to], minlength=users)
        for k in np.flatnonzero(limits.kinds == LimitKind.RULE).tolist():
            entries = slice(limits.matrix.indptr[k], limits.matrix.indptr[k + 1])
            pairs, values, bound = limits.matrix.indices[entries], -limits.matrix.data[entries], -limits.bounds[k]
            if not pairs.size or (values < 0).any():
                return None
            if bound <= 0:
                continue  # every x >= 0 obeys it
            user = program.pair_users[pairs[0]]
            if (program.pair_users[pairs] != user).any() or open_to[pairs].sum() < columns[user] or not columns[user]:
                return None
            worth = program.utilities[pairs] / values
            if worth.max() > worth.min() * (1 + ROUNDING):
                return None
            if bound * worth.max() > least[user]:
                row[user], least[user] = k, bound * worth.max()
        return cls(row, least)
