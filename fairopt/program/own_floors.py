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

__all__ = ["OwnFloors", "of_one_user", "open_pairs_of"]


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
        row, least, open_pairs = np.full(users, -1), np.zeros(users), open_pairs_of(program)
        for k in np.flatnonzero(limits.kinds == LimitKind.RULE).tolist():
            entries = slice(limits.matrix.indptr[k], limits.matrix.indptr[k + 1])
            if entries.start == entries.stop or (limits.matrix.data[entries] > 0).any():
                return None
            bound = -limits.bounds[k]
            if bound <= 0:
                continue  # every x >= 0 obeys it
            user, unit = of_one_user(program, k, open_pairs)
            if user < 0:
                return None
            if bound * unit > least[user]:
                row[user], least[user] = k, bound * unit
        return cls(row, least)


def open_pairs_of(program: Program) -> IntArray:
    """Return on how many servers each user can run tasks, (users,)."""
    return np.bincount(program.pair_users[program.largest() > 0], minlength=len(program.users))


def of_one_user(program: Program, row: int, open_pairs: IntArray) -> tuple[int, float]:
    """Return the user n whose utility a limit bounds, and u[n,i] / |a[n,i]|, the utility of one unit of it; (-1, 0.0) for other limits.

    The entries a[n,i] have one sign, and one ratio to what a task is worth, on all servers on which n can run tasks. There are no others.
    ``open_pairs``, (users,), are how many such servers each user has (`open_pairs_of`).
    """
    limits = program.limits
    entries = slice(limits.matrix.indptr[row], limits.matrix.indptr[row + 1])
    pairs, values = limits.matrix.indices[entries], limits.matrix.data[entries]
    of_pairs = program.pair_users[pairs]
    if not pairs.size or (of_pairs != of_pairs[0]).any() or (np.sign(values) != np.sign(values[0])).any():
        return -1, 0.0
    mine = open_pairs[of_pairs[0]]
    worth = program.utilities[pairs] / np.abs(values)
    if not mine or (program.largest()[pairs] > 0).sum() < mine or worth.max() > worth.min() * (1 + ROUNDING):
        return -1, 0.0
    return int(of_pairs[0]), float(worth.max())
