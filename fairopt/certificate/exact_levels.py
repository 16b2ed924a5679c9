r"""Proof of a leximin in fractions: level by level, by weak duality, without a tolerance.

Let s[n] = sum of u x / phi be the level of user n, and t[1] <= t[2] <= ... the levels that are claimed, each with the users J[k] that it
settles and with prices p >= 0 of the limits. At level k, F are the users settled before, each at its level L, and R all others, J[k] among
them. For any prices p >= 0 let q[n] be the cheapest price of a unit of level of user n, the minimum of (A'p) phi / u over its pairs. Every
feasible x' has

    p.b  >=  p.Ax'  >=  sum over all users of q s'.

If, in rational arithmetic,

    p.b  =  sum over F of q L  +  t[k] sum over R of q,    sum over R of q > 0,    q[n] > 0 for all n in J[k],

then in every feasible x' that leaves F at least L and R at least t[k] all of this is an equality: nobody with q > 0 has more. So t[k] is
the largest common level of R, and no user of J[k] can rise. By induction over the levels, x is the leximin: it is feasible, and its levels
are those claimed. Nothing of the engine is used but its answer.

A pair with a limit of bound 0 carries nothing in any feasible x', so that its price does not matter. Users who have only such pairs are in
no level.

A total is proved by one inequality: p.b = sum of w u x with A'p >= w u on every pair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from fairopt.errors import CertificateError
from fairopt.instance import BoolArray
from fairopt.instance.fractions import ExactArray, rational
from fairopt.program import LimitKind, Solution, Stage
from fairopt.program.exact import ExactProgram
from fairopt.wording import named

__all__ = ["prove_feasible", "prove_levels", "prove_separately", "prove_total", "refuse"]


def refuse(program: ExactProgram, what: str) -> NoReturn:
    """Raise CertificateError for an answer that is not what it claims to be."""
    raise CertificateError(f'the answer in fractions for "{program.program.name}" fails its check: {what}; please report the instance')


def prove_feasible(program: ExactProgram, x: ExactArray) -> None:
    """Refuse tasks below 0 and those that exceed a limit.

    Raises
    ------
    CertificateError
    """
    names = program.program
    if len(x) != program.n_pairs:
        refuse(program, f"it has {len(x)} numbers for {program.n_pairs} pairs")
    for pair, value in enumerate(x.tolist()):
        if value < 0:
            user, server = names.users[names.pair_users[pair]], names.servers[names.pair_servers[pair]]
            refuse(program, f"{named(user)} has {value} tasks on {named(server)}, less than 0")
    for row, (used, bound) in enumerate(zip(program.usage(x).tolist(), program.bounds.tolist(), strict=True)):
        if used > bound:
            refuse(program, f"{names.limit_name(row)}: {used} is used of {bound}")
    for each in program.broken_rows(x):
        assert program.kept is not None
        beside = program.kept.row(each)
        refuse(program, f"{beside.name}: more than {beside.bound} is used")


def prove_levels(program: ExactProgram, solution: Solution) -> None:
    """Prove a leximin, or the largest equal level, in fractions.

    Raises
    ------
    CertificateError
        The answer is not feasible, or a level is not proved; the message says which and why.
    """
    goal, names = program.goal, program.program
    prove_feasible(program, solution.x)
    weights = goal.weights[names.pair_users]
    per_level = program.utilities / weights
    levels = program.per_user(solution.x * per_level)
    closed = closed_pairs(program)
    open_to = np.zeros(len(names.users), bool)
    open_to[names.pair_users[~closed]] = True
    if goal.is_equal and len(solution.stages) > 1:
        refuse(program, "one equal level is claimed to be several")
    settled = np.zeros(len(names.users), bool)
    before: Any = rational(0)
    for number, stage in enumerate(solution.stages, 1):
        _prove_level(program, stage, number, per_level, closed, levels, settled, open_to, before, everybody=goal.is_equal)
        settled[stage.users] = True
        before = stage.value
    left = np.flatnonzero(open_to & ~settled)
    if left.size:
        refuse(program, f"no level settles {named(names.users[left[0]])}")


def _prove_level(
    program: ExactProgram,
    stage: Stage,
    number: int,
    per_level: ExactArray,
    closed: BoolArray,
    levels: ExactArray,
    settled: BoolArray,
    open_to: BoolArray,
    before: Any,
    *,
    everybody: bool,
) -> None:
    names, own = program.program, f"level {number}"
    t: Any = stage.value
    if not stage.users.size or settled[stage.users].any() or not open_to[stage.users].all():
        refuse(program, f"{own} settles nobody, or users who are settled already")
    if t < before:
        refuse(program, f"{own} is {t}, lower than the one before it")
    rising = open_to & ~settled
    for n in np.flatnonzero(rising):
        if levels[n] < t:
            refuse(program, f"{named(names.users[n])} has {levels[n]}, less than {own}, which is {t}")
    for n in stage.users:
        if levels[n] != t:
            refuse(program, f"{named(names.users[n])} has {levels[n]}, and {own}, which settles it, is {t}")
    if stage.prices is None or len(stage.prices) != program.bounds.size or any(price < 0 for price in stage.prices.tolist()):
        refuse(program, f"{own} has no prices >= 0 of all limits")
    q = cheapest(program, program.cost(stage.prices), per_level, closed)
    if any(price < 0 for price in q.tolist()):
        refuse(program, f"at {own} somebody is paid for running tasks, so the prices prove nothing")
    spent = dot(stage.prices.tolist(), program.bounds.tolist())
    for n in np.flatnonzero(settled):
        spent = spent - q[n] * levels[n]
    together = sum((q[n] for n in np.flatnonzero(rising)), rational(0))
    if together <= 0:
        refuse(program, f"the prices of {own} stop nobody")
    if spent != t * together:
        refuse(program, f"the prices of {own} prove {spent / together} and not {t}")
    for n in () if everybody else stage.users:
        if q[n] <= 0:
            refuse(program, f"{named(names.users[n])} pays nothing at {own}, so nothing says that it cannot rise")


def prove_separately(program: ExactProgram, solution: Solution) -> None:
    """Prove the leximin of each server within what the servers before it leave.

    Raises
    ------
    CertificateError
    """
    prove_feasible(program, solution.x)
    x = np.full(program.n_pairs, rational(0), dtype=object)
    for server in np.unique(program.program.pair_servers).tolist():
        part, columns, limits = program.part(server, x)
        own = [stage for stage in solution.stages if stage.part == server]
        if any(stage.prices is None or len(stage.prices) != program.bounds.size for stage in own):
            refuse(program, f"{named(program.program.servers[server])} has a level without prices")
        stages = tuple(replace(stage, prices=stage.prices[limits]) for stage in own if stage.prices is not None)
        prove_levels(part, Solution(solution.x[columns], stages))
        x[columns] = solution.x[columns]


def prove_total(program: ExactProgram, solution: Solution) -> None:
    """Prove the largest total in fractions.

    Raises
    ------
    CertificateError
    """
    goal = program.goal
    prove_feasible(program, solution.x)
    worth = goal.weights[program.program.pair_users] * program.utilities
    prices = solution.prices
    if prices is None or len(prices) != program.bounds.size or any(price < 0 for price in prices.tolist()):
        refuse(program, "it has no prices >= 0 of all limits")
    reached = dot(worth.tolist(), solution.x.tolist())
    closed = closed_pairs(program)
    for pair, (cost, value) in enumerate(zip(program.cost(prices).tolist(), worth.tolist(), strict=True)):
        if cost < value and not closed[pair]:
            refuse(program, f"a task of {named(program.program.users[program.program.pair_users[pair]])} is worth more than it costs")
    bound = dot(prices.tolist(), program.bounds.tolist())
    if bound != reached:
        refuse(program, f"the total is {reached}, and the prices prove no more than {bound}")


def cheapest(program: ExactProgram, cost: ExactArray, per_level: ExactArray, closed: BoolArray) -> ExactArray:
    """Return the cheapest price of a unit of level of each user, (users,), over the pairs that are not ``closed``; 0 without one."""
    q: list[Any] = [None] * len(program.program.users)
    every = zip(program.program.pair_users.tolist(), cost.tolist(), per_level.tolist(), closed.tolist(), strict=True)
    for n, price, worth, shut in every:
        if shut:
            continue
        unit = price / worth
        if q[n] is None or unit < q[n]:
            q[n] = unit
    result = np.empty(len(q), dtype=object)
    result[:] = [rational(0) if value is None else value for value in q]
    return result


def closed_pairs(program: ExactProgram) -> BoolArray:
    """Return which pairs have a limit of bound 0, (pairs,)."""
    closed = np.zeros(program.n_pairs, bool)
    shut = np.array([bound == 0 for bound in program.bounds], bool) & (program.program.limits.kinds != LimitKind.RULE)
    closed[program.columns[shut[program.rows]]] = True
    return closed


def dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    """Return the sum of products."""
    return sum(x * y for x, y in zip(a, b, strict=True) if x != 0)
