"""Envy-freeness: no user would run more tasks with what another user holds, scaled by weight.

The envy of user n towards user m is

    min(T[n], sum over the servers i where n may run of min_r phi[n] / phi[m] x[m,i] d[m,r] / d[n,r]) - x[n]

tasks, counted server by server. Under time division, the sum is sum_i phi[n] / phi[m] x[m,i] gamma[n,i] / gamma[m,i]. Parts of tasks count.
A user with a parallelism fills at most that many servers (Khamse-Ashari et al. 2017, section II-A, server by server;
`fairopt.analysis.measures`). In a tree of queues the users of each queue are compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairopt.analysis.measures import envy_applies, with_what_others_hold
from fairopt.analysis.properties.case import TANGLED, Case, capped
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance import FloatArray, safe_ratio
from fairopt.wording import figure, joined, plural

__all__ = ["NAME", "check"]

NAME = "envy-freeness"


def check(case: Case) -> Verdict:
    """Compute the envy of every user towards every other user."""
    instance = case.instance
    if not envy_applies(case.allocation):
        return does_not_apply(NAME, "Does not apply: with weights per resource no one number scales what another holds of a server's time.")
    if case.tangled:
        return does_not_apply(NAME, TANGLED)
    best, pair, enviers = 0.0, (0, 0), 0
    node = instance.tree.user_node
    for first, would in with_what_others_hold(case.allocation) if case.worth is None else _by_worth(case):
        users = np.arange(first, first + len(would))
        envy = (would if case.worth is not None else np.minimum(would, instance.tasks[users, None])) - case.value[users, None]
        envy[np.arange(users.size), users] = 0.0
        envy[~case.part[users]] = 0.0
        envy[node[users, None] != node] = 0.0  # of users in other queues
        envy[envy <= case.slack[users, None]] = 0.0
        enviers += int(envy.any(axis=1).sum())
        worst = np.unravel_index(envy.argmax(), envy.shape)
        if envy[worst] > best:
            best, pair = float(envy[worst]), (int(users[worst[0]]), int(worst[1]))
    if not enviers:
        whose = "another user of the same queue" if instance.queues else "another"
        return holds(NAME, f"Nobody would run more with what {whose} holds, scaled by weight, on the servers where it may run.")
    n, m = pair
    held = case.allocation.tasks[m]
    where = np.flatnonzero((held > 0) & instance.eligibility[n])
    most = where[np.argsort(-held[where], kind="stable")]
    weights = instance.weights
    scale = (
        "" if weights.ndim == 2 or weights[n] == weights[m] else f", times {figure(weights[n], 6)}/{figure(weights[m], 6)} for the weights"
    )
    scale = ", times the weights of each resource" if weights.ndim == 2 else scale
    bundle = joined([f"{plural(held[i], 'task')} on {instance.servers[i]}" for i in most], 3)
    witness = Witness(
        f"{case.name(n)} runs {plural(case.value[n], 'task')}. With what {case.name(m)} holds where {case.name(n)} may run{scale} it "
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


def _by_worth(case: Case) -> Iterator[tuple[int, FloatArray]]:
    """Do the same as `with_what_others_hold` where worth differs between servers; user by user, as each has its own order of servers."""
    assert case.worth is not None
    instance, x = case.instance, case.allocation.tasks
    weights = instance.weights if instance.weights.ndim == 2 else instance.weights[:, None]
    for n in case.members:
        scale = weights[n] / weights
        if case.sharing == "tdm":
            time = np.divide(x, instance.rates, out=np.zeros(x.shape), where=instance.rates > 0)
            could = scale * time * instance.rates[n]
        else:
            asks = instance.demands[n] > 0
            ratio = (scale * instance.demands)[:, asks] / instance.demands[n, asks]
            could = x * ratio.min(axis=1)[:, None]
        could = np.where(instance.eligibility[n], could, 0.0)
        would = capped(could, case.worth[n], float(instance.tasks[n]))
        parallelism = float(instance.parallelism[n])
        if np.isfinite(parallelism):  # a scaled bundle may fill more servers than there are
            part = np.where(instance.eligibility[n], safe_ratio(1.0, instance.rates_of_one[n]), 0.0)
            for m in np.flatnonzero(could @ part > parallelism):
                would[m] = _best_within(could[m], case.worth[n], float(instance.tasks[n]), part, parallelism)
        yield int(n), would[None, :]


def _best_within(possible: FloatArray, worth: FloatArray, tasks: float, part: FloatArray, parallelism: float) -> float:
    """Return the largest worth of at most ``possible`` tasks on each server, ``tasks`` in all; a task takes ``part`` of a server."""
    from scipy.optimize import linprog  # slow to import

    in_all = [min(tasks, float(possible.sum())), parallelism]
    bounds = [(0.0, float(most)) for most in possible]
    found: Any = linprog(-worth, A_ub=np.vstack([np.ones(worth.size), part]), b_ub=in_all, bounds=bounds)
    return float(-found.fun)
