"""The order of users by windows, as Maui and Moab have it, while time goes on and what runs does not change.

Within a window, with s the time since its beginning, what user n has used in all windows, and what all have, grows linearly:

    U[n](s) = U[n] + R[n] s,    T(s) = T + R s,    distance of n = target[n] - U[n](s) / T(s).

So two users change places where (target[n] - target[m]) T(s) = U[n](s) - U[m](s), or where a window ends. After as many windows as count,
all windows are alike and nothing changes any more.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.simulation.baselines.options import Windows
from fairopt.simulation.baselines.windows import WindowUsage, by_distance

__all__ = ["WindowRanks"]


class WindowRanks:
    """Ranks of users at times from now; the present window has just begun.

    Parameters
    ----------
    windows : Windows
    wanted : array (users,)
        Targets.
    used : array (users, windows)
        What was used, the present window first.
    rate : array (users,)
        What is used now, per second.

    >>> ranks = WindowRanks(Windows(100.0, 2, 0.5), np.array([0.5, 0.5]), np.array([[60.0], [40.0]]), np.array([0.0, 1.0]))
    >>> ranks.at(0.0).tolist(), ranks.times(0), ranks.at(21.0).tolist()
    ([1, 0], [0.0, 20.0, 100.0, 200.0], [0, 1])
    """

    def __init__(self, windows: Windows, wanted: FloatArray, used: FloatArray, rate: FloatArray) -> None:
        self.windows, self.wanted, self.used, self.rate = windows, wanted, used, rate

    def effective(self, seconds: float) -> FloatArray:
        """Return the effective usage after a time, (users,)."""
        return self._usage().effective(seconds)

    def at(self, seconds: float) -> IntArray:
        """Return the rank of each user after a time, (users,); 0 is first."""
        return by_distance(self.wanted, self.effective(seconds))

    def times(self, user: int) -> list[float]:
        """Return all times at which the rank of a user may change."""
        interval, depth = self.windows.interval, self.windows.depth
        factors = self.windows.decay ** np.arange(depth)
        usage, found = self._usage(), list[float]()
        more, target = self.rate - self.rate[user], self.wanted - self.wanted[user]
        for number in range(depth + 1):
            begins = number * interval
            has = usage.at(begins) @ factors
            found.append(begins)
            ahead, slope = has - has[user] - target * has.sum(), target * self.rate.sum() - more
            after = np.divide(ahead, slope, out=np.full(has.size, -1.0), where=slope != 0)
            found += (begins + after[(after > 0) & (after < interval)]).tolist()
        return sorted(set(found))

    def _usage(self) -> WindowUsage:
        usage = WindowUsage(self.rate.size, self.windows.interval, self.windows.depth, self.windows.decay)
        usage.begin(self.used)
        usage.at(0.0)
        usage.rate[:] = self.rate
        return usage
