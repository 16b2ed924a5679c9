"""Bottleneck fairness: if the same resource is dominant for all users, it is shared max-min fairly.

The property applies if one resource r is dominant for every user n,

* *on every server*: d[n,r] / c[i,r] is the maximum over the resources, for each server i where n may run (Khamse-Ashari et al. 2017,
  section III-B), if all resources are those of servers;
* or, without placement constraints, *in the whole cluster*: d[n,r] / C[r] is the maximum over the resources, with the total capacity C
  (Wang, Li and Liang 2014, section III-C). Without constraints, the first condition implies the second. A notion that treats each server
  separately, such as "psdsf", promises the property only under the first.

Then the allocation must be max-min fair in that resource: the leximin of d[n,r] x[n] / phi[n] (`fairopt.analysis.properties.max_min`).
"""

from __future__ import annotations

import numpy as np

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.max_min import judge
from fairopt.analysis.properties.verdict import Verdict, does_not_apply, holds
from fairopt.instance import BoolArray, safe_ratio
from fairopt.instance.tolerances import NOTHING
from fairopt.wording import joined

__all__ = ["NAME", "check", "judge_resource"]

NAME = "bottleneck-fairness"


def check(case: Case) -> Verdict:
    """Find the resource that is dominant for all users, and judge how it is shared."""
    instance = case.instance
    if not case.members.size:
        return holds(NAME, "Nobody takes part.")
    if instance.rates_per_server is not None:
        return does_not_apply(NAME, "Does not apply: the instance brings rates, and what is shared is time.")
    at_servers, in_all = _dominant_at_servers(case), _dominant_in_all(case)
    if not instance.eligibility[np.ix_(case.members, np.flatnonzero(instance.counts > 0))].all():
        in_all[:] = False
    if not (at_servers.any() or in_all.any()):
        ratio = safe_ratio(instance.demands[case.members], instance.total_capacity).argmax(axis=1)
        wanted = [f"{instance.resources[r]} for {case.name(case.members[ratio == r][0])}" for r in np.unique(ratio)]
        reason = f"dominant are {joined(wanted, 3)}" if len(wanted) > 1 else "it is not the same on all servers"
        return does_not_apply(NAME, f"Does not apply: no one resource is dominant for every user; {reason}.")
    r = int((at_servers if at_servers.any() else in_all).argmax())
    where = "on every server where it may run" if at_servers[r] else "in the whole cluster, though not on every server"
    return judge_resource(case, NAME, r, f"{instance.resources[r]} is dominant for every user {where}. ")


def judge_resource(case: Case, name: str, r: int, why: str) -> Verdict:
    """Judge the max-min fairness of one resource, d[n,r] x[n] / phi[n]."""
    from dataclasses import replace

    instance = case.instance
    weights = instance.weights if instance.weights.ndim == 1 else instance.weights[:, r]
    share = np.broadcast_to((instance.demands[:, r] / weights)[:, None], instance.eligibility.shape)
    verdict = judge(case, name, share, f"use of {instance.resources[r]}{' by weight' if (weights != 1).any() else ''}")
    return replace(verdict, statement=why + verdict.statement)


def _dominant_in_all(case: Case) -> BoolArray:
    """Return which resources are dominant in the whole cluster for every user, (resources,)."""
    instance = case.instance
    parts = safe_ratio(instance.demands, instance.total_capacity) / instance.weights.reshape(instance.n_users, -1)
    parts = parts[case.members]
    dominant: BoolArray = (parts >= parts.max(axis=1, keepdims=True) * (1 - case.same(NOTHING))).all(axis=0)
    return dominant


def _dominant_at_servers(case: Case) -> BoolArray:
    """Return which resources are dominant for every user on every server where it may run, (resources,); none, if some are of no server."""
    instance = case.instance
    if instance.shared:
        return np.zeros(instance.n_resources, bool)
    largest = case.zeros(case.members.size, instance.n_servers)
    weights = np.broadcast_to(instance.weights.reshape(instance.n_users, -1), instance.demands.shape)

    def parts(r: int) -> np.ndarray:
        return safe_ratio((instance.demands[:, r] / weights[:, r])[case.members, None], instance.capacities[:, r])

    for r in range(instance.n_resources):
        largest = np.maximum(largest, parts(r))
    allowed = instance.eligibility[case.members]
    return np.array([bool((parts(r) >= largest * (1 - case.same(NOTHING)))[allowed].all()) for r in range(instance.n_resources)])
