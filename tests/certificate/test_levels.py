"""Proofs of many levels: what the levels below leave closes pairs to the levels above, and nothing that is wrong is proved that way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from instances import demands_with_zeros, few_servers_each
from reference.exact import leximin
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.certificate import levels as level_proof
from fairopt.instance.tolerances import CERTIFIED
from fairopt.program import Leximin, Program, Solution, Stage
from fairopt.solvers import candidates
from fairopt.solvers.backend import Deadline
from fairopt.solving.policy import find

NEVER = Deadline(None)


def of_many_levels(users: int, servers: int, seed: int) -> Program:
    """DRFH of users with one to three servers each, a third of the demands zero: tens of levels."""
    rng = np.random.default_rng(seed)
    demands = demands_with_zeros(rng, (users, 3), 0.01, 0.1, least=0.05)
    eligibility = few_servers_each(rng, users, servers)
    weights = rng.uniform(1, 5, users)
    return fo.formulate(fo.Instance(rng.uniform(1, 10, (servers, 3)), demands, weights=weights, eligibility=eligibility), "drfh")


def by(engine: str, program: Program) -> Solution:
    """The solution of an engine."""
    return fo.SOLVERS[engine]().solve(program, tolerance=1e-8, deadline=NEVER)


def levels(program: Program, solution: Solution) -> np.ndarray:
    """What everybody has, (users,)."""
    return np.asarray(program.per_user(program.utilities * solution.x))


@pytest.mark.parametrize("seed", range(2))
def test_levels_without_end_are_exact(seed: int) -> None:
    """Each level climbs on the face that those below leave; HiGHS, whose prices keep everybody out by themselves, has the same."""
    program = of_many_levels(300, 40, seed)
    solution = by("interior-point", program)
    assert len(solution.stages) > 40
    assert certify(program, solution).worst <= 1e-10
    other = by("highs", program)
    assert certify(program, other).worst <= 1e-8
    np.testing.assert_allclose(levels(program, solution), levels(program, other), rtol=1e-6)


def test_what_the_levels_below_leave_is_what_proves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices of a face say nothing by themselves: some are below 0, and pairs that are closed cost too little."""
    program = of_many_levels(100, 15, 0)
    solution = by("interior-point", program)
    assert certify(program, solution).worst <= 1e-10
    monkeypatch.setattr(level_proof, "CLOSED", 0.0)
    assert certify(program, solution).worst > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_prices_of_the_levels_below_prove_who_pays_little(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Charges leave a user unproved where prices lack a million times those of a level below; added to the prices, they do not."""
    program = of_many_levels(300, 40, seed)
    solution = by("interior-point", program)
    stages = list(solution.stages)
    below, prices = stages[7].prices, stages[10].prices
    assert below is not None
    assert prices is not None
    stages[10] = replace(stages[10], prices=prices - 1e6 * np.abs(prices).max() / np.abs(below).max() * below)
    told = replace(solution, stages=tuple(stages))
    proved = certify(program, told).worst
    assert proved <= 1e-9
    monkeypatch.setattr(level_proof, "PROVED", np.inf)
    assert certify(program, told).worst > 5 * proved


@pytest.mark.parametrize("noise", [1e-20, 1e-12, 1e-8])
def test_noise_in_unrelated_prices_does_not_count(noise: float) -> None:
    """User 1 runs on servers 1 and 2, of which a solver gives only one a tiny price at the level of user 0, who runs on server 0."""
    instance = fo.Instance([[1.0], [2.0], [3.0]], [[1.0], [1.0]], eligibility=[[True, False, False], [False, True, True]])
    program = fo.formulate(instance, "drfh")
    share = program.utilities[0]
    of = {server: row for row, (server, _) in enumerate(program.limits.keys.tolist())}
    prices = np.zeros((2, len(program.limits)))
    prices[0, [of[0], of[1]]] = 1.0, noise
    prices[1, [of[1], of[2]]] = 1.0
    stages = (Stage(share, np.array([0]), prices[0]), Stage(5 * share, np.array([1]), prices[1]))
    assert certify(program, Solution(np.array([1.0, 2.0, 3.0]), stages)).worst <= 1e-14


def test_the_order_of_the_levels_does_not_count() -> None:
    """They are proved from below, in whatever order they come."""
    program = of_many_levels(100, 15, 1)
    solution = by("interior-point", program)
    backwards = replace(solution, stages=solution.stages[::-1])
    assert certify(program, backwards) == certify(program, solution)


@pytest.mark.parametrize("seed", range(4))
def test_a_little_less_for_one_is_seen(seed: int) -> None:
    """A millionth less for somebody of a late level, told truthfully."""
    program = of_many_levels(100, 15, seed)
    solution = by("interior-point", program)
    stage = solution.stages[-1 - 3 * seed]
    user = int(stage.users[0])
    less = np.where(program.pair_users == user, 1 - 1e-6, 1.0)
    told = tuple(replace(each, value=each.value * (1 - 1e-6)) if each is stage else each for each in solution.stages)
    assert certify(program, replace(solution, x=solution.x * less, stages=told)).worst > 1e-7


def paying_millionths(seed: int) -> tuple[Program, np.ndarray]:
    """DRFH of 20 users on five servers, and which of them have a millionth of the weight of others."""
    rng = np.random.default_rng(seed)
    eligibility, light = few_servers_each(rng, 20, 5), rng.random(20) < 0.4
    weights = np.where(light, 1e-6, 1.0) * rng.uniform(0.5, 2, 20)
    demands = demands_with_zeros(rng, (20, 2), 0.01, 1, least=0.05)
    return fo.formulate(fo.Instance(rng.uniform(1, 10, (5, 2)), demands, weights=weights, eligibility=eligibility), "drfh"), light


def moved(program: Program, x: np.ndarray, user: int, error: float) -> np.ndarray:
    """x with this part of a user's tasks given to others on its server, as many as fit."""
    x, limits = x.copy(), program.limits
    own = int(np.argmax(np.where(program.pair_users == user, x, -1.0)))
    x[own] -= min(error * float(program.per_user(x)[user]), x[own])
    for pair in np.flatnonzero((program.pair_servers == program.pair_servers[own]) & (program.pair_users != user)):
        taken = limits.matrix[:, [pair]].toarray().ravel()
        x[pair] += max(float(((limits.bounds - limits.used(x))[taken > 0] / taken[taken > 0]).min()), 0.0)
    return x


@pytest.mark.parametrize("error", [1e-6, 1e-7, 3e-8])
@pytest.mark.parametrize("seed", range(6))
def test_an_error_of_a_user_that_pays_a_millionth_is_seen(seed: int, error: float) -> None:
    """Part of its share goes to others; told as before, truthfully, and with a level of its own."""
    program, light = paying_millionths(seed)
    solution = find(program, candidates(program, None), CERTIFIED, NEVER).solution
    assert certify(program, solution).worst <= 1e-9
    for stage in solution.stages:
        for user in stage.users[light[stage.users]].tolist():
            x = moved(program, solution.x, user, error)
            reached = program.per_user(program.worth * x)
            honest = [replace(each, value=float(reached[each.users].min())) for each in solution.stages]
            rest = stage.users[stage.users != user]
            alone = [each for each, of in zip(honest, solution.stages, strict=True) if of is not stage]
            alone += [Stage(float(reached[some].min()), some, stage.prices) for some in (np.array([user]), rest) if some.size]
            for told in (solution.stages, honest, alone):
                found = certify(program, replace(solution, x=x, stages=tuple(told)))
                assert found.feasibility <= 1e-8
                assert found.worst > 1e-8


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(instances(), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.3, 3.0]))
def test_no_prices_prove_a_wrong_leximin(instance: fo.Instance, seed: int, width: float) -> None:
    """That of other weights, with its own prices: as they are, in other units, added to those of the levels below, and with noise."""
    rng = np.random.default_rng(seed)
    program = fo.formulate(instance, "drfh")
    assert isinstance(program.goal, Leximin)
    per_user = program.goal.weights
    right = levels(program, by("highs", program))
    other = replace(program, goal=Leximin(per_user * np.exp(rng.uniform(-width, width, per_user.size))))
    wrong = by(str(rng.choice(["highs", "interior-point"])), other)
    reached = levels(program, wrong)
    assume((np.abs(reached - right) > 1e-4 * np.maximum(reached, right)).any())
    for _ in range(20):
        stages, below = [], 0.0
        for stage in wrong.stages:
            assert stage.prices is not None
            prices = stage.prices * 10.0 ** rng.uniform(-6, 6) + below * rng.choice([0.0, 1.0, -1.0, 1e6, -1e6])
            prices = prices * np.exp(rng.choice([0.0, 1e-9, 0.1]) * rng.uniform(-1, 1, prices.size))
            below = below + prices
            stages.append(Stage(float((reached / per_user)[stage.users].min()), stage.users, prices))
        assert certify(program, replace(wrong, stages=tuple(stages))).worst > 1e-6


Prices = dict[tuple[int, int], float]  # of a resource of a server; others are 0
Attack = tuple[fo.Instance, list[float], list[tuple[list[int], Prices]]]  # an instance, tasks of pairs, and who is settled by which prices


def _earning_pair() -> Attack:
    """User 0 has its server at level 1/2, user 1 half of its own. What user 0 pays below 0 is not what user 1 may not have."""
    instance = fo.Instance([[1, 0], [0, 1]], [[1, 0], [0, 1]], weights=[2, 1])
    return instance, [1, 0.5], [([0], {(0, 0): 1}), ([1], {(0, 0): -0.5, (1, 1): 1})]


def _laundered_gap() -> Attack:
    """1e-9 of server 0 is left. Level 1 says so; level 2 says of the same that it is 0, at the expense of what level 1 says.

    User 2 lives on 1e-7 of server 2 and could have 1e-9 of server 0.
    """
    much = 1 + 1e-9
    instance = fo.Instance(
        [[much, much, 1, 0], [0, 0, 0, 2.0], [1e-7, 0, 0, 0]],
        [[1, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]],
        weights=[1, 1, 1e-9],
        eligibility=[[True, False, False], [False, True, False], [True, False, True]],
    )
    stages: list[tuple[list[int], Prices]] = [
        ([0], {(0, 0): 0.5, (0, 1): 0.5}),
        ([1], {(0, 0): 1, (0, 1): -1, (1, 3): 1}),
        ([2], {(2, 0): 1}),
    ]
    return instance, [1, 2, 0, 1e-7], stages


def _overflow() -> Attack:
    """Half of everything, at prices whose sum is infinite."""
    instance = fo.Instance([[1, 0], [0, 1]], [[1, 0], [0, 1]], weights=[1e3, 1e3])
    return instance, [0.5, 0.5], [([0, 1], {(0, 0): 1e305, (1, 1): 1e305})]


def _all_tasks_but_a_billionth() -> Attack:
    """User 1 lacks 9e-10 of its tasks, and user 0, which has 1e-5 of the server, has 9e-5 too much."""
    instance = fo.Instance([[1]], [[1], [1]], weights=[1e-5, 1], tasks=[np.inf, 0.99999])
    tasks = 0.99999 * (1 - 9e-10)
    return instance, [1 - tasks, tasks], [([0], {(0, 0): 1})]


def _more_than_all_tasks() -> Attack:
    """User 1 has 5e-9 more than its tasks, within what is feasible, and user 0 lacks 5e-5."""
    instance = fo.Instance([[1]], [[1], [1]], weights=[1e-5, 1], tasks=[np.inf, 0.9999])
    tasks = 0.9999 * (1 + 5e-9)
    return instance, [1 - tasks, tasks], [([0], {(0, 0): 1})]


def _no_tasks() -> Attack:
    """User 2 has no tasks and runs 5e-9, within what is feasible; user 0 lacks 5e-5."""
    instance = fo.Instance([[1]], [[1], [1], [1]], weights=[1e-5, 1, 1], tasks=[np.inf, 0.9999, 0])
    return instance, [1e-4 - 5e-9, 0.9999, 5e-9], [([0], {(0, 0): 1})]


def _less_than_nothing() -> Attack:
    """-4e-10 tasks of a billion each make room for 40 % more of another user, within what is feasible."""
    instance = fo.Instance([[1], [10]], [[1e9], [1e9]], eligibility=[[True, True], [True, False]])
    return instance, [-0.4e-9, 10e-9, 1.4e-9], [([1], {(0, 0): 1}), ([0], {(0, 0): 1, (1, 0): 1})]


def _beyond_the_limit() -> Attack:
    """5e-9 more than the server has, within what is feasible, is 5e-4 of what user 0 has."""
    instance = fo.Instance([[1 + 1e-5, 1]], [[1, 0], [1, 1]], weights=[1e-7, 1])
    return instance, [1e-5 + 5e-9, 1], [([1], {(0, 1): 1}), ([0], {(0, 0): 1})]


def _digits_of_others() -> Attack:
    """User 2 lacks 4e-5 of its millionth of server 1: beyond 14 digits only of server 0 at a large price."""
    instance = fo.Instance([[1.0, 0, 0], [0, 1 + 1e-6, 1]], [[1, 0, 0], [0, 1, 1], [0, 1, 0]], weights=[1, 1, 1e-9])
    return instance, [1, 1, 1e-6 * (1 - 4e-5)], [([0], {(0, 0): 1}), ([1], {(1, 2): 1}), ([2], {(0, 0): 5e3, (1, 1): 1})]


def _dearer_elsewhere() -> Attack:
    """User 0 lacks a billionth, which it finds only on server 1, at a thousandth of what user 1 has there."""
    instance = fo.Instance([[1 - 1e-9, 1e7], [1e-9, 1]], [[1, 1e6], [0, 1.0]], weights=[1, 1e-8], eligibility=[[True, True], [False, True]])
    return instance, [1 - 1e-9, 0, 1], [([0], {(0, 0): 1, (1, 0): 1}), ([1], {(1, 1): 1})]


def _laundered_shortfall() -> Attack:
    """User 0 lacks a billionth, which is a thousandth of what user 1 has: rounding only of another server at a large price."""
    own, lacks = 1e-6, 1e-9
    instance = fo.Instance(
        np.array([[1, 0], [0, 0.5], [own, 0]]),
        [[1, 0], [1, 0], [0, 1]],
        weights=[1, 1e-7, 2],
        eligibility=[[True, False, False], [True, False, True], [False, True, False]],
    )
    stages: list[tuple[list[int], Prices]] = [
        ([2], {(1, 1): 1}),
        ([0], {(0, 0): 1, (1, 1): 1e7}),
        ([1], {(0, 0): 1, (2, 0): 1}),
    ]
    return instance, [1 - lacks, lacks, own, 0.5], stages


ATTACKS = [
    _earning_pair,
    _laundered_gap,
    _overflow,
    _all_tasks_but_a_billionth,
    _more_than_all_tasks,
    _no_tasks,
    _less_than_nothing,
    _beyond_the_limit,
    _digits_of_others,
    _dearer_elsewhere,
    _laundered_shortfall,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_wrong_answers_that_were_once_accepted(attack: Callable[[], Attack]) -> None:
    """Feasible to 1e-8, and wrong by more than 1e-5 for somebody; the right answer passes."""
    instance, tasks, settled = attack()
    program = fo.formulate(instance, "drfh")
    assert isinstance(program.goal, Leximin)
    x = np.array(tasks, float)
    per_level = program.utilities / program.goal.weights[program.pair_users]
    reached = program.per_user(per_level * x)
    keys = [(int(server), int(resource)) for server, resource in program.limits.keys]
    stages = tuple(
        Stage(
            float(reached[users].min()),
            np.array(users),
            np.array([prices.get(key, 0.0) * of_a_server for key, of_a_server in zip(keys, program.limits.of_servers, strict=True)]),
        )
        for users, prices in settled
    )
    found = certify(program, Solution(x, stages))
    assert found.feasibility <= 1e-8
    assert found.worst > 1e-5
    exact = np.array([float(value) for value in leximin(instance, "drfh")])
    assert (np.abs(program.per_user(x) - exact) > 1e-5 * exact).any()
    assert certify(program, by("highs", program)).worst <= 1e-8


@pytest.mark.parametrize("twice", [True, False])
def test_everybody_is_settled_once(twice: bool) -> None:
    """Who is settled twice has two levels; a level of nobody is none."""
    program = of_many_levels(20, 5, 0)
    solution = by("highs", program)
    last = solution.stages[-1]
    again = last if twice else replace(last, users=last.users[:0])
    assert certify(program, replace(solution, stages=(*solution.stages, again))).worst == float("inf")
