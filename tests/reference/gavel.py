"""Max-min fairness as Gavel defines it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]


def gavel_max_min(throughput: Array, scale: Array, weight: Array, workers: Array) -> float:
    """Section 4.1: max over X of min_m (1/w_m) thr(m, X) / thr(m, X_equal) s_m; X[m,:] sums to <= 1, sum_m s_m X[m,j] <= workers[j]."""
    jobs, kinds = throughput.shape
    equal = throughput @ (workers / workers.sum())
    columns = jobs * kinds
    per_job, per_kind = np.zeros((jobs, columns + 1)), np.zeros((kinds, columns + 1))
    level = np.zeros((jobs, columns + 1))
    for m in range(jobs):
        for j in range(kinds):
            per_job[m, m * kinds + j] = 1.0
            per_kind[j, m * kinds + j] = scale[m]
            level[m, m * kinds + j] = -throughput[m, j] / equal[m] * scale[m] / weight[m]
    level[:, -1] = 1.0
    answer = linprog(
        np.append(np.zeros(columns), -1.0),
        A_ub=np.vstack([level, per_job, per_kind]),
        b_ub=np.concatenate([np.zeros(jobs), np.ones(jobs), workers]),
        method="highs-ds",
    )
    return -float(answer.fun)  # type: ignore[arg-type]
