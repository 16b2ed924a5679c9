"""What a user pays at the prices that prove an optimum of a sum: for what its tasks take, and for the limits and rules that they are in.

At the optimum of a sum, what a task adds to it is what it costs: prices of capacities, limits and rules, each times what the task takes. A
rule that needs the tasks of a user, such as ``x[a] >= 2 x[b]`` those of a, gives it something.

>>> import fairopt as fo
>>> pool = fo.Instance([[12]], [[1], [1]], users=["a", "b"], resources=["cpu"], rules=["x[a] >= 2 * x[b]"])
>>> for user in ("a", "b"):
...     print(next(each for each in fo.explain(fo.solve(pool, "proportional"), user).sentences if "prices" in each))
At the prices that prove this optimum it pays 100 % for cpu on server-1, and the rule "x[a] >= 2 * x[b]" gives it 25 % of that.
At the prices that prove this optimum it pays 66.7 % for cpu on server-1 and 33.3 % for the rule "x[a] >= 2 * x[b]".
"""

from __future__ import annotations

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import number
from fairopt.analysis.explanation.phrases import NAMES
from fairopt.analysis.explanation.room import Room
from fairopt.instance.shared import shared_prices
from fairopt.instance.tolerances import WRITTEN
from fairopt.program import LimitKind, Program
from fairopt.program.rule_limits import obeying
from fairopt.wording import brief, figure, joined, named, percent

__all__ = ["paid"]


def paid(allocation: Allocation, made: Allocation, user: int, room: Room, program: Program | None) -> list[str]:
    """Return what a user pays at the prices of the optimum; of one that has nothing, how much too dear its tasks are.

    Parameters
    ----------
    allocation, made : Allocation
        In fractions if they are known; the original.
    room : Room
        It has prices.
    program : Program or None
        That of the allocation, without rules.
    """
    instance, prices = allocation.instance, room.prices
    assert prices is not None
    x, of_shared = number(allocation.tasks_per_user[user]), instance.demands_by_row(user)[:, instance.n_server_resources :]
    of_cluster = np.maximum(shared_prices(instance, allocation.queue_prices), 0) * of_shared
    spent = np.append(allocation.tasks[user][:, None] * room.demand * prices, allocation.tasks[user] @ of_cluster)
    where = [f"{named(thing)} on {named(server)}" for server in instance.servers for thing in room.resources]
    where += [f"{named(name)} of the cluster" for name in instance.shared]
    across = {} if program is None or not allocation.queue_prices else _across(allocation, made, user, program)
    if across:
        spent, where = np.append(spent.astype(float), [*across.values()]), [*where, *across]
    total, rounding = number(spent[spent > 0].sum()), room.rounding(WRITTEN)
    if total > 0:
        parts = [
            f"{percent(spent[j] / total)} for {where[j]}" for j in np.argsort(-spent, kind="stable")[:NAMES] if spent[j] > rounding * total
        ]
        given = [f"{where[j]} gives it {percent(-spent[j] / total)} of that" for j in np.argsort(spent) if -spent[j] > rounding * total]
        return [f"At the prices that prove this optimum it pays {joined(parts)}{f', and {joined(given, NAMES)}' if given else ''}."]
    own = instance.eligibility[user]
    of_work = ((room.demand * prices).sum(axis=1) + of_cluster.sum(axis=1))[own] / instance.speeds[user][own]
    cost = of_work.min(initial=np.inf)
    weight = number(instance.weights[user]) if instance.weights.ndim == 1 else 1.0
    if x > 0 or not weight * (1 + rounding) < cost < np.inf:
        return []
    times = f"{figure(cost / weight)} times what it counts"
    return [f"At the prices that prove this optimum a task of it costs {times}: others get more from the same resources."]


def _across(allocation: Allocation, made: Allocation, user: int, program: Program) -> dict[str, float]:
    """Return what a user pays for limits across servers and for rules, by what these are called; less than 0 is what a rule gives it."""
    program = obeying(program, made.instance)
    x, limits = made.tasks[program.pair_users, program.pair_servers] * (program.pair_users == user), program.limits
    found: dict[str, float] = {}
    for row in np.flatnonzero(limits.of_kinds(LimitKind.QUEUE, LimitKind.LIMIT, LimitKind.NAMED, LimitKind.RULE)).tolist():
        name = program.limit_name(row)
        amount = float(allocation.queue_prices.get(name, 0.0)) * float((limits.matrix[[row]] @ x)[0])
        if amount:
            found[f'the rule "{brief(name)}"' if limits.kinds[row] == LimitKind.RULE else f"the limit {named(name)}"] = amount
    return found
