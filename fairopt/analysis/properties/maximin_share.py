r"""Maximin share: every user runs at least what it could secure by cutting the cluster into bundles and taking the worst (Budish 2011).

User n cuts the cluster into a bundle for each user, and m takes one first for every m. What n is left with for sure, if bundles count by
weight, is its maximin share

    max over cuts of min over users m of phi[n] / phi[m] (whole tasks of n that bundle m runs),

at most T[n] (with weights as Farhadi et al. 2019 define it). Resources of a server can be cut at will, so K[n] whole tasks that n could run
alone make bundles of any K[m] tasks of which the sum is K[n]: the share is the largest t with

    sum over m of ceil(t phi[m] / phi[n]) <= K[n],

for equal weights floor(K[n] / N). K[n] is the sum of floor(min_r c[i,r] / d[n,r]) over single servers, which is exact. With limits across
servers (parallelism, resources of the cluster) it is an upper bound, which n may not be able to run alone: a user with at least the share
that follows has its maximin share, and of the others it is not decided.

Goods need not have an allocation in which everybody has its maximin share (Procaccia and Wang 2014), and tasks must fit on servers: no
notion of fairopt promises it.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

from fairopt.analysis.properties.case import Case
from fairopt.analysis.properties.verdict import Verdict, Witness, does_not_apply, holds, violated
from fairopt.instance.fractions import fraction_of
from fairopt.instance.tolerances import FITS
from fairopt.wording import figure, plural

__all__ = ["NAME", "check", "maximin_share"]

NAME = "maximin-share"


def check(case: Case) -> Verdict:
    """Compare what every user runs with its maximin share."""
    instance = case.instance
    if not case.whole:
        return does_not_apply(NAME, "Does not apply: it is about whole tasks; audit an allocation with integral=True, or a schedule.")
    if instance.weights.ndim == 2 or case.worth is not None:
        why = "weights per resource" if instance.weights.ndim == 2 else "speeds, or a utility of the notion"
        return does_not_apply(NAME, f"Does not apply: with {why}, tasks on different servers are not worth the same.")
    weights = [fraction_of(weight) for weight in instance.weights[case.members].tolist()]
    bounded = bool(instance.limited.any()) or bool(instance.shared_capacity.size) or bool(case.own_rows)
    lack: dict[int, tuple[Any, int, Fraction]] = {}
    for place, n in enumerate(case.members.tolist()):
        alone = _alone(case, n)
        share = maximin_share(alone, weights, place)
        owed = min(share, fraction_of(instance.tasks[n])) if instance.tasks[n] < np.inf else share
        missing: Any = owed - case.value[n] if case.radius is not None else float(owed) - case.value[n]
        if missing > case.slack[n]:
            lack[n] = missing, alone, owed
    if not lack:
        return holds(NAME, "Everybody runs at least what it could secure by cutting the cluster into a bundle for each user.")
    n = max(lack, key=lambda each: lack[each][0])
    missing, alone, owed = lack[n]
    if bounded:
        return does_not_apply(
            NAME,
            f"Undecided: limits across servers may keep users from what they could secure; {plural(len(lack), 'user')} may lack something, "
            f"{figure(float(missing), 6)} tasks at most.",
        )
    witness = Witness(
        f"{case.name(n)} runs {case.amount(case.value[n])}. Alone it could run {alone:,} whole tasks; cut into a bundle for each of "
        f"{plural(len(weights), 'user')}, the worst for it has {figure(float(owed), 6)}{', by weight' if len(set(weights)) > 1 else ''}.",
        (instance.users[n],),
    )
    return violated(NAME, missing, f"{plural(len(lack), 'user runs', 'users run')} less than its maximin share.", witness)


def maximin_share(alone: int, weights: list[Fraction], place: int) -> Fraction:
    """Return the largest t with sum over m of ceil(t phi[m] / phi[n]) <= alone; n is at this place of the weights.

    >>> maximin_share(7, [Fraction(1)] * 3, 0), maximin_share(7, [Fraction(1), Fraction(2)], 1)
    (Fraction(2, 1), Fraction(4, 1))
    """
    own = weights[place]
    fluid = Fraction(alone) * own / sum(weights, Fraction(0))
    best = Fraction(0)
    for weight in weights:  # at the largest t, some bundle holds just what it needs: t = k phi[n] / phi[m]
        step = own / weight
        k = floor(fluid / step)
        while k > 0 and k * step > best and sum(ceil(k * step * each / own) for each in weights) > alone:
            k -= 1
        best = max(best, k * step)
    return best


def _alone(case: Case, n: int) -> int:
    """Return K[n], the whole tasks that the user could run alone on single servers."""
    instance, found = case.instance, 0
    for i in np.flatnonzero(instance.eligibility[n] & (instance.counts > 0)).tolist():
        rate = instance.rates_of_one[n, i]
        found += int(instance.counts[i]) * floor(rate if case.radius is not None else rate * (1 + FITS))
    return found
