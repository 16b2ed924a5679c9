"""Random trees of queues over the users of an instance, drawn after it from the same seed.

``queues`` queues have ``depth`` levels: the first ones are a chain of this length, and each further queue is in the root or in a queue
above the last level, all equally likely. Users are in the leaves: each leaf gets one user as long as there are any, and each further
user is in a leaf, all equally likely.

The leaves are guaranteed ``guarantees`` of the cluster together, the same part of each resource; how they divide it is uniform (Dirichlet,
all parameters 1). A queue above leaves is guaranteed what they are. With ``limits`` < 1, a queue with the guarantee g of C in the cluster
has the limit g + ``limits`` (C - g). With several ``tiers``, each queue in the root has one of 0, 1, ..., ``tiers`` - 1, all equally
likely. Weights of queues are 1, or U[1, ``weights``] if ``weights`` > 1, as those of users.

>>> lab = in_queues(Instance([[8, 64]], [[1, 4]] * 6, resources=["gpu", "cpu"]), 4, depth=2, guarantees=0.5, limits=0.25, seed=1)
>>> lab
Instance(6 users, 1 server, 2 resources: 8 gpu, 64 cpu; 4 queues of 2 levels)
>>> lab.queues[0].parent, lab.queues[1].parent
(None, 'queue-1')
>>> round(sum(queue.guarantee["gpu"] for queue in lab.queues if queue.parent is None), 9)
4.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.instance.queues import Queue
from fairopt.validation import check_whole_number, is_number
from fairopt.wording import written

__all__ = ["OPTIONS", "check_options", "in_queues"]

OPTIONS: dict[str, Any] = {"queues": 0, "depth": 2, "guarantees": 0.5, "limits": 1.0, "tiers": 1}
"""What every generator takes for a tree of queues, with its default; ``queues`` 0 is no tree."""


def check_options(queues: int = 0, depth: int | None = None, guarantees: float = 0.5, limits: float = 1.0, tiers: int = 1) -> None:
    """Refuse options that have no meaning.

    >>> check_options(queues=2, depth=3)
    Traceback (most recent call last):
    fairopt.errors.Unsupported: depth is 3; give a whole number >= 1 and < 3, at most one level for each queue
    """
    check_whole_number("queues", queues, 0)
    check_whole_number("tiers", tiers, 1)
    if depth is not None:
        below = queues + 1 if queues else None
        check_whole_number("depth", depth, 1, below=below, meaning=", at most one level for each queue" if below else "")
    if not is_number(guarantees) or guarantees < 0:
        raise Unsupported(
            f"guarantees is {written(guarantees)}; give the part of the cluster that is guaranteed, >= 0 (beyond 1: more than there is)"
        )
    if not is_number(limits) or not 0 <= limits <= 1:
        raise Unsupported(
            f"limits is {written(limits)}; give the part of the rest of the cluster that a queue may hold beyond its guarantee, from 0 to 1"
        )


def in_queues(
    instance: Instance,
    queues: int,
    *,
    depth: int | None = None,
    guarantees: float = 0.5,
    limits: float = 1.0,
    tiers: int = 1,
    weights: float = 1.0,
    seed: int | list[int] | np.random.Generator = 0,
) -> Instance:
    """Return the instance with its users in a random tree of ``queues`` queues; ``depth`` is 2 where there are as many queues.

    Raises
    ------
    Unsupported
        A value is not allowed.
    """
    check_options(queues, depth, guarantees, limits, tiers)
    if not queues:
        return instance
    rng = np.random.default_rng(seed)
    deepest = min(OPTIONS["depth"], queues) if depth is None else depth
    parent, level = np.full(queues, -1), np.ones(queues, int)
    for k in range(1, queues):
        above = k - 1 if k < deepest else int(rng.choice([-1, *np.flatnonzero(level[:k] < deepest)]))
        parent[k], level[k] = above, level[above] + 1 if above >= 0 else 1
    leaves = np.setdiff1d(np.arange(queues), parent)
    leaf = leaves[rng.integers(leaves.size, size=instance.n_users)]
    first = rng.permutation(instance.n_users)[: leaves.size]
    leaf[first] = rng.permutation(leaves)[: first.size]

    part = np.zeros(queues)
    part[leaves] = guarantees * rng.dirichlet(np.ones(leaves.size))
    for k in reversed(range(queues)):  # a parent comes before its children
        if parent[k] >= 0:
            part[parent[k]] += part[k]
    own = rng.uniform(1.0, weights, queues)
    tier = np.where(parent < 0, rng.integers(tiers, size=queues), 0)
    total = {name: amount for name, amount in zip(instance.resources, instance.total_capacity.tolist(), strict=True) if amount}
    names = [f"queue-{k + 1}" for k in range(queues)]
    return instance.replace(
        queues=[
            Queue(
                names[k],
                names[parent[k]] if parent[k] >= 0 else None,
                own[k],
                guarantee={name: part[k] * amount for name, amount in total.items()} if part[k] else {},
                limit={name: (part[k] + limits * max(1 - part[k], 0)) * amount for name, amount in total.items()} if limits < 1 else {},
                tier=int(tier[k]),
            )
            for k in range(queues)
        ],
        queue_of=[names[k] for k in leaf],
    )
