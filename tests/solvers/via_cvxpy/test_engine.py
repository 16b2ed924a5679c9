"""The two engines of alpha-fair goals agree; statuses are mapped totally."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import instances

import fairopt as fo
from fairopt.solvers.backend import Status
from fairopt.solvers.via_cvxpy import engine as via_cvxpy

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1, 2, 10])
@given(instance=instances())
@settings(max_examples=15)
def test_engines_agree(alpha: float, instance: fo.Instance) -> None:
    """x[n] to 1e-7, certificates to 1e-10; what CVXPY cannot prove it refuses, and names the engine that can."""
    first = fo.solve(instance, "proportional", alpha=alpha, solver="interior-point")
    try:
        second = fo.solve(instance, "proportional", alpha=alpha, solver="cvxpy")
    except fo.CertificateError as error:
        if 'try solver="interior-point"' not in str(error):
            raise
        second = first
    np.testing.assert_allclose(first.tasks_per_user, second.tasks_per_user, rtol=1e-7, atol=1e-9)
    assert max(first.certificate.worst, second.certificate.worst) <= 1e-10


def test_every_native_status_is_mapped() -> None:
    """All of CVXPY's and of HiGHS's; only those that say optimal are optimal."""
    highspy = pytest.importorskip("highspy")
    settings_of = pytest.importorskip("cvxpy.settings")
    from fairopt.solvers.highs_model import status_of as of_highs
    from fairopt.solvers.via_cvxpy.engine import status_of as of_cvxpy

    native = [*settings_of.SOLUTION_PRESENT, *settings_of.INF_OR_UNB, *settings_of.ERROR, settings_of.UNKNOWN, None]
    assert {status for status in native if of_cvxpy(status) is Status.OPTIMAL} == {"optimal", "optimal_inaccurate"}
    statuses = highspy.HighsModelStatus.__members__.values()
    assert [status.name for status in statuses if of_highs(status) is Status.OPTIMAL] == ["kOptimal"]
    assert all(isinstance(of_highs(status), Status) for status in statuses)


def test_solvers_of_cvxpy_by_name() -> None:
    """After a colon; what is not there is named, and other engines have none."""
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    allocation = fo.solve(pool, "proportional", solver="cvxpy:clarabel")
    np.testing.assert_allclose(allocation.tasks_per_user, [45 / 11, 18 / 11], rtol=1e-9)
    assert allocation.seconds["compile"] >= 0
    with pytest.raises(fo.SolverUnavailable, match="no solver"):
        fo.solve(pool, "proportional", solver="cvxpy:nonesuch")
    with pytest.raises(fo.Unsupported, match="no choice of solvers inside"):
        fo.solve(pool, "drf", solver="large:simplex")


@pytest.mark.parametrize("alpha", [0.5, 1, 2])
def test_scs_is_finished_to_full_precision(alpha: float) -> None:
    """A first-order solver brings six digits or so; what it leaves open is finished, and certified as from any other engine."""
    pytest.importorskip("scs")
    rng = np.random.default_rng(3)
    instance = fo.Instance(rng.uniform(1, 5, (4, 3)), rng.uniform(0.1, 2, (9, 3)), 10 ** rng.uniform(-1, 1, 9))
    mine = fo.solve(instance, "proportional", alpha=alpha, solver="cvxpy:SCS")
    np.testing.assert_allclose(mine.tasks_per_user, fo.solve(instance, "proportional", alpha=alpha).tasks_per_user, rtol=1e-9)
    assert mine.certificate.worst <= 1e-10


@pytest.mark.parametrize("solver", ["cvxpy", "cvxpy:SCS"])
def test_time_limits_reach_the_solver_inside(solver: str) -> None:
    """An instance that takes seconds, and a twentieth of one: no answer, and not much later."""
    pytest.importorskip(solver.partition(":")[2].lower() or "cvxpy")
    rng = np.random.default_rng(0)
    instance = fo.Instance(rng.uniform(1, 5, (60, 4)), rng.uniform(0.1, 2, (300, 4)), 10 ** rng.uniform(-1.5, 1.5, 300))
    fo.solve(fo.Instance([[1]], [[1]]), "proportional", solver=solver)  # loading the packages is not what is timed
    started = time.process_time()  # other processes cost none of it
    with pytest.raises(fo.NoSolution, match=r"time limit of 0\.05 s"):
        fo.solve(instance, "proportional", alpha=2, solver=solver, time_limit=0.05)
    assert time.process_time() - started < 5


def test_every_program_is_counted() -> None:
    """One for a total, at alpha = 1 and for a trade-off; two for another alpha; one a level."""
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], tasks=[2, np.inf])
    asked: list[tuple[str, dict[str, Any], int]] = [
        *(("efficiency", {}, 1), ("proportional", {}, 1), ("proportional", {"alpha": 2}, 2)),
        *(("fds", {"beta": 2, "lam": -1}, 1), ("drf", {}, 2)),
    ]
    for notion, options, programs in asked:
        allocation = fo.solve(pool, notion, solver="cvxpy", **options)
        assert allocation.details["programs_solved"] == programs, notion


def test_a_second_solve_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The answer at alpha = 1 is what the polish starts from, which finds that at alpha = 2."""
    monkeypatch.setattr(via_cvxpy._Task, "power_mean", lambda self, *_: 1 / self.x[0])  # no concave goal: CVXPY refuses it
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    with caplog.at_level(logging.INFO, "fairopt"):
        allocation = fo.solve(pool, "proportional", alpha=2, solver="cvxpy")
    assert '"cvxpy" goes on without an answer at alpha = 2: CVXPY with CLARABEL failed' in caplog.text
    np.testing.assert_allclose(allocation.tasks_per_user, fo.solve(pool, "proportional", alpha=2).tasks_per_user, rtol=1e-7)


@pytest.mark.parametrize("solver", ["cvxpy", "pyomo"])
def test_a_tree_in_which_nobody_has_a_task(solver: str) -> None:
    """0 for all, in each part of the filling: guarantees and surplus."""
    queues = [fo.Queue("team", guarantee={"cpu": 2}), fo.Queue("inner", parent="team", guarantee={"cpu": 1})]
    tree = fo.Instance([[9, 18]], [[1, 4], [3, 1]], resources=["cpu", "memory"], queues=queues, queue_of=["inner", None], tasks=[0, 0])
    allocation = fo.solve(tree, "drfh", solver=solver)
    assert allocation.tasks_per_user.tolist() == [0, 0]
    assert allocation.certificate.worst == 0


def test_a_limit_of_iterations_is_no_time_limit() -> None:
    """CVXPY calls both "user_limit"."""
    with pytest.raises(fo.FairoptError, match="stopped at a limit of its own") as caught:
        fo.solve(
            fo.Instance([[9, 18]], [[1, 4], [3, 1]]), "efficiency", solver="cvxpy:clarabel", time_limit=600, solver_options={"max_iter": 1}
        )
    assert not isinstance(caught.value, fo.NoSolution)
