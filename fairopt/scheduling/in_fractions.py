"""Greedy schedules in fractions: the input of progressive filling as Fractions, and the check of what comes out.

`fairopt.schedule(..., exact=True)` takes the numbers of the instance as they are written, 0.1 being 1/10, and decides every step without
rounding: three tasks of 0.1 fit into 0.3, two shares are tied if they are equal, and users that differ by 10^-30 differ.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np

from fairopt.allocation import ExactAnswer
from fairopt.errors import CertificateError, InvalidInstance, Unsupported
from fairopt.instance import BoolArray, FloatArray, Instance, IntArray, safe_ratio
from fairopt.instance.fractions import ExactArray, fractions_of
from fairopt.models import Notion, Sharing
from fairopt.program.filling import Criterion, Filling, Measure
from fairopt.scheduling.queues import queues_of
from fairopt.solvers import Chooser, Filled, Placement, fill_in_fractions, fill_tree_in_fractions, seconds_expected
from fairopt.wording import figure

__all__ = ["answer_in_fractions", "check_placements", "exact_filling", "fill_exactly", "seen_exactly"]

_ENDLESS = np.iinfo(np.int64).max // 4
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
        for r in range(exact.n_resources)
    ]
    slot = [Fraction(value) / slots for value in largest]
    whole = [min((floor(c / slot[r]) for r, c in enumerate(row) if c > 0 and slot[r]), default=0) for row in exact.capacities]
    needed = [max((ceil(d / slot[r]) for r, d in enumerate(row) if slot[r]), default=0) for row in exact.demands]
    return Instance(
        [[number] for number in whole],
        [[number or 1] for number in needed],  # no server has the resource: the user gets 0 tasks
        weights=instance.given("weights"),
        eligibility=instance.eligibility,
        counts=instance.given("counts"),
        tasks=np.where(instance.servable & ~instance.zero_demand, instance.given("tasks"), 0),
        users=instance.users,
        servers=instance.servers,
        resources=["slots"],
    ).exact


def exact_filling(
    instance: Instance, seen: Instance, chosen: Notion, sharing: Sharing, ties: str, first_block: bool
) -> tuple[Filling, BoolArray]:
    """Return the input of progressive filling in fractions, and which users have a task that fits on no server.

    ``instance`` and ``seen`` are in fractions; ``seen`` is what the placement sees.
    """
    queues = queues_of(instance, seen, chosen)
    if sharing == "tdm":
        capacities = np.full((seen.n_servers, 1), Fraction(1))
        demands = _time_of_a_task(seen)[:, :, None]
    else:
        capacities, demands = seen.capacities, seen.demands[:, None, :]
    fits = seen.eligibility.copy()
    for r in range(capacities.shape[1]):
        fits &= (demands[:, :, r] <= capacities[:, r]).astype(bool)
    takes_part = seen.servable & ~instance.zero_demand & (instance.tasks > 0).astype(bool)
    too_large = takes_part & ~fits.any(axis=1)
    if not first_block:
        takes_part &= ~too_large
    whole = np.array([_ENDLESS if tasks >= _ENDLESS else floor(tasks) for tasks in instance.tasks], np.int64)
    return Filling(
        capacities=capacities,
        counts=seen.counts.astype(np.int64),
        demands=demands,
        eligibility=fits,
        tasks=np.where(takes_part, whole, 0),
        criterion=_criterion(seen, chosen, takes_part, fits, weighted=queues is None),
        order=_order_of_ties(instance, ties),
        queues=queues,
    ), too_large


def _time_of_a_task(seen: Instance) -> ExactArray:
    """Return the part of a server's time that a task takes, (users, servers); 0 for pairs that are not eligible."""
    return np.asarray(np.where(seen.eligibility, safe_ratio(seen.counts, seen.rates), fractions_of(0)))


def _order_of_ties(instance: Instance, ties: str) -> IntArray:
    if ties != "largest-demand":
        return np.arange(instance.n_users)
    parts = safe_ratio(instance.demands, instance.total_capacity)
    largest = [max(row) for row in parts]
    return np.array(sorted(range(instance.n_users), key=lambda n: (-largest[n], n)), np.int64)


def _criterion(seen: Instance, chosen: Notion, takes_part: BoolArray, fits: BoolArray, weighted: bool) -> Criterion:
    criterion = chosen.criterion(seen)
    per_task = np.asarray(criterion.per_task)
    if per_task.dtype != object:
        per_task = np.array([Fraction(repr(float(value))) if np.isfinite(value) else value for value in per_task.ravel()], object).reshape(
            per_task.shape
        )
    if per_task.shape not in ((seen.n_users,), fits.shape):
        raise InvalidInstance(
            f'the share of a task under "{chosen.name}" has shape {per_task.shape}; '
            f"return one per user, ({seen.n_users},), or per user and server, {fits.shape}"
        )
    counted = takes_part if per_task.ndim == 1 else fits & takes_part[:, None]
    wrong = np.argwhere(counted & ~((per_task > 0) & (per_task < np.inf)).astype(bool))
    if wrong.size:
        n = wrong[0][0]
        raise InvalidInstance(f'a task of user "{seen.users[n]}" is worth no share > 0 under "{chosen.name}"; give the user a demand > 0')
    one_weight = weighted and seen.weights.ndim == 1
    if one_weight:
        per_task = per_task / (seen.weights if per_task.ndim == 1 else seen.weights[:, None])
    return Criterion(per_task, criterion.measure)


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
    if filling.queues is not None:
        return fill_tree_in_fractions(filling, placement, random_ties=random_ties, seed=seed)
    return fill_in_fractions(filling, placement, random_ties=random_ties, seed=seed, first_block=first_block)


def check_placements(instance: Instance, filled: Filled, sharing: Sharing) -> None:
    """Check in fractions that what was placed exceeds no capacity of a single server and no number of tasks, from the instance alone.

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
        for r, d in enumerate(exact.demands[n]):
            used[i, r] = used.get((i, r), Fraction(0)) + number * d
    for (i, r), amount in used.items():
        if amount > (1 if sharing == "tdm" else exact.capacities[row[i], r]):
            raise CertificateError(f'the tasks on "{exact.servers[row[i]]}" exceed its capacity')
    for n, number in enumerate(np.bincount(filled.users, minlength=exact.n_users).tolist()):
        if number > exact.tasks[n]:
            raise CertificateError(f'user "{exact.users[n]}" has more tasks than it wants')


def answer_in_fractions(seen: Instance, criterion: Criterion, tasks: FloatArray) -> ExactAnswer:
    """Return whole tasks, (users, servers), and the shares of the criterion as Fractions."""
    whole = fractions_of(tasks)
    return ExactAnswer(whole, _shares(seen, criterion, whole), np.empty(0, object))


def _shares(seen: Instance, criterion: Criterion, tasks: ExactArray) -> ExactArray:
    """Return the shares, (users,), or (users, servers) if they are server-specific."""
    zero = Fraction(0)
    per_task = criterion.per_task
    total = [sum(row, zero) for row in tasks]
    if criterion.measure is Measure.RESIDUAL:
        per_task = _time_of_a_task(seen) * per_task[:, None]
    if criterion.measure is not Measure.OWN:
        return np.array(
            [
                [each * x if ok and x else zero for each, ok in zip(row, able, strict=True)]
                for row, able, x in zip(per_task, seen.eligibility, total, strict=True)
            ],
            object,
        ).reshape(seen.eligibility.shape)
    if per_task.ndim == 1:
        return np.array([each * x if x else zero for each, x in zip(per_task, total, strict=True)], object)
    return np.array(
        [sum((w * x for w, x in zip(row, own, strict=True) if x), zero) for row, own in zip(per_task, tasks, strict=True)], object
    )
