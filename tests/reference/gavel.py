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


def gavel_finish_time(
    throughput: Array, scale: Array, workers: Array, left: Array, elapsed: Array, alone: Array, within: float = 1e-9
) -> float:
    """Section 4.2 and its code: the least largest rho = (elapsed + left / thr(m, X)) / (alone + left / thr(m, X_isolated)), by bisection.

    X_isolated gives each of m jobs its part of the workers, workers / m / s_m of the time, and no more than all of its time.
    """
    jobs, kinds = throughput.shape
    isolated = workers / jobs / scale[:, None]
    isolated = isolated / np.maximum(isolated.sum(axis=1, keepdims=True), 1.0)
    due = alone + left / (throughput * isolated).sum(axis=1)
    per_job, per_kind = np.kron(np.eye(jobs), np.ones(kinds)), np.kron(scale, np.eye(kinds))
    rates = np.kron(np.eye(jobs), np.ones(kinds)) * throughput.ravel()
    limits = np.concatenate([np.ones(jobs), workers])

    def holds(rho: float) -> bool:
        """Return whether the rates that rho needs are there: the largest multiple of them that fits is at least 1."""
        if (rho * due <= elapsed).any():
            return False
        needs = left / (rho * due - elapsed) / throughput.max(axis=1)
        answer = linprog(
            np.append(np.zeros(jobs * kinds), -1.0),
            A_ub=np.block(
                [[-rates / throughput.max(axis=1)[:, None], needs[:, None]], [np.vstack([per_job, per_kind]), np.zeros((jobs + kinds, 1))]]
            ),
            b_ub=np.concatenate([np.zeros(jobs), limits]),
            method="highs-ds",
        )
        return bool(-answer.fun >= 1)  # type: ignore[operator]

    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2 * high
    while high - low > within * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
