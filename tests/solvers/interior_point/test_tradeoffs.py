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
from fairopt.solvers.interior_point.rows import RowPairs, ScaledRows

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
