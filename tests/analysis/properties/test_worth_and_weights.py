"""Tasks that count more on some servers, and weights per resource: where a user with all its tasks still wants, and slices differ."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fairopt as fo

TWO = fo.Instance([[1], [1]], [[1], [1]], tasks=[1, 1], users=["a", "b"])


def test_a_user_with_all_its_tasks_can_still_take_from_others() -> None:
    """y runs its one task where it counts little. Without z it rises on the other server, at the expense of m, who was above it."""
    users, utility = ["z", "y", "m"], np.array([[0.01, 0.01], [0.1, 1], [1, 1]])
    eligibility = np.array([[0, 1], [1, 1], [0, 1]], bool)
    demands, tasks = np.array([[0, 1], [1, 1], [1, 0]]), np.array([1, 1, np.inf])
    instance = fo.Instance([[1, 1], [1, 1]], demands, eligibility=eligibility, tasks=tasks, users=users)
    allocation = fo.solve(instance, "max-min", utility=utility)
    assert allocation.tasks_per_user == pytest.approx([1, 1, 1])
    left = fo.Instance([[1, 1], [1, 1]], demands[1:], eligibility=eligibility[1:], tasks=tasks[1:], users=users[1:])
    loss = 1 - fo.solve(left, "max-min", utility=utility[1:]).tasks_per_user[1]
    assert loss == pytest.approx(9 / 19)
    verdict = fo.audit(allocation, "population-monotonicity")["population-monotonicity"]
    assert verdict.holds is False
    assert verdict.violation == pytest.approx(loss)


def test_a_user_with_all_its_tasks_can_lie_for_better_servers() -> None:
    """b runs its one task where it counts 2 of 3; hiding that server it has 0.75 of a task on the other."""
    utility = [[3, 1], [3, 2]]
    allocation = fo.solve(TWO, "proportional", utility=utility)
    assert allocation.complete.all()
    verdict = fo.audit(allocation, "strategy-proofness", effort=30)["strategy-proofness"]
    assert verdict.holds is False
    assert verdict.violation >= 0.08


def test_equal_incomes_buy_no_better_server() -> None:
    """With limits on tasks that count more elsewhere proportional fairness promises neither a slice nor freedom from envy."""
    instance = fo.Instance([[1], [1]], [[1], [1]], tasks=[1, np.inf])
    utility = [[3, 2.5], [3, 0.1]]
    audit = fo.audit(fo.solve(instance, "proportional", utility=utility), ["sharing-incentive", "envy-freeness", "pareto"])
    assert audit.violated == ["sharing-incentive", "envy-freeness"]
    assert {name for name in audit if audit[name].promised} == {"pareto"}
    assert fo.audit(fo.solve(instance, "proportional"), "envy-freeness")["envy-freeness"].promised
    endless = instance.replace(tasks=None)
    assert fo.audit(fo.solve(endless, "proportional", utility=utility), "envy-freeness")["envy-freeness"].promised


@pytest.mark.parametrize(("weights", "promised"), [([[10, 0.5], [1, 1]], False), ([[2, 1], [1, 2]], True), ([3, 1], True)])
def test_drf_promises_slices_of_equal_sums(weights: list[list[float]], promised: bool) -> None:
    """With weights per resource whose sums differ a user can have less than its slices run."""
    pool = fo.Instance([[1, 1]], [[1, 0.5], [0.6, 1]], weights=weights)
    verdict = fo.audit(fo.solve(pool, "drf"), "sharing-incentive")["sharing-incentive"]
    assert verdict.holds is promised
    assert bool(verdict.promised) is promised


def test_a_share_of_time_has_one_weight() -> None:
    """Envy over time is scaled by one weight: no one column of weights per resource is it, whatever their order."""
    for weights in ([[1, 4], [1, 1]], [[4, 1], [1, 1]]):
        allocation = fo.solve(fo.Instance([[10, 10]], [[1, 1], [1, 1]], weights=weights), "drfh", sharing="tdm")
        assert fo.audit(allocation, "envy-freeness")["envy-freeness"].holds is None


def test_whole_tasks_that_move_to_a_poorer_server_are_no_improvement() -> None:
    """As many tasks for everybody are not as much: user-2's would count a quarter elsewhere."""
    demands, utility = [[3, 2], [2, 2], [2, 3]], [[1, 4], [1, 4], [4, 1]]
    allocation = fo.schedule(fo.Instance([[3, 4], [4, 3]], demands), "max-min", utility=utility)
    verdict = fo.audit(allocation, "pareto")["pareto"]
    assert verdict.holds
    assert "by branch and cut" in verdict.statement
    swap = fo.audit(fo.schedule(TWO, "max-min", utility=[[1, 3], [3, 1]]), "pareto")["pareto"]
    assert swap.violation == pytest.approx(2 / 3)


@pytest.mark.parametrize("seed", range(12))
def test_whole_tasks_by_their_worth_against_enumeration(seed: int) -> None:
    """Every other allocation of whole tasks takes from somebody, or the witness gives to somebody and takes from nobody."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(rng.integers(2, 5, (2, 2)), rng.integers(1, 3, (2, 2)), counts=[1, 2] if seed % 3 == 0 else None)
    utility = rng.integers(1, 5, (2, 2)).astype(float)
    allocation = fo.schedule(instance, "max-min", utility=utility, placement="worst-fit")
    value = (utility * allocation.tasks).sum(axis=1)
    single = np.repeat(np.arange(2), instance.counts.astype(int))
    each = [[p for p in itertools.product(range(5), repeat=2) if (p @ instance.demands <= instance.capacities[i]).all()] for i in single]
    better = False
    for tasks in itertools.product(*each):
        other = (utility[:, single] * np.array(tasks).T).sum(axis=1)
        better |= bool((other >= value).all() and (other > value).any())
    verdict = fo.audit(allocation, "pareto")["pareto"]
    assert verdict.holds is not better
    if better:
        assert verdict.witness is not None
        assert verdict.witness.tasks is not None
        assert ((utility * verdict.witness.tasks).sum(axis=1) >= value - 1e-9).all()
