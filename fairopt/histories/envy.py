"""How much owners whose work waits would rather have what another owner holds, at one moment.

Owner m holds the bundle b[m,i,r] on each row of servers i. Owner n, whose weight is phi[n], envies m by

    max over its streams s of  min(T[s], sum_i min_r phi[n] / phi[m] b[m,i,r] / d[s,r]) share[s]  -  (its own dominant share),

over the rows i where s may run and the resources r of servers, if that is positive: the dominant share that it would have with the bundle.
Of what m holds of a resource of the cluster, n has phi[n] / phi[m] as well, whatever the server. The envy of n is the largest towards an
owner of the same queue. For owners with one stream it is that of `fairopt.analysis.measures`, in shares instead of tasks. An owner with
several could divide the bundle among them, so for these it is a lower bound.
"""

from __future__ import annotations

import numpy as np

from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray
from fairopt.instance.tolerances import NOTHING

__all__ = ["envy_at"]


def envy_at(setting: Setting, wanted: FloatArray, held: FloatArray) -> FloatArray:
    """Return the envy of each owner, in dominant share; ``wanted`` (streams,) and ``held`` (streams, rows) are tasks."""
    number, rows = len(setting.owners), setting.cluster.n_servers
    has = held.sum(axis=1)
    own = setting.shares(has)
    envy = np.zeros(number)
    waiting = np.flatnonzero(wanted > has * (1 + NOTHING))
    holds = np.flatnonzero(has > 0)
    if not waiting.size or not holds.size:
        return envy
    servers = setting.cluster.n_server_resources
    demands, shared = setting.demands[:, :servers], setting.demands[:, servers:]
    bundles, of_cluster = np.zeros((number, rows, servers)), np.zeros((number, shared.shape[1]))
    np.add.at(bundles, setting.owner[holds], held[holds, :, None] * demands[holds, None, :])
    np.add.at(of_cluster, setting.owner[holds], has[holds, None] * shared[holds])
    rich = np.unique(setting.owner[holds])
    rich = rich[setting.weights[rich] > 0]
    for group in np.unique(setting.siblings[setting.owner[waiting]]):
        others = rich[setting.siblings[rich] == group]
        mine = waiting[setting.siblings[setting.owner[waiting]] == group]
        if not others.size:
            continue
        would = np.zeros((mine.size, others.size))
        for i in range(rows):
            would += np.where(setting.eligibility[mine, i, None], _fitting(bundles[others, i], demands[mine]), 0.0)
        if shared.shape[1]:
            would = np.minimum(would, _fitting(of_cluster[others], shared[mine]))
        would *= setting.weights[setting.owner[mine], None] / setting.weights[others][None]
        value = np.minimum(would, wanted[mine, None]) * setting.task_share[mine, None]
        value[setting.owner[mine, None] == others[None]] = 0.0
        best = value.max(axis=1)
        gain = best - own[setting.owner[mine]]
        gain[gain <= NOTHING * best] = 0.0
        np.maximum.at(envy, setting.owner[mine], gain)
    return envy


def _fitting(amounts: FloatArray, demands: FloatArray) -> FloatArray:
    """Return how many tasks of each demand, (n, resources), fit into each bundle, (m, resources), as (n, m); inf: they need nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = amounts[None] / demands[:, None]
    return np.asarray(np.where(demands[:, None] > 0, ratio, np.inf).min(axis=2, initial=np.inf))
