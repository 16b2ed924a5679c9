"""Random instances, for every test that draws its own with a seed; Hypothesis draws those of ``strategies``.

The first part draws pieces of an instance with a generator, the second whole instances. A seed gives the same instance for ever: the
order of the draws is part of each function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

import fairopt as fo
from fairopt.instance import BoolArray, FloatArray

__all__ = [
    "KINDS",
    "degenerate_instance",
    "demands_with_zeros",
    "few_servers_each",
    "instance_of_everything",
    "instance_of_extremes",
    "instance_of_many_levels",
    "some_servers_each",
    "spread_instance",
    "uniform_instance",
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
