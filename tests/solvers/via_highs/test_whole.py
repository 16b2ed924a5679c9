"""Whole tasks by any solver of mixed-integer programs: the levels of enumeration, and the tasks, bounds and time limits of HiGHS."""

from __future__ import annotations

import importlib.util
import itertools
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.processes.streams import unwarned
from fairopt.program import Program
from fairopt.solvers.backend import Deadline
from fairopt.solvers.via_highs.integer_program import IntegerProgram
from fairopt.solvers.via_highs.rows import by_highs
from fairopt.solvers.via_highs.whole import solve_whole_program

with unwarned():
    import cvxpy
    import pyomo.environ as pyo

    INSTALLED = cvxpy.installed_solvers()  # type: ignore[no-untyped-call]
INSIDE = ["cvxpy:HIGHS", "cvxpy:SCIPY", "pyomo", "pyomo:highs", *(["highs:cp-sat"] if importlib.util.find_spec("ortools") else [])]
INSIDE += [f"cvxpy:{name}" for name in ("GUROBI", "SCIP", "CPLEX", "COPT", "XPRESS", "CBC", "GLPK_MI") if name in INSTALLED]
INSIDE += [
    f"pyomo:{name}"
    for name in ("gurobi_direct", "scip_direct", "cplex_direct", "xpress_direct")
    if pyo.SolverFactory(name).available(False)
]
SMALL = fo.Instance(
    [[4, 5], [3, 3]],
    [[1, 2], [2, 1], [1, 1]],
    weights=[1, 1, 2],
    tasks=[3, 2, 3],
    users=["alice", "bob", "carol"],
    servers=["s", "t"],
)
QUEUES = [fo.Queue("lab", weight=2), fo.Queue("course"), fo.Queue("evening", parent="course")]
TREE = SMALL.replace(tasks=None, weights=None, queues=QUEUES, queue_of=["lab", "course", "evening"])


def enumerated(program: Program, obeys: Any = lambda tasks: True) -> list[float]:
    """Sorted shares of the leximin of all points of whole tasks."""
    most = np.floor(program.largest() + 1e-9).astype(int)
    best: list[float] = []
    for point in itertools.product(*(range(q + 1) for q in most)):
        x = np.array(point, float)
        limits = program.limits
        if (limits.matrix @ x <= limits.bounds + 1e-9).all() and obeys(program.per_user(x)):
            best = max(best, sorted(np.round(program.per_user(program.worth * x), 9).tolist()))
    return best


@pytest.mark.parametrize("solver", INSIDE)
def test_the_leximin_is_that_of_enumeration(solver: str) -> None:
    """Without rules and with one; the certificate of whole tasks has no gap."""
    plain = fo.formulate(SMALL, "drfh", integral=True)
    found = fo.solve(SMALL, "drfh", integral=True, solver=solver)
    assert sorted(found.shares) == pytest.approx(enumerated(plain))
    assert found.certificate.worst <= 1e-8
    ruled = SMALL.replace(rules=["x[alice] >= 2 * x[bob]"])
    expected = enumerated(plain, lambda tasks: tasks[0] >= 2 * tasks[1])
    assert sorted(fo.solve(ruled, "drfh", integral=True, solver=solver).shares) == pytest.approx(expected)


@pytest.mark.parametrize("solver", ["highs", *INSIDE])
def test_the_search_goes_on_from_tasks_that_are_not_the_best(solver: str) -> None:
    """Tasks of 8, 8, 9, 9, 9 and 14 fit; HiGHS 1.16 may return those from which it starts, of 8, 8, 9, 9, 9 and 9."""
    demands = [[0.73, 0.53], [0.28, 0.88], [0.12, 0.72], [0.5, 0.0], [0.55, 0.0], [0.11, 0.65]]
    eligibility = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [1, 0, 1, 1]], bool)
    instance = fo.Instance([[8.47, 3.95], [4.78, 4.08], [5.99, 8.85], [3.58, 7.48]], demands, eligibility=eligibility)
    assert sorted(fo.solve(instance, "max-min", integral=True, solver=solver).tasks_per_user) == [8, 8, 9, 9, 9, 14]


@pytest.mark.parametrize("solver", INSIDE)
def test_totals_are_those_of_highs(solver: str) -> None:
    """Their placement is not unique."""
    best = fo.solve(SMALL, "efficiency", integral=True)
    found = fo.solve(SMALL, "efficiency", integral=True, solver=solver)
    weights = np.array([1, 1, 2])
    assert found.tasks_per_user @ weights == pytest.approx(best.tasks_per_user @ weights)


@pytest.mark.parametrize("solver", [each for each in INSIDE if each not in ("cvxpy:CBC", "pyomo:xpress_direct", "highs:cp-sat")])
def test_trees_are_those_of_highs(solver: str) -> None:
    """Stop times are no whole numbers, and need sharper tolerances than two of them have."""
    best = fo.solve(TREE, "drfh", integral=True, queue_share="sum")
    found = fo.solve(TREE, "drfh", integral=True, queue_share="sum", solver=solver)
    assert sorted(found.shares) == pytest.approx(sorted(best.shares))


@pytest.mark.parametrize("solver", ["highs", "cvxpy:HIGHS", "cvxpy:SCIPY", "pyomo"])
def test_a_time_limit_leaves_the_best_tasks_and_a_bound(solver: str) -> None:
    """As with HiGHS."""
    large = fo.generate("constrained", of="uniform", users=40, servers=20, rate=0.4, seed=1)
    with pytest.raises(fo.NoSolution, match="time limit") as caught:
        fo.solve(large, "drfh", integral=True, solver=solver, time_limit=1.0)
    known = caught.value.known
    assert 0 < known["value"] <= known["bound"]
    assert known["tasks"].shape == (40, 20)


@pytest.mark.parametrize("notion", ["proportional", "drfh:formulation=equalize"])
def test_what_has_no_search_is_refused(notion: str) -> None:
    """Alpha-fair goals and equal levels of whole tasks."""
    for solver in ("cvxpy", "pyomo"):
        with pytest.raises(fo.Unsupported):
            fo.solve(SMALL, notion, integral=True, solver=solver)


def test_a_solver_that_proves_no_whole_tasks_is_refused() -> None:
    """It knows none, or leaves a gap."""
    with pytest.raises(fo.Unsupported, match=r'"CLARABEL" of CVXPY does not prove whole tasks; use one of .*HIGHS'):
        fo.solve(SMALL, "drfh", integral=True, solver="cvxpy:CLARABEL")


def test_the_search_takes_any_maker() -> None:
    """Every program of whole numbers goes to it, and none of the others."""
    heard: list[int] = []

    def maker(program: IntegerProgram) -> Any:
        heard.append(program.integral.size)
        return by_highs(program)

    program = fo.formulate(SMALL, "drfh", integral=True)
    with_it, without = (solve_whole_program(program, Deadline(None), *makers) for makers in ((maker,), ()))
    assert [stage.value for stage in with_it.stages] == [stage.value for stage in without.stages]
    assert heard
