"""How much owners whose work waits would rather have what another owner holds, at one moment.

Owner m holds the bundle b[m,i,r] on each row of servers i. Owner n, whose weight is phi[n], envies m by

    max over its streams s of  min(T[s], sum_i min_r phi[n] / phi[m] b[m,i,r] / d[s,r]) share[s]  -  (its own dominant share),

over the rows i where s may run and the resources r of servers, if that is positive: the dominant share that it would have with the bundle.
Of what m holds of a resource of the cluster, n has phi[n] / phi[m] as well, whatever the server. The envy of n is the largest towards an
owner of the same queue. For owners with one stream it is that of `fairopt.analysis.measures`, in shares instead of tasks. An owner with
several could divide the bundle among them, so for these it is a lower bound. Where demands or speeds differ by server, s takes d[s,i,r] on
row i, and the most work that s could do with the bundle, within its tasks, is in the place of the sum over i.
"""

from __future__ import annotations

import numpy as np

from fairopt.analysis.bundles import Row, most_of
from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray, IntArray
from fairopt.instance.tolerances import NOTHING

__all__ = ["envy_at"]


def envy_at(setting: Setting, wanted: FloatArray, held: FloatArray) -> FloatArray:
    """Return the envy of each owner, in dominant share; ``wanted`` (streams,) and ``held`` (streams, rows) are tasks."""
    number, rows = len(setting.owners), setting.cluster.n_servers
    has, of_tasks = held.sum(axis=1), setting.tasks
    own = setting.shares(of_tasks.work_of(held))
    envy = np.zeros(number)
    waiting = np.flatnonzero(wanted > has * (1 + NOTHING))
    holds = np.flatnonzero(has > 0)
    if not waiting.size or not holds.size:
        return envy
    servers = setting.cluster.n_server_resources
    bundles = np.zeros((number, rows, setting.cluster.n_resources))
    for i in range(rows):
        np.add.at(bundles[:, i], setting.owner[holds], held[holds, i, None] * of_tasks.taken(holds, np.full(holds.size, i)))
    of_cluster = bundles[:, :, servers:].sum(axis=1)
    rich = np.unique(setting.owner[holds])
    rich = rich[setting.weights[rich] > 0]
    for group in np.unique(setting.siblings[setting.owner[waiting]]):
        others = rich[setting.siblings[rich] == group]
        mine = waiting[setting.siblings[setting.owner[waiting]] == group]
        if not others.size:
            continue
        scale = setting.weights[setting.owner[mine], None] / setting.weights[others][None]
        possible = np.zeros((rows, mine.size, others.size))  # tasks
        for i in range(rows):
            demands = of_tasks.taken(mine, np.full(mine.size, i))[:, :servers]
            possible[i] = np.where(setting.eligibility[mine, i, None], _fitting(bundles[others, i, :servers], demands, scale), 0.0)
        if of_tasks.differ:
            would = _most_work(setting, mine, possible, scale[:, :, None] * of_cluster[others], wanted[mine])
        else:
            within = _fitting(of_cluster[others], of_tasks.usual[mine, servers:], scale)
            would = np.minimum(np.minimum(possible.sum(axis=0), within), wanted[mine, None])
        value = would * setting.task_share[mine, None]
        value[setting.owner[mine, None] == others[None]] = 0.0
        best = value.max(axis=1)
        gain = best - own[setting.owner[mine]]
        gain[gain <= NOTHING * best] = 0.0
        np.maximum.at(envy, setting.owner[mine], gain)
    return envy


def _most_work(setting: Setting, mine: IntArray, possible: FloatArray, of_cluster: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the most work of streams, (mine,), with what others hold, (mine, others).

    Parameters
    ----------
    possible : array (rows, mine, others)
        Tasks that fit on each row into what another holds there.
    of_cluster : array (mine, others, shared)
    wanted : array (mine,)
        Tasks.
    """
    rows, n_servers = len(possible), setting.cluster.n_server_resources
    found = np.zeros(possible.shape[1:])
    every = np.arange(rows)
    for k, stream in enumerate(mine.tolist()):
        taken, work = setting.tasks.taken(np.full(rows, stream), every), setting.tasks.work(np.full(rows, stream), every)
        for m in np.flatnonzero((possible[:, k] > 0).any(axis=0)):
            shared = zip(taken[:, n_servers:].T, of_cluster[k, m], strict=True)
            limits = [Row(np.ones(rows), wanted[k]), *(Row(per_task, amount) for per_task, amount in shared)]
            found[k, m] = most_of(possible[:, k, m], work, limits)
    return found


def _fitting(amounts: FloatArray, demands: FloatArray, scale: FloatArray) -> FloatArray:
    """Return how many tasks of each demand, (n, resources), fit into ``scale`` of each bundle, (m, resources), as (n, m).

    inf: they need nothing.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = scale[:, :, None] * amounts[None] / demands[:, None]
    return np.asarray(np.where(demands[:, None] > 0, ratio, np.inf).min(axis=2, initial=np.inf))
