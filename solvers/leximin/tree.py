"""Filling a tree of queues in floats: the loop over parts (`fairopt.solvers.leximin.parts`), each by that over levels (`levels`).

`TreeGoal` is the course of one part: rates of the tree, renewed after each level. An engine supplies a solver of levels for the program
of each part, that is, with its extra limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import DIGITS, SAME
from fairopt.program import Program, Solution, Stage
from fairopt.program.agents import AgentProgram
from fairopt.program.filled_together import FilledTogether, even_slices, on_large_servers
from fairopt.program.guarantees import Floors, alone_in, ample
from fairopt.program.promises import Promise
from fairopt.program.share_limits import ShareLimits, during
from fairopt.program.tree_filling import Shares, TreeCourse, TreeFilling
from fairopt.program.undisturbed import stop_times
from fairopt.solvers.backend import Deadline
from fairopt.solvers.leximin.agents import AgentPrograms
from fairopt.solvers.leximin.floors import Keeping, Solve, asked_alone
from fairopt.solvers.leximin.levels import Course, LevelSolver, Step, exactly, raise_levels
from fairopt.solvers.leximin.parts import Filled, Filling
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["Begin", "TreeGoal", "promises_alone", "solve_tree", "unit_of_part"]


def unit_of_part(reach: FloatArray, rate: FloatArray) -> float:
    """Return a t of about the right size: between that of everybody's slice by rate and that of what the least can reach alone.

    Parameters
    ----------
    reach, rate : arrays (users,)
        What users can reach alone, and their rates; those with a rate <= 0 do not count.

    >>> unit_of_part(np.array([4.0, 4.0]), np.array([1.0, 1.0]))
    2.8284271247461903
    """
    up = rate > 0
    alone = reach[up] / rate[up]
    return float(np.sqrt((alone * rate[up] / rate[up].sum()).min() * alone.min()))


class TreeGoal:
    """The course through one part of a filling.

    Attributes
    ----------
    way : TreeCourse
    x : array (pairs,)
        The last point. Users have at least what they have on the course now, for engines that go on from there.
    until : float
        Where floors end a level. For engines it is a change of rates.
    """

    equal = False
    until = np.inf

    def __init__(self, way: TreeCourse, x: FloatArray) -> None:
        self.way, self.x = way, x
        self._event: tuple[float, IntArray] | None = None

    @property
    def now(self) -> float:
        """The t of the last level."""
        return self.way.t

    def begin(self) -> Course:
        """From what earlier parts gave."""
        return self._course()

    def event(self, course: Course) -> tuple[float, IntArray]:
        """Return when a limit on shares is full, or somebody has caught up with a sibling who waits."""
        if self._event is None:
            self._event = self.way.event()
        return self._event if self._event[0] <= self.until else (self.until, np.empty(0, np.int64))

    def renew(self, course: Course, t: float) -> Course:
        """Return the course at new rates. It counts t on: the start is where users would have been at t = 0."""
        way, self._event = self.way, None
        way.advance(t)
        way.stop(np.flatnonzero(way.rising & ~course.rising))
        renewed = self._course()
        return replace(renewed, start=np.where(course.rising, renewed.start, course.start))

    def _course(self) -> Course:
        way = self.way
        return Course(way.rising.copy(), way.shares.users - way.rate * way.t, way.rate, way.least)


Begin: TypeAlias = Callable[[Program], Callable[[Program, TreeGoal], LevelSolver]]
"""From a program to what makes the engine's solver of a part: from the program of the part, with its extra limits, and the course."""
Least: TypeAlias = Callable[[Program, FloatArray], FloatArray]
"""Of a program with rules: from shares, (users,), to a point in which users have these, and more only where rules force it."""


def solve_tree(
    program: Program, goal: TreeFilling, begin: Begin, settle_at: float, deadline: Deadline, least: Least | None = None
) -> Solution:
    """Fill a tree. The iterations and programs that the answer counts are those of programs of agents alone.

    Parameters
    ----------
    program : Program
    goal : TreeFilling
    begin : function
        Called for a program, and again if floors come in: the engine's solvers of its parts may share what they know.
    settle_at : float
        Who can rise by less, relative to its share, is settled.
    deadline : Deadline
        Of the programs of agents (`fairopt.program.guarantees`).
    least : function, optional
        Of a program with rules, in which less of x may be infeasible: no point is scaled, and none is guessed.
    """
    agents: list[AgentPrograms] = []

    def agents_of(of_agents: AgentProgram) -> AgentPrograms:
        agents.append(AgentPrograms(of_agents, deadline))
        return agents[-1]

    found = _Tree(program, goal, begin, settle_at, agents_of, least).solve(compare=True)
    return replace(found, iterations=sum(each.iterations for each in agents), programs_solved=sum(each.programs for each in agents))


def promises_alone(
    program: Program, goal: TreeFilling, begin: Begin, settle_at: float, deadline: Deadline
) -> tuple[tuple[Promise, ...], list[float], list[float]]:
    """Return the promises of a filling, their units, and the most that each could hold alone (`fairopt.program.guarantees`)."""

    def agents_of(of_agents: AgentProgram) -> AgentPrograms:
        return AgentPrograms(of_agents, deadline)

    return asked_alone(program, goal, _Tree(program, goal, begin, settle_at, agents_of, None), agents_of)


class _Tree(Filling):
    """A filling in floats."""

    def __init__(
        self, program: Program, goal: TreeFilling, begin: Begin, settle_at: float, agents_of: Solve, least: Least | None = None
    ) -> None:
        super().__init__(program, goal, np.zeros(program.n_pairs), agents_of, down_closed=least is None)
        self.begin, self.settle_at, self._least = begin, settle_at, least
        self.solver_of = begin(program)
        self.most = program.per_user(program.largest() * program.utilities)

    def keeping(self, promised: Floors, *, everywhere: bool, after: Keeping | None) -> Keeping:
        """Return floors to keep."""
        keeping = Keeping(self.program, self.goal, promised, everywhere, self.agents_of)
        if after is None:
            self.solver_of = self.begin(self.program)  # what the filling without floors proved does not hold in this one
        else:
            keeping.point, keeping.reached = after.point, after.reached
        return keeping

    def users(self, shares: Shares) -> FloatArray:
        """Return the shares of users."""
        return shares.users

    def least(self, x: FloatArray, shares: Shares) -> FloatArray:
        """Return x; with rules the point of a program."""
        return x if self._least is None else self._least(self.program, shares.users)

    def exactly(self, x: FloatArray, users: FloatArray) -> FloatArray:
        """Return x with exactly these shares; x as it is where rules may not allow less."""
        return exactly(self.program, self.program.utilities, x, users) if self._least is None else x

    def climbed(self, number: int, bounds: FloatArray | None, before: Filled, keeping: Keeping | None) -> Filled:
        """Raise the levels of a part by the engine."""
        program, part, x, stages = self.program, self.goal.parts[number], before.x, before.stages
        of_part = during(program, part, bounds)
        room = self.most if of_part is program else program.per_user(of_part.largest() * program.utilities)
        limits = ShareLimits.of(of_part)
        way = self.goal.course(part, before.shares, room > 0, self.most, limits)
        if way.rising.any():
            level_goal = TreeGoal(way, x)
            engine = self.solver_of(of_part, level_goal)
            solver: LevelSolver = engine if self._least is not None else _Ahead(of_part, level_goal, engine)
            solver = solver if keeping is None else keeping.solver(level_goal, solver)
            x, course, stages = raise_levels(x, solver, level_goal, self.settle_at, stages, number)
            x = self.exactly(x, course.start)
        undisturbed = before.undisturbed
        if part.guarantees and self.down_closed:
            stopped = stop_times(stages[len(before.stages) :], room.size)
            tolerance = 2 * SAME  # raised limits leave room of SAME
            undisturbed = undisturbed.after(part, limits, way.shares.users, stopped, room > 0, tolerance)
        return replace(before, x=x, shares=way.shares, stages=stages, undisturbed=undisturbed)

    def alone(self, program: Program, goal: TreeFilling, owner: int, large: bool) -> tuple[Solution, FloatArray]:
        """Fill one guaranteed node alone, on the pairs of its users."""
        alone, columns = alone_in(program, goal, owner)
        alone = ample(alone, alone.goal_as(TreeFilling)) if large else alone
        found = self._of(alone).solve(compare=False)
        point = np.zeros(program.n_pairs)
        point[columns] = found.x
        return found, point

    def together(self) -> tuple[Solution, FilledTogether] | None:
        """Fill all guarantees on large servers."""
        if not self.down_closed:
            return None
        filled = self._of(on_large_servers(self.program, self.goal)).guaranteed()
        return filled.solution(), FilledTogether(self.program, filled.ends, filled.undisturbed.owners)

    def _of(self, program: Program) -> _Tree:
        return _Tree(program, program.goal_as(TreeFilling), self.begin, self.settle_at, self.agents_of, self._least)


class _Ahead:
    """The solver of a part; it is called only if no point beyond the next change of rates is known.

    During much of a filling, all servers have room. Then the last point may already lie beyond the change. If not, each user is put on all
    its servers, in proportion to what it could run there alone. If that nearly fits, users continue from the last point: in a
    few rounds, each gets its missing tasks on servers with room. Points are computed further ahead than the next change, so that one point
    serves several changes.
    """

    def __init__(self, program: Program, goal: TreeGoal, engine: LevelSolver) -> None:
        self.program, self.goal, self.engine = program, goal, engine
        self.shares: FloatArray | None = program.per_user(goal.x * program.utilities)
        self.even = even_slices(program, program.largest())
        limits = goal.way.limits
        assert limits is not None
        self.matrix, self.bounds = limits.others.matrix, limits.others.bounds  # the course knows that shares are within limits on them
        self.ahead = 1.0

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Return a point beyond the next change of rates, where one is known; else ask the engine."""
        goal, change = self.goal, self.goal.event(course)[0]
        beyond = float(np.nextafter(change, np.inf))
        if change < np.inf:
            if self.shares is not None and (self.shares >= course.at(change) * (1 - DIGITS)).all():
                return Step(goal.x, self.shares, beyond)
            found = self._guess(course, change)
            if found is not None:
                goal.x, self.shares = found
                return Step(goal.x, self.shares, beyond)
        step = self.engine.step(course, stages)
        if step.x is not goal.x:
            goal.x, self.shares = step.x, step.levels
        return step

    def _guess(self, course: Course, change: float) -> tuple[FloatArray, FloatArray] | None:
        """Return a point with the shares of a course at a change of rates or beyond, and these shares; None if none is found."""
        now = self.goal.now
        for ahead in (self.ahead, 1.0) if self.ahead > 1 else (1.0,):
            shares = course.at(now + ahead * (change - now)) if ahead > 1 else course.at(change)
            found = self._point(shares, self.goal.x)
            if found is not None:
                self.ahead = ahead * SETTINGS.further
                return found, shares
        self.ahead = 1.0
        return None

    def _point(self, shares: FloatArray, x: FloatArray) -> FloatArray | None:
        even = self.even * shares[self.program.pair_users]
        used = self.matrix @ even
        if (used <= self.bounds).all():
            return even
        if (used > SETTINGS.most_beyond * self.bounds).any():  # where rounds help no more
            return None
        measured = (np.diff(self.by_pair.indptr) > 0).all()  # has each pair such a row, so that its room can be told?
        return self._onwards(shares, x) if measured else None

    @cached_property
    def by_pair(self) -> sp.csr_array:
        """What each pair takes of each limit, (pairs, limits)."""
        return sp.csr_array(self.matrix.T)

    def _onwards(self, shares: FloatArray, x: FloatArray) -> FloatArray | None:
        program, users = self.program, self.program.pair_users
        has = program.per_user(x * program.utilities)
        x = x * np.divide(shares, has, out=np.ones(has.size), where=has > shares)[users]
        lacks = np.maximum(shares - has, 0.0)
        for _ in range(SETTINGS.rounds_of_guess):
            left = np.maximum(self.bounds - self.matrix @ x, 0.0)
            room = np.minimum.reduceat(left[self.by_pair.indices] / self.by_pair.data, self.by_pair.indptr[:-1])
            slices = even_slices(program, room)
            if (program.per_user(slices)[lacks > 0] == 0).any():
                return None
            x = x + slices * lacks[users] / SETTINGS.rounds_of_guess
        return x if (self.matrix @ x <= self.bounds).all() else None
