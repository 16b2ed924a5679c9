"""Filling a tree of queues, part by part, in floats and in rationals: guarantees first, then what is left.

A part begins at the shares that the parts before gave. If some guarantee then holds less than it could hold alone, floors say how far
guarantees are met together (`fairopt.solvers.leximin.floors`), and the filling begins anew and keeps them. A subclass of `Filling` has the
arithmetic, and raises the levels of one part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairopt.program import Solution, Stage
from fairopt.program.filled_together import FilledTogether
from fairopt.program.guarantees import Floors
from fairopt.program.promises import in_doubt
from fairopt.program.tree_filling import Shares, TreeFilling
from fairopt.program.undisturbed import Undisturbed
from fairopt.solvers.leximin.floors import Solve, bounds_of_part, find_floors

__all__ = ["Filled", "Filling"]


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """What some parts have given: a point, the shares, all levels, and of each part its end and the bounds of its extra limits.

    Which nodes are ``undisturbed`` is not known in fractions, nor under rules.
    """

    x: Any
    shares: Shares
    undisturbed: Undisturbed
    stages: tuple[Stage, ...] = ()
    ends: tuple[Any, ...] = ()
    bounds: tuple[Any, ...] = ()
    raised: Mapping[int, tuple[Stage, ...]] = field(default_factory=dict)

    def solution(self, x: Any = None, promised: Floors | None = None) -> Solution:
        """Return it as a solution; ``x``: with this point instead of the last one."""
        x = self.x if x is None else x
        return Solution(x, self.stages, parts=self.ends, extra_bounds=self.bounds, raised=self.raised, promised=promised)


class Filling(ABC):
    """A filling of the tree of a program.

    Parameters
    ----------
    program : Program or ExactProgram
    goal : TreeFilling
        In the same numbers.
    nothing : array (pairs,)
        0 everywhere.
    agents_of : function
        From a program of agents (`fairopt.program.guarantees`) to its solver.
    down_closed : bool
        May users always have less? Rules may forbid it.
    """

    def __init__(self, program: Any, goal: TreeFilling, nothing: Any, agents_of: Solve, *, down_closed: bool) -> None:
        self.program, self.goal, self.nothing, self.agents_of, self.down_closed = program, goal, nothing, agents_of, down_closed

    @abstractmethod
    def climbed(self, number: int, bounds: Any, before: Filled, keeping: Any) -> Filled:
        """Raise the levels of a part; return the point, the shares, all stages and the undisturbed nodes then.

        Parameters
        ----------
        number : int
            Of the part.
        bounds : array (extra limits,), or None
            Of the extra limits of the part; None: their own.
        before : Filled
            Where the part begins.
        keeping
            The floors to keep (`keeping`), or None.
        """

    @abstractmethod
    def alone(self, program: Any, goal: TreeFilling, owner: int, large: bool) -> tuple[Solution, Any]:
        """Fill one guaranteed node alone, with ``large`` on servers that are large enough; return its point over all pairs, too."""

    def together(self) -> tuple[Solution, FilledTogether] | None:
        """Fill all guarantees on large servers; None where nodes are asked one by one."""
        return None

    @abstractmethod
    def keeping(self, promised: Floors, *, everywhere: bool, after: Any) -> Any:
        """Return floors to keep, with the ``point`` of their last completion.

        Parameters
        ----------
        promised : Floors
        everywhere : bool
            As in `fairopt.program.guarantees.completion`: True in the parts of the surplus.
        after
            The floors that were kept in the parts before; None if there are none.
        """

    @abstractmethod
    def users(self, shares: Shares) -> Any:
        """Return the shares of users, (users,), as numbers of this arithmetic."""

    @abstractmethod
    def least(self, x: Any, shares: Shares) -> Any:
        """Return a point with these shares, and no more beyond them, in all, than rules force; without rules x itself."""

    @abstractmethod
    def exactly(self, x: Any, users: Any) -> Any:
        """Return a point like x in which users have these shares, (users,)."""

    def solve(self, *, compare: bool) -> Solution:
        """Return the filling; with ``compare`` what guarantees hold is compared with what they could hold alone."""
        program, goal, promised = self.program, self.goal, None
        guarantees = range(sum(part.guarantees for part in goal.parts))
        surplus = range(len(guarantees), len(goal.parts))
        done, keeping = self.guaranteed(), None
        if guarantees and compare and (doubtful := in_doubt(program, goal, done.x, done.undisturbed.owners)):
            promised = find_floors(program, goal, done.x, doubtful, self, self.agents_of)
            if promised.promises:
                first = self.keeping(promised, everywhere=False, after=None)
                done = self.guaranteed(first)
                keeping = self.keeping(promised, everywhere=True, after=first)
        done = self._fill(surplus, done, keeping)
        if promised is not None and keeping is not None:
            promised = replace(promised, points=(first.point, keeping.point))
        return done.solution(self.least(done.x, done.shares), promised)

    def guaranteed(self, keeping: Any = None) -> Filled:
        """Fill the guarantees, and keep these floors."""
        start = self.goal.nothing()
        begin = Filled(self.least(self.nothing, start), start, Undisturbed.before(self.goal.tree))
        return self._fill(range(sum(part.guarantees for part in self.goal.parts)), begin, keeping)

    def _fill(self, parts: range, done: Filled, keeping: Any = None) -> Filled:
        """Go on with some parts after what is filled."""
        for number in parts:
            part, bounds = self.goal.parts[number], None
            if (number or not self.down_closed) and part.extra is not None and len(part.extra):
                users = self.users(done.shares)
                bounds, proof, point = bounds_of_part(self.program, self.goal, part, users, done.x, self.agents_of)
                if proof:
                    done = replace(done, raised={**done.raised, number: proof}, x=self.exactly(point, users))
            done = self.climbed(number, bounds, done, keeping)
            done = replace(done, ends=(*done.ends, done.x), bounds=(*done.bounds, bounds))
        return done
