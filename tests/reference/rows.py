"""A leximin of rows and nothing else: no servers, resources or queues, only A x <= b, by SciPy's linear programs level by level.

Users are settled by maximising each alone: whoever cannot exceed the level without lowering somebody at or below it stops there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from reference.linear import TIGHT, optimum

__all__ = ["Rows", "leximin"]


class Rows:
    """Rows over columns (user, server), written down one by one."""

    def __init__(self, columns: Sequence[tuple[int, int]]) -> None:
        self.columns, self.matrix, self.bounds = list(columns), list[list[float]](), list[float]()

    def add(self, coefficients: Sequence[float], bound: float) -> None:
        """Add a row; the coefficients are those of the columns."""
        self.matrix.append(list(coefficients))
        self.bounds.append(bound)


def leximin(rows: Rows, worth: Sequence[float], users: int) -> np.ndarray:
    """Return the levels of the users, (users,): sum of worth x over the columns of each; 0 of a user without columns."""
    size = len(rows.columns)
    own = np.zeros((users, size))
    for j, (user, _) in enumerate(rows.columns):
        own[user, j] = worth[j]
    level, rising = np.zeros(users), np.asarray(own.any(axis=1))
    a, b = np.reshape(rows.matrix, (-1, size)), np.array(rows.bounds)
    while rising.any():
        floors = np.zeros((users, size + 1))
        floors[:, :size] = -own
        floors[rising, size] = 1.0
        held = np.where(rising, 0.0, level)
        wider = np.vstack([np.column_stack([a, np.zeros(len(b))]), floors])
        t = _most(np.append(np.zeros(size), 1.0), wider, np.append(b, -held * (1 - 1e-11)))
        held = np.where(rising, t, level)
        inside = np.vstack([a, -own]), np.append(b, -held * (1 - 1e-9))
        stopped = [n for n in np.flatnonzero(rising) if _most(own[n], *inside) <= t * (1 + 1e-6) + 1e-12]
        assert stopped
        level[stopped], rising[stopped] = t, False
    return level


def _most(goal: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    found = optimum(goal, a, b, **TIGHT)
    assert found.x is not None, found.status
    return float(goal @ found.x)
