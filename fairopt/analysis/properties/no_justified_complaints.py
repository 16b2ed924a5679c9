"""No justified complaints: every user has all its tasks, or its entitlement of some full resource.

The property is about one pool. User n is entitled to the part e[n] = phi[n] / sum phi. User n has no justified complaint if it has all its
tasks, or if it uses some full resource j with x[n] d[n,j] / c[j] >= e[n] (Dolev et al. 2012, equation (2)). A user without a task limit
asks for one task under "bbf", and for unlimited tasks under other notions. Sums are over the users who may run and demand something.

The violation is in tasks: what n lacks of its entitlement, at the full resource where it lacks least. If n uses no full resource, the
violation is the number of tasks that n could add.
"""

from __future__ import annotations

import numpy as np

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.wording import figure, joined, plural

__all__ = ["NAME", "check"]

NAME = "no-justified-complaints"


def check(case: Case) -> Verdict:
    """Compare what every user has with its entitlement."""
    instance, allocation = case.instance, case.allocation
    if (instance.counts > 0).sum() != 1:
        return does_not_apply(NAME, f"Does not apply: it is about one pool, and there are {plural(instance.counts.sum(), 'server')}.")
    if case.sharing == "tdm":
        return does_not_apply(NAME, "Does not apply: it is about resources, and time is shared.")
    if instance.weights.ndim == 2:
        return does_not_apply(NAME, "Does not apply: an entitlement is one weight, and there is one for each resource.")
    if instance.limited.any():
        return does_not_apply(NAME, "Does not apply: parallelism limits a user to a part of the pool, which is not a request.")
    pool = int(np.flatnonzero(instance.counts > 0)[0])
    capacity, held = np.concatenate([instance.row_capacity[pool], instance.shared_capacity]), allocation.tasks_per_user
    entitled = (
        instance.weights / instance.weights[instance.servable & ~instance.zero_demand].sum() if case.members.size else instance.weights
    )
    used = held @ instance.demands
    full = (capacity > 0) & (used >= capacity * (1 - case.tolerance))
    asked = instance.demands > 0
    bound = asked & full
    endless = np.full(asked.shape, np.inf, held.dtype)
    due = np.divide(entitled[:, None] * capacity, instance.demands, out=endless.copy(), where=bound)  # tasks, at each full resource
    room = np.divide(capacity - used, instance.demands, out=endless, where=asked).min(axis=1)
    lack = np.where(bound.any(axis=1), due.min(axis=1) - held, room)
    lack = np.where(case.part, np.minimum(lack, instance.tasks - held), 0)
    complaints = np.flatnonzero(lack > case.slack)
    if not complaints.size:
        return holds(NAME, "Everybody has all its tasks, or its entitlement of a resource that is full.")
    n = case.first_largest(complaints, lack)
    if bound[n].any():
        parts = [
            f"{figure(held[n] * instance.demands[n, j] / capacity[j], 6)} of {instance.resources[j]} (for {figure(entitled[n], 6)} it "
            f"lacks {plural(due[n, j] - held[n], 'task')})"
            for j in np.flatnonzero(bound[n])
        ]
        text = f"{case.name(n)} is entitled to {figure(entitled[n], 6)} of something that is full, and has {joined(parts, 3)}."
    else:
        text = f"{case.name(n)} runs {plural(held[n], 'task')}, and nothing that it uses is full: {figure(lack[n], 6)} more would fit."
    witness = Witness(text, (instance.users[n],), (instance.servers[pool],))
    return violated(NAME, lack[n], f"{plural(complaints.size, 'user has', 'users have')} a justified complaint.", witness)
