"""Proof of trees of queues in fractions: a filling, whose course is recomputed, and the leximins of one depth after another.

*A filling.* The rates are part of the definition (`fairopt.program.tree_filling`); they are recomputed for the stopped users that the
answer names. At a level, with S the shares of the course there, and q the cheapest prices of a unit of share at prices p >= 0,

    p.b  =  sum over all users of q S,      sum of q rate > 0 over rising users,      q > 0 for each stopped user

proves that no x with shares of at least S gives more to a user with q > 0, so stopped users cannot rise further. Rates change without a
price only where a child has caught up with a waiting sibling. The answer has a point for the end of each part, with the shares of the
course. `fairopt.certificate.exact_floors` proves how far guarantees are met together, and levels with floors.

*Nested leximins.* With prices y >= 0 of agents beside those of limits, A'p >= sum over the agents of a pair's user of y u on every pair,
and p.b = sum over settled agents of y L + t sum over agents who rise of y unit, no agent with y > 0 can have more. (The others have at
least nothing, which adds nothing.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.certificate.exact_floors import Completions, prove_promised, prove_raised
from fairopt.certificate.exact_levels import cheapest, closed_pairs, dot, prove_feasible, refuse
from fairopt.certificate.tree_course import Course
from fairopt.instance import BoolArray
from fairopt.instance.fractions import ExactArray, from_rationals, rational
from fairopt.program import Nested, Solution, Stage, TreeFilling
from fairopt.program.exact import ExactProgram
from fairopt.wording import figure, named

__all__ = ["prove_filling", "prove_nested"]


def prove_filling(program: ExactProgram, solution: Solution) -> None:
    """Prove the filling of a tree in fractions.

    Raises
    ------
    CertificateError
        The message says which level or limit is wrong, and how.
    """
    prove_promised(program, solution, _prove_filling)
    _prove_filling(program, solution)


def _prove_filling(program: ExactProgram, solution: Solution) -> None:
    """Prove a filling that keeps the floors that it has."""
    goal = program.goal_as(TreeFilling)
    prove_feasible(program, solution.x)
    promised = solution.promised if solution.promised is not None and solution.promised.promises else None
    completions = None if promised is None else [Completions(program, promised, everywhere) for everywhere in (False, True)]
    if len(solution.parts) != len(goal.parts) or len(solution.extra_bounds) not in (0, len(goal.parts)):
        refuse(program, f"it has the ends of {len(solution.parts)} parts, and the filling has {len(goal.parts)}")
    if any(stage.part not in range(len(goal.parts)) for stage in solution.stages):
        refuse(program, "a level belongs to no part")
    shares, ruled = goal.nothing(), not program.program.down_closed
    for number, part in enumerate(goal.parts):
        prove_raised(program, part, solution.bounds_of_part(number), solution.raised.get(number, ()), shares.users)
        of_part = program.during(part, solution.bounds_of_part(number))
        end: ExactArray = solution.parts[number]
        prove_feasible(of_part, end)
        closed = closed_pairs(of_part)
        members = np.zeros(len(program.program.users), bool)
        members[program.program.pair_users[~closed]] = True
        way = Course(goal, part, shares, members)
        for stage in solution.stages:
            if stage.part == number:
                _prove_stage(of_part, way, stage, closed, None if completions is None else completions[not part.guarantees])
                way.stop(stage.value, stage.users)
        if way.rising.any():
            user = program.program.users[int(np.flatnonzero(way.rising)[0])]
            refuse(program, f"nothing stops {named(user)} in {part.title}")
        shares = way.shares
        _same_shares(program, end, shares.users, f"at the end of {part.title}", or_more=np.full(shares.users.size, ruled))
        last = number + 1 == len(goal.parts) or part.guarantees != goal.parts[number + 1].guarantees
        if promised is not None and completions is not None and last:
            completions[not part.guarantees].prove_point(promised.points[not part.guarantees], shares.users)
    nobody = np.zeros(len(program.program.users), bool)  # rises where all weights are 0, and there is no part
    risen = np.any([nobody, *(part.users & (not part.guarantees) for part in goal.parts)], axis=0)
    _same_shares(program, solution.x, shares.users, "in the end", or_more=~risen & ruled)


def _prove_stage(program: ExactProgram, way: Course, stage: Stage, closed: BoolArray, completions: Completions | None) -> None:
    change = way.change()
    t: Any = stage.value
    told = f"the level {figure(t, 6)} of {way.part.title}"
    if not way.t <= t <= change:
        refuse(program, f"{told} is not between {figure(way.t, 6)} and {figure(change, 6)}, where rates change")
    climbs = way.rising & (way.rate > 0)
    if not climbs[stage.users].all():
        refuse(program, f"{told} stops somebody who does not rise")
    if stage.prices is None:
        if stage.users.size or t != change:
            refuse(program, f"{told} has no prices")
        return
    if not stage.users.size:
        refuse(program, f"{told} stops nobody")
    if stage.floors:
        if completions is None:
            refuse(program, f"{told} keeps floors, and there are none")
        completions.prove(stage, told, climbs, way.rate, way.at(t).users)
        return
    if len(stage.prices) != program.bounds.size or any(price < 0 for price in stage.prices.tolist()):
        refuse(program, f"{told} has no prices >= 0 of all limits")
    q = from_rationals(cheapest(program, program.cost(stage.prices), program.utilities, closed))
    spent = dot(from_rationals(stage.prices).tolist(), from_rationals(program.bounds).tolist())
    if any(price < 0 for price in q.tolist()):
        refuse(program, f"at {told} somebody is paid for running tasks, so the prices prove nothing")
    if not sum(q[climbs] * way.rate[climbs]) > 0:
        refuse(program, f"the prices of {told} stop nobody")
    if spent != dot(q.tolist(), way.at(t).users.tolist()):
        refuse(program, f"the prices of {told} do not prove it")
    for n in stage.users:
        if q[n] <= 0:
            refuse(program, f"{named(program.program.users[n])} pays nothing at {told}, so nothing says that it cannot rise")


def _same_shares(program: ExactProgram, x: ExactArray, claimed: ExactArray, where: str, or_more: BoolArray) -> None:
    """Refuse other shares; rules may force some, ``or_more``, (users,), to have more."""
    found = from_rationals(program.per_user(x * program.utilities))
    for n, (has, should) in enumerate(zip(found.tolist(), claimed.tolist(), strict=True)):
        if has < should or (has != should and not or_more[n]):
            refuse(
                program,
                f"{named(program.program.users[n])} has the share {figure(has, 6)} {where}, and the levels give it {figure(should, 6)}",
            )


def prove_nested(program: ExactProgram, solution: Solution) -> None:
    """Prove the leximins of all depths in fractions.

    Raises
    ------
    CertificateError
    """
    goal, names = program.goal_as(Nested), program.program
    prove_feasible(program, solution.x)
    closed = closed_pairs(program)
    below = goal.below.toarray() > 0
    shares = program.per_user(solution.x * program.utilities)
    sums = [sum((shares[n] for n in np.flatnonzero(users)), rational(0)) for users in below]
    open_to = np.zeros(len(names.users), bool)
    open_to[names.pair_users[~closed]] = True
    reachable: BoolArray = below @ open_to
    settled, before = np.zeros(goal.depth.size, bool), 0
    # An agent whose parent has nothing has nothing itself, and no level.
    units = [rational(goal.weight[a]) * (sums[goal.parent[a]] if goal.parent[a] >= 0 else 1) for a in range(goal.depth.size)]
    takes_part = reachable & np.array([unit > 0 for unit in units], bool)
    for number, stage in enumerate(solution.stages, 1):
        told = f"level {number}, at depth {stage.part},"
        agents = stage.agents
        if agents is None or stage.prices is None or stage.part < before or not agents.size:
            refuse(program, f"{told} has no agents, no prices, or comes too late")
        if (goal.depth[agents] != stage.part).any() or settled[agents].any() or not takes_part[agents].all():
            refuse(program, f"{told} settles agents of another depth, or settled ones")
        if not settled[takes_part & (goal.depth < stage.part)].all():
            refuse(program, f"{told} comes before somebody of a smaller depth is settled")
        before = stage.part
        rising = takes_part & ~settled & (goal.depth == stage.part)
        _prove_agents(program, stage, told, below, closed, settled, rising, units, sums)
        settled[agents] = True
    if not settled[takes_part].all():
        refuse(program, "some agent is settled by no level")


def _prove_agents(
    program: ExactProgram,
    stage: Stage,
    told: str,
    below: BoolArray,
    closed: BoolArray,
    settled: BoolArray,
    rising: BoolArray,
    units: list[Any],
    sums: list[Any],
) -> None:
    assert stage.prices is not None
    assert stage.agents is not None
    number = program.bounds.size
    t: Any = stage.value
    everything: list[Any] = stage.prices.tolist()
    if len(everything) != number + len(units) or any(price < 0 for price in everything):
        refuse(program, f"{told} has no prices >= 0 of all limits and agents")
    prices, pays = stage.prices[:number], everything[number:]
    for a in np.flatnonzero(rising):
        if sums[a] < units[a] * t or (a in stage.agents and sums[a] != units[a] * t):
            refuse(program, f"an agent has {sums[a]} at {told} which gives it {units[a] * t}")
    per_user = [sum((pays[a] for a in np.flatnonzero(own)), rational(0)) for own in below.T]
    cost = program.cost(prices).tolist()
    for pair, n in enumerate(program.program.pair_users.tolist()):
        if not closed[pair] and cost[pair] < per_user[n] * program.utilities[pair]:
            refuse(program, f"a task of {named(program.program.users[n])} is worth more than it costs at {told[:-1]}")
    owed = dot((pays[a] for a in np.flatnonzero(settled)), (sums[a] for a in np.flatnonzero(settled)))
    climbing = sum((pays[a] * units[a] for a in np.flatnonzero(rising)), rational(0))
    if climbing <= 0 or dot(prices.tolist(), program.bounds.tolist()) != owed + t * climbing:
        refuse(program, f"the prices of {told} do not prove it")
    if any(pays[a] <= 0 for a in stage.agents):
        refuse(program, f"an agent pays nothing at {told} so nothing says that it cannot rise")
