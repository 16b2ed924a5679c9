"""Leximins and totals by the structured interior point: its step, its answers against HiGHS and SciPy, its choice and its way out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.optimize import linprog
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import Leximin, LimitKind, Program, Solution
from fairopt.solvers import choose, interior_point
from fairopt.solvers.backend import Deadline
from fairopt.solvers.structured_finish import finished
from fairopt.solvers.structured_levels import solve_levels
from fairopt.solvers.structured_newton import NewtonSystem, Residuals
from fairopt.solvers.structured_pairs import Pairs
from fairopt.solvers.structured_path import LevelPath, Point, advance, part_of_the_way
from fairopt.solvers.structured_total import solve_total

NEVER = Deadline(None)


def everywhere(users: int, servers: int, resources: int, seed: int = 0, part: float = 1.0) -> fo.Instance:
    """Positive demands; a part of the pairs eligible, one of each user at least."""
    rng = np.random.default_rng(seed)
    eligibility = rng.random((users, servers)) < part
    eligibility[np.arange(users), rng.integers(servers, size=users)] = True
    return fo.Instance(
        rng.uniform(50, 500, (servers, resources)),
        rng.uniform(0.1, 1, (users, resources)),
        weights=rng.uniform(0.5, 2, users),
        eligibility=eligibility,
    )


def by_path(program: Program) -> Solution:
    """Solve by the path alone, without HiGHS behind it."""
    assert isinstance(program.goal, Leximin)
    solution = solve_levels(program, program.goal, 1e-8, NEVER)
    assert solution is not None
    return solution


def levels(program: Program, solution: Solution) -> FloatArray:
    """Return U[n], (users,)."""
    return program.per_user(program.utilities * solution.x)


def by_highs(program: Program) -> Solution:
    """Solve by HiGHS."""
    return fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)


# The step ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("users", "servers"), [(4, 5), (9, 2)])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_the_step_solves_the_whole_system(users: int, servers: int, part: float) -> None:
    """All nine blocks of unknowns, against a dense solve of the conditions as they stand in the module's docstring."""
    instance = everywhere(users, servers, 2, seed=users, part=part).replace(tasks=np.r_[3.0, np.full(users - 1, np.inf)])
    pairs = Pairs(fo.formulate(instance, "drfh", formulation="equalize"))
    rng = np.random.default_rng(1)
    n, limits, rows = pairs.n_pairs, pairs.n_slots * pairs.n_servers, pairs.n_rows
    assert rows == users + 1
    unit = np.eye(n)
    A = np.stack([pairs.use(e).ravel() for e in unit], axis=1)
    U = np.stack([pairs.rows(e) for e in unit], axis=1)
    side, a = np.append(np.ones(users), -1.0), np.append(rng.uniform(0.5, 2, users), 0.0)
    primal, dual = rng.uniform(0.1, 2, (2, n + limits + rows))
    system = NewtonSystem(pairs, primal, dual, side, a)
    products = rng.normal(size=primal.size)
    wanted = Residuals(rng.normal(size=(pairs.n_slots, pairs.n_servers)), rng.normal(size=rows), rng.normal(size=n), 0.7)
    d_primal, d_dual, dt = system.step(products, wanted)

    size = primal.size
    matrix = np.zeros((2 * size + 1, 2 * size + 1))  # columns: primal, dual, t
    right = np.concatenate([wanted.limits.ravel(), wanted.rows, wanted.costs, products, [wanted.unit]])
    lim, own = slice(n, n + limits), slice(n + limits, size)
    matrix[:limits, :n], matrix[:limits, lim] = A, np.eye(limits)
    of_rows = slice(limits, limits + rows)
    matrix[of_rows, :n], matrix[of_rows, own], matrix[of_rows, -1] = U, -np.diag(side), -a
    of_costs = slice(limits + rows, size)
    matrix[of_costs, size : size + n] = -np.eye(n)
    matrix[of_costs, size + n : size + n + limits] = A.T
    matrix[of_costs, size + n + limits : 2 * size] = -U.T * side
    matrix[size : 2 * size, :size], matrix[size : 2 * size, size : 2 * size] = np.diag(dual), np.diag(primal)
    matrix[-1, size + n + limits : 2 * size] = a * side
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(np.concatenate([d_primal, d_dual, [dt]]), expected, rtol=1e-8, atol=1e-8)


def test_sparse_and_whole_layouts_are_the_same_numbers() -> None:
    """The tables of few pairs, of some and of all pairs hold A theta U'."""
    for part, sparse in ((0.0, True), (0.3, False), (1.0, False)):
        pairs = Pairs(fo.formulate(everywhere(120, 90, 2, part=part), "drfh"))
        assert pairs.sparse == sparse
        values = np.random.default_rng(0).random((2, pairs.n_pairs))
        table = pairs.tables(values, [np.full(pairs.n_pairs, 2.0)])
        dense = table if isinstance(table, np.ndarray) else table.toarray()
        expected = np.zeros((120, 2, pairs.n_servers))
        for p in range(pairs.n_pairs):
            expected[pairs.user[p], :, pairs.server[p]] = values[:, p]
        np.testing.assert_array_equal(dense, 2 * expected.reshape(120, -1))
        np.testing.assert_allclose(pairs.sum_by_server(values), expected.sum(axis=0), rtol=1e-12)


# Answers -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_first_level_against_scipy(seed: int) -> None:
    """max t: x t-feasible, as one plain linear program of SciPy's."""
    program = fo.formulate(everywhere(7, 4, 2, seed=seed, part=0.6), "drfh")
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
    solution = fo.SOLVERS["interior-point"]().solve(program, tolerance=1e-8, deadline=NEVER)
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7, atol=1e-12)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("part", [0.2, 1.0])
@pytest.mark.parametrize(("users", "servers"), [(150, 12), (20, 60)])
def test_larger_programs(users: int, servers: int, part: float) -> None:
    """Both sides of the elimination, with some and with all pairs; the path finishes by itself."""
    program = fo.formulate(everywhere(users, servers, 3, part=part), "drfh")
    solution = by_path(program)
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize(("users", "servers", "part"), [(60, 8, 0.2), (60, 8, 1.0), (12, 40, 1.0)])
def test_the_finish_is_exact(users: int, servers: int, part: float) -> None:
    """On the sets that a point shows the level is proved to the last digits, steps before the path gets there."""
    pairs = Pairs(fo.formulate(everywhere(users, servers, 3, part=part), "drfh"))
    path = LevelPath(pairs, float(pairs.reach.min()) / users, NEVER)
    side, a, rows = path.side, path.per_t, np.zeros(users)
    point = path.points[0]
    for _ in range(40):
        reached = path._proved(point)
        end = path._proved(Point(*finished(pairs, point.primal, point.dual, point.t, side, a, rows))) if reached.gap < 1e-5 else reached
        if abs(end.gap) <= 1e-13:
            break
        point = advance(pairs, point, side, a, rows, 0.0, part_of_the_way(reached.gap))
    assert abs(end.gap) <= 1e-13
    assert reached.gap > 1e-11
    assert reached.level * (1 - 1e-12) <= end.level <= reached.bound * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_many_levels(seed: int) -> None:
    """Users with one to three servers each and zero demands: among settled users, too, every level is finished by the path itself."""
    rng = np.random.default_rng(seed)
    demands = rng.uniform(0.1, 1, (80, 2)) * (rng.random((80, 2)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 0.5
    eligibility = np.zeros((80, 5), bool)
    for user in eligibility:
        user[rng.choice(5, rng.integers(1, 4), replace=False)] = True
    program = fo.formulate(fo.Instance(rng.uniform(1, 10, (5, 2)), demands, eligibility=eligibility), "drfh")
    solution = by_path(program)
    assert len(solution.stages) > 1
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7)
    assert certify(program, solution).worst <= 1e-9


# Choice and way out --------------------------------------------------------------------------------------------------------------


def test_it_is_chosen_where_it_wins() -> None:
    """Large leximins; small ones, and those of users whose tasks end or who have few servers, stay with HiGHS, one server with the closed
    form.
    """
    large = everywhere(3000, 10, 2)
    assert choose(fo.formulate(large, "drfh"), None).name == "interior-point"
    assert choose(fo.formulate(large.replace(tasks=np.full(3000, 2.0)), "drfh"), None).name == "highs"
    assert choose(fo.formulate(everywhere(3000, 100, 2, part=0.005), "drfh"), None).name == "highs"
    assert choose(fo.formulate(everywhere(100, 10, 2), "drfh"), None).name == "highs"
    assert choose(fo.formulate(everywhere(9000, 1, 2), "drf"), None).name == "water-filling"
    assert choose(fo.formulate(large, "uniform"), None).name == "highs"


def test_a_lost_path_ends_at_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer, or one that fails its check: HiGHS solves it, and the answer says so."""
    instance = everywhere(6, 3, 2)
    expected = fo.solve(instance, "drfh", solver="highs").tasks_per_user

    def wrong(program: Program, *_: object) -> Solution:
        return Solution(np.zeros(program.n_pairs))

    for path in (lambda *_: None, wrong):
        monkeypatch.setattr(interior_point, "solve_levels", path)
        allocation = fo.solve(instance, "drfh", solver="interior-point")
        assert allocation.details["finished_by"] == "highs"
        np.testing.assert_allclose(allocation.tasks_per_user, expected, rtol=1e-9)


def test_what_has_no_place_is_refused() -> None:
    """Slices, limits on tasks that are worth more on one server than on another, or all there is; the message names the engine that can."""
    instance = everywhere(3, 2, 2)
    program = fo.formulate(instance, "uniform")
    assert (program.limits.kinds == LimitKind.SLICE).any()
    with pytest.raises(fo.Unsupported, match=r"slices of servers.*use highs"):
        fo.solve(instance, "uniform", solver="interior-point")
    with pytest.raises(fo.Unsupported, match=r"worth more on one server.*use highs"):
        fo.solve(instance.replace(tasks=[1, 2, 3]), "max-min", utility=[[1, 2], [2, 1], [1, 3]], solver="interior-point")
    finite = fo.formulate(instance.replace(tasks=[1, 2, 3]), "efficiency")
    of_tasks = replace(finite, limits=finite.limits.select(finite.limits.kinds == LimitKind.TASKS))
    with pytest.raises(fo.Unsupported, match=r"take nothing of a server.*use highs"):
        Pairs(of_tasks)


def test_time_limit() -> None:
    """A path stops at the limit and says what is final."""
    program = fo.formulate(everywhere(40, 8, 2), "drfh")
    deadline = Deadline(1e-9)
    for engine_goal in (program, fo.formulate(everywhere(40, 8, 2), "efficiency")):
        with pytest.raises(fo.NoSolution, match="time limit"):
            fo.SOLVERS["interior-point"]().solve(engine_goal, tolerance=1e-8, deadline=deadline)
