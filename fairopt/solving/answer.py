"""The way back: from the solution of the merged program to the rows that were given."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.allocation import Level
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.aggregation import Merging, best_server
from fairopt.instance.fractions import from_rational, rational, rounding
from fairopt.instance.tolerances import CERTIFIED, NOTHING
from fairopt.program import FinishTimes, LimitKind, Program, Solution, TreeFilling
from fairopt.program.limits import ACROSS_SERVERS
from fairopt.program.rule_limits import rule_of
from fairopt.solving.tree_prices import prices_at_events

__all__ = ["every_level", "levels_of", "prices_of", "queue_prices_by_stage", "queue_prices_of", "shares_of", "unexpanded"]


def unexpanded(instance: Instance, pairs: FloatArray, row: IntArray, utility: FloatArray | None = None) -> FloatArray:
    """Return tasks on single servers as tasks on rows of servers; ``row`` says which row each single server belongs to.

    Users without demand have all their tasks where ``utility``, (users, servers), is largest.
    """
    tasks = np.zeros((instance.n_users, instance.n_servers))
    np.add.at(tasks.T, row, pairs.T)
    for n in np.flatnonzero(instance.zero_demand & instance.servable):
        tasks[n, best_server(instance, int(n), utility)] = instance.tasks[n]
    return tasks


def shares_of(program: Program, pairs: FloatArray, merging: Merging | None) -> FloatArray:
    """U[n] / phi[n] of max-min goals, which all users of a group share, U[n] of sums; (users,), or per server where the goal is."""
    goal = program.inner_goal
    if not goal.in_shares:  # no common level: the share is what a user's tasks are worth
        worth = program.utility(pairs)
        return worth if merging is None else worth[merging.user_group] * merging.user_part
    if not program.is_separate:
        shares = program.utility(pairs) / goal.weights
        return shares if merging is None else shares[merging.user_group]
    users, servers = program.pair_users, program.pair_servers
    table = np.zeros(pairs.shape)
    table[users, servers] = program.utilities * pairs[users, servers] / goal.weights[users]
    return table if merging is None else table[np.ix_(merging.user_group, merging.server_group)]


def _spreading(program: Program, merging: Merging | None, sharing: str) -> Callable[[FloatArray], FloatArray | None]:
    """Return the function from prices of limits to those of the original rows, (servers, M), or (servers, 1) of time, or to None."""
    limits = program.limits
    rows = np.flatnonzero(limits.kinds == (LimitKind.CAPACITY if sharing == "rdm" else LimitKind.TIME))
    if merging is None or not rows.size:  # a notion without shared capacity, such as the uniform slice
        return lambda prices: None
    width = merging.original.n_server_resources if sharing == "rdm" else 1
    group, servers, resources = merging.server_group, limits.keys[rows, 0], np.maximum(limits.keys[rows, 1], 0)

    def spread(prices: FloatArray) -> FloatArray:
        table = np.zeros((len(program.servers), width), prices.dtype)
        table[servers, resources] = prices[rows]
        # A unit of a resource is worth the same in every server of a merged row; a server's time is a part of the row's.
        return table[group] if sharing == "rdm" else table[group] * merging.server_part.astype(prices.dtype)[:, None]

    return spread


def prices_of(program: Program, solution: Solution, merging: Merging | None, sharing: str, levels: tuple[Level, ...]) -> FloatArray | None:
    """Return the prices of the goal, or of the first level of a leximin that something full stops, by the original rows."""
    if solution.prices is not None:
        return _spreading(program, merging, sharing)(solution.prices)
    tables = [level.prices for level in levels if level.prices is not None]
    return next((table for table in tables if table.any()), tables[0] if tables else None)


def _of_queues(program: Program, prices: FloatArray | None) -> dict[str, float]:
    """Return the prices of limits across servers that have one, by name; what is rounding beside the largest price of all is left out.

    The price of an equation is that of its row <= less that of its row >=: negative, where a larger bound would be worth less.
    """
    limits = program.limits
    if prices is None:
        return {}
    own = prices[: len(limits)]
    spent = own * limits.bounds if own.dtype != object else own
    priced = limits.of_kinds(LimitKind.NAMED, *ACROSS_SERVERS) & (spent > rounding(NOTHING, own) * spent.max(initial=0))
    if not program.down_closed:
        size = np.maximum(np.abs(limits.bounds), abs(limits.matrix) @ np.where(np.isfinite(program.largest()), program.largest(), 0.0))
        ruled = own.astype(float) * size
        priced |= (limits.kinds == LimitKind.RULE) & (ruled > NOTHING * ruled.max(initial=0.0))
    found: dict[str, Any] = {}
    for row in np.flatnonzero(priced).tolist():
        name = program.limit_name(row)
        equation = limits.kinds[row] == LimitKind.RULE and rule_of(name) != name  # has two rows, of which this is the second
        found[rule_of(name)] = (found.get(rule_of(name), 0) if equation else 0) + _number(own[row]) * (-1 if equation else 1)
    return {name: price for name, price in found.items() if price}


def _number(value: Any) -> Any:
    return value if isinstance(value, Fraction) else float(value)


def queue_prices_of(program: Program, solution: Solution, by_stage: list[dict[str, float]]) -> dict[str, float]:
    """Return the price of each limit of a queue that has one: of the goal, or at the first level where it has one."""
    found = _of_queues(program, solution.prices)
    for prices in by_stage:
        found = prices | found
    return found


def queue_prices_by_stage(program: Program, solution: Solution) -> list[dict[str, float]]:
    """Return the prices of the limits of queues that have one at each stage, by name."""
    if not program.limits.of_kinds(LimitKind.NAMED, LimitKind.RULE, *ACROSS_SERVERS).any():
        return [{} for _ in solution.stages]
    found = [_of_queues(program, stage.prices) for stage in solution.stages]
    if program.goal.is_filling and not program.integral:
        at_events = prices_at_events(program, program.goal_as(TreeFilling), solution)
        found = [prices | more for prices, more in zip(found, at_events, strict=True)]
    return found


def levels_of(
    program: Program,
    solution: Solution,
    merging: Merging | None,
    sharing: str,
    by_stage: list[dict[str, float]],
    same: float | None = CERTIFIED,
) -> tuple[Level, ...]:
    """Stages -> levels of the original users; prices become d(level) / d(capacity); prices of queues are given. Works in fractions too.

    Stages of a part whose values differ by at most the fraction ``same`` are one level; with None, every stage is a level of its own.
    """
    levels, spread = list[Level](), _spreading(program, merging, sharing)
    names = program.users if merging is None else merging.original.users
    for stage, of_queues in zip(solution.stages, by_stage, strict=True):
        if not stage.users.size:
            continue
        title = program.goal.part_title(stage.part)
        merged = np.zeros(len(program.users), bool)
        merged[stage.users] = True
        members = merged if merging is None else merged[merging.user_group]
        users = tuple(names[n] for n in members.nonzero()[0].tolist())
        alike = same is not None and levels and title == levels[-1].part and abs(stage.value - levels[-1].value) <= same * stage.value
        kept = {} if solution.promised is None else solution.promised.priced(stage)
        floors: dict[str, Any] = {
            name: float(amount) if isinstance(amount, float) else from_rational(rational(amount)) for name, amount in kept.items()
        }
        if alike:  # proved in two steps, one level all the same
            of_limits, floors = levels[-1].queue_prices | of_queues, levels[-1].floors | floors
            levels[-1] = dataclasses.replace(levels[-1], users=levels[-1].users + users, queue_prices=of_limits, floors=floors)
            continue
        prices = None if stage.prices is None else spread(stage.prices[: len(program.limits)])
        levels.append(Level(_number(stage.value), users, prices, title, of_queues, floors))
    return tuple(levels)


def every_level(
    levels: tuple[Level, ...], program: Program, merging: Merging | None, instance: Instance, shares: FloatArray, same: float = CERTIFIED
) -> tuple[Level, ...]:
    """Return all distinct final levels, with all users: engines need not settle users who stop at limits of their own.

    *Leximin.* Such users, who run all their tasks or fill their parallelism, belong to the level of their share, or have a level without
    prices. *Tree that is filled.* Users of a part who do not rise in it have its level 0. Other goals keep their levels. Works in fractions
    too.

    Parameters
    ----------
    levels : tuple of Level
        Of `levels_of`.
    merging : Merging, optional
        From the rows of the program to the instance; None: they are the same.
    shares : array (users,)
        U[n] / phi[n] of the original users.
    same : float
        Relative: shares that differ by at most this part are one level.
    """
    fills = program.goal.is_filling
    if program.integral or not (fills or program.goal.has_levels or isinstance(program.goal, FinishTimes)):
        return levels
    position = {name: n for n, name in enumerate(instance.users)}
    open_to = program.can_run.copy()
    group = np.arange(instance.n_users) if merging is None else merging.user_group
    open_to &= np.isin(np.arange(open_to.size), program.members)
    if fills:
        found = [
            level
            for part in program.goal_as(TreeFilling).parts
            for level in _with_those_at_0(levels, part.title, [instance.users[n] for n in np.flatnonzero((part.users & open_to)[group])])
        ]
    else:
        alone = _unsettled(levels, position, open_to[group], shares)
        own = sorted(levels, key=lambda level: level.value)
        values, joining = [level.value for level in own], [list[int]() for _ in own]
        others: list[tuple[Any, list[int]]] = []  # levels without prices, from the lowest
        for n, share in zip(alone.tolist(), shares[alone].tolist(), strict=True):
            at = bisect_left(values, share - same * share)
            if at < len(own) and values[at] <= share + same * share:
                joining[at].append(n)
            elif others and share - others[-1][0] <= same * share:
                others[-1][1].append(n)
            else:
                others.append((share, [n]))
        names = instance.users
        found = [
            dataclasses.replace(level, users=(*level.users, *(names[n] for n in more))) if more else level
            for level, more in zip(own, joining, strict=True)
        ]
        found = [_in_order(level, position) for level in found]
        found += [Level(_number(value), tuple(names[n] for n in sorted(more)), None) for value, more in others]
        return tuple(sorted(found, key=lambda level: level.value))
    return tuple(_in_order(level, position) for level in found)


def _unsettled(levels: Sequence[Level], position: Mapping[str, int], open_to: BoolArray, shares: FloatArray) -> IntArray:
    """Return the users who can run and whom no level has, by their shares."""
    left = open_to.copy()
    left[[position[name] for level in levels for name in level.users]] = False
    left_over: IntArray = np.flatnonzero(left)
    return left_over[np.argsort(shares[left_over], kind="stable")]


def _in_order(level: Level, position: Mapping[str, int]) -> Level:
    """Return a level with its users in the order of the instance."""
    users = tuple(sorted(level.users, key=position.__getitem__))
    return level if users == level.users else dataclasses.replace(level, users=users)


def _with_those_at_0(levels: tuple[Level, ...], title: str, users: list[str]) -> list[Level]:
    """Return the levels of a part of a tree, the first of them with the users of the part who have none."""
    own = [level for level in levels if level.part == title]
    settled = {name for level in own for name in level.users}
    resting = tuple(name for name in users if name not in settled)
    if not resting:
        return own
    if own and own[0].value == 0:
        return [dataclasses.replace(own[0], users=(*own[0].users, *resting)), *own[1:]]
    return [Level(own[0].value * 0 if own else 0.0, resting, None, title), *own]
