"""No justified complaints: the paper's numbers, the theorem, and the set of all fair allocations."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from instances import demands_with_zeros

import fairopt as fo
from fairopt.certificate.conditions import clause_violation
from fairopt.models.bbf import BBF
from fairopt.program import Disjunctive

RING = [[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1]]
UNIQUE: dict[str, tuple[Any, Any, Any]] = {  # requests r, entitlements e, what is granted of each resource
    "section 4, first": ([[1, 0.2], [1, 0.2], [0.4, 0.8]], [1 / 3] * 3, [[1 / 3, 1 / 15], [1 / 3, 1 / 15], [1 / 3, 2 / 3]]),
    "section 4, second": ([[0.5, 0, 0, 1], [1, 1, 1, 0]], [0.5, 0.5], [[0.5, 0, 0, 1], [0.5, 0.5, 0.5, 0]]),
}
MANY = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[0.5, 0.3, 0.2])


def pool(requests: Any, entitlements: Any) -> fo.Instance:
    """Return a pool whose capacities are 1."""
    r = np.array(requests, float)
    return fo.Instance(np.ones((1, r.shape[1])), r, weights=entitlements)


def complaint(instance: fo.Instance, x: npt.NDArray[np.float64]) -> float:
    """Largest violation of condition (2), once more from the paper: x[n] = 1, or x[n] r[n,j] >= e[n] at some full j."""
    e = instance.weights / instance.weights.sum()
    tasks = np.where(np.isfinite(instance.tasks), instance.tasks, 1.0)
    r = instance.demands / instance.total_capacity
    free = np.maximum(1 - x @ r, 0.0)
    worst = 0.0
    for n in range(len(x)):
        at = [max(free[j], (e[n] - x[n] * r[n, j]) / e[n]) for j in range(r.shape[1]) if r[n, j] > 0]
        worst = max(worst, min([(tasks[n] - x[n]) / tasks[n] if tasks[n] else 0.0, *at]))
    return worst


@pytest.mark.parametrize("case", list(UNIQUE))
def test_grants_of_section_4(case: str) -> None:
    """What each user is granted of each resource, by BBF."""
    requests, entitlements, granted = UNIQUE[case]
    instance = pool(requests, entitlements)
    allocation = fo.solve(instance, "bbf")
    np.testing.assert_allclose(allocation.tasks_per_user[:, None] * instance.demands, granted, atol=1e-9)
    assert complaint(instance, allocation.tasks_per_user) <= 1e-9


@pytest.mark.parametrize(
    ("case", "granted"),
    [
        ("section 4, first", [[0.4, 0.08], [0.4, 0.08], [0.2, 0.4]]),
        ("section 4, second", [[1 / 3, 0, 0, 2 / 3], [2 / 3, 2 / 3, 2 / 3, 0]]),
    ],
)
def test_dominant_resource_fairness_of_section_4(case: str, granted: list[list[float]]) -> None:
    """The paper prints DRF beside BBF; there a request is one task too."""
    requests, entitlements, _ = UNIQUE[case]
    instance = pool(requests, entitlements).replace(tasks=np.ones(len(requests)))
    allocation = fo.solve(instance, "drf")
    np.testing.assert_allclose(allocation.tasks_per_user[:, None] * instance.demands, granted, atol=1e-9)


def test_three_users_of_section_3() -> None:
    """The instance on which the greedy approach fails; the paper gives no numbers."""
    instance = pool([[1 / 2, 1 / 2, 2 / 3], [1 / 2, 5 / 8, 1 / 2], [1, 1, 1 / 3]], [1 / 2, 3 / 8, 1 / 8])
    allocation = fo.solve(instance, "bbf")
    np.testing.assert_allclose(allocation.tasks_per_user, [0.97870, 0.60794, 0.13069], atol=5e-6)


def test_a_family_of_fair_allocations() -> None:
    """Section 5.5: x = (z, 1-z, 1-z), 0.5 <= z <= 0.7, and the trajectory ends at z = 0.5."""
    np.testing.assert_allclose(fo.solve(MANY, "bbf").tasks_per_user, [0.5, 0.5, 0.5], atol=1e-9)
    for prefer, z in (([1, 0, 0], 0.7), ([-1, 0, 0], 0.5), ([0, 1, 0], 0.5), ([0, 0, -1], 0.7)):
        allocation = fo.solve(MANY, "bbf", prefer=prefer)
        np.testing.assert_allclose(allocation.tasks_per_user, [z, 1 - z, 1 - z], atol=1e-9)
        assert allocation.certificate.worst <= 1e-9
        assert complaint(MANY, allocation.tasks_per_user) <= 1e-9


def test_ring_of_four_users() -> None:
    """Section 5.5: 1/3 each; the six of the paper are fair too; and one user may have as little as 1/4 and as much as 1/2."""
    ring = pool(RING, [0.25] * 4)
    np.testing.assert_allclose(fo.solve(ring, "bbf").tasks_per_user, [1 / 3] * 4, atol=1e-9)
    np.testing.assert_allclose(fo.solve(ring, "bbf", prefer="utilization").tasks_per_user, [1 / 3] * 4, atol=1e-9)
    program = fo.formulate(ring, BBF(prefer="utilization"))
    assert isinstance(program.goal, Disjunctive)
    for i in range(4):
        for j in range(i):
            x = np.full(4, 0.375)
            x[[i, j]] = 0.25
            assert clause_violation(program.goal, x, None) <= 1e-12
            assert complaint(ring, x) <= 1e-12
    for n in range(4):
        unit = np.eye(4)[n]
        assert fo.solve(ring, "bbf", prefer=unit).tasks_per_user[n] == pytest.approx(0.5, abs=1e-9)
        assert fo.solve(ring, "bbf", prefer=-unit).tasks_per_user[n] == pytest.approx(0.25, abs=1e-9)
    total = [fo.solve(ring, "bbf", prefer=sign * np.ones(4)).tasks_per_user.sum() for sign in (1, -1)]
    np.testing.assert_allclose(total, [4 / 3, 5 / 4], atol=1e-9)


def random_pool(seed: int) -> fo.Instance:
    """Zero requests, users who can be satisfied, entitlements over two orders of magnitude, requests of several tasks."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    r = demands_with_zeros(rng, (n, m), 0.05, 1)
    tasks = np.where(rng.random(n) < 0.3, rng.uniform(0.2, 3, n), np.inf)
    return fo.Instance(rng.uniform(0.5, 2, (1, m)), r, weights=10 ** rng.uniform(-1, 1, n), tasks=tasks)


def test_trajectory_nash_optimum_and_definition_agree() -> None:
    """The limit of the trajectory is the weighted Nash optimum, and that is fair: on 80 random pools.

    Limit: the end of the path, where 1/c is 1e-8. Optimum: the certificate's bound, which also bounds the distance: the goal's curvature is
    at least phi[n] / x[n]^2, so that (x'[n] / x[n] - 1)^2 <= 2 gap / phi[n]. Fair: the paper's condition (2).
    """
    clear = 0
    for seed in range(80):
        instance = random_pool(seed)
        allocation = fo.solve(instance, "bbf", solver="trajectory")
        x = allocation.tasks_per_user
        assert allocation.certificate.worst <= 1e-13
        phi = instance.weights / instance.weights.sum()
        assert np.sqrt(2 * allocation.certificate.optimality / phi).max() <= 1e-6
        assert complaint(instance, x) <= 1e-9, seed
        path = allocation.trace
        end = path.x[-1]
        assert abs(phi @ np.log(end / x)) <= 1e-6, seed  # the goal at the end of the path is within (number of limits) / c
        np.testing.assert_allclose(end, x, rtol=2e-3)  # and so the point: sqrt(1/c) where a request just fits,
        full = path.bottlenecks
        if path.multipliers[-1][full].min() > 1e-2 and (1 - path.utilization[-1][~full]).min(initial=1) > 1e-2:  # 1/c otherwise
            clear += 1
            np.testing.assert_allclose(end, x, rtol=1e-6, atol=1e-6)
    assert clear > 40


def test_every_preference_is_fair() -> None:
    """Random pools: both ends of each preference satisfy the definition, with the trajectory's answer between them."""
    for seed in range(20):
        instance = random_pool(seed)
        prefer = np.random.default_rng(seed).normal(size=instance.n_users)
        low, high = (fo.solve(instance, "bbf", prefer=sign * prefer) for sign in (-1, 1))
        for allocation in (low, high):
            assert complaint(instance, allocation.tasks_per_user) <= 1e-9
            assert allocation.certificate.worst <= 1e-9
        x = fo.solve(instance, "bbf").tasks_per_user
        assert low.tasks_per_user @ prefer - 1e-9 <= x @ prefer <= high.tasks_per_user @ prefer + 1e-9


def test_a_lie_can_pay() -> None:
    """Against the paper's argument in section 4: asking for more of both makes resource 2 the bottleneck instead of resource 1.

    Honest: resource 1 is cut in halves, x = (1/2 / 0.6, 1). Lying: resource 2 is, and the lie's (1, 0.8) / 1.6 covers (0.6, 0.3).
    """
    honest = pool([[0.6, 0.3], [0.5, 0.7]], [0.5, 0.5])
    lie = pool([[1, 0.8], [0.5, 0.7]], [0.5, 0.5])
    np.testing.assert_allclose(fo.solve(honest, "bbf").tasks_per_user, [5 / 6, 1], rtol=1e-9)
    held = fo.solve(lie, "bbf").tasks_per_user[0] * lie.demands[0]
    np.testing.assert_allclose(held, [0.625, 0.5], rtol=1e-9)
    assert (held >= honest.demands[0]).all()


def test_nobody_envies_in_the_nash_optimum() -> None:
    """What another holds, scaled by the entitlements, is never worth more: it costs as much at the equilibrium's prices."""
    for seed in range(40):
        instance = random_pool(seed).replace(tasks=None)
        x, e = fo.solve(instance, "bbf").tasks_per_user, instance.weights
        for n in range(instance.n_users):
            uses = instance.demands[n] > 0
            worth = (x[:, None] * instance.demands / e[:, None])[:, uses] * e[n] / instance.demands[n, uses]
            assert np.minimum(worth.min(axis=1), 1).max() <= x[n] + 1e-9


def test_what_is_refused() -> None:
    """Several servers, time, and preferences that are none."""
    two = fo.Instance([[1], [1]], [[1], [1]])
    with pytest.raises(fo.Unsupported, match=r"2 servers; describe the pool as one server .in Python, instance.pooled\(\)"):
        fo.solve(two, "bbf")
    assert fo.solve(two.pooled(), "bbf").tasks_per_user.tolist() == [1, 1]
    with pytest.raises(fo.Unsupported, match=r'"user-1" does the work of 2 tasks on server-1, .* one pool; use "cdrf"'):
        fo.solve(two.replace(speeds=[[2, 1], [1, 1]]), "bbf")
    with pytest.raises(fo.Unsupported, match="divides resources"):
        fo.solve(MANY, "bbf", sharing="tdm")
    with pytest.raises(fo.Unsupported, match='cannot prefer "speed"'):
        fo.solve(MANY, "bbf", prefer="speed")
    for prefer, message in (([1, 2], "shape"), ([1, 2, np.nan], "finite"), (["a", 1, 1], "numbers")):
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.solve(MANY, "bbf", prefer=prefer)


def test_users_with_nothing_to_do_or_nowhere_to_go() -> None:
    """T = 0, no demand at all, and a demand for a resource that does not exist."""
    instance = fo.Instance([[1, 0]], [[1, 0], [1, 0], [0, 0], [0, 1]], tasks=[np.inf, 0, 2, np.inf])
    assert fo.solve(instance, "bbf").tasks_per_user.tolist() == [1, 0, 2, 0]
    assert fo.solve(instance, "bbf", prefer="utilization").tasks_per_user.tolist() == [1, 0, 2, 0]
