"""What is known of a program from the answer to one much like it: a guess, on which no answer relies."""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.instance import FloatArray

__all__ = ["Likeness"]


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """The levels and the tasks of a program much like this one.

    Attributes
    ----------
    several_levels : bool
        Does it have several levels that prices prove? Engines may be faster or slower for these.
    prices : array (levels, limits), optional
        Of these levels, from the lowest, for the limits of this program; None where its servers are others.
    tasks : array (pairs,), optional
        Of the users and servers that both have; 0 on other pairs.
    """

    several_levels: bool
    prices: FloatArray | None = None
    tasks: FloatArray | None = None
