"""Programs as CVXPY problems with names: each goal, beside `fo.solve`; and the loop over levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.solvers.via_cvxpy.model import CvxpyModel, Entries


def lab(**more: Any) -> fo.Instance:
    """Three users on two servers, two resources."""
    demands = [[1, 4], [3, 1], [1, 1]]
    return fo.Instance([[9, 18], [6, 6]], demands, users=["a", "b", "c"], servers=["s", "t"], resources=["cpu", "memory"], **more)


def leximin(model: Any) -> dict[str, float]:
    """The loop of the how-to, until nobody rises."""
    levels = 0
    while model.rises.value.any():
        model.problem.solve(solver="HIGHS")
        stop = (model.rises.value > 0) & (model.share.dual_value > 1e-9)
        model.floor.value = np.where(stop, model.level.value, model.floor.value)
        model.rises.value = np.where(stop, 0.0, model.rises.value)
        levels += 1
        assert levels <= 3
    return {user: float(value.value) for user, value in model.utility.items()}


def test_levels_one_after_the_other() -> None:
    """The loop ends with the shares of the leximin; a user who can run nothing never rises."""
    instance = lab(weights=[1, 2, 1], tasks=[1, np.inf, np.inf], eligibility=[[1, 1], [1, 0], [0, 1]])
    shares = leximin(fo.to_cvxpy(instance, "drfh"))
    allocation = fo.solve(instance, "drfh")
    np.testing.assert_allclose([shares[user] for user in instance.users] / instance.weights, allocation.shares, rtol=1e-6)
    nothing = fo.to_cvxpy(lab(tasks=[0, np.inf, np.inf]), "drfh")
    assert nothing.rises.value.tolist() == [0, 1, 1]


def test_names() -> None:
    """Variables by pair, utilities by user, limits and their prices by name."""
    program = fo.formulate(lab(), "efficiency").with_limit("a on s", {("a", "s"): 1}, 1)
    model = fo.to_cvxpy(program)
    assert isinstance(model, CvxpyModel)
    assert isinstance(model.x, Entries)
    assert model.names == ("cpu @ s", "memory @ s", "cpu @ t", "memory @ t", "a on s")
    assert model.problem.solve(solver="HIGHS") == pytest.approx(fo.solve(program).tasks.sum())
    assert model.prices["cpu @ s"] > 0
    assert float(model.x["c", "s"].value) == pytest.approx(float(model.x.vector.value[4]))
    assert len(model.x) == 6
    assert set(model.utility) == {"a", "b", "c"}
    with pytest.raises(KeyError, match='there is no "alice on s"'):
        model.x["alice", "s"]


@pytest.mark.parametrize(
    ("notion", "options"),
    [
        ("proportional", {}),
        ("proportional", {"alpha": 2}),
        ("fds", {"beta": 2}),
        ("gfj", {"beta": 0.5}),
        ("drfh", {"formulation": "equalize"}),
    ],
)
def test_other_goals(notion: str, options: dict[str, Any]) -> None:
    """The same utilities as those of the notion's own engine."""
    model = fo.to_cvxpy(lab(), notion, **options)
    model.problem.solve(solver="HIGHS" if notion == "drfh" else "CLARABEL")
    program, allocation = fo.formulate(lab(), notion, **options), fo.solve(lab(), notion, **options)
    found = [float(model.utility[user].value) for user in ("a", "b", "c")]
    np.testing.assert_allclose(found, program.utility(allocation.tasks), rtol=1e-4)


def test_whole_tasks() -> None:
    """Whole numbers, on single servers."""
    model = fo.to_cvxpy(lab(counts=[1, 2]), "efficiency", integral=True)
    assert ("a", "t#2") in model.x
    assert model.problem.solve(solver="HIGHS") == pytest.approx(fo.solve(lab(counts=[1, 2]), "efficiency", integral=True).tasks.sum())


def test_what_is_no_one_problem() -> None:
    """Equilibria, separate servers and trees; nobody who can run; a program that is given with a notion."""
    for notion in ("psdsf", "per-server-drf"):
        with pytest.raises(fo.Unsupported, match="no one convex program"):
            fo.to_cvxpy(lab(), notion)
    with pytest.raises(fo.Unsupported, match="nobody can run anything"):
        fo.to_cvxpy(lab(eligibility=np.zeros((3, 2), bool)), "drfh")
    for model in (fo.to_cvxpy, fo.to_pyomo):
        with pytest.raises(fo.Unsupported, match="a program has its notion"):
            model(fo.formulate(lab(), "drfh"), "drfh")
        with pytest.raises(fo.Unsupported, match="give a notion"):
            model(lab())


def test_a_pyomo_model_of_a_program() -> None:
    """Its own limits are constraints by name."""
    model = fo.to_pyomo(fo.formulate(lab(), "drfh").with_limit("a on s", {("a", "s"): 2}, 1))
    assert str(model.rows["a on s"].expr) == "2.0*x[a,s]  <=  1.0"
