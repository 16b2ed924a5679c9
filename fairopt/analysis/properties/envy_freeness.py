"""Envy-freeness: no user would run more tasks with what another user holds, scaled by weight.

The envy of user n towards user m is

    min(T[n], sum over the servers i where n may run of min_r phi[n] / phi[m] x[m,i] d[m,r] / d[n,r]) - x[n]

tasks, counted server by server. Under time division, the sum is sum_i phi[n] / phi[m] x[m,i] gamma[n,i] / gamma[m,i]. Parts of tasks count.
Of the resources of the cluster n has phi[n] / phi[m] of what m has of each, for all its tasks together.
A user with a parallelism fills at most that many servers (Khamse-Ashari et al. 2017, section II-A, server by server;
`fairopt.analysis.measures`). Where demands or speeds differ by server, d[m,r] and d[n,r] are those on server i, and envy compares work: the
most that T[n] tasks of n could do with it, the fastest servers first.

In a tree of queues the children of one queue (or of the root) are compared with each other: its users, and the queues in it with everything
below them. A queue envies a sibling if, with what the sibling holds, scaled by weight, nobody below it would lose and somebody would gain;
the envy is the sum of the gains (`fairopt.analysis.properties.siblings`). Nobody envies what a sibling holds within its guarantee, and
siblings of other tiers are not compared. Nor are those in a queue of the order "listed": those who come first are served first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairopt.analysis.bundles import most_with_others
from fairopt.analysis.measures import beyond_guarantees, envy_applies, with_what_others_hold
from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.siblings import Child, Families, named_child, not_compared
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance import FloatArray
from fairopt.wording import figure, joined, plural, quotient

__all__ = ["NAME", "check"]

NAME = "envy-freeness"


def check(case: Case) -> Verdict:
    """Compute the envy of every user towards every other user."""
    instance = case.instance
    if not envy_applies(case.allocation):
        return does_not_apply(NAME, "Does not apply: with weights per resource, no single number scales another user's time on a server.")
    best: Any = 0
    pair, enviers = (0, 0), 0
    node, beyond = instance.tree.user_node, beyond_guarantees(case.allocation)
    by_user = case.worth is not None or bool(case.own_rows)
    for first, would in _by_worth(case, beyond) if by_user else with_what_others_hold(case.allocation, beyond):
        users = np.arange(first, first + len(would))
        envy = would - case.value[users, None]
        envy[np.arange(users.size), users] = 0
        envy[~case.part[users]] = 0
        envy[(node[users, None] != node) | instance.tree.listed[node]] = 0  # of users in other queues, or one after the other
        envy[envy <= case.slack[users, None]] = 0
        enviers += int((envy > 0).any(axis=1).sum())
        worst = np.unravel_index(envy.argmax(), envy.shape)
        if envy[worst] > best:
            best, pair = envy[worst], (int(users[worst[0]]), int(worst[1]))
    if instance.queues:
        of_queues = _among_queues(case)
        if of_queues.violation >= best if of_queues.holds is False else of_queues.holds is None and not enviers:
            return of_queues
    if not enviers:
        whose = "a sibling, a user or a queue," if instance.queues else "another"
        return holds(
            NAME, f"Nobody would run more with what {whose} holds, scaled by weight, on the servers where it may run.{not_compared(case)}"
        )
    n, m = pair
    held = case.allocation.tasks[m]
    where = np.flatnonzero((held > 0) & instance.eligibility[n])
    most = where[np.argsort(-held[where], kind="stable")]
    weights = instance.weights
    scale = "" if weights.ndim == 2 or weights[n] == weights[m] else f", times {quotient(weights[n], weights[m])} for the weights"
    scale = ", times the weights of each resource" if weights.ndim == 2 else scale
    bundle = joined([f"{plural(held[i], 'task')} on {instance.servers[i]}" for i in most], 3)
    witness = Witness(
        f"{case.name(n)} runs {case.amount(case.value[n])}. With what {case.name(m)} holds where {case.name(n)} may run{scale} it "
        f"would run {figure(case.value[n] + best, 6)}: with what {bundle} of {case.name(m)} take.",
        (instance.users[n], instance.users[m]),
        tuple(instance.servers[i] for i in most),
    )
    return violated(
        NAME,
        best,
        f"{plural(enviers, 'user envies', 'users envy')} another{' user of the same queue' if instance.queues else ''}.",
        witness,
    )


def _among_queues(case: Case) -> Verdict:
    """Compute the envy among siblings of which one is a queue."""
    if case.instance.weights.ndim == 2:
        return holds(NAME, "")
    families, end = Families(case), case.deadline()
    found: list[tuple[Any, Child, Child]] = []
    for _, everybody in families.families():
        children = [child for child in everybody if child.weight > 0]
        if not any(child.is_queue for child in children):
            continue
        bundles = [families.held(child) - families.promised(child) for child in children]
        for child in children:
            if end.left == 0.0:
                return does_not_apply(NAME, f"Undecided: the search reached {case.ended} before all queues were compared.")
            end.spend(families.steps_of_a_gain(child) * len(children))
            gains = [
                families.gain(child, bundle * (child.weight / other.weight))
                if other is not child and (child.is_queue or other.is_queue) and other.tier == child.tier
                else 0
                for other, bundle in zip(children, bundles, strict=True)
            ]
            most = int(np.argmax(gains))
            if gains[most] > families.slack(child):
                found.append((gains[most], child, children[most]))
    if not found:
        return holds(NAME, "")
    envy, child, other = max(found, key=lambda each: each[0])
    of, has = named_child(case, other), families.value(child)
    scale = "" if child.weight == other.weight else f", times {quotient(child.weight, other.weight)} for the weights"
    beyond = ""
    if families.promised(other).any():  # what a queue is guaranteed may be of one resource alone; a user is guaranteed tasks
        beyond = " of each resource beyond its guarantee of this resource" if other.is_queue else " beyond its guarantee"
    nobody = ", and nobody below it would run less" if child.is_queue else ""
    witness = Witness(
        f"{named_child(case, child, first=True)} runs {case.amount(has)}. With what {of} holds{beyond}{scale} it would run "
        f"{figure(has + envy, 6)}{nobody}.",
        tuple(case.instance.users[n] for n in (*child.users, *other.users)),
    )
    return violated(NAME, envy, f"{plural(len(found), 'queue or user envies', 'queues or users envy')} a sibling.", witness)


def _by_worth(case: Case, beyond: FloatArray) -> Iterator[tuple[int, FloatArray]]:
    """Do the same as `with_what_others_hold` where worth differs between servers, or the notion has rows of its own; user by user."""
    for n in case.members.tolist():
        own = case.worth_to(n), case.value[n], case.rows_about(n)
        yield n, most_with_others(case.instance, case.sharing, n, beyond, *own)[None]
