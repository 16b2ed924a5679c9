"""Bounds where only right-hand sides vary: numbers of tasks and capacities, for heuristics of the largest total. One mixed-integer program.

The notion is "efficiency" with equal weights, and so are the heuristics: alone, in parts ("pop"), or with small demands pinned ("pinning").
Each solves  max u @ y  over  A y <= b,  y >= 0,  A >= 0, b >= 0;  only b varies, within a box. y is optimal if and only if prices p exist
with

    p >= 0,  A'p >= u,      p[r] > 0 only where row r is full,      y[c] > 0 only where (A'p)[c] = u[c].

Both "only" are a binary each. *How large can prices be?* A price above max over c of u[c] / A[r,c] can be lowered to that: all columns stay
paid, and p @ b does not grow. So some optimal prices are at most that, and every optimal y goes with them: all answers of the heuristic are
considered. The optimum x needs to be feasible, no more.

*Ratios.* All amounts are divided by the exact total: with k = 1 / total, x, y and b are scaled by k, u @ x = 1, and k low <= b <= k high.
Then 1 - u @ y is the regret. y is feasible for x's program, so u @ y <= 1, which bounds each y.

*Pinning.* A binary says that a user is small: T <= threshold; one that it is pinned; and for each row of its first column one that this row
has no room for it beside those that are pinned before. Each condition is taken with equality allowed on both sides: a user exactly at the
threshold may be small or not. So the bound holds, and may be that of a limit of instances.

*Rules* on the numbers are rows over the right-hand sides and k; numbers that no row has are variables of their own.

The bound is HiGHS's, within its tolerances: it is numerical, not proved by arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from fairopt.analysis.bounds.boxes import Box
from fairopt.analysis.bounds.safe_programs import SafeProgram
from fairopt.errors import InvalidInstance, NoSolution, Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.models import Notion
from fairopt.program import LimitKind
from fairopt.scheduling.baselines import Baseline, Case
from fairopt.scheduling.baselines.parts import rows_of_one_user
from fairopt.scheduling.baselines.pinning import Pinning
from fairopt.scheduling.baselines.pop import POP
from fairopt.solvers.highs_model import HighsModel, Status

__all__ = ["Answer", "RightHandSides", "bound_by_one_program", "of_right_hand_sides"]

_ROOM = 1e-6  # relative: numbers of tasks are moved off a threshold by this, so that the heuristic sees on which side they are
_TOLERANCE = 1e-6  # of HiGHS, on the scaled total of 1


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What the mixed-integer program says: data of an instance (None if none was found), and a bound on the regret."""

    data: Mapping[str, FloatArray] | None
    bound: float
    stopped: str


@dataclass(frozen=True, slots=True, eq=False)
class RightHandSides:
    """The rows of a largest total, and the ends of their right-hand sides.

    Attributes
    ----------
    box : Box
    case : Case
        The program at the largest numbers, without the rows of tasks.
    matrix : (rows, columns)
        With a row for each user with finitely many tasks.
    low, high : (rows,)
    tasks_of, capacity_of : (rows,) of int
        The user whose tasks a row bounds, and the place in the capacities; -1 for none.
    """

    box: Box
    case: Case
    matrix: FloatArray
    low: FloatArray
    high: FloatArray
    tasks_of: IntArray
    capacity_of: IntArray

    @classmethod
    def of(cls, box: Box, notion: Notion) -> RightHandSides:
        """Return the rows of a box.

        Raises
        ------
        Unsupported
            The instance has rules or a past, or weights differ.
        InvalidInstance
            A capacity may be 0, or no task at all may be possible.
        """
        ranges, weights = box.ranges, box.instance.weights
        if not (weights == weights.flat[0]).all():
            raise Unsupported('the weights of users differ, so "efficiency" does not count tasks; give equal weights')
        small, large = ranges.low["capacities"], ranges.high["capacities"]
        if ((small == 0) & (large > 0)).any():
            raise InvalidInstance('the smallest number of "capacities" is 0 where the largest is more; give one > 0')
        case = Case.of(box.at(ranges.high), notion, "rdm")
        limits, program = case.program.limits, case.program
        if not program.down_closed or limits.of_kinds(LimitKind.PAST, LimitKind.WITH_PAST, LimitKind.TIME).any():
            raise Unsupported("no bound is known where an instance has rules or a past; leave them out")
        kept = ~limits.of_kinds(LimitKind.TASKS)
        matrix, bounds = limits.matrix.toarray()[kept], limits.bounds[kept]
        of_server = limits.kinds[kept] == LimitKind.CAPACITY
        server, resource = limits.keys[kept].T
        places = np.where(of_server, server * small.shape[1] + resource, -1)
        limited = np.flatnonzero(np.isfinite(ranges.high["tasks"]))
        rows = np.concatenate([matrix, (program.pair_users == limited[:, None]).astype(float)])
        low, high = (
            np.concatenate([np.where(of_server, side["capacities"].ravel()[places], bounds), side["tasks"][limited]])
            for side in (ranges.low, ranges.high)
        )
        return cls(box, case, rows, low, high, _padded(-1, len(bounds), limited), _padded(places, 0, np.full(limited.size, -1)))

    @property
    def worth(self) -> FloatArray:
        """What a task of each column counts, (columns,)."""
        return self.case.program.utilities

    def total(self, sides: FloatArray) -> float:
        """Return the largest total for some right-hand sides."""
        with np.errstate(divide="ignore"):
            alone = np.where(self.matrix > 0, sides[:, None] / np.where(self.matrix > 0, self.matrix, 1.0), np.inf).min(axis=0)
        return float(self.worth @ SafeProgram.of(self.worth, self.matrix, sides, alone).solve(np.inf).x)

    def data(self, sides: FloatArray) -> dict[str, FloatArray]:
        """Return the data of the instance with these right-hand sides."""
        ranges = self.box.ranges
        data = dict(ranges.low)
        tasks, capacities = data["tasks"].copy(), data["capacities"].ravel().copy()
        of_tasks, of_capacity = self.tasks_of >= 0, self.capacity_of >= 0
        tasks[self.tasks_of[of_tasks]] = sides[of_tasks]
        capacities[self.capacity_of[of_capacity]] = sides[of_capacity]
        data |= {"tasks": tasks, "capacities": capacities.reshape(data["capacities"].shape)}
        return {name: np.clip(values, ranges.low[name], ranges.high[name]) for name, values in data.items()}


def _padded(first: IntArray | int, length: int, rest: IntArray) -> IntArray:
    return np.concatenate([np.full(length, first) if isinstance(first, int) else first, rest]).astype(np.int64)


def of_right_hand_sides(box: Box, notion: Notion, heuristic: Notion, baseline: Baseline | None, measure: str) -> bool:
    """Say whether this module bounds the regret."""
    totals = notion.name == heuristic.name == "efficiency" and measure == "total"
    return totals and {*box.varied} <= {"tasks", "capacities"} and (baseline is None or isinstance(baseline, POP | Pinning))


@dataclass(slots=True, eq=False)
class _Model:
    """A mixed-integer program that is put together variable by variable and row by row."""

    cost: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)
    integral: list[int] = field(default_factory=list)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def variables(self, largest: FloatArray, *, binary: bool = False) -> IntArray:
        """Add variables from 0 to their largest values, and return their positions."""
        first = len(self.cost)
        self.cost += [0.0] * len(largest)
        self.largest += [float(value) for value in largest]
        found = np.arange(first, first + len(largest))
        self.integral += found.tolist() if binary else []
        return found

    def row(self, terms: Mapping[int, float], lower: float, upper: float) -> None:
        """Add lower <= terms <= upper."""
        self.entries += [(len(self.lower), column, value) for column, value in terms.items() if value]
        self.lower.append(lower)
        self.upper.append(upper)

    def solve(self, time_limit: float) -> tuple[FloatArray, float, Status]:
        """Maximise; return the point, the bound and the status."""
        rows, columns, values = zip(*self.entries, strict=True)
        shape = (len(self.lower), len(self.cost))
        matrix = sp.csr_array((np.array(values), (np.array(rows), np.array(columns))), shape=shape)
        model = HighsModel(
            np.array(self.cost), np.zeros(shape[1]), np.array(self.largest), matrix, np.array(self.lower), np.array(self.upper),
            np.array(self.integral, np.int64),
        )  # fmt: skip
        found = model.run(time_limit)
        return found.x, found.bound, found.status


def bound_by_one_program(sides: RightHandSides, baseline: Baseline | None, time_limit: float | None) -> Answer:
    """Return the worst right-hand sides and the bound.

    Raises
    ------
    NoSolution
        The program was not solved.
    """
    model, columns = _Model(), sides.worth.size
    least = sides.total(sides.low) if columns else 0.0
    if least <= 0:
        raise InvalidInstance(
            "at the smallest numbers no task can run at all, so the regret has no meaning; give larger tasks or capacities"
        )
    scale = model.variables(np.array([(1 + _TOLERANCE) / least]))[0]
    model.row({scale: sides.total(sides.high) * (1 + _TOLERANCE)}, 1.0, np.inf)
    most = sides.high * model.largest[scale]
    bound = model.variables(most)  # the right-hand sides, scaled
    for r in range(bound.size):
        model.row({bound[r]: 1.0, scale: -sides.high[r]}, -np.inf, 0.0)
        model.row({bound[r]: 1.0, scale: -sides.low[r]}, 0.0, np.inf)
    beside = _keep_rules(model, sides, scale, bound)
    best = model.variables(1 / sides.worth)
    model.row(dict(zip(best.tolist(), sides.worth.tolist(), strict=True)), 1.0, 1.0)
    for r in range(bound.size):
        model.row(_terms(best, sides.matrix[r]) | {bound[r]: -1.0}, -np.inf, 0.0)
    own = model.variables(1 / sides.worth)
    for c in range(columns):
        model.cost[own[c]] = -float(sides.worth[c])
    free = np.zeros(columns, np.int64) - 1  # the binary that says that a column is pinned, -1: it never is
    if isinstance(baseline, Pinning):
        free = _pin(model, sides, baseline, scale, bound, own)
    _optimal(model, sides, baseline, bound, own, most, free)
    x, found, status = model.solve(np.inf if time_limit is None else time_limit)
    if status not in (Status.OPTIMAL, Status.TIME_LIMIT):
        raise NoSolution(f"HiGHS did not solve the mixed-integer program of the bound: {status.value}")
    upper = 1.0 if np.isnan(found) else min(1.0, 1 + found + _TOLERANCE)
    data = None
    if x.size:
        data = sides.data(_off_thresholds(sides, baseline, x[bound] / x[scale], x, free))
        for (name, place), variable in beside.items():
            data[name].flat[place] = x[variable] / x[scale]
    return Answer(data, upper, "" if status is Status.OPTIMAL else "time limit")


def _keep_rules(model: _Model, sides: RightHandSides, scale: int, bound: IntArray) -> dict[tuple[str, int], int]:
    """Add the rules of the box; return the variables of numbers that are no right-hand side of a row, by name and place."""
    box, beside = sides.box, dict[tuple[str, int], int]()
    of_row = {("tasks", int(n)): int(bound[r]) for r, n in enumerate(sides.tasks_of) if n >= 0}
    of_row |= {("capacities", int(place)): int(bound[r]) for r, place in enumerate(sides.capacity_of) if place >= 0}
    for terms, lower, upper in zip(box.rules.terms(box.ranges.low), box.rules.lower, box.rules.upper, strict=True):
        row: dict[int, float] = {}
        for name, place, value in terms:
            key = name, place
            if key not in of_row:
                low, high = (float(side[name].flat[place]) for side in (box.ranges.low, box.ranges.high))
                beside[key] = of_row[key] = int(model.variables(np.array([high * model.largest[scale]]))[0])
                model.row({of_row[key]: 1.0, scale: -high}, -np.inf, 0.0)
                model.row({of_row[key]: 1.0, scale: -low}, 0.0, np.inf)
            row[of_row[key]] = value
        if np.isfinite(upper):
            model.row(row | {scale: -float(upper)}, -np.inf, 0.0)
        if np.isfinite(lower):
            model.row(row | {scale: -float(lower)}, 0.0, np.inf)
    return beside


def _terms(variables: IntArray, values: FloatArray) -> dict[int, float]:
    return {int(variables[c]): float(values[c]) for c in np.flatnonzero(values)}


def _optimal(
    model: _Model, sides: RightHandSides, baseline: Baseline | None, bound: IntArray, own: IntArray, most: FloatArray, pinned: IntArray
) -> None:
    """Add that ``own`` is optimal over the columns that are not pinned."""
    worth, paid = sides.worth, [dict[int, float]() for _ in sides.worth]
    for r, values, part in _own_rows(sides, baseline):
        taken = np.flatnonzero(values)
        if not taken.size:
            continue
        dearest = float((worth[taken] / values[taken]).max())
        price, full = int(model.variables(np.array([dearest]))[0]), int(model.variables(np.ones(1), binary=True)[0])
        uses = _terms(own, values) | {bound[r]: -part}
        model.row(uses, -np.inf, 0.0)
        model.row({price: 1.0, full: -dearest}, -np.inf, 0.0)
        model.row(uses | {full: -float(most[r] * part)}, -float(most[r] * part), np.inf)
        for c in taken.tolist():
            paid[c][price] = float(values[c])
    for c, prices in enumerate(paid):
        none = int(model.variables(np.ones(1), binary=True)[0])  # the column has nothing
        excess = sum(value * model.largest[price] for price, value in prices.items())
        if_pinned = {} if pinned[c] < 0 else {int(pinned[c]): 1.0}
        model.row(prices | {each: float(worth[c]) for each in if_pinned}, float(worth[c]), np.inf)
        model.row(prices | {none: -excess} | dict.fromkeys(if_pinned, -excess), -np.inf, float(worth[c]))
        model.row({int(own[c]): float(worth[c]), none: 1.0} | dict.fromkeys(if_pinned, -1.0), -np.inf, 1.0)


def _own_rows(sides: RightHandSides, baseline: Baseline | None) -> list[tuple[int, FloatArray, float]]:
    """Return the rows of the heuristic's program: whose right-hand side, the coefficients, and which part of it."""
    rows = range(len(sides.matrix))
    if not isinstance(baseline, POP):
        return [(r, sides.matrix[r], 1.0) for r in rows]
    dealt = baseline.dealt(sides.case)
    part_of = dealt.argmax(axis=1)[sides.case.program.pair_users]
    limits = sides.case.program.limits
    single = rows_of_one_user(sides.case)[~limits.of_kinds(LimitKind.TASKS)]
    own = np.concatenate([single, np.ones(len(sides.matrix) - single.size, bool)])
    found = [(r, sides.matrix[r], 1.0) for r in rows if own[r]]
    for k in range(baseline.parts):
        found += [(r, np.where(part_of == k, sides.matrix[r], 0.0), 1 / baseline.parts) for r in rows if not own[r]]
    return found


def _pin(model: _Model, sides: RightHandSides, baseline: Pinning, scale: int, bound: IntArray, own: IntArray) -> IntArray:
    """Add who is pinned, and what it has then; return the binary of each column that says so, -1 where it never is."""
    program, worth, threshold = sides.case.program, sides.worth, float(baseline.threshold)
    pinned_of = np.full(worth.size, -1)
    before: list[tuple[int, int]] = []  # what a user pinned before has, and its first column
    for n in program.members:
        of_tasks = np.flatnonzero(sides.tasks_of == n)
        if not of_tasks.size:
            continue
        r = int(of_tasks[0])
        tasks, most = int(bound[r]), float(sides.high[r] * model.largest[scale])
        if sides.low[r] > threshold:
            continue
        columns = np.flatnonzero(program.pair_users == n)
        first = int(columns[0])
        small, pinned = model.variables(np.ones(2), binary=True).tolist()
        has = int(model.variables(np.array([most]))[0])
        model.row({tasks: 1.0, scale: -threshold, small: most}, -np.inf, most)
        model.row({tasks: 1.0, scale: -threshold, small: threshold * model.largest[scale]}, 0.0, np.inf)
        if sides.high[r] <= threshold:
            model.row({small: 1.0}, 1.0, 1.0)
        model.row({pinned: 1.0, small: -1.0}, -np.inf, 0.0)
        model.row({has: 1.0, pinned: -most}, -np.inf, 0.0)
        model.row({has: 1.0, tasks: -1.0}, -np.inf, 0.0)
        model.row({has: 1.0, tasks: -1.0, pinned: -most}, -most, np.inf)
        model.row({int(own[first]): 1.0, has: -1.0}, 0.0, np.inf)
        model.row({int(own[first]): 1.0, has: -1.0, pinned: 1 / worth[first]}, -np.inf, 1 / worth[first])
        for c in columns[1:]:
            model.row({int(own[c]): 1.0, pinned: 1 / worth[c]}, -np.inf, 1 / worth[c])
        no_room = {}
        for row in np.flatnonzero(sides.matrix[:, first]):
            if row == r:
                continue
            taken = {each: float(sides.matrix[row, column]) for each, column in before if sides.matrix[row, column]}
            if not taken and sides.high[r] * sides.matrix[row, first] < sides.low[row]:
                continue
            stops = int(model.variables(np.ones(1), binary=True)[0])
            side = float(sides.high[row] * model.largest[scale])
            model.row(taken | {tasks: float(sides.matrix[row, first]), int(bound[row]): -1.0, stops: -side}, -side, np.inf)
            no_room[stops] = 1.0
        model.row(no_room | {pinned: 1.0, small: -1.0}, 0.0, np.inf)
        pinned_of[columns] = pinned
        before.append((has, first))
    return pinned_of


def _off_thresholds(sides: RightHandSides, baseline: Baseline | None, found: FloatArray, x: FloatArray, pinned: IntArray) -> FloatArray:
    """Return right-hand sides that are as far above a threshold or beyond what fits as the heuristic needs to see it."""
    if not isinstance(baseline, Pinning):
        return found
    moved = found.copy()
    for r in np.flatnonzero(sides.tasks_of >= 0):
        columns = np.flatnonzero(sides.case.program.pair_users == sides.tasks_of[r])
        is_pinned = columns.size > 0 and pinned[columns[0]] >= 0 and x[pinned[columns[0]]] > 1 / 2
        near = abs(moved[r] - baseline.threshold) <= 2 * _ROOM * baseline.threshold
        if near:
            moved[r] = baseline.threshold * (1.0 if is_pinned else 1 + _ROOM)
        elif not is_pinned and moved[r] < baseline.threshold:
            moved[r] *= 1 + _ROOM
    return moved
