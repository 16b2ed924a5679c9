"""Usage in windows that count less the older they are: the fairshare of Maui and Moab.

    effective usage of u = sum over k of decay^k usage[u,k] / sum over k of decay^k usage of all in window k,   k = 0: the present window

Jobs come in the order of the target of their user minus this, the largest first; the target is the user's part of all weights, down the
tree. Of a user within its target nothing else is asked.

Source: Moab Workload Manager, Administrator Guide, Fairshare (FSINTERVAL, FSDEPTH, FSDECAY, FSTARGET).

>>> totals = np.array([8154.0, 11533.0, 10236.0, 9346.0])
>>> used = np.array([0.5581, 0.5116, 0.4405, 0.2145]) * totals
>>> windows = WindowUsage(2, interval=86400.0, depth=4, decay=0.5)
>>> windows.begin(np.array([used, totals - used]))
>>> windows.effective(0.0).round(3).tolist()
[0.503, 0.497]
"""

from __future__ import annotations

import math

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tree import Tree
from fairopt.simulation.baselines.siblings import Siblings
from fairopt.simulation.baselines.usage import same_digits
from fairopt.simulation.keeping import State

__all__ = ["WindowUsage", "by_distance", "targets"]


def targets(tree: Tree, weights: FloatArray) -> FloatArray:
    """Return the target of each user, (users,): its part of the weights of its siblings, times that of each queue above.

    >>> from fairopt.instance.queues import Queue
    >>> targets(Tree.of([Queue("lab", weight=3), Queue("club")], ["lab", "lab", "club"]), np.array([1.0, 2.0, 1.0])).tolist()
    [0.25, 0.5, 0.25]
    """
    part = Siblings(tree, weights).parts()
    whole = np.ones(tree.n_nodes)
    for queue in tree.downwards():
        if queue:
            whole[queue] = whole[tree.parent[queue]] * part[queue - 1]
    return np.asarray(whole[tree.user_node] * part[tree.n_nodes - 1 :])


def by_distance(wanted: FloatArray, effective: FloatArray) -> IntArray:
    """Return the rank of each user, (users,): 0 for the largest target minus usage; distances that differ by rounding are the same.

    >>> by_distance(np.array([0.5, 0.25, 0.25]), np.array([0.75, 0.25, 0.0])).tolist()
    [2, 1, 0]
    """
    return np.asarray(np.unique(same_digits(1.0 - wanted + effective), return_inverse=True)[1])


class WindowUsage:
    """The usage of users in the present window and in those before it, at a time that only moves on.

    Windows begin at whole multiples of ``interval``.

    Attributes
    ----------
    rate : array (users,)
        What each user uses now, per second; to be changed only after `at` has moved to now.
    """

    def __init__(self, users: int, interval: float, depth: int, decay: float) -> None:
        self.interval, self._factors = interval, decay ** np.arange(depth)
        self.rate = np.zeros(users)
        self._windows = np.zeros((users, depth))
        self._time = -math.inf

    def begin(self, windows: FloatArray) -> None:
        """Give users this usage at the beginning, (users, windows), the present window first."""
        kept = windows[:, : self._factors.size]
        self._windows[:, : kept.shape[1]] = kept

    def state(self) -> State:
        """Return the state, for `restore`."""
        return {"windows": self._windows, "rate": self.rate.copy(), "time": self._time}

    def restore(self, state: State) -> None:
        """Go back to a state; ``rate`` stays the same array."""
        self._windows, self._time = state["windows"], float(state["time"])
        self.rate[:] = state["rate"]

    def at(self, now: float) -> FloatArray:
        """Move on to a time; return the usage of each window then, (users, windows). The array must not be changed."""
        if math.isfinite(self._time) and now > self._time:
            first, last = (math.floor(time / self.interval) for time in (self._time, now))
            if last - first > self._factors.size:  # every window that counts lies between the two times
                self._windows[:] = self.rate[:, None] * self.interval
                self._windows[:, 0], self._time, first = 0.0, last * self.interval, last
            for number in range(first + 1, last + 1):
                self._windows[:, 0] += self.rate * (number * self.interval - self._time)
                self._windows = np.column_stack([np.zeros(self.rate.size), self._windows[:, :-1]])
                self._time = number * self.interval
            self._windows[:, 0] += self.rate * (now - self._time)
        self._time = max(now, self._time)
        return self._windows

    def effective(self, now: float) -> FloatArray:
        """Move on to a time; return the effective usage of each user, (users,), parts of 1; 0 where nothing was used by anybody."""
        windows = self.at(now)
        total = float(windows.sum(axis=0) @ self._factors)
        return np.asarray(windows @ self._factors / total) if total > 0 else np.zeros(self.rate.size)
