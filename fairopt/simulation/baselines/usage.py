"""Usage that fades: dU/dt = rate - U ln 2 / h, so that U halves in a half-life h in which nothing is used.

>>> usage = FadingUsage(2, 10.0)
>>> usage.at(0.0).tolist()
[0.0, 0.0]
>>> usage.rate[0] = 1.0
>>> usage.at(10.0).round(3).tolist()  # 10 / ln 2 (1 - 1/2)
[7.213, 0.0]
>>> usage.rate[0] = 0.0
>>> usage.at(20.0).round(3).tolist()
[3.607, 0.0]
"""

from __future__ import annotations

import math

import numpy as np

from fairopt.instance import FloatArray
from fairopt.simulation.keeping import State

__all__ = ["FadingUsage", "fading", "same_digits"]

_LOST = 15  # bits of the 52 of a mantissa


def fading(seconds: float, half_life: float) -> tuple[float, float]:
    """Return what is left of one unit of usage after some seconds, and what a rate of 1 adds in them.

    >>> fading(5.0, math.inf)
    (1.0, 5.0)
    """
    if math.isinf(half_life):
        return 1.0, seconds
    fall = -math.expm1(-seconds * math.log(2) / half_life)
    return 1.0 - fall, fall * half_life / math.log(2)


class FadingUsage:
    """The faded usage of users at a time that only moves on.

    Attributes
    ----------
    rate : array (users,)
        What each user uses now, per second; to be changed only after `at` has moved to now.
    """

    def __init__(self, users: int, half_life: float) -> None:
        self.half_life = half_life
        self.rate = np.zeros(users)
        self._used = np.zeros(users)
        self._time = -math.inf

    def state(self) -> State:
        """Return the state, for `restore`."""
        return {"used": self._used, "rate": self.rate.copy(), "time": self._time}

    def restore(self, state: State) -> None:
        """Go back to a state; ``rate`` stays the same array."""
        self._used, self._time = state["used"], float(state["time"])
        self.rate[:] = state["rate"]

    def begin(self, used: FloatArray) -> None:
        """Give users this usage, (users,), at the beginning."""
        self._used[:] = used

    def at(self, now: float) -> FloatArray:
        """Move on to a time; return the usage then, (users,). The array must not be changed."""
        if now > self._time:
            if math.isfinite(self._time):
                kept, added = fading(now - self._time, self.half_life)
                self._used = self._used * kept + self.rate * added
            self._time = now
        return self._used


def same_digits(values: FloatArray) -> FloatArray:
    """Return values >= 0 to eleven digits, in which those that differ by rounding are the same.

    >>> a, b, c = same_digits(np.array([0.1 + 0.2, 0.3, math.inf]))
    >>> a == b, c
    (np.True_, np.float64(inf))
    """
    bits = np.ascontiguousarray(values).view(np.int64) + (1 << _LOST - 1)
    return (bits & ~((1 << _LOST) - 1)).view(np.float64)
