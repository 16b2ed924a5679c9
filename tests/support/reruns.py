"""Reruns of changed instances, checked against fractions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from instances import gpu_cluster, uniform_instance

import fairopt as fo
from fairopt.analysis.rerun import rerun

__all__ = ["check_reruns", "small_cluster"]


def small_cluster(seed: int) -> fo.Instance:
    """A cluster of GPUs, with finite tasks if the seed is odd; from seed 5 on a uniform instance."""
    return gpu_cluster(9, seed, finite=bool(seed % 2)) if seed < 5 else uniform_instance(8, 3, 2, seed=seed)


def check_reruns(
    monkeypatch: pytest.MonkeyPatch, solve: Callable[..., Any], allocation: fo.Allocation, seed: int, worst: float, **question: Any
) -> None:
    """Check that reruns of an allocation have the tasks of fractions, and that ``solve``, a function of its module, answers some.

    In turn a user leaves, declares twice its demands, or has another weight. The answer in fractions is found by another engine.
    """
    rng, instance = np.random.default_rng(seed), allocation.instance
    answers: list[bool] = []

    def counted(*arguments: Any) -> Any:
        found = solve(*arguments)
        answers.append(found is not None)
        return found

    monkeypatch.setattr(f"{solve.__module__}.{solve.__name__}", counted)
    for n in range(instance.n_users):
        tasks, demands, weights = instance.tasks.copy(), instance.demands.copy(), instance.weights.copy()
        if n % 3 == 0:
            tasks[n] = 0.0
        elif n % 3 == 1:
            demands[n] *= 2
        else:
            weights[n] *= float(rng.uniform(0.5, 2))
        changed = instance.replace(tasks=tasks, demands=demands, weights=weights)
        exact = fo.solve(changed, exact=True, **question).exact
        assert exact is not None
        found = rerun(allocation, changed)
        np.testing.assert_allclose(found.tasks_per_user, exact.tasks_per_user.astype(float), rtol=1e-8, atol=1e-9)
        assert found.certificate.worst <= worst
    assert any(answers)
