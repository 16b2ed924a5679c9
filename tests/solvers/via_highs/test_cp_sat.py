"""CP-SAT for the programs of whole numbers, against HiGHS itself; skipped where OR-Tools is not installed."""

from __future__ import annotations

import importlib.util
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from support.whole_models import agrees_with_highs

import fairopt as fo
from fairopt.solvers.backend import Status
from fairopt.solvers.via_highs.cp_sat import CpSat
from fairopt.solvers.via_highs.integer_program import IntegerProgram
from fairopt.solvers.via_highs.rows import by_highs

IS_THERE = importlib.util.find_spec("ortools") is not None
needs_ortools = pytest.mark.skipif(not IS_THERE, reason="needs pip install ortools")
POOL = fo.Instance([[9, 18]], [[1, 4], [3, 1]])


@needs_ortools
@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_highs(seed: int) -> None:
    """Rows and goals of fractions, too, and with a start; what has no point has none."""
    agrees_with_highs(partial(CpSat, {}), seed, whole=4)


@needs_ortools
@pytest.mark.parametrize("room", [0.3, 0.1 + 0.2, 0.3 * (1 - 1e-13), 0.3 * (1 - 1e-8)])
def test_a_row_has_the_tolerance_of_highs(room: float) -> None:
    """Three tasks of 0.1 in about 0.3: they fit where HiGHS says so."""
    row = sp.csr_array([[0.1]]), np.array([-np.inf]), np.array([room])
    program = IntegerProgram(np.ones(1), np.zeros(1), np.array([9.0]), *row, integral=np.arange(1))
    mine, highs = CpSat({}, program).run(np.inf), by_highs(program).run(np.inf)
    assert np.round(mine.x).tolist() == np.round(highs.x).tolist()


@needs_ortools
def test_a_time_limit_leaves_what_is_known() -> None:
    """Nothing, or a point and a bound above it; the first needs no time."""
    rng = np.random.default_rng(0)
    rows, columns = 40, 120
    cost, upper, matrix = rng.uniform(1, 2, columns), np.full(columns, 9.0), sp.csr_array(rng.uniform(0, 1, (rows, columns)))
    bounds = np.full(rows, -np.inf), np.full(rows, 30.0)
    model = CpSat({}, IntegerProgram(cost, np.zeros(columns), upper, matrix, *bounds, integral=np.arange(columns)))
    model.guess(np.zeros(columns))
    found = model.run(0.2)
    assert found.status is Status.TIME_LIMIT
    if found.x.size:
        assert 0 <= float(cost @ found.x) <= found.bound * (1 + 1e-9)
        assert found.gap > 0


@needs_ortools
def test_what_it_cannot_hold_is_refused() -> None:
    """Columns that are divisible or have no bound, numbers that lie too far apart, tasks that are divided, options that it lacks."""
    row = np.array([-np.inf]), np.array([1.0])
    many = np.array([1e12, 1e12])
    for upper, entries, integral, why in (
        (np.ones(2), [0.3, 0.3], [0], "has whole numbers alone"),
        (np.array([1.0, np.inf]), [0.3, 0.3], [0, 1], "needs a bound on every number of tasks"),
        (many, [0.3, 1e-12], [0, 1], "lie too far apart"),
    ):
        matrix: sp.csr_array = sp.csr_array(np.array([entries]))
        with pytest.raises(fo.Unsupported, match=why):
            CpSat({}, IntegerProgram(np.ones(2), np.zeros(2), upper, matrix, *row, integral=np.array(integral)))
    with pytest.raises(fo.Unsupported, match='"highs:cp-sat" finds whole tasks alone, and "drf" divides tasks; add integral, or use highs'):
        fo.solve(POOL, "drf", solver="highs:cp-sat")
    with pytest.raises(fo.Unsupported, match=r'takes no option "num_worker" \(did you mean "num_workers"\?\); leave it out'):
        fo.solve(POOL, "drf", integral=True, solver="highs:cp-sat", solver_options={"num_worker": 2})
    with pytest.raises(fo.Unsupported, match='does not take "many" for its option "num_workers"; its default is 0'):
        fo.solve(POOL, "drf", integral=True, solver="highs:cp-sat", solver_options={"num_workers": "many"})


@needs_ortools
def test_its_log_is_not_in_the_results(capfd: pytest.CaptureFixture[str]) -> None:
    """It goes to stderr."""
    fo.solve(POOL, "drf", integral=True, solver="highs:cp-sat", solver_options={"log_search_progress": True})
    out, err = capfd.readouterr()
    assert out == ""
    assert "CpSolverResponse" in err


def test_other_names_and_a_missing_package_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to give, and what to install."""
    with pytest.raises(fo.Unsupported, match='"highs" has no solver "glop" inside; it has "highs:cp-sat", for whole tasks'):
        fo.solve(POOL, "drf", integral=True, solver="highs:glop")
    with pytest.raises(fo.Unsupported, match="other engines reach it: highs:cp-sat"):
        fo.solve(POOL, "drf", integral=True, solver="CP_SAT")

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(fo.SolverUnavailable, match='"highs:cp-sat" needs OR-Tools; install it with: pip install ortools'):
        fo.solve(POOL, "drf", integral=True, solver="highs:cp-sat")
