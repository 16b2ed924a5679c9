"""What an audit says, worked out once more with plain loops and scipy: nothing of the audit is used, only instances and tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linprog

import fairopt as fo

Rows = tuple[np.ndarray, np.ndarray]
TOLERANCE = 1e-6


def pairs_of(instance: fo.Instance) -> list[tuple[int, int]]:
    """Return the eligible pairs."""
    return [(n, i) for n in range(instance.n_users) for i in range(instance.n_servers) if instance.eligibility[n, i]]


def limits(instance: fo.Instance, sharing: str = "rdm") -> Rows:
    """Return A, b of all limits over the pairs."""
    pairs = pairs_of(instance)
    rows, bounds = [], []
    for i in range(instance.n_servers):
        if sharing == "tdm":
            rows.append([1 / instance.rates[n, i] if j == i else 0.0 for n, j in pairs])
            bounds.append(1.0)
            continue
        for r in range(instance.n_resources):
            rows.append([float(instance.demands[n, r]) if j == i else 0.0 for n, j in pairs])
            bounds.append(float(instance.counts[i] * instance.capacities[i, r]))
    for n in range(instance.n_users):
        if np.isfinite(instance.tasks[n]):
            rows.append([float(m == n) for m, _ in pairs])
            bounds.append(float(instance.tasks[n]))
    return np.array(rows), np.array(bounds)


def feasible(instance: fo.Instance, tasks: np.ndarray, sharing: str = "rdm") -> bool:
    """Does it keep to every limit, up to rounding?"""
    matrix, bounds = limits(instance, sharing)
    x = np.array([tasks[n, i] for n, i in pairs_of(instance)])
    outside = tasks[~instance.eligibility]
    return bool((matrix @ x <= bounds * (1 + TOLERANCE) + 1e-9).all() and (tasks >= -1e-9).all() and (outside <= 1e-9).all())


def largest_gain(instance: fo.Instance, floors: np.ndarray, user: int, sharing: str = "rdm") -> float:
    """Return the most tasks that one user can have while everybody has its floor, by a linear program; -inf if that cannot be."""
    pairs = pairs_of(instance)
    matrix, bounds = limits(instance, sharing)
    own = np.array([[-float(m == n) for m, _ in pairs] for n in range(instance.n_users)])
    answer = linprog(
        [-float(n == user) for n, _ in pairs], A_ub=np.vstack([matrix, own]), b_ub=np.concatenate([bounds, -floors]), method="highs"
    )
    return -np.inf if answer.fun is None or answer.status != 0 else -float(answer.fun) - float(floors[user])


def envy(allocation: fo.Allocation, n: int, m: int) -> float:
    """Tasks that n would have more with what m holds."""
    instance, could = allocation.instance, 0.0
    scale = float(instance.weights[n] / instance.weights[m])
    for i in range(instance.n_servers):
        if not instance.eligibility[n, i]:
            continue
        if allocation.sharing == "tdm":
            if allocation.tasks[m, i] > 0:
                could += scale * float(allocation.tasks[m, i] / instance.rates[m, i] * instance.rates[n, i])
        else:
            bundle = [float(allocation.tasks[m, i] * demand) * scale for demand in instance.demands[m]]
            could += min(have / float(want) for have, want in zip(bundle, instance.demands[n], strict=True) if want > 0)
    return min(could, float(instance.tasks[n])) - float(allocation.tasks[n].sum())


def runs(instance: fo.Instance, told: fo.Instance, tasks: np.ndarray, n: int, sharing: str = "rdm", whole: bool = False) -> float:
    """True tasks that n runs with what it holds after a lie."""
    total = 0.0
    for i in range(instance.n_servers):
        if not instance.eligibility[n, i] or tasks[n, i] == 0:
            continue
        if sharing == "tdm":
            here = float(tasks[n, i] / told.rates[n, i] * instance.rates[n, i])
        else:
            bundle = tasks[n, i] * told.demands[n]
            here = min(float(have) / float(want) for have, want in zip(bundle, instance.demands[n], strict=True) if want > 0)
        total += np.floor(here + 1e-9) if whole else here
    return min(total, float(instance.tasks[n]))


def psdsf_condition(allocation: fo.Allocation) -> bool:
    """Theorems 1 and 2 of the PS-DSF paper, pair by pair."""
    instance, x = allocation.instance, allocation.tasks
    held = x.sum(axis=1)
    for n, i in pairs_of(instance):
        if held[n] >= instance.tasks[n] * (1 - 1e-9):
            continue
        share = [held[m] / (instance.weights[m] * instance.rates[m, i]) if instance.eligibility[m, i] else 0.0 for m in range(len(held))]
        found = False
        for r in range(1 if allocation.sharing == "tdm" else instance.n_resources):
            if allocation.sharing == "tdm":
                use = [float(x[m, i] / instance.rates[m, i]) if instance.eligibility[m, i] else 0.0 for m in range(len(held))]
                capacity, wanted = 1.0, True
            else:
                use = [float(x[m, i] * instance.demands[m, r]) for m in range(len(held))]
                capacity, wanted = float(instance.counts[i] * instance.capacities[i, r]), bool(instance.demands[n, r] > 0)
            full = sum(use) >= capacity * (1 - TOLERANCE)
            lowest = all(share[n] >= share[m] * (1 - TOLERANCE) for m in range(len(held)) if use[m] > capacity * TOLERANCE)
            found |= wanted and full and lowest
        if not found:
            return False
    return True


def check(audit: fo.Audit, **options: Any) -> list[str]:
    """Verify every witness of an audit of a notion; return what was verified."""
    allocation = audit.allocation
    instance, sharing, own = allocation.instance, allocation.sharing, allocation.tasks_per_user
    if allocation.notion == "bbf":
        instance = instance.replace(tasks=np.where(np.isfinite(instance.tasks), instance.tasks, 1.0))
    position = {name: n for n, name in enumerate(instance.users)}
    whole = allocation.certificate.whole_tasks
    for name in audit.violated:
        verdict = audit[name]
        witness = verdict.witness
        assert witness is not None
        n, size = position[witness.users[0]], verdict.violation
        if name == "sharing-incentive":
            part = float(instance.weights[n] / instance.weights.sum())
            owed = min(sum(part * float(instance.rates[n, i]) for i in range(instance.n_servers)), float(instance.tasks[n]))
            assert np.isclose(owed - own[n], size, rtol=1e-6)
        elif name == "envy-freeness":
            assert np.isclose(envy(allocation, n, position[witness.users[1]]), size, rtol=1e-6)
        elif name in ("ef1", "efx"):
            fewer = allocation.tasks.copy()
            fewer[position[witness.users[1]], instance.servers.index(witness.servers[0])] -= 1
            assert np.isclose(envy(replace(allocation, tasks=fewer), n, position[witness.users[1]]), size, rtol=1e-6)
        elif name == "maximin-share":
            alone = sum(
                int(instance.counts[i])
                * int(min(instance.capacities[i, r] / need for r, need in enumerate(instance.demands[n]) if need > 0))
                for i in np.flatnonzero(instance.eligibility[n])
            )
            ratio = instance.weights / instance.weights[n]
            tried = [k / each for each in ratio for k in range(alone + 1)]
            share = max(t for t in tried if sum(np.ceil(np.round(t * ratio, 9))) <= alone)
            assert np.isclose(min(share, instance.tasks[n]) - own[n], size, rtol=1e-6)
        elif name == "pareto":
            assert witness.tasks is not None
            assert feasible(instance, witness.tasks, sharing)
            gain = witness.tasks.sum(axis=1) - own
            assert (gain >= -1e-6 * (1 + own)).all()
            assert np.isclose(gain[n], size, rtol=1e-6)
            assert np.isclose(gain.max(), size, rtol=1e-6)
        elif name in ("max-min", "bottleneck-fairness", "single-resource-fairness") and not whole:
            assert witness.tasks is not None
            assert feasible(instance, witness.tasks, sharing)
            gain = witness.tasks.sum(axis=1) - own
            assert gain[n] > 0
            assert np.isclose(gain[n], size, rtol=1e-6)
        elif name == "population-monotonicity":
            assert witness.tasks is not None
            assert witness.instance is not None
            assert set(instance.users) - set(witness.instance.users) == {witness.users[-1]}
            after = witness.tasks.sum(axis=1)[witness.instance.users.index(witness.users[0])]
            assert feasible(witness.instance, witness.tasks, sharing)
            assert np.isclose(own[n] - after, size, rtol=1e-6)
            if allocation.notion in fo.NOTIONS and allocation.notion not in ("psdsf", "efficiency") and allocation.levels and not whole:
                again = fo.solve(witness.instance, allocation.notion, sharing=sharing, **options)  # type: ignore[arg-type]
                assert np.allclose(again.tasks_per_user, witness.tasks.sum(axis=1), rtol=1e-6)
        elif name == "strategy-proofness":
            assert witness.tasks is not None
            assert witness.instance is not None
            others = np.arange(instance.n_users) != n
            assert (witness.instance.demands[others] == instance.demands[others]).all()
            assert feasible(witness.instance, witness.tasks, sharing)
            assert np.isclose(runs(instance, witness.instance, witness.tasks, n, sharing, whole) - own[n], size, rtol=1e-6)
        elif name == "psdsf":
            assert not psdsf_condition(allocation)
        else:
            assert name == "no-justified-complaints" or whole
    return audit.violated
