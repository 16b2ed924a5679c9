"""Sharing incentive: nobody runs less than in its slice of every server.

The slice of user n is the part phi[n] / sum_m phi[m] of each server, of *every* one, whether n may run there or not; all users of the
instance count in the sum. It runs, with weights per resource phi[n,r] / sum_m phi[m,r],

    min(T[n], sum over the servers i where n may run of min_r phi[n] / sum_m phi[m] counts[i] c[i,r] / d[n,r])

tasks, and under time division phi[n] / sum_m phi[m] gamma[n,i] on each (Khamse-Ashari et al. 2017, section III-B; it is the notion
"uniform"); with limited parallelism, what runs on the fastest servers of that. The violation is what a user lacks of that, parts of tasks
counted.
"""

from __future__ import annotations

import numpy as np

from fairopt.analysis.properties.case import TANGLED, Case, amount, listed, tasks_of
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance import FloatArray

__all__ = ["NAME", "check"]

NAME = "sharing-incentive"


def check(case: Case) -> Verdict:
    """Compare every user with its slice."""
    instance = case.instance
    if instance.weights.ndim == 2 and case.sharing == "tdm":
        return does_not_apply(NAME, "Does not apply: with weights per resource nobody has one slice of a server's time.")
    if case.tangled:
        return does_not_apply(NAME, TANGLED)
    slices = _slices(case)
    owed = case.at_most(slices)
    lack = np.where(case.part, owed - case.value, 0.0)
    below = np.flatnonzero(lack > case.slack)
    if not below.size:
        return holds(NAME, "Everybody runs at least what its slice of every server would, cut by the weights of all users.")
    n = int(below[lack[below].argmax()])
    weights = instance.weights
    whose = "by its weights" if weights.ndim == 2 else f"{amount(weights[n])}/{amount(weights.sum())}, by weight,"
    most = np.argsort(-slices[n], kind="stable")[: int((slices[n] > 0).sum())]
    where = listed([f"{amount(slices[n, i])} on {instance.servers[i]}" for i in most])
    limited = f", of which it has {amount(instance.tasks[n])}" if slices[n].sum() > instance.tasks[n] else ""
    if instance.limited[n] and owed[n] < min(slices[n].sum(), instance.tasks[n]):
        limited = f", of which it runs {amount(owed[n])} on {amount(instance.parallelism[n])} servers at once"
    counted = "" if case.worth is None else f", worth {amount(owed[n])}"
    witness = Witness(
        f"{case.name(n)} runs {tasks_of(case.value[n])}; {whose} of every server would run "
        f"{amount(slices[n].sum())}{limited}{counted}: {where}.",
        (instance.users[n],),
        tuple(instance.servers[i] for i in most),
    )
    many = "user runs" if below.size == 1 else "users run"
    return violated(NAME, lack[n], f"{below.size:,} {many} less than in a slice of every server, cut by the weights of all users.", witness)


def _slices(case: Case) -> FloatArray:
    """Tasks in each user's slice of each server, (users, servers)."""
    instance = case.instance
    part = instance.weights / instance.weights.sum(axis=0)
    if part.ndim == 1:
        return np.asarray(part[:, None] * case.rates)
    slices = np.full(instance.eligibility.shape, np.inf)
    for r in range(instance.n_resources):
        asks = np.flatnonzero(instance.demands[:, r] > 0)
        slices[asks] = np.minimum(slices[asks], (part[asks, r] / instance.demands[asks, r])[:, None] * instance.row_capacity[:, r])
    return np.where(instance.eligibility & case.part[:, None], slices, 0.0)
