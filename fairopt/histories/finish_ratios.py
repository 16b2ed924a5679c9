"""How much later than alone the jobs of a log ended: finish-time ratios (K. Mahajan and others, Themis, NSDI 2020).

    rho = (end - submission) / (the same, if the owner had been alone with the slice of its weight)

Alone, the jobs of an owner run in the order of submission on its slice of every server and of every resource of the cluster
(`fairopt.simulation.running_alone`). The slice is the weight of the owner among its siblings in the log, times the slice of the queue
around it. Named limits and guarantees are not in it. Above 1 a job ended later than alone.

A stay of a job (a run, with the wait before it) counts by itself. The work of a stay that had not ended when the log was written is what it
had done by then; it has no ratio, and neither has one that never ran. A wait that is not judged is not in the ratio.

>>> import pandas as pd
>>> from fairopt.histories.running import history
>>> from fairopt.instance import Instance
>>> jobs = pd.DataFrame({
...     "user": ["A", "B"], "submit": [0, 3600], "start": [0, 7200], "end": [7200, 10800], "tasks": [8, 8], "cpu": [1, 1]})
>>> found = history(jobs, Instance([[8]], [[1]], resources=["cpu"]))  # with 4 CPUs A needs 4 h, B 2 h
>>> found.finish_ratios.to_dict("records")
[{'job': '1', 'owner': 'A', 'end': 7200.0, 'ratio': 0.5}, {'job': '2', 'owner': 'B', 'end': 10800.0, 'ratio': 1.0}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairopt.histories.setting import Setting
from fairopt.instance import FloatArray, Instance
from fairopt.instance.aggregation import number_distinct
from fairopt.program.most_work import work_of_slice
from fairopt.simulation.running_alone import run_alone

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["finish_ratios", "slices"]


def finish_ratios(setting: Setting) -> pd.DataFrame:
    """Return a row for each stay that ended: its job, its owner, its end in seconds, and its ratio (nan: alone it never ends)."""
    import pandas as pd

    log, cluster = setting.log, setting.cluster
    ran = np.flatnonzero(np.isfinite(log.start) & (log.start < log.end))
    job, stream = pd.factorize(log.jobs[ran])[0], setting.stream[ran]
    submit, start, end = log.submit[ran], log.start[ran], log.end[ran]
    stay = number_distinct([np.column_stack([job, submit, start, end])])  # its parts are on several rows of servers
    part = number_distinct([np.column_stack([stay, stream])])
    first = np.unique(part, return_index=True)[1]
    tasks = np.asarray(log.tasks[ran], float)
    at_once, pace = (np.bincount(part, weights=each) for each in (tasks, tasks * setting.tasks.work(stream, log.row[ran])))
    order = np.lexsort((first, submit[first]))
    first, pace = first[order], pace[order]
    work = pace * (np.where(np.isfinite(end), end, log.span[1])[first] - start[first])
    fastest = setting.tasks.fastest(setting.eligibility)[stream[first]]
    most = at_once[order] * fastest
    slice_of = slices(setting)[setting.owner]
    of_tasks = setting.tasks.arguments(np.arange(setting.n_streams))
    alone = Instance(cluster.capacities, **of_tasks, eligibility=setting.eligibility, counts=cluster.counts, shared=cluster.shared)
    rates = [work_of_slice(alone, slice_of).tolist()]
    ends, owner = np.full(first.size, np.nan), setting.owner[stream[first]]
    by_owner = np.argsort(owner, kind="stable")
    for own in np.split(by_owner, np.flatnonzero(np.diff(owner[by_owner])) + 1):
        asked = submit[first[own]].tolist(), work[own].tolist(), most[own].tolist(), stream[first[own]].tolist()
        ends[own] = run_alone(*asked, [-np.inf], rates)
    last = np.full(int(stay.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(last, stay[first], np.where(np.isnan(ends), np.inf, ends))
    one = np.unique(stay, return_index=True)[1]
    one = one[np.isfinite(end[one])]
    one = one[np.lexsort((one, end[one]))]
    took = last[stay[one]] - submit[one]
    ratio = np.divide(end[one] - submit[one], took, out=np.full(one.size, np.nan), where=np.isfinite(took) & (took > 0))
    owners = np.array(setting.owners, object)[setting.owner[stream[one]]]
    return pd.DataFrame({"job": log.jobs[ran][one], "owner": owners, "end": end[one], "ratio": ratio})


def slices(setting: Setting) -> FloatArray:
    """Return the part of the cluster that is the slice of each owner, (owners,); their sum is 1.

    The weight of an owner, or of a queue, counts among the siblings that have owners in the log.
    """
    instance, active = setting.instance(np.ones(setting.n_streams))
    tree, at, weights = instance.tree, instance.tree.user_node, instance.weights
    total = np.bincount(at, weights=weights, minlength=tree.n_nodes)
    some = np.bincount(at, minlength=tree.n_nodes) > 0
    for node in tree.upwards():
        if node and some[node]:
            some[tree.parent[node]] = True
            total[tree.parent[node]] += tree.weights[node]
    part = np.zeros(tree.n_nodes)
    part[0] = 1.0
    for node in tree.downwards():
        if node and some[node] and total[tree.parent[node]] > 0:
            part[node] = part[tree.parent[node]] * tree.weights[node] / total[tree.parent[node]]
    of_users = np.divide(part[at] * weights, total[at], out=np.zeros(weights.size), where=total[at] > 0)
    return np.asarray(np.bincount(setting.owner[active], weights=of_users, minlength=len(setting.owners)))
