"""Alpha-fair goals: answers against other engines, another path and arithmetic; limits on tasks, other arrays, and the way out."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from instances import demands_with_zeros, gpu_cluster, some_servers_each
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import AlphaFair, Program, Solution
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import alpha_fair, paths
from fairopt.solvers.interior_point.alpha_fair import solve_alpha_fair
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solvers.interior_point.rows import RowPairs, ScaledRows
from fairopt.solvers.interior_point.settings import ALPHA_FAIR
from fairopt.solvers.structure.arrays import NUMPY, Arrays, array_namespace
from fairopt.solvers.structure.scaling import obstacle
from fairopt.solving import policy
from fairopt.solving.policy import find

NEVER = Deadline(None)


def clusters(users: int, servers: int, resources: int, seed: int, part: float = 1.0, zeros: float = 0.0) -> fo.Instance:
    """Weights over six decades, a part of the pairs eligible (one of each user at least), some demands zero."""
    rng = np.random.default_rng(seed)
    eligibility = some_servers_each(rng, users, servers, part)
    demands = demands_with_zeros(rng, (users, resources), 0.1, 1, zeros)
    return fo.Instance(
        rng.uniform(50, 500, (servers, resources)), demands, weights=10 ** rng.uniform(-3, 3, users), eligibility=eligibility
    )


def by_rates(users: int, servers: int, seed: int) -> fo.Instance:
    """Individual rates on every server."""
    rng = np.random.default_rng(seed)
    return fo.Instance(
        np.ones((servers, 1)), np.ones((users, 1)), weights=rng.uniform(0.5, 2, users), rates=rng.uniform(20, 100, (users, servers))
    )


def in_whole_numbers(users: int, servers: int, seed: int) -> fo.Instance:
    """Servers and tasks of few sizes: two full limits of a server are often the same to all that runs there."""
    rng = np.random.default_rng(seed)
    eligibility = some_servers_each(rng, users, servers, 0.3)
    return fo.Instance(rng.integers(1, 11, (servers, 3)), rng.integers(1, 11, (users, 3)) / 100, eligibility=eligibility)


def capped(users: int, servers: int, resources: int, seed: int, part: float = 1.0) -> fo.Instance:
    """Weights over six decades, and half of the users with tasks over six decades, too."""
    rng = np.random.default_rng(seed)
    tasks = np.where(rng.random(users) < 0.5, 10 ** rng.uniform(-3, 3, users), np.inf)
    return clusters(users, servers, resources, seed, part, zeros=0.2).replace(tasks=tasks)


def on_the_path(program: Program, arrays: Arrays = NUMPY) -> Solution:
    """Follow the path alone, without the path in logarithms behind it."""
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"):
        solution = solve_alpha_fair(program, program.goal, 1e-8, NEVER, arrays)
    assert solution is not None
    return solution


def by_rows(program: Program) -> Solution:
    """Follow the path with every limit as a row, as for rows that belong to no server: no caps, and another linear system."""
    assert isinstance(program.goal, AlphaFair)
    with np.errstate(all="ignore"):
        solution = solve_alpha_fair(program, program.goal, 1e-8, NEVER, pairs=RowPairs(ScaledRows.of(program, capped=False)))
    assert solution is not None
    return solution


def utilities(program: Program, solution: Solution) -> FloatArray:
    """Return U[n], (users,)."""
    return program.per_user(program.utilities * solution.x)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 2.0, 10.0])
def test_one_server_as_by_bisection(alpha: float) -> None:
    """Of one server's time, x = gamma (phi gamma^(1 - alpha) / p)^(1 / alpha) / gamma ... with the price at which it is all used."""
    instance = by_rates(600, 1, seed=3)
    solution = on_the_path(fo.formulate(instance, "proportional", alpha=alpha))
    gamma, phi = instance.rates[:, 0].tolist(), instance.weights.tolist()
    low, high = -200.0, 200.0  # of the price's logarithm
    for _ in range(200):
        middle = (low + high) / 2
        # d/dx of phi g(x) = p / gamma:  x = (phi gamma / p)^(1 / alpha)
        used = sum(np.exp((np.log(f * g) - middle) / alpha) / g for f, g in zip(phi, gamma, strict=True))
        low, high = (middle, high) if used > 1 else (low, middle)
    expected = [np.exp((np.log(f * g) - low) / alpha) for f, g in zip(phi, gamma, strict=True)]
    np.testing.assert_allclose(solution.x, expected, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0, 7.0])
@pytest.mark.parametrize(("resources", "part", "zeros"), [(1, 1.0, 0.0), (2, 0.5, 0.3), (3, 1.0, 0.3)])
def test_agrees_with_limits_as_rows(alpha: float, resources: int, part: float, zeros: float) -> None:
    """Another layout, another linear system."""
    program = fo.formulate(clusters(25, 4, resources, seed=int(10 * alpha), part=part, zeros=zeros), "proportional", alpha=alpha)
    first, second = on_the_path(program), by_rows(program)
    assert certify(program, first).worst <= 1e-9
    np.testing.assert_allclose(utilities(program, first), utilities(program, second), rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("resources", [1, 3])
def test_limits_on_tasks_agree_with_those_that_are_rows(alpha: float, resources: int) -> None:
    """There, a limit on tasks is a row like any other, and its price one of many."""
    instance = capped(25, 4, resources, seed=int(10 * alpha), part=0.7)
    instance = instance.replace(capacities=instance.capacities / 20)
    program = fo.formulate(instance, "proportional", alpha=alpha)
    first, second = on_the_path(program), by_rows(program)
    assert certify(program, first).worst <= 1e-9
    np.testing.assert_allclose(utilities(program, first), utilities(program, second), rtol=1e-8)
    limited = np.isfinite(instance.tasks)
    stopped = limited & (utilities(program, first) > instance.tasks * (1 - 1e-9))
    assert 0 < stopped.sum() < limited.sum()


@pytest.mark.parametrize(("users", "servers"), [(40, 8), (50, 20)])
@pytest.mark.parametrize("seed", [1, 3, 8])
def test_users_stopped_far_below_what_their_weights_ask_for(users: int, servers: int, seed: int) -> None:
    """The prices that they pay do not run away, and the path ends."""
    program = fo.formulate(capped(users, servers, 2, seed, 0.7), "proportional", alpha=2)
    assert certify(program, on_the_path(program)).worst < 1e-8


def test_one_server_with_limits_on_tasks_as_by_bisection() -> None:
    """Everybody gets what it wants at one price, or all its tasks."""
    rng = np.random.default_rng(2)
    demands, weights, tasks = rng.uniform(0.1, 1, 200), 10 ** rng.uniform(-3, 3, 200), 10 ** rng.uniform(-2, 1, 200)
    program = fo.formulate(fo.Instance([[20.0]], demands[:, None], weights, tasks=tasks), "proportional", alpha=5)
    low, high = -200.0, 200.0  # of the price's logarithm
    for _ in range(200):
        middle = (low + high) / 2
        wanted = np.minimum(np.exp((np.log(weights / demands) - middle) / 5), tasks)
        low, high = (middle, high) if demands @ wanted > 20 else (low, middle)
    np.testing.assert_allclose(on_the_path(program).x, wanted, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 5.0])
def test_all_tasks_of_everybody(alpha: float) -> None:
    """Where the servers have room for all, nothing has a price but the last task."""
    instance = capped(20, 3, 2, seed=1).replace(tasks=np.arange(1.0, 21))
    program = fo.formulate(instance, "proportional", alpha=alpha)
    solution = on_the_path(program)
    np.testing.assert_allclose(utilities(program, solution), instance.tasks, rtol=1e-14)
    assert certify(program, solution).worst <= 1e-12
    assert solution.prices is not None
    np.testing.assert_array_equal(solution.prices[: -instance.n_users], 0.0)


@pytest.mark.skipif(find_spec("cvxpy") is None, reason="CVXPY is not installed")
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_agrees_with_cvxpy(alpha: float) -> None:
    """A solver that shares nothing with this one."""
    instance = by_rates(60, 4, seed=1)
    ours = fo.solve(instance, "proportional", alpha=alpha, solver="interior-point:numpy")
    theirs = fo.solve(instance, "proportional", alpha=alpha, solver="cvxpy")
    np.testing.assert_allclose(ours.tasks_per_user, theirs.tasks_per_user, rtol=1e-7)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("resources", "part"), [(1, 1.0), (3, 1.0), (3, 0.5)])
def test_many_servers(resources: int, part: float, alpha: float) -> None:
    """More limits than a dense system of prices may have; nothing that the path in logarithms would have to finish."""
    program = fo.formulate(clusters(12, 1050 // resources, resources, seed=1, part=part), "proportional", alpha=alpha)
    assert certify(program, on_the_path(program)).worst <= 1e-9


@pytest.mark.skipif(find_spec("cvxpy") is None, reason="CVXPY is not installed")
@pytest.mark.parametrize("resources", [1, 3])
def test_many_servers_as_by_cvxpy(resources: int) -> None:
    """A solver that shares nothing with this one."""
    instance = clusters(5, 40, resources, seed=3).replace(weights=[1, 2, 3, 4, 5])
    program = fo.formulate(instance, "proportional")
    theirs = fo.solve(instance, "proportional", solver="cvxpy")
    np.testing.assert_allclose(program.per_user(on_the_path(program).x), theirs.tasks_per_user, rtol=1e-6)


@pytest.mark.parametrize(("users", "servers"), [(60, 30), (100, 50), (150, 80)])
@pytest.mark.parametrize("seed", [0, 3, 4])
def test_servers_and_tasks_of_few_sizes_take_no_more_steps_than_others(users: int, servers: int, seed: int) -> None:
    """Without a least pivot of a server, steps end in NaN: a hundred more near the central path leave a residual of 1e-9, not 1e-12."""
    program = fo.formulate(in_whole_numbers(users, servers, seed), "proportional")
    solution = on_the_path(program)
    assert certify(program, solution).worst <= 3e-11
    assert solution.iterations <= 40


@pytest.mark.parametrize("alpha", [1.001, 2.0])
def test_servers_that_are_much_alike_take_few_steps(alpha: float) -> None:
    """Users change servers while the products fall by a few percent: with the second order of a whole predictor it takes about 40."""
    rng = np.random.default_rng(9)
    eligibility = some_servers_each(rng, 200, 120, 0.3)
    instance = fo.Instance(rng.uniform(1, 10, (120, 3)), rng.uniform(0.01, 0.1, (200, 3)), eligibility=eligibility)
    program = fo.formulate(instance, "proportional", alpha=alpha)
    solution = on_the_path(program)
    assert certify(program, solution).worst <= 1e-9
    assert solution.iterations <= 30


def test_the_largest_use_of_rows() -> None:
    """Of one pair, for each limit, where limits are rows; a row may have no pair."""
    program = fo.formulate(clusters(9, 4, 2, seed=1, part=0.4, zeros=0.5), "proportional")
    pairs = RowPairs(ScaledRows.of(program))
    x = np.random.default_rng(0).uniform(0, 1, pairs.n_pairs)
    np.testing.assert_allclose(pairs.largest_use(x)[0], (pairs.rows_matrix.toarray() * x).max(axis=1), rtol=1e-12)


def test_pairs_need_not_all_be_eligible() -> None:
    """Half of them, as a table with a mask and as lists."""
    rng = np.random.default_rng(0)
    instance = fo.generate("uniform", users=200, servers=60, resources=2, seed=0)
    eligibility = rng.random((200, 60)) < 0.9
    eligibility[:20] &= rng.random((20, 60)) < 0.3
    for some in (eligibility, eligibility & (rng.random((200, 60)) < 0.5)):
        program = fo.formulate(instance.replace(eligibility=some), "proportional")
        assert certify(program, on_the_path(program)).worst < 1e-9


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(instances(), st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0]))
def test_every_answer_is_certified(instance: fo.Instance, alpha: float) -> None:
    """By the path, or in logarithms, and then the answer says so."""
    program = fo.formulate(instance, "proportional", alpha=alpha)
    if not program.n_pairs or obstacle(program):
        return
    found = find(program, [InteriorPoint("numpy")], 1e-8, NEVER)
    assert found.certificate.worst <= 1e-8
    assert found.finished_by in (None, "path in logarithms", "active sets")


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("kind", ["alike", "proportional rows", "one pair", "zero demands", "nine decades", "one huge"])
def test_degenerate_instances(kind: str, alpha: float) -> None:
    """Users alike (not merged), in proportion to each other, with one server each; capacities from 1e-3 to 1e6; a user of weight 1e3."""
    rng = np.random.default_rng(5)
    instance = clusters(200, 4, 2, seed=7).replace(weights=rng.uniform(0.5, 2, 200))
    if kind == "alike":
        instance = instance.replace(demands=np.tile([[0.3, 0.7]], (200, 1)))
    elif kind == "proportional rows":
        instance = instance.replace(demands=np.outer(rng.uniform(0.1, 1, 200), [0.3, 0.7]))
    elif kind == "one pair":
        instance = instance.replace(eligibility=np.arange(4) == rng.integers(4, size=(200, 1)))
    elif kind == "zero demands":
        instance = clusters(200, 4, 2, seed=7, zeros=0.5)
    elif kind == "nine decades":
        instance = instance.replace(capacities=10 ** rng.uniform(-3, 6, (4, 2)))
    else:
        instance = instance.replace(weights=np.r_[1e3, np.full(199, 1e-3)])
    program = fo.formulate(instance, "proportional", alpha=alpha)
    solution = InteriorPoint("numpy").solve(program, tolerance=1e-8, deadline=NEVER)
    assert certify(program, solution).worst <= 1e-9


def test_is_deterministic() -> None:
    """To the last bit."""
    program = fo.formulate(by_rates(300, 4, seed=2), "proportional")
    np.testing.assert_array_equal(on_the_path(program).x, on_the_path(program).x)


def other_arrays(name: str) -> Arrays:
    """Return arrays of another package, or skip."""
    if name == "strict":
        strict: Any = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        return Arrays(strict)
    for needed in (name, "array_api_compat"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    return array_namespace(name)


def assert_the_same(program: Program, arrays: Arrays) -> None:
    """The answer on these arrays is certified, and that on NumPy's."""
    ours, theirs = on_the_path(program), on_the_path(program, arrays)
    assert certify(program, theirs).worst <= 1e-9
    np.testing.assert_allclose(utilities(program, theirs), utilities(program, ours), rtol=1e-9)


@pytest.mark.parametrize("name", ["strict", "torch"])
@pytest.mark.parametrize("rated", [False, True])
def test_the_same_on_other_arrays(name: str, rated: bool) -> None:
    """array-api-strict has nothing but the standard; PyTorch's tensors live on the processor here."""
    arrays = other_arrays(name)
    program = fo.formulate(by_rates(600, 3, seed=6) if rated else clusters(60, 3, 2, seed=6, part=0.7), "proportional", alpha=0.7)
    assert_the_same(program, arrays)


@pytest.mark.parametrize("name", ["strict", "torch"])
@pytest.mark.parametrize("alpha", [0.7, 2.0])
def test_limits_on_tasks_on_other_arrays(name: str, alpha: float) -> None:
    """The kinks of the demand, the room that is filled and the prices of tasks."""
    arrays, program = other_arrays(name), fo.formulate(capped(60, 3, 2, seed=6, part=0.7), "proportional", alpha=alpha)
    assert_the_same(program, arrays)


@pytest.mark.parametrize("name", ["strict", "torch"])
@pytest.mark.parametrize("resources", [1, 3])
def test_many_servers_on_other_arrays(name: str, resources: int) -> None:
    """The users' side on them."""
    arrays = other_arrays(name)
    program = fo.formulate(clusters(6, 40, resources, seed=6, part=0.7), "proportional", alpha=2.0)
    assert_the_same(program, arrays)


@pytest.mark.parametrize("name", ["fortran", "numpy:cuda", "torch:abacus", "torch:cuda:99", "cupy:99"])
def test_arrays_that_are_not_there_are_refused(name: str) -> None:
    """Before anything is solved, with what to install or to use."""
    with pytest.raises((fo.Unsupported, fo.SolverUnavailable), match=r"interior-point:numpy|pip install"):
        fo.solve(by_rates(5, 2, seed=0), "proportional", solver=f"interior-point:{name}")


def test_room_of_little_worth_is_used_too() -> None:
    """A server that takes next to nothing of anybody's money, among servers nine orders of magnitude apart, is full at the end too."""
    for seed in (7, 13, 15, 37):
        rng = np.random.default_rng(seed)
        capacities, demands = rng.uniform(1, 10, (5, 1)) * 10 ** rng.uniform(0, 9, (5, 1)), rng.uniform(0.1, 1, (20, 1))
        instance = fo.Instance(capacities, demands, weights=10 ** rng.uniform(-3, 3, 20))
        program = fo.formulate(instance, "proportional", utility=rng.uniform(0.1, 3, (20, 5)))
        solution = on_the_path(program)
        np.testing.assert_allclose(program.limits.matrix @ solution.x, program.limits.bounds, rtol=1e-10)
        assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("users", [20, 200])
def test_a_lost_path_is_finished_in_logarithms_or_by_cvxpy(monkeypatch: pytest.MonkeyPatch, users: int) -> None:
    """And the answer says so."""
    instance = by_rates(users, 3, seed=0)
    assert "finished_by" not in fo.solve(instance, "proportional").details
    monkeypatch.setattr(paths, "solve_alpha_fair", lambda *_: None)
    allocation = fo.solve(instance, "proportional")
    assert allocation.details["finished_by"] == "path in logarithms"
    assert allocation.certificate.worst <= 1e-9
    monkeypatch.setattr(paths, "_in_logarithms", lambda *_: None)
    allocation = fo.solve(instance, "proportional")
    assert allocation.solver == "cvxpy"
    assert allocation.details["finished_by"] in ("cvxpy", "active sets")
    assert allocation.certificate.worst <= 1e-9


@pytest.mark.parametrize("alpha", [0.1, 1.0, 2.0, 5.0])
def test_small_programs_are_solved_to_the_last_digit(monkeypatch: pytest.MonkeyPatch, alpha: float) -> None:
    """On the sets that the path shows; where these cannot be told, the answer stands as it is."""
    program = fo.formulate(clusters(30, 4, 2, seed=3, part=0.7), "proportional", alpha=alpha)
    engines = [InteriorPoint()]
    sharp = find(program, engines, 1e-8, NEVER)
    assert sharp.certificate.worst <= 3e-14
    assert sharp.engines == ("interior-point", "active sets")
    monkeypatch.setattr(policy, "polishes", lambda *_: ())
    np.testing.assert_array_equal(find(program, engines, 1e-8, NEVER).solution.x, on_the_path(program).x)
    np.testing.assert_allclose(utilities(program, sharp.solution), utilities(program, on_the_path(program)), rtol=1e-10)


def test_the_time_limit_holds() -> None:
    """No step without time."""
    program = fo.formulate(by_rates(200, 4, seed=0), "proportional")
    assert isinstance(program.goal, AlphaFair)
    with pytest.raises(fo.NoSolution):
        solve_alpha_fair(program, program.goal, 1e-8, Deadline(1e-9))


@pytest.mark.parametrize("alpha", [4.0, 8.0, 16.0, 32.0])
@pytest.mark.parametrize("finite", [True, False])
def test_money_may_lie_far_apart(alpha: float, finite: bool) -> None:
    """By up to seventy orders of magnitude, and users whose tasks all fit pay nothing: the path itself has the answer."""
    for seed in range(3):
        program = fo.formulate(gpu_cluster(60, seed, finite), "proportional", alpha=alpha)
        assert certify(program, on_the_path(program)).worst <= 1e-8


def test_an_answer_within_the_tolerance_counts_in_large_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate judges it; one beyond the tolerance is none, where the program is too large for its active sets to be found."""
    instance = fo.generate("uniform", users=8, servers=3, resources=2, seed=0)
    program = fo.formulate(instance, "proportional")
    goal = program.goal_as(AlphaFair)
    monkeypatch.setattr(alpha_fair, "ALPHA_FAIR", ALPHA_FAIR._replace(pairs_of_rough_answers=0))
    found_by = alpha_fair._found
    for error, counts in ((5e-9, True), (2e-8, False)):

        def ends(*arguments: Any, error: float = error) -> Any:
            found = found_by(*arguments)
            assert found is not None
            return replace(found, end=found.end._replace(error=error))

        monkeypatch.setattr(alpha_fair, "_found", ends)
        assert (solve_alpha_fair(program, goal, 1e-8, Deadline(None)) is not None) == counts
