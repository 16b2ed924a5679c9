"""The Pareto frontier by one linear program for each total."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

import fairopt as fo


def largest_share(instance: fo.Instance, total: float, sharing: str) -> float:
    """The largest smallest share with at least this many tasks: one linear program of SciPy's, straight from the instance's arrays."""
    pairs = [(int(n), int(i)) for n, i in np.argwhere(instance.eligibility)]
    number = len(pairs)
    rows, bounds = [np.array([-1.0] * number + [0.0])], [-total]
    for i in range(instance.n_servers):
        mine = np.array([j == i for _, j in pairs] + [False])
        if sharing == "tdm":
            rows.append(np.array([1 / instance.rates[n, i] if j == i else 0.0 for n, j in pairs] + [0.0]))
            bounds.append(1.0)
            continue
        for r in range(instance.n_resources):
            rows.append(np.where(mine, np.array([instance.demands[n, r] for n, _ in pairs] + [0.0]), 0.0))
            bounds.append(instance.counts[i] * instance.capacities[i, r])
    total_capacity = [
        sum(instance.counts[i] * instance.capacities[i, r] for i in range(instance.n_servers)) for r in range(instance.n_resources)
    ]
    for n in range(instance.n_users):
        own = np.array([1.0 if m == n else 0.0 for m, _ in pairs] + [0.0])
        if np.isfinite(instance.tasks[n]):
            rows.append(own)
            bounds.append(instance.tasks[n])
        if own.any() and instance.tasks[n] > 0:
            share = max(d / c for d, c in zip(instance.demands[n], total_capacity, strict=True) if d > 0) / instance.weights[n]
            rows.append(-share * own + np.eye(number + 1)[number])
            bounds.append(0.0)
    answer = linprog(-np.eye(number + 1)[number], A_ub=np.array(rows), b_ub=bounds, method="highs")
    assert answer.status == 0
    return -float(answer.fun or 0.0)
