"""Per-server dominant-share fairness: the paper's numbers, the theorem's condition, the market under time division, the set of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import instances

import fairopt as fo
from fairopt.conditions import clause_violation, envy_of_servers
from fairopt.program import Disjunctive, Equilibrium, LimitKind

EXAMPLES = Path(__file__).parents[2] / "examples"
SEVERAL = fo.Instance([[1, 4], [4, 4]], [[3, 0], [0, 2], [3, 2]], eligibility=[[True, True], [False, True], [True, True]])


def violation(instance: fo.Instance, tasks: np.ndarray, sharing: Any = "rdm") -> float:
    """By how much (users, servers) tasks violate the theorem's condition, row for row of the instance as it was given."""
    program = fo.formulate(instance, "psdsf", sharing=sharing)
    assert isinstance(program.goal, Equilibrium)
    return envy_of_servers(program, program.goal, tasks[program.pair_users, program.pair_servers])


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ("psdsf-figure-1.yaml", [3, 3, 6]),
        ("psdsf-figure-2.yaml", [3.6, 3.6, 8, 8]),
        ("psdsf-figure-5.yaml", [210, 105, 82.5, 27.5]),  # Table IV
    ],
)
@pytest.mark.parametrize("order", ["sequential", "random", "asynchronous"])
def test_numbers_of_the_paper(example: str, expected: list[float], order: str) -> None:
    """x[n] as printed, whoever acts first."""
    allocation = fo.solve(fo.load(EXAMPLES / example), "psdsf", order=order)
    np.testing.assert_allclose(allocation.tasks_per_user, expected, rtol=1e-9)
    assert allocation.certificate.worst <= 1e-9


def test_virtual_shares() -> None:
    """Figures 2 and 3: s[3,1] = 8/12, s[1,1] = s[2,1] = 0.6, s[3,2] = s[4,2] = 8/12. The paper prints s[4,1] = 12/12: it is 8/9."""
    shares = fo.solve(fo.load(EXAMPLES / "psdsf-figure-2.yaml"), "psdsf").shares
    np.testing.assert_allclose(shares, [[0.6, 0], [0.6, 0], [8 / 12, 8 / 12], [8 / 9, 8 / 12]], rtol=1e-9)


def test_wireless_channels() -> None:
    """Example scenario 1: the middle channel is shared equally, user 1 gets 1.5 Mb/s, user 2 gets 1 (the rates are ours)."""
    channels = fo.Instance([[1], [1], [1]], [[1], [1]], rates=[[1, 1, 0.5], [0.5, 2 / 3, 2 / 3]])
    allocation = fo.solve(channels, "psdsf")
    assert allocation.sharing == "tdm"
    np.testing.assert_allclose(allocation.tasks, [[1, 0.5, 0], [0, 1 / 3, 2 / 3]], atol=1e-9)
    with pytest.raises(fo.Unsupported, match="rates"):
        fo.solve(channels, "psdsf", sharing="rdm")


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@given(instance=instances(max_users=8, max_servers=6))
@settings(max_examples=60, deadline=None)
def test_condition_holds_of_the_rows_as_given(sharing: Any, instance: fo.Instance) -> None:
    """Certified, and also where merged users and servers are spread out again."""
    allocation = fo.solve(instance, "psdsf", sharing=sharing)
    assert allocation.certificate.worst <= 1e-9
    assert violation(instance, allocation.tasks, sharing) <= 1e-8


@given(instance=instances(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_clones_share_by_weight(instance: fo.Instance, seed: int) -> None:
    """Users and servers doubled, weights drawn anew: the merged answer, spread by weight, satisfies the condition unmerged."""
    phi = np.random.default_rng(seed).uniform(0.1, 10, 2 * instance.n_users)
    twice = fo.Instance(np.vstack([instance.capacities] * 2), np.vstack([instance.demands] * 2), phi, np.tile(instance.eligibility, (2, 2)))
    assert violation(twice, fo.solve(twice, "psdsf").tasks) <= 1e-8


# Time division --------------------------------------------------------------------------------------------------------------------


def market(instance: fo.Instance) -> np.ndarray:
    """max sum phi log x under time limits, by CVXPY and Clarabel: nothing of ours in it."""
    cp = pytest.importorskip("cvxpy")
    gamma = instance.rates
    users = np.flatnonzero(instance.servable)
    part = cp.Variable(gamma[users].shape, nonneg=True)  # of each server's time
    total = cp.sum(cp.multiply(gamma[users], part), axis=1)
    phi = instance.weights[users] / instance.weights[users].max()
    problem = cp.Problem(cp.Maximize(phi @ cp.log(total)), [cp.sum(part, axis=0) <= 1])
    precise = {"tol_gap_abs": 1e-14, "tol_gap_rel": 1e-14, "tol_feas": 1e-14, "max_iter": 200}
    problem.solve(solver="CLARABEL", **precise, ignore_dpp=True)
    x = np.zeros(instance.n_users)
    x[users] = total.value
    return x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(12))
def test_time_division_is_a_market(seed: int) -> None:
    """The server sweep and the Eisenberg-Gale program, also with rates of the caller's own."""
    rng = np.random.default_rng(seed)
    n, k = rng.integers(2, 8), rng.integers(1, 6)
    rates = rng.uniform(0.5, 5, (n, k)) if seed % 2 else None
    instance = fo.Instance(rng.uniform(1, 5, (k, 2)), rng.uniform(0.2, 2, (n, 2)), rng.uniform(0.5, 5, n), rates=rates)
    x = fo.solve(instance, "psdsf", sharing="tdm").tasks_per_user
    np.testing.assert_allclose(x, market(instance), rtol=1e-5)  # what Clarabel reaches


@given(instance=instances(max_users=7, max_servers=5))
@settings(max_examples=40, deadline=None)
def test_no_better_market(instance: fo.Instance) -> None:
    """Sum of phi (x' - x) / x <= 0 for all x' of unlimited users: each server's time goes to the highest phi gamma / x."""
    instance = instance.replace(tasks=None)
    x = fo.solve(instance, "psdsf", sharing="tdm").tasks_per_user
    users = np.flatnonzero(x > 0)
    assert np.array_equal(users, np.flatnonzero(instance.servable))
    if users.size:
        best = (instance.weights[users, None] * instance.rates[users] / x[users, None]).max(axis=0).sum()
        assert best <= instance.weights[users].sum() * (1 + 1e-12)


@given(instance=instances(), seed=st.integers(0, 2**32 - 1), unit=st.floats(1e-6, 1e9))
@settings(max_examples=30, deadline=None)
def test_invariances_of_the_market(instance: fo.Instance, seed: int, unit: float) -> None:
    """Under time division x[n] of unlimited users is unique: order of rows, unit of a resource and scale of the weights do not matter."""
    instance = instance.replace(tasks=None)
    rng = np.random.default_rng(seed)
    p, q = rng.permutation(instance.n_users), rng.permutation(instance.n_servers)
    scale = np.ones(instance.n_resources)
    scale[0] = unit
    other = fo.Instance(
        instance.capacities[q] * scale,
        instance.demands[p] * scale,
        instance.weights[p] * 7,
        instance.eligibility[np.ix_(p, q)],
        instance.counts[q],
    )
    expected = fo.solve(instance, "psdsf", sharing="tdm").tasks_per_user[p]
    np.testing.assert_allclose(fo.solve(other, "psdsf", sharing="tdm").tasks_per_user, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("tasks", [[[1, 0], [0.5, 0], [0, 1]], [[0, 1], [1, 0], [0, 0.5]], [[0.5, 0.5], [0.75, 0], [0, 0.75]]])
def test_finite_tasks_make_several_allocations_under_time_division(tasks: list[list[float]]) -> None:
    """a has one task and needs half of either server for it; b has only the first, c the second. Wherever a runs is PS-DSF."""
    instance = fo.Instance([[1], [1]], [[1], [1], [1]], rates=[[2, 2], [1, 0], [0, 1]], tasks=[1, np.inf, np.inf])
    assert violation(instance, np.array(tasks, float), "tdm") == 0
    assert fo.solve(instance, "psdsf").certificate.worst == 0


@given(instance=instances(one_server=True))
@settings(max_examples=30, deadline=None)
def test_one_server_is_drf(instance: fo.Instance) -> None:
    """PS-DSF reduces to DRF."""
    expected = fo.solve(instance, "drf").tasks_per_user
    np.testing.assert_allclose(fo.solve(instance, "psdsf").tasks_per_user, expected, rtol=1e-9, atol=1e-12)


# The set of all -------------------------------------------------------------------------------------------------------------------


def clauses_violated(instance: fo.Instance, tasks: np.ndarray) -> float:
    """By how much tasks violate the clauses, with L[j] the highest level of those who hold something of limit j."""
    program = fo.formulate(instance, "psdsf", prefer=np.ones(instance.n_users))
    assert isinstance(program.goal, Disjunctive)
    x = tasks[program.pair_users, program.pair_servers]
    share = program.utilities * program.per_user(x)[program.pair_users] / instance.weights[program.pair_users]
    rows = np.flatnonzero(program.limits.kinds != LimitKind.TASKS)
    most = program.utilities * program.per_user(program.largest())[program.pair_users] / instance.weights[program.pair_users]
    matrix = program.limits.matrix[rows].toarray() > 0
    level = np.array([share[used & (x > 1e-9 * program.largest())].max(initial=0) / most[used].max() for used in matrix])
    # What counts as nothing is up to the condition: tiny pairs are none here too.
    x = np.where(x > 1e-9 * program.largest(), x, 0.0)
    return clause_violation(program.goal, x, level)


def test_several_allocations_and_one_dominates() -> None:
    """Both satisfy theorem 1 and the clauses; half of either satisfies neither."""
    low = np.array([[1 / 3, 1 / 2], [0, 4 / 3], [0, 5 / 6]])
    high = np.array([[0, 5 / 6], [0, 3 / 2], [1 / 3, 1 / 2]])
    for tasks in (low, high):
        assert violation(SEVERAL, tasks) <= 1e-12
        assert clauses_violated(SEVERAL, tasks) <= 1e-12
        assert violation(SEVERAL, tasks / 2) > 0.1
        assert clauses_violated(SEVERAL, tasks / 2) > 0.1
    np.testing.assert_allclose(low.sum(axis=1), [5 / 6, 4 / 3, 5 / 6])
    np.testing.assert_allclose(high.sum(axis=1), [5 / 6, 3 / 2, 5 / 6])


@given(instance=instances(max_users=4, max_servers=3))
@settings(max_examples=40, deadline=None)
def test_clauses_say_what_the_condition_says(instance: fo.Instance) -> None:
    """PS-DSF allocations satisfy all clauses; those of other notions do if and only if they are PS-DSF."""
    if fo.formulate(instance, "psdsf").n_pairs == 0:
        return
    assert clauses_violated(instance, fo.solve(instance, "psdsf").tasks) <= 1e-8
    for notion in ("tsf", "uniform"):
        tasks = fo.solve(instance, notion).tasks
        assert (violation(instance, tasks) > 1e-6) == (clauses_violated(instance, tasks) > 1e-6)


def test_preferences() -> None:
    """A number for each user, or utilization; nothing is merged then."""
    program = fo.formulate(SEVERAL, "psdsf", prefer="utilization")
    assert isinstance(program.goal, Disjunctive)
    np.testing.assert_allclose(program.goal.preference, [3 / 5, 3 / 5, 2 / 8, 3 / 5 + 2 / 8, 3 / 5 + 2 / 8])
    assert fo.NOTIONS["psdsf"](prefer=[1, 0, 0]).merge_alpha is None  # type: ignore[call-arg]
    assert "alternatives holds" in str(program)
    for prefer, message in (([1, 1], "shape"), ([1, np.inf, 1], 'of "user-2" is inf'), (["a", 1, 1], "numbers")):
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.formulate(SEVERAL, "psdsf", prefer=prefer)


@pytest.mark.parametrize("options", [{"order": "backwards"}, {"delay": 3}, {"delay": -1, "order": "asynchronous"}, {"prefer": "me"}])
def test_options_that_there_are_not(options: dict[str, Any]) -> None:
    """Each is refused before anything is solved."""
    with pytest.raises(fo.Unsupported):
        fo.solve(SEVERAL, "psdsf", **options)
