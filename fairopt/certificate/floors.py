r"""Proof of how far guarantees are met together, and of levels that keep these floors, by the definition (`fairopt.program.guarantees`).

*Programs of agents.* For prices p >= 0 of limits and y >= 0 of agents with A'p >= C'y on every column, every feasible z has

    p.b  >=  p.Az  >=  y.Cz  >=  sum of y (start + rate t),

so  g = p.b - sum of y (start + rate t) >= 0  bounds by how much t could rise, and by g / y what an agent could have above its level. Where
a column costs less than it is worth, the difference is charged for as much as the column can ever carry, or prices are raised.

*Parts* are a leximin of agents, rank by rank, and so is how far limits are raised. What a node asks for and could hold alone are fillings
with proofs of their own. Without floors nothing is asked of undisturbed nodes (`fairopt.program.undisturbed`): the filling that is proved
shows that they hold the most that they could.

*A level with floors.* For prices p of the limits of completions and phi of their groups, both >= 0,

    mu[n] = min over the pairs of n of (A'p - F'phi) / u  >= 0,        p.b - phi.guarantees  >=  sum of mu s,

the same with the users as agents. Terms cancel in p.b - phi.guarantees: its rounding is relative to p.b.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from fairopt.instance import BoolArray, FloatArray, safe_ratio
from fairopt.instance.tolerances import DIGITS, NOTHING, SAME, TINY
from fairopt.program import Program, Solution, Stage, TreeFilling
from fairopt.program.agents import AgentProgram
from fairopt.program.filled_together import FilledTogether, on_large_servers
from fairopt.program.guarantees import Floors, alone_in, ample, completion, most_counted, parts_program, raising
from fairopt.program.promises import Promise, amounts_asked, counted, counted_by_shares, in_doubt, promises_of
from fairopt.program.share_limits import ShareLimits
from fairopt.program.tree_filling import Part
from fairopt.program.undisturbed import Undisturbed

__all__ = ["CompletionProofs", "promised_gap", "raised_gap"]

_NEVER = float("inf")
_OF_ALL = 1e-3  # of a guarantee: the measure of amounts that are nothing

TreeGaps = Callable[[Program, TreeFilling, Solution], tuple[float, float, Undisturbed]]


# What is promised ----------------------------------------------------------------------------------------------------------------


def promised_gap(program: Program, goal: TreeFilling, solution: Solution, undisturbed: Undisturbed, filling_gaps: TreeGaps) -> float:
    """Return the residual of what an answer says of guarantees: that all hold the most that they could, or the parts that are floors.

    ``filling_gaps`` proves a filling alone, and has proved the answer, in which these nodes are ``undisturbed``.
    """
    parts = sum(part.guarantees for part in goal.parts)
    if not parts:
        return 0.0
    if len(solution.parts) < parts:
        return _NEVER
    end, promised = solution.parts[parts - 1], solution.promised
    doubtful = in_doubt(program, goal, end, undisturbed.owners)
    alone = _Alone(program, goal, promised, filling_gaps)
    if promised is None or not promised.promises:
        return _no_floors(program, goal, end, doubtful, alone) if doubtful else 0.0
    return _floors(program, goal, promised, alone)


class _Alone:
    """What guarantees hold in the fillings of their nodes alone, by an answer, and the residuals of these fillings."""

    def __init__(self, program: Program, goal: TreeFilling, promised: Floors | None, filling_gaps: TreeGaps) -> None:
        self.program, self.goal, self.filling_gaps = program, goal, filling_gaps
        self.promised = Floors() if promised is None else promised
        self.points: dict[tuple[int, bool], FloatArray] = {}
        self.worst = 0.0
        self.of_all: FilledTogether | None = None
        if self.promised.together is not None:
            self.of_all = self._together(self.promised.together)

    @cached_property
    def promises(self) -> tuple[Promise, ...]:
        """All promises of the filling."""
        return promises_of(self.goal)

    def amount(self, k: int, large: bool) -> float:
        """Return the amount of a promise, ``large``: on servers that are large enough."""
        program, goal, promise = self.program, self.goal, self.promises[k]
        point = self._point(promise, large)
        if counted_by_shares(program, goal, promise, point):
            return float(counted(program, goal, promise, point))
        if (k, large) not in self.promised.counted:
            self.worst = _NEVER
            return 0.0
        best, stage = self.promised.counted[k, large]
        within = ample(program, goal.alone(promise.owner)) if large else program
        agents, start = most_counted(within, goal, promise, program.per_user(point * program.utilities).tolist())
        self._check_best(agents, np.array(start), best, stage)
        return float(counted(program, goal, promise, best))

    def _together(self, found: Solution) -> FilledTogether | None:
        """Prove the filling of all guarantees on large servers."""
        program = on_large_servers(self.program, self.goal)
        *gaps, undisturbed = self.filling_gaps(program, program.goal_as(TreeFilling), found)
        self.worst = max(self.worst, *gaps)
        return FilledTogether(self.program, found.parts, undisturbed.owners) if self.worst < _NEVER else None

    def _point(self, promise: Promise, large: bool) -> FloatArray:
        owner = promise.owner
        if (owner, large) not in self.points:
            if self.of_all is not None and (known := self.of_all.point(promise, large)) is not None:
                self.points[owner, large] = known
                return known
            alone, columns = alone_in(self.program, self.goal, owner)
            alone = ample(alone, alone.goal_as(TreeFilling)) if large else alone
            found = (self.promised.asked if large else self.promised.alone).get(owner)
            self.points[owner, large] = np.zeros(self.program.n_pairs)
            if found is None or found.x.size != columns.size:
                self.worst = _NEVER
            else:
                self.worst = max(self.worst, *self.filling_gaps(alone, alone.goal_as(TreeFilling), found)[:2])
                self.points[owner, large][columns] = found.x
        return self.points[owner, large]

    def _check_best(self, agents: AgentProgram, start: FloatArray, best: FloatArray, stage: Stage) -> None:
        users, t = len(self.program.users), stage.value
        has = np.asarray(agents.worth[:users][:, : best.size] @ best)
        over = np.asarray(agents.matrix[:, : best.size] @ best) - agents.bounds
        relative = np.where(agents.bounds > 0, agents.bounds, 1.0)
        lacks = np.abs(start[:users] - has) / np.where(start[:users] > 0, start[:users], 1.0)
        gap = _level_gap(agents, stage, np.append(start[:-1], t))
        total = float(start[users:].sum())
        self.worst = max(
            self.worst, float(lacks.max(initial=0.0)), float((over / relative).max(initial=0.0)), gap / max(t, _OF_ALL * total)
        )


def _no_floors(program: Program, goal: TreeFilling, end: FloatArray, doubtful: set[int], alone: _Alone) -> float:
    worst = 0.0
    for k, promise in enumerate(alone.promises):
        if promise.owner in doubtful:
            most = alone.amount(k, large=False)
            worst = max(worst, (most - counted(program, goal, promise, end)) / max(most, TINY))
    return max(worst, alone.worst)


def _floors(program: Program, goal: TreeFilling, promised: Floors, alone: _Alone) -> float:
    promises = alone.promises
    if len(promises) != len(promised.parts):
        return _NEVER
    _, most, units = amounts_asked(program, goal, promises, alone.amount)
    worst = alone.worst
    for mine, theirs in ((most, promised.most), (units, promised.units)):
        worst = max([worst, *(abs(a - b) / max(a, b, TINY) for a, b in zip(mine, theirs, strict=True))])
    of_parts, start = parts_program(program, goal, promises, units)
    caps = np.array([a / b if b > 0 else 0.0 for a, b in zip(most, units, strict=True)])
    above = np.array([promise.above for promise in promises])
    return max(worst, _leximin_gap(of_parts, np.array(start), promised.stages, np.array(promised.parts), caps, above))


def _leximin_gap(
    program: AgentProgram, start: FloatArray, stages: tuple[Stage, ...], values: FloatArray, caps: FloatArray, ranks: FloatArray
) -> float:
    """Return the residual of a leximin of the last agents, (values,), rank by rank: the first ones, (start,), keep their starts.

    That the values can be had is not looked at here.
    """
    first, settled, worst = start.size, np.zeros(values.size, bool), 0.0
    for stage in stages:
        agents = stage.agents
        if (
            agents is None
            or settled[agents].any()
            or not (caps[agents] > 0).all()
            or (ranks[agents] != stage.part).any()
            or not settled[(ranks < stage.part) & (caps > 0)].all()
        ):
            return _NEVER
        t, rising = stage.value, (ranks == stage.part) & ~settled & (caps > 0)
        settled[agents] = True
        if stage.prices is None:  # they have the most that they may have
            if (caps[agents] > t * (1 + NOTHING)).any():
                return _NEVER
            worst = max(worst, float((np.abs(values - caps)[agents] / caps[agents]).max()))
            continue
        gap = _level_gap(program, stage, np.concatenate([start, np.where(rising, t, np.where(settled, values, 0.0))]))
        size = np.maximum(t, _OF_ALL * caps[agents])
        paid = np.maximum(stage.prices[program.bounds.size :], 0.0)[first:][agents] * size
        if not (paid > 0).all():
            return _NEVER
        worst = max(worst, gap / float(paid.min()), float((np.abs(values[agents] - t) / size).max()))
    return worst if (settled | (caps <= 0)).all() else _NEVER


def _level_gap(program: AgentProgram, stage: Stage, level: FloatArray) -> float:
    """Return g of prices at the levels of all agents, (agents,)."""
    assert stage.prices is not None
    if stage.prices.size != program.bounds.size + level.size:
        return _NEVER
    prices, pays = np.maximum(stage.prices[: program.bounds.size], 0.0), np.maximum(stage.prices[program.bounds.size :], 0.0)
    cost = np.asarray(program.matrix.T @ prices)
    short = np.maximum(np.asarray(program.worth.T @ pays) - cost, 0.0)
    return _gap(program, prices, short, cost, float(prices @ program.bounds - pays @ level))


def _gap(program: AgentProgram, prices: FloatArray, short: FloatArray, cost: FloatArray, beyond: float) -> float:
    """Return the gap of prices at which columns cost too little, by ``short``, of their ``cost``, (columns,).

    Either that is charged for as much as each column can carry, or the prices of their limits are raised by the largest part of a cost that
    is short.
    """
    limits = np.asarray(program.matrix @ (short > 0).astype(float)) > 0
    spent = float(prices[limits] @ program.bounds[limits])
    charged = float(short @ np.where(short > 0, program.largest(), 0.0))
    part = float(safe_ratio(short, cost)[(short > 0) & (program.largest() > 0)].max(initial=0.0))
    return min(max(beyond, 0.0) + charged, max(beyond + part * spent, 0.0))


# Raised limits -------------------------------------------------------------------------------------------------------------------


def raised_gap(program: Program, part: Part, bounds: FloatArray | None, stages: tuple[Stage, ...], shares: FloatArray) -> float:
    """Return the residual of the bounds of the extra limits of a part that begins with these shares, (users,)."""
    extra = part.extra
    if extra is None or not len(extra):
        return 0.0
    if bounds is None:
        bounds = extra.bounds
    least, size = extra.bounds.copy(), np.maximum(extra.bounds, bounds)
    on_shares = ShareLimits.of(program, part)
    of_shares = np.flatnonzero(on_shares.rows)
    if program.down_closed:
        least[of_shares] = np.maximum(least[of_shares], on_shares.uses @ shares)
    else:  # a program says how far each is raised
        of_shares = of_shares[:0]
    others = np.setdiff1d(np.arange(len(extra)), of_shares)
    if stages:
        of_raising = raising(program, part, least.tolist(), others)
        capacity = np.array([_coefficient(of_raising, shares.size + j) for j in range(others.size)])
        values = 1 - (bounds[others] - extra.bounds[others]) / capacity
        gap = _leximin_gap(of_raising, shares, stages, values, np.ones(others.size), np.zeros(others.size))
        least[others], size[others] = bounds[others], 1.0
    else:
        gap = 0.0
    off = np.abs(bounds - least) / np.where(size > 0, size, 1.0)
    return max(gap, float(off[off > 2 * SAME].max(initial=0.0)))  # a limit is raised to what is used, and rounding


def _coefficient(program: AgentProgram, agent: int) -> float:
    """Return T of a raised limit: the coefficient of its agent's column in the limit that has others, too."""
    w = int(program.agents[agent][0][0])
    return next(float(values[-1]) for own, values in program.limits if own.size > 1 and own[-1] == w)


# Levels with floors --------------------------------------------------------------------------------------------------------------


class CompletionProofs:
    """The proofs of the levels of some parts that keep floors."""

    def __init__(self, program: Program, goal: TreeFilling, promised: Floors, everywhere: bool) -> None:
        self.program = program
        self.agents, start = completion(
            program, goal, promised.promises, [amount * (1 - DIGITS) for amount in promised.amounts], everywhere
        )
        self.start = np.array(start)
        self.open = self.agents.largest() > 0

    def witness(self, x: FloatArray, point: FloatArray | None, shares: FloatArray, size: FloatArray) -> float:
        """Return by how much a point, or the allocation x itself, fails to be a completion of shares, (users,).

        It is relative to ``size``, (users,), and to the guarantees.
        """
        groups = sp.csr_array(self.agents.worth[shares.size :])
        itself = np.zeros(self.agents.n_pairs)  # x, and what it lacks of each group
        itself[: x.size] = x
        itself[x.size :] = np.maximum(self.start - np.asarray(groups @ itself), 0.0)
        found = self._witness(itself, shares, size)
        return found if point is None else min(found, self._witness(point, shares, size))

    def _witness(self, point: FloatArray, shares: FloatArray, size: FloatArray) -> float:
        if point.size != self.agents.n_pairs:
            return _NEVER
        over = np.asarray(self.agents.matrix @ point) - self.agents.bounds
        has = np.asarray(self.agents.worth @ point)
        users = shares.size
        relative = np.where(self.agents.bounds > 0, self.agents.bounds, 1.0)
        lacks = np.concatenate(
            [(shares - has[:users]) / np.where(size > 0, size, 1.0), (self.start - has[users:]) / np.maximum(self.start, TINY)]
        )
        return max(float((over / relative).max(initial=0.0)), float(lacks.max(initial=0.0)), float(-point.min(initial=0.0)))

    def of(self, stage: Stage, rising: BoolArray, target: FloatArray, rate: FloatArray, size: FloatArray) -> tuple[float, float]:
        """Return the residuals of optimality and fairness of a level with these shares, ``target``, (users,)."""
        assert stage.prices is not None
        program, agents, users = self.program, self.agents, target.size
        limits = agents.bounds.size
        if stage.prices.size != limits + self.start.size:
            return _NEVER, _NEVER
        prices, phi = np.maximum(stage.prices[:limits], 0.0), np.maximum(stage.prices[limits:], 0.0)
        of_limits = np.asarray(agents.matrix.T @ prices)
        cost = of_limits - np.asarray(agents.worth[users:].T @ phi)
        mu = np.maximum(program.cheapest(np.where(self.open[: program.n_pairs], cost[: program.n_pairs] / program.utilities, np.inf)), 0.0)
        short = np.maximum(np.asarray(agents.worth[:users].T @ mu) - cost, 0.0)
        spent = float(prices @ agents.bounds)
        gap = _gap(agents, prices, short, of_limits, spent * (1 - DIGITS) - float(phi @ self.start) - float(mu @ target))
        climbs = rising & (rate > 0)
        held, paid = float(mu[climbs] @ size[climbs]), mu[stage.users] * size[stage.users]
        if not held > 0 or not (paid > 0).all():
            return _NEVER, _NEVER
        return gap / held, gap / float(paid.min())
