"""Trade-offs by one path on which the worth of the total follows, against a path for each worth of the total."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import demands_with_zeros, some_servers_each

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import LimitKind, Program, Solution, Tradeoff
from fairopt.solvers import choose
from fairopt.solvers.active_sets.problem import AlphaFairProblem
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import paths
from fairopt.solvers.interior_point.alpha_fair import solve_alpha_fair, solve_tradeoff
from fairopt.solvers.interior_point.alpha_fair_path import Path
from fairopt.solvers.interior_point.alpha_fair_worths import Worths, log_odds_of
from fairopt.solvers.interior_point.rows import RowPairs, ScaledRows
from fairopt.solvers.interior_point.steps import _WithTotal
from fairopt.solvers.structure.arrays import NUMPY
from fairopt.solvers.structure.layouts import lay_out
from fairopt.solvers.structure.pairs import Pairs
from fairopt.solvers.structure.scaling import ScaledProgram

NEVER = Deadline(None)


def clusters(users: int, servers: int, seed: int, part: float = 1.0, **options: Any) -> fo.Instance:
    """Weights over two decades, three resources, some demands zero where not all pairs are eligible."""
    rng = np.random.default_rng(seed)
    demands = demands_with_zeros(rng, (users, 3), 0.1, 1, 0.0 if part == 1 else 0.3)
    eligibility = some_servers_each(rng, users, servers, part)
    return fo.Instance(
        rng.uniform(5, 50, (servers, 3)), demands, weights=10 ** rng.uniform(-1, 1, users), eligibility=eligibility, **options
    )


def by_one_path(program: Program) -> Solution:
    """Follow the one path, which has to converge."""
    assert isinstance(program.goal, Tradeoff)
    with np.errstate(all="ignore"):
        found = solve_tradeoff(program, program.goal, 1e-8, NEVER)
    assert found is not None
    return found


def utilities(program: Program, solution: Solution) -> FloatArray:
    """Return U[n], (users,)."""
    return program.per_user(program.utilities * solution.x)


LIMITED: list[tuple[dict[str, Any], str]] = [
    ({}, "none"),
    ({"tasks": np.where(np.arange(18) % 3 == 0, 2.0, np.inf)}, "tasks"),
    ({"parallelism": np.where(np.arange(18) % 2 == 0, 1.0, np.inf)}, "servers at once"),
    ({"tasks": np.where(np.arange(18) % 3 == 0, 2.0, np.inf), "parallelism": np.ones(18)}, "both"),
]


@pytest.mark.parametrize("part", [1.0, 0.4])
@pytest.mark.parametrize(("options", "_"), LIMITED, ids=[name for _, name in LIMITED])
@pytest.mark.parametrize(("notion", "beta", "lam"), [("fds", 2.0, None), ("gfj", 0.5, 4.0), ("gfj", 3.0, -1.0), ("fds", 3.0, -4.0)])
def test_one_path_ends_where_a_path_for_each_worth_does(
    notion: str, beta: float, lam: float | None, options: dict[str, Any], _: str, part: float
) -> None:
    """Both are certified, and the optimum is unique in the users' utilities."""
    program = fo.formulate(clusters(18, 5, 1, part, **options), notion, beta=beta, lam=lam)
    found = by_one_path(program)
    assert certify(program, found).worst < 1e-9
    goal = program.goal_as(Tradeoff)
    problem = AlphaFairProblem.of(program, goal)
    with np.errstate(all="ignore"):
        other = problem.solution(paths.follow_tradeoff(problem, goal, NEVER))
    assert certify(program, other).worst < 1e-11
    np.testing.assert_allclose(utilities(program, found), utilities(program, other), rtol=1e-5)


@pytest.mark.parametrize("part", [1.0, 0.4])
@pytest.mark.parametrize("notion", ["fds", "gfj"])
@pytest.mark.parametrize("beta", [8.0, 12.0, 20.0, 30.0, 60.0, 100.0, 300.0])
def test_a_large_beta_needs_no_path_for_each_worth(notion: str, beta: float, part: float) -> None:
    """A path on which beta rises converges where one at the beta of the goal does not: that did not on half of those from 30 on.

    A marginal utility changes beta times as much as a utility, and so do its digits.
    """
    program = fo.formulate(clusters(18, 5, 1, part), notion, beta=beta)
    assert certify(program, by_one_path(program)).worst < (1e-11 if beta <= 100 else 1e-9)


@pytest.mark.parametrize("lam", [-2.0, -20.0])
def test_a_rising_beta_ends_where_a_path_for_each_worth_does(lam: float) -> None:
    """Also where the total counts for most."""
    program = fo.formulate(clusters(18, 5, 1, 0.4), "gfj", beta=12.0, lam=lam)
    goal = program.goal_as(Tradeoff)
    problem = AlphaFairProblem.of(program, goal)
    with np.errstate(all="ignore"):
        other = problem.solution(paths.follow_tradeoff(problem, goal, NEVER))
    np.testing.assert_allclose(utilities(program, by_one_path(program)), utilities(program, other), rtol=1e-5)


def test_a_user_with_next_to_no_worth_of_its_own_is_not_far_from_its_demand() -> None:
    """Its demand at a price is anything: a path is as far from its end as prices are from marginal utilities."""
    program = fo.formulate(clusters(18, 5, 1), "gfj", beta=30.0)
    goal, pairs = program.goal_as(Tradeoff), lay_out(ScaledProgram.of(program, at_once=True), NUMPY)
    path = Path(Worths(pairs, goal.beta, goal.weights, log_odds=log_odds_of(goal)))
    point = path.start()
    path.measured(point)
    v, m = pairs.rows_of(pairs.parts(point.primal)[2])[0], pairs.rows_of(pairs.parts(point.dual)[2])[0]
    log_reach, unit = np.log(pairs.scaled.reach), path.worths.log_unit
    own = np.log(goal.weights) - goal.beta * (np.log(v) + log_reach)
    off = np.logaddexp(own, point.t + unit) + log_reach - unit - np.log(m)
    assert path.missed(point) == pytest.approx(np.abs(off).max(), rel=1e-9)


def test_many_users_and_servers_take_one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other engine and no other path is asked."""
    program = fo.formulate(clusters(150, 40, 0), "fds")
    assert choose(program, None).name == "interior-point"
    monkeypatch.setattr(paths, "follow_tradeoff", None)
    allocation = fo.solve(clusters(150, 40, 0), "fds")
    assert (allocation.solver, allocation.certificate.worst < 1e-9) == ("interior-point", True)


def test_where_the_one_path_fails_there_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path for each worth of the total."""
    monkeypatch.setattr(paths, "solve_tradeoff", lambda *_: None)
    allocation = fo.solve(clusters(20, 5, 0), "fds", solver="interior-point")
    assert (allocation.solver, allocation.certificate.worst < 1e-12) == ("interior-point", True)


def test_a_singular_equation_of_the_total_ends_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then no step changes kappa as utilities imply; another path follows."""
    monkeypatch.setattr(_WithTotal, "_pulled", lambda *_: 1.0)
    program = fo.formulate(clusters(20, 5, 0), "fds")
    assert solve_tradeoff(program, program.goal_as(Tradeoff), 1e-8, NEVER) is None
    assert fo.solve(clusters(20, 5, 0), "fds", solver="interior-point").certificate.worst < 1e-12


@pytest.mark.parametrize(("notion", "options"), [("fds", {}), ("proportional", {"alpha": 0.5})])
def test_other_paths_are_asked_where_one_leaves_a_user_nothing(
    monkeypatch: pytest.MonkeyPatch, notion: str, options: dict[str, float]
) -> None:
    """It may be the rounding of that path."""
    monkeypatch.setattr(Pairs, "tasks", lambda pairs, _: np.zeros(pairs.scaled.program.n_pairs))
    allocation = fo.solve(clusters(20, 5, 0), notion, solver="interior-point", **options)  # type: ignore[arg-type]
    assert (allocation.solver, allocation.certificate.worst < 1e-11) == ("interior-point", True)


@pytest.mark.parametrize("beta", [0.5, 5.0])
def test_without_a_worth_of_the_total_it_is_alpha_fair(beta: float) -> None:
    """Limits on tasks are caps then."""
    instance = clusters(40, 6, 3, 0.5, tasks=np.where(np.arange(40) % 2 == 0, 1.0, np.inf))
    found = by_one_path(fo.formulate(instance, "gfj", beta=beta, lam=(1 - beta) / beta))
    expected = fo.solve(instance, "proportional", alpha=beta)
    program = fo.formulate(instance, "gfj", beta=beta)
    np.testing.assert_allclose(program.per_user(found.x), expected.tasks_per_user, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("part", [1.0, 0.3])
def test_limits_on_servers_at_once_by_server_or_as_rows(alpha: float, capped: bool, part: float) -> None:
    """Second rows of users, or rows of a sparse system: the same utilities."""
    parallelism = np.where(np.arange(30) % 4 == 0, np.inf, 0.1)
    tasks = np.where((np.arange(30) % 5 == 0) & capped, 0.5, np.inf)
    program = fo.formulate(clusters(30, 6, 2, part, parallelism=parallelism, tasks=tasks), "proportional", alpha=alpha)
    as_rows = RowPairs(ScaledRows.of(program))
    with np.errstate(all="ignore"):
        found, other = (solve_alpha_fair(program, program.goal, 1e-8, NEVER, pairs=pairs) for pairs in (None, as_rows))  # type: ignore[arg-type]
    assert found is not None
    assert other is not None
    assert max(certify(program, each).worst for each in (found, other)) < 1e-9
    np.testing.assert_allclose(utilities(program, found), utilities(program, other), rtol=1e-6)
    assert found.prices is not None
    assert (found.prices[program.limits.kinds == LimitKind.PARALLELISM] > 1e-6 * found.prices.max()).any()
