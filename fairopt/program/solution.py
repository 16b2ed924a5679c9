"""What an engine returns: a point of a program, with the levels and prices that prove it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fairopt.instance import FloatArray, IntArray

if TYPE_CHECKING:
    from fairopt.program.guarantees import Floors

__all__ = ["Solution", "Stage"]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One level of a leximin: U[n] / weights[n] of these users cannot exceed ``value`` without lowering a user at or below it.

    ``prices`` (limits,) are the dual prices that prove it (``fairopt.certificate.levels``); None for whole tasks.

    Of a tree that is filled, ``value`` is the time t of its ``part``, and the prices are those of the limits with the part's extra ones
    behind them. None: the rates change there without a limit, as these users, if there are any, have all their tasks.

    With ``floors`` they are those of a completion (`fairopt.program.guarantees`): of its limits, and behind them of the groups of promises.

    Of a nested leximin, ``part`` is the depth, ``agents`` are those settled, and behind the prices of the limits are those of the agents.
    """

    value: float
    users: IntArray
    prices: FloatArray | None
    part: int = 0
    agents: IntArray | None = None
    floors: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What an engine returns.

    Attributes
    ----------
    x : array (pairs,)
    stages : of Leximin and Equalize, in ascending order
    prices : array (limits,), or None
        Dual prices of the limits, for Total, AlphaFair and Tradeoff
    gap : float, or None
        For whole tasks: the largest relative gap between incumbent and bound over the MILPs solved
    bound : float, or None
        For whole tasks and Total: the engine's bound on the goal (for Leximin, on the smallest level)
    iterations : int
        Number of iterations, in the engine's own units
    programs_solved : int
        Number of LPs or MILPs solved
    auxiliary : array, or None
        Values of the auxiliary columns of Disjunctive
    trace : object
        A record of the iterations, from engines that keep one
    parts : tuple of arrays (pairs,)
        Of a tree that is filled: a point at the end of each part, within its extra limits
    extra_bounds : tuple of arrays (extra limits,) or None
        Of each such part, the bounds of its extra limits; None: their own. (): so are all.
    raised : mapping from parts to tuples of Stage
        Of the parts whose extra limits a program has raised, the levels that prove by how much
    promised : Floors, or None
        How far guarantees are met together; None where nothing had to be asked
    seconds : mapping
        Parts of the engine's time that it reports separately, such as ``compile``
    groups : int, or None
        Into how many groups of similar users the engine divided all users
    """

    x: FloatArray
    stages: tuple[Stage, ...] = ()
    prices: FloatArray | None = None
    gap: float | None = None
    bound: float | None = None
    iterations: int = 0
    programs_solved: int = 1
    auxiliary: FloatArray | None = None
    trace: Any = None
    parts: tuple[FloatArray, ...] = ()
    extra_bounds: tuple[FloatArray | None, ...] = ()
    raised: Mapping[int, tuple[Stage, ...]] = field(default_factory=dict)
    promised: Floors | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    groups: int | None = None

    @property
    def points(self) -> tuple[FloatArray, ...]:
        """All points that must be within the limits, (pairs,) each: the answer, and those that prove it."""
        more = () if self.promised is None else (*(each for each in self.promised.points if each is not None), *self.promised.seen)
        return (self.x, *self.parts, *(each[: self.x.size] for each in more))

    def counting(self, *others: Solution) -> Solution:
        """Return the solution with the iterations and programs of others counted, too."""
        names = ("iterations", "programs_solved")
        return replace(self, **{name: sum(getattr(each, name) for each in (self, *others)) for name in names}) if others else self

    def bounds_of_part(self, part: int) -> FloatArray | None:
        """Return the bounds of the extra limits of a part of a tree, None: their own."""
        return self.extra_bounds[part] if self.extra_bounds else None
