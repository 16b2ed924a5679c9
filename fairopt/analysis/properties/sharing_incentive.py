"""Sharing incentive: every user runs at least what its weighted slice of each server could run.

The slice of user n is the part phi[n] / sum_m phi[m] of *each* server, whether n may run there or not, and of each resource of the
cluster, for all its tasks together. The sum is over all users of the instance. With weights per resource, the part of resource r is
phi[n,r] / sum_m phi[m,r]. The slice of the servers could run

    min(T[n], sum over the servers i where n may run of min_r phi[n] / sum_m phi[m] counts[i] c[i,r] / d[n,r])

tasks; under time division, phi[n] / sum_m phi[m] gamma[n,i] on each server i (Khamse-Ashari et al. 2017, section III-B; this is the notion
"uniform"). A user with limited parallelism uses the fastest servers of its slice. The violation is the number of tasks that a user lacks;
parts of tasks count. Where tasks do other work on other servers, it is the work that a user lacks of the most that its tasks could do.

In a tree of queues each child c of a queue v (a user, or a queue with everything below it) has a slice of what v holds, the children of the
root of the whole cluster. What its siblings hold within their guarantees, what they keep by lending limits and do not use, and what
siblings of other tiers hold, is set aside:

    slice of c = phi[c] / sum of phi over siblings of its tier, c included, of max(0, what v holds - what is set aside).

With its slice nobody may be better off than now; a queue is better off if nobody below it loses and somebody gains
(`fairopt.analysis.properties.siblings`). In a queue of the order "listed" nobody has a slice. One resource on one server: the filling gives
everybody its slice, with ``guarantees="surplus"`` and with ``"clamp"``. (The share by weight of what is left beside *all* guarantees, and
its own guarantee on top, is no less.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.siblings import Child, Families, named_child, not_compared
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance import FloatArray
from fairopt.wording import figure, joined, named, plural, quotient

__all__ = ["NAME", "check"]

NAME = "sharing-incentive"


def check(case: Case) -> Verdict:
    """Compare what every user runs with what its slice could run."""
    instance = case.instance
    if instance.weights.ndim == 2 and case.sharing == "tdm":
        return does_not_apply(NAME, "Does not apply: with weights per resource nobody has one slice of a server's time.")
    if instance.is_tree:
        return _among_siblings(case)
    slices = _slices(case)
    owed = case.at_most(slices, instance.weights / instance.weights.sum(axis=0))
    lack = np.where(case.part, owed - case.value, 0)
    below = np.flatnonzero(lack > case.slack)
    if not below.size:
        return holds(NAME, "Everyone runs at least what its weighted slice of each server could run.")
    n = case.first_largest(below, lack)
    weights = instance.weights
    whose = "by its weights" if weights.ndim == 2 else f"{quotient(weights[n], weights.sum())}, by weight,"
    most = np.argsort(-slices[n], kind="stable")[: int((slices[n] > 0).sum())]
    where = joined([f"{figure(slices[n, i], 6)} on {instance.servers[i]}" for i in most], 3)
    limited = f", and it asks for {figure(instance.tasks[n], 6)}" if slices[n].sum() > instance.tasks[n] else ""
    if instance.limited[n] and owed[n] < min(slices[n].sum(), instance.tasks[n]):
        limited = f", of which it runs {figure(owed[n], 6)} on {plural(instance.parallelism[n], 'server')} at once"
    counted = "" if case.worth is None else f", worth {figure(owed[n], 6)}"
    would = f"{whose} of every server would run {figure(slices[n].sum(), 6)}{limited}{counted}: {where}"
    if instance.shared:
        would = f"{whose} of every server and of {joined([*map(named, instance.shared)], 3)} would run {figure(owed[n], 6)}"
    witness = Witness(
        f"{case.name(n)} runs {case.amount(case.value[n])}; {would}.",
        (instance.users[n],),
        tuple(instance.servers[i] for i in most),
    )
    return violated(
        NAME,
        lack[n],
        f"{plural(below.size, 'user runs', 'users run')} less than a weighted slice of each server could run.",
        witness,
    )


def _slices(case: Case) -> FloatArray:
    """Return the tasks that each user's slice of each server could run, (users, servers)."""
    instance = case.instance
    part = instance.weights / instance.weights.sum(axis=0)
    if part.ndim == 1:
        return np.asarray(part[:, None] * case.rates)
    slices = np.full(instance.eligibility.shape, np.inf, case.value.dtype)
    for r in range(instance.n_server_resources):
        for k in range(instance.demands_by_kind.shape[1]):
            demands, rows = instance.demands_by_kind[:, k, r], np.flatnonzero(instance.kind_of == k)
            asks = np.ix_(np.flatnonzero(demands > 0), rows)
            could = (part[:, r] / np.where(demands > 0, demands, 1))[:, None] * instance.row_capacity[rows, r]
            slices[asks] = np.minimum(slices[asks], could[demands > 0])
    return np.where(instance.eligibility & case.part[:, None], slices, 0)


def _among_siblings(case: Case) -> Verdict:
    """Compare what every child of a queue runs with what its slice of what the queue holds could run."""
    if case.instance.weights.ndim == 2:
        return does_not_apply(NAME, "Does not apply: in a tree of queues it is about one weight for each user.")
    families, end, tree = Families(case), case.deadline(), case.instance.tree
    found: list[tuple[Any, int, Child, list[Child]]] = []
    asked = 0
    for node, children in families.families():
        for child in children:
            if end.left == 0.0:
                compared = plural(asked, "user or queue was", "users and queues were")
                return does_not_apply(NAME, f"Undecided: {compared} compared when the search reached {case.ended}.")
            end.spend(families.steps_of_a_gain(child))
            if child.weight == 0:
                continue
            asked += 1
            lack = families.gain(child, families.slice_of(node, child, children))
            if lack > families.slack(child):
                found.append((lack, node, child, children))
    if not found:
        told = "Everyone runs at least what a weighted slice of what its queue holds could run, and so does every queue."
        return holds(NAME, told + not_compared(case))
    lack, node, child, children = max(found, key=lambda each: each[0])
    together = sum(other.weight for other in children if other.tier == child.tier)
    set_aside = any(families.promised(other).any() or other.tier != child.tier for other in children if other is not child)
    of = f"what {tree.name(node)} holds" if node else "the cluster"
    has = families.value(child)
    beside = ", beside the guarantees and other tiers of its siblings," if set_aside else ""
    nobody = ", and nobody below it would run less" if child.is_queue else ""
    witness = Witness(
        f"{named_child(case, child, first=True)} runs {case.amount(has)}; {figure(child.weight, 6)}/{figure(together, 6)}, "
        f"by weight, of {of} on each server{beside} would run {figure(has + lack, 6)}{nobody}.",
        tuple(case.instance.users[n] for n in child.users),
    )
    number = plural(len(found), "user or queue runs", "users or queues run")
    return violated(NAME, lack, f"{number} less than a weighted slice of what the queue above holds could run.", witness)
