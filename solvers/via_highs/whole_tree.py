"""Whole tasks in a tree of queues: the leximin of stop times (`fairopt.program.stop_times`), part by part, by branch and cut.

The search is that of a leximin over whole tasks (`fairopt.solvers.via_highs.whole_levels`), with stop times T in place of shares by weight.
Let c[1] < c[2] < ... be how many users are counted at or below the levels t[1] < t[2] < ... that are found so far:

    A   the next level is the largest t such that all but c[k] users can have T[n] >= t, all but c[k-1] at least t[k], ...
    B   the next count is the smallest number of users at or below t under the same conditions.

T is concave, so T[n] >= t takes linear rows: an auxiliary column for each sibling of n and of the queues above it, y <= S[c] and
y <= w[c] l (in a queue of the order "listed", y = S[c] of the siblings before it).
A binary column for each user and level says whether the user is an exception.

Every part of the filling has whole tasks of its own, x[1], x[2], ...: no user has less in a part than in the one before, and only rising
users have more. The conditions on the levels of a part remain in later parts, so the choices of an early part are made with the later ones
in mind. In a part that meets guarantees, the guarantees are limits; where the part before has more, that is the limit. The last x is the
answer.

Under rules all parts have the same tasks, x[1] = x[2] = ...: a rule may give something to users who do not rise, or not yet. The stop times
of a part are those of all that its users have. Guarantees under rules are `fairopt.solvers.via_highs.whole_promises`. Where the rules of a
plan (what goes on) stand beside guarantees, rules bind the last x alone, and all parts have their columns from the start: the levels of an
early part are those that some answer within the rules reaches.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from fairopt.errors import NoSolution
from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.program import LimitKind, Program, Solution, Stage, TreeFilling
from fairopt.program.stop_times import stop_times
from fairopt.program.tree_filling import Part
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import Status, solved
from fairopt.solvers.via_highs.rows import Maker, Rows, by_highs
from fairopt.solvers.via_highs.settings import SETTINGS
from fairopt.solvers.via_highs.tree import solve_filling

__all__ = ["Filling", "PartModel", "RoundedDown", "solve_whole_tree"]

log = logging.getLogger(__name__)


def solve_whole_tree(program: Program, goal: TreeFilling, deadline: Deadline, branch_and_cut: Maker = by_highs) -> Solution:
    """Fill a tree in whole tasks.

    Raises
    ------
    NoSolution
        At the deadline, with the best tasks found.
    """
    return Filling(program, goal, deadline, branch_and_cut).solve()


@dataclass
class PartModel:
    """The columns of a part: tasks by pair, and the stop time of each member as a sum of columns, up to rounding."""

    part: Part
    rising: BoolArray
    members: IntArray
    tasks: IntArray
    time: dict[int, dict[int, float]]
    levels: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    exceptions: list[dict[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class RoundedDown:
    """The filling of a tree in divisible tasks, rounded down: ``tasks`` that fit, (pairs,), and a bound of the first stop time."""

    tasks: FloatArray
    first_time: float = np.inf

    @classmethod
    def of(cls, program: Program, goal: TreeFilling, deadline: Deadline) -> RoundedDown:
        """Fill the tree; no tasks and no bound where that is not known, or may break a rule."""
        nothing, largest = cls(np.zeros(program.n_pairs)), program.largest()
        if not program.down_closed:
            return nothing
        try:
            divisible = solve_filling(replace(program, integral=False), goal, SETTINGS.rounded_down, deadline)
        except NoSolution:
            if deadline.left == 0.0:
                raise
            return nothing
        tasks = np.floor(divisible.x * (1 + FITS) + FITS)
        if not ((largest * (1 + FITS) + FITS >= 1) == (largest > 0)).all():  # whole tasks are shared among fewer users, who may have more
            return cls(tasks)
        times = [stage.value for stage in divisible.stages if stage.part == 0 and stage.users.size]
        return cls(tasks, min(times, default=np.inf) * (1 + SETTINGS.rounded_down))


class Filling:
    """The model of all parts so far, and the best tasks known."""

    def __init__(
        self,
        program: Program,
        goal: TreeFilling,
        deadline: Deadline,
        branch_and_cut: Maker = by_highs,
        rounded_down: RoundedDown | None = None,
    ) -> None:
        self.program, self.goal, self.deadline = program, goal, deadline
        self.limits = program.limits
        self.largest = np.floor(program.largest() * (1 + FITS) + FITS)
        reach = program.per_user(self.largest * program.utilities)
        self.unit = float(reach.max(initial=0.0)) or 1.0  # shares are measured in it, so that rows are near 1
        self.worth = program.utilities / self.unit
        self.at_once = not program.down_closed and not any(part.guarantees for part in goal.parts)  # all parts have the same tasks
        self.rows = Rows(branch_and_cut)
        self.parts: list[PartModel] = []
        self.best = self.point = np.zeros(program.n_pairs)  # the tasks, and all columns of the last program
        self.known: list[FloatArray] = []
        self.gap, self.iterations, self.runs, self.bound = 0.0, 0, 0, 0.0
        self.rounded_down = rounded_down or RoundedDown.of(program, goal, deadline)

    def solve(self) -> Solution:
        """Fill part after part."""
        if not self.program.down_closed and not self.at_once:
            for part in self.goal.parts:
                self._add(part)
        for number, part in enumerate(self.goal.parts):
            self._fill(self.parts[number] if number < len(self.parts) else self._add(part), number)
        if self.parts and not self.runs and not self.program.down_closed:  # nobody rises, and the rules hold all the same
            if self.rows.upper:
                self._run(self.rows, {})
            elif min(self.rows.upper_rows, default=0.0) < 0:
                raise NoSolution("no whole tasks obey the rules", {"infeasible": True})
        return self._found()

    def _fill(self, model: PartModel, number: int) -> None:
        """Find the levels of a part."""
        while model.counts[-1:] != [model.members.size] and model.members.size:
            self._next_level(model, number)
            log.info("part %d, level %d: %d users left", number, len(model.levels), model.members.size - model.counts[-1])

    def _found(self) -> Solution:
        """Return the best tasks, with the levels of all parts."""
        stages: list[Stage] = []
        for number, model in enumerate(self.parts):
            times = self._times(number)[model.members]
            nearest = np.abs(np.subtract.outer(times, model.levels)).argmin(axis=1) if model.levels else np.empty(0, int)
            value = self.unit / self._clock(model.part)
            stages += [Stage(level * value, model.members[nearest == k], None, number) for k, level in enumerate(model.levels)]
        return Solution(
            self.best,
            tuple(stages),
            gap=self.gap,
            bound=self.bound,
            iterations=self.iterations,
            programs_solved=max(self.runs, 1),
            parts=tuple(self.known),
        )

    # Levels ----------------------------------------------------------------------------------------------------------------------

    def _next_level(self, model: PartModel, number: int) -> None:
        """A, then B."""
        counted = model.counts[-1] if model.counts else 0
        highest = self._highest(model)
        rows = self.rows.copy()
        t = rows.column(highest)
        exceptions = self._require(rows, model, counted)
        for n in model.members:
            entries = dict(model.time[n])
            entries[t] = -1.0
            if exceptions:
                entries[exceptions[n]] = highest
            rows.row(entries, lower=0.0)
        self._run(rows, {t: 1.0})
        level = float(np.sort(self._times(number)[model.members])[counted])
        if not model.levels and number == 0:
            self.bound = level * self.unit / self._clock(model.part)
        rows = self.rows.copy()
        exceptions = self._require(rows, model, counted)
        least = self._least(model)
        below: dict[int, int] = {}
        for n in model.members:
            below[n] = rows.column(1.0, whole=True)
            above = level * (1 + SETTINGS.told_apart) if level > FITS * highest else least[n] * (1 - FITS)
            # Nobody falls below this level but those counted so far; an exception to it is one to what is above it.
            entries = dict(model.time[n])
            if exceptions:
                rows.row(entries | {exceptions[n]: level}, lower=level * (1 - SETTINGS.level_kept))
                rows.row({below[n]: 1.0, exceptions[n]: -1.0}, lower=0.0)
            else:
                rows.row(entries, lower=level * (1 - SETTINGS.level_kept))
            rows.row(entries | {below[n]: above}, lower=above)
        self._run(rows, dict.fromkeys(below.values(), -1.0))
        last = max(level * (1 + 0.5 * SETTINGS.told_apart), 0.5 * least[model.members].min())
        now = int((self._times(number)[model.members] <= last).sum())
        self._settle(model, level, max(now, counted + 1))

    def _settle(self, model: PartModel, level: float, count: int) -> None:
        """Keep a level and its count for all programs to come: nobody below it but those counted before."""
        if not model.levels:
            for n in model.members:
                self.rows.row(dict(model.time[n]), lower=level * (1 - SETTINGS.level_kept))
        else:
            exceptions = {int(n): self.rows.column(1.0, whole=True) for n in model.members}
            self.rows.row(dict.fromkeys(exceptions.values(), 1.0), upper=float(model.counts[-1]))
            for n in model.members:
                self.rows.row(model.time[n] | {exceptions[n]: level}, lower=level * (1 - SETTINGS.level_kept))
                if model.exceptions:  # an exception to an earlier level is one to this
                    self.rows.row({exceptions[n]: 1.0, model.exceptions[-1][n]: -1.0}, lower=0.0)
            model.exceptions.append(exceptions)
        model.levels.append(level)
        model.counts.append(count)

    def _require(self, rows: Rows, model: PartModel, counted: int) -> dict[int, int]:
        """Add the exceptions to a new level, as many as are counted so far; nothing where nobody is."""
        if not counted:
            return {}
        exceptions = {int(n): rows.column(1.0, whole=True) for n in model.members}
        rows.row(dict.fromkeys(exceptions.values(), 1.0), upper=float(counted))
        if model.exceptions:
            for n, column in exceptions.items():
                rows.row({column: 1.0, model.exceptions[-1][n]: -1.0}, lower=0.0)
        return exceptions

    def _run(self, rows: Rows, maximise: dict[int, float]) -> None:
        """Solve a program and keep its point."""
        known = self.best_known()
        if self.deadline.left == 0.0:
            raise self.deadline.passed(known)
        highs = rows.model(maximise, SETTINGS.tolerance_of_trees)
        outcome = highs.run(self.deadline.left)
        if outcome.status is Status.INFEASIBLE and not self.program.down_closed and not self.runs:
            raise NoSolution("no whole tasks obey the rules", {"infeasible": True})
        if outcome.status is Status.INFEASIBLE:  # every other program has a point; presolve loses it where numbers are nearly equal
            highs.set_options(presolve="off")
            highs.forget()
            outcome = highs.run(self.deadline.left)
        outcome = solved(outcome, self.deadline, known)
        self.runs += 1
        self.iterations += outcome.iterations
        self.gap = max(self.gap, outcome.gap if np.isfinite(outcome.gap) else 0.0)  # inf: an optimum of 0, of which no gap is a part
        self.known = []
        for model in self.parts:
            x = np.zeros(self.program.n_pairs)
            x[model.tasks >= 0] = np.round(outcome.x[model.tasks[model.tasks >= 0]])
            self.known.append(x)
        self.best, self.point = self.known[-1], outcome.x

    def best_known(self) -> dict[str, object]:
        """Return what is known where the time is up: tasks that fit, and the smallest stop time of the first part with a bound of it.

        The point of an early part leaves much of the cluster idle. Before the last part, divisible tasks rounded down are better.
        """
        first, tasks = self.parts[0], self.best
        if not self.program.down_closed and not self.runs:  # nothing may break a rule, and nothing is known that does not
            return {}
        if self.program.down_closed and (len(self.parts) < len(self.goal.parts) or not self.parts[-1].levels):
            tasks = self.rounded_down.tasks
        unit = self.unit / self._clock(first.part)
        has = self.program.per_user(self.worth * np.minimum(tasks, self.largest))
        own = np.minimum(has, self.program.per_user(self.worth * self.known[0])) if first.levels else np.zeros(has.size)
        times = stop_times(self.goal, first.part, first.rising, own)[first.members]
        value = float(times.min(initial=np.inf)) * self.unit if times.size else 0.0
        bound = min((first.levels[0] if first.levels else self._highest(first)) * unit, self.rounded_down.first_time)
        return {"tasks": tasks.copy(), "value": min(value, bound), "bound": bound}

    # Stop times ------------------------------------------------------------------------------------------------------------------

    def _clock(self, part: Part) -> float:
        """Return the rate by which those of a part are divided, so that times are near 1."""
        if part.node_rates is None and part.user_rates is None:
            return float(np.concatenate([self.goal.tree.weights[1:], self.goal.weights]).max(initial=1.0))
        rates = [each.max(initial=0.0) for each in (part.node_rates, part.user_rates) if each is not None]
        return float(max(rates)) or 1.0

    def _times(self, number: int) -> FloatArray:
        """Return the stop times of a part at the best point known, by its clock."""
        model = self.parts[number]
        shares = [self.program.per_user(self.worth * x) for x in self.known[max(number - 1, 0) : number + 1]]
        gains = shares[-1] - (shares[0] if number and not self.at_once else 0.0)
        return stop_times(self.goal, model.part, model.rising, gains) * self._clock(model.part)

    def _highest(self, model: PartModel) -> float:
        """Return a time that nobody's exceeds: all have all that they can have alone."""
        reach = self.program.per_user(self.worth * np.where(model.tasks >= 0, self.largest, 0.0))
        times = stop_times(self.goal, model.part, model.rising, reach) * self._clock(model.part)
        return float(times.max(initial=0.0)) or 1.0

    def _least(self, model: PartModel) -> FloatArray:
        """Return the stop time of each user with one task, where its siblings have none, (users,): no time but 0 is smaller."""
        worth = np.full(len(self.program.users), np.inf)
        open_to = model.tasks >= 0
        np.minimum.at(worth, self.program.pair_users[open_to], self.worth[open_to])
        times = np.zeros(worth.size)
        for n in model.members:
            alone = np.zeros(worth.size, bool)
            alone[n] = True
            times[n] = stop_times(self.goal, model.part, alone, np.where(alone, worth, 0.0))[n] * self._clock(model.part)
        return times

    # The model of a part ---------------------------------------------------------------------------------------------------------

    def _add(self, part: Part) -> PartModel:
        """Add the columns and rows of a part."""
        program, rows, before = self.program, self.rows, self.parts[-1] if self.parts else None
        if self.at_once and before is not None:
            return self._add_ruled(part, before)
        users = program.pair_users
        reach = program.per_user(self.largest * self.worth)
        extra = part.extra
        closed = np.zeros(program.n_pairs, bool)
        if extra is not None and before is None:
            shut = extra.bounds <= 0
            closed[np.unique(extra.matrix[np.flatnonzero(shut)].indices)] = True
        has_before = np.zeros(reach.size, bool) if before is None else self._ever_rose()
        rising = part.users & (reach > 0)
        if closed.any():
            rising &= program.per_user(np.where(closed, 0.0, self.largest * self.worth)) > 0
        usable = (rising | has_before | self.at_once)[users] & (self.largest > 0) & ~closed
        tasks = np.full(program.n_pairs, -1, np.int64)
        for p in np.flatnonzero(usable):
            tasks[p] = rows.column(float(self.largest[p]), whole=True)
        model = PartModel(part, rising, np.flatnonzero(rising), tasks, {})
        self._limit(rows, model, before)
        self._gains(rows, model, before)
        self.parts.append(model)
        if self.known:  # the point so far goes on as it is
            self.known.append(self.known[-1].copy())
        else:
            self.known = [np.zeros(program.n_pairs)]
        return model

    def _add_ruled(self, part: Part, before: PartModel) -> PartModel:
        """Add a part under rules: other users rise, and the tasks are the same."""
        rising = part.users & (self.program.per_user(self.largest * self.worth) > 0)
        model = PartModel(part, rising, np.flatnonzero(rising), before.tasks, {})
        self._gains(self.rows, model, None)
        self.parts.append(model)
        self.known.append(self.known[-1].copy())
        return model

    def _ever_rose(self) -> BoolArray:
        """Return who may have something from earlier parts, (users,)."""
        return np.asarray(np.any([model.rising for model in self.parts], axis=0))

    def _limit(self, rows: Rows, model: PartModel, before: PartModel | None) -> None:
        """Add the limits of the program, and those of the part."""
        limits = self.limits
        for full in np.flatnonzero((limits.bounds > 0) & (limits.kinds != LimitKind.RULE)):
            entries = self._entries(limits.matrix, int(full), model, float(limits.bounds[full]))
            if entries:
                rows.row(entries, upper=1.0)
        is_last = self.at_once or len(self.parts) == len(self.goal.parts) - 1
        for rule in np.flatnonzero(limits.kinds == LimitKind.RULE) if is_last else ():
            row = int(rule)
            size = float(np.abs(limits.matrix[[row]].data).max(initial=0.0)) or 1.0
            bound = float(limits.bounds[row]) / size
            rows.row(self._entries(limits.matrix, row, model, size), upper=bound + FITS * max(abs(bound), 1.0))
        extra = model.part.extra
        if extra is None:
            return
        for j in range(len(extra)):
            bound = float(extra.bounds[j])
            size = bound if bound > 0 else float((extra.matrix[[j]] @ self.largest)[0]) or 1.0
            entries = self._entries(extra.matrix, j, model, size)
            if not entries:
                continue
            earlier = {} if before is None else self._entries(extra.matrix, j, before, size)
            if not earlier:
                rows.row(entries, upper=bound / size)
                continue
            # At most the guarantee, or at most what the part before has, whichever is more.
            either = rows.column(1.0, whole=True)
            most = float((extra.matrix[[j]] @ self.largest)[0]) / size
            rows.row(entries | {either: -most}, upper=bound / size)
            rows.row(entries | {column: -value for column, value in earlier.items()} | {either: most}, upper=most)

    def _entries(self, matrix: sp.csr_array, row: int, model: PartModel, size: float) -> dict[int, float]:
        start, end = matrix.indptr[row], matrix.indptr[row + 1]
        pairs, values = matrix.indices[start:end], matrix.data[start:end]
        return {int(model.tasks[p]): float(value) / size for p, value in zip(pairs, values, strict=True) if model.tasks[p] >= 0}

    def _gains(self, rows: Rows, model: PartModel, before: PartModel | None) -> None:
        """Add the gains of users, and with them their stop times."""
        gain: dict[int, int] = {}
        for n in range(len(self.program.users)):
            entries = self._worths(n, model, 1.0) | ({} if before is None else self._worths(n, before, -1.0))
            if model.rising[n]:
                gain[n] = rows.column()
                rows.row(entries | {gain[n]: -1.0}, lower=0.0, upper=0.0)
            elif entries and not self.at_once:
                rows.row(entries, lower=0.0, upper=0.0)
        self._stop_times(rows, model, gain)

    def _worths(self, n: int, model: PartModel, sign: float) -> dict[int, float]:
        """Return what a user has in a part, as a sum of columns."""
        mine = np.flatnonzero((self.program.pair_users == n) & (model.tasks >= 0))
        return {int(model.tasks[p]): sign * float(self.worth[p]) for p in mine}

    def _stop_times(self, rows: Rows, model: PartModel, gain: dict[int, int]) -> None:
        """Add the stop times of a part, of the columns of what users gain in it."""
        tree, goal = self.goal.tree, self.goal
        active = goal.active(model.rising)
        sums: dict[int, int] = {}
        children: dict[int, list[tuple[int, float]]] = {}  # gain column and weight of each child that rises
        for v in tree.order:
            if active[v]:
                own = [(gain[int(n)], float(goal.weights[n])) for n in tree.users_of(v) if model.rising[n]]
                own += [(sums[int(c)], float(tree.weights[c])) for c in tree.children(v) if active[c]]
                children[v] = own
                sums[v] = rows.column()
                rows.row({sums[v]: -1.0} | {column: 1.0 for column, _ in own}, lower=0.0, upper=0.0)
        clock, part = self._clock(model.part), model.part
        for n in model.members:
            rate = float(goal.weights[n])
            if part.user_rates is not None and part.user_rates[n] > 0:
                model.time[n] = {gain[n]: clock / float(part.user_rates[n])}
                continue
            column, child, node = gain[n], gain[n], int(tree.user_node[n])
            while node:
                column, child = self._held_when(rows, children[node], column, child, rate, bool(tree.listed[node])), sums[node]
                if part.node_rates is not None and part.node_rates[node] > 0:
                    rate = float(part.node_rates[node])
                    break
                rate, node = float(tree.weights[node]), int(tree.parent[node])
            model.time[n] = {column: clock / rate}

    def _held_when(self, rows: Rows, children: list[tuple[int, float]], own: int, child: int, weight: float, listed: bool) -> int:
        """Return a column of at most what a queue holds when one of its children, of this weight, holds ``own``."""
        if len(children) == 1:
            return own
        held = rows.column()
        entries = {own: 1.0, held: -1.0}
        if listed:
            before = [column for column, _ in children]
            rows.row(entries | dict.fromkeys(before[: before.index(child)], 1.0), lower=0.0)
            return held
        for column, other in children:
            if column != child:
                least = rows.column()
                rows.row({least: 1.0, column: -1.0}, upper=0.0)
                rows.row({least: 1.0, own: -other / weight}, upper=0.0)
                entries[least] = 1.0
        rows.row(entries, lower=0.0)
        return held
