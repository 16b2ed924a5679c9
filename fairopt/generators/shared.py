"""Random resources of the whole cluster, such as licences, added to the instance of a generator.

>>> from fairopt.generators.instances import uniform
>>> instance = with_shared(uniform(users=6, servers=3, seed=1), 2, seed=1)
>>> instance.shared_demands.tolist(), instance.shared
([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], {'licence-1': 54.0, 'licence-2': 74.0})
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import Instance
from fairopt.validation import check_whole_number

__all__ = ["with_shared"]


def with_shared(instance: Instance, number: int, *, seed: int | list[int] | np.random.Generator = 0) -> Instance:
    """Return the instance with so many resources of the whole cluster.

    A task of a user demands one unit of each with probability 1/2, and at least one user demands it. Of each there is half of what its
    users could take with the N-th part of every server, N being the number of all users, rounded down, and at least one unit.

    Raises
    ------
    Unsupported
        The number is not a whole number >= 0.
    """
    check_whole_number("shared", number, 0)
    if not number:
        return instance
    rng = np.random.default_rng(seed)
    asks = rng.random((instance.n_users, number)) < 0.5
    asks[rng.integers(instance.n_users, size=number), np.arange(number)] = True
    slices = np.minimum(instance.rates.sum(axis=1) / instance.n_users, instance.tasks)
    names = [f"licence-{k + 1}" for k in range(number)]
    return instance.replace(
        demands=np.column_stack([instance.demands, asks]),
        shared=dict(zip(names, np.maximum(np.floor(slices @ asks / 2), 1.0).tolist(), strict=True)),
        resources=[*instance.resources, *names],
        weights=instance.weights if instance.weights.ndim == 1 else np.column_stack([instance.weights, np.ones(asks.shape)]),
    )
