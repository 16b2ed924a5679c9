"""The certificate accepts what is optimal and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from strategies import instances

import fairopt as fo
from fairopt.certificate import Certificate, certify
from fairopt.certificate.conditions import clause_violation
from fairopt.program import Disjunctive, Program, Solution, Stage
from fairopt.solvers.backend import Deadline
from fairopt.solving import policy

FIGURE_1 = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2])


def solved(instance: fo.Instance, notion: str) -> tuple[Program, Solution]:
    """The program and HiGHS's solution of it."""
    program = fo.formulate(instance, notion)
    return program, fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=Deadline(None))


def test_a_right_answer_passes() -> None:
    """To rounding."""
    assert certify(*solved(FIGURE_1, "drfh")).worst <= 1e-12


def test_using_too_much_is_infeasible() -> None:
    """One percent more of everything: feasibility 0.01."""
    program, solution = solved(FIGURE_1, "drfh")
    assert certify(program, replace(solution, x=solution.x * 1.01)).feasibility == pytest.approx(0.01, rel=1e-6)


def test_giving_too_little_is_not_optimal() -> None:
    """One percent less of everything, levels told truthfully: the bound is 1 % higher."""
    program, solution = solved(FIGURE_1, "drfh")
    stages = tuple(replace(stage, value=stage.value * 0.99) for stage in solution.stages)
    found = certify(program, replace(solution, x=solution.x * 0.99, stages=stages))
    assert found.optimality == pytest.approx(1 / 0.99 - 1, rel=1e-6)
    assert found.feasibility == 0


def test_levels_that_are_not_reached_do_not_count() -> None:
    """The same with the old levels: believing them would hide the loss."""
    program, solution = solved(FIGURE_1, "drfh")
    assert certify(program, replace(solution, x=solution.x * 0.99)).optimality >= 0.009


def test_stopping_at_the_first_level_is_not_the_leximin() -> None:
    """Two servers, the second only for user 2: one level for both leaves user 2 short, and no price proves it."""
    instance = fo.Instance([[4, 0], [0, 40]], [[1, 0], [0, 1]])
    program, solution = solved(instance, "drfh")
    equal = solution.stages[0].value
    x = np.array([4.0, 4.0 * 40 / 4 * 0.5])
    lazy = Solution(x, (Stage(equal * 0.5, np.array([0, 1]), solution.stages[0].prices),))
    assert certify(program, lazy).worst > 0.1
    forgotten = replace(solution, stages=solution.stages[:0])
    assert certify(program, forgotten).fairness == float("inf")


def test_any_prices_will_do_but_only_good_ones_prove() -> None:
    """Scaled prices prove the same; wrong ones prove less, never more."""
    program, solution = solved(FIGURE_1, "tsf")
    for factor in (1e-6, 1e6):
        scaled = tuple(replace(stage, prices=stage.prices * factor) for stage in solution.stages if stage.prices is not None)
        assert certify(program, replace(solution, stages=scaled)).worst <= 1e-12
    rng = np.random.default_rng(0)
    for _ in range(20):
        stages = tuple(replace(stage, prices=rng.random(len(program.limits))) for stage in solution.stages)
        assert certify(program, replace(solution, stages=stages)).worst >= 1e-3


@given(instance=instances())
@settings(max_examples=60)
def test_moving_a_percent_from_one_user_to_another_is_seen(instance: fo.Instance) -> None:
    """Take 1 % of one user's tasks away: its level is no longer reached."""
    program, solution = solved(instance, "drfh") if instance.servable.any() else (None, None)
    assume(program is not None and solution is not None and bool(solution.stages))
    assert program is not None
    assert solution is not None
    user = solution.stages[0].users[0]
    x = np.where(program.pair_users == user, solution.x * 0.99, solution.x)
    assert certify(program, replace(solution, x=x)).worst >= 1e-3


def test_a_price_that_is_noise_proves_nothing() -> None:
    """User 2 could have 1 % more of what is free; a price of 3e-13 says that it is stopped, and 1 % of that is beyond 14 digits of all."""
    instance = fo.Instance([[1, 0], [0, 1]], [[1, 0], [0, 1]], weights=[2, 1 / 0.505])
    program = fo.formulate(instance, "drfh")
    lazy = Solution(np.array([1.0, 0.5 / 0.505]), (Stage(0.5, np.array([0, 1]), np.array([1.0, 3e-13])),))
    assert certify(program, lazy).fairness == pytest.approx(0.01, rel=0.05)


def test_what_a_level_lacks_is_not_what_the_next_may_have() -> None:
    """User 2 pays a million times what user 1 does. It lacks 1e-11 of their common level, and user 1 has 1e-5 too much."""
    program = fo.formulate(fo.Instance([[1]], [[1], [1]], weights=[1, 1e6]), "drfh")
    equal = 1 / (1 + 1e6)
    x = np.array([equal + 1e6 * equal * 1e-11, 1e6 * equal * (1 - 1e-11)])
    prices = np.array([equal])
    uneven = Solution(x, (Stage(equal * (1 - 1e-11), np.array([1]), prices), Stage(x[0], np.array([0]), prices)))
    found = certify(program, uneven)
    assert found.feasibility <= 1e-15
    assert found.optimality <= 2e-11
    assert found.fairness == pytest.approx(1e-5, rel=0.01)


def test_a_failing_engine_never_returns_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that claims success with a wrong point: another engine answers, or a CertificateError names the residuals."""
    engine = fo.SOLVERS["highs"]
    right = engine.solve

    def wrong(self: object, program: Program, **options: object) -> Solution:
        solution = right(self, program, **options)  # type: ignore[arg-type]
        return replace(solution, x=solution.x * 1.001)

    monkeypatch.setattr(engine, "solve", wrong)
    monkeypatch.setattr(policy, "polishes", lambda *_: ())
    monkeypatch.setattr(policy, "long_polishes", lambda *_: ())
    with pytest.raises(fo.CertificateError, match=r'"highs" for "drfh" fails its check: feasibility 1.0e-03.*solver="interior-point"'):
        fo.solve(FIGURE_1, "drfh", solver="highs")
    found = fo.solve(FIGURE_1, "drfh")
    assert found.solver == "interior-point"
    assert found.certificate.worst <= 1e-8


def test_a_residual_just_above_the_tolerance_can_be_told_from_it() -> None:
    """1.04e-6 is not below 1e-6, and does not read as if it were."""
    with pytest.raises(fo.CertificateError, match=r"feasibility 0.0e\+00, optimality 1.04e-06, fairness 0.0e\+00, allowed 1.0e-06"):
        Certificate(0.0, 1.04e-6, 0.0).require(1e-6, "drfh", "highs")


def test_a_residual_that_is_no_number_fails() -> None:
    """NaN is not small."""
    with pytest.raises(fo.CertificateError):
        Certificate(float("nan"), 0.0, 0.0).require(1e-8, "drfh", "highs")


def test_the_bound_of_a_total() -> None:
    """The uniform slice is a linear program: half of it is half as good as possible."""
    program, solution = solved(FIGURE_1, "uniform")
    assert certify(program, solution).worst <= 1e-12
    assert certify(program, replace(solution, x=solution.x / 2)).optimality == pytest.approx(0.5)


@pytest.mark.parametrize("told", [1e9, 2.0, float("nan"), float("inf"), 0.0])
def test_levels_are_what_is_reached_not_what_is_told(told: float) -> None:
    """Half of everything, with a level of the engine's invention: the invention does not shrink the residuals."""
    program, solution = solved(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "drf")
    stages = tuple(replace(stage, value=stage.value * told) for stage in solution.stages)
    assert not certify(program, replace(solution, x=solution.x / 2, stages=stages)).worst <= 0.4
    assert not certify(program, replace(solution, stages=stages)).worst <= 0.4


def test_what_is_not_a_number_proves_nothing() -> None:
    """In prices, in tasks, in a gap, in a residual; and a missing gap is no gap."""
    program, solution = solved(FIGURE_1, "uniform")
    assert solution.prices is not None
    assert certify(program, replace(solution, prices=solution.prices * np.nan)).worst == float("inf")
    assert certify(program, replace(solution, x=solution.x * np.nan)).worst == float("inf")
    whole = fo.formulate(FIGURE_1, "drfh", integral=True)
    for gap in (None, float("nan")):
        assert not certify(whole, Solution(np.zeros(whole.n_pairs), gap=gap)).worst <= 1
    parts = [Certificate(0.0, 0.0, 0.0), Certificate(0.0, float("nan"), 0.0)]
    assert not Certificate.combine(parts).worst <= 1


def test_a_user_whom_the_sum_does_not_see() -> None:
    """alpha = 10 and U = (0.1, 100): a task of user 2 is worth 1e-30 of one of user 1, and half of all it may have is still missed."""
    instance = fo.Instance([[0.1], [100.0]], [[1], [1]], eligibility=[[True, False], [False, True]])
    program = fo.formulate(instance, "proportional", alpha=10)
    solution = fo.SOLVERS["interior-point"]().solve(program, tolerance=1e-8, deadline=Deadline(None))
    assert certify(program, solution).worst <= 1e-12
    half = certify(program, replace(solution, x=solution.x * [1, 0.5]))
    assert half.optimality <= 1e-12
    assert half.fairness >= 0.5  # the room that is left; by its own money it misses more


def test_a_user_with_all_its_tasks_stands_in_nobodys_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """alpha = 10; user 1 runs its 0.01 tasks on the server of user 2, though one of its own is idle: user 2 misses 1 %.

    A task of user 1 is worth 1e20 of one of user 2, and the limit on its tasks has nearly all of that as its price: what user 1 pays for
    servers is lost in its digits, so that both are as good to it as they can be. User 2 does find its server full at the right price.
    """
    instance = fo.Instance([[1], [1]], [[1], [1]], eligibility=[[True, True], [False, True]], tasks=[0.01, np.inf])
    program = fo.formulate(instance, "proportional", alpha=10)
    server, of_tasks = program.limits.of_servers, ~program.limits.of_servers

    def answer(own: float, shared: float) -> Solution:
        """Tasks of user 1 on its own server and on the shared one, whose rest is of user 2, and the prices at which these are bought."""
        x = np.array([own, shared, 1 - shared])
        prices = np.zeros(len(program.limits))
        prices[server] = 0.0, x[2] ** -10
        prices[of_tasks] = 0.01**-10
        return Solution(x, prices=prices)

    assert program.pair_users.tolist() == [0, 0, 1]
    assert certify(program, answer(0.01, 0.0)).worst <= 1e-12
    in_the_way = certify(program, answer(0.0, 0.01))
    assert in_the_way.fairness == pytest.approx(0.01 / 0.99)
    monkeypatch.setattr("fairopt.certificate.conditions._wasted_spending", lambda *_: 0.0)
    assert certify(program, answer(0.0, 0.01)).worst <= 1e-12  # nothing else sees it


def test_bounds_of_auxiliary_columns_count() -> None:
    """0 <= a <= 0.5: at 0.75 it is half too large, and at -0.25 as much too small."""
    goal = Disjunctive(np.ones(1), (), np.array([0.5]))
    for level, violation in ((0.0, 0.0), (0.5, 0.0), (0.75, 0.5), (-0.25, 0.5)):
        assert clause_violation(goal, np.zeros(1), np.array([level])) == pytest.approx(violation)
