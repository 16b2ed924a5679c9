"""What is known of a program from the answer to one much like it: a guess, on which no answer relies."""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.instance import FloatArray
from fairopt.program.limits import LimitKind, Limits

__all__ = ["Likeness"]


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """The levels, prices and tasks of a program much like this one.

    Attributes
    ----------
    several_levels : bool
        Does it have several levels that prices prove? Engines may be faster or slower for these.
    prices : array (levels, limits), optional
        Of these levels, from the lowest, for the limits of this program; of a goal without levels one row. None where its servers are
        others.
    tasks : array (pairs,), optional
        Of the users and servers that both have; 0 on other pairs.
    """

    several_levels: bool
    prices: FloatArray | None = None
    tasks: FloatArray | None = None

    def has_prices_of(self, limits: Limits) -> bool:
        """Are there prices of these limits, and are they no others than those of servers and of the tasks of users?"""
        if self.prices is None or self.prices.shape[1] != len(limits):
            return False
        return bool(limits.of_kinds(LimitKind.CAPACITY, LimitKind.TIME, LimitKind.TASKS).all())
