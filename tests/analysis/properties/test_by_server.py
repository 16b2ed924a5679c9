"""Audits where demands and speeds differ by server: every violation is computed again by linear programs over pairs, and lies are told."""

from typing import Any

import numpy as np
import pytest
from conformance.test_by_server import drawn
from scipy.optimize import linprog

import fairopt as fo
from fairopt.analysis.measures import could_run_with, envy_matrix, largest_envy, violations, with_what_others_hold
from fairopt.analysis.rerun import given, rerun

SEEDS = range(10)


def most_work(instance: fo.Instance, n: int, on_servers: np.ndarray, of_cluster: np.ndarray, *, everywhere: bool = False) -> float:
    """Return the most work of a user with amounts on each server, (servers, M), and of the cluster, within its tasks and parallelism."""
    k, m = on_servers.shape
    demand = instance.demands_by_kind[n, instance.kind_of]
    rows = [np.where(np.arange(k) == i, demand[:, r], 0) for i in range(k) for r in range(m)]
    bounds = list(on_servers.ravel())
    rows += list(demand[:, m:].T)
    bounds += list(of_cluster)
    if np.isfinite(instance.tasks[n]):
        rows, bounds = [*rows, np.ones(k)], [*bounds, instance.tasks[n]]
    if np.isfinite(instance.parallelism[n]) and (everywhere or instance.limited[n]):
        alone = [min(c / d for c, d in zip(instance.capacities[i], demand[i], strict=False) if d > 0) for i in range(k)]
        rows, bounds = [*rows, 1 / np.array(alone)], [*bounds, instance.parallelism[n]]
    upper = [(0, None if may else 0) for may in instance.eligibility[n]]
    found: Any = linprog(-instance.speeds[n], A_ub=np.array(rows), b_ub=bounds, bounds=upper)
    return float(-found.fun)


def bundle(instance: fo.Instance, m: int, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the amounts that tasks of a user take on each server, and of the cluster."""
    amounts = tasks[:, None] * instance.demands_by_kind[m, instance.kind_of]
    of_servers = instance.capacities.shape[1]
    return amounts[:, :of_servers], amounts[:, of_servers:].sum(axis=0)


def some_tasks(instance: fo.Instance, seed: int) -> fo.Allocation:
    """Return a random allocation, half of the optimum of a random goal."""
    wanted = np.random.default_rng(seed).uniform(0.1, 1, instance.n_users)
    tasks = fo.solve(instance.replace(weights=wanted), "max-min").tasks / 2
    return given(instance, tasks, "rdm")


@pytest.mark.parametrize("seed", SEEDS)
def test_envy_and_slices_are_those_of_linear_programs(seed: int) -> None:
    """Of each pair of users a program over the servers; of each user one over its slice."""
    instance = drawn(seed)
    allocation = some_tasks(instance, seed)
    does, weights = allocation.work, instance.weights
    envy: np.ndarray = np.zeros((instance.n_users, instance.n_users))
    for n, m in np.ndindex(envy.shape):
        on_servers, of_cluster = bundle(instance, m, allocation.tasks[m])
        times = weights[n] / weights[m]
        would = most_work(instance, n, times * on_servers, times * of_cluster, everywhere=True)
        assert could_run_with(allocation, n)[m] == pytest.approx(would, rel=1e-6, abs=1e-8)
        envy[n, m] = max(float(would - does[n]), 0.0) if n != m else 0.0
    np.testing.assert_allclose(envy_matrix(allocation), envy, rtol=1e-6, atol=1e-8)
    assert largest_envy(allocation).tasks == pytest.approx(envy.max(), rel=1e-6, abs=1e-8)
    total = instance.counts[:, None] * instance.capacities
    part = weights / weights.sum()
    slices = [most_work(instance, n, part[n] * total, part[n] * instance.shared_capacity) for n in range(instance.n_users)]
    lack = float((np.array(slices) - does).max())
    audit = fo.audit(allocation, ["envy-freeness", "sharing-incentive", "pareto"])
    assert audit["envy-freeness"].violation == pytest.approx(envy.max(), rel=1e-5, abs=1e-6)
    assert audit["sharing-incentive"].violation == pytest.approx(max(lack, 0), rel=1e-5, abs=1e-6)
    assert audit["pareto"].holds is False
    witness = audit["pareto"].witness
    assert witness is not None
    better = witness.tasks
    assert better is not None
    assert (instance.work(better) >= does - 1e-9).all()
    assert not violations(instance, better, "rdm", 1e-9)


@pytest.mark.parametrize("notion", ["cdrf", "max-min", "proportional", "efficiency"])
def test_witnesses_prove_themselves(notion: str) -> None:
    """A lie is told again, and what its resources do is a linear program; a user leaves, and the rest is solved again."""
    for seed in (1, 3):
        instance = drawn(seed)
        allocation = fo.solve(instance, notion)
        audit = fo.audit(allocation, ["strategy-proofness", "population-monotonicity", "pareto", "max-min"], effort=20, seed=seed)
        assert audit["pareto"].holds
        assert audit["max-min"].holds is True or notion in ("proportional", "efficiency")
        lie = audit["strategy-proofness"]
        if lie.witness is not None:
            assert lie.witness.instance is not None
            n = instance.index(lie.witness.users[0])
            on_servers, of_cluster = bundle(lie.witness.instance, n, rerun(allocation, lie.witness.instance).tasks[n])
            gain = most_work(instance, n, on_servers, of_cluster) - allocation.work[n]
            assert gain >= lie.violation * (1 - 1e-6) > 0
        left = audit["population-monotonicity"]
        if left.witness is not None:
            assert left.witness.instance is not None
            loser, gone = (instance.index(name) for name in (left.witness.users[0], left.witness.users[-1]))
            after = dict(zip(left.witness.instance.users, rerun(allocation, left.witness.instance).work, strict=True))
            assert instance.users[gone] not in after
            assert allocation.work[loser] - after[instance.users[loser]] == pytest.approx(left.violation, rel=1e-5)


def test_fractions_give_the_same_verdicts() -> None:
    """Of small instances; what holds is proved, without a tolerance."""
    for seed in (0, 3):
        instance = drawn(seed)
        floats = fo.audit(fo.solve(instance, "cdrf"), ["sharing-incentive", "envy-freeness", "pareto", "max-min"])
        exact = fo.audit(fo.solve(instance, "cdrf", exact=True), [*floats])
        for name, verdict in exact.items():
            assert verdict.exact is not None
            assert verdict.holds == floats[name].holds
            assert verdict.violation == pytest.approx(floats[name].violation, rel=1e-5)


def test_servers_that_decide_alone_are_not_asked_in_fractions_of_finite_tasks() -> None:
    """A user with 20 tasks that do other work elsewhere: every check of an answer in fractions says so, or judges it."""
    instance = fo.Instance([[4], [8]], [[[1], [2]], [[1], [1]]], speeds=[[1.0, 0.5], [1.0, 1.0]], tasks=[20, np.inf])
    verdicts = fo.audit(fo.solve(instance, "cdrf", exact=True), effort=5)
    assert verdicts["psdsf"].holds is None
    assert "finitely many tasks" in str(verdicts["psdsf"])
    assert verdicts["max-min"].holds


LAB = fo.Instance([[8], [8]], [[[1], [2]], [[1], [1]]], speeds=[[1.0, 0.5], [1.0, 1.0]], users=["a", "b"], servers=["s", "t"])


def test_work_is_what_counts() -> None:
    """Twice the speed, everywhere and for all, makes every violation twice as large."""
    lab = LAB
    properties = ["sharing-incentive", "envy-freeness", "max-min"]
    once = fo.audit(given(lab, [[1, 0], [7, 8]], "rdm"), properties)
    twice = fo.audit(given(lab.replace(speeds=2 * lab.speeds), [[1, 0], [7, 8]], "rdm"), properties)
    assert once["envy-freeness"].violation == 8  # 7 on s, and 4 of half the work on t, less the 1 that it does
    assert once["sharing-incentive"].violation == 4  # 4 on s, and 2 of half the work on t
    assert str(once["envy-freeness"].witness.text).startswith('"a" runs the work of 1 task. With what "b" holds')  # type: ignore[union-attr]
    assert [verdict.violation for verdict in twice.values()] == pytest.approx([2 * verdict.violation for verdict in once.values()])
    assert fo.audit(given(lab, [[1, 0], [7, 8]], "rdm"), ["bottleneck-fairness"])["bottleneck-fairness"].statement == (
        'Does not apply: it is about tasks that are the same everywhere, and the demand of a task of "a" differs from server to server '
        "(resource-1: 1 on s, 2 on t)."
    )


def test_who_has_all_its_tasks_on_slow_servers_wants_the_fast_ones() -> None:
    """A user is complete only where its tasks do most: here it envies the other server."""
    lab = fo.Instance([[4], [4]], [[1], [1]], speeds=[[10, 1], [1, 1]], tasks=[4, 4], users=["a", "b"], servers=["fast", "slow"])
    audit = fo.audit(given(lab, [[0, 4], [4, 0]], "rdm"), ["envy-freeness", "pareto"])
    assert audit["envy-freeness"].violation == 36
    assert audit["pareto"].violation == pytest.approx(36)


def test_queues_are_judged_by_work() -> None:
    """A queue with the slice of its weight is better off if nobody below it does less and somebody does more; guarantees are amounts."""
    lab = fo.Instance(
        [[8], [8]],
        [[[1], [2]], [[1], [1]], [[1], [1]]],
        speeds=[[1.0, 0.5], [1.0, 1.0], [1.0, 2.0]],
        users=["a", "b", "c"],
        servers=["s", "t"],
        resources=["gpu"],
        queues=[fo.Queue("p", guarantee={"gpu": 6.0}), fo.Queue("q")],
        queue_of=["p", "q", "q"],
    )
    held = given(lab, [[2, 0], [6, 0], [0, 8]], "rdm")
    audit = fo.audit(held, ["envy-freeness", "sharing-incentive", "guarantees", "pareto"])
    assert audit["guarantees"].violation == 2  # 4 gpu are missing, 2 tasks of 2 gpu at least
    # The slice of p: its guarantee of 6, of which it holds 2, and half of what is left of 16 gpu beyond the 2 that it holds.
    assert audit["sharing-incentive"].witness.users == ("a",)  # type: ignore[union-attr]
    assert audit["envy-freeness"].violation == pytest.approx(6 + 8 / 4 - 2)  # with what q holds: 6 on s, 4 tasks of half the work on t
    assert audit["pareto"].holds
    told = str(fo.explain(held, queue="p"))
    assert "It is guaranteed 6 gpu, and 4 are missing" in told


def test_servers_that_decide_alone_compare_work() -> None:
    """PS-DSF is satisfied by its own answers, in units of work; an equal instance in these units gives the same violation."""
    for seed in range(6):
        instance = drawn(seed, limited=False)
        if instance.shared:
            continue
        instance = instance.replace(tasks=None)
        assert fo.audit(fo.solve(instance, "psdsf"), ["psdsf"])["psdsf"].holds
        demands = instance.demands_by_kind[:, instance.kind_of] / np.where(instance.speeds > 0, instance.speeds, 1)[:, :, None]
        of_work = instance.replace(demands=demands, speeds=None, eligibility=instance.eligibility)
        half = fo.solve(instance, "efficiency").tasks / 2
        there, here = (
            fo.audit(given(each, x, "rdm"), ["psdsf"])["psdsf"] for each, x in ((of_work, half * instance.speeds), (instance, half))
        )
        assert here.holds is there.holds is False
        assert here.violation == pytest.approx(there.violation, rel=1e-8)
    few = LAB.replace(tasks=[3, np.inf])
    assert "other work on other servers" in fo.audit(fo.solve(few, "cdrf"), ["psdsf"])["psdsf"].statement


PROVED: dict[str, set[str]] = {
    "cdrf": {"sharing-incentive", "pareto"},
    "tsf": {"sharing-incentive", "pareto"},
    "drfh": {"pareto"},
    "max-min": set(),
    "finish-time": {"sharing-incentive", "pareto"},
    "uniform": {"sharing-incentive", "envy-freeness", "strategy-proofness"},
    "per-server-drf": {"sharing-incentive", "envy-freeness"},
    "proportional": {"sharing-incentive", "envy-freeness", "pareto"},
    "efficiency": {"pareto"},
}


@pytest.mark.parametrize("notion", PROVED)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_of_work_is_promised_and_holds(notion: str, seed: int) -> None:
    """Of tasks that have no end and run everywhere, what docs/explanation/replacing.md proves; whatever the instance, nothing false."""
    rng = np.random.default_rng([seed, 50])
    free = fo.Instance(
        rng.uniform(1, 9, (3, 2)),
        rng.uniform(0.5, 3, (3, 3, 2)),
        speeds=rng.choice([0.5, 1, 2], (3, 3)),
        weights=rng.choice([1, 2], 3),
    )
    audit = fo.audit(fo.solve(free, notion), effort=6)
    assert {name for name in audit if audit[name].promised} == PROVED[notion]
    assert PROVED[notion].isdisjoint(audit.violated)
    bound = free.replace(
        tasks=np.where(rng.random(3) < 0.6, rng.uniform(0.5, 3, 3), np.inf),
        eligibility=[[True, True, False], [True] * 3, [False, True, True]],
    )
    audit = fo.audit(fo.solve(bound, notion), effort=6)
    assert [name for name in audit.violated if audit[name].promised] == []


def test_what_needs_nothing_on_a_server_runs_nothing_where_it_may_not_run() -> None:
    """z needs nothing on the first server, and is on one server at once. With 1 task of a on the second it runs 1; with b's on the first 0.

    Where it may run on the first, all its 5 tasks run there, whatever others hold of it.
    """
    demands = [[[1, 1], [1, 1]], [[0, 0], [1, 1]], [[1, 2], [1, 2]]]
    pool = fo.Instance([[4, 4], [4, 4]], demands, eligibility=[[1, 1], [0, 1], [1, 1]], tasks=[9, 5, 9], parallelism=[np.inf, 1, 1])
    held = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    would = [table for _, table in with_what_others_hold(given(pool, held, "rdm"))]
    assert np.concatenate(would)[1].tolist() == [1, 1, 0]
    everywhere = given(pool.replace(eligibility=np.ones((3, 2), bool)), held, "rdm")
    assert np.concatenate([table for _, table in with_what_others_hold(everywhere)])[1].tolist() == [5, 1, 5]


def test_who_waited_longer_has_no_slice_promised() -> None:
    """Where time has elapsed a user may get less than its slice: the late one gets it."""
    cores = fo.Instance([[8]], [[1], [1]], speeds=[[2], [1]])
    late = fo.audit(fo.solve(cores, "finish-time", left=8, elapsed=[0, 8]), ["sharing-incentive"])["sharing-incentive"]
    assert (late.holds, late.promised) == (False, None)
    assert fo.audit(fo.solve(cores, "finish-time", left=8), ["sharing-incentive"])["sharing-incentive"].promised
