"""Every check against the definition, worked out pair by pair on tiny instances: `witnesses` shares nothing with the audit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import witnesses
from strategies import instances

import fairopt as fo
from fairopt.analysis import rerun

ARBITRARY = settings(max_examples=25, deadline=None)


def takes_part(instance: fo.Instance) -> np.ndarray:
    """Who may run somewhere and has tasks."""
    return instance.servable & (instance.tasks > 0)


def arbitrary(instance: fo.Instance, seed: int, sharing: str) -> fo.Allocation:
    """An allocation that somebody made up: what is filled in random order, some of it half."""
    rng = np.random.default_rng(seed)
    tasks = np.zeros(instance.eligibility.shape)
    for n, i in rng.permutation(witnesses.pairs_of(instance)) if witnesses.pairs_of(instance) else []:
        if sharing == "tdm":
            busy = sum(tasks[m, i] / instance.rates[m, i] for m in range(instance.n_users) if instance.eligibility[m, i])
            room = (1 - busy) * instance.rates[n, i]
        else:
            free = instance.row_capacity[i] - tasks[:, i] @ instance.demands
            asks = instance.demands[n] > 0
            room = (free[asks] / instance.demands[n, asks]).min()
        room = min(room, instance.tasks[n] - tasks[n].sum())
        tasks[n, i] = max(room, 0.0) * rng.choice([0.0, 0.5, 1.0, 1.0])
    return rerun.given(instance, tasks, sharing)


@given(instance=instances(max_users=4, max_servers=3), seed=st.integers(0, 2**16), sharing=st.sampled_from(["rdm", "tdm"]))
@ARBITRARY
def test_an_arbitrary_allocation(instance: fo.Instance, seed: int, sharing: str) -> None:
    """Sharing incentive, envy, Pareto, PS-DSF and max-min of what is not fair at all."""
    allocation = arbitrary(instance, seed, sharing)
    audit = fo.audit(allocation, ["sharing-incentive", "envy-freeness", "pareto", "psdsf", "max-min"])
    own, part = allocation.tasks_per_user, takes_part(instance)
    assert audit.violations == ()
    if allocation.certificate.whole_tasks:
        return
    slices = fo.solve(instance, "uniform", sharing=sharing).tasks_per_user  # type: ignore[arg-type]
    lack = np.where(part, slices - own, 0.0).max()
    assert audit["sharing-incentive"].violation == pytest.approx(lack if lack > 1e-5 else 0.0, rel=1e-6, abs=1e-5)

    users = [int(n) for n in np.flatnonzero(part)]
    largest = max((witnesses.envy(allocation, n, m) for n, m in itertools.permutations(users, 2)), default=0.0)
    others = [witnesses.envy(allocation, n, m) for n in users for m in map(int, np.flatnonzero(~part))]
    assert audit["envy-freeness"].violation == pytest.approx(max([largest, 0.0, *others]), rel=1e-6, abs=1e-5)

    gains = [witnesses.largest_gain(instance, own * (1 - 1e-12), n, sharing) for n in users]
    assert (audit["pareto"].holds is False) == (max(gains, default=0.0) > 1e-5 * (1 + own.max(initial=0.0)))

    assert audit["psdsf"].holds == witnesses.psdsf_condition(allocation)

    # Kesidis et al. (2018), definition 1: nobody can rise while all at or below its share keep theirs.
    per_task = (instance.demands / np.where(instance.total_capacity > 0, instance.total_capacity, np.inf)).max(axis=1) / instance.weights
    rises = 0.0
    for n in users:
        floors = np.where(own * per_task <= own[n] * per_task[n] * (1 + 1e-9), own, 0.0)
        rises = max(rises, witnesses.largest_gain(instance, floors * (1 - 1e-12), n, sharing))
    assert (audit["max-min"].holds is False) == (rises > 1e-5 * (1 + own.max(initial=0.0)))
    witnesses.check(audit)


@given(instance=instances(max_users=4, one_server=True), seed=st.integers(0, 2**16))
@ARBITRARY
def test_complaints(instance: fo.Instance, seed: int) -> None:
    """Dolev et al. (2012), equation (2), user by user and resource by resource."""
    allocation = arbitrary(instance, seed, "rdm")
    verdict = fo.audit(allocation, "no-justified-complaints")["no-justified-complaints"]
    capacity, use, own = instance.capacities[0], allocation.usage[0], allocation.tasks_per_user
    entitled = instance.weights / max(float(instance.weights[instance.servable].sum()), 1e-300)
    complaints = []
    for n in np.flatnonzero(takes_part(instance)):
        if own[n] >= instance.tasks[n] * (1 - 1e-9):
            continue
        used = [j for j in range(instance.n_resources) if instance.demands[n, j] > 0]
        full = [j for j in used if use[j] >= capacity[j] * (1 - 1e-6)]
        lack = [entitled[n] * capacity[j] / instance.demands[n, j] - own[n] for j in full]
        room = [(capacity[j] - use[j]) / instance.demands[n, j] for j in used]
        complaints.append(min(min(lack) if full else min(room), instance.tasks[n] - own[n]))
    worst = max([0.0, *complaints])
    assert verdict.holds == (worst <= 1e-5)
    assert verdict.violation == pytest.approx(worst, rel=1e-6, abs=1e-5)


@given(instance=instances(max_users=3, max_servers=2, max_resources=2, whole=True), seed=st.integers(0, 2**16))
@settings(max_examples=10, deadline=None)
def test_whole_tasks_are_judged_among_whole_tasks(instance: fo.Instance, seed: int) -> None:
    """Against every allocation of whole tasks there is."""
    instance = instance.replace(counts=None, tasks=np.minimum(instance.tasks, 3), weights=None)
    greedy = fo.schedule(instance, "drfh", placement="first-fit", ties="random", seed=seed)
    tasks = greedy.tasks.copy()
    if tasks.any() and seed % 2:
        n, i = np.argwhere(tasks)[0]
        tasks[n, i] -= 1  # leaves room
    allocation = rerun.given(instance, tasks, "rdm")
    verdict = fo.audit(allocation, "pareto")["pareto"]
    pairs = witnesses.pairs_of(instance)
    own, better = tasks.sum(axis=1), False
    for x in itertools.product(range(4), repeat=len(pairs)):
        other = np.zeros(tasks.shape)
        for (n, i), number in zip(pairs, x, strict=True):
            other[n, i] = number
        gain = other.sum(axis=1) - own
        if (gain >= 0).all() and gain.any() and (other.T @ instance.demands <= instance.capacities + 1e-9).all():
            better |= bool((other.sum(axis=1) <= instance.tasks).all())
    assert verdict.holds == (not better)
    assert "among whole tasks" in verdict.statement or not takes_part(instance).any()
    witnesses.check(fo.audit(allocation, ["pareto", "max-min"]))


@pytest.mark.parametrize("notion", ["drf", "efficiency", "proportional"])
def test_every_lie_of_a_grid(notion: str) -> None:
    """Two users of a pool, all declared demands of a grid: where one pays, the search finds one that is nearly as good."""
    instance = fo.Instance([[6, 6]], [[1, 2], [2, 1]])
    honest = fo.solve(instance, notion).tasks_per_user
    best = 0.0
    for n in range(2):
        for demand in itertools.product([1.0, 2.0, 3.0], repeat=2):
            demands = instance.demands.copy()
            demands[n] = demand
            told = instance.replace(demands=demands)
            best = max(best, witnesses.runs(instance, told, fo.solve(told, notion).tasks, n) - honest[n])
    audit = fo.audit(fo.solve(instance, notion), "strategy-proofness", effort=50)
    verdict = audit["strategy-proofness"]
    assert (verdict.holds is False) == (best > 1e-6)
    assert verdict.violation >= best * 0.95
    assert witnesses.check(audit) == ([] if best <= 1e-6 else ["strategy-proofness"])
