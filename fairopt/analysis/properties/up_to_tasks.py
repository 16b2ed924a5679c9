"""Envy between users of whole tasks, less the worth of a task: what `ef1` and `efx` share.

The tasks of user m are goods, each with what it takes on its server. To user n, a task of m on server i is worth

    u[n,m,i] = phi[n] / phi[m] min_r d[m,r] / d[n,r]        (under time division phi[n] / phi[m] gamma[n,i] / gamma[m,i])

tasks if n may run there, else 0; parts of tasks count, as in envy-freeness. What m holds is worth the sum over its tasks. The envy of n
towards m without one task on server j is

    min(T[n], sum_i x[m,i] u[n,m,i] - u[n,m,j]) - x[n].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance import safe_ratio
from fairopt.wording import figure, plural, quotient

__all__ = ["envy_without_a_task", "why_not"]


def why_not(case: Case) -> str:
    """Return why the tasks of users are no goods with a worth each; empty if they are."""
    instance = case.instance
    if not case.whole:
        return "Does not apply: it is about whole tasks; audit an allocation with integral=True, or a schedule."
    reasons = {
        "weights per resource give no single number to scale what a user holds": instance.weights.ndim == 2,
        "limits on parallelism": bool(instance.limited.any()),
        "resources of the whole cluster": bool(instance.shared_capacity.size),
        "speeds, or a utility of the notion,": case.worth is not None,
        "rows of a program's own": bool(case.own_rows),
    }
    found = next((reason for reason, there in reasons.items() if there), "")
    return f"Does not apply: with {found} the tasks of another user have no worth one by one." if found else ""


def envy_without_a_task(case: Case, name: str, removed: Callable[[Any], Any], which: str) -> Verdict:
    """Judge the envy that is left without one task of the other user.

    Parameters
    ----------
    removed : function
        Of the worths of the tasks that the envious user values, (tasks,): the one of the task that is taken away.
    which : str
        Which task that is, in words.
    """
    if reason := why_not(case):
        return does_not_apply(name, reason)
    instance, tasks, members = case.instance, case.allocation.tasks, case.members
    best: Any = 0
    pair, enviers = (0, 0, 0), 0
    for n in members.tolist():
        envies = False
        for m in members[members != n].tolist():
            worth = _worths(case, n, m)
            valued = np.flatnonzero((tasks[m] > 0) & (worth > 0))
            if not valued.size:
                continue
            j = valued[list(worth[valued]).index(removed(worth[valued]))]
            left = (tasks[m] * worth).sum() - worth[j]
            envy = min(instance.tasks[n], left) - case.value[n]
            if envy > case.slack[n]:
                envies = True
                if envy > best:
                    best, pair = envy, (n, m, int(j))
        enviers += envies
    if not enviers:
        return holds(name, f"Nobody would run more with what another holds, scaled by weight, without {which}.")
    n, m, j = pair
    weights = instance.weights
    scale = "" if weights[n] == weights[m] else f", times {quotient(weights[n], weights[m])} for the weights"
    witness = Witness(
        f"{case.name(n)} runs {case.amount(case.value[n])}. With what {case.name(m)} holds where {case.name(n)} may run{scale}, but "
        f"without a task of it on {instance.servers[j]}, {case.name(n)} would run {figure(case.value[n] + best, 6)}.",
        (instance.users[n], instance.users[m]),
        (instance.servers[j],),
    )
    return violated(name, best, f"{plural(enviers, 'user envies', 'users envy')} another even without {which}.", witness)


def _worths(case: Case, n: int, m: int) -> Any:
    """Return u[n,m,i], (servers,)."""
    instance = case.instance
    if case.sharing == "tdm":
        each = safe_ratio(instance.rates[n], instance.rates[m])
    else:
        server = slice(instance.n_server_resources)
        own, others = instance.demands_by_row(n)[:, server], instance.demands_by_row(m)[:, server]
        ratio = np.where(own > 0, safe_ratio(others, np.where(own > 0, own, 1)), np.inf)
        each = ratio.min(axis=1)
    both = instance.eligibility[n] & instance.eligibility[m]
    return np.where(both, each, 0) * (instance.weights[n] / instance.weights[m])
