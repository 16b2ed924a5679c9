"""Programs as files: read back by HiGHS, and solved by it and by SciPy, they have the optimum of fairopt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

import fairopt as fo
from fairopt.solvers.via_pyomo.files import model_files

pytest.importorskip("pyomo")
CLUSTER = fo.Instance(
    [[9, 12], [12, 12]],
    [[1, 2], [2, 1], [1, 3]],
    weights=[1, 1, 2],
    tasks=[np.inf, 3, np.inf],
    rules=["x[alice] >= x[bob]"],
    users=["alice", "bob", "carol"],
    servers=["server-1", "server-3"],
    resources=["cpu", "memory"],
)


def read(path: Path) -> Any:
    """A model of HiGHS from a file."""
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    return highs


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
@pytest.mark.parametrize(("notion", "integral"), [("drfh", False), ("efficiency", False), ("efficiency", True)])
def test_what_is_read_back_has_the_same_optimum(tmp_path: Path, suffix: str, notion: str, integral: bool) -> None:
    """The smallest share of a leximin, the total, the total of whole tasks; with a rule, and with limits of tasks."""
    instance = CLUSTER.replace(rules=None) if integral else CLUSTER
    program = fo.formulate(instance, notion, integral=integral)
    path = tmp_path / f"model{suffix}"
    path.write_bytes(model_files(program, suffix).contents[suffix])
    highs = read(path)
    highs.run()
    lp = highs.getLp()
    form = sp.csc_array((lp.a_matrix_.value_, lp.a_matrix_.index_, lp.a_matrix_.start_), shape=(lp.num_row_, lp.num_col_))
    sign = -1 if lp.sense_ == highspy.ObjSense.kMaximize else 1
    whole = np.array([kind == highspy.HighsVarType.kInteger for kind in lp.integrality_] or [False] * lp.num_col_)
    answer = scipy.optimize.milp(
        sign * np.array(lp.col_cost_),
        constraints=scipy.optimize.LinearConstraint(form.toarray(), lp.row_lower_, lp.row_upper_),
        bounds=scipy.optimize.Bounds(lp.col_lower_, lp.col_upper_),
        integrality=whole.astype(int),
    )
    mine = fo.solve(program)
    weights = instance.weights[:, 0] if instance.weights.ndim == 2 else instance.weights
    expected = mine.shares.min() if notion == "drfh" else weights @ mine.tasks_per_user
    assert abs(highs.getInfo().objective_function_value) == pytest.approx(expected, rel=1e-9)
    assert abs(float(answer.fun or 0.0)) == pytest.approx(expected, rel=1e-9)
    assert whole.any() == integral


def test_rows_and_columns_say_what_they_are() -> None:
    """Of linear formats without the characters that these do not allow, of .nl in files beside it."""
    program = fo.formulate(CLUSTER, "drfh")
    found = model_files(program, ".mps")
    text = found.contents[".mps"].decode()
    assert found.columns[-1] == ("x(carol,server_3)", "carol", "server-3")
    for name in ("x(carol,server_3)", "capacity(cpu@server_3)", "tasks(bob)", "share(alice)", "rules("):
        assert name in text
    beside = model_files(program, ".nl")
    assert list(beside.contents) == [".nl", ".col", ".row"]
    rows = beside.contents[".row"].decode().splitlines()
    assert {"capacity[cpu @ server-3]", "tasks[bob]", "share[alice]"} <= set(rows)
    assert set(beside.contents[".col"].decode().splitlines()) == {"level", *(name for name, *_ in beside.columns)}


def test_names_that_would_be_the_same_are_told_apart(tmp_path: Path) -> None:
    """Users whose names differ in characters that a format does not allow."""
    instance = fo.Instance([[9], [3]], [[1], [2]], users=["a b", "a_b"], servers=["s-1", "s 1"])
    found = model_files(fo.formulate(instance, "efficiency"), ".lp")
    assert len({name for name, *_ in found.columns}) == 4
    path = tmp_path / "model.lp"
    path.write_bytes(found.contents[".lp"])
    highs = read(path)
    highs.run()
    assert highs.getInfo().objective_function_value == pytest.approx(12)
    by_name = dict(zip(highs.getLp().col_names_, highs.getSolution().col_value, strict=True))
    assert sum(by_name[name] for name, user, _ in found.columns if user == "a b") == pytest.approx(12)


@pytest.mark.parametrize(("notion", "options"), [("proportional", {}), ("gfj", {}), ("proportional", {"alpha": 2})])
def test_a_format_that_cannot_hold_a_goal_is_refused(notion: str, options: dict[str, Any]) -> None:
    """It is named, with one that can; which then has the number of columns of tasks."""
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    program = fo.formulate(pool, notion, **options)
    for suffix in (".lp", ".mps"):
        with pytest.raises(fo.Unsupported, match=rf"is not linear, and \{suffix} holds linear programs; write \.nl"):
            model_files(program, suffix)
    lines = model_files(program, ".nl").contents[".nl"].decode().splitlines()
    assert lines[0].startswith("g3")
    assert lines[1].split()[:2] == ["2", "2"]  # columns, rows
    with pytest.raises(fo.Unsupported, match="is not a single optimisation model"):
        model_files(fo.formulate(pool, "psdsf"), ".nl")
