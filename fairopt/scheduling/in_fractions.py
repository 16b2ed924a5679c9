"""Greedy schedules in fractions: the input of progressive filling as Fractions, and the check of what comes out.

`fairopt.schedule(..., exact=True)` takes the numbers of the instance as they are written, 0.1 being 1/10, and decides every step without
rounding: three tasks of 0.1 fit into 0.3, two shares are tied if they are equal, and users that differ by 10^-30 differ.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np

from fairopt.allocation import ExactAnswer
from fairopt.errors import CertificateError, Unsupported
from fairopt.instance import FloatArray, Instance
from fairopt.instance.fractions import fractions_of
from fairopt.models import Sharing
from fairopt.program.filling import Filling
from fairopt.program.queue_limits import limit_rows
from fairopt.scheduling.queues import server_limits
from fairopt.solvers import Chooser, Filled, Placement, fill_in_fractions, seconds_expected
from fairopt.wording import figure

__all__ = ["answer_in_fractions", "check_placements", "fill_exactly", "seen_exactly"]

_LONGEST = 3600.0  # seconds that an exact schedule may be expected to take


def seen_exactly(instance: Instance, placement: Placement | Chooser) -> Instance:
    """Return the instance as the placement sees it, in fractions: that with slots counts whole slots exactly."""
    exact = instance.exact
    slots = getattr(placement, "slots", None)
    if slots is None or not isinstance(placement, Placement):
        return exact
    placement.prepare(instance)  # what it refuses
    largest = [
        max((c for c, count in zip(exact.capacities[:, r], exact.counts, strict=True) if count > 0), default=0)
        for r in range(exact.n_server_resources)
    ]
    slot = [Fraction(value) / slots for value in largest]
    whole = [min((floor(c / slot[r]) for r, c in enumerate(row) if c > 0 and slot[r]), default=0) for row in exact.capacities]
    least = np.where(exact.zero_demand, 0, 1).tolist()  # slots of a task that anything counts
    needed = [
        max((ceil(d / slot[r]) if slot[r] else 1 for r, d in enumerate(row) if d), default=least[n])
        for n, row in enumerate(exact.server_demands)
    ]
    enough = np.asarray((exact.shared_demands <= exact.shared_capacity).astype(bool).all(axis=1))
    return Instance(
        [[number] for number in whole],
        [[number] for number in needed],
        weights=instance.given("weights"),
        eligibility=instance.eligibility & enough[:, None],
        counts=instance.given("counts"),
        tasks=np.where(instance.servable, instance.given("tasks"), 0),  # 0 also where no server has a resource that the user demands
        users=instance.users,
        servers=instance.servers,
        resources=["slots"],
    ).exact


def fill_exactly(filling: Filling, placement: Placement | Chooser, *, random_ties: bool, seed: int, first_block: bool) -> Filled:
    """Fill in fractions.

    Raises
    ------
    Unsupported
        It would take more than an hour.
    """
    expected = seconds_expected(filling, placement)
    if expected > _LONGEST:
        raise Unsupported(
            f"an exact schedule of this instance would take about {figure(expected / 3600, 2)} hours, task by task in "
            "fractions; leave exact out, or give a part of the cluster"
        )
    return fill_in_fractions(filling, placement, random_ties=random_ties, seed=seed, first_block=first_block)


def check_placements(instance: Instance, filled: Filled, sharing: Sharing) -> None:
    """Check in fractions, from the instance alone, that what was placed exceeds no capacity of a server, no number of tasks and no limit.

    Raises
    ------
    CertificateError
    """
    exact = instance.exact
    row = np.repeat(np.arange(exact.n_servers), exact.counts.astype(np.int64))
    used: dict[tuple[int, int], Fraction] = {}
    pairs, numbers = np.unique(np.stack([filled.users, filled.servers]), axis=1, return_counts=True)
    for n, i, number in zip(*pairs.tolist(), numbers.tolist(), strict=True):
        if not exact.eligibility[n, row[i]]:
            raise CertificateError(f'user "{exact.users[n]}" has a task on "{exact.servers[row[i]]}", where it may not run')
        if sharing == "tdm":
            used[i, 0] = used.get((i, 0), Fraction(0)) + number / (exact.rates[n, row[i]] / exact.counts[row[i]])
            continue
        for r, d in enumerate(exact.demands_of(n, row[i])[: exact.n_server_resources]):
            used[i, r] = used.get((i, r), Fraction(0)) + number * d
    limits = server_limits(exact)
    if limits is not None:
        bounds, counted = limits
        held: dict[tuple[int, int], Fraction] = {}
        for n, i, number in zip(*pairs.tolist(), numbers.tolist(), strict=True):
            for k, each in enumerate(counted[n, row[i] if counted.shape[1] > 1 else 0]):
                held[i, k] = held.get((i, k), Fraction(0)) + number * each
        if any(amount > bounds[row[i], k] for (i, k), amount in held.items()):
            raise CertificateError("the tasks on a server exceed a limit of each server")
    for (i, r), amount in used.items():
        if amount > (1 if sharing == "tdm" else exact.capacities[row[i], r]):
            raise CertificateError(f'the tasks on "{exact.servers[row[i]]}" exceed its capacity')
    for n, number in enumerate(np.bincount(filled.users, minlength=exact.n_users).tolist()):
        if number > exact.tasks[n]:
            raise CertificateError(f'user "{exact.users[n]}" has more tasks than it wants')
    tasks = np.full((exact.n_users, exact.n_servers), Fraction(0), dtype=object)
    for n, i, number in zip(*pairs.tolist(), numbers.tolist(), strict=True):
        tasks[n, row[i]] += number
    for limit in limit_rows(exact):
        if limit.used(exact.kinds, tasks) > limit.bound:
            raise CertificateError(f'the tasks exceed the limit "{limit.name}"')
    for name, amount, used_of_cluster in zip(exact.shared, exact.shared_capacity, exact.usage_of_shared(tasks), strict=True):
        if used_of_cluster > amount:
            raise CertificateError(f'the tasks exceed what the cluster has of "{name}"')


def answer_in_fractions(tasks: FloatArray, shares: FloatArray) -> ExactAnswer:
    """Return whole tasks, (users, servers), and the shares of the criterion as Fractions."""
    return ExactAnswer(fractions_of(tasks), fractions_of(shares), np.empty(0, object))
