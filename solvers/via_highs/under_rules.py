"""Who can have something under rules: the users whose utility can be above 0.

The feasible points are convex, so that some point gives something to all of these users together. In units of what each could have without
rules, t[n] <= 1 of each is at most what it has: maximise the sum of t. Who has t > 0 can have something. The sum is maximised again for the
others alone, who may have had less than a solver tells from 0, until it is 0. At first t is at most a part of an even share: nearly all
have that, and HiGHS finds it in a thirtieth of the time.

>>> import fairopt as fo
>>> pool = fo.Instance([[9]], [[1], [1]], users=["a", "b"], servers=["s"], rules=["x[a] <= 0.1 * x[b]", "2 * x[b] <= 4 * x[a]"])
>>> able_users(fo.formulate(pool, "max-min")).tolist()
[False, False]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray
from fairopt.program import Program
from fairopt.solvers.backend import Deadline, Status
from fairopt.solvers.highs_model import FINEST, HighsModel
from fairopt.solvers.leximin.ruled import Scaled, shares_of_users
from fairopt.solvers.via_highs.settings import SETTINGS

__all__ = ["able_users"]


def able_users(program: Program, deadline: Deadline | None = None) -> BoolArray:
    """Return which users can have something, (users,); where nothing is feasible, all who could without rules.

    Raises
    ------
    NoSolution
        At the deadline.
    """
    deadline = Deadline(None) if deadline is None else deadline
    scaled = Scaled.of(program)
    own, members, _ = shares_of_users(scaled, program.utilities)
    able, left = np.zeros(len(program.users), bool), np.arange(members.size)
    width, rows = scaled.columns.size, scaled.right.size
    most = SETTINGS.enough / max(1, members.size)
    while left.size:
        blocks: list[list[Any]] = [[scaled.matrix, None], [-own[left], sp.eye_array(left.size)]]
        matrix = sp.csr_array(sp.block_array(blocks))
        model = HighsModel(
            np.append(np.zeros(width), np.ones(left.size)),
            np.zeros(width + left.size),
            np.append(np.full(width, np.inf), np.full(left.size, most)),
            matrix,
            np.full(rows + left.size, -np.inf),
            np.append(scaled.right, np.zeros(left.size)),
            tolerance=FINEST,
        )
        outcome = model.run(deadline.left)
        if outcome.status is Status.TIME_LIMIT:
            raise deadline.passed({})
        if outcome.status is not Status.OPTIMAL:
            break
        some = outcome.x[width:] > SETTINGS.something
        if most == 1.0 and not some.any():
            return able
        able[members[left[some]]] = True
        left, most = left[~some], 1.0
    able[members[left]] = True
    return able
