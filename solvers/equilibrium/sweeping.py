r"""Best response: the equilibrium of servers, by letting each in turn do its best until none can improve.

Every server i solves its own problem, a leximin over (y[n] + x[n,i]) / g[n,i] given what its users have elsewhere, in closed form
(`fairopt.solvers.equilibrium.kernel`). The first sweep starts from nothing, which is DRF on each server in order; so do the following ones:
Algorithm I of Khamse-Ashari et al. (2017), with its inner loop replaced by the point that it converges to.

Most instances settle in a few sweeps, some only geometrically, over thousands. Three methods help; all they do is propose a point:

* the equations of the active sets that the sweeps have found (which pairs hold something, and which limit stopped each) are solved every
few
  sweeps (`fairopt.solvers.equilibrium.equations`); where their solution satisfies the condition of the equilibrium, it is the answer;
* where each sweep moves the same little until some pair is empty, one step goes all that way;
* where sweeps converge slowly, an interior point (`fairopt.solvers.equilibrium.smoothing`) finds which pairs hold something, given what
  stops each.

The equations are solved here, and not left to the polish of the answer, because nothing else ends the sweeps: a sequence that converges
geometrically never says that it has arrived, and its last change is no bound on its error.

Near the end the sweeps go on by themselves as long as they halve the violation: the other two methods know the answer to eight digits only,
and would lead the sweeps round in a circle. A point that is good enough after ten more attempts at something better is returned.

Asynchronous servers act at times of their own, one at a tick, and carry out what they decided up to ``delay`` ticks later, when others
have moved on. Where they overshoot together, all go a shorter part of the way: half of it whenever they have stopped converging. In a
random or asynchronous order only the equations help, so that the record is that of the servers; after 2,000 sweeps without an end, the
servers take turns.

No point is returned whose violation of the condition is not within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from fairopt.certificate.conditions import bottleneck_violation
from fairopt.drawing import draw
from fairopt.errors import NoSolution, Unsupported
from fairopt.instance import FloatArray, IntArray
from fairopt.program import Equilibrium, LimitKind, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.compiled import Steps
from fairopt.solvers.equilibrium import kernel, violation_kernel
from fairopt.solvers.equilibrium.equations import Structure
from fairopt.solvers.equilibrium.smoothing import approach

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Sweeps", "find_equilibrium"]

_SWEEPS = 20_000
_AIM = 1e-10  # residual at which nothing better is looked for
_SPARE = 10  # attempts at something better than what is asked for
_STILL = 1e-15  # a relative change that is rounding
_STUCK = 30  # attempts in which nothing moves and nothing is better: there will be no other ones
_NOTHING = (1e-9, 1e-6, 1e-4, 1e-2)  # parts of its largest value below which a pair counts as empty, tried in turn
_EVERY = 10  # sweeps between attempts to solve the equations
_CREEP = 1e-9  # a relative change at which the equations need no help
_NEAR = 0.03  # a relative change at which it is mostly settled which limit stops each pair
_PATIENCE = 2_000  # sweeps in a random or asynchronous order before servers take turns
_CLOSE = 1e-5  # a relative change at which few pairs are in doubt
_FEW = 300  # pairs that are few enough for any attempt
_LEAST_NUMBER = 1e-300
_MANY = 100_000  # pairs from which on the condition is checked by compiled code
_SECONDS = 1e-5  # of plain Python for one pair in a sweep, roughly
_KEPT = 2_000_000  # numbers of the record at most
_SAME_WAY = 0.9  # ratio of two changes of a pair from which on it moves the same little each sweep
_GAINS, _STALLED = 0.9, 50  # of asynchronous servers: a change that is progress, and rounds without progress until all go a shorter way
_SHORTER, _SHORTEST = 0.5, 0.05  # by this factor, and no shorter


@dataclass(frozen=True, slots=True, eq=False)
class Sweeps:
    """The record of a best response: a row for each sweep (asynchronously: for as many actions as there are servers).

    Attributes
    ----------
    changes : array (sweeps,)
        Largest change of an x[n,i], relative to the x[n] of its user. The last is that from the last sweep to the answer.
    violations : array (sweeps,)
        Largest violation of the equilibrium's condition, relative, after the sweeps where it was computed; else not a number.
    tasks : array (recorded sweeps, users)
        x[n] after each sweep, of the rows that were solved (merged); the first ones, where there are very many.
    users : tuple of str
        Names of these rows.
    """

    changes: FloatArray
    violations: FloatArray
    tasks: FloatArray
    users: tuple[str, ...]

    def plot(self, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw change and violation over the sweeps, on a logarithmic axis, and the tasks; returns a matplotlib figure.

        ``ax``: axes of yours to draw into (two). ``figsize``: of a new figure, in inches. ``title``: in place of the default ("": none).

        >>> import fairopt as fo
        >>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [.5, 1, 0], [1, .5, 0]])
        >>> [axes.get_xlabel() for axes in fo.solve(instance, "psdsf").trace.plot().axes]
        ['sweeps of all servers', 'sweeps of all servers']
        """
        return draw("convergence", self, ax=ax, figsize=figsize, title=title)


def find_equilibrium(program: Program, goal: Equilibrium, tolerance: float, deadline: Deadline) -> Solution:
    """Sweep until a point satisfies the condition of the equilibrium.

    Raises
    ------
    NoSolution
        At the time limit, after 20,000 sweeps, or where servers in turn change nothing any more, with the point reached and by how
        much it violates the condition.
    """
    layout = _Layout.of(program, goal)
    state, record = layout.empty(), _Record(layout)
    steps, checks = Steps(kernel), Steps(violation_kernel)
    act = _turns(goal, layout, state, steps)
    in_turn = goal.order == "sequential"
    best, violation = layout.by_pair(state.x), np.inf
    due, leap, last, spare, stuck = 1, 2 * _EVERY, np.inf, _SPARE, 0
    for sweep in range(1, _SWEEPS + 1):
        if sweep == _PATIENCE and not in_turn:
            act, in_turn = _turns(Equilibrium(goal.weights), layout, state, steps), True
        change = act()
        record.add(change, state)
        if change <= _STILL or sweep >= due or deadline.left == 0.0:
            due = min(2 * sweep, sweep + _EVERY)
            near, before = layout.by_pair(state.x), violation
            reached = nearest = record.violations[-1] = layout.violation(near, checks)
            for x in [near, *(_solved_equations(layout, state, change) if reached > _AIM else [])]:
                worst = reached if x is near else layout.violation(x, checks)
                if worst < violation:
                    best, violation = x, worst
                if worst < nearest:
                    near, nearest = x, worst
                if violation <= _AIM:
                    break
            stuck = stuck + 1 if in_turn and change <= _STILL and violation == before else 0
            enough = violation <= 0.1 * tolerance
            spare -= enough
            if violation <= _AIM or (enough and (change <= _STILL or not spare)) or deadline.left == 0.0 or stuck == _STUCK:
                break
            alone = enough or (change < _CLOSE and reached < 0.5 * last)  # the sweeps converge by themselves
            last = reached
            ahead = None
            if in_turn and sweep >= leap and _CREEP < change < _NEAR and not alone:
                leap = sweep + _EVERY * (1 if state.x.size <= _FEW else 2)
                ahead = _smoothed(layout, state)
            elif in_turn and nearest < 0.5 * reached:
                ahead = near[layout.order]
            elif in_turn and not alone:
                ahead = _drifted(layout, state, record)
            if ahead is not None:
                state.go_to(layout, ahead)
                record.forget_changes(state)
    if not violation <= tolerance:  # less was aimed at, but the tolerance is what counts
        known = {"x": best, "residual": violation, "sweeps": sweep, "change": change}
        if deadline.left == 0.0:
            raise deadline.passed(known)
        raise NoSolution(
            f"the servers found no equilibrium in {sweep:,} sweeps; the best point violates its condition by {violation:.1e}; "
            f'try another order ("random", another seed) or a larger tolerance',
            known,
        )
    trace = record.finished(state, best, violation)
    return Solution(best, iterations=sweep, programs_solved=0, trace=trace, seconds={"load": steps.loading + checks.loading})


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The program in arrays by server: what is fixed.

    Attributes
    ----------
    program : Program
    goal : Equilibrium
    order : int array (pairs,)
        The pairs, sorted by server; all that follows is in this order.
    start : int array (servers + 1,)
        First pair of each server.
    user, g, largest : arrays (pairs,)
    tasks : array (users,)
        Limits on tasks, inf for users who have none.
    matrix, row_bounds : (limits, pairs), (limits,)
        The limits of servers.
    use, bounds, row_of : arrays (pairs, slots), (servers, slots), (servers, slots)
        The same, with the limits of each server numbered from 0; -1 in ``row_of`` where a server has fewer.
    """

    program: Program
    goal: Equilibrium
    order: IntArray
    start: IntArray
    user: IntArray
    g: FloatArray
    largest: FloatArray
    tasks: FloatArray
    matrix: sp.csr_array
    row_bounds: FloatArray
    use: FloatArray
    bounds: FloatArray
    row_of: IntArray

    @classmethod
    def of(cls, program: Program, goal: Equilibrium) -> _Layout:
        """Lay out a program.

        Raises
        ------
        Unsupported
            It has other limits than those of servers and on tasks.
        """
        limits = program.limits
        order = np.lexsort((program.pair_users, program.pair_servers))
        number = len(program.servers)
        start = np.searchsorted(program.pair_servers[order], np.arange(number + 1)).astype(np.int64)
        user = program.pair_users[order].astype(np.int64)
        tasks = np.full(len(program.users), np.inf)
        owned = limits.kinds == LimitKind.TASKS
        tasks[limits.keys[owned, 0]] = limits.bounds[owned]
        rows = np.flatnonzero((limits.kinds == LimitKind.CAPACITY) | (limits.kinds == LimitKind.TIME))
        if rows.size + int(owned.sum()) != len(limits):
            raise Unsupported("best-response knows limits of servers and of users' tasks only")
        server = limits.keys[rows, 0]
        first = np.searchsorted(np.sort(server), np.arange(number))
        by_server = np.argsort(server, kind="stable")
        slot = np.empty(rows.size, np.int64)
        slot[by_server] = np.arange(rows.size) - first[server[by_server]]
        width = int(slot.max(initial=0)) + 1
        given, row_bounds = limits.matrix if rows.size == len(limits) else sp.csr_array(limits.matrix[rows]), limits.bounds[rows]
        place = np.empty(order.size, given.indices.dtype)
        place[order] = np.arange(order.size)
        # The pairs of a row are those of one server, in the order of their users as before: their new places ascend, too.
        matrix = sp.csr_array((given.data, place[given.indices], given.indptr), shape=given.shape)
        entries = matrix.tocoo()
        use, bounds, row_of = np.zeros((user.size, width)), np.full((number, width), np.inf), np.full((number, width), -1)
        use[entries.col, slot[entries.row]] = entries.data
        bounds[server, slot], row_of[server, slot] = row_bounds, np.arange(rows.size)
        g, largest = goal.weights[user] / program.utilities[order], program.largest()[order]
        return cls(program, goal, order, start, user, g, largest, tasks, matrix, row_bounds, use, bounds, row_of)

    def empty(self) -> _State:
        """Return servers that give nothing to anybody."""
        n = self.user.size
        return _State(np.zeros(n), np.zeros(self.tasks.size), np.full(n, -1), np.full(self.bounds.shape, np.inf))

    def arrays(self, state: _State) -> tuple[np.ndarray, ...]:
        """Return what a sweep reads and writes."""
        return (self.start, self.user, self.g, self.tasks, self.use, self.bounds, state.x, state.total, state.stop, state.level)

    def by_pair(self, values: FloatArray) -> FloatArray:
        """Return values in the order of the program's pairs."""
        x = np.empty(values.size)
        x[self.order] = values
        return x

    def stops(self, state: _State) -> IntArray:
        """Return which row of ``matrix`` stopped each pair, -1 for none."""
        servers = self.program.pair_servers[self.order]
        return np.where(state.stop >= 0, self.row_of[servers, np.maximum(state.stop, 0)], -1)

    def violation(self, x: FloatArray, steps: Steps) -> float:
        """Return by how much x (of the program's pairs) is infeasible or violates the condition of the equilibrium."""
        limits = self.program.limits
        if x.size >= _MANY:
            arrays = (self.start, self.user, self.g, self.largest, self.tasks, self.use, self.bounds)
            total, mine = self.program.per_user(x), x[self.order]
            return float(steps.run("largest_violation", *arrays, total, mine, _NOTHING[0], seconds=_SECONDS * x.size))
        excess = limits.matrix @ x - limits.bounds
        relative = np.divide(excess, limits.bounds, out=excess.copy(), where=limits.bounds > 0).max(initial=0.0)
        return max(float(relative), float(-x.min(initial=0.0)), bottleneck_violation(self.program, self.goal, x))


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """What the servers give; sweeps write into these arrays.

    Attributes
    ----------
    x, stop : arrays (pairs,)
        Tasks, and which limit of its server stopped the pair.
    total : array (users,)
    level : array (servers, slots)
        At which each limit filled up, inf where it did not.
    """

    x: FloatArray
    total: FloatArray
    stop: IntArray
    level: FloatArray

    def go_to(self, layout: _Layout, x: FloatArray) -> None:
        """Go on from x."""
        self.x[:] = x
        self.total[:] = layout.program.per_user(layout.by_pair(x))


@dataclass(slots=True, eq=False)
class _Record:
    """What the sweeps did: a row for each of them, and where the servers were after the last ones."""

    layout: _Layout
    changes: list[float] = field(default_factory=list)
    violations: list[float] = field(default_factory=list)
    tasks: list[FloatArray] = field(default_factory=list)
    recent: list[FloatArray] = field(default_factory=list)  # x before the last sweeps, three at most, and x now

    def __post_init__(self) -> None:
        self.recent = [np.zeros(self.layout.user.size)]

    def add(self, change: float, state: _State) -> None:
        """Add a sweep."""
        self._add_row(change, np.nan, state.total)
        self.recent = [*self.recent[-3:], state.x.copy()]

    def forget_changes(self, state: _State) -> None:
        """Begin anew with what the last sweeps changed: the servers were moved."""
        self.recent = [state.x.copy()]

    def finished(self, state: _State, x: FloatArray, violation: float) -> Sweeps:
        """Return the record, with the way from the last sweep to the answer x."""
        program = self.layout.program
        now, before = program.per_user(x), state.total[program.pair_users]
        change = np.abs(x - self.layout.by_pair(state.x)) / np.maximum(np.maximum(now[program.pair_users], before), _LEAST_NUMBER)
        self._add_row(float(change.max(initial=0.0)), violation, now)
        tasks = np.array(self.tasks).reshape(-1, now.size)
        return Sweeps(np.array(self.changes), np.array(self.violations), tasks, program.users)

    def _add_row(self, change: float, violation: float, total: FloatArray) -> None:
        self.changes.append(change)
        self.violations.append(violation)
        if (len(self.tasks) + 1) * total.size <= _KEPT:
            self.tasks.append(total.copy())


# Points that are proposed --------------------------------------------------------------------------------------------------------


def _solved_equations(layout: _Layout, state: _State, change: float) -> list[FloatArray]:
    """Return the solutions of the equations of the active sets at hand, for each idea of which pairs are empty, by pair of the program."""
    some = int((state.x > _NOTHING[0] * layout.largest).sum())
    if some > max(_FEW, np.count_nonzero(state.total) + np.isfinite(state.level).sum()) and change > _CREEP:
        return []  # more pairs than equations can determine: too early, and expensive
    structure = Structure(layout.user, layout.g, layout.tasks, layout.matrix, layout.row_bounds, state.x, layout.stops(state))
    answers: list[FloatArray] = []
    seen: set[bytes] = set()
    for nothing in _NOTHING if some <= _FEW or change < _CLOSE else _NOTHING[:1]:
        positive = state.x > nothing * layout.largest
        if positive.tobytes() in seen:
            continue
        seen.add(positive.tobytes())
        x = structure.solve(positive)
        if x is not None:
            answers.append(layout.by_pair(x))
    return answers


def _smoothed(layout: _Layout, state: _State) -> FloatArray | None:
    """Return an approximate equilibrium in which the limits that stop each pair now do so; None where there is none."""
    return approach(layout.user, layout.g, layout.largest, layout.matrix, layout.row_bounds, state.x, layout.stops(state))


def _drifted(layout: _Layout, state: _State, record: _Record) -> FloatArray | None:
    """Return how far the servers would go by themselves in the direction of the last sweeps, no pair further than until one is empty.

    Around a cycle of users and servers whose rates nearly match, each sweep moves the same little, until some pair is empty: a thousand
    sweeps are one step here. Pairs whose changes shrink by a ratio get the rest of their geometric series.
    """
    if len(record.recent) < 4:
        return None
    last = state.x - record.recent[-2]
    previous = record.recent[-2] - record.recent[-3]
    ratio = np.divide(last, previous, out=np.zeros_like(last), where=previous != 0)
    empties = (last < 0) & (ratio > _SAME_WAY) & (state.x > _NOTHING[0] * layout.largest)
    if not empties.any():
        return None
    times = float((state.x[empties] / -last[empties]).min())
    left = np.divide(ratio, 1 - ratio, out=np.full_like(ratio, times), where=ratio < 1)
    return np.asarray(np.maximum(state.x + np.clip(left, 0.0, times) * last, 0.0))


# Turns ---------------------------------------------------------------------------------------------------------------------------


def _turns(goal: Equilibrium, layout: _Layout, state: _State, steps: Steps) -> Callable[[], float]:
    """Return the function that lets each server act once, on average, and returns the largest change."""
    arrays = layout.arrays(state)
    rng = np.random.default_rng(goal.seed)
    once = _SECONDS * state.x.size
    servers: IntArray = np.flatnonzero(np.diff(layout.start))
    if goal.order == "sequential":
        return lambda: float(steps.run("sweep", servers, *arrays, seconds=once))
    if goal.order == "random":
        return lambda: float(steps.run("sweep", rng.permutation(servers), *arrays, seconds=once))
    planned = np.zeros(state.x.size)
    due = np.full(layout.start.size - 1, -1)
    clock, part, least, stalled = 0, 1.0, np.inf, 0

    def act() -> float:
        nonlocal clock, part, least, stalled
        actors = rng.choice(servers, servers.size)
        delays = rng.integers(0, goal.delay + 1, servers.size)
        change = float(steps.run("act_asynchronously", actors, delays, part, *arrays, planned, due, clock, seconds=once))
        clock += servers.size
        if change < _GAINS * least:
            least, stalled = change, 0
        else:
            stalled += 1
            if stalled >= _STALLED:
                part, stalled, least = max(_SHORTER * part, _SHORTEST), 0, change
        return change

    return act
