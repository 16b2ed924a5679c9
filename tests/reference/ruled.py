"""An oracle for leximins and totals over any polytope: it is given rows and nothing else.

Level by level by SciPy's linear programs; a user is settled if it cannot have more than the level with all others at theirs, each alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from reference.linear import optimum

Array = npt.NDArray[np.float64]


def largest(cost: Array, rows: Array, right: Array) -> float:
    """The largest cost z within rows z <= right, z >= 0; ValueError where there is none."""
    found = optimum(cost, rows, right)
    if found.x is None:
        raise ValueError(found.status)
    return found.value


def leximin(shares: Array, rows: Array, right: Array) -> Array:
    """The leximin of shares x, (users,), within rows x <= right, x >= 0.

    Parameters
    ----------
    shares : array (users, pairs)
    rows, right : arrays (rows, pairs), (rows,)
    """
    users, pairs = shares.shape
    level, settled = np.zeros(users), np.zeros(users, bool)
    while not settled.all():
        rate = (~settled).astype(float)
        with_t = np.vstack([np.hstack([rows, np.zeros((len(right), 1))]), np.hstack([-shares, rate[:, None]])])
        t = largest(np.append(np.zeros(pairs), 1.0), with_t, np.append(right, -level * (1 - 1e-12)))
        least = np.where(settled, level, t) * (1 - 1e-10)
        all_rows, all_right = np.vstack([rows, -shares]), np.append(right, -least)
        before = settled.copy()
        for n in np.flatnonzero(~before):
            if largest(shares[n], all_rows, all_right) <= t * (1 + 1e-7) + 1e-9:
                settled[n], level[n] = True, t
        assert settled.sum() > before.sum()
    return level


def filling(shares: Array, rows: Array, right: Array, rates: Callable[[Array], Array], start: Array, rising: Array) -> Array:
    """The shares of a filling of one part within rows x <= right, x >= 0, by the definition: each has at least its share on the course.

    Parameters
    ----------
    shares : array (users, pairs)
    rates : function
        From who rises, bool (users,), to the rate of each, (users,).
    start : array (users,)
        What earlier parts gave.
    rising : bool array (users,)
    """
    course, rising, pairs = start.copy(), rising.copy(), shares.shape[1]
    while rising.any():
        rate = rates(rising)
        with_t = np.vstack([np.hstack([rows, np.zeros((len(right), 1))]), np.hstack([-shares, rate[:, None]])])
        t = largest(np.append(np.zeros(pairs), 1.0), with_t, np.append(right, -course * (1 - 1e-12)))
        course = course + rate * t
        all_rows, all_right = np.vstack([rows, -shares]), np.append(right, -course * (1 - 1e-10))
        stopped = [n for n in np.flatnonzero(rising) if largest(shares[n], all_rows, all_right) <= course[n] * (1 + 1e-7) + 1e-9]
        assert stopped
        rising[stopped] = False
    return course
