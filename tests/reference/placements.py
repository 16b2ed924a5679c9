"""Every placement of whole tasks of a tiny instance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

import fairopt as fo

__all__ = ["placements"]


def placements(instance: fo.Instance) -> Iterator[np.ndarray]:
    """Yield every placement of whole tasks within capacities and limits of tasks, (users, servers)."""
    users, servers = instance.n_users, instance.n_servers
    most = [
        [int(min([*(c // d for c, d in zip(instance.capacities[i], instance.demands[n], strict=True) if d > 0)])) for i in range(servers)]
        for n in range(users)
    ]
    per_server = []
    for i in range(servers):
        counts = itertools.product(*(range(most[n][i] + 1 if instance.eligibility[n, i] else 1) for n in range(users)))
        per_server.append([c for c in counts if (np.array(c) @ instance.demands <= instance.capacities[i] + 1e-9).all()])
    for chosen in itertools.product(*per_server):
        table = np.array(chosen).T
        if (table.sum(axis=1) <= instance.tasks).all():
            yield table
