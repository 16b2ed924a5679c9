"""What a change of the cluster would give one user: by price, and by solving again.

The prices are those of the user's level (`fairopt.analysis.explanation.level_prices`). They bound the rise of the level, but a user may
gain more than its level rises, if the change separates it from the other users of the level. And only leximins have such prices. So the
most promising changes are also solved.

>>> import fairopt as fo
>>> allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"], servers=["pool"], resources=["cpu", "memory"]), "drf")
>>> for gain in gains(allocation, 0, [(0, 0)], resolves=2):
...     print(gain.change, round(gain.by_price, 3), round(gain.by_solving, 3))
weight 2 instead of 1 1.5 1.154
+1 cpu on pool 0.103 0.103
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from fairopt.allocation import Allocation
from fairopt.analysis.explanation import Gain, Number, number
from fairopt.analysis.explanation.changes import Change, limit_changes, row_changes, rule_changes, shared_changes, step, step_of
from fairopt.analysis.explanation.exact_prices import ExactLevelPrices
from fairopt.analysis.explanation.level_prices import LevelPrices
from fairopt.analysis.explanation.weights import weights_of_user
from fairopt.analysis.rerun import rerun
from fairopt.errors import FairoptError
from fairopt.instance import BoolArray, Instance, IntArray
from fairopt.instance.aggregation import merge
from fairopt.instance.by_server import by_server_on
from fairopt.instance.exact_merging import merge_exactly
from fairopt.instance.fractions import rounding
from fairopt.instance.tolerances import REACHED
from fairopt.solvers.backend import Deadline
from fairopt.wording import ROUNDED, figure, named, percent, plural

__all__ = ["change_of_capacity", "clean", "digits", "gains", "kinds_of_servers", "part_more", "prices_of_level", "solved"]

_FEW = 2  # the most changes of constraints to solve


def gains(
    allocation: Allocation,
    user: int,
    cells: Sequence[tuple[int, int]],
    *,
    resolves: int = 6,
    deadline: Deadline | None = None,
    done: Callable[[str], object] | None = None,
) -> tuple[Gain, ...]:
    """Return what more weight, fewer constraints and more capacity would give a user, the largest gain first.

    ``cells`` are the (server, resource) that leave the user no room. Capacity with a price at the user's level is a candidate too. The
    ``resolves`` most promising changes are solved.
    """
    view = allocation.as_known
    prices = prices_of_level(allocation, user)
    changes = _placement(allocation, user)
    weights = weights_of_user(allocation, user) if allocation.instance.servable[user] else []
    if allocation.instance.servable[user]:
        changes += [
            *weights,
            *_parallelism(allocation, user),
            *rule_changes(allocation, user),
            *limit_changes(allocation, np.arange(allocation.instance.n_users) == user),
            *row_changes(allocation, np.arange(allocation.instance.n_users) == user),
            *shared_changes(allocation, np.arange(allocation.instance.n_users) == user),
            *_capacity(allocation, user, cells, prices, 2 * max(resolves, 3)),
        ]
    estimates = [
        None if prices is None or change.notion is not None else prices.tasks(change.instance(), change.servers) for change in changes
    ]
    own = number(view.work[user])
    found = [None if tasks is None else clean(tasks - own, own) for tasks in estimates]

    # Weights from the user upwards until one helps; one solve for parallelism and each limit; at most _FEW for constraints that prices do
    # not rule out; the rest in order of promise.
    promising = sorted(range(len(changes)), key=lambda j: (-digits(found[j] or 0), -changes[j].hint))
    lifted = [j for j in promising if changes[j].kind == "placement"]
    hopeful = [j for j in lifted if found[j] is None or digits(found[j] or 0) > 0]
    limit, tried = deadline or Deadline(None), dict[int, tuple[Number | None, str]]()

    def try_it(j: int) -> Number | None:
        tried[j] = solved(allocation, user, changes[j], limit)
        if done is not None:
            done(changes[j].words)
        return tried[j][0]

    of_weights = [j for j, change in enumerate(changes) if change in weights]
    for j in of_weights[:resolves]:
        if try_it(j) != 0:
            break
    chosen = [*(j for j in promising if changes[j].kind in ("parallelism", "limit", "rule")), *hopeful[:_FEW]]
    rest = [j for j in promising if j not in chosen and j not in of_weights]
    for j in [*chosen, *sorted(rest, key=lambda j: j in lifted)][: resolves - len(tried)]:
        try_it(j)
    results = []
    for j, change in enumerate(changes):
        by_solving, note = tried.get(j, (None, ""))
        if by_solving is not None or found[j] is not None or note:
            results.append(Gain(change.words, change.kind, found[j], by_solving, note))
    return tuple(sorted(results, key=lambda gain: -digits(gain.best_known)))


def prices_of_level(allocation: Allocation, user: int) -> LevelPrices | ExactLevelPrices | None:
    """Return the prices of the user's level, in fractions where the allocation is; None where no prices prove the level."""
    if allocation.instance.rules:  # their prices count, too, and these do not know them
        return None
    return (LevelPrices if allocation.as_known is allocation else ExactLevelPrices).of(allocation, user)


def solved(allocation: Allocation, users: int | BoolArray, change: Change, deadline: Deadline) -> tuple[Number | None, str]:
    """Return how many tasks (or how much work) more a user, or several together, would have after a change, or None and why not."""
    if deadline.left == 0.0:
        return None, "the time limit has passed"
    limit = None if deadline.seconds is None else deadline.left
    asked = allocation
    if change.notion is not None and allocation.question is not None:
        asked = replace(allocation, question=replace(allocation.question, notion=change.notion))
    try:
        answer = rerun(asked, change.instance(), servers=change.servers, time_limit=limit)
    except FairoptError as error:
        return None, str(error)
    before, after = (number(np.sum(each.work[users])) for each in (allocation.as_known, answer.as_known))
    return clean(after - before, before), ""


def part_more(more: Number, tasks: Number) -> str:
    """Return a gain relative to the tasks before, in percent; a Fraction that must be rounded has the sign ~.

    >>> part_more(1.0, 8.0), part_more(Fraction(1), Fraction(3)), part_more(Fraction(1), Fraction(2))
    ('+12.5 %', '+~33.3 %', '+50 %')
    """
    rounded = isinstance(more, Fraction) and isinstance(tasks, Fraction) and (100 * more / tasks).denominator > 1
    return f"+{ROUNDED if rounded else ''}{percent(float(more / tasks))}"


def digits(value: Number) -> Number:
    """Round a float to six digits, so that rounding does not change the order of gains."""
    return value if isinstance(value, Fraction) else float(f"{value:.6g}")


def clean(difference: Number, own: Number) -> Number:
    """Return a difference of tasks, 0 where it is rounding."""
    if isinstance(difference, Fraction):
        return difference
    return 0.0 if abs(difference) <= REACHED * max(own, 1e-3) else difference


# Changes -------------------------------------------------------------------------------------------------------------------------


def _parallelism(allocation: Allocation, user: int) -> list[Change]:
    """Return the change of one server more at once, if the user's parallelism is limited."""
    instance = allocation.instance
    if not instance.limited[user]:
        return []
    after = allocation.as_known.instance.parallelism.copy()
    before = number(after[user])
    after[user] = before + step_of(before)
    words = f"parallelism {figure(number(after[user]))} instead of {figure(before)}"
    return [Change(words, "parallelism", lambda: instance.replace(parallelism=after), hint=1.0)]


def _placement(allocation: Allocation, user: int) -> list[Change]:
    """Return one change for each kind of server that only a constraint forbids to the user."""
    instance = allocation.instance
    if instance.placement is None:
        return []
    kept_out = (instance.unconstrained_rates[user] > 0) & (instance.counts > 0) & ~instance.placement[user]
    kind = kinds_of_servers(allocation)
    changes = []
    for first in np.flatnonzero(kept_out):
        rows = np.flatnonzero(kept_out & (kind == kind[first]))
        if rows[0] == first:
            others = f" and {plural(rows.size - 1, 'row')} like it" if rows.size > 1 else ""
            words = f"may run on {named(instance.servers[first])}{others}"
            changes.append(Change(words, "placement", _allowing(instance, user, rows), hint=float(instance.counts[rows].sum())))
    return changes


def _allowing(instance: Instance, user: int, servers: IntArray) -> Callable[[], Instance]:
    def changed() -> Instance:
        assert instance.placement is not None
        placement = instance.placement.copy()
        placement[user, servers] = True
        return instance.replace(eligibility=placement)

    return changed


def _capacity(
    allocation: Allocation, user: int, cells: Sequence[tuple[int, int]], prices: LevelPrices | ExactLevelPrices | None, most: int
) -> list[Change]:
    """Return one change per kind of server for the resources that leave the user no room, and for those with the largest prices."""
    view = allocation.as_known
    instance = view.instance
    table = view.prices if prices is None else prices.table
    by_time = allocation.sharing == "tdm"
    amounts = np.ones((instance.n_servers, 1), table.dtype if table is not None else float) if by_time else step(instance.capacities)
    rows = np.maximum(instance.counts, 1)[:, None] if by_time else 1
    value = np.zeros(amounts.shape) if table is None else np.maximum(table, 0) * amounts / rows
    order = np.argsort(-value, axis=None, kind="stable")
    priced = [divmod(int(j), amounts.shape[1]) for j in order if value.flat[j] > rounding(REACHED, value) * value.max()]
    kind = kinds_of_servers(allocation)
    first = np.unique(kind, return_index=True)[1]
    own = list(dict.fromkeys((int(first[kind[i]]), r) for i, r in cells))
    chosen = dict.fromkeys([*own[:most], *[(int(first[kind[i]]), r) for i, r in priced][:most]])
    changes = []
    for i, r in chosen:
        hint = value[i, r] + (value.max() if (i, r) in own else 0)  # without prices, resources that stop the user come first
        changes.append(replace(change_of_capacity(allocation, i, r)[1], hint=hint))
    return changes


def kinds_of_servers(allocation: Allocation) -> IntArray:
    """Return a number for each row of servers, equal for rows that are alike, (servers,)."""
    if allocation.instance.rules or (allocation.question is not None and not allocation.question.notion.is_symmetric):
        return np.arange(allocation.instance.n_servers)
    exactly = allocation.as_known is not allocation
    return (merge_exactly if exactly else merge)(allocation.instance).server_group


def change_of_capacity(allocation: Allocation, server: int, resource: int) -> tuple[Number, Change]:
    """Return a change that adds an amount of a resource on one server, or under time division one server, and the amount."""
    instance, written = allocation.instance, allocation.as_known.instance
    if allocation.sharing == "tdm":
        counts = instance.counts.copy()
        counts[server] += 1
        change = Change(f"one more server like {named(instance.servers[server])}", "server", lambda: instance.replace(counts=counts))
        return 1 / number(written.counts[server]), change
    amount, several = step_of(written.capacities[server, resource]), instance.counts[server] > 1
    where = f"{'one server of ' if several else ''}{named(instance.servers[server])}"
    changed, rows = _larger(instance, written, server, resource, amount)
    return amount, Change(f"+{instance.amount(amount, instance.resources[resource])} on {where}", "capacity", changed, rows)


def _larger(
    instance: Instance, written: Instance, server: int, resource: int, amount: Number
) -> tuple[Callable[[], Instance], IntArray | None]:
    """Return the instance with more of a resource on one server; if its row stands for several servers, the server gets its own row.

    ``written`` is the same instance, in fractions if the allocation is.
    """
    several = instance.counts[server] > 1
    rows = np.append(np.arange(instance.n_servers), server) if several else np.arange(instance.n_servers)

    def changed() -> Instance:
        capacities, counts = written.capacities[rows], instance.counts[rows]
        capacities[rows.size - 1 if several else server, resource] += amount
        if several:
            counts[server] -= 1
            counts[-1] = 1
        names = list(instance.servers)
        return instance.replace(
            capacities=capacities,
            counts=counts,
            **by_server_on(instance, rows),
            eligibility=None if instance.placement is None else instance.placement[:, rows],
            rates=None if written.rates_per_server is None else written.rates_per_server[:, rows],
            servers=[*names, _new_name(names, names[server])] if several else names,
        )

    return changed, rows if several else None


def _new_name(names: Sequence[str], name: str) -> str:
    new = f"{name}+"
    while new in names:
        new += "+"
    return new
