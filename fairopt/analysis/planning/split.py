"""The program of a plan: the columns of whole tasks, split into those that go on and those that start.

Let y[n,i] be the tasks of the answer, h[n,i] those that run, k[n,i] <= h[n,i] those of them that go on, and r[n,i] >= 0 those that start:

    y = k + r,   A y <= b        all limits and rules of the program

k of a gang is its size times a column that is 0 or 1; k >= p where p tasks are protected. Stops are the sum of h - k.

    fewest stops      maximise sum of k  where  sum over i of y[n,i] = target[n]
    best of a budget  the goal of the notion, its shares those of y,  where  sum of k >= sum of h - N

Both are programs of whole tasks with rules, and the engines of such programs solve them. With the target fixed, the number of starts is
that of stops plus a constant, and so is the number of tasks that move: of the fewest stops, the fewest move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fairopt.analysis.planning.held import Held, Part
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import FITS
from fairopt.program import Feature, LimitKind, Limits, Program, Solution, TreeFilling
from fairopt.program.goals import Goal, Total
from fairopt.program.kept_parts import within_kept
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.wording import named

__all__ = ["Outcome", "Split", "best_within", "fewest_stops"]

_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Which tasks go on and which start.

    Attributes
    ----------
    kept : int array (parts,)
        Units that go on.
    starts : array (pairs,)
    stops : int
    bound : int
        No plan with these tasks by user has fewer stops.
    """

    kept: IntArray
    starts: FloatArray
    stops: int
    bound: int


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The columns: of each part that can go on one for each of its users, then one for each pair.

    Attributes
    ----------
    program : Program
        Of whole tasks on single servers.
    held : Held
    owner : int array (columns,)
        The user of each kept column.
    part : int array (columns,)
        The part of each kept column.
    spread : sparse array by columns (pairs, columns)
        The tasks of one unit of each kept column.
    """

    program: Program
    held: Held
    owner: IntArray
    part: IntArray
    spread: sp.csc_array

    @classmethod
    def of(cls, program: Program, held: Held) -> Split:
        """Return the columns. A part with tasks on a server where the program allows its user nothing cannot go on."""
        pair = {(n, i): p for p, (n, i) in enumerate(zip(program.pair_users.tolist(), program.pair_servers.tolist(), strict=True))}
        owner: list[int] = []
        of_part: list[int] = []
        entries: list[tuple[int, int, int]] = []
        for g, part in enumerate(held.parts):
            if any((n, i) not in pair for n, i, _ in part.cells):
                continue
            for user in dict.fromkeys(n for n, _, _ in part.cells):
                entries += [(pair[n, i], len(owner), tasks) for n, i, tasks in part.cells if n == user]
                owner.append(user)
                of_part.append(g)
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        spread = sp.csc_array((np.array(values, float), (np.array(rows, int), np.array(columns, int))), shape=(program.n_pairs, len(owner)))
        return cls(program, held, np.array(owner, int), np.array(of_part, int), spread)

    @property
    def blocked(self) -> list[Part]:
        """Return the parts that cannot go on."""
        able = {*self.part.tolist()}
        return [part for g, part in enumerate(self.held.parts) if g not in able]

    def columns(self, values: FloatArray, starts: FloatArray | None = None) -> FloatArray:
        """Return a value for each column: of kept ones the sum over their tasks, of starts the value of the pair (or ``starts``)."""
        return np.concatenate([self.spread.T @ values, values if starts is None else starts])

    def extended(self, rules: Sequence[tuple[FloatArray | sp.csr_array, float]]) -> Program:
        """Return the program over the columns, with rules: rows a, b of a x <= b."""
        program, size = self.program, self.owner.size
        limits = self._over(program.limits)
        lead = [k for k in range(size) if k == 0 or self.part[k] != self.part[k - 1]]
        units = [float(self.held.parts[g].units) for g in self.part[lead].tolist()]
        width = size + program.n_pairs
        eye = sp.eye_array(width, format="csr")
        tops = Limits.of(LimitKind.NAMED, eye[lead], units, len(program.queue_limits) + np.arange(len(lead)))
        rows = [(eye[[k]] * sign - eye[[k - 1]] * sign, 0.0) for k in range(size) if k not in set(lead) for sign in (1.0, -1.0)]
        rows += [(-eye[[k]], -float(least)) for k in lead if (least := self.held.parts[self.part[k]].protected)]
        rows += [(sp.csr_array(np.atleast_2d(row)) if isinstance(row, np.ndarray) else row, bound) for row, bound in rules]
        blocks = [limits, tops]
        if rows:
            keys = len(program.queue_limits) + len(lead) + np.arange(len(rows))
            blocks.append(Limits.of(LimitKind.RULE, sp.vstack([row for row, _ in rows], format="csr"), [b for _, b in rows], keys))
        users = np.concatenate([self.owner, program.pair_users])
        servers = np.concatenate([np.zeros(size, int), program.pair_servers])
        return replace(
            program,
            pair_users=users,
            pair_servers=servers,
            utilities=self.columns(program.utilities),
            goal=self._goal(),
            limits=Limits.stack(blocks),
            queue_limits=(*program.queue_limits, *(f"plan {j}" for j in range(len(lead) + len(rows)))),
            kept=None,
            kept_rows=(),
            stated=(),
            source=None,
        )

    def _goal(self) -> Goal:
        """Return the goal over the columns: the guarantees of a tree are limits of pairs."""
        goal = self.program.goal
        if not isinstance(goal, TreeFilling):
            return goal
        parts = tuple(part if part.extra is None else replace(part, extra=self._over(part.extra)) for part in goal.parts)
        return replace(goal, parts=parts, rules_at_end=True)

    def _over(self, limits: Limits) -> Limits:
        """Return limits of pairs over the columns."""
        matrix = sp.hstack([limits.matrix @ self.spread, limits.matrix], format="csr")
        return Limits(matrix, limits.bounds, limits.kinds, limits.keys)

    def outcome(self, x: FloatArray, bound: float) -> Outcome:
        """Return which tasks go on, from the values of the columns."""
        size = self.owner.size
        kept = np.zeros(len(self.held.parts), int)
        kept[self.part] = np.round(x[:size]).astype(int)
        starts = np.round(x[size:])
        for k in range(size):  # a task that stops and starts on the same server goes on
            part = self.held.parts[self.part[k]]
            if part.cells[0][2] == 1 and len(part.cells) == 1:
                p = int(self.spread.indices[self.spread.indptr[k]])
                more = int(min(part.units - kept[self.part[k]], starts[p]))
                kept[self.part[k]] += more
                starts[p] -= more
        stops = self.held.tasks - sum(int(kept[g]) * sum(tasks for _, _, tasks in part.cells) for g, part in enumerate(self.held.parts))
        return Outcome(kept, starts, stops, min(stops, max(0, int(np.ceil(self.held.tasks - bound - 1e-6)))))

    def tasks(self, outcome: Outcome) -> FloatArray:
        """Return the tasks of an outcome, (pairs,)."""
        size = self.owner.size
        return np.asarray(self.spread @ outcome.kept[self.part] + outcome.starts if size else outcome.starts, float)


def fewest_stops(program: Program, held: Held, target: FloatArray, deadline: Deadline) -> tuple[Split, Outcome]:
    """Return the plan with the fewest stops to a number of tasks by user, (users,).

    Raises
    ------
    NoSolution
        No placement of the target keeps the protected tasks; or at the deadline.
    """

    def solve(program: Program) -> tuple[tuple[Split, Outcome], Program | None]:
        split = Split.of(program, held)
        size = split.owner.size
        everyone = np.concatenate([split.owner, program.pair_users])
        tasks = split.columns(np.ones(program.n_pairs))
        totals = sp.csr_array((tasks, (everyone, np.arange(everyone.size))), shape=(len(program.users), everyone.size))
        rules = [(totals[[n]] * sign, sign * float(target[n])) for n in range(len(program.users)) for sign in (1.0, -1.0)]
        worth = np.where(np.arange(everyone.size) < size, tasks, 0.0)
        extended = replace(split.extended(rules), utilities=worth, goal=Total(np.ones(len(program.users))))
        gone = np.maximum(held.table(len(program.users), len(program.servers)).sum(axis=1) - target, 0.0).sum()
        try:
            solution = _solved(extended, deadline)
            x, kept = solution.x, float(worth @ solution.x) if solution.bound is None else solution.bound
        except NoSolution as error:
            if deadline.seconds is None or "tasks" not in error.known:
                raise
            x, kept = np.asarray(error.known["tasks"], float), np.inf
        outcome = split.outcome(x, min(kept, held.tasks - gone))
        return (split, outcome), program.with_broken(split.tasks(outcome))

    return within_kept(program, solve)[-1]


def best_within(program: Program, held: Held, stops: int | None, deadline: Deadline) -> FloatArray:
    """Return the tasks by user of the notion's answer over all whole tasks that at most so many stops reach, (users,).

    Protected tasks go on. ``stops`` None: any number of stops.

    Raises
    ------
    Unsupported
        No engine finds whole tasks of this goal under rules.
    NoSolution
        Nothing is reached with so few stops; or at the deadline.
    """
    goal = program.goal
    if not (goal.feature in (Feature.LEXIMIN, Feature.TOTAL) or (goal.is_filling and not goal.no_whole_tasks)):
        what = "under a budget of stops or beside protected tasks"
        if goal.no_whole_tasks:
            raise Unsupported(f"no engine finds the best whole tasks {what}: {goal.no_whole_tasks}, or leave the budget and protected out")
        raise Unsupported(
            f'no engine finds the best whole tasks of "{program.name}" {what} in this instance; leave the budget out, protect fewer tasks, '
            "or take a notion such as drfh"
        )

    def solve(program: Program) -> tuple[FloatArray, Program | None]:
        split = Split.of(program, held)
        size = split.owner.size
        tasks = split.columns(np.ones(program.n_pairs))
        kept = np.where(np.arange(tasks.size) < size, tasks, 0.0)
        rules: list[tuple[FloatArray | sp.csr_array, float]] = [] if stops is None else [(-kept, float(stops - held.tasks))]
        if stops is not None and kept.sum() == 0 and held.tasks > stops:
            raise NoSolution(f"{named(program.name)}: no plan has so few stops", {"infeasible": True})
        solution = _solved(split.extended(rules), deadline)
        outcome = split.outcome(solution.x, 0.0)
        reached = split.tasks(outcome)
        return program.per_user(reached), program.with_broken(reached)

    return within_kept(program, solve)[-1]


def _solved(program: Program, deadline: Deadline) -> Solution:
    """Solve a program of whole tasks; what fits is checked here, row by row."""
    engine = candidates(program, None)[0]
    solution = engine.solve(program, tolerance=_TOLERANCE, deadline=deadline)
    x, limits = np.round(solution.x), program.limits
    size = np.maximum(np.abs(limits.bounds), abs(limits.matrix) @ np.abs(x))
    if (limits.matrix @ x > limits.bounds + 10 * FITS * size).any():
        remedy = "measure resources in units that make their numbers more alike"
        raise NoSolution(f"{named(engine.name)} returned whole tasks that exceed a limit; {remedy}", {})
    return solution
