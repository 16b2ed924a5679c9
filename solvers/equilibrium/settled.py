r"""The limit of sweeps whose sets have settled, without the sweeps.

While the same pairs hold something, and the same limits stop them, the answer of a server is an affine function of what its users have
elsewhere. With the levels L at which its limits fill,

    x[p]  =  g[p] L[stop[p]] - y[n],   or  T[n] - y[n]  of a user who has all its tasks,
    sum of A[r,p] x[p]  =  b[r]        for each limit r that stops a pair,

and so a sweep is an affine map of all x. The map twice is an affine map, too: squared k times it makes 2^k sweeps at once. At each of these
points the servers must answer as the map says: users rise until the first of their limits fills, or until they have all their tasks, and
no other limit is exceeded. Else the sweeps leave the sets on the way.

Given sets often have many equilibria. Their equations (`fairopt.solvers.equilibrium.equations`) find one near a point; here it is the one
that the sweeps go to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import EXACT, NOTHING
from fairopt.solvers.equilibrium.layout import Layout, State
from fairopt.solvers.equilibrium.settings import SETTINGS

__all__ = ["limit_of_sweeps"]


def limit_of_sweeps(layout: Layout, state: State) -> FloatArray | None:
    """Return the point, by pair of the program, that sweeps with the present sets go to.

    None where they leave these sets, or come to no end, or too many pairs hold something. The caller must verify the point.
    """
    holding = np.flatnonzero(state.x > 0)
    if not 0 < holding.size <= SETTINGS.few_pairs:
        return None
    try:
        sweep = _Sweep.of(layout, state, holding)
    except np.linalg.LinAlgError:  # two limits that stop the same users
        return None
    now, step = np.append(state.x[holding], 1.0), sweep.step
    with np.errstate(all="ignore"):  # an overflow is no limit
        for _ in range(SETTINGS.squarings):
            if not (np.isfinite(now).all() and sweep.keeps_sets(layout, now)):
                return None
            before, now = now, step @ now
            if np.abs(now - before).max() <= EXACT * now.max():
                x = np.zeros(state.x.size)
                x[holding] = now[:-1]
                return layout.by_pair(x)
            step = step @ step
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Sweep:
    """A sweep with given sets as an affine map: functions of what the pairs that hold something had before it, and of 1, the last entry.

    Attributes
    ----------
    holding : int array (holding,)
        The pairs that hold something, by server.
    step : array (holding + 1, holding + 1)
        What they have after it, and 1.
    elsewhere : array (pairs, holding + 1)
        What the user of each pair has elsewhere when its server acts.
    full : bool array (servers, slots)
        The limits that stop a pair.
    levels : array (full limits, holding + 1)
        Their levels.
    """

    holding: IntArray
    step: FloatArray
    elsewhere: FloatArray
    full: BoolArray
    levels: FloatArray

    @classmethod
    def of(cls, layout: Layout, state: State, holding: IntArray) -> _Sweep:
        """Return the map of a sweep with the sets of a state.

        Raises
        ------
        LinAlgError
            Where the levels of a server do not follow from its limits.
        """
        size = holding.size + 1
        step = np.eye(size)
        user, stop, g = layout.user[holding], state.stop[holding], layout.g[holding]
        total, elsewhere = np.zeros((layout.tasks.size, size)), np.zeros((layout.user.size, size))
        np.add.at(total, user, step[:-1])
        full = np.zeros(layout.bounds.shape, bool)
        levels: list[FloatArray] = [np.zeros((0, size))]
        first = np.searchsorted(holding, layout.start)
        for i in range(first.size - 1):
            own, pairs = slice(first[i], first[i + 1]), slice(layout.start[i], layout.start[i + 1])
            at, n, limit = holding[own], user[own], stop[own]
            elsewhere[pairs] = total[layout.user[pairs]]
            elsewhere[at] -= step[own]
            rows = np.unique(limit[limit >= 0])
            at_zero = -elsewhere[at]  # what its pairs have at level 0
            at_zero[limit < 0, -1] += layout.tasks[n[limit < 0]]
            per_level = np.where(limit[:, None] == rows, g[own][:, None], 0.0)
            use = layout.use[at][:, rows].T
            free = -use @ at_zero
            free[:, -1] += layout.bounds[i, rows]
            level: FloatArray = np.asarray(np.linalg.solve(use @ per_level, free), np.float64)
            answer = at_zero + per_level @ level
            total[n] += answer - step[own]
            step[own], full[i, rows] = answer, True
            levels.append(level)
        return cls(holding, step, elsewhere, full, np.concatenate(levels))

    def keeps_sets(self, layout: Layout, now: FloatArray) -> bool:
        """Do servers that are given these tasks, (holding + 1,), answer as the map says?"""
        level = np.full(self.full.shape, np.inf)
        level[self.full] = self.levels @ now
        server = np.repeat(np.arange(self.full.shape[0]), np.diff(layout.start))
        first = np.where(layout.use > 0, level[server], np.inf).min(axis=1)  # at which a limit stops each pair
        most = np.minimum(first * layout.g, layout.tasks[layout.user])
        answer = np.maximum(most - self.elsewhere @ now, 0.0)
        x = np.zeros(answer.size)
        x[self.holding] = (self.step @ now)[:-1]
        free = layout.row_bounds - layout.matrix @ x
        return bool((np.abs(answer - x) <= NOTHING * layout.largest).all() and (free >= -NOTHING * layout.row_bounds).all())
