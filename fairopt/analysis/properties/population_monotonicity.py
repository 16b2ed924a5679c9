"""Population monotonicity: if a user leaves, no user who stays runs less.

The check removes each user in turn, and runs the same notion or schedule with the same options again (Wang, Li and Liang 2014, section
III-C). Three facts are proved and save solves:

* In an exact allocation of divisible tasks, removing either of two identical users (same demand, weight, tasks and servers) has the same
  effect.
* If two groups of users share no server, directly or through other users, and nothing else (shared resources, limits, queues), leaving one
  group does not affect the other.
* In a leximin of shares in which the share of a user depends on no other user, m can only lose if a user k *below* m can rise: k has tasks
  left, or tasks that are worth more on another server. Proof: let s be the shares before the user left, which are still feasible, and s'
  the shares after. Among the users with s'[m] < s[m], take one with the smallest s'[m]. As s' is max-min fair, going back to s raises m at
  the expense of some k with s[k] < s'[k] <= s'[m] < s[m], and k could rise. So if there is only one level, nothing needs to be solved.

``effort`` bounds the number of solves; users who use most are removed first. If not all were removed and none shows a loss, the verdict is
None. If an exact x[n] is not unique ("efficiency", "psdsf", whole tasks), the check compares the allocations that the engine returns.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.allocation import Optimum
from fairopt.analysis.properties.case import Answered, Case, quietly, unanswered
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.analysis.rerun import rerun
from fairopt.errors import FairoptError
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray
from fairopt.instance.aggregation import known_rates
from fairopt.instance.exact_merging import coded
from fairopt.instance.limit_merging import by_name, moved, with_somebody
from fairopt.instance.rule_sides import applying_without
from fairopt.instance.tolerances import FITS, TINY
from fairopt.models import ShareNotion
from fairopt.wording import figure, joined

__all__ = ["NAME", "check", "without"]

NAME = "population-monotonicity"
_DIGITS = 4  # in which losses are compared


def check(case: Case) -> Verdict:
    """Make the allocation again without each user, and compare."""
    if case.allocation.question is None:
        return does_not_apply(NAME, "Does not apply: nothing says how the allocation was made, so it cannot be made again without a user.")
    if case.members.size < 2:
        return holds(NAME, "At most one user takes part, so nobody can lose when a user leaves.")
    leaving = _leaving(case)
    if not leaving.size:
        return holds(NAME, "Nobody can lose when another user leaves: no user below another could rise.", 0)
    end = case.deadline(again=True)
    worst: Any = 0
    tried, failed, witness = 0, "", None
    queue = leaving[: case.effort]
    crew = case.crew
    at_once = 1 if crew.alone else 4 * crew.size
    for first in range(0, queue.size, at_once):
        if end.left == 0.0:
            break
        some = queue[first : first + at_once]
        for z, (answer, work) in zip(some, crew.map(partial(_answer, case, end.seconds_left), some.tolist(), unanswered), strict=True):
            if end.is_spent:  # as with any other number of workers
                break
            end.spend(work)
            if isinstance(answer, FairoptError):
                failed = str(answer)
                continue
            tried += 1
            after = _after(case, int(z), answer)
            loss = np.where(case.value - after > case.slack, case.value - after, 0)
            if loss.max() > worst:
                worst, witness = loss.max(), _witness(case, int(z), answer, after, loss)
    solved = isinstance(case.allocation.question, Optimum)
    how = "solved again" if solved else "the schedule made again"
    if witness is not None:
        return violated(NAME, worst, f"Somebody runs less when another leaves ({how} without each of {tried:,}).", witness, tried)
    if tried == leaving.size:
        return holds(NAME, f"Nobody runs less when another leaves: {how} without each, {tried:,} in all that could matter.", tried)
    if failed:
        why = f"one could not be solved: {failed}"
    else:
        why = "the rest were not tried; raise effort" if tried == queue.size else f"the search reached {case.ended}"
    return does_not_apply(NAME, f"Undecided: no loss in {tried:,} of {leaving.size:,} users who could leave ({how}); {why}.", tried)


def without(instance: Instance, z: int) -> tuple[Instance, IntArray]:
    """Return the instance without user z, and the positions of the others."""
    stays = np.arange(instance.n_users) != z
    stay = np.flatnonzero(stays)
    limits = moved(by_name(instance), {name: [name] for name, there in zip(instance.users, stays, strict=True) if there})
    return Instance(
        instance.capacities,
        instance.demands_on(stay),
        speeds=instance.speeds_on(stay),
        guarantees=instance.guarantees[stay],
        queues=instance.queues,
        queue_of=[instance.queue_of[n] for n in stay.tolist()],
        limits=with_somebody(limits, instance, stays),
        weights=instance.weights[stay],
        eligibility=None if instance.placement is None else instance.placement[stay],
        counts=instance.counts,
        shared=instance.shared,
        tasks=instance.tasks[stay],
        rates=None if instance.rates_per_server is None else instance.rates_per_server[stay],
        parallelism=instance.parallelism[stay],
        users=[instance.users[n] for n in stay.tolist()],
        servers=instance.servers,
        units=instance.units,
        resources=instance.resources,
        attributes=instance.attributes,
        rules=applying_without(instance, z),
    ), stay


def _answer(case: Case, time_limit: float | None, z: int) -> Answered:
    """Return the tasks without a user, and the work that they took."""
    instance, stay = without(case.instance, z)
    with quietly():
        return case.answered(lambda: case.tasks_of(rerun(case.allocation, instance, users=stay, time_limit=time_limit)))


def _after(case: Case, z: int, tasks: FloatArray) -> Any:
    """Return what each user runs without user z, (users,); of z, and of users who take no part, what they run with it."""
    full = case.allocation.tasks.copy()
    full[np.arange(case.value.size) != z] = tasks
    return np.where(case.part, case.values(full), case.value)


def _witness(case: Case, z: int, tasks: FloatArray, after: Any, loss: Any) -> Witness:
    losers = np.flatnonzero(loss)
    lost = (loss[losers] / loss.max()).astype(np.float64).round(_DIGITS)  # who lose as much are named in the order of the instance
    order = losers[np.argsort(-lost, kind="stable")]
    told = [f"{case.name(n)} runs {case.amount(after[n])} instead of {figure(case.value[n], 6)}" for n in order]
    users = (*(case.instance.users[n] for n in order), case.instance.users[z])
    return Witness(f"Without {case.name(z)}, {joined(told, 3)}.", users, tasks=tasks.copy(), instance=without(case.instance, z)[0])


# Who has to be tried ---------------------------------------------------------------------------------------------------------------


def _leaving(case: Case) -> IntArray:
    """Return one user of each kind whose leaving could cost another user tasks; users who use most come first."""
    instance = case.instance
    leaving = case.part & ((_felt(case) > 0) | bool(instance.rules))  # by rules, users feel others whom they share nothing with
    floats = case.in_floats
    use = floats.allocation.tasks_per_user / np.maximum(floats.reach, TINY)
    order = case.members[np.argsort(-use[case.members], kind="stable")]
    order = order[leaving[order]]
    if not case.exact or instance.rules:
        return order
    keys: list[Any] = [each.reshape(instance.n_users, -1) for each in (instance.demands_by_kind, instance.weights, instance.tasks)]
    keys += [instance.eligibility, *([] if instance.speeds_given is None else [instance.speeds])]
    keys.append(np.where(instance.limited, instance.parallelism, np.inf)[:, None])
    keys += [instance.tree.user_node[:, None], instance.tree.places[:, None], instance.guarantees[:, None]]
    rates = known_rates(instance)
    keys += [] if rates is None else [rates]
    question = case.allocation.question
    assert question is not None
    own = question.notion.restricted(users=np.arange(instance.n_users))
    alike = question.notion.is_symmetric and question.notion.merge_alpha is not None
    if not alike or (own is not question.notion and question.notion.utility is None):
        return order  # the notion has data per user, so no two users are known to be identical
    utility = question.notion.utility if case.radius is None else question.notion.exact_utility
    keys += [] if utility is None else [np.where(instance.eligibility, utility, 0)]
    table = np.hstack([coded(np.asarray(key)) for key in keys])[order]
    _, first = np.unique(table, axis=0, return_index=True)
    return order[np.sort(first)]


def _felt(case: Case) -> FloatArray:
    """Return how many other users could lose if each user left, (users,)."""
    losing = _may_lose(case)
    instance = case.instance
    across = instance.shared or instance.limits or instance.rules or instance.is_tree or case.own_rows  # users feel others elsewhere
    own: IntArray = np.zeros(instance.n_users, int)
    if case.exact and case.program is not None and not across and losing.any():
        rows, columns = np.nonzero(instance.eligibility & case.part[:, None])
        size = instance.n_users + instance.n_servers
        graph = sp.csr_array((np.ones(rows.size), (rows, columns + instance.n_users)), shape=(size, size))
        own = sp.csgraph.connected_components(graph, directed=False)[1][: instance.n_users].astype(np.int64)
    others: FloatArray = np.bincount(own, weights=losing.astype(float), minlength=int(own.max()) + 1)[own] - losing.astype(float)
    return others


def _may_lose(case: Case) -> BoolArray:
    """Return which users could lose at all, (users,): in a leximin, the users above a user who could rise."""
    program, notion = case.program, case.notion
    by_shares = not case.own_rows and not case.instance.rules
    if not case.exact or program is None or not isinstance(notion, ShareNotion) or not by_shares or not _own_share(case, notion):
        return case.part.copy()
    shares, best = (case.share * case.allocation.tasks).sum(axis=1), case.share.max(axis=1)
    members = case.members
    rising = members[shares[members] < best[members] * case.instance.tasks[members] * (1 - case.same(FITS))]
    if not rising.size:
        return np.zeros(shares.size, bool)
    above: BoolArray = shares > shares[rising].min() * (1 + 10 * case.tolerance)
    return case.part & above


def _own_share(case: Case, notion: ShareNotion) -> bool:
    """Say whether the share of a task stays the same when a user leaves: any user, where the notion may look for somebody by name."""
    instance = case.in_floats.instance
    share = notion.share_per_task(instance)
    for z in (case.members[:1] if notion.is_symmetric else case.members).tolist():
        reduced, stay = without(instance, z)
        restricted = notion.restricted(users=stay)
        assert isinstance(restricted, ShareNotion)
        if not np.array_equal(restricted.share_per_task(reduced), share[stay]):
            return False
    return True
