"""Pyomo models: what a reader finds in them, what can be written, and that every answer is exact."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from reference import exact
from reference.linear import largest
from strategies import instances

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Alternative, Disjunctive
from fairopt.solvers.backend import Deadline
from fairopt.solvers.highs_model import HighsModel, Outcome, Status
from fairopt.solvers.via_pyomo import running
from fairopt.solvers.via_pyomo.engine import Pyomo

pyo = pytest.importorskip("pyomo.environ")

CLUSTER = fo.Instance(
    [[9, 12, 100], [12, 12, 0]],
    [[1, 2, 10], [1, 2, 1], [1, 2, 0]],
    weights=[1, 1, 2],
    tasks=[np.inf, 3, np.inf],
    users=["alice", "bob", "carol"],
    servers=["server-1", "server-3"],
    resources=["cpu", "memory", "bandwidth"],
)
MANY = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[0.5, 0.3, 0.2])


def test_components_have_names() -> None:
    """Variables, limits, utilities, level."""
    model = fo.to_pyomo(CLUSTER, "drfh")
    assert model.x["carol", "server-3"].name == "x[carol,server-3]"
    assert str(model.capacity["cpu @ server-3"].expr) == "x[carol,server-3]  <=  12.0"
    assert str(model.tasks["bob"].expr) == "x[bob,server-1]  <=  3.0"
    assert str(model.share["carol"].expr).startswith("level  <=  ")
    assert fo.to_pyomo(CLUSTER, "drfh", sharing="tdm").time["server-1"].active
    assert fo.to_pyomo(CLUSTER, "uniform").slices["carol @ server-3"].active
    assert "alternative" in [component.name for component in fo.to_pyomo(MANY, "bbf", prefer=[1, 0, 0]).component_objects()]
    assert "log" in str(fo.to_pyomo(MANY, "bbf").goal.expr)


def test_a_model_can_be_extended_and_solved() -> None:
    """The first level; and with a constraint of the user's own."""
    model = fo.to_pyomo(CLUSTER.replace(tasks=None), "tsf")
    pyo.SolverFactory("appsi_highs").solve(model)
    first = pyo.value(model.level)
    assert first == pytest.approx(fo.solve(CLUSTER.replace(tasks=None), "tsf").shares.min(), rel=1e-6)
    model.own = pyo.Constraint(expr=model.x["alice", "server-1"] <= 1)
    pyo.SolverFactory("appsi_highs").solve(model)
    assert pyo.value(model.level) < first


LINEAR = [
    *((CLUSTER, "drfh", {}), (CLUSTER, "efficiency", {}), (CLUSTER, "proportional", {"alpha": 0})),
    *((MANY, "bbf", {"prefer": "utilization"}), (MANY, "psdsf", {"prefer": [1, 0, 0]})),
]
NONLINEAR = [
    *((MANY, "bbf", {}), (CLUSTER, "proportional", {}), (CLUSTER, "proportional", {"alpha": 2, "integral": True})),
    (CLUSTER, "psdsf", {"formulation": "market", "sharing": "tdm"}),
]


@pytest.mark.parametrize(
    ("suffix", "instance", "notion", "options"),
    [*((suffix, *case) for suffix in ("lp", "mps", "nl") for case in LINEAR), *(("nl", *case) for case in NONLINEAR)],
)
def test_models_can_be_written(tmp_path: Path, suffix: str, instance: fo.Instance, notion: str, options: dict[str, Any]) -> None:
    """With names; an alpha-fair goal is not linear and can be written as .nl."""
    model = fo.to_pyomo(instance, notion, **options)
    path = tmp_path / f"model.{suffix}"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    text = path.read_text() + "".join(other.read_text() for other in tmp_path.glob("*.col"))
    user = instance.users[-1]
    assert user in text or user.replace("-", "_") in text


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@pytest.mark.parametrize(("instance", "notion", "options"), NONLINEAR)
def test_a_goal_that_is_not_linear_is_no_lp(
    tmp_path: Path, suffix: str, instance: fo.Instance, notion: str, options: dict[str, Any]
) -> None:
    """Pyomo's own error, as the docstring says: no file that would be another program."""
    with pytest.raises(Exception, match="nonlinear terms"):
        fo.to_pyomo(instance, notion, **options).write(str(tmp_path / f"model.{suffix}"))


@pytest.mark.parametrize("suffix", ["lp", "mps", "nl"])
def test_disjunctions_are_written_once_they_are_transformed(tmp_path: Path, suffix: str) -> None:
    """The same file as that of the MILP; before, .lp and .nl are refused."""
    model = fo.to_pyomo(MANY, "bbf", prefer=[1, 0, 0], transformation=None)
    if suffix != "mps":
        with pytest.raises(ValueError, match="Disjunction"):
            model.write(str(tmp_path / f"early.{suffix}"))
    pyo.TransformationFactory("gdp.bigm").apply_to(model)
    later, once = tmp_path / f"later.{suffix}", tmp_path / f"once.{suffix}"
    model.write(str(later))
    fo.to_pyomo(MANY, "bbf", prefer=[1, 0, 0]).write(str(once))
    assert later.read_bytes() == once.read_bytes()


@pytest.mark.parametrize("transformation", ["bigm", "hull"])
def test_transformations_agree(transformation: str) -> None:
    """Both make the same MILP of the alternatives."""
    model = fo.to_pyomo(MANY, "bbf", prefer=[1, 0, 0], transformation=transformation)
    pyo.SolverFactory("appsi_highs").solve(model)
    assert pyo.value(model.goal) == pytest.approx(0.7, abs=1e-6)


def test_what_is_no_single_model_is_refused() -> None:
    """Server by server; a transformation or solver that is none."""
    with pytest.raises(fo.Unsupported, match="not a single optimisation model"):
        fo.to_pyomo(CLUSTER, "per-server-drf")
    with pytest.raises(fo.Unsupported, match='no transformation "cut"'):
        fo.to_pyomo(MANY, "bbf", prefer=[1, 0, 0], transformation="cut")
    with pytest.raises(fo.SolverUnavailable, match='no solver "nonesuch"'):
        fo.solve(CLUSTER, "drfh", solver="pyomo:nonesuch")
    with pytest.raises(fo.Unsupported, match="no choice of solvers inside"):
        fo.solve(CLUSTER, "drfh", solver="large:simplex")


def test_a_solver_by_name() -> None:
    """HiGHS through its other door gives the same."""
    for name in ("appsi_highs", "highs"):
        tasks = fo.solve(CLUSTER, "drfh", solver=f"pyomo:{name}").tasks_per_user
        np.testing.assert_allclose(tasks, fo.solve(CLUSTER, "drfh", solver="highs").tasks_per_user, rtol=1e-9)


def test_statuses_are_mapped_totally() -> None:
    """Every termination condition that Pyomo has, by name; new ones would be failures until somebody looks."""
    for native in pyo.TerminationCondition:
        assert native.value in running._STATUS, native
    assert running.status_of(pyo.TerminationCondition.optimal) is Status.OPTIMAL
    assert running.status_of("something new") is Status.FAILED


def test_errors_and_noise_stay_inside(caplog: pytest.LogCaptureFixture) -> None:
    """Pyomo's own exceptions become ours, and its log is silent."""
    with running.inside():
        logging.getLogger("pyomo.core").error("noise")
    with pytest.raises(fo.FairoptError, match="Pyomo failed: inner"), running.inside():
        raise RuntimeError("inner")
    assert "noise" not in caplog.text
    assert logging.getLogger("pyomo").level != logging.CRITICAL + 1


@pytest.mark.parametrize("notion", ["drfh", "tsf", "uniform"])
@given(instance=instances(max_users=5))
@settings(max_examples=10, deadline=None)
def test_agrees_with_highs(notion: str, instance: fo.Instance) -> None:
    """Leximin and total on random clusters, certified."""
    mine, theirs = (fo.solve(instance, notion, solver=solver) for solver in ("pyomo", "highs"))
    np.testing.assert_allclose(mine.tasks_per_user, theirs.tasks_per_user, rtol=1e-7, atol=1e-9)


def test_whole_requests() -> None:
    """A choice among alternatives over whole tasks: the pool is full of them, and everybody has its entitlement."""
    instance = fo.Instance([[4]], [[1], [1]], tasks=[4, 4])
    allocation = fo.solve(instance, "bbf", prefer=[1, 0], integral=True)
    assert allocation.tasks_per_user.tolist() == [2, 2]
    with pytest.raises(fo.NoSolution, match='no whole tasks meet the conditions of "bbf"; leave integral out'):
        fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]], tasks=[9, 9]), "bbf", prefer=[1, 1], integral=True)  # only 4.09 and 1.64 do


def test_total_of_whole_tasks() -> None:
    """The bound proves it."""
    instance = fo.Instance([[10, 19]], [[1, 4], [3, 1]])
    allocation = fo.solve(instance, "uniform", solver="pyomo", integral=True)
    np.testing.assert_allclose(allocation.tasks_per_user, fo.solve(instance, "uniform", solver="highs", integral=True).tasks_per_user)
    assert allocation.certificate.whole_tasks


def test_alternatives_with_auxiliary_columns_and_equalities() -> None:
    """max x1 + x2, x1 + x2 <= 3, either x1 = a or x2 = 2 a, and x1 <= 1 or x1 >= 5: a is a column of 0 <= a <= 0.5."""

    def alternative(row: list[float], lower: float, upper: float) -> Alternative:
        return Alternative(sp.csr_array(np.array([row])), np.array([lower]), np.array([upper]))

    instance = fo.Instance([[3]], [[1], [1]])
    plain = fo.formulate(instance, "drf")
    clauses = (
        (alternative([1, 0, -1], 0, 0), alternative([0, 1, -2], 0, 0)),
        (alternative([1, 0, 0], -np.inf, 1), alternative([1, 0, 0], 5, np.inf)),
    )
    program = dataclasses.replace(plain, goal=Disjunctive(np.array([1.0, 1.5]), clauses, np.array([0.5])))
    solution = fo.SOLVERS["pyomo"]().solve(program, tolerance=1e-8, deadline=Deadline(None))
    np.testing.assert_allclose(solution.x, [0, 3], atol=1e-9)  # x1 = a = 0
    assert certify(program, solution).worst <= 1e-9


def test_time_limit() -> None:
    """A deadline that has passed is an error of its own."""
    with pytest.raises(fo.NoSolution, match="time limit"):
        fo.solve(pyomo_hard(), "bbf", prefer=np.arange(60.0), time_limit=0.5)


def pyomo_hard() -> fo.Instance:
    """Return a pool with far too many fair allocations to look at in half a second."""
    return fo.Instance(np.ones((1, 6)), np.random.default_rng(0).uniform(0.05, 0.5, (60, 6)))


def test_pyomo_is_imported_only_when_it_is_used() -> None:
    """Nor is gdp."""
    code = "import sys, fairopt; assert not [m for m in sys.modules if m.startswith('pyomo')]"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(fo.__file__).parents[1])


# The engine alone, against what shares no code with it ---------------------------------------------------------------------------


@given(instance=instances(max_users=3, max_servers=2, max_resources=2, whole=True))
@settings(max_examples=5)
def test_levels_are_those_of_fractions(instance: fo.Instance) -> None:
    """Level by level, as by a rational simplex."""
    program = fo.formulate(instance, "drfh")
    if program.n_pairs:
        solution = Pyomo().solve(program, tolerance=1e-8, deadline=Deadline(None))
        expected = [float(x) for x in exact.leximin(instance, "drfh")]
        np.testing.assert_allclose(program.per_user(solution.x), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_of_alternatives_the_best_choice_is_found(seed: int) -> None:
    """One alternative of each clause, all choices tried one by one as plain linear programs."""
    rng = np.random.default_rng(seed)
    program = fo.formulate(fo.Instance([[3, 2]], rng.uniform(0.2, 1, (3, 2))), "efficiency")
    clauses = tuple(
        tuple(Alternative(sp.csr_array(rng.uniform(0, 1, (1, 3))), np.full(1, -np.inf), rng.uniform(0.2, 1, 1)) for _ in range(2))
        for _ in range(2)
    )
    goal = Disjunctive(rng.uniform(0.1, 1, 3), clauses, np.empty(0))
    best = max(
        largest(
            goal.preference,
            np.vstack([program.limits.matrix.toarray(), *(each.matrix.toarray() for each in choice)]),
            np.concatenate([program.limits.bounds, *(each.upper for each in choice)]),
        )
        for choice in itertools.product(*clauses)
    )
    solution = Pyomo().solve(dataclasses.replace(program, goal=goal), tolerance=1e-8, deadline=Deadline(None))
    assert goal.preference @ solution.x == pytest.approx(best, rel=1e-8)
    assert any(all((each.matrix @ solution.x <= each.upper + 1e-8).all() for each in choice) for choice in itertools.product(*clauses))


def test_threads_leave_pyomo_as_it_was() -> None:
    """Also where the one that came first leaves first."""
    from pyomo.common import fileutils

    before = fileutils.find_executable.__defaults__, logging.getLogger("pyomo").level
    first, second = running.inside(), running.inside()
    with ExitStack() as stack:
        first.__enter__()
        stack.enter_context(second)
        first.__exit__(None, None, None)
        assert fileutils.find_executable.__defaults__[0] is False
    assert (fileutils.find_executable.__defaults__, logging.getLogger("pyomo").level) == before


def test_a_solver_without_a_bound_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice is there, its gap is unknown, and no certificate holds; whole tasks are refused."""
    run = running.run
    monkeypatch.setattr(running, "run", lambda *given, **more: (run(*given, **more)[0], None))
    choice = fo.formulate(fo.Instance([[4]], [[1], [1]], tasks=[4, 4]), "bbf", prefer=[1, 0])
    solution = Pyomo().solve(choice, tolerance=1e-8, deadline=Deadline(None))
    assert solution.x.any()
    assert (solution.gap, solution.bound) == (None, None)
    assert certify(choice, solution).worst == np.inf
    with pytest.raises(fo.Unsupported, match="gives no bound, which proves whole tasks"):
        fo.solve(fo.Instance([[10, 19]], [[1, 4], [3, 1]]), "uniform", integral=True, solver="pyomo")


def test_a_linear_program_that_fails_says_nothing_of_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is solved once more, and then it is an error; the next best choice would be a wrong answer."""
    program = fo.formulate(fo.Instance([[4]], [[1], [1]], tasks=[4, 4]), "bbf", prefer=[1, 0])
    expected = Pyomo().solve(program, tolerance=1e-8, deadline=Deadline(None))
    run, failures = HighsModel.run, [1]

    def fails(model: HighsModel, time_limit: float) -> Outcome:
        outcome = run(model, time_limit)
        failures[0] -= 1
        return dataclasses.replace(outcome, status=Status.FAILED) if failures[0] >= 0 else outcome

    monkeypatch.setattr(HighsModel, "run", fails)
    again = Pyomo().solve(program, tolerance=1e-8, deadline=Deadline(None))
    np.testing.assert_allclose(again.x, expected.x, atol=1e-9)
    failures[0] = 100
    with pytest.raises(fo.FairoptError, match="gave up"):
        Pyomo().solve(program, tolerance=1e-8, deadline=Deadline(None))


class Fake:
    """A solver that throws."""

    def __init__(self, says: str) -> None:
        self.says = says

    def solve(self, *_: Any, **__: Any) -> None:
        """Never return."""
        raise NotImplementedError(self.says)


@pytest.mark.parametrize(
    ("says", "options", "kind", "words"),
    [
        ("Unknown parameter 'Thread'", {"Thread": 1}, fo.Unsupported, r'"pyomo:gurobi" does not take Thread=1: .*Unknown parameter'),
        ("class failed to implement 'get_duals'", {}, fo.Unsupported, "gives no dual prices"),
        ("Model too large for size-limited license", {}, fo.FairoptError, r'Model too large for size-limited license \("pyomo:gurobi"\)'),
        ("Incorrect control name", {"thread": 1}, fo.FairoptError, "try without these options"),
    ],
)
def test_a_failure_has_the_reason_of_the_solver(says: str, options: dict[str, object], kind: type[Exception], words: str) -> None:
    """An option, dual prices, a licence."""
    with pytest.raises(kind, match=words):
        running.run(None, running.Engine(Fake(says), "gurobi", options), np.inf)


def test_options_reach_the_solver() -> None:
    """They replace ours; HiGHS ignores options in Pyomo that it does not know, so they are looked at before."""
    found = running.solver("highs", {"threads": 1, "mip_rel_gap": 0.25}).found
    assert (found.options["threads"], found.options["mip_rel_gap"], found.options["mip_abs_gap"]) == (1, 0.25, 0.0)
    assert fo.solve(CLUSTER, "drfh", solver="pyomo", solver_options={"threads": 1}).certificate.worst <= 1e-8
    with pytest.raises(fo.Unsupported, match=r'did you mean "threads"'):
        fo.solve(CLUSTER, "drfh", solver="pyomo", solver_options={"thread": 1})


def test_names_of_solvers_in_any_case() -> None:
    """As CVXPY's are."""
    assert fo.solve(CLUSTER, "drfh", solver="pyomo:HiGHS").certificate.worst <= 1e-8
    with pytest.raises(fo.SolverUnavailable, match=r'did you mean "gurobi"'):
        fo.solve(CLUSTER, "drfh", solver="pyomo:gurobo")
