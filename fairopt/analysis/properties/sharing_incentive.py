"""Sharing incentive: every user runs at least what its weighted slice of each server could run.

The slice of user n is the part phi[n] / sum_m phi[m] of *each* server, whether n may run there or not. The sum is over all users of the
instance. With weights per resource, the part of resource r is phi[n,r] / sum_m phi[m,r]. The slice could run

    min(T[n], sum over the servers i where n may run of min_r phi[n] / sum_m phi[m] counts[i] c[i,r] / d[n,r])

tasks; under time division, phi[n] / sum_m phi[m] gamma[n,i] on each server i (Khamse-Ashari et al. 2017, section III-B; this is the notion
"uniform"). A user with limited parallelism uses the fastest servers of its slice. The violation is the number of tasks that a user lacks;
parts of tasks count.

In a tree of queues the slice of a user is that of what the users of its queue hold together on each server. A user with a guarantee of its
own may hold more than others.
"""

from __future__ import annotations

import numpy as np

from fairopt.analysis.properties.case import TANGLED, Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance import FloatArray
from fairopt.wording import figure, joined, plural

__all__ = ["NAME", "check"]

NAME = "sharing-incentive"


def check(case: Case) -> Verdict:
    """Compare what every user runs with what its slice could run."""
    instance = case.instance
    if instance.weights.ndim == 2 and case.sharing == "tdm":
        return does_not_apply(NAME, "Does not apply: with weights per resource nobody has one slice of a server's time.")
    if case.tangled:
        return does_not_apply(NAME, TANGLED)
    if instance.is_tree:
        return _among_siblings(case)
    slices = _slices(case)
    owed = case.at_most(slices)
    lack = np.where(case.part, owed - case.value, 0.0)
    below = np.flatnonzero(lack > case.slack)
    if not below.size:
        return holds(NAME, "Everyone runs at least what its weighted slice of each server could run.")
    n = int(below[lack[below].argmax()])
    weights = instance.weights
    whose = "by its weights" if weights.ndim == 2 else f"{figure(weights[n], 6)}/{figure(weights.sum(), 6)}, by weight,"
    most = np.argsort(-slices[n], kind="stable")[: int((slices[n] > 0).sum())]
    where = joined([f"{figure(slices[n, i], 6)} on {instance.servers[i]}" for i in most], 3)
    limited = f", of which it has {figure(instance.tasks[n], 6)}" if slices[n].sum() > instance.tasks[n] else ""
    if instance.limited[n] and owed[n] < min(slices[n].sum(), instance.tasks[n]):
        limited = f", of which it runs {figure(owed[n], 6)} on {figure(instance.parallelism[n], 6)} servers at once"
    counted = "" if case.worth is None else f", worth {figure(owed[n], 6)}"
    witness = Witness(
        f"{case.name(n)} runs {plural(case.value[n], 'task')}; {whose} of every server would run "
        f"{figure(slices[n].sum(), 6)}{limited}{counted}: {where}.",
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
    slices = np.full(instance.eligibility.shape, np.inf)
    for r in range(instance.n_resources):
        asks = np.flatnonzero(instance.demands[:, r] > 0)
        slices[asks] = np.minimum(slices[asks], (part[asks, r] / instance.demands[asks, r])[:, None] * instance.row_capacity[:, r])
    return np.where(instance.eligibility & case.part[:, None], slices, 0.0)


def _among_siblings(case: Case) -> Verdict:
    """Compare what every user of a queue runs with what its slice of what they all hold could run."""
    instance, x = case.instance, case.allocation.tasks
    if case.sharing == "tdm" or instance.weights.ndim == 2:
        return does_not_apply(NAME, "Does not apply: in a tree of queues it is about resources, with one weight for each user.")
    node = instance.tree.user_node
    slices = np.zeros(instance.eligibility.shape)
    for v in np.unique(node):
        users = np.flatnonzero((node == v) & case.part & (instance.weights > 0))
        together = instance.weights[users].sum()
        held = x[users].T @ instance.demands[users]
        for user in users:
            asks = instance.demands[user] > 0
            slices[user] = (held[:, asks] / instance.demands[user, asks]).min(axis=1) * instance.weights[user] / together
    slices = np.where(instance.eligibility, slices, 0.0)
    owed = case.at_most(slices)
    lack = np.where(case.part, owed - case.value, 0.0)
    below = np.flatnonzero(lack > case.slack)
    if not below.size:
        return holds(NAME, "Everyone runs at least what its weighted slice of what the users of its queue hold could run.")
    n = int(below[lack[below].argmax()])
    whose = instance.tree.name(int(node[n])) if instance.queues else "the cluster"
    weight, together = instance.weights[n], instance.weights[node == node[n]].sum()
    witness = Witness(
        f"{case.name(n)} runs {plural(case.value[n], 'task')}; {figure(weight, 6)}/{figure(together, 6)}, by weight, of what the users of "
        f"{whose} hold on each server would run {figure(owed[n], 6)}.",
        (instance.users[n],),
    )
    number = plural(below.size, "user runs", "users run")
    return violated(NAME, lack[n], f"{number} less than a weighted slice of what the users of its queue hold.", witness)
