"""Servers with GPUs, and users whose tasks take some of them."""

from __future__ import annotations

import numpy as np

from fairopt.generators.parameters import Seed, check_parameters, weights_of
from fairopt.instance import Instance

__all__ = ["gpus"]

_GPUS_OF_SERVER = {2: 0.3, 4: 0.3, 8: 0.4}  # number of GPUs: probability; these numbers are our own and describe no trace
_GPUS_OF_TASK = {0: 0.5, 1: 0.3, 2: 0.1, 4: 0.06, 8: 0.04}  # 0: a fraction of one GPU
_PER_GPU = ((12.0, (4.0, 16.0)), (96.0, (16.0, 128.0)))  # cores, then GiB, for each GPU: of a server, and the range of a task


def gpus(users: int = 40, servers: int = 50, *, load: float = 1.0, weights: float = 1.0, seed: Seed = 0) -> Instance:
    """Servers with GPUs, and users whose tasks take a fraction of a GPU, one GPU or several.

    All tasks together demand ``load`` times all GPUs. The numbers are our own and describe no trace.

    A server has 2, 4 or 8 GPUs (with probabilities 0.3, 0.3, 0.4), and 12 cores and 96 GiB for each GPU. A task demands 0.25, 0.3, ...,
    0.95 of a GPU (probability 0.5 in all, each value equally likely), or 1 (0.3), 2 (0.1), 4 (0.06) or 8 (0.04) GPUs, but at most as many
    as the largest server has. For each GPU it also demands U[4, 16] cores, at most 12, and U[16, 128] GiB, at most 96. All users demand the
    same total number of GPUs, rounded to whole tasks; each has at least one task.

    >>> instance = gpus(users=3, servers=4, seed=1)
    >>> instance
    Instance(3 users, 4 servers, 3 resources: 22 gpu, 264 cpu, 2,112 memory; 3 users with finitely many tasks)
    >>> instance.demands[:, 0], instance.tasks
    (array([0.4 , 0.55, 2.  ]), array([18., 13.,  4.]))
    """
    check_parameters(users=users, servers=servers, weights=weights, load=load)
    rng = np.random.default_rng(seed)
    of_server = rng.choice(list(_GPUS_OF_SERVER), servers, p=list(_GPUS_OF_SERVER.values())).astype(float)
    cards = rng.choice(list(_GPUS_OF_TASK), users, p=list(_GPUS_OF_TASK.values()))
    of_task = np.where(cards == 0, rng.integers(5, 20, users) / 20, np.minimum(cards, of_server.max()))
    demands = [of_task, *(of_task * np.minimum(rng.uniform(*asked, users), there) for there, asked in _PER_GPU)]
    return Instance(
        np.outer(of_server, [1.0, *(there for there, _ in _PER_GPU)]),
        np.column_stack(demands),
        weights=weights_of(users, weights, rng),
        tasks=np.maximum(np.round(load * of_server.sum() / users / of_task), 1.0),
        resources=["gpu", "cpu", "memory"],
    )
