"""The solvers inside CVXPY: certified, or refused with a reason; their options and time limits; nothing on stdout."""

from __future__ import annotations

import logging
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.processes.streams import unwarned
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_cvxpy import engine, running
from fairopt.solvers.via_cvxpy.inside import Inside, arguments, imported

POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
PROGRAMS = [fo.generate("constrained", of="uniform", users=8, servers=4, rate=0.4, seed=seed) for seed in range(4)]
with unwarned():
    import cvxpy

    INSTALLED = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
PROVED = {"CLARABEL", "SCS", "HIGHS", "SCIPY", "ECOS", "PIQP", "SCIP", "GUROBI", "CPLEX", "COPT", "XPRESS", "GLOP"}


@pytest.mark.parametrize("solver", INSTALLED)
def test_an_answer_is_certified_or_refused(solver: str) -> None:
    """Every solver that is installed: an answer is that of HiGHS, and no exception but those of fairopt leaves."""
    for instance in PROGRAMS:
        for notion in ("drfh", "tsf", "efficiency"):
            best = fo.solve(instance, notion, solver="highs")
            try:
                found = fo.solve(instance, notion, solver=f"cvxpy:{solver}")
            except fo.FairoptError:
                assert solver not in PROVED
                continue
            of = np.sum if notion == "efficiency" else np.sort  # whose optimum is not unique
            np.testing.assert_allclose(of(found.shares), of(best.shares), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", [each for each in INSTALLED if each not in ("CBC", "PDLP")])
def test_an_unknown_option_is_refused_by_its_name(solver: str) -> None:
    """Whether the solver raises, warns or ignores it."""
    with pytest.raises(fo.Unsupported, match="no_such_option"):
        fo.solve(POOL, "drf", solver=f"cvxpy:{solver}", solver_options={"no_such_option": 1})


def test_options_reach_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the user last, a time limit under the solver's own name, in the one argument where there is one."""
    assert arguments("GUROBI", {"Threads": 4, "OptimalityTol": 1e-6}, np.inf) == {
        "FeasibilityTol": 1e-9,
        "OptimalityTol": 1e-6,
        "Threads": 4,
    }
    assert arguments("GUROBI", {}, 3.0)["TimeLimit"] == 3.0
    assert arguments("SCIP", {"limits/gap": 0.1, "scip_params": {"lp/threads": 2}}, 3.0) == {
        "scip_params": {"numerics/feastol": 1e-9, "numerics/dualfeastol": 1e-9, "limits/time": 3.0, "limits/gap": 0.1, "lp/threads": 2}
    }
    assert arguments("SCS", {}, np.inf, tight=False) == {}
    assert arguments("OF_TOMORROW", {"a": 1}, 3.0) == {"a": 1}
    heard: list[dict[str, Any]] = []
    solve: Any = cvxpy.Problem.solve

    def hear(problem: Any, **given: Any) -> Any:
        heard.append(given)
        return solve(problem, **given)

    monkeypatch.setattr(cvxpy.Problem, "solve", hear)
    fo.solve(POOL, "drf", solver="cvxpy:clarabel", solver_options={"max_iter": 77}, time_limit=60)
    assert all(given["max_iter"] == 77 and 0 < given["time_limit"] <= 60 for given in heard)
    assert heard


def test_a_solver_that_is_not_there_says_what_to_install() -> None:
    """By its package, or by the nearest name."""
    with pytest.raises(fo.SolverUnavailable, match=r'did you mean "CLARABEL"'):
        imported("CLARABLE", {})
    if "MOSEK" not in INSTALLED:
        with pytest.raises(fo.SolverUnavailable, match="pip install mosek"):
            fo.solve(POOL, "drf", solver="cvxpy:mosek")


def test_a_solver_without_dual_prices_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As CBC: CVXPY has None for them."""
    monkeypatch.setattr(cvxpy.constraints.nonpos.Inequality, "dual_value", property(lambda _: None))
    for notion in ("drf", "efficiency", "proportional"):
        with pytest.raises(fo.Unsupported, match=r'"CLARABEL" gives CVXPY no dual prices'):
            fo.solve(POOL, notion, solver="cvxpy:CLARABEL")


def failing(error: Exception) -> Any:
    """A problem whose solve raises."""

    def solve(**_: Any) -> None:
        raise error

    return SimpleNamespace(solve=solve, constraints=[], size_metrics=SimpleNamespace(num_scalar_variables=3))


def test_a_failure_has_the_reason_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """CVXPY keeps it to itself where a licence is too small; then the solver is asked. At the deadline, it is the deadline."""
    gurobi = running.Solver(cvxpy, "GUROBI", {})
    with pytest.raises(fo.FairoptError, match="failed: sum of things; try another solver"):
        gurobi.run(failing(RuntimeError("sum of things")), Deadline(None), {})
    monkeypatch.setattr(running, "refusal", lambda *_: "Model too large for size-limited license")
    with pytest.raises(fo.FairoptError, match="failed: Model too large"):
        gurobi.run(failing(cvxpy.SolverError("Solver 'GUROBI' failed.")), Deadline(None), {})
    with pytest.raises(fo.Unsupported, match="does not take Thread=1: Unknown parameter"):
        running.Solver(cvxpy, "GUROBI", {"Thread": 1}).run(failing(ValueError("Unknown parameter 'Thread'")), Deadline(None), {})
    over, left = Deadline(0.0), iter([1.0, 0.0])
    monkeypatch.setattr(type(over), "left", property(lambda _: next(left)))  # all of it is used up meanwhile
    with pytest.raises(fo.NoSolution, match="time limit of 0 s"):
        gurobi.run(failing(RuntimeError("interrupted")), over, {})


def test_a_solver_without_a_time_limit_says_so(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped between its programs."""
    monkeypatch.setattr(engine, "inside", lambda _: Inside())
    with caplog.at_level(logging.WARNING, "fairopt"):
        fo.solve(POOL, "drf", solver="cvxpy:CLARABEL", time_limit=60)
    assert '"CLARABEL" has no time limit of its own' in caplog.text


def test_what_a_solver_prints_is_not_heard(capfd: pytest.CaptureFixture[str]) -> None:
    """On the descriptor, as COPT, and by Python's print."""

    def noise(*_: Any, **__: Any) -> SimpleNamespace:
        os.write(1, b"No license found\n")
        print("Restricted license")
        return SimpleNamespace()

    problem = SimpleNamespace(solve=noise, status="optimal")
    running.Solver(cvxpy, "COPT", {}).run(problem, Deadline(None), {})
    assert capfd.readouterr().out == ""


def test_a_tolerance_that_is_never_reached_is_replaced_by_the_solvers_own() -> None:
    """The second attempt has none of ours; after it the limit is an error."""
    heard: list[dict[str, Any]] = []
    problem = SimpleNamespace(solve=lambda **given: heard.append(given), status="user_limit")
    with pytest.raises(fo.FairoptError, match="stopped at a limit of its own"):
        running.Solver(cvxpy, "PIQP", {}).run(problem, Deadline(None), {})
    assert ["eps_abs" in given for given in heard] == [True, False]


def test_a_time_limit_in_the_unit_of_the_solver() -> None:
    """Seconds, but of GLPK whole milliseconds, one at least; none without a limit."""
    for seconds, expected in ((1.5, 1500), (1e-9, 1), (float("inf"), None)):
        assert arguments("GLPK_MI", {}, seconds, whole=True).get("tm_lim") == expected
    assert arguments("HIGHS", {}, 1.5)["time_limit"] == 1.5
