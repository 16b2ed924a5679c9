"""Instances of the benchmarks, all seeded."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fairopt as fo
from fairopt.generators import google_servers

LAB = Path(__file__).resolve().parent.parent / "examples" / "gpu-lab"
GOOGLE = Path(__file__).resolve().parent.parent / "examples" / "google-cluster.yaml"


def all_pairs(users: int, servers: int, resources: int, seed: int = 0) -> fo.Instance:
    """Positive demands, everybody may run everywhere, weights from 1 to 5: mostly one level."""
    return fo.generate("uniform", users=users, servers=servers, resources=resources, weights=5, seed=seed)


def some_pairs(users: int, servers: int, resources: int, part: float, seed: int = 0) -> fo.Instance:
    """The same with a part of the pairs eligible, one of each user at least."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((users, servers)) < part
    eligibility[np.arange(users), rng.integers(servers, size=users)] = True
    return all_pairs(users, servers, resources, seed).replace(eligibility=eligibility)


def few_servers_each(users: int, servers: int, resources: int, seed: int = 0) -> fo.Instance:
    """Each user on one to three servers, 30 % of the demands zero: many levels."""
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(1, 10, (servers, resources))
    demands = rng.uniform(0.01, 0.1, (users, resources)) * (rng.random((users, resources)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 0.05
    weights = rng.uniform(1, 5, users)
    eligibility = np.zeros((users, servers), bool)
    for n in range(users):
        eligibility[n, rng.choice(servers, rng.integers(1, 4), replace=False)] = True
    return fo.Instance(capacities, demands, weights=weights, eligibility=eligibility)


def in_zones(users: int, servers: int, resources: int, zones: int = 40, anywhere: float = 0.3, seed: int = 0) -> fo.Instance:
    """Servers in zones, 30 % of the demands zero: some tens of levels.

    ``anywhere`` is the part of users who may run on every server. The others may run in one or two zones, the k-th with a probability in
    proportion to 1 / k. One user in ten has a number of tasks: 0.2 to 2 times what the part of the cluster that is in proportion to its
    weight would hold.
    """
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(5, 50, (servers, resources))
    demands = rng.uniform(0.01, 1, (users, resources))
    demands[rng.random((users, resources)) < 0.3] = 0.0
    demands[demands.sum(axis=1) == 0, 0] = 0.5
    weights = rng.uniform(1, 5, users)
    zone, chance = np.arange(servers) % zones, 1 / np.arange(1, zones + 1)
    eligibility = np.ones((users, servers), bool)
    for n in np.flatnonzero(rng.random(users) >= anywhere):
        eligibility[n] = np.isin(zone, rng.choice(zones, rng.integers(1, 3), replace=False, p=chance / chance.sum()))
    tasks, few = np.full(users, np.inf), rng.random(users) < 0.1
    alone = (capacities.sum(axis=0) / np.maximum(demands[few], 1e-9)).min(axis=1)
    tasks[few] = np.ceil(weights[few] / weights.sum() * alone * rng.uniform(0.2, 2, alone.size))
    return fo.Instance(capacities, demands, weights=weights, eligibility=eligibility, tasks=tasks)


def rated(users: int, servers: int, seed: int = 0) -> fo.Instance:
    """Individual rates on every server class, weights from 0.5 to 2."""
    rng = np.random.default_rng(seed)
    weights, rates = rng.uniform(0.5, 2, users), rng.uniform(20, 100, (users, servers))
    return fo.Instance(np.ones((servers, 1)), np.ones((users, 1)), weights=weights, rates=rates)


def jobs(users: int, classes: int, load: float = 1.25, seed: int = 0) -> fo.Instance:
    """Jobs on heterogeneous GPUs: speeds that differ by job and class, one GPU at a time, weights from 1 to 5, ``load`` jobs to a GPU."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(1, 6, classes) * rng.lognormal(0, 0.5, (users, classes)) * rng.lognormal(0, 1, (users, 1))
    counts = np.round(np.linspace(0.5, 0.2, classes) / np.linspace(0.5, 0.2, classes).sum() * users / load)
    weights = rng.integers(1, 6, users)
    one = np.ones(users)
    return fo.Instance(np.ones((classes, 1)), one[:, None], rates=rates, counts=counts, parallelism=one, weights=weights)


def lab_of_many(users: int, seed: int = 0) -> fo.Instance:
    """Users of groups of `examples/gpu-lab`, drawn alike, weights from 1 to 3, 1 to 59 tasks; a lab for 16 users."""
    lab, rng = fo.load(LAB), np.random.default_rng(seed)
    group = rng.integers(lab.n_users, size=users)
    return fo.Instance(
        lab.capacities,
        lab.demands[group],
        weights=rng.integers(1, 4, users),
        eligibility=lab.eligibility[group],
        counts=np.maximum(np.round(lab.counts * users / 16), 1),
        tasks=rng.integers(1, 60, users),
        resources=lab.resources,
    )


def google() -> fo.Instance:
    """The example file: 12,583 servers in ten rows, 900 users."""
    return fo.load(GOOGLE)


def jobs_over_a_day(
    tasks: int = 600_000, servers: int = 2_000, users: int = 500, load: float = 1.1, seed: int = 0
) -> tuple[fo.Trace, fo.Instance]:
    """A cluster of one row per configuration, and jobs that are submitted over 24 hours, more than it can run.

    Servers are drawn from the table of the Google cluster. A user has three shapes of tasks: the larger demand of a shape is log-uniform
    from 0.002 to 0.2 of the largest server, of CPU or of memory; the other is that times U[0.2, 1]. Jobs are submitted at times
    uniform over the day, by user k with probability in proportion to 1 / k, in one of the user's shapes, each alike; the number of
    tasks is Pareto (exponent 1.1) rounded up, 2,000 at most, and the last job has what is left. Each task runs a lognormal time (sigma
    1.2), of which the scale is such that all tasks ask for ``load`` times what the servers have of the scarcer resource over the day.
    """
    rng = np.random.default_rng(seed)
    capacities, counts = np.unique(google_servers(servers, rng), axis=0, return_counts=True)
    shapes = 0.002 * 100 ** rng.uniform(0, 1, (users, 3, 2))
    shapes[:, :, 1] = shapes[:, :, 0] * rng.uniform(0.2, 1, (users, 3))
    turned = rng.random((users, 3)) < 0.5
    shapes[turned] = shapes[turned][:, ::-1]
    size = np.minimum(np.ceil(rng.pareto(1.1, tasks) + 1), 2_000).astype(np.int64)
    before = np.cumsum(size) - size
    size = np.minimum(size, tasks - before)[before < tasks]
    chance = 1 / np.arange(1, users + 1)
    user, shape = rng.choice(users, size.size, p=chance / chance.sum()), rng.integers(3, size=size.size)
    submit = np.sort(rng.uniform(0, 86_400, size.size))
    run = rng.lognormal(0.0, 1.2, tasks)
    demands = shapes[user, shape]
    asked = (np.repeat(demands, size, axis=0) * run[:, None]).sum(axis=0) / (counts @ capacities) / 86_400
    run *= load / asked.max()
    labels = [f"user {n + 1}" for n in user]
    trace = fo.Trace(labels, submit, size, demands, run, resources=["cpu", "memory"])
    return trace, fo.Instance(capacities, [[1.0, 1.0]], counts=counts, users=["anybody"], resources=["cpu", "memory"])


def jobs_of_classes(
    jobs: int = 5_000, users: int = 100, classes: int = 10, load: float = 0.95, seed: int = 0
) -> tuple[fo.Trace, fo.Instance]:
    """Ten server classes of the uniform generator, 20 to 200 servers each, and users of one shape each.

    Demands are those of `fairopt.generate`; jobs of 1 to 200 tasks (uniform), submitted by each user as a Poisson process, run an
    exponential time each, such that all users together ask for ``load`` times what the servers have of the scarcer resource.
    """
    rng = np.random.default_rng(seed)
    drawn = fo.generate("uniform", users=users, servers=classes, resources=2, weights=5, seed=seed)
    counts = rng.integers(20, 201, classes)
    cluster = drawn.replace(counts=counts)
    user, size = rng.integers(users, size=jobs), rng.integers(1, 201, jobs)
    submit, run = np.sort(rng.uniform(0, 86_400, jobs)), rng.exponential(1.0, jobs)
    asked = (drawn.demands[user] * (size * run)[:, None]).sum(axis=0) / (counts @ drawn.capacities) / 86_400
    run *= load / asked.max()
    trace = fo.Trace([drawn.users[n] for n in user], submit, size, drawn.demands[user], run, resources=drawn.resources)
    return trace, cluster


def parallel_jobs(number: int = 100_000, users: int = 100) -> tuple[fo.Trace, fo.Instance]:
    """Gangs of 1 to 128 processors with estimates, and 128 servers of four processors; users sit in 20 queues of different weights."""
    rng = np.random.default_rng(1)
    size = 2 ** rng.integers(0, 8, number)
    run = np.exp(rng.normal(6, 1.7, number)).round() + 1
    length = float((size * run).sum()) / (128 * 4) / 0.95
    names = [f"user {n}" for n in rng.zipf(1.4, number) % users]
    trace = fo.Trace(
        names,
        np.sort(rng.uniform(0, length, number)).round(),
        size,
        np.ones((number, 1)),
        run,
        gangs=np.ones(number, bool),
        estimates=run * rng.choice([1, 1.5, 3, 10], number),
        resources=["cpu"],
    )
    cluster = fo.Instance(
        [[4]],
        np.ones((len(trace.users), 1)),
        counts=[128],
        users=trace.users,
        resources=["cpu"],
        queues=[fo.Queue(f"queue {k}", weight=k + 1) for k in range(20)],
        queue_of=[f"queue {k % 20}" for k in range(len(trace.users))],
    )
    return trace, cluster
