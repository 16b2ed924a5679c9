"""Leximins and totals by the structured interior point: its step, its answers against HiGHS and SciPy, its choice and its way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from instances import demands_with_zeros, few_servers_each, instance_of_many_levels, spread_instance
from scipy.optimize import linprog
from strategies import instances
from support.deadlines import Late

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import Leximin, LimitKind, Program, Solution
from fairopt.solvers import choose
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import paths
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solvers.interior_point.finish import finish, read_active_sets
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.interior_point.path import LevelPath, solve_level
from fairopt.solvers.interior_point.steps import Point, advance, length_with_cuts, part_of_the_way
from fairopt.solvers.interior_point.total import solve_total
from fairopt.solvers.structure.arrays import NUMPY, Arrays
from fairopt.solvers.structure.layouts import PairLists, PairTable
from fairopt.solvers.structure.newton import NewtonSystem, Residuals
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.solving.policy import find

NEVER = Deadline(None)


def by_path(program: Program, deadline: Deadline = NEVER) -> Solution:
    """Solve by the path alone, without HiGHS behind it."""
    assert isinstance(program.goal, Leximin)
    solution = solve_levels(program, program.goal, 1e-8, deadline)
    assert solution is not None
    return solution


def levels(program: Program, solution: Solution) -> FloatArray:
    """Return U[n], (users,)."""
    return program.per_user(program.utilities * solution.x)


def by_highs(program: Program) -> Solution:
    """Solve by HiGHS."""
    return fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)


# Layouts and the step ------------------------------------------------------------------------------------------------------------


def strict() -> Arrays:
    """Return arrays that have nothing but the standard, or skip."""
    return Arrays(pytest.importorskip("array_api_strict", reason="array-api-strict is not installed"))


LAYOUTS: dict[str, Callable[[ScaledProgram], Pairs]] = {
    "lists": lambda scaled: PairLists(scaled, NUMPY),
    "table": lambda scaled: PairTable(scaled, NUMPY),
    "table of strict arrays": lambda scaled: PairTable(scaled, strict()),
}
QUESTIONS: list[tuple[str, dict[str, Any]]] = [("drfh", {}), ("drfh", {"formulation": "equalize"}), ("efficiency", {})]


def dense(scaled: ScaledProgram) -> tuple[FloatArray, FloatArray]:
    """Return A (slots, servers, pairs) and U (rows, pairs) as they stand in the module's docstring."""
    pair = np.arange(scaled.n_pairs)
    A, own = np.zeros((scaled.n_slots, scaled.n_servers, pair.size)), np.zeros((scaled.n_users, pair.size))
    A[:, scaled.server, pair], own[scaled.user, pair] = scaled.A, 1.0
    return A, np.concatenate([(own * scaled.W)[: scaled.n_levels], (own * scaled.T)[scaled.limited]])


def of_pairs(pairs: Pairs, values: Any) -> FloatArray:
    """Return values of the eligible pairs, in NumPy."""
    return pairs.tasks(values)[pairs.scaled.column] / pairs.scaled.scale


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("notion", "options"), QUESTIONS)
def test_all_layouts_are_the_same_numbers(layout: str, part: float, notion: str, options: dict[str, Any]) -> None:
    """Every sum against dense matrices: of few, some and all pairs, one user in three with a limit on tasks."""
    instance = spread_instance(120, 90, 2, part=part).replace(tasks=np.where(np.arange(120) % 3, np.inf, 5.0))
    scaled = ScaledProgram.of(fo.formulate(instance, notion, **options))
    pairs, rng, (A, U) = LAYOUTS[layout](scaled), np.random.default_rng(0), dense(scaled)
    floats, numpy = pairs.arrays.floats, pairs.arrays.numpy
    x, p, q = rng.random(scaled.n_pairs), rng.random(A.shape[:2]), rng.random(scaled.n_rows)
    laid, y = pairs.lay(x), q[scaled.n_levels :]
    worth, tasks = np.einsum("rks,rk->s", A, p), U[scaled.n_levels :].T @ y
    np.testing.assert_allclose(of_pairs(pairs, laid), x, rtol=1e-15)
    np.testing.assert_allclose(numpy(pairs.use(laid)), A @ x, rtol=1e-12)
    np.testing.assert_allclose(numpy(pairs.rows(laid)), U @ x, rtol=1e-12)
    np.testing.assert_allclose(of_pairs(pairs, pairs.cost(floats(p))), worth, rtol=1e-12)
    np.testing.assert_allclose(of_pairs(pairs, pairs.priced(floats(p), floats(y))), worth + tasks, rtol=1e-12)
    if scaled.n_rows:
        np.testing.assert_allclose(of_pairs(pairs, pairs.along_rows(floats(q))), U.T @ q, rtol=1e-12)
    cheapest = np.full(scaled.n_users, np.inf)
    np.minimum.at(cheapest, scaled.user, (worth + tasks) / scaled.W)
    np.testing.assert_allclose(numpy(pairs.cheapest(floats(p), floats(y))), cheapest, rtol=1e-12)
    rows = [pairs.W] * scaled.has_levels + [pairs.T] * bool(scaled.limited.size)
    if rows:
        table = pairs.matrix(pairs.A, rows)
        table = table.toarray() if isinstance(table, sp.csr_array) else numpy(table)
        np.testing.assert_allclose(table, np.einsum("ns,rks->nrk", U, A).reshape(scaled.n_rows, -1), rtol=1e-12)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(("users", "servers"), [(4, 5), (9, 2)])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_the_step_solves_the_whole_system(layout: str, users: int, servers: int, part: float) -> None:
    """All nine blocks of unknowns, against a dense solve of the conditions as they stand in the module's docstring."""
    instance = spread_instance(users, servers, 2, seed=users, part=part).replace(tasks=np.r_[3.0, np.full(users - 1, np.inf)])
    scaled = ScaledProgram.of(fo.formulate(instance, "drfh", formulation="equalize"))
    pairs, rng, (A, U) = LAYOUTS[layout](scaled), np.random.default_rng(1), dense(scaled)
    floats, numpy = pairs.arrays.floats, pairs.arrays.numpy
    n, limits, rows = scaled.n_pairs, scaled.n_slots * scaled.n_servers, scaled.n_rows
    size = n + limits + rows
    assert rows == users + 1
    side, a = np.append(np.ones(users), -1.0), np.append(rng.uniform(0.5, 2, users), 0.0)

    def point(values: FloatArray) -> Any:
        of_limits = floats(values[n : n + limits].reshape(A.shape[:2]))
        return pairs.point(pairs.eligible(pairs.lay(values[:n]), 1.0), of_limits, floats(values[n + limits :]))

    def flat(values: Any) -> FloatArray:
        x, s, v = pairs.parts(values)
        return np.concatenate([of_pairs(pairs, x), numpy(s).ravel(), numpy(v)])

    primal, dual = rng.uniform(0.1, 2, (2, size))
    products, lack = rng.normal(size=size), rng.normal(size=size)
    system = NewtonSystem(pairs, point(primal), point(dual), floats(side), floats(a))
    costs, of_limits, of_rows = pairs.parts(point(lack))
    d_primal, d_dual, dt = system.step(point(products), Residuals(of_limits, of_rows, pairs.eligible(costs), 0.7))

    matrix = np.zeros((2 * size + 1, 2 * size + 1))  # columns: primal, dual, t
    right = np.concatenate([lack[n:], lack[:n], products, [0.7]])
    lim, own = slice(n, n + limits), slice(n + limits, size)
    matrix[:limits, :n], matrix[:limits, lim] = A.reshape(limits, n), np.eye(limits)
    of_users = slice(limits, limits + rows)
    matrix[of_users, :n], matrix[of_users, own], matrix[of_users, -1] = U, -np.diag(side), -a
    reduced = slice(limits + rows, size)
    matrix[reduced, size : size + n] = -np.eye(n)
    matrix[reduced, size + n : size + n + limits] = A.reshape(limits, n).T
    matrix[reduced, size + n + limits : 2 * size] = -U.T * side
    matrix[size : 2 * size, :size], matrix[size : 2 * size, size : 2 * size] = np.diag(dual), np.diag(primal)
    matrix[-1, size + n + limits : 2 * size] = a * side
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(np.concatenate([flat(d_primal), flat(d_dual), [dt]]), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("allowed", [1e-12, 0.01, 0.3, 1e3])
def test_a_step_goes_on_until_pairs_lack_too_much(layout: str, allowed: float) -> None:
    """The length is that of a table of all lengths: what pairs lack at prices grows with it; limits and rows of users stay positive."""
    pairs = LAYOUTS[layout](ScaledProgram.of(fo.formulate(spread_instance(9, 4, 2, part=0.6), "drfh")))
    rng = np.random.default_rng(5)
    n, size = pairs.n_pairs, pairs.n_pairs + pairs.n_slots * pairs.n_servers + pairs.n_rows
    for shift in (0.0, 1.0):  # one where a limit ends the step, one where only pairs do
        primal, cost = rng.uniform(0.1, 1, size), rng.uniform(0.1, 1, n)
        change = rng.normal(0, 2, size) + shift * np.r_[np.zeros(n), np.full(size - n, 99.0)]
        table = np.linspace(0, 1, 100_001)
        lacks = sum(cost[k] * np.maximum(-primal[k] - table * change[k], 0) for k in range(n))
        stays = (primal[n:] + table[:, None] * change[n:] >= 0).all(axis=1)
        expected = table[(lacks <= allowed) & stays].max()
        values, step, price = (pairs.arrays.floats(array) for array in (primal, change, cost))
        found = length_with_cuts(pairs, values, step, price, allowed)
        np.testing.assert_allclose(found, expected, rtol=0.02, atol=2e-5)


# Answers -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_first_level_against_scipy(seed: int) -> None:
    """max t: x t-feasible, as one plain linear program of SciPy's."""
    program = fo.formulate(spread_instance(7, 4, 2, seed=seed, part=0.6), "drfh")
    assert isinstance(program.goal, Leximin)
    n = program.n_pairs
    below = np.zeros((len(program.users), n + 1))
    below[program.pair_users, np.arange(n)] = -program.utilities / program.goal.weights[program.pair_users]
    below[:, -1] = 1.0
    limits = np.column_stack([program.limits.matrix.toarray(), np.zeros(len(program.limits))])
    answer = linprog(
        np.r_[np.zeros(n), -1.0],
        A_ub=np.vstack([limits, below]),
        b_ub=np.r_[program.limits.bounds, np.zeros(len(program.users))],
        method="highs",
    )
    solution = by_path(program)
    assert solution.stages[0].value == pytest.approx(-float(answer.fun or 0.0), rel=1e-8)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("sharing", ["rdm", "tdm"])
@given(instance=instances(max_users=6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_leximin_agrees_with_highs(sharing: str, instance: fo.Instance) -> None:
    """Shares and tasks of everybody, levels and certificate."""
    first, second = (fo.solve(instance, "drfh", solver=solver, sharing=sharing) for solver in ("interior-point", "highs"))  # type: ignore[arg-type]
    np.testing.assert_allclose(first.tasks_per_user, second.tasks_per_user, rtol=1e-7, atol=1e-9)
    assert first.certificate.worst <= 1e-9


@given(instance=instances(max_users=6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_total_agrees_with_highs(instance: fo.Instance) -> None:
    """The weighted total, which is unique where tasks are not, with limits on tasks as rows."""
    program = fo.formulate(instance, "efficiency")
    if not program.n_pairs:
        return
    solution = solve_total(program, 1e-8, NEVER)
    assert solution is not None
    assert certify(program, solution).worst <= 1e-9
    assert instance.weights @ program.per_user(solution.x) == pytest.approx(
        float(instance.weights @ program.per_user(by_highs(program).x)), rel=1e-8
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_total_has_no_remnants(seed: int) -> None:
    """Where random numbers make the optimum unique, pairs have tasks where they have some in the vertex that HiGHS finds."""
    rng = np.random.default_rng(seed)
    program = fo.formulate(fo.Instance(rng.uniform(1, 9, (6, 3)), rng.uniform(0.1, 1, (60, 3))), "efficiency")
    solution = solve_total(program, 1e-8, NEVER)
    assert solution is not None
    np.testing.assert_array_equal(solution.x > 0, by_highs(program).x > 1e-9)


def nine_decades(rng: np.random.Generator) -> fo.Instance:
    """Capacities from 1e-3 to 1e6 with demands in the same units."""
    unit = 10.0 ** rng.uniform(-3, 6, 3)
    return fo.Instance(rng.uniform(5, 50, (4, 3)) * unit, rng.uniform(0.1, 1, (8, 3)) * unit)


DEGENERATE: dict[str, Callable[[np.random.Generator], fo.Instance]] = {
    "all users alike": lambda rng: fo.Instance(rng.uniform(1, 9, (3, 2)), np.tile([0.3, 0.7], (6, 1))),
    "one pair each": lambda rng: fo.Instance(
        rng.uniform(1, 9, (3, 2)), rng.uniform(0.1, 1, (6, 2)), eligibility=np.eye(3)[rng.integers(3, size=6)]
    ),
    "zero demands": lambda rng: fo.Instance(rng.uniform(1, 9, (3, 2)), [[0, 1], [1, 0], [1, 1], [0, 2], [2, 0]]),
    "a huge user": lambda rng: fo.Instance(rng.uniform(1, 9, (3, 2)), rng.uniform(0.1, 1, (5, 2)), weights=[1e6, 1, 1, 1, 1]),
    "capacities over nine decades": nine_decades,
    "no capacity": lambda rng: fo.Instance([[0, 0], [4, 9]], rng.uniform(0.1, 1, (4, 2)), eligibility=[[1, 0], [1, 1], [1, 1], [0, 1]]),
    "finite tasks": lambda rng: fo.Instance(rng.uniform(1, 9, (3, 2)), rng.uniform(0.1, 1, (6, 2)), tasks=[0, 0.5, 1, 2, np.inf, np.inf]),
    "everybody has all its tasks": lambda rng: fo.Instance(rng.uniform(90, 99, (3, 2)), rng.uniform(0.1, 1, (3, 2)), tasks=[1, 2, 3]),
}


@pytest.mark.parametrize("case", list(DEGENERATE))
@pytest.mark.parametrize("seed", range(3))
def test_degenerate_instances(case: str, seed: int) -> None:
    """Without merging: programs row for row, levels as those of HiGHS (which may have finished some of them)."""
    program = fo.formulate(DEGENERATE[case](np.random.default_rng(seed)), "drfh")
    solution = find(program, [fo.SOLVERS["interior-point"](), HiGHS()], 1e-8, NEVER).solution
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7, atol=1e-12)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("part", [0.2, 1.0])
@pytest.mark.parametrize(("users", "servers"), [(150, 12), (20, 60)])
def test_larger_programs(users: int, servers: int, part: float) -> None:
    """Both sides of the elimination, with some and with all pairs; the path finishes by itself."""
    program = fo.formulate(spread_instance(users, servers, 3, part=part), "drfh")
    solution = by_path(program)
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize(("users", "servers", "part"), [(60, 8, 0.2), (60, 8, 1.0), (12, 40, 1.0)])
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_the_finish_is_exact(layout: str, users: int, servers: int, part: float) -> None:
    """On the sets that a point shows the level is proved to the last digits, steps before the path gets there."""
    scaled = ScaledProgram.of(fo.formulate(spread_instance(users, servers, 3, part=part), "drfh"))
    pairs = LAYOUTS[layout](scaled)
    path = LevelPath.first(pairs, float(scaled.reach.min()) / users)
    side, a, rows = path.side, pairs.arrays.floats(path.course.rate), pairs.arrays.floats(np.zeros(users))
    point = path.start()
    for _ in range(40):
        end = reached = path.proved(point)
        if reached.gap < 1e-5:
            sets = read_active_sets(pairs, point.primal, point.dual, point.t)
            end = path.proved(Point(*finish(pairs, sets, point.primal, point.dual, point.t, side, a, rows)))
        if abs(end.gap) <= 1e-13:
            break
        point = advance(pairs, point, side, a, rows, 0.0, part_of_the_way(reached.gap))
    assert abs(end.gap) <= 1e-13
    assert reached.gap > 1e-11
    assert reached.level * (1 - 1e-12) <= end.level <= reached.bound * (1 + 1e-12)


def test_many_users_do_not_hold_up_each_other() -> None:
    """A few of 10,000 users that leave a server do not shorten the step of all: 17 steps, where there were 27."""
    program = fo.formulate(fo.generate("uniform", users=10_000, servers=10, resources=3, weights=5, seed=0), "drfh")
    solution = by_path(program)
    assert solution.iterations <= 22
    assert certify(program, solution).worst <= 1e-9


def test_an_end_goes_without_dear_pairs() -> None:
    """A pair that costs its user too much, put among the used ones with next to nothing, is found and dropped; the level stays proved."""
    scaled = ScaledProgram.of(fo.formulate(spread_instance(60, 8, 3, seed=2), "drfh"))
    path = LevelPath.first(PairTable(scaled, NUMPY), float(scaled.reach.min()) / 60)
    reached = solve_level(path, 1e-9, NEVER).reached
    assert reached.saturated.all()
    end = path.ended(reached)
    assert end.sets is not None
    used = end.sets.used.copy()
    extra = int(np.argmax(np.where(used, -1.0, path.pairs.parts(end.point.dual)[0])))  # the dearest of all
    assert not used[extra]
    used[extra] = True
    primal = end.point.primal.copy()
    primal[extra] = 1e-12
    blurred = replace(end, sets=replace(end.sets, used=used))
    again = path.without_dear(replace(end.point, primal=primal), blurred, 1e-9)
    assert again.sets is not None
    assert not again.sets.used[extra]
    assert again.level == pytest.approx(end.level, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_many_levels(seed: int) -> None:
    """Users with one to three servers each and zero demands: among settled users, too, every level is finished by the path itself."""
    program = of_many_levels(seed)
    solution = by_path(program)
    assert len(solution.stages) > 1
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7)
    assert certify(program, solution).worst <= 1e-9


def test_an_end_whose_smallest_prices_prove_nothing() -> None:
    """Prices of equations that follow from others: the smallest ones do not keep away pairs that are not used, those of the path do."""
    rng = np.random.default_rng(201)
    eligibility = rng.random((200, 10)).argsort(axis=1) < rng.integers(1, 4, (200, 1))
    servers = np.column_stack([rng.integers(16, 129, 10), rng.integers(64, 1025, 10), rng.integers(1, 9, 10)])
    tasks = np.column_stack([rng.integers(1, 9, 200), rng.integers(1, 33, 200), rng.choice([0, 1, 2], 200)])
    instance = fo.Instance(servers, tasks, eligibility=eligibility)
    allocation = fo.solve(instance, "drfh", solver="interior-point")
    assert "finished_by" not in allocation.details
    np.testing.assert_allclose(allocation.tasks_per_user, fo.solve(instance, "drfh", solver="highs").tasks_per_user, rtol=1e-7)


def test_a_gap_of_rounding_is_not_yet_an_end() -> None:
    """Where the gap is rounding before somebody with a small price is proved to be stopped, the path goes on until that shows."""
    allocation = fo.solve(instance_of_many_levels(2000, 40, 3, seed=7), "drfh", solver="interior-point")
    assert "finished_by" not in allocation.details
    assert len(allocation.levels) > 50


def test_levels_that_are_final_are_known_at_the_deadline() -> None:
    """And who has them."""
    program = of_many_levels(0)
    found, errors = by_path(program).stages, []
    for looks in range(1, 200, 3):
        try:
            by_path(program, Late(looks))
            break
        except fo.NoSolution as early:
            errors.append(early)
    for error in errors:
        final = found[: len(error.known["levels"])]
        assert error.known["levels"] == [stage.value for stage in final]
        assert error.known["users"] == [program.users[n] for stage in final for n in stage.users]
        assert not final or "final by then" in str(error)
    assert {len(error.known["levels"]) for error in errors} == set(range(len(found)))


def of_many_levels(seed: int) -> Program:
    """Users with one to three servers each and zero demands."""
    rng = np.random.default_rng(seed)
    demands = demands_with_zeros(rng, (80, 2), 0.1, 1)
    eligibility = few_servers_each(rng, 80, 5)
    return fo.formulate(fo.Instance(rng.uniform(1, 10, (5, 2)), demands, eligibility=eligibility), "drfh")


@pytest.mark.parametrize(
    ("users", "servers", "resources", "seed"),
    [(30, 4, 2, 2), (30, 4, 2, 3), (100, 5, 2, 3), (100, 5, 2, 4), (300, 10, 3, 0), (300, 10, 3, 1), (3000, 10, 3, 1)],
)
def test_caps_that_the_exact_end_passes_are_settled_first(
    monkeypatch: pytest.MonkeyPatch, users: int, servers: int, resources: int, seed: int
) -> None:
    """Tasks of 0.8 to 1.2 of what users get without limits on them: the level of the exact end lies above caps that the path has not
    reached. Who has such a cap cannot rise to that level: an end that took all along would be no answer, and HiGHS had to find one.
    """
    instance = spread_instance(users, servers, resources, seed)
    free = fo.solve(instance, "drfh", solver="interior-point").tasks_per_user
    capped = instance.replace(tasks=free * np.random.default_rng(seed).uniform(0.8, 1.2, users))
    monkeypatch.setattr(HiGHS, "solve", None)  # cannot be called
    allocation = fo.solve(capped, "drfh", solver="interior-point")
    assert "finished_by" not in allocation.details
    assert allocation.certificate.worst <= 1e-9


# Choice and way out --------------------------------------------------------------------------------------------------------------


def test_who_pays_a_millionth_shares_the_level() -> None:
    """One server, whose second resource is full: 5 t + 5e6 t = 5, so that x[1] = t / 0.8. User 2 at 1e-10 below t is 1e-4 for user 1."""
    program = fo.formulate(fo.Instance([[9, 5]], [[3, 4], [3, 5]], weights=[1, 1e6]), "drfh")
    solution = solve_levels(program, program.goal, 1e-8, NEVER)  # type: ignore[arg-type]
    assert solution is not None
    np.testing.assert_allclose(solution.x, np.array([1.25, 1e6]) / (1 + 1e6), rtol=1e-12)
    assert certify(program, solution).worst <= 1e-8


def test_it_is_chosen_where_it_wins() -> None:
    """Large leximins; small ones, and larger ones of many levels, stay with HiGHS, one server with the closed form."""
    large, middle = spread_instance(3000, 10, 2), spread_instance(1000, 10, 2)
    assert choose(fo.formulate(large, "drfh"), None).name == "interior-point"
    assert choose(fo.formulate(large.replace(tasks=np.full(3000, 2.0)), "drfh"), None).name == "interior-point"
    assert choose(fo.formulate(middle, "drfh"), None).name == "interior-point"
    assert choose(fo.formulate(middle.replace(tasks=np.full(1000, 2.0)), "drfh"), None).name == "interior-point"
    assert choose(fo.formulate(spread_instance(3000, 100, 2, part=0.005), "drfh"), None).name == "interior-point"
    assert choose(fo.formulate(spread_instance(1000, 40, 2, part=0.03), "drfh"), None).name == "highs"
    some = spread_instance(1000, 10, 2, part=0.3)
    assert choose(fo.formulate(some, "drfh"), None).name == "interior-point"
    in_groups = {groups: np.arange(1000)[:, None] % groups == np.arange(40) % groups for groups in (2, 10)}  # that share nothing
    for groups, name in ((2, "interior-point"), (10, "highs")):
        apart = spread_instance(1000, 40, 2).replace(eligibility=in_groups[groups])
        assert choose(fo.formulate(apart, "drfh"), None).name == name
        assert choose(fo.formulate(apart, "drfh", formulation="equalize"), None).name == "interior-point"
    one_resource = np.where(np.arange(1000)[:, None] % 2, some.demands, some.demands * [1, 0])
    assert choose(fo.formulate(some.replace(demands=one_resource), "drfh"), None).name == "highs"
    assert choose(fo.formulate(spread_instance(100, 10, 2), "drfh"), None).name == "highs"
    assert choose(fo.formulate(spread_instance(9000, 1, 2), "drf"), None).name == "water-filling"
    assert choose(fo.formulate(large, "uniform"), None).name == "highs"


def test_after_a_lost_path_comes_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer, or one that fails its check: HiGHS is next, and the answer says so. Asked for by name, the engine says who else can."""
    instance = spread_instance(6, 3, 2)
    expected = fo.solve(instance, "drfh", solver="highs").tasks_per_user
    monkeypatch.setattr(InteriorPoint, "wins", lambda *_: True)

    def wrong(program: Program, *_: object) -> Solution:
        return Solution(np.zeros(program.n_pairs))

    for path, error in ((lambda *_: None, fo.NoSolution), (wrong, fo.CertificateError)):
        monkeypatch.setattr(paths, "solve_levels", path)
        allocation = fo.solve(instance, "drfh")
        assert allocation.solver == allocation.details["finished_by"] == "highs"
        assert allocation.details["engines"] == ("interior-point", "highs")
        np.testing.assert_allclose(allocation.tasks_per_user, expected, rtol=1e-9)
        with pytest.raises(error, match=r'use highs|solver="highs"'):
            fo.solve(instance, "drfh", solver="interior-point")


def test_what_has_no_place_is_refused() -> None:
    """Slices, limits on tasks that are worth more on one server than on another, or all there is; the message names the engine that can."""
    instance = spread_instance(3, 2, 2)
    program = fo.formulate(instance, "uniform")
    assert (program.limits.kinds == LimitKind.SLICE).any()
    with pytest.raises(fo.Unsupported, match=r"slices of servers.*use highs"):
        fo.solve(instance, "uniform", solver="interior-point")
    with pytest.raises(fo.Unsupported, match=r"worth more on one server.*use highs"):
        fo.solve(instance.replace(tasks=[1, 2, 3]), "max-min", utility=[[1, 2], [2, 1], [1, 3]], solver="interior-point")
    finite = fo.formulate(instance.replace(tasks=[1, 2, 3]), "efficiency")
    of_tasks = replace(finite, limits=finite.limits.select(finite.limits.kinds == LimitKind.TASKS))
    with pytest.raises(fo.Unsupported, match=r"take nothing of a server.*use highs"):
        ScaledProgram.of(of_tasks)


def test_time_limit() -> None:
    """A path stops at the limit and says what is final."""
    program = fo.formulate(spread_instance(40, 8, 2), "drfh")
    deadline = Deadline(1e-9)
    for engine_goal in (program, fo.formulate(spread_instance(40, 8, 2), "efficiency")):
        with pytest.raises(fo.NoSolution, match="time limit"):
            fo.SOLVERS["interior-point"]().solve(engine_goal, tolerance=1e-8, deadline=deadline)


def test_a_user_who_pays_a_millionth_is_proved_to_be_stopped() -> None:
    """Weights over three orders: what the digits of the limits hide from the gap of the path counts for the user who pays the least."""
    rng = np.random.default_rng(0)
    capacities, demands = rng.uniform(10, 100, (50, 3)), rng.uniform(0.1, 2, (2000, 3))
    weights = 10.0 ** np.random.default_rng(3).uniform(-1.5, 1.5, 2000)
    allocation = fo.solve(fo.Instance(capacities, demands, weights=weights), "drfh", solver="interior-point")
    assert allocation.certificate.worst <= 1e-8
    shares = allocation.shares
    assert shares.min() == pytest.approx(shares.max(), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_level_of_weights_that_lie_far_apart(seed: int) -> None:
    """Nine pairs in ten, weights over six orders: the lightest users are proved to stop, and tasks are those of HiGHS."""
    rng = np.random.default_rng(seed)
    instance = fo.Instance(
        rng.uniform(1, 10, (30, 3)),
        rng.uniform(0.01, 0.1, (200, 3)),
        weights=10 ** rng.uniform(0, 6, 200),
        eligibility=rng.random((200, 30)) < 0.9,
    )
    own, other = (fo.solve(instance, "drfh", solver=solver) for solver in ("interior-point", "highs"))
    assert own.certificate.worst <= 1e-9
    np.testing.assert_allclose(own.tasks_per_user, other.tasks_per_user, rtol=1e-8)


def test_weights_that_lie_far_apart_with_several_levels() -> None:
    """A light user alone on a large server has more than one level gives: the path to one level is refused, and another engine answers."""
    rng = np.random.default_rng(0)
    capacities, eligibility = rng.uniform(1, 10, (31, 3)), np.ones((400, 31), bool)
    capacities[30], eligibility[:, 30], eligibility[:5, :30], eligibility[:5, 30] = 1000.0, False, False, True
    instance = fo.Instance(capacities, rng.uniform(0.01, 0.1, (400, 3)), weights=10 ** rng.uniform(0, 6, 400), eligibility=eligibility)
    program = fo.formulate(instance, "drfh")
    assert choose(program, None).name == "interior-point"
    found, other = fo.solve(instance, "drfh"), fo.solve(instance, "drfh", solver="highs")
    assert len(found.levels) == len(other.levels) > 1
    np.testing.assert_allclose(found.tasks_per_user, other.tasks_per_user, rtol=1e-8)
