r"""Best response: the equilibrium of servers, by letting each in turn do its best until none can improve.

Every server i solves its own problem, a leximin over (y[n] + x[n,i]) / g[n,i] given what its users have elsewhere, in closed form
(`fairopt.solvers.equilibrium.kernel`). The first sweep starts from nothing, which is DRF on each server in order, and so are the
following ones: Algorithm I of Khamse-Ashari et al. (2017), with its inner loop replaced by the point that it tends to.

Most instances settle in a few sweeps, some only geometrically, over thousands. Three things help, all of them only to propose a point:

* the structure that the sweeps have found (who holds something where, and what stopped it) is solved as linear equations
  (`fairopt.solvers.equilibrium.equations`), every few sweeps; where that satisfies the condition, it is the answer;
* where each sweep moves the same little until some pair is empty, one step goes all that way;
* where sweeps crawl, an interior point (`fairopt.solvers.equilibrium.smoothing`) finds who holds what, given what stops each.

Near the end the sweeps go on by themselves as long as they halve the violation: the other two know the answer to eight digits only, and
would lead them round in a circle. What is good enough after ten more attempts at something better is returned.

Asynchronous servers act at times of their own, one at a tick, and carry out what they decided up to ``delay`` ticks later, when others
have moved on. Where they overshoot together, all go a shorter part of the way: half of it whenever they have stopped coming nearer. In a
random or asynchronous order only the exact finish helps, so that the record is that of the servers; whoever has not ended
after 2,000 sweeps goes the last stretch in turn.

Nothing is returned that does not satisfy the condition: what the sweeps say of themselves is not asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fairopt.certificate.conditions import bottleneck_violation
from fairopt.drawing import draw
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.program import Equilibrium, Feature, LimitKind, Program, Solution
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solvers.compiled import load
from fairopt.solvers.equilibrium.equations import Structure
from fairopt.solvers.equilibrium.smoothing import approach

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BestResponse", "Sweeps"]

_SWEEPS = 20_000
_AIM = 1e-10  # residual at which nothing better is looked for
_SPARE = 10  # attempts at something better than is asked for
_STILL = 1e-15  # a relative change that is rounding
_NOTHING = (1e-9, 1e-6, 1e-4, 1e-2)  # parts of its largest value below which a pair is taken to hold nothing, tried in turn
_EVERY = 10  # sweeps between attempts to finish
_CREEP = 1e-9  # a relative change that the exact finish does not need helped
_NEAR = 0.03  # a relative change at which what stops whom is mostly settled
_PATIENCE = 2_000  # sweeps in a random or asynchronous order before the last stretch is done in turn
_CLOSE = 1e-5  # a relative change from which on few pairs are in doubt
_FEW = 300  # pairs that are few enough for any attempt
_KEPT = 2_000_000  # numbers of the record


@dataclass(frozen=True, slots=True, eq=False)
class Sweeps:
    """The record of a best response: a row for each sweep (asynchronously: for as many actions as there are servers).

    Attributes
    ----------
    changes : array (sweeps,)
        Largest change of an x[n,i], relative to the x[n] of its user. The last is that of the exact finish.
    violations : array (sweeps,)
        Largest violation of the equilibrium's condition, relative, after the sweeps where it was looked at; else not a number.
    tasks : array (recorded sweeps, users)
        x[n] after each sweep, of the rows that were solved (merged); the first ones, where there are very many.
    users : tuple of str
        Names of these rows.
    """

    changes: FloatArray
    violations: FloatArray
    tasks: FloatArray
    users: tuple[str, ...]

    def plot(self) -> Figure:
        """Draw change and violation over the sweeps, on a logarithmic axis, and the tasks; returns a matplotlib figure.

        >>> import fairopt as fo
        >>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [.5, 1, 0], [1, .5, 0]])
        >>> [axes.get_xlabel() for axes in fo.solve(instance, "psdsf").trace.plot().axes]
        ['sweeps of all servers', 'sweeps of all servers']
        """
        return draw("convergence", self)


class BestResponse(Backend):
    """Servers in turn, each in closed form, with an exact finish."""

    name = "best-response"
    title = "Best response: servers in turn, each in closed form, with an exact finish"
    features = frozenset({Feature.EQUILIBRIUM, Feature.MARKET, Feature.SEVERAL_SERVERS})
    package = "numba"
    requirement = "pip install numba"

    def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
        """Sweep, finish exactly, verify.

        Raises
        ------
        NoSolution
            At the time limit, or after 20,000 sweeps, with the point reached and by how much it violates the condition.
        """
        goal = program.goal
        assert isinstance(goal, Equilibrium)
        state = _State(program, goal)
        turns, in_turn = _turns(goal, state), goal.order == "sequential"
        best, residual = state.plain(), np.inf
        due, leap, last, spare = 1, 2 * _EVERY, np.inf, _SPARE
        for sweep in range(1, _SWEEPS + 1):
            if sweep == _PATIENCE and not in_turn:
                turns, in_turn = _turns(Equilibrium(goal.weights), state), True
            change = turns()
            state.record(change)
            if change <= _STILL or sweep >= due or deadline.left == 0.0:
                due = min(2 * sweep, sweep + _EVERY)
                near = state.plain()
                reached = nearest = state.violations[-1] = state.residual(near)
                for x in [near, *(state.finishes() if reached > _AIM else [])]:
                    worst = state.residual(x)
                    if worst < residual:
                        best, residual = x, worst
                    if worst < nearest:
                        near, nearest = x, worst
                    if residual <= _AIM:
                        break
                enough = residual <= 0.1 * tolerance
                spare -= enough
                if residual <= _AIM or (enough and (change <= _STILL or not spare)) or deadline.left == 0.0:
                    break
                alone = enough or (change < _CLOSE and reached < 0.5 * last)  # the sweeps do it by themselves
                last = reached
                if in_turn and sweep >= leap and _CREEP < change < _NEAR and not alone:
                    leap = sweep + _EVERY * (1 if state.x.size <= _FEW else 2)
                    state.leap()
                elif in_turn and nearest < 0.5 * reached:
                    state.go_to(near)
                elif in_turn and not alone:
                    state.drift()
        if not residual <= tolerance:  # less was aimed at; what is allowed will do
            known = {"x": best, "residual": residual, "sweeps": sweep, "change": change}
            if deadline.left == 0.0:
                raise deadline.passed(known)
            raise NoSolution(
                f"the servers found no equilibrium in {sweep:,} sweeps; the best point violates its condition by {residual:.1e}; "
                f'try another order ("random", another seed) or a larger tolerance',
                known,
            )
        state.finished(best, residual)
        return Solution(best, iterations=sweep, programs_solved=0, trace=state.trace(), seconds={"load": state.loading})


class _State:
    """The program in arrays by server, and where the servers are."""

    def __init__(self, program: Program, goal: Equilibrium) -> None:
        self.loading = 0.0  # seconds
        self.program, self.goal = program, goal
        limits = program.limits
        self.order = np.lexsort((program.pair_users, program.pair_servers))  # pairs by server
        number = len(program.servers)
        self.start = np.searchsorted(program.pair_servers[self.order], np.arange(number + 1)).astype(np.int64)
        self.user = program.pair_users[self.order].astype(np.int64)
        self.g = goal.weights[self.user] / program.utilities[self.order]
        self.largest = program.largest()[self.order]
        self.tasks = np.full(len(program.users), np.inf)
        owned = limits.kinds == LimitKind.TASKS
        self.tasks[limits.keys[owned, 0]] = limits.bounds[owned]
        # The limits of each server, numbered from 0: a dense column for each, as few are needed.
        rows = np.flatnonzero((limits.kinds == LimitKind.CAPACITY) | (limits.kinds == LimitKind.TIME))
        if rows.size + int(owned.sum()) != len(limits):
            raise Unsupported("best-response knows limits of servers and of users' tasks only")
        server = limits.keys[rows, 0]
        first = np.searchsorted(np.sort(server), np.arange(number))
        by_server = np.argsort(server, kind="stable")
        slot = np.empty(rows.size, np.int64)
        slot[by_server] = np.arange(rows.size) - first[server[by_server]]
        width = int(slot.max(initial=0)) + 1
        self.matrix = sp.csr_array(limits.matrix[rows][:, self.order])
        self.row_bounds = limits.bounds[rows]
        entries = self.matrix.tocoo()
        self.use = np.zeros((self.user.size, width))
        self.use[entries.col, slot[entries.row]] = entries.data
        self.bounds = np.full((number, width), np.inf)
        self.bounds[server, slot] = self.row_bounds
        self.row_of = np.full((number, width), -1)
        self.row_of[server, slot] = np.arange(rows.size)
        self.level = np.full((number, width), np.inf)
        self.stop = np.full(self.user.size, -1)
        self.x = np.zeros(self.user.size)
        self.total = np.zeros(self.tasks.size)
        self.x_before, self.before = self.x.copy(), list[FloatArray]()  # where the servers were before the last sweeps
        self.changes: list[float] = []
        self.violations: list[float] = []
        self.record_of_tasks: list[FloatArray] = []

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What a sweep reads and writes."""
        return (self.start, self.user, self.g, self.tasks, self.use, self.bounds, self.x, self.total, self.stop, self.level)

    def plain(self) -> FloatArray:
        """Where the servers are, pair by pair of the program."""
        x = np.empty(self.x.size)
        x[self.order] = self.x
        return x

    def stops(self) -> IntArray:
        """Which row of ``matrix`` stopped each pair, -1 for none."""
        servers = self.program.pair_servers[self.order]
        return np.where(self.stop >= 0, self.row_of[servers, np.maximum(self.stop, 0)], -1)

    def finishes(self) -> list[FloatArray]:
        """Solve the structure at hand exactly, for each idea of what is nothing."""
        some = int((self.x > _NOTHING[0] * self.largest).sum())
        if some > max(_FEW, np.count_nonzero(self.total) + np.isfinite(self.level).sum()) and self.changes[-1] > 1e-9:
            return []  # more pairs than equations can carry: too early, and dear
        structure = Structure(self.user, self.g, self.tasks, self.matrix, self.row_bounds, self.x, self.stops())
        answers: list[FloatArray] = []
        seen: set[bytes] = set()
        for nothing in _NOTHING if some <= _FEW or self.changes[-1] < _CLOSE else _NOTHING[:1]:
            positive = self.x > nothing * self.largest
            if positive.tobytes() in seen:
                continue
            seen.add(positive.tobytes())
            y = structure.solve(positive)
            if y is not None:
                x = np.empty(y.size)
                x[self.order] = y
                answers.append(x)
        return answers

    def residual(self, x: FloatArray) -> float:
        """By how much x is infeasible or violates the condition."""
        limits = self.program.limits
        excess = limits.matrix @ x - limits.bounds
        relative = np.divide(excess, limits.bounds, out=excess.copy(), where=limits.bounds > 0).max(initial=0.0)
        return max(float(relative), float(-x.min(initial=0.0)), bottleneck_violation(self.program, self.goal, x))

    def go_to(self, x: FloatArray) -> None:
        """Go on from x."""
        self.x[:] = x[self.order]
        self.total[:] = self.program.per_user(x)
        self.before, self.x_before = [], self.x.copy()

    def leap(self) -> None:
        """Go on from an approximate equilibrium in which what stops each pair now does so."""
        y = approach(self.user, self.g, self.largest, self.matrix, self.row_bounds, self.x, self.stops())
        if y is not None:
            x = np.empty(y.size)
            x[self.order] = y
            self.go_to(x)

    def drift(self) -> None:
        """Go as far in the direction of the last sweeps as they would go by themselves, and no pair further than until one is empty.

        Around a cycle of users and servers whose rates nearly match, each sweep moves the same little, until somebody holds nothing:
        a thousand sweeps of that are one step here. Pairs whose changes shrink by a ratio get what their series has left.
        """
        if len(self.before) < 3:
            return
        last = self.x - self.before[-1]
        previous = self.before[-1] - self.before[-2]
        ratio = np.divide(last, previous, out=np.zeros_like(last), where=previous != 0)
        empties = (last < 0) & (ratio > 0.9) & (self.x > _NOTHING[0] * self.largest)
        if not empties.any():
            return
        times = float((self.x[empties] / -last[empties]).min())
        left = np.divide(ratio, 1 - ratio, out=np.full_like(ratio, times), where=ratio < 1)
        x = np.empty(self.x.size)
        x[self.order] = np.maximum(self.x + np.clip(left, 0.0, times) * last, 0.0)
        self.go_to(x)

    def record(self, change: float) -> None:
        """Keep a row of the record."""
        self.changes.append(change)
        self.violations.append(np.nan)
        self.before = [*self.before[-2:], self.x_before]
        self.x_before = self.x.copy()
        if (len(self.record_of_tasks) + 1) * self.total.size <= _KEPT:
            self.record_of_tasks.append(self.total.copy())

    def finished(self, x: FloatArray, residual: float) -> None:
        """Record the way from the last sweep to the answer."""
        now = self.program.per_user(x)
        before = self.total[self.program.pair_users]
        change = np.abs(x - self.plain()) / np.maximum(np.maximum(now[self.program.pair_users], before), 1e-300)
        self.total = now
        self.record(float(change.max(initial=0.0)))
        self.violations[-1] = residual

    def trace(self) -> Sweeps:
        """Return the record."""
        tasks = np.array(self.record_of_tasks).reshape(-1, self.tasks.size)
        return Sweeps(np.array(self.changes), np.array(self.violations), tasks, self.program.users)


def _turns(goal: Equilibrium, state: _State) -> Callable[[], float]:
    """Return the function that lets each server act once, on average."""
    started = time.perf_counter()
    from fairopt.solvers.equilibrium import kernel as server_kernel  # numba is slow to import

    compiled: Any = server_kernel
    state.loading += time.perf_counter() - started + load(compiled.sweep, np.arange(0), *state.arrays)
    rng = np.random.default_rng(goal.seed)
    servers: IntArray = np.flatnonzero(np.diff(state.start))
    if goal.order == "sequential":
        return lambda: compiled.sweep(servers, *state.arrays)
    if goal.order == "random":
        return lambda: compiled.sweep(rng.permutation(servers), *state.arrays)
    planned = np.zeros(state.x.size)
    due = np.full(state.start.size - 1, -1)
    memory: dict[str, Any] = {"clock": 0, "step": 1.0, "best": np.inf, "since": 0}

    state.loading += load(compiled.act_asynchronously, servers, servers, 1.0, *state.arrays, planned, due, 0)

    def act() -> float:
        actors = rng.choice(servers, servers.size)
        delays = rng.integers(0, goal.delay + 1, servers.size)
        change = compiled.act_asynchronously(actors, delays, memory["step"], *state.arrays, planned, due, memory["clock"])
        memory["clock"] += servers.size
        if change < 0.9 * memory["best"]:
            memory["best"], memory["since"] = change, 0
        else:
            memory["since"] += 1
            if memory["since"] >= 50:
                memory["step"], memory["since"], memory["best"] = max(0.5 * memory["step"], 0.05), 0, change
        return float(change)

    return act
