"""Servers with GPUs of one kind or several, and users whose tasks take some of them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from fairopt.errors import Unsupported
from fairopt.formats.throughputs import THROUGHPUTS, throughputs_of, workers_of
from fairopt.generators.parameters import Seed, check_parameters, weights_of
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.tables import Rows, read
from fairopt.validation import check_whole_number

__all__ = ["gpus"]

_GPUS_OF_SERVER = {2: 0.3, 4: 0.3, 8: 0.4}  # number of GPUs: probability; these numbers are our own and describe no trace
_GPUS_OF_TASK = {0: 0.5, 1: 0.3, 2: 0.1, 4: 0.06, 8: 0.04}  # 0: a fraction of one GPU
_PER_GPU = ((12.0, (4.0, 16.0)), (96.0, (16.0, 128.0)))  # cores, then GiB, for each GPU: of a server, and the range of a task
_FASTER = 4.0  # the most by which a kind is faster than the kind before it


def gpus(
    users: int = 40,
    servers: int = 50,
    *,
    kinds: int | None = None,
    table: str | os.PathLike[str] | None = None,
    load: float = 1.0,
    weights: float = 1.0,
    seed: Seed = 0,
) -> Instance:
    """Servers with GPUs of one kind or several, and users whose tasks take a fraction of a GPU, one GPU or several.

    All tasks together demand ``load`` times all GPUs. The numbers are our own and describe no trace.

    A server has 2, 4 or 8 GPUs (with probabilities 0.3, 0.3, 0.4), and 12 cores and 96 GiB for each GPU. A task demands 0.25, 0.3, ...,
    0.95 of a GPU (probability 0.5 in all, each value equally likely), or 1 (0.3), 2 (0.1), 4 (0.06) or 8 (0.04) GPUs, but at most as many
    as the largest server has. For each GPU it also demands U[4, 16] cores, at most 12, and U[16, 128] GiB, at most 96. All users demand the
    same total number of GPUs, rounded to whole tasks; each has at least one task.

    With ``kinds`` K, each server has GPUs of one of K kinds, its attribute ``model``; every kind is equally likely, and there is a server
    of each if there are enough servers. The speed of a task is 1 on its fastest kind there. Without a table, a user is f times as fast on a
    kind as on the kind before it, ln f being U[0, ln 4] for every user and kind: between two neighbours of K80, P100 and V100, Gavel
    measured 0.4 to 8.7, with medians of 3.2 and 1.3.

    ``table`` is a file of measured throughputs (:mod:`fairopt.formats.throughputs`); its first K workers, by default all, are the kinds. A
    user is then a (job type, scale) of the table, each equally likely, of those that fit on the largest server and run on a kind that there
    is. Its task demands ``scale`` GPUs, and its speeds are its throughputs divided by the largest.

    >>> instance = gpus(users=3, servers=4, seed=1)
    >>> instance
    Instance(3 users, 4 servers, 3 resources: 22 gpu, 264 cpu, 2,112 memory; 3 users with finitely many tasks)
    >>> instance.demands[:, 0], instance.tasks
    (array([0.4 , 0.55, 2.  ]), array([18., 13.,  4.]))
    >>> lab = gpus(users=2, servers=3, kinds=3, seed=1)
    >>> [attributes["model"] for attributes in lab.attributes], lab.speeds.round(2)
    (['gpu-1', 'gpu-2', 'gpu-3'], array([[0.22, 0.66, 1.  ],
           [0.47, 0.57, 1.  ]]))
    """
    check_parameters(users=users, servers=servers, weights=weights, load=load)
    if kinds is not None:
        check_whole_number("kinds", kinds, 1)
    rng = np.random.default_rng(seed)
    of_server = rng.choice(list(_GPUS_OF_SERVER), servers, p=list(_GPUS_OF_SERVER.values())).astype(float)
    cards = rng.choice(list(_GPUS_OF_TASK), users, p=list(_GPUS_OF_TASK.values()))
    of_task = np.where(cards == 0, rng.integers(5, 20, users) / 20, np.minimum(cards, of_server.max()))
    per_gpu = [np.minimum(rng.uniform(*asked, users), there) for there, asked in _PER_GPU]
    weight = weights_of(users, weights, rng)
    models, speeds = None, None
    if table is not None:
        names, of_jobs, of_kinds = _measured(table, kinds, int(of_server.max()))
        kind_of = _kinds_of(servers, len(names), rng)
        runs = np.flatnonzero(of_kinds[:, np.unique(kind_of)].any(axis=1))
        if not runs.size:
            raise Unsupported(f"{table}: no job runs on the kinds of the {servers} servers drawn; ask for more servers")
        job = runs[rng.integers(runs.size, size=users)]
        of_task, speeds, models = of_jobs[job], of_kinds[job][:, kind_of], [names[k] for k in kind_of]
    elif kinds is not None and kinds > 1:
        kind_of = _kinds_of(servers, kinds, rng)
        speeds = np.exp(np.cumsum(rng.uniform(0, np.log(_FASTER), (users, kinds)), axis=1))[:, kind_of]
        models = [f"gpu-{k + 1}" for k in kind_of]
    return Instance(
        np.outer(of_server, [1.0, *(there for there, _ in _PER_GPU)]),
        np.column_stack([of_task, *(of_task * each for each in per_gpu)]),
        weights=weight,
        tasks=np.maximum(np.round(load * of_server.sum() / users / of_task), 1.0),
        speeds=None if speeds is None else speeds / speeds.max(axis=1, keepdims=True),
        attributes=None if models is None else [{"model": model} for model in models],
        resources=["gpu", "cpu", "memory"],
    )


def _kinds_of(servers: int, kinds: int, rng: np.random.Generator) -> IntArray:
    """Return the kind of each server: all kinds in random order first, as far as there are servers, then any."""
    kind_of = np.concatenate([rng.permutation(kinds)[:servers], rng.integers(kinds, size=max(servers - kinds, 0))])
    return np.asarray(rng.permutation(kind_of), np.int64)


def _measured(table: str | os.PathLike[str], kinds: int | None, largest: int) -> tuple[list[str], FloatArray, FloatArray]:
    """Return the kinds of a table, and its jobs of at most so many GPUs: GPUs, (jobs,), and throughputs, (jobs, kinds).

    Raises
    ------
    Unsupported, InvalidInstance
    """
    rows = Rows(read(Path(table), THROUGHPUTS))
    workers = workers_of(rows)
    if kinds is not None and kinds > len(workers):
        raise Unsupported(f"kinds is {kinds}, and {table} has {len(workers)} workers: {', '.join(workers)}; give at most {len(workers)}")
    measured = throughputs_of(rows, workers[:kinds])
    jobs = {(name, scale): found for (name, scale), found in measured.items() if scale <= largest}
    if not jobs:
        raise Unsupported(f"{table}: every job takes more than the {largest} GPUs of the largest server drawn; ask for more servers")
    return workers[:kinds], np.array([float(scale) for _, scale in jobs]), np.nan_to_num(np.array(list(jobs.values())))
