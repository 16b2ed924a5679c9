"""Hypothesis strategies: small instances with everything that an instance may have, and instances that are easy on solvers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from fairopt import Instance


@st.composite
def instances(
    draw: st.DrawFn, *, max_users: int = 5, max_servers: int = 4, max_resources: int = 3, one_server: bool = False, whole: bool = False
) -> Instance:
    """Zero demands, missing resources, constraints, counts, limits on tasks, weights over three orders of magnitude.

    ``whole`` takes small integers, with which reference solutions in fractions are exact.
    """
    n = draw(st.integers(1, max_users))
    k = 1 if one_server else draw(st.integers(1, max_servers))
    m = draw(st.integers(1, max_resources))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if whole:
        capacities = rng.integers(0, 9, (k, m)).astype(float)
        demands = rng.integers(0, 4, (n, m)).astype(float)
    else:
        capacities = rng.uniform(0.5, 10, (k, m)) * (rng.random((k, m)) > 0.15)
        demands = rng.uniform(0.05, 2, (n, m)) * (rng.random((n, m)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 1.0
    weights = eligibility = counts = tasks = None
    if draw(st.booleans()):
        weights = 10.0 ** rng.integers(-3, 4, n) if whole else 10 ** rng.uniform(-1.5, 1.5, n)
    if draw(st.booleans()):
        eligibility = rng.random((n, k)) < 0.7
    if draw(st.booleans()) and not one_server:
        counts = rng.integers(1, 4, k)
    if draw(st.booleans()):
        few = rng.integers(0, 5, n).astype(float) if whole else rng.uniform(0, 6, n)
        tasks = np.where(rng.random(n) < 0.4, few, np.inf)
    return Instance(capacities, demands, weights, eligibility, counts, tasks)
