"""A fixed sample of tests/open_model.py, and what must change nothing of an instance with everything at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from open_model import BOUND, Question, campaign, question

import fairopt as fo

ASKED = [question(seed) for seed in (0, 1, 3, 4, 5, 8, 9, 13, 17)]  # without guarantees: a stage may depend on a split


def test_engines_find_what_the_oracle_of_rows_finds() -> None:
    """Shares to 1e-8, and equal fractions; guarantees against the oracle of trees.

    In 28 rounding of a capacity is a large part of what the user with the smallest weight has; in 490 nobody can run in a guaranteed queue.
    In 10, 1094 and 1234 floors leave an error of 1.2e-8 to 3e-8 in floats, and fractions prove the answer.
    """
    found = campaign((*range(12), 28, 490, 1094, 1234))
    assert not found.failures
    assert found.worst <= BOUND
    assert found.exact == 3


@pytest.mark.parametrize("seed", [302, 1094])
def test_levels_with_floors_are_proved_in_fractions(seed: int) -> None:
    """In 302 a guarantee pays for an outer level; in 1094 levels of one time have different prices, so that no mean proves both."""
    asked = question(seed)
    assert fo.solve(asked.instance, asked.notion, exact=True, **asked.options).certificate.exact


def _changed(fields: Any, **changes: Any) -> Any:
    return type(fields)(**{**{name: getattr(fields, name) for name in fields.__dataclass_fields__}, **changes})


def _solved(asked: Question, instance: fo.Instance) -> Any:
    return fo.solve(instance, asked.notion, **asked.options).tasks_per_user


def _same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1e-9 * np.max(expected, initial=1e-9))


def test_a_limit_that_repeats_a_capacity_changes_nothing() -> None:
    """Of a server, of the cluster, and of what a queue has already."""
    for asked in ASKED:
        instance = asked.instance
        capacities = instance.counts[:, None] * instance.capacities
        more = [
            fo.Limit(f"{resource} there {i}", float(capacities[i, r]), resource=resource, servers=[server])
            for i, server in enumerate(instance.servers)
            for r, resource in enumerate(instance.resources[: capacities.shape[1]])
            if capacities[i, r] and instance.demands[instance.eligibility[:, i], r].any()
        ]
        more += [
            fo.Limit(f"all {name}", amount, resource=name)
            for name, amount in instance.shared.items()
            if amount and instance.demands[:, instance.resources.index(name)].any()
        ]
        more += [
            fo.Limit(f"{name} again in {queue.name}", amount, resource=name, queues=[queue.name])
            for queue in instance.queues
            for name, amount in queue.limit.items()
            if amount and queue.name in {place for place in instance.queue_of if place is not None}
        ]
        _same(_solved(asked, instance.replace(limits=[*instance.limits, *more])), _solved(asked, instance))


def test_a_rule_that_the_answer_obeys_changes_nothing() -> None:
    """Leximins in lists; a slack of a millionth, which engines and oracles can tell."""
    for asked in ASKED:
        instance = asked.instance
        if instance.queues:
            continue
        held = _solved(asked, instance)
        some = [n for n in range(instance.n_users) if held[n] > 1e-3]
        rules = [*instance.rules, *(f"x['{instance.users[n]}'] >= {float(held[n]) * (1 - 1e-6)!r}" for n in some)]
        _same(_solved(asked, instance.replace(rules=rules)), held)


def _in_other_units(instance: fo.Instance, factors: np.ndarray) -> dict[str, Any]:
    columns = instance.capacities.shape[1]
    by = dict(zip(instance.resources, factors.tolist(), strict=True))

    def scaled(amounts: Any) -> dict[str, float]:
        return {name: amount * by[name] for name, amount in amounts.items()}

    def quota(of: fo.Queue | fo.Quota) -> dict[str, Any]:
        return {word: scaled(getattr(of, word)) for word in ("guarantee", "limit", "lending_limit")}

    return {
        "capacities": instance.capacities * factors[:columns],
        "demands": instance.demands * factors,
        "shared": scaled(instance.shared),
        "limits": [limit.replace(bound=limit.bound * by[limit.resource]) if limit.resource else limit for limit in instance.limits],
        "queues": [
            _changed(queue, quotas=[fo.Quota(own.servers, **quota(own)) for own in queue.quotas], **quota(queue))
            for queue in instance.queues
        ],
        "resources": instance.resources,
    }


def test_units_change_nothing() -> None:
    """Bytes for gigabytes: capacities, demands, what is shared, limits of all kinds. (Rules count in amounts; they are left out.)"""
    for asked in ASKED:
        instance = asked.instance.replace(rules=[])
        factors = np.array([2.0**20, 0.001, 3.0, 1e6])[: instance.n_resources]
        _same(_solved(asked, instance.replace(**_in_other_units(instance, factors))), _solved(asked, instance))


def test_a_row_of_servers_split_in_two_keeps_everything() -> None:
    """Twice as many servers of each kind, as one row or as two with other names; every selection names both."""
    for asked in ASKED:
        instance = asked.instance.replace(rules=[])
        several = instance.replace(counts=instance.counts * 2)
        names = [*instance.servers, *(f"{name}-2" for name in instance.servers)]

        def both(servers: Any) -> Any:
            return servers if servers is None or isinstance(servers, str) else [*servers, *(f"{name}-2" for name in servers)]

        def amounts(of: Any) -> Any:
            if of is None or not any(hasattr(own, "items") for own in of.values()):
                return of
            return {user: {**own, **{f"{name}-2": value for name, value in own.items()}} for user, own in of.items()}

        split = fo.Instance(
            np.tile(instance.capacities, (2, 1)),
            instance.demands,
            weights=instance.weights,
            eligibility=np.tile(instance.eligibility, (1, 2)),
            counts=np.tile(instance.counts, 2),
            tasks=instance.tasks,
            parallelism=instance.parallelism,
            shared=dict(instance.shared),
            attributes=[*map(dict, instance.attributes), *map(dict, instance.attributes)],
            queues=[
                _changed(queue, quotas=[_changed(own, servers=both(own.servers)) for own in queue.quotas]) for queue in instance.queues
            ],
            queue_of=instance.queue_of,
            limits=[limit.replace(servers=both(limit.servers), amounts=amounts(limit.amounts)) for limit in instance.limits],
            users=instance.users,
            servers=names,
            resources=instance.resources,
        )
        _same(_solved(asked, split), _solved(asked, several))


def _split(instance: fo.Instance, asked: Question) -> fo.Instance:
    """Return the instance with everybody as two users with half the weight, whose tasks are limited together."""

    def both(users: Any) -> Any:
        return None if users is None else [*users, *(f"{name}-2" for name in users)]

    tasks = [
        fo.Limit(f"tasks {name}", float(most), users=[name, f"{name}-2"])
        for name, most in zip(instance.users, instance.tasks, strict=True)
        if np.isfinite(most)
    ]
    limits = [
        limit.replace(
            users=both(limit.users),
            amounts=None if limit.amounts is None else {**limit.amounts, **{f"{name}-2": own for name, own in limit.amounts.items()}},
        )
        for limit in instance.limits
    ]
    rules = [
        rule._replace(
            terms=(
                *rule.terms,
                *((factor, measure, f"{name}-2", where, r) for factor, measure, name, where, r in rule.terms if name in instance.users),
            )
        ).text
        for rule in asked.rules
    ]
    return fo.Instance(
        instance.capacities,
        np.tile(instance.demands, (2, 1)),
        weights=np.tile(instance.weights / 2, 2),
        eligibility=np.tile(instance.eligibility, (2, 1)),
        counts=instance.counts,
        shared=dict(instance.shared),
        attributes=[*map(dict, instance.attributes)],
        queues=instance.queues,
        queue_of=[*instance.queue_of, *instance.queue_of],
        limits=[*limits, *tasks],
        rules=rules,
        users=both(instance.users),
        servers=instance.servers,
        resources=instance.resources,
    )


def test_users_split_in_two_with_half_the_weight_keep_their_sums() -> None:
    """A limit, a number of tasks and a rule are then over both. (Not one for each user, and not what a user runs at once.)"""
    for asked in ASKED:
        limits = [limit for limit in asked.instance.limits if limit.each != "user"]
        instance = asked.instance.replace(limits=limits, parallelism=None)
        halves = _solved(asked, _split(instance, asked)).reshape(2, -1)
        _same(halves.sum(axis=0), _solved(asked, instance))


def _renamed(instance: fo.Instance, order: Callable[[int], Any]) -> tuple[fo.Instance, Any]:
    users = order(instance.n_users)
    mixed = fo.Instance(
        instance.capacities,
        instance.demands[users],
        weights=instance.weights[users],
        eligibility=instance.eligibility[users],
        counts=instance.counts,
        tasks=instance.tasks[users],
        parallelism=instance.parallelism[users],
        shared=dict(instance.shared),
        attributes=[*map(dict, instance.attributes)],
        queues=instance.queues,
        queue_of=[instance.queue_of[n] for n in users],
        limits=instance.limits,
        rules=instance.rules,
        users=[instance.users[n] for n in users],
        servers=instance.servers,
        resources=instance.resources,
    )
    return mixed, users


@pytest.mark.parametrize("backwards", [True, False])
def test_the_order_of_users_changes_nothing(backwards: bool) -> None:
    """Names select, not positions."""
    for asked in ASKED:
        mixed, users = _renamed(asked.instance, lambda n: np.arange(n)[::-1] if backwards else np.roll(np.arange(n), 1))
        _same(_solved(asked, mixed), _solved(asked, asked.instance)[users])
