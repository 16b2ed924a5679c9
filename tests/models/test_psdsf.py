"""Per-server dominant-share fairness: the paper's numbers, the theorem's condition, the market under time division, the set of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import demands_with_zeros
from strategies import instances

import fairopt as fo
from fairopt.certificate.conditions import bottleneck_violation, clause_violation
from fairopt.program import Disjunctive, Equilibrium, LimitKind

EXAMPLES = Path(__file__).parents[2] / "examples"
SEVERAL = fo.Instance([[1, 4], [4, 4]], [[3, 0], [0, 2], [3, 2]], eligibility=[[True, True], [False, True], [True, True]])


def violation(instance: fo.Instance, tasks: np.ndarray, sharing: Any = "rdm") -> float:
    """By how much (users, servers) tasks violate the theorem's condition, row for row of the instance as it was given."""
    program = fo.formulate(instance, "psdsf", sharing=sharing)
    assert isinstance(program.goal, Equilibrium)
    return bottleneck_violation(program, program.goal, tasks[program.pair_users, program.pair_servers])


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


def test_virtual_shares_are_those_of_the_rows_as_given() -> None:
    """s[n,i] = x[n] / gamma[n,i] of every row, weights included, whoever was merged and however the allocation was found."""
    instance = fo.Instance([[4, 4], [4, 4], [8, 2]], [[1, 1], [1, 1], [2, 1]], [1, 3, 2], [[True] * 3] * 2 + [[True, True, False]])
    for options in ({}, {"prefer": [1, 0, 0]}, {"sharing": "tdm", "formulation": "market"}, {"sharing": "tdm"}):
        allocation = fo.solve(instance, "psdsf", **options)
        for n, i in np.ndindex(3, 3):
            gamma = instance.rates[n, i]
            expected = allocation.tasks_per_user[n] / gamma / instance.weights[n] if gamma else 0
            assert allocation.shares[n, i] == pytest.approx(expected, rel=1e-12)


# Rates of the caller's own -------------------------------------------------------------------------------------------------------

# Section IV, scenario 1: two users of equal weight share three channels. The figure's rates are in a picture that the text lacks; these are
# ours, and give what the text prints: the middle channel is shared equally, user 1 gets 1.5 Mb/s, user 2 gets 1.
CHANNELS = fo.Instance([[1], [1], [1]], [[1], [1]], rates=[[1, 1, 0.5], [0.5, 2 / 3, 2 / 3]])
# Scenario 2 prints no numbers. Server 1 has a coprocessor, with which user 1 runs 8 tasks there instead of 2, and user 2 runs 4. By hand:
# user 2 holds all of server 2 and a quarter of server 1, x = (6, 3), s[.,1] = (6/8, 3/4), equal where both hold something, and
# s[.,2] = (6/2, 3/2), where user 1 is ahead and holds nothing. Without the coprocessor both would run 2.
COPROCESSOR = fo.Instance([[4, 4], [4, 4]], [[2, 1], [1, 2]], rates=[[8, 2], [4, 2]])
FORMULATIONS: list[dict[str, Any]] = [
    {},
    *({"formulation": "market", "solver": name} for name in ("interior-point", "cvxpy", "trajectory")),
]


@pytest.mark.parametrize("options", FORMULATIONS)
def test_wireless_channels(options: dict[str, Any]) -> None:
    """Example scenario 1, by both formulations."""
    allocation = fo.solve(CHANNELS, "psdsf", **options)
    assert allocation.sharing == "tdm"
    np.testing.assert_allclose(allocation.tasks_per_user, [1.5, 1], rtol=1e-9)
    np.testing.assert_allclose(allocation.tasks, [[1, 0.5, 0], [0, 1 / 3, 2 / 3]], atol=1e-9)
    np.testing.assert_allclose(allocation.time_utilization, 1)
    with pytest.raises(fo.Unsupported, match="rates"):
        fo.solve(CHANNELS, "psdsf", sharing="rdm", **options)


@pytest.mark.parametrize("options", FORMULATIONS)
def test_coprocessor(options: dict[str, Any]) -> None:
    """Example scenario 2: the fast server helps both, most the one whom it serves best."""
    allocation = fo.solve(COPROCESSOR, "psdsf", **options)
    np.testing.assert_allclose(allocation.tasks, [[6, 0], [1, 2]], atol=1e-9)
    np.testing.assert_allclose(allocation.shares, [[3 / 4, 3], [3 / 4, 3 / 2]], rtol=1e-9)
    alone = COPROCESSOR.replace(rates=None)
    np.testing.assert_allclose(fo.solve(alone, "psdsf", sharing="tdm", **options).tasks_per_user, [2, 2], rtol=1e-9)


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


def drawn(seed: int) -> fo.Instance:
    """Any instance whose tasks are unlimited; every other one brings rates of its own, some of them 0."""
    rng = np.random.default_rng(seed)
    n, k, m = int(rng.integers(1, 12)), int(rng.integers(1, 8)), int(rng.integers(1, 4))
    demands = demands_with_zeros(rng, (n, m), 0.05, 2, least=1.0)
    return fo.Instance(
        rng.uniform(0.5, 10, (k, m)),
        demands,
        weights=10 ** rng.uniform(-1.5, 1.5, n),
        eligibility=rng.random((n, k)) < 0.8,
        counts=rng.integers(1, 4, k),
        rates=rng.uniform(0.1, 9, (n, k)) * (rng.random((n, k)) > 0.2) if seed % 2 else None,
    )


def test_best_response_and_market_agree() -> None:
    """x[n] to 1e-9 of itself on 48 instances: sweeps of servers, and an interior point for the Eisenberg-Gale program."""
    for seed in range(48):
        instance = drawn(seed)
        first = fo.solve(instance, "psdsf", sharing="tdm", solver="best-response")
        second = fo.solve(instance, "psdsf", sharing="tdm", formulation="market")
        assert (first.solver, second.solver) == ("best-response", "interior-point")
        np.testing.assert_allclose(second.tasks_per_user, first.tasks_per_user, rtol=1e-9, err_msg=f"seed {seed}")
        np.testing.assert_allclose(second.shares, first.shares, rtol=1e-9, err_msg=f"seed {seed}")


@pytest.mark.parametrize("solver", ["interior-point", "cvxpy", "trajectory"])
@given(instance=instances(max_users=7, max_servers=5))
@settings(max_examples=25, deadline=None)
def test_the_market_satisfies_the_condition(solver: str, instance: fo.Instance) -> None:
    """Theorem 2, also with finitely many tasks, by every engine of alpha-fair goals; and everybody spends what it has."""
    allocation = fo.solve(instance, "psdsf", sharing="tdm", formulation="market", solver=solver)
    assert violation(instance, allocation.tasks, "tdm") <= 1e-8
    if np.isinf(instance.tasks).all() and instance.servable.any():
        assert allocation.prices is not None
        part = np.divide(allocation.tasks, instance.rates, out=np.zeros_like(allocation.tasks), where=instance.rates > 0)
        spent = (part @ allocation.prices[:, 0])[instance.servable]
        np.testing.assert_allclose(spent, instance.weights[instance.servable], rtol=1e-8)


@given(instance=instances(max_users=5), hidden=st.integers(0, 2**4 - 1))
@settings(max_examples=40, deadline=None)
def test_hiding_servers_does_not_pay(instance: fo.Instance, hidden: int) -> None:
    """Theorem 3: under time division nobody gains by declaring fewer servers (unlimited tasks)."""
    instance = instance.replace(tasks=None)
    lie = instance.eligibility.copy()
    lie[0] &= [bool(hidden >> i & 1) for i in range(instance.n_servers)]
    honest, other = (fo.solve(instance.replace(eligibility=e), "psdsf", sharing="tdm") for e in (instance.eligibility, lie))
    assert other.tasks_per_user[0] <= honest.tasks_per_user[0] * (1 + 1e-9)


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


# a has one task and needs half of either server for it; b has only the first, c the second.
FINITE = fo.Instance([[1], [1]], [[1], [1], [1]], rates=[[2, 2], [1, 0], [0, 1]], tasks=[1, np.inf, np.inf], users=["a", "b", "c"])


@pytest.mark.parametrize("tasks", [[[1, 0], [0.5, 0], [0, 1]], [[0, 1], [1, 0], [0, 0.5]], [[0.5, 0.5], [0.75, 0], [0, 0.75]]])
def test_finite_tasks_make_several_allocations_under_time_division(tasks: list[list[float]]) -> None:
    """Wherever a runs is PS-DSF."""
    assert violation(FINITE, np.array(tasks, float), "tdm") == 0
    assert fo.solve(FINITE, "psdsf").certificate.worst == 0


def test_the_market_is_one_of_them_and_prefer_finds_the_others() -> None:
    """The market splits a's task, so that b and c get the same; either may have up to 1 and as little as 1/2."""
    market = fo.solve(FINITE, "psdsf", formulation="market")
    np.testing.assert_allclose(market.tasks_per_user, [1, 0.75, 0.75], rtol=1e-9)
    for prefer, expected in (([0, 1, 0], [1, 1, 0.5]), ([0, -1, 0], [1, 0.5, 1]), ([0, 0, 1], [1, 0.5, 1])):
        allocation = fo.solve(FINITE, "psdsf", prefer=prefer)
        np.testing.assert_allclose(allocation.tasks_per_user, expected, rtol=1e-9)
        assert violation(FINITE, allocation.tasks, "tdm") <= 1e-9


def test_a_market_needs_time_and_nothing_else() -> None:
    """Refused: resource division, turns of servers, and a choice."""
    with pytest.raises(fo.Unsupported, match='resource division has none; use sharing="tdm"'):
        fo.solve(SEVERAL, "psdsf", formulation="market")
    for options in ({"order": "random"}, {"seed": 1}, {"prefer": [1, 1, 1]}):
        with pytest.raises(fo.Unsupported, match="leave order, seed and prefer out"):
            fo.solve(SEVERAL, "psdsf", sharing="tdm", formulation="market", **options)
    with pytest.raises(fo.Unsupported, match="use interior-point or cvxpy or trajectory"):
        fo.solve(SEVERAL, "psdsf", sharing="tdm", formulation="market", solver="best-response")


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


@pytest.mark.parametrize("user", range(3))
def test_range_of_each_users_tasks(user: int) -> None:
    """The smallest and the largest of all PS-DSF allocations, through Pyomo: user 2 has 5/4 to 3/2, the others 5/6; servers in turn 4/3."""
    expected = [(5 / 6, 5 / 6), (5 / 4, 3 / 2), (5 / 6, 5 / 6)][user]
    unit = np.eye(3)[user]
    for sign, most in zip((-1, 1), expected, strict=True):
        allocation = fo.solve(SEVERAL, "psdsf", prefer=sign * unit, solver="pyomo")
        assert allocation.tasks_per_user[user] == pytest.approx(most, rel=1e-9)
        assert allocation.shares.shape == (3, 2)
        assert violation(SEVERAL, allocation.tasks) <= 1e-9
    np.testing.assert_allclose(fo.solve(SEVERAL, "psdsf").tasks_per_user, [5 / 6, 4 / 3, 5 / 6], rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_preferred_allocations_are_psdsf(seed: int) -> None:
    """Random instances: both ends of a preference satisfy the theorem, and the servers' own allocation lies between them."""
    rng = np.random.default_rng(seed)
    capacities, demands = rng.uniform(1, 5, (2, 2)), rng.uniform(0.2, 2, (3, 2)) * (rng.random((3, 2)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 1.0
    instance = fo.Instance(capacities, demands, rng.uniform(0.5, 3, 3), tasks=np.where(rng.random(3) < 0.3, rng.uniform(0.2, 3, 3), np.inf))
    prefer = rng.normal(size=3)
    low, high = (fo.solve(instance, "psdsf", prefer=sign * prefer) for sign in (-1, 1))
    for allocation in (low, high):
        assert violation(instance, allocation.tasks) <= 1e-8
    worth = fo.solve(instance, "psdsf").tasks_per_user @ prefer
    assert low.tasks_per_user @ prefer - 1e-8 <= worth <= high.tasks_per_user @ prefer + 1e-8


@pytest.mark.parametrize(
    "options",
    [
        *({"order": "backwards"}, {"delay": 3}, {"delay": -1, "order": "asynchronous"}, {"delay": 1.5, "order": "asynchronous"}),
        *({"seed": -1}, {"seed": "today"}, {"prefer": "me"}, {"formulation": "leximin"}),
        *({"seed": True}, {"seed": 2**31}, {"delay": True, "order": "asynchronous"}, {"delay": 2**63, "order": "asynchronous"}),
        *({"prefer": [1, 1, 1], "order": "random"}, {"prefer": "utilization", "seed": 1}),
    ],
)
def test_options_that_there_are_not(options: dict[str, Any]) -> None:
    """Each is refused before anything is solved."""
    with pytest.raises(fo.Unsupported):
        fo.solve(SEVERAL, "psdsf", **options)


def test_the_longest_delay_and_the_last_seed() -> None:
    """Decisions that never arrive are no obstacle: the servers take turns in the end."""
    allocation = fo.solve(SEVERAL, "psdsf", order="asynchronous", seed=2**31 - 1, delay=2**31 - 1)
    assert violation(SEVERAL, allocation.tasks) <= 1e-9


@pytest.mark.parametrize("spec", ["psdsf", "drfh:formulation=equalize"])
def test_what_does_not_support_queues_is_named_as_it_was_asked_for(spec: str) -> None:
    """With the options that are not the default, and no others."""
    instance = fo.Instance([[4]], [[1], [1]], queues=[fo.Queue("a")], queue_of=["a", "a"])
    with pytest.raises(fo.Unsupported, match=f'^"{spec}" does not support queues'):
        fo.solve(instance, spec)
