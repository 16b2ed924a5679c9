"""The best of all fair allocations in fractions, against every choice of alternatives there is, and against the definitions."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import fairopt as fo
from fairopt.solving import alternatives, fractions
from fairopt.solving.enclosures import answer_in_floats


def best_by_enumeration(instance: fo.Instance, prefer: list[int]) -> float:
    """Every user has all its tasks, or its entitlement of a full resource: each combination is a linear program."""
    users, resources = instance.n_users, instance.n_resources
    part, best = instance.weights / instance.weights.sum(), -np.inf
    capacity, demands = instance.capacities[0], instance.demands
    for choice in itertools.product(range(-1, resources), repeat=users):
        rows, bounds = [*demands.T], [*capacity]
        for n, r in enumerate(choice):
            if r >= 0:
                rows += [-demands[:, r], -demands[n, r] * np.eye(users)[n]]
                bounds += [-capacity[r], -part[n] * capacity[r]]
        limits = [(instance.tasks[n] if choice[n] < 0 else 0, instance.tasks[n]) for n in range(users)]
        found: Any = linprog([-float(a) for a in prefer], A_ub=np.array(rows), b_ub=np.array(bounds), bounds=limits)
        if found.status == 0:
            best = max(best, -found.fun)
    return float(best)


def test_no_complaint_and_nothing_better() -> None:
    """Pools of two or three users: the value of the enumeration, and no complaint in fractions."""
    rng, several = random.Random(1), 0
    for _ in range(5):
        users = rng.randint(2, 3)
        demands = [[rng.randint(0, 3) for _ in range(2)] for _ in range(users)]
        demands = [row if any(row) else [1, 1] for row in demands]
        weights = [rng.randint(1, 3) for _ in range(users)]
        instance = fo.Instance(
            [[rng.randint(3, 9) for _ in range(2)]], demands, weights=weights, tasks=[rng.randint(1, 4) for _ in range(users)]
        )
        values = []
        for sign in (1, -1):
            prefer = [sign, *[0] * (users - 1)]
            allocation = fo.solve(instance, "bbf", prefer=prefer, exact=True)
            assert allocation.exact is not None
            assert allocation.certificate.exact
            values.append(allocation.exact.tasks_per_user[0])
            assert float(sign * values[-1]) == pytest.approx(best_by_enumeration(instance, prefer), abs=1e-7)
            assert fo.audit(allocation, "no-justified-complaints")["no-justified-complaints"].exact == 0
        several += values[0] != values[1]
    assert several >= 2


def test_the_ring_of_three() -> None:
    """Each asks for its own resource and the next one's: the first user has between a third and two thirds."""
    ring = fo.Instance([[1, 1, 1]], [[1, 1, 0], [0, 1, 1], [1, 0, 1]], tasks=[1, 1, 1])
    ends = [fo.solve(ring, "bbf", prefer=[sign, 0, 0], exact=True).exact for sign in (-1, 1)]
    assert [each.tasks_per_user[0] for each in ends if each is not None] == [Fraction(1, 3), Fraction(2, 3)]
    thirds = fo.solve(ring, "bbf", prefer=[0, Fraction(1, 3), -1], exact=True).exact
    assert thirds is not None
    assert thirds.tasks_per_user.tolist() == [Fraction(1, 3), Fraction(2, 3), Fraction(1, 3)]


def test_all_psdsf_allocations() -> None:
    """Two channels whose equilibria are many: the ends, between which the equilibrium lies, and the condition in fractions."""
    instance = fo.Instance([[1], [1]], [[1], [1], [1]], tasks=[2, 2, 2], rates=[[1, 1], [2, 1], [1, 2]])
    for options in ({"prefer": [1, 0, 0]}, {"prefer": "utilization"}, {"prefer": [-1, 0, Fraction(1, 3)]}):
        exact, floats = (fo.solve(instance, "psdsf", exact=exactly, **options) for exactly in (True, False))
        assert exact.exact is not None
        assert exact.exact.tasks_per_user.astype(float) == pytest.approx(floats.tasks_per_user, abs=1e-6)
        assert fo.audit(exact, "psdsf")["psdsf"].exact == 0


def test_what_is_not_proved_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many programs: the point is exact, and the gap is the one that branch and cut reports, not 0."""
    monkeypatch.setattr(alternatives, "_MOST", 1)
    monkeypatch.setattr(fractions, "answer_in_floats", lambda *given: replace(answer_in_floats(*given), gap=3e-9))
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], tasks=[4, 3])
    allocation = fo.solve(pool, "bbf", prefer=[-1, 0], exact=True)
    assert allocation.exact is not None
    assert allocation.exact.tasks_per_user.tolist() == [4, Fraction(5, 3)]
    assert not allocation.certificate.exact
    assert allocation.certificate.reported_gap
    assert allocation.certificate.optimality == allocation.certificate.worst == allocation.details["gap"] == 3e-9
    assert allocation.to_dict()["certificate"]["reported_gap"] is True
    assert "by branch and cut" in allocation.proof
