"""Random instances, for every test that draws its own with a seed; Hypothesis draws those of ``strategies``.

The first part draws pieces of an instance with a generator, the second whole instances. A seed gives the same instance for ever: the
order of the draws is part of each function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, SupportsIndex

import numpy as np

import fairopt as fo
from fairopt.instance import BoolArray, FloatArray

__all__ = [
    "KINDS",
    "decimal_tree",
    "degenerate_instance",
    "demands_with_zeros",
    "few_servers_each",
    "gpu_cluster",
    "instance_in_queues",
    "instance_in_zones",
    "instance_of_everything",
    "instance_of_extremes",
    "instance_of_many_levels",
    "some_servers_each",
    "spread_instance",
    "uniform_instance",
    "with_lenders",
]

Drawn = dict[str, Any]


# Pieces --------------------------------------------------------------------------------------------------------------------------


def demands_with_zeros(
    rng: np.random.Generator, shape: tuple[SupportsIndex, SupportsIndex], low: float, high: float, zeros: float = 0.3, least: float = 0.5
) -> FloatArray:
    """Uniform demands, a part ``zeros`` of them 0; a user who would demand nothing demands ``least`` of the first resource."""
    demands = rng.uniform(low, high, shape) * (rng.random(shape) >= zeros)
    demands[demands.sum(axis=1) == 0, 0] = least
    return demands


def few_servers_each(rng: np.random.Generator, users: int, servers: int, most: int = 3) -> BoolArray:
    """Eligibility of users with one to ``most`` servers each."""
    eligibility = np.zeros((users, servers), bool)
    for own in eligibility:
        own[rng.choice(servers, min(servers, int(rng.integers(1, most + 1))), replace=False)] = True
    return eligibility


def some_servers_each(rng: np.random.Generator, users: int, servers: int, part: float) -> BoolArray:
    """Eligibility of a part of the pairs, and of one pair of each user at least."""
    eligibility: BoolArray = rng.random((users, servers)) < part
    eligibility[np.arange(users), rng.integers(servers, size=users)] = True
    return eligibility


# Instances -----------------------------------------------------------------------------------------------------------------------


def uniform_instance(
    users: int,
    servers: int,
    resources: int = 2,
    seed: int = 0,
    *,
    capacities: tuple[float, float] = (1.0, 9.0),
    demands: tuple[float, float] = (0.1, 1.0),
    **data: Any,
) -> fo.Instance:
    """Capacities and demands between these bounds, all > 0; ``data`` is the rest of the instance."""
    rng = np.random.default_rng(seed)
    return fo.Instance(rng.uniform(*capacities, (servers, resources)), rng.uniform(*demands, (users, resources)), **data)


def instance_of_everything(seed: int) -> fo.Instance:
    """A small instance: zero demands, missing resources, constraints, counts, finite tasks, weights over three orders of magnitude."""
    rng = np.random.default_rng(seed)
    n, k, m = rng.integers(1, 9), rng.integers(1, 7), rng.integers(1, 4)
    capacities = rng.uniform(1, 10, (k, m)) * (rng.random((k, m)) > 0.1)
    return fo.Instance(
        capacities,
        demands_with_zeros(rng, (n, m), 0.05, 1),
        weights=10 ** rng.uniform(-1.5, 1.5, n) if rng.random() < 0.7 else None,
        eligibility=rng.random((n, k)) < 0.7 if rng.random() < 0.5 else None,
        counts=rng.integers(1, 4, k) if rng.random() < 0.5 else None,
        tasks=np.where(rng.random(n) < 0.4, rng.uniform(0, 8, n), np.inf) if rng.random() < 0.5 else None,
    )


def instance_of_extremes(seed: int) -> fo.Instance:
    """The same with weights from 1e-3 to 1e3, and some users who have no tasks at all."""
    rng = np.random.default_rng(seed)
    n, k, m = rng.integers(1, 12), rng.integers(1, 8), rng.integers(1, 5)
    demands = demands_with_zeros(rng, (n, m), 0.05, 1)
    return fo.Instance(
        rng.uniform(1, 10, (k, m)) * (rng.random((k, m)) > 0.1),
        demands,
        weights=10 ** rng.uniform(-3, 3, n),
        eligibility=rng.random((n, k)) < 0.7 if rng.random() < 0.5 else None,
        counts=rng.integers(1, 4, k) if rng.random() < 0.5 else None,
        tasks=np.where(rng.random(n) < 0.4, rng.choice([0, 1], n, p=[0.1, 0.9]) * rng.uniform(0, 8, n), np.inf)
        if rng.random() < 0.5
        else None,
    )


def instance_of_many_levels(users: int, servers: int, resources: int = 2, seed: int = 0) -> fo.Instance:
    """Users with one to three servers each, three tenths of the demands 0, weights from 1 to 5: tens of levels of global shares."""
    rng = np.random.default_rng(seed)
    capacities = rng.uniform(1, 10, (servers, resources))
    demands = demands_with_zeros(rng, (users, resources), 0.01, 0.1, least=0.05)
    weights = rng.uniform(1, 5, users)
    return fo.Instance(capacities, demands, weights=weights, eligibility=few_servers_each(rng, users, servers))


def instance_in_zones(users: int, servers: int, zones: int, seed: int = 0, *, anywhere: float = 0.3) -> fo.Instance:
    """Servers in zones, users on all servers or in one or two zones, popular ones first; zero demands, and limits on tasks for a tenth."""
    rng = np.random.default_rng(seed)
    zone, chance = np.arange(servers) % zones, 1 / np.arange(1, zones + 1)
    eligibility = np.ones((users, servers), bool)
    for n in np.flatnonzero(rng.random(users) >= anywhere):
        eligibility[n] = np.isin(zone, rng.choice(zones, rng.integers(1, 3), replace=False, p=chance / chance.sum()))
    return fo.Instance(
        rng.uniform(5, 50, (servers, 3)),
        demands_with_zeros(rng, (users, 3), 0.01, 1),
        weights=rng.uniform(1, 5, users),
        eligibility=eligibility,
        tasks=np.where(rng.random(users) < 0.1, np.ceil(rng.uniform(1, 60, users) * servers / users), np.inf),
    )


def spread_instance(users: int, servers: int, resources: int = 2, seed: int = 0, *, part: float = 1.0, limited: int = 0) -> fo.Instance:
    """Servers that hold many tasks, demands > 0, a part of the pairs eligible; the first ``limited`` users have limits on their tasks."""
    rng = np.random.default_rng(seed)
    eligibility = some_servers_each(rng, users, servers, part)
    return fo.Instance(
        rng.uniform(50, 500, (servers, resources)),
        rng.uniform(0.1, 1, (users, resources)),
        weights=rng.uniform(0.5, 2, users),
        eligibility=eligibility,
        tasks=np.where(np.arange(users) < limited, rng.uniform(1, 30, users), np.inf),
    )


# Degenerate and badly scaled instances -------------------------------------------------------------------------------------------


def _plain(rng: np.random.Generator) -> Drawn:
    """Positive demands; everything else is left to the kinds."""
    n, k, m = int(rng.integers(1, 30)), int(rng.integers(1, 9)), int(rng.integers(1, 4))
    weights = 10 ** rng.uniform(-1.5, 1.5, n) if rng.random() < 0.5 else np.ones(n)
    return {"capacities": rng.uniform(1, 10, (k, m)), "demands": rng.uniform(0.01, 1, (n, m)), "weights": weights}


def _some_pairs(rng: np.random.Generator, drawn: Drawn, part: float) -> Drawn:
    return drawn | {"eligibility": some_servers_each(rng, len(drawn["demands"]), len(drawn["capacities"]), part)}


def _zero_demands(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Four in ten, with missing resources and placement constraints."""
    demands = drawn["demands"] * (rng.random(drawn["demands"].shape) > 0.4)
    demands[demands.sum(axis=1) == 0, 0] = 0.5
    capacities = drawn["capacities"] * (rng.random(drawn["capacities"].shape) > 0.1)
    return _some_pairs(rng, drawn | {"demands": demands, "capacities": capacities}, 0.6)


def _nine_orders(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Capacities from 1 to 1e9, server by server or entry by entry, and units of the resources as far apart."""
    shape = drawn["capacities"].shape
    scale = 10 ** rng.uniform(0, 9, shape if rng.random() < 0.5 else (shape[0], 1))
    units = 10 ** rng.uniform(-4, 5, shape[1])
    wide = drawn | {"capacities": drawn["capacities"] * scale * units, "demands": drawn["demands"] * units}
    return wide if rng.random() < 0.5 else _some_pairs(rng, wide, 0.5)


def _all_alike(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Users share all data, weights too; servers sometimes."""
    demands = np.tile(drawn["demands"][:1], (len(drawn["demands"]), 1))
    capacities = np.tile(drawn["capacities"][:1], (len(drawn["capacities"]), 1)) if rng.random() < 0.5 else drawn["capacities"]
    return {"capacities": capacities, "demands": demands}


def _nearly_alike(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """The same to nine or twelve digits, so that nothing merges."""
    alike = _all_alike(rng, drawn)
    noise = 10.0 ** -int(rng.choice([9, 12]))
    return {name: values * (1 + noise * rng.random(values.shape)) for name, values in alike.items()}


def _groups(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Few different users, many of each, and proportional servers."""
    n, k = len(drawn["demands"]), len(drawn["capacities"])
    some = drawn["demands"][rng.integers(0, min(3, n), n)]
    return drawn | {"demands": some, "capacities": drawn["capacities"][:1] * rng.integers(1, 5, (k, 1))}


def _one_pair_each(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    return _some_pairs(rng, drawn, 0.0)


def _one_huge_user(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Its demand or its weight is a million times that of the others, or both ten thousand times.

    (Were both a million, the others would spend a part of 1e-13 of all there is: a number of 16 digits can prove nothing about them, and
    every engine's answer is refused.)
    """
    demands, weights = drawn["demands"].copy(), drawn["weights"].copy()
    who = int(rng.integers(len(weights)))
    of_demand, of_weight = ((1e6, 1.0), (1.0, 1e6), (1e4, 1e4))[int(rng.integers(3))]
    demands[who] *= of_demand
    weights[who] *= of_weight
    return drawn | {"demands": demands, "weights": weights}


def _many_levels(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """One to three servers each, a third of the demands zero."""
    demands = drawn["demands"] * (rng.random(drawn["demands"].shape) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 0.5
    return drawn | {"demands": demands, "eligibility": few_servers_each(rng, len(demands), len(drawn["capacities"]))}


def _finite_tasks(rng: np.random.Generator, drawn: Drawn) -> Drawn:
    """Of half of the users: none, next to none, a few, or more than all servers hold."""
    n = len(drawn["demands"])
    few = rng.choice([0.0, 1e-6, 0.3, 2.0, 2.0, 7.0, 1e6], n) * rng.uniform(0.5, 1, n)
    finite = drawn | {"tasks": np.where(rng.random(n) < 0.5, few, np.inf)}
    return finite if rng.random() < 0.5 else _some_pairs(rng, finite, 0.6)


KINDS: dict[str, Callable[[np.random.Generator, Drawn], Drawn]] = {
    "positive demands": lambda rng, drawn: drawn,
    "zero demands": _zero_demands,
    "nine orders": _nine_orders,
    "all alike": _all_alike,
    "nearly alike": _nearly_alike,
    "groups": _groups,
    "one pair each": _one_pair_each,
    "one huge user": _one_huge_user,
    "many levels": _many_levels,
    "finite tasks": _finite_tasks,
}


def degenerate_instance(seed: int) -> tuple[str, fo.Instance]:
    """The kind and the instance of a seed; the kinds take turns."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    return kind, fo.Instance(**KINDS[kind](rng, _plain(rng)))


def with_lenders(instance: fo.Instance, seed: int) -> fo.Instance:
    """Most guarantees get a lending limit, often of 0, so that queues beside each other and below each other keep parts to themselves."""
    rng = np.random.default_rng([seed, 1])

    def lent(guarantee: Mapping[str, float]) -> dict[str, float]:
        part = {name: float(rng.choice([0.0, 0.5, rng.uniform()])) for name in guarantee if rng.random() < 0.7}
        return {name: float(f"{share * guarantee[name]:.2g}") for name, share in part.items()}

    queues = []
    for queue in instance.queues:
        values: dict[str, Any] = {name: getattr(queue, name) for name in queue.__dataclass_fields__}
        quotas = [fo.Quota(quota.servers, quota.guarantee, quota.limit, lent(quota.guarantee), quota.name) for quota in queue.quotas]
        queues.append(fo.Queue(**(values | {"lending_limit": lent(queue.guarantee), "quotas": quotas})))
    return instance.replace(queues=queues)


def instance_in_queues(seed: int, *, guarantees: bool = True) -> fo.Instance:
    """Whole numbers, with which fractions are exact: four to eight users in a tree of up to four levels.

    Guarantees and limits of the cluster and of some servers, lending limits, tiers, weights of 0, guarantees of users, finite tasks,
    constraints. Amounts may exceed the cluster. Without ``guarantees``, no weight is 0 either.
    """
    rng = np.random.default_rng(seed)
    users, servers, resources = int(rng.integers(4, 9)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    counts = rng.integers(1, 3, servers)
    capacities = rng.integers(4, 13, (servers, resources)) * (rng.random((servers, resources)) > 0.05)
    demands = rng.integers(0, 4, (users, resources))
    demands[demands.sum(axis=1) == 0, 0] = 1
    names = [f"resource-{r + 1}" for r in range(resources)]
    total = counts @ capacities

    def amounts(chance: float, part: float, least: Mapping[str, float] | None = None) -> dict[str, float]:
        drawn = {
            name: float(rng.integers(0, int(part * size) + 2)) for name, size in zip(names, total, strict=True) if rng.random() < chance
        }
        return {name: max(amount, (least or {}).get(name, 0.0)) for name, amount in drawn.items()}

    def promised(part: float) -> dict[str, Any]:
        guarantee = amounts(0.3 if guarantees else 0.0, 0.4 * part)
        lending = {name: float(rng.integers(0, int(amount) + 1)) for name, amount in guarantee.items() if rng.random() < 0.3}
        return {"guarantee": guarantee, "limit": amounts(0.2, part, guarantee), "lending_limit": lending}

    queues: list[fo.Queue] = []
    for k in range(int(rng.integers(2, 6))):
        above = [queue.name for queue in queues]
        group = [f"server-{i + 1}" for i in range(servers) if rng.random() < 0.5]
        queues.append(
            fo.Queue(
                f"queue-{k + 1}",
                parent=None if not above or rng.random() < 0.4 else above[int(rng.integers(len(above)))],
                weight=float(rng.choice([0.0, 0.5, 1.0, 1.0, 1.0, 2.0, 7.0][0 if guarantees else 1 :])),
                **promised(1.0),
                tier=int(rng.choice([-1, *[0] * 12, 1, 2])),
                quotas=[fo.Quota(group, **promised(0.6))] if group and rng.random() < 0.5 else (),
            )
        )
    tasks = np.where(rng.random(users) < 0.2, rng.integers(0, 9, users), np.inf)
    own = rng.integers(0, 6, users) * (rng.random(users) < 0.3) * guarantees
    return fo.Instance(
        capacities,
        demands,
        weights=rng.choice([1.0, 1.0, 1.0, 1.0, 2.0, 0.5, 0.0 if guarantees else 3.0], users),
        eligibility=rng.random((users, servers)) < 0.8,
        counts=counts,
        tasks=tasks,
        guarantees=np.minimum(own, tasks),
        queues=queues,
        queue_of=[None if rng.random() < 0.2 else queues[int(rng.integers(len(queues)))].name for _ in range(users)],
    )


def trace_in_queues(cluster: fo.Instance, seed: int) -> fo.Trace:
    """Jobs of several shapes at few different times, users who come and go, servers that are removed and added again."""
    rng = np.random.default_rng(seed)
    jobs = 12
    shapes = rng.integers(0, 4, (4, cluster.n_resources)) / 10
    shapes[shapes.sum(axis=1) == 0, 0] = 0.1
    user = rng.integers(0, cluster.n_users, jobs)
    names = [cluster.users[n] for n in user]
    events: list[fo.Event] = [(6.0, "leave", names[0]), (9.0, "join", names[0])] if rng.random() < 0.5 else []
    if rng.random() < 0.5:
        events += [(5.0, "remove", cluster.servers[0], 1), (11.0, "add", cluster.servers[0], 2)]
    return fo.Trace(
        names,
        np.sort(rng.integers(0, 12, jobs)),
        rng.integers(1, 9, jobs),
        shapes[rng.integers(0, 4, jobs)],
        rng.integers(1, 9, jobs),
        eligibility=rng.random((jobs, cluster.n_servers)) < 0.8,
        events=events,
        resources=cluster.resources,
    )


def decimal_tree(instance: fo.Instance) -> fo.Instance:
    """Tenths, which are no binary numbers; amounts of queues too."""
    return instance.replace(
        capacities=instance.capacities / 10,
        demands=instance.demands / 10,
        queues=[
            fo.Queue(
                queue.name,
                queue.parent,
                queue.weight,
                tier=queue.tier,
                quotas=[fo.Quota(quota.servers, **_tenths(quota)) for quota in queue.quotas],
                **_tenths(queue),
            )
            for queue in instance.queues
        ],
    )


def _tenths(quota: fo.Queue | fo.Quota) -> dict[str, Any]:
    return {word: {name: amount / 10 for name, amount in getattr(quota, word).items()} for word in ("guarantee", "limit", "lending_limit")}


def gpu_cluster(users: int, seed: int, finite: bool) -> fo.Instance:
    """Kinds of servers, tasks of few sizes, and Pareto-distributed numbers of tasks of most users: their money lies far apart."""
    rng = np.random.default_rng(seed)
    capacities = np.array([[8, 128, 1024], [4, 64, 512], [8, 256, 2048], [2, 32, 128], [0, 128, 1024], [0, 256, 2048.0]])
    gpus, cpus, memory = (rng.choice(sizes, users) for sizes in ([0, 1, 2], [1, 4, 16, 32], [4, 16, 64, 128]))
    demands = np.stack([gpus, cpus, memory], axis=1).astype(float)
    tasks = np.where(rng.random(users) < 0.6, np.ceil(rng.pareto(1.1, users) * 3) + 1, np.inf) if finite else None
    return fo.Instance(
        capacities, demands, weights=rng.choice([1.0, 2.0, 4.0], users), counts=np.array([20, 40, 10, 80, 100, 150]), tasks=tasks
    )
