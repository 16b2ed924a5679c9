"""Pareto optimality: no user can run more unless another user runs less.

*Proof by prices.* Let p >= 0 be prices of the shared capacity, and let q[n] be the price of the cheapest unit of worth for n:
q[n] = min over the servers i where n may run of (sum_r p[i,r] d[n,r]) / v[n,i]. Every feasible allocation with V'[m] >= V[m] for all m has

    p.c >= sum_m q[m] V'[m] >= sum_m q[m] V[m] + q[n] (V'[n] - V[n]),      so      V'[n] - V[n] <= (p.c - sum_m q[m] V[m]) / q[n].

Any prices give such a bound (d is the demand on server i, where it differs). The check uses the prices of the allocation (for a leximin,
those of each level), which takes only array operations. A user with all its tasks gains nothing. If the bounds do not exclude a gain, a
linear program looks for an improvement:

    maximise   sum_n (V'[n] - V[n]) / R[n]     subject to   V' >= V,   and all limits of the instance.

If the maximum is 0, the allocation is optimal. Otherwise the solution is the witness: an allocation that is better for some users, and
worse for none.

*Whole tasks* are judged among allocations of whole tasks, in three steps. A task that fits into the free capacity is an improvement. If no
allocation of divisible tasks has a whole task more in total, the allocation is optimal. Otherwise branch and cut decides; if it reaches its
limit, the verdict is None. Branch and cut solves "efficiency" with two users in place of each user n: the first has the x[n] tasks,
and each of them counts more than all tasks that the second users could add. If the worth of a task differs between servers, branch and cut
maximises the sum of worth, where nobody has less than before.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from fairopt.allocation import Allocation
from fairopt.analysis.in_fractions import largest
from fairopt.analysis.properties.branching import better_for_all, single_servers_known
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, judged_in_floats, violated
from fairopt.analysis.properties.whole_tasks import largest_totals, more_for_somebody, one_more, proved
from fairopt.errors import FairoptError, NoSolution
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import Merging, merge, unmerged
from fairopt.instance.exact_merging import merge_exactly, unmerged_exactly
from fairopt.instance.fractions import fractions_of, rational, rationals
from fairopt.instance.limit_merging import split
from fairopt.instance.shared import shared_prices, within_shared
from fairopt.instance.tolerances import FITS, TINY
from fairopt.models import Efficiency
from fairopt.program import LimitKind, Program, Total
from fairopt.program.exact import ExactProgram
from fairopt.program.kept_parts import within_kept
from fairopt.program.parallelism import servers_at_once
from fairopt.program.queue_limits import limit_rows
from fairopt.program.stated_rows import with_rows
from fairopt.solvers import seconds_of_a_level
from fairopt.solvers.backend import Deadline
from fairopt.solving import formulate, solve, without_remarks
from fairopt.solving.single_servers import expanded
from fairopt.wording import duration, figure, joined, plural

__all__ = ["NAME", "check"]

NAME = "pareto"
_WHOLE = "Judged among whole tasks: "
_LONGEST = 60.0  # seconds that a program in fractions may be expected to take, if no time limit is given
_NODES = 5_000  # of branch and cut for tasks that are worth more on some servers, if no time limit is given
_MANY = 10_000  # columns; above this, the interior point method with crossover is faster than the simplex method


def check(case: Case) -> Verdict:
    """Prove optimality by prices, or look for an improvement."""
    if not case.members.size:
        return holds(NAME, "Nobody takes part.")
    if case.whole:
        return _whole(case) if case.radius is None else _whole_in_fractions(case)
    if case.radius is not None:
        try:
            tasks = _improvement_in_fractions(case)
        except NoSolution as error:
            return does_not_apply(NAME, f"Undecided: {error}")
        if not isinstance(tasks, str):
            return _verdict(case, tasks, "Nobody can gain without another's loss: prices of a linear program prove it in fractions.", "")
        return does_not_apply(NAME, tasks)
    if case.feasible and (_most_gain(case) <= case.slack)[case.part].all():
        return holds(NAME, "Nobody can gain without another's loss: the prices of the allocation prove it.")
    tasks = _improvement(case, np.where(case.part, 1 / np.maximum(case.reach, TINY), 0.0))
    if isinstance(tasks, str):
        return does_not_apply(NAME, tasks)
    return _verdict(case, tasks, "Nobody can gain without another's loss: a linear program finds no improvement.", "")


def _verdict(case: Case, tasks: FloatArray, none: str, how: str) -> Verdict:
    """Return the verdict on better ``tasks``: who gains, and how much; the property holds if nobody gains."""
    gain = np.where(case.part, case.values(tasks) - case.value, 0)
    gains = np.flatnonzero(gain > case.slack)
    if not gains.size:
        return holds(NAME, how + none)
    order = gains[np.argsort(-gain[gains], kind="stable")]
    who = [
        f"{case.name(n)} {case.amount(gain[n])} more ({figure(case.value[n], 6)} to {figure(case.value[n] + gain[n], 6)})" for n in order
    ]
    witness = Witness(
        f"The allocation beside it gives {joined(who, 3)}, and takes nothing from anybody.",
        tuple(case.instance.users[n] for n in order),
        tasks=tasks,
    )
    return violated(NAME, gain[order[0]], f"{how}{plural(gains.size, 'user')} can gain without another's loss.", witness)


def _most_gain(case: Case) -> FloatArray:
    """Return an upper bound on what each user could gain, by the prices of the allocation, (users,)."""
    instance, allocation = case.instance, case.allocation
    bound = np.where(case.complete | ~case.part, 0.0, np.inf)
    known = [(level.prices, level.queue_prices) for level in allocation.levels] + [(allocation.prices, allocation.queue_prices)]
    for prices, by_name in known:
        of_cluster = np.maximum(shared_prices(instance, by_name), 0.0)
        if prices is None and not of_cluster.any():
            continue
        if prices is None:
            prices = np.zeros((instance.n_servers, 1 if case.sharing == "tdm" else instance.n_server_resources))
        prices = np.maximum(prices, 0.0)
        if case.sharing == "tdm":
            rates = instance.rates
            cost = np.divide(prices[:, 0], rates, out=np.full(rates.shape, np.inf), where=rates > 0)
            spent = float(prices.sum())
        else:
            cost = np.where(instance.eligibility, instance.cost_of_tasks(prices), np.inf)
            spent = float((prices * instance.row_capacity).sum())
        if of_cluster.any():
            of_shared = instance.demands_by_kind[:, :, instance.n_server_resources :] @ of_cluster
            cost, spent = cost + of_shared[:, instance.kind_of], spent + float(of_cluster @ instance.shared_capacity)
        if case.worth is not None:
            cost = np.divide(cost, case.worth, out=np.full(cost.shape, np.inf), where=case.worth > 0)
        cheapest = np.where(case.part, cost.min(axis=1), 0.0)
        gap = max(spent - float(cheapest @ case.value), 0.0)
        bound = np.minimum(bound, np.divide(gap, cheapest, out=np.full(bound.size, np.inf), where=cheapest > 0))
    return bound


# Divisible tasks -----------------------------------------------------------------------------------------------------------------


def _improvement(case: Case, goal: FloatArray) -> FloatArray | str:
    """Maximise sum of goal[n] V'[n] subject to V' >= V; return the tasks, (users, servers), or why there is no solution."""
    apart = 2.0 * np.arange(case.instance.n_users)[:, None]  # merge servers but not users: each has its own V[n]
    data: FloatArray = np.asarray(apart if case.worth is None else apart + case.worth)
    bare = case.instance.replace(weights=None)
    merging = unmerged(bare) if case.own_rows or bare.rules else merge(bare, data)
    # Of the program only columns and limits are read; those of queues are in it where the goal is a leximin.
    program = formulate(merging.instance, "max-min" if case.instance.is_tree else "efficiency", sharing=case.sharing)
    program = with_rows(program, case.own_rows) if case.own_rows else program
    return within_kept(program, lambda program: _improved(case, goal, merging, program))[-1]


def _improved(case: Case, goal: FloatArray, merging: Merging, program: Program) -> tuple[FloatArray | str, Program | None]:
    """Return what `_improvement` returns within the limits of this program, and the program with the rows that it exceeds, if it does."""
    users, limits, unit = program.pair_users, program.limits, program.largest()  # columns are scaled by their maxima
    value = unit if case.worth is None else unit * np.asarray(merging.restrict(case.worth))[users, program.pair_servers]
    floors = case.value / (1.0 + case.excess if case.feasible else 1.0)
    reach = np.where(case.reach > 0, case.reach, 1.0)
    own = sp.csr_array((value / reach[users], (users, np.arange(users.size))), shape=(len(program.users), users.size))
    rules = limits.kinds == LimitKind.RULE
    rows = (limits.bounds > 0) | rules
    matrix, bounds = sp.csr_array(limits.select(rows).matrix * unit), limits.bounds[rows]
    size = np.where(rules[rows], np.maximum(np.abs(bounds), abs(matrix).max(axis=1).toarray().ravel()), bounds)
    size = np.where(size > 0, size, 1.0)
    answer = scipy.optimize.linprog(
        -(goal[users] * value),
        A_ub=sp.vstack([matrix / size[:, None], -own[case.members]], format="csc"),
        b_ub=np.concatenate([bounds / size, -(floors / reach)[case.members]]),
        bounds=(0.0, 1.0),
        method="highs" if users.size < _MANY else "highs-ipm",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
            "time_limit": float("inf") if case.time_limit is None else case.time_limit,
        },
    )
    if answer.status == 1:
        return f"Undecided: the linear program had no answer within {case.time_limit:g} s.", None
    if answer.status == 2 and not case.feasible:
        return "The allocation exceeds its limits, and no allocation within them gives everybody as much.", None
    if answer.x is None:
        return f"Undecided: the linear program was not solved ({answer.message}).", None
    x, table = answer.x * unit, np.zeros((len(program.users), len(program.servers)))
    table[users, program.pair_servers] = x
    return merging.spread(table), program.with_broken(x)


def _improvement_in_fractions(case: Case, *, by_reach: bool = True) -> Any:
    """Maximise the sum of V'[n] / R[n] subject to V' >= V in fractions; return the tasks, or why there is no solution.

    Without ``by_reach``, maximise the sum of V'[n].
    """
    if not case.feasible:
        return f"The allocation exceeds its limits ({case.limits_exceeded[0]}), so it does not show what could be gained."
    instance = case.in_floats.instance
    merging = unmerged_exactly(instance.replace(weights=None)) if case.own_rows or instance.rules else _servers_merged(instance, case.worth)
    small = merging.instance.replace(weights=None)
    name = "max-min" if small.is_tree else "efficiency"
    program = formulate(small, name, sharing=case.sharing)
    exact = ExactProgram.of(program, small.exact, np.full(program.n_pairs, 1, dtype=object), Total(np.full(len(program.users), 1)))
    users, servers = program.pair_users, program.pair_servers
    worth = [1] * users.size if case.worth is None else np.asarray(merging.restrict(case.worth))[users, servers].tolist()
    seconds = seconds_of_a_level(exact)
    if seconds > (_LONGEST if case.time_limit is None else case.time_limit):
        return f"Undecided: the linear program would take about {duration(seconds)} in fractions."
    reach = [(1 / each if by_reach else 1) if each > 0 else 0 for each in case.reach.tolist()]
    goal = [reach[n] * value if case.part[n] else 0 for n, value in zip(users.tolist(), worth, strict=True)]
    floors = np.where(case.part, case.value, 0)
    more = [(row.bound, *row.entries(program), row.values) for row in case.own_rows]

    def best(exact: ExactProgram) -> tuple[Any, ExactProgram | None]:
        own = [(len(exact.bounds) + int(n), j, -rational(value)) for j, (n, value) in enumerate(zip(users, worth, strict=True))]
        entries = [*zip(exact.rows.tolist(), exact.columns.tolist(), exact.data.tolist(), strict=True), *own]
        for k, (_, pairs, which, values) in enumerate(more, len(exact.bounds) + floors.size):
            entries += [(k, int(p), rational(values[j])) for p, j in zip(pairs, which, strict=True)]
        right = [*exact.bounds.tolist(), *(-floors).tolist(), *(bound for bound, *_ in more)]
        point = largest(goal, entries, right, Deadline(case.time_limit))
        assert point is not None  # what is there is feasible
        return point, exact.with_broken(rationals(point))

    point = within_kept(exact, best)[-1]
    table = case.zeros(len(program.users), len(program.servers))
    table[users, servers] = point
    tasks = merging.spread(table)
    idle = ~case.part
    tasks[idle] = case.allocation.tasks[idle]
    return tasks


def _servers_merged(instance: Instance, worth: FloatArray | None) -> Merging:
    """Return the merging of identical servers, and of no users, in fractions."""
    apart = np.arange(instance.n_users)[:, None] * 2
    data = apart + (0 if worth is None else worth)
    return merge_exactly(instance.replace(weights=None), fractions_of(data), by_weight=False)


# Whole tasks ---------------------------------------------------------------------------------------------------------------------


def _whole(case: Case) -> Verdict:
    if case.instance.rules:
        return _whole_under_rules(case)
    tasks = None if case.instance.queues or case.own_rows else _one_more(case)
    if tasks is not None:
        return _verdict(case, tasks, "", _WHOLE)
    if case.feasible:
        relaxed = _improvement(case, case.part.astype(float))
        if not isinstance(relaxed, str) and float((case.values(relaxed) - case.value)[case.part].sum()) < 1 - 1e-6 and case.worth is None:
            return holds(NAME, f"{_WHOLE}even with divisible tasks, a relaxation, not one task more would fit without another's loss.")
    if case.instance.limited.any():
        return does_not_apply(NAME, f"{_WHOLE}undecided: branch and cut cannot check limits on parallelism.")
    try:
        same = np.ones(case.instance.eligibility.shape) if case.worth is None and case.own_rows else case.worth
        found, proved = _best_of_whole(case) if same is None else _most_worth(case, same)
    except FairoptError as error:
        return does_not_apply(NAME, f"{_WHOLE}undecided: {error}")
    if found is None and proved:
        return does_not_apply(NAME, f"{_WHOLE}the allocation exceeds its limits, and no allocation within them gives everybody as much.")
    verdict = None if found is None else _verdict(case, found, "nobody can gain without another's loss, by branch and cut.", _WHOLE)
    if verdict is not None and (verdict.holds is False or proved):
        return verdict
    return does_not_apply(
        NAME,
        f"{_WHOLE}undecided: branch and cut found no improvement before it reached {case.ended}, and did not prove that there is none.",
    )


def _whole_under_rules(case: Case) -> Verdict:
    """Compare with divisible tasks, which bound whole ones: fewer than one task more is none."""
    relaxed = _improvement(case.in_floats, case.part.astype(float))
    if case.feasible and not isinstance(relaxed, str) and case.worth is None:
        more = float((case.in_floats.values(relaxed) - case.in_floats.value)[case.part].sum())
        if more < 1 - 1e-6:
            return holds(NAME, f"{_WHOLE}even with divisible tasks, a relaxation, not one task more would fit without another's loss.")
    return does_not_apply(NAME, f"{_WHOLE}undecided: no search compares whole tasks under rules, and divisible ones would allow more.")


def _whole_in_fractions(case: Case) -> Verdict:
    """Compare all placements if they are few; else use a relaxation or branch and bound in fractions, else branch and cut in floats."""
    if not case.feasible or case.own_rows or case.instance.rules:
        return judged_in_floats(_whole(case.in_floats))
    placements = None if case.worth is not None else largest_totals(case.instance, case.sharing, case.members)
    if placements is not None:
        tasks = more_for_somebody(case, placements)
        if isinstance(tasks, str):
            return does_not_apply(NAME, f"{_WHOLE}{tasks}")
        none = f"nobody can gain without another's loss: {plural(len(placements.totals), 'largest placement')} compared in fractions."
        if tasks is None:
            return replace(holds(NAME, f"{_WHOLE}{none}"), exact=Fraction(0))
        return _verdict(case, tasks, none, _WHOLE)
    tasks = None if case.instance.queues else one_more(case)
    if tasks is not None:
        return _verdict(case, tasks, "", _WHOLE)
    if case.worth is None and _no_task_more(case):
        none = "even with divisible tasks, a relaxation, not one task more would fit without another's loss; an LP in fractions proves it."
        return replace(holds(NAME, f"{_WHOLE}{none}"), exact=Fraction(0))
    if single_servers_known(case):
        with suppress(NoSolution):
            tasks = better_for_all(case)
            none = "nobody can gain without another's loss, by branch and bound in fractions."
            if tasks is None:
                return replace(holds(NAME, f"{_WHOLE}{none}"), exact=Fraction(0))
            return _verdict(case, tasks, none, _WHOLE)
    found = _whole(case.in_floats)
    tasks = None if found.witness is None or found.witness.tasks is None else proved(case, found.witness.tasks)
    if tasks is not None and (case.values(tasks) >= case.value)[case.part].all():
        return _verdict(case, tasks, "", _WHOLE)
    return judged_in_floats(found)


def _no_task_more(case: Case) -> bool:
    """Say whether a relaxation in fractions proves that no task can be added without another user's loss."""
    try:
        relaxed = _improvement_in_fractions(case, by_reach=False)
    except NoSolution:
        return False
    return not isinstance(relaxed, str) and bool((case.values(relaxed) - case.value)[case.part].sum() < 1)


def _one_more(case: Case) -> FloatArray | None:
    """Return the allocation with as many more tasks of one user as fit into the free capacity of one server; None if none fits."""
    instance, tasks = case.instance, case.allocation.tasks
    if case.sharing == "tdm":
        free = 1.0 - case.allocation.time_utilization
        fits = np.floor(free * np.where(np.isfinite(instance.rates), instance.rates, 0.0) * (1 + FITS) + FITS)
    else:
        free = instance.row_capacity - case.allocation.usage
        fits = np.full(tasks.shape, np.inf)
        for r in range(instance.n_server_resources):
            demand = instance.demands_by_kind[:, instance.kind_of, r]
            left = np.broadcast_to(free[:, r], demand.shape)
            fits[demand > 0] = np.minimum(fits[demand > 0], np.floor(left[demand > 0] / demand[demand > 0] + FITS))
    for r, left_of_all in enumerate(instance.shared_capacity - case.allocation.shared_usage, instance.n_server_resources):
        demand = instance.demands_by_kind[:, instance.kind_of, r]
        fits[demand > 0] = np.minimum(fits[demand > 0], np.floor(left_of_all / demand[demand > 0] + FITS))
    for row in (row for row in limit_rows(instance) if row.selection is not None):
        each = row.per_task(instance.kinds)
        each = np.where(row.servers, each[:, None], 0) if each.ndim == 1 else each
        counts = each > 0
        fits[counts] = np.minimum(fits[counts], np.floor((row.bound - row.used(instance.kinds, tasks)) / each[counts] + FITS))
    single = instance.eligibility & (instance.counts == 1) & case.part[:, None]  # unknown for rows of several servers
    fits = np.where(
        single, np.clip(fits, 0.0, np.maximum(np.floor(instance.tasks - case.allocation.tasks_per_user + FITS), 0.0)[:, None]), 0.0
    )
    some = np.flatnonzero(instance.limited)
    if some.size:
        left = np.maximum(instance.parallelism - servers_at_once(instance, tasks), 0.0)[some, None]
        fits[some] = np.minimum(fits[some], np.floor(left * instance.rates_of_one[some] + FITS))
    if not fits.any():
        return None
    n, i = np.unravel_index(fits.argmax(), fits.shape)
    better = tasks.copy()
    better[n, i] += fits[n, i]
    return better


class _MostTasks(Efficiency):
    """The most tasks within the limits of queues and what they keep: guarantees say only what that is, and weights and tiers nothing."""

    keeps_guarantees = False

    def check_queues(self, instance: Instance) -> None:
        """Allow every tree of queues."""


def _best_of_whole(case: Case) -> tuple[FloatArray | None, bool]:
    """Return the best allocation of whole tasks in which nobody has fewer, and whether it is proved to be the best."""
    instance = case.instance
    held = np.round(case.allocation.tasks_per_user)
    more = np.floor(np.minimum(within_shared(instance, instance.tasks), instance.rates.sum(axis=1)) + FITS) - held
    two = np.concatenate([case.members, case.members])
    owned = np.concatenate([held[case.members], np.maximum(more, 0.0)[case.members]])
    dear = float(owned[case.members.size :].sum()) + 1.0
    names = [f"{instance.users[n]} ({word})" for word in ("held", "more") for n in case.members]
    doubled = Instance(
        instance.capacities,
        instance.demands_on(two),
        weights=np.repeat([dear, 1.0], case.members.size),
        eligibility=instance.eligibility[two],
        counts=instance.counts,
        shared=instance.shared,
        tasks=owned,
        rates=None if instance.rates_per_server is None else instance.rates_per_server[two],
        users=names,
        servers=instance.servers,
        units=instance.units,
        resources=instance.resources,
        queues=[queue.given for queue in instance.queues],
        queue_of=[instance.queue_of[n] for n in two],
        limits=split(instance, {instance.users[n]: [f"{instance.users[n]} ({word})" for word in ("held", "more")] for n in case.members}),
    )
    proved = True
    try:
        with without_remarks(), case.counted():
            best: Allocation | FloatArray = solve(
                doubled, _MostTasks(), integral=True, sharing=case.sharing, time_limit=case.time_limit
            ).tasks
    except NoSolution as error:
        if "tasks" not in error.known:
            return None, False
        best, proved = error.known["tasks"], False
    tasks = np.zeros(case.allocation.tasks.shape)
    np.add.at(tasks, two, np.asarray(best))
    tasks[~case.part] = case.allocation.tasks[~case.part]
    if (tasks.sum(axis=1) < held - 0.5)[case.part].any():
        return None, proved
    return tasks, proved


def _most_worth(case: Case, worth: FloatArray) -> tuple[FloatArray | None, bool]:
    """Return whole tasks, (users, servers), of the largest worth in which nobody has less, and whether it is proved to be the largest."""
    single, row = expanded(case.instance)
    program = formulate(single, "max-min" if single.is_tree else "efficiency", sharing=case.sharing)
    rows = [each.on(None, row, (each.users, single.servers)) for each in case.own_rows]
    program = with_rows(program, rows) if rows else program
    return within_kept(program, lambda program: _most_worth_within(case, worth, program, row))[-1]


def _most_worth_within(
    case: Case, worth: FloatArray, program: Program, row: IntArray
) -> tuple[tuple[FloatArray | None, bool], Program | None]:
    """Return what `_most_worth` returns within the limits of this program, and the program with the rows that it exceeds, if it does.

    ``row`` has the row of each server.
    """
    users, servers = program.pair_users, row[program.pair_servers]
    limits = program.limits.select(program.limits.bounds > 0)
    value = worth[users, servers] * case.part[users]
    rows: Any = sp.csc_array(limits.matrix / limits.bounds[:, None])  # the stubs of scipy know dense rows only
    own: Any = sp.csr_array((value, (users, np.arange(users.size))), shape=(len(program.users), users.size))
    how: Any = {"mip_rel_gap": 0.0} | ({"node_limit": _NODES} if case.time_limit is None else {"time_limit": case.time_limit})
    answer = scipy.optimize.milp(
        -value,
        integrality=np.ones(users.size, np.int64),
        bounds=scipy.optimize.Bounds(0.0, np.floor(program.largest() * (1 + FITS) + FITS)),
        constraints=[
            scipy.optimize.LinearConstraint(rows, ub=np.ones(len(limits))),
            scipy.optimize.LinearConstraint(own[case.members], lb=(case.value - case.slack)[case.members]),
        ],
        options=how,
    )
    if answer.x is None:
        return (None, answer.status == 2), None
    x, tasks = np.round(answer.x), np.zeros(case.allocation.tasks.shape)
    np.add.at(tasks, (users, servers), x)
    tasks[~case.part] = case.allocation.tasks[~case.part]
    return (tasks, answer.status == 0), program.with_broken(x)
