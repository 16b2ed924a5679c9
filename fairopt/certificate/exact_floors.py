"""Proof of how far guarantees are met together, and of levels that keep these floors, in fractions.

The inequalities are those of `fairopt.certificate.floors`; here they are equalities, without a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.certificate.exact_levels import dot, prove_feasible, refuse
from fairopt.instance import BoolArray
from fairopt.instance.fractions import ExactArray, from_rationals, rational
from fairopt.program import Solution, Stage, TreeFilling
from fairopt.program.agents import AgentProgram
from fairopt.program.exact import ExactProgram
from fairopt.program.guarantees import Floors, ample, completion, most_counted, parts_program, raised_limits, raising
from fairopt.program.promises import amounts_asked, counted, counted_by_shares, in_doubt, promises_of
from fairopt.program.tree_filling import Part
from fairopt.wording import named

__all__ = ["Completions", "prove_promised", "prove_raised"]

ProveFilling = Callable[[ExactProgram, Solution], None]


def prove_promised(program: ExactProgram, solution: Solution, prove_filling: ProveFilling) -> None:
    """Prove that all guarantees hold the most that they could hold alone, or the parts that are floors.

    Raises
    ------
    CertificateError
    """
    goal = program.goal_as(TreeFilling)
    parts, promised = sum(part.guarantees for part in goal.parts), solution.promised
    if not parts or len(solution.parts) < parts:
        return
    end = solution.parts[parts - 1]
    alone = _Alone(program, goal, promised, prove_filling)
    if promised is not None and promised.promises:
        _prove_floors(program, goal, promised, alone)
        return
    for k, promise in enumerate(alone.promises):
        if promise.owner in in_doubt(program, goal, end):
            most = alone.amount(k, large=False)
            if counted(program, goal, promise, end) < most:
                refuse(program, f"{promise.name} could be {most}, and there are no floors")


class _Alone:
    """What guarantees hold in the fillings of their nodes alone, by an answer whose fillings are proved."""

    def __init__(self, program: ExactProgram, goal: TreeFilling, promised: Floors | None, prove_filling: ProveFilling) -> None:
        self.program, self.goal, self.prove_filling = program, goal, prove_filling
        self.promised = Floors() if promised is None else promised
        self.promises = promises_of(goal)
        self.proved = set[tuple[int, bool]]()

    def amount(self, k: int, large: bool) -> Any:
        """Return the amount of a promise, ``large``: on servers that are large enough."""
        program, goal, promise = self.program, self.goal, self.promises[k]
        alone, owner = goal.alone(promise.owner), promise.owner
        found = self.promised.asked if large else self.promised.alone
        if owner not in found:
            refuse(program, f"nothing says how much of {promise.name} could be held alone")
        within = ample(program, alone) if large else program
        if (owner, large) not in self.proved:
            self.prove_filling(replace(within, goal=alone), found[owner])
            self.proved.add((owner, large))
        point = found[owner].x
        if counted_by_shares(program, goal, promise, point):
            return counted(program, goal, promise, point)
        if (k, large) not in self.promised.counted:
            refuse(program, f"nothing says how much of {promise.name} counts")
        best, stage = self.promised.counted[k, large]
        shares = program.per_user(point * program.utilities).tolist()
        agents, start = most_counted(within, goal, promise, shares)
        prove_feasible(within, best)
        if program.per_user(best * program.utilities).tolist() != shares or counted(program, goal, promise, best) != stage.value:
            refuse(program, f"{promise.name} counts another amount")
        _prove_agents(program, agents, stage, [*start[:-1], stage.value])
        return stage.value


def _prove_floors(program: ExactProgram, goal: TreeFilling, promised: Floors, alone: _Alone) -> None:
    promises, parts = alone.promises, list(promised.parts)
    _, most, units = amounts_asked(program, goal, promises, alone.amount)
    if len(parts) != len(promises) or list(promised.units) != units:
        refuse(program, "the parts of guarantees are of other units")
    of_parts, start = parts_program(program, goal, promises, units)
    caps = [amount / unit if unit > 0 else unit for amount, unit in zip(most, units, strict=True)]
    _prove_leximin(program, of_parts, start, promised.stages, parts, caps, [promise.above for promise in promises])


def _prove_leximin(
    program: ExactProgram,
    agents: AgentProgram,
    start: Sequence[Any],
    stages: Sequence[Stage],
    values: Sequence[Any],
    caps: Sequence[Any],
    ranks: Sequence[int],
) -> None:
    """Prove a leximin of the last agents, rank by rank: the first ones keep their starts. That it can be had is shown by other points.

    Agents of later ranks have the level 0, which everybody has, since no worth is below 0: they may pay.
    """
    settled = {k for k, cap in enumerate(caps) if not cap > 0}
    if any(values[k] != 0 for k in settled):
        refuse(program, "a guarantee that can hold nothing has a part")
    for stage in stages:
        found = [] if stage.agents is None else stage.agents.tolist()
        t: Any = stage.value
        if not found or any(k in settled or ranks[k] != stage.part for k in found):
            refuse(program, "a level of guarantees settles none, or those of another rank")
        if any(k not in settled for k, rank in enumerate(ranks) if rank < stage.part):
            refuse(program, "a level of guarantees comes before outer ones are settled")
        rising = [k for k, rank in enumerate(ranks) if rank == stage.part and k not in settled]
        before = set(settled)
        settled |= set(found)
        if stage.prices is None:
            if any(caps[k] > t or values[k] != caps[k] for k in found):
                refuse(program, "a guarantee is said to hold its most, and does not")
            continue
        pays = stage.prices[agents.bounds.size :].tolist()
        level = [*start, *(t if k in rising else values[k] if k in before else rational(0) for k in range(len(values)))]
        _prove_agents(program, agents, stage, level)
        if any(pays[len(start) + k] <= 0 or values[k] != t for k in found):
            refuse(program, "a guarantee pays nothing at its level, or has another part")
    if len(settled) != len(values):
        refuse(program, "no level settles some guarantee")


def _prove_agents(program: ExactProgram, agents: AgentProgram, stage: Stage, level: Sequence[Any]) -> None:
    """Prove that agents with these levels use all that prices pay for."""
    assert stage.prices is not None
    limits = agents.bounds.size
    everything = stage.prices.tolist()
    if len(everything) != limits + len(level) or any(price < 0 for price in everything):
        refuse(program, "a level of guarantees has no prices >= 0 of all limits and agents")
    prices, pays = everything[:limits], everything[limits:]
    left = _costs(agents, prices, pays)
    if any(value < 0 and most != 0 for value, most in zip(left, agents.largest(), strict=True)):
        refuse(program, "a column is worth more than it costs at a level of guarantees")
    if dot(prices, agents.bounds.tolist()) != dot(pays, level):
        refuse(program, "the prices of a level of guarantees do not prove it")


def _costs(agents: AgentProgram, prices: Sequence[Any], pays: Sequence[Any], first: int = 0) -> list[Any]:
    """Return A'p - C'y of each column; y are those of the agents from ``first`` on."""
    costs = [rational(0)] * agents.n_pairs
    for rows, values, sign in ((agents.limits, prices, 1), (agents.agents[first:], pays, -1)):
        for (columns, coefficients), value in zip(rows, values, strict=True):
            if value != 0:
                for column, coefficient in zip(columns.tolist(), coefficients.tolist(), strict=True):
                    costs[column] = costs[column] + sign * coefficient * value
    return costs


def prove_raised(program: ExactProgram, part: Part, bounds: ExactArray | None, stages: Sequence[Stage], shares: ExactArray) -> None:
    """Prove the bounds of the extra limits of a part that begins with these shares, (users,).

    Raises
    ------
    CertificateError
    """
    if part.extra is None or not len(part.extra) or bounds is None:
        return
    use: ExactArray = np.full(program.n_pairs, rational(0), dtype=object)  # of a limit on shares, any placement of these shares
    first = np.searchsorted(program.program.pair_users, np.arange(shares.size))
    for n, share in enumerate(shares.tolist()):
        if share != 0:
            use[first[n]] = rational(share) / program.utilities[first[n]]
    own, others, _ = raised_limits(program, part, use)
    others = others if stages else others[:0]
    if stages:
        of_raising = raising(program, part, own, others)
        capacity = [_coefficient(of_raising, shares.size + j) for j in range(others.size)]
        values = [1 - (bounds[k] - own[k]) / capacity[j] for j, k in enumerate(others.tolist())]
        start = [rational(share) for share in shares.tolist()]
        _prove_leximin(program, of_raising, start, stages, values, [rational(1)] * others.size, [0] * others.size)
    for k, (bound, least) in enumerate(zip(bounds.tolist(), own, strict=True)):
        if k not in others and bound != least:
            refuse(program, f"{part.names[k]} is raised to {bound}")


def _coefficient(program: AgentProgram, agent: int) -> Any:
    """Return T of a raised limit: the coefficient of its agent's column in the limit that has others, too."""
    w = int(program.agents[agent][0][0])
    return next(values[-1] for own, values in program.limits if own.size > 1 and own[-1] == w)


class Completions:
    """The completions of some parts that keep floors."""

    def __init__(self, program: ExactProgram, promised: Floors, everywhere: bool) -> None:
        self.program, goal = program, program.goal_as(TreeFilling)
        self.agents, self.start = completion(program, goal, promised.promises, promised.amounts, everywhere)
        self.open = [most != 0 for most in self.agents.largest()]

    def prove_point(self, point: ExactArray, shares: ExactArray) -> None:
        """Refuse a point that is no completion of shares, (users,)."""
        for (columns, values), bound in zip(self.agents.limits, self.agents.bounds.tolist(), strict=True):
            if sum((values * point[columns]).tolist(), rational(0)) > bound:
                refuse(self.program, "a completion exceeds a limit")
        if any(value < 0 for value in point.tolist()):
            refuse(self.program, "a completion has less than no tasks")
        wanted = [*(rational(share) for share in shares.tolist()), *self.start]
        for (columns, values), least in zip(self.agents.agents, wanted, strict=True):
            if sum((values * point[columns]).tolist(), rational(0)) < least:
                refuse(self.program, "a completion has less than the shares, or misses a floor")

    def prove(self, stage: Stage, told: str, climbs: BoolArray, rate: ExactArray, shares: ExactArray) -> None:
        """Prove a level with floors at which users have these shares, (users,)."""
        assert stage.prices is not None
        program, agents, limits, users = self.program, self.agents, self.agents.bounds.size, shares.size
        everything = stage.prices.tolist()
        if len(everything) != limits + len(self.start) or any(price < 0 for price in everything):
            refuse(program, f"{told} has no prices >= 0 of all limits and floors")
        prices, phi = everything[:limits], everything[limits:]
        cost = _costs(agents, prices, phi, users)
        mu: list[Any] = [None] * users
        for pair, n in enumerate(program.program.pair_users.tolist()):
            if self.open[pair]:
                price = cost[pair] / program.utilities[pair]
                mu[n] = price if mu[n] is None or price < mu[n] else mu[n]
        mu = [rational(0) if value is None else value for value in mu]
        if any(value < 0 for value in mu) or any(
            c < 0 and shown for c, shown in zip(cost[program.n_pairs :], self.open[program.n_pairs :], strict=True)
        ):
            refuse(program, f"a floor is worth more than it costs at {told}")
        own: Any = from_rationals(_array(mu))
        if not sum(own[climbs] * rate[climbs]) > 0:
            refuse(program, f"the prices of {told} stop nobody")
        left: Any = dot(prices, agents.bounds.tolist()) - dot(phi, self.start)
        if from_rationals(_array([left]))[0] != dot(own.tolist(), shares.tolist()):
            refuse(program, f"the prices of {told} do not prove it")
        for n in stage.users:
            if own[n] <= 0:
                refuse(program, f"{named(program.program.users[n])} pays nothing at {told}, so nothing says that it cannot rise")


def _array(values: Sequence[Any]) -> ExactArray:
    array: ExactArray = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array
