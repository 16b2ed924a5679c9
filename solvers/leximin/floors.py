"""How far guarantees are met together, and levels that keep these floors: the loops that engines share, in floats and in rationals.

`fairopt.program.guarantees` has the programs. `AgentLevels` solves the programs of agents; an engine supplies a solver of fillings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.instance.tolerances import DIGITS, SAME
from fairopt.program import Program, Solution, Stage, TreeFilling
from fairopt.program.agents import AgentProgram
from fairopt.program.filled_together import FilledTogether
from fairopt.program.guarantees import Floors, amounts_by_shares, ample, completion, most_counted, parts_program, raised_limits, raising
from fairopt.program.promises import Promise, amounts_asked, counted, counted_by_shares, promises_of
from fairopt.program.tree_filling import Part
from fairopt.solvers.leximin.levels import Course, LevelGoal, LevelSolver, Proof, Step, bound_of
from fairopt.solvers.leximin.settings import SETTINGS

__all__ = ["AgentLevel", "AgentLevels", "Keeping", "Solve", "asked_alone", "bounds_of_part", "find_floors"]

log = logging.getLogger(__name__)

_NOBODY = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class AgentLevel:
    """What one program of agents shows.

    Attributes
    ----------
    t : number
    z : array (columns,)
    prices : array (limits,)
    pays : array (agents,)
        The multipliers.
    stopped : bool array (agents,)
        Which of the agents who rise cannot have more than at t.
    """

    t: Any
    z: Any
    prices: Any
    pays: Any
    stopped: BoolArray


class AgentLevels(Protocol):
    """A solver of one program of agents; each call begins where the last one ended."""

    program: AgentProgram

    def solve(self, start: Sequence[Any], rate: Sequence[Any]) -> AgentLevel:
        """Return the largest t, with its proof."""


Solve = Callable[[AgentProgram], AgentLevels]


class Fill(Protocol):
    """What fills guarantees (`fairopt.solvers.leximin.parts`)."""

    def alone(self, program: Any, goal: TreeFilling, owner: int, large: bool) -> tuple[Solution, Any]:
        """Return the filling of an owner alone, and its point in all columns."""

    def together(self) -> tuple[Solution, FilledTogether] | None:
        """Return the filling of all guarantees on large servers; None where owners are asked one by one."""


# Parts ---------------------------------------------------------------------------------------------------------------------------


def find_floors(program: Any, goal: TreeFilling, x: Any, doubtful: set[int], fill: Fill, agents_of: Solve) -> Floors:
    """Return how far guarantees are met together, after a filling without floors whose guarantees ended at x, (pairs,).

    Parameters
    ----------
    doubtful : set of int
        The owners of guarantees that may not hold the most that they could hold alone.
    """
    looking = _Looking(program, goal, promises_of(goal), fill, agents_of)
    promises, tolerance = looking.promises, 0 if looking.exact else SETTINGS.met
    if len(doubtful) > 1:
        looking.fill_together()
    of_doubtful = [k for k, promise in enumerate(promises) if promise.owner in doubtful]
    most = {k: looking.amount(k, large=False) for k in of_doubtful}
    behind = [promises[k].name for k in of_doubtful if counted(program, goal, promises[k], x) < most[k] * (1 - tolerance)]
    if not behind:
        return Floors(alone=looking.alone[False], counted=looking.counted, together=looking.together, seen=looking.seen)
    log.info("%d guarantees hold less than they could alone; looking for how far they are met together", len(behind))
    asks, all_most, units = looking.asked()
    parts, stages = _meet_together(program, goal, promises, units, all_most, agents_of)
    alone, asked = looking.alone[False], looking.alone[True]
    of_all = tuple(asks), tuple(all_most), tuple(units), tuple(parts)
    return Floors(promises, *of_all, stages, alone, asked, looking.together, looking.counted, seen=looking.seen)


def asked_alone(program: Any, goal: TreeFilling, fill: Fill, agents_of: Solve) -> tuple[tuple[Promise, ...], list[Any], list[Any]]:
    """Return all promises of a filling, their units, and the most that each could hold alone."""
    looking = _Looking(program, goal, promises_of(goal), fill, agents_of)
    _, most, units = looking.asked()
    return looking.promises, units, most


class _Looking:
    """What guarantees hold in fillings of their nodes alone, each computed once.

    Attributes
    ----------
    alone : mapping
        From whether servers are large to the fillings, by owner.
    counted, together
        As in `Floors`.
    """

    def __init__(self, program: Any, goal: TreeFilling, promises: tuple[Promise, ...], fill: Fill, agents_of: Solve) -> None:
        self.program, self.goal, self.promises, self.fill, self.agents_of = program, goal, promises, fill, agents_of
        self.exact = goal.weights.dtype == object
        self.alone: dict[bool, dict[int, Solution]] = {False: {}, True: {}}
        self.points: dict[tuple[int, bool], Any] = {}
        self.counted: dict[tuple[int, bool], tuple[Any, Stage]] = {}
        self.together: Solution | None = None
        self.of_all: FilledTogether | None = None

    def fill_together(self) -> None:
        """Fill all guarantees on large servers, if that is known and not done yet."""
        if self.together is None and (found := self.fill.together()) is not None:
            self.together, self.of_all = found

    @property
    def seen(self) -> tuple[Any, ...]:
        """The points on servers as they are."""
        best = [point for (_, large), (point, _) in self.counted.items() if not large]
        return (*(point for (_, large), point in self.points.items() if not large), *best)

    def amount(self, k: int, large: bool) -> Any:
        """Return the amount of a promise in the filling of its owner alone."""
        promise, program, goal = self.promises[k], self.program, self.goal
        owner = promise.owner
        if (owner, large) not in self.points:
            known = None if self.of_all is None else self.of_all.point(promise, large)
            if known is None:
                self.alone[large][owner], known = self.fill.alone(program, goal, owner, large)
            self.points[owner, large] = known
        point = self.points[owner, large]
        if counted_by_shares(program, goal, promise, point):
            return counted(program, goal, promise, point)
        if (k, large) not in self.counted:
            self.counted[k, large] = self._most_counted(promise, point, large)
        return counted(program, goal, promise, self.counted[k, large][0])

    def asked(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Return what promises ask for, the most that they could hold, and their units."""
        self.fill_together()
        return amounts_asked(self.program, self.goal, self.promises, self.amount)

    def _most_counted(self, promise: Promise, point: Any, large: bool) -> tuple[Any, Stage]:
        within = ample(self.program, self.goal.alone(promise.owner)) if large else self.program
        agents, start = most_counted(within, self.goal, promise, within.per_user(point * within.utilities).tolist())
        zero = start[-1]
        level = self.agents_of(agents).solve(start, [*[zero] * (len(start) - 1), zero + 1])
        return level.z[: point.size], Stage(level.t, _NOBODY, np.concatenate([level.prices, level.pays]))


def _meet_together(
    program: Any, goal: TreeFilling, promises: Sequence[Promise], units: Sequence[Any], most: Sequence[Any], agents_of: Solve
) -> tuple[list[Any], tuple[Stage, ...]]:
    """Return the parts, and the levels that prove them."""
    of_parts, start = parts_program(program, goal, promises, units)
    levels, first = agents_of(of_parts), len(start)
    exact, zero = of_parts.exact, start[0] * 0
    caps = [amount / unit if unit > 0 else zero for amount, unit in zip(most, units, strict=True)]
    value: list[Any] = [zero] * len(promises)
    stages = list[Stage]()
    for above in sorted({promise.above for promise in promises}):
        rising = [k for k, promise in enumerate(promises) if promise.above == above and caps[k] > 0]
        while rising:
            rate = [zero] * first + [zero + 1 if k in rising else zero for k in range(len(promises))]
            level = levels.solve([*start, *value], rate)
            at_most = [k for k in rising if caps[k] <= level.t * (1 if exact else 1 + SAME)]
            if at_most:
                stages.append(Stage(level.t, _NOBODY, None, above, np.array(at_most, np.int64)))
                settled = at_most
            else:
                settled = [k for k in rising if level.stopped[first + k]]
                stages.append(Stage(level.t, _NOBODY, np.concatenate([level.prices, level.pays]), above, np.array(settled, np.int64)))
            for k in settled:
                value[k] = caps[k] if at_most else level.t if exact else level.t * (1 - DIGITS) if level.t > SETTINGS.met else zero
            rising = [k for k in rising if k not in settled]
    return value, tuple(stages)


# Raised limits -------------------------------------------------------------------------------------------------------------------


def bounds_of_part(
    program: Any, goal: TreeFilling, part: Part, shares: Any, x: Any, agents_of: Solve
) -> tuple[Any, tuple[Stage, ...], Any]:
    """Return the bounds of the extra limits of a part that begins with these shares, (users,), at x, (pairs,).

    The second value proves those that a program raised, and the third is a point with these shares within them, x if it is.
    """
    given, rows, over = raised_limits(program, part, x)
    exact, stages = goal.weights.dtype == object, list[Stage]()
    if over:
        raised = raising(program, part, given, rows)
        levels, users = agents_of(raised), len(shares)
        one = given[0] * 0 + 1
        start = [*shares.tolist()] if exact else [*(shares * (1 - DIGITS)).tolist()]
        value: list[Any] = [one * 0] * rows.size
        rising = list(range(rows.size))
        capacity = _capacity(raised, users, rows.size)
        while rising:
            rate = [one * 0] * users + [one if j in rising else one * 0 for j in range(rows.size)]
            level = levels.solve([*start, *value], rate)
            x = level.z[: x.size]
            full = level.t >= (1 if exact else 1 - SAME)
            settled = rising if full else [j for j in rising if level.stopped[users + j]]
            prices = None if full else np.concatenate([level.prices, level.pays])
            stages.append(Stage(level.t, _NOBODY, prices, 0, np.array(settled, np.int64)))
            for j in settled:
                value[j] = one if full else level.t if exact else level.t * (1 - SAME)
            rising = [j for j in rising if j not in settled]
        for j, k in enumerate(rows.tolist()):
            given[k] = given[k] + capacity[j] * (1 - value[j])
    bounds: Any = np.empty(len(given), object if exact else float)
    bounds[:] = given
    return bounds, tuple(stages), x


def _capacity(raised: AgentProgram, users: int, number: int) -> list[Any]:
    """Return T of each raised limit, from its program: the coefficient of its column in the limit that has others, too."""
    found: list[Any] = []
    for columns, _ in raised.agents[users : users + number]:
        w = int(columns[0])
        found.append(next(values[-1] for own, values in raised.limits if own.size > 1 and own[-1] == w))
    return found


# Levels with floors --------------------------------------------------------------------------------------------------------------


class EndingGoal(LevelGoal, Protocol):
    """A goal that can be told to end a level at a t: for engines that is a change of rates."""

    until: float


class Keeping:
    """Floors that are kept in some parts, and the last completion that was found.

    Where amounts follow from shares, floors that shares meet need no completion: shares only rise.

    Attributes
    ----------
    point : array (columns,), or None
        The completion; None if none was needed.
    """

    def __init__(self, program: Program, goal: TreeFilling, promised: Floors, everywhere: bool, agents_of: Solve) -> None:
        floors = [amount * (1 - DIGITS) for amount in promised.amounts]
        self.program = program
        agents, start = completion(program, goal, promised.promises, floors, everywhere)
        self.levels, self.start = agents_of(agents), np.array(start, float)
        self.by_shares = amounts_by_shares(program, goal, promised.promises, floors, everywhere)
        self.point: FloatArray | None = None
        self.reached: FloatArray | None = None  # the shares of the completion

    def solver(self, goal: EndingGoal, engine: LevelSolver) -> LevelSolver:
        """Return a solver of levels that keeps the floors, too."""
        return _FloorLevels(self, goal, engine)

    def met(self, shares: FloatArray) -> bool:
        """Do these shares meet every floor, wherever tasks are?"""
        if self.by_shares is None:
            return False
        uses, floors = self.by_shares
        return bool((uses @ shares >= floors).all())

    def solve(self, course: Course) -> AgentLevel:
        """Return how far completions go on a course."""
        users = len(self.program.users)
        begin = np.concatenate([course.start, self.start])
        rate = np.concatenate([np.where(course.rising, course.rate, 0.0), np.zeros(self.start.size)])
        level = self.levels.solve(begin.tolist(), rate.tolist())
        self.point, self.reached = level.z, np.asarray(self.levels.program.worth @ level.z)[:users]
        return level

    def proof(self, course: Course, level: AgentLevel) -> Proof:
        """Return what the prices of a level prove."""
        agents, users, pairs = self.levels.program, len(self.program.users), self.program.n_pairs
        phi = np.asarray(level.pays)[users:]
        cost = np.asarray(agents.matrix.T @ level.prices)[:pairs] - np.asarray(agents.worth[users:].T @ phi)[:pairs]
        open_to = agents.largest()[:pairs] > 0
        q = np.maximum(self.program.cheapest(np.where(open_to, cost / self.program.utilities, np.inf)), 0.0)
        spent = float(level.prices @ agents.bounds)
        left = spent * (1 - DIGITS) - float(phi @ self.start) - float(q @ np.where(course.rising, 0.0, course.start))
        return Proof(np.concatenate([level.prices, phi]), q, spent, bound_of(course, q, left), floors=True)


class _FloorLevels:
    """A solver of levels: the smaller t of the engine's program and of the completions counts."""

    def __init__(self, keeping: Keeping, goal: EndingGoal, engine: LevelSolver) -> None:
        self.keeping, self.goal, self.engine = keeping, goal, engine

    def step(self, course: Course, stages: Sequence[Stage]) -> Step:
        """Return the step of the engine, or the level at which completions end, if it comes first."""
        change, reached = self.goal.event(course)[0], self.keeping.reached
        if self.keeping.met(course.at(self.goal.now)):
            return self.engine.step(course, stages)
        if change < np.inf and reached is not None and (reached >= course.at(change) * (1 - DIGITS)).all():
            return self.engine.step(course, stages)
        level = self.keeping.solve(course)
        if level.t >= change * (1 - DIGITS):
            return self.engine.step(course, stages)
        end = max(level.t, self.goal.now)
        self.goal.until = end
        step = self.engine.step(course, stages)
        self.goal.until = np.inf
        return Step(step.x, step.levels, end, self.keeping.proof(course, level)) if step.t > end else step
